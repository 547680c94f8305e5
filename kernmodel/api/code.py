"""Code on cores: the in-core analysis of loops and blocks, instruction mixes, and the rows of instruction tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel.api.options import (
    CODE,
    CodeOptions,
    Kernel,
    Nest,
    Port,
    Sizes,
    Values,
    check_alignment,
    is_c_source,
    kernel_request,
    one_point_of,
    refuse,
    values_by_name,
    values_of,
)
from kernmodel.api.result import Result, TableViews, Views
from kernmodel.errors import InputError, UsageError
from kernmodel.output_files import output_file, write_file
from kernmodel.studies.predict.request import Loop
from kernmodel.user_files import File, Source, source_of
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.incore.answer.batch import BlockQuery, BlockResult
    from kernmodel.incore.core import Settings
    from kernmodel.studies.predict.incore import Outcome, Target
    from kernmodel.studies.predict.mix import MixAnswer
    from kernmodel.studies.predict.request import InCoreAnswer

ALL = "all"
GRAPHS = (".dot", ".gv", ".svg")


@dataclass(frozen=True, slots=True)
class CoreOptions:
    """How a core executes code, as the options of the command line with the same names.

    Attributes:
        notion: "loop", "unrolled" (copied one behind the other), or "auto": a loop if it ends in a branch.
        align: address of the first byte modulo 64; None: as it stands; "all": every one (`analyse_loop` only).
        data_align: bytes at multiples of which arrays begin; the prediction takes them there and at no multiple of
            more. None: at cache lines.
        operands: of divisions, "full": those that take longest, "easy": few bits.
        memory: which loads read what the block stored, "moving", "different" or "stack".
        estimate: give instructions without a row that of their nearest relative.
        ports: how uops share ports, "optimal" or "even".
    """

    notion: Literal["auto", "loop", "unrolled"] = "auto"
    align: int | Literal["all"] | None = None
    data_align: int | None = None
    operands: Literal["full", "easy"] = "full"
    memory: Literal["moving", "different", "stack"] = "moving"
    estimate: bool = False
    ports: Port = "optimal"

    def __post_init__(self) -> None:
        check_alignment(self.data_align)

    def request(self) -> Settings:
        """The request for the stages."""
        from kernmodel.incore.core import CODE_ALIGNMENT, Settings
        from kernmodel.incore.dependences.line_splits import Places

        return Settings(
            notion=self.notion,
            port_model=self.ports,
            offset=self.align if isinstance(self.align, int) else None,
            operands=self.operands,
            memory=self.memory,
            estimate=self.estimate,
            places=Places((self.data_align or 0) % CODE_ALIGNMENT),
            data_align=self.data_align,
        )


CORE = CoreOptions()


def analyse_loop(
    code: Source | bytes | Loop,
    machine: File | None = None,
    *,
    uarch: str | None = None,
    core: CoreOptions = CORE,
    explain: bool = False,
    strict: bool = False,
) -> Analysis:
    """How a core executes one loop or block, as `kernmodel incore`.

    >>> print(km.analyse_loop(bytes.fromhex("4801d84801c3ffc975f7"), uarch="SKL"))

    Args:
        code: an assembly file or text, an object or executable, machine code as bytes, or a `Loop` of one of these.
        machine, uarch: the machine whose core it is, or a microarchitecture in its place.
        core: how the core executes it.
        explain: also why, and what would help.
        strict: raise `StrictError` for the first warning.

    Raises:
        KernmodelError: the input is at fault.
    """
    targets = targets_of(machine, uarch)
    if len(targets) > 1:
        raise UsageError("names several cores", where="--uarch", todo="ask km.analyse_loops")
    return analysis_on(targets[0], _loop_of(code), core, explain=explain, strict=strict)


def analysis_on(target: Target, code: Loop, core: CoreOptions, *, explain: bool, strict: bool) -> Analysis:
    """What `analyse_loop` answers, of a core that is known."""
    from kernmodel.studies.predict.incore import analyse_one

    return Analysis(partial(analyse_one, code, target), core, explain=explain, strict=strict)


def analyse_kernel(
    kernel: Kernel,
    machine: File,
    *,
    code: CodeOptions = CODE,
    core: CoreOptions = CORE,
    explain: bool = False,
    strict: bool = False,
    **sizes: Sizes,
) -> Analysis:
    """How the core of a machine executes the compiled loop of a C kernel, as `kernmodel incore kernel.c`.

    >>> km.analyse_kernel("triad.c", machine="clx").answer.incore.prediction

    Args:
        code: which code executes the kernel; its `ports`, `classic`, `data_align` and `array_offsets` are of `ecm`.
        kernel, machine, sizes: as for `ecm`; one value of each size. core, explain, strict: as for `analyse_loop`.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.predict.incore import analyse_kernel as study

    request = kernel_request(kernel, machine, one_point_of(sizes, kernel))
    return Analysis(partial(study, request, code.request()), core, explain=explain, strict=strict)


