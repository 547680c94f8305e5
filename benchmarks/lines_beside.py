"""What a line of an outer level takes beside lines of streams that lie in an inner one, on this host.

    python benchmarks/lines_beside.py [--samples 40] [--streams 4] [--many]

Each pass of the measured loop loads one line of a large buffer and one line of each of k streams, which are walked
round; with --many also more lines of one stream than a core follows streams. docs/ecm.md tells what models make of it.
"""

from __future__ import annotations

import argparse

from kernmodel.measure.bandwidth import level_sizes
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.host_topology import host_topology
from kernmodel.measure.lines_beside import timed, timed_pass

MANY = (8, 12, 16, 24, 32, 64, 128)


def main() -> None:
    """Print a table: by outer level and place of the streams the cycles beside 0, 1, … of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--streams", type=int, default=4, help="most streams beside the outer one")
    parser.add_argument("--many", action="store_true", help="up to 128 lines of one stream, too")
    given = parser.parse_args()
    sizes, effort = level_sizes(host_topology()), Effort(samples=given.samples, rounds=2, seconds=2.0)
    with Harness() as harness:
        for outer, levels in (("L3", ("L2",)), ("Mem", ("L2", "L3"))):
            for level in levels:
                figures = (timed(harness, sizes, outer, level, k, effort).cycles for k in range(given.streams + 1))
                cycles = " ".join(f"{one.value:6.2f}{'' if one.confirmed else '?'}" for one in figures)
                print(f"a line of {outer} beside 0 to {given.streams} of {level}: {cycles}", flush=True)
        for level in ("L2", "L3") if given.many else ():
            passes = (timed_pass(harness, sizes, level, 1, k + 1, True, effort) for k in MANY)
            cycles = " ".join(f"{one.value:6.2f}{'' if one.confirmed else '?'}" for one in passes)
            print(f"a line of Mem beside {', '.join(map(str, MANY))} of one stream in {level}: {cycles}", flush=True)


if __name__ == "__main__":
    main()
