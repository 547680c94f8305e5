"""Formulas as expressions of sympy, for users who go on with them there; nothing of the package needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from kernmodel.formulas.formula import Formula, Symbol, Whole
from kernmodel.formulas.terms import Atom, Counted, Number

_FUNCTIONS: Mapping[str, Any] = {"floor": sympy.floor, "max": sympy.Max, "min": sympy.Min, "sum": lambda part: part}


def expression(formula: Formula) -> sympy.Expr:
    """The same as an expression; sizes are positive integers in it, all other symbols integers."""
    return sympy.Add(
        *(
            sympy.Mul(_number(coefficient), *(sympy.Pow(_atom(atom), exponent) for atom, exponent in monomial))
            for monomial, coefficient in formula.terms.items()
        )
    )


def _number(value: Number) -> sympy.Number:
    return (
        sympy.Float(float(value)) if isinstance(value, Counted) else sympy.Rational(value.numerator, value.denominator)
    )


def _atom(atom: Atom) -> sympy.Expr:
    if isinstance(atom, Whole):
        return _FUNCTIONS[atom.kind](*map(expression, atom.parts))
    positive = isinstance(atom, Symbol) and atom.positive
    return sympy.Symbol(str(atom), integer=True, **({"positive": True} if positive else {}))
