/* From instructions to the input of the simulation: the compiled twin of kernmodel.incore.engine.linking and fetch,
   which say what is modelled and why. */

#include <stdlib.h>
#include <string.h>

#include "block.h"

enum { FARTHEST = 32, NOTHING = -1, STACK_ENGINE = -1 };

/* What readers of a resource wait for: the µops of a result, counted from a first one. */
typedef struct { int32_t first, count; const Inside *waits; } Latest;

/* `target` waits for `source`; `third`: for the third vector that it reads, as of `Wait`. */
typedef struct { int32_t target, source, passes, cycles, third; } Join;

typedef struct { int32_t target, resource, cycles, third; } Pending;

/* The µops of a unit in the block. */
typedef struct { int32_t first, instruction; const InstructionUops *uops; } Placed;

typedef struct { int32_t owner; const Uop *uop; int32_t alone; } Placing;

typedef struct {
    Block *b;
    int32_t uops, joins, pendings, slots, entries, ordered, placed, ahead, joins_room;
    Placing *uop;
    Join *join;
    Pending *pending;
    Latest *latest; /* by resource */
    int32_t *order; /* µops in the order of issue */
    Placed *place;
    Uop synchronising;
    Outside stack_pointer;
    Inside synchronised;
} Linker;

/* ---- room ---- */

static const InstructionUops *uops_at(const Block *b, int32_t unit)
{
    return b->units[unit].fused ? b->units[unit].fused : b->known[b->units[unit].number]->uops;
}

/* Most µops that results of one instruction give a reader to wait for. */
static int32_t widest_result(const InstructionUops *p)
{
    int32_t widest = 1;
    for (int32_t k = 0; k < p->results; k++)
        if (p->result[k].count > widest)
            widest = p->result[k].count;
    return widest;
}

typedef struct { int64_t uops, reads, inside, slots; int32_t widest, resources; } Sizes;

static void measure_uops(const InstructionUops *p, Sizes *sizes)
{
    sizes->uops += p->uops + 1;
    sizes->slots += p->slots + 1;
    sizes->reads++;
    for (int32_t k = 0; k < p->uops; k++) {
        sizes->reads += p->uop[k].reads;
        sizes->inside += p->uop[k].inside;
    }
    const int32_t widest = widest_result(p);
    if (widest > sizes->widest)
        sizes->widest = widest;
}

static int measure(const Block *b, Sizes *sizes)
{
    memset(sizes, 0, sizeof *sizes);
    sizes->widest = sizes->resources = 1;
    for (int32_t k = 0; k < b->unit_count; k++) {
        const InstructionUops *p = uops_at(b, k);
        const Known *known = b->known[b->units[k].number];
        if (!p || !p->slots || p->registers > known->template->is.registers)
            return MALFORMED;
        measure_uops(p, sizes);
        for (int32_t r = 0; r < p->registers; r++)
            if (known->registers[r] >= sizes->resources)
                sizes->resources = known->registers[r] + 1;
    }
    return sizes->uops * sizes->widest > INT32_MAX / 8 || sizes->slots > INT32_MAX / 8 ? BEYOND : 0;
}

static int make_room(Linker *l, const Sizes *sizes)
{
    Block *b = l->b;
    l->joins_room = (int32_t)(sizes->reads * sizes->widest + sizes->inside);
    l->uop = arena_take(b->arena, sizes->uops, sizeof(Placing));
    l->join = arena_take(b->arena, l->joins_room, sizeof(Join));
    l->pending = arena_take(b->arena, sizes->reads, sizeof(Pending));
    l->latest = arena_take(b->arena, sizes->resources, sizeof(Latest));
    l->order = arena_take(b->arena, sizes->uops, sizeof(int32_t));
    l->place = arena_take(b->arena, b->unit_count, sizeof(Placed));
    b->entries = arena_take(b->arena, sizes->slots, sizeof(Entry));
    b->first_microop = arena_take(b->arena, sizes->slots + 1, sizeof(int32_t));
    b->unit_entries = arena_take(b->arena, b->unit_count, sizeof(int32_t));
    if (!l->uop || !l->join || !l->pending || !l->latest || !l->order || !l->place || !b->entries ||
        !b->first_microop || !b->unit_entries)
        return NO_MEMORY;
    for (int32_t r = 0; r < sizes->resources; r++)
        l->latest[r].first = NOTHING;
    b->first_microop[0] = 0;
    return 0;
}

