/* The front end: the compiled twin of kernmodel.incore.front_end, which says what is modelled and why. */

#include <string.h>

#include "block.h"

/* ---- what the front end sees ---- */

/* Where instructions stand: one behind the other, or with gaps. */
static int place(Block *b)
{
    int64_t end = 0;
    b->starts = arena_take(b->arena, b->count, sizeof(int32_t));
    b->stops = arena_take(b->arena, b->count, sizeof(int32_t));
    b->opcodes = arena_take(b->arena, b->count, sizeof(int32_t));
    if (!b->starts || !b->stops || !b->opcodes)
        return NO_MEMORY;
    for (int32_t n = 0; n < b->count; n++) {
        const int64_t start = b->places ? b->places[n] : end;
        if (start < end)
            return MALFORMED;
        end = start + b->known[n]->length;
        if (end > INT32_MAX / 64)
            return MALFORMED;
        b->starts[n] = (int32_t)start;
        b->stops[n] = (int32_t)end;
        b->opcodes[n] = (int32_t)start + b->known[n]->opcode;
        b->prefixes += b->known[n]->prefixed != 0;
    }
    b->length = (int32_t)end;
    return 0;
}

static int lay_out(Block *b)
{
    const int failure = place(b);
    if (failure)
        return failure;
    b->ends = arena_take(b->arena, (int64_t)b->length + 1, sizeof(int32_t));
    b->cut = arena_take(b->arena, (int64_t)b->length + 1, sizeof(int32_t));
    if (!b->ends || !b->cut)
        return NO_MEMORY;
    memset(b->cut, 0, sizeof(int32_t) * ((size_t)b->length + 1));
    for (int32_t n = 0, x = 0; n < b->count; n++) {
        for (; x < b->stops[n]; x++)
            b->ends[x] = n;
        for (int32_t k = b->opcodes[n] + 1; k < b->stops[n]; k++)
            b->cut[k] = 1;
    }
    b->ends[b->length] = b->count;
    return 0;
}

static Unit unit_of(const Block *b, int32_t number)
{
    const Traits *is = &b->known[number]->template->is;
    const int32_t ends_group = is->ends_group || (is->branch && b->machine->figures.branch_ends_group);
    return (Unit){number,      b->starts[number], b->stops[number], is->decoded, is->microcoded, is->slots,
                  is->complex, is->simple,        is->fusible,      is->branch,  ends_group,     NULL,
                  .constants = b->known[number]->constants, .long_constants = b->known[number]->long_constants};
}

/* Pairs fuse unless the jump starts a line. */
static int fuses(const Block *b, int32_t jump)
{
    const Template *t = b->known[jump]->template, *first = jump ? b->known[jump - 1]->template : NULL;
    const int32_t line = b->machine->figures.fusion_line_bytes;
    if (!first || !first->is.unit || t->is.jump < 0 || (line && (b->offset + b->starts[jump]) % line == 0))
        return 0;
    return first->jumps >> t->is.jump & 1 || first->is.fusing_flags & t->is.flags;
}

/* Whether a nop behind it takes nothing, in a loop: it is not fused otherwise. */
static int takes_nop(const Unit *unit) { return !unit->fused && !unit->branch && !unit->padded; }

static int make_units(Block *b)
{
    b->units = arena_take(b->arena, b->count, sizeof(Unit));
    if (!b->units)
        return NO_MEMORY;
    for (int32_t n = 0; n < b->count; n++) {
        if (!b->known[n]->template->is.unit)
            continue;
        if (fuses(b, n)) {
            Unit *first = &b->units[b->unit_count - 1];
            if (!b->pairs || !b->pairs[n - 1])
                return MALFORMED;
            first->fused = b->pairs[n - 1];
            first->end = b->stops[n];
            first->branch = 1;
            first->ends_group |= b->machine->figures.branch_ends_group;
            first->slots += b->known[n]->template->is.joined_slots;
            first->constants += b->known[n]->constants;
            first->long_constants += b->known[n]->long_constants;
            b->fused++;
        } else if (!b->unrolled && b->known[n]->template->is.nop && b->unit_count && takes_nop(&b->units[b->unit_count - 1])) {
            b->units[b->unit_count - 1].end = b->stops[n];
            b->units[b->unit_count - 1].padded = 1;
        } else {
            b->units[b->unit_count++] = unit_of(b, n);
        }
    }
    for (int32_t k = 0; k < b->unit_count; k++)
        b->complex_units += b->units[k].complex != 0;
    return 0;
}

