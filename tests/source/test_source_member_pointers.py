"""Pointers into members of arrays of structures (blocks of quantised numbers), and typed views of `void *`."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest

# 2 + 14 + 48 bytes: a block is a cache line
TEXT = """
#include <stdint.h>
typedef struct { uint16_t d; uint8_t scales[14]; uint8_t qs[48]; } block;
typedef struct { double r[3], v[3], f[2]; } atom;
static inline float total(const uint8_t *q, int n) { float s = 0.0f; for (int k = 0; k < n; ++k) s += q[k]; return s; }
float f(int n, const block *restrict x, const void *vx, atom *a, double *y, const float *z)
{
    float s = 0.0f;
    for (int i = 0; i < n; ++i) { BODY }
    return s;
}
"""


def nest_of(body: str) -> LoopNest:
    return parse_kernel(TEXT.replace("BODY", body), "blocks.c", function="f")


def places(body: str) -> set[str]:
    return {f"{one.array} {one.kind[0]} {one.offset}" for one in nest_of(body).accesses}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("const uint8_t *q = x[i].qs; for (int l = 0; l < 48; ++l) s += q[l];", {"x r 64*i + l + 16"}),
        ("const uint8_t *q = x[i].qs + 16; for (int l = 0; l < 32; ++l) s += *(q + l);", {"x r 64*i + l + 32"}),
        ("const uint8_t *q = &x[i].qs[8]; for (int l = 0; l < 8; ++l) s += q[l - 8];", {"x r 64*i + l + 16"}),
        ("const uint8_t *q = x[i].qs; for (int l = 0; l < 24; ++l) { s += *q++; s += *q++; }",
         {"x r 64*i + 2*l + 16", "x r 64*i + 2*l + 17"}),
        ("const uint8_t *q = x[i].qs; const uint8_t *p = q + 24; for (int l = 0; l < 24; ++l) s += q[l] * p[l];",
         {"x r 64*i + l + 16", "x r 64*i + l + 40"}),
        ("const uint8_t *q = x[i].qs; for (int j = 0; j < 48; j += 8, q += 8) for (int l = 0; l < 8; ++l) s += q[l];",
         {"x r 64*i + j + l + 16"}),
        ("double *r = a[i].r; const double *v = a[i].v; for (int k = 0; k < 3; ++k) r[k] += v[k];",
         {"a r 8*i + k", "a r 8*i + k + 3", "a w 8*i + k"}),
        ("s += total(x[i].qs, 48);", {"x r 64*i + k + 16"}),
    ],
)  # fmt: skip
def test_members_are_read_through_pointers_to_them(body: str, expected: set[str]) -> None:
    assert places(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "const uint8_t *q = x[i].qs; if (z[i] > 0) q = x[i].scales; for (int l = 0; l < 8; ++l) s += q[l];",
        "int j = i; const uint8_t *q = x[j].qs; j = 0; for (int l = 0; l < 8; ++l) s += q[l];",
        "const uint8_t *q = x[i].qs; other(q); for (int l = 0; l < 8; ++l) s += q[l];",
    ],
)
def test_pointers_that_may_point_elsewhere_are_refused(body: str) -> None:
    with pytest.raises(KernmodelError):
        nest_of(body)


@pytest.mark.parametrize("mode", ["auto", "sim"])
def test_traffic_of_blocks_by_hand(mode: str) -> None:
    body = "const uint8_t *q = x[i].qs; for (int l = 0; l < 48; ++l) s += x[i].d * q[l] * z[l];"
    kernel = km.Nest(TEXT.replace("BODY", body), function="f")
    found = km.data_traffic(kernel, "clx", cache=mode, sizes={"n": 100_000}).answer.traffic  # type: ignore[arg-type]
    # a block is one line and has 48 iterations; by layer conditions alone both members would count one
    assert found.paths[0].loads / found.iterations_per_unit == pytest.approx(1 / 48, rel=0.01)


@pytest.mark.parametrize("value", ["vx", "(const block *) vx", "x"])
def test_a_copy_of_a_pointer_to_structures_is_the_same_array(value: str) -> None:
    text = TEXT.replace("float s = 0.0f;\n    for", f"float s = 0.0f; const block *b = {value};\n    for")
    body = "for (int l = 0; l < 48; ++l) s += b[i].qs[l];"
    nest = parse_kernel(text.replace("BODY", body), "blocks.c", function="f")
    name = "x" if value == "x" else "vx"
    assert {f"{one.array} {one.offset}" for one in nest.accesses} == {f"{name} 64*i + l + 16"}


def test_a_function_that_is_an_expression_does_not_end_a_nest() -> None:
    text = TEXT.replace(
        "static inline float total", "static float wide(uint16_t h) { return (float) h; }\nstatic float total"
    )
    body = "float d = wide(x[i].d); for (int l = 0; l < 48; ++l) s += d * x[i].qs[l];"
    nest = parse_kernel(text.replace("BODY", body), "blocks.c", function="f")
    assert [loop.variable for loop in nest.loops] == ["i", "l"]
    assert {(one.array, one.depth) for one in nest.accesses} == {("x", 1), ("x", 2)}
