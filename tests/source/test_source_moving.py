"""Pointers into other arrays, walking pointers, variables that advance with a loop: each against the C as executed."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.formulas.formula import Formula
from kernmodel.source.load import find_nests, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.counting import numeric_loops

SIZES = {"n": 5, "m": 4}
BODIES = (
    "int j = 0; for (int i = 0; i < n; ++i) { x[j] += 1; j += 2; }",
    # bounds that a loop around advances
    "int len = 1; for (int i = 0; i < n; i++) { for (int k = 0; k < len; k++) x[k] += 1; len++; }",
    "int len = 1; for (int i = 0; i < n; i++) { len += 2; for (int k = 0; k < len; k++) x[k] += 1; }",
    "int len = 1; for (int i = 0; i < n; i++) { len++; for (int k = 0; k < len; k++) x[i + k] += 1; len += 3; }",
    "for (int i = 0, len = 1; i < n; i++, len++) for (int k = 0; k < len; k++) x[k] += 1;",
    "int l = n; for (int i = 0; i < n; i++) { for (int k = 0; k < l; k++) x[k] += 1; l--; }",
    "int s = 0; for (int i = 0; i < n; i++) { for (int k = s; k < s + 8; k++) x[k] += 1; s += 8; }",
    "for (int j = 0; j < m; j++) { int l = j; for (int i = 0; i < n; i++) { for (int k = 0; k < l; k++) x[k] += 1; "
    "l++; } }",
    "int l = 0; for (int j = 0; j < m; j++) for (int i = 0; i < 3; i++) { for (int k = 0; k < l; k++) x[k] += 1; "
    "l++; }",
    "int *p = x; while (n >= 2) { p[0] += 1; p[1] += 1; p += 2; n -= 2; } while (n > 0) { *p++ += 1; n--; }",
    "int *p = x; while (n >= 4) { p[0] += 1; p[3] += 1; p += 4; n -= 4; } while (n--) *p++ += 1;",
    "int i = n; for (; i > 3; i -= 3) x[i] += 1; while (i >= 1) { x[i] += 1; i--; }",
    "for (int i = 0, j = n - 1; i < j; i++, j--) { x[i] += 1; x[j] += 1; }",
    "int j = -1; for (int i = 0; i < n; ++i) { j++; x[j] += 1; }",
    "int j = -1; for (int i = 0; i < n; ++i) if (i >= 0) { j++; x[j] += 1; } else { j++; }",
    "int k = 7; for (int i = n - 1; i >= 0; --i) { x[k] += 1; k -= 1; }",
    "int k = 0; for (int j = 0; j < m; ++j) for (int i = 0; i < n; ++i) { x[k] += 1; k++; }",
    "for (int j = 0; j < m; ++j) { int k = j; for (int i = 0; i < n; i += 2) { x[k] += 1; k += 4; } }",
    "int k = 3; for (int j = 0; j < m; ++j) { for (int i = 0; i < n; ++i) x[k + i] += 1; k = k + n; }",
    "for (int i = 0; i < n; ++i) { int c = i; c = c + 2; x[c] += 1; }",
    "int *p = x + 3; for (int i = 0; i < n; ++i) *p++ += 1;",
    "int *p = x; for (int i = 0; i < n; ++i) { *++p += 1; }",
    "int *p = x; for (int i = 0; i < n; ++i) { p[1] += 1; p += 3; }",
    "for (int i = 0; i < n; ++i) { *x += 1; x++; }",
    "for (int j = 0; j < m; ++j) { int *p = x + j * n; for (int i = 0; i < n; ++i) { *p += 1; p++; } }",
    "int *p; for (int j = 0; j < m; ++j) { p = &a[j][1]; for (int i = 0; i < n; ++i) { *p += 1; p++; } }",
    "int *p = x; for (int j = 0; j < m; ++j) for (int i = 0; i < n; ++i) { *p += 1; p++; }",
    "int *q = &x[2 * m]; int *r = q + 1; for (int i = 0; i < n; ++i) r[i] += 1;",
    "for (int j = 0; j < m; ++j) { int *row = a[j]; for (int i = 0; i < n; ++i) row[i] += 1; }",
    "for (int j = 0; j < m; ++j) { int *row = a[j] + j; for (int i = 0; i < 3; ++i) row[i] += 1; }",
    "for (int i = 0; i < n; ++i) x[twice(i) + 1] += 1;",
    "int k = 1; for (int j = 0; j < m; ++j) { for (int i = 0; i < n; ++i) { x[k] += 1; ++k; } ++k; }",
    "int k = 1; for (int j = 0; j < m; ++j) { k += 2; for (int i = 0; i < n; ++i) { x[k] += 1; k++; } }",
    "int j = -1, k; for (int i = 0; i < n; ++i) { k = j + 1; x[k] += 1; j = k + 1; }",
    "int k = 4, l; for (int i = 0; i < n; ++i) { l = k; x[l] += 1; k = l + 3; }",
    "int k = 0; for (int i = 0; i < n; ++i) { x[k++] += 1; x[k++] += 1; x[--k] += 1; }",
    "for (int i = 0; i < n; ++i) { x[m++] += 1; }",
    "m = 2; for (int i = 0; i < n; ++i) { x[i + m] += 1; }",
    "for (int i = 0; i < n; ++i) put(&x[i], 2);",
    "for (int i = 0; i < n; ++i) put(x + i, 2 * i);",
    "for (int j = 0; j < m; ++j) fill(a[j], n, j);",
    "for (int i = 0; i < n; ++i) { int k = i + 1; put(&x[k], k); }",
    "int k = 2; for (int i = 0; i < n; ++i) { x[k] += 1; k = behind(k); }",
    "for (int i = 0; i < 3 * n; ++i) x[i % 4] += 1;",
    "for (int i = 1; i < 9 * n; ++i) { x[i / 4] += 1; x[i % 8 / 4 + 30] += 1; x[(2 * i + n) / 6 % m + 40] += 1; }",
    "for (int i = 0; i < n * m; ++i) { int r = i / n, c = i % n; a[r][c] += 1; }",
    "for (int i = 0; i < n * m * 2; ++i) a[(i / n) % m][i % n] += 1;",
    "for (int j = 0; j < m; ++j) for (int i = 0; i < n; ++i) a[j % 2][(i + n - 1) % n] += 1;",
    "for (int i = 0; i < n - n % 4; i += 4) { x[i] += 1; x[(4 * i) / 2] += 1; x[i >> 2] += 1; }",
    "for (int i = 0; i < n * m; ++i) { x[i & 7] += 1; x[i & ~3] += 1; x[i & -4] += 1; x[15 & i / 2] += 1; }",
    "for (int i = 0; i < (n & ~1); ++i) { int k = (n & 3) + 1; x[k + i] += 1; }",
    "for (int i = 0; i < 1 << (7 & 12); ++i) x[i << 1] += 1;",
    "int k = 1; for (int i = 0; i < 3 * n; ++i) { x[k] += 1; k = (k + 2) % m; }",
    "int k = 0; for (int i = 0; i < 3 * n; ++i) { if (++k == m) k = 0; x[k] += 1; }",
    "int k = 0; for (int i = 0; i < 3 * n; ++i) { x[k + i] += 1; k++; if (k >= m) { k = 0; } }",
    "int k = 2; for (int i = 0; i < 3 * n; ++i) { x[k] += 1; k = k == m - 1 ? 0 : k + 1; }",
    "int k = 0; for (int i = 0; i < 3 * n; ++i) { x[k] += 1; if (++k >= m) k -= m; }",
    "int k = 1; for (int i = 0; i < 3 * n; ++i) { x[k] += 1; k += 3; if (k >= m) k -= m; }",
    "int k = 1; for (int i = 0; i < 3 * n; ++i) { k += 2; if (k >= n) { k = k - n; } x[k] += 1; }",
    "int t = 0; for (int j = 0; j < m; ++j) { for (int i = 0; i < n; ++i) a[1 - t][i] += 1; t = 1 - t; }",
    "int t = 1; for (int j = 0; j < m + 1; ++j) { for (int i = 0; i < n; ++i) a[t][i] += 1; t ^= 1; }",
    "int i = 0; again: x[i] += 1; i++; if (i < n) goto again;",
    "int i = 0; again: if (i >= n) goto done; x[i] += 1; i += 2; goto again; done: ;",
    "int i, j = 0; up: i = 1; in: a[j][i] += 1; ++i; if (i <= n) { goto in; } j++; if (j < m) goto up;",
    "int i, j = 0; do { i = 1; do { a[j][i] += 1; ++i; } while (i <= n); j++; } while (j < m);",
    "for (int j = 0; j < m; ++j) { int i = j; while (i < n) { a[j][i] += 1; i++; } }",
    "int l = n; for (int j = 0; j < m; ++j) { int k; for (k = 0; k < l; ++k) x[j + k] += 1; }",
    "int *p; for (int i = 0; i < m; i++) { p = x + i * n; for (int j = 0; j < n; j++) *p++ += 1; p = a[i]; "
    "for (int j = 0; j < n; j++) *p++ += 1; }",
    "int k = 0; for (int i = 0; i < m; i++) { for (int j = 0; j < n; j++) x[k++] += 1; for (int j = 0; j < 2; j++) "
    "x[k++] += 1; }",
    "for (int i = 0; i < m; i++) { int k = i; for (int j = 0; j < n; j++) x[k++] += 1; k = 2 * i; "
    "for (int j = 0; j < n; j++) a[1][k++] += 1; }",
    "int *p = x + 1; for (int i = 0; i < m; i++) { for (int j = 0; j < n; j++) *p++ += 1; for (int j = 0; j < n; j++) "
    "*++p += 1; }",
    "int k = 0; for (int i = 0; i < m; i++) { x[k] += 1; for (int j = 0; j < n; j++) x[k + j] += 1; "
    "for (int j = 0; j < n; j++) a[i][j] += 1; k += n; }",
    "int k = 2; for (int i = 0; i < m; i++) { for (int j = 0; j < n; j++) x[k++] += 1; } for (int j = 0; j < n; j++) "
    "x[k++] += 1;",
    "for (int i = 0; i < m; i++) { int k = i * n; x[k] += 1; for (int j = 0; j < n; j++) x[k++] += 1; x[k] += 1; }",
    "int *p = x; for (int i = 0; i < m; i++) { *p += 1; for (int j = 0; j < n; j += 2) *p++ += 1; p[1] += 1; }",
    "for (int l = 0; l < 2; l++) { int *p = x + l, k = 30; for (int i = 0; i < m; i++) { "
    "for (int j = 0; j < n; j++) *p++ += 1; "
    "for (int j = 0; j < 3; j++) { x[k++] += 1; *p++ += 1; } for (int j = 0; j < 2; j++) x[k++] += 1; } }",
    "int j; for (int i = 0; i < m; i++) { for (j = 1; j < n; j += 3) x[i] += 1; x[j] += 1; }",
    "for (int i = 0; i < m; i++) { int k; k = 1; for (int j = 0; j < n; j++) { x[k] += 1; for (int l = 0; l < 2; l++) "
    "a[i][l] += 1; k += 2; } }",
    "int i, j; for (i = 1, j = 3; i < 2 * n; i += 2, j++) x[j] += 1;",
    "int k = 0; for (int i = 0; i < n; i += 3) { x[k] += 1; x[i] += 1; k += 2; }",
    "int k = 9; for (int i = n; i > 0; i -= 2) { x[k] += 1; x[i] += 1; k--; }",
    "for (int j = 0; j < m; ++j) for (int i = 0; i < n; i += 2) *x++ += 1;",
    "int k = 1; for (int j = 0; j < m; j += 3) { for (int i = j; i < j + n; i += 2) a[j][k++] += 1; k -= 2; }",
    "int i; for (i = 0; i < 3 * n - 3; i += 4) { x[i] += 1; x[i + 3] += 1; } for (; i < 3 * n; i++) x[i] += 1;",
    "int i = 1; for (; i + 3 <= 3 * n; i += 4) x[i + 3] += 1; while (i < 3 * n) { x[i] += 1; i++; }",
    "int i = 0; while (i < n) { x[i] += 1; ++i; } for (; i < 2 * n; ++i) x[i + 2] += 1;",
    "int i; for (i = n; --i >= 0; x += 2) x[i] += 1;",
    "int i; for (i = n; --i > 0;) x[i] += 1;",
    "int k = n; while (--k) x[k] += 1;",
    "int k = n; do { x[k] += 1; } while (--k);",
    "int k = n; do { x[k] += 1; x++; } while (--k >= 0);",
    "int k = n; do *x++ += 1; while (k--);",
    "for (; n > 0; n--) x[n] += 1;",
    "for (; n >= 0; n -= 2) *x++ += 1;",
    "while (n > 0) { *x++ += 1; n--; }",
    "do { x[n + m] += 1; } while (--n > 0);",
    "while (--m >= 0) for (int i = 0; i < n; i++) a[m][i] += 1;",
    "enum { low = 1 == 1, high = (2 > 3) + 4 }; for (int i = low; i < n; ++i) x[i + high] += 1;",
    "for (int i = 0; i < n; ++i) x[i + 3 * (7 >= 7)] += 1;",
    "for (int *p = x + 2; p < x + n; ++p) *p += 1;",
    "int *p = &x[m], *end = p + n; while (p != end) { *p++ += 1; *p += 1; }",
    "int *end = x + 3 * n; do { *x += 1; x += 2; x++; } while (x <= end);",
    "for (; m; --m) x[m] += 1;",
    "int i = 1; while (i++ < n) x[i] += 1;",
    "int i = -1; do { x[i + 1] += 1; } while (++i < n);",
    "int k = n / 2; while (k > 0) { *x++ += 1; *x++ += 1; k--; } k = n % 2u; while (k > 0u) { *x++ += 1; k--; }",
    "x += m; x++; for (int i = 0; i < n; ++i) x[i] += 1;",
)
FUNCTIONS = """static inline int twice(int v) { return 2 * v; }
static void put(int *p, int k) { *(p + k) += 1; }
static void fill(int *row, int n, int k) { int i; for (i = k; i < n + 1; i++) row[i] += 1; }
static int behind(int k) { int j = k + 2; return j; }
"""
HEAD = "void f%d(int *x, int n, int m, int a[8][9])\n{ %s }\n"


def _within(position: Formula, nest: LoopNest, depth: int) -> bool:
    """Whether a position depends on the outer `depth` loops alone."""
    return not position.free_symbols & {loop.variable for loop in nest.loops[depth:]}


def _of(formula: Formula, environment: dict[str, int]) -> int:
    return int(formula.value({**SIZES, **environment}))


def written(nest: LoopNest) -> Counter[tuple[str, int]]:
    """How often a nest writes each element."""
    loops, found = numeric_loops(nest.loops, SIZES), Counter[tuple[str, int]]()
    entries = {entry.name: entry for a in nest.writes() for entry in a.indirect}

    def values(environment: dict[str, int], depth: int) -> dict[str, int]:
        known = {name for name, entry in entries.items() if _within(entry.position, nest, depth)}
        found = {name: _of(entries[name].position, environment) // _of(entries[name].divisor, {}) for name in known}
        moduli = {name: entries[name].modulus for name in known}
        return {
            name: value if modulus is None else value % _of(modulus, {})
            for (name, value), modulus in zip(found.items(), moduli.values(), strict=True)
        }

    def walk(depth: int, environment: dict[str, int]) -> None:
        for access in nest.writes():
            if access.depth == depth:
                found[access.array, _of(access.offset, environment | values(environment, depth))] += access.count
        if depth < len(loops):
            for value in loops[depth].values(environment):
                walk(depth + 1, environment | {loops[depth].variable: value})

    walk(0, {})
    return found


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Counter[tuple[str, int]]]:
    """How often each body writes each element when it is executed."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    folder: Path = tmp_path_factory.mktemp("moving")
    text = "#include <stdio.h>\n#include <string.h>\n" + FUNCTIONS
    text += "".join(HEAD % (number, body) for number, body in enumerate(BODIES))
    calls = "".join(
        f"memset(x,0,sizeof x);memset(a,0,sizeof a);f{k}(x,{SIZES['n']},{SIZES['m']},a);show();\n"
        for k in range(len(BODIES))
    )
    text += (
        "static int x[99], a[8][9];\nstatic void show(void) { for (int i = 0; i < 99; ++i) printf(\"%d \", x[i]);"
        " for (int i = 0; i < 72; ++i) printf(\"%d \", a[0][i]); puts(\"\"); }\n"
        f"int main(void) {{ {calls} return 0; }}\n"
    )  # fmt: skip
    (folder / "moving.c").write_text(text)
    subprocess.run(["gcc", "-O0", "-o", folder / "moving", folder / "moving.c"], check=True, capture_output=True)
    rows = subprocess.run([folder / "moving"], check=True, capture_output=True, text=True).stdout.splitlines()
    numbers = [list(map(int, row.split())) for row in rows]
    return [
        Counter({("x", k): v for k, v in enumerate(row[:99]) if v} | {("a", k): v for k, v in enumerate(row[99:]) if v})
        for row in numbers
    ]


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_elements_are_those_that_the_code_touches(
    number: int, executed: list[Counter[tuple[str, int]]], tmp_path: Path
) -> None:
    (tmp_path / "x.c").write_text(FUNCTIONS + HEAD % (number, BODIES[number]))
    found = find_nests(str(tmp_path / "x.c"), function=f"f{number}")
    nests = [one.nest for one in found if isinstance(one.nest, LoopNest)]
    assert len(nests) == len(found) > 0
    assert sum(map(written, nests), Counter[tuple[str, int]]()) == executed[number]


