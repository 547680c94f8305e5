"""Numbers as people read them: cycles with fixed decimals, rates and times with four significant digits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernmodel.units import Work, convert_cycles

MISSING = "-"
_PREFIXES = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with fixed decimals; `-` for one that is unknown or infinite."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.{digits}f}"


def as_text(value: object) -> str:
    """A figure or text as a cell of a table: two decimals of a number that is no count, `-` for what is not there."""
    if value is None or isinstance(value, float):
        return decimal(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def short(value: float) -> str:
    """Up to four significant digits, without trailing zeros ("8", "0.125")."""
    return f"{value:.4g}" if math.isfinite(value) else MISSING


def prefixed(value: float, unit: str) -> str:
    """A rate or duration with an SI prefix and four significant digits, zeros kept ("4.000 GIt/s", "12.30 ms")."""
    if not value:
        return f"0 {unit}"
    value = float(f"{value:.3e}")  # first rounded, so that 999.97 k becomes 1.000 M
    least, most = (-3, 0) if unit == "s" else (0, 4)
    power = max(least, min(most, int(f"{value:e}".partition("e")[2]) // 3))
    scaled = value / 1000.0**power
    digits = max(0, 3 - int(f"{scaled:e}".partition("e")[2]))
    return f"{scaled:.{digits}f} {_PREFIXES[power]}{unit}"


def quantity(value: float, unit: str) -> str:
    """A value in one of `units.TIME_UNITS` with that unit ("32.50 cy/CL", "1.200 GLUP/s")."""
    if not math.isfinite(value):
        return MISSING
    if unit.startswith("cy/"):
        return f"{value:.{3 if unit == 'cy/It' else 2}f} {unit}"
    return prefixed(value, unit)


def time_in(cycles: float, unit: str, work: Work) -> str:
    """`cycles` per unit of work in `unit`, with the unit.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    return quantity(convert_cycles(cycles, unit, work), unit)


def sizes(values: Mapping[str, int]) -> str:
    """The values of the size symbols ("M = 5000, N = 5000")."""
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"
