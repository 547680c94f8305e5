"""What passes between Python and the compiled engine, field by field; the header `native/layout.h` is made of this.

    python -m kernmodel.incore.engine.layout > kernmodel/incore/engine/native/layout.h

Each class here is a struct of the same name, its fields in the same order. Flags are 0 or 1, sets of ports bits.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from functools import cache
from itertools import islice

from kernmodel.incore.tables.core_parameters import DELIVERED, PORT_CHOICES
from kernmodel.value_types import NamedTuple

GROUPS = 4
"""Port sets that may alternate."""
PORTS = 20
"""Most ports that the simulation keeps count of."""
SCHEDULERS = 8
"""Most schedulers."""
RESULTS = 64
"""Cycles ahead for which results of ports that give one a cycle are followed."""
RELEASES = 32
"""More cycles than pass until the register of a retired instruction is free again."""
PHASES = 64
"""Passes after which accesses stand at the same place in a line again, whatever their stride."""
SOURCES = ("ideal", "LSD", "DSB", "decoders")
"""Where µops come from; numbered in this order."""
EARLY_ENDS = ("loads apart", "groups apart", "operations apart")
"""Why a cycle's dispatch may end early: at a load that is one too many, at µops that go together, or at an operation
for which no scheduler is left."""
REASONS = ("front end", "scheduler", "reorder buffer", "registers", *EARLY_ENDS)
"""Why the renamer stands still, or ends early; numbered in this order."""
KINDS = ("none", "uop cache", "op cache")
"""What feeds the renamer: nothing is known of it; predecoder, decoders, DSB and LSD; Zen's decoders and op cache."""
TICKS = 64
"""Parts of a cycle in which measured throughputs are counted."""
COMPUTED, LOADED = 1, 2
"""Where a third vector comes from."""
LOAD, STORE = 1, 2
"""Of which accesses a µop is the data path."""
ON, PASSES, LINES = 1, 2, 4
"""What ends the delivery of a cycle with `Core.line_fetch`, as bits: its width alone; a pass; a line of code."""
COMPONENTS = ("predecode", "decode", "DSB", "LSD", "issue", "ports", "divider", "precedence", "pipeline")
"""The parts of a core whose bounds the engine gives, in the order in which a µop meets them."""


_SIZES = {
    "alternating": GROUPS,
    "constants_delivered": DELIVERED,
    "long_delivered": DELIVERED,
    "interleaved": PORTS,
    "rooms": SCHEDULERS,
    "scheduler_of": PORTS,
    "borrowed": PORTS,
    "load_ports": GROUPS,
    "most_loads": GROUPS,
}
"""Fields that hold several numbers."""


