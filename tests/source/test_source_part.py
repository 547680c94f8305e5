"""The part of a nest that one of several cores executes."""

from __future__ import annotations

import pytest

from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.counting import count_iterations, numeric_loops
from kernmodel.source.nest.part import Parts, divided_loops

TRIANGLE = """void f(double *restrict y, double a[restrict N][N]) {
    for (int j = 0; j < N; ++j) for (int i = 0; i <= j; ++i) y[j] += a[j][i]; }"""


def trips(nest, sizes):
    return [count_iterations(numeric_loops(nest.loops[: depth + 1], sizes)) for depth in range(len(nest.loops))]


@pytest.mark.parametrize(("size", "threads", "iterations"), [(12, 3, 4), (13, 3, 5), (2, 3, 2), (1000003, 9, 111112)])
def test_a_part_is_that_of_the_thread_with_the_most(size, threads, iterations):
    """The innermost loop keeps two iterations, with which it is known what moves."""
    part = Parts(load_kernel("copy"), {"N": size}, None).of(threads)
    assert trips(part, {"N": size}) == [iterations]


def test_parts_are_formulas_in_the_sizes():
    copy = load_kernel("copy")
    assert str(Parts(copy, {"N": 12}, None).of(3).inner.stop) == "N/3"
    assert str(Parts(copy, {"N": 13}, None).of(3).inner.stop) == "floor(N/3 + 2/3)"


@pytest.mark.parametrize("step", [1, 3, -1, -3])
def test_steps_and_directions(step):
    loop = f"int i = 2; i < N; i += {step}" if step > 0 else f"int i = N; i > 2; i -= {-step}"
    nest = parse_kernel(f"double a[N + 1], b[N + 1]; for ({loop}) a[i] = b[i];", "k.c", {})
    whole, part = (trips(one, {"N": 100})[0] for one in (nest, Parts(nest, {"N": 100}, None).of(4)))
    assert part == -(-whole // 4)


def test_the_outermost_loop_without_dependences_is_divided():
    assert divided_loops(load_kernel("matvec-transposed")) == (1, 1)  # rows add up in one vector
    assert divided_loops(load_kernel("3d-7pt")) == (0, 2)
    assert divided_loops(load_kernel("2d-5pt")) == (0, 1)  # none is without: the outermost


def test_few_iterations_are_divided_with_those_inside():
    sizes = {"L": 10, "M": 12, "N": 50}  # 8 planes of 10 rows on 16 threads: 5 rows
    assert trips(Parts(load_kernel("3d-7pt"), sizes, None).of(16), sizes)[:2] == [1, 5]


def test_of_a_triangle_the_longest_rows_are_taken():
    nest = parse_kernel(TRIANGLE, "k.c", {})
    assert trips(Parts(nest, {"N": 100}, None).of(4), {"N": 100}) == [25, sum(range(76, 101))]


def test_bounds_that_depend_on_loops_around_have_no_part():
    text = """double a[N][N], b[N]; for (int t = 0; t < N; ++t)
    #pragma omp parallel for
    for (int i = t; i < N; ++i) a[t][i] = b[i];"""
    nest = parse_kernel(text, "k.c", {})
    assert Parts(nest, {"N": 100}, nest.parallel).of(4) is None


def test_a_pragma_says_which_loop_and_how_much():
    text = """double a[M][N], b[M][N]; for (int j = 0; j < M; ++j)
    #pragma omp parallel for schedule(static, 40)
    for (int i = 0; i < N; ++i) a[j][i] = b[j][i];"""
    nest, sizes = parse_kernel(text, "k.c", {}), {"M": 5, "N": 100}
    assert trips(Parts(nest, sizes, nest.parallel).of(2), sizes) == [5, 5 * 60]
