"""What one core's streams imply for transfers and their composition, held to the measured streams themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernmodel as km
from kernmodel.formulas.formula import ONE, ZERO
from kernmodel.incore.tables.core_parameters import MissParameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import BandwidthSeries, FollowedStreams, Machine, StreamMix
from kernmodel.machine.overlap import evaluate, parse_overlap
from kernmodel.models.bandwidths import drawn_share, from_caches, nearest_bandwidth, penalties, with_cores
from kernmodel.models.ecm import _beside_notes, utilization
from kernmodel.models.pages import in_pages
from kernmodel.models.streams import Streams, beside_cycles, stream_cycles, streams_of
from kernmodel.models.transfers import Executed, beside_lines, transfer_time, transfer_times
from kernmodel.traffic.model import AccessTraffic, PathLines, PathTraffic, Traffic

# cycles per unit of the streams, from the bandwidths of the machine files: bytes over bandwidth times clock
MIXES = {"load": (1, 0, 0), "copy": (1, 1, 0), "update": (1, 1, 1), "daxpy": (2, 1, 1), "triad": (3, 1, 0)}


def measured(machine, name: str, level: str) -> float:
    for series in machine.bandwidths:
        if (series.mix.name, series.level, series.threads_per_core) == (name, level, 1):
            assert series.cores[0] == 1
            return (series.mix.read + series.mix.write) * 64 / series.bytes_per_second[0] * machine.clock_hz
    raise KeyError(name)


@pytest.mark.parametrize("name", ["snb", "ivb", "hsw", "bdw", "skx", "clx", "zen", "zen2"])
@pytest.mark.parametrize("mix", MIXES)
def test_streams_of_one_core_take_what_was_measured(name, mix):
    """The model of each machine predicts its own streams from memory, which two widths and a bandwidth do not."""
    machine = load_machine(name)
    streams = streams_of(machine, MissParameters())
    rel = 0.07 if name == "clx" else 0.01  # load and triad do not show in its L2
    read, write, both = MIXES[mix]
    loads = read + write - both
    passing = any(level.loads_pass_by for level in machine.levels)
    clean = loads - write if machine.levels[-1].clean_victims else 0
    flows = (PathLines(loads, write, 0), PathLines(0 if passing else loads, write, clean), PathLines(loads, write, 0))
    times = {"T_nOL": read * 64 / machine.core.load_bytes_per_cycle}
    for path, flow in zip(machine.paths, flows, strict=True):
        if path.name in streams.times:
            times[path.time_name] = stream_cycles(streams.times[path.name], path, flow, float(both == write))
    cached = from_caches(machine)
    passes = (1 - cached) * evaluate(streams.overlap, times) + cached * measured(machine, mix, machine.levels[-1].name)
    assert passes == pytest.approx(measured(machine, mix, "Mem"), rel=rel)


def test_a_width_that_makes_a_stream_longer_than_measured_gives_way_to_it() -> None:
    """ThunderX2 takes as long for copy in L3 as in L2, 10.5 and 10.3 cycles; by its width L2L3 alone takes 6."""
    machine = load_machine("tx2")
    streams = streams_of(machine, MissParameters())
    flow = PathLines(2, 1, 0)
    times = {"T_nOL": 64 / machine.core.load_bytes_per_cycle}
    for path in machine.paths:
        times[path.time_name] = stream_cycles(streams.times[path.name], path, flow, 0.0)
        assert evaluate(streams.overlap, times) == pytest.approx(measured(machine, "copy", path.outer), rel=0.01)


@pytest.mark.parametrize(
    ("name", "overlap"),
    [
        ("snb", "max(T_OL, T_nOL + T_L1L2, T_L1L2 + T_L2L3 + T_L3Mem)"),
        ("ivb", "max(T_OL, T_nOL + T_L1L2, T_L1L2 + T_L2L3 + T_L3Mem)"),
        ("hsw", "max(T_OL, T_nOL, T_L1L2 + T_L2L3 + T_L3Mem)"),
        ("skx", "max(T_OL, T_nOL, T_L1L2 + T_L2L3 + T_L3Mem)"),
        ("zen2", "max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)"),
    ],
)
def test_whether_loads_add_to_transfers_is_seen_where_only_loads_differ(name, overlap):
    """daxpy moves the lines of copy and loads one more of each: 2.2 cycles longer in L2 on Sandy Bridge, where that
    load takes 2; 0.1 longer on Haswell, where it takes 1."""
    assert str(streams_of(load_machine(name), MissParameters()).overlap) == overlap


def test_streams_decide_whatever_the_order_of_terms():
    """What one core's streams show about loads, they show of a file that names its terms in another order, too."""
    machine, hits = load_machine("skx"), MissParameters(hits_add=True)
    other = replace(machine, overlap=parse_overlap("max(T_L1L2 + T_L3Mem + T_L2L3 + T_nOL, T_OL)"))
    assert streams_of(other, hits).shown
    assert streams_of(other, hits).times == streams_of(machine, hits).times
    assert streams_of(other, hits).composition(6.0, 3.0) == streams_of(machine, hits).composition(6.0, 3.0)