class Core(NamedTuple):
    """The simulated pipeline, and the sizes of the block in it.

    Attributes:
        port_choice: which port stands in for the one with the fewest µops, as a number of `PORT_CHOICES`.
        by_port: whether schedulers belong to ports, and a µop that finds no place in one stops the dispatch; else there
            are the three of `UopTraits.scheduler`. The further ones are of such cores:
        interleaved: by port, 1 more than its place in the list of pairs of alike ports of two schedulers (`Sides`), 0
            for ports in none. The slot tells the side of a µop while fewer than `most_by_slot` wait, and for no port
            `pair_gap` more than for its counterpart; else µops pass the queue, in `queue_passage` cycles, and get the
            sides in turn, but where `heavy_side` wait none whose port there has that many more. turn_gap: by how many
            fewer µops another port of a side is taken than the one whose turn it is. mode_delay, choice_delay: cycles
            after which the way of giving sides, and what is given, know of µops that entered; left_delay: of those that
            left.
        together: ports whose µops of a cycle are assigned to schedulers together (`queues`), no more than `QUEUES`;
            beside: 1 more than the queue that may get two of a cycle, 0 for none; narrow: bits of queues, of which a
            cycle has two operations at most that may go to no others (`queues.assigned`); operations_together: whether
            nothing is dispatched in a cycle whose operations and accesses do not all find room, and registers;
            seen_after: cycles after which dispatch knows what entered and left them.
        load_ports: sets of ports; most_loads: of the µops that only ports of such a set execute, so many are dispatched
            in a cycle at most, 0 for any number; where the set is empty, of all that start on `addressing` ports.
        addressing: ports that start accesses and of which each gets one in a cycle, as long as there are others: of
            those the one with the fewest, by what dispatch knows where they have queues. What starts there and takes
            longer keeps its port alone. accesses_together: whether nothing is dispatched in a cycle in which accesses
            alone would overfill a scheduler. loads_in_a_row: cycles in a row that dispatch the most µops of the first
            of `load_ports`, after which each dispatches one fewer until its slots hold just so many; where it is not 0,
            two of a cycle take these ports in order, and a third one that with the fewest entries as dispatch sees
            them.
        queued: ports whose µops pass through a queue of `queue_entries` before they get port and scheduler.
        rooms: entries of each scheduler; scheduler_of: the scheduler of each port.
        borrowed: by port, 1 more than the number of the port whose operand path brings the third vector that a µop
            reads, 0 for a path of its own; one_store: of these together one µop starts in a cycle, the oldest, that
            stores or gives its result over the path of such a port, as bits; 0 where they are not kept apart;
            loaded_third: whether a loaded vector needs the path also in the cycle in which it is there;
            straight_stores: whether a stored vector needs no path in the cycle in which it is there;
            straight_cycles: for how many cycles from then on a third vector that was executed for needs none.
        one_result: ports that give one result a cycle, for which the later one waits; result_waits: the port where the
            µop waits in place of its result. Younger ones pass it, unless as many as result_passes that take longer
            started there in a row and it was the first to wait in the cycle before.
        bank_bytes: of the banks of the L1 cache, each of which two loads may read in a cycle, 0 for any number.
        lines_in_turn: whether an access to two lines takes its pipe for two cycles, in place of all its pipes for one.
        vector_registers: that instructions in flight can have, 0 for any number; register_release: cycles from the
            retirement of an instruction until its register can be given again.
        line_fetch: whether units come line of code by line of code, `dsb_width` a cycle, each pass for itself;
            queued_lines: lines of which the queue then holds what is left, 0 for any number.
        constants_delivered: with `LINES`, by the number of entries that a cycle delivers, how many constants may come
            with them, long_delivered: how many long ones, all 0 for any number.
        constants_dispatched: constants that are dispatched in a cycle, 0 for any number.
        redirect: with `line_fetch`, cycles from the execution of a mispredicted branch until units behind it come.
    """

    issue_width: int = 0
    retire_width: int = 0
    reorder_buffer: int = 0
    scheduler: int = 0
    load_scheduler: int = 0
    store_scheduler: int = 0
    idq: int = 0
    dsb_width: int = 0
    dsb_lines: int = 0
    decoders: int = 0
    iq: int = 0
    predecode_width: int = 0
    fusible_last: int = 0
    microcode_switch: int = 0
    microcode_exit: int = 0
    microcode_width: int = 0
    predecode_delay: int = 0
    unlaminated_slots: int = 0
    unlaminated_first: int = 0
    taken_branches: int = 0
    dispatch_delay: int = 0
    counter_gap: int = 0
    port_choice: int = 0
    issue_ports: int = 0
    group_boundary: int = 0
    source: int = 0
    copies: int = 0
    barred_from: int = 0
    repeats: int = 0
    alternating: tuple[int, ...] = (0,) * GROUPS
    by_port: int = 0
    interleaved: tuple[int, ...] = (0,) * PORTS
    pair_gap: int = 0
    turn_gap: int = 0
    most_by_slot: int = 0
    heavy_side: int = 0
    mode_delay: int = 0
    choice_delay: int = 0
    left_delay: int = 0
    queue_passage: int = 0
    together: int = 0
    beside: int = 0
    narrow: int = 0
    operations_together: int = 0
    seen_after: int = 0
    load_ports: tuple[int, ...] = (0,) * GROUPS
    most_loads: tuple[int, ...] = (0,) * GROUPS
    addressing: int = 0
    queued: int = 0
    queue_entries: int = 0
    vector_registers: int = 0
    register_release: int = 0
    rooms: tuple[int, ...] = (0,) * SCHEDULERS
    scheduler_of: tuple[int, ...] = (0,) * PORTS
    borrowed: tuple[int, ...] = (0,) * PORTS
    one_store: int = 0
    loaded_third: int = 0
    straight_stores: int = 0
    straight_cycles: int = 0
    one_result: int = 0
    result_waits: int = 0
    result_passes: int = 0
    bank_bytes: int = 0
    lines_in_turn: int = 0
    accesses_together: int = 0
    loads_in_a_row: int = 0
    line_fetch: int = 0
    queued_lines: int = 0
    constants_delivered: tuple[int, ...] = (0,) * DELIVERED
    long_delivered: tuple[int, ...] = (0,) * DELIVERED
    constants_dispatched: int = 0
    redirect: int = 0
    units: int = 0
    entries: int = 0
    slots: int = 0
    microops: int = 0
    waits: int = 0
    schedule: int = 0
    farthest: int = 0
    longest: int = 0
    most_cycles: int = 0
    least_passes: int = 0
    steady_cycles: int = 0
    floor_cycles: int = 0
    again_cycles: int = 0

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Core:
        """What `numbers` gave."""
        values: list[int | tuple[int, ...]] = []
        rest = iter(numbers)
        for name in cls._fields:
            size = _SIZES.get(name)
            values.append(next(rest) if size is None else tuple(islice(rest, size)))
        return cls._make(values)

    def numbers(self) -> array[int]:
        """All of them in one piece."""
        numbers = array("i")
        for value in self:
            numbers.extend(value if isinstance(value, tuple) else (value,))
        return numbers


