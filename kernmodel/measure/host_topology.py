"""What Linux tells of this host: processors, caches, memory. Nothing is measured here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kernmodel.errors import MeasurementError
from kernmodel.value_types import dataclass

_CPU = Path("/sys/devices/system/cpu")
_KIB = 1024


@dataclass(frozen=True, slots=True)
class HostCache:
    """A data cache as the system tells of it.

    Attributes:
        level: 1 for L1; size_bytes, ways, sets, line_bytes: of one instance, 0 where unknown.
        shared_by: processors of this system that share an instance.
    """

    level: int
    size_bytes: int
    ways: int
    sets: int
    line_bytes: int
    shared_by: int

    @property
    def name(self) -> str:
        """As machine files name it."""
        return f"L{self.level}"


@dataclass(frozen=True, slots=True)
class HostTopology:
    """Processors of this host.

    Attributes:
        model: name of the processor; vendor: as the processor spells it; family, number: of CPUID.
        features: extensions as Linux names them; hypervisor: whether this is a guest.
        sockets, domains: of the system; cores: physical; threads_per_core.
        caches: of the first processor, innermost first; memory_bytes: free for use now.
    """

    model: str
    vendor: str
    family: int
    number: int
    features: frozenset[str]
    hypervisor: bool
    sockets: int
    domains: int
    cores: int
    threads_per_core: int
    caches: tuple[HostCache, ...]
    memory_bytes: int

    @property
    def last_level(self) -> HostCache:
        """The outermost cache."""
        return self.caches[-1]

    @property
    def private_bytes(self) -> int:
        """Bytes of data up to which they lie in caches of one core: a guest is not told who shares the others."""
        return max(cache.size_bytes for cache in self.caches if cache.level <= 2)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Where data may lie, innermost first: the caches, and "Mem"."""
        return (*(cache.name for cache in self.caches), "Mem")


def host_topology() -> HostTopology:
    """The topology of this host, by /sys and /proc.

    Raises:
        MeasurementError: the system does not tell of its caches.
    """
    info = first_processor()
    features = features_of(info)
    processors = sorted(os.sched_getaffinity(0))
    places = [_place(number) for number in processors]
    caches = _caches(processors[0])
    if not caches:
        raise MeasurementError(
            "this system tells nothing of its caches (/sys/devices/system/cpu)", todo="measure on bare metal"
        )
    cores = len(set(places))
    return HostTopology(
        model=re.sub(r"\s+", " ", info.get("model name", "unknown processor")),
        vendor={"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}.get(info.get("vendor_id", ""), "unknown"),
        family=int(info.get("cpu family", "0")),
        number=int(info.get("model", "0")),
        features=features,
        hypervisor="hypervisor" in features,
        sockets=len({socket for socket, _ in places}),
        domains=max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
        cores=cores,
        threads_per_core=max(1, len(processors) // cores),
        caches=caches,
        memory_bytes=_memory(),
    )


def first_processor() -> Mapping[str, str]:
    """What Linux says of the first processor, by its own names; empty where it says nothing."""
    with suppress(OSError):
        block = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
        return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in block.splitlines())}
    return {}


def features_of(processor: Mapping[str, str]) -> frozenset[str]:
    """The extensions of a processor as Linux names them (avx2, fma, avx512f; asimd)."""
    return frozenset(processor.get("flags", processor.get("Features", "")).split())


def _place(number: int) -> tuple[str, str]:
    """Socket and core of a processor; of one that the system says nothing of, a core of its own."""
    folder = _CPU / f"cpu{number}" / "topology"
    return _text(folder / "physical_package_id") or "0", _text(folder / "core_id") or f"processor {number}"


def one_processor_a_core() -> tuple[int, ...]:
    """The first processor of every core of the first socket that this process may use."""
    places = {number: _place(number) for number in sorted(os.sched_getaffinity(0))}
    first = next(iter(places.values()))[0]
    found: dict[tuple[str, str], int] = {}
    for number, place in places.items():
        found.setdefault(place, number)
    return tuple(number for place, number in found.items() if place[0] == first)


def _caches(number: int) -> tuple[HostCache, ...]:
    found = {}
    for folder in sorted((_CPU / f"cpu{number}" / "cache").glob("index*")):
        if _text(folder / "type") not in ("Data", "Unified"):
            continue
        level, line = _number(folder / "level"), _number(folder / "coherency_line_size")
        ways, sets = _number(folder / "ways_of_associativity"), _number(folder / "number_of_sets")
        size = _size(_text(folder / "size")) or ways * sets * line
        shared = len(_listed(_text(folder / "shared_cpu_list")) & os.sched_getaffinity(0)) or 1
        if level and size:
            found[level] = HostCache(level, size, ways, sets, line or 64, shared)
    return tuple(found[level] for level in sorted(found))


def _listed(text: str) -> set[int]:
    """The numbers of a list such as "0-3,8"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _KIB ** "_KMG".index(match[2] or "_") if match else 0


def _number(path: Path) -> int:
    text = _text(path)
    return int(text) if text.isdecimal() else 0


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace").strip()
    return ""


def _memory() -> int:
    """Bytes that a process may take now: what the host has, what its control group leaves (version 2, as containers
    are limited), and the limit of address space (`ulimit -v`)."""
    import resource

    rows = dict(line.split(":", 1) for line in _text(Path("/proc/meminfo")).splitlines() if ":" in line)
    free = [int(rows["MemAvailable"].split()[0]) * _KIB if "MemAvailable" in rows else 0]
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        free.append(address_space)
    group = next((row[3:] for row in _text(Path("/proc/self/cgroup")).splitlines() if row.startswith("0::")), "/")
    folder = Path("/sys/fs/cgroup") / group.strip("/")
    most, taken = (_text(folder / name).strip() for name in ("memory.max", "memory.current"))
    if most.isdigit() and taken.isdigit():
        free.append(max(0, int(most) - int(taken)))
    return min(free)
