"""Active cores of a machine: what it cannot do, whatever is asked of it, and where threads and work go."""

from __future__ import annotations

from typing import Literal

from kernmodel.errors import InputError, UsageError
from kernmodel.machine.model import Machine
from kernmodel.value_types import dataclass

Schedule = Literal["static", "dynamic"]
Placement = Literal["compact", "scatter"]


@dataclass(frozen=True, slots=True)
class Spread:
    """How work and threads are spread over cores.

    Attributes:
        schedule: "static": every core has the same work, as OpenMP's static schedule gives it, so that the slowest
            decides; "dynamic": cores take work as they are ready; None: as the source says, else static.
        placement: "compact": ccNUMA domains fill one after the other; "scatter": threads go round the domains.
    """

    schedule: Schedule | None = None
    placement: Placement = "compact"

    def by_domain(self, machine: Machine, cores: int) -> tuple[int, ...]:
        """Active cores of each ccNUMA domain in use, the fullest first."""
        topology = machine.topology
        if self.placement == "scatter":
            domains = topology.numa_domains
            counts = [(cores + domains - 1 - number) // domains for number in range(domains)]
        else:
            full, rest = divmod(cores, topology.cores_per_numa_domain)
            counts = [topology.cores_per_numa_domain] * full + [rest]
        return tuple(count for count in counts if count)


SPREAD = Spread()


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
