"""Whether arrays have room in the main memory of the ccNUMA domain whose cores work on them.

Linux gives a page of the domain whose core writes it first, and one of another domain where that has none left. What
cores draw from another domain's memory, a machine file does not say: bandwidths are those of cores and memory of the
same domain.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.units import format_bytes


def elsewhere_notes(machine: Machine, data_bytes: int | None) -> Iterator[Note]:
    """A warning where arrays are larger than the memory of a domain.

    Args:
        data_bytes: of all arrays; None: not known, of which nothing is said.
    """
    room = machine.topology.domain_memory_bytes
    if room is None or data_bytes is None or data_bytes <= room:
        return
    yield Note(
        "beyond-domain-memory",
        f"the arrays take {format_bytes(data_bytes)}, a ccNUMA domain of {machine.name} has {format_bytes(room)} of "
        f"memory: for the cores of one domain at least {1 - room / data_bytes:.0%} of the data lie in another one, "
        "from which they draw another bandwidth than the prediction takes",
    )
