/* Rows of the innermost loop that repeat one another a whole number of lines further on. */

#include "skipping.h"

/* What the first level does depends on the accesses and on its own lines alone: what it sends for comes to it wherever
 * that is found. So if a row asks for the same bytes as the row before it, `delta` lines further on, and the first level
 * holds the same lines before both, so many lines further on, then it sends for the same lines, gives up the same
 * modified lines, and holds the same lines afterwards, all `delta` lines further on. Sets are told by the low bits of a
 * line's number, which move along. Of such a row only what the first level sends is executed, from a list that was
 * written while the row before was; its own lines stay where they are until somebody asks for them. */

enum { MOST_LINES = 4096 };                    /* of a first level that is compared */
enum { MOST_SENT = 1 << 16 };                  /* lines that a row that is repeated may send for or give up */
enum { PIECE = 1024 };                         /* iterations of a row that long ones are cut into */
/* Rows in a row that repeat none, after which so many are let be, each time twice as many, up to so many times. */
enum { MISFITS = 24, REST = 40, MOST_RESTS = 8 };
static const u64 MIDDLE = (u64)1 << 62;        /* a key that is told from a line: never 0, which is a free way */

/* The keys of the first level, set after set from that of a line on, with lines counted from it. */
static void keys_from(const Level *l, u64 line, u64 *keys)
{
    for (u64 set = 0; set < l->sets; set++) {
        const u64 *own = l->blocks + ((set + line) & l->set.mask) * l->stride + l->keys;
        for (u64 way = 0; way < l->ways; way++, own++)
            *keys++ = *own ? *own - 2 * line + MIDDLE : 0;
    }
}

static void put_keys(const Level *l, u64 line, const u64 *keys)
{
    for (u64 set = 0; set < l->sets; set++) {
        u64 *b = l->blocks + ((set + line) & l->set.mask) * l->stride;
        for (u64 way = 0; way < l->ways; way++, keys++) {
            b[l->keys + way] = *keys ? *keys - MIDDLE + 2 * line : 0;
            set_signature(b, way, *keys ? signature(number_of(b[l->keys + way])) : 0);
        }
    }
}

/* Bring the lines of the first level to where they are after the rows that were repeated. */
static void arrive(Walk *w)
{
    Rows *r = &w->rows;
    if (r->away)
        put_keys(w->sim->levels, r->line + r->delta, r->before);
    r->away = 0;
}

/* Something else was executed. */
static void forget(Walk *w)
{
    arrive(w);
    w->rows.known = 0;
}

static void first_level_counters(const Sim *s, u64 *out)
{
    const Level *l = &s->levels[0];
    u64 counts[] = {l->load_hits, l->load_misses, l->store_hits, l->store_misses, l->dirty_evictions,
                    l->clean_evictions};
    memcpy(out, counts, sizeof counts);
}

/* Whether the references are where they were in the row that is known, from the line of the first one on. */
static int same_places(const Walk *w, u64 line)
{
    u64 start = line * w->sim->levels->line_bytes;
    for (int i = 0; i < w->inner_count; i++)
        if (w->inner[i].address - start != w->rows.places[i])
            return 0;
    return 1;
}

/* Execute a row and write down what the first level sends. */
static void record(Walk *w, u64 iterations, u64 line)
{
    Sim *s = w->sim;
    Rows *r = &w->rows;
    u64 start = line * s->levels->line_bytes, counts[FIRST_COUNTERS], *swapped = r->before;
    r->before = r->now;
    r->now = swapped;
    r->line = line;
    r->iterations = iterations;
    first_level_counters(s, r->counts);
    for (int i = 0; i < w->inner_count; i++) {
        r->places[i] = w->inner[i].address - start;
        r->hits[i] = s->served[w->inner[i].number * (s->count + 1)];
    }
    s->sent = &r->sent;
    r->sent.count = 0;
    r->sent.from = line;
    run_row(w, iterations);
    s->sent = NULL;
    first_level_counters(s, counts);
    for (int k = 0; k < FIRST_COUNTERS; k++)
        r->counts[k] = counts[k] - r->counts[k];
    for (int i = 0; i < w->inner_count; i++)
        r->hits[i] = s->served[w->inner[i].number * (s->count + 1)] - r->hits[i];
    r->known = r->sent.count < r->sent.room;
}

