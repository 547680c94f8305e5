"""The ECM model on values made by hand: composition, bandwidth choice, saturation, scaling, and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import MachineError
from kernmodel.formulas.formula import ZERO
from kernmodel.incore.model import Chain, InCore, PortUse, Reason, Why
from kernmodel.incore.tables.core_parameters import MissParameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.machine.cores import Spread
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import (
    BandwidthSeries,
    CacheLevel,
    CoreModel,
    Machine,
    StoreBehaviour,
    StreamMix,
    Topology,
    TransferPath,
)
from kernmodel.machine.overlap import parse_overlap
from kernmodel.models.bandwidths import nearest_bandwidth
from kernmodel.models.ecm import binding_times, predict, saturation_recursive, saturation_simple, scale, utilization
from kernmodel.models.pages import in_pages
from kernmodel.models.streams import streams_of
from kernmodel.models.transfers import transfer_time
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.traffic.model import AccessTraffic, Evasion, PathTraffic, Traffic

SERIAL = "max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)"
OVERLAPPING = "max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)"
LOAD, COPY = StreamMix("load", 1, 0, 0), StreamMix("copy", 1, 1, 0)


def cache(name: str, kib: int) -> CacheLevel:
    return CacheLevel(name, kib * 1024, 8, kib * 2, 64, "LRU", True, True, 1, "miss", None, False)


def machine(overlap: str = SERIAL, bandwidth: float = 40e9, width: float = 32.0) -> Machine:
    return Machine(
        name="toy",
        title="toy",
        vendor="none",
        isa="x86-64",
        clock_hz=2e9,
        line_bytes=64,
        topology=Topology(2, 2, 8, 1),
        core=CoreModel("SKL", ("0", "1", "4"), ("2D", "3D"), {}),
        levels=(cache("L1", 32), cache("L2", 256), cache("L3", 4096)),
        paths=(
            TransferPath("L1L2", "L1", "L2", width, "half"),
            TransferPath("L2L3", "L2", "L3", width, "full"),
            TransferPath("L3Mem", "L3", "Mem", None, "half"),
        ),
        overlap=parse_overlap(overlap),
        bandwidths=(
            BandwidthSeries("Mem", LOAD, (1, 2, 4, 8), (bandwidth / 3, bandwidth / 2, bandwidth, bandwidth * 2)),
            BandwidthSeries("Mem", COPY, (1, 2, 4), (bandwidth / 3, bandwidth / 2, bandwidth * 2 / 3)),
        ),
        compilers=(),
        sources={},
        file="toy.yml",
        sha256="",
    )


def traffic(loads: float = 2, stores: float = 1) -> Traffic:
    number = ZERO
    paths = tuple(PathTraffic(name, loads, stores, 0, number, number, number) for name in ("L1L2", "L2L3", "L3Mem"))
    empty: Mapping[str, float | None] = {}
    return Traffic("test", 8, "a[i]", 1000, 1, 2, 128, 64, paths, (), (), (), empty, 1, 1.0, {}, ())


def incore(lcd: float = 0.0, passes: float = 4) -> InCore:
    uses = ((PortUse(("0", "1"), 4.0), PortUse(("4",), 1.0)), (PortUse(("2D", "3D"), 3.0),))
    chain = Chain(lcd, (0,), ("zmm0",), 1)
    return InCore(
        "SKL", ("0",), "optimal", (), uses, (2.0,), 2.0, ("0",), chain if lcd else None, chain, max(2.0, lcd),
        "throughput", Reason(Why.NO_PORT), passes, (), (),
    )  # fmt: skip


def test_serial_composition_by_hand() -> None:
    """Two passes a line: T_OL = 2·2, T_nOL = 2·1.5; 3 lines half-duplex at 32 B/cy = 6; full-duplex
    max(2,1) lines = 4; 3 lines at the copy bandwidth 2/3·40e9·1.5 B/s = 192/40e9·2e9 = 9.6 cy."""
    result = predict(traffic(), incore(), machine())
    assert (result.t_ol, result.t_nol) == (4.0, 3.0)
    assert [t.cycles for t in result.transfers] == pytest.approx([6.0, 4.0, 9.6])
    assert dict(result.levels) == pytest.approx({"L1": 4.0, "L2": 9.0, "L3": 13.0, "Mem": 22.6})
    assert result.shorthand() == "{4.0 ‖ 3.0 | 6.0 | 4.0 | 9.6} cy/CL"
    assert result.level_shorthand() == "{4.0 ⌉ 9.0 ⌉ 13.0 ⌉ 22.6} cy/CL"
    assert result.binding == ("T_nOL", "T_L1L2", "T_L2L3", "T_L3Mem")
    assert bottleneck_text(result).startswith("Memory bandwidth: T_L3Mem takes 42 %")
    assert (result.saturation_simple, result.saturation_recursive) == (3, 4)


@pytest.mark.parametrize(
    ("moved", "overlap", "words"),
    [
        ((2, 1), SERIAL, "of the 31.6 cy/CL, more than any transfer (T_L3Mem 30 %, T_L1L2 19 %, T_L2L3 13 %)."),
        ((2, 1), OVERLAPPING, "take 100 % of the 12.0 cy/CL; data transfers hide behind them."),
        ((0, 0), SERIAL, "take 100 % of the 12.0 cy/CL; no data come from beyond the first cache."),
    ],
)
def test_loads_into_registers_are_said_beside_what_else_takes_time(
    moved: tuple[int, int], overlap: str, words: str
) -> None:
    """Loads take 12 cycles a line, longer than any transfer, and yet data stream from memory."""
    uses = ((PortUse(("0", "1"), 4.0),), (PortUse(("2D", "3D"), 12.0),))
    result = predict(traffic(*moved), replace(incore(), uses=uses), machine(overlap))
    assert bottleneck_text(result).startswith("Loads into registers (T_nOL) take ")
    assert bottleneck_text(result).endswith(words)


def test_a_domain_with_too_few_cores_does_not_saturate() -> None:
    """T_OL of 120 cycles against 9.6 from memory: 13 cores by the simple rule, but a domain has four."""
    result = predict(traffic(), incore(lcd=60.0), machine())
    assert saturation_simple(result.cycles, result.memory_cycles) == 13
    assert (result.saturation_simple, result.saturation_recursive) == (None, None)


def test_overlapping_composition() -> None:
    result = predict(traffic(), incore(), machine(OVERLAPPING))
    assert dict(result.levels) == pytest.approx({"L1": 4.0, "L2": 6.0, "L3": 6.0, "Mem": 9.6})
    assert result.binding == ("T_L3Mem",)


def test_dependency_enters_overlapping_time() -> None:
    result = predict(traffic(), incore(lcd=30.0), machine())
    assert (result.t_ol, result.ol_bound_by, result.cycles) == (60.0, "dependency", 60.0)
    assert "loop-carried dependency" in bottleneck_text(result)


def test_measured_throughput_enters_overlapping_time() -> None:
    """A divider that the tables know by its measured throughput only: 20 cycles a pass, bound by no port."""
    result = predict(traffic(), replace(incore(), throughput=20.0, binding_ports=()), machine())
    assert (result.t_ol, result.ol_bound_by) == (40.0, "ports")


def test_penalty_counts_as_time_but_not_as_bandwidth() -> None:
    toy = machine()
    paths = (*toy.paths[:2], replace(toy.paths[2], penalty_load=0.5, penalty_store=2.0))
    result = predict(traffic(), incore(), replace(toy, paths=paths))
    assert result.transfers[-1].cycles == pytest.approx(9.6 + 2 * 0.5 + 2.0)
    assert result.memory_cycles == pytest.approx(9.6)


def test_bandwidth_is_that_of_the_nearest_mix_within_a_domain() -> None:
    """copy: reported 26.7 GB/s at 4 cores, with write-allocate 1.5 times; load: 8 cores are beyond the domain."""
    found = nearest_bandwidth(machine(), "Mem", 2 / 3)
    assert (found.mix.name, found.cores) == ("copy", 4)
    assert found.bytes_per_second == pytest.approx(40e9)
    assert nearest_bandwidth(machine(), "Mem", 1.0).bytes_per_second == pytest.approx(40e9)
    with pytest.raises(MachineError, match=r"toy\.yml: has no measured bandwidth of L2"):
        nearest_bandwidth(machine(), "L2", 1.0)


def evading(share: float, low: float, high: float) -> Traffic:
    """A copy of which the memory path has two lines loaded, one of them a write-allocate, less the evaded share."""
    number = ZERO
    memory = PathTraffic("L3Mem", 2 - share, 1, 0, number, number, number, write_allocates=1)
    regular = traffic()
    evasion = Evasion(share, low, high, "invented")
    return replace(regular, paths=(*regular.paths[:2], memory), stores="evading", evasion=evasion)


def test_evasion_shortens_the_memory_time() -> None:
    """Two of three lines at the copy bandwidth (the nearest mix of half loads, half stores): 128/40e9·2e9 = 6.4 cy."""
    result = predict(evading(1, 1, 1), incore(), machine())
    assert result.transfers[-1].cycles == pytest.approx(6.4)
    assert result.cycles_interval is None


def test_unknown_evasion_gives_an_interval() -> None:
    """22.6 cy with the write-allocate as by hand above, 22.6 − 9.6 + 6.4 without; the number is that of the traffic."""
    result = predict(evading(0, 0, 1), incore(), machine())
    assert result.cycles == pytest.approx(22.6)
    interval = result.cycles_interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((19.4, 22.6))
    assert interval.cause == "how many write-allocates from memory are evaded"
    assert interval.assumed == "0% of them are evaded"
    # in the caches, or behind in-core time, evasion changes nothing
    hidden = predict(evading(0, 0, 1), incore(lcd=30.0), machine())
    assert hidden.cycles_interval is None


def test_what_rows_cost_that_are_loaded_again_is_in_the_interval() -> None:
    machine, misses = load_machine("zen4"), load_parameters("ZEN4").misses
    again = AccessTraffic("a", "a[j-1][i]", "read", {"L1": 2.0}, "", from_earlier_row=True)
    moved = replace(traffic(), accesses=(again,))
    found = predict(moved, incore(), machine, streams=streams_of(machine, misses))
    plain = predict(traffic(), incore(), machine, streams=streams_of(machine, misses))
    more = found.cycles - plain.cycles
    assert more == pytest.approx(3.1 * min(1.0, moved.paths[-1].loads))
    interval = found.cycles_interval
    assert interval is not None and plain.cycles_interval is None
    assert (interval.low, interval.high) == pytest.approx((plain.cycles, plain.cycles + 2 * more))
    assert [note.code for note in found.notes if note not in plain.notes] == ["rows-again"]


def test_what_is_executed_beside_memory_is_in_the_interval_too() -> None:
    """Vectors make passes over lines of L2 and memory's longer, with as many write-allocates evaded as may be, too."""
    plain = machine(OVERLAPPING)
    memory = replace(plain.paths[-1], beside_vectors=((3.0, 0.0), (99.0, 9.6)))
    full = replace(plain, paths=(*plain.paths[:-1], memory))
    moved = evading(0, 0, 1)
    moved = replace(moved, paths=(replace(moved.paths[0], loads=4), *moved.paths[1:]))
    many = replace(incore(), vectors_written=100)
    before, found = (predict(moved, many, one, streams=streams_of(one, MissParameters())) for one in (plain, full))
    lines = moved.paths[-1]
    beside = moved.paths[0].loads - lines.loads  # loads of all these lines write a vector each
    waited_for = 1 - lines.write_allocates / lines.loads
    assert 0 < waited_for < 1
    assert found.cycles == pytest.approx(before.cycles + (9.6 - (1 + beside - 3.0) / 10) * waited_for)
    assert found.memory_cycles == pytest.approx(before.memory_cycles)
    assert before.cycles_interval is not None and found.cycles_interval is not None
    assert found.cycles_interval.high == pytest.approx(found.cycles)
    assert found.cycles_interval.low > before.cycles_interval.low
    assert [note.code for note in found.notes if note not in before.notes] == ["executed-beside-memory"]
    assert predict(moved, many, full).cycles == predict(moved, many, plain).cycles  # the textbook's


