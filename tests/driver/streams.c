/* Queued work and its order, events, captures and graphs.
 *
 * A stream is a queue. Its work is done when something waits for it: a call that
 * synchronises, or work of another stream that has to come after it. Until then memory
 * is as it was, which is what a device that is late would show. */

#include "simulation.h"

#include <stdlib.h>
#include <time.h>

static struct stream *streams;
static struct event *events;
static struct graph *graphs;
static struct capture *captures;
static uint64_t last_capture;

static void drain(struct stream *stream, uint64_t position);
static void forget_capture(struct stream *stream);

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

#define NEW(type) ((type *)must(calloc(1, sizeof(type))))

/* Take an item out of a linked list. */
#define UNLINK(list, item)                                                             \
    do {                                                                               \
        __typeof__(item) *link = &(list);                                              \
        while (*link != (item))                                                        \
            link = &(*link)->next;                                                     \
        *link = (item)->next;                                                          \
    } while (0)

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static struct work *append(struct work **first, struct work **last, struct work work)
{
    struct work *item = NEW(struct work);
    *item = work;
    item->next = NULL;
    if (*first)
        (*last)->next = item;
    else
        *first = item;
    *last = item;
    return item;
}

static void free_work(struct work *work)
{
    while (work) {
        struct work *next = work->next;
        free(work->staged);
        free(work);
        work = next;
    }
}

/* Streams */

struct stream *add_stream(struct context *context, enum stream_kind kind,
                          unsigned flags, int priority)
{
    struct stream *stream = NEW(struct stream);
    stream->handle = new_handle();
    stream->context = context;
    stream->kind = kind;
    stream->blocking = kind != LEGACY && !(flags & STREAM_NON_BLOCKING);
    stream->flags = flags;
    stream->priority = priority;
    stream->thread = kind == PER_THREAD ? this_thread()->id : 0;
    stream->next = streams;
    streams = stream;
    return stream;
}

/* A stream by its handle, also one that is destroyed and still has work to do. */
static struct stream *any_stream(Handle handle)
{
    struct stream *stream = streams;
    while (stream && stream->handle != handle)
        stream = stream->next;
    return stream;
}

static struct stream *legacy_stream(struct context *context)
{
    if (!context->legacy)
        context->legacy = add_stream(context, LEGACY, 0, 0);
    return context->legacy;
}

static struct stream *per_thread_stream(struct context *context)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->context == context && stream->thread == this_thread()->id)
            return stream;
    return add_stream(context, PER_THREAD, 0, 0);
}

struct stream *find_stream(Handle handle, struct context *context)
{
    if (!handle)
        handle = sim.null_stream;
    if (handle == STREAM_LEGACY)
        return legacy_stream(context);
    if (handle == STREAM_PER_THREAD)
        return per_thread_stream(context);
    struct stream *stream = any_stream(handle);
    return stream && stream->kind == ORDINARY && !stream->destroyed ? stream : NULL;
}

static void bury(struct stream *stream)
{
    UNLINK(streams, stream);
    if (stream->context->legacy == stream)
        stream->context->legacy = NULL;
    free_work(stream->first);
    free(stream);
}

static void bury_the_dead(void)
{
    for (struct stream *next, *stream = streams; stream; stream = next) {
        next = stream->next;
        if (stream->destroyed && !stream->first)
            bury(stream);
    }
}

void destroy_stream(struct stream *stream)
{
    forget_capture(stream);
    stream->destroyed = true;
    bury_the_dead();
}

/* Work */

static bool may_touch(const struct context *context, uint64_t address, uint64_t bytes)
{
    return !is_device_address(address) || is_accessible(context, address, bytes);
}

static void perform(struct context *context, const struct work *work)
{
    uint64_t source = work->staged ? (uintptr_t)work->staged : work->source;
    struct stream *other;
    struct event *event;
    struct allocation *allocation;

    switch (work->kind) {
    case FILL:
        if (may_touch(context, work->pointer, work->bytes))
            fill_memory(work->pointer, work->bytes, work->pattern);
        else
            context->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        break;
    case COPY:
        if (may_touch(context, work->pointer, work->bytes) &&
            may_touch(context, source, work->bytes))
            copy_memory(work->pointer, source, work->bytes);
        else
            context->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        break;
    case FREE:
        allocation = find_allocation(work->pointer);
        if (allocation)
            release(allocation);
        break;
    case WAIT:
        other = any_stream(work->other);
        if (other)
            drain(other, work->position);
        break;
    case MARK:
        event = find_event(work->other);
        if (event)
            event->time = now();
        break;
    }
}

/* Do a stream's work up to a position. Work waits only for work that was queued before
 * it, so this comes to an end. */
static void drain(struct stream *stream, uint64_t position)
{
    while (stream->first && stream->done < position) {
        struct work *work = stream->first;
        stream->first = work->next;
        stream->done++;
        work->next = NULL;
        perform(stream->context, work);
        free_work(work);
    }
}

static void push(struct stream *stream, struct work work)
{
    append(&stream->first, &stream->last, work);
    stream->enqueued++;
}

