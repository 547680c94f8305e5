"""Kernels and bandwidths: sizes, drivers and places; code runs (plausibility alone)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernmodel.errors import InputError, MeasurementError
from kernmodel.measure import code_x86 as x86
from kernmodel.measure import host, host_topology, kernels
from kernmodel.measure.bandwidth import ACCESS_BYTES, MIXES, function, level_sizes, measure_bandwidths
from kernmodel.measure.host import Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import HostCache, HostTopology
from kernmodel.measure.samples import ISSUE_TOLERANCE, UNROLLED_TOLERANCE, Brackets, Figure, Sample, counts
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of

on_host = pytest.mark.skipif(
    sys.platform != "linux" or not x86.host_features(), reason="kernels are measured on Linux on x86-64"
)


def topology(memory: int) -> HostTopology:
    caches = (
        HostCache(1, 49152, 12, 64, 64, 1),
        HostCache(2, 2 << 20, 16, 2048, 64, 1),
        HostCache(3, 96 << 20, 12, 1, 64, 2),
    )
    return HostTopology("x", "Intel", 6, 143, frozenset(), True, 1, 1, 2, 1, caches, memory)


def test_data_of_a_level_fit_it_and_exceed_the_one_before() -> None:
    sizes = level_sizes(topology(16 << 30))
    assert list(sizes) == ["L1", "L2", "L3", "Mem"]
    assert sizes["L1"] <= 49152 < sizes["L2"] <= 2 << 20 < sizes["L3"] <= 96 << 20 < sizes["Mem"]
    assert "Mem" not in level_sizes(topology(256 << 20))


def test_a_level_that_the_host_lacks_is_refused_before_anything_runs() -> None:
    with pytest.raises(InputError, match="no level L4; choose L1, L2, L3, Mem"):
        measure_bandwidths(None, topology(16 << 30), levels=["L4"])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["triad.c", "stencil.c", "3d-7pt.c", "matvec.c"])
@pytest.mark.parametrize("wanted", [24 << 10, 1 << 20, 300 << 20])
def test_sizes_are_scaled_to_the_bytes_wanted(name: str, wanted: int) -> None:
    nest = load_kernel(name, {})
    found = kernels.sizes_in(nest, sizes_of(nest, {}), wanted)
    assert 0.5 * wanted <= kernels.data_bytes(nest, sizes_of(nest, found)) <= wanted


def test_extents_without_a_value_start_somewhere(tmp_path: Path) -> None:
    file = tmp_path / "rows.c"
    file.write_text("double a[M][N];\nfor (int t = 0; t < T; ++t) for (int i = 0; i < N; ++i) a[0][i] += 1.0;\n")
    assert kernels.starting_sizes(load_kernel(str(file), {}), {"N": 50}) == {"M": 1000, "N": 50}


def test_the_driver_passes_arrays_sizes_and_numbers() -> None:
    nest = load_kernel("stencil.c", {"N": 100, "M": 50})
    text = kernels._driver(nest, {"N": 100, "M": 50}, {"N": 100, "M": 50})
    assert "stencil(buffers[0], buffers[1], 0.5)" in text


def test_arrays_that_are_no_parameters_are_refused(tmp_path) -> None:
    file = tmp_path / "outside.c"
    file.write_text("#define N 1000\nstatic double a[N];\nvoid f(void) { for (int i = 0; i < N; ++i) a[i] = 1.0; }\n")
    nest = load_kernel(str(file), {})
    with pytest.raises(InputError, match="no parameter"):
        kernels._driver(nest, {"N": 1000}, {})


def test_arrays_begin_where_they_are_wanted() -> None:
    assert {kernels.Conditions().start(number, "a") % 64 for number in range(9)} == {0}
    assert kernels.Conditions(data_align=16).start(3, "a") % 64 == 16
    assert kernels.Conditions(array_offsets=(("b", 8),)).start(2, "b") % 64 == 8


def test_of_long_samples_clock_and_the_time_of_others_count() -> None:
    brackets = Brackets(9600, 0.14, 0.19)
    assert counts(Sample(0, 10**8, (8350, 8400), (1190, 5000), (1600, 1600), 0), brackets)
    assert counts(Sample(0, 10**10, (8350, 8350), (1190, 1190), (1600, 1600), 8, 0.004), brackets)
    assert not counts(Sample(0, 10**8, (8350, 8350), (1190, 1190), (1600, 1600), 1, 0.02), brackets)
    assert not counts(Sample(0, 10**8, (8350, 8900), (1190, 1190), (1600, 1600), 0), brackets)
    assert not counts(Sample(0, 10**5, (8350, 8350), (1190, 5000), (1600, 1600), 0), brackets)


def test_a_kernel_is_measured_until_two_times_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first, in which something slowed it, decides nothing; five times that all differ are enough."""
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)

    def taken(*values: float) -> list[float]:
        waiting = [Figure(value, value, value, 9, 0, True) for value in reversed(values)]
        return [one.value for one in kernels.spaced(waiting.pop)]

    assert taken(7.3, 5.4, 5.5, 1.0) == [7.3, 5.4, 5.5]
    assert taken(7.3, 5.4, 6.3, 5.5, 1.0) == [7.3, 5.4, 6.3, 5.5]
    assert len(taken(1.0, 2.0, 4.0, 8.0, 16.0, 32.0)) == 5
    assert len(pauses) == 2 + 3 + 4


