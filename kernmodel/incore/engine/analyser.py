"""Blocks bounded by the compiled engine: instructions are handed over once as packed numbers, blocks as their sequence.

What an instruction does is packed as a template, in which slots stand for its registers; instructions that differ in
their registers only share one. The engine joins templates to blocks and gives the bounds of
`answer.components.bounds_of`, which is its yardstick and what serves where the engine or a rule of it is missing.
"""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from kernmodel.incore.answer.components import FRONT_TO_BACK, CoreModel, at_rename, without_compare
from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.data_flow import DataFlow
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.fetch import bars_lsd
from kernmodel.incore.engine.memo import Shared
from kernmodel.incore.engine.model import PipelineCore, Switches
from kernmodel.incore.engine.program import LIMITS, PORTS, REASONS, Core, Program, core_of, scheduler_of
from kernmodel.incore.engine.uops import Parts, parts_of
from kernmodel.incore.front_end.block import moves_stack, uses_of_rsp
from kernmodel.incore.front_end.costs import Cost, instruction_cost
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.isa.memo import NEAR
from kernmodel.isa.model import Instruction

MEMORY = "memory"
_DIVIDER = "DV"
_MOST_JUMPS = 64
_MOST_PORTS = 31
_BEYOND = -3
_STALLS_PLACE = 22
_STALLS_END = _STALLS_PLACE + len(REASONS)
_ANSWER_NUMBERS = _STALLS_END + PORTS
_ANSWER_CYCLES = len(FRONT_TO_BACK) + 2
_CYCLE_NUMBERS = 7


class Shape(NamedTuple):
    """What is known of an instruction whatever its registers are.

    Attributes:
        instruction: one such instruction; row: its row.
        number, parts: of its template and its µops in the engine, -1 for none.
        registers: the resource in each slot.
        ports: masks of the ports that its µops need.
        jumps: mnemonics that it macro-fuses with.
        flow: its data flow.
    """

    instruction: Instruction
    row: InstructionData | None
    number: int
    parts: int
    registers: tuple[str, ...]
    ports: tuple[int, ...]
    jumps: tuple[str, ...]
    flow: DataFlow

    def place_of(self, value: int) -> int | None:
        """The number of the memory reference that a value is loaded from or stored to, None for other values."""
        special = self.flow.special
        if special is None:
            return None
        if value < len(special.loads):
            return special.loads[value][0]
        return next((place for place, stored in special.stores if stored == value), None)


class Fused(NamedTuple):
    """µops of a macro-fused pair: their number in the engine, and masks of the ports that they need."""

    parts: int
    ports: tuple[int, ...]


class Answer(NamedTuple):
    """What the engine says of a block, in its order.

    Attributes:
        applies: components that the block meets, as bits; fused: whether its last two instructions are one unit.
        cycle_length, cycle_passes, through_memory: edges and passes of the slowest cycle, and whether it leads there.
        ports, divider: masks of the ports that bind.
        stalls: cycles of the period in which the renamer stood still, by reason; period: cycles of it.
        components: cycles of each; ports_alone: of ports without measured throughputs, which are `slow`.
    """

    applies: int
    units: int
    complex_units: int
    decoded: int
    slots: int
    entries: int
    synchronisations: int
    erratum: int
    length: int
    prefixed: int
    source: int
    copies: int
    fused: int
    cycle_length: int
    cycle_passes: int
    through_memory: int
    ports: int
    divider: int
    settled: int
    period: int
    stalls: Sequence[int]
    components: Sequence[float]
    ports_alone: float
    slow: float


