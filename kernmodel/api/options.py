"""What users choose, in the words of the command line, and the requests that it becomes."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from kernmodel.errors import InputError, UsageError
from kernmodel.studies.predict.request import CallCycles, CodeRequest, KernelRequest
from kernmodel.studies.sweep.values import EVERY_SIZE, grid, parse_values
from kernmodel.traffic.options import CacheMode, Layout, ReplacementPolicy, SimulationOptions, StoreMode
from kernmodel.units import parse_quantity, plain_number
from kernmodel.user_files import File, GivenText, Source, source_of
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.source.model import Stated
    from kernmodel.traffic.options import Distribution


class FileName(str):
    """A name that is never taken for text: what the command line is given."""

    __slots__ = ()


Values = int | str | Iterable[int]
"""One integer or several, or text as on the command line: "4000", "1,2,4", "1-20", "100-10000:20log"."""
Sizes = Values | Mapping[str, Values]
"""Values of a size; as the argument `sizes`, all sizes by name, for names that are arguments too, and for ".": every
size that has no value of its own."""

Port = Literal["optimal", "even"]
Syntax = Literal["att", "intel"]
_MOST_BYTES = 2**48
"""Bytes of a virtual address space."""


@dataclass(frozen=True, slots=True)
class Nest:
    """One loop nest of a source that has several.

    Attributes:
        source: a C file, the name of a carried kernel, or C source.
        nest: its number, from 1; function: the C function that it stands in. None where there is only one.
        line: a line of its innermost loop, in place of both.
        include: folders in which headers are looked for, besides that of the file.
        macros: names of macros to define, as -D of a compiler does without a value, or "NAME=0".
        taken: by line of a branch, with which probability its condition holds.
        trip_counts: by line of a loop, its iterations each time that it is entered.
    """

    source: Source
    nest: int | None = None
    function: str | None = None
    line: int | None = None
    include: Sequence[str] = ()
    macros: Sequence[str] = ()
    taken: Mapping[int, float] = field(default_factory=dict)
    trip_counts: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.line is not None:
            refuse({"--nest": self.nest, "--function": self.function}, "--source-line names the loop")
        for line, chance in self.taken.items():
            if not 0 <= chance <= 1:
                what = f"{line}={chance:g} is no probability"
                raise UsageError(what, where="--taken", todo="give a number from 0 to 1")
        for line, number in self.trip_counts.items():
            if number < 1:
                raise UsageError(
                    f"{line}={number} is no number of iterations", where="--trip-count", todo="give 1 or more"
                )

    def stated(self) -> Stated:
        """What is stated of the lines of the source."""
        from kernmodel.source.model import Stated

        return Stated(tuple(self.taken.items()), tuple(self.trip_counts.items()))


Kernel = Source | Nest
"""A loop kernel."""


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """How the data traffic is found, as the options of the command line with the same names.

    Attributes:
        mode: "lc" layer conditions, "sim" simulation, "both" (`data_traffic` only), "auto" layer conditions where they
            apply, else simulation. What follows but `stores` and `safety` is of the simulation, and asks for it.
        stores: "regular", "nt" (streaming stores) or "evading"; None: as the compiled code and the machine say.
        safety: factor on the cache sizes in layer conditions.
        policy: replacement in all caches, "lru", "fifo", "random", "mru" or "plru"; None: the machine's.
        layout: how arrays lie in memory, "padded" if None, "pages", "packed" or "heap".
        pad: more bytes between them, a number or text ("4 KiB"); alias: all begin at the same set.
        indirect: where the values of index arrays point, by name: "uniform", "banded:64", or a file of integers.
        exact: simulate whole sweeps; seed: of random replacement and indices.
    """

    mode: CacheMode = "auto"
    stores: StoreMode | None = None
    safety: float = 1.0
    policy: str | None = None
    layout: Layout | None = None
    pad: int | str | None = None
    alias: bool = False
    indirect: Mapping[str, str] | Sequence[str] = ()
    exact: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        one_of("--cache", self.mode, get_args(CacheMode))
        one_of("--stores", self.stores, get_args(StoreMode))
        one_of("--layout", self.layout, get_args(Layout))
        if not 0.01 <= self.safety <= 100:
            todo = "write --safety 0.5"
            raise UsageError(f"{self.safety!r} is not between 0.01 and 100", where="--safety", todo=todo)

    def simulation(self) -> SimulationOptions | None:
        """The options of the simulation, None if there are none.

        Raises:
            UsageError: there are some, but the traffic is found by layer conditions; or they contradict each other.
        """
        names = ("policy", "layout", "pad", "alias", "indirect", "exact", "seed")
        given = {name: getattr(self, name) for name in names}
        chosen = [name for name, value in given.items() if not (value is None or value is False or value in ((), {}))]
        if not chosen:
            return None
        if self.mode == "lc":
            what = "is an option of the simulation, but --cache lc takes layer conditions"
            raise UsageError(what, where=f"--{chosen[0]}", todo="leave it out, or ask for --cache sim")
        if self.alias and self.layout in ("packed", "heap"):
            what = f"puts all arrays at the same set, --layout {self.layout} one after the other"
            raise UsageError(what, where="--alias", todo="leave out one of them")
        policy: Any = None if self.policy is None else self.policy.upper()
        one_of("--policy", policy, get_args(ReplacementPolicy))
        return SimulationOptions(
            policy=policy,
            layout=self.layout or "padded",
            pad_bytes=parse_bytes(self.pad or 0),
            alias=self.alias,
            indirect=self._distributions(),
            seed=self.seed or 0,
            exact=self.exact,
        )

    def _distributions(self) -> Mapping[str, Distribution]:
        if not self.indirect:
            return {}
        from kernmodel.studies.predict.index_arrays import parse_indirect

        return parse_indirect(texts_of(self.indirect))


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """Which code executes the kernel, and how it is analysed, as the options of the command line with the same names.

    Attributes:
        asm: assembly that replaces the compiler's output: a file, or its text.
        compiler: command to use instead of the machine's first that is installed.
        flags: of the compiler, instead of the machine's, in one string or one each.
        syntax: of the assembly, "att" or "intel"; None: by evidence.
        loop: number of the loop to take, as listed when ambiguous; lines: first and last line of the loop.
        iterations_per_pass: source iterations that a pass of the loop executes; None: by evidence.
        ports: how uops share ports, "optimal" or "even".
        classic: the textbook prediction, by widths and saturated bandwidths, of the innermost loop alone.
        align: address of the loop modulo 64; None: that of the code, where it is known.
        data_align: bytes at multiples of which all arrays begin; the prediction takes them there and at no multiple of
            more. None: they begin at cache lines, and may begin anywhere that the code allows.
        array_offsets: of arrays by name, where they begin modulo a cache line; or texts "NAME=BYTES".
        call_cycles: of functions that the code calls, by name, the cycles of a call: a number, or two, between which it
            depends on the arguments; or texts "NAME=CYCLES", "NAME=LOW-HIGH".
        mask_utilization: share of the lanes that masked instructions compute, in charts.
    """

    asm: Source | None = None
    compiler: str | None = None
    flags: str | Sequence[str] | None = None
    syntax: Syntax | None = None
    loop: int | None = None
    lines: tuple[int, int] | None = None
    iterations_per_pass: float | None = None
    ports: Port = "optimal"
    classic: bool = False
    align: int | None = None
    data_align: int | None = None
    array_offsets: Mapping[str, int] | Sequence[str] = ()
    call_cycles: Mapping[str, float | tuple[float, float]] | Sequence[str] = ()
    mask_utilization: float = 1.0

    def __post_init__(self) -> None:
        one_of("--syntax", self.syntax, get_args(Syntax))
        one_of("--ports", self.ports, get_args(Port))
        check_alignment(self.data_align)
        check_loop_address(self.align)

    def request(self) -> CodeRequest:
        """The request for the stages.

        Raises:
            UsageError: flags that cannot be split.
        """
        return CodeRequest(
            asm=None if self.asm is None else source_of(self.asm),
            compiler=self.compiler,
            flags=None if self.flags is None else parse_flags(self.flags),
            syntax=self.syntax,
            loop=self.loop,
            lines=self.lines,
            port_model=self.ports,
            classic=self.classic,
            iterations_per_pass=self.iterations_per_pass,
            align=self.align,
            data_align=self.data_align,
            array_offsets=_offsets(self.array_offsets),
            call_cycles=_call_cycles(self.call_cycles),
        )


def check_loop_address(align: int | None) -> None:
    """Refuse what is no address of a loop modulo 64.

    Raises:
        UsageError: it is no integer from 0 to 63.
    """
    if align is not None and (isinstance(align, bool) or align not in range(_CODE_LINE)):
        what, todo = f"{align!r} is no address modulo {_CODE_LINE}", f"write --align 16 (0 to {_CODE_LINE - 1})"
        raise UsageError(what, where="--align", todo=todo)


_CODE_LINE = 64
"""As `kernmodel.incore.core.CODE_ALIGNMENT`, which is not loaded for options."""


def check_alignment(align: int | None) -> None:
    """Refuse what is no alignment of data.

    Raises:
        UsageError: it is no power of two up to 4096.
    """
    if align is not None and (isinstance(align, bool) or align not in _ALIGNMENTS):
        todo = "write --data-align 16: what malloc gives"
        raise UsageError(f"{align!r} is not a power of two from 1 to 4096", where="--data-align", todo=todo)


_ALIGNMENTS = frozenset(2**power for power in range(13))


def _offsets(given: Mapping[str, int] | Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Offsets of arrays by name.

    Raises:
        UsageError: one is not of the form NAME=BYTES.
    """
    found: dict[str, int] = {}
    for name, value in given.items() if isinstance(given, Mapping) else (text.partition("=")[::2] for text in given):
        if not re.fullmatch(r"[A-Za-z_]\w*(?:(?:->|\.)\w+)*", name) or not re.fullmatch(r"[0-9]{1,12}", str(value)):
            what, todo = f"{name}={value} is no offset of an array", "write --array-offset a=8 (bytes)"
            raise UsageError(what, where="--array-offset", todo=todo)
        found[name] = int(value)
    return tuple(found.items())


