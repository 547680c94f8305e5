"""`kernmodel mix`."""

from __future__ import annotations

import re
from typing import Any

import click

from kernmodel.api import code as api
from kernmodel.api.options import CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command, watch_option
from kernmodel.cli.output import Shown, show_result
from kernmodel.errors import UsageError

_WEIGHT = re.compile(r"([0-9]+)=([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)")


@click.command(cls=Command)
@click.argument("kernel", type=types.KERNEL, required=False, metavar="[FILE]")
@options.machine_option(required=False)
@options.uarch_option
@click.option("--mix", "mix_file", metavar="FILE", type=click.Path(), help="A mix as a file, in place of code.")
@options.defines_option
@options.choice_options
@click.option("--nests", metavar="NUMBERS", help="Several loop nests, each weighted by its iterations: 1,2 or 1-3.")
@options.asm_option
@options.compiler_option
@options.flags_option
@options.loop_option
@options.lines_option
@click.option("--weigh", multiple=True, metavar="N=PASSES", help="Take assembly loop N with that weight; repeatable.")
@options.syntax_option
@options.iterations_option
@watch_option
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, code=CodeOptions)
def mix(asked: dict[str, Any], code: CodeOptions, shown: Shown, **given: Any) -> None:
    """Instruction mix and load/store ratio of FILE: a C kernel, assembly, an object file, or -.

    \b
    Examples:
      kernmodel mix -m clx triad.c
      kernmodel mix stencil.s --loop 2
      kernmodel mix --mix iso3dfd.yml
    """
    _check_microarchitecture(asked.get("machine"), given["uarch"])
    result = api.mix(
        **{"kernel": None, **asked},
        file=given["mix_file"],
        nests=given["nests"] if given["nests"] is not None else (),
        weigh=_weights(given["weigh"]) if given["weigh"] else None,
        code=code,
        strict=shown.strict,
    )
    show_result(result, shown)


def _check_microarchitecture(machine: str | None, uarch: str | None) -> None:
    """Refuse an unknown name; a mix is the same on all of them."""
    if uarch is None:
        return
    if machine is not None:
        raise UsageError("give a machine or a microarchitecture, not both", todo="leave out --uarch")
    from kernmodel.incore.tables.parameters import load_parameters

    load_parameters(uarch)


def _weights(weigh: tuple[str, ...]) -> dict[int, float]:
    """Passes by the number of the loop."""
    passes: dict[int, float] = {}
    for text in weigh:
        match = _WEIGHT.fullmatch(text)
        if match is None or not float(match[2]):
            raise UsageError(f"{text!r} is no loop with its passes", where="--weigh", todo="write --weigh 2=1000")
        if int(match[1]) in passes:
            raise UsageError(f"loop {match[1]} is given twice", where="--weigh", todo="leave one of the two out")
        passes[int(match[1])] = float(match[2])
    return passes
