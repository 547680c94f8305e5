"""The picture of `kernmodel carm`: the cache-aware chart and the application-driven one on the same axes, and beside
them memory share and impact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.plot.caption import on_machine
from kernmodel.plot.roofline import Chart, figure_of, subjects_caption

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.studies.predict.roofline import CarmAnswer


def carm_figure(answer: CarmAnswer) -> Figure:
    """State of the art on the left, scaled on the right."""
    name, findings = answer.subject.name, answer.findings
    charts = [Chart((name,), (findings.beside,)), Chart((name,), (findings.roofline,))]
    caption = subjects_caption(on_machine(name, answer.machine, answer.cores), [answer.subject], answer.machine)
    return figure_of(charts, [(name, findings.shares)] if findings.shares else [], caption, same_limits=True)
