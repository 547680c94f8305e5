"""What the explanation reads off an answer."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.answer.explain import binding_components, components_of, explain
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import Component, InCore

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