def test_compositions_that_are_not_told_apart_give_an_interval() -> None:
    one = machine(OVERLAPPING)
    both = replace(one, undecided=(parse_overlap(SERIAL),))
    found, other = predict(traffic(), incore(), both), predict(traffic(), incore(), machine(SERIAL))
    assert found.cycles == predict(traffic(), incore(), one).cycles < other.cycles
    interval = found.cycles_interval
    assert interval is not None
    assert (interval.low, interval.high, interval.assumed) == (found.cycles, other.cycles, OVERLAPPING)
    # a chain that is longer than all transfers hides how these compose
    assert predict(traffic(), incore(lcd=30.0), both).cycles_interval is None


def test_a_changed_machine_is_changed_in_the_other_composition_too() -> None:
    """Small pages cost what they cost beside the measured streams, whichever way the times compose."""
    one, misses = replace(machine(OVERLAPPING), pages="huge"), MissParameters()
    memory = replace(one.paths[-1], small_pages=3.5)
    one = replace(one, paths=(*one.paths[:-1], memory), undecided=(parse_overlap(SERIAL),))
    other = replace(one, overlap=parse_overlap(SERIAL), undecided=())
    found = predict(traffic(), incore(), in_pages(one, "4k")[0], streams=streams_of(one, misses)).cycles_interval
    serial = predict(traffic(), incore(), in_pages(other, "4k")[0], streams=streams_of(other, misses))
    assert found is not None
    assert found.high == pytest.approx(serial.cycles)
    assert serial.cycles == pytest.approx(
        predict(traffic(), incore(), other, streams=streams_of(other, misses)).cycles + 2 * 3.5
    )


