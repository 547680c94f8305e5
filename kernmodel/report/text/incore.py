"""The answer of `kernmodel incore` as text: a row per instruction with its ports, as the OSACA papers show it; and
tables of many cores, loops or blocks, a row as soon as it is there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING

from kernmodel.incore.answer.explain import FRONT_TO_BACK, binding_components
from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.isa import DEFAULT
from kernmodel.report.layout import Block, Blocks, Line, Value, fields, left, right, table
from kernmodel.report.number_text import decimal, quantity
from kernmodel.report.text.binding import bound_text
from kernmodel.report.text.reasons import reason_text
from kernmodel.report.text.sections import (
    code_fields,
    instruction_columns,
    loop_section,
    machine_fields,
    notes_section,
    parameters_section,
)
from kernmodel.uncertainty import union, with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.incore.answer.batch import BlockResult
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.model import Chain, Component, InCore, InstructionReport
    from kernmodel.studies.predict.incore import Alignment, Outcome
    from kernmodel.studies.predict.placement import Placement
    from kernmodel.studies.predict.request import InCoreAnswer

_NO_PORT, _UNKNOWN, _GUESSED = "*", "?", "~"


def incore_report(
    answer: InCoreAnswer,
    explanation: Explanation | None = None,
    alignments: Sequence[Alignment] = (),
    *,
    verbose: bool = False,
) -> Blocks:
    """The whole answer, with what was asked for besides: why, and what alignments do."""
    extra: Blocks = ()
    if explanation or alignments:
        from kernmodel.report.text.explanation import alignment_section, explanation_section

        extra += explanation_section(answer.incore, explanation) if explanation else ()
        extra += alignment_section(alignments) if alignments else ()
    return (
        *_inputs(answer),
        *headline(answer.incore, answer.placement),
        *components_section(answer.incore),
        *pressure_section(answer.incore),
        *extra,
        *(_details(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


_LOOPS = ("main", "peeled", "remainder", "outer")
"""Roles of what is a loop; what is marked or chosen may be any code."""


def _inputs(answer: InCoreAnswer) -> Blocks:
    parameters, loop, incore = answer.parameters, answer.loop, answer.incore
    region = f"{loop.role} {'loop' if loop.role in _LOOPS else 'code'}"
    region += f" at {loop.label}" if loop.label and loop.label != loop.function else ""
    region += f" of function {loop.function}" if loop.function else ""
    repeated = "repeated as a loop" if incore.notion == "loop" else "copied one behind the other (unrolled)"
    place = f", first byte at {incore.offset} modulo {CODE_ALIGNMENT}" if incore.components else ""
    return fields(
        f"In-core analysis of {answer.origin.file or loop.file} on {parameters.name}",
        *code_fields(answer.origin),
        *machine_fields(answer.machine),
        ("microarchitecture", f"{parameters.name}: {parameters.title}"),
        ("analysed", f"{region}, {count(len(loop.instructions), 'instruction')}, {repeated}{place}"),
    )


def components_section(incore: InCore) -> Blocks:
    """What each part of the core would take alone, front to back; nothing where only ports and dependencies are
    known."""
    if not incore.components:
        return ()
    by_name = {part.name: part for part in incore.components}
    binding = binding_components(incore)

    def share(part: Component) -> str:
        return f"{100 * part.cycles / incore.prediction:.0f} %" if incore.prediction and part.applies else ""

    columns = (
        left("component", itemgetter(0)),
        right("cy per pass", lambda row: _component_cycles(row[1])),
        right("share", lambda row: share(row[1]) if row[1] else ""),
        left("", lambda row: "binds" if row[0] in binding and row[1] and row[1].applies else ""),
        left("what fills it", lambda row: reason_text(row[1].reason) if row[1] else "", fold=True),
    )
    names = [*FRONT_TO_BACK, *(name for name in by_name if name not in FRONT_TO_BACK)]
    idle = any(not part.applies for part in incore.components)
    legend = (Line("  in brackets: not used by this block, so it does not count"),) if idle else ()
    rows = ((name, by_name.get(name)) for name in names)
    return (*table("Components, front to back", columns, rows), *legend)


def _component_cycles(part: Component | None) -> str:
    if part is None:
        return "n/a"
    return decimal(part.cycles) if part.applies else f"({decimal(part.cycles)})"


def pressure_section(incore: InCore) -> Blocks:
    """Port pressure in cycles per pass, with sums, per pass and (where known) per source iteration."""

    def on_port(at: int) -> Value:
        return lambda row: row.pressure[at] or ""

    columns = (
        right("", _sign),
        *(right(port, on_port(at)) for at, port in enumerate(incore.ports)),
        right("LCD", "on_lcd", _latency),
        right("CP", "on_critical_path", _latency),
        *instruction_columns("instruction"),
    )
    legend = [text for sign, text in _legend(incore) if any(_sign(row) == sign for row in incore.rows)]
    title = f"Port pressure in cycles per pass (ports: {incore.port_model})"
    pressure = table(title, columns, incore.rows, _sums(incore), always=True)
    return (*pressure, *(Line(f"  {text}") for text in legend))


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


def _latency(cycles: float | None) -> str:
    return "" if cycles is None else decimal(cycles, 1)


def _sums(incore: InCore) -> tuple[tuple[str, ...], ...]:
    lcd = incore.lcd.cycles if incore.lcd else 0.0
    values = (*incore.port_sums, lcd, incore.critical_path.cycles)
    per_pass = ("", *(decimal(value) for value in values), "", "per pass")
    if not incore.iterations_per_pass:
        return (per_pass,)
    # the critical path is a latency of one pass: passes overlap, so it has no share per iteration
    shares = (decimal(value / incore.iterations_per_pass) for value in values[:-1])
    return (per_pass, ("", *shares, "", "", f"per source iteration ({incore.iterations_per_pass:g} in a pass)"))


def headline(incore: InCore, placement: Placement | None = None) -> Blocks:
    """One number with its reason, what the address of the code is worth, and the bounds it is the maximum of."""
    interval = union((placement.interval if placement else None, incore.prediction_interval))
    number = with_interval(incore.prediction, interval, lambda cycles: f"{cycles:.2f} cy per pass")
    text = f"  {number}{_per_iteration(incore.prediction, incore)}, bound by {bound_text(incore)}"
    if incore.uncertain:
        text += f"; uncertain: {count(len(incore.uncertain), 'unknown instruction')}"
    ports = f" (ports {', '.join(incore.binding_ports)})" if incore.binding_ports else ""
    path = f"{incore.critical_path.cycles:.1f} cy for one pass: upper bound, if passes did not overlap"
    maximum = "the largest of its components" if incore.components else "maximum of TP and LCD"
    heading, bounds = fields(
        f"Prediction with data in L1 ({maximum})",
        ("reason", reason_text(incore.reason)),
        *_alignment_field(placement),
        ("TP, throughput bound", f"{_per_pass(incore.throughput, incore)}{ports}"),
        ("LCD, loop-carried dependency", _per_pass(incore.lcd.cycles, incore) if incore.lcd else "none"),
        ("CP, critical path", path),
        *(("unknown", form) for form in incore.uncertain),
        *_how_to_measure(incore),
    )
    return (heading, Line(text, "warning" if incore.uncertain else "strong"), bounds)


def _how_to_measure(incore: InCore) -> tuple[tuple[str, str], ...]:
    """The command that measures what the table lacks, where there is one for this instruction set."""
    if not incore.uncertain or incore.rows[0].instruction.isa != DEFAULT:
        return ()
    command = f"kernmodel measure instruction --unknown FILE --uarch {incore.microarchitecture} -o rows.txt"
    return (("to measure them", f"{command}, on a host with this core; then --instructions rows.txt"),)


def _alignment_field(placement: Placement | None) -> tuple[tuple[str, str], ...]:
    """What aligning the loop buys, where it does."""
    if placement is None or not placement.aligning_helps:
        return ()
    return (
        (
            "alignment",
            f"{CODE_ALIGNMENT} bytes (`-falign-loops={CODE_ALIGNMENT}`) make it {placement.aligned:.2f} cy per pass",
        ),
    )


def _per_pass(cycles: float, incore: InCore) -> str:
    return f"{cycles:.2f} cy per pass{_per_iteration(cycles, incore)}"


def _per_iteration(cycles: float, incore: InCore) -> str:
    passes = incore.iterations_per_pass
    return f" = {quantity(cycles / passes, 'cy/It')}" if passes else ""


def _details(answer: InCoreAnswer) -> Blocks:
    return (
        *chain_section(answer.incore),
        *loop_section(answer.loop, answer.origin),
        *_row_sources(answer.incore),
        *parameters_section(answer.parameters),
    )


def chain_section(incore: InCore) -> Blocks:
    """The instructions of the critical path and of the longest loop-carried dependency, and what carries them on."""
    chains: list[tuple[str, Chain]] = [("Critical path", incore.critical_path)]
    if incore.lcd:
        passes = f" over {incore.lcd.passes} passes" if incore.lcd.passes > 1 else ""
        chains.insert(0, (f"Longest loop-carried dependency{passes}", incore.lcd))
    columns = (
        *instruction_columns(lambda link: incore.rows[link[0]].instruction),
        left("carried on by", itemgetter(1)),
    )
    blocks: list[Block] = []
    for title, chain in chains:
        links = zip_longest(chain.members, chain.carriers[: len(chain.members)], fillvalue="")
        blocks += table(f"{title}: {chain.cycles:.1f} cy", columns, links, always=True)
    return tuple(blocks)


def _row_sources(incore: InCore) -> Blocks:
    columns = (left("instruction form", itemgetter(0)), left("source of its row", itemgetter(1), fold=True))
    pairs = dict.fromkeys((row.instruction.form, row.source) for row in incore.rows if row.known)
    return table("Sources of the instruction data", columns, pairs)


def _loop_name(outcome: Outcome) -> str:
    """Label, line or address of a loop's first instruction."""
    first = outcome.loop.instructions[0]
    return outcome.loop.label or (f"line {first.line}" if first.line else f"{first.address:#x}")


