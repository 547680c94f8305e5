"""How the traffic of a kernel is found: by layer conditions, by simulation, or as the kernel allows.

Everything that asks for traffic goes through `TrafficMethod.traffic`; the simulator is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note, UnsupportedKernelError
from kernmodel.machine.model import Machine
from kernmodel.studies.predict.request import KernelRequest
from kernmodel.traffic.options import SimulationOptions, StoreMode

if TYPE_CHECKING:
    from kernmodel.source.model import LoopNest
    from kernmodel.traffic.model import Difference, Traffic
    from kernmodel.traffic.prepared import PreparedNest
    from kernmodel.traffic.streams import SizedNest


@dataclass(frozen=True, slots=True)
class Comparison:
    """Layer conditions beside a simulation: their traffic (None: they do not apply), what differs, and notes."""

    symbolic: Traffic | None
    differences: tuple[Difference, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class TrafficMethod:
    """The way to the traffic of one nest on one machine, for any sizes, cores and stores.

    Attributes:
        prepared: the nest as layer conditions need it; why they do not apply; or None where they are not asked for.
    """

    nest: LoopNest
    machine: Machine
    request: KernelRequest
    prepared: PreparedNest | UnsupportedKernelError | None

    def stores(self) -> StoreMode:
        """The stores that the user named, else those of the machine."""
        from kernmodel.traffic.stores import default_stores

        return self.request.stores or default_stores(self.machine)

    def traffic(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        """The traffic by the method that was asked for.

        Raises:
            UnsupportedKernelError: the method does not apply to the nest.
        """
        return _with_evasion_note(self._found(sizes, cores, stores))

    def _found(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        if self.request.cache == "lc":
            return self._symbolic(sizes, cores, stores)
        if self.request.cache != "auto":
            return self._simulated(sizes, cores, stores)
        if self.request.simulation is not None:
            return self._simulated(sizes, cores, stores, because="options of the simulation were given")
        return self._automatic(sizes, cores, stores)

    def compare(self, simulated: Traffic) -> Comparison:
        """Layer conditions for the same point, and where the simulation differs from them."""
        from kernmodel.traffic.differences import compare_traffic

        try:
            symbolic = self._symbolic(simulated.sizes, simulated.cores, simulated.stores)
        except UnsupportedKernelError as error:
            note = Note("no-layer-conditions", f"layer conditions do not apply: {error.what}", "assumption")
            return Comparison(None, (), (note,))
        options = self.request.simulation or SimulationOptions()
        differences = compare_traffic(symbolic, simulated, self.nest, self.machine, simulated.sizes, options=options)
        new = (note for note in symbolic.notes if note not in simulated.notes)
        notes = tuple(replace(note, text=f"of the layer conditions: {note.text}") for note in new)
        return Comparison(symbolic, differences, notes)

    def _automatic(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        """Layer conditions where they are shown to hold: where nothing speaks against them, or a simulation agrees.

        A safety factor is a wish of the user's that no simulation can tell anything about.
        """
        try:
            sized = self._sized(sizes)
            symbolic = self._symbolic_of(sized, sizes, cores, stores)
        except UnsupportedKernelError as error:
            return self._simulated(sizes, cores, stores, because=f"layer conditions do not apply: {error.what}")
        if self.request.safety != 1:
            return symbolic
        from kernmodel.traffic.evidence import decide

        return decide(symbolic, sized, self.machine)

    def _symbolic(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        return self._symbolic_of(self._sized(sizes), sizes, cores, stores)

    def _sized(self, sizes: Mapping[str, int]) -> SizedNest:
        from kernmodel.traffic.prepared import analyse
        from kernmodel.traffic.streams import at_sizes

        prepared = analyse(self.nest) if self.prepared is None else self.prepared
        if isinstance(prepared, UnsupportedKernelError):
            raise prepared
        return at_sizes(prepared, sizes, self.machine.line_bytes)

    def _symbolic_of(self, sized: SizedNest, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        from kernmodel.traffic.layer_conditions import sized_layer_conditions

        safety = self.request.safety
        return sized_layer_conditions(sized, self.machine, sizes, cores=cores, safety=safety, stores=stores)

    def _simulated(self, sizes: Mapping[str, int], cores: int, stores: StoreMode, because: str = "") -> Traffic:
        from kernmodel.traffic.simulation import simulate

        options = self.request.simulation or SimulationOptions()
        traffic = simulate(self.nest, self.machine, sizes, cores=cores, stores=stores, options=options)
        notes = [Note("simulated", f"the traffic was simulated, because {because}", "assumption")] if because else []
        if self.request.safety != 1:
            text = "the safety factor is one of layer conditions; the simulated caches have their whole size"
            notes.append(Note("safety-unused", text, "assumption"))
        return replace(traffic, notes=(*notes, *traffic.notes))


def _with_evasion_note(traffic: Traffic) -> Traffic:
    """The traffic, which says so if it was to evade write-allocates and has none that can be evaded."""
    if traffic.stores != "evading" or traffic.evasion is not None or not traffic.paths[-1].write_allocates:
        return traffic
    text = "no write-allocate is evaded: the nest writes no whole lines, one after the other, that it does not read"
    return replace(traffic, notes=(*traffic.notes, Note("nothing-evaded", text, "assumption")))


def traffic_method(nest: LoopNest, machine: Machine, request: KernelRequest) -> TrafficMethod:
    """Prepare a nest once for its traffic at many points.

    Raises:
        UnsupportedKernelError: layer conditions were asked for and do not apply.
    """
    return TrafficMethod(nest, machine, request, _prepared(nest, request))


def _prepared(nest: LoopNest, request: KernelRequest) -> PreparedNest | UnsupportedKernelError | None:
    if request.cache == "sim" or (request.cache == "auto" and request.simulation is not None):
        return None
    from kernmodel.traffic.prepared import analyse

    try:
        return analyse(nest)
    except UnsupportedKernelError as error:
        if request.cache == "lc":
            raise
        return error