@pytest.mark.parametrize(
    ("stores", "factor", "share"),
    [
        (StoreBehaviour(), 1.5, 2 / 3),
        (StoreBehaviour(evasion="unknown"), 1.5, 2 / 3),
        (StoreBehaviour(evasion="instruction"), 1.5, 2 / 3),
        (StoreBehaviour(evasion="always"), 1.0, 0.5),
        (StoreBehaviour(evasion="near-saturation", evades_from_cores=4), 1.0, 0.5),
        (StoreBehaviour(evasion="near-saturation"), 1.5, 2 / 3),
    ],
)
def test_measured_copies_of_machines_that_evade(stores: StoreBehaviour, factor: float, share: float) -> None:
    """likwid-bench reports 16 B an iteration; what moved is 24 B, or 16 B where the benchmark's stores evade too."""
    toy = machine()
    copies = replace(toy, stores=stores, bandwidths=toy.bandwidths[1:])
    found = nearest_bandwidth(copies, "Mem", 0.5)
    assert found.bytes_per_second == pytest.approx(40e9 * 2 / 3 * factor)
    assert found.mix_read_share == pytest.approx(share)


def test_streaming_copy_takes_the_bandwidth_of_update() -> None:
    """One line in, one out: as update moves them, not copy, whose write-allocate makes it two in, one out."""
    toy = machine()
    update = BandwidthSeries("Mem", StreamMix("update", 1, 1, 1), (1, 2, 4), (10e9, 20e9, 30e9))
    result = predict(traffic(loads=1, stores=1), incore(), replace(toy, bandwidths=(*toy.bandwidths, update)))
    bandwidth = result.transfers[-1].bandwidth
    assert bandwidth is not None
    assert (bandwidth.mix.name, bandwidth.bytes_per_second) == ("update", 30e9)
    assert result.transfers[-1].cycles == pytest.approx(128 / 30e9 * 2e9)


