/* Programs: forms, bounds, index arrays, and the accesses of the innermost body. */

#include "caches.h"

/* ---- Programs -------------------------------------------------------------------------------------------------- */

/* A program comes as one array of words, which the Walk copies; forms and bounds point into it. */
enum { UNIFORM, BANDED, TABLE, DIGITS };

typedef struct {
    const i64 *words; /* constant, coefficients */
} Form;

typedef struct {
    const i64 *words; /* outermost is min?, groups, then per group: forms, then the forms */
} Bound;

typedef struct {
    i64 step;
    Bound start, stop;
} Loop;

typedef struct {
    int kind;
    i64 scale, width;
    u64 extent, positions, seed, length;
    const i64 *table;
    i64 least, greatest; /* of the values */
    Form position;
} Indirection;

typedef struct {
    int kind, depth, after, indirections;
    u64 size;
    Form address;
    Indirection *indirect;
} Reference;

/* A reference of the innermost body while it runs. */
typedef struct {
    u64 address, stride, last; /* address at iteration `base` of the walk; last: size - 1 */
    u64 base, room;            /* where the line touched last begins, and the greatest distance from there within it */
    u64 *block, *key, want, way; /* where its key stood, and the key, with 1 below it; see repeats() */
    u64 *served;               /* its counters */
    u64 hits;                  /* in the first level, not yet in the counters */
    u64 low, high;             /* the lines it touches */
    u64 until, since;          /* the iteration at which they change; up to which hits have been added */
    u64 clean;                 /* 1 unless it stores */
    Divisor pace;              /* the stride without its sign */
    u64 ahead;                 /* bytes that it moves in AHEAD iterations; 0: by few lines, which need no fetching */
    u64 usual_period;          /* see find_period */
    u64 period, step;          /* the line moves by `step` every `period` iterations; 0: not so regular */
    i64 *position, *position_step;
    const Reference *reference;
    int kind, number, irregular;
} Inner;

/* An iteration in which references go to other lines, of a program where that repeats itself. */
typedef struct {
    u64 at;
    Inner **moving, **touched, **stop; /* the references that move, from `touched` on those that are concerned */
    int apart;                         /* those are in different sets, as far as they touch different lines */
} Event;

enum { FIRST_COUNTERS = 6 };

/* The last row that was executed, and how it repeats itself; see repeating.h. */
typedef struct {
    u64 *before, *now; /* keys of the first level before it, and before the one that is looked at */
    u64 *places;       /* of the references, in bytes from the beginning of the line of the first one on */
    u64 *hits;         /* of the references in the first level */
    u64 counts[FIRST_COUNTERS], iterations, line, delta;
    SentList sent;
    int known, away, misfits, rests; /* away: the lines of the first level are to be put where they are by now */
} Rows;

enum { MOST_PLANNED = 64 }; /* references of a program for which events are planned */
enum { ENTER, ITERATE, LEAVE };
enum { BUDGET = 0, SWEEP = 1, BRINK = 2, ADDRESS = -1, BOUND = -2, MEMORY = -3 };

typedef struct {
    Sim *sim;
    i64 *words, *tables, *values, *positions;
    u64 *left;
    Loop *loops;
    Reference *references;
    Indirection *indirections;
    Inner *inner, **planned;
    Event *events;
    Rows rows;
    int depth, reference_count, inner_count, phase, at, resumed, skip_before, irregular, stores, streams;
    u64 base; /* iteration of this run to which the addresses of `inner` belong */
    u64 limit; /* last address */
    i64 culprit;
} Walk;

static i128 form_value(const Walk *w, Form form, int depth)
{
    i128 value = form.words[0];
    for (int d = 0; d < depth; d++)
        value += (i128)form.words[1 + d] * w->values[d]; /* programs.py limits coefficients to 2^60 and loops to 15 */
    return value;
}

/* 0 if the value needs more than 64 bits */
static int bound_value(const Walk *w, Bound bound, int depth, i64 *result)
{
    const i64 *word = bound.words;
    i64 outer_min = *word++, groups = *word++;
    i128 value = 0;
    for (i64 g = 0; g < groups; g++) {
        i128 inner = 0;
        i64 forms = *word++;
        for (i64 f = 0; f < forms; f++, word += 1 + w->depth) {
            i128 each = form_value(w, (Form){word}, depth);
            inner = f == 0 || (outer_min ? each > inner : each < inner) ? each : inner;
        }
        value = g == 0 || (outer_min ? inner < value : inner > value) ? inner : value;
    }
    if (value > INT64_MAX || value < -INT64_MAX)
        return 0;
    *result = (i64)value;
    return 1;
}

