"""Why a prediction is far from what was measured here: each cause asked by an experiment of its own.

Two ask the model alone: the measured time in L1 in place of the in-core time, and other compositions of the same times.
The others run the kernel again, each under one other condition, and predict it under the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from kernmodel.errors import KernmodelError
from kernmodel.evaluate.kernel_model import JudgedPoint
from kernmodel.evaluate.validation_model import Experiment
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate, parse_overlap
from kernmodel.measure.kernels import Conditions
from kernmodel.models.ecm import EcmPrediction
from kernmodel.models.outside import OUTSIDE
from kernmodel.source.model import LoopNest

Rerun = Callable[[Conditions, Mapping[str, int], tuple[str, ...]], JudgedPoint]
"""A kernel under other conditions, at other sizes and with further flags of the compiler, measured and predicted."""
_UNROLLED = ("-funroll-loops",)
_LOOP_PLACES = (0, 32)
"""Addresses of the loop modulo 64 that are tried: the beginning and the middle of a line of code."""
_MOVED = 8
"""Bytes by which arrays are moved against the beginning of a cache line, so that vectors cross lines."""
_LESS, _LONGER = 2, 4
"""By how much less data are tried, and by how much longer rows."""


def model_experiments(point: JudgedPoint, l1_cycles: float | None) -> Iterator[Experiment]:
    """A point beyond L1 with other in-core times and compositions; nothing is run.

    Args:
        l1_cycles: measured in L1 per iteration, None: not known.
    """
    prediction = point.prediction
    if l1_cycles is not None:
        t_ol = l1_cycles * prediction.work.iterations_per_unit
        predicted = recomposed(prediction, in_core=t_ol)
        yield Experiment("in-core time", f"T_OL = {t_ol:.2f} cy/CL, as measured in L1", point.measured, predicted)
    for what, overlap in _compositions(prediction):
        predicted = recomposed(prediction, overlap=overlap)
        yield Experiment("composition", what, point.measured, predicted)


def recomposed(prediction: EcmPrediction, *, in_core: float | None = None, overlap: Overlap | None = None) -> float:
    """T_ECM of the same times with another in-core time (everything the core does, the loads among it) or composition,
    cycles per unit of work."""
    times, expression = dict(prediction.times), overlap or parse_overlap(prediction.overlap)
    outside = times.pop(OUTSIDE)
    times["T_OL"] = prediction.core_cycles - outside
    if in_core is not None:
        times |= {"T_OL": in_core, "T_nOL": min(times["T_nOL"], in_core)}
        outside = 0.0
    return outside + evaluate(expression, times)


def _compositions(prediction: EcmPrediction) -> Iterator[tuple[str, Overlap]]:
    """Compositions other than the one that was taken."""
    core, loads = Time("T_OL"), Time("T_nOL")
    transfers = tuple(Time(transfer.name) for transfer in prediction.transfers)
    for overlap in (
        Max((core, loads, *transfers)),
        Max((core, loads, Sum(transfers))),
        Max((core, Sum((loads, *transfers)))),
        Sum((Max((core, loads)), *transfers)),
    ):
        if str(overlap) != prediction.overlap:
            yield str(overlap), overlap


def run_experiments(
    nest: LoopNest, point: JudgedPoint, level: str, conditions: Conditions, rerun: Rerun
) -> Iterator[Experiment]:
    """The point under one other condition each: address of the loop, of the arrays, several passes to a branch, page
    size, less data, longer rows. What cannot be run so is left out."""
    sizes = point.point.sizes
    if level == "L1":
        change = f"compiled with {' '.join(_UNROLLED)} as well"
        yield from _again("short passes", change, rerun, conditions, sizes, _UNROLLED)
    for place in _LOOP_PLACES if level == "L1" else ():
        if conditions.align != place:
            yield from _again(
                "loop address", f"the loop at {place} modulo 64", rerun, replace(conditions, align=place), sizes
            )
    moved = tuple((name, _MOVED) for name in nest.arrays)
    change = f"arrays begin {_MOVED} bytes into a line"
    yield from _again("array addresses", change, rerun, replace(conditions, array_offsets=moved), sizes)
    if level != "L1":
        pages = "huge pages" if not conditions.huge else "pages of 4 KiB"
        yield from _again("page size", pages, rerun, replace(conditions, huge=not conditions.huge), sizes)
    if level not in ("L1", "Mem"):
        factor = 1 / _LESS
        change = f"1/{_LESS} of the data"
        yield from _again("share of the cache", change, rerun, conditions, _scaled_outer(nest, sizes, factor))
    rows = _longer_rows(nest, sizes)
    if rows is not None:
        yield from _again("run length", f"rows {_LONGER} times as long", rerun, conditions, rows)


def _again(
    cause: str,
    change: str,
    rerun: Rerun,
    conditions: Conditions,
    sizes: Mapping[str, int],
    flags: tuple[str, ...] = (),
) -> Iterator[Experiment]:
    try:
        point = rerun(conditions, sizes, flags)
    except KernmodelError:
        return
    yield Experiment(cause, change, point.measured, point.predicted)  # type: ignore[arg-type]


def _size_symbols(nest: LoopNest) -> tuple[str, ...]:
    """The sizes that are extents of arrays, that of the innermost dimension last."""
    found: dict[str, None] = {}
    for array in nest.arrays.values():
        for extent in array.shape:
            found |= {name: None for name in nest.symbols if name in extent.free_symbols}
    inner = {str(s) for array in nest.arrays.values() if array.shape for s in array.shape[-1].free_symbols}
    return tuple(sorted(found, key=lambda name: str(nest.symbols[name]) in inner))


def _scaled_outer(nest: LoopNest, sizes: Mapping[str, int], factor: float) -> dict[str, int]:
    """Less of the outermost extent, so that rows stay as long as they were."""
    names = _size_symbols(nest)
    return {**sizes, names[0]: max(1, round(sizes[names[0]] * factor))} if names else dict(sizes)


def _longer_rows(nest: LoopNest, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """As many elements in longer rows; None where one size is both, or there is none outside."""
    names = _size_symbols(nest)
    if len(names) < 2:
        return None
    return {**sizes, names[0]: max(1, sizes[names[0]] // _LONGER), names[-1]: sizes[names[-1]] * _LONGER}