def _outcome_reason(outcome: Outcome) -> str:
    if outcome.answer is None:
        return outcome.error or ""
    incore = outcome.answer.incore
    doubt = f"; {count(len(incore.uncertain), 'unknown instruction')}" if incore.uncertain else ""
    return f"{reason_text(incore.reason)}{doubt}"


OUTCOME_COLUMNS = (
    left("core", "microarchitecture", least=6),
    left("loop", _loop_name, least=12),
    right("instr.", lambda outcome: len(outcome.loop.instructions)),
    right("cy per pass", lambda outcome: outcome.answer and outcome.answer.incore.prediction, least=11),
    left("bound by", lambda outcome: outcome.answer and bound_text(outcome.answer.incore), least=20),
    left("why", _outcome_reason),
)
"""Of one loop on one core."""


def _block_bound(result: BlockResult) -> str | None:
    return None if result.prediction is None else " and ".join(result.binding) or "nothing"


def _block_text(result: BlockResult) -> str:
    if result.prediction is None:
        return result.error or ""
    return f"{result.code} (unknown: {', '.join(result.unknown)})" if result.unknown else result.code


BLOCK_COLUMNS = (
    right("line", "line", least=6),
    right("cy per pass", "prediction", least=11),
    left("bound by", _block_bound, least=20),
    left("notion", "notion", least=8),
    left("code, or what is wrong with it", _block_text),
)
"""Of one block of many."""
