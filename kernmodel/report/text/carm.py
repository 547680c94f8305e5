"""The answer of `kernmodel carm` as text: mix, the two charts side by side, memory share and impact, the findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.models.chart import TITLES
from kernmodel.report.layout import Blocks, Fields, fields, left, lines, right, table
from kernmodel.report.number_text import decimal, short
from kernmodel.report.text.bottleneck import limit_text
from kernmodel.report.text.mix import fp_name, memory_name
from kernmodel.report.text.roofline import (
    FLOP,
    allowed_text,
    compute_section,
    intensity_text,
    limit_of,
    limiting_roof,
    mark_text,
    rate_text,
    roof_text,
    shares_section,
    subject_fields,
)
from kernmodel.report.text.sections import loop_section, machine_fields, notes_section
from kernmodel.uncertainty import with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.code.mix import InstructionMix
    from kernmodel.models.chart import Roofline
    from kernmodel.models.findings import Findings, WhatIf
    from kernmodel.studies.predict.roofline import CarmAnswer, Subject


def carm_report(answer: CarmAnswer, *, verbose: bool = False) -> Blocks:
    """The whole answer."""
    subject, findings = answer.subject, answer.findings
    on = f"{answer.machine.name}, {count(answer.cores, 'core')}"
    pairs = (
        *subject_fields(subject),
        *machine_fields(answer.machine),
        ("bytes", findings.roofline.bytes_meant),
        ("FLOP", FLOP),
    )
    return (
        *fields(f"Application-driven cache-aware roofline of {subject.name} on {on}", *pairs),
        *_mix(subject),
        *_side_by_side(findings),
        *lines("Measured", map(mark_text, findings.roofline.measured)),
        *(_origins(findings) if verbose else ()),
        *compute_section(findings.roofline.compute_roofs),
        *shares_section(findings.shares),
        *_reading(findings, subject),
        *_what_ifs(findings),
        *(loop_section(subject.loop, subject.origin) if verbose else ()),
        *notes_section(answer.notes),
    )


def _mix(subject: Subject) -> Blocks:
    mix = subject.case.mix
    if mix is None:
        return ()
    masked = any(kind.masked for kind, _ in mix.fp)
    return fields(
        "Instruction mix (shares of the instructions)",
        ("from", mix.source),
        ("memory", _shares((memory_name(kind), number) for kind, number in mix.memory)),
        ("load/store ratio", _ratio(mix)),
        ("floating point", _shares((fp_name(kind), number) for kind, number in mix.fp)),
        ("mask utilisation", f"{subject.case.mask_utilization:.0%} of the lanes compute" if masked else None),
    )


def _shares(kinds: Iterable[tuple[str, float]]) -> str:
    numbers = tuple(kinds)
    total = sum(number for _, number in numbers)
    return ", ".join(f"{name} {number / total:.0%}" for name, number in numbers) or "none"


def _ratio(mix: InstructionMix) -> str:
    ratio = mix.load_store_ratio
    if ratio is None:
        return "none: no memory instructions"
    return short(ratio) if mix.stores else "loads only"


def _side_by_side(findings: Findings) -> Blocks:
    """Every memory roof and what stands at the kernel's intensity, in the state of the art and scaled."""
    before, after = findings.beside, findings.roofline
    intensity = after.points[0].intensity if after.points else None
    scaled = {roof.level: roof for roof in after.memory_roofs}

    allowing = (
        right("CARM allows", lambda roof: allowed_text(roof, intensity)),
        right("adCARM allows", lambda roof: allowed_text(scaled[roof.level], intensity)),
    )
    columns = (
        left("level", "level"),
        right("CARM", roof_text),
        right("adCARM", lambda roof: roof_text(scaled[roof.level])),
        right("factor", lambda roof: scaled[roof.level].bytes_per_second / roof.bytes_per_second),
        *(() if after.bound is None else allowing),
    )
    bounds = (
        ()
        if after.bound is None
        else (
            ("intensity", f"{intensity_text(intensity)} FLOP/B"),
            ("bound by CARM", _bound(before)),
            ("bound by adCARM", _bound(after)),
        )
    )
    roofs = table("State of the art beside the scaled roofs", columns, before.memory_roofs, always=True)
    return (*roofs, Fields(bounds)) if bounds else roofs


def _bound(chart: Roofline) -> str:
    return f"{limit_of(chart)}, by {limiting_roof(chart)}; region: {chart.either(lambda one: one.region)}"


def _origins(findings: Findings) -> Blocks:
    columns = (
        left("chart", lambda found: TITLES[found[0].model]),
        left("level", lambda found: found[1].level),
        left("origin of the bandwidth", lambda found: found[1].origin, fold=True),
    )
    roofs = ((chart, roof) for chart in (findings.beside, findings.roofline) for roof in chart.memory_roofs)
    return table("Where the memory roofs come from", columns, roofs, always=True)


def _reading(findings: Findings, subject: Subject) -> Blocks:
    told = list(findings.sentences)
    performance = subject.case.performance
    if performance:
        predicted = rate_text(performance, subject.case.performance_interval, "FLOP/s")
        told.insert(1, f"Predicted (ECM): {predicted}. {limit_text(subject)}")
    if findings.added is not None:
        added = rate_text(findings.added, findings.added_interval, _unit(findings))
        told.append(f"If the times of the levels add up instead of overlapping: {added}.")
    return lines("Reading", told)


def _unit(findings: Findings) -> str:
    """Of the bound: iterations where the kernel computes nothing."""
    return "FLOP/s" if findings.roofline.bound else "It/s"


def _then_by(one: WhatIf) -> str:
    return one.bound_by if one.roofline is None else one.roofline.either(lambda chart: chart.bound_by)


def _what_ifs(findings: Findings) -> Blocks:
    unit = _unit(findings)
    columns = (
        left("change", "name"),
        right("bound before", lambda one: rate_text(one.before, one.before_interval, unit)),
        right("with it", lambda one: rate_text(one.bound, one.bound_interval, unit)),
        right("gain", lambda one: with_interval(one.gain, one.gain_interval, decimal, cause=False)),
        left("then by", _then_by),
        left("chart", "model"),
        left("what changes", "change", fold=True),
    )
    return table("What changes would do (computed)", columns, findings.what_ifs)
