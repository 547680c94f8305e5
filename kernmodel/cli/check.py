"""`kernmodel check`."""

from __future__ import annotations

from typing import Literal

import click

from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, print_line, show_result


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--against", metavar="OLD.json", help="The document of an earlier run: say what changed, and why.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="github: annotations in a pull request.",
)
@click.pass_context
def check(ctx: click.Context, file: str, against: str | None, form: Literal["text", "json", "github"]) -> None:
    """Check the assertions of FILE about predictions: exit status 1 where one fails, 2 for a bad file.

    \b
    Examples:
      kernmodel check checks.yml
      kernmodel check checks.yml --format json > old.json
      kernmodel check checks.yml --against old.json
    """
    from kernmodel.api.checks import check as check_file

    result = check_file(file, against=against)
    if form == "github":
        from kernmodel.report.text.checks import github_lines

        for line in github_lines(result.answer):
            print_line(line)
    else:
        show_result(result, Shown.of(as_json=form == "json"))
    ctx.exit(0 if result.answer.holds else 1)
