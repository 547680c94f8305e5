"""Pictures of `kernmodel blocking`: T_ECM and its contributions over the block size of the best candidate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.errors import InputError
from kernmodel.models.calls import IN_CORE
from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption, on_machine
from kernmodel.plot.ecm import shown_times, stacks
from kernmodel.plot.terminal_lines import TextLine, lines_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit, Candidate

_WIDE = 300
"""Times the smallest block size: a wider axis has room for powers of ten only."""
_CACHE_LINES = (":", "-.", "--")
_BEFORE = "#009e73"
_LIMITS = ("#555555", "#8c6d00", "#000000")


def blocking_figure(answer: BlockingAnswer) -> Figure:
    """Contributions stacked over the block size, T_ECM with and without blocking, the limits of the caches, and the
    candidates."""
    with style.settings():
        figure = style.new_figure(8.0, 4.4)
        axes = figure.add_axes((0.08, 0.13, 0.62, 0.76))
        _contributions(axes, times(answer))
        _totals(axes, answer)
        _limits(axes, answer)
        _frame(axes, answer)
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=style.SMALL, frameon=False)
        return figure


def swept(answer: BlockingAnswer) -> tuple[str, str]:
    """The loop whose block size is varied, and the other block sizes in words ("" without others).

    Raises:
        InputError: no block size is worth a picture.
    """
    if not answer.candidates or not answer.sweep:
        raise InputError("blocking buys nothing here, so there is no picture of it", todo="leave out --plot")
    blocks, loop = answer.candidates[0].blocks, answer.swept_loop
    others = ", ".join(f"{variable} in blocks of {size}" for variable, size in blocks.items() if variable != loop)
    return loop, others


def times(answer: BlockingAnswer) -> tuple[tuple[int, EcmPrediction], ...]:
    """The prediction over the block size, the candidates with the same other blocks among the points."""
    points = dict(answer.sweep)
    points.update((found.blocks[swept(answer)[0]], found.prediction) for found in _alike(answer))
    return tuple(sorted(points.items(), key=lambda point: point[0]))


def _alike(answer: BlockingAnswer) -> list[Candidate]:
    """The candidates that differ from the best one in the size of the swept loop only; the best one comes first."""
    loop, fixed = swept(answer)[0], _others(answer.candidates[0].blocks, swept(answer)[0])
    return [c for c in answer.candidates if loop in c.blocks and _others(c.blocks, loop) == fixed]


def _others(blocks: Mapping[str, int], loop: str) -> dict[str, int]:
    return {variable: size for variable, size in blocks.items() if variable != loop}


def candidate_points(answer: BlockingAnswer) -> tuple[tuple[int, float], ...]:
    """Block size of the swept loop and T_ECM of the candidates that block it; those whose other blocks are not as in
    the picture lie beside its line."""
    loop = swept(answer)[0]
    return tuple((c.blocks[loop], c.prediction.cycles) for c in answer.candidates if loop in c.blocks)


def cache_limits(answer: BlockingAnswer) -> dict[str, tuple[tuple[str, int], ...]]:
    """By cache, the loop along which a reuse runs, and the largest block size for which it fits, the other blocks being
    as in the picture; sizes that the picture does not hold are left out."""
    loop = swept(answer)[0]
    found: dict[str, dict[tuple[str, int], None]] = {}
    shown = range(answer.sweep[0][0], answer.sweep[-1][0] + 1)
    for limit in answer.limits:
        if set(limit.loops) != set(answer.candidates[0].blocks):
            continue
        largest = _largest(answer, limit, loop, shown)
        if largest in shown[:-1]:
            found.setdefault(limit.cache, {})[limit.carried_by, largest] = None
    return {cache: tuple(here) for cache, here in found.items()}


def _largest(answer: BlockingAnswer, limit: BlockLimit, loop: str, shown: range) -> int:
    """The largest block size at which the reuse of a limit fits: as a candidate has it, else by the formula."""
    for candidate in _alike(answer):
        own = candidate.limit
        if (own.cache, own.carried_by, own.accesses) == (limit.cache, limit.carried_by, limit.accesses):
            return own.largest.get(loop) or 0
    sizes = {**answer.before.sizes, **{f"B_{v}": size for v, size in answer.candidates[0].blocks.items()}}

    def needed(size: int) -> float:
        values = {**sizes, f"B_{loop}": size}
        return float(limit.required_bytes.value(values))

    return bisect_right(shown, limit.capacity_bytes, key=needed) + shown.start - 1


def _contributions(axes: Axes, sweep: Sequence[tuple[int, EcmPrediction]]) -> None:
    """T_nOL and the transfer times stacked, or as lines where they overlap; T_OL, which always does, as a line."""
    sizes = [size for size, _ in sweep]
    if all(stacks(found) for _, found in sweep):
        _stacked(axes, sweep, sizes)
    else:
        for number, name in enumerate(name for name in sweep[0][1].times if name not in IN_CORE):
            pattern = style.PATTERNS[number % len(style.PATTERNS)]
            values = [found.times[name] for _, found in sweep]
            axes.plot(sizes, values, linestyle=pattern, color=style.colour(number), label=f"{name} (overlaps)")
    axes.plot(
        sizes,
        [found.core_cycles for _, found in sweep],
        "--",
        color="#000000",
        linewidth=1.0,
        label=f"{_core_label(sweep)} (overlap)",
    )


def _core_label(sweep: Sequence[tuple[int, EcmPrediction]]) -> str:
    return style.core_label(called=any(found.t_call for _, found in sweep))


def _stacked(axes: Axes, sweep: Sequence[tuple[int, EcmPrediction]], sizes: Sequence[int]) -> None:
    bottoms = [0.0] * len(sizes)
    shown = [shown_times(found) for _, found in sweep]
    for number, name in enumerate(dict.fromkeys(name for one in shown for name in one)):
        tops = [bottom + one.get(name, 0.0) for bottom, one in zip(bottoms, shown, strict=True)]
        axes.fill_between(sizes, bottoms, tops, linewidth=0.0, alpha=0.75, label=name, **style.part(number))
        bottoms = tops


def _totals(axes: Axes, answer: BlockingAnswer) -> None:
    before, over = answer.before.prediction.cycles, times(answer)
    axes.plot([size for size, _ in over], [found.cycles for _, found in over], "-", color="#000000", linewidth=1.8,
              label="T_ECM, blocked")  # fmt: skip
    axes.axhline(before, color=_BEFORE, linewidth=1.6, label=f"T_ECM, not blocked ({before:.1f})")
    (size, value), *others = candidate_points(answer)
    if others:
        axes.plot([other for other, _ in others], [cycles for _, cycles in others], linestyle="", marker="D",
                  markersize=4.5, color="#000000", markerfacecolor="white", label="other candidates")  # fmt: skip
    label = f"best: {swept(answer)[0]} = {size} ({value:.1f})"
    axes.plot([size], [value], linestyle="", marker="D", markersize=6.5, color="#000000", label=label)


def _limits(axes: Axes, answer: BlockingAnswer) -> None:
    """A vertical line at the largest block size for which a reuse fits into a cache."""
    caches = [level.name for level in answer.before.machine.levels]
    for cache, here in cache_limits(answer).items():
        line = _CACHE_LINES[caches.index(cache) % len(_CACHE_LINES)]
        for number, (along, size) in enumerate(here):
            shade, label = _LIMITS[number % len(_LIMITS)], f"{cache} holds reuse along {along}: ≤ {size}"
            axes.axvline(size, color=shade, linestyle=line, linewidth=1.3, label=label)


def _frame(axes: Axes, answer: BlockingAnswer) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    loop, others = swept(answer)
    sizes = [size for size, _ in answer.sweep]
    highest = max(answer.before.prediction.cycles, *(found.cycles for _, found in answer.sweep))
    axes.set_xscale("log")
    wide = max(sizes) > _WIDE * min(sizes)
    axes.xaxis.set_major_locator(LogLocator(10, (1,) if wide else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlim=(min(sizes), max(sizes) if len(sizes) > 1 else min(sizes) + 1), ylim=(0, 1.08 * highest))
    axes.set(xlabel=f"block size of {loop} (iterations)", ylabel="cycles per unit of work (cy/CL)")
    before = answer.before
    title = on_machine(f"blocking of {before.nest.name}", before.machine) + (f"; {others}" if others else "")
    figure = axes.get_figure(root=True)
    assert figure is not None
    draw_caption(figure, answers_caption(title, (before,)), above=0.3)


def blocking_text(answer: BlockingAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """T_ECM and T_OL over the block size in characters, with the limits of the caches below."""
    loop, others = swept(answer)
    over = times(answer)
    sizes = tuple(float(size) for size, _ in over)
    before = answer.before
    lines = [
        TextLine("T_ECM, blocked", sizes, tuple(found.cycles for _, found in over)),
        TextLine("T_ECM, not blocked", sizes, (before.prediction.cycles,) * len(sizes)),
        TextLine(_core_label(over), sizes, tuple(found.core_cycles for _, found in over)),
    ]
    title = f"{before.nest.name} on {before.machine.name}: cy/CL over block sizes" + (f", {others}" if others else "")
    drawing = lines_text(lines, title, width, ascii_only, x_label=f"block size of {loop} (iterations)", log_x=True)
    limits = [
        f"  {cache} holds the reuse along {along} up to {loop} = {size}\n"
        for cache, here in cache_limits(answer).items()
        for along, size in here
    ]
    return drawing + "".join(limits)
