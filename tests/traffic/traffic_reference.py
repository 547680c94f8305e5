"""A naive reference: every access of a nest, one by one, through fully associative LRU caches; and nests to put in."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from kernmodel.machine.load import load_machine
from kernmodel.machine.model import CacheLevel, Machine, TransferPath
from kernmodel.source.model import Access, LoopNest

LINE = 64
VARIABLES, SIZES = "kji", "LMN"
EXTENTS = {1: (2000,), 2: (40, 176), 3: (16, 20, 72)}
HALO = 2

offset = st.integers(-HALO, HALO)
NAMES = {"Min": min, "Max": max, "floor": lambda x: x // 1}


def toy_machine(*sizes: float, victim: bool = False, clean_victims: bool = True, sharing: int = 1) -> Machine:
    """A machine with caches of these sizes (bytes), innermost first; the last one is a victim cache if wanted."""
    names = [f"L{k + 1}" for k in range(len(sizes))]
    levels = tuple(
        CacheLevel(
            name=name,
            size_bytes=size,
            ways=max(1, int(size // LINE)),
            sets=1,
            line_bytes=LINE,
            replacement="LRU",
            write_back=True,
            write_allocate=True,
            cores_sharing=sharing if name == names[-1] else 1,
            filled_by="victims" if victim and name == names[-1] else "miss",
            inclusive_of_inner=None,
            clean_victims=clean_victims and victim and name == names[-1],
            loads_pass_by=victim and name == names[-1],
        )
        for name, size in zip(names, sizes, strict=True)
    )
    outer = [*names[1:], "Mem"]
    paths = tuple(TransferPath(a + b, a, b, 64.0, "half") for a, b in zip(names, outer, strict=True))
    return replace(load_machine("clx"), name="toy", levels=levels, paths=paths)


class Cache:
    """Fully associative, LRU, write-back, write-allocate; `lines` maps a line to whether it is modified."""

    def __init__(self, size: float, outer: Cache | None, filled_by: str) -> None:
        self.capacity = int(size // LINE)
        self.outer = outer
        self.victim = filled_by == "victims"
        self.lines: OrderedDict[int, bool] = OrderedDict()
        self.loads = self.stores = self.clean = 0

    def access(self, line: int, modify: bool) -> None:
        if line in self.lines:
            self.lines[line] |= modify
            self.lines.move_to_end(line)
        else:
            self.insert(line, self.fetch(line) or modify)

    def fetch(self, line: int) -> bool:
        """Bring a line in from further out; whether it comes modified (out of a victim cache)."""
        if self.outer is None:
            self.loads += 1
            return False
        if not self.outer.victim:
            self.loads += 1
            self.outer.access(line, False)
            return False
        if line in self.outer.lines:
            self.loads += 1
            return self.outer.lines.pop(line)
        self.outer.loads += 1
        return False

    def insert(self, line: int, modified: bool) -> None:
        self.lines[line] = modified
        self.lines.move_to_end(line)
        if len(self.lines) > self.capacity:
            old, dirty = self.lines.popitem(last=False)
            self.evict(old, dirty)

    def evict(self, line: int, modified: bool) -> None:
        if modified:
            self.stores += 1
        if self.outer is None:
            return
        if self.outer.victim:
            self.clean += not modified
            self.outer.insert(line, modified)
        elif modified:
            self.outer.write_back(line)

    def write_back(self, line: int) -> None:
        """A whole modified line comes from the level inside: nothing is loaded for it."""
        if line in self.lines:
            self.lines[line] = True
            self.lines.move_to_end(line)
        else:
            self.insert(line, True)


def touches(nest: LoopNest, sizes: dict[str, int]) -> list[tuple[int, bool]]:
    """(line, whether it is written) of every access of a sweep, in execution order.

    Accesses that the innermost loops do not move are read before these and written after them.
    """
    bases, place = {}, 0
    codes = [(access, compile(str(access.offset), access.text, "eval")) for access in nest.accesses]
    bounds = [[compile(str(bound), "bound", "eval") for bound in (loop.start, loop.stop)] for loop in nest.loops]
    for name in nest.arrays:
        bases[name] = place
        place += 1 << 34
    found: list[tuple[int, bool]] = []

    def touch(depth: int, values: dict[str, int], first: tuple[bool, ...], last: tuple[bool, ...]) -> None:
        for access, code in codes:
            held = held_from(access)
            if access.depth == depth and all((last if access.kind == "write" else first)[held:]):
                element = nest.arrays[access.array].element.size_bytes
                address = bases[access.array] + int(eval(code, NAMES, values)) * element
                found.append((address // LINE, access.kind == "write"))

    def run(depth: int, values: dict[str, int], first: tuple[bool, ...], last: tuple[bool, ...]) -> None:
        loop, (start, stop) = nest.loops[depth], bounds[depth]
        steps = range(int(eval(start, NAMES, values)), int(eval(stop, NAMES, values)), loop.step)
        for count, values[loop.variable] in enumerate(steps):
            here, done = (*first, count == 0), (*last, count == len(steps) - 1)
            if depth + 1 < len(nest.loops):
                run(depth + 1, values, here, done)
            touch(depth + 1, values, here, done)

    run(0, dict(sizes), (), ())
    return found


def held_from(access: Access) -> int:
    """The first of the innermost loops that do not move an access: it stays in a register while they run."""
    depth = access.depth
    while depth and access.coefficients[depth - 1] == 0:
        depth -= 1
    return depth


def simulate(
    nest: LoopNest, machine: Machine, sizes: dict[str, int], warm_up: int = 2
) -> dict[str, tuple[float, float, float]]:
    """Per path: lines loaded, modified lines stored and clean victims per inner iteration, in a sweep after warm-up."""
    caches: list[Cache] = []
    for level in reversed(machine.levels):
        caches.insert(0, Cache(level.size_bytes, caches[0] if caches else None, level.filled_by))
    trace = touches(nest, sizes)
    for sweep in range(warm_up + 1):
        if sweep == warm_up:
            for cache in caches:
                cache.loads = cache.stores = cache.clean = 0
        for line, modify in trace:
            caches[0].access(line, modify)
    iterations = iterations_of(nest, sizes)
    return {
        path.name: (cache.loads / iterations, cache.stores / iterations, cache.clean / iterations)
        for path, cache in zip(machine.paths, caches, strict=True)
    }


def iterations_of(nest: LoopNest, sizes: dict[str, int]) -> int:
    from kernmodel.source.nest.sizes import iterations_per_sweep

    return iterations_per_sweep(nest, sizes)


@st.composite
def stencils(draw: st.DrawFn, columns: bool = False) -> tuple[str, dict[str, int], float]:
    """C text of a stencil, its sizes, and by what its boundary can increase the traffic."""
    rank = draw(st.sampled_from((1, 1, 2, 2, 2, 3)))
    variables, names, extents = VARIABLES[-rank:], SIZES[-rank:], EXTENTS[rank]
    points = draw(st.lists(st.tuples(*[offset] * rank), min_size=1, max_size=5, unique=True))
    kinds = [draw(st.sampled_from(("double", "float"))) for _ in range(3)]
    steps = [draw(st.sampled_from((1, 1, 1, -1, 2, -2))) for _ in range(rank)]
    in_place = draw(st.booleans())
    shape = "".join(f"[{name}]" for name in names)
    flat = draw(st.booleans())
    text = f"void f({kinds[0]} a[restrict {']['.join(names)}], {kinds[1]} b{shape}, {kinds[2]} c[restrict N]) {{\n"
    order = draw(st.permutations(range(rank))) if columns else range(rank)
    for variable, name, step in [(variables[d], names[d], steps[d]) for d in order]:
        up = f"for (int {variable} = {HALO}; {variable} < {name} - {HALO}; {variable} += {step})"
        down = f"for (int {variable} = {name} - {HALO} - 1; {variable} >= {HALO}; {variable} -= {-step})"
        text += up if step > 0 else down
    reads = [
        "a" + "".join(f"[{v}{o:+d}]" if o else f"[{v}]" for v, o in zip(variables, point, strict=True))
        for point in points
    ]
    target = "".join(f"[{v}]" for v in variables)
    text += f"{'a' if in_place else 'b'}{target} = {' + '.join(reads)} {'+ c[i]' if flat else ''}; }}"
    trips = [(extent - 2 * HALO) // abs(step) for extent, step in zip(extents, steps, strict=True)]
    boundary = prod((trip + 2 * HALO) / trip for trip in trips)
    return text, dict(zip(names, extents, strict=True)), boundary
