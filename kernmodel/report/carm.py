"""The answer of `kernmodel carm` as text: mix, the two charts side by side, memory share and impact, the reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.mix import fp_name, memory_name
from kernmodel.report.numbers import count, prefixed, short
from kernmodel.report.roofline import (
    FLOP,
    TITLES,
    code_section,
    compute_section,
    intensity_text,
    limit_of,
    roof_name,
    shares_section,
    subject_fields,
)
from kernmodel.report.sections import machine_fields, notes_section

if TYPE_CHECKING:
    from kernmodel.code.mix import InstructionMix
    from kernmodel.models.reading import Reading, WhatIf
    from kernmodel.studies.predict.roofline import CarmAnswer, Subject


def carm_report(answer: CarmAnswer, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer."""
    subject, reading = answer.subject, answer.reading
    on = f"{answer.machine.name}, {count(answer.cores, 'core')}"
    return (
        Heading(f"Application-driven cache-aware roofline of {subject.name} on {on}"),
        Fields(
            (
                *subject_fields(subject),
                *machine_fields(answer.machine),
                ("bytes", reading.roofline.bytes_meant),
                ("FLOP", FLOP),
            )
        ),
        *_mix(subject),
        *_side_by_side(reading),
        *(_origins(reading) if verbose else ()),
        *compute_section(reading.roofline.compute_roofs),
        *shares_section(reading.shares),
        *_reading(reading, subject),
        *_what_ifs(reading),
        *(code_section(subject) if verbose else ()),
        *notes_section(answer.notes),
    )


def _mix(subject: Subject) -> tuple[Block, ...]:
    mix = subject.case.mix
    if mix is None:
        return ()
    pairs = [
        ("from", mix.source),
        ("memory", _memory(mix)),
        ("load/store ratio", _ratio(mix)),
        ("floating point", _fp(mix)),
    ]
    masked = [kind for kind, _ in mix.fp if kind.masked]
    if masked:
        pairs.append(("mask utilisation", f"{subject.case.mask_utilization:.0%} of the lanes compute"))
    return (Heading("Instruction mix (shares of the instructions)"), Fields(tuple(pairs)))


def _memory(mix: InstructionMix) -> str:
    total = mix.loads + mix.stores
    return ", ".join(f"{memory_name(kind)} {number / total:.0%}" for kind, number in mix.memory) or "none"


def _fp(mix: InstructionMix) -> str:
    total = sum(number for _, number in mix.fp)
    return ", ".join(f"{fp_name(kind)} {number / total:.0%}" for kind, number in mix.fp) or "none"


def _ratio(mix: InstructionMix) -> str:
    ratio = mix.load_store_ratio
    if ratio is None:
        return "none: no memory instructions"
    return short(ratio) if mix.stores else "loads only"


def _side_by_side(reading: Reading) -> tuple[Block, ...]:
    """Every memory roof and what stands at the kernel's intensity, in the state of the art and scaled."""
    before, after = reading.beside, reading.roofline
    intensity = after.points[0].intensity
    columns = (
        *(Column("level", "left"), Column("CARM"), Column("adCARM"), Column("factor")),
        *(Column("CARM allows"), Column("adCARM allows")),
    )
    scaled = {roof.level: roof.bytes_per_second for roof in after.memory_roofs}
    rows = tuple(
        (
            roof.level,
            prefixed(roof.bytes_per_second, "B/s"),
            prefixed(scaled[roof.level], "B/s"),
            f"{scaled[roof.level] / roof.bytes_per_second:.2f}",
            *(
                "-" if intensity is None else prefixed(intensity * value, "FLOP/s")
                for value in (roof.bytes_per_second, scaled[roof.level])
            ),
        )
        for roof in before.memory_roofs
    )
    pairs = (
        ("intensity", f"{intensity_text(intensity)} FLOP/B"),
        ("bound by CARM", f"{limit_of(before)}, by {roof_name(before.bound_by)}; region: {before.region}"),
        ("bound by adCARM", f"{limit_of(after)}, by {roof_name(after.bound_by)}; region: {after.region}"),
    )
    return (Heading("State of the art beside the scaled roofs"), Table(columns, rows), Fields(pairs))


def _origins(reading: Reading) -> tuple[Block, ...]:
    columns = (Column("chart", "left"), Column("level", "left"), Column("origin of the bandwidth", "left", fold=True))
    rows = tuple(
        (TITLES[chart.model], roof.level, roof.origin)
        for chart in (reading.beside, reading.roofline)
        for roof in chart.memory_roofs
    )
    return (Heading("Where the memory roofs come from"), Table(columns, rows))


def _reading(reading: Reading, subject: Subject) -> tuple[Block, ...]:
    lines = [Line(f"  {sentence}") for sentence in reading.sentences]
    performance = subject.case.performance
    if performance:
        text = f"  Predicted (ECM): {prefixed(performance, 'FLOP/s')}. {subject.reason}"
        lines.insert(1, Line(text))
    if reading.added is not None:
        unit = "FLOP/s" if reading.roofline.bound else "It/s"
        lines.append(
            Line(f"  If the times of the levels add up instead of overlapping: {prefixed(reading.added, unit)}.")
        )
    return (Heading("Reading"), *lines)


def _what_ifs(reading: Reading) -> tuple[Block, ...]:
    if not reading.what_ifs:
        return ()
    columns = (
        *(
            Column("change", "left"),
            Column("bound before"),
            Column("with it"),
            Column("gain"),
            Column("then by", "left"),
        ),
        *(Column("chart", "left"), Column("what changes", "left", fold=True)),
    )
    rows = tuple(_what_if_row(one, reading) for one in reading.what_ifs)
    return (Heading("What changes would do (computed)"), Table(columns, rows))


def _what_if_row(one: WhatIf, reading: Reading) -> tuple[str, ...]:
    unit = "FLOP/s" if reading.roofline.bound else "It/s"
    return (
        one.name,
        prefixed(one.before, unit),
        prefixed(one.bound, unit),
        f"{one.gain:.2f}",
        one.bound_by,
        one.model,
        one.change,
    )
