"""What fused multiplications and additions cost beside stores of vectors: the path of third vectors on the host.

    python benchmarks/third_vectors.py [--samples 1000]

Each line is n of them, in as many chains as there are registers, and m stores of another vector. If nothing kept
them apart, they would take the larger of n / 2 and m cycles. The lines behind ask what makes the difference: operations
that read two vectors, stores from general-purpose registers, moves out of vector registers, and chains that are as long
as the pipes are busy, in which each addend was computed in the cycle before. The smallest of many short samples counts.
"""

from __future__ import annotations

import argparse

from line_crossing import cycle_of, library_of, ticks

_CHAINS = 12
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each line")
    options = parser.parse_args()
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
