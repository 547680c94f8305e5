"""Cases files: hierarchies, access sequences and the counters they must give (docs/cache-simulation.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from kernmodel.cachesim.hierarchy_file import HIERARCHY_KEYS, MEMORY_NAMES, hierarchy_of
from kernmodel.cachesim.model import MEMORY, Counters, Hierarchy, LevelCounters, Program
from kernmodel.cachesim.run import (
    MEMORY_COUNTERS,
    MOST_PHASES,
    CheckedCase,
    Difference,
    Given,
    Simulation,
    TraceOptions,
    by_level,
    check_work,
    engine_used,
    run_phases,
)
from kernmodel.cachesim.sequences import AccessSequence, read_sequence
from kernmodel.cachesim.trace_file import Trace
from kernmodel.errors import InputError, Location
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import Entry, by_name, optional, read_entry
from kernmodel.schema.fields import suggest
from kernmodel.user_files import STANDARD_INPUT, is_pipe, opened
from kernmodel.value_types import dataclass

CASES_FILE = FileKind("file of cases in JSON or YAML", "docs/cache-simulation.md")
_LEVEL_COUNTERS = tuple(field.name for field in fields(LevelCounters))
_CASE_KEYS: Mapping[str, str] = {
    **HIERARCHY_KEYS,
    **{key: key for key in ("id", "sequence", "repeat", "phases")},
    "sequences": "sequence",
}
_SHARED_KEYS: Mapping[str, str] = {
    key: name for key, name in HIERARCHY_KEYS.items() if name in ("line", "seed", "combining_buffers")
}

Phase = Mapping[str, Mapping[str, int]]
"""Counters by level and name; those of memory under `MEM`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
        id: its name in the file.
        hierarchy: its caches; None: they come from elsewhere.
        sequences: what a phase executes.
        repeat: number of phases.
        phases: the counters that the phases must give, as far as they are stated; empty: nothing is stated.
        where: its place in the file.
    """

    id: str
    hierarchy: Hierarchy | None
    sequences: tuple[AccessSequence, ...]
    repeat: int
    phases: tuple[Phase, ...]
    where: Location

    def work(self) -> Iterator[Program | Trace]:
        """What a phase executes, in parts."""
        for sequence in self.sequences:
            yield from sequence.parts()


def is_cases_file(path: Path) -> bool:
    """Whether a file is one of cases rather than a trace: by its ending, or because it opens with a bracket."""
    if path.suffix.lower() in (".json", ".yml", ".yaml"):
        return True
    if str(path) == STANDARD_INPUT or is_pipe(path):  # what is looked at would be gone
        return False
    try:
        with opened(path, CASES_FILE.name) as stream:
            return stream.read(4096).lstrip()[:1] in (b"{", b"[")
    except InputError:  # reading it as a trace says what is wrong
        return False


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of a file: a list under `cases`, a list, or a single case.

    Raises:
        InputError: a file that cannot be read or holds no case, an unknown key, a value that cannot be; with its line.
    """
    root = read_entry(path, CASES_FILE)
    entries = root.mapping() if root.is_mapping else {"cases": root}
    shared = {}
    items: tuple[Entry, ...] = (root,)
    if "cases" in entries:
        items = entries["cases"].items()
        shared = by_name({key: entry for key, entry in entries.items() if key in _SHARED_KEYS}, _SHARED_KEYS)
    if not items or not entries.keys() & {"cases", "sequence", "sequences"}:
        raise root.error("holds no case", f"give a {CASES_FILE.name}")
    cases = tuple(_read_case(item, f"case {number}", shared) for number, item in enumerate(items, start=1))
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise InputError(f"is the second case called {case.id!r}", where=case.where, todo="give it another id")
        seen.add(case.id)
    return cases


def find_case(cases: Sequence[Case], name: str | None, file: str) -> Case:
    """The case called `name`; None: the only one.

    Raises:
        InputError: there is none of that name, or there are several and no name.
    """
    names = [case.id for case in cases]
    if name is None and len(cases) > 1:
        raise InputError(f"holds {len(cases)} cases", where=file, todo=f"choose one with --case, such as {names[0]!r}")
    for case in cases:
        if name in (None, case.id):
            return case
    raise InputError(f"there is no case {name!r}", where=file, todo=suggest(str(name), names))


