/* Made by kernmodel.incore.engine.layout, which says what the fields mean. */

#ifndef KERNMODEL_LAYOUT_H
#define KERNMODEL_LAYOUT_H

#include <stdint.h>

enum { PORTS = 20, GROUPS = 4, SCHEDULERS = 8, PHASES = 64 };
enum { DELIVERED = 16 };
enum { RELEASES = 32, RESULTS = 64, TICKS = 64 };
enum { COMPUTED = 1, LOADED = 2 };
enum { LOAD = 1, STORE = 2 };
enum { ON = 1, PASSES = 2, LINES = 4 };
enum { IDEAL, LSD, DSB, DECODERS };
enum { SECOND_FEWEST, BY_SLOT, BY_RANK };
enum { FRONT_END, SCHEDULER, REORDER_BUFFER, REGISTERS, LOADS_APART, GROUPS_APART, OPERATIONS_APART, REASONS };
enum { KIND_NONE, KIND_UOP_CACHE, KIND_OP_CACHE };
enum { PART_PREDECODE, PART_DECODE, PART_DSB, PART_LSD, PART_ISSUE, PART_PORTS, PART_DIVIDER, PART_PRECEDENCE, PART_PIPELINE };
enum { WHOLE, SIMULATION, WITHOUT_PORTS, WITHOUT_WAITS, DEPENDENCES };

typedef struct {
    int32_t issue_width, retire_width, reorder_buffer, scheduler, load_scheduler, store_scheduler, idq, dsb_width,
        dsb_lines, decoders, iq, predecode_width, fusible_last, microcode_switch, microcode_exit, microcode_width,
        predecode_delay, unlaminated_slots, unlaminated_first, taken_branches, dispatch_delay, counter_gap,
        port_choice, issue_ports, group_boundary, source, copies, barred_from, repeats, alternating[4], by_port,
        interleaved[20], pair_gap, turn_gap, most_by_slot, heavy_side, mode_delay, choice_delay, left_delay,
        queue_passage, together, beside, narrow, operations_together, seen_after, load_ports[4], most_loads[4],
        addressing, queued, queue_entries, vector_registers, register_release, rooms[8], scheduler_of[20],
        borrowed[20], one_store, loaded_third, straight_stores, straight_cycles, one_result, result_waits,
        result_passes, bank_bytes, lines_in_turn, accesses_together, loads_in_a_row, line_fetch, queued_lines,
        constants_delivered[16], long_delivered[16], constants_dispatched, redirect, units, entries, slots, microops,
        waits, schedule, farthest, longest, most_cycles, least_passes, steady_cycles, floor_cycles, again_cycles;
} Core;

typedef struct {
    int32_t known, unit, decoded, microcoded, slots, complex, simple, ends_group, joined_slots, fusible, jumps_low,
        jumps_high, fusing_flags, branch, jump, flags, nop, moves_stack, reads_stack, writes_stack, bars_lsd,
        registers, measured, wide, adds, hands_on, domain, special, uses_stack, flow_moves, flow_reads, flow_writes,
        pointer, copies;
} Traits;

typedef struct {
    double throughput, saves, addition;
} TraitTimes;

typedef struct {
    int32_t move, scheduler, ports, latency, divider, data, alone, access, vectors, third, paths;
} UopTraits;

typedef struct {
    int32_t entries, decoded, complex, simple, fusible, ends_group, block, line, wide, redirects, constants,
        long_constants;
} FetchUnit;

typedef struct {
    int32_t slots, together, constants;
} Entry;

typedef struct {
    int32_t ports, latency, divider, data, alone, first_wait, scheduler, slow_low, slow_high, more_low, more_high,
        redirects, registers, third, paths, place, stride, size, load;
} MicroOp;

typedef struct {
    int32_t microop, passes, cycles, third;
} Wait;

typedef struct {
    int32_t kind, simulated, fetches, decoders, fusible_last, fusion_line_bytes, branch_ends_group, predecode_width,
        predecode_bytes, prefix_cycles, issue_width, dsb_width, dsb_bytes, dsb_line_bytes, dsb_ends, jcc_bytes,
        idq_uops, lsd, fetch_bytes, op_cache_entries, op_cache_width, issue_instructions, whole_instructions,
        code_line_bytes, partial_erratum, group_boundary, synchronises, synchronise_ports, synchronise_latency,
        pointer_saving, blocked_loads, blocked_load, store_address, forward_latency, forward_address, facile_stack,
        forward_as_load, dsb_line_microops, dsb_block_lines, adders;
} Figures;

typedef struct {
    double synchronise, forward, shortest, pointer_saving, to_others, several_chains, free_chains, beside_wide,
        between_domains;
} Times;

typedef struct {
    int32_t instructions, unrolled, offset, links, simulated_links, pairs, placed, all, scope, accesses;
} Request;

typedef struct {
    int32_t store, store_place, load, load_place, passes, whole, cycles;
} Link;

typedef struct {
    int32_t instruction, load_low, load_high, store_low, store_high, more_low, more_high, single, place, stride, size;
} Access;

typedef struct {
    int64_t applies, idle, units, complex_units, decoded, slots, entries, synchronisations, erratum, length, prefixed,
        constants, code_lines, source, copies, barred_from, fused, cycle_length, cycle_passes, through_memory, ports,
        divider, vertices, edges, settled, period, passes, simulated;
} Totals;

#endif
