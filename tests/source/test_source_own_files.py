"""Files as users have them: headers, several functions and nests, loops side by side, branches, repeating loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.errors import SourceError
from kernmodel.source.load import FoundNest, find_nests, list_nests, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.parse.preprocess import preprocess
from kernmodel.source.parse.syntax import c_ast, c_generator, parse_program, walk
from kernmodel.source.parse.tree import copied
from kernmodel.source.text import other_bodies_blanked
from kernmodel.user_files import GivenText

SIDE_BY_SIDE = """
#define N 100
#define STEPS 10
double a[N], b[N], w[N];
void step(int steps)
{
    for (int t = 0; t < steps; ++t) {
        w[t] = 1;
        for (int i = 1; i < N - 1; ++i)
            b[i] = a[i - 1] + a[i + 1];
        w[t + 1] = 2;
        for (int k = 1; k < N - 1; ++k)
            a[k] = b[k];
        w[t + 2] = 3;
    }
}
int main(void) { int steps = STEPS; step(steps); return 0; }
"""


def nest_of(text: str, **chosen: int) -> LoopNest:
    return parse_kernel(text, "x.c", {}, **chosen)


def test_loops_side_by_side_are_chains_that_share_what_stands_around_them() -> None:
    first, second = (nest_of(SIDE_BY_SIDE, nest=number) for number in (1, 2))
    assert [loop.variable for loop in first.loops] == ["t", "i"]
    assert [loop.variable for loop in second.loops] == ["t", "k"]
    texts = [[access.text for access in nest.accesses] for nest in (first, second)]
    # each statement between the loops belongs to one chain only
    assert texts == [["w[t]", "a[i-1]", "a[i+1]", "b[i]", "w[t+1]"], ["b[k]", "a[k]", "w[t+2]"]]
    assert {note.code for note in first.notes} >= {"loops-beside"}
    assert (1, second.loops[1].location) in first.between
    assert (first.inner_lines, second.inner_lines) == ((9, 10), (12, 13))
    assert nest_of(SIDE_BY_SIDE, line=13).inner == second.inner


def test_a_parameter_that_calls_give_a_size_is_that_size() -> None:
    nest = nest_of(SIDE_BY_SIDE, nest=1)
    assert str(nest.loops[0].stop) == "STEPS" and nest.defaults["STEPS"] == 10
    literal = nest_of(SIDE_BY_SIDE.replace("step(steps);", "step(7);"), nest=1)
    assert str(literal.loops[0].stop) == "steps" and literal.defaults["steps"] == 7
    twice = nest_of(SIDE_BY_SIDE.replace("step(steps);", "step(7); step(8);"), nest=1)
    assert "steps" in twice.symbols and "steps" not in twice.defaults


def test_a_loop_that_calls_functions_only_repeats_the_nest() -> None:
    text = """void dummy(double *); void f(double *a, int n, int m) {
    for (int r = 0; r < m; ++r) { double s = 2; for (int i = 0; i < n; ++i) a[i] = s; dummy(a); } }"""
    nest = nest_of(text)
    assert [loop.variable for loop in nest.loops] == ["i"]
    assert [note.code for note in nest.notes if note.code == "repeating-loop"] == ["repeating-loop"]


BRANCHES = {
    "if (a[i] > 0) b[i] = a[i] * c[i];": (["a[i]", "c[i]", "b[i]"], 0.5, ()),
    "if (a[i] > 0) b[i] = 1; else c[i] = a[i] + 1;": (["a[i]", "b[i]", "c[i]"], 0.5, ()),
    "if (a[i] > s) s = a[i];": (["a[i]"], 0, ("s",)),
    "if (a[i] > s) { s = a[i]; k = i; }": (["a[i]"], 0, ("s", "k")),
    "if (a[i] < 0) continue; b[i] = a[i] + s;": (["a[i]", "b[i]"], 0.5, ()),
    "if (a[i] < 0) goto low; b[i] = 1; low: c[i] = 2;": (["a[i]", "b[i]", "c[i]"], 0, ()),
    "switch (k) { case 1: a[i] += s; break; default: b[i] = 2; }": (["a[i]", "a[i]", "b[i]"], 1, ()),
    "if (a[i] < 0) break; s += a[i];": (["a[i]"], 1, ("s",)),
}


@pytest.mark.parametrize("body", BRANCHES)
def test_all_sides_of_branches_are_read(body: str) -> None:
    texts, flops, reductions = BRANCHES[body]
    nest = nest_of(f"void f(double *a, double *b, double *c, int n, double s, int k) {{\n"
                   f"for (int i = 0; i < n; ++i) {{ {body} }} c[0] = s + k; }}")  # fmt: skip
    assert [access.text for access in nest.accesses] == texts
    assert nest.operations.flops_per_iteration == flops
    assert nest.operations.reductions == reductions
    codes = {note.code for note in nest.notes}
    assert "branch" in codes and ("early-exit" in codes) == body.endswith("break; s += a[i];")


def test_headers_are_found_beside_the_file_and_in_folders(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "own.h").write_text("#define ELEMENT double\n")
    (tmp_path / "include" / "sizes.h").write_text(
        "#if !defined(N) && !defined(M)\n#define N 50\n#define M 60\n#endif\n"
    )
    text = "#include <own.h>\n#include <sizes.h>\nELEMENT a[N][M];\n" + (
        "void f(void) { for (int j = 0; j < N; ++j) for (int i = 0; i < M; ++i) a[j][i] = 1; }\n"
    )
    file = tmp_path / "kernel.c"
    file.write_text(text)
    found = find_nests(str(file), include=[str(tmp_path / "include")])
    assert [(one.function, one.number, one.variables) for one in found] == [("f", 1, ("j", "i"))]
    assert isinstance(found[0].nest, LoopNest) and found[0].nest.defaults == {"N": 50, "M": 60}
    # what stands beside the definition of a size that -D gives holds as well
    given = preprocess(text, str(file), {"N": 7}, [str(tmp_path / "include")])
    assert given.values == {"N": 7, "M": 60} and given.hidden
    with pytest.raises(SourceError, match=r"the elements of a are no numbers; headers were not found: <own2.h>.*-I"):
        parse_kernel(text.replace("own.h", "own2.h"), str(file), include=[str(tmp_path / "include")])


HEADER = """typedef struct { double x, y; } unused_t;
typedef enum { WIDTH = 8, HEIGHT } extent_t;
typedef double element, *elements;
static const element weights[WIDTH] = {1, 2};
int prototype(struct unknown_t x, elements n), another(void);
float called(int m), uncalled(int m);
int uncalled_too(int called, int f);
extern int (*pointer)(int), steps;
static inline element scaled(element x) { return weights[0] * x; }
static inline void fill(elements a, int n) { for (int i = 0; i < n; ++i) a[i] = scaled(1); }
static inline void broken(element *a, vector4 v) { for (int i = 0; i < 8; ++i) v[i] = not C; }
"""


@pytest.mark.parametrize(
    ("text", "own", "left_out"),
    [
        ("void f(elements a) { for (int i = 0; i < HEIGHT; ++i) a[i] = scaled(a[i]); }", ["f"], ["fill", "broken"]),
        ("void f(elements a) { for (int i = 0; i < 9; ++i) a[i] = 0; fill(a, 7); }", ["f", "f"], ["broken", "fill"]),
        ("void f(elements a) { fill(a, 7); }", ["f"], ["broken", "fill"]),
        ("void f(elements a) { a[0] = 7; }", ["fill", "broken"], []),
        ("elements a; for (int i = 0; i < 9; ++i) a[i] = steps;", [""], ["fill", "broken"]),
    ],
)
def test_functions_of_headers_are_listed_where_the_file_has_no_loop(
    tmp_path: Path, text: str, own: list[str], left_out: list[str]
) -> None:
    (tmp_path / "own.h").write_text(HEADER)
    file = tmp_path / "k.c"
    file.write_text(f'#include "own.h"\n{text}\n')
    found = list_nests(str(file))
    assert [one.function for one in found.nests] == own
    assert all(isinstance(one.nest, LoopNest) for one in found.nests if one.function != "broken")
    assert sorted(name for name, _ in found.left_out) == sorted(left_out)
    # a function that is named is read wherever it stands, and all are with `headers`
    (named,) = find_nests(str(file), function="fill")
    assert isinstance(named.nest, LoopNest) and Path(named.location.file).name == "own.h"
    listed = {one.function for one in list_nests(str(file), headers=True).nests}
    assert listed >= {"fill", "broken"} | set(own) - {""}


def test_what_a_header_declares_is_read_where_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(HEADER)
    text = '#include "own.h"\nvoid f(elements a) { for (int i = 0; i < HEIGHT; ++i) a[i] = scaled(called(i)); }'
    kept = preprocess(text, str(tmp_path / "k.c"), {}).text
    assert "weights[WIDTH]" in kept and "enum" in kept and "typedef double element" in kept
    assert "float called(int m)" in kept
    assert not any(name in kept for name in ("unused_t", "prototype", "pointer", "fill", "broken", "uncalled_too"))


def test_functions_that_are_not_called_lose_their_bodies() -> None:
    text = (
        "#define CALL helper(1)\nint helper(int a)\n{ return a; }\nint other(void) {\n return 2; }\nint f() { CALL; }\n"
    )
    kept = other_bodies_blanked(text, "f")
    assert kept.count("\n") == text.count("\n")
    assert "return a" in kept
    assert "other(void) ;" in kept and "int f() { CALL; }" in kept


def test_what_a_preprocessor_wrote_is_read() -> None:
    text = """# 1 "k.c"
