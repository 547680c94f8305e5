"""`kernmodel.mix/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    kernel_identity,
    loop_json,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)

if TYPE_CHECKING:
    from kernmodel.code.mix import InstructionMix
    from kernmodel.studies.predict.mix import MixAnswer, MixPart


def mix_document(answer: MixAnswer) -> Json:
    """The answer of `kernmodel mix`."""
    body = {
        "name": answer.name,
        "machine": machine_identity(answer.machine) if answer.machine else None,
        "mix": mix_json(answer.mix),
        "parts": [_part_json(part) for part in answer.parts],
        "notes": notes_json(answer.notes),
    }
    return envelope("kernmodel.mix/1", body)


def mix_json(mix: InstructionMix) -> Json:
    """A mix with its sums; `load_store_ratio` is null without stores, where `load_share` is 1."""
    names = ("source", "per", "shares_only", "loads", "stores", "load_share", "load_store_ratio", "bytes", "flops")
    return {
        **pick(mix, *names, "intensity", "other"),
        "memory": [{**plain(kind), "instructions": number} for kind, number in mix.memory],
        "fp": [{**plain(kind), "flops": kind.flops, "instructions": number} for kind, number in mix.fp],
    }


def _part_json(part: MixPart) -> Json:
    return {
        "kernel": kernel_identity(part.nest, part.sizes or {}) if part.nest else None,
        "code": {**origin_json(part.origin), "loop": loop_json(part.loop)},
        "weight": part.weight,
        "mix": mix_json(part.mix),
        "source_beside_code": plain(part.comparisons),
    }