def test_write_allocate_factors() -> None:
    """(r + 2w − rw)/(r + w), as Kerncraft has it: copy 3/2, update 1, load 1, triad 5/4, daxpy (2+2−1)/3 = 1."""
    mixes = [(1, 1, 0, 1.5), (1, 1, 1, 1.0), (1, 0, 0, 1.0), (3, 1, 0, 1.25), (2, 1, 1, 1.0)]
    for read, write, both, factor in mixes:
        assert StreamMix("x", read, write, both).write_allocate_factor == pytest.approx(factor)


@pytest.mark.parametrize(("t_ecm", "t_mem", "simple", "recursive"), [(36.7, 9.1, 5, 7), (18.28, 8.3, 3, 4)])
def test_saturation_points(t_ecm: float, t_mem: float, simple: int, recursive: int) -> None:
    """Both rules (Stengel et al. 2015; Hofmann et al. 2018): 4.03 → 5 by ceiling and 7 by recursion; 2.2 → 3 and 4."""
    assert saturation_simple(t_ecm, t_mem) == simple
    assert saturation_recursive(t_ecm, t_mem) == recursive


def test_no_memory_traffic_scales_linearly() -> None:
    result = predict(traffic(0, 0), incore(), machine())
    assert (result.saturation_simple, result.saturation_recursive) == (None, None)
    point = scale(lambda _: result, 12, machine())
    assert point.units_per_cycle == pytest.approx(12 / result.cycles)
    assert (point.domains, point.saturated) == (3, False)


