"""What the hardware can do, as values. Read from `machine-files/*.yml` by `kernmodel.machine.load`.

All numbers are in base units (bytes, hertz, bytes per second, bytes per cycle, cycles); `Machine.sources` says where
each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

from kernmodel.machine.overlap import Overlap
from kernmodel.machine.pages import Pages
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Topology:
    """Sockets, ccNUMA domains and cores. Cores are numbered so that domain 0 fills first.

    Attributes:
        domain_memory_bytes: main memory of a ccNUMA domain; None: not known.
    """

    sockets: int
    numa_domains_per_socket: int
    cores_per_socket: int
    threads_per_core: int
    domain_memory_bytes: float | None = None

    @property
    def cores_per_numa_domain(self) -> int:
        """Cores of one ccNUMA domain."""
        return self.cores_per_socket // self.numa_domains_per_socket

    @property
    def cores(self) -> int:
        """Cores of the whole machine."""
        return self.sockets * self.cores_per_socket

    @property
    def numa_domains(self) -> int:
        """ccNUMA domains of the whole machine."""
        return self.sockets * self.numa_domains_per_socket


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """One data cache.

    Attributes:
        name: "L1", "L2", …, innermost first.
        size_bytes: size of one instance (the whole of a shared cache), = sets × ways × line.
        cores_sharing: cores that share one instance (1: private).
        filled_by: "miss": lines enter when they are loaded from further out; "victims": lines enter when the level
            inside evicts them (a victim cache: a miss in the inner level that also misses here loads past this cache).
        inclusive_of_inner: whether every line of the inner levels is here too (None: not known).
        clean_victims: of a victim cache, whether clean victims enter it as well as modified ones.
        loads_pass_by: of a victim cache, whether lines from further out reach the level inside by another way (Skylake
            SP), so that they do not occupy the path between the two.
        hashed: whether its sets are found by a hash of the address, as over the slices of a shared cache, so that no
            stride of a program meets in few of them.
        kept: (bytes, share), of a first cache, or of one that others use, too: of lines between whose uses so many
            bytes pass the share that is still there; ascending in bytes, descending in share. Nothing is kept of more
            data than the last. Empty: not measured, all up to the size and none beyond.
    """

    name: str
    size_bytes: float
    ways: int
    sets: int
    line_bytes: int
    replacement: Literal["LRU", "PLRU", "FIFO", "RR", "MRU"]
    write_back: bool
    write_allocate: bool
    cores_sharing: int
    filled_by: Literal["miss", "victims"]
    inclusive_of_inner: bool | None
    clean_victims: bool
    loads_pass_by: bool = False
    hashed: bool = False
    kept: tuple[tuple[float, float], ...] = ()

    def room(self, share: float) -> float:
        """Bytes of data of which such a share of the lines, above 0, is kept: linear between the sizes of `kept`."""
        if not self.kept:
            return self.size_bytes
        fits = self.kept[0][0]
        for (size, most), (larger, least) in pairwise(self.kept):
            if least >= share:
                fits = larger
            elif most > share:
                fits = size + (larger - size) * (most - share) / (most - least)
        return fits


RUN_STREAMS = 3
"""Streams whose runs begin together where `run_length_of_three` is measured."""
CACHE_LINES = 2
"""Lines of the last cache in the pass over a line from memory whose vectors `beside_vectors` tells apart."""


@dataclass(frozen=True, slots=True)
class TransferPath:
    """The path between two neighbouring levels of the hierarchy, cache or memory.

    Attributes:
        name: inner and outer level, "L1L2", "L2L3", "L3Mem"; the time is called `T_` + name.
        bytes_per_cycle: width in B/cy of one core (of one direction if full-duplex); None: given by measured bandwidth,
            or not known (`Machine.unknown_paths`).
        duplex: "half": loads and stores share the width (sum of both); "full": each direction has it (maximum of both).
        penalty_load, penalty_store: extra cycles per cache line loaded or stored (fitted latency penalties, mostly 0).
        run_length: (bytes, cycles per line), ascending in bytes: what a line loaded from the outer level takes in
            contiguous runs of so many bytes, each of which starts the stream anew; empty: not measured.
        run_length_of_three: the same of a line of each of `RUN_STREAMS` streams whose runs begin together.
        small_pages: cycles by which a line loaded from the outer level takes longer in pages of 4 KiB than in huge
            ones; None: not measured.
        beside_memory: cycles that a line from memory takes beside 0, 1, 2, … lines loaded from the outer level; empty:
            not measured.
        beside_last: the same of a line from the last cache, of paths before it.
        beside_vectors: of the path to memory, (vectors, cycles), ascending: by how many cycles a pass over a line from
            memory and `CACHE_LINES` of the cache before it takes longer where its instructions write so many vectors,
            than with as many as it loads; empty: not measured.
        beside_loads: by how many cycles such a pass takes longer for each cycle in which loads from the first cache
            keep the load pipes busy, beyond what their vectors cost; None: not measured.
    """

    name: str
    inner: str
    outer: str
    bytes_per_cycle: float | None
    duplex: Literal["half", "full"]
    penalty_load: float = 0.0
    penalty_store: float = 0.0
    run_length: tuple[tuple[float, float], ...] = ()
    run_length_of_three: tuple[tuple[float, float], ...] = ()
    small_pages: float | None = None
    beside_memory: tuple[float, ...] = ()
    beside_last: tuple[float, ...] = ()
    beside_vectors: tuple[tuple[float, float], ...] = ()
    beside_loads: float | None = None

    def restart_cycles(self, run_bytes: float, streams: float = 1.0) -> float:
        """Cycles that a line of a run of so many contiguous bytes takes beyond a line of the longest run measured, of
        which the bandwidth is.

        Between measured lengths the time of a whole run is linear in its bytes: its first lines cost what those of a
        shorter run cost. Shorter runs than the shortest measured are taken as that one. Several streams whose runs
        begin together wait in part at once: what they take together is linear in their number, by that of one and of
        `RUN_STREAMS`; where one alone was measured, each costs what it costs alone.
        """
        alone = _beyond_longest(self.run_length, run_bytes)
        if streams <= 1 or not self.run_length_of_three:
            return alone
        together = RUN_STREAMS * _beyond_longest(self.run_length_of_three, run_bytes)
        each = (together - alone) / (RUN_STREAMS - 1)
        return min(alone, max(0.0, alone + each * (streams - 1)) / streams)

    @property
    def time_name(self) -> str:
        """The name of this path's time in the overlap expression and in results, e.g. `T_L3Mem`."""
        return f"T_{self.name}"


