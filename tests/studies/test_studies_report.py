from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.studies.report import PARTS, default_sizes

SHORT = ("rooflines", "carm", "scaling", "blocking", "sensitivity")
FIXED = "double a[100], b[100];\nvoid k(void) { for (int i = 0; i < 100; ++i) a[i] = b[i]; }\n"


@pytest.fixture(scope="module")
def stencil():
    return km.kernel_report("stencil.c", "clx", over={"N": "100,2000,40000"}, without=SHORT, N=1000).answer


def test_the_prediction_is_that_of_ecm(stencil):
    asked = km.ecm("stencil.c", "clx", N=1000).answer
    assert stencil.ecm.prediction == asked.prediction


def test_sizes_are_those_of_ecm_with_the_one_asked_for_among_them(stencil):
    sizes = stencil.sizes.answer
    assert [one.sizes["N"] for one in sizes.answers] == [100, 1000, 2000, 40000]
    assert sizes.answers[sizes.place] is stencil.ecm
    for one in sizes.answers:
        other = km.ecm("stencil.c", "clx", N=one.sizes["N"]).answer
        assert one.traffic.paths == other.traffic.paths
        assert one.prediction.transfers == other.prediction.transfers


def test_instructions_know_the_lines_of_the_source(stencil):
    lines = stencil.ecm.nest.text.splitlines()
    assert len(stencil.ecm.loop.source_lines) == len(stencil.ecm.loop.instructions)
    multiplied = [
        line
        for line, item in zip(stencil.ecm.loop.source_lines, stencil.ecm.loop.instructions, strict=True)
        if item.mnemonic.startswith("vmul")
    ]
    assert multiplied
    assert all("* s;" in lines[line - 1] for line in multiplied)


def test_parts_that_are_left_out_or_fail_say_so():
    answer = km.kernel_report(FIXED, "clx", without=("blocking", "sensitivity", "scaling")).answer
    assert answer.sizes.answer is None
    assert "no size that could vary" in answer.sizes.error
    assert answer.blocking.error == "left out, as was asked for"
    assert answer.rooflines.answer.kernels[0].subject.loop is answer.ecm.loop
    assert answer.carm.answer.subject.loop is answer.ecm.loop


def test_a_machine_without_a_bandwidth_has_a_report_without_scaling():
    answer = km.kernel_report("triad.c", "graviton2", without=("sizes", "carm", "blocking", "sensitivity")).answer
    assert answer.scaling.answer is None
    assert "has no bandwidth" in answer.scaling.error


def test_default_sizes_reach_past_the_conditions_and_hold_the_one_asked_for():
    answer = km.ecm("stencil.c", "clx", N=1000).answer
    name, values = default_sizes(answer)
    last = max(limit for _, limit, *_ in answer.traffic.transitions)
    assert name == "N"
    assert values[0] <= 16
    assert values[-1] >= min(1.4 * last, 20_000)
    assert list(values) == sorted(values)


def test_sizes_without_a_prediction_are_named():
    answer = km.kernel_report("stencil.c", "clx", over={"N": "1,500"}, without=SHORT, N=1000).answer
    (failed,) = answer.sizes.answer.failed
    assert failed[0] == 1
    assert [one.sizes["N"] for one in answer.sizes.answer.answers] == [500, 1000]


@pytest.mark.parametrize(
    ("over", "said"),
    [({"Q": "1-4"}, "no size Q; take one of"), ({"N": "1", "M": "2"}, "2 sizes are given")],
)
def test_other_sizes_are_refused(over, said):
    with pytest.raises(km.KernmodelError, match=said):
        km.kernel_report("stencil.c", "clx", over=over)


def test_unknown_parts_are_refused():
    with pytest.raises(km.UsageError, match="use one of sizes, rooflines"):
        km.kernel_report("stencil.c", "clx", without=("everything",))


def test_the_document_has_every_part_or_its_error():
    found = km.kernel_report(
        "triad.c", "clx", over={"N": "1000,2000"}, without=("blocking", "carm", "sensitivity")
    ).json()
    assert found["schema"] == "kernmodel.report/1"
    assert set(PARTS) - {"dependences"} <= set(found)
    assert found["blocking"] == {"error": "left out, as was asked for"}
    assert found["ecm"]["schema"] == "kernmodel.ecm/1"
    assert len(found["sizes"]["points"]) == 3


