"""A core to analyse blocks on: its parameters, its table and what it lacks, opened once and used for many blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from itertools import groupby
from typing import Literal

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import InstructionTableError
from kernmodel.incore.answer.analyse import PortModel, analyse
from kernmodel.incore.answer.components import bounds_of, row_of
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.line_splits import AT_LINES, Places
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.modelled_core import ModelledCore, modelled_core
from kernmodel.incore.model import InCore, Notion, Parameters
from kernmodel.incore.tables.estimate import EstimatingTable, estimate_notes
from kernmodel.incore.tables.extensions import lacked_extensions, refuse_missing
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable, Operands
from kernmodel.isa import isa_of
from kernmodel.value_types import dataclass

CODE_ALIGNMENT = 64
"""Bytes modulo which offsets are given. No figure of one core but a multiple of all lines that front ends know, so that
each sees the same code again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How blocks are analysed.

    Attributes:
        notion: as the body of a loop, copied one behind the other (unrolled), or "auto": a loop if it ends in a branch.
        port_model: "optimal" or "even".
        offset: address of the first instruction modulo 64; None: as its address says.
        operands: of divisions and square roots.
        memory: which loads read what stores of the block wrote.
        estimate: whether instructions without a row take that of their nearest relative.
        places: where the arrays of a loop lie; data_align: bytes at multiples of which they begin, None: not known.
    """

    notion: Literal["auto", "loop", "unrolled"] = "auto"
    port_model: PortModel = "optimal"
    offset: int | None = None
    operands: Operands = "full"
    memory: MemoryPolicy = "moving"
    estimate: bool = False
    places: Places = AT_LINES
    data_align: int | None = None


@dataclass(frozen=True, slots=True)
class Core:
    """What the analysis of a block asks of a core.

    Attributes:
        parameters, table: of the core.
        lacked: the extensions that it does not have.
        model: what the analysis makes of the figures.
        analyser: what remembers what is made of instructions, for several questions about the same ones; None to begin
            anew with each.
    """

    parameters: Parameters
    table: InstructionTable | EstimatingTable
    lacked: frozenset[str]
    model: ModelledCore
    analyser: Analyser | None = field(default=None, compare=False)

    def remembering(self, analyser: Analyser | None = None) -> Core:
        """The core with an analyser that remembers, a new one if none is given."""
        return replace(self, analyser=analyser or Analyser(self.model).keep())

    @classmethod
    def open(cls, name: str, settings: Settings) -> Core:
        """The core of this name (or alias) for blocks that are analysed by these settings.

        Raises:
            InstructionTableError: it is not known, or a file of it is malformed.
        """
        return cls.of(load_parameters(name), settings)

    @classmethod
    def of(cls, parameters: Parameters, settings: Settings, table: InstructionTable | None = None) -> Core:
        """The core with these parameters, wherever their file was; `table` is that of the core if it is open already.

        Raises:
            InstructionTableError: its table is missing or empty.
        """
        table = table or InstructionTable.open(parameters, settings.operands)
        chosen = EstimatingTable(table) if settings.estimate else table
        return cls(parameters, chosen, lacked_extensions(parameters), modelled_core(parameters, settings.memory))


def analyse_block(loop: AssemblyLoop, core: Core, settings: Settings) -> InCore:
    """The in-core analysis of a block.

    Raises:
        InstructionTableError: the core lacks an instruction, or a row of its table is malformed.
    """
    if loop.isa != core.parameters.isa:
        what = f"is {loop.isa} code, but {core.parameters.title} executes {core.parameters.isa}"
        raise InstructionTableError(what, where=loop.file, todo="choose a core that executes it, or give other code")
    refuse_missing(loop.instructions, core.lacked, core.parameters, loop.file)
    incore = analyse(
        loop,
        core.parameters,
        core.table,
        port_model=settings.port_model,
        memory=settings.memory,
        notion=notion_of(loop, settings),
        offset=offset_of(loop, settings),
        places=settings.places,
        model=core.analyser or core.model,
    )
    estimated = estimate_notes(loop.instructions, tuple(row.source for row in incore.rows), loop.file)
    return replace(incore, notes=(*estimated, *incore.notes)) if estimated else incore


def predictions_at(loop: AssemblyLoop, core: Core, settings: Settings, offsets: Iterable[int]) -> Iterator[float]:
    """Cycles per pass of a block at each of several addresses modulo 64 of its first byte.

    Raises:
        InstructionTableError: as `analyse_block`.
    """
    if settings.port_model == "even":
        cycles = analyse_block(loop, core, settings).prediction
        yield from (cycles for _ in offsets)
        return
    instructions, notion = isa_of(loop.isa).with_named_registers(loop.instructions), notion_of(loop, settings)
    refuse_missing(instructions, core.lacked, core.parameters, loop.file)
    rows = tuple(row_of(instruction, core.table) for instruction in instructions)
    analyser = core.analyser or Analyser(core.model)
    block = analyser.lower(instructions, rows, notion, places=settings.places)
    for offset in offsets:
        answer = analyser.bound(block, offset)
        if answer is None:
            yield bounds_of(instructions, rows, core.model, notion, offset, places=settings.places).prediction
        else:
            yield max(answer.applied.values(), default=0.0)


def predictions_placed(
    loop: AssemblyLoop, core: Core, settings: Settings, layouts: Iterable[Places]
) -> Iterator[float]:
    """Cycles per pass of a loop with its arrays in each of several places.

    Raises:
        InstructionTableError: as `analyse_block`.
    """
    instructions, offset = isa_of(loop.isa).with_named_registers(loop.instructions), offset_of(loop, settings)
    refuse_missing(instructions, core.lacked, core.parameters, loop.file)
    rows = tuple(row_of(instruction, core.table) for instruction in instructions)
    analyser = core.analyser or Analyser(core.model)
    block = analyser.lower(instructions, rows, notion_of(loop, settings))
    known: dict[object, float] = {}
    for in_page, alike in groupby(layouts, key=lambda places: places.in_page):
        aliases = analyser.aliases(block, in_page)  # the same wherever arrays lie within lines
        for places in alike:
            placed = analyser.placed(block, places, aliases)
            key = tuple(placed.look.accesses), tuple(placed.look.splits), tuple(placed.look.links)
            if key not in known:
                answer = analyser.bound(placed, offset)
                if answer is None:
                    known[key] = analyse_block(loop, core, replace(settings, places=places)).prediction
                else:
                    known[key] = max(answer.applied.values(), default=0.0)
            yield known[key]


def notion_of(loop: AssemblyLoop, settings: Settings) -> Notion:
    """How the block is repeated."""
    if settings.notion != "auto":
        return settings.notion
    return "loop" if loop.instructions[-1].branch in ("conditional", "jump") else "unrolled"


def offset_of(loop: AssemblyLoop, settings: Settings) -> int:
    """Address of the first instruction modulo 64; of a listing the lowest that its directives leave possible."""
    if settings.offset is not None:
        return settings.offset % CODE_ALIGNMENT
    known = CODE_ALIGNMENT if loop.syntax == "binary" else min(loop.alignment, CODE_ALIGNMENT)
    return loop.instructions[0].address % known
