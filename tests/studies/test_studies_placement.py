"""What the address of a block is worth: the interval of its prediction, and what alignment buys."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.blocks import block_of_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings, analyse_block, predictions_at
from kernmodel.studies.predict.placement import CAUSE, Placement, array_notes, placement, placement_notes

COPY = "c5fb1004c6c5fb1104c748ffc04839c875f1"  # vmovsd xmm0,[rsi+rax*8]; vmovsd [rdi+rax*8],xmm0; inc; cmp; jne
CORES = ("SKL", "ICX", "ZEN4")


@cache
def core(name: str) -> Core:
    return Core.open(name, Settings())


def block(alignment: int = 1, address: int = 0) -> AssemblyLoop:
    return replace(block_of_bytes(bytes.fromhex(COPY), file="x", address=address), alignment=alignment)


def placed(loop: AssemblyLoop, name: str, options: Settings | None = None) -> Placement:
    chosen = options or Settings()
    return placement(loop, core(name), chosen, analyse_block(loop, core(name), chosen).prediction)


@settings(max_examples=30)
@given(st.sampled_from(CORES), st.sampled_from((1, 2, 16, 32, 64, 4096)), st.integers(0, 255))
def test_the_interval_is_that_of_all_addresses_it_may_get(name: str, alignment: int, address: int) -> None:
    loop = block(alignment, address)
    found = placed(loop, name)
    cycles = list(predictions_at(loop, core(name), Settings(), range(CODE_ALIGNMENT)))
    step = min(alignment, CODE_ALIGNMENT)
    possible = cycles[address % step :: step]
    assert found.aligned == cycles[0]
    if found.interval is None:
        assert max(possible) <= 1.005 * min(possible)
    else:
        assert (found.interval.low, found.interval.high) == (min(possible), max(possible))
        assert found.interval.cause == CAUSE
    assert found.aligning_helps is (max(possible) - cycles[0] > 0.005 * max(possible))


def test_a_jump_across_32_bytes_is_told_of() -> None:
    """Skylake's microcode keeps a jump that touches the end of 32 bytes out of the µop cache (JCC erratum)."""
    found = placed(block(), "SKL")
    assert found.interval is not None
    assert found.interval.low == found.aligned == 1.0
    assert found.interval.high > 1.0
    assert found.aligning_helps


def test_an_answer_that_uses_the_in_core_time_has_a_note() -> None:
    (note,) = placement_notes(placed(block(), "SKL"), "x")
    assert note.code == "code-address"
    assert "1.00 to 3.00 cycles per pass; `-falign-loops=64` makes it 1.00" in note.text
    assert placement_notes(placed(block(4096), "SKL"), "x") == ()


def test_a_given_address_leaves_no_interval() -> None:
    assert placed(block(), "SKL", Settings(offset=18)).interval is None
    assert placed(block(4096, 18), "SKL").interval is None


@pytest.mark.parametrize(("address", "helps"), [(0, False), (18, True)])
def test_aligning_linked_code_helps_where_it_is_faster(address: int, helps: bool) -> None:
    assert placed(block(4096, address), "SKL").aligning_helps is helps


FOUR_ROWS = (  # four loads of 512 bits from bases of their own, which all cross lines or none
    "62d1fd48103c0262d1fd4810340062d1c54858040362d1cd48580c0162f1fd4858c162f1fd4859c262f1fd481104014883c0404839c375c8"
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            Settings(),
            "multiples of 8 bytes: 2.00 to 4.60 cycles per pass (0 modulo 64 is taken; --data-align says where)",
        ),
        (Settings(data_align=16), "multiples of 16 bytes: 2.00 to 4.60 cycles per pass (0 modulo 64 is taken)"),
        (Settings(data_align=64), ""),
        (Settings(notion="unrolled"), ""),
    ],
)
def test_where_arrays_begin_is_told_of(options: Settings, said: str) -> None:
    """Measured on Redwood Cove with rows that begin anywhere: 4.65 cycles per pass."""
    loop = block_of_bytes(bytes.fromhex(FOUR_ROWS), file="x")
    notes = array_notes(loop, core("RWC"), options, analyse_block(loop, core("RWC"), options).prediction)
    assert [note.text for note in notes] == ([f"arrays that begin at {said}"] if said else [])


def test_nothing_is_told_of_arrays_where_crossings_cost_nothing() -> None:
    loop = block_of_bytes(bytes.fromhex(FOUR_ROWS), file="x")
    assert array_notes(loop, core("ICX"), Settings(), 2.0) == ()
