"""Data that fall into few sets of a cache: how many these are, and what layer conditions make of it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.machine.load import load_machine
from kernmodel.source.load import parse_kernel
from kernmodel.traffic.conditions.cache_sets import Bank, StridedFootprint, rooms
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.conditions.quantities import fixed
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.simulation.simulate import simulate

CLX = load_machine("clx")
TRANSPOSE = """void f(double a[restrict N][N], double b[restrict N][N]) {
  for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) a[i][j] = b[i][j]; }"""
PLANES = """double f(double a[restrict 64][64][256]) {
  double s = 0;
  for (int j = 0; j < 64; ++j) for (int i = 0; i < 256; ++i) for (int k = 0; k < 64; ++k)
    s += a[k][j][i];
  return s; }"""


def traffic_of(text: str, **sizes: int) -> tuple[Traffic, Traffic]:
    nest = parse_kernel(text, "k.c", sizes)
    return layer_conditions(nest, CLX, sizes), simulate(nest, CLX, sizes)


@pytest.mark.parametrize(("size", "lines"), [(100, 0.25), (128, 2), (192, 2), (256, 2)])
def test_columns_of_a_transposition(size: int, lines: float) -> None:
    symbolic, simulated = traffic_of(TRANSPOSE, N=size)
    assert symbolic.path("L1L2").loads == pytest.approx(lines)
    assert simulated.path("L1L2").loads == pytest.approx(lines, rel=0.02)


def test_the_condition_is_that_of_the_sets() -> None:
    symbolic, _ = traffic_of(TRANSPOSE, N=128)
    condition = next(c for c in symbolic.conditions if c.cache == "L1" and c.reuses[0].carried_by == "j")
    assert (str(condition.required_bytes), condition.capacity_bytes, condition.holds) == ("64*N", 4 * 8 * 64, False)
    assert str(condition.few_sets) == "4 of 64 sets"
    assert condition.solved["N"] == "N ≤ 32 (strides of 1 KiB)"
    assert ("N", 32, "L1") in [transition[:3] for transition in symbolic.transitions]


def test_columns_through_planes() -> None:
    """64 lines 128 KiB apart: one set of L1, two of L2's 1024, with 32 lines of room."""
    symbolic, simulated = traffic_of(PLANES)
    for path, lines in (("L1L2", 1), ("L2L3", 1)):
        assert symbolic.path(path).loads == pytest.approx(lines)
        assert simulated.path(path).loads == pytest.approx(lines, rel=0.02)


def test_a_victim_cache_has_the_sets_of_both() -> None:
    footprint = StridedFootprint("a", fixed(64 * 1024), (0,), 8, ((4096, 1024),))
    last = rooms(CLX, 1, 1.0)[-1]
    assert [footprint.sets_touched(bank) for bank in last.banks] == [1024 // 64, 20480 // 64]


@given(
    sets=st.sampled_from((1, 4, 16, 20, 64, 96)),
    starts=st.lists(st.integers(0, 300), min_size=1, max_size=3, unique=True),
    stretch=st.integers(1, 6),
    repeats=st.lists(st.tuples(st.integers(1, 70), st.integers(1, 40)), max_size=2),
)
def test_sets_of_a_walk(sets: int, starts: list[int], stretch: int, repeats: list[tuple[int, int]]) -> None:
    """As many as counted one by one, but for loops that come back to all places, at a distance below the stretch."""
    line = 64
    footprint = StridedFootprint(
        "a",
        fixed(0),
        tuple(line * start for start in starts),
        line * stretch,
        tuple((line * stride, count) for stride, count in repeats),
    )
    touched = {
        (start + element + sum(k * stride for k, (stride, _) in zip(steps, repeats, strict=True))) % sets
        for start in starts
        for element in range(stretch)
        for steps in product(*(range(count) for _, count in repeats))
    }
    assert footprint.sets_touched(Bank(sets, 8, line)) == len(touched)
