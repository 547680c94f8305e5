"""Calls that copy and fill arrays: the loops that they stand for, what these move, and their code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import pytest

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.source.load import find_nests, load_kernel, parse_kernel
from kernmodel.source.model import LoopNest

TEXT = """
#include <string.h>
#define N 2000
typedef struct { double x, y, z; int id; } point;
typedef struct { int n; double *u, *v, w[N]; } grid;
double A[N][N], B[N][N];
void f(int n, int m, double a[n][m], double b[n][m], double *c, double *d, point *p, point *q, grid *g, float *x,
       const void *from, unsigned char *bytes, double **rows)
{
    CALL
}
"""


def nest_of(call: str, **defines: int) -> LoopNest:
    return parse_kernel(TEXT.replace("CALL", call), "copies.c", defines)


@pytest.mark.parametrize(
    ("call", "stops", "accesses"),
    [
        ("memcpy(c, d, n * sizeof(double));", ["n"], {"d r e0", "c w e0"}),
        ("memmove(c, c + 1, (n - 1) * sizeof *c);", ["n - 1"], {"c r e0 + 1", "c w e0"}),
        ("(void) __builtin_memcpy(c, d, sizeof(double) * (size_t) (n / 2));", ["floor(n/2)"], None),
        ("__builtin___memcpy_chk(c, d, 8 * n, __builtin_object_size(c, 0));", ["n"], {"d r e0", "c w e0"}),
        ("size_t all = n * sizeof(double); memcpy(c, d, all);", ["n"], {"d r e0", "c w e0"}),
        ("memset(c + m, 0, (n - m) * sizeof(*c));", ["-m + n"], {"c w e0 + m"}),
        ("bzero(x, n << 2);", ["n"], {"x w e0"}),
        ("memset(bytes, 0xff, n);", ["n"], {"bytes w e0"}),
        ("memset(g->u, 0, g->n * sizeof(double));", ["g_n"], {"g->u w e0"}),
        ("memcpy(g->w, g->v, sizeof(g->w));", ["N"], {"g->v r e0", "g->w w e0"}),
        ("memcpy(&a[n - 1][0], &c[m], m * 8);", ["m"], {"c r e0 + m", "a w e0 + m*n - m"}),
        ("memcpy(A, B, sizeof A);", ["N", "N"], {"B r N*e0 + e1", "A w N*e0 + e1"}),
        ("memcpy(c, b, sizeof(double) * n * m);", ["n", "m"], {"b r e0*m + e1", "c w e0*m + e1"}),
        ("for (int j = 0; j < n; ++j) memcpy(a[j], b[j], sizeof(double[1]) * m);", ["n", "m"], None),
        (
            "for (int i = 0; i < n; ++i) memcpy(&c[2 * i], d + 4 * i, 16);",
            ["n"],
            {"d r 4*i", "d r 4*i + 1", "c w 2*i", "c w 2*i + 1"},
        ),
    ],
)
def test_calls_are_loops_over_elements(call: str, stops: list[str], accesses: set[str] | None) -> None:
    nest = nest_of(call)
    assert [str(loop.stop) for loop in nest.loops] == stops
    if accesses is not None:
        assert {f"{one.array} {one.kind[0]} {one.offset}".replace("element_", "e") for one in nest.accesses} == accesses
    assert nest.operations.flops_per_iteration == 0
    assert ("library-loop" in {note.code for note in nest.notes}) == (len(nest.accesses) < 4)


@pytest.mark.parametrize("call", ["memcpy(c, x, n * 8);", "memcpy(c, from, n * 8);", "memset(rows, 0, n);"])
def test_copies_between_types_are_refused_in_nests(call: str) -> None:
    with pytest.raises(KernmodelError, match=r"the call of mem(cpy|set), .*write it as a loop over elements"):
        nest_of(f"for (int i = 0; i < n; ++i) {{ {call} c[i] = 0; }}")


STEPS = """for (int t = 0; t < m; ++t) {
    memcpy(d, c, n * sizeof *c);
    for (int i = 1; i < n - 1; ++i) c[i] = d[i - 1] + d[i + 1]; }
