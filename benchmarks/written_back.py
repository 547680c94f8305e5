"""What loads that find their line in L1 take longer while lines leave L1 modified: a figure of the files of
microarchitectures.

    python benchmarks/written_back.py [--samples 3000]

A buffer of 24 KiB lies in L1, where it was read or written last. Then 512 lines of another one are loaded from L2 and
push it out, and beside each of them so many more vectors of 32 bytes are loaded from 1 KiB that stays in L1: aligned
ones, or such that cross lines. What a line that leaves modified takes more than one that leaves as it was is printed,
in cycles of the core. Then the same loads beside lines that are loaded, stored, or loaded and stored one after the
other, in a buffer that fits into L1 and in one that fits into L2. `loads kept by a line written back` is what it makes
of the aligned loads: two a cycle. The smallest of many short samples counts, beside a chain of dependent additions that
tells the clock.
"""

from __future__ import annotations

import argparse
import ctypes

from timed_code import compiled, cycle_ticks, declare

_LINES = {"loaded": 512, "pushed out": 384}
_BESIDE = {"none": (0, 0), "8 aligned": (8, 0), "8 across lines": (8, 48)}
_STREAMS = {
    "loaded": ["vmovaps {0}(%0), %%ymm0", "vmovaps {1}(%0), %%ymm1"],
    "stored": ["vmovaps %%ymm8, {0}(%0)", "vmovaps %%ymm8, {1}(%0)"],
}
_STREAMS["both"] = _STREAMS["loaded"] + _STREAMS["stored"]
_BUFFERS = {"L1": 12 << 10, "L2": 128 << 10}
_CODE = r"""
static void %s(char *place, long bytes)
{
    char *end = place + bytes;
    __asm__ volatile("1: %s\n add $256, %%0\n cmp %%1, %%0\n jb 1b\n vzeroupper" : "+r"(place) : "r"(end), "r"(near)
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}
"""
_TIMED = r"""
uint64_t time_%s(long bytes)
{
    %s(data, bytes);
    uint64_t begin = now();
    %s(data, bytes);
    return now() - begin;
}
"""
_PUSHED = r"""
uint64_t push_%s(long modified)
{
    char *loaded = data + (256 << 10);
    loaded_0(loaded, 64 << 10);
    loaded_0(data, 24 << 10);
    loaded_0(data, 24 << 10);
    if (modified)
        stored_0(data, 24 << 10);
    _mm_mfence();
    uint64_t begin = now();
    %s(loaded, 32 << 10);
    return now() - begin;
}
"""
_DATA = r"""
static char near[4096] __attribute__((aligned(4096))), data[512 << 10] __attribute__((aligned(1 << 21)));
__attribute__((constructor)) static void fill(void)  // pages that nothing has written are one in memory
{
    for (unsigned n = 0; n < sizeof data; n++)
        data[n] = 1;
    for (unsigned n = 0; n < sizeof near; n++)
        near[n] = 1;
}
"""
_UNROLLED = 4


def _body(stream: str, loads: int, place: int) -> str:
    lines = []
    for number in range(_UNROLLED):
        lines += [one.format(64 * number, 64 * number + 32) for one in _STREAMS[stream]]
        places = (64 * (number * loads + k) % 1024 + place for k in range(loads))
        lines += [f"vmovups {at}(%2), %%ymm{2 + k % 6}" for k, at in enumerate(places)]
    return r"\n ".join(lines)


def library() -> ctypes.CDLL:
    """The measured code."""
    source = _DATA
    for stream in _STREAMS:
        for number, beside in enumerate(_BESIDE.values()):
            name = f"{stream}_{number}"
            source += _CODE % (name, _body(stream, *beside)) + _TIMED % (name, name, name)
    for number in range(len(_BESIDE)):
        source += _PUSHED % (number, f"loaded_{number}")
    made = compiled(source, "-mavx2")
    for number in range(len(_BESIDE)):
        declare(made, f"push_{number}", ctypes.c_long)
        for stream in _STREAMS:
            declare(made, f"time_{stream}_{number}", ctypes.c_long)
    return made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3000, help="of each piece of code")
    options = parser.parse_args()
    made = library()
    cycle = cycle_ticks(made, options.samples)

    def cycles(name: str, argument: int) -> float:
        timed = getattr(made, name)
        return float(min(timed(argument) for _ in range(options.samples))) / cycle

    print(f"{'loads beside a line':20}{'clean':>8}{'modified':>10}  cycles a line; {'more a modified line'}")
    for number, what in enumerate(_BESIDE):
        clean, modified = (cycles(f"push_{number}", written) for written in (0, 1))
        more = (modified - clean) / _LINES["pushed out"]
        print(f"{what:20}{clean / _LINES['loaded']:8.2f}{modified / _LINES['loaded']:10.2f}  {more:.2f}")
    for stream in _STREAMS:
        for number, what in enumerate(_BESIDE):
            found = (cycles(f"time_{stream}_{number}", size) / (size // 64) for size in _BUFFERS.values())
            told = ", ".join(f"{each:.2f} in {level}" for each, level in zip(found, _BUFFERS, strict=True))
            print(f"a line {stream}, {what}: {told}")


if __name__ == "__main__":
    main()