@pytest.fixture(scope="module")
def compared():
    return km.comparison_report(["stencil.c", "triad.c"], ["clx", "zen2"], N=4000)


@pytest.mark.thorough
def test_a_comparison_predicts_every_kernel_on_every_machine_as_ecm_does(compared):
    found = [(one.kernel, one.machine) for one in compared.answer.compared.results]
    assert found == [(kernel, machine) for kernel in ("stencil.c", "triad.c") for machine in ("clx", "zen2")]
    for one in compared.answer.compared.results:
        assert one.answer.prediction == km.ecm(one.kernel, one.machine, N=4000).answer.prediction
    for machine, part in compared.answer.rooflines.items():
        assert part.answer.machine.name == machine
        assert sum(part.answer.times.values()) == pytest.approx(1)


def test_the_charts_of_a_comparison_show_the_loops_that_it_compares(compared):
    loops = {(one.kernel, one.machine): one.answer.loop for one in compared.answer.compared.results}
    for machine, part in compared.answer.rooflines.items():
        charted = [one.subject.loop for one in part.answer.kernels]
        for kernel, loop in zip(("stencil.c", "triad.c"), charted, strict=True):
            assert loop is loops[kernel, machine]


def test_a_comparison_says_where_each_kernel_is_fastest(compared):
    rates = {
        one.machine: one.domain.units_per_cycle * one.answer.prediction.work.clock_hz * iterations(one)
        for one in compared.answer.compared.results
        if one.kernel == "stencil.c"
    }
    fastest = max(rates, key=rates.__getitem__)
    assert compared.verdict().startswith(f"stencil: a full domain is fastest on {fastest} (beside ")
    page = compared.html()
    assert f"kernmodel report -m {fastest} stencil.c -o page.html -D N=4000" in page
    assert page.count("sha256") >= 4
    assert compared.json()["compared"]["schema"] == "kernmodel.compare/1"
    assert [one["machine"] for one in compared.json()["rooflines"]] == ["clx", "zen2"]


def test_a_domain_that_is_not_known_is_not_said_to_be_slower():
    both = km.comparison_report("triad.c", ["icx", "clx", "zen2"], N=4_000_000).verdict()
    assert both.startswith("triad: a full domain is fastest on clx (beside zen2), limited by memory bandwidth; ")
    assert both.endswith(" The full domain of icx is not known.")
    one = km.comparison_report("triad.c", ["clx", "icx"], N=4_000_000).verdict()
    assert one.startswith("triad on clx: T_ECM = ")
    assert one.endswith(" The full domain of icx is not known.")


def iterations(result):
    return result.answer.prediction.work.iterations_per_unit


def test_the_nests_of_a_file_are_its_phases(tmp_path):
    file = tmp_path / "app.c"
    file.write_text(
        "double a[2000][2000], b[2000][2000];\nvoid app(void) {\n"
        "  for (int j = 0; j < 2000; ++j) for (int i = 0; i < 2000; ++i) b[j][i] = 2.0 * a[j][i];\n"
        "  for (int i = 0; i < 2000; ++i) a[0][i] = 2.0 * b[0][i];\n}\n"
    )
    answer = km.comparison_report(file, ["clx"]).answer
    assert [one.name for one in answer.compared.results] == ["app nest 1", "app nest 2"]
    times = answer.rooflines["clx"].answer.times
    assert times["app nest 1"] > 0.9
    assert times["app nest 1"] + times["app nest 2"] == pytest.approx(1)


def test_measurements_stand_beside_predictions(tmp_path):
    rates = tmp_path / "rates.csv"
    rates.write_text("kernel,GFLOP/s\ntriad,1.5\n")
    short = ("sizes", "carm", "scaling", "blocking", "sensitivity", "dependences")
    one = km.kernel_report("triad.c", "clx", without=short, measured=rates)
    both = km.comparison_report("triad.c", ["clx", "zen2"], measured=rates)
    charts = [one.answer.rooflines.answer, *(part.answer for part in both.answer.rooflines.values())]
    assert all(chart.kernels[0].rooflines[0].measured[0].flop_per_second == 1.5e9 for chart in charts)
    with pytest.raises(km.InputError, match="No such file"):
        km.comparison_report("triad.c", ["clx"], measured=tmp_path / "none.csv")
