"""Which scheduler and pipe µops of interleaved ports get, by places read on a Zen 4 (benchmarks/vector_places.py)."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from simulations import Engine, predictor

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.core import Core as OpenCore
from kernmodel.incore.core import Settings, analyse_block
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.layout import PORTS, SCHEDULERS, Core
from kernmodel.incore.engine.sides import Sides

FP0, FP1, FP2, FP3 = range(4)
MULTIPLY, ANY = 1 << FP0 | 1 << FP1, 0b1111


def sides() -> Sides:
    """Four ports, FP0 and FP2 of one scheduler, FP1 and FP3 of the other."""
    rooms = (32, 32, *[0] * (SCHEDULERS - 2))
    return Sides(
        Core(
            interleaved=(1, 2, 3, 4, *[0] * (PORTS - 4)),
            rooms=rooms,
            scheduler_of=(0, 1, 0, 1, *[0] * (PORTS - 4)),
            pair_gap=9,
            turn_gap=5,
            most_by_slot=32,
            heavy_side=24,
            mode_delay=3,
            choice_delay=2,
            left_delay=4,
            queue_passage=2,
        )
    )


def cycle(own: Sides, entering: tuple[int, ...] = (), leaving: tuple[int, ...] = ()) -> None:
    """A cycle in which µops start on ports and enter their schedulers."""
    for port in leaving:
        own.leave(port)
    own.look()
    for port in entering:
        own.enter(port)
    own.end_cycle()


@pytest.mark.parametrize(("additions", "uneven"), [(8, False), (9, True)])
def test_nine_more_for_a_port_than_for_its_counterpart_end_the_assignment_by_slot(additions: int, uneven: bool) -> None:
    """Which dispatch knows three cycles later: of one addition a cycle in even slots eleven stay."""
    own = sides()
    for _ in range(additions):
        cycle(own, (FP2,))
    for _ in range(2):
        cycle(own)
        assert not own.uneven
    cycle(own)
    assert own.uneven == uneven


@pytest.mark.parametrize(("pairs", "uneven"), [(15, False), (16, True)])
def test_thirty_two_that_wait_end_the_assignment_by_slot(pairs: int, uneven: bool) -> None:
    own = sides()
    for _ in range(pairs):
        cycle(own, (FP0, FP1))
    for _ in range(3):
        cycle(own)
    assert own.uneven == uneven


def test_what_left_is_known_four_cycles_later() -> None:
    own = sides()
    for _ in range(9):
        cycle(own, (FP2,))
    for _ in range(3):
        cycle(own)
    cycle(own, (), (FP2,))
    for _ in range(3):
        cycle(own)
        assert own.uneven
    cycle(own)
    assert not own.uneven


@pytest.mark.parametrize(("shifts", "ports"), [(4, (FP0, FP2)), (5, (FP0, FP0))])
def test_ports_of_a_side_take_turns_unless_five_fewer_wait_for_one(shifts: int, ports: tuple[int, int]) -> None:
    own = sides()
    for _ in range(shifts):
        cycle(own, (FP2,))
    cycle(own)
    own.look()
    assert (own.port(ANY, 0), own.port(ANY, 0)) == ports


def test_what_only_one_port_of_a_side_executes_moves_no_turn() -> None:
    """Shifts and additions of integers in turn: the additions still alternate between FP0 and FP2."""
    own = sides()
    own.look()
    assert [own.port(ports, 0) for ports in (1 << FP2, ANY, 1 << FP2, ANY)] == [FP2, FP0, FP2, FP2]


@pytest.mark.parametrize(("waiting", "avoided"), [(23, 0), (24, 1 << FP2)])
def test_a_side_is_avoided_where_it_is_heavy_and_the_own_port_uneven(waiting: int, avoided: int) -> None:
    own = sides()
    for _ in range(9):
        cycle(own, (FP2,))
    for _ in range(waiting - 9):
        cycle(own, (FP0,))
    for _ in range(3):
        cycle(own)
    assert own.avoided[0] & 1 << FP2 == avoided
    assert not own.avoided[1]


def test_a_side_of_32_has_no_room_until_four_cycles_after_one_started() -> None:
    own = sides()
    for _ in range(32):
        cycle(own, (FP0,))
    own.look()
    assert (own.port(MULTIPLY, 0), own.port(MULTIPLY, 1)) == (-1, FP1)
    cycle(own, (), (FP0,))
    for _ in range(3):
        own.look()
        assert own.port(MULTIPLY, 0) == -1
        cycle(own)
    own.look()
    assert own.port(MULTIPLY, 0) == FP0


@pytest.mark.parametrize(
    ("code", "measured", "apart"),
    [
        # a step of three cycles, and what else reads its value: one product never takes the pipe of the step, two do
        ("c4c17359dfc50359f848ffc975f2", 2.99, 0.02),  # m, c
        ("c4c17359dfc4c17359e7c50359f848ffc975ed", 4.14, 0.04),  # m, m, c
        ("c4c17358dfc4c17359e7c50359f848ffc975ed", 2.99, 0.02),  # an addition, m, c
        ("c4c17359dfc4c17358e7c50359f848ffc975ed", 3.99, 0.02),  # m, an addition, c
        # a maximum and its comparison in one pipe: two cycles by the chain alone
        ("c5fb1004c6c5f92fc1480f47d0c5fb5fc948ffc04839c775e7", 2.99, 0.08),
    ],
)
def test_operations_of_chains_get_the_pipes_that_they_get_on_the_core(code: str, measured: float, apart: float) -> None:
    """Measured on an EPYC of family 25, model 17 (2026-11-29), the last one over an array."""
    own = block_of_bytes(bytes.fromhex(code), file="x")
    found = analyse_block(own, OpenCore.open("ZEN4", Settings()), Settings("loop"))
    assert found.prediction == pytest.approx(measured, rel=apart)


_OPERATIONS = (
    "c5f159c2",
    "c5f158c2",
    "c5f1fec2",
    "c5f114c2",
    "c5f173f201",
    "c4e2f1b8c2",
    "c5f9290424",
    "c5f96ec0",
    "4889c3",
)
"""vmulpd, vaddpd, vpaddd, vunpcklpd, vpsllq, an FMA, a store, vmovd from a register, an eliminated move."""


@pytest.mark.skipif(library() is None, reason="the engine was not built")
def test_both_engines_interleave_alike() -> None:
    draw = Random(5)
    compiled, python = (predictor("ZEN4", Settings(), engine) for engine in get_args(Engine))
    for _ in range(12):
        code = "".join(draw.choices(_OPERATIONS, k=draw.randint(2, 9))) + "48ffc9757f"
        own = compiled.predict(bytes.fromhex(code), "loop", 0)
        assert own is not None
        assert own == python.predict(bytes.fromhex(code), "loop", 0)
