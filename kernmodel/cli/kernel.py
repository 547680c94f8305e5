"""`kernmodel kernel`: list, show."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.cli import options
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show, show_json, show_result


@click.group(cls=Group)
def kernel() -> None:
    """List and show the carried kernels.

    \b
    Example:
      kernmodel kernel list
    """


@kernel.command("list", short_help="List the carried kernels.")
@options.json_option
def list_(as_json: bool) -> None:
    """List the carried kernels.

    \b
    Example:
      kernmodel kernel list
    """
    from kernmodel.report.text.kernel import KernelSummary, about, kernel_list
    from kernmodel.resources import carried_files

    files = carried_files(options.KERNEL.folder, options.KERNEL.ending)
    kernels = [
        KernelSummary(file.stem, about(file.stem, file.read_text(encoding="utf-8")), str(file)) for file in files
    ]
    if as_json:
        from kernmodel.report.json.carried import kernel_list_document

        show_json(kernel_list_document(kernels))
    else:
        show(kernel_list(kernels))


@kernel.command("show", short_help="Show what is derived from a kernel's source.")
@click.argument("kernel", type=options.KERNEL, metavar="NAME")
@options.defines_option
@options.nest_option
@options.function_option
@options.json_option
@options.gathered(shown=Shown.of, asked=options.asked)
def show_(asked: dict[str, Any], shown: Shown) -> None:
    """Show the kernel NAME (a path, or a carried name): loops, arrays, references, operations and the source.

    \b
    Example:
      kernmodel kernel show stencil
    """
    from kernmodel.api.inputs import load_kernel

    show_result(load_kernel(**asked), shown)
