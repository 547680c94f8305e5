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

from collections.abc import Mapping, Sequence

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
from kernmodel.incore.answer.whole_rows import RowTimer
from kernmodel.incore.dependences.line_splits import AT_LINES, Places
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import InCore, Parameters
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
        code: what is executed.
    """

    straight: float
    slots: float
    chain: float
    restarts: bool
    tail: float
    tail_steps: int
    loops: tuple[tuple[float, int], ...]
    code: Way | None = None


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
        mispredicted: passes from which on it is known not to, None where that is not known.
        unknown: forms around the loop that the instruction table lacks.
        rows: times whole rows, None without a pipeline to simulate.
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
    rows: RowTimer | None = None
    mispredicted: int | None = None


def outside_cycles(
    loop: AssemblyLoop,
    incore: InCore,
    parameters: Parameters,
    table: Table,
    analyser: Analyser | None = None,
    places: Mapping[Way, Places] | None = None,
) -> OutsideCycles:
    """The cycles of the code around a loop, and of leaving it.

    Args:
        incore: the analysis of the loop.
        analyser: of the core with this table, which remembers instructions that several loops have around them; None:
            one for this loop.
        places: where the accesses of the straight-line code lie (`Way.streams`); those of ways that are not here cross
            no lines.

    Raises:
        InstructionTableError: a row of the table or a figure of the parameters is malformed.
    """
    # the ways through the loop around share most of their instructions
    analyser = analyser or Analyser(modelled_core(parameters)).keep()
    code = _Code(analyser, table)
    around, slots = loop.around, code.slots(loop.instructions)
    carried = incore.lcd.cycles if incore.lcd else 0.0
    known = places or {}
    ways = tuple(
        _way_cycles(code, way, loop.instructions, carried, known.get(way, AT_LINES))
        for way in (around.ways if around else ())
    )
    outer = tuple(code.straight(instructions) for instructions in around.outer) if around else ()
    return OutsideCycles(
        ways=ways,
        outer=outer,
        known=around is not None,
        carried=carried,
        free=max((one.cycles for one in incore.components if one.applies and one.name not in _CHAINS), default=0.0),
        slots=slots,
        window=_window(parameters),
        penalty=parameters.misprediction,
        foreseen=parameters.foreseen_passes,
        unknown=tuple(dict.fromkeys(code.unknown)),
        rows=_row_timer(loop, slots, parameters, analyser, table) if around and around.ways else None,
        mispredicted=parameters.mispredicted_passes,
    )


_CHAINS = (PRECEDENCE, PIPELINE)
"""Components that know the chain."""


def _window(parameters: Parameters) -> int | None:
    """Entries of the reorder buffer."""
    figures = parameters.pipeline or parameters.recorded
    return figures.reorder_buffer


def _row_timer(
    loop: AssemblyLoop, slots: float, parameters: Parameters, analyser: Analyser, table: Table
) -> RowTimer | None:
    window = _window(parameters)
    return None if window is None or parameters.pipeline is None else RowTimer(loop, slots, window, analyser, table)


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

    def placed(self, instructions: tuple[Instruction, ...], places: Places) -> float:
        """Cycles of code that is executed once, with its accesses in these places."""
        if not places.starts:
            return self.straight(instructions)
        return straight_bound(instructions, self.rows(instructions), self._analyser, places)

    def slots(self, instructions: tuple[Instruction, ...]) -> float:
        """Issue slots of code."""
        return issue_slots(instructions, self.rows(instructions), self._analyser)

    def chain(self, instructions: tuple[Instruction, ...]) -> float:
        """Cycles of the slowest chain from one execution of the code to the next."""
        instructions = isa_of(instructions[0].isa).with_named_registers(instructions) if instructions else ()
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


def _way_cycles(code: _Code, way: Way, body: tuple[Instruction, ...], carried: float, places: Places) -> WayCycles:
    row = (*way.straight[: way.before], *body, *way.straight[way.before :], *way.tail)
    chain = code.chain(row) if _may_carry(row) else 0.0
    loops = [
        (max(code.straight(other.instructions), code.chain(other.instructions)), other.steps) for other in way.loops
    ]
    return WayCycles(
        straight=code.placed(way.straight, _part(places, 0, len(way.straight))),
        slots=code.slots(way.straight + way.tail),
        chain=max(0.0, chain - carried),
        restarts=chain < carried,
        tail=code.placed(way.tail, _part(places, len(way.straight), len(way.tail))),
        tail_steps=way.tail_steps,
        loops=tuple(sorted(loops, key=lambda one: -one[1])),
        code=way,
    )


def _part(places: Places, first: int, length: int) -> Places:
    """The places of some instructions from the first one on, which is 0 there."""
    inside = range(first, first + length)
    starts = {number - first: own for number, own in places.starts.items() if number in inside}
    strides = {number - first: own for number, own in places.strides.items() if number in inside}
    return places._replace(starts=starts, strides=strides)
