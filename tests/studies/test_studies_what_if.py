"""What-if studies: equal to `ecm` on a file edited by hand, and the laws that runtime and elasticity obey."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.errors import InputError, ToolError, UsageError
from kernmodel.machine.load import load_machine
from kernmodel.report.what_if_reasons import reason_of
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest
from kernmodel.studies.what_if.code import compare_code
from kernmodel.studies.what_if.machine import elasticity_of, what_if
from kernmodel.studies.what_if.runs import Runs, runtime_ratio, seconds
from kernmodel.studies.what_if.sensitivity import sensitivity

pytestmark = pytest.mark.needs("as", "gcc")

STENCIL = KernelRequest("stencil", "clx", {})
CODE = CodeRequest(classic=True)


def changes(*texts: str) -> tuple[Change, ...]:
    return tuple(Change(*text.split("=", 1)) for text in texts)


def ratio_of(before, after) -> float:
    """Where all of the runtimes is known."""
    ratio = runtime_ratio(before, after)
    assert ratio.least == ratio.value and ratio.interval() is None
    return ratio.value


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str, int], Runs]:
    """Kernels that are read and compiled once for all examples."""
    return {}


def case(runs, kernel: str, machine: str, cores: int, *texts: str):
    key = (kernel, machine, cores)
    if key not in runs:
        runs[key] = Runs(KernelRequest(kernel, machine, {}), CODE, cores)
    return runs[key].answer(changes(*texts))


def effect(*texts: str, cores: int = 1, kernel: KernelRequest = STENCIL):
    answer = what_if(kernel, CODE, changes(*texts), cores)
    return answer.together or answer.effects[0]


def reason(*texts: str, cores: int = 1, kernel: KernelRequest = STENCIL) -> str:
    answer = what_if(kernel, CODE, changes(*texts), cores)
    return reason_of(answer.before, answer.together or answer.effects[0])


SETS = {
    "clock=3GHz": ("clock: 2.5 GHz", "clock: 3 GHz"),
    "L2L3.width=x2": ("width: 16 B/cy", "width: 32 B/cy"),
    "L3Mem.width=10 B/cy": ("width: measured", "width: 10 B/cy"),
    "loads_pass_by=false": ("pass_by: true", "pass_by: false"),
}


def edited(change: str) -> str:
    """The text of clx.yml with the change made by hand."""
    text = Path(load_machine("clx").file).read_text(encoding="utf-8")
    if change in SETS:
        return text.replace(*SETS[change], 1)
    head, _, memory = text.rpartition("- level: Mem")  # its series of daxpy, twice as fast
    begin, end = memory.index("daxpy: [") + len("daxpy: ["), memory.index("load: [")
    numbers = re.sub(r"[\d.]+", lambda match: str(2 * float(match[0])), memory[begin:end])
    return f"{head}- level: Mem{memory[:begin]}{numbers}{memory[end:]}"


@pytest.mark.thorough
@pytest.mark.parametrize("cores", [1, 9])
@pytest.mark.parametrize("change", [*SETS, "Mem.daxpy=x2"])
def test_a_change_gives_what_ecm_gives_on_a_file_edited_by_hand(change: str, cores: int, tmp_path: Path) -> None:
    path = tmp_path / "clx.yml"
    path.write_text(edited(change))
    expected = predict_ecm(KernelRequest("stencil", str(path), {}, cores=cores), CODE, (cores,))
    found = effect(change, cores=cores)
    assert found.after.prediction.times == pytest.approx(expected.prediction.times)
    assert found.after.prediction.levels == expected.prediction.levels
    assert found.after.scaling[0].cycles == pytest.approx(expected.scaling[0].cycles)
    assert seconds(found.after) == pytest.approx(expected.scaling[0].cycles / expected.machine.clock_hz)


def test_what_stands_before_is_the_plain_prediction() -> None:
    answer = what_if(STENCIL, CODE, changes("clock=3GHz"))
    assert answer.before.prediction == predict_ecm(STENCIL, CODE).prediction
    assert seconds(answer.before) == pytest.approx(answer.before.prediction.cycles / 2.5e9)
    assert answer.together is None


def test_all_together_is_what_the_changes_give_in_one_machine() -> None:
    texts = ("L2L3.width=x2", "memory.bandwidth=x2", "clock=3GHz")
    answer = what_if(STENCIL, CODE, changes(*texts))
    assert [str(one.changes[0]) for one in answer.effects] == ["memory.bandwidth=x2", "L2L3.width=x2", "clock=3GHz"]
    assert answer.together is not None
    assert answer.together.elasticity is None
    before, after = answer.before.prediction.times, answer.together.after.prediction.times
    assert after["T_L2L3"] == pytest.approx(before["T_L2L3"] / 2)
    assert after["T_L3Mem"] == pytest.approx(before["T_L3Mem"] / 2 * 3 / 2.5)


def test_several_values_of_one_figure_are_alternatives() -> None:
    answer = what_if(STENCIL, CODE, changes("L1.size=128KiB", "caches.L1.size=256KiB", "clock=3GHz"))
    assert answer.together is None
    assert [effect.ratio < 1 for effect in answer.effects] == [True, True, False]
    assert answer.notes[0].text.startswith("several values of caches.L1.size are alternatives")


def test_the_same_change_twice_counts_once() -> None:
    answer = what_if(STENCIL, CODE, changes("clock=3GHz", "L2L3.width=x2", "clock=3GHz"))
    assert [str(effect.changes[0]) for effect in answer.effects] == ["L2L3.width=x2", "clock=3GHz"]
    assert answer.together is not None


KERNELS = st.sampled_from([("stencil", "clx"), ("triad", "snb"), ("sum", "zen2"), ("daxpy", "skx")])
RATES = st.sampled_from(["L1L2.width", "L2L3.width", "memory.bandwidth", "L3Mem.width"])


def applicable(machine: str, path: str) -> bool:
    """Whether the machine takes this time from this figure."""
    measured = load_machine(machine).paths[-1].bytes_per_cycle is None
    return measured if path == "memory.bandwidth" else not measured or path != "L3Mem.width"


@settings(max_examples=25)
@given(KERNELS, RATES, st.sampled_from([1, 3, 8]), st.floats(0.2, 4), st.floats(1.01, 3))
def test_runtime_never_rises_with_a_bandwidth(runs, kernel, path, cores, low, more) -> None:
    path = path if applicable(kernel[1], path) else "L2L3.width"
    slow = case(runs, *kernel, cores, f"{path}=x{low}")
    fast = case(runs, *kernel, cores, f"{path}=x{low * more}")
    assert ratio_of(slow, fast) <= 1 + 1e-9


@settings(max_examples=20)
@given(KERNELS, st.sampled_from(["L1L2", "L2L3", "L3Mem"]), st.floats(0, 5), st.floats(0, 5))
def test_runtime_never_falls_with_a_penalty(runs, kernel, path, low, more) -> None:
    low, high = (f"{path}.penalty_load={value} cy/CL" for value in (low, low + more))
    assert ratio_of(case(runs, *kernel, 1, low), case(runs, *kernel, 1, high)) >= 1 - 1e-9


@settings(max_examples=20)
@given(KERNELS, st.sampled_from(["clock", "L1L2.width", "L2L3.width", "memory.bandwidth"]), st.floats(0.5, 3))
def test_elasticities_of_rates_lie_between_minus_one_and_zero(runs, kernel, path, factor) -> None:
    ratio = ratio_of(case(runs, *kernel, 1), case(runs, *kernel, 1, f"{path}=x{factor}"))
    slope = elasticity_of(ratio, factor)
    assert slope is None or -1 - 1e-6 <= slope <= 1e-6


@settings(max_examples=20)
@given(KERNELS, st.floats(0.5, 3))
def test_a_clock_with_its_bandwidths_scales_time(runs, kernel, factor) -> None:
    """All times in cycles stay as they are if measured bandwidths follow the clock."""
    texts = [f"clock=x{factor}", f"memory.bandwidth=x{factor}"]
    ratio = ratio_of(case(runs, *kernel, 1), case(runs, *kernel, 1, *texts))
    assert ratio == pytest.approx(1 / factor)


@settings(max_examples=20)
@given(KERNELS, st.floats(0.2, 5), st.sampled_from(["clock", "L2.size", "L2L3.width", "memory.bandwidth"]))
def test_there_and_back_takes_the_same_time(runs, kernel, factor, path) -> None:
    factor = 2.0 if path == "L2.size" else factor
    texts = [f"{path}=x{factor}", f"{path}=x{1 / factor!r}"]
    assert ratio_of(case(runs, *kernel, 1), case(runs, *kernel, 1, *texts)) == pytest.approx(1)


@settings(max_examples=20)
@given(st.sampled_from([("L1", 32), ("L2", 13), ("L3", 64)]), st.floats(0, 1))
def test_runtime_never_rises_with_a_cache(runs, grown, share) -> None:
    """Each up to the size of the next one: a cache smaller than the one inside is refused."""
    level, most = grown
    factor = most**share
    before = case(runs, "stencil", "clx", 1)
    assert ratio_of(before, case(runs, "stencil", "clx", 1, f"{level}.size=x{factor}")) <= 1 + 1e-9


def test_a_longer_cache_line_is_compared_by_iteration() -> None:
    found = effect("cache_line=x2")
    assert found.ratio == pytest.approx(1)
    assert reason("cache_line=x2").startswith("a unit of work is then 16 iterations in place of 8")


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_elasticity_is_the_exponent(slope: float, factor: float) -> None:
    slope = min(slope, 3.0)
    if abs(math.log(factor)) > 1e-3:
        assert elasticity_of(factor**-slope, factor) == pytest.approx(-slope)


@pytest.mark.parametrize(("ratio", "figure"), [(0.5, None), (0.5, 1.0), (math.inf, 2.0), (0.5, 0.0)])
def test_no_elasticity(ratio: float, figure: float | None) -> None:
    assert elasticity_of(ratio, figure) is None


REASONS = {
    "memory.bandwidth=x2": "T_L3Mem falls from 8.8 to 4.4 cy/CL; T_L2L3 then takes the largest part (37 %)",
    "L1.size=256KiB": "L1 then holds the reuse along j (156.2 KiB of 256 KiB); T_L1L2 falls from 5.0 to 3.0 cy/CL; "
    "T_L3Mem still takes the largest part (37 %)",
    "L2.size=2MiB": "nothing changes: the reuse along j needs 156.2 KiB; that along sweep would need 381.4 MiB; "
    "L2 has 1 MiB before and 2 MiB after",
    "L3.bandwidth=x2": "nothing changes: T_L2L3 comes from the width of the path, 16 B/cy",
    "Mem.update=x2": "nothing changes: T_L3Mem comes from the stream mix copy",
    "L2L3.penalty_load=1 cy/CL": "nothing changes: no line is loaded over L2L3",
    "L1.bandwidth=x2": "nothing changes: no path leads to L1",
    "sockets=4": "nothing changes: no time of this prediction depends on this figure",
}


@pytest.mark.parametrize("change", REASONS)
def test_the_reason_has_the_numbers(change: str) -> None:
    assert reason(change) == REASONS[change]


def test_a_time_that_hides() -> None:
    hidden = reason("memory.bandwidth=x2", kernel=KernelRequest("sum", "clx", {}))
    assert hidden == "T_L3Mem falls from 2.6 to 1.3 cy/CL; T_ECM stays at 32.0 cy/CL, of which T_OL takes 100 %"


def test_times_that_differ_do_not_print_alike() -> None:
    assert reason("L2L3.width=15.99B/cy").startswith("T_L2L3 rises from 8.00 to 8.01 cy/CL")


def test_the_reason_with_a_clock_and_several_cores() -> None:
    assert reason("clock=3GHz").startswith(
        "cycles are shorter at 3 GHz than at 2.5 GHz; T_L3Mem rises from 8.8 to 10.5 cy/CL"
    )
    assert reason("clock=3GHz", cores=10).endswith("memory bandwidth limits the 10 cores, as before")
    assert "10 cores no longer saturate the memory bandwidth" in reason("memory.bandwidth=x4", cores=10)
    assert "20 cores fill 1 ccNUMA domain in place of 2" in reason("numa_domains_per_socket=1", cores=20)
    both = reason("sockets=4", "threads_per_core=1")
    assert both == "nothing changes: no time of this prediction depends on these figures"


@pytest.mark.parametrize("change", ["L2.sise=1MiB", "clock=3", "cores_per_socket=4", "L3Mem.width=x2"])
def test_a_change_that_cannot_be_made(change: str) -> None:
    with pytest.raises(UsageError) as caught:
        what_if(STENCIL, CODE, changes("clock=3GHz", change))
    assert caught.value.where == f"--set {change}"


def test_more_cores_than_the_machine_has() -> None:
    with pytest.raises(UsageError, match="100 cores, but clx has 40"):
        what_if(STENCIL, CODE, changes("clock=3GHz"), 100)
    with pytest.raises(UsageError, match="30 cores, but clx has 20"):
        what_if(STENCIL, CODE, changes("sockets=1"), 30)


def test_a_microarchitecture_that_is_unknown() -> None:
    with pytest.raises(InputError, match="unknown microarchitecture 'XYZ'"):
        what_if(STENCIL, CODE, changes("microarchitecture=XYZ"))


@pytest.fixture(scope="module")
def stencil():
    return sensitivity(STENCIL, CODE, 1, 0.01)


def by_name(answer):
    return {one.figure.short: one for one in answer.figures}


def test_the_greatest_effect_comes_first(stencil) -> None:
    sizes = [max(abs(math.log(x)) for x in (one.less, one.below, one.above, one.more) if x) for one in stencil.figures]
    assert sizes == sorted(sizes, reverse=True)
    assert stencil.figures[0].figure.path == "clock"


def test_elasticities_of_additive_times_sum_to_one(stencil) -> None:
    """T_ECM/f = (T_nOL + Σ widths)/f + T_L3Mem/f: the clock and the memory bandwidth share it, the widths are within
    the clock's part."""
    found = {name: one.elasticity for name, one in by_name(stencil).items()}
    assert found["clock"] + found["memory.bandwidth"] == pytest.approx(-1, abs=1e-3)
    assert found["L1L2.width"] + found["L2L3.width"] == pytest.approx(-(5 + 8) / 25.72, abs=1e-2)
    assert found["L1L2.width"] + found["L2L3.width"] > found["clock"]


