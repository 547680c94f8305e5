/* The functions that Python calls. No global state. */

#include <stdlib.h>
#include <string.h>

#include "block.h"

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

#ifndef KERNMODEL_SOURCES
#define KERNMODEL_SOURCES ""
#endif

/* The hash of the sources that the library was made of, "" if it was made by hand. */
EXPORT const char *km_sources(void) { return KERNMODEL_SOURCES; }

/* Simulate a block. Result: `SIMULATED_NUMBERS`. */
EXPORT int32_t km_pipeline(const Core *core, const FetchUnit *units, const Entry *entries, const int32_t *first_microop,
                           const MicroOp *microops, const Wait *waits, const int32_t *schedule, double floor,
                           int64_t *result)
{
    const Program program = {core, units, entries, first_microop, microops, waits, schedule, floor};
    Arena arena = {0};
    const int found = simulate(&program, &arena, result);
    arena_release(&arena);
    return found;
}

/* ---- many blocks on one core ---- */

typedef struct { const void **items; int32_t count, room; } List;

typedef struct {
    Machine machine;
    Arena keep, work; /* for as long as the analyser is there; for one block */
    List templates, uops, known;
    Block block; /* the latest one */
} Analyser;

static int32_t append(List *list, const void *item)
{
    if (list->count == list->room) {
        const int32_t room = list->room ? 2 * list->room : 256;
        const void **items = room > INT32_MAX / 16 ? NULL : realloc(list->items, sizeof(void *) * (size_t)room);
        if (!items)
            return NO_MEMORY;
        list->items = items;
        list->room = room;
    }
    list->items[list->count] = item;
    return list->count++;
}

static const void *item(const List *list, int32_t number)
{
    return number >= 0 && number < list->count ? list->items[number] : NULL;
}

EXPORT void km_free(Analyser *a)
{
    if (!a)
        return;
    arena_release(&a->keep);
    arena_release(&a->work);
    free(a->templates.items);
    free(a->uops.items);
    free(a->known.items);
    free(a);
}

/* Whether every port has a scheduler, and the queue before them entries. */
static int schedules(const Core *c)
{
    for (int32_t port = 0; port < PORTS; port++)
        if (c->scheduler_of[port] < 0 || c->scheduler_of[port] >= SCHEDULERS)
            return 0;
    return c->queue_entries > 0 || !c->queued;
}

/* Figures by which something is divided, or that count places. */
static int is_sound(const Machine *m)
{
    const Figures *f = &m->figures;
    if (f->issue_width < 1 || f->issue_width > 64 || f->decoders < 0 || f->decoders >= 32)
        return 0;
    if (!f->simulated || f->kind == KIND_OP_CACHE)
        return (f->kind == KIND_NONE || f->decoders) && schedules(&m->core);
    const int32_t positive[] = {f->decoders,  f->fusion_line_bytes, f->predecode_width,     f->predecode_bytes,
                                f->dsb_width, f->dsb_bytes,         f->dsb_line_bytes,      m->core.issue_width,
                                f->idq_uops,  f->issue_width,       m->core.predecode_width};
    for (size_t k = 0; k < sizeof positive / sizeof *positive; k++)
        if (positive[k] < 1 || positive[k] > 1 << 16)
            return 0;
    return f->jcc_bytes >= 0 && m->core.predecode_delay < 16;
}

/* The core: `FIGURE_NUMBERS`, `CORE_NUMBERS` and `TIME_NUMBERS`; copies of a loop in the LSD by its µops. */
EXPORT Analyser *km_new(const int32_t *figures, int64_t figure_count, const int32_t *core, int64_t core_count,
                        const double *times, int64_t time_count, const int32_t *copies, int64_t copies_known)
{
    if (figure_count != FIGURE_NUMBERS || core_count != CORE_NUMBERS || time_count != TIME_NUMBERS || copies_known < 0)
        return NULL;
    Analyser *a = calloc(1, sizeof *a);
    int32_t *kept = a ? arena_take(&a->keep, copies_known + 1, sizeof(int32_t)) : NULL;
    if (kept) {
        memcpy(&a->machine.figures, figures, sizeof(Figures));
        memcpy(&a->machine.core, core, sizeof(Core));
        memcpy(&a->machine.times, times, sizeof(Times));
        for (int64_t k = 0; k < copies_known; k++)
            kept[k] = copies[k];
        a->machine.copies = kept;
        a->machine.copies_known = (int32_t)copies_known;
        if (is_sound(&a->machine))
            return a;
    }
    km_free(a);
    return NULL;
}

