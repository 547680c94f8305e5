"""Layer conditions as formulas: the golden case, the stencils of kernels/, and where they break."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic_reference import toy_machine

from kernmodel.errors import InputError, UnsupportedKernelError, UsageError
from kernmodel.formulas.formula import Formula, constant, size, variable
from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.comparison.agreement import differs
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.conditions.streams import at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.model import LayerCondition, Traffic
from kernmodel.traffic.simulation.simulate import simulate

L, M, N, K = map(size, "LMNK")
SNB = load_machine("snb")


def traffic_of(kernel: str, machine: str = "snb", **sizes: int) -> Traffic:
    nest = load_kernel(kernel)
    return layer_conditions(nest, load_machine(machine), sizes_of(nest, sizes))


def parsed(text: str, **sizes: int) -> Traffic:
    return layer_conditions(parse_kernel(text, "test.c", sizes), SNB, sizes)


def in_cache(traffic: Traffic, cache: str = "L1") -> list[LayerCondition]:
    return [condition for condition in traffic.conditions if condition.cache == cache]


def formulas(traffic: Traffic) -> list[Formula]:
    return [condition.required_bytes for condition in in_cache(traffic)]


def same(found: list[Formula], expected: list[Formula]) -> bool:
    return found == expected


def test_golden_case_2d_5pt() -> None:
    # Hammer et al., IPTW 2016: distances ∞, N−1, 2, N−1, ∞ and t = N−1: (N−1) + 2 + (N−1) + 2 (N−1) = 4N − 2 elements
    traffic = traffic_of("stencil", N=1024, M=1024)
    row = in_cache(traffic)[1]
    assert same([row.required_bytes], [32 * N - 16])
    assert (row.hits, row.misses) == (3, 2)
    assert row.holds
    assert row.breaks_at == {"N": 1024, "M": None}
    assert row.solved == {"N": "N ≤ 1024"}
    assert {reuse.carried_by for reuse in row.reuses} == {"j"}
    assert [(p.loads, p.stores, p.clean_victims) for p in traffic.paths] == [(2, 1, 0)] * 2 + [(0, 0, 0)]


# The sweep touches all planes but those at the end that only some references reach; the others follow by hand:
# the references of an array in order, with their distances; t is the reuse distance of the condition; every distance
# beyond t counts t, and so does every array for its own travel.
STENCILS = {
    # a, b: 16 (M N − N): a touches M N, b (M − 2) N
    "stencil": [constant(80), 32 * N - 16, 16 * M * N - 16 * N],
    # in place: distances N−1, 1, 1, N−1, ∞; t = N−1: 2 (N−1) + 2 + (N−1)
    "2d-5pt": [constant(40), 24 * N - 8, 8 * M * N],
    # a: NM−N, N−1, 1, 1, N−1, NM−N, ∞; b: ∞
    # t = N−1: (2 + 2 + 2) t + 2; t = NM−N: 4 t + 2 (N−1) + 2
    "3d-7pt": [constant(64), 48 * N - 32, 32 * M * N - 16 * N, 16 * L * M * N - 16 * M * N],
    # per plane of a: 1, 1, N−2, 1, 1, N−2, 1, 1 = 2N + 2; between planes NM−2N−2
    # t = N−2: 3 (2N + 2) + 4 t = 10N − 2; t = NM−2N−2: 3 (2N + 2) + 4 t
    "3d-27pt": [
        constant(224),
        80 * N - 16,
        32 * M * N - 16 * N - 16,
        16 * L * M * N - 16 * M * N,  # both stretches as far as references reach, but no more than all of a
    ],
    # V: NM ×3, NM−4N, N ×3, N−4, 1 ×8, N−4, N ×3, NM−4N, NM ×3, ∞; U and ROC: ∞
    # t = N−4: (16 + 3) t + 8; t = N: (8 + 3) N + 6N + 2 (N−4) + 8; t = NM−4N: 11 t + 8N; t = NM: 11 NM
    "long-range": [
        constant(216),
        152 * N - 544,
        152 * N,
        88 * M * N - 288 * N,
        88 * M * N,
        24 * L * M * N - 128 * M * N,
    ],
    # the same with 4-byte elements
    "iso3dfd": [
        constant(108),
        76 * N - 272,
        76 * N,
        44 * M * N - 144 * N,
        44 * M * N,
        12 * L * M * N - 64 * M * N,
    ],
    # d1: N, NM−N, N, ∞; xx: 1 ×3, ∞; xy: N ×3, ∞; xz: NM ×3, ∞; u1: ∞
    # t = 1: 4 + 4 + 4 + 4 + 1; t = N: 4N + (3 + N) + 4N + 4N + N; t = NM−N: (2N + 2t) + (3 + t) + (3N + t) + 4t + t;
    # t = NM: (2NM + N) + (3 + NM) + (3N + NM) + 4NM + NM
    "uxx": [
        constant(136),
        112 * N + 24,
        72 * M * N - 32 * N + 24,
        72 * M * N + 32 * N + 24,
        40 * L * M * N - 128 * M * N + 32 * N + 24,
    ],
    # p: planes above and below N−1, 1, 1, N−1 = 2N; plane 0 as 27-pt 2N + 2; between NM−2N−1; 13 more streams
    # t = 1: 18 + 1 + 13; t = N−2: 2 (2t + 2) + 6 + 2t + (2 + 1 + 13) t; t = N−1: 2 (2t + 2) + 6 + 2 (N−2) + 16 t;
    # t = NM−2N−1: 4N + 2N + 2 + 16 t
    "himeno": [
        constant(128),
        88 * N - 136,
        88 * N - 56,
        64 * M * N - 104 * N - 56,
        56 * L * M * N - 104 * M * N,
    ],
}


@pytest.mark.parametrize("kernel", STENCILS)
def test_symbolic_conditions_of_stencils(kernel: str) -> None:
    assert same(formulas(traffic_of(kernel)), STENCILS[kernel])


# matvec: x needs a row of A and x itself and an element of y: (8 + 8) N + 8; everything: 8 MN + 8N + 8M
LINEAR_ALGEBRA = {
    "matvec": [16 * N + 8, 8 * M * N + 8 * M + 8 * N],
    "matvec-transposed": [16 * N + 8, 8 * M * N + 8 * M + 8 * N],
    # C over k: a row of C, one of B; B over j: all of B, a row of A, two of C (j leaves one, reaches one); everything
    "matmul": [16 * N + 8, 8 * K * N + 8 * K + 16 * N, 8 * K * M + 8 * K * N + 8 * M * N],
    "copy": [16 * N],
    "schoenauer": [32 * N],
}


@pytest.mark.parametrize("kernel", LINEAR_ALGEBRA)
def test_symbolic_conditions_of_linear_algebra(kernel: str) -> None:
    assert same(formulas(traffic_of(kernel)), LINEAR_ALGEBRA[kernel])


def test_mixed_element_sizes_travel_by_their_own_bytes() -> None:
    # a (float) t = N−1: 3 t + 2 + t... (N−1) + 2 + (N−1) + (N−1) = 3N − 1 elements of 4 B; b (double): N−1 of 8 B
    text = """void f(float a[restrict M][N], double b[restrict M][N]) {
        for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i)
            b[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]; }"""
    assert same(formulas(parsed(text, N=1000, M=1000))[1:2], [4 * (3 * N - 1) + 8 * (N - 1)])


def test_an_array_without_the_carrying_loop_counts_its_extent() -> None:
    text = """void f(double a[restrict M][N], double c[restrict N]) {
        for (int j = 1; j < M; ++j) for (int i = 0; i < N; ++i) a[j][i] = a[j-1][i] + c[i]; }"""
    # a over j: distance N, travel N; c: N
    assert same(formulas(parsed(text, N=1000, M=1000))[:1], [24 * N])


def test_backward_loops_mirror() -> None:
    text = """void f(double a[restrict M][N], double b[restrict M][N]) {{
        for (int j = {}) for (int i = {})
            b[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]; }}"""
    up, down = "{0} = 1; {0} < {1} - 1; ++{0}", "{0} = {1} - 2; {0} > 0; --{0}"
    found = [
        formulas(parsed(text.format(outer.format("j", "M")[4:], inner.format("i", "N")[4:]), N=1000, M=1000))
        for outer in (up, down)
        for inner in (up, down)
    ]
    assert all(formula == found[0] for formula in found)


def test_rates_of_references_that_rest_in_the_inner_loop() -> None:
    traffic = traffic_of("matvec", N=5000, M=5000)
    expected = 2 + constant(8) / N
    assert same([traffic.paths[0].loads_formula], [expected])
    assert traffic.paths[0].loads == pytest.approx(2 + 8 / 5000)
    assert "held-in-register" not in {note.code for note in traffic.notes}
    transposed = traffic_of("matvec-transposed", N=5000, M=5000)
    assert [note.text for note in transposed.notes if note.code == "held-in-register"] == [
        "x[j]: held in a register while the inner loop runs"
    ]
    assert transposed.register_loads_bytes == pytest.approx(128 + 64 / 5000)
    assert transposed.register_stores_bytes == 64


def test_column_access_reuses_lines_over_the_outer_loop() -> None:
    text = """void f(double a[restrict N][M], double b[restrict M][N]) {
        for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[i][j]; }"""
    # a column of a occupies N lines of 64 B, a row of b 8N
    fits, fails = parsed(text, N=400, M=1000), parsed(text, N=1000, M=1000)
    assert same(formulas(fits)[:1], [72 * N])
    assert fits.paths[0].loads == 2
    assert fails.paths[0].loads == 9


def test_access_table_sums_to_the_paths() -> None:
    for kernel in ("stencil", "3d-7pt", "uxx", "matvec-transposed", "matmul"):
        traffic = traffic_of(kernel)
        beyond = [sum(row.served_by[name] for row in traffic.accesses) for name in ("L2", "L3", "Mem")]
        for index, path in enumerate(traffic.paths):
            assert sum(beyond[index:]) == pytest.approx(path.loads)
    reasons = [row.reason for row in traffic_of("stencil", N=5000, M=5000).accesses]
    assert reasons[2] == ("finds the lines of a[j][i-1] again over loop j, which needs 156.2 KiB and fits L2 (256 KiB)")


@pytest.mark.parametrize("kernel", ["3d-7pt", "matvec", "matvec-transposed", "copy"])
def test_rows_that_come_again_are_those_that_another_reference_touched(kernel: str) -> None:
    """Not those that stay (x of a product), nor neighbours in the row."""
    again = {row.access for row in traffic_of(kernel).accesses if row.from_earlier_row}
    rows = {"a[k][j][i+1]", "a[k][j-1][i]"}  # of the plane; those of other planes are found over k
    planes = {"a[k][j+1][i]", "a[k-1][j][i]"}
    assert again == (rows | planes if kernel == "3d-7pt" else set())


def test_victim_cache_takes_all_lines_and_passes_loads_by() -> None:
    traffic = traffic_of("copy", "clx", N=20_000_000)
    assert [(p.loads, p.stores, p.clean_victims) for p in traffic.paths] == [(2, 1, 0), (0, 1, 1), (2, 1, 0)]
    inside = traffic_of("copy", "clx", N=500_000)
    assert [(p.loads, p.stores, p.clean_victims) for p in inside.paths] == [(2, 1, 0), (2, 1, 1), (0, 0, 0)]
    conditions = [c for c in traffic.conditions if c.cache == "L3"]
    clx = load_machine("clx")
    assert conditions[0].capacity_bytes == clx.level("L2").size_bytes + clx.level("L3").size_bytes
    assert "victim-cache" in {note.code for note in traffic.notes}


def test_victim_cache_without_clean_victims_never_serves_lines_that_are_only_read() -> None:
    sizes = {"N": 1000}
    nest = parse_kernel(
        "void f(double a[restrict N], double b[restrict N]) { for (int i = 0; i < N; ++i) a[i] = b[i]; }", "t.c", sizes
    )
    traffic = layer_conditions(nest, toy_machine(2048, 1e6, victim=True, clean_victims=False), sizes)
    assert [(p.loads, p.stores, p.clean_victims) for p in traffic.paths] == [(1, 1, 0), (1, 0, 0)]


def test_shared_cache_is_shared_and_safety_scales() -> None:
    nest = load_kernel("3d-7pt")
    sizes = sizes_of(nest, {})
    size = SNB.level("L3").size_bytes
    for cores, safety, share in ((1, 1.0, size), (4, 1.0, size / 4), (16, 0.5, size / 16)):
        traffic = layer_conditions(nest, SNB, sizes, cores=cores, safety=safety)
        capacity = {c.cache: c.capacity_bytes for c in traffic.conditions}
        assert capacity["L3"] == max(share, size / 8) * safety
        assert capacity["L1"] == 32768 * safety


def test_arithmetic_intensity() -> None:
    traffic = traffic_of("stencil", N=5000, M=5000)
    # 4 FLOP; 5 references of 8 B; per unit of 8 iterations 5, 3 and 3 lines of 64 B
    assert traffic.arithmetic_intensity == {"L1": 4 / 40, "L2": 32 / 320, "L3": 32 / 192, "Mem": 32 / 192}
    assert traffic_of("pi").arithmetic_intensity == {"L1": None, "L2": None, "L3": None, "Mem": None}


@pytest.mark.parametrize(
    ("kernel", "iterations", "stream"),
    [("stencil", 8, "b[j][i]"), ("himeno", 16, "wrk2[k][j][i]"), ("dot", 8, "a[i]"), ("pi", 1, "")],
)
def test_unit_of_work(kernel: str, iterations: int, stream: str) -> None:
    traffic = traffic_of(kernel)
    assert (traffic.iterations_per_unit, traffic.unit_stream) == (iterations, stream)


def test_unit_of_work_follows_the_fastest_written_stream() -> None:
    text = """void f(float a[restrict N], double b[restrict N][3]) {
        for (int i = 0; i < N; ++i) { a[i] = 1.0f; b[i][1] = 2.0; } }"""
    traffic = parsed(text, N=10000)
    assert traffic.iterations_per_unit == pytest.approx(64 / 24)
    assert traffic.unit_stream == "b[i][1]"


def test_transitions_ascend() -> None:
    traffic = traffic_of("stencil", N=5000, M=5000)
    values = [value for symbol, value, _, _ in traffic.transitions]
    assert values == sorted(values)
    assert {symbol for symbol, *_ in traffic.transitions} == {"N"}
    assert ("N", 1024, "L1") in {transition[:3] for transition in traffic.transitions}
    only = traffic_of("copy")
    assert [(s, n, cache) for s, n, cache, _ in only.transitions] == [
        ("N", 2048, "L1"),
        ("N", 16384, "L2"),
        ("N", 1310720, "L3"),
    ]


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(("stencil", "3d-7pt", "uxx", "matmul", "matvec")),
    st.lists(st.integers(12, 3000), min_size=4, max_size=4),
    st.floats(0.2, 1.0),
)
def test_conditions_break_exactly_where_they_say(kernel: str, values: list[int], safety: float) -> None:
    nest = load_kernel(kernel)
    sizes = dict(zip(nest.symbols, values, strict=False))
    for condition in layer_conditions(nest, SNB, sizes, safety=safety).conditions:
        symbols = condition.required_bytes.free_symbols
        assert condition.holds == (condition.required <= condition.capacity_bytes)
        for name, largest in condition.breaks_at.items():
            if name not in symbols:
                assert largest is None
                continue
            assert largest is not None
            after = condition.required_bytes.value({**sizes, name: largest + 1})
            assert after > condition.capacity_bytes
            if largest:
                assert condition.required_bytes.value({**sizes, name: largest}) <= condition.capacity_bytes


def test_a_prepared_nest_gives_the_same_at_every_size() -> None:
    nest = load_kernel("3d-7pt")
    prepared = symbolic_nest(nest)
    for n in (20, 100, 1000):
        sizes = {"L": n, "M": n, "N": n}
        sized = at_sizes(prepared, sizes, SNB.line_bytes)
        assert layer_conditions(sized, SNB, sizes) == layer_conditions(nest, SNB, sizes)


def test_triangular_and_half_sizes_stay_exact_formulas() -> None:
    text = """void f(double a[restrict N], double b[restrict N]) {
        for (int i = 0; i < N / 2; ++i) a[i] = b[i]; }"""
    (condition,) = in_cache(parsed(text, N=1001))
    assert condition.required == 16 * 500
    largest = condition.breaks_at["N"]
    assert largest == 2 * 2048 + 1


def test_several_index_patterns_are_noted() -> None:
    text = """void f(double a[restrict N][N], double b[restrict N][N]) {
        for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[j][i] + a[i][j]; }"""
    assert [note.kind for note in parsed(text, N=100).notes if note.code == "several-index-patterns"] == ["warning"]


def test_bad_input_is_refused() -> None:
    nest = load_kernel("stencil")
    with pytest.raises(InputError, match="no value for M"):
        layer_conditions(nest, SNB, {"N": 100})
    with pytest.raises(InputError, match="loop i makes no iteration with M = 100, N = 2"):
        layer_conditions(nest, SNB, {"N": 2, "M": 100})
    with pytest.raises(UsageError, match="safety factor 0"):
        layer_conditions(nest, SNB, {"N": 100, "M": 100}, safety=0)
    with pytest.raises(UsageError, match="cores"):
        layer_conditions(nest, SNB, {"N": 100, "M": 100}, cores=0)


def test_an_index_that_is_not_affine_is_refused() -> None:
    from dataclasses import replace

    nest = load_kernel("copy")
    first = nest.accesses[0]
    crooked = replace(first, index=(variable("i") ** 2,))
    with pytest.raises(UnsupportedKernelError, match="not affine"):
        layer_conditions(replace(nest, accesses=(crooked, *nest.accesses[1:])), SNB, {"N": 100})


def test_without_write_allocate_a_written_line_is_not_loaded() -> None:
    from dataclasses import replace

    levels = tuple(replace(level, write_allocate=False) for level in SNB.levels)
    nest = load_kernel("copy")
    traffic = layer_conditions(nest, replace(SNB, levels=levels), sizes_of(nest, {}))
    assert [(p.loads, p.stores) for p in traffic.paths] == [(1, 1)] * 3
    update = load_kernel("update")
    traffic = layer_conditions(update, replace(SNB, levels=levels), sizes_of(update, {}))
    assert [(p.loads, p.stores) for p in traffic.paths] == [(1, 1)] * 3


def test_loads_go_through_a_victim_cache_that_they_cannot_pass() -> None:
    traffic = traffic_of("copy", "zen2", N=20_000_000)
    assert [(p.loads, p.stores, p.clean_victims) for p in traffic.paths] == [(2, 1, 0), (2, 1, 1), (2, 1, 0)]


def test_odd_nests_have_an_answer() -> None:
    nowhere = parsed("void f(double a[restrict N]) { for (int i = 0; i < N; ++i) a[0] += 1.0; }", N=100)
    assert nowhere.paths[0].loads == pytest.approx(1 / 100, abs=0.01)
    assert "no-stream" in {note.code for note in nowhere.notes}
    once = """void f(double a[restrict M][N]) {
        for (int j = 1; j < M; ++j) for (int i = 0; i < N; ++i) a[j][i] = a[j-1][i]; }"""
    assert parsed(once, M=2, N=100_000).paths[0].loads == 2
    tile = """void f(double a[restrict N]) {
        for (int ii = 0; ii < N; ii += 512) for (int i = ii; i < (ii + 512 < N ? ii + 512 : N); ++i) a[i] += 1.0; }"""
    small = parsed(tile, N=100)
    assert in_cache(small)[-1].required == 800


@pytest.mark.parametrize("text", [
    "float a[45][205], w[5][5], b[41][201]; for (int y = 0; y < 41; ++y) for (int x = 0; x < 201; ++x) "
    "for (int r = 0; r < 5; ++r) for (int s = 0; s < 5; ++s) b[y][x] += a[y+r][x+s] * w[r][s];",
    "double a[90][600], w[3], b[40][600]; for (int y = 0; y < 40; ++y) for (int r = 0; r < 3; ++r) "
    "for (int x = 0; x < 600; ++x) b[y][x] += a[2*y+r][x] * w[r];",
    "double a[44][1000], w[3], b[40][1000]; for (int y = 0; y < 40; ++y) for (int r = 0; r < 3; ++r) "
    "for (int x = 0; x < 1000; ++x) b[y][x] += a[y+2*r][x] * w[r];",
    "double a[300][150], s; for (int i = 0; i < 150; ++i) for (int j = 0; j < 150; ++j) s += a[i+j][j];",
    "double a[2004], b[2004]; for (int t = 0; t < 9; ++t) for (int i = t + 1; i < t + 1999; ++i) "
    "b[i-t] = a[i-t-1] + a[i-t+1];",
])  # fmt: skip
def test_loops_that_lead_to_the_same_lines_find_them_again(text: str) -> None:
    """A row of an image is touched for each row of a filter: one of them is new in each iteration of the outer loop."""
    nest = parse_kernel(text, "k.c")
    for machine in map(load_machine, ("hsw", "clx")):
        symbolic = layer_conditions(nest, machine, {})
        assert not differs(symbolic, simulate(nest, machine, {}))
        assert all(note.code != "meeting-loops" for note in symbolic.notes)


def test_where_meeting_loops_are_not_counted_a_warning_says_so() -> None:
    text = """void f(int n, int w, float *restrict b, const float *restrict a) {
        for (int y = 0; y < n; y++) for (int r = 0; r < 5; r++) for (int x = 0; x < n; x++)
            b[y*n + x] += a[(y + r)*w + x]; }"""
    nest = parse_kernel(text, "k.c")
    traffic = layer_conditions(nest, load_machine("clx"), {"n": 300, "w": 320})
    (note,) = [note for note in traffic.notes if note.code == "meeting-loops"]
    assert note.kind == "warning" and "array a" in note.text
