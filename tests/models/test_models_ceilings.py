"""What a machine offers: peaks by the instruction table, cache-aware bandwidths, bandwidths between levels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roofline_cases import CARRIED, LEVELS, SIZES, cases, core

from kernmodel.code.mix import FpClass
from kernmodel.errors import MachineError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import BandwidthSeries, MeasuredPeak, MemoryChannels, StreamMix
from kernmodel.models.bandwidths import at_cores
from kernmodel.models.ceilings import (
    RATIOS,
    best_ceiling,
    compute_ceiling,
    issue_ceiling,
    joint_performance,
    memory_ceiling,
    path_bandwidth,
    peak_notes,
    theoretical_bandwidth,
    widest,
    widest_access,
)
from kernmodel.models.chart import Case
from kernmodel.traffic.model import PathLines


def peak(case: Case, kind: FpClass) -> float | None:
    found = compute_ceiling(case.machine, case.parameters, case.table, kind, case.cores)
    return found and found.flop_per_second / case.machine.clock_hz / case.cores


def bandwidth(case: Case, level: str, size: int, share: float, cores: int | None = None) -> tuple[float, str]:
    found = memory_ceiling(
        case.machine,
        case.parameters,
        case.table,
        level=level,
        size_bytes=size,
        load_share=share,
        cores=cores or case.cores,
    )
    return found.bytes_per_second / 1e9, found.origin


@pytest.mark.parametrize(
    ("machine", "kind", "expected"),
    [
        ("skx-6140", FpClass("fma", "DP", 8), 32),  # ports 0 and 5: port 1 is closed beside zmm
        ("skx-6140", FpClass("fma", "DP", 4), 16),
        ("skx-6140", FpClass("add", "SP", 1), 2),
        ("skx-6140", FpClass("div", "DP", 8), 0.5),  # the divider is busy for 16 cycles
        ("hsw", FpClass("add", "DP", 4), 4),  # adds only on port 1
        ("hsw", FpClass("fma", "SP", 8), 32),
        ("snb", FpClass("fma", "DP", 4), None),  # no FMA before Haswell
        ("zen", FpClass("add", "DP", 4), 4),  # two µops of 128 bits
        ("zen2", FpClass("add", "DP", 4), 8),
        ("clx", FpClass("compare", "DP", 8), None),
        ("clx", FpClass("add", "X87", 1), None),
    ],
)
def test_peaks_by_the_table(machine: str, kind: FpClass, expected: float | None) -> None:
    """FLOP/cy of one core, as uops.info's ports give them."""
    assert peak(core(machine), kind) == pytest.approx(expected)


@pytest.mark.parametrize("machine", CARRIED)
def test_tables_agree_with_the_flop_rates_of_machine_files(machine: str) -> None:
    case = core(machine)
    assert peak_notes(case.machine, case.parameters, case.table) == ()
    wrong = replace(case.machine.core, flop_per_cycle={"DP": {"ADD": 3.0, "total": 3.0}})
    (note,) = peak_notes(replace(case.machine, core=wrong), case.parameters, case.table)
    assert (note.code, "ADD" in note.text) == ("peak-differs", True)


@pytest.mark.parametrize("machine", CARRIED)
def test_load_and_store_widths_are_those_of_the_ports(machine: str) -> None:
    """The widths of the machine file neither bind the widest loads or stores of the table nor leave them idle."""
    case = core(machine)
    size = widest_access(case.table)
    for share, width in (
        (1.0, case.machine.core.load_bytes_per_cycle),
        (0.0, case.machine.core.store_bytes_per_cycle),
    ):
        unlimited = replace(case.machine, core=replace(case.machine.core, load_bytes_per_cycle=None))
        found = issue_ceiling(unlimited, case.parameters, case.table, size_bytes=size, load_share=share, cores=1)
        assert found.bytes_per_second / case.machine.clock_hz == pytest.approx(width)


def test_mixes_may_exceed_the_fastest_class() -> None:
    """Zen 2 adds on two pipes and has FMA on two others: 24 FLOP/cy; Sandy Bridge adds and multiplies: 8."""
    for machine, operations, expected in (("zen2", ("fma", "add"), 24), ("snb", ("add", "mul"), 8)):
        case = core(machine)
        counts = [(FpClass(operation, "DP", 4), 1.0) for operation in operations]  # type: ignore[arg-type]
        rate = joint_performance(case.machine, case.parameters, case.table, counts, 1)
        assert rate == pytest.approx(expected * case.machine.clock_hz)


