"""Lines from memory, or from the last cache, beside lines from a cache before it: how much longer they take, on one
core, beside 1, 2, … of them, and where these are of more streams than the core follows.

Each pass of the measured loop loads one line of a large buffer and one line of each of k streams, which are walked
round, as a stencil loads one plane from memory and others from a cache. Memory's line alone waits for its latency
divided by the lines that are on their way; what lines of caches take of that no stream of one level shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernmodel.machine.model import CACHE_LINES
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.composition import TARGETS, arithmetic, inner_bytes
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import LinesBeside, LoadsBeside, ManyStreams, StreamPass, VectorsBeside
from kernmodel.measure.samples import Figure

MOST = 8
"""Lines beside one from memory that are measured at most."""
_OUTER, _INNER, _POSITION, _TOTAL = 0, 1, 63, 62
_SEGMENT_BYTES = 1 << 18
_SKEW_BYTES = 3 * LINE
"""Between streams, so that they do not begin in the same set."""


def measure_lines_beside(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> tuple[LinesBeside, ...]:
    """Cycles of a line from memory beside 0, 1, … lines of each cache beyond the first, and of one from the last cache
    beside those of caches before; none of levels that hold too little here.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, (_, *caches, memory) = level_sizes(topology), topology.level_names
    pairs = [(memory, level) for level in caches] + [(caches[-1], level) for level in caches[:-1]]
    found = []
    for outer, level in pairs:
        for count in range(MOST + 1) if {outer, level} <= sizes.keys() else ():
            progress(f"{count} lines of {level} beside one of {'memory' if outer == memory else outer}")
            found.append(timed(harness, sizes, outer, level, count, effort))
    return tuple(found)


