"""Charts of data traffic: which level serves each reference, and bytes over each path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.report.html.charts import Axis, Bar, BarChart, stacked
from kernmodel.report.text.traffic import access_table, path_table

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import TrafficAnswer
    from kernmodel.traffic.model import Traffic


def traffic_charts(answers: Sequence[TrafficAnswer]) -> tuple[BarChart, ...]:
    """Both charts of the first answer; further ones are in the table below."""
    first = answers[0]
    return references_chart(first.traffic), paths_chart(first.traffic, first.machine)


def references_chart(traffic: Traffic) -> BarChart:
    """Lines per unit of work of every reference, by the level that serves it."""
    levels = tuple(dict.fromkeys(level for access in traffic.accesses for level in access.served_by))

    def bar(access: str, kind: str, served: dict[str, float]) -> Bar:
        parts = [(number, level, served.get(level, 0.0)) for number, level in enumerate(levels)]
        return stacked(f"{access} ({kind})", parts, "CL")

    bars = tuple(bar(one.access, one.kind, dict(one.served_by)) for one in traffic.accesses)
    return BarChart(
        title="Which level serves each reference",
        about="Cache lines per unit of work of every array reference, by the level of the hierarchy that serves it.",
        x=Axis("cache lines per unit of work"),
        legend=levels,
        frames=(bars,),
        table=access_table(traffic),
    )


def paths_chart(traffic: Traffic, machine: Machine) -> BarChart:
    """Bytes per iteration over every path, by their kind."""
    kinds = ("loads", "stores", "clean victims")
    factor = machine.line_bytes / traffic.iterations_per_unit
    bars = []
    for path in traffic.paths:
        lines = (path.loads, path.stores, path.clean_victims)
        parts = [(number, kinds[number], count * factor) for number, count in enumerate(lines)]
        bars.append(stacked(path.path, parts, "B/It"))
    return BarChart(
        title="Traffic over each path",
        about="Bytes per iteration over every path of the hierarchy: loads, stores and unmodified lines that caches "
        "give up.",
        x=Axis("bytes per iteration (B/It)"),
        legend=kinds,
        frames=(tuple(bars),),
        table=path_table(traffic, machine),
    )
