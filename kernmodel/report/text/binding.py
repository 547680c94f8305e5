"""What binds a loop, in a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.incore.answer.explain import binding_components

if TYPE_CHECKING:
    from kernmodel.incore.model import InCore


def bound_text(incore: InCore) -> str:
    """What binds, as a noun: the components where they are known."""
    names = binding_components(incore)
    return " and ".join(names) if names else "nothing"
