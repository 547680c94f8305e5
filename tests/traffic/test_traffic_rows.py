"""Rows of memory that lie apart, or that are run through against their order: lines at their ends, counted by hand."""

from __future__ import annotations

import pytest
from traffic_reference import LINE, simulate, toy_machine

from kernmodel.source.load import parse_kernel
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import LayerCondition


def memory(text: str, sizes: dict[str, int], lines: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Lines loaded and stored per unit of work with a cache of so many lines: by layer conditions, and simulated."""
    nest = parse_kernel(text, "rows.c", sizes)
    machine = toy_machine(LINE * lines)
    traffic = layer_conditions(nest, machine, sizes)
    loads, stores, _ = (
        count * traffic.iterations_per_unit for count in simulate(nest, machine, sizes, warm_up=1)["L1Mem"]
    )
    return (traffic.paths[0].loads, traffic.paths[0].stores), (loads, stores)


BETWEEN = """void f(float a[restrict L][M][N]) {
  for (int k = 2; k < L - 2; ++k) for (int j = 2; j < M - 2; j += 2) for (int i = 2; i < N - 2; ++i)
    a[k][j][i] = a[k][j+1][i-1]; }"""
BACKWARD = """void f(float a[restrict L][M][N]) {
  for (int k = L - 3; k >= 2; --k) for (int j = M - 3; j >= 2; j -= 2) for (int i = N - 3; i >= 2; --i)
    a[k][j][i] = a[k][j-1][i+1]; }"""


@pytest.mark.parametrize("text", [BETWEEN, BACKWARD], ids=["forward", "backward"])
@pytest.mark.parametrize(("lines", "loaded"), [(3, 10), (24, 9)])
def test_rows_between_rows_share_the_line_at_their_ends(text: str, lines: int, loaded: int) -> None:
    """Rows of 72 floats are 288 B; two of them, 9 lines, begin with a line.

    Of such a pair, columns 2 to 69 of the first row are bytes 8 to 279, lines 0 to 4; columns 1 to 68 of the second are
    bytes 292 to 563, lines 4 to 8. That is 10 lines in 68 iterations if line 4 is lost between its two uses, which are
    a row apart, and 9 if it stays. 5 of them are written. A unit of work is 16 iterations. Backward, columns 2 to 69 of
    the second row (bytes 296 to 567) are written and 3 to 70 of the first (12 to 283) read: the same lines.
    """
    model, simulated = memory(text, {"L": 16, "M": 20, "N": 72}, lines)
    assert model == pytest.approx((loaded * 16 / 68, 5 * 16 / 68))
    assert simulated == pytest.approx(model)


def test_a_shared_line_is_a_reuse_with_a_condition() -> None:
    """Line 4 of each pair of rows: 16/68 lines per unit of work, over an iteration of j, which touches two rows."""
    sizes = {"L": 16, "M": 20, "N": 72}
    nest = parse_kernel(BETWEEN, "rows.c", sizes)
    conditions = layer_conditions(nest, toy_machine(24 * LINE), sizes).conditions

    def shared(condition: LayerCondition) -> bool:
        return any(reuse.carried_by == "j" for reuse in condition.reuses)

    (condition,) = (condition for condition in conditions if shared(condition))
    (reuse,) = condition.reuses
    assert (reuse.access, reuse.source) == ("a[k][j][i]", "a[k][j+1][i-1]")
    assert reuse.lines_saved == pytest.approx(16 / 68)
    assert 2 * 272 <= condition.required <= 2 * 5 * LINE + 2 * LINE


COMPONENTS = """void f(float a[restrict M][3][N], float b[restrict M][N]) {
  for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[j][0][i] + a[j][1][i]; }"""


def test_components_share_the_line_between_them() -> None:
    """Rows of 40 floats are 160 B, 2.5 lines; a step of j is three of them, 480 B, from a line on or from half a line.

    From a line on, component 0 is in bytes 0 to 159, lines 0 to 2, component 1 in 160 to 319, lines 2 to 4: 5 in all.
    From half a line on they are in 32 to 191, lines 0 to 2, and 192 to 351, lines 3 to 5: 6 in all. b runs on: 2.5.
    """
    model, simulated = memory(COMPONENTS, {"M": 40, "N": 40}, 40)
    assert model == pytest.approx(((5.5 + 2.5) * 16 / 40, 2.5 * 16 / 40))
    assert simulated == pytest.approx(model)


SHIFTED = """void f(double a[restrict M][N]) {
  for (int j = 0; j < M - 2; j += 2) for (int i = 8; i < N - 8; ++i) a[j][i] = a[j+2][i+1]; }"""


@pytest.mark.parametrize(("lines", "loaded"), [(4, 3 + 2), (32, 3)])
def test_each_reference_has_its_own_lines_of_a_row(lines: int, loaded: int) -> None:
    """Rows of 32 doubles are 4 lines. Columns 8 to 23, lines 1 and 2, are written, columns 9 to 24, lines 1 to 3, read.

    Where a row stays until it is written, 3 lines are loaded for 16 iterations, else 3 and 2; 2 are modified. A unit of
    work is 8 iterations. The boundary is one row in 99.
    """
    model, simulated = memory(SHIFTED, {"M": 200, "N": 32}, lines)
    assert model == pytest.approx((loaded / 2, 1))
    assert simulated == pytest.approx(model, rel=0.015)


AGAINST = """void f(float a[restrict M][N]) {
  for (int j = 0; j < M; ++j) for (int i = N - 1; i >= 0; --i) a[j][i] = 2.0f * a[j][i]; }"""
ALONG = """void f(float a[restrict M][N]) {
  for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) a[j][i] = 2.0f * a[j][i]; }"""


@pytest.mark.parametrize(("text", "lines", "loaded"), [(AGAINST, 3, 3), (AGAINST, 8, 2.25), (ALONG, 3, 2.25)])
def test_rows_run_through_against_their_order(text: str, lines: int, loaded: float) -> None:
    """Rows of 36 floats are 144 B, 2.25 lines; they begin 0, 16, 32 or 48 B into a line and lie in 3 each.

    The line between two rows is touched at the beginning of one and, backward, at the end of the next. If two rows (4.5
    lines) do not fit, each row has its 3 lines loaded; else, or forward, 2.25. A unit of work is 16 iterations.
    """
    model, simulated = memory(text, {"M": 80, "N": 36}, lines)
    assert model == pytest.approx((loaded * 16 / 36, loaded * 16 / 36))
    assert simulated == pytest.approx(model, rel=0.015)


APART = """void f(float a[restrict M][N]) {
  for (int j = M - 3; j >= 0; --j) for (int i = 0; i < N; ++i) a[j][i] = a[j+2][i]; }"""


def test_another_reference_has_just_touched_the_end_of_the_row_before() -> None:
    """Rows as above, upward through memory while j goes down; 6 lines hold an iteration of j but not two.

    An iteration ends with the last line of row j and of row j + 2, the next one begins with the first of row j - 1 and
    of row j + 1. The last of row j is the first of row j + 1 unless a line begins there (every fourth row): of the 3
    lines of what is read, 3/4 are found, of the 3 that are written none.
    """
    model, simulated = memory(APART, {"M": 82, "N": 36}, 6)
    assert model == pytest.approx((5.25 * 16 / 36, 3 * 16 / 36))
    assert simulated == pytest.approx(model, rel=0.015)


FEW = """void f(float a[restrict M][N], float b[restrict M][N]) {
  for (int ii = 1; ii < N - 1; ii += 10) for (int j = 0; j < M; ++j) for (int i = ii; i < ii + 10; ++i)
    b[j][i] = a[j][i]; }"""


def test_few_tiles_begin_where_they_do() -> None:
    """Rows of 32 floats are two lines; tiles of 10 begin in columns 1, 11 and 21.

    They are bytes 4 to 43, 44 to 83 and 84 to 123: one line, two lines, one line, and not the 1.625 of tiles that begin
    anywhere at a multiple of 8 B from 4 on. A unit of work is 16 iterations, the cache holds the rows of a tile but not
    those of all j.
    """
    model, simulated = memory(FEW, {"M": 100, "N": 32}, 16)
    assert model == pytest.approx((2 * 4 / 3 * 16 / 10, 4 / 3 * 16 / 10))
    assert simulated == pytest.approx(model)
