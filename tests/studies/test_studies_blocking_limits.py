"""Block limits are what trying every block size finds; larger caches never allow less."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.source.nest.tiling import band, tile
from kernmodel.studies.blocking.answer import BlockLimit
from kernmodel.studies.blocking.limits import BlockVolumes, Failing, blocked_sets, failing_conditions, loop_extents
from kernmodel.studies.blocking.shapes import Grain, Shape, Shapes
from kernmodel.traffic.conditions.layer_conditions import layer_conditions

SNB = load_machine("snb")
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""A smaller case says no more here, and takes minutes to find."""
CASES = {
    "stencil": ({"N": 700, "M": 40}, ("i",)),
    "3d-7pt": ({"N": 90, "M": 70, "L": 12}, ("j", "i")),
    "matmul": ({"N": 80, "M": 60, "K": 70}, ("k", "i")),
    "uxx": ({"N": 80, "M": 50, "L": 12}, ("j", "i")),
}


def machine_with(*sizes: int) -> Machine:
    levels = tuple(
        replace(level, size_bytes=size, cores_sharing=1) for level, size in zip(SNB.levels, sizes, strict=True)
    )
    return replace(SNB, levels=levels)


def found(kernel: str, sizes: dict[str, int], machine: Machine) -> tuple[list[Failing], list[BlockLimit], list[Shape]]:
    nest = load_kernel(kernel)
    values = sizes_of(nest, sizes)
    loops = band(nest).loops
    shapes = Shapes(
        lambda chosen: BlockVolumes(nest, chosen, values, machine.line_bytes, "regular"),
        loops,
        loop_extents(nest, values),
        Grain(nest.inner.variable, (8,)),
    )
    failing = failing_conditions(layer_conditions(nest, machine, values), loops)
    tried = shapes.of(failing, loops)
    return list(failing), shapes.limits, tried


def holds(kernel: str, sizes: dict[str, int], machine: Machine, limit: BlockLimit, blocks: dict[str, int]) -> bool:
    """Whether the layer conditions of the blocked nest say that the reuse of the limit fits."""
    nest = load_kernel(kernel)
    traffic = layer_conditions(tile(nest, blocks), machine, sizes_of(nest, sizes))
    conditions = [
        condition
        for condition in traffic.conditions
        for reuse in condition.reuses
        if (condition.cache, reuse.carried_by) == (limit.cache, limit.carried_by) and reuse.access in limit.accesses
    ]
    return bool(conditions) and all(condition.holds for condition in conditions)


@pytest.mark.thorough
@settings(max_examples=8, deadline=None, phases=NO_SHRINKING)
@given(st.sampled_from(sorted(CASES)), st.integers(16, 400), st.data())
def test_a_limit_is_the_last_block_size_that_fits(kernel: str, lines: int, data: st.DataObject) -> None:
    sizes, loops = CASES[kernel]
    machine = machine_with(64 * lines, 256 * lines, 1024 * lines)
    extents = loop_extents(load_kernel(kernel), sizes_of(load_kernel(kernel), sizes))
    single = [limit for limit in found(kernel, sizes, machine)[1] if len(limit.loops) == 1]
    for limit in single:
        (loop,) = limit.loops
        assert loop in loops
        largest = limit.largest[loop] or 0
        blocks = 7 * extents[loop] // 8 - 1  # longer ones count as the whole loop
        tried = data.draw(st.integers(2, blocks))
        for size in {largest, largest + 1, tried}:
            if 2 <= size <= blocks:
                assert holds(kernel, sizes, machine, limit, {loop: size}) == (size <= largest), (limit, size)


