"""Accesses per second of CPU time: the cache simulator, beside pycachesim where a Python with it is given.

    python benchmarks/cache_simulation.py [--peers PYTHON] [--rounds 7] [--iterations 400000]

PYTHON is the interpreter of an environment that holds `pycachesim` (0.3.1). The loads and stores of a 2D 5-point
stencil over doubles go through 32 KiB/8, 256 KiB/8 and 20 MiB/20 ways, LRU, 64-byte lines. Both execute the same
accesses on caches that the round before has warmed: pycachesim by `loadstore` from a list built beforehand, which is
not timed; kernmodel from the loops themselves. Each round measures one after the other, so that both meet the same
noise; the best round counts. The misses that both count are compared.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from dataclasses import dataclass
from typing import IO

from kernmodel.cachesim.engine import Engine, Simulator, compiled_available
from kernmodel.cachesim.model import (
    AccessKind,
    CacheSpec,
    Form,
    Hierarchy,
    Program,
    ProgramBound,
    ProgramLoop,
    ProgramReference,
)

SHAPES = ((1000, 1000), (300, 6000), (100, 20000), (30, 100000))
"""Rows and columns: three rows fit into the first cache, the second, the third, the third."""

PEER = """
import json, sys, time
import cachesim

def caches():
    memory = cachesim.MainMemory()
    l3 = cachesim.Cache("L3", 16384, 20, 64, "LRU")
    memory.load_to(l3)
    memory.store_from(l3)
    l2 = cachesim.Cache("L2", 512, 8, 64, "LRU", store_to=l3, load_from=l3)
    l1 = cachesim.Cache("L1", 64, 8, 64, "LRU", store_to=l2, load_from=l2)
    return cachesim.CacheSimulator(l1, memory)

def accesses(rows, columns, iterations):
    made = []
    for j in range(1, rows - 1):
        for i in range(1, columns - 1):
            at = 8 * (j * columns + i)
            made.append(((at - 8, at + 8, at - 8 * columns, at + 8 * columns), (at + 8 * rows * columns,)))
            if len(made) == iterations:
                return made
    return made

for line in sys.stdin:
    rows, columns, iterations, rounds = json.loads(line)
    simulator, todo = caches(), accesses(rows, columns, iterations)
    for _ in range(rounds):
        sys.stdin.readline()
        simulator.reset_stats()
        begun = time.process_time()
        simulator.loadstore(todo, length=8)
        seconds = time.process_time() - begun
        misses = [level["MISS_count"] for level in simulator.stats()][:3]
        print(json.dumps([5 * len(todo) / seconds, misses]), flush=True)
"""


@dataclass(frozen=True)
class Measured:
    per_second: float
    misses: list[int]


def hierarchy() -> Hierarchy:
    return Hierarchy(
        (
            CacheSpec("L1", 64, 8, load_from="L2", store_to="L2"),
            CacheSpec("L2", 512, 8, load_from="L3", store_to="L3"),
            CacheSpec("L3", 16384, 20),
        )
    )


def stencil(rows: int, columns: int) -> Program:
    def bound(value: int) -> ProgramBound:
        return ProgramBound("min", ((Form(value, (0, 0)),),))

    def reference(kind: AccessKind, row: int, column: int, base: int = 0) -> ProgramReference:
        return ProgramReference(kind, 8, Form(base + 8 * (row * columns + column), (8 * columns, 8)), 2)

    loops = ProgramLoop(bound(1), bound(rows - 1), 1), ProgramLoop(bound(1), bound(columns - 1), 1)
    loads = [reference("load", row, column) for row, column in ((0, -1), (0, 1), (-1, 0), (1, 0))]
    return Program(loops, (*loads, reference("store", 0, 0, 8 * rows * columns)))


def measure(simulator: Simulator, program: Program, iterations: int) -> Measured:
    simulator.reset_counters()
    begun = time.process_time()
    simulator.run(program, iterations=iterations)
    seconds = time.process_time() - begun
    counters = simulator.counters()
    misses = [level.load_misses for level in counters.levels.values()]
    misses[0] += counters.levels["L1"].store_misses
    return Measured(counters.accesses / seconds, misses)


def peer_round(peer: subprocess.Popen[str]) -> Measured:
    stdin, stdout = pipes(peer)
    stdin.write("\n")
    stdin.flush()
    return Measured(*json.loads(stdout.readline()))


def pipes(peer: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert peer.stdin is not None and peer.stdout is not None
    return peer.stdin, peer.stdout


def start_shape(peer: subprocess.Popen[str], shape: tuple[int, int], iterations: int, rounds: int) -> None:
    stdin, _ = pipes(peer)
    stdin.write(json.dumps([*shape, iterations, rounds]) + "\n")
    stdin.flush()


def compare(shape: tuple[int, int], peer: subprocess.Popen[str] | None, iterations: int, rounds: int) -> None:
    engine: Engine = "compiled" if compiled_available() else "python"
    program = stencil(*shape)
    simulators = {skip: Simulator(hierarchy(), engine=engine, skip=skip) for skip in (False, True)}
    if peer:
        start_shape(peer, shape, iterations, rounds)
    own: dict[bool, list[Measured]] = {False: [], True: []}
    theirs: list[Measured] = []
    for _ in range(rounds):
        for skip, simulator in simulators.items():
            own[skip].append(measure(simulator, program, iterations))
        if peer:
            theirs.append(peer_round(peer))
    plain, left_out = (max(each.per_second for each in own[skip]) for skip in (False, True))
    row = f"{shape[0]:5} x {shape[1]:6}  {plain / 1e6:7.0f}  {left_out / 1e6:7.0f}"
    if theirs:
        best = max(each.per_second for each in theirs)
        same = all(a.misses == b.misses == c.misses for a, b, c in zip(theirs, own[False], own[True], strict=True))
        row += f"  {best / 1e6:10.1f}  {plain / best:5.1f} x  {left_out / best:5.1f} x  {'same' if same else 'differ'}"
    print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accesses per second of CPU time.")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter of an environment with pycachesim")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--iterations", type=int, default=400_000, help="inner iterations per round, five accesses each"
    )
    options = parser.parse_args()
    peer = None
    if options.peers:
        command = [options.peers, "-c", PEER]
        peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print("million accesses per second of CPU time; best of", options.rounds, "rounds")
    header = "rows x columns      all  leaving"
    print(header + ("  pycachesim      all  leaving  misses" if peer else ""))
    for shape in SHAPES:
        compare(shape, peer, options.iterations, options.rounds)
    if peer:
        pipes(peer)[0].close()
        peer.wait()


if __name__ == "__main__":
    main()
