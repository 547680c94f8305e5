"""`kernmodel what-if`."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, drawing_size, plot_option, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json, show_text, with_progress
from kernmodel.errors import KernmodelError, UsageError
from kernmodel.studies.predict.request import Change, CodeRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kernmodel.machine.changes.figures import Figure
    from kernmodel.studies.predict.request import KernelRequest

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(%?)")


class Setting(options.ParamType):
    """A figure of the machine file and its new value: `PATH=VALUE`."""

    name = "path=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Change:
        """The change, unchecked."""
        if isinstance(value, Change):
            return value
        path, equals, text = str(value).partition("=")
        if not (equals and path.strip() and text.strip()):
            todo = "write --set L2.size=2MiB or --set L2.size=x2"
            raise UsageError(f"{value!r} is no PATH=VALUE", where="--set", todo=todo)
        return Change(path.strip(), text.strip())

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The figures of the machine that begin like this."""
        with suppress(KernmodelError):
            from kernmodel.machine.changes.figures import MachineFigures

            names = (figure.short for figure in MachineFigures.open(ctx.params.get("machine") or "").figures())
            return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]
        return []


class Step(options.ParamType):
    """A share between 0 and 1, also in per cent."""

    name = "step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share."""
        match = _PERCENT.fullmatch(str(value).strip())
        share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
        if not 0 < share < 1:
            raise UsageError(f"{value!r} is no step between 0 and 100 %", where="--step", todo="write --step 10%")
        return share


@click.command("what-if", cls=Command)
@click.argument("kernel", type=options.KERNEL, required=False)
@options.machine_option()
@click.option(
    "--set",
    "changes",
    type=Setting(),
    multiple=True,
    metavar="PATH=VALUE",
    help="Figure of the machine file: L2.size=2MiB, clock=3GHz, memory.bandwidth=x2, L2L3.width=+10%. Repeatable.",
)
@click.option("--flags", type=options.Flags(), multiple=True, help="Compiler flags to compare, in one string.")
@click.option("--compiler", "compilers", multiple=True, metavar="C", help="Compiler to compare. Repeatable.")
@click.option("--sensitivity", is_flag=True, help="What every figure of the machine file is worth.")
@click.option(
    "--step", type=Step(), default="10%", show_default=True, metavar="X", help="Step of --sensitivity: 10%, 0.05."
)
@click.option("--list", "listed", is_flag=True, help="List the figures that can be set; takes no KERNEL.")
@options.kernel_options
@click.option(
    "--cores",
    type=options.Count(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Cores that run the kernel.",
)
@options.cache_options("auto", "lc", "sim")
@options.time_unit_option
@options.asm_option
@options.loop_options
@options.classic_option
@plot_option("--sensitivity")
@options.output_options
def what_if(kernel: str | None, machine: str, choices: options.CacheChoices, **given: Any) -> None:
    """Tell what a change of the machine, of compiler flags or of the compiler does to the runtime of KERNEL.

    \b
    Examples:
      kernmodel what-if -m clx stencil.c --set L2.size=2MiB --set memory.bandwidth=200GB/s --set clock=3GHz
      kernmodel what-if -m clx stencil.c --flags "-O2" --flags "-O3 -mprefer-vector-width=512" --compiler clang
      kernmodel what-if -m clx stencil.c --sensitivity --plot tornado.svg
      kernmodel what-if -m clx --list
    """
    _check(kernel, given)
    target = plot_target(given["plot"], as_json=given["as_json"])
    if kernel is None:
        _list(machine, as_json=given["as_json"])
        return
    sizes = options.one_point_of(given["defines"])
    request = choices.request(kernel, machine, sizes, given["nest"], given["function"], given["safety"])
    code = options.code_of(given, compiled=False)
    if given["sensitivity"]:
        _sensitivity(request, code, given, target)
    elif given["flags"] or given["compilers"]:
        _code(request, code, given)
    else:
        _machine(request, code, given)


# {{{ which question


def _check(kernel: str | None, given: Mapping[str, Any]) -> None:
    """Refuse options that ask nothing, or several things at once.

    Raises:
        UsageError: always with what to do.
    """
    code = bool(given["flags"] or given["compilers"])
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
    if code and given["asm"] is not None:
        raise UsageError("does not go with --flags or --compiler", where="--asm", todo="leave it out to compile")
    if given["plot"] is not None and not given["sensitivity"]:
        raise UsageError("draws a sensitivity only", where="--plot", todo="add --sensitivity")


def _codes(code: CodeRequest, given: Mapping[str, Any]) -> list[CodeRequest]:
    """The machine's own code, and every combination of the compilers and flags asked for."""
    own = replace(code, compiler=None, flags=None)
    ways = product(given["compilers"] or (None,), given["flags"] or (None,))
    return [own, *(replace(code, compiler=compiler, flags=flags) for compiler, flags in ways)]


# }}}
# {{{ answers


def _machine(request: KernelRequest, code: CodeRequest, given: Mapping[str, Any]) -> None:
    from kernmodel.studies.what_if.machine import what_if as study

    answer = study(request, code, given["changes"], given["cores"])
    options.accept_notes(answer.notes, given["strict"])
    if given["as_json"]:
        from kernmodel.report.json.what_if import what_if_document

        show_json(what_if_document(answer, given["unit"]))
    else:
        from kernmodel.report.text.what_if import what_if_report

        show(what_if_report(answer, given["unit"], verbose=given["verbose"]))


def _code(request: KernelRequest, code: CodeRequest, given: Mapping[str, Any]) -> None:
    from kernmodel.studies.what_if.code import compare_code

    answer = compare_code(request, _codes(code, given), given["cores"], given["changes"])
    options.accept_notes(answer.notes, given["strict"])
    if given["as_json"]:
        from kernmodel.report.json.what_if import code_document

        show_json(code_document(answer, given["unit"]))
    else:
        from kernmodel.report.text.what_if import code_report

        show(code_report(answer, given["unit"], verbose=given["verbose"]))


def _sensitivity(request: KernelRequest, code: CodeRequest, given: Mapping[str, Any], target: Path | None) -> None:
    from kernmodel.studies.what_if.sensitivity import sensitivity

    def watched(figures: Sequence[Figure]) -> Iterator[Figure]:
        return with_progress(figures, len(figures), streamed=False)

    answer = sensitivity(request, code, given["cores"], given["step"], watched)
    options.accept_notes(answer.notes, given["strict"])
    if given["as_json"]:
        from kernmodel.report.json.what_if import sensitivity_document

        show_json(sensitivity_document(answer, given["unit"]))
    else:
        from kernmodel.report.text.what_if import sensitivity_report

        show(sensitivity_report(answer, given["unit"], verbose=given["verbose"]))
    if target is not None:
        from kernmodel.plot.tornado import tornado_figure

        save(target, lambda: tornado_figure(answer))
    elif given["plot"] == TERMINAL:
        from kernmodel.plot.tornado import tornado_text

        show_text("\n" + tornado_text(answer, *drawing_size()))


def _list(machine: str, *, as_json: bool) -> None:
    from kernmodel.machine.changes.figures import MachineFigures

    figures = MachineFigures.open(machine)
    if as_json:
        from kernmodel.report.json.what_if import figures_document

        show_json(figures_document(figures))
    else:
        from kernmodel.report.text.what_if import figures_report

        show(figures_report(figures))


# }}}
