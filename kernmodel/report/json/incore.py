"""`kernmodel.incore/1`, its relatives for many cores, loops and blocks, and the rows of instruction tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, code_json, document, pick, plain, record
from kernmodel.report.text.reasons import reason_text

if TYPE_CHECKING:
    from kernmodel.incore.answer.batch import BlockResult
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.model import InCore, InstructionData, InstructionReport, Parameters
    from kernmodel.studies.predict.incore import Alignment, Outcome
    from kernmodel.studies.predict.request import InCoreAnswer


def incore_document(
    answer: InCoreAnswer, explanation: Explanation | None = None, alignments: Sequence[Alignment] = ()
) -> Json:
    """The answer of `kernmodel incore`; explanation and alignments are null where they were not asked for."""
    return document(
        "kernmodel.incore/1",
        _answer_json(answer),
        explanation=explanation,
        alignments=[_alignment_json(alignment) for alignment in alignments] or None,
    )


def incore_sweep_document(outcomes: Iterable[Outcome]) -> Json:
    """The answer of `kernmodel incore` for several cores or loops."""
    points = [
        record(
            microarchitecture=outcome.microarchitecture,
            loop={**pick(outcome.loop, "label"), **pick(outcome.loop.instructions[0], "line", "address")},
            error=outcome.error,
            answer=_answer_json(outcome.answer) if outcome.answer else None,
        )
        for outcome in outcomes
    ]
    return document("kernmodel.incore-sweep/1", points=points)


def block_document(result: BlockResult) -> Json:
    """One line of the answer of `kernmodel incore --batch`."""
    names = ("line", "code", "core", "notion", "prediction", "bound_by", "binding", "components", "reason")
    values = ((name, getattr(result, name)) for name in (*names, "unknown", "estimated", "warnings", "error"))
    # `pick` looks into every value, which takes a tenth of the time of a whole block
    body = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
    body["reason"] = reason_text(result.reason)
    return document("kernmodel.incore-batch/1", body)


def blocks_document(results: Iterable[BlockResult]) -> Json:
    """The lines of many blocks."""
    return {"blocks": [block_document(result) for result in results]}


def block_line(result: BlockResult) -> str:
    """That document on one line."""
    return _ENCODED(block_document(result))


_ENCODED = json.JSONEncoder(allow_nan=False).encode


def _alignment_json(alignment: Alignment) -> Json:
    return record(pick(alignment, "cycles", "offsets"), bound_by=alignment.answer.bound_by)


def _answer_json(answer: InCoreAnswer) -> Json:
    return record(
        machine=answer.machine,
        microarchitecture=answer.parameters,
        code=code_json(answer.origin, answer.loop),
        incore=incore_json(answer.incore),
        placement=answer.placement,
        notes=answer.notes,
    )


def incore_json(incore: InCore) -> Json:
    """The in-core result: bounds, chains and a row per instruction. Times are cycles per pass."""
    names = (
        "port_model",
        "prediction",
        "bound_by",
        "reason",
        "throughput",
        "binding_ports",
        "ports",
        "port_sums",
        "lcd",
    )
    more = ("critical_path", "iterations_per_pass", "uncertain", "notion", "offset", "components")
    rows = [record(_row_json(row), uses=uses) for row, uses in zip(incore.rows, incore.uses, strict=True)]
    found = record(pick(incore, *names, *more), rows=rows)
    # its key is there only where it is one (docs/json.md)
    return found | (record(pick(incore, "prediction_interval")) if incore.prediction_interval else {})


def _row_json(row: InstructionReport) -> Json:
    names = ("pressure", "latency", "on_critical_path", "on_lcd", "known", "eliminated", "source")
    return record(plain(row.instruction), pick(row, *names))


def instruction_document(rows: Iterable[InstructionData], parameters: Parameters) -> Json:
    """Rows of an instruction table, with what describes the microarchitecture."""
    instructions = [_table_row(row) for row in rows]
    return document("kernmodel.instruction/1", microarchitecture=parameters, instructions=instructions)


def instruction_list_document(forms: Iterable[str], parameters: Parameters) -> Json:
    """The forms that a table has."""
    return document("kernmodel.instruction-list/1", microarchitecture=parameters, forms=list(forms))


def _table_row(row: InstructionData) -> Json:
    names = ("form", "uops", "ports", "default_latency", "throughput", "breaks_dependency", "eliminated", "front_end")
    return {
        **pick(row, *names),
        "latencies": [
            {"source": source, "target": target, "cycles": cycles} for (source, target), cycles in row.latencies.items()
        ],
        "indexed": _table_row(row.indexed) if row.indexed else None,
        "full": _table_row(row.full) if row.full else None,
        "source": row.source,
    }