class Figures(NamedTuple):
    """What joining and bounding blocks asks of a core; 0 where something is not known or not there.

    Attributes:
        kind: of the front end, a place in `KINDS`; simulated: whether there is a pipeline to simulate.
        fetches: µops come as slowly as the front end delivers them; else the renamer always finds some.
        fusion_line_bytes: no pair fuses whose jump starts at a multiple of this address.
        branch_ends_group: nothing is decoded behind a branch in the same cycle.
        fetch_bytes, op_cache_entries, op_cache_width, issue_instructions, whole_instructions, code_line_bytes: as in
            `OpCacheParameters`.
        synchronise_ports, synchronise_latency: of the stack engine's µop; synchronises: whether it is inserted.
        forward_as_load: whether a forwarded load takes its own latency less the shortest one.
        adders: whether others wait longer for additions than their rows say.
    """

    kind: int = 0
    simulated: int = 0
    fetches: int = 1
    decoders: int = 0
    fusible_last: int = 1
    fusion_line_bytes: int = 0
    branch_ends_group: int = 0
    predecode_width: int = 0
    predecode_bytes: int = 0
    prefix_cycles: int = 0
    issue_width: int = 0
    dsb_width: int = 0
    dsb_bytes: int = 0
    dsb_line_bytes: int = 0
    dsb_ends: int = 0
    jcc_bytes: int = 0
    idq_uops: int = 0
    lsd: int = 0
    fetch_bytes: int = 0
    op_cache_entries: int = 0
    op_cache_width: int = 0
    issue_instructions: int = 0
    whole_instructions: int = 0
    code_line_bytes: int = 0
    partial_erratum: int = 0
    group_boundary: int = 0
    synchronises: int = 0
    synchronise_ports: int = 0
    synchronise_latency: int = 0
    pointer_saving: int = 0
    blocked_loads: int = 0
    blocked_load: int = 0
    store_address: int = 0
    forward_latency: int = 0
    forward_address: int = 0
    facile_stack: int = 0
    forward_as_load: int = 0
    dsb_line_microops: int = 0
    dsb_block_lines: int = 0
    adders: int = 0


class Times(NamedTuple):
    """The same for times in cycles.

    Attributes:
        synchronise: of the stack engine's µop; forward: from a store's data to a load that reads them.
        shortest: by how much a forwarded load takes less than from the cache, with `forward_as_load`.
        pointer_saving: by which a load whose address was just loaded is faster.
        to_others, several_chains, free_chains, beside_wide: as in `AdderParameters`, 0 for what is as the row says.
        between_domains: of vectors from units for floating-point numbers to units for integers, and the other way.
    """

    synchronise: float = 0.0
    forward: float = 0.0
    shortest: float = 0.0
    pointer_saving: float = 0.0
    to_others: float = 0.0
    several_chains: float = 0.0
    free_chains: float = 0.0
    beside_wide: float = 0.0
    between_domains: float = 0.0


