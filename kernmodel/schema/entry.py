"""Values of YAML and JSON files one by one: the first that is wrong is an error with file, line and key.

`kernmodel.schema.fields` reads files whose keys are declared, and gathers all that is wrong.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

import yaml

from kernmodel.errors import InputError, Location
from kernmodel.schema.document import FileKind, read_text
from kernmodel.schema.fields import suggest
from kernmodel.schema.yaml_nodes import compose
from kernmodel.units import parse_quantity
from kernmodel.value_types import dataclass

_NULL = ("", "~", "null", "Null", "NULL", "None")
_LARGEST = 2**63 - 1

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a YAML or JSON file.

    Attributes:
        file: name of the file as messages print it.
        key: path of keys to the value as messages print it ("L2.sets"), empty for the whole file.
        node: the YAML node.
    """

    file: str
    key: str
    node: yaml.Node

    @property
    def where(self) -> Location:
        """File and line."""
        return Location(self.file, int(self.node.start_mark.line) + 1)

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        """Whether it stands for nothing (`null`)."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.value in _NULL

    def error(self, what: str, todo: str | None = None) -> InputError:
        """An error with this value."""
        return InputError(f"{self.key}: {what}" if self.key else what, where=self.where, todo=todo)

    def at(self, key: str, node: yaml.Node) -> Self:
        """Another value of the file."""
        return replace(self, key=key, node=node)

    def mapping(self) -> dict[str, Self]:
        """The values by key.

        Raises:
            InputError: it is no mapping, or a key is given twice.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("is no mapping", "write keys with values")
        found: dict[str, Self] = {}
        for name_node, node in self.node.value:
            if not isinstance(name_node, yaml.ScalarNode):
                raise self.at(self.key, name_node).error("has a key that is no name", "write `key: value`")
            name = str(name_node.value)
            if name in found:
                raise found[name].error("is given twice", "leave one of the two out")
            found[name] = self.at(f"{self.key}.{name}" if self.key else name, node)
        return found

    def known_keys(self, known: Iterable[str]) -> dict[str, Self]:
        """The values by key, of a mapping that may have no others.

        Raises:
            InputError: it is no mapping, a key is given twice, or is unknown.
        """
        found = self.mapping()
        for name, entry in found.items():
            if name not in known:
                raise entry.error("is an unknown key", suggest(name, known))
        return found

    def words(self) -> tuple[str, ...]:
        """The words of a text, as a shell splits it."""
        try:
            return tuple(shlex.split(self.text()))
        except ValueError as error:
            raise self.error(f"cannot be split: {error}", "check the quotes") from error

    def items(self) -> tuple[Self, ...]:
        """The elements of a list.

        Raises:
            InputError: it is no list.
        """
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("is no list", "write [first, second]")
        return tuple(self.at(f"{self.key}[{index}]", node) for index, node in enumerate(self.node.value, start=1))

    def text(self) -> str:
        """A single value that is not empty, as written."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.error(f"is a {'list' if self.is_list else 'mapping'}", "write a single value")
        value = str(self.node.value).strip()
        if not value:
            raise self.error("is empty", "write a value")
        return value

    def integer(self, minimum: int, maximum: int = _LARGEST) -> int:
        """A whole number, decimal or in hexadecimal with 0x."""
        value = self.text()
        if not re.fullmatch(r"[+-]?(?:[0-9]{1,30}|0[xX][0-9a-fA-F]{1,30})", value):
            raise self.error(f"{value[:40]!r} is no whole number", "write digits only")
        number = int(value, 16) if "x" in value.lower() else int(value)
        if number < minimum:
            raise self.error(f"{value} is smaller than {minimum}", f"write a whole number of at least {minimum}")
        if number > maximum:
            raise self.error(f"{value} is too large", f"write a whole number of at most {maximum}")
        return number

    def flag(self) -> bool:
        """`true` or `false`."""
        value = self.text()
        if value.lower() not in ("true", "false"):
            raise self.error(f"{value[:40]!r} is neither true nor false", "write true or false")
        return value.lower() == "true"

    def size_bytes(self) -> int:
        """A size with a unit ("32 KiB"), or a number of bytes; a whole number of bytes of at least one."""
        value = self.text()
        if re.fullmatch(r"[+-]?[0-9]+", value):
            return self.integer(1)
        try:
            size = parse_quantity(value, "data")
        except InputError as error:
            raise self.error(error.what, error.todo) from error
        if not 1 <= size <= _LARGEST or size != int(size):
            raise self.error(f"{value!r} is no whole number of bytes above zero", "write a size such as 32 KiB")
        return int(size)


def read_entry(path: Path, kind: FileKind) -> Entry:
    """The outermost value of a YAML or JSON file.

    Raises:
        InputError: the file cannot be read or is not valid YAML (with line and column).
    """
    return parse_entry(read_text(path, kind)[0], str(path), kind)


def parse_entry(text: str, file: str, kind: FileKind) -> Entry:
    """The outermost value that `text` holds.

    Raises:
        InputError: broken syntax, several documents, or nothing but comments.
    """
    root = compose(text, file)
    if root is None:
        raise InputError("holds only comments", where=file, todo=f"give a {kind.name}")
    return Entry(file, "", root)


def by_name(entries: Mapping[str, Entry], names: Mapping[str, str]) -> dict[str, Entry]:
    """Entries under the names that are used here; `names` maps every spelling to one of them.

    Raises:
        InputError: an unknown key (with the nearest known one), or one value under two spellings.
    """
    found: dict[str, Entry] = {}
    for spelling, entry in entries.items():
        name = names.get(spelling)
        if name is None:
            raise entry.error("is an unknown key", suggest(spelling, names, tuple(dict.fromkeys(names.values()))))
        if name in found:
            raise entry.error(f"says the same as {found[name].key}", "leave one of the two out")
        found[name] = entry
    return found


def optional(entries: Mapping[str, Entry], name: str, read: Callable[[Entry], Value], default: Value) -> Value:
    """The value of a key, or `default` where it is absent or null."""
    entry = entries.get(name)
    return default if entry is None or entry.is_null else read(entry)
