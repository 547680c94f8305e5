"""Rules of cores that a block can be looked at without, one at a time: each is a figure of the core's model.

A rule that a core does not have, or whose instructions a block does not have, is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kernmodel.incore.engine.model import ANY_NUMBER
from kernmodel.incore.engine.modelled_core import ModelledCore
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple


class SingleRule(NamedTuple):
    """A rule of some cores.

    Attributes:
        name: of which `report.text.reasons` makes a sentence.
        figures: attributes of `ModelledCore` by their paths, with the values that they have on a core without the rule.
        concerns: whether it concerns an instruction.
    """

    name: str
    figures: tuple[tuple[str, Any], ...]
    concerns: Callable[[Instruction, ModelledCore], bool]


def cores_without(
    instructions: Sequence[Instruction], core: ModelledCore
) -> Iterator[tuple[str, list[int], ModelledCore]]:
    """For each rule that the core has and that concerns some of the instructions: its name, the numbers of these
    instructions, and the core without it."""
    for rule in RULES:
        other = core
        for path, value in rule.figures:
            other = _with(other, path.split("."), value)
        numbers = [n for n, own in enumerate(instructions) if rule.concerns(own, core)] if other is not core else []
        if numbers:
            yield rule.name, numbers, other


def _with(owner: Any, path: Sequence[str], value: Any) -> Any:
    """A value with one of its parts replaced; itself where it has no such part, or where that is as given."""
    name, *rest = path
    own = getattr(owner, name, None)
    if own is None:
        return owner
    new = _with(own, rest, value) if rest else value
    if new is own or (not rest and new == own):
        return owner
    return owner._replace(**{name: new}) if hasattr(owner, "_replace") else replace(owner, **{name: new})


def _any(_: Instruction, __: ModelledCore) -> bool:
    return True


def _loads(own: Instruction, _: ModelledCore) -> bool:
    return any(reference.read for reference in own.memory)


def _stores(own: Instruction, _: ModelledCore) -> bool:
    return any(reference.written for reference in own.memory)


def _general_stores(own: Instruction, core: ModelledCore) -> bool:
    return _stores(own, core) and not _vectors(own, core)


def _vectors(own: Instruction, _: ModelledCore) -> bool:
    return own.vector_bytes > 0


def _general(own: Instruction, core: ModelledCore) -> bool:
    return not _vectors(own, core)


def _computed_vectors(own: Instruction, core: ModelledCore) -> bool:
    return _vectors(own, core) and not _stores(own, core)


def _vector_accesses(own: Instruction, core: ModelledCore) -> bool:
    return bool(own.memory) and _vectors(own, core)


def _long_loads(own: Instruction, core: ModelledCore) -> bool:
    lines = core.pipeline and core.pipeline.memory.lines
    line = lines.line_bytes if lines else 0
    return any(reference.read and reference.size_bytes in (line, line // 2) for reference in own.memory)


def _scaled(own: Instruction, core: ModelledCore) -> bool:
    return any(reference.read and reference.scale > 1 for reference in own.memory) and not _vectors(own, core)


def _between_registers(own: Instruction, core: ModelledCore) -> bool:
    return _vectors(own, core) and any(operand.kind in ("r32", "r64") for operand in own.operands)


def _constants(own: Instruction, _: ModelledCore) -> bool:
    return own.encoding.displacement_bytes > 0 or own.encoding.immediate_bytes > 0


def _jumps(own: Instruction, _: ModelledCore) -> bool:
    return own.branch is not None


def _false_dependency(own: Instruction, core: ModelledCore) -> bool:
    return own.mnemonic in core.graph.flows.false_dependencies


def _unlaminated(own: Instruction, _: ModelledCore) -> bool:
    return any(reference.index is not None for reference in own.memory)


def _widest(own: Instruction, _: ModelledCore) -> bool:
    return own.vector_bytes == 64


RULES = (
    SingleRule("loads at dispatch", (("pipeline.by_port.most_loads", ()),), _loads),
    SingleRule("stores apart", (("pipeline.memory.lines.apart", False),), _general_stores),
    SingleRule("stores apart", (("parameters.loads.paired_stores", False),), _stores),
    SingleRule("address generators", (("pipeline.memory.load_starts", ()),), _vector_accesses),
    SingleRule("generators in turn", (("pipeline.by_port.loads_in_a_row", 0),), _vector_accesses),
    SingleRule(
        "long loads",
        (
            ("pipeline.memory.lines.whole_lines", 0),
            ("pipeline.memory.lines.half_lines", 0),
            ("pipeline.memory.lines.whole_across", ()),
            ("pipeline.memory.lines.half_across", ()),
        ),
        _long_loads,
    ),
    SingleRule("banks", (("pipeline.memory.bank_bytes", 0),), _loads),
    SingleRule("one result", (("pipeline.by_port.one_result", ()),), _computed_vectors),
    SingleRule("cycles as a whole", (("pipeline.by_port.operations_together", False),), _any),
    SingleRule("behind late results", (("pipeline.by_port.result_port", ""),), _general),
    SingleRule("two a cycle", (("pipeline.by_port.narrow", ()),), _general),
    SingleRule(
        "constants",
        (
            ("pipeline.delivery.constants", ()),
            ("pipeline.delivery.constants_dispatched", 0),
            ("op_cache.constants", ()),
            ("op_cache.constants_dispatched", None),
        ),
        _constants,
    ),
    SingleRule(
        "whole instructions",
        (("pipeline.whole_instructions", False), ("op_cache.whole_instructions", False)),
        _any,
    ),
    SingleRule("results between registers", (("pipeline.result_paths", ()),), _between_registers),
    SingleRule("fused pairs", (("pipeline.fused_ports", ()),), _jumps),
    SingleRule("lines in the queue", (("pipeline.delivery.queued_lines", 0),), _any),
    SingleRule("scaled index", (("pipeline.flows.scaled_index", 0.0), ("graph.flows.scaled_index", 0.0)), _scaled),
    SingleRule(
        "false dependency",
        (("pipeline.flows.false_dependencies", frozenset()), ("graph.flows.false_dependencies", frozenset())),
        _false_dependency,
    ),
    SingleRule("blocked loads", (("switches.blocked_loads", False),), _loads),
    SingleRule("aliased stores", (("parameters.loads.aliased_stores", 0),), _loads),
    SingleRule(
        "unlaminated",
        (("pipeline.unlaminated_slots", ANY_NUMBER), ("pipeline.unlaminated_first", ANY_NUMBER)),
        _unlaminated,
    ),
    SingleRule("adders", (("graph.adders", None),), _computed_vectors),
    SingleRule("domains", (("graph.between_domains", 0.0),), _computed_vectors),
    SingleRule("stack engine", (("switches.synchronisation", False),), _any),
    SingleRule("closed port", (("closed", None),), _widest),
)
"""In the order in which explanations try them."""
