"""Accesses of Zen 4 that cross lines, against loops measured on an EPYC of that core (family 25, model 17)."""

from __future__ import annotations

import pytest

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.core import Core, Settings, analyse_block

LOOPS = {
    # four 256-bit loads of one stream, 8 bytes off its lines: every other one crosses; 1.93 cycles per line
    "every other load crosses": ("c5fc10440608c5fc10440628c5fc10440648c5fc104406684883e8804839c275df", 2 * 1.93),
    # the same at the stream's lines; 1.06 cycles per line
    "no load crosses": ("c5fc100406c5fc10440620c5fc10440640c5fc104406604883e8804839c275e0", 2 * 1.06),
    # five loads, two of which cross in every other pass, and one store (the wave equation in one dimension): 3.50
    "two of five": (
        "c5fd104406f8c5fd58440608c5fd580406c5fd580407c4c17d580400c5fd1104014883c0204839c275d6",
        3.50,
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_a_load_across_lines_takes_both_pipes_in_the_cycle_behind_it(case: str) -> None:
    code, measured = LOOPS[case]
    loop = block_of_bytes(bytes.fromhex(code), file=case)
    found = analyse_block(loop, Core.open("ZEN4", Settings()), Settings(notion="loop"))
    assert found.prediction == pytest.approx(measured, rel=0.06)