/* Execute what the first level sends in the row that is known, from a line on. */
static void repeat(Walk *w, u64 line)
{
    Sim *s = w->sim;
    Level *l = s->levels;
    Rows *r = &w->rows;
    const Sent *stop = r->sent.list + r->sent.count;
    for (const Sent *sent = r->sent.list; sent < stop; sent++) {
        if (sent + AHEAD < stop)
            fetch_sets(s, line + sent[AHEAD].line);
        if (sent->row < 0)
            plain_store(s, l->store_to, line + sent->line, 1);
        else
            s->served[sent->row + plain_load(s, l->load_from, line + sent->line)]++;
    }
    l->load_hits += r->counts[0];
    l->load_misses += r->counts[1];
    l->store_hits += r->counts[2];
    l->store_misses += r->counts[3];
    l->dirty_evictions += r->counts[4];
    l->clean_evictions += r->counts[5];
    for (int i = 0; i < w->inner_count; i++) {
        s->served[w->inner[i].number * (s->count + 1)] += r->hits[i];
        w->inner[i].address += w->inner[i].stride * r->iterations;
    }
    s->accesses += r->iterations * (u64)w->inner_count;
    r->line = line;
    r->away = 1;
}

/* Whether the rules above speak of this program and this first level, and a row is long beside what is compared. */
static int may_repeat(const Walk *w, u64 iterations)
{
    const Sim *s = w->sim;
    const Level *l = s->levels;
    return s->skip && s->plain && !w->irregular && !w->streams && !s->open_buffers && l->queue && l->masked &&
           !l->victim && l->write_back && l->write_allocate && l->sets * l->ways < 4 * iterations * (u64)w->inner_count;
}

/* Room to compare rows; 0 if there is none. */
static int has_room(Walk *w)
{
    Rows *r = &w->rows;
    if (r->sent.room)
        return 1;
    size_t lines = (size_t)(w->sim->levels->sets * w->sim->levels->ways), count = (size_t)w->inner_count;
    if (lines > MOST_LINES || r->before)
        return 0;
    r->before = malloc(lines * sizeof(u64));
    r->now = malloc(lines * sizeof(u64));
    r->places = malloc(count * sizeof(u64));
    r->hits = malloc(count * sizeof(u64));
    r->sent.list = malloc(MOST_SENT * sizeof(Sent));
    if (r->before && r->now && r->places && r->hits && r->sent.list)
        r->sent.room = MOST_SENT;
    return r->sent.room != 0;
}

/* Execute a row: repeat the one that is known, if the rules above allow that, else write it down for the next one. */
static void run_compared(Walk *w, u64 iterations)
{
    Rows *r = &w->rows;
    const Level *l = w->sim->levels;
    u64 line = quotient(&l->line, w->inner->address);
    int same = r->known && r->iterations == iterations && same_places(w, line);
    if (r->away && same && line - r->line == r->delta) {
        repeat(w, line);
        return;
    }
    arrive(w);
    if (r->misfits >= MISFITS) {
        if (++r->misfits > MISFITS + (REST << r->rests)) {
            r->misfits = 0;
            r->rests += r->rests < MOST_RESTS;
        }
        r->known = 0;
        run_row(w, iterations);
        return;
    }
    keys_from(l, line, r->now);
    if (same && !memcmp(r->now, r->before, (size_t)(l->sets * l->ways) * sizeof(u64))) {
        r->delta = line - r->line;
        r->misfits = r->rests = 0;
        repeat(w, line);
        return;
    }
    r->misfits++;
    record(w, iterations, line);
}

/* Execute iterations of the innermost loop. Nothing above asks where a row ends, so that a long one is as many short
 * rows: of a loop that is the only one there is no other row, and what a very long one sends has no room. */
static void run_inner(Walk *w, u64 iterations)
{
    if (!may_repeat(w, iterations) || !has_room(w)) {
        forget(w);
        run_row(w, iterations);
        return;
    }
    if (w->depth == 1 || iterations > MOST_SENT)
        for (; iterations >= 2 * PIECE; iterations -= PIECE)
            run_compared(w, PIECE);
    run_compared(w, iterations);
}
