"""How single values and tables of a file are read, and how problems with them are collected.

A field is read from a YAML node by a `Kind`: it returns the value in base units or raises `RejectedError`.
`FieldReader` walks tables of fields, turns every rejection into a `Problem` with file, line and key, and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cache
from itertools import pairwise
from typing import Any, Literal, TypeVar

import yaml

from kernmodel.errors import InputError, Location
from kernmodel.patterns import pattern
from kernmodel.schema.document import FileKind, line_of
from kernmodel.units import FACTORS, parse_quantity
from kernmodel.value_types import dataclass

Severity = Literal["error", "warning"]
Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file, or doubtful.

    Attributes:
        kind: of the file.
        where: file and line.
        key: dotted key the problem is about ("caches.L2.size"), empty for the file as a whole.
        what: what is wrong, as one clause.
        todo: what to do about it, if there is something to say.
        severity: an error makes the file unfit for use, a warning does not.
    """

    kind: FileKind
    where: Location
    key: str
    what: str
    todo: str | None = None
    severity: Severity = "error"

    def __str__(self) -> str:
        return str(self.error()) if self.severity == "error" else f"{self.where}: warning: {self.text}"

    @property
    def text(self) -> str:
        """Key, what is wrong and what to do, without the place."""
        what = f"{self.key}: {self.what}" if self.key else self.what
        return f"{what}; {self.todo}" if self.todo else what

    def error(self) -> InputError:
        """The problem as an exception with the same text."""
        what = f"{self.key}: {self.what}" if self.key else self.what
        return self.kind.error(what, where=self.where, todo=self.todo)


