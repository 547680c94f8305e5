"""Parameter files of microarchitectures: `data/<NAME>.yml` in, `Parameters` out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.model import Parameters
from kernmodel.units import parse_quantity

_DATA = Path(__file__).parent / "data"
_ALIASES = re.compile(r"^aliases: *\[([^\]]*)\]", re.MULTILINE)
_TODO = "see docs/microarchitectures.md"
_TEXTS = ("name", "title", "isa", "table")
_CYCLES = {"load latency": "load_latency", "store forward latency": "store_forward_latency"}
_ISSUE = "issue width"


def known_microarchitectures() -> tuple[str, ...]:
    """Names of all microarchitectures that have a parameter file, sorted."""
    return tuple(sorted(file.stem for file in _DATA.glob("*.yml")))


def load_parameters(name: str) -> Parameters:
    """The parameters of a microarchitecture by its name or an alias, in any case.

    Raises:
        InstructionTableError: the name is unknown (names the known ones), or the file is malformed.
    """
    path = _DATA / f"{name.upper()}.yml"
    known = known_microarchitectures()
    if path.stem not in known:
        path = _by_alias(name.lower(), known)
    return read_parameters(path)


def _by_alias(name: str, known: tuple[str, ...]) -> Path:
    """The file that lists the alias; read as text, for a search need not parse every file."""
    names = {}
    for stem in known:
        path = _DATA / f"{stem}.yml"
        match = _ALIASES.search(path.read_text(encoding="utf-8"))
        for alias in (match[1] if match else "").split(","):
            names[alias.strip().lower()] = path
    if name in names:
        return names[name]
    near = get_close_matches(name.upper(), known, n=1)
    hint = f"did you mean {near[0]}? known are {', '.join(known)}" if near else f"known are {', '.join(known)}"
    raise InstructionTableError(f"unknown microarchitecture {name!r}", todo=hint)


def read_parameters(path: Path) -> Parameters:
    """The parameters in this file.

    Raises:
        InstructionTableError: no YAML, a missing key, a figure without source, or a wrong unit; names the file and key.
    """
    content = _mapping(path)
    for key in (*_TEXTS, "ports", "aliases", "figures"):
        if key not in content:
            raise InstructionTableError(f"key {key!r} is missing", where=str(path), todo=_TODO)
    figures, sources = _figures(content["figures"], path)
    for key in (*_CYCLES, _ISSUE):
        if key not in figures:
            raise InstructionTableError(f"figure {key!r} is missing", where=str(path), todo=_TODO)
    cycles = {
        field: parse_quantity(figures.pop(key), "cycles", where=f"{path}: {key}") for key, field in _CYCLES.items()
    }
    issue = figures.pop(_ISSUE)
    if not isinstance(issue, int):
        raise InstructionTableError(f"{_ISSUE} {issue!r} is no whole number", where=str(path), todo=_TODO)
    return Parameters(
        name=str(content["name"]),
        title=str(content["title"]),
        isa=str(content["isa"]),
        table=str(content["table"]),
        load_latency=cycles["load_latency"],
        store_forward_latency=cycles["store_forward_latency"],
        ports=tuple(str(port) for port in content["ports"]),
        aliases=tuple(str(alias) for alias in content["aliases"]),
        issue_width=issue,
        sources=sources,
        extra=figures,
    )


def _mapping(path: Path) -> Mapping[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except OSError as error:
        raise InstructionTableError(f"cannot be read ({error.strerror})", where=str(path)) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise InstructionTableError("is no YAML", where=Location(str(path), line), todo=_TODO) from None
    if not isinstance(content, dict):
        raise InstructionTableError("is no mapping", where=str(path), todo=_TODO)
    return content


def _figures(entries: object, path: Path) -> tuple[dict[str, object], dict[str, str]]:
    """Values and sources of the figures, each written as `key: {value: …, source: …}`."""
    if not isinstance(entries, dict):
        raise InstructionTableError("'figures' is no mapping", where=str(path), todo=_TODO)
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for key, entry in entries.items():
        if not isinstance(entry, dict) or set(entry) != {"value", "source"}:
            raise InstructionTableError(f"figure {key!r} needs a value and a source", where=str(path), todo=_TODO)
        values[str(key)] = entry["value"]
        sources[str(key)] = str(entry["source"])
    return values, sources
