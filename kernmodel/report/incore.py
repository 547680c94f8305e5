"""The answer of `kernmodel incore` as text: a row per instruction with its ports, as the OSACA papers show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.incore.answer.explain import FRONT_TO_BACK, binding_components
from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, decimal, quantity
from kernmodel.report.sections import code_fields, loop_section, machine_fields, notes_section, parameters_section

if TYPE_CHECKING:
    from kernmodel.incore.model import Chain, Component, InCore, InstructionReport
    from kernmodel.studies.predict.request import InCoreAnswer

_NO_PORT, _UNKNOWN, _GUESSED = "*", "?", "~"


def incore_report(
    answer: InCoreAnswer,
    *,
    verbose: bool = False,
    extra: Sequence[Block] = (),
) -> tuple[Block, ...]:
    """The whole answer; `extra` are sections that were asked for besides (`report.explanation`)."""
    return (
        *_inputs(answer),
        *headline(answer.incore),
        *components_section(answer.incore),
        *pressure_section(answer.incore),
        *extra,
        *(_details(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


_LOOPS = ("main", "peeled", "remainder", "outer")
"""Roles of what is a loop; what is marked or chosen may be any code."""


def _inputs(answer: InCoreAnswer) -> tuple[Block, ...]:
    parameters, loop, incore = answer.parameters, answer.loop, answer.incore
    region = f"{loop.role} {'loop' if loop.role in _LOOPS else 'code'}"
    region += f" at {loop.label}" if loop.label and loop.label != loop.function else ""
    region += f" of function {loop.function}" if loop.function else ""
    repeated = "repeated as a loop" if incore.notion == "loop" else "copied one behind the other (unrolled)"
    place = f", first byte at {incore.offset} modulo {CODE_ALIGNMENT}" if incore.components else ""
    pairs = (
        *code_fields(answer.origin),
        *(machine_fields(answer.machine) if answer.machine else ()),
        ("microarchitecture", f"{parameters.name}: {parameters.title}"),
        ("analysed", f"{region}, {count(len(loop.instructions), 'instruction')}, {repeated}{place}"),
    )
    name = answer.origin.file or loop.file
    return (Heading(f"In-core analysis of {name} on {parameters.name}"), Fields(pairs))


def components_section(incore: InCore) -> tuple[Block, ...]:
    """What each part of the core would take alone, front to back; nothing where only ports and dependencies are
    known."""
    if not incore.components:
        return ()
    by_name = {part.name: part for part in incore.components}
    binding = binding_components(incore)
    names = [*FRONT_TO_BACK, *(name for name in by_name if name not in FRONT_TO_BACK)]
    columns = (
        Column("component", "left"),
        Column("cy per pass"),
        Column("share"),
        Column("", "left"),
        Column("what fills it", "left", fold=True),
    )
    rows = tuple(_component_row(name, by_name.get(name), incore.prediction, name in binding) for name in names)
    idle = any(not part.applies for part in incore.components)
    legend = (Line("  in brackets: not used by this block, so it does not count"),) if idle else ()
    return (Heading("Components, front to back"), Table(columns, rows), *legend)


def _component_row(name: str, part: Component | None, prediction: float, binds: bool) -> tuple[str, ...]:
    if part is None:
        return (name, "n/a", "", "", "")
    if not part.applies:
        return (name, f"({decimal(part.cycles)})", "", "", part.reason)
    share = f"{100 * part.cycles / prediction:.0f} %" if prediction else ""
    return (name, decimal(part.cycles), share, "binds" if binds else "", part.reason)


def pressure_section(incore: InCore) -> tuple[Block, ...]:
    """Port pressure in cycles per pass, with sums, per pass and (where known) per source iteration."""
    columns = (
        Column(""),
        *(Column(port) for port in incore.ports),
        Column("LCD"),
        Column("CP"),
        Column("line"),
        Column("instruction", "left"),
    )
    legend = [text for sign, text in _legend(incore) if any(_sign(row) == sign for row in incore.rows)]
    title = f"Port pressure in cycles per pass (ports: {incore.port_model})"
    table = Table(columns, tuple(_row(row) for row in incore.rows), _sums(incore))
    return (Heading(title), table, *(Line(f"  {text}") for text in legend))


def _legend(incore: InCore) -> tuple[tuple[str, str], ...]:
    unknown = f"{_UNKNOWN} no row in the instruction table of {incore.microarchitecture}: it counts nothing here"
    return (
        (_NO_PORT, f"{_NO_PORT} done at rename or fused with its neighbour: no port"),
        (_UNKNOWN, unknown),
        (_GUESSED, f"{_GUESSED} no row either, but estimated (--estimate): the row of the instruction most like it"),
    )


def _sign(row: InstructionReport) -> str:
    if not row.known:
        return _UNKNOWN
    if row.source.startswith(ESTIMATED):
        return _GUESSED
    return _NO_PORT if row.eliminated else ""


def _row(row: InstructionReport) -> tuple[str, ...]:
    pressure = (decimal(cycles) if cycles else "" for cycles in row.pressure)
    chains = ("" if value is None else decimal(value, 1) for value in (row.on_lcd, row.on_critical_path))
    return (_sign(row), *pressure, *chains, str(row.instruction.line or "-"), row.instruction.text.strip())


def _sums(incore: InCore) -> tuple[tuple[str, ...], ...]:
    lcd = incore.lcd.cycles if incore.lcd else 0.0
    values = (*incore.port_sums, lcd, incore.critical_path.cycles)
    per_pass = ("", *(decimal(value) for value in values), "", "per pass")
    if not incore.iterations_per_pass:
        return (per_pass,)
    # the critical path is a latency of one pass: passes overlap, so it has no share per iteration
    shares = (decimal(value / incore.iterations_per_pass) for value in values[:-1])
    return (per_pass, ("", *shares, "", "", f"per source iteration ({incore.iterations_per_pass:g} in a pass)"))


def headline(incore: InCore) -> tuple[Block, ...]:
    """One number with its reason, and the bounds it is the maximum of."""
    text = f"  {_per_pass(incore.prediction, incore)}, bound by {bound_text(incore)}"
    if incore.uncertain:
        text += f"; uncertain: {count(len(incore.uncertain), 'unknown instruction')}"
    lcd = _per_pass(incore.lcd.cycles, incore) if incore.lcd else "none"
    ports = f" (ports {', '.join(incore.binding_ports)})" if incore.binding_ports else ""
    pairs = (
        ("reason", incore.reason),
        ("TP, throughput bound", f"{_per_pass(incore.throughput, incore)}{ports}"),
        ("LCD, loop-carried dependency", lcd),
        (
            "CP, critical path",
            f"{incore.critical_path.cycles:.1f} cy for one pass: upper bound, if passes did not overlap",
        ),
    )
    unknown = tuple(("unknown", form) for form in incore.uncertain)
    maximum = "the largest of its components" if incore.components else "maximum of TP and LCD"
    return (
        Heading(f"Prediction with data in L1 ({maximum})"),
        Line(text, "warning" if incore.uncertain else "strong"),
        Fields((*pairs, *unknown)),
    )


def bound_text(incore: InCore) -> str:
    """What binds, as a noun: the components where they are known."""
    names = binding_components(incore)
    return " and ".join(names) if names else "nothing"


def _per_pass(cycles: float, incore: InCore) -> str:
    text = f"{cycles:.2f} cy per pass"
    passes = incore.iterations_per_pass
    return f"{text} = {quantity(cycles / passes, 'cy/It')}" if passes else text


def _details(answer: InCoreAnswer) -> tuple[Block, ...]:
    return (
        *chain_section(answer.incore),
        *loop_section(answer.loop, answer.origin),
        *_row_sources(answer.incore),
        *parameters_section(answer.parameters),
    )


def chain_section(incore: InCore) -> tuple[Block, ...]:
    """The instructions of the critical path and of the longest loop-carried dependency, and what carries them on."""
    chains: list[tuple[str, Chain]] = [("Critical path", incore.critical_path)]
    if incore.lcd:
        passes = f" over {incore.lcd.passes} passes" if incore.lcd.passes > 1 else ""
        chains.insert(0, (f"Longest loop-carried dependency{passes}", incore.lcd))
    columns = (Column("line"), Column("instruction", "left"), Column("carried on by", "left"))
    blocks: list[Block] = []
    for title, chain in chains:
        carriers = (*chain.carriers, *("",) * (len(chain.members) - len(chain.carriers)))
        rows = tuple(
            (str(incore.rows[member].instruction.line or "-"), incore.rows[member].instruction.text.strip(), carrier)
            for member, carrier in zip(chain.members, carriers, strict=False)
        )
        blocks += [Heading(f"{title}: {chain.cycles:.1f} cy"), Table(columns, rows)]
    return tuple(blocks)


def _row_sources(incore: InCore) -> tuple[Block, ...]:
    pairs = dict.fromkeys((row.instruction.form, row.source) for row in incore.rows if row.known)
    columns = (Column("instruction form", "left"), Column("source of its row", "left", fold=True))
    return (Heading("Sources of the instruction data"), Table(columns, tuple(pairs))) if pairs else ()
