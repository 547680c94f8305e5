"""Affine expressions in loop variables: their coefficients, and what can be proven about them inside a loop nest.

Only additions and comparisons of coefficients are used: sympy's general simplification would cost more than the whole
rest of the analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sympy

from kernmodel.source.model import Loop

Linear = tuple[dict[sympy.Symbol, sympy.Expr], sympy.Expr]


def linear_parts(expression: sympy.Expr, variables: Iterable[sympy.Symbol]) -> Linear | None:
    """Coefficients of the variables and the rest, or None if the expression is not affine in them."""
    wanted = set(variables)
    coefficients: dict[sympy.Symbol, sympy.Expr] = {}
    rest = []
    for term in sympy.Add.make_args(sympy.expand(expression)):
        present = term.free_symbols & wanted
        if not present:
            rest.append(term)
            continue
        variable = next(iter(present))
        factor = term / variable
        if len(present) > 1 or factor.free_symbols & wanted:
            return None
        coefficients[variable] = coefficients.get(variable, sympy.Integer(0)) + factor
    return coefficients, sympy.Add(*rest)


def nonnegative_sizes(expression: sympy.Expr) -> bool:
    """Whether a polynomial in size symbols (positive integers) is provably ≥ 0 for all sizes.

    Sufficient: written in N − 1, M − 1, … (each ≥ 0) it has no negative coefficient.
    """
    symbols = expression.free_symbols
    shifted = sympy.expand(expression.xreplace({symbol: symbol + 1 for symbol in symbols}))
    return all(_nonnegative_term(term) for term in sympy.Add.make_args(shifted))


def _nonnegative_term(term: sympy.Expr) -> bool:
    factor, others = term.as_coeff_Mul()
    return bool(factor.is_nonnegative and others.is_nonnegative)


def nonnegative(expression: sympy.Expr, loops: Sequence[Loop]) -> bool:
    """Whether the expression, affine in the loop variables, is provably ≥ 0 in every iteration, for all sizes."""
    if not loops:
        return nonnegative_sizes(expression)
    loop, outer = loops[-1], loops[:-1]
    parts = linear_parts(expression, [loop.symbol])
    if parts is None:
        return False
    factor = parts[0].get(loop.symbol, sympy.Integer(0))
    if factor.is_zero:
        return nonnegative(expression, outer)
    if factor.is_positive:
        worst, helps = _lowest(loop), sympy.Max
    elif factor.is_negative:
        worst, helps = _highest(loop), sympy.Min
    else:
        return False
    # a maximum is at least each of its arguments, so one that suffices is enough; of a minimum all must do
    quantifier = any if isinstance(worst, helps) else all
    choices = worst.args if isinstance(worst, (sympy.Min, sympy.Max)) else (worst,)
    return quantifier(nonnegative(parts[1] + factor * choice, outer) for choice in choices)


def upper_bound(expression: sympy.Expr, loops: Sequence[Loop]) -> sympy.Expr | None:
    """An upper bound of the expression over the nest, free of loop variables; None if none is found."""
    for loop in reversed(loops):
        parts = linear_parts(expression, [loop.symbol])
        if parts is None:
            return None
        factor = parts[0].get(loop.symbol, sympy.Integer(0))
        if factor.is_zero:
            continue
        if not (factor.is_positive or factor.is_negative):
            return None
        bound = _highest(loop) if factor.is_positive else _lowest(loop)
        looser = sympy.Min if factor.is_positive else sympy.Max
        if isinstance(bound, looser):
            # either argument bounds the variable: prefer the one without loop variables, which bounds it for good
            bound = min(bound.args, key=lambda choice: (len(choice.free_symbols & _variables(loops)), str(choice)))
        expression = parts[1] + factor * bound
    return sympy.expand(expression)


def largest(expressions: Iterable[sympy.Expr]) -> sympy.Expr:
    """The maximum of some expressions in the sizes, without those that are provably not above another."""
    kept: list[sympy.Expr] = []
    for expression in dict.fromkeys(expressions):
        if any(nonnegative_sizes(other - expression) for other in kept):
            continue
        kept = [other for other in kept if not nonnegative_sizes(expression - other)] + [expression]
    return sympy.Max(*kept) if len(kept) > 1 else kept[0]


def _variables(loops: Sequence[Loop]) -> set[sympy.Symbol]:
    return {loop.symbol for loop in loops}


def pushed_in(expression: sympy.Expr) -> sympy.Expr:
    """`Min(a, b) + c` as `Min(a + c, b + c)`: minima and maxima brought outside, so that their arguments are affine."""
    for term in sympy.Add.make_args(expression):
        factor, inner = term.as_coeff_Mul()
        if isinstance(inner, (sympy.Min, sympy.Max)):
            other = sympy.Max if isinstance(inner, sympy.Min) else sympy.Min
            outside = inner.func if factor > 0 else other
            arguments = [pushed_in(expression - term + factor * argument) for argument in inner.args]
            # arguments that could not be compared before cannot be now, and sympy's attempts cost more than all the
            # rest; those that have become minima themselves are still to be merged
            nested = any(isinstance(argument, (sympy.Min, sympy.Max)) for argument in arguments)
            return outside(*arguments, evaluate=nested)
    return expression


def _lowest(loop: Loop) -> sympy.Expr:
    return loop.start if loop.step > 0 else pushed_in(loop.stop + 1)


def _highest(loop: Loop) -> sympy.Expr:
    return pushed_in(loop.stop - 1) if loop.step > 0 else loop.start
