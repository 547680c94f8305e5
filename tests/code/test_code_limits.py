"""Listings that would keep the assembler busy, and tools that take too much."""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path

import pytest

from kernmodel import limits, processes
from kernmodel.code.compile import FoundCompiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.errors import AssemblyError, ToolError
from kernmodel.isa import assembler
from kernmodel.isa.assembler import check_length, has_statements
from kernmodel.limits import Limit

LOOP = ".L1:\n{}\n vaddpd %ymm0, %ymm1, %ymm2\n jne .L1\n"
EIGHTFOLD = ".macro m0\n nop\n nop\n.endm\n" + "".join(
    f".macro m{n}\n{f'm{n - 1}' + chr(10):s}" + f"m{n - 1}\n" * 7 + ".endm\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    "text",
    [
        ".rept 100000000\n nop\n .endr",
        ".rept 0x10000\n nop\n .endr",
        ".rept 1000; .rept 1000; nop; .endr; .endr",
        ".rept 500\n.irp r,1,2,3,4,5,6,7,8,9,10\n.irpc c,0123456789\nnop\n.endr\n.endr\n.endr",
        "nop\n" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_lengths_are_known_before_anything_is_assembled(text):
    with pytest.raises(AssemblyError, match=r"x\.s:\d+: is longer than 50,000 lines; .* with --no-limits"):
        check_length(LOOP.format(text), "x.s")
    with limits.restored():
        limits.lift()
        check_length(LOOP.format(text), "x.s")


def test_what_is_repeated_a_little_is_read():
    listing = read_listing(LOOP.format(".rept 3\n.irp r,xmm1,xmm2\n vaddpd %\\r,%xmm1,%xmm2\n.endr\n.endr"), "x.s")
    assert len(listing.instructions) == 3 * 2 + 2
    check_length("# .rept 100000000 is a comment\n .rept N\n .endr\n.rept 08\n.endr\n", "x.s")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (EIGHTFOLD + LOOP.format(" m9"), "time of the assembler|memory of an assembler"),
        (LOOP.format(".rept 1000*1000000\n nop\n .endr"), "time of the assembler|memory of an assembler"),
        (LOOP.format(".fill 2000000000"), "output of an assembler"),
        (LOOP.format(".space 2000000000"), "output of an assembler"),
    ],
    ids=["macros", "expression", "fill", "space"],
)
def test_the_assembler_is_stopped(monkeypatch, text, name):
    monkeypatch.setattr("kernmodel.isa.assembler.ASSEMBLER_SECONDS", Limit("time of the assembler", 1, "s"))
    with pytest.raises(AssemblyError, match=rf"x\.s: GNU as was stopped at .* \(({name}).*\); .* with --no-limits"):
        read_listing(text, "x.s")


@pytest.mark.parametrize(
    "text", [".macro m n\n m \\n+1\n.endm\n m 0", ".org 8000000000", ".zero 4000000000", '.incbin "/dev/zero"']
)
def test_what_the_assembler_refuses_itself(text):
    with pytest.raises(AssemblyError, match=r"x\.s(:\d+)?: GNU as"):
        read_listing(LOOP.format(text), "x.s")


def test_more_code_than_is_decoded():
    with pytest.raises(AssemblyError, match=r"x\.s: holds 1,000,0\d\d bytes of code; .* 256 KiB with --no-limits"):
        read_listing(LOOP.format(".space 1000000"), "x.s")


def compiler(tmp_path: Path, script: str) -> FoundCompiler:
    path = tmp_path / "gcc"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return FoundCompiler("gcc", str(path), ())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", r"1 s \(time of a compiler\)"),
        ("while :; do :; done", r"1 s \(time of a compiler\)"),
        ("head -c 300000000 /dev/zero", r"128 MiB \(output of an assembler or compiler\)"),
        ("echo 'cc1: out of memory allocating 65536 bytes' >&2; exit 1", r"4 GiB \(memory of an assembler"),
    ],
    ids=["sleeps", "computes", "writes", "memory"],
)
def test_a_compiler_is_stopped(tmp_path, monkeypatch, script, said):
    seconds = 1 if "time" in said else 60  # a busy machine takes its time over the others
    monkeypatch.setattr("kernmodel.code.compile.COMPILER_SECONDS", Limit("time of a compiler", seconds, "s"))
    running = start_compile("int x;", name="k.c", compiler=compiler(tmp_path, script), flags=(), defines={})
    with running, pytest.raises(ToolError, match=rf"k\.c: gcc was stopped at {said}.*; .* with --no-limits"):
        running.finish()


def test_tools_see_the_limits_unless_they_are_lifted(tmp_path):
    def told() -> str:
        found = compiler(tmp_path, "ulimit -t; ulimit -v")
        with start_compile("int x;", name="k.c", compiler=found, flags=(), defines={}) as running:
            return running.finish().text

    assert told().split() == ["120", str(4 * 2**20)]
    with limits.restored():
        limits.lift()
        assert told().split() == ["unlimited", "unlimited"]


def test_the_child_of_a_tool_is_stopped_with_it(tmp_path):
    found = compiler(tmp_path, f"sleep 61 & echo $! > {tmp_path}/child; wait")
    running = start_compile("int x;", name="k.c", compiler=found, flags=(), defines={})
    while not (written := tmp_path / "child").exists() or not written.read_text().strip():
        pass
    running.close()
    child = Path("/proc") / written.read_text().strip()
    for _ in range(500):
        if not child.exists() or re.search(r"State:\s+Z", (child / "status").read_text()):
            return
        time.sleep(0.01)
    pytest.fail(f"{child} still runs")


def test_no_message_of_a_tool_is_taken_for_a_limit():
    assert processes.limit_met(1, "error: too many memory references", limits.COMPILER_SECONDS) is None
    assert any(value is assembler.LISTING_LINES for value in vars(limits).values())


def test_a_long_word_is_read_once():
    """Looked at from each of its characters on, it would take minutes."""
    assert has_statements("x" * 300_000 + "\n")
    assert not has_statements("label: .text\n")