/* The number of a new template, or of new µops; negative if they do not hold together. */
EXPORT int32_t km_add_template(Analyser *a, const int32_t *numbers, int64_t count, const double *times, int64_t more)
{
    int failure = 0;
    const Template *found = read_template(&a->keep, numbers, count, times, more, &failure);
    return found ? append(&a->templates, found) : failure;
}

EXPORT int32_t km_add_uops(Analyser *a, const int32_t *numbers, int64_t count, const double *times, int64_t more)
{
    int failure = 0;
    const InstructionUops *found = read_uops(&a->keep, numbers, count, times, more, &failure);
    return found ? append(&a->uops, found) : failure;
}

enum { LAYOUT = 8 };

/* Take the first of several instructions: its template and its µops, its length, the place of its opcode, whether it has a
   length-changing prefix or a wide immediate, its constants and long constants; then the resource in each slot. How many
   numbers that are. */
static int64_t add_instruction(Analyser *a, const int32_t *numbers, int64_t left)
{
    if (left < LAYOUT)
        return MALFORMED;
    const Template *t = item(&a->templates, numbers[0]);
    const InstructionUops *p = item(&a->uops, numbers[1]);
    const int32_t length = numbers[2], opcode = numbers[3], *registers = numbers + LAYOUT;
    const int64_t count = t ? t->is.registers : 0;
    if (!t || count > left - LAYOUT || (p && p->registers != count) || (!p && t->is.known && a->machine.figures.simulated))
        return MALFORMED;
    if (length < 1 || length > 15 || opcode < 0 || opcode >= length)
        return MALFORMED;
    Known *known = arena_take(&a->keep, 1, sizeof *known);
    int32_t *own = arena_take(&a->keep, count + 1, sizeof(int32_t));
    if (!known || !own)
        return NO_MEMORY;
    for (int64_t k = 0; k < count; k++)
        if ((own[k] = registers[k]) < -1 || own[k] > 1 << 12)
            return MALFORMED;
    *known = (Known){t, p, own, length, opcode, numbers[4], numbers[5], numbers[6], numbers[7]};
    const int32_t number = append(&a->known, known);
    return number < 0 ? number : LAYOUT + count;
}

/* New instructions, which are numbered as they come: the number of the last one. */
EXPORT int32_t km_add_instructions(Analyser *a, const int32_t *numbers, int64_t count)
{
    while (count > 0) {
        const int64_t taken = add_instruction(a, numbers, count);
        if (taken < 0)
            return (int32_t)taken;
        numbers += taken;
        count -= taken;
    }
    return a->known.count - 1;
}

static int begin(Analyser *a, Block *b, const int32_t *instructions, int32_t count)
{
    arena_reset(&a->work);
    memset(b, 0, sizeof *b);
    const Known **known = arena_take(&a->work, count, sizeof(Known *));
    if (!known)
        return NO_MEMORY;
    for (int32_t n = 0; n < count; n++)
        if (!(known[n] = item(&a->known, instructions[n])))
            return MALFORMED;
    b->machine = &a->machine;
    b->known = known;
    b->count = count;
    b->arena = &a->work;
    b->core = a->machine.core;
    return 0;
}

/* Cycles per pass of the slowest part. */
static double slowest(const Block *b)
{
    double cycles = 0;
    for (int32_t k = 0; k < PART_PIPELINE && b->scope == WHOLE; k++)
        if (b->applies >> k & 1 && b->components[k] > cycles)
            cycles = b->components[k];
    return cycles;
}

static int simulate_block(Block *b)
{
    if (!b->core.slots)
        return 0;
    const double floor = slowest(b);
    const Program program = {&b->core, b->fetch, b->entries, b->first_microop, b->microops, b->waits, b->schedule, floor};
    const int failure = simulate(&program, b->arena, b->simulated);
    if (failure)
        return failure;
    const int64_t settled = b->simulated[0], cycles = b->simulated[1], passes = b->simulated[2];
    b->applies |= 1u << PART_PIPELINE;
    const int as_slow_as_a_part = b->scope == WHOLE && !settled && is_at(floor, cycles, passes);
    b->components[PART_PIPELINE] = as_slow_as_a_part ? floor : (double)cycles / (double)(passes > 0 ? passes : 1);
    return 0;
}

