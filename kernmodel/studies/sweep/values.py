"""Values as sweeps write them: `N=100-10000:20log`, `--cores 1-20`, `--block i=32-512:log2`,
`--set L2.size=256KiB-4MiB:5log`; and the values of an axis as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import floor, log, prod
from typing import TYPE_CHECKING, Any

from kernmodel.errors import UsageError
from kernmodel.patterns import pattern
from kernmodel.units import FACTORS

if TYPE_CHECKING:
    from kernmodel.studies.sweep.grid import Axis

EVERY_SIZE = "."
"""In place of the name of a size: every one that has no value of its own."""
_SPACING = r"(?:([0-9]+)(?:lin|(log[0-9]*))?|(log[0-9]*))"
"""Behind the colon of a range: a number of points and how they are spaced, or powers of a base."""
_WHOLE_RANGE = pattern(rf"([0-9]+)-([0-9]+)(?::{_SPACING})?")
_MAX_VALUE = 2**63 - 1
_MAX_POINTS = 100_000


def parse_values(text: str, option: str) -> tuple[int, ...]:
    """The integers that `text` stands for, in order, without repetition.

    `5`; `1,2,4`; `1-20` (all integers); `100-10000:20` (20 points, evenly spaced); `100-10000:20log` (20 points, evenly
    spaced in the logarithm, to whatever base); `64-8192:log2` (each twice the one before; `:log` ten times); and
    comma-separated mixtures.

    Raises:
        UsageError: anything else; values below 1; an empty range; a base below 2; more than 100,000 points.
    """
    values = [value for part in text.split(",") for value in _parse_part(part.strip(), text, option)]
    return tuple(dict.fromkeys(values))


def varying_names(points: Sequence[Mapping[str, int]]) -> list[str]:
    """The sizes in which points differ."""
    return [name for name in points[0] if len({point.get(name) for point in points}) > 1]


def is_wide(values: Sequence[float]) -> bool:
    """Whether ascending values are better shown on a logarithmic axis: the last is 20 times the first, or more."""
    return values[-1] >= 20 * values[0] > 0


def _parse_part(part: str, text: str, option: str) -> Iterable[int]:
    if re.fullmatch(r"[+-]?[0-9]+", part):
        return (_positive(int(part), text, option),)
    match = _WHOLE_RANGE.fullmatch(part)
    if match is None:
        raise UsageError(
            f"{text!r} is not a positive integer or a range",
            where=option,
            todo="write 4000, 1,2,4, 1-20, 100-10000:20log or 64-8192:log2",
        )
    first, last = _positive(int(match[1]), text, option), _positive(int(match[2]), text, option)
    if last < first:
        raise UsageError(f"the range {part!r} is empty", where=option, todo=f"write {last}-{first}")
    if ":" not in part:
        _check_count(last - first + 1, part, option)
        return range(first, last + 1)
    return map(round, _spaced(first, last, match.groups()[2:], part, option))


def _check_count(count: int, part: str, option: str) -> None:
    if not 1 <= count <= _MAX_POINTS:
        what = f"the range {part!r} has {count} points"
        raise UsageError(what, where=option, todo=f"take between 1 and {_MAX_POINTS}")


def _spaced(first: float, last: float, spacing: Sequence[str | None], part: str, option: str) -> list[float]:
    """The values of a range.

    Args:
        spacing: the groups of `_SPACING`: a number of points, "log" of them, or "log" and the base of powers.

    Raises:
        UsageError: too many points, or a base below 2.
    """
    points, logarithmic, powers = spacing
    base = int((logarithmic or powers or "").removeprefix("log") or 10)
    if base < 2:
        what = f"the range {part!r} has a logarithm to the base {base}"
        raise UsageError(what, where=option, todo="take a base from 2 on")
    if points is None:
        # rounded, so that the last power is not lost to the error of the logarithm
        return [first * base**power for power in range(1 + floor(round(log(last / first, base), 9)))]
    count = int(points)
    _check_count(count, part, option)
    steps = [k / (count - 1) for k in range(count)] if count > 1 else [0.0]
    if logarithmic:  # to any base: even steps of the logarithm are the same in all
        return [first * (last / first) ** step for step in steps]
    return [first + (last - first) * step for step in steps]


def _positive(value: int, text: str, option: str) -> int:
    if value < 1:
        raise UsageError(f"{text!r}: {value} is not positive", where=option, todo="sizes and core counts start at 1")
    if value > _MAX_VALUE:
        raise UsageError(f"{text!r}: {value} overflows a 64-bit integer", where=option, todo="take a smaller value")
    return value


def parse_defines(options: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`-D NAME=VALUES` options to values by name; each name once. The name may be `EVERY_SIZE`.

    Raises:
        UsageError: no `=`, a name that is no C identifier or given twice, or values as `parse_values` refuses them.
    """
    result: dict[str, tuple[int, ...]] = {}
    for option in options:
        name, equals, values = option.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*|\.", name.strip()):
            raise UsageError(
                f"{option!r} is not NAME=VALUE", where="-D", todo="write -D N=4000 or -D N=100-10000:20log"
            )
        name = name.strip()
        if name in result:
            todo = "leave one of them out; several values are -D N=100,200"
            raise UsageError("is given twice", where=f"-D {name}", todo=todo)
        result[name] = parse_values(values.strip(), f"-D {name}")
    return result


def grid(defines: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, int], ...]:
    """All combinations of the values, the last name varying fastest.

    Raises:
        UsageError: more than 100,000 combinations.
    """
    names = list(defines)
    count = prod(map(len, defines.values()))
    if count > _MAX_POINTS:
        raise UsageError(f"{count} combinations of sizes", where="-D", todo=f"take at most {_MAX_POINTS}")
    return tuple(dict(zip(names, point, strict=True)) for point in product(*defines.values()))


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

    def parse(text: str, option: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for part in text.split(",") for value in _part_values(part.strip(), option)))

    return _by_name(options, "--set", r"[\w.:+-]+", "PATH=VALUES", "L2.size=512KiB,1MiB,x2", parse)


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
_RANGE = pattern(rf"(x?){_QUANTITY}\s*-\s*(x?){_QUANTITY}\s*:\s*{_SPACING}")


def _part_values(part: str, option: str) -> Iterable[str]:
    if not part:
        raise UsageError("a value is missing", where=option, todo="write values between commas, such as 1MiB,2MiB,x2")
    match = _RANGE.fullmatch(part)
    if match is None:
        return (part,)
    sign, low, unit, last_sign, high, last_unit, *spacing = match.groups()
    shown = unit or last_unit or ""
    first = _base_value(low, shown, option, part)
    last = _base_value(high, last_unit or shown, option, part)
    if sign != last_sign or not 0 < first <= last:
        what = f"the range {part!r} is empty or cannot be read"
        todo = "write LOW-HIGH:POINTS, LOW-HIGH:POINTSlog or LOW-HIGH:log2 with 0 < LOW ≤ HIGH"
        raise UsageError(what, where=option, todo=todo)
    factor = _base_value("1", shown, option, part)
    return [f"{sign}{value / factor:.10g}{shown}" for value in _spaced(first, last, spacing, part, option)]


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


_PLAIN = pattern(rf"(x?){_QUANTITY}")
_PERCENT = pattern(rf"([+-]{_NUMBER})\s*%")


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
