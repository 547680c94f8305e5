"""The answer of `kernmodel mix` as text: memory and floating-point instructions by class, the source beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from kernmodel.report.layout import Blocks, Column, Pair, fields, left, lines, right, table
from kernmodel.report.number_text import MISSING, sizes
from kernmodel.report.number_text import short as four_digits
from kernmodel.report.text.sections import code_fields, loop_section, machine_fields, notes_section
from kernmodel.words import count, plural

if TYPE_CHECKING:
    from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
    from kernmodel.studies.predict.mix import MixAnswer, MixPart

_Cell = TypeVar("_Cell", Column, str)
_OPERATIONS = {"fma": "FMA", "sqrt": "square root", "div": "divide", "mul": "multiply"}


def mix_report(answer: MixAnswer, *, verbose: bool = False) -> Blocks:
    """The whole answer."""
    mix, alone = answer.mix, len(answer.parts) == 1
    return (
        *fields(f"Instruction mix of {answer.name}", *_inputs(answer)),
        *_parts(answer),
        *_memory(mix),
        *_fp(mix),
        *_totals(mix),
        *(block for part in answer.parts for block in _source(part, alone=alone)),
        *(block for part in answer.parts if verbose for block in loop_section(part.loop, part.origin)),
        *notes_section(answer.notes),
    )


def _inputs(answer: MixAnswer) -> tuple[Pair, ...]:
    machine = machine_fields(answer.machine)
    counts = ("counts", _per(answer.mix).strip() or "shares of all instructions of a kind")
    if not answer.parts:
        return (*machine, ("given as", answer.mix.source), counts)
    part = answer.parts[0]
    kernel = (("sizes", sizes(part.sizes)),) if part.sizes is not None else ()
    analysed = (("analysed", _loop_name(part)),) if len(answer.parts) == 1 else ()
    return (*kernel, *machine, *code_fields(part.origin), *analysed, counts)


def _per(mix: InstructionMix) -> str:
    return "" if mix.per == "instruction" else f" per {mix.per}"


def _loop_name(part: MixPart) -> str:
    loop = part.loop
    region = f"{loop.role} loop at {loop.label}" if loop.label else loop.role
    passes = loop.iterations_per_pass
    per = f", {_number(passes)} source {plural(passes, 'iteration')} in a pass" if passes else ""
    return f"{region}, {count(len(loop.instructions), 'instruction')}{per}"


def _parts(answer: MixAnswer) -> Blocks:
    """The loops that weigh in; nothing where there is only one."""
    columns = (
        left("kernel", lambda part: part.nest.name if part.nest else MISSING),
        left("loop", _loop_name),
        right("weight", "weight", _number),
        right("loads", "mix.loads", _number),
        right("stores", "mix.stores", _number),
        right("B", "mix.bytes", _number),
        right("FLOP", "mix.flops", _number),
    )
    parts = answer.parts if len(answer.parts) > 1 else ()
    return table(f"Loops that weigh in, each per {answer.mix.per}", columns, parts)


def _memory(mix: InstructionMix) -> Blocks:
    total, moved = mix.loads + mix.stores, mix.bytes
    if not total:
        return lines("Memory instructions", ["none"])
    columns = (
        left("access", lambda found: memory_name(found[0])),
        right("instructions", lambda found: _number(found[1])),
        right("share", lambda found: _percent(found[1] / total)),
        *_counted(mix, right("B", lambda found: _number(found[0].size_bytes * found[1]))),
        right("share of bytes", lambda found: _percent(found[0].size_bytes * found[1] / moved)),
    )
    sums = ("all", _number(total), "100 %", *_counted(mix, _number(moved)), "100 %")
    return table(f"Memory instructions{_per(mix)}", columns, mix.memory, (sums,), always=True)


def _counted(mix: InstructionMix, column: _Cell) -> tuple[_Cell, ...]:
    """A column of what is known only where a mix has counts."""
    return () if mix.shares_only else (column,)


def _fp(mix: InstructionMix) -> Blocks:
    total, flops = math.fsum(number for _, number in mix.fp), mix.flops
    if not total:
        return lines("Floating-point instructions", ["none"])
    columns = (
        left("operation", lambda found: fp_name(found[0])),
        right("instructions", lambda found: _number(found[1])),
        right("share", lambda found: _percent(found[1] / total)),
        right("FLOP each", lambda found: str(found[0].flops)),
        *_counted(mix, right("FLOP", lambda found: _number(found[0].flops * found[1]))),
    )
    sums = ("all", _number(total), "100 %", "", *_counted(mix, _number(flops)))
    return table(f"Floating-point instructions{_per(mix)}", columns, mix.fp, (sums,), always=True)


def memory_name(kind: MemoryClass) -> str:
    """A class of memory instructions in words ("load 64 B vector", "store 8 B scalar, streaming")."""
    marks = [name for name, set_ in (("streaming", kind.streaming), ("masked", kind.masked)) if set_]
    elements = " elements" if kind.kind in ("gather", "scatter") else ""
    name = f"{'store' if kind.store else 'load'} {kind.size_bytes} B {kind.kind}{elements}"
    return ", ".join((name, *marks))


def fp_name(kind: FpClass) -> str:
    """A class of floating-point instructions in words ("FMA DP, 8 lanes", "add SP, scalar")."""
    operation = _OPERATIONS.get(kind.operation, kind.operation)
    lanes = "scalar" if kind.lanes == 1 else f"{kind.lanes} lanes"
    return f"{operation} {kind.precision}, {lanes}{', masked' if kind.masked else ''}"


def _number(value: float) -> str:
    """A count: four digits, all of them where there are more (the counts of whole runs)."""
    return f"{value:.0f}" if value >= _MANY else four_digits(value)


_MANY = 10_000


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _totals(mix: InstructionMix) -> Blocks:
    moved = f"{_number(mix.bytes)} B of load and store instructions (core side, the stack included)"
    return fields(
        f"Totals{_per(mix)}",
        ("loads, stores", f"{_number(mix.loads)}, {_number(mix.stores)}"),
        ("load/store ratio", _ratio(mix)),
        ("bytes", None if mix.shares_only else moved),
        ("FLOP", None if mix.shares_only else f"{_number(mix.flops)} (an FMA counts 2)"),
        ("other instructions", _number(mix.other) if mix.other else None),
        ("intensity (CARM)", _intensity(mix)),
    )


def _ratio(mix: InstructionMix) -> str:
    ratio, share = mix.load_store_ratio, mix.load_share
    if ratio is None or share is None:
        return "none: no memory instructions"
    return "loads only" if math.isinf(ratio) else f"{_number(ratio)} (loads are {_percent(share)})"


def _intensity(mix: InstructionMix) -> str:
    if mix.shares_only:
        return "not known: the file gives shares of each kind on their own"
    if mix.intensity is None:
        return "none: no bytes are moved"
    return f"{_number(mix.intensity)} FLOP/B of load and store instructions"


def _source(part: MixPart, *, alone: bool) -> Blocks:
    """What the source says beside the code, and why they differ."""
    columns = (
        left("per source iteration", "what"),
        right("source", "source", _number),
        right("code", "code", _number),
        left("why", "reason", fold=True),
    )
    of = "" if alone or part.nest is None else f" of {part.nest.name}"
    return table(f"The source{of} beside the code", columns, part.comparisons)
