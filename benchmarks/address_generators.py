"""Loads and stores in groups: what dispatch and the address generators of this host's core make of their order.

    python benchmarks/address_generators.py --core ZEN3 [--patterns LLLLSS,LLLLLLLLSSSS]

A pattern is a loop body, a letter an instruction: L a load of a vector and S a store of one, g a load and s a store of
a general-purpose register, C and c loads of both kinds that cross lines, a dot an eliminated move. Eight copies of it
to a branch; printed are its cycles here and by the model of a core, and how far these are apart. Without `--patterns`
those from which the figures of Zen 3 were read, then some in random order.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from random import Random

import kernmodel as km
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import measure_block
from kernmodel.measure.host import Effort, Harness

COPIES = 8
EFFORT = Effort(40, 2, 1.5)
_LINES = {
    "L": "vmovups ymm{n}, [rsi+{place}]",
    "S": "vmovups [rsi+{place}+1024], ymm{n}",
    "g": "mov r1{n}, [rsi+{place}]",
    "s": "mov [rsi+{place}+1024], rax",
    "C": "vmovups ymm{n}, [rsi+2*{place}+48]",
    "c": "mov r1{n}, [rsi+2*{place}+60]",
    ".": "mov rax, rbx",
}
_ROOMS = (*("L" * 2 * n + "S" * n for n in (1, 2, 3, 4)), *("L" * n + "S" * m for n, m in ((8, 2), (9, 3), (12, 4))))
_SLOTS = ("LLL", "LLLL", "LLLLL", "ggg", "gggg", "gggggg", "ssss", "SS", "gggLL")
_MIXED = ("LLLg", "LLLLLLLLgggg", "LLgg", "LLLLggSS", "cccc", "CCCC", "CLCL")


def patterns() -> Iterator[str]:
    """Those that are made without `--patterns`."""
    yield from _ROOMS
    yield from (accesses + "." * (15 - len(accesses)) for accesses in _SLOTS)
    yield from _MIXED
    random = Random(7)
    for accesses in ("LLLLSS......", "LLLLLLSSS.........", "LLLLLLLLSSSS", "LLLLggSS") * 5:
        yield "".join(random.sample(accesses, len(accesses)))


def code_of(pattern: str) -> bytes:
    """The loop of eight copies."""
    lines, counts = [], dict.fromkeys(_LINES, 0)
    for letter in pattern:
        count = counts[letter]
        lines.append(_LINES[letter].format(n=count % 4, place=32 * (count % 16)))
        counts[letter] += 1
    return x86.assembled("\n".join(["0:", *lines * COPIES, "dec rdi", "jnz 0b"]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", default="ZEN3")
    parser.add_argument("--patterns", help="in place of those, with commas between them")
    asked = parser.parse_args()
    with Harness() as harness:
        harness.seal()
        for pattern in asked.patterns.split(",") if asked.patterns else patterns():
            code = code_of(pattern)
            cycles = measure_block(harness, code, notion="loop", effort=EFFORT).cycles
            said = km.analyse_loop(code, uarch=asked.core).answer.incore.prediction / COPIES
            if cycles.confirmed:
                here = cycles.value / COPIES
                print(f"{pattern:20} {here:6.2f} {said:6.2f} {100 * (said / here - 1):+5.0f} %", flush=True)
            else:
                print(f"{pattern:20} not confirmed", flush=True)


if __name__ == "__main__":
    main()
