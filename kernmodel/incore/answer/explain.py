"""Why a block takes as long as it does, and what would help: which components bind, what fills them, what comes next.

The counterfactuals are those of table 4 of Facile (Abel, Sharma, Reineke, IISWC 2023, section 6.4), for one block: the
prediction if one component were infinitely fast. The simulated pipeline contains the other parts of the core, so where
one of these is idealised it is simulated anew without that part. Of fetch and decoding only the whole can be left out:
there the bounds of the other parts of the front end remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kernmodel.incore.answer.components import FRONT_TO_BACK, PIPELINE, PORTS, PRECEDENCE, row_of
from kernmodel.incore.answer.mechanisms import MechanismCost, Subject, mechanism_costs, simulated_without
from kernmodel.incore.answer.verdict import binding_of, reaches, reaching
from kernmodel.incore.core import Core
from kernmodel.incore.dependences.line_splits import AT_LINES, Places
from kernmodel.incore.model import Component, InCore, PortUse, Reason, Why
from kernmodel.value_types import dataclass

__all__ = ["FRONT_TO_BACK", "Explanation", "binding_components", "components_of", "explain"]

_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class CrowdingInstruction:
    """An instruction whose µops can go nowhere but to the binding ports.

    Attributes:
        row: index into `InCore.rows`.
        cycles: for which it keeps binding ports busy, per pass.
        share: of all cycles that these ports are busy.
    """

    row: int
    cycles: float
    share: float


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One instruction on the longest loop-carried dependency.

    Attributes:
        row: index into `InCore.rows`.
        latency: cycles from the value before to its own.
        carrier: register, flags or memory cell that hands its value on.
    """

    row: int
    latency: float
    carrier: str


