"""The compiled engines: shared libraries beside the Python code that calls them, made from the C sources in `native/`.

A library carries the hash of its sources. In a checkout, where these lie beside it, one that was made of others is
refused and a note on standard error says so, as Python does its work then, slowly: edited sources never meet a stale
library. An installed package has no sources, hence nothing to check.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path
from zlib import adler32, crc32

ENDING = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
missing: set[str] = set()
"""Names of the libraries that were asked for and cannot be loaded: Python does their work, slowly."""
_refused: set[str] = set()
"""Names of the libraries that the note on standard error was written for."""
NATIVE = "native"
"""Name of the folder with the C sources of the library beside it."""


def sources_of(folder: Path) -> list[Path]:
    """The C sources and headers in a folder, in the order in which they are hashed."""
    return sorted(path for path in folder.glob("*.[ch]"))


def sources_hash(folder: Path) -> str:
    """What tells the C sources in a folder from others: checksums of their names and contents.

    Those of zlib, which tell edits apart and are there at once; hashlib takes longer to load than a block to analyse.
    """
    first, second = 0, 1
    for path in sources_of(folder):
        content = path.read_bytes()
        for part in (f"{path.name} {len(content)}\n".encode(), content):
            first, second = crc32(part, first), adler32(part, second)
    return f"{first:08x}{second:08x}"


def load_engine(path: Path) -> ctypes.CDLL | None:
    """The library at this path; None where it was not built, cannot be loaded here, or is of other sources."""
    try:
        library = ctypes.CDLL(str(path))
        name = library.km_sources
    except (OSError, AttributeError):
        missing.add(path.stem)
        return None
    name.restype, name.argtypes = ctypes.c_char_p, ()
    folder = path.parent / NATIVE
    if folder.is_dir() and (name() or b"").decode() != sources_hash(folder):
        _say_refused(path)
        return None
    return library


def _say_refused(path: Path) -> None:
    """Say once in a process, whoever asked for the library, that its sources were edited."""
    if path.stem in _refused or sys.stderr is None:
        return
    _refused.add(path.stem)
    what = f"the compiled engine {path.stem} was made of other C sources than those beside it"
    todo = "run `pip install -e .` in the checkout"
    with suppress(OSError, ValueError):  # nobody reads the messages
        sys.stderr.write(f"kernmodel: note: {what}: slow Python does its work; {todo}\n")