def test_the_length_is_a_size_where_a_pointer_has_moved_since() -> None:
    for moves in ("x += 2;", "x++;", "for (int i = 0; i < n / 2; ++i) *x++ = 0;", "n--;"):
        text = f"void f(double *x, int n) {{ double *end = x + n; {moves} while (x < end) *x++ = 1; }}"
        assert str(parse_kernel(text, "x.c", nest=2 if "for" in moves else 1).inner.stop) == "end_minus_x"


REFUSED = {
    "int k = 0; for (int i = 0; i < n; ++i) { x[k] = 1; k += i; }": "the variable k",
    "int k = 0, i = 0; while (i < n) { x[k] = 1; k += i; i++; }": "the variable k",
    "int k = 0; for (int j = 0; j < m; ++j) for (int i = 0; i < j; ++i) { x[k] = 1; k++; }": "the variable k",
    "int k = 0; for (int i = 0; i < n; ++i) { x[k] = 1; k = k * 2; }": "the variable k",
    "int k = 0; for (int i = 0; i < n; ++i) { if (x[i] > 0) k = i; x[k] = 1; }": "the variable k",
    "int *p = x; for (int i = 0; i < n; ++i) { *p = 1; p += i; }": "the pointer p changes",
    "int *p = x + 3; for (int j = 0; j < m; ++j) for (int i = j; i < n; ++i) *p++ = 1;": "the pointer p changes",
    "int k = 0; for (int t = 0; t < m; ++t) { g(t); for (int i = 0; i < n; ++i) { x[k] = 1; k++; } }": "the variable k",
}


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_no_formula_is_refused(body: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=REFUSED[body]):
        parse_kernel(FUNCTIONS + HEAD % (0, body), "x.c", function="f0")


