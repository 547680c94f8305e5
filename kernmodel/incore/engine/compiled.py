"""The compiled engine, reached by ctypes: the shared library beside this file, made from `native/`.

Templates and instructions are handed over once, as packed numbers, and blocks as the sequence of their instructions.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from kernmodel.engines import ENDING, load_engine
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.data_flow import DataFlow
from kernmodel.incore.engine.interface import Answer, BlockGraph, Look, Program
from kernmodel.incore.engine.layout import (
    COMPONENTS,
    PORTS,
    REASONS,
    Core,
    Entry,
    FetchUnit,
    MicroOp,
    Request,
    Totals,
    Wait,
)
from kernmodel.incore.engine.lowering import DIVIDER_SUFFIX, Pair, Template
from kernmodel.incore.engine.modelled_core import ModelledCore, figures_of, simulated_core, times_of
from kernmodel.incore.engine.uops import InstructionUops

_Row = TypeVar("_Row")
LIBRARY_NAME = "_pipeline" + ENDING
_MOST_PORTS = 31
_BEYOND = -3
_TOTALS = len(Totals._fields)
_CYCLES = len(COMPONENTS)


@cache
def library() -> ctypes.CDLL | None:
    """The library with the signatures of its functions, None where it was not built or is of other sources."""
    found = load_engine(Path(__file__).with_name(LIBRARY_NAME))
    if found is None:
        return None
    pointer, number, size = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    sized = (pointer, size)
    signatures: Mapping[str, tuple[object, tuple[object, ...]]] = {
        "km_pipeline": (number, (*(pointer,) * 7, ctypes.c_double, pointer)),
        "km_new": (pointer, sized * 4),
        "km_free": (None, (pointer,)),
        "km_add_template": (number, (pointer, *sized, *sized)),
        "km_add_uops": (number, (pointer, *sized, *sized)),
        "km_add_instructions": (number, (pointer, *sized)),
        "km_block": (number, (pointer, *sized, *(pointer,) * 4)),
        "km_graph": (None, (pointer,) * 6),
        "km_cycle": (None, (pointer,) * 3),
        "km_program": (None, (pointer,) * 8),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def knows(core: ModelledCore) -> bool:
    """Whether the compiled engine is there and a set of the core's ports fits into a number."""
    return len(core.parameters.ports) <= _MOST_PORTS and library() is not None