def test_zmm_closes_port_1_for_the_others() -> None:
    """One 512-bit and one 128-bit add share ports 0 and 5: one cycle; without zmm the two take half of one each."""
    case = core("clx")
    wide, narrow = FpClass("add", "DP", 8), FpClass("add", "DP", 2)
    together = joint_performance(case.machine, case.parameters, case.table, ((wide, 1), (narrow, 1)), 1)
    alone = joint_performance(case.machine, case.parameters, case.table, ((narrow, 2),), 1)
    assert together == pytest.approx(10 * case.machine.clock_hz)
    assert alone == pytest.approx(4 * case.machine.clock_hz)


def test_a_measured_peak_goes_before() -> None:
    case = core("clx")
    machine = replace(case.machine, peaks=(MeasuredPeak("FMA", "DP", 64, 20, 1500e9),))
    kind = FpClass("fma", "DP", 8)
    found = [compute_ceiling(machine, case.parameters, case.table, kind, cores) for cores in (20, 10)]
    assert [(one.flop_per_second / 1e9, one.origin) for one in found if one] == [(1500, "measured"), (750, "derived")]
    scalar = compute_ceiling(machine, case.parameters, case.table, FpClass("fma", "DP", 1), 1)
    assert scalar is not None
    assert scalar.origin == "derived"


def test_measured_interpolated_and_derived_of_the_paper() -> None:
    """L1 of the Xeon Gold 6140: measured LD and 2LD/ST; between them times add; LD/ST and ST by the ports (section 3:
    5299.2 and 2649.6 GB/s)."""
    case = replace(core("skx-6140"), cores=18)
    assert bandwidth(case, "L1", 64, 1.0) == (pytest.approx(5288.75), "measured")
    assert bandwidth(case, "L1", 16, 1.0) == (pytest.approx(1319.28), "measured")
    assert bandwidth(case, "L1", 64, 2 / 3) == (pytest.approx(5562.42), "measured")
    expected = 1 / (0.25 / 5288.75 + 0.75 / 5562.42)
    assert bandwidth(case, "L1", 64, 0.75) == (pytest.approx(expected), "interpolated")
    assert bandwidth(case, "L1", 64, 0.5) == (pytest.approx(5299.2), "derived")
    assert bandwidth(case, "L1", 64, 0.0) == (pytest.approx(2649.6), "derived")
    assert bandwidth(case, "L1", 8, 1.0) == (pytest.approx(18 * 2.3 * 16), "derived")


def test_small_accesses_reach_memory_bandwidth_but_not_that_of_caches() -> None:
    """Scalar loads of all cores saturate memory; from L2 they come as fast as the core issues them."""
    case = replace(core("skx-6140"), cores=18)
    assert bandwidth(case, "Mem", 8, 1.0) == (pytest.approx(41.41), "derived")
    assert bandwidth(case, "L2", 8, 1.0) == (pytest.approx(662.4), "derived")
    assert bandwidth(case, "L2", 32, 1.0) == (pytest.approx(2630.12), "derived")


def test_a_level_without_series_follows_from_the_widths() -> None:
    """L3 of the Xeon Gold 6140: 16 B/cy in each direction; with stores to loaded lines both are used."""
    case = replace(core("skx-6140"), cores=18)
    assert bandwidth(case, "L3", 64, 1.0) == (pytest.approx(662.4), "derived")
    assert bandwidth(case, "L3", 64, 0.5) == (pytest.approx(2 * 662.4), "derived")


def test_full_duplex_l3_moves_both_ways_as_measured() -> None:
    """On Cascade Lake one core updates lines in L3 (1:1) twice as fast as it loads them: 47.44 and 23.93 GB/s."""
    case = core("clx")
    loads, update = (bandwidth(case, "L3", 64, share)[0] for share in (1.0, 0.5))
    assert update / loads == pytest.approx(2.0, rel=0.02)
    only_loads = [s for s in case.machine.bandwidths if s.mix.name == "load"]
    derived = replace(case, machine=replace(case.machine, bandwidths=tuple(only_loads)))
    assert bandwidth(derived, "L3", 64, 0.5) == (pytest.approx(2 * loads), "derived")


def test_fewer_and_more_cores_than_measured() -> None:
    """One core of the Xeon Gold 6140 is not given all memory bandwidth: its L3 path moves 16 B/cy."""
    machine = load_machine("skx-6140")
    by_level = {series.level: series for series in machine.bandwidths if series.mix.name == "load"}
    assert at_cores(machine, by_level["L2"], 9)[:2] == (pytest.approx(2630.12e9 / 2), "derived")
    assert at_cores(machine, by_level["Mem"], 9)[:2] == (41.41e9, "derived")
    assert bandwidth(core("skx-6140"), "Mem", 64, 1.0, cores=1) == (pytest.approx(16 * 2.3), "derived")


