"""Drawings of lines and bars in characters."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.plot.terminal_lines import TextBar, TextLine, bars_text, lines_text
from kernmodel.plot.text_grid import Scale, nice_step

WIDTHS = st.integers(1, 200)
NUMBERS = st.one_of(st.floats(-1e12, 1e12), st.sampled_from([0.0, math.nan, math.inf, -math.inf, 1e-300]))


@st.composite
def some_lines(draw):
    xs = draw(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12, unique=True).map(sorted))
    count = draw(st.integers(1, 12))
    return [TextLine(f"line {n}", tuple(xs), tuple(draw(NUMBERS) for _ in xs)) for n in range(count)]


@given(some_lines(), WIDTHS, st.booleans())
def test_any_lines_are_drawn_within_the_width(lines, width, log_x):
    text = lines_text(lines, "title", width, True, x_label="x", log_x=log_x)
    assert text.isascii()
    assert text.startswith("title\n")
    assert max(map(len, text.splitlines())) <= max(40, min(width, 110))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8), WIDTHS, st.floats(-10, 10))
def test_any_bars_are_drawn_within_the_width(ends, width, origin):
    bars = [TextBar(f"figure {n}", low, high, f"{n} %") for n, (low, high) in enumerate(ends)]
    text = bars_text(bars, "title", width, True, origin=origin)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= max(40, min(width, 110))


@pytest.mark.parametrize("small", [5e-324, -5e-324, 1e-310, -3.4e-144])
def test_numbers_with_exponents_of_three_digits_are_drawn_as_zero(small):
    zero = lines_text([TextLine("a", (0.0, 1.0), (0.0, 0.0))], "t")
    assert lines_text([TextLine("a", (small, 1.0), (small, small))], "t") == zero
    assert bars_text([TextBar("a", small, 1.0, "")], "t") == bars_text([TextBar("a", 0.0, 1.0, "")], "t")


def plotted(text):
    """The rows between title and axis, without the vertical axis."""
    return [row[8:] for row in text.splitlines()[1:21]]


def test_a_step_is_drawn_upright():
    rows = plotted(lines_text([TextLine("T_ECM", (0, 49, 50, 100), (10, 10, 20, 20))], "step"))
    low, high = (next(n for n, row in enumerate(rows) if row.count("*") > 20 and test(row)) for test in
                 (lambda row: row.startswith("*"), lambda row: row.startswith(" ")))  # fmt: skip
    assert high < low
    between = rows[high + 1 : low]
    assert len({row.index(next(sign for sign in row if sign != " ")) for row in between}) == 1
    assert any("│" in row for row in between)


def test_lines_that_coincide_are_both_seen():
    text = lines_text([TextLine("one", (1, 9), (2, 2)), TextLine("two", (1, 9), (2, 2))], "same")
    row = next(row for row in plotted(text) if "*" in row)
    assert row.count("*") == row.count("o") == 36
    assert "* one   o two" in text


def test_a_peak_between_columns_is_seen():
    ys = [1.0] * 1001
    ys[500] = 9.0
    rows = plotted(lines_text([TextLine("misses", tuple(range(1001)), tuple(ys))], "peak"))
    assert "*" in rows[2]


def test_what_has_no_place_leaves_a_gap():
    text = lines_text([TextLine("a", (1, 2, 3, 4, 5), (1, 1, math.nan, 1, 1))], "gap")
    row = next(row for row in plotted(text) if "*" in row)
    assert "*" + " " * 30 in row
    assert row.endswith("*")


@pytest.mark.parametrize(("value", "row"), [(4.0, 0), (-4.0, 19), (0.0, 19)])
def test_a_level_line_is_drawn_from_zero(value, row):
    text = lines_text([TextLine("a", (1, 2), (value, value))], "level")
    assert "*" in plotted(text)[row]
    assert any(line.lstrip().startswith("0 ") for line in text.splitlines())


def test_nothing_to_draw():
    assert "nothing to draw" in lines_text([], "none")
    assert "nothing to draw" in lines_text([TextLine("a", (0,), (1,))], "none", log_x=True)
    assert "nothing to draw" in bars_text([], "none")


def test_the_legend_takes_as_many_lines_as_it_needs():
    lines = [TextLine("a long label of a line " + str(n), (1, 2), (n, n)) for n in range(5)]
    assert [line.split()[0] for line in lines_text(lines, "labels", 60).splitlines()[-3:]] == list("*+#")
    assert [line.split()[0] for line in lines_text(lines, "labels", 50).splitlines()[-5:]] == list("*o+x#")


def test_bars_go_to_both_sides_of_the_origin():
    text = bars_text([TextBar("clock", 1.4, 0.8, "-0.9"), TextBar("L2.size", 1.0, 1.0)], "tornado", 80, True)
    clock, none, *_ = text.splitlines()[1:]
    left, right = clock.split("|")
    assert "#" in left and "-" not in left
    assert "-" in right and "#" not in right
    assert clock.endswith("-0.9")
    assert "#" not in none and none.rstrip().endswith("|")


def test_both_ends_on_one_side_are_seen():
    row = bars_text([TextBar("ways", 1.2, 1.6)], "tornado", 80, True).splitlines()[1]
    assert "|--" in row and row.rstrip().endswith("#")


def test_the_smallest_effect_takes_a_cell():
    row = bars_text([TextBar("a", 1.0, 1.0001), TextBar("b", 0.5, 2.0)], "tornado", 80, True).splitlines()[1]
    assert row.rstrip().endswith("|#")


@given(st.floats(1e-9, 1e9), st.floats(1.001, 1e9), st.booleans(), st.integers(2, 12))
def test_ticks_are_on_the_axis_and_not_too_many(low, factor, log, most):
    scale = Scale(low, low * factor, log)
    ticks = scale.ticks(most)
    assert len(ticks) <= most + 1
    assert ticks == sorted(ticks)
    assert all(-1e-6 <= scale.share(tick) <= 1 + 1e-6 for tick in ticks)


@given(st.floats(1e-12, 1e12))
def test_a_nice_step_is_a_little_above(least):
    assert least * (1 - 1e-6) <= nice_step(least) <= 2.5 * least * (1 + 1e-6)


@pytest.mark.parametrize("log", [False, True])
@given(share=st.floats(0, 1))
def test_values_and_shares_of_an_axis_are_inverse(log, share):
    scale = Scale(2.0, 300.0, log)
    assert scale.share(scale.value(share)) == pytest.approx(share, abs=1e-9)
