"""The time per pass of a block in a core's pipeline, by simulating it until its state repeats."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from kernmodel.errors import ToolError
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.compiled import run as run_compiled
from kernmodel.incore.engine.model import PipelineInput, Simulated
from kernmodel.incore.engine.program import LIMITS, REASONS, Limits, program_of

Engine = Literal["auto", "compiled", "python"]


def simulate(
    block: PipelineInput, *, engine: Engine = "auto", limits: Limits = LIMITS, floor: float = 0.0
) -> Simulated:
    """Execute a block over and over until the state of the pipeline repeats.

    Args:
        block: the block, as `pipeline_input` makes it.
        engine: "auto" takes the compiled engine where it is there; both give the same answer.
        limits: how long it is simulated if its state does not repeat.
        floor: cycles per pass of the slowest part of the core, where it is known.

    Raises:
        ToolError: engine "compiled" where it was not built.
    """
    if not block.slots:
        return Simulated(Fraction(0), True, 0, 0, {}, {})
    program = program_of(block, limits, floor)
    found = None if engine == "python" else library()
    if engine == "compiled" and found is None:
        raise ToolError("the compiled pipeline engine is not there", todo="install with a C compiler, or choose python")
    from kernmodel.incore.engine.twin import run as run_python

    settled, cycles, passes, total, *counts = run_python(program) if found is None else run_compiled(program, found)
    passes = max(passes, 1)
    return Simulated(
        cycles_per_pass=Fraction(cycles, passes),
        settled=bool(settled),
        period=passes,
        simulated=total,
        stalls={reason: count / max(cycles, 1) for reason, count in zip(REASONS, counts, strict=False)},
        dispatched=dict(zip(block.core.ports, counts[len(REASONS) :], strict=False)),
    )
