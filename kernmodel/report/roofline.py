"""The answer of `kernmodel roofline` as text: intensities, ceilings, bound, and what limits; or a table of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, prefixed, short
from kernmodel.report.sections import (
    code_fields,
    kernel_fields,
    loop_section,
    machine_fields,
    merged_notes,
    notes_section,
)

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, LevelShare, MemoryRoof, ModelName, Point, Roofline
    from kernmodel.studies.predict.roofline import Charted, RooflineAnswer, Subject

TITLES: dict[ModelName, str] = {
    "orm": "Original roofline",
    "hierarchical": "Hierarchical roofline",
    "carm": "Cache-aware roofline (CARM)",
    "irm": "Integrated roofline (IRM)",
    "adcarm": "Application-driven cache-aware roofline (adCARM)",
}
"""What a model is called."""

ROLES = {
    "peak": "peak of the machine",
    "scaled": "scaled by the kernel's mix",
    "in-core": "the kernel's own code",
    "dependency": "the kernel's own code",
}
FLOP = "an FMA counts 2; all cores together"


def roofline_report(answer: RooflineAnswer, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer."""
    if len(answer.kernels) > 1:
        return _several(answer)
    kernel = answer.kernels[0]
    return (
        Heading(f"Roofline of {kernel.subject.name} on {answer.machine.name}, {count(answer.cores, 'core')}"),
        Fields((*subject_fields(kernel.subject), *machine_fields(answer.machine), ("FLOP", FLOP))),
        *(block for chart in kernel.rooflines for block in chart_blocks(chart, kernel.subject)),
        *(shares_section(kernel.shares) if verbose else ()),
        *(code_section(kernel.subject) if verbose else ()),
        *notes_section(answer.notes),
    )


def subject_fields(subject: Subject) -> tuple[tuple[str, str], ...]:
    """Which kernel at which sizes, and which code."""
    source = kernel_fields(subject.nest, subject.sizes) if subject.nest is not None else ()
    code = code_fields(subject.origin) if subject.origin is not None else ()
    mix = subject.case.mix
    given = (("instruction mix", mix.source),) if mix is not None and mix.source.startswith("file ") else ()
    return (*source, *code, *given)


def code_section(subject: Subject) -> tuple[Block, ...]:
    """The loop that executes the kernel."""
    return loop_section(subject.loop, subject.origin) if subject.loop is not None and subject.origin else ()


# {{{ one chart


def chart_blocks(chart: Roofline, subject: Subject) -> tuple[Block, ...]:
    """One model of one kernel: what limits, the intensities with their roofs, the compute roofs."""
    return (
        Heading(TITLES[chart.model]),
        Line(f"  {_headline(chart)}", "strong"),
        Fields(_verdict(chart, subject)),
        *_intensities(chart),
        *compute_section(chart.compute_roofs),
    )


def _headline(chart: Roofline) -> str:
    return f"at most {limit_of(chart)}, by {roof_name(chart.bound_by)}"


def limit_of(chart: Roofline) -> str:
    """The bound with its unit: iterations where the kernel computes nothing."""
    return prefixed(chart.bound, "FLOP/s") if chart.bound else prefixed(chart.iterations_per_second, "It/s")


def roof_name(name: str | None) -> str:
    """A roof in a sentence."""
    return f"the roof of {name}" if name else "-"


def _verdict(chart: Roofline, subject: Subject) -> tuple[tuple[str, str], ...]:
    pairs = [("bytes", chart.bytes_meant)]
    if subject.iterations_per_second:
        pairs.append(("predicted (ECM)", _prediction(chart, subject)))
        pairs.append(("limited by", subject.reason))
    pairs += [("region", region_of(chart)), ("roof above", _neighbour(chart.above)), ("below", _neighbour(chart.below))]
    return tuple(pairs)


def _neighbour(name: str | None) -> str:
    return name or "none"


def region_of(chart: Roofline) -> str:
    """The region in words."""
    return {
        "memory": "memory: left of every ridge point",
        "compute": "compute: right of every ridge point",
        "in between": "in between: memory and compute roofs cross here",
    }[chart.region]


def _prediction(chart: Roofline, subject: Subject) -> str:
    rate = subject.iterations_per_second or 0.0
    share = f"{rate / chart.iterations_per_second:.0%} of the bound"
    performance = subject.case.performance
    return f"{prefixed(performance, 'FLOP/s') if performance else prefixed(rate, 'It/s')}, {share}"


