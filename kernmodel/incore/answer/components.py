"""What bounds a block: the bound of each part of the core, and the simulation that closes what they leave open.

After Facile (Abel, Sharma, Reineke, IISWC 2023), equations 1 to 3: the time is that of the slowest part. Of AMD's Zen
cores, which have no simulation, the widths of fetch, decoders, op cache and dispatch are known; of a core without
figures of the front end, ports, dependencies and the µops renamed per cycle. All of it is the engine's answer, to
which the names of registers and ports are added here.

Times are cycles per pass.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import Cycle
from kernmodel.incore.dependences.data_flow import Syntax, carrier_text
from kernmodel.incore.dependences.graph import Graph, synchronised
from kernmodel.incore.dependences.line_splits import AT_LINES, Places
from kernmodel.incore.engine.analyser import Analyser, LoweredBlock
from kernmodel.incore.engine.interface import Answer
from kernmodel.incore.engine.layout import (
    COMPONENTS,
    DEPENDENCES,
    NOTHING,
    REASONS,
    WHOLE,
    Totals,
)
from kernmodel.incore.engine.lowering import DIVIDER_SUFFIX, Pair, Template
from kernmodel.incore.engine.modelled_core import ModelledCore, modelled_core
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, Notion, Parameters, PortUse
from kernmodel.isa.model import Instruction
from kernmodel.value_types import dataclass

PREDECODE, DECODE, DSB, LSD, ISSUE, PORTS, DIVIDER, PRECEDENCE, PIPELINE = COMPONENTS
FRONT_END = (PREDECODE, DECODE, DSB, LSD, ISSUE)
FRONT_TO_BACK = COMPONENTS
"""All components in the order in which a µop meets them."""
TINY = 1e-9

Rows = Sequence[InstructionData | None]
Uses = tuple[tuple[PortUse, ...], ...]


class Table(Protocol):
    """What the analysis asks of an instruction table."""

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row for the instruction, None if there is none."""


def row_of(instruction: Instruction, table: Table) -> InstructionData | None:
    """The row for the instruction, in its indexed variant where that applies."""
    row = table.lookup(instruction)
    if row is None or row.indexed is None:
        return row
    indexed = any(reference.index is not None for reference in instruction.memory)
    return row.indexed if indexed else row


@dataclass(frozen=True, slots=True)
class Bounds:
    """What each part of the core says of a block.

    Attributes:
        analyser: that was asked; block: as it was lowered; answer: of the engine.
        fused: macro-fused pairs by their first instruction.
        graph: of its dependencies; cycle: the slowest of it.
    """

    analyser: Analyser
    block: LoweredBlock
    notion: Notion
    answer: Answer
    fused: Mapping[int, Pair]
    graph: Graph
    cycle: Cycle | None

    @property
    def components(self) -> Mapping[str, float]:
        """Cycles of the components that the block meets, by name, front to back; ports without dividers."""
        return self.answer.met

    @property
    def prediction(self) -> float:
        """Cycles per pass: the slowest component that counts."""
        return max(self.answer.applied.values(), default=0.0)

    @property
    def uses(self) -> Uses:
        """Per instruction, its port usage after elimination and fusion, and with what accesses across lines take."""
        templates = self.block.templates
        shares = self.block.look.splits or (0.0,) * len(templates)
        owned = (self.fused.get(number, own) for number, own in enumerate(templates))
        found = [_uses(own, share) for own, share in zip(owned, shares, strict=True)]
        for number, pair in self.fused.items():
            if pair.keeps_ports:  # told of the branch, as where it keeps its own
                found[number : number + 2] = [(), found[number]]
        return tuple(found)


def _uses(own: Template | Pair, share: float) -> tuple[PortUse, ...]:
    if not share:
        return own.uses
    both = zip(own.uses, own.splits, strict=True)
    return tuple([PortUse(use.ports, use.cycles + share * split) if split else use for use, split in both])


def bounds_of(
    instructions: Sequence[Instruction],
    rows: Rows,
    core: ModelledCore | Analyser,
    notion: Notion,
    offset: int,
    *,
    syntax: Syntax = "att",
    scope: int = WHOLE,
    closing: bool = True,
    places: Places = AT_LINES,
) -> Bounds:
    """What bounds a block.

    Args:
        instructions: the block in execution order.
        rows: their table rows (the indexed variant where it applies), None for unknown ones.
        core: the core; or an analyser of it, which knows instructions that it has met.
        notion: how the block is repeated; offset: address of its first byte.
        syntax: how memory carriers are written.
        scope: how much is looked at, as in `Request`; closing: whether 512-bit registers close a port.
        places: where the arrays of a loop lie.
    """
    analyser = core if isinstance(core, Analyser) else Analyser(core)
    if not instructions:
        return _empty(analyser, notion)
    block = analyser.lower(instructions, rows, notion, closing, places)
    answer = analyser.bound(block, offset, True, scope)
    if answer is None:
        from kernmodel.incore.engine.twin import PythonEngine

        analyser = Analyser(analyser.core, engine=PythonEngine(analyser.core))
        block = analyser.lower(instructions, rows, notion, closing, places)
        answer = analyser.bound(block, offset, True, scope)
    if answer is None:
        raise ValueError("the engine in Python has no limits")
    joined = analyser.engine.graph(answer.totals)
    graph = Graph(
        owners=joined.owners,
        carriers=tuple(
            [_carrier(block, owner, value, syntax) for owner, value in zip(joined.owners, joined.values, strict=True)]
        ),
        entry=joined.ready,
        edges=joined.edges,
        latencies=tuple([template.flow.latency for template in block.templates]),
        blocked=block.blocked,
        incomparable=block.incomparable,
    )
    edges = tuple([edge for edge, _, _ in analyser.engine.cycle(answer.totals)])
    fused = {number: pair for number, pair in block.pairs.items() if number in joined.fused}
    return Bounds(analyser, block, notion, answer, fused, graph, Cycle(edges) if edges else None)


