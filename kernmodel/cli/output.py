"""Writing results: text or JSON on standard output, progress and errors on standard error."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from kernmodel.cli.streams import flush_output, write_output
from kernmodel.errors import UsageError
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.api.result import Result
    from kernmodel.report.text.render import Style

Value = TypeVar("Value")
TERMINAL = "-"
"""In place of a picture's file: a drawing in characters on standard output."""
_PIPE_COLUMNS = 80


@dataclass(frozen=True, slots=True)
class Shown:
    """How a command shows its result.

    Attributes:
        unit: of times, None: the result's own.
        plot: "-" or a file name as given, None for no picture; target: the file, checked.
        page: the file of a page, checked, None for none; force: whether files that exist are replaced.
    """

    verbose: bool
    strict: bool
    as_json: bool
    unit: str | None
    plot: str | None
    target: Path | None
    page: Path | None
    force: bool

    @classmethod
    def of(
        cls,
        *,
        verbose: bool = False,
        strict: bool = False,
        as_json: bool = False,
        unit: str | None = None,
        plot: str | None = None,
        html: str | None = None,
        html_option: str = "--html",
        force: bool = False,
    ) -> Shown:
        """The values of the options with these names; the files are checked before any work is done.

        Args:
            html_option: what names the page on the command line.

        Raises:
            UsageError: an unknown format, a place that cannot be written, a page that is there, a drawing in a JSON
                document.
        """
        if plot == TERMINAL and as_json:
            what = "would mix a drawing into the JSON document"
            raise UsageError(what, where="--plot -", todo="leave out one of them")
        target = None
        if plot is not None and plot != TERMINAL:
            from kernmodel.api.result import picture_file

            target = picture_file(plot)
        page = None
        if html is not None:
            from kernmodel.api.result import page_file

            page = page_file(html, force=force, option=html_option)
        return cls(verbose, strict, as_json, unit, plot, target, page, force)

    @property
    def keeps(self) -> bool:
        """Whether all answers are needed again after they have been printed."""
        return self.plot is not None or self.page is not None


def show_result(result: Result[Any], shown: Shown, *, picture: bool = True) -> None:
    """Print the text of a result, part by part as it comes, or its document; and draw its picture."""
    if result.total > 1:
        streamed = result.streams and not shown.as_json
        result.watch(lambda answers: with_progress(answers, result.total, streamed=streamed, start=2))
    if shown.as_json:
        show_json(result.json(unit=shown.unit))
    else:
        style = style_of(sys.stdout)
        for part in result.parts(style, unit=shown.unit, verbose=shown.verbose, keep=shown.keeps):
            write_output(part)
            flush_output()
    if picture:
        show_picture(result, shown)
    write_page(result, shown)


ARGUMENTS = "kernmodel.arguments"
"""Where a command keeps its arguments in click's context."""


def command_line() -> str:
    """The command that runs, as a shell takes it."""
    context = click.get_current_context()
    return shlex.join([*context.command_path.split(), *context.meta[ARGUMENTS]])


def write_page(result: Result[Any], shown: Shown) -> None:
    """Write the page of a result where it is wanted."""
    if shown.page is not None:
        from kernmodel.output_files import write_file

        write_file(shown.page, result.html(unit=shown.unit, command=command_line()))


def show_picture(result: Result[Any], shown: Shown) -> None:
    """Draw the picture of a result where it is wanted."""
    if shown.target is not None:
        result.plot(shown.target, unit=shown.unit)
    elif shown.plot == TERMINAL:
        width, ascii_only = drawing_size()
        show_text("\n" + result.drawing(unit=shown.unit, width=width, ascii_only=ascii_only))


def drawing_size() -> tuple[int, bool]:
    """Columns for a drawing on standard output, and whether it has to be in ASCII."""
    style = style_of(sys.stdout)
    return style.width or _PIPE_COLUMNS, style.ascii_only


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


@contextmanager
def shown_progress() -> Iterator[Callable[[str], None]]:
    """Says on a terminal what is done next, and takes it away at the end; nothing elsewhere."""
    terminal = sys.stderr.isatty()

    def say(what: str) -> None:
        if terminal:
            sys.stderr.write(f"\r\x1b[K{what}")
            sys.stderr.flush()

    try:
        yield say
    finally:
        say("")


def with_progress(
    values: Iterable[Value], total: int, *, streamed: bool, start: int = 1, what: str = "points"
) -> Iterator[Value]:
    """The values as they come; a counter on standard error where that is a terminal and no rows show the progress.

    Args:
        start: number of the first of the values; what: they are called.
    """
    shown = sys.stderr.isatty() and not (streamed and sys.stdout.isatty())
    for number, value in enumerate(values, start):
        if shown:
            sys.stderr.write(f"\r{number} of {total} {what}")
            sys.stderr.flush()
        yield value
    if shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
