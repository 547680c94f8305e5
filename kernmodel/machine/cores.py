"""What a machine cannot do, whatever is asked of it."""

from __future__ import annotations

from kernmodel.errors import InputError, UsageError
from kernmodel.machine.model import Machine


def check_cores(machine: Machine, cores: int) -> None:
    """Refuse a number of cores that the machine does not have.

    Raises:
        UsageError: `cores` is below 1 or above the machine's.
    """
    available = machine.topology.cores
    if not 1 <= cores <= available:
        todo = f"give 1 to {available}"
        raise UsageError(f"{cores} cores, but {machine.name} has {available}", where="--cores", todo=todo)


def check_caches(machine: Machine) -> None:
    """Refuse caches that no way to the traffic covers.

    Raises:
        InputError: caches with cache lines of different length.
    """
    if any(level.line_bytes != machine.line_bytes for level in machine.levels):
        raise InputError(
            "caches differ in the length of a cache line",
            where=machine.file,
            todo="give all levels the same line length",
        )