static int analyse(Block *b)
{
    int (*const simulated[])(Block *) = {see_front_end,   bound_dependencies, link_microops, plan_fetch,
                                         bound_front_end, bound_ports,        simulate_block};
    int (*const zen[])(Block *) = {see_front_end,  bound_dependencies, link_microops, plan_op_cache_fetch,
                                   bound_op_cache, bound_ports,        simulate_block};
    int (*const bounded[])(Block *) = {see_front_end, bound_dependencies, bound_op_cache, bound_ports};
    const Figures *f = &b->machine->figures;
    int (*const *steps)(Block *) = !f->simulated ? bounded : f->kind == KIND_OP_CACHE ? zen : simulated;
    int failure = 0;
    if (b->scope == DEPENDENCES)
        return bound_dependencies(b);
    for (int k = 0; k < (f->simulated ? 7 : 4) && !failure; k++)
        failure = steps[k](b);
    return failure;
}

static void report(const Block *b, int64_t *numbers, double *cycles)
{
    Totals t = {.applies = b->applies,
                .idle = b->idle,
                .units = b->unit_count,
                .complex_units = b->complex_units,
                .synchronisations = b->synchronisations,
                .erratum = b->erratum,
                .length = b->length,
                .prefixed = b->prefixes,
                .code_lines = code_lines(b),
                .source = b->core.source,
                .copies = b->core.copies,
                .barred_from = b->core.barred_from,
                .fused = b->fused,
                .cycle_length = b->cycle_length,
                .cycle_passes = b->cycle_passes,
                .through_memory = b->through_memory,
                .ports = b->binding_ports,
                .divider = b->binding_divider,
                .vertices = b->vertices,
                .edges = b->edge_count,
                .settled = b->simulated[0],
                .period = b->simulated[1],
                .passes = b->simulated[2],
                .simulated = b->simulated[3]};
    for (int32_t k = 0; k < b->unit_count; k++) {
        t.decoded += b->units[k].decoded;
        t.constants += b->units[k].constants;
        t.slots += b->units[k].slots;
    }
    for (int32_t k = 0; k < b->core.entries; k++)
        t.entries += b->entries[k].slots;
    memcpy(numbers, &t, sizeof t);
    memcpy(numbers + sizeof t / sizeof *numbers, b->simulated + 4, sizeof(int64_t) * REASONS);
    memcpy(cycles, b->components, sizeof b->components);
    cycles[COMPONENTS] = b->ports_alone;
    cycles[COMPONENTS + 1] = b->slow;
}

/* Pairs that macro-fuse: of each the number of its first instruction, and its µops. */
static int take_pairs(Analyser *a, Block *b, const int32_t *pairs, int32_t count)
{
    if (!count)
        return 0;
    b->pairs = arena_take(&a->work, b->count, sizeof *b->pairs);
    if (!b->pairs)
        return NO_MEMORY;
    memset(b->pairs, 0, sizeof *b->pairs * (size_t)b->count);
    for (int32_t k = 0; k < count; k++) {
        if (pairs[2 * k] < 0 || pairs[2 * k] >= b->count)
            return MALFORMED;
        b->pairs[pairs[2 * k]] = item(&a->uops, pairs[2 * k + 1]);
    }
    return 0;
}

static int take_accesses(Analyser *a, Block *b, const Access *accesses, int32_t count)
{
    if (!count)
        return 0;
    b->accesses = arena_take(&a->work, b->count, sizeof *b->accesses);
    if (!b->accesses)
        return NO_MEMORY;
    memset(b->accesses, 0, sizeof *b->accesses * (size_t)b->count);
    for (int32_t k = 0; k < count; k++) {
        if (accesses[k].instruction < 0 || accesses[k].instruction >= b->count)
            return MALFORMED;
        b->accesses[accesses[k].instruction] = &accesses[k];
    }
    return 0;
}

/* What bounds a block: `given` is a Request and what stands behind it, `split` as in Block. `numbers`: Totals and the
   stalls by reason; `cycles`: of the components, of ports alone, and what was measured. */
