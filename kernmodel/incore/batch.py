"""Many blocks, one after the other or on all cores of the host: queries in, results in their order out."""

from __future__ import annotations

import gc
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import chain, islice
from typing import Literal, NamedTuple

from kernmodel.assembly.blocks import LARGEST_BLOCK, block_of_bytes, parse_hex
from kernmodel.errors import KernmodelError, ToolError
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.estimate import ESTIMATED
from kernmodel.incore.explain import binding_components, components_of
from kernmodel.incore.predict import Code, Prediction, Predictor

_CHUNK = 64
"""Queries that a process gets at once: enough to hide the way to it and back."""
_ALONE = 3 * _CHUNK
"""Queries up to which starting processes takes longer than answering."""
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
        notion, offset: as in `Settings`, whose values they replace where they are not None.
        error: why there is no code.
    """

    line: int
    code: str | None
    core: str
    notion: Literal["loop", "unrolled"] | None = None
    offset: int | None = None
    error: str | None = None


class BlockResult(NamedTuple):
    """The answer to one query, without what only a person reads of a single block.

    Attributes:
        line, code: of the query (code "" if there was none).
        core: canonical name of the microarchitecture, the query's where that is not known.
        notion: how the block was repeated, None without a prediction.
        prediction: cycles per pass, None where `error` says why not.
        bound_by: as in `InCore`, "" without a prediction.
        reason: one sentence why.
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
    reason: str = ""
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
    where = f"line {query.line}"
    data = _bytes_of(code, where)
    predictor = cores.predictor(query.core)
    if len(data) <= LARGEST_BLOCK and (found := predictor.predict(data, query.notion, query.offset)) is not None:
        return _of_prediction(query, code, predictor.core.parameters.name, found)
    core = predictor.core
    loop = block_of_bytes(data, file=where)
    settings = cores.settings
    if query.notion is not None or query.offset is not None:
        notion = settings.notion if query.notion is None else query.notion
        settings = replace(settings, notion=notion, offset=settings.offset if query.offset is None else query.offset)
    incore = analyse_block(loop, core, settings)
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


def _bytes_of(code: str, where: str) -> bytes:
    """The bytes that hex digits stand for: most lines have nothing between them."""
    try:
        return bytes.fromhex(code)
    except ValueError:
        return parse_hex(code, where)


def _of_prediction(query: BlockQuery, code: str, core: str, found: Prediction) -> BlockResult:
    return BlockResult(query.line, code, core, *found)


def refused(result: BlockResult) -> BlockResult:
    """The result as `--strict` has it: one with warnings is an error."""
    if not result.warnings:
        return result
    what = f"refused because of --strict: {', '.join(result.warnings)}"
    return BlockResult(result.line, result.code, result.core, warnings=result.warnings, error=what)


def answer_all(queries: Iterable[BlockQuery], settings: Settings, jobs: int | None = None) -> Iterator[BlockResult]:
    """The results of many queries in their order, as they come.

    Args:
        queries: read only as far ahead as the processes have work.
        settings: for all of them.
        jobs: processes; None: one for each core that this process may use. With 1, each query is answered before the
            next is read.

    Raises:
        ToolError: a process was killed.
    """
    jobs = jobs or _usable_cores()
    if jobs == 1:
        return _here(queries, settings)
    queries = iter(queries)
    first = tuple(islice(queries, _ALONE))
    if len(first) < _ALONE:
        return _here(first, settings)
    return _in_processes(chain(first, queries), settings, jobs)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _here(queries: Iterable[BlockQuery], settings: Settings) -> Iterator[BlockResult]:
    cores = Cores(settings)
    before = gc.get_threshold()
    if 0 < before[0] < _COLLECTING:
        gc.set_threshold(_COLLECTING)
    try:
        for query in queries:
            yield answer(query, cores)
    finally:
        gc.set_threshold(*before)


def _in_processes(queries: Iterator[BlockQuery], settings: Settings, jobs: int) -> Iterator[BlockResult]:
    """The same by several processes, each of which opens the cores it meets once."""
    executor = ProcessPoolExecutor(jobs, initializer=_begin, initargs=(settings,))
    waiting: deque[Future[list[BlockResult]]] = deque()
    try:
        while True:
            while len(waiting) < _AHEAD * jobs and (part := tuple(islice(queries, _CHUNK))):
                waiting.append(executor.submit(_answer_chunk, part))
            if not waiting:
                return
            yield from waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ToolError("a process of the batch was killed from outside", todo="call again with --jobs 1") from error
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


_WORKING: list[Cores] = []
"""The cores of a worker process, from the beginning to the end of its life; always empty in the process of the user."""


def _begin(settings: Settings) -> None:
    """Prepare a worker process; an interrupt is the business of the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(_COLLECTING)
    _WORKING.append(Cores(settings))


def _answer_chunk(queries: tuple[BlockQuery, ...]) -> list[BlockResult]:
    return [answer(query, _WORKING[0]) for query in queries]
