"""Starting a stream: cycles per cache line of loads from memory in contiguous runs of so many bytes.

A large set is walked in runs of one length, each block once before any comes again, in an order in which no neighbours
follow one another (a linear congruential sequence of full period modulo a power of two: Hull, Dobell, SIAM Review 4(3),
1962). Addresses are known ahead of the loads, as those of rows are. Several streams walk a part of the set each, in
turn line by line, and begin their runs together.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from kernmodel.machine.model import RUN_STREAMS
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, level_sizes
from kernmodel.measure.blocks import doubts
from kernmodel.measure.host import Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import RunPoint, Runs
from kernmodel.measure.samples import UNROLLED_TOLERANCE

EFFORT = Effort(samples=60, rounds=3, seconds=5.0, issue=UNROLLED_TOLERANCE)
RUN_BYTES = (512, 1024, 4096, 16384, 65536, 262144)
"""Lengths of runs; the longest counts as a stream without an end."""
STREAMS = (1, RUN_STREAMS)
"""How many streams begin their runs together."""
_FACTOR, _INCREMENT = 0x5851F42D, 0x14057B7F
"""One more than a multiple of four, and odd: then the sequence meets every block."""
_POSITION = 63
_CALL_BYTES = 1 << 20
_UNROLLED = 4
_APART = 5 * 4096 + 8 * LINE
"""Bytes by which parts of the set are further apart than they are long, so that streams do not share sets of caches."""


def measure_runs(
    harness: Harness,
    topology: HostTopology,
    *,
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> Runs:
    """Cycles per line by length of the run; none where there is not enough memory.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    wanted = level_sizes(topology).get("Mem")
    if wanted is None:
        return Runs((), ())
    total = 1 << (wanted - 1).bit_length() if 2 * wanted < topology.memory_bytes / 2 else 1 << wanted.bit_length() - 1
    harness.buffer(0, Buffer(total))
    points, notes = [], []
    for streams, size in product(STREAMS, RUN_BYTES):
        what = f"runs of {size} B" + (f" of {streams} streams" if streams > 1 else "")
        progress(what)
        harness.value(_POSITION, 0)
        part = total if streams == 1 else total // (1 << streams.bit_length())
        harness.load(function(size, part // size, streams))
        runs = max(1, _CALL_BYTES // size // streams)
        lines = runs * streams * size // LINE
        figure = harness.figure([Case(1, runs)], lambda ends, lines=lines: ends[0] / lines, effort)  # type: ignore[misc]
        notes += doubts(figure, what)
        points.append(RunPoint(size, streams, figure))
    return Runs(tuple(points), tuple(notes))


def function(size: int, blocks: int, streams: int = 1) -> bytes:
    """The loop over as many blocks of `size` bytes as the argument says, of `blocks` (both powers of two), in each of
    as many parts of the set as there are streams, one behind the other and some pages apart."""
    width = min(x86.vector_bytes(), 32)
    register, move = ("ymm", "vmovups") if width == 32 else ("xmm", "movups")
    places = product(range(0, _UNROLLED * LINE, LINE), range(streams), range(0, LINE, width))
    at = [stream * (size * blocks + _APART) + line + within for line, stream, within in places]
    loads = [f"{move} {register}{number % 8}, [rax + {place}]" for number, place in enumerate(at)]
    lines = [
        "mov r8, [rdx]",
        f"mov r15, [rdx + {8 * _POSITION}]",
        "mov rcx, rsi",
        f"mov r10, {_FACTOR}",
        "9:",
        "imul r15, r10",
        f"add r15, {_INCREMENT}",
        f"and r15, {blocks - 1}",
        "mov rax, r15",
        f"shl rax, {size.bit_length() - 1}",
        "add rax, r8",
        f"lea r9, [rax + {size}]",
        "8:",
        *loads,
        f"add rax, {_UNROLLED * LINE}",
        "cmp rax, r9",
        "jb 8b",
        "dec rcx",
        "jnz 9b",
        f"mov [rdx + {8 * _POSITION}], r15",
    ]
    return x86.function("\n".join(lines), set_up=False)