def _call_cycles(given: Mapping[str, float | tuple[float, float]] | Sequence[str]) -> tuple[CallCycles, ...]:
    """Cycles of calls by name.

    Raises:
        UsageError: one is not of the form NAME=CYCLES or NAME=LOW-HIGH.
    """
    found = []
    for name, value in given.items() if isinstance(given, Mapping) else (text.partition("=")[::2] for text in given):
        ends = value.split("-") if isinstance(value, str) else value if isinstance(value, tuple) else (value,)
        try:
            low, high = plain_number(str(ends[0])), plain_number(str(ends[-1]))
        except ValueError:
            low = high = math.nan
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name) or len(ends) > 2 or not 0 <= low <= high < math.inf:
            what, todo = f"{name}={value} says no cycles of a call", "write --call-cycles exp=14 or exp=12-40"
            raise UsageError(what, where="--call-cycles", todo=todo)
        found.append(CallCycles(name, low, high))
    return tuple(found)


def kernel_request(
    kernel: Kernel,
    machine: File,
    sizes: Mapping[str, int],
    cache: CacheMode | CacheOptions = "auto",
    cores: int = 1,
) -> KernelRequest:
    """The request for one kernel on one machine at one point of sizes."""
    options = cache if isinstance(cache, CacheOptions) else CacheOptions(cache)
    nest = kernel if isinstance(kernel, Nest) else Nest(kernel)
    return KernelRequest(
        kernel=source_of(nest.source),
        machine=fspath(machine),
        sizes=sizes,
        nest=nest.nest,
        function=nest.function,
        line=nest.line,
        include=tuple(nest.include),
        macros=tuple(macros_of(nest).items()),
        taken=tuple(nest.taken.items()),
        trip_counts=tuple(nest.trip_counts.items()),
        cores=cores,
        safety=options.safety,
        cache=options.mode,
        stores=options.stores,
        simulation=options.simulation(),
    )


