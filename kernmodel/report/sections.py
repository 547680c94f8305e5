"""Parts that several reports share: notes, where the code comes from, which machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import sizes

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.incore.model import Parameters
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import CodeOrigin
    from kernmodel.traffic.model import Traffic

_NUMBER = re.compile(r"((?<![\w.])\d+(?:[.,]\d+)*)")
_USED_PARAMETERS = ("load latency", "store forward latency")


def notes_section(notes: Iterable[Note]) -> tuple[Block, ...]:
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
        groups.setdefault((note.code, note.kind, note.where, _NUMBER.sub("", note.text)), []).append(note)
    return tuple(replace(group[0], text=_common_text([note.text for note in group])) for group in groups.values())


def _common_text(texts: list[str]) -> str:
    """Texts that differ in numbers only, as one."""
    parts = zip(*(_NUMBER.split(text) for text in texts), strict=True)
    return "".join(part[0] if len(set(part)) == 1 else "…" for part in parts)


def unit_of_work(traffic: Traffic) -> str:
    """What one unit of work is, in words."""
    if not traffic.unit_stream:
        return "1 iteration (no array moves with the inner loop); cy/CL below means cycles per iteration"
    iterations = traffic.iterations_per_unit
    noun = "iteration" if iterations == 1 else "iterations"
    return f"{iterations:g} {noun} (one cache line of {traffic.unit_stream})"


def kernel_fields(nest: LoopNest, values: Mapping[str, int]) -> tuple[tuple[str, str], ...]:
    """Name and file of the kernel, and its sizes, as label and value."""
    return (("kernel", f"{nest.name}, {nest.file}"), ("sizes", sizes(dict(values))))


def machine_fields(machine: Machine) -> tuple[tuple[str, str], ...]:
    """Name, title and file of the machine as label and value."""
    return (("machine", f"{machine.name}: {machine.title}"), ("machine file", machine.file))


def code_fields(origin: CodeOrigin) -> tuple[tuple[str, str], ...]:
    """The compiler with version and flags, or the file that holds the assembly."""
    if origin.compiler is None:
        return (("assembly", origin.file or "standard input"),)
    version = f" {origin.version}" if origin.version else ""
    return (("compiler", f"{origin.compiler}{version}"), ("flags", shlex.join(origin.flags)))


def loop_section(loop: AssemblyLoop, origin: CodeOrigin) -> tuple[Block, ...]:
    """The assembly loop that was analysed, and why this one."""
    passes = loop.iterations_per_pass
    pairs = [("role", loop.role), ("label", loop.label or "none"), ("evidence", loop.evidence)]
    if passes is not None:
        pairs.append(("iterations per pass", f"{passes:g}"))
    if origin.command:
        pairs.append(("command", shlex.join(origin.command)))
    columns = (Column("line"), Column("instruction", "left"), Column("stride per pass", "left"))
    rows = tuple(
        (str(instruction.line or "-"), instruction.text.strip(), _strides(loop, index))
        for index, instruction in enumerate(loop.instructions)
    )
    return (Heading(f"Assembly loop ({loop.syntax} syntax)"), Fields(tuple(pairs)), Table(columns, rows))


def _strides(loop: AssemblyLoop, index: int) -> str:
    strides = [stream.stride_bytes for stream in loop.streams if stream.instruction == index]
    return ", ".join("not constant" if stride is None else f"{stride} B" for stride in strides)


def parameters_section(parameters: Parameters) -> tuple[Block, ...]:
    """Where the parameters come from that the in-core analysis uses; the front end's are not among them."""
    used = {key: parameters.sources[key] for key in _USED_PARAMETERS if key in parameters.sources}
    return sources_section(used, f"Sources of the parameters of {parameters.name}")


def sources_section(sources: Mapping[str, str], title: str) -> tuple[Block, ...]:
    """Where figures come from: sections of the file (or names of figures) that share a source, and the source."""
    if not sources:
        return ()
    sections: dict[str, list[str]] = {}
    for section, source in sources.items():
        sections.setdefault(source, []).append(section)
    lines = (line for source, names in sections.items() for line in (f"  {', '.join(names)}:", f"    {source}"))
    return (Heading(title), *(Line(line) for line in lines))
