"""The prediction for machine code without what only a report shows, for batches of blocks.

The same bounds as in `analyse`, hence the same numbers and reasons. What depends on an instruction and the core only
is kept by the bytes of the instruction: its decoding, its row, its data flow and its µops.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from kernmodel.incore.answer.analyse import chain_of, loop_carried, throughput_of
from kernmodel.incore.answer.components import (
    DIVIDER,
    FRONT_TO_BACK,
    PIPELINE,
    PRECEDENCE,
    TINY,
    WIDEST,
    CoreModel,
    Memo,
    bounds_of,
    one_at_a_time,
    row_of,
)
from kernmodel.incore.answer.reasons import Busy, Filled, Front, clause, filled_of
from kernmodel.incore.answer.verdict import BoundBy, binding_of, verdict_of
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings
from kernmodel.incore.dependences.adders import is_addition
from kernmodel.incore.dependences.addresses import AddressStep, Forwarding, address_step, forwardings, renamed_step
from kernmodel.incore.dependences.cycles import Cycle
from kernmodel.incore.dependences.data_flow import HIGH, HIGH_PARENTS, memory_text
from kernmodel.incore.dependences.forwarding import links
from kernmodel.incore.dependences.graph import SYNCHRONISED
from kernmodel.incore.engine.analyser import Analyser, Answer, Fused, Shape, analyser_of
from kernmodel.incore.engine.fetch import WIDE_IMMEDIATE_BYTES
from kernmodel.incore.engine.memo import Shared
from kernmodel.incore.engine.program import REASONS, SOURCES
from kernmodel.incore.model import Chain, InstructionData, Notion
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.incore.tables.extensions import is_missing, refuse_missing
from kernmodel.isa import DEFAULT, isa_of
from kernmodel.isa.linear import ZERO
from kernmodel.isa.memo import MOST_KNOWN, Decoded, DecodeMemo, Key
from kernmodel.isa.model import Instruction

_MOST_BLOCKS = 20_000
"""Blocks that are kept; then all are forgotten."""
_LONGEST_KEPT = 1024
"""Bytes of the longest block that is kept."""


class Prediction(NamedTuple):
    """The answer for one block.

    Attributes:
        notion: how it was repeated.
        cycles: per pass.
        bound_by, reason: as in `InCore`.
        components: cycles of those that apply, by name.
        binding: those that explain the prediction.
        unknown, estimated: forms without a row, forms whose rows were estimated.
        warnings: codes of the warnings that the analysis gives.
    """

    notion: Notion
    cycles: float
    bound_by: BoundBy
    reason: str
    components: dict[str, float]
    binding: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Kind(NamedTuple):
    """What was found out about instructions that are alike.

    Attributes:
        instruction, row: one of them, and the row of all.
        warnings: codes of warnings about them.
        names: what `instruction` has in place of the registers that others name.
        shape: in the engine, None without it; slots: per slot of it, the place among the registers that an instruction
            names and their high bytes, or ~ the number of another resource.
        traits: what a block with one of them has, as bits.
    """

    instruction: Instruction
    row: InstructionData | None
    warnings: tuple[str, ...]
    names: tuple[str, ...]
    shape: Shape | None
    slots: tuple[int, ...]
    traits: int


_MISSING, _STACK, _LOADS, _STORES, _BRANCHES, _BEYOND, _BEYOND_LOOPS, _WARNED = (1 << bit for bit in range(8))
"""Traits of instructions: the core lacks an extension for it; it uses the stack of the x87; it accesses memory; it
leaves the block; the engine does not know a rule for it, or for it in loops; there are warnings about it."""


class _Known(NamedTuple):
    """An instruction: its kind, its number in the engine (-1 without it), what it means for addresses."""

    piece: Decoded
    kind: _Kind
    number: int

    def carrier(self, value: int, pieces: DecodeMemo) -> str:
        """Where one of the values is that the instruction loads or produces, as `DataFlow.carriers`."""
        shape = self.kind.shape
        place = None if shape is None else shape.place_of(value)
        if shape is None or place is not None:
            return memory_text(pieces.instruction(self.piece).memory[place or 0], "intel")
        carrier = shape.flow.carriers[value]
        return self.piece.registers[self.kind.names.index(carrier)] if carrier in self.kind.names else carrier


class _Cut:
    """A block in pieces, and which stores feed which loads, once that was asked for."""

    __slots__ = ("feeding", "pieces")

    def __init__(self, pieces: Sequence[Decoded] | None) -> None:
        self.pieces = pieces
        self.feeding: Sequence[Forwarding] | None = None


class _Facts(NamedTuple):
    """What instructions that are alike have in common on all cores.

    Attributes:
        instruction, names: as in `Representative`.
        needs: extensions without which cores do not have it.
        privileged: whether user code may not execute it; stack: whether it uses registers of the x87.
    """

    instruction: Instruction
    names: tuple[str, ...]
    needs: frozenset[str]
    privileged: bool
    stack: bool


class Code:
    """Instructions and blocks met before, whatever the core: predictors of several cores may share them."""

    __slots__ = ("_cut", "_facts", "_steps", "_steps_alike", "isa_name", "pieces", "shared")

    def __init__(self, isa_name: str = DEFAULT) -> None:
        self.isa_name = isa_name
        self.pieces = isa_of(isa_name).memo()
        self.shared = Shared()
        self._steps: dict[Key, AddressStep] = {}
        self._steps_alike: dict[Hashable, AddressStep] = {}
        self._cut: dict[bytes, _Cut] = {}
        self._facts: dict[Hashable, _Facts] = {}

    def cut(self, code: bytes) -> _Cut:
        """A block in pieces; the same block is often asked for on several cores."""
        found = self._cut.get(code)
        if found is None:
            found = _Cut(self.pieces.decode(code))
            if len(self._cut) >= _MOST_BLOCKS:
                self._cut.clear()
            if len(code) <= _LONGEST_KEPT:
                self._cut[code] = found
        return found

    def feeding(self, block: _Cut) -> Sequence[Forwarding]:
        """Which stores of a block feed which loads, addresses followed from pass to pass."""
        if block.feeding is None:
            pieces = block.pieces or []
            # of these, only whether they load and store is asked
            alike = [self.pieces.representative(piece).instruction for piece in pieces]
            block.feeding = forwardings(alike, "moving", [self.step(piece) for piece in pieces])[0]
        return block.feeding

    def facts(self, piece: Decoded) -> _Facts:
        """What is known of an instruction on all cores."""
        found = self._facts.get(piece.shape)
        if found is None:
            if len(self._facts) >= MOST_KNOWN:
                self._facts.clear()
            instruction, names = self.pieces.representative(piece)
            isa = isa_of(instruction.isa)
            needs, privileged = isa.features(instruction), isa.is_privileged(instruction)
            found = _Facts(instruction, names, needs, privileged, isa.names_by_top(instruction))
            self._facts[piece.shape] = found
        return found

    def step(self, piece: Decoded) -> AddressStep:
        """What an instruction means for addresses."""
        found = self._steps.get(piece.key)
        if found is None:
            if len(self._steps) >= MOST_KNOWN:
                self._steps.clear()
                self._steps_alike.clear()
            found = self._steps[piece.key] = self._step(piece)
        return found

    def _step(self, piece: Decoded) -> AddressStep:
        alike, names = self.pieces.representative(piece)
        step = self._steps_alike.get(piece.shape)
        if step is None:
            step = self._steps_alike[piece.shape] = address_step(alike)
        if piece.is_its_own or not (step.places or step.writes):
            return step
        if any(value is not None and value != ZERO for _, value in step.writes):
            return address_step(self.pieces.instruction(piece))  # its own registers and constants enter
        own = dict(zip(names, piece.registers, strict=True))
        if step.places:
            return renamed_step(step, alike.memory[0], own, *piece.address_constants, alike.isa)
        return AddressStep((), tuple([(own.get(name, name), value) for name, value in step.writes]))


class Predictor:
    """Predicts blocks on one core with the same settings."""

    __slots__ = ("_analyser", "_code", "_fused", "_kinds", "_known", "_memo", "_numbers", "core", "pieces", "settings")

    def __init__(self, core: Core, settings: Settings, code: Code | None = None) -> None:
        self.core = core
        self.settings = settings
        self._code = code or Code()
        self.pieces = self._code.pieces
        self._forget()

    def _forget(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}
        self._known: dict[Key, _Known] = {}
        self._fused: dict[tuple[int, int], Fused] = {}
        self._numbers: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._memo = Memo()
        self._analyser = analyser_of(self.core.model, self._code.shared)

    def predict(self, code: bytes, notion: Notion | None = None, offset: int | None = None) -> Prediction | None:
        """The prediction for a block, None where `analyse_block` has to look at it.

        That is code with bytes that are no instruction, with branches before its end or into itself, or of the x87; and
        the port model of the OSACA papers.

        Args:
            code: the block; its first byte has the address 0, if nothing else is said.
            notion, offset: in place of those of the settings.

        Raises:
            InstructionTableError: an instruction that the core lacks (without its place), or a malformed row.
        """
        if len(self._known) >= MOST_KNOWN:
            self._forget()
        if self.settings.port_model != "optimal" or self.core.parameters.isa != self._code.isa_name:
            return None
        cut = self._code.cut(code)
        found = cut.pieces
        if not found:
            return None
        known, traits, before = self._look_up(found)
        if traits & _STACK or before & _BRANCHES or _jumps_inside(found[-1], len(code)):
            return None
        if traits & _MISSING:
            self._refuse(known)
        chosen = notion or self.settings.notion
        if chosen == "auto":
            chosen = "loop" if known[-1].kind.instruction.branch in ("conditional", "jump") else "unrolled"
        place = (offset if offset is not None else self.settings.offset or 0) % CODE_ALIGNMENT
        filled, blocked = self._bounded(cut, known, traits, chosen, place)
        warned = [one.kind for one in known if one.kind.warnings] if traits & _WARNED else []
        return self._prediction(warned, chosen, filled, blocked)

    def _refuse(self, known: list[_Known]) -> None:
        missing = next(one for one in known if one.kind.traits & _MISSING)
        instruction = replace(missing.kind.instruction, text=self.pieces.text(missing.piece))
        refuse_missing((instruction,), self.core.lacked, self.core.parameters, "")

    def _look_up(self, pieces: Sequence[Decoded]) -> tuple[list[_Known], int, int]:
        """What is known of the instructions of a block; the traits of all, and of all but the last."""
        known = []
        traits = before = 0
        for piece in pieces:
            before = traits
            one = self._known.get(piece.key) or self._find_out(piece)
            known.append(one)
            traits |= one.kind.traits
        return known, traits, before

    def _bounded(self, cut: _Cut, known: list[_Known], traits: int, notion: Notion, place: int) -> tuple[Filled, bool]:
        """What bounds a block, and whether a forwarding is blocked."""
        beyond = _BEYOND | _BEYOND_LOOPS if notion == "loop" else _BEYOND
        if self._analyser is None or traits & beyond:
            return self._by_bounds(known, notion, place)
        loads_and_stores = traits & _STORES and traits & _LOADS
        feeding, simulated = self._links(cut, known) if loads_and_stores else ((), ())
        found = self._by_engine(self._analyser, known, notion, place, feeding, simulated)
        if found is None:
            return self._by_bounds(known, notion, place)
        return found.filled(), not all(link.whole for link in feeding)

    def _prediction(self, warned: list[_Kind], notion: Notion, filled: Filled, blocked: bool) -> Prediction:
        applied, cycles = dict(filled.applied), filled.prediction
        component, bound_by = verdict_of(applied, cycles, filled.stalls)
        reason, binding = clause(component, filled), binding_of(applied, cycles)
        if not warned and not blocked:
            return Prediction(notion, cycles, bound_by, reason, applied, binding)
        return Prediction(
            notion,
            cycles,
            bound_by,
            reason,
            applied,
            binding,
            unknown=_forms(warned, _UNKNOWN),
            estimated=_forms(warned, _ESTIMATED),
            warnings=_warnings(warned, blocked),
        )

    def _by_bounds(self, known: list[_Known], notion: Notion, place: int) -> tuple[Filled, bool]:
        """The same in plain Python."""
        instructions = tuple([self.pieces.instruction(one.piece) for one in known])
        rows = tuple([one.kind.row for one in known])
        keys, memo, model = [one.piece.key for one in known], self._memo, self.core.model
        bounds = bounds_of(instructions, rows, model, notion, place, syntax="intel", keys=keys, memo=memo)
        filled = filled_of(
            instructions,
            rows,
            model.parameters,
            bounds,
            lambda: loop_carried(bounds.graph, bounds.cycle)[0],
            lambda: throughput_of(bounds.uses, rows, model.parameters.ports),
            "optimal",
        )
        return filled, bool(bounds.graph.blocked)

    def _by_engine(
        self,
        analyser: Analyser,
        known: list[_Known],
        notion: Notion,
        place: int,
        feeding: Sequence[Forwarding],
        simulated: Sequence[Forwarding],
    ) -> _Found | None:
        """What the engine says, None where the block is beyond it."""
        fused = self._fused_with_branch(analyser, known)
        numbers = [one.number for one in known]
        parts = -1 if fused is None else fused.parts
        answer = analyser.block(numbers, notion == "unrolled", place, parts, feeding, simulated)
        return None if answer is None else _Found(analyser, known, answer, fused, self.pieces)

    def _fused_with_branch(self, analyser: Analyser, known: list[_Known]) -> Fused | None:
        """The µops of the last two instructions if they are of kinds that macro-fuse."""
        if len(known) < 2 or known[-1].kind.instruction.branch != "conditional":
            return None
        first, branch = known[-2].kind.shape, known[-1].kind.shape
        if first is None or branch is None or branch.instruction.mnemonic not in first.jumps:
            return None
        key = (first.number, branch.number)
        if key not in self._fused:
            self._fused[key] = analyser.fused(first, branch)
        return self._fused[key]

    def _links(self, cut: _Cut, known: list[_Known]) -> tuple[Sequence[Forwarding], Sequence[Forwarding]]:
        """Which stores feed which loads, for the dependencies and for the simulation."""
        model = self.core.model
        if model.switches.memory == model.graph.memory == "moving":
            found = self._code.feeding(cut)
            return found, found
        instructions = [self.pieces.instruction(one.piece) for one in known]
        return forwardings(instructions, model.graph.memory)[0], links(instructions, model.switches.memory)

    def _find_out(self, piece: Decoded) -> _Known:
        kind = self._kinds.get(piece.shape)
        if kind is None:
            kind = self._kinds[piece.shape] = self._kind_of(piece)
        number = -1
        if self._analyser is not None and kind.shape is not None:
            own = self._resources(piece.registers)
            resources = [own[slot] if slot >= 0 else ~slot for slot in kind.slots]
            number = self._analyser.instruction(kind.shape, _layout(piece), resources)
        known = self._known[piece.key] = _Known(piece, kind, number)
        return known

    def _resources(self, registers: tuple[str, ...]) -> tuple[int, ...]:
        """The numbers of the registers that an instruction names, then those of their high bytes, -1 for none."""
        found = self._numbers.get(registers)
        if found is None:
            number = self._code.shared.number
            high = [number(name + HIGH) if name in HIGH_PARENTS else -1 for name in registers]
            found = self._numbers[registers] = (*map(number, registers), *high)
        return found

    def _kind_of(self, piece: Decoded) -> _Kind:
        instruction, names, needs, privileged, stack = self._code.facts(piece)
        row = row_of(instruction, self.core.table)
        # the registers of the x87 depend on the instructions before: analyse_block gives them fixed names
        missing = not needs.isdisjoint(self.core.lacked) and is_missing(instruction, self.core.lacked)
        shape = (
            None if self._analyser is None or missing or stack else self._analyser.shape(piece.shape, instruction, row)
        )
        warnings = _warnings_about(instruction, row, privileged)
        traits = _traits(instruction, self.core.model) | _MISSING * missing | _STACK * stack | _WARNED * bool(warnings)
        slots = () if shape is None else self._slots(shape, names)
        return _Kind(instruction, row, warnings, names, shape, slots, traits)

    def _slots(self, shape: Shape, names: tuple[str, ...]) -> tuple[int, ...]:
        own = {name: place for place, name in enumerate((*names, *[name + HIGH for name in names]))}
        number = self._code.shared.number
        return tuple([own[name] if name in own else ~number(name) for name in shape.registers])


def _traits(instruction: Instruction, model: CoreModel) -> int:
    memory = instruction.memory
    wide = model.closed is not None and instruction.vector_bytes == WIDEST
    return (
        _LOADS * any(reference.read for reference in memory)
        | _STORES * any(reference.written for reference in memory)
        | _BRANCHES * (instruction.branch not in (None, "call"))
        | _BEYOND * (wide or (model.graph.adders is not None and is_addition(instruction)))
        | _BEYOND_LOOPS * any(r.read and r.size_bytes in model.splits for r in memory)
    )


def _layout(piece: Decoded) -> tuple[int, int, int, int]:
    encoding = piece.encoding
    wide = encoding.immediate_bytes == WIDE_IMMEDIATE_BYTES
    return piece.length, encoding.opcode_offset, encoding.length_changing_prefix, wide


class _Found:
    """The engine's answer for a block as the sentences need it."""

    __slots__ = ("_analyser", "_answer", "_fused", "_known", "_pieces")

    def __init__(
        self, analyser: Analyser, known: list[_Known], answer: Answer, fused: Fused | None, pieces: DecodeMemo
    ) -> None:
        self._analyser = analyser
        self._known = known
        self._answer = answer
        self._fused = fused if answer.fused else None
        self._pieces = pieces

    def filled(self) -> Filled:
        """All of it; what only some sentences need is made when asked for."""
        found = self._answer
        components = {name: found.components[number] for number, name in _components(found.applies)}
        applied = components
        if found.through_memory and components[PRECEDENCE] > components.get(PIPELINE, math.inf) + TINY:
            applied = {name: cycles for name, cycles in components.items() if name != PRECEDENCE}
        return Filled(
            mnemonics=[one.kind.instruction.mnemonic for one in self._known],
            issue_width=self._analyser.model.parameters.issue_width,
            components=components,
            applied=applied,
            front=self._front,
            stalls=self._stalls,
            lcd=self._carried,
            ports=self._ports,
            divider=lambda: self._busy(found.components[_DIVIDER_PLACE], found.divider),
        )

    def _stalls(self) -> dict[str, float] | None:
        if not self._answer.applies >> _PIPELINE_PLACE & 1:
            return None
        period = max(self._answer.period, 1)
        return {name: count / period for name, count in zip(REASONS, self._answer.stalls, strict=True)}

    def _front(self) -> Front:
        found = self._answer
        return Front(
            source=SOURCES[found.source],
            copies=found.copies,
            length=found.length,
            prefixed=found.prefixed,
            units=found.units,
            complex_units=found.complex_units,
            decoded=found.decoded,
            slots=found.slots,
            entries=found.entries,
            synchronisations=found.synchronisations,
            erratum=found.erratum,
        )

    def _ports(self) -> Busy:
        found = self._answer
        divides = found.applies >> _DIVIDER_PLACE & 1
        if found.slow > found.ports_alone + (0.0 if divides else TINY):
            return Busy(found.slow, (), one_at_a_time([one.kind.row for one in self._known])[0])
        return self._busy(found.ports_alone, found.ports)

    def _busy(self, cycles: float, ports: int) -> Busy:
        needs = [one.kind.shape is not None and _needs(one.kind.shape.ports, ports) for one in self._known]
        if self._fused is not None:
            needs[-2] = _needs(self._fused.ports, ports)
        users = [one.kind.instruction.mnemonic for one, own in zip(self._known, needs, strict=True) if own]
        return Busy(cycles, self._analyser.ports(ports), tuple(users))

    def _carried(self) -> Chain | None:
        if not self._answer.cycle_length:
            return None
        owners: dict[int, int] = {}
        carriers: dict[int, str] = {}
        edges = []
        for edge, (owner, value), _ in self._analyser.cycle(self._answer.cycle_length):
            edges.append(edge)
            owners[edge.source] = owner
            carriers[edge.source] = SYNCHRONISED if value < 0 else self._known[owner].carrier(value, self._pieces)
        return chain_of(owners, carriers, Cycle(tuple(edges)))


