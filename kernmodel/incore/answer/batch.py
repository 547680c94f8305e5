"""Many blocks, one after the other or on all cores of the host: queries in, results in their order out."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, TypeVar

from kernmodel.code.blocks import LARGEST_BLOCK, block_of_bytes, parse_hex
from kernmodel.errors import KernmodelError, ToolError
from kernmodel.incore.answer.explain import binding_components, components_of
from kernmodel.incore.answer.predictor import Code, Prediction, Predictor
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.dependences.line_splits import Places
from kernmodel.incore.model import Reason
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.limits import are_lifted, lift, process_count
from kernmodel.value_types import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

Shown = TypeVar("Shown")

_CHUNK = 64
"""Queries that a process gets at once: enough to hide the way to it and back."""
_ALONE = 3 * _CHUNK
"""Queries that are answered before processes are started: for so few, starting takes longer than answering."""
_AHEAD = 4
"""Chunks per process that are read ahead of the answers."""
_COLLECTING = 5_000_000
"""New objects after which garbage is looked for during a batch: nearly all that it keeps it keeps to its end."""


class BlockQuery(NamedTuple):
    """One block to analyse.

    Attributes:
        line: where it stands in its file, 1-based.
        code: hex digits; None where the line could not be read, `error` says why.
        core: name of the microarchitecture.
        notion, offset, places: as in `Settings`, whose values they replace where they are not None.
        error: why there is no code.
    """

    line: int
    code: str | None
    core: str
    notion: Literal["loop", "unrolled"] | None = None
    offset: int | None = None
    error: str | None = None
    places: Places | None = None


class BlockResult(NamedTuple):
    """The answer to one query, without what only a person reads of a single block.

    Attributes:
        line, code: of the query (code "" if there was none).
        core: canonical name of the microarchitecture, the query's where that is not known.
        notion: how the block was repeated, None without a prediction.
        prediction: cycles per pass, None where `error` says why not.
        bound_by: as in `InCore`, "" without a prediction.
        reason: what fills the component that binds, None without a prediction.
        components: cycles by component, of those that apply.
        binding: the components that reach the prediction.
        unknown: forms without a row, which count nothing.
        estimated: forms whose rows were estimated.
        warnings: codes of the warnings among the notes.
        error: what is wrong with the line.
    """

    line: int
    code: str
    core: str
    notion: Literal["loop", "unrolled"] | None = None
    prediction: float | None = None
    bound_by: str = ""
    reason: Reason | None = None
    components: Mapping[str, float] | None = None
    binding: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None


class Cores:
    """The cores that were asked for so far, each opened once."""

    __slots__ = ("_code", "_opened", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opened: dict[str, Predictor] = {}
        self._code = Code()

    def core(self, name: str) -> Core:
        """The core of this name.

        Raises:
            InstructionTableError: as `Core.open`.
        """
        return self.predictor(name).core

    def predictor(self, name: str) -> Predictor:
        """What predicts blocks on the core of this name.

        Raises:
            InstructionTableError: as `Core.open`.
        """
        if name not in self._opened:
            self._opened[name] = Predictor(Core.open(name, self.settings), self.settings, self._code)
        return self._opened[name]


def answer(query: BlockQuery, cores: Cores) -> BlockResult:
    """The result for one query; what is wrong with its line stands in the result."""
    code = (query.code or "").strip()
    if query.error is not None:
        return BlockResult(query.line, code, query.core, error=query.error)
    try:
        return _analysed(query, code, cores)
    except KernmodelError as error:
        text = f"{error.what}; {error.todo}" if error.todo else error.what
        return BlockResult(query.line, code, query.core, error=text)


def _analysed(query: BlockQuery, code: str, cores: Cores) -> BlockResult:
    data = _bytes_of(code, query.line)
    predictor = cores.predictor(query.core)
    found = predictor.predict(data, query.notion, query.offset, query.places) if len(data) <= LARGEST_BLOCK else None
    if found is not None:
        return _of_prediction(query, code, predictor.core.parameters.name, found)
    core = predictor.core
    loop = block_of_bytes(data, file=_place(query.line), isa_name=core.parameters.isa)
    settings = cores.settings
    offset = settings.offset if query.offset is None else query.offset
    own = replace(
        settings, notion=query.notion or settings.notion, offset=offset, places=query.places or settings.places
    )
    incore = analyse_block(loop, core, own)
    applied = {part.name: part.cycles for part in components_of(incore) if part.applies}
    notes = (*loop.notes, *incore.notes)
    return BlockResult(
        line=query.line,
        code=code,
        core=core.parameters.name,
        notion=incore.notion,
        prediction=incore.prediction,
        bound_by=incore.bound_by,
        reason=incore.reason,
        components=applied,
        binding=binding_components(incore),
        unknown=tuple(dict.fromkeys(incore.uncertain)),
        estimated=tuple(dict.fromkeys(row.instruction.form for row in incore.rows if row.source.startswith(ESTIMATED))),
        warnings=tuple(dict.fromkeys(note.code for note in notes if note.kind == "warning")),
    )


def _place(line: int) -> str:
    return f"line {line}"


def _bytes_of(code: str, line: int) -> bytes:
    """The bytes that hex digits stand for: most lines have nothing between them."""
    try:
        return bytes.fromhex(code)
    except ValueError:
        return parse_hex(code, _place(line))


def _of_prediction(query: BlockQuery, code: str, core: str, found: Prediction) -> BlockResult:
    return BlockResult(query.line, code, core, *found)


def refused(result: BlockResult) -> BlockResult:
    """The result as `--strict` has it: one with warnings is an error."""
    if not result.warnings:
        return result
    what = f"refused because of --strict: {', '.join(result.warnings)}"
    return BlockResult(result.line, result.code, result.core, warnings=result.warnings, error=what)


def answer_all(queries: Iterable[BlockQuery], settings: Settings, jobs: int | None = None) -> Iterator[BlockResult]:
    """The results of many queries in their order, as they come; the arguments are those of `answers_shown`.

    Raises:
        ToolError: a process was killed.
    """
    return answers_shown(queries, settings, _itself, jobs)


def answers_shown(
    queries: Iterable[BlockQuery], settings: Settings, show: Callable[[BlockResult], Shown], jobs: int | None = None
) -> Iterator[Shown]:
    """What is to be shown of the results of many queries, in their order, as they come.

    Args:
        queries: read only as far ahead as the processes have work.
        settings: for all of them.
        show: makes of a result what is shown, in the process that answers: a line of text is sent faster than a result.
        jobs: processes, as far as the limit for each processor goes; None: one for each processor that this process may
            use. With 1, each query is answered before the next is read.

    Raises:
        ToolError: a process was killed.
    """
    jobs = process_count(jobs)
    cores = Cores(settings)
    if jobs == 1:
        return _here(queries, cores, show)
    return _with_help(iter(queries), cores, show, jobs)


def _itself(result: BlockResult) -> BlockResult:
    return result


def _here(queries: Iterable[BlockQuery], cores: Cores, show: Callable[[BlockResult], Shown]) -> Iterator[Shown]:
    before = gc.get_threshold()
    if 0 < before[0] < _COLLECTING:
        gc.set_threshold(_COLLECTING)
    try:
        for query in queries:
            yield show(answer(query, cores))
    finally:
        gc.set_threshold(*before)


def _with_help(
    queries: Iterator[BlockQuery], cores: Cores, show: Callable[[BlockResult], Shown], jobs: int
) -> Iterator[Shown]:
    """The same; from the first queries this process learns what the others then know where they are copies of it."""
    yield from _here(islice(queries, _ALONE), cores, show)
    for query in queries:
        yield from _in_processes(chain((query,), queries), cores, show, jobs)


def _in_processes(
    queries: Iterator[BlockQuery], cores: Cores, show: Callable[[BlockResult], Shown], jobs: int
) -> Iterator[Shown]:
    """The same by several processes."""
    from concurrent.futures.process import BrokenProcessPool

    executor = _processes(cores, jobs)
    waiting: deque[Future[list[Shown]]] = deque()
    try:
        while True:
            while len(waiting) < _AHEAD * jobs and (part := tuple(islice(queries, _CHUNK))):
                waiting.append(executor.submit(_answer_chunk, part, show))
            if not waiting:
                return
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ToolError("a process of the batch was killed from outside", todo="call again with --jobs 1") from error
    except BaseException:
        # an interrupt, or nobody wants more: none of them is waited for
        for process in list((executor._processes or {}).values()):
            process.kill()
        raise
    finally:
        executor.shutdown(wait=not waiting, cancel_futures=True)


def _processes(cores: Cores, jobs: int) -> ProcessPoolExecutor:
    """Processes that are copies of this one where that is safe; imported here, since it takes a while."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    if sys.platform == "linux" and threading.active_count() == 1:  # a copy of one thread only might wait for others
        return ProcessPoolExecutor(jobs, get_context("fork"), initializer=_begin, initargs=(cores,))
    arguments = (cores.settings, are_lifted())
    return ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin_anew, initargs=arguments)


_WORKING: list[Cores] = []
"""The cores of a worker process, from the beginning to the end of its life; always empty in the process of the user."""


def _begin(cores: Cores) -> None:
    """Prepare a worker process; an interrupt is the business of the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what was copied stays
    gc.set_threshold(_COLLECTING)
    _WORKING.append(cores)


def _begin_anew(settings: Settings, unlimited: bool) -> None:
    """Prepare a worker process that is no copy."""
    if unlimited:
        lift()
    _begin(Cores(settings))


def _answer_chunk(queries: tuple[BlockQuery, ...], show: Callable[[BlockResult], Shown]) -> list[Shown]:
    return [show(answer(query, _WORKING[0])) for query in queries]
