/* The compiled engine of kernmodel.cachesim: the walk over the loops of a program, traces, and the functions for ctypes.
 *
 * The rules are those of reference.py, which says them in words; the tests hold both against each other, counter by
 * counter. A plain shared library: no Python headers, no global state, all memory belongs to a Sim or a Walk. */

#include "repeating.h"

/* ---- The walk over the loops ----------------------------------------------------------------------------------- */

/* Enter the loop `at`: what comes before it, its bounds, its first iteration. */
static int enter(Walk *w)
{
    int d = w->at, failed = 0;
    if (!(w->resumed && w->skip_before) && (failed = between(w, d, 0)))
        return failed;
    i64 start, stop;
    if (!bound_value(w, w->loops[d].start, d, &start) || !bound_value(w, w->loops[d].stop, d, &stop))
        return BOUND;
    if (w->resumed)
        start = w->values[d];
    w->values[d] = start;
    w->left[d] = trips(start, stop, w->loops[d].step);
    if (!w->left[d])
        w->phase = LEAVE;
    else if (d < w->depth - 1)
        w->at++;
    else {
        w->phase = ITERATE;
        w->resumed = 0;
        return prepare_inner(w);
    }
    return 0;
}

/* Leave the loop `at`: what comes after it, then the next iteration of the loop outside. */
static int leave(Walk *w)
{
    int failed = between(w, w->at, 1);
    if (failed || w->at == 0)
        return failed ? failed : SWEEP;
    int d = --w->at;
    if (--w->left[d]) {
        w->values[d] += w->loops[d].step;
        w->at++;
        w->phase = ENTER;
    }
    return 0;
}

static u64 iterate(Walk *w, u64 most)
{
    int d = w->depth - 1;
    u64 count = most < w->left[d] ? most : w->left[d];
    run_inner(w, count);
    w->left[d] -= count;
    if (w->left[d])
        w->values[d] += (i64)count * w->loops[d].step;
    else
        w->phase = LEAVE;
    return count;
}

static int run_loops(Walk *w, u64 limit, u64 budget, u64 *done)
{
    u64 work = 0, each = (u64)w->inner_count + 1;
    *done = 0;
    for (;;) {
        int state = 0;
        if (w->phase == ITERATE) {
            if (*done == limit)
                return BRINK;
            u64 share = work < budget ? (budget - work) / each + 1 : 1;
            u64 count = iterate(w, limit - *done < share ? limit - *done : share);
            *done += count;
            work += count * each;
        } else {
            state = w->phase == ENTER ? enter(w) : leave(w);
            work += each;
        }
        if (state)
            return state;
        if (work >= budget)
            return BUDGET;
    }
}

/* Execute up to `limit` inner iterations, and what comes before the next one. `done` counts them. */
API int km_walk_run(Walk *w, u64 limit, u64 budget, u64 *done)
{
    int state = run_loops(w, limit, budget, done);
    forget(w); /* others may execute something next */
    return state;
}

/* Begin a sweep: at its start, or (values given) at an iteration. */
API void km_walk_begin(Walk *w, const i64 *values, int fresh)
{
    w->phase = ENTER;
    w->at = 0;
    w->resumed = values != NULL;
    w->skip_before = !fresh;
    if (values)
        memcpy(w->values, values, (size_t)w->depth * sizeof(i64));
}

API void km_walk_values(const Walk *w, i64 *values) { memcpy(values, w->values, (size_t)w->depth * sizeof(i64)); }

API i64 km_walk_culprit(const Walk *w) { return w->culprit; }

API void km_walk_free(Walk *w)
{
    if (!w)
        return;
    free(w->words);
    free(w->tables);
    free(w->values);
    free(w->positions);
    free(w->left);
    free(w->loops);
    free(w->references);
    free(w->indirections);
    free(w->inner);
    free(w->planned);
    free(w->events);
    free(w->rows.before);
    free(w->rows.now);
    free(w->rows.places);
    free(w->rows.hits);
    free(w->rows.sent.list);
    free(w);
}

static const i64 *read_bound(const Walk *w, const i64 *word, Bound *bound)
{
    bound->words = word;
    i64 groups = word[1];
    for (word += 2; groups > 0; groups--)
        word += 1 + word[0] * (1 + w->depth);
    return word;
}

