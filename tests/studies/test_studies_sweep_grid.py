"""Grids: every combination once, the last axis fastest, made when asked for."""

from __future__ import annotations

import pickle
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.grid import Axis, Grid

BASE = Point(KernelRequest("stencil", "clx", {"M": 7, "N": 5}), CodeRequest(), (Change("clock", "3GHz"),), (("i", 8),))
axes_of = st.lists(st.integers(1, 5), max_size=4).map(
    lambda counts: tuple(Axis("size", f"N{k}", tuple(range(1, n + 1))) for k, n in enumerate(counts))
)


def at(axis: Axis, *axes: Axis) -> Point:
    return Grid(BASE, (axis, *axes)).point(0)


@given(axes_of)
def test_every_combination_once_the_last_axis_fastest(axes) -> None:
    grid = Grid(BASE, axes)
    combinations = list(product(*(axis.values for axis in axes)))
    assert [grid.coordinates(k) for k in range(len(grid))] == combinations
    assert len(grid) == prod(len(axis.values) for axis in axes)
    points = [grid.point(k) for k in range(len(grid))]
    assert [tuple(point.kernel.sizes[axis.name] for axis in axes) for point in points] == combinations


def test_a_grid_of_millions_takes_no_memory() -> None:
    values = tuple(range(1, 1001))
    grid = Grid(BASE, tuple(Axis("size", name, values) for name in "ABCD"))
    assert len(grid) == 10**12
    assert grid.coordinates(123_456_789_012) == (124, 457, 790, 13)


def test_no_axis_is_the_base_alone() -> None:
    grid = Grid(BASE, ())
    assert len(grid) == 1 and grid.point(0) == BASE


def test_what_each_kind_of_axis_sets() -> None:
    assert at(Axis("size", "N", (9,))).kernel.sizes == {"M": 7, "N": 9}
    assert at(Axis("cores", "", (4,))).kernel.cores == 4
    assert at(Axis("machine", "", ("snb",))).kernel.machine == "snb"
    assert at(Axis("compiler", "", ("clang",))).code.compiler == "clang"
    assert at(Axis("flags", "", (("-O1",),))).code.flags == ("-O1",)
    assert at(Axis("change", "L2.size", ("x2",))).changes == (Change("clock", "3GHz"), Change("L2.size", "x2"))
    assert at(Axis("block", "i", (16,)), Axis("block", "j", (4,))).blocks == (("i", 16), ("j", 4))


def test_the_base_stays_as_it_is() -> None:
    Grid(BASE, (Axis("size", "N", (9,)),)).point(0)
    assert BASE.kernel.sizes == {"M": 7, "N": 5}


def test_an_unknown_kind_of_axis() -> None:
    with pytest.raises(ValueError, match="'colour' is no kind of axis"):
        at(Axis("colour", "", ("red",)))


@pytest.mark.parametrize("index", [2, 100, -1])
def test_points_that_are_not_there(index) -> None:
    with pytest.raises(IndexError, match="no point"):
        Grid(BASE, (Axis("size", "N", (1, 2)),)).point(index)


def test_grids_travel_between_processes() -> None:
    grid = Grid(BASE, (Axis("flags", "", (None, ("-O1",))),))
    assert pickle.loads(pickle.dumps(grid)) == grid