/* ---- µops and what they wait for ---- */

/* Where a third vector comes from that this µop gives. */
static int32_t third_of(const Uop *uop)
{
    return uop->is.access == LOAD ? LOADED : COMPUTED;
}

static void wait_for(Linker *l, const Pending *p, const Latest *found, int32_t passes)
{
    for (int32_t k = 0; k < found->count; k++) {
        const Inside *w = &found->waits[k];
        const int32_t source = found->first + w->uop;
        const int32_t later = (int32_t)waits_longer(l->b, l->uop[source].owner, l->uop[p->target].owner);
        const int32_t third = p->third ? third_of(l->uop[source].uop) : 0;
        l->join[l->joins++] = (Join){p->target, source, passes, w->cycles + p->cycles + later, third};
    }
}

static int32_t add_uop(Linker *l, int32_t owner, const Uop *uop, const int32_t *registers)
{
    const int32_t number = l->uops++;
    l->uop[number] = (Placing){owner, uop, uop->is.alone};
    for (int32_t k = 0; k < uop->reads; k++) {
        const int32_t resource = registers[uop->read[k].slot];
        if (resource < 0)
            continue;
        const Pending own = {number, resource, uop->read[k].cycles, uop->is.third == k + 1};
        if (l->latest[resource].first == NOTHING)
            l->pending[l->pendings++] = own;
        else
            wait_for(l, &own, &l->latest[resource], 0);
    }
    return number;
}

/* Insert the stack engine's µop where rsp, which is resource 0, is read while the engine is ahead of it. */
static int synchronise(Linker *l, int32_t owner)
{
    static const int32_t stack_pointer[] = {0};
    const Template *t = l->b->known[owner]->template;
    if (!l->b->machine->figures.synchronises)
        return 0;
    const int needed = l->ahead && t->is.reads_stack;
    if (needed) {
        const int32_t number = add_uop(l, owner, &l->synchronising, stack_pointer);
        l->latest[0] = (Latest){number, 1, &l->synchronised};
        l->order[l->ordered++] = number;
    }
    l->ahead = t->is.moves_stack || (l->ahead && !t->is.reads_stack && !t->is.writes_stack);
    return needed;
}

static void add_slot(Linker *l, int32_t microops)
{
    l->b->first_microop[l->slots + 1] = l->b->first_microop[l->slots] + microops;
    l->slots++;
}

/* Slots and queue entries; the stack engine's µop rides with the first entry. */
static void add_slots(Linker *l, int32_t place, int32_t first, const InstructionUops *p, int synchronised)
{
    const Unit *unit = &l->b->units[place];
    const int64_t entries = (int64_t)unit->decoded + unit->microcoded;
    if (synchronised)
        add_slot(l, 1);
    for (int32_t k = 0; k < p->slots; k++) {
        for (int32_t m = p->slot_first[k]; m < p->slot_first[k + 1]; m++)
            l->order[l->ordered++] = first + p->ordered[m];
        add_slot(l, p->slot_first[k + 1] - p->slot_first[k]);
    }
    const int32_t count = entries > p->slots ? p->slots : entries > 1 ? (int32_t)entries : 1;
    const int whole_at_once = l->b->machine->figures.whole_instructions;
    for (int32_t k = 0; k < count; k++) {
        const int32_t own = p->slots / count + (k < p->slots % count), rides = synchronised && !k;
        const int32_t whole = whole_at_once ? (k ? 0 : p->slots) : own;
        l->b->entries[l->entries++] = (Entry){own + rides, whole > 1 && !rides ? whole : 0, k ? 0 : unit->constants};
    }
    l->b->unit_entries[place] = count;
}

static void add_unit(Linker *l, int32_t place)
{
    const int32_t owner = l->b->units[place].number;
    const InstructionUops *p = uops_at(l->b, place);
    const int32_t *registers = l->b->known[owner]->registers;
    const int synchronised = synchronise(l, owner);
    const int32_t first = l->uops;
    for (int32_t k = 0; k < p->uops; k++) {
        const Uop *uop = &p->uop[k];
        const int32_t number = add_uop(l, owner, uop, registers);
        for (int32_t i = 0; i < uop->inside; i++) {
            const int32_t third = uop->is.third == uop->reads + i + 1 ? third_of(&p->uop[uop->in[i].uop]) : 0;
            l->join[l->joins++] = (Join){number, first + uop->in[i].uop, 0, uop->in[i].cycles, third};
        }
    }
    for (int32_t k = 0; k < p->results; k++) {
        const int32_t resource = registers[p->result[k].slot];
        if (resource >= 0)
            l->latest[resource] = (Latest){first, p->result[k].count, p->result[k].waits};
    }
    l->place[l->placed++] = (Placed){first, owner, p};
    add_slots(l, place, first, p, synchronised);
}

