/* One block on its way from instructions to what bounds it. */

#ifndef KERNMODEL_BLOCK_H
#define KERNMODEL_BLOCK_H

#include "program.h"
#include "templates.h"

enum {
    COMPONENTS = PART_PIPELINE + 1,
    FIGURE_NUMBERS = sizeof(Figures) / sizeof(int32_t),
    TIME_NUMBERS = sizeof(Times) / sizeof(double)
};

typedef struct {
    Figures figures;
    Times times;
    Core core;             /* what does not depend on the block */
    const int32_t *copies; /* of a loop in the LSD, by its µops */
    int32_t copies_known;
} Machine;

typedef struct { int32_t count; const Link *links; } Links;

/* An instruction or a macro-fused pair (kernmodel.incore.front_end.model.Unit). */
typedef struct {
    int32_t number, start, end, decoded, microcoded, slots, complex, simple, fusible, branch, ends_group;
    const InstructionUops *fused; /* the µops of a pair */
    int32_t padded; /* whether a nop behind it is a part of it */
    int32_t constants, long_constants;
} Unit;

/* An edge of the dependency graph, between values. */
typedef struct { int32_t source, target; double latency; int32_t passes; } Edge;

/* How much longer others wait for a result, adders and other units, and its domain of vectors. */
typedef struct { double to_adders, to_others; int32_t domain; } Later;

typedef struct {
    const Machine *machine;
    const Known *const *known;
    int32_t count, unrolled, offset, all, scope;
    const int32_t *places; /* where instructions start, NULL where each follows the one before */
    const InstructionUops **pairs; /* by instruction, the µops of it and the branch behind it, NULL where they do not fuse */
    const Access **accesses; /* by instruction, NULL where there is nothing to say */
    const double *split;   /* by instruction, the share of passes in which its access takes longer; NULL for none */
    Links links, simulated_links;
    Arena *arena;

    int32_t length, prefixes, synchronisations, complex_units, erratum;
    int32_t *starts, *stops, *opcodes; /* of instructions: first byte, the one behind the last, nominal opcode */
    int32_t *ends, *cut;       /* by position: instructions that end before it; whether it parts an instruction */
    Unit *units;
    int32_t unit_count, fused; /* `fused`: pairs */

    int32_t *unit_entries; /* queue entries of each unit */
    Core core;
    FetchUnit *fetch;
    Entry *entries;
    int32_t *first_microop;
    MicroOp *microops;
    Wait *waits;
    int32_t *schedule;

    int32_t vertices;
    int32_t *owners, *values; /* of each vertex: instruction, number of its value (-1: the stack engine's µop) */
    Edge *edges;
    int32_t edge_count;
    double *ready; /* of each vertex, cycles after the start of a pass if only what was there before counts */
    Later *later;  /* by instruction; NULL where all is as the rows say */
    const Edge *cycle; /* the slowest cycle */
    int32_t cycle_length, cycle_passes, through_memory;

    uint32_t applies; /* components that the block meets, as bits */
    uint32_t idle; /* others that have a bound */
    double components[COMPONENTS];
    double ports_alone, slow; /* what is in the place of ports: the larger of the bound and what was measured */
    int32_t binding_ports, binding_divider;
    int64_t simulated[SIMULATED_NUMBERS];
} Block;

/* Each step takes what those before it made; 0, NO_MEMORY, MALFORMED or BEYOND. */
int see_front_end(Block *b);
int bound_op_cache(Block *b);
int link_microops(Block *b);
int plan_fetch(Block *b);
int plan_op_cache_fetch(Block *b);
int bound_front_end(Block *b);
int bound_ports(Block *b);
int bound_dependencies(Block *b);

/* Cycles that each fetched block takes; their number, or negative. */
int32_t fetch_cycles(const Block *b, int32_t **cycles);

/* Number of executions after which unrolled code stands at the same place in the fetched blocks. */
int32_t executions(const Block *b);

/* Aligned lines of code that the block touches; 0 where the op cache does not deliver by them. */
int32_t code_lines(const Block *b);

/* Whether the op cache delivers the block. */
int is_cached(const Block *b);

/* Whether the JCC erratum concerns a unit. */
int hit_by_erratum(const Block *b, const Unit *unit);

/* Cycles that one instruction waits longer for the result of another. */
static inline double waits_longer(const Block *b, int32_t source, int32_t target)
{
    const Traits *to = &b->known[target]->template->is;
    if (!b->later)
        return 0.0;
    const Later *from = &b->later[source];
    const double cycles = to->adds || to->hands_on ? from->to_adders : from->to_others;
    return cycles + (to->domain && from->domain && from->domain != to->domain ? b->machine->times.between_domains : 0.0);
}

static inline int32_t divided_up(int64_t dividend, int32_t divisor) { return (int32_t)((dividend + divisor - 1) / divisor); }

#endif
