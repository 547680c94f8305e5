"""Which loops may be blocked: distances between references, refusals with reasons, and proof by executing the nests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.dependence import dependences
from kernmodel.source.nest.tiling import band, tile

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
BANDS = {
    "2d-5pt": "j i", "3d-27pt": "k j i", "3d-7pt": "k j i", "add": "i", "copy": "i", "daxpy": "i", "dot": "",
    "gather": "i", "himeno": "", "histogram": "i", "iso3dfd": "k j i", "kahan-dot": "", "long-range": "k j i",
    "matmul": "j k i", "matmul-blocked": "j k i", "matvec": "", "matvec-transposed": "j i", "pi": "", "scale": "i",
    "scatter": "i", "schoenauer": "i", "spmv-ell": "", "stencil": "j i", "stencil-blocked": "j i", "sum": "",
    "triad": "i", "trmv": "", "update": "i", "uxx": "k j i",
}  # fmt: skip


def nest_of(body: str, loops: str = "ji", before: str = "") -> LoopNest:
    heads = "".join(f"for (int {v} = 4; {v} < N - 4; ++{v}) " for v in loops)
    return parse_kernel(
        f"#define N 16\ndouble a[N][N], b[N][N]; double s, t; int idx[N]; {before}\n{heads} {{ {body} }}", "k.c"
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.glob("*.c")))
def test_the_bands_of_the_carried_kernels(name: str) -> None:
    found = band(load_kernel(name))
    assert " ".join(found.loops) == BANDS[name]


@pytest.mark.parametrize(
    ("body", "distance"),
    [
        ("a[j][i] = a[j-1][i+1];", (1, -1)),
        ("a[j][i] = a[j][i-2];", (0, 2)),
        ("a[j][i] = a[j+3][i-1];", (3, -1)),
        ("a[3][i] += b[j][i];", (None, 0)),
        ("a[j][i+j] = a[j-1][i+j];", (1, -1)),
        ("a[j][j+i] = a[j][i+j-1];", (0, 1)),
        ("a[i][i] = a[i-1][i-1] + 1;", (None, -1)),
    ],
)
def test_distances(body: str, distance: tuple[int | None, ...]) -> None:
    assert distance in [found.distance for found in dependences(nest_of(body), 0)]


@pytest.mark.parametrize(
    "body",
    [
        "a[j][2*i] = a[j][2*i+1];",  # even and odd elements
        "a[2*j][i] = a[2*i+1][j];",  # by the GCD test, with different coefficients
        "a[0][i] = a[1][i] + b[j][i]; b[j][i] = 1;",
        "a[j][i] = a[i][j] + b[j][i];",
    ],
)
def test_references_that_never_meet_or_meet_in_any_distance(body: str) -> None:
    found = {d.distance for d in dependences(nest_of(body), 0) if d.first.kind != d.second.kind}
    assert found <= ({(None, None)} if "a[i][j]" in body else set())


def test_a_constant_trip_count_bounds_the_distance() -> None:
    near = parse_kernel(
        "double a[99][99]; for (int j = 9; j < 90; ++j) for (int i = 9; i < 20; ++i) a[j][i] = a[j-1][i+9];", "k.c"
    )
    far = parse_kernel(
        "double a[99][99]; for (int j = 9; j < 90; ++j) for (int i = 9; i < 18; ++i) a[j][i] = a[j-1][i+9];", "k.c"
    )
    assert band(near).loops == ("i",) and band(far).loops == ("j", "i")


def test_a_step_that_skips_the_distance() -> None:
    text = "double a[99][99]; for (int j = 9; j < 90; j += {}) for (int i = 9; i < 20; ++i) a[j][i] = a[j-1][i+1];"
    assert band(parse_kernel(text.format(2), "k.c")).loops == ("j", "i")
    assert band(parse_kernel(text.format(1), "k.c")).loops == ("i",)


@pytest.mark.parametrize(
    ("body", "loops", "reason"),
    [
        ("a[j][i] = a[j-1][i+1];", "i", "distance of (1, −1)"),
        ("a[0][0] += b[j][i];", "i", "a[0][0] depends on a[0][0] at a distance of (any, any)"),
        ("a[j][idx[i]] = b[j][i];", "j i", ""),
        ("a[idx[j]][idx[i]] = b[j][i];", "i", "written again at a distance of (any, any)"),
        ("s += a[j][i];", "", "iterations pass on s"),
        ("b[j][i] = s; s = a[j][i];", "", "iterations pass on s"),
        ("t = a[j][i]; b[j][i] = t;", "j i", ""),
        ("double u = a[j][i]; b[j][i] = u * u;", "j i", ""),
    ],
)
def test_bodies(body: str, loops: str, reason: str) -> None:
    found = band(nest_of(body))
    assert " ".join(found.loops) == loops
    assert reason in " ".join(found.refused.values())


def test_statements_between_loops() -> None:
    text = """double a[9][9], x[9];
    for (int j = 0; j < 9; ++j) {
        %s
        for (int i = 0; i < 9; ++i) a[j][i] = 1;
    }"""
    assert band(parse_kernel(text % "int row = j * 9; int z;", "k.c")).loops == ("j", "i")
    found = band(parse_kernel(text % "x[j] = 0;", "k.c"))
    assert found.loops == ("i",)
    assert found.refused == {"j": "the statement in line 3 stands between the loops"}


def test_triangular_nests_keep_the_innermost_band() -> None:
    nest = parse_kernel(
        "double a[9][9][9]; for (int k = 0; k < 9; ++k) for (int j = 0; j < 9; ++j) "
        "for (int i = 0; i < k; ++i) a[k][j][i] = 1;",
        "k.c",
    )
    found = band(nest)
    assert found.loops == ("j", "i")
    assert found.refused == {"k": "the bounds of the loop over i depend on k"}


def test_loops_around_a_refused_one_are_refused() -> None:
    found = band(nest_of("a[j][i] = a[j-1][i+1];", loops="kji"))
    assert found.loops == ("i",) and set(found.refused) == {"k", "j"}


# Proof by executing


def iterations(nest: LoopNest) -> Iterator[dict[str, int]]:
    """The values of the loop variables in the order of execution; bounds are numbers but for block variables."""

    def run(depth: int, values: dict[str, int]) -> Iterator[dict[str, int]]:
        if depth == len(nest.loops):
            yield values
            return
        loop = nest.loops[depth]
        for value in range(int(loop.start.value(values)), int(loop.stop.value(values)), loop.step):
            yield from run(depth + 1, {**values, loop.variable: value})

    return run(0, {})


def histories(nest: LoopNest, variables: list[str]) -> dict[tuple[str, tuple[int, ...]], list[object]]:
    """By element, the writes and the sets of reads between them, each with its reference and iteration."""
    found: dict[tuple[str, tuple[int, ...]], list[object]] = defaultdict(list)
    for values in iterations(nest):
        own = tuple(values[name] for name in variables)
        for access in nest.accesses:
            element = found[access.array, tuple(int(part.value(values)) for part in access.index)]
            if access.kind == "write":
                element.append((access.text, own))
            elif element and isinstance(element[-1], set):
                element[-1].add((access.text, own))
            else:
                element.append({(access.text, own)})
    return dict(found)


@st.composite
def random_nests(draw: st.DrawFn) -> LoopNest:
    count = draw(st.integers(2, 3))
    variables = "kji"[-count:]
    heads = []
    for variable in variables:
        step, low, high = draw(st.sampled_from([1, 1, 1, 2, -1, -2])), draw(st.integers(0, 1)), draw(st.integers(3, 5))
        start, relation, stop = (low, "<", high) if step > 0 else (high, ">=", low)
        heads.append(f"for (int {variable} = {start}; {variable} {relation} {stop}; {variable} += {step})")

    # in most nests all references have the same coefficients, so that distances are small and known
    factors = st.sampled_from([0, 0, 1, 1, 1, 2, -1])
    shared = None if draw(st.integers(0, 3)) == 0 else [[draw(factors) for _ in variables] for _ in range(2)]
    if shared is not None and draw(st.booleans()):
        shared = [[int(variable == own) for variable in variables] for own in variables[-2:]]

    def index(dimension: int) -> str:
        own = shared[dimension] if shared is not None else [draw(factors) for _ in variables]
        terms = [f"{factor} * {variable}" for factor, variable in zip(own, variables, strict=True)]
        return " + ".join([*terms, str(draw(st.integers(14, 16)))])

    def element() -> str:
        return f"a[{index(0)}][{index(1)}]"

    reads = " + ".join(element() for _ in range(draw(st.integers(1, 2))))
    return parse_kernel(f"double a[40][40]; {' '.join(heads)} {element()} = {reads};", "k.c")


@pytest.mark.thorough
@settings(max_examples=200)
@given(random_nests(), st.data())
def test_blocked_nests_keep_the_order_of_every_element(nest: LoopNest, data: st.DataObject) -> None:
    loops = band(nest).loops
    assert loops, "a single loop is always a band here"
    # blocks of the inner loop are what changes the order most
    chosen = {loops[-1], *data.draw(st.lists(st.sampled_from(loops)))}
    blocked = tile(nest, {variable: data.draw(st.integers(1, 3)) for variable in loops if variable in chosen})
    variables = [loop.variable for loop in nest.loops]
    assert histories(blocked, variables) == histories(nest, variables)
