"""What an instruction asks of the processor: instruction set extensions, and a privilege that user code lacks.

Both are iced's knowledge (Intel SDM and AMD64 APM, CPUID features and privilege of each encoding), found again from
the form of a decoded instruction. Where one form has several encodings that the form does not tell apart, an extension
is asked for only if all of them need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

import iced_x86 as iced
from iced_x86 import Code_, CpuidFeature, EncodingKind, OpCodeOperandKind

from kernmodel.isa.model import Instruction

_FEATURES = {value: name for name, value in vars(CpuidFeature).items() if isinstance(value, int)}
_KINDS = {value: name for name, value in vars(OpCodeOperandKind).items() if isinstance(value, int)}
_CODES = cast("tuple[Code_, ...]", tuple(value for value in vars(iced.Code).values() if isinstance(value, int)))
_VECTORS = ("xmm", "ymm", "zmm", "mm", "k")
_EVEX_ONLY = tuple(f"zmm{number}" for number in range(16, 32))
_EVEX_BYTES = 4
_LEGACY_KINDS = frozenset({"st", "mm"})
_ZMM_BYTES = 64


def required_extensions(instruction: Instruction) -> frozenset[str]:
    """The CPUID features (iced's names, `AVX512F`) without which a processor does not know the instruction."""
    return _required(instruction.mnemonic, _kinds(instruction), _is_evex(instruction))


def is_privileged(instruction: Instruction) -> bool:
    """Whether user code may not execute the instruction (`hlt`, `wrmsr`, `in` without permission)."""
    return _privileged(instruction.mnemonic, _kinds(instruction))


def generation(instructions: Sequence[Instruction]) -> str:
    """The newest that a block uses: x87 or MMX, AVX-512, AVX, SSE, or scalar (integers only)."""
    if any(_is_legacy(item) for item in instructions):
        return "x87 or MMX"
    if any(item.vector_bytes == _ZMM_BYTES or item.has_mask for item in instructions):
        return "AVX-512"
    vector = [item for item in instructions if item.vector_bytes]
    if any(item.mnemonic.startswith("v") for item in vector):
        return "AVX"
    return "SSE" if vector else "scalar"


def _is_legacy(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith("f") or not _LEGACY_KINDS.isdisjoint(_kinds(instruction))


def _kinds(instruction: Instruction) -> tuple[str, ...]:
    """The kinds of the explicit operands."""
    return tuple(operand.kind for operand in instruction.operands)


def _is_evex(instruction: Instruction) -> bool:
    """Whether only an EVEX prefix can encode the instruction, or its length of prefix says so."""
    if not instruction.mnemonic.startswith("v"):
        return False
    if (
        instruction.has_mask
        or instruction.vector_bytes == _ZMM_BYTES
        or instruction.encoding.opcode_offset >= _EVEX_BYTES
    ):
        return True
    registers = {operand.register for operand in instruction.operands}
    return not registers.isdisjoint(_EVEX_ONLY) or any(kind.endswith("b") for kind in _kinds(instruction))


@cache
def _required(mnemonic: str, kinds: tuple[str, ...], evex: bool) -> frozenset[str]:
    """The features that every encoding of this form needs; without reason for EVEX, assemblers take another."""
    codes = _encodings(mnemonic, kinds)
    chosen = [code for code in codes if (iced.OpCodeInfo(code).encoding == EncodingKind.EVEX) == evex]
    needs = [_features(code) for code in chosen or codes]
    return frozenset.intersection(*needs) if needs else frozenset()


@cache
def _privileged(mnemonic: str, kinds: tuple[str, ...]) -> bool:
    """Whether every encoding of this form is privileged."""
    codes = _encodings(mnemonic, kinds)
    return bool(codes) and all(iced.OpCodeInfo(code).is_privileged for code in codes)


def _features(code: Code_) -> frozenset[str]:
    """The features of one encoding."""
    instruction = iced.Instruction()
    instruction.code = code
    return frozenset(_FEATURES[feature] for feature in instruction.cpuid_features())


@cache
def _encodings(mnemonic: str, kinds: tuple[str, ...]) -> list[Code_]:
    """iced's codes with this mnemonic and these operands; all with the mnemonic where the operands are implicit."""
    codes = _codes_by_mnemonic().get(mnemonic, [])
    fitting = [code for code in codes if _fits(iced.OpCodeInfo(code), kinds)]
    return fitting or ([] if kinds else codes)


def _fits(code: iced.OpCodeInfo, kinds: tuple[str, ...]) -> bool:
    """Whether an encoding takes operands of these kinds."""
    return code.op_count == len(kinds) and all(map(_takes, code.op_kinds(), kinds))


@cache
def _takes(described: int, kind: str) -> bool:
    """Whether an operand that iced describes so (XMM_OR_MEM) may be of our `kind` (m128)."""
    taken = _KINDS[described]
    if kind.startswith("vsib"):
        return taken.startswith("MEM_VSIB") and taken[-1].lower() == kind[5]
    if kind.startswith("m") and kind != "mm":
        return "MEM" in taken and not taken.startswith("MEM_VSIB")
    if kind in _VECTORS:
        return taken.lower().startswith(kind) and (kind != "k" or taken.startswith("K"))
    if kind in ("cr", "dr", "seg"):
        return taken.lower().startswith(kind)
    return not taken.startswith(("MEM", "CR", "DR", "SEG_REG")) and not taken.lower().startswith(_VECTORS)


@cache
def _codes_by_mnemonic() -> dict[str, list[Code_]]:
    """iced's codes of 64-bit mode by their mnemonic, without those of other kinds of processors (Knights Corner)."""
    names = {value: name.lower() for name, value in vars(iced.Mnemonic).items() if isinstance(value, int)}
    found: dict[str, list[Code_]] = {}
    for code in _CODES:
        what = iced.OpCodeInfo(code)
        if what.mode64 and not what.decoder_option:
            found.setdefault(names[what.mnemonic], []).append(code)
    return found
