"""The simulator: caches with state, fed with traces and programs.

Two engines with the same answers: C code that is compiled when kernmodel is installed, and plain Python
(`kernmodel.cachesim.reference`), which serves where no compiler was there and as the yardstick of the tests.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from kernmodel.cachesim.model import MEMORY, POLICIES, CacheSpec, Hierarchy, Progress
from kernmodel.cachesim.programs import KINDS, check_program, no_iterations, settled, with_a_loop
from kernmodel.errors import InputError, ToolError
from kernmodel.limits import SIMULATED_LINES

if TYPE_CHECKING:
    from kernmodel.cachesim.model import Counters, Position, Program

Engine = Literal["auto", "compiled", "python"]
Numbers = memoryview
"""Whole numbers in one piece of memory, of one byte or of eight bytes each."""

_LARGEST_LINE = 1 << 30
_MOST_LINES = 1 << 32
_MOST_BLOCKS = 64
_MOST_LEVELS = 32


class Backend(Protocol):
    """What both engines do; arguments have been checked."""

    def first_refused(self, kinds: Numbers, addresses: Numbers, sizes: Numbers) -> int | None:
        """Which access of a trace cannot be executed."""

    def run_trace(self, kinds: Numbers, addresses: Numbers, sizes: Numbers) -> None:
        """Many accesses."""

    def reserve(self, references: int) -> None:
        """Make room to count what serves so many references."""

    def sweep(self, program: Program, start: Position | None, most: int | None) -> tuple[int, Position | None]:
        """Execute a program that has a loop from an iteration (None: from the beginning) to the end of the sweep, or
        `most` inner iterations; how many those were, and where it stopped (None: at the end)."""

    def counters(self) -> Counters:
        """What was counted."""

    def reset_counters(self) -> None:
        """All counters to zero."""

    def flush(self) -> None:
        """Send off the combining buffers."""


def compiled_available() -> bool:
    """Whether the compiled engine was built with this installation."""
    from kernmodel.cachesim.compiled import library

    return library() is not None


class Simulator:
    """A hierarchy of caches, empty at first.

    Args:
        hierarchy: the caches; checked by `check_hierarchy`.
        engine: "auto" takes the compiled engine where it is there.
        skip: leave out touches that provably change nothing but the hits of the first level (they are counted). The
            Python engine executes everything in any case.

    Raises:
        InputError: a hierarchy that contradicts itself.
        ToolError: engine "compiled" where it was not built.
    """

    def __init__(self, hierarchy: Hierarchy, *, engine: Engine = "auto", skip: bool = True) -> None:
        check_hierarchy(hierarchy, "the hierarchy")
        self._backend = _backend(hierarchy, engine, skip)

    def run_trace(self, kinds: Sequence[int], addresses: Sequence[int], sizes: Sequence[int]) -> None:
        """Many accesses; sequences (or arrays) of equal length, kinds 0 load, 1 store, 2 streaming store.

        Nothing is executed if any of them is refused.

        Raises:
            InputError: an address range that leaves 64 bits, a kind that does not exist, unequal lengths.
        """
        arrays = _numbers(kinds, "B", "kinds"), _numbers(addresses, "Q", "addresses"), _numbers(sizes, "Q", "sizes")
        if len({len(each) for each in arrays}) > 1:
            raise InputError("kinds, addresses and sizes differ in number", where="the trace")
        refused = self._backend.first_refused(*arrays)
        if refused is not None:
            raise _refusal(refused, *(each[refused] for each in arrays))
        self._backend.run_trace(*arrays)

    def run(self, program: Program, *, start: Position | None = None, iterations: int | None = None) -> Progress:
        """Execute a program from `start` (None: its first iteration).

        It stops right before the next inner iteration: references between the loops that come before that have been
        executed. A `start` that is no iteration means the next one that is; behind the last one it means the first.

        Args:
            iterations: inner iterations to execute; the program begins anew where it ends. None: to the end of the
                sweep.

        Raises:
            InputError: an address that leaves 64 bits, or a program without any iteration.
        """
        check_program(program)
        if start is not None and len(start.values) != len(program.loops):
            raise ValueError("a position has one value per loop")
        if not program.loops:
            start = None
        program = with_a_loop(program)
        self._backend.reserve(len(program.references))
        if iterations == 0:
            return Progress(0, 0, start)
        position = settled(program, start) if start else None
        done = sweeps = 0
        while True:
            rest = None if iterations is None else iterations - done
            executed, stopped = self._backend.sweep(program, position, rest)
            done += executed
            if stopped is not None:
                return Progress(done, sweeps, stopped)
            if not executed and position is None:
                raise no_iterations()
            sweeps, position = sweeps + 1, None
            if iterations is None or done == iterations:
                return Progress(done, sweeps, None)

    def touch(self, program: Program) -> int:
        """Execute one sweep over a program, which may have no iteration; how many inner iterations it has.

        Raises:
            InputError: an address that leaves 64 bits.
        """
        check_program(program)
        self._backend.reserve(len(program.references))
        executed, _ = self._backend.sweep(with_a_loop(program), None, None)
        return executed

    def counters(self) -> Counters:
        """What was counted since the start or the last `reset_counters`.

        `served` has as many rows as the largest program since then has references.
        """
        return self._backend.counters()

    def reset_counters(self) -> None:
        """Set all counters to zero; the caches keep their lines."""
        self._backend.reset_counters()

    def flush(self) -> None:
        """Send what the combining buffers of streaming stores hold to memory."""
        self._backend.flush()


def _backend(hierarchy: Hierarchy, engine: Engine, skip: bool) -> Backend:
    """The engine that is wanted and there."""
    if engine != "python" and compiled_available():
        from kernmodel.cachesim.compiled import CompiledEngine

        return CompiledEngine(hierarchy, skip)
    if engine == "compiled":
        raise ToolError(
            "the compiled engine was not built",
            where="cache simulation",
            todo="install kernmodel where a C compiler is",
        )
    from kernmodel.cachesim.reference import ReferenceEngine

    return ReferenceEngine(hierarchy)


def _outside(where: str, address: int, size: int) -> InputError:
    if size < 1:
        return InputError(f"has {size} bytes", where=where, todo="give a size of at least one byte")
    return InputError(
        f"address {address} with {size} bytes leaves 64 bits", where=where, todo="addresses count from 0 to 2⁶⁴ − 1"
    )


def _refusal(number: int, kind: int, address: int, size: int) -> InputError:
    where = f"access {number + 1} of the trace"
    if kind not in KINDS.values():
        return InputError(f"there is no kind {kind}", where=where, todo="0 is a load, 1 a store, 2 a streaming store")
    return _outside(where, address, size)


def _numbers(values: Sequence[int], code: Literal["B", "Q"], name: str) -> Numbers:
    """The values in one piece of memory, the caller's own if it is one already."""
    signed: Literal["b", "q"] = "b" if code == "B" else "q"
    try:
        view = memoryview(values)  # type: ignore[arg-type]  # not every sequence has a buffer
    except TypeError:
        view = memoryview(b"")
    if view.c_contiguous and view.ndim == 1 and view.itemsize == array(code).itemsize and view:
        if view.format in (code, "L"):
            return view.cast("B").cast(code)
        if view.format in (signed, "l"):
            return view.cast("B").cast(signed)
    try:
        return memoryview(array(code, values.tolist() if hasattr(values, "tolist") else values))
    except (OverflowError, TypeError) as error:
        raise InputError(
            f"the {name} are not all whole numbers of {8 * array(code).itemsize} bits", where="the trace"
        ) from error


