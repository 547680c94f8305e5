"""The YAML text of a machine file as a tree of nodes that know their lines.

Every scalar stays the text that was written (`0DV`, `1-20`, `2.5 GHz`): the schema decides what it means, so YAML's own
ideas of numbers, dates and booleans cannot get in the way.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import yaml

from kernmodel.errors import Location, MachineError

# libyaml's parser is ten times faster than the one in Python; not every build of PyYAML has it
_Loader: type = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """A machine file as read.

    Attributes:
        file: name of the file as messages print it.
        stem: the machine's short name.
        sha256: hash of the file's bytes, for provenance.
        root: the outermost mapping.
    """

    file: str
    stem: str
    sha256: str
    root: yaml.MappingNode


def line_of(node: yaml.Node) -> int:
    """The line (1-based) on which `node` starts."""
    return int(node.start_mark.line) + 1


def read_text(path: Path) -> tuple[str, str]:
    """Text and SHA-256 of a file.

    Raises:
        MachineError: unreadable, binary or empty.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MachineError(f"cannot be read: {error.strerror}", where=str(path)) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MachineError("is not text in UTF-8", where=str(path), todo="give a machine file in YAML") from error
    if "\0" in text:
        raise MachineError("is not text but a binary file", where=str(path), todo="give a machine file in YAML")
    if not text.strip():
        raise MachineError("is empty", where=str(path), todo="docs/machine-files.md says what a machine file holds")
    return text, hashlib.sha256(data).hexdigest()


def read_document(path: Path) -> Document:
    """Read the YAML of a machine file without looking at its meaning.

    Raises:
        MachineError: unreadable, binary, empty, no YAML (with line and column) or no mapping.
    """
    text, digest = read_text(path)
    return Document(str(path), path.stem, digest, compose(text, str(path)))


def compose(text: str, file: str) -> yaml.MappingNode:
    """The mapping that `text` holds, as YAML nodes.

    Raises:
        MachineError: broken YAML syntax, several documents, or something else than a mapping.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except RecursionError as error:
        raise MachineError("is nested too deeply", where=Location(file), todo="give a machine file in YAML") from error
    except yaml.YAMLError as error:
        raise _syntax_error(error, file) from error
    if not isinstance(root, yaml.MappingNode):
        found = {"sequence": "a list", "scalar": "a single value"}.get(getattr(root, "id", ""), "only comments")
        todo = "write keys with values, as docs/machine-files.md shows"
        raise MachineError(f"is no mapping but {found}", where=Location(file, 1), todo=todo)
    return root


def _syntax_error(error: yaml.YAMLError, file: str) -> MachineError:
    mark = getattr(error, "problem_mark", None)
    where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
    todo = "check indentation, quotes and brackets at or above this line"
    return MachineError(f"is not valid YAML: {problem}", where=where, todo=todo)