@pytest.mark.thorough
@settings(max_examples=5, deadline=None, phases=NO_SHRINKING)
@given(st.sampled_from(("3d-7pt", "matmul")), st.integers(16, 200))
def test_shapes_of_two_loops_fit(kernel: str, lines: int) -> None:
    sizes, _ = CASES[kernel]
    machine = machine_with(64 * lines, 256 * lines, 1024 * lines)
    for shape in found(kernel, sizes, machine)[2]:
        if len(shape.blocks) > 1 and min(shape.blocks.values()) > 2:
            assert holds(kernel, sizes, machine, shape.limit, dict(shape.blocks)), shape


@pytest.mark.thorough
@settings(max_examples=6, deadline=None, phases=NO_SHRINKING)
@given(st.sampled_from(sorted(CASES)), st.integers(16, 300), st.integers(1, 100))
def test_a_larger_cache_allows_as_large_blocks(kernel: str, lines: int, more: int) -> None:
    sizes, _ = CASES[kernel]
    outer = 1024 * lines
    small = found(kernel, sizes, machine_with(64 * lines, 256 * lines, outer))[1]
    large = found(kernel, sizes, machine_with(64 * (lines + more), 256 * lines, outer))[1]
    after = {_key(limit): limit for limit in large}
    for limit in small:
        if len(limit.loops) == 1 and limit.cache == "L1" and _key(limit) in after:
            (loop,) = limit.loops
            assert (after[_key(limit)].largest[loop] or 0) >= (limit.largest[loop] or 0)


def _key(limit: BlockLimit) -> object:
    return limit.cache, limit.carried_by, limit.accesses, limit.loops


def test_limits_of_the_3d_7_point_stencil_by_hand() -> None:
    """Cascade Lake: along j, 6 rows of a block in L1; along k, 3 planes of a and one of b of a block in L2."""
    limits = found("3d-7pt", {"N": 800}, load_machine("clx"))[1]
    solved = {(one.cache, one.carried_by, one.loops): dict(one.solved) for one in limits}
    assert solved["L1", "j", ("i",)] == {"i": "B_i ≤ 682"}
    assert solved["L2", "k", ("j",)] == {"j": "B_j ≤ 40 (N = 800)"}
    assert solved["L1", "k", ("j",)] == {"j": "no B_j (N = 800)"}
    assert solved["L2", "k", ("j", "i")] == {"j": "B_j ≤ 177 (B_i = 177)", "i": "B_i ≤ 177 (B_j = 177)"}
    (rows,) = [one for one in limits if (one.cache, one.carried_by, one.loops) == ("L2", "k", ("j",))]
    assert str(rows.required_bytes) == "32*B_j*N + 16*N"
    assert rows.largest == {"j": 40}
    assert (32 * 40 + 16) * 800 <= rows.capacity_bytes < (32 * 41 + 16) * 800


def test_only_loops_inside_the_one_that_carries_the_reuse_are_blocked() -> None:
    assert list(blocked_sets(("k", "j", "i"), "k")) == [("j",), ("i",), ("j", "i")]
    assert list(blocked_sets(("k", "j", "i"), "j")) == [("i",)]
    assert list(blocked_sets(("k", "j", "i"), "i")) == []


@pytest.mark.parametrize("kernel", ["copy", "dot"])
def test_loops_without_reuse_have_no_limits(kernel: str) -> None:
    failing, limits, shapes = found(kernel, {}, SNB)
    assert not failing
    assert not limits
    assert not shapes


def test_block_sizes_are_rounded_and_even() -> None:
    """680 of 798 iterations are two blocks, as 400 are: the even ones leave room in the cache."""
    grain = Grain("i", (16, 8))
    assert [grain.down("i", size) for size in (682, 17, 15, 7)] == [672, 16, 8, 7]
    assert grain.down("j", 41) == 41
    assert grain.up("i", 399, 672) == 400
    assert grain.up("i", 399, 399) == 399
    shapes = found("3d-7pt", {"N": 800}, load_machine("clx"))[2]
    assert {"i": 400} in [dict(shape.blocks) for shape in shapes]
    assert all(shape.blocks.get("i", 8) % 8 == 0 for shape in shapes)
