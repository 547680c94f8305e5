"""What every figure of a machine file is worth: the runtime at half, twice, and one step less and more of each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from kernmodel.errors import Note, UsageError
from kernmodel.machine.changes.figures import Figure, MachineFigures
from kernmodel.models.memory_ends import Ratio
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest
from kernmodel.studies.what_if.runs import Runs, runtime_ratio
from kernmodel.uncertainty import Interval, between
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What one figure is worth.

    Attributes:
        figure: of the machine file.
        elasticity: per cent of runtime per per cent of the figure, from `step` below and above.
        less, more: runtime ratio with the figure at 1/2 and at 2 times; below, above: at −step and +step. None where
            the figure cannot take the value (a fraction of a core).
        elasticity_interval, less_interval, below_interval, above_interval, more_interval: between which values these
            lie where the runtimes are not known.
    """

    figure: Figure
    elasticity: float | None
    less: float | None
    below: float | None
    above: float | None
    more: float | None
    elasticity_interval: Interval | None = None
    less_interval: Interval | None = None
    below_interval: Interval | None = None
    above_interval: Interval | None = None
    more_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class SensitivityAnswer:
    """The answer of `what-if --sensitivity`: all figures that matter, the greatest effect first, and the paths of those
    that do not."""

    before: EcmAnswer
    step: float
    figures: tuple[Sensitivity, ...]
    without_effect: tuple[str, ...]
    notes: tuple[Note, ...]


def sensitivity(
    kernel: KernelRequest,
    code: CodeRequest,
    cores: int = 1,
    step: float = 0.1,
    watched: Callable[[Sequence[Figure]], Iterable[Figure]] = iter,
) -> SensitivityAnswer:
    """The worth of every figure of the machine file that a prediction can depend on.

    Args:
        watched: gives the figures one by one, to show how far it is.

    Raises:
        UsageError: `step` is not between 0 and 1.
        KernmodelError: any stage's error about its input.
    """
    if not 0 < step < 1:
        raise UsageError(f"{step:g} is no step between 0 and 1", where="--step", todo="write --step 10%")
    figures = MachineFigures.open(kernel.machine)
    runs = Runs(kernel, code, cores)
    before = runs.answer()
    numeric = [figure for figure in figures.figures() if figure.value is not None]
    tried = [figure for figure in numeric if figure.value and _is_tried(figure.path)]
    found = [_sensitivity(figures, runs, before, figure, step) for figure in watched(tried)]
    matter = sorted((one for one in found if _size(one) > _NOTHING), key=_size, reverse=True)
    idle = {one.figure.path for one in found if _size(one) <= _NOTHING}
    unread = {figure.path for figure in numeric if figure.path.startswith(_UNREAD)}
    return SensitivityAnswer(
        before=before,
        step=step,
        figures=tuple(matter),
        without_effect=tuple(figure.path for figure in numeric if figure.path in idle | unread),
        notes=tuple(dict.fromkeys((*before.notes, *_followed(figures, matter), *_left_aside(numeric)))),
    )


_NOTHING = 5e-4
"""|ln(runtime ratio)| below which a figure counts as one without effect."""
_UNREAD = ("core.", "peaks.", "memory.")
"""Sections whose numbers the ECM model does not read: peak FLOP rates and widths of the core are roofs of the
roofline."""
_DERIVED = re.compile(r"caches\.\w+\.(sets|line)|bandwidths\.mixes\..*|bandwidths\.[^.]+\..+")
"""Figures that stand for others: a cache's sets follow from its size, series are scaled with their level, and stream
mixes describe benchmarks."""


def _is_tried(path: str) -> bool:
    return not path.startswith(_UNREAD) and _DERIVED.fullmatch(path) is None


def _followed(figures: MachineFigures, matter: Iterable[Sensitivity]) -> Iterator[Note]:
    """How measured bandwidths are read when a figure changes on which that depends."""
    for one in matter:
        with suppress(UsageError):
            (applied,) = figures.applied([(one.figure.path, "x2")])[1]
            yield from (note for note in applied.notes if note.code == "measured-unchanged")


def _left_aside(numeric: Iterable[Figure]) -> tuple[Note, ...]:
    """What the table does not tell of."""
    derived = "sets of caches, single measured series and stream mixes are not varied: they follow size and level"
    zeros = [figure.short for figure in numeric if figure.value == 0 and _is_tried(figure.path)]
    notes = [Note("derived-figures", derived, "assumption")]
    if zeros:
        text = f"figures that are 0 have no relative change; try them with --set: {', '.join(zeros)}"
        notes.append(Note("zero-figures", text, "assumption"))
    return tuple(notes)


def _size(one: Sensitivity) -> float:
    """How far the runtime moves from where it is, over all four values and their intervals."""
    held = (one.less_interval, one.below_interval, one.above_interval, one.more_interval)
    ratios = [ratio for ratio in (one.less, one.below, one.above, one.more) if ratio is not None]
    ratios += [end for interval in held if interval is not None for end in (interval.low, interval.high)]
    return max((abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf for ratio in ratios), default=0.0)


def _sensitivity(figures: MachineFigures, runs: Runs, before: EcmAnswer, figure: Figure, step: float) -> Sensitivity:
    factors = 0.5, 1 - step, 1 + step, 2.0
    tried = [_try(figures, runs, before, figure, factor) for factor in factors]
    less, below, above, more = (None if one is None else one[1] for one in tried)
    near = [one for one in tried[1:3] if one is not None]
    slope = _slope([(value, ratio.value) for value, ratio in near])
    other = _slope([(value, ratio.least) for value, ratio in near])
    cause = next(((ratio.cause, ratio.assumed) for _, ratio in near if ratio.cause), ("", ""))
    return Sensitivity(
        figure=figure,
        elasticity=slope,
        less=less and less.value,
        below=below and below.value,
        above=above and above.value,
        more=more and more.value,
        elasticity_interval=None if slope is None or other is None else between((slope, other), *cause),
        less_interval=less and less.interval(),
        below_interval=below and below.interval(),
        above_interval=above and above.interval(),
        more_interval=more and more.interval(),
    )


def _slope(near: Sequence[tuple[float, float]]) -> float | None:
    """The central difference of the logarithms; one-sided where the figure takes only one of the two values."""
    points = [(math.log(value), math.log(ratio)) for value, ratio in near if 0 < ratio < math.inf]
    if not points:
        return None
    (x, y), (other_x, other_y) = (points[0], points[-1]) if len(points) > 1 else (points[0], (0.0, 0.0))
    return (y - other_y) / (x - other_x) + 0.0


def _try(
    figures: MachineFigures, runs: Runs, before: EcmAnswer, figure: Figure, factor: float
) -> tuple[float, Ratio] | None:
    """Ratio of the figure and of the runtime; None where the figure cannot take a value near this."""
    change = Change(figure.path, f"x{factor!r}")
    if figure.dimension is None and figure.value is not None:
        change = Change(figure.path, str(round(figure.value * factor)))
    try:
        (applied,) = figures.applied([(change.path, change.value)])[1]
        if applied.ratio is None or applied.ratio == 1:
            return None
        return applied.ratio, runtime_ratio(before, runs.answer((change,)))
    except UsageError:
        return None
