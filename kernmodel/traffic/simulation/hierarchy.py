"""A machine's caches as the simulator takes them: links between levels, victim caches, and a core's share."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.cachesim.model import MEMORY, CacheSpec, Hierarchy, Policy
from kernmodel.errors import Note
from kernmodel.machine.cores import check_caches, check_cores
from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.traffic.options import SimulationOptions

POLICY_OF: dict[str, Policy] = {"LRU": "LRU", "FIFO": "FIFO", "MRU": "MRU", "PLRU": "PLRU", "RR": "RANDOM"}
"""Replacement as machine files call it; "RR" is Kerncraft's word for random replacement."""


def hierarchy_of(machine: Machine, cores: int = 1, options: SimulationOptions | None = None) -> Hierarchy:
    """The caches that one of `cores` active cores has on this machine.

    A shared cache is divided by its sets: ways, policy and line stay, so that a core sees its associativity.

    Raises:
        UsageError: more cores than the machine has.
        InputError: caches that differ in the length of a cache line.
    """
    chosen = options or SimulationOptions()
    check_cores(machine, cores)
    check_caches(machine)
    specs = tuple(_spec(machine.levels, index, cores, chosen) for index in range(len(machine.levels)))
    return Hierarchy(specs, seed=chosen.seed)


def _spec(levels: Sequence[CacheLevel], index: int, cores: int, options: SimulationOptions) -> CacheSpec:
    level = levels[index]
    following = levels[index + 1] if index + 1 < len(levels) else None
    victim = following is not None and following.filled_by == "victims"
    return CacheSpec(
        name=level.name,
        sets=max(1, round(level.sets / min(cores, level.cores_sharing))),
        ways=level.ways,
        line_bytes=level.line_bytes,
        policy=options.policy or POLICY_OF[level.replacement],
        write_back=level.write_back,
        # what arrives in a victim cache are whole lines, which enter it whatever it does about stores that miss
        write_allocate=level.write_allocate or level.filled_by == "victims",
        # the next level outward that is filled by misses: where a line comes from that no victim cache holds
        load_from=next((outer.name for outer in levels[index + 1 :] if outer.filled_by == "miss"), MEMORY),
        store_to=following.name if following is not None else MEMORY,
        victim_level=following.name if following is not None and victim else None,
        clean_victims=following.clean_victims if following is not None and victim else False,
        inclusive=bool(level.inclusive_of_inner),
    )


def hierarchy_notes(machine: Machine, cores: int, hierarchy: Hierarchy) -> tuple[Note, ...]:
    """What the hierarchy assumes of the machine."""
    policies = dict.fromkeys(spec.policy for spec in hierarchy.levels)
    shown = " and ".join(policy if policy in ("LRU", "FIFO", "MRU") else _POLICY_NAMES[policy] for policy in policies)
    text = f"caches are simulated set by set, with {shown} replacement"
    notes = [Note("replacement", text, "assumption")]
    for inner, level in zip(machine.levels, machine.levels[1:], strict=False):
        if level.filled_by == "victims":
            text = f"{level.name} is a victim cache: it takes what {inner.name} evicts"
            if level.loads_pass_by:
                text += f"; loads from memory reach {inner.name} past it"
            notes.append(Note("victim-cache", text, "assumption"))
    for level, spec in zip(machine.levels, hierarchy.levels, strict=True):
        sharers = min(cores, level.cores_sharing)
        if sharers > 1:
            text = f"each of {sharers} cores has an equal share of {level.name}: {spec.sets} of its {level.sets} sets"
            notes.append(Note("shared-cache", text, "assumption"))
    return tuple(notes)


_POLICY_NAMES = {"RANDOM": "random", "PLRU": "tree-PLRU"}
