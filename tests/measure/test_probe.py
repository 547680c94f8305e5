"""The probe: which carried machine is near, and that what it writes is a machine file (recorded figures)."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.cli.main import main
from kernmodel.errors import MeasurementError, Note
from kernmodel.incore.tables.core_parameters import MissParameters
from kernmodel.machine.files.schema import MACHINE_FILE, read_machine
from kernmodel.measure import lines_beside, probe, trials
from kernmodel.measure.first_cache import kept_lines
from kernmodel.measure.host_topology import HostCache, HostTopology
from kernmodel.measure.model import (
    BandwidthPoint,
    Bandwidths,
    CacheShare,
    Compositions,
    CoresPoint,
    JudgedComposition,
    LinesBeside,
    LoadsBeside,
    ManyStreams,
    MixedStreams,
    PassedPoint,
    Peak,
    Peaks,
    RunPoint,
    Runs,
    SeveralCores,
    StreamPass,
    VectorsBeside,
)
from kernmodel.measure.samples import Figure
from kernmodel.measure.shared_cache import kept_shares
from kernmodel.models.streams import streams_of
from kernmodel.schema.document import document_of

CACHES = (
    HostCache(1, 48 << 10, 12, 64, 64, 1),
    HostCache(2, 2 << 20, 16, 2048, 64, 1),
    HostCache(3, 105 << 20, 15, 114688, 64, 2),
)
GUEST = HostTopology(
    "Xeon", "Intel", 6, 167, frozenset({"avx", "avx2", "avx512f", "avx512vbmi2", "amx_tile"}), True, 1, 1, 2, 1,
    CACHES, 1 << 34,
)  # fmt: skip
# cycles a line of all streams, as measured on a guest with two cores of Sapphire Rapids
CYCLES = {"L1": (0.53, 0.99), "L2": (1.26, 4.96), "L3": (6.56, 15.41), "Mem": (13.1, 27.91)}


def figure(value: float, confirmed: bool = True) -> Figure:
    """One of which no round has enough samples, if it is not confirmed: the same in two trials would confirm it."""
    return Figure(value, value, value * 1.01, 40, 60, True) if confirmed else Figure(0.0, 0.0, 0.0, 40, 60, False)


RUNS = Runs(
    tuple(
        RunPoint(size, 1, figure(cycles, confirmed))
        for size, cycles, confirmed in (
            (512, 22.5, True), (1024, 19.2, False), (4096, 17.5, True), (16384, 9.6, True), (65536, 10.2, True),
            (262144, 9.7, True),
        )
    ),
    (),
)  # fmt: skip
"""One that is not confirmed, one that is faster than a longer one."""


BESIDE = tuple(
    LinesBeside(level, count, figure(cycles, cycles > 0), outer)
    for outer, level, all_cycles in (
        ("Mem", "L2", (9.8, 10.1, 11.3, 11.2, 14.1)),
        ("Mem", "L3", (10.8, 0.0, 15.1)),
        ("L3", "L2", (2.4, 4.7, 7.0)),
    )
    for count, cycles in enumerate(all_cycles)
)
"""Beside three lines it takes less than beside two; of L3 one is not confirmed."""


VECTORS = tuple(
    VectorsBeside(vectors, figure(cycles, vectors != 15))
    for vectors, cycles in ((3, 15.0), (11, 19.0), (15, 0.1), (19, 18.5), (27, 23.0))
)
"""One is not confirmed, one less than that with fewer vectors."""
LOADS = tuple(LoadsBeside(loads, figure(cycles)) for loads, cycles in ((8, 23.0), (16, 26.5), (24, 30.2)))
"""Beyond as many vectors 4, 8 and 7.2 cycles more; each load takes 0.53."""


FIRST = tuple(
    PassedPoint(kib << 10, figure(cycles, kib != 36))
    for kib, cycles in ((12, 2.4), (24, 2.4), (30, 2.85), (36, 9.9), (48, 2.8), (60, 4.2), (120, 4.2))
)
"""Of a cache of 48 KiB; one is not confirmed, one keeps more than with less."""


def many(followed: int | None, *cycles: tuple[int, float, float, bool]) -> ManyStreams:
    passes = (
        (StreamPass(loaded, 18, False, figure(longer)), StreamPass(loaded, 18, True, figure(few, told)))
        for loaded, longer, few, told in cycles
    )
    return ManyStreams(followed, tuple(one for both in passes for one in both))


MANY = many(16, (1, 50.3, 37.3, True), (2, 57.9, 40.0, True), (3, 63.2, 41.7, False), (6, 78.7, 52.5, True))


def share_point(mib: int, cycles: float) -> BandwidthPoint:
    return BandwidthPoint("load", "L3", 64, mib << 20, figure(cycles), figure(64 / cycles))


SHARE = CacheShare("L3", (share_point(13, 6.5), share_point(52, 7.9)), 30 << 20, ())
SEVERAL = SeveralCores((CoresPoint("Mem", "load", 2, 2e10, 1.8e10, 2.1e10, 400, True),), ())
NEAREST = "max(T_OL, T_nOL, T_L1L2, T_L2L3 + T_L3Mem)"
COMPOSED = Compositions(
    (JudgedComposition(NEAREST, 0.04, 0.0, 0.0, 18),
     JudgedComposition("max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)", 0.11, 0.07, 0.02, 18),
     JudgedComposition("max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)", 0.12, 0.08, 0.03, 18)), (),
)  # fmt: skip


def probed(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...] = (), depth: probe.Depth = "default"
) -> probe.Probe:
    points = tuple(
        BandwidthPoint(mix, level, 64, 1 << 20, figure(cycles, level not in missing), figure(64 * accesses / cycles))
        for level, both in CYCLES.items()
        for (mix, accesses), cycles in zip((("load", 1), ("copy", 2)), both, strict=True)
    )
    peaks = Peaks((Peak("FMA", "DP", 64, "vfmadd231pd zmm,zmm,zmm", figure(32.0)),), 2.3e9, ())
    small = (BandwidthPoint("load", "Mem", 64, 1 << 20, figure(15.6), figure(64 / 15.6)),)

    def bandwidths(*_: object, huge: bool = True, **__: object) -> Bandwidths:
        return Bandwidths(points if huge else small, 2.3e9, True, ())

    monkeypatch.setattr(probe, "host_topology", lambda: GUEST)
    monkeypatch.setattr(trials, "measure_bandwidths", bandwidths)
    monkeypatch.setattr(trials, "measure_peaks", lambda *_, **__: peaks)
    monkeypatch.setattr(trials, "measure_runs", lambda *_, **__: RUNS)
    monkeypatch.setattr(trials, "measure_lines_beside", lambda *_, **__: BESIDE)
    monkeypatch.setattr(trials, "measure_vectors_beside", lambda *_, **__: VECTORS)
    monkeypatch.setattr(trials, "measure_loads_beside", lambda *_, **__: LOADS)
    monkeypatch.setattr(trials, "measure_first_cache", lambda *_, **__: FIRST)
    monkeypatch.setattr(trials, "measure_many_streams", lambda *_, **__: MANY)
    monkeypatch.setattr(trials, "measure_share", lambda *_, **__: SHARE)
    monkeypatch.setattr(probe, "measure_several_cores", lambda *_, **__: SEVERAL)
    monkeypatch.setattr(trials, "measure_mixed", lambda *_, **__: MixedStreams({}, ()))
    monkeypatch.setattr(trials, "judged_compositions", lambda *_: COMPOSED)
    monkeypatch.setattr(probe.x86, "vector_bytes", lambda: 64)
    return probe.probe_machine(None, depth=depth)  # type: ignore[arg-type]


def test_a_probe_is_a_machine_file(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    # a line takes 1.15 times the 6.5 cycles at 40.2 of 105 MiB: 6 of 15 ways is nearest
    assert [level.size_bytes for level in machine.levels] == [48 << 10, 2 << 20, 42 << 20]
    assert "written as 6 of 15 ways" in machine.sources["caches.L3"]
    rate = next(one for one in machine.bandwidths if (one.level, one.mix.name) == ("Mem", "load")).bytes_per_second[0]
    assert rate == pytest.approx(64 / 13.1 * 2.3e9, rel=0.01)
    assert "derived from the carried spr.yml" in machine.sources["core"]
    assert "measured on this host" in machine.sources["bandwidths"]
    assert all(path.bytes_per_cycle is None for path in machine.paths[1:])


def test_what_is_not_judged_is_one_note(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [note.text for note in probed(monkeypatch, ("Mem",)).notes if note.code == "not-confirmed"]
    assert len(found) == 1
    assert "Mem load (360 of 900), Mem copy (360 of 900), runs of 1024 B (360 of 900)" in found[0]


def test_runs_are_those_confirmed_that_cost_no_less_than_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert machine.paths[-1].run_length == ((512, 22.5), (4096, 17.5), (65536, 10.2), (262144, 9.7))
    quick = probed(monkeypatch, depth="quick").text
    assert "run_length" not in quick


def test_streams_that_are_followed_are_those_of_confirmed_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None and machine.streams is not None, problems
    assert (machine.streams.followed, machine.streams.longer) == (16, ((1, 13.0), (2, 17.9), (6, 26.2)))
    assert "1 from memory 13.0 to 13.0" in machine.sources["streams"]
    assert "streams:" not in probed(monkeypatch, depth="quick").text


@pytest.mark.parametrize("true", [9, 16, 17, 32, 39])
def test_the_number_of_streams_is_found_by_passes_that_are_slower_or_not(true: int) -> None:
    assert lines_beside._followed(lambda streams: streams > true) == true
    assert lines_beside._followed(lambda streams: None if streams == true + 1 else streams > true) is None
    assert lines_beside._followed(lambda streams: None) is None


@pytest.mark.parametrize("slow", [True, False])
def test_hosts_that_follow_all_streams_or_too_few_have_no_number(slow: bool) -> None:
    assert lines_beside._followed(lambda streams: slow) is None


def test_trials_that_find_different_numbers_of_streams_say_none() -> None:
    both = (1, 50.3, 37.3, True)
    assert trials._merged_many([MANY, many(20, both), many(24, both)]).followed is None
    merged = trials._merged_many([MANY, many(None), many(16, (1, 50.0, 39.0, True)), many(20, both)])
    assert merged.followed == 16
    assert dict(merged.longer)[1] == pytest.approx([11.0, 13.0])
    assert trials._merged_many([many(None), MANY]).followed is None


def test_a_line_from_memory_beside_lines_of_caches_is_as_far_as_it_is_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert [path.beside_memory for path in machine.paths] == [(9.8, 10.1, 11.3, 11.3, 14.1), (), ()]
    assert [path.beside_last for path in machine.paths] == [(2.4, 4.7, 7.0), (), ()]
    assert streams_of(machine, MissParameters(beside_l3=(1.0, 2.0))).beside == {
        "L2": pytest.approx((0.3, 1.5, 1.5, 4.3)),
        "L3": (1.0, 2.0),
    }
    assert "beside_memory measured on this host" in machine.sources["paths.L1L2"]
    assert "beside_last measured on this host" in machine.sources["paths.L1L2"]


def test_what_the_first_cache_keeps_follows_from_what_passes_take(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    first, *_ = machine.levels
    assert first.kept == ((24576.0, 1.0), (30720.0, 0.75), (49152.0, 0.75), (61440.0, 0.0))
    assert "kept measured on this host" in machine.sources["caches.L1"]
    assert kept_lines(FIRST[:1]) == kept_lines(()) == []
    assert kept_lines([FIRST[0], replace(FIRST[-1], cycles=figure(2.5))]) == []  # L2 takes no longer


def test_vectors_and_loads_beside_lines_are_by_how_much_passes_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    memory = machine.paths[-1]
    assert memory.beside_vectors == ((3.0, 0.0), (11.0, 4.0), (19.0, 4.0), (27.0, 8.0))
    assert memory.beside_loads == 0.94  # of 4 / 8, 8 / 16 and 7.2 / 24 over 0.53 the median
    assert "beside_vectors measured on this host" in machine.sources["paths.L3Mem"]
    assert "beside_loads measured on this host" in machine.sources["paths.L3Mem"]
    assert probe._beside_vectors(VECTORS[:1]) == []  # one pair is no course
    assert probe._beside_vectors([replace(VECTORS[0], cycles=figure(16.0, False)), *VECTORS[1:]]) == []


def test_narrower_accesses_have_mixes_of_their_own_and_decide_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = probed(monkeypatch).text
    points = trials.measure_bandwidths(None, None).points

    def both(*_, widths=(), **__):
        narrow = [replace(one, width_bytes=8, cycles_per_line=figure(8.0)) for one in points]
        return Bandwidths(tuple(narrow) if widths else points, 2.3e9, True, ())

    monkeypatch.setattr(trials, "measure_bandwidths", both)
    text = probe.probe_machine(None, depth="thorough").text  # type: ignore[arg-type]
    machines = [read_machine(document_of(one, "mine.yml", MACHINE_FILE))[0] for one in (wide, text)]
    assert [series.mix.access_bytes for series in machines[1].bandwidths if series.mix.name == "load-8B"] == [8] * 4
    assert streams_of(machines[0], MissParameters()).times == streams_of(machines[1], MissParameters()).times


def test_pages_are_a_condition_and_what_small_ones_cost_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert (machine.pages, machine.paths[-1].small_pages) == ("huge", pytest.approx(15.6 - 13.1))
    assert "small_pages" not in probed(monkeypatch, depth="quick").text
    # what is a difference, and what has a spread, says so
    assert "the median of the trials' differences: 2.50" in machine.sources["paths.L3Mem"]
    assert "run_length measured on this host" in machine.sources["paths.L3Mem"]
    assert "spread 512 B" in machine.sources["paths.L3Mem"]


def test_a_difference_that_one_trial_alone_tells_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three probes of one guest had 2.46, 0.00 and 1.58 cycles: the second by one of its trials."""
    probed(monkeypatch)
    measured, calls = trials.measure_bandwidths, []

    def bandwidths(*of: Any, huge: bool = True, **others: Any) -> Bandwidths:
        calls.extend([] if huge else [huge])
        found = measured(*of, huge=huge, **others)
        unsure = replace(found.points[0], cycles_per_line=figure(15.6, False))
        return replace(found, points=(unsure,)) if not huge and len(calls) > 1 else found

    monkeypatch.setattr(trials, "measure_bandwidths", bandwidths)
    assert "small_pages" not in probe.probe_machine(None).text  # type: ignore[arg-type]
    assert len(calls) > 1


