"""The pictures of `kernmodel ecm` in characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.plot.scaling import performance, rate_of, varying_sizes
from kernmodel.plot.terminal_lines import TextBar, TextLine, bars_text, lines_text

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer


def ecm_text(answers: Sequence[EcmAnswer], unit: str, width: int = 80, ascii_only: bool = False) -> str:
    """Performance over cores where the answers were scaled; else the times, over the sizes where these vary."""
    first = answers[0]
    name = f"{first.nest.name} on {first.machine.name}"
    if first.scaling:
        rate = rate_of(unit, first)
        title = f"{name}: performance (G{rate})"
        lines = [_over_cores(answer, answers, rate) for answer in answers]
        return lines_text(lines, title, width, ascii_only, x_label="cores (ccNUMA domains filled one after the other)")
    title = f"{name}: cycles per unit of work (cy/CL), {first.prediction.overlap}"
    if len(answers) == 1:
        return bars_text(_bars(first), title, width, ascii_only, origin=0.0)
    return _over_sizes(answers, title, width, ascii_only)


def _over_cores(answer: EcmAnswer, answers: Sequence[EcmAnswer], rate: str) -> TextLine:
    names = varying_sizes([one.sizes for one in answers])
    label = ", ".join(f"{name}={answer.sizes[name]}" for name in names) if len(answers) > 1 else "prediction"
    cores = tuple(float(point.cores) for point in answer.scaling)
    return TextLine(label, cores, tuple(performance(point.cycles, rate, answer) for point in answer.scaling))


def _bars(answer: EcmAnswer) -> list[TextBar]:
    times = {**answer.prediction.times, "T_ECM": answer.prediction.cycles}
    return [TextBar(name, 0.0, cycles, f"{cycles:.1f}") for name, cycles in times.items()]


def _over_sizes(answers: Sequence[EcmAnswer], title: str, width: int, ascii_only: bool) -> str:
    """A line for each time; over the number of the point where several sizes vary at once."""
    names = varying_sizes([answer.sizes for answer in answers])
    alone = len(names) == 1
    xs = [float(answer.sizes[names[0]]) if alone else float(at) for at, answer in enumerate(answers, 1)]
    order = sorted(range(len(xs)), key=xs.__getitem__)
    series = {name: [answers[at].prediction.times[name] for at in order] for name in answers[0].prediction.times}
    series["T_ECM"] = [answers[at].prediction.cycles for at in order]
    places = tuple(xs[at] for at in order)
    lines = [TextLine(name, places, tuple(values)) for name, values in series.items()]
    label = names[0] if alone else f"number of the point ({', '.join(names)} vary)"
    logarithmic = alone and places[0] > 0 and places[-1] >= 20 * places[0]
    return lines_text(lines, title, width, ascii_only, x_label=label, log_x=logarithmic)
