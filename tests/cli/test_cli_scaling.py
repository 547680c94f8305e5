"""`kernmodel scaling`."""

from __future__ import annotations

import pytest

needs_compiler = pytest.mark.needs("as", "gcc|clang")


@needs_compiler
def test_the_table_equals_ecm_over_cores(document):
    scaled = document("scaling", "-m", "clx", "stencil.c", "--cores", "1-12")
    ecm = document("ecm", "-m", "clx", "stencil.c", "--cores", "1-12")
    rows = scaled["points"][0]["rows"]
    shared = ("cores", "domains", "cycles", "units_per_cycle", "utilization", "saturated", "speedup", "in_units")
    assert [{key: row[key] for key in shared} for row in rows] == [
        {key: row[key] for key in shared} for row in ecm["scaling"]
    ]
    assert scaled["points"][0]["single_core"] == ecm["prediction"]


@needs_compiler
def test_all_cores_are_taken_unless_told(run):
    outcome = run("scaling", "-m", "snb", "triad")
    assert (outcome.status, outcome.err) == (0, "")
    cores = [line.split()[0] for line in outcome.out.splitlines() if line.split()[1:2] in (["1"], ["2"])]
    assert cores == [str(n) for n in range(1, 17)]
    assert "2 of 8 cores each, filled one after the other" in outcome.out


@needs_compiler
def test_several_sizes_and_their_drawing(run):
    outcome = run(
        "scaling", "-m", "hsw", "stencil", "-D", "M=1000", "-D", "N=20000,120000", "--cores", "1-14", "--plot"
    )
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.count("Scaling of stencil on hsw") == 2
    assert "* N=20000   o N=120000" in outcome.out
    assert "from 10 cores: L3: 3.5 MiB a core; reuse over j (3.662 MiB) no longer fits" in outcome.out


@needs_compiler
def test_a_drawing_has_both_rules_and_linear_scaling(run):
    drawing = run("scaling", "-m", "clx", "stencil", "--plot").out.rpartition("\n\n")[2]
    assert drawing.startswith("stencil on clx: performance (GLUP/s)\n")
    assert "* recursive latency-aware rule   o simple rule min(n·P(1), P_sat)" in drawing
    assert "+ linear, n·P(1)" in drawing
    assert max(map(len, drawing.splitlines())) <= 80


@needs_compiler
def test_a_picture_is_written_and_repeats(run, tmp_path):
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        assert run("scaling", "-m", "clx", "stencil", "--cores", "1-4", "--plot", file).status == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "recursive latency-aware rule" in files[0].read_text()


@needs_compiler
def test_other_units(run):
    outcome = run("scaling", "-m", "clx", "stencil", "--cores", "1,2", "--unit", "flop/s")
    assert "3.264 GFLOP/s" in outcome.out
    verbose = run("scaling", "-m", "clx", "stencil", "--cores", "1,2", "--unit", "cy/CL", "-v").out
    assert "24.51 cy/CL  816.0 MIt/s  816.0 MLUP/s  3.264 GFLOP/s" in verbose


@needs_compiler
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_unit_that_the_kernel_has_not(run, more):
    outcome = run("scaling", "-m", "clx", "copy", "--unit", "FLOP/s", *more)
    assert outcome.status == 2
    assert "the kernel has no floating-point operations; use It/s" in outcome.err


def test_strict_refuses_warnings(run, tmp_path):
    source = tmp_path / "copy.s"
    source.write_text(
        "f:\n.L3:\n vmovupd (%rsi,%rax), %ymm0\n ud2\n vmovupd %ymm0, (%rdi,%rax)\n"
        " addq $32, %rax\n cmpq %rdx, %rax\n jne .L3\n ret\n"
    )
    arguments = ("scaling", "-m", "clx", "copy", "--asm", source, "--cores", "1,2")
    accepted = run(*arguments)
    assert (accepted.status, accepted.err) == (0, "")
    assert "warning: " in accepted.out
    refused = run(*arguments, "--strict")
    assert (refused.status, refused.out) == (1, "")
    assert "leave out --strict" in refused.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("stencil",), 2, "Missing option '-m'"),
        (("-m", "clx"), 2, "Missing argument 'KERNEL'"),
        (
            ("-m", "clxx", "stencil"),
            1,
            "clxx: no such machine file; give a path, or one of the carried ones (nearest: clx",
        ),
        (("-m", "clx", "stencill"), 1, "stencill: no such kernel"),
        (("-m", "clx", "stencil", "--cores", "41"), 2, "41 cores, but clx has 40; give 1 to 40"),
        (("-m", "clx", "stencil", "--cores", "5-1"), 2, "the range '5-1' is empty; write 1-5"),
        (("-m", "clx", "stencil", "--cores", "0"), 2, "not positive"),
        (("-m", "clx", "stencil", "-D", "N=1-100"), 2, "100 points of sizes, but at most 16"),
        (("-m", "clx", "stencil", "-D", "Q=3"), 1, "has no macro or parameter Q"),
        (("-m", "clx", "stencil", "--plot", "a.bmp"), 2, "the format '.bmp' is not known"),
        (("-m", "clx", "stencil", "--json", "--plot", "-"), 2, "would mix a drawing into the JSON document"),
        (("-m", "clx", "stencil", "--unit", "zz"), 2, "unknown unit 'zz'"),
        (("-m", "clx", "stencil", "--compiler", "no-such-cc"), 3, "the compiler 'no-such-cc' was not found"),
    ],
)
def test_bad_input(run, arguments, status, message):
    outcome = run("scaling", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err
    assert "Traceback" not in outcome.err
