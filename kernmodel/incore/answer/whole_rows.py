"""Rows in the pipeline: all that the core executes for one entry of a loop, simulated over and over.

A chain that starts anew in each row (a sum) waits for no other row, so the core executes several rows at once, as far
as its reorder buffer, its registers and its schedulers hold them. How far that is depends on what else waits in them
(the shuffles of a sum, which wait for no sum themselves, leave a scheduler at once, the additions do not), on what the
core has to do between two rows, and on stores of one row that loads of the next wait for. The pipeline simulation knows
all of it, so the row is simulated as the body of one long loop: its passes, the iterations that fill none, and the code
between rows.
"""

from __future__ import annotations

from functools import cached_property

from kernmodel.code.model import AssemblyLoop, Way
from kernmodel.incore.answer.components import PIPELINE, Table, row_of
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.layout import SIMULATION
from kernmodel.isa.model import Instruction

_WINDOWS = 2
"""Of rows longer than so many windows the core holds the end of one and the beginning of the next, whatever their
length."""


class RowTimer:
    """Times rows of one loop on one core, each length once."""

    def __init__(self, loop: AssemblyLoop, slots: float, window: int, analyser: Analyser, table: Table) -> None:
        """For a loop with a way through the loop around it.

        Args:
            slots: issue slots of a pass; window: µops that the core has in flight.
            analyser: of a core with a pipeline.
        """
        self._loop, self._analyser, self._table = loop, analyser, table
        self._rows = {i: row_of(i, table) for i in loop.instructions}
        self._most = 1 + int(_WINDOWS * window / max(slots, 1.0))
        self._known: dict[tuple[Way, int, int], float | None] = {}

    @cached_property
    def _feeds(self) -> bool:
        """Whether stores of the loop feed loads of it."""
        body = self._loop.instructions
        return bool(self._analyser.lower(body, [self._rows[i] for i in body]).look.links)

    def passes(self, wanted: int) -> int:
        """How many passes of a row of so many are simulated: more change nothing of what rows have in common."""
        return min(wanted, self._most)

    def cycles(self, way: Way, passes: int, left: int) -> float | None:
        """Cycles from row to row, None where the simulation cannot tell.

        Args:
            passes: of the loop; left: further steps, which the way's other loops and its straight-line code execute.
        """
        key = (way, passes, left)
        if key not in self._known:
            self._known[key] = self._simulated(_row(self._loop, way, passes, left))
        return self._known[key]

    def _simulated(self, row: tuple[Instruction, ...]) -> float | None:
        for instruction in row:
            if instruction not in self._rows:
                self._rows[instruction] = row_of(instruction, self._table)
        # stores that feed loads are looked for where the loop has some: it takes longer than all else
        block = self._analyser.lower(row, [self._rows[i] for i in row], links=None if self._feeds else ())
        answer = self._analyser.bound(block, 0, scope=SIMULATION)
        return None if answer is None else answer.met.get(PIPELINE)


def _row(loop: AssemblyLoop, way: Way, passes: int, left: int) -> tuple[Instruction, ...]:
    """What one entry of the loop executes, in order; steps that the way is not seen to execute are in its code (values
    that all rows share may lie in registers)."""
    found = [*way.straight[: way.before], *loop.instructions * passes]
    rest = left - way.tail_steps
    for other in sorted(way.loops, key=lambda one: -one.steps):
        found += other.instructions * max(0, rest // other.steps)
        rest -= max(0, rest // other.steps) * other.steps
    return (*found, *way.tail, *way.straight[way.before :])
