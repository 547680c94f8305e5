"""Original and hierarchical roofline: values by hand, region and neighbours; no ECM prediction exceeds them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from roofline_cases import TRIAD, core, incore, mix, traffic

from kernmodel.code.mix import FpClass
from kernmodel.errors import InputError
from kernmodel.formulas.formula import ZERO
from kernmodel.incore.tables.core_parameters import MissParameters
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import BandwidthSeries, StreamMix
from kernmodel.machine.overlap import parse_overlap
from kernmodel.models.bandwidths import drawn_share
from kernmodel.models.ceilings import path_bandwidth
from kernmodel.models.chart import Case, ModelName, Roofline, demand
from kernmodel.models.ecm import predict, scale
from kernmodel.models.roofline import hierarchical, original, roofline
from kernmodel.models.streams import streams_of
from kernmodel.models.transfers import transfer_time
from kernmodel.traffic.model import PathLines, PathTraffic

PATHS = ("L1L2", "L2L3", "L3Mem")
EVERY: tuple[ModelName, ...] = ("orm", "hierarchical", "carm", "irm", "adcarm")
FMA, ADD = FpClass("fma", "DP", 8), FpClass("add", "DP", 8)
TRIAD_MIX = mix({(64, False): 3 / 8, (64, True): 1 / 8}, {FMA: 1 / 8})


def triad(cores: int = 10, **parts: object) -> Case:
    base = replace(core("clx"), cores=cores, name="triad", traffic=TRIAD, mix=TRIAD_MIX)
    return replace(base, **parts)  # type: ignore[arg-type]


def names(found: Roofline) -> list[str]:
    return [roof.name for roof in found.compute_roofs]


def test_original_by_hand() -> None:
    """Schönauer triad on ten cores of Cascade Lake: 40 B and 2 FLOP an iteration, 44.1 GB/s × 5/4 with the
    write-allocates of the triad benchmark: 55.125 GB/s / 20 B/FLOP."""
    found = original(triad())
    assert [(roof.level, roof.bytes_per_second / 1e9) for roof in found.memory_roofs] == [
        ("Mem", pytest.approx(55.125))
    ]
    assert [(point.level, point.intensity) for point in found.points] == [("Mem", pytest.approx(2 / 40))]
    assert found.bound == pytest.approx(55.125e9 / 20)
    assert found.iterations_per_second == pytest.approx(55.125e9 / 40)
    assert (found.bound_by, found.region, found.above, found.below) == ("Mem", "memory", "Mem", None)
    assert names(found) == ["DP AVX-512 FMA", "DP AVX-512 ADD", "DP scalar ADD"]
    assert [roof.flop_per_second / 1e9 for roof in found.compute_roofs] == pytest.approx([800, 400, 50])
    assert found.bytes_meant.startswith("bytes between levels")
    assert found.memory_roofs[0].origin.startswith("measured: likwid-bench triad")


def test_hierarchical_by_hand() -> None:
    """L1: 32 B of loads and stores at 3:1, 170.7 B/cy; by widths L1L2: five lines at 64 B/cy; L2L3: the longer
    direction, four lines at 16 B/cy."""
    case = triad()
    memory = tuple(one for one in case.machine.bandwidths if one.level == "Mem")
    found = hierarchical(replace(case, machine=replace(case.machine, bandwidths=memory)))
    per_core = [roof.bytes_per_second / 10 / 2.5e9 for roof in found.memory_roofs[:3]]
    assert per_core == pytest.approx([512 / 3, 64, 16 * 5 / 4])
    assert [point.intensity for point in found.points] == pytest.approx([2 / 32, 2 / 40, 2 / 40, 2 / 40])
    assert {point.flop_per_second for point in found.points} == {found.bound}
    assert (found.bound_by, found.region) == ("Mem", "memory")
    assert "at L1 bytes of load and store" in found.bytes_meant


def test_roofs_of_the_kernels_own_code() -> None:
    """Three loads, one store and one FMA a pass of eight iterations: ports 2, 3 and 7 take 4/3 cycles but the load data
    paths 1.5; a chain of 4 cycles bounds it further."""
    found = original(triad(incore=incore(3, 1, 1, lcd=4.0)))
    roofs = {roof.name: roof for roof in found.compute_roofs}
    per_pass = 16 * 2.5e9 * 10
    assert roofs["in-core throughput"].flop_per_second == pytest.approx(per_pass / 1.5)
    assert roofs["loop-carried dependency"].flop_per_second == pytest.approx(per_pass / 4)
    assert (roofs["in-core throughput"].role, roofs["loop-carried dependency"].role) == ("in-core", "dependency")
    in_cache = traffic(dict.fromkeys(PATHS, (0, 0)), {"a[i]": {"L1": 4}}, registers=(192, 64))
    bound = original(triad(traffic=in_cache, incore=incore(3, 1, 1, lcd=4.0)))
    assert (bound.bound_by, bound.bound) == ("loop-carried dependency", pytest.approx(per_pass / 4))
    assert bound.points[0].intensity is None


def test_a_front_end_that_binds_is_a_roof() -> None:
    slow = replace(incore(3, 1, 1), prediction=7.0, bound_by="front end")
    found = original(triad(incore=slow))
    assert "front end" in names(found)
    assert next(roof for roof in found.compute_roofs if roof.name == "front end").role == "in-core"


def test_the_point_is_the_prediction_where_there_is_one() -> None:
    found = hierarchical(triad(performance=1e9))
    assert {point.flop_per_second for point in found.points} == {1e9}
    assert (found.above, found.below) == ("Mem", None)
    assert found.bound == pytest.approx(55.125e9 / 20)


def test_chains_of_several_rows_raise_the_roof_of_their_dependency() -> None:
    """A chain of 40 cycles, of which rows overlap 10, is no roof of 40; what the ports take stays one."""
    roofs = {}
    for overlap in (0.0, 10 / 8, 100.0):
        found = hierarchical(triad(incore=incore(3, 1, 1, 40.0), overlap=overlap))
        roofs[overlap] = {roof.name: roof.flop_per_second for roof in found.compute_roofs}
    names = "loop-carried dependency", "in-core throughput"
    chain, ports = ([roofs[overlap][name] for overlap in roofs] for name in names)
    assert chain == pytest.approx([chain[0], chain[0] * 4 / 3, ports[0]])
    assert ports == pytest.approx([ports[0]] * 3)


def test_a_chain_shorter_than_the_ports_take_is_a_higher_roof() -> None:
    found = hierarchical(triad(incore=incore(6, 1, 1, 1.5)))  # six loads on two ports take 3.0
    roofs = {roof.name: roof.flop_per_second for roof in found.compute_roofs}
    assert roofs["loop-carried dependency"] == pytest.approx(roofs["in-core throughput"] * 2)


def test_a_point_above_its_roof_is_explained() -> None:
    (note,) = original(triad(performance=1e10)).notes
    assert (note.code, note.kind) == ("point-above-roof", "assumption")
    assert "measured on so many cores" in note.text
    in_cache = traffic(dict.fromkeys(PATHS, (0, 0)), {"a[i]": {"L1": 4}}, registers=(192, 64))
    (note,) = original(triad(traffic=in_cache, incore=incore(3, 1, 1, lcd=4.0), performance=1e12)).notes
    assert "by loop-carried dependency: the chains of several entries of the loop overlap" in note.text


def test_regions() -> None:
    """Left of the ridge point with the lowest compute roof, between, right of that with the highest."""
    slow, middle, fast = (
        traffic(dict.fromkeys(PATHS, (1, 0)), {"a[i]": {"Mem": 1}}, flops=flops, registers=(64, 0))
        for flops in (1, 10, 1000)
    )
    regions = [original(triad(traffic=one, mix=None)).region for one in (slow, middle, fast)]
    assert regions == ["memory", "in between", "compute"]
    assert original(triad(traffic=fast, mix=None)).bound_by == "DP AVX-512 FMA"


@pytest.mark.parametrize("model", EVERY)
def test_no_floating_point_work(model: ModelName) -> None:
    """A copy: intensity 0, no FLOP/s, and still a bound in iterations."""
    copy = replace(TRIAD, flops_per_iteration=0.0)
    found = roofline(model, triad(traffic=copy, mix=replace(TRIAD_MIX, fp=()), incore=incore(3, 1, 0)))
    assert (found.bound, found.region) == (0.0, "memory")
    assert found.iterations_per_second == pytest.approx(roofline(model, triad()).iterations_per_second)
    assert {point.intensity for point in found.points} == {0.0}
    assert "no-flops" in {note.code for note in found.notes}
    assert found.above == "Mem"


@pytest.mark.parametrize("model", EVERY)
def test_no_memory_access(model: ModelName) -> None:
    """No byte is moved: intensity infinite (None), the compute roofs bound."""
    registers = traffic(dict.fromkeys(PATHS, (0, 0)), {}, registers=(0, 0))
    found = roofline(model, triad(traffic=registers, mix=mix({}, {FMA: 1 / 8})))
    assert {point.intensity for point in found.points} == {None}
    assert (found.region, found.bound_by, found.bound) == ("compute", "DP AVX-512 FMA", pytest.approx(800e9))
    assert found.memory_roofs


@pytest.mark.parametrize("model", EVERY)
def test_nothing_to_bound(model: ModelName) -> None:
    nothing = traffic(dict.fromkeys(PATHS, (0, 0)), {}, flops=0, registers=(0, 0))
    with pytest.raises(InputError, match="moves no data and computes nothing"):
        roofline(model, triad(traffic=nothing, mix=mix({})))


@pytest.mark.parametrize("model", ["orm", "hierarchical", "irm"])
def test_models_between_levels_need_traffic(model: ModelName) -> None:
    with pytest.raises(InputError, match="needs the data traffic"):
        roofline(model, triad(traffic=None))


def test_sandy_bridge_has_a_roof_of_add_and_mul() -> None:
    found = original(replace(core("snb"), traffic=TRIAD))
    assert names(found) == ["DP AVX ADD+MUL", "DP AVX ADD", "DP scalar ADD"]
    assert found.compute_roofs[0].flop_per_second == pytest.approx(8 * 2.7e9)


def test_demand_of_source_and_code() -> None:
    """The code's bytes count where it is known; a mix for each pass does not tell them, nor do shares."""
    spilled = mix({(64, False): 1.0, (64, True): 0.5}, {FMA: 1 / 8, ADD: 1 / 8})
    assert demand(triad(mix=None)).bytes == 32
    assert demand(triad(mix=spilled)).bytes == 96
    assert demand(triad(mix=spilled)).load_share == pytest.approx(2 / 3)
    assert demand(triad(mix=replace(spilled, per="pass of the loop"))).bytes == 32
    assert demand(triad(mix=replace(spilled, shares_only=True))).bytes == 32
    assert demand(triad(mix=spilled, traffic=None)).flops == 3
    found = {note.code for note in original(triad(mix=spilled)).notes}
    assert found == {"flops-differ"}
    assert {note.code for note in original(triad(mix=replace(spilled, per="pass"))).notes} == {"mix-per-pass"}
    shares = demand(triad(mix=replace(spilled, shares_only=True), traffic=None))
    assert (shares.told, shares.bytes, shares.flops) == (False, 96, 0)
    with pytest.raises(InputError, match="arithmetic intensity"):
        demand(triad(mix=None, traffic=None))