def test_trials_that_take_a_minute_each_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spread of one alone is that of rounds in the same second: 1 % of figures that were 41 % off in the next."""
    probed(monkeypatch)
    seconds = iter(range(0, 10_000, 60))
    monkeypatch.setattr(trials.time, "monotonic", lambda: next(seconds))
    assert "probe, 2 trials, " in " ".join(probe.probe_machine(None).text.split())  # type: ignore[arg-type]


@pytest.mark.parametrize(("missing", "count"), [((), 3), (("Mem",), 6)])
def test_trials_go_on_where_streams_of_a_level_are_not_confirmed(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], count: int
) -> None:
    """Of trials of twenty seconds, and as much between them, three fit into 100 seconds, six into 240."""
    probed(monkeypatch, missing)
    seconds = iter(range(0, 10_000, 20))
    monkeypatch.setattr(trials.time, "monotonic", lambda: next(seconds))
    assert f"probe, {count} trials, " in " ".join(probe.probe_machine(None).text.split())  # type: ignore[arg-type]


def test_what_a_shared_cache_keeps_of_more_data_follows_from_the_same_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line takes 6.5 cycles on the plateau, 7.9 over 52 MiB, 13.1 from memory: the seventh part of 6.6 for each."""
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    (usable, all_kept), (more, kept) = machine.level("L3").kept
    assert (usable, all_kept) == (pytest.approx((13 + 39 * (1.15 - 1) * 6.5 / 1.4) * 2**20, rel=1e-6), 1)
    assert (more, kept) == (52 << 20, pytest.approx(1 - 1.4 / 6.6, abs=5e-4))
    assert "kept follows from the same times" in machine.sources["caches.L3"]


