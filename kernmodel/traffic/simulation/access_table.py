"""Which level serves each reference of a simulated nest, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from kernmodel.cachesim.model import MEMORY
from kernmodel.traffic.model import AccessTraffic, Evasion, Traffic
from kernmodel.traffic.simulation.program import NumericNest, NumericReference
from kernmodel.traffic.simulation.rates import STREAMED, Rates

_ALIKE = 0.1
"""Share of a reference's lines that may come from elsewhere than layer conditions say, and still for their reason."""


def access_rows(
    nest: NumericNest,
    rates: Rates,
    executions: Sequence[float],
    unit: Fraction,
    levels: Sequence[str],
    symbolic: Traffic | None,
) -> tuple[AccessTraffic, ...]:
    """One row per array reference, in source order.

    Args:
        nest: the nest.
        rates: what was counted per inner iteration.
        executions: how often each reference is executed per inner iteration.
        unit: inner iterations in a unit of work.
        levels: names of the levels, memory last.
        symbolic: the same by layer conditions, whose reasons hold where they agree; None where they do not apply.
    """
    touched = [
        executed * float(unit) * min(1.0, _step_bytes(nest, reference) / nest.line_bytes)
        for reference, executed in zip(nest.references, executions, strict=True)
    ]
    streaming = [number for number, each in enumerate(nest.references) if each.reference.kind == "stream"]
    streamed = sum(touched[number] for number in streaming)
    rows = []
    for number, reference in enumerate(nest.references):
        if number in streaming:
            # every store reaches memory by itself, but lines leave the combining buffers: each stream has its part
            sent = rates.of(MEMORY, STREAMED) * float(unit) * touched[number] / streamed if streamed else 0.0
            beyond, first = [*[0.0] * (len(levels) - 2), sent], 0.0
        else:
            beyond = [count * float(unit) for count in rates.served[number][1:]]
            first = max(0.0, touched[number] - sum(beyond))
        served = dict(zip(levels, (first, *beyond), strict=True))
        expected = symbolic.accesses[number] if symbolic is not None else None
        access = reference.access
        reason = _reason(nest, reference, served, expected)
        again = expected is not None and expected.from_earlier_row
        rows.append(AccessTraffic(access.array, access.text, access.kind, served, reason, again))
    return tuple(rows)


def _step_bytes(nest: NumericNest, reference: NumericReference) -> float:
    """Bytes from one execution of a reference to the next; a line where it may be any."""
    depth = reference.reference.depth
    if not depth or reference.reference.indirections or depth < len(nest.loops):
        return nest.line_bytes
    return abs(reference.reference.address.coefficients[depth - 1] * nest.loops[depth - 1].step)


def _reason(
    nest: NumericNest, reference: NumericReference, served: Mapping[str, float], expected: AccessTraffic | None
) -> str:
    if reference.reference.kind == "stream":
        return "streams its lines to memory past the caches"
    level = main_level(served)
    if expected is None:
        return f"{_way(nest, reference)}; {level} serves {_share(served, level)} of its lines"
    total = max(sum(served.values()), sum(expected.served_by.values()))
    if all(abs(served[name] - expected.served_by[name]) <= _ALIKE * total for name in served):
        return expected.reason
    foreseen = main_level(expected.served_by)
    if foreseen == level:
        text = f"{level} serves {_share(served, level)} of its lines and not {_share(expected.served_by, level)}"
    else:
        text = f"{level} serves {_share(served, level)} of its lines, where layer conditions have {foreseen}"
    return f"{text}; it {expected.reason}"


def main_level(served: Mapping[str, float]) -> str:
    """The level that serves most lines."""
    return max(served, key=lambda name: served[name])


def _share(served: Mapping[str, float], level: str) -> str:
    total = sum(served.values())
    return f"{served[level] / total if total else 0.0:.0%}"


def _way(nest: NumericNest, reference: NumericReference) -> str:
    """How a reference moves through memory."""
    access, inner = reference.access, nest.nest.inner
    if access.indirect:
        return f"goes where {' and '.join(index.text for index in access.indirect)} points"
    if reference.reference.depth < len(nest.loops):
        return f"is touched once per execution of loop {nest.nest.loops[reference.reference.depth].variable}"
    stride = reference.reference.address.coefficients[-1] * inner.step
    return f"moves by {stride} B with each iteration of loop {inner.variable}"


def with_evasion(rows: Sequence[AccessTraffic], evadable: Sequence[int], evasion: Evasion) -> tuple[AccessTraffic, ...]:
    """The rows without the write-allocates from memory that are evaded; `evasion.share` is of the evadable ones."""
    changed = list(rows)
    for number in evadable if evasion.share else ():
        row = changed[number]
        memory = list(row.served_by)[-1]
        served = {**row.served_by, memory: row.served_by[memory] * (1 - evasion.share)}
        changed[number] = replace(
            row, served_by=served, reason=f"{row.reason}; its write-allocate from memory is evaded"
        )
    return tuple(changed)
