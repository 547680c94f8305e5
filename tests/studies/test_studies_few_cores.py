"""Studies on more cores than the machine file's streams of memory were measured on: all show the interval."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km

pytestmark = pytest.mark.needs("as", "gcc")

GUEST = Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml"
"""Two cores, of which only loads and copies were measured together."""
CAUSE = "what more than 1 core of a domain draw from memory"


def codes(notes) -> list[str]:
    return [note["code"] for note in notes]


@pytest.fixture(scope="module")
def chart():
    return km.roofline_chart("triad.c", GUEST)


def test_rooflines_tell_the_interval_in_text_and_in_json(chart):
    text, body = chart.text(), chart.json()
    assert f"at most 1.971 to 3.942 GFLOP/s ({CAUSE}), by the roof of Mem" in text
    assert "predicted (ECM)  1.971 GFLOP/s (1.971 to 3.942), 100% of the bound" in text
    assert codes(body["notes"]).count("few-cores-bandwidth") == 1
    (kernel,) = body["kernels"]
    (shown,) = kernel["charts"]
    roof = next(one for one in shown["memory_roofs"] if one["level"] == "Mem")
    for number, interval in (
        (roof["bytes_per_second"], roof["bytes_per_second_interval"]),
        (shown["bound"], shown["bound_interval"]),
        (kernel["predicted"]["flop_per_second"], kernel["predicted"]["flop_per_second_interval"]),
        (shown["points"][0]["flop_per_second"], shown["points"][0]["flop_per_second_interval"]),
    ):
        assert (interval["low"], interval["high"]) == pytest.approx((number, 2 * number))
        assert interval["cause"] == CAUSE
    assert shown["most"]["bound_by"] == "Mem"


@pytest.mark.parametrize(("kernel", "cores"), [("triad.c", 1), ("sum.c", 2)])
def test_rooflines_of_cores_that_were_measured_have_none(kernel: str, cores: int):
    body = km.roofline_chart(kernel, GUEST, cores=cores).json()
    (chart,) = body["kernels"][0]["charts"]
    assert not {"bound_interval", "iterations_per_second_interval", "most"} & chart.keys()
    assert all("bytes_per_second_interval" not in roof for roof in chart["memory_roofs"])
    assert "few-cores-bandwidth" not in codes(body["notes"])


def test_an_application_driven_chart_tells_the_interval():
    found = km.carm_chart("triad.c", GUEST)
    body = found.json()
    assert body["adcarm"]["bound_interval"]["high"] == pytest.approx(2 * body["adcarm"]["bound"])
    assert body["bound_if_times_add_interval"]["cause"] == CAUSE
    assert CAUSE in body["sentences"][0] and f"{CAUSE}), by the roof of Mem." in found.text()
    assert "few-cores-bandwidth" in codes(body["notes"])


def test_pictures_of_rooflines_shade_what_the_roof_may_be(chart):
    figure = chart.plot()
    (axes,) = figure.axes
    shown = [collection.get_label() for collection in axes.collections]
    assert "interval" in shown and "interval of the point" in shown
    assert any(text.get_text() == "Mem 31.53 GB/s (31.53 to 63.07)" for text in axes.texts)
    drawn = chart.drawing()
    assert "Mem: 31.53 GB/s (31.53 to 63.07)" in drawn and ": the most that the roof may be" in drawn


def test_what_changes_are_worth_has_both_ends():
    """Two domains instead of one have two memories, which brings twice the rate, or nothing where two cores draw twice
    as much from one all the same."""
    found = km.what_if("triad.c", GUEST, {"numa_domains_per_socket": "2", "clock": "x2"}, cores=2)
    first = found.json()["effects"][0]
    assert (first["ratio"], first["ratio_interval"]["low"]) == pytest.approx((0.5, 0.5))
    assert first["ratio_interval"]["high"] == pytest.approx(1) and first["ratio_interval"]["cause"] == CAUSE
    before = found.json()["before"]
    assert before["seconds_interval"]["high"] == pytest.approx(before["seconds"])
    assert before["headline"]["value_interval"]["low"] == pytest.approx(before["headline"]["value"] / 2)
    text = found.text()
    assert f"the runtime becomes × 0.500 (0.500 to 1.000: {CAUSE})" in text and "26.28 cy/CL (13.14 to 26.28)" in text


def test_ways_to_compile_compare_at_both_ends():
    """Without optimisation a core draws less, so that two of them share less."""
    options = [km.CodeOptions(flags=("-O3",)), km.CodeOptions(flags=("-O0",))]
    *_, slow = km.compare_code("triad.c", GUEST, options, cores=2).json()["variants"]
    assert slow["ratio_interval"]["low"] == pytest.approx(slow["ratio"]) and slow["ratio"] >= 1
    assert slow["ratio_interval"]["high"] > 1.3 * slow["ratio"]


def test_the_worth_of_figures_has_both_ends():
    found = km.sensitivity("2d-5pt.c", GUEST, cores=2, N=4000, M=4000)
    body = found.json()
    clock = next(one for one in body["figures"] if one["figure"]["short"] == "clock")
    assert clock["elasticity_interval"]["low"] == pytest.approx(-1) and clock["elasticity"] > -0.99
    assert clock["more_interval"]["low"] == pytest.approx(0.5) and clock["more"] > 0.51
    assert "-0.98 % (-1.00 to -0.98:" in found.text()
    (axes,) = found.plot().axes
    assert next(one.get_label() for one in axes.collections) == "interval"
    assert any("(-1.00 to -0.98)" in text.get_text() for text in axes.texts)


def test_sweeps_have_both_ends_in_rows_text_and_pictures():
    found = km.sweep_sizes("triad.c", GUEST, cores="1,2", N="1000,10000000")
    cached, alone, near, both = found.json()["rows"]
    names = ("all_cores_low_cy_per_CL", "all_cores_high_cy_per_CL", "all_cores_depends_on")
    assert all(row[name] is None for row in (cached, alone, near) for name in names)
    cycles = both["all_cores_cy_per_CL"]
    assert tuple(both[name] for name in names) == (pytest.approx(cycles / 2), pytest.approx(cycles), CAUSE)
    assert [row["saturation_is_least"] for row in (near, both)] == ["no", "yes"]
    (line,) = (line for line in found.text().splitlines() if "(13.14 to 26.28)" in line)
    assert line.split()[:2] == ["2", "10000000"] and " ? " in line
    sweep = km.sweep_sizes("triad.c", GUEST, cores="1,2", N=10_000_000)
    axes = sweep.plot(unit="LUP/s").axes[0]
    assert "interval" in axes.get_legend_handles_labels()[1] and axes.get_ylim()[1] > 1.97
    assert "all cores, at most" in sweep.drawing(unit="LUP/s") and "all cores, at least" in sweep.drawing()


def test_pictures_and_pages_of_scaling_show_both_ends():
    found = km.scale("triad.c", GUEST)
    (axes,) = found.plot().axes
    assert "interval" in axes.get_legend_handles_labels()[1] and axes.get_ylim()[1] > 1.97
    assert ", at most" in found.drawing()
    assert '"interval"' in found.html()


def test_comparisons_of_machines_show_both_ends_in_pictures():
    found = km.compare("triad.c", ["snb", GUEST])
    assert "0.985, 0.985 to 1.97" in found.drawing()
    assert codes(found.json()["notes"]).count("few-cores-bandwidth") == 1
    right = found.plot().axes[1]
    assert any(text.get_text() == " 0.985 to 1.97 (2 cores)" for text in right.texts)
    assert [one.get_label() for one in right.collections] == ["interval"]
