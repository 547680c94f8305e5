"""What fused multiplications and additions cost beside stores of vectors: the path of third vectors on the host.

    python benchmarks/third_vectors.py [--samples 1000]
    python benchmarks/third_vectors.py --slots [--core ZEN3]

Each line is n of them, in as many chains as there are registers, and m stores of another vector. If nothing kept
them apart, they would take the larger of n / 2 and m cycles. The lines behind ask what makes the difference: operations
that read two vectors, stores from general-purpose registers, moves out of vector registers, and chains that are as long
as the pipes are busy, in which each addend was computed in the cycle before. The smallest of many short samples counts.

`--slots` sets them at slots of dispatch, six to a cycle, which tell the scheduler of each, and prints what a pass of
four cycles takes beside what the model of a core says of it. The letters:

    F vfmadd213pd of a constant and a chain of its own, K of copies that eliminated moves (c) make, M vmulpd
    S a store of another vector, T of what was computed last, D vmovd to a general-purpose register, . a move
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from line_crossing import cycle_of, library_of, ticks
from vector_places import compare

from kernmodel.incore.core import Core, Settings
from kernmodel.measure.host import Harness

_CHAINS = 12
_CYCLES = 4
_SLOTS = """
F..... FS.... F.S... F..S.. F...S. FD.... F.D... F..D.. FT.... F.T... cK.... cKS... cK.S.. cK..S. cKD... cK.D.. cK.T..
FF.T.. FFT... FFS... FF.S.. FSFS.. FS.FS. FF.SS. FFF... FFFS.. ccKK.. ccKK.S ccKKT. S..... SS.... DD.... DS.... MSMS..
"""
_LETTERS = {
    "F": "vfmadd213pd xmm{to}, xmm0, xmm1",
    "K": "vfmadd213pd xmm{copy}, xmm0, xmm1",
    "M": "vmulpd xmm{to}, xmm0, xmm1",
    "c": "vmovapd xmm{to}, xmm2",
    "S": "vmovapd [rsi+{place}], xmm2",
    "T": "vmovapd [rsi+{place}], xmm{last}",
    "D": "vmovd r8d, xmm2",
    ".": "mov r15, r14",
}
_FUSED = "vfmadd231pd %%ymm14, %%ymm13, %%ymm{register}"
_LOAD = r"vmovupd 512(%2), %%ymm{register}\n "
_STORE = "vmovupd %%ymm15, {place}(%2)"
_MIXES = ((1, 1), (2, 1), (4, 1), (6, 1), (1, 2), (1, 3), (4, 4))
_OTHERS = {
    "1 multiplication and 1 store": ("vmulpd %%ymm14, %%ymm13, %%ymm{register}", _STORE, 1, 1),
    "1 blend by a vector and 1 store": ("vblendvpd %%ymm12, %%ymm14, %%ymm13, %%ymm{register}", _STORE, 1, 1),
    "1 with a factor from memory and 1 store": ("vfmadd231pd 512(%2), %%ymm13, %%ymm{register}", _STORE, 1, 1),
    "1 with an addend from memory and 1 store": ("vfmadd213pd 512(%2), %%ymm13, %%ymm{register}", _STORE, 1, 1),
    "1 with an addend loaded before and 1 store": (_LOAD + _FUSED, _STORE, 1, 1),
    "1 and 1 store from a general-purpose register": (_FUSED, "mov %1, {place}(%2)", 1, 1),
    "1 and 1 move to a general-purpose register": (_FUSED, "vmovd %%xmm15, %%r8d", 1, 1),
}


def mixed(operation: str, store: str, n: int, m: int, chains: int = _CHAINS) -> tuple[str, int]:
    """Operations and stores in turn, and how often they are in the body."""
    times = max(2, chains // n)
    lines: list[str] = []
    for group in range(times):
        for k in range(max(n, m)):
            if k < n:
                lines.append(operation.format(register=(group * n + k) % chains))
            if k < m:
                lines.append(store.format(place=32 * ((group * m + k) % 8)))
    return r"\n ".join(lines), times


def lines_of(letters: str) -> Iterator[str]:
    """The instructions of letters, the last of which the branch of the loop takes the place of."""
    to, place, copies, last = 2, 0, list[int](), 3
    for letter in letters[:-1]:
        to = (to - 2) % _CHAINS + 3 if letter in "FMc" else to
        if letter == "c":
            copies.append(to)
        copy = copies.pop(0) if letter == "K" else to
        yield _LETTERS[letter].format(to=to, copy=copy, last=last, place=32 * (place % 8))
        place += letter in "ST"
        last = copy if letter in "FKM" else last


def compare_slots(name: str) -> None:
    """Print what the loops take here, and what the model says."""
    core = Core.open(name, Settings())
    with Harness() as harness:
        for letters in _SLOTS.split():
            measured, predicted = compare(harness, list(lines_of(letters * _CYCLES)), core)
            print(f"{letters}  {measured:6.2f} {predicted:6.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each line")
    parser.add_argument("--slots", action="store_true")
    parser.add_argument("--core", default="ZEN3")
    options = parser.parse_args()
    if options.slots:
        compare_slots(options.core)
        return
    wanted = {f"{n} and {m} stores": mixed(_FUSED, _STORE, n, m) for n, m in _MIXES}
    wanted |= {what: mixed(*how) for what, how in _OTHERS.items()}
    wanted |= {f"{k} chains, {k} and {k} stores": mixed(_FUSED, _STORE, k, k, k) for k in (4, 5, 6, 8)}
    wanted |= {f"8 chains, {8 * k} and 8 stores": (_burst(k), 1) for k in (2, 4, 8)}
    bodies = {f"mix_{number}": body for number, (body, _) in enumerate(wanted.values())}
    made = library_of(bodies, "-mfma")
    cycle = cycle_of(made, options.samples)
    for name, (what, (_, times)) in zip(bodies, wanted.items(), strict=True):
        print(f"{ticks(made, name, options.samples) / cycle / times:6.2f}  {what}")


def _burst(rounds: int) -> str:
    """Eight chains that keep both pipes busy, and eight stores behind them."""
    fused = [_FUSED.format(register=k) for _ in range(rounds) for k in range(8)]
    return r"\n ".join([*fused, *(_STORE.format(place=32 * k) for k in range(8))])


if __name__ == "__main__":
    main()
