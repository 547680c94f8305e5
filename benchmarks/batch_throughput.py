"""How long blocks take in a batch: decoded from hex digits, predicted, with components and what binds.

    python benchmarks/batch_throughput.py --data DIR                # blocks of oracle/ and bhive/, one process and two
    python benchmarks/batch_throughput.py --data DIR --profile      # where the time of one process goes

Prints milliseconds per block of a first round, in which every instruction is new now and then, and of the best of
further rounds over the same blocks. Exit status 1 if one process takes longer per block than the limit in the first
round.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernmodel.incore.batch import BlockQuery, answer_all
from kernmodel.incore.core import Settings

LIMIT_MILLISECONDS = 0.15
ROUNDS = 3


def queries(data: Path) -> Iterator[BlockQuery]:
    """All blocks of the development data, with the notions that they come in."""
    number = 0
    with gzip.open(data / "oracle" / "dev.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["hex_loop"]:
                number += 1
                yield BlockQuery(number, row["hex_loop"], row["arch"], notion="loop")
            if row["hex_unrolled"]:
                number += 1
                yield BlockQuery(number, row["hex_unrolled"], row["arch"], notion="unrolled")
    with (data / "bhive" / "dev.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            number += 1
            yield BlockQuery(number, row["hex"], row["arch"], notion="unrolled")


def milliseconds(blocks: Sequence[BlockQuery], settings: Settings, jobs: int) -> float:
    """Per block, in one round."""
    start = time.perf_counter()
    failed = sum(result.error is not None for result in answer_all(blocks, settings, jobs))
    seconds = time.perf_counter() - start
    if failed:
        print(f"{failed} blocks were refused")
    return 1000 * seconds / len(blocks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with oracle/ and bhive/")
    parser.add_argument("--blocks", type=int, help="take so many of them, at random")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args(arguments)
    blocks = list(queries(options.data))
    if options.blocks and options.blocks < len(blocks):
        blocks = random.Random(1).sample(blocks, options.blocks)
    settings = Settings()
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        profile.runcall(milliseconds, blocks, settings, 1)
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return 0
    first = milliseconds(blocks, settings, 1)
    best = min(milliseconds(blocks, settings, 1) for _ in range(ROUNDS - 1))
    two = min(milliseconds(blocks, settings, 2) for _ in range(ROUNDS - 1))
    print(f"{len(blocks)} blocks, ms per block: one process {first:.3f}, again {best:.3f}; two processes {two:.3f}")
    print(f"limit {LIMIT_MILLISECONDS} ms for one process; two are {best / two:.2f} times as fast")
    return int(first > LIMIT_MILLISECONDS)


if __name__ == "__main__":
    sys.exit(main())
