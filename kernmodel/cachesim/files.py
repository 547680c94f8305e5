"""Reading files of the simulator: text that is text, YAML or JSON whose values know their places.

Every scalar stays the text that was written, so that YAML's own ideas of numbers and booleans cannot get in the way;
JSON is read as the YAML that it is. Whatever is wrong is raised as one message with file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import yaml

from kernmodel.errors import InputError, Location
from kernmodel.limits import YAML_BYTES
from kernmodel.units import parse_quantity
from kernmodel.user_files import read_file
from kernmodel.yaml_text import compose

_NULL = ("", "~", "null", "Null", "NULL", "None")
_LARGEST = 2**63 - 1

Value = TypeVar("Value")


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a file.

    Raises:
        InputError: it is missing, a directory, unreadable or empty; `what` says what it should have been.
    """
    data = read_file(path, f"a {what}", YAML_BYTES)
    if not data.strip():
        raise InputError("is empty", where=str(path), todo=f"give a {what}")
    return data


def decode(data: bytes, file: str, what: str) -> str:
    """`data` as text.

    Raises:
        InputError: it is binary, or not in UTF-8.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not text in UTF-8", where=file, todo=f"give a {what}") from error
    if "\0" in text:
        raise InputError("is not text but a binary file", where=file, todo=f"give a {what}")
    return text


def nearest(name: str, known: Iterable[str], shown: Iterable[str] = ()) -> str:
    """What to do about an unknown name: the nearest known one, or all of them (those of `shown` if given)."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(shown or names)}"


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

    def called(self, key: str) -> Entry:
        """The same value under another name."""
        return Entry(self.file, key, self.node)

    def mapping(self) -> dict[str, Entry]:
        """The values by key.

        Raises:
            InputError: it is no mapping, or a key is given twice.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise self.error("is no mapping", "write keys with values")
        found: dict[str, Entry] = {}
        for name_node, value in self.node.value:
            name = name_node.value if isinstance(name_node, yaml.ScalarNode) else None
            if name is None:
                raise Entry(self.file, self.key, name_node).error("has a key that is no name", "write `key: value`")
            if name in found:
                raise found[name].error("is given twice", "leave one of the two out")
            found[name] = Entry(self.file, f"{self.key}.{name}" if self.key else name, value)
        return found

    def items(self) -> tuple[Entry, ...]:
        """The elements of a list.

        Raises:
            InputError: it is no list.
        """
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.error("is no list", "write [first, second]")
        return tuple(
            Entry(self.file, f"{self.key}[{index}]", node) for index, node in enumerate(self.node.value, start=1)
        )

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


def read_entry(path: Path, what: str) -> Entry:
    """The outermost value of a YAML or JSON file.

    Raises:
        InputError: the file cannot be read or is not valid YAML (with line and column).
    """
    return parse_entry(decode(read_bytes(path, what), str(path), what), str(path), what)


def parse_entry(text: str, file: str, what: str) -> Entry:
    """The outermost value that `text` holds.

    Raises:
        InputError: broken syntax, several documents, or nothing but comments.
    """
    root = compose(text, file)
    if root is None:
        raise InputError("holds only comments", where=file, todo=f"give a {what}")
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
            raise entry.error("is an unknown key", nearest(spelling, names, tuple(dict.fromkeys(names.values()))))
        if name in found:
            raise entry.error(f"says the same as {found[name].key}", "leave one of the two out")
        found[name] = entry
    return found


def optional(entries: Mapping[str, Entry], name: str, read: Callable[[Entry], Value], default: Value) -> Value:
    """The value of a key, or `default` where it is absent or null."""
    entry = entries.get(name)
    return default if entry is None or entry.is_null else read(entry)
