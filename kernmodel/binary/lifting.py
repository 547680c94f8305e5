"""From predictions of pieces of code to the time of a whole function, by how often each piece ran.

Three ways, each named in every output:

(a) "sum": occurrences × prediction, added over all blocks, each block as if copies of it followed one another (the
    formula of the harness that the suite follows). Any predictor can be lifted so.
(b) "loops": blocks that follow themselves and innermost loops of several blocks, along their most frequent path, as
    bodies of loops; all other blocks by what they take of issue, ports and dividers, since no chain leads from one of
    their executions into the next one at once.
(c) "traces": the loops from the innermost out, each by the pipeline simulation of a walk through some of its
    iterations, inner loops and all: of a recorded run (`recorded_walks`, `recorded_data`, `foresight`), else by the
    counts (`walks`, `branches`). Passes beyond those in the walk take what they take in a long run.

Cycles are of one call of the function, the mean of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from math import ceil
from typing import Literal

from kernmodel.binary.branches import Branches
from kernmodel.binary.foresight import surprise_shares, surprises
from kernmodel.binary.predictors.own import OWN, OwnPredictor
from kernmodel.binary.predictors.protocol import PieceCycles, Predictor, piece_of, without_calls
from kernmodel.binary.program import BasicBlock, Loop
from kernmodel.binary.recorded_data import trace_data
from kernmodel.binary.recorded_run import RecordedRun
from kernmodel.binary.recorded_walks import RecordedWalker
from kernmodel.binary.trace_time import TraceTimer
from kernmodel.binary.walks import CountedFlow, Walk, Walker
from kernmodel.errors import Note
from kernmodel.incore.model import Reason
from kernmodel.isa.model import Instruction
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

Way = Literal["sum", "loops", "traces"]
WAYS: Mapping[Way, str] = {"sum": "a", "loops": "b", "traces": "c"}
"""The ways, and the letters that tables give them."""

_WINDOWS_KEPT = 1.5
"""Reorder buffers of µops of an inner loop that a walk keeps of each of its visits: what was there before has retired
then, and a chain that is behind is as far behind as it can be."""
_WINDOWS_WALKED = 4
_MOST_ITERATIONS = 8
"""A walk has so many reorder buffers of instructions, unless it reaches so many iterations before."""
_MOST_INSTRUCTIONS = 12_000
"""Of a trace that is simulated."""


@dataclass(frozen=True, slots=True)
class BlockShare:
    """What one basic block contributes to the predicted time of its function.

    Attributes:
        address: of the block; occurrences: in the whole run.
        cycles: of one execution as it is counted here.
        share: of the function's predicted cycles.
        bound_by, reason: what bounds it, as of `PieceCycles`.
    """

    address: int
    occurrences: int
    cycles: float
    share: float
    bound_by: str = ""
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class LiftedPrediction:
    """The predicted time of a function.

    Attributes:
        predictor: its name; way: how it was lifted.
        cycles: of one call; None where `failed` says for which block the predictor has no answer, and why.
        blocks: by descending share; without those that never ran.
        loops: predicted cycles of one call that are spent in each loop, inner ones included, by its header.
        mispredicted: branches of one call that are taken to be mispredicted.
        interval: where `cycles` depend on what is not known.
    """

    predictor: str
    way: Way
    cycles: float | None
    blocks: tuple[BlockShare, ...] = ()
    loops: Mapping[int, float] = field(default_factory=dict)
    mispredicted: float = 0.0
    interval: Interval | None = None
    failed: str = ""
    notes: tuple[Note, ...] = ()


def lift_sum(flow: CountedFlow, predictor: Predictor) -> LiftedPrediction:
    """Way (a).

    Raises:
        ToolError: the predictor is not installed or does not start.
    """
    ran = [block for block in flow.function.blocks if flow.count(block.address)]
    pieces = {block.address: piece for block in ran if (piece := piece_of(block, "unrolled")) is not None}
    answers = dict(zip(pieces, predictor.predict(list(pieces.values())), strict=True))
    return sum_of(flow, predictor.name, answers)


def sum_of(flow: CountedFlow, predictor: str, answers: Mapping[int, PieceCycles]) -> LiftedPrediction:
    """The time by way (a), from the predictor's answers by block address; a block that only calls has no answer and
    costs nothing."""
    for address, answer in answers.items():
        if answer.cycles is None:
            return LiftedPrediction(predictor, "sum", None, failed=f"block {address:#x}: {answer.error}")
    weights = {a: flow.count(a) * (answer.cycles or 0.0) for a, answer in answers.items() if flow.count(a)}
    return _lifted(flow, predictor, "sum", sum(weights.values()), weights, answers)


def _lifted(
    flow: CountedFlow,
    predictor: str,
    way: Way,
    total: float,
    weights: Mapping[int, float],
    answers: Mapping[int, PieceCycles],
    **more: object,
) -> LiftedPrediction:
    """The prediction of which blocks have shares by these weights; `total` is of the whole run."""
    calls = max(1, flow.occurrences.calls)
    scale = 1 / whole if (whole := sum(weights.values())) else 0.0
    blocks = [
        BlockShare(
            address=address,
            occurrences=flow.count(address),
            cycles=weight * scale * total / flow.count(address),
            share=weight * scale,
            bound_by=answers[address].bound_by if address in answers else "",
            reason=answers[address].reason if address in answers else None,
        )
        for address, weight in weights.items()
    ]
    loops = {
        header: sum(weights.get(address, 0.0) for address in loop.blocks) * scale * total / calls
        for header, loop in flow.loops.items()
    }
    ordered = tuple(sorted(blocks, key=lambda block: -block.share))
    return LiftedPrediction(predictor, way, total / calls, ordered, loops, **more)  # type: ignore[arg-type]


class _Own:
    """The in-core analyses that ways (b) and (c) need of the blocks of one function."""

    def __init__(self, flow: CountedFlow, predictor: OwnPredictor) -> None:
        self.flow = flow
        self.predictor = predictor
        self.blocks: Mapping[int, BasicBlock] = {block.address: block for block in flow.function.blocks}
        self.code: Mapping[int, tuple[Instruction, ...]] = {
            block.address: without_calls(block.instructions) for block in flow.function.blocks
        }
        self.failed = ""
        self.answers: dict[int, PieceCycles] = {}

    def straight(self, address: int) -> float:
        """Cycles of a block without waiting for operands: what its issue slots, ports and dividers take."""
        return self.predictor.straight(self.code[address])

    def body(self, loop: Loop) -> tuple[float, float, tuple[int, ...]]:
        """The most frequent path through an innermost loop: cycles of a pass, passes in the whole run, its blocks."""
        path = self._path(loop)
        if not path:
            return 0.0, 0.0, ()
        passes = min(self.flow.count(address) for address in path)
        passes = min((self.flow.successors[a][b] for a, b in pairwise(path)), default=passes)
        found = self.predictor.repeated(tuple(i for address in path for i in self.code[address]), "loop")
        if found.cycles is None:
            self.failed = self.failed or f"loop {loop.header:#x}: {found.error}"
            return 0.0, 0.0, ()
        self.answers.update(dict.fromkeys(path, found))
        return found.cycles, passes, path

    def _path(self, loop: Loop) -> tuple[int, ...]:
        """From the header along the most frequent successors back to it; () where they do not lead there."""
        path, at = [loop.header], loop.header
        while True:
            choices = {t: n for t, n in self.flow.successors.get(at, {}).items() if t in loop.blocks}
            if not choices:
                return ()
            at = max(choices, key=lambda target: choices[target])
            if at == loop.header:
                return tuple(path) if any(self.code[address] for address in path) else ()
            if at in path:
                return ()
            path.append(at)

    def describe(self) -> None:
        """Note the throughput bounds of the blocks that are in no body of a loop."""
        for address, code in self.code.items():
            if code and self.flow.count(address) and address not in self.answers:
                answer = self.predictor.repeated(code, "unrolled")
                if answer.cycles is None:
                    self.failed = self.failed or f"block {address:#x}: {answer.error}"
                else:
                    self.answers[address] = PieceCycles(answer.cycles, "throughput")


def lift_loops(flow: CountedFlow, predictor: OwnPredictor) -> LiftedPrediction:
    """Way (b), by the in-core analysis."""
    own = _Own(flow, predictor)
    left = {block.address: float(flow.count(block.address)) for block in flow.function.blocks}
    weights = dict.fromkeys(left, 0.0)
    for loop in flow.function.inner_loops():
        if not flow.count(loop.header):
            continue
        cycles, passes, path = own.body(loop)
        parts = _parts(own, path)
        for address in path:
            left[address] -= passes
            weights[address] += cycles * passes * parts[address]
    for address, count in left.items():
        weights[address] += count * own.straight(address) if count > 0 else 0.0
    own.describe()
    if own.failed:
        return LiftedPrediction(OWN, "loops", None, failed=own.failed)
    weights = {address: weight for address, weight in weights.items() if flow.count(address)}
    return _lifted(flow, OWN, "loops", sum(weights.values()), weights, own.answers)


def _parts(own: _Own, path: Sequence[int]) -> dict[int, float]:
    """Which part of the time of a path each of its blocks is given: as long as they take alone."""
    alone = {address: own.straight(address) for address in path}
    whole = sum(alone.values())
    return {address: cycles / whole if whole else 1 / len(path) for address, cycles in alone.items()}


@dataclass(frozen=True, slots=True)
class _Iteration:
    """Cycles of an iteration of a loop (a call of the function), inner loops included: as they are taken, if the
    predictor knows all branches that it may know, and if it knows none of those; mispredicted branches in it."""

    cycles: float = 0.0
    least: float = 0.0
    most: float = 0.0
    mispredicted: float = 0.0

    def plus(self, other: _Iteration, times: float) -> _Iteration:
        """This iteration and another one that is executed so many times in it, added up."""
        return _Iteration(
            self.cycles + times * other.cycles,
            self.least + times * other.least,
            self.most + times * other.most,
            self.mispredicted + times * other.mispredicted,
        )


class _Traces:
    """Lifting by way (c): times the loops of a function, the innermost first."""

    def __init__(self, own: _Own, timer: TraceTimer, run: RecordedRun | None) -> None:
        self.own, self.flow, self._timer, self._run = own, own.flow, timer, run
        self.times: dict[int | None, _Iteration] = {}
        parameters = own.predictor.core.parameters
        reach = parameters.foreseen_passes
        self._branches = Branches(own.flow, reach, parameters.mispredicted_passes)
        self._walker = None if run is None else RecordedWalker(own.flow, run)
        self._wrong = surprises(run, own.flow.function, reach) if run is not None and reach else None
        self._shares = surprise_shares(run, self._wrong) if run is not None and self._wrong is not None else {}

    def all(self) -> _Iteration:
        """The time of one call of the function."""
        for loop in sorted(self.flow.function.loops, key=lambda loop: -loop.depth):
            if self.flow.count(loop.header):
                self.times[loop.header] = self._iteration(loop)
        self.times[None] = self._iteration(None)
        return self.times[None]

    def _iteration(self, loop: Loop | None) -> _Iteration:
        walk = self._walk(loop)
        if walk is None:
            return self._rest(loop, _Iteration(), {}, 1)
        trace = [instruction for address in walk.steps for instruction in self.own.code[address]]
        wrong, known, unknown = self._surprises(walk)
        data = trace_data(self._run, walk, self.own.code, self._timer.lines) if self._run and walk.recorded else None
        expected = self._expected(walk, wrong)
        choices = list(dict.fromkeys((wrong, known, unknown, frozenset[int]())))
        times = self._timer.cycles(trace, *choices, data=data)
        if times is None:
            return self._rest(loop, _Iteration(), {}, 1)
        each = walk.iterations
        taken_so, least, most, none = (times[choices.index(one)] / each for one in (wrong, known, unknown, frozenset()))
        one = (taken_so - none) / len(wrong) if wrong else (self._timer.penalty or 0.0) / each
        cycles = none + one * expected
        found = _Iteration(cycles, min(least, cycles), max(most, cycles), expected / each)
        if walk.recorded:
            return self._as_counted(loop, found, walk)
        return self._rest(loop, found, walk.counts, each)

    def _walk(self, loop: Loop | None) -> Walk | None:
        kept = {one.header: self._kept(one) for one in self.flow.function.loops if self.flow.count(one.header)}
        most = _WINDOWS_WALKED * self._timer.window
        stretch = round(_WINDOWS_KEPT * self._timer.window)
        recorded = None
        if self._walker is not None:
            recorded = self._walker.walk(loop, kept, stretch, _MOST_INSTRUCTIONS)
        if recorded is not None:
            return recorded
        walk = Walker(self.flow, loop, kept).walk(most, _MOST_ITERATIONS)
        if walk is None or sum(len(self.own.code[a]) for a in walk.steps) > _MOST_INSTRUCTIONS:
            return None
        return walk

    def _kept(self, loop: Loop) -> int:
        """Passes of a loop that a walk keeps of each of its visits."""
        executed = sum(self.flow.count(address) * len(self.own.code[address]) for address in loop.blocks)
        each = max(1.0, executed / self.flow.count(loop.header))
        return max(2, ceil(_WINDOWS_KEPT * self._timer.window / each))

    def _surprises(self, walk: Walk) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """The mispredicted branches of a walk by their numbers in its trace: as they are taken; without those that the
        predictor may know; with all of these whose rarer way is taken."""
        found = set[int](), set[int](), set[int]()
        end = 0
        for step, address in enumerate(walk.steps):
            code = self.own.code[address]
            end += len(code)
            if not code or code[-1].branch not in ("conditional", "indirect"):
                continue
            judged = self._branches.surprise(address, self._following(walk, step))
            wrong, doubtful = judged is not None, judged == "doubtful"
            if self._wrong is not None and walk.recorded and code[-1].branch == "conditional":
                wrong = self._wrong[walk.recorded[step]]
                doubtful |= self._branches.depends_on_data(address)
            choices = wrong, wrong and not doubtful, wrong or (doubtful and judged is not None)
            for choice, taken in zip(found, choices, strict=True):
                if taken:
                    choice.add(end - 1)
        wrong_ones, known, unknown = map(frozenset, found)
        return wrong_ones, known, unknown

    def _expected(self, walk: Walk, wrong: frozenset[int]) -> float:
        """The mispredicted branches of a walk as many as the whole record has on such ways: they come in clusters, of
        which a walk may have too many or none."""
        if self._run is None or self._wrong is None or not walk.recorded:
            return len(wrong)
        here = sum(self._wrong[step] for step in walk.recorded)
        edges = ((address, self._following(walk, step)) for step, address in enumerate(walk.steps))
        return len(wrong) - here + sum(self._shares.get(edge, 0.0) for edge in edges)

    def _following(self, walk: Walk, step: int) -> int:
        """The block behind a step: as it was recorded, else the next one of the walk."""
        if self._run is not None and walk.recorded:
            return int(self._run.steps[min(walk.recorded[step] + 1, len(self._run.steps) - 1)])
        return walk.steps[(step + 1) % len(walk.steps)]

    def _as_counted(self, loop: Loop | None, found: _Iteration, walk: Walk) -> _Iteration:
        """An iteration with the passes that a recorded walk left out, and as much longer than those of the walk as what
        was counted of the loop takes alone."""
        for header, passes in walk.left_out.items():
            found = found.plus(self.times[header], passes / walk.iterations)
        alone = {address: self.own.straight(address) for address in self.flow.blocks_of(loop)}
        here = sum(walk.whole.get(address, 0) * cycles for address, cycles in alone.items()) / walk.iterations
        headed = self.flow.occurrences.calls if loop is None else self.flow.count(loop.header)
        counted = sum(self.flow.count(address) * cycles for address, cycles in alone.items()) / max(1, headed)
        return _Iteration().plus(found, counted / here if here else 1.0)

    def _rest(self, loop: Loop | None, found: _Iteration, walked: Mapping[int, int], iterations: int) -> _Iteration:
        """An iteration, with what was executed of it beyond the walk, which has each block so often: passes of inner
        loops, blocks that it missed."""
        flow = self.flow
        headed = flow.occurrences.calls if loop is None else flow.count(loop.header)
        headed = max(1, headed)
        beyond: dict[int, float] = {}
        for inner in sorted(self._inside(loop), key=lambda one: one.depth):
            wanted = flow.count(inner.header) / headed - walked.get(inner.header, 0) / iterations
            around = inner.parent
            while around is not None and around in beyond:
                wanted -= beyond[around] * flow.count(inner.header) / flow.count(around)
                around = flow.loops[around].parent
            beyond[inner.header] = wanted
            found = found.plus(self.times[inner.header], wanted)
        own = flow.blocks_of(loop) - {a for inner in flow.directly_in(loop) for a in inner.blocks}
        for address in own:
            missed = flow.count(address) / headed - walked.get(address, 0) / iterations
            straight = self.own.straight(address)
            found = found.plus(_Iteration(straight, straight, straight), missed)
        return _Iteration(
            max(found.cycles, 0.0), max(found.least, 0.0), max(found.most, 0.0), max(found.mispredicted, 0.0)
        )

    def _inside(self, loop: Loop | None) -> list[Loop]:
        """All loops inside a loop (the function) that ran."""
        return [
            one
            for one in self.flow.function.loops
            if self.flow.count(one.header)
            and (loop is None or (one.header != loop.header and one.header in loop.blocks))
        ]


def lift_traces(
    flow: CountedFlow, predictor: OwnPredictor, timer: TraceTimer | None = None, run: RecordedRun | str | None = None
) -> LiftedPrediction:
    """Way (c), by the simulation of the core's pipeline.

    Args:
        timer: of the same core, which may know instructions from other functions.
        run: the beginning of a run. None, or why there is none: branches are judged by what they depend on, their ways
            taken evenly spread, stores and loads by the registers that they are addressed by, and arrays are taken to
            begin at lines.
    """
    timer = timer or TraceTimer(predictor.core, predictor.analyser)
    if not timer.possible:
        name = predictor.core.parameters.name
        return LiftedPrediction(
            OWN, "traces", None, failed=f"the parameters of {name} describe no pipeline to simulate"
        )
    own = _Own(flow, predictor)
    bodies = {loop.header: own.body(loop) for loop in flow.function.inner_loops() if flow.count(loop.header)}
    own.describe()
    if own.failed:
        return LiftedPrediction(OWN, "traces", None, failed=own.failed)
    traces = _Traces(own, timer, run if isinstance(run, RecordedRun) else None)
    call, reach = traces.all(), predictor.core.parameters.foreseen_passes
    calls = max(1, flow.occurrences.calls)
    interval = None
    if call.least < call.most:
        cause = "whether the branch predictor knows how its rarer branches go"
        assumed = "as its histories do" if isinstance(run, RecordedRun) and reach else "it does not"
        interval = Interval(call.least, call.most, cause, assumed)
    notes: tuple[Note, ...] = ()
    if timer.penalty is None and call.mispredicted:
        text = f"the parameters of {predictor.core.parameters.name} have no penalty of mispredicted branches"
        notes = (Note("no-branch-penalty", f"{text}: these cost nothing", "assumption"),)
    if isinstance(run, str):
        text = f"the path of a run was not recorded: blocks are put in an order by their counts alone ({run})"
        notes = (*notes, Note("path-not-recorded", text, "assumption"))
    weights = _weights(own, traces, frozenset(bodies))
    return _lifted(
        flow,
        OWN,
        "traces",
        call.cycles * calls,
        weights,
        own.answers,
        mispredicted=call.mispredicted,
        interval=interval,
        notes=notes,
    )


def _weights(own: _Own, traces: _Traces, innermost: frozenset[int]) -> dict[int, float]:
    """What each block is given of the time: of a loop's own time, without that of loops inside, as long as its blocks
    take alone."""
    flow = own.flow
    weights: dict[int, float] = {}
    for header, iteration in traces.times.items():
        loop = None if header is None else flow.loops[header]
        headed = max(1, flow.occurrences.calls if header is None else flow.count(header))
        inner = [one for one in flow.directly_in(loop) if flow.count(one.header)]
        alone = iteration.cycles * headed - sum(
            traces.times[one.header].cycles * flow.count(one.header) for one in inner
        )
        blocks = flow.blocks_of(loop) - {address for one in inner for address in one.blocks}
        straight = {address: flow.count(address) * own.straight(address) for address in blocks if flow.count(address)}
        whole = sum(straight.values())
        for address, cycles in straight.items():
            weights[address] = max(alone, 0.0) * cycles / whole if whole else 0.0
    return weights