def test_loads_of_parts_of_lines_add_to_lines_from_l2_where_the_core_is_known_for_it():
    """A triad in L2 on Skylake SP: with loads of whole lines what its own stream takes, with halves the loads more."""
    machine, hits = load_machine("skx"), MissParameters(hits_add=True)
    streams = streams_of(machine, hits)
    assert str(streams.composition(3.0, 3.0)) == "max(T_OL, T_nOL, T_L1L2 + T_L2L3 + T_L3Mem)"
    assert str(streams.composition(6.0, 3.0)) == "max(T_OL, T_nOL + T_L1L2, T_L1L2 + T_L2L3 + T_L3Mem)"
    assert streams.composition(6.0, 3.0) == streams.composition(1.0, 0.0), "what is read is not known"
    assert streams_of(machine, MissParameters()).composition(6.0, 3.0) == streams.overlap
    assert streams_of(load_machine("zen2"), hits).narrow is None, "loads overlap with each path there"


def test_linear_between_mixes_and_nearest_beyond():
    machine = load_machine("hsw")
    path = machine.paths[0]
    times = streams_of(machine, MissParameters()).times[path.name]
    load, update = times[0], times[-1]
    assert (load.modified_share, update.modified_share) == (0.0, 0.5)
    assert stream_cycles(times, path, PathLines(4, 0, 0), 1.0) == pytest.approx(4 * load.cycles_per_line)
    assert stream_cycles(times, path, PathLines(0, 3, 0), 1.0) == pytest.approx(3 * update.cycles_per_line)
    between = stream_cycles(times, path, PathLines(9, 1, 0), 0.0) / 10
    triad = next(time for time in times if time.mixes == ("triad",))
    assert between == pytest.approx((load.cycles_per_line + triad.cycles_per_line) / 2)
    assert stream_cycles(times, path, PathLines(0, 0, 0), 0.0) == 0.0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_lines_read_before_they_are_written_take_what_updates_take(share: float, one: float, other: float) -> None:
    """A mixture lies between both kinds, and moves from the one to the other with the share that was read before."""
    machine = load_machine("zen2")
    path, times = machine.paths[-1], streams_of(machine, MissParameters()).times["L3Mem"]
    flow = PathLines(3 * (1 - share), 3 * share, 0)
    ends = [stream_cycles(times, path, flow, part) for part in (0.0, 1.0)]
    first, second = (stream_cycles(times, path, flow, part) for part in (one, other))
    assert min(ends) - 1e-9 <= first <= max(ends) + 1e-9
    assert (second - first) * (other - one) * (ends[1] - ends[0]) >= -1e-9
    taken = {time.mixes: time.cycles_per_line for time in times}
    third = PathLines(2, 1, 0)
    assert stream_cycles(times, path, third, 0.0) == pytest.approx(3 * taken["copy",])
    assert stream_cycles(times, path, third, 1.0) == pytest.approx(3 * taken["daxpy",])


@given(st.floats(1e9, 1e11), st.floats(0, 0.2), st.floats(0.8, 1.0))
def test_lines_that_caches_served_are_no_bandwidth_of_memory(memory: float, cached: float, together: float) -> None:
    """Two domains have at most twice the bandwidth of one, and the same data in all: what streams of two draw more
    tells a share from caches, all of it where the domains do not disturb each other."""
    machine, mix = load_machine("bdw"), StreamMix("load", 1, 0, 0)
    domain = machine.topology.cores_per_numa_domain
    reported = memory / (1 - cached), 2 * memory * together / (1 - 2 * cached)
    machine = replace(machine, bandwidths=(BandwidthSeries("Mem", mix, (domain, 2 * domain), reported),))
    found = nearest_bandwidth(machine, "Mem", 1.0)
    assert found.from_caches <= cached + 1e-9
    assert found.from_caches == pytest.approx(cached if together == 1 else found.from_caches)
    assert with_cores(machine, found, 2 * domain)[0] <= 2 * found.bytes_per_second * (1 + 1e-9)
    stated = nearest_bandwidth(replace(machine, from_caches=cached), "Mem", 1.0)
    assert stated.bytes_per_second == pytest.approx(memory)
    assert with_cores(machine, stated, 2 * domain)[0] == pytest.approx(2 * memory * together)
    assert drawn_share(machine, stated, domain) == pytest.approx(1.0)
    assert nearest_bandwidth(machine, "Mem", 1.0, textbook=True).bytes_per_second == pytest.approx(reported[0])


