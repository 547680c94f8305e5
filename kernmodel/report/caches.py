"""What the caches do, as text: hits and misses per cache, evaded write-allocates, how much was simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Table
from kernmodel.report.numbers import count, decimal

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.traffic.model import Evasion, LevelTraffic, PathTraffic, Sampling, Traffic

STORES = {
    "regular": "regular: a store that misses loads its line first (write-allocate)",
    "nt": "streaming (non-temporal): past the caches to memory, no write-allocate",
    "evading": "write-allocates are evaded as the machine's cores can",
}
"""The modes of stores, in words."""

_VICTIMS = ("dirty victims", "clean victims")
_REQUESTS = (
    Column("cache", "left"),
    *(Column(name) for name in ("loads", "hit", "miss", "stores", "hit", "miss", *_VICTIMS)),
)


def level_table(traffic: Traffic) -> tuple[Block, ...]:
    """Per cache its requests with hits and misses, and the lines it gives up, per unit of work."""
    if not traffic.levels:
        return ()
    rows = tuple((level.level, *(decimal(value) for value in _counts(level))) for level in traffic.levels)
    title = f"Requests per cache and unit of work ({traffic.levels[0].level}: accesses; further out: cache lines)"
    return (Heading(title), Table(_REQUESTS, rows))


def _counts(level: LevelTraffic) -> tuple[float, ...]:
    return (
        level.loads,
        level.load_hits,
        level.load_misses,
        level.stores,
        level.store_hits,
        level.store_misses,
        level.dirty_evictions,
        level.clean_evictions,
    )


def byte_tables(traffic: Traffic, machine: Machine) -> tuple[Block, ...]:
    """The bytes of each kind of line over each path and out of each cache, per unit of work and per iteration."""
    size, work = machine.line_bytes, traffic.iterations_per_unit
    kinds = ("loads", "stores", "clean victims")
    paths = tuple((path.path, (path.loads, path.stores, path.clean_victims)) for path in traffic.paths)
    levels = tuple((level.level, (level.dirty_evictions, level.clean_evictions)) for level in traffic.levels)
    return (
        *_byte_table("Bytes per path, by kind", "path", kinds, paths, size, work),
        *_byte_table("Bytes that each cache evicts", "cache", _VICTIMS, levels, size, work),
        *_requests_per_iteration(traffic),
    )


def _byte_table(
    title: str,
    first: str,
    kinds: tuple[str, ...],
    lines: tuple[tuple[str, tuple[float, ...]], ...],
    size: float,
    work: float,
) -> tuple[Block, ...]:
    """Lines per unit of work as bytes per unit of work (B/CL) and per iteration (B/It)."""
    if not lines:
        return ()
    columns = (Column(first, "left"), *(Column(f"{kind} {unit}") for unit in ("B/CL", "B/It") for kind in kinds))
    rows = tuple(
        (
            name,
            *(decimal(value * size, 1) for value in values),
            *(decimal(value * size / work) for value in values),
        )
        for name, values in lines
    )
    return (Heading(title), Table(columns, rows))


def _requests_per_iteration(traffic: Traffic) -> tuple[Block, ...]:
    if not traffic.levels:
        return ()
    work = traffic.iterations_per_unit
    rows = tuple((level.level, *(decimal(value / work, 4) for value in _counts(level))) for level in traffic.levels)
    return (Heading("Requests per cache and iteration"), Table(_REQUESTS, rows))


def evasion_section(traffic: Traffic, machine: Machine) -> tuple[Block, ...]:
    """Which share of the write-allocates from memory is evaded, and between which loads the truth lies."""
    evasion = traffic.evasion
    if evasion is None:
        return ()
    path = traffic.paths[-1]
    pairs = (
        ("write-allocates", f"{decimal(path.write_allocates)} CL per unit of work"),
        ("evaded", evaded_share(evasion)),
        (f"{path.path} loads", _interval(traffic, path, machine)),
        ("reason", evasion.reason),
    )
    return (Heading("Write-allocates from memory"), Fields(pairs))


def evaded_share(evasion: Evasion) -> str:
    """The share that counts as evaded, and the interval in which it lies where it is not known."""
    known = evasion.low == evasion.high
    return f"{evasion.share:.0%}" if known else f"{evasion.share:.0%} ({evasion.low:.0%} … {evasion.high:.0%})"


def _interval(traffic: Traffic, path: PathTraffic, machine: Machine) -> str:
    """The loads over a path, as an interval where the share that is evaded is not known."""
    evasion = traffic.evasion
    lines = [path.loads]
    if evasion is not None and evasion.low != evasion.high:
        lines = [path.loads + (evasion.share - share) * path.write_allocates for share in (evasion.high, evasion.low)]
    size, work = machine.line_bytes, traffic.iterations_per_unit
    units = ((lines, "CL"), ([n * size for n in lines], "B/CL"), ([n * size / work for n in lines], "B/It"))
    return " = ".join(f"{' … '.join(decimal(value) for value in values)} {unit}" for values, unit in units)


def sampling_section(traffic: Traffic, *, verbose: bool = False) -> tuple[Block, ...]:
    """How much of the nest was simulated, and whether the counts settled; `verbose` adds why this much."""
    sampling = traffic.sampling
    if sampling is None:
        return ()
    pairs = [("counted", _counted(sampling)), ("settled", _settled(sampling))]
    if verbose:
        pairs.append(("reason", sampling.reason))
    return (Heading("Simulation"), Fields(tuple(pairs)))


def _counted(sampling: Sampling) -> str:
    what = "whole sweeps" if sampling.whole_sweep else count(sampling.windows, "window")
    return f"{sampling.measured:,} iterations ({what}) after {sampling.warm_up:,} of warm-up"


def _settled(sampling: Sampling) -> str:
    word = "yes" if sampling.settled else "no"
    return f"{word}, counts differ by up to {sampling.spread:.2%} (tolerance {sampling.tolerance:.2%})"