def test_figures_that_differ_from_time_to_time_are_told() -> None:
    def notes(*values: float) -> list[str]:
        return [note.text for note in kernels._repetition_notes([Figure(v, v, v, 9, 0, v > 0) for v in values])]

    assert notes(2.0, 1.0) == ["no two of 2 figures, some time apart, agree within 5%: 1 to 2 cycles an iteration"]
    assert notes(2.0, 0.0) == ["no two of 2 figures, some time apart, agree within 5%: one alone is confirmed"]
    assert notes(2.0) == notes(0.0, 0.0) == notes(2.0, 1.0, 2.0) == []


def test_calls_of_seconds_are_measured_by_fewer_samples_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight samples a round of two seconds each: no second round was ever made, so that nothing was confirmed."""
    rounds = [kernels.long_effort(kernels.EFFORT, seconds).samples for seconds in (0.01, 0.2, 2.0)]
    assert rounds == [8, 6, 3]
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    assert len(kernels.spaced(lambda: Figure(1.0, 1.0, 1.0, 9, 0, True))) == 1


class Slow(Harness):
    """A child whose calls take ten seconds; the core is undisturbed for the first `taken` of a round."""

    def __init__(self, taken: int = 1000) -> None:
        self.processors, self._turn, self._taken = (0,), 0, taken
        self._brackets = Brackets(9600, 0.14, 0.19)

    def pin(self, processor: int) -> None: ...

    def wait_for(self, issue: float) -> None: ...

    def run(self, cases, samples, seconds=None, *, wait_ms=0):
        return [Sample(0, 10**10, (8350, 8350), (1190, 1190), (1600, 1600), 0)] * min(samples, self._taken)


def test_a_figure_has_two_rounds_however_long_they_take() -> None:
    figure = Slow().figure([Case(1)], lambda ends: ends[0], Effort(3, rounds=3, seconds=0.0))
    assert figure.confirmed and figure.accepted == 6


def test_samples_that_were_never_taken_are_not_refused() -> None:
    """A round whose core stays disturbed takes fewer: "152 of 3900 samples count" had some thousands of no sample."""
    figure = Slow(taken=4).figure([Case(1)], lambda ends: ends[0], Effort(150, rounds=2, seconds=0.0))
    assert (figure.accepted, figure.refused) == (8, 0)


class BesideOneThatWaits(Slow):
    """A child beside a sibling that mostly waits, whose calls take 100,000 ticks."""

    def run(self, cases, samples, seconds=None, *, wait_ms=0):
        issue = round(1.17 * 0.14 * 8350)
        return [Sample(0, 10**5, (8350, 8350), (issue, issue), (1560, 1560), 0)] * samples


def test_unrolled_loops_are_measured_beside_a_sibling_that_mostly_waits() -> None:
    for issue, counted in ((ISSUE_TOLERANCE, 0), (UNROLLED_TOLERANCE, 40)):
        effort = Effort(20, rounds=2, seconds=0.0, issue=issue)
        assert BesideOneThatWaits().figure([Case(1)], lambda ends: ends[0], effort).accepted == counted


@on_host
def test_the_program_that_measures_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    run = host._run
    monkeypatch.setattr(host, "_run", lambda command, folder: (compiled.append(command[-1]), run(command, folder))[1])
    for _ in range(3):
        with Harness():
            pass
    assert sum(command.endswith("harness.c") for command in compiled) <= 1


def test_that_index_arrays_hold_zeros_is_said() -> None:
    assert [note.text for note in kernels._index_notes(load_kernel("gather.c", {}))] == [
        "index arrays hold zeros: every access of x through them is of one element"
    ]
    assert list(kernels._index_notes(load_kernel("triad.c", {}))) == []


@on_host
@pytest.mark.parametrize("mix", ["load", "daxpy", "triad", "load8_store", "copy_nt"])
def test_streams_assemble_for_every_width(mix: str) -> None:
    for width in ACCESS_BYTES:
        if width <= x86.vector_bytes() and (width > 8 or not MIXES[mix].streaming):
            assert function(MIXES[mix], width)


@on_host
def test_runs_meet_every_block_of_their_set() -> None:
    from kernmodel.measure.host import Buffer, Case, Harness
    from kernmodel.measure.runs import _FACTOR, _INCREMENT, function

    blocks, position, met = 64, 0, set()
    for _ in range(blocks):
        position = (position * _FACTOR + _INCREMENT) & (blocks - 1)
        met.add(position)
    assert met == set(range(blocks))
    with Harness() as harness:
        harness.buffer(0, Buffer(blocks * 512, 0, False))
        harness.value(63, 0)
        harness.load(function(512, blocks))
        assert len(harness.run([Case(1, blocks)], 3)) == 3


@on_host
def test_streams_run_to_the_end_of_their_arrays_and_begin_again() -> None:
    from kernmodel.measure.host import Buffer, Case, Harness

    with Harness() as harness:
        for number in range(4):
            harness.buffer(number, Buffer(4096, 64 * number, False))
        harness.value(62, 4096)
        harness.value(63, 0)
        harness.load(function(MIXES["triad"], 16))
        assert len(harness.run([Case(50, 1024), Case(50, 4096)], 3)) == 6


@pytest.mark.parametrize(
    ("group", "limit", "free"),
    [("max", 1 << 40, 8 << 30), ("3000000000", 1 << 40, 2 << 30), ("max", 150 << 20, 150 << 20)],
)
def test_memory_is_what_host_group_and_limit_leave(
    group: str, limit: int, free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    8388608 kB",
        "/proc/self/cgroup": "1:name=x:/y\n0::/box",
        "/sys/fs/cgroup/box/memory.max": group,
        "/sys/fs/cgroup/box/memory.current": str(3_000_000_000 - (2 << 30)),
    }
    monkeypatch.setattr(host_topology, "_text", lambda path: files.get(path.as_posix(), ""))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert host_topology._memory() == free


def test_too_little_memory_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = object.__new__(Harness)
    monkeypatch.setattr(harness, "_answer", lambda command: "error no memory")
    with pytest.raises(MeasurementError, match=r"not enough memory for 96 MiB of data.*ulimit -v"):
        harness.buffer(0, Buffer(96 << 20))
