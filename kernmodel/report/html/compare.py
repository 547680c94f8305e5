"""Charts of kernels compared on machines: the prediction, and performance of a core, a domain and the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.report.html.charts import Axis, Bar, BarChart, Segment
from kernmodel.report.html.ecm import times_chart
from kernmodel.report.number_text import quantity
from kernmodel.report.text.ecm import performance_text
from kernmodel.studies.scaling import rate_in
from kernmodel.units import convert_cycles
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.studies.compare import CompareAnswer, MachineResult
    from kernmodel.studies.predict.request import EcmAnswer

Found = Sequence[tuple["MachineResult", "EcmAnswer"]]


def compare_charts(answers: Sequence[CompareAnswer], unit: str | None) -> tuple[BarChart, ...]:
    """Of each kernel, its performance and its times on every machine that has a prediction."""
    return tuple(chart for results in answers[0].by_kernel for chart in _of_kernel(results, unit))


def _of_kernel(results: Sequence[MachineResult], unit: str | None) -> Iterator[BarChart]:
    found = [(result, result.answer) for result in results if result.answer is not None]
    if not found:
        return
    first = found[0][1]
    rate = rate_in(unit, first.prediction.work)
    for title, which in (("one core", ""), ("a ccNUMA domain", "domain"), ("the machine", "whole")):
        bars = tuple(_bars(found, which, rate))
        if bars:
            about = f"Performance of {title} in {rate} by machine."
            name = f"{found[0][0].name} on {title}"
            yield BarChart(name, about, Axis(rate, rate), ("performance",), (bars,))
    for result, answer in found:
        yield replace(times_chart((answer,)), title=f"{result.name} on {result.machine}: {answer.prediction.overlap}")


def _bars(found: Found, which: str, rate: str) -> Iterator[Bar]:
    for result, answer in found:
        point = getattr(result, which) if which else None
        if which and point is None:
            continue
        cycles, cores = (point.cycles, point.cores) if point is not None else (answer.prediction.cycles, 1)
        value = convert_cycles(cycles, rate, answer.prediction.work)
        least = "at most " if answer.prediction.unknown else ""
        text = quantity(value, rate) if point is None else performance_text(point, rate, answer.prediction.work)
        tip = f"{least}{text} on {count(cores, 'core')}"
        yield Bar(result.machine, (Segment(0, 0.0, value, tip),))
