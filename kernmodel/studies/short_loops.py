"""What short inner loops cost in the core: remainders, and leaving and entering the loop (docs/blocking.md).

A pass of the compiled loop executes several iterations, by vector lanes and unrolling. Iterations that do not fill a
pass are executed one vector operation each, in scalar code: as many instructions as a pass of the loop without
unrolling. When the loop ends, its closing branch is mispredicted and the pipeline drains: the chain of one pass is seen
in full once, and the front end starts anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.studies.blocking import ShortLoops

if TYPE_CHECKING:
    from kernmodel.assembly.model import AddressStream, AssemblyLoop
    from kernmodel.incore.model import InCore, Parameters
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.request import EcmAnswer

PENALTY = "branch misprediction"
"""Key of a core's parameters: the time that a mispredicted branch costs, in cycles."""


def short_loops(answer: EcmAnswer, blocks: Mapping[str, int], extents: Mapping[str, int]) -> ShortLoops:
    """The costs for the nest with these loops blocked, per unit of work of its traffic.

    Args:
        answer: of the nest as it is executed: its loop and in-core analysis.
        extents: iterations of each loop without blocking.
    """
    inner, incore = answer.nest.inner.variable, answer.incore
    whole, block = extents[inner], min(blocks.get(inner, extents[inner]), extents[inner])
    length = whole / -(-whole // block)
    along = inner_iterations(answer)
    if along > whole:  # a pass is whole inner loops: the compiler has unrolled them and leaves none
        return ShortLoops(length, 0.0, 0.0)
    jammed = (incore.iterations_per_pass or along) / along
    entered = answer.traffic.iterations_per_unit / (length * jammed)
    left = _remainder(answer.nest, inner, whole, block, along)
    return ShortLoops(
        length=length,
        remainder_cycles=entered * left * remainder_cycles(incore, along / _lanes(answer), along),
        entry_cycles=entered * entry_cycles(incore, answer.parameters),
    )


def inner_iterations(answer: EcmAnswer) -> float:
    """Iterations of the inner loop in a pass: fewer than all where outer iterations are executed at once
    (unroll-and-jam)."""
    per_pass = answer.incore.iterations_per_pass or 1.0
    line = answer.machine.line_bytes / answer.traffic.iterations_per_unit
    strides = [abs(stream.stride_bytes) for stream in _leading(answer.loop) if stream.stride_bytes]
    along = max(strides, default=0) / line
    return along if 1 <= along < per_pass and per_pass % along == 0 else per_pass


def _leading(loop: AssemblyLoop) -> list[AddressStream]:
    """What the loop stores along its way, else what it loads."""
    moving = [stream for stream in loop.streams if stream.stride_bytes]
    return [stream for stream in moving if stream.reference.written] or moving


def _remainder(nest: LoopNest, inner: str, whole: int, block: int, along: float) -> float:
    """Iterations at the end of the inner loop that do not fill a pass, the mean over its executions."""
    step = int(along)
    if step != along:
        return 0.0
    outer = {loop.symbol for loop in nest.loops if not loop.variable.startswith(f"{inner}_block")}
    if block == whole and (nest.inner.start.free_symbols | nest.inner.stop.free_symbols) & outer:
        return (step - 1) / 2  # its length changes from execution to execution
    full, last = divmod(whole, block)
    return (full * (block % step) + last % step) / (full + bool(last))


def remainder_cycles(incore: InCore, unrolled: float, along: float) -> float:
    """What an iteration beyond the last full pass costs more than one within it: a pass of the loop that is not
    unrolled, less the share of an iteration in a full pass."""
    return max(0.0, incore.prediction / max(1.0, unrolled) - incore.prediction / along)


_ELEMENT = {"pd": 8, "ps": 4}
"""Bytes of an element by the ending of packed floating-point mnemonics."""


def _lanes(answer: EcmAnswer) -> float:
    """Elements that one vector instruction computes; where none does, that one instruction stores (else loads)."""
    packed = [
        instruction.vector_bytes / _ELEMENT[instruction.mnemonic[-2:]]
        for instruction in answer.loop.instructions
        if instruction.mnemonic[-2:] in _ELEMENT and not instruction.mnemonic.removeprefix("v").startswith("mov")
    ]
    if packed:
        return max(1.0, *packed)
    accesses = answer.nest.writes() or answer.nest.accesses
    element = max((answer.nest.arrays[access.array].element.size_bytes for access in accesses), default=1)
    return max(1.0, max((stream.reference.size_bytes for stream in _leading(answer.loop)), default=0) / element)


def entry_cycles(incore: InCore, parameters: Parameters) -> float:
    """Cycles that leaving the loop and entering it again take: the critical path of a pass beyond its throughput, and
    the misprediction penalty of the core where its parameters have one."""
    drain = max(0.0, incore.critical_path.cycles - incore.prediction)
    return drain + penalty(parameters)


def penalty(parameters: Parameters) -> float:
    """The branch misprediction penalty of a core, cycles; 0 where it is not known."""
    return parameters.misprediction or 0.0
