"""Which pipe floating-point operations get where two can execute them: chains beside others of the same pipes.

    python benchmarks/pipe_choice.py [--samples 1000]

A chain of maxima of one cycle runs beside a second operation for each of them. Two pipes execute both (FP2 and FP3 of
Zen 3), so that a pair takes one cycle unless the two of a pair are given to the same pipe, where the older goes first.
What is printed is cycles of a pair; the smallest of many short samples counts, but patterns that change from run to run
remain (comparisons into flags beside the chain that they read).
"""

from __future__ import annotations

import argparse

from line_crossing import cycle_of, library_of, ticks

_CHAIN = "vmaxss %%xmm0, %%xmm1, %%xmm0"
_PAIRS = {
    "a maximum of the chain": "vmaxss %%xmm0, %%xmm1, %%xmm3",
    "a maximum of its own": "vmaxss %%xmm2, %%xmm1, %%xmm3",
    "a second chain": "vmaxss %%xmm2, %%xmm1, %%xmm2",
    "an addition": "vaddss %%xmm2, %%xmm1, %%xmm3",
    "a comparison of its own": "vcomiss %%xmm2, %%xmm1",
    "a comparison of the chain": "vcomiss %%xmm0, %%xmm1",
}
_TIMES = 8


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each line")
    options = parser.parse_args()
    wanted = {f"{what}, before it": [other, _CHAIN] * _TIMES for what, other in _PAIRS.items()}
    wanted |= {f"{what}, behind it": [_CHAIN, other] * _TIMES for what, other in _PAIRS.items()}
    wanted |= {f"{n} additions, before {n} of it": ([_PAIRS["an addition"]] * n + [_CHAIN] * n) for n in (2, 4, 8)}
    bodies = {f"pairs_{number}": r"\n ".join(lines) for number, lines in enumerate(wanted.values())}
    made = library_of(bodies)
    cycle = cycle_of(made, options.samples)
    for name, (what, lines) in zip(bodies, wanted.items(), strict=True):
        print(f"{ticks(made, name, options.samples) / cycle / (len(lines) / 2):6.2f}  {what}")


if __name__ == "__main__":
    main()
