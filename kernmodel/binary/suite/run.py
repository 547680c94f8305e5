"""Running a suite: its variants side by side, then their times one after the other, then the other predictors."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from kernmodel import __version__
from kernmodel.binary.predictors.choose import lifted_names, predictor_named
from kernmodel.binary.predictors.own import OWN, OWN_ECM
from kernmodel.binary.predictors.protocol import Piece, Predictor
from kernmodel.binary.suite.build import compiler_version, key_of
from kernmodel.binary.suite.model import Class, Judged, Measured, Observed, SuiteAnswer, SuiteFile, Variant
from kernmodel.binary.suite.observe import ECM, RESIDENCY, observe
from kernmodel.binary.suite.record_file import RecordFile
from kernmodel.binary.tables import csv_text
from kernmodel.code.blocks import decode_block
from kernmodel.evaluate.statistics import Summary, summarise
from kernmodel.limits import process_count
from kernmodel.machine.model import Machine
from kernmodel.output_files import write_file

Progress = Callable[[str, int, int], object]
"""Is told what is being done, how many variants are done, and of how many."""
Timing = Callable[[str, str], tuple[float, float, str]]
"""Measures a function of a binary: cycles of a call, spread in percent, and why there is none."""

OWN_WAYS = {"a": f"{OWN} (a)", "b": f"{OWN} (b)", "c": f"{OWN} (c)"}


def run_suite(
    suite: SuiteFile,
    core: str,
    output: Path,
    *,
    predictors: Sequence[str] = (OWN,),
    machine: Machine | None = None,
    timing: Timing,
    jobs: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> SuiteAnswer:
    """Build, count, predict and measure the variants of a suite; what an earlier run left in `output` is kept.

    Args:
        core: microarchitecture of this host.
        predictors: names as of `predictors.choose`.
        machine: whose caches the addresses go through, where `predictors` has the one with ECM.
        timing: measures a function, one at a time, with nothing else of the suite running.
        jobs: processes for all the rest.

    Raises:
        ToolError: a compiler or predictor that is asked for is not installed.
        InputError: the output cannot be written.
    """
    others = [predictor_named(name, core, _ISA, jobs) for name in lifted_names(predictors)]
    for compiler in suite.compilers:
        compiler_version(compiler)
    seconds: dict[str, float] = {}
    traced = machine if OWN_ECM in predictors else None
    target = core if traced is None else f"{core} {traced.sha256}"
    keys = {variant: key_of(variant, suite, target) for variant in suite.variants}
    work = partial(observe, suite=suite, core=core, machine=traced, folder=output / "bin")
    with (
        _timed(seconds, "built, counted and predicted"),
        closing(RecordFile(output / "observed.jsonl", Observed)) as kept,
    ):
        observed, known = _observed(work, keys, kept, output / "bin", jobs, progress)
    with _timed(seconds, "measured"):
        counted = [observed[variant] for variant in suite.variants if not observed[variant].failed]
        measured, known_times = _measured(suite, counted, output, timing, progress)
    by_peer: dict[str, Mapping[str, float | None]] = {}
    for other in others:
        with _timed(seconds, other.name):
            progress(f"asking {other.name}", 0, 1)
            by_peer[other.name] = _peer(other, list(observed.values()), output)
    labels = OWN_WAYS if traced is None else {**OWN_WAYS, ECM: OWN_ECM}
    judged, failed = _judged({one: observed[one] for one in suite.variants}, measured, labels, by_peer)
    versions = {OWN: __version__, **{other.name: other.version for other in others}}
    classes = tuple(_classes(suite, judged))
    kept_records = known + known_times
    answer = SuiteAnswer(suite.file, core, str(output), versions, judged, failed, classes, seconds, kept_records)
    write_file(output / "variants.csv", csv_text(_rows(judged)))
    return answer


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Note how long a stage takes."""
    began = time.monotonic()
    yield
    seconds[stage] = time.monotonic() - began


def _judged(
    observed: Mapping[Variant, Observed],
    measured: Mapping[str, Measured],
    labels: Mapping[str, str],
    by_peer: Mapping[str, Mapping[str, float | None]],
) -> tuple[tuple[Judged, ...], tuple[tuple[str, str], ...]]:
    """The predictions of variants beside their measured times, and which variants have none, and why.

    Args:
        labels: of our own predictions, by way; by_peer: cycles that others predict, by name and variant.
    """
    judged, failed = [], []
    for variant, found in observed.items():
        timed = measured.get(found.name)
        if found.failed or timed is None or timed.failed:
            failed.append((variant.name, found.failed or (timed.failed if timed else "was not measured")))
            continue
        predicted = {label: found.predicted.get(way) for way, label in labels.items()}
        predicted |= {f"{name} (a)": cycles.get(found.name) for name, cycles in by_peer.items()}
        judged.append(Judged(variant, timed.cycles, timed.spread_percent, predicted, found.data, found.is_resident))
    return tuple(judged), tuple(failed)


_ISA = "x86-64"
"""The instruction set of hosts on which functions can be counted and measured."""


