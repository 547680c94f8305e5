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
from kernmodel.studies.predict import placement as placements
from kernmodel.studies.predict.placement import CAUSE, Placement, array_notes, placement, placement_notes
from kernmodel.uncertainty import Interval

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
        assert [cycles[place] for place in found.ends] == [min(possible), max(possible)]
    assert found.aligning_helps is (max(possible) - cycles[0] > 0.005 * max(possible))


def test_a_jump_across_32_bytes_is_told_of() -> None:
    """Skylake's microcode keeps a jump that touches the end of 32 bytes out of the µop cache (JCC erratum)."""
    found = placed(block(), "SKL")
    assert found.interval is not None
    assert found.interval.low == found.aligned == 1.0
    assert found.interval.high > 1.0
    assert found.aligning_helps


def test_an_answer_that_uses_the_in_core_time_has_a_note() -> None:
    (note,) = placement_notes(placed(block(), "SKL"), "x", lambda address: 7.0)
    assert note.code == "code-address"
    assert "is not known (first byte at 0 modulo 64 is taken): in the core it takes 1.00 to 3.00" in note.text
    assert note.text.endswith("cycles per pass; `-falign-loops=64` makes it 1.00")
    assert placement_notes(placed(block(4096), "SKL"), "x", lambda address: 7.0) == ()


def test_the_note_tells_of_t_ecm_where_that_changes() -> None:
    found = placed(block(16), "SKL")
    (note,) = placement_notes(found, "x", {0: 5.0, found.ends[1]: 9.0}.__getitem__)
    assert "is known modulo 16 only" in note.text
    assert "1.00 to 2.00 cycles per pass, T_ECM is 5.00 to 9.00 cy/CL; " in note.text
    assert note.text.endswith("makes it 1.00, T_ECM 5.00")


def test_no_alignment_is_praised_that_does_not_help() -> None:
    interval = Interval(1.0, 2.0, CAUSE, "first byte at 8 modulo 64")
    (note,) = placement_notes(Placement(interval, 2.0, False, 16, (24, 8)), "x", lambda address: 7.0)
    assert note.text.endswith("in the core it takes 1.00 to 2.00 cycles per pass")


def test_a_core_that_reads_no_lines_of_code_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placements, "predictions_at", None)
    own = core("SKL")
    blind = replace(own, model=replace(own.model, front=None, op_cache=None))
    assert placement(block(), blind, Settings(), 1.0) == Placement(None, 1.0, False, 1)


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
