"""The cache-aware models: scaled roofs, memory share and impact, and what changes of a kernel do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from roofline_cases import LEVELS, TRIAD, cases, core, incore, mix, traffic

from kernmodel.code.mix import FpClass
from kernmodel.errors import InputError
from kernmodel.models.carm import (
    ALL,
    application_driven,
    cache_aware,
    integrated,
    level_shares,
    memory_shares,
    ratio_name,
    scaled_bandwidths,
    scaled_compute_roofs,
    served_bytes,
)
from kernmodel.models.ceilings import best_ceiling
from kernmodel.models.chart import Case
from kernmodel.models.findings import WhatIf, changes, findings

FMA, ADD, MUL = (FpClass(operation, "DP", 8) for operation in ("fma", "add", "mul"))
SCALAR_ADD = FpClass("add", "DP", 1)
TRIAD_MIX = mix({(64, False): 3 / 8, (64, True): 1 / 8}, {FMA: 1 / 8})
PATHS = {"L1L2": (4, 1), "L2L3": (4, 1), "L3Mem": (4, 1)}


def triad(**parts: object) -> Case:
    base = replace(core("clx"), cores=10, name="triad", traffic=TRIAD, mix=TRIAD_MIX)
    return replace(base, **parts)  # type: ignore[arg-type]


def gain(found: tuple[WhatIf, ...], name: str) -> float:
    return next(one.gain for one in found if one.name == name)


def test_cache_aware_by_hand() -> None:
    """One intensity, 2 FLOP to 32 B. Roofs are the best of any ratio: update in L1, loads in L2. All data come from
    memory: its best, 61.43 GB/s of loads, bounds."""
    found = cache_aware(triad())
    assert [(point.level, point.intensity) for point in found.points] == [("", 2 / 32)]
    roofs = {roof.level: roof for roof in found.memory_roofs}
    assert roofs["L1"].bytes_per_second == pytest.approx(2909.15e9)
    assert roofs["Mem"].bytes_per_second == pytest.approx(61.43e9)
    assert roofs["Mem"].label == "Mem, 64 B accesses, only loads"
    assert (found.bound_by, found.bound) == ("Mem", pytest.approx(61.43e9 / 16))
    assert (found.region, found.above, found.below) == ("in between", "Mem", None)
    assert found.bytes_meant == "core-side bytes of load and store instructions"


def test_without_traffic_the_first_cache_bounds() -> None:
    found = cache_aware(triad(traffic=None))
    assert found.bound_by == "L1"
    assert [roof.level for roof in found.memory_roofs] == list(LEVELS)


def test_integrated_has_roofs_of_one_and_points_of_the_other() -> None:
    found = integrated(triad())
    assert [point.intensity for point in found.points] == pytest.approx([2 / 32, 2 / 40, 2 / 40, 2 / 40])
    assert [roof.bytes_per_second for roof in found.memory_roofs] == [
        roof.bytes_per_second for roof in cache_aware(triad()).memory_roofs
    ]
    assert found.bound == pytest.approx(61.43e9 / 20)


def test_adcarm_separates_operations() -> None:
    """Section 4.1: FMA and ADD apart, widths of one operation mixed: 1/2 scalar and 1/2 AVX-512 adds, 2 a cycle each,
    give 9 FLOP a cycle instead of 16."""
    work = {FMA: 1.0, ADD: 0.5, SCALAR_ADD: 0.5}
    roofs = {roof.name: roof for roof in scaled_compute_roofs(triad(mix=mix({(64, False): 1}, work)))}
    assert roofs["DP AVX-512 FMA"].flop_per_second == pytest.approx(32 * 25e9)
    assert roofs["ADD of DP AVX-512 ADD and DP scalar ADD"].flop_per_second == pytest.approx(9 * 25e9)
    assert roofs[ALL].flop_per_second == pytest.approx((16 + 4.5) * 25e9)
    assert {roof.role for roof in roofs.values()} == {"scaled"}


def test_the_bound_heeds_all_operations_together() -> None:
    case = triad(traffic=None, mix=mix({(64, False): 0.001}, {FMA: 1.0, ADD: 1.0}))
    found = application_driven(case)
    assert (found.bound_by, found.bound) == (ALL, pytest.approx(24 * 25e9))


def test_operations_without_a_rate_are_noted() -> None:
    odd = FpClass("add", "X87", 1)
    found = application_driven(triad(mix=mix({(64, False): 1}, {odd: 1, ADD: 1}), traffic=None))
    assert [note.code for note in found.notes] == ["unknown-peak"]
    assert [roof.name for roof in found.compute_roofs] == ["DP AVX-512 FMA", "DP AVX-512 ADD"]


def test_adcarm_needs_a_mix_and_shares_need_traffic() -> None:
    with pytest.raises(InputError, match="instruction mix"):
        application_driven(triad(mix=None))
    with pytest.raises(InputError, match="data traffic"):
        memory_shares(triad(traffic=None))


def test_ratios_in_words() -> None:
    assert [ratio_name(share) for share in (1, 2 / 3, 0)] == ["only loads", "2:1 loads to stores", "only stores"]


@pytest.mark.thorough
@settings(max_examples=40)
@given(cases())
def test_scaled_roofs_never_exceed_those_of_carm(case: Case) -> None:
    """For every machine, mix, ratio and number of cores."""
    state_of_the_art = {roof.level: roof.bytes_per_second for roof in cache_aware(case).memory_roofs}
    for level, ceiling in scaled_bandwidths(case):
        assert ceiling is None or ceiling.bytes_per_second <= state_of_the_art[level] * (1 + 1e-9)
    peak = max(roof.flop_per_second for roof in cache_aware(case).compute_roofs)
    for roof in scaled_compute_roofs(case):
        assert roof.flop_per_second <= peak * (1 + 1e-9)
    assert application_driven(case).bound <= cache_aware(case).bound * (1 + 1e-9)


@settings(max_examples=20)
@given(cases(), st.sampled_from(LEVELS), st.floats(0.1, 10))
def test_scaled_roofs_equal_those_of_carm_for_the_best_mix(case: Case, level: str, count: float) -> None:
    """All accesses of the size and in the ratio that the roof was taken from."""
    best = best_ceiling(case.machine, case.parameters, case.table, level=level, cores=case.cores)
    share = best.load_share
    memory = {(best.size_bytes, False): count * share, (best.size_bytes, True): count * (1 - share)}
    found = dict(scaled_bandwidths(replace(case, mix=mix(memory))))
    assert found[level].bytes_per_second == pytest.approx(best.bytes_per_second)


@settings(max_examples=20)
@given(cases(), st.floats(0, 1))
def test_masks_scale_by_their_utilization(case: Case, utilization: float) -> None:
    """Equation 4: P_M = η P_U of a mix that is masked as a whole."""
    assert case.mix is not None
    masked = {replace(kind, masked=True): count for kind, count in case.mix.fp}
    plain = {replace(kind, masked=False): count for kind, count in case.mix.fp}
    assume(any(kind.flops for kind in plain) and utilization > 0.01 and len(plain) == len(masked))
    with_mask = replace(case, mix=mix({}, masked), mask_utilization=utilization)
    without = replace(case, mix=mix({}, plain))
    pairs = zip(scaled_compute_roofs(with_mask), scaled_compute_roofs(without), strict=True)
    for one, other in pairs:
        assert one.flop_per_second == pytest.approx(utilization * other.flop_per_second)


SERVED = st.dictionaries(st.sampled_from(LEVELS), st.just(0.0) | st.floats(0.01, 4), min_size=1)
REFERENCES = st.dictionaries(st.sampled_from(["a[i]=", "b[i]", "c[i]", "d[i][j]"]), SERVED, max_size=4)


@pytest.mark.thorough
@settings(max_examples=80)
@given(cases(), REFERENCES, st.just(0.0) | st.floats(1, 400), st.booleans())
def test_shares_and_impacts_add_up_to_one(
    case: Case, references: dict[str, dict[str, float]], registers: float, with_mix: bool
) -> None:
    moved = traffic(PATHS, references, registers=(registers, registers / 3))
    found = memory_shares(replace(case, traffic=moved, mix=case.mix if with_mix else None))
    total = sum(one.bytes_served for one in found)
    assert all(one.bytes_served >= 0 and 0 <= one.share <= 1 + 1e-9 and 0 <= one.impact <= 1 + 1e-9 for one in found)
    for sums in (sum(one.share for one in found), sum(one.impact for one in found)):
        assert sums == pytest.approx(1.0 if total else 0.0)


@given(
    st.dictionaries(st.sampled_from(LEVELS), st.tuples(st.floats(1, 1e3), st.floats(1e9, 1e12)), min_size=2),
    st.floats(1.01, 10),
    st.data(),
)
def test_impact_grows_as_bandwidth_falls(
    levels: dict[str, tuple[float, float]], factor: float, data: st.DataObject
) -> None:
    served = {level: moved for level, (moved, _) in levels.items()}
    bandwidths = {level: bandwidth for level, (_, bandwidth) in levels.items()}
    slow = data.draw(st.sampled_from(sorted(levels)))
    before = {one.level: one for one in level_shares(served, bandwidths)}
    after = {one.level: one for one in level_shares(served, {**bandwidths, slow: bandwidths[slow] / factor})}
    assert after[slow].impact > before[slow].impact
    assert all(after[level].impact < before[level].impact for level in served if level != slow)
    assert {level: one.share for level, one in after.items()} == {level: one.share for level, one in before.items()}


def test_a_stream_from_memory_is_served_by_it_whole() -> None:
    assert served_bytes(triad()) == {"L1": 0.0, "L2": 0.0, "L3": 0.0, "Mem": pytest.approx(32)}


def test_the_first_cache_serves_the_rest() -> None:
    """a[i-1] + a[i] + a[i+1]: one reference brings the line, two find it; the spills of the code are served by L1."""
    served = {"a[i-1]": {"L1": 1}, "a[i]": {"L1": 1}, "a[i+1]": {"L2": 0.5, "Mem": 0.5}}
    moved = traffic(PATHS, served, registers=(192, 0))
    assert served_bytes(triad(traffic=moved, mix=None)) == pytest.approx({"L1": 16, "L2": 4, "L3": 0, "Mem": 4})
    spilling = mix({(64, False): 6 / 8, (64, True): 1 / 8})
    assert served_bytes(triad(traffic=moved, mix=spilling)) == pytest.approx({"L1": 48, "L2": 4, "L3": 0, "Mem": 4})


def test_strided_references_use_a_part_of_their_lines() -> None:
    """Every second element of one array and every element of another: two lines for 64 B, one for 64 B."""
    served = {"a[2*i]": {"Mem": 2}, "b[i]": {"L1": 1}}
    moved = traffic(PATHS, served, registers=(128, 0))
    assert served_bytes(triad(traffic=moved, mix=None)) == pytest.approx({"L1": 8, "L2": 0, "L3": 0, "Mem": 8})


def test_references_of_different_size() -> None:
    """Float and double side by side, and a scalar of the outer loop that a register holds."""
    served = {"x[i]": {"Mem": 1}, "i[i]": {"Mem": 0.5}, "s[j]": {"L1": 0.001}}
    moved = traffic(PATHS, served, registers=(96.064, 0))
    assert served_bytes(triad(traffic=moved, mix=None))["Mem"] == pytest.approx(12)


def test_code_that_moves_less_than_its_lines_is_not_served_more() -> None:
    lean = mix({(64, False): 1 / 8})
    assert served_bytes(triad(mix=lean)) == pytest.approx({"L1": 0, "L2": 0, "L3": 0, "Mem": 8})


def test_wider_accesses_reach_the_roofs_of_the_widest() -> None:
    """Scalar code in L1: 8 B at two a cycle; with 64 B the same bytes take an eighth of the time."""
    in_cache = traffic(dict.fromkeys(PATHS, (0, 0)), {"a[i]": {"L1": 1}}, registers=(64, 0))
    case = triad(traffic=in_cache, mix=mix({(8, False): 1.0}, {FMA: 1.0}), incore=incore(8, 0, 1))
    found = changes(case)
    assert gain(found, "wider accesses") == pytest.approx(2732.24 / (16 * 25), rel=1e-3)
    assert gain(changes(triad()), "half the stores") > 1
    assert "wider accesses" not in {one.name for one in changes(triad())}


def test_streaming_stores_save_the_write_allocate() -> None:
    """Four lines instead of five over the path of memory, judged by the hierarchical model."""
    one = next(found for found in changes(triad()) if found.name == "streaming stores")
    assert one.roofline.model == "hierarchical"
    assert one.roofline.points[-1].intensity == pytest.approx(2 / 32)
    assert one.roofline.points[1].intensity == pytest.approx(2 / 24)
    assert one.bound == pytest.approx(one.before * one.gain)
    streaming = triad(traffic=replace(TRIAD, stores="nt"))
    assert "streaming stores" not in {found.name for found in changes(streaming)}


def test_contraction_pairs_multiplications_and_additions() -> None:
    """Three additions and two multiplications become two FMA and an addition: 5 instructions, then 3."""
    case = triad(traffic=None, mix=mix({(64, False): 0.001}, {ADD: 3, MUL: 2}))
    assert gain(changes(case), "FMA contraction") == pytest.approx(5 / 3)
    old = replace(core("snb"), mix=mix({(32, False): 0.001}, {FpClass("add", "DP", 4): 1, FpClass("mul", "DP", 4): 1}))
    assert "FMA contraction" not in {one.name for one in changes(old)}


def test_what_blocking_brings_is_handed_in() -> None:
    """The chart knows nothing of blocks: no gain is computed from a layer condition."""
    blocking = WhatIf("blocking for L2", "blocks of 8 in i", "ECM", "T_nOL", 1e9, 3e9, 3.0, 2.5, None)
    found = findings(triad(), blockings=(blocking,))
    assert found.what_ifs[0] is blocking
    assert any(
        line == "Blocking for L2: 3.00 times, 3 GFLOP/s of one core, as ECM predicts (2.50 times on all cores); "
        "blocks of 8 in i."
        for line in found.sentences
    )
    assert not any(one.name.startswith("blocking") for one in findings(triad()).what_ifs)


def test_reading_names_the_level_that_deserves_the_work() -> None:
    served = {"a[i]": {"L1": 1}, "b[i]": {"L1": 1}, "c[i]": {"L2": 0.9, "Mem": 0.1}}
    case = triad(traffic=traffic(PATHS, served, registers=(192, 0)), performance=1e9)
    found = findings(case)
    assert (found.level, found.roofline.model, found.beside.model) == ("Mem", "adcarm", "carm")
    time = sum(one.bytes_served / one.bandwidth for one in found.shares)
    assert found.added == pytest.approx(2 / time)
    assert found.added <= found.roofline.bound
    assert found.roofline.points[0].flop_per_second == 1e9
    assert any(line.startswith("Mem deserves the work") for line in found.sentences)
    assert found.sentences[0].startswith("Memory region") or found.sentences[0].startswith("Between")
    gains = [one.gain for one in found.what_ifs]
    assert gains == sorted(gains, reverse=True)


def test_reading_without_traffic_or_outer_levels() -> None:
    found = findings(triad(traffic=None))
    assert (found.shares, found.level, found.added) == ((), None, None)
    inner = traffic(dict.fromkeys(PATHS, (0, 0)), {"a[i]": {"L1": 1}}, registers=(64, 0))
    assert findings(triad(traffic=inner)).level is None


@settings(max_examples=20)
@given(cases(only_carried=True), REFERENCES, st.floats(1, 400))
def test_wider_accesses_and_streaming_stores_never_harm(
    case: Case, references: dict[str, dict[str, float]], registers: float
) -> None:
    """On carried machines; measurements may say otherwise of a machine whose wide accesses are slower."""
    moved = traffic(PATHS, references, registers=(registers, 0))
    assert case.mix is not None
    loads = {(kind.size_bytes, False): count for kind, count in case.mix.memory}
    fp = dict(case.mix.fp)
    case = replace(case, traffic=moved, mix=mix(loads, fp, shares=True))
    for one in changes(case):
        if one.name in ("wider accesses", "streaming stores"):
            assert one.gain >= 1 - 1e-9


def test_measured_bytes_of_levels_go_before_the_traffic() -> None:
    """12, 4, 0 and 16 of 32 B an iteration; time at the scaled bandwidths (equation 7)."""
    measured = replace(TRIAD_MIX, served=(("L1", 3 / 8), ("L2", 1 / 8), ("Mem", 1 / 2)))
    for data in (TRIAD, None):
        found = triad(traffic=data, mix=measured)
        assert served_bytes(found) == pytest.approx({"L1": 12, "L2": 4, "L3": 0, "Mem": 16})
        shares = {one.level: one for one in memory_shares(found)}
        seconds = {level: one.bytes_served / one.bandwidth for level, one in shares.items() if one.bandwidth}
        assert shares["Mem"].impact == pytest.approx(seconds["Mem"] / sum(seconds.values()))
        assert findings(found).level == "Mem"
    with pytest.raises(InputError, match="served names L9"):
        served_bytes(triad(mix=replace(TRIAD_MIX, served=(("L9", 1.0),))))


def test_shares_without_an_intensity_have_roofs_alone() -> None:
    shares = replace(TRIAD_MIX, shares_only=True, per="instruction")
    told, alone = (application_driven(triad(traffic=None, mix=one)) for one in (TRIAD_MIX, shares))
    assert alone.memory_roofs == told.memory_roofs
    assert {roof.name for roof in alone.compute_roofs} <= {roof.name for roof in told.compute_roofs}
    assert (alone.points, alone.bound, alone.region) == ((), None, None)
    assert [note.code for note in alone.notes] == ["intensity-unknown"]
    found = findings(triad(traffic=None, mix=replace(shares, served=(("L1", 0.9), ("Mem", 0.1)))))
    assert found.level == "Mem" and not found.what_ifs
    assert found.sentences[0].startswith("Mem deserves the work")
