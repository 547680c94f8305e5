"""The engine in plain Python: what the compiled one does, on the same templates, to read and to hold it against.

It serves where no compiler was there, and for blocks of more µops or sets of ports than the compiled engine counts.
Which parts of the front end a block meets is what the fetch of the simulation says, which knows more reasons than
Facile for code to miss the µop cache and the loop buffer. Times are cycles per pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernmodel.incore.dependences.cycles import Cycle, Edge, maximum_cycle_ratio
from kernmodel.incore.engine.fetch import fetch_of, op_cache_fetch
from kernmodel.incore.engine.interface import Answer, BlockGraph, Look, Program
from kernmodel.incore.engine.joined_graph import JoinedGraph
from kernmodel.incore.engine.layout import (
    COMPONENTS,
    DEPENDENCES,
    LINES,
    ON,
    PASSES,
    REASONS,
    SOURCES,
    WITHOUT_PORTS,
    WITHOUT_WAITS,
    Core,
    Entry,
    Request,
    Totals,
    port_mask,
)
from kernmodel.incore.engine.linking import Linked, link
from kernmodel.incore.engine.lowering import DIVIDER_SUFFIX, Pair, Template
from kernmodel.incore.engine.model import Fetch, is_at
from kernmodel.incore.engine.modelled_core import ModelledCore, figures_of, simulated_core
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.engine.simulation import run
from kernmodel.incore.front_end.block import front_end_block
from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.dsb import dsb_bound, erratum_branches
from kernmodel.incore.front_end.issue import entries_bound
from kernmodel.incore.front_end.lsd import lsd_bound
from kernmodel.incore.front_end.mixed import mixed_bound
from kernmodel.incore.front_end.model import FrontEndBlock
from kernmodel.incore.front_end.op_cache import (
    dispatch_bound,
    fetch_bound,
    op_cache_bound,
    op_cache_path,
    touched_lines,
)
from kernmodel.incore.front_end.predecode import predecode_bound
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.core_parameters import FrontEndParameters, OpCacheParameters
from kernmodel.isa.model import Notion
from kernmodel.value_types import NamedTuple

_NO_FETCH = Fetch("ideal", (), 1, 0, False, ())
_Bounds = dict[str, float]


class _Met(NamedTuple):
    """A block as it was met last: what the engine then answers about it."""

    block: FrontEndBlock
    graph: JoinedGraph
    cycle: Cycle | None
    program: Program | None


class PythonEngine:
    """The engine for one core; methods as those of `compiled.CompiledEngine`."""

    __slots__ = ("_core", "_figures", "_instructions", "_latest", "_pairs", "_templates")

    def __init__(self, core: ModelledCore) -> None:
        self._core = core
        self._figures = figures_of(core)
        self._templates: list[Template] = []
        self._pairs: list[Pair] = []
        self._instructions: list[Lowered] = []
        self._latest: _Met | None = None

    def template(self, template: Template) -> tuple[int, int]:
        """Take a template; its number twice, as its µops are in it."""
        self._templates.append(template)
        return len(self._templates) - 1, len(self._templates) - 1

    def pair(self, pair: Pair) -> int:
        """Take a macro-fused pair; its number."""
        self._pairs.append(pair)
        return len(self._pairs) - 1

    def instruction(self, template: tuple[int, int], layout: Sequence[int], resources: Sequence[int]) -> int:
        """Take an instruction; its number."""
        own = self._templates[template[0]]
        length, opcode, prefixed, wide, *constants = layout
        named = dict(zip(own.registers, resources, strict=True))
        self._instructions.append(Lowered(own, named, length, opcode, bool(prefixed), bool(wide), *constants))
        return len(self._instructions) - 1

    def block(self, look: Look, how: Request) -> Answer | None:
        """What bounds a block."""
        instructions = [self._instructions[number] for number in look.instructions]
        pairs = {number: self._pairs[pair] for number, pair in look.pairs}
        notion: Notion = "unrolled" if how.unrolled else "loop"
        block = front_end_block(
            instructions,
            look.places,
            offset=how.offset,
            fusion_line_bytes=self._figures.fusion_line_bytes,
            branch_ends_group=bool(self._figures.branch_ends_group),
            fuses_nops=notion == "loop",
        )
        graph = JoinedGraph(instructions, look.links, self._core.graph)
        cycle = maximum_cycle_ratio(len(graph.owners), graph.edges)
        self._latest = _Met(block, graph, cycle, None)
        if how.scope == DEPENDENCES:
            ratio = {"precedence": cycle.ratio if cycle else 0.0}
            totals = self._totals(instructions, None, _NO_FETCH, notion, how)
            cycles = [ratio.get(name, 0.0) for name in COMPONENTS]
            return Answer(totals._replace(applies=_bits(ratio)), [0] * len(REASONS), cycles, 0.0, 0.0)
        linked, fetch = self._simulated(instructions, pairs, block, graph, look, how)
        applied, idle = self._front_end(block, linked, fetch, notion, how)
        ports, dividers = _uses_of(instructions, pairs, block, look.splits, self._core.pipeline is not None)
        alone, binding = optimal_bound(ports)
        slow = float(sum(i.template.times.throughput for i in instructions))
        applied["ports"] = max(alone, slow)
        divider, binding_divider = optimal_bound(dividers)
        if dividers:
            applied["divider"] = divider
        applied["precedence"] = cycle.ratio if cycle else 0.0
        program = None if linked is None else self._program(linked, fetch, applied, how)
        self._latest = _Met(block, graph, cycle, program)
        simulated = self._simulate(program, applied, how)
        known = self._core.parameters.ports
        totals = self._totals(instructions, linked, fetch, notion, how)._replace(
            applies=_bits(applied),
            idle=_bits(idle),
            ports=port_mask(binding, known),
            divider=port_mask(binding_divider, known) if dividers else 0,
            settled=simulated[0],
            period=simulated[1],
            passes=simulated[2],
            simulated=simulated[3],
        )
        cycles = [applied.get(name, idle.get(name, 0.0)) for name in COMPONENTS]
        return Answer(totals, list(simulated[4 : 4 + len(REASONS)]), cycles, alone, slow)

    def cycle(self, totals: Totals) -> list[tuple[Edge, int, int]]:
        """The slowest cycle of the latest block: each edge, and instruction and value at its source."""
        met = self._met()
        owners, values = met.graph.owners, met.graph.values
        return [(edge, owners[edge.source], values[edge.source]) for edge in (met.cycle.edges if met.cycle else ())]

    def graph(self, totals: Totals) -> BlockGraph:
        """The dependency graph of the latest block, and the first instructions of its fused pairs."""
        met = self._met()
        own = met.graph
        fused = frozenset(unit.number for unit in met.block.units if unit.fused)
        return BlockGraph(tuple(own.owners), tuple(own.values), tuple(own.ready), tuple(own.edges), fused)

    def program(self) -> Program:
        """The input of the simulation of the latest block."""
        program = self._met().program
        if program is None:
            raise ValueError("there is no simulation of the core")
        return program._replace(floor=0.0)

    def _met(self) -> _Met:
        if self._latest is None:
            raise ValueError("no block was looked at")
        return self._latest

    def _simulated(
        self,
        instructions: Sequence[Lowered],
        pairs: Mapping[int, Pair],
        block: FrontEndBlock,
        graph: JoinedGraph,
        look: Look,
        how: Request,
    ) -> tuple[Linked | None, Fetch]:
        """The µops of the block, and how they are fetched."""
        core = self._core
        if core.pipeline is None:
            return None, _NO_FETCH
        uops = {number: pair.uops for number, pair in pairs.items() if pair.uops is not None}
        longer = graph.delays.cycles if graph.delays else lambda source, target: 0.0
        links = look.simulated_links
        linked = link(instructions, block.units, uops, links, core.pipeline, core.switches, longer, look.accesses)
        notion: Notion = "unrolled" if how.unrolled else "loop"
        units, entries = block.units, linked.unit_entries
        if core.op_cache is not None:
            cached = op_cache_path(units, core.op_cache, notion) == "DSB"
            return linked, op_cache_fetch(units, entries, core.op_cache, cached, how.offset)
        if core.front is None:
            return None, _NO_FETCH
        return linked, fetch_of(
            instructions, block, units, entries, core.pipeline.delivery, core.front, notion, how.offset, core.switches
        )

    def _front_end(
        self, block: FrontEndBlock, linked: Linked | None, fetch: Fetch, notion: Notion, how: Request
    ) -> tuple[_Bounds, _Bounds]:
        """The bounds of the parts of the front end that the µops of the block come through, and those of others."""
        core = self._core
        if linked is None or core.front is None:
            return self._widths(block, notion, how.offset, bool(how.all))
        applied: _Bounds = {}
        if block.units and core.switches.front_end:
            applied = self._path(block, fetch, notion, how.offset, core.front)
            applied["issue"] = self._issue(linked.entries, fetch)
        if not how.all or not block.units:
            return applied, {}
        found = _decoding(block, core.front, notion, how.offset)
        if notion == "loop":
            found["DSB"] = self._dsb(block, core.front)
            if core.front.lsd:
                found["LSD"] = lsd_bound(block.units, core.front)
        return applied, {name: cycles for name, cycles in found.items() if name not in applied}

    def _path(
        self, block: FrontEndBlock, fetch: Fetch, notion: Notion, offset: int, front: FrontEndParameters
    ) -> _Bounds:
        erratum = erratum_branches(block.units, front, offset) if notion == "loop" else ()
        if fetch.source == "LSD":
            return {"LSD": lsd_bound(block.units, front)}
        if fetch.source == "decoders":
            return _decoding(block, front, notion, offset)
        if fetch.barred_from == len(block.units):
            return {"DSB": self._dsb(block, front)}
        if erratum:  # lines that the decoders serve, and others that the DSB holds
            return {"decode": mixed_bound(block, block.units, front, offset, erratum)}
        return {}

    def _issue(self, entries: Sequence[Entry], fetch: Fetch) -> float:
        width = self._core.parameters.issue_width
        pipeline = self._core.pipeline
        rounds = fetch.source == "LSD" and self._core.switches.group_boundary
        first = pipeline.unlaminated_first if pipeline else width
        most = pipeline.unlaminated_slots if pipeline else width
        return entries_bound(entries, width, most, first, fetch.copies if rounds else None)

    def _dsb(self, block: FrontEndBlock, front: FrontEndParameters) -> float:
        """The bound of the DSB, after Facile only where it delivers more than is issued.

        Before Skylake it delivers no more, and of 20 short loops for which rounding up decides uiCA contradicts it in
        17: the rest of the block is fetched in the same cycle.
        """
        pipeline = self._core.pipeline
        if pipeline is not None and pipeline.delivery.dsb_ends:
            return dsb_bound(block.units, block.length, front, pipeline.delivery.taken_branches)
        return sum(unit.decoded for unit in block.units) / front.dsb_width

    def _widths(self, block: FrontEndBlock, notion: Notion, offset: int, all_parts: bool) -> tuple[_Bounds, _Bounds]:
        """The same for a core without a simulation: the widths of its parts on Zen; on others no more than the µops
        renamed per cycle, where every instruction takes a slot, also one that needs no port."""
        core = self._core.op_cache
        if core is None:
            return {"issue": sum(unit.slots for unit in block.units) / self._core.parameters.issue_width}, {}
        cached = op_cache_path(block.units, core, notion) == "DSB"
        applied = _delivery(block, core, cached, offset) if self._core.switches.front_end else {}
        applied["issue"] = dispatch_bound(block.units, core)
        found = _delivery(block, core, False, offset)
        found |= _delivery(block, core, True, offset) if notion == "loop" else {}
        return applied, {n: cycles for n, cycles in found.items() if n not in applied} if all_parts else {}

    def _program(self, linked: Linked, fetch: Fetch, applied: _Bounds, how: Request) -> Program:
        pipeline, switches = self._core.pipeline, self._core.switches
        if pipeline is None:
            raise ValueError("there is no simulation of the core")
        microops, waits = linked.microops, linked.waits
        if how.scope == WITHOUT_PORTS:
            microops = tuple([m._replace(ports=0, data=0, alone=0) for m in microops])
        elif how.scope == WITHOUT_WAITS:
            microops, waits = tuple([m._replace(first_wait=0) for m in microops]), ()
        first = [0]
        for count in linked.slots:
            first.append(first[-1] + count)
        schedule = fetch.schedule or (0,)
        core = self._fetching(fetch, simulated_core(pipeline, switches))._replace(
            group_boundary=int(switches.group_boundary and (fetch.source == "LSD" or pipeline.delivery.dsb_ends)),
            copies=fetch.copies,
            barred_from=fetch.barred_from,
            repeats=int(fetch.repeats),
            units=len(fetch.units),
            entries=len(linked.entries),
            slots=len(linked.slots),
            microops=len(microops) - 1,
            waits=len(waits),
            schedule=len(schedule),
            farthest=max([wait.passes for wait in waits], default=0),
            longest=max([wait.cycles for wait in waits], default=0),
        )
        floor = 0.0 if how.scope else max(applied.values())
        return Program(core, fetch.units, linked.entries, tuple(first), microops, waits, schedule, floor)

    def _fetching(self, fetch: Fetch, core: Core) -> Core:
        """The core with what delivers its µops."""
        core = core._replace(source=SOURCES.index(fetch.source))
        zen, cached = self._core.op_cache, fetch.source == "DSB"
        if zen is None:
            return core
        width = (zen.op_cache_width if cached else zen.decoders) if self._core.switches.front_end else None
        if width is None:
            return core._replace(dsb_width=2 * core.issue_width, line_fetch=ON)  # more than is dispatched
        ends = PASSES | LINES if cached and zen.code_line_bytes else 0
        return core._replace(dsb_width=width, line_fetch=ON | ends)

    def _simulate(self, program: Program | None, applied: _Bounds, how: Request) -> tuple[int, ...]:
        """The numbers of the simulation; its bound goes to the others."""
        if program is None or not program.core.slots:
            return (0,) * (4 + len(REASONS))
        found = run(program)
        settled, period, passes = found[:3]
        cycles = period / max(passes, 1)
        mean = not settled and not how.scope and is_at(program.floor, cycles)
        applied["pipeline"] = program.floor if mean else cycles
        return found

    def _code_lines(self, length: int, offset: int) -> int:
        line = self._core.op_cache and self._core.op_cache.code_line_bytes
        return touched_lines(length, offset, line) if line else 0

    def _totals(
        self, instructions: Sequence[Lowered], linked: Linked | None, fetch: Fetch, notion: Notion, how: Request
    ) -> Totals:
        met = self._met()
        block, units, graph, edges = met.block, met.block.units, met.graph, met.cycle.edges if met.cycle else ()
        in_memory = [graph.values[e.source] >= 0 and _in_memory(graph, instructions, e.source) for e in edges]
        front, source = self._core.front, fetch.source
        if self._core.op_cache is not None:
            source = op_cache_path(units, self._core.op_cache, notion)
        erratum = erratum_branches(units, front, how.offset) if front and notion == "loop" else ()
        simulated = linked is not None
        return Totals(
            applies=0,
            idle=0,
            units=len(units),
            complex_units=sum(unit.complex for unit in units),
            decoded=sum(unit.decoded for unit in units),
            slots=sum(unit.slots for unit in units),
            entries=sum(entry.slots for entry in linked.entries) if linked else 0,
            synchronisations=block.synchronisations if simulated else 0,
            erratum=len(erratum),
            length=block.length,
            prefixed=len(block.prefixed),
            constants=sum(unit.constants for unit in units),
            code_lines=self._code_lines(block.length, how.offset),
            source=SOURCES.index(source),
            copies=fetch.copies,
            barred_from=fetch.barred_from,
            fused=sum(unit.fused for unit in units),
            cycle_length=len(edges),
            cycle_passes=sum(edge.passes for edge in edges),
            through_memory=any(in_memory),
            ports=0,
            divider=0,
            vertices=len(graph.owners),
            edges=len(graph.edges),
            settled=0,
            period=0,
            passes=0,
            simulated=0,
        )


def _in_memory(graph: JoinedGraph, instructions: Sequence[Lowered], vertex: int) -> bool:
    carrier = instructions[graph.owners[vertex]].template.flow.carriers[graph.values[vertex]]
    return not isinstance(carrier, str)


def _decoding(block: FrontEndBlock, front: FrontEndParameters, notion: Notion, offset: int) -> _Bounds:
    return {"predecode": predecode_bound(block, front, notion, offset), "decode": decode_bound(block.units, front)}


def _delivery(block: FrontEndBlock, core: OpCacheParameters, cached: bool, offset: int) -> _Bounds:
    """The bounds of the parts on one path to dispatch, as far as their widths are known."""
    found = (
        {"DSB": op_cache_bound(block.units, core, block.length, offset)}
        if cached
        else {"predecode": fetch_bound(block.length, core), "decode": decode_bound(block.units, core)}
    )
    return {name: cycles for name, cycles in found.items() if cycles is not None}


def _uses_of(
    instructions: Sequence[Lowered],
    pairs: Mapping[int, Pair],
    block: FrontEndBlock,
    shares: Sequence[float],
    apart: bool,
) -> tuple[list[PortUse], list[PortUse]]:
    """The port usage of the block: that of ports and, `apart`, that of dividers."""
    fused = {unit.number for unit in block.units if unit.fused}
    ports: list[PortUse] = []
    dividers: list[PortUse] = []
    for number, instruction in enumerate(instructions):
        if number - 1 in fused and pairs[number - 1].keeps_ports:
            continue
        own: Template | Pair = pairs[number] if number in fused else instruction.template
        for use, split in zip(own.uses, own.splits, strict=True):
            share = shares[number] if shares else 0.0
            divides = apart and use.ports and use.ports[0].endswith(DIVIDER_SUFFIX)
            (dividers if divides else ports).append(PortUse(use.ports, use.cycles + share * split))
    return ports, dividers


def _bits(names: Mapping[str, float]) -> int:
    return sum(1 << COMPONENTS.index(name) for name in names)