static const i64 *read_indirection(const Walk *w, const i64 *word, Indirection *x)
{
    *x = (Indirection){.kind = (int)word[0], .scale = word[1], .extent = (u64)word[2], .width = word[3],
                       .positions = (u64)word[4], .seed = (u64)word[5], .table = w->tables + word[6],
                       .length = (u64)word[7], .least = word[8], .greatest = word[9], .position = {word + 10}};
    return word + 11 + w->depth;
}

static const i64 *read_reference(Walk *w, const i64 *word, int number, Indirection **free_indirection)
{
    Reference *r = &w->references[number];
    *r = (Reference){.kind = (int)word[0], .size = (u64)word[1], .depth = (int)word[2], .after = (int)word[3],
                     .indirections = (int)word[4], .address = {word + 5}, .indirect = *free_indirection};
    word += 6 + w->depth;
    for (int i = 0; i < r->indirections; i++)
        word = read_indirection(w, word, (*free_indirection)++);
    return word;
}

/* How a reference moves over the lines of the first level, see find_period. */
static void find_pace(const Walk *w, Inner *in)
{
    u64 line = w->sim->levels->line_bytes, back = 0 - in->stride;
    u64 size = (i64)in->stride < 0 ? back : in->stride;
    if (size)
        in->pace = divisor(size);
    if (!size || in->kind == STREAM)
        return;
    in->ahead = size > FEW_LINES * line ? AHEAD * in->stride : 0;
    in->step = size > line ? size / line : 1;
    if (size == back)
        in->step = 0 - in->step;
    if (line % size == 0)
        in->usual_period = line / size;
    else if (size % line == 0)
        in->usual_period = 1;
}

/* The references of the innermost body, with the steps of their addresses and positions. */
static void collect_inner(Walk *w)
{
    i64 step = w->loops[w->depth - 1].step, *position = w->positions;
    for (int n = 0; n < w->reference_count; n++) {
        const Reference *r = &w->references[n];
        if (r->depth != w->depth)
            continue;
        Inner *in = &w->inner[w->inner_count++];
        in->reference = r;
        in->number = n;
        in->kind = r->kind;
        in->clean = r->kind != STORE;
        in->key = w->sim->levels[0].blocks; /* some key; `want` is 0, which no key is */
        in->last = r->size - 1;
        in->stride = (u64)r->address.words[w->depth] * (u64)step;
        find_pace(w, in);
        in->position = position;
        in->position_step = position + r->indirections;
        position += 2 * r->indirections;
        for (int x = 0; x < r->indirections; x++) {
            i64 coefficient = r->indirect[x].position.words[w->depth];
            in->position_step[x] = (i64)((u64)coefficient * (u64)step);
            in->irregular |= coefficient != 0;
        }
        w->irregular |= in->irregular;
        w->stores |= r->kind == STORE;
        w->streams |= r->kind == STREAM;
    }
}

static int walk_memory(Walk *w, i64 words, i64 tables, i64 indirections)
{
    w->words = malloc((size_t)words * sizeof(i64));
    w->tables = malloc((size_t)(tables + 1) * sizeof(i64));
    w->values = calloc((size_t)w->depth, sizeof(i64));
    w->left = calloc((size_t)w->depth, sizeof(u64));
    w->positions = calloc((size_t)(2 * indirections + 1), sizeof(i64));
    w->loops = calloc((size_t)w->depth, sizeof(Loop));
    w->references = calloc((size_t)w->reference_count + 1, sizeof(Reference));
    w->indirections = calloc((size_t)indirections + 1, sizeof(Indirection));
    w->inner = calloc((size_t)w->reference_count + 1, sizeof(Inner));
    w->planned = calloc((size_t)MOST_PLANNED * (MOST_PLANNED + 1), sizeof(Inner *));
    w->events = calloc(MOST_PLANNED + 1, sizeof(Event));
    return w->words && w->tables && w->values && w->left && w->positions && w->loops && w->references &&
           w->indirections && w->inner && w->planned && w->events;
}

