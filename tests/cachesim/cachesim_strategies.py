"""Random hierarchies, traces and programs for the tests of the simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import (
    MEMORY,
    POLICIES,
    AccessKind,
    CacheSpec,
    Form,
    Hierarchy,
    Indirection,
    Program,
    ProgramBound,
    ProgramLoop,
    ProgramReference,
)

KINDS: tuple[AccessKind, ...] = ("load", "store", "stream")
Trace = list[tuple[int, int, int]]
"""kind, address, size of each access."""


def touch(simulator: Simulator, kind: AccessKind, address: int, size: int) -> None:
    """One access."""
    simulator.run_trace([KINDS.index(kind)], [address], [size])


def links(draw: Any, index: int, count: int) -> str:
    """A level further out, mostly the next one."""
    far = draw(st.integers(1, 6)) == 6
    target = draw(st.integers(index + 1, count)) if far else index + 1
    return MEMORY if target == count else f"L{target + 1}"


@st.composite
def hierarchies(
    draw: Any, policies: tuple[str, ...] = POLICIES, plain: bool = False, lines: tuple[int, ...] = ()
) -> Hierarchy:
    """Small caches; `plain` ones have neither sub-blocks nor inclusive levels, and lines of one size."""
    count = draw(st.integers(1, 4))
    some_lines = st.sampled_from(lines or ((32,) if plain else (16, 32, 32, 64, 12, 24)))
    line, sub_blocks = draw(some_lines), 1 if plain else draw(st.sampled_from([1, 1, 2, 4]))
    levels: list[CacheSpec] = []
    for index in range(count):
        victim = index > 0 and levels[-1].victim_level == f"L{index + 1}"
        if not plain and not victim and draw(st.booleans()):
            line, sub_blocks = draw(some_lines), draw(st.sampled_from([1, 1, 2, 4]))
        victim_level = f"L{index + 2}" if index + 1 < count and draw(st.integers(0, 3)) == 0 else None
        levels.append(
            CacheSpec(
                name=f"L{index + 1}",
                sets=draw(st.integers(1, 6)),
                ways=draw(st.integers(1, 5)),
                line_bytes=line,
                policy=draw(st.sampled_from(policies)),
                write_back=draw(st.integers(0, 3)) > 0,
                write_allocate=draw(st.integers(0, 3)) > 0,
                load_from=links(draw, index, count),
                store_to=links(draw, index, count),
                victim_level=victim_level,
                clean_victims=draw(st.booleans()),
                inclusive=not plain and draw(st.integers(0, 3)) == 0,
                sub_blocks=sub_blocks,
                hashed=draw(st.integers(0, 4)) == 0,
                hashed_lines=draw(st.sampled_from([1, 1, 2, 8])),
            )
        )
    return Hierarchy(tuple(levels), seed=draw(st.integers(0, 9)), combining_buffers=draw(st.integers(1, 3)))


def traces(kinds: int = 3, extent: int = 1200, most: int = 120) -> st.SearchStrategy[Trace]:
    """Accesses within a few times the caches; sizes from a byte to several lines."""
    access = st.tuples(
        st.integers(0, kinds - 1), st.integers(0, extent), st.sampled_from([1, 4, 8, 8, 16, 32, 32, 64, 100])
    )
    return st.lists(access, min_size=1, max_size=most)


def forms(draw: Any, depth: int, loops: int, constant: Any, factor: Any) -> Form:
    """A form in the outer `depth` of the loops."""
    return Form(draw(constant), tuple(draw(factor) if loop < depth else 0 for loop in range(loops)))


def bounds(draw: Any, pick: Any, depth: int, loops: int, constant: Any) -> ProgramBound:
    """A bound in the outer loops."""
    groups = tuple(
        tuple(forms(draw, depth, loops, constant, st.integers(-1, 1)) for _ in range(draw(st.integers(1, 2))))
        for _ in range(draw(st.integers(1, 2)))
    )
    return ProgramBound(pick, groups)


@st.composite
def program_loops(draw: Any, loops: int, longest: int) -> tuple[ProgramLoop, ...]:
    """Loops of a few iterations, also none, up and down."""
    made = []
    for depth in range(loops):
        low = bounds(draw, "max", depth, loops, st.integers(-3, 1))
        high = bounds(draw, "min", depth, loops, st.integers(1, longest if depth == loops - 1 else 5))
        step = draw(st.sampled_from([1, 1, 1, 2, 3, -1, -2]))
        made.append(ProgramLoop(low, high, step) if step > 0 else ProgramLoop(high, low, step))
    return tuple(made)


@st.composite
def indirections(draw: Any, loops: int) -> Indirection:
    """Any of the kinds, with a position that may be negative."""
    kind = draw(st.sampled_from(["uniform", "banded", "table", "digits"]))
    return Indirection(
        position=forms(draw, loops, loops, st.integers(-5, 20), st.integers(-2, 3)),
        scale=draw(st.sampled_from([4, 8, -8])),
        kind=kind,
        extent=draw(st.integers(1, 60)),
        width=draw(st.integers(0, 5)),
        table=tuple(draw(st.lists(st.integers(-9, 60), min_size=1, max_size=8))) if kind == "table" else (),
        seed=draw(st.integers(0, 5)),
        positions=draw(st.sampled_from([1, 7, 100] if kind == "digits" else [0, 7, 100])),
    )


@st.composite
def programs(draw: Any, kinds: int = 3, indirect: bool = True, longest: int = 24) -> Program:
    """Up to three loops with references at all depths."""
    loops = draw(st.integers(1, 3))
    references = []
    for _ in range(draw(st.integers(1, 6))):
        depth = loops if draw(st.integers(0, 3)) else draw(st.integers(0, loops))
        strides = st.sampled_from([0, 8, 8, 8, -8, 4, 16, 3, 64, -100, 200])
        indexed = indirect and depth == loops and draw(st.integers(0, 4)) == 0
        references.append(
            ProgramReference(
                kind=KINDS[draw(st.integers(0, kinds - 1))],
                size_bytes=draw(st.sampled_from([4, 8, 8, 8, 16, 32, 50])),
                address=forms(draw, depth, loops, st.integers(0, 800).map(lambda x: x + 20_000), strides),
                depth=depth,
                place=draw(st.sampled_from(["before", "after"])),
                indirections=tuple(draw(indirections(loops)) for _ in range(draw(st.integers(1, 2))))
                if indexed
                else (),
            )
        )
    return Program(draw(program_loops(loops, longest)), tuple(references))


def constant(pick: Any, value: int, loops: int) -> ProgramBound:
    """A bound that does not depend on the loops."""
    return ProgramBound(pick, ((Form(value, (0,) * loops),),))


LONG_LINES = (64, 64, 128, 256, 96)


@st.composite
def streams(draw: Any, kinds: int = 3) -> Program:
    """Long inner loops in which the references move slowly, mostly at the same pace, so that much can be left out."""
    inner, outer = draw(st.integers(32, 250)), draw(st.integers(1, 3))
    row = draw(st.integers(0, 30)) * 8
    loops = tuple(ProgramLoop(constant("max", 0, 2), constant("min", trips, 2), 1) for trips in (outer, inner))
    size = draw(st.sampled_from([4, 8]))
    pace, others = draw(st.sampled_from([size, size, size, -size, 2 * size])), draw(st.booleans())
    references = []
    for _ in range(draw(st.integers(2, 7))):
        other = others and draw(st.integers(0, 3)) == 0
        stride = draw(st.sampled_from([0, 8, -8, 24, 4, 3])) if other else pace
        where = 20_000 + draw(st.integers(0, 500)) * (3 if other else size)
        kind = KINDS[draw(st.integers(0, kinds - 1))]
        references.append(ProgramReference(kind, size, Form(where, (row, stride)), 2))
    return Program(loops, tuple(references))


@st.composite
def alike_rows(draw: Any) -> tuple[Hierarchy, Program]:
    """Rows that mostly repeat one another some lines further on, in planes with other steps; the first cache holds a
    few of them."""
    hierarchy = draw(hierarchies(plain=True))
    small = {"sets": draw(st.sampled_from([1, 2, 4, 8])), "ways": draw(st.integers(1, 3)), "hashed": False}
    mostly = draw(st.sampled_from(["LRU", "LRU", "FIFO", "MRU"]))
    known = {"policy": mostly, "victim_level": None, "write_back": True, "write_allocate": True}
    hierarchy = replace(hierarchy, levels=(replace(hierarchy.levels[0], **small, **known), *hierarchy.levels[1:]))
    trips = draw(st.integers(1, 4)), draw(st.integers(2, 14)), draw(st.integers(4, 16))
    loops = tuple(ProgramLoop(constant("max", 0, 3), constant("min", trip, 3), 1) for trip in trips)
    steps = draw(st.sampled_from([32, 96, 128, 160, -64, 40])), draw(st.sampled_from([8, 8, 16, 32, 48, -8]))
    plane, between = draw(st.integers(-20, 60)) * 32, draw(st.integers(0, 3)) == 0
    references = []
    for number in range(draw(st.integers(1, 6))):
        where = 20_000 + draw(st.integers(0, 100)) * 8
        other = draw(st.integers(0, 19)) == 0
        row = draw(st.sampled_from([0, 64, 200])) if other else steps[0]
        depth = 2 if between and not number else 3
        form = Form(where, (plane, row, steps[1] if depth == 3 else 0))
        kind = KINDS[draw(st.integers(0, 1))]
        references.append(ProgramReference(kind, draw(st.sampled_from([8, 16, 32])), form, depth))
    return hierarchy, Program(loops, tuple(references))
