"""What the caches do, as text: hits and misses per cache, evaded write-allocates, how much was simulated, and layer
conditions beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Column, Heading, Line, fields, left, right, table
from kernmodel.report.number_text import decimal
from kernmodel.traffic.model import QUANTITIES
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.traffic.model import Difference, Evasion, LevelTraffic, PathTraffic, Sampling, Traffic

STORES = {
    "regular": "regular: a store that misses loads its line first (write-allocate)",
    "nt": "streaming (non-temporal): past the caches to memory, no write-allocate",
    "evading": "write-allocates are evaded as the machine's cores can",
}
"""The modes of stores, in words."""

_LINES = {"loads": "loads", "stores": "stores", "clean victims": "clean_victims"}
_VICTIMS = {"dirty victims": "dirty_evictions", "clean victims": "clean_evictions"}


def level_table(traffic: Traffic) -> Blocks:
    """Per cache its requests with hits and misses, and the lines it gives up, per unit of work."""
    inner = traffic.levels[0].level if traffic.levels else ""
    return table(
        f"Requests per cache and unit of work ({inner}: accesses; further out: cache lines)",
        _requests(1.0, 2),
        traffic.levels,
    )


def _requests(work: float, digits: int) -> tuple[Column, ...]:
    """Requests and victims of a cache over so many iterations or units of work."""

    def per_work(value: float) -> str:
        return decimal(value / work, digits)

    return (
        left("cache", "level"),
        right("loads", "loads", per_work),
        right("hit", "load_hits", per_work),
        right("miss", "load_misses", per_work),
        right("stores", "stores", per_work),
        right("hit", "store_hits", per_work),
        right("miss", "store_misses", per_work),
        *(right(name, attribute, per_work) for name, attribute in _VICTIMS.items()),
    )


def byte_tables(traffic: Traffic, machine: Machine) -> Blocks:
    """The bytes of each kind of line over each path and out of each cache, per unit of work and per iteration."""
    size, work = machine.line_bytes, traffic.iterations_per_unit

    def in_bytes(
        title: str, first: Column, kinds: dict[str, str], items: Iterable[PathTraffic | LevelTraffic]
    ) -> Blocks:
        scales = {"B/CL": lambda lines: decimal(lines * size, 1), "B/It": lambda lines: decimal(lines * size / work)}
        columns = (
            right(f"{kind} {unit}", name, scale) for unit, scale in scales.items() for kind, name in kinds.items()
        )
        return table(title, (first, *columns), items)

    return (
        *in_bytes("Bytes per path, by kind", left("path", "path"), _LINES, traffic.paths),
        *in_bytes("Bytes that each cache evicts", left("cache", "level"), _VICTIMS, traffic.levels),
        *table("Requests per cache and iteration", _requests(work, 4), traffic.levels),
    )


def evasion_section(traffic: Traffic, machine: Machine) -> Blocks:
    """Which share of the write-allocates from memory is evaded, and between which loads the truth lies."""
    evasion = traffic.evasion
    if evasion is None:
        return ()
    path = traffic.paths[-1]
    return fields(
        "Write-allocates from memory",
        ("write-allocates", f"{decimal(path.write_allocates)} CL per unit of work"),
        ("evaded", evaded_share(evasion)),
        (f"{path.path} loads", _interval(evasion, path, machine, traffic.iterations_per_unit)),
        ("reason", evasion.reason),
    )


def evaded_share(evasion: Evasion) -> str:
    """The share that counts as evaded, and the interval in which it lies where it is not known."""
    known = evasion.low == evasion.high
    return f"{evasion.share:.0%}" if known else f"{evasion.share:.0%} ({evasion.low:.0%} … {evasion.high:.0%})"


def _interval(evasion: Evasion, path: PathTraffic, machine: Machine, work: float) -> str:
    """The loads over a path, as an interval where the share that is evaded is not known."""
    lines = [path.loads]
    if evasion.low != evasion.high:
        lines = [path.loads + (evasion.share - share) * path.write_allocates for share in (evasion.high, evasion.low)]
    size = machine.line_bytes
    units = ((lines, "CL"), ([n * size for n in lines], "B/CL"), ([n * size / work for n in lines], "B/It"))
    return " = ".join(f"{' … '.join(map(decimal, values))} {unit}" for values, unit in units)


def sampling_section(traffic: Traffic, *, verbose: bool = False) -> Blocks:
    """How much of the nest was simulated, and whether the counts settled; `verbose` adds why this much."""
    sampling = traffic.sampling
    if sampling is None:
        return ()
    return fields(
        "Simulation",
        ("counted", _counted(sampling)),
        ("settled", _settled(sampling)),
        ("reason", sampling.reason if verbose else None),
    )


def _counted(sampling: Sampling) -> str:
    what = "whole sweeps" if sampling.whole_sweep else count(sampling.windows, "window")
    return f"{sampling.measured:,} iterations ({what}) after {sampling.warm_up:,} of warm-up"


def _settled(sampling: Sampling) -> str:
    word = "yes" if sampling.settled else "no"
    return f"{word}, counts differ by up to {sampling.spread:.2%} (tolerance {sampling.tolerance:.2%})"


_Row = tuple[str, str, float, float, "Difference | None"]
"""Path, kind of line, both numbers, and how they differ where they do not agree."""


def comparison_section(symbolic: Traffic | None, simulated: Traffic, differences: tuple[Difference, ...]) -> Blocks:
    """Both numbers for each path and kind of line, how much they differ, and the reasons; nothing without the first."""
    if symbolic is None:
        return ()
    from kernmodel.traffic.comparison.agreement import TOLERANCE

    title = f"Layer conditions and simulation (cache lines per unit of work; agree: within {TOLERANCE:.0%})"
    columns = (
        left("path", lambda row: row[0]),
        left("lines", lambda row: _words(row[1])),
        right("layer conditions", lambda row: row[2]),
        right("simulation", lambda row: row[3]),
        right("difference", lambda row: _how_much(row[4])),
        left("reason", lambda row: "agree" if row[4] is None else _words(row[4].reason_code)),
    )
    compared = table(title, columns, _rows(symbolic, simulated, differences))
    if not compared:
        return (Heading(title), Line(f"  agree: no lines move beyond {simulated.levels[0].level}"))
    return (*compared, *_reasons(differences))


def _rows(symbolic: Traffic, simulated: Traffic, found: tuple[Difference, ...]) -> Iterator[_Row]:
    """The rows that are not empty."""
    of_place: dict[tuple[str, str], Difference] = {(one.path, one.quantity): one for one in found}
    for one, other in zip(symbolic.paths, simulated.paths, strict=True):
        for quantity in QUANTITIES:
            before, after = getattr(one, quantity), getattr(other, quantity)
            difference = of_place.get((one.path, quantity))
            if before or after or difference:
                yield one.path, quantity, before, after, difference


def _how_much(difference: Difference | None) -> str:
    return "" if difference is None else f"{difference.simulated - difference.symbolic:+.2f}"


def _reasons(differences: tuple[Difference, ...]) -> tuple[Line, ...]:
    """Every reason once, with what it explains."""
    explained: dict[tuple[str, str], list[str]] = {}
    for difference in differences:
        key = (difference.reason_code, difference.reason)
        explained.setdefault(key, []).append(f"{difference.path} {_words(difference.quantity)}")
    return tuple(Line(f"  {_words(code)} ({', '.join(of)}): {reason}") for (code, reason), of in explained.items())


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")
