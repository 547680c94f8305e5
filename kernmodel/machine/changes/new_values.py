"""The text of a change as the figure's new value: absolute with its unit, or relative to what the figure is."""

from __future__ import annotations

import re
from typing import Any

import yaml

from kernmodel.errors import InputError, UsageError
from kernmodel.machine.changes.figure_paths import FigurePath, number_of, shown
from kernmodel.machine.files.schema import MACHINE_FILE
from kernmodel.schema.document import compose
from kernmodel.schema.fields import Quantity, QuantityOrWord, RejectedError

_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
_FACTOR = re.compile(rf"[x*×]\s*{_NUMBER}")
_PERCENT = re.compile(rf"([+-])\s*{_NUMBER}\s*%")
_RELATIVE = "write x2, x0.5, +10% or -10% for a relative change, a plain number with its unit for an absolute one"
_WHOLE = 1e-9
"""Relative distance at which a product counts as whole: rounding of the factor."""


def factor_of(text: str) -> float | None:
    """The factor of a relative change ("x2", "*0.5", "+10%"); None for an absolute one."""
    if match := _FACTOR.fullmatch(text.strip()):
        return float(match[1])
    if match := _PERCENT.fullmatch(text.strip()):
        return 1 + float(match[1] + match[2]) / 100
    return None


def new_value(place: FigurePath, before: Any, text: str, where: str) -> Any:
    """What the figure becomes, in base units.

    Raises:
        UsageError: a unit that does not fit, a relative change of a word, of an integer to a fraction or to nothing.
    """
    factor = factor_of(text)
    if factor is None:
        return _absolute(place, before, text.strip(), where)
    number = number_of(before)
    if number is None:
        what = f"{place.path} is {shown(place, before)}, no number that {text.strip()} could change"
        raise UsageError(what, where=where, todo=_instead(place))
    return _relative(place, before, factor, where)


def _absolute(place: FigurePath, before: Any, text: str, where: str) -> Any:
    counts = place.dimension is not None or number_of(before) is not None
    if counts and text[:1] in ("+", "-", "x", "*", "×"):
        raise UsageError(f"{place.path}: {text!r} is neither a value nor a factor", where=where, todo=_RELATIVE)
    try:
        return place.kind(_node(text))
    except RejectedError as error:
        raise UsageError(f"{place.path}: {error.what}", where=where, todo=error.todo) from error


def _node(text: str) -> yaml.Node:
    """The text as it would stand in the file; lists only as `[a, b]`."""
    if text.startswith("["):
        try:
            return compose(f"list: {text}", "", MACHINE_FILE).value[0][1]  # type: ignore[no-any-return]
        except InputError as error:
            raise RejectedError(f"{text!r} is no list", "write [first, second]") from error
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


def _relative(place: FigurePath, before: float, factor: float, where: str) -> float:
    after = before * factor
    if isinstance(before, int) and after < float("inf"):
        after = round(after)
        if abs(after - before * factor) > _WHOLE * max(1.0, abs(after)):
            what = f"{place.path}: {before} × {factor:g} = {before * factor:g} is not a whole number"
            raise UsageError(what, where=where, todo="give the value itself")
        try:
            return int(place.kind(_node(str(after))))
        except RejectedError as error:
            raise UsageError(f"{place.path}: {error.what}", where=where, todo=error.todo) from error
    zero = isinstance(place.kind, Quantity) and place.kind.zero
    if not (0.0 < after < float("inf") or (zero and after == 0.0)):
        what = f"{place.path}: {shown(place, before)} × {factor:g} is no value that it can have"
        raise UsageError(what, where=where, todo="take a factor above 0")
    return after


def _instead(place: FigurePath) -> str:
    """What to do where a figure is a word."""
    if isinstance(place.kind, QuantityOrWord):
        level = place.path.split(".")[1].removeprefix("L").lstrip("0123456789")
        return f"give a width such as 16 B/cy, or change {'memory' if level == 'Mem' else level}.bandwidth"
    return "give the new value itself"
