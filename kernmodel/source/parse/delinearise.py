"""From subscripts to linear offsets: shapes of arrays, and flat indices split into dimensions where that is proven.

A flat index such as `j*N + i` is split by the coefficients of the loop variables: they are the candidate row lengths.
The split is kept only if it recomposes to the same expression and every index stays provably within its extent, so that
equal offsets mean equal elements.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kernmodel.errors import Location, Note, UnsupportedKernelError
from kernmodel.formulas.division import content, divided, whole_quotient
from kernmodel.formulas.formula import ONE, ZERO, Formula, maximum, positive, size, variable
from kernmodel.source.model import Access, Array, ElementType, Loop
from kernmodel.source.nest.affine import nonnegative, upper_bound
from kernmodel.source.parse.body import Reference
from kernmodel.source.parse.scope import DeclaredArray, Scope
from kernmodel.value_types import dataclass

_Index = tuple[Formula, ...]
_AFFINE = (
    "indices must be sums of constants, sizes and multiples of loop variables or of values from index arrays; "
    "see docs/kernels.md"
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """An array with the accesses to it, in the order of the references it was made from."""

    array: Array
    indices: tuple[_Index, ...]
    notes: tuple[Note, ...]


def shape_array(
    declared: DeclaredArray, references: Sequence[Reference], loops: Sequence[Loop], scope: Scope
) -> Shaped:
    """The array with its shape, and the index of each reference in that shape.

    Raises:
        UnsupportedKernelError: an index is not affine in the loop variables.
    """
    element = declared.element or ElementType("", 0, "integer")
    indices = [tuple(_affine(part, ref, loops, scope) for part in ref.subscripts) for ref in references]
    extents = [None if node is None else scope.integer(node) for node in declared.dimensions]
    if len(extents) > 1:
        return _declared_shape(declared, element, extents, indices, references, loops, scope)
    nested = [loops[: reference.depth] for reference in references]
    flat = [index[0] for index in indices]
    variables = [loop.variable for loop in loops]
    candidates = [rows for whole in (True, False) if (rows := row_lengths(flat, variables, whole=whole))]
    for rows in candidates:
        split = _split_all(flat, rows, nested)
        shape = None if split is None else _split_shape(extents[0], rows, split, nested)
        if split is not None and shape is not None:
            array = Array(declared.name, element, shape, declared.location)
            return Shaped(array, tuple(split), (_split_note(array, references[0]),))
    shape = () if extents[0] is None else (extents[0],)
    square = None if shape else _rows_around(flat, loops, scope)
    array = Array(declared.name, element, shape if square is None else (square,), declared.location)
    notes = _linear_notes(declared.name, references, bool(candidates))
    if square is not None:
        text = (
            f"{declared.name} is taken to have as many elements as there are rows, {square}: declare its extent if not"
        )
        notes += (Note("square-matrix", text, "assumption", declared.location),)
    return Shaped(array, tuple(indices), notes)


def _rows_around(flat: Sequence[Formula], loops: Sequence[Loop], scope: Scope) -> Formula | None:
    """The number of rows, for an array that is indexed by values from index arrays alone in a loop over rows."""
    if not scope.rows or not all(index.free_symbols and _is_indirect(index, scope) for index in flat):
        return None
    around = next((number for number, loop in enumerate(loops) if loop.variable in scope.rows), 0) - 1
    if around < 0 or loops[around].step != 1:
        return None
    rows = loops[around].stop - loops[around].start
    return None if rows.free_symbols & {loop.variable for loop in loops} else rows


def _is_indirect(index: Formula, scope: Scope) -> bool:
    return all(symbol in scope.indirect for symbol in index.free_symbols)


def _split_note(array: Array, reference: Reference) -> Note:
    listed = "".join(f"[{extent}]" for extent in array.shape)
    text = f"{array.name}: the flat index {reference.text} was split into dimensions of {listed}"
    return Note("index-split", text, "assumption", reference.location)


def _linear_notes(name: str, references: Sequence[Reference], flattened: bool) -> tuple[Note, ...]:
    if not flattened:
        return ()
    text = f"{name}: the flat index {references[0].text} could not be proven to be rows of equal length; kept linear"
    return (Note("index-linear", text, "assumption", references[0].location),)


def _declared_shape(
    declared: DeclaredArray,
    element: ElementType,
    extents: list[Formula | None],
    indices: list[_Index],
    references: Sequence[Reference],
    loops: Sequence[Loop],
    scope: Scope,
) -> Shaped:
    notes: tuple[Note, ...] = ()
    for number, declared_extent in enumerate(extents):
        if declared_extent is not None:
            continue
        bounded = [_below_moduli(index[number], scope) for index in indices]
        own = [(index, loops[: ref.depth]) for index, ref in zip(bounded, references, strict=True)]
        touched = _touched(own)
        if touched is None and not number and any(index[0].free_symbols & scope.indirect.keys() for index in indices):
            extents[0] = asked = size(re.sub(r"\W+", "_", f"{declared.name}_extent"))
            text = (
                f"{declared.name}: no extent is declared, and index arrays choose: {asked} is how many elements it has"
            )
            notes += (Note("inferred-extent", text, "assumption", declared.location),)
            continue
        if touched is None:
            which = "first dimension" if not number else f"dimension {number + 1}"
            raise UnsupportedKernelError(
                f"the {which} of {declared.name} has no extent, and the loops do not give one",
                where=declared.location,
                todo=f"declare {declared.name} with all its extents",
            )
        extents[number] = touched
        text = f"{declared.name}: the first extent is not declared; {touched} is what the loops touch"
        if number:
            text = f"{declared.name}: rows behind pointers are taken to lie one after the other, of {touched} elements"
        code = "rows-behind-pointers" if number else "inferred-extent"
        notes += (Note(code, text, "assumption", declared.location),)
    shape = tuple(extent for extent in extents if extent is not None)
    return Shaped(Array(declared.name, element, shape, declared.location), tuple(indices), notes)


def _touched(indices: Sequence[tuple[Formula, Sequence[Loop]]]) -> Formula | None:
    """The extent that the indices touch from 0 on, None if the loops do not bound them (or an index array does)."""
    bounds = [upper_bound(index, loops) for index, loops in indices]
    if any(bound is None or not bound.of_sizes for bound in bounds):
        return None
    return maximum(*(bound + 1 for bound in bounds if bound is not None))


def _below_moduli(index: Formula, scope: Scope) -> Formula:
    """The largest value of an index over all values of the remainders in it."""
    for symbol in index.free_symbols:
        entry = scope.indirect.get(symbol)
        if entry is not None and entry.modulus is not None and (parts := index.linear([symbol])) is not None:
            factor = parts[0].get(symbol, ZERO)
            index = parts[1] + (factor * (entry.modulus - 1) if positive(factor) else 0)
    return index


def access(reference: Reference, array: Array, index: _Index, loops: Sequence[Loop], scope: Scope) -> Access:
    """The access of a reference, with its linear offset and the coefficients of the loop variables in it."""
    offset = recomposed(index, array.shape[1:])
    parts = offset.linear([loop.variable for loop in loops])
    coefficients = parts[0] if parts else {}
    return Access(
        array=array.name,
        kind=reference.kind,
        index=index,
        offset=offset,
        coefficients=tuple(coefficients.get(loop.variable, ZERO) for loop in loops),
        depth=reference.depth,
        count=1,
        text=reference.text,
        location=reference.location,
        indirect=tuple(entry for name, entry in scope.indirect.items() if entry.name in offset.free_symbols),
        after_inner=reference.after_inner,
        share=reference.share,
        guard=reference.guard,
        element_bytes=reference.element_bytes,
    )


def recomposed(index: Sequence[Formula], inner_extents: Sequence[Formula]) -> Formula:
    """The linear offset of an index: Σ index × product of the extents further in (Horner's scheme)."""
    offset: Formula = index[0]
    for part, extent in zip(index[1:], inner_extents, strict=True):
        offset = offset * extent + part
    return offset


def _affine(expression: Formula, reference: Reference, loops: Sequence[Loop], scope: Scope) -> Formula:
    values = [entry.name for entry in scope.indirect.values()]
    parts = expression.linear([*(loop.variable for loop in loops), *values])
    if parts is None or parts[1].holds("min", "max"):
        raise UnsupportedKernelError(
            f"index {reference.text} is not affine in the loop variables", where=reference.location, todo=_AFFINE
        )
    return expression


# Splitting flat indices


def row_lengths(flat: Sequence[Formula], variables: Sequence[str], *, whole: bool) -> tuple[Formula, ...]:
    """Candidate strides of the dimensions of a flat array, the largest first, the elements (1) left out.

    With `whole`, a coefficient such as 60·N is a stride of its own (a middle extent of 60); without, it is a loop that
    steps over 60 rows of N. Empty if the strides do not form a chain in which each divides the one before.
    """
    strides: dict[Formula, None] = {}
    for expression in flat:
        parts = expression.linear(variables)
        found = {_without_content(c, whole=whole) for c in parts[0].values()} if parts else set()
        if len(found) > 1 or ONE in found:
            strides.update(dict.fromkeys(found))
    # the smallest stride belongs to the last dimension, even where it is 2 (every second element)
    ordered = sorted(strides, key=_magnitude, reverse=True)[:-1]
    chain = [*ordered, ONE]
    divides = all(whole_quotient(big, small) is not None for big, small in pairwise(chain))
    return tuple(ordered) if divides else ()


def _without_content(coefficient: Formula, *, whole: bool) -> Formula:
    """The coefficient without its sign and, unless `whole` or a number, without its integer factor."""
    sign = -1 if max(coefficient.terms.values()) < 0 else 1
    return coefficient / (sign * (1 if whole or coefficient.is_constant else content(coefficient)))


def _magnitude(stride: Formula) -> tuple[int, float, str]:
    """Order by degree in the sizes, then by value at one size for all."""
    degree = max(sum(exponent for _, exponent in monomial) for monomial in stride.terms)
    return degree, float(stride.value(dict.fromkeys(stride.free_symbols, 1000))), str(stride)


def _split_all(
    flat: Sequence[Formula], rows: Sequence[Formula], nested: Sequence[Sequence[Loop]]
) -> list[_Index] | None:
    extents = [q for q in map(whole_quotient, rows, [*rows[1:], ONE]) if q is not None]
    found = [split_index(expression, rows, extents, loops) for expression, loops in zip(flat, nested, strict=True)]
    complete = [index for index in found if index is not None]
    return complete if len(complete) == len(found) else None


def split_index(
    flat: Formula, rows: Sequence[Formula], extents: Sequence[Formula], loops: Sequence[Loop]
) -> _Index | None:
    """The index in dimensions whose strides are `rows` and 1; None unless it is proven.

    Args:
        flat: the linear index.
        rows: strides of all dimensions but the last, the largest first.
        extents: extents of all dimensions but the first: `extents[k] = rows[k] / rows[k + 1]`.
        loops: the loops around the reference.
    """
    index = _split_from(flat, rows, extents, loops)
    if index is None or recomposed(index, extents) != flat:
        return None
    return index


def _split_from(
    flat: Formula, rows: Sequence[Formula], extents: Sequence[Formula], loops: Sequence[Loop]
) -> _Index | None:
    """Split off the outermost dimension; the rest must lie within one row, which decides between nearby quotients."""
    if not rows:
        return (flat,)
    row = rows[0]
    parts = flat.linear([loop.variable for loop in loops])
    if parts is None:
        return None
    outer = ZERO
    for name, coefficient in parts[0].items():
        outer += variable(name) * (whole_quotient(coefficient, row) or 0)
    quotient, _ = divided(parts[1], row, whole=True)
    for correction in (0, -1, 1):
        candidate = outer + quotient + correction
        rest = flat - candidate * row
        if nonnegative(candidate, loops) and nonnegative(rest, loops) and nonnegative(row - 1 - rest, loops):
            inner = _split_from(rest, rows[1:], extents[1:], loops)
            if inner is not None:
                return (candidate, *inner)
    return None


def _split_shape(
    total: Formula | None,
    rows: Sequence[Formula],
    indices: Sequence[_Index],
    nested: Sequence[Sequence[Loop]],
) -> tuple[Formula, ...] | None:
    """The shape of a flat array: its declared total by rows, or the rows that the loops touch."""
    inner = [whole_quotient(big, small) for big, small in zip(rows, [*rows[1:], ONE], strict=True)]
    if total is None:
        outer: Formula | None = _touched([(index[0], loops) for index, loops in zip(indices, nested, strict=True)])
    else:
        outer = whole_quotient(total, rows[0])
    return None if outer is None else (outer, *(extent for extent in inner if extent is not None))


def inner_invariant(name: str, location: Location, loop: Loop) -> Note:
    """The note for an array whose references all stay where they are in the inner loop."""
    text = f"{name} is not indexed by the inner loop variable {loop.variable}: its element can stay in a register"
    return Note("inner-invariant", text, "assumption", location)
