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
from statistics import fmean, stdev

from kernmodel.errors import Note
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, PRIVATE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.blocks import copies_of
from kernmodel.measure.host import APART, Buffer, Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import Beside, Compositions, JudgedComposition, MixedStreams
from kernmodel.measure.samples import Figure

EFFORT = Effort(samples=60, rounds=3, seconds=4.0)
_OUTER, _INNER = 0, 1
_POSITION, _TOTAL = 63, 62
_SEGMENT_BYTES = 1 << 18
TARGETS = 12
_LEAST = 4
"""Confirmed experiments that are needed, at least one with data in each level."""
_UNROLLED = 4
"""Lines of the outer level in a pass."""
_MANY = 1e9


def measure_mixed(
    harness: Harness,
    topology: HostTopology,
    plain: Mapping[str, float],
    *,
    counts: Sequence[int] = (1, 4),
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> MixedStreams:
    """Mixed streams of all levels, once; lines of caches beyond the first beside lines from memory are left out, which
    have figures of their own (`lines_beside`).

    Args:
        plain: cycles per line of a load stream by level, innermost first, those that are confirmed.
        counts: lines of the inner level beside one of the outer.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    sizes, levels = level_sizes(topology), list(plain)
    operation = copies_of(harness, arithmetic(TARGETS), effort).value / TARGETS
    found = []
    for outer in levels[1:]:
        inner = levels[:1] if outer == "Mem" else levels[: levels.index(outer)]
        asked = [(f"{count} of {level}", level, count, 0.0) for level in inner for count in counts]
        asked += [(f"arithmetic of {share:.0%} of its time", "L1", 0, share) for share in (0.5, 1.0)]
        for what, level, count, share in asked:
            name = f"{what} beside a line of {outer}"
            progress(name)
            computed = round(share * plain[outer] / max(operation, 0.1))
            figure = _timed(harness, sizes, (outer, level), count, computed, effort)
            found.append(Beside(name, outer, level if count else "", count, computed * operation, figure))
    return MixedStreams(dict(plain), tuple(found))


def judged_compositions(trials: Sequence[MixedStreams], carried: Overlap) -> Compositions:
    """Every usual composition with its mean error over mixed streams, the best first; none where too few are confirmed.

    Each is compared with the best on the same streams of the same trials, so that what disturbs both drops out; how far
    that comparison can be trusted follows from how much it varies from stream to stream.

    Args:
        trials: over the same streams; carried: a composition that is judged too.
    """
    plains = [trial.plain for trial in trials if "L1" in trial.plain and len(trial.plain) > 1]
    if not plains:
        return Compositions((), (Note("composition-unknown", "there are too few streams to compose"),))
    levels = list(plains[0])
    asked = list(dict.fromkeys((*compositions(levels), carried)))
    errors = [_errors(trials, number, asked) for number in range(len(trials[0].beside))]
    told = [(one.outer, found) for one, found in zip(trials[0].beside, errors, strict=True) if found]
    if len(told) < _LEAST or {outer for outer, _ in told} != set(levels[1:]):
        what = "too few mixed streams are confirmed to tell how times overlap"
        return Compositions((), (Note("composition-unknown", what),))
    of = {str(one): [found[at] for _, found in told] for at, one in enumerate(asked)}
    best = min(of.values(), key=fmean)
    return Compositions(tuple(sorted((_judged(*one, best) for one in of.items()), key=lambda one: one.error)), ())


def _errors(trials: Sequence[MixedStreams], number: int, asked: Sequence[Overlap]) -> list[float]:
    """By composition the error of one mixed stream, on the mean over the trials in which it is confirmed; nothing where
    none is."""
    taken = [(trial.plain, trial.beside[number]) for trial in trials if trial.beside[number].cycles.confirmed]
    return [fmean(error_of(one, plain, [beside]) for plain, beside in taken) for one in asked] if taken else []


def _judged(expression: str, errors: Sequence[float], best: Sequence[float]) -> JudgedComposition:
    """A composition by its errors of each stream, beside those of the best."""
    behind = [error - other for error, other in zip(errors, best, strict=True)]
    doubt = stdev(behind) / len(behind) ** 0.5
    return JudgedComposition(expression, fmean(errors), fmean(behind), doubt, len(behind))


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


def _timed(
    harness: Harness, sizes: Mapping[str, int], levels: tuple[str, str], count: int, computed: int, effort: Effort
) -> Figure:
    """Cycles of one line of the outer level with `count` of the inner one and so many operations beside it."""
    outer, inner = levels
    inside, total = inner_bytes(sizes[inner]), sizes[outer] // 1024 * 1024
    harness.buffer(_OUTER, Buffer(total + LINE))
    harness.buffer(_INNER, Buffer(inside + LINE, APART))
    harness.value(_POSITION, 0)
    harness.load(function(inside, count, computed))
    asked = effort if outer in PRIVATE else effort.beside_others()
    return cycles_per_line(harness, total, _SEGMENT_BYTES if outer == "Mem" else None, asked)


def inner_bytes(size: int) -> int:
    """Bytes of the buffer that is walked round beside a stream, for data of this size in its level: a power of two, at
    most half of them. Between two visits of its lines at most as many lines of the stream pass, so that both together
    are no more than the data that plain streams have in that level."""
    return 1 << (size // 2).bit_length() - 1


def function(inside: int, count: int, computed: int) -> bytes:
    """The loop: a line of the outer buffer, `count` lines of the inner one, which has `inside` bytes (both powers of
    two) and is walked round, and so many operations, `_UNROLLED` times each pass: one of few cycles would take longer
    for its branch."""
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
    for line in range(_UNROLLED):
        places = [f"r8 + rax + {line * LINE}", *(f"r9 + rbx + {(line * count + n) * LINE}" for n in range(count))]
        for place in places:
            lines += [f"{move} {register}{12 + at // width % 2}, [{place} + {at}]" for at in range(0, LINE, width)]
        lines += arithmetic(computed)
    if count:
        # rows of lines at a time, all inside the buffer
        row = _UNROLLED * count * LINE
        lines += [f"add rbx, {row}", f"and rbx, {inside - 1 & -row}"]
    lines += [f"add rax, {_UNROLLED * LINE}", "cmp rax, rsi", "jb 9b", *walking_on(_POSITION, _TOTAL)]
    return x86.function("\n".join(lines), set_up=False)


def arithmetic(number: int) -> list[str]:
    """Operations on registers that no load writes, of which none waits for another: they overwrite their targets."""
    name = "vmulpd ymm{0}, ymm15, ymm15" if x86.vector_bytes() > 16 else "pshufd xmm{0}, xmm15, 0"
    return [name.format(at % TARGETS) for at in range(number)]
