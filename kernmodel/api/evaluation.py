"""How good predictions are: blocks and kernels of files, predicted and compared with what the files say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, Literal

from kernmodel.api.result import Result, Views
from kernmodel.errors import InputError
from kernmodel.user_files import File
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.evaluate.kernel_model import JudgedSeries, KernelEvaluation
    from kernmodel.evaluate.model import Evaluation
    from kernmodel.incore.answer.batch import BlockResult


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """Which blocks of a file count, as the options of `kernmodel evaluate blocks` with the same names.

    Attributes:
        uarch: names of microarchitectures ("SKL,ZEN4"); None: all.
        notion: only blocks repeated so, "loop" or "unrolled"; None: all.
        sane: leave out blocks that the file itself doubts.
        distinct: of blocks with the same code count only the first: at the same address modulo 64 ("place"), or at any
            ("code").
    """

    uarch: str | None = None
    notion: Literal["loop", "unrolled"] | None = None
    sane: bool = False
    distinct: Literal["place", "code"] | None = None


ALL_BLOCKS = BlockChoice()


def evaluate_blocks(
    file: File,
    *,
    choice: BlockChoice = ALL_BLOCKS,
    column: str | None = None,
    worst: int = 5,
    operands: Literal["full", "easy"] | None = None,
    memory: Literal["moving", "different", "stack"] | None = None,
    jobs: int | None = None,
    progress: Callable[[Iterator[BlockResult], int], Iterator[BlockResult]] = lambda results, total: results,
) -> Result[Evaluation]:
    """Predictions of blocks beside measurements and other models, as `kernmodel evaluate blocks`.

    >>> km.evaluate_blocks("bhive.csv").answer.groups[0].summaries["kernmodel"].mape

    Args:
        file: of blocks with what is known of them (CSV, plain or gzip); "-" is standard input.
        choice: which of them count.
        column: what to compare with; None: what was measured, else uiCA.
        worst: how many of the worst blocks to keep.
        operands: of divisions; memory: which loads read what the block stored; None: as the reference has it.
        jobs: processes; None: all cores.
        progress: is given the answers and their number, and gives them on.

    Raises:
        InputError: the file cannot be read, or has no such block.
    """
    from kernmodel.evaluate.block_files import read_blocks
    from kernmodel.evaluate.blocks import chosen_blocks, settings_for
    from kernmodel.evaluate.blocks import evaluate_blocks as evaluate
    from kernmodel.studies.predict.incore import named_targets

    name = fspath(file)
    cores = [] if choice.uarch is None else [one.microarchitecture for one in named_targets(choice.uarch)]
    source = read_blocks(name, core=cores[0] if len(cores) == 1 else None, reference=column)
    chosen = chosen_blocks(
        source.blocks,
        cores=frozenset(cores) or None,
        notion=choice.notion,
        sane=choice.sane,
        distinct=choice.distinct,
    )
    if not chosen:
        raise InputError("has no block to evaluate", where=name, todo="choose less with --uarch, --notion and --sane")
    answer = evaluate(
        source,
        chosen,
        settings_for(source, operands, memory),
        jobs=jobs,
        worst=worst,
        progress=lambda results: progress(results, len(chosen)),
    )
    return Result([answer], Views("evaluation:evaluation_report", "evaluation:evaluation_document"))


def evaluate_kernels(
    file: File,
    *,
    kernel: str = "",
    machine: str = "",
    sample: int | None = None,
    cache: Literal["auto", "lc", "sim"] = "auto",
    classic: bool = False,
    worst: int = 5,
    jobs: int | None = None,
    progress: Callable[[Iterator[JudgedSeries], int], Iterator[JudgedSeries]] = lambda series, total: series,
) -> Result[KernelEvaluation]:
    """ECM predictions of measured kernels beside the measurements, as `kernmodel evaluate kernels`.

    >>> [group.name for group in km.evaluate_kernels("measured.csv").answer.groups]

    Args:
        file: of measured kernels (CSV, plain or gzip).
        kernel, machine: only those whose names contain this.
        sample: at most so many points of each series; None: all.
        cache: how the traffic is found, as for `ecm`; classic: predict as the textbook does.
        worst: how many of the worst series the text has.
        jobs: processes; None: all cores.
        progress: is given the series as they come and their number, and gives them on.

    Raises:
        InputError: the file cannot be read, or has no such kernel.
    """
    from kernmodel.evaluate.kernel_files import read_kernels
    from kernmodel.evaluate.kernels import evaluate_kernels as evaluate
    from kernmodel.studies.predict.request import CodeRequest
    from kernmodel.studies.sweep.executors import local_processes

    source = read_kernels(fspath(file))
    chosen = {
        series: points
        for series, points in source.series.items()
        if kernel in series.kernel and machine in series.machine
    }
    if not chosen:
        raise InputError("has no such kernel", where=fspath(file), todo="choose less with --kernel and --machine")
    with local_processes(jobs, len(chosen)) as executor:
        answer = evaluate(
            replace(source, series=chosen),
            cache=cache,
            code=CodeRequest(classic=classic),
            sample=sample,
            executor=executor,
            progress=lambda series: progress(series, len(chosen)),
        )
    return Result([answer], _KERNELS, {"worst": worst})


_KERNELS = Views(
    "kernel_evaluation:kernel_evaluation_report",
    "kernel_evaluation:kernel_evaluation_document",
    "kernel_evaluation:kernel_evaluation_figure",
)