static void push_wait(struct stream *stream, const struct stream *other)
{
    if (other && other->first)
        push(stream, (struct work){.kind = WAIT,
                                   .other = other->handle,
                                   .position = other->enqueued});
}

/* The legacy stream comes after all that is queued on the context's blocking streams,
 * and they after it. */
static void push_dependencies(struct stream *stream)
{
    if (stream->blocking)
        push_wait(stream, stream->context->legacy);
    if (stream->kind != LEGACY)
        return;
    for (struct stream *other = streams; other; other = other->next)
        if (other->blocking && other->context == stream->context)
            push_wait(stream, other);
}

static CUresult admit(struct stream *stream)
{
    if (stream->kind == LEGACY)
        return refuse_implicit(stream->context);
    if (stream->capture && stream->capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return CUDA_SUCCESS;
}

static void add_node(struct graph *graph, struct work work)
{
    work.node = new_handle();
    append(&graph->first, &graph->last, work);
    graph->count++;
}

/* Note that what went into the capture through this stream is not waited for yet. */
static void take_part(struct stream *stream)
{
    stream->captured = stream->capture->graph->count;
    stream->joined = stream->capture->origin == stream;
}

CUresult enqueue(struct stream *stream, struct work work)
{
    CUresult refused = admit(stream);
    if (refused) {
        free(work.staged);
        return refused;
    }
    if (stream->capture) {
        add_node(stream->capture->graph, work);
        take_part(stream);
    } else {
        push_dependencies(stream);
        push(stream, work);
    }
    return CUDA_SUCCESS;
}

/* A stream that is not done, of those that synchronising `stream` waits for. */
static struct stream *unfinished(struct stream *stream)
{
    if (stream->first)
        return stream;
    if (stream->kind != LEGACY)
        return NULL;
    for (struct stream *other = streams; other; other = other->next)
        if (other->blocking && other->context == stream->context && other->first)
            return other;
    return NULL;
}

bool is_pending(struct stream *stream)
{
    return unfinished(stream);
}

void let_time_pass(struct stream *stream)
{
    struct stream *next = unfinished(stream);
    if (next)
        drain(next, next->done + 1);
    bury_the_dead();
}

CUresult synchronize_stream(struct stream *stream)
{
    CUresult refused = admit(stream);
    if (!refused && stream->capture)
        refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (refused)
        return invalidate(stream->capture, refused);
    for (struct stream *next; (next = unfinished(stream));)
        drain(next, next->enqueued);
    bury_the_dead();
    return stream->context->fault;
}

CUresult synchronize_context(struct context *context)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->context == context)
            drain(stream, stream->enqueued);
    bury_the_dead();
    return context->fault;
}

/* Events */

struct event *add_event(struct context *context, unsigned flags)
{
    struct event *event = NEW(struct event);
    event->handle = new_handle();
    event->context = context;
    event->flags = flags;
    event->next = events;
    events = event;
    return event;
}

struct event *find_event(Handle handle)
{
    struct event *event = events;
    while (event && event->handle != handle)
        event = event->next;
    return event;
}

void destroy_event(struct event *event)
{
    UNLINK(events, event);
    free(event);
}

CUresult record_event(struct event *event, struct stream *stream)
{
    CUresult refused = admit(stream);
    if (refused)
        return refused;
    event->stream = stream->handle;
    event->capture = stream->capture ? stream->capture->id : 0;
    if (stream->capture) {
        event->position = stream->capture->graph->count;
        return CUDA_SUCCESS;
    }
    enqueue(stream, (struct work){.kind = MARK, .other = event->handle});
    event->position = stream->enqueued;
    return CUDA_SUCCESS;
}

static struct capture *find_capture(uint64_t id)
{
    struct capture *capture = captures;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

/* Wait in a capture for an event that was recorded in one. */
static CUresult wait_captured(struct stream *stream, const struct event *event)
{
    struct capture *capture = find_capture(event->capture);
    if (!capture)
        return invalidate(stream->capture, CUDA_ERROR_CAPTURED_EVENT);
    if (capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->capture && stream->capture != capture) {
        invalidate(capture, 0);
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    struct stream *source = any_stream(event->stream);
    if (source && source->capture == capture && source->captured <= event->position)
        source->joined = true;
    stream->capture = capture;
    take_part(stream);
    return CUDA_SUCCESS;
}

CUresult wait_event(struct stream *stream, const struct event *event)
{
    CUresult refused = admit(stream);
    if (refused)
        return refused;
    if (event->capture)
        return wait_captured(stream, event);
    if (!event->stream)
        return CUDA_SUCCESS;
    if (stream->capture)
        return invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    return enqueue(stream, (struct work){.kind = WAIT,
                                         .other = event->stream,
                                         .position = event->position});
}

bool is_reached(const struct event *event)
{
    const struct stream *stream = any_stream(event->stream);
    return !stream || stream->done >= event->position;
}

CUresult synchronize_event(const struct event *event)
{
    struct stream *stream = any_stream(event->stream);
    if (stream)
        drain(stream, event->position);
    bury_the_dead();
    return event->context->fault;
}

void approach(const struct event *event)
{
    struct stream *stream = any_stream(event->stream);
    if (stream)
        drain(stream, stream->done + 1);
    bury_the_dead();
}

/* Captures */

CUresult invalidate(struct capture *capture, CUresult status)
{
    if (capture)
        capture->invalidated = true;
    return status;
}

CUresult begin_capture(struct stream *stream, int mode)
{
    if (stream->kind == LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (mode < GLOBAL || mode > RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *capture = NEW(struct capture);
    capture->id = ++last_capture;
    capture->mode = mode;
    capture->thread = this_thread()->id;
    capture->origin = stream;
    capture->graph = add_graph(false);
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    take_part(stream);
    return CUDA_SUCCESS;
}

static bool is_joined(const struct capture *capture)
{
    for (const struct stream *stream = streams; stream; stream = stream->next)
        if (stream->capture == capture && !stream->joined)
            return false;
    return true;
}

static void finish(struct capture *capture)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->capture == capture)
            stream->capture = NULL;
    UNLINK(captures, capture);
    free(capture);
}

CUresult end_capture(struct stream *stream, Handle *graph)
{
    struct capture *capture = stream->capture;
    CUresult result = CUDA_SUCCESS;
    *graph = 0;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != RELAXED && capture->thread != this_thread()->id)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->invalidated)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!is_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (result)
        destroy_graph(capture->graph);
    else
        *graph = capture->graph->handle;
    finish(capture);
    return result;
}