static int is_ahead_at_end(const Block *b)
{
    int ahead = 0;
    for (int32_t k = 0; k < b->unit_count; k++) {
        const Template *t = b->known[b->units[k].number]->template;
        ahead = t->is.moves_stack || (ahead && !t->is.reads_stack && !t->is.writes_stack);
    }
    return ahead;
}

static void join_passes(Linker *l)
{
    for (int32_t k = 0; k < l->pendings; k++) {
        const Pending *p = &l->pending[k];
        if (l->latest[p->resource].first != NOTHING)
            wait_for(l, p, &l->latest[p->resource], 1);
    }
}

/* ---- addresses that come straight from a load ---- */

enum { STRAIGHT = 1, WAITS = 2, CROOKED = 4 };

/* Moves that wait for nothing but straight ones hand these on; whether there was a new one. */
static int spread(const Linker *l, uint8_t *marks)
{
    int more = 0;
    for (int32_t k = 0; k < l->uops; k++)
        marks[k] &= STRAIGHT;
    for (int32_t k = 0; k < l->joins; k++)
        marks[l->join[k].target] |= marks[l->join[k].source] & STRAIGHT ? WAITS : WAITS | CROOKED;
    for (int32_t k = 0; k < l->uops; k++)
        if (l->uop[k].uop->is.move && marks[k] == WAITS) {
            marks[k] = STRAIGHT;
            more = 1;
        }
    return more;
}

static int chase_pointers(Linker *l)
{
    const int32_t saved = l->b->machine->figures.pointer_saving;
    int32_t straight = 0, chaseable = 0;
    for (int32_t k = 0; k < l->placed; k++) {
        straight |= l->place[k].uops->pointer && l->place[k].uops->loads;
        chaseable |= l->place[k].uops->chaseable;
    }
    if (!saved || !straight || !chaseable)
        return 0;
    uint8_t *marks = arena_take(l->b->arena, 2 * (int64_t)l->uops, 1), *chases = marks + l->uops;
    if (!marks)
        return NO_MEMORY;
    memset(marks, 0, 2 * (size_t)l->uops);
    for (int32_t k = 0; k < l->placed; k++)
        for (int32_t n = 0; n < l->place[k].uops->loads; n++) {
            const int32_t load = l->place[k].first + l->place[k].uops->load[n].uop;
            marks[load] |= l->place[k].uops->pointer ? STRAIGHT : 0;
            chases[load] |= l->place[k].uops->chaseable != 0;
        }
    while (spread(l, marks))
        ;
    for (int32_t k = 0; k < l->joins; k++)
        if (chases[l->join[k].target] && marks[l->join[k].source] & STRAIGHT)
            l->join[k].cycles -= saved;
    return 0;
}

/* ---- store-to-load forwarding ---- */

static const Placed *placed_at(const Linker *l, int32_t instruction)
{
    int32_t low = 0, high = l->placed;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (l->place[middle].instruction < instruction)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->placed && l->place[low].instruction == instruction ? &l->place[low] : NULL;
}

static const UopLoad *load_at(const Placed *placed, int32_t place)
{
    const UopLoad *found = NULL;
    for (int32_t k = 0; placed && k < placed->uops->loads; k++)
        if (placed->uops->load[k].place == place)
            found = &placed->uops->load[k];
    return found;
}

static const UopStore *store_at(const Placed *placed, int32_t place)
{
    const UopStore *found = NULL;
    for (int32_t k = 0; placed && k < placed->uops->stores; k++)
        if (placed->uops->store[k].place == place)
            found = &placed->uops->store[k];
    return found;
}

