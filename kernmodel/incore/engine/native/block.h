/* One block on its way from instructions to what bounds it. */

#ifndef KERNMODEL_BLOCK_H
#define KERNMODEL_BLOCK_H

#include "program.h"
#include "templates.h"

/* What the analysis depends on beside the instructions, in the order of analyser._figures. */
typedef struct {
    int32_t decoders, fusible_last, fusion_line_bytes, predecode_width, predecode_bytes, prefix_cycles, issue_width,
        dsb_width, dsb_bytes, dsb_line_bytes, dsb_ends, jcc_bytes, idq_uops, lsd, fetches, partial_erratum,
        group_boundary, synchronises, synchronise_ports, pointer_saving, blocked_loads, blocked_load, store_address,
        forward_latency, forward_address, facile_stack, forward_as_load, dsb_line_microops, dsb_block_lines,
        synchronise_latency;
} Figures;

enum { FIGURE_NUMBERS = sizeof(Figures) / sizeof(int32_t) };

/* The same for times, in the order of analyser._times. */
typedef struct { double synchronise, forward, shortest, pointer_saving; } Times;

enum { TIME_NUMBERS = sizeof(Times) / sizeof(double) };

typedef struct {
    Figures figures;
    Times times;
    Core core;             /* what does not depend on the block */
    const int32_t *copies; /* of a loop in the LSD, by its µops */
    int32_t copies_known;
} Machine;

/* A load that reads what a store wrote: numbers of instructions and of their memory references. */
typedef struct { int32_t store, store_place, load, load_place, passes, whole; } Link;

typedef struct { int32_t count; const Link *links; } Links;

/* An instruction or a macro-fused pair (kernmodel.incore.front_end.model.Unit). */
typedef struct {
    int32_t number, start, end, decoded, microcoded, slots, complex, simple, fusible, branch, ends_group;
} Unit;

/* An edge of the dependency graph, between values. */
typedef struct { int32_t source, target; double latency; int32_t passes; } Edge;

enum { PREDECODE, DECODE, DSB_WIDTH, LSD_ROUNDS, ISSUE, PORT_USE, DIVIDER, PRECEDENCE, PIPELINE, COMPONENTS };

typedef struct {
    const Machine *machine;
    const Known *const *known;
    int32_t count, unrolled, offset;
    const Parts *fused_parts; /* of the last two instructions, if they macro-fuse */
    Links links, simulated_links;
    Arena *arena;

    int32_t length, prefixes, synchronisations, complex_units, erratum;
    int32_t *starts, *opcodes; /* of instructions, and one behind; of their nominal opcodes */
    int32_t *ends, *cut;       /* by position: instructions that end before it; whether it parts an instruction */
    Unit *units;
    int32_t unit_count, fused; /* `fused`: whether the last two instructions are one unit */

    int32_t *unit_entries; /* queue entries of each unit */
    Core core;
    FetchUnit *fetch;
    Entry *entries;
    int32_t *first_microop;
    MicroOp *microops;
    Wait *waits;
    int32_t *schedule;

    int32_t vertices;
    int32_t *owners, *values; /* of each vertex: instruction, and number of its value; -1 for the stack engine's µop */
    Edge *edges;
    int32_t edge_count;
    const Edge *cycle; /* the slowest cycle */
    int32_t cycle_length, cycle_passes, through_memory;

    uint32_t applies; /* components that the block meets, as bits */
    double components[COMPONENTS];
    double ports_alone, slow; /* what is in the place of ports: the larger of the bound and what was measured */
    int32_t binding_ports, binding_divider;
    int64_t simulated[SIMULATED_NUMBERS];
} Block;

/* Each step takes what those before it made; 0, NO_MEMORY, MALFORMED or BEYOND. */
int see_front_end(Block *b);
int link_microops(Block *b);
int plan_fetch(Block *b);
int bound_front_end(Block *b);
int bound_ports(Block *b);
int bound_dependencies(Block *b);

/* Cycles that each fetched block takes; their number, or negative. */
int32_t fetch_cycles(const Block *b, int32_t **cycles);

/* Number of executions after which unrolled code stands at the same place in the fetched blocks. */
int32_t executions(const Block *b);

/* Whether the JCC erratum concerns a unit. */
int hit_by_erratum(const Block *b, const Unit *unit);

static inline int32_t divided_up(int64_t dividend, int32_t divisor) { return (int32_t)((dividend + divisor - 1) / divisor); }

#endif
