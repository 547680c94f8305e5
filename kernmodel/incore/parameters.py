"""Parameter files of microarchitectures: `data/<NAME>.yml` in, `Parameters` out.

Besides the carried files there are those of the folders that the environment variable KERNMODEL_UARCH_PATH lists,
which win over carried ones of the same name; a name may be the path of a file as well. The table of such a file lies
beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
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


UARCH_PATH = "KERNMODEL_UARCH_PATH"
"""Environment variable with further folders of parameter files, separated as in PATH."""


def known_microarchitectures() -> tuple[str, ...]:
    """Names of all microarchitectures that have a parameter file, sorted."""
    return tuple(sorted(_files()))


def _files() -> dict[str, Path]:
    """The parameter files by name in capitals; those of the user's folders, the first folder's first, win."""
    own = [Path(folder) for folder in os.environ.get(UARCH_PATH, "").split(os.pathsep) if folder]
    return {file.stem.upper(): file for folder in (_DATA, *reversed(own)) for file in folder.glob("*.yml")}


def load_parameters(name: str) -> Parameters:
    """The parameters of a microarchitecture by its name or an alias, in any case, or by the path of its file.

    Raises:
        InstructionTableError: the name is unknown (names the known ones), or the file is malformed.
    """
    if name.lower().endswith(".yml"):
        return read_parameters(Path(name))
    files = _files()
    return read_parameters(files.get(name.upper()) or _by_alias(name.lower(), files))


def _by_alias(name: str, files: Mapping[str, Path]) -> Path:
    """The file that lists the alias; read as text, for a search need not parse every file."""
    names = {}
    known = sorted(files)
    for path in files.values():
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
        table=str(content["table"]) if path.parent == _DATA else str(path.parent / str(content["table"])),
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


def parameter_text(figures: Parameters, name: str, table: str, ports: Sequence[str]) -> str:
    """The text of a parameter file for a core that takes over another one's figures.

    Args:
        figures: of the other core.
        name: of the new core; table: file name of its table.
        ports: that its rows name; those of the other core stand first, in its order.
    """
    import yaml

    own = {"load latency": figures.load_latency, "store forward latency": figures.store_forward_latency}
    values = {key: f"{cycles:g} cy" for key, cycles in own.items()} | {_ISSUE: figures.issue_width, **figures.extra}
    prefix = "" if figures.name == name else f"taken over from {figures.name}: "
    content = {
        "name": name,
        "title": figures.title if figures.name == name else f"{name} (figures of {figures.title})",
        "isa": figures.isa,
        "aliases": [],
        "table": table,
        "ports": [*(port for port in figures.ports if port in ports), *(p for p in ports if p not in figures.ports)],
        "figures": {
            key: {"value": value, "source": prefix + figures.sources.get(key, figures.name)}
            for key, value in values.items()
        },
    }
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=120)
