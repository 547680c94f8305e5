"""`kernmodel.binary-blocks/1`, `kernmodel.binary-residency/1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, pick, record

if TYPE_CHECKING:
    from kernmodel.binary.program import BasicBlock, Function, Loop
    from kernmodel.binary.residency import Residency
    from kernmodel.traffic.model import PathTraffic

_COUNTED = ("loads", "load_misses", "stores", "store_misses", "dirty_evictions", "clean_evictions")


def function_document(function: Function) -> Json:
    """The answer of `kernmodel binary blocks`."""
    return document("kernmodel.binary-blocks/1", function_json(function))


def function_json(function: Function) -> Json:
    """A function with its blocks and loops; addresses are numbers."""
    return record(
        pick(function, "file", "name", "isa", "entry", "ranges", "runnable", "position_independent", "clones"),
        ranges=[{"name": one.name, "first": one.first, "end": one.end} for one in function.ranges],
        blocks=[block_json(function, block) for block in function.blocks],
        loops=[_loop_json(loop) for loop in function.loops],
        notes=function.notes,
    )


def block_json(function: Function, block: BasicBlock) -> Json:
    """A block; `loop` is the header of the innermost loop that it is in, or null."""
    loop = function.loop_of(block.address)
    return record(
        pick(block, "address", "successors", "ending", "leads_to"),
        hex=block.code.hex(),
        instructions=[item.text for item in block.instructions],
        loop=loop.header if loop is not None else None,
        lines=[{"file": line.file, "line": line.line} for line in block.lines],
    )


def _loop_json(loop: Loop) -> Json:
    return record(pick(loop, "header", "parent", "depth", "irreducible"), blocks=sorted(loop.blocks))


_RESIDENCY = (
    *("accesses", "calls", "footprint_bytes", "line_bytes", "misses_per_access", "misses_per_line", "is_resident"),
    "complete",
)


def residency_document(found: Residency, function: Function, paths: Sequence[PathTraffic]) -> Json:
    """The answer of `kernmodel binary residency`."""
    return document(
        "kernmodel.binary-residency/1", pick(function, "file", "name"), residency_json(found, paths), notes=found.notes
    )


def residency_json(found: Residency, paths: Sequence[PathTraffic]) -> Json:
    """Footprint, misses, and the lines of a call beyond each level."""
    levels = found.counters.levels
    return record(
        pick(found, *_RESIDENCY),
        levels=[{"level": name, **pick(one, *_COUNTED)} for name, one in levels.items()],
        lines=[{"level": name, "lines": one.lines} for name, one in zip(levels, paths, strict=True)],
    )
