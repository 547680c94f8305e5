"""Figures of micro-benchmarks, whichever tool measured them."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.errors import Note
from kernmodel.machine.model import MeasuredPeak
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Streams:
    """The streams of a bandwidth benchmark, as a stream mix of machine files has them.

    Attributes:
        name: by which the mix is called in the machine file; benchmark: which program of which tool it is.
        read, write, read_write: streams that are read, written, and both of it (counted in each).
        flops: per iteration; access_bytes: of a load or store, None: not known.
    """

    name: str
    benchmark: str
    read: int
    write: int
    read_write: int = 0
    flops: float = 0.0
    access_bytes: int | None = None

    @property
    def facts(self) -> Mapping[str, str]:
        """The mix as it stands in a machine file."""
        row = {"read": str(self.read), "write": str(self.write)}
        row |= {"read_write": str(self.read_write)} if self.read_write else {}
        row |= {"flops": f"{self.flops:g}"} if self.flops else {}
        row |= {"access": f"{self.access_bytes} B"} if self.access_bytes else {}
        return {**row, "benchmark": self.benchmark}


@dataclass(frozen=True, slots=True)
class MeasuredBandwidth:
    """One run.

    Attributes:
        level: where the data lay, "" where only their size is known: `bytes_per_core` of each of the `cores`.
        bytes_per_second: of all cores together, write-allocates not counted.
    """

    streams: Streams
    cores: int
    bytes_per_second: float
    level: str = ""
    bytes_per_core: float = 0.0


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """What a file of results says.

    Attributes:
        tool: that wrote it; file: its path.
        cache_kib: sizes of caches that the tool went by, by level; empty: it does not say.
        notes: what of the file is left out, and why.
    """

    tool: str
    file: str
    bandwidths: tuple[MeasuredBandwidth, ...]
    peaks: tuple[MeasuredPeak, ...]
    cache_kib: Mapping[str, float]
    notes: tuple[Note, ...]