@dataclass(frozen=True, slots=True)
class Idealised:
    """The block if one component took no time.

    Attributes:
        component: its name.
        prediction: cycles per pass without it.
        speed_up: the prediction with it over that without it, at most; infinite if nothing else takes time.
        then_binding: the components that bind then.
    """

    component: str
    prediction: float
    speed_up: float
    then_binding: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a block takes as long as it does.

    Attributes:
        components: bounds of the parts of the core, front to back.
        binding: names of those that reach the prediction.
        crowd: the instructions that fill the binding ports, the largest share first.
        chain: the longest loop-carried dependency, instruction by instruction; empty if there is none.
        chain_passes: passes of the loop that it spans.
        idealised: for each component that applies, the block without it, the most helpful first.
        next_bound: the largest bound below the prediction: its components; empty if there is none.
        next_cycles: its cycles per pass, 0 if there is none.
        mechanisms: what single mechanisms of the core cost or save, the most costly first; only those that make a
            difference, and only with a core whose pipeline is simulated.
    """

    components: tuple[Component, ...]
    binding: tuple[str, ...]
    crowd: tuple[CrowdingInstruction, ...]
    chain: tuple[ChainStep, ...]
    chain_passes: int
    idealised: tuple[Idealised, ...]
    next_bound: tuple[str, ...]
    next_cycles: float
    mechanisms: tuple[MechanismCost, ...] = ()


def explain(incore: InCore, core: Core | None = None, places: Places = AT_LINES) -> Explanation:
    """Explain an answer.

    Args:
        incore: the answer.
        core: that it was analysed for, to simulate the block without one part after the other; without it, what stands
            in the answer has to do, and the speed-ups are upper limits.
        places: where the arrays of a loop lie, as in the analysis.

    Raises:
        InstructionTableError: a row of the table is malformed.
    """
    components = components_of(incore)
    applied = [part for part in components if part.applies]
    below = [part for part in applied if part.name != PIPELINE and not reaches(part.cycles, incore.prediction)]
    following = max((part.cycles for part in below), default=0.0)
    simulated = core is not None and any(part.name == PIPELINE for part in incore.components)
    subject = _subject(incore, core, places) if core is not None and simulated else None
    return Explanation(
        components=components,
        binding=binding_components(incore),
        crowd=_crowd(incore),
        chain=_chain(incore),
        chain_passes=incore.lcd.passes if incore.lcd else 1,
        idealised=_idealised(applied, incore, subject, core),
        next_bound=_reaching(below, following) if following else (),
        next_cycles=following,
        mechanisms=mechanism_costs(subject, core.model) if core is not None and subject is not None else (),
    )


def _subject(incore: InCore, core: Core, places: Places) -> Subject:
    instructions = tuple(row.instruction for row in incore.rows)
    rows = tuple(row_of(instruction, core.table) for instruction in instructions)
    return Subject(instructions, rows, incore.notion, incore.offset, places)


def components_of(incore: InCore) -> tuple[Component, ...]:
    """The components of an answer; ports and precedence where it has no more than TP and LCD."""
    if incore.components:
        return incore.components
    busy = Reason(Why.BINDING_PORTS, incore.throughput, names=incore.binding_ports)
    cycles, length = (incore.lcd.cycles, len(incore.lcd.members)) if incore.lcd else (0.0, 0)
    waiting = Reason(Why.CHAIN, cycles, {"instructions": length})
    return Component(PORTS, incore.throughput, True, busy), Component(PRECEDENCE, cycles, True, waiting)


def binding_components(incore: InCore) -> tuple[str, ...]:
    """Names of the components that apply and reach the prediction."""
    return _reaching([part for part in components_of(incore) if part.applies], incore.prediction)


def _reaching(components: Sequence[Component], cycles: float) -> tuple[str, ...]:
    """The bounds that explain so many cycles."""
    return binding_of(reaching({part.name: part.cycles for part in components}, cycles))


def _crowd(incore: InCore) -> tuple[CrowdingInstruction, ...]:
    """The instructions behind the port bound."""
    inside = frozenset(incore.binding_ports)
    total = incore.throughput * len(inside)
    if not total:
        return ()
    found = ((row, _cycles_on(uses, inside, incore.port_model == "even")) for row, uses in enumerate(incore.uses))
    crowd = [CrowdingInstruction(row, cycles, cycles / total) for row, cycles in found if cycles]
    return tuple(sorted(crowd, key=lambda item: (-item.cycles, item.row)))


def _cycles_on(uses: Sequence[PortUse], ports: frozenset[str], even: bool) -> float:
    """Cycles of the µops that need these ports; of equal shares the part that falls on them."""
    if even:
        return sum(use.cycles * len(ports.intersection(use.ports)) / len(use.ports) for use in uses if use.ports)
    return sum(use.cycles for use in uses if use.ports and ports.issuperset(use.ports))


def _chain(incore: InCore) -> tuple[ChainStep, ...]:
    """The steps of the longest loop-carried dependency; an instruction on it several times has its mean latency."""
    if incore.lcd is None:
        return ()
    times = Counter(incore.lcd.members)
    return tuple(
        ChainStep(member, (incore.rows[member].on_lcd or 0.0) * incore.lcd.passes / times[member], carrier)
        for member, carrier in zip(incore.lcd.members, incore.lcd.carriers, strict=True)
    )


def _idealised(
    applied: Sequence[Component], incore: InCore, subject: Subject | None, core: Core | None
) -> tuple[Idealised, ...]:
    """What each component costs: the block without it.

    A greedy scheduler can be worse off with more room; that is no cost of the part, so no prediction exceeds the one
    with it.
    """
    prediction = incore.prediction
    found = []
    for name in dict.fromkeys(part.name for part in applied):
        others = [part for part in applied if part.name not in (name, PIPELINE)]
        if name != PIPELINE and subject is not None and core is not None:
            again = simulated_without(name, subject, core.model)
            others += [Component(PIPELINE, min(again, prediction), True, None)] if again is not None else []
        cycles = min(prediction, max((part.cycles for part in others), default=0.0))
        speed_up = prediction / cycles if cycles else float("inf") if prediction else 1.0
        found.append(Idealised(name, cycles, speed_up, _reaching(others, cycles)))
    return tuple(sorted(found, key=lambda item: item.prediction))