/* Room for as many joins again as a link may add. */
static int grow_joins(Linker *l, int64_t more)
{
    if (l->joins + more <= l->joins_room)
        return 0;
    const int64_t room = 2 * (l->joins + more);
    Join *join = room > INT32_MAX / 8 ? NULL : arena_take(l->b->arena, room, sizeof(Join));
    if (!join)
        return NO_MEMORY;
    memcpy(join, l->join, sizeof(Join) * (size_t)l->joins);
    l->join = join;
    l->joins_room = (int32_t)room;
    return 0;
}

/* Let what waits for a load wait for the store that feeds it, too; `own` are the joins without those of links. */
static int forward(Linker *l, const Link *link, int32_t own)
{
    const Figures *f = &l->b->machine->figures;
    const Placed *loading = placed_at(l, link->load), *storing = placed_at(l, link->store);
    const UopLoad *load = load_at(loading, link->load_place);
    const UopStore *store = store_at(storing, link->store_place);
    if (!load || !store || link->passes > FARTHEST)
        return 0;
    const int32_t number = loading->first + load->uop;
    if (!link->whole && f->blocked_loads && link->cycles < 0) {
        l->uop[number].alone = f->blocked_load * TICKS;
        return 0;
    }
    if (grow_joins(l, 2 * (int64_t)own))
        return NO_MEMORY;
    for (int32_t k = 0; k < own; k++) {
        const Join *wait = &l->join[k];
        if (wait->source != number)
            continue;
        const int32_t cycles = store->forward + (link->cycles < 0 ? 0 : link->cycles);
        const int32_t passes = wait->passes + link->passes, data = cycles - load->latency;
        const int32_t later = f->forward_latency + f->forward_address - load->latency;
        l->join[l->joins++] = (Join){wait->target, storing->first + store->data, passes, wait->cycles + data, wait->third};
        if (store->address >= 0 && f->store_address && link->cycles < 0) {
            const int32_t address = storing->first + store->address;
            l->join[l->joins++] = (Join){wait->target, address, passes, wait->cycles + later, wait->third};
        }
    }
    return 0;
}

/* ---- the program ---- */

static int before(const Join *a, const Join *b)
{
    if (a->source != b->source)
        return a->source < b->source;
    if (a->passes != b->passes)
        return a->passes < b->passes;
    return a->cycles != b->cycles ? a->cycles < b->cycles : a->third < b->third;
}

static int compare_joins(const void *a, const void *b)
{
    return before(a, b) ? -1 : before(b, a);
}

static void sort_joins(Join *joins, int32_t count)
{
    if (count > 32) {
        qsort(joins, (size_t)count, sizeof(Join), compare_joins);
        return;
    }
    for (int32_t k = 1; k < count; k++) {
        const Join own = joins[k];
        int32_t place = k;
        for (; place && before(&own, &joins[place - 1]); place--)
            joins[place] = joins[place - 1];
        joins[place] = own;
    }
}

/* Put the joins in the order of issue of their targets, with the numbers that µops have there. */
static Join *by_target(const Linker *l, int32_t *first)
{
    Join *sorted = arena_take(l->b->arena, l->joins, sizeof(Join));
    int32_t *place = arena_take(l->b->arena, l->uops, sizeof(int32_t));
    if (!sorted || !place)
        return NULL;
    for (int32_t k = 0; k < l->uops; k++)
        place[l->order[k]] = k;
    memset(first, 0, sizeof(int32_t) * (size_t)(l->uops + 2));
    for (int32_t k = 0; k < l->joins; k++)
        first[place[l->join[k].target] + 2]++;
    for (int32_t k = 0; k < l->uops; k++)
        first[k + 2] += first[k + 1];
    for (int32_t k = 0; k < l->joins; k++) {
        const Join *own = &l->join[k];
        const int32_t target = place[own->target];
        sorted[first[target + 1]++] = (Join){target, place[own->source], own->passes, own->cycles, own->third};
    }
    return sorted;
}

/* The waits of a µop in order, none twice. */
static void add_waits(Block *b, Join *joins, int32_t count)
{
    sort_joins(joins, count);
    for (int32_t k = 0; k < count; k++) {
        if (k && !before(&joins[k - 1], &joins[k]))
            continue;
        b->waits[b->core.waits++] = (Wait){joins[k].source, joins[k].passes, joins[k].cycles, joins[k].third};
        if (joins[k].passes > b->core.farthest)
            b->core.farthest = joins[k].passes;
        if (joins[k].cycles > b->core.longest || b->core.waits == 1)
            b->core.longest = joins[k].cycles;
    }
}