def analyse_loops(
    code: Source | bytes | Loop,
    machine: File | None = None,
    *,
    uarch: str | None = None,
    core: CoreOptions = CORE,
    strict: bool = False,
) -> Result[Outcome]:
    """A table of loops on cores: of several microarchitectures ("SKL,ZEN4", "all"), or of all loops of the code.

    >>> print(km.analyse_loops("loop.o", uarch="all"))

    Args:
        code, machine, uarch, core, strict: as for `analyse_loop`.

    Raises:
        KernmodelError: the input is at fault.
    """
    if core.align == ALL:
        raise UsageError("wants one loop on one core", where="--align", todo="leave it out of a table")
    return outcomes_on(targets_of(machine, uarch), _loop_of(code), core, strict=strict)


def outcomes_on(targets: Sequence[Target], code: Loop, core: CoreOptions, *, strict: bool) -> Result[Outcome]:
    """What `analyse_loops` answers, of cores that are known."""
    from kernmodel.studies.predict.incore import analyse_many

    return Result(analyse_many(code, targets, core.request()), _OUTCOMES, total=0, strict=strict)


def targets_of(machine: File | None, uarch: str | None) -> tuple[Target, ...]:
    """The cores that are meant.

    Raises:
        UsageError: both are given, or none; KernmodelError: one is unknown.
    """
    from kernmodel.studies.predict.incore import machine_target, named_targets

    if (machine is None) == (uarch is None):
        raise UsageError("give either a machine or a microarchitecture", todo="write -m clx or --uarch CLX")
    return (machine_target(fspath(machine)),) if machine is not None else named_targets(uarch or "")


def _loop_of(code: Source | bytes | Loop) -> Loop:
    if isinstance(code, Loop):
        return code
    return Loop(hex_digits=code.hex()) if isinstance(code, bytes) else Loop(code)


class Analysis(Result["InCoreAnswer"]):
    """The answer of `analyse_loop` and `analyse_kernel`; `graph` is its dependency graph."""

    _known: list[InCoreAnswer]

    def __init__(
        self, analyse: Callable[[Settings], InCoreAnswer], core: CoreOptions, *, explain: bool, strict: bool
    ) -> None:
        from kernmodel.studies.predict.incore import alignments, explanation

        self._settings = core.request()
        answer = analyse(self._settings)
        self.explanation = explanation(answer, self._settings) if explain else None
        self.alignments = alignments(answer, self._settings) if core.align == ALL else ()
        more = {"explanation": self.explanation, "alignments": self.alignments}
        super().__init__([answer], _ANALYSIS, more, strict=strict)

    def graph(self, path: File | None = None) -> str:
        """The dependency graph in the language of Graphviz, also written to `path` (.dot, or drawn: .svg).

        Raises:
            UsageError: another ending; ToolError: an SVG file, but no Graphviz.
        """
        from kernmodel.report.dependency_graph import dot_text, svg_of
        from kernmodel.studies.predict.incore import dependencies

        target = None if path is None else graph_file(fspath(path))
        title = f"{self.answer.origin.file} on {self.answer.parameters.name}"
        text = dot_text(self.answer.incore, dependencies(self.answer, self._settings), title)
        if target is not None:
            write_file(target, svg_of(text) if target.suffix.lower() == ".svg" else text)
        return text


