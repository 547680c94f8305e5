"""How times overlap on this host, by experiment: which composition explains streams of several kinds together.

The streams are lines of an inner level beside lines of an outer one, and arithmetic beside lines. Every composition
first gets the path times with which it reproduces the plain streams (direct ones where it takes the longest, increments
where it adds), and then says how long the mixed ones take, which nothing was fitted to (H. Stengel et al., Quantifying
performance bottlenecks of stencil computations using the execution-cache-memory model, ICS 2015, take the same two
steps for Intel's cores).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from kernmodel.errors import Note
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, level_sizes, walking_on
from kernmodel.measure.blocks import copies_of, doubts
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness, repetitions
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import Beside, Compositions, JudgedComposition
from kernmodel.measure.samples import Figure

EFFORT = Effort(samples=60, rounds=3, seconds=4.0)
_OUTER, _INNER = 0, 1
_POSITION, _TOTAL = 63, 62
_SEGMENT_BYTES = 1 << 18
_TARGETS = 12
_LEAST = 4
"""Confirmed experiments that are needed, at least one with data in each level."""
_MANY = 1e9
BETTER = 0.02
"""By how much of the time another composition has to be nearer on the mean to take the place of the carried one."""


def measure_composition(
    harness: Harness,
    topology: HostTopology,
    plain: Mapping[str, float],
    carried: Overlap,
    *,
    counts: Sequence[int] = (1, 4),
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> Compositions:
    """Every usual composition with its mean error over mixed streams, the best first; none where too few are confirmed.

    Args:
        plain: cycles per line of a load stream by level, innermost first, those that are confirmed.
        carried: a composition that is judged too.
        counts: lines of the inner level beside one of the outer.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, levels = level_sizes(topology), ["L1", *(level for level in plain if level != "L1")]
    if "L1" not in plain or len(levels) < 2:
        return Compositions((), (), (Note("composition-unknown", "there are too few streams to compose"),))
    arithmetic = copies_of(harness, _arithmetic(_TARGETS), effort).value / _TARGETS
    found, notes = [], []
    for outer in levels[1:]:
        inner = levels[: levels.index(outer)]
        asked = [(level, count, 0) for level in inner for count in counts]
        asked += [("L1", 0, round(factor * plain[outer] / max(arithmetic, 0.1))) for factor in (0.5, 1.0)]
        for level, count, computed in asked:
            what = f"{count} of {level}" if count else f"{computed} operations"
            progress(f"{what} beside a line of {outer}")
            figure = _timed(harness, sizes, (outer, level), count, computed, effort)
            notes += doubts(figure, f"{what} beside a line of {outer}")
            found.append(Beside(outer, level if count else "", count, computed * arithmetic, figure))
    confirmed = [one for one in found if one.cycles.confirmed]
    if len(confirmed) < _LEAST or {one.outer for one in confirmed} != set(levels[1:]):
        what = "too few mixed streams are confirmed to tell how times overlap"
        return Compositions(tuple(found), (), (*notes, Note("composition-unknown", what)))
    asked_of = dict.fromkeys((*compositions(levels), carried))
    judged = (JudgedComposition(str(one), error_of(one, plain, confirmed)) for one in asked_of)
    return Compositions(tuple(found), tuple(sorted(judged, key=lambda one: one.error)), tuple(notes))


def compositions(levels: Sequence[str]) -> Iterator[Overlap]:
    """The usual compositions of the times of these levels, innermost first."""
    core, loads = Time("T_OL"), Time("T_nOL")
    paths = tuple(Time(f"T_{inner}{outer}") for inner, outer in pairwise(levels))
    yield Max((core, loads, *paths))
    yield Max((core, Sum((loads, *paths))))
    yield Sum((Max((core, loads)), *paths))
    if len(paths) > 1:
        yield Max((core, loads, Sum(paths)))
        yield Max((core, Sum((loads, paths[0])), *paths[1:]))
    if len(paths) > 2:
        yield Max((core, loads, paths[0], Sum(paths[1:])))
        yield Max((core, loads, Sum(paths[:-1]), paths[-1]))
        yield Max((core, Sum((loads, paths[0])), Sum(paths[1:])))


