"""Options that several commands share, their types, and what completes them in the shell."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from kernmodel.errors import InputError, UsageError, refuse_warnings
from kernmodel.resources import carried_files
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.sweep.values import grid, parse_defines, parse_values
from kernmodel.traffic.options import CacheMode, ReplacementPolicy, SimulationOptions, StoreMode
from kernmodel.units import TIME_UNITS, parse_quantity, plain_number

if TYPE_CHECKING:
    from kernmodel.errors import Note
    from kernmodel.traffic.options import Distribution

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # not generic at run time in older releases of click

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]
Port = Literal["optimal", "even"]
Syntax = Literal["att", "intel"]


class Carried(ParamType):
    """A path, or the name of a carried file; both complete in the shell."""

    name = "file or name"

    def __init__(self, folder: str, ending: str) -> None:
        self.folder = folder
        self.ending = ending

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The carried names that match, and files."""
        names = (file.stem for file in carried_files(self.folder, self.ending))
        matching = [name for name in names if name.startswith(incomplete)]
        # bash completes files by itself only where nothing else matches, so the user's are named here
        own = [name for name in _files(incomplete) if name.endswith(self.ending)]
        # the shell's own completion of files comes first: bash forgets what stood before it
        return [CompletionItem(incomplete, type="file"), *(CompletionItem(name) for name in [*matching, *own])]


def _files(incomplete: str) -> list[str]:
    """The files whose path, as it is written, begins like this."""
    folder, slash, beginning = incomplete.rpartition("/")
    with suppress(OSError):
        entries = Path(folder + slash or ".").iterdir()
        return sorted(folder + slash + entry.name for entry in entries if entry.name.startswith(beginning))
    return []


class Microarchitecture(ParamType):
    """The name of a microarchitecture."""

    name = "name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that match in any case."""
        from kernmodel.incore.tables.parameters import known_microarchitectures

        return [CompletionItem(n) for n in known_microarchitectures() if n.lower().startswith(incomplete.lower())]


class Unit(ParamType):
    """One of several units, written in any case."""

    name = "unit"

    def __init__(self, units: Sequence[str]) -> None:
        self.units = tuple(units)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The unit as it is spelt."""
        for unit in self.units:
            if unit.lower() == str(value).lower():
                return unit
        raise UsageError(f"unknown unit {value!r}", where="--unit", todo=f"use one of {', '.join(self.units)}")

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The units that match in any case."""
        return [CompletionItem(unit) for unit in self.units if unit.lower().startswith(incomplete.lower())]


class CoreCounts(ParamType):
    """Core counts such as `1-20`."""

    name = "counts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """The counts as integers."""
        return value if isinstance(value, tuple) else parse_values(value, "--cores")


class Lines(ParamType):
    """A range of lines `A-B`."""

    name = "A-B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """First and last line."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([0-9]+)-([0-9]+)", value)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"{value!r} is no range of lines", where="--lines", todo="write --lines 10-25")
        return int(match[1]), int(match[2])


class Factor(ParamType):
    """A finite number above 0, up to `most`, for an option that the errors name with an example."""

    name = "factor"

    def __init__(self, option: str, example: str, most: float = math.inf) -> None:
        self.option = option
        self.example = example
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            number = plain_number(str(value))
        except ValueError:
            number = math.nan
        todo = f"write {self.option} {self.example}"
        if not (math.isfinite(number) and number > 0):
            raise UsageError(f"{value!r} is no finite number above 0", where=self.option, todo=todo)
        if not 1 / self.most <= number <= self.most:
            what = f"{value!r} is not between {1 / self.most:g} and {self.most:g}"
            raise UsageError(what, where=self.option, todo=todo)
        return number


class Bytes(ParamType):
    """A number of bytes, with or without a unit of data."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes as an integer."""
        if isinstance(value, int):
            return value
        todo = "write a whole number of bytes such as 64, 64 B or 4 KiB"
        try:
            number = parse_quantity(f"{value} B" if re.fullmatch(r"\s*[+-]?[0-9.]+\s*", value) else value, "data")
        except InputError as error:
            raise UsageError(error.what, where="--pad", todo=todo) from error
        if number < 0 or number != int(number):
            raise UsageError(f"{value!r} is not a whole number of bytes from 0", where="--pad", todo=todo)
        if number > _MOST_BYTES:
            raise UsageError(f"{value!r} leaves no address for the arrays", where="--pad", todo="take a smaller gap")
        return int(number)


class Flags(ParamType):
    """Compiler flags in one string, split as a shell does."""

    name = "flags"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The flags, one each."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise UsageError(f"{value!r} cannot be split: {error}", where="--flags", todo="check the quotes") from error


