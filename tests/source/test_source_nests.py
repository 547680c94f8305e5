"""Triangular, tiled and imperfect nests: the loops and accesses against an interpreter of the C that made them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.errors import SourceError
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import Access, LoopNest
from kernmodel.source.nest.counting import numeric_loops
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of, trip_counts

MACROS = "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n"
Touch = tuple[str, str, int]


def body(statements: str, parameters: str = "int n, int m, double *x, double *y, double *z") -> LoopNest:
    return parse_kernel(f"{MACROS}void kernel({parameters})\n{{\n{statements}\n}}\n", "x.c")


def replay(nest: LoopNest, sizes: dict[str, int]) -> list[Touch]:
    """The accesses that a nest makes, one after the other, as any reader of a `LoopNest` has to walk it."""
    loops = numeric_loops(nest.loops, sizes)

    def touches(depth: int, after: bool, environment: dict[str, int]) -> Iterator[Touch]:
        for access in nest.accesses:
            if access.depth == depth and access.after_inner == after:
                yield access.array, access.kind, int(access.offset.value({**sizes, **environment}))

    def walk(depth: int, environment: dict[str, int]) -> Iterator[Touch]:
        if depth:
            yield from touches(depth, False, environment)
        if depth < len(loops):
            for value in loops[depth].values(environment):
                yield from walk(depth + 1, environment | {loops[depth].variable: value})
        if depth:
            yield from touches(depth, True, environment)

    return list(walk(0, {}))


# Imperfect nests


@dataclass(frozen=True)
class Level:
    """One loop of a random nest: its head, and the indices stored to before and after the inner loop."""

    variable: str
    start: str
    stop: str
    step: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def text(self) -> str:
        name, down = self.variable, self.step < 0
        return f"for (int {name} = {self.start}; {name} {'>' if down else '<'} {self.stop}; {name} += {self.step})"


@st.composite
def affine(draw: st.DrawFn, outer: tuple[str, ...]) -> str:
    terms = [str(draw(st.integers(0, 4)))]
    terms += [f"{draw(st.sampled_from([1, 1, 2, -1]))}*{name}" for name in outer if draw(st.booleans())]
    return " + ".join(terms)


@st.composite
def imperfect(draw: st.DrawFn) -> tuple[Level, ...]:
    levels: list[Level] = []
    for name in ("i", "j", "k")[: draw(st.integers(1, 3))]:
        outer = tuple(level.variable for level in levels)
        step = draw(st.sampled_from([1, 1, 2, -1]))
        bounds = (draw(affine(outer)), f"{draw(affine(outer))} + n")
        start, stop = bounds if step > 0 else reversed(bounds)
        inside = (*outer, name)
        before, after = (tuple(draw(st.lists(affine(inside), max_size=2, unique=True))) for _ in range(2))
        levels.append(Level(name, start, stop, step, before, after))
    return tuple(levels)


def as_c(levels: tuple[Level, ...]) -> str:
    if not levels:
        return ""
    level, inner = levels[0], as_c(levels[1:])
    before = "".join(f"b{level.variable}[{index}] = 1; " for index in level.before)
    after = "".join(f"a{level.variable}[{index}] += 2; " for index in level.after)
    return f"{level.text} {{ {before}{inner}{after}}}"


def executed(levels: tuple[Level, ...], environment: dict[str, int]) -> Iterator[Touch]:
    """What the C does, from the random nest itself."""
    level, inner = levels[0], levels[1:]
    for value in range(eval(level.start, environment), eval(level.stop, environment), level.step):
        here = environment | {level.variable: value}
        for index in level.before:
            yield f"b{level.variable}", "write", eval(index, here)
        if inner:
            yield from executed(inner, here)
        for index in level.after:
            yield f"a{level.variable}", "read", eval(index, here)
            yield f"a{level.variable}", "write", eval(index, here)


@pytest.mark.thorough
@settings(deadline=None, max_examples=120)
@given(imperfect(), st.integers(1, 5))
def test_accesses_are_executed_in_the_order_of_the_c(levels: tuple[Level, ...], n: int) -> None:
    arrays = ", ".join(f"double *{side}{level.variable}" for level in levels for side in "ab")
    nest = parse_kernel(f"void f(int n, {arrays}) {{ {as_c(levels)} }}", "x.c")
    assert replay(nest, {"n": n}) == list(executed(levels, {"n": n}))


def places(nest: LoopNest) -> list[tuple[str, str, int, bool]]:
    return [(access.kind, access.text, access.depth, access.after_inner) for access in nest.accesses]


def test_statements_before_and_after_the_inner_loop() -> None:
    nest = body(
        "for (int j = 0; j < n; ++j) { x[j] = 0; double t = y[j];"
        " for (int i = 0; i < m; ++i) { t += z[i]; x[j] += t; } x[j] *= t; y[j + 1] = t; }"
    )
    assert places(nest) == [
        ("write", "x[j]", 1, False),
        ("read", "y[j]", 1, False),
        ("read", "z[i]", 2, False),
        ("read", "x[j]", 2, False),
        ("write", "x[j]", 2, False),
        ("read", "x[j]", 1, True),
        ("write", "x[j]", 1, True),
        ("write", "y[j+1]", 1, True),
    ]


def test_the_same_reference_before_and_after_is_two_accesses() -> None:
    nest = body("for (int j = 0; j < n; ++j) { x[j] = 1; for (int i = 0; i < m; ++i) y[i] = 0; x[j] = 2; }")
    assert [(access.text, access.count) for access in nest.writes()] == [("x[j]", 1), ("y[i]", 1), ("x[j]", 1)]


def test_statements_at_every_depth() -> None:
    nest = body(
        "for (int k=0;k<n;++k) { x[k]=1; for (int j=0;j<n;++j) {"
        " y[j]=1; for (int i=0;i<m;++i) z[i]=1; y[j]=2; } x[k]=2; }"
    )
    assert [(access.text, access.depth, access.after_inner) for access in nest.accesses] == [
        ("x[k]", 1, False),
        ("y[j]", 2, False),
        ("z[i]", 3, False),
        ("y[j]", 2, True),
        ("x[k]", 1, True),
    ]
    assert nest.operations.flops_per_iteration == 0


def test_several_statements_of_one_body_keep_their_order() -> None:
    nest = body("for (int i = 1; i < n; ++i) { x[i] = y[i - 1]; y[i] = x[i - 1] + z[i]; z[i - 1] = x[i]; }")
    assert [(access.kind[0], access.text) for access in nest.accesses] == [
        ("r", "y[i-1]"),
        ("w", "x[i]"),
        ("r", "x[i-1]"),
        ("r", "z[i]"),
        ("w", "y[i]"),
        ("r", "x[i]"),
        ("w", "z[i-1]"),
    ]


# Triangular nests


@pytest.mark.parametrize(
    ("loops", "count"),
    [
        ("for (int j=0;j<n;++j) for (int i=0;i<=j;++i)", lambda n: n * (n + 1) // 2),
        ("for (int j=0;j<n;++j) for (int i=0;i<j;++i)", lambda n: n * (n - 1) // 2),
        ("for (int j=0;j<n-1;++j) for (int i=j+1;i<n;++i)", lambda n: n * (n - 1) // 2),
        ("for (int j=n-1;j>=0;--j) for (int i=n-1;i>j;--i)", lambda n: n * (n - 1) // 2),
        ("for (int k=0;k<n;++k) for (int j=0;j<=k;++j) for (int i=0;i<=j;++i)", lambda n: n * (n + 1) * (n + 2) // 6),
        ("for (int j=0;j<n;++j) for (int i=MAX(0,j-2);i<MIN(n,j+3);++i)", lambda n: 5 * n - 6),
        ("for (int j=0;j<n;++j) for (int i=(j-2>0?j-2:0);i<n&&i<=j+2;++i)", lambda n: 5 * n - 6),
    ],
)
def test_triangular_and_banded_nests_count_exactly(loops: str, count: object) -> None:
    assert callable(count)
    nest = body(f"{loops} x[i] = 1;")
    for n in (4, 7, 500):
        assert iterations_per_sweep(nest, {"n": n}) == count(n)


def test_triangular_array_is_checked_over_what_is_executed() -> None:
    text = "double t[N * (N + 1) / 2]; double x[N]; for (int j=0;j<N;++j) for (int i=0;i<={};++i) t[j+i] += x[i];"
    assert sizes_of(parse_kernel(text.format("j"), "x.c"), {"N": 9}) == {"N": 9}
    with pytest.raises(SourceError, match=r"x\[i\] is out of bounds: the index i runs from 0 to 9"):
        sizes_of(parse_kernel(text.format("j + 1"), "x.c"), {"N": 9})


# Tiled nests

ENDS = (
    "i < MIN(ii + B, {stop})",
    "i < (ii + B < {stop} ? ii + B : {stop})",
    "i < (ii + B > {stop} ? {stop} : ii + B)",
    "i < ii + B && i < {stop}",
    "i <= MIN(ii + B, {stop}) - 1",
    "i < min(ii + B, {stop})",
)


@given(st.integers(2, 40), st.integers(1, 12), st.sampled_from(ENDS), st.integers(0, 2), st.booleans())
def test_tiles_cover_what_the_plain_loop_covers(size: int, block: int, end: str, border: int, symbolic: bool) -> None:
    stop = f"N - {border}"
    start = min(border, size - border - 1)
    head = f"for (int ii = {start}; ii < {stop}; ii += B) for (int i = ii; {end.format(stop=stop)}; ++i)"
    plain = list(range(start, size - border))
    if not plain:
        return
    # the block is a macro of the file or comes from the command line, the size is a macro or a parameter
    macro = "" if symbolic else f"#define B {block}\n"
    text = f"{macro}{MACROS}void f(double *x{', int N' if symbolic else ''}) {{ {head} x[i] = 1; }}"
    nest = parse_kernel(text, "x.c", {"B": block} if symbolic else {"N": size})
    assert [touch[2] for touch in replay(nest, {"N": size})] == plain
    assert iterations_per_sweep(nest, {"N": size}) == len(plain)
    assert sizes_of(nest, {"N": size}) == {"N": size}
    assert nest.loops[0].step == block


@pytest.mark.thorough
@settings(deadline=None, max_examples=40)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 8), st.integers(1, 8), st.booleans())
def test_tiles_in_two_dimensions_with_statements_between(
    rows: int, columns: int, high: int, wide: int, swap: bool
) -> None:
    tiles = ["for (int jj = 0; jj < M; jj += TJ)", "for (int ii = 0; ii < N; ii += TI)"]
    text = f"""{MACROS}double x[M][N], y[M];
    {" ".join(reversed(tiles) if swap else tiles)}
        for (int j = jj; j < MIN(jj + TJ, M); ++j) {{
            double t = y[j];
            int end = MIN(ii + TI, N);
            for (int i = ii; i < end; ++i) {{ x[j][i] = t; }}
            y[j] = t;
        }}"""
    nest = parse_kernel(text, "x.c", {"TJ": high, "TI": wide})
    sizes = {"M": rows, "N": columns}
    assert sizes_of(nest, sizes) == sizes
    touched = replay(nest, sizes)
    cells = [place for array, _, place in touched if array == "x"]
    assert sorted(cells) == list(range(rows * columns)) and iterations_per_sweep(nest, sizes) == rows * columns
    segments = rows * -(-columns // wide)
    assert sum(array == "y" for array, _, _ in touched) == 2 * segments
    counts = [1, -(-rows // high), -(-columns // wide)]
    if not swap:
        assert trip_counts(nest, sizes)[:2] == (counts[1], counts[2])


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 24), st.integers(1, 6))
def test_tiled_triangle_counts_like_the_plain_one(size: int, block: int) -> None:
    nest = parse_kernel(
        f"""{MACROS}double a[N][N];
        for (int jj = 0; jj < N; jj += B)
            for (int ii = 0; ii <= jj; ii += B)
                for (int j = jj; j < MIN(jj + B, N); ++j)
                    for (int i = ii; i < MIN(ii + B, j + 1); ++i)
                        a[j][i] = 1;""",
        "x.c",
        {"B": block},
    )
    expected = sorted(j * size + i for j in range(size) for i in range(j + 1))
    assert sorted(place for _, _, place in replay(nest, {"N": size})) == expected
    assert iterations_per_sweep(nest, {"N": size}) == len(expected)
    tiles = range(0, size, block)
    pairs = [(jj, ii) for jj in tiles for ii in range(0, jj + 1, block)]
    rows = [(ii, j) for jj, ii in pairs for j in range(jj, min(jj + block, size))]
    counts = [1, len(tiles), len(pairs), len(rows), len(expected)]
    assert trip_counts(nest, {"N": size}) == pytest.approx([inner / outer for outer, inner in pairwise(counts)])


def test_strip_mined_loop_whose_step_is_a_macro() -> None:
    text = "#define V 8\ndouble x[N]; for (int ii = 0; ii < N; ii += V) for (int v = 0; v < V; ++v) x[ii + v] = 1;"
    nest = parse_kernel(text, "x.c")
    assert [loop.step for loop in nest.loops] == [8, 1] and nest.inner.stop == 8
    assert iterations_per_sweep(nest, sizes_of(nest, {"N": 80})) == 80
    with pytest.raises(SourceError, match="runs from 0 to 87"):
        sizes_of(nest, {"N": 81})
    assert parse_kernel(text, "x.c", {"V": 5}).inner.stop == 5


def test_blocks_that_are_counted_keep_their_size_a_symbol() -> None:
    text = "double x[N]; for (int b = 0; b < {}; ++b) for (int i = b * B; i < {}; ++i) x[i] = 1;"
    whole = parse_kernel(text.format("N / B", "(b + 1) * B"), "x.c")
    assert set(whole.symbols) == {"B", "N"}
    assert iterations_per_sweep(whole, sizes_of(whole, {"N": 1000, "B": 64})) == 960
    ragged = parse_kernel(MACROS + text.format("(N + B - 1) / B", "MIN((b + 1) * B, N)"), "x.c")
    assert iterations_per_sweep(ragged, sizes_of(ragged, {"N": 1000, "B": 64})) == 1000
    assert [place for _, _, place in replay(ragged, {"N": 50, "B": 7})] == list(range(50))


def test_block_that_is_a_parameter_needs_a_value() -> None:
    text = "void f(int b, double x[restrict N]) { for (int i = 0; i < N; i += b) x[i] = 1; }"
    with pytest.raises(SourceError, match="macro or parameter b, by which a loop steps, has no value; give -D b="):
        parse_kernel(text, "x.c")
    assert parse_kernel(text, "x.c", {"b": 16}).inner.step == 16


@pytest.mark.parametrize("name", ["stencil-blocked", "matmul-blocked"])
@pytest.mark.parametrize("block", [1, 7, 13, 100])
def test_carried_tiled_kernels_touch_what_the_plain_ones_do(name: str, block: int) -> None:
    def written(kernel: str, sizes: dict[str, int]) -> list[Touch]:
        nest = load_kernel(kernel, {"T": block} if "blocked" in kernel else {})
        return sorted(touch for touch in replay(nest, sizes_of(nest, sizes)) if touch[1] == "write")

    plain = name.removesuffix("-blocked")
    extents = {"stencil": {"M": 6, "N": 17}, "matmul": {"M": 13, "N": 13, "K": 13}}[plain]
    used = {key: extents[key] for key in ("M", "N") if plain == "stencil" or key == "N"}
    assert written(name, used) == written(plain, extents)


# What is refused


def test_what_fission_gives_can_be_chosen() -> None:
    text = "void f(double *x, double *y) {{ {} }}".format(
        "for (int j=0;j<9;++j) for (int i=0;i<5;++i) x[i] = 1; for (int j=0;j<9;++j) for (int i=0;i<6;++i) y[i] = 1;"
    )
    first, second = (parse_kernel(text, "x.c", nest=number) for number in (1, 2))
    assert [set(nest.arrays) for nest in (first, second)] == [{"x"}, {"y"}]
    assert (first.inner.stop, second.inner.stop) == (5, 6)


def depths(accesses: tuple[Access, ...]) -> list[int]:
    return [access.depth for access in accesses]


def test_empty_inner_loops_leave_the_statements_around_them() -> None:
    nest = body("for (int j=0;j<n;++j) { for (int i=0;i<j;++i) x[i] = 1; y[j] = 2; }")
    assert depths(nest.accesses) == [2, 1]
    assert sizes_of(nest, {"n": 2}) == {"n": 2}
    assert replay(nest, {"n": 2}) == [("y", "write", 0), ("x", "write", 0), ("y", "write", 1)]