WHOLE, SIMULATION, WITHOUT_PORTS, WITHOUT_WAITS, DEPENDENCES = range(5)
"""How much of a block is looked at: all; the simulation alone, whatever bounds there are; the same as if ports took no
time, or as if dependencies took none; dependencies alone."""


class Request(NamedTuple):
    """How a block is looked at; behind it stand its instructions, then `pairs` of (number of the first instruction,
    µops of the pair), then, if it is `placed`, where each instruction starts.

    Attributes:
        instructions: how many; unrolled: copies one behind the other, else a loop; offset: address of the first byte.
        links, simulated_links: forwardings for the dependencies, and for the simulation.
        pairs: instructions that macro-fuse with the branch behind them, wherever the block stands.
        placed: whether places of the instructions are given; else each follows the one before.
        accesses: so many `Access` stand at the end.
        all: whether the bounds of parts that the block does not meet are wanted, too.
        scope: how much is looked at.
    """

    instructions: int
    unrolled: int
    offset: int
    links: int
    simulated_links: int
    pairs: int = 0
    placed: int = 0
    all: int = 0
    scope: int = WHOLE
    accesses: int = 0


class Totals(NamedTuple):
    """What the engine says of a block in whole numbers.

    Attributes:
        applies: components that the block meets, as bits; idle: others that have a bound.
        units: instructions and fused pairs; complex_units: of them, those that need the complex decoder.
        decoded, slots: µops of all units in the DSB and at issue; entries: slots of all queue entries, 0 where no queue
            is modelled; synchronisations: µops of the stack engine; erratum: branches that the JCC erratum concerns.
        length: bytes; prefixed: instructions with a length-changing prefix; constants: of all units; code_lines: that
            it touches, 0 where the op cache does not deliver by them.
        source: a place in `SOURCES`; copies: of a loop in the LSD; barred_from: first unit that the DSB cannot hold.
        fused: pairs that macro-fuse.
        cycle_length, cycle_passes, through_memory: edges and passes of the slowest cycle, and whether it leads there.
        ports, divider: sets of ports that bind.
        vertices, edges: of the dependency graph.
        settled, period, passes, simulated: whether the state of the pipeline repeated, cycles and passes of the period,
            cycles in all.
    """

    applies: int
    idle: int
    units: int
    complex_units: int
    decoded: int
    slots: int
    entries: int
    synchronisations: int
    erratum: int
    length: int
    prefixed: int
    constants: int
    code_lines: int
    source: int
    copies: int
    barred_from: int
    fused: int
    cycle_length: int
    cycle_passes: int
    through_memory: int
    ports: int
    divider: int
    vertices: int
    edges: int
    settled: int
    period: int
    passes: int
    simulated: int


NOTHING = Totals(*[0] * len(Totals._fields))


class Link(NamedTuple):
    """A load that reads what a store wrote, by numbers of instructions and of their memory references; `cycles` from
    the stored data to the loaded ones, -1 for as store and load say."""

    store: int
    store_place: int
    load: int
    load_place: int
    passes: int
    whole: int
    cycles: int


class Access(NamedTuple):
    """What becomes of the memory accesses of an instruction in a loop by their addresses.

    Attributes:
        instruction: its number.
        load_low, load_high, store_low, store_high: of 64 passes, as bits, those in which its loads, and its stores,
            keep their data path for a cycle longer since they cross lines. more_low, more_high: those in which its
            loads keep it for one more.
        single: whether its stores take the first of their ports only.
        place, stride, size: of its load, where it begins in the first pass, modulo a line, by how much it moves per
            pass, and its bytes; 0 bytes where that is not known or does not matter.
    """

    instruction: int
    load_low: int = 0
    load_high: int = 0
    store_low: int = 0
    store_high: int = 0
    more_low: int = 0
    more_high: int = 0
    single: int = 0
    place: int = 0
    stride: int = 0
    size: int = 0