def error_of(composition: Overlap, plain: Mapping[str, float], beside: Sequence[Beside]) -> float:
    """Mean distance of the predicted times from the measured ones, as a share of these."""
    per_line = path_times(composition, plain)
    errors = (abs(predicted(composition, plain, per_line, one) / one.cycles.value - 1) for one in beside)
    return sum(errors) / len(beside)


def path_times(composition: Overlap, plain: Mapping[str, float]) -> dict[str, float]:
    """By path the cycles per line with which a composition reproduces the plain streams of all levels, innermost first;
    0 where a level takes no longer than those inside."""
    found: dict[str, float] = {}
    for inner, outer in pairwise(plain):
        times = {"T_OL": 0.0, "T_nOL": plain["L1"], **found}
        name = f"T_{inner}{outer}"
        added = evaluate(composition, {**times, name: _MANY}) - _MANY
        longer = plain[outer] > evaluate(composition, times)
        found[name] = plain[outer] - added if longer else 0.0
    return found


def predicted(composition: Overlap, plain: Mapping[str, float], per_line: Mapping[str, float], beside: Beside) -> float:
    """Cycles of a line of the outer stream and what stands beside it."""
    levels, lines = list(plain), dict.fromkeys(per_line, 0.0)
    for level, count in ((beside.outer, 1), (beside.inner, beside.count)):
        for inner, outer in pairwise(levels[: levels.index(level) + 1] if level else ()):
            lines[f"T_{inner}{outer}"] += count
    times = {name: cycles * lines[name] for name, cycles in per_line.items()}
    loads = (1 + beside.count) * plain["L1"]
    return evaluate(composition, {"T_OL": beside.core_cycles, "T_nOL": loads, **times})


# {{{ the code


def _timed(
    harness: Harness, sizes: Mapping[str, int], levels: tuple[str, str], count: int, computed: int, effort: Effort
) -> Figure:
    """Cycles of one line of the outer level with `count` of the inner one and so many operations beside it."""
    outer, inner = levels
    inside = 1 << (max(sizes[inner], 8192) // 2).bit_length() - (1 if inner == "L1" else 0)
    total = sizes[outer] // 1024 * 1024
    harness.buffer(_OUTER, Buffer(total + LINE))
    harness.buffer(_INNER, Buffer(inside + LINE, APART))
    # in caches every call begins at the beginning
    for number, value in ((_POSITION, 0), (_TOTAL, total if outer == "Mem" else 0)):
        harness.value(number, value)
    harness.load(function(inside, count, computed))
    if outer == "Mem":
        lines = _SEGMENT_BYTES // LINE
        return harness.figure([Case(1, _SEGMENT_BYTES)], lambda ends: ends[0] / lines, effort)
    half = total // 2 // 512 * 512
    times = repetitions(harness.call_cycles([Case(1, half)]))
    cases = [Case(times, half), Case(times, 2 * half)]
    return harness.figure(cases, lambda ends: (ends[1] - ends[0]) / (times * half / LINE), effort)


def function(inside: int, count: int, computed: int) -> bytes:
    """The loop: a line of the outer buffer, `count` lines of the inner one, which has `inside` bytes (a power of two)
    and is walked round, and so many operations, each pass."""
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
    lines += [f"{move} {register}{12 + at // width % 2}, [r8 + rax + {at}]" for at in range(0, LINE, width)]
    for number in range(count):
        at = number * LINE
        lines += [f"{move} {register}{12 + b // width % 2}, [r9 + rbx + {at + b}]" for b in range(0, LINE, width)]
    lines += _arithmetic(computed)
    if count:
        # a row of lines at a time, all inside the buffer
        lines += [f"add rbx, {count * LINE}", f"and rbx, {inside - 1 & -(count * LINE)}"]
    lines += [f"add rax, {LINE}", "cmp rax, rsi", "jb 9b", *walking_on(_POSITION, _TOTAL)]
    return x86.function("\n".join(lines), set_up=False)


def _arithmetic(number: int) -> list[str]:
    """Operations on registers that no load writes, of which none waits for another: they overwrite their targets."""
    name = "vmulpd ymm{0}, ymm15, ymm15" if x86.vector_bytes() > 16 else "pshufd xmm{0}, xmm15, 0"
    return [name.format(at % _TARGETS) for at in range(number)]


# }}}