class RejectedError(Exception):
    """A value that its kind refuses; `FieldReader` turns it into a `Problem`."""

    def __init__(self, what: str, todo: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo


Kind = Callable[[yaml.Node], Any]
"""Reads a node or raises `RejectedError`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a table.

    Attributes:
        kind: what stands under it.
        required: whether it must be there.
        default: the value of a key that is left out; a table, rows or a list that are left out have no value at all.
        attribute: name of the value in the dataclass that the table makes (`built`), by default that of the key.
        todo: what to do where it is missing, by default to see the page that describes the format.
    """

    kind: Kind | Table | Rows | List
    required: bool = True
    default: Any = None
    attribute: str = ""
    todo: str = ""


Table = Mapping[str, Field]
"""A mapping whose keys are declared."""
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """A mapping of any names to what is declared for each."""

    each: Kind | Table


@dataclass(frozen=True, slots=True)
class List:
    """A list of tables."""

    each: Table


def built(kind: type[Built], table: Table, row: Values, **others: Any) -> Built:
    """The dataclass that a table makes of the values of a row, with `others` beside or in place of them."""
    return kind(**attributes_of(kind, table, row) | others)


def attributes_of(kind: type, table: Table, row: Values) -> dict[str, Any]:
    """What a table makes of the values of a row, by the fields of a dataclass."""
    known = _field_names(kind)
    return {
        attribute: row.get(name) for name, entry in table.items() if (attribute := entry.attribute or name) in known
    }


@cache  # a study of changed machines builds thousands
def _field_names(kind: type) -> frozenset[str]:
    """The fields of a dataclass."""
    return frozenset(field.name for field in fields(kind))


_NUMBER = pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    from difflib import get_close_matches

    found = get_close_matches(name, list(known), n=1, cutoff=0.5) if len(name) > 1 else []
    return found[0] if found else None


def suggest(name: str, known: Iterable[str], shown: Iterable[str] = ()) -> str:
    """What to do about an unknown name: the nearest known one, or all of them (those of `shown` if given)."""
    names = list(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"use one of {', '.join(shown or names)}"


def scalar(node: yaml.Node) -> str:
    """Any single value, as written."""
    if not isinstance(node, yaml.ScalarNode):
        kind = "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
        raise RejectedError(f"is {kind}", "write a single value")
    return str(node.value)


def text(node: yaml.Node) -> str:
    """A text that is not empty."""
    value = scalar(node).strip()
    if not value:
        raise RejectedError("is empty", "write a text")
    return value


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from `least`, up to `most` where there is one."""

    least: int = 1
    most: int | None = None

    def __call__(self, node: yaml.Node) -> int:
        """The number."""
        value = scalar(node)
        if not re.fullmatch(r"[+-]?[0-9]{1,15}", value):
            raise RejectedError(f"{value!r} is no whole number", "write digits only, without a unit")
        if int(value) < self.least:
            raise RejectedError(f"{value} is smaller than {self.least}", f"write a whole number {self._range}")
        if self.most is not None and int(value) > self.most:
            raise RejectedError(f"{value} is larger than {self.most}", f"write a whole number {self._range}")
        return int(value)

    @property
    def _range(self) -> str:
        return f"of at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        return f"from {self.least}" if self.most is None else f"{self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class Number:
    """A number without a unit, greater than zero or, where `zero` says so, zero, up to `most` where there is one."""

    most: float | None = None
    zero: bool = False

    def __call__(self, node: yaml.Node) -> float:
        """The number."""
        value = scalar(node)
        if not _NUMBER.fullmatch(value):
            raise RejectedError(f"{value!r} is no number", "write a number without a unit")
        number = float(value)
        if not 0.0 <= number < float("inf") or not (number or self.zero):
            raise RejectedError(f"{value} is not greater than zero", "write a positive number")
        if self.most is not None and number > self.most:
            raise RejectedError(f"{value} is more than {self.most:g}", "check number and unit")
        return number


positive_number = Number()


class Flag:
    """`true` or `false`."""

    values = "true or false"

    def __call__(self, node: yaml.Node) -> bool:
        """The flag."""
        value = scalar(node)
        if value not in ("true", "false"):
            raise RejectedError(f"{value!r} is neither true nor false", "write true or false")
        return value == "true"


flag = Flag()


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the given words."""

    options: tuple[str, ...]

    def __call__(self, node: yaml.Node) -> str:
        """The word."""
        value = scalar(node)
        if value not in self.options:
            near = nearest(value, self.options)
            hint = f"did you mean {near!r}? " if near else ""
            raise RejectedError(f"{value!r} is unknown", f"{hint}use one of {', '.join(self.options)}")
        return value

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        return f"one of {', '.join(self.options)}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit of `dimension`, in its base unit; positive, or also zero, from `least` to `most`.

    The limits are written as they are told: "20 GHz".
    """

    dimension: str
    zero: bool = False
    least: str | None = None
    most: str | None = None

    def __call__(self, node: yaml.Node) -> float:
        """The number."""
        value = scalar(node)
        try:
            number = parse_quantity(value, self.dimension)
        except InputError as error:
            raise RejectedError(error.what, error.todo) from error
        if not (0.0 < number < float("inf") or (self.zero and number == 0.0)):
            wrong = "too large" if number > 0 else "negative" if self.zero else "not greater than zero"
            raise RejectedError(f"{value!r} is {wrong}")
        self._limit(value, number)
        return number

    def _limit(self, value: str, number: float) -> None:
        if self.least is not None and number < parse_quantity(self.least, self.dimension):
            raise RejectedError(f"{value!r} is less than {self.least}", "check number and unit")
        if self.most is not None and number > parse_quantity(self.most, self.dimension):
            raise RejectedError(f"{value!r} is more than {self.most}", "check number and unit")

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        least = self.least or ("0" if self.zero else "above 0")
        return f"{least} to {self.most}" if self.most else f"from {least}"


@dataclass(frozen=True, slots=True)
class QuantityOrWord:
    """A quantity, or one of certain words in its place."""

    quantity: Quantity
    words: tuple[str, ...]

    def __call__(self, node: yaml.Node) -> float | str:
        """The number or the word."""
        written = scalar(node)
        return written if written in self.words else self.quantity(node)


def unit(dimension: str) -> Kind:
    """A unit of `dimension`, as its factor to the base unit."""

    def read(node: yaml.Node) -> float:
        value = scalar(node)
        if value not in FACTORS[dimension]:
            raise RejectedError(f"{value!r} is no unit of {dimension}", f"use one of {', '.join(FACTORS[dimension])}")
        return FACTORS[dimension][value]

    return read


def items(node: yaml.Node) -> list[yaml.Node]:
    """The nodes of a list."""
    if not isinstance(node, yaml.SequenceNode):
        raise RejectedError("is no list", "write [first, second, …]")
    return list(node.value)


def names(node: yaml.Node) -> tuple[str, ...]:
    """A list of different names."""
    found = tuple(text(item) for item in items(node))
    for index, name in enumerate(found):
        if name in found[:index]:
            raise RejectedError(f"names {name!r} twice", "name each once")
    return found


def positive_numbers(node: yaml.Node) -> tuple[float, ...]:
    """A list of positive numbers."""
    found = tuple(positive_number(item) for item in items(node))
    if not found:
        raise RejectedError("is an empty list", "write at least one number")
    return found


def number_or_quantity(dimension: str) -> Kind:
    """A positive number in the base unit of `dimension`, or with a unit."""
    number, with_unit = positive_number, Quantity(dimension)

    def read(node: yaml.Node) -> float:
        try:
            return number(node)
        except RejectedError:
            return with_unit(node)

    return read


LEAST_PAIRS = 2
"""Pairs that a list of them has at least."""


def ascending_pairs(first: Kind, second: Kind, names: str) -> Kind:
    """A list of at least two pairs, called `names`, whose first numbers ascend."""
    instead = f"write [[{names}], …]"

    def read(node: yaml.Node) -> tuple[tuple[float, float], ...]:
        rows = [items(row) if isinstance(row, yaml.SequenceNode) else [] for row in items(node)]
        if len(rows) < LEAST_PAIRS or any(len(row) != 2 for row in rows):
            raise RejectedError("is no list of at least two pairs", instead)
        found = tuple((first(row[0]), second(row[1])) for row in rows)
        for (before, _), (after, _) in pairwise(found):
            if after <= before:
                raise RejectedError(f"{after:g} follows {before:g}", "sort the pairs, each length once")
        return found

    return read


def core_counts(node: yaml.Node) -> tuple[int, ...]:
    """Ascending core counts: a list `[1, 2, 4]`, or text with ranges `1-8, 10`."""
    if isinstance(node, yaml.SequenceNode):
        counts = [Integer()(item) for item in node.value]
    else:
        counts = [count for part in scalar(node).split(",") for count in _core_range(part.strip())]
    if not counts:
        raise RejectedError("is empty", "write core counts, such as 1-20 or [1, 2, 4]")
    for before, after in pairwise(counts):
        if after <= before:
            raise RejectedError(f"core counts do not ascend: {after} follows {before}", "sort them, each once")
    return tuple(counts)


def _core_range(part: str) -> range:
    match = re.fullmatch(r"([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?", part)
    if match is None or int(match[1]) < 1:
        raise RejectedError(f"{part!r} is no core count", "write core counts, such as 1-20 or [1, 2, 4]")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


@dataclass(slots=True)
class FieldReader:
    """The state of reading one file: problems found so far, and the line of every key seen."""

    file: str
    kind: FileKind
    problems: list[Problem] = field(default_factory=list)
    lines: dict[str, int] = field(default_factory=dict)

    @property
    def errors(self) -> list[Problem]:
        """The problems that make the file unfit for use."""
        return [problem for problem in self.problems if problem.severity == "error"]

    def problem(self, key: str, what: str, todo: str | None = None, severity: Severity = "error") -> None:
        """Note a problem with `key`, on its line or on that of the nearest section around it."""
        around = key
        while around and around not in self.lines:
            around = around.rpartition(".")[0]
        where = Location(self.file, self.lines.get(around, 1))
        self.problems.append(Problem(self.kind, where, key, what, todo, severity))

    def entries(self, node: yaml.Node, key: str) -> dict[str, yaml.Node]:
        """Key and value nodes of a mapping; duplicate keys are problems, and so is something else than a mapping."""
        if not isinstance(node, yaml.MappingNode):
            self.problem(key, "is no mapping", "write `key: value` lines under it")
            return {}
        found: dict[str, yaml.Node] = {}
        for name_node, value in node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                self.problem(key, f"has a key in line {line_of(name_node)} that is no name", "write `key: value` lines")
                continue
            name = str(name_node.value)
            dotted = f"{key}.{name}" if key else name
            if name in found:
                where = Location(self.file, line_of(name_node))
                todo = f"leave out this one or the one in line {self.lines[dotted]}"
                self.problems.append(Problem(self.kind, where, dotted, "is given twice", todo))
                continue
            self.lines[dotted] = line_of(name_node)
            found[name] = value
        return found

    def value(self, node: yaml.Node, key: str, kind: Kind) -> Any:
        """What `kind` reads, or None with a problem noted."""
        try:
            return kind(node)
        except RejectedError as rejected:
            where = Location(self.file, line_of(node))
            self.problems.append(Problem(self.kind, where, key, rejected.what, rejected.todo))
            return None

    def read(self, node: yaml.Node, key: str, kind: Kind | Table | Rows | List) -> Any:
        """What is declared to stand under a key; None, with a problem noted, where a single value cannot be read."""
        if isinstance(kind, Rows):
            rows = {name: self.read(row, f"{key}.{name}", kind.each) for name, row in self.entries(node, key).items()}
            return {name: row for name, row in rows.items() if row is not None}
        if isinstance(kind, List):
            found = []
            for index, row in enumerate(self.value(node, key, items) or ()):
                self.lines[f"{key}[{index}]"] = line_of(row)
                found.append(self.read(row, f"{key}[{index}]", kind.each))
            return found
        if isinstance(kind, Mapping):
            return self.fields(self.entries(node, key), key, kind)
        return self.value(node, key, kind)

    def fields(self, entries: Mapping[str, yaml.Node], key: str, table: Table) -> Values:
        """The values of a table; those that are missing or malformed are left out, with a problem noted."""
        values: Values = {}
        meant = self.unknown(entries, key, table)
        for name, entry in table.items():
            dotted = f"{key}.{name}" if key else name
            if name in entries:
                value = self.read(entries[name], dotted, entry.kind)
                if value is not None:
                    values[name] = value
            elif entry.required:
                if name not in meant:
                    self.problem(dotted, "is missing", entry.todo or f"{self.kind.guide} says what belongs there")
            elif not isinstance(entry.kind, Mapping | Rows | List):
                values[name] = entry.default
        return values

    def unknown(self, entries: Iterable[str], key: str, known: Iterable[str]) -> set[str]:
        """Note every entry that is not known; the known names that they probably mean and that are not there."""
        names, given, meant = tuple(known), tuple(entries), set[str]()
        withdrawn = dict(self.kind.withdrawn)
        for name in given:
            if name in withdrawn:
                told = f"leave it out; {withdrawn[name]} stand for it"
                self.problem(f"{key}.{name}" if key else name, "is not read any more", told, severity="warning")
            elif name not in names:
                self.problem(f"{key}.{name}" if key else name, "is an unknown key", suggest(name, names))
                meant |= {near for near in (nearest(name, names),) if near is not None and near not in given}
        return meant
