"""Loads that wait for stores to other addresses on this host (Zen 4): which addresses a core takes for the same.

    python benchmarks/false_store_matches.py [--samples 200] [--pages 512]

A loop loads a vector from one page of 4 KiB, adds to it four times, and stores it to another page; each pass goes on by
a vector. Where a load overlaps what an earlier pass stored, but for the page, and the core takes both for the same, it
waits for that store, and the passes become a chain. Printed are how many of the pages do so with a page of stores, and
for one that does and one that does not the cycles of a pass by how many bytes the load is behind the store. The last 16
bits of the physical address decide: one page in 16, another one each time that the system gives pages. A load waits if
two or more stores are taken for its own, each of 32 bytes at most (512-bit stores are two).
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Sequence

from timed_code import compiled, cycle_ticks, declare

_WIDTHS = {64: "zmm", 32: "ymm", 16: "xmm"}
_BYTES, _AT, _REPEATED = 1024, 1024, 20
_BEHIND = (0, 8, 24, 32, 40, 56, 64, 72, 96, 104, 128, 256, 512)
_STORE_OFFSETS = (0, 8, 16, 24)
_LOOP = r"""
uint64_t time_%(bytes)d(char *load, char *store)
{
    uint64_t begin = now();
    for (int repeated = 0; repeated < %(repeated)d; repeated++)
        __asm__ volatile("xor %%%%ecx, %%%%ecx\n .p2align 6\n 1: vmovupd (%%0,%%%%rcx), %%%%%(register)s0\n"
                         "vaddpd %%%%%(register)s1, %%%%%(register)s0, %%%%%(register)s0\n"
                         "vaddpd %%%%%(register)s1, %%%%%(register)s0, %%%%%(register)s0\n"
                         "vaddpd %%%%%(register)s1, %%%%%(register)s0, %%%%%(register)s0\n"
                         "vaddpd %%%%%(register)s1, %%%%%(register)s0, %%%%%(register)s0\n"
                         "vmovupd %%%%%(register)s0, (%%1,%%%%rcx)\n"
                         "add $%(bytes)d, %%%%rcx\n cmp $%(total)d, %%%%rcx\n jb 1b"
                         : : "r"(load), "r"(store) : "rcx", "memory", "xmm0", "xmm1");
    return now() - begin;
}
"""
_PAGES = r"""
#include <sys/mman.h>
#include <string.h>
char *pages(long count)
{
    char *found = mmap(0, count << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(found, count << 12, MADV_NOHUGEPAGE);
    return memset(found, 0, count << 12);
}
uint64_t clear(void) { __asm__ volatile("vxorps %%xmm1, %%xmm1, %%xmm1" : : : "xmm1"); return 0; }
"""


def library() -> ctypes.CDLL:
    """The measured code."""
    common = {"repeated": _REPEATED, "total": _BYTES}
    source = _PAGES + "".join(_LOOP % {**common, "bytes": size, "register": name} for size, name in _WIDTHS.items())
    made = compiled(source, "-mavx512f")
    for size in _WIDTHS:
        declare(made, f"time_{size}", ctypes.c_void_p, ctypes.c_void_p)
    made.pages.restype, made.pages.argtypes = ctypes.c_void_p, [ctypes.c_long]
    return made


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="of each piece of code")
    parser.add_argument("--pages", type=int, default=512, help="that are loaded from")
    given = parser.parse_args()
    made = library()
    made.clear()
    cycle = cycle_ticks(made, 200)
    first = made.pages(given.pages + 1)

    def cycles(size: int, page: int, behind: int, offset: int = 0, samples: int = given.samples) -> float:
        timed = getattr(made, f"time_{size}")
        places = first + 4096 * (1 + page) + _AT + offset - behind, first + _AT + offset
        return float(min(timed(*places) for _ in range(samples)) / cycle * size / (_BYTES * _REPEATED))

    plain = cycles(64, 0, 512)
    matching = [page for page in range(given.pages) if cycles(64, page, 64, samples=5) > 3 * plain]
    print(f"{len(matching)} of {given.pages} pages match the page of the stores")
    if not matching:
        return
    others: Sequence[int] = [page for page in range(given.pages) if page not in matching]
    for name, page in (("matches", matching[0]), ("does not", others[0])):
        print(f"a page that {name}: cycles of a pass, loads so many bytes behind: {', '.join(map(str, _BEHIND))}")
        for size in _WIDTHS:
            for offset in _STORE_OFFSETS:
                found = " ".join(f"{cycles(size, page, behind, offset):5.1f}" for behind in _BEHIND)
                print(f"{8 * size:4} bits, stores {offset:2} bytes into a line: {found}", flush=True)


if __name__ == "__main__":
    main()
