"""Reading files of checks (docs/check.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, get_args

from kernmodel.errors import InputError
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import Entry, read_entry
from kernmodel.schema.fields import nearest
from kernmodel.studies.checks.model import FACTS, Assertion, Bound, Check, Comparison
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.traffic.options import StoreMode
from kernmodel.units import time_unit
from kernmodel.user_files import beside

CHECKS_FILE = FileKind("file of checks", "docs/check.md")
_KEYS = (
    *("name", "kernel", "machine", "sizes", "function", "nest", "asm", "compiler", "flags", "cache", "stores"),
    *("classic", "assert"),
)
_BOUND = re.compile(
    r"(?P<figure>[A-Za-z_][\w.]*)\s*(?P<comparison><=|>=|<|>)\s*(?P<limit>[0-9][0-9.eE+-]*)\s*(?P<unit>.*)"
)
_FIGURES = "`ecm`, `ecm.L1` (data there) to `ecm.memory`, a time such as `T_OL`, `traffic.L1L2`, `saturation`"


class ChecksFileError(InputError):
    """A file of checks that cannot be read (exit status 2: nothing was checked)."""

    exit_status = 2


def read_checks(path: str) -> tuple[Check, ...]:
    """The checks of a file: a list under `checks`. Files that they name are looked for beside it first.

    Raises:
        ChecksFileError: it cannot be read, has an unknown key, or an assertion that has no meaning; with its line.
    """
    try:
        root = read_entry(Path(path), CHECKS_FILE)
        entries = root.mapping()
        for key, entry in entries.items():
            if key != "checks":
                raise entry.error("is an unknown key", "write `checks: [...]`")
        if "checks" not in entries or not entries["checks"].items():
            raise root.error("holds no check", f"{CHECKS_FILE.guide} shows one")
        checks = tuple(_check(item, Path(path).parent) for item in entries["checks"].items())
        names = [check.name for check in checks]
        for index, check in enumerate(checks):
            if check.name in names[:index]:
                what = f"is the second check called {check.name!r}"
                raise InputError(what, where=check.where, todo="give it another `name`")
    except InputError as error:
        raise ChecksFileError(error.what, where=error.where, todo=error.todo) from error
    return checks


def _check(item: Entry, folder: Path) -> Check:
    entries = item.known_keys(_KEYS)
    for key in ("kernel", "machine", "assert"):
        if key not in entries:
            raise item.error(f"has no {key}", f"{CHECKS_FILE.guide} says what belongs there")
    given: dict[str, Any] = {key: entry.text() for key, entry in entries.items() if key not in ("sizes", "assert")}
    sizes = {name: value.integer(1) for name, value in entries["sizes"].mapping().items()} if "sizes" in entries else {}
    kernel = KernelRequest(
        kernel=beside(given["kernel"], folder),
        machine=beside(given["machine"], folder),
        sizes=sizes,
        nest=entries["nest"].integer(1) if "nest" in entries else None,
        function=given.get("function"),
        cache=_one_of(entries, "cache", ("auto", "lc", "sim")) or "auto",
        stores=_one_of(entries, "stores", get_args(StoreMode)),
    )
    code = CodeRequest(
        asm=beside(given["asm"], folder) if "asm" in given else None,
        compiler=given.get("compiler"),
        flags=entries["flags"].words() if "flags" in given else None,
        classic="classic" in entries and entries["classic"].flag(),
    )
    assertions = entries["assert"].items() if entries["assert"].is_list else (entries["assert"],)
    if not assertions:
        raise entries["assert"].error("is empty", "write what must hold, such as `ecm.memory <= 26 cy/CL`")
    return Check(given.get("name") or _name(given, sizes), kernel, code, tuple(map(_assertion, assertions)), item.where)


def _name(given: Mapping[str, str], sizes: Mapping[str, int]) -> str:
    """The name of a check that has none."""
    at = ", ".join(f"{name}={value}" for name, value in sizes.items())
    how = " ".join(given[key] for key in ("function", "nest", "compiler", "flags") if key in given)
    return " ".join(filter(None, (Path(given["kernel"]).stem, "on", Path(given["machine"]).stem, at, how)))


def _one_of(entries: Mapping[str, Entry], key: str, choices: tuple[str, ...]) -> Any:
    if key not in entries:
        return None
    value = entries[key].text()
    if value not in choices:
        raise entries[key].error(f"{value!r} is unknown", f"use one of {', '.join(choices)}")
    return value


def _assertion(entry: Entry) -> Assertion:
    """The assertion that a text makes.

    Raises:
        InputError: it is none.
    """
    text = " ".join(entry.text().split())
    for fact in FACTS:
        if text == fact:
            return Assertion(text, entry.where, fact)
    match = _BOUND.fullmatch(text)
    if match is None:
        _refuse(entry, text)
    try:
        limit = float(match["limit"])
    except ValueError:
        _refuse(entry, text)
    comparison: Any = match["comparison"]
    return Assertion(text, entry.where, _bound(entry, match["figure"], comparison, limit, match["unit"].strip()))


def _refuse(entry: Entry, text: str) -> NoReturn:
    near = nearest(text, FACTS)
    todo = f"did you mean {near!r}?" if near else f"write `FIGURE <= NUMBER UNIT`, or one of {', '.join(FACTS)}"
    raise entry.error(f"{text!r} is no assertion", todo)


def _bound(entry: Entry, figure: str, comparison: Comparison, limit: float, unit: str) -> Bound:
    """The bound of a figure, its limit in a unit without prefix."""
    if figure == "saturation":
        return Bound(figure, comparison, limit, _unit_among(entry, unit or "cores", ("cores",)))
    if figure.startswith("traffic."):
        return Bound(figure, comparison, limit, _unit_among(entry, unit or "B/It", ("B/It", "B/CL")))
    if figure != "ecm" and not figure.startswith(("ecm.", "T_")):
        raise entry.error(f"there is no figure {figure!r}", f"use {_FIGURES}")
    try:
        name, factor = time_unit(unit or "cy/CL")
    except ValueError as error:
        raise entry.error(str(error), "write a limit such as 26 cy/CL or 800 MLUP/s") from error
    return Bound(figure, comparison, factor * limit, name)


def _unit_among(entry: Entry, unit: str, units: tuple[str, ...]) -> str:
    if unit not in units:
        raise entry.error(f"unknown unit {unit!r}", f"use {' or '.join(units)}")
    return unit
