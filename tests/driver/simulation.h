/* The parts of the simulated CUDA driver and what they ask of each other.
 *
 * driver.c   what a program calls: the CUDA driver API, and sim_* for the tests
 * calls.c    the record of calls, faults on demand, what every call checks first
 * memory.c   device memory: addresses, limits, contents
 * streams.c  queued work and its order, events, captures and graphs
 *
 * One lock guards everything. A call holds it from `enter` to `leave`, and a sim_*
 * function while it runs; no other function takes it. */

#ifndef SIMULATION_H
#define SIMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint64_t Handle; /* what the API has as a pointer to an opaque type */

#define STATUSES(X)                                                                    \
    X(CUDA_SUCCESS, 0, "no error")                                                     \
    X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3, "initialization error")                           \
    X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                             \
    X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")                 \
    X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                        \
    X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                       \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error encountered")        \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304, "OS call failed")                              \
    X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                       \
    X(CUDA_ERROR_ILLEGAL_STATE, 401, "illegal state")                                  \
    X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                             \
    X(CUDA_ERROR_NOT_READY, 600, "device not ready")                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "an illegal memory access was encountered")     \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                    \
    X(CUDA_ERROR_LAUNCH_FAILED, 719, "unspecified launch failure")                     \
    X(CUDA_ERROR_NOT_PERMITTED, 800, "operation not permitted")                        \
    X(CUDA_ERROR_NOT_SUPPORTED, 801, "operation not supported")                        \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "system not yet initialized")                  \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "not permitted in a capture")        \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "the capture was invalidated")       \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "two captures would merge")                \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "begun in another stream")             \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "a captured stream was not joined")     \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "would depend on other work")          \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, "would join the legacy stream")         \
    X(CUDA_ERROR_CAPTURED_EVENT, 907, "event was recorded in a capture")               \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "begun in another thread")          \
    X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

enum {
#define AS_ENUM(name, value, text) name = value,
    STATUSES(AS_ENUM)
#undef AS_ENUM
    MAX_DEVICES = 8,
    MAX_ATTRIBUTE = 256,
    STREAM_LEGACY = 1, /* handles of the default streams; 0 is one of them */
    STREAM_PER_THREAD = 2,
    STREAM_NON_BLOCKING = 1, /* a flag */
};

/* One call, as it is recorded. What a call has none of is 0; `stream` of the default
 * streams is the handle that the caller gave. */
struct call {
    uint64_t sequence; /* from 0, never started anew */
    const char *name;  /* without the version suffix: cuMemAlloc, not cuMemAlloc_v2 */
    uint64_t stream;
    uint64_t pointer; /* memory written, allocated or freed; else the object's handle */
    uint64_t source;  /* memory read by a copy */
    uint64_t bytes;
    uint64_t value; /* of a memset; else flags, a mode or an attribute */
    int32_t device; /* of the context, or named in the call; -1 for none */
    int32_t result;
};

struct context {
    Handle handle;
    int device;
    bool primary, alive;
    unsigned retained, flags;
    CUresult fault; /* what every further call in this context answers; 0 for none */
    struct stream *legacy;
    struct context *next;
};

struct pool {
    Handle handle;
    int device;
    uint64_t threshold, used, high;
};

struct device {
    uint64_t memory, reserved;       /* bytes; what is reserved is rounded up */
    uint64_t live_count, live_bytes; /* as asked for */
    CUdeviceptr next_address;
    int attributes[MAX_ATTRIBUTE];
    struct context primary;
    struct pool pool;
};

struct simulation {
    bool initialised;
    int device_count;
    struct device devices[MAX_DEVICES];
    struct context *contexts; /* those from cuCtxCreate */
    Handle last_handle;
    Handle null_stream; /* the default stream that stream 0 stands for */
    unsigned resets;
};

extern struct simulation sim;

/* Handles are numbers, not addresses, and never used twice: one that is stale or made
 * up is refused and never followed. */
Handle new_handle(void);

/* calls.c */

/* What a call needs before it is looked at. */
enum needs {
    NOTHING = 0,
    DRIVER = 1,           /* cuInit */
    CONTEXT = 2 | DRIVER, /* a current context that is alive and free of faults */
    SAFE_ONLY = 4,        /* no capture that forbids unsafe calls */
};