def _observed(
    work: Callable[..., Observed],
    keys: Mapping[Variant, str],
    records: RecordFile[Observed],
    folder: Path,
    jobs: int | None,
    progress: Progress,
) -> tuple[dict[Variant, Observed], int]:
    """What is found of all variants by `work`, several at a time, and how many records were there."""
    found: dict[Variant, Observed] = {}
    folder.mkdir(exist_ok=True)
    for variant, key in keys.items():
        record = records.get(variant.name, key)
        if record is not None and (record.failed or Path(record.binary).exists()):
            found[variant] = record
    kept, wanted = len(found), [variant for variant in keys if variant not in found]
    for variant, record in _side_by_side(work, keys, wanted, jobs):
        records.add(record)
        found[variant] = record
        progress("building, counting, predicting", len(found), len(keys))
    return found, kept


def _side_by_side(
    work: Callable[..., Observed], keys: Mapping[Variant, str], wanted: Sequence[Variant], jobs: int | None
) -> Iterator[tuple[Variant, Observed]]:
    if not wanted:
        return
    executor = ProcessPoolExecutor(min(process_count(jobs), len(wanted)), get_context("spawn"))
    try:
        asked = {executor.submit(work, one, key=keys[one]): one for one in wanted}
        for done in as_completed(asked):
            yield asked[done], done.result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _measured(
    suite: SuiteFile, observed: Sequence[Observed], output: Path, timing: Timing, progress: Progress
) -> tuple[dict[str, Measured], int]:
    """The times of variants by name, and how many were there."""
    found: dict[str, Measured] = {}
    kept = 0
    with closing(RecordFile(output / "measured.jsonl", Measured)) as records:
        for number, one in enumerate(observed, 1):
            record = records.get(one.name, one.key)
            if record is None or record.failed:
                cycles, spread, failed = timing(one.binary, suite.function)
                record = Measured(one.name, one.key, cycles, spread, failed)
                records.add(record)
            else:
                kept += 1
            found[one.name] = record
            progress("measuring", number, len(observed))
    return found, kept


def _peer(predictor: Predictor, observed: Sequence[Observed], output: Path) -> dict[str, float | None]:
    """Cycles of a call by variant: sums over the blocks; what it said of each block stays in a file of predictions."""
    wanted = list(dict.fromkeys(code for one in observed for code, _ in one.blocks))
    pieces = [Piece(bytes.fromhex(code), decode_block(bytes.fromhex(code), file=code), "unrolled") for code in wanted]
    answers = {code: answer.cycles for code, answer in zip(wanted, predictor.predict(pieces), strict=True)}
    rows = (f"{code},unrolled,{cycles:g}" for code, cycles in answers.items() if cycles is not None)
    write_file(output / f"{predictor.name}.csv", "\n".join(("hex,notion,cycles", *rows)) + "\n")
    return {one.name: _sum(one, answers) for one in observed if one.blocks}


def _sum(one: Observed, answers: Mapping[str, float | None]) -> float | None:
    """Occurrences × predictions; None where one of the blocks has none."""
    total = 0.0
    for code, count in one.blocks:
        cycles = answers[code]
        if cycles is None:
            return None
        total += count * cycles
    return total


def _classes(suite: SuiteFile, judged: Sequence[Judged]) -> Iterator[Class]:
    """Statistics of all variants whose data the first cache holds, and of each kind of them; the others stand apart."""
    beyond = [one for one in judged if one.is_resident is False]
    judged = [one for one in judged if one.is_resident is not False]
    yield _class("all", "all", judged)
    if beyond:
        yield _class("data", "beyond the first cache", beyond)
    if suite.aside:
        yield _class("kernels", "seen", [one for one in judged if one.variant.kernel.stem not in suite.aside])
        yield _class("kernels", "kept aside", [one for one in judged if one.variant.kernel.stem in suite.aside])
    kinds: tuple[tuple[str, Callable[[Variant], str]], ...] = (
        ("compiler", lambda variant: variant.compiler),
        ("flags", lambda variant: " ".join(variant.flags)),
        ("block", lambda variant: "none" if variant.block is None else str(variant.block)),
        ("kernel", lambda variant: variant.kernel.stem),
    )
    for grouping, name_of in kinds:
        names = dict.fromkeys(name_of(one.variant) for one in judged)
        for name in names if len(names) > 1 else ():
            yield _class(grouping, name, [one for one in judged if name_of(one.variant) == name])


def _class(grouping: str, name: str, members: Sequence[Judged]) -> Class:
    labels = dict.fromkeys(label for one in members for label in one.predicted)
    return Class(grouping, name, len(members), {label: _summary(members, label) for label in labels})


def _summary(members: Iterable[Judged], label: str) -> Summary:
    both = [(cycles, one.measured) for one in members if (cycles := one.predicted.get(label)) is not None]
    return summarise([cycles for cycles, _ in both], [measured for _, measured in both])


def _rows(judged: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    """The head and the rows of the table of all variants."""
    labels = tuple(dict.fromkeys(label for one in judged for label in one.predicted))
    yield "kernel", "compiler", "flags", "block", "measured", "spread_percent", *RESIDENCY, *labels
    for one in judged:
        variant = one.variant
        predicted = ("" if (cycles := one.predicted[label]) is None else f"{cycles:.1f}" for label in labels)
        first = (variant.kernel.stem, variant.compiler, " ".join(variant.flags), str(variant.block or ""))
        data = ("" if one.data is None else f"{one.data[name]:g}" for name in RESIDENCY)
        yield *first, f"{one.measured:.1f}", f"{one.spread_percent:.2f}", *data, *predicted
