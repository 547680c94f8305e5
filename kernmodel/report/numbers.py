"""Numbers as people read them: cycles with two decimals, rates with an SI prefix, times with the prefix that fits."""

from __future__ import annotations

import math

from kernmodel.units import Work, convert_cycles, format_si

MISSING = "-"


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with fixed decimals; `-` for one that is unknown or infinite."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.{digits}f}"


def short(value: float) -> str:
    """Up to four significant digits, without trailing zeros ("8", "0.125")."""
    return f"{value:.4g}" if math.isfinite(value) else MISSING


def seconds(value: float) -> str:
    """A duration ("12.3 ms")."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def quantity(value: float, unit: str) -> str:
    """A value in one of `units.TIME_UNITS` with that unit ("32.50 cy/CL", "1.2 GLUP/s")."""
    if not math.isfinite(value):
        return MISSING
    if unit == "s":
        return seconds(value)
    return f"{value:.2f} {unit}" if unit.startswith("cy/") else format_si(value, unit)


def time_in(cycles: float, unit: str, work: Work) -> str:
    """`cycles` per unit of work in `unit`, with the unit.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    return quantity(convert_cycles(cycles, unit, work), unit)


def count(number: int, noun: str) -> str:
    """A number with its noun in the right form ("1 core", "2 cores")."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sizes(values: dict[str, int]) -> str:
    """The values of the size symbols ("M = 5000, N = 5000")."""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"
