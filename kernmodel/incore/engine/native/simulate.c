/* The pipeline of a core, cycle by cycle: the compiled twin of twin.py, which says what is modelled and why.

   Same input (the numbers of kernmodel.incore.engine.program), same answers. */

#include <string.h>

#include "program.h"
#include "queues.h"
#include "sides.h"

#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline)) /* so that who calls it saves no registers for it alone */

enum { MOST_SLOTS = 64, SEEN = 8, KNOWN = 64, HISTORY = 16, SAVING = 4, SNAPSHOTS = 32, RANKS = 32, SCALARS = 234, STEADY_SHARE = 100, BEFORE_ALL = -2 };
enum { MOST_IN_ORDER = 64 }; /* accesses of a cycle whose ports are given in order */
enum { EVEN_SLOT = -1, ODD_SLOT = -2 }; /* for the port of a µop in the queue, which has none */
enum { AMPLE = INT32_MAX / 2 }; /* entries of a scheduler that never fills */

/* Counts of several sets in one number, a byte each. */
#define EACH_BYTE UINT32_C(0x01010101)
enum { MOST_IN_BYTE = 127, MOST_LOADS = 63 };

/* How a µop gets its port where schedulers belong to ports: the first of these that its ports are of. At issue also: it
   needs none, or gets it when it leaves the queue. */
enum { OF_ACCESSES, TOGETHER, BEHIND_QUEUE, LEAST_USED, NOWHERE, QUEUED };

/* The cycle in which a µop is done, as long as it is not known. */
static const int64_t never = INT64_MAX;

/* Another µop so many µops apart in the order of issue, and the cycles from the earlier one to the later one; `third`: to
   the third vector that it reads. */
typedef struct { int32_t distance, cycles, third; } Apart;

/* A µop of the block with all that issue and dispatch ask of it; `limited`: by more than its port; `group`: its port set
   alternates, -1 if not; `kind`: a number of its port set, if its ports are given behind the queue or by rank; `counted`:
   all bits if its entry counts where ports are assigned together; `wanted`: the queues that it may be assigned to together with others;
   `choice`: how it gets its port, `at_issue`: the same if it does so at issue; `delay`: cycles from its issue until it may
   start; `slow`, `more`: passes in which its data path is kept one cycle longer, and one more for loads; `varies`: whether that, or
   the banks that it reads, may differ from pass to pass; `load_fed`: it brings what a µop stores that reads three vectors, and
   waits for loads alone. */
typedef struct {
    int32_t ports, latency, divider, data, alone, limited, scheduler, group, kind, choice, at_issue, delay;
    uint32_t one_result; /* ports that give one result a cycle, 0 where its own comes too late to be followed */
    uint64_t slow, more;
    Apart *waits, *waits_end, *users, *users_end; /* whom it waits for, and who waits for it */
    int32_t redirects, third, paths, varies, place, stride, size, load, load_fed;
    uint64_t counted;
    Wanted wanted;
} Op;

/* A µop in flight. `done`: cycle in which it is, `never` until that is known; `base`: cycle that those who wait for it count
   from then on; `slow`: 1 if its data path is kept a cycle longer, and 2 if loads find it busy for one more; `banks`: of the cache that it reads; `enters`: cycle from
   which it may start, if it is in the scheduler that all ports share, else before all cycles. As large as a power of two,
   so that its place is found by shifting. */
typedef struct {
    int64_t id, base, ready, done;
    const Op *op;
    int32_t pending, next;
    int16_t port, slow;
    uint32_t banks;
    int64_t enters;
} Instance;

/* A slot of the block. `accesses`: how many of its µops start on ports that start accesses; `together`: how many get ports
   that are assigned together; `registers`: of vectors, that it takes; `loads`: a byte for each set of ports that alone
   executes them. */
typedef struct {
    const Op *ops, *ops_end;
    int32_t count, accesses, together, registers;
    uint32_t loads;
} Slot;

/* What is counted: cycles without issue, and µops by port. */
typedef struct { uint32_t stalls[REASONS], dispatched[PORTS]; } Tally;

/* What was counted up to a cycle. */
typedef struct { int64_t now, passes; Tally tally; } Counts;

/* A state that later ones are compared with, with the µops of which something may still depend, the oldest first. */
typedef struct {
    int64_t count, room, scalars[SCALARS];
    Instance *microops;
    Counts counts;
} Snapshot;

/* An access of a slot so many behind another one, with its ports. */
typedef struct { int32_t slot; uint32_t ports; } Later;

/* What a cycle may dispatch from a slot on: `reach` slots, of which the first so many take `registers` of vectors; how many
   fit, and how many of these without a fifth operation; those whose ports are assigned together in so many slots; `alone`:
   the first slot has too many of them for a cycle; `accesses`: of memory, if a cycle waits as a whole for room for them, of
   which `loads` take ports in order, and the first `own_ports` different ones, those `in_order`. */
typedef struct {
    int32_t fitting, apart, alone, loads, own_ports, in_order[PORTS], count[MOST_SLOTS + 1], reach, registers[MOST_SLOTS + 1];
    Wanted wanted[MOST_TOGETHER];
    const Later *accesses, *accesses_end;
} Ahead;

/* Queues of the operations of a cycle that begins at a slot, for the entries that dispatch saw in the queues. */
typedef struct {
    const Ahead *ahead;
    uint64_t entries;
    int32_t count, beside, queues[MOST_TOGETHER];
} Assignment;

/* Where µops wait for their port's result: µops that it has started in a row that take longer, no more than count; the
   µop that waits first in this cycle, and in the one before, and the one that nothing passes any more, -1 for none. */
typedef struct { int32_t passing; int64_t cycle, first, before, stopped; } Waiting;

typedef struct {
    const Core *core;
    const FetchUnit *units;
    int32_t unit_count, few_constants; /* whether constants can end the delivery of a cycle */
    const Entry *entries;
    const int32_t *schedule;
    Op *ops;
    const Slot *slots, *slots_end, *issuing, *retiring; /* of the block; those that are next */
    const Entry *entry, *entries_end; /* that is issued */

    Arena *arena;
    Instance *ring;
    int64_t ring_mask;
    int32_t *calendar;
    int64_t calendar_mask;
    int64_t *ready[PORTS]; /* per port, by age, from `first_ready` to before `ready_end` */
    int32_t first_ready[PORTS], ready_end[PORTS], ready_room;
    uint32_t waiting; /* ports whose queue of ready µops is not empty */

    int64_t now, slots_issued, slots_retired, microops_issued, microops_retired, passes;
    int64_t not_done; /* the first µop that was not when retirement looked last */
    /* where issue and retirement stand in the block, so that nothing is divided cycle by cycle */
    int64_t pass_issuing, pass_retiring;
    int32_t unit_fetching, unit_decoding;
    int32_t slot_in_entry, *given; /* the port of each µop of the slot that is dispatched */
    int32_t room[SCHEDULERS]; /* entries that are free */
    int64_t *queue, *queued_in, queue_begin, queue_end, queue_mask; /* µops on the way to schedulers, around, and their cycles */
    Sides sides;
    int32_t odd; /* whether the slot that is dispatched is an odd one of its cycle */
    int32_t behind_queue; /* whether some of the block get their ports there by how many wait */
    int32_t scheduler_of[PORTS];
    uint32_t ports_of[SCHEDULERS], with_room; /* ports of each scheduler; ports whose schedulers have room */
    uint32_t loads, loads_room; /* as in Slot: dispatched in this cycle; MOST_IN_BYTE less the most of a cycle */
    int32_t registers_free, registers_coming[RELEASES]; /* of vectors; by cycle, those that are free again */
    int32_t addressings, addressing[PORTS], near[PORTS]; /* ports of accesses, and how many µops may wait for each while those of a cycle find room for sure */
    int32_t by_port, phase, phases; /* ports with schedulers of their own, given at issue; pass modulo PHASES; of them, those that differ */
    int32_t plain; /* nothing of what only some cores and blocks have: schedulers by port, operand paths that are lent,
                      accesses that take all pipes, vector registers that are counted, ports of one result a cycle */
    uint32_t accessed; /* ports that got an access in this cycle */
    uint32_t vectors; /* ports that start loads of vectors, where these take them in order */
    int32_t by_counters; /* whether accesses of this cycle take the port for which fewest wait, though there are queues */
    int32_t loads_in_a_row, fewer_loads; /* cycles that dispatched the most of them; whether each dispatches one fewer */
    int32_t ordered[MOST_IN_ORDER], in_order, next_in_order; /* ports of the cycle's accesses, in order */
    int32_t queues, scheduler_of_queue[QUEUES]; /* schedulers of ports that are assigned together */
    uint64_t entries_seen; /* by dispatch, 16 bits for each queue; it learns late of what enters and leaves them: */
    uint64_t moved[SEEN], moving; /* by cycle, and in this one, how many more entered than left, in bits that borrow from one another */
    uint64_t entry_of[PORTS]; /* an entry of the queue of each port, 0 if it has none */
    Assignment known[KNOWN]; /* queues that were assigned, by what they depend on */
    Ahead *ahead; /* by slot of the block */
    int32_t *assigned, next_assigned, fitting; /* queues of the cycle's µops; slots that fit into it, any number without queues */
    int32_t kinds, *taken; /* by kind of µop, the ports given in this cycle; by rank, how many */
    int32_t by_rank;
    int32_t counters[PORTS], starting[PORTS], started[PORTS], before[PORTS], turn[GROUPS]; /* `before`: `starting` of the cycle before, where ports are chosen by rank */
    int32_t turns[GROUPS], in_turn[GROUPS][PORTS]; /* ports of each set that alternates */
    int64_t divider_free, alone_free, data_free[PORTS], pipe_free[PORTS]; /* `pipe_free`: for loads */
    Waiting waits_there;
    uint32_t giving[RESULTS]; /* by cycle, the ports that give a result, of those that give one a cycle */
    int64_t back[PORTS]; /* cycle from which an operand path that was lent is free again */
    int64_t brings[PORTS]; /* the latest cycle in which the path of a port brings another one's result */
    uint32_t read_once, read_twice, banked; /* banks of the cache that loads read in this cycle; ports of such loads */
    uint32_t pipes; /* ports of accesses that may go to two lines at once */
    uint32_t lending, shared; /* ports that lend their operand path; these, and others that something may keep busy */
    int64_t path_used[PORTS]; /* cycle from which such a port uses it no more itself */
    uint32_t lenders; /* ports that lend their paths, where one of them starts a µop in a cycle */
    int64_t lender_started; /* the latest cycle in which one did */

    int64_t entries_delivered, entries_issued, fetched, predecoded, decoded, decodable[HISTORY];
    int64_t fetched_lines, oldest_lines, oldest_until; /* lines of code of the passes before the one that is fetched, and
                                                          before the oldest unit in the queue; entries up to its end */
    int32_t unit_oldest, spare; /* that unit; entries that were read ahead of delivery at most */
    int32_t unit_part, decoding, microcode_wait, microcode_left, predecode_step, opened; /* lines of code read of the pass */

    int64_t resumed;  /* cycle from which units are fetched behind the latest mispredicted branch */
    int32_t stopped;  /* such a branch was fetched and not executed */

    Tally tally;

    Snapshot *snapshots; /* the latest ones, around in a circle, by signature */
    uint32_t signatures[SNAPSHOTS];
    int64_t snapshots_taken, checks, next_snapshot, differed; /* the µop in which states of one signature differed last */
    Counts since;
} Sim;

static Instance *instance(const Sim *s, int64_t id) { return &s->ring[id & s->ring_mask]; }

/* ---- values become known, µops become ready ---- */

INLINE void set_alarm(Sim *s, Instance *x)
{
    int64_t when = x->ready > s->now ? x->ready : s->now + 1;
    int32_t *head = &s->calendar[when & s->calendar_mask];
    x->next = *head;
    *head = (int32_t)(x->id & s->ring_mask);
}

/* When a µop can start whose operand is there at a cycle: one that comes when the µop may start for the first time, or in
   the cycle behind, is seen a cycle later, where all ports share a scheduler. */
INLINE int64_t seen(const Instance *x, int64_t operand, const int by_port)
{
    return by_port ? operand : operand + ((uint64_t)(operand - x->enters) <= 1);
}

/* Tell who waits for a µop of which it is known when it is done; those without ports among them tell others in turn, when
   it is known of all that they wait for. Nothing is called, so that no registers are saved. */
INLINE void tell(Sim *s, Instance *x, int64_t base, const int by_port)
{
    int32_t portless = -1; /* that are known, and did not tell it */
    for (;;) {
        const Op *op = x->op;
        x->base = base;
        if (op->redirects) {
            s->stopped = 0;
            s->resumed = base + s->core->redirect;
        }
        const int64_t own = x->id, issued = s->microops_issued;
        for (const Apart *w = op->users, *end = op->users_end; w < end; w++) {
            const int64_t id = own + w->distance;
            if (id >= issued)
                continue;
            Instance *y = instance(s, id);
            const int64_t when = seen(y, base + w->cycles, by_port);
            y->ready = when > y->ready ? when : y->ready;
            if (--y->pending)
                continue;
            if (!y->op->ports) {
                y->next = portless;
                portless = (int32_t)(id & s->ring_mask);
            } else if (!by_port || y->port >= 0) {
                set_alarm(s, y);
            }
        }
        if (portless < 0)
            return;
        x = &s->ring[portless];
        portless = x->next;
        base = x->ready;
        x->done = base > s->now ? base : s->now;
    }
}