OVERLAPS = ("max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)", "max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)",
            "max(T_OL, T_nOL, T_L1L2, T_L2L3 + T_L3Mem)")  # fmt: skip
COUNTS = st.integers(0, 6)
LINES = st.just(0.0) | st.floats(0.001, 9)


@given(
    st.sampled_from(OVERLAPS),
    st.tuples(*[st.tuples(LINES, LINES)] * 3),
    st.tuples(COUNTS, COUNTS, COUNTS).filter(any),
    st.just(0.0) | st.floats(0.1, 9),
    st.floats(1e9, 100e9),
)
def test_the_hierarchical_bound_is_never_below_ecm(
    overlap: str,
    lines: tuple[tuple[float, float], ...],
    counts: tuple[int, int, int],
    lcd: float,
    bandwidth: float,
) -> None:
    """Same data: one core, a measured bandwidth of memory that is that of all mixes, as the textbook's ECM model takes
    the nearest, code whose µops have ports of one group (overlapping or not). Every roof is one of the times that the
    ECM model adds or takes the maximum of, and a sum of times is at least their maximum."""
    loads, stores, fmas = counts
    series = tuple(
        BandwidthSeries("Mem", mix, (1,), (bandwidth / mix.write_allocate_factor,))
        for mix in (StreamMix(f"{read}{write}", read, write, 0) for read, write in ((1, 0), (1, 1), (2, 1)))
    )
    base = core("clx")
    machine = replace(base.machine, overlap=parse_overlap(overlap), bandwidths=series)
    registers = (64.0 * loads, 64.0 * stores)
    moved = traffic(dict(zip(PATHS, lines, strict=True)), {}, flops=2 * fmas, registers=registers)
    case = replace(base, machine=machine, traffic=moved, incore=incore(loads, stores, fmas, lcd))
    prediction = predict(moved, incore(loads, stores, fmas, lcd), machine)
    rate = machine.clock_hz / prediction.cycles * moved.iterations_per_unit
    found = hierarchical(case)
    assert found.iterations_per_second >= rate * (1 - 1e-9)
    if "+" not in overlap:
        assert found.iterations_per_second == pytest.approx(rate)


