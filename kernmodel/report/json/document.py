"""What all JSON documents share: the envelope with schema and version, and how values become plain data.

docs/json.md describes every document. Numbers are in base units as the values document them; a number that is not
finite is null; formulas are text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from kernmodel import __version__
from kernmodel.units import TIME_UNITS, Work, convert_cycles, meaningful_units

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.errors import Note
    from kernmodel.isa.model import Instruction
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import CodeOrigin
    from kernmodel.uncertainty import Interval

Json = dict[str, Any]


def envelope(schema: str, body: Mapping[str, Any]) -> Json:
    """A document: the name of its schema with version ("kernmodel.ecm/1"), the version of the tool, and its content."""
    return {"schema": schema, "version": __version__, **body}


def dumps(document: Mapping[str, Any]) -> str:
    """The document as ASCII text."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """`value` as JSON data: dataclasses become objects of their fields, what is not finite null, other objects text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def pick(value: Any, *names: str) -> Json:
    """These attributes of `value` as JSON data."""
    return {name: plain(getattr(value, name)) for name in names}


def interval_json(name: str, interval: Interval | None) -> Json:
    """The key `<name>_interval` beside the number `name`; nothing where the number has none."""
    return {} if interval is None else {f"{name}_interval": plain(interval)}


def notes_json(notes: Iterable[Note]) -> list[Json]:
    """Notes: kind, code, text, and the place as text or null."""
    return [
        {"kind": note.kind, "code": note.code, "text": note.text, "where": str(note.where) if note.where else None}
        for note in notes
    ]


def machine_identity(machine: Machine) -> Json:
    """Which machine: enough to find the file again and to see that it has not changed."""
    return {
        **pick(machine, "name", "title", "file", "sha256", "clock_hz", "line_bytes"),
        "microarchitecture": machine.core.microarchitecture,
        "cores_per_numa_domain": machine.topology.cores_per_numa_domain,
        "cores": machine.topology.cores,
        "overlap": str(machine.overlap),
        "sources": dict(machine.sources),
    }


def kernel_identity(nest: LoopNest, sizes: Mapping[str, int]) -> Json:
    """Which kernel at which sizes."""
    return {
        **pick(nest, "name", "file", "function", "defaults"),
        "sha256": hashlib.sha256(nest.text.encode()).hexdigest(),
        "flops_per_iteration": nest.flops_per_iteration,
        "sizes": dict(sizes),
    }


def origin_json(origin: CodeOrigin) -> Json:
    """Where the assembly comes from."""
    return pick(origin, "file", "compiler", "version", "flags", "command")


def loop_json(loop: AssemblyLoop) -> Json:
    """The assembly loop with its instructions and address streams."""
    return {
        **pick(loop, "file", "isa", "syntax", "function", "label", "role", "iterations_per_pass", "evidence"),
        "instructions": [instruction_json(instruction) for instruction in loop.instructions],
        "streams": plain(loop.streams),
    }


def instruction_json(instruction: Instruction) -> Json:
    """An instruction as far as reports show it."""
    return pick(instruction, "line", "text", "mnemonic", "form", "address")


def in_units(cycles: float, work: Work) -> Json:
    """A time (cycles per unit of work) in every unit; null for a unit that has no meaning for the kernel."""
    known = meaningful_units(work)
    return {unit: plain(convert_cycles(cycles, unit, work)) if unit in known else None for unit in TIME_UNITS}
