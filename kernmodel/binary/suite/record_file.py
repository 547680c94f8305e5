"""The records that a suite leaves, one JSON line a variant, from which a run that was cut off goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from kernmodel.output_files import cannot_write

Record = TypeVar("Record")


class RecordFile(Generic[Record]):
    """The records of one kind in a file, by name of the variant; the latest of a name counts.

    A last line that was cut short, and lines of another version, are as if they were not there.
    """

    def __init__(self, path: Path, kind: type[Record]) -> None:
        """Read what is there.

        Raises:
            InputError: the file cannot be read or written.
        """
        self._path = path
        self._names = tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
        self._kind = kind
        self._known: dict[str, Record] = {}
        self._cut = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for record in self._read():
                self._known[record.name] = record  # type: ignore[attr-defined]
            self._file = path.open("a", encoding="utf-8")
            if self._cut:
                self._file.write("\n")  # what is added must not continue the line
        except OSError as error:
            raise cannot_write(path, error) from error

    def _read(self) -> Iterator[Record]:
        if not self._path.exists():
            return
        text = self._path.read_text(encoding="utf-8", errors="replace")
        self._cut = not text.endswith("\n") and bool(text)
        for line in text.splitlines():
            with suppress(ValueError, TypeError):
                found: Mapping[str, Any] = json.loads(line)
                yield self._kind(**{name: _frozen(found[name]) for name in self._names if name in found})

    def get(self, name: str, key: str) -> Record | None:
        """The record of a variant, if it is of what the variant is now."""
        found = self._known.get(name)
        return found if found is not None and found.key == key else None  # type: ignore[attr-defined]

    def add(self, record: Record) -> None:
        """Keep a record, on the disk at once.

        Raises:
            InputError: the file cannot be written.
        """
        self._known[record.name] = record  # type: ignore[attr-defined]
        try:
            self._file.write(json.dumps(asdict(record)) + "\n")  # type: ignore[call-overload]
            self._file.flush()
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def close(self) -> None:
        """Nothing more is added."""
        self._file.close()


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
