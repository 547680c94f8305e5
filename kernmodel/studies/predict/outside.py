"""What is executed outside the innermost loop: trip counts of the source, cycles of the compiled code around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.code.model import LOOPS_COLLAPSED, LOOPS_REMOVED
from kernmodel.errors import Location, Note
from kernmodel.isa import isa_of
from kernmodel.models.outside import NEGLIGIBLE, Exit, OutsideWork
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.trip_counts import Lengths, lengths
from kernmodel.studies.predict.rows import WHOLE_ROWS, row_lengths

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.incore.answer.outside import OutsideCycles, WayCycles
    from kernmodel.incore.model import InCore, Parameters
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import EcmAnswer

SHORT = 64
"""Passes of the inner loop up to which a branch predictor may know its end from the history of branches, on cores of
which it is not known from how many on it does not (`mispredicted loop passes`)."""


def outside_work(
    nest: LoopNest,
    sizes: Mapping[str, int],
    loop: AssemblyLoop,
    incore: InCore,
    code: OutsideCycles,
    iterations_per_unit: float,
    *,
    again: bool = False,
) -> OutsideWork:
    """What a unit of work executes outside the innermost loop.

    Args:
        nest: as it is executed (blocked, where it is); sizes: its sizes, checked.
        loop, incore: the compiled loop and its analysis; code: the cycles of the code around it.
        iterations_per_unit: iterations of the source's innermost loop in a unit of work.
        again: whether the nest is called over and over.
    """
    steps = loop.steps or max(1, round(incore.iterations_per_pass or 1))
    copies = (incore.iterations_per_pass or steps) / steps
    variables = [one.variable for one in nest.loops]
    # which loop of the nest the compiled one executes, from 0
    place = variables.index(loop.variable) if loop.variable in variables else len(variables) - 1
    known = bool(code.ways) or (code.known and not place)
    executed = lengths(nest, sizes, loop.variable)
    mean = sum(length * share for length, share in executed)
    collapsed = any(note.code == LOOPS_COLLAPSED for note in loop.notes)
    branches = _mispredicted(nest, loop) * iterations_per_unit * (code.penalty or 0.0)
    if collapsed or not mean or steps > max(length for length, _ in executed):
        # a pass is whole inner loops: what is around them stands in the body
        return OutsideWork(mean, 0.0, 0.0, 0.0, 0.0, "foreseen", known=True, branch_cycles=branches)
    entries = iterations_per_unit / (mean * copies)
    one = _Entry(steps, incore.prediction, lanes(loop, nest), code)
    costs = [(*one.cycles(length), share) for length, share in executed]
    outer = sum(outer * share for _, outer, share in costs) + _further_out(nest, sizes, place, code) * copies
    overlaps = [(*one.overlap(length), share) for length, share in _some(executed)]
    hidden, penalty = sum(hidden * share for _, hidden, share in overlaps), code.penalty or 0.0
    if again and not place:
        # the branch waits for a counter alone: passes that wait for their chain hide what it costs
        hidden = min(penalty, mean / steps * max(0.0, code.carried - code.free))
    # how often a nest of one loop is called, the kernel does not say
    leaving = _exit(executed, steps, code) if place or again else "foreseen"
    return OutsideWork(
        length=mean,
        entries=entries,
        remainder_cycles=entries * sum(remainder * share for remainder, _, share in costs),
        outer_cycles=entries * outer,
        entry_cycles=0.0 if leaving == "foreseen" else entries * (penalty - hidden),
        exit=leaving,
        known=known,
        overlap_cycles=entries * sum(overlap * share for overlap, _, share in overlaps) if place else 0.0,
        straight_cycles=entries * sum(one.straight(length) * share for length, share in executed) if place else 0.0,
        single_cycles=None
        if code.ways
        else entries * sum(one.one_by_one(length % steps) * share for length, share in executed),
        branch_cycles=branches,
        row_factor=_row_factor(nest, sizes, loop),
    )


def _some(executed: Lengths) -> Lengths:
    """A few lengths that stand for all: of many the middle one of each of `_SIMULATED` groups that follow one another,
    with the share of its group."""
    ordered = sorted(executed)
    size = -(-len(ordered) // _SIMULATED)
    groups = [ordered[first : first + size] for first in range(0, len(ordered), size)]
    return tuple((group[len(group) // 2][0], sum(share for _, share in group)) for group in groups)


_SIMULATED = 64
"""Lengths of rows that are simulated where a triangular nest has more: each takes some milliseconds."""


def _row_factor(nest: LoopNest, sizes: Mapping[str, int], loop: AssemblyLoop) -> float:
    """How many times as long as the mean row the longest is, where a pass executes whole rows."""
    if all(note.code != WHOLE_ROWS for note in loop.notes):
        return 1.0
    longest, mean = row_lengths(nest, sizes, loop.variable or nest.loops[-2].variable)
    return longest / mean


def _mispredicted(nest: LoopNest, loop: AssemblyLoop) -> float:
    """Branches of an iteration that are mispredicted if the data decide them and nothing foresees them.

    Where the compiled loop has no branch but its own, conditions are masks or conditional moves. A predictor that knows
    no more than how often a branch is taken is wrong whenever the rarer side is.
    """
    if sum(instruction.branch is not None for instruction in loop.instructions) < 2:
        return 0.0
    return sum(one.share * min(one.taken, 1 - one.taken) for one in nest.operations.branches)


def _exit(executed: Lengths, steps: int, code: OutsideCycles) -> Exit:
    """What the branch predictor does at the end of the loop: it learns lengths that repeat, if they are short."""
    length, share = max(executed, key=lambda one: one[1])
    passes = max(1, length // steps)
    if share < MOSTLY or passes >= (code.mispredicted or max(SHORT, code.foreseen) + 1):
        return "mispredicted"
    return "foreseen" if passes <= code.foreseen else "unknown"


MOSTLY = 0.5
"""Share of the executions that have to be equally long for the predictor to learn their length."""


OUTSIDE_NOTES = ("around-unknown", "no-branch-penalty", "short-loops-learned", "around-unknown-instruction")
"""Codes of the notes of `outside_notes`."""


def outside_notes(
    work: OutsideWork, loop: AssemblyLoop, code: OutsideCycles, parameters: Parameters
) -> tuple[Note, ...]:
    """What is not known of the code outside the innermost loop, where it is worth a word."""
    if not work.entries or (work.known and work.cycles < NEGLIGIBLE):
        return ()
    notes = []
    if not work.known and all(note.code != LOOPS_REMOVED for note in loop.notes):
        text = (
            "the assembly does not show the code around the loop: what the loops around execute is left out of T_out, "
            "and iterations that fill no pass are estimated from the loop"
        )
        notes.append(Note("around-unknown", text, "assumption", Location(loop.file)))
    if code.unknown:
        text = f"{', '.join(code.unknown)} around the loop: without a row in the instruction table of {parameters.name}"
        notes.append(Note("around-unknown-instruction", f"{text}, counted at issue only", "warning"))
    if code.penalty is None and work.exit != "foreseen":
        left = "leaving the inner loop costs nothing"
        text = f"the parameters of {parameters.name} have no penalty of mispredicted branches: {left}"
        notes.append(Note("no-branch-penalty", text, "assumption"))
    if work.exit == "unknown" and work.entry_cycles:
        text = "the branch that ends the inner loop is taken as mispredicted; predictors may learn so short loops"
        notes.append(Note("short-loops-learned", text, "assumption"))
    return tuple(notes)


def inner_iterations(answer: EcmAnswer) -> float:
    """Iterations of the inner loop in a pass: fewer than all where outer iterations are executed at once
    (unroll-and-jam)."""
    per_pass = answer.incore.iterations_per_pass or 1.0
    return float(answer.loop.steps) if answer.loop.steps and answer.loop.variable is None else per_pass


class _Entry:
    """What one entry of the loop costs by the number of its steps.

    Where the code around the loop is not known, steps that fill no pass are executed as compilers make remainders of
    unrolled loops: whole vectors at a time (Intel's, `#pragma vector vecremainder`; GCC's and LLVM's vectorised
    epilogues), as fast as in the loop, and what is left of them one by one.

    Args:
        steps: per pass; cycles: of a pass; vectors: elements that a vector instruction computes.
    """

    def __init__(self, steps: int, cycles: float, vectors: float, code: OutsideCycles) -> None:
        self._steps, self._code = steps, code
        self._vectors = max(1, round(min(vectors, steps)))
        self._share = cycles / steps
        self._single = cycles / max(1.0, steps / vectors)

    def cycles(self, length: int) -> tuple[float, float]:
        """Cycles of the steps that fill no pass beyond their share of one, and of the code that executes no step."""
        passes, left = divmod(length, self._steps)
        if not self._code.ways:
            return self.one_by_one(left % self._vectors), 0.0
        remainder, way, taken = self._way(length)
        slack = max(0.0, self._share * self._steps - self._code.carried)
        beyond = remainder - (left + taken) * self._share
        return max(0.0, beyond), max(way.straight, way.chain - (passes - taken // self._steps) * slack)

    def straight(self, length: int) -> float:
        """Cycles by which an entry takes less than its passes would, where straight-line code executes most of its
        steps, so that the loop makes fewer passes: gcc makes a row of 28 points two vectors and four single points."""
        if not self._code.ways:
            return 0.0
        remainder, _, taken = self._way(length)
        return max(0.0, (length % self._steps + taken) * self._share - remainder) if taken else 0.0

    def one_by_one(self, left: int) -> float:
        """Cycles beyond their share of a pass of steps that are executed one at a time."""
        return max(0.0, left * (self._single - self._share))

    def overlap(self, length: int) -> tuple[float, float]:
        """Cycles by which the chain of an entry overlaps with those of the next ones: what passes and the code around
        them take by themselves, less what rows take that the core executes one after the other; and how many of those
        of a mispredicted exit this hides: the branch waits for a counter alone, so that the next row is fetched while
        the passes before wait for their chain.

        No row is faster than what it takes without its chain.
        """
        code, passes = self._code, length / self._steps
        if code.window is None or not code.ways or code.carried <= code.free:
            return 0.0, 0.0
        _, way, taken = self._way(length)
        if not way.restarts:
            return 0.0, 0.0
        most = passes * (self._share * self._steps - code.free)
        saved = self._simulated(length, way, taken)
        if saved is None:
            saved = self._in_window(passes, way, code.window)
        overlap = min(most, max(0.0, saved))
        return overlap, min(most, max(0.0, saved + (code.penalty or 0.0))) - overlap

    def _simulated(self, length: int, way: WayCycles, taken: int) -> float | None:
        """What rows save in the pipeline, by simulation; None where it cannot tell."""
        if self._code.rows is None or way.code is None:
            return None
        passes, left = divmod(length, self._steps)
        looked = self._code.rows.passes(passes - taken // self._steps)
        together = self._code.rows.cycles(way.code, looked, left + taken)
        if together is None:
            return None
        beyond, around = self.cycles(length)
        alone = (looked * self._steps + left + taken) * self._share + beyond + around - self.straight(length)
        return alone - together

    def _in_window(self, passes: float, way: WayCycles, window: int) -> float:
        """What rows save on a core without a pipeline to simulate: w passes are in flight, as many as its reorder
        buffer holds. Of rows longer than that, the next one has w passes done when a row ends; of shorter ones,
        several are executed at once."""
        code = self._code
        held, row = window / code.slots, passes + way.slots / code.slots
        alone = passes * code.carried
        return held * code.carried if row >= 2 * held else alone - alone / (1 + max(1.0, held / row))

    def _way(self, length: int) -> tuple[float, WayCycles, int]:
        """The way that executes so many steps, the cycles of those that the loop itself does not, and how many of these
        fill passes."""
        found = [(*self._remainder(way, length), way) for way in self._code.ways]
        _, taken, remainder, way = min(found, key=lambda one: (one[0], one[1], one[2] + one[3].straight))
        return remainder, way, taken

    def _remainder(self, way: WayCycles, length: int) -> tuple[bool, int, float]:
        """Whether a way does not execute just so many steps, how many that fill passes it takes from the loop, and the
        cycles of all that the loop does not execute.

        Where the code was compiled for other sizes, steps that it leaves out are taken to be executed one by one, and
        those that it executes too many are left out.
        """
        left, taken = length % self._steps, 0
        if left < way.tail_steps:
            taken = -(-(way.tail_steps - left) // self._steps) * self._steps
            if way.tail_steps < _MANY_PASSES * self._steps or taken >= length - left:
                return True, 0, left * self._single
        rest, cycles = left + taken - way.tail_steps, way.tail
        for each, steps in way.loops:
            passes = rest // steps
            if not passes:
                return True, 0, left * self._single
            rest, cycles = rest - passes * steps, cycles + passes * each
        if rest and taken:
            return True, 0, left * self._single
        return rest > 0, taken, cycles + rest * self._single


_MANY_PASSES = 2
"""Passes whose steps straight-line code executes at least where it does so in place of the loop: fewer may be
statements of loops around that store as much as a step."""


def _further_out(nest: LoopNest, sizes: Mapping[str, int], place: int, code: OutsideCycles) -> float:
    """Cycles of the loops beyond the next one, per entry of the loop at this place of the nest."""
    trips = trip_counts(nest, sizes) if code.outer else ()
    total, entries = 0.0, 1.0
    for cycles, number in zip(code.outer, range(place - 1, 0, -1), strict=False):
        entries *= max(1.0, trips[number])
        total += cycles / entries
    return total


def lanes(loop: AssemblyLoop, nest: LoopNest) -> float:
    """Elements that one vector instruction computes; where none does, that one instruction stores (else loads)."""
    element_of = isa_of(loop.isa).packed_element
    packed = [
        instruction.vector_bytes / element for instruction in loop.instructions if (element := element_of(instruction))
    ]
    if packed:
        return max(1.0, *packed)
    accesses = nest.writes() or nest.accesses
    element = max(map(nest.bytes_of, accesses), default=1)
    moving = [stream for stream in loop.streams if stream.stride_bytes]
    leading = [stream for stream in moving if stream.reference.written] or moving
    return max(1.0, max((stream.reference.size_bytes for stream in leading), default=0) / element)