@given(
    st.sampled_from(["snb", "ivb", "hsw", "bdw", "skx", "skx-6140", "clx", "zen", "zen2", "zen4", "tx2", "a64fx"]),
    st.floats(0.1, 40),
    st.floats(0, 1),
    st.integers(1, 20),
)
def test_the_memory_roof_is_the_bandwidth_of_t_mem(name: str, loads: float, written: float, cores: int) -> None:
    """All cores of a domain draw no more by ECM than the roof of memory has, and as much where they saturate it."""
    machine = load_machine(name)
    path, stores = machine.paths[-1], loads * written
    moved = PathTraffic(path.name, loads, stores, 0.0, ZERO, ZERO, ZERO)
    time = transfer_time(machine, streams_of(machine, MissParameters()), path, moved)
    assert time.bandwidth is not None
    cores = min(cores, machine.topology.cores_per_numa_domain)
    drawn = time.bytes / time.bandwidth_cycles * machine.clock_hz
    roof = path_bandwidth(machine, path.name, PathLines(loads, stores, 0.0), cores).bytes_per_second
    share = drawn_share(machine, time.bandwidth, cores) if cores > 1 else roof / time.bandwidth.bytes_per_second
    assert roof == pytest.approx(drawn * share)


@pytest.mark.parametrize(("name", "cores"), [("zen", 12), ("zen", 24), ("zen2", 32), ("bdw", 18), ("clx", 20)])
def test_several_domains_draw_no_more_than_the_memory_roof(name: str, cores: int) -> None:
    """12 cores of two domains of zen draw 62.2 GB/s of triad together, 6 of one 31.6: both say the former."""
    machine = load_machine(name)
    path = machine.paths[-1]
    time = transfer_time(
        machine, streams_of(machine, MissParameters()), path, PathTraffic(path.name, 4.0, 1.0, 0.0, ZERO, ZERO, ZERO)
    )
    base = core("clx")
    moved = traffic(dict.fromkeys(PATHS, (4.0, 1.0)), {}, flops=1, registers=(64.0, 64.0))
    alone = predict(moved, incore(1, 1, 1, 0), base.machine)
    found = replace(
        alone, transfers=(time,), levels=(("Mem", time.cycles),), penalties=(), textbook=False, machine=name
    )
    point = scale(lambda _: found, cores, machine)
    roof = path_bandwidth(machine, path.name, PathLines(4.0, 1.0, 0.0), cores).bytes_per_second
    drawn = point.units_per_cycle * time.bytes * machine.clock_hz
    assert drawn <= roof * (1 + 1e-9)
    if name == "zen":
        assert drawn == pytest.approx(roof)
    assert scale(lambda _: replace(found, textbook=True), cores, machine).units_per_cycle >= point.units_per_cycle
