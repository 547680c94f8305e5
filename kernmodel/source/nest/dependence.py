"""Dependences between the iterations of a nest: which of its innermost loops may be permuted freely.

Two references to one array, one of which writes, are compared dimension by dimension. Equal coefficients of the loop
variables ("uniformly generated") give the distance between the iterations that touch one element; a loop that no index
fixes may lie any distance between them (`ANY`). Indirect indices and different coefficients fix nothing, unless a GCD
test proves that the indices never meet. After Wolf and Lam, A data locality optimizing algorithm, PLDI 1991, §2 and §3;
Banerjee, Dependence Analysis for Supercomputing, 1988 (GCD test).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from math import gcd

from kernmodel.formulas.division import exact_quotient
from kernmodel.formulas.formula import ZERO, Formula, Linear
from kernmodel.source.model import Access, Loop, LoopNest
from kernmodel.value_types import dataclass

ANY = None
"""The component of a loop along which every distance occurs, in both directions."""

Distance = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Dependence:
    """Two references that touch the same element in different iterations.

    Attributes:
        first, second: the references; one of them writes.
        distance: iterations from one to the other per loop of the band, outermost first, `ANY` where they may be any;
            what is known is normalised: the first component that is not 0 is positive.
    """

    first: Access
    second: Access
    distance: Distance

    @property
    def permutable(self) -> bool:
        """Whether no loop of the band is ever gone along backwards: then its loops may be permuted and tiled."""
        unknown = sum(part is ANY for part in self.distance)
        if unknown:
            # (*, 0): the one sign that runs forwards; (*, 1) holds (1, −1) once it runs forwards
            return unknown == 1 and all(part in (ANY, 0) for part in self.distance)
        return all(part is not ANY and part >= 0 for part in self.distance)


def dependences(nest: LoopNest, outside: int) -> tuple[Dependence, ...]:
    """The dependences that the loops from number `outside` on carry, within one iteration of the loops outside of them.

    Only the references of the innermost body are compared: others stand outside of the band.
    """
    body = [access for access in nest.accesses if access.depth == len(nest.loops)]
    found = []
    for first, second in combinations_with_replacement(body, 2):
        if first.array != second.array or "write" not in (first.kind, second.kind):
            continue
        distance = distance_of(first, second, nest.loops, outside)
        if distance is not None and any(part != 0 for part in distance):
            found.append(Dependence(first, second, distance))
    return tuple(found)


def distance_of(first: Access, second: Access, loops: Sequence[Loop], outside: int) -> Distance | None:
    """Iterations between two references to one element, per loop from number `outside` on; None if they never meet
    within one iteration of the loops outside of these."""
    symbols = [loop.variable for loop in loops]
    equations = []
    for left, right in zip(first.index, second.index, strict=True):
        equation = _equation(left, right, symbols)
        if equation is None:
            return None
        equations.append(equation)
    known: dict[str, int] = dict.fromkeys(symbols[:outside], 0)
    if not _solve(equations, known):
        return None
    distance: list[int | None] = []
    for loop in loops[outside:]:
        moved = known.get(loop.variable)
        if moved is not None and (moved % loop.step or _beyond(loop, moved)):
            return None
        distance.append(ANY if moved is None else moved // loop.step)
    return _normalised(tuple(distance))


_Equation = Linear


def _equation(left: Formula, right: Formula, symbols: Sequence[str]) -> _Equation | None:
    """The distances (in the variables) at which two indices are equal, as Σ coefficient × distance = constant.

    Nothing is known of indices that are not uniformly generated (no coefficients, 0); None if they are never equal.
    """
    nothing: _Equation = {}, ZERO
    a, b = left.linear(symbols), right.linear(symbols)
    if a is None or b is None:
        return nothing
    (mine, rest), (other, others) = a, b
    constant = rest - others
    uniform = all(mine.get(s, ZERO) == other.get(s, ZERO) for s in {*mine, *other})
    if not (rest.of_sizes and others.of_sizes):
        return nothing  # values from index arrays differ from iteration to iteration
    if not _may_meet([*mine.values(), *({} if uniform else other).values()], constant):
        return None
    return ({s: c for s, c in mine.items() if c}, constant) if uniform else nothing


def _may_meet(coefficients: Sequence[Formula], constant: Formula) -> bool:
    """The GCD test: whether Σ coefficient × integer = constant can have a solution."""
    if not constant.is_integer:
        return True
    if not all(c.is_integer for c in coefficients):
        return True
    common = gcd(*(int(c) for c in coefficients))
    return int(constant) % common == 0 if common else not constant


def _solve(equations: Sequence[_Equation], known: dict[str, int]) -> bool:
    """Put every distance into `known` that an equation fixes alone; False if the equations contradict one another."""
    waiting = list(equations)
    progress = True
    while progress:
        progress, rest = False, []
        for coefficients, constant in waiting:
            open_parts = {s: c for s, c in coefficients.items() if s not in known}
            value = constant - sum(c * known[s] for s, c in coefficients.items() if s in known)
            if not _may_meet(list(open_parts.values()), value):
                return False
            if len(open_parts) == 1:
                ((symbol, factor),) = open_parts.items()
                ratio = exact_quotient(value, factor)
                if ratio is not None and ratio.is_integer:
                    known[symbol], progress = int(ratio), True
                    continue
            rest.append((coefficients, constant))
        waiting = rest
    return True


def _beyond(loop: Loop, moved: int) -> bool:
    """Whether the loop, where its length is a number, is shorter than this distance."""
    length = loop.stop - loop.start
    return length.is_integer and abs(moved) >= abs(int(length))


def _normalised(distance: Distance) -> Distance:
    first = next((part for part in distance if part != 0), 0)
    if first is ANY or first >= 0:
        return distance
    return tuple(None if part is None else -part for part in distance)


def why_not(found: Dependence, variables: Sequence[str]) -> str:
    """A sentence on a dependence that keeps loops from being permuted."""
    signs = ", ".join("any" if part is ANY else f"{part:d}".replace("-", "−") for part in found.distance)
    listed = ", ".join(variables)
    if found.first is found.second:
        return f"{found.first.text} is written again at a distance of ({signs}) iterations of ({listed})"
    first, second = sorted((found.first, found.second), key=lambda access: access.kind)
    return f"{first.text} depends on {second.text} at a distance of ({signs}) iterations of ({listed})"


def reasons_against(nest: LoopNest) -> Mapping[str, str]:
    """By variable of every loop that may not be permuted with all loops inside of it, the reason."""
    found = {}
    for number, loop in enumerate(nest.loops):
        reason = _reason(nest, number)
        if reason is not None:
            found[loop.variable] = reason
    return found


def _reason(nest: LoopNest, number: int) -> str | None:
    """Why the band cannot begin with this loop: only what this loop adds to the loops inside of it, where it can be
    told apart."""
    inner, own = nest.loops[number + 1 :], nest.loops[number]
    for depth, place in nest.between:
        if depth == number + 1:
            return f"the statement in line {place.line} stands between the loops"
    if nest.operations.carried_scalars:
        names = " and ".join(nest.operations.carried_scalars)
        return f"iterations pass on {names}, and blocks could change the order in which it is computed"
    for loop in inner:
        if own.variable in loop.bounded_by:
            return f"the bounds of the loop over {loop.variable} depend on {own.variable}"
    for dependence in dependences(nest, number):
        if not dependence.permutable:
            return why_not(dependence, [loop.variable for loop in nest.loops[number:]])
    return None