@given(
    st.lists(st.floats(0.05, 0.95), min_size=1, max_size=5),
    st.lists(st.floats(0.1, 3.0), min_size=3, max_size=8),
    st.booleans(),
)
def test_the_share_of_lines_kept_gives_the_time_that_was_measured(
    shares: list[float], steps: list[float], table: bool
) -> None:
    """A line of a share of misses m takes m times what one from memory takes beside (1 - m)/m of the cache."""
    memory, plateau = 20.0, 2.0
    # a line from memory beside more of the cache takes longer in all, and each line less
    beside = list(accumulate((max(step, 2.0) for step in steps), initial=memory))
    together = lambda count: float(np.interp(count, range(len(beside)), beside))  # noqa: E731

    def time(lost: float) -> float:
        if not table:
            return plateau + lost * (memory - plateau)
        most = len(beside) - 1
        if lost < 1 / (most + 1):
            return plateau + (beside[-1] / (most + 1) - plateau) * lost * (most + 1)
        return lost * together((1 - lost) / lost)

    falling = sorted(shares, reverse=True)
    points = [share_point(4, plateau), *(share_point(16 + 4 * n, time(1 - h)) for n, h in enumerate(falling))]
    found = kept_shares(CacheShare("L3", tuple(points), 8 << 20, ()), beside if table else [], memory)
    assert found[0] == (8 << 20, 1.0)
    assert [share for _, share in found[1:]] == pytest.approx(falling, abs=1e-6)