def test_every_ratio_is_that_of_the_change_alone(stencil) -> None:
    for name, one in by_name(stencil).items():
        if one.less is not None and one.more is not None and one.figure.dimension:
            assert one.less == pytest.approx(effect(f"{name}=x0.5").ratio)
            assert one.more == pytest.approx(effect(f"{name}=x2").ratio)


@pytest.mark.thorough
def test_a_step_shows_at_half_or_twice() -> None:
    found = by_name(sensitivity(KernelRequest("3d-7pt", "clx", {"N": 400, "M": 400, "L": 400}), CODE, 4))
    cache = found["L2.size"]
    assert (cache.elasticity, cache.less, cache.above) == (0.0, 1.0, 1.0)
    assert cache.more < 0.8


def test_counts_take_whole_values_only(stencil) -> None:
    domains = by_name(stencil)["numa_domains_per_socket"]
    assert (domains.below, domains.above, domains.elasticity) == (None, None, None)
    assert domains.less < 1 < domains.more


def test_what_does_not_matter_is_listed(stencil) -> None:
    assert {"core.flop_per_cycle.DP.FMA", "caches.L3.ways", "bandwidths.L1"} <= set(stencil.without_effect)
    assert not {one.figure.path for one in stencil.figures} & set(stencil.without_effect)
    codes = {note.code for note in stencil.notes}
    assert {"derived-figures", "zero-figures", "measured-unchanged"} <= codes


