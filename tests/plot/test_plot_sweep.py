"""Pictures of sweeps by structure, from rows made by hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import UsageError
from kernmodel.plot.caption import metadata_texts
from kernmodel.plot.sweep import sweep_figure
from kernmodel.plot.sweep_data import Curve, adds_up, breaks_of, check_axes, is_logarithmic, stepped
from kernmodel.plot.sweep_text import sweep_text
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.studies.sweep.values import parse_values

BASE = Point(KernelRequest("stencil.c", "clx", {}), CodeRequest())
N = Axis("size", "N", parse_values("100-100000:20log", "-D"))
MACHINES = Axis("machine", "", ("clx", "zen"))
SCALED = Axis("change", "memory.bandwidth", tuple(f"x{k}" for k in range(1, 10)))
CORES = Axis("cores", "", tuple(range(1, 11)))
LIMIT = 1024


def record(index: int, size: int, factor: float = 1.0) -> dict:
    """A row whose L1 condition breaks above N = 1024."""
    holds = size <= LIMIT
    transfer = 3.0 if holds else 5.0
    return {
        "point": index, "T_OL_cy_per_CL": 6.0, "T_nOL_cy_per_CL": 4.0, "T_L1L2_cy_per_CL": transfer,
        "T_L1Mem_cy_per_CL": 8.0 * factor, "T_ECM_cy_per_CL": 4.0 + transfer + 8.0 * factor, "T_ECM_cy_per_It": 1.0,
        "core_It_per_s": 1e9 * factor, "all_cores_cy_per_CL": 3.0 * factor, "all_cores_It_per_s": 2e9 * factor,
        "reuse_in_L1": "j" if holds else "i", "reuse_in_L1_while": f"N ≤ {LIMIT}" if holds else None,
        "reuse_in_L2": "hits 97%" if holds else "hits 50%", "error": None,
    }  # fmt: skip


def rows_of(grid: Grid) -> list[dict]:
    found = []
    for index, values in enumerate(product(*(axis.values for axis in grid.axes))):
        size = next((v for axis, v in zip(grid.axes, values, strict=True) if axis.kind == "size"), 2000)
        found.append(record(index, size, 1.0 + index / 10))
    return found


def drawn(*axes: Axis, unit: str = "cy/CL"):
    grid = Grid(BASE, axes)
    return sweep_figure(rows_of(grid), grid, unit, ["a machine"])


def test_one_axis_shows_all_times_and_where_a_condition_breaks():
    axes = drawn(N).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert {"T_ECM", "T_OL + T_out (overlap)", "T_nOL", "T_L1L2", "T_L1Mem"} == set(labels)
    assert axes.get_xscale() == "log"
    (text,) = axes.texts
    assert text.get_text() == "L1: j → i (1024)"
    assert text.get_position()[0] == LIMIT
    title, details = metadata_texts(axes.get_figure())
    assert title == "stencil on a machine"
    assert details.startswith("N = 100 … 100000 · machine clx · kernmodel ")


def test_a_second_axis_is_a_curve_for_each_value():
    axes = drawn(MACHINES, N, unit="It/s").axes[0]
    assert axes.get_legend_handles_labels()[1] == ["clx", "zen"]
    curves = [line for line in axes.lines if line.get_label() in MACHINES.values]
    assert {line.get_color() for line in curves} == {"#0072b2", "#d55e00"}
    assert len({line.get_marker() for line in curves}) == 2
    assert [line.get_ydata()[0] for line in curves] == pytest.approx([1.0, 3.0])
    assert axes.get_ylabel() == "performance (GIt/s)"


def test_over_cores_the_performance_of_all_is_drawn():
    axes = drawn(CORES, unit="It/s").axes[0]
    assert axes.get_ylabel() == "performance of all cores (GIt/s)"
    assert list(axes.lines[0].get_ydata())[:2] == pytest.approx([2.0, 2.2])
    assert axes.get_xscale() == "linear"


def test_two_numeric_axes_with_many_values_are_a_heat_map():
    figure = drawn(SCALED, N)
    (mesh,) = (one for one in figure.axes[0].collections if type(one).__name__ == "QuadMesh")
    assert mesh.get_array().shape == (9, 20)
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("N", "memory.bandwidth (×)")
    assert figure.axes[1].get_ylabel() == "cycles per unit of work (cy/CL)"


def test_a_heat_map_marks_what_is_not_known():
    grid = Grid(BASE, (CORES, N))
    rows = rows_of(grid)
    ends = {"all_cores_low_cy_per_CL": 1.0, "all_cores_high_cy_per_CL": 3.0, "all_cores_depends_on": "memory"}
    rows[7] |= ends
    axes, bar = sweep_figure(rows, grid, "It/s", ["a machine"]).axes
    (dots,) = (line for line in axes.lines if line.get_label() == "interval")
    assert len(dots.get_xdata()) == 1
    assert bar.get_ylabel() == "performance of all cores (GIt/s); dots: at least"


def test_names_alone_are_bars_with_their_values():
    axes = drawn(MACHINES, Axis("flags", "", (("-O2",), ("-O3", "-g")))).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "clx, -O2",
        "clx, -O3 -g",
        "zen, -O2",
        "zen, -O3 -g",
    ]
    assert [text.get_text().strip() for text in axes.texts] == ["17", "17.8", "18.6", "19.4"]


def test_what_failed_leaves_a_gap():
    grid = Grid(BASE, (MACHINES,))
    rows = [record(0, 2000), {"point": 1, "error": "no compiler"} | dict.fromkeys(("T_ECM_cy_per_CL",))]
    axes = sweep_figure(rows, grid, "cy/CL", ["a", "b"]).axes[0]
    assert [text.get_text().strip() for text in axes.texts] == ["17", "no prediction"]
    assert "nan" not in sweep_text(rows, grid, "cy/CL")


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((), "nothing varies"),
        ((MACHINES, CORES, N), "3 axes vary (-m, --cores, -D N), but a picture shows two; fix 1"),
        ((Axis("machine", "", tuple(f"m{k}" for k in range(20))), N), "20 curves"),
        ((Axis("machine", "", tuple(f"m{k}" for k in range(200))),), "120 bars"),
    ],
)
def test_what_cannot_be_drawn_is_refused(axes, message):
    with pytest.raises(UsageError) as refused:
        check_axes(axes)
    assert message in str(refused.value)


def test_the_longer_numeric_axis_is_x():
    few = Axis("size", "M", (1, 2, 3))
    assert check_axes((few, N)).x is N
    assert check_axes((N, few)).x is N
    assert check_axes((N, few)).curves is few
    assert check_axes((MACHINES, few)).x is few


@pytest.mark.parametrize("unit", ["cy/CL", "cy/It", "It/s"])
@pytest.mark.parametrize("axes", [(N,), (MACHINES, N), (SCALED, N), (MACHINES,), (CORES,)])
def test_everything_can_be_drawn_in_characters(axes, unit):
    grid = Grid(BASE, axes)
    text = sweep_text(rows_of(grid), grid, unit, 80)
    assert max(map(len, text.splitlines())) <= 90
    if N in axes:
        assert "N > 1024: reuse in L1 j → i" in text
        assert "hits" not in text


@given(st.integers(1, 1000), st.integers(2, 50), st.integers(3, 40))
def test_spacing_is_recognised(first, factor, count):
    last = first * factor + 500 * count
    assert is_logarithmic([first * (last / first) ** (k / (count - 1)) for k in range(count)])
    assert not is_logarithmic([first + (last - first) * k / (count - 1) for k in range(count)])


def test_a_step_stands_where_the_condition_breaks():
    rows = (record(0, 1000), record(1, 3000), record(2, 5000))
    curve = stepped(Curve("", (1000.0, 3000.0, 5000.0), rows), N)
    assert curve.x == (1000, 1024, 1024, 3000, 5000)
    assert curve.rows == (rows[0], rows[0], rows[1], rows[1], rows[2])


def test_a_break_at_an_unknown_value_is_between_its_neighbours():
    rows = ({**record(0, 1000), "reuse_in_L1_while": None}, record(1, 4000))
    (mark,) = breaks_of(Curve("", (1000.0, 4000.0), rows), N)
    assert (mark.x, mark.exact, str(mark)) == (2000.0, False, "L1: j → i")


def test_stacks_are_drawn_only_where_times_add_up():
    assert adds_up([record(0, 10)])
    assert not adds_up([{**record(0, 10), "T_ECM_cy_per_CL": 8.0}])
