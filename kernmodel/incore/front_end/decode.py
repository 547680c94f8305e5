"""The decoders: one complex and several simple ones (Facile, section 4.4, algorithm 1), or several that are alike."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.front_end.model import Decoders, Unit


def decode_bound(units: Sequence[Unit], core: Decoders) -> float:
    """Dec: cycles per execution to decode the units, after algorithm 1 of Facile.

    Instructions go to the decoders in order, execution after execution, until the first one comes to a decoder for the
    second time with as many decoders left (Facile asks for the decoder only, which leaves the period open): the cycles
    between the two times over the executions between them. A cycle begins whenever the complex decoder, which is the
    first one, takes an instruction; it must if the instruction needs it, if the others are taken, behind a branch, and
    if a macro-fusible instruction would come to a last decoder that takes none. Where no unit needs the complex decoder
    or ends a group, all decoders are alike.
    """
    if not units:
        return 0.0
    last = core.decoders - 1
    barred = None if core.fusible_last else last
    steps = [(unit.complex, unit.simple, unit.fusible, unit.ends_group) for unit in units]
    decoder, available, cycle = last, 0, 0
    began: dict[tuple[int, int], tuple[int, int]] = {}  # by state behind the first unit: execution and cycle of that
    execution = 0
    while True:
        first = True
        for complex_one, simple, fusible, ends_group in steps:
            if complex_one:
                decoder, available = 0, simple
            elif not available or (fusible and decoder + 1 == barred):
                decoder, available = 0, last
            else:
                decoder += 1
                available -= 1
            if ends_group:
                available = 0
            if first:
                if (decoder, available) in began:
                    earlier, start = began[decoder, available]
                    # algorithm 1 sums whole executions: the cycle that the first unit opens belongs to its execution
                    return (cycle - start) / (execution - earlier)
                began[decoder, available] = (execution, cycle)
                first = False
            if decoder == 0:
                cycle += 1
        execution += 1
