"""Values of an evaluation of kernels: measured points, how far predictions are from them, and groups of series."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.models.ecm import EcmPrediction
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

OURS = "kernmodel"


@dataclass(frozen=True, slots=True)
class Series:
    """What the points of one series share: a kernel, as one code, on one machine.

    Attributes:
        kernel: its name in the file.
        machine: name or path of the machine file.
        source: the C file, or the name of a carried kernel.
        listing: assembly that executes it, None: as the compiler makes it.
        compiler, flags: instead of those of the machine file, None: those.
        kind: the file's own class of the kernel, "" where it has none.
    """

    kernel: str
    machine: str
    source: str
    listing: str | None = None
    compiler: str | None = None
    flags: tuple[str, ...] | None = None
    kind: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One measurement.

    Attributes:
        line: of the file, 1-based.
        sizes: of the kernel; cores: active cores, one thread each.
        unit: of `measured` and `peers`, one of `units.TIME_UNITS`; a rate without prefix.
        traffic: measured bytes per iteration by path ("L2L3"), both directions together.
        peers: predictions of other models, by name.
    """

    line: int
    sizes: Mapping[str, int]
    cores: int
    unit: str
    measured: float
    traffic: Mapping[str, float]
    peers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class KernelFile:
    """A file of measured kernels; `skipped` are lines without a usable point, and why."""

    file: str
    series: Mapping[Series, tuple[MeasuredPoint, ...]]
    skipped: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A measurement beside its prediction.

    Attributes:
        measured, predicted: cycles per unit of work, of all cores together; predicted_interval: between which values
            the latter lies where it is not known.
        peers: predictions of other models, in the same unit.
        prediction: of one core.
        residence: where the arrays lie by their total size ("L2", "edge L2/L3", "L3", "edge L3/Mem", "Mem").
        share: of a ccNUMA domain that is active: "one core", "part of a domain", "full domain", "beyond a domain".
        moved: predicted bytes per iteration by path, both directions together, where traffic was measured.
    """

    point: MeasuredPoint
    measured: float
    predicted: float
    peers: Mapping[str, float]
    prediction: EcmPrediction
    residence: str
    share: str
    moved: Mapping[str, float]
    predicted_interval: Interval | None = None

    @property
    def error_percent(self) -> float:
        """Signed error of the prediction in percent of the measured time; negative: predicted too fast."""
        return 100 * (self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True)
class JudgedSeries:
    """A series with its points, and the short name of its machine; `failed` are lines without a prediction, and why."""

    series: Series
    machine: str
    points: tuple[JudgedPoint, ...]
    failed: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """The errors of one predictor, in percent of the measured time; every series weighs the same.

    Attributes:
        series, points: how many.
        mean_percent: mean over the series of the mean absolute error of its points; signed_percent: the same with
            signs; median_percent: median over all points.
    """

    series: int
    points: int
    mean_percent: float
    signed_percent: float
    median_percent: float


@dataclass(frozen=True, slots=True)
class PointGroup:
    """Points of one kind: `grouping` says by what ("machine", "residence"), summaries are by predictor, ours first."""

    grouping: str
    name: str
    summaries: Mapping[str, ErrorSummary]


@dataclass(frozen=True, slots=True)
class TrafficError:
    """Mean and median absolute error of the bytes over a path in percent; mean with every series weighing the same."""

    path: str
    series: int
    points: int
    mean_percent: float
    median_percent: float


@dataclass(frozen=True, slots=True)
class KernelEvaluation:
    """The answer of `kernmodel evaluate kernels`.

    Attributes:
        file: as it was given; skipped: lines without a usable point, and why.
        series: all of them, with their points.
        groups: "all" first; by machine, residence, class and size of points of one core, and by share of the domain.
        traffic: where it was measured.
        sampled: whether points were left out to be quick.
    """

    file: str
    skipped: tuple[tuple[int, str], ...]
    series: tuple[JudgedSeries, ...]
    groups: tuple[PointGroup, ...]
    traffic: tuple[TrafficError, ...]
    sampled: bool
