"""`kernmodel kernel`: list, show."""

from __future__ import annotations

import click

from kernmodel.cli import options
from kernmodel.cli.command import Group
from kernmodel.cli.output import show, show_json


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
@click.argument("name", type=options.KERNEL)
@options.defines_option
@options.nest_option
@options.function_option
@options.json_option
def show_(name: str, defines: tuple[str, ...], nest: int | None, function: str | None, as_json: bool) -> None:
    """Show the kernel NAME (a path, or a carried name): loops, arrays, references, operations and the source.

    \b
    Example:
      kernmodel kernel show stencil
    """
    from kernmodel.source.load import load_kernel
    from kernmodel.source.nest.sizes import sizes_of

    given = options.one_point_of(defines)
    loaded = load_kernel(name, given, nest=nest, function=function)
    # a kernel without default sizes can be shown, but sizes that are given must fit
    sizes = sizes_of(loaded, given) if given or set(loaded.symbols) <= set(loaded.defaults) else {}
    if as_json:
        from kernmodel.report.json.carried import kernel_document

        show_json(kernel_document(loaded, sizes))
    else:
        from kernmodel.report.text.kernel import kernel_report

        show(kernel_report(loaded, sizes))
