"""A loop nest prepared for traffic analysis: its indices and bounds as polynomials, its references in classes.

The step from sympy to polynomials is done once per nest; everything that depends on numbers starts from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import sympy

from kernmodel.errors import Location, UnsupportedKernelError
from kernmodel.source.model import Access, LoopNest
from kernmodel.traffic.conditions.polynomial import ZERO, Polynomial, multiplied, read_polynomial
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient × loop variable; one coefficient per loop of the nest, outermost first."""

    constant: Polynomial
    coefficients: tuple[Polynomial, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A loop bound: the least ("min") or greatest ("max") of its parts; a plain bound has one part."""

    pick: Literal["min", "max"]
    parts: tuple[Affine | Bound, ...]

    def forms(self) -> Iterator[Affine]:
        """All affine forms in it."""
        for part in self.parts:
            yield from part.forms() if isinstance(part, Bound) else (part,)

    def outer_loops(self) -> set[int]:
        """The loops on whose variables it depends."""
        return {loop for form in self.forms() for loop, factor in enumerate(form.coefficients) if factor.terms}


@dataclass(frozen=True, slots=True)
class SymbolicLoop:
    """A loop with its bounds as polynomials."""

    variable: str
    start: Bound
    stop: Bound
    step: int
    location: Location


@dataclass(frozen=True, slots=True)
class SymbolicReference:
    """An array reference, its index as one affine form per dimension."""

    access: Access
    order: int
    index: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class ReferenceClass:
    """References to one array whose indices differ by constants only ("uniformly generated").

    `pitches` are the elements from one index to the next, per dimension; `elements` are those of the array, None where
    its extent is not declared.
    """

    array: str
    element_bytes: int
    pitches: tuple[Polynomial, ...]
    elements: Polynomial | None
    references: tuple[SymbolicReference, ...]


@dataclass(frozen=True, slots=True)
class SymbolicNest:
    """What the analysis needs of a nest; `generators` gives the sympy expression of each name in the polynomials."""

    nest: LoopNest
    loops: tuple[SymbolicLoop, ...]
    classes: tuple[ReferenceClass, ...]
    generators: dict[str, sympy.Expr]


def symbolic_nest(nest: LoopNest) -> SymbolicNest:
    """Prepare a nest once, for layer conditions at many sizes and on many machines.

    Raises:
        UnsupportedKernelError: an index or bound that is not affine in the loop variables; an indirect index.
    """
    _refuse_indirect(nest)
    generators: dict[str, sympy.Expr] = dict(nest.symbols)
    variables = tuple(loop.variable for loop in nest.loops)
    loops = tuple(
        SymbolicLoop(
            loop.variable,
            _bound(loop.start, variables, generators, loop.location),
            _bound(loop.stop, variables, generators, loop.location),
            loop.step,
            loop.location,
        )
        for loop in nest.loops
    )
    return SymbolicNest(nest, loops, _classes(nest, variables, generators), generators)


def _refuse_indirect(nest: LoopNest) -> None:
    for access in nest.accesses:
        for entry in access.indirect:
            if not entry.array:
                what = f"{access.text} holds a quotient or remainder; layer conditions do not cover it"
                raise UnsupportedKernelError(what, where=access.location, todo="simulate: --cache sim")
            raise UnsupportedKernelError(
                f"{access.text} is indirect; layer conditions do not cover it",
                where=access.location,
                todo=f"simulate: --cache sim --indirect {entry.array}=uniform",
            )


def _bound(
    expression: sympy.Expr, variables: tuple[str, ...], generators: dict[str, sympy.Expr], where: Location
) -> Bound:
    if isinstance(expression, sympy.Min | sympy.Max):
        pick: Literal["min", "max"] = "min" if isinstance(expression, sympy.Min) else "max"
        parts = tuple(_bound(part, variables, generators, where) for part in expression.args)
        return Bound(pick, tuple(part.parts[0] if len(part.parts) == 1 else part for part in parts))
    return Bound("min", (read_affine(expression, variables, generators, where),))


def read_affine(
    expression: sympy.Expr, variables: tuple[str, ...], generators: dict[str, sympy.Expr], where: Location
) -> Affine:
    """Split an expression into its part in each loop variable.

    Raises:
        UnsupportedKernelError: it is not affine in the loop variables.
    """
    parts: list[Polynomial] = [ZERO] * len(variables)
    rest = ZERO
    seen: dict[str, sympy.Expr] = {}
    whole = read_polynomial(sympy.sympify(expression), seen)
    for monomial, coefficient in whole.terms.items():
        moving = [item for item in monomial if any(s.name in variables for s in seen[item[0]].free_symbols)]
        if not moving:
            rest += Polynomial({monomial: coefficient})
        elif len(moving) == 1 and moving[0][1] == 1 and moving[0][0] in variables:
            others = tuple(item for item in monomial if item != moving[0])
            parts[variables.index(moving[0][0])] += Polynomial({others: coefficient})
        else:
            raise UnsupportedKernelError(
                f"{expression} is not affine in the loop variables",
                where=where,
                todo="write it as a sum of constants times loop variables",
            )
    for name, generator in seen.items():
        if name not in variables:
            generators.setdefault(name, generator)
    return Affine(rest, tuple(parts))


def _classes(
    nest: LoopNest, variables: tuple[str, ...], generators: dict[str, sympy.Expr]
) -> tuple[ReferenceClass, ...]:
    """The references by array and coefficients, in order of first appearance."""
    members: dict[object, list[SymbolicReference]] = {}
    for order, access in enumerate(nest.accesses):
        index = tuple(read_affine(part, variables, generators, access.location) for part in access.index)
        key = (access.array, tuple(c.key() for part in index for c in part.coefficients))
        members.setdefault(key, []).append(SymbolicReference(access, order, index))
    return tuple(_class(nest, references, generators) for references in members.values())


def _class(nest: LoopNest, references: list[SymbolicReference], generators: dict[str, sympy.Expr]) -> ReferenceClass:
    array = nest.arrays[references[0].access.array]
    extents = [read_polynomial(sympy.sympify(extent), generators) for extent in array.shape]
    rank = len(references[0].index)
    pitches = tuple(multiplied(extents[dimension + 1 :]) for dimension in range(rank))
    elements = multiplied(extents) if extents else None
    return ReferenceClass(array.name, array.element.size_bytes, pitches, elements, tuple(references))