/* words: loops, references, indirections, last address; then the loops; then the references. */
API Walk *km_walk_new(Sim *s, const i64 *words, i64 count, const i64 *tables, i64 table_count)
{
    Walk *w = calloc(1, sizeof(Walk));
    if (!w)
        return NULL;
    w->sim = s;
    w->depth = (int)words[0];
    w->reference_count = (int)words[1];
    w->limit = (u64)words[3];
    if (!walk_memory(w, count, table_count, words[2])) {
        km_walk_free(w);
        return NULL;
    }
    memcpy(w->words, words, (size_t)count * sizeof(i64));
    if (table_count)
        memcpy(w->tables, tables, (size_t)table_count * sizeof(i64));
    const i64 *word = w->words + 4;
    for (int d = 0; d < w->depth; d++) {
        w->loops[d].step = *word++;
        word = read_bound(w, word, &w->loops[d].start);
        word = read_bound(w, word, &w->loops[d].stop);
    }
    Indirection *free_indirection = w->indirections;
    for (int n = 0; n < w->reference_count; n++)
        word = read_reference(w, word, n, &free_indirection);
    collect_inner(w);
    return w;
}

/* See that there are counters for so many references. */
API int km_reserve(Sim *s, i64 rows) { return served_row(s, rows) != NULL; }

/* ---- Traces ---------------------------------------------------------------------------------------------------- */

/* The first access that cannot be executed, or -1. `negative`: addresses (bit 0) or sizes (bit 1) are signed. */
API i64 km_first_refused(const u8 *kinds, const u64 *addresses, const u64 *sizes, i64 count, int negative, u64 limit)
{
    for (i64 i = 0; i < count; i++) {
        u64 address = addresses[i], size = sizes[i];
        if (kinds[i] > STREAM || size == 0 || size - 1 > limit || address > limit - (size - 1) ||
            ((negative & 1) && (i64)address < 0) || ((negative & 2) && (i64)size < 0))
            return i;
    }
    return -1;
}

API void km_trace(Sim *s, const u8 *kinds, const u64 *addresses, const u64 *sizes, i64 count)
{
    served_row(s, 1);
    for (i64 i = 0; i < count; i++)
        execute(s, kinds[i], addresses[i], addresses[i] + (sizes[i] - 1), s->served);
    s->accesses += (u64)count;
}

/* ---- Making and counting --------------------------------------------------------------------------------------- */

enum { FIELDS = 13 };

static Level *linked(Sim *s, i64 index) { return index < 0 || index == s->count ? NULL : &s->levels[index]; }

/* What a touch of each way does to a tree of one word. */
static int tree_turns(Level *l)
{
    if (l->policy != PLRU || l->leaves > 64)
        return 1;
    l->turns = calloc((size_t)(2 * l->ways), sizeof(u64));
    for (u64 way = 0; l->turns && way < l->ways; way++)
        for (u64 node = l->leaves + way; node > 1; node >>= 1) {
            u64 bit = (u64)1 << (node >> 1);
            l->turns[2 * way] |= bit;
            l->turns[2 * way + 1] |= node & 1 ? 0 : bit;
        }
    return l->turns != NULL;
}

/* The blocks of all sets; memory that no line has come to yet costs nothing. */
static int level_memory(Level *l)
{
    l->keys = (l->ways + 7) / 8;
    l->stride = l->keys + l->ways;
    if (l->sectored) {
        l->valid = l->stride;
        l->dirty = l->stride + l->ways;
        l->stride += 2 * l->ways;
    }
    l->tree = l->stride;
    if (l->policy == PLRU)
        l->stride += (l->leaves + 63) / 64;
    l->lines = l->stride;
    if (!l->ordered)
        l->stride++;
    l->distant = l->sets * l->stride >= HOST_DISTANT;
    l->blocks = calloc((size_t)(l->sets * l->stride), sizeof(u64));
    return l->blocks != NULL && tree_turns(l);
}

static int new_level(Sim *s, int k, const i64 *field, u64 generator)
{
    Level *l = &s->levels[k];
    *l = (Level){.sets = (u64)field[0], .ways = (u64)field[1], .line_bytes = (u64)field[2],
                 .sub_blocks = (int)field[3], .policy = (int)field[4], .write_back = (int)field[5],
                 .write_allocate = (int)field[6], .load_from = linked(s, field[7]), .store_to = linked(s, field[8]),
                 .victim = linked(s, field[9]), .clean_victims = (int)field[10], .inclusive = (int)field[11],
                 .hashed = (int)field[12], .index = k, .generator = generator};
    l->block_bytes = l->line_bytes / (u64)l->sub_blocks;
    l->line = divisor(l->line_bytes);
    l->set = divisor(l->sets);
    l->sectored = l->sub_blocks > 1;
    l->recency = l->policy == LRU || l->policy == MRU;
    l->queue = l->policy == LRU || l->policy == FIFO;
    l->masked = l->set.shift >= 0 && !l->hashed;
    l->ordered = l->policy == LRU || l->policy == FIFO || l->policy == MRU;
    for (l->leaves = 1; l->leaves < l->ways;)
        l->leaves <<= 1;
    for (Level *outer = l->load_from; outer; outer = outer->load_from)
        outer->inner |= (u64)1 << k;
    s->any_inclusive |= l->inclusive;
    return level_memory(l);
}

