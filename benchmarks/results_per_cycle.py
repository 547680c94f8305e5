"""Whether a pipe gives one result a cycle: chains of additions of one cycle beside longer operations on the host.

    python benchmarks/results_per_cycle.py [--samples 1000]

Each line is n independent operations on vectors and m chains of `vpaddd`, which takes one cycle and goes to any of four
pipes. If only pipes that are taken kept the chains waiting, operations of several cycles would cost them what those of
one cycle do. The smallest of many short samples counts.
"""

from __future__ import annotations

import argparse

from line_crossing import cycle_of, library_of, ticks

_TIMES = 12
_OPERATIONS = {
    "vmulpd": "%%xmm14, %%xmm13,",
    "vaddpd": "%%xmm14, %%xmm13,",
    "vpmulld": "%%xmm14, %%xmm13,",
    "vpsadbw": "%%xmm14, %%xmm13,",
    "vfmadd213pd": "%%xmm14, %%xmm13,",
    "vpslld": "$3, %%xmm13,",
    "vpunpckldq": "%%xmm14, %%xmm13,",
    "vmaxpd": "%%xmm14, %%xmm13,",
}
_MIXES = ((1, 1), (2, 1), (2, 2))


def mixed(operation: str, n: int, m: int) -> str:
    """So many operations, each to another register, and a step of each chain, over and over."""
    lines = []
    for group in range(_TIMES):
        lines += [f"{operation} {_OPERATIONS[operation]} %%xmm{2 + (n * group + k) % 10}" for k in range(n)]
        lines += [f"vpaddd %%xmm15, %%xmm{k}, %%xmm{k}" for k in range(m)]
    return r"\n ".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each line")
    options = parser.parse_args()
    wanted = [(operation, n, m) for operation in _OPERATIONS for n, m in _MIXES]
    bodies = {f"mix_{number}": mixed(*how) for number, how in enumerate(wanted)}
    made = library_of(bodies, "-mfma")
    cycle = cycle_of(made, options.samples)
    for name, (operation, n, m) in zip(bodies, wanted, strict=True):
        print(f"{ticks(made, name, options.samples) / cycle / _TIMES:6.2f}  {n} {operation} and {m} of vpaddd")


if __name__ == "__main__":
    main()