static int32_t count_synchronisations(const Block *b)
{
    int32_t inserted = 0, ahead = 0;
    for (int32_t again = 0; again < 2; again++) /* what the execution before leaves behind counts */
        for (int32_t n = 0; n < b->count; n++) {
            const Template *t = b->known[n]->template;
            inserted += again && ahead && t->is.reads_stack;
            ahead = t->is.moves_stack || (ahead && !t->is.reads_stack && !t->is.writes_stack);
        }
    return inserted;
}

int see_front_end(Block *b)
{
    int failure = lay_out(b);
    if (!failure)
        failure = make_units(b);
    if (!failure && b->machine->figures.simulated)
        b->synchronisations = count_synchronisations(b);
    return failure;
}

int hit_by_erratum(const Block *b, const Unit *unit)
{
    const int32_t size = b->machine->figures.jcc_bytes;
    return size && unit->branch && (b->offset + unit->start) / size != (b->offset + unit->end) / size;
}

/* ---- predecoder ---- */

static int32_t greatest_common_divisor(int32_t a, int32_t b) { return b ? greatest_common_divisor(b, a % b) : a; }

int32_t executions(const Block *b)
{
    const int32_t size = b->machine->figures.predecode_bytes;
    return b->unrolled ? size / greatest_common_divisor(b->length, size) : 1;
}

/* Instructions that end before a position of unrolled code. */
static int32_t ends_before(const Block *b, int32_t position)
{
    return position / b->length * b->count + b->ends[position % b->length];
}

static void unrolled_work(const Block *b, int32_t *work, int32_t blocks)
{
    const int32_t size = b->machine->figures.predecode_bytes;
    int64_t start = (b->length - b->offset % size % b->length) % b->length;
    for (int32_t k = 0; k < blocks; k++, start = (start + size) % b->length) {
        const int32_t end = (int32_t)start + size;
        work[k] = ends_before(b, end) - ends_before(b, (int32_t)start) + b->cut[end % b->length];
    }
}

static void loop_work(const Block *b, int32_t *work, int32_t blocks)
{
    const int32_t size = b->machine->figures.predecode_bytes;
    int32_t bound = size - b->offset % size, before = 0;
    for (int32_t k = 0; k < blocks; k++, bound += size) {
        const int32_t end = bound < b->length ? bound : b->length;
        work[k] = b->ends[end] - before + b->cut[end];
        before = b->ends[end];
    }
}

/* Instructions with a length-changing prefix, by fetched block; unrolled code comes round to the first one. */
static void count_prefixed(const Block *b, int32_t *counts, int32_t blocks)
{
    const int32_t size = b->machine->figures.predecode_bytes;
    for (int32_t e = 0; e < executions(b); e++)
        for (int32_t n = 0; n < b->count; n++)
            if (b->known[n]->prefixed)
                counts[(b->offset % size + (int64_t)e * b->length + b->opcodes[n]) / size % blocks]++;
}

static int add_prefixes(const Block *b, int32_t *cycles, int32_t blocks)
{
    int32_t *counts = arena_take(b->arena, blocks, sizeof(int32_t));
    if (!counts)
        return NO_MEMORY;
    memset(counts, 0, sizeof(int32_t) * (size_t)blocks);
    count_prefixed(b, counts, blocks);
    int32_t before = cycles[blocks - 1];
    for (int32_t k = 0; k < blocks; k++) {
        const int32_t own = cycles[k];
        const int32_t more = b->machine->figures.prefix_cycles * counts[k] - (before - 1);
        if (counts[k] && more > 0)
            cycles[k] += more;
        before = own;
    }
    return 0;
}