class Analyser:
    """The engine with what it knows of the instructions of one core, in memory that is free when this object goes."""

    __slots__ = (
        "__weakref__",
        "_cycles",
        "_flows",
        "_handle",
        "_jumps",
        "_library",
        "_masks",
        "_named",
        "_numbers",
        "_parts",
        "_results",
        "model",
    )

    def __init__(
        self,
        model: CoreModel,
        front: FrontEndParameters,
        pipeline: PipelineCore,
        engine: ctypes.CDLL,
        shared: Shared,
    ) -> None:
        self.model = model
        self._flows = shared.flows(model.graph.flows)
        self._parts = shared.parts(pipeline, model.switches)
        self._library = engine
        self._jumps: dict[str, int] = {}
        self._masks = {port: 1 << number for number, port in enumerate(model.parameters.ports)}
        self._named: dict[int, tuple[str, ...]] = {}
        self._numbers = array("q", bytes(8 * _ANSWER_NUMBERS))
        self._cycles = array("d", bytes(8 * _ANSWER_CYCLES))
        self._results = _place(self._numbers), _place(self._cycles)
        figures = array("i", _figures(model, front, pipeline))
        core = _core(pipeline, model.switches)
        most = max(front.lsd_copies, default=-1) + 1
        copies = array("i", [front.lsd_copies.get(count, 1) for count in range(most)])
        times = _times(model)
        self._handle = engine.km_new(*_sized(figures), *_sized(core), *_sized(times), *_sized(copies))
        if not self._handle:
            raise MemoryError("the in-core engine needs more memory")
        weakref.finalize(self, engine.km_free, self._handle)

    def shape(self, shape: Hashable, instruction: Instruction, row: InstructionData | None) -> Shape:
        """Hand over what an instruction does whatever its registers are; `shape` is equal for all that do the same."""
        slots: dict[str, int] = {}
        flow = self._flows.of(shape, instruction, row)
        numbers, times, jumps = self._template(instruction, row, flow, slots)
        parts = -1 if row is None else self._add_parts(self._parts.of(shape, instruction, row), (), slots)
        numbers[_SLOTS_PLACE] = len(slots)
        number = self._library.km_add_template(self._handle, *_sized(numbers), *_sized(times))
        uses = _uses(instruction, row)
        masks = tuple([self._mask(use) for use in uses])
        return Shape(instruction, row, _checked(number), parts, tuple(slots), masks, jumps, flow)

    def fused(self, first: Shape, branch: Shape) -> Fused:
        """Hand over the µops of an instruction that is macro-fused with the branch behind it."""
        if first.row is None or branch.row is None:
            return Fused(-1, ())
        slots = {name: number for number, name in enumerate(first.registers)}
        uses = _fused_uses(first.instruction, first.row, branch.row)
        both = parts_of(first.instruction, first.row, branch.row, self._pipeline(), self.model.switches)
        return Fused(self._add_parts(both, uses, slots), tuple([self._mask(use) for use in uses]))

    def instruction(self, shape: Shape, layout: Iterable[int], resources: Iterable[int]) -> int:
        """Hand over an instruction; its number.

        Args:
            shape: of it.
            layout: its length, the place of its opcode, whether it has a length-changing prefix, or an immediate of 8
                bytes.
            resources: the number of the resource in each slot, as `Shared.number`; -1 where the slot does not apply.
        """
        numbers = array("i", (shape.number, shape.parts, *layout, *resources))
        return _checked(self._library.km_add_instruction(self._handle, *numbers.buffer_info()))

    def block(
        self,
        instructions: Sequence[int],
        unrolled: bool,
        offset: int,
        fused_parts: int,
        links: Sequence[Forwarding],
        simulated_links: Sequence[Forwarding],
    ) -> Answer | None:
        """What bounds a block; None for one of more port sets or µops than the engine counts.

        Args:
            instructions: their numbers.
            unrolled: whether the block is repeated as copies one behind the other, else as a loop.
            offset: address of the first byte.
            fused_parts: of the last two instructions where they may macro-fuse, -1 elsewhere.
            links: which stores feed which loads; simulated_links: by the policy of the pipeline.
        """
        given = array("i", (unrolled, offset, fused_parts, len(links), len(simulated_links), *instructions))
        feeding = array("i")
        for link in (*links, *simulated_links):
            feeding.extend((*link.store, *link.load, link.passes, link.whole))
        result = self._library.km_block(self._handle, *_sized(given), _place(feeding), *self._results)
        if result == _BEYOND:
            return None
        _checked(result)
        numbers, cycles = self._numbers[:_STALLS_END].tolist(), self._cycles.tolist()
        return Answer._make((*numbers[:20], numbers[_STALLS_PLACE:], cycles[:-2], cycles[-2], cycles[-1]))

    def cycle(self, length: int) -> list[tuple[Edge, tuple[int, int], tuple[int, int]]]:
        """The slowest cycle of the latest block: each edge, and instruction and value at its source and target."""
        numbers, latencies = array("i", bytes(4 * _CYCLE_NUMBERS * length)), array("d", bytes(8 * length))
        self._library.km_cycle(self._handle, _place(numbers), _place(latencies))
        found = []
        for number, latency in enumerate(latencies):
            place = _CYCLE_NUMBERS * number
            source, owner, value, target, fed, made, passes = numbers[place : place + _CYCLE_NUMBERS]
            found.append((Edge(source, target, latency, passes), (owner, value), (fed, made)))
        return found

    def program(self) -> Program:
        """The input of the simulation of the latest block, as the engine made it, without the floor."""
        numbers = _core(self._pipeline(), self.model.switches)
        self._library.km_program(self._handle, _place(numbers), *(None,) * 6)
        core = Core.of(numbers)
        lengths = (
            9 * core.units,
            2 * core.entries,
            core.slots + 1,
            7 * (core.microops + 1),
            3 * core.waits,
            core.schedule,
        )
        pieces = [array("i", bytes(4 * length)) for length in lengths]
        self._library.km_program(self._handle, _place(numbers), *(_place(piece) for piece in pieces))
        return Program._make((core, *pieces, 0.0))

    def ports(self, mask: int) -> tuple[str, ...]:
        """The ports of a mask, in the order of display."""
        found = self._named.get(mask)
        if found is None:
            found = self._named[mask] = tuple(port for port, bit in self._masks.items() if mask & bit)
        return found

    def _mask(self, use: PortUse) -> int:
        mask = 0
        for port in use.ports:
            mask |= self._masks[port]
        return mask

    def _pipeline(self) -> PipelineCore:
        if self.model.pipeline is None or self.model.front is None:
            raise ValueError("the core has no figures of its pipeline")
        return self.model.pipeline

    def _template(
        self, instruction: Instruction, row: InstructionData | None, flow: DataFlow, slots: dict[str, int]
    ) -> tuple[array[int], array[float], tuple[str, ...]]:
        """The numbers and times of a template, and the jumps that it fuses with; new registers get slots."""
        front = self.model.front
        cost = _NO_COST if row is None or front is None else instruction_cost(instruction, row, front)
        moves = moves_stack(instruction)
        jumps = sum(1 << self._jump(name) for name in cost.fusible_with if self._jump(name) >= 0)
        conditional = instruction.branch == "conditional"
        measured = row.throughput if row is not None else None
        numbers = array("i", (row is not None, *cost[:6], bool(cost.fusible_with)))
        numbers.extend((_signed(jumps), _signed(jumps >> 32)))
        numbers.extend(
            (
                1 if conditional else 2 * bool(instruction.branch),
                self._jump(instruction.mnemonic) if conditional else -1,
            )
        )
        barred = front is not None and bars_lsd(instruction, front)
        numbers.extend((moves, *uses_of_rsp(instruction, moves), barred, 0, measured is not None))
        times = array("d", (measured or 0.0,))
        self._pack_uses(_uses(instruction, row), numbers, times)
        _pack_flow(flow, slots, numbers, times)
        return numbers, times, cost.fusible_with

    def _jump(self, mnemonic: str) -> int:
        number = self._jumps.setdefault(mnemonic, len(self._jumps))
        return number if number < _MOST_JUMPS else -1

    def _pack_uses(self, uses: Sequence[PortUse], numbers: array[int], times: array[float]) -> None:
        numbers.append(len(uses))
        for use in uses:
            numbers.extend((self._mask(use), bool(use.ports) and use.ports[0].endswith(_DIVIDER)))
            times.append(use.cycles)

    def _add_parts(self, parts: Parts, uses: Sequence[PortUse], slots: dict[str, int]) -> int:
        """Hand over µops, with their port usage where they are those of a macro-fused pair."""
        numbers, times = array("i", (0, parts.chaseable, parts.pointer)), array("d")
        _pack_parts(parts, self._pipeline(), slots, numbers)
        numbers[0] = len(slots)
        self._pack_uses(uses, numbers, times)
        return _checked(self._library.km_add_parts(self._handle, *_sized(numbers), *_sized(times)))


