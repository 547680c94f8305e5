"""Functions of binaries: against what compilers are known to make, and against a listing of the same code."""

import subprocess

import pytest

import kernmodel as km
from kernmodel.binary.find import find_function
from kernmodel.errors import AssemblyError, ToolError, UsageError
from kernmodel.isa import isa_of

GCC, ARM = "gcc", "aarch64-linux-gnu-gcc"


def check_graph(function):
    """What holds of every control-flow graph."""
    starts = {block.address for block in function.blocks}
    assert function.entry in starts
    for block in function.blocks:
        assert set(block.successors) <= starts
        assert sum(item.length for item in block.instructions) == len(block.code)
        assert all(item.branch is None for item in block.instructions[:-1])
        if block.ending == "branches":
            assert block.successors[0] == block.end or len(block.successors) == 1
    for loop in function.loops:
        assert loop.header in loop.blocks <= starts
        if loop.parent is not None:
            assert any(loop.blocks < one.blocks for one in function.loops if one.header == loop.parent)


@pytest.mark.parametrize("compiler", [GCC, "clang", ARM])
@pytest.mark.parametrize("flags", [("-O1", "-g"), ("-O2", "-g", "-fno-pie", "-no-pie")])
def test_a_nest_of_three_loops_is_found_with_its_lines(build, compiler, flags):
    function = find_function(build("flow.c", *flags, compiler=compiler), "gemm")
    check_graph(function)
    assert max(loop.depth for loop in function.loops) == 3
    (inner,) = [loop for loop in function.inner_loops() if loop.depth == 3]
    lines = {line for address in inner.blocks for line in function.block(address).lines}
    assert {line.file for line in lines} == {"flow.c"}
    assert 13 in {line.line for line in lines}
    assert function.position_independent == ("-no-pie" not in flags)
    assert not function.notes


@pytest.mark.parametrize("compiler", [GCC, "clang", ARM])
@pytest.mark.parametrize("place", [("-fpie", "-pie"), ("-fno-pie", "-no-pie"), ("-c",)])
def test_jump_tables_are_read(build, compiler, place):
    if compiler == ARM and place == ("-c",):
        pytest.skip("objects of AArch64 have their tables told by no symbol")
    flags = (*place, "-O2", "--param=case-values-threshold=5") if compiler != "clang" else (*place, "-O2")
    function = find_function(build("flow.c", *flags, compiler=compiler), "choose")
    check_graph(function)
    (jump,) = [block for block in function.blocks if block.ending == "indirect"]
    assert len(jump.successors) >= 7
    assert not function.notes


def test_a_cold_part_belongs_to_its_function(build):
    function = find_function(build("flow.c", "-O2"), "guarded")
    check_graph(function)
    assert [one.name for one in function.ranges] == ["guarded", "guarded.cold"]
    calls = {block.leads_to for block in function.blocks if block.ending == "calls"}
    assert calls == {"complain"}
    assert [one.end - one.first > 0 for one in function.ranges] == [True, True]


def test_blocks_cover_what_objdump_lists(build):
    program = build("flow.c", "-O2", "-g")
    for name in ("gemm", "choose", "fib", "main"):
        function = find_function(program, name)
        listed = subprocess.run(
            ["objdump", "-d", f"--disassemble={name}", "-w", "--no-show-raw-insn", str(program)],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        addresses = {int(line.split(":")[0], 16) for line in listed.splitlines() if line.startswith("    ")}
        own = {item.address for block in function.blocks for item in block.instructions}
        padding = addresses - own
        assert own <= addresses
        texts = [line for line in listed.splitlines() if any(line.strip().startswith(f"{one:x}:") for one in padding)]
        assert all("nop" in text or "xchg" in text or "data16" in text for text in texts)


def test_a_stripped_file_is_read_by_range(build, tmp_path):
    program = build("flow.c", "-O2")
    whole = find_function(program, "gemm")
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-o", str(stripped), str(program)], check=True)
    with pytest.raises(AssemblyError, match="has no function 'gemm'"):
        find_function(stripped, "gemm")
    first, end = whole.ranges[0].first, whole.ranges[0].end
    by_range = find_function(stripped, addresses=(first, end))
    assert [(one.address, one.code, one.successors) for one in by_range.blocks] == [
        (one.address, one.code, one.successors) for one in whole.blocks
    ]
    assert by_range.loops == whole.loops
    with pytest.raises(AssemblyError, match="is no range of its code"):
        find_function(stripped, addresses=(1, 2))


def test_an_unknown_name_names_the_nearest(build):
    with pytest.raises(AssemblyError, match="the nearest are: gemm"):
        find_function(build("flow.c", "-O2"), "gem")
    own = "choose, complain, fib, gemm, guarded, main"
    with pytest.raises(AssemblyError, match=rf"has no function '_start_'; it has {own}; a static function"):
        find_function(build("flow.c", "-O2"), "_start_")
    with pytest.raises(UsageError, match=rf"choose one with --function: {own}$"):
        find_function(build("flow.c", "-O2"))


def test_code_of_another_processor_is_refused_where_a_core_is_named(build):
    """A prediction of Neoverse V1 for x86-64 code was an answer without cycles, traffic of its caches a number."""
    program = build("flow.c", "-O2")
    for ask in (
        lambda: km.binary_run([str(program), "9"], "gemm", uarch="V1"),
        lambda: km.binary_run([str(program), "9"], "gemm", machine="graviton3"),
        lambda: km.binary_residency([str(program), "9"], "gemm", machine="graviton3"),
        lambda: km.binary_blocks(str(program), "gemm", uarch="V1"),
    ):
        with pytest.raises(AssemblyError, match=r"X86-64 code, not AArch64"):
            ask()
    with pytest.raises(ToolError, match=r"Neoverse V1 executes aarch64 code, which this host .* does not run"):
        km.binary_suite("suite.yml", "out", uarch="V1")


def test_the_core_says_how_long_vectors_of_sve_are(build):
    program = build("flow.c", "-O3", "-march=armv8.2-a+sve", compiler=ARM)
    with pytest.raises(AssemblyError, match=r"belongs to SVE, whose vector length is not known; .* --uarch A64FX@512"):
        km.binary_blocks(str(program), "gemm")
    function = km.binary_blocks(str(program), "gemm", uarch="A64FX@512").answer
    assert function.isa == "aarch64-sve512"
    assert function.loops
    assert isa_of(function.isa).emulated_cpu == "max,sve-default-vector-length=64"


def test_what_is_no_binary_is_refused(tmp_path):
    for name, content, said in (("a.c", b"int main;", "is no ELF file"), ("a.sh", b"#!/bin/sh\n", "is a script")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(AssemblyError, match=said):
            find_function(path, "main")
    with pytest.raises(AssemblyError, match="cannot be read"):
        find_function(tmp_path / "absent", "main")


@pytest.mark.parametrize("cut", [64, 1000, 5000])
def test_a_cut_off_file_is_reported(build, tmp_path, cut):
    path = tmp_path / "cut"
    path.write_bytes(build("flow.c", "-O2").read_bytes()[:cut])
    with pytest.raises(AssemblyError):
        find_function(path, "gemm")
