"""The prediction for machine code without what only a report shows, for batches of blocks.

The same bounds as in `analyse`, hence the same numbers and reasons. What depends on an instruction and the core only
is kept by the bytes of the instruction: its decoding, its row, its data flow and its µops.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from kernmodel.incore.answer.analyse import chain_of
from kernmodel.incore.answer.components import row_of
from kernmodel.incore.answer.reasons import BlockFacts, block_facts, reason_of
from kernmodel.incore.answer.verdict import BoundBy, binding_of, reaching, verdict_of
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings
from kernmodel.incore.dependences.addresses import (
    AddressStep,
    BodyAccesses,
    Forwarding,
    address_step,
    forwardings,
    renamed_step,
)
from kernmodel.incore.dependences.cycles import Cycle
from kernmodel.incore.dependences.data_flow import HIGH, memory_text
from kernmodel.incore.dependences.graph import synchronised
from kernmodel.incore.dependences.line_splits import Lines, Places
from kernmodel.incore.engine.analyser import FREE, WIDE, Analyser, Kind, layout_of
from kernmodel.incore.engine.interface import Answer
from kernmodel.incore.engine.layout import Access
from kernmodel.incore.engine.lowering import Template
from kernmodel.incore.engine.memo import Memo
from kernmodel.incore.model import Chain, InstructionData, Notion, Reason
from kernmodel.incore.tables.estimate import ESTIMATED
from kernmodel.incore.tables.extensions import is_missing, refuse_missing
from kernmodel.isa import DEFAULT, isa_of
from kernmodel.isa.linear import ZERO
from kernmodel.isa.memo import MOST_KNOWN, NEAR, Decoded, DecodeMemo, Key
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

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
    reason: Reason
    components: dict[str, float]
    binding: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Kind(NamedTuple):
    """What was found out about instructions that are alike.

    Attributes:
        instruction: one of them.
        warnings: codes of warnings about them.
        names: what `instruction` has in place of the registers that others name.
        lowered: in the engine; None where it cannot be there.
        slots: per register of the template, the place among the registers that an instruction names and their high
            bytes, or ~ the number of another resource.
        traits: what a block with one of them has, as bits.
    """

    instruction: Instruction
    warnings: tuple[str, ...]
    names: tuple[str, ...]
    lowered: Kind | None
    slots: tuple[int, ...]
    traits: int


_MISSING, _STACK, _BRANCHES, _WARNED = (FREE << bit for bit in range(4))
"""Further traits of instructions: the core lacks an extension for it; it uses the stack of the x87; it leaves the
block; there are warnings about it."""


class _Known(NamedTuple):
    """An instruction: its kind, and its number in the engine."""

    decoded: Decoded
    kind: _Kind
    number: int

    def carrier(self, value: int, template: Template, decoder: DecodeMemo) -> str:
        """Where one of the values is that the instruction loads or produces, as `DataFlow.carriers`."""
        place, carrier = template.loaded_or_stored(value), template.flow.carriers[value]
        if place is not None or not isinstance(carrier, str):
            return memory_text(decoder.instruction(self.decoded).memory[place or 0], "intel")
        return self.decoded.registers[self.kind.names.index(carrier)] if carrier in self.kind.names else carrier


class _DecodedBlock:
    """A decoded block, and which stores feed which loads, once that was asked for; its methods as in `Addresses`."""

    __slots__ = ("_accesses", "_feeding", "_steps", "at_lines", "decoded")

    def __init__(self, decoded: Sequence[Decoded], steps: Steps) -> None:
        self.decoded = decoded
        self._steps = steps
        self.at_lines: dict[Lines, Sequence[Access]] = {}
        self._accesses: BodyAccesses | None = None
        self._feeding: tuple[Sequence[Forwarding], bool] | None = None

    def instructions(self) -> Sequence[Instruction]:
        return [self._steps.decoder.instruction(own) for own in self.decoded]

    def accesses(self) -> BodyAccesses:
        if self._accesses is None:
            self._accesses = BodyAccesses([self._steps.of(own) for own in self.decoded])
        return self._accesses

    def feeding(self) -> tuple[Sequence[Forwarding], bool]:
        if self._feeding is None:
            # of these, only whether they load and store is asked
            alike = [self._steps.decoder.representative(own).instruction for own in self.decoded]
            self._feeding = forwardings(alike, "moving", self.accesses())
        return self._feeding


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


class Steps:
    """What instructions met before mean for addresses.

    Blocks know no more than this of `Code`, which keeps them: so all of it is free once nobody needs it, without a
    search for garbage.
    """

    __slots__ = ("_alike", "_known", "decoder")

    def __init__(self, decoder: DecodeMemo) -> None:
        self.decoder = decoder
        self._known: dict[Key, AddressStep] = {}
        self._alike: dict[Hashable, AddressStep] = {}

    def of(self, decoded: Decoded) -> AddressStep:
        """What an instruction means for addresses."""
        found = self._known.get(decoded.key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
                self._alike.clear()
            found = self._known[decoded.key] = self._made(decoded)
        return found

    def _made(self, decoded: Decoded) -> AddressStep:
        alike, names = self.decoder.representative(decoded)
        step = self._alike.get(decoded.shape)
        if step is None:
            step = self._alike[decoded.shape] = address_step(alike)
        if decoded.is_its_own or not (step.places or step.writes):
            return step
        if any(value is not None and value != ZERO for _, value in step.writes):
            return address_step(self.decoder.instruction(decoded))  # its own registers and constants enter
        own = dict(zip(names, decoded.registers, strict=True))
        if step.places:
            return renamed_step(step, alike.memory[0], own, *decoded.address_constants, alike.isa)
        return AddressStep((), tuple([(own.get(name, name), value) for name, value in step.writes]))


class Code:
    """Instructions and blocks met before, whatever the core: predictors of several cores may share them."""

    __slots__ = ("_blocks", "_facts", "decoder", "isa_name", "memo", "steps")

    def __init__(self, isa_name: str = DEFAULT) -> None:
        self.isa_name = isa_name
        self.decoder = isa_of(isa_name).memo()
        self.memo = Memo(isa_name)
        self.steps = Steps(self.decoder)
        self._blocks: dict[bytes, _DecodedBlock] = {}
        self._facts: dict[Hashable, _Facts] = {}

    def block(self, code: bytes) -> _DecodedBlock:
        """A block, decoded; the same block is often asked for on several cores."""
        found = self._blocks.get(code)
        if found is None:
            found = _DecodedBlock(self.decoder.decode(code) or (), self.steps)
            if len(self._blocks) >= _MOST_BLOCKS:
                self._blocks.clear()
            if len(code) <= _LONGEST_KEPT:
                self._blocks[code] = found
        return found

    def facts(self, decoded: Decoded) -> _Facts:
        """What is known of an instruction on all cores."""
        found = self._facts.get(decoded.shape)
        if found is None:
            if len(self._facts) >= MOST_KNOWN:
                self._facts.clear()
            instruction, names = self.decoder.representative(decoded)
            isa = isa_of(instruction.isa)
            needs, privileged = isa.features(instruction), isa.is_privileged(instruction)
            found = _Facts(instruction, names, needs, privileged, isa.names_by_top(instruction))
            self._facts[decoded.shape] = found
        return found


class Predictor:
    """Predicts blocks on one core with the same settings."""

    __slots__ = (
        "_analyser",
        "_answers",
        "_code",
        "_kinds",
        "_known",
        "_numbers",
        "core",
        "decoder",
        "settings",
    )

    def __init__(self, core: Core, settings: Settings, code: Code | None = None) -> None:
        self.core = core
        self.settings = settings
        self._code = code or Code()
        self.decoder = self._code.decoder
        known_code = core.parameters.isa == self._code.isa_name
        self._answers = known_code and settings.port_model == "optimal" and self._tells_shapes_apart()
        self._forget()

    def _forget(self) -> None:
        self._kinds: dict[tuple[Hashable, bool], _Kind] = {}
        self._known: tuple[dict[Key, _Known], dict[Key, _Known]] = ({}, {})
        self._numbers: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._analyser = Analyser(self.core.model, self._code.memo)

    def predict(
        self, code: bytes, notion: Notion | None = None, offset: int | None = None, places: Places | None = None
    ) -> Prediction | None:
        """The prediction for a block, None where `analyse_block` has to look at it.

        That is code with bytes that are no instruction, with branches before its end or into itself, or of the x87; and
        the port model of the OSACA papers.

        Args:
            code: the block; its first byte has the address 0, if nothing else is said.
            notion, offset, places: in place of those of the settings.

        Raises:
            InstructionTableError: an instruction that the core lacks (without its place), or a malformed row.
        """
        if len(self._known[0]) >= MOST_KNOWN:
            self._forget()
        if not self._answers:
            return None
        block = self._code.block(code)
        found = block.decoded
        if not found:
            return None
        known, traits, before = self._look_up(found, closed=False)
        if traits & _STACK or before & _BRANCHES or _jumps_inside(found[-1], len(code)):
            return None
        if traits & _MISSING:
            self._refuse(known)
        chosen = notion or self.settings.notion
        if chosen == "auto":
            chosen = "loop" if known[-1].kind.instruction.branch in ("conditional", "jump") else "unrolled"
        place = (offset if offset is not None else self.settings.offset or 0) % CODE_ALIGNMENT
        if traits & WIDE:
            known = self._look_up(found, closed=True)[0]
        kinds = [one.kind.lowered for one in known if one.kind.lowered is not None]
        placed = places or self.settings.places
        lowered = self._analyser.join(kinds, [one.number for one in known], traits, block, chosen, places=placed)
        answer = self._analyser.bound(lowered, place)
        if answer is None:
            return None
        fused = lowered.pairs if answer.totals.fused else {}
        templates = lowered.templates
        facts = block_facts(self._analyser, templates, fused, answer, lambda: self._carried(known, templates, answer))
        warned = [one.kind for one in known if one.kind.warnings] if traits & _WARNED else []
        return self._prediction(warned, chosen, facts, bool(lowered.blocked))

    def _tells_shapes_apart(self) -> bool:
        """Whether instructions of one shape are alike on this core: some cores tell their displacements apart."""
        pipeline = self.core.model.pipeline
        return pipeline is None or not pipeline.memory.pointer_saving or pipeline.memory.pointer_reach in (None, NEAR)

    def _refuse(self, known: list[_Known]) -> None:
        missing = next(one for one in known if one.kind.traits & _MISSING)
        instruction = replace(missing.kind.instruction, text=self.decoder.text(missing.decoded))
        refuse_missing((instruction,), self.core.lacked, self.core.parameters, "")

    def _look_up(self, decoded: Sequence[Decoded], closed: bool) -> tuple[list[_Known], int, int]:
        """What is known of the instructions of a block; the traits of all, and of all but the last."""
        found = self._known[closed]
        known = []
        traits = before = 0
        for own in decoded:
            before = traits
            one = found.get(own.key) or self._find_out(own, closed)
            known.append(one)
            traits |= one.kind.traits
        return known, traits, before

    def _prediction(self, warned: list[_Kind], notion: Notion, facts: BlockFacts, blocked: bool) -> Prediction:
        applied, cycles = dict(facts.applied), facts.prediction
        found = reaching(applied, cycles)
        component, bound_by = verdict_of(found, cycles, facts.stalls)
        reason, binding = reason_of(component, facts), binding_of(found)
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

    def _carried(self, known: list[_Known], templates: Sequence[Template], answer: Answer) -> Chain | None:
        """The longest loop-carried dependency of the latest block."""
        if not answer.totals.cycle_length:
            return None
        owners: dict[int, int] = {}
        carriers: dict[int, str] = {}
        edges = []
        for edge, owner, value in self._analyser.engine.cycle(answer.totals):
            edges.append(edge)
            owners[edge.source] = owner
            if value < 0:
                carriers[edge.source] = synchronised(self._code.isa_name)
            else:
                carriers[edge.source] = known[owner].carrier(value, templates[owner], self.decoder)
        return chain_of(owners, carriers, Cycle(tuple(edges)))

    def _find_out(self, decoded: Decoded, closed: bool) -> _Known:
        kind = self._kinds.get((decoded.shape, closed))
        if kind is None:
            kind = self._kinds[decoded.shape, closed] = self._kind_of(decoded, closed)
        number = -1
        if kind.lowered is not None:
            own = self._resources(decoded.registers)
            resources = [own[slot] if slot >= 0 else ~slot for slot in kind.slots]
            layout = layout_of(decoded.length, decoded.encoding)
            number = self._analyser.engine.instruction(kind.lowered.numbers, layout, resources)
        known = self._known[closed][decoded.key] = _Known(decoded, kind, number)
        return known

    def _resources(self, registers: tuple[str, ...]) -> tuple[int, ...]:
        """The numbers of the registers that an instruction names, then those of their high bytes, -1 for none."""
        found = self._numbers.get(registers)
        if found is None:
            number, halved = self._code.memo.number, isa_of(self._code.isa_name).registers.halved
            high = [number(name + HIGH) if name in halved else -1 for name in registers]
            found = self._numbers[registers] = (*map(number, registers), *high)
        return found

    def _kind_of(self, decoded: Decoded, closed: bool) -> _Kind:
        instruction, names, needs, privileged, stack = self._code.facts(decoded)
        row = row_of(instruction, self.core.table)
        # the registers of the x87 depend on the instructions before: analyse_block gives them fixed names
        missing = not needs.isdisjoint(self.core.lacked) and is_missing(instruction, self.core.lacked)
        warnings = _warnings_about(instruction, row, privileged)
        branches = instruction.branch not in (None, "call")
        traits = _MISSING * missing | _STACK * stack | _BRANCHES * branches | _WARNED * bool(warnings)
        if missing or stack:
            return _Kind(instruction, warnings, names, None, (), traits)
        kind = self._analyser.kind(instruction, row, closed, decoded.shape)
        slots = self._slots(kind.template, names)
        return _Kind(instruction, warnings, names, kind, slots, traits | kind.traits)

    def _slots(self, template: Template, names: tuple[str, ...]) -> tuple[int, ...]:
        own = {name: place for place, name in enumerate((*names, *[name + HIGH for name in names]))}
        number = self._code.memo.number
        return tuple([own[name] if name in own else ~number(name) for name in template.registers])


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
