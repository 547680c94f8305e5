"""Write-allocates, their evasion and streaming stores in the traffic by layer conditions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from traffic_reference import iterations_of, simulate, stencils, toy_machine

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import MEMORY, CacheSpec, Hierarchy
from kernmodel.code.listing import read_listing
from kernmodel.code.select import select_without_source
from kernmodel.errors import UsageError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine, StoreBehaviour
from kernmodel.resources import carried_files
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.options import StoreMode
from kernmodel.traffic.stores import default_stores, evasion_of, stores_of

CLX = load_machine("clx")
MODES: tuple[StoreMode, ...] = ("regular", "evading", "nt")
OTHERS = {"gather", "scatter", "histogram", "spmv-ell", "pi"}
"""Kernels that layer conditions do not cover, or without arrays."""
KERNELS = [path.stem for path in carried_files("kernels", ".c") if path.stem not in OTHERS]
slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def machine_that(evasion: str, from_cores: int | None = None, machine: Machine = CLX) -> Machine:
    return replace(machine, stores=StoreBehaviour(True, evasion, from_cores))  # type: ignore[arg-type]


def traffic_of(kernel: str, stores: StoreMode, machine: Machine = CLX, cores: int = 1, **sizes: int) -> Traffic:
    nest = load_kernel(kernel)
    return layer_conditions(nest, machine, sizes_of(nest, sizes), cores=cores, stores=stores)


def of_text(text: str, stores: StoreMode, machine: Machine = CLX, **sizes: int) -> Traffic:
    return layer_conditions(parse_kernel(text, "test.c", sizes), machine, sizes, stores=stores)


def codes(traffic: Traffic) -> set[str]:
    return {note.code for note in traffic.notes}


@pytest.mark.parametrize(
    ("behaviour", "cores", "found"),
    [
        (("always", None), 1, (1, 1, 1)),
        (("never", None), 20, (1, 1, 1)),
        (("near-saturation", 6), 1, (0, 0, 0)),
        (("near-saturation", 6), 5, (0, 0, 1)),
        (("near-saturation", 6), 6, (1, 1, 1)),
        (("near-saturation", 6), 40, (1, 1, 1)),
        (("near-saturation", 1), 1, (1, 1, 1)),
        (("near-saturation", None), 1, (0, 0, 0)),
        (("near-saturation", None), 10, (0, 0, 1)),
        (("instruction", None), 1, (0, 0, 1)),
        (("unknown", None), 1, (0, 0, 1)),
    ],
)
def test_share_that_a_machine_evades(
    behaviour: tuple[str, int | None], cores: int, found: tuple[float, float, float]
) -> None:
    evasion = evasion_of(machine_that(*behaviour), cores, "evading")
    assert evasion is not None
    assert (evasion.share, evasion.low, evasion.high) == found
    assert evasion.reason
    assert evasion_of(machine_that(*behaviour), cores, "regular") is None
    assert evasion_of(machine_that(*behaviour), cores, "nt") is None


def test_stores_of_plain_code() -> None:
    found = {evasion: default_stores(machine_that(evasion)) for evasion in ("always", "near-saturation")}
    assert found == {"always": "evading", "near-saturation": "evading"}
    assert {default_stores(machine_that(evasion)) for evasion in ("never", "instruction", "unknown")} == {"regular"}


def test_copy_that_evades() -> None:
    regular, evading = (traffic_of("copy", stores, machine_that("always")) for stores in MODES[:2])
    assert [path.write_allocates for path in regular.paths] == [1, 0, 1]  # lines pass the victim cache by
    assert (regular.path("L3Mem").loads, evading.path("L3Mem").loads) == (2, 1)
    assert evading.path("L3Mem").loads_formula == 1
    assert evading.paths[:-1] == regular.paths[:-1]
    assert evading.levels == regular.levels
    assert evading.arithmetic_intensity["Mem"] == regular.arithmetic_intensity["Mem"] == 0
    (written,) = [row for row in evading.accesses if row.kind == "write"]
    assert written.served_by["Mem"] == 0
    assert "evaded" in written.reason


def test_machine_that_never_evades_is_a_what_if_with_a_warning() -> None:
    traffic = traffic_of("copy", "evading")
    assert traffic.path("L3Mem").loads == 1
    assert [note.kind for note in traffic.notes if note.code == "evasion-what-if"] == ["warning"]
    # nothing to evade, nothing to warn of
    assert "evasion-what-if" not in codes(traffic_of("update", "evading"))
    assert traffic_of("update", "evading").evasion is None


@pytest.mark.parametrize(("cores", "loads", "warned"), [(1, 2, False), (4, 2, True), (6, 1, False)])
def test_evasion_near_saturation(cores: int, loads: float, warned: bool) -> None:
    traffic = traffic_of("copy", "evading", machine_that("near-saturation", 6), cores)
    assert traffic.path("L3Mem").loads == loads
    assert ("evasion-unknown" in codes(traffic)) == warned


TWO_WRITTEN = "void f(double *restrict a, double *restrict b, double x) { for (int i = 0; i < N; ++i) { %s } }"


@pytest.mark.parametrize(
    ("body", "allocated", "share"),
    [
        ("a[i] = x;", 1, 1),
        ("a[i] = x; b[i] = x;", 2, 1),
        ("a[i] = x; b[2 * i] = x;", 1.5, Fraction(1, 3)),  # every other element: no line of b is written whole
        ("a[2 * i] = x;", 1, None),
        ("a[2 * i] = x; a[2 * i + 1] = x;", 1, 1),
        ("a[i] = a[i] * x;", 0, None),
        ("b[i] = a[i] * x;", 1, 1),
    ],
)
def test_only_lines_written_whole_are_evaded(body: str, allocated: float, share: float | None) -> None:
    machine = machine_that("always")
    regular, evading = (of_text(TWO_WRITTEN % body, stores, machine, N=10**7) for stores in MODES[:2])
    memory = regular.path("L3Mem")
    assert memory.write_allocates == allocated
    assert (evading.evasion.share if evading.evasion else None) == (share if share is None else pytest.approx(share))
    evaded = memory.loads - evading.path("L3Mem").loads
    assert evaded == pytest.approx((share or 0) * allocated)
    assert float(memory.loads_formula - evading.path("L3Mem").loads_formula) == pytest.approx(evaded)


def test_short_rows_are_not_evaded() -> None:
    text = (
        "void f(double a[M][8], double b[M][8]) { for (int j = 0; j < M; ++j) for (int i = 0; i < %d; ++i) a[j][i]=1; }"
    )
    long, short = (of_text(text % n, "evading", machine_that("always"), M=10**7) for n in (8, 7))
    assert long.evasion is not None
    assert short.evasion is None


@pytest.mark.thorough
@slow
@given(case=stencils(), size=st.sampled_from((500.0, 5e3, 5e4, 1e6)), victim=st.booleans())
def test_evasion_takes_the_write_allocates_from_memory_and_nothing_else(
    case: tuple[str, dict[str, int], float], size: float, victim: bool
) -> None:
    text, sizes, _ = case
    nest = parse_kernel(text, "stencil.c", sizes)
    machine = machine_that("always", machine=toy_machine(size, 8 * size, victim=victim))
    regular, evading = (layer_conditions(nest, machine, sizes, stores=stores) for stores in MODES[:2])
    share = evading.evasion.share if evading.evasion else 0
    before, after = regular.paths[-1], evading.paths[-1]
    assert after.loads == pytest.approx(before.loads - share * before.write_allocates)
    assert after.loads >= -1e-12
    assert (after.stores, after.write_allocates) == (before.stores, before.write_allocates)
    assert evading.paths[:-1] == regular.paths[:-1]
    assert (evading.levels, evading.conditions) == (regular.levels, regular.conditions)


@pytest.mark.thorough
@pytest.mark.parametrize("stores", MODES)
@pytest.mark.parametrize("machine", ["snb", "clx", "zen"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_requests_of_the_caches_add_up(kernel: str, machine: str, stores: StoreMode) -> None:
    traffic = traffic_of(kernel, stores, load_machine(machine))
    first, memory = traffic.levels[0], traffic.paths[-1]
    nest = load_kernel(kernel)
    assert [level.level for level in traffic.levels] == ["L1", "L2", "L3"]
    element = min(array.element.size_bytes for array in nest.arrays.values())
    assert first.loads * element == pytest.approx(traffic.register_loads_bytes)
    assert first.stores * element == pytest.approx(0 if stores == "nt" else traffic.register_stores_bytes)
    for level in traffic.levels:
        assert level.load_hits + level.load_misses == pytest.approx(level.loads)
        assert level.store_hits + level.store_misses == pytest.approx(level.stores)
        assert min(level.load_hits, level.load_misses, level.store_hits, level.store_misses) >= 0
        assert level.clean_evictions >= 0
    for inner, outer in zip(traffic.levels, traffic.levels[1:], strict=False):
        asked = inner.load_misses + (inner.store_misses if inner is first else 0)
        assert outer.loads == pytest.approx(asked)
        victims = inner.clean_evictions if outer.level == "L3" and machine != "snb" else 0
        assert outer.stores == pytest.approx(inner.dirty_evictions + victims)
        assert inner.dirty_evictions + inner.clean_evictions <= asked + 1e-9
    evaded = traffic.evasion.share * memory.write_allocates if traffic.evasion else 0
    assert memory.loads == pytest.approx(traffic.levels[-1].load_misses - evaded)
    assert all(path.write_allocates <= path.loads + evaded + 1e-9 for path in traffic.paths)


def test_caches_of_a_copy() -> None:
    first, second, third = traffic_of("copy", "regular").levels
    assert (first.loads, first.load_misses, first.stores, first.store_misses) == (8, 1, 8, 1)
    assert (second.loads, second.load_misses, second.stores, second.store_misses) == (2, 2, 1, 0)
    assert (second.dirty_evictions, second.clean_evictions) == (1, 1)
    assert (third.loads, third.load_misses, third.stores, third.store_misses) == (2, 2, 2, 2)


def test_machine_without_streaming_stores() -> None:
    machine = replace(CLX, stores=StoreBehaviour(streaming=False))
    with pytest.raises(UsageError, match="clx has no streaming"):
        traffic_of("copy", "nt", machine)


@pytest.mark.parametrize(
    ("kernel", "sizes", "expected"),
    [
        # loads, stores, clean victims on L1L2, L2L3, L3Mem
        ("copy", {}, ((1, 0, 0), (0, 0, 1), (1, 1, 0))),
        ("triad", {}, ((2, 0, 0), (0, 0, 2), (2, 1, 0))),
        # read and written: the store takes the line away right after it was read, so it is no victim
        ("update", {}, ((1, 0, 0), (0, 0, 0), (1, 1, 0))),
        ("daxpy", {}, ((2, 0, 0), (0, 0, 1), (2, 1, 0))),
        # the line is loaded by a[j+1][i], taken by the store, loaded again for its neighbours
        ("2d-5pt", {"N": 1000, "M": 5000}, ((2, 0, 0), (0, 0, 1), (2, 1, 0))),
        # y is streamed for every row: neither is its reuse left, nor does it fill a cache
        ("matvec-transposed", {"N": 4000}, ((2.002, 0, 0), (0, 0, 1.00025), (2.00025, 1, 0))),
    ],
)
def test_streaming_stores_by_hand(kernel: str, sizes: dict[str, int], expected: tuple[tuple[float, ...], ...]) -> None:
    traffic = traffic_of(kernel, "nt", **sizes)
    found = tuple((path.loads, path.stores, path.clean_victims) for path in traffic.paths)
    assert found == tuple(pytest.approx(row, abs=1e-9) for row in expected)
    for path in traffic.paths:
        assert float(path.loads_formula.value(traffic.sizes)) == pytest.approx(path.loads)
        assert float(path.stores_formula.value(traffic.sizes)) == pytest.approx(path.stores)
        assert float(path.clean_victims_formula.value(traffic.sizes)) == pytest.approx(path.clean_victims)
    assert all(path.write_allocates == 0 for path in traffic.paths)


def test_streamed_lines_do_not_occupy_the_caches() -> None:
    """The layer condition of the stencil without its output: three rows of a, a row less than with b."""
    regular, streaming = (traffic_of("stencil", stores, N=1300, M=5000) for stores in ("regular", "nt"))
    volumes = [
        {str(c.required_bytes) for c in traffic.conditions if c.cache == "L1"} for traffic in (regular, streaming)
    ]
    assert "32*N - 16" in volumes[0]
    assert "24*N - 8" in volumes[1]
    assert (regular.path("L1L2").loads, streaming.path("L1L2").loads) == (4, 1)


def test_notes_of_streaming_stores() -> None:
    assert "streaming-stores" in codes(traffic_of("copy", "nt"))
    assert not {note.code for note in traffic_of("copy", "nt").notes if note.kind == "warning"}
    assert "streamed-and-read" in codes(traffic_of("update", "nt"))
    many = " ".join(f"a{k}[i] = x;" for k in range(9))
    arrays = "".join(f"double *restrict a{k}, " for k in range(9))
    text = f"void f({arrays} double x) {{ for (int i = 0; i < N; ++i) {{ {many} }} }}"
    assert "combining-buffers" in codes(of_text(text, "nt", N=10**6))
    assert "incomplete-lines" in codes(of_text(TWO_WRITTEN % "a[2 * i] = x;", "nt", N=10**6))


@pytest.mark.thorough
@slow
@given(case=stencils(), size=st.sampled_from((500.0, 5e3, 5e4, 1e6)), victim=st.booleans())
def test_streaming_is_reading_alone_and_a_line_written_once(
    case: tuple[str, dict[str, int], float], size: float, victim: bool
) -> None:
    """Where nothing that is written is read, the caches behave as if the stores were not there."""
    text, sizes, _ = case
    nest = parse_kernel(text, "stencil.c", sizes)
    written = {access.array for access in nest.accesses if access.kind == "write"}
    reads = tuple(access for access in nest.accesses if access.kind == "read")
    assume(not written & {access.array for access in reads})
    machine = toy_machine(size, 8 * size, victim=victim)
    streaming = layer_conditions(nest, machine, sizes, stores="nt")
    reading = layer_conditions(replace(nest, accesses=reads), machine, sizes)
    ratio = streaming.iterations_per_unit / reading.iterations_per_unit
    for own, other in zip(streaming.paths, reading.paths, strict=True):
        assert own.loads == pytest.approx(other.loads * ratio)
        assert own.clean_victims == pytest.approx(other.clean_victims * ratio)
    assert all(path.stores == 0 for path in streaming.paths[:-1])
    regular = layer_conditions(nest, toy_machine(1.0), sizes)
    assert streaming.paths[-1].stores == pytest.approx(regular.paths[-1].stores)


def in_place_stencil(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """(kind, address) of a 5-point stencil in place as code does it that reads and writes a line's elements at once."""
    for j in range(1, rows - 1):
        for start in range(0, columns, 8):
            points = range(max(start, 1), min(start + 8, columns - 1))
            for dj, di in ((0, -1), (0, 1), (-1, 0), (1, 0)):
                yield from ((0, 8 * ((j + dj) * columns + i + di)) for i in points)
            yield from ((2, 8 * (j * columns + i)) for i in points)