/* What the addresses of an instruction mean for the data path of its loads, or of its stores. */
static void place_access(MicroOp *m, int32_t kind, const Access *own)
{
    const int stores = kind == STORE;
    m->slow_low = stores ? own->store_low : own->load_low;
    m->slow_high = stores ? own->store_high : own->load_high;
    if (stores && own->single)
        m->ports &= -m->ports;
    if (!stores) {
        m->place = own->place;
        m->stride = own->stride;
        m->size = own->size;
        m->more_low = own->more_low;
        m->more_high = own->more_high;
    }
}

static int write_microops(Linker *l)
{
    Block *b = l->b;
    int32_t *first = arena_take(b->arena, (int64_t)l->uops + 2, sizeof(int32_t));
    b->microops = arena_take(b->arena, (int64_t)l->uops + 1, sizeof(MicroOp));
    b->waits = arena_take(b->arena, l->joins, sizeof(Wait));
    Join *joins = first && b->microops && b->waits ? by_target(l, first) : NULL;
    if (!joins)
        return NO_MEMORY;
    b->core.waits = b->core.farthest = b->core.longest = 0;
    for (int32_t k = 0; k < l->uops; k++) {
        const Placing *own = &l->uop[l->order[k]];
        const UopTraits *is = &own->uop->is;
        const int32_t ported = b->scope != WITHOUT_PORTS;
        MicroOp *m = &b->microops[k];
        *m = (MicroOp){ported ? is->ports : 0, is->latency,   is->divider, ported ? is->data : 0,
                       ported ? own->alone : 0, b->core.waits, is->scheduler, .registers = is->vectors,
                       .third = is->third > 0, .paths = is->paths, .load = is->access == LOAD};
        if (ported && is->access && b->accesses && b->accesses[own->owner])
            place_access(m, is->access, b->accesses[own->owner]);
        if (b->scope != WITHOUT_WAITS)
            add_waits(b, joins + first[k], first[k + 1] - first[k]);
    }
    b->microops[l->uops] = (MicroOp){.first_wait = b->core.waits};
    b->core.microops = l->uops;
    b->core.slots = l->slots;
    b->core.entries = l->entries;
    return 0;
}

int link_microops(Block *b)
{
    const Figures *f = &b->machine->figures;
    Linker l = {.b = b, .stack_pointer = {0, 0}, .synchronised = {0, f->synchronise_latency}};
    l.synchronising = (Uop){.is = {.ports = f->synchronise_ports, .latency = f->synchronise_latency},
                             .reads = 1,
                             .read = &l.stack_pointer};
    Sizes sizes;
    int failure = measure(b, &sizes);
    if (failure || (failure = make_room(&l, &sizes)))
        return failure;
    l.ahead = f->synchronises && is_ahead_at_end(b);
    for (int32_t k = 0; k < b->unit_count; k++)
        add_unit(&l, k);
    join_passes(&l);
    if (chase_pointers(&l))
        return NO_MEMORY;
    const int32_t own = l.joins;
    for (int32_t k = 0; k < b->simulated_links.count; k++)
        if (forward(&l, &b->simulated_links.links[k], own))
            return NO_MEMORY;
    return write_microops(&l);
}

/* ---- fetch ---- */

/* Whether a unit cannot be held by the DSB: its line of code is of too many lines there, or has a branch of the
   erratum. */
static int is_kept_out(const Block *b, const int32_t *lines, int32_t place)
{
    const Figures *f = &b->machine->figures;
    const int32_t line = (b->offset + b->units[place].start) / f->dsb_line_bytes;
    for (int32_t k = 0; k < b->unit_count; k++) {
        const Unit *unit = &b->units[k];
        const int32_t block = (b->offset + unit->start) / f->dsb_bytes;
        if (block * f->dsb_bytes / f->dsb_line_bytes == line && lines[k] > f->dsb_block_lines)
            return 1;
        if ((b->offset + unit->start) / f->dsb_line_bytes == line && hit_by_erratum(b, unit))
            return 1;
    }
    return 0;
}

