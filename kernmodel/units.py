"""Quantities at the edges: text with units in, plain floats in base units inside, chosen units out.

Base units: bytes, seconds, hertz, cycles, bytes per second, bytes per cycle, FLOP per cycle. Machine files use a small
set of units, read here by a table so that a command need not load pint (0.15 s of a cold start); any other unit goes to
pint. A test holds the table against pint.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from kernmodel.errors import InputError, UsageError
from kernmodel.patterns import pattern
from kernmodel.value_types import dataclass

_KIBI, _KILO = 1024.0, 1000.0
_DATA = {
    "B": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    **{f"{p}B": _KILO ** (k + 1) for k, p in enumerate("kMGT")},
    **{f"{p}iB": _KIBI ** (k + 1) for k, p in enumerate("KMGT")},
}
_FREQUENCY = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
FACTORS: dict[str, dict[str, float]] = {
    "data": _DATA,
    "frequency": _FREQUENCY,
    "time": _TIME,
    "bandwidth": {f"{name}/s": factor for name, factor in _DATA.items()},
    "cycles": {"cy": 1.0, "cycles": 1.0},
    "bytes per cycle": {"B/cy": 1.0},
    "cycles per cache line": {"cy/CL": 1.0},
    "flop per cycle": {"FLOP/cy": 1.0},
    "flop rate": {"FLOP/s": 1.0, "kFLOP/s": 1e3, "MFLOP/s": 1e6, "GFLOP/s": 1e9, "TFLOP/s": 1e12},
}
"""Per dimension, the units that are read without pint, with their factor to the base unit."""

_PINT_DIMENSION = {"data": "byte", "frequency": "hertz", "time": "second", "bandwidth": "byte/second"}
_QUANTITY = pattern(r"^\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(\S.*?)?\s*$")


def parse_quantity(text: object, dimension: str) -> float:
    """The value of `text` ("32 KiB", "2.5 GHz", "64 B/cy") in the base unit of `dimension` (a key of `FACTORS`).

    Raises:
        InputError: no number, no unit, or a unit of another dimension.
    """
    match = _QUANTITY.match(text) if isinstance(text, str) else None
    examples = ", ".join(list(FACTORS[dimension])[:6])
    if match is None or match[2] is None:
        what = f"{text!r} is not a {'size' if dimension == 'data' else dimension} with a unit"
        raise InputError(what, todo=f"write a number and one of {examples}")
    factor = FACTORS[dimension].get(match[2])
    if factor is None:
        factor = _pint_factor(match[2], dimension)
    if factor is None:
        raise InputError(f"{text!r} has no unit of {dimension}", todo=f"use one of {examples}")
    return float(match[1]) * factor


def _pint_factor(unit: str, dimension: str) -> float | None:
    """The factor of `unit` to the base unit by pint, or None if it is unknown or of another dimension."""
    base = _PINT_DIMENSION.get(dimension)
    if base is None:
        return None
    import pint

    registry: pint.UnitRegistry[Any] = pint.UnitRegistry()
    wanted = registry.Quantity(1.0, base).to_root_units()
    try:
        given = registry.Quantity(1.0, unit).to_root_units()
    except Exception:  # pint raises its own, tokenize's and arithmetic errors for malformed units
        return None
    # bits are dimensionless to pint, so GHz would convert to GB/s: the root units must be the same
    return float(given.magnitude / wanted.magnitude) if given.units == wanted.units else None


def format_bytes(value: float) -> str:
    """A size for people: the largest binary unit that leaves a number of at least one ("27.5 MiB")."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(value) >= _KIBI**power:
            return f"{value / _KIBI**power:.4g} {unit}"
    return f"{value:.4g} B"


def format_share(share: float) -> str:
    """A share in percent, "<1%" and ">99%" where rounding would make nothing or all of it."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "<1%" if share < 0.5 else ">99%"
    return f"{share:.0%}"


def format_si(value: float, unit: str) -> str:
    """A rate for people with an SI prefix ("12.3 GFLOP/s")."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


@dataclass(frozen=True, slots=True)
class Work:
    """What one unit of work is, so that a time in cycles converts to every unit a user asks for.

    Attributes:
        iterations_per_unit: inner iterations in one unit of work (one cache line of the leading stream), > 0.
        flops_per_iteration: FLOP per inner iteration (FMA = 2), 0 where the kernel computes nothing.
        updates_per_iteration: lattice updates per inner iteration, None where the kernel updates no lattice.
        iterations_per_sweep: inner iterations of one execution of the whole nest, None while sizes are symbols.
        clock_hz: core clock in Hz.
    """

    iterations_per_unit: float
    flops_per_iteration: float
    updates_per_iteration: float | None
    iterations_per_sweep: float | None
    clock_hz: float


def plain_number(text: str) -> float:
    """The number that digits of ASCII write; Python alone would take digits of all scripts, and underscores.

    Raises:
        ValueError: it is none.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r} is no number")
    return float(text)


def positive_number(text: str) -> float | None:
    """A positive finite number, None for anything else: what files of measurements have where one is missing."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


TIME_UNITS = ("cy/CL", "cy/It", "It/s", "LUP/s", "FLOP/s", "s")
"""The units of a prediction: cycles per unit of work (cache line) or iteration, rates, and seconds per sweep."""


_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def time_unit(text: str) -> tuple[str, float]:
    """A unit of time without its prefix ("LUP/s" of "MLUP/s"), and what the prefix multiplies by.

    Raises:
        ValueError: it is none.
    """
    for factor, name in ((1.0, text), (_PREFIXES.get(text[:1], 0.0), text[1:])):
        if factor and name in TIME_UNITS:
            return name, factor
    raise ValueError(f"unknown unit {text!r}; use one of {', '.join(TIME_UNITS)}, rates with k, M, G or T")


def convert_cycles(cycles: float, unit: str, work: Work) -> float:
    """Convert `cycles` per unit of work (cy/CL) to `unit`, one of `TIME_UNITS`.

    Raises:
        UsageError: an unknown unit, or one the kernel has no meaning for (FLOP/s of a copy, LUP/s of a reduction).
    """
    per_iteration = cycles / work.iterations_per_unit
    if unit == "cy/CL":
        return cycles
    if unit == "cy/It":
        return per_iteration
    rate = work.clock_hz / per_iteration if per_iteration else float("inf")
    if unit == "It/s":
        return rate
    if unit == "LUP/s":
        if work.updates_per_iteration is None:
            raise UsageError("the kernel updates no lattice, so LUP/s has no meaning", where="--unit", todo="use It/s")
        return rate * work.updates_per_iteration
    if unit == "FLOP/s":
        if not work.flops_per_iteration:
            raise UsageError("the kernel has no floating-point operations", where="--unit", todo="use It/s")
        return rate * work.flops_per_iteration
    if unit == "s":
        if work.iterations_per_sweep is None:
            raise UsageError(
                "the sizes are not all known, so a sweep has no time", where="--unit", todo="give the sizes with -D"
            )
        return per_iteration * work.iterations_per_sweep / work.clock_hz
    raise UsageError(f"unknown unit {unit!r}", where="--unit", todo=f"use one of {', '.join(TIME_UNITS)}")


def meaningful_units(work: Work) -> tuple[str, ...]:
    """Those of `TIME_UNITS` that have a meaning for this work."""
    skip = {
        "LUP/s": work.updates_per_iteration is None,
        "FLOP/s": not work.flops_per_iteration,
        "s": work.iterations_per_sweep is None,
    }
    return tuple(unit for unit in TIME_UNITS if not skip.get(unit, False))
