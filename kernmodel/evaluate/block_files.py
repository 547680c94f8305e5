"""Files of blocks with what is known of them: CSV, gzip or not, recognised by their columns (docs/accuracy.md)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from kernmodel.code.block_files import csv_reader, csv_rows, read_lines
from kernmodel.errors import InputError, UsageError
from kernmodel.evaluate.crossing import noted
from kernmodel.evaluate.model import BlockFile, Kind, KnownBlock
from kernmodel.isa.model import Notion
from kernmodel.units import positive_number
from kernmodel.value_types import dataclass

Row = Mapping[str, str]

_PREDICTED = "predicted_"


@dataclass(frozen=True, slots=True)
class _Variant:
    """One block of a row.

    Attributes:
        code: the column of its code.
        notion: None: the row or the code says it.
        columns: per predictor its column.
        peers: predictors whose columns name their version and core behind the name ("osaca_0_7_1_zen4").
    """

    code: str
    notion: Notion | None
    columns: Mapping[str, str]
    peers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of files.

    Attributes:
        name: for messages.
        marks: columns by which it is recognised.
        variants: the blocks of a row.
        measured: predictors that are measurements.
        default: the reference if none is chosen.
        category, offset: columns, "" if there is none.
        sane: whether a row counts among the sane ones.
        note: the column that says which loads crossed cache lines, "" if there is none.
    """

    name: str
    marks: frozenset[str]
    variants: tuple[_Variant, ...]
    measured: frozenset[str]
    default: str
    category: str
    offset: str
    sane: Callable[[Row], bool]
    note: str = ""


def _suffixed(letter: str) -> dict[str, str]:
    """The predictors of a file that has a column for each notion."""
    return {"uica": f"uica_{letter}", "uica_stack": f"uica_{letter}_stack", "facile": f"facile_{letter}"}


_SAME = ("measured", "uica", "uica_stack", "facile", "llvm_mca", "osaca")
"""Predictors whose columns have their name."""
_BHIVE = _Form(
    "BHive",
    frozenset({"arch", "hex", "measured", "sane"}),
    (_Variant("hex", "unrolled", {name: name for name in _SAME}),),
    frozenset({"measured"}),
    "measured",
    "",
    "",
    lambda row: row["sane"] == "1",
)
_ORACLE = _Form(
    "oracle",
    frozenset({"arch", "hex_unrolled", "hex_loop", "uica_u", "uica_l"}),
    (_Variant("hex_unrolled", "unrolled", _suffixed("u")), _Variant("hex_loop", "loop", _suffixed("l"))),
    frozenset(),
    "uica",
    "app",
    "",
    lambda row: not float(row.get("n_unknown") or 0),
)
_LOOPS = _Form(
    "loops",
    frozenset({"arch", "kernel", "hex", "uica_l", "facile_l"}),
    (_Variant("hex", "loop", _suffixed("l")),),
    frozenset(),
    "uica",
    "compiler",
    "",
    lambda row: True,
)
_MEASURED = _Form(
    "measured loops",
    frozenset({"kernel", "hex", "cycles_per_pass", "addr_mod_64"}),
    (_Variant("hex", "loop", {"measured": "cycles_per_pass"}, peers=("llvm_mca", "osaca")),),
    frozenset({"measured"}),
    "measured",
    "compiler",
    "addr_mod_64",
    lambda row: row.get("data_dependent") != "1",
    "note",
)
_FORMS = (_BHIVE, _ORACLE, _LOOPS, _MEASURED)
_GENERIC_MARKS = ("hex", "cycles")


