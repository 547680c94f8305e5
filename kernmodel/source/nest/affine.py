"""What can be proven about formulas inside a loop nest."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.formulas.formula import ZERO, Formula, positive, pushed_in
from kernmodel.formulas.formula import nonnegative as nonnegative_sizes
from kernmodel.source.model import Loop


def nonnegative(formula: Formula, loops: Sequence[Loop]) -> bool:
    """Whether the formula, affine in the loop variables, is provably ≥ 0 in every iteration, for all sizes."""
    if not loops:
        return nonnegative_sizes(formula)
    loop, outer = loops[-1], loops[:-1]
    parts = formula.linear([loop.variable])
    if parts is None:
        return False
    factor = parts[0].get(loop.variable, ZERO)
    if not factor:
        return nonnegative(formula, outer)
    if positive(factor):
        worst, helps = _lowest(loop), "max"
    elif positive(-factor):
        worst, helps = _highest(loop), "min"
    else:
        return False
    extreme = worst.extreme
    # a maximum is at least each of its arguments, so one that suffices is enough; of a minimum all must do
    quantifier = any if extreme is not None and extreme.kind == helps else all
    choices = (worst,) if extreme is None else extreme.parts
    return quantifier(nonnegative(parts[1] + factor * choice, outer) for choice in choices)


def upper_bound(formula: Formula, loops: Sequence[Loop]) -> Formula | None:
    """An upper bound of the formula over the nest, free of loop variables; None if none is found."""
    for loop in reversed(loops):
        parts = formula.linear([loop.variable])
        if parts is None:
            return None
        factor = parts[0].get(loop.variable, ZERO)
        if not factor:
            continue
        if not (positive(factor) or positive(-factor)):
            return None
        bound, looser = (_highest(loop), "min") if positive(factor) else (_lowest(loop), "max")
        if bound.extreme is not None and bound.extreme.kind == looser:
            # either argument bounds the variable: prefer the one without loop variables, which bounds it for good
            bound = min(bound.extreme.parts, key=lambda part: (len(part.free_symbols & _variables(loops)), str(part)))
        formula = parts[1] + factor * bound
    return formula


def _variables(loops: Sequence[Loop]) -> set[str]:
    return {loop.variable for loop in loops}


def _lowest(loop: Loop) -> Formula:
    return loop.start if loop.step > 0 else pushed_in(loop.stop + 1)


def _highest(loop: Loop) -> Formula:
    return pushed_in(loop.stop - 1) if loop.step > 0 else loop.start
