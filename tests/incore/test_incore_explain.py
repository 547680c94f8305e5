"""What the explanation reads off an answer."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.answer.explain import binding_components, components_of, explain
from kernmodel.incore.answer.mechanisms import MechanismCost
from kernmodel.incore.answer.single_rules import RULES
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import Component, InCore, Reason, Why
from kernmodel.report.text.reasons import reason_text

TRIAD = "c5fb10040ac5fb590c0ac5fb110c0f4883c2084839c275e8"  # load, multiply with a load, store, count


def incore_of(code: str, core: str = "SKL", **changes) -> InCore:
    settings = Settings()
    incore = analyse_block(block_of_bytes(bytes.fromhex(code), file="x"), Core.open(core, settings), settings)
    return dataclasses.replace(incore, **changes)


def with_components(*parts: Component) -> InCore:
    prediction = max((part.cycles for part in parts if part.applies), default=0.0)
    return incore_of(TRIAD, components=parts, prediction=prediction)


def test_ports_and_precedence_stand_in_for_components():
    incore = incore_of(TRIAD, components=())
    assert [part.name for part in components_of(incore)] == ["ports", "precedence"]
    assert binding_components(incore) == ("ports",)


def test_what_binds_and_what_comes_next():
    explanation = explain(
        with_components(
            Component("decode", 9.0, False, None),
            Component("DSB", 2.0, True, None),
            Component("ports", 3.0, True, None),
            Component("precedence", 3.0, True, None),
        )
    )
    assert explanation.binding == ("ports", "precedence")
    assert (explanation.next_bound, explanation.next_cycles) == (("DSB",), 2.0)
    speed_ups = {item.component: item.speed_up for item in explanation.idealised}
    assert speed_ups == {"DSB": 1.0, "ports": 1.0, "precedence": 1.0}


def test_idealising_the_only_binding_component_leads_to_the_next():
    explanation = explain(with_components(Component("issue", 2.0, True, None), Component("ports", 3.0, True, None)))
    best = explanation.idealised[0]
    assert (best.component, best.prediction, best.speed_up, best.then_binding) == ("ports", 2.0, 1.5, ("issue",))


def test_the_pipeline_does_not_stay_when_a_part_of_it_is_idealised():
    parts = (
        Component("ports", 3.0, True, None),
        Component("issue", 2.0, True, None),
        Component("pipeline", 3.5, True, None),
    )
    explanation = explain(with_components(*parts))
    assert explanation.binding == ("pipeline",)
    predictions = {item.component: item.prediction for item in explanation.idealised}
    assert predictions == {"ports": 2.0, "issue": 3.0, "pipeline": 3.0}
    assert explanation.next_bound == ("ports",)


def test_a_block_of_which_nothing_takes_time():
    explanation = explain(with_components(Component("ports", 0.0, True, None)))
    assert (explanation.binding, explanation.next_bound) == ((), ())
    assert explanation.idealised[0].speed_up == 1.0
    assert explain(with_components(Component("ports", 1.0, True, None))).idealised[0].speed_up == float("inf")


def test_the_crowd_fills_the_binding_ports():
    incore = incore_of(TRIAD)
    explanation = explain(incore)
    assert sum(item.share for item in explanation.crowd) == pytest.approx(1.0)
    assert {incore.rows[item.row].instruction.mnemonic for item in explanation.crowd} <= {"vmovsd", "vmulsd", "jne"}


def test_equal_shares_fill_the_binding_ports_too():
    settings = Settings(port_model="even")
    core = Core.open("SKL", settings)
    incore = analyse_block(block_of_bytes(bytes.fromhex(TRIAD), file="x"), core, settings)
    assert sum(item.share for item in explain(incore).crowd) == pytest.approx(1.0)


@pytest.mark.parametrize("code", ["4801d84801c3ffc975f6", "480faf c04801d875f7".replace(" ", ""), TRIAD])
def test_latencies_of_the_chain_add_up_to_its_length(code):
    incore = incore_of(code)
    explanation = explain(incore)
    assert incore.lcd is not None
    latency = sum(step.latency for step in explanation.chain)
    assert latency / explanation.chain_passes == pytest.approx(incore.lcd.cycles)
    assert len(explanation.chain) == len(incore.lcd.members)


COMPONENTS = st.lists(
    st.builds(
        Component,
        st.sampled_from(["predecode", "decode", "DSB", "issue", "ports", "precedence", "pipeline"]),
        st.integers(0, 40).map(lambda quarters: quarters / 4),
        st.booleans(),
        st.just(""),
    ),
    max_size=7,
    unique_by=lambda part: part.name,
)


@given(COMPONENTS)
def test_a_prediction_never_rises_when_a_component_is_idealised(parts):
    incore = with_components(*parts)
    explanation = explain(incore)
    applied = [part for part in explanation.components if part.applies]
    assert {item.component for item in explanation.idealised} == {part.name for part in applied}
    assert all(item.prediction <= incore.prediction and item.speed_up >= 1 for item in explanation.idealised)
    assert explanation.next_cycles < incore.prediction or not explanation.next_bound


# --- single mechanisms of a core

MULTIPLY_AND_ADD = "c5fd280cc6c4e2eda80cc7c5fd290cc24883c0044839c875e7"
ADDED_IN_MEMORY = "48014608488b5e0848ffc975f3"  # add [rsi+8],rax and a load of it
CHAIN_IN_MEMORY = "48894608488b46084801f848ffc975f0"  # store, load and add
TWELVE_PAIRS = "c5fd280407" + "c5fd59c1c5fd58c2" * 12 + "c5fd2904064883c0204839c8758d"
OFF_ITS_LINES = "c5fd104407f8c5fd58440708c5fd1104064883c0204839c875e6"


def mechanisms_of(code: str, core: str = "ZEN4", **changes) -> dict[Why, MechanismCost]:
    settings = Settings(**changes)
    opened = Core.open(core, settings)
    incore = analyse_block(block_of_bytes(bytes.fromhex(code), file="x"), opened, settings)
    found = explain(incore, opened, settings.places).mechanisms
    assert all(item.prediction + item.saved == pytest.approx(incore.prediction) for item in found)
    return {item.reason.why: item for item in reversed(found)}  # of several of a kind the most costly


def test_lines_of_code_cost_what_aligning_saves():
    assert Why.CODE_LINES not in mechanisms_of(MULTIPLY_AND_ADD, offset=0)
    cost = mechanisms_of(MULTIPLY_AND_ADD, offset=48)[Why.CODE_LINES]
    # such loops take 1.03 to 1.05 and 2.00
    assert (cost.prediction, cost.saved) == pytest.approx((1.04, 0.96), abs=0.02)
    assert cost.reason.figures["lines"] == 2


def test_chains_fill_the_schedulers_of_the_floating_point_pipes():
    cost = mechanisms_of(TWELVE_PAIRS)[Why.FULL_BUFFER]
    assert cost.reason.names == ("schedulers", *(f"FP{number}" for number in range(6)))
    assert cost.saved > 1
    assert mechanisms_of(TWELVE_PAIRS, "RWC")[Why.FULL_BUFFER].reason.names == ("schedulers",)


def test_memory_renaming_leaves_nothing_to_keep_in_a_register():
    saving = mechanisms_of(ADDED_IN_MEMORY)[Why.MEMORY_RENAMING]
    assert saving.saved < -5
    assert saving.reason.cycles == 0
    assert "nothing to gain" in reason_text(saving.reason)
    assert Why.MEMORY_RENAMING not in mechanisms_of(ADDED_IN_MEMORY, "ZEN2")


def test_a_chain_through_memory_is_a_cycle_longer_than_one_in_a_register():
    found = mechanisms_of(CHAIN_IN_MEMORY)
    assert found[Why.RELOADS].saved == found[Why.MEMORY_RENAMING].reason.cycles == 1.0
    assert "saves 1.00 cycles" in reason_text(found[Why.MEMORY_RENAMING].reason)


def test_stored_vectors_wait_for_third_ones_of_fused_additions():
    """Two vfmadd231pd of twelve chains and a store, six times; with vmulpd in their place none reads three vectors."""
    fused = (
        "c4c28db8c6c4c28db8cec57d113fc4c28db8d6c4c28db8dec57d117f20c4c28db8e6c4c28db8eec57d117f40c4c28db8f6c4c28db8fec57d"
        "117f60c4428db8c6c4428db8cec57d11bf80000000c4428db8d6c4428db8dec57d11bfa000000048ffc9759c"
    )
    cost = mechanisms_of(fused)[Why.THIRD_VECTORS]
    assert cost.prediction == pytest.approx(6.0, rel=0.01)
    assert cost.saved > 1.5
    assert cost.reason.users == ("vfmadd231pd",) * 12
    assert "12× vfmadd231pd" in reason_text(cost.reason)
    assert Why.THIRD_VECTORS not in mechanisms_of(fused, "SKL")
    products = fused.replace("c4c28db8", "c4c10d59").replace("c4428db8", "c4410d59")
    assert Why.THIRD_VECTORS not in mechanisms_of(products)


def test_ports_given_too_early_are_told_from_the_schedulers_that_they_fill():
    """xor, cmp of a byte, sete, add, inc, cmp and jne: free choice of ALUs saves the time, more entries hardly any."""
    found = mechanisms_of("31d2803c0e070f94c24801d048ffc14839cf75ec", "ZEN3", offset=0)
    assert found[Why.GIVEN_PORTS].prediction == pytest.approx(1.25, rel=0.01)
    assert found[Why.GIVEN_PORTS].saved > 0.2
    assert Why.FULL_BUFFER not in found or found[Why.FULL_BUFFER].saved < 0.1


@pytest.mark.parametrize("core", ["ZEN4", "RWC"])
def test_accesses_across_lines_cost_what_aligned_arrays_save(core):
    cost = mechanisms_of(OFF_ITS_LINES, core)[Why.ACROSS_LINES]
    assert cost.prediction == 1.0
    assert cost.reason.users == ("vmovupd", "vaddpd")


# --- rules of cores, each by a loop that it alone holds back

RULED = (
    (
        "ZEN4",
        "loads at dispatch",
        "c5f81002c5f8104a10c5f8105220c5f8105a304d89da4d89da4d89da4d89da4d89da4d89da4d89da4d89da48ffc975d0",
        0.17,
    ),  # four vector loads of 13 slots
    (
        "ZEN3",
        "address generators",
        "c5f81002c5f8104a10c5f8105220c5f8105a30c5f8106240c5f8106a50c5f8107260c5f8107a704c8b124c8b5a084c8b62104c8b6a1848ffc975c5",
        1.00,
    ),  # 8 vector loads and 4 general-purpose ones
    ("ZEN4", "stores apart", "4889024889828000000048ffc975f1", 1.00),  # two stores to two lines
    ("RWC", "stores apart", "4889024889424048898280000000488982c000000048ffc975e6", 2.00),  # four stores to four lines
    (
        "ZEN4",
        "address generators",
        "62f17c48112e62f17c48100262f17c48104a0148ffc975e8",
        0.49,
    ),  # store and loads of 512 bits
    (
        "ZEN4",
        "generators in turn",
        "c5fc10440608c5fc10440628c5fc10440648c5fc104406684883e8804839c275df",
        1.07,
    ),  # four loads of a stream, of which every other one crosses lines
    (
        "ZEN4",
        "long loads",
        "62f17c4810040262f17c48104c020162f17c481054020262f17c48105c020362f17c481064020462f17c48106c020562f17c481074020662f17c48107c020748050002000048ffc975b6",
        0.50,
    ),  # 8 loads of 512 bits, which move
    ("RWC", "banks", "4c8b024c8b0a4c8b1248ffc975f2", 0.50),  # three loads of one address
    (
        "ZEN3",
        "one result",
        "c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d7c4c179fec7c4c10959d748ffc975ab",
        2.08,
    ),  # a chain of vpaddd beside vmulpd
    (
        "ZEN4",
        "results between registers",
        "c5f97ec8c5f97ec94901f04901f148ffc975eb",
        0.77,
    ),  # two vmovd beside two additions
    (
        "ZEN4",
        "cycles as a whole",
        "c442aaf5cbc442aaf5cb4f8d0c1a4f8d0c1a4f8d0c1a4f8d0c1a48ffc975e1",
        0.75,
    ),  # two pext and four lea
    (
        "ZEN4",
        "behind late results",
        "c442aaf5cbc442aaf5cbc442aaf5cb4f8d0c1a4f8d0c1a4f8d0c1a4f8d0c1a4f8d0c1a4f8d0c1a4f8d0c1a48ffc975d0",
        1.00,
    ),  # three pext and seven lea
    (
        "ZEN4",
        "two a cycle",
        "c442a1f7cac442a1f7cac442aaf5cbc442aaf5cbc442a1f7ca4f8d0c1ac442aaf5cb4d89f748ffc975d6",
        2.00,
    ),  # three pext, three shlx and a lea
    (
        "ZEN4",
        "whole instructions",
        "0f9246404d89f74d89f74d89f70f9246404d89f74d89f74d89f70f9246404d89f74d89f74d89f748ffc975d4",
        0.33,
    ),  # three setc to memory, each with three moves
    ("ZEN4", "constants", "837e0805837e0805837e080548ffc975ef", 0.33),  # three cmp of memory and an immediate
    ("ZEN4", "fused pairs", "0f95c00f95c348ffc975f5", 1.00),  # two setne
    (
        "ZEN3",
        "lines in the queue",
        "0f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f80111100000f1f801111000048ffc90f8579ffffff",
        0.83,
    ),  # 18 nops in three lines
    ("ZEN4", "scaled index", "488b04c248ffc975f7", 1.00),  # a chain of loads
    ("SKL", "false dependency", "f3480fb8c348ffc975f6", 2.00),  # popcnt
    ("GLC", "blocked loads", "8906488b1e48ffc975f6", 12.00),  # a load of more than was stored
    (
        "GLC",
        "unlaminated",
        "c58dfe04c2c58dfe4cc240c58dfe94c280000000c58dfe9cc2c000000048ffc975de",
        0.33,
    ),  # four additions with indexed loads
    ("RWC", "adders", "c4c17d58c0c4c17d59c048ffc975f1", 1.00),  # a chain of addition and multiplication
    ("ZEN3", "domains", "c5f958c7c5f914c748ffc975f3", 2.00),  # a chain of addition and shuffle
    (
        "GLC",
        "closed port",
        "c5f5fec2c5f5fedac5f5fee262f14d48efef48ffc975e9",
        0.67,
    ),  # three additions beside an operation of 512 bits
    ("GLC", "stack engine", "504889e35848ffc975f6", 0.03),  # push, a read of rsp and pop
)


@pytest.mark.parametrize(("core", "rule", "code", "saved"), RULED)
def test_a_rule_that_holds_a_loop_back_is_named_with_what_its_removal_saves(core, rule, code, saved):
    settings = Settings(offset=0)
    opened = Core.open(core, settings)
    incore = analyse_block(block_of_bytes(bytes.fromhex(code), file="x"), opened, settings)
    (found,) = [cost for cost in explain(incore, opened).mechanisms if cost.reason.names == (rule,)]
    assert found.saved == pytest.approx(saved, abs=0.02)
    assert found.reason.users
    assert "{" not in reason_text(found.reason)


def test_every_rule_has_a_loop_and_a_sentence():
    assert {rule.name for rule in RULES} - {rule for _, rule, _, _ in RULED} == {"aliased stores"}  # of nests alone
    for rule in RULES:
        assert reason_text(Reason(Why.SINGLE_RULE, names=(rule.name,), users=("mov",)))


@pytest.mark.parametrize(
    ("code", "end"),
    [(RULED[0][2], "at a load that is one too many"), ("4c0304c24d89da4d89da4d89da4d89da48ffc975eb", "go together")],
)
def test_cycles_that_end_early_are_told_from_ports_that_keep_waiting(code, end):
    incore = incore_of(code, "ZEN4")
    assert incore.bound_by == "scheduling"
    assert end in reason_text(incore.reason)
