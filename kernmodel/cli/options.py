"""Options that several commands share, their types, and what completes them in the shell."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from kernmodel.api.options import FileName, Nest, parse_bytes, parse_flags
from kernmodel.errors import KernmodelError, UsageError
from kernmodel.isa import ROWS_ENDING, at_vectors, with_rows
from kernmodel.machine.pages import Pages
from kernmodel.resources import carried_files
from kernmodel.studies.sweep.values import parse_defines, parse_values
from kernmodel.traffic.options import CacheMode, Layout, ReplacementPolicy, StoreMode
from kernmodel.units import TIME_UNITS, plain_number

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
    from kernmodel.source.load import FoundNest
else:
    ParamType = click.ParamType  # not generic at run time in older releases of click

Function = TypeVar("Function", bound=Callable[..., Any])
Number = TypeVar("Number", int, float)
Decorator = Callable[[Function], Function]


class Carried(ParamType):
    """A path, or the name of a carried file; both complete in the shell."""

    name = "file or name"

    def __init__(self, folder: str, ending: str) -> None:
        self.folder = folder
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileName:
        """The name as it stands."""
        return FileName(value)

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


class NamedInSource(ParamType):
    """A name that the C source of the kernel has, as far as the kernel stands before it on the command line.

    Args:
        names: of the nests of a source, those that can be given; end: what stands behind each.
    """

    name = "text"

    def __init__(self, names: Callable[[Sequence[FoundNest]], Iterable[str]], end: str = "") -> None:
        self.names = names
        self.end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it stands."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of the kernel that match; none where there is no kernel that can be read."""
        from kernmodel.source.load import find_nests

        # an option without its value yet leaves the arguments where they stand
        given = [ctx.params.get("kernel"), *(ctx.params.get("kernels") or ()), *ctx.args]
        try:
            kernel = next(str(name) for name in given if name)
            names = self.names(find_nests(kernel, include=tuple(ctx.params.get("include") or ())))
        except StopIteration:
            return []
        except KernmodelError:
            return []
        return [CompletionItem(name + self.end) for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _sizes_in(nests: Sequence[FoundNest]) -> Iterator[str]:
    for one in nests:
        yield from getattr(one.nest, "symbols", ())


SIZES = NamedInSource(_sizes_in, "=")
FUNCTIONS = NamedInSource(lambda nests: (one.function for one in nests))


class CarriedMachine(Carried):
    """The same of machines, with the length of vectors that was asked for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileName:
        """The name, and behind it the length."""
        return FileName(_as_chosen(value, ctx))


class Microarchitecture(ParamType):
    """The name of a microarchitecture."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The names as they stand, each with the length of vectors that was asked for."""
        return ",".join(_as_chosen(name, ctx) for name in str(value).split(","))

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
        from kernmodel.api.result import spelt

        return spelt(str(value), self.units)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The units that match in any case."""
        return [CompletionItem(unit) for unit in self.units if unit.lower().startswith(incomplete.lower())]


class Parsed(ParamType):
    """What a function makes of the text of an option; a value that is no text stays as it is."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value."""
        return self.parse(value) if isinstance(value, str) else value


def _lines(text: str) -> tuple[int, int]:
    """First and last line of `A-B`."""
    match = re.fullmatch(r"([0-9]+)-([0-9]+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"{text!r} is no range of lines", where="--lines", todo="write --lines 10-25")
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


class Count(click.IntRange):
    """A whole number in digits of ASCII."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            self.fail(f"{value[:40]!r} is not a whole number", param, ctx)
        return super().convert(value, param, ctx)


COUNTS = Parsed("counts", lambda text: parse_values(text, "--cores"))
"""Core counts such as `1-20`."""
FLAGS = Parsed("flags", parse_flags)
"""Compiler flags in one string, split as a shell does."""
BYTES = Parsed("bytes", parse_bytes)
MACHINE = CarriedMachine("machine-files", ".yml")
KERNEL = Carried("kernels", ".c")
FILE = click.Path(allow_dash=True, path_type=FileName)


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several decorators as one, the first one outermost."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_VECTOR_BITS, _ROWS = "kernmodel.vector-bits", "kernmodel.rows"


def _keep_bits(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Keep the length of vectors for the names of machines and cores, which are read after it."""
    ctx.meta[_VECTOR_BITS] = value


def _keep_rows(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Keep the file of rows for the names of machines and cores, which are read after it.

    Raises:
        UsageError: its name would not be told from a part of theirs.
    """
    if value is not None and not value.endswith(ROWS_ENDING):
        raise UsageError(f"{value} does not end in {ROWS_ENDING}", where="--instructions", todo="name it so")
    ctx.meta[_ROWS] = value


def _as_chosen(name: str, ctx: click.Context | None) -> str:
    """The name of a machine or core with what other options say of its core."""
    chosen = ctx.meta if ctx is not None else {}
    if rows := chosen.get(_ROWS):
        name = with_rows(str(name).strip(), rows)
    bits = chosen.get(_VECTOR_BITS)
    return str(name) if bits is None else at_vectors(str(name), int(bits))


vector_option = click.option(
    "--vl",
    type=click.Choice(("128", "256", "512")),
    is_eager=True,
    expose_value=False,
    callback=_keep_bits,
    help="Bits of SVE's vectors, on a core that has several lengths.  [default: those of the machine]",
)

instructions_option = click.option(
    "--instructions",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=_keep_rows,
    help="Rows that come before those of the core's table, as `measure instruction -o` writes them.",
)


def machine_option(*, required: bool = True) -> Decorator[Any]:
    """`-m/--machine`."""
    text = "Machine file, or the name of a carried one (see `machine list`)."
    return click.option("-m", "--machine", type=MACHINE, required=required, help=text)


kernel_argument = click.argument("kernel", type=KERNEL)
_DESCRIBED = "kernmodel.description"


def _keep_description(ctx: click.Context, param: click.Parameter, value: FileName | None) -> None:
    """Keep the file of `--description` for the argument, which is read after it.

    Raises:
        UsageError: its ending is no YAML's.
    """
    from kernmodel.source.text import is_description

    if value is not None and not is_description(value):
        raise UsageError(f"{value} is no description", where="--description", todo="give a .yml file (docs/kernels.md)")
    ctx.meta[_DESCRIBED] = value


def _or_description(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """KERNEL, or the description in its place.

    Raises:
        UsageError: both, or neither.
    """
    described = ctx.meta.get(_DESCRIBED)
    if described is None:
        if param.nargs == 1 and value is None:
            raise click.MissingParameter(ctx=ctx, param=param)
        return value
    if value:
        raise UsageError("stands beside KERNEL", where="--description", todo="give one of them")
    return described if param.nargs == 1 else (described,)


description_option = click.option(
    "--description",
    metavar="FILE.yml",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=_keep_description,
    help="Kernel that is described in YAML, in place of KERNEL.",
)
described_argument = together(
    click.argument("kernel", type=KERNEL, required=False, metavar="KERNEL", callback=_or_description),
    description_option,
)
"""KERNEL of commands that need no code of it, or take it by `--asm`."""
described_arguments = together(
    click.argument("kernels", type=KERNEL, nargs=-1, metavar="KERNEL...", callback=_or_description), description_option
)
"""The same of several kernels."""
uarch_option = click.option("--uarch", type=Microarchitecture(), help="Microarchitecture, in place of a machine.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document (docs/json.md).")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show how the numbers come about.")
strict_option = click.option("--strict", is_flag=True, help="Refuse results that carry a warning.")
defines_option = click.option(
    "-D",
    "defines",
    type=SIZES,
    multiple=True,
    metavar="NAME=VALUES",
    help="Value of a size: 4000, 1,2,4, 1-20 (all), 100-10000:20 (20 points), 100-10000:20log, 64-8192:log2. "
    "Several give a table. A dot as NAME is every other size, a NAME alone a macro.",
)
cores_help = "Active cores that share the shared caches: 8, 1,2,4, 1-20. Several give a table."
ports_option = click.option(
    "--ports",
    type=click.Choice(["optimal", "even"]),
    default="optimal",
    show_default=True,
    help="How uops share ports: the exact bound, or equal shares.",
)
html_option = click.option("--html", metavar="FILE", help="Write the answer as a page with charts, one .html file.")
force_option = click.option("--force", is_flag=True, help="Replace files that exist.")
output_options = together(verbose_option, strict_option, json_option, html_option, force_option)
include_option = click.option(
    "-I",
    "include",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=str),
    metavar="FOLDER",
    help="Folder in which headers are looked for; the file's own is one.",
)
nest_help = "Number of the loop nest in its function."
nest_option = click.option("--nest", type=Count(min=1), metavar="K", help=nest_help)
function_option = click.option("--function", type=FUNCTIONS, metavar="F", help="C function to take.")
line_help = "A line of the innermost loop, in place of --function and --nest."
line_option = click.option("--source-line", "line", type=Count(min=1), metavar="L", help=line_help)
choice_options = together(nest_option, function_option, line_option, include_option)
"""Which nest of the file."""
row_length_option = click.option(
    "--row-length",
    metavar="N|FILE",
    help="Entries of a row of compressed storage, or a file with those of each row: their mean.",
)
taken_option = click.option(
    "--taken",
    multiple=True,
    metavar="LINE=P",
    help="Probability that the condition of a branch at LINE holds (0.5 where the data decide).",
)
trip_option = click.option(
    "--trip-count", "trip_counts", multiple=True, metavar="LINE=N", help="Iterations of the loop at LINE."
)
kernel_options = together(
    defines_option,
    choice_options,
    taken_option,
    trip_option,
    row_length_option,
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
loop_option = click.option("--loop", type=Count(min=1), metavar="N", help="Number of the assembly loop, as listed.")
lines_help = "Lines of the assembly to take as the loop body."
lines_option = click.option("--lines", type=Parsed("A-B", _lines), metavar="A-B", help=lines_help)
syntax_help = "Syntax of the assembly.  [default: by evidence]"
syntax_option = click.option("--syntax", type=click.Choice(["att", "intel"]), help=syntax_help)
loop_options = together(loop_option, lines_option, syntax_option, iterations_option, ports_option)
asm_option = click.option("--asm", metavar="FILE", type=FILE, help="Assembly of the kernel, in place of compiling it.")
compiler_option = click.option(
    "--compiler", metavar="C", help="Compiler to use.  [default: the machine's first that is installed]"
)
flags_option = click.option("--flags", type=FLAGS, help="Compiler flags in one string.  [default: the machine's]")


classic_option = click.option(
    "--classic",
    is_flag=True,
    help="The textbook prediction: widths and saturated bandwidths, nothing executed outside the innermost loop.",
)
data_align_option = click.option(
    "--data-align",
    type=Count(min=1),
    metavar="BYTES",
    help="Arrays begin at multiples of BYTES (16: malloc).  [default: at cache lines]",
)
array_offset_option = click.option(
    "--array-offset",
    "array_offsets",
    multiple=True,
    metavar="NAME=BYTES",
    help="Where an array begins, modulo a cache line.",
)
array_options = together(data_align_option, array_offset_option)
call_cycles_option = click.option(
    "--call-cycles",
    multiple=True,
    metavar="NAME=CYCLES",
    help="Cycles of a call of a function, or LOW-HIGH.  [default: as the core's table says]",
)
loop_align_option = click.option(
    "--align",
    type=Count(0, 63),
    metavar="N",
    help="Address of the loop modulo 64.  [default: as the code says, else 0]",
)
pages_option = click.option(
    "--pages", type=click.Choice(get_args(Pages)), default="huge", show_default=True, help="Pages of the data."
)
code_options = together(
    asm_option,
    compiler_option,
    flags_option,
    loop_options,
    classic_option,
    loop_align_option,
    array_options,
    call_cycles_option,
)
"""What becomes `CodeOptions`."""

time_unit_option = click.option(
    "--unit",
    type=Unit(TIME_UNITS),
    default="cy/CL",
    show_default=True,
    help=f"Unit of the headline: {', '.join(TIME_UNITS)} (s: seconds per sweep).",
)


stores_option = click.option(
    "--stores",
    type=click.Choice(get_args(StoreMode)),
    help="Stores that load their line, streaming stores, or as the cores evade.  [default: as found]",
)


def cache_options(*modes: CacheMode) -> Decorator[Any]:
    """`--cache` with these modes, `--stores`, and the options of the simulation: what becomes `CacheOptions`."""
    return together(
        click.option(
            "--cache",
            "mode",
            type=click.Choice(modes),
            default="auto",
            show_default=True,
            help="Layer conditions (lc) or simulation (sim); auto: lc where they apply, else sim.",
        ),
        stores_option,
        _simulation_options,
    )


_simulation_options = together(
    click.option(
        "--policy",
        type=click.Choice([policy.lower() for policy in get_args(ReplacementPolicy)], case_sensitive=False),
        help="Replacement in all simulated caches.  [default: the machine's]",
    ),
    click.option(
        "--layout",
        type=click.Choice(get_args(Layout)),
        help="Simulated arrays on pages of their own and spread over the sets of L1, on the next page each, without a "
        "gap, or as malloc places them.  [default: padded]",
    ),
    click.option("--pad", type=BYTES, metavar="BYTES", help="More bytes between the simulated arrays."),
    click.option("--alias", is_flag=True, help="Let all simulated arrays begin at the same set of a cache."),
    click.option(
        "--indirect",
        multiple=True,
        metavar="IDX=WHERE",
        help="Where the values of the index array IDX point: uniform, banded:K, or a FILE of integers.",
    ),
    click.option("--exact", is_flag=True, help="Simulate whole sweeps, whatever they cost."),
    click.option("--seed", type=Count(0, 2**32 - 1), metavar="N", help="Seed of random replacement and indices."),
)


def plot_option(what: str) -> Decorator[Any]:
    """`--plot [FILE]`; without a file, or with `-`, it draws on the terminal: the same in every command."""
    text = f"Draw {what} into an .svg, .pdf or .png file; without FILE (or -) on the terminal."
    return click.option("--plot", metavar="[FILE]", type=click.Path(), is_flag=False, flag_value="-", help=text)


def plot_file_option(what: str) -> Decorator[Any]:
    """`--plot FILE` of commands that draw no characters."""
    return click.option("--plot", metavar="FILE", help=f"Draw {what} (.svg, .pdf, .png).")


def gathered(**makes: Callable[..., Any]) -> Decorator[Any]:
    """Options that reach the command as one argument each: what a function, or class, makes of those named like its
    parameters. A command need not have all of them; none goes into two values."""

    def decorate(function: Function) -> Function:
        names = {argument: tuple(inspect.signature(make).parameters) for argument, make in makes.items()}

        @wraps(function)
        def with_values(*args: Any, **given: Any) -> Any:
            values = {}
            for argument, make in makes.items():
                values[argument] = make(**{name: given.pop(name) for name in names[argument] if name in given})
            return function(*args, **values, **given)

        return with_values  # type: ignore[return-value]

    return decorate


def asked(
    *,
    kernel: FileName | None = None,
    kernels: tuple[FileName, ...] | None = None,
    machine: str | None = None,
    defines: tuple[str, ...] = (),
    nest: int | None = None,
    function: str | None = None,
    line: int | None = None,
    include: tuple[str, ...] = (),
    row_length: str | None = None,
    taken: tuple[str, ...] = (),
    trip_counts: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Which kernels on which machine: arguments of the functions of `kernmodel.api`.

    Raises:
        UsageError: a size that cannot be read.
    """
    # what is 0 is no size, but a switch (#if USE_MPI), which has a name in capitals
    macros = tuple(text for text in defines if re.fullmatch(r"[A-Za-z_]\w*|[A-Z_][A-Z_0-9]*=0", text))
    words: dict[str, Any] = {"sizes": parse_defines(text for text in defines if text not in macros)}
    if row_length is not None:
        from kernmodel.studies.predict.index_arrays import mean_length

        words["sizes"]["row_length"] = (mean_length(row_length),)
    chances = by_line("--taken", taken, float, "12=0.3")
    trips = by_line("--trip-count", trip_counts, int, "12=100")
    if kernel is not None:
        words["kernel"] = Nest(kernel, nest, function, line, include, macros, chances, trips)
    if kernels is not None:
        words["kernels"] = [Nest(one, nest, function, line, include, macros, chances, trips) for one in kernels]
    if machine is not None:
        words["machine"] = machine
    return words


def by_line(option: str, texts: Iterable[str], read: Callable[[str], Number], example: str) -> dict[int, Number]:
    """What an option says of lines.

    Raises:
        UsageError: a text that is not LINE=NUMBER.
    """
    found = {}
    for text in texts:
        line, _, value = text.partition("=")
        try:
            found[int(line)] = read(value)
        except ValueError:
            raise UsageError(f"{text} is not LINE=NUMBER", where=option, todo=f"write {option} {example}") from None
    return found


def several_values(asked: Mapping[str, Any]) -> bool:
    """Whether a size is given more than one value."""
    return any(len(values) > 1 for values in asked["sizes"].values())