def read_blocks(path: str, *, core: str | None = None, reference: str | None = None) -> BlockFile:
    """The blocks of a file.

    Args:
        path: CSV, plain or gzip; "-" is the standard input.
        core: microarchitecture of all blocks, for files that do not name one.
        reference: the predictor or measurement to compare with; None: the measurement, else uiCA.

    Raises:
        InputError: it cannot be read, or its columns are none of the known forms.
        UsageError: no such reference, or a file without cores and none given.
    """
    reader = csv_reader(read_lines(path), path)
    try:
        columns = frozenset(name.strip() for name in reader.fieldnames or ())
    except csv.Error as error:
        raise InputError(f"is no CSV: {error}", where=path, todo="see docs/accuracy.md for its forms") from None
    form = _form_of(columns, path)
    variants = (replace(v, columns={**v.columns, **_versioned(v.peers, columns)}) for v in form.variants)
    form = replace(form, variants=tuple(variants))
    chosen = reference or form.default
    known = tuple(dict.fromkeys(name for variant in form.variants for name in variant.columns))
    if chosen not in known:
        raise UsageError(f"{path} has no reference {chosen!r}", where="--column", todo=f"choose {', '.join(known)}")
    if "arch" not in columns and core is None:
        todo = "name the microarchitecture of its blocks with --uarch"
        raise UsageError("the file does not say which core its blocks are for", where=path, todo=todo)
    blocks: list[KnownBlock] = []
    skipped: list[tuple[int, str]] = []
    for line, row in _rows(reader, skipped):
        for variant in form.variants:
            try:
                blocks.append(_block(line, row, form, variant, chosen, core))
            except ValueError as error:
                skipped.append((line, str(error)))
    kind: Kind = "measured" if chosen in form.measured else "model"
    return BlockFile(path, form.name, chosen, kind, known, tuple(blocks), tuple(skipped))


def _form_of(columns: frozenset[str], path: str) -> _Form:
    """The form that has these columns; the most particular one that fits."""
    for form in _FORMS:
        if form.marks <= columns:
            return form
    if not columns.issuperset(_GENERIC_MARKS):
        found = ", ".join(sorted(columns)[:12]) or "nothing"
        todo = f"it needs at least the columns {' and '.join(_GENERIC_MARKS)} (docs/accuracy.md); it has {found}"
        raise InputError("is none of the known forms of files of blocks", where=path, todo=todo)
    peers = {name.removeprefix(_PREDICTED): name for name in sorted(columns) if name.startswith(_PREDICTED)}
    variant = _Variant("hex", None, {"cycles": "cycles", **peers})
    return _Form(
        "generic", frozenset(), (variant,), frozenset({"cycles"}), "cycles", "category", "offset", lambda row: True
    )


def _versioned(peers: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """The columns of the predictors that name their version: the name, a digit, and what follows."""
    return {
        peer: column
        for peer in peers
        for column in sorted(columns)
        if column.startswith(f"{peer}_") and column[len(peer) + 1 : len(peer) + 2].isdecimal()
    }


def _rows(reader: csv.DictReader[str], skipped: list[tuple[int, str]]) -> Iterator[tuple[int, Row]]:
    """The rows with their lines; what is no CSV is skipped."""
    for line, row, error in csv_rows(reader):
        if error is not None:
            skipped.append((line, error))
        else:
            yield line, {str(key).strip(): value or "" for key, value in row.items() if isinstance(key, str)}


def _block(line: int, row: Row, form: _Form, variant: _Variant, reference: str, core: str | None) -> KnownBlock:
    """One block of a row.

    Raises:
        ValueError: no code, no core, or no positive reference.
    """
    numbers = {
        name: value for name, column in variant.columns.items() if (value := positive_number(row.get(column, "")))
    }
    code = row.get(variant.code, "").strip()
    name = core or row.get("arch", "").strip()
    if not code or not name:
        raise ValueError(f"no {'code' if not code else 'core'}")
    if reference not in numbers:
        raise ValueError(f"no positive {reference}")
    offset = row.get(form.offset, "") if form.offset else ""
    if offset and not offset.strip().isdecimal():
        raise ValueError(f"offset {offset!r} is no whole number")
    return KnownBlock(
        line=line,
        core=row.get("arch", "").strip() or name,
        code=code,
        notion=variant.notion or _notion(row.get("notion", "")),
        offset=int(offset) % 64 if offset else None,
        reference=numbers.pop(reference),
        peers=numbers,
        category=row.get(form.category) or None if form.category else None,
        sane=form.sane(row),
        crossing=noted(row.get(form.note, "")) if form.note else None,
    )


def _notion(text: str) -> Notion | None:
    """The notion that a row names.

    Raises:
        ValueError: it names another one.
    """
    match text.strip().lower():
        case "" | "auto":
            return None
        case "loop":
            return "loop"
        case "unrolled":
            return "unrolled"
    raise ValueError(f"notion {text!r} is neither loop nor unrolled")
