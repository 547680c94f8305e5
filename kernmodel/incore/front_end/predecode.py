"""The predecoder: finds where instructions begin, in aligned blocks of 16 bytes (Facile, section 4.3)."""

from __future__ import annotations

from math import gcd

from kernmodel.incore.front_end.model import FrontEndBlock
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.isa.model import Notion


def predecode_bound(block: FrontEndBlock, core: FrontEndParameters, notion: Notion, offset: int) -> float:
    """Predec: cycles per execution to predecode the block whose first byte has the address `offset`.

    Σ_b cycles(b) / u over the fetched blocks b (`fetch_cycles`) of u executions: the least number after which the code
    stands at the same place in them if it is unrolled (u = lcm(length, 16) / length), 1 if it is a loop (Facile,
    section 4.3).
    """
    return sum(fetch_cycles(block, core, notion, offset)) / _executions(block, core, notion)


def fetch_cycles(block: FrontEndBlock, core: FrontEndParameters, notion: Notion, offset: int) -> list[int]:
    """Cycles that each fetched block takes, from the one that holds the first byte on, until the pattern repeats.

    With L(b) the instructions that end in the b-th fetched block, O(b) those whose nominal opcode is in it but whose
    end is not, and LCP(b) those with a length-changing prefix whose nominal opcode is in it,

        cycles(b) = n(b) + max(0, penalty · LCP(b) − (n(b−1) − 1)),    n(b) = ⌈(L(b) + O(b)) / width⌉

    (Facile, section 4.3), n(b) at least 1. At most one instruction lies across the end of a fetched block, so O(b) is 0
    or 1.
    """
    work = unrolled_work(block, core, offset) if notion == "unrolled" else loop_work(block, core, offset)
    width = core.predecode_width
    cycles = [-(-count // width) or 1 for count in work]  # prefixes alone, before a loop's first fetch ends, take one
    if not block.prefixed:
        return cycles
    prefixed = _prefixed(block, core, offset, _executions(block, core, notion), len(cycles))
    hidden = [before - 1 for before in (cycles[-1], *cycles)]
    return [
        own + max(0, core.prefix_cycles * count - behind) if count else own
        for own, count, behind in zip(cycles, prefixed, hidden, strict=False)
    ]


def _executions(block: FrontEndBlock, core: FrontEndParameters, notion: Notion) -> int:
    """u: executions after which the pattern repeats."""
    size = core.predecode_bytes
    return size // gcd(block.length, size) if notion == "unrolled" else 1


def unrolled_work(block: FrontEndBlock, core: FrontEndParameters, offset: int) -> list[int]:
    """L(b) + O(b) of the fetched blocks of unrolled code, from the one that holds the first byte of a copy on."""
    size, length = core.predecode_bytes, block.length
    ends = list(block.ends)
    while len(ends) <= length + size:  # the code goes on behind its end
        whole = ends[-1]
        ends += [whole + count for count in block.ends[1 : size + 1]]
    cut = block.cut
    first = -(offset % size)
    starts = [(first + number * size) % length for number in range(length // gcd(length, size))]
    return [ends[start + size] - ends[start] + cut[(start + size) % length] for start in starts]


def loop_work(block: FrontEndBlock, core: FrontEndParameters, offset: int) -> list[int]:
    """L(b) + O(b) of the fetched blocks that one pass of a loop lies in."""
    size, length, ends, cut = core.predecode_bytes, block.length, block.ends, block.cut
    work = []
    before = 0
    for bound in (*range(size - offset % size, length, size), length):
        work.append(ends[bound] - before + cut[bound])
        before = ends[bound]
    return work


def _prefixed(block: FrontEndBlock, core: FrontEndParameters, offset: int, executions: int, blocks: int) -> list[int]:
    """LCP(b) of the fetched blocks of so many executions; unrolled code comes round to the first one."""
    counts = [0] * blocks
    first = offset % core.predecode_bytes
    for execution in range(executions):
        for opcode in block.prefixed:
            position = first + execution * block.length + opcode
            counts[position // core.predecode_bytes % blocks] += 1
    return counts
