"""`kernmodel incore`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from kernmodel.api import code as api
from kernmodel.api.code import CoreOptions
from kernmodel.api.options import CodeOptions, FileName, refuse
from kernmodel.cli import options, types
from kernmodel.cli.command import Command, watch_option
from kernmodel.cli.output import Shown, print_line, show_result
from kernmodel.errors import UsageError
from kernmodel.patterns import pattern
from kernmodel.resources import carried_files
from kernmodel.studies.predict.request import Loop

_RANGE = pattern(r"(0[xX][0-9a-fA-F]+|[0-9]+)-(0[xX][0-9a-fA-F]+|[0-9]+)")
_LINE = 64
"""Bytes of a line of the instruction cache, in which addresses repeat for the front end."""


def _addresses(text: str) -> tuple[int, int]:
    """Two addresses, the second one past the last byte."""
    match = _RANGE.fullmatch(text.strip())
    first, end = (int(match[1], 0), int(match[2], 0)) if match else (0, 0)
    if first >= end:
        todo = "write the first address and the one behind the last byte: 0x401000-0x401040"
        raise UsageError(f"{text!r} is no range of addresses", where="--range", todo=todo)
    return first, end


def _align(text: str) -> int | str:
    """An address modulo 64, or `all`."""
    if text == api.ALL:
        return api.ALL
    offset = int(text, 0) if re.fullmatch("0[xX][0-9a-fA-F]{1,4}|[1-9][0-9]{0,4}|0", text) else _LINE
    if offset >= _LINE:
        what = f"{text!r} is neither an address modulo {_LINE} nor {api.ALL!r}"
        raise UsageError(what, where="--align", todo=f"write --align 16 (0 to {_LINE - 1}), or --align all")
    return offset


_ADDRESSES, _ALIGN = types.Parsed("range", _addresses), types.Parsed("offset", _align)
_source_options = options.together(
    click.option("--hex", "hex_digits", metavar="DIGITS", help="The code itself, as hex digits."),
    click.option("--raw", is_flag=True, help="FILE is machine code and nothing else."),
    click.option("--function", metavar="F", help="Function of an object or executable."),
    click.option(
        "--range",
        "addresses",
        type=_ADDRESSES,
        metavar="A-B",
        help="Addresses in an object or executable.",
    ),
    click.option("--region", metavar="NAME", help="Name of the marked region, of several."),
    click.option("--all-loops", is_flag=True, help="A table of every innermost loop."),
)
_kernel_options = options.together(
    options.defines_option,
    options.nest_option,
    options.line_option,
    options.include_option,
    options.compiler_option,
    options.flags_option,
)
"""Of a C kernel."""
_batch_options = options.together(
    click.option("--batch", metavar="FILE", help="A file of blocks: hex digits a line, or CSV; - is standard input."),
    click.option("--hex-column", metavar="NAME", help="Column of a CSV file of blocks.  [default: hex]"),
    click.option("--jobs", type=types.Count(min=1), metavar="N", help="Processes of --batch.  [default: all cores]"),
)
_model_options = options.together(
    click.option(
        "--notion",
        type=click.Choice(["auto", "loop", "unrolled"]),
        default="auto",
        show_default=True,
        help="A loop's body, or copied one behind the other; auto: a loop if it ends in a branch.",
    ),
    click.option(
        "--align",
        type=_ALIGN,
        metavar="N|all",
        help="Address of the first byte modulo 64; all: every one.",
    ),
    options.data_align_option,
    click.option(
        "--operands",
        type=click.Choice(["full", "easy"]),
        default="full",
        show_default=True,
        help="Operands of divisions: those that take longest, or few bits as in measurements of throughput.",
    ),
    click.option(
        "--memory",
        type=click.Choice(["moving", "different", "stack"]),
        default="moving",
        show_default=True,
        help="Which loads read what the block stored: by addresses that move, or by equal registers only.",
    ),
    click.option("--estimate", is_flag=True, help="Give instructions without a row that of their nearest relative."),
)
_answer_options = options.together(
    click.option("--explain", is_flag=True, help="Why, and what would help."),
    click.option("--graph", metavar="OUT", help="Write the dependency graph: OUT.dot, or OUT.svg with Graphviz."),
)


@click.command(cls=Command)
@click.argument("source", type=types.FILE, required=False, metavar="[FILE]")
@options.machine_option(required=False)
@options.uarch_option
@options.vector_option
@options.instructions_option
@_source_options
@options.loop_options
@_kernel_options
@_model_options
@_answer_options
@_batch_options
@watch_option
@options.output_options
@options.gathered(shown=Shown.of, loop=Loop, core=CoreOptions)
def incore(loop: Loop, core: CoreOptions, shown: Shown, **given: Any) -> None:
    """How the core executes the loop in FILE: assembly, an object or executable, raw bytes, or - (standard input); or
    the compiled loop of a C kernel.

    --uarch takes several names separated by commas, or all, and then prints one table.

    \b
    Examples:
      kernmodel incore -m clx triad.s --explain
      kernmodel incore -m clx stencil.c -D N=4000 --flags "-O2"
      kernmodel incore --uarch skl --hex 4801d84801c3ffc975f7
      kernmodel incore --uarch all loop.o --function daxpy
      kernmodel incore --uarch skl --batch blocks.txt --json > out.jsonl
    """
    if given["graph"] is not None:
        api.graph_file(given["graph"])
    if loop.file is not None and not loop.raw and _is_kernel(loop.file):
        _show(_analyse_kernel(loop, core, shown, given), shown, given)
        return
    refuse({name: given.get(key) for name, key in _OF_KERNEL.items()}, "there is no C source")
    _check_code(loop, given)
    if given["batch"] is not None:
        _check_batch(loop, given)
        on = {"machine": given["machine"], "uarch": given["uarch"], "core": core, "strict": shown.strict}
        _answer_batch(on, shown, given)
        return
    targets = api.targets_of(given["machine"], given["uarch"])
    if loop.all_loops or len(targets) > 1:
        for name, there in (("explain", given["explain"]), ("graph", given["graph"]), ("align", core.align == api.ALL)):
            if there:
                raise UsageError("wants one loop on one core", where=f"--{name}", todo="leave it out of a table")
        show_result(api.outcomes_on(targets, loop, core, strict=shown.strict), shown)
        return
    _show(api.analysis_on(targets[0], loop, core, explain=given["explain"], strict=shown.strict), shown, given)


def _show(result: api.Analysis, shown: Shown, given: dict[str, Any]) -> None:
    if given["graph"] is not None:
        result.graph(given["graph"])
    show_result(result, shown)


def _is_kernel(name: str) -> bool:
    """Whether a file is C source, or a name that of a carried kernel."""
    path = Path(name)
    if path.suffix:
        return path.suffix.lower() == ".c"
    return not path.is_file() and name in {file.stem for file in carried_files("kernels", ".c")}


_OF_KERNEL = {
    "-D": "defines",
    "--nest": "nest",
    "--source-line": "line",
    "-I": "include",
    "--compiler": "compiler",
    "--flags": "flags",
}


def _analyse_kernel(loop: Loop, core: CoreOptions, shown: Shown, given: dict[str, Any]) -> api.Analysis:
    """The analysis of the loop that the machine's compiler makes of a C kernel.

    Raises:
        UsageError: no machine, or options of other code.
    """
    of_code = {"--hex": loop.hex_digits, "--batch": given["batch"], "--range": loop.addresses, "--region": loop.region}
    refuse({**of_code, "--all-loops": loop.all_loops or None, "--uarch": given["uarch"]}, f"{loop.file} is C source")
    if given["machine"] is None:
        raise UsageError("a C kernel needs a machine, whose compiler and flags are used", todo="write -m clx")
    words = {name: given[name] for name in ("machine", "defines", "nest", "line", "include")}
    asked = options.asked(kernel=FileName(loop.file or ""), function=loop.function, **words)
    chosen = {name: getattr(loop, name) for name in ("loop", "lines", "syntax", "iterations_per_pass")}
    code = CodeOptions(compiler=given["compiler"], flags=given["flags"], **chosen)
    return api.analyse_kernel(**asked, code=code, core=core, explain=given["explain"], strict=shown.strict)


def _check_code(loop: Loop, given: dict[str, Any]) -> None:
    """Refuse what does not say exactly one code and one way to the core.

    Raises:
        UsageError: names what is missing or twice there.
    """
    if (given["machine"] is None) == (given["uarch"] is None):
        raise UsageError("give either a machine or a microarchitecture", todo="write -m clx or --uarch CLX")
    named = {"FILE": loop.source, "--hex": loop.hex_digits, "--batch": given["batch"]}
    codes = [name for name, value in named.items() if value is not None]
    if len(codes) != 1:
        what = f"{' and '.join(codes)} are both code" if codes else "no code is given"
        raise UsageError(what, todo="give a FILE (- for standard input), --hex DIGITS or --batch FILE")
    if given["batch"] is None:
        loop.check()


def _check_batch(loop: Loop, given: dict[str, Any]) -> None:
    """Refuse what is said of one loop.

    Raises:
        UsageError: the first such option.
    """
    of_one: dict[str, object] = {
        "--function": loop.function,
        "--range": loop.addresses,
        "--loop": loop.loop,
        "--lines": loop.lines,
    }
    of_one |= {"--region": loop.region, "--raw": loop.raw, "--all-loops": loop.all_loops, "--explain": given["explain"]}
    of_one |= {"--graph": given["graph"], "--syntax": loop.syntax, "--iterations-per-pass": loop.iterations_per_pass}
    for name, value in of_one.items():
        if value:
            raise UsageError("does not go with --batch", where=name, todo="leave it out")


def _answer_batch(on: dict[str, Any], shown: Shown, given: dict[str, Any]) -> None:
    """A line per block, as they come."""
    asked = {**on, "file": given["batch"], "hex_column": given["hex_column"], "jobs": given["jobs"]}
    if shown.as_json and shown.page is not None:
        what = "does not go with --batch --json, whose lines are not kept"
        raise UsageError(what, where="--html", todo="leave out --json")
    if shown.as_json:
        for line in api.block_lines(**asked):
            print_line(line)
    else:
        show_result(api.analyse_blocks(**asked), shown)
