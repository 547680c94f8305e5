"""`kernmodel binary`: blocks."""

from __future__ import annotations

import re

import click

from kernmodel.cli import options
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result
from kernmodel.errors import UsageError

_RANGE = re.compile(r"(0x[0-9a-fA-F]+|\d+)-(0x[0-9a-fA-F]+|\d+)")


def _addresses(text: str) -> tuple[int, int]:
    """First address and the one behind the last.

    Raises:
        UsageError: it is no range.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no range of addresses", where="--addresses", todo="write 0x1139-0x1170")
    first, end = (int(part, 0) if part.startswith("0x") else int(part) for part in match.groups())
    if first >= end:
        raise UsageError(f"{text!r} is empty", where="--addresses", todo="give the address behind the last byte second")
    return first, end


function_choice = options.together(
    click.option("--function", metavar="F", help="The function's name in the binary."),
    click.option(
        "--addresses",
        type=options.Parsed("FIRST-END", _addresses),
        metavar="FIRST-END",
        help="A range of addresses, in place of a name.",
    ),
    click.option("--marked", metavar="NAME", help="A region between IACA's markers; '' for the only one."),
)


@click.group(cls=Group)
def binary() -> None:
    """Functions of compiled programs: their blocks, how often these run, where the time goes.

    \b
    Example:
      kernmodel binary blocks ./a.out --function kernel
    """


@binary.command(short_help="Basic blocks, loops and source lines of a function.")
@click.argument("file", type=options.FILE)
@function_choice
@options.strict_option
@options.json_option
def blocks(
    file: str, function: str | None, addresses: tuple[int, int] | None, marked: str | None, strict: bool, as_json: bool
) -> None:
    """The control flow of a function of FILE, an executable, shared library or object.

    \b
    Examples:
      kernmodel binary blocks ./a.out --function kernel
      kernmodel binary blocks ./stripped --addresses 0x1139-0x1170 --json
    """
    from kernmodel.api.binaries import binary_blocks

    result = binary_blocks(file, function, addresses=addresses, marked=marked, strict=strict)
    show_result(result, Shown.of(as_json=as_json, strict=strict))
