"""C for the compiler: whole functions as they stand, bare nests wrapped so that nothing is dropped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.source.emit.compilable import compilable_source, function_name
from kernmodel.source.emit.whole_function import compilable_function, compiler_defines, quick_compilable
from kernmodel.source.load import parse_kernel

BARE = """#define T 16
double a[M][N], b[M][N]; const double c = 0.25; double s; float t;
double sum, first = 1.0;
int i, j;
#pragma omp parallel for
for (j = 1; j < M - 1; ++j)
    for (i = 1; i < N - T; i++) {
        b[j][i] = c * (a[j][i - 1] + a[j][i + 1]) + sqrt(s);
        sum += b[j][i] * t;
        first = first * s;
    }
"""


def compiles(text: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source = folder / "generated.c"
    source.write_text(text)
    command = ["gcc", "-Wall", "-Werror", "-O2", "-S", "-o", "-", *flags, str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_bare_nest_becomes_a_function_that_keeps_its_results(tmp_path: Path) -> None:
    nest = parse_kernel(BARE, "dir/two-words.c", {"N": 200})
    text = compilable_source(nest, {"N": 200})
    assert function_name(nest) == "kernel_two_words"
    assert "double a[restrict M][N]" in text and "double *restrict sum_result" in text
    assert "*sum_result = sum;" in text and "double first = 1.0;" in text
    assert '#line 6 "dir/two-words.c"' in text
    done = compiles(text, tmp_path, "-DN=200", "-DM=100")
    assert done.returncode == 0, done.stderr
    # both reductions are stored, so the optimiser keeps their arithmetic
    assert "mulsd" in done.stdout and "addsd" in done.stdout


def test_chosen_nest_of_a_bare_text_is_the_only_one() -> None:
    text = "double a[9], b[9]; for (int i=0;i<9;++i) a[i]=1; for (int k=0;k<9;++k) b[k]=2;"
    generated = compilable_source(parse_kernel(text, "x.c", nest=2))
    assert "b[k] = 2" in generated and "a[i] = 1" not in generated


def test_messages_of_the_compiler_point_into_the_users_file(tmp_path: Path) -> None:
    nest = parse_kernel(
        "double a[9];\n\nfor (int i = 0; i < 9; ++i)\n  a[i] = unknown;\n".replace("unknown", "1"), "user.c"
    )
    text = compilable_source(nest).replace("a[i] = 1", "a[i] = unknown")
    assert "user.c:4" in compiles(text, tmp_path).stderr


def test_whole_function_keeps_its_lines_and_loses_its_linkage() -> None:
    text = "static inline void f(double *x)\n{\n    for (int i = 0; i < 9; ++i) x[i] = 0;\n}\n"
    assert compilable_function(text, "x.c") == text.replace("static inline", "             ")


def test_given_macros_win_over_unguarded_definitions(tmp_path: Path) -> None:
    text = "#define N 10 \\\n  + 1\nvoid f(double *x) { for (int i = 0; i < N; ++i) x[i] = sqrt(N); }\n"
    generated = compilable_function(text, "x.c", ["N"])
    assert "#define" not in generated
    assert generated.endswith(text[text.index("void") :])
    assert generated.startswith('#include <math.h>\n#line 1 "x.c"\n')
    assert compiles(generated, tmp_path, "-DN=20").returncode == 0


def test_parameters_are_not_given_to_the_compiler() -> None:
    head = "#define M 4\nvoid f(int n, const double *restrict x, double (*a)[M])"
    text = head + "{ for (size_t i = 0; i < K; ++i) a[i][0] = x[n]; }"
    assert compiler_defines(text, {"n": 100, "M": 5, "K": 7, "i": 3}) == {"M": "5", "K": "7"}
    listed = "void f(int n, double x[N]) { int j = 0, *p, k; for (k = j; k < n; ++k) x[k] = K; }"
    assert compiler_defines(listed, {"k": 1, "p": 2, "n": 3, "N": 4, "K": 5}) == {"N": "4", "K": "5"}
    elsewhere = (
        "void f(count_type N, Real *a) { count_type i, M = 2; for (i = 0; i < N; i++) a[i] = (i * K) + M; return K; }"
    )
    assert compiler_defines(elsewhere, {"N": 100, "M": 3, "K": 5}) == {"K": "5"}
    made = "#define MAKE(T, name) \\\nvoid name(int n, T *x, int step) \\\n{ x[n * step * K] = 0; }\nMAKE(double, f)\n"
    assert compiler_defines(made, {"n": 1, "step": 2, "K": 5}) == {"K": "5"}


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("void f(void)\n{\n}\n", True),
        ("double a[9];\nfor (int i = 0; i < 9; ++i) { a[i] = 0; }\n", False),
        ("double a[9]; // void f(void) {\nfor (int i = 0; i < 9; ++i) a[i] = 0;\n", False),
        ("#define F(x) { x }\ndouble s; for (int i = 0; i < 9; ++i) { if (s) { s = 1; } }", False),
        ("struct S { double v; };\nint f(struct S s) { return 0; }", True),
    ],
)
def test_whole_functions_are_recognised_without_a_parser(text: str, whole: bool, tmp_path: Path) -> None:
    file = tmp_path / "k.c"
    file.write_text(text)
    assert (quick_compilable(str(file)) is not None) == whole


def test_quick_way_imports_neither_parser_nor_sympy() -> None:
    code = (
        "import sys; from kernmodel.source.emit.whole_function import quick_compilable as f; assert f('stencil');"
        "print([m for m in ('sympy', 'pycparser', 'pcpp', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("defines", [{}, {"COUNT": 500}])
def test_static_variables_of_headers_are_not_taken_for_constants(defines: dict[str, int], tmp_path: Path) -> None:
    state = '#pragma once\n#include "other.h"\n#ifndef COUNT\n#define COUNT 400\n#endif\nstatic int points[3];\n'
    (tmp_path / "state.h").write_text(state + "static double u[COUNT], v[COUNT];\n")
    (tmp_path / "other.h").write_text('#pragma once\n#include "state.h"\n')
    (tmp_path / "k.c").write_text(
        """#include "state.h"
        #include "state.h"
        static void add(void) { for (int i = 1; i <= points[0] - 2; i++) u[i] = u[i] + v[i]; }
        int main(void) { points[0] = COUNT; add(); return 0; }
        """
    )
    nest = km.Nest(tmp_path / "k.c", function="add")
    assert km.ecm(nest, "clx", points_0=300, **defines).answer.loop.instructions