@pytest.mark.parametrize("lines", [100, 300, 2500])
def test_in_place_stencil_against_the_simulator(lines: int) -> None:
    rows, columns = 40, 400
    toy = toy_machine(64.0 * lines)
    nest = parse_kernel(
        "void f(double a[M][N], double s) { for (int j = 1; j < M-1; ++j) for (int i = 1; i < N-1; ++i)"
        " a[j][i] = (a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]) * s; }",
        "in-place.c",
        {"M": rows, "N": columns},
    )
    traffic = layer_conditions(nest, toy, {"M": rows, "N": columns}, stores="nt")
    simulator = Simulator(Hierarchy((CacheSpec("L1", 1, lines, load_from=MEMORY, store_to=MEMORY),)))
    trace = list(in_place_stencil(rows, columns))
    kinds, addresses = [kind for kind, _ in trace], [address for _, address in trace]
    for _ in range(2):
        simulator.reset_counters()
        simulator.run_trace(kinds, addresses, [8] * len(trace))
    counters, units = simulator.counters(), (rows - 2) * (columns - 2) / 8
    assert counters.memory_loads / units == pytest.approx(traffic.paths[0].loads, rel=0.06)
    assert (counters.streamed_lines + counters.streamed_parts) / units == pytest.approx(
        traffic.paths[0].stores, rel=0.06
    )
    assert counters.memory_stores == 0
    evicted = counters.levels["L1"].clean_evictions / units
    assert evicted == pytest.approx(traffic.levels[0].clean_evictions, abs=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [2, 7, 8, 9, 40])
