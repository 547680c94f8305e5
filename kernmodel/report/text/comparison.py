"""Layer conditions and simulation side by side, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Heading, Line, left, right, table

if TYPE_CHECKING:
    from kernmodel.traffic.model import Difference, Traffic

_QUANTITIES = ("loads", "stores", "clean_victims")
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
        for quantity in _QUANTITIES:
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
