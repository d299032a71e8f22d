/* A CUDA driver that is simulated: the driver API over host memory, for tests that have
 * no GPU. Linked as libcuda.so.1, it is what CUDA programs load.
 *
 * Modelled, as NVIDIA documents it:
 * - devices with a limit of memory each; primary and other contexts; every refusal of a
 *   missing or destroyed context, a stale handle, a range outside one live allocation;
 * - stream order: work is done when something waits for it and no sooner. Events, and
 *   the legacy stream, which comes after the blocking streams' work and they after its;
 * - what blocks and what does not. cuMemsetD8 and cuMemcpyDtoD return before they are
 *   done. cuMemcpyHtoD returns when it has read pageable memory, and writes later.
 *   cuMemcpyDtoH blocks. cuMemcpyHtoDAsync has read pageable memory, and
 *   cuMemcpyDtoHAsync has filled it, when it returns; pinned memory is used later.
 *   cuMemFree waits for the whole context, except for memory from a pool;
 * - stream-ordered allocation. Work that reaches memory after it was freed puts the
 *   context out of order for good: every call then answers CUDA_ERROR_ILLEGAL_ADDRESS;
 * - capture of memsets and copies into a graph, and its replay. What a capture forbids
 *   is refused and invalidates it;
 * - polling: a query that answers CUDA_ERROR_NOT_READY does one more piece of work.
 *
 * Stricter than a real driver: a memset, a copy or a stream has to be of the current
 * context's device (no peer or cross-device access), a range may not span two
 * allocations, and handles and addresses are never used twice.
 *
 * Not modelled: kernels and modules, memory that is managed, virtual, shared between
 * processes, or allocated by a graph, priorities and elapsed device time. A function
 * that is not implemented is found all the same: it is recorded under its name and
 * answers CUDA_ERROR_NOT_SUPPORTED. Who asks cuGetProcAddress for per-thread default
 * streams changes what stream 0 is for the whole process. */

#include "simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER_VERSION = 13000 };

/* What a device is like, after an H100 SXM. */
static const int ATTRIBUTES[MAX_ATTRIBUTE] = {
    [1] = 1024,       /* MAX_THREADS_PER_BLOCK */
    [2] = 1024,       /* MAX_BLOCK_DIM_X */
    [3] = 1024,       /* MAX_BLOCK_DIM_Y */
    [4] = 64,         /* MAX_BLOCK_DIM_Z */
    [5] = 2147483647, /* MAX_GRID_DIM_X */
    [6] = 65535,      /* MAX_GRID_DIM_Y */
    [7] = 65535,      /* MAX_GRID_DIM_Z */
    [8] = 49152,      /* MAX_SHARED_MEMORY_PER_BLOCK */
    [10] = 32,        /* WARP_SIZE */
    [12] = 65536,     /* MAX_REGISTERS_PER_BLOCK */
    [13] = 1980000,   /* CLOCK_RATE, kHz */
    [16] = 132,       /* MULTIPROCESSOR_COUNT */
    [31] = 1,         /* CONCURRENT_KERNELS */
    [36] = 2619000,   /* MEMORY_CLOCK_RATE, kHz */
    [37] = 5120,      /* GLOBAL_MEMORY_BUS_WIDTH, bits */
    [38] = 52428800,  /* L2_CACHE_SIZE */
    [39] = 2048,      /* MAX_THREADS_PER_MULTIPROCESSOR */
    [40] = 3,         /* ASYNC_ENGINE_COUNT */
    [41] = 1,         /* UNIFIED_ADDRESSING */
    [75] = 9,         /* COMPUTE_CAPABILITY_MAJOR */
    [76] = 0,         /* COMPUTE_CAPABILITY_MINOR */
    [78] = 1,         /* STREAM_PRIORITIES_SUPPORTED */
    [81] = 233472,    /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    [82] = 65536,     /* MAX_REGISTERS_PER_MULTIPROCESSOR */
    [97] = 232448,    /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    [106] = 32,       /* MAX_BLOCKS_PER_MULTIPROCESSOR */
    [115] = 1,        /* MEMORY_POOLS_SUPPORTED */
};

static bool is_device(CUdevice device)
{
    return device >= 0 && device < sim.device_count;
}

static bool is_default(Handle stream)
{
    return stream <= STREAM_PER_THREAD;
}

/* Errors, the driver and its devices */

#define TEXT_OF_ERROR(function, text)                                                  \
    API CUresult function(CUresult error, const char **answer)                         \
    {                                                                                  \
        ENTER(function, NOTHING, .value = error);                                      \
        *answer = NULL;                                                                \
        switch (error) {                                                               \
            STATUSES(text)                                                             \
        }                                                                              \
        LEAVE(*answer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);                      \
    }
#define CASE_NAME(status, value, description)                                          \
    case status:                                                                       \
        *answer = #status;                                                             \
        break;
#define CASE_DESCRIPTION(status, value, description)                                   \
    case status:                                                                       \
        *answer = description;                                                         \
        break;
TEXT_OF_ERROR(cuGetErrorName, CASE_NAME)
TEXT_OF_ERROR(cuGetErrorString, CASE_DESCRIPTION)

API CUresult cuInit(unsigned flags)
{
    ENTER(cuInit, NOTHING, .value = flags);
    REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(sim.device_count, CUDA_ERROR_NO_DEVICE);
    sim.initialised = true;
    LEAVE(CUDA_SUCCESS);
}

/* A function that only answers a question. */
#define GETTER(function, needs, type, answer)                                          \
    API CUresult function(type *out)                                                   \
    {                                                                                  \
        ENTER(function, needs, 0);                                                     \
        *out = (answer);                                                               \
        LEAVE(CUDA_SUCCESS);                                                           \
    }
GETTER(cuDriverGetVersion, NOTHING, int, DRIVER_VERSION)
GETTER(cuDeviceGetCount, DRIVER, int, sim.device_count)
GETTER(cuCtxGetDevice, CONTEXT, CUdevice, current()->device)
GETTER(cuCtxGetFlags, CONTEXT, unsigned, current()->flags)
GETTER(cuCtxGetCurrent, DRIVER, Handle, current() ? current()->handle : 0)

