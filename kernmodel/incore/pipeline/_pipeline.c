/* The pipeline of a core, cycle by cycle: the compiled twin of simulate.py, which says what is modelled and why.

   Same input (the numbers of kernmodel.incore.pipeline.program), same answers. No global state. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { ABI = 3, PORTS = 16, HISTORY = 16, GROUPS = 4, SAVING = 4, SCHEDULERS = 3 };
enum { IDEAL, LSD, DSB, DECODERS };
enum { FRONT_END, SCHEDULER, REORDER_BUFFER, REASONS };

/* One number each, in the order of program.CORE_FIELDS. */
typedef struct {
    int32_t issue_width, retire_width, reorder_buffer, scheduler, load_scheduler, store_scheduler, idq, dsb_width, dsb_lines, decoders, iq,
        predecode_width, fusible_last, microcode_switch, microcode_exit, microcode_width, predecode_delay,
        unlaminated_slots, unlaminated_first, taken_branches, dispatch_delay, counter_gap, issue_ports, group_boundary, source, copies, barred_from, repeats,
        alternating[GROUPS], units, entries, slots, microops, waits, schedule, farthest, longest, most_cycles, least_passes;
} Core;

typedef struct { int32_t entries, decoded, complex, simple, fusible, ends_group, block, line, wide; } Unit;
typedef struct { int32_t slots, together; } Entry;
typedef struct { int32_t ports, latency, divider, data, alone, first_wait, scheduler; } MicroOp;
typedef struct { int32_t microop, passes, cycles; } Wait;

/* A µop in flight. `base`: cycle that those who wait for it count from, once `known`. */
typedef struct {
    int64_t id, base, ready, done;
    int32_t known, pending, port, next;
} Instance;

typedef struct { int64_t base, ready, done; int32_t known, pending, port; } Trace;

/* What was counted up to a cycle. */
typedef struct { int64_t now, passes, stalls[REASONS], dispatched[PORTS]; } Counts;

typedef struct {
    const Core *core;
    const Unit *units;
    const Entry *entries;
    const int32_t *first_microop; /* per slot, and one behind */
    const MicroOp *microops;
    const Wait *waits;
    const int32_t *schedule;
    int32_t *first_user;
    Wait *users; /* of each µop: who waits for it, over how many passes, for how long */

    Instance *ring;
    int64_t ring_mask;
    int32_t *calendar;
    int64_t calendar_mask;
    int32_t *ready[PORTS];
    int32_t ready_count[PORTS], ready_room;

    int64_t now, slots_issued, slots_retired, microops_issued, passes;
    int32_t scheduled[SCHEDULERS], slot_in_entry;
    int32_t counters[PORTS], starting[PORTS], turn[GROUPS];
    int64_t divider_free, alone_free, data_free[PORTS];

    int64_t entries_delivered, entries_issued, fetched, predecoded, decoded, decodable[HISTORY];
    int32_t unit_part, decoding, microcode_wait, microcode_left, predecode_step;

    int64_t stalls[REASONS], dispatched[PORTS];

    /* the state that others are compared with */
    Trace *saved;
    int64_t saved_count, saved_room, saved_scalars[128], checks, next_save;
    Counts since;
} Sim;

static Instance *instance(const Sim *s, int64_t id) { return &s->ring[id & s->ring_mask]; }

/* ---- values become known, µops become ready ---- */

static void set_alarm(Sim *s, Instance *x)
{
    int64_t when = x->ready > s->now ? x->ready : s->now + 1;
    int32_t *head = &s->calendar[when & s->calendar_mask];
    x->next = *head;
    *head = (int32_t)(x->id & s->ring_mask);
}

static void know(Sim *s, Instance *x, int64_t base);

static void all_known(Sim *s, Instance *x)
{
    if (s->microops[x->id % s->core->microops].ports)
        set_alarm(s, x);
    else
        know(s, x, x->ready);
}

