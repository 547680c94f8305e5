"""An instruction set of eleven instructions, to prove that one folder is enough: nothing in kernmodel knows of it.

Eight general registers r0 … r7 (r7 is the stack pointer), eight vector registers v0 … v7 of 32 bytes, zero and sign of
the last comparison as flags. Every instruction has four bytes. Operands: the result first.

    ld v, [r+d]     load                    fadd v, v, v    add                    cmp r, r | cmp r, i    compare
    ldi v, [r], i   load, then r += i       fmul v, v, v    multiply               bne label              if not equal
    st v, [r+d]     store                   fma v, v, v     add the product        add r, r, i            r = r + i
    nop             nothing                 ret             return
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from kernmodel.errors import AssemblyError, Location
from kernmodel.isa.assembler import code_lines
from kernmodel.isa.linear import Comparison, Linear, MemoryValues, RegisterValues, address_of
from kernmodel.isa.model import (
    Condition,
    FpKind,
    FpOperation,
    Instruction,
    Listing,
    MemoryReference,
    Operand,
    Precision,
)
from kernmodel.isa.protocol import Effect, Isa, Registers

GENERAL = tuple(f"r{number}" for number in range(8))
_VECTOR_BYTES = 32
_LENGTH = 4
_LABEL = re.compile(r"\s*(\.?\w+):(.*)")
_OPERAND = re.compile(
    r"\[(?P<base>r[0-7])(?P<by>[+-]\d+)?\]|(?P<register>[rv][0-7])|(?P<number>-?\d+)|(?P<label>\.?\w+)"
)
_CODE = re.compile(r"\s*(?:ldi?|st)\s+v[0-7],\s*\[|\s*(?:fadd|fmul|fma)\s+v[0-7],|\s*(?:add|cmp)\s+r[0-7],")

_OPERANDS: dict[str, tuple[str, ...]] = {
    "ld v,m256": ("w", "r"),
    "ldi v,m256,i": ("w", "r", ""),
    "st v,m256": ("r", "w"),
    "fadd v,v,v": ("w", "r", "r"),
    "fmul v,v,v": ("w", "r", "r"),
    "fma v,v,v": ("rw", "r", "r"),
    "add r,r,i": ("w", "r", ""),
    "cmp r,r": ("r", "r"),
    "cmp r,i": ("r", ""),
    "bne rel": ("",),
    "nop": (),
    "ret": (),
}
"""What each form does to its operands: r reads, w writes."""
_BRANCHES: dict[str, Literal["conditional", "return"]] = {"bne": "conditional", "ret": "return"}
_WORK: dict[str, FpOperation] = {"fadd": "add", "fmul": "mul", "fma": "fma"}


class Toy(Isa):
    """The instruction set."""

    name = "toy"
    # a write-back waits for its own base and for nothing else, so every base is a pointer that loads advance
    registers = Registers("r7", frozenset({"r7"}), frozenset(GENERAL), advanced=frozenset(GENERAL))
    vector_bytes = (_VECTOR_BYTES,)

    def read_listing(self, text: str, file: str, syntax: str | None) -> Listing:
        lines, labels = [], dict[str, int]()
        for number, line in enumerate(text.splitlines(), 1):
            code = line.partition("//")[0]
            while match := _LABEL.match(code):
                labels[match[1]] = _LENGTH * len(lines)
                code = match[2]
            if code.strip():
                lines.append((number, " ".join(code.split())))
        if not lines:
            raise AssemblyError("holds no instructions", where=file, todo="give an assembly listing of the loop")
        code = tuple(
            _instruction(text, Location(file, number), _LENGTH * place, labels)
            for place, (number, text) in enumerate(lines)
        )
        return Listing(file, self.name, "toy", code, tuple(sorted(labels.items(), key=lambda label: label[1])))

    def evidence(self, text: str) -> int:
        return sum(bool(_CODE.match(line)) for line in code_lines(text))

    def effect(self, instruction: Instruction, registers: RegisterValues, memory: MemoryValues) -> Effect:
        addresses = tuple(address_of(reference, registers) for reference in instruction.memory)
        match instruction.form:
            case "ldi v,m256,i":
                base, step = instruction.memory[0].base, instruction.operands[2].immediate
                assert base is not None and step is not None
                old = registers(base)
                return Effect(addresses, ((base, old + Linear(step)),) if old else ())
            case "add r,r,i":
                old, step = (_value(operand, registers) for operand in instruction.operands[1:])
                known = ((instruction.operands[0].register or "", old + step),) if old and step else ()
                return Effect(addresses, known)
            case "cmp r,r" | "cmp r,i":
                left, right = (_value(operand, registers) for operand in instruction.operands)
                return Effect(addresses, compared=Comparison(left - right) if left and right else None)
        return Effect(addresses)

    def is_vector(self, operand: Operand) -> bool:
        return operand.kind == "v"

    def condition(self, instruction: Instruction) -> Condition | None:
        return "ne" if instruction.mnemonic == "bne" else None

    def is_padding(self, instruction: Instruction) -> bool:
        return instruction.mnemonic == "nop"

    def fp_kind(self, mnemonic: str) -> FpKind | None:
        return FpKind(((_WORK[mnemonic], 1),), "DP", 8) if mnemonic in _WORK else None

    def is_fp_addition(self, instruction: Instruction) -> bool:
        return instruction.mnemonic == "fadd"

    def fp_forms(self, operation: FpOperation, precision: Precision, lanes: int) -> tuple[str, ...]:
        names = [name for name, work in _WORK.items() if work == operation]
        return tuple(f"{name} v,v,v" for name in names) if (precision, lanes) == ("DP", _VECTOR_BYTES // 8) else ()

    def access_forms(self, kind: Literal["load", "store"]) -> Mapping[int, tuple[str, ...]]:
        return {_VECTOR_BYTES: ("ld v,m256",) if kind == "load" else ("st v,m256",)}


def _value(operand: Operand, registers: RegisterValues) -> Linear | None:
    return Linear(operand.immediate) if operand.immediate is not None else registers(operand.register or "")


def _instruction(text: str, where: Location, address: int, labels: Mapping[str, int]) -> Instruction:
    mnemonic, _, rest = text.partition(" ")
    found = [_OPERAND.fullmatch(part.strip()) for part in rest.split(",")] if rest else []
    matches = [match for match in found if match is not None]
    form = f"{mnemonic} {','.join(map(_kind, matches))}".strip()
    if len(matches) < len(found) or form not in _OPERANDS:
        raise AssemblyError(f"{text!r} is no instruction of toy", where=where, todo="see tests/toy_isa/toy.py")
    operands = tuple(map(_operand, matches, _OPERANDS[form]))
    memory = tuple(operand.memory for operand in operands if operand.memory is not None)
    sources = {operand.register for operand in operands if operand.register and operand.read}
    return Instruction(
        text=text,
        line=where.line or 0,
        address=address,
        length=_LENGTH,
        mnemonic=mnemonic,
        form=form,
        operands=operands,
        implicit_reads=(),
        implicit_writes=tuple(one.base for one in memory if mnemonic == "ldi" and one.base),
        flags_read="ZS" if mnemonic == "bne" else "",
        flags_written="ZS" if mnemonic == "cmp" else "",
        memory=memory,
        branch=_BRANCHES.get(mnemonic),
        target=labels.get(matches[0]["label"]) if mnemonic == "bne" else None,
        same_register=len(sources) == 1,
        vector_bytes=_VECTOR_BYTES if any(operand.kind == "v" for operand in operands) else 0,
        has_mask=False,
        isa="toy",
    )


def _kind(match: re.Match[str]) -> str:
    if match["register"]:
        return match["register"][0]
    return "m256" if match["base"] else "i" if match["number"] else "rel"


def _operand(match: re.Match[str], use: str) -> Operand:
    read, written = "r" in use, "w" in use
    if match["base"] is None:
        number = None if match["number"] is None else int(match["number"])
        return Operand(_kind(match), match["register"], None, number, read, written)
    by = int(match["by"] or 0)
    memory = MemoryReference(match["base"], None, 1, by, None, None, _VECTOR_BYTES, read, written)
    return Operand(_kind(match), None, memory, None, read, written)
