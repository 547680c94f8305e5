"""µops made by hand or of code, simulated by either engine, and predictors with either one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple

import pytest
from facile import lowered

from kernmodel.incore.answer.predictor import Predictor
from kernmodel.incore.core import Core, Settings
from kernmodel.incore.dependences.forwarding import links
from kernmodel.incore.engine import analyser, compiled, layout
from kernmodel.incore.engine.analyser import Analyser, places_of
from kernmodel.incore.engine.fetch import fetch_of
from kernmodel.incore.engine.interface import Program
from kernmodel.incore.engine.joined_graph import JoinedGraph
from kernmodel.incore.engine.layout import REASONS, SOURCES, Entry, Wait, port_mask
from kernmodel.incore.engine.linking import _Linker
from kernmodel.incore.engine.model import LIMITS, Fetch, Limits, PipelineCore, Role, Switches, is_at
from kernmodel.incore.engine.modelled_core import ModelledCore, simulated_core
from kernmodel.incore.engine.simulation import run
from kernmodel.incore.front_end.block import front_end_block
from kernmodel.incore.model import InstructionData
from kernmodel.isa.model import Instruction, Notion

Engine = Literal["compiled", "python"]


def predictor(core: str, settings: Settings, engine: Engine) -> Predictor:
    """A predictor with this engine, the compiled one where it was built."""
    with pytest.MonkeyPatch.context() as patch:
        if engine == "python":
            patch.setattr(analyser, "knows", lambda model: False)
        return Predictor(Core.open(core, settings), settings)


class MicroOp(NamedTuple):
    """One µop of a block, as `layout.MicroOp`, with the names of its ports, and all that it waits for."""

    role: Role
    ports: tuple[str, ...]
    latency: int
    divider: int
    data: int
    alone: int
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class PipelineInput:
    """A block as a core's pipeline sees it; `slots`: µops per issue slot."""

    core: PipelineCore
    microops: tuple[MicroOp, ...]
    slots: tuple[int, ...]
    entries: tuple[Entry, ...]
    fetch: Fetch
    switches: Switches


@dataclass(frozen=True, slots=True)
class Simulated:
    """What the simulation says: cycles per pass, passes of the period, cycles in all, stalls, µops by port."""

    cycles_per_pass: Fraction
    settled: bool
    period: int
    simulated: int
    stalls: Mapping[str, float]
    dispatched: Mapping[str, int]

    def cycles_above(self, floor: float) -> float:
        """Cycles per pass; a mean that is that of the slowest part to one percent is taken for it."""
        cycles = float(self.cycles_per_pass)
        return floor if not self.settled and is_at(floor, cycles) else cycles

    @property
    def port_cycles(self) -> dict[str, Fraction]:
        """µops dispatched per pass, by port."""
        return {port: Fraction(count, self.period) for port, count in self.dispatched.items()}


def pipeline_input(
    instructions: Sequence[Instruction],
    rows: Sequence[InstructionData | None],
    core: ModelledCore,
    notion: Notion,
    offset: int = 0,
) -> PipelineInput:
    """A block as the twin of the engine joins it, with the roles of its µops."""
    pipeline, front, switches = core.pipeline, core.front, core.switches
    assert pipeline is not None and front is not None
    analyser = Analyser(core)
    own = lowered(instructions, rows, analyser)
    block = front_end_block(own, places_of(instructions), offset=offset, fusion_line_bytes=front.fusion_line_bytes)
    pairs = [analyser.lowering.pair(first.template, branch.template) for first, branch in pairwise(own)]
    graph = JoinedGraph(own, (), core.graph)
    linker = _Linker(pipeline, switches, graph.delays.cycles if graph.delays else lambda source, target: 0.0)
    ahead = False
    for traits in [own[unit.number].template.traits for unit in block.units]:
        ahead = bool(traits.moves_stack) or (ahead and not traits.reads_stack and not traits.writes_stack)
    linker.dirty = ahead and switches.synchronisation
    for unit in block.units:
        pair = pairs[unit.number] if unit.fused else None
        uops = pair.uops if pair is not None else own[unit.number].template.uops
        assert uops is not None
        linker.add(unit, own[unit.number], uops)
    linker.close(links(instructions, switches.memory))
    numbers, waits = linker.microops()
    microops = []
    for number, (first, behind) in zip(linker.order, pairwise(numbers), strict=True):
        uop = linker.uops[number][1]
        waited = waits[first.first_wait : behind.first_wait]
        microops.append(MicroOp(uop.role, uop.ports, uop.latency, uop.divider, uop.data, uop.alone, waited))
    fetch = fetch_of(own, block, block.units, linker.unit_entries, pipeline.delivery, front, notion, offset, switches)
    return PipelineInput(pipeline, tuple(microops), tuple(linker.slots), tuple(linker.entries), fetch, switches)


def program_of(block: PipelineInput, limits: Limits = LIMITS, floor: float = 0.0) -> Program:
    """The block in numbers."""
    first = [0]
    for count in block.slots:
        first.append(first[-1] + count)
    microops, waits = [], []
    for own in block.microops:
        scheduler = 1 if own.role == "load" and block.core.load_scheduler else 0
        if own.role in ("store address", "store data") and block.core.store_scheduler:
            scheduler = 2
        mask = port_mask(own.ports, block.core.ports)
        microops.append(layout.MicroOp(mask, own.latency, own.divider, own.data, own.alone, len(waits), scheduler))
        waits += own.waits
    microops.append(layout.MicroOp(0, 0, 0, 0, 0, len(waits), 0))
    fetch, switches = block.fetch, block.switches
    core = simulated_core(block.core, switches)._replace(
        group_boundary=int(switches.group_boundary and (fetch.source == "LSD" or block.core.delivery.dsb_ends)),
        source=SOURCES.index(fetch.source),
        copies=fetch.copies,
        barred_from=fetch.barred_from,
        repeats=int(fetch.repeats),
        units=len(fetch.units),
        entries=len(block.entries),
        slots=len(block.slots),
        microops=len(block.microops),
        waits=len(waits),
        schedule=len(fetch.schedule) or 1,
        farthest=max((wait.passes for wait in waits), default=0),
        longest=max((wait.cycles for wait in waits), default=0),
        **limits._asdict(),
    )
    schedule = fetch.schedule or (0,)
    return Program(core, fetch.units, block.entries, tuple(first), tuple(microops), tuple(waits), schedule, floor)


def simulate(
    block: PipelineInput, *, engine: Engine = "python", limits: Limits = LIMITS, floor: float = 0.0
) -> Simulated:
    """Execute a block over and over until the state of the pipeline repeats."""
    if not block.slots:
        return Simulated(Fraction(0), True, 0, 0, {}, {})
    program = program_of(block, limits, floor)
    found = run(program) if engine == "python" else compiled.simulate(program)
    if found is None:
        pytest.skip("the compiled engine was not built")
    settled, cycles, passes, total, *counts = found
    passes = max(passes, 1)
    return Simulated(
        cycles_per_pass=Fraction(cycles, passes),
        settled=bool(settled),
        period=passes,
        simulated=total,
        stalls={reason: count / max(cycles, 1) for reason, count in zip(REASONS, counts, strict=False)},
        dispatched=dict(zip(block.core.ports, counts[len(REASONS) :], strict=False)),
    )
