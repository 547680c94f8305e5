"""Iterations per pass of whole kernels, and the balance of what a pass does with the source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernmodel.code.compile import FoundCompiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.code.match import choose_loop
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import AssemblyError, Note
from kernmodel.source.emit.compilable import compilable_source
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.studies.predict.expectation import expectation

AVX512 = "-O3 -march=cascadelake"
NESTS = {
    "shared stream": "c[i] += a[j][i] * b[i];",
    "only shared streams": "c[i] += x[j] * b[i];",
    "stream read twice": "c[i] += a[j][i] * a[j][i] * b[i];",
    "transposed": "c[i] += t[i][j] * b[i];",
    "rows of a stencil": "s[j][i] = r[j][i] + r[j + 1][i] + r[j + 2][i];",
    "update of what moves": "s[j][i] += x[j] * b[i];",
}


def nest(body: str) -> str:
    return (
        "#define N 1000\n#define M 200\n"
        "double a[M][N], s[M][N], r[M + 2][N], t[N][M], b[N], c[N], d[N], x[M];\n"
        f"for (int j = 0; j < M; ++j)\n  for (int i = 0; i < N; ++i) {{ {body} }}\n"
    )


def assembly(file: Path, text: str, flags: str, compiler: str = "gcc", nest: int | None = None) -> str:
    """What the compiler makes of a kernel."""
    command = shutil.which(compiler) or shutil.which(f"{compiler}-19")
    if command is None:
        pytest.skip(f"no {compiler} on this system")
    file.write_text(text)
    source = compilable_source(load_kernel(str(file), nest=nest))
    found = FoundCompiler(compiler, command, ())
    return start_compile(source, name="k.c", compiler=found, flags=tuple(flags.split()), defines={}).finish().text


def matched(file: Path, text: str, code: str, flags: str = "") -> AssemblyLoop:
    """The loop of `code` that executes the kernel `text`."""
    file.write_text(text)
    kernel = load_kernel(str(file))
    told = expectation(kernel, sizes_of(kernel, {}), flags.split())
    return choose_loop(read_listing(code, "k.s"), told)


# each number is the source's iterations divided by how often the loop's head executed (benchmarks/loop_counting.py)
@pytest.mark.parametrize(
    ("name", "iterations"),
    [
        ("shared stream", 16),
        ("only shared streams", 16),
        ("stream read twice", 16),
        ("transposed", 2),
        ("rows of a stencil", 24),
        ("update of what moves", 4),
    ],
)
def test_jammed_iterations_are_counted_by_what_a_pass_loads_stores_and_computes(
    name: str, iterations: int, tmp_path: Path
) -> None:
    text = nest(NESTS[name])
    code = assembly(tmp_path / "k.c", text, AVX512)
    found = matched(tmp_path / "k.c", text, code, AVX512)
    assert found.iterations_per_pass == iterations
    codes = {note.code for note in found.notes}
    assert codes <= {"outer-loop-unrolled"}
    assert (codes == set()) == (name == "update of what moves")


def test_exchanged_loops_are_counted_along_the_loop_that_became_the_innermost(tmp_path: Path) -> None:
    text = (
        "#define N 400\ndouble a[N][N], b[N][N], c[N][N];\nfor (int i = 0; i < N; ++i) for (int j = 0; j < N; ++j)"
        " for (int k = 0; k < N; ++k) c[i][j] += a[i][k] * b[k][j];\n"
    )
    flags = "-Ofast -march=haswell"
    found = matched(tmp_path / "k.c", text, assembly(tmp_path / "k.c", text, flags), flags)
    assert found.iterations_per_pass == 4
    assert [note.code for note in found.notes] == ["loops-exchanged"]


def line(expression: str) -> str:
    return f"#define N 4000\ndouble a[N], b[N], c[N], d[N], s;\nfor (int i = 1; i < N - 1; ++i) a[i] = {expression};\n"


@pytest.mark.parametrize(
    ("source", "compiled", "words"),
    [
        ("b[i] + c[i]", "b[i] + s * c[i]", "8 add and mul operations in a pass, 4 in 4 iterations"),
        ("b[i] + s * c[i]", "b[i] + c[i]", "4 add and mul operations in a pass, 8 in 4 iterations"),
        ("b[i] + c[i]", "b[i] + c[i] * d[i]", "96 B loaded in a pass with a stride of +32 B, 64 in 4 iterations"),
        ("b[i] + c[i]", "b[i] + s", "32 B loaded in a pass with a stride of +32 B, 64 in 4 iterations"),
        ("b[i] / c[i]", "b[i] + c[i]", "0 div operations in a pass, 4 in 4 iterations"),
        ("b[i] / s", "sqrt(b[i]) / s", "4 sqrt operations in a pass, 0 in 4 iterations"),
    ],
)
def test_code_of_another_kernel_that_moves_alike_is_told_with_both_counts(
    source: str, compiled: str, words: str, tmp_path: Path
) -> None:
    flags = "-O3 -march=haswell -fno-math-errno"
    code = assembly(tmp_path / "k.c", line(compiled), flags)
    found = matched(tmp_path / "k.c", line(source), code, flags)
    doubts = [n for n in found.notes if n.code in ("bytes-per-pass", "operations-per-pass") and n.kind == "warning"]
    assert any(words in note.text for note in doubts), found.notes


@pytest.mark.parametrize(
    ("expression", "flags", "compiler"),
    [
        ("0.3 * (b[i - 1] + b[i] + b[i + 1])", "-O3 -march=haswell -fno-vectorize", "clang"),  # kept in registers
        ("0.3 * (b[i - 1] + b[i] + b[i + 1])", AVX512, "gcc"),
        ("b[i] * (s * s + 2.0)", "-O3 -march=haswell", "clang"),  # computed once
        ("(b[i] + c[i]) * (b[i] + c[i])", "-O2", "gcc"),  # computed once an iteration
        ("b[i] / 4.0 + 1.0 * c[i]", "-O3 -march=haswell", "gcc"),  # a product, and nothing
        ("b[i] > 0.5 ? b[i] * c[i] : b[i] - c[i]", "-O3 -march=haswell", "gcc"),  # both sides, blended
        ("b[i] + (float) c[i]", "-O3 -march=haswell", "clang"),
        ("a[i - 1] * 0.5 + a[i]", "-O3 -march=haswell", "gcc"),  # forwarded from the store
    ],
)
def test_what_compilers_save_is_no_doubt(expression: str, flags: str, compiler: str, tmp_path: Path) -> None:
    code = assembly(tmp_path / "k.c", line(expression), flags, compiler)
    found = matched(tmp_path / "k.c", line(expression), code, flags)
    assert [note for note in found.notes if note.code != "conditional-blocks"] == []


def test_arithmetic_that_fast_math_saves_is_an_assumption(tmp_path: Path) -> None:
    text = line("b[i] * b[i] * b[i] * b[i] * b[i] * b[i] * b[i] * b[i]")
    for flags, kinds in (("-O2", []), ("-O2 -ffast-math", ["assumption"])):
        code = assembly(tmp_path / "k.c", text, flags)
        notes: list[Note] = list(matched(tmp_path / "k.c", text, code, flags).notes)
        assert [note.kind for note in notes if note.code == "operations-per-pass"] == kinds
        assert len(notes) == len(kinds)


FILTER = (
    "#define N 200\n#define F {0}\n{1} out[N][N], in[N + F][N + F], w[F][F];\n"
    "void f(void) {{ for (int y = 0; y < N; y++) for (int x = 0; x < N; x++) {{ {1} s = 0;\n"
    "for (int dy = 0; dy < F; dy++) for (int dx = 0; dx < F; dx++) s += in[y + dy][x + dx] * w[dy][dx];\n"
    "out[y][x] = s; }} }}\n"
)
ROWS_OUTSIDE = (
    "#define N 3000\ndouble a[{0}][{0}], x[{0}][N], y[{0}][N];\nvoid f(void) {{ for (int n = 0; n < N; n++)\n"
    "for (int i = 0; i < {0}; i++) for (int j = 0; j < {1}; j++) y[i][n] += a[i][j] * x[j][n]; }}\n"
)


# counted by benchmarks/loop_counting.py, too
@pytest.mark.parametrize(
    ("text", "flags", "variable", "iterations"),
    [
        pytest.param(FILTER.format(5, "float"), "-O3 -march=haswell", "x", 8 * 25, id="filter 5x5"),
        pytest.param(FILTER.format(7, "double"), "-O3 -march=haswell", "x", 4 * 49, id="filter 7x7"),
        pytest.param(FILTER.format(5, "int"), AVX512, "x", 8 * 25, id="filter 5x5, integers"),
        pytest.param(ROWS_OUTSIDE.format(3, 3), "-O3 -march=haswell", "n", 4 * 9, id="matrix times vectors"),
        pytest.param(
            "double l[500][5][5], x[500][5];\nvoid f(void) { for (int n = 0; n < 500; n++)\n"
            "for (int i = 0; i < 5; i++) for (int j = 0; j < i; j++) x[n][i] -= l[n][i][j] * x[n][j]; }\n",
            *("-O3 -march=haswell", "n", 10),
            id="triangular systems, of which vectors load elements in vain",
        ),
        pytest.param(ROWS_OUTSIDE.format(4, "i + 1"), "-O3 -march=haswell", "n", 10, id="triangle times vectors"),
    ],
)
def test_all_loops_that_are_unrolled_within_another_count(
    text: str, flags: str, variable: str, iterations: int, tmp_path: Path
) -> None:
    found = matched(tmp_path / "k.c", text, assembly(tmp_path / "k.c", text, flags), flags)
    assert (found.variable, found.iterations_per_pass) == (variable, iterations)
    assert [note.code for note in found.notes] == ["inner-loop-unrolled"]


@pytest.mark.parametrize(
    ("rows", "variable", "longest"),
    [
        ("for (int i = 0; i < 64; ++i) for (int j = i; j < 64; ++j) y[j] += a[0][i][j] * x[i];", "i", 64),
        (
            "for (int i = 0; i < 20; i++) for (int j = 0; j <= i; j++) for (int k = j; k <= i; k++) s += a[i][j][k];",
            *("j", 20),
        ),
    ],
)
def test_rows_of_a_triangle_that_are_unrolled_entirely_begin_further_at_each_step(
    rows: str, variable: str, longest: int, tmp_path: Path
) -> None:
    text = f"double a[64][64][64], x[64], y[64], s;\nvoid f(void) {{ {rows} }}\n"
    flags = "-O3 -march=haswell"
    found = matched(tmp_path / "k.c", text, assembly(tmp_path / "k.c", text, flags), flags)
    assert (found.variable, found.iterations_per_pass) == (variable, longest)
    (note,) = (note for note in found.notes if note.code == "inner-loop-unrolled")
    assert f"up to {longest} inner iterations" in note.text


def test_versions_of_a_body_that_a_test_for_overlap_chooses_count_once(tmp_path: Path) -> None:
    """The test stays within the loop over j, since the loop over i is unrolled entirely in both versions."""
    text = (
        "#define N 16\nvoid f(double a[N][N][N][N], double b[N][N][N][N]) { for (int l = 1; l < N - 1; l++)\n"
        "for (int k = 1; k < N - 1; k++) for (int j = 1; j < N - 1; j++) for (int i = 1; i < N - 1; i++)\n"
        "b[l][k][j][i] = a[l][k][j][i] + a[l - 1][k][j][i] + a[l + 1][k][j][i] + a[l][k - 1][j][i] + a[l][k + 1][j][i]"
        "+ a[l][k][j - 1][i] + a[l][k][j + 1][i] + a[l][k][j][i - 1] + a[l][k][j][i + 1]; }\n"
    )
    flags = "-O3 -march=haswell"
    found = matched(tmp_path / "k.c", text, assembly(tmp_path / "k.c", text, flags), flags)
    assert (found.variable, found.iterations_per_pass) == ("j", 14)
    assert {note.code for note in found.notes} == {"fallback-loop", "inner-loop-unrolled"}
    assert sum(reference.written for one in found.instructions for reference in one.memory) == 4


def test_numbers_of_the_x87_unit_fill_their_elements(tmp_path: Path) -> None:
    text = "#define N 500\nlong double a[N], b[N];\nfor (int i = 0; i < N; ++i) a[i] = b[i] * 2.0L;\n"
    found = matched(tmp_path / "k.c", text, assembly(tmp_path / "k.c", text, "-O2"), "-O2")
    assert found.iterations_per_pass == 1 and not found.notes


def test_a_loop_that_is_unrolled_within_one_that_has_others_is_refused_with_the_flag_that_keeps_it(
    tmp_path: Path,
) -> None:
    file, flags = tmp_path / "k.c", "-O3 -march=haswell"
    file.write_text(
        "#define N 40\nvoid f(double r[N], double y[N], double z[N]) { for (int k = 1; k < N; k++) { double s = 0;\n"
        "for (int i = 0; i < k; i++) s += r[k - i - 1] * y[i];\n"
        "for (int i = 0; i < k; i++) z[i] = y[i] + s * y[k - i - 1];\ny[k] = s; } }\n"
    )
    first, code = load_kernel(str(file), nest=1), assembly(file, file.read_text(), flags, nest=1)
    with pytest.raises(AssemblyError, match="--param=max-completely-peel-times=1"):
        choose_loop(read_listing(code, "k.s"), expectation(first, sizes_of(first, {}), flags.split()))
    flags += " --param=max-completely-peel-times=1"
    code = assembly(file, file.read_text(), flags, nest=1)
    found = choose_loop(read_listing(code, "k.s"), expectation(first, sizes_of(first, {}), flags.split()))
    assert found.iterations_per_pass == 4 and found.variable is None
