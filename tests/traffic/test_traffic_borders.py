"""Borders of blocks against a simulation of every access: what references reach beyond a block is loaded again."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from traffic_reference import toy_machine

from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.part import Parts
from kernmodel.source.nest.tiling import tile, whole_blocks
from kernmodel.traffic.conditions.halos import counts_beyond
from kernmodel.traffic.conditions.layer_conditions import SizedReuse, layer_conditions, on_machines
from kernmodel.traffic.conditions.streams import at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.simulation.sampling import checking
from kernmodel.traffic.simulation.simulate import simulate

COLUMNS = """
double a[restrict M][N], b[restrict M][N];
for (int j = 4; j < M - 4; ++j)
    for (int i = 4; i < N - 4; ++i)
        b[j][i] = a[j - UP][i] + a[j][i - LEFT] + a[j][i] + a[j][i + LEFT] + a[j + UP][i];
"""


def misses(nest: LoopNest, capacity: int, sizes: dict[str, int]) -> tuple[float, float]:
    """Lines that the cache misses per unit of work, by layer conditions and simulated."""
    machine = toy_machine(capacity)
    return layer_conditions(nest, machine, sizes).paths[0].loads, simulate(nest, machine, sizes).paths[0].loads


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_blocks_of_rows_read_two_rows_more(rows: int) -> None:
    """Planes of a block fit twice, a block from border to border does not: (rows + 2) / rows lines of a, one of b."""
    sizes = {"N": 66, "M": 2 + 3 * rows, "L": 102}
    model, simulated = misses(tile(load_kernel("3d-7pt"), {"j": rows}), 8 * 66 * (rows + 2) * 8, sizes)
    assert model == pytest.approx(2 + 2 / rows)
    assert simulated == pytest.approx(model, rel=0.06)


@settings(max_examples=15, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(up=st.integers(1, 3), left=st.integers(1, 3), blocks=st.integers(3, 8), lines=st.integers(2, 6))
def test_blocks_of_columns_read_what_they_reach_beyond(up: int, left: int, blocks: int, lines: int) -> None:
    """The rows of a block fit, its column from top to bottom does not."""
    columns = 8 * lines
    sizes = {"N": 8 + blocks * columns, "M": 300}
    text = COLUMNS.replace("UP", str(up)).replace("LEFT", str(left))
    nest = tile(parse_kernel(text, "columns.c", {}), {"i": columns})
    capacity = 64 * (lines + 2) * (4 * up + 8)
    model, simulated = misses(nest, capacity, sizes)
    assert simulated == pytest.approx(model, rel=0.06, abs=0.03)


def test_reach_beyond_a_whole_block_counts_as_often_as_it_is() -> None:
    """Blocks of 2 rows with neighbours a row away: every row of a is read for two blocks."""
    sizes = {"N": 66, "M": 22, "L": 102}
    model, simulated = misses(tile(load_kernel("3d-7pt"), {"j": 2}), 66 * 8 * 22, sizes)
    assert model == pytest.approx(3)
    assert simulated == pytest.approx(model, rel=0.08)


def test_borders_that_survive_a_block_cost_nothing() -> None:
    nest = tile(load_kernel("3d-7pt"), {"j": 8})
    sizes = {"N": 66, "M": 26, "L": 10}
    model, _ = misses(nest, 66 * 10 * 10 * 8 * 2 + 20_000, sizes)
    assert model == pytest.approx(2)


def test_a_nest_without_blocks_has_no_borders() -> None:
    nest = load_kernel("3d-7pt")
    machine = replace(toy_machine(66 * 8 * 5 * 26), name="whole")
    assert layer_conditions(nest, machine, {"N": 66, "M": 26, "L": 34}).paths[0].loads == 2


def test_rows_beyond_a_border_that_are_only_read_do_not_leave_modified() -> None:
    """A row of a block's predecessor is read in both and written in one: regression, it left modified from both."""
    loops = "for (int j = 4; j < M - 4; ++j) for (int i = 0; i < N; ++i)"
    text = f"double a[M][N]; {loops} a[j][i] = a[j - 4][i] + a[j - 1][i];"
    sizes, machine = {"M": 408, "N": 4000}, toy_machine(64 * 12 * 10)
    nest = tile(parse_kernel(text, "k.c", {}), {"j": 8, "i": 64})
    for found in (layer_conditions(nest, machine, sizes), simulate(nest, machine, sizes)):
        assert (found.paths[0].loads, found.paths[0].stores) == pytest.approx((1.5, 1.0), rel=0.02)


@pytest.mark.parametrize("cores", [2, 4, 8])
def test_one_core_reads_two_planes_beyond_its_part(cores: int) -> None:
    """Planes stay in the cache as long as they are used, the part does not; ends of rows and planes are not counted."""
    sizes = {"N": 66, "M": 66, "L": 66}
    part = Parts(load_kernel("3d-7pt"), sizes, None).of(cores)
    model, simulated = misses(part, 66 * 66 * 8 * 6, sizes)
    assert model == pytest.approx(2 + 2 * cores / 64)
    assert model <= simulated <= model * (66 / 64) * (72 / 64)


