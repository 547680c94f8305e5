"""How an answer is had again: commands, versions, and hashes of what was read."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from hashlib import sha256
from platform import python_version
from typing import TYPE_CHECKING

from kernmodel import __version__
from kernmodel.report.html.blocks import fields_html
from kernmodel.report.html.elements import Html, element, html
from kernmodel.report.layout import Fields, Pair
from kernmodel.report.text.sections import code_fields

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer


def provenance(commands: Sequence[str], answers: Sequence[EcmAnswer]) -> Html:
    """Commands, versions of the tools, and hashes of the sources and machine files of predictions, each once."""
    pairs: dict[Pair, None] = {("kernmodel", __version__): None, ("Python", python_version()): None}
    for answer in answers:
        pairs.update(dict.fromkeys(_pairs(answer)))
    return html(element("pre", "\n".join(commands), tabindex=0), fields_html(Fields(tuple(pairs))))


def _pairs(answer: EcmAnswer) -> tuple[Pair, ...]:
    nest, machine, core, origin = answer.nest, answer.machine, answer.parameters, answer.origin
    command = (("compiler command", shlex.join(origin.command)),) if origin.command else ()
    return (
        ("source", f"{nest.file}, sha256 {sha256(nest.text.encode()).hexdigest()}"),
        ("machine file", f"{machine.file}, sha256 {machine.sha256}"),
        ("core", f"{core.name}: {core.title}"),
        *code_fields(origin),
        *command,
    )
