"""Blocked nests: `tile` against a reading of `tiled_source`, and the blocked code against the original, bit for bit."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.errors import UnsupportedKernelError, UsageError
from kernmodel.machine.load import load_machine
from kernmodel.source.emit.blocked_text import tiled_source
from kernmodel.source.emit.compilable import compilable_source, function_name
from kernmodel.source.emit.default_sizes import made_for
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import shape_of
from kernmodel.source.nest.tiling import band, block_variables, inside_block, tile, whole_blocks
from kernmodel.source.parse.syntax import c_ast, parse_program
from kernmodel.traffic.conditions.layer_conditions import layer_conditions

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
BLOCKABLE = [p.stem for p in sorted(KERNELS.glob("*.c")) if band(load_kernel(str(p))).loops]
SIZES = {"N": 600, "M": 700, "L": 300, "K": 500, "T": 64}


def meaning(nest: LoopNest) -> tuple[object, ...]:
    """What two readings of the same loops have in common: all but places, macros and notes."""
    return (
        [(loop.variable, loop.start, loop.stop, loop.step) for loop in nest.loops],
        [(a.array, a.kind, a.index, a.offset, a.coefficients, a.depth, a.count, a.text, a.indirect, a.after_inner)
         for a in nest.accesses],
        {name: (found.shape, found.element) for name, found in nest.arrays.items()},
        (nest.operations, dict(nest.symbols)),
        [depth for depth, _ in nest.between],
    )  # fmt: skip


def subsets(loops: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The innermost loop, the two innermost, … all."""
    return (tuple(loops[-count:]) for count in range(1, len(loops) + 1))


# Reading again


@pytest.mark.thorough
@pytest.mark.parametrize("name", BLOCKABLE)
def test_the_blocked_source_reads_as_the_blocked_nest(name: str) -> None:
    nest = load_kernel(name)
    for loops in subsets(band(nest).loops):
        blocks = dict(zip(loops, (17, 40, 9), strict=False))
        again = parse_kernel(tiled_source(nest, blocks), nest.file)
        assert meaning(again) == meaning(tile(nest, blocks))
        assert {again.defaults[f"BLOCK_{loop.upper()}"] for loop in loops} == set(blocks.values())


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["stencil", "3d-7pt", "long-range", "iso3dfd", "matmul", "matvec-transposed", "uxx"])
def test_the_blocked_source_has_the_traffic_of_the_blocked_nest(name: str) -> None:
    nest, machine = load_kernel(name), load_machine("snb")
    blocks = dict.fromkeys(band(nest).loops[-2:], 48)
    again = parse_kernel(tiled_source(nest, blocks), nest.file)
    sizes = {symbol: SIZES[symbol] for symbol in nest.symbols}
    told, read = (layer_conditions(found, machine, sizes) for found in (tile(nest, blocks), again))
    assert told.paths == read.paths and told.iterations_per_sweep == read.iterations_per_sweep
    assert [(c.cache, c.required_bytes, c.holds) for c in told.conditions] == [
        (c.cache, c.required_bytes, c.holds) for c in read.conditions
    ]


@pytest.mark.parametrize("blocks", [{"i": 50}, {"j": 4}, {"j": 4, "i": 50}])
@pytest.mark.parametrize("clause", ["", " collapse(2)"])
def test_a_pragma_stays_with_its_loop(blocks: dict[str, int], clause: str) -> None:
    text = f"""double a[M][N], b[M][N];
        #pragma omp parallel for{clause}
        for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[j][i];"""
    nest = parse_kernel(text, "copy.c")
    blocked, read = tile(nest, blocks), parse_kernel(tiled_source(nest, blocks), "blocked.c")
    assert blocked.parallel is not None and read.parallel is not None
    assert (blocked.parallel.loop, blocked.parallel.collapse) == (read.parallel.loop, read.parallel.collapse)
    assert blocked.loops[blocked.parallel.loop].variable == "j"


def test_a_blocked_kernel_equals_the_one_written_by_hand() -> None:
    by_hand = load_kernel("stencil-blocked", {"T": 512})
    renamed = {"ii": "i_block"}
    blocked = tile(load_kernel("stencil"), {"i": 512})
    assert [loop.variable for loop in blocked.loops] == [renamed.get(v.variable, v.variable) for v in by_hand.loops]
    assert [a.coefficients for a in blocked.accesses] == [a.coefficients for a in by_hand.accesses]
    assert str(blocked.loops[-1].stop) == str(by_hand.loops[-1].stop).replace("ii", "i_block")