@pytest.mark.parametrize(("arrays", "followed"), [(31, True), (32, True), (33, False), (37, False)])
def test_streams_beyond_those_that_the_prefetcher_follows_wait_for_l1_misses(arrays: int, followed: bool) -> None:
    machine = load_machine("hsw")
    streams = streams_of(machine, MissParameters(streams=32, from_l1=10, from_l2=16))
    paths = tuple(PathTraffic(path.name, arrays, 0, 0, arrays * ONE, ZERO, ZERO) for path in machine.paths)
    rows = tuple(AccessTraffic(f"a{n}", f"a{n}[i]", "read", {"Mem": 1.0}, "") for n in range(arrays))
    served = AccessTraffic("b", "b[j]", "read", {"L1": 1.0}, "")
    moved = Traffic("test", 8, "", None, None, 0, 0, 0, paths, (*rows, served), (), (), {}, 1, 1.0, {}, ())
    plain = transfer_times(machine, replace(streams, unfollowed=None), moved, {})
    found = transfer_times(machine, streams, moved, {})
    assert (found == plain) is followed
    load = 64 / 8.93e9 * machine.clock_hz
    assert sum(one.cycles for one in plain) == pytest.approx(arrays * load, rel=0.01)
    if not followed:
        assert sum(one.cycles for one in found) == pytest.approx(arrays * load * 1.6, rel=0.01)
        assert found[-1].bandwidth_cycles == pytest.approx(plain[-1].bandwidth_cycles)
    assert transfer_times(machine, streams_of(machine, MissParameters()), moved, {}) == plain


def _moved(machine, *loads: float) -> Traffic:
    """Traffic that loads so many lines on each path."""
    paths = tuple(
        PathTraffic(path.name, lines, 0, 0, ZERO, ZERO, ZERO) for path, lines in zip(machine.paths, loads, strict=True)
    )
    return Traffic("test", 8, "", None, None, 0, 0, 0, paths, (), (), (), {}, 1, 1.0, {}, ())


def _passes(machine: Machine, loaded: int, *inner: int) -> Traffic:
    """A pass over so many lines from memory, and of each cache from the last one inward."""
    beyond = [loaded + sum(inner[:depth]) for depth in range(len(inner) + 1)]
    row = AccessTraffic("a", "a[0]", "read", {}, "")
    return replace(_moved(machine, *reversed(beyond)), accesses=(row,))


ZEN4_BESIDE = {
    "L2": (4.4, 12.4, 15.3, 18.2, 19.9, 21.6, 24.5, 27.5),
    "L3": (4.3, 10.8, 11.5, 13.6, 17.2, 20.9, 25.0, 29.2),
}
ZEN4_SEVERAL = {
    (2, 0, 2): 23.8, (2, 0, 8): 41.5, (3, 0, 4): 37.4, (4, 0, 4): 45.1, (4, 0, 8): 57.1, (6, 0, 8): 72.5,
    (2, 2, 2): 30.9, (1, 1, 4): 26.2, (1, 2, 6): 33.2, (2, 1, 2): 27.6,
}  # fmt: skip
"""Passes by lines from memory, of L3 and of L2 on a guest on Genoa (benchmarks/memory_parallelism.py, 2026-11-24); a
line from memory takes 6.3 cycles by itself there."""


@pytest.mark.parametrize(("loaded", "l3", "l2"), ZEN4_SEVERAL)
def test_lines_of_caches_count_once_beside_several_from_memory(loaded: int, l3: int, l2: int) -> None:
    machine = load_machine("zen4")
    streams = replace(streams_of(machine, MissParameters()), beside=ZEN4_BESIDE, memory_load=6.3)
    longer = sum(beside_lines(machine, streams, _passes(machine, loaded, l3, l2)).values())
    assert 6.3 * loaded + longer == pytest.approx(ZEN4_SEVERAL[loaded, l3, l2], rel=0.15)
    per_call = replace(_passes(machine, loaded, l3, l2), accesses=())  # of a function lines are spread evenly
    assert sum(beside_lines(machine, streams, per_call).values()) >= longer


ZEN4_VECTORS = ((3, 0.0), (5, 0.7), (7, 1.9), (11, 4.1), (15, 5.1), (19, 5.3), (27, 7.6), (35, 9.2), (43, 12.4))
"""Of `machine probe` on a guest on Genoa, beside a line from memory and two of L3, which 512-bit loads load in 14.8."""


def beside_l2(machine: Machine) -> Streams:
    """The same guest's lines of L2 beside one from memory, by 512-bit loads."""
    streams = replace(streams_of(machine, MissParameters()), memory_load=6.3, vectors=ZEN4_VECTORS, hits=0.32)
    return replace(streams, beside={"L2": (4.3, 10.5, 12.7, 13.7, 15.1, 18.1, 21.0, 23.2)}, first_load=1.0)


