"""How the bytes of an instruction are laid out: what a predecoder and a µop cache see of it.

Prefixes, escape bytes and fields are those of the Intel SDM, vol. 2, chapter 2.
"""

from __future__ import annotations

import iced_x86 as iced

from kernmodel.isa.model import Encoding

_OPERAND_SIZE = 0x66
_ADDRESS_SIZE = 0x67
_LEGACY_PREFIXES = bytes((_OPERAND_SIZE, _ADDRESS_SIZE, 0xF2, 0xF3, 0xF0, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65))
_REX = range(0x40, 0x50)
_VECTOR_PREFIXES = {0xC5: 2, 0xC4: 3, 0x62: 4}
"""First byte and length of the VEX and EVEX prefixes (their bytes stand for 66h, F2h, F3h, REX and the escape)."""
_ESCAPE = 0x0F
_SECOND_ESCAPES = b"\x38\x3a"
_UNSIZED_IMMEDIATES = b"\xc2\xca\xc8"
"""Opcodes without escape whose 16-bit immediate has that size with any prefix: ret, retf, enter."""
_OFFSET_MOVES = b"\xa0\xa1\xa2\xa3"
"""The moves between rax and an absolute address, whose length 67h changes."""


def encoding_of(code: bytes, start: int, constants: iced.ConstantOffsets) -> Encoding:
    """The layout of the instruction at offset `start` of `code`; `constants` is what iced says about its fields."""
    position = start
    operand_size = address_size = False
    while (byte := code[position]) in _LEGACY_PREFIXES:
        operand_size |= byte == _OPERAND_SIZE
        address_size |= byte == _ADDRESS_SIZE
        position += 1
    if byte in _REX:
        position += 1
        byte = code[position]
    escaped = byte == _ESCAPE
    if escaped:
        position += 2 if code[position + 1] in _SECOND_ESCAPES else 1
    else:
        position += _VECTOR_PREFIXES.get(byte, 0)
    shortened = operand_size and constants.immediate_size == 2 and (escaped or byte not in _UNSIZED_IMMEDIATES)
    return Encoding(
        opcode_offset=position - start,
        length_changing_prefix=shortened or (address_size and not escaped and byte in _OFFSET_MOVES),
        displacement_offset=constants.displacement_offset,
        displacement_bytes=constants.displacement_size,
        immediate_offset=constants.immediate_offset,
        immediate_bytes=constants.immediate_size,
    )
