"""A loop nest prepared for traffic analysis: its indices and bounds by loop variables, its references in classes.

This is done once per nest; everything that depends on numbers starts from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kernmodel.errors import Location, UnsupportedKernelError
from kernmodel.formulas.formula import ZERO, Formula, product
from kernmodel.source.model import Access, LoopNest
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient × loop variable; one coefficient per loop of the nest, outermost first."""

    constant: Formula
    coefficients: tuple[Formula, ...]


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
        return {loop for form in self.forms() for loop, factor in enumerate(form.coefficients) if factor}


@dataclass(frozen=True, slots=True)
class SymbolicLoop:
    """A loop with its bounds by outer loop variables."""

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
    pitches: tuple[Formula, ...]
    elements: Formula | None
    references: tuple[SymbolicReference, ...]


@dataclass(frozen=True, slots=True)
class SymbolicNest:
    """What the analysis needs of a nest."""

    nest: LoopNest
    loops: tuple[SymbolicLoop, ...]
    classes: tuple[ReferenceClass, ...]


def symbolic_nest(nest: LoopNest) -> SymbolicNest:
    """Prepare a nest once, for layer conditions at many sizes and on many machines.

    Raises:
        UnsupportedKernelError: an index or bound that is not affine in the loop variables; an indirect index.
    """
    _refuse_indirect(nest)
    variables = tuple(loop.variable for loop in nest.loops)
    loops = tuple(
        SymbolicLoop(
            loop.variable,
            _bound(loop.start, variables, loop.location),
            _bound(loop.stop, variables, loop.location),
            loop.step,
            loop.location,
        )
        for loop in nest.loops
    )
    return SymbolicNest(nest, loops, _classes(nest, variables))


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


def _bound(formula: Formula, variables: tuple[str, ...], where: Location) -> Bound:
    extreme = formula.extreme
    if extreme is None:
        return Bound("min", (read_affine(formula, variables, where),))
    parts = tuple(_bound(part, variables, where) for part in extreme.parts)
    pick: Literal["min", "max"] = "min" if extreme.kind == "min" else "max"
    return Bound(pick, tuple(part.parts[0] if len(part.parts) == 1 else part for part in parts))


def read_affine(formula: Formula, variables: tuple[str, ...], where: Location) -> Affine:
    """Split a formula into its part in each loop variable.

    Raises:
        UnsupportedKernelError: it is not affine in the loop variables.
    """
    parts = formula.linear(variables)
    if parts is None:
        raise UnsupportedKernelError(
            f"{formula} is not affine in the loop variables",
            where=where,
            todo="write it as a sum of constants times loop variables",
        )
    return Affine(parts[1], tuple(parts[0].get(name, ZERO) for name in variables))


def _classes(nest: LoopNest, variables: tuple[str, ...]) -> tuple[ReferenceClass, ...]:
    """The references by array and coefficients, in order of first appearance."""
    members: dict[object, list[SymbolicReference]] = {}
    for order, access in enumerate(nest.accesses):
        index = tuple(read_affine(part, variables, access.location) for part in access.index)
        key = (access.array, tuple(part.coefficients for part in index))
        members.setdefault(key, []).append(SymbolicReference(access, order, index))
    return tuple(_class(nest, references) for references in members.values())


def _class(nest: LoopNest, references: list[SymbolicReference]) -> ReferenceClass:
    array = nest.arrays[references[0].access.array]
    rank = len(references[0].index)
    pitches = tuple(product(array.shape[dimension + 1 :]) for dimension in range(rank))
    elements = product(array.shape) if array.shape else None
    return ReferenceClass(array.name, array.element.size_bytes, pitches, elements, tuple(references))
