"""`kernmodel report`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions, refuse
from kernmodel.api.reports import ComparedReport, Report, comparison_report, kernel_report
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, print_line, show_json, with_progress, write_page
from kernmodel.errors import SeveralNestsError, UsageError


@click.command(cls=Command)
@click.argument("kernels", type=types.KERNEL, nargs=-1, required=True, metavar="KERNEL...")
@click.option(
    *("-m", "--machine", "machines"),
    type=types.MACHINE,
    multiple=True,
    required=True,
    help="Machine file, or the name of a carried one (see `machine list`). Repeatable.",
)
@options.vector_option
@options.instructions_option
@click.option("-o", "--output", metavar="FILE", help="The page to write, one .html file.")
@click.option(
    "--over",
    metavar="NAME=VALUES",
    help="Size, and its values in the charts over sizes.  [default: one that layer conditions depend on]",
)
@click.option(
    "--without",
    multiple=True,
    metavar="PART",
    help="Leave out a part: sizes, rooflines, carm, dependences, scaling, blocking or sensitivity. Repeatable.",
)
@click.option("--measured", metavar="FILE", type=click.Path(), help="Measured kernels to draw beside (CSV).")
@options.kernel_options
@options.cache_options("auto", "lc", "sim")
@options.code_options
@options.strict_option
@options.json_option
@options.force_option
@options.gathered(asked=options.asked, cache=CacheOptions, code=CodeOptions)
def report(
    asked: dict[str, Any], cache: CacheOptions, code: CodeOptions, output: str | None, force: bool, **given: Any
) -> None:
    """Write a page with everything about KERNEL (a C file, or the name of a carried one) on a machine.

    Prediction, source beside assembly, layer conditions over sizes, traffic, rooflines, ports and dependences, cores,
    blocking, and what every figure of the machine is worth: one file of HTML, to be opened in a browser.

    Several kernels, several machines or a file with several nests give a page that compares them.

    \b
    Examples:
      kernmodel report stencil.c -m clx -o stencil.html
      kernmodel report 3d-7pt.c -m clx -D N=400 --over N=50-1000:40log -o 3d.html
      kernmodel report triad.c -m zen2 --without blocking -o triad.html --force
      kernmodel report stencil.c triad.c -m clx -m zen2 --measured rates.csv -o both.html
    """
    if output is None and not given["as_json"]:
        raise UsageError("there is no file for the page", where="report", todo="give -o FILE.html")
    shown = Shown.of(strict=given["strict"], as_json=given["as_json"], html=output, html_option="-o", force=force)
    kernels, machines = asked.pop("kernels"), given["machines"]
    of_both = {**asked, "measured": given["measured"], "cache": cache, "code": code, "strict": shown.strict}
    of_one = {"over": _over(given["over"]), "without": given["without"]}
    result: Report | ComparedReport | None = None
    if len(kernels) == len(machines) == 1:
        with suppress(SeveralNestsError):
            result = kernel_report(kernels[0], machines[0], **of_one, **of_both, progress=_progress("parts"))
    if result is None:
        refuse({f"--{name}": value for name, value in of_one.items()}, "kernels or machines are compared")
        result = comparison_report(kernels, machines, **of_both, progress=_progress("machines"))
    if shown.as_json:
        show_json(result.json())
    write_page(result, shown)
    if not shown.as_json and shown.page is not None:
        print_line(f"{shown.page}: {result.verdict()}")


def _progress(what: str) -> Callable[[Sequence[str]], Iterable[str]]:
    return lambda parts: with_progress(parts, len(parts), streamed=False, what=what)


def _over(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    name, equals, values = text.partition("=")
    if not (equals and name.strip() and values.strip()):
        what = f"{text!r} is no NAME=VALUES"
        raise UsageError(what, where="--over", todo="write --over N=100-10000:40log")
    return {name.strip(): values.strip()}
