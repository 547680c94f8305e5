#include "templates.h"

#include "program.h"

/* What is left to read; `bad` once something was not there or out of range. */
typedef struct {
    Arena *keep;
    const int32_t *numbers, *numbers_end;
    const double *times, *times_end;
    int bad, out_of_memory;
} Reader;

static int32_t number(Reader *r)
{
    if (r->numbers == r->numbers_end) {
        r->bad = 1;
        return 0;
    }
    return *r->numbers++;
}

static int32_t below(Reader *r, int32_t first, int32_t end)
{
    const int32_t found = number(r);
    if (found < first || found >= end) {
        r->bad = 1;
        return 0;
    }
    return found;
}

/* How many of something follow: each takes at least one number. */
static int32_t how_many(Reader *r) { return below(r, 0, (int32_t)(r->numbers_end - r->numbers) + 1); }

static double time(Reader *r)
{
    if (r->times == r->times_end) {
        r->bad = 1;
        return 0.0;
    }
    return *r->times++;
}

static void *room(Reader *r, int32_t count, size_t size)
{
    void *piece = arena_take(r->keep, count + 1, size);
    if (!piece) {
        r->out_of_memory = 1;
        r->bad = 1;
    }
    return piece;
}

static int over(const Reader *r) { return r->numbers != r->numbers_end || r->times != r->times_end || r->bad; }

static Uses read_uses(Reader *r)
{
    const int32_t count = how_many(r);
    Use *uses = room(r, count, sizeof(Use));
    for (int32_t k = 0; k < count && !r->bad; k++) {
        uses[k].mask = number(r);
        uses[k].divides = number(r);
        uses[k].cycles = time(r);
        uses[k].split = time(r);
    }
    return (Uses){count, uses};
}

/* The numbers of a struct of numbers, in its order. */
static void read_numbers(Reader *r, int32_t *numbers, size_t size)
{
    for (size_t k = 0; k < size / sizeof *numbers; k++)
        numbers[k] = number(r);
}

static void read_traits(Reader *r, Template *t)
{
    read_numbers(r, (int32_t *)&t->is, sizeof t->is);
    t->takes.throughput = time(r);
    t->takes.saves = time(r);
    t->takes.addition = time(r);
    t->jumps = (uint32_t)t->is.jumps_low | (uint64_t)(uint32_t)t->is.jumps_high << 32;
    const Traits *is = &t->is;
    if (is->decoded < 0 || is->microcoded < 0 || is->jump < -1 || is->jump >= 64 || is->registers < 0 || is->registers >= 1 << 10)
        r->bad = 1;
}

static void read_memory(Reader *r, Template *t)
{
    t->loads = how_many(r);
    FlowLoad *load = room(r, t->loads, sizeof *load);
    for (int32_t k = 0; k < t->loads && !r->bad; k++)
        load[k] = (FlowLoad){number(r), time(r)};
    t->stores = how_many(r);
    FlowStore *store = room(r, t->stores, sizeof *store);
    for (int32_t k = 0; k < t->stores && !r->bad; k++) {
        const int32_t place = number(r);
        store[k] = (FlowStore){place, below(r, 0, t->values)};
    }
    t->load = load;
    t->store = store;
    if (t->loads > t->values)
        r->bad = 1;
}

static void read_flow(Reader *r, Template *t)
{
    t->values = how_many(r);
    int32_t *in_memory = room(r, t->values, sizeof *in_memory);
    for (int32_t k = 0; k < t->values && !r->bad; k++)
        in_memory[k] = number(r);
    double *ready = room(r, t->values, sizeof *ready);
    for (int32_t k = 0; k < t->values && !r->bad; k++)
        ready[k] = time(r);
    t->ready = ready;
    t->waits = how_many(r);
    FlowWait *wait = room(r, t->waits, sizeof *wait);
    for (int32_t k = 0; k < t->waits && !r->bad; k++) {
        const int32_t value = below(r, 0, t->values);
        wait[k] = (FlowWait){value, below(r, 0, t->is.registers), time(r)};
    }
    t->inner = how_many(r);
    FlowInner *inner = room(r, t->inner, sizeof *inner);
    for (int32_t k = 0; k < t->inner && !r->bad; k++) {
        const int32_t load = below(r, 0, t->values);
        inner[k] = (FlowInner){load, below(r, load + 1, t->values), time(r)};
    }
    t->gives = how_many(r);
    FlowGive *give = room(r, t->gives, sizeof *give);
    for (int32_t k = 0; k < t->gives && !r->bad; k++) {
        const int32_t slot = below(r, 0, t->is.registers);
        give[k] = (FlowGive){slot, below(r, 0, t->values)};
    }
    t->in_memory = in_memory;
    t->wait = wait;
    t->in = inner;
    t->give = give;
    if (t->is.pointer < -1 || t->is.pointer >= t->values)
        r->bad = 1;
    read_memory(r, t);
}

