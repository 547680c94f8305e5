"""Facile's front end of a block (Abel, Sharma, Reineke, IISWC 2023, sections 4.1 and 4.2), of the parts of the engine's
twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from kernmodel.incore.engine.analyser import Analyser, layout_of, places_of
from kernmodel.incore.engine.memo import Memo
from kernmodel.incore.engine.modelled_core import ModelledCore, modelled_core
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.engine.twin import PythonEngine
from kernmodel.incore.front_end.block import front_end_block
from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.dsb import dsb_bound, erratum_branches
from kernmodel.incore.front_end.issue import issue_bound
from kernmodel.incore.front_end.lsd import fits_lsd, lsd_bound
from kernmodel.incore.front_end.mixed import mixed_bound
from kernmodel.incore.front_end.model import FrontEndBlock
from kernmodel.incore.front_end.predecode import predecode_bound
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.isa.model import Instruction, Notion


class Block(NamedTuple):
    """A block as a front end sees it at address 0, and of what."""

    instructions: tuple[Lowered, ...]
    places: tuple[int, ...]
    seen: FrontEndBlock


class FrontEndBounds(NamedTuple):
    """Cycles per execution by component; None for those that the block does not come through.

    `path`: where the µops come from, after Facile; `mixed`: for a loop that the erratum concerns, what takes the place
    of predecoder and decoders if the other lines come from the DSB; `erratum`, `fused`: instructions by number.
    """

    path: str
    predecode: float | None
    decode: float | None
    dsb: float | None
    lsd: float | None
    mixed: float | None
    issue: float
    issue_synchronised: float
    erratum: tuple[int, ...]
    fused: tuple[int, ...]

    @property
    def delivery(self) -> float:
        """FE of equation 3 for loops, max{Predec, Dec} of equation 1 for unrolled code: all but issue."""
        return max(bound for bound in (self.predecode, self.decode, self.dsb, self.lsd, 0.0) if bound is not None)

    @property
    def bound(self) -> float:
        """The front end as a whole (equations 1 and 2)."""
        return max(self.delivery, self.issue)


@cache
def skylake() -> ModelledCore:
    return modelled_core(load_parameters("SKL"))


def analyser_of(core: FrontEndParameters) -> Analyser:
    """Of a core of whose rest nothing matters."""
    model = replace(skylake(), front=core, pipeline=None)
    return Analyser(model, engine=PythonEngine(model))


def lowered(
    instructions: Sequence[Instruction], rows: Sequence[InstructionData | None], analyser: Analyser
) -> tuple[Lowered, ...]:
    """The instructions of a block on a core."""
    memo = Memo("x86-64")
    found = []
    for instruction, template in zip(instructions, analyser.lower(instructions, rows).templates, strict=True):
        length, opcode, prefixed, wide, *constants = layout_of(instruction.length, instruction.encoding)
        resources = {name: memo.number(name) for name in template.registers}
        found.append(Lowered(template, resources, length, opcode, bool(prefixed), bool(wide), *constants))
    return tuple(found)


def block_of(
    instructions: Sequence[Instruction],
    rows: Sequence[InstructionData | None],
    core: FrontEndParameters,
    analyser: Analyser | None = None,
) -> Block:
    """A block as a front end sees it; an analyser of the core may know instructions of the same table."""
    own = lowered(instructions, rows, analyser or analyser_of(core))
    places = tuple(places_of(instructions))
    return Block(own, places, front_end_block(own, places, fusion_line_bytes=core.fusion_line_bytes))


def front_end(block: Block, core: FrontEndParameters, notion: Notion, offset: int = 0) -> FrontEndBounds:
    """The bounds of all components for a block whose first byte has the address `offset`.

    Unrolled code is predecoded and decoded (equation 1). A loop is, too, if the JCC erratum concerns it; else it comes
    from the LSD where that is on and the loop fits; else from the DSB (equation 3).
    """
    seen = front_end_block(block.instructions, block.places, offset=offset, fusion_line_bytes=core.fusion_line_bytes)
    units = seen.units
    erratum = erratum_branches(units, core, offset) if notion == "loop" else ()
    decodes = notion == "unrolled" or bool(erratum)
    path = "decoders" if decodes else "LSD" if fits_lsd(units, core) else "DSB"
    issue = issue_bound(units, core)
    return FrontEndBounds(
        path=path,
        predecode=predecode_bound(seen, core, notion, offset) if decodes else None,
        decode=decode_bound(units, core) if decodes else None,
        dsb=dsb_bound(units, seen.length, core) if path == "DSB" else None,
        lsd=lsd_bound(units, core) if path == "LSD" else None,
        mixed=mixed_bound(seen, units, core, offset, erratum) if erratum else None,
        issue=issue,
        issue_synchronised=issue + seen.synchronisations / core.issue_width,
        erratum=erratum,
        fused=tuple(unit.number for unit in units if unit.fused),
    )