static void know(Sim *s, Instance *x, int64_t base)
{
    const int32_t n = s->core->microops;
    const int32_t u = (int32_t)(x->id % n);
    x->base = base;
    x->known = 1;
    if (!s->microops[u].ports)
        x->done = base > s->now ? base : s->now;
    for (int32_t e = s->first_user[u]; e < s->first_user[u + 1]; e++) {
        const Wait *w = &s->users[e];
        const int64_t id = x->id - u + w->microop + (int64_t)w->passes * n;
        if (id >= s->microops_issued)
            continue;
        Instance *y = instance(s, id);
        if (base + w->cycles > y->ready)
            y->ready = base + w->cycles;
        if (--y->pending == 0)
            all_known(s, y);
    }
}

static void queue_up(Sim *s, int32_t port, const Instance *x)
{
    int32_t *queue = s->ready[port];
    int32_t k = s->ready_count[port]++;
    while (k > 0 && s->ring[queue[k - 1]].id > x->id) {
        queue[k] = queue[k - 1];
        k--;
    }
    queue[k] = (int32_t)(x->id & s->ring_mask);
}

static void wake(Sim *s)
{
    int32_t *head = &s->calendar[s->now & s->calendar_mask];
    int32_t k = *head, later = -1;
    while (k >= 0) {
        Instance *x = &s->ring[k];
        const int32_t next = x->next;
        if (x->ready <= s->now) {
            queue_up(s, x->port < 0 ? 0 : x->port, x);
        } else { /* a round of the calendar or more away */
            x->next = later;
            later = k;
        }
        k = next;
    }
    *head = later;
}

/* ---- retire, dispatch, issue ---- */

static void retire(Sim *s)
{
    const Core *c = s->core;
    for (int32_t k = 0; k < c->retire_width && s->slots_retired < s->slots_issued; k++) {
        const int32_t slot = (int32_t)(s->slots_retired % c->slots);
        const int64_t first = s->slots_retired / c->slots * c->microops;
        for (int32_t u = s->first_microop[slot]; u < s->first_microop[slot + 1]; u++) {
            const Instance *x = instance(s, first + u);
            if (!x->known || x->done > s->now)
                return;
        }
        s->slots_retired++;
    }
}

static int can_dispatch(const Sim *s, const MicroOp *m, int32_t port)
{
    return !(m->divider && s->divider_free > s->now) && !(m->alone && s->alone_free > s->now) &&
           !(m->data && s->data_free[port] > s->now);
}

static void dispatch(Sim *s, Instance *x, const MicroOp *m, int32_t port)
{
    if (m->divider)
        s->divider_free = s->now + m->divider;
    if (m->alone)
        s->alone_free = s->now + m->alone;
    if (m->data)
        s->data_free[port] = s->now + m->data;
    s->counters[port]--;
    s->dispatched[port]++;
    s->scheduled[m->scheduler]--;
    x->done = s->now + m->latency;
    know(s, x, s->now);
}

static void take_out(Sim *s, int32_t queue, int32_t k)
{
    memmove(&s->ready[queue][k], &s->ready[queue][k + 1], sizeof(int32_t) * (s->ready_count[queue] - k - 1));
    s->ready_count[queue]--;
}

static void dispatch_bound(Sim *s)
{
    for (int32_t port = 0; port < PORTS; port++)
        for (int32_t k = 0; k < s->ready_count[port]; k++) {
            Instance *x = &s->ring[s->ready[port][k]];
            const MicroOp *m = &s->microops[x->id % s->core->microops];
            if (can_dispatch(s, m, port)) {
                take_out(s, port, k);
                dispatch(s, x, m, port);
                break;
            }
        }
}

