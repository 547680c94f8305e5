from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.incore.engine.ports import even_pressure, group_bound, optimal_bound, optimal_pressure
from kernmodel.incore.model import PortUse

PORTS = ("0", "0DV", "1", "2", "2D", "3")
port_sets = st.sets(st.sampled_from(PORTS), min_size=1).map(lambda names: tuple(sorted(names)))
amounts = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 8.0])
port_uses = st.builds(PortUse, port_sets, amounts)
loops = st.lists(st.lists(port_uses, max_size=3), max_size=7)


def naive_bound(uses: list[PortUse]) -> float:
    """The definition: every subset of the ports."""
    subsets = (set(s) for size in range(1, len(PORTS) + 1) for s in combinations(PORTS, size))
    return max(sum(use.cycles for use in uses if set(use.ports) <= s) / len(s) for s in subsets)


def flat(loop: list[list[PortUse]]) -> list[PortUse]:
    return [use for row in loop for use in row]


def sums(pressure: tuple[tuple[float, ...], ...]) -> list[float]:
    return [sum(row[k] for row in pressure) for k in range(len(PORTS))]


@given(loops)
def test_bound_is_the_maximum_over_all_port_subsets(loop: list[list[PortUse]]) -> None:
    assert optimal_bound(flat(loop))[0] == pytest.approx(naive_bound(flat(loop)))


@given(loops)
def test_even_is_at_least_optimal_is_at_least_any_single_port_sets_bound(loop: list[list[PortUse]]) -> None:
    optimal = optimal_bound(flat(loop))[0]
    assert max(sums(even_pressure(loop, PORTS)), default=0.0) >= optimal - 1e-9
    for use in flat(loop):
        confined = sum(other.cycles for other in flat(loop) if set(other.ports) <= set(use.ports))
        assert optimal >= confined / len(use.ports) - 1e-9


@given(loops)
def test_optimal_pressure_reaches_the_bound_and_uses_only_admissible_ports(loop: list[list[PortUse]]) -> None:
    pressure = optimal_pressure(loop, PORTS)
    bound, binding = optimal_bound(flat(loop))
    assert max(sums(pressure), default=0.0) == pytest.approx(bound)
    for row, uses in zip(pressure, loop, strict=True):
        assert sum(row) == pytest.approx(sum(use.cycles for use in uses))
        admissible = {port for use in uses for port in use.ports}
        for port, cycles in zip(PORTS, row, strict=True):
            assert cycles >= -1e-9
            assert cycles == pytest.approx(0.0) or port in admissible
    for port, total in zip(PORTS, sums(pressure), strict=True):
        assert (port in binding) == (bound > 0 and total == pytest.approx(bound))


@given(loops)
def test_no_port_can_be_relieved_in_favour_of_a_less_busy_one(loop: list[list[PortUse]]) -> None:
    """Single-use rows, so that the split of a row is the split of one port set."""
    rows = [[use] for use in flat(loop)]
    pressure = optimal_pressure(rows, PORTS)
    totals = dict(zip(PORTS, sums(pressure), strict=True))
    for (use,), row in zip(rows, pressure, strict=True):
        used = [port for port, cycles in zip(PORTS, row, strict=True) if cycles > 1e-6]
        assert all(totals[port] <= totals[other] + 1e-6 for port in used for other in use.ports)


@given(loops, st.sets(st.sampled_from(PORTS)))
def test_group_bound_is_that_of_what_can_go_nowhere_else(loop: list[list[PortUse]], group: set[str]) -> None:
    confined = [use for use in flat(loop) if set(use.ports) <= group]
    assert group_bound(flat(loop), group) == pytest.approx(naive_bound(confined) if confined else 0.0)
    assert group_bound(flat(loop), group) <= optimal_bound(flat(loop))[0] + 1e-9


@given(loops, st.randoms())
def test_order_of_instructions_does_not_matter(loop: list[list[PortUse]], random: object) -> None:
    shuffled = sorted(loop, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert optimal_bound(flat(shuffled))[0] == pytest.approx(optimal_bound(flat(loop))[0])
    assert sums(optimal_pressure(shuffled, PORTS)) == pytest.approx(sums(optimal_pressure(loop, PORTS)))


@given(loops)
def test_twice_the_work_takes_twice_the_time(loop: list[list[PortUse]]) -> None:
    assert optimal_bound(flat(loop + loop))[0] == pytest.approx(2 * optimal_bound(flat(loop))[0])


def pairs_bound(uses: list[PortUse]) -> float:
    """The maximum over unions of two port sets only (Facile, section 4.8)."""
    unions = [set(one.ports) | set(other.ports) for one in uses for other in uses]
    return max((sum(use.cycles for use in uses if set(use.ports) <= s) / len(s) for s in unions), default=0.0)


@given(loops)
def test_unions_of_pairs_bound_from_below(loop: list[list[PortUse]]) -> None:
    assert pairs_bound(flat(loop)) <= optimal_bound(flat(loop))[0] + 1e-9


nested = st.sampled_from([("0",), ("0", "1"), ("0", "1", "3"), ("2",), ("2", "2D")])


@given(st.lists(st.builds(PortUse, nested, amounts), max_size=8))
def test_unions_of_pairs_suffice_where_port_sets_are_nested_or_apart(uses: list[PortUse]) -> None:
    assert pairs_bound(uses) == pytest.approx(optimal_bound(uses)[0])


def test_asymmetric_ports_are_balanced_where_equal_shares_are_not() -> None:
    loop = [[PortUse(("0",), 1.0)], [PortUse(("0", "1"), 1.0)]]
    assert optimal_pressure(loop, ("0", "1")) == ((1.0, 0.0), (0.0, 1.0))
    assert even_pressure(loop, ("0", "1")) == ((1.0, 0.0), (0.5, 0.5))


def test_binding_ports_are_all_that_are_always_busy() -> None:
    uses = [PortUse(("0", "1"), 4.0), PortUse(("5",), 2.0), PortUse(("2", "3"), 1.0)]
    assert optimal_bound(uses) == (2.0, ("0", "1", "5"))


def test_nothing_needs_no_port() -> None:
    assert optimal_bound([]) == (0.0, ())
    assert optimal_bound([PortUse((), 3.0)]) == (0.0, ())
    assert optimal_pressure([[]], PORTS) == ((0.0,) * len(PORTS),)


def test_many_different_port_sets_stay_exact() -> None:
    """Every pair of ten ports: 45 sets, 1,013 unions."""
    names = tuple("0123456789")
    uses = [PortUse(pair, 1.0) for pair in combinations(names, 2)]
    assert optimal_bound(uses)[0] == pytest.approx(4.5)
    assert [sum(column) for column in zip(*optimal_pressure([uses], names), strict=True)] == pytest.approx([4.5] * 10)
