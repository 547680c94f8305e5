/* A block and a core in numbers, as kernmodel.incore.engine.program lays them out. */

#ifndef KERNMODEL_PROGRAM_H
#define KERNMODEL_PROGRAM_H

#include <stdint.h>

#include "arena.h"
#include "layout.h"

enum { CORE_NUMBERS = sizeof(Core) / sizeof(int32_t) };
/* Failures: of memory; numbers that do not hold together; a block of more than is counted here. */
enum { NO_MEMORY = -1, MALFORMED = -2, BEYOND = -3 };

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