/* The units with their DSB lines; `lines`: how many lines a unit's aligned block has with it. */
static void place_units(Block *b, int32_t *lines)
{
    const Figures *f = &b->machine->figures;
    int32_t line = -1, used = 0, previous = -1, in_block = 0;
    for (int32_t k = 0; k < b->unit_count; k++) {
        const Unit *unit = &b->units[k];
        const int32_t total = b->unit_entries[k], block = (b->offset + unit->start) / f->dsb_bytes;
        const int32_t decoded = unit->decoded < total ? unit->decoded : total, wide = b->known[unit->number]->wide;
        if (block != previous || used + decoded + wide > f->dsb_line_microops || unit->microcoded) {
            in_block = block == previous ? in_block + 1 : 1;
            line++;
            used = 0;
            previous = block;
        }
        lines[k] = in_block;
        used += decoded + wide;
        const int32_t beside = f->decoders - 1;
        const int32_t simple = unit->complex && unit->simple < beside ? unit->simple : beside;
        b->fetch[k] = (FetchUnit){total,         decoded, unit->complex, simple, unit->fusible, unit->ends_group || unit->branch,
                                  block, line, wide};
    }
}

static int32_t first_kept_out(const Block *b, const int32_t *lines)
{
    int suspicious = 0;
    for (int32_t k = 0; k < b->unit_count && !suspicious; k++)
        suspicious = lines[k] > b->machine->figures.dsb_block_lines || hit_by_erratum(b, &b->units[k]);
    for (int32_t k = 0; suspicious && k < b->unit_count; k++)
        if (is_kept_out(b, lines, k))
            return k;
    return b->unit_count;
}

static int replays_from_lsd(const Block *b)
{
    int64_t decoded = 0;
    for (int32_t k = 0; k < b->unit_count; k++) {
        decoded += b->units[k].decoded;
        if (b->units[k].microcoded)
            return 0;
    }
    for (int32_t n = 0; n < b->count; n++)
        if (b->known[n]->template->is.bars_lsd)
            return 0;
    return b->machine->figures.lsd && decoded <= b->machine->figures.idq_uops;
}

static int32_t source_of(const Block *b)
{
    if (!b->machine->figures.fetches)
        return IDEAL;
    if (b->unrolled || b->core.barred_from == 0)
        return DECODERS;
    return b->core.barred_from == b->unit_count && replays_from_lsd(b) ? LSD : DSB;
}

/* Units complete with the last byte of each instruction from a first one on, by fetched block. */
typedef struct { int32_t *first, *done; } Leaving;

/* Whether a unit is complete with an instruction: its own, or the branch that it is fused with. */
static void mark_complete(const Block *b, uint8_t *complete)
{
    memset(complete, 0, (size_t)b->count);
    for (int32_t k = 0; k < b->unit_count; k++) {
        const Unit *unit = &b->units[k];
        const int pair = unit->fused != NULL;
        complete[unit->number + pair] = 1;
    }
}

static int32_t fetched_block(const Block *b, int32_t execution, int32_t instruction, int32_t blocks)
{
    const int32_t size = b->machine->figures.predecode_bytes;
    const int64_t end = b->offset + (int64_t)execution * b->length + b->stops[instruction];
    return (int32_t)((end - 1) / size - b->offset / size) % blocks;
}

/* Unrolled code comes round to the first fetched block, but keeps the order of executions. */
static int sort_leaving(const Block *b, int32_t begin, int32_t blocks, Leaving *leaving)
{
    const int32_t times = executions(b);
    const int64_t all = (int64_t)times * (b->count - begin);
    uint8_t *complete = arena_take(b->arena, b->count, 1);
    leaving->first = arena_take(b->arena, (int64_t)blocks + 2, sizeof(int32_t));
    leaving->done = arena_take(b->arena, all, sizeof(int32_t));
    if (!complete || !leaving->first || !leaving->done)
        return NO_MEMORY;
    mark_complete(b, complete);
    memset(leaving->first, 0, sizeof(int32_t) * (size_t)(blocks + 2));
    for (int32_t e = 0; e < times; e++)
        for (int32_t n = begin; n < b->count; n++)
            leaving->first[fetched_block(b, e, n, blocks) + 2]++;
    for (int32_t k = 0; k < blocks; k++)
        leaving->first[k + 2] += leaving->first[k + 1];
    for (int32_t e = 0; e < times; e++)
        for (int32_t n = begin; n < b->count; n++)
            leaving->done[leaving->first[fetched_block(b, e, n, blocks) + 1]++] = complete[n];
    return 0;
}