def test_what_is_kept_is_not_told_where_the_plateau_or_more_data_are_not_known() -> None:
    unsure = replace(share_point(40, 7.0), cycles_per_line=figure(7.0, False))
    assert kept_shares(CacheShare("L3", (share_point(13, 6.5), unsure), 30 << 20, ()), [], 13.1) == []
    assert kept_shares(CacheShare("L3", (), None, ()), [], 13.1) == []
    # noise does not bring lines back
    noisy = (share_point(13, 6.5), share_point(40, 9.0), share_point(52, 8.0), share_point(60, 99.0))
    assert [share for _, share in kept_shares(CacheShare("L3", noisy, 30 << 20, ()), [], 13.1)] == [
        1.0, *[pytest.approx(1 - 2.5 / 6.6)] * 2, 0.0,
    ]  # fmt: skip


def test_a_share_of_a_cache_that_is_not_known_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    probed(monkeypatch)
    monkeypatch.setattr(trials, "usable_bytes", lambda _: None)
    text = " ".join(probe.probe_machine(None).text.split())  # type: ignore[arg-type]
    assert "how much of it one core can use is not known" in text


@pytest.mark.parametrize("missed", [1, 2, 4, 14])
def test_pages_are_huge_only_if_those_of_all_figures_are(monkeypatch: pytest.MonkeyPatch, missed: int) -> None:
    """Nine trials, each of wide accesses and of narrow ones, then a load in small pages that were asked for."""
    probed(monkeypatch)
    measured, calls = trials.measure_bandwidths, []

    def bandwidths(*of: Any, **others: Any) -> Bandwidths:
        calls.append(others)
        late = (Note("no-huge-pages", "not got"),) if len(calls) == missed else ()
        return replace(measured(*of, **others), huge=not late, notes=late)

    monkeypatch.setattr(trials, "measure_bandwidths", bandwidths)
    found = probe.probe_machine(None, depth="thorough")  # type: ignore[arg-type]
    assert [others.get("huge", True) for others in calls] == [True, True, False] * 9
    machine, problems = read_machine(document_of(found.text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert machine.pages is None
    assert "no-huge-pages" in [note.code for note in found.notes]


def test_what_is_not_confirmed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch, ("L3",)).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert not [one for one in machine.bandwidths if one.level == "L3"]


@pytest.mark.parametrize(
    ("vendor", "family", "number", "features", "name", "doubtful"),
    [
        ("Intel", 6, 143, {"amx_tile"}, "spr", False),
        ("Intel", 6, 173, {"amx_tile"}, "gnr", False),
        ("Intel", 6, 106, {"avx512_vbmi2"}, "icx", False),
        ("Intel", 6, 85, {"avx512f"}, "clx", False),
        ("Intel", 6, 167, {"amx_tile"}, "spr", True),
        ("Intel", 6, 106, {"amx_tile"}, "spr", True),
        ("AMD", 25, 17, {"avx512f"}, "zen4", False),
        ("AMD", 25, 1, {"avx2"}, "zen3", False),
        ("AMD", 26, 2, {"avx512f"}, "zen4", True),
    ],
)
def test_the_core_is_that_of_cpuid_unless_extensions_contradict(
    vendor: str, family: int, number: int, features: set[str], name: str, doubtful: bool
) -> None:
    host = replace(GUEST, vendor=vendor, family=family, number=number, features=frozenset(features))
    found, why = probe.nearest_machine(host)
    assert (found, bool(why)) == (name, doubtful)


def test_a_host_near_no_carried_machine_is_refused() -> None:
    with pytest.raises(MeasurementError, match="no carried machine is near"):
        probe.nearest_machine(replace(GUEST, vendor="unknown"))


def test_a_place_that_is_not_there_is_refused_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machine", "probe", "-o", "nowhere/mine.yml"]) == 2
    assert "there is no directory nowhere" in capsys.readouterr().err
    assert main(["machine", "probe", "--quick", "--thorough"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_several_cores_and_the_nearest_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(monkeypatch)
    machine, problems = read_machine(document_of(found.text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    (load,) = (one for one in machine.bandwidths if (one.level, one.mix.name) == ("Mem", "load"))
    assert (load.cores, load.bytes_per_second[1]) == ((1, 2), 2e10)
    assert str(machine.overlap) == NEAREST
    assert "the carried spr.yml has" in machine.sources["overlap"]
    assert any("2 cores are too few to tell" in note.text for note in found.notes)


def test_a_composition_that_is_hardly_nearer_leaves_the_carried_one(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = tuple(replace(one, doubt=0.05) for one in COMPOSED.judged)
    monkeypatch.setitem(globals(), "COMPOSED", replace(COMPOSED, judged=judged))
    machine, _ = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None
    assert str(machine.overlap) != NEAREST
    assert "not told apart from the nearest" in machine.sources["overlap"]
    assert [str(one) for one in machine.undecided] == [
        one.expression for one in judged if one.expression != str(machine.overlap)
    ]


def test_a_quick_probe_takes_caches_and_composition_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _ = read_machine(document_of(probed(monkeypatch, depth="quick").text, "mine.yml", MACHINE_FILE))
    assert machine is not None
    assert machine.levels[-1].size_bytes == CACHES[-1].size_bytes
    assert machine.sources["overlap"].startswith("derived from the carried")