# 1 "/usr/include/math.h" 1 3 4
extern double sqrt (double __x) __attribute__ ((__nothrow__ , __leaf__));
__extension__ typedef unsigned long size_t;
# 3 "k.c" 2
void f(double *__restrict a, const size_t n) { for (size_t i = 0; i < n; ++i) a[i] = sqrt(a[i]); }
"""
    assert [access.text for access in nest_of(text).accesses] == ["a[i]", "a[i]"]


CONVERGING = (
    "do {{ {} err = sqrt(err); }} while (err > tol);",
    "while (err > tol) {{ {} }}",
    "for (;;) {{ {} if (err < tol) break; }}",
    "for (int k = 1; k < n && err > tol; k++) {{ {} }}",
)


@pytest.mark.parametrize("loop", CONVERGING)
def test_loops_until_convergence_repeat_their_nests(loop: str) -> None:
    nests = """for (int j = 1; j < n - 1; j++) for (int i = 1; i < n - 1; i++) b[j][i] = a[j][i - 1] + a[j + 1][i];
    for (int j = 1; j < n - 1; j++) for (int i = 1; i < n - 1; i++) err += b[j][i];"""
    text = f"void f(double **a, double **b, int n, double err, double tol) {{ {loop.format(nests)} }}"
    first, second = (nest_of(text, nest=number) for number in (1, 2))
    assert [loop.variable for loop in first.loops] == ["j", "i"]
    # rows behind pointers lie one after the other, each as long as the loops reach
    assert [str(extent) for extent in first.arrays["a"].shape] == ["n", "n - 1"]
    assert second.operations.reductions == ("err",)
    assert {note.code for note in first.notes} == {"repeating-loop", "inferred-extent", "rows-behind-pointers"}


def test_sizes_that_are_set_elsewhere_or_in_turn() -> None:
    text = """int nx, points[3]; double u[64][64];
    void set(void) { nx = 10; points[0] = 5; }
    void f(void) {
        int lo = 1, hi = nx - 1;
        for (int i = lo; i < hi; i++) u[0][i] = 1;
        lo = 2; hi = points[0] - 1;
        for (int i = lo; i < hi; i++) u[1][i] = 2;
    }"""
    first, second = (nest_of(text, nest=number).inner for number in (1, 2))
    assert [str(first.start), str(first.stop)] == ["1", "nx - 1"]
    assert [str(second.start), str(second.stop)] == ["2", "points_0 - 1"]
    # what a branch or a loop before the nest may have set is to be given
    for before in ("if (nx > 3) lo = 4;", "for (int k = 0; k < 3; k++) lo = k;"):
        nest = nest_of(text.replace("lo = 2;", before), nest=2 + before.startswith("for"))
        assert str(nest.inner.start) == "lo"
        assert "size-from-outside" in {note.code for note in nest.notes}


def test_integers_of_loops_that_only_repeat_are_what_is_set_before_the_nest_or_to_be_given() -> None:
    text = """void note(void); double u[64];
    void f(int n, int steps) {
        int lo = 1, hi;
        for (int t = 0; t < steps; t++) {
            hi = n - 2;
            for (int i = lo; i < hi; i++) u[i] = 1;
            lo = 3; hi = 7; note();
        }
    }"""
    inner = nest_of(text).inner
    assert [str(inner.start), str(inner.stop)] == ["lo", "n - 2"]


def test_what_an_iteration_leaves_to_the_next_begins_after_the_first() -> None:
    text = """void f(int n, double *a, double *b) {
        int one = n - 1, two = n - 2;
        for (int i = 0; i < n; i++) { a[i] = b[i] + b[one] + b[two]; two = one; one = i; }
    }"""
    nest = nest_of(text)
    assert sorted(str(access.offset) for access in nest.reads()) == ["i", "i - 1", "i - 2"]
    assert nest.inner.start == 2
    assert "first-iterations" in {note.code for note in nest.notes}


def test_integers_that_an_outer_loop_sets_in_turn_are_those_before_the_inner_loop() -> None:
    text = """int points[3]; double u[64][64];
    void f(void) {
        int i, j, k;
        for (j = 0; j < 64; j++) {
            k = points[2] - 2;
            for (i = 0; i < 64; i++) u[k][i] = j;
            k = points[2] - 1;
            int l;
            for (l = 0; l < 64; l++) u[k][l] = 2;
        }
    }"""
    first, second = (nest_of(text, nest=number).writes()[0].index for number in (1, 2))
    assert [str(first[0]), str(second[0])] == ["points_2 - 2", "points_2 - 1"]


CALLS = """
#define N 64
struct cell { double u, v; };
static inline double flux(const double *p, int i, double w)
{ double d = p[i + 1] - p[i]; if (d < 0.0) return w * d; return d; }
static void put(double *q, double v) { *q = v; }
static void axpy(double *y, const double *x, double s) { for (int m = 0; m < 5; ++m) y[m] += s * x[m]; }
static void sweep(double *y) { for (int m = 0; m < N; ++m) y[m] += 1.0; }
static inline void scale(double *y, double s, int n) { for (int m = 0; m < n; ++m) y[m] *= s; }
static double count(double v) { static double total; return total += v; }
void f(double *a, double *b, double u[N][5], double v[N][5], struct cell *c)
{
    for (int i = 0; i < N - 1; ++i) BODY
}
"""


@pytest.mark.parametrize(
    ("body", "loops", "accesses", "flops"),
    [
        ("b[i] = flux(a, i, 0.5) * 2.0;", "i", {"a r i + 1", "a r i", "b w i"}, 2.5),
        ("put(&b[i], a[i]);", "i", {"a r i", "b w i"}, 0),
        ("put(&c[i].v, a[i]);", "i", {"a r i", "c w 2*i + 1"}, 0),
        ("axpy(u[i], v[i], a[0]);", "i m", {"a r 0", "u r 5*i + m", "v r 5*i + m", "u w 5*i + m"}, 2),
        ("scale(a, 2.0, N);", "i m", {"a r m", "a w m"}, 1),
    ],
)
def test_functions_of_the_file_are_inlined(body: str, loops: str, accesses: set[str], flops: float) -> None:
    nest = parse_kernel(CALLS.replace("BODY", body), "x.c", {}, function="f")
    assert " ".join(loop.variable for loop in nest.loops) == loops
    assert {f"{access.array} {access.kind[0]} {access.offset}" for access in nest.accesses} == accesses
    assert nest.operations.flops_per_iteration == flops


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sweep(a);", "the call of sweep, which has loops of its own.*--function sweep"),
        ("count(a[i]);", "the call of count is not inlined: it calls functions that are not known, or has labels"),
        ("other(&a[i]);", "the call of other, whose code is elsewhere, is given &a"),
        ("other(b + i);", "the call of other, whose code is elsewhere, is given b"),
        ("c->call(a[i]);", "the call of a function pointer"),
    ],
)
def test_calls_that_are_not_inlined_say_why(body: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        parse_kernel(CALLS.replace("BODY", body), "x.c", {}, function="f")


def test_inline_functions_with_loops_are_nests_of_who_calls_them() -> None:
    text = CALLS.replace("BODY", "a[i] = 0;\n    scale(b, 2.0, N);").replace("static double count", "double count")
    found = [parse_kernel(text, "x.c", {}, function="f", nest=number) for number in (1, 2)]
    assert [[loop.variable for loop in nest.loops] for nest in found] == [["i"], ["m"]]
    assert {access.array for access in found[1].accesses} == {"b"}


@pytest.mark.parametrize(
    ("body", "accesses"),
    [
        ("double *a = (double *)p, *c = q; for (i = 0; i < n; ++i) c[i] = a[i];", {"p r i", "q w i"}),
        (
            "double (*a)[n] = p; double (*c)[n] = q; for (i = 0; i < n; ++i) c[1][i] = a[i][0];",
            {"p r i*n", "q w i + n"},
        ),
        ("for (i = 0; i < n; ++i) ((float *)q)[i] = ((const double *)p)[i];", {"p r i", "q w i"}),
        (
            "const double *a = p; double *b = (double *)p + 1, *c = q; for (i = 0; i < n; ++i) c[i] = a[i] + b[i];",
            {"p r i", "p r i + 1", "q w i"},
        ),
        (
            "double *a = p, *c = q; if (!p) return; a = a + 2; for (i = 0; i < n; ++i) c[i] = a[i];",
            {"p r i + 2", "q w i"},
        ),
    ],
)
def test_parameters_of_type_void_have_the_type_to_which_they_are_converted(body: str, accesses: set[str]) -> None:
    nest = parse_kernel(f"void f(int n, const void *p, void *q) {{ int i; {body} }}", "x.c", {})
    assert {f"{access.array} {access.kind[0]} {access.offset}" for access in nest.accesses} == accesses


@pytest.mark.parametrize(
    "body",
    [
        "double *a = p; float *b = p; for (int i = 0; i < n; ++i) a[i] = b[i];",
        "double *a = (double *)((char *)p + 8), *b = p; for (int i = 0; i < n; ++i) a[i] = b[i];",
        "double *a = p; if (n > 9) a = q; for (int i = 0; i < n; ++i) a[i] = 1;",
    ],
)
def test_parameters_of_type_void_with_several_types_are_refused(body: str) -> None:
    with pytest.raises(SourceError, match="pointers are not followed"):
        parse_kernel(f"void f(int n, void *p, double *q) {{ {body} }}", "x.c", {})


def test_inline_assembly_matters_only_where_a_nest_executes_it() -> None:
    text = """typedef unsigned long u64;
    static inline u64 ticks(void) { u64 t; __asm__ __volatile__ ("rdtsc )" : "=a" (t)); return t; }
    int other(int n) __asm__("other_name");
    u64 f(int n, double *a) { register long r asm("eax") = 3; u64 t = ticks();
        for (int i = 0; i < n; i++) a[i] = 2.0 * a[i];
        return ticks() - t; }
    void g(int n, double *a) { for (int i = 0; i < n; i++) { a[i] = 2.0 * a[i]; asm volatile("nop"); } }
    """
    assert parse_kernel(text, "x.c", {}, function="f").operations.flops_per_iteration == 1
    with pytest.raises(SourceError, match=r"x\.c:7:.*the call of asm"):
        parse_kernel(text, "x.c", {}, function="g")


def test_the_lines_to_choose_from_are_those_that_the_table_shows() -> None:
    with pytest.raises(SourceError, match=r"2 loop nests: 1 at x\.c:9:9, 2 at x\.c:12:9"):
        nest_of(SIDE_BY_SIDE)
    assert [found.location.line for found in find_nests_of(SIDE_BY_SIDE)] == [9, 12]


def find_nests_of(text: str) -> tuple[FoundNest, ...]:
    return find_nests(GivenText(text), {}, function="step")


def test_functions_that_return_pointers_are_inlined() -> None:
    text = """double *row(double *a, int j) { if (j > 3) return a + 8; return a; }
    void f(int n, double *a) { for (int i = 0; i < n; i++) { double *p = row(a, i); a[i] = 1.0; } }"""
    (found,) = find_nests(GivenText(text), {}, function="f")
    assert isinstance(found.nest, LoopNest) and {one.array for one in found.nest.accesses} == {"a"}


def test_headers_of_older_text_quoted_standard_headers_and_compilers(tmp_path: Path) -> None:
    (tmp_path / "old.h").write_bytes(b"/* f\xfcr */\n#define N 10\n")
    text = """#include "old.h"
    #include "math.h"
    #ifndef __GNUC__
    #error another compiler
    #endif
    void f(double *a) { for (int i = 0; i < N; i++) a[i] = sqrt(__builtin_expect(a[i] > 0, 1) ? a[i] : 0.0); }"""
    (tmp_path / "k.c").write_text(text)
    (found,) = find_nests(str(tmp_path / "k.c"))
    assert isinstance(found.nest, LoopNest) and found.nest.defaults["N"] == 10


def test_a_structure_of_cxx_may_stand_behind_a_macro() -> None:
    loop = "void f(double *a) { for (int i = 0; i < LAST; i++) a[i] = 0; }"
    text = f"namespace a {{}}\n#define LAST 3\n\nstruct pair {{ int a; }};\n{loop}"
    (found,) = find_nests(GivenText(text))
    assert isinstance(found.nest, LoopNest)


def test_types_of_parameters_may_stand_behind_their_names(tmp_path: Path) -> None:
    text = """/* as before 1989 */
