"""What OpenMP pragmas say of a nest, and how iterations fall to threads, against runs of the rules one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.source.load import parse_kernel
from kernmodel.source.model import Parallel
from kernmodel.source.nest.division import division

TEXT = """#define CHUNK 3
void f(int n, int m, double a[restrict n][m], double b[restrict n][m])
{
%s
    for (int j = 0; j < n; ++j)
%s
        for (int i = 0; i < %s; ++i)
            a[j][i] = b[j][i];
}
"""


def parallel(outer: str, inner: str = "", bound: str = "m") -> Parallel | None:
    return parse_kernel(TEXT % (outer, inner, bound), "x.c").parallel


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ("#pragma omp parallel for", "", (0, 1, None, None)),
        ("#pragma omp parallel for collapse(2) schedule(static, 16)", "", (0, 2, "static", 16)),
        ("#pragma omp for simd schedule(simd: dynamic, CHUNK) nowait", "", (0, 1, "dynamic", 3)),
        ("#pragma omp for \\\n    schedule(guided)", "", (0, 1, "guided", None)),
        ("", "#pragma omp parallel for schedule(runtime)", (1, 1, None, None)),
        ("#pragma omp target teams distribute parallel for collapse(3)", "", (0, 2, None, None)),
        ("#pragma omp taskloop", "", (0, 1, "dynamic", None)),
        ("#pragma omp parallel for\n#pragma kernmodel updates 1", "#pragma omp simd", (0, 1, None, None)),
        ("#pragma omp simd", "", None),
        ("#pragma GCC ivdep", "#pragma omp simd", None),
    ],
)
def test_pragmas(outer: str, inner: str, expected: tuple[object, ...] | None) -> None:
    found = parallel(outer, inner)
    assert (found and (found.loop, found.collapse, found.schedule, found.chunk)) == expected


@given(
    rows=st.integers(1, 60),
    threads=st.integers(1, 12),
    schedule=st.sampled_from([None, "static", "dynamic", "guided"]),
    chunk=st.sampled_from([None, 1, 4, 7]),
    bound=st.sampled_from(["m", "j + 1"]),
)
def test_the_busiest_thread_has_at_least_its_share(
    rows: int, threads: int, schedule: str | None, chunk: int | None, bound: str
) -> None:
    clauses = f"schedule({schedule}{f', {chunk}' if chunk else ''})" if schedule else ""
    nest = parse_kernel(TEXT % (f"#pragma omp parallel for {clauses}", "", bound), "x.c")
    assert nest.parallel is not None
    found = division(nest, nest.parallel, {"n": rows, "m": 5}, threads)
    weights = [5] * rows if bound == "m" else list(range(1, rows + 1))
    assert found.iterations == rows and found.balance is not None
    busiest = sum(weights) / threads / found.balance
    # no division is better than even, none worse than one chunk beyond it but static blocks of unequal iterations
    assert found.balance <= 1 + 1e-9 and busiest >= max(weights) - 1e-9
    if schedule == "dynamic":
        assert busiest <= sum(weights) / threads + (chunk or 1) * max(weights) + 1e-9
    if schedule in (None, "static"):
        shares = [0.0] * threads
        for row, weight in enumerate(weights):
            each, more = divmod(rows, threads)
            block = row // (each + 1) if row < more * (each + 1) else more + (row - more * (each + 1)) // max(each, 1)
            shares[row // chunk % threads if chunk and schedule else block] += weight
        assert busiest == pytest.approx(max(shares))
        assert found.idle == sum(share == 0 for share in shares)


def test_a_loop_that_is_divided_anew_waits_each_time() -> None:
    text = """void lu(int n, double a[restrict n][n]) {
        for (int k = 0; k < n; ++k)
    #pragma omp parallel for
            for (int i = k + 1; i < n; ++i)
                for (int j = k + 1; j < n; ++j)
                    a[i][j] -= a[i][k] * a[k][j];
    }"""
    nest = parse_kernel(text, "x.c")
    assert nest.parallel is not None and nest.parallel.loop == 1
    found = division(nest, nest.parallel, {"n": 17}, 8)
    # 1 to 16 rows on 8 threads: one or two each
    assert found.balance == pytest.approx(sum(range(1, 17)) / 8 / (8 * 1 + 8 * 2))
