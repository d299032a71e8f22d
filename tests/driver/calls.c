/* The record of calls, faults on demand, and what every call checks first. */

#include "simulation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct simulation sim = {.device_count = 1, .null_stream = 1};

/* A fault that waits for its call: the one that brings `nth` down to 0, and with
 * `sticky` every later one. */
struct fault {
    char name[64];
    uint64_t nth;
    CUresult status;
    bool sticky;
    struct fault *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct call *calls;
static uint64_t call_count, call_room, next_sequence;
static struct fault *faults;

void lock(void)
{
    pthread_mutex_lock(&mutex);
}

void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

Handle new_handle(void)
{
    sim.last_handle += 0x10;
    return 0x51D000000000 + sim.last_handle;
}

struct thread *this_thread(void)
{
    static uint64_t threads;
    static _Thread_local struct thread thread;
    if (!thread.id)
        thread.id = ++threads;
    if (thread.resets != sim.resets)
        thread = (struct thread){.id = thread.id, .resets = sim.resets};
    return &thread;
}

struct context *current(void)
{
    const struct thread *thread = this_thread();
    return thread->depth ? thread->contexts[thread->depth - 1] : NULL;
}

void set_current(struct context *context)
{
    struct thread *thread = this_thread();
    if (!thread->depth)
        thread->depth = 1;
    thread->contexts[thread->depth - 1] = context;
}

bool push_current(struct context *context)
{
    struct thread *thread = this_thread();
    if (thread->depth == MAX_DEPTH)
        return false;
    thread->contexts[thread->depth++] = context;
    return true;
}

struct context *pop_current(void)
{
    struct context *context = current();
    if (context)
        this_thread()->depth--;
    return context;
}

static bool is_meant(const struct fault *fault, const char *name)
{
    if (strcmp(fault->name, "*"))
        return !strcmp(fault->name, name);
    return strcmp(name, "cuGetErrorName") && strcmp(name, "cuGetErrorString");
}

/* Count a call, and return the status of the fault that it meets. */
static CUresult take_fault(const char *name)
{
    CUresult status = CUDA_SUCCESS;
    struct fault **link = &faults;
    while (*link) {
        struct fault *fault = *link;
        bool meant = is_meant(fault, name);
        if (meant && fault->nth > 0)
            fault->nth--;
        if (meant && !fault->nth && !status)
            status = fault->status;
        if (meant && !fault->nth && !fault->sticky) {
            *link = fault->next;
            free(fault);
        } else {
            link = &fault->next;
        }
    }
    return status;
}

static CUresult check(unsigned needs)
{
    if (needs & DRIVER && !sim.initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if ((needs & CONTEXT) == CONTEXT) {
        if (!current())
            return CUDA_ERROR_INVALID_CONTEXT;
        if (!current()->alive)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        if (current()->fault)
            return current()->fault;
    }
    return needs & SAFE_ONLY ? refuse_unsafe() : CUDA_SUCCESS;
}

void enter(struct call *call, unsigned needs)
{
    lock();
    call->sequence = next_sequence++;
    call->device = current() ? current()->device : -1;
    call->result = take_fault(call->name);
    if (!call->result)
        call->result = check(needs);
}

CUresult leave(const struct call *call)
{
    if (call_count == call_room) {
        call_room = call_room ? 2 * call_room : 1024;
        calls = realloc(calls, call_room * sizeof *calls);
        if (!calls)
            abort();
    }
    calls[call_count++] = *call;
    CUresult result = call->result;
    unlock();
    return result;
}

API uint64_t sim_calls_count(void)
{
    lock();
    uint64_t count = call_count;
    unlock();
    return count;
}

/* The i-th recorded call; whether there is one. */
API int sim_call(uint64_t i, struct call *call)
{
    lock();
    bool found = i < call_count;
    if (found)
        *call = calls[i];
    unlock();
    return found;
}

/* Forget the recorded calls. */
API void sim_clear(void)
{
    lock();
    call_count = 0;
    unlock();
}

/* Let the n-th call of a name from now on answer `status` and do nothing else; when
 * sticky, every later one too. "*" is any name but that of an error's text. */
API int sim_fail(const char *name, uint64_t nth, int status, int sticky)
{
    struct fault *fault = calloc(1, sizeof *fault);
    if (!fault || !nth || strlen(name) >= sizeof fault->name) {
        free(fault);
        return CUDA_ERROR_INVALID_VALUE;
    }
    strcpy(fault->name, name);
    fault->nth = nth;
    fault->status = status;
    fault->sticky = sticky;
    lock();
    struct fault **link = &faults;
    while (*link)
        link = &(*link)->next;
    *link = fault;
    unlock();
    return CUDA_SUCCESS;
}

/* Forget the faults that are still to come. */
API void sim_mend(void)
{
    lock();
    while (faults) {
        struct fault *next = faults->next;
        free(faults);
        faults = next;
    }
    unlock();
}
