"""Mutated AArch64 listings through the grammar and the search for loops: a message, never a traceback.

    python benchmarks/aarch64_fuzz.py [--seed 1] [--listings 100000]

Lines of the listings below lose, double and exchange characters, operands and lines, or take those of other lines and
of other languages. What raises anything but an error of kernmodel's own is printed with its listing.
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
from collections import Counter

from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.errors import KernmodelError

SEEDS = (
    ".L3:\n ldr q1, [x1, x3]\n ldr q2, [x2, x3]\n fmla v1.2d, v2.2d, v0.2d\n str q1, [x0, x3]\n add x3, x3, #16\n"
    " cmp x3, x4\n b.ne .L3\n",
    ".LBB0_2: // =>This Inner Loop Header: Depth=1\n ldp q0, q1, [x9, #-32]\n fadd v0.2d, v0.2d, v2.2d\n"
    " stp q0, q1, [x10], #32\n subs x8, x8, #4\n b.ne .LBB0_2\n",
    ".L4: ld1d z0.d, p0/z, [x0, x3, lsl 3]\n movprfx z1, z2\n fmla z1.d, p0/m, z0.d, z2.d\n"
    " st1d z1.d, p0, [x1, x3, lsl #3]\n incd x3\n whilelo p0.d, x3, x4\n b.any .L4\n",
    "1: ld2 {v0.2d-v1.2d}, [x1], 32\n ld1 {v2.d}[1], [x2]\n fcvtzs w3, d1\n csel x1, x2, x3, ne\n madd x1, x2, x3, x4\n"
    " ldr d0, [x1, w2, sxtw #3]\n prfm pldl1keep, [x0, 64]\n tbz w3, #4, 1b\n",
    "f:\n .cfi_startproc\n adrp x0, a\n ldr x1, [x0, :lo12:a]\n movi v0.16b, 0xff\n fmov d1, 1.0e+0\n"
    " .inst 0xd503201f\n mov x1, 111\n nop\n b.eq f\n ret\n",
)
PIECES = (
    *("[", "]", "{", "}", "#", ",", "!", "x31", "v0.3d", "z0.d", "p16", ":lo12:", "lsl", "mul vl", "@", "//", "%eax"),
    *(
        '"',
        "\\",
        "9" * 40,
        "-",
        "0x",
        "",
        "\x00",
        "é",
        "{v0.2d-v40.2d}",
        "[x0, x1, x2]",
        "mov",
        "b",
        "1f",
        ";",
        "/*",
        "*/",
    ),
)


def mutated(chance: random.Random) -> str:
    """One of the listings with one to six changes."""
    text = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 6)):
        place, kind = chance.randrange(len(text) + 1), chance.randrange(7)
        lines = text.splitlines(keepends=True)
        if kind == 0:
            text = text[:place] + text[place + chance.randint(1, 4) :]
        elif kind == 1:
            text = text[:place] + chance.choice(PIECES) + text[place:]
        elif kind == 2 and len(text) > 1:
            text = text[:place] + chr(chance.randrange(32, 127)) + text[place + 1 :]
        elif kind == 3 and lines:
            lines.insert(
                chance.randrange(len(lines) + 1), chance.choice(chance.choice(SEEDS).splitlines(keepends=True))
            )
            text = "".join(lines)
        elif kind == 4 and lines:
            del lines[chance.randrange(len(lines))]
            text = "".join(lines)
        elif kind == 5 and lines:
            number = chance.randrange(len(lines))
            words = lines[number].split(",")
            chance.shuffle(words)
            lines[number] = ",".join(words)
            text = "".join(lines)
        else:
            text = text[:place] + text[max(0, place - chance.randint(1, 9)) :]
    return text


def main() -> None:
    """Read them all, and print how many were read and refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--listings", type=int, default=100_000)
    given = parser.parse_args()
    chance, counts, begin = random.Random(given.seed), Counter[str](), time.perf_counter()
    for _ in range(given.listings):
        text = mutated(chance)
        try:
            control_flow(read_listing(text, "k.s", isa_name=chance.choice(("aarch64", "aarch64-sve256"))))
            counts["read"] += 1
        except KernmodelError:
            counts["refused"] += 1
        except Exception:
            counts["TRACEBACK"] += 1
            print(repr(text), traceback.format_exc(limit=-3), sep="\n")
    print(f"{given.listings} listings in {time.perf_counter() - begin:.0f} s:", dict(counts))


if __name__ == "__main__":
    main()
