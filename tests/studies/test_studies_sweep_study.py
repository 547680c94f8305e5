"""Grids from options: values, ranges, order of the axes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.grid import Axis
from kernmodel.studies.sweep.study import SweepStudy, Varied, sweep_grid
from kernmodel.studies.sweep.values import numeric_values, parse_blocks, parse_changes
from kernmodel.units import parse_quantity

BASE = Point(KernelRequest("stencil.c", "clx", {}), CodeRequest())


def test_axes_are_ordered_and_sizes_vary_fastest():
    grid = sweep_grid(
        BASE,
        Varied(("clx", "snb"), ("gcc", "clang"), (("-O2",), ("-O3",)), {"L2.size": ("x1", "x2")}, {"i": (8, 16)},
               (1, 2), {"M": (7, 8), "N": (5, 6)}),
    )  # fmt: skip
    assert [axis.kind for axis in grid.axes] == ["machine", "compiler", "flags", "change", "block", "cores"] + [
        "size"
    ] * 2
    assert len(grid) == 2**8
    assert [grid.point(k).kernel.sizes["N"] for k in range(4)] == [5, 6, 5, 6]
    assert grid.point(255).kernel.machine == "snb"


def test_one_value_is_part_of_the_base():
    varied = Varied(("snb",), ("gcc",), (("-O2",),), {"clock": ("3GHz",)}, {"i": (8,)}, (4,), {"N": (100, 200)})
    grid = sweep_grid(BASE, varied)
    assert [axis.name for axis in grid.axes] == ["N"]
    point = grid.point(1)
    assert (point.kernel.machine, point.kernel.cores, point.kernel.sizes) == ("snb", 4, {"N": 200})
    assert (point.code.compiler, point.code.flags) == ("gcc", ("-O2",))
    assert (point.changes, point.blocks) == ((Change("clock", "3GHz"),), (("i", 8),))


def test_values_given_twice_are_one():
    assert len(sweep_grid(BASE, Varied(("clx", "clx"), sizes={"N": (5, 5, 6)}))) == 2


def test_changes_are_texts_and_ranges():
    found = parse_changes(["L2.size=512KiB,x2,+10%", "memory.bandwidth=x0.5-x2:3log", "L1.size=16KiB-1MiB:4log"])
    assert found["L2.size"] == ("512KiB", "x2", "+10%")
    assert found["memory.bandwidth"] == ("x0.5", "x1", "x2")
    assert found["L1.size"] == ("16KiB", "64KiB", "256KiB", "1024KiB")
    assert parse_changes(["clock=1-3GHz:3"])["clock"] == ("1GHz", "2GHz", "3GHz")


@given(st.integers(1, 1000), st.integers(1, 1000), st.integers(2, 50), st.sampled_from(["", "log", "lin"]))
def test_a_range_goes_from_end_to_end(low, more, count, spacing):
    (values,) = parse_changes([f"L2.size={low}KiB-{low + more}KiB:{count}{spacing}"]).values()
    sizes = [parse_quantity(value, "data") for value in values]
    assert len(sizes) == count
    assert sizes == sorted(sizes)
    assert sizes[0] == pytest.approx(low * 1024)
    assert sizes[-1] == pytest.approx((low + more) * 1024)


@pytest.mark.parametrize(
    "text", ["clock", "=3", "clock=", "clock=1GHz,,2GHz", "clock=3GHz-1GHz:4", "clock=1GHz-x2:3", "clock=1Q-2Q:3",
             "clock=1GHz-2GHz:0", "clock=0GHz-2GHz:3"]
)  # fmt: skip
def test_changes_that_cannot_be_read_are_refused(text):
    with pytest.raises(UsageError) as refused:
        parse_changes([text])
    assert "--set" in str(refused.value)


def test_a_path_or_loop_given_twice_is_refused():
    with pytest.raises(UsageError, match="given twice"):
        parse_changes(["clock=x2", "clock=x3"])
    with pytest.raises(UsageError, match="given twice"):
        parse_blocks(["i=2", "i=3"])


def test_blocks_are_ranges_of_integers():
    assert parse_blocks(["i=32-512:5log", "j=16,32"]) == {"i": (32, 64, 128, 256, 512), "j": (16, 32)}


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (("1MiB", "512 KiB"), ((2.0**20, 2.0**19), "B")),
        (("x1", "x1.5", "+10%", "-50%"), ((1.0, 1.5, 1.1, 0.5), "×")),
        (("3", "4"), ((3.0, 4.0), "")),
        (("1GHz", "2e9 Hz"), ((1e9, 2e9), "Hz")),
        (("1MiB", "x2"), None),
        (("lru", "fifo"), None),
    ],
)
def test_figures_as_numbers(values, numbers):
    assert numeric_values(Axis("change", "a", values)) == numbers


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        (Varied(("clx",), compilers=("no-such-compiler",)), "was not found"),
        (Varied(("clx",), changes={"L2.sice": ("1MiB",)}), "L2.size"),
        (Varied(("clx",), changes={"L2.size": ("1GHz",)}), "unit of data"),
        (Varied(("clx",), blocks={"q": (8, 16)}), "no loop q"),
        (Varied(("clx",), cores=(1, 41)), "clx has 40"),
        (Varied(("clx",), sizes={"Q": (1, 2)}), "no macro or parameter Q"),
        (Varied(("no-such-machine",)), "no such machine file"),
    ],
)
def test_what_is_wrong_for_all_points_is_found_before_the_first(varied, message):
    from kernmodel.errors import KernmodelError

    with pytest.raises(KernmodelError) as refused:
        SweepStudy.of(sweep_grid(BASE, varied))
    assert message in str(refused.value)


def test_rounded_figures_are_told():
    study = SweepStudy.of(sweep_grid(BASE, Varied(("clx",), changes={"L2.size": ("x1.3", "x2")})))
    assert "figure-rounded" in {note.code for note in study.notes}


@pytest.mark.thorough
@pytest.mark.parametrize("start", [0, 3, 4, 7, 8])
def test_rows_can_begin_anywhere(start):
    """Also where machines are evaluated one after the other, because core counts exceed a ccNUMA domain."""
    study = SweepStudy.of(sweep_grid(BASE, Varied(("clx", "snb"), cores=(1, 12), sizes={"N": (1000, 20000)})))
    everything = [row for row, _ in study.rows()]
    assert [row for row, _ in study.rows(start=start)] == everything[start:]
    assert [row["point"] for row in everything] == list(range(8))
