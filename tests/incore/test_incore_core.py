"""Blocks on a core: extensions that it lacks, notion and offset, estimates, and many blocks at once."""

from __future__ import annotations

import os
import threading
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.blocks import block_of_bytes
from kernmodel.code.listing import read_listing
from kernmodel.code.select import select_without_source
from kernmodel.errors import InstructionTableError, ToolError
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.batch import BlockQuery, Cores, answer, answer_all, answers_shown, refused
from kernmodel.incore.core import Core, Settings, analyse_block, notion_of, offset_of
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.incore.tables.extensions import lacked_extensions
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import InstructionTable

ZMM_ADD = "62f1fd4858c0"
LOOP = "4801d84801c3ffc975f6"
UNKNOWN = "d9fb"  # fsincos: nobody has measured it for the tables


def block(code: str, address: int = 0):
    return block_of_bytes(bytes.fromhex(code), file="x", address=address)


def test_the_file_of_extensions_is_no_core():
    assert not {"EXTENSIONS", "extensions"} & set(known_microarchitectures())


@pytest.mark.parametrize("name", known_microarchitectures())
def test_every_carried_core_says_what_it_lacks(name):
    """A new core needs an alias that is LLVM's name for it, or a line of its own in extensions.yaml."""
    parameters = load_parameters(name)
    assert parameters.isa != "x86-64" or "FMA4" in lacked_extensions(parameters)


@pytest.mark.parametrize(
    ("core", "extension", "lacks"),
    [
        ("SKL", "AVX512F", True),
        ("SKX", "AVX512F", False),
        ("SKX", "AVX512_VNNI", True),
        ("CLX", "AVX512_VNNI", False),
        ("SNB", "FMA", True),
        ("HSW", "FMA", False),
        ("ZEN3", "AVX2", False),
        ("ZEN3", "AVX512F", True),
    ],
)
def test_extensions_of_cores(core, extension, lacks):
    assert (extension in lacked_extensions(load_parameters(core))) == lacks


def test_an_extension_that_the_core_lacks_is_an_error_that_names_it():
    core = Core.open("SKL", Settings())
    with pytest.raises(InstructionTableError, match="vaddpd zmm0,zmm0,zmm0 needs AVX512F, which Intel Skylake"):
        analyse_block(block(ZMM_ADD), core, Settings())
    assert analyse_block(block(ZMM_ADD), Core.open("CLX", Settings()), Settings()).prediction > 0


def test_tzcnt_runs_as_bsf_where_it_is_not_known():
    assert analyse_block(block("f3480fbcc1"), Core.open("SNB", Settings()), Settings()) is not None


@pytest.mark.parametrize(("code", "notion"), [(LOOP, "loop"), ("4801d8", "unrolled"), ("4801d8c3", "unrolled")])
def test_notion_by_the_last_instruction(code, notion):
    assert notion_of(block(code), Settings()) == notion
    assert notion_of(block(code), Settings(notion="loop")) == "loop"


def test_offset_is_the_address_of_bytes_and_objects_only():
    assert offset_of(block(LOOP, address=0x1013), Settings()) == 0x13
    assert offset_of(block(LOOP, address=0x1013), Settings(offset=70)) == 6
    listing = read_listing("nop\n.L1: addq %rax, %rbx\n jne .L1\n", "x.s")
    assert offset_of(select_without_source(listing), Settings()) == 0


def test_unrolled_code_is_not_said_to_be_a_loop():
    core = Core.open("SKL", Settings())
    codes = {note.code for note in analyse_block(block("4801d8"), core, Settings()).notes}
    assert "no-branch" not in codes
    assert analyse_block(block("4801d8"), core, Settings()).notion == "unrolled"


def test_nothing_is_estimated_unless_asked_for():
    plain = analyse_block(block(UNKNOWN), Core.open("SKL", Settings()), Settings())
    assert plain.uncertain == ("fsincos",)
    assert not any(row.source.startswith(ESTIMATED) for row in plain.rows)


def test_an_estimate_is_marked_and_warned_of():
    chosen = Settings(estimate=True)
    incore = analyse_block(block(UNKNOWN), Core.open("SKL", chosen), chosen)
    assert incore.uncertain == ()
    assert incore.rows[0].source.startswith("estimated as add r64,r64")
    (note,) = [note for note in incore.notes if note.code == "estimated-instruction"]
    assert note.kind == "warning"


def test_the_nearest_relative_is_taken():
    """SKL has no 512-bit forms, but narrower ones of the same mnemonic; one without a load is meant."""
    table = Core.open("SKL", Settings(estimate=True)).table
    row = table.lookup(block(ZMM_ADD).instructions[0])
    assert row is not None
    assert row.source.startswith("estimated as vaddpd ")
    assert row.form == "vaddpd zmm,zmm,zmm"
    assert row.uops == 1


def test_a_known_row_is_not_replaced():
    plain, estimating = (Core.open("SKL", Settings(estimate=e)).table for e in (False, True))
    instruction = block("4801d8").instructions[0]
    assert plain.lookup(instruction) == estimating.lookup(instruction)


def die(queries, show):
    """What a worker does that the system kills."""
    os._exit(1)


def reason_of(result):
    return result.reason


