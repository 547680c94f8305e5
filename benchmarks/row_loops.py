"""How well the in-core analysis predicts loops of rows that are compiled and timed on this host, their data in L1.

    python benchmarks/row_loops.py measure FILE [--only PATTERN]
    python benchmarks/row_loops.py compare FILE [--core NAME] [--aside] [--worst N]

`measure` compiles `rows/rows.c` by gcc and clang at -O1 to -Ofast for SSE, AVX2 and AVX-512, as far as the host
executes them, and writes a line of JSON for each innermost loop: its bytes, its address modulo 64, cycles per pass, and
the registers when it is entered, which tell where its data lie. Cycles are the difference of rows of about 12 and 6 KiB
(less where there are more arrays), of random lengths, by the least tenth of 40 samples of a processor, where two rounds
agree; samples beside which another thread of the core was busy do not count, as long as some sample before had none.
`compare` sets the model of a core beside them, and takes the least of a loop that is in the file more than once (files
of several runs can be put together); rows whose name's crc32 is divisible by three are left out, or with --aside all
others are.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.dependences.addresses import BodyAccesses, address_step
from kernmodel.incore.dependences.line_splits import Places
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

FOLDER = Path(__file__).parent / "rows"
ADDITIONS, LINE, PAGE, ARRAYS = 6400, 64, 4096, 5
COMPILERS, LEVELS = ("gcc", "clang-19"), ("O1", "O2", "O3", "Ofast")
TARGETS: Mapping[str, Sequence[str]] = {
    "x86-64": ("-march=x86-64",),
    "haswell": ("-march=haswell",),
    "znver3": ("-march=znver3",),
    "skylake-avx512": ("-march=skylake-avx512",),
    "sapphirerapids": ("-march=sapphirerapids",),
    "sapphirerapids-512": ("-march=sapphirerapids", "-mprefer-vector-width=512"),
}
NEEDED = {"x86-64": "sse2", "haswell": "avx2", "znver3": "vaes"}
"""The flag of /proc/cpuinfo that stands for what a target needs, where it is not AVX-512."""
REGISTERS = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
_ROW = re.compile(r"//@ (\w+) (\d+) (\d+)(?: ([\d,]+))?\nK\(\w+,(\w+),(\w+),(\w+),(\w+),(\w+)\)")
_FORMATS = {
    "D": ("d", 1000.0, 0.5),
    "F": ("f", 1000.0, 0.5),
    "I": ("i", 1, 0),
    "short": ("h", 1, 0),
    "long": ("q", 1, 0),
}
_ROUNDS, _SAMPLES, _CALL_TICKS, _STEADY, _AGREE, _FEWEST = 6, 40, 90_000, 0.006, 0.01, 8
_NUMBERS, _ALONE = 5, 1.1
"""Of a sample; by how much a burst of operations may take longer than the shortest one without another thread."""


@dataclass(frozen=True)
class Row:
    """A row of `rows.c`: name, arrays that it walks, bytes of an element, the offset of each array and its type."""

    name: str
    arrays: int
    element: int
    offsets: tuple[int, ...]
    kinds: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of an array."""
        return min(12288, 24 * 1024 // max(1, self.arrays) // 2048 * 2048)

    @property
    def aside(self) -> bool:
        """Whether it is set aside."""
        return is_aside(self.name)


def is_aside(name: str) -> bool:
    """Whether the row of this name is set aside."""
    return zlib.crc32(name.encode()) % 3 == 0


def rows() -> list[Row]:
    """All rows."""
    found = _ROW.findall((FOLDER / "rows.c").read_text())
    return [
        Row(name, int(arrays), int(element), tuple(map(int, offsets.split(","))) if offsets else (), tuple(kinds))
        for name, arrays, element, offsets, *kinds in found
    ]


def _values(kind: str, size: int) -> bytes:
    if kind not in _FORMATS:
        return bytes(k * 79 % 251 for k in range(size))
    letter, divisor, least = _FORMATS[kind]
    count = size // struct.calcsize(letter)
    return struct.pack(
        f"{count}{letter}", *(least + (k * 7919 % 1000) / divisor if least else k * 7919 % 1000 for k in range(count))
    )


class Memory:
    """Arrays, each further in its page than the one before, so that no load is a little behind a store there."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 1 << 20)
        self._begin = (ctypes.addressof(ctypes.c_char.from_buffer(self._map)) + PAGE - 1) // PAGE * PAGE

    def arrays(self, row: Row) -> Any:
        """The addresses of the arrays of a row, filled anew."""
        at, places = self._begin + 2 * PAGE, []
        for number in range(ARRAYS):
            places.append(at + (row.offsets[number] if number < len(row.offsets) else 0))
            at += (row.size + PAGE - 1) // PAGE * PAGE + 256 if number < row.arrays else 2 * PAGE
        for number in reversed(range(ARRAYS)):
            content = _values(row.kinds[number], row.size + 192 if number < max(1, row.arrays) else 8000)
            ctypes.memmove((places[number] - LINE) // LINE * LINE, content, len(content))
        return (ctypes.c_void_p * ARRAYS)(*places)


def innermost(code: bytes) -> list[tuple[int, int, tuple[Instruction, ...]]]:
    """First and last byte of the innermost loops of a function, and their instructions."""
    instructions = tuple(isa_of("x86-64").decode(code, 0))
    starts = [0]
    for item in instructions:
        starts.append(starts[-1] + item.length)
    found = []
    for number, item in enumerate(instructions):
        if item.branch == "conditional" and item.target in starts and item.target <= starts[number]:
            first = starts.index(item.target)
            found.append((item.target, starts[number + 1], instructions[first : number + 1]))
    return [own for own in found if not any(o != own and o[0] >= own[0] and o[1] <= own[1] for o in found)]


class Bench:
    """What times rows: the library of `timer.c` and the memory."""

    def __init__(self, folder: Path) -> None:
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", folder / "timer.so", FOLDER / "timer.c"], check=True)
        self.timer = ctypes.CDLL(str(folder / "timer.so"))
        self.memory = Memory()
        self._shortest_burst = float("inf")

    def loop(self, function: Any, code: bytes, row: Row) -> dict[str, Any] | None:
        """The loop of a row that runs, without its time; None if it is not one without branches."""
        address = ctypes.cast(function, ctypes.c_void_p).value or 0
        found, (shorter, longer) = innermost(code), self.lengths(row)
        if not found:
            return None
        heads = (ctypes.c_void_p * len(found))(*(address + own[0] for own in found))
        registers = (ctypes.c_uint64 * (len(REGISTERS) * len(found)))()
        often = []
        for length in (shorter, longer):
            counts = (ctypes.c_uint64 * len(found))()
            arrays = self.memory.arrays(row)
            self.timer.count(function, ctypes.c_long(length), arrays, len(found), heads, counts, registers)
            often.append(list(counts))
        more = [after - before for before, after in zip(*often, strict=True)]
        hot = [number for number, passes in enumerate(more) if passes > 4]
        if len(hot) != 1 or any(item.branch for item in found[hot[0]][2][:-1]) or more[hot[0]] < _FEWEST:
            return None
        first, last, _ = found[hot[0]]
        own = registers[len(REGISTERS) * hot[0] : len(REGISTERS) * (hot[0] + 1)]
        where = {"hex": code[first:last].hex(), "address": (address + first) % LINE, "passes": more[hot[0]]}
        return {"row": row.name, **where, "registers": list(own)}

    @staticmethod
    def lengths(row: Row) -> tuple[int, int]:
        """Elements of the shorter and the longer calls."""
        longer = row.size // row.element
        longer = min(longer, 2048) if row.element == 8 and "I" in row.kinds else longer
        return longer // 2, longer

    def cycles(self, function: Any, row: Row, passes: int) -> float | None:
        """Cycles per pass; None where no two rounds agree."""
        lengths, granule = self.lengths(row), 256 // row.element
        rounds: list[float] = []
        for number in range(_ROUNDS):
            self.timer.pin(sorted(os.sched_getaffinity(0))[0] if number == 0 else number % (os.cpu_count() or 1))
            times = max(2, _CALL_TICKS // max(1, self._samples(function, row, lengths, granule, 1, 3)[0][3]))
            steady = [own for own in self._samples(function, row, lengths, granule, times, _SAMPLES) if _steady(own)]
            kept = self._alone(steady)
            if len(kept) < _FEWEST:
                continue
            scaled = [sorted(2 * ADDITIONS * own[k] / (own[0] + own[1]) / times for own in kept) for k in (2, 3)]
            rounds.append((scaled[1][len(kept) // 10] - scaled[0][len(kept) // 10]) / passes)
            least = sorted(rounds)
            if len(rounds) > 1 and least[1] <= least[0] * (1 + _AGREE):
                return least[0]
        return None

    def _samples(
        self, function: Any, row: Row, lengths: tuple[int, int], granule: int, times: int, samples: int
    ) -> list[list[int]]:
        ticks = (ctypes.c_uint64 * (_NUMBERS * samples))()
        numbers = [ctypes.c_long(own) for own in (*lengths, granule, times)]
        self.timer.sample(function, *numbers, self.memory.arrays(row), ctypes.c_long(samples), ticks)
        return [list(ticks[_NUMBERS * k : _NUMBERS * (k + 1)]) for k in range(samples)]

    def _alone(self, samples: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Those beside which no other thread of the core was busy: their burst was as short as any, in cycles."""
        bursts = [own[4] / (own[0] + own[1]) for own in samples]
        self._shortest_burst = min([self._shortest_burst, *bursts])
        pairs = zip(samples, bursts, strict=True)
        return [own for own, burst in pairs if burst <= self._shortest_burst * _ALONE]


def _steady(sample: Sequence[int]) -> bool:
    return abs(sample[0] / sample[1] - 1) < _STEADY


def targets() -> list[str]:
    """The targets whose code this host executes."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return [target for target in TARGETS if NEEDED.get(target, "avx512vl") in flags]


def measured(only: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    """The loops of the rows whose names match, each code at each address once."""
    seen: set[tuple[str, int, str]] = set()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        for number, (compiler, level, target) in enumerate(
            (c, o, t) for c in COMPILERS for o in LEVELS for t in targets()
        ):
            made = Path(name) / f"rows{number}.so"
            flags = (f"-{level}", *TARGETS[target], "-w", "-shared", "-fPIC")
            subprocess.run([compiler, *flags, "-o", made, FOLDER / "rows.c", "-lm"], check=True)
            library = ctypes.CDLL(str(made))
            symbols = subprocess.run(["nm", "-S", made], capture_output=True, text=True, check=True).stdout
            sizes = {words[3]: int(words[1], 16) for line in symbols.splitlines() if len(words := line.split()) == 4}
            for row in rows():
                if not only.search(row.name):
                    continue
                function = getattr(library, row.name)
                code = ctypes.string_at(ctypes.cast(function, ctypes.c_void_p).value or 0, sizes[row.name])
                loop = bench.loop(function, code, row)
                key = (loop["hex"], loop["address"], row.name) if loop else None
                if loop is None or key is None or key in seen:
                    continue
                seen.add(key)
                cycles = bench.cycles(function, row, loop["passes"])
                if cycles is not None:
                    yield {**loop, "compiler": compiler, "level": level, "target": target, "cycles": cycles}


def predicted(loop: Mapping[str, Any], table: InstructionTable) -> float:
    """What the model says, its data where they lay."""
    listing = decode_bytes(bytes.fromhex(loop["hex"]))
    body = AssemblyLoop(listing.instructions, listing.isa, "binary", "", "", None, (), "", "marked", ())
    values = dict(zip(REGISTERS, loop["registers"], strict=True))
    loads, stores = BodyAccesses([address_step(own) for own in listing.instructions]).moving()
    starts = {
        own.instruction: ((own.address.constant + sum(f * values[name] for name, f in own.address.terms)) % LINE,)
        for own in (*loads, *stores)
        if all(name in values for name, _ in own.address.terms)
    }
    return analyse(body, table.parameters, table, offset=loop["address"], places=Places(starts=starts)).prediction


def compare(file: Path, core: str, *, aside: bool, worst: int) -> None:
    """Print mean error and share within 5 %, of distinct code of each row, and the worst."""
    table = InstructionTable.open(load_parameters(core))
    distinct: dict[tuple[str, str], dict[str, Any]] = {}
    for line in file.read_text().splitlines():
        loop = json.loads(line)
        if is_aside(loop["row"]) == aside:
            own = distinct.setdefault((loop["hex"], loop["row"]), loop)
            if own["address"] == loop["address"]:
                own["cycles"] = min(own["cycles"], loop["cycles"])
    answers = [(predicted(loop, table), loop) for loop in distinct.values()]
    if not answers:
        print("no such loops")
        return
    errors = [abs(prediction / loop["cycles"] - 1) for prediction, loop in answers]
    close = sum(error <= 0.05 for error in errors) / len(errors)
    print(f"{core}: {len(errors)} loops, mean {sum(errors) / len(errors):.2%}, within 5 %: {close:.1%}")
    for error, (prediction, loop) in sorted(zip(errors, answers, strict=True), key=lambda pair: -pair[0])[:worst]:
        how = f"{loop['row']} {loop['compiler']} -{loop['level']} {loop['target']}"
        print(f"{how:50} measured {loop['cycles']:7.2f}, predicted {prediction:7.2f} ({error:.0%})")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", type=re.compile, default=re.compile(""))
    parser.add_argument("--core", default="RWC")
    parser.add_argument("--aside", action="store_true")
    parser.add_argument("--worst", type=int, default=20)
    options = parser.parse_args(arguments)
    if options.what == "compare":
        compare(options.file, options.core, aside=options.aside, worst=options.worst)
        return 0
    with options.file.open("w") as file:
        for loop in measured(options.only):
            file.write(json.dumps(loop) + "\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
