"""What one pass of a compiled loop has to load, to store and to compute, by the source: ranges, not numbers.

A pass that executes `steps` steps of the loop's variable, and in each of them `copies` iterations of another loop of
the nest (unroll-and-jam, vector lanes over an outer loop, an inner loop that is unrolled entirely), touches a set of
elements that the source fixes. A compiler may load an element once for all its uses, keep it in a register from one
pass to the next, forward what it has just stored, and compute a value once that several iterations share: that is the
least. It may not do more than every iteration on its own, except for the bytes between elements that a vector spans.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from itertools import groupby, pairwise

from kernmodel.code.model import ExpectedAccess
from kernmodel.value_types import dataclass

_WIDEST_VECTOR = 64
"""Bytes: no vector reaches from one element to the next where the stride is larger."""

_KEPT_STEPS = 64
"""Steps for which a compiler keeps an element in a register; distances beyond are rows of an array."""

_KINDS = ("add", "mul", "div", "sqrt")


@dataclass(frozen=True, slots=True)
class ExpectedOperation:
    """An operation of the innermost body that yields a value of its own.

    Attributes:
        kind: "add", "mul", "div" or "sqrt".
        variables: names of the loop variables on which the operands depend.
        by_literal: a division by a literal.
    """

    kind: str
    variables: frozenset[str]
    by_literal: bool = False


@dataclass(frozen=True, slots=True)
class ExpectedWork:
    """The floating-point operations of the innermost body.

    Attributes:
        total: per iteration by kind, as the source writes them; a fused multiply-add is one "add" and one "mul".
        distinct: those that yield different values; None: not known, so that any of them may be left out.
        reductions: sums that begin anew each time the innermost loop is entered.
        conversions: conversions of integers, for which some instruction sets add and subtract.
        complex_products: products of two complex numbers.
        open_ended: calls of functions whose operations are not known.
        reassociated: the compiler was allowed to reorder (-ffast-math), so that fewer operations are no surprise.
    """

    total: Mapping[str, int] = field(default_factory=dict)
    distinct: tuple[ExpectedOperation, ...] | None = None
    reductions: int = 0
    conversions: int = 0
    complex_products: int = 0
    open_ended: bool = False
    reassociated: bool = False


@dataclass(frozen=True, slots=True)
class WholeLoops:
    """Loops that a step of a loop around them executes entirely: the compiler unrolled them.

    Attributes:
        variables: of these loops, outermost first; the last one is the innermost of the nest.
        points: of each execution of the innermost body, how many steps each variable is from where it begins.
        alike: every step of the loop around executes these; else others execute fewer (a triangle), and these are
            those of the longest one.
    """

    variables: tuple[str, ...]
    points: tuple[tuple[int, ...], ...]
    alike: bool = True

    def distinct(self, variables: Collection[str]) -> list[tuple[int, ...]]:
        """The points in the order of execution, each once as far as these variables are concerned: how often
        something is executed that only changes with them."""
        if set(self.variables) <= set(variables):
            return list(self.points)
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        for point in self.points:
            seen.setdefault(tuple(p for p, v in zip(point, self.variables, strict=True) if v in variables), point)
        return list(seen.values())


_NONE_WHOLE = WholeLoops((), ((),))


@dataclass(frozen=True, slots=True)
class Block:
    """What one pass executes: `steps` of `variable`, in each `copies` iterations of the loop over `along`, and in each
    of these all iterations of the loops `whole`.

    `along` is None where no other loop takes part. `most_steps` is what an execution of the loop makes, None where that
    is not known.
    """

    variable: str
    steps: int
    copies: int = 1
    along: str | None = None
    whole: WholeLoops = _NONE_WHOLE
    most_steps: int | None = None

    @property
    def bodies(self) -> int:
        """Executions of the innermost body per step."""
        return self.copies * len(self.whole.points)

    def times(self, variables: Collection[str]) -> int:
        """How often a step executes what changes with these variables: once for what changes with none but its own."""
        return (self.copies if self.along in variables else 1) * len(self.whole.distinct(variables))


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes or operations per pass that the source allows."""

    least: int
    most: int

    def misses(self, found: int) -> int:
        """How far `found` is outside."""
        return max(0, self.least - found, found - self.most)

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def most_moved(expected: Iterable[ExpectedAccess], block: Block, *, written: bool) -> dict[int, int]:
    """Bytes that a pass stores or loads at most, by stride per step: every reference of every iteration on its own."""
    most: dict[int, int] = {}
    for access in expected:
        if access.stride_bytes and access.written == written:
            reach = abs(access.stride_bytes)
            size = max(access.element_bytes * _times(access, block), reach if reach <= _WIDEST_VECTOR else 0)
            if block.whole.variables and not written:
                size = max(size, _spanned(access, block))
            most[access.stride_bytes] = most.get(access.stride_bytes, 0) + size * block.steps * access.count
    return most


def _spanned(access: ExpectedAccess, block: Block) -> int:
    """Bytes of the elements that a step touches, and of those between that a vector spans: of loops that are unrolled
    entirely, compilers load vectors to use some of their elements."""
    places = sorted({shift for _, shift in _shifts(access, block)})
    gaps = (following - place for place, following in pairwise(places))
    return access.element_bytes + sum(gap if gap < _WIDEST_VECTOR else access.element_bytes for gap in gaps)


def least_moved(
    expected: Iterable[ExpectedAccess], block: Block, *, written: bool, conditional: bool = False
) -> dict[int, int]:
    """Bytes that a pass stores or loads at least, by stride per step, with every element kept where it can be.

    `conditional`: the code may leave out an assignment of an element to itself, `a[i] = test ? … : a[i]`.
    """
    moving = sorted((a for a in expected if a.stride_bytes), key=_walk)
    least: dict[int, int] = {}
    for (_, stride), group in groupby(moving, key=_walk):
        accesses = list(group)
        needed = _last_stores(accesses, block) if written else _first_loads(accesses, block, conditional)
        least[stride] = least.get(stride, 0) + needed
    return least