_SLOTS_PLACE = 16
"""Where the number of slots stands in a template."""
_NO_COST = Cost(0, 0, 0, False, 0, False, ())


@cache
def _engine() -> ctypes.CDLL | None:
    """The library with the signatures of the functions called here."""
    found = library()
    if found is None:
        return None
    pointer, number, size = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    sized = (pointer, size)
    signatures: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "km_new": (pointer, sized * 4),
        "km_free": (None, (pointer,)),
        "km_add_template": (number, (pointer, *sized, *sized)),
        "km_add_parts": (number, (pointer, *sized, *sized)),
        "km_add_instruction": (number, (pointer, *sized)),
        "km_block": (number, (pointer, *sized, pointer, pointer, pointer)),
        "km_cycle": (None, (pointer,) * 3),
        "km_program": (None, (pointer,) * 8),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def analyser_of(model: CoreModel, shared: Shared) -> Analyser | None:
    """The engine for a core; None where it was not built, or does not know the core.

    That has no figures of front end and pipeline, more ports than a mask holds, or tells displacements apart where
    instructions of one shape differ.
    """
    pipeline = model.pipeline
    if model.front is None or pipeline is None or len(model.parameters.ports) > _MOST_PORTS:
        return None
    if pipeline.pointer_saving and pipeline.pointer_reach not in (None, NEAR):
        return None
    engine = _engine()
    return None if engine is None else Analyser(model, model.front, pipeline, engine, shared)


