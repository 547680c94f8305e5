"""What the options of a sweep write (`--block i=32-512:8log`, `--set L2.size=256KiB-4MiB:5log`), and the values of an
axis as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from kernmodel.errors import UsageError
from kernmodel.studies.sweep.grid import Axis
from kernmodel.studies.sweep.values import parse_values
from kernmodel.units import FACTORS


def parse_blocks(options: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`--block LOOP=VALUES` options to block sizes by loop variable.

    Raises:
        UsageError: no `=`, no name of a variable, values as `parse_values` refuses them, a loop named twice.
    """
    return _by_name(options, "--block", r"[A-Za-z_]\w*", "LOOP=VALUES", "i=32-512:8log", parse_values)


def parse_changes(options: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`--set PATH=VALUES` options to values by path of the figure: texts between commas, and ranges of them
    ("256KiB-4MiB:5log", "x0.5-x2:5log").

    Raises:
        UsageError: no `=`, no value, a range that is empty or of two kinds of unit, a path named twice.
    """
    return _by_name(options, "--set", r"[\w.:+-]+", "PATH=VALUES", "L2.size=512KiB,1MiB,x2", _change_values)


def _by_name(
    options: Iterable[str],
    option: str,
    name: str,
    form: str,
    example: str,
    parse: Callable[[str, str], tuple[Any, ...]],
) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for text in options:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not re.fullmatch(name, key):
            raise UsageError(f"{text!r} is not {form}", where=option, todo=f"write {option} {example}")
        if key in found:
            raise UsageError(f"{key} is given twice", where=option, todo=f"write all values as one: {option} {example}")
        found[key] = parse(values, f"{option} {key}")
    return found


_NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"
_QUANTITY = rf"({_NUMBER})\s*([A-Za-zµ][\w/µ ]*?)?"
_RANGE = re.compile(rf"(x?){_QUANTITY}\s*-\s*(x?){_QUANTITY}\s*:\s*([0-9]+)(log|lin)?")
_MOST = 100_000


def _change_values(text: str, option: str) -> tuple[str, ...]:
    values = [value for part in text.split(",") for value in _part_values(part.strip(), option)]
    return tuple(dict.fromkeys(values))


def _part_values(part: str, option: str) -> Iterable[str]:
    if not part:
        raise UsageError("a value is missing", where=option, todo="write values between commas, such as 1MiB,2MiB,x2")
    match = _RANGE.fullmatch(part)
    if match is None:
        return (part,)
    sign, low, unit, last_sign, high, last_unit, points, spacing = match.groups()
    count = int(points)
    shown = unit or last_unit or ""
    first = _base_value(low, shown, option, part)
    last = _base_value(high, last_unit or shown, option, part)
    if sign != last_sign or not 0 < first <= last or not 1 <= count <= _MOST:
        what = f"the range {part!r} is empty or cannot be read"
        todo = f"write LOW-HIGH:POINTS or LOW-HIGH:POINTSlog with 0 < LOW ≤ HIGH and 1 to {_MOST} points"
        raise UsageError(what, where=option, todo=todo)
    factor = _base_value("1", shown, option, part)
    steps = [k / (count - 1) for k in range(count)] if count > 1 else [0.0]
    spaced = (first * (last / first) ** s if spacing == "log" else first + (last - first) * s for s in steps)
    return [f"{sign}{value / factor:.10g}{shown}" for value in spaced]


def _base_value(number: str, unit: str, option: str, part: str) -> float:
    """The number in base units; a unit that several dimensions share has the same factor in all."""
    if not unit:
        return float(number)
    factor = next((factors[unit] for factors in FACTORS.values() if unit in factors), None)
    if factor is None:
        raise UsageError(
            f"{part!r} has the unknown unit {unit!r}", where=option, todo="write a range such as 256KiB-4MiB:5log"
        )
    return float(number) * factor


_PLAIN = re.compile(rf"(x?){_QUANTITY}")
_PERCENT = re.compile(rf"([+-]{_NUMBER})\s*%")


def numeric_values(axis: Axis) -> tuple[tuple[float, ...], str] | None:
    """The values of an axis as numbers, and their unit; None where they are names, or of several kinds."""
    if axis.kind in ("size", "cores", "block"):
        return tuple(float(value) for value in axis.values), ""
    if axis.kind != "change":
        return None
    found = [_number_of(value) for value in axis.values]
    kinds = {pair[1] for pair in found if pair is not None}
    if None in found or len(kinds) != 1:
        return None
    kind = kinds.pop()
    return tuple(pair[0] for pair in found if pair is not None), {"": "", "x": "×"}.get(kind, kind)


def _number_of(text: str) -> tuple[float, str] | None:
    """Number in base units and its base unit; "x" for factors and percentages."""
    if percent := _PERCENT.fullmatch(text.strip()):
        return 1 + float(percent[1]) / 100, "x"
    match = _PLAIN.fullmatch(text.strip())
    if match is None:
        return None
    sign, number, unit = match.groups()
    if sign or unit is None:
        return float(number), "x" if sign else ""
    units = next((factors for factors in FACTORS.values() if unit in factors), None)
    return None if units is None else (float(number) * units[unit], next(iter(units)))