class Count(click.IntRange):
    """A whole number in digits of ASCII."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            self.fail(f"{value[:40]!r} is not a whole number", param, ctx)
        return super().convert(value, param, ctx)


_MOST_BYTES = 2**48
"""Bytes of a virtual address space."""

MACHINE = Carried("machine-files", ".yml")
KERNEL = Carried("kernels", ".c")


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several decorators as one, the first one outermost."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def machine_option(*, required: bool = True) -> Decorator[Any]:
    """`-m/--machine`."""
    text = "Machine file, or the name of a carried one (see `machine list`)."
    return click.option("-m", "--machine", type=MACHINE, required=required, help=text)


kernel_argument = click.argument("kernel", type=KERNEL)
uarch_option = click.option("--uarch", type=Microarchitecture(), help="Microarchitecture, in place of a machine.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document (docs/json.md).")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show how the numbers come about.")
strict_option = click.option("--strict", is_flag=True, help="Refuse results that carry a warning.")
defines_option = click.option(
    "-D",
    "defines",
    multiple=True,
    metavar="NAME=VALUES",
    help="Value of a size: 4000, 1,2,4, 1-20 (all), 100-10000:20 (20 points), 100-10000:20log. Several give a table.",
)
cores_help = "Active cores that share the shared caches: 8, 1,2,4, 1-20. Several give a table."
ports_option = click.option(
    "--ports",
    type=click.Choice(["optimal", "even"]),
    default="optimal",
    show_default=True,
    help="How uops share ports: the exact bound, or equal shares.",
)
output_options = together(verbose_option, strict_option, json_option)
nest_help = "Number of the loop nest in the file."
nest_option = click.option("--nest", type=Count(min=1), metavar="K", help=nest_help)
function_option = click.option("--function", metavar="F", help="C function to take.")
kernel_options = together(
    defines_option,
    nest_option,
    function_option,
    click.option(
        "--safety",
        type=Factor("--safety", "0.5", most=100.0),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Factor on the cache sizes in layer conditions (0.5: the rule of thumb).",
    ),
)
iterations_option = click.option(
    "--iterations-per-pass",
    "iterations_per_pass",
    type=Factor("--iterations-per-pass", "8", most=1e6),
    metavar="X",
    help="Source iterations that a pass of the assembly loop executes.  [default: by evidence]",
)
loop_options = together(
    click.option("--loop", type=Count(min=1), metavar="N", help="Number of the assembly loop, as listed."),
    click.option("--lines", type=Lines(), metavar="A-B", help="Lines of the assembly to take as the loop body."),
    click.option(
        "--syntax", type=click.Choice(["att", "intel"]), help="Syntax of the assembly.  [default: by evidence]"
    ),
    iterations_option,
    ports_option,
)
asm_option = click.option(
    "--asm", metavar="FILE", type=click.Path(), help="Assembly of the kernel, in place of compiling it."
)
compiler_option = click.option(
    "--compiler", metavar="C", help="Compiler to use.  [default: the machine's first that is installed]"
)
flags_option = click.option("--flags", type=Flags(), help="Compiler flags in one string.  [default: the machine's]")


classic_option = click.option(
    "--classic", is_flag=True, help="The textbook prediction: leave out what is executed outside the innermost loop."
)


def code_options(function: Function) -> Function:
    """`--asm`, `--compiler`, `--flags`, `loop_options` and `--classic`; the command gets one `CodeRequest`, argument
    `code`."""

    @wraps(function)
    def with_code(
        asm: str | None,
        compiler: str | None,
        flags: tuple[str, ...] | None,
        syntax: Syntax | None,
        loop: int | None,
        lines: tuple[int, int] | None,
        iterations_per_pass: float | None,
        ports: Port,
        classic: bool,
        **arguments: Any,
    ) -> Any:
        code = CodeRequest(asm, compiler, flags, syntax, loop, lines, ports, classic, iterations_per_pass)
        return function(code=code, **arguments)

    return together(asm_option, compiler_option, flags_option, loop_options, classic_option)(with_code)  # type: ignore[no-any-return]


def code_of(given: Mapping[str, Any], *, compiled: bool = True) -> CodeRequest:
    """The `CodeRequest` of a command's arguments by name; `compiled`: with its one compiler and its flags."""
    compiler, flags = (given["compiler"], given["flags"]) if compiled else (None, None)
    names = ("syntax", "loop", "lines", "ports", "classic", "iterations_per_pass")
    return CodeRequest(given["asm"], compiler, flags, *(given[name] for name in names))


time_unit_option = click.option(
    "--unit",
    type=Unit(TIME_UNITS),
    default="cy/CL",
    show_default=True,
    help=f"Unit of the headline: {', '.join(TIME_UNITS)} (s: seconds per sweep).",
)


_POLICIES: tuple[str, ...] = get_args(ReplacementPolicy)


@dataclass(frozen=True, slots=True)
class CacheChoices:
    """What the user chose about the way to the traffic: the fields of a `KernelRequest` with the same names."""

    cache: CacheMode
    stores: StoreMode | None
    simulation: SimulationOptions | None

    def request(
        self,
        kernel: str,
        machine: str,
        sizes: Mapping[str, int],
        nest: int | None,
        function: str | None,
        safety: float,
    ) -> KernelRequest:
        """The request with these choices."""
        return KernelRequest(
            kernel,
            machine,
            sizes,
            nest,
            function,
            safety=safety,
            cache=self.cache,
            stores=self.stores,
            simulation=self.simulation,
        )


