"""ELF files: sections, symbols, relocations and line rows as GNU as writes them; damaged sizes are refused."""

from __future__ import annotations

import struct
import subprocess
import sys
from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_elf, read_listing
from kernmodel.errors import AssemblyError
from kernmodel.isa.assembler import assemble
from kernmodel.isa.elf import (
    SYMBOL_FUNCTION,
    SYMBOL_SECTION,
    ElfFile,
    line_rows,
    machine_name,
    read_elf,
    relocations,
)
from kernmodel.isa.x86.listing import target

pytestmark = pytest.mark.needs("as")

SOURCE = """\
	.type f, @function
f:	movsd a+8(%rip), %xmm0
	call g
	.size f, .-f
	.data
	.zero 4
a:	.zero 64
	.size a, 64
"""
HEADER = 64
SECTION_SIZE = 32
"""Bytes of a section header, and the place of sh_size in it."""


def elf_of(source: str) -> ElfFile:
    return read_elf(assemble(source, target("att"), file="x"), "x")


def number(elf: ElfFile, name: str) -> int:
    return [section.name for section in elf.sections].index(name)


def test_sections_and_symbols() -> None:
    elf = elf_of(SOURCE)
    text, data = number(elf, ".text"), number(elf, ".data")
    assert (elf.machine, elf.relocatable) == ("EM_X86_64", True)
    assert [section.name for section in elf.sections if section.executable] == [".text"]
    assert elf.sections[text].data[:4] == bytes.fromhex("f20f1005")
    symbols = {symbol.name: symbol for symbol in elf.symbols}
    assert (symbols["f"].section, symbols["f"].value, symbols["f"].kind) == (text, 0, SYMBOL_FUNCTION)
    assert (symbols["a"].section, symbols["a"].value, symbols["a"].size) == (data, 4, 64)
    assert symbols["g"].section is None
    assert (symbols[".data"].section, symbols[".data"].kind) == (data, SYMBOL_SECTION)


def test_relocations_by_the_offset_of_their_field() -> None:
    elf = elf_of(SOURCE)
    found = relocations(elf, number(elf, ".text"))
    assert {offset: (item.symbol.name, item.addend) for offset, item in found.items()} == {
        4: (".data", 8),  # a + 8 is 12 in .data, counted from the end of the field
        9: ("g", -4),
    }
    assert relocations(elf, number(elf, ".data")) == {}


@given(st.lists(st.sampled_from([".text", ".text.hot", ".text.b"]), min_size=1, max_size=12))
def test_each_line_has_its_row_in_its_section(places: list[str]) -> None:
    elf = elf_of("".join(f'\t.section {place},"ax"\n\tnop\n' for place in places))
    expected = []
    for place in sorted(set(places), key=lambda place: number(elf, place)):
        lines = [2 * i + 2 for i, other in enumerate(places) if other == place]
        expected += [(number(elf, place), address, line) for address, line in enumerate(lines)]
    assert [tuple(row) for row in line_rows(elf)] == expected


def test_no_rows_without_code() -> None:
    assert line_rows(elf_of("\t.data\n\t.long 1\n")) == ()


@pytest.mark.parametrize("name", [".text", ".symtab", ".rela.text"])
@pytest.mark.parametrize("size", [1 << 20, 1 << 40, 1 << 63, (1 << 64) - 24])
def test_sizes_beyond_the_file_are_damage(name: str, size: int) -> None:
    data = bytearray(assemble(SOURCE, target("att"), file="x"))
    elf = read_elf(bytes(data), "x")
    (table,) = struct.unpack_from("<Q", data, 40)
    struct.pack_into("<Q", data, table + HEADER * number(elf, name) + SECTION_SIZE, size)
    with pytest.raises(AssemblyError, match="x: is a damaged ELF file"):
        decode_elf(bytes(data), "x")


BROKEN = [".long 1", ".long 200, 3, 4", ".long 20; .value 3; .long 0; .zero 14", ".byte 1"]


def with_debugging(section: str, content: str) -> str:
    return f"\t.pushsection {section}\n\t{content}\n\t.popsection\nf:\tincl %eax\n\tjne f\n"


@pytest.mark.parametrize("content", BROKEN)
def test_line_programs_in_a_listing_that_break_its_rows(content: str) -> None:
    with pytest.raises(AssemblyError, match=r"^x: has debugging sections that hide its lines; leave them out"):
        read_listing(with_debugging(".debug_line", content), "x")


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev"])
@pytest.mark.parametrize("content", BROKEN)
def test_other_debugging_sections_in_a_listing_do_not_matter(section: str, content: str) -> None:
    found = read_listing(with_debugging(section, content), "x").instructions
    assert [(one.mnemonic, one.line) for one in found] == [("inc", 4), ("jne", 5)]


def test_line_programs_are_read_as_pyelftools_reads_them() -> None:
    far = "".join(f"\t.skip {300 * k}, 0x90\n" + "\n" * (150 * k) + f"\taddl ${k}, %eax\n" for k in range(1, 12))
    data = assemble(f'\t.text\nf:\n{far}\t.section .text.b,"ax"\n\tret\n', target("att"), file="x")
    dwarf = ELFFile(BytesIO(data)).get_dwarf_info(relocate_dwarf_sections=True, follow_links=False)
    (unit,) = dwarf.iter_CUs()
    states = [entry.state for entry in dwarf.line_program_for_CU(unit).get_entries() if entry.state]
    expected = {(state.address, state.line) for state in states if not state.end_sequence}
    assert {row[1:] for row in line_rows(read_elf(data, "x"))} == expected


def test_machine_names() -> None:
    assert machine_name("EM_AARCH64") == "AArch64"
    assert machine_name(65000) == "ELF machine 65000"


def test_the_package_is_imported_without_pyelftools() -> None:
    imported = "any(name.split('.')[0] == 'elftools' for name in sys.modules)"
    program = f"import sys, kernmodel.isa.x86.listing; sys.exit({imported})"
    subprocess.run([sys.executable, "-c", program], check=True)
