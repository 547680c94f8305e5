"""Where arrays of measured loops are taken to lie by how many loads crossed lines, and what that changes."""

from __future__ import annotations

import pytest

from kernmodel.code.blocks import block_of_bytes
from kernmodel.evaluate.block_files import read_blocks
from kernmodel.evaluate.blocks import chosen_blocks, evaluate_blocks
from kernmodel.evaluate.crossing import CrossingLoads, noted, places_of
from kernmodel.incore.core import Settings
from kernmodel.incore.dependences.addresses import BodyAccesses, address_step
from kernmodel.incore.dependences.line_splits import AT_LINES, crossing_passes
from kernmodel.incore.engine.layout import PHASES

# vmovupd ymm0,[rax-8]; vaddpd ymm0,ymm0,[rax+8]; vaddpd ymm0,ymm0,[rdx]; vmovupd [rdx],ymm0; add rdx,32; add rax,32;
# cmp rdx,r8; jne: a row beside its neighbours, added to another array
ROW = "c5fd1040f8c5fd584008c5fd5802c5fd11024883c2204883c0204c39c275e3"
HEADER = "kernel,hex,addr_mod_64,cycles_per_pass,compiler,note\n"


def _instructions(code: str):
    return block_of_bytes(bytes.fromhex(code), file="row").instructions


def test_notes():
    assert noted("w=ymm passes 80-336; cache-line-split loads 1.50/pass; 2 code lines") == CrossingLoads(1.5)
    assert noted("w=zmm; cache-line-split loads") == CrossingLoads(None)
    assert noted("w=xmm passes 80-320; 4K alias") is None


@pytest.mark.parametrize("count", [1.0, 1.5])
def test_as_many_loads_cross_lines_as_noted(count):
    instructions = _instructions(ROW)
    places = places_of(instructions, CrossingLoads(count))
    loads, _ = BodyAccesses([address_step(instruction) for instruction in instructions]).moving()
    crossing = [crossing_passes(places.starts[load.instruction], load.stride, 32, 64) for load in loads]
    assert sum(passes.bit_count() for passes in crossing) / PHASES == count


def test_arrays_stay_at_lines_where_that_agrees_or_nothing_does():
    instructions = _instructions(ROW)
    assert places_of(instructions, CrossingLoads(None)) is AT_LINES  # neighbours in a row cannot all be aligned
    assert places_of(instructions, CrossingLoads(0.5)) is AT_LINES
    assert places_of(instructions, CrossingLoads(7.0)) is AT_LINES
    one = _instructions("c5fd58024883c2204c39c275f3")  # vaddpd ymm0,ymm0,[rdx]; add; cmp; jne
    assert places_of(one, CrossingLoads(None)).starts == {0: (8,)}


def test_an_evaluation_places_arrays_as_the_file_says(tmp_path):
    # vmovupd zmm0,[rdi+rax]; vaddpd zmm0,zmm0,[rsi+rax]; vmulpd zmm1,zmm0,zmm0; add rax,64; cmp rcx,rax; jne
    code = "62f1fd4810040762f1fd4858040662f1fd4859c84883c0404839c175e3"
    path = tmp_path / "loops.csv"
    row = f"x,{code},0,2.3,gcc,"
    path.write_text(f"{HEADER}{row}w=zmm\n{row}w=zmm; cache-line-split loads\n{row}cache-line-split loads 2.00/pass\n")
    source = read_blocks(str(path), core="RWC")
    answer = evaluate_blocks(source, chosen_blocks(source.blocks), Settings(), jobs=1, worst=3)
    predictions = {item.block.line: item.prediction for item in answer.worst}
    assert answer.placed == 2
    assert predictions[3] == predictions[4] == pytest.approx(2 * 1.15)  # what one takes on Redwood Cove
    assert predictions[2] != predictions[3]
