"""Whether loads of this host's first cache collide in a way predictor, and whether that is why streams in L1 are slow.

    python benchmarks/way_prediction.py

AMD's L1 data caches choose the way that a load reads by a hash of its linear address, the microtag; of two lines of one
set with the same microtag only one can be found, so that loads of both in turn go to L2 each time (M. Lipp et al., Take
A Way: exploring the security implications of AMD's cache way predictors, ASIA CCS 2020; the hash of Zen to Zen 2 is
theirs). First the hash is found: a chain of loads alternates between two addresses that differ in one bit or in two.
Then a stream of two loads, an addition and a store walks arrays whose lines collide, and arrays of which none do, each
placed and timed several times: if collisions are the reason for what varies, arrays without any do not vary.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, level_sizes
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import host_topology

PUBLISHED = ((12, 27), (13, 26), (14, 25), (15, 20), (16, 21), (17, 22), (18, 23), (19, 24))
"""Bits of a linear address of which each bit of the microtag is the exclusive or."""
LOWEST, HIGHEST = 12, 28
SPAN = 1 << HIGHEST
PLACE = 5 * 4096 + 9 * LINE
"""Of the first address, in a multiple of `SPAN`."""
STREAM_BYTES, STEP, SWEEPS = 8192, 32, 64
SETS = 64
SLOW = 1.5
"""Times what a load takes alone from which on two addresses are said to collide."""
EFFORT = Effort(15, 2, 0.5)


def microtag(address: int, bits: Sequence[tuple[int, int]] = PUBLISHED) -> int:
    """The microtag of the line with this linear address."""
    return sum((address >> low ^ address >> high & 1) % 2 << at for at, (low, high) in enumerate(bits))


def colliding(arrays: Iterable[tuple[int, int]], bits: Sequence[tuple[int, int]] = PUBLISHED) -> int:
    """Lines of arrays, given by address and bytes, that share set and microtag with another one."""
    lines = {line for start, size in arrays for line in range(start // LINE, (start + size - 1) // LINE + 1)}
    shared = Counter((line % SETS, microtag(line * LINE, bits)) for line in lines)
    return sum(count for count in shared.values() if count > 1)


def chain() -> bytes:
    """Loads of zeros at two addresses in turn, each of which waits for the one before."""
    pair = ["mov rax, [r8+rax]", "mov rax, [r9+rax]"]
    lines = ["mov r8, [rdx+8]", "mov r9, [rdx+16]", "xor eax, eax", ".p2align 6", "9:", *pair * 4, "dec rsi", "jnz 9b"]
    return x86.function("\n".join(lines), set_up=False)


def stream() -> bytes:
    """As many sweeps as the argument says over three arrays: two are loaded, their sum is stored in the third."""
    body = ["vmovupd ymm0, [r8+rax]", "vaddpd ymm1, ymm0, [r9+rax]", "vmovupd [r10+rax], ymm1"]
    starts = [f"mov r{8 + at}, [rdx+{8 * (1 + at)}]" for at in range(3)]
    sweep = ["8:", "xor eax, eax", ".p2align 6", "9:", *body, f"add rax, {STEP}", f"cmp rax, {STREAM_BYTES}", "jb 9b"]
    return x86.function("\n".join([*starts, *sweep, "dec rsi", "jnz 8b"]), set_up=False)


def load_cycles(harness: Harness, first: int, second: int) -> float:
    """Cycles of one of the chain's loads, at these addresses in turn; 0 where too few samples count."""
    for number, address in enumerate((first, second), 1):
        harness.value(number, address)
    return harness.figure([Case(1, 500), Case(1, 1000)], lambda ends: (ends[1] - ends[0]) / 4000, EFFORT).value


def hash_of(harness: Harness, first: int) -> tuple[tuple[int, int], ...]:
    """The pairs of bits of which two addresses may differ in both and collide; prints what is found."""
    harness.load(chain())
    alone = load_cycles(harness, first, first + LINE)
    print(f"a load alone takes {alone:.2f} cycles")
    found: dict[tuple[int, ...], float] = {}
    single = [(bit,) for bit in range(LOWEST, HIGHEST)]
    for bits in (*single, *combinations(range(LOWEST, HIGHEST), 2)):
        cycles = load_cycles(harness, first, first ^ sum(1 << bit for bit in bits))
        if cycles > SLOW * alone:
            found[bits] = cycles
            print(f"addresses that differ in {' and '.join(f'bit {bit}' for bit in bits)} collide: {cycles:.2f} cycles")
    pairs = tuple((bits[0], bits[1]) for bits in found if len(bits) > 1)
    said = "as published" if pairs == PUBLISHED else "not as published for Zen to Zen 2" if found else "none is seen"
    print(f"the hash: {said}")
    return pairs


def stream_range(harness: Harness, starts: Sequence[int], times: int) -> str:
    """The cycles of a pass, from lowest to highest of so many times that the arrays are timed anew."""
    for number, start in enumerate(starts, 1):
        harness.value(number, start)
    passes = SWEEPS * STREAM_BYTES // STEP
    found = []
    for _ in range(times):
        harness.load(stream())
        figure = harness.figure([Case(1, SWEEPS)], lambda ends: ends[0] / passes, EFFORT)
        found += [figure.value] if figure.value else []
    return f"{min(found):.2f} to {max(found):.2f} cycles a pass" if found else "too few samples count"


def main() -> None:
    """Print the hash, what streams take with collisions and without, and whether `measure` places arrays so."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=12, help="how often each stream is timed anew")
    given = parser.parse_args()
    with Harness() as harness:
        base = harness.buffer(0, Buffer(2 * SPAN, fill="zero")).address
        first = (base + SPAN - 1) // SPAN * SPAN + PLACE
        pairs = hash_of(harness, first) or PUBLISHED
        far = (1 << pairs[0][0] | 1 << pairs[0][1], 1 << pairs[1][0] | 1 << pairs[1][1])
        places = {
            "no line collides": (first, first + 2 * STREAM_BYTES, first + 4 * STREAM_BYTES),
            "all lines collide": (first, first ^ far[0], first ^ far[1]),
        }
        for name, starts in places.items():
            count = colliding([(start, STREAM_BYTES) for start in starts], pairs)
            print(f"{name} ({count} lines): {stream_range(harness, starts, given.times)}", flush=True)
        size = level_sizes(host_topology())["L1"]
        for arrays in (2, 3, 4, 8):
            each = size // arrays
            placed = [(harness.buffer(9 + n, Buffer(each, n * APART)).address, each) for n in range(arrays)]
            print(f"{arrays} arrays as `measure` places them: {colliding(placed, pairs)} lines collide")


if __name__ == "__main__":
    main()
