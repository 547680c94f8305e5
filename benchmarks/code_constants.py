"""What loops with many displacements and immediates take on this host, beside the model of a core.

    python benchmarks/code_constants.py [LETTERS ...] [--random N] [--seed N] [--core NAME]

Loops of letters, closed by dec and jnz, are timed: those of docs/front-end.md, those that are named, or N random ones
of 5 to 20 letters. A letter is a slot:

    . an eliminated move, f an addition of registers (lea), d and D the same with a constant of 1 and 4 bytes, v and w a
    shift of a vector by a constant and by a register, q a constant of 8 bytes (mov), k, l, K loads without, with a
    displacement of 1 and 4 bytes, h and H cmp with memory, a displacement or an immediate, c and C with both, p a
    shuffle of what is loaded with both
"""

from __future__ import annotations

import argparse
from random import Random

from vector_places import compare, error_of, share_of

from kernmodel.incore.core import Core, Settings
from kernmodel.measure.host import Harness

_LINES = {
    ".": "mov r15, r14",
    "f": "lea r9, [r10+r11]",
    "d": "lea r9, [r10+5]",
    "D": "lea r9, [r10+0x12345]",
    "v": "vpsllq xmm2, xmm3, 4",
    "w": "vpsllq xmm2, xmm3, xmm4",
    "q": "mov r9, 0x123456789ab",
    "k": "mov r9, [rsi]",
    "l": "mov r9, [rsi+8]",
    "K": "mov r9, [rsi+0x200]",
    "h": "cmp dword ptr [rsi+8], r10d",
    "H": "cmp dword ptr [rsi], 5",
    "c": "cmp dword ptr [rsi+8], 5",
    "C": "cmp dword ptr [rsi+0x210], 0x12345",
    "p": "vpshufd xmm6, [rsi+16], 5",
}
_LOOPS = (
    *("cc", "ccc", "CCC", "hhh", "HHH", "ccc..", "cpp", "cppcpp", "cppddv", "qqq..", "cqpqpq"),
    *(
        "dddd....",
        "DDDD....",
        "DDD.....",
        "ddddv...",
        "ddddvv..",
        "q.......",
        "qq......",
        "DDDDdvv",
        "DDDDDvv",
        "DDDDDv",
    ),
    *("DDDKKKDDDKKKDDD", "DDDKKKDDDKKK", "cqpqpqcqpqpqcqpqpq", "cppddvcppddvcppddvcppddv"),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loops", nargs="*", default=_LOOPS)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--core", default="ZEN4")
    options = parser.parse_args()
    draw = Random(options.seed)
    drawn = ["".join(draw.choices("".join(_LINES), k=draw.randint(5, 20))) for _ in range(options.random)]
    core, errors = Core.open(options.core, Settings()), list[float]()
    with Harness() as harness:
        for loop in drawn or options.loops:
            measured, predicted = compare(harness, [_LINES[letter] for letter in loop], core)
            errors.append(error_of(measured, predicted))
            print(f"{loop:26} {measured:6.2f} {predicted:6.2f}", flush=True)
    print(share_of(errors))


if __name__ == "__main__":
    main()
