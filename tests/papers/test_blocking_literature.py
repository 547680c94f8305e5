"""Block sizes that the literature gives for stencils, on Sandy Bridge (32 KiB, 256 KiB and 20 MiB of cache).

Sources:
- RRZE: "Layer Conditions", rrze-hpc.github.io/layer-condition, section "2D Layer-Condition" and its calculator, whose
  default caches (32, 256, 20480 KB) are those of the Xeon E5-2680: C_req = (Σ L + max(L) × slices) × s for the offsets
  L between neighbouring accesses; 32 N − 16 B for the 2D 5-point stencil in double, solved for N: blocks of 1024
  elements in 32 KB, 512 with the safety margin of two.
- J. Hammer, J. Eitzinger, G. Hager, G. Wellein: Kerncraft, Tools for HPC 2016, §2.4.2: the same with every offset as
  tail: Σ{d ≤ t} + t × #{d > t}. It gives the conditions of the 3D 7-point and of the 25-point long-range stencil.
- H. Stengel, J. Treibig, G. Hager, G. Wellein: Quantifying performance bottlenecks of stencil computations using the
  ECM model, ICS'15 (arXiv 1410.5010): three rows of the 2D Jacobi in half of a cache, 3 N × 8 B < C/2.

These formulas are of whole rows that follow each other in memory. Rows of a block do not: a few more elements at the
ends of each count, and blocks are shorter by that.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.source.nest.tiling import band
from kernmodel.studies.blocking.answer import BlockLimit
from kernmodel.studies.blocking.limits import BlockVolumes, failing_conditions, loop_extents
from kernmodel.studies.blocking.shapes import Grain, Shapes
from kernmodel.traffic.conditions.layer_conditions import layer_conditions

SNB = load_machine("snb")
CACHES = {"L1": 32 * 1024, "L2": 256 * 1024, "L3": 20 * 1024 * 1024}
LINE = 8
"""Elements of double in a cache line."""


def limits(kernel: str, sizes: dict[str, int], blocked: str, safety: float = 1.0) -> list[BlockLimit]:
    nest = load_kernel(kernel)
    values = sizes_of(nest, sizes)
    traffic = layer_conditions(nest, SNB, values, safety=safety)
    loops = band(nest).loops
    shapes = Shapes(
        lambda chosen: BlockVolumes(nest, chosen, values, SNB.line_bytes, "regular"),
        loops,
        loop_extents(nest, values),
        Grain(nest.inner.variable, (LINE,)),
    )
    shapes.of(failing_conditions(traffic, loops), (blocked,))
    return shapes.limits


def largest(found: list[BlockLimit], cache: str, carrier: str, loop: str) -> int | None:
    """The block size at which all reuse along a loop fits."""
    sizes = [one.largest[loop] for one in found if (one.cache, one.carried_by, one.loops) == (cache, carrier, (loop,))]
    assert sizes
    return None if None in sizes else min(size for size in sizes if size is not None)


def required_elements(offsets: list[float], tail: float) -> float:
    """Kerncraft's volume: `offsets` between neighbouring accesses of all arrays, infinite for first touches."""
    return sum(offset if offset <= tail else tail for offset in offsets)


def star(radius: int, row: int, plane: int) -> list[float]:
    """The offsets between neighbouring accesses of a star in three dimensions, the centre included, its first touch
    last."""
    arms = [step * distance for step in (1, row, plane) for distance in range(1, radius + 1)]
    places = sorted({0, *arms, *(-arm for arm in arms)})
    return [float(after - before) for before, after in pairwise(places)] + [inf]


@pytest.mark.parametrize(("safety", "published"), [(1.0, 1024), (0.5, 512)])
def test_blocks_of_the_2d_5_point_stencil_in_l1(safety: float, published: int) -> None:
    found = largest(limits("stencil", {"N": 20_000, "M": 20_000}, "i", safety), "L1", "j", "i")
    assert found is not None
    assert published - LINE < found <= published


