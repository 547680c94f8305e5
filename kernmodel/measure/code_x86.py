"""x86-64 code around what is measured: functions as the harness calls them, in bytes.

A function gets how often it is to repeat itself in rdi, an argument in rsi and the buffers in rdx. All registers belong
to what is measured; what the function itself needs lies at an address that fits 32 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.measure.host_topology import features_of, first_processor

SAVE, DATA = 0x22000000, 0x24000000
"""As in native/harness.c: what functions save, and the first page of data."""
GENERAL = (
    *("rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)
_SAVED = ("rbx", "rbp", "r12", "r13", "r14", "r15")
_REPETITIONS, _ARGUMENT, _BUFFERS = SAVE + 8, SAVE + 16, SAVE + 24
_NUMBERS = {"d": SAVE + 256, "s": SAVE + 512}
_WORDS = {"d": 0x3FF00000, "s": 0x3F800001}
"""By precision: where a vector of numbers near 1 stands, and the four bytes that it repeats, as in native/harness.c."""
_PAGE = 4096
_APART, _SHIFT = 0x100000, 0x100
"""Bytes between the places that registers point to, and how far each is moved against a page."""


@cache
def host_features() -> frozenset[str]:
    """The extensions of this host's processors, as Linux names them (avx2, fma, avx512f)."""
    return features_of(first_processor())


def vector_bytes() -> int:
    """Bytes of the widest vector registers of this host."""
    features = host_features()
    return 64 if {"avx512f", "avx512vl"} <= features else 32 if "avx" in features else 16


def vector_move(width: int) -> tuple[str, str]:
    """The name of vector registers of so many bytes, without their number, and the instruction that moves one."""
    return {64: ("zmm", "vmovups"), 32: ("ymm", "vmovups"), 16: ("xmm", "movups")}[width]


def assembled(text: str) -> bytes:
    """The machine code of lines in Intel syntax.

    Raises:
        AssemblyError: the assembler rejects a line; ToolError: there is none.
    """
    return isa_of("x86-64").assemble(f"{text}\n", "<code to be measured>", "intel")


def start_value(register: str) -> int:
    """What a general register holds before each pass over the copies: an address in a stretch of its own."""
    number = (*GENERAL, "rsp").index(register)
    return DATA + (number + 1) * _APART + number * _SHIFT


def function(
    body: str, *, set_up: bool = True, instructions: Collection[Instruction] = (), first: Sequence[str] = ()
) -> bytes:
    """A function that repeats `body` as often as it is told, with fences around it.

    Args:
        set_up: whether registers are set before each repetition.
        instructions: of the body, by which vector registers and the data are set.
        first: lines before the body, each repetition, that set registers to other values.
    """
    lines = [*(f"push {name}" for name in _SAVED), f"mov qword ptr ds:[{SAVE}], rsp"]
    for name, place in (("rdi", _REPETITIONS), ("rsi", _ARGUMENT), ("rdx", _BUFFERS)):
        lines.append(f"mov qword ptr ds:[{place}], {name}")
    if set_up:
        lines += [*_data(instructions), *_vectors(instructions)]
    lines.append("7:")
    if set_up:
        lines += [f"mov {name}, {start_value(name)}" for name in (*GENERAL, "rsp")]
    lines += [*first, "lfence", body, "lfence", f"dec qword ptr ds:[{_REPETITIONS}]", "jnz 7b"]
    lines += [f"mov rsp, qword ptr ds:[{SAVE}]", *(["vzeroupper"] if "avx" in host_features() else [])]
    lines += [*(f"pop {name}" for name in reversed(_SAVED)), "cld", "ret"]
    return assembled("\n".join(lines))


def _precision(instructions: Collection[Instruction]) -> str:
    """ "s" or "d" where all floating-point instructions are of this precision, else ""."""
    found = {item.mnemonic[-1] for item in instructions if item.mnemonic.endswith(("ps", "ss", "pd", "sd"))}
    return found.pop() if len(found) == 1 else ""


def _data(instructions: Collection[Instruction]) -> list[str]:
    """Floating-point code finds numbers near 1, since the pointers that are there count as zero, by which divisions
    take longer; not where it loads what may be an address."""
    precision = _precision(instructions)
    if not precision or any(_loads_general(item) for item in instructions):
        return []
    return ["cld", f"mov edi, {DATA}", f"mov ecx, {_PAGE // 4}", f"mov eax, {_WORDS[precision]}", "rep stosd"]


def _loads_general(item: Instruction) -> bool:
    return any(reference.read for reference in item.memory) and any(name in GENERAL for name in item.registers_written)


def _vectors(instructions: Collection[Instruction]) -> list[str]:
    """Every vector register holds numbers near 1, in the precision of the code, and masks are full; the upper parts are
    zero for SSE code."""
    legacy = bool(instructions) and not any(item.mnemonic.startswith(("v", "k")) for item in instructions)
    numbers = _NUMBERS[_precision(instructions) or "d"]
    width = 16 if legacy else vector_bytes()
    name, move = vector_move(width)
    lines = ["vzeroupper"] if legacy and "avx" in host_features() else []
    lines += [f"{move} {name}{n}, [{numbers}]" for n in range(32 if width == 64 else 16)]
    if vector_bytes() == 64 and not legacy:
        lines += [f"kxnorw k{n}, k{n}, k{n}" for n in range(1, 8)]
    return lines


def as_bytes(code: bytes) -> str:
    """A line that puts these bytes."""
    return f".byte {', '.join(map(str, code))}" if code else ""


def repeated(code: bytes, copies: int) -> str:
    """So many copies of the code, or twice as many where the argument is 2."""
    once = f".rept {copies}\n{as_bytes(code)}\n.endr"
    # the flags that the comparison writes are those of no copy
    return f"cmp qword ptr ds:[{_ARGUMENT}], 2\njne 8f\n{once}\n8:\n{once}"


def counted(code: bytes, counter: str, *, offset: int = 0) -> str:
    """The code as a loop of as many passes as the argument says, closed by `dec counter; jnz`."""
    return f"mov {counter}, qword ptr ds:[{_ARGUMENT}]\n{aligned(offset)}9:\n{as_bytes(code)}\ndec {counter}\njnz 9b"


def aligned(offset: int) -> str:
    """Lines after which the address modulo 64 is `offset`."""
    return f".p2align 6\n.nops {offset}\n" if offset else ".p2align 6\n"


def trips_into(register: str, step: int, start: int) -> tuple[str, ...]:
    """Lines that set a register to start + step × argument."""
    return (
        f"mov {register}, qword ptr ds:[{_ARGUMENT}]",
        f"imul {register}, {register}, {step}",
        f"add {register}, {start}",
    )
