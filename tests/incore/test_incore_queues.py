"""Which queues the operations of a cycle are assigned to, by places read on a Zen 3 (benchmarks/alu_places.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.incore.engine.queues import assigned

_ALLOWED = {"F": 0b1111, "M": 0b0010, "S": 0b0110, "C": 0b1001, "P": 0b0111, "B": 0b1001}
"""Queues of ALU0 to ALU3: any, those of imul, rorx, cmov, an operation with a load, and a branch."""


def of(
    letters: str, entries: tuple[int, ...] = (0, 0, 0, 0), beside: int = 3, narrow: int = 0
) -> tuple[int, ...] | None:
    return assigned([_ALLOWED[own] for own in letters], [own == "B" for own in letters], entries, beside, narrow)


@pytest.mark.parametrize(
    ("letters", "entries", "queues"),
    [
        ("FFFF", (0, 0, 0, 0), (0, 1, 2, 3)),
        ("FFFM", (0, 0, 0, 0), (0, 2, 3, 1)),  # those behind are included
        ("FF", (2, 1, 0, 1), (1, 2)),  # the fewest entries; of equals the first ones
        ("FF", (2, 1, 0, 0), (2, 3)),
        ("CF", (0, 0, 0, 0), (0, 1)),
        ("SC", (0, 0, 1, 0), (1, 0)),
        ("FFFFF", (0, 0, 0, 0), None),  # two cycles
        ("CFFFF", (0, 0, 0, 0), (3, 0, 1, 2, 3)),  # the cmov beside one of the four
        ("CFFFC", (0, 0, 0, 0), (3, 1, 2, 3, 0)),
        ("CFFFC", (0, 0, 0, 1), (0, 1, 2, 3, 3)),
        ("FFFBB", (0, 0, 0, 0), (0, 1, 2, 3, 0)),  # of two branches the fifth operation goes to the other queue
        ("BBFFF", (0, 0, 0, 0), (0, 3, 1, 2, 0)),
        ("CCCFF", (0, 0, 0, 0), (3, 0, 3, 1, 2)),  # 42 slots of it take 7 cycles (benchmarks/full_queues.py --cycles)
        ("CCCC", (0, 0, 0, 0), None),
    ],
)
def test_places_that_were_read(letters: str, entries: tuple[int, ...], queues: tuple[int, ...] | None) -> None:
    assert of(letters, entries) == queues


@given(st.text("FMSCPB", min_size=1, max_size=5), st.tuples(*[st.integers(0, 9)] * 4))
def test_each_gets_a_queue_of_its_own_that_it_may_go_to(letters: str, entries: tuple[int, ...]) -> None:
    found = of(letters, entries)
    if found is not None:
        assert all(_ALLOWED[own] >> queue & 1 for own, queue in zip(letters, found, strict=True))
        shared = len(letters) - len(set(found))
        assert shared == (of(letters, entries, beside=-1) is None) <= 1
    assert of(letters, entries, beside=-1) in (None, found)


@pytest.mark.parametrize(
    ("letters", "fits"),
    [
        *(("MM", True), ("MMFFF", True), ("MMCFFF", True), ("MMCCFF", True), ("MMCCCF", True), ("SSFF", True)),
        *(("MSFF", True), ("MMM", False), ("MMFFFF", False), ("MFFFF", False), ("SSS", False), ("MSS", False)),
        *(("MMSS", False), ("FFFFF", False), ("CFFFFF", False), ("CCFFFF", False), ("CCCFFF", False)),
    ],
)
def test_what_a_cycle_dispatches(letters: str, fits: bool) -> None:
    """As read on a Zen 4 (benchmarks/full_queues.py --cycles): two for ALU1 go there together."""
    found = of(letters, narrow=0b0110)
    assert (found is not None) == fits
    if found is not None:
        assert [queue for queue, own in zip(found, letters, strict=True) if own == "M"] == [1] * letters.count("M")
