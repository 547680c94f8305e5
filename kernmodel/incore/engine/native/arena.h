/* Memory of one block's analysis: taken piece by piece, given back all at once. */

#ifndef KERNMODEL_ARENA_H
#define KERNMODEL_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct Chunk Chunk;

typedef struct {
    Chunk *chunk; /* the one that is being filled; older ones are linked behind it */
    size_t used;
} Arena;

/* So many elements of a size, not initialised; NULL without memory. */
void *arena_take(Arena *arena, int64_t count, size_t size);

/* All pieces are free again; what several chunks held will fit into one. */
void arena_reset(Arena *arena);

void arena_release(Arena *arena);

#endif
