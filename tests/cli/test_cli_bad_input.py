"""The bad input that users give, through the command line: exit status, where, and what to do."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernmodel.resources import carried_folder

LOOP = "for (int i = 0; i < N; ++i) a[i] = b[i];"
KERNELS = {
    "empty": ("k.c", "", "is empty"),
    "only comments": ("k.c", "/* nothing */\n", "is empty"),
    "C++": ("k.c", "#include <vector>\nstd::vector<double> a;\n", "C++"),
    "C++ by its ending": ("k.cpp", LOOP, "C++"),
    "Fortran": ("k.c", "subroutine f(a, n)\n  do i = 1, n\n  end do\nend subroutine f\n", "Fortran"),
    "Fortran by its ending": ("k.f90", "do i = 1, n\nend do\n", "Fortran"),
    "syntax error": ("k.c", "double a[10];\nfor (int i = 0; i < 10; ++i a[i] = 0;\n", "k.c:2:"),
    "macro without value": ("k.c", f"double a[N], b[N];\n{LOOP}\n", "-D N="),
    "macro defined without value": ("k.c", f"#define N\ndouble a[9], b[9];\n{LOOP}\n", "k.c:3:21: the macro N"),
    "complex numbers": ("k.c", f"#define N 9\ndouble complex a[N], b[N];\n{LOOP}\n", "k.c:2:8: complex is a macro"),
    "struct": (
        "k.c",
        "struct { double x; } a[9];\nfor (int i = 0; i < 9; ++i) a[i].x = 0;\n",
        "k.c:2:29: the member a[i].x",
    ),
    "while": ("k.c", "double a[9]; int i = 0;\nwhile (i < 9) a[i++] = 0;\n", "k.c:2:"),
    "unknown function of an array": ("k.c", "double a[9];\nfor (int i = 0; i < 9; ++i) a[i] = g(a);\n", "k.c:2:"),
    "parameter without value": ("k.c", "void f(int n, double *a) { for (int i = 0; i < n; ++i) a[i] = 0; }\n", "-D n="),
    "two functions": ("k.c", f"double a[9], b[9];\nvoid f() {{ {LOOP} }}\nvoid g() {{ {LOOP} }}\n", "-D N="),
    "no loop": ("k.c", "double a[10];\na[0] = 1;\n", "loop"),
    "indirect index": ("k.c", "double a[10]; int p[10];\nfor (int i = 0; i < 10; ++i) a[p[i]] = 0;\n", "k.c:2:"),
    "not affine": ("k.c", "double a[100];\nfor (int i = 0; i < 10; ++i) a[i*i] = 0;\n", "k.c:2:"),
}


def assert_refused(outcome, status: int, *parts: str) -> None:
    assert outcome.status == status, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("kernmodel: error: ")
    for part in parts:
        assert part in outcome.err


@pytest.mark.parametrize(("name", "text", "part"), KERNELS.values(), ids=KERNELS)
def test_kernels(run, tmp_path, name, text, part):
    path = tmp_path / name
    path.write_text(text)
    assert_refused(run("traffic", "-m", "clx", path), 1, name, part)


def test_two_nests_are_chosen_by_number(run, tmp_path):
    path = tmp_path / "k.c"
    path.write_text(f"#define N 10\ndouble a[N], b[N];\n{LOOP}\n{LOOP}\n")
    assert run("traffic", "-m", "clx", path, "--nest", 2).status == 0
    assert_refused(run("traffic", "-m", "clx", path, "--nest", 3), 1, "k.c", "2 at")


def test_an_array_that_the_inner_loop_never_indexes(run, tmp_path):
    """It is no mistake: the element stays in a register, and the answer says so."""
    path = tmp_path / "k.c"
    path.write_text("double a[99], b[9];\nfor (int j = 0; j < 9; ++j) for (int i = 0; i < 99; ++i) a[i] = b[j];\n")
    outcome = run("traffic", "-m", "clx", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "b is not indexed by the inner loop variable i" in outcome.out


def test_a_kernel_without_any_moving_array(run, tmp_path):
    path = tmp_path / "k.c"
    path.write_text("double b[9];\nfor (int j = 0; j < 9; ++j) for (int i = 0; i < 99; ++i) b[j] += 1.5;\n")
    outcome = run("traffic", "-m", "clx", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "no array moves with the inner loop" in outcome.out


def test_a_binary_kernel(run, tmp_path):
    path = tmp_path / "k.c"
    path.write_bytes(b"\x7fELF\0\1\2\3")
    assert_refused(run("ecm", "-m", "clx", path), 1, "k.c", "binary")


@pytest.mark.parametrize("size", ["N=4611686018427387904", "N=9223372036854775807"])
def test_sizes_that_overflow(run, size):
    assert_refused(run("traffic", "-m", "clx", "stencil", "-D", size), 1, "N")


def test_a_size_that_the_kernel_does_not_have(run):
    assert_refused(run("traffic", "-m", "clx", "stencil", "-D", "Q=3"), 1, "Q")


CLX = (carried_folder("machine-files") / "clx.yml").read_text(encoding="utf-8")
MACHINES = {
    "wrong unit": (CLX.replace("clock: 2.5 GHz", "clock: 2.5 GB"), "clock"),
    "missing key": (CLX.replace("clock: 2.5 GHz", ""), "clock"),
    "unknown microarchitecture": (CLX.replace("microarchitecture: CLX", "microarchitecture: QQQ"), "qqq"),
    "no mapping": ("- 1\n- 2\n", "is no mapping"),
    "no YAML": ("a: [1,\n", "is not valid YAML"),
    "empty": ("", "is empty"),
}


@pytest.mark.parametrize(("text", "part"), MACHINES.values(), ids=MACHINES)
def test_machine_files(run, tmp_path, text, part):
    path = tmp_path / "m.yml"
    path.write_text(text)
    outcome = run("incore", "-m", path, tmp_path / "x.s")
    assert_refused(outcome, 1)
    assert part in outcome.err.lower() or part in outcome.err
    check = run("machine", "check", path)
    assert check.status == 1
    assert "m.yml" in check.out


LISTINGS = {
    "unknown mnemonic": (".L1:\n  frobnicate %rax\n  jne .L1\n", "frobnicate"),
    "ARM": (".L1:\n  ldr q0, [x1, x3]\n  fadd v0.2d, v0.2d, v1.2d\n  str q0, [x0, x3]\n  b.ne .L1\n", "AArch64"),
    "empty": ("", "x.s"),
}


@pytest.mark.parametrize(("text", "part"), LISTINGS.values(), ids=LISTINGS)
def test_listings(run, tmp_path, text, part):
    path = tmp_path / "x.s"
    path.write_text(text)
    assert_refused(run("incore", "-m", "clx", path), 1, part)
    assert_refused(run("ecm", "-m", "clx", "triad", "--asm", path), 1, part)


def test_a_binary_listing(run, tmp_path):
    path = tmp_path / "x.s"
    path.write_bytes(bytes(range(256)) * 4)
    assert_refused(run("incore", "-m", "clx", path), 1, "x.s")


ON_HOST = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="blocks are measured on Linux on x86-64"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "arguments",
    [
        ["ecm", "-m", "clx", "stencil", "--compiler", "cc"],
        pytest.param(["measure", "block", "--hex", "90"], marks=ON_HOST),
    ],
    ids=["ecm", "measure"],
)
def test_interruption_leaves_nothing_behind(tmp_path, arguments, number):
    """Ctrl-C or a request to end while the compiler runs: status 130, one line, no file in the user's or the temporary
    directory."""
    started, work, temporary = (tmp_path / name for name in ("started", "work", "temporary"))
    work.mkdir()
    temporary.mkdir()
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\ntouch {started}\nexec sleep 60\n")
    compiler.chmod(0o755)
    code = f"import sys; sys.argv[1:] = {arguments!r}; from kernmodel.cli.main import console; sys.exit(console())"
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ, "PATH": path, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[2])
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=work, env=environment, stderr=subprocess.PIPE, text=True, process_group=0
    )
    while not started.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "kernmodel: error: interrupted\n")
    assert [*work.iterdir(), *temporary.iterdir()] == []
