"""What-if on a machine file: any figure by its path, absolute or relative, with everything that follows from it.

    figures = MachineFigures.open("clx")
    figures.machine([("L2.size", "2MiB"), ("memory.bandwidth", "x1.5")])

Paths are those of the file ("caches.L2.size", "paths.L2L3.width", "core.flop_per_cycle.DP.FMA", "clock"); a section may
be left out where the rest is unambiguous ("L2.size", "L2L3.width"). Derived paths: "memory.bandwidth" and
"L3.bandwidth" (all measured series of that level, scaled alike), see docs/what-if.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernmodel.errors import Note, UsageError
from kernmodel.machine.changes.consequences import describe_source, follow
from kernmodel.machine.changes.figure_names import FigureNames
from kernmodel.machine.changes.figure_paths import FigurePath, figure_paths, left_out, number_of, shown, with_value
from kernmodel.machine.changes.new_values import new_value
from kernmodel.machine.files.checks import check_figures
from kernmodel.machine.files.schema import MACHINE_FILE, build_machine, read_values
from kernmodel.machine.load import find_machine
from kernmodel.machine.model import Machine
from kernmodel.schema.document import read_document
from kernmodel.schema.fields import FieldReader, Problem, Values
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a machine file.

    Attributes:
        path: full dotted path; short: the shortest path that means the same ("L2.size").
        text: the value for people, with its unit ("1 MiB").
        value: the number in base units; None where it is no number (a policy, a text).
        dimension: of the unit ("data", "frequency", "bandwidth", "bytes per cycle", …); None for plain numbers and
            words.
        source: where the file says it comes from.
    """

    path: str
    short: str
    text: str
    value: float | None
    dimension: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Applied:
    """One change as it was carried out.

    Attributes:
        path: full path; before, after: the figure for people.
        ratio: after / before where both are numbers, else None.
        notes: what else changed ("caches.L2.sets follows: 2048") or was rounded.
    """

    path: str
    before: str
    after: str
    ratio: float | None
    notes: tuple[Note, ...]


class MachineFigures:
    """A machine file, read once, that gives its figures and the machine with some of them changed."""

    def __init__(self, name: str, file: str, sha256: str, values: Values, written: Iterable[str]) -> None:
        """See `open`; `values` have passed all checks, `written` are the dotted keys that stand in the file."""
        self._name = name
        self._file = file
        self._sha256 = sha256
        self._values = values
        self._written = frozenset(written)
        self._places = tuple(figure_paths(values))
        self._names = FigureNames(self._places, left_out(values), file)

    @classmethod
    def open(cls, name_or_path: str) -> MachineFigures:
        """Read the file; raises `MachineError` as `load_machine` does."""
        return cls.read(find_machine(name_or_path))

    @classmethod
    def read(cls, path: Path) -> MachineFigures:
        """The same for a path."""
        document = read_document(path, MACHINE_FILE)
        values, reading = read_values(document)
        if reading.errors:
            raise min(reading.errors, key=lambda problem: problem.where.line or 0).error()
        return cls(document.stem, document.file, document.sha256, values, reading.lines)

    def figures(self) -> tuple[Figure, ...]:
        """Every figure that can be changed, in the order of the schema."""
        return tuple(map(self._figure, self._places))

    def figure(self, path: str) -> Figure:
        """The figure that a path means.

        Raises:
            UsageError: an unknown or ambiguous path.
        """
        return self._figure(self._names.place(path, path))

    def machine(self, changes: Iterable[tuple[str, str]] = ()) -> Machine:
        """The machine with the changes applied in order; without changes what `load_machine` gives.

        Raises:
            UsageError: an unknown path (names the nearest), a unit that does not fit, a relative change of a word, a
                result that contradicts the rest of the file.
        """
        asked = tuple(changes)
        values = self._values
        for path, text in asked:
            values, _, _ = self._change(values, path, text)
        return self._checked(values, asked)

    def applied(self, changes: Iterable[tuple[str, str]]) -> tuple[Machine, tuple[Applied, ...]]:
        """The same with what each change did."""
        asked = tuple(changes)
        values, done = self._values, []
        for path, text in asked:
            before = values
            values, place, notes = self._change(values, path, text)
            done.append(_applied(place, before, values, notes))
        return self._checked(values, asked), tuple(done)

    def _figure(self, place: FigurePath) -> Figure:
        value = place.get(self._values)
        default = place.keys[0] == "paths" and place.path not in self._written
        return Figure(
            path=place.path,
            short=self._names.short(place),
            text=shown(place, value),
            value=number_of(value),
            dimension=place.dimension,
            source="not in the file: the default" if default else place.source(self._values),
        )

    def _change(self, before: Values, path: str, text: str) -> tuple[Values, FigurePath, tuple[Note, ...]]:
        """One change with what follows from it, unchecked."""
        where = f"--set {path}={text}"
        place = self._names.place(path, where)
        old = place.get(before)
        values, notes = follow(place.put(before, new_value(place, old, text, where)), place, before)
        source = describe_source(place.source(before), place, old, text.strip())
        return with_value(values, (*place.source_keys, "source"), source), place, notes

    def _checked(self, values: Values, asked: Sequence[tuple[str, str]]) -> Machine:
        problems = _problems(self._file, values)
        if problems:
            raise self._contradiction(asked, problems[0])
        return build_machine(values, name=self._name, file=self._file, sha256=self._hash(asked))

    def _hash(self, asked: Sequence[tuple[str, str]]) -> str:
        """The hash of the file; with changes, of that and of them, so that a changed machine never passes for the
        file's."""
        if not asked:
            return self._sha256
        lines = (f"{self._names.place(path, path).path}={text.strip()}" for path, text in asked)
        return hashlib.sha256("\n".join((self._sha256, *lines)).encode()).hexdigest()

    def _contradiction(self, asked: Sequence[tuple[str, str]], problem: Problem) -> UsageError:
        """The first problem of the changed figures, told of the change that brings it in."""
        guilty, values = asked[-1], self._values
        clean = True
        for path, text in asked:
            values, _, _ = self._change(values, path, text)
            broken = bool(_problems(self._file, values))
            if broken and clean:
                guilty = (path, text)
            clean = not broken
        what = f"contradicts the rest of {Path(self._file).name}: {problem.key}: {problem.what}"
        own = problem.key == self._names.place(guilty[0], "").path
        todo = problem.todo if own else f"take another value, or change {problem.key} too"
        return UsageError(what, where=f"--set {guilty[0]}={guilty[1]}", todo=todo)


def _problems(file: str, values: Values) -> list[Problem]:
    reading = FieldReader(file, MACHINE_FILE)
    check_figures(reading, values)
    return reading.errors


def _applied(place: FigurePath, before: Values, after: Values, notes: tuple[Note, ...]) -> Applied:
    old, new = place.get(before), place.get(after)
    if old == new:
        notes = (*notes, Note("figure-unchanged", f"{place.path} is {shown(place, old)} as before", "assumption"))
    return Applied(place.path, shown(place, old), shown(place, new), _ratio(old, new), notes)


def _ratio(before: Any, after: Any) -> float | None:
    old, new = number_of(before), number_of(after)
    return new / old if old and new is not None else None