update(n, s, x, y)
double s, x[], *y;
int n;
{ int i;
  for (i = 0; i < n; i++) y[i] = y[i] + s * x[i]; }
static double sum(n, a) int n; register double **a;
{ int i; double s = 0; for (i = 0; i < n; i++) s += a[0][i]; return s; }
"""
    (tmp_path / "k.c").write_text(text)
    first, second = find_nests(str(tmp_path / "k.c"))
    assert isinstance(first.nest, LoopNest) and isinstance(second.nest, LoopNest)
    assert (first.location.line, second.location.line) == (6, 8)
    assert first.nest.operations.flops_per_iteration == 2 and second.nest.operations.flops_per_iteration == 1
    assert first.nest.text.count("\n") == text.count("\n")


MIXED = """#include <there/is_none.h>
#include "nor_this.h"
typedef struct { Comm comm; int n; double *u; } grid_t;
struct other { Request r[4]; };
int exchange(grid_t *g, Status *s);
void members(grid_t *g, double *restrict b) { Request r; for (int i = 0; i < g->n; i++) b[i] = 2.0 * g->u[i]; }
void typed(Long n, Real *x) { Long i; for (i = 0; i < n; i++) x[i] = 0.0; }
void wrong(int n, double *x) { for (int i = 0; i < n; i++) x[i] = = 0.0; }
void plain(int n, double *x) { for (int i = 0; i < n; i++) x[i] = 1.0; }
"""


def test_what_cannot_be_read_costs_its_own_function_alone() -> None:
    found = {one.function: one.nest for one in find_nests(GivenText(MIXED))}
    assert [name for name, nest in found.items() if isinstance(nest, LoopNest)] == ["members", "plain"]
    assert ":7:36: the type of i, Long, is not known; headers were not found: <there/is_none.h>" in str(found["typed"])
    assert ":8:67: syntax error" in str(found["wrong"])
    plain = parse_kernel(MIXED, "x.c", {}, function="plain")
    assert {note.where.line for note in plain.notes if note.code == "missing-header"} == {2}  # type: ignore[union-attr]
    with pytest.raises(SourceError, match=r"x\.c:8:67: syntax error"):
        parse_kernel(MIXED, "x.c", {}, function="wrong")
    with pytest.raises(SourceError, match=r"4 functions have loops: .*wrong \(not read: x\.c:8:67: syntax error"):
        parse_kernel(MIXED, "x.c")


def test_nests_in_the_cases_of_a_switch_stand_under_its_condition() -> None:
    text = """void f(int kind, int n, double *x) { switch (kind) {
    case 1: for (int i = 0; i < n; i++) x[i] = 1.0; break;
    default: for (int i = 0; i < n; i++) x[i] += 2.0; } }"""
    for number in (1, 2):
        nest = nest_of(text, nest=number)
        assert [note.where.line for note in nest.notes if note.code == "branch"] == [1]  # type: ignore[union-attr]


GLOBALS = """
int n = 100; int half = n / 2; int rows; static const int columns = 7;
enum { FIRST = 3, LAST }; double x[200], y[200]; double *p = x; void set(int k) { n = k; }
"""
FUNCTIONS = (
    "void reads(void) { for (int i = FIRST; i < n; i++) x[i] = p[i]; }",
    "void writes(int k) { n = k; if (k > 3) n = k / 2; for (int i = 0; i < n; i++) x[i] = 1.0; }",
    "void through(int k) { n = k; if (k > 3) n = 9; for (int i = LAST; i < half; i++) x[i] = 1.0; }",
    "void hides(int half, double *x) { double *p = y; for (int i = 0; i < half; i++) x[i] = p[i]; }",
    "void sets(void) { rows = 5; p = y; for (int i = 0; i < rows; i++) x[i] = p[i]; }",
    "void last(void) { for (int i = 0; i < rows; i++) for (int j = 0; j < columns; j++) x[i * columns + j] = p[j]; }",
    "void twice(void) { rows = 5; for (int i = 0; i < rows; i++) y[i] = p[i]; rows = 6; for (int i = 0; i < rows; i++) "
    "y[i] += x[i]; }",
)


@pytest.mark.parametrize("order", [FUNCTIONS, FUNCTIONS[::-1]], ids=["as-written", "reversed"])
def test_a_function_says_nothing_of_the_variables_of_the_file_in_another(
    order: tuple[str, ...], tmp_path: Path
) -> None:
    def nests_of(text: str) -> list[FoundNest]:
        (tmp_path / "x.c").write_text(GLOBALS + text)
        return list(find_nests(str(tmp_path / "x.c")))

    together = nests_of("\n".join(order))
    alone = [one for number, function in enumerate(order) for one in nests_of("\n" * number + function)]
    assert len(alone) == 8 and [told(one) for one in together] == [told(one) for one in alone]
    bounds = {one.function: str(one.nest.loops[0].stop) for one in together if isinstance(one.nest, LoopNest)}
    assert bounds["reads"] == "n" and bounds["hides"] == "half" and bounds["sets"] == "5"
    # a function that sets n twice does not find what it was declared with
    assert bounds["through"] == "floor(n/2)" and bounds["last"] == "rows"


def told(one: FoundNest) -> tuple[object, ...]:
    """What is read of a nest, without the text of its file."""
    nest = one.nest
    read = (str(nest),) if isinstance(nest, SourceError) else (nest.loops, nest.arrays, nest.accesses, nest.defaults)
    return one.function, one.location, *read


def test_a_copy_of_a_tree_has_its_own_parts_once_each() -> None:
    function = parse_program("struct pair { int k; } a, b; void f(int n) { int i = n, j = 2; }", "x.c", {}).functions[0]
    kind = c_ast.Struct("pair", None)
    block = c_ast.Compound([c_ast.Typedef("one", [], [], kind), c_ast.Typedef("two", [], [], kind), function])
    copy = copied(block)
    assert copy.block_items[0].type is copy.block_items[1].type is not kind
    assert c_generator.CGenerator().visit(copy) == c_generator.CGenerator().visit(block)
    assert not {id(node) for node in walk(copy)} & {id(node) for node in walk(block)}
    assert [node.coord for node in walk(copy)] == [node.coord for node in walk(block)]


def test_operations_between_loops_are_told_of() -> None:
    text = """void f(int n, float *restrict y, const float *x, const float *d) {
    for (int i = 0; i < n; ++i) { float s = 0; for (int k = 0; k < 8; ++k) s += x[8 * i + k]; y[i] = 2 * s * d[i]; }}"""
    nest = parse_kernel(text, "x.c")
    told = [note.text for note in nest.notes if note.code == "flop-between-loops"]
    assert nest.operations.flops_per_iteration == 1 and len(told) == 1 and told[0].startswith("2 floating-point")
