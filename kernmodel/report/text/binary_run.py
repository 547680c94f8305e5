"""The answer of `kernmodel binary run` as text: predictions beside the measured time, hot blocks, the tree of loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.binary.lifting import WAYS
from kernmodel.binary.predictors.own import OWN_ECM
from kernmodel.models.ecm import UNKNOWN
from kernmodel.report.layout import Blocks, Line, fields, left, right, table
from kernmodel.report.text.binary import residency_fields
from kernmodel.report.text.reasons import reason_text
from kernmodel.report.text.roofline import chart_blocks
from kernmodel.report.text.sections import notes_section
from kernmodel.uncertainty import with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.binary.answer import BinaryRun
    from kernmodel.binary.ecm import DataAnswer, FunctionEcm
    from kernmodel.binary.lifting import BlockShare, LiftedPrediction
    from kernmodel.binary.program import Function, Loop

_HOT = 0.01
"""Share of a call below which a block is not listed."""
_MOST_BLOCKS = 12
_SHOWN_LINES = 3
_BAR = 20
WAY_NAMES = {
    "sum": "sum of occurrences × prediction",
    "loops": "loops as loops, other blocks without chains",
    "traces": "simulated walks: restarted chains, lines of code, mispredicted branches",
}


def binary_run_report(answer: BinaryRun) -> Blocks:
    """The whole answer."""
    return (
        *_head(answer),
        *_prediction_section(answer),
        *_hot_section(answer),
        *_loop_section(answer),
        *_data_section(answer.predicted.data),
        *notes_section(answer.notes),
    )


def _head(answer: BinaryRun) -> Blocks:
    counted = answer.occurrences
    method = _METHODS.get(counted.method, counted.method)
    return fields(
        "Run",
        ("function", f"{answer.function.name}, {answer.function.file}"),
        ("program", " ".join(answer.command)),
        ("core", answer.title),
        ("calls", f"{counted.calls:,}, counted by {method} ({count(counted.runs, 'run')} agree)"),
        ("measured", _measured(answer)),
    )


def _measured(answer: BinaryRun) -> str | None:
    time = answer.time
    if time is None:
        return f"no: {answer.not_measured}" if answer.not_measured else None
    if time.why_refused:
        undisturbed = f" (the smallest undisturbed call: {time.smallest:,.0f} cy)" if time.smallest else ""
        return f"refused: {time.why_refused}{undisturbed}"
    runs = f"{count(time.accepted, 'run')}, spread {time.spread_percent:.1f} %"
    return f"{time.cycles:,.0f} cy per call ({_seconds(time.seconds)}; {runs})"


_METHODS = {"re-encoded": "counters in a copy of the function", "callgrind": "callgrind", "qemu": "qemu"}


def _seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _prediction_section(answer: BinaryRun) -> Blocks:
    columns = (
        left("predictor", lambda one: f"{one.predictor} {answer.predicted.versions.get(one.predictor, '')}".strip()),
        left("way", _way, fold=True),
        right("cy per call", _cycles),
        right("error", lambda one: _error(answer, one)),
    )
    failed = [one for one in answer.predicted.predictions if one.cycles is None]
    lines = (Line(f"  {one.predictor} ({WAYS[one.way]}): no prediction: {one.failed}", "warning") for one in failed)
    return (*table("Predicted time of a call", columns, answer.predicted.predictions), *lines)


def _way(one: LiftedPrediction) -> str:
    transfers = " + transfers of the lines that were traced" if one.predictor == OWN_ECM else ""
    return f"({WAYS[one.way]}) {WAY_NAMES[one.way]}{transfers}"


def _cycles(one: LiftedPrediction) -> str:
    if one.cycles is None:
        return "none"
    return with_interval(one.cycles, one.interval, lambda value: f"{value:,.0f}")


def _error(answer: BinaryRun, one: LiftedPrediction) -> str | None:
    error = answer.error_percent(one)
    return None if error is None else f"{error:+.1f} %"


def _hot_section(answer: BinaryRun) -> Blocks:
    best = answer.best
    if best is None:
        return ()
    hot = [one for one in best.blocks if one.share >= _HOT][:_MOST_BLOCKS]
    columns = (
        left("block", lambda one: f"{one.address:#x}"),
        right("share", lambda one: f"{100 * one.share:.1f} %"),
        right("times per call", lambda one: f"{one.occurrences / max(1, answer.occurrences.calls):,.6g}"),
        right("cy each", lambda one: f"{one.cycles:.2f}"),
        left("lines", lambda one: _lines(answer.function, one.address)),
        left("bound", _bound, fold=True),
    )
    return table(f"Hot blocks, by {best.predictor} ({WAYS[best.way]})", columns, hot)


def _bound(one: BlockShare) -> str:
    return reason_text(one.reason) if one.reason is not None else one.bound_by


def _lines(function: Function, address: int) -> str:
    lines = function.block(address).lines
    shown = ", ".join(f"{one.file.rsplit('/', 1)[-1]}:{one.line}" for one in lines[:_SHOWN_LINES])
    return f"{shown}, …" if len(lines) > _SHOWN_LINES else shown


def _loop_section(answer: BinaryRun) -> Blocks:
    """The tree of loops with the share of the predicted time that is spent in each."""
    best = answer.best
    if best is None or not best.cycles:
        return ()
    rows = list(_tree(answer, best, None))
    columns = (
        left("loop", lambda row: f"{'  ' * (row[0].depth - 1)}{row[0].header:#x}"),
        right("share", lambda row: f"{100 * row[1]:.1f} %"),
        left("", lambda row: "#" * round(_BAR * row[1])),
        right("passes per entry", lambda row: f"{row[2]:.4g}"),
        left("lines", lambda row: _span(answer.function, row[0])),
    )
    return table("Loops", columns, rows)


def _tree(answer: BinaryRun, best: LiftedPrediction, parent: int | None) -> Iterator[tuple[Loop, float, float]]:
    """The loops that ran, each before those inside it: share of the time, passes each time that it is entered."""
    for loop in answer.function.loops:
        headed = answer.occurrences.blocks.get(loop.header, 0)
        if loop.parent == parent and headed:
            entered = answer.occurrences.entries(answer.function, loop)
            yield loop, best.loops.get(loop.header, 0.0) / (best.cycles or 1.0), headed / max(1, entered)
            yield from _tree(answer, best, loop.header)


def _span(function: Function, loop: Loop) -> str:
    """The source lines of a loop, from the first to the last of the file that most are from."""
    lines = [line for address in loop.blocks for line in function.block(address).lines]
    files = [line.file for line in lines]
    if not files:
        return ""
    file = max(set(files), key=files.count)
    numbers = [line.line for line in lines if line.file == file and line.line]
    return f"{file.rsplit('/', 1)[-1]}:{min(numbers)}-{max(numbers)}" if numbers else ""


def _data_section(data: DataAnswer | None) -> Blocks:
    """Footprint and misses, the times of the ECM model, and the chart."""
    if data is None:
        return ()
    ecm = data.ecm
    times = None if ecm is None else f"{{{_time_text(ecm)}}} cy per call"
    levels = None if ecm is None else f"{{{' ⌉ '.join(f'{cycles:,.0f}' for _, cycles in ecm.levels)}}} cy per call"
    charts = [] if data.roofline is None else data.roofline.kernels
    return (
        *fields(
            "Data",
            *residency_fields(data.residency),
            ("lines per call", ", ".join(f"{one.path} {one.lines:,.0f}" for one in data.paths)),
            ("ECM", times),
            ("by residence level", levels),
            ("composed as", None if ecm is None else f"{ecm.overlap}; {' + '.join(ecm.binding)} bind"),
        ),
        *(block for kernel in charts for block in chart_blocks(kernel.rooflines[0], kernel.subject)),
    )


def _time_text(ecm: FunctionEcm) -> str:
    """T_OL ‖ T_nOL | T_L1L2 | …"""
    transfers = (f"{one.cycles:,.0f}" if one.known else UNKNOWN for one in ecm.transfers)
    return f"{ecm.t_ol:,.0f} ‖ {' | '.join((f'{ecm.t_nol:,.0f}', *transfers))}"