def _empty(analyser: Analyser, notion: Notion) -> Bounds:
    """The bounds of no instructions, of which a front end sees nothing."""
    met = (PORTS, PRECEDENCE) if analyser.core.front else (ISSUE, PORTS, PRECEDENCE)
    totals = NOTHING._replace(applies=sum(1 << COMPONENTS.index(name) for name in met))
    answer = Answer(totals, (0,) * len(REASONS), (0.0,) * len(COMPONENTS), 0.0, 0.0)
    return Bounds(
        analyser, analyser.lower((), (), notion), notion, answer, {}, Graph((), (), (), (), (), (), False), None
    )


def _carrier(block: LoweredBlock, owner: int, value: int, syntax: Syntax) -> str:
    if value < 0:
        return synchronised(block.templates[owner].instruction.isa)
    return carrier_text(block.templates[owner].flow.carriers[value], syntax)


def dependency_graph(
    instructions: Sequence[Instruction],
    rows: Rows,
    parameters: Parameters,
    syntax: Syntax = "att",
    *,
    memory: MemoryPolicy = "moving",
) -> Graph:
    """The dependency graph of a loop body.

    Args:
        instructions: the body in execution order.
        rows: their table rows (the indexed variant where it applies), None for unknown ones: they pass values on in 0
            cycles.
        parameters: of the core.
        syntax: how memory carriers are written.
        memory: which stores and loads meet; with "stack", times of forwarding and the stack engine as Facile's, too.
    """
    core = modelled_core(parameters, memory)
    return bounds_of(instructions, rows, core, "loop", 0, syntax=syntax, scope=DEPENDENCES).graph


def one_at_a_time(rows: Rows) -> tuple[tuple[str, ...], float]:
    """The forms whose measured reciprocal throughput ports do not tell, and the cycles of all of them together.

    These are locked and microcoded instructions: one waits for the other, whatever their forms.
    """
    slow = [(row.form, row.throughput) for row in rows if row is not None and row.throughput is not None]
    return tuple(dict.fromkeys(form for form, _ in slow)), sum(cycles for _, cycles in slow)


def straight_bound(
    instructions: Sequence[Instruction], rows: Rows, analyser: Analyser, places: Places = AT_LINES
) -> float:
    """Cycles that code which is executed once takes of issue, ports and dividers, whichever takes longest.

    Args:
        places: where its accesses lie, a pass being one execution of the code; others are taken to cross no lines.
    """
    ports: list[PortUse] = []
    dividers: list[PortUse] = []
    block = analyser.lower(instructions, rows, places=places)
    for use in [*_all_uses(block), *_longer_uses(block, places.starts)]:
        divides = use.ports and use.ports[0].endswith(DIVIDER_SUFFIX)
        (dividers if divides else ports).append(use)
    issue = (_slots(rows) - len(block.pairs)) / analyser.core.parameters.issue_width
    return max(issue, optimal_bound(ports)[0], one_at_a_time(rows)[1], optimal_bound(dividers)[0])


def uses_of(instructions: Sequence[Instruction], rows: Rows, analyser: Analyser) -> list[PortUse]:
    """What code occupies of ports and dividers; fused pairs count once."""
    return _all_uses(analyser.lower(instructions, rows))


def _all_uses(block: LoweredBlock) -> list[PortUse]:
    return [use for number, one in enumerate(block.templates) for use in block.pairs.get(number, one).uses]


def _longer_uses(block: LoweredBlock, known: Collection[int]) -> list[PortUse]:
    """By what uses of some instructions are longer since accesses cross lines, in the mean."""
    found = []
    for number in known if block.look.splits else ():
        share, own = block.look.splits[number], block.pairs.get(number, block.templates[number])
        uses = zip(own.uses, own.splits, strict=True)
        found += [PortUse(use.ports, share * longer) for use, longer in uses if share * longer > 0]
    return found


def issue_slots(instructions: Sequence[Instruction], rows: Rows, analyser: Analyser) -> float:
    """µops (fused domain) that code takes at issue, and of the reorder buffer."""
    return _slots(rows) - len(analyser.lower(instructions, rows).pairs)


def _slots(rows: Rows) -> int:
    return sum(max(row.front_end.retire_slots if row.front_end else row.uops, 1) if row else 1 for row in rows)


def slowest_chain(instructions: Sequence[Instruction], rows: Rows, analyser: Analyser) -> float:
    """Cycles per pass of the slowest chain from pass to pass, 0 if there is none."""
    bounds = bounds_of(instructions, rows, analyser, "loop", 0, scope=DEPENDENCES)
    return bounds.cycle.ratio if bounds.cycle else 0.0


def front_of(core: ModelledCore, answer: Answer) -> Totals | None:
    """What the engine says of the front end, None where nothing is known of it but its width."""
    return answer.totals if core.units is not None and answer.totals.length else None
