"""Data flows and µops of instructions, kept for all the cores on which they are the same.

Many rows of related cores differ in their source only. What an instruction does is looked up by what decides it: the
instruction, the cells of its row and the figures of the core that `data_flow` and `uops_of` look at.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from kernmodel.incore.dependences.data_flow import DataFlow, DataFlowFigures, data_flow
from kernmodel.incore.engine.model import PipelineCore, Switches
from kernmodel.incore.engine.uops import InstructionUops, is_halved, uops_of
from kernmodel.incore.model import InstructionData
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

_MOST = 50_000
"""Data flows, or µops, that are kept; then all are forgotten."""


class Memo:
    """What instructions do, for analysers of several cores."""

    __slots__ = ("_flows", "_numbers", "_uops")

    def __init__(self, isa_name: str) -> None:
        self._numbers: dict[str, int] = {isa_of(isa_name).registers.stack_pointer: 0}
        self._flows: dict[Hashable, dict[Hashable, DataFlow]] = {}
        self._uops: dict[Hashable, dict[Hashable, InstructionUops]] = {}

    def number(self, resource: str) -> int:
        """The number of a register, flag or another resource, 0 for the stack pointer."""
        return self._numbers.setdefault(resource, len(self._numbers))

    def flows(self, figures: DataFlowFigures) -> Flows:
        """The data flows on a core."""
        return Flows(figures, self._flows.setdefault(_plain(figures), {}))

    def uops(self, core: PipelineCore, switches: Switches) -> CoreUops:
        """The µops on a core."""
        own = core.memory
        figures = (own.load_latency, core.ports[:1], own.forward_by_table, own.forward_latency, own.pointer_reach)
        roles = own.load_ports, own.store_address_ports, own.store_data_ports
        flows = core.flows and _plain(core.flows)
        known = self._uops.setdefault((switches, flows, figures, roles), {})
        return CoreUops(core, switches, known)


class Flows:
    """The data flows of instructions on one core."""

    __slots__ = ("_figures", "_known")

    def __init__(self, figures: DataFlowFigures, known: dict[Hashable, DataFlow]) -> None:
        self._figures = figures
        self._known = known

    def of(self, shape: Hashable, instruction: Instruction, row: InstructionData | None) -> DataFlow:
        """The data flow of an instruction; `shape` is equal for instructions that do the same, None to keep nothing."""
        if shape is None:
            return data_flow(instruction, row, self._figures)
        key = shape, _latencies(row), instruction.mnemonic in self._figures.false_dependencies
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = data_flow(instruction, row, self._figures)
        return found


class CoreUops:
    """The µops of instructions on one core."""

    __slots__ = ("_core", "_known", "_switches")

    def __init__(self, core: PipelineCore, switches: Switches, known: dict[Hashable, InstructionUops]) -> None:
        self._core = core
        self._switches = switches
        self._known = known

    def of(self, shape: Hashable, instruction: Instruction, row: InstructionData) -> InstructionUops:
        """The µops of an instruction; `shape` as in `Flows.of`."""
        if shape is None:
            return uops_of(instruction, row, None, self._core, self._switches)
        slots = row.front_end.retire_slots if row.front_end else None
        figures = self._core.flows
        depends = figures is not None and instruction.mnemonic in figures.false_dependencies
        halved = is_halved(instruction, self._core)
        key = shape, row.ports, _latencies(row), row.throughput, slots, depends, halved
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = uops_of(instruction, row, None, self._core, self._switches)
        return found


def _plain(figures: DataFlowFigures) -> DataFlowFigures:
    """The figures without the names of instructions that wait for what they overwrite: keys ask for one of them."""
    return replace(figures, false_dependencies=frozenset())


def _latencies(row: InstructionData | None) -> Hashable:
    """What data flows depend on in a row."""
    if row is None:
        return None
    return tuple(row.latencies.items()), row.default_latency, row.breaks_dependency, row.eliminated