"""


def test_copies_in_a_time_loop_are_nests_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "steps.c"
    file.write_text(TEXT.replace("CALL", STEPS))
    found = find_nests(str(file))
    assert [one.variables for one in found] == [("t", "element_0"), ("t", "i")]
    assert all(isinstance(one.nest, LoopNest) for one in found)


@cache
def traffic(call: str, mode: Literal["lc", "sim"], sizes: tuple[tuple[str, int], ...]) -> tuple[float, float]:
    found = km.data_traffic(TEXT.replace("CALL", call), "clx", cache=mode, sizes=dict(sizes)).answer.traffic
    unit = found.iterations_per_unit
    return found.paths[0].loads / unit, found.paths[0].stores / unit


@pytest.mark.parametrize("mode", ["lc", "sim"])
@pytest.mark.parametrize(
    ("call", "loads", "stores", "sizes"),
    [
        ("memcpy(c, d, n * sizeof(double));", 2 / 8, 1 / 8, {"n": 300_000}),
        ("memmove(c, c + 1, (n - 1) * sizeof *c);", 1 / 8, 1 / 8, {"n": 300_000}),
        ("bzero(x, n * sizeof(float));", 1 / 16, 1 / 16, {"n": 300_000}),
        ("memcpy(p, q, n * sizeof(point));", 2 / 2, 1 / 2, {"n": 100_000}),
        ("memset(p, 0, n * sizeof(point));", 1 / 2, 1 / 2, {"n": 100_000}),
        ("for (int j = 0; j < n; ++j) memcpy(a[j], b[j], m * 8);", 2 / 8, 1 / 8, {"n": 700, "m": 1000}),
    ],
)
def test_traffic_by_hand(
    call: str, loads: float, stores: float, sizes: dict[str, int], mode: Literal["lc", "sim"]
) -> None:
    assert traffic(call, mode, tuple(sizes.items())) == pytest.approx((loads, stores), rel=0.01)


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param("gcc", marks=pytest.mark.needs("gcc")),
        pytest.param("clang", marks=pytest.mark.needs("clang|clang-19")),
    ],
)
@pytest.mark.parametrize("flags", ["-O1 -march=cascadelake", "-O3 -march=cascadelake"])
def test_the_code_of_a_copy_is_a_loop_over_vectors_whatever_the_flags(flags: str, compiler: str) -> None:
    text = TEXT.replace("CALL", "memcpy(c, d, n * sizeof(double));")
    code = km.CodeOptions(compiler=compiler, flags=flags.split())
    # 64 bytes are two loads and two stores of 32 bytes; one store starts in a cycle, two loads do
    assert km.ecm(text, "clx", sizes={"n": 300_000}, code=code).answer.prediction.t_nol == pytest.approx(1.0)


@pytest.mark.needs("gcc|clang")
def test_text_that_declares_the_functions_itself_is_compiled() -> None:
    text = TEXT.replace("CALL", "memcpy(c, d, n * sizeof(double));")
    own = "extern void *memcpy (void *__restrict to, const void *__restrict from, unsigned long n);"
    found = km.ecm(text.replace("#include <string.h>", own), "clx", sizes={"n": 300_000})
    assert found.answer.prediction.t_nol == pytest.approx(1.0)


def test_the_functions_of_cstring_are_those_of_string_h(tmp_path: Path) -> None:
    file = tmp_path / "copies.cpp"
    file.write_text("""#include <cstring>
    void f(int n, double *a, const double *b) { for (int i = 0; i < n; i++) std::memcpy(a + 100 * i, b, 800); }
    """)
    assert [str(loop.stop) for loop in load_kernel(str(file)).loops] == ["n", "100"]