int32_t fetch_cycles(const Block *b, int32_t **cycles)
{
    const Figures *f = &b->machine->figures;
    const int32_t size = f->predecode_bytes;
    const int32_t in_first = size - b->offset % size;
    const int32_t blocks = b->unrolled            ? b->length / greatest_common_divisor(b->length, size)
                           : in_first < b->length ? 1 + divided_up(b->length - in_first, size)
                                                  : 1;
    *cycles = arena_take(b->arena, blocks, sizeof(int32_t));
    if (!*cycles)
        return NO_MEMORY;
    if (b->unrolled)
        unrolled_work(b, *cycles, blocks);
    else
        loop_work(b, *cycles, blocks);
    for (int32_t k = 0; k < blocks; k++)
        (*cycles)[k] = (*cycles)[k] > f->predecode_width ? divided_up((*cycles)[k], f->predecode_width) : 1;
    if (b->prefixes && add_prefixes(b, *cycles, blocks))
        return NO_MEMORY;
    return blocks;
}

/* ---- the other bounds ---- */

static int32_t decoded_microops(const Unit *units, int32_t count)
{
    int32_t sum = 0;
    for (int32_t k = 0; k < count; k++)
        sum += units[k].decoded;
    return sum;
}

enum { STATES = 32 };

/* Algorithm 1 of Facile: cycles of the decoders per execution. */
static double decode_bound(const Block *b, const Unit *units, int32_t count)
{
    const int32_t last = b->machine->figures.decoders - 1;
    const int32_t barred = b->machine->figures.fusible_last ? -1 : last;
    int32_t began[STATES][STATES][2];
    memset(began, -1, sizeof began);
    int32_t decoder = last, available = 0;
    int64_t cycle = 0;
    for (int32_t execution = 0;; execution++)
        for (int32_t k = 0; k < count; k++) {
            const Unit *unit = &units[k];
            if (unit->complex) {
                decoder = 0;
                available = unit->simple;
            } else if (!available || (unit->fusible && decoder + 1 == barred)) {
                decoder = 0;
                available = last;
            } else {
                decoder++;
                available--;
            }
            if (unit->ends_group)
                available = 0;
            if (!k) {
                int32_t *begin = began[decoder % STATES][available % STATES];
                if (begin[0] >= 0)
                    return (double)(cycle - begin[1]) / (double)(execution - begin[0]);
                begin[0] = execution;
                begin[1] = (int32_t)cycle;
            }
            cycle += decoder == 0;
        }
}

static int line_of(const Block *b, int32_t position)
{
    return (b->offset + position) / b->machine->figures.dsb_line_bytes;
}

/* Whether the unit starts in a line that holds a byte of a branch of the erratum. */
static int is_barred(const Block *b, const Unit *unit)
{
    const int32_t line = line_of(b, unit->start);
    for (int32_t k = 0; k < b->unit_count; k++)
        if (hit_by_erratum(b, &b->units[k]) && line >= line_of(b, b->units[k].start) &&
            line <= line_of(b, b->units[k].end - 1))
            return 1;
    return 0;
}

static double decoded_stretch(const Block *b, Unit *stretch, int32_t count, const int32_t *cycles)
{
    const int32_t size = b->machine->figures.predecode_bytes, first = b->offset / size;
    int32_t fetched = 0;
    for (int32_t k = (b->offset + stretch[0].start) / size; k <= (b->offset + stretch[count - 1].end - 1) / size; k++)
        fetched += cycles[k - first];
    const int32_t ends = stretch[count - 1].ends_group;
    stretch[count - 1].ends_group = 1;
    const double decoded = decode_bound(b, stretch, count);
    stretch[count - 1].ends_group = ends;
    return fetched > decoded ? fetched : decoded;
}

/* A loop whose lines with branches of the erratum are decoded, the others fetched from the DSB. */
static int mixed_bound(Block *b, double *bound)
{
    int32_t *cycles;
    if (fetch_cycles(b, &cycles) < 0)
        return NO_MEMORY;
    *bound = 0.0;
    for (int32_t first = 0, end; first < b->unit_count; first = end) {
        const int barred = is_barred(b, &b->units[first]);
        for (end = first + 1; end < b->unit_count && is_barred(b, &b->units[end]) == barred;)
            end++;
        if (barred)
            *bound += decoded_stretch(b, &b->units[first], end - first, cycles);
        else
            *bound += divided_up(decoded_microops(&b->units[first], end - first), b->machine->figures.dsb_width);
    }
    return 0;
}