/* Ports are taken when µops are ready: the oldest first, each on the free port that fewest kinds of µops can use. */
static void dispatch_free(Sim *s)
{
    int32_t free = (1 << PORTS) - 1;
    for (int32_t k = 0; k < s->ready_count[0];) {
        Instance *x = &s->ring[s->ready[0][k]];
        const MicroOp *m = &s->microops[x->id % s->core->microops];
        int32_t best = -1;
        for (int32_t port = 0; port < PORTS; port++)
            if ((m->ports & free) >> port & 1 && can_dispatch(s, m, port) &&
                (best < 0 || s->starting[port] < s->starting[best]))
                best = port;
        if (best < 0) {
            k++;
            continue;
        }
        free &= ~(1 << best);
        take_out(s, 0, k);
        s->counters[best]++;
        x->port = best;
        dispatch(s, x, m, best);
    }
}

static int32_t choose_port(Sim *s, int32_t ports, int32_t slot)
{
    const Core *c = s->core;
    int32_t best = -1, second = -1;
    for (int32_t g = 0; g < GROUPS; g++)
        if (ports == c->alternating[g]) {
            int32_t skip = s->turn[g];
            s->turn[g] = (s->turn[g] + 1) % __builtin_popcount((unsigned)ports);
            while (skip--)
                ports &= ports - 1;
            return __builtin_ctz((unsigned)ports);
        }
    for (int32_t port = PORTS - 1; port >= 0; port--)
        if (ports >> port & 1 && (best < 0 || s->starting[port] < s->starting[best]))
            best = port;
    for (int32_t port = PORTS - 1; port >= 0; port--)
        if (ports >> port & 1 && port != best && (second < 0 || s->starting[port] < s->starting[second]))
            second = port;
    if (second < 0 || slot % 2 == 0 || s->starting[second] - s->starting[best] >= c->counter_gap)
        return best;
    return second;
}

static void issue_microop(Sim *s, int64_t pass, int32_t u, int32_t slot)
{
    const Core *c = s->core;
    const MicroOp *m = &s->microops[u];
    const int64_t id = pass * c->microops + u;
    Instance *x = instance(s, id);
    x->id = id;
    x->base = x->done = 0;
    x->known = x->pending = 0;
    x->port = -1;
    x->ready = s->now;
    s->microops_issued = id + 1;
    if (m->ports) {
        x->ready += c->dispatch_delay;
        s->scheduled[m->scheduler]++;
        if (c->issue_ports) {
            x->port = choose_port(s, m->ports, slot);
            s->counters[x->port]++;
        }
    }
    for (int32_t e = m->first_wait; e < m[1].first_wait; e++) {
        const Wait *w = &s->waits[e];
        const int64_t source = id - u + w->microop - (int64_t)w->passes * c->microops;
        if (source < 0)
            continue;
        const Instance *y = instance(s, source);
        if (!y->known)
            x->pending++;
        else if (y->base + w->cycles > x->ready)
            x->ready = y->base + w->cycles;
    }
    if (!x->pending)
        all_known(s, x);
}

static void issue(Sim *s)
{
    const Core *c = s->core;
    int32_t slot = 0, taken = 0, unlaminated = 0;
    if (s->slots_issued - s->slots_retired + c->issue_width > c->reorder_buffer) {
        s->stalls[REORDER_BUFFER]++;
        return;
    }
    if (s->scheduled[0] + c->issue_width > c->scheduler ||
        (c->load_scheduler && s->scheduled[1] + c->issue_width > c->load_scheduler) ||
        (c->store_scheduler && s->scheduled[2] + c->issue_width > c->store_scheduler)) {
        s->stalls[SCHEDULER]++;
        return;
    }
    if (s->entries_issued >= s->entries_delivered)
        s->stalls[FRONT_END]++;
    while (slot < c->issue_width && s->entries_issued < s->entries_delivered) {
        const int32_t e = (int32_t)(s->entries_issued % c->entries);
        const int64_t pass = s->entries_issued / c->entries;
        const Entry *entry = &s->entries[e];
        if (c->source == LSD && c->group_boundary && slot && !e && !s->slot_in_entry && pass % c->copies == 0)
            break;
        if (entry->together && slot && slot + entry->slots > c->issue_width && entry->slots <= c->issue_width)
            break;
        if (entry->together && slot && (unlaminated == c->unlaminated_slots || taken >= c->unlaminated_first))
            break;
        taken++;
        unlaminated += entry->together;
        while (s->slot_in_entry < entry->slots && slot < c->issue_width) {
            const int32_t k = (int32_t)(s->slots_issued % c->slots);
            for (int32_t u = s->first_microop[k]; u < s->first_microop[k + 1]; u++)
                issue_microop(s, pass, u, slot);
            s->slots_issued++;
            s->slot_in_entry++;
            slot++;
        }
        if (s->slot_in_entry == entry->slots) {
            s->slot_in_entry = 0;
            s->entries_issued++;
        }
    }
}

