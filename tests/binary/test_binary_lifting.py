"""Occurrences and predictions put together in three ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from kernmodel.binary.lifting import lift_loops, lift_sum, lift_traces
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.predictors.own import OwnPredictor
from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.binary.recorded_data import TraceData
from kernmodel.binary.trace_time import TraceTimer
from kernmodel.binary.walks import CountedFlow
from kernmodel.code.blocks import decode_block
from kernmodel.incore.dependences.addresses import Forwarding
from tests.binary.nests import ADD_STREAM, COPY_STREAM, counted, function, two_loops

CORE = "ZEN3"


class Fixed:
    """A predictor that takes as many cycles as a piece has instructions, and refuses some."""

    name, version = "fixed", ""

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[Piece] = []
        self._refuses = refuses

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        self.asked = list(pieces)
        return [
            PieceCycles(None, error="knows it not")
            if self._refuses and any(self._refuses in one.text for one in piece.instructions)
            else PieceCycles(float(len(piece.instructions)))
            for piece in pieces
        ]


@pytest.fixture(scope="module")
def own() -> OwnPredictor:
    return OwnPredictor(CORE)


def test_the_sum_is_occurrences_times_prediction() -> None:
    made = two_loops()
    found = lift_sum(CountedFlow(made, counted(made, rows=10, passes=16, calls=4)), Fixed())
    # of a call: entry 1, ten rows of 2 + 16 × 5 + 2, return 1
    assert found.cycles == pytest.approx(1 + 10 * (2 + 80 + 2) + 1)
    assert (found.predictor, found.way) == ("fixed", "sum")
    assert found.blocks[0].address == made.blocks[2].address
    assert sum(block.share for block in found.blocks) == pytest.approx(1)
    assert found.loops[made.loops[1].header] == pytest.approx(800)
    assert found.loops[made.loops[0].header] == pytest.approx(840)


def test_a_predictor_that_fails_on_a_block_has_no_prediction() -> None:
    made = two_loops()
    found = lift_sum(CountedFlow(made, counted(made, 10, 16)), Fixed(refuses="dec rdx"))
    assert found.cycles is None
    assert "knows it not" in found.failed


def test_blocks_that_never_ran_are_not_asked_for() -> None:
    made = two_loops()
    occurrences = counted(made, 10, 16)
    blocks = {address: count for address, count in occurrences.blocks.items() if address != made.blocks[4].address}
    fixed = Fixed(refuses="ret")
    assert lift_sum(CountedFlow(made, replace(occurrences, blocks=blocks)), fixed).cycles is not None
    assert len(fixed.asked) == 4


def test_calls_are_cut_out() -> None:
    made = function([("4801d8e800000000", [1]), ("c3", [])], [])
    fixed = Fixed()
    first, second = (block.address for block in made.blocks)
    flow = CountedFlow(made, Occurrences({first: 3, second: 3}, {(first, second): 3}, 3, "re-encoded"))
    assert lift_sum(flow, fixed).cycles == pytest.approx(2)
    assert [piece.code.hex() for piece in fixed.asked] == ["4801d8", "c3"]


def test_loops_take_a_self_loop_as_one_and_others_without_chains(own: OwnPredictor) -> None:
    made = two_loops()
    found = lift_loops(CountedFlow(made, counted(made, rows=50, passes=40)), own)
    # a pass takes the latency of the addition; the other blocks issue in less than a cycle each
    assert found.cycles is not None
    assert 50 * 40 * 3 <= found.cycles <= 50 * (40 * 3 + 2) + 2
    assert found.blocks[0].bound_by == "dependency"


def test_a_chain_that_starts_anew_in_each_row_costs_less_than_its_sum(own: OwnPredictor) -> None:
    """Rows of six passes: the sum is 6 × 3 cycles a row; the rows overlap, and what is left is the ends of rows."""
    made = two_loops(ADD_STREAM)
    flow = CountedFlow(made, counted(made, rows=200, passes=6))
    by_loops, by_traces = lift_loops(flow, own), lift_traces(flow, own)
    assert by_loops.cycles is not None
    assert by_traces.cycles is not None
    assert by_traces.interval is None  # the predictor is known to foresee so short rows
    assert by_traces.cycles < 0.6 * by_loops.cycles


def test_a_long_row_takes_what_its_loop_takes(own: OwnPredictor) -> None:
    """Of a long row its ends do not matter: the ways agree."""
    made = two_loops(ADD_STREAM)
    flow = CountedFlow(made, counted(made, rows=3, passes=100_000))
    by_loops, by_traces = lift_loops(flow, own), lift_traces(flow, own)
    assert by_traces.cycles == pytest.approx(by_loops.cycles, rel=1e-3)


@pytest.mark.parametrize("passes", [200, 300])  # more than a predictor can foresee
def test_a_mispredicted_end_of_a_row_costs_its_penalty_where_nothing_hides_it(own: OwnPredictor, passes: int) -> None:
    """Rows without a chain of more than a cycle: each end costs about the penalty of the core."""
    made, rows = two_loops(COPY_STREAM), 100
    penalty = own.core.parameters.misprediction
    assert penalty
    flow = CountedFlow(made, counted(made, rows, passes))
    found, straight = lift_traces(flow, own), lift_loops(flow, own)
    assert found.mispredicted == pytest.approx(rows, rel=0.05)
    assert found.cycles is not None
    assert straight.cycles is not None
    assert 0.6 * penalty <= (found.cycles - straight.cycles) / rows <= 1.5 * penalty


def test_traces_need_a_pipeline_to_simulate(own: OwnPredictor, monkeypatch: pytest.MonkeyPatch) -> None:
    made = two_loops()
    monkeypatch.setattr(TraceTimer, "possible", False)
    found = lift_traces(CountedFlow(made, counted(made, 3, 4)), own)
    assert found.cycles is None
    assert "no pipeline" in found.failed


def test_instructions_without_a_row_fail(own: OwnPredictor) -> None:
    made = function([("0f01f9", [1]), ("0f01d5", [2]), ("c3", [])], [])  # rdtscp, xend
    addresses = [block.address for block in made.blocks]
    edges = dict.fromkeys(pairwise(addresses), 1)
    flow = CountedFlow(made, Occurrences(dict.fromkeys(addresses, 1), edges, 1, "re-encoded"))
    for found in (lift_sum(flow, own), lift_loops(flow, own), lift_traces(flow, own)):
        assert found.cycles is None
        assert found.failed.startswith("block 0x100")


def test_a_trace_is_timed_by_its_lines_of_code() -> None:
    """A loop of 13 bytes takes a cycle a pass where a line of 64 bytes holds it, two where it does not (measured on
    Zen 3: the source of the figure)."""
    timer = TraceTimer(OwnPredictor(CORE).core)
    code = bytes.fromhex("c5fd1006c5fd110748ffc975f3")
    for address, cycles in ((0, 1.0), (48, 1.0), (56, 2.0)):
        found = timer.cycles(decode_block(code, file="x", address=0x1000 + address) * 100)
        assert found is not None
        assert found[0] / 100 == pytest.approx(cycles, rel=0.05), address


@pytest.mark.parametrize("core", ["ZEN3", "SKL"])
@pytest.mark.parametrize("wrong", [(), (16,), (6, 16, 18)])
def test_both_engines_time_a_trace_alike(core: str, wrong: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    made = two_loops(ADD_STREAM)
    _, row, inner, end, _ = (block.instructions for block in made.blocks)
    trace = (*row, *inner * 3, *end, *row, *inner * 5, *end)
    timer = TraceTimer(OwnPredictor(core).core)
    found = timer.cycles(trace, wrong)
    monkeypatch.setattr("kernmodel.binary.trace_time.simulate", lambda program: None)
    assert timer.cycles(trace, wrong) == found


@pytest.mark.parametrize("across", [0, 4, 8])
def test_loads_that_cross_lines_take_longer(own: OwnPredictor, across: int) -> None:
    """Eight loads of 32 bytes a pass take half a cycle each on Zen 3, across lines a whole one."""
    code = bytes.fromhex("c5fd1006" * 8 + "48ffc975db")  # vmovupd ymm0,[rsi]; dec rcx; jne
    trace = decode_block(code, file="made", address=0x1000)
    found = TraceTimer(own.core, own.analyser).cycles(trace, data=TraceData((), frozenset(range(across)), frozenset()))
    assert found == (pytest.approx(4 + across / 2, rel=0.05),)


def test_a_load_waits_for_the_store_that_fed_it(own: OwnPredictor) -> None:
    """Chains through memory by addresses that no register tells; longer where the load needs more than was stored."""
    code = bytes.fromhex("f20f1006f20f1107")  # movsd xmm0,[rsi]; movsd [rdi],xmm0
    trace = decode_block(code, file="made", address=0x1000)
    timer = TraceTimer(own.core, own.analyser)
    times = [
        timer.cycles(trace, data=TraceData(links, frozenset(), frozenset()))
        for links in ((), (Forwarding((1, 0), (0, 0), 1, True),), (Forwarding((1, 0), (0, 0), 1, False),))
    ]
    apart, whole, partial = (time[0] for time in times if time is not None)
    assert apart == 1
    assert whole == 9
    assert partial >= whole + 10


@pytest.mark.parametrize(("order", "turns"), [("slsl", 2), ("ssll", 1)])
def test_loads_that_no_store_can_feed_wait_in_turn(own: OwnPredictor, order: str, turns: int) -> None:
    """mov [rdi],eax; mov rcx,[rdi], twice, and the stores first: measured on Zen 3 at 17.9 cycles for each turn."""
    trace = decode_block(
        bytes.fromhex("".join({"s": "8907", "l": "488b0f"}[one] for one in order)), file="made", address=0x1000
    )
    stores, loads = ([n for n, one in enumerate(order) if one == kind] for kind in "sl")
    links = tuple(Forwarding((store, 0), (load, 0), 0, False) for store, load in zip(stores, loads, strict=True))
    data = TraceData(links, frozenset(), frozenset())
    timer = TraceTimer(own.core, own.analyser)
    assert timer.cycles(trace, data=data) == (pytest.approx(18 * turns, abs=1),)
    zen4 = OwnPredictor("ZEN4")  # whose loads start on some of the address generators, too
    (found,) = TraceTimer(zen4.core, zen4.analyser).cycles(trace, data=data) or (0.0,)
    assert found > 15 * turns
    assert data.blocked_in_turn(window=1) == ()


def test_a_load_that_no_store_can_feed_and_the_branch_behind_it_take_their_time_together(own: OwnPredictor) -> None:
    """mov [rdi],eax; mov rcx,[rdi]; cmp rcx,rax; jne: what follows the branch stores only when that is known."""
    trace = decode_block(bytes.fromhex("8907488b0f4839c17500"), file="made", address=0x1000)
    data = TraceData((Forwarding((0, 0), (1, 0), 0, False),), frozenset(), frozenset(), stores=(0,))
    timer = TraceTimer(own.core, own.analyser)
    foreseen, wrong = timer.cycles(trace, (), (3,), data=data) or (0.0, 0.0)
    assert foreseen == pytest.approx(18, abs=1)
    assert timer.penalty is not None
    assert wrong >= foreseen + timer.penalty - 1
