"""Answers of `kernmodel binary` as CSV for other tools."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from kernmodel.binary.answer import BinaryRun
from kernmodel.binary.lifting import WAYS

COLUMNS = (
    *("predictor", "way", "address", "hex", "occurrences", "times_per_call", "cycles", "share", "bound_by"),
    *("loop", "lines"),
)


def blocks_csv(answer: BinaryRun) -> str:
    """The blocks that ran, by predictor and way: cycles of one execution as they are counted in the function, the share
    of its predicted time, the header of the innermost loop and the source lines. A predictor without a prediction has
    no row."""
    return csv_text((COLUMNS, *_rows(answer)))


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV; what holds a comma is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _rows(answer: BinaryRun) -> Iterator[tuple[object, ...]]:
    calls = max(1, answer.occurrences.calls)
    for one in answer.predicted.predictions:
        for share in one.blocks:
            block, loop = answer.function.block(share.address), answer.function.loop_of(share.address)
            yield (
                one.predictor,
                WAYS[one.way],
                f"{share.address:#x}",
                block.code.hex(),
                share.occurrences,
                f"{share.occurrences / calls:g}",
                f"{share.cycles:.6g}",
                f"{share.share:.6g}",
                share.bound_by,
                "" if loop is None else f"{loop.header:#x}",
                " ".join(f"{line.file}:{line.line}" for line in block.lines),
            )
