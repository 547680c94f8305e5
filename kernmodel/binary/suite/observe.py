"""What a process of a suite does with a variant: build it, find the function, count it, predict it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernmodel.binary.answer import beginning, with_data
from kernmodel.binary.counting import count_occurrences
from kernmodel.binary.find import find_function
from kernmodel.binary.lifting import WAYS, LiftedPrediction, lift_loops, lift_sum, lift_traces
from kernmodel.binary.predictors.own import OWN_ECM, OwnPredictor
from kernmodel.binary.predictors.protocol import piece_of
from kernmodel.binary.runs import Command
from kernmodel.binary.suite.build import build
from kernmodel.binary.suite.model import Observed, SuiteFile, Variant
from kernmodel.binary.trace_time import TraceTimer
from kernmodel.binary.walks import CountedFlow
from kernmodel.errors import KernmodelError
from kernmodel.machine.model import Machine

_OWN: dict[str, tuple[OwnPredictor, TraceTimer]] = {}
"""The predictor of a worker process, from its first variant to its end."""


def observe(variant: Variant, suite: SuiteFile, core: str, machine: Machine | None, key: str, folder: Path) -> Observed:
    """Everything about a variant that needs no quiet machine; what is wrong with it stands in the answer."""
    empty = Observed(variant.name, key)
    binary = folder / key
    try:
        if not binary.exists():
            build(variant, suite, binary)
        function = find_function(binary, suite.function)
        command = Command((str(binary),))
        function, occurrences = count_occurrences(function, command)
    except KernmodelError as error:
        return replace(empty, failed=str(error))
    flow = CountedFlow(function, occurrences)
    calls = max(1, occurrences.calls)
    counts = [(block, flow.count(block.address) / calls) for block in function.blocks if flow.count(block.address)]
    pieces = [(piece, count) for block, count in counts if (piece := piece_of(block, "unrolled")) is not None]
    data = None
    predictor, timer = _own(core)
    lifted = [
        lift_sum(flow, predictor),
        lift_loops(flow, predictor),
        lift_traces(flow, predictor, timer, beginning(function, command)),
    ]
    if machine is not None:
        found, prediction = with_data(flow, command, machine, [*reversed(lifted)], predictor)
        lifted.append(prediction)
        data = found.residency if found is not None else None
    return replace(
        empty,
        binary=str(binary),
        calls=occurrences.calls,
        instructions=sum(len(block.instructions) * count for block, count in counts),
        blocks=tuple((piece.code.hex(), count) for piece, count in pieces),
        predicted={_way(one): one.cycles for one in lifted if one.cycles is not None},
        low={_way(one): one.interval.low for one in lifted if one.interval is not None},
        refused={_way(one): one.failed for one in lifted if one.cycles is None},
        data=None if data is None else {name: getattr(data, name) for name in RESIDENCY},
    )


RESIDENCY = ("footprint_bytes", "misses_per_access", "misses_per_line")
"""What records keep of where data lie."""
ECM = "ecm"


def _way(one: LiftedPrediction) -> str:
    return ECM if one.predictor == OWN_ECM else WAYS[one.way]


def _own(core: str) -> tuple[OwnPredictor, TraceTimer]:
    if core not in _OWN:
        predictor = OwnPredictor(core)
        _OWN[core] = predictor, TraceTimer(predictor.core, predictor.analyser)
    return _OWN[core]
