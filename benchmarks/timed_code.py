"""Code in assembly that scripts of this folder compile and time by the time stamp counter, in ticks.

A chain of dependent additions beside it tells the clock: how many ticks a cycle of the core takes. The smallest of many
short samples counts, so that whatever else runs on the host matters little.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

ADDITIONS = 8
"""Of a pass of the chain, each of one cycle."""
_HEAD = r"""
#include <stdint.h>
#include <x86intrin.h>
static inline uint64_t now(void) { unsigned aux; uint64_t t = __rdtscp(&aux); _mm_lfence(); return t; }
uint64_t additions(long passes)
{
    uint64_t begin = now(), sum = 1;
    __asm__ volatile("1: add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n add %0, %0\n"
                     "add %0, %0\n add %0, %0\n dec %1\n jne 1b" : "+r"(sum), "+r"(passes));
    return now() - begin;
}
"""
_CHAIN = 2000
_TRAINING = 30


def compiled(source: str, *flags: str) -> ctypes.CDLL:
    """The functions of a C source, which may call `now()`, beside `additions(passes)`; all return ticks."""
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder) / "timed.c", Path(folder) / "timed.so"
        file.write_text(_HEAD + source)
        subprocess.run(["gcc", "-O2", *flags, "-shared", "-fPIC", "-o", target, file], check=True)
        made = ctypes.CDLL(str(target))
    declare(made, "additions", ctypes.c_long)
    return made


def declare(made: ctypes.CDLL, name: str, *arguments: type) -> None:
    """Say what a function of the library takes; it returns ticks."""
    function = getattr(made, name)
    function.restype, function.argtypes = ctypes.c_uint64, list(arguments)


def cycle_ticks(made: ctypes.CDLL, samples: int) -> float:
    """Ticks of a cycle of the core."""
    return float(min(made.additions(_CHAIN) for _ in range(samples)) / (_CHAIN * ADDITIONS))


def row_cycles(
    rows: Callable[[int, int], int],
    lengths: Sequence[int],
    samples: int,
    *,
    cycle: float,
    pass_cycles: int,
    passes: int,
) -> float:
    """Cycles that a row of a loop takes beyond its passes, rows of these lengths over and over.

    Args:
        rows: runs rows whose lengths stand at an address, so many, and returns ticks.
        cycle: ticks of a cycle; pass_cycles: cycles of a pass of the loop; passes: about so many make a sample.
    """
    many = [*lengths] * max(2, passes // sum(lengths))
    array = (ctypes.c_int * len(many))(*many)
    ticks = [rows(ctypes.addressof(array), len(many)) for _ in range(samples + _TRAINING)][_TRAINING:]
    return (min(ticks) / cycle - pass_cycles * sum(many)) / len(many)