def test_domains_fill_one_after_the_other() -> None:
    result = predict(traffic(), incore(), machine())
    points = [scale(lambda _: result, n, machine()) for n in range(1, 17)]
    assert points[3].units_per_cycle == pytest.approx(1 / 9.6)  # one domain, saturated at 4 cores
    assert points[3].saturated
    assert points[15].units_per_cycle == pytest.approx(4 / 9.6)


def test_equal_work_waits_for_the_slowest_core() -> None:
    """Of 5 cores four saturate a domain: they decide where all have the same work, and add to the fifth where not."""
    result = predict(traffic(), incore(), machine())
    static, dynamic, scattered = (
        scale(lambda _: result, 5, machine(), spread)
        for spread in (Spread(), Spread("dynamic"), Spread("static", "scatter"))
    )
    assert static.units_per_cycle == pytest.approx(5 / 4 / 9.6)
    assert dynamic.units_per_cycle == pytest.approx(1 / 9.6 + 1 / result.cycles)
    assert not dynamic.saturated
    assert (static.domains, scattered.domains) == (2, 4)
    two = utilization(2, result.cycles, result.memory_cycles) / result.memory_cycles
    assert scattered.units_per_cycle == pytest.approx(5 * min(two / 2, 1 / result.cycles))
    assert Spread(placement="scatter").by_domain(machine(), 5) == (2, 1, 1, 1)
    assert Spread().by_domain(machine(), 8) == (4, 4)


TIMES = st.floats(0.01, 1e4)


@given(TIMES, TIMES, st.integers(1, 200))
def test_utilization_laws(rest: float, t_mem: float, cores: int) -> None:
    """Utilisation stays within 0 and 1, never exceeds the ideal n·u(1), and the recursion saturates no earlier."""
    t_ecm = rest + t_mem
    u = utilization(cores, t_ecm, t_mem)
    assert 0 < u <= 1
    assert u <= cores * t_mem / t_ecm + 1e-12
    simple, recursive = saturation_simple(t_ecm, t_mem), saturation_recursive(t_ecm, t_mem)
    assert (simple is None) == (t_ecm / t_mem > 100_000)
    assert recursive is None or simple is None or recursive >= simple