def _beyond_longest(lengths: Sequence[tuple[float, float]], run_bytes: float) -> float:
    """Cycles by which a line of a run takes longer than one of the longest; see `TransferPath.restart_cycles`."""
    if not lengths or run_bytes >= lengths[-1][0]:
        return 0.0
    (low, first), plateau = lengths[0], lengths[-1][1]
    found = first
    for size, cycles in lengths:
        if low < run_bytes <= size:
            found = (first * low + (cycles * size - first * low) * (run_bytes - low) / (size - low)) / run_bytes
        low, first = size, cycles
    return max(0.0, found - plateau)


@dataclass(frozen=True, slots=True)
class StreamMix:
    """A bandwidth benchmark by its streams of equal element size; `read_write` streams count in both others.

    likwid-bench reports its bandwidth without write-allocate transfers: `write_allocate_factor` is what the true
    traffic is larger by, (r + 2w − rw) / (r + w). `access_bytes` is the size of one load or store instruction of the
    benchmark, None where it is not known.
    """

    name: str
    read: int
    write: int
    read_write: int
    flops_per_iteration: float = 0.0
    access_bytes: int | None = None

    @property
    def write_allocate_factor(self) -> float:
        """True bytes over reported bytes on a write-allocating cache: (r + 2w − rw) / (r + w)."""
        return self.true_traffic()[0]

    @property
    def read_share(self) -> float:
        """Share of loaded lines in the true traffic, write-allocates counted: (r + w − rw) / (r + 2w − rw)."""
        return self.true_traffic()[1]

    def true_traffic(self, evaded: float = 0.0) -> tuple[float, float]:
        """True bytes over reported bytes, and the share of loaded lines, with a share of the write-allocates evaded."""
        loads = self.read + (self.write - self.read_write) * (1 - evaded)
        return (loads + self.write) / (self.read + self.write), loads / (loads + self.write)

    @property
    def load_share(self) -> float:
        """Share of loads among the load and store instructions of the benchmark: r / (r + w)."""
        return self.read / (self.read + self.write)


