"""Laws of the front-end components, on blocks of any layout."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from math import ceil, gcd

import pytest
from facile import Block, block_of, front_end
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.dsb import dsb_bound, erratum_branches
from kernmodel.incore.front_end.issue import issue_bound
from kernmodel.incore.front_end.lsd import lsd_bound
from kernmodel.incore.front_end.mixed import mixed_bound
from kernmodel.incore.front_end.model import Unit
from kernmodel.incore.front_end.predecode import predecode_bound
from kernmodel.incore.model import FrontEnd, InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters, front_end_parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.isa.model import Encoding, Instruction, Notion

NOP = decode_bytes(b"\x90").instructions[0]
JUMP = decode_bytes(b"\x75\x00").instructions[0]
ROW = InstructionData("", (), {}, 1.0, 1, None, "no", False, None, None, "")


def core_of(name: str) -> FrontEndParameters:
    core = front_end_parameters(load_parameters(name))
    assert core is not None
    return core


CORES = {name: core_of(name) for name in ("SNB", "HSW", "SKL", "CLX")}
cores = st.sampled_from(sorted(CORES)).map(CORES.__getitem__)
notions: st.SearchStrategy[Notion] = st.sampled_from(["unrolled", "loop"])
layouts = st.lists(
    st.integers(1, 15).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.booleans())),
    min_size=1,
    max_size=12,
)
rare_prefixes = layouts.map(lambda layout: [(n, o, p and n % 3 == 0) for n, o, p in layout])
fronts = st.builds(
    FrontEnd,
    retire_slots=st.integers(1, 5),
    uops_mite=st.integers(1, 4),
    uops_ms=st.sampled_from([0, 0, 0, 7]),
    complex_decoder=st.booleans(),
    simple_decoders=st.integers(0, 4),
    fusible_with=st.sampled_from([(), (), ("jne",)]),
)
costs = st.lists(fronts, min_size=1, max_size=12)


def laid_out(layout: list[tuple[int, int, bool]]) -> list[Instruction]:
    """Instructions of these lengths, opcode offsets and length-changing prefixes."""
    starts = accumulate((length for length, _, _ in layout), initial=0)
    return [
        replace(NOP, address=start, length=length, encoding=Encoding(opcode, prefix))
        for start, (length, opcode, prefix) in zip(starts, layout, strict=False)
    ]


def plain_block(layout: list[tuple[int, int, bool]], core: FrontEndParameters) -> Block:
    return block_of(laid_out(layout), [ROW] * len(layout), core)


def priced_block(fronts: list[FrontEnd], core: FrontEndParameters, *, loop: bool = False) -> Block:
    """Instructions of four bytes with these costs, closed by a jump for a loop."""
    instructions = laid_out([(4, 0, False)] * len(fronts))
    rows = [replace(ROW, front_end=front) for front in fronts]
    if loop:
        instructions.append(replace(JUMP, address=4 * len(fronts)))
        rows.append(replace(ROW, front_end=FrontEnd(1, 1, 0, False, 4, ())))
    return block_of(instructions, rows, core)


def by_the_paper(layout: list[tuple[int, int, bool]], core: FrontEndParameters, notion: Notion, offset: int) -> float:
    """Section 4.3, counted instruction by instruction over u copies."""
    length = sum(n for n, _, _ in layout)
    copies = 16 // gcd(length, 16) if notion == "unrolled" else 1
    blocks = copies * length // 16 if notion == "unrolled" else (offset % 16 + length + 15) // 16
    ends, opens, prefixed = [0] * blocks, [0] * blocks, [0] * blocks
    position = offset % 16
    for n, opcode, prefix in layout * copies:
        last, first = (position + n - 1) // 16, (position + opcode) // 16
        ends[last % blocks] += 1
        opens[first % blocks] += first != last
        prefixed[first % blocks] += prefix
        position += n
    normal = [ceil((e + o) / core.predecode_width) for e, o in zip(ends, opens, strict=True)]
    slow = [max(0, 3 * prefixed[b] - (normal[b - 1] - 1)) for b in range(blocks)]
    return (sum(normal) + sum(slow)) / copies


@given(rare_prefixes, cores, notions, st.integers(0, 200))
def test_predecode_is_what_the_paper_counts(
    layout: list[tuple[int, int, bool]], core: FrontEndParameters, notion: Notion, offset: int
) -> None:
    found = predecode_bound(plain_block(layout, core).seen, core, notion, offset)
    assert found == pytest.approx(by_the_paper(layout, core, notion, offset))


@given(layouts, cores, notions, st.integers(0, 63), st.integers(0, 9))
def test_predecode_does_not_change_with_multiples_of_the_fetched_block(
    layout: list[tuple[int, int, bool]], core: FrontEndParameters, notion: Notion, offset: int, fetches: int
) -> None:
    block = plain_block(layout, core).seen
    moved = predecode_bound(block, core, notion, offset + 16 * fetches)
    assert moved == predecode_bound(block, core, notion, offset)


@given(layouts, cores, st.integers(2, 5), st.integers(0, 15))
def test_predecode_of_explicit_copies_is_that_of_the_unrolled_block(
    layout: list[tuple[int, int, bool]], core: FrontEndParameters, copies: int, offset: int
) -> None:
    single = predecode_bound(plain_block(layout, core).seen, core, "unrolled", offset)
    many = predecode_bound(plain_block(layout * copies, core).seen, core, "unrolled", offset)
    assert many == pytest.approx(copies * single)


@given(layouts, cores, st.integers(0, 15))
def test_unrolled_predecode_does_not_depend_on_the_offset_where_it_goes_through_all(
    layout: list[tuple[int, int, bool]], core: FrontEndParameters, offset: int
) -> None:
    """Copies of a block of odd length start at every place of a fetched block."""
    odd = layout if sum(n for n, _, _ in layout) % 2 else [*layout, (1, 0, False)]
    block = plain_block(odd, core).seen
    assert predecode_bound(block, core, "unrolled", offset) == predecode_bound(block, core, "unrolled", 0)


@given(costs, cores, st.integers(2, 5))
def test_decode_of_explicit_copies_is_that_of_the_unrolled_block(
    fronts: list[FrontEnd], core: FrontEndParameters, copies: int
) -> None:
    single = decode_bound(priced_block(fronts, core).seen.units, core)
    many = decode_bound(priced_block(fronts * copies, core).seen.units, core)
    assert many == pytest.approx(copies * single)


@given(costs, cores)
def test_decode_is_at_least_the_simple_model(fronts: list[FrontEnd], core: FrontEndParameters) -> None:
    """SimpleDec of section 4.4: units over decoders, and a cycle for each that needs the complex decoder."""
    units = priced_block(fronts, core).seen.units
    simple = max(len(units) / core.decoders, sum(unit.complex for unit in units))
    assert simple <= decode_bound(units, core) <= len(units)


@given(costs, cores, fronts)
def test_what_is_counted_never_falls_when_an_instruction_is_appended(
    fronts: list[FrontEnd], core: FrontEndParameters, more: FrontEnd
) -> None:
    less = priced_block(fronts, core)
    longer = priced_block([*fronts, more], core)
    assert issue_bound(less.seen.units, core) < issue_bound(longer.seen.units, core)
    whole = max(longer.seen.length, core.dsb_bytes)
    assert dsb_bound(less.seen.units, whole, core) < dsb_bound(longer.seen.units, whole, core)


@given(costs, cores)
def test_a_fused_pair_costs_what_its_first_instruction_does(fronts: list[FrontEnd], core: FrontEndParameters) -> None:
    alone = priced_block(fronts, core)
    closed = priced_block(fronts, core, loop=True)
    if fronts[-1].fusible_with:
        assert issue_bound(closed.seen.units, core) == issue_bound(alone.seen.units, core)
        assert len(closed.seen.units) == len(alone.seen.units)
    else:
        assert len(closed.seen.units) == len(alone.seen.units) + 1


@given(costs, cores, notions, st.integers(0, 63))
def test_a_wider_stage_never_makes_it_slower(
    fronts: list[FrontEnd], core: FrontEndParameters, notion: Notion, offset: int
) -> None:
    block = priced_block(fronts, core, loop=True)
    now = front_end(block, core, notion, offset)
    wide = replace(
        core,
        issue_width=2 * core.issue_width,
        dsb_width=2 * core.dsb_width,
        predecode_width=2 * core.predecode_width,
    )
    then = front_end(block, wide, notion, offset)
    assert then.path == now.path
    assert then.issue <= now.issue
    assert then.delivery <= now.delivery


@given(costs, cores)
def test_the_lsd_is_never_faster_than_its_width(fronts: list[FrontEnd], core: FrontEndParameters) -> None:
    units = priced_block(fronts, core).seen.units
    uops = sum(unit.decoded + unit.microcoded for unit in units)
    assert uops / core.issue_width <= lsd_bound(units, core) <= ceil(uops / core.issue_width)


@given(costs, st.integers(0, 63), st.integers(0, 5))
def test_the_erratum_comes_back_with_every_boundary(fronts: list[FrontEnd], offset: int, further: int) -> None:
    core = CORES["SKL"]
    units = priced_block(fronts, core, loop=True).seen.units
    assert erratum_branches(units, core, offset) == erratum_branches(units, core, offset + 32 * further)
    assert erratum_branches(units, CORES["HSW"], offset) == ()


@given(costs, st.integers(0, 63))
def test_a_loop_within_one_line_is_decoded_as_a_whole(fronts: list[FrontEnd], offset: int) -> None:
    core = CORES["SKL"]
    block = priced_block(fronts, core, loop=True)
    answer = front_end(block, core, "loop", offset)
    one_line = offset // 64 == (offset + block.seen.length - 1) // 64
    if answer.erratum and one_line:
        assert answer.mixed == max(answer.predecode or 0.0, answer.decode or 0.0)
    assert (answer.mixed is None) is (not answer.erratum)


@given(costs, st.integers(0, 63))
def test_lines_without_the_erratum_take_what_the_dsb_takes(fronts: list[FrontEnd], offset: int) -> None:
    core = CORES["SKL"]
    block = priced_block(fronts, core, loop=True)
    whole = ceil(sum(unit.decoded for unit in block.seen.units) / core.dsb_width)
    assert mixed_bound(block.seen, block.seen.units, core, offset, ()) == whole


def test_a_block_without_units_costs_no_decoding() -> None:
    assert decode_bound((), CORES["SKL"]) == 0.0


def test_the_first_unit_decides_the_period() -> None:
    """Two simple instructions: four to a cycle, so two executions."""
    unit = Unit(0, 0, 1, 1, 0, 1, False, 3, False, False, False)
    assert decode_bound((unit, unit), CORES["SKL"]) == 0.5
