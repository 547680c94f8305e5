"""The answer of `kernmodel simulate` as text: the caches, and what each phase counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kernmodel.cachesim.model import MEMORY
from kernmodel.cachesim.run import by_level
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count
from kernmodel.units import format_bytes

if TYPE_CHECKING:
    from kernmodel.cachesim.model import CacheSpec, Counters
    from kernmodel.cachesim.run import Difference, Simulation


def simulation_report(simulation: Simulation) -> tuple[Block, ...]:
    """The whole answer."""
    several = len(simulation.phases) > 1
    tables = (
        block
        for number, counters in enumerate(simulation.phases, start=1)
        for block in _phase(counters, f"Phase {number}: requests" if several else "Requests")
    )
    return (*_inputs(simulation), *_caches(simulation), *tables, *_stated(simulation))


def check_lines(case: str, differences: Iterable[Difference]) -> tuple[str, ...]:
    """What is to be said of a checked case: a line, or one for each difference."""
    return tuple(f"{case}: {difference}" for difference in differences) or (f"{case}: ok",)


def check_summary(checked: Mapping[str, tuple[Difference, ...]]) -> str:
    """The last line of a check."""
    failed = sum(map(bool, checked.values()))
    found = f"{failed} with differences" if failed else "all as stated"
    return f"{count(len(checked), 'case')}, {found}"


def _inputs(simulation: Simulation) -> tuple[Block, ...]:
    case = (("case", simulation.case),) if simulation.case else ()
    pairs = (
        ("accesses", f"{simulation.phases[0].accesses} from {simulation.accesses_from}"),
        *case,
        ("caches from", simulation.caches_from),
        ("engine", simulation.engine),
    )
    return (Heading("Cache simulation"), Fields(pairs))


def _caches(simulation: Simulation) -> tuple[Block, ...]:
    left = ("cache", "size", "geometry", "policy", "load from", "store to", "rules")
    columns = tuple(Column(name, "left") for name in left)
    rows = tuple(
        (
            level.name,
            format_bytes(level.size_bytes),
            f"{level.sets} × {level.ways} × {level.line_bytes} B",
            level.policy,
            level.load_from if level.victim_level is None else f"{level.victim_level}, {level.load_from}",
            level.store_to,
            ", ".join(_rules(level)),
        )
        for level in simulation.hierarchy.levels
    )
    return (Heading("Caches (sets × ways × line)"), Table(columns, rows))


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
        yield "hashed"


def _phase(counters: Counters, title: str) -> tuple[Block, ...]:
    found = by_level(counters)
    memory = found.pop(MEMORY)
    return (Heading(title), _levels(found), Fields(tuple((_words(name), str(value)) for name, value in memory.items())))


def _levels(found: Mapping[str, Mapping[str, int]]) -> Table:
    names = tuple(next(iter(found.values())))
    columns = (Column("cache", "left"), *(Column(_words(name)) for name in names))
    return Table(columns, tuple((level, *(str(values[name]) for name in names)) for level, values in found.items()))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _stated(simulation: Simulation) -> tuple[Block, ...]:
    """How the counters compare with those that the case states."""
    if simulation.differences is None:
        return ()
    lines = (Line(f"  {difference}", "warning") for difference in simulation.differences)
    return (Heading("Counters that the case states"), *(tuple(lines) or (Line("  all as stated"),)))
