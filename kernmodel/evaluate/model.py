"""Values of an evaluation: blocks with what is known of them, how well they are predicted, and the worst of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernmodel.evaluate.crossing import CrossingLoads
from kernmodel.evaluate.statistics import Summary
from kernmodel.incore.answer.batch import BlockResult
from kernmodel.isa.model import Notion
from kernmodel.value_types import dataclass

Kind = Literal["measured", "model"]
"""What a reference is: a measurement, or the prediction of another model (whose divisions have easy operands)."""

Distinct = Literal["place", "code"]
"""Which blocks are the same: those of the same code at the same address modulo 64, or of the same code anywhere."""


@dataclass(frozen=True, slots=True)
class KnownBlock:
    """A block of a file with its reference.

    Attributes:
        line: of the file, 1-based.
        core: name of the microarchitecture as the file or the user writes it.
        code: hex digits.
        notion: how it is repeated, None: by its last instruction.
        offset: address of its first byte modulo 64, None: 0.
        reference: cycles per pass.
        peers: predictions of other models, by name.
        category: the file's own, None if it has none.
        sane: whether the file counts it among those that keep to the usual assumptions.
        crossing: the loads that crossed cache lines when it was measured, None where the file says nothing of them.
    """

    line: int
    core: str
    code: str
    notion: Notion | None
    offset: int | None
    reference: float
    peers: Mapping[str, float]
    category: str | None
    sane: bool
    crossing: CrossingLoads | None = None


@dataclass(frozen=True, slots=True)
class BlockFile:
    """A file of blocks.

    Attributes:
        file: its name.
        form: which of the known forms it has ("BHive", "oracle", "loops", "measured loops", "generic").
        reference: the column that is the reference, kind: what that is.
        references: the columns that could be.
        blocks: in the order of the file.
        skipped: lines without a usable code or reference, and why.
    """

    file: str
    form: str
    reference: str
    kind: Kind
    references: tuple[str, ...]
    blocks: tuple[KnownBlock, ...]
    skipped: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A block with its prediction; `error_percent` is absolute, of the reference."""

    block: KnownBlock
    result: BlockResult
    prediction: float
    error_percent: float


@dataclass(frozen=True, slots=True)
class Group:
    """The blocks of one core under one notion: the summary of every predictor on them, kernmodel first.

    A predictor that has nothing to say about some blocks has a smaller count.
    """

    core: str
    notion: Notion
    summaries: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class Category:
    """The blocks of one kind, over all cores and notions; `grouping` says by what ("what binds", "instructions")."""

    grouping: str
    name: str
    summaries: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The answer of `kernmodel evaluate blocks`.

    Attributes:
        source: the file.
        groups: per core and notion.
        categories: by what binds and by kind of instructions.
        worst: the blocks with the largest errors, the worst first.
        failed: lines of blocks without a prediction, and why.
        left_out: blocks that were not to count.
        uncertain: blocks with instructions that the table does not know.
        placed: blocks whose arrays do not lie where they are taken to lie, but where as many loads cross cache lines as
            the file says.
    """

    source: BlockFile
    groups: tuple[Group, ...]
    categories: tuple[Category, ...]
    worst: tuple[Judged, ...]
    failed: tuple[tuple[int, str], ...]
    left_out: int
    uncertain: int
    placed: int = 0