def check_hierarchy(hierarchy: Hierarchy, where: str) -> None:
    """Refuse hierarchies that cannot be.

    No sets, no ways, sizes that do not divide, an unknown policy, a link to a level that is absent or above.

    Raises:
        InputError: says which level, what is wrong and what to do.
    """
    if not hierarchy.levels:
        raise InputError("has no cache", where=where, todo="give at least one level")
    if len(hierarchy.levels) > _MOST_LEVELS:
        raise InputError(f"has {len(hierarchy.levels)} caches", where=where, todo=f"give at most {_MOST_LEVELS}")
    _whole(hierarchy.combining_buffers, "combining_buffers", where, least=1)
    if isinstance(hierarchy.seed, bool) or not isinstance(hierarchy.seed, int):
        raise InputError(f"seed is {hierarchy.seed!r}", where=where, todo="give a whole number")
    names = [spec.name for spec in hierarchy.levels]
    for index, spec in enumerate(hierarchy.levels):
        if spec.name in names[:index] or spec.name in ("", MEMORY):
            raise InputError(
                f"level {index + 1} is called {spec.name!r}", where=where, todo=f"give each a name, other than {MEMORY}"
            )
        _check_sizes(spec, f"{where}: {spec.name}")
        _check_links(hierarchy, index, f"{where}: {spec.name}")