static int failure_of(const Reader *r) { return r->out_of_memory ? NO_MEMORY : MALFORMED; }

const Template *read_template(Arena *keep, const int32_t *numbers, int64_t count, const double *times, int64_t more,
                              int *failure)
{
    Reader r = {keep, numbers, numbers + count, times, times + more, 0, 0};
    Template *t = room(&r, 1, sizeof *t);
    if (t) {
        read_traits(&r, t);
        t->uses = read_uses(&r);
        read_flow(&r, t);
    }
    if (!over(&r))
        return t;
    *failure = failure_of(&r);
    return NULL;
}

static const Inside *read_inside(Reader *r, int32_t count, int32_t uops)
{
    Inside *inside = room(r, count, sizeof *inside);
    for (int32_t k = 0; k < count && !r->bad; k++) {
        const int32_t uop = below(r, 0, uops);
        inside[k] = (Inside){uop, number(r)};
    }
    return inside;
}

static void read_uop(Reader *r, Uop *uop, int32_t uops, int32_t registers)
{
    read_numbers(r, (int32_t *)&uop->is, sizeof uop->is);
    if (uop->is.scheduler < 0 || uop->is.scheduler >= SCHEDULERS || uop->is.ports < 0 || uop->is.ports >> PORTS)
        r->bad = 1;
    uop->reads = how_many(r);
    Outside *reads = room(r, uop->reads, sizeof *reads);
    for (int32_t k = 0; k < uop->reads && !r->bad; k++) {
        const int32_t slot = below(r, 0, registers);
        reads[k] = (Outside){slot, number(r)};
    }
    uop->read = reads;
    uop->inside = how_many(r);
    uop->in = read_inside(r, uop->inside, uops);
    if (uop->is.paths < 0 || uop->is.paths >> PORTS || uop->is.third < 0 || uop->is.third > (int64_t)uop->reads + uop->inside)
        r->bad = 1;
}

static void read_slots(Reader *r, InstructionUops *p)
{
    p->slots = how_many(r);
    int32_t *first = room(r, p->slots, sizeof *first), *ordered = room(r, p->uops, sizeof *ordered);
    int32_t filled = 0;
    for (int32_t k = 0; k < p->slots && !r->bad; k++) {
        first[k] = filled;
        for (int32_t left = below(r, 0, p->uops - filled + 1); left && !r->bad; left--)
            ordered[filled++] = below(r, 0, p->uops);
    }
    if (r->bad || filled != p->uops) {
        r->bad = 1;
        return;
    }
    first[p->slots] = filled;
    p->slot_first = first;
    p->ordered = ordered;
}

static void read_ends(Reader *r, InstructionUops *p)
{
    p->results = how_many(r);
    UopResult *result = room(r, p->results, sizeof *result);
    for (int32_t k = 0; k < p->results && !r->bad; k++) {
        result[k].slot = below(r, 0, p->registers);
        result[k].count = how_many(r);
        result[k].waits = read_inside(r, result[k].count, p->uops);
    }
    p->loads = how_many(r);
    UopLoad *load = room(r, p->loads, sizeof *load);
    for (int32_t k = 0; k < p->loads && !r->bad; k++) {
        const int32_t place = number(r), uop = below(r, 0, p->uops);
        load[k] = (UopLoad){place, uop, number(r)};
    }
    p->stores = how_many(r);
    UopStore *store = room(r, p->stores, sizeof *store);
    for (int32_t k = 0; k < p->stores && !r->bad; k++) {
        const int32_t place = number(r), data = below(r, 0, p->uops), address = below(r, -1, p->uops);
        store[k] = (UopStore){place, data, address, number(r)};
    }
    p->result = result;
    p->load = load;
    p->store = store;
}

const InstructionUops *read_uops(Arena *keep, const int32_t *numbers, int64_t count, const double *times, int64_t more,
                        int *failure)
{
    Reader r = {keep, numbers, numbers + count, times, times + more, 0, 0};
    InstructionUops *p = room(&r, 1, sizeof *p);
    if (p) {
        p->registers = below(&r, 0, 1 << 10);
        p->chaseable = number(&r);
        p->pointer = number(&r);
        p->uops = how_many(&r);
        Uop *uop = room(&r, p->uops, sizeof *uop);
        for (int32_t k = 0; k < p->uops && !r.bad; k++)
            read_uop(&r, &uop[k], p->uops, p->registers);
        p->uop = uop;
        read_slots(&r, p);
        read_ends(&r, p);
        p->uses = read_uses(&r);
        p->keeps_ports = number(&r);
    }
    if (!over(&r))
        return p;
    *failure = failure_of(&r);
    return NULL;
}
