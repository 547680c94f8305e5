"""Blocks on one core: lowered instruction by instruction, joined, and bounded by the engine.

The engine is the compiled one where it was built and knows the core, else its twin in Python.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from kernmodel.incore.dependences.addresses import AddressStep, BodyAccesses, Forwarding, address_step, forwardings
from kernmodel.incore.dependences.false_stores import aliased_stores
from kernmodel.incore.dependences.forwarding import links as named_links
from kernmodel.incore.dependences.line_splits import (
    AT_LINES,
    Lines,
    Places,
    may_split,
    mean_longer,
    placed_accesses,
    slow_accesses,
    split_loads,
)
from kernmodel.incore.engine.compiled import CompiledEngine, knows
from kernmodel.incore.engine.interface import Answer, Engine, Look
from kernmodel.incore.engine.layout import WHOLE, Access
from kernmodel.incore.engine.lowering import Lowering, Pair, Template, forward_cycles
from kernmodel.incore.engine.memo import Memo
from kernmodel.incore.engine.modelled_core import ModelledCore
from kernmodel.incore.model import InstructionData, Notion
from kernmodel.isa import isa_of
from kernmodel.isa.model import Encoding, Instruction
from kernmodel.value_types import NamedTuple

Rows = Sequence[InstructionData | None]
WIDE_IMMEDIATE_BYTES = 8
"""Of x86's only immediates of more than 4 bytes (mov into 64-bit registers). Where the DSB keeps instructions, a place
holds 4 bytes of immediates, so that these take two (Intel 64 and IA-32 Architectures Optimization Reference Manual, on
the decoded instruction cache of Sandy Bridge)."""
_CONSTANT_BYTES = 4
"""Of a constant; longer ones count as two (docs/front-end.md, "Displacements and immediates")."""

LOADS, STORES, JUMPS, SPLITS, WIDE, FREE = (1 << bit for bit in range(6))
"""Traits of instructions: it loads; it stores; it may macro-fuse with the one before; its load may take longer across
lines; it closes a port for others. From `FREE` on, bits are for others to use."""


class Addresses(Protocol):
    """What is asked about the addresses of a block, each only where something depends on it.

    Attributes:
        at_lines: what was found to become of its accesses where its arrays begin at lines, by what these are on a core.
    """

    at_lines: dict[Lines, Sequence[Access]]

    def instructions(self) -> Sequence[Instruction]:
        """The instructions with their own registers and constants."""

    def accesses(self) -> BodyAccesses:
        """Their loads and stores, as the body of a loop."""

    def feeding(self) -> tuple[Sequence[Forwarding], bool]:
        """Which stores feed which loads, followed from pass to pass; whether some addresses could not be compared."""


class _Listed:
    """The addresses of a block that is looked at once; `links` where they are known, `known` are those of instructions
    that were met before."""

    __slots__ = ("_accesses", "_known", "at_lines", "links", "listed")

    def __init__(
        self,
        listed: Sequence[Instruction],
        links: Sequence[Forwarding] | None,
        known: dict[Hashable, AddressStep] | None,
    ) -> None:
        self.listed = listed
        self.links = links
        self._known = known
        self.at_lines: dict[Lines, Sequence[Access]] = {}
        self._accesses: BodyAccesses | None = None

    def instructions(self) -> Sequence[Instruction]:
        return self.listed

    def accesses(self) -> BodyAccesses:
        if self._accesses is None:
            self._accesses = BodyAccesses([self._step(instruction) for instruction in self.listed])
        return self._accesses

    def _step(self, instruction: Instruction) -> AddressStep:
        if self._known is None:
            return address_step(instruction)
        key = _key_of(instruction)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = address_step(instruction)
        return found

    def feeding(self) -> tuple[Sequence[Forwarding], bool]:
        if self.links is not None:
            return self.links, False
        return forwardings(self.listed, "moving", self.accesses())


class Kind(NamedTuple):
    """Instructions of one template: `numbers` of it and its µops in the engine, what a block has with one, as bits."""

    template: Template
    numbers: tuple[int, int]
    traits: int


class LoweredBlock(NamedTuple):
    """A block on a core, ready to be looked at from any address.

    Attributes:
        templates: of its instructions; pairs: by first instruction, those that may macro-fuse.
        look: what the engine is asked.
        incomparable: whether some addresses of loads and stores could not be compared (they are taken to differ).
        notion: how it is repeated; traits: what its instructions have, as bits; addresses: what they say.
    """

    templates: Sequence[Template]
    pairs: Mapping[int, Pair]
    look: Look
    incomparable: bool
    notion: Notion
    traits: int
    addresses: Addresses

    @property
    def blocked(self) -> tuple[Forwarding, ...]:
        """The forwardings in which the store does not hold all bytes of the load."""
        return tuple([link for link in self.look.links if not link.whole])


class Analyser:
    """Lowers instructions for one core and knows them by their numbers in its engine."""

    __slots__ = ("_kept", "_kept_steps", "_memo", "_pairs", "_ports", "core", "engine", "lowering")

    def __init__(self, core: ModelledCore, memo: Memo | None = None, engine: Engine | None = None) -> None:
        """For a core; the memo may serve several, the engine is chosen if none is given."""
        self.core = core
        self._memo = memo or Memo(core.parameters.isa)
        self.lowering = Lowering(core, self._memo)
        self.engine: Engine = engine or (CompiledEngine(core) if knows(core) else _twin(core))
        self._kept: dict[Hashable, tuple[Kind, int]] | None = None
        self._kept_steps: dict[Hashable, AddressStep] | None = None
        self._pairs: dict[tuple[int, int], tuple[Pair, int] | None] = {}
        self._ports: dict[int, tuple[str, ...]] = {}

    def keep(self) -> Analyser:
        """From now on remember how each instruction was lowered, which pays for many blocks; returns the analyser."""
        self._kept, self._kept_steps = {}, {}
        return self

    def lower(
        self,
        instructions: Sequence[Instruction],
        rows: Rows,
        notion: Notion = "loop",
        closing: bool = True,
        places: Places = AT_LINES,
        links: Sequence[Forwarding] | None = None,
    ) -> LoweredBlock:
        """A block, made of its instructions and their rows (the indexed variant where it applies, None for unknown).

        Args:
            notion: how it is repeated.
            closing: whether 512-bit registers close a port, on cores where they do.
            places: where the arrays lie, for a loop.
            links: which stores feed which loads, where that is known; the places of arrays are then none of its matter.
        """
        closed = closing and self.core.closed is not None and any(isa_of(i.isa).fills_widest(i) for i in instructions)
        known = [self._instruction(i, row, closed) for i, row in zip(instructions, rows, strict=True)]
        kinds, traits = [kind for kind, _ in known], 0
        for kind in kinds:
            traits |= kind.traits
        numbers, addresses = [number for _, number in known], _Listed(instructions, links, self._kept_steps)
        block = self._joined(kinds, numbers, traits, addresses, notion, places_of(instructions))
        return block if links is not None else self.placed(block, places, self.aliases(block, places.in_page))

    def join(
        self,
        kinds: Sequence[Kind],
        numbers: Sequence[int],
        traits: int,
        addresses: Addresses,
        notion: Notion,
        starts: Sequence[int] = (),
        places: Places = AT_LINES,
    ) -> LoweredBlock:
        """A block, made of instructions that the engine has.

        Args:
            kinds: of them; numbers: in the engine; traits: of all, as bits.
            addresses: what they say.
            notion: how the block is repeated.
            starts: as in `Look.places`; places: where the arrays lie, for a loop.
        """
        block = self._joined(kinds, numbers, traits, addresses, notion, starts)
        return self.placed(block, places, self.aliases(block, places.in_page))

    def _joined(
        self,
        kinds: Sequence[Kind],
        numbers: Sequence[int],
        traits: int,
        addresses: Addresses,
        notion: Notion,
        starts: Sequence[int],
    ) -> LoweredBlock:
        """The parts of a block that do not depend on where its arrays lie, joined."""
        pairs = self._fusing(kinds) if traits & JUMPS else {}
        links, simulated, incomparable = (
            self._links(addresses) if traits & LOADS and traits & STORES else ((), (), False)
        )
        look = Look(numbers, [(place, number) for place, (_, number) in pairs.items()], links, simulated, starts)
        fused = {place: pair for place, (pair, _) in pairs.items()}
        templates = [kind.template for kind in kinds]
        return LoweredBlock(templates, fused, look, incomparable, notion, traits, addresses)

    def placed(self, block: LoweredBlock, places: Places, aliases: Sequence[Forwarding] = ()) -> LoweredBlock:
        """The block with its arrays at other addresses, which matters in a loop; `aliases` are those there."""
        lines = self.core.pipeline and self.core.pipeline.memory.lines
        splits, slow = block.traits & SPLITS, lines and block.traits & (LOADS | STORES)
        placed = block.traits & (LOADS | STORES) and self.core.pipeline and self.core.pipeline.memory.placed
        if block.notion != "loop" or not (splits or slow or placed or aliases):
            return block
        shares = split_loads(block.addresses.accesses(), self.core.parameters.loads, places) if splits else {}
        accesses = _slow_accesses(block, lines, places) if slow and lines else ()
        shares |= {own.instruction: mean_longer(own) for own in accesses}
        if placed:
            accesses = placed_accesses(
                block.addresses.accesses(), self.core.parameters.loads, places, crossing=bool(self.core.splits)
            )
        each = [shares.get(number, 0.0) for number in range(len(block.templates))] if shares else ()
        look = block.look._replace(splits=each, accesses=accesses)
        if aliases:
            waits = [_behind_memory(link, block.templates[link.store[0]]) for link in aliases]
            look = look._replace(links=(*look.links, *waits), simulated_links=self._simulated(look, aliases))
        return block._replace(look=look)

    def _simulated(self, look: Look, aliases: Sequence[Forwarding]) -> Sequence[Forwarding]:
        """The links for the simulation, in which stores hand on their data after the time that forwarding takes."""
        if self.core.pipeline is None:
            return ()
        forward = self.core.pipeline.memory.forward_latency
        later = [link._replace(cycles=max(0, link.cycles - forward)) for link in aliases]
        return (*look.simulated_links, *later)

    def aliases(self, block: LoweredBlock, in_page: Mapping[int, int]) -> tuple[Forwarding, ...]:
        """The stores to other addresses that loads of a loop wait for; `in_page` as in `Places`."""
        reach = self.core.parameters.loads.aliased_stores
        if not (reach and in_page and block.notion == "loop" and self.core.graph.memory == "moving"):
            return ()
        latencies = {
            number: max((cycles for _, cycles in template.flow.special.loads), default=0.0)
            for number, template in enumerate(block.templates)
            if template.flow.special is not None
        }
        return aliased_stores(block.addresses.accesses(), in_page, latencies, reach)

    def bound(self, block: LoweredBlock, offset: int, all_parts: bool = False, scope: int = WHOLE) -> Answer | None:
        """What bounds a block at an address; None if it is beyond the engine. Further arguments as in `Request`."""
        return self.engine.block(block.look, block.look.request(block.notion == "unrolled", offset, all_parts, scope))

    def _links(self, addresses: Addresses) -> tuple[Sequence[Forwarding], Sequence[Forwarding], bool]:
        """Forwardings for dependencies and for the simulation, and whether some addresses could not be compared."""
        policy, memory = self.core.graph.memory, self.core.switches.memory
        moving = policy == "moving"
        found, incomparable = addresses.feeding() if moving else forwardings(addresses.instructions(), policy)
        forwards = self.core.pipeline and self.core.pipeline.memory.forwards
        if forwards and found:
            own = addresses.instructions()
            found = [link._replace(cycles=forward_cycles(link, own, forwards)) for link in found]
        if self.core.pipeline is None or (moving and memory == policy):
            return found, found if self.core.pipeline else (), incomparable
        return found, named_links(addresses.instructions(), memory), incomparable

    def _fusing(self, kinds: Sequence[Kind]) -> dict[int, tuple[Pair, int]]:
        """By first instruction, the pairs that may macro-fuse, with their numbers in the engine."""
        found = {}
        for place, (first, branch) in enumerate(pairwise(kinds)):
            if branch.traits & JUMPS:
                key = first.numbers[0], branch.numbers[0]
                if key not in self._pairs:
                    pair = self.lowering.pair(first.template, branch.template)
                    self._pairs[key] = None if pair is None else (pair, self.engine.pair(pair))
                known = self._pairs[key]
                if known is not None:
                    found[place] = known
        return found

    def _instruction(self, instruction: Instruction, row: InstructionData | None, closed: bool) -> tuple[Kind, int]:
        if self._kept is None:
            return self._new(instruction, row, closed)
        key = (_key_of(instruction), closed, row is None)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._new(instruction, row, closed)
        return found

    def _new(self, instruction: Instruction, row: InstructionData | None, closed: bool) -> tuple[Kind, int]:
        kind = self.kind(instruction, row, closed)
        resources = [self._memo.number(name) for name in kind.template.registers]
        layout = layout_of(instruction.length, instruction.encoding)
        return kind, self.engine.instruction(kind.numbers, layout, resources)

    def kind(self, instruction: Instruction, row: InstructionData | None, closed: bool, shape: Hashable = None) -> Kind:
        """The kind of an instruction; arguments as in `Lowering.template`."""
        template = self.lowering.template(instruction, row, closed, shape)
        memory = instruction.memory
        traits = (
            LOADS * any(reference.read for reference in memory)
            | STORES * any(reference.written for reference in memory)
            | JUMPS * (template.traits.jump >= 0)
            | SPLITS * may_split(instruction, self.core.splits)
            | WIDE * (self.core.closed is not None and isa_of(instruction.isa).fills_widest(instruction))
        )
        return Kind(template, self.engine.template(template), traits)

    def ports(self, mask: int) -> tuple[str, ...]:
        """The ports of a set, in the order of display."""
        found = self._ports.get(mask)
        if found is None:
            known = self.core.parameters.ports
            found = self._ports[mask] = tuple([port for number, port in enumerate(known) if mask >> number & 1])
        return found


def _slow_accesses(block: LoweredBlock, lines: Lines, places: Places) -> Sequence[Access]:
    """What becomes of the accesses of a block by their addresses."""
    known = block.addresses.at_lines if places is AT_LINES else {}
    found = known.get(lines)
    if found is None:
        general = {
            number
            for number, template in enumerate(block.templates)
            if not template.instruction.vector_bytes and any(r.written for r in template.instruction.memory)
        }
        found = known[lines] = slow_accesses(block.addresses.accesses(), general, lines, places)
    return found


def _behind_memory(link: Forwarding, store: Template) -> Forwarding:
    """A wait for the data of a store as one for what it makes of memory, which the row of a plain store says to come
    later."""
    place, special, uops = link.store[1], store.flow.special, store.uops
    if special is None or uops is None or any(uops.uops[data].inside for at, data, _, _ in uops.stores if at == place):
        return link
    value = dict(special.stores)[place]
    later = max((cycles for target, _, cycles in store.flow.waits if target == value), default=0.0)
    return link._replace(cycles=max(0, link.cycles - round(later)))


def _key_of(instruction: Instruction) -> Hashable:
    """What a template and the layout of an instruction depend on: everything but its place and its text."""
    i = instruction
    implicit = (i.implicit_reads, i.implicit_writes, i.flags_read, i.flags_written)
    return (
        i.form,
        i.operands,
        i.memory,
        implicit,
        i.branch,
        i.same_register,
        i.has_mask,
        layout_of(i.length, i.encoding),
    )


def layout_of(length: int, encoding: Encoding) -> tuple[int, int, int, int, int, int]:
    """Length of an instruction, the place of its opcode, whether it has a length-changing prefix, or an immediate of 8
    bytes, and its constants and long constants (`front_end.model.Unit`)."""
    sizes = (encoding.displacement_bytes, encoding.immediate_bytes)
    wide = encoding.immediate_bytes == WIDE_IMMEDIATE_BYTES
    constants, short = sum(-(-size // _CONSTANT_BYTES) for size in sizes), sizes.count(1)
    return length, encoding.opcode_offset, encoding.length_changing_prefix, wide, constants, constants - short


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
