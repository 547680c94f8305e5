"""Members, arrays of structures, unions, and loops that count without being plain: read, and their traffic by hand."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.errors import UnsupportedKernelError
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest

TYPES = """
typedef struct { double x, y, z; } Vec;
typedef struct { Vec at, speed; double mass; int id; } Part;
typedef struct { int n; double dt; double *u; double v[5000]; Part *cells; struct { double a; } in; } Grid;
union either { double d; long l; float f[2]; };
struct mixed { char tag; short s; float w; };
"""
Reads = tuple[tuple[str, str, str], ...]
CASES: dict[str, tuple[Reads, int]] = {
    # references as (text, kind, offset in parts of the structure), FLOP per iteration
    "void f(Part *restrict p, int n) { for (int i = 0; i < n; i++) p[i].at.x += 2.0 * p[i].speed.y; }": (
        (("p[i].speed.y", "read", "8*i + 4"), ("p[i].at.x", "read", "8*i"), ("p[i].at.x", "write", "8*i")),
        2,
    ),
    "void f(Part *p, int n) { for (int i = 0; i < n; i++, p++) p->mass *= 0.5; }": (
        (("p->mass", "read", "8*i + 6"), ("p->mass", "write", "8*i + 6")),
        1,
    ),
    "void f(Part *p, int n) { for (int i = 0; i < n; i++) { Part *q = &p[i]; q->mass = q->id; } }": (
        # an integer of four bytes among doubles: the parts are four bytes long
        (("q->id", "read", "16*i + 14"), ("q->mass", "write", "16*i + 12")),
        0,
    ),
    "void f(Grid *g) { for (int i = 0; i < g->n; i++) g->u[i] = g->v[i] * g->dt + g->in.a; }": (
        (("g->v[i]", "read", "i"), ("g->u[i]", "write", "i")),
        2,
    ),
    "void f(Grid *g) { for (int i = 0; i < g->n; i++) g->cells[i].mass = 1.0; }": (
        (("g->cells[i].mass", "write", "8*i + 6"),),
        0,
    ),
    "void f(union either *b, int n) { for (int i = 0; i < n; i++) b[i].d += 1.0; }": (
        (("b[i].d", "read", "i"), ("b[i].d", "write", "i")),
        1,
    ),
    "void f(struct mixed *b, int n) { for (int i = 0; i < n; i++) b[i].w += 1.0f; }": (
        (("b[i].w", "read", "2*i + 1"), ("b[i].w", "write", "2*i + 1")),
        1,
    ),
    "void f(Vec *a, const Vec *b, int n) { for (int i = 0; i < n; i++) a[i] = b[i]; }": (
        tuple(
            each
            for k in range(3)
            for each in (
                (f"b[i][{k}]" if not k else f"b[i][0+{k}]", "read", f"3*i + {k}" if k else "3*i"),
                (f"a[i][{k}]" if not k else f"a[i][0+{k}]", "write", f"3*i + {k}" if k else "3*i"),
            )
        ),
        0,
    ),
    "void f(double *p, double *q, int n) { while (n--) *p++ = 2.0 * *q++; }": (
        (("*(q++)", "read", "n - n_left - 1"), ("*(p++)", "write", "n - n_left - 1")),
        1,
    ),
    "void f(double *a, int n) { int i = 1; while (i < n) { a[i] += a[i - 1]; i += 2; } }": (
        (("a[i-1]", "read", "i - 1"), ("a[i]", "read", "i"), ("a[i]", "write", "i")),
        1,
    ),
    "void f(double *a, int n) { int i = 0; do { a[i] = 1.0; ++i; } while (i < n); }": ((("a[i]", "write", "i"),), 0),
    "void f(double *a, int n) { for (int i = n; i-- > 0;) a[i] *= 2.0; }": (
        (("a[i]", "read", "i"), ("a[i]", "write", "i")),
        1,
    ),
    "void f(float *x, int n) { int *p = (int *)x; for (int i = 0; i < n; i++) { p[i] += 3; x[i] *= 2.0f; } }": (
        (("p[i]", "read", "i"), ("p[i]", "write", "i")),  # the same element, twice
        1,
    ),
    "void f(float a[][64], int n) { for (int i = 0; i < n; i++) *(int *)&a[i][3] |= ((int *)a[i])[5]; }": (
        (
            ("((int*) a[i])[5]", "read", "64*i + 5"),
            ("*((int*) (&a[i][3]))", "read", "64*i + 3"),
            ("*((int*) (&a[i][3]))", "write", "64*i + 3"),
        ),
        0,
    ),
    "void f(int *k, int n) { for (int i = 0; i < n; i++) { float t = 2.0f; int u = *(int *)&t; k[i] = u + i; } }": (
        (("k[i]", "write", "i"),),
        0,
    ),
    "void f(double *a, double *b, int n) { int i, k; for (i = 0, k = 4; i < n; i++, k += 2) a[i] = b[k]; }": (
        (("b[k]", "read", "2*i + 4"), ("a[i]", "write", "i")),
        0,
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_references_and_operations_as_counted_by_hand(code: str) -> None:
    references, flops = CASES[code]
    nest = parse_kernel(TYPES + code, "x.c", {})
    assert tuple((access.text, access.kind, str(access.offset)) for access in nest.accesses) == references
    assert nest.operations.flops_per_iteration == flops


LINES = {
    # lines between L1 and L2 a step: loaded, stored; a structure of 64 bytes is one line
    "void f(Part *restrict p, int n) { for (int i = 0; i < n; i++) p[i].at.x += 2.0 * p[i].speed.y; }": (1.0, 1.0),
    "void f(Part *p, int n) { for (int i = 0; i < n; i++, p++) p->mass *= 0.5; }": (1.0, 1.0),
    "void f(Vec *a, const Vec *b, int n) { for (int i = 0; i < n; i++) a[i] = b[i]; }": (0.75, 0.375),
    "void f(double *p, double *q, int n) { while (n--) *p++ = 2.0 * *q++; }": (0.25, 0.125),
    "void f(double *a, int n) { for (int i = n; i-- > 0;) a[i] *= 2.0; }": (0.125, 0.125),
    "void f(Grid *g) { for (int i = 0; i < g->n; i++) g->cells[i].mass = 1.0; }": (1.0, 1.0),
}


@pytest.mark.parametrize("code", LINES)
def test_traffic_by_hand_by_conditions_and_by_simulation(code: str) -> None:
    size = "g_n" if "g->n" in code else "n"
    for mode in ("lc", "sim"):
        traffic = km.data_traffic(TYPES + code, "clx", cache=mode, sizes={size: 400_000}).answer.traffic  # type: ignore[arg-type]
        path, unit = traffic.paths[0], traffic.iterations_per_unit
        assert (path.loads / unit, path.stores / unit) == pytest.approx(LINES[code], rel=0.02)


def test_what_is_known_of_no_structure_is_named() -> None:
    bits = "struct b { int low : 3; int high : 5; double x; }; void f(struct b *p, int n)"
    for text in (
        f"{bits} {{ for (int i = 0; i < n; i++) p[i].x = 1.0; }}",
        "struct p { int a; double x; } __attribute__((packed)); void f(struct p *p, int n)"
        "{ for (int i = 0; i < n; i++) p[i].x = 1.0; }",
        "struct far; void f(struct far *p, int n) { for (int i = 0; i < n; i++) p[i].x = 1.0; }",
    ):
        with pytest.raises(UnsupportedKernelError, match=r"the member p\[i\]\.x"):
            parse_kernel(text, "x.c", {})


def test_loops_that_do_not_count_stay_refused() -> None:
    for body in (
        "int i = 0; while (i < n) { if (a[i] > 0) i++; a[i] = 1.0; }",
        "int i = 0; while (i < n) { if (a[i] > 0) continue; a[i] = 1.0; i++; }",
    ):
        with pytest.raises(UnsupportedKernelError, match="while loop"):
            parse_kernel(f"void f(double *a, int n) {{ {body} }}", "x.c", {})


def test_pointers_to_known_structures_are_these() -> None:
    text = """typedef struct { int dim, hidden; } conf_t;
    typedef struct { float *x, *q, *w; } state_t;
    typedef struct { conf_t c; state_t s; } model_t;
    void f(model_t *m, float *restrict out) {
        conf_t *p = &m->c; state_t *s = &m->s; float *x = s->x; int dim = p->dim;
        for (int l = 0; l < 4; l++)
            for (int i = 0; i < p->hidden; i++) {
                float *row = s->w + l * p->hidden, v = 0;
                for (int j = 0; j < dim; j++) v += row[j] * x[j] + s->x[j];
                out[i] = v; } }"""
    nest = parse_kernel(text, "x.c")
    assert {one.array: str(one.offset) for one in nest.reads()} == {"m->s.w": "j + l*m_c_hidden", "m->s.x": "j"}
    assert str(nest.loops[2].stop) == "dim" and nest.operations.flops_per_iteration == 3


def test_a_pointer_that_is_set_to_a_member_is_the_array_of_the_member() -> None:
    text = "struct s { double *x; }; void f(struct s *p, int n) { double *a = p->x; %s }"
    for code in ("for (int i = 0; i < n; i++) a[i] += p->x[i];", "for (int i = 0; i < n; i++) p->x[i] += a[i + 1];"):
        assert set(parse_kernel(text % code, "x.c").arrays) == {"p->x"}


def test_arrays_behind_two_pointers_in_rows_of_counted_length() -> None:
    text = """
    struct cells { int n; int *count; };
    struct atoms { double (*r)[3]; double *u; };
    struct state { struct cells *cells; struct atoms *atoms; };
    void move(struct state *s, int cells, double dt)
    {
        for (int c = 0; c < cells; ++c)
            for (int at = 16 * c, i = 0; i < s->cells->count[c]; ++i, ++at)
                s->atoms->r[at][0] += dt * s->atoms->u[at];
    }
    """
    nest = parse_kernel(text, "x.c")
    assert [(one.array, one.kind, str(one.offset)) for one in nest.accesses] == [
        ("s->cells->count", "read", "c"),
        ("s->atoms->u", "read", "16*c + i"),
        ("s->atoms->r", "read", "48*c + 3*i"),
        ("s->atoms->r", "write", "48*c + 3*i"),
    ]
    assert nest.operations.flops_per_iteration == 2


@pytest.mark.parametrize("cache", ["lc", "sim"])
def test_members_of_different_sizes_move_their_own_bytes(cache: str) -> None:
    """Each counted as the part that all of them consist of: 4 B an iteration for 25."""
    source = (
        "struct s { double x, y; float m; char t; };"
        " void f(int n, struct s *restrict p) { for (int i = 0; i < n; i++) p[i].x += p[i].y * p[i].t; }"
    )
    traffic = km.ecm(source, machine="clx", cache=cache, n=1000).answer.traffic
    moved = traffic.register_loads_bytes, traffic.register_stores_bytes
    assert [one / traffic.iterations_per_unit for one in moved] == pytest.approx([17, 8])


# as gcc 12 has it on x86-64 (sizeof, and offsetof of x)
LAYOUTS = {
    "attribute behind the members": ("typedef struct { float q[2], x; } __attribute__((aligned(16))) S;", 16, 8),
    "attribute before the name": ("struct __attribute__((aligned(32))) s { float x, y; }; typedef struct s S;", 32, 0),
    "by a macro": (
        "#define LINE 64\n#define OWN __attribute__((__aligned__(LINE)))\ntypedef struct OWN { float x; } S;",
        64, 0,
    ),
    "the largest alignment": ("typedef struct { float q, x; } __attribute__((aligned)) S;", 16, 4),
    "of a member": ("typedef struct { char c; float x __attribute__((aligned(16))), y; } S;", 32, 16),
    "of a member, in front": ("typedef struct { char c; __attribute__((aligned(8))) float x[3]; } S;", 24, 8),
    "of a typedef": (
        "typedef float wide __attribute__((aligned(16))); typedef struct { char c; wide x; } S;", 32, 16
    ),
    "less than its own is nothing": ("typedef struct { double d; float x; } __attribute__((aligned(4))) S;", 16, 8),
    "of C11": ("#include <stdalign.h>\ntypedef struct { char c; alignas(2 * sizeof(double)) float x; } S;", 32, 16),
    "of C11, by a type": ("typedef struct { char c; _Alignas(double) float x; } S;", 16, 8),
    "of Windows": ("typedef struct __declspec(align(32)) { float q, x; } S;", 32, 4),
    "other attributes": ("typedef struct { char c; float x __attribute__((unused)); } __attribute__((used)) S;", 8, 4),
    "complex numbers": ("#include <complex.h>\ntypedef struct { float complex z; char c; float x; } S;", 16, 12),
    "an enumerator": ("enum { A = 3, B = 2 * A, C }; typedef struct { char c[B], d[C]; float x; } S;", 20, 16),
    "the greater one": (
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))\ntypedef struct { char c[MAX(3, 5)]; float x; } S;", 12, 8
    ),
}  # fmt: skip


@pytest.mark.parametrize(("declared", "size", "offset"), LAYOUTS.values(), ids=LAYOUTS)
def test_where_attributes_and_alignments_put_members(declared: str, size: int, offset: int) -> None:
    text = f"{declared}\nvoid f(S *a, int n)\n{{\n    for (int i = 0; i < n; i++) a[i].x *= 2;\n}}\n"
    nest = parse_kernel(text, "x.c", {})
    (place, *_) = (access.offset for access in nest.accesses)
    (array,) = nest.arrays.values()
    first, second = (array.element.size_bytes * int(place.value({"i": i, "n": 100})) for i in (0, 1))
    assert (first, second - first) == (offset, size)


def test_a_packed_structure_of_a_header_is_refused(tmp_path) -> None:
    (tmp_path / "types.h").write_text("struct p { char c; double x; } __attribute__((packed));\n")
    text = '#include "types.h"\nvoid f(struct p *p, int n) { for (int i = 0; i < n; i++) p[i].x = 1.0; }'
    with pytest.raises(UnsupportedKernelError, match="packed"):
        parse_kernel(text, str(tmp_path / "x.c"), {})


@pytest.mark.parametrize(
    "declared",
    [
        "typedef float v4 __attribute__((vector_size(16)));",
        "typedef __attribute__((ext_vector_type(4))) float v4;",
        "typedef float base; typedef base v4 __attribute__((__vector_size__(16)));",
    ],
)
def test_vectors_of_compilers_are_no_numbers(declared: str) -> None:
    text = f"{declared}\nvoid f(v4 *restrict a, const v4 *restrict b, int n)\n{{\n"
    text += "    for (int i = 0; i < n; i++) a[i] = b[i] + b[i];\n}\n"
    with pytest.raises(UnsupportedKernelError, match="the elements of b are no numbers"):
        parse_kernel(text, "x.c", {})
    bare = f"{declared}\nv4 a[100], b[100];\nfor (int i = 0; i < 100; i++) a[i] = b[i] + b[i];\n"
    with pytest.raises(UnsupportedKernelError, match="no numbers"):
        parse_kernel(bare, "x.c", {})


def _met(i: int, j: int, test: str, steps: tuple[int, int]) -> int:
    """Iterations of a loop of two variables, counted."""
    count = 0
    while {"i < j": i < j, "i <= j": i <= j, "j > i": j > i, "j >= i": j >= i}[test]:
        i, j, count = i + steps[0], j - steps[1], count + 1
    return count


@pytest.mark.parametrize("test", ["i < j", "i <= j", "j > i", "j >= i"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (1, 3)])
@pytest.mark.parametrize("form", ["for", "while"])
def test_two_variables_that_meet_do_so_where_they_do(test: str, steps: tuple[int, int], form: str) -> None:
    step = f"i += {steps[0]}; j -= {steps[1]};"
    loop = f"for (i = 3, j = n - 1; {test}; {step[:-1].replace(';', ',')})" if form == "for" else f"while ({test})"
    body = "double t = a[i]; a[i] = b[j]; b[j] = t;"
    text = f"void f(double *a, double *b, int n) {{ int i = 3, j = n - 1; {loop} {{ {body} "
    text += "} }" if form == "for" else f"{step} }} }}"
    (loop_read,) = parse_kernel(text, "x.c", {}).loops
    for n in (5, 6, 7, 8, 100, 101, 102):
        start, stop = (int(bound.value({"n": n})) for bound in (loop_read.start, loop_read.stop))
        assert -(-(stop - start) // loop_read.step) == _met(3, n - 1, test, steps)


def test_a_bound_that_the_loop_changes_is_refused() -> None:
    text = "void f(double *a, int n) { int j = n; for (int i = 0; i < j; i++) { a[i] = 1.0; if (a[i] > 2) j--; } }"
    with pytest.raises(UnsupportedKernelError, match="j, which bounds the loop over i, is changed in the loop's body"):
        parse_kernel(text, "x.c", {})


def test_the_block_of_a_macro_of_several_statements_is_read() -> None:
    text = """#define UPDATE(a, b) do { double t = 2 * (b); (a) = t; } while (0)
    void f(double *restrict x, const double *restrict y, int n) { for (int i = 0; i < n; i++) UPDATE(x[i], y[i]); }"""
    nest = parse_kernel(text, "x.c", {})
    assert [(access.text, access.kind) for access in nest.accesses] == [("y[i]", "read"), ("x[i]", "write")]
    left = "void f(double *x, int n) { for (int i = 0; i < n; i++) do { if (x[i] > 0) break; x[i] = 1; } while (0); }"
    with pytest.raises(UnsupportedKernelError, match="do-while"):
        parse_kernel(left, "x.c", {})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("double *p = a, *q = a + n - 1; while (p < q) { *p += *q; p++; q--; }", "how often the pointer p moves"),
        (
            "int i = 0, left = n; while (left > 0) { int c = left < 64 ? left : 64;"
            " for (int k = 0; k < c; k++) a[i + k] = 1; i += c; left -= c; }",
            "c is set within the loop that is to end, or to step, by it",
        ),
    ],
)
def test_what_is_declared_is_not_said_to_be_undeclared(body: str, said: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=said):
        parse_kernel(f"void f(double *a, int n) {{ {body} }}", "x.c", {"n": 1000})


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("1 + (j & 1)", 1),
        ("1 + (j + 1) % 2", 1),
        ("2 - (j & 1)", 1),
        ("1 + ((2 * n + j) & 1)", 1),
        ("3 * (j & 1)", None),
    ],
)
def test_rows_that_begin_in_turn_within_a_step_begin_at_the_first(start: str, first: int | None) -> None:
    """A red-black sweep; rows that begin further away than a step stay refused."""
    text = f"""void f(int n, double (*restrict u)[n]) {{ for (int j = 1; j < n - 1; j++)
        for (int i = {start}; i < n - 1; i += 2) u[j][i] = 0.5 * (u[j][i-1] + u[j][i+1]); }}"""
    if first is None:
        with pytest.raises(UnsupportedKernelError, match="which loops move"):
            parse_kernel(text, "x.c", {})
        return
    nest = parse_kernel(text, "x.c", {})
    assert int(nest.loops[1].start) == first
    assert "starts-in-turn" in {note.code for note in nest.notes}
    exact = text.replace(start, "1")
    assert [str(a.offset) for a in nest.accesses] == [str(a.offset) for a in parse_kernel(exact, "x.c", {}).accesses]


@pytest.mark.parametrize(
    ("written", "alike"),
    [
        (
            "double t[3] = {b[i], 2, b[i + 1]}; a[i] = t[0] * t[2];",
            "double t[3]; t[0] = b[i]; t[1] = 2; t[2] = b[i + 1]; a[i] = t[0] * t[2];",
        ),
        (
            "double t[2][2] = {{b[i], 1}, {2, 3}}; a[i] = t[1][0];",
            "double t[2][2]; t[0][0] = b[i]; t[0][1] = 1; t[1][0] = 2; t[1][1] = 3; a[i] = t[1][0];",
        ),
        ("double t[] = {b[i], 2}; a[i] = t[1];", "double t[2]; t[0] = b[i]; t[1] = 2; a[i] = t[1];"),
        ("double t[3] = {b[i]}; a[i] = t[2];", "double t[3]; t[0] = b[i]; t[1] = 0; t[2] = 0; a[i] = t[2];"),
        ("Vec v = {b[i], 1, 2}; a[i] = v.x + v.z;", "Vec v; v.x = b[i]; v.y = 1; v.z = 2; a[i] = v.x + v.z;"),
        ("Vec v = {.z = b[i]}; a[i] = v.x + v.z;", "Vec v; v.x = 0; v.y = 0; v.z = b[i]; a[i] = v.x + v.z;"),
        ("c[i] = (Vec){b[i], 1, 2 * b[i]};", "c[i].x = b[i]; c[i].y = 1; c[i].z = 2 * b[i];"),
        ("Vec v = c[i]; a[i] = v.x + v.z;", "Vec v; v.x = c[i].x; v.y = c[i].y; v.z = c[i].z; a[i] = v.x + v.z;"),
        (
            "Vec v, w = {1, 2, b[i]}; v = w; c[i] = v;",
            "Vec v, w; w.x = 1; w.y = 2; w.z = b[i]; v.x = w.x; v.y = w.y; v.z = w.z; c[i].x = v.x; c[i].y = v.y;"
            " c[i].z = v.z;",
        ),
    ],
)
def test_initialisers_in_loops_are_assignments(written: str, alike: str) -> None:
    def read(body: str) -> LoopNest:
        head = "void f(double *a, const double *b, Vec *c, int n)"
        return parse_kernel(f"{TYPES} {head} {{ for (int i = 0; i < n; i++) {{ {body} }} }}", "x.c", {})

    one, other = read(written), read(alike)
    assert one.operations.flops == other.operations.flops
    references = [[(a.array, a.kind, str(a.offset), a.count) for a in nest.accesses] for nest in (one, other)]
    assert references[0] == references[1]
