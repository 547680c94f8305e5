"""`kernmodel blocking`."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kernmodel import __version__

pytestmark = pytest.mark.needs("as", "gcc|clang")
STENCIL = ("blocking", "-m", "snb", "stencil.c", "-D", "N=20000")
SHORT = (*STENCIL[:-1], "N=6000")  # for what the length of rows, and so of simulations, does not matter to


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the options do does not need the best block size: that is tested where candidates are ranked."""
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.FIRST", 2)
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.MOST", 2)


@pytest.mark.thorough
def test_the_best_block_stands_first(run):
    outcome = run(*STENCIL, "--classic")
    assert (outcome.status, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "Cache blocking of stencil on snb"
    at = next(k for k, line in enumerate(lines) if line.startswith("  block i to "))
    assert re.search(r" in L1: 41\.\d\d → 3\d\.\d\d cy/CL from memory \(1\.\d\d×\),$", lines[at])
    assert lines[at + 1].startswith("  because ")
    assert "Layer conditions that fail without blocking" in outcome.out
    assert "Blocking in time: potential only" in outcome.out
    assert "safety factor 1" in outcome.out


@pytest.mark.thorough
def test_the_document_has_the_times_of_ecm_and_orders_its_candidates(run):
    document = json.loads(run(*STENCIL, "--json", "--unit", "LUP/s").out)
    ecm = json.loads(run("ecm", *STENCIL[1:], "--json", "--cache", "sim").out)
    assert document["schema"] == "kernmodel.blocking/1"
    before = document["before"]["prediction"]
    assert before["transfers"] == ecm["prediction"]["transfers"]
    assert before["cycles"] == pytest.approx(ecm["prediction"]["cycles"], rel=1e-9)
    assert document["headline"]["unit"] == "LUP/s"
    times = [candidate["prediction"]["cycles"] for candidate in document["candidates"]]
    assert times == sorted(times) and times[0] < ecm["prediction"]["cycles"]
    assert document["candidates"][0]["blocks"].keys() == {"i"}


@pytest.mark.thorough
def test_safety_and_cores_make_blocks_smaller(run, monkeypatch):
    """Limits are formulas: no candidate is simulated, since none is looked at."""
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.FIRST", 0)
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.MOST", 0)

    def block(*options: str) -> int:
        found = json.loads(run(*STENCIL, "--json", *options).out)["limits"]
        return next(limit["largest"]["i"] for limit in found if limit["cache"] == "L2")

    assert block("--safety", "0.5") < 0.6 * block()
    wide = ("blocking", "-m", "snb", "3d-7pt.c", "-D", "N=2000", "-D", "M=2000", "--loops", "j", "--json")
    shares = [json.loads(run(*wide, "--cores", str(cores)).out)["limits"] for cores in (1, 8)]
    one, eight = (next(x["capacity_bytes"] for x in found if x["cache"] == "L3") for found in shares)
    assert one == 8 * eight


@pytest.mark.thorough
def test_loops_are_chosen(run):
    outcome = run(
        "blocking", "-m", "snb", "matmul.c", "-D", "M=10", "-D", "N=600", "-D", "K=100", "--loops", "i, k", "--json"
    )
    found = json.loads(outcome.out)["candidates"]
    assert found and all(set(candidate["blocks"]) <= {"i", "k"} for candidate in found)


@pytest.mark.thorough
def test_the_written_source_compiles_and_has_the_predicted_traffic(run, tmp_path: Path):
    target = tmp_path / "blocked file.c"
    outcome = run(*SHORT, "--json", "--emit", target)
    assert outcome.status == 0
    best = json.loads(outcome.out)["candidates"][0]
    told = outcome.err.splitlines()
    assert told[0] == f"wrote {target}: stencil with i in blocks of {best['blocks']['i']}"
    compile_it, model_it = (shlex.split(line.partition(": ")[2]) for line in told[1:])
    subprocess.run([*compile_it, "-o", str(tmp_path / "blocked.o")], check=True)
    assert model_it[0] == "kernmodel"
    again = json.loads(run(*model_it[1:], "--json").out)
    for ours, theirs in zip(best["paths"], again["traffic"]["paths"], strict=True):
        for number in ("loads", "stores", "clean_victims"):
            assert theirs[number] == pytest.approx(ours[number], rel=0.02, abs=0.02)


@pytest.mark.thorough
def test_the_next_commands_carry_the_options(run, tmp_path: Path):
    (tmp_path / "sizes.h").write_text("#define M 3000\n")
    source = tmp_path / "kernel.c"
    source.write_text(
        '#include "sizes.h"\nvoid f(double a[restrict M][N], double b[restrict M][N])\n{\n'
        "    for (int j = 1; j < M - 1; ++j)\n        for (int i = 0; i < N; ++i)\n"
        "            b[j][i] = a[j - 1][i] + a[j + 1][i];\n}\n"
    )
    folder = tmp_path / "out"
    folder.mkdir()
    options = ("--function", "f", "--nest", "1", "--stores", "regular", "--safety", "0.5")
    flags = ("--flags", "-O3 -march=sandybridge")
    outcome = run("blocking", "-m", "snb", source, "-D", "N=9000", *options, *flags, "--emit", folder / "blocked.c")
    assert outcome.status == 0
    _, compile_it, model_it, includes = outcome.err.splitlines()
    assert "-O3 -march=sandybridge -DN=9000 -c" in compile_it
    assert "-D N=9000 --nest 1 --function f --stores regular --flags '-O3 -march=sandybridge' --safety 0.5" in model_it
    assert includes == f"  it includes files that are looked for beside it: put it into {tmp_path}, or copy them"


@pytest.mark.thorough
def test_the_source_on_standard_output_comes_alone(run):
    outcome = run(*STENCIL, "--emit", "-")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith("/*\n * stencil with i in blocks of ")
    assert f"made by kernmodel {__version__} blocking\n * machine: snb, Intel Xeon E5-2680" in outcome.out
    assert " * sizes: M=20000, N=20000\n" in outcome.out or "sizes:" in outcome.out
    assert "#ifndef N\n#define N 20000\n#endif" in outcome.out
    assert "for (int i = i_block; i < MIN(i_block + BLOCK_I, N - 1); ++i)" in outcome.out


@pytest.mark.thorough
def test_a_file_is_replaced_only_with_force(run, tmp_path: Path):
    target = tmp_path / "blocked.c"
    target.write_text("mine")
    outcome = run(*SHORT, "--emit", target)
    assert outcome.status == 2 and "exists already; give another name, or --force to replace it" in outcome.err
    assert target.read_text() == "mine" and outcome.out == ""
    assert run(*SHORT, "--emit", target, "--force").status == 0
    assert "BLOCK_I" in target.read_text()


@pytest.mark.thorough
def test_a_drawing_on_the_terminal_and_a_picture(run, tmp_path: Path):
    outcome = run(*SHORT, "--plot")
    assert "block size of i (iterations)" in outcome.out and "holds the reuse along j up to i =" in outcome.out
    target = tmp_path / "blocking.svg"
    assert run(*SHORT, "--plot", target).status == 0
    assert "T_ECM, blocked" in target.read_text()


def test_nothing_to_gain(run, tmp_path: Path):
    outcome = run("blocking", "-m", "snb", "triad.c")
    assert outcome.status == 0 and "blocking buys nothing" in outcome.out
    target = tmp_path / "triad.c"
    outcome = run("blocking", "-m", "snb", "triad.c", "--emit", target)
    assert outcome.status == 1 and "no way to block triad" in outcome.err and not target.exists()
    outcome = run("blocking", "-m", "snb", "triad.c", "--plot", tmp_path / "triad.svg")
    assert outcome.status == 1 and "there is no picture of it" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--loops", "x"), "--loops: stencil has no loop x; choose among its loops j, i"),
        (("--loops", "i,,j"), "--loops: 'i,,j' is no list of loops; write --loops i,j"),
        (("--emit", "."), ".: is a directory"),
        (("--emit", ""), "the name of the file to write is empty"),
        (("--emit", "no/such/place.c"), "--emit no/such/place.c: there is no directory no/such"),
        (("--emit", "-", "--json"), "--emit -: would mix the source and a JSON document"),
        (("--emit", "-", "--plot"), "--emit -: would mix the source and a drawing"),
        (("--force",), "--force: does not fit: nothing is written"),
        (("--plot", "blocking.gif"), "the format '.gif' is not known"),
        (("--json", "--plot"), "would mix a drawing into the JSON document"),
        (("-D", "M=100,200"), "-D: this command takes one value for each size"),
        (("--cores", "0"), "0 is not in the range"),
    ],
)
def test_bad_options(run, options: tuple[str, ...], message: str):
    outcome = run(*STENCIL, *options)
    assert outcome.status == 2 and message in outcome.err
    assert "Traceback" not in outcome.err and outcome.out == ""


