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
    List templates, parts, known;
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
    free(a->parts.items);
    free(a->known.items);
    free(a);
}

/* Figures by which something is divided, or that count places. */
static int is_sound(const Machine *m)
{
    const Figures *f = &m->figures;
    const int32_t positive[] = {f->decoders,  f->fusion_line_bytes, f->predecode_width,     f->predecode_bytes,
                                f->dsb_width, f->dsb_bytes,         f->dsb_line_bytes,      m->core.issue_width,
                                f->idq_uops,  f->issue_width,       m->core.predecode_width};
    for (size_t k = 0; k < sizeof positive / sizeof *positive; k++)
        if (positive[k] < 1 || positive[k] > 1 << 16)
            return 0;
    return f->jcc_bytes >= 0 && f->decoders < 32 && f->issue_width <= 64 && m->core.predecode_delay < 16;
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

EXPORT int32_t km_add_parts(Analyser *a, const int32_t *numbers, int64_t count, const double *times, int64_t more)
{
    int failure = 0;
    const Parts *found = read_parts(&a->keep, numbers, count, times, more, &failure);
    return found ? append(&a->parts, found) : failure;
}

enum { LAYOUT = 6 };

/* The number of a new instruction: its template and its µops, its length, the place of its opcode, whether it has a
   length-changing prefix or a wide immediate; then the resource in each slot. */
EXPORT int32_t km_add_instruction(Analyser *a, const int32_t *numbers, int64_t count)
{
    if (count < LAYOUT)
        return MALFORMED;
    const Template *t = item(&a->templates, numbers[0]);
    const Parts *p = item(&a->parts, numbers[1]);
    const int32_t length = numbers[2], opcode = numbers[3], *registers = numbers + LAYOUT;
    count -= LAYOUT;
    if (!t || count != t->registers || (p && p->registers != count) || (!p && t->known))
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
    *known = (Known){t, p, own, length, opcode, numbers[4], numbers[5]};
    return append(&a->known, known);
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
    for (int32_t k = 0; k < PIPELINE; k++)
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
    b->applies |= 1u << PIPELINE;
    const int as_slow_as_a_part = !settled && is_at(floor, cycles, passes);
    b->components[PIPELINE] = as_slow_as_a_part ? floor : (double)cycles / (double)(passes > 0 ? passes : 1);
    return 0;
}

static int analyse(Block *b)
{
    int (*const steps[])(Block *) = {see_front_end,   link_microops, plan_fetch,        bound_front_end,
                                     bound_ports, bound_dependencies, simulate_block};
    int failure = 0;
    for (size_t k = 0; k < sizeof steps / sizeof *steps && !failure; k++)
        failure = steps[k](b);
    return failure;
}

static void report(const Block *b, int64_t *numbers, double *cycles)
{
    int64_t decoded = 0, slots = 0, entries = 0;
    for (int32_t k = 0; k < b->unit_count; k++) {
        decoded += b->units[k].decoded;
        slots += b->units[k].slots;
    }
    for (int32_t k = 0; k < b->core.entries; k++)
        entries += b->entries[k].slots;
    const int64_t found[] = {b->applies,     b->unit_count,    b->complex_units, decoded,        slots,
                             entries,        b->synchronisations, b->erratum,    b->length,      b->prefixes,
                             b->core.source, b->core.copies,   b->fused,         b->cycle_length, b->cycle_passes,
                             b->through_memory, b->binding_ports, b->binding_divider};
    memcpy(numbers, found, sizeof found);
    memcpy(numbers + sizeof found / sizeof *found, b->simulated, sizeof b->simulated);
    memcpy(cycles, b->components, sizeof b->components);
    cycles[COMPONENTS] = b->ports_alone;
    cycles[COMPONENTS + 1] = b->slow;
}

enum { HOW = 5 };

/* What bounds a block.

   `given`: whether it is unrolled, the address of its first byte, the µops of its last two instructions if they fuse
   (-1: they do not), the number of links for dependencies and of those for the simulation; then its instructions.
   `numbers` and `cycles` as analyser.Answer reads them. */
EXPORT int32_t km_block(Analyser *a, const int32_t *given, int64_t count, const Link *links, int64_t *numbers,
                        double *cycles)
{
    Block *b = &a->block;
    const int32_t *how = given, *instructions = given + HOW;
    count -= HOW;
    if (count < 1 || count > 1 << 20 || how[1] < 0 || how[1] > 1 << 12 || how[3] < 0 || how[4] < 0)
        return MALFORMED;
    int failure = begin(a, b, instructions, (int32_t)count);
    if (failure)
        return failure;
    b->unrolled = how[0];
    b->offset = how[1];
    b->fused_parts = count > 1 ? item(&a->parts, how[2]) : NULL;
    b->links = (Links){how[3], links};
    b->simulated_links = (Links){how[4], links + how[3]};
    failure = analyse(b);
    if (!failure)
        report(b, numbers, cycles);
    return failure;
}

/* The slowest cycle of the latest block, `cycle_length` edges: instruction and value at source and target, passes. */
EXPORT void km_cycle(const Analyser *a, int32_t *edges, double *latencies)
{
    const Block *b = &a->block;
    for (int32_t k = 0; k < b->cycle_length; k++) {
        const Edge *edge = &b->cycle[k];
        const int32_t own[] = {edge->source, b->owners[edge->source], b->values[edge->source], edge->target,
                               b->owners[edge->target], b->values[edge->target], edge->passes};
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
