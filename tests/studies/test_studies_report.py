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
    answer = km.kernel_report(FIXED, "clx", without=("blocking", "sensitivity", "carm")).answer
    assert answer.sizes.answer is None
    assert "no size that could vary" in answer.sizes.error
    assert answer.blocking.error == "left out, as was asked for"
    assert answer.rooflines.answer is not None


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
