"""Traffic of references under conditions, against the lines that random outcomes touch."""

from __future__ import annotations

import random
from typing import Literal

import pytest

import kernmodel as km

ELEMENTS = 80_000
TEXT = """void f(double *restrict a, double *restrict b, const double *restrict c, int n)
{
    for (int i = 0; i < n; ++i) {
        if (c[i] > 0.0)
            a[i] = b[STRIDE * i];
    }
}
"""


def touched(share: float, stride: int) -> int:
    """Lines of an array of which random iterations touch an element."""
    outcomes = random.Random(1)
    return len({i * stride // 8 for i in range(ELEMENTS) if outcomes.random() < share})


@pytest.mark.parametrize(("share", "stride"), [(0.02, 1), (0.1, 1), (0.5, 1), (0.3, 4), (0.3, 16)])
def test_lines_move_that_an_iteration_needs(share: float, stride: int) -> None:
    kernel = km.Nest(TEXT.replace("STRIDE", str(stride)), taken={4: share})
    traffic = km.data_traffic(kernel, "bdw", cache="lc", n=ELEMENTS).answer.traffic
    units = ELEMENTS / traffic.iterations_per_unit
    lines = {row.array: sum(row.served_by.values()) * units for row in traffic.accesses}
    assert lines["c"] == pytest.approx(ELEMENTS / 8)
    assert lines["a"] == pytest.approx(touched(share, 1), rel=0.04)
    assert lines["b"] == pytest.approx(touched(share, stride), rel=0.04)
    path = traffic.path("L1L2")
    assert path.loads == pytest.approx(sum(lines.values()) / units)
    assert path.stores == pytest.approx(lines["a"] / units)
    moved = traffic.register_loads_bytes + traffic.register_stores_bytes
    assert moved == pytest.approx(8 * (1 + 2 * share) * traffic.iterations_per_unit)


def test_conditions_that_always_hold_change_nothing() -> None:
    def paths(text: str, taken: dict[int, float]) -> list[float]:
        kernel = km.Nest(text, taken=taken)
        return [path.lines for path in km.data_traffic(kernel, "clx", cache="lc", n=ELEMENTS).answer.traffic.paths]

    text = TEXT.replace("STRIDE", "1")
    assert paths(text, {4: 1.0}) == paths(text.replace("if (c[i] > 0.0)", "c[i];"), {})


def test_conditions_that_never_hold_move_nothing() -> None:
    kernel = km.Nest(TEXT.replace("STRIDE", "1"), taken={4: 0.0})
    traffic = km.data_traffic(kernel, "clx", cache="lc", n=ELEMENTS).answer.traffic
    assert {row.array: sum(row.served_by.values()) for row in traffic.accesses} == {"a": 0.0, "b": 0.0, "c": 1.0}
    assert [path.stores for path in traffic.paths] == [0.0] * len(traffic.paths)
    # what L2 has loaded of c goes on into the victim cache
    assert traffic.path("L2L3").clean_victims == pytest.approx(traffic.path("L1L2").loads)


@pytest.mark.parametrize("mode", ["lc", "sim"])
def test_sides_of_a_branch_that_read_one_array_move_what_two_arrays_would(mode: Literal["lc", "sim"]) -> None:
    """Rows on one side, columns on the other; each is read in half of the iterations."""
    text = """void f(double *restrict a, const double *restrict b, const double *restrict c, int n) {
        for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) {
            if (j > i) a[j*n+i] = b[j*n+i]; else a[j*n+i] = %s[i*n+j]; } }"""
    one, two = (km.data_traffic(text % name, "clx", cache=mode, sizes={"n": 1500}).answer.traffic for name in "bc")
    assert one.paths[0].loads == pytest.approx(two.paths[0].loads, rel=1e-3)
    assert two.paths[0].loads == pytest.approx(5.5, rel=0.01)  # half of 8 and of 1, and the line that is stored


def test_references_far_apart_are_each_read_where_their_branch_is() -> None:
    text = """void f(double *restrict a, const double *restrict b, int n) {
        for (int i = 0; i < n; i++) { if (i < n / 2) a[i] = b[i]; else a[i] = b[i] + b[i - n / 2]; } }"""
    traffic = km.data_traffic(text, "clx", cache="lc", sizes={"n": 4_000_000}).answer.traffic
    assert traffic.paths[0].loads == pytest.approx(2.5, rel=0.01)
