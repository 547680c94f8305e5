"""Pictures of performance over cores and of machines beside each other, by structure."""

from __future__ import annotations

import dataclasses

import pytest

from kernmodel.plot.compare import compare_figure, compare_text
from kernmodel.plot.ecm import ecm_figure
from kernmodel.plot.scaling import scaling_figure, scaling_text
from kernmodel.studies.compare import compare
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.scaling import scaling

pytestmark = pytest.mark.needs("as", "gcc|clang")


@pytest.fixture(scope="module")
def stencil():
    return scaling(KernelRequest("stencil", "clx", {}), CodeRequest(), ())


@pytest.fixture(scope="module")
def breaking():
    """Another reuse fits from 10 and from 24 cores on."""
    return scaling(KernelRequest("stencil", "hsw", {"N": 120_000, "M": 1000}), CodeRequest(), ())


@pytest.fixture(scope="module")
def machines():
    """The textbook's times: on snb, in-core work that waits for aliasing stores would hide the transfers."""
    kernels = [KernelRequest("stencil", "snb", {}), KernelRequest("pi", "snb", {})]
    return compare(kernels, ("snb", "zen2"), CodeRequest(classic=True))


def lines(axes) -> dict[str, object]:
    return {line.get_label(): line for line in axes.lines}


def test_both_rules_linear_scaling_and_saturation_points(stencil):
    drawn = lines(scaling_figure([stencil], None).axes[0])
    recursive = drawn["recursive latency-aware rule"]
    assert list(recursive.get_xdata()) == list(range(1, 41))
    expected = [row.point.units_per_cycle * 2.5 * 8 for row in stencil.rows]
    assert list(recursive.get_ydata()) == pytest.approx(expected)
    simple = drawn["simple rule min(n·P(1), P_sat)"]
    assert all(a >= b * (1 - 1e-9) for a, b in zip(simple.get_ydata(), recursive.get_ydata(), strict=True))
    linear = drawn["linear, n·P(1)"]
    assert list(linear.get_ydata()) == pytest.approx([0, 40 * recursive.get_ydata()[0]])
    assert linear.get_linewidth() < recursive.get_linewidth()
    assert list(drawn["saturation, recursive rule, 9 cores"].get_xdata()) == [9]
    assert list(drawn["saturation, simple rule, 3 cores"].get_xdata()) == [3]


def test_rules_that_agree_are_one_line():
    pi = scaling(KernelRequest("pi", "snb", {}), CodeRequest(), ())
    assert set(lines(scaling_figure([pi], None).axes[0])) >= {"both rules", "linear, n·P(1)"}
    assert "simple rule" not in scaling_text([pi], None)
    assert "* both rules   o linear" in scaling_text([pi], None)


def test_domains_end_at_grey_lines(stencil):
    axes = scaling_figure([stencil], None).axes[0]
    upright = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    assert upright == [10.5, 20.5, 30.5]


def test_changes_in_shared_caches_are_marked(breaking):
    domain = scaling(KernelRequest("stencil", "clx", {}), CodeRequest(), range(1, 11))
    assert scaling_figure([domain], None).axes[0].get_legend_handles_labels()[1].count(CHANGE) == 0
    axes = scaling_figure([breaking], None).axes[0]
    marks = next(one for one in axes.collections if one.get_label() == CHANGE)
    assert [x for x, _ in marks.get_offsets()] == [10, 24]


CHANGE = "reuse in shared caches changes"


def test_several_points_are_drawn_by_one_rule(breaking):
    other = dataclasses.replace(breaking, single=dataclasses.replace(breaking.single, sizes={"M": 1000, "N": 7}))
    axes = scaling_figure([breaking, other], "FLOP/s").axes[0]
    drawn = lines(axes)
    assert {"N=120000", "N=7"} <= set(drawn)
    assert not any("rule" in label for label in drawn)
    assert axes.get_ylabel() == "performance (GFLOP/s; an FMA counts 2)"


def test_a_unit_that_is_no_rate_is_drawn_as_the_own_rate(stencil):
    assert scaling_figure([stencil], "cy/CL").axes[0].get_ylabel() == "performance (GLUP/s)"


def test_ecm_draws_the_same_performance(stencil):
    points = tuple(row.point for row in stencil.rows)
    answer = dataclasses.replace(stencil.single, scaling=points)
    ecm = lines(ecm_figure([answer], "LUP/s").axes[0])
    scaled = lines(scaling_figure([stencil], "LUP/s").axes[0])
    rule = scaled["recursive latency-aware rule"]
    assert list(ecm["prediction"].get_ydata()) == list(rule.get_ydata())
    assert list(ecm["saturation, 9 cores"].get_xdata()) == [9]


@pytest.mark.parametrize(("width", "ascii_only"), [(80, False), (120, True), (10, True)])
def test_drawings_in_characters_keep_to_the_width(stencil, machines, width, ascii_only):
    for text in (scaling_text([stencil], None, width, ascii_only), compare_text(machines, None, width, ascii_only)):
        drawing = [line for line in text.splitlines() if "(" not in line]
        assert max(map(len, drawing)) <= max(40, min(width, 110))
        assert all(line.isascii() for line in drawing) or not ascii_only


def test_machines_stand_below_each_other_by_kernel(machines):
    figure = compare_figure(machines, None)
    assert len(figure.axes) == 4
    times, rates = figure.axes[:2]
    assert [label.get_text() for label in times.get_yticklabels()] == ["snb", "zen2"]
    widths = [bar.get_width() for bar in rates.patches]
    found = [machines.results[n] for n in (0, 1)]
    per_second = [[r.answer.machine.clock_hz * 8e-9 / t.cycles for r, t in zip(found, of, strict=True)]
                  for of in ([r.answer.prediction for r in found], [r.domain for r in found])]  # fmt: skip
    assert widths == pytest.approx(per_second[0] + per_second[1])


def test_legends_of_comparisons_do_not_meet(machines):
    figure = compare_figure(machines, None)
    figure.canvas.draw()
    times, rates = (one.get_window_extent() for one in figure.legends)
    assert times.x1 < rates.x0


def test_times_add_up_where_the_machine_adds_them(machines):
    times = compare_figure(machines, None).axes[0]
    total = next(line for line in times.lines if line.get_label() == "T_ECM").get_xdata()
    ends = {round(bar.get_y() + bar.get_height() / 2): 0.0 for bar in times.patches}
    for bar in times.patches:
        ends[round(bar.get_y() + bar.get_height() / 2)] += bar.get_width()
    assert total[0] == pytest.approx(ends[0])  # snb: nothing overlaps but T_OL
    assert total[1] < ends[1]  # zen2: the transfers overlap


def test_a_machine_that_failed_is_left_out(machines):
    failed = dataclasses.replace(machines.results[0], answer=None, domain=None, error="no compiler")
    figure = compare_figure(dataclasses.replace(machines, results=(failed, machines.results[1])), None)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["zen2"]