@pytest.mark.parametrize(
    ("lines", "vectors", "loads", "measured"),
    [
        # one load a line, and products (benchmarks/lines_beside.py's loop with 2 and 4 lines of L2)
        (2, 3, 3, 16.9), (2, 7, 3, 19.3), (2, 11, 3, 21.0), (2, 15, 3, 23.0), (4, 5, 5, 20.8), (4, 9, 5, 22.7),
        # the same lines by 256-bit and by 128-bit loads
        (2, 6, 3, 19.1), (2, 12, 6, 21.9), (4, 10, 5, 25.1),
        # with 8, 16 and 24 loads of 512 bits from L1, products of zmm registers with memory
        (2, 11, 11, 22.3), (2, 19, 19, 28.3), (2, 27, 27, 35.2),
    ],
)  # fmt: skip
def test_vectors_and_loads_beside_lines_from_memory(lines: int, vectors: int, loads: int, measured: float) -> None:
    """Figures of L3 for passes over lines of L2, measured on the same guest (2026-11-29)."""
    machine = load_machine("zen4")
    moved = _passes(machine, 1, 0, lines)
    found = transfer_times(machine, beside_l2(machine), moved, {}, Executed(vectors, loads))
    assert found[-1].cycles == pytest.approx(measured, rel=0.17)


def test_nothing_waits_longer_without_lines_of_caches_or_where_nothing_is_known() -> None:
    machine = load_machine("zen4")
    streams, many = beside_l2(machine), Executed(100.0, 50.0)
    alone = _passes(machine, 2, 0, 0)
    assert transfer_times(machine, streams, alone, {}, many) == transfer_times(machine, streams, alone, {})
    unknown, both = replace(streams, vectors=(), hits=0.0), _passes(machine, 1, 0, 2)
    assert transfer_times(machine, unknown, both, {}, many) == transfer_times(machine, unknown, both, {})
    assert transfer_times(machine, streams, both, {}, many)[-1].cycles > 25


def test_the_figures_of_the_core_serve_machines_without_their_own() -> None:
    machine = load_machine("zen4")
    known = MissParameters(beside_vectors=((6.0, 0.0), (11.0, 2.7)), beside_loads=0.3)
    found = streams_of(machine, known)
    assert (found.vectors, found.hits) == (known.beside_vectors, 0.3)
    memory = replace(machine.paths[-1], beside_vectors=((3.0, 0.0), (7.0, 2.0)), beside_loads=0.5)
    own = streams_of(replace(machine, paths=(*machine.paths[:-1], memory)), known)
    assert (own.vectors, own.hits) == (memory.beside_vectors, 0.5)


BESIDE = (5.0, 11.8, 14.6, 17.1)
"""Of Zen 4, beside 1 to 4 lines of L2."""


@pytest.mark.parametrize(("inner", "measured"), [(0, 6.7), (1, 11.7), (2, 18.5), (3, 21.3), (4, 23.8)])
def test_lines_from_memory_take_longer_beside_lines_of_l2(inner: int, measured: float) -> None:
    machine = load_machine("zen4")
    found = transfer_times(
        machine, streams_of(machine, MissParameters(beside_l2=BESIDE)), _moved(machine, 1 + inner, 1, 1), {}
    )
    plain = transfer_times(machine, streams_of(machine, MissParameters()), _moved(machine, 1 + inner, 1, 1), {})
    cycles = evaluate(machine.overlap, {one.name: one.cycles for one in found})
    assert cycles == pytest.approx(measured, rel=0.03)
    assert found[-1].bandwidth_cycles == pytest.approx(plain[-1].bandwidth_cycles)  # other cores do not see it
    alone = transfer_times(
        machine, streams_of(machine, MissParameters(beside_l2=BESIDE)), _moved(machine, inner, 0, 0), {}
    )
    assert alone == transfer_times(machine, streams_of(machine, MissParameters()), _moved(machine, inner, 0, 0), {})


def test_lines_that_are_written_back_hide_what_loads_wait_for() -> None:
    """Beside few lines of caches two loaded lines, of which one goes back, take the time of copy: they have room."""
    machine, misses = load_machine("zen4"), MissParameters(beside_l2=(0.02, 0.04))
    moved = _moved(machine, 3, 2, 2)
    written = replace(moved, paths=(*moved.paths[:-1], replace(moved.paths[-1], stores=1.0, write_allocates=1.0)))
    plain = transfer_times(machine, streams_of(machine, MissParameters()), written, {})
    assert transfer_times(machine, streams_of(machine, misses), written, {}) == plain
    longer = transfer_times(machine, streams_of(machine, misses), moved, {})
    assert longer[-1].cycles > transfer_times(machine, streams_of(machine, MissParameters()), moved, {})[-1].cycles


ZEN3_BESIDE = (9.57, 9.97, 11.44, 13.25, 14.73, 16.20, 17.88, 19.64, 21.76)
"""One line from memory beside 0 to 8 lines of L2, as a guest on Milan was probed."""
ZEN3_SEVERAL = {(2, 0, 8): 27.0, (3, 0, 8): 33.9, (1, 1, 4): 22.2, (1, 1, 8): 27.8}
"""Passes by lines that are loaded from memory, only written, and of L2, by benchmarks/memory_parallelism.py there."""


