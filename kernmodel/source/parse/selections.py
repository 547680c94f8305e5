"""Integers that a condition chooses (`w = x == 0 ? n - 1 : x - 1`, `if (u > 0) k = j; else k = j + 1;`), and minima and
maxima that move with loops (`a[max(i - 1, 0)]`), as the formulas that they are in each case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernmodel.formulas.formula import Formula, Whole, of_atom
from kernmodel.source.parse.inequalities import Condition
from kernmodel.value_types import dataclass

RARE = 0.125
"""A case of sizes and loop variables that holds in less of the iterations is left out: the range in which it holds, a
border, moves that share of the lines, where a reference of its own would count as moving lines in all iterations."""
_MOST_CASES = 32


@dataclass(frozen=True, slots=True)
class Selection:
    """An integer that is `yes` where a condition holds, and `no` elsewhere.

    Attributes:
        name: of the symbol that stands for it.
        holds, fails: the condition and its opposite; None where it is no formula of sizes and loop variables.
        chance: how often it holds where it is none, None: not known.
    """

    name: str
    holds: Condition | None
    fails: Condition | None
    yes: Formula
    no: Formula
    chance: float | None = None

    def symbols(self) -> set[str]:
        """What its value depends on."""
        conditions = [one for one in (self.holds, self.fails) if one is not None]
        formulas = [self.yes, self.no, *(part for one in conditions for part in one.formulas())]
        return {symbol for formula in formulas for symbol in formula.free_symbols}


@dataclass(frozen=True, slots=True)
class Case:
    """What the subscripts of a reference are under some conditions.

    Attributes:
        conditions: of sizes and loop variables; chance: of those that are none.
    """

    subscripts: tuple[Formula, ...]
    conditions: tuple[Condition, ...] = ()
    chance: float = 1.0


def cases(subscripts: tuple[Formula, ...], selected: Mapping[str, Selection]) -> tuple[Case, ...]:
    """The cases of subscripts; one where no condition chooses in them, none where there are too many."""
    open_, done = [Case(subscripts)], list[Case]()
    while open_:
        if len(open_) + len(done) > _MOST_CASES:
            return ()
        case = open_.pop(0)
        parts = _parted(case, selected)
        if parts is None:
            done.append(case)
        else:
            open_ += parts
    return tuple(done)


def _parted(case: Case, selected: Mapping[str, Selection]) -> list[Case] | None:
    """The cases of the first choice in a case; None where there is none."""
    for index in case.subscripts:
        name = next((symbol for symbol in sorted(index.free_symbols) if symbol in selected), None)
        if name is not None:
            return _sides(case, selected[name])
        extreme = next((whole for whole in sorted(index.wholes, key=str) if _chooses(whole)), None)
        if extreme is not None:
            return list(_extremes(case, extreme))
    return None


def _sides(case: Case, one: Selection) -> list[Case]:
    """The two sides of a selection."""
    chances = (1.0, 1.0) if one.chance is None else (one.chance, 1 - one.chance)
    sides = []
    for condition, value, chance in zip((one.holds, one.fails), (one.yes, one.no), chances, strict=True):
        conditions = case.conditions if condition is None else (*case.conditions, condition)
        subscripts = tuple(index.substitute({one.name: value}) for index in case.subscripts)
        sides.append(Case(subscripts, conditions, case.chance * chance))
    return sides


def _extremes(case: Case, extreme: Whole) -> Iterator[Case]:
    """A maximum or minimum, where each of its parts is the one: of equal ones the first."""
    sign = 1 if extreme.kind == "max" else -1
    for number, part in enumerate(extreme.parts):
        others = [
            Condition(sign * (part - other) - (1 if place < number else 0))
            for place, other in enumerate(extreme.parts)
            if place != number
        ]
        subscripts = tuple(index.substitute({extreme: part}) for index in case.subscripts)
        yield replace(case, subscripts=subscripts, conditions=(*case.conditions, *others))


def _chooses(whole: Whole) -> bool:
    """Whether it is a maximum or minimum that loops move, of parts that hold none."""
    plain = not any(part.holds("max", "min") for part in whole.parts)
    return whole.kind in ("max", "min") and plain and not of_atom(whole).of_sizes


def by_share(found: Sequence[Case], share: Callable[[tuple[Condition, ...]], float | None]) -> list[tuple[Case, float]]:
    """The cases that hold anywhere, with the share of the iterations in which each does; 1 where it is not known.

    Those that hold rarely are left out, and what is left holds as often as all together.
    """
    shares = [share(case.conditions) for case in found]
    if any(one is None for one in shares):
        return [(case, 1.0) for case in found]
    known = [(case, one) for case, one in zip(found, shares, strict=True) if one]
    kept = [(case, one) for case, one in known if one >= RARE] or known
    whole, left = sum(one for _, one in known), sum(one for _, one in kept)
    return [(case, one * whole / left) for case, one in kept] if left else []
