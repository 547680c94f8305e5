"""What goes wrong: one line on standard error, the right exit status, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kernmodel.cli.exit_status import CLOSED_PIPE, INTERNAL
from kernmodel.errors import AmbiguousLoopError, Location, ToolError
from kernmodel.output_files import output_file

ECM = ("ecm", "-m", "clx", "stencil")


def assert_refused(outcome, status: int, *parts: str) -> None:
    assert outcome.status == status, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("kernmodel: error: ")
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part.lower() in outcome.err.lower()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("-D", "N=abc"), ("-D N", "'abc'")),
        (("-D", "N=-1"), ("not positive",)),
        (("-D", "N=-4"), ("not positive",)),
        (("-D", "N=99999999999999999999"), ("overflows",)),
        (("-D", "N="), ("-D N",)),
        (("-D", "N=20-10"), ("empty",)),
        (("-D", "N=1e6"), ("-D N", "'1e6'")),
        (("-D", "N=1-99999", "-D", "M=1-99999"), ("-D", "9999800001 combinations")),
        (("-D", "4N=3"), ("is not NAME=VALUE",)),
        (("--cores", "0"), ("--cores", "not positive")),
        (("--cores", "x"), ("--cores",)),
        (("--cores", "1-41"), ("--cores", "41 cores, but clx has 40")),
        (("--unit", "furlong"), ("'furlong'", "cy/CL, cy/It", "LUP/s")),
        (("--lines", "9-3"), ("--lines",)),
        (("--lines", "x"), ("--lines",)),
        (("--loop", "0"), ("--loop", "ecm -h")),
        (("--nest", "x"), ("--nest",)),
        (("--safety", "0"), ("--safety",)),
        (("--safety", "nan"), ("--safety",)),
        (("--safety", "half"), ("--safety",)),
        (("--iterations-per-pass", "0"), ("--iterations-per-pass", "no finite number above 0")),
        (("--iterations-per-pass", "inf"), ("--iterations-per-pass",)),
        (("--iterations-per-pass", "1e308"), ("--iterations-per-pass", "between 1e-06 and 1e+06")),
        (("--flags", "'-O3"), ("--flags", "quotes")),
        (("--ports", "odd"), ("'optimal'",)),
        (("--syntax", "arm"), ("'att'",)),
        (("--cors", "3"), ("--cors", "--cores")),
        (("more",), ("more",)),
    ],
    ids=" ".join,
)
def test_usage_of_ecm(run, arguments, parts):
    assert_refused(run(*ECM, *arguments), 2, *parts)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("emc",), "emc"),
        (("ecm", "stencil"), "--machine"),
        (("ecm", "-m", "clx"), "KERNEL"),
        (("traffic", "-m", "clx", "stencil", "--cores", "1-41"), "41 cores, but clx has 40"),
        (("traffic", "-m", "clx", "stencil", "--cores", "4-1"), "the range '4-1' is empty"),
        (("traffic", "-m", "clx", "stencil", "--cores", "0"), "not positive"),
        (("traffic", "-m", "clx", "stencil", "--unit", "miles"), "B/It"),
        (("incore", "x.s"), "-m clx or --uarch CLX"),
        (("incore", "-m", "clx", "--uarch", "SKL", "x.s"), "either"),
        (("instructions", "show", "vaddpd"), "either"),
        (("evaluate", "blocks", "--distinct", "loops.csv"), "write --distinct behind it"),
        (("machine", "check"), "--carried"),
        (("ecm", "-m", "clx", "stencil", "--schedule", "dynamic"), "'--schedule', which kernmodel scaling has; see"),
        (("ecm", "-m", "clx", "stencil", "--cors", "4"), "did you mean one of: '--cores'"),
        (("machine", "frobnicate"), "frobnicate"),
        (("machine", "import", "x.yml", "-o", "."), "is a directory"),
        (("kernel", "show", "stencil", "-D", "N=1,2"), "one value"),
        (("completion", "tcsh"), "'bash'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_usage_of_other_commands(run, arguments, part):
    assert_refused(run(*arguments), 2, part)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("machine", "show", "clxx"), ("clxx", "clx")),
        (("ecm", "-m", "sxk", "stencil"), ("sxk", "skx")),
        (("ecm", "-m", "clx", "stencli"), ("stencli", "stencil")),
        (("ecm", "-m", "clx", "/nowhere/x.c"), ("/nowhere/x.c", "no such kernel")),
        (("ecm", "-m", ".", "stencil"), ("directory",)),
        (("traffic", "-m", "clx", "nothing"), ("nothing",)),
        (("kernel", "show", "stensil"), ("stencil",)),
        (("incore", "-m", "clx", "missing.s"), ("missing.s",)),
        (("incore", "--uarch", "SKYLAKE9", "missing.s"), ("skylake9",)),
        (("ecm", "-m", "clx", "stencil", "--asm", "missing.s"), ("missing.s",)),
        (("machine", "import", "missing.yml"), ("missing.yml",)),
        (("instructions", "import", "missing.gz", "--uarch", "SKL"), ("missing.gz",)),
        (("instructions", "import", __file__, "--uarch", "ZEN3"), (__file__, "nor what ibench or asmbench printed")),
        (("instructions", "show", "vaddpd", "--uarch", "XYZ"), ("xyz",)),
        (("machine", "check", "nothing.yml"), ("nothing.yml",)),
    ],
    ids=lambda value: " ".join(value),
)
def test_input_that_is_not_there(run, arguments, parts):
    assert_refused(run(*arguments), 1, *parts)


def test_an_output_file_that_cannot_be_written(run, tmp_path):
    source = tmp_path / "source.yml"
    source.write_text("model type: x\n")
    outcome = run("machine", "import", source, "-o", tmp_path / "no" / "out.yml")
    assert_refused(
        outcome, 2, f"--output {tmp_path / 'no' / 'out.yml'}: there is no directory {tmp_path / 'no'}; make it"
    )


def test_a_folder_that_takes_no_files_is_refused_before_any_work_whoever_asks(run, tmp_path, monkeypatch):
    """Root may write in /proc by its permissions, and cannot: a file is made there on trial."""
    monkeypatch.setattr("kernmodel.api.measuring.probe_machine", None)  # to call it is a bug
    link = tmp_path / "link.yml"
    link.symlink_to("/proc/none.yml")
    assert_refused(run("machine", "probe", "-o", link), 2, f"--output {link}: nothing may be written in /proc")


def test_trying_a_place_changes_nothing_there(tmp_path):
    kept = tmp_path / "mine.yml"
    kept.write_text("kept")
    assert output_file(str(kept)) == kept
    assert output_file(str(tmp_path / "new.yml")) == tmp_path / "new.yml"
    assert ([*tmp_path.iterdir()], kept.read_text()) == ([kept], "kept")


def test_a_compiler_that_is_missing(run):
    assert_refused(run(*ECM, "--compiler", "no-such-compiler"), 3, "no-such-compiler")


def test_a_compiler_that_fails(run):
    assert_refused(run(*ECM, "--flags", "--no-such-flag"), 3, "no-such-flag")


def test_a_compiler_that_crashes(run, tmp_path):
    compiler = tmp_path / "crash"
    compiler.write_text("#!/bin/sh\nkill -SEGV $$\n")
    compiler.chmod(0o755)
    assert_refused(run(*ECM, "--compiler", compiler), 3, "crash", "--asm")


@pytest.fixture
def raising(monkeypatch):
    """Make `machine list` raise an exception."""

    def arrange(error: BaseException) -> None:
        def fail() -> None:
            raise error

        monkeypatch.setattr("kernmodel.machine.load.list_machines", fail)

    return arrange


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ToolError("is missing", where="gcc", todo="install it"), 3, "gcc: is missing; install it"),
        (
            AmbiguousLoopError("two loops", ("1: a", "2: b"), where=Location("x.s", 3)),
            1,
            "x.s:3: two loops\n  1: a\n  2: b",
        ),
        (PermissionError(13, "Permission denied", "secret.c"), 1, "secret.c: Permission denied"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_status_and_message(run, raising, error, status, text):
    raising(error)
    assert run("machine", "list").status == status
    assert run("machine", "list").err == f"kernmodel: error: {text}\n"


def test_a_bug_is_one_line_that_asks_for_a_report(run, raising, monkeypatch):
    raising(ZeroDivisionError("division\nby zero"))
    outcome = run("machine", "list")
    assert outcome.status == INTERNAL == 70
    assert outcome.err.count("\n") == 1
    assert "KERNMODEL_DEBUG=1" in outcome.err
    monkeypatch.setenv("KERNMODEL_DEBUG", "1")
    assert "Traceback" in run("machine", "list").err


def test_a_closed_pipe_is_left_quietly():
    code = "import sys; from kernmodel.cli.main import main; sys.exit(main(['machine', 'show', '-v', 'clx']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (CLOSED_PIPE, "")


def test_no_colour_and_full_width_in_a_pipe(run_apart):
    done = run_apart("machine", "list", COLUMNS="40")
    assert "\x1b" not in done.stdout
    assert "Intel Xeon Gold 6248 (Cascade Lake SP)" in done.stdout


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """What a command prints on a pseudo-terminal."""
    import pty

    code = f"import sys; from kernmodel.cli.main import main; sys.exit(main({list(arguments)!r}))"
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **environment}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=child, stderr=child, stdin=child, env=environment)
    os.close(child)
    parts = []
    try:
        while part := os.read(parent, 65536):
            parts.append(part)
    except OSError:  # Linux reports the end of a pseudo-terminal as an error
        pass
    process.wait()
    os.close(parent)
    return b"".join(parts).decode()


def test_colour_on_a_terminal_unless_refused():
    assert "\x1b[1" in on_a_terminal("machine", "show", "clx", NO_COLOR="")
    assert "\x1b" not in on_a_terminal("machine", "show", "clx", NO_COLOR="1")
    assert "\x1b" not in on_a_terminal("machine", "show", "clx", NO_COLOR="", TERM="dumb")


def test_ascii_where_the_output_knows_nothing_else(run_apart):
    done = run_apart("traffic", "-m", "clx", "stencil", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "<=" in done.stdout


def test_strict_refuses_an_unknown_instruction(run, tmp_path):
    listing = tmp_path / "odd.s"
    listing.write_text(".L1:\n  aesenc %xmm0, %xmm1\n  ud2\n  dec %rax\n  jne .L1\n")
    loose = run("incore", "--uarch", "SKL", "--lines", "1-5", listing)
    assert loose.status == 0
    assert "uncertain: 1 unknown instruction" in loose.out
    assert "warning" in loose.out
    assert_refused(run("incore", "--uarch", "SKL", "--lines", "1-5", "--strict", listing), 1, "leave out --strict")