/* ---- fetch ---- */

static int microcode(Sim *s, int64_t queued, int32_t exit)
{
    const Core *c = s->core;
    if (s->microcode_wait) {
        s->microcode_wait--;
        return 1;
    }
    if (!s->microcode_left)
        return 0;
    if (queued + c->microcode_width <= c->idq) {
        const int32_t part = s->microcode_left < c->microcode_width ? s->microcode_left : c->microcode_width;
        s->entries_delivered += part;
        s->microcode_left -= part;
        if (!s->microcode_left)
            s->microcode_wait = exit;
    }
    return 1;
}

/* The DSB holds no more of the pass: the decoders go on. The predecoder has run ahead meanwhile. */
static void start_decoding(Sim *s)
{
    const Core *c = s->core;
    s->decoding = 1;
    s->predecode_step = 0;
    s->predecoded = s->decoded = s->fetched;
    for (int32_t k = 0; k < HISTORY; k++)
        s->decodable[k] = s->fetched;
    for (int32_t k = c->predecode_delay - 1; k > 0 && s->predecode_step < c->schedule; k--) {
        s->predecoded += s->schedule[s->predecode_step++];
        s->decodable[(s->now + HISTORY - k) % HISTORY] = s->predecoded;
    }
    s->decodable[s->now % HISTORY] = s->predecoded;
}

static void fetch_dsb(Sim *s, int64_t queued)
{
    const Core *c = s->core;
    int32_t room = c->dsb_width, lines = 0, line = -1, block = -1, branches = 0;
    if (queued + room > c->idq)
        return;
    while (room > 0) {
        const int32_t n = (int32_t)(s->fetched % c->units);
        const Unit *unit = &s->units[n];
        const int first = room == c->dsb_width;
        if (!s->unit_part) {
            if (!n && !first && c->group_boundary && unit->block == block && ++branches == c->taken_branches)
                return;
            if (n >= c->barred_from) {
                start_decoding(s);
                return;
            }
            if (unit->line != line || !n) {
                if (lines == c->dsb_lines)
                    return;
                lines++;
                line = unit->line;
            }
            if (unit->wide && room < 2 && !first)
                return;
            room -= unit->wide;
        }
        int32_t part = unit->decoded - s->unit_part;
        if (part > room)
            part = room > 0 ? room : 0;
        s->entries_delivered += part;
        s->unit_part += part;
        room -= part;
        block = unit->block;
        if (s->unit_part < unit->decoded)
            return;
        s->unit_part = 0;
        s->fetched++;
        if (unit->entries > unit->decoded) {
            s->microcode_left = unit->entries - unit->decoded;
            s->microcode_wait = c->microcode_switch;
            return;
        }
    }
}

static void decode(Sim *s, int64_t queued)
{
    const Core *c = s->core;
    const int64_t there = s->decodable[(s->now + HISTORY - c->predecode_delay) % HISTORY];
    int32_t simple = 0, taken = 0;
    if (queued + c->decoders > c->idq)
        return;
    while (s->decoded < there) {
        const int32_t n = (int32_t)(s->decoded % c->units);
        const Unit *unit = &s->units[n];
        if (taken && (unit->complex || !simple || (unit->fusible && !c->fusible_last && taken == c->decoders - 1)))
            return;
        const int over = n == c->units - 1 && !c->repeats;
        if (unit->fusible && !c->fusible_last && s->decoded + 1 >= there && !over)
            return;
        simple = taken ? simple - 1 : unit->simple;
        taken++;
        s->decoded++;
        s->entries_delivered += unit->decoded;
        if (unit->entries > unit->decoded)
            s->microcode_left = unit->entries - unit->decoded;
        if (over) {
            s->decoding = 0;
            s->fetched = s->decoded;
            if (s->microcode_left)
                s->microcode_wait = c->microcode_exit;
            return;
        }
        if (s->microcode_left) {
            s->microcode_wait = c->microcode_exit;
            return;
        }
        if (unit->ends_group)
            return;
    }
}