static double dsb_bound(const Block *b)
{
    const Figures *f = &b->machine->figures;
    const int32_t microops = decoded_microops(b->units, b->unit_count), branches = b->core.taken_branches;
    const double whole = (double)microops / f->dsb_width;
    if (f->dsb_ends && branches > 1)
        return whole > 1.0 / branches ? whole : 1.0 / branches;
    return f->dsb_ends && b->length < f->dsb_bytes ? divided_up(microops, f->dsb_width) : whole;
}

static double lsd_bound(const Block *b)
{
    int32_t microops = decoded_microops(b->units, b->unit_count);
    for (int32_t k = 0; k < b->unit_count; k++)
        microops += b->units[k].microcoded;
    const int32_t copies = microops < b->machine->copies_known ? b->machine->copies[microops] : 1;
    return (double)divided_up((int64_t)microops * copies, b->machine->figures.issue_width) / copies;
}

typedef struct { int32_t taken, entries, unlaminated, pass; int64_t groups; } Group;

static int same_group(const Group *a, const Group *b)
{
    return a->taken == b->taken && a->entries == b->entries && a->unlaminated == b->unlaminated;
}

static void issue_pass(const Block *b, Group *g)
{
    const int32_t width = b->machine->figures.issue_width;
    for (int32_t k = 0; k < b->core.entries; k++) {
        const Entry *entry = &b->entries[k];
        const int barred = g->unlaminated >= b->core.unlaminated_slots || g->entries >= b->core.unlaminated_first;
        const int splits = g->taken + entry->together > width && entry->together <= width;
        if (g->taken && entry->together && (barred || splits)) {
            g->taken = g->entries = g->unlaminated = 0;
            g->groups++;
        }
        const int32_t full = (g->taken + entry->slots) / width;
        g->taken = (g->taken + entry->slots) % width;
        g->groups += full;
        if (full)
            g->entries = g->unlaminated = 0;
        g->entries += g->taken > 0;
        g->unlaminated += entry->together > 0 && g->taken > 0;
    }
    g->pass++;
}

static int issue_bound(Block *b, double *bound)
{
    const int rounds = b->core.source == LSD && b->machine->figures.group_boundary;
    const int64_t width = b->machine->figures.issue_width;
    Group g = {0}, *begun = arena_take(b->arena, width * (width + 1) * (width + 1), sizeof(Group));
    if (!begun)
        return NO_MEMORY;
    for (int32_t known = 0;; issue_pass(b, &g)) {
        if (rounds && g.pass == b->core.copies && g.pass) {
            *bound = (double)(g.groups + (g.taken > 0)) / b->core.copies;
            return 0;
        }
        for (int32_t k = 0; !rounds && k < known; k++)
            if (same_group(&begun[k], &g)) {
                *bound = (double)(g.groups - begun[k].groups) / (g.pass - begun[k].pass);
                return 0;
            }
        if (!rounds)
            begun[known++] = g;
    }
}

/* A part that the block meets, or one that it does not and that was asked for. */
static void apply(Block *b, int applies, int component, double cycles)
{
    if (!applies && b->applies >> component & 1)
        return;
    *(applies ? &b->applies : &b->idle) |= 1u << component;
    b->components[component] = cycles;
}

static int decoding(Block *b, int applies)
{
    int32_t *cycles, sum = 0;
    const int32_t blocks = fetch_cycles(b, &cycles);
    if (blocks < 0)
        return NO_MEMORY;
    for (int32_t k = 0; k < blocks; k++)
        sum += cycles[k];
    apply(b, applies, PART_PREDECODE, (double)sum / executions(b));
    apply(b, applies, PART_DECODE, decode_bound(b, b->units, b->unit_count));
    return 0;
}

/* What the µops come through, and issue. */
static int bound_path(Block *b)
{
    double bound = 0.0;
    if (b->core.source == LSD) {
        apply(b, 1, PART_LSD, lsd_bound(b));
    } else if (b->core.source == DECODERS) {
        if (decoding(b, 1))
            return NO_MEMORY;
    } else if (b->core.barred_from == b->unit_count) {
        apply(b, 1, PART_DSB, dsb_bound(b));
    } else if (b->erratum) {
        if (mixed_bound(b, &bound))
            return NO_MEMORY;
        apply(b, 1, PART_DECODE, bound);
    }
    if (issue_bound(b, &bound))
        return NO_MEMORY;
    apply(b, 1, PART_ISSUE, bound);
    return 0;
}

