"""Predict the blocks of a file and compare: statistics per core and notion and by kind of block, and the worst ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from kernmodel.code.blocks import block_of_bytes, parse_hex
from kernmodel.errors import InstructionTableError, KernmodelError
from kernmodel.evaluate.categories import categories
from kernmodel.evaluate.crossing import places_of
from kernmodel.evaluate.model import BlockFile, Category, Distinct, Evaluation, Group, Judged, KnownBlock
from kernmodel.evaluate.statistics import Summary, percent_error, summarise
from kernmodel.incore.answer.batch import BlockQuery, BlockResult, answer_all
from kernmodel.incore.core import Settings
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.line_splits import AT_LINES
from kernmodel.incore.tables.parameters import canonical_name, load_parameters
from kernmodel.incore.tables.table import Operands
from kernmodel.isa.model import Notion

OURS = "kernmodel"

_POLICIES: Mapping[str, MemoryPolicy] = {"uica": "different", "uica_stack": "stack", "facile": "stack"}
"""How the models of the files decide which loads read what the block stored."""

_MOST_CATEGORIES = 20
"""Own categories of a file beyond which they tell nothing."""


def settings_for(source: BlockFile, operands: Operands | None = None, memory: MemoryPolicy | None = None) -> Settings:
    """The settings under which predictions can be compared with the reference of a file.

    Other models took the easy operands of uops.info's measurements for divisions, and follow addresses in their own
    way; a measurement means the core as it is.

    Args:
        source: the file; operands, memory: instead of those of its reference.
    """
    easy: Operands = "full" if source.kind == "measured" else "easy"
    return Settings(operands=operands or easy, memory=memory or _POLICIES.get(source.reference, "moving"))


def chosen_blocks(
    blocks: Sequence[KnownBlock],
    *,
    cores: frozenset[str] | None = None,
    notion: Notion | None = None,
    sane: bool = False,
    distinct: Distinct | None = None,
) -> tuple[KnownBlock, ...]:
    """The blocks that are to count.

    Args:
        blocks: of a file.
        cores: canonical names; None: all.
        notion: only blocks that the file repeats so; blocks of which it says nothing take this notion.
        sane: only those that the file counts among the sane ones.
        distinct: of blocks with the same code, core and notion only the first; at the same address modulo 64 or at any.
    """
    canonical = _canonical_names(blocks)
    kept: dict[object, KnownBlock] = {}
    for number, block in enumerate(blocks):
        if cores is not None and canonical[block.core] not in cores:
            continue
        if (sane and not block.sane) or (notion and block.notion not in (None, notion)):
            continue
        place = block.offset if distinct == "place" else None
        key = (block.core, block.notion, block.code.lower(), place) if distinct else number
        kept.setdefault(key, replace(block, notion=block.notion or notion))
    return tuple(kept.values())


def _canonical_names(blocks: Iterable[KnownBlock]) -> Mapping[str, str]:
    """The canonical names of the cores of blocks; a name that is not known stands for itself."""
    names = {block.core: block.core for block in blocks}
    for name in names:
        with suppress(InstructionTableError):
            names[name] = canonical_name(name)
    return names


def evaluate_blocks(
    source: BlockFile,
    blocks: Sequence[KnownBlock],
    settings: Settings,
    *,
    jobs: int | None = None,
    worst: int = 0,
    progress: Callable[[Iterator[BlockResult]], Iterator[BlockResult]] = lambda results: results,
) -> Evaluation:
    """Predict blocks and compare.

    Args:
        source: the file they are from; blocks: those of it that are to count.
        settings: of the analysis; a block's own notion and offset go before them.
        jobs: processes, None: all cores of the host.
        worst: how many of the worst blocks to keep.
        progress: is handed the results as they come.
    """
    queries = [_query(block) for block in blocks]
    results = tuple(progress(answer_all(queries, settings, jobs)))
    judged = tuple(
        Judged(block, result, result.prediction, percent_error(result.prediction, block.reference))
        for block, result in zip(blocks, results, strict=True)
        if result.prediction is not None
    )
    split: dict[tuple[str, Notion], list[Judged]] = {}
    for item in judged:
        split.setdefault((item.result.core, item.result.notion or "loop"), []).append(item)
    failed = tuple((result.line, result.error or "") for result in results if result.prediction is None)
    return Evaluation(
        source=source,
        groups=tuple(Group(core, notion, _summaries(items)) for (core, notion), items in split.items()),
        categories=_categories(judged),
        worst=tuple(sorted(judged, key=lambda item: (-item.error_percent, item.block.line))[:worst]),
        failed=failed,
        left_out=len(source.blocks) - len(blocks),
        uncertain=sum(bool(item.result.unknown) for item in judged),
        placed=sum(query.places is not None for query in queries),
    )


def _query(block: KnownBlock) -> BlockQuery:
    query = BlockQuery(block.line, block.code, block.core, notion=block.notion, offset=block.offset)
    if block.crossing is None:
        return query
    with suppress(KernmodelError):  # what is wrong with the code or the core, the prediction says
        isa_name = load_parameters(block.core).isa
        loop = block_of_bytes(parse_hex(block.code, "hex"), file=f"line {block.line}", isa_name=isa_name)
        found = places_of(loop.instructions, block.crossing)
        return query if found is AT_LINES else query._replace(places=found)
    return query


def _categories(judged: Sequence[Judged]) -> tuple[Category, ...]:
    """By each grouping, the most numerous category first."""
    split: dict[str, dict[str, list[Judged]]] = {"what binds": {}}
    own = {item.block.category for item in judged} - {None}
    for item in judged:
        kinds = {"what binds": " and ".join(item.result.binding) or "nothing"}
        kinds |= categories(parse_hex(item.block.code, "hex"))
        if item.block.category is not None and 1 < len(own) <= _MOST_CATEGORIES:
            kinds["category of the file"] = item.block.category
        for grouping, name in kinds.items():
            split.setdefault(grouping, {}).setdefault(name, []).append(item)
    return tuple(
        Category(grouping, name, _summaries(items))
        for grouping, names in split.items()
        for name, items in sorted(names.items(), key=lambda pair: -len(pair[1]))
    )


def _summaries(judged: Sequence[Judged]) -> dict[str, Summary]:
    """The summary of every predictor, ours first."""
    ours = summarise([item.prediction for item in judged], [item.block.reference for item in judged])
    names = dict.fromkeys(name for item in judged for name in item.block.peers)
    found = {OURS: ours}
    for name in names:
        with_peer = [item.block for item in judged if name in item.block.peers]
        found[name] = summarise([b.peers[name] for b in with_peer], [b.reference for b in with_peer])
    return found
