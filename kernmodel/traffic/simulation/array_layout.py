"""Where the arrays of a nest lie in memory: a stated assumption, since the source does not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import InputError, Note
from kernmodel.source.model import LoopNest
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.program import NumericNest
from kernmodel.units import format_bytes
from kernmodel.value_types import dataclass

PAGE_BYTES = 4096
"""Arrays that are laid out for good begin at multiples of this: a page of every machine of this kind."""

MAPPED_BYTES, HEADER_BYTES = 128 * 1024, 16
"""From which size on the GNU C library maps a block by itself (mallopt(3)), and the header before every block."""

_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class ArrayReach:
    """What an array occupies, in bytes from its start: from `low` (0 or below) to before `high`."""

    name: str
    low: int
    high: int
    element_bytes: int


def place_arrays(nest: NumericNest, hierarchy: Hierarchy, options: SimulationOptions) -> dict[str, int]:
    """The address at which each array of a nest begins.

    An array without a declared extent reaches as far as the nest touches it.

    Raises:
        InputError: the arrays do not fit into 63 bits of address.
    """
    bases = lay_out(reaches_of(nest), hierarchy, options)
    if any(bases[each.name] + each.high >= _LIMIT for each in reaches_of(nest)):
        raise InputError(
            "the arrays do not fit into 63 bits of address", where=nest.nest.file, todo="give smaller sizes"
        )
    return bases


def declared_order(nest: LoopNest) -> tuple[str, ...]:
    """The arrays of a nest in the order of their declarations."""

    def place(name: str) -> tuple[int, int]:
        location = nest.arrays[name].location
        return location.line or 0, location.column or 0

    return tuple(sorted(nest.arrays, key=place))


def reaches_of(nest: NumericNest) -> tuple[ArrayReach, ...]:
    """What the arrays of a nest occupy, in the order of their declarations."""
    reaches = []
    for name in declared_order(nest.nest):
        spans = [reference.span for reference in nest.references if reference.access.array == name]
        low, high = min((span[0] for span in spans), default=0), max((span[1] for span in spans), default=0)
        element = nest.nest.arrays[name].element.size_bytes
        reaches.append(ArrayReach(name, min(0, low), max(nest.extents[name], high + 1), element))
    return tuple(reaches)


def lay_out(arrays: Sequence[ArrayReach], hierarchy: Hierarchy, options: SimulationOptions) -> dict[str, int]:
    """The address at which each array begins.

    Args:
        arrays: in the order of their declarations; `options.order` may name another.
    """
    known = {array.name: array for array in arrays}
    arrays = [known.pop(name) for name in options.order if name in known] + list(known.values())
    if options.alias:
        turn = lcm(
            *(level.sets * level.line_bytes for level in hierarchy.levels)
        )  # every cache is at the same set again
        return _page_by_page(arrays, turn, options.pad_bytes, 0)
    if options.layout == "packed":
        return _packed(arrays, options.pad_bytes)
    if options.layout == "heap":
        return _from_heap(arrays, options.pad_bytes)
    first = hierarchy.levels[0]
    spread = first.sets // max(1, len(arrays)) * first.line_bytes if options.layout == "padded" else 0
    return _page_by_page(arrays, PAGE_BYTES, options.pad_bytes, spread)


def _page_by_page(arrays: Iterable[ArrayReach], multiple: int, pad: int, spread: int) -> dict[str, int]:
    """Every array at a multiple of so many bytes, and each `spread` and `pad` bytes further behind it."""
    bases, end = {}, PAGE_BYTES  # nothing lies at address 0
    for number, array in enumerate(arrays):
        bases[array.name] = _aligned(end - array.low, multiple) + number * (spread + pad)
        end = bases[array.name] + array.high
    return bases


def _packed(arrays: Iterable[ArrayReach], pad: int) -> dict[str, int]:
    """Every array where the one before it ends."""
    bases, end = {}, PAGE_BYTES
    for number, array in enumerate(arrays):
        bases[array.name] = _aligned(end - array.low + (pad if number else 0), array.element_bytes)
        end = bases[array.name] + array.high
    return bases


def _from_heap(arrays: Iterable[ArrayReach], pad: int) -> dict[str, int]:
    """As the GNU C library allocates one after the other (mallopt(3), M_MMAP_THRESHOLD).

    Large blocks are mapped by themselves: whole pages with a header of 16 bytes, each below the one before. Small ones
    follow one another on the heap, each with a header of 16 bytes.
    """
    small, large = dict[str, int](), dict[str, int]()
    heap, mapped = PAGE_BYTES, 0
    for array in arrays:
        occupied = array.high - array.low + pad + HEADER_BYTES
        if occupied < MAPPED_BYTES:
            small[array.name] = heap + HEADER_BYTES - array.low
            heap += _aligned(occupied, HEADER_BYTES)
        else:
            mapped += _aligned(occupied, PAGE_BYTES)
            large[array.name] = HEADER_BYTES - array.low - mapped
    top = _aligned(heap, PAGE_BYTES) + mapped
    return small | {name: top + below for name, below in large.items()}


def _aligned(address: int, multiple: int) -> int:
    return -(-address // max(1, multiple)) * max(1, multiple)


def layout_note(nest: NumericNest, hierarchy: Hierarchy, options: SimulationOptions) -> Note:
    """What is assumed of the arrays' places."""
    missing = [name for name in nest.nest.arrays if not nest.extents[name]]
    reach = f"; {', '.join(missing)} as far as the loops reach" if missing else ""
    return Note("array-layout", layout_text(declared_order(nest.nest), hierarchy, options) + reach, "assumption")


def layout_text(names: Sequence[str], hierarchy: Hierarchy, options: SimulationOptions) -> str:
    """A layout in words; `names` are the arrays in the order of their declarations."""
    first = hierarchy.levels[0]
    order = ", ".join(dict.fromkeys((*(name for name in options.order if name in names), *names)))
    gap = format_bytes(options.pad_bytes)
    if options.layout == "packed" and not options.alias:
        between = f"without a gap but {gap}" if options.pad_bytes else "without a gap"
        return f"the arrays follow one another {between}, in the order {order}"
    if options.alias:
        text = "all arrays begin at the same set of every cache"
    elif options.layout == "heap":
        text = f"the arrays come from malloc, in the order {order}: large ones on pages of their own"
    elif options.layout == "pages":
        text = f"every array begins on the page behind the one before, in the order {order}"
    else:
        text = (
            f"every array begins on a page of its own, and they are spread over the {first.sets} sets of {first.name}"
        )
    return text + (f", {gap} further apart each" if options.pad_bytes else "")