class Traits(NamedTuple):
    """What an instruction is to front end, stack engine and dependencies, beside what it waits for.

    Attributes:
        known: whether there is a row for it; unit: whether the front end takes it, else it counts as bytes only.
        decoded, microcoded, slots, complex, simple, ends_group, joined_slots: as in `front_end.costs.Cost`.
        fusible: of a kind that macro-fuses; jumps_low, jumps_high: the jumps that it fuses with, by their numbers, as
            bits; fusing_flags: flags that a jump must read one of, to fuse with it.
        branch: whether it branches; jump: number of a conditional jump, -1 for others; flags: that such a jump reads.
        nop: whether it does nothing and takes nothing behind an instruction that is not fused otherwise.
        moves_stack, reads_stack, writes_stack: what it does with rsp, as the front end sees it.
        bars_lsd: the LSD replays no loop with it. registers: slots of the template.
        measured: whether a measured throughput holds. wide: names 512-bit registers. adds: a floating-point addition.
        hands_on: a move that is done at rename. domain: 1 for units of floating-point numbers, 2 for those of integers
            that make vectors of vectors, else 0.
        special: whether it has to do with memory or stack; uses_stack, flow_moves, flow_reads, flow_writes, pointer,
            copies: as in `Special`.
    """

    known: int = 0
    unit: int = 0
    decoded: int = 0
    microcoded: int = 0
    slots: int = 0
    complex: int = 0
    simple: int = 0
    ends_group: int = 0
    joined_slots: int = 0
    fusible: int = 0
    jumps_low: int = 0
    jumps_high: int = 0
    fusing_flags: int = 0
    branch: int = 0
    jump: int = -1
    flags: int = 0
    nop: int = 0
    moves_stack: int = 0
    reads_stack: int = 0
    writes_stack: int = 0
    bars_lsd: int = 0
    registers: int = 0
    measured: int = 0
    wide: int = 0
    adds: int = 0
    hands_on: int = 0
    domain: int = 0
    special: int = 0
    uses_stack: int = 0
    flow_moves: int = 0
    flow_reads: int = 0
    flow_writes: int = 0
    pointer: int = -1
    copies: int = 0


class TraitTimes(NamedTuple):
    """Times of an instruction in cycles: its measured throughput, what its load saves behind a fast pointer, and of an
    addition what it takes from operands in registers or just loaded."""

    throughput: float = 0.0
    saves: float = 0.0
    addition: float = 0.0


class UopTraits(NamedTuple):
    """A µop of an instruction: whether it is an eliminated move, which scheduler it takes a place of, its ports, and
    the other figures of `engine.uops.Uop`; `access`: LOAD for the data path of a load, STORE for that of a store;
    `vectors`: vector registers that it takes; `third`: 1 more than the place of the third vector that it reads in
    what it waits for, outside and then inside its instruction, 0 for none; `paths`: as in `MicroOp`."""

    move: int
    scheduler: int
    ports: int
    latency: int
    divider: int
    data: int
    alone: int
    access: int
    vectors: int = 0
    third: int = 0
    paths: int = 0


class FetchUnit(NamedTuple):
    """An instruction or macro-fused pair as the fetch sees it.

    Attributes:
        entries: queue entries it makes; decoded: how many of them by the decoders or from the DSB, the rest are
            microcode.
        complex: needs the complex decoder; simple: decoders that may work beside it.
        fusible: of a kind that macro-fuses; ends_group: nothing behind it is decoded in the same cycle.
        block: aligned block of code that the DSB keeps it under; line: its line there; wide: takes one more place. With
            `line_fetch`, block and line are the lines of code of its first and its last byte.
        redirects: with `line_fetch`, it ends in a mispredicted branch.
        constants, long_constants: as in `front_end.model.Unit`.
    """

    entries: int
    decoded: int
    complex: int
    simple: int
    fusible: int
    ends_group: int
    block: int
    line: int
    wide: int
    redirects: int = 0
    constants: int = 0
    long_constants: int = 0


class Entry(NamedTuple):
    """One entry of the instruction decode queue: its issue slots, and how many, with those of the entries behind it,
    issue in the same cycle, 0 for any number; constants: as in `front_end.model.Unit`."""

    slots: int
    together: int
    constants: int = 0


