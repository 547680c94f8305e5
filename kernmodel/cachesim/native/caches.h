/* Caches: sets of lines, replacement, requests from level to level, combining buffers. See reference.py for the rules.
 *
 * Ranges of bytes are given by their first and last byte, because the byte after the last may not have an address. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef uint8_t u8;
typedef uint64_t u64;
typedef int64_t i64;
typedef unsigned __int128 u128;
typedef __int128 i128;

enum { LRU, FIFO, RANDOM, MRU, PLRU };
enum { LOAD, STORE, STREAM };
/* Of the machine that this runs on, which changes the speed alone: words of a cache line, words from which on the sets of
 * a level are fetched ahead (beyond what an inner cache holds), how many accesses ahead, and lines
 * from one to the next up to which the hardware does that by itself. */
enum { HOST_LINE = 8, HOST_DISTANT = 1 << 15, AHEAD = 8, FEW_LINES = 4 };

/* ---- Arithmetic ------------------------------------------------------------------------------------------------ */

static u64 mix(u64 x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

INLINE u64 high_product(u64 a, u64 b) { return (u64)(((u128)a * b) >> 64); }

/* Division by a number that stays the same: a shift, or a multiplication by 2^64 / by. The product falls short of the
 * quotient by one at most, because it leaves out less than value / 2^64 + 1. */
typedef struct {
    u64 by, reciprocal, mask;
    int shift; /* -1: not a power of two */
} Divisor;

static Divisor divisor(u64 by)
{
    Divisor d = {by, 0, by - 1, -1};
    if ((by & (by - 1)) == 0)
        d.shift = __builtin_ctzll(by);
    else
        d.reciprocal = (u64)(((u128)1 << 64) / by);
    return d;
}

INLINE u64 quotient(const Divisor *d, u64 value)
{
    if (LIKELY(d->shift >= 0))
        return value >> d->shift;
    u64 q = high_product(value, d->reciprocal);
    return q + (value - q * d->by >= d->by);
}

INLINE u64 remainder_of(const Divisor *d, u64 value)
{
    if (LIKELY(d->shift >= 0))
        return value & d->mask;
    return value - quotient(d, value) * d->by;
}

/* ---- Caches ---------------------------------------------------------------------------------------------------- */

/* A set is a block of words: the signatures of its ways, eight to a word, then the keys of its ways, and, where needed,
 * masks of sub-blocks, a tree, and the number of its lines. A key is the number of a line + 1, shifted by one, and below
 * it whether the line is modified; 0 is a free way. A signature is a byte of a hash of the number: it mostly tells at
 * once that a line is not there.
 *
 * Under LRU, FIFO and MRU the ways stand in their order, latest first, free ways last. Under RANDOM and PLRU each way
 * is a place of its own. */
typedef struct Level Level;
struct Level {
    u64 *blocks;
    u64 stride, keys, valid, dirty, tree, lines;  /* words of a block, and where in it things begin */
    Level *load_from, *store_to, *victim;         /* NULL: memory, or none */
    u64 ways, sets, line_bytes, block_bytes, leaves, generator;
    Divisor line, set;
    u64 inner;                     /* levels whose load_from links lead here, as bits */
    u64 *turns;                    /* what a touch clears and sets in a tree of one word, by way; NULL: larger */
    int index, policy, ordered, write_back, write_allocate, clean_victims, inclusive, hashed, sub_blocks, sectored;
    int masked;                    /* the set is the low bits of the line number */
    int recency, queue;            /* LRU, MRU; LRU, FIFO */
    int distant;                   /* its sets are fetched ahead */
    u64 load_hits, load_misses, store_hits, store_misses, dirty_evictions, clean_evictions, invalidations;
};

typedef struct {
    u64 number, valid, dirty;
} Line;

typedef struct {
    u64 line, stamp, fills, missing; /* bytes that are still missing; 0: the buffer is free */
    u64 *written;
} Buffer;

/* What the first level sends for (`row`: of the counters of the reference that asked), and what it gives up modified
 * (−1), in this order. */
typedef struct {
    u64 line;
    i64 row;
} Sent;

typedef struct {
    Sent *list;
    u64 count, room, from; /* lines are counted from one; no more is written when the room is used up */
} SentList;

typedef struct {
    Level *levels;
    int count, skip, buffer_count, open_buffers, any_inclusive;
    int plain; /* all lines are of the same size and without sub-blocks, and no level is inclusive */
    Buffer *buffers;
    u64 clock, fills; /* of streaming stores; insertions anywhere */
    u64 memory_loads, memory_stores, streamed_lines, streamed_parts, accesses;
    u64 *served; /* rows of count + 1 */
    i64 rows, used_rows;
    u64 *marks, mark; /* of the sets of the first level, for skipping */
    SentList *sent;   /* where to write what the first level sends; NULL: nowhere */
    const u64 *asking; /* counters of the reference that is executed */
} Sim;

static int load_line(Sim *s, Level *l, u64 number, u64 first, u64 last);
static int store_line(Sim *s, Level *l, u64 number, u64 first, u64 last);
static int load_lines(Sim *s, Level *l, u64 first, u64 last);
static int store_lines(Sim *s, Level *l, u64 first, u64 last);
static int plain_load_line(Sim *s, Level *l, u64 number);
static int plain_store_line(Sim *s, Level *l, u64 number, int whole);

INLINE u64 key_of(u64 number) { return ((number + 1) << 1) | 1; } /* compare with key | 1 */
INLINE u64 number_of(u64 key) { return (key >> 1) - 1; }

INLINE u64 set_index(const Level *l, u64 number)
{
    if (LIKELY(l->masked))
        return number & l->set.mask;
    if (!l->hashed)
        return remainder_of(&l->set, number);
    u64 low = ((u64)1 << (l->hashed - 1)) - 1; /* of lines that stay together */
    return remainder_of(&l->set, mix(number >> (l->hashed - 1)) << (l->hashed - 1) | (number & low));
}

INLINE u64 *set_of(const Level *l, u64 number) { return l->blocks + set_index(l, number) * l->stride; }

INLINE u64 signature(u64 number) { return (number * 0x9E3779B97F4A7C15u) >> 56; }

/* 0x80 in each byte of a word that is zero, and 0 elsewhere. */
INLINE u64 zero_bytes(u64 word)
{
    const u64 low = 0x7F7F7F7F7F7F7F7Fu;
    return ~(((word & low) + low) | word | low);
}

INLINE void set_signature(u64 *b, u64 way, u64 byte)
{
    u64 *word = b + (way >> 3), shift = (way & 7) * 8;
    *word = (*word & ~((u64)0xFF << shift)) | byte << shift;
}

/* The way of a line, or -1. */
INLINE i64 find(const Level *l, const u64 *b, u64 number)
{
    const u64 *word = b, *keys = b + l->keys;
    u64 key = key_of(number), pattern = signature(number) * 0x0101010101010101u;
    do {
        for (u64 hits = zero_bytes(*word ^ pattern); hits; hits &= hits - 1) {
            u64 way = (u64)(word - b) * 8 + ((u64)__builtin_ctzll(hits) >> 3);
            if (LIKELY(way < l->ways && (keys[way] | 1) == key))
                return (i64)way;
        }
    } while (++word < keys);
    return -1;
}

/* The sub-blocks that a range within a line touches. */
INLINE u64 blocks(const Level *l, u64 number, u64 first, u64 last)
{
    if (LIKELY(l->sub_blocks == 1))
        return 1;
    u64 base = number * l->line_bytes;
    u64 low = (first - base) / l->block_bytes, high = (last - base) / l->block_bytes;
    return ((u64)2 << high) - ((u64)1 << low);
}

/* The sub-blocks that a range within a line covers. */
INLINE u64 whole_blocks(const Level *l, u64 number, u64 first, u64 last)
{
    u64 base = number * l->line_bytes, mask = 0;
    if (LIKELY(l->sub_blocks == 1))
        return first == base && last - first == l->line_bytes - 1;
    for (int b = 0; b < l->sub_blocks; b++) {
        u64 low = base + (u64)b * l->block_bytes, high = low + (l->block_bytes - 1);
        if (first <= low && high <= last)
            mask |= (u64)1 << b;
    }
    return mask;
}

INLINE u64 valid_at(const Level *l, const u64 *b, u64 way) { return l->sectored ? b[l->valid + way] : 1; }

INLINE u64 dirty_at(const Level *l, const u64 *b, u64 way)
{
    return l->sectored ? b[l->dirty + way] : b[l->keys + way] & 1;
}

INLINE void add_dirty(const Level *l, u64 *b, u64 way, u64 mask)
{
    b[(l->sectored ? l->dirty : l->keys) + way] |= mask;
}

INLINE Line line_at(const Level *l, const u64 *b, u64 way)
{
    return (Line){number_of(b[l->keys + way]), valid_at(l, b, way), dirty_at(l, b, way)};
}

INLINE void write_way(const Level *l, u64 *b, u64 way, const Line *line)
{
    set_signature(b, way, signature(line->number));
    b[l->keys + way] = ((line->number + 1) << 1) | (l->sectored ? 0 : line->dirty);
    if (UNLIKELY(l->sectored)) {
        b[l->valid + way] = line->valid;
        b[l->dirty + way] = line->dirty;
    }
}

typedef u64 Two __attribute__((vector_size(16), aligned(8), may_alias));

/* words[0 … count - 1] become words[1 … count]. */
INLINE void shift_up(u64 *words, u64 count)
{
    u64 *at = words + count;
    for (; at >= words + 4; at -= 4) {
        Two upper = *(const Two *)(at - 2), lower = *(const Two *)(at - 4);
        *(Two *)(at - 1) = upper;
        *(Two *)(at - 3) = lower;
    }
    if (at >= words + 2) {
        *(Two *)(at - 1) = *(const Two *)(at - 2);
        at -= 2;
    }
    if (at > words)
        words[1] = words[0];
}

INLINE void shift_down(u64 *words, u64 count)
{
    for (u64 way = 0; way < count; way++)
        words[way] = words[way + 1];
}

/* Put a line into way 0; the others move up by one way, and the last one is lost. (Signatures behind the last way may
 * hold anything.) */
INLINE void push_ways(u64 *b, u64 words, u64 ways, u64 number, u64 dirty)
{
    u64 carry = signature(number), *keys = b + words;
    for (u64 word = 0; word < words; word++) {
        u64 bytes = b[word];
        b[word] = bytes << 8 | carry;
        carry = bytes >> 56;
    }
    shift_up(keys, ways - 1);
    *keys = ((number + 1) << 1) | dirty;
}

INLINE void push(const Level *l, u64 *b, u64 number, u64 dirty)
{
    if (l->ways == 8) /* for this one the compiler leaves no loop */
        push_ways(b, 1, 8, number, dirty);
    else
        push_ways(b, l->keys, l->ways, number, dirty);
}

/* Move the line of a way to way 0; those before it move up by one way. */
static void to_front(const Level *l, u64 *b, u64 way)
{
    u64 shift = (way & 7) * 8, *word = b, *last = b + (way >> 3), key = b[l->keys + way];
    u64 carry = *last >> shift & 0xFF;
    for (; word < last; word++) {
        u64 bytes = *word;
        *word = bytes << 8 | carry;
        carry = bytes >> 56;
    }
    u64 moved = *word & (((u64)1 << shift) - 1), kept = *word >> shift >> 8 << 8 << shift;
    *word = kept | moved << 8 | carry;
    shift_up(b + l->keys, way);
    b[l->keys] = key;
    if (UNLIKELY(l->sectored)) {
        u64 valid = b[l->valid + way], dirty = b[l->dirty + way];
        shift_up(b + l->valid, way);
        shift_up(b + l->dirty, way);
        b[l->valid] = valid;
        b[l->dirty] = dirty;
    }
}

/* Remove the line of a way; those behind it move down by one. */
static void close_gap(const Level *l, u64 *b, u64 way)
{
    u64 count = l->ways - 1 - way, *word = b + (way >> 3), *last = b + l->keys - 1;
    u64 below = ((u64)1 << (way & 7) * 8) - 1;
    *word = (*word & below) | (*word >> 8 & ~below);
    for (; word < last; word++) {
        *word |= word[1] << 56;
        word[1] >>= 8;
    }
    shift_down(b + l->keys + way, count);
    if (l->sectored) {
        shift_down(b + l->valid + way, count);
        shift_down(b + l->dirty + way, count);
    }
    b[l->keys + l->ways - 1] = 0;
}

INLINE void turn_tree(const Level *l, u64 *b, u64 way)
{
    u64 *tree = b + l->tree;
    if (LIKELY(l->turns != NULL)) {
        *tree = (*tree & ~l->turns[2 * way]) | l->turns[2 * way + 1];
        return;
    }
    for (u64 node = l->leaves + way; node > 1; node >>= 1) {
        u64 parent = node >> 1, bit = (u64)1 << (parent & 63);
        if (node & 1)
            tree[parent >> 6] &= ~bit;
        else
            tree[parent >> 6] |= bit;
    }
}

static u64 tree_victim(const Level *l, const u64 *b)
{
    const u64 *tree = b + l->tree;
    u64 node = 1, first = 0;
    for (u64 span = l->leaves >> 1; span > 0; span >>= 1) {
        u64 right = (tree[node >> 6] >> (node & 63)) & 1;
        right &= first + span < l->ways;
        node = 2 * node + right;
        first += right * span;
    }
    return first;
}

/* A hit: under LRU and MRU the line becomes the first of its set. The way in which it stands now. */
INLINE u64 touch(const Level *l, u64 *b, u64 way)
{
    if (LIKELY(l->recency)) {
        if (way)
            to_front(l, b, way);
        return 0;
    }
    if (l->policy == PLRU)
        turn_tree(l, b, way);
    return way;
}

/* Remove a line. */
static Line take(const Level *l, u64 *b, u64 way)
{
    Line line = line_at(l, b, way);
    if (l->ordered)
        close_gap(l, b, way);
    else {
        b[l->keys + way] = 0;
        b[l->lines]--;
    }
    return line;
}

INLINE int is_full(const Level *l, const u64 *b)
{
    return l->ordered ? b[l->keys + l->ways - 1] != 0 : b[l->lines] == l->ways;
}

/* The way that a full set gives up. */
static u64 victim_way(Level *l, const u64 *b)
{
    if (l->ordered)
        return l->policy == MRU ? 0 : l->ways - 1;
    if (l->policy == PLRU)
        return tree_victim(l, b);
    l->generator += 0x9E3779B97F4A7C15u;
    return high_product(mix(l->generator), l->ways);
}

/* Put a line into a set without order: into the first free way, or into that which the set gives up. */
static u64 place_unordered(Level *l, u64 *b, const Line *line, Line *old)
{
    u64 way = 0;
    if (b[l->lines] == l->ways)
        way = victim_way(l, b);
    else {
        while (b[l->keys + way])
            way++;
        b[l->lines]++;
    }
    u64 displaced = b[l->keys + way];
    *old = line_at(l, b, way);
    write_way(l, b, way, line);
    if (l->policy == PLRU)
        turn_tree(l, b, way);
    return displaced;
}

/* Put a line into its set; the key of what it displaces, and that line (undefined if the key is 0). */
static u64 place(Level *l, u64 *b, const Line *line, Line *old)
{
    if (!l->ordered)
        return place_unordered(l, b, line, old);
    u64 way = l->ways - 1, displaced = b[l->keys + way];
    if (displaced && l->policy == MRU)
        displaced = b[l->keys + (way = 0)];
    *old = line_at(l, b, way);
    to_front(l, b, way);
    write_way(l, b, 0, line);
    return displaced;
}

/* ---- Removing copies ------------------------------------------------------------------------------------------- */

static void remove_copies(Sim *s, Level *l, Line *line);

/* Remove what overlaps a range of bytes from a level. The modified sub-blocks become modified in `into`, a line of
 * `outer` (NULL: only whether there are any, as bit 0). */
static void remove_range(Sim *s, Level *l, u64 first, u64 last, const Level *outer, Line *into)
{
    u64 high = quotient(&l->line, last);
    for (u64 number = quotient(&l->line, first);; number++) {
        u64 *b = set_of(l, number);
        i64 way = find(l, b, number);
        if (way >= 0) {
            Line copy = take(l, b, (u64)way);
            l->invalidations++;
            if (!outer && l->inclusive)
                remove_copies(s, l, &copy);
            for (int part = 0; part < l->sub_blocks; part++) {
                if (!(copy.dirty >> part & 1))
                    continue;
                u64 low = number * l->line_bytes + (u64)part * l->block_bytes, end = low + (l->block_bytes - 1);
                if (!outer)
                    into->dirty |= 1;
                else if (low <= last && end >= first)
                    into->dirty |= blocks(outer, into->number, low < first ? first : low, end > last ? last : end);
            }
        }
        if (number == high)
            return;
    }
}

/* Remove what a line of an inclusive level covers from all caches that load from there. */
static void remove_copies(Sim *s, Level *l, Line *line)
{
    u64 base = line->number * l->line_bytes;
    for (int k = 0; k < s->count; k++)
        if (l->inner >> k & 1)
            remove_range(s, &s->levels[k], base, base + (l->line_bytes - 1), l, line);
    line->valid |= line->dirty;
}

/* ---- Requests -------------------------------------------------------------------------------------------------- */

/* The level that served the bytes; NULL is memory. */
INLINE int load(Sim *s, Level *l, u64 first, u64 last)
{
    if (!l) {
        s->memory_loads++;
        return s->count;
    }
    u64 number = quotient(&l->line, first);
    if (LIKELY(quotient(&l->line, last) == number))
        return load_line(s, l, number, first, last);
    return load_lines(s, l, first, last);
}

/* The level that took the bytes. */
INLINE int store(Sim *s, Level *l, u64 first, u64 last)
{
    if (!l) {
        s->memory_stores++;
        return s->count;
    }
    u64 number = quotient(&l->line, first);
    if (LIKELY(quotient(&l->line, last) == number))
        return store_line(s, l, number, first, last);
    return store_lines(s, l, first, last);
}

INLINE int plain_load(Sim *s, Level *l, u64 number)
{
    if (l)
        return plain_load_line(s, l, number);
    s->memory_loads++;
    return s->count;
}

INLINE int plain_store(Sim *s, Level *l, u64 number, int whole)
{
    if (l)
        return plain_store_line(s, l, number, whole);
    s->memory_stores++;
    return s->count;
}

NOINLINE int load_lines(Sim *s, Level *l, u64 first, u64 last)
{
    int served = l->index;
    u64 high = quotient(&l->line, last);
    for (u64 number = quotient(&l->line, first);; number++) {
        u64 base = number * l->line_bytes, end = base + (l->line_bytes - 1);
        int from = load_line(s, l, number, first > base ? first : base, last < end ? last : end);
        served = from > served ? from : served;
        if (number == high)
            return served;
    }
}

NOINLINE int store_lines(Sim *s, Level *l, u64 first, u64 last)
{
    int served = l->index;
    u64 high = quotient(&l->line, last);
    for (u64 number = quotient(&l->line, first);; number++) {
        u64 base = number * l->line_bytes, end = base + (l->line_bytes - 1);
        int from = store_line(s, l, number, first > base ? first : base, last < end ? last : end);
        served = from > served ? from : served;
        if (number == high)
            return served;
    }
}

/* ---- Insertion and eviction ------------------------------------------------------------------------------------ */

static void write_back(Sim *s, Level *l, const Line *line)
{
    u64 base = line->number * l->line_bytes;
    for (int b = 0; b < l->sub_blocks; b++)
        if (line->dirty >> b & 1) {
            u64 first = base + (u64)b * l->block_bytes;
            store(s, l->store_to, first, first + (l->block_bytes - 1));
        }
}

static void merge(Sim *s, Level *l, const Line *line);

static void accept_victim(Sim *s, Level *l, const Line *line)
{
    Line kept = *line;
    if (!l->write_back)
        kept.dirty = 0;
    if (find(l, set_of(l, line->number), line->number) < 0)
        l->store_misses++;
    else
        l->store_hits++;
    merge(s, l, &kept);
    if (!l->write_back)
        write_back(s, l, line);
}

/* Hand on a line that has left its set. */
NOINLINE void evict(Sim *s, Level *l, Line *line)
{
    if (l->inclusive)
        remove_copies(s, l, line);
    if (line->dirty)
        l->dirty_evictions++;
    else
        l->clean_evictions++;
    if (!l->victim)
        write_back(s, l, line);
    else if (line->dirty || l->clean_victims)
        accept_victim(s, l->victim, line);
}

/* Insert a line that is not there. What it displaces is handed on after it has taken its place, unless an inclusive
 * level could reach into this set meanwhile; nothing else could. */
NOINLINE void insert(Sim *s, Level *l, u64 *b, const Line *line)
{
    Line old;
    s->fills++;
    if (s->any_inclusive && is_full(l, b)) {
        old = take(l, b, victim_way(l, b));
        evict(s, l, &old);
    }
    if (place(l, b, line, &old))
        evict(s, l, &old);
}

/* Insert a line, or add its sub-blocks to those that are there. */
NOINLINE void merge(Sim *s, Level *l, const Line *line)
{
    u64 *b = set_of(l, line->number);
    i64 found = find(l, b, line->number);
    if (found < 0) {
        insert(s, l, b, line);
        return;
    }
    u64 way = touch(l, b, (u64)found);
    if (l->sectored)
        b[l->valid + way] |= line->valid;
    add_dirty(l, b, way, line->dirty);
}

/* ---- Loads and stores ------------------------------------------------------------------------------------------ */

NOINLINE void send_gathered(Sim *s, u64 number)
{
    for (int b = 0; b < s->buffer_count; b++)
        if (s->buffers[b].missing && s->buffers[b].line == number) {
            s->buffers[b].missing = 0;
            s->open_buffers--;
            s->streamed_parts++;
        }
}

/* What the victim level has of a line leaves it. */
static Line ask_victim_level(Level *v, u64 number, u64 absent)
{
    u64 *b = set_of(v, number);
    i64 way = find(v, b, number);
    Line line = {number, 0, 0};
    if (way >= 0)
        line = take(v, b, (u64)way);
    if (absent & ~line.valid)
        v->load_misses++;
    else
        v->load_hits++;
    return line;
}

/* Get the sub-blocks `absent`, insert them with the others `needed`; the level that served them. */
NOINLINE int fill(Sim *s, Level *l, u64 number, u64 needed, u64 absent, u64 dirty)
{
    int served = l->index;
    Line line = {number, 0, 0};
    if (l->victim && absent) {
        line = ask_victim_level(l->victim, number, absent);
        if (line.valid & absent)
            served = l->victim->index;
    }
    absent &= ~line.valid;
    u64 base = number * l->line_bytes;
    for (int b = 0; b < l->sub_blocks; b++)
        if (absent >> b & 1) {
            u64 first = base + (u64)b * l->block_bytes;
            int from = load(s, l->load_from, first, first + (l->block_bytes - 1));
            served = from > served ? from : served;
        }
    line.valid |= needed;
    line.dirty |= dirty;
    merge(s, l, &line);
    return served;
}

static int load_line(Sim *s, Level *l, u64 number, u64 first, u64 last)
{
    u64 needed = blocks(l, number, first, last), present = 0, *b = set_of(l, number);
    i64 way = find(l, b, number);
    if (way >= 0)
        present = valid_at(l, b, (u64)way);
    if (!(needed & ~present)) {
        l->load_hits++;
        touch(l, b, (u64)way);
        return l->index;
    }
    l->load_misses++;
    if (s->open_buffers && l->index == 0)
        send_gathered(s, number);
    return fill(s, l, number, needed, needed & ~present, 0);
}

static int store_line(Sim *s, Level *l, u64 number, u64 first, u64 last)
{
    u64 needed = blocks(l, number, first, last), present = 0, *b = set_of(l, number);
    i64 way = find(l, b, number);
    int served = l->index;
    if (way >= 0)
        present = valid_at(l, b, (u64)way);
    if (!(needed & ~present)) {
        l->store_hits++;
        u64 now = touch(l, b, (u64)way);
        if (l->write_back)
            add_dirty(l, b, now, needed);
    } else {
        l->store_misses++;
        if (s->open_buffers && l->index == 0)
            send_gathered(s, number);
        u64 absent = needed & ~present;
        if (l->index > 0)
            absent &= ~whole_blocks(l, number, first, last);
        if (absent && !l->write_allocate)
            return store(s, l->store_to, first, last);
        served = fill(s, l, number, needed, absent, l->write_back ? needed : 0);
    }
    if (!l->write_back)
        store(s, l->store_to, first, last);
    return served;
}

/* ---- What will be needed soon ---------------------------------------------------------------------------------- */

/* Fetch the set of a line into the caches of this machine. */
INLINE void fetch_set(const Level *l, u64 number)
{
    const u64 *b = set_of(l, number), *last = b + l->stride - 1;
    for (; b < last; b += HOST_LINE)
        __builtin_prefetch(b, 1);
    __builtin_prefetch(last, 1);
}

/* A line will be asked for: fetch its sets. Nothing that is simulated changes. */
INLINE void fetch_sets(const Sim *s, u64 number)
{
    for (const Level *l = s->levels; l < s->levels + s->count; l++)
        if (l->distant)
            fetch_set(l, number);
}

/* The same for the lines that will make room for it: fetch the sets to which they go. */
INLINE void fetch_victims(const Sim *s, u64 number)
{
    for (const Level *l = s->levels; l < s->levels + s->count; l++)
        if (l->queue && l->victim && l->victim->distant) {
            u64 key = set_of(l, number)[l->keys + l->ways - 1];
            if (key)
                fetch_set(l->victim, number_of(key));
        }
}

/* ---- Loads and stores in plain hierarchies --------------------------------------------------------------------- */

/* The same rules where it suffices to know the line, and of a store whether it covers all of it. */

static void plain_insert(Sim *s, Level *l, u64 *b, u64 number, u64 dirty);

INLINE void write_sent(Sim *s, const Level *l, u64 number, i64 row)
{
    SentList *sent = s->sent;
    if (LIKELY(sent == NULL) || l->index > 0 || sent->count == sent->room)
        return;
    sent->list[sent->count++] = (Sent){number - sent->from, row};
}

/* Take a line that the level inside gives up. */
NOINLINE void plain_accept_victim(Sim *s, Level *l, u64 number, u64 dirty)
{
    u64 *b = set_of(l, number), kept = l->write_back ? dirty : 0;
    i64 way = find(l, b, number);
    if (way < 0) {
        l->store_misses++;
        plain_insert(s, l, b, number, kept);
    } else {
        l->store_hits++;
        b[l->keys + touch(l, b, (u64)way)] |= kept;
    }
    if (dirty && !l->write_back)
        plain_store(s, l->store_to, number, 1);
}

static void plain_insert(Sim *s, Level *l, u64 *b, u64 number, u64 dirty)
{
    if (UNLIKELY(!l->queue)) {
        Line line = {number, 1, dirty};
        insert(s, l, b, &line);
        return;
    }
    u64 displaced = b[l->keys + l->ways - 1];
    s->fills++;
    push(l, b, number, dirty);
    if (!displaced)
        return;
    if (displaced & 1)
        l->dirty_evictions++;
    else
        l->clean_evictions++;
    if (l->victim != NULL) {
        if (displaced & 1 || l->clean_victims)
            plain_accept_victim(s, l->victim, number_of(displaced), displaced & 1);
    } else if (displaced & 1) {
        write_sent(s, l, number_of(displaced), -1);
        plain_store(s, l->store_to, number_of(displaced), 1);
    }
}

/* Get a line from below and insert it; the level that served it. */
INLINE int plain_fill(Sim *s, Level *l, u64 *b, u64 number, u64 dirty)
{
    int served;
    if (UNLIKELY(l->victim != NULL)) {
        Line line = ask_victim_level(l->victim, number, 1);
        dirty |= line.dirty;
        served = line.valid ? l->victim->index : plain_load(s, l->load_from, number);
    } else {
        write_sent(s, l, number, s->asking - s->served);
        served = plain_load(s, l->load_from, number);
    }
    plain_insert(s, l, b, number, dirty);
    return served;
}

NOINLINE int plain_miss_load(Sim *s, Level *l, u64 *b, u64 number)
{
    l->load_misses++;
    if (UNLIKELY(s->open_buffers) && l->index == 0)
        send_gathered(s, number);
    return plain_fill(s, l, b, number, 0);
}

static int plain_load_line(Sim *s, Level *l, u64 number)
{
    u64 *b = set_of(l, number);
    i64 way = find(l, b, number);
    if (way < 0)
        return plain_miss_load(s, l, b, number);
    l->load_hits++;
    touch(l, b, (u64)way);
    return l->index;
}

NOINLINE int plain_miss_store(Sim *s, Level *l, u64 *b, u64 number, int whole)
{
    int served = l->index;
    l->store_misses++;
    if (UNLIKELY(s->open_buffers) && l->index == 0)
        send_gathered(s, number);
    if (whole && l->index > 0)
        plain_insert(s, l, b, number, (u64)l->write_back);
    else if (l->write_allocate)
        served = plain_fill(s, l, b, number, (u64)l->write_back);
    else
        return plain_store(s, l->store_to, number, whole);
    if (!l->write_back)
        plain_store(s, l->store_to, number, whole);
    return served;
}

static int plain_store_line(Sim *s, Level *l, u64 number, int whole)
{
    u64 *b = set_of(l, number);
    i64 way = find(l, b, number);
    if (way < 0)
        return plain_miss_store(s, l, b, number, whole);
    l->store_hits++;
    u64 now = touch(l, b, (u64)way);
    if (LIKELY(l->write_back))
        b[l->keys + now] |= 1;
    else
        plain_store(s, l->store_to, number, whole);
    return l->index;
}

/* ---- Streaming stores ------------------------------------------------------------------------------------------ */

static Buffer *open_buffer(const Sim *s, u64 number)
{
    for (int b = 0; b < s->buffer_count; b++)
        if (s->buffers[b].missing && s->buffers[b].line == number)
            return &s->buffers[b];
    return NULL;
}

/* The buffer that gathers a line; if there is none a free one, or the one that was written to longest ago. */
static Buffer *gathering(Sim *s, u64 number)
{
    Buffer *buffer = open_buffer(s, number);
    if (buffer)
        return buffer;
    buffer = &s->buffers[0];
    for (int b = 0; b < s->buffer_count && buffer->missing; b++)
        if (!s->buffers[b].missing || s->buffers[b].stamp < buffer->stamp)
            buffer = &s->buffers[b];
    if (buffer->missing)
        s->streamed_parts++;
    else
        s->open_buffers++;
    u64 bytes = s->levels[0].line_bytes;
    memset(buffer->written, 0, (bytes + 63) / 64 * 8);
    buffer->line = number;
    buffer->missing = bytes;
    buffer->fills = s->fills - 1; /* copies have not been looked for */
    return buffer;
}

/* Mark bytes of a buffer as written; the numbers count from the beginning of its line. */
static void gather(Buffer *buffer, u64 first, u64 last)
{
    for (u64 word = first >> 6; word <= last >> 6; word++) {
        u64 low = word << 6 > first ? 0 : first & 63, high = (word << 6) + 63 < last ? 63 : last & 63;
        u64 mask = (((u64)2 << high) - 1) & ~(((u64)1 << low) - 1);
        buffer->missing -= (u64)__builtin_popcountll(mask & ~buffer->written[word]);
        buffer->written[word] |= mask;
    }
}

static int stream_line(Sim *s, u64 number, u64 first, u64 last)
{
    u64 base = number * s->levels[0].line_bytes;
    Buffer *buffer = gathering(s, number);
    if (buffer->fills != s->fills) { /* something was inserted since copies were last removed */
        Line copies = {0, 0, 0};
        for (int k = s->count - 1; k >= 0; k--)
            remove_range(s, &s->levels[k], base, base + (s->levels[0].line_bytes - 1), NULL, &copies);
        s->memory_stores += copies.dirty;
        buffer->fills = s->fills;
    }
    buffer->stamp = ++s->clock;
    gather(buffer, first - base, last - base);
    if (!buffer->missing) {
        s->streamed_lines++;
        s->open_buffers--;
    }
    return s->count;
}

/* ---- Accesses -------------------------------------------------------------------------------------------------- */

INLINE int request(Sim *s, int kind, u64 number, u64 first, u64 last)
{
    Level *l = s->levels;
    if (kind == STREAM)
        return stream_line(s, number, first, last);
    if (LIKELY(s->plain)) {
        int whole = last - first == l->line_bytes - 1;
        return kind == LOAD ? plain_load_line(s, l, number) : plain_store_line(s, l, number, whole);
    }
    return kind == LOAD ? load_line(s, l, number, first, last) : store_line(s, l, number, first, last);
}

NOINLINE void execute(Sim *s, int kind, u64 first, u64 last, u64 *served)
{
    const Level *l = s->levels;
    u64 low = quotient(&l->line, first), high = quotient(&l->line, last);
    s->asking = served;
    if (LIKELY(low == high)) {
        served[request(s, kind, low, first, last)]++;
        return;
    }
    for (u64 number = low;; number++) {
        u64 base = number * l->line_bytes, end = base + (l->line_bytes - 1);
        served[request(s, kind, number, first > base ? first : base, last < end ? last : end)]++;
        if (number == high)
            return;
    }
}

static u64 *served_row(Sim *s, i64 rows)
{
    if (rows > s->rows) {
        u64 *grown = calloc((size_t)rows * (size_t)(s->count + 1), sizeof(u64));
        if (!grown)
            return NULL;
        if (s->served)
            memcpy(grown, s->served, (size_t)s->rows * (size_t)(s->count + 1) * sizeof(u64));
        free(s->served);
        s->served = grown;
        s->rows = rows;
    }
    if (rows > s->used_rows)
        s->used_rows = rows;
    return s->served;
}
