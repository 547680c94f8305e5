"""Strides that are floors of sizes, and steps that are sizes or change from stage to stage (Fourier transforms)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernmodel as km
from kernmodel.errors import SourceError
from kernmodel.formulas.formula import Formula, floored, nonnegative, size
from kernmodel.source.load import parse_kernel

RESTRICT = """
void f(int N, double *restrict a, double *restrict b) {
  int H = N / 2;
  for (int i = 1; i < H - 1; i++)
    for (int j = 1; j < H - 1; j++)
      b[i * H + j] = a[(2 * i - 1) * N + 2 * j] + a[(2 * i + 1) * N + 2 * j] + a[2 * i * N + 2 * j - 1] + a[2 * i * N + 2 * j + 1];
}
"""  # noqa: E501
PADDED = """
void f(int N, double *a, double *b) {
  for (int i = 1; i < N; i++)
    for (int j = 0; j < (N + 1) / 2; j++) b[i * ((N + 7) / 8 * 8) + j] = b[(i - 1) * ((N + 7) / 8 * 8) + j] + a[j];
}
"""
CHUNKS = """
void f(int n, int parts, double *a, double *b) {
  int length = n / parts;
  for (int k = 0; k < n; k += length) for (int i = k; i < k + length; i++) a[i] = 2.0 * b[i];
}
"""
BUTTERFLY = "{ double t = x[i + k + m] * w[k]; x[i + k + m] = x[i + k] - t; x[i + k] += t; }"
INSIDE = f"for (int i = 0; i < n; i += 2 * m) for (int k = 0; k < m; k++) {BUTTERFLY}"
STAGES = {
    "product": f"for (int m = 1; m < n; m *= 2) {INSIDE}",
    "shift": f"for (int d = 0; d < 20; d++) {{ int m = 1 << d; {INSIDE} }}",
    "while": f"int m = 1; while (m < n) {{ {INSIDE} m <<= 1; }}",
}
BLOCKS = """
void f(int n, int m, double *x) {
  for (int i = 0; i < n; i += 2 * m)
    for (int j = i; j < i + m; j++) { double s = x[j], t = x[j + m]; x[j] = s + t; x[j + m] = s - t; }
}
"""


def stages(name: str) -> str:
    return f"void f(int n, double *restrict x, const double *restrict w) {{ {STAGES[name]} }}"


def lines(kernel: str, mode: str, sizes: dict[str, int]) -> list[float]:
    """Lines that are loaded and stored for an iteration over each path."""
    found = km.data_traffic(kernel, "clx", cache=mode, sizes=sizes).answer.traffic  # type: ignore[arg-type]
    unit = found.iterations_per_unit
    return [part / unit for path in found.paths for part in (path.loads, path.stores)]


# of clx's paths L1-L2, L2-L3 and L3-memory: loads, stores
@pytest.mark.parametrize("mode", ["lc", "sim"])
@pytest.mark.parametrize(
    ("kernel", "sizes", "expected"),
    [
        # a row of b is read again for the next one: 2 × 2 rows of 2 lines and b, of which one line of a waits in L2
        (RESTRICT, {"N": 2000}, [7 / 8, 1 / 8, 0, 1 / 8, 5 / 8, 1 / 8]),
        (PADDED, {"N": 6000}, [3 / 8, 1 / 8, 0, 1 / 8, 1 / 8, 1 / 8]),
        (CHUNKS, {"n": 1 << 21, "parts": 64}, [2 / 8, 1 / 8, 0, 1 / 8, 2 / 8, 1 / 8]),
        # two halves of a block are read and written once, the table waits in L2
        (stages("product"), {"n": 1 << 22, "m": 4096}, [3 / 8, 2 / 8, 0, 2 / 8, 2 / 8, 2 / 8]),
        (BLOCKS, {"n": 1 << 22, "m": 1024}, [2 / 8, 2 / 8, 0, 2 / 8, 2 / 8, 2 / 8]),
    ],
)
def test_traffic_by_hand(kernel: str, sizes: dict[str, int], expected: list[float], mode: str) -> None:
    assert lines(kernel, mode, sizes) == pytest.approx(expected, rel=0.03, abs=0.003)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_a_nest_at_a_size(name: str) -> None:
    nest = parse_kernel(stages(name), "fft.c", {"m": 64})
    assert [(loop.variable, str(loop.stop), loop.step) for loop in nest.loops] == [("i", "n", 128), ("k", "64", 1)]
    assert nest.operations.flops_per_iteration == 3
    assert {"repeating-loop", "fixed-step"} <= {note.code for note in nest.notes}


def test_stages_are_points_of_a_sweep_and_asked_for() -> None:
    with pytest.raises(SourceError, match=r"m, by which a loop steps, has no value; .* -D m=1-1024:log2"):
        parse_kernel(stages("product"), "fft.c", {})


def test_a_loop_that_halves_its_variable_repeats_what_is_in_it() -> None:
    kernel = (
        "void f(int n, double *a) { for (int s = n / 2; s > 0; s /= 2) for (int i = 0; i < s; i++) a[i] += a[i + s]; }"
    )
    nest = parse_kernel(kernel, "tree.c")
    assert [loop.variable for loop in nest.loops] == ["i"]
    assert list(nest.symbols) == ["s"]


SIZES = st.fixed_dictionaries({name: st.integers(1, 40) for name in ("N", "M")})


@given(
    terms=st.lists(
        st.tuples(st.integers(-3, 4), st.sampled_from(["N", "M", "", "N*M"]), st.integers(1, 5)), max_size=4
    ),
    values=st.lists(SIZES, min_size=6, max_size=6),
)
def test_what_is_proven_of_floors_holds(terms: list[tuple[int, str, int]], values: list[dict[str, int]]) -> None:
    found = Formula({})
    for factor, names, divisor in terms:
        part = Formula({(): 1})
        for name in filter(None, names.split("*")):
            part = part * size(name)
        found += floored((part + 1) / divisor) * factor * (size("M") if divisor == 5 else 1)
    if nonnegative(found):
        assert all(found.value(one) >= 0 for one in values)