static void predecode(Sim *s)
{
    const Core *c = s->core;
    const int over = !c->repeats && s->predecode_step >= c->schedule;
    if (s->decoding && !over && s->predecoded - s->decoded + c->predecode_width <= c->iq) {
        s->predecoded += s->schedule[s->predecode_step % c->schedule];
        s->predecode_step++;
        if (c->repeats)
            s->predecode_step %= c->schedule;
    }
    s->decodable[s->now % HISTORY] = s->predecoded;
}

static void deliver(Sim *s)
{
    const Core *c = s->core;
    const int64_t queued = s->entries_delivered - s->entries_issued;
    if (c->source == IDEAL || c->source == LSD) {
        s->entries_delivered = s->entries_issued + c->issue_width;
        return;
    }
    const int decoding = s->decoding;
    if (!microcode(s, queued, decoding ? c->microcode_exit : c->microcode_switch)) {
        if (decoding)
            decode(s, queued);
        else
            fetch_dsb(s, queued);
    }
    if (decoding)
        predecode(s);
}

/* ---- repetition ---- */

static int64_t left(const Sim *s, int64_t when) { return when > s->now ? when - s->now : 0; }

static int32_t scalars(const Sim *s, int64_t *out)
{
    const Core *c = s->core;
    int32_t n = 0;
    out[n++] = s->slots_issued % c->slots;
    out[n++] = s->entries_issued % c->entries;
    out[n++] = c->source == LSD ? s->entries_issued / c->entries % c->copies : 0;
    out[n++] = s->slot_in_entry;
    out[n++] = s->slots_issued - s->slots_retired;
    for (int32_t k = 0; k < SCHEDULERS; k++)
        out[n++] = s->scheduled[k];
    out[n++] = s->entries_delivered - s->entries_issued;
    out[n++] = c->units ? s->fetched % c->units : 0;
    out[n++] = s->unit_part;
    out[n++] = s->decoding;
    out[n++] = s->microcode_wait;
    out[n++] = s->microcode_left;
    out[n++] = s->decoding ? s->predecode_step : 0;
    out[n++] = s->decoding ? s->decoded % c->units : 0;
    for (int32_t k = 1; k <= c->predecode_delay; k++)
        out[n++] = s->decoding ? s->decodable[(s->now + HISTORY - k) % HISTORY] - s->decoded : 0;
    for (int32_t g = 0; g < GROUPS; g++)
        out[n++] = s->turn[g];
    out[n++] = left(s, s->divider_free);
    out[n++] = left(s, s->alone_free);
    for (int32_t port = 0; port < PORTS; port++) {
        out[n++] = s->counters[port];
        out[n++] = left(s, s->data_free[port]);
    }
    return n;
}

static int64_t oldest_needed(const Sim *s)
{
    const Core *c = s->core;
    const int64_t unretired = s->slots_retired / c->slots * c->microops + s->first_microop[s->slots_retired % c->slots];
    const int64_t needed = (s->slots_issued / c->slots - c->farthest) * c->microops;
    const int64_t oldest = unretired < needed ? unretired : needed;
    return oldest > 0 ? oldest : 0;
}

static Trace trace(const Sim *s, int64_t id)
{
    const Instance *x = instance(s, id);
    Trace t = {0, 0, 0, x->known, x->pending, x->port};
    if (x->known) {
        t.base = x->base - s->now > -s->core->longest ? x->base - s->now : -s->core->longest;
        t.done = left(s, x->done);
    } else {
        t.ready = left(s, x->ready);
    }
    return t;
}