def _place(numbers: array[int] | array[float]) -> int:
    return numbers.buffer_info()[0]


def _sized(numbers: array[int] | array[float]) -> tuple[int, int]:
    return numbers.buffer_info()


def _checked(result: int) -> int:
    """The result of a call of the engine.

    Raises:
        MemoryError: there is not enough.
        ValueError: what was handed over does not hold together.
    """
    if result == -1:
        raise MemoryError("the in-core engine needs more memory")
    if result < 0:
        raise ValueError("the in-core engine was given numbers that do not hold together")
    return result


def _signed(mask: int) -> int:
    """The lowest 32 bits as a signed number."""
    low = mask & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _figures(model: CoreModel, front: FrontEndParameters, pipeline: PipelineCore) -> Sequence[int]:
    """The figures in the order of `Figures` in native/block.h."""
    switches: Switches = model.switches
    synchronise = 0
    for number, port in enumerate(pipeline.ports):
        synchronise |= (port in pipeline.synchronise_ports) << number
    return (
        front.decoders,
        front.fusible_last,
        front.fusion_line_bytes,
        front.predecode_width,
        front.predecode_bytes,
        front.prefix_cycles,
        front.issue_width,
        front.dsb_width,
        front.dsb_bytes,
        front.dsb_line_bytes,
        pipeline.dsb_ends,
        front.jcc_bytes or 0,
        front.idq_uops,
        front.lsd,
        switches.front_end,
        switches.partial_erratum,
        switches.group_boundary,
        switches.synchronisation,
        synchronise,
        pipeline.pointer_saving if switches.pointer_chasing else 0,
        switches.blocked_loads,
        pipeline.blocked_load,
        switches.store_address,
        pipeline.forward_latency,
        pipeline.forward_address,
        model.graph.memory == "stack",
        model.graph.shortest is not None,
        pipeline.dsb_line_uops,
        pipeline.dsb_block_lines,
        pipeline.synchronise_latency,
    )


