"""Which branches the predictor is taken to be wrong about."""

from __future__ import annotations

import pytest

from kernmodel.binary.branches import Branches
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.program import Loop
from kernmodel.binary.walks import CountedFlow
from tests.binary.nests import START, counted, function, two_loops


@pytest.mark.parametrize(
    ("passes", "foreseen", "mispredicted", "surprise"),
    [
        (30, 90, 128, None),  # the history holds the row
        (90, 90, 128, None),
        (120, 90, 128, "doubtful"),  # about its end
        (127, 90, 128, "doubtful"),
        (128, 90, 128, "certain"),  # measured so on Zen 3, short of twice the history
        (91, 90, None, "certain"),  # longer than the history, and than the rows that any predictor may know
        (30, 0, None, "doubtful"),  # nothing is known of the predictor
        (200, 0, None, "certain"),
    ],
)
def test_the_end_of_a_row_is_foreseen_as_far_as_the_history_goes(
    passes: int, foreseen: int, mispredicted: int | None, surprise: str | None
) -> None:
    made = two_loops()
    _, _, inner, end, _ = (block.address for block in made.blocks)
    branches = Branches(CountedFlow(made, counted(made, 50, passes)), foreseen, mispredicted)
    assert branches.surprise(inner, end) == surprise
    assert branches.surprise(inner, inner) is None


def test_rows_of_changing_length_take_twice_the_history() -> None:
    """Triangular nests: measured on Zen 3, rows of up to 40 passes are foreseen, of up to 100 not."""
    made = two_loops()
    entry, row, inner, end, last = (block.address for block in made.blocks)
    blocks = {entry: 1, row: 60, inner: 60 * 61 // 2, end: 60, last: 1}
    edges = {(row, inner): 60, (inner, inner): 60 * 59 // 2, (inner, end): 60, (end, row): 59, (end, last): 1}
    flow = CountedFlow(made, Occurrences(blocks, edges, 1, "re-encoded"))
    assert Branches(flow, 90, 128).surprise(inner, end) is None
    assert Branches(flow, 40, 128).surprise(inner, end) == "doubtful"


@pytest.mark.parametrize(
    ("compare", "surprise"),
    [
        ("483b0e", "doubtful"),  # cmp rcx,[rsi]
        ("4839d9", None),  # cmp rcx,rbx: counters of the loop alone
    ],
)
def test_what_depends_on_data_may_always_surprise(compare: str, surprise: str | None) -> None:
    """A condition in a loop: it skips `inc rax` in every other pass."""
    made = function(
        [(f"48ffc1{compare}7403", [1, 2]), ("48ffc0", [2]), ("48ffca75f0", [3, 0]), ("c3", [])],
        [Loop(START, frozenset({START, START + 8, START + 11}), None, 1)],
    )
    head, middle, latch, last = (block.address for block in made.blocks)
    occurrences = Occurrences(
        {head: 100, middle: 60, latch: 100, last: 1},
        {(head, middle): 60, (head, latch): 40, (middle, latch): 60, (latch, head): 99, (latch, last): 1},
        1,
        "re-encoded",
    )
    assert Branches(CountedFlow(made, occurrences), 90, 128).surprise(head, latch) == surprise
