"""Floating-point dividers: how long they are busy with usual operands.

uops.info's figures of division and square root hold for easy operands (quotients of few bits), on which the dividers
before Skylake finish early: on Sandy Bridge 10 cycles instead of 22. Readings of InstLatx64, or LLVM's model where
there are none, give the figures for usual operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.instlatx64 import Reading
from kernmodel.incore.tables.importers.llvm import instruction_costs

DIVIDES = re.compile(r"v?(div|sqrt)[sp][sdh]\b")


def llvm_readings(cpu: str, forms: Iterable[str]) -> dict[str, Reading]:
    """LLVM's figures for the register forms of those of the forms that divide, as readings.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    registers = {register_form(form) for form in forms if DIVIDES.match(form)}
    costs = instruction_costs(cpu, sorted(registers))
    return {form: Reading(cost.latency, cost.throughput) for form, cost in costs.items()}


def with_full_operands(
    row: InstructionData, divider: str, readings: Mapping[str, Reading], source: str
) -> InstructionData:
    """The row as measured, with the one for usual operands as its `full` where that differs (`with_usual_operands`).

    Raises:
        InstructionTableError: there is no reading of the form.
    """
    full = with_usual_operands(row, divider, readings, source)
    return row if replace(full, source=row.source, indexed=row.indexed) == row else replace(row, full=full)


def with_usual_operands(
    row: InstructionData, divider: str, readings: Mapping[str, Reading], source: str
) -> InstructionData:
    """The row of a division or square root with the divider's occupancy and the latency for usual operands.

    Args:
        row: as measured with easy operands.
        divider: the pipeline ("0DV"), occupied for the reading's reciprocal throughput (rounded to quarters of a
            cycle), where it is longer than what the row says.
        readings: by register form; latencies grow by what the reading is longer.
        source: of the new row.

    Raises:
        InstructionTableError: there is no reading of the form.
    """
    reading = _reading(row.form, readings)
    longer = max(round(reading.latency or 0.0) - row.default_latency, 0.0)
    return replace(
        row,
        ports=_occupied(row.ports, divider, round((reading.throughput or 0.0) * 4) / 4),
        latencies={pair: cycles + longer for pair, cycles in row.latencies.items()},
        default_latency=row.default_latency + longer,
        indexed=with_usual_operands(row.indexed, divider, readings, source) if row.indexed else None,
        source=source,
    )


def _occupied(ports: tuple[PortUse, ...], divider: str, cycles: float) -> tuple[PortUse, ...]:
    others = tuple(use for use in ports if use.ports != (divider,))
    busy = max(cycles, *(use.cycles for use in ports if use.ports == (divider,)), 0.0)
    return (*others, PortUse((divider,), busy))


def _reading(form: str, readings: Mapping[str, Reading]) -> Reading:
    register = register_form(form)
    reading = readings.get(register) or readings.get(register.replace("xmm,xmm,xmm", "xmm,xmm"))
    if reading is None or reading.throughput is None:
        raise InstructionTableError(
            f"no reading of {register}", where="divider readings", todo="give the readings of another core"
        )
    return reading


def register_form(form: str) -> str:
    """The form with its operands in registers and without a variant."""
    return re.sub(r"m256", "ymm", re.sub(r"m(?:32|64|128)\b", "xmm", form.partition(" [")[0]))
