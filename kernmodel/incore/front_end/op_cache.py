"""The front end of AMD's Zen cores: fetch, decoders that are all alike, the op cache, and the dispatch of macro-ops.

Much less is published of it than of Intel's (docs/front-end.md names the sources and what is left out), so each bound
is a width: what a part passes on per cycle at most. A part without a published width has no bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.front_end.issue import issue_bound
from kernmodel.incore.front_end.model import Path, Unit
from kernmodel.incore.tables.core_parameters import OpCacheParameters
from kernmodel.isa.model import Notion


def op_cache_path(units: Sequence[Unit], core: OpCacheParameters, notion: Notion) -> Path:
    """Where the macro-ops come from.

    The core changes over to its op cache at branch targets only, and what it executes once is not in it: straight-line
    code is decoded. So is a loop that does not fit; whether its entries fit into their sets is not looked at.
    """
    fits = sum(unit.decoded for unit in units) <= core.op_cache_entries
    return "DSB" if notion == "loop" and fits else "decoders"


def fetch_bound(length: int, core: OpCacheParameters) -> float | None:
    """Cycles per execution to fetch `length` bytes; None where the width of the fetch is not known.

    Code without taken branches uses all bytes of the windows. The loops that are fetched are so long that the windows
    at their ends do not matter.
    """
    return None if core.fetch_bytes is None else length / core.fetch_bytes


def op_cache_bound(units: Sequence[Unit], core: OpCacheParameters, length: int, offset: int) -> float | None:
    """Cycles per pass to deliver the units from the op cache; None where its width is not known.

    Where the core is known to deliver one aligned line of code a cycle, each pass of a loop for itself, a pass takes
    whole cycles, and one for each line that its `length` bytes from address `offset` on touch: on Zen 4 nine macro-ops
    take 1.50 cycles a pass behind six slots of dispatch, ten to twelve 2.00, and a copy loop of 22 bytes 1.00 at the
    addresses 0 to 40 and 2.00 at 44 to 63 (docs/front-end.md).
    """
    if core.op_cache_width is None:
        return None
    line = core.code_line_bytes
    if line is None:
        return sum(unit.decoded for unit in units) / core.op_cache_width
    lines = touched_lines(length, offset, line)
    return float(max(lines, _deliveries(units, core.op_cache_width, core.constants, core.long_constants)))


def touched_lines(length: int, offset: int, line: int) -> int:
    """Aligned lines of so many bytes that `length` bytes from address `offset` on touch."""
    return (offset + length - 1) // line - offset // line + 1


def _deliveries(units: Sequence[Unit], width: int, most: Sequence[int], most_long: Sequence[int]) -> int:
    """Cycles to deliver the units of a pass, in each as many macro-ops as go with their constants."""
    if not most:
        return -(-sum(unit.decoded for unit in units) // width)
    cycles, entries, constants, long = 1, 0, 0, 0
    for unit in units:
        constants, long = constants + unit.constants, long + unit.long_constants
        number = min(entries + unit.decoded, width) - 1
        if entries and (entries == width or constants > most[number] or long > most_long[number]):
            cycles, entries, constants, long = cycles + 1, 0, unit.constants, unit.long_constants
        entries += unit.decoded
        while entries > width:
            cycles, entries, constants, long = cycles + 1, entries - width, 0, 0
    return cycles


def dispatch_bound(units: Sequence[Unit], core: OpCacheParameters) -> float:
    """Cycles per execution to dispatch the units: n / i for n macro-ops, and no more instructions than the core takes.

    On Zen and Zen 2 the six macro-ops of a cycle come from at most five instructions, a fused pair taken as one (A. Fog
    measured it on the first, the project `perfect` on the second).
    """
    bounds = [issue_bound(units, core)]
    if core.issue_instructions is not None:
        bounds.append(len(units) / core.issue_instructions)
    if core.constants_dispatched is not None:
        bounds.append(sum(unit.constants for unit in units) / core.constants_dispatched)
    return max(bounds)
