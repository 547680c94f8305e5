"""Scaling over cores: equal to `ecm --cores`, and the laws that performance over cores obeys."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernmodel as km
from kernmodel.errors import UsageError
from kernmodel.machine.cores import Spread
from kernmodel.machine.load import load_machine
from kernmodel.source.nest.division import Division
from kernmodel.studies.blocking.study import blocking
from kernmodel.studies.predict.division import unequal_work
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.scaling import cache_effect, own_rate, scaling
from kernmodel.studies.sweep.study import SweepStudy, Varied, sweep_grid
from kernmodel.units import Work
from kernmodel.user_files import GivenText

pytestmark = pytest.mark.needs("as", "gcc|clang")

ROUNDING = 1 + 1e-9
SPREAD = 0.01
"""Of measured streams, which cores of a domain draw no more than."""


def request(kernel: str, machine: str, **sizes: int) -> KernelRequest:
    return KernelRequest(kernel, machine, sizes)


@pytest.fixture(scope="module")
def stencil():
    """The stencil on one core of clx, ten of which share an L3."""
    return predict_ecm(request("stencil", "clx"), CodeRequest())


@pytest.fixture(scope="module")
def breaking():
    """A stencil whose rows no longer fit into the share of the L3 that ten cores of hsw have."""
    return scaling(request("stencil", "hsw", N=120_000, M=1000), CodeRequest(classic=True), ())


def test_cores_without_iterations_of_a_divided_loop_do_nothing():
    text = """void f(double a[restrict 6][100000], double b[restrict 6][100000]) {
        #pragma omp parallel for schedule(dynamic)
        for (int j = 0; j < 6; ++j)
            for (int i = 0; i < 100000; ++i)
                a[j][i] = b[j][i];
    }"""
    kernel = request(GivenText(text), "clx")
    answer = scaling(kernel, CodeRequest(), (1, 4, 6, 40))
    assert [row.division.most for row in answer.rows] == [6, 2, 1, 1]
    assert [row.division.balance for row in answer.rows] == pytest.approx([1, 6 / 8, 1, 6 / 40])
    assert answer.rows[3].point.units_per_cycle == answer.rows[2].point.units_per_cycle
    assert answer.spread.schedule == "dynamic"
    assert len(set(answer.notes)) == len(answer.notes)
    asked = scaling(dataclasses.replace(kernel, spread=Spread("static")), CodeRequest(), (1, 4))
    assert asked.spread.schedule == "static" and asked.rows[1].division.most == 2
    assert predict_ecm(kernel, CodeRequest(), (40,)).scaling[0] == answer.rows[3].point


FOUR_ROWS = """double a[M][N], b[M][N];
    #pragma omp parallel for
    for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i)
        b[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i];"""


def test_idle_cores_share_no_caches_in_sweeps():
    """Four rows on ten cores: what a row needs (4.6 MiB) fits into a quarter of the L3, not into a tenth."""
    kernel = dataclasses.replace(request(GivenText(FOUR_ROWS), "clx", M=6, N=150_000), cores=10)
    expected = predict_ecm(kernel, CodeRequest(), (10,))
    assert expected.scaling[0].single_core_cycles < 0.95 * expected.prediction.cycles
    ((row, _),) = SweepStudy.of(sweep_grid(Point(kernel, CodeRequest()), Varied(machines=("clx",)))).rows()
    assert row["all_cores_cy_per_CL"] == expected.scaling[0].cycles


@pytest.mark.thorough
def test_blocking_divides_loops_as_scaling_does():
    """Of twelve rows on ten cores, two cores have two."""
    kernel = request(GivenText(FOUR_ROWS), "clx", M=14, N=2_000)
    answer = blocking(kernel, CodeRequest())
    assert answer.saturated is not None
    (row,) = scaling(dataclasses.replace(kernel, cache="sim"), CodeRequest(), (10,)).rows
    assert answer.saturated[0].cycles == pytest.approx(row.point.cycles)
    assert row.division is not None and row.division.balance == pytest.approx(12 / 20)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kernel", "machine", "sizes", "cores"),
    [
        ("stencil", "clx", {}, (1, 3, 5, 10, 11, 20, 31, 40)),
        ("stencil", "hsw", {"N": 120_000, "M": 1000}, (1, 9, 10, 14, 15, 28)),
        ("3d-7pt", "zen2", {}, (1, 2, 4, 8, 9, 32)),
        ("pi", "snb", {}, (1, 8, 16)),
    ],
)
def test_scaling_equals_ecm_over_cores(kernel, machine, sizes, cores):
    kernel = request(kernel, machine, **sizes)
    expected = predict_ecm(kernel, CodeRequest(), cores)
    answer = scaling(kernel, CodeRequest(), cores)
    assert tuple(row.point for row in answer.rows) == expected.scaling
    assert answer.single.prediction == expected.prediction
    one = expected.prediction.cycles
    for row in answer.rows:
        assert row.speedup == pytest.approx(row.point.units_per_cycle * one)
        assert row.efficiency == pytest.approx(row.speedup / row.point.cores)


class Known:
    """Stages that know the times of a core already: T_ECM and T_Mem, for any number of active cores."""

    def __init__(self, answer, cycles: float, memory: float, *, fitted: bool = True) -> None:
        prediction = answer.prediction if fitted else dataclasses.replace(answer.prediction, penalties=())
        last = dataclasses.replace(prediction.transfers[-1], cycles=memory, penalty_cycles=0.0)
        levels = (*prediction.levels[:-1], ("Mem", cycles))
        self.prediction = dataclasses.replace(
            prediction, transfers=(*prediction.transfers[:-1], last), levels=levels, binding=("T_nOL", "T_L3Mem")
        )
        self.single = answer

    def machine(self, _):
        return self.single.machine

    def answer(self, point, **_):
        return dataclasses.replace(self.single, prediction=self.prediction)

    def conditions(self, _):
        return self.single.traffic

    def settled_traffic(self, _, **__):
        return self.single.traffic


SHARES = st.just(0.0) | st.floats(1e-9, 1)  # of subnormal times a ratio has no precision
TIMES = st.tuples(st.floats(0.5, 500), SHARES).map(lambda pair: (pair[0], pair[0] * pair[1]))


@given(TIMES)
def test_laws_of_performance_over_cores(stencil, times):
    answer = scaling(request("stencil", "clx"), CodeRequest(), (), stages=Known(stencil, *times))
    rows = answer.rows
    assert [row.point.cores for row in rows] == list(range(1, 41))
    rates = [row.point.units_per_cycle for row in rows]
    assert all(later >= earlier * (1 - SPREAD) for earlier, later in pairwise(rates))
    for row in rows:
        assert row.point.cycles >= row.simple_cycles / ROUNDING  # the simple rule is an upper bound of performance
        assert row.efficiency <= ROUNDING
        assert 0 <= row.point.utilization <= 1
        assert row.fits == ""
    assert not any(note.code == "slower-with-more-cores" for note in answer.notes)


@given(TIMES)
def test_saturation_points_are_where_the_rules_saturate(stencil, times):
    answer = scaling(request("stencil", "clx"), CodeRequest(), (), stages=Known(stencil, *times))
    domain = answer.rows[:10]
    first = next((row.point.cores for row in domain if row.point.saturated), None)
    assert answer.saturation_recursive == first
    if first is not None:
        assert answer.saturation_simple is not None
        assert answer.saturation_simple <= first
    if answer.saturation_simple is not None and answer.saturation_simple > 1:
        cycles, memory = times
        assert answer.saturation_simple * memory >= cycles / ROUNDING
        assert (answer.saturation_simple - 1) * memory < cycles * ROUNDING


@given(TIMES, st.sets(st.integers(1, 40), min_size=1))
def test_best_cores_are_the_fewest_that_do(stencil, times, cores):
    answer = scaling(request("stencil", "clx"), CodeRequest(), tuple(cores), stages=Known(stencil, *times))
    best = max(row.point.units_per_cycle for row in answer.rows)
    enough = [row.point.cores for row in answer.rows if row.point.units_per_cycle * ROUNDING >= 0.95 * best]
    assert answer.best_cores == min(enough)


@pytest.mark.parametrize(
    ("cycles", "memory", "simple", "recursive"),
    [
        (36.7, 9.1, 5, 7),  # T_ECM / T_Mem = 4.03
        (18.28, 8.3, 3, 4),  # T_ECM / T_Mem = 2.2
    ],
)
def test_both_rules_by_hand(stencil, cycles, memory, simple, recursive):
    known = Known(stencil, cycles, memory, fitted=False)
    answer = scaling(request("stencil", "clx"), CodeRequest(), (1,), stages=known)
    assert (answer.saturation_simple, answer.saturation_recursive) == (simple, recursive)


def test_in_the_cache_performance_is_linear(stencil):
    answer = scaling(request("stencil", "clx"), CodeRequest(), (), stages=Known(stencil, 12.0, 0.0))
    assert [row.speedup for row in answer.rows] == pytest.approx(range(1, 41))
    assert [row.efficiency for row in answer.rows] == pytest.approx([1.0] * 40)
    assert (answer.saturation_simple, answer.saturation_recursive) == (None, None)
    assert {row.limit for row in answer.rows} == {"T_nOL + T_L3Mem of one core"}
    assert answer.best_cores == 38


def test_a_condition_that_breaks_makes_more_cores_slower(breaking):
    rows = {row.point.cores: row for row in breaking.rows}
    assert rows[9].point.saturated
    assert rows[10].point.units_per_cycle < rows[9].point.units_per_cycle
    assert rows[10].fits == "L3: 3.5 MiB a core; reuse over j (3.662 MiB) no longer fits"
    assert [cores for cores, row in rows.items() if row.fits] == [10, 24]
    assert rows[24].fits.startswith("in the last domain L3: 3.5 MiB a core")
    slower = [note.text for note in breaking.notes if note.code == "slower-with-more-cores"]
    assert [text.partition(":")[0] for text in slower] == ["10 cores are slower than 9", "24 cores are slower than 23"]


def test_within_what_fits_performance_does_not_fall(breaking):
    for before, row in pairwise(breaking.rows):
        assert row.fits or row.point.units_per_cycle >= before.point.units_per_cycle / ROUNDING


def test_sparse_core_counts_tell_the_change_too():
    answer = scaling(request("stencil", "hsw", N=120_000, M=1000), CodeRequest(classic=True), (14, 2))
    assert [(row.point.cores, bool(row.fits)) for row in answer.rows] == [(2, False), (14, True)]
    assert (answer.saturation_simple, answer.saturation_recursive) == (4, 6)


def test_simulated_traffic_tells_what_moves_more(stencil):
    def simulated(loads: float):
        moved = dataclasses.replace(stencil.traffic.paths[-1], loads=loads, stores=1.0, clean_victims=0.0)
        names = [path.inner for path in stencil.machine.paths]
        levels = tuple(LevelNamed(name) for name in names)
        paths = (*stencil.traffic.paths[:-1], moved)
        traffic = dataclasses.replace(stencil.traffic, conditions=(), paths=paths, levels=levels, cores=10)
        return dataclasses.replace(stencil, traffic=traffic)

    assert cache_effect(simulated(2.0), simulated(2.01)) == ""
    text = "L3: 1.375 MiB a core; 5.00 lines over L3Mem in place of 3.00"
    assert cache_effect(simulated(2.0), simulated(4.0)) == text


def test_conditions_along_one_loop_are_told_together(stencil):
    """Reuse of two arrays that breaks at once is one clause with both sizes."""
    names = {level.name for level in stencil.machine.levels if level.cores_sharing > 1}
    along_j = [c for c in stencil.traffic.conditions if c.cache in names and c.reuses[0].carried_by == "j"]

    def answer(holds: bool, cores: int):
        size = along_j[0].required_bytes
        pair = [
            dataclasses.replace(along_j[0], required_bytes=size * factor, required=1024 * factor, holds=holds)
            for factor in (1, 2)
        ]
        traffic = dataclasses.replace(stencil.traffic, conditions=tuple(pair), cores=cores)
        return dataclasses.replace(stencil, traffic=traffic)

    told = cache_effect(answer(True, 1), answer(False, 10))
    assert told.endswith("a core; reuse over j (1 KiB and 2 KiB) no longer fits")


@dataclasses.dataclass
class LevelNamed:
    level: str


def test_a_simulation_scales_like_ecm():
    kernel = dataclasses.replace(request("stencil", "hsw", N=500, M=40), cache="sim")
    expected = predict_ecm(kernel, CodeRequest(), (1, 4))
    answer = scaling(kernel, CodeRequest(), (1, 4))
    assert tuple(row.point for row in answer.rows) == expected.scaling


def test_several_kernels_share_stages():
    stages = Stages()
    both = [scaling(request("copy", machine), CodeRequest(), (1, 4), stages=stages) for machine in ("clx", "snb")]
    alone = [scaling(request("copy", machine), CodeRequest(), (1, 4)) for machine in ("clx", "snb")]
    assert [answer.rows for answer in both] == [answer.rows for answer in alone]


def test_streams_of_fewer_cores_than_asked_about_tell_no_saturation():
    """Of two cores of a guest only loads and copies were measured on both."""
    machine = str(Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml")

    def told(kernel, cores, **sizes):
        answer = predict_ecm(request(kernel, machine, **sizes), CodeRequest(), cores)
        return [note.text for note in answer.notes if note.code == "few-cores-bandwidth"]

    (text,) = told("triad", (1, 2))
    assert text.startswith("stream from memory was measured on 1 of 2 cores of a domain")
    assert told("triad", ()) == told("triad", (1,)) == told("triad", (2,), N=500) == []
    assert told("sum", (2,)) == []
    assert "few-cores-bandwidth" in [note.code for note in scaling(request("triad", machine), CodeRequest(), ()).notes]


def test_more_cores_than_were_measured_have_an_interval():
    """From what the measured ones draw, which was all that was said, to cores that do not share memory."""
    machine = str(Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml")
    answer = scaling(request("triad", machine), CodeRequest(), ())
    one, two = (row.point for row in answer.rows)
    assert one.cycles_interval is None and two.cycles_interval is not None
    assert (two.cycles_interval.low, two.cycles_interval.high) == pytest.approx((two.cycles / 2, two.cycles))
    assert [point.saturated for point in (one, two)] == [point.utilization for point in (one, two)] == [None, None]
    assert answer.single.prediction.saturation_is_least
    assert answer.rows[1].limit == "not known: what more than 1 core of a domain draw from memory"
    assert predict_ecm(request("triad", machine), CodeRequest(), (2,)).scaling == (two,)
    (measured,) = predict_ecm(request("sum", machine), CodeRequest(), (2,)).scaling
    assert measured.cycles_interval is None and measured.utilization is not None


def test_cores_draw_no_more_than_the_channels_of_a_socket_move():
    """Of a Zen 4 domain 2 of 8 cores were measured; twelve such domains would draw a third more than twelve channels
    have, and twelve with all cores seven times as much."""
    answer = scaling(request("triad", "zen4", N=2_000_000_000), CodeRequest(), (2, 8, 9, 24, 96))
    alone, machine = answer.single.prediction, answer.single.machine
    least = alone.transfers[-1].bytes * machine.clock_hz / (12 * 8 * 4.8e9)
    for row in answer.rows:
        interval = row.point.cycles_interval
        assert row.point.cycles >= least * (1 - 1e-9)
        assert interval is None or interval.low >= least * (1 - 1e-9)
    assert answer.rows[1].point.cycles_interval.low == pytest.approx(alone.cycles / 8)
    assert answer.rows[-1].point.cycles == pytest.approx(least)


def test_what_does_not_saturate_the_measured_cores_bandwidth_is_known_not_to():
    machine = str(Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml")
    (point,) = predict_ecm(request("2d-5pt", machine), CodeRequest(flags=("-O0",)), (2,)).scaling
    assert (point.saturated, point.utilization) == (False, None)


def test_more_cores_than_were_measured_are_told_as_text_and_in_json():
    machine = str(Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml")
    found = km.scale("triad.c", machine)
    (body,) = found.json()["points"]
    assert body["saturation_is_least"] and body["rows"][1]["saturated"] is None
    assert body["rows"][1]["cycles_interval"]["low"] == pytest.approx(body["rows"][1]["cycles"] / 2)
    text = found.text()
    assert "n_S ≥ 1 core of 2" in text and "≥ 50%" in text and "985.4 MLUP/s (985.4 MLUP/s to 1.971 GLUP/s)" in text


def test_assertions_on_saturation_stay_open_where_it_is_a_lower_bound(tmp_path):
    machine = Path(__file__).parents[1] / "evaluate" / "recorded" / "milan-guest.yml"
    checks = tmp_path / "checks.yml"
    checks.write_text(
        f"checks:\n  - {{kernel: triad.c, machine: {machine}, assert: [saturation >= 1, saturation <= 2]}}\n"
    )
    (result,) = km.check(checks).answer.results
    assert [verdict.outcome for verdict in result.verdicts] == ["holds", "open"]


def test_cores_that_the_machine_lacks():
    with pytest.raises(UsageError, match="17 cores, but snb has 16"):
        scaling(request("copy", "snb"), CodeRequest(), (1, 17))


@pytest.mark.parametrize(
    ("flops", "updates", "unit"), [(4.0, 1.0, "LUP/s"), (4.0, None, "FLOP/s"), (0.0, None, "It/s")]
)
def test_the_rate_that_a_kernel_has(flops, updates, unit):
    assert own_rate(Work(8.0, flops, updates, None, 1e9)) == unit


def test_each_core_sweeps_over_its_part():
    """16 MB in 22.5 MiB of L3: half of them stay in half of it, and so on, whichever way the traffic is found."""
    for cache in ("lc", "sim", "auto"):
        kernel = dataclasses.replace(request("copy", "bdw", N=1_000_000), cache=cache)
        answer = scaling(kernel, CodeRequest(), (1, 2, 9, 10, 36))
        assert [row.speedup for row in answer.rows] == pytest.approx([1, 2, 9, 10, 36], rel=1e-3)
        assert not any(row.fits for row in answer.rows)
        assert "divided-loop" in {note.code for note in answer.notes}


def test_parts_may_fit_where_the_whole_does_not():
    """32 MB do not fit into 22.5 MiB, but their halves into those of two domains."""
    answer = scaling(request("copy", "bdw", N=2_000_000), CodeRequest(), (9, 36))
    assert answer.rows[0].point.utilization > 0.9 and answer.rows[1].point.utilization == 0
    assert "reuse over sweep (868.1 KiB) fits" in answer.rows[1].fits


def test_cores_that_take_work_as_they_are_ready_meet_all_data():
    kernel = dataclasses.replace(request("copy", "bdw", N=1_000_000), spread=Spread("dynamic"))
    answer = scaling(kernel, CodeRequest(), (1, 9))
    assert answer.rows[1].point.utilization > 0.9
    assert "whole-data" in {note.code for note in answer.notes}


def test_what_all_cores_read_is_not_divided():
    """x of matvec takes 16 KiB on any number of cores; the rows of a part, 4.9 MiB, do not stay in 2.5 MiB of L3."""
    sizes = {"M": 3000, "N": 2000}
    one, nine = (
        predict_ecm(dataclasses.replace(request("matvec", "bdw", **sizes), cores=cores), CodeRequest()).traffic
        for cores in (1, 9)
    )
    assert [path.loads for path in nine.paths] == pytest.approx([path.loads for path in one.paths], rel=0.01)


def test_rows_of_neighbours_count_where_parts_are_thin():
    """Of 211 planes two more are 1 % of those of one of three streams, which is left out; of 8 they are a quarter.
    That one of the nine cores of a domain loads: a step of all of them fits into their L3."""
    kernel = request("3d-7pt", "bdw", L=3800, M=200, N=200)
    thick, whole = (
        predict_ecm(dataclasses.replace(kernel, cores=9, parts=parts), CodeRequest()).traffic for parts in (18, 1)
    )
    assert thick.paths == whole.paths
    thin = dataclasses.replace(request("3d-7pt", "bdw", L=146, M=200, N=200), cores=9, parts=18)
    assert predict_ecm(thin, CodeRequest()).traffic.paths[-1].loads == pytest.approx(whole.paths[-1].loads + 2 / 8 / 9)


@pytest.mark.parametrize("size", [20_000_000, 200_000_000])
def test_answers_that_stand_for_others_are_theirs(monkeypatch, size):
    """Parts that stay in a cache from some number of cores on, and such as never do: asked one by one, and not."""
    kernel, asked = request("copy", "bdw", N=size), []

    class Counting(Stages):
        def answer(self, point, *args, **options):
            asked.append(point)
            return super().answer(point, *args, **options)

    answer = scaling(kernel, CodeRequest(), (), stages=Counting())
    fewer = len(asked)
    monkeypatch.setattr("kernmodel.studies.scaling._representatives", lambda places, _: {one: one for one in places})
    each = scaling(kernel, CodeRequest(), (), stages=Counting())
    assert fewer < (len(asked) - fewer) * 0.7
    assert fewer == 9 or size < 200_000_000
    assert answer.rows == each.rows
    assert answer.notes == each.notes
    assert answer.saturation_recursive == each.saturation_recursive


def test_cores_with_less_work_leave_their_bandwidth_to_the_others():
    """Shares of 1, 3, 5 and 7 of 16: two cores and a half use all of the bandwidth, so that the four together do 4 in
    1.6 cycles, three of them 6 in 2.4, two 4 in 2 and the last one 2 in 2."""
    shares = (1.0, 3.0, 5.0, 7.0)
    made = Division(4, 16, 7, 0, 16 / 4 / 7, (shares,))
    found = unequal_work(made, [None], load_machine("clx"), Spread(), 2.5, lambda _, cores: min(cores, 2.5))
    assert found.all_cores == pytest.approx(16 / 8 / 2.5)


def test_the_domain_with_the_most_work_decides():
    """The second of two full domains has three quarters of a triangle's rows."""
    text = """double a[N][N], b[N][N];
        #pragma omp parallel for
        for (int i = 0; i < N; ++i) for (int j = 0; j <= i; ++j) a[i][j] = 2.0 * b[i][j];"""
    answer = scaling(request(GivenText(text), "clx", N=4000), CodeRequest(), (10, 20))
    one, two = (row.point for row in answer.rows)
    assert two.units_per_cycle < 1.5 * one.units_per_cycle
    assert two.utilization < 0.5 and not two.saturated
    assert all(row.point.cycles >= row.simple_cycles for row in answer.rows)
    assert all(row.limit.startswith("the busiest core") for row in answer.rows)