def kernels_of(kernels: Kernel | Sequence[Kernel]) -> tuple[Nest, ...]:
    """One or several kernels."""
    several = [kernels] if isinstance(kernels, str | PathLike | Nest) else kernels
    return tuple(kernel if isinstance(kernel, Nest) else Nest(kernel) for kernel in several)


def nest_choices(kernels: Iterable[Nest]) -> dict[str, object]:
    """What is chosen of the loop nests, by the name of the option."""
    given = tuple(kernels)
    nests, functions = ([getattr(one, name) for one in given] for name in ("nest", "function"))
    return {"--nest": tuple(filter(None, nests)), "--function": tuple(filter(None, functions))}


def is_c_source(source: Source) -> bool:
    """Whether a source is a kernel in C, or a description of one, rather than assembly: by a brace in its text, by its
    ending, or a carried name."""
    name = source_of(source)
    if isinstance(name, GivenText):
        return "{" in name.text or "[" in name.text
    from kernmodel.source.text import is_description

    path = Path(name)
    is_carried = not path.suffix and name != "-" and not path.is_file()
    return path.suffix.lower() == ".c" or is_description(name) or is_carried


def values_of(values: Values, option: str) -> tuple[int, ...]:
    """The integers that are given, each once.

    Raises:
        UsageError: something else, or values below 1.
    """
    if isinstance(values, str):
        return parse_values(values, option)
    several = values if isinstance(values, Iterable) else [values]
    return parse_values(",".join(map(str, several)), option)