class CompiledEngine:
    """The engine for one core, in memory that is free when this object goes."""

    __slots__ = ("__weakref__", "_core", "_cycles", "_given", "_handle", "_library", "_new", "_numbers", "_results")

    def __init__(self, core: ModelledCore) -> None:
        engine = library()
        if engine is None:
            raise ValueError("the compiled in-core engine was not built")
        self._core = core
        self._library = engine
        self._new: list[int] = []  # instructions that the library does not have yet
        self._given = 0
        self._numbers = array("q", bytes(8 * (_TOTALS + len(REASONS))))
        self._cycles = array("d", bytes(8 * (_CYCLES + 2)))
        self._results = (_place(self._numbers), _place(self._cycles))
        lsd = core.front.lsd_copies if core.front else {}
        copies = [lsd.get(uops, 1) for uops in range(max(lsd, default=0) + 1)]
        pipeline = core.pipeline
        simulated = Core() if pipeline is None else simulated_core(pipeline, core.switches)
        whole = (*_sized(figures_of(core)), *_sized(simulated.numbers()))
        self._handle = engine.km_new(*whole, *_sized(times_of(core), "d"), *_sized(copies))
        if not self._handle:
            raise ValueError(f"the figures of {core.parameters.name} make no sense to the in-core engine")
        weakref.finalize(self, engine.km_free, self._handle)

    def template(self, template: Template) -> tuple[int, int]:
        """Hand over a template: its number, and that of its µops, -1 for none."""
        slots = {name: number for number, name in enumerate(template.registers)}
        numbers, times = list[int](template.traits), list[float](template.times)
        self._pack_uses(template, numbers, times)
        _pack_flow(template.flow, slots, numbers, times)
        number = _checked(self._library.km_add_template(self._handle, *_sized(numbers), *_sized(times, "d")))
        return number, -1 if template.uops is None else self._uops(template.uops, slots, None)

    def pair(self, pair: Pair) -> int:
        """Hand over a macro-fused pair: the number of its µops."""
        slots = {name: number for number, name in enumerate(pair.registers)}
        return self._uops(pair.uops, slots, pair)

    def instruction(self, template: tuple[int, int], layout: Sequence[int], resources: Sequence[int]) -> int:
        """Take an instruction, which is handed over with the next block; its number.

        Args:
            template: as `template` gave it.
            layout: its length, the place of its opcode, whether it has a length-changing prefix, or an immediate of 8
                bytes, and its constants and long constants.
            resources: the number of each resource that its template names, 0 for the stack pointer; -1 for none.
        """
        self._new += (*template, *layout, *resources)
        self._given += 1
        return self._given - 1

    def block(self, look: Look, how: Request) -> Answer | None:
        """What bounds a block; None for one of more port sets or µops than the engine counts."""
        if self._new:
            _checked(self._library.km_add_instructions(self._handle, *_sized(self._new)))
            self._new = []
        pairs = [number for pair in look.pairs for number in pair]
        given = [*how, *look.instructions, *pairs, *look.places]
        for access in look.accesses:
            given += access
        feeding: list[int] = []
        for link in (*look.links, *look.simulated_links) if look.links or look.simulated_links else ():
            feeding += (*link.store, *link.load, link.passes, link.whole, link.cycles)
        shares = _packed(look.splits, "d") if look.splits else None
        result = self._library.km_block(self._handle, *_sized(given), _packed(feeding), shares, *self._results)
        if result == _BEYOND:
            return None
        _checked(result)
        numbers, cycles = self._numbers.tolist(), self._cycles.tolist()
        totals = Totals._make(numbers[:_TOTALS])
        return Answer(totals, numbers[_TOTALS:], cycles[:_CYCLES], cycles[_CYCLES], cycles[_CYCLES + 1])

    def cycle(self, totals: Totals) -> list[tuple[Edge, int, int]]:
        """The slowest cycle of the latest block: each edge, and instruction and value at its source."""
        length = totals.cycle_length
        numbers, latencies = array("i", bytes(20 * length)), array("d", bytes(8 * length))
        self._library.km_cycle(self._handle, _place(numbers), _place(latencies))
        found = []
        for number, latency in enumerate(latencies):
            source, owner, value, target, passes = numbers[5 * number : 5 * number + 5]
            found.append((Edge(source, target, latency, passes), owner, value))
        return found

    def graph(self, totals: Totals) -> BlockGraph:
        """The dependency graph of the latest block, and the first instructions of its fused pairs."""
        vertices, ready = array("i", bytes(8 * totals.vertices)), array("d", bytes(8 * totals.vertices))
        edges, latencies = array("i", bytes(12 * totals.edges)), array("d", bytes(8 * totals.edges))
        fused = array("i", bytes(4 * totals.fused))
        self._library.km_graph(self._handle, *[_place(part) for part in (vertices, ready, edges, latencies, fused)])
        made = zip(edges[::3], edges[1::3], latencies, edges[2::3], strict=True)
        return BlockGraph(
            tuple(vertices[::2]), tuple(vertices[1::2]), tuple(ready), tuple(map(Edge._make, made)), frozenset(fused)
        )

    def program(self) -> Program:
        """The input of the simulation of the latest block."""
        numbers = Core().numbers()
        self._library.km_program(self._handle, _place(numbers), *(None,) * 6)
        core = Core.of(numbers)
        unit, microop = len(FetchUnit._fields), len(MicroOp._fields)
        wait, entry = len(Wait._fields), len(Entry._fields)
        sizes = (unit * core.units, entry * core.entries, core.slots + 1, microop * (core.microops + 1))
        parts = [array("i", bytes(4 * size)) for size in (*sizes, wait * core.waits, core.schedule)]
        self._library.km_program(self._handle, _place(numbers), *(_place(part) for part in parts))
        units, entries, first_microop, microops, waits, schedule = parts
        return Program(
            core,
            _rows(FetchUnit, unit, units),
            _rows(Entry, entry, entries),
            tuple(first_microop),
            _rows(MicroOp, microop, microops),
            _rows(Wait, wait, waits),
            tuple(schedule),
        )

    def _uops(self, uops: InstructionUops | None, slots: Mapping[str, int], pair: Pair | None) -> int:
        numbers, times = [len(slots)], list[float]()
        _pack_uops(uops, self._core, slots, numbers)
        self._pack_uses(pair, numbers, times)
        numbers.append(pair is not None and pair.keeps_ports)
        return _checked(self._library.km_add_uops(self._handle, *_sized(numbers), *_sized(times, "d")))

    def _pack_uses(self, own: Template | Pair | None, numbers: list[int], times: list[float]) -> None:
        if own is None:
            numbers.append(0)
            return
        numbers.append(len(own.uses))
        for use, mask, split in zip(own.uses, own.masks, own.splits, strict=True):
            divides = self._core.pipeline is not None and bool(use.ports) and use.ports[0].endswith(DIVIDER_SUFFIX)
            numbers += (mask, divides)
            times += (use.cycles, split)


