"""Which of two schedulers the µops of interleaved ports get that leave the queue in front of them, and which port.

Each scheduler is a side; a pair is two alike ports, one of each side. Where few µops wait, and for the ports of no pair
many more on one side, those of a cycle get their sides by the slots in which they were dispatched. Else they pass
through the queue, and those that leave it in a cycle get the sides in turn. What dispatch knows of the schedulers is
some cycles old. docs/front-end.md has the experiments; `native/sides.h` is the compiled twin.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from kernmodel.incore.engine.layout import Core

_CYCLES = 8
"""For how long what entered and left is remembered."""


class Sides:
    """The two schedulers as dispatch knows them.

    Attributes:
        places: interleaved ports, pair by pair; empty where there are none.
        start: the side of the first µop that leaves the queue in a cycle.
        uneven: whether slots do not tell the side; avoided: of each side ports whose µops do not go there, as bits.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        numbered = sorted((place, port) for port, place in enumerate(core.interleaved) if place)
        self.places = [port for _, port in numbered]
        self._place_of = {port: place for place, port in enumerate(self.places)}
        self._ports_of = [sum(1 << port for port in self.places[side::2]) for side in (0, 1)]
        self._room = [core.rooms[core.scheduler_of[port]] for port in self.places[:2]]
        self.start = 0
        self._turn = [0, 0]
        self._held = [0, 0]
        self.uneven, self.avoided = False, [0, 0]
        self._entered, self._left = [0] * len(self.places), [0] * len(self.places)
        nothing = tuple(self._entered)
        self._entered_by = deque([nothing] * _CYCLES, _CYCLES)
        self._left_by = deque([nothing] * _CYCLES, _CYCLES)

    def enter(self, port: int) -> None:
        """A µop enters the scheduler of a port."""
        if port in self._place_of:
            self._entered[self._place_of[port]] += 1
            self._held[self._place_of[port] & 1] += 1

    def leave(self, port: int) -> None:
        """A µop starts on a port."""
        if port in self._place_of:
            self._left[self._place_of[port]] += 1

    def end_cycle(self) -> None:
        """Remember what entered and left until now."""
        if self.places:
            self._entered_by.append(tuple(self._entered))
            self._left_by.append(tuple(self._left))

    def _waiting(self, delay: int) -> list[int]:
        """µops that wait, by place, as this cycle knows it of those that entered so many cycles before."""
        left = self._left_by[-self._core.left_delay]
        return [own - gone for own, gone in zip(self._entered_by[-delay], left, strict=True)]

    def look(self) -> None:
        """Take what this cycle knows, before µops leave the queue."""
        core = self._core
        waiting, lately = self._waiting(core.mode_delay), self._waiting(core.choice_delay)
        of_sides = [sum(waiting[side::2]) for side in (0, 1)]
        pairs = list(pairwise(waiting))[::2]
        self.uneven = sum(waiting) >= core.most_by_slot or any(abs(a - b) >= core.pair_gap for a, b in pairs)
        left = self._left_by[-core.left_delay]
        held = [own - gone for own, gone in zip(self._entered, left, strict=True)]
        self._held = [sum(held[side::2]) for side in (0, 1)]
        self.avoided = [0, 0]
        for place, port in enumerate(self.places):
            heavy = of_sides[place & 1] >= core.heavy_side
            if heavy and lately[place] - lately[place ^ 1] >= core.pair_gap:
                self.avoided[place & 1] |= 1 << port

    def executes(self, ports: int, side: int) -> bool:
        """Whether a side has one of some ports."""
        return bool(ports & self._ports_of[side])

    def is_full(self, side: int) -> bool:
        """Whether a side has no room, as far as this cycle knows."""
        return self._held[side] >= self._room[side]

    def port(self, ports: int, side: int) -> int:
        """The port of a side for a µop that so many can execute: the next one in turn of several, unless far fewer
        wait for another; -1 where the side has none of them, or no room."""
        able = sorted(port for port in self.places[side::2] if ports >> port & 1)
        if not able or self.is_full(side):
            return -1
        if len(able) == 1:
            return able[0]
        following = next((port for port in able if port >= self._turn[side]), able[0])
        lately = self._waiting(self._core.choice_delay)
        least = min(able, key=lambda port: lately[self._place_of[port]])
        if lately[self._place_of[following]] - lately[self._place_of[least]] >= self._core.turn_gap:
            return least
        self._turn[side] = following + 1
        return following

    def state(self) -> tuple[object, ...]:
        """What later cycles depend on, beside how many wait."""
        if not self.places:
            return ()
        changes = [
            tuple(now - then for now, then in zip(total, by[-k], strict=True))
            for total, by in ((self._entered, self._entered_by), (self._left, self._left_by))
            for k in range(1, self._core.left_delay + 1)
        ]
        return self.start, *self._turn, *changes
