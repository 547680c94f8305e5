"""What every function of kernmodel returns: values, and how they are shown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from kernmodel.errors import Note, UsageError, refuse_warnings
from kernmodel.output_files import output_file
from kernmodel.units import TIME_UNITS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.report.layout import Block, Column
    from kernmodel.report.text.render import Style

Answer = TypeVar("Answer")
Json = Mapping[str, Any]

FORMATS = (".svg", ".pdf", ".png")
"""Endings of the files that pictures are written to."""


def spelt(unit: str, units: Iterable[str]) -> str:
    """The unit as it is spelt; it may be given in any case.

    Raises:
        UsageError: it is none of the units.
    """
    for known in units:
        if known.lower() == str(unit).lower():
            return known
    raise UsageError(f"unknown unit {unit!r}", where="--unit", todo=f"use one of {', '.join(units)}")


def picture_file(path: str) -> Path:
    """The path of a picture that can be written.

    Raises:
        UsageError: an unknown format, a directory or a place that cannot be written.
    """
    target = output_file(path)
    if target.suffix.lower() not in FORMATS:
        ending = f"the format {target.suffix!r}" if target.suffix else "a file name without an ending"
        raise UsageError(f"{ending} is not known", where=f"--plot {path}", todo=f"end it in {', '.join(FORMATS)}")
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}", where=f"--plot {path}", todo="make it first")
    existed = target.exists()
    try:
        with target.open("ab"):  # as it will be opened
            pass
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(what, where=f"--plot {target}", todo="give another place") from error
    if not existed:
        target.unlink()
    return target


def _no_picture() -> UsageError:
    return UsageError("has no picture", where=".plot()", todo="see .text() or .json()")


class Result(Sequence[Answer], Generic[Answer]):
    """The answers to a question, in order: one, or one for each point where several sizes or core counts were given.

    The first answer is there when the function returns. The others are made when they are asked for, each once:
    `for answer in result` gives each as soon as it is known, `tuple(result)` makes all of them.

    `answer` is the value where there is one. `text()` and `json()` are what the command line prints, `plot()` is its
    picture. `print(result)` prints the text, and notebooks show it.

    Args:
        answers: as they come.
        total: how many there are; 0: it is not known before the last.
        strict: raise `StrictError` for the first warning of an answer.
    """

    _units: ClassVar[tuple[str, ...]] = TIME_UNITS
    _unit: ClassVar[str] = ""
    """Units that `unit` may name, and the one without it; "": the kernel's own."""
    streams: ClassVar[bool] = False
    """Whether the text of several answers is a table whose rows come one after the other."""

    def __init__(self, answers: Iterable[Answer], *, total: int = 1, strict: bool = False) -> None:
        self.total = total
        self._coming = iter(answers)
        self._known: list[Answer] = []
        self._strict = strict
        self._advance()

    # {{{ values

    @property
    def answer(self) -> Answer:
        """The one answer.

        Raises:
            UsageError: there are several.
        """
        if len(self) != 1:
            raise UsageError(f"there are {len(self)} answers", where=".answer", todo="take result[0], or each in turn")
        return self._known[0]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the answers assume or do not know, each once; `kind` tells warnings from assumptions."""
        return tuple(dict.fromkeys(note for answer in self for note in self._notes(answer)))

    def __iter__(self) -> Iterator[Answer]:
        number = 0
        while number < len(self._known) or self._advance():
            yield self._known[number]
            number += 1

    def _advance(self) -> bool:
        """Make one more answer and keep it; whether there was one."""
        for answer in self._checked():
            self._known.append(answer)
            return True
        return False

    def _checked(self) -> Iterator[Answer]:
        for answer in self._coming:
            if self._strict:
                refuse_warnings(self._notes(answer))
            yield answer

    def __len__(self) -> int:
        return self.total or sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        return tuple(self)[index]

    def each(self, *, keep: bool = True) -> Iterator[Answer]:
        """The answers as they come; without `keep` they are forgotten then: for more than the memory takes."""
        return iter(self) if keep else chain(self._known, self._checked())

    def watch(self, watched: Callable[[Iterator[Answer]], Iterator[Answer]]) -> None:
        """Let the answers that are still to come pass through `watched`, which may show how far it is."""
        self._coming = watched(self._coming)

    # }}}
    # {{{ views

    def text(self, *, unit: str | None = None, verbose: bool = False) -> str:
        """The report that the command line prints.

        Args:
            unit: of times, such as "cy/CL", "cy/It", "LUP/s"; verbose: also how the numbers come about.

        Raises:
            UsageError: the unit is unknown, or has no meaning for the kernel.
        """
        from kernmodel.report.text.render import Style

        return "".join(self.parts(Style(), unit=unit, verbose=verbose))

    def parts(
        self, style: Style, *, unit: str | None = None, verbose: bool = False, keep: bool = True
    ) -> Iterator[str]:
        """The text of `text()` in this style, each part as soon as its answers are there; they are forgotten
        then without `keep`."""
        return self._parts(self.each(keep=keep), style, self._in(unit), verbose=verbose)

    def json(self, *, unit: str | None = None) -> Json:
        """The document that the command line prints with `--json` (docs/json.md), as dictionaries, lists and numbers.

        Raises:
            UsageError: as `text`.
        """
        return self._document(self._in(unit))

    def plot(self, path: str | PathLike[str] | None = None, *, unit: str | None = None) -> Figure:
        """The picture, a figure of matplotlib, also written to `path` (.svg, .pdf or .png) if one is given.

        Raises:
            UsageError: the question has no picture, or the file has another ending.
            InputError: the file cannot be written.
        """
        target = None if path is None else picture_file(fspath(path))
        figure = self._figure(self._in(unit))
        if target is not None:
            from kernmodel.plot.style import write

            write(figure, target)
        return figure

    def drawing(self, *, unit: str | None = None, width: int = 80, ascii_only: bool = False) -> str:
        """The picture in characters, for a terminal with so many columns.

        Raises:
            UsageError: the question has no picture.
        """
        return self._drawing(self._in(unit), width, ascii_only)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<kernmodel result of {self.total or 'many'}: see .answer, .text(), .json(), .plot()>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text())  # what notebooks show

    # }}}
    # {{{ of one question

    def _in(self, unit: str | None) -> str:
        return self._unit if unit is None else spelt(unit, self._units)

    def _notes(self, answer: Answer) -> tuple[Note, ...]:
        return getattr(answer, "notes", ())

    def _parts(self, answers: Iterator[Answer], style: Style, unit: str, *, verbose: bool) -> Iterator[str]:
        from kernmodel.report.text.render import render

        yield render(self._report(unit, verbose=verbose), style)

    def _report(self, unit: str, *, verbose: bool) -> Iterable[Block]:
        """What `text()` prints, where it is not a table whose rows come one after the other."""
        raise NotImplementedError

    @abstractmethod
    def _document(self, unit: str) -> Json: ...

    def _figure(self, unit: str) -> Figure:
        raise _no_picture()

    def _drawing(self, unit: str, width: int, ascii_only: bool) -> str:
        raise _no_picture()

    # }}}


# {{{ text of tables


def table_parts(columns: tuple[Column, ...], items: Iterable[Any], style: Style) -> Iterator[str]:
    """A table of items line by line, the row of each as soon as it is there."""
    from kernmodel.report.text.render import stream

    return (f"{line}\n" for line in stream(columns, items, style))


def note_parts(notes: Iterable[Note], style: Style) -> Iterator[str]:
    """The notes below a table; nothing if there are none."""
    from kernmodel.report.text.render import render
    from kernmodel.report.text.sections import merged_notes, notes_section

    section = notes_section(merged_notes(notes))
    if section:
        yield "\n"
        yield render(section, style)


def points_parts(
    answers: Iterator[Answer],
    style: Style,
    inputs: Callable[[Answer], Iterable[Block]],
    columns: Callable[[Answer], tuple[Column, ...]],
    items: Callable[[Answer], Iterable[Any]] = lambda answer: (answer,),
) -> Iterator[str]:
    """What all points share, then the rows of each as it comes, then all notes; `items` are what has a row of an
    answer."""
    from kernmodel.report.text.render import render

    first = next(answers)
    notes: dict[Note, None] = {}

    def all_items() -> Iterator[Any]:
        for answer in chain((first,), answers):
            notes.update(dict.fromkeys(getattr(answer, "notes", ())))
            yield from items(answer)

    yield render(inputs(first), style)
    yield from table_parts(columns(first), all_items(), style)
    yield from note_parts(notes, style)


# }}}
