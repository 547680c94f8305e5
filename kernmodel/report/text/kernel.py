"""Kernels as text: the list of carried ones, and what was derived from the source of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from kernmodel.errors import SourceError
from kernmodel.report.layout import Blocks, Heading, Line, Table, cells, fields, left, right, table
from kernmodel.report.number_text import MISSING, sizes
from kernmodel.report.text.sections import notes_section
from kernmodel.value_types import dataclass
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.source.load import FoundNest
    from kernmodel.source.model import Access, FlopCount, Loop, LoopNest

_COMMENT = re.compile(r"\s*(?:/\*(.*?)\*/|((?://[^\n]*\n?)+))", re.DOTALL)


def _number(value: float) -> str:
    """A number of operations; shares of branches make some that are whole but for the last digits."""
    return f"{value:.10g}"


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


def kernel_list(kernels: Iterable[KernelSummary]) -> Blocks:
    """One line a kernel."""
    columns = (left("name", "name"), left("what it computes", "about", fold=True))
    return (Table(columns, tuple(cells(columns, kernel) for kernel in kernels)),)


def kernel_report(nest: LoopNest, values: Mapping[str, int]) -> Blocks:
    """The source with the loops, arrays, references and operations derived from it; `values` of its sizes, if known."""
    operations = ((f"{flop.operation} {flop.name}".strip(), _times(flop)) for flop in nest.operations.flops)
    return (
        *_overview(nest, values),
        *_loops(nest.loops),
        *_arrays(nest),
        *_accesses(nest.accesses),
        *_indirect(nest.accesses),
        *fields("Floating-point operations per iteration", *operations),
        Heading("Source"),
        Line(nest.text.rstrip("\n")),
        *notes_section(nest.notes),
    )


def _times(flop: FlopCount) -> str:
    share = "" if flop.share == 1 else f", in {flop.share:.0%} of the iterations"
    return f"{count(flop.count, 'time')} in {flop.element.name}{share}"


def nests_report(nests: Iterable[FoundNest], left_out: Sequence[tuple[str, str]]) -> Blocks:
    """One line for each loop nest of a file, below why some are not modelled, and what of its headers is left out."""
    found = tuple(nests)
    columns = (
        left("function", lambda one: one.function or "(bare)"),
        right("nest", "number"),
        right("line", lambda one: one.location.line or MISSING),
        left("loops", lambda one: ", ".join(one.variables)),
        left("arrays", lambda one: MISSING if isinstance(one.nest, SourceError) else ", ".join(one.nest.arrays)),
        left("FLOP/It", _flops),
        left("modelled", lambda one: "no" if isinstance(one.nest, SourceError) else "yes"),
    )
    reasons = tuple(Line(f"{one.nest}") for one in found if isinstance(one.nest, SourceError))
    head = (Heading("Not modelled"),) if reasons else ()
    return (*table("Loop nests", columns, found, always=True), *head, *reasons, *_left_out(left_out))


def _left_out(functions: Sequence[tuple[str, str]]) -> Blocks:
    """How many functions of which headers are left out."""
    if not functions:
        return ()
    files = ", ".join(dict.fromkeys(PurePath(header).name for _, header in functions))
    text = f"{count(len(functions), 'function')} with loops in headers left out ({files}): list them with --headers"
    return (Line(""), Line(text))


def _flops(one: FoundNest) -> str:
    return MISSING if isinstance(one.nest, SourceError) else _number(one.nest.operations.flops_per_iteration)


def _overview(nest: LoopNest, values: Mapping[str, int]) -> Blocks:
    without = [name for name in nest.symbols if name not in values and name not in nest.defaults]
    return fields(
        f"Kernel {nest.name}",
        ("file", nest.file),
        ("function", nest.function or "none: a bare loop nest"),
        ("size symbols", ", ".join(nest.symbols) or "none"),
        ("sizes", sizes(values)),
        ("give with -D", ", ".join(without) or None),
        ("FLOP/It", _number(nest.operations.flops_per_iteration)),
        ("scalars", ", ".join(f"{element.name} {name}" for name, element in nest.operations.scalars.items()) or "none"),
        ("reductions", ", ".join(nest.operations.reductions) or "none"),
    )


def _loops(loops: Iterable[Loop]) -> Blocks:
    columns = (
        left("loop", "variable"),
        left("from", "start"),
        left("before", "stop"),
        left("step", "step", "{:+d}".format),
        left("line", _line),
    )
    return table("Loops, outermost first", columns, loops, always=True)


def _line(found: Loop | Access) -> object:
    return found.location.line or MISSING


def _arrays(nest: LoopNest) -> Blocks:
    columns = (
        left("array", lambda array: array[0]),
        left("element", lambda array: f"{array[1].element.name}, {array[1].element.size_bytes} B"),
        left("shape", lambda array: " × ".join(map(str, array[1].shape)) or "not declared"),
    )
    return table("Arrays", columns, nest.arrays.items(), always=True)


def _accesses(accesses: Iterable[Access]) -> Blocks:
    columns = (
        left("reference", "text"),
        left("kind", "kind"),
        left("offset in elements", "offset", str),
        left("stride per loop", lambda access: ", ".join(map(str, access.coefficients))),
        right("times", "count"),
        right("in loop", _loop_number),
        right("line", _line),
    )
    return table("Array references", columns, accesses, always=True)


def _loop_number(access: Access) -> str:
    """The loop in whose body a reference stands, counted from 1 outside, and whether that is after the inner loop."""
    return f"{access.depth}, after the inner loop" if access.after_inner else str(access.depth)


def _indirect(accesses: Iterable[Access]) -> Blocks:
    """The values that indices read from arrays, each once."""
    columns = (left("value", "name"), left("read from", "array"), left("element", "position", str))
    values = dict.fromkeys(value for access in accesses for value in access.indirect)
    computed = (
        left("value", "text"),
        left("of", "position", str),
        left("divided by", "divisor", str),
        left("remainder by", "modulus", lambda modulus: "" if modulus is None else str(modulus)),
    )
    return (
        *table("Indices read from arrays", columns, [value for value in values if value.array]),
        *table("Quotients and remainders in indices", computed, [value for value in values if not value.array]),
    )
