"""Floating-point peaks of one core: independent instructions of one kind, register to register."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import copies_of, doubts
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.model import Peak, Peaks
from kernmodel.measure.samples import UNROLLED_TOLERANCE
from kernmodel.value_types import dataclass

EFFORT = Effort(issue=UNROLLED_TOLERANCE)
_INDEPENDENT = 12
"""Accumulators: more than latency × units on every core so far (5 × 2)."""
_FIRST, _SECOND = 13, 14
_NAMES = {64: "zmm", 32: "ymm", 16: "xmm"}
_ELEMENTS = {"DP": 8, "SP": 4}
_OPERATIONS = {"ADD": "add", "MUL": "mul", "FMA": "fmadd231", "DIV": "div", "SQRT": "sqrt"}


@dataclass(frozen=True, slots=True)
class PeakKind:
    """One kind of instruction: operation, precision, and bytes of the register that it fills."""

    operation: str
    precision: str
    width_bytes: int

    @property
    def lanes(self) -> int:
        """Elements of one instruction."""
        return self.width_bytes // _ELEMENTS[self.precision]

    @property
    def flops(self) -> int:
        """FLOP of one instruction; FMA counts 2."""
        return self.lanes * (2 if self.operation == "FMA" else 1)


def peak_kinds() -> Iterator[PeakKind]:
    """Those that this host can execute, scalar ones first."""
    for operation in _OPERATIONS:
        if operation == "FMA" and "fma" not in x86.host_features():
            continue
        for precision, element in _ELEMENTS.items():
            for width in (element, 16, 32, 64):
                if width <= x86.vector_bytes():
                    yield PeakKind(operation, precision, width)


def measure_peaks(
    harness: Harness,
    kinds: tuple[PeakKind, ...] | None = None,
    *,
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> Peaks:
    """FLOP per cycle of one core, by operation, precision and width.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    found, notes = [], []
    for kind in kinds or tuple(peak_kinds()):
        progress(f"{kind.operation} {kind.precision} {kind.width_bytes} B")
        lines, form = _instructions(kind)
        register = lines[0].split()[1][:3]
        move = "vmovups" if lines[0].startswith("v") else "movups"
        first = (f"{move} {register}{_SECOND}, [{x86.SAVE + 384}]",)
        cycles = copies_of(harness, lines, effort, first)
        peak = Peak(kind.operation, kind.precision, kind.width_bytes, form, cycles.inverse(kind.flops * _INDEPENDENT))
        notes += doubts(cycles, f"{form}")
        found.append(peak)
    return Peaks(tuple(found), harness.clock_hz(), tuple(notes))


def _instructions(kind: PeakKind) -> tuple[list[str], str]:
    """Independent instructions of a kind, and their form."""
    scalar = kind.lanes == 1
    suffix = f"{'s' if scalar else 'p'}{'d' if kind.precision == 'DP' else 's'}"
    register = "xmm" if scalar else _NAMES[kind.width_bytes]
    sources: tuple[str, ...]
    name = f"{_OPERATIONS[kind.operation]}{suffix}"
    if "avx" not in x86.host_features():
        sources = (f"{register}{_SECOND}",)
    elif kind.operation == "SQRT" and not scalar:
        name, sources = f"v{name}", (f"{register}{_SECOND}",)
    else:
        name, sources = f"v{name}", (f"{register}{_FIRST}", f"{register}{_SECOND}")
    lines = [f"{name} {', '.join((f'{register}{number}', *sources))}" for number in range(_INDEPENDENT)]
    return lines, f"{name} {','.join([register] * (1 + len(sources)))}"
