"""In-core analyses of code in every form, on one core or many, at one alignment or all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernmodel.code.listing import read_file
from kernmodel.code.select import select_without_source
from kernmodel.errors import AmbiguousLoopError, AssemblyError, InstructionTableError, UsageError
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.core import Settings, offset_of
from kernmodel.incore.tables import parameters as parameters_module
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.studies.predict.incore import (
    Target,
    alignments,
    analyse_many,
    analyse_one,
    dependencies,
    machine_target,
    named_targets,
    read_loops,
)
from kernmodel.studies.predict.request import Loop

HEX = "4801d84801c3ffc975f6"
LISTING = """
        .globl  f
        .type   f, @function
f:
.L1:    addsd   (%rdi,%rax), %xmm0
        addq    $8, %rax
        cmpq    %rsi, %rax
        jne     .L1
# LLVM-MCA-BEGIN inner
.L2:    addq    $1, %rdx
# LLVM-MCA-END inner
# LLVM-MCA-BEGIN outer
        imulq   %rdx, %rdx
# LLVM-MCA-END outer
        jne     .L2
        ret
        .size   f, .-f
"""
SKL = Target("SKL")


@pytest.fixture
def listing(tmp_path) -> str:
    path = tmp_path / "x.s"
    path.write_text(LISTING)
    return str(path)


@pytest.fixture
def object_file(tmp_path) -> str:
    path = tmp_path / "x.o"
    subprocess.run(["as", "-o", str(path), "-"], input=LISTING, text=True, check=True)
    return str(path)


def test_hex_digits_and_raw_bytes_are_the_same_block(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes.fromhex(HEX))
    by_hex = analyse_one(Loop(hex_digits=HEX), SKL, Settings())
    by_file = analyse_one(Loop(str(path), raw=True), SKL, Settings())
    assert by_hex.incore.prediction == by_file.incore.prediction == 2.0
    assert (by_hex.origin.file, by_file.origin.file) == (HEX, str(path))


def test_addresses_and_loop_numbers_of_an_object_mean_the_same(object_file):
    (by_number,) = read_loops(Loop(object_file, function="f", loop=1))
    (by_range,) = read_loops(Loop(object_file, addresses=(0, 0xE)))
    assert [i.form for i in by_number.instructions] == [i.form for i in by_range.instructions]


def test_a_marked_region_by_name(listing):
    (inner,) = read_loops(Loop(listing, region="inner"))
    (outer,) = read_loops(Loop(listing, region="outer"))
    assert ([i.mnemonic for i in inner.instructions], [i.mnemonic for i in outer.instructions]) == (["add"], ["imul"])
    with pytest.raises(AssemblyError, match="inner, outer"):
        read_loops(Loop(listing, region="middle"))


def test_all_loops(object_file):
    assert len(read_loops(Loop(object_file, all_loops=True, function="f"))) == 2
    with pytest.raises(AmbiguousLoopError):
        read_loops(Loop(object_file))


def test_a_loop_by_number_goes_before_marked_regions(listing):
    (loop,) = read_loops(Loop(listing, loop=1))
    assert loop.label == ".L1"


def test_an_answer_is_that_of_the_stages(object_file):
    mine = analyse_one(Loop(object_file, loop=1), SKL, Settings())
    loop = select_without_source(read_file(Path(object_file))[0], loop=1)
    parameters = load_parameters("SKL")
    assert mine.incore.prediction == analyse(loop, parameters, InstructionTable.open(parameters)).prediction
    assert mine.loop.instructions == loop.instructions


def test_many_cores_and_loops(object_file):
    source = Loop(object_file, all_loops=True)
    outcomes = list(analyse_many(source, named_targets("skl,HSW,skylake"), Settings()))
    assert [outcome.microarchitecture for outcome in outcomes] == ["SKL", "SKL", "HSW", "HSW"]
    assert all(outcome.answer is not None for outcome in outcomes)


def test_a_core_that_lacks_an_instruction_says_so_in_its_place():
    outcomes = list(analyse_many(Loop(hex_digits="62f1fd4858c0"), named_targets("skl,clx"), Settings()))
    assert outcomes[0].answer is None
    assert "AVX512F" in (outcomes[0].error or "")
    assert outcomes[1].answer is not None


def test_names_of_cores():
    every = [target.microarchitecture for target in named_targets("all")]
    assert list(dict.fromkeys(name.partition("@")[0] for name in every)) == list(known_microarchitectures())
    assert {name for name in every if name.startswith("V1")} == {"V1", "V1@128", "V1@256"}  # each length of vectors
    with pytest.raises(InstructionTableError):
        named_targets("skl,pentium")
    with pytest.raises(UsageError):
        named_targets(" , ")
    assert machine_target("clx").microarchitecture == "CLX"


def test_alignments_cover_every_offset_once():
    answer = analyse_one(Loop(hex_digits=HEX), SKL, Settings())
    groups = alignments(answer, Settings())
    assert sorted(offset for group in groups for offset in group.offsets) == list(range(64))
    assert [group.cycles for group in groups] == sorted({group.cycles for group in groups})


def test_the_graph_has_a_vertex_of_every_instruction_that_makes_a_value(listing):
    answer = analyse_one(Loop(listing, loop=1), SKL, Settings())
    assert {0, 1, 2} <= set(dependencies(answer, Settings()).owners)


@pytest.mark.parametrize(
    ("source", "where"),
    [
        (Loop(hex_digits="90", loop=1), "--hex"),
        (Loop("x", raw=True, function="f"), "--raw"),
        (Loop("x", addresses=(0, 4), function="f"), "--function and --range"),
        (Loop("x", all_loops=True, lines=(1, 2)), "--lines and --all-loops"),
    ],
)
def test_choices_that_do_not_fit_together(source, where):
    with pytest.raises(UsageError) as error:
        read_loops(source)
    assert error.value.where == where


def test_a_function_of_a_listing(listing):
    with pytest.raises(UsageError, match="object or executable"):
        read_loops(Loop(listing, function="f"))


def test_a_stripped_file_is_told_from_one_without_the_function(object_file, tmp_path):
    with pytest.raises(AssemblyError, match="choose one of: f"):
        read_loops(Loop(object_file, function="g"))
    stripped = tmp_path / "stripped.o"
    subprocess.run(["strip", "-o", str(stripped), object_file], check=True)
    with pytest.raises(AssemblyError, match=r"stripped.*--range"):
        read_loops(Loop(str(stripped), function="f"))
    assert read_loops(Loop(str(stripped), addresses=(0, 0xE)))


def test_long_code_is_shortened_in_titles():
    assert Loop(hex_digits="90 " * 40).title == "90" * 16 + "…"
    assert Loop("-").title == "standard input"
    assert Loop(str(Path("a.s"))).title == "a.s"


def test_the_file_of_a_core_is_taken_not_the_carried_core_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(parameters_module.__file__).parents[1] / "data"
    text = (data / "HSW.yml").read_text(encoding="utf-8")
    (tmp_path / "HSW.yml").write_text(text.replace("title: Intel Haswell", "title: mine"), encoding="utf-8")
    (tmp_path / "HSW.txt").write_bytes((data / "HSW.txt").read_bytes())
    monkeypatch.chdir(tmp_path)
    (target,) = named_targets("./HSW.yml")
    parameters = parameters_module.load_parameters(target.microarchitecture)
    assert parameters.title == "mine"
    assert Path(parameters.table) == tmp_path / "HSW.txt"
    assert [one.microarchitecture for one in named_targets("hsw,haswell")] == ["HSW"]


LOOP_F = "f: add %rax, %rbx\ndec %rcx\njne f\n.globl f\n.type f, @function\n.size f, .-f\n"


@pytest.mark.parametrize("aligned", [1, 16, 64])
def test_an_object_knows_its_addresses_modulo_the_alignment_of_its_section(tmp_path, aligned):
    path = tmp_path / "x.o"
    code = f".p2align {aligned.bit_length() - 1}\n{LOOP_F}"
    subprocess.run(["as", "-o", str(path), "-"], input=code, text=True, check=True)
    assert [loop.alignment for loop in read_loops(Loop(str(path), function="f", loop=1))] == [aligned]
    assert [loop.alignment for loop in read_loops(Loop(str(path), addresses=(0, 8)))] == [aligned]


@pytest.mark.parametrize("aligned", [1, 16, 64])
def test_a_listing_knows_its_addresses_modulo_what_its_directives_align(aligned):
    text = f".p2align {aligned.bit_length() - 1}\n.skip 40\n{LOOP_F}"
    (loop,) = read_loops(Loop(text))
    assert loop.alignment == aligned
    assert offset_of(loop, Settings()) == 40 % aligned


def test_code_of_other_sections_takes_no_alignment_from_a_loop(tmp_path):
    text = f'.section .text.unlikely,"ax"\nnop\n.text\n.p2align 4\n{LOOP_F}'
    path = tmp_path / "x.o"
    subprocess.run(["as", "-o", str(path), "-"], input=text, text=True, check=True)
    assert [read_loops(Loop(source, loop=1))[0].alignment for source in (text, str(path))] == [16, 16]


def test_linked_code_knows_its_addresses(tmp_path):
    path = tmp_path / "x.so"
    made = subprocess.run(
        ["gcc", "-nostdlib", "-shared", "-x", "assembler", "-", "-o", str(path)], input=LOOP_F, text=True, check=False
    )
    if made.returncode:
        pytest.skip("no linker")
    (loop,) = read_loops(Loop(str(path), function="f", loop=1))
    assert loop.alignment % 64 == 0


def test_bytes_know_nothing_of_their_address():
    (loop,) = read_loops(Loop(hex_digits=HEX))
    assert loop.alignment == 1
