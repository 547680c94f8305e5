"""The answer of `kernmodel simulate` as text: the caches, and what each phase counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.cachesim.model import MEMORY
from kernmodel.cachesim.run import by_level
from kernmodel.report.layout import Blocks, Column, Fields, Heading, Line, Table, fields, left, lines, table
from kernmodel.units import format_bytes
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.cachesim.model import CacheSpec, Counters
    from kernmodel.cachesim.run import CheckedCase, Simulation


def simulation_report(simulation: Simulation) -> Blocks:
    """The whole answer."""
    several = len(simulation.phases) > 1
    tables = (
        block
        for number, counters in enumerate(simulation.phases, start=1)
        for block in _phase(counters, f"Phase {number}: requests" if several else "Requests")
    )
    inputs = fields(
        "Cache simulation",
        ("accesses", f"{simulation.phases[0].accesses} from {simulation.accesses_from}"),
        ("case", simulation.case or None),
        ("caches from", simulation.caches_from),
        ("engine", simulation.engine),
    )
    return (*inputs, *_caches(simulation), *tables, *_stated(simulation))


def check_report(checked: Sequence[CheckedCase]) -> Blocks:
    """What is to be said of each checked case, and of all."""
    return tuple(
        Line(text) for text in (*(text for one in checked for text in check_lines(one)), check_summary(checked))
    )


def check_lines(checked: CheckedCase) -> tuple[str, ...]:
    """What is to be said of a checked case: a line, or one for each difference."""
    return tuple(f"{checked.case}: {one}" for one in checked.differences) or (f"{checked.case}: ok",)


def check_summary(checked: Sequence[CheckedCase]) -> str:
    """The last line of a check."""
    failed = sum(bool(one.differences) for one in checked)
    found = f"{failed} with differences" if failed else "all as stated"
    return f"{count(len(checked), 'case')}, {found}"


def _caches(simulation: Simulation) -> Blocks:
    columns = (
        left("cache", "name"),
        left("size", "size_bytes", format_bytes),
        left("geometry", lambda level: f"{level.sets} × {level.ways} × {level.line_bytes} B"),
        left("policy", "policy"),
        left("load from", lambda level: ", ".join(filter(None, (level.victim_level, level.load_from)))),
        left("store to", "store_to"),
        left("rules", lambda level: ", ".join(_rules(level))),
    )
    return table("Caches (sets × ways × line)", columns, simulation.hierarchy.levels, always=True)


def _rules(level: CacheSpec) -> Iterator[str]:
    yield "write-back" if level.write_back else "write-through"
    yield "write-allocate" if level.write_allocate else "no write-allocate"
    if level.victim_level is not None:
        yield f"{'all' if level.clean_victims else 'modified'} victims to {level.victim_level}"
    if level.inclusive:
        yield "inclusive"
    if level.sub_blocks > 1:
        yield f"{level.sub_blocks} sub-blocks"
    if level.hashed:
        yield "hashed" if level.hashed_lines == 1 else f"hashed by {level.hashed_lines} lines"


def _phase(counters: Counters, title: str) -> Blocks:
    """A row for each cache with its counters, and below it those of memory."""
    found = by_level(counters)
    memory = found.pop(MEMORY)
    names = tuple(next(iter(found.values())))
    columns = (Column("cache", "left"), *(Column(_words(name)) for name in names))
    rows = tuple((level, *(str(values[name]) for name in names)) for level, values in found.items())
    pairs = tuple((_words(name), str(value)) for name, value in memory.items())
    return (Heading(title), Table(columns, rows), Fields(pairs))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _stated(simulation: Simulation) -> Blocks:
    """How the counters compare with those that the case states."""
    title = "Counters that the case states"
    if simulation.differences is None:
        return ()
    return lines(title, map(str, simulation.differences), "warning") or lines(title, ["all as stated"])
