"""What loads and stores cost where they cross lines of 64 bytes: figures of the files of microarchitectures.

    python benchmarks/line_crossing.py [--samples 3000]

Eight loads (stores) of 8, 16 and 32 bytes, and of 64 where the host has such registers, to eight lines are repeated,
each at the same place of its line; what one of them takes in cycles of the core is printed by that place. `line bytes
of loads and stores` and `block bytes of 256-bit stores` (Zen 3, Zen 4) are where it doubles. The smallest of many short
samples counts, beside a chain of dependent additions that tells the clock, so that whatever else runs on the host
matters little.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Mapping

from timed_code import ADDITIONS, compiled, declare

from kernmodel.measure.code_x86 import vector_bytes

_DATA = r"""
static char data[8192] __attribute__((aligned(4096)));
"""
_TIMED = r"""
uint64_t %s(long passes)
{
    char *place = data;
    uint64_t begin = now(), sum = 1;
    __asm__ volatile("1: %s\n dec %%0\n jne 1b" : "+r"(passes), "+r"(sum) : "r"(place), "r"(0L)
                     : "memory", "r8", "r9", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    return now() - begin;
}
"""
_ACCESSES = {
    "load of 8 bytes": "movsd {place}(%2), %%xmm{number}",
    "load of 16 bytes": "movupd {place}(%2), %%xmm{number}",
    "load of 32 bytes": "vmovupd {place}(%2), %%ymm{number}",
    "store of 8 bytes": "movsd %%xmm{number}, {place}(%2)",
    "store of 16 bytes": "movupd %%xmm{number}, {place}(%2)",
    "store of 32 bytes": "vmovupd %%ymm{number}, {place}(%2)",
}
if vector_bytes() == 64:
    _ACCESSES |= {
        "load of 64 bytes": "vmovupd {place}(%2), %%zmm{number}",
        "store of 64 bytes": "vmovupd %%zmm{number}, {place}(%2)",
    }
_PLACES = (0, 8, 16, 32, 40, 48, 52, 56, 60)
_AT_ONCE = 8
_PASSES = 1000
_LEAST = 3
"""The sample that counts, by size: a few are too small by steps of the counter."""


def _name(number: int, place: int) -> str:
    return f"access_{number}_{place}"


def library() -> ctypes.CDLL:
    """The measured code."""
    bodies = {}
    for number, text in enumerate(_ACCESSES.values()):
        for place in _PLACES:
            each = (text.format(place=place + 64 * k, number=k) for k in range(_AT_ONCE))
            bodies[_name(number, place)] = r"\n ".join(each)
    return library_of(bodies)


def library_of(bodies: Mapping[str, str], *flags: str) -> ctypes.CDLL:
    """Functions that repeat these instructions: %1 is a register, %2 the place of data, %3 is 0."""
    made = compiled(_DATA + "".join(_TIMED % named for named in bodies.items()), "-mavx2", *flags)
    for name in bodies:
        declare(made, name, ctypes.c_long)
    return made


def ticks(made: ctypes.CDLL, name: str, samples: int) -> float:
    """Ticks of a pass."""
    timed = getattr(made, name)
    found = sorted(timed(_PASSES) for _ in range(samples))
    return found[min(_LEAST, len(found) - 1)] / _PASSES


def cycle_of(made: ctypes.CDLL, samples: int) -> float:
    """Ticks of a cycle of the core, by samples like those of `ticks`."""
    return ticks(made, "additions", samples) / ADDITIONS


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3000, help="of each access")
    options = parser.parse_args()
    made = library()
    cycle = cycle_of(made, options.samples)
    print(f"{'cycles at byte':18}" + "".join(f"{place:6d}" for place in _PLACES))
    for number, what in enumerate(_ACCESSES):
        found = (ticks(made, _name(number, place), options.samples) / cycle / _AT_ONCE for place in _PLACES)
        print(f"{what:18}" + "".join(f"{cycles:6.2f}" for cycles in found))


if __name__ == "__main__":
    main()
