"""`kernmodel.kernel/1` and `kernmodel.kernel-list/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, envelope, kernel_identity, notes_json, plain

if TYPE_CHECKING:
    from kernmodel.report.text.kernel import KernelSummary
    from kernmodel.source.model import LoopNest


def kernel_document(nest: LoopNest, sizes: Mapping[str, int]) -> Json:
    """What was derived from the source of a kernel, and the source; `sizes` are empty where one has no value."""
    body = {
        "kernel": kernel_identity(nest, sizes),
        "symbols": list(nest.symbols),
        "loops": plain(nest.loops),
        "arrays": plain(nest.arrays),
        "references": plain(nest.accesses),
        "operations": plain(nest.flops),
        "scalars": plain(nest.scalars),
        "reductions": list(nest.reductions),
        "source": nest.text,
        "notes": notes_json(nest.notes),
    }
    return envelope("kernmodel.kernel/1", body)


def kernel_list_document(kernels: Iterable[KernelSummary]) -> Json:
    """The carried kernels."""
    return envelope("kernmodel.kernel-list/1", {"kernels": [plain(kernel) for kernel in kernels]})
