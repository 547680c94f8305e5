"""What the adCARM paper prints: Marques, Ilic, Matveev, Sousa, FGCS 107 (2020) 257."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.machine.load import load_machine
from kernmodel.models.carm import (
    application_driven,
    cache_aware,
    level_shares,
    scaled_bandwidths,
    scaled_compute_roofs,
)
from kernmodel.models.ceilings import compute_ceiling, issue_ceiling, theoretical_bandwidth
from kernmodel.models.chart import Case, Roofline

MACHINE = load_machine("skx-6140")
PARAMETERS = load_parameters(MACHINE.core.microarchitecture)
XEON = Case(MACHINE, PARAMETERS, InstructionTable.open(PARAMETERS), cores=18)


def memory(sizes: dict[int, float], loads_per_store: float) -> tuple[tuple[MemoryClass, float], ...]:
    """Memory instructions by size, each with the same ratio of loads and stores."""
    share = loads_per_store / (1 + loads_per_store) if loads_per_store != float("inf") else 1.0
    rows = [(MemoryClass(size, "vector", False), count * share) for size, count in sizes.items()]
    rows += [(MemoryClass(size, "vector", True), count * (1 - share)) for size, count in sizes.items()]
    return tuple(row for row in rows if row[1])


def case(sizes: dict[int, float], ratio: float, fp: dict[FpClass, float]) -> Case:
    return replace(XEON, mix=InstructionMix(memory(sizes, ratio), tuple(fp.items()), 0.0, "the paper"))


def bandwidths(one: Case) -> dict[str, float]:
    return {level: ceiling.bytes_per_second / 1e9 for level, ceiling in scaled_bandwidths(one) if ceiling}


def test_table_1_theoretical_figures() -> None:
    """ORM bandwidths of all 18 cores and the peak of AVX-512 FMA, from the machine file."""
    found = [theoretical_bandwidth(MACHINE, level, 18) for level in ("L1", "L2", "L3", "Mem")]
    assert [value / 1e9 for value in found if value] == pytest.approx([7948.8, 2649.6, 662.4, 42.66], abs=0.005)
    peak = compute_ceiling(MACHINE, PARAMETERS, XEON.table, FpClass("fma", "DP", 8), 18)
    assert peak is not None
    assert peak.flop_per_second / 1e9 == pytest.approx(1324.8)


def test_section_3_theoretical_bandwidths_of_l1() -> None:
    """AVX-512: 5299.2 GB/s of LD and of LD/ST, 2649.6 of ST, 7948.8 of 2LD/ST; AVX: 3974.4 of 2LD/ST."""
    found = [
        issue_ceiling(MACHINE, PARAMETERS, XEON.table, size_bytes=size, load_share=share, cores=18).bytes_per_second
        / 1e9
        for size, share in ((64, 1.0), (64, 0.5), (64, 0.0), (64, 2 / 3), (32, 2 / 3))
    ]
    assert found == pytest.approx([5299.2, 5299.2, 2649.6, 7948.8, 3974.4])


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (FpClass("add", "DP", 8), 2),
        (FpClass("mul", "DP", 8), 2),
        (FpClass("add", "DP", 2), 8),
        (FpClass("add", "DP", 1), 16),
        (FpClass("fma", "SP", 16), 0.5),
        (FpClass("add", "SP", 1), 16),
    ],
)
def test_section_3_floating_point_performance(kind: FpClass, part: float) -> None:
    """ADD and MUL half of the FMA peak; SSE one eighth, scalar one sixteenth; SP twice DP, scalar the same."""
    found = compute_ceiling(MACHINE, PARAMETERS, XEON.table, kind, 18)
    assert found is not None
    assert found.flop_per_second / 1e9 == pytest.approx(1324.8 / part)


def test_section_3_divisions() -> None:
    """SP divides 3.1 times as fast as DP with AVX-512 and AVX, 2.6 times with SSE (both within a fifth)."""
    for size, ratio in ((64, 3.1), (32, 3.1), (16, 2.6)):
        single, double = (
            compute_ceiling(MACHINE, PARAMETERS, XEON.table, kind, 18)
            for kind in (FpClass("div", "SP", size // 4), FpClass("div", "DP", size // 8))
        )
        assert single is not None
        assert double is not None
        assert single.flop_per_second / double.flop_per_second == pytest.approx(ratio, rel=0.2)


def test_equation_2() -> None:
    """Half AVX-512, half SSE loads in L1: 3301.8 GB/s, 0.6 of the 5562.4 GB/s of the model without scaled roofs."""
    found = bandwidths(case({64: 0.5, 16: 0.5}, float("inf"), {}))
    assert found["L1"] == pytest.approx(3301.8, abs=0.05)
    best = next(roof for roof in cache_aware(case({64: 1}, float("inf"), {})).memory_roofs if roof.level == "L1")
    assert best.bytes_per_second / 1e9 == pytest.approx(5562.4, abs=0.05)
    assert round(found["L1"] / (best.bytes_per_second / 1e9), 1) == 0.6
    scaled = scaled_bandwidths(case({64: 1, 16: 1}, float("inf"), {}))
    origins = {level: ceiling.origin for level, ceiling in scaled if ceiling}
    assert (origins["L1"], origins["L2"]) == ("measured", "derived")


def test_equation_4() -> None:
    """P_M = η P_U: AVX-512 adds with half of their lanes active."""
    masked = replace(case({64: 1}, 1, {FpClass("add", "DP", 8, masked=True): 1}), mask_utilization=0.5)
    (roof,) = scaled_compute_roofs(masked)
    assert roof.flop_per_second / 1e9 == pytest.approx(1324.8 / 2 / 2)


ADD, WIDE_ADD, WIDE_FMA = FpClass("add", "SP", 1), FpClass("add", "SP", 16), FpClass("fma", "SP", 16)
SCALAR = case({4: 0.65, 8: 0.35}, 63, {ADD: 1.0})
AVX512 = case({8: 0.4, 64: 0.6}, 14, {WIDE_ADD: 0.87, WIDE_FMA: 0.13})


def at(one: Case, intensity: float) -> Case:
    """The kernel with so many FLOP per byte; the paper draws its intensities without printing them."""
    assert one.mix is not None
    factor = intensity * one.mix.bytes / one.mix.flops
    return replace(one, mix=replace(one.mix, fp=tuple((kind, count * factor) for kind, count in one.mix.fp)))


def heights(found: Roofline) -> dict[str, float]:
    return {roof.level: roof.bytes_per_second for roof in found.memory_roofs}


@pytest.mark.parametrize("kernel", [SCALAR, AVX512])
def test_memory_roofs_move_down_and_keep_their_order(kernel: Case) -> None:
    """ "The memory roofs move down in the adCARM", those of L1 and L2 most; memory hardly heeds the accesses."""
    plain, scaled = heights(cache_aware(kernel)), heights(application_driven(kernel))
    assert list(scaled.values()) == sorted(scaled.values(), reverse=True)
    assert scaled["L1"] < 0.7 * plain["L1"]
    assert scaled["L2"] < 0.85 * plain["L2"]
    assert scaled["L3"] < plain["L3"]
    assert scaled["Mem"] == pytest.approx(plain["Mem"])
    assert scaled["L1"] / plain["L1"] < scaled["L2"] / plain["L2"] < scaled["Mem"] / plain["Mem"] * 1.0001


def test_scalar_roofs_fall_further_than_those_of_avx512() -> None:
    """4 B and 8 B requests get less bandwidth than 8 B and 64 B ones."""
    assert heights(application_driven(SCALAR))["L1"] < 0.2 * heights(application_driven(AVX512))["L1"]


def test_compute_roofs() -> None:
    """Scalar: one roof, SP scalar ADD. AVX-512: ADD and FMA as without scaling: widths and precisions do not mix."""
    (only,) = application_driven(SCALAR).compute_roofs
    assert (only.name, only.flop_per_second / 1e9) == ("SP scalar ADD", pytest.approx(82.8))
    plain = {roof.name: roof.flop_per_second for roof in cache_aware(AVX512).compute_roofs}
    scaled = {roof.name: roof.flop_per_second for roof in application_driven(AVX512).compute_roofs}
    for name in ("SP AVX-512 ADD", "SP AVX-512 FMA"):
        assert scaled[name] == pytest.approx(plain[name])


@pytest.mark.parametrize("kernel", [SCALAR, AVX512])
def test_the_memory_region_grows_to_the_right(kernel: Case) -> None:
    """Intensities between the two first ridge points change from the mixed to the memory region, as both kernels do."""
    plain, scaled = cache_aware(kernel), application_driven(kernel)
    left = min(roof.flop_per_second for roof in plain.compute_roofs) / heights(plain)["L1"]
    right = min(roof.flop_per_second for roof in scaled.compute_roofs) / heights(scaled)["L1"]
    assert right > 1.5 * left
    for weight in (0.1, 0.5, 0.9):
        moved = at(kernel, left * (1 - weight) + right * weight)
        assert (cache_aware(moved).region, application_driven(moved).region) == ("in between", "memory")


def test_memory_impact_of_the_scalar_version() -> None:
    """97 % of the data from L1 and 1 % from DRAM (2 % from the caches between) have impacts of 89 % and 7 %; the
    printed 1 % stands for 0.5 to 1.5 %."""
    impacts = [
        {one.level: one.impact for one in level_shares(served, bandwidths(SCALAR))}
        for served in ({"L1": 97.0, "L2": 2.5, "Mem": 0.5}, {"L1": 97.0, "L2": 1.5, "Mem": 1.5})
    ]
    assert impacts[0]["Mem"] < 0.07 < impacts[1]["Mem"]
    assert impacts[1]["L1"] < 0.89 < impacts[0]["L1"] + 0.05


def test_memory_impact_of_the_avx512_version() -> None:
    """42 % from L1, 47 % from L2, 10 % from DRAM: DRAM takes 84 % of the time, the private caches 14 %."""
    found = level_shares({"L1": 42.0, "L2": 47.0, "L3": 1.0, "Mem": 10.0}, bandwidths(AVX512))
    impact = {one.level: one.impact for one in found}
    assert impact["Mem"] == pytest.approx(0.84, abs=0.04)
    assert impact["L1"] + impact["L2"] == pytest.approx(0.14, abs=0.03)
