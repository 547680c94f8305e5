"""Where index arrays point, as the command line says it: `--indirect idx=uniform`, `idx=uniform:5000`, `idx=banded:64`,
`idx=banded:64:5000`, `idx=FILE`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path

from kernmodel.errors import InputError, Location, UsageError
from kernmodel.limits import TEXT_BYTES
from kernmodel.traffic.options import Distribution
from kernmodel.user_files import read_file

_KINDS = ("uniform", "banded")
_FORMS = "write NAME=uniform, NAME=banded:WIDTH or NAME=FILE"
_WHOLE = r"[0-9]{1,18}"
_DIGITS = re.compile(rb"[0-9]+")
_MAX_VALUE = 2**63 - 1
_MAX_ENTRIES = 10_000_000
"""Entries of a file: a Python tuple of them takes about 40 bytes each."""


def parse_indirect(texts: Sequence[str]) -> Mapping[str, Distribution]:
    """The distributions of `NAME=uniform`, `NAME=banded:WIDTH` and `NAME=FILE` by name of the index array; the
    first two with `:N` behind where the array that is indexed has N elements and does not say so.

    A file holds whole numbers from 0 on, apart from one another by white space or line breaks, or is an integer array
    of numpy (`.npy`, read in C order); its values are repeated where the kernel reads more. A later text for the same
    name replaces an earlier one. `./uniform` is a file.

    Raises:
        UsageError: no `=`, a name that is no C identifier, a band without a width, neither a distribution nor a file.
        InputError: a file that cannot be read, is empty or binary, or holds other things than whole numbers from 0 on.
    """
    result: dict[str, Distribution] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value or not re.fullmatch(r"[A-Za-z_]\w*(?:(?:->|\.)\w+)*", name):
            raise UsageError(f"{text!r} is not NAME=DISTRIBUTION", where="--indirect", todo=_FORMS)
        result[name] = _distribution(name, value)
    return result


def _distribution(name: str, value: str) -> Distribution:
    kind, *numbers = value.split(":")
    if kind == "banded" and not (numbers and re.fullmatch(_WHOLE, numbers[0])):
        todo = f"say how far from the diagonal the values may lie, as in {name}=banded:64"
        raise UsageError(f"{value!r} has no width that is a whole number from 0 on", where="--indirect", todo=todo)
    if kind == "banded" and len(numbers) <= 2:
        return Distribution("banded", value, int(numbers[0]), extent=_elements(value, numbers[1:]))
    if kind == "uniform" and len(numbers) <= 1:
        return Distribution("uniform", value, extent=_elements(value, numbers))
    path = Path(value)
    if not path.exists():
        near = get_close_matches(kind, _KINDS, n=1)
        found = f"did you mean {name}={near[0]}{':WIDTH' if near[0] == 'banded' else ''}?" if near else _FORMS
        raise UsageError(f"{value!r} is neither uniform nor banded:WIDTH nor a file", where="--indirect", todo=found)
    return Distribution("table", value, values=_table(path))


def _elements(value: str, numbers: Sequence[str]) -> int:
    """How many elements the array has that is indexed; 0: that is not said."""
    if numbers and not re.fullmatch(r"0*[1-9][0-9]{0,17}", numbers[0]):
        todo = f"say how many elements the array has, as in {value.rpartition(':')[0]}:5000, or nothing"
        raise UsageError(f"{value!r} has no number of elements", where="--indirect", todo=todo)
    return int(numbers[0]) if numbers else 0


def mean_length(text: str) -> int:
    """The length of rows that is given as a number, or as a file with the length of each row: their mean, rounded.

    Raises:
        UsageError: neither; InputError: the file holds other things than whole numbers.
    """
    if re.fullmatch(_WHOLE, text):
        return int(text)
    path = Path(text)
    if not path.exists():
        todo = "write the number of entries of a row, or a file with the number of each"
        raise UsageError(f"{text!r} is neither a whole number nor a file", where="--row-length", todo=todo)
    lengths = _table(path)
    return max(1, round(sum(lengths) / len(lengths)))


def _table(path: Path) -> tuple[int, ...]:
    """The values in a file."""
    data = read_file(path, "a file of indices", TEXT_BYTES)
    values = _numpy_values(path, data) if data.startswith(b"\x93NUMPY") else _text_values(path, data)
    if not values:
        raise InputError("holds no values", where=str(path), todo="give at least one index, one on each line")
    return values


def _text_values(path: Path, data: bytes) -> tuple[int, ...]:
    if b"\0" in data:
        raise InputError("is a binary file", where=str(path), todo="give whole numbers as text, or an .npy file")
    words = data.split()
    _refuse_too_many(path, len(words))
    for word in words:
        if not _DIGITS.fullmatch(word) or int(word) > _MAX_VALUE:
            line = next(number for number, text in enumerate(data.splitlines(), 1) if word in text.split())
            raise _no_index(word.decode(errors="replace"), Location(str(path), line))
    return tuple(map(int, words))


def _no_index(text: str, where: Location | str) -> InputError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return InputError(f"{shown!r} is no index", where=where, todo="indices are whole numbers from 0 to 2^63 - 1")


def _refuse_too_many(path: Path, entries: int) -> None:
    if entries > _MAX_ENTRIES:
        todo = f"give at most {_MAX_ENTRIES}, a part that stands for the whole; the values are repeated"
        raise InputError(f"holds {entries} values", where=str(path), todo=todo)


def _numpy_values(path: Path, data: bytes) -> tuple[int, ...]:
    import numpy as np

    try:
        array = np.load(BytesIO(data), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"cannot be read as an .npy file ({error})", where=str(path)) from error
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"holds {array.dtype} values, no integers", where=str(path), todo="save the array as integers")
    _refuse_too_many(path, array.size)
    values = tuple(int(value) for value in array.ravel().tolist())
    wrong = next((value for value in values if not 0 <= value <= _MAX_VALUE), None)
    if wrong is not None:
        raise _no_index(str(wrong), str(path))
    return values
