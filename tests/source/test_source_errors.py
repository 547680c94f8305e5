"""Bad input: each message says where, what and what to do, and none is a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.errors import InputError, SourceError, UnsupportedKernelError
from kernmodel.source.emit.whole_function import quick_compilable
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.sizes import sizes_of

PARAMETERS = "int n, double a[restrict 50][100], double *restrict x, double **p, struct S *t, int *restrict k, double s"


def function(statements: str) -> str:
    return f"struct S {{ double v; }};\nvoid kernel({PARAMETERS})\n{{\n{statements}\n}}\n"


UNSUPPORTED = {
    "for (int i = 0; i < n; ++i) x[i * i] = s;": ("4:29", "index x[i*i] is not affine"),
    "for (int j = 0; j < n; ++j) for (int i = 0; i < n; ++i) x[i * j] = s;": ("4:57", "index x[i*j] is not affine"),
    "for (int i = 0; i < n; ++i) x[i * i / 2] = s;": ("4:31", "i*i/2, of what is not affine"),
    "for (int i = 1; i < n; ++i) x[n % i] = s;": ("4:31", "n%i, a remainder by what changes"),
    "for (int i = 0; i < n; ++i) x[(int)(s * i)] = s;": ("4:37", "variable s, which is no integer"),
    "for (int i = 0; i < n; ++i) { while (x[i] > 0) x[i] -= s; }": ("4:31", "while in a loop nest"),
    "for (int i = 0; i < n; ++i) { x[i] = s; break; }": ("4:41", "break ends the loop in its first iteration"),
    "for (int i = 0; i < n; ++i) { x[i] = s; goto out; } out: ;": ("4:41", "goto ends the loop in its first iteration"),
    "int i = 0; while (x[i] < s) { x[i] = s; ++i; }": ("4:12", "a while loop is not supported"),
    "for (int i = 0; i < n; ++i) x[i] = foo(x, s);": ("4:36", "the call of foo, whose code is elsewhere, is given x"),
    "if (n > 3) x += n; for (int i = 0; i < n; ++i) x[i] = s;": ("4:12", "the pointer x is set here (x += n)"),
    "if (n > 3) x = a[0]; for (int i = 0; i < n; ++i) x[i] = s;": ("4:12", "the pointer x is set here (x = a[0])"),
    "int at = 0; for (int i = 0; i < n; ++i) { x[at] = s; at += i; }": ("4:45", "the variable at, which changes"),
    "double *q = align(x); for (int i = 0; i < n; ++i) x[i] = q[i];": ("4:8", "q comes from a call that is given x"),
    "for (int i = 0; i < n; ++i) a[i] = s;": ("4:29", "a has 2 dimension(s) but 1 index(es)"),
    "for (int i = 0; i < n; ++i) s[i] = 1;": ("4:29", "s is indexed, but it is no array"),
    "for (int i = 0; i < n; ++i) s += x;": ("4:34", "the array x is used without an index"),
    "for (int i = 0; i < n; --i) x[i] = s;": ("4:17", "steps away from its bound"),
    "for (int i = 1; i < n; i *= 2) x[i] = s;": ("4:1", "does not step i by a constant"),
    "for (int i = 0; i < n; i += 0) x[i] = s;": ("4:1", "step of i is not a constant other than 0"),
    "for (int i = 0; ; ++i) x[i] = s;": ("4:1", "no condition"),
    "for (int i = 0; x[i] < s; ++i) x[i] = s;": ("4:17", "read from memory"),
    "for (int i = 0; 2 * i < n; ++i) x[i] = s;": ("4:17", "does not bound i itself"),
    "for (double i = 0; i < n; i += 1) x[0] = s;": ("4:13", "loop variable i is no integer"),
    "for (int i = 0; i < n; ++i) { x[i] = s; i++; }": ("4:41", "loop variable i is changed"),
    "for (int j = 0; j < n; ++j) for (int i = 0; i < j * j; ++i) x[i] = s;": ("4:45", "bound j**2"),
    "for (int i = 0; i < n; ++i) for (int i = 0; i < n; ++i) x[i] = s;": (
        "4:29",
        "two loops of the nest use the variable i",
    ),
    "for (int i = 0; i < n; ++i) { again: x[i] = s; if (x[i] > 1) goto again; }": ("4:31", "do-while in a loop nest"),
    "for (int i = 0; i < n; ++i) { again: x[i] = s; if (s < x[i]) goto again; if (x[i] > 1) goto again; }": (
        "4:62",
        "goto again jumps back",
    ),
    "for (int i = 0; i < n; ++i) x[i] = *(&s);": ("4:39", "an address that is computed"),
}


@pytest.mark.parametrize("statements", UNSUPPORTED)
def test_unsupported_c_is_refused_with_place_and_advice(statements: str) -> None:
    place, message = UNSUPPORTED[statements]
    with pytest.raises(UnsupportedKernelError) as caught:
        parse_kernel(function(statements), "x.c")
    text = str(caught.value)
    assert text.startswith(f"x.c:{place}: ") and message in text
    assert caught.value.todo
    assert caught.value.exit_status == 1


MALFORMED = {
    "for (int i = 0; i < n; ++i) x[i] = s + ;": "x.c:4:40: syntax error",
    "for (int i = 0; i < n; ++i) { x[i] = s;": "x.c:5:1: syntax error",
    "for (int i = 0; i < n; ++i) x[i] = ss;": "x.c:4:36: variable ss is not declared; did you mean s",
    "for (int i = 0; i < n; ++i) z[i] = s;": "x.c:4:29: array z is not declared",
    "for (int i = 0; i < n; ++i) x[i + off] = s;": (
        "x.c:4:35: variable off is not declared; declare it, or define it with -D off="
    ),
    "for (i = 0; i < n; ++i) x[i] = s;": "x.c:4:6: variable i is not declared",
    "x[0] = s;": "x.c: has no loop",
    "for (int i = 0; i < n; ++i) x[i] = s;\nfor (int i = 0; i < n; ++i) x[i] = 0;": (
        "x.c: kernel: 2 loop nests: 1 at x.c:4:1, 2 at x.c:5:1; choose one with --nest K"
    ),
    "for (int i = 0; i < n; i += STEP) x[i] = s;": (
        "x.c:4:29: macro or parameter STEP, by which a loop steps, has no value; give -D STEP="
    ),
    "\n#error no\nfor (int i = 0; i < n; ++i) x[i] = s;": "x.c:5: #error no",
    '\n#include "nothing.h"\nfor (int i = 0; i < n; ++i) x[i] = some;': (
        'x.c:6:36: variable some is not declared; headers were not found: "nothing.h" (x.c:5); give their folder'
    ),
    "\n#if (\n#endif\nfor (int i = 0; i < n; ++i) x[i] = s;": "x.c:5: the condition of a preprocessor line",
    "\n#if 1\nfor (int i = 0; i < n; ++i) x[i] = s;": "x.c:5: unterminated #if",
    f"for (int i = 0; i < n; ++i) x[i] = {'(' * 2000}s{')' * 2000};": "x.c: is nested too deeply",
}


@pytest.mark.parametrize("statements", MALFORMED)
def test_malformed_source_is_refused(statements: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_kernel(function(statements), "x.c")
    assert str(caught.value).startswith(MALFORMED[statements])
    assert caught.value.exit_status == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.c: is empty"),
        ("/* only */ // this\n", "x.c: is empty"),
        ("#include <iostream>\nvoid f() {}\n", "x.c:1: is C++ (#include <iostream>)"),
        ("\ntemplate <typename T> void f(T *a) {}\n", "x.c:2: is C++ (template <)"),
        ("void f(std::vector<double> &a) {}", "x.c:1: is C++ (std::)"),
        ("class Grid {\n};\n", "x.c:1: is C++ (class Grid {)"),
        ("      subroutine add(a)\n      do i = 1, n\n", "x.c:1: is Fortran (subroutine add)"),
        ("x = 1\ndo i = 1, n\nend do\n", "x.c:2: is Fortran (do i =)"),
        ("hello world\n", "x.c:1:7: syntax error"),
    ],
)
def test_other_languages_are_named(text: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_kernel(text, "x.c")
    assert str(caught.value).startswith(message)


def test_words_of_other_languages_in_comments_do_not_count() -> None:
    text = "/* class Foo { std::vector, end do */\nvoid f(double *x) { for (int i = 0; i < 9; ++i) x[i] = 0; }"
    assert parse_kernel(text, "x.c").name == "f"


@pytest.mark.parametrize("load", [load_kernel, quick_compilable])
def test_files_that_hold_no_c(load: object, tmp_path: Path) -> None:
    assert callable(load)
    cases: dict[str, tuple[bytes, str]] = {
        "a.cpp": (b"int x;", "is C++"),
        "a.f90": (b"end", "is Fortran"),
        "a.c": (b"\x7fELF\0\0", "is a binary file"),
        "b.c": (b"/* \xff */", "is empty"),
        "c.c": (b" \n", "is empty"),
    }
    for name, (data, message) in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(SourceError, match=message.replace("+", r"\+")):
            load(str(tmp_path / name))
    with pytest.raises(InputError, match="no such kernel"):
        load(str(tmp_path / "missing.c"))
    with pytest.raises(InputError, match="is a directory"):
        load(str(tmp_path))


def test_missing_kernel_names_the_nearest() -> None:
    with pytest.raises(InputError, match="stencil") as caught:
        load_kernel("stensil.c")
    assert caught.value.exit_status == 1


TWO = "void f(double *x) { for (int i=0;i<9;++i) x[i]=0; }\nvoid g(double *x) { for (int i=0;i<9;++i) x[i]=0; }"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({}, "2 functions have loops: f at x.c:1:6, g at x.c:2:6; choose one with --function NAME"),
        ({"function": "h"}, "there is no function h; choose among f, g"),
        ({"function": "g", "nest": 2}, "there is no loop nest 2; choose among 1 at x.c:2:21"),
        ({"function": "g", "nest": 0}, "there is no loop nest 0"),
    ],
)
def test_choices_that_cannot_be_made(choice: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_kernel(TWO, "x.c", **choice)  # type: ignore[arg-type]
    assert message in str(caught.value)


STENCIL = "double a[M][N]; double b[M][N]; for (int j=1; j<M-1; ++j) for (int i=1; i<N-1; ++i) b[j][i] = a[j+1][i];"


@pytest.mark.parametrize(
    ("defines", "message"),
    [
        ({"N": 100}, "x.c: macro or parameter M has no value; give -D M=…"),
        ({"N": 0, "M": 5}, "-D N=0: the size N is 0; give a positive whole number"),
        ({"N": -5, "M": 5}, "-D N=-5: the size N is -5"),
        ({"N": 9, "M": 9, "K": 3}, "-D K=3: x has no macro or parameter K; its sizes are M, N"),
        ({"N": 2**40, "M": 2**30}, "x.c: sizes overflow: the array a is beyond 2^63"),
        ({"N": 9, "M": 2}, "x.c:1:33: the loop over j executes no iteration at M=2, N=9"),
        ({"N": 2, "M": 9}, "x.c:1:59: the loop over i executes no iteration"),
    ],
)
def test_sizes_that_make_no_sense(defines: dict[str, int], message: str) -> None:
    nest = parse_kernel(STENCIL, "x.c")
    with pytest.raises(SourceError) as caught:
        sizes_of(nest, defines)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_status == 1


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        (
            "for (int i = 0; i < N; ++i) x[i] = x[i - 1];",
            "x.c:1:47: x[i-1] is out of bounds: the index i - 1 runs from -1 to 8",
        ),
        ("for (int i = 0; i <= N; ++i) x[i] = 1;", "x.c:1:41: x[i] is out of bounds: the index i runs from 0 to 10"),
        (
            "for (int i = 0; i < N; i += 4) x[i + 2] = 1;",
            "x.c:1:43: x[i+2] is out of bounds: the index i + 2 runs from 2 to 10",
        ),
        ("for (int j = 0; j < N; ++j) for (int i = j; i < j + 2; ++i) x[i] = 1;", "x.c:1:72: x[i] is out of bounds"),
    ],
)
def test_index_out_of_bounds_at_the_sizes(loops: str, message: str) -> None:
    nest = parse_kernel(f"double x[N];{loops}", "x.c")
    with pytest.raises(SourceError) as caught:
        sizes_of(nest, {"N": 10})
    assert message.split(": ", 1)[1] in str(caught.value)
    assert str(caught.value).startswith("x.c:1:")


def test_too_many_iterations_overflow() -> None:
    nest = parse_kernel("double x[8]; for (int j=0; j<N; ++j) for (int i=0; i<N; ++i) x[0] = 1;", "x.c")
    with pytest.raises(SourceError, match="sizes overflow: the number of iterations"):
        sizes_of(nest, {"N": 2**32})


def test_define_that_is_no_integer() -> None:
    text = "#ifndef N\n#define N 5000\n#endif\ndouble a[N]; for (int i = 0; i < N; ++i) a[i] = 1;"
    with pytest.raises(SourceError, match=r"-D N=abc is no integer, but N is a size \(5000 by default\)"):
        parse_kernel(text, "x.c", {"N": "abc"})


def test_step_that_was_fixed_cannot_change_later() -> None:
    nest = parse_kernel("#define T 4\ndouble a[64]; for (int i = 0; i < 64; i += T) a[i] = 1;", "x.c")
    assert sizes_of(nest, {"T": 4}) == {}
    with pytest.raises(SourceError, match="T is the step of a loop, or an exponent, and was read as 4, not 8"):
        sizes_of(nest, {"T": 8})


def test_a_size_that_is_an_exponent_takes_its_value() -> None:
    text = "#define LOG 5\ndouble a[1 << LOG]; for (int i = 0; i < 1 << LOG; i += 2) a[i] = 1;"
    for defines, end in (({}, 32), ({"LOG": 7}, 128)):
        nest = parse_kernel(text, "x.c", defines)
        assert nest.loops[0].stop == end and nest.defaults["LOG"] == defines.get("LOG", 5)
        assert any("LOG is an exponent" in note.text for note in nest.notes)
    with pytest.raises(SourceError, match="LOG is the step of a loop, or an exponent, and was read as 5, not 6"):
        sizes_of(parse_kernel(text, "x.c"), {"LOG": 6})
    with pytest.raises(SourceError, match="macro or parameter m, by which 1<<m shifts, has no value"):
        parse_kernel("void f(double *a, int m) { for (int i = 0; i < 1 << m; i++) a[i] = 1; }", "x.c")


@pytest.mark.parametrize(
    "statements",
    [
        "double *q = x + 5; for (int i = 0; i < n; ++i) x[i] = s;",  # which the nest does not use
        "double *q = 0; q = malloc(8 * n); for (int i = 0; i < n; ++i) x[i] = q[i];",
        "double *q; for (int i = 0; i < n; ++i) x[i] = a[0][i]; q = x; x = a[0]; x++;",
        "double *q = __builtin_assume_aligned(x, 64); for (int i = 0; i < n; ++i) q[i] = s;",
        "swap(&x, &k); for (int i = 0; i < n; ++i) x[i] = s; swap(&x, &k);",
    ],
)
def test_pointers_that_do_not_matter_to_the_nest_may_change(statements: str) -> None:
    assert parse_kernel(function(statements), "kernel.c", {}).loops


def test_a_syntax_error_in_the_only_function_is_told() -> None:
    with pytest.raises(SourceError, match=r"t\.c:2:\d+: syntax error"):
        parse_kernel("void f(int n, double *a) {\n  if (n) int = 0; {\n    a[0] = 1; } }\n", "t.c")


def test_loops_that_count_nothing_name_the_option_that_counts_them() -> None:
    text = "void f(double *a, int n) {\nfor (int i = 0; i < n; i++)\ndo a[i] *= 0.5; while (a[i] > 1.0);\n}"
    with pytest.raises(SourceError, match=r"do-while in a loop nest .*--trip-count 3=N"):
        parse_kernel(text, "x.c")


def test_an_error_of_a_header_names_the_header_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text('#include "config.h"\n#ifndef WIDTH\n#error no width\n#endif\n')
    text = '#include "own.h"\nvoid f(double *a, int n) { for (int i = 0; i < n; i++) a[i] = WIDTH; }'
    with pytest.raises(SourceError, match=r"own\.h:3: #error no width; headers were not found: .*config\.h.* -D NAME"):
        parse_kernel(text, str(tmp_path / "x.c"))
    (tmp_path / "config.h").write_text("")
    with pytest.raises(SourceError, match=r"own\.h:3: #error no width; define what the file asks for with -D NAME"):
        parse_kernel(text, str(tmp_path / "x.c"))
    assert parse_kernel(text, str(tmp_path / "x.c"), {"WIDTH": 8}).loops
