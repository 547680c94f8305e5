"""A machine as plain data for JSON, and as the text of a machine file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kernmodel.machine.model import Machine
from kernmodel.machine.overlap import Max, Sum, Time


def machine_to_dict(machine: Machine) -> dict[str, Any]:
    """All of a machine as dicts, lists, numbers and text, in base units (see `kernmodel.machine.model`).

    Keys are the attribute names of the values; the overlap is its expression as text; derived figures that a reader
    would have to compute (cores, cores per ccNUMA domain, the write-allocate factor of a mix) stand beside the others.
    """
    data: dict[str, Any] = _plain(machine)
    if machine.memory is not None:
        data["memory"]["bytes_per_second"] = machine.memory.bytes_per_second
    topology = machine.topology
    data["topology"] |= {"cores": topology.cores, "cores_per_numa_domain": topology.cores_per_numa_domain}
    for path, row in zip(machine.paths, data["paths"], strict=True):
        row["time_name"] = path.time_name
    for series, row in zip(machine.bandwidths, data["bandwidths"], strict=True):
        mix = series.mix
        row["mix"] |= {"write_allocate_factor": mix.write_allocate_factor, "read_share": mix.read_share}
        row["mix"] |= {"load_share": mix.load_share}
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Time | Sum | Max):
        return str(value)
    if is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
