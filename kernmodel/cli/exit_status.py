"""How a command ends: its exit status, and what goes wrong as one message."""

from __future__ import annotations

import os
from collections.abc import Callable

import click

from kernmodel.cli.output import write_error
from kernmodel.cli.streams import flush_output
from kernmodel.errors import KernmodelError

INTERRUPTED, CLOSED_PIPE, INTERNAL = 130, 141, 70


def told(command: Callable[[], int]) -> int:
    """The exit status of a command; what goes wrong is one message."""
    try:
        status = command()
        flush_output()
        return status
    except KernmodelError as error:
        return _fail(str(error), error.exit_status)
    except click.ClickException as error:
        return _fail(_usage_text(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return CLOSED_PIPE
    except OSError as error:
        what = error.strerror or str(error)
        return _fail(f"{error.filename}: {what}" if error.filename else what, 1)
    except (MemoryError, RecursionError) as error:
        what = "the memory is not enough" if isinstance(error, MemoryError) else "the input is nested too deeply"
        return _fail(f"{what}; give a smaller input", 1)
    except Exception as error:  # the last resort: a bug must not look like the user's fault, nor end in a traceback
        return _bug(error)


def _usage_text(error: click.ClickException) -> str:
    """click's message with the option it is about, and where to find help."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and (others := _with_option(error, context)):
        # commands that have it say more than options that are spelled alike
        name = error.option_name
        error = click.NoSuchOption(name, f"No such option '{name}', which {others}", ctx=context)
    text = error.format_message().rstrip(".").replace(" is not a valid integer range", " is not a whole number")
    return f"{text}; see {context.command_path} -h" if context else text


def _with_option(error: click.NoSuchOption, context: click.Context | None) -> str:
    """Which other commands have an option, as the end of a sentence; "" for none, or more than can be told."""
    root = context.find_root() if context else None
    if root is None or not isinstance(root.command, click.Group):
        return ""
    names = root.command.list_commands(root)
    commands = ((name, root.command.get_command(root, name)) for name in names)
    options = ((name, option) for name, one in commands if one for own in one.params for option in own.opts)
    have = [f"kernmodel {name}" for name, option in options if option == error.option_name]
    if not 0 < len(have) <= _TOLD:
        return ""
    return f"{' and '.join(have)} {'has' if len(have) == 1 else 'have'}"


_TOLD = 3
"""Commands that are named in a message."""


def _fail(text: str, status: int) -> int:
    write_error(f"kernmodel: error: {text}")
    return status


def _bug(error: Exception) -> int:
    if os.environ.get("KERNMODEL_DEBUG") == "1":
        import traceback

        write_error("".join(traceback.format_exception(error)))
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    todo = "please report it with the command and the output of KERNMODEL_DEBUG=1"
    return _fail(f"a bug in kernmodel ({what}); {todo}", INTERNAL)