def values_by_name(sizes: Mapping[str, Sizes]) -> dict[str, tuple[int, ...]]:
    """The values of each size; those in a mapping `sizes` come first.

    Raises:
        UsageError: as `values_of`.
    """
    named: dict[str, Any] = {}
    for name, values in sizes.items():
        named.update(values if isinstance(values, Mapping) else {name: values})
    for name, values in named.items():
        if isinstance(values, str) and not values.lstrip()[:1].isdigit():
            _refuse_option(name, values)
    return {name: values_of(values, f"-D {name}") for name, values in named.items()}


def _refuse_option(name: str, value: str) -> None:
    """Refuse what is given as a size and is the name of an option.

    Raises:
        UsageError: it is one.
    """
    places = {CodeOptions: "code=km.CodeOptions({})", CacheOptions: "cache=km.CacheOptions({})", Nest: "km.Nest(…, {})"}
    for options, place in places.items():
        if name in {one.name for one in fields(options)}:
            todo = f"give it there: {place.format(f'{name}={value!r}')}"
            raise UsageError(f"{name} is no size but an option of {options.__name__}", todo=todo)


def macros_of(nest: Nest) -> dict[str, str]:
    """The macros of a nest with their texts."""
    return {name: value or "1" for name, _, value in (text.partition("=") for text in nest.macros)}


def points_of(
    sizes: Mapping[str, Sizes], kernels: Kernel | Sequence[Kernel] | None = None
) -> tuple[Mapping[str, int], ...]:
    """All points of sizes; one empty point where none are given.

    Args:
        kernels: whose sizes "." stands for: at each point all of them have its value.

    Raises:
        UsageError: as `values_of`; too many points. KernmodelError: a kernel cannot be read for its sizes.
    """
    named = values_by_name(sizes)
    points = grid(named)
    if EVERY_SIZE not in named:
        return points
    own = size_names(kernels, {name: values[0] for name, values in named.items() if name != EVERY_SIZE})
    return tuple({**dict.fromkeys(own, point[EVERY_SIZE]), **_named(point)} for point in points)