API void km_free(Sim *s)
{
    if (!s)
        return;
    for (int k = 0; s->levels && k < s->count; k++) {
        free(s->levels[k].blocks);
        free(s->levels[k].turns);
    }
    for (int b = 0; s->buffers && b < s->buffer_count; b++)
        free(s->buffers[b].written);
    free(s->buffers);
    free(s->levels);
    free(s->served);
    free(s->marks);
    free(s);
}

/* fields: FIELDS words a level, see new_level; generators: the state of each level's random numbers. */
API Sim *km_new(const i64 *fields, int count, const u64 *generators, int buffers, int skip)
{
    Sim *s = calloc(1, sizeof(Sim));
    if (!s)
        return NULL;
    s->count = count;
    s->skip = skip;
    s->buffer_count = buffers;
    s->levels = calloc((size_t)count, sizeof(Level));
    s->buffers = calloc((size_t)buffers, sizeof(Buffer));
    int made = s->levels && s->buffers;
    for (int k = count - 1; made && k >= 0; k--)
        made = new_level(s, k, fields + k * FIELDS, generators[k]); /* outermost first, as `inner` is set from inside */
    s->plain = made && !s->any_inclusive;
    for (int k = 0; made && k < count; k++)
        s->plain &= !s->levels[k].sectored && s->levels[k].line_bytes == s->levels[0].line_bytes;
    size_t bytes = made ? (size_t)(s->levels[0].line_bytes + 63) / 64 * 8 : 0;
    for (int b = 0; made && b < buffers; b++)
        made = (s->buffers[b].written = calloc(bytes, 1)) != NULL;
    if (made)
        made = (s->marks = calloc((size_t)s->levels[0].sets, sizeof(u64))) != NULL && served_row(s, 1) != NULL;
    if (!made) {
        km_free(s);
        return NULL;
    }
    s->used_rows = 0;
    return s;
}

API void km_reset(Sim *s)
{
    for (int k = 0; k < s->count; k++) {
        Level *l = &s->levels[k];
        l->load_hits = l->load_misses = l->store_hits = l->store_misses = 0;
        l->dirty_evictions = l->clean_evictions = l->invalidations = 0;
    }
    s->memory_loads = s->memory_stores = s->streamed_lines = s->streamed_parts = s->accesses = 0;
    memset(s->served, 0, (size_t)s->rows * (size_t)(s->count + 1) * sizeof(u64));
    s->used_rows = 0;
}

API void km_flush(Sim *s)
{
    for (int b = 0; b < s->buffer_count; b++)
        s->buffers[b].missing = 0;
    s->streamed_parts += (u64)s->open_buffers;
    s->open_buffers = 0;
}

/* Seven counters a level, then five of the whole. */
API void km_counters(const Sim *s, u64 *out)
{
    for (int k = 0; k < s->count; k++) {
        const Level *l = &s->levels[k];
        u64 counts[] = {l->load_hits,       l->load_misses,     l->store_hits,   l->store_misses,
                        l->dirty_evictions, l->clean_evictions, l->invalidations};
        memcpy(out, counts, sizeof counts);
        out += 7;
    }
    u64 whole[] = {s->memory_loads, s->memory_stores, s->streamed_lines, s->streamed_parts, s->accesses};
    memcpy(out, whole, sizeof whole);
}

API i64 km_served_rows(const Sim *s) { return s->used_rows; }

API void km_served(const Sim *s, u64 *out)
{
    memcpy(out, s->served, (size_t)s->used_rows * (size_t)(s->count + 1) * sizeof(u64));
}

#ifndef KERNMODEL_SOURCES
#define KERNMODEL_SOURCES ""
#endif

/* The hash of the sources that the library was made of, "" if it was made by hand. */
API const char *km_sources(void) { return KERNMODEL_SOURCES; }
