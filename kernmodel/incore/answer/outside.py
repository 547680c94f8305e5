"""What the core needs for the code around a loop: straight-line code before and behind it, remainder loops, the exit.

Straight-line code between loops takes as long as the slowest of issue, ports and dividers does for it: what follows
does not wait for its results, unless they lead into the next entry of the loop (a chain from row to row), and then the
chain counts where it is longer. The chain of a reduction starts anew in each row. Front ends deliver such code from the
same caches as the loop.

Where the predictor does not foresee the exit of the loop, the front end starts anew, which takes the misprediction
penalty. The closing branch waits for a counter only, and is executed long before the arithmetic of the last passes:
that ends while the front end refills (the branch resolution time of S. Eyerman, J. E. Smith, L. Eeckhout:
Characterizing the branch misprediction penalty, ISPASS 2006, is short).
"""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.code.model import AssemblyLoop, Way
from kernmodel.incore.answer.components import (
    PIPELINE,
    PRECEDENCE,
    Rows,
    Table,
    issue_slots,
    row_of,
    slowest_chain,
    straight_bound,
)
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import InCore, Parameters
from kernmodel.incore.tables.core_parameters import ZenPipelineParameters
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class WayCycles:
    """The cycles of one way through the loop around the analysed one (`assembly.model.Way`).

    Attributes:
        straight: of the code that executes no iteration.
        slots: issue slots of all of it.
        chain: by which the slowest chain from one entry of the loop to the next is longer than the chain of one pass.
        restarts: whether the chain of the passes starts anew at each entry.
        tail: of straight-line iterations; tail_steps: how many these are.
        loops: of a pass of each remainder loop, and its steps, those with most steps first.
    """

    straight: float
    slots: float
    chain: float
    restarts: bool
    tail: float
    tail_steps: int
    loops: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class OutsideCycles:
    """The cycles of everything around a loop on one core.

    Attributes:
        ways: through the loop around it; outer: of one iteration of each loop further out, without the loops inside it.
        known: whether the code around the loop is known.
        carried: of the chain from pass to pass; free: of a pass without that chain; slots: of a pass, for issue.
        window: µops that the core has in flight, None where it is not known.
        penalty: of leaving the loop by a mispredicted branch, None where it is not known.
        foreseen: passes whose exit the predictor is known to foresee, 0 where nothing is known.
        unknown: forms around the loop that the instruction table lacks.
        scheduled: passes whose µops fit into the schedulers while they wait for the chain, None where not known.
    """

    ways: tuple[WayCycles, ...]
    outer: tuple[float, ...]
    known: bool
    carried: float
    free: float
    slots: float
    window: int | None
    penalty: float | None
    foreseen: int
    unknown: tuple[str, ...]
    scheduled: float | None = None


def outside_cycles(
    loop: AssemblyLoop, incore: InCore, parameters: Parameters, table: Table, analyser: Analyser | None = None
) -> OutsideCycles:
    """The cycles of the code around a loop, and of leaving it.

    Args:
        incore: the analysis of the loop.
        analyser: of the core with this table, which remembers instructions that several loops have around them; None:
            one for this loop.

    Raises:
        InstructionTableError: a row of the table or a figure of the parameters is malformed.
    """
    # the ways through the loop around share most of their instructions
    code = _Code(analyser or Analyser(modelled_core(parameters)).keep(), table)
    around = loop.around
    carried = incore.lcd.cycles if incore.lcd else 0.0
    ways = tuple(_way_cycles(code, way, loop.instructions, carried) for way in around.ways) if around else ()
    outer = tuple(code.straight(instructions) for instructions in around.outer) if around else ()
    return OutsideCycles(
        ways=ways,
        outer=outer,
        known=around is not None,
        carried=carried,
        free=max((one.cycles for one in incore.components if one.applies and one.name not in _CHAINS), default=0.0),
        slots=code.slots(loop.instructions),
        window=_window(parameters),
        penalty=parameters.misprediction,
        foreseen=parameters.foreseen_passes,
        unknown=tuple(dict.fromkeys(code.unknown)),
        scheduled=_scheduled(incore, parameters),
    )