/* Begin a call that names a device. */
#define ENTER_DEVICE(function, ordinal, ...)                                           \
    ENTER(function, DRIVER, __VA_ARGS__);                                              \
    call.device = (ordinal);                                                           \
    REQUIRE(is_device(ordinal), CUDA_ERROR_INVALID_DEVICE)

#define DEVICE_GETTER(function, version, type, answer)                                 \
    API CUresult function##version(type *out, CUdevice device)                         \
    {                                                                                  \
        ENTER_DEVICE(function, device, 0);                                             \
        *out = (answer);                                                               \
        LEAVE(CUDA_SUCCESS);                                                           \
    }
DEVICE_GETTER(cuDeviceGet, , CUdevice, device)
DEVICE_GETTER(cuDeviceTotalMem, _v2, size_t, sim.devices[device].memory)
DEVICE_GETTER(cuDeviceGetMemPool, , Handle, sim.devices[device].pool.handle)
DEVICE_GETTER(cuDeviceGetDefaultMemPool, , Handle, sim.devices[device].pool.handle)

API CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    ENTER_DEVICE(cuDeviceGetName, device, 0);
    snprintf(name, room, "Simulated GPU %d", device);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDeviceGetUuid(char *uuid, CUdevice device)
{
    ENTER_DEVICE(cuDeviceGetUuid, device, 0);
    memcpy(uuid, "simulated-gpu-00", 16);
    uuid[15] += device;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    ENTER_DEVICE(cuDeviceGetAttribute, device, .value = attribute);
    REQUIRE(attribute > 0 && attribute < MAX_ATTRIBUTE, CUDA_ERROR_INVALID_VALUE);
    *value = sim.devices[device].attributes[attribute];
    LEAVE(CUDA_SUCCESS);
}

/* Contexts */

static struct context *find_context(Handle handle)
{
    for (int i = 0; i < MAX_DEVICES; i++)
        if (handle && sim.devices[i].primary.handle == handle)
            return &sim.devices[i].primary;
    struct context *context = sim.contexts;
    while (context && context->handle != handle)
        context = context->next;
    return context;
}

static void destroy_context(struct context *context)
{
    drop_streams_of(context);
    release_all_of(context);
    context->alive = false;
    context->fault = CUDA_SUCCESS;
}

static struct context *add_context(CUdevice device, unsigned flags)
{
    struct context *context = calloc(1, sizeof *context);
    if (!context)
        abort();
    context->handle = new_handle();
    context->device = device;
    context->flags = flags;
    context->alive = true;
    context->next = sim.contexts;
    sim.contexts = context;
    return context;
}

API CUresult cuDevicePrimaryCtxRetain(Handle *context, CUdevice device)
{
    ENTER_DEVICE(cuDevicePrimaryCtxRetain, device, 0);
    struct context *primary = &sim.devices[device].primary;
    primary->retained++;
    primary->alive = true;
    *context = call.pointer = primary->handle;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    ENTER_DEVICE(cuDevicePrimaryCtxRelease, device, 0);
    struct context *primary = &sim.devices[device].primary;
    REQUIRE(primary->retained, CUDA_ERROR_INVALID_CONTEXT);
    if (!--primary->retained)
        destroy_context(primary);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    ENTER_DEVICE(cuDevicePrimaryCtxReset, device, 0);
    struct context *primary = &sim.devices[device].primary;
    destroy_context(primary);
    primary->alive = primary->retained;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    ENTER_DEVICE(cuDevicePrimaryCtxSetFlags, device, .value = flags);
    sim.devices[device].primary.flags = flags;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    ENTER_DEVICE(cuDevicePrimaryCtxGetState, device, 0);
    *flags = sim.devices[device].primary.flags;
    *active = sim.devices[device].primary.alive;
    LEAVE(CUDA_SUCCESS);
}

