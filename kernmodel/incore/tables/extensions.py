"""Which instruction set extensions a core has, and the error for code that needs others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import Parameters
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.schema.document import FileKind, plain, read_document

_FILE = Path(__file__).parents[1] / "data" / "extensions.yaml"
_KIND = FileKind("list of extensions", "docs/microarchitectures.md", InstructionTableError)


def lacked_extensions(parameters: Parameters) -> frozenset[str]:
    """The extensions that a core does not have, by iced's names; none if it is not known what it has."""
    cores, named = _known()
    for name in (parameters.name, *parameters.aliases):
        if name.lower() in cores:
            return named - cores[name.lower()]
    return frozenset()


def refuse_missing(
    instructions: Iterable[Instruction], lacked: frozenset[str], parameters: Parameters, file: str
) -> None:
    """Refuse code with an instruction that the core does not have.

    Args:
        instructions: the code.
        lacked: what `lacked_extensions` says about the core.
        parameters: of the core; file: of the code, for the message.

    Raises:
        InstructionTableError: names the first such instruction and the extension.
    """
    for instruction in instructions:
        if is_missing(instruction, lacked):
            needs = " and ".join(sorted(isa_of(instruction.isa).features(instruction) & lacked))
            raise InstructionTableError(
                f"{instruction.text.strip()} needs {needs}, which {parameters.title} does not have",
                where=instruction.place_in(file),
                todo="choose a microarchitecture that has it, or compile for this one",
            )


def is_missing(instruction: Instruction, lacked: frozenset[str]) -> bool:
    """Whether a core that lacks these extensions does not have the instruction."""
    return not lacked.isdisjoint(isa_of(instruction.isa).features(instruction))


def core_extensions(name: str) -> frozenset[str]:
    """The extensions that a core of LLVM's (`-march`) has, by iced's names."""
    return _known()[0][name]


@cache
def _known() -> tuple[Mapping[str, frozenset[str]], frozenset[str]]:
    """What each core has, by LLVM's name, and all extensions that are told apart."""
    content = plain(read_document(_FILE, _KIND).root)
    cores: dict[str, frozenset[str]] = {}
    for name, entry in content["cores"].items():
        cores[name] = cores.get(entry.get("like"), frozenset()) | frozenset(entry["adds"])
    return cores, frozenset[str]().union(content["elsewhere"], *cores.values())