def cache_options(*modes: CacheMode) -> Decorator[Any]:
    """`--cache` with these modes, `--stores`, and the options of the simulation; the command gets one `CacheChoices` in
    the argument `choices`."""
    add = together(
        click.option(
            "--cache",
            type=click.Choice(modes),
            default="auto",
            show_default=True,
            help="Layer conditions (lc) or simulation (sim); auto: lc where they apply, else sim.",
        ),
        click.option(
            "--stores",
            type=click.Choice(get_args(StoreMode)),
            help="Stores that load their line, streaming stores, or as the cores evade.  [default: as found]",
        ),
        *_SIMULATION_OPTIONS.values(),
    )

    def decorate(function: Function) -> Function:
        @wraps(function)
        def with_choices(cache: CacheMode, stores: StoreMode | None, **arguments: Any) -> Any:
            given = {name: arguments.pop(name) for name in _SIMULATION_OPTIONS}
            return function(choices=CacheChoices(cache, stores, _simulation(cache, given)), **arguments)

        return add(with_choices)  # type: ignore[no-any-return]

    return decorate


_SIMULATION_OPTIONS: Mapping[str, Decorator[Any]] = {
    "policy": click.option(
        "--policy",
        type=click.Choice([policy.lower() for policy in _POLICIES], case_sensitive=False),
        help="Replacement in all simulated caches.  [default: the machine's]",
    ),
    "layout": click.option(
        "--layout",
        type=click.Choice(["padded", "pages", "packed", "heap"]),
        help="Simulated arrays on pages of their own and spread over the sets of L1, on the next page each, without a "
        "gap, or as malloc places them.  [default: padded]",
    ),
    "pad": click.option("--pad", type=Bytes(), metavar="BYTES", help="More bytes between the simulated arrays."),
    "alias": click.option("--alias", is_flag=True, help="Let all simulated arrays begin at the same set of a cache."),
    "indirect": click.option(
        "--indirect",
        multiple=True,
        metavar="IDX=WHERE",
        help="Where the values of the index array IDX point: uniform, banded:K, or a FILE of integers.",
    ),
    "exact": click.option("--exact", is_flag=True, help="Simulate whole sweeps, whatever they cost."),
    "seed": click.option(
        "--seed", type=Count(0, 2**32 - 1), metavar="N", help="Seed of random replacement and indices."
    ),
}
"""Options that only the simulation knows, by the name of their argument."""


def _simulation(cache: CacheMode, given: Mapping[str, Any]) -> SimulationOptions | None:
    """The options of the simulation, None if there are none.

    Raises:
        UsageError: there are some, but the traffic is found by layer conditions; or they contradict each other.
    """
    chosen = [name for name, value in given.items() if not (value is None or value is False or value == ())]
    if not chosen:
        return None
    if cache == "lc":
        what = "is an option of the simulation, but --cache lc takes layer conditions"
        raise UsageError(what, where=f"--{chosen[0]}", todo="leave it out, or ask for --cache sim")
    if given["alias"] and given["layout"] in ("packed", "heap"):
        what = f"puts all arrays at the same set, --layout {given['layout']} one after the other"
        raise UsageError(what, where="--alias", todo="leave out one of them")
    return SimulationOptions(
        policy=given["policy"] and given["policy"].upper(),
        layout=given["layout"] or "padded",
        pad_bytes=given["pad"] or 0,
        alias=given["alias"],
        indirect=_distributions(given["indirect"]),
        seed=given["seed"] or 0,
        exact=given["exact"],
    )


def _distributions(texts: tuple[str, ...]) -> Mapping[str, Distribution]:
    if not texts:
        return {}
    from kernmodel.studies.predict.index_arrays import parse_indirect

    return parse_indirect(texts)


def points_of(defines: tuple[str, ...]) -> tuple[Mapping[str, int], ...]:
    """All points that the `-D` options stand for; one empty point without them.

    Raises:
        UsageError: an option that cannot be read, or too many points.
    """
    return grid(parse_defines(defines))


def one_point_of(defines: tuple[str, ...]) -> Mapping[str, int]:
    """The one point that the `-D` options stand for.

    Raises:
        UsageError: an option that cannot be read, or several points.
    """
    points = points_of(defines)
    if len(points) > 1:
        raise UsageError("this command takes one value for each size", where="-D", todo="write -D N=4000")
    return points[0]


def accept_notes(notes: tuple[Note, ...], strict: bool) -> None:
    """With `--strict`, raise `StrictError` for the first warning."""
    if strict:
        refuse_warnings(notes)


def output_file(path: str) -> Path:
    """The path of a file to write; refuses a directory before any work is done."""
    if not path:
        raise UsageError("the name of the file to write is empty", todo="give a name")
    if Path(path).is_dir():
        raise UsageError("is a directory", where=path, todo="give the name of a file to write")
    return Path(path)
