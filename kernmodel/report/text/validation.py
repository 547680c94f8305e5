"""The answer of `kernmodel validate` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, fields, left, lines, right, table
from kernmodel.report.number_text import decimal
from kernmodel.report.text.kernel_evaluation import group_sections, signed
from kernmodel.report.text.measure import samples_text, spread_text
from kernmodel.report.text.sections import notes_section
from kernmodel.units import format_si
from kernmodel.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernmodel.evaluate.validation_model import Experiment, ValidatedPoint, Validation


def validation_report(validation: Validation) -> Blocks:
    """All points, the errors by level and class, and the causes of the large ones."""
    columns = (
        left("kernel", "kernel"),
        left("class", "kind"),
        left("level", "level"),
        left("sizes", lambda point: ", ".join(f"{name} = {value}" for name, value in point.run.sizes.items())),
        right("measured", lambda point: decimal(point.judged.measured)),
        right("predicted", lambda point: decimal(point.judged.predicted)),
        right("error %", lambda point: signed(point.error_percent)),
        right("spread", lambda point: spread_text(point.run.cycles)),
        right("samples", lambda point: samples_text(point.run.cycles)),
        left("ECM model", lambda point: point.judged.prediction.shorthand()),
    )
    clocks = f"{format_si(validation.measured_hz, 'Hz')} measured, {format_si(validation.clock_hz, 'Hz')} in the file"
    left_out = [f"{one.kernel} {one.level}".rstrip() + f": {one.why}" for one in validation.left]
    return (
        *fields(
            "Predictions against kernels run on this host",
            ("machine", validation.machine),
            ("clock", clocks),
            ("points", f"{len(validation.points)} judged, {len(left_out)} left out"),
        ),
        *table("Cycles per unit of work (cy/CL)", columns, validation.points),
        *group_sections(validation.groups),
        *_causes(validation),
        *lines("Left out", left_out),
        *notes_section(validation.notes),
    )


def _causes(validation: Validation) -> Blocks:
    large = [point for point in validation.points if abs(point.error_percent) > validation.large_percent]
    title = f"Causes of errors beyond {validation.large_percent:g} %, by experiment"
    return lines(title, (text for point in large for text in _cause_lines(point)))


def _cause_lines(point: ValidatedPoint) -> Iterator[str]:
    """What explains the error of a point, or that nothing tried does, and what comes nearest."""
    head = f"{point.kernel} {point.level} ({point.error_percent:+.1f} %)"
    if not point.experiments:
        yield f"{head}: not asked by any experiment; predicted is {' + '.join(point.judged.prediction.binding)}"
        return
    tried = count(len(point.experiments), "experiment")
    if point.causes:
        best = point.causes[0]
        yield f"{head}: {best.cause}: {_told(best)}"
        for other in point.causes[1:]:
            yield f"  also {other.cause}: {_told(other)}"
    else:
        nearest = min(point.telling or point.experiments, key=lambda one: abs(one.error_percent))
        yield f"{head}: not explained by {tried}; nearest: {nearest.cause}: {_told(nearest)}"


def _told(one: Experiment) -> str:
    numbers = f"predicted {decimal(one.predicted)}, measured {decimal(one.measured)} cy/CL"
    return f"{one.change}: {numbers} ({one.error_percent:+.1f} %)"
