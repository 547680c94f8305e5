#include "arena.h"

#include <stdlib.h>

enum { SMALLEST = 1 << 17, ALIGNMENT = 16 };

struct Chunk {
    Chunk *older;
    size_t room;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static Chunk *new_chunk(size_t room, Chunk *older)
{
    Chunk *chunk = malloc(sizeof(Chunk) + room);
    if (chunk) {
        chunk->older = older;
        chunk->room = room;
    }
    return chunk;
}

void *arena_take(Arena *arena, int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > (SIZE_MAX >> 2) / size)
        return NULL;
    const size_t bytes = ((size_t)count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!arena->chunk || arena->chunk->room - arena->used < bytes) {
        const size_t twice = arena->chunk ? 2 * arena->chunk->room : SMALLEST;
        Chunk *chunk = new_chunk(bytes > twice ? bytes : twice, arena->chunk);
        if (!chunk)
            return NULL;
        arena->chunk = chunk;
        arena->used = 0;
    }
    void *piece = arena->chunk->bytes + arena->used;
    arena->used += bytes;
    return piece;
}

void arena_reset(Arena *arena)
{
    /* the newest chunk is the largest: at least as large as all others together */
    for (Chunk *older = arena->chunk ? arena->chunk->older : NULL; older;) {
        Chunk *next = older->older;
        free(older);
        older = next;
    }
    if (arena->chunk)
        arena->chunk->older = NULL;
    arena->used = 0;
}

void arena_release(Arena *arena)
{
    arena_reset(arena);
    free(arena->chunk);
    arena->chunk = NULL;
}
