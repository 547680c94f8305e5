"""What the figures of 6-wide cores say of issue, memory, adders, split loads and schedulers, each rule on its own."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parameter_files import with_figures
from pipeline_cores import CORE, IDEAL
from simulations import Engine, MicroOp, PipelineInput, simulate

from kernmodel.code.listing import decode_bytes
from kernmodel.errors import InstructionTableError
from kernmodel.incore.answer.components import Bounds, bounds_of, row_of
from kernmodel.incore.answer.mechanisms import Subject, simulated_without
from kernmodel.incore.dependences.addresses import BodyAccesses, address_step
from kernmodel.incore.dependences.line_splits import AT_LINES, split_loads
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.layout import Entry
from kernmodel.incore.engine.model import PipelineCore, Role, Switches
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import Parameters
from kernmodel.incore.tables.core_parameters import LoadParameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

MEASURED = Path(__file__).resolve().parents[2] / "../shared/data/measured/redwood-cove-dev.csv.gz"
TO_OTHERS = "adder to other units"
SEVERAL_CHAINS = "adders with several chains"
BESIDE_WIDE = "adders beside 512-bit µops"
CODE = {  # most end in dec; jne
    "chain": "c5fb58c1 ffc975f8",  # vaddsd xmm0,xmm0,xmm1
    "to multiplication": "c5fb58c1 c5fb59c1 ffc975f4",  # and vmulsd xmm0,xmm0,xmm1
    "two chains": "c5fb58c1 c5eb58d1 ffc975f4",  # and vaddsd xmm2,xmm2,xmm1
    "four chains": "c5fb58c1 c5eb58d1 c5e358d9 c5db58e1 ffc975ec",  # the same of xmm3 and xmm4
    "through moves": "f20f58c7 660f28c8 f20f58cf 660f28c1 ffc975ec",  # addsd xmm0,xmm7; movapd xmm1,xmm0; addsd; movapd
    "wide": "c5fb58c1 62f1fd4810e3 ffc975f2",  # and vmovupd zmm4,zmm3
    "three zmm loads": "62f1fd481007 62f1fd48108f08000000 62f1fd48109710000000 4883c740 ffc975de",  # [rdi], +8, +16
    "two ymm loads": "c5fd1007 c5fd104f08 4883c720 ffc975ef",  # [rdi], +8; add rdi,32
    "two bases": "62f1fd481007 62f1fd48108e08000000 4883c740 4883c640 ffc975e4",  # [rdi], [rsi+8]
    "indexed": "62f1fd481084c7080000004883c008ffc975ed",  # vmovupd zmm0,[rdi+rax*8+8]; add rax,8
    "prefix sum": "488b50f8 480110 4883c008 ffc975f1",  # mov rdx,[rax-8]; add [rax],rdx; add rax,8
    "add in memory": "c5fb580f c5fb110f ffc975f4",  # vaddsd xmm1,xmm0,[rdi]; vmovsd [rdi],xmm1
    "copy in place": "c5fb100f c5fb110f ffc975f4",  # vmovsd xmm1,[rdi]; vmovsd [rdi],xmm1
    "five": "0fb60c0783f15a880c0648ffc04839c275ee",  # movzx ecx,[rdi+rax]; xor; mov [rsi+rax],cl; inc rax; cmp; jne
    "counter": "4883c0014839c275f7",  # add rax,1; cmp rdx,rax; jne
    "lanes": "c5fb590c07 c5fb591407 c5fb591c07 ffc975ed",  # three vmulsd xmm,xmm0,[rdi+rax]
}


@cache
def core(without: tuple[str, ...] = (), arch: str = "RWC") -> tuple[Parameters, InstructionTable]:
    """A core, without some of its figures."""
    parameters = load_parameters(arch)
    parameters = with_figures(parameters, dict.fromkeys(without))
    return parameters, InstructionTable.open(parameters)


def bounds(name: str, *without: str, arch: str = "RWC") -> Bounds:
    parameters, table = core(without, arch)
    instructions = decode_bytes(bytes.fromhex(CODE[name])).instructions
    return bounds_of(instructions, [row_of(i, table) for i in instructions], modelled_core(parameters), "loop", 0)


def test_an_adder_feeds_an_adder_sooner_than_a_multiplier() -> None:
    assert bounds("chain").components["precedence"] == 2
    plain = bounds("to multiplication", TO_OTHERS)
    later = bounds("to multiplication")
    assert later.components["precedence"] == plain.components["precedence"] + 1
    assert later.components["pipeline"] == plain.components["pipeline"] + 1


def test_adders_of_several_chains_take_longer() -> None:
    assert bounds("two chains").components["precedence"] == 2  # which the adders serve at once
    assert bounds("four chains", SEVERAL_CHAINS).components["precedence"] == 2
    found = bounds("four chains")
    assert found.components["precedence"] == found.components["pipeline"] == 3


def test_eliminated_moves_hand_on_what_an_adder_gives() -> None:
    found = bounds("through moves")
    assert found.components["precedence"] == found.components["pipeline"] == 4


@pytest.mark.parametrize(("apart", "cycles"), [(0, 6.0), (8, 4.0)])  # measured: 6.04 and 4.08
def test_two_loads_read_a_bank_in_a_cycle(apart: int, cycles: float) -> None:
    code = "488b02" * 12 if not apart else "488b02 488b4a08" * 6  # mov rax,[rdx] and mov rcx,[rdx+8]
    length = len(bytes.fromhex(code))
    loop = bytes.fromhex(code) + bytes.fromhex("41ffc875") + (-length - 5 & 0xFF).to_bytes(1, "little")  # dec r8d; jne
    parameters, table = core()
    instructions = decode_bytes(loop).instructions
    rows = [row_of(i, table) for i in instructions]
    found = bounds_of(instructions, rows, modelled_core(parameters), "loop", 0)
    assert found.components["pipeline"] == pytest.approx(cycles, rel=0.05)
    free = modelled_core(with_figures(parameters, {"bytes of a bank that two loads read": None}))
    assert bounds_of(instructions, rows, free, "loop", 0).components["pipeline"] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize(("lines", "cycles"), [("AA", 1), ("AB", 2), ("ABAB", 4), ("AABB", 2), ("ABA", 2), ("AAAB", 3)])
def test_two_stores_of_a_cycle_go_to_one_line(lines: str, cycles: float) -> None:
    places = [64 * (line == "B") + 8 * lines[:n].count(line) for n, line in enumerate(lines)]
    stores = b"".join(bytes.fromhex("48894a") + bytes([place]) for place in places)  # mov [rdx+place],rcx
    loop = stores + bytes.fromhex("41ffc875") + (-len(stores) - 5 & 0xFF).to_bytes(1, "little")  # dec r8d; jne
    parameters, table = core()
    instructions = decode_bytes(loop).instructions
    rows = [row_of(i, table) for i in instructions]  # measured: 1.0, 2.0, 4.0, 2.0, 2.0, 3.0
    found = bounds_of(instructions, rows, modelled_core(parameters), "loop", 0)
    assert found.components["pipeline"] == pytest.approx(cycles, rel=0.02)


def test_adders_beside_wide_registers_take_longer() -> None:
    assert bounds("wide", BESIDE_WIDE).components["precedence"] == 2
    assert bounds("wide").components["precedence"] == pytest.approx(3.4)


def test_other_cores_keep_the_latency_of_their_table() -> None:
    assert bounds("two chains", arch="SKL").components["precedence"] == 4


def test_of_loads_that_differ_by_a_constant_all_but_the_aligned_are_split() -> None:
    def shares(name: str) -> list[float]:
        instructions = decode_bytes(bytes.fromhex(CODE[name])).instructions
        return sorted(
            split_loads(
                BodyAccesses([address_step(i) for i in instructions]),
                LoadParameters(split_256=1.0, split_512=1.0, line_bytes=64),
            ).values()
        )

    assert shares("three zmm loads") == [1.0, 1.0]
    assert shares("two ymm loads") == [0.5]
    assert shares("two bases") == []
    assert shares("indexed") == [1.0]  # an array begins at a line, whatever would cost less
    assert shares("prefix sum") == []


def test_split_loads_take_their_ports_longer() -> None:
    assert bounds("three zmm loads").components["ports"] == pytest.approx(2 * 1.15 + 0.5)
    assert bounds("three zmm loads", "split 512-bit load").components["ports"] == pytest.approx(1.5)
    assert bounds("two ymm loads").components["ports"] == pytest.approx((1 + 0.5 + 0.5 * 3) / 3)


def test_one_in_64_of_the_lines_that_loads_cross_ends_a_page() -> None:
    assert LoadParameters(split_256=1.0, page_split=128.0, line_bytes=64).splits == {32: 1.0 + 128 / 64}
    # two ymm loads of which one crosses every other line: 1.5 cycles of both ports, and the page-split's part of a line
    ports = bounds("two ymm loads", arch="HSW").components["ports"]
    assert ports == pytest.approx(1.25 + 0.5 * 100 / 64)
    assert bounds("two ymm loads", "page-split load", arch="HSW").components["ports"] == pytest.approx(1.25)


def test_of_blocks_whose_addresses_are_not_looked_at_no_load_is_split() -> None:
    assert modelled_core(core((), "HSW")[0], "stack").splits == {}


def test_renamed_memory_takes_as_long_as_the_table_says() -> None:
    assert bounds("prefix sum").components["pipeline"] < 1.1  # one addition per pass
    assert bounds("add in memory").components["pipeline"] == 5 + 3
    assert bounds("copy in place").components["pipeline"] == 5
    assert bounds("prefix sum", arch="SKL").components["pipeline"] > 4


def test_small_constants_are_added_at_rename() -> None:
    assert bounds("counter").components["pipeline"] < 1


def test_short_loops_take_two_branches_per_cycle() -> None:
    found = bounds("five")
    assert found.components["DSB"] < 1
    assert float(found.prediction) == pytest.approx(5 / 6)
    assert bounds("five", "taken branches per cycle").components["DSB"] == 1
    assert bounds("five", "taken branches per cycle").components["pipeline"] == 1


def test_an_issue_group_takes_two_unlaminated_microops() -> None:
    # 7 slots; the third unlaminated one begins a group, with the branch, and two fit behind it in the next pass
    keys = ("unlaminated µops per issue group", "unlaminated µops among the first of a group")
    assert bounds("lanes", *keys).components["issue"] < 1.5 <= bounds("lanes").components["issue"]
    assert bounds("lanes").components["pipeline"] >= bounds("lanes").components["issue"]


def test_figures_must_make_sense() -> None:
    parameters, _ = core()
    for key in ("taken branches per cycle", "load scheduler entries"):
        with pytest.raises(InstructionTableError):
            with_figures(parameters, {key: -1})


WIDE = replace(
    CORE,
    ports=("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B"),
    issue_width=6,
    retire_width=8,
    reorder_buffer=512,
    delivery=replace(CORE.delivery, idq=144, dsb_width=8, decoders=6, predecode_width=6),
    alternating=(("4", "9"), ("7", "8")),
    memory=replace(CORE.memory, pointer_saving=0, pointer_reach=None),
)
PORTS: dict[Role, tuple[str, ...]] = {
    "compute": ("0", "1", "5", "6", "B"),
    "load": ("2", "3", "A"),
    "store address": ("7", "8"),
    "store data": ("4", "9"),
}


def made(entries: list[tuple[int, bool]], pipeline: PipelineCore, role: Role = "compute") -> PipelineInput:
    """A block of queue entries, with one µop for each of their slots."""
    slots = sum(count for count, _ in entries)
    microops = (MicroOp(role, PORTS[role], 1, 0, 0, 0, ()),) * slots
    queued = tuple(Entry(*entry) for entry in entries)
    return PipelineInput(pipeline, microops, (1,) * slots, queued, IDEAL, Switches())


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_unlaminated_microops_wait_for_the_next_group(engine: Engine) -> None:
    if engine == "compiled" and library() is None:
        pytest.skip("the compiled engine was not built")
    limited = replace(WIDE, unlaminated_slots=1, unlaminated_first=3)
    late = [(1, False), (1, False), (1, False), (2, True)]
    for entries, pipeline, cycles in (
        ([(2, True), (1, False)], WIDE, 3 / 5),
        ([(2, True), (1, False)], limited, 1),
        (late, replace(WIDE, unlaminated_first=3), 1),
    ):
        assert simulate(made(entries, pipeline), engine=engine).cycles_per_pass == pytest.approx(cycles)


entries = st.sampled_from([(1, False), (2, True)])
roles = st.sampled_from(sorted(PORTS))
limits = st.integers(1, 4)


@settings(max_examples=40, deadline=None)
@given(st.lists(entries, min_size=1, max_size=8), roles, limits, limits, st.sampled_from([0, 12, 40]))
def test_both_engines_say_the_same(
    found: list[tuple[int, bool]], role: Role, slots: int, first: int, scheduler: int
) -> None:
    if library() is None:
        pytest.skip("the compiled engine was not built")
    own = replace(WIDE, unlaminated_slots=slots, unlaminated_first=first, load_scheduler=scheduler)
    block = made(found, replace(own, store_scheduler=scheduler), role)
    assert simulate(block, engine="python") == simulate(block, engine="compiled")


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(st.lists(entries, min_size=1, max_size=8), limits, limits)
def test_limits_on_unlaminated_microops_never_help(found: list[tuple[int, bool]], slots: int, first: int) -> None:
    limited = replace(WIDE, unlaminated_slots=slots, unlaminated_first=first)
    assert simulate(made(found, limited)).cycles_per_pass >= simulate(made(found, WIDE)).cycles_per_pass


def test_loads_do_not_fill_a_scheduler_that_is_not_theirs() -> None:
    slow = made([(1, False)] * 4, replace(WIDE, scheduler=16), "load")
    waiting = slow.microops[0]._replace(ports=("2",))
    shared = replace(slow, microops=(waiting,) * 4)
    apart = replace(shared, core=replace(shared.core, load_scheduler=64))
    assert simulate(shared).stalls["scheduler"] > 0
    assert simulate(apart).cycles_per_pass == simulate(shared).cycles_per_pass == 4


def test_a_core_without_issue_limit_does_not_stand_still() -> None:
    parameters, table = core()
    instructions = decode_bytes(bytes.fromhex(CODE["prefix sum"])).instructions
    rows = [row_of(i, table) for i in instructions]
    found = simulated_without("issue", Subject(instructions, rows, "loop", 0, AT_LINES), modelled_core(parameters))
    assert found is not None and 0 < found < 1.1


def test_measured_loops_of_a_redwood_cove_core() -> None:
    """Where most of the distinct loops are met to 5 %; benchmarks/redwood_cove.py tells the exact share."""
    if not MEASURED.exists():
        pytest.skip("the measured loops are not there")
    parameters, table = core()
    model = modelled_core(parameters)
    with gzip.open(MEASURED, "rt", encoding="utf-8") as file:
        loops = {record["hex"]: float(record["cycles_per_pass"]) for record in csv.DictReader(file)}
    errors = []
    for code, measured in loops.items():
        instructions = decode_bytes(bytes.fromhex(code)).instructions
        found = bounds_of(instructions, [row_of(i, table) for i in instructions], model, "loop", 0)
        errors.append(abs(found.prediction / measured - 1))
    assert sum(errors) / len(errors) < 0.065
    assert sum(error <= 0.05 for error in errors) / len(errors) > 0.75
