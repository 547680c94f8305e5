"""Lowering: all that depends on an instruction and its core, as data that the engine executes.

A template says what an instruction is to the front end, which values it makes of which, its µops and its ports. It
names registers by the instruction's own names; in the engine these are slots, so that instructions that differ in
their registers only share one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.data_flow import DataFlow, is_eliminated_move, is_idiom
from kernmodel.incore.dependences.line_splits import split_cycles
from kernmodel.incore.engine.layout import Traits, TraitTimes, port_mask
from kernmodel.incore.engine.memo import Memo
from kernmodel.incore.engine.model import Forwards
from kernmodel.incore.engine.modelled_core import ModelledCore
from kernmodel.incore.engine.uops import UNKNOWN, InstructionUops, fused_ports, keeps_ports, uops_of
from kernmodel.incore.front_end.costs import Cost, bars_lsd, instruction_cost, op_cache_cost
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

_MOST_JUMPS = 64
"""Kinds of conditional jumps that a template has bits for; further ones fuse with nothing."""
_NO_COST = Cost(0, 0, 0, False, 0, False, 0, ())
_FLAGS = "CPAZSO"
_DOMAINS = (None, "floating-point", "integer")
DIVIDER_SUFFIX = "DV"


class Template(NamedTuple):
    """An instruction on a core.

    Attributes:
        instruction, row: what it was made of; row None for unknown ones.
        traits, times: its numbers.
        flow: its data flow. uops: None for an unknown instruction, and on cores without a simulation.
        uses: its port usage after elimination; masks: the ports of each use, as bits; splits: by how many cycles each
            use grows in a pass in which the access takes longer, as across lines.
        jumps: mnemonics that it macro-fuses with.
        registers: the resources that it names.
    """

    instruction: Instruction
    row: InstructionData | None
    traits: Traits
    times: TraitTimes
    flow: DataFlow
    uops: InstructionUops | None
    uses: tuple[PortUse, ...]
    masks: tuple[int, ...]
    splits: tuple[float, ...]
    jumps: tuple[str, ...]
    registers: tuple[str, ...]

    def loaded_or_stored(self, value: int) -> int | None:
        """The number of the memory reference that a value is loaded from or stored to, None for other values."""
        special = self.flow.special
        if special is None:
            return None
        if value < len(special.loads):
            return special.loads[value][0]
        return next((place for place, stored in special.stores if stored == value), None)


class Pair(NamedTuple):
    """An instruction and the branch that it macro-fuses with: their µops and port usage, as in `Template`.

    The port usage is what the branch leaves of that of the first; with `keeps_ports` it is that of both.
    """

    uops: InstructionUops | None
    uses: tuple[PortUse, ...]
    masks: tuple[int, ...]
    splits: tuple[float, ...]
    registers: tuple[str, ...]
    keeps_ports: bool


class Lowering:
    """Lowers instructions for one core; jumps are numbered as they come."""

    __slots__ = ("_flows", "_jumps", "_uops", "core")

    def __init__(self, core: ModelledCore, memo: Memo) -> None:
        self.core = core
        self._flows = memo.flows(core.graph.flows)
        self._uops = None if core.pipeline is None else memo.uops(core.pipeline, core.switches)
        self._jumps: dict[str, int] = {}

    def template(
        self, instruction: Instruction, row: InstructionData | None, closed: bool = False, shape: Hashable = None
    ) -> Template:
        """The template of an instruction.

        Args:
            instruction: the instruction.
            row: its table row (the indexed variant where it applies), None if unknown.
            closed: whether 512-bit registers in the block close a port for vector instructions.
            shape: equal for instructions that do the same; what was made of one is then kept for all.
        """
        if closed and row is not None and instruction.vector_bytes and self.core.closed is not None:
            row = replace(row, ports=_without_port(row.ports, self.core.closed))
        flow = self._flows.of(shape, instruction, row)
        uops = None if row is None or self._uops is None else self._uops.of(shape, instruction, row)
        if row is None and self.core.op_cache is not None and self._uops is not None:
            uops = UNKNOWN  # every instruction takes a slot there
        uses = () if row is None or is_done_at_rename(instruction, row) else row.ports
        registers = _registers(flow, uops)
        jumps, traits = self._traits(instruction, row, flow, len(registers))
        return Template(
            instruction=instruction,
            row=row,
            traits=traits,
            times=_times(row, flow, traits.adds),
            flow=flow,
            uops=uops,
            uses=uses,
            masks=self._masks(uses),
            splits=self._splits(uses, instruction),
            jumps=jumps,
            registers=registers,
        )

    def pair(self, first: Template, branch: Template) -> Pair | None:
        """What an instruction is together with the branch behind it; None where they do not macro-fuse."""
        mnemonic = branch.instruction.mnemonic
        fuses = mnemonic in first.jumps or bool(first.traits.fusing_flags & branch.traits.flags)
        if branch.traits.jump < 0 or not fuses or not first.traits.unit or not branch.traits.unit or first.row is None:
            return None
        pipeline = self.core.pipeline
        keeps = pipeline is not None and keeps_ports(first.instruction, pipeline)
        if is_done_at_rename(first.instruction, first.row):
            uses: tuple[PortUse, ...] = ()
        elif pipeline is not None and keeps:
            uses = tuple(PortUse(fused_ports(use.ports, pipeline), use.cycles) for use in first.row.ports)
        else:
            uses = _without_compare(first.row.ports, branch.row.ports if branch.row else ())
        uops = None
        if pipeline is not None:
            uops = uops_of(first.instruction, first.row, branch.row, pipeline, self.core.switches)
        masks = self._masks(uses)
        return Pair(uops, uses, masks, self._splits(uses, first.instruction), first.registers, keeps)

    def _splits(self, uses: Sequence[PortUse], instruction: Instruction) -> tuple[float, ...]:
        """By how many cycles each use grows in a pass in which the access takes longer: on cores that tell loads and
        stores apart by their addresses, one of the pipe of the load, or of the store where nothing is loaded."""
        memory = self.core.pipeline and self.core.pipeline.memory
        if not memory or memory.lines is None:
            return split_cycles(uses, instruction, self.core.splits)
        loads = any(reference.read for reference in instruction.memory)
        pipes = frozenset[str]().union(*(memory.load_ports if loads else memory.store_data_ports))
        return tuple([float(bool(instruction.memory) and pipes.issuperset(use.ports)) for use in uses])

    def _traits(
        self, instruction: Instruction, row: InstructionData | None, flow: DataFlow, registers: int
    ) -> tuple[tuple[str, ...], Traits]:
        cost = self._cost(instruction, row)
        conditional = instruction.branch == "conditional"
        fusible_with = cost.fusible_with if cost else ()
        # where the table lists no pairs, they are told by flags
        by_flags = self.core.front is None and row is not None and row.front_end is None
        jumps = sum(1 << self._jump(name) for name in fusible_with if self._jump(name) >= 0)
        isa, special = isa_of(instruction.isa), flow.special
        pointer = None if special is None or special.pointer == len(flow.carriers) else special.pointer
        costs = _NO_COST if cost is None else cost
        stack = (False,) * 5
        if special is not None:
            own = (special.moves_stack, special.reads_stack, special.writes_stack)
            stack = (special.uses_stack, *own, special.copies)
        uses_stack, flow_moves, flow_reads, flow_writes, copies = stack
        found = Traits(
            known=row is not None,
            unit=cost is not None,
            decoded=costs.decoded,
            microcoded=costs.microcoded,
            slots=costs.slots,
            complex=costs.complex,
            simple=costs.simple,
            ends_group=costs.ends_group,
            joined_slots=costs.joined_slots,
            fusible=bool(fusible_with) and self.core.front is not None,
            jumps_low=_signed(jumps),
            jumps_high=_signed(jumps >> 32),
            fusing_flags=_flag_bits(self._fusing_flags(instruction)) if by_flags else 0,
            branch=instruction.branch is not None,
            jump=self._jump(instruction.mnemonic) if conditional else -1,
            flags=_flag_bits(instruction.flags_read) if conditional else 0,
            nop=self.core.op_cache is not None and self.core.op_cache.fuses_nops and isa.is_nop(instruction),
            moves_stack=flow_moves,
            reads_stack=flow_reads,
            writes_stack=flow_writes,
            bars_lsd=self.core.front is not None and bars_lsd(instruction, self.core.front),
            registers=registers,
            measured=row is not None and row.throughput is not None,
            wide=isa.fills_widest(instruction),
            adds=isa.is_fp_addition(instruction),
            hands_on=row is not None and is_eliminated_move(instruction, row),
            domain=_DOMAINS.index(isa.vector_domain(instruction)),
            special=special is not None,
            uses_stack=uses_stack,
            flow_moves=flow_moves,
            flow_reads=flow_reads,
            flow_writes=flow_writes,
            pointer=-1 if pointer is None else pointer,
            copies=copies,
        )
        return fusible_with, found

    def _cost(self, instruction: Instruction, row: InstructionData | None) -> Cost | None:
        """What the instruction costs in the front end; None if it counts as bytes only."""
        if self.core.front is not None:
            return None if row is None else instruction_cost(instruction, row, self.core.front)
        return op_cache_cost(instruction, row, self.core.op_cache)

    def _fusing_flags(self, instruction: Instruction) -> str:
        """The flags of which a jump must read one to fuse with the instruction; none if it fuses with no jump."""
        core = self.core
        barred = bool(instruction.memory) and (
            (core.op_cache is not None and not core.op_cache.fuses_memory)
            or any(operand.immediate is not None for operand in instruction.operands)
        )
        return instruction.flags_written if instruction.mnemonic in core.fusing and not barred else ""

    def _masks(self, uses: tuple[PortUse, ...]) -> tuple[int, ...]:
        return tuple([port_mask(use.ports, self.core.parameters.ports) for use in uses])

    def _jump(self, mnemonic: str) -> int:
        number = self._jumps.setdefault(mnemonic, len(self._jumps))
        return number if number < _MOST_JUMPS else -1


def forward_cycles(link: Forwarding, instructions: Sequence[Instruction], forwards: Forwards) -> int:
    """Cycles from stored to loaded data, beyond what the row of the store says.

    Zen 4 renames memory for plain loads, for what is stored where it was loaded, and for operations on memory that name
    it otherwise than the store: `mov rcx,[b+i]; add rcx,[a+i]; mov [a+i+8],rcx` takes 2.7 cycles a pass, an `add` from
    the address of the `mov` before 8.1.
    """
    storing, loading = instructions[link.store[0]], instructions[link.load[0]]
    from_vector, to_vector = _has_vectors(storing), _has_vectors(loading)
    if not link.whole:
        return forwards.partial_vector if to_vector else forwards.partial
    if from_vector or to_vector:
        if from_vector and to_vector:
            return forwards.vector
        return forwards.to_general if from_vector else forwards.to_vector
    if forwards.renamed is not None:
        own, other = loading.memory[link.load[1]], storing.memory[link.store[1]]
        if own.written:
            return 0
        named_alike = (own.base, own.index, own.displacement) == (other.base, other.index, other.displacement)
        plain = not loading.flags_written and not any(o.read and o.register for o in loading.operands)
        if own.size_bytes >= forwards.renamed_bytes and (plain or not named_alike):
            return forwards.renamed
    return forwards.general


def _has_vectors(instruction: Instruction) -> bool:
    """Whether an instruction names vector registers, among which those of the x87 unit are renamed."""
    return instruction.vector_bytes > 0 or isa_of(instruction.isa).names_by_top(instruction)


def is_done_at_rename(instruction: Instruction, row: InstructionData) -> bool:
    """Whether the instruction is done at rename and needs no port."""
    zero = row.breaks_dependency == "zero" and is_idiom(instruction, row)
    return zero or (row.eliminated and is_eliminated_move(instruction, row))


def _without_compare(ports: tuple[PortUse, ...], branch: tuple[PortUse, ...]) -> tuple[PortUse, ...]:
    """The port usage without the µop that merges into the branch: the one that shares ports with it."""
    branch_ports = {port for use in branch for port in use.ports}
    rest = list(ports)
    merged = next((number for number, use in enumerate(rest) if branch_ports.intersection(use.ports)), None)
    if merged is not None:
        use = rest.pop(merged)
        if use.cycles > 1:
            rest.insert(merged, PortUse(use.ports, use.cycles - 1))
    return tuple(rest)


def _without_port(ports: tuple[PortUse, ...], closed: str) -> tuple[PortUse, ...]:
    """The port usage with the closed port taken from the choices, where there are others."""
    return tuple(
        PortUse(tuple(port for port in use.ports if port != closed), use.cycles) if set(use.ports) - {closed} else use
        for use in ports
    )


def _times(row: InstructionData | None, flow: DataFlow, adds: int) -> TraitTimes:
    addition, special = 0.0, flow.special
    if adds:  # from operands in registers or just loaded
        loads = len(special.loads) if special else 0
        addition = min([c for _, _, c in flow.inner] + [c for v, _, c in flow.waits if v >= loads], default=0.0)
    throughput = row.throughput if row is not None else None
    return TraitTimes(throughput or 0.0, special.saves if special else 0.0, addition)


def _registers(flow: DataFlow, uops: InstructionUops | None) -> tuple[str, ...]:
    names = dict.fromkeys([resource for _, resource, _ in flow.waits])
    names |= dict.fromkeys([resource for resources, _ in flow.gives for resource in resources])
    if uops is not None:
        names |= dict.fromkeys([read.resource for uop in uops.uops for read in uop.reads])
        names |= dict.fromkeys([resource for resource, _ in uops.results])
    return tuple(names)


def _flag_bits(letters: str) -> int:
    return sum(1 << _FLAGS.index(letter) for letter in set(letters) if letter in _FLAGS)


def _signed(mask: int) -> int:
    """The lowest 32 bits as a signed number."""
    low = mask & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low
