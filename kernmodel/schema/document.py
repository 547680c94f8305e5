"""Files in YAML or JSON as nodes that know their lines.

Every scalar stays the text that was written (`0DV`, `1-20`, `2.5 GHz`): the schema decides what it means, so YAML's own
ideas of numbers, dates and booleans cannot get in the way. JSON is read as the YAML that it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kernmodel.errors import InputError, Location
from kernmodel.limits import YAML_BYTES
from kernmodel.schema import yaml_nodes
from kernmodel.user_files import read_file
from kernmodel.value_types import dataclass

try:  # the interpreter's own, as `random` takes it: hashlib loads the library of OpenSSL, 2 % of a cold start
    from _sha256 import sha256  # type: ignore[import-not-found]
except ImportError:  # not there from Python 3.12 on
    from hashlib import sha256


@dataclass(frozen=True, slots=True)
class FileKind:
    """What messages call a kind of file.

    Attributes:
        name: "machine file".
        guide: the page that describes the format.
        error: the exception for what is wrong with such a file.
        withdrawn: keys that earlier versions wrote and that are not read any more, and what stands for each.
    """

    name: str
    guide: str
    error: type[InputError] = InputError
    withdrawn: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A file as read.

    Attributes:
        file: name of the file as messages print it.
        stem: that name without folder and ending.
        kind: what messages call it.
        sha256: hash of the file's bytes, for provenance.
        root: the outermost mapping.
    """

    file: str
    stem: str
    kind: FileKind
    sha256: str
    root: yaml.MappingNode


def line_of(node: yaml.Node) -> int:
    """The line (1-based) on which `node` starts."""
    return int(node.start_mark.line) + 1


def plain(node: yaml.Node) -> Any:
    """What a node holds, as mappings, tuples and texts as written."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): plain(value) for key, value in node.value}
    return tuple(plain(item) for item in node.value) if isinstance(node, yaml.SequenceNode) else str(node.value)


def read_text(path: Path, kind: FileKind) -> tuple[str, str]:
    """Text and SHA-256 of a file.

    Raises:
        InputError: that of the kind: unreadable, binary or empty.
    """
    give = f"give a {kind.name}"
    data = read_file(path, f"a {kind.name}", YAML_BYTES, error=kind.error)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind.error("is not text in UTF-8", where=str(path), todo=give) from error
    if "\0" in text:
        raise kind.error("is not text but a binary file", where=str(path), todo=give)
    if not text.strip():
        raise kind.error("is empty", where=str(path), todo=f"{kind.guide} says what a {kind.name} holds")
    return text, sha256(data).hexdigest()


def read_document(path: Path, kind: FileKind) -> Document:
    """Read the YAML of a file without looking at its meaning.

    Raises:
        InputError: that of the kind: unreadable, binary, empty, no YAML (with line and column) or no mapping.
    """
    return document_in(path, kind, *read_text(path, kind))


def document_in(path: Path, kind: FileKind, text: str, digest: str) -> Document:
    """The document in a file whose text and SHA-256 are known (`read_text`). Raises as `compose` does."""
    return Document(str(path), path.stem, kind, digest, compose(text, str(path), kind))


def document_of(text: str, file: str, kind: FileKind) -> Document:
    """The document that a text makes; `file` is its name in messages. Raises as `compose` does."""
    digest = sha256(text.encode("utf-8")).hexdigest()
    return Document(file, Path(file).stem, kind, digest, compose(text, file, kind))


def compose(text: str, file: str, kind: FileKind) -> yaml.MappingNode:
    """The mapping that `text` holds, as YAML nodes.

    Raises:
        InputError: that of the kind: broken YAML syntax, several documents, or something else than a mapping.
    """
    root = yaml_nodes.compose(text, file, error=kind.error)
    if not isinstance(root, yaml.MappingNode):
        found = {"sequence": "a list", "scalar": "a single value"}.get(getattr(root, "id", ""), "only comments")
        todo = f"write keys with values, as {kind.guide} shows"
        raise kind.error(f"is no mapping but {found}", where=Location(file, 1), todo=todo)
    return root
