"""Writing results: text or JSON on standard output, progress and errors on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from kernmodel.cli.streams import flush_output, write_output
from kernmodel.errors import refuse_warnings

if TYPE_CHECKING:
    from kernmodel.errors import Note
    from kernmodel.report.layout import Block, Column
    from kernmodel.report.text.render import Style

Value = TypeVar("Value")


class _Noted(Protocol):
    """An answer with notes."""

    @property
    def notes(self) -> tuple[Note, ...]: ...


Answer = TypeVar("Answer", bound=_Noted)


def show(blocks: Iterable[Block]) -> None:
    """Print a report."""
    from kernmodel.report.text.render import render

    write_output(render(blocks, style_of(sys.stdout)))


def show_rows(columns: tuple[Column, ...], items: Iterable[Any]) -> None:
    """Print a table of items that take their time, the row of each as soon as it is there."""
    from kernmodel.report.text.render import stream

    for line in stream(columns, items, style_of(sys.stdout)):
        print_line(line)


def show_notes(notes: Iterable[Note]) -> None:
    """Print the notes below a table of rows; nothing if there are none."""
    from kernmodel.report.text.sections import merged_notes, notes_section

    section = notes_section(merged_notes(notes))
    if section:
        print_line("")
        show(section)


def accepted(answers: Iterator[Answer], strict: bool) -> Iterator[Answer]:
    """The answers as they come; with `--strict` the first warning among their notes is raised."""
    for answer in answers:
        if strict:
            refuse_warnings(answer.notes)
        yield answer


def show_sweep(
    answers: Iterator[Answer],
    inputs: Callable[[Answer], Iterable[Block]],
    columns: Callable[[Answer], tuple[Column, ...]],
    items: Callable[[Answer], Iterable[Any]] = lambda answer: (answer,),
) -> None:
    """Print the inputs that all points of a sweep share, then the rows of each as it comes, then all notes; `items` are
    what has a row of an answer."""
    first = next(answers)
    show(inputs(first))
    notes = dict.fromkeys(first.notes)

    def all_items() -> Iterator[Any]:
        for answer in chain((first,), answers):
            notes.update(dict.fromkeys(answer.notes))
            yield from items(answer)

    show_rows(columns(first), all_items())
    show_notes(notes)


def print_line(text: str) -> None:
    """Print a line at once."""
    write_output(text + "\n")
    flush_output()


def show_json(document: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    from kernmodel.report.json.document import dumps

    write_output(dumps(document))


def show_text(text: str) -> None:
    """Print text as it stands (scripts, YAML), in ASCII where the output knows nothing else."""
    from kernmodel.report.text.render import to_ascii

    write_output(to_ascii(text) if _is_ascii_only(sys.stdout) else text)


def write_error(text: str) -> None:
    """Print a message on standard error."""
    if _is_ascii_only(sys.stderr):
        from kernmodel.report.text.render import to_ascii

        text = to_ascii(text)
    with suppress(OSError, ValueError):  # nobody reads the messages
        sys.stderr.write(text + "\n")


def style_of(stream: TextIO) -> Style:
    """What fits a stream: colour only on a terminal without NO_COLOR, no limit of width in a pipe."""
    from kernmodel.report.text.render import Style

    terminal = stream.isatty()
    color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = _terminal_width() if terminal else None
    return Style(width=width, color=color, ascii_only=_is_ascii_only(stream))


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _is_ascii_only(stream: TextIO) -> bool:
    """Whether the stream cannot write the field's signs."""
    try:
        "‖⌉≤×µ".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def with_progress(values: Iterable[Value], total: int, *, streamed: bool) -> Iterator[Value]:
    """The values as they come; a counter on standard error where that is a terminal and no rows show the progress."""
    shown = sys.stderr.isatty() and not (streamed and sys.stdout.isatty())
    for number, value in enumerate(values, 1):
        if shown:
            sys.stderr.write(f"\r{number} of {total} points")
            sys.stderr.flush()
        yield value
    if shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
