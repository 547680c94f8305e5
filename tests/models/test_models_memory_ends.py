"""Tests of kernmodel.models.memory_ends: machine files whose streams of memory are made to end at fewer cores."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roofline_cases import TRIAD, carried, case_on, core, incore, mix

from kernmodel.machine.model import Machine
from kernmodel.models.bandwidths import MEMORY, most_drawn
from kernmodel.models.carm import memory_shares
from kernmodel.models.chart import Case, ModelName
from kernmodel.models.findings import findings
from kernmodel.models.roofline import roofline
from kernmodel.uncertainty import Interval

REPEATS = 0.1
"""By how much streams of more cores are slower than those of fewer at most (7 % on Zen 2), or faster than in proportion
(4 % on Haswell)."""


def measured_on(machine: Machine, cores: int) -> Machine:
    """The machine without streams of memory on more cores."""
    series = (
        replace(one, cores=one.cores[:cores], bytes_per_second=one.bytes_per_second[:cores])
        if one.level == MEMORY
        else one
        for one in machine.bandwidths
    )
    return replace(machine, bandwidths=tuple(series))


def triad(machine: Machine, cores: int) -> Case:
    memory, own = mix({(16, False): 3.0, (16, True): 1.0}), incore(3, 1, 1)
    return replace(case_on(machine), cores=cores, name="triad", traffic=TRIAD, mix=memory, incore=own)


def holds(interval: Interval | None, value: float, number: float) -> bool:
    low, high = (value, value) if interval is None else (interval.low, interval.high)
    return low * (1 - REPEATS) <= number <= high * (1 + REPEATS)


@settings(max_examples=40)
@given(
    st.sampled_from(["snb", "ivb", "hsw", "bdw", "clx", "skx", "zen", "zen2"]),
    st.sampled_from(get_args(ModelName)),
    st.integers(1, 10),
    st.integers(1, 40),
)
def test_what_all_cores_were_measured_to_draw_lies_in_the_interval(
    name: str, model: ModelName, few: int, cores: int
) -> None:
    machine = carried(name)
    cores = min(cores, machine.topology.cores_per_numa_domain)
    known, told = roofline(model, triad(machine, cores)), roofline(model, triad(measured_on(machine, few), cores))
    assert known.most is None
    memory, roof = (next(one for one in chart.memory_roofs if one.level == MEMORY) for chart in (known, told))
    assert holds(roof.bytes_per_second_interval, roof.bytes_per_second, memory.bytes_per_second)
    assert known.bound is not None and told.bound is not None
    assert holds(told.bound_interval, told.bound, known.bound)
    if cores <= few:
        assert (told.most, roof.bytes_per_second_interval, told.bound_interval) == (None, None, None)


def test_a_chart_says_what_binds_at_both_ends() -> None:
    """Two of ten cores of Cascade Lake were measured: with five times as much the chain would take longer."""
    case = triad(measured_on(carried("clx"), 2), 10)
    found = roofline("hierarchical", replace(case, incore=incore(3, 1, 1, lcd=100.0)))
    assert found.most is not None and found.bound is not None and found.bound_interval is not None
    assert found.bound_interval.low == pytest.approx(found.bound)
    assert found.either(lambda chart: chart.bound_by) == "Mem or loop-carried dependency"
    (point,) = (one for one in found.points if one.level == MEMORY)
    assert point.flop_per_second_interval is not None and not point.predicted
    assert found.notes[0].code == "few-cores-bandwidth"
    assert "measured on 2 of 10 cores" in found.notes[0].text


def test_shares_impacts_and_gains_have_both_ends() -> None:
    case = triad(measured_on(carried("clx"), 1), 10)
    *_, memory = memory_shares(case)
    assert memory.bandwidth is not None and memory.bandwidth_interval is not None
    assert memory.bandwidth_interval.high == pytest.approx(10 * memory.bandwidth)
    reading = findings(case)
    assert reading.added is not None and reading.added_interval is not None
    assert reading.added_interval.high > 5 * reading.added
    stores = next(one for one in reading.what_ifs if one.name == "half the stores")
    assert stores.before_interval is not None and stores.bound_interval is not None
    assert "what more than 1 core of a domain draw from memory" in reading.sentences[0]
    alone = findings(triad(measured_on(carried("clx"), 1), 1))
    assert alone.added_interval is None and all(one.before_interval is None for one in alone.what_ifs)


def test_domains_that_are_full_draw_the_most_each() -> None:
    """Of a Zen 4 domain of 8 cores 2 were measured, and 12 cores are one and a half of them."""
    found = most_drawn(carried("zen4"), 12)
    assert found is not None
    machine, measured = found
    assert measured == 2
    case = replace(core("zen4"), traffic=TRIAD, mix=mix({(64, False): 3.0, (64, True): 1.0}))
    (roof,) = roofline("orm", replace(case, cores=12)).memory_roofs
    (one,) = roofline("orm", replace(case, cores=1)).memory_roofs
    assert roof.bytes_per_second_interval is not None
    assert roof.bytes_per_second_interval.high == pytest.approx(12 * one.bytes_per_second)
    (roof,) = roofline("orm", replace(case, cores=24)).memory_roofs
    assert roof.bytes_per_second_interval is not None
    assert roof.bytes_per_second_interval.high == pytest.approx(12 * 8 * 4.8e9)  # all that the socket's channels move
    assert most_drawn(carried("zen4"), 2) is None and most_drawn(machine, 12) is None