@pytest.mark.parametrize("cache", ["L1", "L2", "L3"])
def test_blocks_of_the_2d_5_point_stencil_by_the_formula_of_rrze(cache: str) -> None:
    published = (CACHES[cache] + 16) // 32
    found = largest(limits("stencil", {"N": 2_000_000, "M": 100}, "i"), cache, "j", "i")
    assert found is not None
    assert published - LINE < found <= published


@pytest.mark.parametrize("cache", ["L1", "L2", "L3"])
def test_three_rows_in_half_a_cache_lie_between_half_and_the_whole_of_it(cache: str) -> None:
    """Stengel's rule leaves to b and to everything else the other half: it allows more than counting b as well in half
    the cache, and less than counting it in the whole cache."""
    rule = CACHES[cache] // 2 // (3 * 8)
    sizes = {"N": 2_000_000, "M": 100}
    half = largest(limits("stencil", sizes, "i", 0.5), cache, "j", "i")
    whole = largest(limits("stencil", sizes, "i"), cache, "j", "i")
    assert half is not None
    assert whole is not None
    assert half < rule < whole


@pytest.mark.parametrize("cache", ["L1", "L2"])
def test_blocks_of_the_3d_7_point_stencil_along_the_inner_loop(cache: str) -> None:
    """Over j: t = N, so 2 × N, 2 × 1 and 4 × t of the others: a[k+1], a[k-1] and the first touches of a and b."""

    def needed(row: int) -> float:
        return 8 * required_elements([*star(1, row, 10**9), inf], row - 1)

    published = max(row for row in range(8, 10_000) if needed(row) <= CACHES[cache])
    found = largest(limits("3d-7pt", {"N": 20_000, "M": 200, "L": 20}, "i"), cache, "j", "i")
    assert published == (CACHES[cache] + 32) // 48
    assert found is not None
    assert published - LINE < found <= published


@pytest.mark.parametrize(("cache", "row"), [("L2", 400), ("L2", 1000), ("L3", 2000)])
def test_blocks_of_the_3d_7_point_stencil_along_the_middle_loop(cache: str, row: int) -> None:
    """Over k: 32 M N − 16 N bytes with t = M N − N; blocks of rows need two rows more at their borders."""
    published = max(rows for rows in range(3, 2000) if 8 * _planes(1, row, rows, row) <= CACHES[cache])
    assert published == (CACHES[cache] // row + 16) // 32
    found = largest(limits("3d-7pt", {"N": row, "M": 2000, "L": 20}, "j"), cache, "k", "j")
    assert found is not None
    assert published - 2 <= found <= published


def _planes(radius: int, row: int, rows: int, shorter: int, others: int = 1) -> float:
    """Elements that Kerncraft's condition over k asks for, in planes of `rows` rows; `others`: arrays touched once."""
    offsets = [*star(radius, row, row * rows), *([inf] * others)]
    return required_elements(offsets, row * rows - shorter)


@pytest.mark.parametrize("cache", ["L1", "L2"])
def test_blocks_of_the_long_range_stencil_along_the_inner_loop(cache: str) -> None:
    """Over j: 8 N + 11 t with t = N: 152 N bytes (U and ROC are touched once). The ends of 17 rows of a block that four
    elements on either side reach beyond cost less than two lines of the block."""
    published = CACHES[cache] // 152
    offsets = [*star(4, 10_000, 10**9), inf, inf]
    assert 8 * required_elements(offsets, 10_000) == 152 * 10_000
    found = largest(limits("long-range", {"N": 10_000, "M": 40, "L": 20}, "i"), cache, "j", "i")
    assert found is not None
    assert published - 2 * LINE < found <= published


@pytest.mark.parametrize(("cache", "row"), [("L2", 100), ("L3", 1000)])
def test_blocks_of_the_long_range_stencil_along_the_middle_loop(cache: str, row: int) -> None:
    """Over k: 88 M N bytes with t = M N; the rows that four rows on either side of a block reach beyond come on top."""
    published = CACHES[cache] // (88 * row)
    assert 8 * _planes(4, row, 500, 0, others=2) == 88 * row * 500
    found = largest(limits("long-range", {"N": row, "M": 1000, "L": 40}, "j"), cache, "k", "j")
    assert found is not None
    assert published - 8 <= found <= published
