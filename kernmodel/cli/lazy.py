"""A group of commands whose modules are imported when they are invoked, for a fast start."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from kernmodel.cli.command import PlainHelp


class LazyGroup(PlainHelp, click.Group):
    """A click group that knows of its commands where they are defined and their line in the help.

    Args:
        commands_at: per name, `module:attribute` and the short help.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in self._commands_at:
            return None
        module, _, attribute = self._commands_at[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, from the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self._commands_at.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands from the table, and options."""
        names = (name for name in self._commands_at if name.startswith(incomplete))
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self._commands_at[name][1]) for name in names), *options]
