"""The picture of `kernmodel binary run`: the function on the roofline of one core, with its measured time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.binary.ecm import with_measured
from kernmodel.errors import UsageError
from kernmodel.plot.roofline import roofline_figure
from kernmodel.plot.roofline_text import roofline_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.binary.answer import BinaryRun
    from kernmodel.studies.predict.roofline import RooflineAnswer


def function_figure(answer: BinaryRun) -> Figure:
    """The chart as a figure."""
    return roofline_figure(_charted(answer))


def function_drawing(answer: BinaryRun, width: int = 80, ascii_only: bool = False) -> str:
    """The chart in characters."""
    return roofline_text(_charted(answer), width, ascii_only)


def _charted(answer: BinaryRun) -> RooflineAnswer:
    """The chart, with the measured time where there is one.

    Raises:
        UsageError: there is no chart, and why.
    """
    data, time = answer.predicted.data, answer.time
    if data is None or data.roofline is None:
        known = (answer.predicted.not_traced, *(data.why_not if data is not None else ()))
        why = "; ".join(one for one in known if one) or "the addresses of the function were not traced"
        todo = "give a machine with -m, and leave kernmodel-ecm among the predictors"
        raise UsageError(f"there is no roofline to draw: {why}", where="--plot", todo=todo)
    return with_measured(data.roofline, time.seconds) if time is not None and time.cycles else data.roofline