APART void know_by_port(Sim *s, Instance *x, int64_t base) { tell(s, x, base, 1); }

APART void know_shared(Sim *s, Instance *x, int64_t base) { tell(s, x, base, 0); }

INLINE void know(Sim *s, Instance *x, int64_t base, const int by_port)
{
    if (by_port)
        know_by_port(s, x, base);
    else
        know_shared(s, x, base);
}

/* Of a µop it is known how long it waits for others. */
INLINE void all_known(Sim *s, Instance *x, const int by_port)
{
    if (!x->op->ports) {
        x->done = x->ready > s->now ? x->ready : s->now;
        know(s, x, x->ready, by_port);
    } else if (!by_port || x->port >= 0) {
        set_alarm(s, x);
    }
}

INLINE void queue_up(Sim *s, int32_t port, const Instance *x)
{
    int64_t *queue = s->ready[port];
    if (s->ready_end[port] == s->ready_room) {
        s->ready_end[port] -= s->first_ready[port];
        memmove(queue, queue + s->first_ready[port], sizeof(int64_t) * (size_t)s->ready_end[port]);
        s->first_ready[port] = 0;
    }
    const int32_t first = s->first_ready[port];
    int32_t k = s->ready_end[port]++;
    while (k > first && queue[k - 1] > x->id) {
        queue[k] = queue[k - 1];
        k--;
    }
    queue[k] = x->id;
    s->waiting |= 1u << port;
}

/* `has_port`: whether µops have ports before they start. */
INLINE void wake(Sim *s, const int has_port)
{
    int32_t *head = &s->calendar[s->now & s->calendar_mask];
    int32_t k = *head, later = -1;
    while (k >= 0) {
        Instance *x = &s->ring[k];
        const int32_t next = x->next;
        if (x->ready <= s->now) {
            queue_up(s, has_port ? x->port : 0, x);
        } else { /* a round of the calendar or more away */
            x->next = later;
            later = k;
        }
        k = next;
    }
    *head = later;
}

/* ---- retire, dispatch, issue ---- */

INLINE void retire(Sim *s, const int plain)
{
    const Core *c = s->core;
    const int64_t left = s->slots_issued - s->slots_retired, most = left < c->retire_width ? left : c->retire_width;
    int64_t id = s->microops_retired, not_done = s->not_done;
    int32_t count = 0, registers = 0;
    const Slot *slot = s->retiring;
    for (; count < most; count++) {
        const int64_t end = id + slot->count;
        while (not_done < end && instance(s, not_done)->done <= s->now)
            not_done++;
        if (not_done < end)
            break;
        id = end;
        if (!plain)
            registers += slot->registers;
        if (++slot == s->slots_end) {
            slot = s->slots;
            s->pass_retiring++;
        }
    }
    s->not_done = not_done;
    s->slots_retired += count;
    s->microops_retired = id;
    s->retiring = slot;
    if (!plain && c->vector_registers)
        s->registers_coming[(s->now + c->register_release) & (RELEASES - 1)] += registers;
}

/* Whether an access may start on any port that starts accesses. */
static int starts_anywhere(const Core *c, int32_t ports) { return c->addressing && (ports & c->addressing) == c->addressing; }

/* Whether an access goes to two lines at once, by all its pipes, where it goes to two. */
static int may_take_all(const Core *c, const Op *m)
{
    return !c->lines_in_turn && m->data == 1 && (m->ports & (m->ports - 1)) && !starts_anywhere(c, m->ports);
}

static int takes_all(const Sim *s, const Instance *x, const Op *m) { return x->slow && !x->banks && may_take_all(s->core, m); }

/* Whether nothing older is ready of what keeps each other waiting. */
static int is_next_alone(const Sim *s, const Instance *x)
{
    for (uint32_t rest = s->waiting; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        for (int32_t k = s->first_ready[port]; k < s->ready_end[port] && s->ready[port][k] < x->id; k++)
            if (instance(s, s->ready[port][k])->op->alone)
                return 0;
    }
    return 1;
}

/* Whether a path that the result of a µop takes has one of this cycle already. */
static int brings_result(const Sim *s, const Op *m)
{
    for (uint32_t rest = (uint32_t)m->paths; rest; rest &= rest - 1)
        if (s->brings[__builtin_ctz(rest)] > s->now)
            return 1;
    return 0;
}

static void take_result_paths(Sim *s, const Op *m)
{
    for (uint32_t rest = (uint32_t)m->paths; rest; rest &= rest - 1)
        s->brings[__builtin_ctz(rest)] = s->now + 1;
}

INLINE int can_dispatch(const Sim *s, const Instance *x, const Op *m, int32_t port)
{
    return !m->limited || (!(m->divider && s->divider_free > s->now) &&
                           !(m->alone && (s->alone_free >= (s->now + 1) * TICKS || !is_next_alone(s, x))) &&
                           !(m->data && s->data_free[port] > s->now) && !(m->load && s->pipe_free[port] > s->now) &&
                           !(m->paths && brings_result(s, m)));
}

/* An entry of a scheduler is taken, or free again: whether its ports have room. */
static void take_room(Sim *s, int32_t scheduler)
{
    if (!--s->room[scheduler])
        s->with_room &= ~s->ports_of[scheduler];
}

static void give_room(Sim *s, int32_t scheduler)
{
    if (!s->room[scheduler]++)
        s->with_room |= s->ports_of[scheduler];
}

/* A µop enters the scheduler of a port, or leaves it. */
INLINE void enter_scheduler(Sim *s, const Op *m, int32_t port)
{
    take_room(s, s->scheduler_of[port]);
    s->moving += s->entry_of[port] & m->counted;
}

INLINE void leave_scheduler(Sim *s, const Op *m, int32_t port)
{
    give_room(s, s->scheduler_of[port]);
    s->moving -= s->entry_of[port] & m->counted;
}

static uint32_t *gives_in(Sim *s, int64_t cycle) { return &s->giving[cycle & (RESULTS - 1)]; }

/* When the result of a µop comes that gives it in two cycles: the first of two that are free. */
static int64_t result_in_two(Sim *s, int64_t when, uint32_t own)
{
    while ((*gives_in(s, when) | *gives_in(s, when + 1)) & own)
        when++;
    *gives_in(s, when) |= own;
    *gives_in(s, when + 1) |= own;
    return when;
}

/* The cycle from which the latency of a µop counts that starts: a port gives one result a cycle, in two cycles one of two
   passes; very late ones are not followed. */
INLINE int64_t result_from(Sim *s, const Op *m, int32_t port)
{
    const uint32_t own = m->one_result & 1u << port;
    if (!own)
        return s->now;
    int64_t when = s->now + m->latency;
    if (m->data > 1) {
        when = result_in_two(s, when, own);
    } else {
        while (*gives_in(s, when) & own)
            when++;
        *gives_in(s, when) |= own;
    }
    return when - m->latency;
}

INLINE void dispatch(Sim *s, Instance *x, const Op *m, int32_t port, const int plain, const int by_port)
{
    if (m->limited) {
        if (m->divider)
            s->divider_free = s->now + m->divider;
        if (m->alone)
            s->alone_free = (s->alone_free > s->now * TICKS ? s->alone_free : s->now * TICKS) + m->alone;
        if (m->data)
            s->data_free[port] = s->now + m->data + (!plain && takes_all(s, x, m) ? 0 : x->slow & 1);
        if (!plain && x->slow > 1)
            s->pipe_free[port] = s->data_free[port] + 1;
        if (!plain && m->paths)
            take_result_paths(s, m);
    }
    s->counters[port]--;
    if (by_port)
        sides_leave(&s->sides, port);
    else
        s->started[port]++;
    s->tally.dispatched[port]++;
    if (by_port)
        leave_scheduler(s, m, port);
    else
        s->room[m->scheduler]++;
    const int64_t base = plain ? s->now : result_from(s, m, port);
    x->done = base + m->latency;
    know(s, x, base, by_port);
}

/* Nearly always the oldest or one close behind it. */
static void take_out(Sim *s, int32_t port, int32_t k)
{
    int64_t *queue = s->ready[port];
    for (; k > s->first_ready[port]; k--)
        queue[k] = queue[k - 1];
    if (++s->first_ready[port] == s->ready_end[port]) {
        s->first_ready[port] = s->ready_end[port] = 0;
        s->waiting &= ~(1u << port);
    }
}

/* Start the accesses that may start anywhere on ports that none has taken in this cycle. */
static void dispatch_others(Sim *s, uint32_t unused)
{
    for (uint32_t rest = s->waiting & unused; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        for (int32_t k = s->first_ready[port]; k < s->ready_end[port]; k++) {
            Instance *x = instance(s, s->ready[port][k]);
            if (!starts_anywhere(s->core, x->op->ports) || !can_dispatch(s, x, x->op, port))
                continue;
            take_out(s, port, k);
            dispatch(s, x, x->op, port, 0, s->by_port);
            break;
        }
    }
}

/* Count a µop, and its entry of a scheduler, for another port. */
static void move(Sim *s, Instance *x, int32_t port)
{
    s->counters[x->port]--;
    s->counters[port]++;
    if (s->by_port) {
        leave_scheduler(s, x->op, x->port);
        enter_scheduler(s, x->op, port);
    }
    x->port = (int16_t)port;
}

/* Where accesses may go to two lines at once, pipes are taken in order: one that needs all of them waits until they are
   free, and the younger ones wait for it, but not what may start on any port that starts accesses. */
static void dispatch_in_order(Sim *s)
{
    uint32_t unused = s->pipes;
    while (unused) {
        Instance *x = NULL;
        for (uint32_t rest = s->waiting & s->pipes; rest; rest &= rest - 1) {
            const int32_t port = __builtin_ctz(rest);
            Instance *first = instance(s, s->ready[port][s->first_ready[port]]);
            x = !x || first->id < x->id ? first : x;
        }
        if (!x)
            break;
        const Op *m = x->op;
        const uint32_t able = unused & (starts_anywhere(s->core, m->ports) ? 1u << x->port : (uint32_t)m->ports);
        const int all = takes_all(s, x, m);
        if (!able || (all && able != (uint32_t)m->ports))
            break;
        const int32_t port = able >> x->port & 1 ? x->port : __builtin_ctz(able);
        unused &= all ? ~able : ~(1u << port);
        if (!can_dispatch(s, x, m, port))
            continue;
        take_out(s, x->port, s->first_ready[x->port]);
        if (port != x->port)
            move(s, x, port);
        dispatch(s, x, m, port, 0, s->by_port);
    }
    if (s->core->addressing)
        dispatch_others(s, unused);
}

/* Whether the third vector that a µop reads comes straight from what computes it: it is there since so few cycles. What
 * an eliminated move has copied may be any age, unless it is there since this cycle. */
static int comes_straight(const Sim *s, const Instance *x, const Op *m, int32_t cycles)
{
    for (const Apart *w = m->waits; w < m->waits_end; w++) {
        const int64_t source = x->id - w->distance;
        if (w->third && !(w->third == LOADED && s->core->loaded_third) && source >= 0) {
            const int64_t age = s->now - instance(s, source)->base - w->cycles;
            if (!age || (w->cycles && age > 0 && age < cycles))
                return 1;
        }
    }
    return 0;
}

/* Whether something older waits for the paths of all, and none of them is lent in this cycle. */
static int gives_way(const Sim *s, const Instance *x)
{
    int older = 0;
    for (uint32_t rest = s->lenders; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        if (s->back[port] > s->now)
            return 0;
        if (s->waiting >> port & 1) {
            const Instance *first = instance(s, s->ready[port][s->first_ready[port]]);
            older |= first->op->load_fed && first->id < x->id;
        }
    }
    return older;
}

/* Take the operand path over which the third vector comes, that of another port; 0 while it is busy. */
static int borrow(Sim *s, const Instance *x, const Op *m, int32_t port)
{
    const int32_t lender = s->core->borrowed[port] - 1;
    if (lender < 0 || comes_straight(s, x, m, s->core->straight_cycles))
        return 1;
    if (s->path_used[lender] > s->now || s->back[lender] > s->now || gives_way(s, x))
        return 0;
    s->back[lender] = s->now + (m->data ? m->data : 1);
    return 1;
}

/* Whether a stored vector comes straight from what computes it. */
static int is_straight_store(const Sim *s, const Instance *x, const Op *m)
{
    return s->core->straight_stores && m->third && !m->load_fed && comes_straight(s, x, m, 1);
}

