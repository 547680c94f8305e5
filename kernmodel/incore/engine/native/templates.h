/* What is known of instructions, made once by kernmodel.incore.engine.analyser and kept for many blocks.

   A template is what an instruction does, whatever registers it names: these are slots, numbered from 0, which each
   instruction fills with its own. */

#ifndef KERNMODEL_TEMPLATES_H
#define KERNMODEL_TEMPLATES_H

#include <stdint.h>

#include "arena.h"
#include "layout.h"

/* `split`: by how much the cycles grow for each pass in which the access takes longer, as across lines. */
typedef struct { int32_t mask, divides; double cycles, split; } Use;

typedef struct { int32_t count; const Use *uses; } Uses;

/* ---- dependencies between values (kernmodel.incore.dependences.data_flow.DataFlow) ---- */

typedef struct { int32_t value, slot; double cycles; } FlowWait;
typedef struct { int32_t load, value; double cycles; } FlowInner;
typedef struct { int32_t slot, value; } FlowGive;
typedef struct { int32_t place; double cycles; } FlowLoad;
typedef struct { int32_t place, value; } FlowStore;

typedef struct {
    Traits is;
    TraitTimes takes;
    uint64_t jumps; /* that the instruction macro-fuses with, as bits */
    int32_t values, waits, inner, gives, loads, stores;
    const int32_t *in_memory; /* per value: whether it is there */
    const double *ready;      /* per value: cycles after the start of a pass where nothing feeds it */
    const FlowWait *wait;
    const FlowInner *in;
    const FlowGive *give;
    const FlowLoad *load;
    const FlowStore *store;
    Uses uses;
} Template;

/* ---- The µops of an instruction, alone or fused with the branch behind it (engine.uops.InstructionUops) ---- */

typedef struct { int32_t slot, cycles; } Outside;
typedef struct { int32_t uop, cycles; } Inside;
typedef struct { int32_t slot, count; const Inside *waits; } UopResult;
typedef struct { int32_t place, uop, latency; } UopLoad;
typedef struct { int32_t place, data, address, forward; } UopStore;

typedef struct {
    UopTraits is;
    int32_t reads, inside;
    const Outside *read;
    const Inside *in;
} Uop;

typedef struct {
    int32_t uops, slots, results, loads, stores, chaseable, pointer, registers;
    const Uop *uop;
    const int32_t *slot_first; /* per slot, and one behind, into `ordered` */
    const int32_t *ordered;    /* µops in the order of the slots */
    const UopResult *result;
    const UopLoad *load;
    const UopStore *store;
    Uses uses;
    int32_t keeps_ports; /* of a pair: the branch needs no other ports */
} InstructionUops;

/* An instruction: its registers, and its bytes as the front end sees them. */
typedef struct {
    const Template *template;
    const InstructionUops *uops; /* NULL where the table does not know it */
    const int32_t *registers; /* resource in each slot, -1 where the slot does not apply */
    int32_t length, opcode, prefixed, wide, constants, long_constants;
} Known;

/* Read what Python packed; NULL and MALFORMED or NO_MEMORY in `failure` where that does not hold together. */
const Template *read_template(Arena *keep, const int32_t *numbers, int64_t count, const double *times, int64_t more,
                              int *failure);
const InstructionUops *read_uops(Arena *keep, const int32_t *numbers, int64_t count, const double *times, int64_t more,
                        int *failure);

#endif
