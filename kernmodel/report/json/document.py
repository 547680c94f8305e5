"""How values become JSON documents: by the fields that are declared for their type, or by all their fields.

docs/json.md describes every document. Numbers are in base units as the values document them; a number that is not
finite is null; formulas are text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from kernmodel import __version__
from kernmodel.units import TIME_UNITS, Work, convert_cycles, meaningful_units

if TYPE_CHECKING:
    from kernmodel.code.mix import InstructionMix
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.errors import Note
    from kernmodel.incore.model import Reason
    from kernmodel.machine.model import Machine
    from kernmodel.models.chart import Roofline
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import CodeOrigin, EcmAnswer
    from kernmodel.uncertainty import Interval

Json = dict[str, Any]

_FIELDS = {
    "AssemblyLoop": (
        *("file", "isa", "syntax", "function", "label", "role", "iterations_per_pass", "evidence"),
        *("instructions", "streams"),
    ),
    "CodeOrigin": ("file", "compiler", "version", "flags", "command"),
    "Explanation": (
        *("binding", "crowd", "chain", "chain_passes", "idealised", "next_bound", "next_cycles", "components"),
        "mechanisms",
    ),
    "Division": ("threads", "iterations", "most", "idle", "balance"),
    "Instruction": ("line", "text", "mnemonic", "form", "address"),
    "OutsideWork": (
        *(
            "length",
            "entries",
            "remainder_cycles",
            "outer_cycles",
            "entry_cycles",
            "cycles",
            "overlap_cycles",
            "straight_cycles",
        ),
        *("exit", "known"),
    ),
    "Parameters": (
        *("name", "title", "isa", "ports", "load_latency", "store_forward_latency", "issue_width", "sources"),
    ),
    "PathTraffic": (
        *("path", "loads", "stores", "clean_victims", "loads_formula", "stores_formula", "clean_victims_formula"),
        "write_allocates",
    ),
    "TransferTime": ("name", "cycles", "penalty_cycles", "bytes", "bandwidth", "of_streams"),
}
"""By type the fields that documents have, where these are not all."""

_NULL_INTERVALS = ("ScalingPoint",)
"""Types whose documents have had null in place of an interval from the first, where others leave it out."""


def document(schema: str, *parts: Mapping[str, Any], **content: Any) -> Json:
    """A document: the name of its schema with version ("kernmodel.ecm/1"), the version of the tool, and its content."""
    return {"schema": schema, "version": __version__, **record(*parts, **content)}


def record(*parts: Mapping[str, Any], **content: Any) -> Json:
    """An object with the content of `parts`, which are JSON data, and with what is named."""
    found: Json = {}
    for part in parts:
        found |= part
    for name, value in content.items():
        found[name] = plain(value)
    return found


def dumps(document: Mapping[str, Any]) -> str:
    """The document as ASCII text."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """`value` as JSON data: dataclasses become objects of their fields, what is not finite null, other objects text. An
    interval that a number has not is left out."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        kind = type(value).__name__
        if kind in _SPECIAL:
            return _SPECIAL[kind](value)
        names = _FIELDS.get(kind) or (field.name for field in fields(value))
        found = {name: plain(getattr(value, name)) for name in names}
        needless = () if kind in _NULL_INTERVALS else [name for name in found if name.endswith("_interval")]
        return {name: one for name, one in found.items() if one is not None or name not in needless}
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


def _note(note: Note) -> Json:
    """A note: kind, code, text, and the place as text or null."""
    return {"kind": note.kind, "code": note.code, "text": note.text, "where": str(note.where) if note.where else None}


def _machine(machine: Machine) -> Json:
    """Which machine: enough to find the file again and to see that it has not changed."""
    return record(
        pick(machine, "name", "title", "file", "sha256", "clock_hz", "line_bytes"),
        microarchitecture=machine.core.microarchitecture,
        cores_per_numa_domain=machine.topology.cores_per_numa_domain,
        cores=machine.topology.cores,
        overlap=str(machine.overlap),
        sources=machine.sources,
    )


def _mix(mix: InstructionMix) -> Json:
    """A mix with its sums; `load_store_ratio` is null without stores, where `load_share` is 1."""
    names = ("source", "per", "shares_only", "loads", "stores", "load_share", "load_store_ratio", "bytes", "flops")
    return record(
        pick(mix, *names, "intensity", "other"),
        served=dict(mix.served),
        memory=[{**plain(kind), "instructions": number} for kind, number in mix.memory],
        fp=[{**plain(kind), "flops": kind.flops, "instructions": number} for kind, number in mix.fp],
    )


def _roofline(chart: Roofline) -> Json:
    """A chart; what it says in words where its cores draw the most from memory, if that is another chart."""
    names = ("model", "bytes_meant", "memory_roofs", "compute_roofs", "points", "bound", "bound_by", "region")
    most = chart.most
    return record(
        pick(chart, *names, "memory_until", "above", "below", "iterations_per_second", "unknown", "measured"),
        interval_json("bound", chart.bound_interval),
        interval_json("iterations_per_second", chart.iterations_per_second_interval),
        {} if most is None else {"most": pick(most, "bound_by", "region", "memory_until", "above", "below")},
    )


def _reason(reason: Reason) -> str:
    from kernmodel.report.text.reasons import reason_text

    return reason_text(reason)


_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "Note": _note,
    "Machine": _machine,
    "InstructionMix": _mix,
    "Reason": _reason,
    "Roofline": _roofline,
}
"""By type how a value of it is told of, where that is not by its fields."""


def kernel_json(nest: LoopNest, sizes: Mapping[str, int]) -> Json:
    """Which kernel at which sizes."""
    return record(
        pick(nest, "name", "file", "function", "defaults"),
        sha256=hashlib.sha256(nest.text.encode()).hexdigest(),
        flops_per_iteration=nest.operations.flops_per_iteration,
        sizes=sizes,
    )


def subject_json(answer: EcmAnswer) -> Json:
    """What a prediction is of: kernel, machine and code."""
    return record(kernel=kernel_json(answer.nest, answer.sizes), machine=answer.machine, code=answer.origin)


def code_json(origin: CodeOrigin, loop: AssemblyLoop) -> Json:
    """Where the assembly comes from, and the loop in it."""
    return record(plain(origin), loop=loop)


def in_units(cycles: float, work: Work) -> Json:
    """A time (cycles per unit of work) in every unit; null for a unit that has no meaning for the kernel."""
    known = meaningful_units(work)
    return {unit: plain(convert_cycles(cycles, unit, work)) if unit in known else None for unit in TIME_UNITS}