/* Whether the path of a port is there for a µop: not lent, or not needed. */
static int has_path(const Sim *s, const Instance *x, const Op *m, int32_t port)
{
    if (s->brings[port] == s->now)
        return 0;
    for (uint32_t rest = m->load_fed ? s->lenders : 0; rest; rest &= rest - 1)
        if (s->back[__builtin_ctz(rest)] > s->now)
            return 0;
    return s->back[port] <= s->now || (s->lending >> port & 1 && is_straight_store(s, x, m));
}

/* Whether a µop of the ports that lend their paths takes none of results, as stores, or one that counts as theirs. */
static int counts_as_store(const Sim *s, const Op *m)
{
    return !m->paths || (m->paths & s->core->one_store);
}

/* Whether a µop is the next one on the ports that lend their paths, where one of these starts in a cycle that stores or
   gives its result over a path that counts as much: the oldest, or one that comes straight. */
static int is_next_lender(const Sim *s, const Instance *x, const Op *m, int32_t port)
{
    if (!(s->lenders >> port & 1) || !counts_as_store(s, m))
        return 1;
    if (s->lender_started == s->now)
        return 0;
    if (is_straight_store(s, x, m))
        return 1;
    for (uint32_t rest = s->lenders & s->waiting; rest; rest &= rest - 1) {
        const int32_t other = __builtin_ctz(rest);
        for (int32_t k = s->first_ready[other]; k < s->ready_end[other] && s->ready[other][k] < x->id; k++)
            if (counts_as_store(s, instance(s, s->ready[other][k])->op))
                return 0;
    }
    return 1;
}

/* Take all operand paths that a µop needs; 0 where one is not there. */
static int takes_paths(Sim *s, const Instance *x, const Op *m, int32_t port)
{
    if (!is_next_lender(s, x, m, port) || !has_path(s, x, m, port) || (m->third && !borrow(s, x, m, port)))
        return 0;
    if (s->lenders >> port & 1 && counts_as_store(s, m))
        s->lender_started = s->now;
    if (s->lending >> port & 1 && !is_straight_store(s, x, m))
        s->path_used[port] = s->now + (m->data ? m->data : 1);
    return 1;
}

/* Read the banks of the cache that a load needs; 0 where two loads of this cycle read one of them. */
static int reads_banks(Sim *s, const Instance *x)
{
    if (x->banks & s->read_twice)
        return 0;
    s->read_twice |= s->read_once & x->banks;
    s->read_once |= x->banks;
    return 1;
}

/* The banks that a load reads in the pass that issues. */
static uint32_t banks_of(const Sim *s, const Op *m)
{
    const int32_t bytes = s->core->bank_bytes, count = PHASES / bytes, begin = (m->place + m->stride * s->phase) % PHASES;
    const int32_t first = begin / bytes, touched = (begin + m->size - 1) / bytes + 1 - first;
    const uint64_t banks = ((UINT64_C(1) << (touched < count ? touched : count)) - 1) << first;
    return (uint32_t)((banks | banks >> count) & ((UINT64_C(1) << count) - 1));
}

/* Where loads meet in banks of the cache, the oldest of each port starts, those that are older first; one that finds a bank
   read twice waits, and its port with it, as does the second one that crosses lines. */
INLINE void dispatch_loads(Sim *s, const int plain, const int by_port)
{
    int crossed = 0;
    s->read_once = s->read_twice = 0;
    for (uint32_t left = s->waiting & s->banked; left;) {
        int32_t port = __builtin_ctz(left);
        for (uint32_t rest = left & (left - 1); rest; rest &= rest - 1) {
            const int32_t other = __builtin_ctz(rest);
            if (s->ready[other][s->first_ready[other]] < s->ready[port][s->first_ready[port]])
                port = other;
        }
        left &= ~(1u << port);
        Instance *x = instance(s, s->ready[port][s->first_ready[port]]);
        if (can_dispatch(s, x, x->op, port) && !(x->slow && crossed) && reads_banks(s, x)) {
            crossed |= x->slow;
            take_out(s, port, s->first_ready[port]);
            dispatch(s, x, x->op, port, plain, by_port);
        }
    }
}

/* Whether a µop waits at a port that is one of those whose µops do, as its result would come with another one. Younger ones
   pass it, unless the port has started as many of them in a row as it may and it was the first to wait in the cycle before. */
static int waits_for_result(Sim *s, const Instance *x, const Op *m, int32_t port, int *stop)
{
    Waiting *w = &s->waits_there;
    const uint32_t own = m->one_result & 1u << port;
    if (!own || !(*gives_in(s, s->now + m->latency) & own))
        return 0;
    if (w->first < 0) {
        w->first = x->id;
        *stop = w->stopped == x->id || (w->before == x->id && w->passing >= s->core->result_passes);
        if (*stop)
            w->stopped = x->id;
    }
    return 1;
}

/* Start the oldest µop of a port whose µops wait for a free result. */
INLINE void dispatch_waiting(Sim *s, int32_t port, const int by_port)
{
    Waiting *w = &s->waits_there;
    int stop = 0, late = 0;
    if (w->cycle != s->now - 1) /* nothing was ready in the cycle before */
        *w = (Waiting){.before = -1, .stopped = -1};
    w->cycle = s->now;
    w->first = -1;
    for (int32_t k = s->first_ready[port]; k < s->ready_end[port] && !stop; k++) {
        Instance *x = instance(s, s->ready[port][k]);
        const Op *m = x->op;
        if (!can_dispatch(s, x, m, port) || waits_for_result(s, x, m, port, &stop))
            continue;
        if ((m->third || s->shared >> port & 1) && !takes_paths(s, x, m, port))
            break;
        late = m->latency > 1;
        take_out(s, port, k);
        dispatch(s, x, m, port, 0, by_port);
        break;
    }
    w->before = w->first;
    w->passing = late ? w->passing + (w->passing < s->core->result_passes) : 0;
}

INLINE void dispatch_bound(Sim *s, const int plain, const int by_port)
{
    if (!plain && s->pipes)
        dispatch_in_order(s);
    if (s->banked)
        dispatch_loads(s, plain, by_port);
    for (uint32_t rest = s->waiting & ~s->banked & (plain ? ~0u : ~s->pipes); rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        if (!plain && (uint32_t)s->core->result_waits >> port & 1) {
            dispatch_waiting(s, port, by_port);
            continue;
        }
        for (int32_t k = s->first_ready[port]; k < s->ready_end[port]; k++) {
            Instance *x = instance(s, s->ready[port][k]);
            const Op *m = x->op;
            if (can_dispatch(s, x, m, port)) {
                if (!plain && (m->third || s->shared >> port & 1) && !takes_paths(s, x, m, port))
                    break;
                take_out(s, port, k);
                dispatch(s, x, m, port, plain, by_port);
                break;
            }
        }
    }
}

/* Ports are taken when µops are ready: the oldest first, each on the free port that fewest kinds of µops can use. */
static void dispatch_free(Sim *s)
{
    int32_t free = (1 << PORTS) - 1;
    for (int32_t k = s->first_ready[0]; k < s->ready_end[0]; k++) {
        Instance *x = instance(s, s->ready[0][k]);
        const Op *m = x->op;
        int32_t best = -1;
        for (int32_t port = 0; port < PORTS; port++)
            if ((m->ports & free) >> port & 1 && can_dispatch(s, x, m, port) &&
                (best < 0 || s->starting[port] < s->starting[best]))
                best = port;
        if (best < 0)
            continue;
        free &= ~(1 << best);
        take_out(s, 0, k);
        s->counters[best]++;
        x->port = (int16_t)best;
        dispatch(s, x, m, best, 0, 0);
    }
}

/* The port whose turn it is in a set that alternates. */
static int32_t port_in_turn(Sim *s, int32_t group)
{
    const int32_t turn = s->turn[group];
    s->turn[group] = turn + 1 == s->turns[group] ? 0 : turn + 1;
    return s->in_turn[group][turn];
}

/* The same where the slot tells which other port is taken: of two others the higher one in the second slot, the lower one
   in the third. Ties go to the lower port, and from the gap on between any two ports there is no other. */
static int32_t choose_by_slot(const Sim *s, const Op *m, int32_t slot)
{
    int32_t least = __builtin_ctz((unsigned)m->ports), most = least;
    for (uint32_t rest = (uint32_t)m->ports; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        least = s->starting[port] < s->starting[least] ? port : least;
        most = s->starting[port] > s->starting[most] ? port : most;
    }
    const uint32_t others = (uint32_t)m->ports & ~(1u << least);
    if (s->starting[most] - s->starting[least] >= s->core->counter_gap)
        return least;
    if (!(others & (others - 1)))
        return slot % 2 ? __builtin_ctz(others) : least;
    return slot % 4 == 1 ? 31 - __builtin_clz(others) : slot % 4 == 2 ? __builtin_ctz(others) : least;
}

/* The same where the number of µops with the same ports so far in this cycle tells the rank of the port among those that are
   not far behind the first one, by their counts a cycle ago: the second at least in the fourth slot, the first in the fifth. */
static int32_t choose_by_rank(Sim *s, const Op *m, int32_t slot)
{
    int32_t keys[PORTS], count = 0, near = 1; /* µops and port in one number, in ascending order */
    for (uint32_t rest = (uint32_t)m->ports; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest), key = s->before[port] * RANKS + RANKS - 1 - port;
        int32_t k = count++;
        for (; k && keys[k - 1] > key; k--)
            keys[k] = keys[k - 1];
        keys[k] = key;
    }
    while (near < count && keys[near] / RANKS - keys[0] / RANKS < s->core->counter_gap)
        near++;
    const int32_t alike = s->taken[m->kind]++, rank = slot == 4 ? 0 : slot == 3 && !alike ? 1 : alike;
    return RANKS - 1 - keys[rank % near] % RANKS;
}

/* The renamer's choice: the port with the fewest µops, or the one with the second fewest; ties go to the higher one. */
static int32_t choose_port(Sim *s, const Op *m, int32_t slot)
{
    if (m->group >= 0)
        return port_in_turn(s, m->group);
    if (!(m->ports & (m->ports - 1)))
        return __builtin_ctz((unsigned)m->ports);
    if (s->core->port_choice == BY_SLOT)
        return choose_by_slot(s, m, slot);
    if (s->by_rank)
        return choose_by_rank(s, m, slot);
    int32_t best = INT32_MAX, second = INT32_MAX; /* µops and port in one number, so that comparing takes no branches */
    for (uint32_t rest = (uint32_t)m->ports; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest), key = s->starting[port] * RANKS + RANKS - 1 - port;
        const int32_t larger = key > best ? key : best;
        best = key < best ? key : best;
        second = larger < second ? larger : second;
    }
    if (slot % 2 == 0 || second / RANKS - best / RANKS >= s->core->counter_gap)
        return RANKS - 1 - best % RANKS;
    return RANKS - 1 - second % RANKS;
}

/* ---- schedulers that belong to ports ---- */

/* The port of the next µop that is assigned: of its queue the one that it alone of the µops that are may use, a branch
   unit, before the others; -1 where that has no room. */
INLINE int32_t port_of_queue(Sim *s, const Op *m)
{
    const int32_t scheduler = s->scheduler_of_queue[s->assigned[s->next_assigned++]];
    const uint32_t ports = (uint32_t)m->ports & s->ports_of[scheduler] & s->with_room;
    const uint32_t beside = ports & ~(uint32_t)s->core->together;
    return ports ? __builtin_ctz(beside ? beside : ports) : -1;
}

/* Of some ports the one for which fewest µops wait, -1 where there is none. */
static int32_t least_used(const int32_t *counters, uint32_t ports)
{
    int32_t best = -1;
    for (; ports; ports &= ports - 1) {
        const int32_t port = __builtin_ctz(ports);
        if (best < 0 || counters[port] <= counters[best])
            best = port;
    }
    return best;
}

/* Behind the queue: of the ports that no µop of the same ones got in this cycle the one for which fewest waited at its
   start; -1 where its scheduler has no room, for which the queue waits. */
INLINE int32_t port_behind_queue(Sim *s, const Op *m)
{
    const uint32_t ports = (uint32_t)m->ports, fresh = ports & ~(uint32_t)s->taken[m->kind];
    const int32_t port = least_used(s->starting, fresh ? fresh : ports);
    if (!(s->with_room >> port & 1))
        return -1;
    s->taken[m->kind] = (fresh ? s->taken[m->kind] : 0) | 1 << port;
    return port;
}

/* The entries of the queue of a port as dispatch sees them; of a port without one the µops that wait for it. */
INLINE int32_t entries_of(const Sim *s, int32_t port, const int32_t *counters)
{
    return s->entry_of[port] ? (int32_t)(s->entries_seen >> __builtin_ctzll(s->entry_of[port]) & 0xFFFF) : counters[port];
}

/* Of the ports that start accesses one that none got in this cycle, if there is one: where they have queues the first one
   with the fewest entries, else the one for which fewest wait. */
INLINE int32_t port_of_access(const Sim *s, uint32_t ports, uint32_t given, const int32_t *counters)
{
    const uint32_t allowed = ports & ~given ? ports & ~given : ports;
    if (!s->queues || s->by_counters)
        return least_used(counters, allowed);
    int32_t best = __builtin_ctz(allowed);
    for (uint32_t rest = allowed & (allowed - 1); rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        best = entries_of(s, port, counters) < entries_of(s, best, counters) ? port : best;
    }
    return best;
}

