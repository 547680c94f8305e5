"""Values of a validation: kernels run on this host beside their predictions, and experiments on what is far off."""

from __future__ import annotations

from typing import Literal

from kernmodel.errors import Note
from kernmodel.evaluate.kernel_model import JudgedPoint, PointGroup
from kernmodel.measure.model import KernelMeasurement
from kernmodel.value_types import dataclass

Cause = Literal[
    "in-core time",
    "composition",
    "short passes",
    "loop address",
    "array addresses",
    "page size",
    "share of the cache",
    "run length",
]
"""What an experiment asks about."""
_MODELLED = ("in-core time", "composition")
"""Causes that are asked about without running anything again."""
CLOSE_PERCENT = 10.0
"""Error from which on, in percent, a prediction needs no cause."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A point once more, with one thing changed in the prediction, the measurement or both.

    Attributes:
        cause: what is asked about; change: what was changed ("T_OL = 7.3 cy/CL, as measured in L1").
        measured, predicted: cycles per unit of work.
    """

    cause: Cause
    change: str
    measured: float
    predicted: float

    @property
    def error_percent(self) -> float:
        """Signed error of the prediction in percent of the measured time."""
        return 100 * (self.predicted / self.measured - 1)

    def explains(self, error_percent: float) -> bool:
        """Whether at most half of an error is left, or little of it."""
        return abs(self.error_percent) <= max(abs(error_percent) / 2, min(CLOSE_PERCENT, abs(error_percent)))


@dataclass(frozen=True, slots=True)
class ValidatedPoint:
    """A kernel with its data in one level.

    Attributes:
        kernel: its name; kind: of loop ("stream", "stencil", "reduction", "reuse").
        run: the measurement; judged: beside its prediction.
        experiments: on the cause, where the error is large.
    """

    kernel: str
    kind: str
    run: KernelMeasurement
    judged: JudgedPoint
    experiments: tuple[Experiment, ...] = ()

    @property
    def level(self) -> str:
        """Where the data were to lie."""
        return self.run.level

    @property
    def error_percent(self) -> float:
        """Signed error of the prediction in percent of the measured time; negative: predicted too fast."""
        return self.judged.error_percent

    @property
    def telling(self) -> tuple[Experiment, ...]:
        """The experiments that can explain the error: not those under a condition in which both are slower, which hides
        by what a prediction was too fast."""
        fast = self.error_percent < 0
        return tuple(
            one for one in self.experiments if one.cause in _MODELLED or not fast or one.measured < self.judged.measured
        )

    @property
    def causes(self) -> tuple[Experiment, ...]:
        """The telling experiments that leave at most half of the error, the least error first."""
        found = [one for one in self.telling if one.explains(self.error_percent)]
        return tuple(sorted(found, key=lambda one: abs(one.error_percent)))


@dataclass(frozen=True, slots=True)
class Left:
    """A kernel that has no point in a level ("" for all), and why."""

    kernel: str
    level: str
    why: str


@dataclass(frozen=True, slots=True)
class Validation:
    """The answer of `kernmodel validate`.

    Attributes:
        machine: its name; clock_hz: of the machine file; measured_hz: of this host, the median of the points.
        large_percent: of errors beyond experiments ask the cause.
        points: in the order of the kernels; left: kernels without.
        groups: errors of all points, by level, by class and by both.
        notes: what is to know of all of it.
    """

    machine: str
    clock_hz: float
    measured_hz: float
    large_percent: float
    points: tuple[ValidatedPoint, ...]
    left: tuple[Left, ...]
    groups: tuple[PointGroup, ...]
    notes: tuple[Note, ...]
