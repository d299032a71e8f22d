/* Device memory: addresses, limits, contents.
 *
 * A device address is a number that no host address can be, so a program that follows
 * one crashes. No address is given out twice, and unused bytes lie between allocations,
 * so a pointer to freed memory and a range that runs over its end are always noticed.
 *
 * What an allocation holds is kept in chunks, and a chunk that holds one pattern all
 * over takes no host memory: gigabytes may be allocated, cleared and read back. New
 * memory holds FRESH. */

#include "simulation.h"

#include <stdlib.h>
#include <string.h>

#define DEVICE_BASE (UINT64_C(1) << 56)
#define DEVICE_SPAN (UINT64_C(1) << 52)
#define FRESH 0xCDCDCDCDu

enum { ALIGNMENT = 512, CHUNK = 1 << 16 };

struct chunk {
    uint8_t *bytes;   /* NULL while the chunk holds a pattern */
    uint32_t pattern; /* differences from FRESH, lowest byte first */
};

/* In order of address. */
static struct allocation **allocations;
static size_t allocation_count, allocation_room;
static uint64_t last_id;
static uint64_t pinned_count, pinned_bytes;

bool is_device_address(uint64_t address)
{
    return address >= DEVICE_BASE;
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t chunks_of(uint64_t bytes)
{
    return (bytes + CHUNK - 1) / CHUNK;
}

/* How many allocations begin at or below an address. */
static size_t rank(uint64_t address)
{
    size_t low = 0, high = allocation_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (allocations[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct allocation *find_allocation(uint64_t address)
{
    size_t below = rank(address);
    struct allocation *allocation = below ? allocations[below - 1] : NULL;
    if (!allocation || address - allocation->address >= allocation->bytes)
        return NULL;
    return allocation;
}

static void insert(struct allocation *allocation)
{
    if (allocation_count == allocation_room) {
        allocation_room = allocation_room ? 2 * allocation_room : 64;
        allocations = realloc(allocations, allocation_room * sizeof *allocations);
        if (!allocations)
            abort();
    }
    size_t place = rank(allocation->address);
    memmove(allocations + place + 1, allocations + place,
            (allocation_count - place) * sizeof *allocations);
    allocations[place] = allocation;
    allocation_count++;
}

static void account(const struct allocation *allocation, int sign)
{
    if (allocation->owner == PINNED) {
        pinned_count += sign;
        pinned_bytes += sign * allocation->bytes;
        return;
    }
    struct device *device = &sim.devices[allocation->context->device];
    device->reserved += sign * rounded(allocation->bytes);
    device->live_bytes += sign * allocation->bytes;
    device->live_count += sign;
    struct pool *pool = allocation->pool;
    if (pool) {
        pool->used += sign * rounded(allocation->bytes);
        if (pool->used > pool->high)
            pool->high = pool->used;
    }
}

/* Host memory for a pinned allocation, new addresses for any other; false for none. */
static bool place(struct allocation *allocation)
{
    uint64_t bytes = rounded(allocation->bytes);
    int ordinal = allocation->context->device;
    struct device *device = &sim.devices[ordinal];
    if (allocation->owner == PINNED) {
        void *memory = aligned_alloc(ALIGNMENT, bytes);
        allocation->address = (uintptr_t)memory;
        return memory;
    }
    if (bytes > device->memory - device->reserved)
        return false;
    allocation->chunks = calloc(chunks_of(bytes), sizeof *allocation->chunks);
    if (!device->next_address)
        device->next_address = DEVICE_BASE + ordinal * DEVICE_SPAN;
    allocation->address = device->next_address;
    device->next_address += bytes + ALIGNMENT;
    return allocation->chunks;
}

CUresult allocate(struct context *context, enum owner owner, struct pool *pool,
                  uint64_t bytes, uint64_t *address)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes >= DEVICE_SPAN)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation *allocation = calloc(1, sizeof *allocation);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->bytes = bytes;
    allocation->owner = owner;
    allocation->pool = pool;
    allocation->context = context;
    if (!place(allocation)) {
        free(allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->id = ++last_id;
    *address = allocation->address;
    insert(allocation);
    account(allocation, 1);
    return CUDA_SUCCESS;
}

void release(struct allocation *allocation)
{
    account(allocation, -1);
    if (allocation->owner == PINNED)
        free((void *)(uintptr_t)allocation->address);
    else
        for (uint64_t i = 0; i < chunks_of(allocation->bytes); i++)
            free(allocation->chunks[i].bytes);
    free(allocation->chunks);
    size_t place = rank(allocation->address) - 1;
    allocation_count--;
    memmove(allocations + place, allocations + place + 1,
            (allocation_count - place) * sizeof *allocations);
    free(allocation);
}

void release_all_of(const struct context *context)
{
    for (size_t i = allocation_count; i-- > 0;)
        if (!context || allocations[i]->context == context)
            release(allocations[i]);
}

bool is_accessible(const struct context *context, uint64_t address, uint64_t bytes)
{
    const struct allocation *allocation = find_allocation(address);
    if (!allocation)
        return false;
    if (allocation->owner != PINNED && allocation->context->device != context->device)
        return false;
    return bytes <= allocation->bytes - (address - allocation->address);
}

/* Write the pattern as it looks `phase` bytes after its start. */
static void repeat(uint8_t *bytes, uint64_t count, uint32_t pattern, uint64_t phase)
{
    if (pattern == (pattern & 0xFF) * 0x01010101u) {
        memset(bytes, pattern & 0xFF, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = pattern >> 8 * ((phase + i) % 4);
}

/* The chunk that holds `address`, and how much of `*bytes` it holds from there on. */
static struct chunk *chunk_at(const struct allocation *allocation, uint64_t address,
                              uint64_t *bytes, uint64_t *offset)
{
    uint64_t from_start = address - allocation->address;
    *offset = from_start % CHUNK;
    if (*bytes > CHUNK - *offset)
        *bytes = CHUNK - *offset;
    return &allocation->chunks[from_start / CHUNK];
}

static void spell_out(struct chunk *chunk)
{
    if (chunk->bytes)
        return;
    chunk->bytes = malloc(CHUNK);
    if (!chunk->bytes)
        abort();
    repeat(chunk->bytes, CHUNK, chunk->pattern ^ FRESH, 0);
}

void fill_memory(uint64_t address, uint64_t bytes, uint32_t pattern)
{
    const struct allocation *allocation = find_allocation(address);
    if (allocation->owner == PINNED) {
        repeat((uint8_t *)(uintptr_t)address, bytes, pattern, 0);
        return;
    }
    uint64_t end = allocation->address + allocation->bytes;
    while (bytes) {
        uint64_t part = bytes, offset;
        struct chunk *chunk = chunk_at(allocation, address, &part, &offset);
        if (!offset && (part == CHUNK || address + part == end)) {
            free(chunk->bytes);
            *chunk = (struct chunk){.pattern = pattern ^ FRESH};
        } else {
            spell_out(chunk);
            repeat(chunk->bytes + offset, part, pattern, offset);
        }
        address += part;
        bytes -= part;
    }
}

/* One part of a copy, of at most one chunk. */
static uint64_t read_part(uint64_t address, uint8_t *buffer, uint64_t bytes)
{
    if (!is_device_address(address)) {
        memcpy(buffer, (const void *)(uintptr_t)address, bytes);
        return bytes;
    }
    uint64_t offset;
    struct chunk *chunk = chunk_at(find_allocation(address), address, &bytes, &offset);
    if (chunk->bytes)
        memcpy(buffer, chunk->bytes + offset, bytes);
    else
        repeat(buffer, bytes, chunk->pattern ^ FRESH, offset);
    return bytes;
}

static uint64_t write_part(uint64_t address, const uint8_t *buffer, uint64_t bytes)
{
    if (!is_device_address(address)) {
        memcpy((void *)(uintptr_t)address, buffer, bytes);
        return bytes;
    }
    uint64_t offset;
    struct chunk *chunk = chunk_at(find_allocation(address), address, &bytes, &offset);
    spell_out(chunk);
    memcpy(chunk->bytes + offset, buffer, bytes);
    return bytes;
}

void copy_memory(uint64_t destination, uint64_t source, uint64_t bytes)
{
    static uint8_t buffer[CHUNK];
    while (bytes) {
        uint64_t part = bytes < CHUNK ? bytes : CHUNK;
        part = read_part(source, buffer, part);
        part = write_part(destination, buffer, part);
        destination += part;
        source += part;
        bytes -= part;
    }
}

/* Copy out what memory holds now, without waiting for anything. */
API int sim_peek(uint64_t address, void *destination, uint64_t bytes)
{
    lock();
    const struct allocation *allocation = find_allocation(address);
    bool inside =
        allocation && bytes <= allocation->bytes - (address - allocation->address);
    if (inside)
        copy_memory((uintptr_t)destination, address, bytes);
    unlock();
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* What is allocated on a device, or with -1 of pinned host memory: how many
 * allocations, of how many bytes. */
API int sim_live(int device, uint64_t *count, uint64_t *bytes)
{
    if (device < -1 || device >= MAX_DEVICES)
        return CUDA_ERROR_INVALID_DEVICE;
    lock();
    *count = device < 0 ? pinned_count : sim.devices[device].live_count;
    *bytes = device < 0 ? pinned_bytes : sim.devices[device].live_bytes;
    unlock();
    return CUDA_SUCCESS;
}