static int same_traces(const Sim *s)
{
    const int64_t oldest = oldest_needed(s);
    if (s->microops_issued - oldest != s->saved_count)
        return 0;
    for (int64_t k = 0; k < s->saved_count; k++) {
        const Trace a = trace(s, s->microops_issued - 1 - k), *b = &s->saved[k];
        if (a.base != b->base || a.ready != b->ready || a.done != b->done || a.known != b->known ||
            a.pending != b->pending || a.port != b->port)
            return 0;
    }
    return 1;
}

static Counts counts(const Sim *s, int64_t passes)
{
    Counts c = {s->now, passes, {0}, {0}};
    memcpy(c.stalls, s->stalls, sizeof c.stalls);
    memcpy(c.dispatched, s->dispatched, sizeof c.dispatched);
    return c;
}

static int save(Sim *s, const int64_t *now_scalars, int32_t count)
{
    const int64_t oldest = oldest_needed(s);
    s->saved_count = s->microops_issued - oldest;
    if (s->saved_count > s->saved_room) {
        Trace *more = realloc(s->saved, sizeof(Trace) * (size_t)s->saved_count * 2);
        if (!more)
            return -1;
        s->saved = more;
        s->saved_room = s->saved_count * 2;
    }
    for (int64_t k = 0; k < s->saved_count; k++)
        s->saved[k] = trace(s, s->microops_issued - 1 - k);
    memcpy(s->saved_scalars, now_scalars, sizeof(int64_t) * (size_t)count);
    s->since = counts(s, s->passes);
    return 0;
}

/* Whether the state is one that was there before; it is compared with one that is replaced after longer and longer
   times. -1 without memory. */
static int repeats(Sim *s)
{
    int64_t here[128];
    const int32_t count = scalars(s, here);
    s->checks++;
    if (s->next_save && !memcmp(here, s->saved_scalars, sizeof(int64_t) * (size_t)count) && same_traces(s))
        return 1;
    if (s->checks < s->next_save)
        return 0;
    s->next_save = s->checks + s->checks / SAVING + SAVING;
    return save(s, here, count);
}

/* ---- the whole ---- */

static int64_t power_of_two(int64_t least)
{
    int64_t size = 1;
    while (size < least)
        size *= 2;
    return size;
}

static int invert_waits(Sim *s)
{
    const Core *c = s->core;
    s->first_user = calloc((size_t)c->microops + 2, sizeof(int32_t));
    s->users = malloc(sizeof(Wait) * ((size_t)c->waits + 1));
    if (!s->first_user || !s->users)
        return -1;
    for (int32_t e = 0; e < c->waits; e++)
        s->first_user[s->waits[e].microop + 2]++;
    for (int32_t u = 0; u < c->microops; u++)
        s->first_user[u + 2] += s->first_user[u + 1];
    for (int32_t u = 0; u < c->microops; u++)
        for (int32_t e = s->microops[u].first_wait; e < s->microops[u + 1].first_wait; e++) {
            const Wait *w = &s->waits[e];
            s->users[s->first_user[w->microop + 1]++] = (Wait){u, w->passes, w->cycles};
        }
    return 0;
}

