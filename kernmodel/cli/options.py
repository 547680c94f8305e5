"""Options that several commands share, and the values that they become."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from kernmodel.api.options import FileName, Nest
from kernmodel.cli import types
from kernmodel.errors import UsageError
from kernmodel.isa import ROWS_ENDING
from kernmodel.machine.pages import Pages
from kernmodel.studies.sweep.values import parse_defines
from kernmodel.traffic.options import CacheMode, Layout, ReplacementPolicy, StoreMode
from kernmodel.units import TIME_UNITS

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # not generic at run time in older releases of click

Function = TypeVar("Function", bound=Callable[..., Any])
Number = TypeVar("Number", int, float)
Decorator = Callable[[Function], Function]


def together(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Several decorators as one, the first one outermost."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _keep_bits(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Keep the length of vectors for the names of machines and cores, which are read after it."""
    ctx.meta[types.VECTOR_BITS] = value


def _keep_rows(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Keep the file of rows for the names of machines and cores, which are read after it.

    Raises:
        UsageError: its name would not be told from a part of theirs.
    """
    if value is not None and not value.endswith(ROWS_ENDING):
        raise UsageError(f"{value} does not end in {ROWS_ENDING}", where="--instructions", todo="name it so")
    ctx.meta[types.ROWS] = value


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
    return click.option("-m", "--machine", type=types.MACHINE, required=required, help=text)


kernel_argument = click.argument("kernel", type=types.KERNEL)
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
    type=types.FILE,
    is_eager=True,
    expose_value=False,
    callback=_keep_description,
    help="Kernel that is described in YAML, in place of KERNEL.",
)
described_argument = together(
    click.argument("kernel", type=types.KERNEL, required=False, metavar="KERNEL", callback=_or_description),
    description_option,
)
"""KERNEL of commands that need no code of it, or take it by `--asm`."""
described_arguments = together(
    click.argument("kernels", type=types.KERNEL, nargs=-1, metavar="KERNEL...", callback=_or_description),
    description_option,
)
"""The same of several kernels."""
uarch_option = click.option("--uarch", type=types.Microarchitecture(), help="Microarchitecture, in place of a machine.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document (docs/json.md).")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show how the numbers come about.")
strict_option = click.option("--strict", is_flag=True, help="Refuse results that carry a warning.")
defines_option = click.option(
    "-D",
    "defines",
    type=types.SIZES,
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
nest_option = click.option("--nest", type=types.Count(min=1), metavar="K", help=nest_help)
function_option = click.option("--function", type=types.FUNCTIONS, metavar="F", help="C function to take.")
line_help = "A line of the innermost loop, in place of --function and --nest."
line_option = click.option("--source-line", "line", type=types.Count(min=1), metavar="L", help=line_help)
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
        type=types.Factor("--safety", "0.5", most=100.0),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Factor on the cache sizes in layer conditions (0.5: the rule of thumb).",
    ),
)
iterations_option = click.option(
    "--iterations-per-pass",
    "iterations_per_pass",
    type=types.Factor("--iterations-per-pass", "8", most=1e6),
    metavar="X",
    help="Source iterations that a pass of the assembly loop executes.  [default: by evidence]",
)
loop_option = click.option(
    "--loop", type=types.Count(min=1), metavar="N", help="Number of the assembly loop, as listed."
)
lines_help = "Lines of the assembly to take as the loop body."
lines_option = click.option("--lines", type=types.Parsed("A-B", types.parse_lines), metavar="A-B", help=lines_help)
syntax_help = "Syntax of the assembly.  [default: by evidence]"
syntax_option = click.option("--syntax", type=click.Choice(["att", "intel"]), help=syntax_help)
loop_options = together(loop_option, lines_option, syntax_option, iterations_option, ports_option)
asm_option = click.option(
    "--asm", metavar="FILE", type=types.FILE, help="Assembly of the kernel, in place of compiling it."
)
compiler_option = click.option(
    "--compiler", metavar="C", help="Compiler to use.  [default: the machine's first that is installed]"
)
flags_option = click.option("--flags", type=types.FLAGS, help="Compiler flags in one string.  [default: the machine's]")


classic_option = click.option(
    "--classic",
    is_flag=True,
    help="The textbook prediction: widths and saturated bandwidths, nothing executed outside the innermost loop.",
)
data_align_option = click.option(
    "--data-align",
    type=types.Count(min=1),
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
    type=types.Count(0, 63),
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
    type=types.Unit(TIME_UNITS),
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
    click.option("--pad", type=types.BYTES, metavar="BYTES", help="More bytes between the simulated arrays."),
    click.option("--alias", is_flag=True, help="Let all simulated arrays begin at the same set of a cache."),
    click.option(
        "--indirect",
        multiple=True,
        metavar="IDX=WHERE",
        help="Where the values of the index array IDX point: uniform, banded:K, or a FILE of integers.",
    ),
    click.option("--exact", is_flag=True, help="Simulate whole sweeps, whatever they cost."),
    click.option("--seed", type=types.Count(0, 2**32 - 1), metavar="N", help="Seed of random replacement and indices."),
)
varied_options = together(
    cache_options("auto", "lc", "sim"), time_unit_option, asm_option, loop_options, classic_option
)
"""Of predictions whose machine or code varies: the options of code that do not vary themselves, and how it is told."""


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
