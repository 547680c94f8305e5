"""The page of a kernel on a machine: everything that `kernmodel report` asks, in sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from kernmodel.models.ecm import AT_LEAST
from kernmodel.report.commands import GIVEN_TEXT, commands
from kernmodel.report.html.blocking import blocking_chart
from kernmodel.report.html.blocks import blocks_html
from kernmodel.report.html.charts import figure
from kernmodel.report.html.dependences import graph_figure
from kernmodel.report.html.ecm import bytes_chart, levels_chart, over_sizes_chart, times_chart
from kernmodel.report.html.elements import Html, data, element, html
from kernmodel.report.html.listings import listings
from kernmodel.report.html.page import Section, page
from kernmodel.report.html.provenance import provenance
from kernmodel.report.html.rooflines import model_chart, shares_chart
from kernmodel.report.html.scaling import scaling_charts
from kernmodel.report.html.sensitivity import sensitivity_chart
from kernmodel.report.html.traffic import paths_chart, references_chart
from kernmodel.report.layout import Block, Blocks, Fields, Heading, Pair, table
from kernmodel.report.number_text import quantity
from kernmodel.report.text.blocking import blocking_report
from kernmodel.report.text.blocking import headline as headline_of_blocking
from kernmodel.report.text.carm import carm_report
from kernmodel.report.text.ecm import ecm_report, headline, performance_text
from kernmodel.report.text.incore import chain_section, components_section
from kernmodel.report.text.machine import machine_report
from kernmodel.report.text.report import verdict
from kernmodel.report.text.scaling import scaling_report
from kernmodel.report.text.sections import (
    code_fields,
    kernel_fields,
    machine_fields,
    notes_section,
    parameters_section,
    unit_of_work,
)
from kernmodel.report.text.traffic import CONDITIONS, condition_columns
from kernmodel.report.text.what_if import sensitivity_report
from kernmodel.studies.scaling import own_rate
from kernmodel.units import convert_cycles
from kernmodel.user_files import GivenText
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.studies.blocking.answer import BlockingAnswer
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.predict.roofline import RooflineAnswer
    from kernmodel.studies.report import KernelReport, Part, SizeAnswers
    from kernmodel.studies.scaling import ScalingAnswer
    from kernmodel.studies.what_if.sensitivity import SensitivityAnswer

Answer = TypeVar("Answer")
_SLIDER = "size"


def kernel_page(answer: KernelReport) -> str:
    """The whole page."""
    ecm = answer.ecm
    title = f"{ecm.nest.name} on {ecm.machine.name}"
    lead = html(
        element("p", verdict(answer), class_="verdict"),
        blocks_html((Fields(_inputs(ecm)),)),
        _tiles(answer),
    )
    return page(title, lead, tuple(_sections(answer)))


def _sections(answer: KernelReport) -> Iterator[Section]:
    ecm = answer.ecm
    yield Section("Source and assembly", "code", listings(ecm))
    yield Section("Prediction", "prediction", _prediction(ecm))
    yield Section("Sizes and layer conditions", "sizes", _sizes(answer))
    yield Section("Data traffic", "traffic", _traffic(ecm))
    yield Section("Rooflines", "rooflines", _made(answer.rooflines, _rooflines))
    yield Section(
        "Memory share and impact",
        "carm",
        _made(answer.carm, lambda found: blocks_html(_without_inputs(carm_report(found)))),
    )
    yield Section("The core", "core", _core(answer))
    yield Section("Cores", "cores", _made(answer.scaling, _scaling))
    yield Section("Blocking", "blocking", _made(answer.blocking, _blocking))
    yield Section("What the machine's figures are worth", "sensitivity", _made(answer.sensitivity, _sensitivity))
    yield Section("The machine", "machine", blocks_html(machine_report(ecm.machine, verbose=True)[1:]))
    yield Section("To repeat it", "repeat", _repeat(answer))
    yield Section("Notes", "notes", blocks_html(notes_section(answer.notes)[1:]))


def _made(part: Part[Answer], show: Callable[[Answer], Html]) -> Html:
    """What is shown of a part, or why there is none."""
    if part.answer is None:
        return element("p", f"Not told: {part.error}", class_="warning")
    return show(part.answer)


def _inputs(ecm: EcmAnswer) -> tuple[Pair, ...]:
    return (
        *kernel_fields(ecm.nest, ecm.sizes),
        *machine_fields(ecm.machine),
        *code_fields(ecm.origin),
        ("unit of work", unit_of_work(ecm.traffic)),
    )


def _tiles(answer: KernelReport) -> Html:
    """The figures that people ask for first."""
    prediction, scaling = answer.ecm.prediction, answer.scaling.answer
    rate = own_rate(prediction.work)
    least = "≤ " if prediction.unknown else ""
    tiles = [(headline(prediction, "cy/CL", cause=False), "one core, per cache line of work (T_ECM)")]
    tiles.append((f"{least}{quantity(convert_cycles(prediction.cycles, rate, prediction.work), rate)}", "one core"))
    if scaling is not None:
        best = max(scaling.rows, key=lambda row: row.point.units_per_cycle)
        whole = performance_text(best.point, rate, prediction.work)
        tiles.append((whole, f"{count(best.point.cores, 'core')}, the most of the machine"))
        found = scaling.saturation_recursive
        domain = answer.ecm.machine.topology.cores_per_numa_domain
        least = AT_LEAST * (prediction.saturation_is_least and found is not None)
        tiles.append((f"{least}{found or 'none'}", f"of {count(domain, 'core')} saturate a ccNUMA domain (n_S)"))
    if answer.ecm.traffic.flops_per_iteration:
        intensity = answer.ecm.traffic.arithmetic_intensity.get("Mem")
        shown = "∞" if intensity is None else f"{intensity:.4g} FLOP/B"
        tiles.append((shown, "arithmetic intensity at memory"))
    return element(
        "div", [element("div", element("b", value), element("span", what)) for value, what in tiles], class_="tiles"
    )


def _prediction(ecm: EcmAnswer) -> Html:
    charts = element("div", figure(times_chart((ecm,))), figure(levels_chart((ecm,))), class_="pair")
    return html(charts, blocks_html(_of(ecm_report(ecm, "cy/CL"), "Single core", "Prediction", "Saturation")))


def _sizes(answer: KernelReport) -> Html:
    return html(
        _made(answer.sizes, _slider), blocks_html(_of(ecm_report(answer.ecm, "cy/CL", verbose=True), "What", "Counts"))
    )


def _slider(sizes: SizeAnswers) -> Html:
    """A slider over the size, and what follows it."""
    answers, name = sizes.answers, sizes.name
    said = [f"{name} = {one.sizes[name]}: T_ECM {headline(one.prediction, 'cy/CL', cause=False)}" for one in answers]
    slider = element(
        "div",
        element("label", f"{name} at one of {len(answers)} computed values", for_=_SLIDER),
        element("input", type="range", id=_SLIDER, min=0, max=len(answers) - 1, value=sizes.place, list=None),
        element("output", said[sizes.place], for_=_SLIDER),
        data(said),
        class_="slider",
        data_slider=_SLIDER,
    )
    frames = [
        element("div", _conditions(one), data_frame_of=_SLIDER, data_frame=number, hidden=number != sizes.place)
        for number, one in enumerate(answers)
    ]
    charts = (
        over_sizes_chart(answers, name, follows=_SLIDER),
        bytes_chart(answers, name, follows=_SLIDER),
        times_chart(answers, follows=_SLIDER, place=sizes.place),
        levels_chart(answers, follows=_SLIDER, place=sizes.place),
    )
    failed = [
        element("p", f"{name} = {value} is left out: {error}", class_="warning") for value, error in sizes.failed[:3]
    ]
    return html(slider, frames, element("div", [figure(chart) for chart in charts], class_="pair"), failed)


def _conditions(answer: EcmAnswer) -> Html:
    """The layer conditions at one size."""
    if not answer.traffic.conditions:
        return element("p", f"No layer conditions at this size: the traffic is found by {answer.traffic.method}.")
    columns = condition_columns("cache", "reuse along", "condition", "holds", "holds for", "hits", "misses")
    blocks = table(CONDITIONS, columns, answer.traffic.conditions)
    simulated = answer.traffic.symbolic is not None
    told = element("p", "Where they were doubted, a simulation decided the traffic.") if simulated else None
    return html(blocks_html(blocks), told)


def _traffic(ecm: EcmAnswer) -> Html:
    charts = (references_chart(ecm.traffic), paths_chart(ecm.traffic, ecm.machine))
    details = _of(ecm_report(ecm, "cy/CL", verbose=True), "Traffic per", "Bytes", "Requests", "Transfer", "Write")
    return html(element("div", [figure(chart) for chart in charts], class_="pair"), blocks_html(details))


def _rooflines(found: RooflineAnswer) -> Html:
    one = found.kernels[0]
    charts = [figure(model_chart([(one.subject, chart)])) for chart in one.rooflines]
    shares = figure(shares_chart(one.shares, one.subject.name)) if one.shares else None
    return html(charts, shares)


def _core(answer: KernelReport) -> Html:
    incore = answer.ecm.incore
    graph = _made(answer.dependences, lambda found: graph_figure(incore, found))
    blocks = (*components_section(incore), *chain_section(incore), *parameters_section(answer.ecm.parameters))
    return html(graph, blocks_html(blocks))


def _scaling(found: ScalingAnswer) -> Html:
    (chart,) = scaling_charts((found,), None)
    summary, rows, *rest = list(_groups(_without_inputs(scaling_report((found,), None))))
    shown = replace(chart, table=tuple(rows))
    return html(figure(shown), blocks_html((*summary, *(block for group in rest for block in group))))


def _blocking(found: BlockingAnswer) -> Html:
    chart = figure(blocking_chart(found, "cy/CL")) if found.sweep else None
    told = [element("p", line, class_="strong") for line in headline_of_blocking(found, "cy/CL")]
    return html(told, chart, blocks_html(_without_inputs(blocking_report(found, "cy/CL"))))


def _sensitivity(found: SensitivityAnswer) -> Html:
    chart = figure(sensitivity_chart(found)) if found.figures else None
    return html(chart, blocks_html(_without_inputs(sensitivity_report(found, "cy/CL"))))


def _repeat(answer: KernelReport) -> Html:
    lines = commands(_QUESTIONS, answer.kernel, answer.code)
    given = isinstance(answer.kernel.kernel, GivenText)
    told = element("p", f"The source was given as text: save it as {GIVEN_TEXT}.") if given else None
    return html(told, provenance(lines, (answer.ecm,)))


_QUESTIONS = (
    *("report -o page.html", "ecm", "traffic", "roofline --model all", "carm"),
    *("scaling", "blocking", "what-if --sensitivity"),
)


def _groups(blocks: Blocks) -> Iterator[list[Block]]:
    """The blocks in groups, each from its title on."""
    group: list[Block] = []
    for block in blocks:
        if isinstance(block, Heading) and group:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _of(blocks: Blocks, *beginnings: str) -> Blocks:
    """The groups whose titles begin so."""
    chosen = (
        group for group in _groups(blocks) if isinstance(group[0], Heading) and group[0].text.startswith(beginnings)
    )
    return tuple(block for group in chosen for block in group)


def _without_inputs(blocks: Blocks) -> Blocks:
    """The blocks without the first group, which says what was asked for, and without the notes."""
    _, *rest = _groups(blocks)
    kept = (group for group in rest if not (isinstance(group[0], Heading) and group[0].text == "Notes"))
    return tuple(block for group in kept for block in group)