def _of_streams_alone() -> Machine:
    """The guest without what was measured of lines and streams beside one another."""
    probed = load_machine(str(Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml"))
    return replace(probed, streams=None, paths=tuple(replace(path, beside_memory=()) for path in probed.paths))


def test_several_lines_from_memory_beside_lines_of_l2() -> None:
    """Measured passes of which the figures beside one line say nothing by themselves."""
    plain = _of_streams_alone()
    probed = replace(plain, paths=(replace(plain.paths[0], beside_memory=ZEN3_BESIDE), *plain.paths[1:]))
    off: dict[str, list[float]] = {"plain": [], "probed": []}
    for (loaded, written, inner), measured in ZEN3_SEVERAL.items():
        lines = loaded + written
        moved = _moved(plain, lines + inner, lines, lines)
        memory = replace(moved.paths[-1], stores=1.0 * written, write_allocates=1.0 * written)
        moved = replace(moved, paths=(*moved.paths[:-1], memory))
        for name, machine in (("plain", plain), ("probed", probed)):
            times = transfer_times(machine, streams_of(machine, MissParameters()), moved, {})
            cycles = evaluate(machine.overlap, {time.name: time.cycles for time in times})
            off[name].append(abs(cycles / measured - 1))
            told = [note.text for note in _beside_notes(machine, moved, streams_of(machine, MissParameters()))]
            assert ["beside_memory of its file" in text for text in told] == [True] * (name == "probed")
    assert max(off["probed"]) < 0.2
    assert sum(off["probed"]) < 0.8 * sum(off["plain"])


ZEN3_FOLLOWED = FollowedStreams(16, ((1.0, 12.9), (2.0, 17.2), (3.0, 20.0), (6.0, 26.5)))
"""By `measure_many_streams` on a guest on Milan; passes of the same host by lines from memory and of L2, measured with
another loop by benchmarks/memory_parallelism.py."""
ZEN3_MANY = {(1, 12): 30.3, (1, 14): 32.6, (1, 16): 52.5, (1, 20): 62.8, (2, 16): 61.3, (3, 12): 39.2, (3, 14): 60.1}


def _streams(machine: Machine, loaded: int, inner: int) -> Traffic:
    """A line of each of so many streams from memory and from the second cache."""
    rows = [
        AccessTraffic("a", f"a[{n}]", "read", {"Mem" if n < loaded else "L2": 1.0}, "") for n in range(loaded + inner)
    ]
    return replace(_moved(machine, loaded + inner, loaded, loaded), accesses=tuple(rows))


@pytest.mark.parametrize(("loaded", "inner"), ZEN3_MANY)
def test_passes_over_more_streams_than_the_core_follows(loaded: int, inner: int) -> None:
    plain = _of_streams_alone()
    machine = replace(
        plain,
        streams=ZEN3_FOLLOWED,
        paths=(replace(plain.paths[0], beside_memory=ZEN3_BESIDE), *plain.paths[1:]),
    )
    moved = _streams(machine, loaded, inner)
    found = transfer_times(machine, streams_of(machine, MissParameters()), moved, {})
    cycles = evaluate(machine.overlap, {time.name: time.cycles for time in found})
    assert cycles == pytest.approx(ZEN3_MANY[loaded, inner], rel=0.2)
    before = transfer_times(machine, streams_of(replace(machine, streams=None), MissParameters()), moved, {})
    assert (found != before) == (loaded + inner > 16)
    assert found[-1].bandwidth_cycles == pytest.approx(before[-1].bandwidth_cycles)  # other cores do not see it


def test_streams_that_all_lie_in_memory_take_no_longer_for_being_many() -> None:
    machine = replace(load_machine("zen4"), streams=ZEN3_FOLLOWED)
    moved, streams = _streams(machine, 24, 0), streams_of(machine, MissParameters())
    load = streams.memory_load
    assert load is not None
    cycles = evaluate(machine.overlap, {one.name: one.cycles for one in transfer_times(machine, streams, moved, {})})
    assert cycles <= 24 * load * 1.001


ROWS = {
    ("bdw", 1): (60.2, 2, 3),
    ("bdw", 2): (88.7, 4, 5),
    ("bdw", 3): (117.4, 6, 7),
    ("skx", 3): (92.3, 6, 7),
}
"""Measured cy/CL of stars of so many neighbours a side (INSPECT), with lines of rows from L2 and planes from memory."""


@pytest.mark.parametrize(("name", "radius"), ROWS)
def test_lines_of_l2_are_waited_for_while_memory_is(name: str, radius: int) -> None:
    machine = load_machine(name)
    (measured, rows, planes), passing = ROWS[name, radius], machine.levels[-1].loads_pass_by
    loads = (planes + 1 + rows, 0 if passing else planes + 1, planes + 1)
    paths = [
        replace(path, stores=1.0, write_allocates=1.0, clean_victims=float(planes) if passing and number == 1 else 0.0)
        for number, path in enumerate(_moved(machine, *loads).paths)
    ]
    moved, streams = replace(_moved(machine, *loads), paths=tuple(paths)), streams_of(machine, MissParameters())
    found = transfer_times(machine, streams, moved, {})
    without = [transfer_time(machine, streams, path, moved.path(path.name)) for path in machine.paths]
    line = streams.times[machine.paths[0].name][0]
    assert line.modified_share == 0.0
    hidden = sum(one.cycles for one in without) - sum(one.cycles for one in found)
    assert hidden == pytest.approx(rows * (line.cycles_per_line - 64 / (machine.paths[0].bytes_per_cycle or 0.0)))
    assert found[-1].hidden_cycles == pytest.approx(hidden)
    assert found[-1].bandwidth_cycles == pytest.approx(without[-1].bandwidth_cycles)  # other cores do not see it
    assert sum(one.cycles for one in found) == pytest.approx(measured, rel=0.03)
    inner = _moved(machine, 1 + rows, 0 if passing else 1, 0)  # nothing comes from memory
    assert transfer_times(machine, streams, inner, {})[-1].hidden_cycles == 0.0


def test_where_transfers_overlap_no_wait_is_taken_off() -> None:
    machine = load_machine("zen")
    found = transfer_times(machine, streams_of(machine, MissParameters()), _moved(machine, 6, 4, 4), {})
    assert found[-1].hidden_cycles == 0.0


def test_where_transfers_add_up_lines_beside_memory_are_not_counted_twice() -> None:
    machine = load_machine("hsw")
    moved, misses = _moved(machine, 3, 1, 1), MissParameters(beside_l2=(0.5, 1.0))
    plain = transfer_times(machine, streams_of(machine, MissParameters()), moved, {})
    assert transfer_times(machine, streams_of(machine, misses), moved, {}) == plain


@given(st.floats(0, 9), st.floats(0, 9))
def test_more_lines_beside_one_from_memory_take_no_less(one: float, other: float) -> None:
    found = [beside_cycles(BESIDE, lines) for lines in sorted((one, other))]
    assert found[0] <= found[1] + 1e-9
    assert [beside_cycles(BESIDE, k) for k in range(5)] == pytest.approx([0.0, *BESIDE])
    assert beside_cycles((3.0,), 2.5) == pytest.approx(7.5)


ZEN4_FROM_L3 = {
    (1, 0): (2.3, 5.1, 7.3, 9.1, 11.2, 14.3), (2, 0): (4.7, 7.8, 10.0, 12.2, 14.2, 18.1),
    (3, 0): (7.1, 10.5, 12.8, 14.8, 17.1, 21.1), (1, 1): (4.8, 7.0, 9.8, 12.2, 14.3, 18.1),
    (2, 1): (7.0, 9.3, 12.6, 15.0, 17.1, 21.0), (3, 1): (9.3, 11.8, 15.5, 17.6, 19.6, 24.1),
}  # fmt: skip
"""Passes over lines of L3, loaded and only written, beside 0, 1, 2, 3, 4 and 6 of L2, on a Zen 4 guest
(benchmarks/memory_parallelism.py)."""


@pytest.mark.parametrize(("loaded", "written"), ZEN4_FROM_L3)
def test_lines_from_l3_beside_lines_of_l2(loaded: int, written: int) -> None:
    """Figures of one line from L3 that is loaded say what several take, with one that is written, too; the longer of
    both paths, which overlap, is up to half too fast."""
    machine, lines = load_machine("zen4"), loaded + written
    streams = streams_of(machine, load_parameters("ZEN4").misses)
    for inner, measured in zip((0, 1, 2, 3, 4, 6), ZEN4_FROM_L3[loaded, written], strict=True):
        moved = _passes(machine, 0, lines, inner)
        outer = replace(moved.paths[1], stores=1.0 * written, write_allocates=1.0 * written)
        moved = replace(moved, paths=(moved.paths[0], outer, moved.paths[2]))
        found = transfer_times(machine, streams, moved, {})
        cycles = evaluate(machine.overlap, {one.name: one.cycles for one in found})
        assert cycles == pytest.approx(measured, rel=0.12)
        assert found[1].bandwidth_cycles == pytest.approx(lines * 64 / 26.8)
        told = [note.text for note in _beside_notes(machine, moved, streams)]
        assert ["lines from L3 take longer" in text for text in told] == [True] * (inner > 0)


@pytest.mark.parametrize(("rows", "more"), [(1, 1.7), (2.5, 3.7), (8, 13.7), (16, 27.4)])
def test_rows_loaded_again_beside_lines_from_memory(rows: float, more: float) -> None:
    """Rows that L1 has since a row before; with half a line from memory half as much, with none nothing."""
    machine = load_machine("zen4")
    misses = load_parameters("ZEN4").misses
    streams, first = streams_of(machine, misses), machine.levels[0].name
    again = AccessTraffic("a", "a[j-1][i]", "read", {first: rows}, "", from_earlier_row=True)

    def cycles(memory: float, *accesses: AccessTraffic) -> float:
        moved = replace(_moved(machine, 3, 3, memory), accesses=accesses)
        found = transfer_times(machine, streams, moved, {})
        return evaluate(machine.overlap, {one.name: one.cycles for one in found})

    assert cycles(1, again) - cycles(1) == pytest.approx(more)
    assert cycles(1, replace(again, from_earlier_row=False)) == pytest.approx(cycles(1))
    assert cycles(0.5, again) - cycles(0.5) == pytest.approx(more / 2)
    assert cycles(0, again) == cycles(0)


def test_a_machine_says_what_lines_from_its_last_cache_take_before_its_core_does() -> None:
    machine = load_machine("zen4")
    first, *others = machine.paths
    probed = replace(machine, paths=(replace(first, beside_last=(2.0, 4.0, 6.5)), *others))
    misses = load_parameters("ZEN4").misses
    assert streams_of(probed, misses).beside_last == {"L2": (2.0, 4.5)}
    assert streams_of(machine, misses).beside_last == {"L2": misses.l3_beside_l2}
    assert streams_of(machine, MissParameters()).beside_last == {}
    (note,) = _beside_notes(probed, _passes(machine, 0, 1, 1), streams_of(probed, misses))
    assert (note.code, "beside_last of its file" in note.text) == ("beside-last-cache", True)


MANY_LINES = {
    "L2": {16: 35.7, 24: 51.0, 32: 66.8, 64: 132.7, 128: 260.3},
    "L3": {16: 47.3, 24: 66.6, 64: 176.1, 128: 352.6},
}
"""One line from memory beside so many lines of a cache, walked through as one stream, on a guest on Milan."""
STEEP = {"L2": ZEN3_BESIDE, "L3": (9.29, 10.49, 11.99, 15.54, 18.40, 19.53, 21.47, 22.50, 26.43)}
"""What another guest was probed with: the eighth line of L3 takes 3.9 cycles, where a stream of loads takes 2.7."""


@pytest.mark.parametrize(("level", "lines"), [(level, lines) for level, known in MANY_LINES.items() for lines in known])
def test_beside_many_lines_of_a_cache_each_takes_what_it_takes_in_a_stream(level: str, lines: int) -> None:
    """A matrix product from memory has hundreds: it was to take 4.0 cycles a line by what the eighth one made of them,
    and takes 2.9."""
    machine = _of_streams_alone()
    paths = [replace(path, beside_memory=STEEP.get(path.outer, ())) for path in machine.paths]
    machine = replace(machine, paths=tuple(paths))
    loads = (1 + lines, 1, 1) if level == "L2" else (1 + lines, 1 + lines, 1)
    streams = streams_of(machine, MissParameters())
    found = transfer_times(machine, streams, _moved(machine, *loads), {})
    cycles = evaluate(machine.overlap, {one.name: one.cycles for one in found})
    assert cycles == pytest.approx(MANY_LINES[level][lines], rel=0.15)


def test_cores_draw_no_more_than_streams_of_as_many() -> None:
    machine = load_machine("bdw")
    path, streams = machine.paths[-1], streams_of(machine, MissParameters())
    time = transfer_time(machine, streams, path, PathTraffic("L3Mem", 1.0, 1.0, 0.0, ZERO, ZERO, ZERO))
    assert time.bandwidth is not None
    series = next(one for one in machine.bandwidths if (one.level, one.mix) == ("Mem", time.bandwidth.mix))
    measured = dict(zip(series.cores, series.bytes_per_second, strict=True))
    most = measured[time.bandwidth.cores]
    assert drawn_share(machine, time.bandwidth, 2) == pytest.approx(measured[2] / most)
    assert drawn_share(machine, time.bandwidth, 9) == pytest.approx(measured[9] / most)
    assert measured[9] < 0.97 * most
    few = [
        replace(one, cores=(1, 3), bytes_per_second=(measured[1], most)) if one == series else one
        for one in machine.bandwidths
    ]
    between = replace(machine, bandwidths=tuple(few))
    assert drawn_share(between, replace(time.bandwidth, cores=3), 2) == pytest.approx((measured[1] + most) / 2 / most)
    assert drawn_share(between, replace(time.bandwidth, cores=3), 9) == 1.0  # not known
    assert drawn_share(machine, time.bandwidth, 1) == 1.0


@pytest.mark.parametrize("name", ["snb", "ivb", "hsw", "bdw", "skx", "clx", "zen", "zen2", "zen4", "a64fx"])
def test_several_cores_draw_what_streams_of_as_many_draw(name: str) -> None:
    """The recursive rule with p0 of a mix, and what as many cores draw at most, give the mix itself on every count of
    cores but those on which it was faster than that many single ones."""
    machine = load_machine(name)
    for read_share in (1.0, 0.8, 2 / 3, 0.5):
        found = nearest_bandwidth(machine, "Mem", read_share)
        alone = found.bytes_per_second / with_cores(machine, found, 1)[0]
        fitted = penalties(machine, found)
        for cores in range(2, machine.topology.cores_per_numa_domain + 1):
            drawn = drawn_share(machine, found, cores)
            used = min(utilization(cores, alone, 1.0, fitted), drawn)
            assert used == pytest.approx(min(drawn, cores / alone), rel=0.011 if min(fitted) > 0 else 0.03)


def test_cores_of_which_no_figure_tells_wait_as_published() -> None:
    machine = load_machine("clx")
    series = tuple(
        replace(one, cores=one.cores[1:], bytes_per_second=one.bytes_per_second[1:]) for one in machine.bandwidths
    )
    assert penalties(replace(machine, bandwidths=series), nearest_bandwidth(machine, "Mem", 1.0)) == ()
    assert utilization(3, 4.0, 1.0) == utilization(3, 4.0, 1.0, (0.5,))


@pytest.mark.parametrize("textbook", [False, True])
def test_both_directions_of_a_duplex_memory_count_in_its_time(textbook: bool) -> None:
    """A64FX: triad reports 4 of the 5 lines that it moves, and draws 158.67 GB/s with the cores of a domain."""
    machine = load_machine("a64fx")
    path = machine.paths[-1]
    assert path.duplex == "full"
    streams = None if textbook else streams_of(machine, MissParameters())
    time = transfer_time(machine, streams, path, PathTraffic(path.name, 4.0, 1.0, 0.0, ZERO, ZERO, ZERO))
    assert time.bandwidth is not None
    assert time.bandwidth.mix.name == "triad"
    assert time.bandwidth_cycles == pytest.approx(4 * machine.line_bytes / 158.67e9 * machine.clock_hz)


def test_a_mix_that_only_writes_has_no_loads_that_add_to_its_transfers() -> None:
    """Under T_nOL + T_L1L2 the path takes the 6 cycles of stores with data in L2, not these less the 2 in L1."""
    machine = load_machine("snb")
    store = StreamMix("store", 0, 1, 0)
    series = [
        BandwidthSeries(level, store, (1,), (64 / cycles * machine.clock_hz,))
        for level, cycles in (("L1", 2), ("L2", 6))
    ]
    implied = streams_of(replace(machine, bandwidths=(*series,)), MissParameters()).times["L1L2"]
    flow = PathLines(1, 1, 0)
    assert stream_cycles(implied, machine.paths[0], flow, 0.0) == pytest.approx(6)


def test_a_file_without_streams_of_one_core_implies_nothing():
    machine = load_machine("skx-6140")
    assert streams_of(machine, MissParameters()).times == {}
    assert streams_of(machine, MissParameters()).overlap == machine.overlap
    assert streams_of(replace(machine, bandwidths=()), MissParameters()).shown == ""


def test_small_pages_cost_each_line_from_memory_and_are_unknown_where_the_file_is_silent() -> None:
    machine = load_machine("zen4")
    same, silent = in_pages(machine, "huge")
    small, told = in_pages(machine, "4k")
    assert (same, silent, told[0].code) == (machine, (), "pages")
    moved = PathTraffic("L3Mem", 2.0, 1.0, 0.0, 2 * ONE, ONE, ZERO)
    for streams in (None, streams_of(machine, MissParameters())):
        before = transfer_time(machine, streams, machine.paths[-1], moved)
        after = transfer_time(small, streams, small.paths[-1], moved)
        assert after.cycles - before.cycles == pytest.approx(2 * 3.5)
        assert after.bandwidth_cycles == before.bandwidth_cycles  # latency: other cores do not see it
    back, _ = in_pages(replace(machine, pages="4k"), "huge")
    assert back.paths[-1].penalty_load == -3.5
    for unknown in (replace(machine, pages=None), load_machine("skx")):
        assert in_pages(unknown, "4k")[0] is unknown
        assert in_pages(unknown, "4k")[1][0].kind == "warning"


@pytest.mark.needs("gcc|clang")
@pytest.mark.parametrize(("arrays", "doubted"), [(20, False), (29, True), (40, True)])
def test_nearly_as_many_streams_as_are_followed_have_an_interval(tmp_path: Path, arrays: int, doubted: bool) -> None:
    """Haswell is said to follow 32: with 31 INSPECT's box of 27 coefficient arrays takes what it does with 37."""
    given = ", ".join(f"double a{n}[restrict N]" for n in range(arrays))
    terms = " + ".join(f"a{n}[i]" for n in range(arrays))
    path = tmp_path / "sum.c"
    path.write_text(
        f"void sum(int N, double b[restrict N], {given}) {{\nfor (int i = 0; i < N; i++) b[i] = {terms};\n}}"
    )
    found = km.ecm(path, machine="hsw", sizes={"N": 2_000_001}, cache="lc").answer.prediction.cycles_interval
    assert (found is not None and "how many of its streams" in found.cause) is doubted