@cache
def _needs(masks: tuple[int, ...], ports: int) -> bool:
    """Whether some of the µops with these ports can go nowhere but to some ports."""
    return any(mask and not mask & ~ports for mask in masks)


@cache
def _components(applies: int) -> tuple[tuple[int, str], ...]:
    return tuple((number, name) for number, name in enumerate(FRONT_TO_BACK) if applies >> number & 1)


_DIVIDER_PLACE, _PIPELINE_PLACE = FRONT_TO_BACK.index(DIVIDER), FRONT_TO_BACK.index(PIPELINE)


def _jumps_inside(last: Decoded, length: int) -> bool:
    """Whether code that ends so jumps into itself, but to its start."""
    return last.reach is not None and 0 < length - last.length + last.reach < length


_UNKNOWN, _ESTIMATED = "unknown-instruction", "estimated-instruction"
_ORDER = (
    "privileged-instruction",
    _ESTIMATED,
    _UNKNOWN,
    "repeat-count",
    "store-forward-blocked",
)
"""Warnings in the order in which an analysis gives them."""


def _warnings_about(instruction: Instruction, row: InstructionData | None, privileged: bool) -> tuple[str, ...]:
    found = []
    if privileged:
        found.append("privileged-instruction")
    if row is None:
        found.append(_UNKNOWN)
    elif row.source.startswith(ESTIMATED):
        found.append(_ESTIMATED)
    if isa_of(instruction.isa).repeats(instruction):
        found.append("repeat-count")
    return tuple(found)


def _forms(kinds: list[_Kind], warning: str) -> tuple[str, ...]:
    """The forms that there is a warning about."""
    return tuple(dict.fromkeys([kind.instruction.form for kind in kinds if warning in kind.warnings]))


def _warnings(kinds: list[_Kind], blocked: bool) -> tuple[str, ...]:
    found = {code for kind in kinds for code in kind.warnings}
    if blocked:
        found.add("store-forward-blocked")
    return tuple(code for code in _ORDER if code in found) if found else ()
