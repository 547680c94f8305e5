"""What a core's pipeline can do, from the figures of its parameter file."""

from __future__ import annotations

from kernmodel.errors import InstructionTableError
from kernmodel.incore.dataflow import data_flow_figures
from kernmodel.incore.frontend.model import FrontEndParameters
from kernmodel.incore.model import Parameters
from kernmodel.incore.pipeline.model import ANY_NUMBER, PipelineCore
from kernmodel.units import parse_quantity

_TODO = "see docs/microarchitectures.md"

MECHANICS: dict[str, tuple[int, str]] = {
    "dispatch delay": (5, "uiCA (ICS 2022): the scheduler's delay; the value that fits its published predictions best"),
    "port counter gap": (3, "uiCA (ICS 2022), section 4.2.2: from this difference on there is no second choice"),
    "predecode delay": (3, "uiCA (ICS 2022): cycles from predecoder to decoders"),
    "microcode width": (4, "uiCA (ICS 2022): µops per cycle of the microcode sequencer"),
    "microcode exit cycles": (1, "found by comparing with uiCA's predictions of microcoded instructions"),
    "DSB lines per cycle": (2, "uiCA (ICS 2022): a second block of the DSB may follow in the same cycle"),
    "store address latency": (4, "found by comparing with uiCA's predictions of forwarded loads: 9 cycles, 5 by data"),
    "blocked load cycles": (
        13,
        "A. Fog, microarchitecture.pdf: a failed store forwarding costs about 13 cycles on these cores; BHive's blocks "
        "with one such load take 14 to 17 cycles",
    ),
}
"""Figures that hold for all Intel cores here, with their source; a figure of the same key in a parameter file wins."""

_ALTERNATING = (("2", "3"), ("4", "9"), ("7", "8"))
"""Ports that take equal µops in turn (uiCA, ICS 2022, section 4.2.2)."""
_PSEUDO = ("DV", "D")
_ANY_ALU = ("0", "1", "5", "6")


def pipeline_core(parameters: Parameters, front: FrontEndParameters) -> PipelineCore:
    """The pipeline of a core.

    Raises:
        InstructionTableError: a figure is missing; names it.
    """
    ports = tuple(port for port in parameters.ports if not (len(port) > 1 and port.endswith(_PSEUDO)))
    pointer = parse_quantity(
        parameters.extra.get("fast pointer chasing latency", "0 cy"), "cycles", where=parameters.name
    )
    chases = bool(parameters.extra.get("fast pointer chasing"))
    reach = parameters.extra.get("fast pointer chasing displacement")
    widest = max(parameters.issue_width, front.dsb_width, front.decoders, front.predecode_width)
    for key in ("ROB entries", "RS entries", "IDQ entries", "IQ entries"):
        if _figure(parameters, key) < 2 * widest:
            what = f"figure {key!r} holds less than two cycles of µops"
            raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return PipelineCore(
        ports=ports,
        issue_width=parameters.issue_width,
        retire_width=_figure(parameters, "retire width"),
        reorder_buffer=_figure(parameters, "ROB entries"),
        scheduler=_figure(parameters, "RS entries"),
        idq=front.idq_uops,
        dsb_width=front.dsb_width,
        dsb_lines=_figure(parameters, "DSB lines per cycle"),
        dsb_ends=front.dsb_width > parameters.issue_width,
        decoders=front.decoders,
        iq=_figure(parameters, "IQ entries"),
        predecode_width=front.predecode_width,
        fusible_last=front.fusible_last,
        microcode_switch=_figure(parameters, "DSB-MS switch cycles"),
        microcode_exit=_figure(parameters, "microcode exit cycles"),
        microcode_width=_figure(parameters, "microcode width"),
        predecode_delay=_figure(parameters, "predecode delay"),
        dispatch_delay=_figure(parameters, "dispatch delay"),
        counter_gap=_figure(parameters, "port counter gap"),
        alternating=tuple(group for group in _ALTERNATING if set(group) <= set(ports)),
        load_latency=round(parameters.load_latency),
        forward_latency=round(parameters.load_latency),
        forward_address=_figure(parameters, "store address latency"),
        forward_by_table=parameters.store_forward_latency == 0,
        blocked_load=_figure(parameters, "blocked load cycles"),
        pointer_saving=round(parameters.load_latency - pointer) if chases else 0,
        pointer_reach=reach if isinstance(reach, int) else None,
        halves=bool(parameters.extra.get("256-bit memory double-pumped")),
        unlaminated_slots=_optional(parameters, "unlaminated µops per issue group", ANY_NUMBER),
        unlaminated_first=_optional(parameters, "unlaminated µops among the first of a group", ANY_NUMBER),
        taken_branches=_optional(parameters, "taken branches per cycle", 1),
        load_scheduler=_entries(parameters, "load scheduler entries", widest),
        store_scheduler=_entries(parameters, "store scheduler entries", widest),
        synchronise_ports=tuple(port for port in _ANY_ALU if port in ports),
        flows=data_flow_figures(parameters),
    )


def _entries(parameters: Parameters, key: str, widest: int) -> int:
    """Entries of a buffer that only some cores have, at least two cycles of µops; 0 without."""
    value = _figure(parameters, key) if key in parameters.extra else 0
    if 0 < value < 2 * widest or value < 0:
        what = f"figure {key!r} holds less than two cycles of µops"
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return value


def _optional(parameters: Parameters, key: str, otherwise: int) -> int:
    """A figure of the cores that have the mechanism, at least 1; what stands for its absence on others."""
    value = _figure(parameters, key) if key in parameters.extra else otherwise
    if value < 1:
        raise InstructionTableError(f"figure {key!r} is {value}, less than 1", where=parameters.name, todo=_TODO)
    return value


def _figure(parameters: Parameters, key: str) -> int:
    value = parameters.extra.get(key, MECHANICS[key][0] if key in MECHANICS else None)
    if type(value) is not int:
        what = f"figure {key!r} " + ("is missing" if value is None else f"is {value!r}, no whole number")
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return value