def test_a_kernel_in_the_core_depends_on_the_clock_alone() -> None:
    answer = sensitivity(KernelRequest("pi", "clx", {}), CODE)
    assert [one.figure.path for one in answer.figures] == ["clock"]
    assert answer.figures[0].elasticity == pytest.approx(-1)


@pytest.mark.parametrize("step", [0.0, 1.0, -0.1])
def test_a_step_that_is_none(step: float) -> None:
    with pytest.raises(UsageError, match="is no step"):
        sensitivity(STENCIL, CODE, 1, step)


def test_code_is_compared_to_the_first() -> None:
    flags = ("-O1",), ("-O3", "-march=cascadelake", "-g")
    codes = [CODE, *(CodeRequest(flags=one, classic=True) for one in flags)]
    answer = compare_code(STENCIL, codes)
    assert [variant.error for variant in answer.variants] == [None, None, None]
    first, scalar, same = answer.variants
    assert (first.ratio, same.ratio) == (1, 1)
    assert scalar.ratio > 1
    for variant in answer.variants:
        expected = predict_ecm(STENCIL, variant.code)
        assert variant.answer.prediction == expected.prediction
        assert variant.label == " ".join((expected.origin.compiler, *expected.origin.flags))
    assert [note.text for note in answer.notes if note.code == "no-target"] == [
        "'-O1' replaces the machine's flags and names no target such as -march=cascadelake"
    ]


