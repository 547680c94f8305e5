"""`kernmodel incore kernel.c`: the in-core part of the prediction alone."""

from __future__ import annotations

import json

import pytest

import kernmodel as km

pytestmark = pytest.mark.needs("gcc")
TWO = """
#define N 1000
double a[N], b[N];
void two(void)
{
    for (int i = 0; i < N; ++i)
        a[i] = 2.0 * b[i];
    for (int i = 0; i < N; ++i)
        a[i] = b[i] / (1.0 + a[i]);
}
"""


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.c"
    path.write_text(TWO)
    return path


@pytest.mark.parametrize(("machine", "kernel"), [("clx", "triad.c"), ("zen2", "stencil")])
def test_it_is_the_in_core_part_of_the_prediction(run, machine, kernel):
    """The same code, found by the same evidence, in the same core with its arrays at lines of the cache."""
    alone = json.loads(run("incore", "-m", machine, kernel, "--json").out)
    within = km.ecm(kernel, machine, code=km.CodeOptions(classic=True)).json()
    assert alone["code"] == within["code"]
    for key in ("prediction", "throughput", "iterations_per_pass"):
        assert alone["incore"][key] == within["incore"][key], key


def test_choices_of_the_nest_and_the_code(run, two, tmp_path):
    first, second = (json.loads(run("incore", "-m", "clx", two, "--nest", n, "--json").out) for n in (1, 2))
    assert second["incore"]["prediction"] > 2 * first["incore"]["prediction"]
    plain = json.loads(run("incore", "-m", "clx", two, "--nest", 1, "--flags", "-O1", "--json").out)
    assert (plain["code"]["flags"], plain["incore"]["iterations_per_pass"]) == (["-O1"], 1.0)
    graph = tmp_path / "graph.dot"
    assert run("incore", "-m", "clx", "triad", "-D", "N=5000", "--graph", graph, "--explain").status == 0
    assert graph.read_text().startswith("digraph")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("-m", "clx", "two.c"), 1, "--nest"),
        (("-m", "clx", "two.c", "--nest", "3"), 1, "there is no loop nest 3"),
        (("--uarch", "CLX", "triad.c"), 2, "--uarch: does not fit: triad.c is C source"),
        (("triad.c",), 2, "a C kernel needs a machine"),
        (("-m", "clx", "triad.c", "--all-loops"), 2, "--all-loops: does not fit"),
        (("-m", "clx", "triad.c", "--graph", "g.txt"), 2, "the ending '.txt' is not known"),
        (("-m", "clx", "loop.s", "-D", "N=4"), 2, "-D: does not fit: there is no C source"),
        (("-m", "clx", "no-such-file.c"), 1, "no such kernel"),
        (("-m", "clx", "no-such-file"), 1, "cannot be read"),
    ],
)
def test_refused(run, two, monkeypatch, arguments, status, message):
    monkeypatch.chdir(two.parent)
    done = run("incore", *arguments)
    assert (done.status, done.out) == (status, "")
    assert message in done.err