def test_iterations_are_kept() -> None:
    machine = load_machine("snb")
    nest = load_kernel("3d-7pt")
    sizes = {"N": 101, "M": 53, "L": 37}
    counts = {
        layer_conditions(tile(nest, blocks), machine, sizes).iterations_per_sweep
        for blocks in ({"i": 7}, {"j": 11, "i": 200}, {"k": 1, "j": 1, "i": 1})
    }
    assert counts == {99 * 51 * 35}


# Inside one block


@pytest.mark.parametrize(
    ("name", "loops", "carrier", "leading"),
    [
        ("stencil", ["i"], "j", "32*B_i"),
        ("2d-5pt", ["i"], "j", "24*B_i"),
        ("3d-7pt", ["j"], "k", "32*B_j*N"),
        ("3d-7pt", ["i", "j"], "k", "32*B_i*B_j"),
        ("long-range", ["i"], "j", "152*B_i"),
        ("matmul", ["k", "i"], "j", "8*B_i*B_k"),
    ],
)
def test_conditions_inside_a_block_are_formulas_in_its_size(
    name: str, loops: list[str], carrier: str, leading: str
) -> None:
    nest = load_kernel(name)
    inside, symbols = inside_block(nest, loops)
    assert {variable: str(symbol) for variable, symbol in symbols.items()} == {v: f"B_{v}" for v in loops}
    assert len(inside.loops) == len(nest.loops)
    assert all(array.shape == nest.arrays[key].shape for key, array in inside.arrays.items())
    sizes = {key: SIZES.get(key, 100) for key in inside.symbols}
    found = layer_conditions(inside, load_machine("snb"), sizes).conditions
    condition = next(c for c in found if c.cache == "L1" and any(r.carried_by == carrier for r in c.reuses))
    assert leading in str(condition.required_bytes).split(" + ")
    for symbol in map(str, symbols.values()):
        largest = condition.breaks_at[symbol]
        assert largest is not None and symbol in condition.solved[symbol]
        for size, holds in ((largest, True), (largest + 1, False)):
            fits = condition.required_bytes.value({**sizes, symbol: size}) <= condition.capacity_bytes
            assert fits is holds or (size == 0 and holds)


def test_names_of_blocks_are_fresh() -> None:
    text = "#define MIN 3.0\ndouble a[N][M]; int i_block, BLOCK_I, B_i;"
    nest = parse_kernel(f"{text} for (int j = 0; j < N; ++j) for (int i = 0; i < M; ++i) a[j][i] = MIN;", "k.c")
    assert tile(nest, {"i": 4}).loops[0].variable == "i_block2"
    assert str(inside_block(nest, ["i"])[1]["i"]) == "B_i2"
    written = tiled_source(nest, {"i": 4})
    assert "#define BLOCK_I2 4" in written and "i_block2 + BLOCK_I2" in written and "#define BLOCK_MIN(x, y)" in written
    assert meaning(parse_kernel(written, "k.c")) == meaning(tile(nest, {"i": 4}))


# Refusals


def test_bad_blocks() -> None:
    nest = load_kernel("matmul-blocked")
    with pytest.raises(UsageError, match=r"matmul_blocked has no loop x; choose among its loops kk, ii, j, k, i"):
        tile(nest, {"x": 3})
    with pytest.raises(UsageError, match=r"kk of matmul_blocked may not be blocked: the bounds .* block j, k, i"):
        inside_block(nest, ["kk"])
    with pytest.raises(UsageError, match=r"block size of i is 0"):
        tiled_source(nest, {"i": 0})
    with pytest.raises(UsageError, match=r"iterations pass on sum.* none of its loops may be blocked"):
        tile(load_kernel("dot"), {"i": 4})