def measure_vectors_beside(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> tuple[VectorsBeside, ...]:
    """Cycles of a pass over a line from memory and lines of the last cache by the vectors that it writes: those that it
    loads, and results of independent arithmetic between the loads, from none upward; none without enough memory.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, last = level_sizes(topology), topology.last_level.name
    if not {"Mem", last} <= sizes.keys():
        return ()
    loaded = (CACHE_LINES + 1) * LINE // x86.vector_bytes()
    found = []
    for computed in _COMPUTED:
        progress(f"{loaded + computed} vectors beside lines of {last} and memory")
        pass_of = timed(harness, sizes, "Mem", last, CACHE_LINES, effort, computed=computed)
        found.append(VectorsBeside(loaded + computed, pass_of.cycles))
    return tuple(found)


def measure_loads_beside(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> tuple[LoadsBeside, ...]:
    """Cycles of the same pass with loads of one line of the first cache among the others; none without enough memory.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, last = level_sizes(topology), topology.last_level.name
    if not {"Mem", last} <= sizes.keys():
        return ()
    found = []
    for loads in _HITS:
        progress(f"{loads} loads of the first cache beside lines of {last} and memory")
        pass_of = timed(harness, sizes, "Mem", last, CACHE_LINES, effort, hits=loads)
        found.append(LoadsBeside(loads, pass_of.cycles))
    return tuple(found)


_HITS = (8, 12, 16, 24)
_COMPUTED = (0, 2, 4, 8, 12, 16, 24, 32, 40)
"""Results of arithmetic in a pass: so few that it takes less time than the lines."""


def timed(
    harness: Harness,
    sizes: Mapping[str, int],
    outer: str,
    level: str,
    count: int,
    effort: Effort,
    *,
    computed: int = 0,
    hits: int = 0,
) -> LinesBeside:
    """Cycles of a line of `outer` beside `count` lines of streams that lie in `level`.

    Args:
        sizes: bytes of data that lie in each level; computed: operations of the core between the loads; hits: further
            loads there, all of one line.
    """
    total, each = sizes[outer] // 1024 * 1024, _stream_bytes(sizes[level], count)
    harness.buffer(_OUTER, Buffer(total + LINE))
    harness.buffer(_INNER, Buffer((each + _SKEW_BYTES) * max(count, 1) + LINE, APART))
    harness.value(_POSITION, 0)
    harness.load(function(each, count, computed=computed, hits=hits))
    segment = _SEGMENT_BYTES if outer == "Mem" else None
    return LinesBeside(level, count, cycles_per_line(harness, total, segment, effort), outer)


def measure_many_streams(
    harness: Harness, topology: HostTopology, *, effort: Effort, progress: Callable[[str], object] = lambda what: None
) -> ManyStreams:
    """How many streams the core follows, and passes with more of them; see `ManyStreams`.

    More streams are those with which a pass takes at least `_NOTABLE` longer than if its lines from the cache were
    those of one stream, one of them from memory. Found from few streams upward, since with very many of them lines of
    the cache take as long as a line from memory that nothing fetches ahead.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, level = level_sizes(topology), topology.level_names[1]
    if not {"Mem", level} <= sizes.keys():
        return ManyStreams(None, ())
    rough = replace(effort, samples=max(effort.samples // 2, 20), rounds=2, seconds=effort.seconds / 3)

    def passes(loaded: int, streams: int, effort: Effort) -> tuple[StreamPass, StreamPass]:
        progress(f"{streams} streams, {loaded} of them from memory")
        return (
            StreamPass(loaded, streams, False, timed_pass(harness, sizes, level, loaded, streams, False, effort)),
            StreamPass(loaded, streams, True, timed_pass(harness, sizes, level, loaded, streams, True, effort)),
        )

    def slower(streams: int) -> bool | None:
        tries = (passes(1, streams, one) for one in (rough, effort))
        both = next((pair for pair in tries if all(one.cycles.confirmed for one in pair)), None)
        return None if both is None else both[0].cycles.value > (1 + _NOTABLE) * both[1].cycles.value

    followed = _followed(slower)
    if followed is None:
        return ManyStreams(None, ())
    beyond = followed + _BEYOND
    return ManyStreams(followed, tuple(one for loaded in _LOADED for one in passes(loaded, beyond, effort)))


def _followed(slower: Callable[[int], bool | None]) -> int | None:
    """The streams up to which a pass is not slower; None where one of those that are asked is not known to be or not to
    be, or none is slower."""
    followed = 0
    for more in _TRIED:
        match slower(more):
            case None:
                return None
            case True:
                break
        followed = more
    else:
        return None
    while followed and more - followed > 1:
        middle = (followed + more) // 2
        match slower(middle):
            case None:
                return None
            case True:
                more = middle
            case False:
                followed = middle
    return followed or None


_TRIED = range(8, 41, 4)
"""Streams that are tried: from some that every core follows to more than any core is known to."""
_BEYOND = 2
"""Streams beyond those that are followed with which passes are measured."""
_LOADED = (1, 2, 3, 6)
"""Lines of such a pass that come from memory."""
_NOTABLE = 0.2


def timed_pass(
    harness: Harness,
    sizes: Mapping[str, int],
    level: str,
    loaded: int,
    streams: int,
    single: bool,
    effort: Effort,
) -> Figure:
    """Cycles of a pass over so many streams, of which `loaded` lie in memory and the others in `level`."""
    inner = streams - loaded
    outer, each = sizes["Mem"] // loaded // 4096 * 4096, _stream_bytes(sizes[level], inner)
    apart = outer + 5 * LINE
    harness.buffer(_OUTER, Buffer(loaded * apart + LINE))
    harness.buffer(_INNER, Buffer((each + _SKEW_BYTES) * inner + LINE, APART))
    harness.value(_POSITION, 0)
    harness.value(_TOTAL, outer)
    harness.load(function(each, inner, loaded=loaded, apart=apart, single=single))
    harness.run([Case(1, outer)], 1)  # walked once: what was filled last is cached no more
    return cycles_per_line(harness, outer, _SEGMENT_BYTES // loaded // LINE * LINE, effort)


def _stream_bytes(size: int, count: int) -> int:
    """Of each stream, a power of two: all together lie in their level, and in no cache inside it."""
    return 1 << (inner_bytes(size) // max(count, 1)).bit_length() - 1


def function(
    each: int,
    streams: int,
    *,
    loaded: int = 1,
    apart: int = 0,
    single: bool = False,
    computed: int = 0,
    hits: int = 0,
) -> bytes:
    """The loop: a line of each of `loaded` streams of the outer buffer and of `streams` streams in the inner one.

    Args:
        each: bytes of an inner stream, a power of two; apart: bytes between those of the outer buffer.
        single: whether the lines of the inner buffer are those of one stream that walks on by as many lines a pass.
        computed: operations that need none of the lines, hits: loads of one line of the first cache; both spread among
            the others.
    """
    width = x86.vector_bytes()
    register, move = x86.vector_move(width)
    lines = [
        f"mov r15, [rdx + {8 * _POSITION}]",
        f"mov r8, [rdx + {8 * _OUTER}]",
        "add r8, r15",
        f"mov r9, [rdx + {8 * _INNER}]",
        "xor eax, eax",
        "xor ebx, ebx",
        "xor ecx, ecx",
        ".p2align 6",
        "9:",
    ]
    between = LINE if single else each + _SKEW_BYTES
    begins = [f"r8 + rax + {number * apart}" for number in range(loaded)]
    begins += [f"r9 + rbx + {number * between}" for number in range(streams)]
    others = [*arithmetic(computed), *(f"{move} {register}{at % TARGETS}, [r9]" for at in range(hits))]
    for number, begin in enumerate(begins):
        lines += [f"{move} {register}{12 + at // width % 2}, [{begin} + {at}]" for at in range(0, LINE, width)]
        lines += others[number * len(others) // len(begins) : (number + 1) * len(others) // len(begins)]
    if single:
        step = streams * LINE
        lines += [f"add rbx, {step}", f"cmp rbx, {each * streams // step * step}", "cmovae rbx, rcx"]
    else:
        lines += [f"add rbx, {LINE}", f"and rbx, {each - 1}"]
    lines += [f"add rax, {LINE}", "cmp rax, rsi", "jb 9b"]
    return x86.function("\n".join([*lines, *walking_on(_POSITION, _TOTAL)]), set_up=False)
