"""Functions of binaries as text: their blocks and loops, how often these ran, how long the function took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Pair, fields, left, right, table
from kernmodel.report.text.sections import notes_section
from kernmodel.units import format_bytes
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.binary.program import BasicBlock, Function, Loop, SourceLine
    from kernmodel.binary.residency import Residency
    from kernmodel.traffic.model import PathTraffic

_SHOWN_LINES = 4
_ENDINGS = {
    "falls": "runs on",
    "branches": "branch",
    "jumps": "jump",
    "indirect": "indirect jump",
    "calls": "call",
    "tail call": "tail call",
    "returns": "return",
    "traps": "trap",
}


def function_report(function: Function) -> Blocks:
    """The blocks of a function in the tree of its loops."""
    return (*function_fields(function), *block_tree(function), *notes_section(function.notes))


def function_fields(function: Function) -> Blocks:
    """What the function is."""
    items = sum(len(block.instructions) for block in function.blocks)
    ranges = ", ".join(f"{one.first:#x}-{one.end:#x}" for one in function.ranges)
    loops = count(len(function.loops), "loop")
    depth = max((loop.depth for loop in function.loops), default=0)
    return fields(
        "Function",
        ("function", f"{function.name}, {function.file}"),
        ("instruction set", function.isa),
        ("code", f"{ranges} ({count(items, 'instruction')})"),
        ("blocks", f"{len(function.blocks)}, in {loops}" + (f" up to {depth} deep" if depth > 1 else "")),
        ("clones", ", ".join(function.clones) or None),
    )


def block_tree(function: Function) -> Blocks:
    """The blocks by address, indented by the depth of their loops."""
    loops = {loop.header: loop for loop in function.loops}
    deepest = {block.address: function.loop_of(block.address) for block in function.blocks}
    shown = (
        left("block", lambda block: _place(block, deepest[block.address], loops)),
        right("instr.", lambda block: len(block.instructions)),
        right("bytes", lambda block: len(block.code)),
        left("ends in", _end_text),
        left("next", lambda block: " ".join(f"{one:#x}" for one in block.successors)),
        left("lines", lambda block: lines_text(block.lines)),
    )
    return table("Blocks", shown, function.blocks)


def _place(block: BasicBlock, loop: Loop | None, loops: dict[int, Loop]) -> str:
    """The address of a block, set in by the depth of its loop; ↻ marks headers."""
    depth = loop.depth if loop is not None else 0
    header = loops.get(block.address)
    mark = "↻ " if header is not None and not header.irreducible else "⤨ " if header is not None else ""
    inside = depth - (1 if header is not None else 0)
    return f"{'│ ' * inside}{mark}{block.address:#x}"


def _end_text(block: BasicBlock) -> str:
    text = _ENDINGS[block.ending]
    if block.ending == "calls":
        return f"{text} of {block.leads_to}" if block.leads_to else text
    return f"{text} to {block.leads_to}" if block.leads_to else text


def lines_text(lines: Sequence[SourceLine]) -> str:
    """Source lines, neighbours as ranges, the file with the most lines first: "gemm.c:8-10,14"."""
    files = Counter(line.file for line in lines)
    parts = []
    for file, _ in files.most_common():
        numbers = sorted({line.line for line in lines if line.file == file})
        runs = [f"{a}-{b}" if a != b else f"{a}" for a, b in _runs(numbers)]
        more = ",…" if len(runs) > _SHOWN_LINES else ""
        parts.append(f"{file}:{','.join(runs[:_SHOWN_LINES])}{more}")
    return " ".join(parts)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def residency_fields(found: Residency) -> tuple[Pair, ...]:
    """Footprint and misses."""
    held = "" if found.is_resident else ": not resident"
    return (
        ("footprint", format_bytes(found.footprint_bytes)),
        ("misses of the first cache", f"{100 * found.misses_per_access:.2f} % of the accesses{held}"),
        ("misses per line", f"{found.misses_per_line:.3g} of the footprint in a call"),
    )


def residency_report(found: Residency, function: Function, paths: Sequence[PathTraffic]) -> Blocks:
    """Where the data of a function lie."""
    lines = dict(zip(found.counters.levels, paths, strict=True))
    columns = (
        left("level", lambda item: item[0]),
        right("accesses", lambda item: f"{item[1].loads + item[1].stores:,}"),
        right("misses", lambda item: f"{item[1].load_misses + item[1].store_misses:,}"),
        right("lines beyond it per call", lambda item: f"{lines[item[0]].lines:,.1f}"),
    )
    return (
        *fields(
            "Function",
            ("function", f"{function.name}, {function.file}"),
            ("accesses", f"{found.accesses:,} in {count(found.calls, 'call')}"),
            *residency_fields(found),
        ),
        *table("Simulated caches, warm", columns, found.counters.levels.items()),
        *notes_section(found.notes),
    )