EXPORT int32_t km_block(Analyser *a, const int32_t *given, int64_t count, const Link *links, const double *split,
                        int64_t *numbers, double *cycles)
{
    Block *b = &a->block;
    Request how;
    const int64_t head = sizeof how / sizeof *given;
    if (count < head)
        return MALFORMED;
    memcpy(&how, given, sizeof how);
    const int sound = how.instructions > 0 && how.instructions <= 1 << 20 && how.offset >= 0 && how.offset <= 1 << 12 &&
                      how.links >= 0 && how.simulated_links >= 0 && how.pairs >= 0 && how.pairs < how.instructions;
    const int64_t placed = how.placed ? how.instructions : 0, each = sizeof(Access) / sizeof(int32_t);
    if (!sound || how.accesses < 0 || how.accesses > how.instructions ||
        count - head != how.instructions + 2 * (int64_t)how.pairs + placed + each * how.accesses)
        return MALFORMED;
    const int32_t *instructions = given + head, *pairs = instructions + how.instructions, *places = pairs + 2 * how.pairs;
    int failure = begin(a, b, instructions, how.instructions);
    if (failure || (failure = take_pairs(a, b, pairs, how.pairs)) ||
        (failure = take_accesses(a, b, (const Access *)(places + placed), how.accesses)))
        return failure;
    b->unrolled = how.unrolled;
    b->offset = how.offset;
    b->all = how.all;
    b->scope = how.scope;
    b->places = how.placed ? places : NULL;
    b->split = split;
    b->links = (Links){how.links, links};
    b->simulated_links = (Links){how.simulated_links, links + how.links};
    failure = analyse(b);
    if (!failure)
        report(b, numbers, cycles);
    return failure;
}

/* The dependency graph of the latest block: of each vertex its instruction and value, and when it is ready; of each edge
   source, target and passes, and its latency; the first instructions of fused pairs. */
EXPORT void km_graph(const Analyser *a, int32_t *vertices, double *ready, int32_t *edges, double *latencies, int32_t *fused)
{
    const Block *b = &a->block;
    for (int32_t v = 0; v < b->vertices; v++) {
        *vertices++ = b->owners[v];
        *vertices++ = b->values[v];
        *ready++ = b->ready[v];
    }
    for (int32_t e = 0; e < b->edge_count; e++) {
        *edges++ = b->edges[e].source;
        *edges++ = b->edges[e].target;
        *edges++ = b->edges[e].passes;
        *latencies++ = b->edges[e].latency;
    }
    for (int32_t k = 0; k < b->unit_count; k++)
        if (b->units[k].fused)
            *fused++ = b->units[k].number;
}

/* The slowest cycle of the latest block, `cycle_length` edges: source, its instruction and value, target, passes. */
EXPORT void km_cycle(const Analyser *a, int32_t *edges, double *latencies)
{
    const Block *b = &a->block;
    for (int32_t k = 0; k < b->cycle_length; k++) {
        const Edge *edge = &b->cycle[k];
        const int32_t own[] = {edge->source, b->owners[edge->source], b->values[edge->source], edge->target, edge->passes};
        memcpy(edges, own, sizeof own);
        edges += sizeof own / sizeof *own;
        *latencies++ = edge->latency;
    }
}

/* The input of the simulation of the latest block, for comparison: sizes first, then with room for it. */
EXPORT void km_program(const Analyser *a, int32_t *core, int32_t *units, int32_t *entries, int32_t *first_microop,
                       int32_t *microops, int32_t *waits, int32_t *schedule)
{
    const Block *b = &a->block;
    const Core *c = &b->core;
    memcpy(core, c, sizeof *c);
    if (!units)
        return;
    memcpy(units, b->fetch, sizeof(FetchUnit) * (size_t)c->units);
    memcpy(entries, b->entries, sizeof(Entry) * (size_t)c->entries);
    memcpy(first_microop, b->first_microop, sizeof(int32_t) * ((size_t)c->slots + 1));
    memcpy(microops, b->microops, sizeof(MicroOp) * ((size_t)c->microops + 1));
    memcpy(waits, b->waits, sizeof(Wait) * (size_t)c->waits);
    memcpy(schedule, b->schedule, sizeof(int32_t) * (size_t)c->schedule);
}