@pytest.mark.parametrize(
    ("macro", "inner"),
    [
        ("#define LOOP(v, n) for (int v = 0; v < n; ++v)", "LOOP(i, N)"),
        ("#define RANGE int i = 0; i < N", "for (RANGE; ++i)"),
        ("#define END N && i < 5", "for (int i = 0; i < END; ++i)"),
        ("", "for (int i = 0, k = 1; i < N; ++i)"),
    ],
)
def test_headers_that_cannot_be_rewritten(macro: str, inner: str) -> None:
    text = f"#define N 9\n{macro}\ndouble a[N][N]; for (int j = 0; j < N; ++j) {inner} a[j][i] = 1;"
    nest = parse_kernel(text, "k.c")
    with pytest.raises(UnsupportedKernelError, match=r"write (it|the headers) out"):
        tiled_source(nest, {"i": 4})


def test_an_included_loop_cannot_be_rewritten(tmp_path: Path) -> None:
    (tmp_path / "loop.h").write_text("for (int i = 0; i < N; ++i) a[j][i] = 1;\n")
    text = 'double a[N][N];\nfor (int j = 0; j < N; ++j)\n#include "loop.h"\n'
    nest = parse_kernel(text, str(tmp_path / "k.c"), {"N": 9})
    with pytest.raises(UnsupportedKernelError, match=r"loop\.h:1:1: the header of the loop over i"):
        tiled_source(nest, {"i": 4})


# The text


def test_the_text_of_the_user_stays() -> None:
    text = (KERNELS / "3d-7pt.c").read_text()
    written = tiled_source(load_kernel("3d-7pt"), {"j": 64})
    assert written.splitlines()[:14] == text.splitlines()[:14]
    assert "#ifndef BLOCK_J\n#define BLOCK_J 64\n#endif\n#define MIN(x, y) ((x) < (y) ? (x) : (y))\n\nvoid" in written
    body = """{
    for (int j_block = 1; j_block < M - 1; j_block += BLOCK_J)
        for (int k = 1; k < L - 1; ++k)
            for (int j = j_block; j < MIN(j_block + BLOCK_J, M - 1); ++j)
                for (int i = 1; i < N - 1; ++i)
                    b[k][j][i] = c0 * a[k][j][i]
                               + c1 * (a"""
    assert body in written


