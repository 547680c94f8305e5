"""Where arrays lie in memory: the layouts, the lines that share sets, and whether that may decide."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.cachesim.model import CacheSpec, Hierarchy
from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.comparison.evidence import decide, evidence_of
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.conditions.streams import at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.model import SYMBOLIC, Quantity, Traffic, intensity_intervals
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.array_layout import ArrayReach, lay_out
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.layout_risks import LAYOUTS, LayoutJudgement, judge_layouts
from kernmodel.traffic.simulation.simulate import placed_work, simulate, simulate_placed
from kernmodel.traffic.simulation.working_set import (
    LiveStretch,
    WorkingSet,
    lines_over_sets,
    set_lines,
    working_set_of_program,
    working_set_of_streams,
)
from kernmodel.uncertainty import Interval

CLX = load_machine("clx")
DEFAULT = SimulationOptions()

reaches = st.lists(
    st.tuples(st.integers(0, 100), st.integers(1, 300_000), st.sampled_from([4, 8])), min_size=1, max_size=5
).map(lambda parts: tuple(ArrayReach(f"a{k}", -low, high, size) for k, (low, high, size) in enumerate(parts)))
layouts = st.builds(
    SimulationOptions,
    layout=st.sampled_from(LAYOUTS),
    alias=st.booleans(),
    pad_bytes=st.integers(0, 5000),
    order=st.permutations([f"a{k}" for k in range(3)]).map(tuple),
)


@settings(max_examples=40)
@given(reaches, layouts)
def test_no_layout_lets_arrays_overlap(arrays: tuple[ArrayReach, ...], options: SimulationOptions) -> None:
    bases = lay_out(arrays, hierarchy_of(CLX), options)
    occupied = sorted((bases[each.name] + each.low, bases[each.name] + each.high) for each in arrays)
    assert occupied[0][0] >= 0
    assert all(end <= begin for (_, end), (begin, _) in pairwise(occupied))


def test_malloc_maps_large_blocks_one_below_the_other_and_keeps_small_ones_together() -> None:
    arrays = tuple(ArrayReach(name, 0, size, 8) for name, size in zip("abcd", (2**20, 100, 2**21, 200), strict=True))
    bases = lay_out(arrays, hierarchy_of(CLX), SimulationOptions(layout="heap"))
    assert [bases[name] % 4096 for name in "ac"] == [16, 16]
    assert bases["a"] - bases["c"] == 2**21 + 4096
    assert bases["d"] - bases["b"] == 128  # 100 bytes and 16 of the header, in multiples of 16


def test_packed_arrays_follow_their_declarations_not_their_first_use() -> None:
    text = "void f(int n, double a[n], double b[n]) { for (int i = 0; i < n; ++i) a[i] = b[i]; }"
    work = placed_work(parse_kernel(text, "f.c", {}), CLX, {"n": 100}, hierarchy_of(CLX), "regular", DEFAULT)
    bases = lay_out(working_set_of_program(work).arrays, hierarchy_of(CLX), SimulationOptions(layout="packed"))
    assert bases["b"] - bases["a"] == 800


stretches = st.lists(
    st.builds(
        LiveStretch,
        array=st.sampled_from("ab"),
        begin=st.integers(-500, 500),
        length=st.integers(1, 900),
        weight=st.sampled_from([1.0, 2.0]),
        reused=st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=40)
@given(stretches, st.integers(0, 2000), st.integers(1, 12), st.sampled_from([16, 64]))
def test_lines_are_counted_as_if_one_by_one(parts: list[LiveStretch], base: int, sets: int, line_bytes: int) -> None:
    base *= line_bytes
    counted = [[0.0, 0.0] for _ in range(sets)]
    for part in parts:
        begin = part.begin + (base if part.array == "b" else 0)
        for line in range(begin // line_bytes, (begin + part.length - 1) // line_bytes + 1):
            counted[line % sets][0] += part.weight
            counted[line % sets][1] += part.weight * part.reused
    runs = lines_over_sets(set_lines(parts, sets, line_bytes), {"a": 0, "b": base}, sets, line_bytes)
    found = [[lines, reused] for lines, reused, count in runs for _ in range(count)]
    assert found == [pytest.approx(each) for each in counted]


def judged(kernel: str, machine: str, **given_sizes: int) -> LayoutJudgement:
    nest, model = load_kernel(f"kernels/{kernel}.c"), load_machine(machine)
    sized = at_sizes(symbolic_nest(nest), sizes_of(nest, given_sizes), model.line_bytes)
    return judge_layouts(working_set_of_streams(sized), hierarchy_of(model), DEFAULT)


@pytest.mark.parametrize("machine", ["clx", "hsw", "zen2"])
@pytest.mark.parametrize("kernel", ["stencil", "3d-7pt", "triad", "matmul", "schoenauer", "uxx", "long-range", "trmv"])
def test_ordinary_kernels_are_not_at_risk(kernel: str, machine: str) -> None:
    assert not judged(kernel, machine).risks


def test_many_streams_of_arrays_of_powers_of_two_are_at_risk() -> None:
    found = judged("himeno", "clx")
    assert (found.risks[0].cache, found.risks[0].loop) == ("L1", "i")
    assert found.risks[0].lines > found.risks[0].ways == 8
    assert "into one set of L1, which has 8 ways" in found.risks[0].reason
    assert {"packed"} <= {other.layout for other in found.others}
    assert all(risk.loop != "i" for risk in judged("himeno", "clx", N=250, M=250, L=250).risks)


def test_both_descriptions_of_a_nest_have_the_same_footprint() -> None:
    nest = load_kernel("kernels/3d-7pt.c")
    sizes = sizes_of(nest, {})
    work = placed_work(nest, CLX, sizes, hierarchy_of(CLX), "regular", DEFAULT)
    assert working_set_of_program(work) == working_set_of_streams(at_sizes(symbolic_nest(nest), sizes, 64))


def test_an_array_alone_has_no_risk() -> None:
    alone = WorkingSet(("i",), (100,), (ArrayReach("a", 0, 6400, 8),), ())
    assert judge_layouts(alone, Hierarchy((CacheSpec("L1", sets=1, ways=1),)), DEFAULT) == LayoutJudgement(DEFAULT)


# the intervals


def interval_of(traffic: Traffic, path: str, name: Quantity) -> Interval:
    found = traffic.path(path).intervals[name]
    assert found is not None
    return found


def test_himeno_has_an_interval_over_its_layouts() -> None:
    nest = load_kernel("kernels/himeno.c")
    traffic = simulate(nest, CLX, sizes_of(nest, {}))
    loads = interval_of(traffic, "L1L2", "loads")
    assert (loads.low, traffic.path("L1L2").loads, loads.high) == pytest.approx((16.15, 16.15, 260.06), abs=0.1)
    assert (loads.cause, loads.assumed[:41]) == ("array layout", "every array begins on a page of its own, ")
    assert traffic.path("L3Mem").intervals == dict.fromkeys(("loads", "stores", "clean_victims"))
    assert "into one set of L1" in next(note.text for note in traffic.notes if note.code == "layout-decides")
    assert intensity_intervals(traffic, CLX).keys() == {"L2"}


RED_BLACK = """void sweep(double u[N][N], double c[N / 2], double d[N][N], double e[N][N], double f[N][N],
                          double g[N][N], double h[N][N], double p[N][N]) {
for (int j = 1; j < N - 1; ++j) for (int i = 1; i < N - 1; i += 2)
u[j][i] = d[j][i]*u[j-1][i] + e[j][i]*u[j+1][i] + f[j][i]*u[j][i-1] + g[j][i]*u[j][i+1] + h[j][i]*p[j][i]*c[1]; }"""


def test_the_order_of_packed_arrays_decides_a_red_black_sweep() -> None:
    """Nine streams: the small array keeps one of them apart from the eight others, or not."""
    nest = parse_kernel(RED_BLACK, "f.c", {})
    traffic = simulate(nest, CLX, {"N": 512}, options=SimulationOptions(layout="packed"))
    loads = interval_of(traffic, "L1L2", "loads")
    assert loads.low == pytest.approx(traffic.path("L1L2").loads) == pytest.approx(7.05, abs=0.01)
    assert loads.high == pytest.approx(31, abs=0.1)


@pytest.mark.parametrize(
    ("text", "machine", "sizes"),
    [
        (RED_BLACK, "clx", {"N": 512}),
        ("void f(double a[N], double b[N]) { for (int i = 0; i < N; ++i) a[i] = b[i]; }", "zen2", {"N": 2048}),
    ],
)
def test_the_interval_holds_every_layout(text: str, machine: str, sizes: dict[str, int]) -> None:
    nest, model = parse_kernel(text, "f.c", {}), load_machine(machine)
    whole = simulate(nest, model, sizes)
    assert any(path.intervals["loads"] for path in whole.paths)
    busiest = max(path.loads for path in whole.paths)
    for layout in LAYOUTS:
        options = SimulationOptions(layout=layout)
        work = placed_work(nest, model, sizes, hierarchy_of(model), "regular", options)
        one = simulate_placed(work, hierarchy_of(model), model, cores=1, stores="regular", options=options)
        for path in whole.paths:
            least, most = path.at("low").loads, path.at("high").loads
            found = one.path(path.path).loads
            # what changes less has no interval
            slack = max(0.05 * max(most, found), 0.02 * busiest)
            assert least - slack <= found <= most + slack


def test_the_interval_is_there_whatever_layout_stands() -> None:
    nest = parse_kernel(RED_BLACK, "f.c", {})
    heap = simulate(nest, CLX, {"N": 512}, options=SimulationOptions(layout="heap"))
    loads = interval_of(heap, "L1L2", "loads")
    assert (loads.low, loads.high) == pytest.approx((7.05, 31), abs=0.1)
    assert loads.assumed.startswith("the arrays come from malloc")


def test_ordinary_traffic_has_no_interval() -> None:
    nest = load_kernel("kernels/2d-5pt.c")
    traffic = simulate(nest, CLX, sizes_of(nest, {}))
    assert all(interval is None for path in traffic.paths for interval in path.intervals.values())
    assert not [note for note in traffic.notes if note.code == "layout-decides"]


def test_layer_conditions_that_stand_have_the_interval_too() -> None:
    nest = load_kernel("kernels/himeno.c")
    sizes = sizes_of(nest, {})
    sized = at_sizes(symbolic_nest(nest), sizes, CLX.line_bytes)
    traffic = decide(evidence_of(layer_conditions(sized, CLX, sizes), sized, CLX))
    loads = interval_of(traffic, "L1L2", "loads")
    assert traffic.method == SYMBOLIC
    assert (loads.low, traffic.path("L1L2").loads, loads.high) == pytest.approx((16, 16, 259.9), abs=0.1)