def test_memory_scales_with_domains_and_interpolates_between_cores() -> None:
    machine = load_machine("clx")
    series = BandwidthSeries("Mem", StreamMix("load", 1, 0, 0), (1, 5), (10e9, 50e9))
    assert at_cores(machine, series, 3)[:2] == (30e9, "interpolated")
    assert at_cores(machine, series, 8)[:2] == (50e9, "derived")
    assert at_cores(machine, series, 10)[:2] == (50e9, "derived")
    assert at_cores(machine, series, 21)[:2] == (110e9, "derived")
    assert at_cores(machine, series, 40)[:2] == (200e9, "derived")


def test_the_fastest_of_series_counts() -> None:
    """A 2:1 series that a mixture of loads and 1:1 outruns is passed over: times of mixtures add."""
    case = core("clx")
    level = [
        BandwidthSeries("L2", StreamMix(name, read, write, 0, access_bytes=64), (1,), (value,))
        for name, read, write, value in (("l", 1, 0, 100e9), ("slow", 2, 1, 50e9), ("u", 1, 1, 100e9))
    ]
    changed = replace(case, machine=replace(case.machine, bandwidths=tuple(level)))
    assert bandwidth(changed, "L2", 64, 2 / 3) == (pytest.approx(100), "interpolated")


def test_accesses_between_two_sizes_take_the_ports_of_the_larger() -> None:
    assert bandwidth(core("hsw"), "L1", 10, 1.0)[0] == pytest.approx(10 / 16 * bandwidth(core("hsw"), "L1", 16, 1.0)[0])


def test_missing_bandwidths_are_named() -> None:
    case = core("clx")
    bare = replace(case, machine=replace(case.machine, bandwidths=()))
    with pytest.raises(MachineError, match=r"no bandwidth of Mem.*add a series of Mem"):
        bandwidth(bare, "Mem", 64, 1.0)
    with pytest.raises(MachineError, match="no bandwidth of Mem"):
        path_bandwidth(bare.machine, "L3Mem", PathLines(1, 0, 0), 1)
    known = replace(bare.machine, memory=MemoryChannels(6, 8, 2933e6))
    assert path_bandwidth(known, "L3Mem", PathLines(1, 0, 0), 40).bytes_per_second == pytest.approx(2 * 6 * 8 * 2933e6)
    with pytest.raises(MachineError, match="no load of 64 B"):
        bandwidth(core("hsw"), "L1", 64, 1.0)


def test_paths_count_both_directions() -> None:
    """Widths of Cascade Lake, L2L3: 16 B/cy each way; L1L2: 64 B/cy for both together."""
    machine = replace(load_machine("clx"), bandwidths=())
    assert path_bandwidth(machine, "L2L3", PathLines(1, 1, 0), 2).bytes_per_second == pytest.approx(2 * 32 * 2.5e9)
    assert path_bandwidth(machine, "L2L3", PathLines(1, 0, 0), 1).bytes_per_second == pytest.approx(16 * 2.5e9)
    assert path_bandwidth(machine, "L1L2", PathLines(1, 1, 0), 1).bytes_per_second == pytest.approx(64 * 2.5e9)


def stream(level: str, cores: tuple[int, ...], *rates: float) -> BandwidthSeries:
    return BandwidthSeries(level, StreamMix("copy", 1, 1, 0), cores, tuple(rate * 1e9 for rate in rates))


def test_streams_of_caches_go_before_widths() -> None:
    """Copies of one core in L2 and L3 at 20 and 10 GB/s, which load three lines for two that are reported. Every line
    that comes from L3 pushes one into it: a half more than what is counted."""
    series = (stream("L2", (1, 10), 20, 180), stream("L3", (1, 10), 10, 400))
    machine = replace(load_machine("clx"), bandwidths=series)

    def found(path: str, flow: PathLines, cores: int = 1) -> tuple[float, str, bool]:
        made = path_bandwidth(machine, path, flow, cores)
        return made.bytes_per_second / 1e9, made.origin, "width" in made.source

    assert found("L1L2", PathLines(2, 1, 0)) == (pytest.approx(30), "measured", False)
    assert found("L1L2", PathLines(2, 1, 0), 10) == (pytest.approx(270), "measured", False)
    assert found("L2L3", PathLines(2, 1, 1)) == (pytest.approx(15 * 4 / 3), "measured", False)
    # all together seem to draw four times what each does alone: of that the caches within have served a part
    assert found("L2L3", PathLines(2, 1, 1), 10) == (pytest.approx(150 * 4 / 3), "derived", False)
    # data in memory go past L3 on their way in, but not on their way out
    assert found("L2L3", PathLines(0, 1, 1))[1:] == ("derived", True)


