"""The picture of `kernmodel carm`: the cache-aware chart and the application-driven one on the same axes, and beside
them memory share and impact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.plot.roofline import Chart, figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.studies.roofline import CarmAnswer


def carm_figure(answer: CarmAnswer) -> Figure:
    """State of the art on the left, scaled on the right."""
    name, reading = answer.subject.name, answer.reading
    charts = [Chart((name,), (reading.beside,)), Chart((name,), (reading.roofline,))]
    heading = f"{name} on {answer.machine.title}, {answer.cores} core{'s' if answer.cores != 1 else ''}"
    return figure_of(charts, [(name, reading.shares)] if reading.shares else [], heading, same_limits=True)