static void schedule_block(Block *b, const Leaving *leaving, int32_t number, int32_t cycles)
{
    const int32_t width = b->machine->figures.predecode_width;
    const int32_t first = leaving->first[number], end = leaving->first[number + 1];
    const int32_t groups = end > first ? divided_up(end - first, width) : 1;
    for (int32_t k = groups; k < cycles; k++)
        b->schedule[b->core.schedule++] = 0;
    for (int32_t k = 0; k < groups; k++) {
        int32_t sum = 0;
        for (int32_t n = first + k * width; n < end && n < first + (k + 1) * width; n++)
            sum += leaving->done[n];
        b->schedule[b->core.schedule++] = sum;
    }
}

/* Units that leave the predecoder, cycle by cycle, from the first that the DSB does not hold to the end. */
static int make_schedule(Block *b)
{
    const int32_t size = b->machine->figures.predecode_bytes, from = b->core.barred_from;
    const int32_t begin = from ? b->units[from].number : 0, skipped = from ? b->units[from].start : 0;
    int32_t *cycles;
    int64_t room = 0;
    Leaving leaving;
    const int32_t blocks = fetch_cycles(b, &cycles);
    if (blocks < 0 || sort_leaving(b, begin, blocks, &leaving))
        return NO_MEMORY;
    const int32_t first = (b->offset + skipped) / size - b->offset / size;
    for (int32_t k = 0; k < blocks; k++)
        room += cycles[k] + leaving.first[k + 1] - leaving.first[k] + 1;
    b->schedule = arena_take(b->arena, room, sizeof(int32_t));
    if (!b->schedule)
        return NO_MEMORY;
    b->core.schedule = 0;
    for (int32_t k = first; k < blocks; k++)
        schedule_block(b, &leaving, k, cycles[k]);
    return 0;
}

int plan_fetch(Block *b)
{
    const Figures *f = &b->machine->figures;
    int32_t *lines = arena_take(b->arena, b->unit_count, sizeof(int32_t));
    b->fetch = arena_take(b->arena, b->unit_count, sizeof(FetchUnit));
    b->schedule = arena_take(b->arena, 1, sizeof(int32_t));
    if (!lines || !b->fetch || !b->schedule)
        return NO_MEMORY;
    place_units(b, lines);
    b->core.barred_from = first_kept_out(b, lines);
    if (b->unrolled || (b->core.barred_from < b->unit_count && !f->partial_erratum))
        b->core.barred_from = 0;
    b->core.source = source_of(b);
    b->core.repeats = b->core.barred_from == 0;
    b->core.copies = b->core.entries < b->machine->copies_known ? b->machine->copies[b->core.entries] : 1;
    b->core.group_boundary = f->group_boundary && (b->core.source == LSD || f->dsb_ends);
    b->core.units = b->unit_count;
    b->core.schedule = 1;
    b->schedule[0] = 0;
    const int decodes = b->core.source == DSB || b->core.source == DECODERS;
    return decodes && b->core.barred_from < b->unit_count ? make_schedule(b) : 0;
}

/* Code from the op cache, or from decoders that are all alike. */
int plan_op_cache_fetch(Block *b)
{
    const Figures *f = &b->machine->figures;
    const int32_t line = f->code_line_bytes;
    b->fetch = arena_take(b->arena, b->unit_count, sizeof(FetchUnit));
    b->schedule = arena_take(b->arena, 1, sizeof(int32_t));
    if (!b->fetch || !b->schedule)
        return NO_MEMORY;
    const int cached = is_cached(b);
    const int32_t width = f->fetches ? cached ? f->op_cache_width : f->decoders : 0;
    b->core.line_fetch = ON | (cached && line && width ? PASSES | LINES : 0);
    b->core.dsb_width = width ? width : 2 * f->issue_width; /* more than is dispatched */
    b->core.source = cached ? DSB : DECODERS;
    for (int32_t k = 0; k < b->unit_count; k++) {
        const Unit *unit = &b->units[k];
        const int32_t first = line ? (b->offset + unit->start) / line : 0;
        const int32_t last = line ? (b->offset + unit->end - 1) / line : 0;
        b->fetch[k] = (FetchUnit){b->unit_entries[k], b->unit_entries[k], 0, 0, 0, 0, first, last, 0,
                                  .constants = unit->constants, .long_constants = unit->long_constants};
    }
    b->core.units = b->core.barred_from = b->unit_count;
    b->core.copies = b->core.schedule = 1;
    b->schedule[0] = 0;
    return 0;
}
