"""Performance over cores in characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.plot.scaling import curves, linear_values, rate_of, rules_agree, simple_curve
from kernmodel.plot.terminal_lines import TextLine, lines_text

if TYPE_CHECKING:
    from kernmodel.studies.scaling import ScalingAnswer


def scaling_text(answers: Sequence[ScalingAnswer], unit: str | None, width: int = 80, ascii_only: bool = False) -> str:
    """Both rules and linear scaling of one point of sizes; of several points the recursive rule."""
    first = answers[0].single
    rate = rate_of(unit, first)
    drawn = curves(answers, rate)
    lines = [TextLine(curve.label, curve.cores, curve.values) for curve in drawn]
    if len(answers) == 1:
        simple = simple_curve(answers[0], rate)
        highest = max(*drawn[0].values, *simple.values)
        linear = linear_values(answers[0], rate, simple.cores)
        below = tuple(n for n, value in zip(simple.cores, linear, strict=True) if value <= 1.05 * highest)
        if not rules_agree(answers[0]):
            lines.append(TextLine(simple.label, simple.cores, simple.values))
        lines.append(TextLine("linear, n·P(1)", below, linear[: len(below)]))
    title = f"{first.nest.name} on {first.machine.name}: performance (G{rate})"
    return lines_text(lines, title, width, ascii_only, x_label="cores (ccNUMA domains filled one after the other)")
