"""Blocks on one core: lowered instruction by instruction, joined, and bounded by the engine.

The engine is the compiled one where it was built and knows the core, else its twin in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kernmodel.incore.dependences.addresses import AddressStep, Forwarding, forwardings
from kernmodel.incore.dependences.forwarding import links as named_links
from kernmodel.incore.dependences.line_splits import AT_LINES, Places, may_split, slow_accesses, split_loads
from kernmodel.incore.engine.compiled import CompiledEngine, knows
from kernmodel.incore.engine.figures import ModelledCore
from kernmodel.incore.engine.interface import Answer, Engine, Look
from kernmodel.incore.engine.layout import WHOLE, Access
from kernmodel.incore.engine.lowering import Lowering, Pair, Template, forward_cycles
from kernmodel.incore.engine.memo import Memo
from kernmodel.incore.model import InstructionData, Notion
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

Rows = Sequence[InstructionData | None]
WIDE_IMMEDIATE_BYTES = 8


class LoweredBlock(NamedTuple):
    """A block on a core, ready to be looked at from any address.

    Attributes:
        templates: of its instructions; pairs: by first instruction, those that may macro-fuse.
        look: what the engine is asked; shares: by instruction, the share of passes in which its load crosses lines, of
            a loop.
        incomparable: whether some addresses of loads and stores could not be compared (they are taken to differ).
        accesses: what becomes of loads and stores by their addresses, in a loop.
    """

    templates: tuple[Template, ...]
    pairs: Mapping[int, Pair]
    look: Look
    shares: Mapping[int, float]
    incomparable: bool
    accesses: Sequence[Access] = ()

    @property
    def blocked(self) -> tuple[Forwarding, ...]:
        """The forwardings in which the store does not hold all bytes of the load."""
        return tuple([link for link in self.look.links if not link.whole])


class Analyser:
    """Lowers instructions for one core and knows them by their numbers in its engine."""

    __slots__ = ("_kept", "_memo", "_ports", "core", "engine", "lowering")

    def __init__(self, core: ModelledCore, memo: Memo | None = None, engine: Engine | None = None) -> None:
        """For a core; the memo may serve several, the engine is chosen if none is given."""
        self.core = core
        self._memo = memo or Memo(core.parameters.isa)
        self.lowering = Lowering(core, self._memo)
        self.engine: Engine = engine or (CompiledEngine(core) if knows(core) else _twin(core))
        self._kept: dict[Hashable, tuple[Template, int]] | None = None
        self._ports: dict[int, tuple[str, ...]] = {}

    def keep(self) -> Analyser:
        """Remember what is made of each instruction, for many blocks; the analyser itself."""
        self._kept = {}
        return self

    def lower(
        self, instructions: Sequence[Instruction], rows: Rows, closing: bool = True, places: Places = AT_LINES
    ) -> LoweredBlock:
        """A block, made of its instructions and their rows (the indexed variant where it applies, None for unknown).

        Args:
            closing: whether 512-bit registers close a port, on cores where they do.
            places: where the arrays lie, for a loop.
        """
        closed = closing and self.core.closed is not None and any(isa_of(i.isa).fills_widest(i) for i in instructions)
        known = [self._instruction(i, row, closed) for i, row in zip(instructions, rows, strict=True)]
        templates = tuple([template for template, _ in known])
        pairs = {}
        for number, (first, branch) in enumerate(pairwise(templates)):
            pair = self.lowering.pair(first, branch) if branch.traits.jump >= 0 else None
            if pair is not None:
                pairs[number] = pair
        links, simulated, incomparable = self._links(instructions, templates)
        look = Look(
            instructions=[number for _, number in known],
            pairs=[(number, self.engine.pair(pair)) for number, pair in pairs.items()],
            links=links,
            simulated_links=simulated,
            places=places_of(instructions),
        )
        return self.placed(LoweredBlock(templates, pairs, look, {}, incomparable), instructions, places)

    def placed(self, block: LoweredBlock, instructions: Sequence[Instruction], places: Places) -> LoweredBlock:
        """The same block with its arrays elsewhere, in a loop."""
        shares: dict[int, float] = {}
        if self.core.splits and any(may_split(instruction, self.core.splits) for instruction in instructions):
            steps = [template.flow.step for template in block.templates]
            shares = split_loads(steps, self.core.parameters.loads, places)
        accesses = self.accesses(instructions, lambda: [template.flow.step for template in block.templates], places)
        return block._replace(shares=shares, accesses=accesses)

    def bound(
        self, block: LoweredBlock, notion: Notion, offset: int, all_parts: bool = False, scope: int = WHOLE
    ) -> Answer | None:
        """What bounds a block at an address; None if it is beyond the engine. Further arguments as in `Request`."""
        look = block.look
        if block.shares and notion == "loop":
            look = look._replace(splits=[block.shares.get(n, 0.0) for n in range(len(block.templates))])
        if block.accesses and notion == "loop":
            look = look._replace(accesses=block.accesses)
        return self.engine.block(look, look.request(notion == "unrolled", offset, all_parts, scope))

    def _links(
        self, instructions: Sequence[Instruction], templates: Sequence[Template]
    ) -> tuple[Sequence[Forwarding], Sequence[Forwarding], bool]:
        """Forwardings for dependencies and for the simulation, and whether some addresses could not be compared."""
        specials = [template.flow.special for template in templates]
        stores, loads = (any(own is not None and getattr(own, n) for own in specials) for n in ("stores", "loads"))
        found: Sequence[Forwarding] = ()
        incomparable = False
        if stores and loads:
            steps = [template.flow.step for template in templates]
            found, incomparable = forwardings(instructions, self.core.graph.memory, steps)
            found = self.timed(found, instructions)
        memory = self.core.switches.memory
        if self.core.pipeline is None or (memory == self.core.graph.memory == "moving"):
            return found, found if self.core.pipeline else (), incomparable
        return found, named_links(instructions, memory), incomparable

    def timed(self, links: Sequence[Forwarding], instructions: Sequence[Instruction]) -> Sequence[Forwarding]:
        """The forwardings, with their cycles where these depend on store and load."""
        forwards = self.core.pipeline and self.core.pipeline.forwards
        if not forwards:
            return links
        return [link._replace(cycles=forward_cycles(link, instructions, forwards)) for link in links]

    def accesses(
        self,
        instructions: Sequence[Instruction],
        steps: Callable[[], Sequence[AddressStep]],
        places: Places = AT_LINES,
    ) -> Sequence[Access]:
        """What becomes of the loads and stores of a loop body by their addresses.

        Args:
            instructions: the body; of the registers that addresses are made of nothing is asked.
            steps: gives what each of them means for addresses.
            places: where the arrays lie.
        """
        lines = self.core.pipeline and self.core.pipeline.lines
        if not lines or not any(instruction.memory for instruction in instructions):
            return ()
        general = {
            number
            for number, instruction in enumerate(instructions)
            if not instruction.vector_bytes and any(reference.written for reference in instruction.memory)
        }
        return slow_accesses(steps(), general, lines, places)

    def _instruction(self, instruction: Instruction, row: InstructionData | None, closed: bool) -> tuple[Template, int]:
        if self._kept is None:
            return self._new(instruction, row, closed)
        key = (_key_of(instruction), closed, row is None)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._new(instruction, row, closed)
        return found

    def _new(self, instruction: Instruction, row: InstructionData | None, closed: bool) -> tuple[Template, int]:
        template = self.lowering.template(instruction, row, closed)
        resources = [self._memo.number(name) for name in template.registers]
        number = self.engine.instruction(self.engine.template(template), layout_of(instruction), resources)
        return template, number

    def ports(self, mask: int) -> tuple[str, ...]:
        """The ports of a set, in the order of display."""
        found = self._ports.get(mask)
        if found is None:
            known = self.core.parameters.ports
            found = self._ports[mask] = tuple([port for number, port in enumerate(known) if mask >> number & 1])
        return found


def _key_of(instruction: Instruction) -> Hashable:
    """What a template and the layout of an instruction depend on: everything but its place and its text."""
    i = instruction
    implicit = (i.implicit_reads, i.implicit_writes, i.flags_read, i.flags_written)
    return (i.form, i.operands, i.memory, implicit, i.branch, i.same_register, i.has_mask, layout_of(i))


def layout_of(instruction: Instruction) -> tuple[int, int, int, int]:
    """Its length, the place of its opcode, whether it has a length-changing prefix, or an immediate of 8 bytes."""
    encoding = instruction.encoding
    wide = encoding.immediate_bytes == WIDE_IMMEDIATE_BYTES
    return instruction.length, encoding.opcode_offset, encoding.length_changing_prefix, wide


def places_of(instructions: Sequence[Instruction]) -> Sequence[int]:
    """Where each instruction starts by their addresses; none where these do not ascend or leave no gap."""
    base = instructions[0].address if instructions else 0
    places = []
    gap, end = False, base
    for instruction in instructions:
        if instruction.address < end:
            return ()
        gap |= instruction.address > end
        places.append(instruction.address - base)
        end = instruction.address + instruction.length
    return places if gap else ()


def _twin(core: ModelledCore) -> Engine:
    """The engine in Python, imported only where it serves."""
    from kernmodel.incore.engine.twin import PythonEngine

    return PythonEngine(core)
