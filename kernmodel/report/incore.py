"""The answer of `kernmodel incore` as text: a row per instruction with its ports, as the OSACA papers show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, decimal, quantity
from kernmodel.report.sections import code_fields, loop_section, machine_fields, notes_section, parameters_section

if TYPE_CHECKING:
    from kernmodel.incore.model import Chain, InCore, InstructionReport
    from kernmodel.studies.request import InCoreAnswer

_NO_PORT, _UNKNOWN = "*", "?"


def incore_report(answer: InCoreAnswer, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer."""
    return (
        *_inputs(answer),
        *pressure_section(answer.incore),
        *headline(answer.incore),
        *(_details(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


def _inputs(answer: InCoreAnswer) -> tuple[Block, ...]:
    parameters, loop = answer.parameters, answer.loop
    region = f"{loop.role} loop at {loop.label}" if loop.label else loop.role
    pairs = (
        *code_fields(answer.origin),
        *(machine_fields(answer.machine) if answer.machine else ()),
        ("microarchitecture", f"{parameters.name}: {parameters.title}"),
        ("analysed", f"{region}, {count(len(loop.instructions), 'instruction')}"),
    )
    name = answer.origin.file or loop.file
    return (Heading(f"In-core analysis of {name} on {parameters.name}"), Fields(pairs))


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
    title = f"Port pressure in cycles per pass of the loop (ports: {incore.port_model})"
    table = Table(columns, tuple(_row(row) for row in incore.rows), _sums(incore))
    return (Heading(title), table, *(Line(f"  {text}") for text in legend))


def _legend(incore: InCore) -> tuple[tuple[str, str], ...]:
    unknown = f"{_UNKNOWN} no row in the instruction table of {incore.microarchitecture}: it counts nothing here"
    return ((_NO_PORT, f"{_NO_PORT} done at rename or fused with its neighbour: no port"), (_UNKNOWN, unknown))


def _sign(row: InstructionReport) -> str:
    if not row.known:
        return _UNKNOWN
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
    text = f"  {_per_pass(incore.prediction, incore)}"
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
    return (
        Heading("Prediction with data in L1 (maximum of TP and LCD)"),
        Line(text, "warning" if incore.uncertain else "strong"),
        Fields((*pairs, *unknown)),
    )


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
