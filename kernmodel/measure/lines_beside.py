"""Lines from memory beside lines from a cache: how much longer they take, on one core, beside 1, 2, … of them.

Each pass of the measured loop loads one line of a large buffer and one line of each of k streams, which are walked
round, as a stencil loads one plane from memory and others from a cache. Memory's line alone waits for its latency
divided by the lines that are on their way; what lines of caches take of that no stream of one level shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.composition import inner_bytes
from kernmodel.measure.host import APART, Buffer, Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import LinesBeside

MOST = 8
"""Lines beside one from memory that are measured at most."""
_OUTER, _INNER, _POSITION, _TOTAL = 0, 1, 63, 62
_SEGMENT_BYTES = 1 << 18
_SKEW_BYTES = 3 * LINE
"""Between streams, so that they do not begin in the same set."""


def measure_lines_beside(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> tuple[LinesBeside, ...]:
    """Cycles of a line from memory beside 0, 1, … lines of each cache beyond the first; none without enough memory.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes = level_sizes(topology)
    if "Mem" not in sizes:
        return ()
    found = []
    for level in topology.level_names[1:-1]:
        for count in range(MOST + 1) if level in sizes else ():
            progress(f"{count} lines of {level} beside one of memory")
            found.append(timed(harness, sizes, "Mem", level, count, effort))
    return tuple(found)


def timed(
    harness: Harness, sizes: Mapping[str, int], outer: str, level: str, count: int, effort: Effort
) -> LinesBeside:
    """Cycles of a line of `outer` beside `count` lines of streams that lie in `level`.

    Args:
        sizes: bytes of data that lie in each level.
    """
    total, each = sizes[outer] // 1024 * 1024, _stream_bytes(sizes[level], count)
    harness.buffer(_OUTER, Buffer(total + LINE))
    harness.buffer(_INNER, Buffer((each + _SKEW_BYTES) * max(count, 1) + LINE, APART))
    harness.value(_POSITION, 0)
    harness.load(function(each, count))
    segment = _SEGMENT_BYTES if outer == "Mem" else None
    return LinesBeside(level, count, cycles_per_line(harness, total, segment, effort))


def _stream_bytes(size: int, count: int) -> int:
    """Of each stream, a power of two: all together lie in their level, and in no cache inside it."""
    return 1 << (inner_bytes(size) // max(count, 1)).bit_length() - 1


def function(each: int, streams: int) -> bytes:
    """The loop: a line of the outer buffer and of `streams` streams of `each` bytes, a power of two."""
    width = min(x86.vector_bytes(), 32)
    register, move = ("ymm", "vmovups") if width == 32 else ("xmm", "movups")
    lines = [
        f"mov r15, [rdx + {8 * _POSITION}]",
        f"mov r8, [rdx + {8 * _OUTER}]",
        "add r8, r15",
        f"mov r9, [rdx + {8 * _INNER}]",
        "xor eax, eax",
        "xor ebx, ebx",
        ".p2align 6",
        "9:",
    ]
    begins = ["r8 + rax", *(f"r9 + rbx + {number * (each + _SKEW_BYTES)}" for number in range(streams))]
    for begin in begins:
        lines += [f"{move} {register}{12 + at // width % 2}, [{begin} + {at}]" for at in range(0, LINE, width)]
    lines += [f"add rbx, {LINE}", f"and rbx, {each - 1}", f"add rax, {LINE}", "cmp rax, rsi", "jb 9b"]
    return x86.function("\n".join([*lines, *walking_on(_POSITION, _TOTAL)]), set_up=False)