def _check_sizes(spec: CacheSpec, where: str) -> None:
    """Sets, ways, lines and sub-blocks of one cache, and its policy."""
    for name in ("sets", "ways", "line_bytes", "sub_blocks", "hashed_lines"):
        _whole(getattr(spec, name), name, where, least=1)
    if spec.line_bytes > _LARGEST_LINE:
        raise InputError(f"lines of {spec.line_bytes} bytes", where=where, todo=f"at most {_LARGEST_LINE} are possible")
    if SIMULATED_LINES.exceeded(spec.sets * spec.ways) or spec.sets * spec.ways > _MOST_LINES:
        todo = SIMULATED_LINES.todo(f"at most {SIMULATED_LINES.text} lines are simulated: take a smaller cache")
        raise InputError(f"{spec.sets} sets of {spec.ways} ways", where=where, todo=todo)
    if spec.line_bytes % spec.sub_blocks or spec.sub_blocks > _MOST_BLOCKS:
        raise InputError(
            f"lines of {spec.line_bytes} bytes do not divide into {spec.sub_blocks} sub-blocks",
            where=where,
            todo=f"give a divisor of the line size, up to {_MOST_BLOCKS}",
        )
    if spec.hashed_lines.bit_count() != 1:
        what = f"{spec.hashed_lines} lines that stay together"
        raise InputError(what, where=where, todo="give a power of two")
    if spec.policy not in POLICIES:
        raise InputError(
            f"unknown replacement policy {spec.policy!r}", where=where, todo=f"use one of {', '.join(POLICIES)}"
        )


def _check_links(hierarchy: Hierarchy, index: int, where: str) -> None:
    """The links of one cache lead outwards, and its victim level has the same lines."""
    spec = hierarchy.levels[index]
    outer = {each.name: each for each in hierarchy.levels[index + 1 :]}
    links = {"load_from": spec.load_from, "store_to": spec.store_to}
    if spec.victim_level is not None:
        links["victim_level"] = spec.victim_level
    for link, name in links.items():
        if name in outer or (name == MEMORY and link != "victim_level"):
            continue
        known = any(name == each.name for each in hierarchy.levels)
        what = "is not further out" if known else "does not exist" if name != MEMORY else "is no cache"
        choices = [*outer, *([] if link == "victim_level" else [MEMORY])]
        todo = f"name one of {', '.join(choices)}" if choices else "leave it out"
        raise InputError(f"{link} names {name!r}, which {what}", where=where, todo=todo)
    victim = outer[spec.victim_level] if spec.victim_level is not None else spec
    if (victim.line_bytes, victim.sub_blocks) != (spec.line_bytes, spec.sub_blocks):
        raise InputError(
            f"its victim level {victim.name} has other lines: {victim.line_bytes} bytes in {victim.sub_blocks} "
            f"sub-blocks, not {spec.line_bytes} in {spec.sub_blocks}",
            where=where,
            todo="give both the same line_bytes and sub_blocks",
        )


def _whole(value: object, name: str, where: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} is {value!r}", where=where, todo=f"give a whole number of at least {least}")
