"""Where the cycles of a function go: occurrences, predictions and a measurement of one program, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernmodel.binary.lifting import LiftedPrediction, lift_loops, lift_sum, lift_traces
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.predictors.own import OWN, OwnPredictor
from kernmodel.binary.predictors.protocol import Predictor
from kernmodel.binary.program import Function
from kernmodel.binary.timing import FunctionTime
from kernmodel.binary.walks import CountedFlow
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class BinaryRun:
    """The answer of `kernmodel binary run`.

    Attributes:
        command: the program and its arguments.
        function, occurrences: what ran, and how often.
        core: microarchitecture that is predicted for; title: its name for people.
        clock_hz: for times in seconds: of the core as measured, else of the machine file; None where neither is.
        predictions: by every predictor and way, the best own one first.
        versions: of the predictors by name.
        time: as measured, None where that was not asked for; not_measured: why it could not be.
    """

    command: tuple[str, ...]
    function: Function
    occurrences: Occurrences
    core: str
    title: str
    clock_hz: float | None
    predictions: tuple[LiftedPrediction, ...]
    versions: dict[str, str]
    time: FunctionTime | None = None
    not_measured: str = ""

    @property
    def best(self) -> LiftedPrediction | None:
        """The prediction whose blocks and loops are shown: the first that there is."""
        return next((one for one in self.predictions if one.cycles is not None), None)

    def error_percent(self, prediction: LiftedPrediction) -> float | None:
        """How far a prediction is from the measured time, with its sign, in percent of that."""
        if self.time is None or not self.time.cycles or prediction.cycles is None:
            return None
        return 100 * (prediction.cycles / self.time.cycles - 1)


def lifted(
    function: Function,
    occurrences: Occurrences,
    predictors: Sequence[Predictor],
    told: Callable[[str], object] = lambda what: None,
) -> tuple[LiftedPrediction, ...]:
    """Predictions of a call by every predictor: ours in all ways, the simulated walks first, others as sums.

    Raises:
        ToolError: a predictor does not start.
    """
    flow = CountedFlow(function, occurrences)
    found: list[LiftedPrediction] = []
    for predictor in predictors:
        told(f"predicting by {predictor.name}")
        if isinstance(predictor, OwnPredictor):
            found += [lift_traces(flow, predictor), lift_loops(flow, predictor)]
        found.append(lift_sum(flow, predictor))
    return tuple(sorted(found, key=lambda one: one.predictor != OWN))
