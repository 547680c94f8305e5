"""The entry point: the table of commands, and errors as one line with an exit status.

A command's module is imported only when the command is invoked; help and completion read the table.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence

import click

from kernmodel import __version__, limits
from kernmodel.cli.command import no_limits_option
from kernmodel.cli.exit_status import told
from kernmodel.cli.lazy import LazyGroup
from kernmodel.cli.output import write_error
from kernmodel.cli.streams import open_streams, settle_output

COMPLETION_VARIABLE = "_KERNMODEL_COMPLETE"

COMMANDS = {
    "ecm": ("kernmodel.cli.ecm:ecm", "Predict the runtime of a loop kernel with the ECM model."),
    "traffic": ("kernmodel.cli.traffic:traffic", "Data traffic of a loop kernel: layer conditions, cache simulation."),
    "simulate": ("kernmodel.cli.simulate:simulate", "Simulate caches under a trace of accesses, exactly."),
    "incore": ("kernmodel.cli.incore:incore", "Throughput, critical path and dependencies of an assembly loop."),
    "evaluate": ("kernmodel.cli.evaluate:evaluate", "Compare predictions with measurements and other models."),
    "report": ("kernmodel.cli.report:report", "Everything about a kernel on a machine, on one page (HTML)."),
    "roofline": ("kernmodel.cli.roofline:roofline", "Rooflines of kernels: intensity, roofs, bound, what limits."),
    "carm": ("kernmodel.cli.carm:carm", "The roofline scaled by a kernel's own instruction mix, and its reading."),
    "mix": ("kernmodel.cli.mix:mix", "Instruction mix and load/store ratio of a kernel, a listing or a file."),
    "blocking": (
        "kernmodel.cli.blocking:blocking",
        "Which loops to block for the caches, by how much, and what it buys.",
    ),
    "scaling": ("kernmodel.cli.scaling:scaling", "Performance over cores: saturation, domains, what limits."),
    "sweep": ("kernmodel.cli.sweep:sweep", "Many predictions: sizes, cores, machines, flags, blocks, machine figures."),
    "compare": ("kernmodel.cli.compare:compare", "The same kernels on several machines: what limits on each, and why."),
    "what-if": ("kernmodel.cli.what_if:what_if", "What a change of the machine, the flags or the compiler is worth."),
    "measure": ("kernmodel.cli.measure:measure", "Measure on this host: kernels, bandwidths, code, peaks."),
    "validate": ("kernmodel.cli.validate:validate", "Run kernels on this host and compare with their predictions."),
    "binary": ("kernmodel.cli.binary:binary", "Functions of compiled programs: blocks, counts, time."),
    "check": ("kernmodel.cli.check:check", "Check assertions about predictions, for continuous integration."),
    "machine": ("kernmodel.cli.machine:machine", "List, show, check and import machine files."),
    "kernel": ("kernmodel.cli.kernel:kernel", "List and show the carried kernels."),
    "instructions": ("kernmodel.cli.instructions:instructions", "List, show and import instruction tables."),
    "completion": ("kernmodel.cli.completion:completion", "Print the completion script of a shell."),
}
"""Per command: where it is defined, and its line in the help."""


@click.group(cls=LazyGroup, commands_at=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernmodel")
def commands() -> None:
    """How fast a C loop kernel can be on a machine, and what holds it back, before anything is run.

    \b
    Example:
      kernmodel ecm --machine clx.yml stencil.c
    """


commands.params.append(no_limits_option())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit status: 0 success, 1 the input is at fault, 2 usage, 3 a needed tool is missing or failed, 70 a bug of
        kernmodel, 130 interrupted, 141 the reader of a pipe went away.
    """
    # nearly everything a command makes lives until it ends: the usual search for garbage costs 4 % of a cold start
    gc.set_threshold(100_000, 20, 20)
    open_streams()
    if (engines := sys.modules.get("kernmodel.engines")) is not None:
        engines.missing.clear()  # what an earlier command of this process missed was said then
    with limits.restored():
        try:
            given = sys.argv[1:] if arguments is None else list(arguments)
            return told(lambda: _run(given))
        finally:
            _say_what_is_slow()
            settle_output()


_NEED_AN_END = ("concurrent.futures.process", "coverage", "distributed", "matplotlib", "multiprocessing.pool")
"""Modules that have something to do when Python ends: processes to join, files to write."""


def console() -> int:
    """The console's entry: one command, and the end of the process without taking apart what it made, which costs
    as much as a fifth of a cold start."""
    signal.signal(signal.SIGTERM, _interrupt)
    status = main()
    if not any(name in sys.modules for name in _NEED_AN_END) and threading.active_count() == 1:
        sys.stderr.flush()  # standard output was, or what is wrong with it told
        os._exit(status)
    return status


def _interrupt(number: int, frame: object) -> None:
    """End as by the keyboard's interrupt: what was begun is stopped, and nothing stays behind."""
    raise KeyboardInterrupt


def _say_what_is_slow() -> None:
    """Say once that an engine was not there, where one was asked for."""
    engines = sys.modules.get("kernmodel.engines")
    if engines is not None and engines.missing:
        names = ", ".join(sorted(engines.missing))
        engines.missing.clear()
        todo = "install kernmodel where there is a C compiler"
        write_error(f"kernmodel: note: the compiled engine {names} is missing: slow Python did its work; {todo}")


def _run(arguments: list[str]) -> int:
    if COMPLETION_VARIABLE in os.environ:
        commands.main(arguments, prog_name="kernmodel", complete_var=COMPLETION_VARIABLE)
    try:
        with commands.make_context("kernmodel", arguments) as context:
            commands.invoke(context)
    except click.exceptions.NoArgsIsHelpError as error:
        write_error(error.format_message())
        return error.exit_code
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0
