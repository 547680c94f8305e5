/* A block and a core in numbers, as kernmodel.incore.engine.program lays them out. */

#ifndef KERNMODEL_PROGRAM_H
#define KERNMODEL_PROGRAM_H

#include <stdint.h>

#include "arena.h"

enum { PORTS = 16, GROUPS = 4, SCHEDULERS = 3 };
enum { IDEAL, LSD, DSB, DECODERS };
enum { FRONT_END, SCHEDULER, REORDER_BUFFER, REASONS };
/* Failures: of memory; numbers that do not hold together; a block of more than is counted here. */
enum { NO_MEMORY = -1, MALFORMED = -2, BEYOND = -3 };

/* One number each, in the order of program.Core. */
typedef struct {
    int32_t issue_width, retire_width, reorder_buffer, scheduler, load_scheduler, store_scheduler, idq, dsb_width,
        dsb_lines, decoders, iq, predecode_width, fusible_last, microcode_switch, microcode_exit, microcode_width,
        predecode_delay, unlaminated_slots, unlaminated_first, taken_branches, dispatch_delay, counter_gap,
        issue_ports, group_boundary, source, copies, barred_from, repeats, alternating[GROUPS], units, entries, slots,
        microops, waits, schedule, farthest, longest, most_cycles, least_passes, steady_cycles, floor_cycles;
} Core;

enum { CORE_NUMBERS = sizeof(Core) / sizeof(int32_t) };

typedef struct { int32_t entries, decoded, complex, simple, fusible, ends_group, block, line, wide; } FetchUnit;
typedef struct { int32_t slots, together; } Entry;
typedef struct { int32_t ports, latency, divider, data, alone, first_wait, scheduler; } MicroOp;
typedef struct { int32_t microop, passes, cycles; } Wait;

typedef struct {
    const Core *core;
    const FetchUnit *units;
    const Entry *entries;
    const int32_t *first_microop; /* per slot, and one behind */
    const MicroOp *microops;      /* and one behind */
    const Wait *waits;
    const int32_t *schedule;
    double floor; /* cycles per pass of the slowest part of the core, 0 if it is not known */
} Program;

/* settled, cycles and passes of the period, cycles in all, stalls by reason, dispatches by port */
enum { SIMULATED_NUMBERS = 4 + REASONS + PORTS };

/* 0, or NO_MEMORY. */
int simulate(const Program *program, Arena *arena, int64_t *result);

/* Whether passes take as long as the floor, to one percent. */
int is_at(double floor, int64_t cycles, int64_t passes);

#endif
