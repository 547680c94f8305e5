/* Throughput bounds of port usage: the compiled twin of kernmodel.incore.engine.ports.optimal_bound. */

#include "block.h"

enum { SETS = 64, UNIONS = 4096 };

static const double tiny_share = 1e-9;

/* Port sets with the cycles of the µops that can go nowhere else. */
typedef struct { int32_t count, mask[SETS]; double cycles[SETS]; } Confined;

static int add_use(Confined *c, const Use *use, double split)
{
    const double cycles = use->cycles + split * use->split;
    if (!use->mask || cycles == 0.0)
        return 0;
    for (int32_t k = 0; k < c->count; k++)
        if (c->mask[k] == use->mask) {
            c->cycles[k] += cycles;
            return 0;
        }
    if (c->count == SETS)
        return BEYOND;
    c->mask[c->count] = use->mask;
    c->cycles[c->count++] = cycles;
    return 0;
}

static int32_t find_union(const int32_t *unions, int32_t count, int32_t mask)
{
    for (int32_t k = 0; k < count; k++)
        if (unions[k] == mask)
            return 1;
    return 0;
}

/* The ports that are reached from a port set over others that share ports. */
static int32_t connected(const Confined *c, int32_t mask)
{
    for (int32_t before = 0; before != mask;) {
        before = mask;
        for (int32_t k = 0; k < c->count; k++)
            if (c->mask[k] & mask)
                mask |= c->mask[k];
    }
    return mask;
}

/* All unions of port sets that are connected. */
static int32_t make_unions(const Confined *c, int32_t *unions)
{
    int32_t count = 0;
    for (int32_t k = 0; k < c->count; k++) {
        const int32_t before = count, reach = connected(c, c->mask[k]);
        for (int32_t u = -1; u < before; u++) {
            const int32_t joined = u < 0 ? c->mask[k] : unions[u] & reach ? unions[u] | c->mask[k] : 0;
            if (!joined || find_union(unions, count, joined))
                continue;
            if (count == UNIONS)
                return BEYOND;
            unions[count++] = joined;
        }
    }
    return count;
}

static int densest(const Confined *c, double *bound, int32_t *binding)
{
    int32_t unions[UNIONS];
    const int32_t count = make_unions(c, unions);
    *bound = 0.0;
    *binding = 0;
    for (int32_t u = 0; u < count; u++) {
        double confined = 0.0;
        for (int32_t k = 0; k < c->count; k++)
            if (!(c->mask[k] & ~unions[u]))
                confined += c->cycles[k];
        const double density = confined / __builtin_popcount((unsigned)unions[u]);
        if (density > *bound + tiny_share) {
            *bound = density;
            *binding = unions[u];
        } else if (density > *bound - tiny_share) {
            *binding |= unions[u];
        }
    }
    return count < 0 ? count : 0;
}

static int add_uses(Confined *ports, Confined *dividers, int32_t *divides, const Uses *uses, double split)
{
    for (int32_t k = 0; k < uses->count; k++) {
        *divides |= uses->uses[k].divides;
        if (add_use(uses->uses[k].divides ? dividers : ports, &uses->uses[k], split))
            return BEYOND;
    }
    return 0;
}

int bound_ports(Block *b)
{
    Confined ports = {.count = 0}, dividers = {.count = 0};
    int32_t divides = 0;
    static const Uses none = {0, NULL};
    const Uses **uses = arena_take(b->arena, b->count, sizeof *uses);
    if (!uses)
        return NO_MEMORY;
    for (int32_t n = 0; n < b->count; n++)
        uses[n] = &b->known[n]->template->uses;
    for (int32_t k = 0; k < b->unit_count; k++)
        if (b->units[k].fused) {
            uses[b->units[k].number] = &b->units[k].fused->uses;
            if (b->units[k].fused->keeps_ports)
                uses[b->units[k].number + 1] = &none;
        }
    b->slow = 0.0;
    for (int32_t n = 0; n < b->count; n++) {
        const Template *t = b->known[n]->template;
        if (add_uses(&ports, &dividers, &divides, uses[n], b->split ? b->split[n] : 0.0))
            return BEYOND;
        if (t->is.measured)
            b->slow += t->takes.throughput;
    }
    if (densest(&ports, &b->ports_alone, &b->binding_ports))
        return BEYOND;
    b->applies |= 1u << PART_PORTS;
    b->components[PART_PORTS] = b->slow > b->ports_alone ? b->slow : b->ports_alone;
    if (divides) {
        if (densest(&dividers, &b->components[PART_DIVIDER], &b->binding_divider))
            return BEYOND;
        b->applies |= 1u << PART_DIVIDER;
    }
    return 0;
}
