"""What the results of stages depend on, as keys of a memory: equal keys, equal results."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import KernelRequest

Blocks = tuple[tuple[str, int], ...]
"""Block size by loop variable."""


def nest_key(kernel: KernelRequest, blocks: Blocks) -> Hashable:
    """What decides how a kernel is read and blocked."""
    return kernel.kernel, kernel.nest, kernel.function, tuple(kernel.sizes.items()), blocks


def traffic_key(machine: Machine) -> Hashable:
    """What of a machine its traffic depends on."""
    paths = tuple((path.name, path.inner, path.outer) for path in machine.paths)
    return machine.name, machine.file, machine.line_bytes, machine.topology, machine.levels, paths, machine.stores


def method_key(kernel: KernelRequest) -> tuple[Hashable, ...]:
    """What of a request decides how its traffic is found."""
    if kernel.simulation is None:
        return kernel.cache, None
    values = {field.name: getattr(kernel.simulation, field.name) for field in fields(kernel.simulation)}
    return kernel.cache, tuple({**values, "indirect": tuple(sorted(kernel.simulation.indirect.items()))}.values())
