"""The distribution of trip counts over the executions of a loop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.tiling import tile
from kernmodel.source.nest.trip_counts import lengths

TRIANGLE = "double a[N][N];\nfor (int j = 0; j < N; ++j)\n  for (int i = j; i < N; ++i)\n    a[j][i] = 1.0;\n"


def test_rectangles_have_one_length() -> None:
    nest = load_kernel("stencil")
    assert lengths(nest, {"N": 100, "M": 30}) == ((98, 1.0),)
    assert lengths(nest, {"N": 100, "M": 30}, "j") == ((28, 1.0),)


def test_the_last_block_is_shorter() -> None:
    nest = tile(load_kernel("stencil"), {"i": 40})
    assert dict(lengths(nest, {"N": 102, "M": 30})) == pytest.approx({40: 2 / 3, 20: 1 / 3})


@given(size=st.integers(1, 256))
@settings(max_examples=25, deadline=None)
def test_triangles_have_all_lengths(size: int) -> None:
    nest = parse_kernel(TRIANGLE, "triangle.c", {"N": size})
    assert lengths(nest, {"N": size}) == tuple((length, pytest.approx(1 / size)) for length in range(1, size + 1))


def test_large_triangles_are_sampled_with_all_remainders() -> None:
    nest = parse_kernel(TRIANGLE, "triangle.c", {"N": 50_000})
    found = lengths(nest, {"N": 50_000})
    assert 100 < len(found) <= 256
    assert sum(share for _, share in found) == pytest.approx(1)
    assert sum(length * share for length, share in found) == pytest.approx(
        trip_counts(nest, {"N": 50_000})[-1], rel=0.01
    )
    assert {length % 8 for length, _ in found} == set(range(8))