class MicroOp(NamedTuple):
    """One µop of a block.

    Attributes:
        ports: that it may dispatch to; none for what is done at rename.
        latency: cycles from dispatch until it may retire.
        divider: cycles it keeps the divider busy; data: cycles it keeps the data path of its port busy.
        alone: ticks before the next µop with such a figure may dispatch; of those that are ready the oldest is next.
        first_wait: number of the first thing that it waits for; what it waits for ends where that of the next begins.
        scheduler: 0 for the scheduler of all, 1 for that of loads, 2 for that of stores.
        slow_low, slow_high: of 64 passes, as bits, those in which it keeps its data path one cycle longer; more_low,
            more_high: of these, those in which it keeps it one more.
        redirects: it is a mispredicted branch: what is behind its unit comes once it was executed.
        registers: vector registers that its slot takes for it.
        third: it reads three vectors, or brings what is stored.
        paths: ports that start nothing in the cycle behind it, none where its result takes no path of theirs.
        place, stride, size: of a load, as in `Access`.
        load: it is a load.
    """

    ports: int
    latency: int
    divider: int
    data: int
    alone: int
    first_wait: int
    scheduler: int
    slow_low: int = 0
    slow_high: int = 0
    more_low: int = 0
    more_high: int = 0
    redirects: int = 0
    registers: int = 0
    third: int = 0
    paths: int = 0
    place: int = 0
    stride: int = 0
    size: int = 0
    load: int = 0


class Wait(NamedTuple):
    """A µop may dispatch `cycles` after µop number `microop` of `passes` passes earlier dispatched (is known); `third`:
    for its third vector, `LOADED` where that is loaded."""

    microop: int
    passes: int
    cycles: int
    third: int = 0


@cache
def port_mask(ports: tuple[str, ...], known: tuple[str, ...]) -> int:
    """The ports as bits, in the order of those known."""
    return sum(1 << known.index(port) for port in dict.fromkeys(ports))


_STRUCTS = (
    (Core, "int32_t"),
    (Traits, "int32_t"),
    (TraitTimes, "double"),
    (UopTraits, "int32_t"),
    (FetchUnit, "int32_t"),
    (Entry, "int32_t"),
    (MicroOp, "int32_t"),
    (Wait, "int32_t"),
    (Figures, "int32_t"),
    (Times, "double"),
    (Request, "int32_t"),
    (Link, "int32_t"),
    (Access, "int32_t"),
    (Totals, "int64_t"),
)
_ENUMS = (
    ("", SOURCES),
    ("", PORT_CHOICES),
    ("", (*REASONS, "reasons")),
    ("KIND_", KINDS),
    ("PART_", COMPONENTS),
    ("", ("whole", "simulation", "without ports", "without waits", "dependences")),
)


def header() -> str:
    """The text of `native/layout.h`."""
    from textwrap import wrap

    lines = ["/* Made by kernmodel.incore.engine.layout, which says what the fields mean. */", ""]
    lines += ["#ifndef KERNMODEL_LAYOUT_H", "#define KERNMODEL_LAYOUT_H", "", "#include <stdint.h>", ""]
    lines += [f"enum {{ PORTS = {PORTS}, GROUPS = {GROUPS}, SCHEDULERS = {SCHEDULERS}, PHASES = {PHASES} }};"]
    lines += [f"enum {{ DELIVERED = {DELIVERED} }};"]
    lines += [f"enum {{ RELEASES = {RELEASES}, RESULTS = {RESULTS}, TICKS = {TICKS} }};"]
    lines += [f"enum {{ COMPUTED = {COMPUTED}, LOADED = {LOADED} }};", f"enum {{ LOAD = {LOAD}, STORE = {STORE} }};"]
    lines += [f"enum {{ ON = {ON}, PASSES = {PASSES}, LINES = {LINES} }};"]
    lines += [f"enum {{ {', '.join(prefix + _constant(name) for name in names)} }};" for prefix, names in _ENUMS]
    for struct, number in _STRUCTS:
        fields = ", ".join(name + (f"[{_SIZES[name]}]" if name in _SIZES else "") for name in struct._fields)
        lines += ["", "typedef struct {", *wrap(f"    {number} {fields};", 118, subsequent_indent="        ")]
        lines.append(f"}} {struct.__name__};")
    return "\n".join([*lines, "", "#endif", ""])


def _constant(name: str) -> str:
    return name.upper().replace(" ", "_")


if __name__ == "__main__":
    sys.stdout.write(header())
