"""`kernmodel machine`: list, show, check, import, probe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kernmodel.api import inputs as api
from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result, show_text, shown_progress, write_error
from kernmodel.errors import UsageError
from kernmodel.output_files import output_file, write_file
from kernmodel.words import first_names

if TYPE_CHECKING:
    from pathlib import Path

    from kernmodel.errors import Note
    from kernmodel.measure.probe import Depth
    from kernmodel.schema.fields import Problem


@click.group(cls=Group)
def machine() -> None:
    """List, show, check, import and probe machine files.

    \b
    Example:
      kernmodel machine list
    """


@machine.command("list", short_help="List the carried machine files.")
@options.json_option
def list_(as_json: bool) -> None:
    """List the carried machine files.

    \b
    Example:
      kernmodel machine list
    """
    show_result(api.list_machines(), Shown.of(as_json=as_json))


@machine.command("show", short_help="Show a machine with the sources of its figures.")
@click.argument("name", type=types.MACHINE)
@click.option("-v", "--verbose", is_flag=True, help="Show all measured bandwidths.")
@options.json_option
def show_(name: str, verbose: bool, as_json: bool) -> None:
    """Show everything about the machine NAME (a path, or a carried name) with the sources of its figures.

    \b
    Example:
      kernmodel machine show clx
    """
    show_result(api.load_machine(name), Shown.of(verbose=verbose, as_json=as_json))


@machine.command(short_help="Check machine files.")
@click.argument("files", nargs=-1, type=types.MACHINE)
@click.option("--carried", is_flag=True, help="Check all carried machine files.")
@click.option("--compilers", is_flag=True, help="Try the flags of installed compilers too.")
@options.json_option
@click.pass_context
def check(ctx: click.Context, files: tuple[str, ...], carried: bool, compilers: bool, as_json: bool) -> None:
    """Check the machine files FILES: prints ok, or every problem; exit status 1 if there is an error.

    Warnings (ports that count nowhere, bandwidths that contradict one another) leave the exit status 0.

    \b
    Examples:
      kernmodel machine check my-machine.yml
      kernmodel machine check my-machine.yml --compilers
    """
    checked = api.check_machines(files, carried=carried, compilers=compilers)
    show_result(checked, Shown.of(as_json=as_json))
    ctx.exit(1 if any(_errors(problems) for _, problems in checked) else 0)


def _errors(problems: Iterable[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]


def _give(text: str, notes: Iterable[Note], target: Path | None) -> int:
    """Write a machine file that was made, say what is to know of it and what has to be mended; the exit status."""
    from kernmodel.machine.files.schema import MACHINE_FILE
    from kernmodel.schema.document import document_of
    from kernmodel.studies.predict.machine_check import check_machine_document

    for note in notes:
        write_error(f"kernmodel: {note.kind}: {note}")
    if target is None:
        show_text(text)
    else:
        write_file(target, text)
    problems = check_machine_document(document_of(text, str(target or "<output>"), MACHINE_FILE))
    for problem in problems:
        write_error(f"kernmodel: {problem}" if problem.severity == "warning" else f"kernmodel: to mend: {problem}")
    return 1 if _errors(problems) else 0


@machine.command("import", short_help="Take over what other tools measured.")
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option("-m", "--machine", "name", type=types.MACHINE, help="Machine whose bandwidths and peaks FILE holds.")
@click.option("-o", "--output", metavar="OUT", help="File to write.  [default: standard output]")
@click.pass_context
def import_(ctx: click.Context, files: tuple[str, ...], name: str | None, output: str | None) -> None:
    """Turn the Kerncraft machine file FILE into one of kernmodel; or, with -m, put the bandwidths and peaks that FILEs
    hold (output of likwid-bench, roofline CSV of the CARM Tool) into a machine file. What is missing, doubtful or left
    out is named.

    What is made is checked as `machine check` does; exit status 1 if something has to be mended before it can be used.

    \b
    Examples:
      kernmodel machine import SkylakeSP_Gold-6148.yml -o my-skx.yml
      kernmodel machine import bench.txt venus_roofline.csv -m clx -o venus.yml
    """
    target = output_file(output, "--output") if output else None
    imported = api.import_machine(files, name).answer
    ctx.exit(_give(imported.text, imported.notes, target))


@machine.command("probe", short_help="Make a machine file of this host.")
@click.option("-o", "--output", metavar="OUT", help="File to write.  [default: standard output]")
@click.option("--quick", is_flag=True, help="Measure less, in some 30 s.")
@click.option("--thorough", is_flag=True, help="All widths and operations, in up to 15 min.")
@click.pass_context
def probe_(ctx: click.Context, output: str | None, quick: bool, thorough: bool) -> None:
    """Measure this host and write a machine file of it; figures that are not confirmed are left out and named.

    What cannot be measured comes from the carried machine of the same core, as each source says. Exit status 1 if
    something has to be mended before the file can be used.

    \b
    Example:
      kernmodel machine probe --quick -o mine.yml
    """
    from kernmodel.api.measuring import probe_machine

    if quick and thorough:
        raise UsageError("--quick and --thorough exclude each other", todo="give one of them")
    target = output_file(output, "--output") if output else None
    depth: Depth = "quick" if quick else "thorough" if thorough else "default"
    with shown_progress() as progress:
        probed = probe_machine(depth=depth, progress=progress).answer
    ctx.exit(_give(probed.text, [_shortened(note) for note in probed.notes], target))


_MOST_FIGURES = 8
"""Figures that a note on a probe names."""


def _shortened(note: Note) -> Note:
    """A note on many figures with the first of them; the comments of the file name all."""
    what, colon, names = note.text.rpartition(": ")
    figures = names.split(", ")
    if not colon or len(figures) <= _MOST_FIGURES:
        return note
    return replace(note, text=f"{what}: {first_names(figures, _MOST_FIGURES)}, which the file names")
