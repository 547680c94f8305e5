"""All reuse of a nest, counted as its trip counts ask for: the same in all iterations of outer loops, or not."""

from __future__ import annotations

from kernmodel.traffic.conditions.reuse import Analysis, analyse_regular
from kernmodel.traffic.conditions.streams import SizedNest


def analyse_reuse(nest: SizedNest, line_bytes: int) -> Analysis:
    """All reuse of a nest at given sizes, with the volume that each needs."""
    if nest.space is None:
        return analyse_regular(nest, line_bytes)
    from kernmodel.traffic.conditions.varying_trips import analyse_varying

    return analyse_varying(nest, nest.space, line_bytes)