QUERIES = [
    BlockQuery(1, LOOP, "SKL"),
    BlockQuery(2, "", "SKL"),
    BlockQuery(3, "zz", "SKL"),
    BlockQuery(4, ZMM_ADD, "SKL"),
    BlockQuery(5, ZMM_ADD, "CLX"),
    BlockQuery(6, UNKNOWN, "SKL"),
    BlockQuery(7, None, "SKL", error="no CSV"),
    BlockQuery(8, LOOP, "PENTIUM"),
    BlockQuery(9, LOOP, "SKL", notion="unrolled", offset=7),
]


def test_a_batch_answers_every_line_in_order():
    results = list(answer_all(QUERIES, Settings(), jobs=1))
    assert [result.line for result in results] == list(range(1, 10))
    assert [result.error is None for result in results] == [True, False, False, False, True, True, False, False, True]
    assert results[0].binding == ("precedence",)
    assert results[0].components is not None
    assert results[0].components["precedence"] == results[0].prediction
    assert "AVX512F" in (results[3].error or "")
    assert (results[5].unknown, results[5].warnings) == (("fsincos",), ("unknown-instruction",))
    assert (results[6].error, results[8].notion) == ("no CSV", "unrolled")


@pytest.mark.thorough
def test_processes_answer_as_one_does():
    queries = [BlockQuery(n, code, "SKL") for n, code in enumerate([LOOP, "", "4801d8", UNKNOWN, "06"] * 60)]
    alone = list(answer_all(queries, Settings(), jobs=1))
    assert list(answer_all(iter(queries), Settings(), jobs=2)) == alone
    assert list(answers_shown(queries, Settings(), reason_of, jobs=2)) == [result.reason for result in alone]


@pytest.mark.thorough
def test_processes_that_are_no_copies_answer_the_same():
    """Beside another thread a process is not copied, as the copy might wait for what that thread held."""
    queries = [BlockQuery(n, code, "SKL") for n, code in enumerate([LOOP, "4801d8", UNKNOWN] * 80)]
    alone = list(answer_all(queries, Settings(), jobs=1))
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert list(answer_all(queries, Settings(), jobs=2)) == alone
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("read", [1, 500])
def test_a_batch_that_nobody_reads_to_its_end_is_given_up(read):
    endless = (BlockQuery(n, "90", "SKL") for n in range(10**9))
    results = answer_all(endless, Settings(), jobs=2)
    assert [result.line for result in islice(results, read)] == list(range(read))
    results.close()


def test_a_killed_process_is_told_from_a_bug(monkeypatch):
    monkeypatch.setattr("kernmodel.incore.answer.batch._answer_chunk", die)
    with pytest.raises(ToolError, match=r"killed.*--jobs 1"):
        list(answer_all([BlockQuery(n, "90", "SKL") for n in range(400)], Settings(), jobs=2))


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["4801d8", "4803064883c708", "c5fb1004c8", "c5fb58c1", "90"]), min_size=1, max_size=6))
def test_batch_is_single(parts):
    code = "".join(parts)
    chosen = Settings()
    single = analyse_block(block(code), Core.open("SKL", chosen), chosen)
    result = answer(BlockQuery(1, code, "skl"), Cores(chosen))
    assert (result.prediction, result.bound_by, result.reason) == (single.prediction, single.bound_by, single.reason)
    assert (result.core, result.notion) == ("SKL", single.notion)


def test_strict_refuses_warnings_only():
    fine, doubtful = answer_all([BlockQuery(1, LOOP, "SKL"), BlockQuery(2, UNKNOWN, "SKL")], Settings())
    assert refused(fine) == fine
    assert refused(doubtful).prediction is None
    assert "unknown-instruction" in (refused(doubtful).error or "")


def test_blocks_of_real_code_are_not_refused_for_extensions():
    """Blocks that were measured on a core, or compiled for it, need nothing that it lacks."""
    import csv

    path = Path(__file__).parents[2] / "../shared/data/bhive/dev.csv"
    if not path.is_file():
        pytest.skip("no ../shared/data")
    with path.open() as file:
        queries = [BlockQuery(n, row["hex"], row["arch"]) for n, row in enumerate(csv.DictReader(file), 2)]
    assert [result for result in answer_all(queries, Settings(), jobs=1) if result.error] == []


def test_what_is_kept_of_instructions_changes_no_answer():
    """Equal but for place, text and length; blocks that differ in one operand, flag, mask or displacement."""
    parameters = load_parameters("CLX")
    table, model = InstructionTable.open(parameters), modelled_core(parameters)
    analyser = Analyser(model).keep()
    blocks = (
        "4801d84801c3ffc975f7",  # add rax,rbx; add rbx,rax; dec ecx; jne
        "4801d84801d8ffc975f7",
        "488b044848894448084883c108",  # loads and stores over two displacements
        "488b044848894448104883c108",
        "62f1fd4858c262f1fd4a58c2",  # vaddpd zmm0,zmm0,zmm2 without and with mask k2
        "31c031db01d8",  # zero idioms
    )
    for digits in (*blocks, *blocks):
        loop = block_of_bytes(bytes.fromhex(digits), file="block")
        assert analyse(loop, parameters, table, model=analyser) == analyse(loop, parameters, table, model=model)
