"""What stores do to the traffic of memory: write-allocates, their evasion, and streaming (non-temporal) stores.

A store that misses loads its line first, unless the machine evades that for lines that are written whole, or the code
streams past the caches. The model and its sources: docs/stores.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernmodel.code.model import AssemblyLoop
from kernmodel.code.streaming import streaming_stores
from kernmodel.errors import Note, UsageError
from kernmodel.formulas.formula import Formula, counted
from kernmodel.machine.model import Machine
from kernmodel.traffic.model import Evasion, PathTraffic
from kernmodel.traffic.options import StoreMode


def check_stores(machine: Machine, stores: StoreMode) -> None:
    """Refuse streaming stores where the machine has none.

    Raises:
        UsageError: `stores` is "nt" and the machine has no streaming stores.
    """
    if stores == "nt" and not machine.stores.streaming:
        raise UsageError(
            f"{machine.name} has no streaming (non-temporal) stores",
            where="--stores",
            todo="give regular or evading",
        )


def default_stores(machine: Machine) -> StoreMode:
    """The stores of plain code: "evading" where the machine evades write-allocates by itself, else "regular"."""
    return "evading" if machine.stores.evasion in ("always", "near-saturation") else "regular"


def stores_of(loop: AssemblyLoop, machine: Machine) -> tuple[StoreMode | None, Note | None]:
    """The stores that compiled code has, as far as it says so: "nt" where all stores to moving addresses stream.

    None leaves the choice to `default_stores`; the note says what was found.
    """
    found = streaming_stores(loop)
    if not found.streaming:
        return None, None
    if not machine.stores.streaming:
        text = (
            f"the loop has {found.streaming} non-temporal stores, of which the machine file of {machine.name} has none"
        )
        return None, Note("streaming-stores", f"{text}; write-allocates are counted for them")
    if found.regular:
        text = f"{found.streaming} of {found.streaming + found.regular} stores of the loop are non-temporal"
        return None, Note("some-streaming-stores", f"{text}; the traffic counts all of them as regular")
    text = f"all stores of the loop ({found.streaming}) are non-temporal: the traffic counts streaming stores"
    return "nt", Note("streaming-loop", text, "assumption")


def evasion_of(machine: Machine, cores: int, stores: StoreMode) -> Evasion | None:
    """Which share of the write-allocates from memory the machine evades; None where stores do not evade.

    Where the share is not known, the lowest counts.

    Args:
        cores: active cores; those of the first ccNUMA domain decide.
    """
    if stores != "evading":
        return None
    name = machine.name
    match machine.stores.evasion:
        case "always":
            return Evasion(1.0, 1.0, 1.0, f"{name} claims lines that are written whole without loading them")
        case "never":
            return Evasion(1.0, 1.0, 1.0, f"{name} never evades write-allocates; this shows what it would save")
        case "near-saturation":
            return _near_saturation(machine, cores)
        case "instruction":
            reason = (
                f"{name} evades write-allocates only by a special instruction, and whether the code has it is unknown"
            )
            return Evasion(0.0, 0.0, 1.0, reason)
        case "unknown":
            return Evasion(0.0, 0.0, 1.0, f"whether {name} evades write-allocates is not known")


def _near_saturation(machine: Machine, cores: int) -> Evasion:
    active, enough = min(cores, machine.topology.cores_per_numa_domain), machine.stores.evades_from_cores
    when = f"{machine.name} evades write-allocates only near saturation of the memory bandwidth"
    if enough is not None and active >= enough:
        return Evasion(1.0, 1.0, 1.0, f"{when}: with {enough} or more active cores of a ccNUMA domain")
    if active == 1:
        return Evasion(0.0, 0.0, 0.0, f"{when}, which one core does not reach")
    return Evasion(
        0.0, 0.0, 1.0, f"{when}; how much it evades with {active} active cores of a ccNUMA domain is not known"
    )


def evasion_notes(machine: Machine, evasion: Evasion | None) -> tuple[Note, ...]:
    """What the evasion assumes or does not know."""
    if evasion is None:
        return ()
    if machine.stores.evasion == "never":
        return (Note("evasion-what-if", evasion.reason),)
    if evasion.low < evasion.high:
        span = f"{evasion.low:.0%} to {evasion.high:.0%} of the write-allocates from memory are evaded"
        return (Note("evasion-unknown", f"{evasion.reason}: {span}, and {evasion.share:.0%} counts"),)
    return (Note("evasion", evasion.reason, "assumption"),)


def limited_evasion(evasion: Evasion, part: float) -> Evasion:
    """The evasion where only `part` of the write-allocates are of lines that are written whole and not read."""
    if part >= 1:
        return evasion
    reason = f"{evasion.reason}; only {part:.0%} of the write-allocates are of lines written whole by contiguous stores"
    return Evasion(evasion.share * part, evasion.low * part, evasion.high * part, reason)


def apply_evasion(
    paths: Sequence[PathTraffic], evasion: Evasion | None, evaded: Formula | None = None
) -> tuple[PathTraffic, ...]:
    """The paths with the evaded write-allocates taken off the loads from memory.

    The caches claim and evict the line all the same, so the other paths keep their traffic. So does the path to a last
    cache that holds victims: a claimed line enters it when it is evicted, as a loaded one would.

    Args:
        paths: with all write-allocates, innermost first.
        evasion: its share is of all write-allocates of the last path.
        evaded: the lines that are evaded as a formula; None: a number.
    """
    if evasion is None or not evasion.share:
        return tuple(paths)
    *inner, memory = paths
    lines = evasion.share * memory.write_allocates
    formula = counted(memory.loads - lines) if evaded is None else memory.loads_formula - evaded
    return (*inner, replace(memory, loads=memory.loads - lines, loads_formula=formula))


def with_streamed(paths: Sequence[PathTraffic], lines: float, formula: Formula) -> tuple[PathTraffic, ...]:
    """The paths with `lines` (per unit of work) that streaming stores send to memory past the caches."""
    *inner, memory = paths
    streamed = replace(memory, stores=memory.stores + lines, stores_formula=memory.stores_formula + formula)
    return (*inner, streamed)
