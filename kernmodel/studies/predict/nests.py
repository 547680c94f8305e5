"""The nests of a kernel at points of sizes: read with the values that decide what the source says, and checked.

Light on purpose: importing this module loads no stage.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, SeveralNestsError

if TYPE_CHECKING:
    from kernmodel.source.load import FoundNest
    from kernmodel.source.model import LoopNest, Stated
    from kernmodel.studies.predict.request import KernelRequest

Sizes = Mapping[str, int]


def stated_of(kernel: KernelRequest) -> Stated:
    """What is stated of the lines of the source."""
    from kernmodel.source.model import Stated

    return Stated(kernel.taken, kernel.trip_counts)


def read_nest(kernel: KernelRequest) -> LoopNest:
    """The nest that is asked for, read with those of its sizes that decide what the source says.

    Raises:
        KernmodelError: there is no such kernel, or it cannot be read.
    """
    from kernmodel.source.load import load_kernel

    chosen = {"nest": kernel.nest, "line": kernel.line}
    return load_kernel(
        kernel.kernel,
        kernel.defines,
        function=kernel.function,
        include=kernel.include,
        stated=stated_of(kernel),
        **chosen,
    )


def size_symbols(kernel: KernelRequest) -> tuple[str, ...]:
    """Names of the sizes of a kernel, but for the length of rows; of a file with several nests those of all.

    Raises:
        KernmodelError: there is no such kernel, or it cannot be read.
    """
    from kernmodel.source.load import find_nests
    from kernmodel.source.model import ROW_LENGTH, LoopNest

    try:
        nests = [read_nest(kernel)]
    except SeveralNestsError:
        found = find_nests(
            kernel.kernel, kernel.defines, function=kernel.function, include=kernel.include, stated=stated_of(kernel)
        )
        nests = [one.nest for one in found if isinstance(one.nest, LoopNest)]
    return tuple(dict.fromkeys(name for nest in nests for name in nest.symbols if name != ROW_LENGTH))


def nests_of(kernel: KernelRequest) -> tuple[KernelRequest, ...]:
    """The request for each nest of a file or function of which none is chosen, with its own of the sizes given; the one
    request where it has one."""
    from kernmodel.source.load import find_nests
    from kernmodel.source.model import LoopNest

    try:
        read_nest(kernel)
    except SeveralNestsError:
        stated, include = stated_of(kernel), kernel.include
        found = find_nests(
            kernel.kernel, kernel.defines, function=kernel.function, include=include, marked=True, stated=stated
        )
        nests = [one.nest for one in found if isinstance(one.nest, LoopNest)]
        return tuple(request_of(one, nests, kernel) for one in found)
    except KernmodelError:
        pass  # whoever reads it says so
    return (kernel,)


def request_of(found: FoundNest, nests: Sequence[LoopNest], kernel: KernelRequest) -> KernelRequest:
    """The request for one nest of those that are asked for together: of the sizes and distributions of index arrays
    given its own. Those that none of the nests has stay, for they are refused."""
    from kernmodel.source.model import LoopNest

    asked = replace(kernel, nest=found.number, function=found.function or None)
    if not isinstance(found.nest, LoopNest):
        return asked
    options = kernel.simulation
    if options is not None and options.indirect:
        others = {name for nest in nests for name in nest.index_arrays} - {*found.nest.index_arrays}
        own = {name: one for name, one in options.indirect.items() if name not in others}
        asked = replace(asked, simulation=replace(options, indirect=own))
    return replace(asked, sizes=own_sizes([found.nest], kernel.sizes, sizes_of_any(nests)))


def nest_suffix(number: int | None) -> str:
    """What tells a nest from the others of its function: " nest 2"; empty where none is chosen."""
    return "" if number is None else f" nest {number}"


def label_of(kernel: KernelRequest) -> str:
    """The kernel as asked for, with its function and the number of the nest where one is chosen."""
    function = f": {kernel.function}" if kernel.function and kernel.nest is not None else ""
    return f"{kernel.kernel}{function}{nest_suffix(kernel.nest)}"


def sizes_at(nest: LoopNest, point: Sizes) -> tuple[dict[str, int], dict[str, int]]:
    """The checked value of every size symbol at a point; and the same for reports, with the values that decide what
    the source says: of steps, and of conditions where -D gives them.

    Raises:
        SourceError: as `kernmodel.source.nest.sizes.sizes_of`.
    """
    from kernmodel.source.nest.sizes import deciding_names, sizes_of

    sizes = sizes_of(nest, point)
    fixed = {name: value for name, value in nest.defaults.items() if name not in nest.symbols}
    return sizes, fixed | {name: point[name] for name in deciding_names(nest, point)} | sizes


def sizes_of_any(nests: Iterable[LoopNest]) -> set[str]:
    """The names that may be given where these nests are asked for together."""
    from kernmodel.source.model import ROW_LENGTH

    return {ROW_LENGTH}.union(*(nest.symbols for nest in nests))


def own_sizes(nests: Iterable[LoopNest], given: Sizes, known: Container[str]) -> dict[str, int]:
    """The sizes given without those that others of the nests asked for have and none of these: `sizes_of` refuses what
    no nest has.

    Args:
        known: `sizes_of_any` of all nests.
    """
    own = {name for nest in nests for name in (*nest.symbols, *nest.defaults)}
    return {name: value for name, value in given.items() if name in own or name not in known}


def alike(nest: LoopNest, points: Sequence[Sizes]) -> tuple[tuple[Sizes, ...], ...]:
    """The points in groups for which the source says the same, in the order in which they come."""
    from kernmodel.source.nest.sizes import deciding_names

    groups: dict[tuple[int, ...], list[Sizes]] = {}
    for point in points:
        groups.setdefault(tuple(point[name] for name in deciding_names(nest, point)), []).append(point)
    return tuple(map(tuple, groups.values()))


def largest(points: Sequence[Sizes]) -> dict[str, int]:
    """The largest value of each size over all points."""
    return {name: max(point[name] for point in points) for name in points[0]}
