"""The simulation in plain Python: what is modelled, and the yardstick of the compiled engine.

Every cycle, in this order: finished µops retire in order; ready ones dispatch, the oldest of each port; the renamer
issues queue entries and gives their µops ports; the fetch refills the queue. The renamer knows how many µops of each
port have issued and not dispatched before the cycle before this one. µops in its first and third slot go to the port
with the fewest, those in the others to the one with the second fewest unless that has far more; ties go to the higher
port (uiCA, ICS 2022, section 4.2.2, and its program); with `by slot` of `PORT_CHOICES` the slot tells which port it is,
with `by rank` how many µops with the same ports stand before it in its cycle, and one cycle older counts are known.
Where schedulers belong to ports (`Core.by_port`), a slot is dispatched if all its µops find entries, and µops of queued
ports wait for theirs in order, behind it. The run ends when the state of the pipeline is one that was there before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from math import gcd
from typing import Any

from kernmodel.incore.engine.interface import Program
from kernmodel.incore.engine.layout import (
    LINES,
    LOADED,
    PASSES,
    PHASES,
    PORTS,
    REASONS,
    RELEASES,
    RESULTS,
    SCHEDULERS,
    SOURCES,
    TICKS,
    Core,
    FetchUnit,
    MicroOp,
    Wait,
)
from kernmodel.incore.engine.model import STEADY_SHARE, is_at
from kernmodel.incore.engine.queues import assigned
from kernmodel.incore.engine.sides import Sides
from kernmodel.incore.tables.core_parameters import PORT_CHOICES, QUEUES

_HISTORY = 16
_LOW = 0xFFFFFFFF
_SAVING = 4
"""The next state is kept for comparison after so many passes, and a share of one in so many of those so far."""
_SNAPSHOTS = 32

Counts = tuple[int, ...]
"""Cycles, passes, stalls by reason, dispatches by port, up to a cycle."""


class _InFlight:
    """A µop in flight: `base` is the cycle that those who wait for it count from, once it is known; `enters` the cycle
    from which it may start, in the scheduler that all ports share; `issued` that of its issue, `odd` whether its slot
    was an odd one of this."""

    __slots__ = (
        *("banks", "base", "done", "enters", "id", "issued", "known"),
        *("more", "odd", "pending", "port", "ready", "scheduler", "slow"),
    )

    def __init__(self, number: int, now: int) -> None:
        self.id = number
        self.base = self.done = 0
        self.ready = self.issued = now
        self.odd = 0
        self.enters = -_HISTORY
        self.known = False
        self.pending = 0
        self.port = -1
        self.scheduler = 0
        self.slow = self.more = 0
        self.banks = 0


class _ResultWait:
    """A port whose µops wait for a free result: those of more than a cycle that it has started in a row up to a cycle,
    no more than count; the µop that waited first in it, and the one that nothing passes any more, -1 for none."""

    __slots__ = ("before", "cycle", "passing", "stopped")

    def __init__(self, cycle: int = -2, *, before: int = -1, stopped: int = -1) -> None:
        self.cycle, self.before, self.stopped = cycle, before, stopped
        self.passing = 0


def _banks(microop: MicroOp, executed: int, bank_bytes: int) -> int:
    """The banks of the cache that a load reads in a pass, as bits; none where that does not matter."""
    if not microop.size or not bank_bytes:
        return 0
    begin = (microop.place + microop.stride * (executed % PHASES)) % PHASES
    touched = range(begin // bank_bytes, (begin + microop.size - 1) // bank_bytes + 1)
    return sum({1 << bank % (PHASES // bank_bytes) for bank in touched})


def _phases(microop: MicroOp, bank_bytes: int) -> int:
    """Passes after which a µop stands at the same place in a line again."""
    if microop.slow_low or microop.slow_high or microop.more_low or microop.more_high:
        return PHASES
    return PHASES // gcd(microop.stride, PHASES) if microop.size and bank_bytes else 1


def _takes_all(x: _InFlight, microop: MicroOp, core: Core) -> bool:
    """Whether an access goes to two lines at once, by all its pipes."""
    several = microop.ports & (microop.ports - 1) and not _starts_anywhere(microop, core.addressing)
    return bool(x.slow and not x.banks and not core.lines_in_turn and microop.data == 1 and several)


def _starts_anywhere(microop: MicroOp, addressing: int) -> bool:
    """Whether an access may start on any port that starts accesses."""
    return bool(addressing) and microop.ports & addressing == addressing


def _seen(x: _InFlight, operand: int) -> int:
    """When a µop can start whose operand is there at a cycle: one that comes when the µop may start for the first time,
    or in the cycle behind, is seen a cycle later."""
    return operand + (operand - x.enters in (0, 1))


class Pipeline:
    """The state of the pipeline; `run` says what comes out."""

    def __init__(self, program: Program) -> None:
        self.core = program.core
        self.units = program.units
        self.entries = program.entries
        self.first_microop = program.first_microop
        self.microops = program.microops
        self.waits = program.waits
        self.schedule = program.schedule
        self.source = SOURCES[self.core.source]
        self.port_choice = PORT_CHOICES[self.core.port_choice]
        self.users: list[list[tuple[int, int, int]]] = [[] for _ in range(self.core.microops)]
        for u in range(self.core.microops):
            for microop, passes, cycles, _ in self._waits_of(u):
                self.users[microop].append((u, passes, cycles))
        self.ports = range(max(m[0] for m in self.microops).bit_length())
        self.by_port = bool(self.core.by_port and self.core.issue_ports)
        self.phases = max(_phases(m, self.core.bank_bytes) for m in self.microops)
        self.kinds = [sum(m[0] >> port & 1 for m in self.microops) for port in self.ports]
        self._start()

    def _start(self) -> None:
        self.now = 0
        self.flight: dict[int, _InFlight] = {}
        self.calendar: dict[int, list[_InFlight]] = {}
        self.ready: list[_InFlight] = []
        self.slots_issued = self.slots_retired = self.microops_issued = self.passes = 0
        self.slot_in_entry = self.accessed = 0
        self.scheduled = [0] * SCHEDULERS
        self.queue: deque[_InFlight] = deque()
        self.sides = Sides(self.core)
        self.registers = (
            [self._registers_of(slot) for slot in range(self.core.slots)] if self.core.vector_registers else []
        )
        self.loads_of = [self._loads_of(slot) for slot in range(self.core.slots)] if any(self.core.most_loads) else []
        self.loads = [0] * len(self.core.most_loads)
        self.registers_taken = 0
        self.registers_coming = [0] * RELEASES
        self.opened = self.spare = 0
        self.oldest_unit, self.oldest_until = 0, self.units[0].entries if self.units else 0
        self.counters = [0] * len(self.ports)
        self.starting = list(self.counters)
        self.before = list(self.counters)
        self.started = list(self.counters)
        self.given: dict[int, int] = {}
        self.alike: dict[int, int] = {}
        ports = [port for port in range(PORTS) if self.by_port and self.core.together >> port & 1]
        self.assigned_schedulers = [self.core.scheduler_of[port] for port in ports][:QUEUES]
        self.queue_of = {scheduler: number for number, scheduler in enumerate(self.assigned_schedulers)}
        self.wanted = [own for slot in range(self.core.slots) for own in self._wanted_of(slot)]
        self.entries_seen = [0] * len(self.queue_of)
        self.moved = deque([[0] * len(self.queue_of) for _ in range(self.core.seen_after)])
        self.assigned: deque[int] = deque()
        self.fitting, self.alone = 0, False
        self.vectors = self.core.load_ports[0] if self.core.loads_in_a_row else 0
        self.loads_in_a_row, self.fewer_loads, self.by_counters = 0, False, False
        self.ordered: deque[int] = deque()
        self.turn = [0] * len(self.core.alternating)
        self.divider_free = self.alone_free = 0
        self.data_free = [0] * len(self.ports)
        self.pipe_free = [0] * len(self.ports)
        self.back = [0] * PORTS
        self.brings = [-1] * PORTS
        self.lending = {lender - 1 for lender in self.core.borrowed if lender}
        self.path_used = [0] * PORTS
        self.results = [0] * len(self.ports)
        self.result_wait = _ResultWait()
        self.read_once = self.read_twice = 0
        self.lenders = self.lending if self.core.one_store else set()
        self.lender_started = -1
        self.load_fed = {u for u in range(self.core.microops) if self._is_load_fed(u)}
        slow = [m for m in self.microops if (m.slow_low or m.slow_high) and m.data == 1 and m.ports & (m.ports - 1)]
        slow = [m for m in slow if not _starts_anywhere(m, self.core.addressing)]
        slow = [] if self.core.bank_bytes or self.core.lines_in_turn else slow
        self.pipes = {port for port in self.ports if any(m.ports >> port & 1 for m in slow)}
        placed = [m.ports for m in self.microops if m.size and self.core.bank_bytes]
        self.banked = {port for port in self.ports if any(ports >> port & 1 for ports in placed)}
        self.delivered = self.entries_issued = 0
        self.stopped, self.resumed = False, 0
        self.fetched = self.predecoded = self.decoded = 0
        self.decodable = [0] * _HISTORY
        self.unit_part = self.microcode_wait = self.microcode_left = self.predecode_step = 0
        self.decoding = self.source == "decoders"
        self.stalls = [0] * len(REASONS)
        self.dispatched = [0] * len(self.ports)

    def _registers_of(self, slot: int) -> int:
        """Vector registers that a slot of the block takes."""
        return sum(m.registers for m in self.microops[self.first_microop[slot] : self.first_microop[slot + 1]])

    def _loads_of(self, slot: int) -> list[int]:
        """µops of a slot of the block by the set of ports that alone execute them."""
        own = self.microops[self.first_microop[slot] : self.first_microop[slot + 1]]
        loads = [m.ports for m in own if m.load]
        accesses = sum(bool(m.ports & self.core.addressing) for m in own)
        return [sum(not m & ~ports for m in loads) if ports else accesses for ports in self.core.load_ports]

    def _dispatches_loads(self, slot: int) -> bool:
        """Count the loads of a slot of the block for this cycle; False where with these they are more than a cycle's. A
        slot that has more by itself is not kept waiting for ever, and one without any does not wait."""
        loads = self._with_loads(self.loads, slot)
        self.loads = loads or self.loads
        return loads is not None

    def _with_loads(self, loads: list[int], slot: int) -> list[int] | None:
        """The loads of a cycle with those of a slot; None where they are too many."""
        if not self.loads_of or not any(self.loads_of[slot]):
            return loads
        more = [there + own for there, own in zip(loads, self.loads_of[slot], strict=True)]
        limits = zip(more, loads, self.core.most_loads, strict=True)
        return None if any(most and there and number > most for number, there, most in limits) else more

    def _waits_of(self, u: int) -> tuple[Wait, ...]:
        return self.waits[self.microops[u].first_wait : self.microops[u + 1].first_wait]

    def cycle(self) -> None:
        """One cycle."""
        if self.registers:
            self.registers_taken -= self.registers_coming[self.now % RELEASES]
            self.registers_coming[self.now % RELEASES] = 0
        self.given.clear()
        self.alike.clear()
        if self.queue_of:
            self.entries_seen = [own + more for own, more in zip(self.entries_seen, self.moved.popleft(), strict=True)]
            self.moved.append([0] * len(self.queue_of))
        self._retire()
        self._count_waiting()
        for x in self.calendar.pop(self.now, ()):
            self._queue_up(x)
        if self.core.issue_ports:
            self._dispatch_bound()
        else:
            self._dispatch_free()
        self._issue()
        if self.by_port:
            self._leave_queue()
            self.sides.end_cycle()
        self._deliver()
        self.results = [own >> 1 for own in self.results]
        self.now += 1

    def _count_waiting(self) -> None:
        """What the renamer knows of the µops that wait for each port: those that started in the cycle before still
        count, where all ports share a scheduler."""
        still = [0] * len(self.ports) if self.core.by_port else self.started
        self.before = self.starting
        self.starting = [own + more for own, more in zip(self.counters, still, strict=True)]
        self.started = [0] * len(self.ports)

    # ---- values become known, µops become ready ----

    def _know(self, x: _InFlight, base: int) -> None:
        x.base, x.known = base, True
        executed, u = divmod(x.id, self.core.microops)
        if not self.microops[u][0]:
            x.done = max(base, self.now)
        if self.microops[u].redirects:
            self.stopped, self.resumed = False, base + self.core.redirect
        for user, passes, cycles in self.users[u]:
            y = self.flight.get((executed + passes) * self.core.microops + user)
            if y is not None:
                y.ready = max(y.ready, _seen(y, base + cycles))
                y.pending -= 1
                if not y.pending:
                    self._all_known(y)

    def _all_known(self, x: _InFlight) -> None:
        if not self.microops[x.id % self.core.microops].ports:
            self._know(x, x.ready)
        elif x.port >= 0 or not self.by_port:
            self.calendar.setdefault(max(x.ready, self.now + 1), []).append(x)

    def _queue_up(self, x: _InFlight) -> None:
        place = len(self.ready)
        while place and self.ready[place - 1].id > x.id:
            place -= 1
        self.ready.insert(place, x)

    # ---- retire, dispatch, issue ----

    def _retire(self) -> None:
        for _ in range(min(self.core.retire_width, self.slots_issued - self.slots_retired)):
            executed, slot = divmod(self.slots_retired, self.core.slots)
            first = executed * self.core.microops
            for u in range(self.first_microop[slot], self.first_microop[slot + 1]):
                x = self.flight[first + u]
                if not x.known or x.done > self.now:
                    return
            if self.registers:
                free = (self.now + self.core.register_release) % RELEASES
                self.registers_coming[free] += self.registers[slot]
            self.slots_retired += 1

    def _can_dispatch(self, x: _InFlight, microop: MicroOp, port: int) -> bool:
        return not (
            (microop.divider and self.divider_free > self.now)
            or (microop.alone and (self.alone_free >= (self.now + 1) * TICKS or not self._is_next_alone(x)))
            or (microop.data and self.data_free[port] > self.now)
            or (microop.load and self.pipe_free[port] > self.now)
            or (microop.paths and self._brings_result(microop))
        )

    def _brings_result(self, microop: MicroOp) -> bool:
        """Whether a path that the result of a µop takes has one of this cycle already."""
        return any(self.brings[port] > self.now for port in self.ports if microop.paths >> port & 1)

    def _is_next_alone(self, x: _InFlight) -> bool:
        """Whether nothing older is ready of what keeps each other waiting."""
        return not any(y.id < x.id and self.microops[y.id % self.core.microops].alone for y in self.ready)

    def _result(self, microop: MicroOp, port: int) -> int:
        """How much later the result of a µop comes that starts: a port gives one a cycle, in two cycles one of two
        passes; very late ones are not followed."""
        if not self.core.one_result >> port & 1 or not 0 < microop.latency <= RESULTS // 4:
            return 0
        own = 3 if microop.data > 1 else 1
        later = 0
        while self.results[port] >> microop.latency + later & own:
            later += 1
        self.results[port] |= own << microop.latency + later
        return later

    def _dispatch(self, x: _InFlight, microop: MicroOp) -> None:
        if microop.divider:
            self.divider_free = self.now + microop.divider
        if microop.alone:
            self.alone_free = max(self.alone_free, self.now * TICKS) + microop.alone
        if microop.data:
            self.data_free[x.port] = self.now + microop.data + (0 if _takes_all(x, microop, self.core) else x.slow)
            if x.more:
                self.pipe_free[x.port] = self.data_free[x.port] + 1
        for port in self.ports:
            if microop.paths >> port & 1:
                self.brings[port] = self.now + 1
        self.counters[x.port] -= 1
        self.sides.leave(x.port)
        self.started[x.port] += 1
        self.dispatched[x.port] += 1
        self.scheduled[x.scheduler] -= 1
        if self.by_port:
            self._count_entry(x, -1)
        self.ready.remove(x)
        base = self.now + self._result(microop, x.port)
        x.done = base + microop.latency
        self._know(x, base)

    def _dispatch_in_order(self) -> None:
        """Where accesses may go to two lines at once, pipes are taken in order: one that needs all of them waits until
        they are free, and the younger ones wait for it, but not what may start on any port that starts accesses."""
        unused, addressing = set(self.pipes), self.core.addressing
        while unused:
            x = next((x for x in self.ready if x.port in self.pipes), None)
            if x is None:
                return
            microop = self.microops[x.id % self.core.microops]
            wanted = {port for port in self.ports if microop.ports >> port & 1}
            able = unused & ({x.port} if _starts_anywhere(microop, addressing) else wanted)
            takes_all = _takes_all(x, microop, self.core)
            if not able or (takes_all and able != wanted):
                break
            port = x.port if x.port in able else min(able)
            unused -= able if takes_all else {port}
            if self._can_dispatch(x, microop, port):
                self.counters[x.port] -= 1
                self.counters[port] += 1
                x.port = port
                self._dispatch(x, microop)
        if addressing:
            self._dispatch_others(unused)

    def _dispatch_others(self, unused: set[int]) -> None:
        """Start the accesses that may start anywhere on ports that none has taken in this cycle."""
        for port in sorted(unused):
            for x in self.ready:
                microop = self.microops[x.id % self.core.microops]
                anywhere = _starts_anywhere(microop, self.core.addressing)
                if x.port == port and anywhere and self._can_dispatch(x, microop, port):
                    self._dispatch(x, microop)
                    break

    def _comes_straight(self, x: _InFlight, most: int) -> bool:
        """Whether the third vector that a µop reads comes straight from what computes it: it is there since so few
        cycles. What an eliminated move has copied may be any age, unless it is there since this cycle.
        """
        executed, u = divmod(x.id, self.core.microops)
        sources = [
            (self.flight.get((executed - w.passes) * self.core.microops + w.microop), w.cycles)
            for w in self._waits_of(u)
            if w.third and not (w.third == LOADED and self.core.loaded_third)
        ]
        ages = [(self.now - y.base - cycles, cycles) for y, cycles in sources if y is not None]
        return any(age == 0 or (cycles and 0 < age < most) for age, cycles in ages)

    def _borrow(self, x: _InFlight, microop: MicroOp, port: int) -> bool:
        """Take the operand path over which the third vector comes, that of another port; False while it is busy."""
        lender = self.core.borrowed[port] - 1
        if lender < 0 or self._comes_straight(x, self.core.straight_cycles):
            return True
        if self.path_used[lender] > self.now or self.back[lender] > self.now or self._gives_way(x):
            return False
        self.back[lender] = self.now + max(microop.data, 1)
        return True

    def _is_load_fed(self, u: int) -> bool:
        """Whether a µop brings what one stores that reads three vectors and waits for loads alone."""
        microop, waits = self.microops[u], self._waits_of(u)
        if not any(microop.ports >> port & 1 for port in self.lenders):
            return False
        if any(microop.ports >> port & 1 and port not in self.lenders for port in self.ports):
            return False
        sources = [w.microop for w in waits if w.third]
        return any(
            self.microops[one].third and waiting and all(self.microops[w.microop].load for w in waiting)
            for one in sources
            for waiting in (self._waits_of(one),)
        )

    def _gives_way(self, x: _InFlight) -> bool:
        """Whether something older waits for the paths of all, and none of them is lent in this cycle."""
        if any(self.back[lender] > self.now for lender in self.lenders):
            return False
        first = {y.port: y for y in reversed(self.ready) if y.port in self.lenders}.values()
        return any(y.id < x.id and y.id % self.core.microops in self.load_fed for y in first)

    def _has_path(self, x: _InFlight, microop: MicroOp, port: int) -> bool:
        """Whether the path of a port is there for a µop: not lent, or not needed; all of them, where it needs all."""
        if self.brings[port] == self.now:
            return False
        if x.id % self.core.microops in self.load_fed and any(self.back[lender] > self.now for lender in self.lenders):
            return False
        return self.back[port] <= self.now or (port in self.lending and self._is_straight_store(x, microop))

    def _is_straight_store(self, x: _InFlight, microop: MicroOp) -> bool:
        """Whether a stored vector comes straight from what computes it."""
        if x.id % self.core.microops in self.load_fed:
            return False
        return bool(self.core.straight_stores and microop.third and self._comes_straight(x, 1))

    def _is_next_lender(self, x: _InFlight, microop: MicroOp, port: int) -> bool:
        """Whether a µop is the next one on the ports that lend their paths, where one of these starts in a cycle that
        stores or gives its result over a path that counts as much: the oldest, or one that comes straight."""
        if port not in self.lenders or not self._counts_as_store(microop):
            return True
        if self.lender_started == self.now:
            return False
        if self._is_straight_store(x, microop):
            return True
        return not any(
            y.port in self.lenders and y.id < x.id and self._counts_as_store(self.microops[y.id % self.core.microops])
            for y in self.ready
        )

    def _counts_as_store(self, microop: MicroOp) -> bool:
        """Whether a µop of the ports that lend their paths takes none of results, as stores, or one like theirs."""
        return not microop.paths or bool(microop.paths & self.core.one_store)

    def _reads_banks(self, x: _InFlight) -> bool:
        """Read the banks of the cache that a load needs; False where two loads of this cycle read one of them."""
        if x.banks & self.read_twice:
            return False
        self.read_twice |= self.read_once & x.banks
        self.read_once |= x.banks
        return True

    def _dispatch_loads(self) -> None:
        """Where loads meet in banks of the cache, the oldest of each port starts, those that are older first; one that
        finds a bank read twice waits, and its port with it, as does the second one that crosses lines."""
        self.read_once = self.read_twice = crossed = 0
        left = set(self.banked)
        for x in list(self.ready) if left else ():
            if x.port in left:
                left.discard(x.port)
                microop = self.microops[x.id % self.core.microops]
                if self._can_dispatch(x, microop, x.port) and not (x.slow and crossed) and self._reads_banks(x):
                    crossed |= x.slow
                    self._dispatch(x, microop)

    def _dispatch_bound(self) -> None:
        self._dispatch_in_order()
        self._dispatch_loads()
        passed = self.pipes | self.banked
        for port in (port for port in self.ports if port not in passed):
            if self.core.result_waits >> port & 1:
                self._dispatch_waiting(port)
                continue
            for x in self.ready:
                microop = self.microops[x.id % self.core.microops]
                if x.port == port and self._can_dispatch(x, microop, port):
                    self._start_on(x, microop, port)
                    break

    def _start_on(self, x: _InFlight, microop: MicroOp, port: int) -> bool:
        """Start a µop whose port is free, if the operand paths that it needs are."""
        if not self._is_next_lender(x, microop, port) or not self._has_path(x, microop, port):
            return False
        if microop.third and not self._borrow(x, microop, port):
            return False
        if port in self.lenders and self._counts_as_store(microop):
            self.lender_started = self.now
        if port in self.lending and not self._is_straight_store(x, microop):
            self.path_used[port] = self.now + max(microop.data, 1)
        self._dispatch(x, microop)
        return True

    def _dispatch_waiting(self, port: int) -> None:
        """Start the oldest µop of a port whose µops wait for a free result. Younger ones pass one that waits, unless
        the port has started as many of them in a row as it may and that one waited first in the cycle before."""
        ready = [x for x in self.ready if x.port == port]
        if not ready:
            return
        wait = self.result_wait if self.result_wait.cycle == self.now - 1 else _ResultWait()
        self.result_wait = now = _ResultWait(self.now, before=-1, stopped=wait.stopped)
        for x in ready:
            microop = self.microops[x.id % self.core.microops]
            if not self._can_dispatch(x, microop, port):
                continue
            if self._meets_result(microop, port):
                if now.before < 0:
                    now.before = x.id
                    if wait.stopped == x.id or (wait.before == x.id and wait.passing >= self.core.result_passes):
                        now.stopped = x.id
                        break
                continue
            if self._start_on(x, microop, port) and microop.latency > 1:
                now.passing = min(wait.passing + 1, self.core.result_passes)
            break

    def _meets_result(self, microop: MicroOp, port: int) -> bool:
        """Whether the result of a µop that started now would come in the same cycle as another one of its port."""
        followed = self.core.one_result >> port & 1 and 0 < microop.latency <= RESULTS // 4
        return bool(followed and self.results[port] >> microop.latency & 1)

    def _dispatch_free(self) -> None:
        """Ports are taken when µops are ready: the oldest first, each on the one that fewest µops can use."""
        free = set(self.ports)
        for x in list(self.ready):
            microop = self.microops[x.id % self.core.microops]
            able = [p for p in self.ports if p in free and microop[0] >> p & 1 and self._can_dispatch(x, microop, p)]
            if able:
                x.port = min(able, key=lambda port: self.kinds[port])
                free.discard(x.port)
                self.counters[x.port] += 1
                self._dispatch(x, microop)

    def _choose_port(self, ports: int, slot: int) -> int:
        choices = [port for port in reversed(self.ports) if ports >> port & 1]
        if ports in self.core.alternating:
            group = self.core.alternating.index(ports)
            skipped = self.turn[group]
            self.turn[group] = (skipped + 1) % len(choices)
            return choices[-1 - skipped]
        if self.port_choice == "by slot":
            return self._choose_by_slot(choices[::-1], slot)
        if self.port_choice == "by rank":
            return self._choose_by_rank(ports, choices, slot)
        best, *others = sorted(choices, key=lambda port: self.starting[port])
        if not others or slot % 2 == 0 or self.starting[others[0]] - self.starting[best] >= self.core.counter_gap:
            return best
        return others[0]

    def _choose_by_slot(self, choices: Sequence[int], slot: int) -> int:
        """The port with the fewest µops, ties going to the lower one; where no two are far apart, the highest of the
        others in the second slot and the lowest in the third, of two ports the other one in every second slot."""
        counts = [self.starting[port] for port in choices]
        least = choices[counts.index(min(counts))]
        others = [port for port in choices if port != least]
        if not others or max(counts) - min(counts) >= self.core.counter_gap:
            return least
        if len(others) == 1:
            return others[0] if slot % 2 else least
        return {1: others[-1], 2: others[0]}.get(slot % 4, least)

    def _choose_by_rank(self, ports: int, choices: Sequence[int], slot: int) -> int:
        """Of the ports that are not far behind the one with the fewest µops, by their counts a cycle ago, the one whose
        rank is the number of µops with the same ports so far in this cycle: the second at least in the fourth slot, the
        first in the fifth."""
        alike = self.alike.get(ports, 0)
        self.alike[ports] = alike + 1
        ranked = sorted(choices, key=lambda port: self.before[port])
        near = [port for port in ranked if self.before[port] - self.before[ranked[0]] < self.core.counter_gap]
        rank = 0 if slot == 4 else max(alike, 1) if slot == 3 else alike
        return near[rank % len(near)]

    # ---- schedulers that belong to ports ----

    def _has_room(self, port: int, coming: Sequence[int]) -> bool:
        scheduler = self.core.scheduler_of[port]
        return self.scheduled[scheduler] + coming.count(scheduler) < self.core.rooms[scheduler]

    def _wanted_of(self, slot: int) -> list[tuple[int, bool, bool]]:
        """Of the µops of a slot of the block, where ports are assigned together: bits of the queues that each may be
        assigned to, whether it is a branch with a unit of its own, and whether its entry counts. An operation with an
        access takes one entry for both, where an address generator is, unless that leaves it one queue of several
        (`cmov`)."""
        core, found = self.core, []
        of_port = {port: self.queue_of.get(core.scheduler_of[port], -1) for port in range(PORTS)}
        addressing = sum({1 << q for port, q in of_port.items() if q >= 0 and core.addressing >> port & 1})
        address = operation = -1
        for number, m in enumerate(self.microops[self.first_microop[slot] : self.first_microop[slot + 1]]):
            queues = sum({1 << q for port, q in of_port.items() if q >= 0 and m.ports >> port & 1})
            by_queue = self._is_assigned(m.ports)
            found.append((queues, by_queue and bool(m.ports & ~core.together), bool(queues)))
            address = number if m.ports & core.addressing and address < 0 else address
            operation = number if by_queue and operation < 0 else operation
        both = found[operation][0] & addressing if min(address, operation) >= 0 else 0
        if both and (both == found[operation][0] or both.bit_count() > 1):
            found[operation] = (both, *found[operation][1:])
            found[address] = (*found[address][:2], False)
        return found

    def _is_assigned(self, ports: int) -> bool:
        return bool(ports & self.core.together) and not ports & self.core.addressing

    def _assign(self) -> None:
        """Assign what this cycle dispatches to queues, as many slots as fit into it; the first one always does."""
        self.fitting, self.assigned, self.alone = 0, deque(), False
        wanted: list[int] = []
        branches: list[bool] = []
        beside = self.core.beside - 1
        if beside >= 0:
            scheduler = self.assigned_schedulers[beside]
            beside = beside if self.scheduled[scheduler] + 2 <= self.core.rooms[scheduler] else -1
        for k in self._slots_of_cycle():
            first, end = self.first_microop[k], self.first_microop[k + 1]
            own = [u for u in range(first, end) if self._is_assigned(self.microops[u].ports)]
            more = [self.wanted[u][0] for u in own]
            jumps = [self.wanted[u][1] for u in own]
            sharing = beside if self.fitting else -1
            found = assigned([*wanted, *more], [*branches, *jumps], self.entries_seen, sharing, self.core.narrow)
            if own and found is None:
                if not self.fitting:
                    self.assigned, self.fitting, self.alone = self._one_by_one(more), 1, True
                return
            if own:
                wanted, branches, self.assigned = [*wanted, *more], [*branches, *jumps], deque(found or ())
            self.fitting += 1

    def _one_by_one(self, wanted: Sequence[int]) -> deque[int]:
        """Of what is too much for a cycle by itself each gets the queue with the fewest entries, those before it
        included."""
        entries, found = list(self.entries_seen), deque[int]()
        for queues in wanted:
            (queue,) = assigned([queues], [False], entries) or (0,)
            entries[queue] += 1
            found.append(queue)
        return found

    def _port_of_queue(self, ports: int, coming: Sequence[int]) -> int:
        """The port of the next µop that is assigned: of its queue the one that it alone of the µops that are may use, a
        branch unit, before the others; -1 where that has no room."""
        scheduler = self.assigned_schedulers[self.assigned.popleft()]
        own = [port for port in self.ports if ports >> port & 1 and self.core.scheduler_of[port] == scheduler]
        able = [port for port in own if self._has_room(port, coming)]
        return min(able, key=lambda port: self.core.together >> port & 1, default=-1)

    def _port_of_access(self, ports: int, given: int, counters: Sequence[int]) -> int:
        """Of the ports that start accesses one that none got in this cycle, if there is one: where they have queues the
        first one with the fewest entries as dispatch sees them, else the one for which fewest wait."""
        allowed = ports & ~given or ports
        if self.queue_of and not self.by_counters:
            entries = self._access_entries(counters)
            return min((port for port in self.ports if allowed >> port & 1), key=lambda port: entries[port])
        return min((port for port in reversed(self.ports) if allowed >> port & 1), key=lambda port: counters[port])

    def _access_entries(self, counters: Sequence[int]) -> list[int]:
        """By port the entries of its queue as dispatch sees them, of a port without one the µops that wait for it."""
        queues = [self.queue_of.get(scheduler) for scheduler in self.core.scheduler_of[: len(self.ports)]]
        return [own if q is None else self.entries_seen[q] for own, q in zip(counters, queues, strict=True)]

    def _cycle_fits(self, with_operations: bool) -> bool:
        """Whether what a cycle dispatches finds room where it accesses memory, and, where these wait for it together,
        with its operations: it waits as a whole where it would overfill a scheduler."""
        core, counters, given = self.core, list(self.counters), 0
        with_operations = with_operations and not self.alone
        slots = islice(self._slots_of_cycle(), self.fitting if with_operations else None)
        room = self._room_behind(self.fitting if with_operations else 0)
        for k in slots:
            for microop in self.microops[self.first_microop[k] : self.first_microop[k + 1]]:
                if not core.accesses_together or not microop.ports & core.addressing:
                    continue
                port = self._port_of_access(microop.ports, given, counters)
                given |= 1 << port
                counters[port] += 1
                room[core.scheduler_of[port]] -= 1
                if counters[port] > core.rooms[core.scheduler_of[port]]:
                    return False
        return not with_operations or min(room) >= 0

    def _order_accesses(self) -> bool:
        """Give the accesses of this cycle their ports where two or more are loads of vectors: as many as there are such
        ports take different ones, in the first order that all allow, and each of the others the one with the fewest
        entries as dispatch sees them; each the one with the fewest where they find no room so. False where they find
        none together."""
        accesses = self._accesses_of_cycle()
        loads = sum(self._is_ordered(ports) for ports in accesses)
        if loads < 2:
            self.loads_in_a_row = 0
            return self._cycle_fits(bool(self.core.operations_together))
        core, counters = self.core, list(self.counters)
        entries = self._access_entries(counters)
        addressing = [port for port in self.ports if core.addressing >> port & 1]
        apart = min(len(accesses), len(addressing))
        orders = (own for size in range(apart, 0, -1) for own in permutations(addressing, size))
        found = deque(next(own for own in orders if all(a >> p & 1 for p, a in zip(own, accesses, strict=False))))
        for ports in accesses[len(found) :]:
            found.append(min((port for port in self.ports if ports >> port & 1), key=lambda port: entries[port]))
            entries[found[-1]] += 1
        room = self._room_behind(self.fitting)
        for port in found:
            counters[port] += 1
            room[core.scheduler_of[port]] -= 1
            if counters[port] > core.rooms[core.scheduler_of[port]]:
                return False
        if min(room) < 0:
            self.loads_in_a_row, self.by_counters = 0, True
            return self._cycle_fits(False)
        self.ordered = found
        self.loads_in_a_row = self.loads_in_a_row + 1 if loads == core.most_loads[0] else 0
        return True

    def _room_behind(self, slots: int) -> list[int]:
        """The room left in each scheduler behind the operations of so many slots of this cycle."""
        room = [own - taken for own, taken in zip(self.core.rooms, self.scheduled, strict=True)]
        ahead = islice(self._slots_of_cycle(), slots)
        own = (m for k in ahead for m in self.microops[self.first_microop[k] : self.first_microop[k + 1]])
        operations = sum(self._is_assigned(microop.ports) for microop in own)
        for queue in islice(self.assigned, operations):
            room[self.assigned_schedulers[queue]] -= 1
        return room

    def _is_ordered(self, ports: int) -> bool:
        return not ports & ~self.vectors

    def _accesses_of_cycle(self) -> list[int]:
        """Ports of the accesses that this cycle may dispatch. Of loads of vectors it dispatches one fewer after so many
        cycles in a row that dispatched the most, until its slots hold just so many."""
        if not self.vectors:
            return []
        accesses: list[tuple[int, int]] = []
        for slot, k in zip(range(self.fitting), self._slots_of_cycle(), strict=False):
            own = self.microops[self.first_microop[k] : self.first_microop[k + 1]]
            accesses += [(slot, microop.ports) for microop in own if microop.ports & self.core.addressing]
        loads = [number for number, (_, ports) in enumerate(accesses) if self._is_ordered(ports)]
        most = len(loads) >= self.core.most_loads[0]
        if most or len(loads) == self.core.most_loads[0] - 1:
            fewer = self.fewer_loads or self.loads_in_a_row >= self.core.loads_in_a_row
            self.fewer_loads = most and fewer
        if most and self.fewer_loads:
            self.fitting, accesses = accesses[loads[-1]][0], accesses[: loads[-1]]
        return [ports for _, ports in accesses]

    def _slots_of_cycle(self) -> Iterator[int]:
        """The slots of the block that a cycle may dispatch: as many as are delivered, issued together and loaded at
        once."""
        core, loads, slot, constants = self.core, [0] * len(self.core.most_loads), 0, 0
        k, taken = self.slots_issued % core.slots, self.slot_in_entry
        for issued in range(self.entries_issued, self.delivered):
            slots, together, own = self.entries[issued % core.entries]
            constants += 0 if taken else own
            if together and slot and slot + together > core.issue_width >= together and not taken:
                return
            if slot and self._ends_with(constants):
                return
            for _ in range(taken, slots):
                more = self._with_loads(loads, k)
                if slot == core.issue_width or more is None:
                    return
                yield k
                loads, slot, k = more, slot + 1, (k + 1) % core.slots
            taken = 0

    def _port_with_room(self, ports: int, coming: Sequence[int] = ()) -> int:
        """As assigned, else the port for which fewest wait; -1 where none has room."""
        if ports & self.core.addressing:
            port = self.ordered.popleft() if self.ordered else self._port_of_access(ports, self.accessed, self.counters)
            self.accessed |= 1 << port
            return port if self._has_room(port, coming) else -1
        if ports & self.core.together:
            return self._port_of_queue(ports, coming)
        if ports & self.core.queued:
            return self._port_behind_queue(ports)
        able = [port for port in self.ports if ports >> port & 1 and self._has_room(port, coming)]
        return min(reversed(able), key=lambda port: self.counters[port], default=-1)

    def _port_behind_queue(self, ports: int) -> int:
        """Of the ports that no µop of the same ones got in this cycle the one for which fewest waited at its start; -1
        where its scheduler has no room, for which the queue waits."""
        allowed = [port for port in reversed(self.ports) if ports >> port & 1]
        given = self.given.get(ports, 0)
        fresh = [port for port in allowed if not given >> port & 1]
        port = min(fresh or allowed, key=lambda port: self.starting[port])
        if not self._has_room(port, ()):
            return -1
        self.given[ports] = (given if fresh else 0) | 1 << port
        return port

    def _place_slot(self, slot: int) -> list[int] | None:
        """The ports of the µops of a slot of the block, -1 for those without and queued ones; None if one finds no
        room."""
        queued = len(self.queue)
        given: list[int] = []
        coming: list[int] = []
        for microop in self.microops[self.first_microop[slot] : self.first_microop[slot + 1]]:
            enters = bool(microop.ports & self.core.queued)
            port = -1 if enters or not microop.ports else self._port_with_room(microop.ports, coming)
            queued += enters
            if (microop.ports and not enters and port < 0) or (enters and queued > self.core.queue_entries):
                break
            given.append(port)
            if port >= 0:
                coming.append(self.core.scheduler_of[port])
                self.counters[port] += 1
        for port in given:
            if port >= 0:
                self.counters[port] -= 1
        if len(given) == self.first_microop[slot + 1] - self.first_microop[slot]:
            return given
        return None

    def _take_entry(self, x: _InFlight, port: int) -> None:
        x.port = port
        x.scheduler = self.core.scheduler_of[port]
        self.counters[port] += 1
        self.scheduled[x.scheduler] += 1
        self.sides.enter(port)
        self._count_entry(x, 1)

    def _count_entry(self, x: _InFlight, number: int) -> None:
        """A µop enters the scheduler that its port is assigned with, or leaves it (-1)."""
        if self.wanted[x.id % self.core.microops][2]:
            self.moved[-1][self.queue_of[x.scheduler]] += number

    def _leave_queue(self) -> None:
        """Move µops from the queue to their schedulers, in order."""
        if self.queue and self.sides.places:
            self.sides.look()
            by_slot = not self.sides.uneven and self.queue[0].issued == self.now
            (self._leave_by_slot if by_slot else self._leave_in_turn)()
            return
        while self.queue:
            port = self._port_with_room(self._ports_of(self.queue[0]))
            if port < 0:
                return
            self._enter_from_queue(port)

    def _ports_of(self, x: _InFlight) -> int:
        return self.microops[x.id % self.core.microops].ports

    def _enter_from_queue(self, port: int) -> None:
        """The first µop of the queue enters the scheduler of its port."""
        x = self.queue.popleft()
        self._take_entry(x, port)
        if not x.pending:
            self._all_known(x)

    def _leave_by_slot(self) -> None:
        """Move µops of this cycle to the sides that their slots tell, the other one if that has no port for them; those
        behind one that finds no room stay."""
        while self.queue:
            ports, side = self._ports_of(self.queue[0]), self.queue[0].odd
            port = self.sides.port(ports, side if self.sides.executes(ports, side) else 1 - side)
            if port < 0:
                return
            self._enter_from_queue(port)

    def _leave_in_turn(self) -> None:
        """Move µops to the sides in turn, as many as a cycle dispatches, once they have passed the queue; one waits for
        room at the side whose turn it is. Several leave the start to the other side, unless one waits that finds room
        at neither: the turn goes on then."""
        sides, passed = self.sides, self.now - self.core.queue_passage
        moved, turns = 0, False
        while self.queue and moved < self.core.issue_width and self.queue[0].issued <= passed:
            ports, side = self._ports_of(self.queue[0]), sides.start ^ moved & 1
            side ^= bool(ports & sides.avoided[side])
            side ^= not sides.executes(ports, side)
            port = sides.port(ports, side)
            if port < 0:
                turns = bool(moved & 1 if sides.is_full(1 - side) else moved)
                break
            self._enter_from_queue(port)
            moved += 1
        else:
            turns = moved > 1
        sides.start ^= turns

    def _issue_microop(self, executed: int, u: int, slot: int, given: int) -> None:
        number = executed * self.core.microops + u
        x = self.flight[number] = _InFlight(number, self.now)
        self.microops_issued = number + 1
        microop = self.microops[u]
        ports = microop.ports
        x.slow = (microop.slow_low & _LOW | (microop.slow_high & _LOW) << 32) >> executed % PHASES & 1
        x.more = (microop.more_low & _LOW | (microop.more_high & _LOW) << 32) >> executed % PHASES & 1
        x.banks = _banks(microop, executed, self.core.bank_bytes)
        x.scheduler = microop.scheduler
        if ports:
            x.ready += self.core.dispatch_delay
        if ports and self.by_port:
            if given < 0:
                x.odd = slot & 1
                self.queue.append(x)
            else:
                self._take_entry(x, given)
        elif ports:
            x.enters = x.enters if self.core.by_port else x.ready
            self.scheduled[x.scheduler] += 1
            if self.core.issue_ports:
                x.port = self._choose_port(ports, slot)
                self.counters[x.port] += 1
        for other, passes, cycles, _ in self._waits_of(u):
            source = (executed - passes) * self.core.microops + other
            if source < 0:
                continue
            y = self.flight.get(source)  # None: it issues later than what waits for it
            if y is not None and y.known:
                x.ready = max(x.ready, _seen(x, y.base + cycles))
            else:
                x.pending += 1
        if not x.pending:
            self._all_known(x)

    def _issue(self) -> None:
        core = self.core
        if self.slots_issued - self.slots_retired + core.issue_width > core.reorder_buffer:
            self.stalls[2] += 1
            return
        sizes = () if self.by_port else (core.scheduler, core.load_scheduler, core.store_scheduler)
        if any(size and own + core.issue_width > size for own, size in zip(self.scheduled, sizes, strict=False)):
            self.stalls[1] += 1
            return
        self.fitting = core.issue_width
        if self.queue_of:
            self._assign()
        if core.operations_together and not self._registers_suffice():
            self.stalls[3] += 1
            return
        self.ordered.clear()
        self.by_counters = False
        together = core.accesses_together or core.operations_together
        if self.by_port and together and not self._order_accesses():
            self.stalls[1] += 1
            return
        if self.entries_issued >= self.delivered:
            self.stalls[0] += 1
        self.accessed = 0
        slot = taken = unlaminated = constants = 0
        self.loads = [0] * len(core.most_loads)
        while slot < core.issue_width and self.entries_issued < self.delivered:
            executed, e = divmod(self.entries_issued, core.entries)
            slots, together, own = self.entries[e]
            ends = not e and not self.slot_in_entry and executed % core.copies == 0
            if slot and ends and self.source == "LSD" and core.group_boundary:
                break
            apart = slot + together > core.issue_width >= together
            if (
                slot
                and together
                and (apart or unlaminated == core.unlaminated_slots or taken >= core.unlaminated_first)
            ):
                self.stalls[5] += 1
                break
            if not self.slot_in_entry:
                constants += own
                if slot and self._ends_with(constants):
                    self.stalls[5] += 1
                    break
            taken, unlaminated = taken + 1, unlaminated + bool(together)
            slot = self._issue_entry(executed, slots, slot)
            if slot < 0:
                return

    def _registers_suffice(self) -> bool:
        """Whether there are registers for the vectors that this cycle dispatches; a slot that takes more than there are
        waits until all are free."""
        slots = islice(self._slots_of_cycle(), self.fitting) if self.registers_taken else ()
        return self.registers_taken + sum(self.registers[k] for k in slots) <= self.core.vector_registers

    def _ends_with(self, constants: int) -> bool:
        """Whether a cycle's dispatch ends before an entry with which it has so many constants."""
        return 0 < self.core.constants_dispatched < constants

    def _issue_entry(self, executed: int, slots: int, slot: int) -> int:
        """Issue what is left of a queue entry, as far as it fits; the next free slot, -1 where schedulers lack room."""
        while self.slot_in_entry < slots and slot < self.core.issue_width:
            k = self.slots_issued % self.core.slots
            first, end = self.first_microop[k], self.first_microop[k + 1]
            if self.registers_taken and self.registers_taken + self.registers[k] > self.core.vector_registers:
                self.stalls[3] += 1
                return -1
            if not self._dispatches_loads(k):
                self.stalls[4] += 1
                return -1
            if self.by_port and slot >= self.fitting:
                self.stalls[6] += 1
                return -1
            given = self._place_slot(k) if self.by_port else [-1] * (end - first)
            if given is None:
                self.stalls[1] += 1
                return -1
            if self.registers:
                self.registers_taken += self.registers[k]
            for number, own in enumerate(given):
                self._issue_microop(executed, first + number, slot, own)
            self.slots_issued += 1
            self.slot_in_entry += 1
            slot += 1
        if self.slot_in_entry == slots:
            self.slot_in_entry = 0
            self.entries_issued += 1
        return slot

    # ---- fetch ----

    def _deliver(self) -> None:
        if self.source in ("ideal", "LSD"):
            self.delivered = self.entries_issued + self.core.issue_width
            return
        queued = self.delivered - self.entries_issued
        if self.core.line_fetch:
            self._fetch_line(queued)
            return
        decoding = self.decoding
        if not self._microcode(queued, self.core.microcode_exit if decoding else self.core.microcode_switch):
            if decoding:
                self._decode(queued)
            else:
                self._fetch_dsb(queued)
        if decoding:
            self._predecode()

    def _microcode(self, queued: int, leaving: int) -> bool:
        """Whether the cycle belongs to the microcode sequencer."""
        if self.microcode_wait:
            self.microcode_wait -= 1
            return True
        if not self.microcode_left:
            return False
        if queued + self.core.microcode_width <= self.core.idq:
            part = min(self.microcode_left, self.core.microcode_width)
            self.delivered += part
            self.microcode_left -= part
            if not self.microcode_left:
                self.microcode_wait = leaving
        return True

    def _fetch_dsb(self, queued: int) -> None:
        core = self.core
        room, lines, line, block, branches = core.dsb_width, 0, -1, -1, 0
        if queued + room > core.idq:
            return
        while room > 0:
            n = self.fetched % core.units
            entries, decoded, _, _, _, _, own_block, own_line, wide, *_ = self.units[n]
            first = room == core.dsb_width
            if not self.unit_part:
                if not n and not first and core.group_boundary and own_block == block:
                    branches += 1
                    if branches == core.taken_branches:
                        return
                if n >= core.barred_from:
                    self._start_decoding()
                    return
                if own_line != line or not n:
                    if lines == core.dsb_lines:
                        return
                    lines, line = lines + 1, own_line
                if wide and room < 2 and not first:
                    return
                room -= wide
            part = max(0, min(decoded - self.unit_part, room))
            self.delivered += part
            self.unit_part += part
            room -= part
            block = own_block
            if self.unit_part < decoded:
                return
            self.unit_part = 0
            self.fetched += 1
            if entries > decoded:
                self.microcode_left, self.microcode_wait = entries - decoded, core.microcode_switch
                return

    def _fetch_line(self, queued: int) -> None:
        """No more entries than the width, those of one pass. A line of code is read each cycle, one ahead of what is
        delivered at most; where the queue waits for room for a line, the entries of a cycle are, too."""
        core = self.core
        if queued + core.dsb_width > core.idq or self.stopped or self.now < self.resumed:
            return
        room, begun, self.spare = self.spare + core.dsb_width, False, 0
        entries = constants = long = 0
        first = self.units[0].block
        self.opened = min(self.opened + 1, self.units[self.fetched % core.units].line - first + 2)
        while room > 0:
            n = self.fetched % core.units
            unit = self.units[n]
            if core.line_fetch & PASSES and not self.unit_part and not n and begun:
                return
            if core.line_fetch & LINES and (unit.line - first >= self.opened or self._without_line(unit)):
                self.spare = min(room, core.dsb_width) if core.queued_lines else 0
                return
            part = min(unit.entries - self.unit_part, room)
            if not self.unit_part:
                constants, long = constants + unit.constants, long + unit.long_constants
                if begun and self._has_too_many_constants(entries + part, constants, long):
                    return
            begun, entries = True, entries + part
            self.delivered += part
            self.unit_part += part
            room -= part
            if self.unit_part < unit.entries:
                return
            self.unit_part = 0
            self.fetched += 1
            if self.fetched % core.units == 0:
                self.opened -= unit.line - first + 1
            if unit.redirects:
                self.stopped = True
                return

    def _has_too_many_constants(self, entries: int, constants: int, long: int) -> bool:
        """Whether a cycle that delivers so many entries has more constants, or long ones, than go with them."""
        core, last = self.core, min(entries, self.core.dsb_width) - 1
        if not core.line_fetch & LINES or not core.constants_delivered[0]:
            return False
        return constants > core.constants_delivered[last] or long > core.long_delivered[last]

    def _without_line(self, unit: FetchUnit) -> bool:
        """Whether the queue has no room for the line of code of a unit: it holds what is left of a few, those of each
        pass for themselves. What begins in one line and ends in the next one belongs to both."""
        if not self.core.queued_lines or self.delivered == self.entries_issued:
            return False
        while self.oldest_until <= self.entries_issued:
            self.oldest_unit += 1
            self.oldest_until += self.units[self.oldest_unit % self.core.units].entries
        passed, place = divmod(self.oldest_unit, self.core.units)
        lines = (self.fetched // self.core.units - passed) * (self.units[-1].line - self.units[0].block + 1)
        return lines + unit.line - self.units[place].block >= self.core.queued_lines

    def _start_decoding(self) -> None:
        """The DSB holds no more of the pass: the decoders go on. The predecoder has run ahead meanwhile."""
        self.decoding = True
        self.predecoded = self.decoded = self.fetched
        self.decodable = [self.fetched] * _HISTORY
        ahead = min(self.core.predecode_delay - 1, self.core.schedule)
        for step in range(ahead):
            self.predecoded += self.schedule[step]
            self.decodable[(self.now - (self.core.predecode_delay - 1) + step) % _HISTORY] = self.predecoded
        self.decodable[self.now % _HISTORY] = self.predecoded
        self.predecode_step = ahead

    def _decode(self, queued: int) -> None:
        core = self.core
        there = self.decodable[(self.now - core.predecode_delay) % _HISTORY]
        simple = taken = 0
        while queued + core.decoders <= core.idq and self.decoded < there:
            n = self.decoded % core.units
            entries, decoded, complex_one, beside, fusible, ends_group, *_ = self.units[n]
            barred = fusible and not core.fusible_last
            if taken and (complex_one or not simple or (barred and taken == core.decoders - 1)):
                return
            over = n == core.units - 1 and not core.repeats
            if barred and self.decoded + 1 >= there and not over:
                return
            simple = simple - 1 if taken else beside
            taken += 1
            self.decoded += 1
            self.delivered += decoded
            if over:
                self.decoding, self.fetched = False, self.decoded
            if entries > decoded:
                self.microcode_left, self.microcode_wait = entries - decoded, core.microcode_exit
            if over or self.microcode_left or ends_group:
                return

    def _predecode(self) -> None:
        core = self.core
        over = not core.repeats and self.predecode_step >= core.schedule
        if self.decoding and not over and self.predecoded - self.decoded + core.predecode_width <= core.iq:
            self.predecoded += self.schedule[self.predecode_step % core.schedule]
            self.predecode_step += 1
            if core.repeats:
                self.predecode_step %= core.schedule
        self.decodable[self.now % _HISTORY] = self.predecoded

    # ---- repetition ----

    def _left(self, when: int) -> int:
        return max(when - self.now, 0)

    def _result_state(self) -> tuple[int, int, bool]:
        """What the future depends on of a port whose µops wait for a free result."""
        wait = self.result_wait if self.result_wait.cycle == self.now - 1 else _ResultWait()
        first = self.microops_issued - wait.before if wait.before >= 0 else 0
        return wait.passing, first, wait.stopped >= 0 and wait.stopped == wait.before

    def state(self) -> tuple[Any, ...]:
        """All that the future depends on, relative to this cycle and pass."""
        core = self.core
        history = [self.decodable[(self.now - k) % _HISTORY] - self.decoded for k in range(1, core.predecode_delay + 1)]
        return (
            self.slots_issued % core.slots,
            self.entries_issued % core.entries,
            self.entries_issued // core.entries % core.copies if self.source == "LSD" else 0,
            self.slot_in_entry,
            self.slots_issued - self.slots_retired,
            self.delivered - self.entries_issued,
            self.fetched % core.units if core.units else 0,
            self.unit_part,
            self.microcode_wait,
            self.microcode_left,
            (self.predecode_step, self.decoded % core.units, *history) if self.decoding else (),
            tuple(self.turn),
            self.sides.state(),
            [self.now - x.issued for x in self.queue if x.issued > self.now - self.core.queue_passage]
            if self.sides.places
            else (),
            self.passes_issued() % self.phases,
            len(self.queue),
            self._coming(),
            self.opened if core.line_fetch & LINES else 0,
            self.spare,
            self.stopped,
            self._left(self.resumed),
            self._left(self.divider_free),
            max(self.alone_free - self.now * TICKS, 0),
            tuple(self.counters),
            () if core.by_port or not core.issue_ports else tuple(self.started),
            tuple(self.starting) if self.port_choice == "by rank" else (),
            tuple(map(self._left, self.data_free)),
            tuple(map(self._left, self.back)),
            tuple(max(own - self.now, -1) for own in self.brings),
            tuple(map(self._left, self.path_used)),
            tuple(self.results),
            self._result_state(),
            (tuple(self.entries_seen), *map(tuple, self.moved)),
            tuple(self._trace(number) for number in range(self._oldest_needed(), self.microops_issued)),
        )

    def _coming(self) -> tuple[int, ...]:
        """Registers that become free, cycle by cycle."""
        if not self.registers:
            return ()
        return tuple(self.registers_coming[(self.now + k) % RELEASES] for k in range(RELEASES))

    def passes_issued(self) -> int:
        """Passes of which all slots were issued."""
        return self.slots_issued // self.core.slots

    def _oldest_needed(self) -> int:
        core = self.core
        executed, slot = divmod(self.slots_retired, core.slots)
        unretired = executed * core.microops + self.first_microop[slot]
        return max(0, min(unretired, (self.slots_issued // core.slots - core.farthest) * core.microops))

    def _trace(self, number: int) -> tuple[int, ...]:
        x = self.flight[number]
        if not x.known:
            return (0, x.pending, x.port, self._left(x.ready), self._left(x.enters + 1) if x.pending else 0)
        return (1, x.port, max(x.base - self.now, -self.core.longest), self._left(x.done))

    def counts(self, passes: int) -> Counts:
        """Cycles, passes, stalls by reason, dispatches by port, so far."""
        return (self.now, passes, *self.stalls, *self.dispatched, *[0] * (PORTS - len(self.dispatched)))

    def forget(self) -> None:
        """Drop the µops that nothing can wait for any more."""
        oldest = self._oldest_needed()
        for number in [number for number in self.flight if number < oldest]:
            del self.flight[number]


class _Repetition:
    """Whether a state was there before, of those that are kept: all that come are compared with them, and they are
    taken less and less often, since most blocks repeat soon."""

    __slots__ = ("checks", "kept", "next_kept", "since")

    def __init__(self, since: Counts) -> None:
        self.checks = self.next_kept = 0
        self.kept: deque[tuple[tuple[Any, ...], Counts]] = deque(maxlen=_SNAPSHOTS)
        self.since = since

    def found(self, pipeline: Pipeline) -> bool:
        """Look at the state at the end of a pass."""
        state = pipeline.state()
        self.checks += 1
        for then, counts in reversed(self.kept):
            if state == then:
                self.since = counts
                return True
        if self.checks >= self.next_kept:
            self.next_kept = self.checks + self.checks // _SAVING + _SAVING
            self.kept.append((state, pipeline.counts(pipeline.passes)))
        return False


def run(program: Program) -> tuple[int, ...]:
    """Settled (1) or not, cycles and passes of the period, cycles in all, stalls by reason, dispatches by port.

    Without a repetition it is the passes that count that retired in the last two thirds of a trial in which they took
    equally long, else those in the second half of all cycles.
    """
    pipeline = Pipeline(program)
    core = program.core
    begun = pipeline.counts(0)
    repetition = _Repetition(begun)
    half = _Mark(core.most_cycles // 2, core.least_passes // 2)
    soon = _Trial(core.floor_cycles, core.reorder_buffer)
    late = _Trial(core.steady_cycles, 2 * core.reorder_buffer)
    again = _Trial(core.again_cycles, 2 * core.reorder_buffer)
    until = repetition.since
    while pipeline.now < core.most_cycles or until[1] < core.least_passes:
        pipeline.cycle()
        retired = pipeline.slots_retired // core.slots
        if retired != until[1]:
            until = pipeline.counts(retired)
            half.see(until)
            since = soon.over(until, pipeline.slots_retired)
            if since is None or not is_at(program.floor, (until[0] - since[0]) / max(until[1] - since[1], 1)):
                since = late.over(until, pipeline.slots_retired)
            if since is None and core.again_cycles:
                since = again.over(until, pipeline.slots_retired)
            if since is not None:
                return _difference(0, pipeline, until, since)
        if pipeline.slots_issued // core.slots == pipeline.passes:
            continue
        pipeline.passes = pipeline.slots_issued // core.slots
        pipeline.forget()
        if repetition.found(pipeline):
            return _difference(1, pipeline, pipeline.counts(pipeline.passes), repetition.since)
    return _difference(0, pipeline, until, half.counts or begun)


class _Mark:
    """The counts at the end of the first pass that ends at a cycle or later, after so many passes."""

    __slots__ = ("_cycle", "_passes", "counts")

    def __init__(self, cycle: int, passes: int = 0) -> None:
        self._cycle = cycle
        self._passes = passes
        self.counts: Counts | None = None

    def see(self, now: Counts) -> None:
        """Look at the counts at the end of a pass."""
        if self.counts is None and now[0] >= self._cycle and now[1] >= self._passes:
            self.counts = now


class _Trial:
    """Whether passes have become equally fast, asked once: at the end of a pass after so many cycles and slots."""

    __slots__ = ("_asked", "_cycles", "_slots", "_third", "_two_thirds")

    def __init__(self, cycles: int, slots: int) -> None:
        self._cycles = cycles
        self._slots = slots
        self._asked = False
        self._third = _Mark(cycles // 3)
        self._two_thirds = _Mark(cycles * 2 // 3)

    def over(self, now: Counts, slots: int) -> Counts | None:
        """Where the equally fast passes began, None if there are none or it is not the time to ask."""
        found = None
        if not self._asked and now[0] >= self._cycles and slots >= self._slots:
            self._asked = True
            first, second = self._third.counts, self._two_thirds.counts
            if first and second and _is_steady(first, second, now):
                found = first
        self._third.see(now)
        self._two_thirds.see(now)
        return found


def _is_steady(first: Counts, second: Counts, third: Counts) -> bool:
    """Whether the passes between three marks took equally long, but for a small share."""
    earlier = (second[0] - first[0]) * (third[1] - second[1])
    later = (third[0] - second[0]) * (second[1] - first[1])
    return bool(later) and STEADY_SHARE * abs(earlier - later) <= later


def _difference(settled: int, pipeline: Pipeline, until: Counts, since: Counts) -> Counts:
    cycles, passes, *others = (now - then for now, then in zip(until, since, strict=True))
    return (settled, cycles, passes, pipeline.now, *others)
