"""The class of all commands: what every one of them has and refuses."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any, NoReturn

import click

from kernmodel import limits
from kernmodel.cli.output import ARGUMENTS
from kernmodel.cli.streams import spelled
from kernmodel.errors import UsageError


def _lift(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        limits.lift()


def no_limits_option() -> click.Option:
    """`--no-limits`, which lifts the limits before anything else is read."""
    text = "Refuse nothing for its size or time (docs/cli.md has the limits)."
    # eager, so that the other options are read without limits too
    return click.Option([limits.OPTION], is_flag=True, is_eager=True, expose_value=False, callback=_lift, help=text)


_WATCHED = "kernmodel.watch"


def _watch(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    ctx.meta[_WATCHED] = given


watch_option = click.option(
    "--watch",
    is_flag=True,
    expose_value=False,
    callback=_watch,
    help="Answer again whenever a file that was read is saved; Ctrl-C ends it.",
)


class PlainHelp(click.Command):
    """A command whose help is in ASCII where standard output is: click itself would write UTF-8."""

    def get_help(self, ctx: click.Context) -> str:
        """The help."""
        return spelled(super().get_help(ctx))


class Command(PlainHelp):
    """A command with `--no-limits`, which takes each option once unless the option is made for several values."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(no_limits_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, which are kept for pages that name the command.

        Raises:
            UsageError: an option that has one value is given twice: one of the two would not count.
        """
        ctx.meta[ARGUMENTS] = tuple(args)
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            _refuse_repeated(order)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Answer, once or as long as files are watched."""
        return self._watched(ctx) if ctx.meta.get(_WATCHED) else super().invoke(ctx)

    def _watched(self, ctx: click.Context) -> NoReturn:
        from kernmodel.cli.exit_status import CLOSED_PIPE, INTERRUPTED, told
        from kernmodel.cli.watch import watch

        _refuse_unwatched(ctx)

        def answer() -> int:
            with suppress(click.exceptions.Exit):
                super(Command, self).invoke(ctx)
            return 0

        ctx.exit(watch(lambda: told(answer), (CLOSED_PIPE, INTERRUPTED)))


def _refuse_unwatched(ctx: click.Context) -> None:
    """Refuse inputs that no save would mend, however long the other files are watched.

    Raises:
        UsageError: an input is standard input; InputError: there is no such kernel.
    """
    from kernmodel.source.text import kernel_path
    from kernmodel.user_files import STANDARD_INPUT

    given = {name: value for name, value in ctx.params.items() if name != "plot"}  # - is the terminal there
    if STANDARD_INPUT in given.values():
        raise UsageError("standard input cannot be watched", where="--watch", todo="give a file")
    if given.get("kernel") is not None:
        kernel_path(given["kernel"])


def _refuse_repeated(order: list[click.Parameter]) -> None:
    for param, times in Counter(order).items():
        single = isinstance(param, click.Option) and not (param.multiple or param.count or param.is_flag)
        if single and times > 1:
            name = max(param.opts, key=len)
            raise UsageError(f"is given {times} times, but takes one value", where=name, todo="leave out all but one")


class Group(PlainHelp, click.Group):
    """A group of such commands."""

    command_class = Command
