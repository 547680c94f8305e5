"""What every function of kernmodel returns: values, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import signature
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from kernmodel.errors import Note, UsageError, refuse_warnings
from kernmodel.output_files import output_file, write_file
from kernmodel.units import TIME_UNITS
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.report.layout import Blocks, Column
    from kernmodel.report.text.render import Style

Answer = TypeVar("Answer")
Json = Mapping[str, Any]

FORMATS = (".svg", ".pdf", ".png")
"""Endings of the files that pictures are written to."""
PAGES = (".html", ".htm")
"""Endings of the files that pages are written to."""


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
    target = output_file(path, "--plot")
    if target.suffix.lower() not in FORMATS:
        ending = f"the format {target.suffix!r}" if target.suffix else "a file name without an ending"
        raise UsageError(f"{ending} is not known", where=f"--plot {path}", todo=f"end it in {', '.join(FORMATS)}")
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


def page_file(path: str, *, force: bool = False, option: str = "--html") -> Path:
    """The path of a page to write.

    Raises:
        UsageError: another ending, a directory, a folder that is not there, or a file that is there (unless `force`).
    """
    target, where = output_file(path, option), f"{option} {path}"
    if target.suffix.lower() not in PAGES:
        raise UsageError("is no name of a page", where=where, todo=f"end it in {' or '.join(PAGES)}")
    if target.exists() and not force:
        raise UsageError("the file exists", where=where, todo="give another name, or --force to replace it")
    return target


@dataclass(frozen=True, slots=True)
class TableViews:
    """How several answers stand together: a table with rows for each, and one document.

    Attributes:
        columns: the columns, or what makes them of the first answer, in `report.text`.
        json: the document of all, in `report.json`.
        head: the blocks above the table, of the first answer, in `report.text`; "" for none.
        items: what has a row of an answer, in `report.text`; "": the answer itself.
    """

    columns: str
    json: str
    head: str = ""
    items: str = ""


@dataclass(frozen=True, slots=True)
class Views:
    """How answers of one kind are shown: functions as "module:name", which are imported when they are called.

    Each is given the answer and, of the unit, `verbose`, the size of a drawing and what the result knows besides, the
    arguments that it names.

    Attributes:
        text: makes the blocks of the report, in `report.text`; json: the document, in `report.json`, "": there is none.
        picture: makes the figure, drawing: the same in characters, in `plot`; "" where there is none. They are given
            all answers as a tuple where there may be several.
        unit: of times where none is asked for, None: the kernel's own; units: that may be asked for.
        table: of several answers.
        charts: makes the charts of the page of all answers, in `report.html`; "" where it has none.
        together: whether text and document too are given all answers as a tuple.
    """

    text: str
    json: str
    picture: str = ""
    drawing: str = ""
    unit: str | None = None
    units: tuple[str, ...] = TIME_UNITS
    table: TableViews | None = None
    charts: str = ""
    together: bool = False


class Result(Sequence[Answer], Generic[Answer]):
    """The answers to a question, in order: one, or one for each point where several sizes or core counts were given.

    The first answer is there when the function returns. The others are made when they are asked for, each once:
    `for answer in result` gives each as soon as it is known, `tuple(result)` makes all of them.

    `answer` is the value where there is one. `text()` and `json()` are what the command line prints, `plot()` is its
    picture. `print(result)` prints the text, and notebooks show it.

    Args:
        answers: as they come.
        views: how they are shown.
        total: how many there are; 0: it is not known before the last.
        strict: raise `StrictError` for the first warning of an answer.
        besides: what views need besides, by the names of their arguments.
    """

    def __init__(
        self,
        answers: Iterable[Answer],
        views: Views,
        besides: Mapping[str, object] | None = None,
        *,
        total: int = 1,
        strict: bool = False,
    ) -> None:
        self.total = total
        self._views = views
        self._besides = besides or {}
        self._waited_for = not isinstance(answers, Collection)
        self._coming = iter(answers)
        self._known: list[Answer] = []
        self._strict = strict
        self._advance()

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
        """Let the answers that are still to be made pass through `watched`, which may show how far it is."""
        if self._waited_for:
            self._coming = watched(self._coming)

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

    @property
    def streams(self) -> bool:
        """Whether the text is a table whose rows come one after the other."""
        return self._views.table is not None and self.total != 1

    def json(self, *, unit: str | None = None) -> Json:
        """The document that the command line prints with `--json` (docs/json.md), as dictionaries, lists and numbers.

        Raises:
            UsageError: as `text`.
        """
        table = None if self.total == 1 else self._views.table
        view, shown = table.json if table else self._views.json, self._shown(together=table is not None)
        if not view:
            raise UsageError("has no document", where=".json()", todo="see .text(), or the answers themselves")
        made: Json = self._view(f"report.json.{view}", shown, unit=self._in(unit))
        return made

    def plot(self, path: str | PathLike[str] | None = None, *, unit: str | None = None) -> Figure:
        """The picture, a figure of matplotlib, also written to `path` (.svg, .pdf or .png) if one is given.

        Raises:
            UsageError: the question has no picture, or the file has another ending.
            InputError: the file cannot be written.
        """
        target = None if path is None else picture_file(fspath(path))
        figure: Figure = self._picture(self._views.picture, unit)
        if target is not None:
            from kernmodel.plot.style import write

            write(figure, target)
        return figure

    def drawing(self, *, unit: str | None = None, width: int = 80, ascii_only: bool = False) -> str:
        """The picture in characters, for a terminal with so many columns.

        Raises:
            UsageError: the question has no picture.
        """
        return str(self._picture(self._views.drawing, unit, width=width, ascii_only=ascii_only))

    def html(
        self,
        path: str | PathLike[str] | None = None,
        *,
        unit: str | None = None,
        command: str = "",
        force: bool = False,
    ) -> str:
        """The answers as a page: one self-contained file of HTML (docs/report.md), also written to `path` if one is
        given.

        Args:
            command: shown as what gave the answer; force: replace a file that is there.

        Raises:
            UsageError: as `text`; the file exists, or has another ending than .html.
            InputError: the file cannot be written.
        """
        target = None if path is None else page_file(fspath(path), force=force, option=".html()")
        page = self._page(self._in(unit), command)
        if target is not None:
            write_file(target, page)
        return page

    def blocks(self, *, unit: str | None = None, verbose: bool = False) -> Blocks:
        """The report with all answers as blocks of `kernmodel.report.layout`: titles, lines, values, tables."""
        return self._blocks(self._in(unit), verbose=verbose)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<kernmodel result of {self.total or 'many'}: see .answer, .text(), .json(), .plot()>"

    def _repr_html_(self) -> str:
        """What notebooks show: the report as headings and tables, text escaped, in a box that scrolls."""
        from kernmodel.report.html.blocks import blocks_html
        from kernmodel.report.html.elements import element

        blocks = self._blocks(self._views.unit, verbose=False)
        return element("div", blocks_html(blocks, "h4"), style="overflow-x: auto")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.text())  # what terminals show

    def _in(self, unit: str | None) -> str | None:
        return self._views.unit if unit is None else spelt(unit, self._views.units)

    def _notes(self, answer: Answer) -> tuple[Note, ...]:
        return getattr(answer, "notes", ())

    def _shown(self, *, together: bool) -> Answer | tuple[Answer, ...]:
        return tuple(self) if together or self._views.together else self.answer

    def _view(self, view: str, shown: object, **given: object) -> Any:
        """What the function "module:name" makes of what is shown."""
        module, _, name = view.partition(":")
        function = getattr(import_module(f"kernmodel.{module}"), name)
        if not callable(function):
            return function
        named = signature(function).parameters
        return function(shown, **{key: value for key, value in {**given, **self._besides}.items() if key in named})

    def _picture(self, view: str, unit: str | None, **size: object) -> Any:
        """The picture that a view makes.

        Raises:
            UsageError: there is none.
        """
        if not view:
            raise UsageError("has no picture", where=".plot()", todo="see .text() or .json()")
        shown = self._shown(together=self._views.table is not None)
        return self._view(f"plot.{view}", shown, unit=self._in(unit), **size)

    def _page(self, unit: str | None, command: str) -> str:
        from kernmodel.report.html.answers import answer_page

        charts = self._view(f"report.html.{self._views.charts}", tuple(self), unit=unit) if self._views.charts else ()
        return answer_page(self._blocks(unit, verbose=True), charts, command)

    def _blocks(self, unit: str | None, *, verbose: bool) -> Blocks:
        from kernmodel.report.layout import filled
        from kernmodel.report.text.sections import merged_notes, notes_section

        def view(name: str, shown: object) -> Any:
            return self._view(f"report.text.{name}", shown, unit=unit, verbose=verbose)

        table = self._views.table
        if table is None or self.total == 1:
            return tuple(view(self._views.text, self._shown(together=False)))
        first = self[0]
        items = [item for answer in self for item in (view(table.items, answer) if table.items else (answer,))]
        head = view(table.head, first) if table.head else ()
        return (*head, filled(view(table.columns, first), items), *notes_section(merged_notes(self.notes)))

    def _parts(self, answers: Iterator[Answer], style: Style, unit: str | None, *, verbose: bool) -> Iterator[str]:
        from kernmodel.report.text.render import render

        def view(name: str, shown: object) -> Any:
            return self._view(f"report.text.{name}", shown, unit=unit, verbose=verbose)

        table = self._views.table
        if table is None or self.total == 1:
            yield render(view(self._views.text, self._shown(together=False)), style)
            return
        first = next(answers)
        notes: dict[Note, None] = {}

        def items() -> Iterator[Any]:
            for answer in chain((first,), answers):
                notes.update(dict.fromkeys(self._notes(answer)))
                yield from view(table.items, answer) if table.items else (answer,)

        if table.head:
            yield render(view(table.head, first), style)
        yield from table_parts(view(table.columns, first), items(), style)
        yield from note_parts(notes, style)


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