int bound_front_end(Block *b)
{
    if (!b->unrolled)
        for (int32_t k = 0; k < b->unit_count; k++)
            b->erratum += hit_by_erratum(b, &b->units[k]);
    if (!b->unit_count || (b->machine->figures.fetches && bound_path(b)))
        return b->unit_count ? NO_MEMORY : 0;
    if (!b->all)
        return 0;
    if (!b->unrolled) {
        apply(b, 0, PART_DSB, dsb_bound(b));
        if (b->machine->figures.lsd)
            apply(b, 0, PART_LSD, lsd_bound(b));
    }
    return decoding(b, 0);
}

/* ---- Zen, and cores of whose front end no more than its width is known ---- */

int is_cached(const Block *b)
{
    return !b->unrolled && decoded_microops(b->units, b->unit_count) <= b->machine->figures.op_cache_entries;
}

int32_t code_lines(const Block *b)
{
    const int32_t line = b->machine->figures.code_line_bytes;
    return line ? (b->offset + b->length - 1) / line - b->offset / line + 1 : 0;
}

/* Cycles to deliver the units of a pass, in each as many macro-ops as go with their constants. */
static int32_t deliveries(const Block *b)
{
    const Core *c = &b->machine->core;
    const int32_t width = b->machine->figures.op_cache_width;
    int32_t cycles = 1, entries = 0, constants = 0, long_constants = 0;
    if (!c->constants_delivered[0])
        return divided_up(decoded_microops(b->units, b->unit_count), width);
    for (const Unit *unit = b->units; unit < b->units + b->unit_count; unit++) {
        const int32_t all = entries + unit->decoded, number = (all < width ? all : width) - 1;
        constants += unit->constants;
        long_constants += unit->long_constants;
        if (entries && (entries == width || constants > c->constants_delivered[number] || long_constants > c->long_delivered[number])) {
            cycles++;
            entries = 0;
            constants = unit->constants;
            long_constants = unit->long_constants;
        }
        for (entries += unit->decoded; entries > width; entries -= width) {
            cycles++;
            constants = long_constants = 0;
        }
    }
    return cycles;
}

/* Where lines of code count, a pass takes whole cycles, one for each line that it touches. */
static double delivered_by_op_cache(const Block *b)
{
    const Figures *f = &b->machine->figures;
    const int32_t lines = code_lines(b);
    if (!lines)
        return (double)decoded_microops(b->units, b->unit_count) / f->op_cache_width;
    const int32_t cycles = deliveries(b);
    return lines > cycles ? lines : cycles;
}

static void bound_delivery(Block *b, int applies, int from_cache)
{
    const Figures *f = &b->machine->figures;
    if (from_cache) {
        if (f->op_cache_width)
            apply(b, applies, PART_DSB, delivered_by_op_cache(b));
        return;
    }
    if (f->fetch_bytes)
        apply(b, applies, PART_PREDECODE, (double)b->length / f->fetch_bytes);
    apply(b, applies, PART_DECODE, decode_bound(b, b->units, b->unit_count));
}

/* The widths of fetch, decoders, op cache and dispatch (kernmodel.incore.front_end.op_cache). */
int bound_op_cache(Block *b)
{
    const Figures *f = &b->machine->figures;
    const int32_t most = b->machine->core.constants_dispatched;
    int64_t slots = 0, constants = 0;
    for (int32_t k = 0; k < b->unit_count; k++) {
        slots += b->units[k].slots;
        constants += b->units[k].constants;
    }
    double issue = (double)slots / f->issue_width;
    if (f->issue_instructions && issue < (double)b->unit_count / f->issue_instructions)
        issue = (double)b->unit_count / f->issue_instructions;
    if (most && issue < (double)constants / most)
        issue = (double)constants / most;
    apply(b, 1, PART_ISSUE, issue);
    if (!f->simulated) {
        b->core.copies = 1;
        b->core.source = IDEAL;
    }
    if (f->kind != KIND_OP_CACHE)
        return 0;
    const int cached = is_cached(b);
    if (!f->simulated)
        b->core.source = cached ? DSB : DECODERS;
    if (f->fetches)
        bound_delivery(b, 1, cached);
    if (b->all)
        bound_delivery(b, 0, 0);
    if (b->all && !b->unrolled)
        bound_delivery(b, 0, 1);
    return 0;
}
