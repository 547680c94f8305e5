"""Loop bounds and addresses in numbers: affine forms of the loop variables, and minima and maxima of such.

A bound is brought into the form "minimum over groups of the maximum over the forms of a group", whatever minima, maxima
and sums of them the source nests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product

from kernmodel.cachesim.model import Form, ProgramBound
from kernmodel.formulas.formula import Formula
from kernmodel.source.nest.counting import put_in

Groups = tuple[tuple[Form, ...], ...]
Interval = tuple[int, int]


def form_of(formula: Formula, variables: Sequence[str], sizes: Mapping[str, int]) -> Form | None:
    """A formula as constant and one coefficient per variable; None if it is not affine in them."""
    parts = put_in(formula, sizes, variables).linear(variables)
    if parts is None or not parts[1].is_integer:
        return None
    return Form(int(parts[1]), tuple(int(parts[0].get(name, 0)) for name in variables))


def bound_of(formula: Formula, variables: Sequence[str], sizes: Mapping[str, int]) -> ProgramBound | None:
    """A loop bound with numbers for the sizes; None if its parts are not affine in the variables."""
    groups = _groups(put_in(formula, sizes, variables), variables)
    return None if groups is None else ProgramBound("min", groups)


def plain_bound(form: Form) -> ProgramBound:
    """A bound that is one form."""
    return ProgramBound("min", ((form,),))


def shifted(form: Form, amount: int) -> Form:
    """The form plus a number."""
    return Form(form.constant + amount, form.coefficients)


def shifted_bound(bound: ProgramBound, amount: int) -> ProgramBound:
    """The bound plus a number."""
    return ProgramBound(bound.pick, tuple(tuple(shifted(form, amount) for form in group) for group in bound.groups))


def _groups(formula: Formula, variables: Sequence[str]) -> Groups | None:
    extreme = formula.extreme
    if extreme is not None:
        known = _all_groups(extreme.parts, variables)
        if known is None:
            return None
        return tuple(chain.from_iterable(known)) if extreme.kind == "min" else _greatest(known)
    if formula.holds("min", "max"):
        return _composed(formula, variables)
    form = form_of(formula, variables, {})
    return None if form is None else ((form,),)


def _all_groups(formulas: Iterable[Formula], variables: Sequence[str]) -> list[Groups] | None:
    parts = [_groups(part, variables) for part in formulas]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def _composed(formula: Formula, variables: Sequence[str]) -> Groups | None:
    """A sum of multiples of minima and maxima."""
    factors, monomials = formula.terms.values(), [Formula({monomial: 1}) for monomial in formula.terms]
    if formula in monomials:
        return None  # a product with a minimum or maximum in it
    known = _all_groups(monomials, variables)
    if known is None or not all(isinstance(factor, int) for factor in factors):
        return None
    scaled = [_scaled(groups, int(factor)) for groups, factor in zip(known, factors, strict=True)]
    return tuple(tuple(_added(forms) for forms in product(*groups)) for groups in product(*scaled))


def _greatest(parts: Sequence[Groups]) -> Groups:
    """max(min_g a_g, min_h b_h) is the minimum over all pairs of the maximum of both."""
    return tuple(tuple(form for group in groups for form in group) for groups in product(*parts))


def _added(forms: Sequence[Form]) -> Form:
    coefficients = zip(*(form.coefficients for form in forms), strict=True)
    return Form(sum(form.constant for form in forms), tuple(sum(column) for column in coefficients))


def _scaled(groups: Groups, factor: int) -> Groups:
    """A multiple; a negative one turns minima into maxima, and the groups inside out."""
    multiples = tuple(
        tuple(Form(form.constant * factor, tuple(c * factor for c in form.coefficients)) for form in group)
        for group in groups
    )
    if factor >= 0:
        return multiples
    # −min_g max_f = max_g min_f (−f): the maximum over the groups of a minimum over their forms
    return _greatest([tuple((form,) for form in group) for group in multiples])


# Values and ranges


def form_range(form: Form, ranges: Sequence[Interval]) -> Interval:
    """Least and greatest value where each variable stays in its range."""
    ends = [(c * low, c * high) for c, (low, high) in zip(form.coefficients, ranges, strict=False)]
    return form.constant + sum(min(pair) for pair in ends), form.constant + sum(max(pair) for pair in ends)


def bound_range(bound: ProgramBound, ranges: Sequence[Interval]) -> Interval:
    """Bounds of a bound where each outer variable stays in its range."""
    outer, inner = (min, max) if bound.pick == "min" else (max, min)
    found = [[form_range(form, ranges) for form in group] for group in bound.groups]
    low, high = (outer(inner(pair[end] for pair in group) for group in found) for end in (0, 1))
    return low, high
