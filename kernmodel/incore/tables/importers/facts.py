"""Facts that the importers need, from the YAML files beside them; each names its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import yaml

from kernmodel.errors import InstructionTableError
from kernmodel.schema.document import FileKind, plain, read_document
from kernmodel.schema.fields import Field, FieldReader, Kind, flag, names, text

T = TypeVar("T")
_FILES = FileKind("file of facts", "docs/microarchitectures.md", InstructionTableError)
_KINDS: Mapping[object, Kind] = {str: text, bool: flag, tuple[str, ...]: names}


@cache
def _sections(file: str) -> Mapping[str, yaml.Node]:
    document = read_document(Path(__file__).with_name(file), _FILES)
    return FieldReader(file, _FILES).entries(document.root, "")


@cache
def facts(file: str, section: str) -> Any:
    """A section of a file, as mappings, tuples and texts."""
    return plain(_sections(file)[section])


def facts_of(kind: type[T], file: str, section: str) -> dict[str, T]:
    """The entries of a section by name: values of a dataclass whose fields declare the keys, the first one the name.

    Raises:
        InstructionTableError: a key is unknown or missing, or a value of another type; names file and line.
    """
    made: Any = kind
    reading, hints = FieldReader(file, _FILES), get_type_hints(made)
    table = {
        each.name: Field(_KINDS[hints[each.name]], each.default is MISSING, each.default) for each in fields(made)[1:]
    }
    entries = reading.entries(_sections(file)[section], section)
    found = {name: reading.fields(reading.entries(node, name), name, table) for name, node in entries.items()}
    if reading.problems:
        raise reading.problems[0].error()
    return {name: made(name, **values) for name, values in found.items()}
