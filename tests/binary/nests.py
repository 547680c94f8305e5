"""Functions made by hand: blocks of given bytes with given successors, and occurrences that a nest would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.program import BasicBlock, CodeRange, Ending, Function, Loop
from kernmodel.code.blocks import decode_block

START = 0x1000
ADD_STREAM = "c5fd1006c5f558c84883c62048ffc975ef"
"""vmovupd ymm0,[rsi]; vaddpd ymm1,ymm1,ymm0; add rsi,32; dec rcx; jne: a chain of 3 cycles on Zen 3."""
COPY_STREAM = "c5fd1006c5fd11074883c62048ffc975ef"
"""vmovupd ymm0,[rsi]; vmovupd [rdi],ymm0; add rsi,32; dec rcx; jne: no chain but those of one cycle."""
CLEAR_SUM = "c5f157c9b910000000"
"""vxorpd xmm1,xmm1,xmm1; mov ecx,16"""
NEXT_ROW = "48ffca75de"
"""dec rdx; jne"""
RETURN = "c3"

_ENDINGS: Mapping[str | None, Ending] = {
    None: "falls",
    "conditional": "branches",
    "jump": "jumps",
    "return": "returns",
    "call": "calls",
}


def function(code: Sequence[tuple[str, Sequence[int]]], loops: Sequence[Loop]) -> Function:
    """A function of blocks that stand one behind the other: bytes in hex digits, and the numbers of the successors."""
    addresses = []
    at = START
    for digits, _ in code:
        addresses.append(at)
        at += len(digits) // 2
    blocks = []
    for address, (digits, successors) in zip(addresses, code, strict=True):
        data = bytes.fromhex(digits)
        instructions = decode_block(data, file="made", address=address)
        ending = _ENDINGS[instructions[-1].branch]
        blocks.append(BasicBlock(address, data, instructions, tuple(addresses[n] for n in successors), ending))
    return Function("made", "made", "x86-64", START, tuple(blocks), tuple(loops), (CodeRange("made", START, at),))


def two_loops(body: str = ADD_STREAM) -> Function:
    """Rows of a stream: a loop of one block in a loop, block by block: entry, row, body, end of the row, return."""
    row, inner = START + 3, START + 3 + len(CLEAR_SUM) // 2
    end = inner + len(body) // 2
    return function(
        [("4831c0", [1]), (CLEAR_SUM, [2]), (body, [3, 2]), (NEXT_ROW, [4, 1]), (RETURN, [])],
        [Loop(row, frozenset({row, inner, end}), None, 1), Loop(inner, frozenset({inner}), row, 2)],
    )


def counted(made: Function, rows: int, passes: int, calls: int = 1) -> Occurrences:
    """What is counted of `two_loops` with so many rows of so many passes in each call."""
    entry, row, inner, end, last = (block.address for block in made.blocks)
    all_rows = rows * calls
    blocks = {entry: calls, row: all_rows, inner: all_rows * passes, end: all_rows, last: calls}
    edges = {
        (entry, row): calls,
        (row, inner): all_rows,
        (inner, inner): all_rows * (passes - 1),
        (inner, end): all_rows,
        (end, row): all_rows - calls,
        (end, last): calls,
    }
    return Occurrences(blocks, edges, calls, "re-encoded")
