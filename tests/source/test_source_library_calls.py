"""Calls of the standard library and of functions of other files in nests: where the program ends, assertions, copies of
bits, printing, random numbers."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.errors import SourceError
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest

FILE = """
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern double noise(int, double);
static void die(const char *why) { fprintf(stderr, "%s", why); exit(1); }
static double at(const double *a, int n, int i) { assert(i < n); if (i > n) die("beyond"); return a[i]; }
static int bits(float f) { int k; memcpy(&k, &f, sizeof k); return k; }
void f(int n, double *restrict a, double *restrict b, float *restrict x, int *restrict k)
{
    unsigned seed = 1;
    double s = 0.0;
    for (int i = 0; i < n; ++i) { BODY }
    a[0] = s + seed;
}
"""


def nest_of(body: str, defines: dict[str, str | int] | None = None) -> LoopNest:
    return parse_kernel(FILE.replace("BODY", body), "x.c", defines or {}, function="f")


def accesses_of(nest: LoopNest) -> set[str]:
    return {f"{one.array} {one.kind[0]} {one.offset} {one.share:g}" for one in nest.accesses}


@pytest.mark.parametrize(
    ("body", "accesses", "flops"),
    [
        ('if (b[i] < 0) { fprintf(stderr, "%g", a[i]); exit(1); } a[i] = 2 * b[i];', {"b r i 1", "a w i 1"}, 1),
        ('if (b[i] < 0) die("negative"); a[i] = 2 * b[i];', {"b r i 1", "a w i 1"}, 1),
        ('if (b[i] > 0) a[i] = 2 * b[i]; else die("none");', {"b r i 1", "a w i 1"}, 1),
        ("assert(b[i] > x[i]); a[i] = 2 * b[i];", {"b r i 1", "x r i 1", "a w i 1"}, 1),
        ("assert(good(a)); a[i] = 2 * b[i];", {"b r i 1", "a w i 1"}, 1),
        ("a[i] = at(b, n, i) + 1.0;", {"b r i 1", "a w i 1"}, 1),
        ("k[i] = bits(x[i] * 2.0f);", {"x r i 1", "k w i 1"}, 1),
        ("a[i] = 2.0 * rand_r(&seed);", {"a w i 1"}, 1),
        ("a[i] = noise(i, b[i]) * noise(1, 2.0);", {"b r i 1", "a w i 1"}, 1),
        ('printf("%d %s %g\\n", i, "of", a[i] / 2.0);', {"a r i 1"}, 1),
        ("k[i] = lround(b[i]);", {"b r i 1", "k w i 1"}, 0),
    ],
)
def test_accesses_and_flops_of_nests_with_calls(body: str, accesses: set[str], flops: float) -> None:
    nest = nest_of(body)
    assert accesses_of(nest) == accesses
    assert nest.operations.flops_per_iteration == flops
    assert not nest.operations.branches


def test_what_is_not_followed_is_said_by_name() -> None:
    warned = {
        note.text.split(" is not")[0]
        for note in nest_of("a[i] = noise(i, 1.0) + rand();").notes
        if note.kind == "warning"
    }
    assert warned == {"the code of noise", "the code of rand"}
    ends = nest_of("if (b[i] < 0) exit(1); a[i] = b[i];").notes
    assert [(note.code, note.kind) for note in ends] == [("program-ends", "assumption")]


def test_assertions_are_nothing_with_ndebug() -> None:
    body = "assert(b[i] > x[i]); a[i] = 2 * b[i];"
    assert accesses_of(nest_of(body, {"NDEBUG": ""})) == {"b r i 1", "a w i 1"}
    assert accesses_of(nest_of(body, {"NDEBUG": 1})) == {"b r i 1", "a w i 1"}


def test_a_variable_whose_address_a_call_is_given_has_no_known_value() -> None:
    text = """
    void f(double *a) { int n = 5, m = 7; read_size(&n); for (int i = 0; i < n; i++) a[i] = 0.0; }
    """
    assert list(parse_kernel(text, "x.c").symbols) == ["n"]
    with pytest.raises(SourceError, match="the variable m, which changes"):
        nest_of("int m = i; other(&m); a[m] = 1.0;")


def test_sizeof_is_a_number() -> None:
    text = """
    typedef struct { unsigned char q[48 / 4 + 4]; float d; } block;
    void f(const block *restrict x, float *restrict y, int n) {
        float table[12];
        for (int i = 0; i < n; i++)
            for (int j = 0; j < (int)(sizeof(x->q) + sizeof(table) / sizeof table[0] - sizeof(double)); j++)
                y[i * 20 + j] = x[i].d * x[i].q[j];
    }
    """
    assert str(parse_kernel(text, "x.c").loops[1].stop) == "20"


@pytest.mark.parametrize("mode", ["lc", "sim"])
def test_traffic_of_nests_with_calls_by_hand(mode: str) -> None:
    body = 'if (b[i] < 0) { fprintf(stderr, "%g", x[i]); exit(1); } assert(b[i] < n); a[i] = rand() * b[i];'
    kernel = FILE.replace("BODY", body)
    traffic = km.data_traffic(kernel, "clx", cache=mode, sizes={"n": 400_000}).answer.traffic  # type: ignore[arg-type]
    path, unit = traffic.paths[0], traffic.iterations_per_unit
    # a is read before it is written, and so is b; x is printed where the program ends
    assert (path.loads / unit, path.stores / unit) == pytest.approx((2 / 8, 1 / 8), rel=0.01)
