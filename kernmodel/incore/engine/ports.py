"""Throughput bounds of port usage: the exact bound of an ideal scheduler, and equal shares.

A µop may execute on any port of its set. With perfect scheduling the busiest port of a loop pass is busy for

    max over port sets S of (cycles of all µops that can only go into S) / |S|

(LP duality; Abel, Reineke: Facile, section 4.8, takes the maximum over some of these S). Only unions of port sets that
occur can be maximal, and only within groups of ports that share µops, so few S need a look. `optimal_pressure` is an
assignment that reaches the bound and, below it, spreads the rest as evenly as possible.

Cycles are per pass of the loop body.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernmodel.incore.model import PortUse

_TINY = 1e-9

Pressure = tuple[tuple[float, ...], ...]
"""Cycles per instruction (rows) and port (columns)."""


def optimal_bound(uses: Iterable[PortUse]) -> tuple[float, tuple[str, ...]]:
    """Cycles of the busiest port under an ideal scheduler, and the ports that are busy all that time (in order met)."""
    numbers, cycles = _grouped(uses)
    bound, binding = _densest(cycles)
    return bound, tuple(port for port, bit in numbers.items() if binding >> bit & 1)


def group_bound(uses: Iterable[PortUse], group: Iterable[str]) -> float:
    """The optimal bound of those µops that can only go to ports of the group: T_OL, T_nOL of the ECM model."""
    inside = frozenset(group)
    return optimal_bound(use for use in uses if inside.issuperset(use.ports))[0]


def even_pressure(uses: Sequence[Sequence[PortUse]], ports: Sequence[str]) -> Pressure:
    """Every µop in equal shares on all its ports, as the OSACA papers assume (2018, section I-A, assumption 2)."""
    column = {port: number for number, port in enumerate(ports)}
    rows = []
    for row_uses in uses:
        row = [0.0] * len(ports)
        for use in row_uses:
            for port in use.ports:
                row[column[port]] += use.cycles / len(use.ports)
        rows.append(tuple(row))
    return tuple(rows)


def optimal_pressure(uses: Sequence[Sequence[PortUse]], ports: Sequence[str]) -> Pressure:
    """An assignment of the µops to ports whose busiest port has exactly the optimal bound.

    Of all such assignments the port sums are the most even: no port can be relieved without loading one that is at
    least as busy. Instructions with the same port set get the same split.
    """
    column = {port: number for number, port in enumerate(ports)}
    numbers, cycles = _grouped(use for row_uses in uses for use in row_uses)
    columns = {bit: column[port] for port, bit in numbers.items()}
    shares = _shares(cycles)
    rows = []
    for row_uses in uses:
        row = [0.0] * len(ports)
        for use in row_uses:
            mask = _mask(use, numbers)
            for bit, share in shares.get(mask, {}).items():
                row[columns[bit]] += share * use.cycles / cycles[mask]
        rows.append(tuple(row))
    return tuple(rows)


def _mask(use: PortUse, numbers: Mapping[str, int]) -> int:
    mask = 0
    for port in use.ports:
        mask |= 1 << numbers[port]
    return mask


def _grouped(uses: Iterable[PortUse]) -> tuple[dict[str, int], dict[int, float]]:
    """A bit for each port, and the cycles by port set (as a bit mask); µops without a port are left out."""
    by_ports: dict[tuple[str, ...], float] = {}
    for use in uses:
        if use.ports and use.cycles:
            by_ports[use.ports] = by_ports.get(use.ports, 0.0) + use.cycles
    numbers: dict[str, int] = {}
    cycles: dict[int, float] = {}
    for ports, amount in by_ports.items():
        mask = 0
        for port in ports:
            mask |= 1 << numbers.setdefault(port, len(numbers))
        cycles[mask] = cycles.get(mask, 0.0) + amount
    return numbers, cycles


def _densest(cycles: Mapping[int, float]) -> tuple[float, int]:
    """The largest confined cycles per port over all port sets, and the union of the sets that reach it."""
    bound, binding = 0.0, 0
    for connected in _connected(cycles):
        for ports in _unions(connected):
            confined = sum(amount for mask, amount in connected if not mask & ~ports)
            density = confined / ports.bit_count()
            if density > bound + _TINY:
                bound, binding = density, ports
            elif density > bound - _TINY:
                binding |= ports
    return bound, binding


def _connected(cycles: Mapping[int, float]) -> list[list[tuple[int, float]]]:
    """The port sets with their cycles, in groups that share ports."""
    groups: list[tuple[int, list[tuple[int, float]]]] = []
    for mask, amount in cycles.items():
        joined, members = mask, [(mask, amount)]
        apart = []
        for ports, group in groups:
            if ports & mask:
                joined |= ports
                members = group + members
            else:
                apart.append((ports, group))
        groups = [*apart, (joined, members)]
    return [members for _, members in groups]


def _unions(connected: Sequence[tuple[int, float]]) -> set[int]:
    """All unions of one or more of the port sets."""
    unions: set[int] = set()
    for mask, _ in connected:
        unions |= {ports | mask for ports in unions}
        unions.add(mask)
    return unions


def _shares(cycles: Mapping[int, float]) -> dict[int, dict[int, float]]:
    """Per port set, the cycles that each of its ports (by bit) gets in the most even assignment.

    The densest ports are filled first, with what is confined to them; what may also go elsewhere then goes elsewhere,
    and the next densest ports of the rest follow.
    """
    shares: dict[int, dict[int, float]] = {}
    rest = [(mask, mask, amount) for mask, amount in cycles.items()]
    while rest:
        open_cycles: dict[int, float] = {}
        for _, still_open, amount in rest:
            open_cycles[still_open] = open_cycles.get(still_open, 0.0) + amount
        level, full = _densest(open_cycles)
        block = [entry for entry in rest if not entry[1] & ~full]
        filled = {mask: _even(still_open, amount) for mask, still_open, amount in block}
        _level_out(filled, level)
        shares |= filled
        rest = [(mask, still_open & ~full, amount) for mask, still_open, amount in rest if still_open & ~full]
    return shares


def _even(mask: int, amount: float) -> dict[int, float]:
    return dict.fromkeys(_bits(mask), amount / mask.bit_count())


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _level_out(shares: dict[int, dict[int, float]], level: float) -> None:
    """Move cycles within the port sets until every port has exactly `level` (maximum flow by shortest paths)."""
    loads: dict[int, float] = {}
    for split in shares.values():
        for bit, amount in split.items():
            loads[bit] = loads.get(bit, 0.0) + amount
    while path := _relief(shares, loads, level):
        amount = min(loads[path[0][1]] - level, level - loads[path[-1][2]])
        amount = min(amount, *(shares[mask][giver] for mask, giver, _ in path))
        for mask, giver, taker in path:
            shares[mask][giver] -= amount
            shares[mask][taker] += amount
            loads[giver] -= amount
            loads[taker] += amount


def _relief(
    shares: Mapping[int, Mapping[int, float]], loads: Mapping[int, float], level: float
) -> list[tuple[int, int, int]]:
    """The shortest way to move cycles from a port above the level to one below: (port set, giver, taker) per step."""
    reached: dict[int, tuple[int, int, int] | None] = {b: None for b, load in loads.items() if load > level + _TINY}
    queue = list(reached)
    for giver in queue:
        for mask, split in shares.items():
            if split.get(giver, 0.0) <= _TINY:
                continue
            for taker in split:
                if taker in reached:
                    continue
                reached[taker] = (mask, giver, taker)
                if loads[taker] < level - _TINY:
                    return _way_to(taker, reached)
                queue.append(taker)
    return []


def _way_to(end: int, reached: Mapping[int, tuple[int, int, int] | None]) -> list[tuple[int, int, int]]:
    path = []
    step = reached[end]
    while step is not None:
        path.append(step)
        step = reached[step[1]]
    return path[::-1]