INLINE int32_t port_with_room(Sim *s, const Op *m)
{
    if (m->choice == TOGETHER)
        return port_of_queue(s, m);
    if (m->choice == LEAST_USED)
        return least_used(s->counters, (uint32_t)m->ports & s->with_room);
    if (m->choice == BEHIND_QUEUE)
        return port_behind_queue(s, m);
    const int32_t port = s->next_in_order < s->in_order ? s->ordered[s->next_in_order++]
                                                        : port_of_access(s, (uint32_t)m->ports, s->accessed, s->counters);
    s->accessed |= 1u << port;
    return s->with_room >> port & 1 ? port : -1;
}

/* Count a µop for a port, and an entry of its scheduler as taken. */
static void reserve(Sim *s, const Op *m, int32_t port)
{
    s->counters[port]++;
    sides_enter(&s->sides, port);
    enter_scheduler(s, m, port);
}

/* A µop of the queue enters the scheduler of its port. */
INLINE void enter_from_queue(Sim *s, Instance *x, int32_t port)
{
    reserve(s, x->op, port);
    x->port = (int16_t)port;
    if (!x->pending)
        set_alarm(s, x);
}

/* Move µops of this cycle to the sides that their slots tell, the other one if that has no port for them; those behind one
   that finds no room stay. The first µop that stays. */
INLINE int64_t leave_by_slot(Sim *s, int64_t k)
{
    for (; k < s->queue_end; k++) {
        Instance *x = instance(s, s->queue[k & s->queue_mask]);
        const uint32_t ports = (uint32_t)x->op->ports;
        const int32_t side = x->port == ODD_SLOT ? 1 : 0, own = ports & s->sides.ports_of[side] ? side : !side;
        const int32_t port = sides_port(&s->sides, s->core, s->now, ports, own);
        if (port < 0)
            break;
        enter_from_queue(s, x, port);
    }
    return k;
}

/* Move µops to the sides in turn, as many as a cycle dispatches, once they have passed the queue; one waits for room at the
   side whose turn it is. Several leave the start to the other side, unless one waits that finds room at neither: the turn
   goes on then. The first µop that stays. */
INLINE int64_t leave_in_turn(Sim *s, int64_t k)
{
    Sides *sides = &s->sides;
    const int64_t passed = s->now - s->core->queue_passage;
    int32_t moved = 0, full = 0, stuck = 0;
    for (; k < s->queue_end && moved < s->core->issue_width && s->queued_in[k & s->queue_mask] <= passed; k++) {
        Instance *x = instance(s, s->queue[k & s->queue_mask]);
        const uint32_t ports = (uint32_t)x->op->ports;
        int32_t side = sides->start ^ (moved & 1);
        side ^= (ports & sides->avoided[side]) != 0;
        side ^= !(ports & sides->ports_of[side]);
        const int32_t port = sides_port(sides, s->core, s->now, ports, side);
        if (port < 0) {
            full = 1;
            stuck = sides->held[!side] >= sides->room[!side];
            break;
        }
        enter_from_queue(s, x, port);
        moved++;
    }
    sides->start ^= stuck ? moved & 1 : full ? moved > 0 : moved > 1;
    return k;
}

/* Move µops from the queue to their schedulers, in order. */
INLINE void leave_queue(Sim *s)
{
    int64_t k = s->queue_begin;
    if (s->behind_queue)
        memset(s->taken, 0, (size_t)s->kinds * sizeof *s->taken);
    if (s->sides.places) {
        sides_look(&s->sides, s->core, s->now);
        const int by_slot = !s->sides.uneven && s->queued_in[k & s->queue_mask] == s->now;
        s->queue_begin = by_slot ? leave_by_slot(s, k) : leave_in_turn(s, k);
        return;
    }
    for (; k < s->queue_end; k++) {
        Instance *x = instance(s, s->queue[k & s->queue_mask]);
        const int32_t port = port_with_room(s, x->op);
        if (port < 0)
            break;
        enter_from_queue(s, x, port);
    }
    s->queue_begin = k;
}

/* Give the next µop of a slot its port: -1 to one without ports, and to one that is queued behind `queued` others; 0 if
   there is no room. */
INLINE int place_microop(Sim *s, const Op *m, int64_t queued, int32_t *port)
{
    *port = -1;
    if (m->at_issue == QUEUED)
        return queued < s->core->queue_entries;
    if (m->at_issue == NOWHERE)
        return 1;
    *port = port_with_room(s, m);
    return *port >= 0;
}

/* Give the µops of a slot of the block their ports and entries; 0, and none, if one finds no room. */
INLINE int place_several(Sim *s, const Slot *own)
{
    int64_t queued = s->queue_end - s->queue_begin;
    for (int32_t placed = 0; placed < own->count; placed++) {
        const Op *m = &own->ops[placed];
        int32_t *port = &s->given[placed];
        if (!place_microop(s, m, queued, port)) {
            while (placed-- > 0)
                if (s->given[placed] >= 0) {
                    s->counters[s->given[placed]]--;
                    leave_scheduler(s, &own->ops[placed], s->given[placed]);
                }
            return 0;
        }
        if (*port >= 0)
            reserve(s, m, *port);
        queued += m->at_issue == QUEUED;
    }
    return 1;
}

/* What a µop that is issued waits for: of those that are known, until when. */
INLINE void wait_for_sources(const Sim *s, Instance *x, const Op *m, const int by_port)
{
    const int64_t own = x->id;
    int64_t ready = x->ready;
    int32_t pending = 0;
    for (const Apart *w = m->waits, *end = m->waits_end; w < end; w++) {
        const int64_t source = own - w->distance;
        if (source < 0)
            continue;
        const Instance *y = instance(s, source);
        if (w->distance < 0 || y->done == never) { /* the source may issue later than what waits for it */
            pending++;
            continue;
        }
        const int64_t when = seen(x, y->base + w->cycles, by_port);
        ready = when > ready ? when : ready;
    }
    x->ready = ready;
    x->pending = pending;
}

/* The next µop of the order of issue, as it is when it is issued; `given`: its port, -1 for none yet; `by_port` as in Sim. */
INLINE Instance *next_microop(Sim *s, const Op *m, int32_t given, const int by_port)
{
    const int64_t id = s->microops_issued++;
    Instance *x = instance(s, id);
    x->id = id; /* the rest is written before it is read */
    x->ready = s->now + m->delay;
    x->done = never;
    x->op = m;
    x->port = (int16_t)given;
    x->slow = 0;
    x->banks = 0;
    if (m->varies) {
        x->slow = (int16_t)((m->slow >> s->phase & 1) | (m->more >> s->phase & 1) << 1);
        x->banks = m->size ? banks_of(s, m) : 0;
    }
    x->enters = by_port || !m->ports ? BEFORE_ALL : x->ready;
    return x;
}

INLINE void issue_microop(Sim *s, const Op *m, int32_t slot, const int plain)
{
    const Core *c = s->core;
    int32_t port = -1;
    if (m->ports) {
        s->room[m->scheduler]--;
        if (plain || c->issue_ports) {
            port = choose_port(s, m, slot);
            s->counters[port]++;
        }
    }
    Instance *x = next_microop(s, m, port, !plain && c->by_port);
    wait_for_sources(s, x, m, 0);
    if (!x->pending)
        all_known(s, x, 0);
}

/* The same where schedulers belong to ports: `given` is the port, -1 for none yet. */
INLINE void issue_to_port(Sim *s, const Op *m, int32_t given)
{
    Instance *x = next_microop(s, m, given, 1);
    if (m->at_issue == QUEUED) {
        x->port = s->odd ? ODD_SLOT : EVEN_SLOT;
        s->queued_in[s->queue_end & s->queue_mask] = s->now;
        s->queue[s->queue_end++ & s->queue_mask] = x->id;
    }
    wait_for_sources(s, x, m, 1);
    if (!x->pending)
        all_known(s, x, 1);
}

/* Issue the µop of a slot that has one; 0 if it finds no room. */
INLINE int issue_one(Sim *s, const Op *m)
{
    int32_t port;
    if (!place_microop(s, m, s->queue_end - s->queue_begin, &port))
        return 0;
    if (port >= 0)
        reserve(s, m, port);
    issue_to_port(s, m, port);
    return 1;
}

/* Issue the µops of a slot, all or none; 0 if one finds no room. */
static int issue_several(Sim *s, const Slot *own)
{
    if (!place_several(s, own))
        return 0;
    const int32_t *given = s->given;
    for (const Op *m = own->ops, *end = own->ops_end; m < end; m++)
        issue_to_port(s, m, *given++);
    return 1;
}

/* Count the loads of a slot for this cycle; 0 where with these they are more than a cycle's. A slot that has
   more by itself is not kept waiting for ever. */
INLINE int adds_loads(const Sim *s, uint32_t *loads, uint32_t own)
{
    if (!own)
        return 1;
    const uint32_t sum = *loads + own;
    const uint32_t over = sum + s->loads_room, some = *loads + EACH_BYTE * MOST_IN_BYTE; /* the highest bit of each byte */
    if (over & some & EACH_BYTE * (MOST_IN_BYTE + 1))
        return 0;
    *loads = sum;
    return 1;
}

/* The slots that a cycle may dispatch, one after the other: as many as are delivered, issued together and loaded at once. */
typedef struct { const Slot *own; const Entry *entry; int64_t entries; int32_t left, taken; uint32_t loads; int32_t constants; } Walk;

/* The next one, NULL behind the last. */
static const Slot *next_slot(const Sim *s, Walk *w)
{
    const int32_t width = s->core->issue_width, most = s->core->constants_dispatched;
    if (w->taken == width || w->entries <= 0)
        return NULL;
    while (!w->left) {
        if (--w->entries <= 0)
            return NULL;
        w->entry = w->entry + 1 == s->entries_end ? s->entries : w->entry + 1;
        w->left = w->entry->slots;
        if (w->entry->together && w->taken && w->left == w->entry->slots && w->taken + w->entry->together > width && w->entry->together <= width)
            return NULL;
        w->constants += w->entry->constants;
        if (most && w->taken && w->constants > most)
            return NULL;
    }
    const Slot *own = w->own;
    if (!adds_loads(s, &w->loads, own->loads))
        return NULL;
    w->own = own + 1 == s->slots_end ? s->slots : own + 1;
    w->left--;
    w->taken++;
    return own;
}

/* Slots that are delivered, as many as a cycle may dispatch. */
static int32_t slots_delivered(const Sim *s)
{
    const Entry *entry = s->entry;
    const int32_t width = s->core->issue_width;
    int64_t entries = s->entries_delivered - s->entries_issued;
    if (entries > width)
        return width;
    int32_t slots = entries > 0 ? entry->slots - s->slot_in_entry : 0;
    while (slots < width && --entries > 0) {
        entry = entry + 1 == s->entries_end ? s->entries : entry + 1;
        slots += entry->slots;
    }
    return slots < width ? slots : width;
}

/* Take from the room of schedulers what the operations of so many slots of this cycle need; 0 where one has too little. */
static int take_operations(const Sim *s, int32_t slots, int32_t *room)
{
    const int32_t operations = s->ahead[s->issuing - s->slots].count[slots];
    for (int32_t k = 0; k < operations; k++)
        if (--room[s->scheduler_of_queue[s->assigned[k]]] < 0)
            return 0;
    return 1;
}

/* Whether there are registers for the vectors that a cycle dispatches; a slot that takes more than there are waits until all
   are free. */
static int registers_suffice(const Sim *s)
{
    const Ahead *own = &s->ahead[s->issuing - s->slots];
    int32_t slots = slots_delivered(s);
    slots = s->fitting < slots ? s->fitting : slots;
    slots = own->reach < slots ? own->reach : slots;
    return own->registers[slots] <= s->registers_free || s->registers_free == s->core->vector_registers;
}

/* Whether what a cycle dispatches finds room where it accesses memory, and, where these wait for it together, with its
   operations: it waits as a whole where it would overfill a scheduler. */
static int cycle_fits(const Sim *s, int with_operations)
{
    const Core *c = s->core;
    int32_t counters[PORTS], room[SCHEDULERS], slots = slots_delivered(s), k = 0, q = 0;
    const Ahead *own = &s->ahead[s->issuing - s->slots];
    while (k < s->addressings && s->counters[s->addressing[k]] <= s->near[k])
        k++;
    if (with_operations && !own->alone)
        while (q < s->queues && s->room[s->scheduler_of_queue[q]] >= c->issue_width)
            q++;
    else
        q = s->queues;
    if (k == s->addressings && q == s->queues)
        return 1;
    memcpy(counters, s->counters, sizeof counters);
    memcpy(room, q < s->queues ? s->room : c->rooms, sizeof room);
    if (q < s->queues) {
        slots = s->fitting < slots ? s->fitting : slots;
        if (!take_operations(s, slots, room))
            return 0;
    }
    uint32_t given = 0;
    for (const Later *access = own->accesses; access < own->accesses_end && access->slot < slots; access++) {
        const int32_t port = port_of_access(s, access->ports, given, counters);
        given |= 1u << port;
        if (++counters[port] > c->rooms[c->scheduler_of[port]] || (q < s->queues && --room[c->scheduler_of[port]] < 0))
            return 0;
    }
    return 1;
}