static u64 trips(i64 start, i64 stop, i64 step)
{
    i128 distance = step > 0 ? (i128)stop - start : (i128)start - stop;
    u64 size = step > 0 ? (u64)step : 0 - (u64)step;
    return distance <= 0 ? 0 : (u64)((distance + (size - 1)) / size);
}

static u64 floor_modulo(i64 value, u64 modulus)
{
    if (value >= 0)
        return (u64)value % modulus;
    return modulus - 1 - (u64)(-(value + 1)) % modulus;
}

static i64 floor_quotient(i64 value, u64 divisor)
{
    if (value >= 0)
        return (i64)((u64)value / divisor);
    return -1 - (i64)((u64)(-(value + 1)) / divisor);
}

static i64 indirect_value(const Indirection *x, i64 position)
{
    if (x->kind == TABLE)
        return x->table[floor_modulo(position, x->length)];
    if (x->kind == DIGITS)
        return (i64)floor_modulo(floor_quotient(position, x->positions), x->extent);
    u64 spread = mix(x->seed ^ (u64)position);
    if (x->kind == UNIFORM)
        return (i64)high_product(spread, x->extent);
    u64 entries = x->positions ? x->positions : x->extent;
    i64 middle = (i64)((u128)floor_modulo(position, entries) * x->extent / entries);
    i64 offset = (i64)high_product(spread, 2 * (u64)x->width + 1) - x->width, last = (i64)x->extent - 1;
    if (offset < -middle)
        return 0;
    return offset > last - middle ? last : middle + offset;
}

/* Whether the address fits, whatever the index arrays hold; the affine part modulo 2^64. */
static int check_address(Walk *w, int number, int depth, u64 *affine)
{
    const Reference *r = &w->references[number];
    i128 value = form_value(w, r->address, depth), low = value, high = value;
    for (int i = 0; i < r->indirections; i++) {
        const Indirection *x = &r->indirect[i];
        i128 a = (i128)x->scale * x->least, b = (i128)x->scale * x->greatest;
        low += a < b ? a : b;
        high += a < b ? b : a;
    }
    *affine = (u64)value;
    if (low < 0 || high > (i128)w->limit - (i128)(r->size - 1)) {
        w->culprit = number;
        return 0;
    }
    return 1;
}

static u64 indirect_part(const Walk *w, const Reference *r, int depth)
{
    u64 sum = 0;
    for (int i = 0; i < r->indirections; i++) {
        i64 position = (i64)form_value(w, r->indirect[i].position, depth);
        sum += (u64)r->indirect[i].scale * (u64)indirect_value(&r->indirect[i], position);
    }
    return sum;
}

static void forget(Walk *w);

/* Execute the references between two loops. */
static int between(Walk *w, int depth, int after)
{
    for (int n = 0; n < w->reference_count; n++) {
        const Reference *r = &w->references[n];
        if (r->depth != depth || r->after != after)
            continue;
        u64 address;
        if (!check_address(w, n, depth, &address))
            return ADDRESS;
        address += indirect_part(w, r, depth);
        forget(w);
        w->sim->accesses++;
        execute(w->sim, r->kind, address, address + (r->size - 1), w->sim->served + n * (w->sim->count + 1));
    }
    return 0;
}

/* Addresses of the innermost body at the current iteration; forms have their extremes at the ends of the loop. */
static int prepare_inner(Walk *w)
{
    int depth = w->depth, innermost = depth - 1;
    const Loop *loop = &w->loops[innermost];
    i64 first = w->values[innermost], steps = (i64)(w->left[innermost] - 1);
    for (int i = 0; i < w->inner_count; i++) {
        Inner *in = &w->inner[i];
        u64 end;
        w->values[innermost] = first + steps * loop->step;
        int fits = check_address(w, in->number, depth, &end);
        w->values[innermost] = first;
        if (!fits || !check_address(w, in->number, depth, &in->address))
            return ADDRESS;
        const Reference *r = in->reference;
        if (r->indirections && !in->irregular)
            in->address += indirect_part(w, r, depth);
        else
            for (int x = 0; x < r->indirections; x++)
                in->position[x] = (i64)form_value(w, r->indirect[x].position, depth);
    }
    return 0;
}

