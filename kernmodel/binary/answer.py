"""Where the cycles of a function go: occurrences, predictions and a measurement of one program, put together."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.binary.address_trace import residency
from kernmodel.binary.ecm import DataAnswer, data_answer, ecm_prediction
from kernmodel.binary.lifting import LiftedPrediction, lift_loops, lift_sum, lift_traces
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.predictors.own import OWN, OWN_ECM, OwnPredictor
from kernmodel.binary.predictors.protocol import Predictor
from kernmodel.binary.program import Function
from kernmodel.binary.recorded_run import RecordedRun, recorded_run
from kernmodel.binary.runs import Command, Told
from kernmodel.binary.timing import FunctionTime
from kernmodel.binary.walks import CountedFlow
from kernmodel.errors import InputError, Note, ToolError
from kernmodel.machine.model import Machine
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Predicted:
    """What is predicted of a function: by every predictor and way, ours first; where its data lie, where that was asked
    for, and why that is not known."""

    predictions: tuple[LiftedPrediction, ...]
    versions: dict[str, str]
    data: DataAnswer | None = None
    not_traced: str = ""


@dataclass(frozen=True, slots=True)
class BinaryRun:
    """The answer of `kernmodel binary run`.

    Attributes:
        command: the program and its arguments.
        function, occurrences: what ran, and how often.
        core: microarchitecture that is predicted for; title: its name for people.
        clock_hz: for times in seconds: of the core as measured, else of the machine file; None where neither is.
        predicted: by every predictor and way, and where its data lie.
        time: as measured, None where that was not asked for; not_measured: why it could not be.
    """

    command: tuple[str, ...]
    function: Function
    occurrences: Occurrences
    core: str
    title: str
    clock_hz: float | None
    predicted: Predicted
    time: FunctionTime | None = None
    not_measured: str = ""

    @property
    def best(self) -> LiftedPrediction | None:
        """The prediction whose blocks and loops are shown: the first that there is; with transfers, where the first
        cache does not hold the data."""
        there = [one for one in self.predicted.predictions if one.cycles is not None]
        data = self.predicted.data
        beyond = data is not None and not data.residency.is_resident
        chosen = [one for one in there if beyond == (one.predictor == OWN_ECM)]
        return next(iter(chosen or there), None)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is assumed and not known."""
        best, data = self.best, self.predicted.data
        time = self.time.notes if self.time is not None else ()
        known = best.notes if best is not None else ()
        return (*self.function.notes, *self.occurrences.notes, *time, *known, *(data.notes if data else ()))

    def error_percent(self, prediction: LiftedPrediction) -> float | None:
        """How far a prediction is from the measured time, with its sign, in percent of that."""
        if self.time is None or not self.time.cycles or prediction.cycles is None:
            return None
        return 100 * (prediction.cycles / self.time.cycles - 1)


def predicted(
    flow: CountedFlow, command: Command, chosen: Sequence[Predictor], machine: Machine | None, told: Told
) -> Predicted:
    """Predictions of a call by these predictors.

    Args:
        machine: whose caches the addresses of a run go through, for the ECM prediction; None: without that.

    Raises:
        ToolError: a predictor does not start.
    """
    run = None
    if machine is not None or any(isinstance(one, OwnPredictor) for one in chosen):
        run = beginning(flow.function, command, told)
    found = [one for predictor in chosen for one in lifted(flow, predictor, run, told)]
    versions = {one.name: one.version for one in chosen}
    data, why = None, ""
    if machine is not None:
        known = next((one for one in chosen if isinstance(one, OwnPredictor)), None)
        own = known or OwnPredictor(machine.core.microarchitecture)
        in_core = [one for one in found if one.predictor == OWN] or lifted(flow, own, run, told)
        data, prediction = with_data(flow, command, machine, in_core, own, told)
        why = prediction.failed if data is None else ""
        found.append(prediction)
        versions[OWN_ECM] = own.version
    order = (OWN, OWN_ECM)
    found.sort(key=lambda one: order.index(one.predictor) if one.predictor in order else len(order))
    return Predicted(tuple(found), versions, data, why)


def with_data(
    flow: CountedFlow,
    command: Command,
    machine: Machine,
    in_core: Sequence[LiftedPrediction],
    own: OwnPredictor,
    told: Told = lambda what: None,
) -> tuple[DataAnswer | None, LiftedPrediction]:
    """Where the data lie, by the addresses of a run, and the prediction with that, or why there is none.

    Args:
        in_core: predictions of ours, the best first.
    """
    try:
        found = residency(flow.function, command, hierarchy_of(machine), told)
    except (ToolError, InputError) as error:
        return None, LiftedPrediction(OWN_ECM, "traces", None, failed=str(error))
    base = next((one for one in in_core if one.cycles is not None), None)
    data = data_answer(flow, found, base, machine, own)
    if data.ecm is None or base is None:
        failed = "; ".join(data.why_not) or next((one.failed for one in in_core), "nothing of it ran")
        return data, LiftedPrediction(OWN_ECM, "traces", None, failed=failed)
    return data, ecm_prediction(data.ecm, base)


def beginning(function: Function, command: Command, told: Told = lambda what: None) -> RecordedRun | str:
    """The beginning of a run of the program, or why it cannot be recorded."""
    try:
        return recorded_run(function, command, told)
    except (ToolError, InputError) as error:
        return str(error)


def lifted(
    flow: CountedFlow, predictor: Predictor, run: RecordedRun | str | None = None, told: Told = lambda what: None
) -> list[LiftedPrediction]:
    """Predictions of a call by a predictor: ours in all ways, the simulated walks first, others as sums.

    Args:
        run: as of `lift_traces`.

    Raises:
        ToolError: it does not start.
    """
    told(f"predicting by {predictor.name}")
    own = (
        [lift_traces(flow, predictor, run=run), lift_loops(flow, predictor)]
        if isinstance(predictor, OwnPredictor)
        else []
    )
    return [*own, lift_sum(flow, predictor)]
