"""`kernmodel compare`."""

from __future__ import annotations

import json

import pytest

from kernmodel.machine.load import find_machine

needs_compiler = pytest.mark.needs("as", "gcc|clang")


@needs_compiler
def test_the_table_equals_the_single_commands(run):
    outcome = run("compare", "-m", "snb", "-m", "clx", "stencil.c", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    for result in json.loads(outcome.out)["results"]:
        machine = result["asked"]["machine"]
        cores = result["prediction"]["machine"]["cores"]
        ecm = json.loads(run("ecm", "-m", machine, "stencil.c", "--cores", str(cores), "--json").out)
        assert result["prediction"]["single_core"] == ecm["prediction"]
        assert result["prediction"]["whole"]["in_units"] == ecm["scaling"][0]["in_units"]
        assert result["error"] is None


@needs_compiler
def test_a_row_and_a_reason_for_each_machine(run):
    outcome = run("compare", "-m", "snb", "-m", "zen2", "stencil", "triad", "--classic")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.count("on 2 machines") == 2
    assert "{4.0 ‖ 4.0 | 8.0 | 10.7 | 16.8}" in outcome.out
    assert "  zen2: Memory bandwidth: T_L3Mem takes 100 % of the 16.8 cy/CL" in outcome.out


@needs_compiler
def test_nests_of_which_none_is_chosen_stand_one_by_one(run, tmp_path):
    (tmp_path / "two.c").write_text(
        "void f(int n, double *a) { for (int i = 0; i < n; ++i) a[i] = 1; for (int i = 0; i < n; ++i) a[i * i] = 2; }\n"
        "void g(int n, double *a) { for (int i = 0; i < n; ++i) a[i] *= 3; }"
    )
    outcome = run("compare", "-m", "snb", tmp_path / "two.c", "-D", "n=100000", "--json")
    results = {one["asked"]["kernel"].rpartition(": ")[2]: one for one in json.loads(outcome.out)["results"]}
    assert outcome.status == 0 and list(results) == ["f nest 1", "f nest 2", "g nest 1"]
    assert [one["error"] is None for one in results.values()] == [True, False, True]
    assert "a[i*i] is not affine" in results["f nest 2"]["error"]


@needs_compiler
def test_one_machine_without_a_compiler_fails_alone(run, tmp_path):
    bare = tmp_path / "bare.yml"
    bare.write_text(find_machine("clx").read_text().replace("gcc:", "no-such-cc:").replace("clang:", "nor-this:"))
    outcome = run("compare", "-m", bare, "-m", "snb", "copy")
    assert (outcome.status, outcome.err) == (0, "")
    assert f"No prediction of copy\n  {bare}: " in outcome.out
    alone = run("compare", "-m", bare, "copy")
    assert (alone.status, alone.out) == (3, "")


@needs_compiler
def test_twice_is_once(run):
    outcome = run("compare", "-m", "snb", "-m", "snb.yml", "copy", "copy")
    assert outcome.status == 0
    assert "copy on 1 machine\n" in outcome.out
    assert "snb.yml was asked for more than once and is shown once" in outcome.out


@pytest.mark.thorough
@needs_compiler
def test_all_carried_machines(run):
    outcome = run("compare", "--machines", "all", "copy", "--json")
    assert outcome.status == 0
    found = json.loads(outcome.out)["results"]
    known = [result["prediction"] for result in found if result["prediction"]["domain"] is not None]
    assert len(known) >= 9
    assert all(prediction["domain"]["cycles"] > 0 for prediction in known)
    # the others lack a bandwidth: what one core takes is a lower bound
    least = [result["prediction"] for result in found if result["prediction"]["domain"] is None]
    assert all(prediction["single_core"]["cycles"] is None for prediction in least)
    assert all(prediction["single_core"]["cycles_at_least"] > 0 for prediction in least)


@pytest.mark.thorough
@needs_compiler
def test_drawings(run, tmp_path):
    drawing = run("compare", "-m", "snb", "-m", "clx", "stencil", "--plot").out.rpartition("\n\n")[2]
    assert drawing.startswith("stencil: performance (GLUP/s), one core (░) and a full ccNUMA domain (█)\nsnb  │░")
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        assert run("compare", "-m", "snb", "-m", "clx", "stencil", "pi", "--plot", file).status == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "time (ns per iteration)" in files[0].read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("stencil",), 2, "Missing option '-m'"),
        (("-m", "clx"), 2, "Missing argument 'KERNEL...'"),
        (("-m", "snb", "-m", "clxx", "stencil"), 1, "clxx: no such machine file; give a path, or one of the carried"),
        (("-m", "snb", "stencil", "stencill"), 1, "stencill: no such kernel"),
        (("-m", "snb", "stencil", "triad", "--nest", "2"), 2, "--nest: does not fit: several kernels are given"),
        (("-m", "snb", "stencil", "triad", "--function", "f"), 2, "--function: does not fit"),
        (("-m", "snb", "stencil", "-D", "N=1,2"), 2, "one value for each size"),
        (("-m", "snb", "-m", "clx", "stencil", "-D", "N=2"), 1, "executes no iteration"),
        (("-m", "snb", "stencil", "--compiler", "no-such-cc"), 3, "the compiler 'no-such-cc' was not found"),
        (("-m", "snb", "stencil", "--plot", "a.bmp"), 2, "the format '.bmp' is not known"),
        (("-m", "snb", "stencil", "--unit", "zz"), 2, "unknown unit 'zz'"),
    ],
)
def test_bad_input(run, arguments, status, message):
    outcome = run("compare", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err
