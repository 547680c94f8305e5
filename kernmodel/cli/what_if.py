"""`kernmodel what-if`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kernmodel.api import changes as api
from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result, with_progress
from kernmodel.errors import KernmodelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernmodel.api.result import Result

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)")


class Setting(types.Parsed):
    """A figure of the machine file and its new value: `PATH=VALUE`."""

    def __init__(self) -> None:
        super().__init__("path=value", api.parse_change)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The figures of the machine that begin like this."""
        with suppress(KernmodelError):
            from kernmodel.machine.changes.figures import MachineFigures

            names = (figure.short for figure in MachineFigures.open(ctx.params.get("machine") or "").figures())
            return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]
        return []


def _step(text: str) -> float:
    """A share between 0 and 1, also in per cent."""
    match = _PERCENT.fullmatch(text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise UsageError(f"{text!r} is no step between 0 and 100 %", where="--step", todo="write --step 10%")
    return share


_STEP = types.Parsed("step", _step)


@click.command("what-if", cls=Command)
@click.argument("kernel", type=types.KERNEL, required=False)
@options.machine_option()
@click.option(
    "--set",
    "changes",
    type=Setting(),
    multiple=True,
    metavar="PATH=VALUE",
    help="Figure of the machine file: L2.size=2MiB, clock=3GHz, memory.bandwidth=x2, L2L3.width=+10%. Repeatable.",
)
@click.option(
    "--flags", "flag_lists", type=types.FLAGS, multiple=True, help="Compiler flags to compare, in one string."
)
@click.option("--compiler", "compilers", multiple=True, metavar="C", help="Compiler to compare. Repeatable.")
@click.option("--sensitivity", is_flag=True, help="What every figure of the machine file is worth.")
@click.option(
    "--step",
    type=_STEP,
    default="10%",
    show_default=True,
    metavar="X",
    help="Step of --sensitivity: 10%, 0.05.",
)
@click.option("--list", "listed", is_flag=True, help="List the figures that can be set; takes no KERNEL.")
@options.kernel_options
@click.option(
    "--cores",
    type=types.Count(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Cores that run the kernel.",
)
@options.varied_options
@options.plot_option("--sensitivity")
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def what_if(asked: dict[str, Any], cache: CacheOptions, code: CodeOptions, shown: Shown, **given: Any) -> None:
    """Tell what a change of the machine, of compiler flags or of the compiler does to the runtime of KERNEL.

    \b
    Examples:
      kernmodel what-if -m clx stencil.c --set L2.size=2MiB --set memory.bandwidth=200GB/s --set clock=3GHz
      kernmodel what-if -m clx stencil.c --flags "-O2" --flags "-O3 -mprefer-vector-width=512" --compiler clang
      kernmodel what-if -m clx stencil.c --sensitivity --plot tornado.svg
      kernmodel what-if -m clx --list
    """
    _check(asked["kernel"].source if "kernel" in asked else None, code.asm is not None, shown.plot is not None, given)
    if given["listed"]:
        show_result(api.machine_figures(asked["machine"]), shown)
    else:
        show_result(
            _answer({**asked, "cores": given["cores"], "cache": cache, "strict": shown.strict}, code, given), shown
        )


def _answer(asked: Mapping[str, Any], code: CodeOptions, given: Mapping[str, Any]) -> Result[Any]:
    if given["sensitivity"]:
        return api.sensitivity(
            **asked,
            code=code,
            step=given["step"],
            progress=lambda figures: with_progress(figures, len(figures), streamed=False),
        )
    ways = product(given["compilers"] or (None,), given["flag_lists"] or (None,))
    codes = [replace(code, compiler=compiler, flags=flags) for compiler, flags in ways]
    if codes == [code]:
        return api.what_if(**asked, changes=given["changes"], code=code)
    return api.compare_code(**asked, changes=given["changes"], codes=codes)


def _check(kernel: str | None, asm: bool, plot: bool, given: Mapping[str, Any]) -> None:
    """Refuse options that ask nothing, or several things at once.

    Raises:
        UsageError: always with what to do.
    """
    code = bool(given["flag_lists"] or given["compilers"])
    asked = {"--set": bool(given["changes"]), "--flags or --compiler": code}
    asked |= {"--sensitivity": given["sensitivity"], "--list": given["listed"]}
    names = [name for name, there in asked.items() if there]
    if not names:
        todo = "give --set PATH=VALUE, --flags, --compiler, --sensitivity or --list"
        raise UsageError("there is nothing to change", where="what-if", todo=todo)
    if len(names) > 1 and names != ["--set", "--flags or --compiler"]:
        raise UsageError(f"does not go with {names[0]}", where=names[-1], todo="ask one after the other")
    if given["listed"] and kernel is not None:
        raise UsageError("takes no kernel", where="--list", todo=f"leave out {kernel}")
    if not given["listed"] and kernel is None:
        raise UsageError("there is no kernel", todo="give a C kernel, or --list for the figures of the machine")
    if code and asm:
        raise UsageError("does not go with --flags or --compiler", where="--asm", todo="leave it out to compile")
    if plot and not given["sensitivity"]:
        raise UsageError("draws a sensitivity only", where="--plot", todo="add --sensitivity")
