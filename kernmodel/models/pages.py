"""What the size of pages makes of a prediction: each page costs a walk of the page tables and starts its streams anew.

Hardware prefetchers do not go on beyond a page of 4 KiB (Intel 64 and IA-32 Architectures Optimization Reference
Manual, 248966, on data prefetching), and a core knows the places of as many pages only as its TLB holds. Both come
once a page and stream, so that a line of a stream through memory takes 1/64 of it longer in pages of 4 KiB. `malloc`
gives these unless the system makes large blocks of huge pages by itself (transparent huge pages).
"""

from __future__ import annotations

from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.machine.pages import Pages

_NAMES = {"huge": "huge pages", "4k": "pages of 4 KiB"}


def in_pages(machine: Machine, pages: Pages | None) -> tuple[Machine, tuple[Note, ...]]:
    """The machine with its data in such pages, and what is to be said of it.

    Where its file does not say what they cost, or in which its bandwidths were measured, it stays as it is, with a
    warning.

    Args:
        pages: None: as those of the measured bandwidths.
    """
    if pages is None or pages == machine.pages:
        return machine, ()
    inner, memory = machine.paths[:-1], machine.paths[-1]
    if memory.small_pages is None or machine.pages is None:
        lacking = "what pages of 4 KiB cost" if machine.pages else "in which pages its bandwidths were measured"
        told = f"{memory.time_name} in {_NAMES[pages]} is not known, and that of the file stands"
        text = f"the file of {machine.name} does not say {lacking}: {told}"
        return machine, (Note("pages-unknown", text),)
    more = memory.small_pages if pages == "4k" else -memory.small_pages
    text = f"data in {_NAMES[pages]}: a line loaded from memory takes {more:+g} cycles beside the measured streams"
    changed = replace(machine, paths=(*inner, replace(memory, penalty_load=memory.penalty_load + more)))
    return changed, (Note("pages", text, "assumption"),)