def _intensities(chart: Roofline) -> tuple[Block, ...]:
    """Each memory roof with the intensity that meets it, and the performance where they meet."""
    points = {point.level: point for point in chart.points}
    common = points.get("")
    columns = (
        *(Column("level", "left"), Column("FLOP/B"), Column("bandwidth"), Column("allows"), Column("ridge point")),
        Column("origin of the bandwidth", "left", fold=True),
    )
    highest = max(
        (roof.flop_per_second for roof in chart.compute_roofs if roof.role in ("peak", "scaled")), default=None
    )
    rows = tuple(
        _intensity_row(roof, points.get(roof.level, common), highest, marked=roof.level == chart.bound_by)
        for roof in chart.memory_roofs
    )
    return (Heading("Arithmetic intensity and memory roofs (* limits)"), Table(columns, rows))


def _intensity_row(roof: MemoryRoof, point: Point | None, highest: float | None, *, marked: bool) -> tuple[str, ...]:
    intensity = point.intensity if point is not None else None
    allowed = prefixed(intensity * roof.bytes_per_second, "FLOP/s") if intensity else "-"
    ridge = "-" if highest is None else f"{short(highest / roof.bytes_per_second)} FLOP/B"
    return (
        f"* {roof.level}" if marked else roof.level,
        intensity_text(intensity),
        prefixed(roof.bytes_per_second, "B/s"),
        allowed,
        ridge,
        roof.origin,
    )


def intensity_text(intensity: float | None) -> str:
    """An intensity; without bytes it is infinite."""
    return "∞" if intensity is None else short(intensity)


def compute_section(roofs: Sequence[ComputeRoof]) -> tuple[Block, ...]:
    """The compute roofs, highest first."""
    if not roofs:
        return (Heading("Compute roofs"), Line("  none: the kernel has no floating-point work"))
    columns = (
        Column("roof", "left"),
        Column("performance"),
        Column("is", "left"),
        Column("origin", "left", fold=True),
    )
    rows = tuple((roof.name, prefixed(roof.flop_per_second, "FLOP/s"), ROLES[roof.role], roof.origin) for roof in roofs)
    return (Heading("Compute roofs"), Table(columns, rows))


def shares_section(shares: Sequence[LevelShare]) -> tuple[Block, ...]:
    """Memory share and memory impact of each level."""
    if not shares:
        return ()
    columns = (
        *(Column("level", "left"), Column("B/It served"), Column("bandwidth")),
        *(Column("memory share"), Column("memory impact")),
    )
    rows = tuple(
        (
            one.level,
            short(one.bytes_served),
            prefixed(one.bandwidth, "B/s"),
            f"{100 * one.share:.1f} %",
            f"{100 * one.impact:.1f} %",
        )
        for one in shares
    )
    title = "Memory share (of the bytes) and memory impact (of the time) by the level that serves the core"
    return (Heading(title), Table(columns, rows))


# }}}
# {{{ several kernels


def _several(answer: RooflineAnswer) -> tuple[Block, ...]:
    title = f"Rooflines of {len(answer.kernels)} kernels on {answer.machine.name}, {count(answer.cores, 'core')}"
    origins = [one.subject.origin for one in answer.kernels if one.subject.origin is not None]
    code = code_fields(origins[0]) if origins else ()
    return (
        Heading(title),
        Fields((*machine_fields(answer.machine), *code, ("FLOP", FLOP))),
        *(block for number in range(len(answer.models)) for block in _model_table(answer.kernels, number)),
        *notes_section(merged_notes(answer.notes)),
    )


def _model_table(kernels: Sequence[Charted], number: int) -> Iterable[Block]:
    charts = [kernel.rooflines[number] for kernel in kernels]
    first = charts[0]
    levels = [point.level for point in first.points]
    columns = (
        Column("kernel", "left"),
        *(Column(f"FLOP/B {level}".rstrip()) for level in levels),
        *(Column("predicted"), Column("bound"), Column("limited by", "left"), Column("region", "left")),
    )
    rows = tuple(_kernel_row(kernel.subject, chart) for kernel, chart in zip(kernels, charts, strict=True))
    yield Heading(TITLES[first.model])
    yield Fields((("bytes", first.bytes_meant),))
    yield Table(columns, rows)


def _kernel_row(subject: Subject, chart: Roofline) -> tuple[str, ...]:
    performance, rate = subject.case.performance, subject.iterations_per_second
    predicted = prefixed(performance, "FLOP/s") if performance else prefixed(rate, "It/s") if rate else "-"
    return (
        subject.name,
        *(intensity_text(point.intensity) for point in chart.points),
        predicted,
        limit_of(chart),
        chart.bound_by,
        chart.region,
    )


# }}}
