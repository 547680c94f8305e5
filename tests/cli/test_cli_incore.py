"""`kernmodel incore` in all its forms, and the bad input that it is given."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEX = "4801d84801c3ffc975f6"
FUNCTION = """
        .globl  f
        .type   f, @function
f:
.L1:    addsd   (%rdi,%rax), %xmm0
        addq    $8, %rax
        cmpq    %rsi, %rax
        jne     .L1
        ret
        .size   f, .-f
"""


def assert_refused(outcome, status: int, *parts: str) -> None:
    assert outcome.status == status, outcome
    assert outcome.err.startswith("kernmodel: error: ")
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err


@pytest.fixture
def object_file(tmp_path) -> Path:
    path = tmp_path / "f.o"
    subprocess.run(["as", "-o", str(path), "-"], input=FUNCTION, text=True, check=True)
    return path


def test_hex_digits(run):
    outcome = run("incore", "--uarch", "skl", "--hex", HEX)
    assert (outcome.status, outcome.err) == (0, "")
    assert "2.00 cy per pass" in outcome.out
    assert "repeated as a loop" in outcome.out


def test_notion_is_chosen(run):
    document = json.loads(run("incore", "--uarch", "skl", "--hex", HEX, "--notion", "unrolled", "--json").out)
    assert (document["incore"]["notion"], document["incore"]["offset"]) == ("unrolled", 0)
    assert (document["explanation"], document["alignments"]) == (None, None)


def test_explanation_and_alignments(run):
    arguments = ("incore", "--uarch", "skl", "--hex", HEX, "--explain", "--align", "all")
    text = run(*arguments).out
    assert "If one component were infinitely fast" in text
    assert "0-63" in text or "Alignment" in text
    document = json.loads(run(*arguments, "--json").out)
    assert sum(len(group["offsets"]) for group in document["alignments"]) == 64
    assert document["explanation"]["binding"]


def test_one_offset(run):
    document = json.loads(run("incore", "--uarch", "skl", "--hex", HEX, "--align", "0xf", "--json").out)
    assert document["incore"]["offset"] == 15


def test_all_cores_in_one_table(run, object_file):
    outcome = run("incore", "--uarch", "all", object_file, "--function", "f")
    assert outcome.status == 0
    cores = [line.split()[0] for line in outcome.out.splitlines()[2:] if line.startswith(" ")]
    assert {"SNB", "SKL", "ZEN3"} <= set(cores)
    document = json.loads(run("incore", "--uarch", "skl,zen2", object_file, "--function", "f", "--json").out)
    assert [point["microarchitecture"] for point in document["points"]] == ["SKL", "ZEN2"]


def test_all_loops_in_one_table(run, object_file):
    outcome = run("incore", "-m", "clx", object_file, "--all-loops")
    assert outcome.status == 0
    assert outcome.out.splitlines()[2].split()[:2] == ["CLX", "f"]


def test_an_address_range(run, object_file):
    assert "addsd" in run("incore", "--uarch", "skl", object_file, "--range", "0x0-0xe").out
    assert "1 branch" not in run("incore", "--uarch", "skl", object_file, "--range", "0x0-0xe").out


def test_estimates_are_marked(run):
    plain = run("incore", "--uarch", "skl", "--hex", "d9fb")
    assert "?" in plain.out
    guessed = run("incore", "--uarch", "skl", "--hex", "d9fb", "--estimate")
    assert "~ no row either, but estimated" in guessed.out
    assert "has no row in the instruction table: estimated as" in guessed.out
    assert_refused(run("incore", "--uarch", "skl", "--hex", "d9fb", "--estimate", "--strict"), 1, "--strict")


def test_the_graph_is_written(run, tmp_path):
    path = tmp_path / "out.dot"
    assert run("incore", "--uarch", "skl", "--hex", HEX, "--graph", path).status == 0
    assert path.read_text().startswith("digraph dependencies {")


def test_no_graph_is_left_behind_without_graphviz(run, tmp_path, monkeypatch):
    path = tmp_path / "out.svg"
    monkeypatch.setenv("PATH", "")
    assert_refused(run("incore", "--uarch", "skl", "--hex", HEX, "--graph", path), 3, "Graphviz")
    assert not path.exists()


def batch(run, tmp_path, text: str, *arguments: str):
    path = tmp_path / "blocks.txt"
    path.write_text(text)
    return run("incore", "--uarch", "skl", "--batch", path, *arguments)


def test_a_batch_in_json_lines(run, tmp_path):
    outcome = batch(run, tmp_path, f"{HEX}\nzz\n\n06\n4801\n62f1fd4858c0\n{HEX}\n", "--json")
    documents = [json.loads(line) for line in outcome.out.splitlines()]
    assert outcome.status == 0
    assert [document["line"] for document in documents] == [1, 2, 3, 4, 5, 6, 7]
    assert [document["error"] is None for document in documents] == [True, False, False, False, False, False, True]
    assert {document["schema"] for document in documents} == {"kernmodel.incore-batch/1"}
    assert documents[0]["prediction"] == 2.0


def test_a_batch_as_a_table(run, tmp_path):
    outcome = batch(run, tmp_path, f"id,code\n1,{HEX}\n2,zz\n", "--hex-column", "code")
    rows = outcome.out.splitlines()[2:]
    assert rows[0].split()[:3] == ["2", "2.00", "precedence"]
    assert "'z' is no hex digit" in rows[1]


def test_a_batch_from_standard_input_by_two_processes(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{HEX}\n".encode() * 400)))
    outcome = run("incore", "--uarch", "skl", "--batch", "-", "--json", "--jobs", "2")
    assert [json.loads(line)["line"] for line in outcome.out.splitlines()] == list(range(1, 401))


def test_strict_refuses_single_lines_of_a_batch(run, tmp_path):
    outcome = batch(run, tmp_path, f"{HEX}\nd9fb\n", "--strict", "--json")
    first, second = (json.loads(line) for line in outcome.out.splitlines())
    assert (outcome.status, first["error"], second["prediction"]) == (0, None, None)
    assert "unknown-instruction" in second["error"]


def test_the_reader_of_a_batch_may_go_away(tmp_path):
    (tmp_path / "b.txt").write_text(f"{HEX}\n" * 20000)
    code = "import sys; from kernmodel.cli.main import main; sys.exit(main())"
    call = f"{sys.executable} -c '{code}' incore --uarch skl --batch b.txt --json --jobs 2"
    shell = ["bash", "-c", f"{call} | head -1; echo ${{PIPESTATUS[0]}}"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.splitlines()[1:] == ["141"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "status", "parts"),
    [
        (("--hex", ""), 1, ("the block is empty",)),
        (("--hex", "480"), 1, ("--hex", "3 hex digits", "even")),
        (("--hex", "4g"), 1, ("'g'",)),
        (("--hex", "06"), 1, ("no x86-64 instruction",)),
        (("--hex", "4801"), 1, ("ends inside",)),
        (("--hex", "62f1fd4858c0"), 1, ("AVX512F", "Skylake")),
        (("--hex", "90", "--loop", "1"), 2, ("--hex",)),
        (("--hex", "90", "x.s"), 2, ("FILE and --hex",)),
        (("--hex", "90", "--batch", "b"), 2, ("--hex and --batch",)),
        (("--hex", "90", "--raw"), 2, ("--raw",)),
        (("--hex", "90", "--align", "x"), 2, ("--align", "all")),
        (("--hex", "90", "--graph", "."), 2, ("directory",)),
        ((), 2, ("no code",)),
        (("x.o", "--range", "10"), 2, ("0x401000-0x401040",)),
        (("x.o", "--range", "0x20-0x10"), 2, ("--range",)),
        (("missing.bin", "--raw"), 1, ("missing.bin",)),
        ((".", "--raw"), 1, ("directory",)),
        (("--batch", "missing.txt"), 1, ("missing.txt",)),
        (("--batch", "."), 1, ("directory",)),
        (("--batch", "b", "--explain"), 2, ("--explain",)),
        (("--batch", "b", "--range", "1-2"), 2, ("--range",)),
        (("--batch", "b", "--align", "all"), 2, ("--align all",)),
    ],
)
def test_what_cannot_be_answered(run, arguments, status, parts):
    assert_refused(run("incore", "--uarch", "skl", *arguments), status, *parts)


def test_tables_take_no_options_of_one_loop(run):
    for option in (("--explain",), ("--graph", "x.dot"), ("--align", "all")):
        assert_refused(run("incore", "--uarch", "skl,hsw", "--hex", "90", *option), 2, option[0])


def test_a_batch_is_for_one_core(run, tmp_path):
    assert_refused(run("incore", "--uarch", "all", "--batch", "b"), 2, "--batch")


def test_privileged_instructions_and_two_blocks_are_noted(run):
    assert "hlt is privileged" in run("incore", "--uarch", "skl", "--hex", "f490").out
    outcome = run("incore", "--uarch", "skl", "--hex", "4801d874034801c3c3")
    assert "its first basic block was taken: bytes 0 to 4" in outcome.out


def test_a_megabyte_is_refused_with_the_limit(run, tmp_path):
    path = tmp_path / "zeros.bin"
    path.write_bytes(bytes(1 << 20))
    assert_refused(run("incore", "--uarch", "skl", path, "--raw"), 1, "1048576 bytes", "16384")


def test_files_that_are_no_code(run, tmp_path, object_file):
    archive = tmp_path / "lib.a"
    archive.write_bytes(b"!<arch>\n")
    assert_refused(run("incore", "--uarch", "skl", archive), 1, "archive", "ar x")
    junk = tmp_path / "junk"
    junk.write_bytes(bytes(range(256)) * 8)
    assert_refused(run("incore", "--uarch", "skl", junk), 1, "binary file")
    assert_refused(run("incore", "--uarch", "skl", tmp_path), 1, "directory")
    foreign = tmp_path / "arm.o"
    data = bytearray(object_file.read_bytes())
    data[18:20] = (183).to_bytes(2, "little")  # EM_AARCH64
    foreign.write_bytes(data)
    assert_refused(run("incore", "--uarch", "skl", foreign), 1, "AArch64")
    assert_refused(run("incore", "--uarch", "skl", foreign, "--range", "0x0-0x4"), 1, "AArch64")


def test_a_stripped_file(run, tmp_path, object_file):
    subprocess.run(["strip", str(object_file)], check=True)
    assert_refused(run("incore", "--uarch", "skl", object_file, "--function", "f"), 1, "stripped", "--range")


def test_the_function_that_was_analysed_is_named(run, object_file):
    for options in (("--function", "f"), ()):
        text = run("incore", "--uarch", "skl", object_file, *options).out
        (line,) = (line for line in text.splitlines() if line.strip().startswith("analysed"))
        assert "main loop at .L1 of function f, 4 instructions" in line or "main loop of function f, 4" in line
    document = json.loads(run("incore", "--uarch", "skl", object_file, "--json").out)
    assert document["code"]["loop"]["function"] == "f"
