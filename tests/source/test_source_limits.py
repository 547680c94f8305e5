"""C sources that would fill the memory, take for ever, or end in an error of ours."""

from __future__ import annotations

import pytest

from kernmodel import limits
from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.source.load import parse_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.source.parse.preprocess import preprocess

KERNEL = "#define N 100\ndouble a[N], b[N];\nfor (int i = 0; i < N; ++i) a[i] = {};\n"
OBJECTS = "#define A0 b[i] +\n" + "".join(f"#define A{n} {' '.join([f'A{n - 1}'] * 8)}\n" for n in range(1, 10))
FUNCTIONS = "#define A0(x) x+x\n" + "".join(f"#define A{n}(x) {'+'.join([f'A{n - 1}(x)'] * 8)}\n" for n in range(1, 10))
NESTED = "#define E(x) x+x\n#define F(x) E(E(E(E(x))))\n#define G(x) F(F(F(F(x))))\n"


@pytest.mark.parametrize(
    "text",
    [OBJECTS + KERNEL.format("A9 0"), FUNCTIONS + KERNEL.format("A9(b[i])"), NESTED + KERNEL.format("G(G(G(b[i])))")],
    ids=["objects", "functions", "nested"],
)
def test_macros_that_grow(text):
    with pytest.raises(SourceError, match=r"k\.c:\d+: one macro expands to more than 20,000 tokens; split it, or lift"):
        preprocess(text, "k.c", {})


def test_nests_of_very_many_references():
    arrays = "".join(f"double a{k}[10];\n" for k in range(1001))
    body = " ".join(f"a{k}[i] = 1;" for k in range(1001))
    text = f"{arrays}for (int i = 0; i < 10; ++i) {{ {body} }}\n"
    with pytest.raises(UnsupportedKernelError, match=r"k\.c:1002:1: the nest has 1,001 different array"):
        parse_kernel(text, "k.c")


@pytest.mark.thorough
def test_long_expressions_and_sources(monkeypatch):
    with pytest.raises(SourceError, match=r"k\.c:3: an expression has more than 5,000 tokens; split it, or lift"):
        parse_kernel(KERNEL.format(" + ".join(["b[i]"] * 20_000)), "k.c")
    parse_kernel(KERNEL.format(" + ".join(["b[i]"] * 300)), "k.c")
    table = f"double t[3000] = {{{', '.join(['1.0'] * 3000)}}};\n"
    parse_kernel(table + KERNEL.format("b[i]"), "k.c")
    with limits.restored():
        limits.lift()
        assert len(preprocess(KERNEL.format(" + ".join(["b[i]"] * 2000)), "k.c", {}).text) > 12_000


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("#if 1 << 99999999999\n#endif\n" + KERNEL.format("1"), r"k\.c:1: the condition of a preprocessor line"),
        ("#if 1 << -1\n#endif\n" + KERNEL.format("1"), r"k\.c:1: the condition of a preprocessor line"),
        ("double a[9]; for (int i = 0; i < " + "9" * 5000 + "; ++i) a[i] = 0;", r"k\.c:1:34: the constant 9"),
        ("double a[9]; for (unsigned long i = 0; i < 18446744073709551615ul; ++i) a[0] = 0;", "trip count is beyond"),
        ("double a[9]; for (long i = 0; i < 9223372036854775808; ++i) a[0] = 0;", "trip count is beyond"),
        (
            "double a[9]; for (int i = 1; i < 9; ++i) { double t[i]; t[0] = a[i]; a[i] = t[0]; }",
            r"k\.c:1:51: the length of t changes with i; declare it before the loops",
        ),
    ],
)
def test_what_used_to_be_an_error_of_ours(text, what):
    with pytest.raises(SourceError, match=what):
        sizes_of(parse_kernel(text, "k.c"), {})


@pytest.mark.parametrize("rest", ["void f(double *a) {{ {} }}", "void f(double *a) {{ {}", "{}"])
def test_a_brace_that_nothing_opened(rest):
    loop = "for (int i = 0; i < 9; ++i) a[i] = 0;"
    with pytest.raises(SourceError, match=r"k\.c:2:3: a } that nothing opened"):
        parse_kernel("double a[9];\n  }\n" + rest.format(loop), "k.c")


def test_a_shift_that_c_has():
    assert "double q" in preprocess("#if (1 << 3) == 8\ndouble q[9];\n#endif\n", "k.c", {}).text