_ANALYSIS = Views("incore:incore_report", "incore:incore_document")


def graph_file(path: str) -> Path:
    """The file for a dependency graph.

    Raises:
        UsageError: a directory, or an ending of something else.
    """
    target = output_file(path, "--graph")
    if target.suffix.lower() not in GRAPHS:
        todo = f"end it in {', '.join(GRAPHS)}; Graphviz draws others: dot -Tpng graph.dot > graph.png"
        raise UsageError(f"the ending {target.suffix!r} is not known", where=f"--graph {path}", todo=todo)
    return target


_OUTCOMES = Views("", "", table=TableViews("incore:OUTCOME_COLUMNS", "incore:incore_sweep_document"))


def analyse_blocks(
    file: File,
    machine: File | None = None,
    *,
    uarch: str | None = None,
    hex_column: str | None = None,
    core: CoreOptions = CORE,
    jobs: int | None = None,
    strict: bool = False,
) -> Result[BlockResult]:
    """Many blocks on one core, as `kernmodel incore --batch`; what is wrong with a block stands in its answer.

    >>> [one.prediction for one in km.analyse_blocks("blocks.txt", uarch="SKL")]

    Args:
        file: hex digits a line, or CSV; "-" is standard input. hex_column: the column of a CSV file ("hex").
        machine, uarch, core: as for `analyse_loop`.
        jobs: processes; None: all cores.
        strict: blocks with warnings are errors.

    Raises:
        KernmodelError: the file cannot be read, or (after the last block) no block has an answer.
    """
    from kernmodel.incore.answer.batch import answer_all, refused

    queries, settings = block_queries(file, machine, uarch, hex_column, core)
    results = answer_all(queries, settings, jobs)
    return Result(_answered(map(refused, results) if strict else results, fspath(file)), _BLOCKS, total=0)


def block_lines(
    file: File,
    machine: File | None = None,
    *,
    uarch: str | None = None,
    hex_column: str | None = None,
    core: CoreOptions = CORE,
    jobs: int | None = None,
    strict: bool = False,
) -> Iterator[str]:
    """The answers of `analyse_blocks` as lines of JSON, made where the blocks are analysed: the fastest way to many.

    Raises:
        KernmodelError: as `analyse_blocks`.
    """
    from kernmodel.incore.answer.batch import answers_shown

    queries, settings = block_queries(file, machine, uarch, hex_column, core)
    answered = 0
    for line, is_answer in answers_shown(queries, settings, partial(_line, strict=strict), jobs):
        answered += is_answer
        yield line
    if not answered:
        raise _no_answer(fspath(file))


def block_queries(
    file: File, machine: File | None, uarch: str | None, hex_column: str | None, core: CoreOptions
) -> tuple[Iterator[BlockQuery], Settings]:
    """The blocks of a file on one core, and how it executes them.

    Raises:
        UsageError: several cores, or alignments.
    """
    targets = targets_of(machine, uarch)
    if len(targets) > 1:
        raise UsageError("takes one microarchitecture", where="--batch", todo="call it once for each")
    if core.align == ALL:
        raise UsageError("wants one block", where="--align all", todo="give one offset for all blocks of --batch")
    if core.data_align is not None:
        raise UsageError("wants loops, not a batch of blocks", where="--data-align", todo="leave it out of --batch")
    return _queries(fspath(file), hex_column, targets[0].microarchitecture), core.request()


