"""What a process of a suite does with a variant: build it, find the function, count it, predict it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernmodel.binary.counting import count_occurrences
from kernmodel.binary.find import find_function
from kernmodel.binary.lifting import WAYS, LiftedPrediction, lift_loops, lift_sum, lift_traces
from kernmodel.binary.predictors.own import OwnPredictor
from kernmodel.binary.predictors.protocol import piece_of
from kernmodel.binary.runs import Command
from kernmodel.binary.suite.build import build
from kernmodel.binary.suite.model import Observed, SuiteFile, Variant
from kernmodel.binary.trace_time import TraceTimer
from kernmodel.binary.walks import CountedFlow
from kernmodel.errors import KernmodelError

_OWN: dict[str, tuple[OwnPredictor, TraceTimer]] = {}
"""The predictor of a worker process, from its first variant to its end."""


def observe(variant: Variant, suite: SuiteFile, core: str, key: str, folder: Path) -> Observed:
    """Everything about a variant that needs no quiet machine; what is wrong with it stands in the answer."""
    empty = Observed(variant.name, key)
    binary = folder / key
    try:
        if not binary.exists():
            build(variant, suite, binary)
        function = find_function(binary, suite.function)
        function, occurrences = count_occurrences(function, Command((str(binary),)))
    except KernmodelError as error:
        return replace(empty, failed=str(error))
    flow = CountedFlow(function, occurrences)
    calls = max(1, occurrences.calls)
    counts = [(block, flow.count(block.address) / calls) for block in function.blocks if flow.count(block.address)]
    pieces = [(piece, count) for block, count in counts if (piece := piece_of(block, "unrolled")) is not None]
    lifted = _own(flow, core)
    return replace(
        empty,
        binary=str(binary),
        calls=occurrences.calls,
        instructions=sum(len(block.instructions) * count for block, count in counts),
        pieces=tuple((piece.code.hex(), count) for piece, count in pieces),
        predicted={WAYS[one.way]: one.cycles for one in lifted if one.cycles is not None},
        low={WAYS[one.way]: one.interval.low for one in lifted if one.interval is not None},
        refused={WAYS[one.way]: one.failed for one in lifted if one.cycles is None},
    )


def _own(flow: CountedFlow, core: str) -> tuple[LiftedPrediction, ...]:
    if core not in _OWN:
        predictor = OwnPredictor(core)
        _OWN[core] = predictor, TraceTimer(predictor.core, predictor.analyser)
    predictor, timer = _OWN[core]
    return lift_sum(flow, predictor), lift_loops(flow, predictor), lift_traces(flow, predictor, timer)
