"""The answer of `kernmodel mix` as text: memory and floating-point instructions by class, the source beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, sizes
from kernmodel.report.numbers import short as four_digits
from kernmodel.report.sections import code_fields, loop_section, machine_fields, notes_section

if TYPE_CHECKING:
    from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
    from kernmodel.studies.predict.mix import MixAnswer, MixPart

_OPERATIONS = {"fma": "FMA", "sqrt": "square root", "div": "divide", "mul": "multiply"}


def mix_report(answer: MixAnswer, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer."""
    mix = answer.mix
    return (
        Heading(f"Instruction mix of {answer.name}"),
        Fields(_inputs(answer)),
        *_parts(answer),
        *_memory(mix),
        *_fp(mix),
        *_totals(mix),
        *(block for part in answer.parts for block in _source(part, alone=len(answer.parts) == 1)),
        *(block for part in answer.parts if verbose for block in loop_section(part.loop, part.origin)),
        *notes_section(answer.notes),
    )


def _inputs(answer: MixAnswer) -> tuple[tuple[str, str], ...]:
    machine = machine_fields(answer.machine) if answer.machine else ()
    if not answer.parts:
        return (*machine, ("given as", answer.mix.source), _counts(answer))
    part = answer.parts[0]
    kernel = (("sizes", sizes(dict(part.sizes))),) if part.sizes is not None else ()
    analysed = (("analysed", _loop_name(part)),) if len(answer.parts) == 1 else ()
    return (*kernel, *machine, *code_fields(part.origin), *analysed, _counts(answer))


def _counts(answer: MixAnswer) -> tuple[str, str]:
    return ("counts", f"per {answer.mix.per}" if _per(answer.mix) else "shares of all instructions of a kind")


def _loop_name(part: MixPart) -> str:
    loop = part.loop
    region = f"{loop.role} loop at {loop.label}" if loop.label else loop.role
    passes = loop.iterations_per_pass
    noun = "iteration" if passes == 1 else "iterations"
    per = f", {_number(passes)} source {noun} in a pass" if passes else ""
    return f"{region}, {count(len(loop.instructions), 'instruction')}{per}"


def _parts(answer: MixAnswer) -> tuple[Block, ...]:
    """The loops that weigh in; nothing where there is only one."""
    if len(answer.parts) < 2:
        return ()
    columns = (
        *(Column("kernel", "left"), Column("loop", "left"), Column("weight")),
        *(Column(name) for name in ("loads", "stores", "B", "FLOP")),
    )
    rows = tuple(
        (
            part.nest.name if part.nest else "-",
            _loop_name(part),
            _number(part.weight),
            *(_number(value) for value in (part.mix.loads, part.mix.stores, part.mix.bytes, part.mix.flops)),
        )
        for part in answer.parts
    )
    return (Heading(f"Loops that weigh in, each per {answer.mix.per}"), Table(columns, rows))


def _memory(mix: InstructionMix) -> tuple[Block, ...]:
    total, moved = mix.loads + mix.stores, mix.bytes
    if not total:
        return (Heading("Memory instructions"), Line("  none"))
    columns = (
        *(Column("access", "left"), Column("instructions"), Column("share")),
        *(() if mix.shares_only else (Column("B"),)),
        Column("share of bytes"),
    )
    rows = tuple(
        (
            memory_name(kind),
            *(_number(number), _percent(number / total)),
            *(() if mix.shares_only else (_number(kind.size_bytes * number),)),
            _percent(kind.size_bytes * number / moved),
        )
        for kind, number in mix.memory
    )
    sums = ("all", _number(total), "100 %", *(() if mix.shares_only else (_number(moved),)), "100 %")
    return (Heading(f"Memory instructions{_per(mix)}"), Table(columns, rows, (sums,)))


def _fp(mix: InstructionMix) -> tuple[Block, ...]:
    total, flops = math.fsum(number for _, number in mix.fp), mix.flops
    if not total:
        return (Heading("Floating-point instructions"), Line("  none"))
    columns = (
        *(Column("operation", "left"), Column("instructions"), Column("share"), Column("FLOP each")),
        *(() if mix.shares_only else (Column("FLOP"),)),
    )
    rows = tuple(
        (
            fp_name(kind),
            *(_number(number), _percent(number / total), str(kind.flops)),
            *(() if mix.shares_only else (_number(kind.flops * number),)),
        )
        for kind, number in mix.fp
    )
    sums = ("all", _number(total), "100 %", "", *(() if mix.shares_only else (_number(flops),)))
    return (Heading(f"Floating-point instructions{_per(mix)}"), Table(columns, rows, (sums,)))


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


def _per(mix: InstructionMix) -> str:
    return "" if mix.per == "instruction" else f" per {mix.per}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _totals(mix: InstructionMix) -> tuple[Block, ...]:
    pairs = [("loads, stores", f"{_number(mix.loads)}, {_number(mix.stores)}"), ("load/store ratio", _ratio(mix))]
    if not mix.shares_only:
        pairs += [
            ("bytes", f"{_number(mix.bytes)} B of load and store instructions (core side, the stack included)"),
            ("FLOP", f"{_number(mix.flops)} (an FMA counts 2)"),
        ]
    if mix.other:
        pairs.append(("other instructions", _number(mix.other)))
    pairs.append(("intensity (CARM)", _intensity(mix)))
    return (Heading(f"Totals{_per(mix)}"), Fields(tuple(pairs)))


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


def _source(part: MixPart, *, alone: bool) -> tuple[Block, ...]:
    """What the source says beside the code, and why they differ."""
    if not part.comparisons:
        return ()
    columns = (
        Column("per source iteration", "left"),
        Column("source"),
        Column("code"),
        Column("why", "left", fold=True),
    )
    rows = tuple((row.what, _number(row.source), _number(row.code), row.reason) for row in part.comparisons)
    of = "" if alone or part.nest is None else f" of {part.nest.name}"
    return (Heading(f"The source{of} beside the code"), Table(columns, rows))
