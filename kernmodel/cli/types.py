"""Types of the values of options and arguments, how the shell completes them, and what they read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from kernmodel.api.options import FileName, parse_bytes, parse_flags
from kernmodel.errors import KernmodelError, UsageError
from kernmodel.isa import at_vectors, with_rows
from kernmodel.resources import carried_files
from kernmodel.studies.sweep.values import parse_values
from kernmodel.units import plain_number

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
    from kernmodel.source.load import FoundNest
else:
    ParamType = click.ParamType  # not generic at run time in older releases of click

VECTOR_BITS, ROWS = "kernmodel.vector-bits", "kernmodel.rows"
"""Keys of a command's context, under which options keep what the names of machines and cores are read with."""


class Carried(ParamType):
    """A path, or the name of a carried file; both complete in the shell."""

    name = "file or name"

    def __init__(self, folder: str, ending: str) -> None:
        self.folder = folder
        self.ending = ending

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileName:
        """The name as it stands."""
        return FileName(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The carried names that match, and files."""
        names = (file.stem for file in carried_files(self.folder, self.ending))
        matching = [name for name in names if name.startswith(incomplete)]
        # bash completes files by itself only where nothing else matches, so the user's are named here
        own = [name for name in _files(incomplete) if name.endswith(self.ending)]
        # the shell's own completion of files comes first: bash forgets what stood before it
        return [CompletionItem(incomplete, type="file"), *(CompletionItem(name) for name in [*matching, *own])]


def _files(incomplete: str) -> list[str]:
    """The files whose path, as it is written, begins like this."""
    folder, slash, beginning = incomplete.rpartition("/")
    with suppress(OSError):
        entries = Path(folder + slash or ".").iterdir()
        return sorted(folder + slash + entry.name for entry in entries if entry.name.startswith(beginning))
    return []


class NamedInSource(ParamType):
    """A name that the C source of the kernel has, as far as the kernel stands before it on the command line.

    Args:
        names: of the nests of a source, those that can be given; end: what stands behind each.
    """

    name = "text"

    def __init__(self, names: Callable[[Sequence[FoundNest]], Iterable[str]], end: str = "") -> None:
        self.names = names
        self.end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text as it stands."""
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of the kernel that match; none where there is no kernel that can be read."""
        from kernmodel.source.load import find_nests

        # an option without its value yet leaves the arguments where they stand
        given = [ctx.params.get("kernel"), *(ctx.params.get("kernels") or ()), *ctx.args]
        try:
            kernel = next(str(name) for name in given if name)
            names = self.names(find_nests(kernel, include=tuple(ctx.params.get("include") or ())))
        except StopIteration:
            return []
        except KernmodelError:
            return []
        return [CompletionItem(name + self.end) for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _sizes_in(nests: Sequence[FoundNest]) -> Iterator[str]:
    for one in nests:
        yield from getattr(one.nest, "symbols", ())


SIZES = NamedInSource(_sizes_in, "=")
FUNCTIONS = NamedInSource(lambda nests: (one.function for one in nests))


class CarriedMachine(Carried):
    """The same of machines, with the length of vectors that was asked for."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> FileName:
        """The name, and behind it the length."""
        return FileName(_as_chosen(value, ctx))


class OptionalChoice(ParamType):
    """One of some words behind an option that may stand without; what follows by mistake, a file, is told as that."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word."""
        if value not in self.words:
            option = param.opts[0] if param else "the option"
            what = f"{value!r} is none of {', '.join(self.words)}"
            self.fail(f"{what}; write {option} behind it if it is another argument", param, ctx)
        return str(value)


class Microarchitecture(ParamType):
    """The name of a microarchitecture."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The names as they stand, each with the length of vectors that was asked for."""
        return ",".join(_as_chosen(name, ctx) for name in str(value).split(","))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known names that match in any case."""
        from kernmodel.incore.tables.parameters import known_microarchitectures

        return [CompletionItem(n) for n in known_microarchitectures() if n.lower().startswith(incomplete.lower())]


class Unit(ParamType):
    """One of several units, written in any case."""

    name = "unit"

    def __init__(self, units: Sequence[str]) -> None:
        self.units = tuple(units)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The unit as it is spelt."""
        from kernmodel.api.result import spelt

        return spelt(str(value), self.units)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The units that match in any case."""
        return [CompletionItem(unit) for unit in self.units if unit.lower().startswith(incomplete.lower())]


class Parsed(ParamType):
    """What a function makes of the text of an option; a value that is no text stays as it is."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value."""
        return self.parse(value) if isinstance(value, str) else value


def parse_lines(text: str) -> tuple[int, int]:
    """First and last line of `A-B`."""
    match = re.fullmatch(r"([0-9]+)-([0-9]+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"{text!r} is no range of lines", where="--lines", todo="write --lines 10-25")
    return int(match[1]), int(match[2])


class Factor(ParamType):
    """A finite number above 0, up to `most`, for an option that the errors name with an example."""

    name = "factor"

    def __init__(self, option: str, example: str, most: float = math.inf) -> None:
        self.option = option
        self.example = example
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        try:
            number = plain_number(str(value))
        except ValueError:
            number = math.nan
        todo = f"write {self.option} {self.example}"
        if not (math.isfinite(number) and number > 0):
            raise UsageError(f"{value!r} is no finite number above 0", where=self.option, todo=todo)
        if not 1 / self.most <= number <= self.most:
            what = f"{value!r} is not between {1 / self.most:g} and {self.most:g}"
            raise UsageError(what, where=self.option, todo=todo)
        return number


class Count(click.IntRange):
    """A whole number in digits of ASCII."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            self.fail(f"{value[:40]!r} is not a whole number", param, ctx)
        return super().convert(value, param, ctx)


COUNTS = Parsed("counts", lambda text: parse_values(text, "--cores"))
"""Core counts such as `1-20`."""
FLAGS = Parsed("flags", parse_flags)
"""Compiler flags in one string, split as a shell does."""
BYTES = Parsed("bytes", parse_bytes)
MACHINE = CarriedMachine("machine-files", ".yml")
KERNEL = Carried("kernels", ".c")
FILE = click.Path(allow_dash=True, path_type=FileName)


def _as_chosen(name: str, ctx: click.Context | None) -> str:
    """The name of a machine or core with what other options say of its core."""
    chosen = ctx.meta if ctx is not None else {}
    if rows := chosen.get(ROWS):
        name = with_rows(str(name).strip(), rows)
    bits = chosen.get(VECTOR_BITS)
    return str(name) if bits is None else at_vectors(str(name), int(bits))