def test_sizes_and_arrays_from_structures_are_asked_for_by_name() -> None:
    text = """struct problem { int n; double *x; };
    void f(struct problem *p, double *y) {
        int n = p->n; double *x = p->x; int step = *(int *)p;
        for (int i = 0; i < n; ++i) y[i] = x[i + step];
    }"""
    nest = parse_kernel(text, "x.c")
    assert set(nest.symbols) == {"n", "step"} and set(nest.arrays) == {"x", "y"}
    assert sum(note.code == "size-from-outside" for note in nest.notes) == 2


def test_buffers_that_change_places_stay_with_their_arrays() -> None:
    text = """void f(double *a, double *b, int n, int steps) {
    for (int t = 0; t < steps; ++t) { for (int i = 0; i < n; ++i) b[i] = a[i];
        double *c = a; a = b; b = c; } }"""
    nest = parse_kernel(text, "x.c")
    assert [access.text for access in nest.accesses] == ["a[i]", "b[i]"]
    assert "pointers-exchanged" in {note.code for note in nest.notes}


def test_pointers_that_a_loop_around_moves_on_are_not_followed() -> None:
    for before in ("for (int t = 0; t < 3; ++t) { x++;", "while (*x > 0) x++; {"):
        text = f"void f(float *x, int n) {{ {before} for (int i = 0; i < n; ++i) x[i] = 1; g(n); }} }}"
        with pytest.raises(UnsupportedKernelError, match="the pointer x is set here"):
            parse_kernel(text, "x.c")


