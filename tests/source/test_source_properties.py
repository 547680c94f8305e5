"""Laws of the front end, on random nests: exact counts and ranges, exact splits of flat indices, sound proofs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from math import comb

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernmodel.errors import SourceError
from kernmodel.formulas.formula import as_formula, size
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.affine import nonnegative, upper_bound
from kernmodel.source.nest.counting import index_range, numeric_loops
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of, trip_counts
from kernmodel.source.parse.delinearise import recomposed
from kernmodel.source.parse.preprocess import integer_literal

NAMES = ("i", "j", "k", "l")
COMPARISONS = {"<": 1, "<=": 1, ">": -1, ">=": -1}


@dataclass(frozen=True)
class Head:
    """One loop as C text and as Python expressions."""

    variable: str
    start: str
    stop: str
    comparison: str
    step: int

    @property
    def text(self) -> str:
        name = self.variable
        return f"for (int {name} = {self.start}; {name} {self.comparison} {self.stop}; {name} += {self.step})"

    def values(self, environment: dict[str, int]) -> list[int]:
        scope = {"MIN": min, "MAX": max, "N": 7, **environment}
        value, found = eval(self.start, scope), []
        while eval(f"{value} {self.comparison} ({self.stop})", scope):
            found.append(value)
            value += self.step
        return found


@st.composite
def affine(draw: st.DrawFn, outer: tuple[str, ...]) -> str:
    terms = [str(draw(st.integers(-4, 8)))]
    for name in (*outer, "N"):
        factor = draw(st.sampled_from([0, 0, 1, 1, -1, 2]))
        if factor:
            terms.append(f"{factor}*{name}")
    return " + ".join(terms)


@st.composite
def bound(draw: st.DrawFn, outer: tuple[str, ...]) -> str:
    kind = draw(st.sampled_from(["", "", "MIN", "MAX"]))
    return f"{kind}({draw(affine(outer))}, {draw(affine(outer))})" if kind else draw(affine(outer))


@st.composite
def nests(draw: st.DrawFn) -> tuple[Head, ...]:
    heads: list[Head] = []
    for name in NAMES[: draw(st.integers(1, 3))]:
        outer = tuple(head.variable for head in heads)
        comparison = draw(st.sampled_from(list(COMPARISONS)))
        step = draw(st.integers(1, 4)) * COMPARISONS[comparison]
        heads.append(Head(name, draw(bound(outer)), draw(bound(outer)), comparison, step))
    return tuple(heads)


def executed(heads: tuple[Head, ...], environment: dict[str, int] | None = None) -> list[dict[str, int]]:
    if not heads:
        return [environment or {}]
    return [
        inner
        for value in heads[0].values(environment or {})
        for inner in executed(heads[1:], {**(environment or {}), heads[0].variable: value})
    ]


def parsed(heads: tuple[Head, ...], statement: str = "x[0] = 1;", arrays: str = "double *x") -> LoopNest:
    macros = "#define N 7\n#define MIN(a, b) ((a) < (b) ? (a) : (b))\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n"
    loops = "\n".join(head.text for head in heads)
    return parse_kernel(f"{macros}void f({arrays}) {{\n{loops}\n{statement} }}", "x.c")


@pytest.mark.thorough
@settings(deadline=None, max_examples=150)
@given(nests())
def test_iterations_equal_enumeration(heads: tuple[Head, ...]) -> None:
    nest = parsed(heads)
    counts = [1, *(len(executed(heads[: k + 1])) for k in range(len(heads)))]
    assert iterations_per_sweep(nest, {"N": 7}) == counts[-1]
    expected = tuple(inner / outer if outer else 0.0 for outer, inner in pairwise(counts))
    assert trip_counts(nest, {"N": 7}) == pytest.approx(expected)


@pytest.mark.parametrize("turned", [False, True])
def test_deep_triangles_need_no_enumeration(turned: bool) -> None:
    inner = "for (int l = k - 1; l >= 0; --l)" if turned else "for (int l = 0; l < k; ++l)"
    text = f"""void f(int n, double *x) {{
        for (int i = 0; i < n; ++i) for (int j = 0; j < i; ++j) for (int k = 0; k < j; ++k) {inner} x[0] = 1; }}"""
    assert iterations_per_sweep(parse_kernel(text, "x.c"), {"n": 10**6}) == comb(10**6, 4)


@pytest.mark.thorough
@settings(deadline=None, max_examples=100)
@given(nests(), st.lists(st.integers(-3, 3), min_size=3, max_size=3))
def test_index_range_equals_enumeration(heads: tuple[Head, ...], factors: list[int]) -> None:
    nest = parsed(heads)
    coefficients = dict(zip((head.variable for head in heads), factors, strict=False))
    values = [sum(coefficients[name] * value for name, value in point.items()) for point in executed(heads)]
    found = index_range(coefficients, 5, numeric_loops(nest.loops, {"N": 7}))
    assert found == ((min(values) + 5, max(values) + 5) if values else None)


@pytest.mark.thorough
@settings(deadline=None, max_examples=80)
@given(nests(), st.data())
def test_proofs_hold_in_every_iteration(heads: tuple[Head, ...], data: st.DataObject) -> None:
    nest = parsed(heads)
    text = data.draw(affine(tuple(head.variable for head in heads)))
    expression = as_formula(eval(text, {"N": size("N"), **{loop.variable: loop.symbol for loop in nest.loops}}))
    values = [eval(text, {"N": 7, **point}) for point in executed(heads)]
    if nonnegative(expression, nest.loops):
        assert all(value >= 0 for value in values)
    highest = upper_bound(expression, nest.loops)
    if highest is not None and values:
        assert highest.free_symbols - {"N"} or highest.value({"N": 7}) >= max(values)


@given(
    st.lists(st.integers(-2, 2), min_size=2, max_size=3),
    st.sampled_from([("N", "M"), ("(N+4)", "M"), ("100", "50"), ("N", "(M+4)"), ("N", "60")]),
)
def test_split_of_a_flat_index_is_exact(shift: list[int], extents: tuple[str, str]) -> None:
    names = NAMES[: len(shift)]  # innermost first
    sizes = [*extents, "L"][: len(shift)]
    heads = "".join(
        f"for (int {v} = 2; {v} < {e} - 2; ++{v}) " for v, e in reversed(list(zip(names, sizes, strict=True)))
    )
    index = f"({names[-1]} + {shift[-1]})"
    for name, extent, distance in reversed(list(zip(names[:-1], sizes[:-1], shift[:-1], strict=True))):
        index = f"({index} * {extent} + {name} + {distance})"
    nest = parse_kernel(f"double *x; {heads} x[{index}] = 1;", "x.c")
    access, array = nest.accesses[0], nest.arrays["x"]
    symbols = {loop.variable: loop.symbol for loop in nest.loops} | dict(nest.symbols)
    assert access.offset == eval(index, dict(symbols))
    assert len(array.shape) == len(shift)
    assert recomposed(access.index, array.shape[1:]) == access.offset
    expected = [symbols[name] + distance for name, distance in zip(names, shift, strict=True)]
    assert list(access.index) == expected[::-1]


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 9), st.integers(3, 9), st.integers(-20, 20), st.booleans())
def test_split_never_moves_an_element(n: int, m: int, shift: int, down: bool) -> None:
    """Whatever a flat index is, at numbers each iteration addresses the same element with and without the split."""
    head = f"for (int i = {n} - 1; i >= 0; --i)" if down else f"for (int i = 0; i < {n}; ++i)"
    nest = parse_kernel(f"double *x; for (int j = 0; j < {m}; ++j) {head} x[j*{n} + i + {shift}] = 1;", "x.c")
    access, array = nest.accesses[0], nest.arrays["x"]
    for row, column in product(range(m), range(n)):
        index = [int(part.value({"j": row, "i": column})) for part in access.index]
        assert recomposed(index, array.shape[1:]) == row * n + column + shift
        if array.shape:
            assert all(0 <= part < extent for part, extent in zip(index, map(int, array.shape), strict=True))


@given(st.integers(1, 12), st.integers(0, 6), st.integers(0, 6), st.integers(1, 3), st.booleans())
def test_out_of_bounds_is_found_exactly(extent: int, start: int, length: int, step: int, down: bool) -> None:
    values = list(range(start, start + length, step))
    assume(values)
    head = (
        f"for (int i = {values[-1]}; i >= {start}; i -= {step})"
        if down
        else f"for (int i = {start}; i < {start + length}; i += {step})"
    )
    nest = parse_kernel(f"double x[{extent}]; {head} x[i] = 1;", "x.c")
    if values[-1] < extent:
        assert sizes_of(nest, {}) == {}
    else:
        with pytest.raises(SourceError, match="out of bounds"):
            sizes_of(nest, {})


@given(st.integers(0, 2**63), st.sampled_from(["{}", "{:#x}", "0{:o}"]), st.sampled_from(["", "u", "L", "ull", "UL"]))
def test_integer_literals_read_back(value: int, form: str, suffix: str) -> None:
    assert integer_literal(form.format(value) + suffix) == value


@given(st.text(alphabet="for(int i=0;<N)+x[]{}*#define \n/1.0e", max_size=80))
def test_no_text_ends_in_another_exception(text: str) -> None:
    try:
        parse_kernel(text, "x.c")
    except SourceError as error:
        assert str(error)
