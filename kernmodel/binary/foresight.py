"""At which steps of a recorded run a branch predictor with histories is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress, pairwise

from kernmodel.binary.branch_history import HistoryPredictor
from kernmodel.binary.program import BasicBlock, Function
from kernmodel.binary.recorded_run import CALL, RecordedRun


def surprises(run: RecordedRun, function: Function, reach: int) -> list[bool]:
    """Of each step, whether the predictor is wrong about the conditional branch at its end.

    Args:
        reach: branches that its histories hold.
    """
    ends = {block.address: (number, block.end) for number, block in enumerate(_branching(function))}
    predictor = HistoryPredictor(reach, len(ends))
    found = [False] * len(run.steps)
    for number, (at, following) in enumerate(pairwise(run.steps.tolist())):
        if at in ends and following != CALL:
            branch, end = ends[at]
            found[number] = predictor.surprised(branch, following != end)
    return found


def surprise_shares(run: RecordedRun, wrong: Sequence[bool]) -> Mapping[tuple[int, int], float]:
    """Of the times that a block led to another one once the predictor had learnt, the share at which it was wrong.

    Args:
        wrong: of each step, as of `surprises`.
    """
    edges = list(pairwise(run.steps[run.begun :].tolist()))
    taken, surprised = Counter(edges), Counter(compress(edges, wrong[run.begun :]))
    return {edge: number / taken[edge] for edge, number in surprised.items()}


def _branching(function: Function) -> list[BasicBlock]:
    return [block for block in function.blocks if block.ending == "branches"]