/* The accesses that this cycle may dispatch, MOST_IN_ORDER at most; how many of them are loads of vectors. Of these it
   dispatches one fewer after so many cycles in a row that dispatched the most, until its slots hold just so many. */
static int32_t accesses_of_cycle(Sim *s, const Later **end)
{
    const Core *c = s->core;
    const Ahead *own = &s->ahead[s->issuing - s->slots];
    const Later *access = own->accesses, *last = access;
    int32_t slots = slots_delivered(s), loads = 0;
    s->fitting = s->queues ? s->fitting : INT32_MAX;
    slots = s->fitting < slots ? s->fitting : slots;
    for (; access < own->accesses_end && access->slot < slots && access < own->accesses + MOST_IN_ORDER; access++)
        if (!(access->ports & ~s->vectors)) {
            last = access;
            loads++;
        }
    const int most = loads >= c->most_loads[0];
    if (most || loads == c->most_loads[0] - 1)
        s->fewer_loads = most && (s->fewer_loads || s->loads_in_a_row >= c->loads_in_a_row);
    if (most && s->fewer_loads) {
        s->fitting = last->slot;
        access = last;
        loads--;
    }
    *end = access;
    return loads;
}

/* Give the accesses from one on the ports with the fewest entries as dispatch sees them; 0 where one finds no room. */
static int order_others(Sim *s, const Later *accesses, int32_t first, int32_t count)
{
    const Core *c = s->core;
    int32_t counters[PORTS], entries[PORTS];
    for (int32_t k = 0; k < s->addressings; k++) {
        const int32_t port = s->addressing[k];
        counters[port] = s->counters[port];
        entries[port] = entries_of(s, port, counters);
    }
    for (int32_t k = 0; k < first; k++)
        counters[s->ordered[k]]++;
    for (int32_t k = first; k < count; k++) {
        const int32_t port = s->ordered[k] = least_of(entries, accesses[k].ports);
        entries[port]++;
        if (++counters[port] > c->rooms[c->scheduler_of[port]])
            return 0;
    }
    return 1;
}

/* Whether schedulers have room for so many accesses where they are ordered to, and the operations of this cycle. */
static int ordered_fit(const Sim *s, int32_t count)
{
    int32_t room[SCHEDULERS];
    memcpy(room, s->room, sizeof room);
    for (int32_t k = 0; k < count; k++)
        if (--room[s->scheduler_of[s->ordered[k]]] < 0)
            return 0;
    return !s->queues || take_operations(s, s->fitting, room);
}

/* Give the accesses of this cycle their ports where two or more are loads of vectors: as many as there are such ports take
   different ones, in the first order that all allow, and each of the others the one with the fewest entries as dispatch
   sees them; each the one with the fewest where they find no room so. 0 where they find none together. */
static int order_accesses(Sim *s)
{
    const Core *c = s->core;
    const Ahead *own = &s->ahead[s->issuing - s->slots];
    const Later *end;
    const int32_t loads = accesses_of_cycle(s, &end);
    if (loads < 2) {
        s->loads_in_a_row = 0;
        return cycle_fits(s, c->operations_together);
    }
    const int32_t count = (int32_t)(end - own->accesses), apart = count < own->own_ports ? count : own->own_ports;
    for (int32_t k = 0; k < apart; k++) {
        const int32_t port = s->ordered[k] = own->in_order[k];
        if (s->counters[port] == c->rooms[c->scheduler_of[port]])
            return 0;
    }
    if (count > apart && !order_others(s, own->accesses, apart, count))
        return 0;
    if (!ordered_fit(s, count)) {
        s->loads_in_a_row = 0;
        s->by_counters = 1;
        return cycle_fits(s, 0);
    }
    s->in_order = count;
    s->loads_in_a_row = loads < c->most_loads[0] ? 0 : s->loads_in_a_row + (s->loads_in_a_row < c->loads_in_a_row);
    return 1;
}

/* The entries that dispatch sees in each queue. */
static void list_entries(const Sim *s, int32_t *entries)
{
    for (int32_t q = 0; q < QUEUES; q++)
        entries[q] = s->entries_seen >> 16 * q & 0xFFFF;
}

/* Assign a slot that has too many operations for a cycle: each to the queue with the fewest entries, those before it
   included. */
static void assign_alone(Sim *s, int32_t *entries)
{
    int32_t *assigned = s->assigned;
    for (const Op *m = s->issuing->ops; m < s->issuing->ops_end; m++)
        if (m->at_issue == TOGETHER) {
            assign_apart(entries, &m->wanted, 1, assigned);
            entries[*assigned++]++;
        }
}

/* Queues for so many operations, as they were given for the same entries before. */
static const int32_t *queues_for(Sim *s, const Ahead *own, int32_t count, int32_t beside)
{
    Assignment *known = &s->known[(s->entries_seen * 0x9E3779B97F4A7C15u >> 58 ^ (uint64_t)(own - s->ahead)) & (KNOWN - 1)];
    if (known->ahead != own || known->entries != s->entries_seen || known->count != count || known->beside != beside) {
        int32_t entries[QUEUES];
        list_entries(s, entries);
        *known = (Assignment){own, s->entries_seen, count, beside, {0}};
        assign_together(entries, own->wanted, count, beside, s->core->narrow, known->queues);
    }
    return known->queues;
}

/* Assign what this cycle dispatches to queues, as many slots as fit into it; the first one always does. */
static void assign(Sim *s)
{
    const Core *c = s->core;
    const Ahead *own = &s->ahead[s->issuing - s->slots];
    const int32_t slots = slots_delivered(s);
    int32_t beside = 0;
    s->next_assigned = 0;
    s->fitting = slots < own->fitting ? slots : own->fitting;
    if (own->alone) {
        int32_t entries[QUEUES];
        list_entries(s, entries);
        assign_alone(s, entries);
        return;
    }
    if (s->fitting > own->apart) {
        beside = s->room[s->scheduler_of_queue[c->beside - 1]] >= 2 ? c->beside : 0;
        s->fitting = beside ? s->fitting : own->apart;
    }
    const int32_t count = own->count[s->fitting];
    if (!count)
        return;
    memcpy(s->assigned, queues_for(s, own, count, beside), (size_t)count * sizeof *s->assigned);
}

/* Issue the next slot, in its place of the cycle; 0 if something that its µops need is full. */
INLINE int issue_slot(Sim *s, int32_t slot, const int plain, const int by_port)
{
    const Core *c = s->core;
    const Slot *own = s->issuing;
    if (!plain && own->registers > s->registers_free && s->registers_free < c->vector_registers) {
        s->tally.stalls[REGISTERS]++;
        return 0;
    }
    if (!plain && !adds_loads(s, &s->loads, own->loads)) {
        s->tally.stalls[LOADS_APART]++;
        return 0;
    }
    if (by_port && slot >= s->fitting) {
        s->tally.stalls[OPERATIONS_APART]++;
        return 0;
    }
    s->odd = slot & 1;
    if (by_port && !(own->count == 1 ? issue_one(s, own->ops) : issue_several(s, own))) {
        s->tally.stalls[SCHEDULER]++;
        return 0;
    }
    for (const Op *m = own->ops, *end = own->ops_end; !by_port && m < end; m++)
        issue_microop(s, m, slot, plain);
    s->registers_free -= plain ? 0 : own->registers;
    s->slots_issued++;
    s->issuing = own + 1 == s->slots_end ? s->slots : own + 1;
    s->slot_in_entry++;
    return 1;
}

static void begin_entry(Sim *s)
{
    s->slot_in_entry = 0;
    s->entries_issued++;
    if (++s->entry == s->entries_end) {
        s->entry = s->entries;
        s->pass_issuing++;
        s->phase = s->pass_issuing & (PHASES - 1);
    }
}