/* Begin a call that is recorded as `function`; the rest are fields of struct call. */
#define ENTER(function, needs, ...)                                                    \
    struct call call = {.name = #function, __VA_ARGS__};                               \
    enter(&call, needs);                                                               \
    REQUIRE(!call.result, call.result)
#define LEAVE(status)                                                                  \
    do {                                                                               \
        call.result = (status);                                                        \
        return leave(&call);                                                           \
    } while (0)
#define REQUIRE(condition, status)                                                     \
    do {                                                                               \
        if (!(condition))                                                              \
            LEAVE(status);                                                             \
    } while (0)

void lock(void);
void unlock(void);
API void sim_clear(void);
API void sim_mend(void);
void enter(struct call *call, unsigned needs);
CUresult leave(const struct call *call);

enum { MAX_DEPTH = 16 };

/* What a thread has of its own; as new after a reset. */
struct thread {
    uint64_t id;
    unsigned resets;
    int capture_mode;
    unsigned depth;
    struct context *contexts[MAX_DEPTH]; /* the last is current */
};

struct thread *this_thread(void);
/* The context that is current to this thread; NULL for none. */
struct context *current(void);
void set_current(struct context *context);
bool push_current(struct context *context);
struct context *pop_current(void);

/* memory.c */

enum owner { PLAIN, POOLED, PINNED };

struct allocation {
    uint64_t address, bytes;
    uint64_t id;
    enum owner owner;
    bool freeing; /* a stream-ordered free is queued */
    struct context *context;
    struct pool *pool;
    struct chunk *chunks;
};

bool is_device_address(uint64_t address);
CUresult allocate(struct context *context, enum owner owner, struct pool *pool,
                  uint64_t bytes, uint64_t *address);
void release(struct allocation *allocation);
/* Release what a context has allocated; what all have, for NULL. */
void release_all_of(const struct context *context);
/* The allocation that an address lies in; NULL when it lies in none. */
struct allocation *find_allocation(uint64_t address);
/* Whether the bytes lie in one allocation that the context's device may touch. */
bool is_accessible(const struct context *context, uint64_t address, uint64_t bytes);
void fill_memory(uint64_t address, uint64_t bytes, uint32_t pattern);
void copy_memory(uint64_t destination, uint64_t source, uint64_t bytes);

/* streams.c */

enum stream_kind { ORDINARY, LEGACY, PER_THREAD };

struct stream {
    Handle handle;
    struct context *context;
    enum stream_kind kind;
    bool blocking, destroyed;
    unsigned flags;
    int priority;
    uint64_t thread;         /* of a per-thread default stream; else 0 */
    uint64_t enqueued, done; /* pieces of work since the stream was created */
    struct work *first, *last;
    struct capture *capture;
    uint64_t captured; /* the graph's nodes when this stream last took part */
    bool joined;       /* something in the capture waits for all that went in here */
    struct stream *next;
};

enum work_kind { FILL, COPY, FREE, WAIT, MARK };

struct work {
    enum work_kind kind;
    uint64_t pointer, source, bytes;
    uint32_t pattern;
    void *staged;      /* owned; what a copy reads in place of `source` */
    Handle other;      /* WAIT: the stream waited for; MARK: the event */
    uint64_t position; /* WAIT: how far that stream has to be */
    Handle node;       /* of a graph's node */
    struct work *next;
};

struct event {
    Handle handle;
    struct context *context;
    unsigned flags;
    Handle stream;     /* where it was last recorded; 0 when it never was */
    uint64_t position; /* of the stream; in a capture, the graph's nodes */
    uint64_t capture;  /* the capture that it was last recorded in; 0 for none */
    double time;       /* milliseconds, when it was last reached */
    struct event *next;
};

struct graph {
    Handle handle;
    bool executable;
    size_t count;
    struct work *first, *last;
    struct graph *next;
};

enum capture_mode { GLOBAL, THREAD_LOCAL, RELAXED };
enum capture_status { NOT_CAPTURING, CAPTURING, INVALIDATED };

struct capture {
    uint64_t id;
    int mode;
    uint64_t thread;
    bool invalidated;
    struct stream *origin;
    struct graph *graph;
    struct capture *next;
};

struct stream *add_stream(struct context *context, enum stream_kind kind,
                          unsigned flags, int priority);
/* The stream that a handle stands for in a context; NULL when it stands for none. */
struct stream *find_stream(Handle handle, struct context *context);
void destroy_stream(struct stream *stream);
/* Queue work on a stream, or add it to the graph that the stream is captured into. */
CUresult enqueue(struct stream *stream, struct work work);
bool is_pending(struct stream *stream);
/* Do one piece of work, so that a program that polls comes to an end. */
void let_time_pass(struct stream *stream);
CUresult synchronize_stream(struct stream *stream);
CUresult synchronize_context(struct context *context);

struct event *add_event(struct context *context, unsigned flags);
struct event *find_event(Handle handle);
void destroy_event(struct event *event);
CUresult record_event(struct event *event, struct stream *stream);
CUresult wait_event(struct stream *stream, const struct event *event);
bool is_reached(const struct event *event);
/* As let_time_pass, for the stream that the event was recorded in. */
void approach(const struct event *event);
CUresult synchronize_event(const struct event *event);

CUresult begin_capture(struct stream *stream, int mode);
CUresult end_capture(struct stream *stream, Handle *graph);
enum capture_status capture_status(const struct stream *stream);
/* Each of these refuses what a capture forbids, and invalidates that capture: a call
 * that is unsafe in any capture; one that waits for a whole context; one that uses the
 * context's legacy stream. */
CUresult refuse_unsafe(void);
CUresult refuse_captured(const struct context *context);
CUresult refuse_implicit(const struct context *context);
/* Invalidate a capture, if it is one, and return the status. */
CUresult invalidate(struct capture *capture, CUresult status);

struct graph *add_graph(bool executable);
struct graph *find_graph(Handle handle, bool executable);
struct work *find_node(Handle handle);
void destroy_graph(struct graph *graph);
Handle instantiate(const struct graph *graph);
CUresult launch(const struct graph *executable, struct stream *stream);

/* Drop the streams, events and work of a context; of all, for NULL. */
void drop_streams_of(const struct context *context);
void drop_graphs(void);

struct objects {
    uint64_t streams, events, graphs, executables, contexts;
};
void count_objects(struct objects *objects);

#endif
