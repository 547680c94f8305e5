"""How much kernmodel takes on before it refuses: one table, which docs/cli.md shows, and `--no-limits` lifts.

A limit guards against input that would fill the memory or never end: a device, a slip in a count, a macro that
grows without bound. None of them belongs to the models. Whoever lifts them answers for memory and time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import TypeVar

from kernmodel.value_types import dataclass

OPTION = "--no-limits"
KIB, MIB, GIB = 2**10, 2**20, 2**30
_Found = TypeVar("_Found")
_UNITS = {"GiB": GIB, "MiB": MIB, "KiB": KIB}


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that is taken on of something.

    Attributes:
        name: what is limited, as the documentation and messages say it.
        default: the most, in bytes, seconds or pieces.
        unit: "B", "s", or "" for pieces.
    """

    name: str
    default: int
    unit: str = ""

    @property
    def most(self) -> float:
        """The limit that holds now; infinite if limits are lifted."""
        return math.inf if _lifted else self.default

    def exceeded(self, amount: float) -> bool:
        """Whether `amount` is more than the limit that holds now."""
        return amount > self.most

    @property
    def text(self) -> str:
        """The default for people ("64 MiB", "60 s", "100,000")."""
        if self.unit == "B":
            unit, factor = next((item for item in _UNITS.items() if self.default >= item[1]), ("B", 1))
            return f"{self.default // factor:,} {unit}"
        return f"{self.default:,} {self.unit}".rstrip()

    def todo(self, first: str) -> str:
        """What a user can do who met the limit: `first`, or to lift it."""
        return f"{first}, or lift the limit of {self.text} with {OPTION}"


TEXT_BYTES = Limit("bytes of a C source, an assembly listing or a file of indices", 64 * MIB, "B")
YAML_BYTES = Limit("bytes of a YAML or JSON file (machine, core, hierarchy, cases, mix)", 64 * MIB, "B")
YAML_VALUES = Limit("values in a YAML or JSON file", 1_000_000)
YAML_DEPTH = Limit("depth of nesting in a YAML or JSON file", 100)
CODE_BYTES = Limit("bytes of an object, an executable or raw machine code", 256 * MIB, "B")
LINE_BYTES = Limit("bytes of one line of a file that is read line by line", MIB, "B")
PIPE_SECONDS = Limit(
    "time until more comes out of a pipe (standard input that is read line by line has all time)", 60, "s"
)

SOURCE_TOKENS = Limit("tokens of a C source when its macros are expanded", 200_000)
MACRO_TOKENS = Limit("tokens that one use of a macro expands to", 20_000)
STATEMENT_TOKENS = Limit("tokens of one expression of a C source", 5_000)
REFERENCES = Limit("different array references of a loop nest", 1_000)
LISTING_LINES = Limit("lines of an assembly listing, those that directives repeat counted again", 50_000)
DECODED_BYTES = Limit("bytes of code in a listing, or in an object of which no function is chosen", 256 * KIB, "B")
ASSEMBLER_SECONDS = Limit("time of the assembler", 10, "s")
COMPILER_SECONDS = Limit("time of a compiler", 120, "s")
CALL_SECONDS = Limit("time of one round of a measurement", 60, "s")
PROGRAM_SECONDS = Limit("time of one run of a program whose function is counted or measured", 600, "s")
TOOL_BYTES = Limit("memory of an assembler or compiler", 4 * GIB, "B")
TOOL_OUTPUT_BYTES = Limit("output of an assembler or compiler", 128 * MIB, "B")

SIMULATED_ACCESSES = Limit("accesses of a case or trace that `simulate` makes, phases counted", 10**9)
TRACED_ACCESSES = Limit("accesses of a function that are traced as its program runs", 10**9)
PYTHON_ACCESSES = Limit("the same by `--engine python`, or where no compiled engine is", 2 * 10**7)
KEPT_ACCESSES = Limit("accesses of a trace that `--repeat` repeats", 10**8)
SIMULATED_LINES = Limit("lines of a simulated cache", 2**26)
PROCESSES_PER_PROCESSOR = Limit("processes of `--jobs` for each processor (and never more than there are points)", 4)


def process_count(wanted: int | None, tasks: int | None = None) -> int:
    """How many processes to start for work that divides into `tasks` (None: many).

    Args:
        wanted: what the user asked for; None: one for each processor that this process may use.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = processors if wanted is None else wanted
    most = min(PROCESSES_PER_PROCESSOR.most * processors, math.inf if tasks is None else max(tasks, 1))
    return int(min(count, most))


_lifted = False


def lift() -> None:
    """Let nothing be limited from now on in this process."""
    global _lifted  # noqa: PLW0603 (one switch of the process: every reader and tool would carry it otherwise)
    _lifted = True


def are_lifted() -> bool:
    """Whether limits are lifted, for processes that are started and shall do the same."""
    return _lifted


def remembered(find: Callable[..., _Found]) -> Callable[..., _Found]:
    """`lru_cache` for what limits may refuse: what was found without them is not remembered."""
    kept = lru_cache(maxsize=64)(find)

    @wraps(find)
    def found(*arguments: Hashable) -> _Found:
        return find(*arguments) if _lifted else kept(*arguments)

    return found


@contextmanager
def no_limits() -> Iterator[None]:
    """Take on whatever is asked for within a `with`, as `--no-limits` does for a command (docs/cli.md, Limits).

    >>> with km.no_limits():
    ...     print(km.analyse_loop("unrolled.s", uarch="SKL"))

    It holds for the whole process, its threads too. An answer that is made when it is asked for is to be asked for
    within.
    """
    with restored():
        lift()
        yield


@contextmanager
def restored() -> Iterator[None]:
    """Put limits back at the end to what they are now."""
    global _lifted  # noqa: PLW0603
    before = _lifted
    try:
        yield
    finally:
        _lifted = before
