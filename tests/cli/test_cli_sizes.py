"""`-D .=VALUES` for every size, and what paths take (`traffic --cycles`)."""

from __future__ import annotations

import json

import pytest

import kernmodel as km

THREE = """
double a[M][N], b[M][N];
for (int j = 0; j < M; ++j)
    for (int i = 0; i < N - K; ++i)
        a[j][i] = b[j][i + K];
"""


@pytest.fixture
def three(tmp_path):
    path = tmp_path / "three.c"
    path.write_text(THREE)
    return path


def test_a_dot_is_every_size_without_a_value_of_its_own(run, three):
    given = run("traffic", "-m", "clx", three, "-D", ".=500", "-D", "K=2", "--json")
    assert json.loads(given.out)["kernel"]["sizes"] == {"M": 500, "N": 500, "K": 2}


def test_a_dot_overrides_the_defaults_of_the_source(run):
    given = run("traffic", "-m", "clx", "stencil.c", "-D", ".=300", "--json")
    assert json.loads(given.out)["kernel"]["sizes"] == {"M": 300, "N": 300}


def test_sizes_of_a_dot_vary_together(three):
    answers = km.data_traffic(three, "clx", sizes={".": "100-400:log2", "K": 2})
    assert [one.sizes for one in answers] == [{"M": n, "N": n, "K": 2} for n in (100, 200, 400)]
    assert [one.sizes["M"] for one in km.data_traffic(three, "clx", sizes={".": [100, 200], "K": [2, 3]})] == [
        *(100, 100, 200, 200)
    ]


def test_a_dot_in_a_chart_stands_for_the_sizes_of_each_kernel(run, three):
    charted = run("roofline", "-m", "clx", three, "triad.c", "-D", ".=500", "-D", "K=1", "--json")
    kernels = [one["kernel"]["sizes"] for one in json.loads(charted.out)["kernels"]]
    assert kernels == [{"M": 500, "N": 500, "K": 1}, {"N": 500}]


def test_a_dot_in_a_sweep_is_one_axis_or_none(run, three):
    of_one = run("sweep", "-m", "clx", "triad.c", "-D", ".=1000,2000", "--format", "csv")
    assert [line.split(",")[1] for line in of_one.out.splitlines()] == ["N", "1000", "2000"]
    of_three = run("sweep", "-m", "clx", three, "-D", ".=100,200", "-D", "K=2")
    assert (of_three.status, of_three.out) == (2, "")
    assert "-D .: M and N would vary together" in of_three.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("triad.c", "-D", ".=0"), "-D .: '0': 0 is not positive"),
        (("triad.c", "-D", "..=4"), "is not NAME=VALUE"),
        (("triad.c", "-D", ".=4", "-D", ".=5"), "-D .: is given twice"),
        (("triad.c", "-D", "N=400", "-D", ".=5"), "-D .: there is no size that it could be the value of"),
        (("nothing.c", "-D", ".=5"), "nothing.c: no such kernel"),
    ],
)
def test_a_dot_refused(run, arguments, message):
    outcome = run("ecm", "-m", "clx", *arguments)
    assert outcome.status in (1, 2)
    assert (outcome.out, message in outcome.err) == ("", True), outcome.err


def test_transfer_times_are_those_of_the_prediction(run):
    """Both commands ask the same function, by ways of their own to its arguments."""
    size = ("-m", "clx", "triad.c", "-D", "N=10000000", "--json")
    predicted = json.loads(run("ecm", *size).out)["prediction"]["transfers"]
    assert json.loads(run("traffic", *size, "--cycles").out)["transfers"] == predicted
    assert json.loads(run("traffic", *size).out)["transfers"] is None


def test_transfer_times_in_text_and_table(run):
    one = run("traffic", "-m", "clx", "triad.c", "-D", "N=10000000", "--cycles").out
    rows = one.partition("Transfer times")[2].split("\n\n")[0].splitlines()[3:]
    assert [row.split()[0] for row in rows] == ["T_L1L2", "T_L2L3", "T_L3Mem"]
    table = run("traffic", "-m", "clx", "triad.c", "-D", "N=1000,10000000", "--cycles").out
    header = next(line for line in table.splitlines() if line.lstrip().startswith("N "))
    assert [f"T_{path} cy/CL" in header for path in ("L1L2", "L2L3", "L3Mem")] == [True] * 3


def test_times_of_unknown_bandwidths_are_not_told(run):
    outcome = run("traffic", "-m", "gnr", "triad.c", "-D", "N=10000000", "--cycles", "--json")
    times = {one["name"]: one["cycles"] for one in json.loads(outcome.out)["transfers"]}
    assert times["T_L1L2"] > 0
    assert times["T_L3Mem"] is None
    text = run("traffic", "-m", "gnr", "triad.c", "-D", "N=10000000", "--cycles").out
    row = next(line for line in text.splitlines() if line.lstrip().startswith("T_L3Mem"))
    assert row.split()[1] == "?"


def test_transfer_times_want_one_nest(run, tmp_path):
    path = tmp_path / "two.c"
    path.write_text(THREE + "for (int i = 0; i < N; ++i) a[0][i] = 0.0;\n")
    outcome = run("traffic", "-m", "clx", path, "-D", ".=100", "--cycles")
    assert (outcome.status, outcome.out) == (1, "")
    assert "--nest" in outcome.err
    assert run("traffic", "-m", "clx", path, "-D", ".=100").status == 0
