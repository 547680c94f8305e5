"""The C that the front end reads: declarations, loops, indices, statements, operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.errors import SourceError
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of, trip_counts
from kernmodel.source.nest.strides import access_strides, updates_per_iteration

PARAMETERS = "int n, int m, double *restrict x, const double *restrict y, float *restrict f, int *restrict k, double s"


def body(statements: str, parameters: str = PARAMETERS, before: str = "") -> LoopNest:
    return parse_kernel(f"{before}void kernel({parameters})\n{{\n{statements}\n}}\n", "x.c")


def inner(statement: str, before: str = "") -> LoopNest:
    return body(f"for (int i = 0; i < n; ++i) {{ {statement} }}", before=before)


def flops(nest: LoopNest) -> dict[tuple[str, str, str], int]:
    return {(flop.operation, flop.element.name, flop.name): flop.count for flop in nest.operations.flops}


# Loops


@pytest.mark.parametrize(
    ("head", "start", "stop", "step"),
    [
        ("i = 0; i < n; i++", "0", "n", 1),
        ("i = 0; i < n; ++i", "0", "n", 1),
        ("i = 1; i <= n; i += 2", "1", "n + 1", 2),
        ("i = n - 1; i >= 0; --i", "n - 1", "-1", -1),
        ("i = n; i > 0; i--", "n", "0", -1),
        ("i = n; i > 0; i -= 4", "n", "0", -4),
        ("i = 0; i != n; i = i + 1", "0", "n", 1),
        ("i = 0; n > i; i = 3 + i", "0", "n", 3),
        ("i = n; 1 <= i; i = i - 3", "n", "0", -3),
        ("i = 2; i + 1 < n; i += 1", "2", "n - 1", 1),
        ("i = 0; i < n - 1 && i < m; ++i", "0", "Min(m, n - 1)", 1),
        ("i = 0; i < (n < m ? n : m); ++i", "0", "Min(m, n)", 1),
        ("i = 0; i <= (n < m ? m : n); ++i", "0", "Max(m + 1, n + 1)", 1),
        ("i = 0; i < 2 * n / 2; ++i", "0", "n", 1),
        ("i = 0; i < n << 1; i += 1 << 2", "0", "2*n", 4),
        ("i = 0x10; i < 100L; i += 5 % 3", "16", "100", 2),
    ],
)
def test_loop_heads_are_normalised(head: str, start: str, stop: str, step: int) -> None:
    nest = body(f"int i; for ({head}) x[i] = s;")
    loop = nest.inner
    assert (str(loop.start), str(loop.stop)) == (start, stop)
    assert loop.step == step


def test_tiled_nest_keeps_minima_and_fixes_its_step() -> None:
    text = """
    #define T 64
    #define MIN(a, b) ((a) < (b) ? (a) : (b))
    for (int jj = 0; jj < n; jj += T)
        for (int ii = 0; ii < m; ii += T)
            for (int j = jj; j < MIN(jj + T, n); ++j)
                for (int i = ii; i < MIN(ii + T, m); ++i)
                    x[j * m + i] = s;
    """
    nest = body(text)
    assert [loop.step for loop in nest.loops] == [64, 64, 1, 1]
    assert str(nest.loops[2].stop) == "Min(n, jj + 64)"
    assert "T" not in nest.symbols and nest.defaults["T"] == 64
    sizes = sizes_of(nest, {"n": 1000, "m": 130})
    assert iterations_per_sweep(nest, sizes) == 130_000
    assert trip_counts(nest, sizes) == (16.0, 3.0, 1000 / 16, 130 / 3)
    assert "fixed-step" in {note.code for note in nest.notes}


def test_unequal_with_a_wide_step_is_noted() -> None:
    assert [note.code for note in body("for (int i = 0; i != n; i += 4) x[i] = s;").notes] == ["exact-end"]
    assert not body("for (int i = 0; i != n; ++i) x[i] = s;").notes


def test_step_macro_follows_the_command_line() -> None:
    text = "#define T 64\nvoid f(double *x) { for (int i = 0; i < 1024; i += T) x[i] = 0; }"
    assert parse_kernel(text, "x.c", {"T": 128}).inner.step == 128


def test_triangular_nest_counts_exactly() -> None:
    nest = body("for (int j = 0; j < n; ++j) for (int i = 0; i <= j; ++i) x[i] += y[j];")
    assert iterations_per_sweep(nest, {"n": 10_000}) == 10_000 * 10_001 // 2
    assert nest.inner.stop == nest.loops[0].symbol + 1


def test_macro_sizes_stay_symbols_and_other_macros_expand() -> None:
    text = """
    #ifndef N
    #define N 5000
    #endif
    #define NN (N * 2)
    #define real_t float
    #define SCALE 0.5f
    #define AT(j, i) a[(j) * N + (i)]
    #define ZERO 0
    void kernel(real_t *restrict a) { for (int j = ZERO; j < NN; ++j) for (int i = 0; i < N; ++i) AT(j, i) *= SCALE; }
    """
    nest = parse_kernel(text, "x.c")
    n = nest.symbols["N"]
    assert nest.loops[0].stop == 2 * n and nest.loops[0].start == 0
    assert nest.arrays["a"].shape == (2 * n, n) and nest.arrays["a"].element.name == "float"
    assert flops(nest) == {("mul", "float", ""): 1}
    assert nest.defaults == {"N": 5000}


def test_define_without_guard_yields_to_the_command_line() -> None:
    macros = "#define N 10\n#if N > 15\n#define M 3\n#else\n#define M 4\n#endif\n"
    text = macros + "double a[M][N]; for (int i=0;i<N;++i) a[M-1][i] = 0;"
    assert parse_kernel(text, "x.c").defaults == {"M": 4, "N": 10}
    assert parse_kernel(text, "x.c", {"N": 20}).defaults == {"M": 3, "N": 20}


# Declarations and indices


def test_bare_nest_with_sizes_from_outside() -> None:
    nest = parse_kernel(
        "double a[M][N];\ndouble b[M][N];\ndouble s;\nfor (int j=1; j<M-1; ++j)\nfor (int i=1; i<N-1; ++i)\n"
        "b[j][i] = s*a[j][i];\n",
        "dir/bare-nest.c",
    )
    assert (nest.name, nest.function, set(nest.symbols), dict(nest.defaults)) == ("bare-nest", None, {"M", "N"}, {})
    assert str(nest.accesses[0].location) == "dir/bare-nest.c:6:13"


@pytest.mark.parametrize(
    "declaration",
    [
        "double a[restrict m][n]",
        "double (*restrict a)[n]",
        "double (*__restrict__ a)[n]",
        "double a[][n]",
        "const double a[static m][n]",
        "real (*a)[n]",
        "row *restrict a",
    ],
)
def test_two_dimensional_parameters(declaration: str) -> None:
    before = "typedef double real;\n#define n 30\ntypedef double row[n];\n"
    loops = "for (int j=0;j<m;++j) for (int i=0;i<n;++i) x[i] += a[j][i];"
    text = f"{before}void f(int m, {declaration}, double *x) {{ {loops} }}"
    nest = parse_kernel(text, "x.c")
    assert [str(extent) for extent in nest.arrays["a"].shape] == ["m", "n"]
    assert nest.arrays["a"].element.name == "double"


def test_local_and_global_arrays_and_constants() -> None:
    text = """
    enum { R = 2 };
    static const int border = R + 1;
    double g[100][100];
    void f(int n) {
        float l[100];
        const int last = n - border;
        for (int i = border; i < last; ++i) g[R][i] = l[i - R];
    }
    """
    nest = parse_kernel(text, "x.c")
    n = nest.symbols["n"]
    assert (nest.inner.start, nest.inner.stop) == (3, n - 3)
    assert nest.arrays["l"].element.size_bytes == 4
    assert [access.index for access in nest.accesses] == [(nest.inner.symbol - 2,), (2, nest.inner.symbol)]


def test_integers_set_in_the_body_are_substituted() -> None:
    nest = body(
        "for (int j=0; j<m; ++j) { int row = j*n; for (int i=0; i<n; ++i) { int at; at = row + i; x[at] = s; } }"
    )
    assert nest.arrays["x"].shape == (nest.symbols["m"], nest.symbols["n"])


@pytest.mark.parametrize("index", ["j*n+i", "i+j*n", "i + n*j", "(size_t)j*n + i", "(j+1)*n + (i-n)", "j*n+i+0"])
def test_flat_index_equals_the_nested_one(index: str) -> None:
    nested = body(
        "for (int j=0;j<m;++j) for (int i=0;i<n;++i) a[j][i] = s;", "int n, int m, double a[restrict m][n], double s"
    )
    flat = body(
        f"for (int j=0;j<m;++j) for (int i=0;i<n;++i) a[{index}] = s;", "int n, int m, double *restrict a, double s"
    )
    assert flat.accesses[0].index == nested.accesses[0].index
    assert flat.accesses[0].offset == nested.accesses[0].offset
    assert flat.accesses[0].coefficients == nested.accesses[0].coefficients
    assert flat.arrays["a"].shape == nested.arrays["a"].shape
    assert [note.code for note in flat.notes] == ["index-split"]


def test_flat_index_with_halo_rows() -> None:
    nest = body("for (int j=1;j<=m;++j) for (int i=1;i<=n;++i) x[j*(n+2)+i] = y[(j-1)*(n+2)+i] + y[j*(n+2)+i-1];")
    n, m = nest.symbols["n"], nest.symbols["m"]
    assert nest.arrays["y"].shape == (m + 1, n + 2)
    assert nest.arrays["x"].shape == (m + 1, n + 2)


def test_flat_index_with_numbers() -> None:
    nest = parse_kernel(
        "double a[1000000]; for (int j=1;j<999;++j) for (int i=1;i<999;++i) a[j*1000+i] = a[j*1000+i-1];", "x.c"
    )
    assert nest.arrays["a"].shape == (1000, 1000)


def test_flat_index_that_is_not_proven_stays_linear() -> None:
    nest = body(
        "for (int j=0;j<m;++j) for (int i=0;i<n;++i) x[j*ld+i] = s;", "int n, int m, int ld, double *x, double s"
    )
    assert nest.arrays["x"].shape == ()
    assert nest.accesses[0].coefficients == (nest.symbols["ld"], 1)
    assert [note.code for note in nest.notes] == ["index-linear"]


def test_strided_flat_index_is_not_split() -> None:
    nest = inner("x[2*i] = y[2*i+1];")
    assert nest.accesses[0].index == (2 * nest.inner.symbol + 1,)
    assert [stride for _, stride in access_strides(nest, {"n": 10})] == [16, 16]


def test_pointer_forms_of_an_element() -> None:
    nest = inner("*(x + i) = *y + (*(y + i)) * s;")
    assert [access.index for access in nest.accesses] == [(0,), (nest.inner.symbol,), (nest.inner.symbol,)]


def test_order_of_indices_need_not_follow_the_loops() -> None:
    nest = body(
        "for (int j=0;j<n;++j) for (int i=0;i<m;++i) w[i][0][j] = s;",
        "int n, int m, double w[restrict m][4][n], double s",
    )
    assert nest.accesses[0].coefficients == (1, 4 * nest.symbols["n"])


# Statements and operations


def test_references_are_in_execution_order_and_counted() -> None:
    nest = inner("x[i] += y[i] * y[i] + y[i + 1];")
    assert [(a.kind, a.text, a.count) for a in nest.accesses] == [
        ("read", "y[i]", 2),
        ("read", "y[i+1]", 1),
        ("read", "x[i]", 1),
        ("write", "x[i]", 1),
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x[i] = y[i] - s;", {("add", "double", ""): 1}),
        ("x[i] = -y[i];", {}),
        ("x[i] = y[i] * (1.0 / 3.0);", {("mul", "double", ""): 1}),
        ("x[i] = s * s + y[i];", {("mul", "double", ""): 1, ("add", "double", ""): 1}),
        ("f[i] = f[i] * 2;", {("mul", "float", ""): 1}),
        ("f[i] = f[i] * 2.0;", {("mul", "double", ""): 1}),
        ("f[i] = f[i] * 2.0f;", {("mul", "float", ""): 1}),
        ("f[i] += y[i];", {("add", "double", ""): 1}),
        ("x[i] = (float)y[i] / f[i];", {("div", "float", ""): 1}),
        ("k[i] = k[i] * 2 + 1;", {}),
        ("x[i] = k[i] * s;", {("mul", "double", ""): 1}),
        ("x[i] = (i + 0.5) * s;", {("add", "double", ""): 1, ("mul", "double", ""): 1}),
        ("x[i] = y[i] < s ? y[i] : s;", {("compare", "double", ""): 1}),
        ("x[i] = fma(y[i], s, x[i]);", {("fma", "double", ""): 1}),
        ("x[i] = sqrt(y[i]);", {("sqrt", "double", ""): 1}),
        ("f[i] = sqrtf(f[i]);", {("sqrt", "float", ""): 1}),
        (
            "x[i] = exp(y[i]) + __builtin_fabs(s);",
            {("function", "double", "exp"): 1, ("function", "double", "fabs"): 1, ("add", "double", ""): 1},
        ),
        ("x[i] = fmax(y[i], s);", {("compare", "double", ""): 1}),
        ("double t = y[i] * s; x[i] = t + t;", {("mul", "double", ""): 1, ("add", "double", ""): 1}),
        ("x[i]++;", {("add", "double", ""): 1}),
        ("x[i] = (s, y[i]);", {}),
    ],
)
def test_operations_by_kind_and_type(statement: str, expected: dict[tuple[str, str, str], int]) -> None:
    assert flops(inner(statement)) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x[i] = M_PI * k[i];", {("mul", "double", ""): 1}),
        ("f[i] = k[i] * FLT_EPSILON + INFINITY;", {("mul", "float", ""): 1, ("add", "float", ""): 1}),
        ("f[i] += M_SQRT2 * f[i];", {("mul", "double", ""): 1, ("add", "double", ""): 1}),
        ("x[i] = k[i] / INT_MAX;", {}),
    ],
)
def test_constants_of_headers_have_their_types(statement: str, expected: dict[tuple[str, str, str], int]) -> None:
    assert flops(inner(statement)) == expected


def test_enumerators_and_arrays_of_enumerations() -> None:
    before = "#include <stdbool.h>\ntypedef enum { red, green = 4, blue } colour;\nenum phase { ice, water };\n"
    nest = body(
        "for (int i = 0; i < n; ++i) { x[blue * i + ice] = is[i] == red; some[i] = true; }",
        "int n, double *x, const colour *is, bool *some, enum phase *p",
        before,
    )
    assert [str(one.offset) for one in nest.accesses] == ["i", "5*i", "i"]
    assert [nest.arrays[name].element.size_bytes for name in ("is", "some")] == [4, 1]
    own = "typedef enum { false, true } bool;\n"
    assert set(body("for (int i = 0; i < n; ++i) x[i] = true;", before=own).symbols) == {"n"}


def test_flop_sum_counts_fma_twice_and_functions_not_at_all() -> None:
    assert inner("x[i] = fma(y[i], s, x[i]) + exp(s) * (y[i] > s ? 1 : 2);").operations.flops_per_iteration == 4


@pytest.mark.parametrize(
    ("statement", "reductions"),
    [
        ("s += y[i];", ("s",)),
        ("s = y[i] + s;", ("s",)),
        ("s = y[i];", ()),
        ("x[0] += y[i];", ("x",)),
        ("x[i] = s; s = y[i];", ()),
        ("double t = s * y[i]; s = t;", ("s",)),
        ("x[i] += y[i];", ()),
        ("s = y[i] > s ? y[i] : s;", ("s",)),
    ],
)
def test_reductions(statement: str, reductions: tuple[str, ...]) -> None:
    assert inner(statement).operations.reductions == reductions


def test_two_scalars_that_carry_each_other_are_reductions() -> None:
    nest = body("double p = 0, q = 1; for (int i=0;i<n;++i) { double t = p + q; p = q; q = t * y[i]; }")
    assert nest.operations.reductions == ("p", "q")


def test_an_iteration_is_one_update_however_many_arrays_it_writes() -> None:
    assert updates_per_iteration(inner("x[i] = s; f[i] = s; x[i] = y[i];")) == 1
    assert updates_per_iteration(inner("x[0] += y[i];")) is None


@pytest.mark.parametrize(
    ("text", "updates"),
    [
        ("#pragma kernmodel updates 2\nfor (int i=0;i<n;++i) x[i] = s;", 2),
        ("for (int j=0;j<m;++j)\n#pragma kernmodel updates 0.5\nfor (int i=0;i<n;++i) x[j*n+i] = s;", 0.5),
        ("{\n#pragma kernmodel updates 3\n} for (int i=0;i<n;++i) x[0] += y[i];", 3),
        ("#pragma kernmodel updates 0\nfor (int i=0;i<n;++i) x[i] = s;", None),
        ("#pragma omp parallel for\nfor (int i=0;i<n;++i) x[i] = s;", 1),
    ],
)
def test_a_pragma_says_how_many_updates_an_iteration_is(text: str, updates: float | None) -> None:
    assert updates_per_iteration(body(text)) == updates


def test_a_pragma_is_of_the_nest_behind_it() -> None:
    text = "void k(int n, double *x)\n{\n#pragma kernmodel updates 2\nfor (int i=0;i<n;++i) x[i] = 1;\n"
    text += "for (int i=0;i<n;++i) x[i] += 1;\n#pragma kernmodel updates 9\n}"
    assert [updates_per_iteration(parse_kernel(text, "x.c", nest=number)) for number in (1, 2)] == [2, 1]


@pytest.mark.parametrize(
    "text",
    [
        "void k(int n, double *x)\n{\n#pragma kernmodel updates two\nfor (int i=0;i<n;++i) x[i] = 1;\n}",
        "void k(int n, double *x)\n{\n#pragma kernmodel update 2\nfor (int i=0;i<n;++i) x[i] = 1;\n}",
        "void k(int n, double *x)\n{\n#pragma kernmodel updates -1\nfor (int i=0;i<n;++i) x[i] = 1;\n}",
        "#pragma kernmodel updates 2\n\n\nvoid k(int n, double *x)\n{\nfor (int i=0;i<n;++i) x[i] = 1;\n}",
        "void k(int n, double *x)\n{\n#pragma kernmodel updates 2\nfor (int i=0;i<n;++i)\n"
        "#pragma kernmodel updates 3\nx[i] = 1;\n}",
    ],
)
def test_pragmas_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(SourceError, match=r"x\.c:\d+:\d+: #pragma kernmodel"):
        parse_kernel(text, "x.c")


def test_pragmas_comments_and_blocks_are_ignored() -> None:
    nest = body("""
    #pragma omp parallel for
    for (int j = 0; j < m; ++j) { // rows
        {
            #pragma omp simd
            for (int i = 0; i < n; ++i) { /* inner */ ; { x[j*n+i] = s; } }
        }
    }""")
    assert len(nest.loops) == 2 and len(nest.accesses) == 1


def test_array_that_stays_in_the_inner_loop_is_noted() -> None:
    nest = body("for (int j=0;j<m;++j) for (int i=0;i<n;++i) x[i] = y[j];")
    assert [(note.code, note.kind) for note in nest.notes] == [("inner-invariant", "assumption")]
    assert nest.accesses[0].coefficients == (1, 0)


def test_time_loop_around_a_sweep() -> None:
    nest = body("for (int t = 0; t < 10; ++t) for (int i = 0; i < n; ++i) x[i] *= s;")
    assert nest.accesses[0].coefficients == (0, 1)
    assert iterations_per_sweep(nest, {"n": 7}) == 70


def test_nest_and_function_are_chosen() -> None:
    text = """void f(double *x) { for (int i=0;i<10;++i) x[i]=0; for (int i=0;i<20;++i) x[i]=1; }
    void g(double *x) { for (int i=0;i<30;++i) x[i]=0; }"""
    assert parse_kernel(text, "x.c", function="f", nest=2).inner.stop == 20
    assert parse_kernel(text, "x.c", function="g").name == "g"


def test_places_after_macros_and_continued_lines() -> None:
    text = (
        "#define TWICE(v) ((v) + (v))\nvoid f(double *x, double *y)\n{\n  for (int i = 0; i < 9; ++i)\n"
        "    x[i] = TWICE(y[i]) \\\n      + y[i + 1];\n}\n"
    )
    nest = parse_kernel(text, "x.c")
    assert {a.text: str(a.location) for a in nest.accesses} == {
        "y[i]": "x.c:5:18",
        "y[i+1]": "x.c:6:9",
        "x[i]": "x.c:5:5",
    }


def test_include_beside_the_kernel_is_read(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define N 123\ntypedef float real;\n")
    kernel = tmp_path / "k.c"
    kernel.write_text(
        '#include <stdio.h>\n#include "sizes.h"\nvoid f(real *x) { for (size_t i = 0; i < N; ++i) x[i] = 1; }\n'
    )
    nest = load_kernel(str(kernel))
    assert nest.defaults == {"N": 123} and nest.arrays["x"].element.name == "float"


def test_stencils_of_many_points_are_read() -> None:
    points = [f"x[i+{k}]" for k in range(700)]
    nest = parse_kernel(f"double x[5000], y[5000]; for (int i=0;i<4000;++i) y[i] = {' + '.join(points)};", "x.c")
    assert len(nest.reads()) == 700 and nest.operations.flops_per_iteration == 699


def test_unsigned_and_short_elements_have_their_sizes() -> None:
    nest = body(
        "for (int i=0;i<n;++i) c[i] = u[i] + h[i] + l[i];",
        "int n, unsigned char *c, unsigned long *u, short int *h, long long *l",
    )
    assert {name: array.element.size_bytes for name, array in nest.arrays.items()} == {"c": 1, "u": 8, "h": 2, "l": 8}


def test_parameter_gets_its_value_from_the_command_line() -> None:
    nest = parse_kernel("void f(int n, double *x) { for (int i = 0; i < n; ++i) x[i] = 0; }", "x.c", {"n": "100"})
    assert sizes_of(nest, {}) == {"n": 100}