@dataclass(frozen=True, slots=True)
class BandwidthSeries:
    """Measured bandwidth of one stream mix in one level over core counts, as reported (write-allocates not counted).

    `cores` ascend; `bytes_per_second[k]` is the sum over `cores[k]` cores.
    """

    level: str
    mix: StreamMix
    cores: tuple[int, ...]
    bytes_per_second: tuple[float, ...]
    threads_per_core: int = 1


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that can build kernels for the machine: `name` is the command family (gcc, clang, icc)."""

    name: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CoreModel:
    """What the machine declares of its core.

    Attributes:
        microarchitecture: name of the instruction table and parameter file (`kernmodel.incore`), e.g. "CLX".
        overlapping_ports: ports (and pipelines like "0DV") whose time overlaps with data transfers: T_OL.
        non_overlapping_ports: ports whose time does not (on Intel the load data paths "2D", "3D"): T_nOL.
        flop_per_cycle: peak FLOP/cy of a core by precision ("DP", "SP") and operation ("ADD", "MUL", "FMA", "total").
        load_bytes_per_cycle, store_bytes_per_cycle: bytes that a core can at most load from its first cache and store
            to it in a cycle, both in the same one; None: not given.
    """

    microarchitecture: str
    overlapping_ports: tuple[str, ...]
    non_overlapping_ports: tuple[str, ...]
    flop_per_cycle: Mapping[str, Mapping[str, float]]
    load_bytes_per_cycle: float | None = None
    store_bytes_per_cycle: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryChannels:
    """How the memory of one socket is attached; what it can move in theory follows.

    Attributes:
        channels: populated channels of a socket.
        bytes_per_transfer: width of one channel.
        transfers_per_second: of one channel (two each clock of DDR memory).
    """

    channels: int
    bytes_per_transfer: float
    transfers_per_second: float

    @property
    def bytes_per_second(self) -> float:
        """Theoretical bandwidth of the memory of one socket."""
        return self.channels * self.bytes_per_transfer * self.transfers_per_second


@dataclass(frozen=True, slots=True)
class MeasuredPeak:
    """Measured FLOP/s of `cores` cores that execute floating-point instructions of one kind only.

    `operation` is "ADD", "MUL", "FMA", "DIV" or "SQRT", `precision` "DP" or "SP", `width_bytes` the bytes of a register
    (of one element: scalar instructions).
    """

    operation: str
    precision: str
    width_bytes: int
    cores: int
    flop_per_second: float


@dataclass(frozen=True, slots=True)
class StoreBehaviour:
    """What the cores can do about write-allocates.

    Attributes:
        streaming: whether there are non-temporal stores that go to memory past the caches.
        evasion: "never"; "always": stores that write whole lines never load them; "near-saturation": only when the
            memory is busy (Ice Lake SP's SpecI2M); "instruction": by a special instruction in the code (A64FX's DC
            ZVA); "unknown".
        evades_from_cores: of "near-saturation", active cores of a ccNUMA domain from which all are evaded; None: not
            known.
    """

    streaming: bool = True
    evasion: Literal["never", "always", "near-saturation", "instruction", "unknown"] = "never"
    evades_from_cores: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedStreams:
    """How many streams that miss the first cache one core follows, and what more cost, as was measured.

    Attributes:
        followed: that it follows, some of them from memory and others from caches.
        longer: (lines, cycles), ascending: by how much a pass over a few streams more takes longer, of which so many
            are loaded from memory, than with as many lines of fewer streams.
    """

    followed: int
    longer: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: everything the models need to know of the hardware.

    Attributes:
        name: short name, the stem of the file ("clx").
        title: the processor as sold, with the mode it was measured in.
        isa: instruction set ("x86-64").
        clock_hz: the core clock all cycles refer to.
        levels: caches, innermost first.
        paths: len(levels) transfer paths, innermost first; the last one leads to memory.
        overlap: how the times compose: an expression over T_OL, T_nOL and the paths' times.
        bandwidths: all measured series.
        sources: where figures come from, by the dotted path of the section in the file ("caches.L2", "bandwidths").
        file: the file it was read from.
        sha256: hash of the file's text, for provenance.
        stores: what the cores can do about write-allocates.
        memory: the memory channels of a socket, None: not given.
        peaks: measured floating-point performance, empty: not given.
        pages: in which pages the data lay of which the bandwidths were measured; None: not known.
        from_caches: share of the lines that caches served where one ccNUMA domain's bandwidth of memory was measured;
            None: not given.
        undecided: other expressions that experiments do not tell apart from `overlap`.
        streams: how many streams a core follows; None: not measured on this machine.
    """

    name: str
    title: str
    vendor: str
    isa: str
    clock_hz: float
    line_bytes: int
    topology: Topology
    core: CoreModel
    levels: tuple[CacheLevel, ...]
    paths: tuple[TransferPath, ...]
    overlap: Overlap
    bandwidths: tuple[BandwidthSeries, ...]
    compilers: tuple[Compiler, ...]
    sources: Mapping[str, str]
    file: str
    sha256: str
    stores: StoreBehaviour = StoreBehaviour()
    memory: MemoryChannels | None = None
    peaks: tuple[MeasuredPeak, ...] = ()
    pages: Pages | None = None
    from_caches: float | None = None
    undecided: tuple[Overlap, ...] = ()
    streams: FollowedStreams | None = None

    @property
    def unknown_paths(self) -> tuple[str, ...]:
        """The paths that have neither a width nor a measured bandwidth of the level beyond: their time is not known."""
        measured = {series.level for series in self.bandwidths if series.threads_per_core == 1}
        return tuple(path.name for path in self.paths if path.bytes_per_cycle is None and path.outer not in measured)

    @property
    def residence_levels(self) -> tuple[str, ...]:
        """The levels a data set can reside in: the caches and "Mem"."""
        return (*(level.name for level in self.levels), "Mem")

    def beyond(self, index: int) -> CacheLevel | None:
        """The cache after the one with this index, at the outer end of its path; None where that is memory."""
        return self.levels[index + 1] if index + 1 < len(self.levels) else None

    def level(self, name: str) -> CacheLevel:
        """The cache called `name` (KeyError if there is none)."""
        for level in self.levels:
            if level.name == name:
                return level
        raise KeyError(name)
