"""Sections that several reports have: notes, kernel and machine, where the code comes from, its loop, the sources."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.patterns import pattern
from kernmodel.report.layout import Blocks, Column, Fields, Heading, Line, Pair, Value, left, right, table
from kernmodel.report.number_text import MISSING, sizes
from kernmodel.words import plural

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.incore.model import Parameters
    from kernmodel.isa.model import Instruction
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import CodeOrigin
    from kernmodel.traffic.model import Traffic

NUMBERS = pattern(r"((?<![\w.])\d+(?:[.,]\d+)*)")
"""Splits a text into what is around its numbers, and the numbers."""
_SHOWN_FAILURES = 5
_USED_PARAMETERS = ("load latency", "store forward latency")


def notes_section(notes: Iterable[Note]) -> Blocks:
    """What the result does not know (warnings) and then what it assumes; nothing if there are no notes."""
    ordered = sorted(notes, key=lambda note: note.kind != "warning")
    lines = (
        Line(f"  {note.kind}: {note}", "warning" if note.kind == "warning" else "plain", fold=True) for note in ordered
    )
    return (Heading("Notes"), *lines) if ordered else ()


def merged_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes of many points as one each where they differ in numbers only; a number that varies becomes "…"."""
    groups: dict[object, list[Note]] = {}
    for note in notes:
        groups.setdefault((note.code, note.kind, note.where, NUMBERS.sub("", note.text)), []).append(note)
    return tuple(replace(group[0], text=_text_of_all([note.text for note in group])) for group in groups.values())


def _text_of_all(texts: list[str]) -> str:
    """Texts that differ in numbers only, as one."""
    split = zip(*(NUMBERS.split(text) for text in texts), strict=True)
    return "".join(found[0] if len(set(found)) == 1 else "…" for found in split)


def unit_of_work(traffic: Traffic) -> str:
    """What one unit of work is, in words."""
    if not traffic.unit_stream:
        return "1 iteration (no array moves with the inner loop); cy/CL below means cycles per iteration"
    iterations = traffic.iterations_per_unit
    return f"{iterations:g} {plural(iterations, 'iteration')} (one cache line of {traffic.unit_stream})"


def kernel_fields(nest: LoopNest, values: Mapping[str, int]) -> tuple[Pair, ...]:
    """Name and file of the kernel, and its sizes, as label and value."""
    return (("kernel", f"{nest.name}, {nest.file}"), ("sizes", sizes(values)))


def machine_fields(machine: Machine | None) -> tuple[Pair, ...]:
    """Name, title and file of the machine as label and value; nothing without one."""
    if machine is None:
        return ()
    return (("machine", f"{machine.name}: {machine.title}"), ("machine file", machine.file))


def code_fields(origin: CodeOrigin | None) -> tuple[Pair, ...]:
    """The compiler with version and flags, or the file that holds the assembly; nothing without code."""
    if origin is None:
        return ()
    if origin.compiler is None:
        return (("assembly", origin.file or "standard input"),)
    return compiler_fields(origin.compiler, origin.version, origin.flags)


def compiler_fields(compiler: str, version: str | None, flags: Sequence[str]) -> tuple[Pair, ...]:
    """The compiler with its version, and its flags, as label and value."""
    return (("compiler", f"{compiler} {version}" if version else compiler), ("flags", shlex.join(flags)))


def instruction_line(instruction: Instruction) -> str:
    """Where an instruction stands in its listing."""
    return str(instruction.line or MISSING)


def instruction_text(instruction: Instruction) -> str:
    """An instruction as it is written."""
    return instruction.text.strip()


def instruction_columns(instruction: Value) -> tuple[Column, Column]:
    """Line and text of an instruction of an item."""
    return (right("line", instruction, instruction_line), left("instruction", instruction, instruction_text))


def loop_section(loop: AssemblyLoop | None, origin: CodeOrigin | None) -> Blocks:
    """The assembly loop that was analysed, and why this one; nothing without one."""
    if loop is None or origin is None:
        return ()
    passes = loop.iterations_per_pass
    pairs = [("role", loop.role), ("label", loop.label or "none"), ("evidence", loop.evidence)]
    if passes is not None:
        pairs.append(("iterations per pass", f"{passes:g}"))
    if origin.command:
        pairs.append(("command", shlex.join(origin.command)))
    columns = (
        right("line", lambda at: instruction_line(loop.instructions[at])),
        left("instruction", lambda at: instruction_text(loop.instructions[at])),
        left("stride per pass", lambda at: _strides(loop, at)),
    )
    heading, instructions = table(
        f"Assembly loop ({loop.syntax} syntax)", columns, range(len(loop.instructions)), always=True
    )
    return (heading, Fields(tuple(pairs)), instructions)


def _strides(loop: AssemblyLoop, index: int) -> str:
    strides = [stream.stride_bytes for stream in loop.streams if stream.instruction == index]
    return ", ".join("not constant" if stride is None else f"{stride} B" for stride in strides)


def parameters_section(parameters: Parameters) -> Blocks:
    """Where the parameters come from that the in-core analysis uses; the front end's are not among them."""
    used = {key: parameters.sources[key] for key in _USED_PARAMETERS if key in parameters.sources}
    return sources_section(used, f"Sources of the parameters of {parameters.name}")


def failures_section(title: str, failed: Sequence[tuple[int, str]]) -> Blocks:
    """The first lines of a file that failed, by number, and why; nothing where none did."""
    shown = [Line(f"  line {line}: {error}", "warning") for line, error in failed[:_SHOWN_FAILURES]]
    more = len(failed) - _SHOWN_FAILURES
    return (Heading(title), *shown, *([Line(f"  … and {more} more")] if more > 0 else ())) if failed else ()


def sources_section(sources: Mapping[str, str], title: str) -> Blocks:
    """Where figures come from: sections of the file (or names of figures) that share a source, and the source."""
    if not sources:
        return ()
    sections: dict[str, list[str]] = {}
    for section, source in sources.items():
        sections.setdefault(source, []).append(section)
    lines = (line for source, names in sections.items() for line in (f"  {', '.join(names)}:", f"    {source}"))
    return (Heading(title), *map(Line, lines))
