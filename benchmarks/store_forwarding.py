"""What it takes from a store to a load of the same bytes: store forwarding figures of the files of microarchitectures.

    python benchmarks/store_forwarding.py [--samples 1000]

Each line is a chain: a value is stored, loaded, and stored again. What a pass takes in cycles of the core is printed
for loads that get all their bytes from one store, and for loads that need more (`partial store forward latency`), which
have to wait until the store has reached the cache. Transfers between kinds of registers are part of the chain where a
store and the load that follows it are of different kinds. The smallest of many short samples counts, beside a chain of
dependent additions that tells the clock, so that whatever else runs on the host matters little. The last lines load
what nothing waits for: loads that need more than a store wrote take their time one after the other all the same, unless
the stores of both are older.
"""

from __future__ import annotations

import argparse

from line_crossing import cycle_of, library_of, ticks

_CHAINS = {
    "8 bytes, stored at once": r"mov %1, (%2)\n mov 0(%2,%3), %1",
    "8 bytes, stored as 4 and 4": r"mov %k1, (%2)\n mov %k1, 4(%2)\n mov (%2,%3), %1",
    "8 bytes, of which 4 were stored": r"mov %k1, (%2)\n mov (%2,%3), %1",
    "4 bytes, of 8 that were stored": r"mov %1, (%2)\n mov 4(%2,%3), %k1",
    "16 bytes (vector), stored at once": r"movupd %%xmm0, (%2)\n movupd (%2,%3), %%xmm0",
    "16 bytes (vector), of which 8 were stored": r"movsd %%xmm0, (%2)\n movupd (%2,%3), %%xmm0",
    "32 bytes (vector), stored at once": r"vmovupd %%ymm0, (%2)\n vmovupd (%2,%3), %%ymm0",
    "32 bytes (vector), stored as 16 and 16": (
        r"vmovupd %%xmm0, (%2)\n vmovupd %%xmm0, 16(%2)\n vmovupd (%2,%3), %%ymm0"
    ),
    "32 bytes (vector), of which 8 were stored": r"vmovsd %%xmm0, (%2)\n vmovupd (%2,%3), %%ymm0",
    "32 bytes (vector), of which 4 were stored from a general register and moved back": (
        r"mov %k1, (%2)\n vmovdqu (%2,%3), %%ymm0\n vmovd %%xmm0, %k1"
    ),
    "no chain: 8 bytes, stored at once": r"mov %1, (%2)\n mov (%2,%3), %%r8",
    "no chain: 8 bytes, of which 4 were stored": r"mov %k1, (%2)\n mov (%2,%3), %%r8",
    "no chain: the same twice, in two lines": (
        r"mov %k1, (%2)\n mov (%2,%3), %%r8\n mov %k1, 64(%2)\n mov 64(%2,%3), %%r9"
    ),
    "no chain: the same twice, the two stores before the two loads": (
        r"mov %k1, (%2)\n mov %k1, 64(%2)\n mov (%2,%3), %%r8\n mov 64(%2,%3), %%r9"
    ),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1000, help="of each chain")
    options = parser.parse_args()
    bodies = {f"chain_{number}": text for number, text in enumerate(_CHAINS.values())}
    made = library_of(bodies)
    cycle = cycle_of(made, options.samples)
    for name, what in zip(bodies, _CHAINS, strict=True):
        print(f"{ticks(made, name, options.samples) / cycle:6.2f}  {what}")


if __name__ == "__main__":
    main()
