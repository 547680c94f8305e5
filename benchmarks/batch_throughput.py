"""How long blocks take in a batch: decoded from hex digits, predicted, with components and what binds.

    python benchmarks/batch_throughput.py --data DIR                # blocks of oracle/ and bhive/, one process and two
    python benchmarks/batch_throughput.py --data DIR --profile      # where the time of one process goes
    python benchmarks/batch_throughput.py --data DIR --cycles       # how long blocks are simulated, and what that costs

Prints milliseconds per block of a first round, in which every instruction is new now and then, and of the best of
further rounds over the same blocks. Exit status 1 if one process takes longer per block than the limit in the first
round.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kernmodel.incore.answer.batch import BlockQuery, answer_all
from kernmodel.incore.core import Settings
from kernmodel.incore.engine import modelled_core
from kernmodel.incore.engine.compiled import CompiledEngine
from kernmodel.incore.engine.model import LIMITS

LIMIT_MILLISECONDS = 0.15
ROUNDS = 3
LONG = 20_000


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


def show_cycles(blocks: Sequence[BlockQuery], settings: Settings) -> None:
    """Print how many cycles blocks are simulated, and how far predictions are from those of many more cycles."""
    few, cycles = _simulated(blocks, settings)
    long = LIMITS._replace(most_cycles=LONG, steady_cycles=LONG, floor_cycles=LONG)
    with patch.object(modelled_core, "LIMITS", long):
        many, _ = _simulated(blocks, settings)
    apart = [100 * abs(short - long) / long for short, long in zip(few, many, strict=True) if short and long]
    longest = [own for own in cycles if own >= LIMITS.most_cycles]
    print(f"simulated: {statistics.mean(cycles):.0f} cycles per block; {100 * len(longest) / len(cycles):.1f} % of the")
    print(f"blocks to the limit of {LIMITS.most_cycles}, {100 * sum(longest) / sum(cycles):.0f} % of all cycles")
    print(f"predictions differ from those of up to {LONG} cycles by {statistics.mean(apart):.3f} % on average,")
    print(f"by more than 1 % for {100 * sum(one > 1 for one in apart) / len(apart):.1f} % of the blocks")


def _simulated(blocks: Sequence[BlockQuery], settings: Settings) -> tuple[list[float | None], list[int]]:
    """Predictions, and the cycles that were simulated for each block that the engine answered."""
    plain = CompiledEngine.block
    cycles: list[int] = []

    def counting(self: Any, *given: Any) -> Any:
        found = plain(self, *given)
        cycles.append(found.totals.simulated)
        return found

    CompiledEngine.block = counting  # type: ignore[method-assign]
    try:
        return [result.prediction for result in answer_all(blocks, settings, 1)], cycles
    finally:
        CompiledEngine.block = plain  # type: ignore[method-assign]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with oracle/ and bhive/")
    parser.add_argument("--blocks", type=int, help="take so many of them, at random")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--cycles", action="store_true")
    options = parser.parse_args(arguments)
    blocks = list(queries(options.data))
    if options.blocks and options.blocks < len(blocks):
        blocks = random.Random(1).sample(blocks, options.blocks)
    settings = Settings()
    if options.cycles:
        show_cycles(blocks, settings)
        return 0
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        profile.runcall(milliseconds, blocks, settings, 1)
        pstats.Stats(profile).sort_stats("tottime").print_stats(40)
        return 0
    list(answer_all(blocks[:1], settings, 1))  # modules are loaded when they are first needed: no time of a block
    first = milliseconds(blocks, settings, 1)
    best = min(milliseconds(blocks, settings, 1) for _ in range(ROUNDS - 1))
    two = min(milliseconds(blocks, settings, 2) for _ in range(ROUNDS - 1))
    print(f"{len(blocks)} blocks, ms per block: one process {first:.3f}, again {best:.3f}; two processes {two:.3f}")
    print(f"limit {LIMIT_MILLISECONDS} ms for one process; two are {best / two:.2f} times as fast")
    return int(first > LIMIT_MILLISECONDS)


if __name__ == "__main__":
    sys.exit(main())