def test_kernels_that_cannot_be_blocked(run):
    outcome = run("blocking", "-m", "snb", "matvec.c", "--loops", "j")
    assert outcome.status == 2 and "the statement in line 14 stands between the loops" in outcome.err
    outcome = run("blocking", "-m", "snb", "gather.c")
    assert outcome.status == 1 and "layer conditions do not cover it" in outcome.err
    outcome = run("blocking", "-m", "snb", "dot.c")
    assert outcome.status == 0 and "iterations pass on sum" in outcome.out


@pytest.mark.thorough
def test_headers_out_of_macros_are_named(run, tmp_path: Path):
    source = tmp_path / "macros.c"
    source.write_text(
        "#define N 20000\n#define LOOP(v, n) for (int v = 1; v < n - 1; ++v)\n"
        "void f(double a[restrict N][N], double b[restrict N][N])\n{\n    LOOP(j, N)\n        LOOP(i, N)\n"
        "            b[j][i] = a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i];\n}\n"
    )
    outcome = run("blocking", "-m", "snb", source, "--emit", tmp_path / "blocked.c")
    assert outcome.status == 1
    assert "macros.c:6:9: the header of the loop over i cannot be rewritten; write it out" in outcome.err
    assert not (tmp_path / "blocked.c").exists()


def test_a_strict_command_refuses_warnings(run, tmp_path):
    source = tmp_path / "calls.c"
    source.write_text(
        "double sin(double);\nvoid f(int n, double a[restrict n][n], double b[restrict n][n])\n{\n"
        "    for (int j = 1; j < n - 1; ++j)\n        for (int i = 1; i < n - 1; ++i)\n"
        "            b[j][i] = sin(a[j - 1][i] + a[j + 1][i]);\n}\n"
    )
    command = ("blocking", "-m", "clx", source, "-D", "n=5000")
    loose = run(*command)
    assert (loose.status, loose.err) == (0, "")
    assert "warning: " in loose.out
    strict = run(*command, "--strict")
    assert (strict.status, strict.out) == (1, "")
    assert "leave out --strict" in strict.err