def _read_case(entry: Entry, number: str, shared: Mapping[str, Entry]) -> Case:
    entries = entry.at(number, entry.node).mapping()
    name = optional(entries, "id", Entry.text, number)
    entry = entry.at(name, entry.node)
    keys = {**shared, **by_name(entry.mapping(), _CASE_KEYS)}
    if "sequence" not in keys:
        raise entry.error("has no sequence", "give a sequence with its kind and parameters")
    hierarchy = hierarchy_of(entry, keys) if "levels" in keys else None
    phases: tuple[Phase, ...] = ()
    if "phases" in keys and not keys["phases"].is_null:
        phases = _read_phases(keys["phases"], hierarchy)
    repeat = optional(keys, "repeat", lambda value: value.integer(1, MOST_PHASES), len(phases) or 1)
    if phases and len(phases) != repeat:
        raise keys["phases"].error(f"{len(phases)} phases, but repeat is {repeat}", "correct one of the two")
    items = keys["sequence"].items() if keys["sequence"].is_list else (keys["sequence"],)
    return Case(name, hierarchy, tuple(map(read_sequence, items)), repeat, phases, entry.where)


def _read_phases(entry: Entry, hierarchy: Hierarchy | None) -> tuple[Phase, ...]:
    """The counters stated for each phase."""
    levels = None if hierarchy is None else [level.name for level in hierarchy.levels]
    return tuple(
        {_level_name(value, key, levels): _read_counters(value, key) for key, value in item.mapping().items()}
        for item in entry.items()
    )


def _level_name(entry: Entry, key: str, levels: list[str] | None) -> str:
    if key.lower() in MEMORY_NAMES:
        return MEMORY
    if levels is not None and key not in levels:
        raise entry.error(f"there is no level {key!r}", suggest(key, (*levels, MEMORY)))
    return key


def _read_counters(entry: Entry, level: str) -> dict[str, int]:
    known = MEMORY_COUNTERS if level.lower() in MEMORY_NAMES else _LEVEL_COUNTERS
    entries = entry.mapping()
    for name, value in entries.items():
        if name not in known:
            raise value.error("is no counter", suggest(name, known))
    return {name: value.integer(0) for name, value in entries.items()}


def simulate_case(case: Case, file: str, options: TraceOptions, given: Given | None = None) -> Simulation:
    """Run a case, and compare its counters with those that it states if it runs on the caches that it states them for.

    Args:
        file: name of the cases file.
        given: caches in place of its own.

    Raises:
        InputError: it has no caches, or states counters of a level that they do not have.
        ToolError: engine "compiled" where it was not built.
    """
    chosen = given.hierarchy if given else case.hierarchy
    if chosen is None:
        raise InputError(f"{case.id}: has no levels", where=case.where, todo="give HIERARCHY before the file")
    hierarchy = options.applied_to(chosen)
    repeat = case.repeat if options.repeat is None else options.repeat
    check_work(repeat * sum(sequence.accesses for sequence in case.sequences), options.engine, case.where)
    phases = run_phases(hierarchy, case.work, repeat, options)
    comparable = bool(case.phases) and hierarchy == (case.hierarchy or chosen)
    return Simulation(
        hierarchy=hierarchy,
        caches_from=given.name if given else file,
        accesses_from=file,
        case=case.id,
        engine=engine_used(options.engine),
        phases=phases,
        differences=differences(case, phases) if comparable else None,
    )


def check_cases(cases: Sequence[Case], file: str, options: TraceOptions) -> Iterator[CheckedCase]:
    """Run the cases on their own caches; of each, what differs from the counters that it states.

    Raises:
        InputError: a case has no levels, or states no counters; before any runs.
    """
    for case in cases:
        for key, value in (("levels", case.hierarchy), ("phases", case.phases)):
            if not value:
                raise InputError(f"{case.id}: has no {key}", where=case.where, todo="a check needs levels and phases")
    for case in cases:
        yield CheckedCase(case.id, simulate_case(case, file, options).differences or ())


def differences(case: Case, counted: Sequence[Counters]) -> tuple[Difference, ...]:
    """Where the counters of the phases are not those that the case states.

    Raises:
        InputError: it states counters of a level that was not simulated.
    """
    differing = list[Difference]()
    for number, (stated, counters) in enumerate(zip(case.phases, counted, strict=False), start=1):
        found = by_level(counters)
        for level, values in stated.items():
            if level not in found:
                what = f"{case.id}: states counters of the level {level!r}, which the hierarchy does not have"
                raise InputError(what, where=case.where, todo=suggest(level, found))
            pairs = ((counter, expected, found[level][counter]) for counter, expected in values.items())
            differing += [Difference(number, level, *each) for each in pairs if each[1] != each[2]]
    return tuple(differing)
