"""What a step of a loop executes of the loops within it."""

from __future__ import annotations

from kernmodel.source.load import parse_kernel
from kernmodel.source.nest.whole_loops import MOST_POINTS, WholeStep, whole_steps


def steps(text: str, around: int) -> list[WholeStep]:
    return list(whole_steps(parse_kernel(f"double a[9][9][9];\n{text}", "f.c", {}), {}, around))


def test_loops_with_constant_bounds_multiply() -> None:
    text = "for (int n = 0; n < 9; n++) for (int i = 1; i < 4; i++) for (int j = 6; j > 0; j -= 3) a[n][i][j] = 1;"
    inner, both = steps(text, 0)
    assert (inner.variables, inner.points, inner.alike, inner.ahead) == (("j",), ((0,), (1,)), True, {})
    assert both.variables == ("i", "j") and both.first == {"i": 1, "j": 6}
    assert both.points == ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1))
    assert list(steps(text, 1)) == [inner]


def test_a_row_of_a_triangle_may_begin_further_and_the_triangle_is_the_same_for_every_step() -> None:
    text = "for (int n = 0; n < 9; n++) for (int i = 0; i < 3; i++) for (int j = i; j < 3; j++) a[n][i][j] = 1;"
    (row,) = steps(text, 1)
    assert (row.points, row.alike, row.ahead, row.first) == (((0,), (1,), (2,)), False, {"j": 1}, {"i": 0, "j": 0})
    *_, triangle = steps(text, 0)
    assert triangle.points == ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    assert triangle.alike and not triangle.ahead


def test_the_longest_of_rows_is_found_wherever_it_is() -> None:
    text = "for (int i = 0; i < 9; i++) for (int j = i; j < 9 - i; j++) a[0][i][j] = 1;"
    (row,) = steps(text, 0)
    assert len(row.points) == 9 and not row.alike


def test_none_where_there_is_too_much_to_unroll() -> None:
    assert not steps(f"for (int i = 0; i < 9; i++) for (int j = 0; j <= {MOST_POINTS}; j++) a[0][i][j] = 1;", 0)
    assert not steps("for (int i = 0; i < 9; i++) for (int j = 9; j < 9; j++) a[0][i][j] = 1;", 0)
