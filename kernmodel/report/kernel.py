"""Kernels as text: the list of carried ones, and what was derived from the source of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, sizes
from kernmodel.report.sections import notes_section

if TYPE_CHECKING:
    from kernmodel.source.model import Access, FlopCount, Loop, LoopNest

_COMMENT = re.compile(r"\s*(?:/\*(.*?)\*/|((?://[^\n]*\n?)+))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """One line of `kernmodel kernel list`: `about` is the first sentence of the comment that opens the file."""

    name: str
    about: str
    file: str


def first_sentence(source: str) -> str:
    """The first sentence of the comment that opens a C file; empty if there is none."""
    match = _COMMENT.match(source)
    if match is None:
        return ""
    text = " ".join(line.strip().lstrip("*/").strip() for line in (match[1] or match[2]).splitlines())
    return re.split(r"(?<=[.!?])\s", text.strip(), maxsplit=1)[0]


def about(name: str, source: str) -> str:
    """What a kernel says of itself: the first sentence of its comment, without its name in front."""
    return first_sentence(source).removeprefix(f"{name}:").strip()


def kernel_list(kernels: Iterable[KernelSummary]) -> tuple[Block, ...]:
    """One line a kernel."""
    columns = (Column("name", "left"), Column("what it computes", "left", fold=True))
    return (Table(columns, tuple((kernel.name, kernel.about) for kernel in kernels)),)


def kernel_report(nest: LoopNest, values: Mapping[str, int]) -> tuple[Block, ...]:
    """The source with the loops, arrays, references and operations derived from it; `values` of its sizes, if known."""
    return (
        *_overview(nest, values),
        *_loops(nest.loops),
        *_arrays(nest),
        *_accesses(nest.accesses),
        *_indirect(nest.accesses),
        *_operations(nest.flops),
        Heading("Source"),
        Line(nest.text.rstrip("\n")),
        *notes_section(nest.notes),
    )


def _overview(nest: LoopNest, values: Mapping[str, int]) -> tuple[Block, ...]:
    without = [name for name in nest.symbols if name not in values and name not in nest.defaults]
    pairs = [
        ("file", nest.file),
        ("function", nest.function or "none: a bare loop nest"),
        ("size symbols", ", ".join(nest.symbols) or "none"),
        ("sizes", sizes(dict(values))),
        ("FLOP/It", str(nest.flops_per_iteration)),
        ("scalars", ", ".join(f"{element.name} {name}" for name, element in nest.scalars.items()) or "none"),
        ("reductions", ", ".join(nest.reductions) or "none"),
    ]
    if without:
        pairs.insert(4, ("give with -D", ", ".join(without)))
    return (Heading(f"Kernel {nest.name}"), Fields(tuple(pairs)))


def _loops(loops: Iterable[Loop]) -> tuple[Block, ...]:
    columns = tuple(Column(name, "left") for name in ("loop", "from", "before", "step", "line"))
    rows = tuple(
        (loop.variable, str(loop.start), str(loop.stop), f"{loop.step:+d}", str(loop.location.line or "-"))
        for loop in loops
    )
    return (Heading("Loops, outermost first"), Table(columns, rows))


def _arrays(nest: LoopNest) -> tuple[Block, ...]:
    columns = tuple(Column(name, "left") for name in ("array", "element", "shape"))
    rows = tuple(
        (
            name,
            f"{array.element.name}, {array.element.size_bytes} B",
            " × ".join(map(str, array.shape)) or "not declared",
        )
        for name, array in nest.arrays.items()
    )
    return (Heading("Arrays"), Table(columns, rows))


def _accesses(accesses: Iterable[Access]) -> tuple[Block, ...]:
    columns = (
        *(Column(name, "left") for name in ("reference", "kind", "offset in elements", "stride per loop")),
        Column("times"),
        Column("in loop"),
        Column("line"),
    )
    rows = tuple(
        (
            access.text,
            access.kind,
            str(access.offset),
            ", ".join(map(str, access.coefficients)),
            str(access.count),
            _loop_number(access),
            str(access.location.line or "-"),
        )
        for access in accesses
    )
    return (Heading("Array references"), Table(columns, rows))


def _loop_number(access: Access) -> str:
    """The loop in whose body a reference stands, counted from 1 outside, and whether that is after the inner loop."""
    return f"{access.depth}, after the inner loop" if access.after_inner else str(access.depth)


def _indirect(accesses: Iterable[Access]) -> tuple[Block, ...]:
    """The values that indices read from arrays, each once."""
    columns = tuple(Column(name, "left") for name in ("value", "read from", "element"))
    values = dict.fromkeys(value for access in accesses for value in access.indirect)
    rows = tuple((value.name, value.array, str(value.position)) for value in values)
    return (Heading("Indices read from arrays"), Table(columns, rows)) if rows else ()


def _operations(flops: Iterable[FlopCount]) -> tuple[Block, ...]:
    pairs = tuple(
        (f"{flop.operation} {flop.name}".strip(), f"{count(flop.count, 'time')} in {flop.element.name}")
        for flop in flops
    )
    return (Heading("Floating-point operations per iteration"), Fields(pairs)) if pairs else ()