def test_columns_gather_while_the_buffers_last(width: int) -> None:
    """Rows of `width` doubles are written down the columns: lines gather over the columns if there are few rows."""
    text = "void f(double a[M][N]) { for (int i = 0; i < N; ++i) for (int j = 0; j < M; ++j) a[j][i] = 1; }"
    sizes = {"M": width, "N": 8000}
    traffic = of_text(text, "nt", **sizes)
    simulator = Simulator(Hierarchy((CacheSpec("L1", 1, 8, load_from=MEMORY, store_to=MEMORY),)))
    for i in range(sizes["N"] // 10):
        for j in range(width):
            simulator.run_trace([2], [8 * (j * sizes["N"] + i)], [8])
    counters = simulator.counters()
    sent = (counters.streamed_lines + counters.streamed_parts) / (width * sizes["N"] // 10)
    assert traffic.paths[-1].stores / traffic.iterations_per_unit == pytest.approx(sent, rel=0.02)


@pytest.mark.parametrize("stores", MODES)
def test_reads_alone_are_the_same_in_every_mode(stores: StoreMode) -> None:
    assert traffic_of("dot", stores).paths == traffic_of("dot", "regular").paths


def test_naive_simulation_of_the_reads() -> None:
    """The Jacobi stencil past the caches, against every access of its reads one by one."""
    sizes = {"M": 60, "N": 400}
    nest = load_kernel("stencil", sizes)
    reads = tuple(access for access in nest.accesses if access.kind == "read")
    machine = toy_machine(20e3)
    loads, _, _ = simulate(replace(nest, accesses=reads), machine, sizes)["L1Mem"]
    traffic = layer_conditions(nest, machine, sizes, stores="nt")
    assert traffic.paths[0].loads / traffic.iterations_per_unit == pytest.approx(loads, rel=0.06)
    assert iterations_of(nest, sizes) > 1


REGULAR, STREAMING = "vmovupd %ymm0, (%rdi,%rax,8)", "vmovntpd %ymm0, (%rbx,%rax,8)"


@pytest.mark.parametrize(
    ("body", "streams", "found"),
    [
        ((REGULAR,), True, (None, None)),
        ((STREAMING,), True, ("nt", "assumption")),
        ((STREAMING, REGULAR), True, (None, "warning")),
        ((STREAMING,), False, (None, "warning")),
        ((REGULAR,), False, (None, None)),
    ],
)
def test_stores_of_compiled_code(
    body: tuple[str, ...], streams: bool, found: tuple[StoreMode | None, str | None]
) -> None:
    lines = "\n".join((".L1:", "vmovupd (%rsi,%rax,8), %ymm0", *body, "addq $4, %rax", "cmpq %rax, %rdx", "jne .L1"))
    loop = select_without_source(read_listing(lines + "\n", "test.s", syntax="att"))
    stores, note = stores_of(loop, replace(CLX, stores=StoreBehaviour(streaming=streams)))
    assert (stores, note.kind if note else None) == found
