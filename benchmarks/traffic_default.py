"""Does the default (`--cache auto`) say what the simulation says, and does it speak up where it does not?

    python benchmarks/traffic_default.py --seed 1 [--cases 330] [--processes 2] [--machines clx,hsw,zen2]

Makes random kernels of the families below, at sizes at which layer conditions are likely to be wrong, on some
machines, and compares the traffic of the default with that of `--cache sim`: two agree if no number of any path differs
by more than 5 %, or by more than 2 % of the lines of the busiest path. No case is dropped. What the table means:
docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import get_args

from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.request import KernelRequest
from kernmodel.studies.predict.traffic import predict_traffic_sweep
from kernmodel.traffic.comparison.agreement import differs
from kernmodel.traffic.comparison.doubts import DoubtCode
from kernmodel.traffic.model import Traffic

MACHINES = "clx,hsw,zen2"
BELOW_AT_ABOVE = (0.8, 0.9, 0.97, 1.0, 1.03, 1.1, 1.25)
"""Sizes around a threshold, as data over room."""


@dataclass(frozen=True)
class Case:
    family: str
    machine: str
    text: str

    def __str__(self) -> str:
        return f"{self.family} on {self.machine}: {' '.join(self.text.split())}"


@dataclass(frozen=True)
class Outcome:
    """What was found of a case: whether the default and the layer conditions agree with the simulation, and the codes
    of the notes by which the default doubts its numbers or says why they are simulated."""

    case: Case
    agrees: bool
    symbolic_agrees: bool | None
    simulated: bool
    notes: tuple[str, ...]
    numbers: str
    seconds: float


def rooms_of(machine: str) -> list[float]:
    """Bytes of each cache, a victim cache with the one that fills it."""
    levels, found = load_machine(machine).levels, list[float]()
    for level in levels:
        inner = found[-1] if level.filled_by == "victims" else 0.0
        found.append(level.size_bytes + inner)
    return found


def c_nest(arrays: str, loops: Sequence[tuple[str, object, object]], body: str, element: str = "double") -> str:
    """A nest of loops (variable, first value, end) around a statement."""
    heads = " ".join(f"for (int {name} = {start}; {name} < {stop}; ++{name})" for name, start, stop in loops)
    return f"{element} {arrays}; {element} s;\n{heads}\n{body};\n"


def streams(rng: random.Random, machine: str) -> str:
    """Several arrays from end to end, as large together as a cache, about."""
    count = rng.randint(1, 6)
    room = rng.choice(rooms_of(machine)) * rng.choice(BELOW_AT_ABOVE)
    element, size = rng.choice((("double", 8), ("float", 4)))
    n = max(16, int(room / size / (count + 1)))
    arrays = ", ".join(f"x{k}[{n}]" for k in range(count + 1))
    reads = " + ".join(f"x{k}[i]" for k in range(1, count + 1))
    target = f"x0[i] = {reads}" if rng.random() < 0.7 else f"s += {reads}"
    return f"{element} {arrays}; {element} s;\nfor (int i = 0; i < {n}; ++i) {target};\n"


def star(rng: random.Random, radius: int, dimensions: int) -> str:
    """The terms of a star stencil of a[k][j][i]."""
    names = ("k", "j", "i")[3 - dimensions :]
    terms = ["a" + "".join(f"[{name}]" for name in names)]
    for place in range(dimensions):
        for offset in range(1, radius + 1):
            for sign in "+-":
                index = [f"[{n}{sign}{offset}]" if k == place else f"[{n}]" for k, n in enumerate(names)]
                terms.append("a" + "".join(index))
    return " + ".join(terms)


def grid(names: str, extents: tuple[int, ...], radius: int, body: str, element: str = "double") -> str:
    """A stencil over a grid."""
    shape = "".join(f"[{extent}]" for extent in extents)
    loops = "".join(
        f"for (int {name} = {radius}; {name} < {extent - radius}; ++{name})\n"
        for name, extent in zip(names, extents, strict=True)
    )
    return f"{element} a{shape}, b{shape}, c{shape};\n{loops}{body};\n"


def stencils(rng: random.Random, machine: str) -> str:
    """Stencils whose rows, planes or data are as large as a cache, about."""
    radius, room = rng.choice((1, 1, 2, 4)), rng.choice(rooms_of(machine)[:2]) * rng.choice(BELOW_AT_ABOVE)
    extra = rng.choice(("", " + c[j][i]"))
    if rng.random() < 0.55:
        columns = max(4 * radius + 8, int(room / 8 / (2 * radius + 2 + bool(extra))))
        rows = rng.choice((30, 60, 200))
        return grid("ji", (rows, columns), radius, f"b[j][i] = {star(rng, radius, 2)}{extra}")
    side = max(6 * radius + 8, int(sqrt(room / 8 / (2 * radius + 2))))
    extents = (rng.choice((30, 60)), side, side) if rng.random() < 0.5 else (rng.choice((30, 60)), 2 * side, side // 2)
    return grid("kji", extents, radius, f"b[k][j][i] = {star(rng, radius, 3)}{extra.replace('c[', 'c[k][')}")


def sweeps(rng: random.Random, machine: str) -> str:
    """Stencils all of whose data are as large as a cache, about: whether they stay from sweep to sweep."""
    room = rng.choice(rooms_of(machine)) * rng.choice(BELOW_AT_ABOVE)
    rows = rng.choice((40, 150, 500))
    columns = max(12, int(room / 16 / rows))
    return grid("ji", (rows, columns), 1, f"b[j][i] = {star(rng, 1, 2)}")


def triangles(rng: random.Random, machine: str) -> str:
    """Triangular and trapezoidal nests."""
    n, small, band = rng.choice((60, 100, 250, 333, 500, 700, 1000)), rng.choice((60, 100, 150, 200, 260)), 10
    square, rows, half = f"[{n}][{n}]", ("j", 0, n), rng.choice((("i", "j", n), ("i", "j + 1", n), ("i", 0, "j + 1")))
    return rng.choice((
        c_nest(f"a{square}, b{square}", (rows, half), "a[j][i] = b[j][i]"),
        c_nest(f"a{square}, b{square}", (rows, half), "a[i][j] = b[i][j]"),
        c_nest(f"a{square}, x[{n}], y[{n}]", (rows, half), "y[j] += a[j][i] * x[i]"),
        c_nest(f"a{square}, x[{n}], y[{n}]", (rows, half), "y[i] += a[j][i] * x[j]"),
        c_nest(f"A[{small}][{small}]", (("k", 0, small), ("i", "k + 1", small), ("j", "k + 1", small)),
               "A[i][j] -= A[i][k] * A[k][j]"),
        c_nest(f"A[{small}][{small}], C[{small}][{small}]", (("i", 0, small), ("k", 0, small), ("j", 0, "i + 1")),
               "C[i][j] += A[i][k] * A[j][k]"),
        c_nest(f"a[{n}][{n + band}], b[{n}][{n + band}]", (rows, ("i", "j", f"j + {band}")),
               "a[j][i] = b[j][i] + a[j][i]"),
    ))  # fmt: skip


def transposed(rng: random.Random, machine: str) -> str:
    """Walks down columns, rows of any length."""
    n = rng.choice(
        (32, 48, 64, 96, 100, 120, 128, 136, 160, 192, 200, 256, 320, 384, 400, 500, 512, 640, 768, 1000, 1024)
    )
    m = rng.choice((n, n, n // 2, 2 * n, n + 8))
    body = rng.choice((
        "a[i][j] = b[i][j]", "a[i][j] = b[j][i]", "a[j][i] = b[i][j]", "s += a[i][j]", "a[i][j] = a[i][j] + b[i][j]",
    ))  # fmt: skip
    rows, columns = (max(n, m), max(n, m)) if "[j][i]" in body else (m, n)
    element = rng.choice(("double", "double", "float"))
    return (
        f"{element} a[{rows}][{columns}], b[{rows}][{columns}]; {element} s;\n"
        f"for (int j = 0; j < {n}; ++j) for (int i = 0; i < {m}; ++i) {body};\n"
    )


def powers_of_two(rng: random.Random, machine: str) -> str:
    """Grids whose rows or planes are powers of two of bytes long."""
    if rng.random() < 0.35:
        columns = rng.choice((128, 256, 512, 1024, 2048, 4096))
        radius = rng.choice((1, 2, 4))
        return grid("ji", (rng.choice((32, 64, 128)), columns), radius, f"b[j][i] = {star(rng, radius, 2)}")
    extents = rng.choice(((32, 64, 256), (32, 256, 256), (64, 128, 128), (64, 64, 64), (32, 128, 512)))
    radius = rng.choice((1, 2, 4))
    if rng.random() < 0.7:
        return grid("kji", extents, radius, f"b[k][j][i] = {star(rng, radius, 3)}")
    return _along_planes(rng, extents)


def _along_planes(rng: random.Random, extents: tuple[int, int, int]) -> str:
    """A walk whose inner loop steps from plane to plane."""
    depth, rows, columns = extents
    shape = f"[{depth}][{rows}][{columns}]"
    order = rng.choice((("j", "i", "k"), ("i", "j", "k"), ("i", "k", "j"), ("k", "i", "j")))
    limit = {"k": depth, "j": rows, "i": columns}
    loops = "".join(f"for (int {name} = 0; {name} < {limit[name]}; ++{name})\n" for name in order)
    body = rng.choice(("b[k][j][i] = a[k][j][i]", "b[k][j][i] += 2.0 * a[k][j][i]", "s += a[k][j][i]"))
    return f"double a{shape}, b{shape}; double s;\n{loops}{body};\n"


def short_rows(rng: random.Random, machine: str) -> str:
    """Grids with rows of few elements."""
    inner = rng.choice((6, 8, 10, 13, 20, 27, 34, 50))
    radius = rng.choice((1, 1, 2))
    if rng.random() < 0.5:
        extents = (rng.choice((200, 2000, 20000)), inner + 2 * radius)
        return grid("ji", extents, radius, f"b[j][i] = {star(rng, radius, 2)}")
    extents = (rng.choice((20, 60)), rng.choice((20, 60, 200)), inner + 2 * radius)
    return grid("kji", extents, radius, f"b[k][j][i] = {star(rng, radius, 3)}")


def structures(rng: random.Random, machine: str) -> str:
    """Some members of structures in an array."""
    size = rng.choice((3, 4, 5, 7, 12, 16, 19, 25, 27))
    room = rng.choice(rooms_of(machine)) * rng.choice((0.3, 0.8, 1.0, 1.25, 3.0))
    n = min(400_000, max(100, int(room / 8 / size)))
    members = sorted(rng.sample(range(size), min(size, rng.choice((1, 2, 3, 5)))))
    reads = " + ".join(f"px[i][{member}]" for member in members)
    shape, body = rng.choice((
        (f"px[{n}][{size}], y[{n}]", f"y[i] = {reads}"),
        (f"px[{n}][{size}]", f"s += {reads}"),
        (f"px[{n}][{size}]", f"px[i][{members[0]}] = {reads}"),
    ))  # fmt: skip
    return f"double {shape}; double s;\nfor (int i = 0; i < {n}; ++i) {body};\n"


def patterns(rng: random.Random, machine: str) -> str:
    """Arrays that are indexed in several ways in one nest."""
    n, small = rng.choice((40, 64, 100, 128, 200, 256, 400, 600, 1000)), rng.choice((40, 64, 100, 150))
    both, square = (("j", 0, n), ("i", 0, n)), f"[{n}][{n}]"
    return rng.choice((
        c_nest(f"a{square}, b{square}", both, "b[j][i] = a[j][i] + a[i][j]"),
        c_nest(f"a{square}", both, "a[j][i] = a[j][i] + a[i][j]"),
        c_nest(f"a[{2 * n}], b{square}", both, "b[j][i] = a[i + j] + a[i]"),
        c_nest(f"a[{small}][{small}], c[{small}][{small}]", [(v, 0, small) for v in "ijk"],
               "c[i][j] += a[i][k] * a[j][k]"),
        c_nest(f"a{square}, x[{n}], y[{n}]", both, "y[j] += a[j][i] * x[i] * x[j]"),
    ))  # fmt: skip


def products(rng: random.Random, machine: str) -> str:
    """Matrix products in all orders of the loops, and matrices times vectors."""
    n = rng.choice((32, 45, 60, 64, 80, 100, 128, 150, 181, 200, 256))
    if rng.random() < 0.7:
        order = rng.sample(("i", "j", "k"), 3)
        loops = "".join(f"for (int {name} = 0; {name} < {n}; ++{name})\n" for name in order)
        return f"double a[{n}][{n}], b[{n}][{n}], c[{n}][{n}];\n{loops}c[i][j] += a[i][k] * b[k][j];\n"
    room = rng.choice(rooms_of(machine)[:2]) * rng.choice(BELOW_AT_ABOVE)
    n = int(room / 16)
    rows = rng.choice((20, 100))
    body = rng.choice(("y[j] += a[j][i] * x[i]", "x[i] += a[j][i] * y[j]"))
    return (
        f"double a[{rows}][{n}], x[{n}], y[{rows}];\n"
        f"for (int j = 0; j < {rows}; ++j) for (int i = 0; i < {n}; ++i) {body};\n"
    )


FAMILIES: tuple[Callable[[random.Random, str], str], ...] = (
    streams, stencils, sweeps, triangles, transposed, powers_of_two, short_rows, structures, patterns, products,
)  # fmt: skip


def cases(seed: int, count: int, machines: Sequence[str]) -> Iterator[Case]:
    """So many cases, the same for the same seed: families and machines in turn."""
    rng = random.Random(seed)
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        machine = machines[number // len(FAMILIES) % len(machines)]
        yield Case(family.__name__.replace("_", " "), machine, family(rng, machine))


def run(case: Case) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.c"
        path.write_text(case.text)

        def found(cache: str) -> Traffic:
            request = KernelRequest(str(path), case.machine, {}, cache=cache)  # type: ignore[arg-type]
            return next(predict_traffic_sweep(request, ({},))).traffic

        start = time.process_time()
        default = found("auto")
        seconds = time.process_time() - start
        simulated = found("sim")
    symbolic = default.symbolic or (default if default.method != "simulation" else None)
    notes = tuple(note.code for note in default.notes if note.code in (*get_args(DoubtCode), "not-settled"))
    return Outcome(
        case=case,
        agrees=not differs(default, simulated),
        symbolic_agrees=None if symbolic is None else not differs(symbolic, simulated),
        simulated=default.method == "simulation",
        notes=notes,
        numbers="; ".join(
            f"{path.path} " + "/".join(f"{v:.3g}" for v in (path.loads, path.stores, path.clean_victims))
            for traffic in (default, simulated)
            for path in traffic.paths
        ),
        seconds=seconds,
    )


def table(outcomes: list[Outcome]) -> str:
    """Per family: cases, how many agree, and which of them carry a note."""
    lines = [
        "| family | cases | layer conditions agree | default agrees | differs without a note | simulated numbers stand "
        "| note though layer conditions agree |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    families = list(dict.fromkeys(outcome.case.family for outcome in outcomes))
    for name in (*families, "all"):
        part = [outcome for outcome in outcomes if name in (outcome.case.family, "all")]
        agree = [outcome for outcome in part if outcome.symbolic_agrees]
        cells = (
            name,
            len(part),
            f"{len(agree)} ({len(agree) / len(part):.0%})",
            f"{sum(o.agrees for o in part)} ({sum(o.agrees for o in part) / len(part):.1%})",
            sum(not o.agrees and not o.notes for o in part),
            sum(o.simulated for o in part),
            f"{sum(bool(o.notes) for o in agree)} ({sum(bool(o.notes) for o in agree) / max(1, len(agree)):.0%})",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=330)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--machines", default=MACHINES)
    options = parser.parse_args()
    start = time.perf_counter()
    outcomes = []
    with ProcessPoolExecutor(options.processes) as pool:
        for outcome in pool.map(run, cases(options.seed, options.cases, options.machines.split(",")), chunksize=2):
            outcomes.append(outcome)
            if not outcome.agrees:
                noted = ", ".join(outcome.notes) or "no note"
                print(f"DIFFERS ({noted}) {outcome.case}\n    {outcome.numbers}", flush=True)
    print(table(outcomes))
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    print(f"seed {options.seed}, {len(outcomes)} cases, {time.perf_counter() - start:.0f} s")
    print(f"slowest default: {slowest.seconds:.2f} s of CPU, {slowest.case}")


if __name__ == "__main__":
    main()