def _walk(access: ExpectedAccess) -> tuple[str, int]:
    return access.array, access.stride_bytes


def _times(access: ExpectedAccess, block: Block) -> int:
    """How often a step executes an access: a reference outside of another loop only once."""
    return block.times([name for name, _ in access.others])


def _shifts(access: ExpectedAccess, block: Block) -> list[tuple[tuple[int, tuple[int, ...]], int]]:
    """The executions of an access in a step, by copy and point, and the bytes by which each stands from the first one;
    0 for loops of which that is not known."""
    moved = {name: by or 0 for name, by in access.others}
    copies = range(block.copies if block.along in moved else 1)
    points = block.whole.distinct(moved)
    factors = [moved.get(name, 0) for name in block.whole.variables]
    along = moved.get(block.along or "", 0)
    return [
        ((copy, point), copy * along + sum(p * f for p, f in zip(point, factors, strict=True)))
        for copy in copies
        for point in points
    ]


def _touched(accesses: list[ExpectedAccess], block: Block) -> Iterator[tuple[ExpectedAccess, int]]:
    """The accesses of a pass with their addresses, in the order of the steps."""
    shifts = [(access, dict(_shifts(access, block))) for access in accesses]
    bodies = [(copy, point) for copy in range(block.copies) for point in block.whole.points]
    for step in range(block.steps):
        for body in bodies:
            for access, shift in shifts:
                if body in shift:
                    yield access, access.offset_bytes + step * access.stride_bytes + shift[body]


def _first_loads(accesses: list[ExpectedAccess], block: Block, conditional: bool) -> int:
    """Bytes whose first use in a pass is a load, and that no earlier pass had in a register."""
    earlier = _Neighbours(accesses, block, -1)
    stores = [access for access in accesses if access.written and conditional]
    seen = {address for _, address in _touched(stores, block)}
    loaded = 0
    for access, address in _touched(accesses, block):
        if address not in seen and not access.written and address not in earlier:
            loaded += access.element_bytes
        seen.add(address)
    return loaded


def _last_stores(accesses: list[ExpectedAccess], block: Block) -> int:
    """Bytes stored that no later pass stores again."""
    stores = [access for access in accesses if access.written]
    later = _Neighbours(stores, block, 1)
    places = {address: access.element_bytes for access, address in _touched(stores, block)}
    return sum(size for address, size in places.items() if address not in later)


class _Neighbours:
    """The addresses that the passes before (direction −1) or behind (1) a pass touch, as far as registers reach and the
    loop does."""

    def __init__(self, accesses: list[ExpectedAccess], block: Block, direction: int) -> None:
        self._stride = accesses[0].stride_bytes if accesses else 1
        self._kept = min(_KEPT_STEPS, (block.most_steps or _KEPT_STEPS + 1) - 1)
        self._nearest = 1 if direction < 0 else 1 - block.steps - self._kept
        bases: dict[int, set[int]] = {}
        for access in accesses:
            for _, shift in _shifts(access, block):
                step, rest = divmod(access.offset_bytes + shift, self._stride)
                bases.setdefault(rest, set()).add(step)
        self._bases = {rest: sorted(steps) for rest, steps in bases.items()}

    def __contains__(self, address: int) -> bool:
        step, rest = divmod(address, self._stride)
        steps = self._bases.get(rest, [])
        first = step + self._nearest
        following = bisect_left(steps, first)
        return following < len(steps) and steps[following] < first + self._kept


def operations(work: ExpectedWork, block: Block, done: Mapping[str, int]) -> dict[str, Span]:
    """Operations that a pass may do, by kind: divisions, square roots, and additions with multiplications as one kind.

    Args:
        done: what the pass does, with its approximations of quotients and roots ("approximate"): each is refined by
            Newton steps of additions and products.
    """
    iterations = block.steps * block.bodies
    least = dict.fromkeys(_KINDS, 0)
    for operation in work.distinct or ():
        if block.variable in operation.variables and not operation.by_literal:
            least[operation.kind] += block.steps * block.times(operation.variables)
    most = {kind: iterations * work.total.get(kind, 0) for kind in _KINDS}
    # a quotient may become a product with the reciprocal, a root a product with its approximation
    replaced = sum(max(0, most[kind] - done.get(kind, 0)) for kind in ("div", "sqrt"))
    entries = block.times(block.whole.variables[:-1])
    sums = work.reductions * block.steps * entries if block.along is not None or block.whole.variables else 0
    unused = (_CONVERTED * work.conversions + _UNUSED_PARTS * work.complex_products) * iterations
    extra = replaced + _NEWTON * done.get("approximate", 0) + unused
    fused = Span(
        # a sum that begins anew in the pass saves its first addition; one in several vectors ends in sums of lanes
        max(0, least["add"] + least["mul"] - sums),
        most["add"] + most["mul"] + extra + _LANES * sums,
    )
    return {"div": Span(least["div"], most["div"]), "sqrt": Span(least["sqrt"], most["sqrt"]), "add and mul": fused}


_NEWTON = 8
"""Additions and products at most for one approximation: two Newton steps of a reciprocal root, and its products."""

_LANES = 32
"""Additions at most, lanes counted, that bring the partial sums of a vector together."""

_UNUSED_PARTS = 2
"""Additions for a product of complex numbers that vectors of both parts make in vain: of both parts of the partial
products they make the sum and the difference, of which the product takes one each."""

_CONVERTED = 4
"""Additions and products at most for one integer that an instruction set cannot convert by one instruction."""
