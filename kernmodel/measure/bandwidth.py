"""Bandwidths of one core: loops that load and store streams, by level of the data, stream mix and register width.

Lines of all streams are counted as likwid-bench counts them: bytes of loads and stores, write-allocates left out. In
caches two calls over different lengths are timed and their difference counts. Sets in memory are walked on in segments,
call after call, so that no part is cached when its turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernmodel.errors import InputError, MeasurementError, Note
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import doubts
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness, repetitions
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import BandwidthPoint, Bandwidths
from kernmodel.measure.samples import UNROLLED_TOLERANCE, Figure
from kernmodel.value_types import dataclass

EFFORT = Effort(samples=60, rounds=3, seconds=6.0, issue=UNROLLED_TOLERANCE)
LINE = 64
_POSITION, _TOTAL = 63, 62
_SCALAR = 8
_ADDRESS = ("r8", "r9", "r10", "r11", "r12", "r13", "r14", "rcx", "rbp")
_UNROLLED = 4
"""Cache lines of each stream that a pass of the loop moves."""
_SEGMENT_BYTES = 1 << 20
_MOST_MEMORY = 1 << 30
_REGISTER = {64: "zmm", 32: "ymm", 16: "xmm", 8: "xmm"}
"""By bytes of an access; those of 8 are scalar."""
ACCESS_BYTES = tuple(sorted(_REGISTER))
"""Bytes of loads and stores that are measured."""


@dataclass(frozen=True, slots=True)
class Mix:
    """A stream mix.

    Attributes:
        read, write, read_write: streams that are read, written, and both of it (counted in each).
        flops: per iteration; streaming: whether stores go past the caches.
    """

    name: str
    read: int
    write: int
    read_write: int = 0
    flops: int = 0
    streaming: bool = False

    @property
    def arrays(self) -> int:
        """Streams in memory."""
        return self.read + self.write - self.read_write

    @property
    def accesses(self) -> int:
        """Loads and stores of one element each."""
        return self.read + self.write


MIXES = {
    mix.name: mix
    for mix in (
        Mix("load", 1, 0),
        Mix("store", 0, 1),
        Mix("copy", 1, 1),
        Mix("update", 1, 1, 1, 1),
        Mix("daxpy", 2, 1, 1, 2),
        Mix("stream", 2, 1, 0, 2),
        Mix("triad", 3, 1, 0, 2),
        Mix("load4_store", 4, 1),
        Mix("load8_store", 8, 1),
        Mix("store_nt", 0, 1, streaming=True),
        Mix("copy_nt", 1, 1, streaming=True),
    )
}


_VARYING = 0.2
"""How far the middle half of rounds may be apart of what others use, too: what they take is there when a program runs,
and the spread is told."""
PRIVATE = ("L1", "L2")
"""Caches of one core; a guest is not always told who shares the others."""


def level_sizes(topology: HostTopology) -> dict[str, int]:
    """Bytes of all streams together for each level: well inside it, and well beyond the one before.

    A shared outermost cache is others' too: what lies in it is a few times the cache before, at most a quarter of it.
    """
    found: dict[str, int] = {}
    inner = 0
    for cache in topology.caches:
        own = cache.size_bytes // max(1, cache.shared_by)
        size = own // 2 if cache.level <= 2 else min(4 * inner, cache.size_bytes // 4)
        if size > 1.5 * inner:
            found[cache.name] = size
        inner = cache.size_bytes
    wanted = min(3 * topology.last_level.size_bytes, _MOST_MEMORY)
    if topology.memory_bytes > 2 * wanted and wanted >= 2 * topology.last_level.size_bytes:
        found["Mem"] = wanted
    return found


def measure_bandwidths(
    harness: Harness,
    topology: HostTopology,
    *,
    levels: Sequence[str] = (),
    mixes: Sequence[str] = (),
    widths: Sequence[int] = (),
    huge: bool = True,
    twice: bool = True,
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> Bandwidths:
    """Bandwidths of one core.

    Args:
        levels, mixes, widths: which; empty: all levels, all mixes, the widest registers.
        huge: whether to ask for huge pages.
        twice: whether what no two rounds confirm is tried once more when all others are done: neighbours come and go.

    Raises:
        InputError: this host has no such level; MeasurementError: it does not let it be measured.
    """
    sizes = level_sizes(topology)
    if strange := [level for level in levels if level not in topology.level_names]:
        todo = f"choose {', '.join(topology.level_names)}"
        raise InputError(f"this host has no level {strange[0]}", where="--level", todo=todo)
    wanted = [
        (level, name, width)
        for level in levels or tuple(sizes)
        for name in mixes or tuple(MIXES)
        for width in widths or (x86.vector_bytes(),)
    ]
    missing = dict.fromkeys(level for level, _, _ in wanted if level not in sizes)
    notes = [
        Note("level-left-out", f"{level}: there is not enough memory or no such cache to measure it")
        for level in missing
    ]
    found: dict[tuple[str, str, int], BandwidthPoint] = {}
    got = True
    for again in (False, True) if twice else (False,):
        for key in wanted:
            level, name, width = key
            if level in missing or (key in found and found[key].cycles_per_line.confirmed):
                continue
            progress(f"{level} {name} {width} B{', again' if again else ''}")
            got &= place_streams(harness, MIXES[name], sizes[level], huge=huge)
            asked = effort if level in PRIVATE else effort.beside_others(_VARYING)
            found[key] = measured_point(harness, MIXES[name], level, sizes[level], width, asked)
    points = list(found.values())
    for point in points:
        notes += doubts(point.cycles_per_line, f"{point.level} {point.mix}")
    if huge and not got:
        notes.append(Note("no-huge-pages", "huge pages were asked for and not all got: more time goes into the TLB"))
    return Bandwidths(tuple(points), harness.clock_hz(), huge and got, tuple(notes))


def place_streams(harness: Harness, mix: Mix, total: int, *, huge: bool) -> bool:
    """Make the streams; whether they lie in huge pages where these were asked for."""
    each = _each(mix, total)
    placed = [
        harness.buffer(number, Buffer(each + LINE * _UNROLLED, number * APART, huge)) for number in range(mix.arrays)
    ]
    harness.value(_POSITION, 0)
    harness.value(_TOTAL, each)
    return not huge or all(one.huge_bytes >= each // 2 for one in placed)


def _each(mix: Mix, total: int) -> int:
    """Bytes of one stream: whole passes."""
    step = 2 * LINE * _UNROLLED
    return max(step, total // mix.arrays // step * step)


def measured_point(harness: Harness, mix: Mix, level: str, total: int, width: int, effort: Effort) -> BandwidthPoint:
    """The streams of a mix over so many bytes in all, which `place_streams` made."""
    each = _each(mix, total)
    harness.load(function(mix, width))
    segment = min(each, max(_SEGMENT_BYTES // mix.arrays // 512 * 512, 512)) if level == "Mem" else None
    return point_of(mix, level, width, each * mix.arrays, cycles_per_line(harness, each, segment, effort))


def point_of(mix: Mix, level: str, width: int, total: int, cycles: Figure) -> BandwidthPoint:
    """A point by its cycles per line of all streams."""
    return BandwidthPoint(mix.name, level, width, total, cycles, cycles.inverse(LINE * mix.accesses))


def mix_name(point: BandwidthPoint) -> str:
    """The name of the mix; with its accesses where they are not the widest ("load-8B")."""
    return point.mix if point.width_bytes == x86.vector_bytes() else f"{point.mix}-{point.width_bytes}B"


def cycles_per_line(harness: Harness, each: int, segment: int | None, effort: Effort) -> Figure:
    """Cycles in which the loaded loop advances all its streams by a cache line.

    Args:
        each: bytes of a stream; segment: of those the ones that a call walks on by, None: two calls from the beginning
            on are compared, over half of them and over all.
    """
    if segment is not None:
        harness.value(_TOTAL, each)
        return harness.figure([Case(1, segment)], lambda ends: ends[0] / (segment / LINE), effort)
    harness.value(_TOTAL, 0)
    half = each // 2 // (LINE * _UNROLLED) * (LINE * _UNROLLED)
    times = repetitions(harness.call_cycles([Case(1, half)]))
    cases = [Case(times, half), Case(times, 2 * half)]
    return harness.figure(cases, lambda ends: (ends[1] - ends[0]) / (times * half / LINE), effort)


def function(mix: Mix, width: int) -> bytes:
    """The loop of a mix with accesses of this width.

    Raises:
        MeasurementError: this host has no such registers, or streaming stores are not so narrow.
    """
    if mix.streaming and width == _SCALAR:
        raise MeasurementError("scalar stores from vector registers do not stream", todo="choose 16, 32 or 64")
    if width not in _REGISTER or width > x86.vector_bytes():
        raise MeasurementError(f"this host has no registers of {width} bytes", todo="choose 8, 16, 32 or 64")
    register = _REGISTER[width]
    lines = [f"mov r15, [rdx + {8 * _POSITION}]"]
    for number in range(mix.arrays):
        lines += [f"mov {_ADDRESS[number]}, [rdx + {8 * number}]", f"add {_ADDRESS[number]}, r15"]
    lines += ["xor eax, eax", ".p2align 6", "9:"]
    for at in range(0, _UNROLLED * LINE, width):
        lines += _element(mix, register, at, number=at // width % 4, scalar=width == _SCALAR)
    lines += [f"add rax, {_UNROLLED * LINE}", "cmp rax, rsi", "jb 9b"]
    lines += walking_on(_POSITION, _TOTAL)
    if mix.streaming:
        lines.append("sfence")
    return x86.function("\n".join(lines), set_up=False)


def walking_on(position: int, total: int) -> list[str]:
    """Lines that let the next call go on behind this one, or at the beginning where what is left is too short: the
    places of the position, which r15 holds, and of the bytes of a stream among the buffers."""
    return [
        "add r15, rsi",
        "lea rbx, [r15 + rsi]",
        "xor eax, eax",
        f"cmp rbx, [rdx + {8 * total}]",
        "cmova r15, rax",
        f"mov [rdx + {8 * position}], r15",
    ]


def _element(mix: Mix, register: str, at: int, number: int, *, scalar: bool) -> list[str]:
    """Instructions of one access of each stream at this offset."""
    avx = x86.vector_bytes() > 16
    v = "v" if avx else ""
    one, other = f"{register}{2 * number}", f"{register}{2 * number + 1}"
    places = [f"[{address} + rax + {at}]" for address in _ADDRESS]
    reads = places[: mix.read] if mix.read_write or not mix.write else places[1 : 1 + mix.read]
    move, add = ("movsd", "addsd") if scalar else ("movups", "addpd")
    lines = [f"{v}{move} {one}, {place}" for place in reads[:1]]
    for place in reads[1:]:
        lines += [f"{v}{move} {other}, {place}", f"v{add} {one}, {one}, {other}" if avx else f"{add} {one}, {other}"]
    if mix.write:
        lines.append(f"{v}{'movntps' if mix.streaming else move} {places[0]}, {one}")
    return lines
