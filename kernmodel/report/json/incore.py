"""`kernmodel.incore/1`, and its relatives for many cores, loops and blocks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    instruction_json,
    loop_json,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)

if TYPE_CHECKING:
    from kernmodel.incore.answer.batch import BlockResult
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.model import InCore, InstructionReport, Parameters
    from kernmodel.studies.predict.incore import Alignment, Outcome
    from kernmodel.studies.predict.request import InCoreAnswer


def incore_document(
    answer: InCoreAnswer, explanation: Explanation | None = None, alignments: Sequence[Alignment] = ()
) -> Json:
    """The answer of `kernmodel incore`; explanation and alignments are null where they were not asked for."""
    body = _answer_json(answer)
    body["explanation"] = explanation_json(explanation) if explanation else None
    body["alignments"] = [_alignment_json(alignment) for alignment in alignments] or None
    return envelope("kernmodel.incore/1", body)


def incore_sweep_document(outcomes: Iterable[Outcome]) -> Json:
    """The answer of `kernmodel incore` for several cores or loops."""
    points = [
        {
            "microarchitecture": outcome.microarchitecture,
            "loop": {**pick(outcome.loop, "label"), **pick(outcome.loop.instructions[0], "line", "address")},
            "error": outcome.error,
            "answer": _answer_json(outcome.answer) if outcome.answer else None,
        }
        for outcome in outcomes
    ]
    return envelope("kernmodel.incore-sweep/1", {"points": points})


def block_document(result: BlockResult) -> Json:
    """One line of the answer of `kernmodel incore --batch`."""
    names = ("line", "code", "core", "notion", "prediction", "bound_by", "binding", "components", "reason")
    values = ((name, getattr(result, name)) for name in (*names, "unknown", "estimated", "warnings", "error"))
    # `pick` looks into every value, which takes a tenth of the time of a whole block
    body = {name: list(value) if isinstance(value, tuple) else value for name, value in values}
    return envelope("kernmodel.incore-batch/1", body)


def block_line(result: BlockResult) -> str:
    """That document on one line."""
    return _ENCODED(block_document(result))


_ENCODED = json.JSONEncoder(allow_nan=False).encode


def explanation_json(explanation: Explanation) -> Json:
    """Why, and what would help."""
    return {
        **pick(explanation, "binding", "crowd", "chain", "chain_passes", "idealised", "next_bound", "next_cycles"),
        "components": plain(explanation.components),
    }


def _alignment_json(alignment: Alignment) -> Json:
    return {**pick(alignment, "cycles", "offsets"), "bound_by": alignment.answer.bound_by}


def _answer_json(answer: InCoreAnswer) -> Json:
    return {
        "machine": machine_identity(answer.machine) if answer.machine else None,
        "microarchitecture": parameters_json(answer.parameters),
        "code": {**origin_json(answer.origin), "loop": loop_json(answer.loop)},
        "incore": incore_json(answer.incore),
        "notes": notes_json(answer.notes),
    }


def parameters_json(parameters: Parameters) -> Json:
    """The microarchitecture with the figures used and their sources."""
    return {
        **pick(parameters, "name", "title", "isa", "ports", "load_latency", "store_forward_latency", "issue_width"),
        "sources": dict(parameters.sources),
    }


def incore_json(incore: InCore) -> Json:
    """The in-core result: bounds, chains and a row per instruction. Times are cycles per pass."""
    return {
        **pick(incore, "port_model", "prediction", "bound_by", "reason", "throughput", "binding_ports"),
        "ports": list(incore.ports),
        **pick(incore, "port_sums", "lcd", "critical_path", "iterations_per_pass", "uncertain"),
        **pick(incore, "notion", "offset", "components"),
        "rows": [{**_row_json(row), "uses": plain(uses)} for row, uses in zip(incore.rows, incore.uses, strict=True)],
    }


def _row_json(row: InstructionReport) -> Json:
    names = ("pressure", "latency", "on_critical_path", "on_lcd", "known", "eliminated", "source")
    return {**instruction_json(row.instruction), **pick(row, *names)}