@given(st.floats(1.0, 8.0), st.floats(0, 8), st.floats(0, 8), st.sampled_from([SERIAL, OVERLAPPING]))
def test_more_bandwidth_is_never_slower(factor: float, loads: float, stores: float, overlap: str) -> None:
    moved, core = traffic(loads, stores), incore()
    slow = predict(moved, core, machine(overlap))
    assert predict(moved, core, machine(overlap, bandwidth=40e9 * factor)).cycles <= slow.cycles + 1e-9
    assert predict(moved, core, machine(overlap, width=32 * factor)).cycles <= slow.cycles + 1e-9


@given(st.integers(1, 32))
def test_unrolling_leaves_the_prediction_alone(unroll: int) -> None:
    once, often = incore(lcd=3.0, passes=1), incore(lcd=3.0 * unroll, passes=unroll)
    uses = tuple(tuple(PortUse(u.ports, u.cycles * unroll) for u in row) for row in once.uses)
    assert predict(traffic(), replace(often, uses=uses), machine()).cycles == pytest.approx(
        predict(traffic(), once, machine()).cycles
    )


@given(st.dictionaries(st.sampled_from(["T_OL", "T_nOL", "T_L1L2", "T_L2L3", "T_L3Mem"]), st.floats(0, 100)))
def test_binding_times_add_up(times: dict[str, float]) -> None:
    from kernmodel.machine.overlap import evaluate

    for text in (SERIAL, OVERLAPPING, "max(T_OL, T_nOL, T_L1L2, T_L2L3 + T_L3Mem)"):
        expression = parse_overlap(text)
        binding = binding_times(expression, times)
        assert sum(times[name] for name in binding) == pytest.approx(evaluate(expression, times))


def test_of_two_mixes_that_are_equally_near_the_slower_one_counts() -> None:
    """Copy with its write-allocates and daxpy load two of three lines, copy and update are as far from 7/12."""
    machine = load_machine("clx")
    alike = nearest_bandwidth(machine, "Mem", 2 / 3)
    assert (alike.mix.name, alike.bytes_per_second) == ("copy", pytest.approx(54.81e9, rel=1e-3))
    between = nearest_bandwidth(machine, "Mem", 7 / 12)
    assert between.mix.name == "update"


@pytest.mark.parametrize(("read_share", "mix"), [(1.0, "load"), (0.995, "load"), (0.97, "triad"), (0.92, "triad")])
def test_a_kernel_that_writes_takes_the_bandwidth_of_streams_that_write(read_share: float, mix: str) -> None:
    """However little it writes, but for what ends rows; the textbook takes the nearest mix."""
    machine = load_machine("hsw")
    loads = 100 * read_share
    moved = PathTraffic("L3Mem", loads, 100 - loads, 0.0, ZERO, ZERO, ZERO)
    path = machine.paths[-1]
    found = transfer_time(machine, streams_of(machine, MissParameters()), path, moved).bandwidth
    textbook = transfer_time(machine, None, path, moved).bandwidth
    assert found is not None
    assert textbook is not None
    assert (found.mix.name, textbook.mix.name) == (mix, "load")


def test_a_file_of_loads_alone_still_has_a_bandwidth_for_kernels_that_write() -> None:
    toy = machine()
    loads = replace(toy, bandwidths=tuple(one for one in toy.bandwidths if not one.mix.write))
    assert nearest_bandwidth(loads, "Mem", 0.5).mix.name == "load"


def test_streams_over_cores_count_where_a_file_has_none_of_one_core_in_caches() -> None:
    """copy draws 26.7 GB/s with 4 cores and 20 with 2: three quarters of it, however little a core computes."""
    toy = machine(OVERLAPPING)
    result = predict(traffic(), incore(), toy, streams=streams_of(toy, MissParameters()))
    memory = replace(result.transfers[-1], of_streams=False)
    alone = replace(result, levels=(*result.levels[:-1], ("Mem", 12.8)), transfers=(*result.transfers[:-1], memory))
    assert scale(lambda _: alone, 2, toy).units_per_cycle == pytest.approx(3 / 4 / 9.6)
    assert scale(lambda _: replace(alone, textbook=True, penalties=()), 2, toy).units_per_cycle == pytest.approx(
        1 / 9.6
    )