@pytest.mark.parametrize(("name", "cores", "gigabytes"), [("clx", 10, 474.4), ("skx", 20, 962.4)])
def test_roofs_of_caches_leave_out_what_the_caches_within_serve(name: str, cores: int, gigabytes: float) -> None:
    """Streams of all cores over data in L3 seem to draw two to four times what each draws alone."""
    case = core(name)
    alone, together = (
        best_ceiling(case.machine, case.parameters, case.table, level="L3", cores=number) for number in (1, cores)
    )
    assert together.bytes_per_second == pytest.approx(cores * alone.bytes_per_second) == pytest.approx(gigabytes * 1e9)
    assert together.origin == "derived" and f"{cores} times that of one core" in together.source


def test_memory_path_counts_write_allocates() -> None:
    """Half of the lines loaded is the update benchmark (53.08 GB/s on 10 cores), two thirds the copy one with its
    write-allocates (36.46 × 1.5), which is slower than daxpy with as many."""
    machine = load_machine("clx")
    assert path_bandwidth(machine, "L3Mem", PathLines(1, 1, 0), 10).bytes_per_second == pytest.approx(53.08e9)
    assert path_bandwidth(machine, "L3Mem", PathLines(2, 1, 0), 10).bytes_per_second == pytest.approx(
        min(36.46 * 1.5, 54.77 * 1.0) * 1e9
    )


def test_theoretical_bandwidth_is_none_where_the_file_is_silent() -> None:
    machine = load_machine("clx")
    assert theoretical_bandwidth(machine, "Mem", 1) is None
    core_without = replace(machine.core, load_bytes_per_cycle=None, store_bytes_per_cycle=None)
    assert theoretical_bandwidth(replace(machine, core=core_without), "L1", 1) is None


def test_widest_instructions() -> None:
    assert widest(core("skx").table, "fma", "SP") == FpClass("fma", "SP", 16)
    assert widest(core("snb").table, "fma", "SP") is None
    assert (widest_access(core("skx").table), widest_access(core("zen").table)) == (64, 32)


@settings(max_examples=40)
@given(cases(), st.sampled_from(LEVELS), SIZES, st.floats(0, 1))
def test_no_access_exceeds_the_best(case: Case, level: str, size: int, share: float) -> None:
    size = min(size, widest_access(case.table))
    best = best_ceiling(case.machine, case.parameters, case.table, level=level, cores=case.cores)
    assert 0 < bandwidth(case, level, size, share)[0] <= best.bytes_per_second / 1e9 * (1 + 1e-9)


@settings(max_examples=30)
@given(
    st.sampled_from(["bdw", "clx", "snb", "zen2"]), st.sampled_from(LEVELS), *[st.floats(0.5, 1)] * 2, st.floats(0, 1)
)
def test_mixtures_of_measured_ratios_are_never_slower(
    machine: str, level: str, one: float, other: float, weight: float
) -> None:
    """Between measured ratios a mixture of two takes at most the time of its parts."""
    case = core(machine)
    middle = weight * one + (1 - weight) * other
    size = widest_access(case.table)
    time = [1 / bandwidth(case, level, size, share)[0] for share in (one, other, middle)]
    assert time[2] <= (weight * time[0] + (1 - weight) * time[1]) * (1 + 1e-6)


@given(st.sampled_from(CARRIED), st.sampled_from(LEVELS), st.sampled_from(sorted(RATIOS.values())), SIZES)
def test_more_cores_never_offer_less_than_one(machine: str, level: str, share: float, size: int) -> None:
    case = core(machine)
    size = min(size, widest_access(case.table))
    single, all_cores = (
        bandwidth(case, level, size, share, cores=cores)[0] for cores in (1, case.machine.topology.cores)
    )
    assert single <= all_cores


def test_pairs_of_vectors_have_roofs() -> None:
    """`ldp q, q` and `stp q, q` move 32 bytes where registers have 16: twice the accesses of one register."""
    case = core("grace")
    found = {
        size: issue_ceiling(case.machine, case.parameters, case.table, size_bytes=size, load_share=1.0, cores=1)
        for size in (16, 32)
    }
    assert widest_access(case.table) == 16
    assert found[32].bytes_per_second == pytest.approx(found[16].bytes_per_second)
    assert "ldp q,q" in found[32].source