static CUresult create_context(Handle *created, unsigned flags, CUdevice device)
{
    ENTER_DEVICE(cuCtxCreate, device, .value = flags);
    struct context *context = add_context(device, flags);
    REQUIRE(push_current(context), CUDA_ERROR_INVALID_CONTEXT);
    *created = call.pointer = context->handle;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxCreate_v2(Handle *context, unsigned flags, CUdevice device)
{
    return create_context(context, flags, device);
}

API CUresult cuCtxCreate_v4(Handle *context, const void *parameters, unsigned flags,
                            CUdevice device)
{
    (void)parameters;
    return create_context(context, flags, device);
}

API CUresult cuCtxDestroy_v2(Handle handle)
{
    ENTER(cuCtxDestroy, DRIVER, .pointer = handle);
    struct context *context = find_context(handle);
    REQUIRE(context && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    call.device = context->device;
    destroy_context(context);
    if (current() == context)
        pop_current();
    LEAVE(CUDA_SUCCESS);
}

/* A primary context may be made current before it is retained; no other call takes it
 * until then. */
API CUresult cuCtxSetCurrent(Handle handle)
{
    ENTER(cuCtxSetCurrent, DRIVER, .pointer = handle);
    struct context *context = find_context(handle);
    REQUIRE(context || !handle, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(!context || context->primary || context->alive,
            CUDA_ERROR_CONTEXT_IS_DESTROYED);
    set_current(context);
    call.device = context ? context->device : -1;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxPushCurrent_v2(Handle handle)
{
    ENTER(cuCtxPushCurrent, DRIVER, .pointer = handle);
    struct context *context = find_context(handle);
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    REQUIRE(push_current(context), CUDA_ERROR_INVALID_CONTEXT);
    call.device = context->device;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxPopCurrent_v2(Handle *popped)
{
    ENTER(cuCtxPopCurrent, DRIVER, 0);
    const struct context *context = pop_current();
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    call.pointer = context->handle;
    if (popped)
        *popped = context->handle;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxGetId(Handle handle, uint64_t *id)
{
    ENTER(cuCtxGetId, DRIVER, .pointer = handle);
    const struct context *context = handle ? find_context(handle) : current();
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    *id = context->handle;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER(cuCtxGetStreamPriorityRange, CONTEXT, 0);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize, CONTEXT | SAFE_ONLY, 0);
    CUresult refused = refuse_captured(current());
    LEAVE(refused ? refused : synchronize_context(current()));
}

/* Streams */

/* The stream that a call names. An ordinary one needs no current context, and may be
 * of another than the current one. */
static CUresult resolve(Handle handle, struct stream **stream)
{
    if (is_default(handle) && !current())
        return CUDA_ERROR_INVALID_CONTEXT;
    if (is_default(handle) && !current()->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *stream = find_stream(handle, current());
    return *stream ? (*stream)->context->fault : CUDA_ERROR_INVALID_HANDLE;
}

/* Begin a call on a stream, which is `stream` from there on. */
#define ENTER_STREAM(function, needs, named, ...)                                      \
    ENTER(function, needs, .stream = (named), __VA_ARGS__);                            \
    struct stream *stream;                                                             \
    call.result = resolve(named, &stream);                                             \
    REQUIRE(!call.result, call.result)

/* The same, where the stream has to be one of the current context. */
#define ENTER_OWN_STREAM(function, needs, named, ...)                                  \
    ENTER_STREAM(function, (needs) | CONTEXT, named, __VA_ARGS__);                     \
    REQUIRE(stream->context == current(), CUDA_ERROR_INVALID_HANDLE)

static CUresult create_stream(struct call *call, Handle *created, int priority)
{
    if (call->value > STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *created = call->stream =
        add_stream(current(), ORDINARY, call->value, priority)->handle;
    return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(Handle *created, unsigned flags)
{
    ENTER(cuStreamCreate, CONTEXT, .value = flags);
    LEAVE(create_stream(&call, created, 0));
}

API CUresult cuStreamCreateWithPriority(Handle *created, unsigned flags, int priority)
{
    ENTER(cuStreamCreateWithPriority, CONTEXT, .value = flags);
    LEAVE(create_stream(&call, created, priority));
}

API CUresult cuStreamDestroy_v2(Handle handle)
{
    ENTER_STREAM(cuStreamDestroy, CONTEXT, handle, 0);
    REQUIRE(stream->kind == ORDINARY, CUDA_ERROR_INVALID_HANDLE);
    destroy_stream(stream);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamSynchronize(Handle handle)
{
    ENTER_STREAM(cuStreamSynchronize, CONTEXT, handle, 0);
    LEAVE(synchronize_stream(stream));
}

API CUresult cuStreamQuery(Handle handle)
{
    ENTER_STREAM(cuStreamQuery, CONTEXT, handle, 0);
    if (stream->capture)
        LEAVE(invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
    REQUIRE(is_pending(stream), CUDA_SUCCESS);
    let_time_pass(stream);
    LEAVE(CUDA_ERROR_NOT_READY);
}

API CUresult cuStreamWaitEvent(Handle handle, Handle waited, unsigned flags)
{
    ENTER_STREAM(cuStreamWaitEvent, CONTEXT, handle, .pointer = waited, .value = flags);
    const struct event *event = find_event(waited);
    REQUIRE(event, CUDA_ERROR_INVALID_HANDLE);
    LEAVE(wait_event(stream, event));
}

#define STREAM_GETTER(function, type, answer)                                          \
    API CUresult function(Handle handle, type *out)                                    \
    {                                                                                  \
        ENTER_STREAM(function, DRIVER, handle, 0);                                     \
        *out = (answer);                                                               \
        LEAVE(CUDA_SUCCESS);                                                           \
    }
STREAM_GETTER(cuStreamGetCtx, Handle, stream->context->handle)
STREAM_GETTER(cuStreamGetDevice, CUdevice, stream->context->device)
STREAM_GETTER(cuStreamGetFlags, unsigned, stream->flags)
STREAM_GETTER(cuStreamGetPriority, int, stream->priority)
STREAM_GETTER(cuStreamGetId, uint64_t, stream->handle)
STREAM_GETTER(cuStreamIsCapturing, int, capture_status(stream))

/* Events */

enum { EVENT_DISABLE_TIMING = 2 };

API CUresult cuEventCreate(Handle *created, unsigned flags)
{
    ENTER(cuEventCreate, CONTEXT, .value = flags);
    *created = call.pointer = add_event(current(), flags)->handle;
    LEAVE(CUDA_SUCCESS);
}

/* Begin a call on an event, which is `event` from there on. */
#define ENTER_EVENT(function, named)                                                   \
    ENTER(function, CONTEXT, .pointer = (named));                                      \
    struct event *event = find_event(named);                                           \
    REQUIRE(event, CUDA_ERROR_INVALID_HANDLE)

API CUresult cuEventDestroy_v2(Handle handle)
{
    ENTER_EVENT(cuEventDestroy, handle);
    destroy_event(event);
    LEAVE(CUDA_SUCCESS);
}

static CUresult record(const struct call *call, struct stream *stream)
{
    struct event *event = find_event(call->pointer);
    if (!event || event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    return record_event(event, stream);
}

API CUresult cuEventRecord(Handle recorded, Handle handle)
{
    ENTER_STREAM(cuEventRecord, CONTEXT, handle, .pointer = recorded);
    LEAVE(record(&call, stream));
}

API CUresult cuEventRecordWithFlags(Handle recorded, Handle handle, unsigned flags)
{
    ENTER_STREAM(cuEventRecordWithFlags, CONTEXT, handle, .pointer = recorded,
                 .value = flags);
    LEAVE(record(&call, stream));
}

API CUresult cuEventQuery(Handle handle)
{
    ENTER_EVENT(cuEventQuery, handle);
    REQUIRE(!event->capture, CUDA_ERROR_CAPTURED_EVENT);
    REQUIRE(!is_reached(event), CUDA_SUCCESS);
    approach(event);
    LEAVE(CUDA_ERROR_NOT_READY);
}

API CUresult cuEventSynchronize(Handle handle)
{
    ENTER_EVENT(cuEventSynchronize, handle);
    REQUIRE(!event->capture, CUDA_ERROR_CAPTURED_EVENT);
    LEAVE(synchronize_event(event));
}

static bool is_timed(const struct event *event)
{
    return event && event->stream && !event->capture &&
           !(event->flags & EVENT_DISABLE_TIMING);
}

/* The host time between the moments when the two were reached. */
API CUresult cuEventElapsedTime(float *milliseconds, Handle start, Handle end)
{
    ENTER(cuEventElapsedTime, CONTEXT, .pointer = end, .source = start);
    const struct event *from = find_event(start), *to = find_event(end);
    REQUIRE(is_timed(from) && is_timed(to), CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(is_reached(from) && is_reached(to), CUDA_ERROR_NOT_READY);
    *milliseconds = to->time - from->time;
    LEAVE(CUDA_SUCCESS);
}

/* Memory */

/* The allocation that a call may free; NULL when it may not. */
static struct allocation *to_free(uint64_t address, bool pinned)
{
    struct allocation *allocation = find_allocation(address);
    if (!allocation || allocation->address != address || allocation->freeing)
        return NULL;
    return (allocation->owner == PINNED) == pinned ? allocation : NULL;
}

static CUresult free_now(struct call *call, bool pinned)
{
    struct allocation *allocation = to_free(call->pointer, pinned);
    CUresult result = CUDA_SUCCESS;
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    call->bytes = allocation->bytes;
    if (allocation->owner != POOLED)
        result = synchronize_context(allocation->context);
    release(allocation);
    return result;
}

API CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    ENTER(cuMemFree, CONTEXT | SAFE_ONLY, .pointer = pointer);
    LEAVE(free_now(&call, false));
}

API CUresult cuMemFreeHost(void *memory)
{
    ENTER(cuMemFreeHost, CONTEXT | SAFE_ONLY, .pointer = (uintptr_t)memory);
    LEAVE(free_now(&call, true));
}

API CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    ENTER(cuMemAlloc, CONTEXT | SAFE_ONLY, .bytes = bytes);
    call.result = allocate(current(), PLAIN, NULL, bytes, &call.pointer);
    *pointer = call.pointer;
    return leave(&call);
}

API CUresult cuMemAllocHost_v2(uint64_t *pointer, size_t bytes)
{
    ENTER(cuMemAllocHost, CONTEXT | SAFE_ONLY, .bytes = bytes);
    call.result = allocate(current(), PINNED, NULL, bytes, &call.pointer);
    *pointer = call.pointer;
    return leave(&call);
}

API CUresult cuMemHostAlloc(uint64_t *pointer, size_t bytes, unsigned flags)
{
    ENTER(cuMemHostAlloc, CONTEXT | SAFE_ONLY, .bytes = bytes, .value = flags);
    call.result = allocate(current(), PINNED, NULL, bytes, &call.pointer);
    *pointer = call.pointer;
    return leave(&call);
}

API CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    ENTER(cuMemGetInfo, CONTEXT, 0);
    const struct device *device = &sim.devices[current()->device];
    *available = device->memory - device->reserved;
    *total = device->memory;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes,
                                     CUdeviceptr pointer)
{
    ENTER(cuMemGetAddressRange, CONTEXT, .pointer = pointer);
    const struct allocation *allocation = find_allocation(pointer);
    REQUIRE(allocation && allocation->owner != PINNED, CUDA_ERROR_NOT_FOUND);
    if (base)
        *base = allocation->address;
    if (bytes)
        *bytes = allocation->bytes;
    LEAVE(CUDA_SUCCESS);
}

/* Whether new work of the current context may use a range: of device memory, or of host
 * memory, of which only what is pinned is known. */
static bool is_usable(uint64_t address, uint64_t bytes)
{
    const struct allocation *allocation = find_allocation(address);
    if (!allocation)
        return address && !is_device_address(address);
    return !allocation->freeing && is_accessible(current(), address, bytes);
}

static bool is_pinned(uint64_t address)
{
    const struct allocation *allocation = find_allocation(address);
    return allocation && allocation->owner == PINNED;
}

static uint64_t times(uint64_t count, unsigned width)
{
    return count > UINT64_MAX / width ? UINT64_MAX : count * width;
}

/* A pattern of `width` bytes, as four. */
static uint32_t widened(uint32_t value, unsigned width)
{
    return width == 1 ? value * 0x01010101u : width == 2 ? value * 0x00010001u : value;
}

static CUresult set(struct call *call, struct stream *stream, unsigned width)
{
    if (!call->bytes)
        return CUDA_SUCCESS;
    if (call->pointer % width || !is_usable(call->pointer, call->bytes) ||
        !find_allocation(call->pointer))
        return CUDA_ERROR_INVALID_VALUE;
    return enqueue(stream, (struct work){.kind = FILL,
                                         .pointer = call->pointer,
                                         .bytes = call->bytes,
                                         .pattern = widened(call->value, width)});
}

#define MEMSET(name, exported, type)                                                   \
    API CUresult exported(CUdeviceptr pointer, type value, size_t count)               \
    {                                                                                  \
        ENTER_OWN_STREAM(name, CONTEXT, 0, .pointer = pointer, .value = value,         \
                         .bytes = times(count, sizeof value));                         \
        call.result = set(&call, stream, sizeof value);                                \
        if (!call.result && is_pinned(pointer))                                        \
            call.result = synchronize_stream(stream);                                  \
        return leave(&call);                                                           \
    }                                                                                  \
    API CUresult name##Async(CUdeviceptr pointer, type value, size_t count,            \
                             Handle handle)                                            \
    {                                                                                  \
        ENTER_OWN_STREAM(name##Async, CONTEXT, handle, .pointer = pointer,             \
                         .value = value, .bytes = times(count, sizeof value));         \
        LEAVE(set(&call, stream, sizeof value));                                       \
    }
MEMSET(cuMemsetD8, cuMemsetD8_v2, uint8_t)
MEMSET(cuMemsetD16, cuMemsetD16_v2, uint16_t)
MEMSET(cuMemsetD32, cuMemsetD32_v2, uint32_t)

static bool is_pageable(uint64_t address)
{
    return !is_device_address(address) && !is_pinned(address);
}

static void *staged(uint64_t address, uint64_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    return memcpy(copy, (const void *)(uintptr_t)address, bytes);
}

static CUresult queue_copy(const struct call *call, struct stream *stream)
{
    struct work work = {.kind = COPY,
                        .pointer = call->pointer,
                        .source = call->source,
                        .bytes = call->bytes};
    if (is_pageable(call->source) && !stream->capture)
        work.staged = staged(call->source, call->bytes);
    return enqueue(stream, work);
}

static CUresult copy_later(const struct call *call, struct stream *stream)
{
    CUresult result = queue_copy(call, stream);
    if (!result && is_pageable(call->pointer) && !stream->capture)
        result = synchronize_stream(stream);
    return result;
}

static CUresult copy_now(const struct call *call, struct stream *stream)
{
    bool to_device = is_device_address(call->pointer);
    if (to_device && is_device_address(call->source))
        return queue_copy(call, stream);
    CUresult result = synchronize_stream(stream);
    if (!result)
        result = refuse_unsafe();
    if (!result)
        result = queue_copy(call, stream);
    if (!result && !(to_device && is_pageable(call->source)))
        result = synchronize_stream(stream);
    return result;
}

static bool is_valid_copy(const struct call *call, bool to_device, bool from_device)
{
    return is_device_address(call->pointer) == to_device &&
           is_device_address(call->source) == from_device &&
           is_usable(call->pointer, call->bytes) &&
           is_usable(call->source, call->bytes);
}

#define COPY_BODY(how, to_device, from_device)                                         \
    REQUIRE(bytes, CUDA_SUCCESS);                                                      \
    REQUIRE(is_valid_copy(&call, to_device, from_device), CUDA_ERROR_INVALID_VALUE);   \
    LEAVE(how(&call, stream))

#define COPY(name, version, to_device, from_device)                                    \
    API CUresult name##version(uint64_t destination, uint64_t source, size_t bytes)    \
    {                                                                                  \
        ENTER_OWN_STREAM(name, CONTEXT, 0, .pointer = destination, .source = source,   \
                         .bytes = bytes);                                              \
        COPY_BODY(copy_now, to_device, from_device);                                   \
    }                                                                                  \
    API CUresult name##Async##version(uint64_t destination, uint64_t source,           \
                                      size_t bytes, Handle handle)                     \
    {                                                                                  \
        ENTER_OWN_STREAM(name##Async, CONTEXT, handle, .pointer = destination,         \
                         .source = source, .bytes = bytes);                            \
        COPY_BODY(copy_later, to_device, from_device);                                 \
    }
COPY(cuMemcpyHtoD, _v2, true, false)
COPY(cuMemcpyDtoH, _v2, false, true)
COPY(cuMemcpyDtoD, _v2, true, true)
COPY(cuMemcpy, , is_device_address(destination), is_device_address(source))

/* Pointer attributes */

enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE_POINTER = 3,
    POINTER_HOST_POINTER = 4,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_DEVICE_ORDINAL = 9,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    MEMORY_TYPE_HOST = 1,
    MEMORY_TYPE_DEVICE = 2,
    NO_DEVICE = -2,
};

/* The size of an attribute, 0 for an unknown one, and its value; an address that lies
 * in no allocation has one as well. */
static size_t pointer_attribute(const struct allocation *allocation, uint64_t address,
                                int attribute, uint64_t *value)
{
    static struct context no_context = {.device = NO_DEVICE};
    static const struct allocation nothing = {.context = &no_context};
    const struct allocation *found = allocation ? allocation : &nothing;
    bool pinned = found->owner == PINNED;
#define ANSWER(type, answer)                                                           \
    do {                                                                               \
        *value = (answer);                                                             \
        return sizeof(type);                                                           \
    } while (0)

    switch (attribute) {
    case POINTER_CONTEXT:
        ANSWER(Handle, found->context->handle);
    case POINTER_MEMORY_TYPE:
        ANSWER(int, pinned ? MEMORY_TYPE_HOST : allocation ? MEMORY_TYPE_DEVICE : 0);
    case POINTER_DEVICE_POINTER:
        ANSWER(CUdeviceptr, allocation ? address : 0);
    case POINTER_HOST_POINTER:
        ANSWER(void *, pinned ? address : 0);
    case POINTER_BUFFER_ID:
        ANSWER(uint64_t, found->id);
    case POINTER_IS_MANAGED:
        ANSWER(int, 0);
    case POINTER_DEVICE_ORDINAL:
        ANSWER(int, found->context->device);
    case POINTER_RANGE_START:
        ANSWER(CUdeviceptr, found->address);
    case POINTER_RANGE_SIZE:
        ANSWER(size_t, found->bytes);
    }
    return 0;
}

API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr pointer)
{
    ENTER(cuPointerGetAttribute, CONTEXT, .pointer = pointer, .value = attribute);
    uint64_t value;
    const struct allocation *allocation = find_allocation(pointer);
    size_t size = pointer_attribute(allocation, pointer, attribute, &value);
    REQUIRE(allocation && size, CUDA_ERROR_INVALID_VALUE);
    memcpy(data, &value, size);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuPointerGetAttributes(unsigned count, const int *attributes, void **data,
                                    CUdeviceptr pointer)
{
    ENTER(cuPointerGetAttributes, CONTEXT, .pointer = pointer, .value = count);
    const struct allocation *allocation = find_allocation(pointer);
    for (unsigned i = 0; i < count; i++) {
        uint64_t value;
        size_t size = pointer_attribute(allocation, pointer, attributes[i], &value);
        REQUIRE(size, CUDA_ERROR_INVALID_VALUE);
        memcpy(data[i], &value, size);
    }
    LEAVE(CUDA_SUCCESS);
}

/* Stream-ordered memory and pools */

static struct pool *find_pool(Handle handle)
{
    for (int i = 0; i < sim.device_count; i++)
        if (sim.devices[i].pool.handle == handle)
            return &sim.devices[i].pool;
    return NULL;
}

/* What is queued on the stream may free memory, and comes first. */
static CUresult allocate_ordered(struct call *call, struct stream *stream,
                                 struct pool *pool)
{
    if (stream->capture)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result =
        allocate(stream->context, POOLED, pool, call->bytes, &call->pointer);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !synchronize_stream(stream))
        result = allocate(stream->context, POOLED, pool, call->bytes, &call->pointer);
    return result;
}

API CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, Handle handle)
{
    ENTER_STREAM(cuMemAllocAsync, DRIVER, handle, .bytes = bytes);
    struct pool *pool = &sim.devices[stream->context->device].pool;
    call.result = allocate_ordered(&call, stream, pool);
    *pointer = call.pointer;
    return leave(&call);
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, Handle from,
                                     Handle handle)
{
    ENTER_STREAM(cuMemAllocFromPoolAsync, DRIVER, handle, .bytes = bytes,
                 .value = from);
    struct pool *pool = find_pool(from);
    REQUIRE(pool && pool->device == stream->context->device, CUDA_ERROR_INVALID_VALUE);
    call.result = allocate_ordered(&call, stream, pool);
    *pointer = call.pointer;
    return leave(&call);
}

API CUresult cuMemFreeAsync(CUdeviceptr pointer, Handle handle)
{
    ENTER_STREAM(cuMemFreeAsync, DRIVER, handle, .pointer = pointer);
    struct allocation *allocation = to_free(pointer, false);
    REQUIRE(allocation && allocation->owner == POOLED, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!stream->capture, CUDA_ERROR_NOT_SUPPORTED);
    call.bytes = allocation->bytes;
    call.result = enqueue(stream, (struct work){.kind = FREE, .pointer = pointer});
    allocation->freeing = !call.result;
    return leave(&call);
}

enum {
    POOL_REUSE_FIRST = 1, /* three switches, all on */
    POOL_REUSE_LAST = 3,
    POOL_RELEASE_THRESHOLD = 4,
    POOL_RESERVED_CURRENT = 5,
    POOL_RESERVED_HIGH = 6,
    POOL_USED_CURRENT = 7,
    POOL_USED_HIGH = 8,
};

/* A pool keeps no memory that is not in use. */
API CUresult cuMemPoolGetAttribute(Handle handle, int attribute, void *value)
{
    ENTER(cuMemPoolGetAttribute, DRIVER, .pointer = handle, .value = attribute);
    const struct pool *pool = find_pool(handle);
    REQUIRE(pool && attribute >= POOL_REUSE_FIRST && attribute <= POOL_USED_HIGH,
            CUDA_ERROR_INVALID_VALUE);
    if (attribute <= POOL_REUSE_LAST)
        *(int *)value = 1;
    else if (attribute == POOL_RELEASE_THRESHOLD)
        *(uint64_t *)value = pool->threshold;
    else if (attribute == POOL_RESERVED_CURRENT || attribute == POOL_USED_CURRENT)
        *(uint64_t *)value = pool->used;
    else
        *(uint64_t *)value = pool->high;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuMemPoolSetAttribute(Handle handle, int attribute, const void *value)
{
    ENTER(cuMemPoolSetAttribute, DRIVER, .pointer = handle, .value = attribute);
    struct pool *pool = find_pool(handle);
    REQUIRE(pool && attribute >= POOL_REUSE_FIRST && attribute <= POOL_USED_HIGH,
            CUDA_ERROR_INVALID_VALUE);
    if (attribute == POOL_RELEASE_THRESHOLD)
        pool->threshold = *(const uint64_t *)value;
    else if (attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH)
        pool->high = pool->used;
    LEAVE(CUDA_SUCCESS);
}

/* Captures and graphs */

API CUresult cuStreamBeginCapture_v2(Handle handle, int mode)
{
    ENTER_STREAM(cuStreamBeginCapture, CONTEXT, handle, .value = mode);
    LEAVE(begin_capture(stream, mode));
}

API CUresult cuStreamEndCapture(Handle handle, Handle *graph)
{
    ENTER_STREAM(cuStreamEndCapture, CONTEXT, handle, 0);
    call.result = end_capture(stream, graph);
    call.pointer = *graph;
    return leave(&call);
}

API CUresult cuStreamGetCaptureInfo_v3(Handle handle, int *status, uint64_t *id,
                                       Handle *graph, const Handle **dependencies,
                                       const void **edges, size_t *count)
{
    ENTER_STREAM(cuStreamGetCaptureInfo, CONTEXT, handle, 0);
    const struct capture *capture = stream->capture;
    const struct work *last = capture ? capture->graph->last : NULL;
    *status = capture_status(stream);
    if (id)
        *id = capture ? capture->id : 0;
    if (graph)
        *graph = capture ? capture->graph->handle : 0;
    if (dependencies)
        *dependencies = last ? &last->node : NULL;
    if (edges)
        *edges = NULL;
    if (count)
        *count = last != NULL;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuStreamGetCaptureInfo_v2(Handle handle, int *status, uint64_t *id,
                                       Handle *graph, const Handle **dependencies,
                                       size_t *count)
{
    return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, NULL,
                                     count);
}

API CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode, DRIVER, .value = *mode);
    REQUIRE(*mode >= GLOBAL && *mode <= RELAXED, CUDA_ERROR_INVALID_VALUE);
    int before = this_thread()->capture_mode;
    this_thread()->capture_mode = *mode;
    *mode = before;
    LEAVE(CUDA_SUCCESS);
}

/* Begin a call on a graph, which is `graph` from there on. */
#define ENTER_GRAPH(function, named, executable)                                       \
    ENTER(function, DRIVER, .pointer = (named));                                       \
    struct graph *graph = find_graph(named, executable);                               \
    REQUIRE(graph, CUDA_ERROR_INVALID_VALUE)

API CUresult cuGraphDestroy(Handle handle)
{
    ENTER_GRAPH(cuGraphDestroy, handle, false);
    destroy_graph(graph);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuGraphExecDestroy(Handle handle)
{
    ENTER_GRAPH(cuGraphExecDestroy, handle, true);
    destroy_graph(graph);
    LEAVE(CUDA_SUCCESS);
}

/* Without `nodes`, only count them; places that are left over are set to 0. */
API CUresult cuGraphGetNodes(Handle handle, Handle *nodes, size_t *count)
{
    ENTER_GRAPH(cuGraphGetNodes, handle, false);
    const struct work *node = graph->first;
    for (size_t i = 0; nodes && i < *count; i++) {
        nodes[i] = node ? node->node : 0;
        node = node ? node->next : NULL;
    }
    if (!nodes || *count > graph->count)
        *count = graph->count;
    LEAVE(CUDA_SUCCESS);
}

enum { NODE_MEMCPY = 1, NODE_MEMSET = 2 };

API CUresult cuGraphNodeGetType(Handle handle, int *type)
{
    ENTER(cuGraphNodeGetType, DRIVER, .pointer = handle);
    const struct work *node = find_node(handle);
    REQUIRE(node, CUDA_ERROR_INVALID_VALUE);
    *type = node->kind == COPY ? NODE_MEMCPY : NODE_MEMSET;
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuGraphInstantiateWithFlags(Handle *executable, Handle handle,
                                         unsigned long long flags)
{
    ENTER_GRAPH(cuGraphInstantiateWithFlags, handle, false);
    call.value = flags;
    *executable = instantiate(graph);
    LEAVE(CUDA_SUCCESS);
}

API CUresult cuGraphLaunch(Handle executable, Handle handle)
{
    ENTER_STREAM(cuGraphLaunch, CONTEXT, handle, .pointer = executable);
    const struct graph *graph = find_graph(executable, true);
    REQUIRE(graph, CUDA_ERROR_INVALID_VALUE);
    LEAVE(launch(graph, stream));
}

/* Finding functions */

/* A function that is not implemented has a place in a table of stubs, each of which
 * knows its place and so its name. */
enum { MAX_STUBS = 1024 };

static char stub_names[MAX_STUBS][64];
static int stub_count;

static CUresult not_implemented(int place)
{
    struct call call = {.name = stub_names[place]};
    enter(&call, NOTHING);
    LEAVE(call.result ? call.result : CUDA_ERROR_NOT_SUPPORTED);
}

#define TIMES_16(X, n)                                                                 \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)                    \
    X(n##8) X(n##9) X(n##A) X(n##B) X(n##C) X(n##D) X(n##E) X(n##F)
#define TIMES_256(X, n)                                                                \
    TIMES_16(X, n##0) TIMES_16(X, n##1) TIMES_16(X, n##2) TIMES_16(X, n##3)            \
    TIMES_16(X, n##4) TIMES_16(X, n##5) TIMES_16(X, n##6) TIMES_16(X, n##7)            \
    TIMES_16(X, n##8) TIMES_16(X, n##9) TIMES_16(X, n##A) TIMES_16(X, n##B)            \
    TIMES_16(X, n##C) TIMES_16(X, n##D) TIMES_16(X, n##E) TIMES_16(X, n##F)
#define EVERY_STUB(X)                                                                  \
    TIMES_256(X, 0x0) TIMES_256(X, 0x1) TIMES_256(X, 0x2) TIMES_256(X, 0x3)
#define AS_FUNCTION(place)                                                             \
    static CUresult stub_##place(void)                                                 \
    {                                                                                  \
        return not_implemented(place);                                                 \
    }
#define AS_ENTRY(place) stub_##place,
EVERY_STUB(AS_FUNCTION)
static CUresult (*const STUBS[MAX_STUBS])(void) = {EVERY_STUB(AS_ENTRY)};

static void *stub(const char *name)
{
    int place = 0;
    while (place < stub_count && strcmp(stub_names[place], name))
        place++;
    if (place == MAX_STUBS || strlen(name) >= sizeof stub_names[place])
        return NULL;
    if (place == stub_count)
        strcpy(stub_names[stub_count++], name);
    return (void *)STUBS[place];
}

API CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                 uint64_t flags, int *status);

/* Every name with the CUDA version from which on it means a function. From a later one
 * on it may mean another, which is implemented or not (NO). */
#define V1(name, since) {#name, since, (void *)name}
#define V2(name, since) {#name, since, (void *)name##_v2}
#define V3(name, since) {#name, since, (void *)name##_v3}
#define V4(name, since) {#name, since, (void *)name##_v4}
#define NO(name, since) {#name, since, NULL}
static const struct {
    const char *name;
    int since;
    void *function;
} FUNCTIONS[] = {
    V1(cuGetErrorName, 6000), V1(cuGetErrorString, 6000), V2(cuGetProcAddress, 12000),
    V1(cuInit, 2000), V1(cuDriverGetVersion, 2020),

    V1(cuDeviceGetCount, 2000), V1(cuDeviceGet, 2000), V1(cuDeviceGetName, 2000),
    V1(cuDeviceGetUuid, 9020), V2(cuDeviceTotalMem, 3020),
    V1(cuDeviceGetAttribute, 2000), V1(cuDeviceGetDefaultMemPool, 11020),
    V1(cuDeviceGetMemPool, 11020),

    V1(cuDevicePrimaryCtxRetain, 7000), V2(cuDevicePrimaryCtxRelease, 11000),
    V2(cuDevicePrimaryCtxReset, 11000), V2(cuDevicePrimaryCtxSetFlags, 11000),
    V1(cuDevicePrimaryCtxGetState, 7000), V2(cuCtxCreate, 3020),
    NO(cuCtxCreate, 11040), V4(cuCtxCreate, 12050), V2(cuCtxDestroy, 4000),
    V1(cuCtxGetCurrent, 4000), V1(cuCtxSetCurrent, 4000), V2(cuCtxPushCurrent, 4000),
    V2(cuCtxPopCurrent, 4000), V1(cuCtxGetDevice, 2000), NO(cuCtxGetDevice, 13000),
    V1(cuCtxGetFlags, 7000), V1(cuCtxGetId, 12000), V1(cuCtxSynchronize, 2000),
    NO(cuCtxSynchronize, 13000), V1(cuCtxGetStreamPriorityRange, 5050),

    V1(cuStreamCreate, 2000), V1(cuStreamCreateWithPriority, 5050),
    V2(cuStreamDestroy, 4000), V1(cuStreamSynchronize, 2000), V1(cuStreamQuery, 2000),
    V1(cuStreamWaitEvent, 3020), V1(cuStreamGetCtx, 9020), NO(cuStreamGetCtx, 12050),
    V1(cuStreamGetDevice, 12080), V1(cuStreamGetFlags, 5050),
    V1(cuStreamGetPriority, 5050), V1(cuStreamGetId, 12000),

    V1(cuEventCreate, 2000), V2(cuEventDestroy, 4000), V1(cuEventRecord, 2000),
    V1(cuEventRecordWithFlags, 11010), V1(cuEventQuery, 2000),
    V1(cuEventSynchronize, 2000), V1(cuEventElapsedTime, 2000),

    V2(cuMemAlloc, 3020), V2(cuMemFree, 3020), V2(cuMemAllocHost, 3020),
    V1(cuMemHostAlloc, 2020), V1(cuMemFreeHost, 2000), V2(cuMemGetInfo, 3020),
    V2(cuMemGetAddressRange, 3020), V1(cuPointerGetAttribute, 4000),
    V1(cuPointerGetAttributes, 7000), V1(cuMemAllocAsync, 11020),
    V1(cuMemAllocFromPoolAsync, 11020), V1(cuMemFreeAsync, 11020),
    V1(cuMemPoolGetAttribute, 11020), V1(cuMemPoolSetAttribute, 11020),

    V2(cuMemsetD8, 3020), V2(cuMemsetD16, 3020), V2(cuMemsetD32, 3020),
    V1(cuMemsetD8Async, 3020), V1(cuMemsetD16Async, 3020), V1(cuMemsetD32Async, 3020),
    V2(cuMemcpyHtoD, 3020), V2(cuMemcpyDtoH, 3020), V2(cuMemcpyDtoD, 3020),
    V2(cuMemcpyHtoDAsync, 3020), V2(cuMemcpyDtoHAsync, 3020),
    V2(cuMemcpyDtoDAsync, 3020), V1(cuMemcpy, 4000), V1(cuMemcpyAsync, 4000),

    V2(cuStreamBeginCapture, 10010), V1(cuStreamEndCapture, 10000),
    V1(cuStreamIsCapturing, 10000), V2(cuStreamGetCaptureInfo, 11030),
    V3(cuStreamGetCaptureInfo, 12030), V1(cuThreadExchangeStreamCaptureMode, 10010),
    V1(cuGraphDestroy, 10000), V1(cuGraphExecDestroy, 10000),
    V1(cuGraphGetNodes, 10000), V1(cuGraphNodeGetType, 10000),
    V1(cuGraphInstantiateWithFlags, 11040), V1(cuGraphLaunch, 10000),
};

enum { PER_THREAD_DEFAULT_STREAM = 2 };

/* The only function that is not recorded. */
API CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                 uint64_t flags, int *status)
{
    lock();
    *function = NULL;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
        if (!strcmp(FUNCTIONS[i].name, name) && FUNCTIONS[i].since <= version)
            *function = FUNCTIONS[i].function;
    if (!*function)
        *function = stub(name);
    if (flags & PER_THREAD_DEFAULT_STREAM)
        sim.null_stream = STREAM_PER_THREAD;
    unlock();
    if (status)
        *status = !*function;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* For the tests */

static void reset_device(int ordinal, uint64_t memory)
{
    struct device *device = &sim.devices[ordinal];
    device->memory = memory;
    device->primary.device = ordinal;
    device->primary.primary = true;
    device->primary.retained = 0;
    device->primary.flags = 0;
    if (!device->primary.handle)
        device->primary.handle = new_handle();
    if (!device->pool.handle)
        device->pool.handle = new_handle();
    device->pool = (struct pool){.handle = device->pool.handle, .device = ordinal};
    memcpy(device->attributes, ATTRIBUTES, sizeof ATTRIBUTES);
}

/* Start anew, with devices of so many bytes each. No handle of before is valid, save
 * those of primary contexts and default pools; no thread has a current context. That
 * the driver is initialised, and what stream 0 is, stays. */
API int sim_reset(int devices, const uint64_t *memory)
{
    if (devices < 0 || devices > MAX_DEVICES)
        return CUDA_ERROR_INVALID_VALUE;
    lock();
    drop_streams_of(NULL);
    drop_graphs();
    release_all_of(NULL);
    while (sim.contexts) {
        struct context *next = sim.contexts->next;
        free(sim.contexts);
        sim.contexts = next;
    }
    for (int i = 0; i < MAX_DEVICES; i++) {
        destroy_context(&sim.devices[i].primary);
        reset_device(i, i < devices ? memory[i] : 0);
    }
    sim.device_count = devices;
    sim.resets++;
    unlock();
    sim_clear();
    sim_mend();
    return CUDA_SUCCESS;
}

/* Change what cuDeviceGetAttribute answers, until the next reset. */
API int sim_set_attribute(int device, int attribute, int value)
{
    if (device < 0 || device >= MAX_DEVICES || attribute <= 0 ||
        attribute >= MAX_ATTRIBUTE)
        return CUDA_ERROR_INVALID_VALUE;
    lock();
    sim.devices[device].attributes[attribute] = value;
    unlock();
    return CUDA_SUCCESS;
}

/* What exists: streams, events, graphs and executable graphs, and how often a primary
 * context is retained or another one was created and not destroyed. */
API void sim_objects(struct objects *objects)
{
    lock();
    *objects = (struct objects){0};
    count_objects(objects);
    for (int i = 0; i < MAX_DEVICES; i++)
        objects->contexts += sim.devices[i].primary.retained;
    for (struct context *context = sim.contexts; context; context = context->next)
        objects->contexts += context->alive;
    unlock();
}

/* A program that loads the library and knows nothing of sim_reset finds one device. */
__attribute__((constructor)) static void start(void)
{
    const uint64_t memory = UINT64_C(80) << 30;
    sim_reset(1, &memory);
}
