"""The page of several kernels or machines: everything that `kernmodel report` tells of them, in sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.report.commands import commands
from kernmodel.report.html.blocks import blocks_html
from kernmodel.report.html.charts import Axis, BarChart, LineChart, figure, stacked
from kernmodel.report.html.compare import compare_charts
from kernmodel.report.html.elements import Html, element, html
from kernmodel.report.html.page import Section, page
from kernmodel.report.html.provenance import provenance
from kernmodel.report.html.rooflines import models_charts, same_axes
from kernmodel.report.layout import Heading
from kernmodel.report.text.compare import compare_report
from kernmodel.report.text.machine import machine_report
from kernmodel.report.text.report import comparison_verdicts
from kernmodel.report.text.sections import merged_notes, notes_section

if TYPE_CHECKING:
    from kernmodel.studies.comparison import ComparisonReport
    from kernmodel.studies.predict.request import EcmAnswer


def comparison_page(answer: ComparisonReport) -> str:
    """The whole page."""
    found = [result.answer for result in answer.compared.results if result.answer is not None]
    kernels = list(dict.fromkeys(one.nest.name for one in found))
    title = f"{', '.join(kernels)} on {', '.join(dict.fromkeys(one.machine.name for one in found))}"
    lead = html(element("p", line, class_="verdict") for line in comparison_verdicts(answer))
    return page(title, lead, tuple(_sections(answer, found)))


def _sections(answer: ComparisonReport, found: list[EcmAnswer]) -> Iterator[Section]:
    told = compare_report(answer.compared, None, verbose=True)
    notes = next((at for at, one in enumerate(told) if isinstance(one, Heading) and one.text == "Notes"), len(told))
    charts = [figure(chart) for chart in compare_charts((answer.compared,), None)]
    yield Section("Predictions", "predictions", html(blocks_html(told[:notes]), charts))
    yield Section("Rooflines", "rooflines", html(_rooflines(answer)))
    shares = _shares(answer)
    if shares is not None:
        yield Section("Shares of the time", "shares", figure(shares))
    machines = {one.machine.name: one.machine for one in found}
    blocks = (block for machine in machines.values() for block in machine_report(machine, verbose=True))
    yield Section("The machines", "machines", blocks_html(tuple(blocks)))
    yield Section("To repeat it", "repeat", provenance(_commands(answer), found))
    yield Section("Notes", "notes", blocks_html(notes_section(merged_notes(answer.notes))[1:]))


def _commands(answer: ComparisonReport) -> list[str]:
    """Those that tell more of each kernel on each machine."""
    asked = (replace(kernel, machine=name) for kernel in answer.kernels for name in answer.rooflines)
    return [line for kernel in asked for line in commands(("report -o page.html",), kernel, answer.code)]


def _rooflines(answer: ComparisonReport) -> Iterator[Html]:
    """The charts of each model, machine by machine, on the same axes."""
    by_machine = {
        name: models_charts(part.answer) for name, part in answer.rooflines.items() if part.answer is not None
    }
    for of_model in zip(*by_machine.values(), strict=False):
        together = same_axes(of_model)
        yield element("div", [_chart(name, one) for name, one in zip(by_machine, together, strict=True)], class_="pair")
    for name, part in answer.rooflines.items():
        if part.answer is None:
            yield element("p", f"No chart of {name}: {part.error}", class_="warning")


def _chart(machine: str, chart: LineChart) -> Html:
    return figure(replace(chart, title=f"{chart.title} on {machine}"))


def _shares(answer: ComparisonReport) -> BarChart | None:
    """Of the time that all kernels take, the share of each, machine by machine."""
    found: dict[str, Mapping[str, float]] = {
        name: part.answer.times for name, part in answer.rooflines.items() if part.answer is not None
    }
    found = {name: times for name, times in found.items() if times}
    if not found:
        return None
    kernels = tuple(dict.fromkeys(name for times in found.values() for name in times))
    bars = tuple(
        stacked(machine, [(kernels.index(name), name, 100 * share) for name, share in times.items()], "%")
        for machine, times in found.items()
    )
    about = "Share of the time that each kernel takes if each nest is executed once on a full ccNUMA domain."
    return BarChart("Shares of the time", about, Axis("% of the time"), kernels, (bars,))