def test_pragmas_stay_above_their_loop_and_tabs_stay_tabs() -> None:
    text = (
        "void f(double a[64][64])\r\n{\r\n\tint i;\r\n#pragma omp parallel for \\\r\n\tprivate(i)\r\n"
        "\tfor (int j = 1; j < 64; j++) {\r\n\r\n#ifdef X\r\n#endif\r\n\t\t/* for (;;) */ for (i = 0; i < 64; i++)\r\n"
        "\t\t\ta[j][i] = 1;\r\n\t}\r\n}\r\n"
    )
    written = tiled_source(parse_kernel(text, "k.c"), {"i": 16})
    assert "\n" not in written.replace("\r\n", "")
    assert written.endswith(
        "{\n\tint i;\n\tfor (int i_block = 0; i_block < 64; i_block += BLOCK_I) {\n#pragma omp parallel for \\\n"
        "\t\tprivate(i)\n\t\tfor (int j = 1; j < 64; j++) {\n\n#ifdef X\n#endif\n\t\t\t/* for (;;) */ "
        "for (i = i_block; i < MIN(i_block + BLOCK_I, 64); i++)\n\t\t\t\ta[j][i] = 1;\n\t\t}\n\t}\n}\n".replace(
            "\n", "\r\n"
        )
    )


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("flags", [[], ["-fopenmp"], ["-fopenmp-simd"]], ids=str)
def test_a_nest_with_pragmas_compiles(flags: list[str], tmp_path: Path) -> None:
    """gcc -fopenmp-simd takes a pragma that it skips for the body of the loop above it."""
    loops = "for (int j = 0; j < 64; j++)\n#pragma omp simd\nfor (int i = 0; i < 64; i++)\na[j][i] = 1;"
    text = f"void f(double a[64][64])\n{{\n#pragma omp parallel for\n{loops}\n}}\n"
    file = tmp_path / "blocked.c"
    file.write_text(tiled_source(parse_kernel(text, "k.c"), {"j": 5, "i": 16}))
    done = subprocess.run(["gcc", "-fsyntax-only", *flags, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_step_stays_the_macro_that_it_is() -> None:
    """Another T on the command line moves the blocks as it moves the loop."""
    header = "for (int i = 0; i < N; {})"
    for step, stride in (("i += T", "T"), ("i = i + T", "T"), ("i += 2 * T", "(2 * T)"), ("i += 4", "4")):
        text = f"#define T 2\ndouble a[N]; {header.format(step)} a[i] = 1;"
        nest = parse_kernel(text, "k.c", {"N": 40})
        written = tiled_source(nest, {"i": 3})
        assert f"i_block += {stride} * BLOCK_I" in written
        assert f"MIN(i_block + {stride} * BLOCK_I, N); {step})" in written
        assert meaning(parse_kernel(written, "k.c", {"N": 40})) == meaning(tile(nest, {"i": 3}))


@pytest.mark.parametrize("bound", ["(M < N ? M : N)", "(M < N ? M : N) - 1", "(N)", "M - (N > 2 ? 2 : N)"])
def test_comparisons_in_brackets_belong_to_the_bound(bound: str) -> None:
    text = f"double a[M][N]; for (int j = 0; j < M; ++j) for (int i = 0; i < {bound}; ++i) a[j][i] = 1;"
    nest = parse_kernel(text, "k.c")
    written = tiled_source(nest, {"i": 3})
    assert f"i < MIN(i_block + BLOCK_I, {bound})" in written
    assert meaning(parse_kernel(written, "k.c")) == meaning(tile(nest, {"i": 3}))


@pytest.mark.parametrize(
    "before",
    [
        "int i; { unsigned i = 3; s[0] = i; }",
        "int i; for (unsigned i = 0; i < 4; ++i) s[i] = 1;",
        "int i; for (unsigned j = 0; j < 4; ++j) { unsigned i = j; s[i] = 1; }",
    ],
)
def test_only_declarations_in_scope_give_a_type(before: str) -> None:
    """A block variable of an unsigned type would not run from −2."""
    loops = "for (int j = 0; j < N; ++j) for (i = -2; i < N - 2; ++i) a[j][i + 2] = 1;"
    text = f"void g(unsigned i) {{ (void)i; }}\nvoid f(double a[N][N], double s[N]) {{ {before}\n{loops} }}"
    nest = parse_kernel(
        text, "k.c", function="f", nest=1 + before.count("for (unsigned j") + before.count("unsigned i = 0")
    )
    assert "for (int i_block = -2;" in tiled_source(nest, {"i": 3})


def test_the_type_of_a_parameter_or_a_global_is_found() -> None:
    for head, known in (
        ("short i;\nvoid g(unsigned i) { (void)i; }\nvoid f(double a[N])\n{", "int"),
        ("long i;\nvoid g(unsigned i) { (void)i; }\nvoid f(double a[N])\n{", "long"),
        ("void f(double a[N], unsigned i)\n{", "unsigned"),
    ):
        nest = parse_kernel(f"{head} for (i = 0; i < N; ++i) a[i] = 1; }}", "k.c", function="f")
        assert f"for ({known} i_block" in tiled_source(nest, {"i": 3})


def test_statements_outside_of_the_band_stay_there() -> None:
    text = """double a[N][N][N], c[N], d[N];
for (int k = 0; k < N; ++k) {
    c[k] = 0;
    for (int j = 0; j < N; ++j) {
        int row = j;
        for (int i = 0; i < N; ++i)
            a[k][row][i] += c[k];
    }
    d[k] = a[k][0][0];
}
"""
    nest = parse_kernel(text, "k.c", {"N": 9})
    blocked = tile(nest, {"j": 2, "i": 4})
    assert [access.depth for access in nest.accesses] == [1, 3, 3, 3, 1, 1]
    assert [access.depth for access in blocked.accesses] == [1, 5, 5, 5, 1, 1]
    written = tiled_source(nest, {"j": 2, "i": 4})
    assert meaning(parse_kernel(written, "k.c", {"N": 9})) == meaning(blocked)
    assert (
        "    c[k] = 0;\n    for (int j_block = 0; j_block < N; j_block += BLOCK_J)\n        for (int i_block" in written
    )
    assert written.endswith("        }\n    d[k] = a[k][0][0];\n}\n".replace("        }", "            }"))


def test_loops_over_blocks_stand_in_the_order_of_the_blocks() -> None:
    nest = load_kernel("matmul", {"N": 9, "M": 9, "K": 9})
    for blocks in ({"k": 2, "i": 4}, {"i": 4, "k": 2}):
        written = parse_kernel(tiled_source(nest, blocks), "k.c", {"N": 9, "M": 9, "K": 9})
        assert [loop.variable for loop in written.loops] == [f"{name}_block" for name in blocks] + ["j", "k", "i"]
        assert meaning(written) == meaning(tile(nest, blocks))


@pytest.mark.parametrize(("function", "number"), [("f", 1), ("f", 2), ("g", 1)])
def test_one_nest_of_several_is_rewritten(function: str, number: int) -> None:
    loops = "    for (int j = 0; j < N; ++j)\n        for (int i = 0; i < N; ++i)\n            a[j][i] = {};\n"
    body = "static void {}(double a[N][N])\n{{\n{}}}\n"
    text = "#define N 9\n" + body.format("f", loops.format(1) + loops.format(2)) + body.format("g", loops.format(3))
    nest = parse_kernel(text, "k.c", nest=number, function=function)
    written = tiled_source(nest, {"i": 4})
    assert written.count("i_block < N") == 1
    assert meaning(parse_kernel(written, "k.c", nest=number, function=function)) == meaning(tile(nest, {"i": 4}))
    others = [(f, n) for f, n in (("f", 1), ("f", 2), ("g", 1)) if (f, n) != (function, number)]
    for f, n in others:
        assert meaning(parse_kernel(written, "k.c", nest=n, function=f)) == meaning(
            parse_kernel(text, "k.c", nest=n, function=f)
        )


SPACE = st.sampled_from(["", " ", "  ", " /* j < 7; */ ", "\n", "\t", " // for (;;) {\n"])


@st.composite
def strange_texts(draw: st.DrawFn) -> str:
    """The same nest in all sorts of layouts, among other code."""

    def spaced(*tokens: str) -> str:
        return "".join(token + draw(SPACE) for token in tokens)

    declared = draw(st.booleans())
    heads = []
    for variable in "ji":
        kind = "" if declared else draw(st.sampled_from(["int ", "long ", "size_t\n", "const_free_t "]))
        if kind.startswith("const"):
            kind = "unsigned int "
        bound = draw(st.sampled_from(["N - 1", "(N) - 1", "N-1", "LAST"]))
        condition = (variable, "<", bound) if draw(st.booleans()) else (bound, ">", variable)
        step = draw(st.sampled_from([(variable, "++"), ("++", variable), (variable, "+=", "2")]))
        heads.append(spaced("for", "(", f"{kind}{variable}", "=", "1", ";", *condition, ";", *step, ")"))
    pragma = draw(st.sampled_from(["", "\n#pragma GCC ivdep\n", "\n\n  # pragma omp parallel \\\n for\n"]))
    opened, closed = draw(st.sampled_from([("{", "}"), ("\n{\n", "\n}\n"), ("", "")]))
    body = spaced("b[j][i]", "=", 'sizeof("}") + a[j][i]', ";")
    nest = f"{pragma}{heads[0]}{opened}{draw(SPACE)}{heads[1]}{opened}{body}{closed}{draw(SPACE)}{closed}"
    if draw(st.booleans()):
        outside = "int i, j;" if declared else ""
        return f"#define LAST (N - 1)\ndouble a[N][N], b[N][N];{draw(SPACE)}{outside}{draw(SPACE)}{nest}\n"
    before = draw(
        st.sampled_from(["", "static int z = 3; ", "/* x\n */ struct s { int n; };\n", "int one(void);\n\n// f\n"])
    )
    outside = "int i = 0, j;\n" if declared else ""
    return f"#define LAST (N - 1)\n{before}void f(double a[N][N], double b[N][N])\n{{\n{outside}{nest}\n}}\n"


@pytest.mark.thorough
@settings(max_examples=50)
@given(strange_texts(), st.sampled_from([{"i": 8}, {"j": 3}, {"i": 8, "j": 3}]), st.booleans())
def test_any_layout_is_rewritten(text: str, blocks: dict[str, int], crlf: bool) -> None:
    text = text.replace("\n", "\r\n") if crlf else text
    nest = parse_kernel(text, "k.c", {"N": 50})
    written = tiled_source(nest, blocks)
    assert meaning(parse_kernel(written, "k.c", {"N": 50})) == meaning(tile(nest, blocks))
    assert all(line.lstrip().startswith("#") for line in written.splitlines() if "#" in line)


def test_no_blocks_leave_the_text() -> None:
    nest = load_kernel("stencil")
    assert tiled_source(nest, {}) == nest.text
    assert tile(nest, {}) == nest


# Blocked code against the original: compiled once with sizes and block sizes as variables

SIZE_NAMES = ("N", "M", "L", "K", "BLOCK_I", "BLOCK_J", "BLOCK_K")
COMPILERS = [
    pytest.param((compiler, level), marks=pytest.mark.skipif(not shutil.which(compiler), reason=f"no {compiler}"))
    for compiler, level in product(("gcc", "clang-19" if shutil.which("clang-19") else "clang"), ("-O1", "-O3"))
]
_LIBRARIES: dict[tuple[str, str, str], ctypes.CDLL] = {}


def library(compiler: str, level: str, name: str, text: str, folder: Path) -> ctypes.CDLL:
    """The text as a shared library, sizes and block sizes being its variables `size_N` …"""
    key = compiler, level, name
    if key not in _LIBRARIES:
        source, built = folder / f"{name}.c", folder / f"{name}-{compiler}{level}.so"
        declared = "".join(f"int size_{size};\n" for size in SIZE_NAMES)
        source.write_text(f"#include <stddef.h>\n{declared}{text}")
        defines = [f"-D{size}=size_{size}" for size in SIZE_NAMES]
        flags = [level, "-fno-fast-math", "-w", "-fPIC", "-shared"]
        subprocess.run([compiler, *flags, *defines, str(source), "-o", str(built)], check=True)
        _LIBRARIES[key] = ctypes.CDLL(str(built))
    return _LIBRARIES[key]


def variant(nest: LoopNest, text: str, number: int) -> str:
    """The text with its function under a name of its own, its macros taken back behind it."""
    name = function_name(nest)
    return f"#define {name} {name}_{number}\n{text}\n#undef {name}\n#undef MIN\n#undef MAX\n"


@cache
def kernel(name: str) -> LoopNest:
    return load_kernel(name)


@cache
def all_kernels() -> str:
    texts = []
    for name in BLOCKABLE:
        nest = kernel(name)
        chosen = [(), *subsets(band(nest).loops)]
        texts += [variant(nest, tiled_source(nest, dict.fromkeys(loops, 8)), k) for k, loops in enumerate(chosen)]
    return "".join(texts)


@cache
def arguments(name: str) -> tuple[tuple[str, str], ...]:
    """The parameters of the kernel: array name and element type, or "" and the type of a scalar."""
    nest = kernel(name)
    function = next(f for f in parse_program(nest.text, nest.file, {}).functions if f.decl.name == nest.function)
    found = []
    for parameter in function.decl.type.args.params:
        if isinstance(parameter.type, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            found.append((parameter.name, nest.arrays[parameter.name].element.name))
        else:
            found.append(("", parameter.type.type.names[0]))
    return tuple(found)


def random_bytes(source: random.Random, kind: str, count: int, below: int) -> bytes:
    if kind == "int":
        return array("i", source.choices(range(below), k=count)).tobytes()
    # a few values are enough to tell elements and orders of operations apart
    values = [source.uniform(-2.0, 2.0) for _ in range(1013)]
    repeated = (values * (count // 1013 + 1))[:count]
    return array("f" if kind == "float" else "d", repeated).tobytes()


def run(loaded: ctypes.CDLL, name: str, function: str, sizes: dict[str, int], seed: int) -> list[bytes]:
    """The arrays after a call of the function on random data."""
    nest, source = kernel(name), random.Random(seed)
    for size, value in sizes.items():
        ctypes.c_int.in_dll(loaded, f"size_{size}").value = value
    own = {symbol: sizes.get(symbol, 0) or nest.defaults[symbol] for symbol in nest.symbols}
    buffers, given = [], list[object]()
    for parameter, kind in arguments(name):
        if not parameter:
            given.append({"float": ctypes.c_float, "double": ctypes.c_double}[kind](source.uniform(0.1, 1.0)))
            continue
        count = 1
        for extent in shape_of(nest.arrays[parameter], own) or (max(own.values()),):
            count *= extent
        data = random_bytes(source, kind, count, min(sizes["N"], sizes["M"]))
        buffers.append(ctypes.create_string_buffer(data, len(data)))
        given.append(buffers[-1])
    getattr(loaded, function)(*given)
    return [buffer.raw for buffer in buffers]


@pytest.mark.thorough
@pytest.mark.parametrize("compiler", COMPILERS)
@settings(max_examples=25)
@given(data=st.data())
def test_blocked_kernels_give_the_same_bits(
    compiler: tuple[str, str], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    loaded = library(*compiler, "kernels", all_kernels(), folder)
    name = data.draw(st.sampled_from(BLOCKABLE))
    nest = kernel(name)
    sizes = {size: data.draw(st.integers(10, 40), label=size) for size in SIZE_NAMES[:4]}
    sizes |= {size: data.draw(st.integers(1, 45), label=size) for size in SIZE_NAMES[4:]}
    number = data.draw(st.integers(1, len(band(nest).loops)))
    seed = data.draw(st.integers(0, 10**6))
    before, after = (run(loaded, name, f"{function_name(nest)}_{k}", sizes, seed) for k in (0, number))
    assert before == after


FORMS_J = [
    "for (int j = 1; j < N - 1; ++j)", "for (int j = 1; j <= N - 2; j++)", "for (size_t j = 1; N - 1 > j; j += 3)",
    "for (int j = N - 2; j >= 1; --j)", "for (int j = N - 2; j > 0; j -= 2)", "for (j = 1; j != N - 1; j = j + 1)",
]  # fmt: skip
FORMS_I = [
    "for (long i = 1; i < M - 1; i++)", "for (i = M - 2; i > 0; i -= 2)", "for (size_t i = M - 2; i > 0; i--)",
    "for (unsigned i = 2; (M - 2) >= i; i += 2)", "for (short i = 1; i + 1 < M; ++i)",
    "for (i = M - 2; i >= low; i--)",
]  # fmt: skip
BODY = "b[j][i] = 0.5 * a[j - 1][i] + a[j][i + 1] + b[j][i];"
FUNCTION = """void f{}(double a[restrict N][M], double b[restrict N][M])
{{
    int j;
    int i;
    size_t low = 1;
{}}}
"""


def forms() -> list[tuple[str, LoopNest]]:
    found = []
    layouts = [
        "    {}\n        {}\n            {}\n",
        "    {} {{\n        {} {{ // inner\n            {}\n        }}\n    }}\n",
        "    {} {} {{ {} }}\n",
    ]
    for number, (outer, inner) in enumerate(product(FORMS_J, FORMS_I)):
        text = FUNCTION.format(number, layouts[number % 3].format(outer, inner, BODY))
        found.append((text, parse_kernel(text, "forms.c")))
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("blocks", [{"i": 5}, {"j": 4}, {"j": 3, "i": 6}])
def test_all_forms_of_headers(blocks: dict[str, int]) -> None:
    for text, nest in forms():
        assert band(nest).loops == ("j", "i"), text
        written = tiled_source(nest, blocks)
        assert meaning(parse_kernel(written, "forms.c")) == meaning(tile(nest, blocks)), written


@pytest.mark.thorough
def test_all_forms_of_headers_give_the_same_bits(tmp_path: Path) -> None:
    parts = []
    for _, nest in forms():
        chosen = ((), ("i",), ("j", "i"))
        parts += [variant(nest, tiled_source(nest, dict.fromkeys(loops, 8)), k) for k, loops in enumerate(chosen)]
    loaded = library("gcc", "-O1", "forms", "".join(parts), tmp_path)
    for n, m, block_j, block_i in ((9, 14, 4, 5), (12, 30, 1, 7), (5, 6, 40, 40)):
        for size, value in zip(("N", "M", "BLOCK_J", "BLOCK_I"), (n, m, block_j, block_i), strict=True):
            ctypes.c_int.in_dll(loaded, f"size_{size}").value = value
        for number in range(len(FORMS_J) * len(FORMS_I)):
            results = set()
            for k in range(3):
                source = random.Random(number)
                a, b = (ctypes.create_string_buffer(random_bytes(source, "double", n * m, 1), n * m * 8) for _ in "ab")
                getattr(loaded, f"f{number}_{k}")(a, b)
                results.add(b.raw)
            assert len(results) == 1, (number, n, m, block_j, block_i)


def test_a_bare_nest_gives_the_same_bits(tmp_path: Path) -> None:
    loops = "for (j = 0; j < N; ++j)\n    for (i = 0; i < M; ++i)\n        b[j][i] += a[j][i];\n"
    text = f"double a[N][M], b[N][M];\nint i, j;\n{loops}"
    nest = parse_kernel(text, "bare.c")
    blocked = parse_kernel(tiled_source(nest, {"i": 8, "j": 3}), "bare.c", {"N": 9, "M": 9})
    assert meaning(blocked) == meaning(tile(nest, {"i": 8, "j": 3}))
    sources = [re.sub(r"kernel_bare", f"kernel_bare_{k}", compilable_source(n)) for k, n in enumerate((nest, blocked))]
    loaded = library("gcc", "-O1", "bare", "".join(sources), tmp_path)
    for size, value in {"N": 10, "M": 21, "BLOCK_I": 8, "BLOCK_J": 3}.items():
        ctypes.c_int.in_dll(loaded, f"size_{size}").value = value
    results = []
    for k in range(2):
        source = random.Random(1)
        a, b = (ctypes.create_string_buffer(random_bytes(source, "double", 210, 1), 1680) for _ in "ab")
        getattr(loaded, f"kernel_bare_{k}")(a, b)
        results.append(b.raw)
    assert results[0] == results[1] != b"\0" * 1680


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("name", ["stencil", "3d-7pt", "matmul", "iso3dfd"])
def test_the_inner_loop_of_blocked_code_is_vectorised(name: str, tmp_path: Path) -> None:
    nest = kernel(name)
    (tmp_path / "k.c").write_text(tiled_source(nest, dict.fromkeys(band(nest).loops[-2:], 64)))
    flags = ["-O3", "-fopt-info-vec-optimized", "-S", "-o", str(tmp_path / "k.s")]
    told = subprocess.run(["gcc", *flags, str(tmp_path / "k.c")], check=True, capture_output=True, text=True).stderr
    assert "loop vectorized" in told


@pytest.mark.thorough
@pytest.mark.parametrize("name", BLOCKABLE)
def test_whole_blocks_are_the_blocked_nest_where_they_divide_its_loops(name: str) -> None:
    """The same addresses in the same order: every iteration of a block touches what it touches in the blocked nest."""
    nest = load_kernel(name)
    loops = band(nest).loops[-2:]
    blocks = dict(zip(loops, (3, 5), strict=False))
    whole, tiled = whole_blocks(nest, blocks), tile(nest, blocks)
    if whole is None:
        variables = {loop.variable for loop in nest.loops}
        assert any((loop.start.free_symbols | loop.stop.free_symbols) & variables for loop in nest.loops)
        return
    names = block_variables(nest)
    place = {loop.variable: number + 7 for number, loop in enumerate(tiled.loops)}
    inside = {loop.variable: place[loop.variable] for loop in whole.loops}
    for loop in nest.loops:
        if loop.variable in blocks:
            inside[loop.variable] = place[loop.variable] - place[names[loop.variable]]
    for ours, theirs in zip(whole.accesses, tiled.accesses, strict=True):
        assert ours.offset.substitute(inside) == theirs.offset.substitute(place)
        assert len(ours.coefficients) == len(theirs.coefficients)


def test_a_kernel_is_made_for_its_sizes() -> None:
    text = "#define K 7 // K\n#ifndef N\n#define N 2000 /* rows */\n#endif\nvoid f(int M, double a[M][N]) {}\n"
    made = made_for(text, {"N": 30, "M": 40, "T": 5}, ["f */ for", "a machine"])
    assert made == (
        "/*\n * f * / for\n * a machine\n */\n#ifndef T\n#define T 5\n#endif\n"
        "#define K 7 // K\n#ifndef N\n#define N 30 /* rows */\n#endif\nvoid f(int M, double a[M][N]) {}\n"
    )
