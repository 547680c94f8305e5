"""The input of the simulation as plain numbers, which both engines read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from kernmodel.incore.engine.model import PipelineCore, PipelineInput, Role, Source, Switches

SOURCES: tuple[Source, ...] = ("ideal", "LSD", "DSB", "decoders")
GROUPS = 4
"""Port sets that may alternate."""
PORTS = 16
"""Most ports that an engine keeps count of."""
REASONS = ("front end", "scheduler", "reorder buffer")
"""Why the renamer stands still."""


class Core(NamedTuple):
    """The core and the sizes of the block; the compiled engine reads the numbers in this order."""

    issue_width: int
    retire_width: int
    reorder_buffer: int
    scheduler: int
    load_scheduler: int
    store_scheduler: int
    idq: int
    dsb_width: int
    dsb_lines: int
    decoders: int
    iq: int
    predecode_width: int
    fusible_last: int
    microcode_switch: int
    microcode_exit: int
    microcode_width: int
    predecode_delay: int
    unlaminated_slots: int
    unlaminated_first: int
    taken_branches: int
    dispatch_delay: int
    counter_gap: int
    issue_ports: int
    group_boundary: int
    source: int
    copies: int
    barred_from: int
    repeats: int
    alternating: tuple[int, ...]
    units: int
    entries: int
    slots: int
    microops: int
    waits: int
    schedule: int
    farthest: int
    longest: int
    most_cycles: int
    least_passes: int
    steady_cycles: int
    floor_cycles: int

    @classmethod
    def of(cls, numbers: Sequence[int]) -> Core:
        """What `numbers` gave."""
        place = cls._fields.index("alternating")
        groups = tuple(numbers[place : place + GROUPS])
        return cls._make((*numbers[:place], groups, *numbers[place + GROUPS :]))

    def numbers(self) -> array[int]:
        """All of them in one piece."""
        numbers = array("i")
        for value in self:
            numbers.extend(value if isinstance(value, tuple) else (value,))
        return numbers


class Limits(NamedTuple):
    """How long a block is simulated whose state does not repeat.

    Attributes:
        most_cycles: then it ends, and the mean of the second half of them is taken.
        least_passes: but not before so many passes.
        steady_cycles: then it ends where the passes of the second and the last third took equally long, to one percent;
            their mean is taken. Not before two reorder buffers of slots have retired: empty ones let µops through
            faster.
        floor_cycles: the same where these passes take as long as the slowest part of the core, to one percent: they
            cannot become faster. Not before one reorder buffer of slots has retired.
    """

    most_cycles: int = 1500
    least_passes: int = 8
    steady_cycles: int = 400
    floor_cycles: int = 120


LIMITS = Limits()


class Program(NamedTuple):
    """A block and a core in numbers; ports are bits.

    Attributes:
        core: sizes and figures.
        units: entries, decoded, complex, simple, fusible, ends_group, block, line, wide of each.
        entries: slots, together of each.
        first_microop: by slot, and one behind.
        microops: ports, latency, divider, data, alone, first wait, scheduler of each, and one behind.
        waits: µop, passes, cycles of each.
        schedule: units per cycle of the predecoder.
        floor: cycles per pass of the slowest part of the core, 0 if it is not known.
    """

    core: Core
    units: array[int]
    entries: array[int]
    first_microop: array[int]
    microops: array[int]
    waits: array[int]
    schedule: array[int]
    floor: float = 0.0


def program_of(block: PipelineInput, limits: Limits = LIMITS, floor: float = 0.0) -> Program:
    """The numbers of a block.

    Args:
        block: the block, with at least one slot.
        limits: how long it is simulated; floor: as in `Program`.
    """
    bits = {port: 1 << number for number, port in enumerate(block.core.ports)}
    first = array("i", [0])
    for count in block.slots:
        first.append(first[-1] + count)
    microops, waits = array("i"), array("i")
    for microop in block.microops:
        ports = 0
        for port in microop.ports:
            ports |= bits[port]
        microops.extend((ports, microop.latency, microop.divider, microop.data, microop.alone, len(waits) // 3))
        microops.append(scheduler_of(microop.role, block.core))
        for wait in microop.waits:
            waits.extend(wait)
    microops.extend((0, 0, 0, 0, 0, len(waits) // 3, 0))
    core = _core(block, waits)
    return Program(
        core=core._replace(**limits._asdict()),
        units=array("i", [int(value) for unit in block.fetch.units for value in unit]),
        entries=array("i", [int(value) for entry in block.entries for value in entry]),
        first_microop=first,
        microops=microops,
        waits=waits,
        schedule=array("i", block.fetch.schedule or (0,)),
        floor=floor,
    )


def scheduler_of(role: Role, core: PipelineCore) -> int:
    """0 for the scheduler of all, 1 for that of loads, 2 for that of stores."""
    if role == "load" and core.load_scheduler:
        return 1
    return 2 if role in ("store address", "store data") and core.store_scheduler else 0


def core_of(core: PipelineCore, switches: Switches) -> Core:
    """The numbers of a core; those of the block are 0."""
    bits = {port: 1 << number for number, port in enumerate(core.ports)}
    groups = [sum(bits[port] for port in group) for group in core.alternating[:GROUPS]]
    return Core(
        issue_width=core.issue_width,
        retire_width=core.retire_width,
        reorder_buffer=core.reorder_buffer,
        scheduler=core.scheduler,
        load_scheduler=core.load_scheduler,
        store_scheduler=core.store_scheduler,
        idq=core.idq,
        dsb_width=core.dsb_width,
        dsb_lines=core.dsb_lines,
        decoders=core.decoders,
        iq=core.iq,
        predecode_width=core.predecode_width,
        fusible_last=core.fusible_last,
        microcode_switch=core.microcode_switch,
        microcode_exit=core.microcode_exit,
        microcode_width=core.microcode_width,
        predecode_delay=core.predecode_delay,
        unlaminated_slots=core.unlaminated_slots,
        unlaminated_first=core.unlaminated_first,
        taken_branches=core.taken_branches,
        dispatch_delay=core.dispatch_delay,
        counter_gap=core.counter_gap,
        issue_ports=switches.issue_ports,
        group_boundary=0,
        source=0,
        copies=0,
        barred_from=0,
        repeats=0,
        alternating=tuple(groups + [0] * (GROUPS - len(groups))),
        units=0,
        entries=0,
        slots=0,
        microops=0,
        waits=0,
        schedule=0,
        farthest=0,
        longest=0,
        most_cycles=0,
        least_passes=0,
        steady_cycles=0,
        floor_cycles=0,
    )


def _core(block: PipelineInput, waits: array[int]) -> Core:
    fetch, switches = block.fetch, block.switches
    return core_of(block.core, switches)._replace(
        group_boundary=switches.group_boundary and (fetch.source == "LSD" or block.core.dsb_ends),
        source=SOURCES.index(fetch.source),
        copies=fetch.copies,
        barred_from=fetch.barred_from,
        repeats=fetch.repeats,
        units=len(fetch.units),
        entries=len(block.entries),
        slots=len(block.slots),
        microops=len(block.microops),
        waits=len(waits) // 3,
        schedule=len(fetch.schedule) or 1,
        farthest=max(waits[1::3], default=0),
        longest=max(waits[2::3], default=0),
    )