def _times(model: CoreModel) -> array[float]:
    graph = model.graph
    return array("d", (graph.synchronise, graph.forward, graph.shortest or 0.0, graph.flows.pointer_saving))


def _core(pipeline: PipelineCore, switches: Switches) -> array[int]:
    return core_of(pipeline, switches)._replace(**LIMITS._asdict()).numbers()


def _uses(instruction: Instruction, row: InstructionData | None) -> tuple[PortUse, ...]:
    return () if row is None or at_rename(instruction, row) else row.ports


def _fused_uses(instruction: Instruction, row: InstructionData, branch: InstructionData) -> tuple[PortUse, ...]:
    return () if at_rename(instruction, row) else without_compare(row.ports, branch.ports)


def _pack_flow(flow: DataFlow, slots: dict[str, int], numbers: array[int], times: array[float]) -> None:
    slot: Callable[[str], int] = lambda name: slots.setdefault(name, len(slots))  # noqa: E731
    numbers.append(len(flow.carriers))
    numbers.extend([carrier.startswith(MEMORY) for carrier in flow.carriers])
    numbers.append(len(flow.waits))
    for value, resource, cycles in flow.waits:
        numbers.extend((value, slot(resource)))
        times.append(cycles)
    numbers.append(len(flow.inner))
    for load, value, cycles in flow.inner:
        numbers.extend((load, value))
        times.append(cycles)
    given = [(slot(resource), value) for resources, value in flow.gives for resource in resources]
    numbers.append(len(given))
    for pair in given:
        numbers.extend(pair)
    special = flow.special
    if special is None:
        numbers.extend((0, 0, 0, 0, 0, -1, 0, 0, 0))
        times.append(0.0)
        return
    stack = (special.uses_stack, special.moves_stack, special.reads_stack, special.writes_stack)
    pointer = -1 if special.pointer is None or special.pointer >= len(flow.carriers) else special.pointer
    numbers.extend((1, *stack, pointer, special.copies))
    times.append(special.saves)
    numbers.append(len(special.loads))
    for place, cycles in special.loads:
        numbers.append(place)
        times.append(cycles)
    numbers.append(len(special.stores))
    for store in special.stores:
        numbers.extend(store)


def _pack_parts(parts: Parts, core: PipelineCore, slots: dict[str, int], numbers: array[int]) -> None:
    bits = {port: 1 << number for number, port in enumerate(core.ports)}
    numbers.append(len(parts.parts))
    for part in parts.parts:
        ports = 0
        for port in part.ports:
            ports |= bits[port]
        numbers.extend((part.role == "move", scheduler_of(part.role, core), ports, *part[2:6], len(part.reads)))
        for resource, cycles in part.reads:
            numbers.extend((slots.setdefault(resource, len(slots)), cycles))
        _pack_inside(part.inside, numbers)
    numbers.append(len(parts.slots))
    for members in parts.slots:
        numbers.append(len(members))
        numbers.extend(members)
    numbers.append(len(parts.results))
    for resource, waits in parts.results:
        numbers.append(slots.setdefault(resource, len(slots)))
        _pack_inside(waits, numbers)
    numbers.append(len(parts.loads))
    for load in parts.loads:
        numbers.extend(load)
    numbers.append(len(parts.stores))
    for place, data, address, forward in parts.stores:
        numbers.extend((place, data, -1 if address is None else address, forward))


def _pack_inside(waits: Sequence[tuple[int, int]], numbers: array[int]) -> None:
    numbers.append(len(waits))
    for wait in waits:
        numbers.extend(wait)
