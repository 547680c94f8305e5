"""`kernmodel kernel`: list, show, loops."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api import inputs as api
from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result


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
    show_result(api.list_kernels(), Shown.of(as_json=as_json))


@kernel.command("show", short_help="Show what is derived from a kernel's source.")
@click.argument("kernel", type=types.KERNEL, metavar="NAME")
@options.defines_option
@options.choice_options
@options.json_option
@options.gathered(shown=Shown.of, asked=options.asked)
def show_(asked: dict[str, Any], shown: Shown) -> None:
    """Show the kernel NAME (a path, or a carried name): loops, arrays, references, operations and the source.

    \b
    Example:
      kernmodel kernel show stencil
    """
    show_result(api.load_kernel(**asked), shown)


@kernel.command("loops", short_help="List the loop nests of a file.")
@click.argument("kernel", type=types.KERNEL, metavar="FILE")
@options.defines_option
@options.function_option
@options.include_option
@click.option("--headers", is_flag=True, help="Also the loop nests of the headers that FILE includes.")
@options.json_option
@options.gathered(shown=Shown.of, asked=options.asked)
def loops_(asked: dict[str, Any], shown: Shown, headers: bool) -> None:
    """List every loop nest of FILE: function, number, line, loops, arrays, and whether it is modelled or why not.

    \b
    Example:
      kernmodel kernel loops stencil
    """
    show_result(api.find_nests(**asked, headers=headers), shown)