/* Take a stream that is destroyed out of its capture. */
static void forget_capture(struct stream *stream)
{
    struct capture *capture = stream->capture;
    if (!capture)
        return;
    invalidate(capture, 0);
    stream->capture = NULL;
    if (capture->origin == stream) {
        destroy_graph(capture->graph);
        finish(capture);
    }
}

enum capture_status capture_status(const struct stream *stream)
{
    if (!stream->capture)
        return NOT_CAPTURING;
    return stream->capture->invalidated ? INVALIDATED : CAPTURING;
}

static bool forbids_unsafe(const struct capture *capture)
{
    int mode = this_thread()->capture_mode;
    if (mode == RELAXED || capture->mode == RELAXED)
        return false;
    if (capture->thread == this_thread()->id)
        return true;
    return mode == GLOBAL && capture->mode == GLOBAL;
}

CUresult refuse_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (forbids_unsafe(capture))
            result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return result;
}

CUresult refuse_captured(const struct context *context)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (capture->origin->context == context)
            result = invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return result;
}

CUresult refuse_implicit(const struct context *context)
{
    CUresult result = CUDA_SUCCESS;
    for (struct stream *stream = streams; stream; stream = stream->next)
        if (stream->capture && stream->blocking && stream->context == context)
            result = invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return result;
}

/* Graphs */

struct graph *add_graph(bool executable)
{
    struct graph *graph = NEW(struct graph);
    graph->handle = new_handle();
    graph->executable = executable;
    graph->next = graphs;
    graphs = graph;
    return graph;
}

struct graph *find_graph(Handle handle, bool executable)
{
    struct graph *graph = graphs;
    while (graph && (graph->handle != handle || graph->executable != executable))
        graph = graph->next;
    return graph;
}

struct work *find_node(Handle handle)
{
    for (struct graph *graph = graphs; graph; graph = graph->next)
        for (struct work *node = graph->first; node; node = node->next)
            if (node->node == handle)
                return node;
    return NULL;
}

void destroy_graph(struct graph *graph)
{
    UNLINK(graphs, graph);
    free_work(graph->first);
    free(graph);
}

Handle instantiate(const struct graph *graph)
{
    struct graph *executable = add_graph(true);
    for (const struct work *node = graph->first; node; node = node->next)
        add_node(executable, *node);
    return executable->handle;
}

CUresult launch(const struct graph *executable, struct stream *stream)
{
    CUresult result = admit(stream);
    for (struct work *node = executable->first; node && !result; node = node->next)
        result = enqueue(stream, *node);
    return result;
}

/* All of a context */

void drop_streams_of(const struct context *context)
{
    for (struct stream *next, *stream = streams; stream; stream = next) {
        next = stream->next;
        if (context && stream->context != context)
            continue;
        forget_capture(stream);
        bury(stream);
    }
    for (struct event *next, *event = events; event; event = next) {
        next = event->next;
        if (!context || event->context == context)
            destroy_event(event);
    }
}

void drop_graphs(void)
{
    while (graphs)
        destroy_graph(graphs);
}

void count_objects(struct objects *objects)
{
    for (struct stream *stream = streams; stream; stream = stream->next)
        objects->streams += stream->kind == ORDINARY && !stream->destroyed;
    for (struct event *event = events; event; event = event->next)
        objects->events++;
    for (struct graph *graph = graphs; graph; graph = graph->next)
        *(graph->executable ? &objects->executables : &objects->graphs) += 1;
}

/* How many pieces of work wait in all streams. */
API uint64_t sim_pending(void)
{
    lock();
    uint64_t pending = 0;
    for (struct stream *stream = streams; stream; stream = stream->next)
        pending += stream->enqueued - stream->done;
    unlock();
    return pending;
}