INLINE u64 indirect_address(const Inner *in)
{
    const Reference *r = in->reference;
    u64 address = in->address;
    for (int x = 0; x < r->indirections; x++)
        address += (u64)r->indirect[x].scale * (u64)indirect_value(&r->indirect[x], in->position[x]);
    return address;
}

/* Execute an access to the line of the access before, if it is still in the same way. */
INLINE int repeats(const Level *l, Inner *in, u64 first, const int policy)
{
    if (UNLIKELY(first - in->base > in->room) || UNLIKELY((*in->key | 1) != in->want))
        return 0;
    if (policy == PLRU)
        turn_tree(l, in->block, in->way);
    if (in->kind == STORE)
        *in->key |= 1;
    return 1;
}

/* Execute an access to another line, if it is a hit of one line, under LRU and MRU of the first one of its set. */
INLINE int hits_quickly(const Level *l, Inner *in, u64 first, const int policy)
{
    u64 number = quotient(&l->line, first), base = number * l->line_bytes, way = 0;
    in->want = 0;
    if (UNLIKELY(first - base + in->last >= l->line_bytes))
        return 0;
    in->block = set_of(l, number);
    if (policy != LRU) {
        i64 found = find(l, in->block, number);
        if (found < 0)
            return 0;
        way = (u64)found;
    }
    in->base = base;
    in->room = l->line_bytes - 1 - in->last;
    in->want = key_of(number);
    in->key = in->block + l->keys + way;
    in->way = way;
    return repeats(l, in, first, policy);
}

/* Execute iterations. All accesses are first counted as a hit of one line; those that `execute` counts itself are taken
 * off again. */
INLINE void run_quickly(Sim *s, Inner *inner, int count, u64 iterations, const int policy)
{
    const Level *l = s->levels;
    for (int i = 0; i < count; i++) {
        inner[i].hits += iterations;
        inner[i].want = 0;
    }
    for (u64 it = 0; it < iterations; it++)
        for (Inner *in = inner; in < inner + count; in++) {
            u64 first = in->address;
            in->address = first + in->stride;
            if (LIKELY(repeats(l, in, first, policy)) || hits_quickly(l, in, first, policy))
                continue;
            in->hits--;
            u64 fills = s->fills;
            execute(s, in->kind, first, first + in->last, in->served);
            if (in->ahead && s->fills > fills + 1) {
                fetch_sets(s, quotient(&l->line, first + in->ahead));
                fetch_victims(s, quotient(&l->line, first + in->ahead / 2));
            }
        }
}

static void run_generally(Walk *w, u64 iterations)
{
    Sim *s = w->sim;
    for (u64 it = 0; it < iterations; it++)
        for (int i = 0; i < w->inner_count; i++) {
            Inner *in = &w->inner[i];
            u64 first = in->irregular ? indirect_address(in) : in->address;
            execute(s, in->kind, first, first + in->last, in->served);
            in->address += in->stride;
            for (int x = 0; in->irregular && x < in->reference->indirections; x++)
                in->position[x] = (i64)((u64)in->position[x] + (u64)in->position_step[x]);
        }
}

/* Whether hits in the first level change nothing but its order and that a store modifies the line. */
static int has_quick_hits(const Walk *w)
{
    const Level *l = w->sim->levels;
    return !w->irregular && !w->streams && !l->sectored && (l->write_back || !w->stores);
}

static void run_all(Walk *w, u64 iterations)
{
    int policy = w->sim->levels->policy;
    if (!has_quick_hits(w))
        run_generally(w, iterations);
    else if (policy == LRU || policy == MRU)
        run_quickly(w->sim, w->inner, w->inner_count, iterations, LRU);
    else if (policy == PLRU)
        run_quickly(w->sim, w->inner, w->inner_count, iterations, PLRU);
    else
        run_quickly(w->sim, w->inner, w->inner_count, iterations, FIFO);
    w->base += iterations;
}
