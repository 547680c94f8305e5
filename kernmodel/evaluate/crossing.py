"""Where the arrays of a measured loop lay, as far as its file tells: how many of its loads crossed cache lines.

Where code was measured stands in a column of the file, where its data lay does not. A note that loads crossed lines is
the same kind of knowledge: an input of the measurement, without which a prediction is one of other addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernmodel.incore.dependences.addresses import BodyAccesses, MovingAccess, address_step
from kernmodel.incore.dependences.line_splits import AT_LINES, Places, crossing_passes
from kernmodel.incore.engine.layout import PHASES
from kernmodel.isa.model import Instruction
from kernmodel.patterns import pattern
from kernmodel.value_types import NamedTuple

_NOTED = pattern(r"cache-line-split loads(?: ([0-9.]+)/pass)?")
_LINE_BYTES = 64
"""Of every core that loops were measured on."""
_ELEMENT_BYTES = 8
_SAME = 0.01


class CrossingLoads(NamedTuple):
    """Loads of a loop that crossed cache lines when it was measured; `per_pass` None: some, it is not said how many."""

    per_pass: float | None

    def agrees(self, count: float) -> bool:
        """Whether so many a pass are what is noted."""
        return count > 0 if self.per_pass is None else abs(count - self.per_pass) < _SAME


def noted(text: str) -> CrossingLoads | None:
    """What a note says of them, None if nothing."""
    found = _NOTED.search(text)
    return CrossingLoads(float(found[1]) if found[1] else None) if found else None


def places_of(instructions: Sequence[Instruction], crossing: CrossingLoads) -> Places:
    """Where the arrays of a loop lie if so many of its loads cross lines.

    At lines if that agrees, as without a note. Else what each set of registers points to may begin at any multiple of
    eight bytes, and of the places that agree one with small ones is taken; if it is not said how many loads cross, all
    begin eight bytes behind a line. At lines where nothing agrees.
    """
    loads, stores = BodyAccesses([address_step(instruction) for instruction in instructions]).moving()
    alike: dict[object, list[MovingAccess]] = {}
    for load in loads:
        alike.setdefault(load.address.terms, []).append(load)
    if crossing.agrees(sum(map(_at_lines, alike.values()))):
        return AT_LINES
    bases = (_ELEMENT_BYTES,) if crossing.per_pass is None else range(0, _LINE_BYTES, _ELEMENT_BYTES)
    found = next((own for count, own in _counts(alike.values(), bases).items() if crossing.agrees(count)), None)
    if found is None:
        return AT_LINES
    base_of = dict(zip(alike, found, strict=True))
    moved = [access for access in (*loads, *stores) if access.address.terms in base_of]
    return Places(starts={one.instruction: (_start(one, base_of[one.address.terms]),) for one in moved})


def _at_lines(loads: Sequence[MovingAccess]) -> float:
    """How many of some loads that share their registers cross lines in a pass without a note."""
    bases = {0} if loads[0].anchored else {0, *(-load.address.constant % _LINE_BYTES for load in loads)}
    return min(_crossing(loads, base) for base in bases)


def _counts(sets: Iterable[Sequence[MovingAccess]], bases: Sequence[int]) -> Mapping[float, tuple[int, ...]]:
    """How many loads may cross lines in a pass, each with the first bases of the sets that make it so."""
    reached: dict[float, tuple[int, ...]] = {0.0: ()}
    for loads in sets:
        own = [(base, _crossing(loads, base)) for base in bases]
        totals: dict[float, tuple[int, ...]] = {}
        for count, chosen in reached.items():
            for base, more in own:
                totals.setdefault(count + more, (*chosen, base))
        reached = totals
    return reached


def _start(access: MovingAccess, base: int) -> int:
    return (base + access.address.constant) % _LINE_BYTES


def _crossing(loads: Sequence[MovingAccess], base: int) -> float:
    """How many of some loads cross lines in a pass, from where what they share is `base` modulo a line."""
    passes = [crossing_passes((_start(load, base),), load.stride, load.size, _LINE_BYTES) for load in loads]
    return sum(own.bit_count() for own in passes) / PHASES
