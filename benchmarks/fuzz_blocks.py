"""Random bytes as blocks, by the million: each has to be answered or refused in words, never to crash.

    python benchmarks/fuzz_blocks.py --blocks 1000000 --jobs 2
    python benchmarks/fuzz_blocks.py --blocks 20000 --cores SNB SKL CLX ZEN2 --seed 7

A third are random bytes, a third random bytes that are instructions, a third a real loop with some bits turned over.
One block in a hundred is also explained and printed. Prints how many were answered and refused, and each kind of crash
with the shortest bytes that cause it; the exit status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import iced_x86 as iced

from kernmodel.code.blocks import block_of_bytes
from kernmodel.errors import KernmodelError
from kernmodel.incore.answer.batch import BlockQuery, Cores, answer
from kernmodel.incore.answer.explain import explain
from kernmodel.incore.core import Settings, analyse_block
from kernmodel.report.json.incore import block_line, incore_json
from kernmodel.report.text.explanation import explanation_section
from kernmodel.report.text.render import Style, render

LOOPS = (
    "4801d84801c3ffc975f6",
    "4803064883c708c5fb1004c8c5fb58c1c5fb1104c84883c00131d28d4a0148ffc94939c475d8",
    "62f1fd481054d3ff62f1ed485894d3b0ffffff62f1fd481154d3ff4883c2104939d075e2",
    "f20f1004c6f20f5904c7f20f58c84883c0014839c275ec",
    "5553574889e5f3a4c95f5b5dc3",
)
LONGEST = 15
EXPLAINED = 0.01
CHUNK = 2000


@dataclass
class Tally:
    """What became of blocks: counts of outcomes, and per kind of crash its count and shortest bytes."""

    outcomes: Counter[str] = field(default_factory=Counter)
    crashes: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def crash(self, what: str, code: bytes, count: int = 1) -> None:
        before, shortest = self.crashes.get(what, (0, code))
        self.crashes[what] = (before + count, min(shortest, code, key=len))

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        for what, (count, code) in other.crashes.items():
            self.crash(what, code, count)


def random_block(source: random.Random) -> bytes:
    """One block of one of the three kinds."""
    match source.randrange(3):
        case 0:
            return source.randbytes(source.randint(1, LONGEST))
        case 1:
            return b"".join(random_instructions(source, source.randint(1, 8)))
    code = bytearray(bytes.fromhex(source.choice(LOOPS)))
    for _ in range(source.randint(1, 4)):
        code[source.randrange(len(code))] ^= 1 << source.randrange(8)
    return bytes(code)


def random_instructions(source: random.Random, count: int) -> Iterator[bytes]:
    """Encoded instructions of all kinds; vector prefixes more often than among random bytes."""
    starts = (b"", b"", b"\x0f", b"\xc5", b"\xc4\xe2", b"\x62", b"\x66\x0f", b"\xf2\x0f", b"\xf3\x0f", b"\xf0", b"\x48")
    while count:
        code = source.choice(starts) + source.randbytes(LONGEST)
        said = iced.Decoder(64, code).decode()
        if not said.is_invalid:
            yield code[: said.len]
            count -= 1


def run(seed: int, count: int, names: tuple[str, ...]) -> Tally:
    """Answer `count` random blocks."""
    source = random.Random(seed)
    settings = {name: Settings(estimate=bool(number % 2)) for number, name in enumerate(names)}
    cores = {name: Cores(chosen) for name, chosen in settings.items()}
    tally = Tally()
    for _ in range(count):
        code, name = random_block(source), source.choice(names)
        try:
            result = answer(BlockQuery(1, code.hex(), name), cores[name])
            block_line(result)
            tally.outcomes["refused" if result.prediction is None else "answered"] += 1
            if result.prediction is not None and source.random() < EXPLAINED:
                in_full(code, name, cores[name])
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            tally.crash(f"{type(error).__name__}: {error} ({place.name} in {place.filename}:{place.lineno})", code)
    return tally


def in_full(code: bytes, name: str, cores: Cores) -> None:
    """Explain and print one block."""
    try:
        incore = analyse_block(block_of_bytes(code, file="fuzz"), cores.core(name), cores.settings)
    except KernmodelError:
        return
    render(explanation_section(incore, explain(incore)), Style())
    incore_json(incore)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cores", nargs="+", default=["SNB", "SKL", "CLX", "ZEN2"])
    arguments = parser.parse_args()
    start = time.perf_counter()
    whole, rest = divmod(arguments.blocks, CHUNK)
    sizes = [CHUNK] * whole + [rest] * bool(rest)
    total = Tally()
    with ProcessPoolExecutor(arguments.jobs) as executor:
        seeds = (arguments.seed * 1_000_003 + number for number in range(len(sizes)))
        names = tuple(arguments.cores)
        for tally in executor.map(run, seeds, sizes, [names] * len(sizes)):
            total.add(tally)
    seconds = time.perf_counter() - start
    print(f"{arguments.blocks} blocks on {', '.join(names)} in {seconds:.0f} s: {dict(total.outcomes)}")
    for what, (count, code) in sorted(total.crashes.items()):
        print(f"CRASH {count} times, {code.hex()}: {what}")
    return 1 if total.crashes else 0


if __name__ == "__main__":
    sys.exit(main())