_CHAINS = (PRECEDENCE, PIPELINE)
"""Components that know the chain."""


def _window(parameters: Parameters) -> int | None:
    """Entries of the reorder buffer."""
    figures = parameters.pipeline or parameters.recorded
    return figures.reorder_buffer


def _scheduled(incore: InCore, parameters: Parameters) -> float | None:
    """Passes whose µops fit into the floating-point schedulers of a Zen core while they wait for a chain there.

    The µops behind a chain enter the schedulers in the order of the program, through a queue that picks none, so that
    no row begins before these have room for it. A row of 43, 179 and 510 sums of five cells (four µops a pass,
    `2d-5pt`) takes 12 to 13 passes less on Zen 3 than its chain says; the 64 entries hold 16 passes, the reorder buffer
    32 (`kernmodel measure kernel 2d-5pt.c -D N=45 -D M=45`, 181, 512).
    """
    figures = parameters.pipeline
    if not isinstance(figures, ZenPipelineParameters) or incore.lcd is None or not figures.queued:
        return None
    waiting = set(figures.queued)
    uops = [sum(use.cycles for use in uses if use.ports and waiting.issuperset(use.ports)) for uses in incore.uses]
    if not any(uops[member] for member in incore.lcd.members):
        return None
    entries = sum(
        count
        for ports, count in zip(figures.schedulers, figures.scheduler_entries, strict=True)
        if waiting.issuperset(ports)
    )
    return entries / sum(uops)


class _Code:
    """Looks at pieces of code on one core, each once."""

    def __init__(self, analyser: Analyser, table: Table) -> None:
        self._analyser, self._table = analyser, table
        self._known: dict[tuple[Instruction, ...], float] = {}
        self.unknown: list[str] = []

    def rows(self, instructions: Sequence[Instruction]) -> Rows:
        rows = [row_of(instruction, self._table) for instruction in instructions]
        self.unknown += [i.form for i, row in zip(instructions, rows, strict=True) if row is None]
        return rows

    def straight(self, instructions: tuple[Instruction, ...]) -> float:
        """Cycles of code that is executed once."""
        if instructions not in self._known:
            bound = straight_bound(instructions, self.rows(instructions), self._analyser) if instructions else 0.0
            self._known[instructions] = bound
        return self._known[instructions]

    def slots(self, instructions: tuple[Instruction, ...]) -> float:
        """Issue slots of code."""
        return issue_slots(instructions, self.rows(instructions), self._analyser)

    def chain(self, instructions: tuple[Instruction, ...]) -> float:
        """Cycles of the slowest chain from one execution of the code to the next."""
        return slowest_chain(instructions, self.rows(instructions), self._analyser)


def _may_carry(row: Sequence[Instruction]) -> bool:
    """Whether a vector register leads from one execution of the code to the next: others hold counters and addresses,
    whose chains are short. Of code without vector registers any may."""
    exposed, written = set[str](), set[str]()
    for instruction in row:
        vectors = [
            operand
            for operand in instruction.operands
            if operand.register and isa_of(instruction.isa).is_vector(operand)
        ]
        constant = isa_of(instruction.isa).writes_constant(instruction)
        read = {operand.register for operand in vectors if operand.read and not constant}
        exposed |= {register for register in read if register and register not in written}
        written |= {operand.register for operand in vectors if operand.written and operand.register}
    return not written or not exposed.isdisjoint(written)


def _way_cycles(code: _Code, way: Way, body: tuple[Instruction, ...], carried: float) -> WayCycles:
    row = (*way.straight[: way.before], *body, *way.straight[way.before :], *way.tail)
    chain = code.chain(row) if _may_carry(row) else 0.0
    loops = [
        (max(code.straight(other.instructions), code.chain(other.instructions)), other.steps) for other in way.loops
    ]
    return WayCycles(
        straight=code.straight(way.straight),
        slots=code.slots(way.straight + way.tail),
        chain=max(0.0, chain - carried),
        restarts=chain < carried,
        tail=code.straight(way.tail),
        tail_steps=way.tail_steps,
        loops=tuple(sorted(loops, key=lambda one: -one[1])),
    )
