"""What one core's part of the outermost loop has at its ends, which windows inside of it do not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernmodel.traffic.model import AccessTraffic, PathLines, PathTraffic, Traffic
from kernmodel.traffic.simulation.paths import path_traffic

_Counts = tuple[tuple[PathTraffic, ...], tuple[AccessTraffic, ...]]


def with_ends(paths: Sequence[PathTraffic], rows: Sequence[AccessTraffic], part: Traffic, inside: Traffic) -> _Counts:
    """The counts with the lines of the rows that a part has in common with those beside it.

    Args:
        part, inside: the traffic by layer conditions, with and without these rows.
    """
    return (
        tuple(map(_path, paths, part.paths, inside.paths)),
        tuple(
            replace(row, served_by={level: lines + _more(level, *known) for level, lines in row.served_by.items()})
            for row, *known in zip(rows, part.accesses, inside.accesses, strict=True)
        ),
    )


def _path(path: PathTraffic, part: PathTraffic, inside: PathTraffic) -> PathTraffic:
    loads, stores, clean = (
        getattr(path, name) + getattr(part, name) - getattr(inside, name)
        for name in ("loads", "stores", "clean_victims")
    )
    return path_traffic(path.path, PathLines(loads, stores, clean), path.write_allocates)


def _more(level: str, part: AccessTraffic, inside: AccessTraffic) -> float:
    return part.served_by.get(level, 0.0) - inside.served_by.get(level, 0.0)