def _named(point: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in point.items() if name != EVERY_SIZE}


def size_names(kernels: Kernel | Sequence[Kernel] | None, given: Mapping[str, int]) -> tuple[str, ...]:
    """The sizes of kernels that have no value here, each once: what "." stands for.

    Raises:
        UsageError: there is none. KernmodelError: a kernel cannot be read.
    """
    from kernmodel.studies.predict.nests import size_symbols

    requests = [kernel_request(kernel, "", given) for kernel in (() if kernels is None else kernels_of(kernels))]
    names = tuple(dict.fromkeys(name for one in requests for name in size_symbols(one) if name not in given))
    if not names:
        what = "there is no size that it could be the value of"
        raise UsageError(what, where=f"-D {EVERY_SIZE}", todo="leave it out")
    return names


def one_point_of(sizes: Mapping[str, Sizes], kernels: Kernel | Sequence[Kernel] | None = None) -> Mapping[str, int]:
    """The one point of sizes.

    Raises:
        UsageError: as `points_of`; several points.
    """
    points = points_of(sizes, kernels)
    if len(points) > 1:
        raise UsageError("this command takes one value for each size", where="-D", todo="write -D N=4000")
    return points[0]


def texts_of(named: Mapping[str, object] | Sequence[str]) -> list[str]:
    """Values by name as texts NAME=VALUES; texts as they stand."""
    if not isinstance(named, Mapping):
        return list(named)
    return [f"{name}={_listed(values)}" for name, values in named.items()]


def _listed(values: object) -> str:
    return ",".join(map(str, values)) if isinstance(values, Iterable) and not isinstance(values, str) else str(values)


def parse_bytes(value: int | str) -> int:
    """A number of bytes, with or without a unit of data.

    Raises:
        UsageError: it is no whole number from 0, or larger than an address space.
    """
    todo = "write a whole number of bytes such as 64, 64 B or 4 KiB"
    text = str(value)
    try:
        number = parse_quantity(f"{text} B" if re.fullmatch(r"\s*[+-]?[0-9.]+\s*", text) else text, "data")
    except InputError as error:
        raise UsageError(error.what, where="--pad", todo=todo) from error
    if number < 0 or number != int(number):
        raise UsageError(f"{value!r} is not a whole number of bytes from 0", where="--pad", todo=todo)
    if number > _MOST_BYTES:
        raise UsageError(f"{value!r} leaves no address for the arrays", where="--pad", todo="take a smaller gap")
    return int(number)


def parse_flags(flags: str | Sequence[str]) -> tuple[str, ...]:
    """The flags of a compiler, one each; a string is split as a shell does.

    Raises:
        UsageError: it cannot be split.
    """
    if not isinstance(flags, str):
        return tuple(flags)
    try:
        return tuple(shlex.split(flags))
    except ValueError as error:
        raise UsageError(f"{flags!r} cannot be split: {error}", where="--flags", todo="check the quotes") from error


def one_of(option: str, value: str | None, choices: Sequence[str]) -> None:
    """Refuse what is none of the choices.

    Raises:
        UsageError: names them.
    """
    if value is not None and value not in choices:
        raise UsageError(f"{value!r} is not known", where=option, todo=f"use one of {', '.join(choices)}")


def refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options, by name, that are given but do not fit.

    Raises:
        UsageError: the first one that is neither None nor empty.
    """
    for option, value in given.items():
        if value not in (None, ()):
            raise UsageError(f"does not fit: {why}", where=option, todo="leave it out")


CACHE, CODE = CacheOptions(), CodeOptions()
"""What is chosen where nothing is said."""
