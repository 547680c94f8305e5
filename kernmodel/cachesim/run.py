"""Runs in phases: the same accesses several times, counted anew each time while the caches keep their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import Literal

from kernmodel.cachesim.engine import Engine, Simulator, compiled_available
from kernmodel.cachesim.model import MEMORY, Counters, Hierarchy, Policy, Program
from kernmodel.cachesim.programs import address_limit
from kernmodel.cachesim.trace_file import Trace, read_trace
from kernmodel.errors import InputError, Location
from kernmodel.limits import KEPT_ACCESSES, PYTHON_ACCESSES, SIMULATED_ACCESSES, Limit
from kernmodel.value_types import NamedTuple, dataclass

MEMORY_COUNTERS = ("memory_loads", "memory_stores", "streamed_lines", "streamed_parts")
"""The counters of memory, by their names in `Counters`."""
MOST_PHASES = 100_000
"""Phases of a run; each keeps its counters."""

EngineUsed = Literal["compiled", "python"]


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How a trace or a case is simulated.

    Attributes:
        policy: replacement in all caches; None: as the hierarchy says.
        seed: of random replacement; None: as the hierarchy says.
        repeat: number of phases; None: as the case says, else one.
        engine, skip: as `Simulator` takes them.
    """

    policy: Policy | None = None
    seed: int | None = None
    repeat: int | None = None
    engine: Engine = "auto"
    skip: bool = True

    def applied_to(self, hierarchy: Hierarchy) -> Hierarchy:
        """The hierarchy with the policy and the seed that were asked for."""
        if self.policy is not None:
            levels = tuple(replace(level, policy=self.policy) for level in hierarchy.levels)
            hierarchy = replace(hierarchy, levels=levels)
        return hierarchy if self.seed is None else replace(hierarchy, seed=self.seed)


@dataclass(frozen=True, slots=True)
class Given:
    """A hierarchy and where it comes from: the name of a file or machine."""

    hierarchy: Hierarchy
    name: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A counter that is not as a case states it.

    Attributes:
        phase: number of the phase, from 1.
        level: name of a cache, or `MEM`.
        counter: its name.
        expected, counted: what is stated, and what the simulation counts.
    """

    phase: int
    level: str
    counter: str
    expected: int
    counted: int

    def __str__(self) -> str:
        return f"phase {self.phase}: {self.level} {self.counter}: {self.expected} expected, {self.counted} counted"


class CheckedCase(NamedTuple):
    """A case that states its counters: its id, and where the simulation counts something else."""

    case: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """What was simulated, and what it counted.

    Attributes:
        hierarchy: the caches as simulated.
        caches_from: file or machine that describes them.
        accesses_from: the trace or cases file.
        case: the case of a cases file, None for a trace.
        engine: which engine ran.
        phases: what each phase counted.
        differences: counters that are not as the case states them; None: it states none for these caches.
    """

    hierarchy: Hierarchy
    caches_from: str
    accesses_from: str
    case: str | None
    engine: EngineUsed
    phases: tuple[Counters, ...]
    differences: tuple[Difference, ...] | None = None


def simulate_trace(given: Given, file: str, options: TraceOptions) -> Simulation:
    """Run a trace file (`-`: standard input).

    Raises:
        InputError: a malformed trace.
        ToolError: engine "compiled" where it was not built.
    """
    hierarchy = options.applied_to(given.hierarchy)
    limit = address_limit(hierarchy)
    repeat = options.repeat or 1
    if repeat > 1:
        blocks = tuple(_limited(read_trace(file, limit), KEPT_ACCESSES, file))
        check_work(sum(map(len, blocks)) * repeat, options.engine, file)
        phases = run_phases(hierarchy, lambda: blocks, repeat, options)
    else:
        phases = run_phases(
            hierarchy, lambda: _limited(read_trace(file, limit), _most_accesses(options.engine), file), repeat, options
        )
    return Simulation(hierarchy, given.name, file, None, engine_used(options.engine), phases)


def check_work(accesses: int, engine: Engine, where: Location | str) -> None:
    """Refuse a run that would take hours.

    Raises:
        InputError: more accesses than the limit of the engine.
    """
    most = _most_accesses(engine)
    if most.exceeded(accesses):
        raise InputError(f"{accesses:,} accesses", where=where, todo=most.todo("take fewer, or fewer phases"))


def _most_accesses(engine: Engine) -> Limit:
    return SIMULATED_ACCESSES if engine_used(engine) == "compiled" else PYTHON_ACCESSES


def _limited(blocks: Iterable[Trace], most: Limit, file: str) -> Iterator[Trace]:
    """The blocks of a trace, as long as they are not too many."""
    accesses = 0
    for block in blocks:
        accesses += len(block)
        if most.exceeded(accesses):
            todo = most.todo("give a part of it that stands for the whole")
            raise InputError(f"has more than {most.text} accesses", where=file, todo=todo)
        yield block


def run_phases(
    hierarchy: Hierarchy, work: Callable[[], Iterable[Program | Trace]], repeat: int, options: TraceOptions
) -> tuple[Counters, ...]:
    """What each of `repeat` phases counts.

    Every phase executes what `work` returns and then sends what the combining buffers hold to memory.

    Raises:
        InputError: a hierarchy that contradicts itself, an address that leaves 64 bits.
        ToolError: engine "compiled" where it was not built.
    """
    simulator = Simulator(hierarchy, engine=options.engine, skip=options.skip)
    return tuple(_phase(simulator, work()) for _ in range(repeat))


def _phase(simulator: Simulator, parts: Iterable[Program | Trace]) -> Counters:
    simulator.reset_counters()
    for part in parts:
        if isinstance(part, Trace):
            simulator.run_trace(part.kinds, part.addresses, part.sizes)
        else:
            simulator.run(part)
    simulator.flush()
    return simulator.counters()


def engine_used(engine: Engine) -> EngineUsed:
    """The engine that this choice takes."""
    if engine == "auto":
        return "compiled" if compiled_available() else "python"
    return engine


def by_level(counters: Counters) -> dict[str, dict[str, int]]:
    """The counters as a phase of a cases file has them: by level, those of memory under `MEM`."""
    levels = {name: asdict(level) for name, level in counters.levels.items()}
    return {**levels, MEMORY: {name: getattr(counters, name) for name in MEMORY_COUNTERS}}
