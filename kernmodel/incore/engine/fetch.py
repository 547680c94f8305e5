"""How the µops of a block reach the queue: what the predecoder delivers when, and what the DSB holds in which line."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from kernmodel.incore.engine.layout import FetchUnit
from kernmodel.incore.engine.model import Delivery, Fetch, Source, Switches
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.front_end.dsb import erratum_branches
from kernmodel.incore.front_end.lsd import fits_lsd
from kernmodel.incore.front_end.model import FrontEndBlock, Unit
from kernmodel.incore.front_end.predecode import fetch_cycles
from kernmodel.incore.tables.core_parameters import FrontEndParameters, OpCacheParameters
from kernmodel.isa.model import Notion


def fetch_of(
    instructions: Sequence[Lowered],
    block: FrontEndBlock,
    units: Sequence[Unit],
    entries: Sequence[int],
    delivery: Delivery,
    front: FrontEndParameters,
    notion: Notion,
    offset: int,
    switches: Switches,
) -> Fetch:
    """The fetch of a block.

    Args:
        instructions: the block; `block` and `units` are what the front end sees of it at `offset`.
        entries: queue entries of each unit.
        delivery, front: its front end; notion, offset, switches: what is simulated.
    """
    barred_from, placed = _placed(instructions, units, entries, delivery, front, offset)
    if notion == "unrolled" or (barred_from < len(units) and not switches.partial_erratum):
        barred_from = 0
    source = _source(instructions, units, front, notion, barred_from, switches)
    repeats = barred_from == 0
    decodes = source in ("DSB", "decoders") and barred_from < len(units)
    return Fetch(
        source=source,
        units=placed,
        copies=front.lsd_copies.get(sum(entries), 1),
        barred_from=barred_from,
        repeats=repeats,
        schedule=_schedule(block, units, front, notion, offset, barred_from) if decodes else (),
    )


def op_cache_fetch(
    units: Sequence[Unit], entries: Sequence[int], core: OpCacheParameters, cached: bool, offset: int
) -> Fetch:
    """The fetch from the op cache, or from decoders that are all alike.

    Args:
        units: in order; entries: of the queue, of each.
        core: the front end; cached: whether the op cache delivers; offset: address of the first byte.
    """
    line = core.code_line_bytes
    placed = []
    for unit, count in zip(units, entries, strict=True):
        first, last = ((offset + unit.start) // line, (offset + unit.end - 1) // line) if line else (0, 0)
        constants = (unit.constants, unit.long_constants)
        placed.append(FetchUnit(count, count, 0, 0, 0, 0, first, last, 0, 0, *constants))
    return Fetch("DSB" if cached else "decoders", tuple(placed), 1, len(placed), False, ())


def _source(
    instructions: Sequence[Lowered],
    units: Sequence[Unit],
    front: FrontEndParameters,
    notion: Notion,
    barred_from: int,
    switches: Switches,
) -> Source:
    if not switches.front_end:
        return "ideal"
    if notion == "unrolled" or barred_from == 0:
        return "decoders"
    loops = barred_from == len(units) and fits_lsd(units, front) and not any(unit.microcoded for unit in units)
    return "LSD" if loops and not any(instruction.template.traits.bars_lsd for instruction in instructions) else "DSB"


def _placed(
    instructions: Sequence[Lowered],
    units: Sequence[Unit],
    entries: Sequence[int],
    delivery: Delivery,
    front: FrontEndParameters,
    offset: int,
) -> tuple[int, tuple[FetchUnit, ...]]:
    """The first unit that the DSB cannot hold, and the units with their DSB lines."""
    placed = []
    line, used, previous = -1, 0, None
    lines: dict[int, int] = {}
    for unit, total in zip(units, entries, strict=True):
        block = (offset + unit.start) // front.dsb_bytes
        decoded = min(unit.decoded, total)
        wide = instructions[unit.number].wide
        if block != previous or used + decoded + wide > delivery.dsb_line_uops or unit.microcoded:
            line, used, previous = line + 1, 0, block
            lines[block] = lines.get(block, 0) + 1
        used += decoded + wide
        simple = min(unit.simple, front.decoders - 1) if unit.complex else front.decoders - 1
        placed.append(
            FetchUnit(
                total, decoded, unit.complex, simple, unit.fusible, unit.ends_group or unit.branch, block, line, wide
            )
        )
    beyond = [block for block, count in lines.items() if count > delivery.dsb_block_lines]
    barred = {block * front.dsb_bytes // front.dsb_line_bytes for block in beyond}
    hit = set(erratum_branches(units, front, offset))
    barred |= {(offset + unit.start) // front.dsb_line_bytes for unit in units if unit.number in hit}
    for place, unit in enumerate(units):
        if (offset + unit.start) // front.dsb_line_bytes in barred:
            return place, tuple(placed)
    return len(units), tuple(placed)


def _schedule(
    block: FrontEndBlock,
    units: Sequence[Unit],
    front: FrontEndParameters,
    notion: Notion,
    offset: int,
    first: int,
) -> tuple[int, ...]:
    """Units that leave the predecoder, cycle by cycle, from unit `first` to the end of the pattern.

    A fetched block takes the cycles that `fetch_cycles` says: first those that a length-changing prefix costs, then so
    many instructions per cycle as the predecoder is wide, the one that goes on in the next block at the end.
    """
    size, width = front.predecode_bytes, front.predecode_width
    cycles = fetch_cycles(block, front, notion, offset)
    executions = size // gcd(block.length, size) if notion == "unrolled" else 1
    leaving: list[list[int]] = [[] for _ in cycles]
    base = offset // size
    begin, skipped = (units[first].number, units[first].start) if first else (0, 0)
    for execution in range(executions):
        start = offset + execution * block.length
        for end, done in _ends(block, units, begin):
            leaving[((start + end - 1) // size - base) % len(cycles)].append(done)
    schedule: list[int] = []
    for number in range((offset + skipped) // size - base, len(cycles)):
        counts = leaving[number]
        groups = [sum(counts[k : k + width]) for k in range(0, len(counts), width)] or [0]
        schedule += [0] * (cycles[number] - len(groups))
        schedule += groups
    return tuple(schedule)


def _ends(block: FrontEndBlock, units: Sequence[Unit], begin: int) -> list[tuple[int, int]]:
    """End of each instruction from number `begin` on, in bytes from the start, and the units complete with it."""
    complete = {unit.number + unit.fused for unit in units}
    ends = [x for x in range(1, len(block.ends)) if block.ends[x] > block.ends[x - 1]]
    return [(end, int(number in complete)) for number, end in enumerate(ends) if number >= begin]