def test_variables_of_a_file_that_a_function_sets_are_sizes(tmp_path: Path) -> None:
    text = """int count = 100, left = 7; static const int width = 4;
    static void set(char **arguments) { count = atoi(arguments[1]); int left = 2; left++; }
    void f(double *x, double *y) { for (int i = 0; i < count; i++) x[i] = y[width * i + left]; }"""
    nest = parse_kernel(text, "x.c")
    assert set(nest.symbols) == {"count"} and not nest.defaults
    (tmp_path / "x.c").write_text(text)
    assert nest.symbols == parse_kernel(text, "x.c", function="f").symbols
    assert str(nest.accesses[0].offset) == "4*i + 7"


def test_steps_may_be_constants_of_the_function_that_a_loop_calls() -> None:
    text = """static void inner(double *y, int n) { const int u = 2 * 4; for (int i = 0; i < n; i += u) y[i] = 0; }
    void f(double *y, int n, int m) { for (int j = 0; j < m; j++) { double *row = y + j * n; inner(row, n); } }"""
    assert [loop.step for loop in parse_kernel(text, "x.c", function="f").loops] == [1, 8]


@pytest.mark.parametrize(
    "body",
    [
        # under a condition; by what is no number; from one entry to the next by the loop itself
        "int len = 1; for (int i = 0; i < n; i++) { for (int k = 0; k < len; k++) a[k] += b[k]; if (i % 2) len++; }",
        "int len = 1; for (int i = 0; i < n; i++) { for (int k = 0; k < len; k++) a[k] += b[k]; len *= 2; }",
        "int len = 1; for (int i = 0; i < n; i++) { for (int k = 0; k < len; k++) a[k] += b[k]; len += len; }",
        "int s = 0, t = 1; for (int i = 0; i < n; i++) { for (int k = 0; k < s; k++) a[k] += b[k]; s += t; t++; }",
        "int s = 0, t = 1; for (int i = 0; i < n; i++) { a[s] += b[i]; s += t; t++; }",
        "int k = 0; for (int i = 0; i < n; i++) { for (int l = 0; l < k; l++) a[l] = 1; k += 2; if (k == n) k -= n; }",
        "int s = 0; for (int i = 0; i < n; i++) { for (int k = s; k < n; k++) { a[k] += b[k]; s++; } }",
    ],
)
def test_bounds_that_change_in_other_ways_are_refused(body) -> None:
    with pytest.raises((UnsupportedKernelError, SourceError)):
        parse_kernel(f"void f(double *a, double *b, int n) {{ {body} }}", "x.c", {})
