"""What the first cache keeps of lines by how much passes before they come again.

Data of the second cache are walked round, and each pass loads a line and the one that was loaded some distance before.
In between pass as many new lines, and as many old ones that are loaded for the last time: twice the distance. The time
of a pass says how many of the old ones the first cache still had. It gives up lines before it is full where its
replacement only approximates the least recently used line, and for lines that are fetched ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.host import Buffer, Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import PassedPoint

_PASSED = (0.25, 0.4375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 2.5)
"""What passes over the size of the cache: first little, so that all lines are there, last more than it holds."""
_POSITION, _TOTAL = 63, 62
_SEGMENT_BYTES = 1 << 15
_TOLD = 1.2
"""By how much passes whose lines all miss have to take longer than those whose lines are all there."""


def measure_first_cache(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> tuple[PassedPoint, ...]:
    """Cycles of a pass by the bytes that pass before its second line comes again; none without a second cache.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    first, *others = topology.caches
    total = level_sizes(topology).get(others[0].name) if others else None
    if total is None:
        return ()
    found = []
    before = round(_PASSED[-1] * first.size_bytes / 2) // LINE * LINE
    harness.buffer(0, Buffer(total + before + LINE))
    for share in _PASSED:
        passed = round(share * first.size_bytes / 2) // LINE * LINE
        progress(f"lines of {first.name} behind {2 * passed / 1024:g} KiB")
        harness.value(_POSITION, 0)
        harness.value(_TOTAL, total)
        harness.load(function(before, passed))
        found.append(PassedPoint(2 * passed, cycles_per_line(harness, total, _SEGMENT_BYTES, effort)))
    return tuple(found)


def function(before: int, distance: int) -> bytes:
    """The loop: a line, and the one `distance` bytes before it; the walk begins `before` bytes into the buffer."""
    width = x86.vector_bytes()
    register, move = x86.vector_move(width)
    lines = [
        f"mov r15, [rdx + {8 * _POSITION}]",
        "mov r8, [rdx]",
        "add r8, r15",
        "xor eax, eax",
        ".p2align 6",
        "9:",
        *(f"{move} {register}{at // width}, [r8 + rax + {before + at}]" for at in range(0, LINE, width)),
        *(f"{move} {register}{8 + at // width}, [r8 + rax + {before - distance + at}]" for at in range(0, LINE, width)),
        f"add rax, {LINE}",
        "cmp rax, rsi",
        "jb 9b",
    ]
    return x86.function("\n".join([*lines, *walking_on(_POSITION, _TOTAL)]), set_up=False)


def kept_lines(points: Sequence[PassedPoint]) -> list[tuple[int, float]]:
    """The share of lines that are kept where so many bytes pass, of more no larger one; empty where too little is
    confirmed, or where lines of the second cache take no longer."""
    if not points or not points[0].cycles.confirmed or not points[-1].cycles.confirmed:
        return []
    there, missed = points[0].cycles.value, points[-1].cycles.value
    if missed < _TOLD * there:
        return []
    found, most = list[tuple[int, float]](), 1.0
    for point in points[1:-1]:
        if point.cycles.confirmed:
            most = max(0.0, min(most, 1 - (point.cycles.value - there) / (missed - there)))
            found.append((point.passed_bytes, most))
    return found
