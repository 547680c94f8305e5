"""Answers as messages in the form of gcc, `FILE:LINE:COLUMN: note: …`, which editors lead to the line by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, Location
from kernmodel.report.number_text import decimal
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.ecm import headline

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.predict.whole import NestAnswer


def ecm_lines(answer: EcmAnswer | NestAnswer[EcmAnswer], unit: str, *, verbose: bool = False) -> Iterator[str]:
    """The prediction at the innermost loop, the levels that serve each reference where it stands, and what is not
    known; a nest without an answer is an error there.

    Args:
        verbose: also what is assumed.
    """
    from kernmodel.studies.predict.whole import NestAnswer

    found = answer.answer if isinstance(answer, NestAnswer) else answer
    if isinstance(found, KernmodelError):
        yield error_line(found, answer.found.location if isinstance(answer, NestAnswer) else None)
        return
    loop, prediction = found.nest.inner.location, found.prediction
    equals = "" if prediction.unknown else "= "
    first = f"T_ECM {equals}{headline(prediction, unit)} on {found.machine.name}, {prediction.level_shorthand()}"
    yield _line(loop, "note", f"{first}: {bottleneck_text(prediction)}")
    served = {(access.access, access.kind): access for access in found.traffic.accesses}
    for access in found.nest.accesses:
        moved = served.get((access.text, access.kind))
        if moved is not None:
            levels = ", ".join(f"{decimal(lines)} from {level}" for level, lines in moved.served_by.items() if lines)
            lines = f"cache lines per unit of work: {levels}" if levels else "no cache line of its own"
            yield _line(access.location, "note", f"{access.text} ({access.kind}): {lines}; {moved.reason}")
    for note in found.notes:
        if note.kind == "warning" or verbose:
            # listings that a compiler made, and files as a whole, have no line to lead to
            in_source = note.where is not None and note.where.file == loop.file and note.where.line is not None
            place = note.where if note.where is not None and in_source else loop
            yield _line(place, "warning" if note.kind == "warning" else "note", note.text)


def error_line(error: KernmodelError, place: Location | None = None) -> str:
    """An error where it has a place in a file, else at `place`."""
    where = error.where if isinstance(error.where, Location) else place
    what = f"{error.what}; {error.todo}" if error.todo else error.what
    return f"{where or 'kernmodel'}: error: {what}"


def _line(where: Location, kind: str, text: str) -> str:
    return f"{where}: {kind}: {' '.join(text.split())}"