def _queries(file: str, hex_column: str | None, core: str) -> Iterator[BlockQuery]:
    from kernmodel.code.block_files import block_lines, read_lines
    from kernmodel.incore.answer.batch import BlockQuery

    for line in block_lines(read_lines(file), file, hex_column):
        yield BlockQuery(line.number, line.code, core, error=line.error)


def _line(result: BlockResult, *, strict: bool) -> tuple[str, bool]:
    """A line of JSON, and whether it is an answer."""
    from kernmodel.incore.answer.batch import refused
    from kernmodel.report.json.incore import block_line

    shown = refused(result) if strict else result
    return block_line(shown), shown.error is None


def _answered(results: Iterable[BlockResult], file: str) -> Iterator[BlockResult]:
    answered = 0
    for result in results:
        answered += result.error is None
        yield result
    if not answered:
        raise _no_answer(file)


def _no_answer(file: str) -> InputError:
    return InputError("no block has an answer", where=file, todo="the lines say why")


_BLOCKS = Views("", "", table=TableViews("incore:BLOCK_COLUMNS", "incore:blocks_document"))


def mix(
    kernel: Kernel | None,
    machine: File | None = None,
    *,
    file: File | None = None,
    nests: Values = (),
    weigh: Mapping[int, float] | None = None,
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[MixAnswer]:
    """Instruction mix and load/store ratio of a kernel or of code, as `kernmodel mix`.

    >>> print(km.mix("triad.c", machine="clx"))

    Args:
        kernel: a C kernel as for `ecm`, which needs a machine; an assembly file or text; None for `file` alone.
        file: a mix as a file, in place of code.
        nests: several loop nests of the kernel, each weighted by its iterations: "1,2" or "1-3".
        weigh: passes of several assembly loops by their number.
        code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.predict.mix import mix_of_code, mix_of_file, mix_of_kernel

    named = None if machine is None else fspath(machine)
    nest = kernel if isinstance(kernel, Nest) else Nest("" if kernel is None else kernel)
    of_source: dict[str, object] = {"-D": tuple(values_by_name(sizes)), "--nest": nest.nest}
    of_source |= {"--function": nest.function, "--nests": nests}
    of_source |= {"--asm": code.asm, "--compiler": code.compiler, "--flags": code.flags}
    of_code: dict[str, object] = {"--loop": code.loop, "--lines": code.lines, "--syntax": code.syntax}
    of_code |= {"--iterations-per-pass": code.iterations_per_pass}
    if file is not None:
        given = {"a FILE": kernel, **of_source, **of_code, "--weigh": weigh}
        refuse(given, "--mix gives the mix itself")
        return Result([mix_of_file(fspath(file), machine=named)], _MIX, strict=strict)
    if kernel is None:
        raise UsageError("there is nothing to count", todo="give a C kernel, an assembly file, or --mix FILE")
    if not is_c_source(nest.source):
        refuse(of_source, f"{source_of(nest.source)} is assembly, not C source")
        if weigh and code.request().of_one_loop:
            what = "does not fit --loop, --lines and --iterations-per-pass"
            raise UsageError(what, where="--weigh", todo="give one of them")
        answer = mix_of_code(source_of(nest.source), code.request(), machine=named, passes=weigh)
        return Result([answer], _MIX, strict=strict)
    refuse({"--weigh": weigh}, "a C kernel weighs its nests by their iterations (--nests)")
    if machine is None:
        raise UsageError("a C kernel needs a machine, whose compiler and flags are used", todo="write -m clx")
    numbers = values_of(nests, "--nests") if nests != () else ()
    if numbers and (nest.nest is not None or code.request().of_one_loop):
        what = "does not fit --nest, --loop, --lines and --iterations-per-pass"
        raise UsageError(what, where="--nests", todo="give one of them")
    request = kernel_request(nest, machine, one_point_of(sizes, nest))
    return Result([mix_of_kernel(request, code.request(), numbers)], _MIX, strict=strict)


_MIX = Views("mix:mix_report", "roofline:mix_document")
