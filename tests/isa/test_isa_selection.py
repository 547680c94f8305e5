"""Machine, core and code are of one instruction set: which is found, and what is said of a mismatch."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel import isa
from kernmodel.code.blocks import block_of_bytes
from kernmodel.code.listing import read_file, read_listing
from kernmodel.errors import AssemblyError, InstructionTableError
from kernmodel.incore.core import Core, Settings, analyse_block

AARCH64 = """\t.arch armv8-a
f:
\tldr\tq0, [x0, x2]
\tfadd\tv0.2d, v0.2d, v1.2d
\tstr\tq0, [x1, x2]
\tadd\tx2, x2, 16
\tcmp\tx2, x3
\tbne\tf
"""


@pytest.mark.parametrize("text", [AARCH64, AARCH64.partition("\n")[2]])
def test_a_listing_of_another_instruction_set_is_named(text: str) -> None:
    with pytest.raises(AssemblyError, match=r"k\.s: looks like AArch64 assembly, not x86-64; use a machine of that"):
        read_listing(text, "k.s", isa_name="x86-64")


def test_code_of_instruction_sets_that_cannot_be_read() -> None:
    with pytest.raises(AssemblyError, match="riscv code cannot be read; use a machine with one of: x86-64, aarch64"):
        isa.isa_of("riscv")


def test_an_object_of_another_instruction_set_is_named(tmp_path: Path) -> None:
    header = bytearray(64)
    header[:7] = b"\x7fELF\x02\x01\x01"
    header[16:24] = (1).to_bytes(2, "little") + (183).to_bytes(2, "little") + (1).to_bytes(4, "little")
    header[52:54] = (64).to_bytes(2, "little")
    (tmp_path / "arm.o").write_bytes(header)
    with pytest.raises(AssemblyError, match=r"holds AArch64 code, not x86-64; use a machine of that architecture"):
        read_file(tmp_path / "arm.o", isa_name="x86-64")


def test_a_core_executes_code_of_its_instruction_set() -> None:
    core = Core.open("SKL", Settings())
    loop = block_of_bytes(bytes.fromhex("4801d8"), file="b")
    assert analyse_block(loop, core, Settings()).prediction > 0
    loop = replace(loop, isa="toy")
    with pytest.raises(InstructionTableError, match=r"is toy code, but Intel Skylake .* executes x86-64"):
        analyse_block(loop, core, Settings())