INLINE void issue(Sim *s, const int plain, const int by_port)
{
    const Core *c = s->core;
    const int32_t width = c->issue_width;
    int32_t slot = 0, taken = 0, unlaminated = 0;
    if (s->slots_issued - s->slots_retired + width > c->reorder_buffer) {
        s->tally.stalls[REORDER_BUFFER]++;
        return;
    }
    if (!by_port && (s->room[0] < width || s->room[1] < width || s->room[2] < width)) {
        s->tally.stalls[SCHEDULER]++;
        return;
    }
    const int ordered = by_port && s->vectors && s->ahead[s->issuing - s->slots].loads >= 2;
    if (by_port && c->together)
        assign(s);
    if (by_port && c->operations_together && c->vector_registers && !registers_suffice(s)) {
        s->tally.stalls[REGISTERS]++;
        return;
    }
    if (by_port && (c->accesses_together || c->operations_together) && !ordered && !cycle_fits(s, c->operations_together)) {
        s->tally.stalls[SCHEDULER]++;
        return;
    }
    s->in_order = s->next_in_order = s->by_counters = 0;
    if (ordered && !order_accesses(s)) {
        s->tally.stalls[SCHEDULER]++;
        return;
    }
    if (!ordered)
        s->loads_in_a_row = 0;
    if (s->entries_issued >= s->entries_delivered)
        s->tally.stalls[FRONT_END]++;
    const int groups = c->source == LSD && c->group_boundary;
    const int32_t most_constants = c->constants_dispatched;
    int32_t constants = 0;
    if (!plain) {
        s->loads = 0;
        s->accessed = 0;
    }
    for (int64_t left = s->entries_delivered - s->entries_issued; left > 0 && slot < width; left--) {
        const Entry *entry = s->entry;
        if (groups && slot && entry == s->entries && s->pass_issuing % c->copies == 0)
            break;
        if (entry->together && slot && ((slot + entry->together > width && entry->together <= width) ||
                                        unlaminated == c->unlaminated_slots || taken >= c->unlaminated_first)) {
            s->tally.stalls[GROUPS_APART]++;
            break;
        }
        if (most_constants && !s->slot_in_entry) {
            constants += entry->constants;
            if (slot && constants > most_constants) {
                s->tally.stalls[GROUPS_APART]++;
                break;
            }
        }
        taken++;
        unlaminated += entry->together > 0;
        while (s->slot_in_entry < entry->slots)
            if (slot == width || !issue_slot(s, slot++, plain, by_port))
                return;
        begin_entry(s);
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
    s->unit_decoding = s->unit_fetching;
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
        const int32_t n = s->unit_fetching;
        const FetchUnit *unit = &s->units[n];
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
        s->unit_fetching = n + 1 == c->units ? 0 : n + 1;
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
        const int32_t n = s->unit_decoding;
        const FetchUnit *unit = &s->units[n];
        if (taken && (unit->complex || !simple || (unit->fusible && !c->fusible_last && taken == c->decoders - 1)))
            return;
        const int over = n == c->units - 1 && !c->repeats;
        if (unit->fusible && !c->fusible_last && s->decoded + 1 >= there && !over)
            return;
        simple = taken ? simple - 1 : unit->simple;
        taken++;
        s->decoded++;
        s->unit_decoding = n + 1 == c->units ? 0 : n + 1;
        s->entries_delivered += unit->decoded;
        if (unit->entries > unit->decoded)
            s->microcode_left = unit->entries - unit->decoded;
        if (over) {
            s->decoding = 0;
            s->fetched = s->decoded;
            s->unit_fetching = s->unit_decoding;
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

/* Whether the queue has no room for the line of code of a unit: it holds what is left of a few, those of each pass for
   themselves. What begins in one line and ends in the next one belongs to both. */
static int without_line(Sim *s, const FetchUnit *unit, int64_t delivered)
{
    if (delivered == s->entries_issued)
        return 0;
    while (s->oldest_until <= s->entries_issued) {
        if (++s->unit_oldest == s->unit_count) {
            s->unit_oldest = 0;
            s->oldest_lines += s->units[s->unit_count - 1].line - s->units->block + 1;
        }
        s->oldest_until += s->units[s->unit_oldest].entries;
    }
    return s->fetched_lines + unit->line - s->oldest_lines - s->units[s->unit_oldest].block >= s->core->queued_lines;
}

/* What a cycle delivers. */
typedef struct { int32_t entries, constants, long_constants; } Delivered;

/* Add the constants of a unit; 0 where so many more entries of it do not go with them. */
static int takes_constants(const Core *c, const FetchUnit *unit, int32_t more, Delivered *sum)
{
    const int32_t all = sum->entries + more, last = (all < c->dsb_width ? all : c->dsb_width) - 1;
    sum->constants += unit->constants;
    sum->long_constants += unit->long_constants;
    return !sum->entries || (sum->constants <= c->constants_delivered[last] && sum->long_constants <= c->long_delivered[last]);
}

/* No more entries per cycle than the width; those of one pass (PASSES). With LINES, a line of code is read each cycle, which
   may be one ahead of what is delivered; where the queue waits for room for a line, the entries of a cycle are, too. */
APART void fetch_line(Sim *s, int64_t queued)
{
    const Core *c = s->core;
    if (queued + c->dsb_width > c->idq || s->stopped || s->now < s->resumed)
        return;
    const FetchUnit *unit = s->units + s->unit_fetching, *const end = s->units + s->unit_count;
    const int passes = c->line_fetch & PASSES, lines = c->line_fetch & LINES, few = lines && c->queued_lines;
    const int32_t first = s->units->block, ahead = unit->line - first + 2;
    s->opened = s->opened < ahead ? s->opened + 1 : ahead;
    int32_t room = s->spare + c->dsb_width, part = s->unit_part, unread = lines ? first + s->opened : INT32_MAX; /* the first line that is not */
    int64_t delivered = s->entries_delivered;
    Delivered sum = {0, 0, 0};
    s->spare = 0;
    while (room > 0) {
        if (unit->line >= unread || (few && without_line(s, unit, delivered))) {
            s->spare = !few ? 0 : room < c->dsb_width ? room : c->dsb_width;
            break;
        }
        const int32_t rest = unit->entries - part;
        if (s->few_constants && !part && !takes_constants(c, unit, rest < room ? rest : room, &sum))
            break;
        sum.entries += rest;
        if (rest > room) {
            delivered += room;
            part += room;
            break;
        }
        delivered += rest;
        room -= rest;
        part = 0;
        const int32_t redirects = unit->redirects;
        if (++unit == end) {
            const int32_t read = unit[-1].line - first + 1;
            s->opened -= read;
            s->fetched_lines += read;
            unread -= lines ? read : 0;
            unit = s->units;
            room = passes ? 0 : room;
        }
        if (redirects) {
            s->stopped = redirects;
            break;
        }
    }
    s->entries_delivered = delivered;
    s->unit_part = part;
    s->unit_fetching = (int32_t)(unit - s->units);
}

static void predecode(Sim *s)
{
    const Core *c = s->core;
    const int over = !c->repeats && s->predecode_step >= c->schedule;
    if (s->decoding && !over && s->predecoded - s->decoded + c->predecode_width <= c->iq) {
        if (s->predecode_step >= c->schedule) /* as many steps as there are may have gone ahead */
            s->predecode_step = 0;
        s->predecoded += s->schedule[s->predecode_step++];
        if (c->repeats && s->predecode_step >= c->schedule)
            s->predecode_step = 0;
    }
    s->decodable[s->now % HISTORY] = s->predecoded;
}

APART void fetch_or_decode(Sim *s, int64_t queued)
{
    const Core *c = s->core;
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

INLINE void deliver(Sim *s)
{
    const Core *c = s->core;
    const int64_t queued = s->entries_delivered - s->entries_issued;
    if (c->source == IDEAL || c->source == LSD)
        s->entries_delivered = s->entries_issued + c->issue_width;
    else if (c->line_fetch)
        fetch_line(s, queued);
    else
        fetch_or_decode(s, queued);
}

/* ---- repetition ---- */

/* What tells most states apart, at little cost: how full the buffers are, and what waits for each port. */
static uint32_t signature(const Sim *s)
{
    uint64_t counters[PORTS / 2], found = (uint64_t)(s->slots_issued - s->slots_retired) << 32 ^
                                          (uint64_t)(s->entries_delivered - s->entries_issued) << 16 ^
                                          (uint64_t)s->room[0];
    memcpy(counters, s->counters, sizeof counters);
    for (int32_t k = 0; k < PORTS / 2; k++)
        found = (found ^ counters[k]) * 0x9E3779B97F4A7C15u; /* 2^64 by the golden ratio: Fibonacci hashing */
    return (uint32_t)(found >> 32);
}

/* Whether a state with this signature may have been kept: all are compared at once. */
static int may_repeat(const Sim *s, uint32_t sign)
{
    uint32_t found = 0;
    for (int32_t k = 0; k < SNAPSHOTS; k++)
        found |= s->signatures[k] == sign;
    return found != 0;
}

static int64_t left(const Sim *s, int64_t when) { return when > s->now ? when - s->now : 0; }

static int32_t scalars(const Sim *s, int64_t *out)
{
    const Core *c = s->core;
    uint64_t bringing = 0;
    int32_t n = 0;
    out[n++] = s->issuing - s->slots;
    out[n++] = s->entry - s->entries;
    out[n++] = c->source == LSD ? s->pass_issuing % c->copies : 0;
    out[n++] = s->slot_in_entry;
    out[n++] = s->loads_in_a_row << 1 | s->fewer_loads;
    out[n++] = s->slots_issued - s->slots_retired;
    for (int32_t k = 0; k < SCHEDULERS; k++)
        out[n++] = s->room[k];
    out[n++] = s->entries_delivered - s->entries_issued;
    out[n++] = s->unit_fetching;
    out[n++] = s->unit_part;
    out[n++] = s->decoding;
    out[n++] = s->microcode_wait;
    out[n++] = s->microcode_left;
    out[n++] = s->decoding ? s->predecode_step : 0;
    out[n++] = s->decoding ? s->unit_decoding : 0;
    for (int32_t k = 1; k <= c->predecode_delay; k++)
        out[n++] = s->decoding ? s->decodable[(s->now + HISTORY - k) % HISTORY] - s->decoded : 0;
    for (int32_t g = 0; g < GROUPS; g++)
        out[n++] = s->turn[g];
    if (s->sides.places) {
        n += sides_state(&s->sides, c, s->now, out + n);
        for (int32_t age = 1; age <= c->queue_passage; age++) { /* how many have not passed the queue */
            int64_t k = s->queue_end;
            while (k > s->queue_begin && s->queued_in[(k - 1) & s->queue_mask] > s->now - age)
                k--;
            out[n++] = s->queue_end - k;
        }
    }
    out[n++] = s->pass_issuing & (s->phases - 1);
    out[n++] = s->queue_end - s->queue_begin;
    for (int32_t k = 0; k < c->register_release && c->vector_registers; k++)
        out[n++] = s->registers_coming[(s->now + k) % RELEASES];
    out[n++] = c->line_fetch & LINES ? s->opened : 0;
    out[n++] = s->spare;
    out[n++] = s->stopped;
    out[n++] = left(s, s->resumed);
    out[n++] = left(s, s->divider_free);
    out[n++] = s->alone_free > s->now * TICKS ? s->alone_free - s->now * TICKS : 0;
    for (int32_t port = 0; port < PORTS; port++) {
        out[n++] = s->counters[port];
        out[n++] = c->by_port || !c->issue_ports ? 0 : s->started[port];
        if (s->by_rank)
            out[n++] = s->starting[port];
        out[n++] = left(s, s->data_free[port]) << 32 | left(s, s->back[port]) << 8 | left(s, s->pipe_free[port]);
        bringing |= (uint64_t)(s->brings[port] >= s->now) << (2 * port + (s->brings[port] > s->now));
    }
    out[n++] = (int64_t)bringing;
    if (c->one_result) { /* from this cycle on */
        const size_t first = (size_t)(s->now & (RESULTS - 1)) * sizeof(uint32_t);
        memcpy(out + n, (const char *)s->giving + first, sizeof s->giving - first);
        memcpy((char *)(out + n) + sizeof s->giving - first, s->giving, first);
        n += (int32_t)(sizeof s->giving / sizeof *out);
    }
    if (c->result_waits) {
        const Waiting *w = &s->waits_there;
        const int goes_on = w->cycle == s->now - 1;
        out[n++] = goes_on ? w->passing : 0;
        out[n++] = goes_on && w->before >= 0 ? s->microops_issued - w->before : 0;
        out[n++] = goes_on && w->stopped >= 0 && w->stopped == w->before;
    }
    for (uint32_t rest = s->lending; rest; rest &= rest - 1)
        out[n++] = left(s, s->path_used[__builtin_ctz(rest)]);
    out[n++] = (int64_t)s->entries_seen;
    for (int32_t k = 1; k <= c->seen_after && s->queues; k++)
        out[n++] = (int64_t)s->moved[(s->now - k) & (SEEN - 1)];
    return n;
}

/* All slots of so many passes were issued: entries and slots end together. */
static int64_t passes_issued(const Sim *s) { return s->pass_issuing; }

static int64_t oldest_needed(const Sim *s)
{
    const Core *c = s->core;
    const int64_t needed = (passes_issued(s) - c->farthest) * c->microops;
    const int64_t oldest = s->microops_retired < needed ? s->microops_retired : needed;
    return oldest > 0 ? oldest : 0;
}

/* Whether cycles are equally far from that of their state; what is over for so long is all the same. */
INLINE int as_far(int64_t own, int64_t now, int64_t other, int64_t then, int64_t past)
{
    return own - now == other - then || (own - now <= past && other - then <= past);
}

/* Whether the same is ahead of two µops that so many others were issued behind. µops are kept as they are, and only here
   looked at from the cycles of their states: most that are kept are compared with none. */
INLINE int is_same(const Sim *s, const Snapshot *then, int64_t behind)
{
    const Instance *x = instance(s, s->microops_issued - 1 - behind), *y = &then->microops[then->count - 1 - behind];
    const int64_t now = s->now, before = then->counts.now;
    if (x->port != y->port || (x->done == never) != (y->done == never))
        return 0;
    if (x->done != never)
        return as_far(x->done, now, y->done, before, 0) && as_far(x->base, now, y->base, before, -s->core->longest);
    return x->pending == y->pending && as_far(x->ready, now, y->ready, before, 0) &&
           (!x->pending || as_far(x->enters, now, y->enters, before, -1)); /* else it waits for nothing any more */
}

/* Whether states differ where those before them did, as most that differ do: what is asked first. */
static int differs_there(const Sim *s, const Snapshot *then)
{
    return s->microops_issued - oldest_needed(s) != then->count || (s->differed < then->count && !is_same(s, then, s->differed));
}

static int same_microops(Sim *s, const Snapshot *then)
{
    for (int64_t k = 0; k < then->count; k++)
        if (!is_same(s, then, k)) {
            s->differed = k;
            return 0;
        }
    return 1;
}

static int take_snapshot(Sim *s, uint32_t sign)
{
    const int64_t place = s->snapshots_taken++ % SNAPSHOTS, first = oldest_needed(s);
    Snapshot *now = &s->snapshots[place];
    now->count = s->microops_issued - first;
    if (now->count > now->room) {
        now->room = now->count + now->count / 2;
        if (!(now->microops = arena_take(s->arena, now->room, sizeof(Instance))))
            return NO_MEMORY;
    }
    Instance *kept = now->microops;
    const Instance *const ring = s->ring;
    for (int64_t id = first, end = s->microops_issued, mask = s->ring_mask; id < end; id++)
        *kept++ = ring[id & mask];
    scalars(s, now->scalars);
    s->signatures[place] = sign;
    now->counts = (Counts){s->now, s->passes, s->tally};
    return 0;
}

/* Whether the state is one that was there before, of those that were kept: less and less often, as they are compared
   with all that come. NO_MEMORY. */
static int repeats(Sim *s)
{
    int64_t here[SCALARS];
    int32_t count = 0;
    const uint32_t sign = signature(s);
    const int64_t oldest = s->snapshots_taken > SNAPSHOTS ? s->snapshots_taken - SNAPSHOTS : 0;
    const int64_t newest = may_repeat(s, sign) ? s->snapshots_taken - 1 : -1;
    s->checks++;
    for (int64_t k = newest; k >= oldest; k--) {
        const Snapshot *then = &s->snapshots[k % SNAPSHOTS];
        if (s->signatures[k % SNAPSHOTS] != sign || differs_there(s, then))
            continue;
        count = count ? count : scalars(s, here);
        if (!memcmp(here, then->scalars, sizeof(int64_t) * (size_t)count) && same_microops(s, then)) {
            s->since = then->counts;
            return 1;
        }
    }
    if (s->checks < s->next_snapshot)
        return 0;
    s->next_snapshot = s->checks + s->checks / SAVING + SAVING;
    return take_snapshot(s, sign);
}

/* ---- the whole ---- */

static int64_t power_of_two(int64_t least)
{
    int64_t size = 1;
    while (size < least)
        size *= 2;
    return size;
}

static void list_turns(Sim *s)
{
    for (int32_t g = 0; g < GROUPS; g++)
        for (uint32_t rest = (uint32_t)s->core->alternating[g] & ((1u << PORTS) - 1); rest; rest &= rest - 1)
            s->in_turn[g][s->turns[g]++] = __builtin_ctz(rest);
    for (uint32_t rest = (uint32_t)s->core->together & ((1u << PORTS) - 1); rest && s->by_port && s->queues < QUEUES; rest &= rest - 1) {
        const int32_t scheduler = s->core->scheduler_of[__builtin_ctz(rest)];
        s->scheduler_of_queue[s->queues++] = scheduler;
    }
    for (int32_t port = 0; port < PORTS && s->by_port; port++)
        s->ports_of[s->core->scheduler_of[port]] |= 1u << port;
    for (int32_t q = 0; q < s->queues; q++)
        for (uint32_t rest = s->ports_of[s->scheduler_of_queue[q]]; rest; rest &= rest - 1)
            s->entry_of[__builtin_ctz(rest)] = UINT64_C(1) << 16 * q;
    const int32_t shared[SCHEDULERS] = {s->core->scheduler, s->core->load_scheduler, s->core->store_scheduler};
    for (int32_t k = 0; k < SCHEDULERS; k++) {
        s->room[k] = s->by_port ? s->core->rooms[k] : shared[k] ? shared[k] : AMPLE;
        s->with_room |= s->room[k] > 0 ? s->ports_of[k] : 0;
    }
    if (s->by_port)
        sides_begin(&s->sides, s->core);
    for (int32_t port = 0; port < PORTS; port++)
        s->brings[port] = -1;
    memcpy(s->scheduler_of, s->core->scheduler_of, sizeof s->scheduler_of);
    for (uint32_t rest = (uint32_t)s->core->addressing; rest; rest &= rest - 1) {
        const int32_t port = __builtin_ctz(rest);
        s->near[s->addressings] = s->core->rooms[s->core->scheduler_of[port]] - s->core->issue_width;
        s->addressing[s->addressings++] = port;
    }
    s->vectors = s->core->loads_in_a_row ? (uint32_t)s->core->load_ports[0] : 0;
}

/* A number of the port set of a µop: that of an earlier one with the same, if there is one. */
static int32_t kind_of(Sim *s, const Op *ops, int32_t number, int32_t ports)
{
    if (!s->by_rank && !(ports & s->core->queued))
        return 0;
    for (int32_t u = 0; u < number; u++)
        if (ops[u].ports == ports)
            return ops[u].kind;
    return s->kinds++;
}

static int32_t alternating_group(const Core *c, int32_t ports)
{
    for (int32_t g = 0; g < GROUPS; g++)
        if (ports && ports == c->alternating[g])
            return g;
    return -1;
}

static int32_t choice_of(const Core *c, int32_t ports)
{
    return ports & c->addressing ? OF_ACCESSES
           : ports & c->together ? TOGETHER
           : ports & c->queued   ? BEHIND_QUEUE
                                 : LEAST_USED;
}

static int32_t issue_of(const Core *c, int32_t ports)
{
    return !ports ? NOWHERE : ports & c->queued ? QUEUED : choice_of(c, ports);
}

/* Passes after which a µop stands at the same place in a line again. */
static int32_t phases_of(const Op *m)
{
    const int differs = m->slow || m->more;
    int32_t phases = differs ? PHASES : 1;
    for (int32_t place = m->stride % PHASES; !differs && m->size && place; place = (place + m->stride) % PHASES)
        phases++;
    return phases;
}

/* Whether a µop reads three vectors and waits for loads, and nothing else. */
static int waits_for_loads(const Program *program, int32_t u)
{
    const MicroOp *m = program->microops;
    int others = m[u].first_wait == m[u + 1].first_wait || !m[u].third;
    for (int32_t e = m[u].first_wait; e < m[u + 1].first_wait; e++)
        others |= !m[program->waits[e].microop].load;
    return !others;
}

/* The µops, with whom each waits for and who waits for it. */
static int make_ops(Sim *s, const Program *program)
{
    const Core *c = s->core;
    const MicroOp *m = program->microops;
    Op *ops = arena_take(s->arena, c->microops, sizeof(Op));
    Apart *waits = arena_take(s->arena, c->waits, sizeof(Apart)), *users = arena_take(s->arena, c->waits, sizeof(Apart));
    if (!ops || !waits || !users)
        return NO_MEMORY;
    int32_t longest = 0;
    for (int32_t u = 0; u < c->microops; u++) {
        const int32_t own = m[u].data + (m[u].slow_low || m[u].slow_high) + (m[u].more_low || m[u].more_high);
        longest = own > longest ? own : longest;
    }
    for (int32_t port = 0; port < PORTS; port++)
        s->lending |= c->borrowed[port] ? 1u << (c->borrowed[port] - 1) : 0;
    s->lenders = c->one_store ? s->lending : 0;
    s->lender_started = -1;
    s->shared = s->lending;
    const int32_t paths = longest > 1; /* who holds a data path for one cycle keeps nobody off a port */
    for (int32_t u = 0; u < c->microops; u++) {
        ops[u] = (Op){m[u].ports, m[u].latency, m[u].divider, m[u].data, m[u].alone,
                      m[u].divider || (m[u].data && paths) || m[u].alone || m[u].paths, m[u].scheduler,
                      alternating_group(c, m[u].ports), kind_of(s, ops, u, m[u].ports), choice_of(c, m[u].ports), issue_of(c, m[u].ports),
                      m[u].ports ? c->dispatch_delay : 0,
                      m[u].latency > 0 && m[u].latency <= RESULTS / 4 ? (uint32_t)c->one_result : 0,
                      (uint32_t)m[u].slow_low | (uint64_t)(uint32_t)m[u].slow_high << 32,
                      (uint32_t)m[u].more_low | (uint64_t)(uint32_t)m[u].more_high << 32, waits + m[u].first_wait,
                      waits + m[u + 1].first_wait, users, users, m[u].redirects, m[u].third,
                      m[u].paths, m[u].slow_low || m[u].slow_high || m[u].more_low || m[u].more_high || (c->bank_bytes && m[u].size), m[u].place, m[u].stride,
                      c->bank_bytes ? m[u].size : 0, m[u].load};
        s->behind_queue |= ops[u].choice == BEHIND_QUEUE && !s->sides.places;
        s->shared |= (uint32_t)m[u].paths;
        const int32_t own = phases_of(&ops[u]);
        s->phases = own > s->phases ? own : s->phases;
        s->banked |= ops[u].size ? (uint32_t)m[u].ports : 0;
        s->pipes |= ops[u].slow && !c->bank_bytes && may_take_all(c, &ops[u]) ? (uint32_t)m[u].ports : 0;
    }
    for (int32_t e = 0; e < c->waits; e++)
        ops[program->waits[e].microop].users_end++; /* counts at first */
    Apart *next = users;
    for (int32_t u = 0; u < c->microops; u++) {
        const int64_t count = ops[u].users_end - users;
        ops[u].users = ops[u].users_end = next;
        next += count;
    }
    for (int32_t u = 0; u < c->microops; u++)
        for (int32_t e = m[u].first_wait; e < m[u + 1].first_wait; e++) {
            const Wait *w = &program->waits[e];
            waits[e] = (Apart){u - w->microop + w->passes * c->microops, w->cycles, w->third};
            *ops[w->microop].users_end++ = waits[e];
        }
    for (int32_t u = 0; s->lenders && u < c->microops; u++)
        for (int32_t e = m[u].first_wait; e < m[u + 1].first_wait; e++)
            ops[u].load_fed |= program->waits[e].third && m[u].ports && !((uint32_t)m[u].ports & ~s->lenders) &&
                               waits_for_loads(program, program->waits[e].microop);
    s->ops = ops;
    return 0;
}

static uint32_t at_most(int32_t number, int32_t most) { return (uint32_t)(number < most ? number : most); }

/* Whether a µop is of a set of loads of which a cycle dispatches only so many. */
static int is_counted(const Core *c, const MicroOp *m, int32_t set)
{
    return c->most_loads[set] && (c->load_ports[set] ? m->load && !(m->ports & ~c->load_ports[set]) : (m->ports & c->addressing) != 0);
}

/* The loads of a slot by the set of ports that alone execute them, where a cycle dispatches only so many of these. */
static uint32_t loads_of(const Core *c, const MicroOp *first, const MicroOp *end)
{
    uint32_t found = 0;
    for (int32_t g = 0; g < GROUPS; g++) {
        int32_t count = 0;
        for (const MicroOp *m = first; m < end; m++)
            count += is_counted(c, m, g);
        found |= at_most(count, MOST_LOADS) << 8 * g;
    }
    return found;
}

/* The queues that the µops of a slot may be assigned to, and whose entries count: an operation with an access takes one
   entry for both, where an address generator is, unless that leaves it one queue of several (`cmov`). */
static void want_queues(const Sim *s, Op *first, const Op *end)
{
    const Core *c = s->core;
    int32_t addressing = 0;
    Op *address = NULL, *operation = NULL;
    for (int32_t q = 0; q < s->queues; q++)
        addressing |= s->ports_of[s->scheduler_of_queue[q]] & (uint32_t)c->addressing ? 1 << q : 0;
    for (Op *m = first; m < end; m++) {
        for (int32_t q = 0; q < s->queues; q++)
            m->wanted.queues |= s->ports_of[s->scheduler_of_queue[q]] & (uint32_t)m->ports ? 1 << q : 0;
        m->counted = m->wanted.queues ? ~UINT64_C(0) : 0;
        m->wanted.branch = m->choice == TOGETHER && m->ports & ~c->together;
        address = m->choice == OF_ACCESSES && !address ? m : address;
        operation = m->choice == TOGETHER && !operation ? m : operation;
    }
    const int32_t both = address && operation ? operation->wanted.queues & addressing : 0;
    if (both && (both == operation->wanted.queues || both & (both - 1))) {
        operation->wanted.queues = both;
        address->counted = 0;
    }
}

static int make_slots(Sim *s, const Program *program)
{
    const Core *c = s->core;
    const int32_t *first = program->first_microop;
    Slot *slots = arena_take(s->arena, c->slots, sizeof(Slot));
    if (!slots)
        return NO_MEMORY;
    for (int32_t k = 0; k < c->slots; k++) {
        const MicroOp *m = program->microops + first[k], *end = program->microops + first[k + 1];
        Slot *own = &slots[k];
        want_queues(s, s->ops + first[k], s->ops + first[k + 1]);
        *own = (Slot){s->ops + first[k], s->ops + first[k + 1], first[k + 1] - first[k], 0, 0, 0, loads_of(c, m, end)};
        for (; m < end; m++) {
            own->accesses += (m->ports & c->addressing) != 0;
            own->together += s->ops[m - program->microops].at_issue == TOGETHER;
            own->registers += c->vector_registers ? m->registers : 0;
        }
    }
    for (int32_t g = 0; g < GROUPS; g++)
        s->loads_room |= (MOST_IN_BYTE - at_most(c->most_loads[g], MOST_LOADS)) << 8 * g;
    s->slots = s->issuing = s->retiring = slots;
    s->slots_end = slots + c->slots;
    s->registers_free = c->vector_registers;
    return 0;
}

/* Add the operations of the next slot that are assigned together; 0 where they do not fit. */
static int add_operations(const Sim *s, Ahead *ahead, const Slot *own)
{
    const int32_t slots = ahead->fitting, count = ahead->count[slots];
    int32_t more = count;
    for (const Op *m = own->ops; own->together && m < own->ops_end && more < MOST_TOGETHER; m++)
        if (m->at_issue == TOGETHER)
            ahead->wanted[more++] = m->wanted;
    const int fits = count + own->together > MOST_TOGETHER ? 0 : fit_together(ahead->wanted, more, s->core->beside, s->core->narrow);
    if (!fits || (!slots && fits == BESIDE)) {
        if (!slots)
            ahead->alone = ahead->fitting = 1;
        return 0;
    }
    ahead->fitting = slots + 1;
    ahead->count[slots + 1] = more;
    ahead->apart = fits == APART_FROM_ONE_ANOTHER ? slots + 1 : ahead->apart;
    return 1;
}

/* Of the accesses from one on, so many of which get ports of their own, the ports in the first order that all allow; 0 if
   they allow none. */
static int ports_apart(const Sim *s, const Later *access, int32_t count, uint32_t given, int32_t *ports)
{
    if (!count)
        return 1;
    for (uint32_t able = access->ports & (uint32_t)s->core->addressing & ~given; able; able &= able - 1) {
        *ports = __builtin_ctz(able);
        if (ports_apart(s, access + 1, count - 1, given | 1u << *ports, ports + 1))
            return 1;
    }
    return 0;
}

/* What a cycle may dispatch whose slots are those of a walk; the end of the list of accesses. */
static Later *look_from(const Sim *s, Walk w, Ahead *ahead, Later *next)
{
    int fits = s->queues > 0;
    memset(ahead, 0, sizeof *ahead);
    ahead->accesses = next;
    for (const Slot *own = next_slot(s, &w); own; own = next_slot(s, &w)) {
        fits = fits && add_operations(s, ahead, own);
        ahead->reach = w.taken;
        ahead->registers[w.taken] = ahead->registers[w.taken - 1] + own->registers;
        for (const Op *m = own->ops; s->core->accesses_together && own->accesses && m < own->ops_end; m++)
            if (m->ports & s->core->addressing) {
                *next++ = (Later){w.taken - 1, (uint32_t)m->ports};
                ahead->loads += s->vectors && !((uint32_t)m->ports & ~s->vectors);
            }
    }
    ahead->accesses_end = next;
    if (ahead->loads < 2)
        return next;
    ahead->own_ports = next - ahead->accesses < s->addressings ? (int32_t)(next - ahead->accesses) : s->addressings;
    while (!ports_apart(s, ahead->accesses, ahead->own_ports, 0, ahead->in_order))
        ahead->own_ports--;
    return next;
}

/* Whether the constants of a pass are more than those that go with the most entries of a cycle. */
static int can_have_too_many(const Sim *s)
{
    const Core *c = s->core;
    int64_t constants = 0, long_constants = 0;
    if (!(c->line_fetch & LINES) || !c->constants_delivered[0])
        return 0;
    for (const FetchUnit *unit = s->units; unit < s->units + c->units; unit++) {
        constants += unit->constants;
        long_constants += unit->long_constants;
    }
    return constants > c->constants_delivered[c->dsb_width - 1] || long_constants > c->long_delivered[c->dsb_width - 1];
}

/* Where code is fetched by the line, consecutive units of the same lines are one, as nothing tells them apart; a
   mispredicted branch ends its unit. */
static int join_units(Sim *s)
{
    const Core *c = s->core;
    FetchUnit *joined = arena_take(s->arena, c->units, sizeof(FetchUnit));
    if (!joined)
        return NO_MEMORY;
    s->unit_count = 0;
    s->few_constants = can_have_too_many(s);
    for (const FetchUnit *unit = s->units; unit < s->units + c->units; unit++) {
        FetchUnit *last = s->unit_count && !s->few_constants ? &joined[s->unit_count - 1] : NULL;
        if (last && !last->redirects && last->line == unit->line && last->block == unit->block) {
            last->entries += unit->entries;
            last->redirects = unit->redirects;
        } else {
            joined[s->unit_count++] = *unit;
        }
    }
    s->units = joined;
    s->oldest_until = s->unit_count ? joined->entries : 0;
    return 0;
}

/* What a cycle may dispatch from each slot on. */
static int look_ahead(Sim *s)
{
    const Core *c = s->core;
    Ahead *ahead = s->ahead = arena_take(s->arena, c->slots, sizeof(Ahead));
    int64_t accesses = 0; /* each is behind as many slots as a cycle takes at most */
    for (const Slot *own = s->slots; own < s->slots_end && c->accesses_together; own++)
        accesses += own->accesses;
    Later *next = arena_take(s->arena, accesses * c->issue_width, sizeof(Later));
    const Slot *own = s->slots;
    if (!ahead || !next || c->issue_width > MOST_SLOTS)
        return NO_MEMORY;
    for (const Entry *entry = s->entries; entry < s->entries_end; entry++)
        for (int32_t left = entry->slots; left > 0 && own < s->slots_end; left--)
            next = look_from(s, (Walk){own++, entry, INT32_MAX, left, 0, 0, left == entry->slots ? entry->constants : 0}, ahead++, next);
    return 0;
}

static int allocate(Sim *s, const Program *program)
{
    const Core *c = s->core;
    int64_t most_in_slot = 1;
    for (int32_t k = 0; k < c->slots; k++)
        if (program->first_microop[k + 1] - program->first_microop[k] > most_in_slot)
            most_in_slot = program->first_microop[k + 1] - program->first_microop[k];
    const int64_t in_flight = ((int64_t)c->reorder_buffer + 2 * c->issue_width) * most_in_slot;
    const int64_t ring = power_of_two(((int64_t)c->farthest + 2) * c->microops + in_flight);
    const int64_t ready = c->scheduler + c->load_scheduler + c->store_scheduler +
                          (c->by_port ? c->reorder_buffer : 0) + 6 * c->issue_width * most_in_slot;
    if (ring > INT32_MAX / 2)
        return NO_MEMORY;
    s->ring_mask = ring - 1;
    s->calendar_mask = power_of_two((int64_t)c->longest + c->dispatch_delay + 2) - 1;
    s->ring = arena_take(s->arena, ring, sizeof(Instance));
    s->calendar = arena_take(s->arena, s->calendar_mask + 1, sizeof(int32_t));
    s->ready_room = (int32_t)(2 * ready); /* so that moving to the front is rare */
    s->ready[0] = arena_take(s->arena, 2 * ready * PORTS, sizeof(int64_t));
    s->queue_mask = power_of_two(c->queue_entries) - 1;
    s->queue = arena_take(s->arena, s->queue_mask + 1, sizeof(int64_t));
    s->queued_in = arena_take(s->arena, s->queue_mask + 1, sizeof(int64_t));
    s->given = arena_take(s->arena, most_in_slot, sizeof(int32_t));
    s->assigned = arena_take(s->arena, most_in_slot > MOST_TOGETHER ? most_in_slot : MOST_TOGETHER, sizeof(int32_t));
    s->snapshots = arena_take(s->arena, SNAPSHOTS, sizeof(Snapshot));
    if (!s->ring || !s->queue || !s->queued_in || !s->given || !s->assigned || !s->calendar || !s->ready[0] || !s->snapshots || make_ops(s, program) ||
        make_slots(s, program))
        return NO_MEMORY;
    s->taken = arena_take(s->arena, s->kinds + 1, sizeof(int32_t));
    if (!s->taken || ((s->queues || (s->by_port && c->accesses_together)) && look_ahead(s)) || (c->line_fetch && join_units(s)))
        return NO_MEMORY;
    for (int32_t k = 0; k < SNAPSHOTS; k++)
        s->snapshots[k].room = 0;
    for (int32_t port = 1; port < PORTS; port++)
        s->ready[port] = s->ready[port - 1] + 2 * ready;
    for (int64_t k = 0; k <= s->calendar_mask; k++)
        s->calendar[k] = -1;
    return 0;
}

/* How many kinds of µops can use each port: `dispatch_free` prefers the ports of the fewest. */
static void count_users(Sim *s)
{
    for (int32_t u = 0; u < s->core->microops; u++)
        for (int32_t port = 0; port < PORTS; port++)
            s->starting[port] += s->ops[u].ports >> port & 1;
}

/* What the renamer knows of the µops that wait for each port: those that started in the cycle before still count, where all
   ports share a scheduler. */
INLINE void count_waiting(Sim *s, const int by_port)
{
    if (!by_port && s->by_rank) {
        memcpy(s->before, s->starting, sizeof s->before);
        memset(s->taken, 0, (size_t)s->kinds * sizeof *s->taken);
    }
    for (int32_t port = 0; port < PORTS; port++) {
        s->starting[port] = s->counters[port] + (by_port ? 0 : s->started[port]);
        if (!by_port)
            s->started[port] = 0;
    }
}

/* What dispatch learns in this cycle of the queues that ports are assigned to. */
static void see_entries(Sim *s)
{
    s->entries_seen += s->moved[(s->now - s->core->seen_after) & (SEEN - 1)];
}

static void keep_moved(Sim *s)
{
    s->moved[s->now & (SEEN - 1)] = s->moving;
    s->moving = 0;
}

/* `plain` and `by_port` as in Sim, constants at each call: what they exclude costs nothing where it is not. */
INLINE void cycle(Sim *s, const int plain, const int by_port)
{
    const Core *c = s->core;
    if (!plain && c->vector_registers) {
        int32_t *coming = &s->registers_coming[s->now & (RELEASES - 1)];
        s->registers_free += *coming;
        *coming = 0;
    }
    if (!plain)
        s->giving[s->now & (RESULTS - 1)] = 0; /* for a later round */
    if (by_port && c->together)
        see_entries(s);
    retire(s, plain);
    const int issue_ports = plain || by_port || c->issue_ports;
    if (by_port ? s->behind_queue : issue_ports)
        count_waiting(s, by_port);
    wake(s, issue_ports);
    if (issue_ports)
        dispatch_bound(s, plain, by_port);
    else
        dispatch_free(s);
    issue(s, plain, by_port);
    if (by_port && s->queue_begin < s->queue_end)
        leave_queue(s);
    if (by_port)
        sides_end(&s->sides, s->now);
    if (by_port && c->together)
        keep_moved(s);
    deliver(s);
    s->now++;
}

/* Take the counts at the end of the first pass that ends at a cycle or later, after so many passes. */
static void mark(Counts *at, const Counts *until, int64_t cycle, int64_t passes)
{
    if (!at->now && until->now >= cycle && until->passes >= passes)
        *at = *until;
}

/* Whether passes have become equally fast, asked once: at the end of a pass after so many cycles and slots; never without
   cycles. */
typedef struct {
    int64_t cycles, slots;
    int asked;
    Counts third, two_thirds;
} Trial;

/* Whether the passes between three marks took equally long, but for a small share. */
static int is_steady(const Counts *first, const Counts *second, const Counts *third)
{
    const int64_t earlier = (second->now - first->now) * (third->passes - second->passes);
    const int64_t later = (third->now - second->now) * (second->passes - first->passes);
    return later && STEADY_SHARE * (earlier > later ? earlier - later : later - earlier) <= later;
}

static int is_over(Trial *trial, const Sim *s, const Counts *until)
{
    if (!trial->cycles || trial->asked || until->now < trial->cycles / 3)
        return 0;
    if (until->now >= trial->cycles && s->slots_retired >= trial->slots) {
        trial->asked = 1;
        return is_steady(&trial->third, &trial->two_thirds, until);
    }
    if (!trial->two_thirds.now) {
        mark(&trial->third, until, trial->cycles / 3, 0);
        mark(&trial->two_thirds, until, trial->cycles * 2 / 3, 0);
    }
    return 0;
}

int is_at(double floor, int64_t cycles, int64_t passes)
{
    const double beyond = (double)cycles / (double)(passes > 0 ? passes : 1) - floor;
    return (beyond < 0 ? -beyond : beyond) <= floor / STEADY_SHARE;
}

/* 1 when the state repeated, 0 when the passes became steady or the cycles ran out, NO_MEMORY; `since` and `until` bound
   the period, or the passes that retired in the last two thirds of a trial, or in the second half of all cycles. */
static int run(Sim *s, double floor, Counts *until)
{
    const Core *c = s->core;
    Counts half = {0};
    Trial soon = {.cycles = c->floor_cycles, .slots = c->reorder_buffer};
    Trial late = {.cycles = c->steady_cycles, .slots = 2 * c->reorder_buffer};
    Trial again = {.cycles = c->again_cycles, .slots = 2 * c->reorder_buffer};
    while (s->now < c->most_cycles || until->passes < c->least_passes) {
        if (s->plain)
            cycle(s, 1, 0);
        else if (s->by_port)
            cycle(s, 0, 1);
        else
            cycle(s, 0, 0);
        if (s->pass_retiring != until->passes) {
            *until = (Counts){s->now, s->pass_retiring, s->tally};
            mark(&half, until, c->most_cycles / 2, c->least_passes / 2);
            const Counts *since = NULL;
            if (is_over(&soon, s, until) &&
                is_at(floor, until->now - soon.third.now, until->passes - soon.third.passes))
                since = &soon.third;
            else if (is_over(&late, s, until))
                since = &late.third;
            else if (is_over(&again, s, until))
                since = &again.third;
            if (since) {
                s->since = *since;
                return 0;
            }
        }
        if (s->pass_issuing == s->passes)
            continue;
        s->passes = s->pass_issuing;
        const int found = repeats(s);
        if (found > 0)
            *until = (Counts){s->now, s->passes, s->tally};
        if (found)
            return found;
    }
    s->since = half;
    return 0;
}

/* Whether what `plain` names is nowhere in the core and the block. */
static int is_plain(const Sim *s)
{
    int special = !s->core->issue_ports || s->core->by_port || s->core->vector_registers || s->pipes || s->lenders ||
                  s->core->one_result;
    for (int32_t u = 0; u < s->core->microops; u++)
        special |= s->ops[u].third || s->ops[u].paths;
    return !special;
}

int simulate(const Program *program, Arena *arena, int64_t *result)
{
    Sim s;
    memset(&s, 0, sizeof s);
    s.core = program->core;
    s.units = program->units;
    s.unit_count = program->core->units;
    s.entries = s.entry = program->entries;
    s.entries_end = program->entries + program->core->entries;
    s.schedule = program->schedule;
    s.decoding = program->core->source == DECODERS;
    s.by_port = program->core->by_port && program->core->issue_ports;
    s.by_rank = s.core->port_choice == BY_RANK && s.core->issue_ports && !s.by_port;
    s.phases = 1;
    s.fitting = INT32_MAX;
    s.arena = arena;
    list_turns(&s);
    if (allocate(&s, program))
        return NO_MEMORY;
    if (!s.core->issue_ports)
        count_users(&s);
    s.plain = is_plain(&s);
    Counts until = {0};
    const int found = run(&s, program->floor, &until);
    if (found < 0)
        return found;
    *result++ = found;
    *result++ = until.now - s.since.now;
    *result++ = until.passes - s.since.passes;
    *result++ = s.now;
    for (int32_t k = 0; k < REASONS; k++)
        *result++ = until.tally.stalls[k] - s.since.tally.stalls[k];
    for (int32_t k = 0; k < PORTS; k++)
        *result++ = until.tally.dispatched[k] - s.since.tally.dispatched[k];
    return 0;
}