def test_a_way_that_fails_fails_alone() -> None:
    codes = [CODE, CodeRequest(compiler="no-such-compiler"), CodeRequest(flags=("-frubbish",))]
    answer = compare_code(STENCIL, codes)
    first, missing, wrong = answer.variants
    assert first.ratio == 1
    assert (missing.answer, missing.ratio) == (None, None)
    assert "'no-such-compiler' was not found" in missing.error
    assert missing.label == "no-such-compiler with the flags of the machine"
    assert "-frubbish" in wrong.error


def test_the_first_way_fails() -> None:
    answer = compare_code(STENCIL, [CodeRequest(compiler="no-such-compiler"), CODE])
    assert [variant.ratio for variant in answer.variants] == [None, 1]
    assert answer.notes[0].code == "first-code-fails"
    assert answer.notes[0].kind == "warning"


def test_all_ways_fail() -> None:
    with pytest.raises(ToolError, match="was not found"):
        compare_code(STENCIL, [CodeRequest(compiler="no-such-compiler"), CodeRequest(flags=("-frubbish",))])
    with pytest.raises(InputError, match="no such kernel"):
        compare_code(KernelRequest("nothing-like-it", "clx", {}), [CODE, CodeRequest(flags=("-O1",), classic=True)])


def test_code_on_a_changed_machine() -> None:
    change = changes("memory.bandwidth=x2")
    answer = compare_code(STENCIL, [CODE, CodeRequest(flags=("-O1",), classic=True)], 1, change)
    expected = what_if(STENCIL, CodeRequest(flags=("-O1",), classic=True), change).effects[0]
    assert answer.variants[1].answer.prediction == expected.after.prediction
    with pytest.raises(UsageError, match="no figure 'nothing'"):
        compare_code(STENCIL, [CODE], 1, changes("nothing=1"))


def test_what_streams_take_changes_with_widths_and_bandwidths() -> None:
    """Twice the width of a path or the bandwidth of memory halves what one core's streams take there; another clock
    leaves the cycles of caches as they are, and those of memory follow it."""
    answer = what_if(STENCIL, CodeRequest(), changes("L2L3.width=x2", "memory.bandwidth=x2", "clock=x2"))
    before = answer.before.prediction.times
    by_change = {str(effect.changes[0]): effect.after.prediction.times for effect in answer.effects}
    wide, fast, clocked = (by_change[name] for name in ("L2L3.width=x2", "memory.bandwidth=x2", "clock=x2"))
    assert wide["T_L2L3"] == pytest.approx(before["T_L2L3"] / 2)
    assert fast["T_L3Mem"] == pytest.approx(before["T_L3Mem"] / 2)
    assert clocked["T_L3Mem"] == pytest.approx(2 * before["T_L3Mem"])
    assert (clocked["T_L1L2"], clocked["T_L2L3"]) == pytest.approx((before["T_L1L2"], before["T_L2L3"]))
