"""Layer conditions and simulation side by side, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Heading, Line, Table
from kernmodel.report.numbers import decimal

if TYPE_CHECKING:
    from kernmodel.traffic.model import Difference, Traffic

_QUANTITIES = ("loads", "stores", "clean_victims")


def comparison_section(
    symbolic: Traffic | None, simulated: Traffic, differences: tuple[Difference, ...]
) -> tuple[Block, ...]:
    """Both numbers for each path and kind of line, how much they differ, and the reasons; nothing without the first."""
    if symbolic is None:
        return ()
    from kernmodel.traffic.comparison.agreement import TOLERANCE

    columns = (
        Column("path", "left"),
        Column("lines", "left"),
        Column("layer conditions"),
        Column("simulation"),
        Column("difference"),
        Column("reason", "left"),
    )
    heading = Heading(f"Layer conditions and simulation (cache lines per unit of work; agree: within {TOLERANCE:.0%})")
    rows = tuple(_rows(symbolic, simulated, differences))
    if not rows:
        return (heading, Line(f"  agree: no lines move beyond {simulated.levels[0].level}"))
    return (heading, Table(columns, rows), *_reasons(differences))


def _rows(symbolic: Traffic, simulated: Traffic, found: tuple[Difference, ...]) -> Iterator[tuple[str, ...]]:
    by_place: dict[tuple[str, str], Difference] = {
        (difference.path, difference.quantity): difference for difference in found
    }
    for one, other in zip(symbolic.paths, simulated.paths, strict=True):
        for quantity in _QUANTITIES:
            values = (getattr(one, quantity), getattr(other, quantity))
            difference = by_place.get((one.path, quantity))
            if any(values) or difference:
                cells = ("", "agree") if difference is None else _difference(difference)
                yield (one.path, quantity.replace("_", " "), *(decimal(value) for value in values), *cells)


def _difference(difference: Difference) -> tuple[str, str]:
    return f"{difference.simulated - difference.symbolic:+.2f}", difference.reason_code.replace("-", " ")


def _reasons(differences: tuple[Difference, ...]) -> tuple[Block, ...]:
    """Every reason once, with the places it explains."""
    places: dict[tuple[str, str], list[str]] = {}
    for difference in differences:
        key = (difference.reason_code, difference.reason)
        places.setdefault(key, []).append(f"{difference.path} {difference.quantity.replace('_', ' ')}")
    return tuple(
        Line(f"  {code.replace('-', ' ')} ({', '.join(where)}): {reason}") for (code, reason), where in places.items()
    )
