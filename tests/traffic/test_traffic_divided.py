"""Traffic of references whose indices are quotients and remainders, against nests that touch the same elements."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.errors import SourceError

HEAD = "void f(double *restrict x, double a[restrict 40][3000], double *restrict b)\n{\n%s\n}\n"
FLAT = "for (int i = 0; i < 120000; ++i) a[i / 3000][i % 3000] += b[i % 3000];"
NESTED = "for (int j = 0; j < 40; ++j) for (int i = 0; i < 3000; ++i) a[j][i] += b[i];"
WRAPPED = "int k = 0; for (int i = 0; i < 120000; ++i) { x[i] += b[k]; if (++k == 3000) k = 0; }"


def lines(statements: str) -> list[tuple[float, float]]:
    """Lines per iteration that each path loads and stores."""
    traffic = km.data_traffic(km.Nest(HEAD % statements), "bdw", cache="sim").answer.traffic
    return [(p.loads / traffic.iterations_per_unit, p.stores / traffic.iterations_per_unit) for p in traffic.paths]


@pytest.mark.parametrize("flat", [FLAT, WRAPPED])
def test_a_flat_loop_moves_what_the_nested_one_moves(flat: str) -> None:
    for found, expected in zip(lines(flat), lines(NESTED), strict=True):
        assert found == pytest.approx(expected, rel=0.02, abs=1e-4)


def test_a_quotient_moves_a_line_as_often_as_it_is_another_one() -> None:
    # 1 MB, which the last level keeps
    for loads, stores in lines("for (int i = 0; i < 500000; ++i) x[i / 4] += 1.0;")[:-1]:
        assert (loads, stores) == pytest.approx((1 / 32, 1 / 32), rel=0.01)


def test_what_is_divided_is_never_negative() -> None:
    with pytest.raises(SourceError, match="runs from -1 to 8: C rounds negative quotients up"):
        lines("for (int i = 0; i < 10; ++i) x[(i - 1) / 4] += 1.0;")


def test_an_exact_quotient_by_a_sum_of_sizes_is_no_quotient() -> None:
    text = "void f(int n, double *restrict x)\n{\nfor (int i = 0; i < 9; ++i) x[i * (n + 1) / (n + 1)] = 1.0;\n}\n"
    (access,) = km.data_traffic(km.Nest(text), "bdw", n=4).answer.nest.accesses
    assert (str(access.offset), access.indirect) == ("i", ())


def test_a_size_that_stands_in_a_remainder_alone_is_asked_for_and_used() -> None:
    text = "void f(int n, int m, double *restrict x, double *restrict b)\n{\n%s\n}\n"
    nest = km.Nest(text % "for (int i = 0; i < n; ++i) x[i] += b[i % m];")
    with pytest.raises(SourceError, match="m has no value"):
        km.data_traffic(nest, "bdw", cache="sim", n=120000)
    found = km.data_traffic(nest, "bdw", cache="sim", n=120000, m=3000).answer.traffic
    assert [path.loads / found.iterations_per_unit for path in found.paths] == pytest.approx(
        [loads for loads, _ in lines("for (int i = 0; i < 120000; ++i) x[i] += b[i % 3000];")]
    )
