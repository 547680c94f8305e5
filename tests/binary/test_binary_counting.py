"""How often blocks ran: two methods agree, counts obey the flow, and programs that are hard to count."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kernmodel.binary.counting import count_occurrences, counted_run, occurrences_of
from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command
from kernmodel.binary.tracing import NotTracedError, traced_run
from kernmodel.errors import InputError, KernmodelError, ToolError

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="blocks are counted in copies on Linux on x86-64"
)


def count(program, function, *arguments, **options):
    command = Command((str(program), *arguments), options.pop("standard_input", b""), seconds=20)
    return count_occurrences(find_function(program, function), command, **options)


def check_flow(function, counted):
    """What comes into a block goes through it, and, but for what ends the program, out of it."""
    for block in function.blocks:
        came = sum(n for (_, target), n in counted.edges.items() if target == block.address)
        came += counted.calls if block.address == function.entry else 0
        assert came == counted.blocks[block.address]
        if block.ending in ("falls", "jumps", "branches", "indirect"):
            left = sum(n for (source, _), n in counted.edges.items() if source == block.address)
            assert left == counted.blocks[block.address]


@pytest.mark.thorough
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-no-pie", "-fno-pie"), ("-O3", "-march=x86-64-v3")])
@pytest.mark.parametrize("name", ["gemm", "choose", "fib", "main"])
def test_counts_are_those_of_the_source(build, flags, name):
    program = build("flow.c", *flags)
    function, counted = count(program, name, "20", method="re-encoded")
    check_flow(function, counted)
    if name != "fib" or flags == ("-O0",):  # compilers turn one of the two calls into a loop
        assert counted.calls == {"gemm": 3, "choose": 1, "fib": 177, "main": 1}[name]
    assert counted.runs == 2
    deepest = max(function.loops, key=lambda loop: loop.depth, default=None)
    if name == "gemm" and flags != ("-O3", "-march=x86-64-v3"):
        assert deepest.depth == 3
        assert max(counted.blocks[one] for one in deepest.blocks) in (3 * 20**3, 3 * 20**2 * 21)
    if name == "choose" and flags == ("-O2",):
        assert sum(counted.blocks[b.address] for b in function.blocks if b.ending == "indirect") == 70


@pytest.mark.thorough
@pytest.mark.needs("valgrind")
@pytest.mark.parametrize("name", ["choose", "gemm"])
def test_two_methods_agree_block_for_block(build, name):
    program = build("flow.c", "-O2", "-g")
    _, ours = count(program, name, method="re-encoded")
    _, theirs = count(program, name, method="callgrind")
    assert ours.blocks == theirs.blocks
    assert ours.edges == theirs.edges
    assert ours.calls == theirs.calls


def test_threads_count_together(build):
    function, counted = count(build("unruly.c", "-O1", "-pthread"), "work", "t")
    check_flow(function, counted)
    assert counted.calls == 4
    assert max(counted.blocks.values()) == 80000


@pytest.mark.parametrize(("timed_out", "said"), [(True, "did not end within 20 s while counting"), (False, "killed")])
def test_a_program_that_is_killed_between_two_stops_is_told(build, timed_out, said):
    """As when the tracer was suspended itself and finds the time over when it goes on."""
    command = Command((str(build("unruly.c", "-O1", "-pthread")), "t"), b"", seconds=20)
    told = pytest.raises(KernmodelError, match=said)
    with told, traced_run(command, lambda what: None, "counting") as (program, _, _):
        program.timed_out = timed_out
        os.kill(program.process, signal.SIGKILL)
        os.waitid(os.P_PID, program.process, os.WEXITED | os.WNOWAIT)
        program.map_memory(1 << 20, 4096)


def test_processes_count_together(build):
    function, counted = count(build("unruly.c", "-O1", "-pthread"), "work", "f")
    check_flow(function, counted)
    assert counted.calls == 2
    assert max(counted.blocks.values()) == 1500


def test_places_that_only_running_shows_become_blocks(build):
    program = build("unruly.c", "-O1", "-pthread", "-fno-gcse")
    function, counted = count(program, "interpret", "g")
    assert counted.calls == 1
    known = find_function(program, "interpret")
    assert len(function.blocks) >= len(known.blocks)
    assert sum(counted.blocks[b.address] for b in function.blocks if b.ending == "indirect") == 7


def test_places_that_no_table_names_are_counted(build):
    function, counted = count(build("unruly.c", "-O2", "-pthread"), "interpret", "g", method="re-encoded")
    ends = {block.ending: counted.blocks[block.address] for block in function.blocks if block.ending == "returns"}
    assert ends == {"returns": 1}
    assert sum(counted.blocks[b.address] for b in function.blocks if b.ending == "indirect") == 7


@pytest.mark.needs("valgrind")
def test_exceptions_are_counted_by_callgrind(build):
    _, counted = count(build("exceptions.cpp", "-O2", compiler="g++"), "passes")
    assert counted.method == "callgrind"
    assert counted.calls == 9


def test_functions_of_shared_libraries_are_counted(build):
    library = build("shared.c", "-O1", "-shared", "-fPIC")
    program = build("user.c", str(library))
    function = find_function(library, "over_three")
    _, counted = count_occurrences(function, Command((str(program),)))
    assert counted.calls == 50
    assert max(counted.blocks.values()) == 5000
    check_flow(function, counted)


def test_nothing_is_left_running(build):
    program = build("unruly.c", "-O1", "-pthread")
    for what in "tfxl":
        with suppress(InputError):
            counted_run(find_function(program, "work"), Command((str(program), what), seconds=0.5))
        assert not _running(program)


def test_input_is_given_to_each_run(build):
    _, counted = count(build("unruly.c", "-O1", "-pthread"), "work", "i", standard_input=b"300\n")
    assert max(counted.blocks.values()) == 300


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("s", "was ended by SIGABRT"),
        ("e", "ended with status 3"),
        ("r", "is not deterministic: two runs differ"),
    ],
)
def test_programs_that_cannot_be_counted_are_refused(build, argument, message):
    with pytest.raises(InputError, match=message):
        count(build("unruly.c", "-O1", "-pthread"), "work", argument)


@pytest.mark.thorough
def test_a_program_without_an_end_is_stopped(build):
    program = build("unruly.c", "-O1", "-pthread")
    with pytest.raises(InputError, match=r"did not end within 1 s; .*--seconds"):
        count_occurrences(find_function(program, "work"), Command((str(program), "l"), seconds=0.7))
    with pytest.raises(InputError, match="while it was counted"):
        counted_run(find_function(program, "work"), Command((str(program), "l"), seconds=0.7))
    assert not _running(program)


def _running(program):
    return [one for one in Path("/proc").glob("[0-9]*/cmdline") if str(program).encode() in _text(one)]


def _text(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(("name", "argument"), [("reads_itself", "c"), ("changes_itself", "m")])
def test_code_that_reads_or_changes_itself_is_refused_or_counted_by_callgrind(build, name, argument):
    program = build("unruly.c", "-O1", "-pthread")
    with pytest.raises(InputError, match=r"ends with (status|signal) \d+ when the function is counted, and well"):
        count(program, name, argument, method="re-encoded")
    if shutil.which("valgrind"):
        _, counted = count(program, name, argument)
        assert (counted.method, counted.calls) == ("callgrind", {"c": 1, "m": 2}[argument])


def test_data_inside_code_stay_as_they_are(build):
    function, counted = count(build("unruly.c", "-O1", "-pthread"), "holds_data", "d", method="re-encoded")
    assert [note.code for note in function.notes] == ["data-in-code"]
    assert max(counted.blocks.values()) == 40


def test_a_program_that_replaces_itself_is_said_to(build):
    program = build("unruly.c", "-O1", "-pthread")
    counted = occurrences_of(counted_run(find_function(program, "work"), Command((str(program), "x"))))
    assert max(counted.blocks.values()) == 10
    assert [note.code for note in counted.notes] == ["replaced"]


def test_a_program_that_changes_the_function_is_said_to(build):
    """The copy does not change with it."""
    program = build("unruly.c", "-O1", "-pthread")
    counted = occurrences_of(counted_run(find_function(program, "work"), Command((str(program), "w"))))
    assert max(counted.blocks.values()) == 10
    assert [note.code for note in counted.notes] == ["changed-code"]


def test_a_program_that_fails_without_input_is_told_how_to_get_some(build):
    program = build("unruly.c", "-O1", "-pthread")
    with pytest.raises(InputError, match=r"ended with status 3.*give what it reads in a file \(< FILE\)"):
        count_occurrences(find_function(program, "work"), Command((str(program), "e")))


def test_what_does_not_run_is_refused(build, tmp_path):
    program = build("flow.c", "-O2")
    function = find_function(program, "complain")
    with pytest.raises(InputError, match="complain never ran"):
        count_occurrences(function, Command((str(program),)))
    with pytest.raises(InputError, match="is not what the program runs"):
        count_occurrences(function, Command(("/bin/true",)))
    with pytest.raises(InputError, match="cannot be run"):
        count_occurrences(function, Command((str(tmp_path / "absent"),)))
    (tmp_path / "data").write_text("none")
    with pytest.raises(InputError, match=r"Permission denied; make it executable \(chmod \+x"):
        count_occurrences(function, Command((str(tmp_path / "data"),)))
    with pytest.raises(InputError, match="is an object"):
        count_occurrences(find_function(build("flow.c", "-O2", "-c"), "gemm"), Command((str(program),)))


def test_callgrind_says_what_it_would_take(build, monkeypatch):
    program = build("flow.c", "-O2")
    with pytest.raises(InputError, match=r"would take about .* --count-limit"):
        count(program, "gemm", method="callgrind", limit=0.0)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match="valgrind is not installed"):
        count(program, "gemm", method="callgrind")


needs_qemu = pytest.mark.needs("qemu-aarch64", "qemu-x86_64")


@needs_qemu
@pytest.mark.parametrize(("source", "name", "argument"), [("flow.c", "fib", "7"), ("unruly.c", "interpret", "g")])
def test_qemu_counts_as_the_copy_does(build, source, name, argument):
    """The copy is exact on x86-64 only; the plugin is the same for all processors."""
    program = build(source, "-O2", "-pthread")
    known, emulated = count(program, name, argument, method="qemu")
    copied, native = count(program, name, argument)
    assert (emulated.method, native.method) == ("qemu", "re-encoded")
    assert emulated.blocks == native.blocks
    assert emulated.calls == native.calls
    if name != "interpret":  # which way its indirect jumps went is not counted in the copy
        assert emulated.edges == native.edges
        assert known.loops == copied.loops


@needs_qemu
def test_code_of_another_processor_is_counted_under_qemu(build):
    program = build("flow.c", "-O1", "-no-pie", compiler="aarch64-linux-gnu-gcc")
    function, counted = count(program, "gemm", "9")
    assert (counted.method, counted.calls, counted.runs) == ("qemu", 3, 2)
    headed = sorted(counted.blocks[loop.header] for loop in function.loops)
    assert headed == [3 * 9, 3 * 9**2, 3 * 9**3]
    unruly = build("unruly.c", "-O1", "-pthread", compiler="aarch64-linux-gnu-gcc")
    for several in "tf":
        with pytest.raises(InputError, match="in several threads or processes"):
            count(unruly, "work", several)


def test_what_keeps_qemu_from_counting_is_told(build, monkeypatch, tmp_path):
    program = build("flow.c", "-O1", compiler="aarch64-linux-gnu-gcc")
    with pytest.raises(ToolError, match=r"holds aarch64 code, which this host .* does not run.*--method qemu"):
        count(program, "gemm", method="re-encoded")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"takes qemu-aarch64, which is not installed; install qemu-user"):
        count(program, "gemm")
    (tmp_path / "qemu-aarch64").write_text("#!/bin/sh\necho nothing\n")
    (tmp_path / "qemu-aarch64").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="knows no option -plugin"):
        count(program, "gemm")


def test_without_ptrace_and_valgrind_the_packages_are_named(build, monkeypatch):
    program = build("flow.c", "-O2")

    def refused(*_, **__):
        raise NotTracedError("the system does not let a program be traced (ptrace)", todo="allow it")

    monkeypatch.setattr("kernmodel.binary.counting.counted_run", refused)
    with pytest.raises(ToolError, match="does not let a program be traced"):
        count(program, "gemm", method="re-encoded")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        ToolError, match=r"cannot be counted by ptrace here, and valgrind is not installed; install valg"
    ):
        count(program, "gemm")