def simulate(program: Program) -> tuple[int, ...] | None:
    """The numbers of `simulation.run`, by the library; None where it was not built.

    Raises:
        MemoryError: there is not enough memory.
    """
    engine = library()
    if engine is None:
        return None
    result = array("q", bytes(8 * (4 + len(REASONS) + PORTS)))
    numbers = [program.core.numbers(), *(_flat(part) for part in program[1:-1])]
    if engine.km_pipeline(*[_place(part) for part in numbers], program.floor, _place(result)):
        raise MemoryError("the pipeline simulation needs more memory")
    return tuple(result)


def _flat(part: Sequence[int] | Sequence[tuple[int, ...]]) -> array[int]:
    numbers = array("i")
    for item in part:
        numbers.extend(item if isinstance(item, tuple) else (item,))
    return numbers


def _rows(kind: Callable[..., _Row], width: int, numbers: array[int]) -> tuple[_Row, ...]:
    return tuple([kind(*numbers[k : k + width]) for k in range(0, len(numbers), width)])


def _place(numbers: array[int] | array[float]) -> int:
    return numbers.buffer_info()[0]


def _sized(numbers: Sequence[float], kind: str = "i") -> tuple[bytes, int]:
    return _packed(numbers, kind), len(numbers)


def _packed(numbers: Sequence[float], kind: str = "i") -> bytes:
    return _packer(len(numbers), kind)(*numbers)


@cache
def _packer(count: int, kind: str) -> Callable[..., bytes]:
    """Packs so many numbers of a kind of C: an array looks at each of them three times as long."""
    return struct.Struct(f"{count}{kind}").pack


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


def _pack_flow(flow: DataFlow, slots: Mapping[str, int], numbers: list[int], times: list[float]) -> None:
    numbers.append(len(flow.carriers))
    numbers += [not isinstance(carrier, str) for carrier in flow.carriers]
    times += flow.entry
    numbers.append(len(flow.waits))
    for value, resource, cycles in flow.waits:
        numbers += (value, slots[resource])
        times.append(cycles)
    numbers.append(len(flow.inner))
    for load, value, cycles in flow.inner:
        numbers += (load, value)
        times.append(cycles)
    given = [(slots[resource], value) for resources, value in flow.gives for resource in resources]
    numbers.append(len(given))
    for pair in given:
        numbers += pair
    loads, stores = (flow.special.loads, flow.special.stores) if flow.special is not None else ((), ())
    numbers.append(len(loads))
    for place, cycles in loads:
        numbers.append(place)
        times.append(cycles)
    numbers.append(len(stores))
    for store in stores:
        numbers += store


def _pack_uops(uops: InstructionUops | None, core: ModelledCore, slots: Mapping[str, int], numbers: list[int]) -> None:
    if uops is None or core.pipeline is None:
        numbers += (0,) * 7
        return
    numbers += (uops.chaseable, uops.pointer, len(uops.uops))
    for uop in uops.uops:
        numbers += (*uop.traits(core.pipeline), len(uop.reads))
        for resource, cycles in uop.reads:
            numbers += (slots[resource], cycles)
        _pack_inside(uop.inside, numbers)
    numbers.append(len(uops.slots))
    for members in uops.slots:
        numbers.append(len(members))
        numbers += members
    numbers.append(len(uops.results))
    for resource, waits in uops.results:
        numbers.append(slots[resource])
        _pack_inside(waits, numbers)
    numbers.append(len(uops.loads))
    for load in uops.loads:
        numbers += load
    numbers.append(len(uops.stores))
    for place, data, address, forward in uops.stores:
        numbers += (place, data, -1 if address is None else address, forward)


def _pack_inside(waits: Sequence[tuple[int, int]], numbers: list[int]) -> None:
    numbers.append(len(waits))
    for wait in waits:
        numbers += wait
