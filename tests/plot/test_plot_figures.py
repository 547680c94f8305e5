"""Pictures by structure: what stands where, with which label; not by pixels."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.models.chart import ComputeRoof, LevelShare, MemoryRoof, Point, Roofline
from kernmodel.plot import style
from kernmodel.plot.caption import Caption, metadata_texts
from kernmodel.plot.placement import Board, Place, text_width
from kernmodel.plot.roofline import draw_shares, figure_of
from kernmodel.plot.roofline_chart import Chart, limits_of
from kernmodel.plot.roofline_text import chart_text

LEVELS = {"L1": 2000e9, "L2": 1000e9, "L3": 400e9, "Mem": 100e9}
ROOFS = tuple(MemoryRoof(level, rate, level, "measured") for level, rate in LEVELS.items())
COMPUTE = (
    ComputeRoof("DP AVX-512 FMA", 1000e9, "peak", "derived"),
    ComputeRoof("DP AVX-512 ADD", 500e9, "peak", "derived"),
    ComputeRoof("in-core throughput", 200e9, "in-core", "derived"),
)
ONE = Roofline(
    model="carm",
    bytes_meant="core-side bytes of load and store instructions",
    memory_roofs=ROOFS,
    compute_roofs=COMPUTE,
    points=(Point("triad", "", 0.1, 8e9),),
    bound=10e9,
    bound_by="Mem",
    region="in between",
    above="Mem",
    below=None,
    cores=10,
    notes=(),
    iterations_per_second=5e9,
    memory_until=0.25,
)
LAYERED = replace(
    ONE,
    model="hierarchical",
    memory_until=None,
    points=tuple(Point("triad", level, x, 8e9) for level, x in zip(LEVELS, (0.1, 0.1, 0.2, 0.4), strict=True)),
)
CAPTION = Caption("triad on a machine", ("N = 5",))
SHARES = (LevelShare("L1", 60, 2000e9, 0.6, 0.1), LevelShare("Mem", 40, 100e9, 0.4, 0.9))


def drawn(chart: Chart, shares=()):
    figure = figure_of([chart], shares, CAPTION)
    return figure, figure.axes[0]


def lines(axes) -> dict[str, list]:
    found: dict[str, list] = {}
    for line in axes.lines:
        found.setdefault(line.get_label(), []).append(line)
    return found


def test_memory_roofs_have_their_slope_and_end_at_the_ridge():
    _, axes = drawn(Chart(("triad",), (ONE,)))
    for level, rate in LEVELS.items():
        (line,) = lines(axes)[f"roof {level}"]
        x, y = line.get_data()
        assert y / x == pytest.approx([rate / 1e9] * 2)
        (ridge,) = lines(axes)[f"ridge {level}"]
        assert ridge.get_data()[0] == pytest.approx([1000e9 / rate])
        assert y[-1] == pytest.approx(1000)


def test_compute_roofs_are_level_and_begin_at_the_highest_memory_roof():
    _, axes = drawn(Chart(("triad",), (ONE,)))
    for roof in COMPUTE:
        (line,) = lines(axes)[f"roof {roof.name}"]
        assert list(line.get_ydata()) == pytest.approx([roof.flop_per_second / 1e9] * 2)
        assert line.get_xdata()[0] == pytest.approx(roof.flop_per_second / 2000e9)
    assert (
        lines(axes)["roof in-core throughput"][0].get_linestyle()
        != lines(axes)["roof DP AVX-512 FMA"][0].get_linestyle()
    )


def test_roofs_are_labelled_with_their_values():
    _, axes = drawn(Chart(("triad",), (ONE,)))
    texts = {text.get_text() for text in axes.texts}
    assert {"L1 2 TB/s", "L2 1 TB/s", "L3 400 GB/s", "Mem 100 GB/s"} <= texts
    assert {"DP AVX-512 FMA 1 TFLOP/s", "DP AVX-512 ADD 500 GFLOP/s", "in-core throughput 200 GFLOP/s"} <= texts
    assert "memory region" in texts


def test_axes_say_which_bytes_and_which_flop():
    labels = {}
    for one in (ONE, LAYERED):
        _, axes = drawn(Chart(("triad",), (one,)))
        assert "an FMA counts 2" in axes.get_ylabel()
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        labels[one.model] = axes.get_xlabel()
    assert "core-side" in labels["carm"]
    assert "between levels" in labels["hierarchical"]


def test_the_memory_region_ends_at_the_first_ridge_point():
    _, axes = drawn(Chart(("triad",), (ONE,)))
    (region,) = [one for one in axes.collections if one.get_label() == "memory region"]
    corners = region.get_paths()[0].vertices
    assert corners[:, 0].max() == pytest.approx(500 / 2000)
    assert not list(drawn(Chart(("triad",), (LAYERED,)))[1].collections)


def test_the_point_its_line_of_intensity_and_its_bound():
    _, axes = drawn(Chart(("triad",), (ONE,)))
    found = lines(axes)
    assert [tuple(float(v[0]) for v in found["triad"][0].get_data())] == [pytest.approx((0.1, 8))]
    assert list(found["intensity"][0].get_xdata()) == pytest.approx([0.1, 0.1])
    assert list(found["bound of triad"][0].get_ydata()) == pytest.approx([10])


def test_levels_are_joined_and_named():
    _, axes = drawn(Chart(("triad",), (LAYERED,)))
    (joined,) = lines(axes)["triad"]
    assert list(joined.get_xdata()) == pytest.approx([0.1, 0.1, 0.2, 0.4])
    assert joined.get_linestyle() == "-"
    assert {"L1, L2", "L3", "Mem"} <= {text.get_text() for text in axes.texts}


def test_several_kernels_differ_in_colour_and_marker():
    names = tuple(f"k{number}" for number in range(100))
    figure, axes = drawn(Chart(names, (ONE,) * 100))
    looks = {(lines(axes)[name][0].get_color(), lines(axes)[name][0].get_marker()) for name in names}
    assert len(looks) == 100
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(names)


def test_kernels_without_a_place_are_named_with_the_reason():
    copy = replace(ONE, points=(Point("copy", "", 0.0, 0.0),), bound=0.0)
    pi = replace(ONE, points=(Point("pi", "", None, 8e9),))
    figure, _ = drawn(Chart(("copy", "pi"), (copy, pi)))
    texts = {text.get_text() for text in figure.texts}
    assert "copy: AI = 0 (no FLOP): bandwidth only, at most 5 GIt/s" in texts
    assert "pi: AI = ∞ (moves no data), 8 GFLOP/s" in texts
    assert not figure.legends


def test_the_highest_roofs_of_several_kernels_and_none_of_their_own_code():
    other = replace(
        ONE, memory_roofs=tuple(replace(roof, bytes_per_second=roof.bytes_per_second / 2) for roof in ROOFS)
    )
    chart = Chart(("a", "b"), (other, ONE))
    assert [roof.bytes_per_second for roof in chart.memory_roofs] == list(LEVELS.values())
    assert [roof.name for roof in chart.compute_roofs] == ["DP AVX-512 FMA", "DP AVX-512 ADD"]
    _, axes = drawn(chart)
    labels = [text.get_text() for text in axes.texts]
    assert "L1 2 TB/s (b)" in labels
    assert "DP AVX-512 FMA 1 TFLOP/s" in labels  # of both


def test_the_roofs_of_many_kernels_name_the_first_and_count_the_rest():
    lower = replace(ONE, memory_roofs=tuple(replace(roof, bytes_per_second=1e9) for roof in ROOFS))
    chart = Chart(tuple("abcde"), (ONE, ONE, ONE, ONE, lower))
    assert chart.named(chart.owners(ROOFS[0])) == "a, b and 2 more"


def test_regions_of_several_kernels_are_their_own():
    """Never one region for all: the table judges each kernel by its own roofs."""
    other = replace(ONE, memory_until=0.01)
    chart = Chart(("a", "b"), (ONE, other))
    _, axes = drawn(chart)
    ends = [one.get_paths()[0].vertices[:, 0].max() for one in axes.collections]
    assert ends == pytest.approx([0.01, 0.25]) or ends == pytest.approx([0.25])  # one left of the axes is not drawn
    assert "memory region of a" in [text.get_text() for text in axes.texts]
    many = Chart(tuple("abcd"), tuple(replace(ONE, memory_until=0.1 * n) for n in range(1, 5)))
    figure, axes = drawn(many)
    assert not list(axes.collections)
    assert "memory regions differ by kernel, see the table" in [text.get_text() for text in figure.texts]


def test_a_point_above_its_own_roof_has_a_ring_and_others_have_none():
    over = replace(ONE, points=(replace(ONE.points[0], above_roof="Mem"),))
    figure, axes = drawn(Chart(("triad",), (over,)))
    (ring,) = lines(axes)["above its roof"]
    assert tuple(float(v[0]) for v in ring.get_data()) == pytest.approx((0.1, 8))
    assert "ring: the prediction is above its own roof" in [text.get_text() for text in figure.texts]
    assert "above its own roof of Mem" in chart_text(Chart(("triad",), (over,)), 80)
    assert "above its roof" not in lines(drawn(Chart(("triad",), (ONE,)))[1])


def test_only_what_is_predicted_is_called_so():
    bound = replace(ONE, points=(replace(ONE.points[0], predicted=False),))
    figure, _ = drawn(Chart(("triad",), (bound,)))
    said = [text.get_text() for text in figure.texts]
    assert "point: bound of the model, nothing is predicted" in said
    assert not [text for text in said if text.startswith("point: predicted")]
    assert "(the bound, nothing is predicted)" in chart_text(Chart(("triad",), (bound,)), 80)


def test_derived_roofs_are_drawn_otherwise_than_measured_ones():
    derived = replace(ONE, memory_roofs=(replace(ROOFS[0], basis="derived"), *ROOFS[1:]))
    _, axes = drawn(Chart(("triad",), (derived,)))
    looks = {level: lines(axes)[f"roof {level}"][0].get_linestyle() for level in LEVELS}
    assert looks["L2"] == "-" and looks["L1"] == "--"


def test_eight_kernels_fit_on_the_page_with_their_shares_below():
    names = tuple(f"kernel number {n}" for n in range(8))
    charts = [Chart(names, (ONE,) * 8)] * 5
    for shown in (charts[:1], charts):
        figure = figure_of(shown, [(name, SHARES) for name in names], CAPTION)
        for axes in figure.axes:
            box = axes.get_position()
            assert 0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1
        panel, above = figure.axes[-1].get_position(), figure.axes[-2].get_position()
        assert panel.y1 < above.y0


def test_a_long_title_is_wrapped_and_stands_whole_in_the_metadata(tmp_path):
    title = "a kernel of a very long name on " + " ".join(["a processor of many words"] * 8)
    figure = figure_of([Chart(("triad",), (ONE,))], (), Caption(title, ("N = 5", "kernmodel 1")))
    assert metadata_texts(figure) == (title, "N = 5 · kernmodel 1")
    with style.settings():
        figure.draw_without_rendering()
    width = figure.get_size_inches()[0] * figure.dpi
    assert all(text.get_window_extent().x1 <= 1.02 * width for text in figure.texts)
    style.write(figure, tmp_path / "one.svg")
    written = (tmp_path / "one.svg").read_text()
    assert f"<dc:title>{title}</dc:title>" in written and "N = 5 · kernmodel 1" in written


def test_shares_are_stacked_to_a_hundred():
    figure, _ = drawn(Chart(("triad",), (ONE,)), [("triad", SHARES)])
    bars = figure.axes[1].patches
    assert [(round(bar.get_y()), round(bar.get_height())) for bar in bars] == [(0, 60), (60, 40), (0, 10), (10, 90)]
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in bars}) == 2
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["MS", "MI"]


@pytest.mark.parametrize("one", [ONE, LAYERED])
def test_labels_do_not_collide(one):
    """By the boxes of the drawn texts, roofs and levels alike; rotated ones by their middle lines."""
    figure, axes = drawn(Chart(("triad",), (one,)))
    with style.settings():
        figure.draw_without_rendering()
    flat = [text for text in axes.texts if not text.get_rotation()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in flat]
    for (name, box), (other, beside) in combinations(boxes, 2):
        assert not box.shrunk(0.9, 0.7).overlaps(beside.shrunk(0.9, 0.7)), (name, other)


@given(
    slopes=st.lists(st.floats(1e9, 1e13), min_size=1, max_size=5),
    peaks=st.lists(st.floats(1e8, 1e14), min_size=0, max_size=5),
    intensity=st.floats(1e-3, 1e3),
    performance=st.floats(1e6, 1e14),
)
def test_limits_hold_all_ridges_and_points(slopes, peaks, intensity, performance):
    roofs = tuple(MemoryRoof(f"L{n}", value, "", "") for n, value in enumerate(slopes))
    compute = tuple(ComputeRoof(f"r{n}", value, "peak", "") for n, value in enumerate(peaks))
    one = replace(ONE, memory_roofs=roofs, compute_roofs=compute, points=(Point("k", "", intensity, performance),))
    left, right, bottom, top = limits_of([Chart(("k",), (one,))])
    assert 0 < left < intensity < right
    assert 0 < bottom < performance / 1e9 < top
    for slope in slopes if peaks else ():
        assert left < max(peaks) / slope < right
        assert max(peaks) / 1e9 < top


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=20))
def test_a_label_takes_a_free_place_where_there_is_one(taken):
    board = Board()
    for x, y in taken:
        board.block(x, y, 0.1)
    free = Place(50.0, 50.0)
    crowded = Place(*taken[0])
    assert board.put("label", 8.0, [crowded, free]) == free


def test_widths_grow_with_the_text():
    assert text_width("ab", 8.0) == pytest.approx(2 * text_width("a", 8.0))


@pytest.mark.parametrize("width", [1, 40, 80, 200])
def test_a_drawing_keeps_to_the_width(width):
    drawing = chart_text(Chart(("triad",), (ONE,)), width).split("  bytes:")[0].splitlines()[1:]
    assert max(map(len, drawing)) <= max(40, min(width, 110))


def test_a_drawing_in_ascii_and_with_signs():
    chart = Chart(("triad",), (ONE,))
    plain = chart_text(chart, 80, True)
    assert plain.isascii()
    assert "/" in plain
    assert "╱" in chart_text(chart, 80)


def test_a_drawing_has_the_point_where_it_belongs():
    rows = chart_text(Chart(("triad",), (ONE,)), 80).splitlines()
    (row,) = [number for number, text in enumerate(rows) if "A" in text[8:40] and 0 < number <= 22]
    column = rows[row].index("A") - 8
    left, right, bottom, top = (math.log10(value) for value in limits_of([Chart(("triad",), (ONE,))]))
    assert column == round((math.log10(0.1) - left) / (right - left) * 71)
    assert row - 1 == round((top - math.log10(8)) / (top - bottom) * 21)


def test_several_kernels_share_a_panel():
    figure = style.new_figure(4, 3)
    axes = figure.add_subplot()
    draw_shares(axes, [("a", SHARES), ("b", SHARES)])
    assert len(axes.patches) == 8
    assert {"a", "b"} <= {text.get_text() for text in axes.texts}
