"""Where the arrays of a nest lie in memory: a stated assumption, since the source does not say."""

from __future__ import annotations

from math import lcm

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import InputError, Note
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.program import NumericNest
from kernmodel.units import format_bytes

PAGE_BYTES = 4096
"""Arrays that are laid out for good begin at multiples of this: a page of every machine of this kind."""

_LIMIT = 2**63


def place_arrays(nest: NumericNest, hierarchy: Hierarchy, options: SimulationOptions) -> dict[str, int]:
    """The address at which each array begins, in the order in which the nest declares them.

    An array without a declared extent reaches as far as the nest touches it.

    Raises:
        InputError: the arrays do not fit into 63 bits of address.
    """
    first = hierarchy.levels[0]
    names = list(nest.nest.arrays)
    spread = first.sets // max(1, len(names)) * first.line_bytes
    bases: dict[str, int] = {}
    end = PAGE_BYTES  # nothing lies at address 0
    for number, name in enumerate(names):
        low, high = _touched(nest, name)
        begin = end - min(0, low)
        if options.alias:
            begin = _aligned(begin, _turn(hierarchy)) + number * options.pad_bytes
        elif options.layout == "packed":
            begin += options.pad_bytes if number else 0
            begin = _aligned(begin, nest.nest.arrays[name].element.size_bytes)
        else:
            begin = _aligned(begin, PAGE_BYTES) + number * (spread + options.pad_bytes)
        bases[name] = begin
        end = begin + max(nest.extents[name], high + 1)
    if end >= _LIMIT:
        raise InputError(
            "the arrays do not fit into 63 bits of address", where=nest.nest.file, todo="give smaller sizes"
        )
    return bases


def _touched(nest: NumericNest, name: str) -> tuple[int, int]:
    spans = [reference.span for reference in nest.references if reference.access.array == name]
    return min((span[0] for span in spans), default=0), max((span[1] for span in spans), default=0)


def _aligned(address: int, multiple: int) -> int:
    return -(-address // max(1, multiple)) * max(1, multiple)


def _turn(hierarchy: Hierarchy) -> int:
    """Bytes after which every cache is at the same set again."""
    return lcm(*(level.sets * level.line_bytes for level in hierarchy.levels))


def layout_note(nest: NumericNest, hierarchy: Hierarchy, options: SimulationOptions) -> Note:
    """What is assumed of the arrays' places."""
    first = hierarchy.levels[0]
    pad = f", {format_bytes(options.pad_bytes)} further apart each" if options.pad_bytes else ""
    if options.alias:
        text = "all arrays begin at the same set of every cache"
    elif options.layout == "packed":
        text = f"the arrays follow one another without a gap, in the order {', '.join(nest.nest.arrays)}"
        pad = f" but {format_bytes(options.pad_bytes)}" if options.pad_bytes else ""
    else:
        text = (
            f"every array begins on a page of its own, and they are spread over the {first.sets} sets of {first.name}"
        )
    missing = [name for name in nest.nest.arrays if not nest.extents[name]]
    reach = f"; {', '.join(missing)} as far as the loops reach" if missing else ""
    return Note("array-layout", text + pad + reach, "assumption")
