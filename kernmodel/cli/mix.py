"""`kernmodel mix`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json
from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.sweep.values import parse_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernmodel.studies.predict.mix import MixAnswer

_WEIGHT = re.compile(r"([0-9]+)=([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)")


@click.command(cls=Command)
@click.argument("file", type=options.KERNEL, required=False)
@options.machine_option(required=False)
@options.uarch_option
@click.option("--mix", "mix_file", metavar="FILE", type=click.Path(), help="A mix as a file, in place of code.")
@options.defines_option
@options.nest_option
@options.function_option
@click.option("--nests", metavar="NUMBERS", help="Several loop nests, each weighted by its iterations: 1,2 or 1-3.")
@click.option("--asm", metavar="FILE", type=click.Path(), help="Assembly of the kernel, in place of compiling it.")
@click.option("--compiler", metavar="C", help="Compiler to use.  [default: the machine's first that is installed]")
@click.option("--flags", type=options.Flags(), help="Compiler flags in one string.  [default: the machine's]")
@click.option("--loop", type=options.Count(min=1), metavar="N", help="Number of the assembly loop, as listed.")
@click.option("--lines", type=options.Lines(), metavar="A-B", help="Lines of the assembly to take as the loop body.")
@click.option("--weigh", multiple=True, metavar="N=PASSES", help="Take assembly loop N with that weight; repeatable.")
@click.option("--syntax", type=click.Choice(["att", "intel"]), help="Syntax of the assembly.  [default: by evidence]")
@options.iterations_option
@options.output_options
def mix(
    file: str | None,
    machine: str | None,
    uarch: str | None,
    mix_file: str | None,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    nests: str | None,
    asm: str | None,
    compiler: str | None,
    flags: tuple[str, ...] | None,
    loop: int | None,
    lines: tuple[int, int] | None,
    weigh: tuple[str, ...],
    syntax: options.Syntax | None,
    iterations_per_pass: float | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Instruction mix and load/store ratio of FILE: a C kernel, assembly, an object file, or -.

    \b
    Examples:
      kernmodel mix -m clx triad.c
      kernmodel mix stencil.s --loop 2
      kernmodel mix --mix iso3dfd.yml
    """
    code = CodeRequest(asm, compiler, flags, syntax, loop, lines, iterations_per_pass=iterations_per_pass)
    _check_microarchitecture(machine, uarch)
    of_source = {"-D": defines, "--nest": nest, "--function": function, "--nests": nests, "--asm": asm}
    of_source |= {"--compiler": compiler, "--flags": flags}
    of_code = {"--loop": loop, "--lines": lines, "--syntax": syntax, "--iterations-per-pass": iterations_per_pass}
    if mix_file is not None:
        _refuse({"a FILE": file, **of_source, **of_code, "--weigh": weigh}, "--mix gives the mix itself")
        answer = _of_file(mix_file, machine)
    elif file is None:
        raise UsageError("there is nothing to count", todo="give a C kernel, an assembly file, or --mix FILE")
    elif is_source(file):
        _refuse({"--weigh": weigh}, "a C kernel weighs its nests by their iterations (--nests)")
        answer = _of_kernel(file, machine, defines, nest, function, nests, code)
    else:
        _refuse(of_source, f"{file} is assembly, not C source")
        answer = _of_code(file, machine, code, weigh)
    options.accept_notes(answer.notes, strict)
    if as_json:
        from kernmodel.report.json.roofline import mix_document

        show_json(mix_document(answer))
    else:
        from kernmodel.report.text.mix import mix_report

        show(mix_report(answer, verbose=verbose))


def _check_microarchitecture(machine: str | None, uarch: str | None) -> None:
    """Refuse an unknown name; a mix is the same on all of them."""
    if uarch is None:
        return
    if machine is not None:
        raise UsageError("give a machine or a microarchitecture, not both", todo="leave out --uarch")
    from kernmodel.incore.tables.parameters import load_parameters

    load_parameters(uarch)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options that have no meaning here."""
    for name, value in given.items():
        if value not in (None, ()):
            raise UsageError(f"does not fit: {why}", where=name, todo="leave it out")


def is_source(file: str) -> bool:
    """Whether FILE is a C kernel: by its ending, or a carried name."""
    path = Path(file)
    return path.suffix.lower() == ".c" or (not path.suffix and file != "-" and not path.is_file())


def _of_file(mix_file: str, machine: str | None) -> MixAnswer:
    from kernmodel.studies.predict.mix import mix_of_file

    return mix_of_file(mix_file, machine=machine)


def _of_kernel(
    file: str,
    machine: str | None,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    nests: str | None,
    code: CodeRequest,
) -> MixAnswer:
    from kernmodel.studies.predict.mix import mix_of_kernel

    if machine is None:
        raise UsageError("a C kernel needs a machine, whose compiler and flags are used", todo="write -m clx")
    numbers = parse_values(nests, "--nests") if nests is not None else ()
    if numbers and (nest is not None or code.of_one_loop):
        what = "does not fit --nest, --loop, --lines and --iterations-per-pass"
        raise UsageError(what, where="--nests", todo="give one of them")
    request = KernelRequest(file, machine, options.one_point_of(defines), nest, function)
    return mix_of_kernel(request, code, numbers)


def _of_code(file: str, machine: str | None, code: CodeRequest, weigh: tuple[str, ...]) -> MixAnswer:
    from kernmodel.studies.predict.mix import mix_of_code

    if weigh and code.of_one_loop:
        what = "does not fit --loop, --lines and --iterations-per-pass"
        raise UsageError(what, where="--weigh", todo="give one of them")
    return mix_of_code(file, code, machine=machine, passes=_weights(weigh) if weigh else None)


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