def test_windows_inside_a_part_count_its_ends() -> None:
    sizes, machine = {"L": 402, "M": 400, "N": 400}, load_machine("bdw")
    part = Parts(load_kernel("3d-7pt"), sizes, None).of(20)
    simulated = simulate(part, machine, sizes, spend=checking())
    assert not simulated.sampling.whole_sweep
    assert simulated.paths[-1].loads == pytest.approx(2 + 2 / 20, rel=0.01)


def test_windows_within_blocks_see_the_ends_of_a_part() -> None:
    """Planes of a part that are blocked in j pass by time and again: their ends are among what is counted."""
    sizes, machine = {"L": 146, "M": 400, "N": 400}, load_machine("bdw")
    part = Parts(load_kernel("3d-7pt"), sizes, None).of(9)
    model = layer_conditions(tile(part, {"j": 40}), machine, sizes, cores=9).paths[-1].loads
    blocks = whole_blocks(part, {"j": 40})
    assert blocks is not None
    simulated = simulate(blocks, machine, sizes, cores=9, spend=checking()).paths[-1].loads
    assert model == pytest.approx(1 + 42 / 40 + 2 / 16 * 42 / 40)
    assert simulated == pytest.approx(model, rel=0.02)


def lines_in_lockstep(n: int, cores: int, domain: int, capacity: int) -> float:
    """Lines from memory per unit of work of `3d-7pt` on n³ points: every row that cores use which begin each sweep
    together, in a cache that those of a domain share and that replaces the row used longest ago."""
    share, room = (n - 2) // cores, capacity // (8 * n)
    caches: list[dict[tuple[str, int, int], None]] = [{} for _ in range(cores // domain)]
    loads = 0
    for sweep in range(3):
        for step, j, core in product(range(share), range(1, n - 1), range(cores)):
            k, cache = 1 + core * share + step, caches[core // domain]
            rows = [("a", k + d, j) for d in (-1, 0, 1)] + [("a", k, j - 1), ("a", k, j + 1), ("b", k, j)]
            for row in rows:
                loads += sweep == 2 and row not in cache
                cache.pop(row, None)
                cache[row] = None
                if len(cache) > room:
                    del cache[next(iter(cache))]
    return loads / (n - 2) ** 2


@pytest.mark.parametrize(
    ("cores", "capacity", "tolerance"),
    [(4, 3, 0.04), (4, 5, 0.04), (4, 13, 0.04), (8, 3, 0.04), (8, 5, 0.04), (8, 6, 0.12), (8, 10, 0.04), (4, 20, 0.04)],
)
def test_cores_find_the_rows_of_their_neighbours_in_a_shared_cache(cores: int, capacity: int, tolerance: float) -> None:
    """Capacities in planes for each core of a domain of four: less than a step needs, as much as a step, as what lies
    between both cores' uses of a row (8 cores, 6 planes), and as a part. Regression: both cores loaded such rows.

    Near where all parts fit, shares count neighbours' rows for each core, and the rule has more lines than lockstep.
    """
    n, domain = 34, 4
    sizes, room = dict.fromkeys("LMN", n), capacity * n * n * 8 * domain
    machine = load_machine("bdw")
    caches = (*machine.levels[:2], replace(machine.levels[2], size_bytes=room, cores_sharing=domain))
    machine = replace(machine, levels=caches)
    part = Parts(load_kernel("3d-7pt"), sizes, None).of(cores)
    sized = at_sizes(symbolic_nest(part), sizes, machine.line_bytes)
    reuse = SizedReuse(sized, machine.line_bytes, "regular")
    alone = layer_conditions(reuse, machine, sizes, cores=domain)
    (found,) = on_machines(alone, reuse, (machine,), neighbours=True)
    assert found.paths[-1].loads <= alone.paths[-1].loads
    assert found.paths[-1].loads == pytest.approx(lines_in_lockstep(n, cores, domain, room), rel=tolerance)


LOWER = "double a[restrict N][N];\nfor (int i = 1; i < N; ++i) for (int j = 0; j < i; ++j) a[i][j] += a[i - 1][j];\n"


@pytest.mark.parametrize(
    ("kernel", "sizes", "counted"),
    [
        ("copy", {"N": 100_000}, False),
        ("matmul", {"K": 200, "M": 200, "N": 200}, False),
        ("stencil", {"M": 400, "N": 400}, True),
        ("3d-7pt", {"L": 402, "M": 400, "N": 400}, True),
        (LOWER, {"N": 400}, False),
    ],
)
def test_the_ends_of_a_part_are_counted_where_references_lie_apart(
    kernel: str, sizes: dict[str, int], counted: bool
) -> None:
    """Elsewhere a part moves the same whether or not it has ends, and is not asked twice."""
    nest = load_kernel(kernel) if "\n" not in kernel else parse_kernel(kernel, "lower.c", {})
    outermost = frozenset(loop.variable for loop in nest.loops[:1])
    part = replace(Parts(nest, sizes, None).of(4) or nest, divided=outermost)
    inner = replace(part, divided=part.divided - outermost)
    machine = load_machine("clx")
    one, other = (layer_conditions(each, machine, sizes, cores=4) for each in (part, inner))
    assert counts_beyond(at_sizes(symbolic_nest(part), sizes, machine.line_bytes), outermost) is counted
    assert counted or one == other
