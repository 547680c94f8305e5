"""What calls of library functions take on a core: `data/<NAME>.calls.txt`, one line a function and range of arguments.

The time of such a function depends on the library as much as on the core, and no instruction table has it: these are
measurements (benchmarks/library_calls.py). A file beside a core's own instruction table is found too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.model import Parameters
from kernmodel.incore.tables.table import DATA, Legend
from kernmodel.user_files import lines_of, opened
from kernmodel.value_types import NamedTuple

_CELLS = 6


class CallTime(NamedTuple):
    """What a call of a function takes with arguments of one kind.

    Attributes:
        arguments: which, in words ("0.3 to 0.8").
        cycles: that a call adds to a loop of calls that do not wait for one another; chained: to one in which each
            waits for the result of the last.
        source: where both come from.
    """

    arguments: str
    cycles: float
    chained: float
    source: str


def call_times(parameters: Parameters) -> Mapping[str, tuple[CallTime, ...]]:
    """The known times of each function, by its name in compiled code; of each, those for usual arguments first.

    Raises:
        InstructionTableError: a line is malformed; names file and line.
    """
    beside = (DATA / parameters.table).with_suffix(_ENDING)
    for path in (beside, beside.with_name(parameters.name + _ENDING)):
        if path.is_file():
            return _read(path)
    return {}


_ENDING = ".calls.txt"


def _read(path: Path) -> Mapping[str, tuple[CallTime, ...]]:
    with opened(path, "a table of calls", error=InstructionTableError) as file:
        lines = [line.decode("utf-8", "replace").strip() for line in lines_of(file, str(path))]
    legend = Legend.parse(line for line in lines if line.startswith("#!"))
    found: dict[str, tuple[CallTime, ...]] = {}
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            name, time = _parsed(line, legend, Location(str(path), number))
            found[name] = (*found.get(name, ()), time)
    return found


def _parsed(line: str, legend: Legend, where: Location) -> tuple[str, CallTime]:
    cells = [cell.strip() for cell in line.split("|")]
    try:
        name, arguments, cycles, chained, _, tag = cells
        return name, CallTime(arguments, float(cycles), float(chained), legend.sources[tag])
    except (ValueError, KeyError):
        what = f"is no line of {_CELLS} cells: function, arguments, two times in cycles, spread, source"
        raise InstructionTableError(what, where=where, todo="write it as benchmarks/library_calls.py does") from None
