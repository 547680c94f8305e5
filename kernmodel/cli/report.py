"""`kernmodel report`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, print_line, show_json, with_progress, write_page
from kernmodel.errors import UsageError


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
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

    \b
    Examples:
      kernmodel report stencil.c -m clx -o stencil.html
      kernmodel report 3d-7pt.c -m clx -D N=400 --over N=50-1000:40log -o 3d.html
      kernmodel report triad.c -m zen2 --without blocking -o triad.html --force
    """
    from kernmodel.api.reports import kernel_report

    if output is None and not given["as_json"]:
        raise UsageError("there is no file for the page", where="report", todo="give -o FILE.html")
    shown = Shown.of(strict=given["strict"], as_json=given["as_json"], html=output, force=force)
    result = kernel_report(
        **asked,
        over=_over(given["over"]),
        without=given["without"],
        cache=cache,
        code=code,
        strict=shown.strict,
        progress=lambda parts: with_progress(parts, len(parts), streamed=False, what="parts"),
    )
    if shown.as_json:
        show_json(result.json())
    write_page(result, shown)
    if not shown.as_json and shown.page is not None:
        from kernmodel.report.text.report import verdict

        print_line(f"{shown.page}: {verdict(result.answer)}")


def _over(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    name, equals, values = text.partition("=")
    if not (equals and name.strip() and values.strip()):
        what = f"{text!r} is no NAME=VALUES"
        raise UsageError(what, where="--over", todo="write --over N=100-10000:40log")
    return {name.strip(): values.strip()}
