"""The front end of the Zen cores: each component by hand, laws, and the nops that InstLatx64 read."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parameter_files import with_figures

from kernmodel.code.blocks import block_of_bytes
from kernmodel.errors import InstructionTableError
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.batch import BlockQuery, Cores, answer
from kernmodel.incore.answer.components import bounds_of, row_of
from kernmodel.incore.answer.explain import components_of, explain
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.engine.model import Switches
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import Component, InCore, Reason, Why
from kernmodel.incore.tables.core_parameters import OpCacheParameters, front_end_parameters, op_cache_parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.report.text.reasons import reason_text

SHARED = Path(__file__).parents[2] / "../shared/data"
ZENS = ("ZEN", "ZEN2", "ZEN3", "ZEN4")
NOP = "90"
MOVE = "4889d8"  # takes a slot and no port; nops are fused on Zen 4
LONG_NOP = "660f1f840000000000"  # 9 bytes
CMP_JNE = "4839d8" + "75%02x"
DIV = "48f7f1"  # two macro-ops, one instruction
ADD_256 = "c5f558c2"  # two macro-ops on Zen, one instruction
PARTS = ("4801d8", "4803064883c708", "c5fb1004c8", ADD_256, "c5fb110c0f", NOP, LONG_NOP, DIV, "f20f51c1", "50", "8b00")
WIDTHS = ("issue_instructions", "fetch_bytes", "decoders", "op_cache_width", "op_cache_entries")


@cache
def core(name: str) -> Core:
    return Core.open(name, Settings())


def loop_of(code: str) -> str:
    """The code with a fused compare and branch back to its start where that is near enough, else to somewhere."""
    length = len(code) // 2 + 5
    return code + CMP_JNE % (256 - min(length, 128))


def incore_of(code: str, name: str, **changes: object) -> InCore:
    loop = block_of_bytes(bytes.fromhex(code), file="x")
    return analyse_block(loop, core(name), replace(Settings(), **changes))  # type: ignore[arg-type]


def part(incore: InCore, name: str) -> Component | None:
    return next((component for component in incore.components if component.name == name), None)


def cycles(incore: InCore) -> dict[str, float]:
    return {component.name: component.cycles for component in incore.components if component.applies}


codes = st.lists(st.sampled_from(PARTS), min_size=1, max_size=7).map("".join)
blocks = st.one_of(codes, codes.map(loop_of))


# --- each component by hand


@pytest.mark.parametrize("name", ZENS)
def test_straight_line_code_is_decoded_four_instructions_a_cycle(name: str) -> None:
    """AnandTech, WikiChip: four decoders on Zen to Zen 3; Chips and Cheese: on Zen 4."""
    incore = incore_of(MOVE * 10, name, notion="unrolled")
    assert (incore.prediction, incore.bound_by) == (10 / 4, "front end")
    assert reason_text(incore.reason) == "the decoders take 2.50 cycles per pass for 10 instructions or fused pairs"
    assert part(incore, "DSB") is None


@pytest.mark.parametrize(("name", "width"), [("ZEN", 16), ("ZEN2", 32), ("ZEN4", 32)])
def test_long_instructions_wait_for_the_fetch(name: str, width: int) -> None:
    """Fog: mostly around 16 bytes a cycle on Zen; windows of 32 bytes on Zen 2 and Zen 4."""
    incore = incore_of(LONG_NOP * 4, name, notion="unrolled")
    assert incore.prediction == 36 / width
    took = f"{36 / width:.2f}"
    assert reason_text(incore.reason) == f"fetching 4 instructions in 36 bytes takes {took} cycles per pass"


def test_nothing_is_said_of_a_fetch_that_is_not_published() -> None:
    incore = incore_of(LONG_NOP * 4, "ZEN3", notion="unrolled")
    assert part(incore, "predecode") is None
    assert incore.prediction == 1


@pytest.mark.parametrize(("name", "width"), [("ZEN2", 8), ("ZEN4", 9)])
def test_loops_come_from_the_op_cache(name: str, width: int) -> None:
    """AnandTech: 8 per cycle on Zen 2, 9 on Zen 4; fetch and decoders are idle."""
    incore = incore_of(loop_of(MOVE * 17), name)
    took = 18 / width
    assert part(incore, "DSB") == Component("DSB", took, True, Reason(Why.OP_CACHE, took, {"entries": 18}))
    decode = part(incore, "decode")
    assert decode == Component("decode", 18 / 4, False, Reason(Why.IDLE, names=("DSB",)))


def test_on_zen_4_a_pass_takes_whole_cycles_of_the_op_cache() -> None:
    """Measured: ten to twelve macro-ops, eliminated moves and a fused pair, take 2.00 cycles, not 1.67 and 1.83."""
    found = part(incore_of(loop_of("4889d8" * 9), "ZEN4"), "DSB")
    assert found == Component("DSB", 2.0, True, Reason(Why.OP_CACHE, 2.0, {"entries": 10}))


@pytest.mark.parametrize(("offset", "took"), [(0, 1.0), (8, 1.0), (40, 1.0), (44, 2.0), (50, 2.0), (62, 2.0)])
def test_on_zen_4_a_pass_takes_a_cycle_for_each_line_of_code(offset: int, took: float) -> None:
    """Measured: a copy loop of 22 bytes takes 1.00 cycles at the addresses 0 to 40 and 2.00 at 44 to 62."""
    copy = "c5fb1004c7c5fb1104c648ffc04839d075ee"  # of 18 bytes; a nop of four makes 22
    incore = incore_of("0f1f4000" + copy, "ZEN4", notion="loop", offset=offset)
    assert incore.prediction == took
    if took > 1:
        assert reason_text(incore.reason) == (
            "the loop's 22 bytes lie in 2 lines of code, of which the op cache delivers one a cycle: "
            "2.00 cycles per pass"
        )


@pytest.mark.parametrize("name", ["ZEN"])
def test_the_op_cache_has_no_bound_where_its_width_is_not_published(name: str) -> None:
    incore = incore_of(loop_of(NOP * 17), name)
    assert part(incore, "DSB") is None
    assert incore.prediction < 18 / 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "nops", "holds"), [("ZEN", 2047, True), ("ZEN", 2048, False), ("ZEN2", 4095, True), ("ZEN2", 4096, False)]
)
def test_a_loop_that_the_op_cache_cannot_hold_is_decoded(name: str, nops: int, holds: bool) -> None:
    """2,048 entries on Zen, 4,096 on Zen 2; the fused pair takes one."""
    incore = incore_of(loop_of(NOP * nops), name, notion="loop")
    assert ("decode" not in cycles(incore)) == holds
    assert incore.prediction == (nops + 1) / (5 if holds else 4)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "holds"), [("ZEN2", True), ("ZEN3", False)])
def test_what_the_op_cache_counts(name: str, holds: bool) -> None:
    """The 4,096 entries are instructions on Zen 2 (perfect), macro-ops on Zen 3 (Software Optimization Guide)."""
    incore = incore_of(loop_of(DIV * 2100), name, notion="loop")
    assert ("decode" not in cycles(incore)) == holds


@pytest.mark.parametrize(
    ("name", "code", "issue"),
    [
        ("ZEN", NOP * 10, 11 / 5),  # Fog: five instructions a cycle, a fused pair taken as one
        ("ZEN2", NOP * 10, 11 / 5),  # perfect: the window of dispatch has five instructions
        ("ZEN3", NOP * 10, 11 / 6),
        ("ZEN4", MOVE * 10, 11 / 6),
        ("ZEN", ADD_256 * 11, 23 / 6),  # Fog: and six µops
        ("ZEN2", ADD_256 * 11, 12 / 5),
        ("ZEN2", (NOP * 3 + DIV) * 3 + NOP * 2, 18 / 6),  # perfect: six macro-ops of four singles and a double
    ],
)
def test_dispatch_takes_six_macro_ops_and_on_the_first_two_five_instructions(
    name: str, code: str, issue: float
) -> None:
    assert cycles(incore_of(loop_of(code), name))["issue"] == pytest.approx(issue)


def test_the_sentence_tells_which_of_the_two_limits_of_dispatch_holds() -> None:
    by_instructions, by_uops = incore_of(loop_of(NOP * 9), "ZEN"), incore_of(loop_of(NOP * 12), "ZEN3")
    assert reason_text(by_instructions.reason) == (
        "the renamer issues 10 µops, 6 a cycle, in 2.00 cycles per pass, as it takes 5 instructions a cycle"
    )
    assert reason_text(by_uops.reason) == "the renamer issues 13 µops, 6 a cycle, in 2.17 cycles per pass"


@pytest.mark.parametrize("name", ZENS)
def test_unknown_instructions_take_a_place_too(name: str) -> None:
    """They count as one in every part, as they did when only renaming was known."""
    loop = block_of_bytes(bytes.fromhex(MOVE * 6), file="x")

    class Empty:
        def lookup(self, instruction: object) -> None:
            return None

    incore = analyse(loop, core(name).parameters, Empty(), notion="unrolled")
    assert cycles(incore)["decode"] == 6 / 4
    assert cycles(incore)["issue"] == 6 / (5 if name in ("ZEN", "ZEN2") else 6)


def test_without_front_end_only_dispatch_remains() -> None:
    parameters, table = core("ZEN4").parameters, core("ZEN4").table
    instructions = block_of_bytes(bytes.fromhex(MOVE * 6), file="x").instructions
    rows = [row_of(instruction, table) for instruction in instructions]
    model = modelled_core(parameters, switches=Switches(front_end=False))
    assert bounds_of(instructions, rows, model, "unrolled", 0).prediction == 1


# --- figures


@pytest.mark.parametrize("name", ZENS)
def test_the_files_describe_a_front_end_of_this_kind_only(name: str) -> None:
    parameters = load_parameters(name)
    assert front_end_parameters(parameters) is None
    found = op_cache_parameters(parameters)
    assert found is not None
    assert (found.decoders, found.issue_width) == (4, 6)
    assert op_cache_parameters(load_parameters("SKL")) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("op cache entries", None),
        ("op cache holds macro-ops", 1),
        ("decoded instructions per cycle", 0),
        ("op cache width", "eight"),
        ("fetched bytes per cycle", -16),
    ],
)
def test_a_figure_that_is_missing_or_wrong_is_named(key: str, value: object) -> None:
    whole = load_parameters("ZEN2")
    with pytest.raises(InstructionTableError, match=key):
        with_figures(whole, {key: value})


# --- laws


@given(blocks, st.sampled_from(ZENS), st.sampled_from(["auto", "loop", "unrolled"]), st.integers(0, 63))
def test_batch_is_single(code: str, name: str, notion: str, offset: int) -> None:
    chosen = replace(Settings(), notion=notion, offset=offset)  # type: ignore[arg-type]
    single = analyse_block(block_of_bytes(bytes.fromhex(code), file="x"), core(name), chosen)
    result = answer(BlockQuery(1, code, name), Cores(chosen))
    assert (result.prediction, result.bound_by, result.reason) == (single.prediction, single.bound_by, single.reason)
    assert result.components == {each.name: each.cycles for each in components_of(single) if each.applies}


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(blocks, st.sampled_from(ZENS), st.sampled_from(["loop", "unrolled"]))
def test_no_prediction_rises_when_a_component_is_idealised(code: str, name: str, notion: str) -> None:
    incore = incore_of(code, name, notion=notion)
    assert incore.prediction == max(cycles(incore).values())
    for item in explain(incore, core(name)).idealised:
        assert item.prediction <= incore.prediction
        assert item.speed_up >= 1


@given(blocks, st.sampled_from(ZENS), st.sampled_from(["loop", "unrolled"]), st.sampled_from(WIDTHS))
@example("4801d84801d84839d875f5", "ZEN", "unrolled", "decoders")  # pipeline: 2.08 with four decoders, 2.10 with 7
@example("4801d8c5fb1004c8c5fb1004c8c5f558c2c5f558c2c5fb110c0f90", "ZEN4", "loop", "fetch_bytes")  # a nop
def test_no_bound_rises_with_a_wider_front_end(code: str, name: str, notion: str, key: str) -> None:
    """The simulated pipeline may: which of the waiting operations are there decides which ports they are given, and so
    how often one is in the way of a chain (the anomalies of list scheduling: R. L. Graham, SIAM J. Appl. Math. 17,
    1969)."""
    loop, parameters, table = block_of_bytes(bytes.fromhex(code), file="x"), core(name).parameters, core(name).table
    front = parameters.front_end
    assert isinstance(front, OpCacheParameters)
    now = getattr(front, key)
    if now is None:
        return
    wider = replace(parameters, front_end=replace(front, **{key: now + 3}))
    before = analyse(loop, parameters, table, notion=notion)  # type: ignore[arg-type]
    after = analyse(loop, wider, table, notion=notion)  # type: ignore[arg-type]
    known = cycles(before)
    assert all(bound <= known[part] for part, bound in cycles(after).items() if part != "pipeline")
    if not any(instruction.mnemonic == "nop" for instruction in loop.instructions):  # which the front end fuses
        without = replace(parameters, front_end=None)
        assert analyse(loop, without, table, notion=notion).prediction <= before.prediction  # type: ignore[arg-type]


@given(codes, st.sampled_from(ZENS), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_copies_of_straight_line_code_take_as_long_as_the_code_again_and_again(
    code: str, name: str, copies: int
) -> None:
    once, often = incore_of(code, name, notion="unrolled"), incore_of(code * copies, name, notion="unrolled")
    for component in ("predecode", "decode", "issue"):
        assert cycles(often).get(component, 0.0) == pytest.approx(copies * cycles(once).get(component, 0.0))


@given(codes, st.sampled_from(["ZEN", "ZEN2"]))  # on the others lines of code count
@settings(max_examples=40, deadline=None)
def test_a_loop_from_the_op_cache_is_no_slower_than_its_straight_line_code(code: str, name: str) -> None:
    def front(notion: str) -> float:
        parts = cycles(incore_of(loop_of(code), name, notion=notion))
        return max(parts.get(part, 0.0) for part in ("predecode", "decode", "DSB", "issue"))

    assert front("loop") <= front("unrolled")


# --- readings


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")
def test_nops_take_as_long_as_instlatx64_read_on_a_ryzen_7_1800x() -> None:
    """0.20 to 0.24 cycles for nops of one to four bytes: five a cycle, and more than 1/6, which six macro-ops allow.

    Nops of more bytes are left out: no public document tells why most of 5 to 7 bytes read 0.34 to 0.46 cycles, and
    longer ones up to 1.42. The readings of Zen 4 (0.01 cycles) say nothing.
    """
    with (SHARED / "latency-throughput" / "zen1.csv").open(encoding="utf-8") as file:
        next(file)
        readings = {row["form"]: float(row["reciprocal_throughput_cycles"] or 0) for row in csv.DictReader(file)}
    for form, code in (("NOP", "90"), ("0x66 NOP", "6690"), ("2x 0x66 NOP", "666690"), ("3x 0x66 NOP", "66666690")):
        incore = incore_of(loop_of(code * 499), "ZEN", notion="loop")
        assert incore.prediction / 500 == pytest.approx(1 / 5)
        assert 1 / 5 <= readings[form] <= 1.2 / 5
