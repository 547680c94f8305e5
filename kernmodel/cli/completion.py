"""`kernmodel completion`."""

from __future__ import annotations

import click

from kernmodel.cli.command import Command
from kernmodel.cli.output import show_text


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes kernmodel's commands, options, machines and kernels in SHELL.

    \b
    Examples:
      eval "$(kernmodel completion bash)"
      kernmodel completion fish > ~/.config/fish/completions/kernmodel.fish
    """
    from click.shell_completion import get_completion_class

    from kernmodel.cli.main import COMPLETION_VARIABLE, commands

    found = get_completion_class(shell)
    assert found is not None, "click knows the shells of the choice"
    show_text(found(commands, {}, "kernmodel", COMPLETION_VARIABLE).source())
