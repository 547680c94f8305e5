"""Reading files of suites (docs/binaries.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kernmodel.binary.suite.model import SuiteFile
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import Entry, read_entry
from kernmodel.schema.fields import suggest

SUITE_FILE = FileKind("suite of kernels", "docs/binaries.md")
_KEYS = ("kernels", "compilers", "flags", "always", "block", "function", "aside")

Value = TypeVar("Value")


def read_suite(path: str) -> SuiteFile:
    """The suite that a file describes; kernels are looked for beside it.

    Raises:
        InputError: it cannot be read, has an unknown key, or names no kernel; with its line.
    """
    root = read_entry(Path(path), SUITE_FILE)
    entries = root.known_keys(_KEYS)
    if "kernels" not in entries:
        raise root.error("names no kernel", "write `kernels: [gemm.c]`, or `kernels: [*.c]` in quotes")
    folder = Path(path).parent
    kernels = [file for entry in _entries(entries["kernels"]) for file in _kernels(entry, folder)]
    suite = SuiteFile(
        file=path,
        kernels=tuple(dict.fromkeys(kernels)),
        compilers=_list(entries.get("compilers"), _word, ("gcc",)),
        flags=_list(entries.get("flags"), Entry.words, (("-O2",),)),
        always=entries["always"].words() if "always" in entries else (),
        block=_list(entries.get("block"), _block, (None,)),
        function=_word(entries["function"]) if "function" in entries else "kernel",
        aside=frozenset(_list(entries.get("aside"), _word, ())),
    )
    names = [kernel.stem for kernel in suite.kernels]
    for entry in _entries(entries["aside"]) if "aside" in entries else ():
        if entry.text() not in names:
            raise entry.error(f"{entry.text()!r} is no kernel of the suite", suggest(entry.text(), names))
    doubled = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if doubled is not None:
        raise entries["kernels"].error(f"two kernels are called {doubled!r}", "rename one of the files")
    return suite


def _entries(entry: Entry) -> tuple[Entry, ...]:
    """The items of a list; a single value is a list of one."""
    found = tuple(entry.items()) if entry.is_list else (entry,)
    if not found:
        raise entry.error("is empty", "leave it out, or give a value")
    return found


def _list(entry: Entry | None, read: Callable[[Entry], Value], default: tuple[Value, ...]) -> tuple[Value, ...]:
    return default if entry is None else tuple(dict.fromkeys(read(item) for item in _entries(entry)))


def _word(entry: Entry) -> str:
    text = entry.text().strip()
    if not text:
        raise entry.error("is empty", "give a name")
    return text


def _kernels(entry: Entry, folder: Path) -> tuple[Path, ...]:
    """The files that a path or a pattern names."""
    text = _word(entry)
    if any(sign in text for sign in "*?["):
        found = tuple(sorted(folder.glob(text)))
        if not found:
            raise entry.error(f"no file is called {text!r}", f"patterns are looked for in {folder or '.'}")
        return found
    file = folder / text
    if not file.is_file():
        near = [one.name for one in folder.glob("*.c")]
        raise entry.error(f"there is no file {text!r} beside it", suggest(text, near))
    return (file,)


def _block(entry: Entry) -> int | None:
    return None if entry.is_null or entry.text() == "none" else entry.integer(2)