static int allocate(Sim *s)
{
    const Core *c = s->core;
    int64_t most_in_slot = 1;
    for (int32_t k = 0; k < c->slots; k++)
        if (s->first_microop[k + 1] - s->first_microop[k] > most_in_slot)
            most_in_slot = s->first_microop[k + 1] - s->first_microop[k];
    const int64_t in_flight = ((int64_t)c->reorder_buffer + 2 * c->issue_width) * most_in_slot;
    const int64_t ring = power_of_two(((int64_t)c->farthest + 2) * c->microops + in_flight);
    s->ring_mask = ring - 1;
    s->calendar_mask = power_of_two((int64_t)c->longest + c->dispatch_delay + 2) - 1;
    s->ready_room = (int32_t)(c->scheduler + c->load_scheduler + c->store_scheduler +
                              SCHEDULERS * 2 * c->issue_width * most_in_slot);
    s->ring = calloc((size_t)ring, sizeof(Instance));
    s->calendar = malloc(sizeof(int32_t) * (size_t)(s->calendar_mask + 1));
    s->ready[0] = malloc(sizeof(int32_t) * (size_t)s->ready_room * PORTS);
    if (!s->ring || !s->calendar || !s->ready[0] || invert_waits(s))
        return -1;
    for (int32_t port = 1; port < PORTS; port++)
        s->ready[port] = s->ready[0] + (size_t)port * (size_t)s->ready_room;
    for (int64_t k = 0; k <= s->calendar_mask; k++)
        s->calendar[k] = -1;
    return 0;
}

static void release(Sim *s)
{
    free(s->ring);
    free(s->calendar);
    free(s->ready[0]);
    free(s->first_user);
    free(s->users);
    free(s->saved);
}

/* How many kinds of µops can use each port: `dispatch_free` prefers the ports of the fewest. */
static void count_users(Sim *s)
{
    for (int32_t u = 0; u < s->core->microops; u++)
        for (int32_t port = 0; port < PORTS; port++)
            s->starting[port] += s->microops[u].ports >> port & 1;
}

static void cycle(Sim *s)
{
    const Core *c = s->core;
    retire(s);
    if (c->issue_ports)
        memcpy(s->starting, s->counters, sizeof s->counters);
    wake(s);
    if (c->issue_ports)
        dispatch_bound(s);
    else
        dispatch_free(s);
    issue(s);
    deliver(s);
    s->now++;
}

/* 1 when the state repeated, 0 when the cycles ran out, -1 without memory; `since` and `until` bound the period, or the
   passes that retired in the second half of the cycles. */
static int run(Sim *s, Counts *until)
{
    const Core *c = s->core;
    Counts half = {0};
    int64_t retired = 0;
    while (s->now < c->most_cycles || s->passes < c->least_passes) {
        cycle(s);
        if (s->slots_retired / c->slots != retired) {
            retired = s->slots_retired / c->slots;
            *until = counts(s, retired);
            if (!half.now && s->now >= c->most_cycles / 2 && retired >= c->least_passes / 2)
                half = *until;
        }
        if (s->slots_issued / c->slots == s->passes)
            continue;
        s->passes = s->slots_issued / c->slots;
        const int found = repeats(s);
        if (found > 0)
            *until = counts(s, s->passes);
        if (found)
            return found;
    }
    s->since = half;
    return 0;
}

/* Result: settled, cycles and passes of the period, cycles in all, stalls by reason, dispatches by port. */
EXPORT int32_t km_pipeline(const Core *core, const Unit *units, const Entry *entries, const int32_t *first_microop,
                           const MicroOp *microops, const Wait *waits, const int32_t *schedule, int64_t *result)
{
    Sim s;
    memset(&s, 0, sizeof s);
    s.core = core;
    s.units = units;
    s.entries = entries;
    s.first_microop = first_microop;
    s.microops = microops;
    s.waits = waits;
    s.schedule = schedule;
    s.decoding = core->source == DECODERS;
    int found = allocate(&s);
    if (!found) {
        if (!core->issue_ports)
            count_users(&s);
        Counts until = {0};
        found = run(&s, &until);
        result[0] = found;
        result[1] = until.now - s.since.now;
        result[2] = until.passes - s.since.passes;
        result[3] = s.now;
        for (int32_t k = 0; k < REASONS; k++)
            result[4 + k] = until.stalls[k] - s.since.stalls[k];
        for (int32_t k = 0; k < PORTS; k++)
            result[4 + REASONS + k] = until.dispatched[k] - s.since.dispatched[k];
    }
    release(&s);
    return found < 0 ? -1 : 0;
}

EXPORT int32_t km_pipeline_abi(void) { return ABI; }
