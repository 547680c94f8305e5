"""Ranges as the command line writes them: `-D N=100-10000:20log`, `--cores 1-20`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product
from math import prod

from kernmodel.errors import UsageError

_RANGE = re.compile(r"^([0-9]+)-([0-9]+)(?::([0-9]+)(log|lin)?)?$")
_MAX_VALUE = 2**63 - 1
_MAX_POINTS = 100_000


def parse_values(text: str, option: str) -> tuple[int, ...]:
    """The integers that `text` stands for, in order, without repetition.

    `5`; `1,2,4`; `1-20` (all integers); `100-10000:20` (20 points, evenly spaced); `100-10000:20log` (20 points, evenly
    spaced in the logarithm); and comma-separated mixtures.

    Raises:
        UsageError: anything else; values below 1; an empty range; more than 100,000 points.
    """
    values = [value for part in text.split(",") for value in _parse_part(part.strip(), text, option)]
    return tuple(dict.fromkeys(values))


def _parse_part(part: str, text: str, option: str) -> Iterable[int]:
    if re.fullmatch(r"[+-]?[0-9]+", part):
        return (_positive(int(part), text, option),)
    match = _RANGE.match(part)
    if match is None:
        raise UsageError(
            f"{text!r} is not a positive integer or a range",
            where=option,
            todo="write 4000, 1,2,4, 1-20 or 100-10000:20log",
        )
    first, last = _positive(int(match[1]), text, option), _positive(int(match[2]), text, option)
    if last < first:
        raise UsageError(f"the range {part!r} is empty", where=option, todo=f"write {last}-{first}")
    count = int(match[3]) if match[3] else last - first + 1
    if not 1 <= count <= _MAX_POINTS:
        raise UsageError(
            f"the range {part!r} has {count} points", where=option, todo=f"take between 1 and {_MAX_POINTS}"
        )
    if match[3] is None:
        return range(first, last + 1)
    return _spaced(first, last, count, logarithmic=match[4] == "log")


def _spaced(first: int, last: int, count: int, *, logarithmic: bool) -> list[int]:
    if count == 1:
        return [first]
    steps = [k / (count - 1) for k in range(count)]
    if logarithmic:
        return [round(first * (last / first) ** step) for step in steps]
    return [round(first + (last - first) * step) for step in steps]


def _positive(value: int, text: str, option: str) -> int:
    if value < 1:
        raise UsageError(f"{text!r}: {value} is not positive", where=option, todo="sizes and core counts start at 1")
    if value > _MAX_VALUE:
        raise UsageError(f"{text!r}: {value} overflows a 64-bit integer", where=option, todo="take a smaller value")
    return value


def parse_defines(options: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """`-D NAME=VALUES` options to values by name; each name once.

    Raises:
        UsageError: no `=`, a name that is no C identifier or given twice, or values as `parse_values` refuses them.
    """
    result: dict[str, tuple[int, ...]] = {}
    for option in options:
        name, equals, values = option.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name.strip()):
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
