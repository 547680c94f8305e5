"""What the explanation reads off an answer."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.answer.explain import binding_components, components_of, explain
from kernmodel.incore.answer.mechanisms import MechanismCost
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import Component, InCore, Why
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
    assert (cost.prediction, cost.saved, cost.reason.figures["lines"]) == (1.0, 1.0, 2)


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
    """xor, cmp of a byte, sete, inc, add, cmp and jne: free choice of ALUs saves the time, more entries do not."""
    found = mechanisms_of("31d2803e070f94c248ffc64801d04839fe75ed")
    assert found[Why.GIVEN_PORTS].prediction == pytest.approx(1.0, rel=0.01)
    assert found[Why.GIVEN_PORTS].saved > 0.2
    assert Why.FULL_BUFFER not in found


@pytest.mark.parametrize("core", ["ZEN4", "RWC"])
def test_accesses_across_lines_cost_what_aligned_arrays_save(core):
    cost = mechanisms_of(OFF_ITS_LINES, core)[Why.ACROSS_LINES]
    assert cost.prediction == 1.0
    assert cost.reason.users == ("vmovupd", "vaddpd")
