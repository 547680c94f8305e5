"""What a core's pipeline can do, from the figures of its parameter file."""

from __future__ import annotations

from kernmodel.errors import InstructionTableError
from kernmodel.incore.dataflow import data_flow_figures
from kernmodel.incore.frontend.model import FrontEndParameters
from kernmodel.incore.model import Parameters
from kernmodel.incore.pipeline.model import ANY_NUMBER, PipelineCore
from kernmodel.units import parse_quantity

_TODO = "see docs/microarchitectures.md"
_PSEUDO = ("DV", "D")
"""Endings of the names of what stands beside a port: its divider, its load data path."""


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
        alternating=_port_groups(parameters, "alternating ports", ports),
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
        dsb_line_uops=_figure(parameters, "DSB line µops"),
        dsb_block_lines=_figure(parameters, "DSB lines per block"),
        synchronise_ports=_ports(parameters, "stack synchronisation ports", ports),
        synchronise_latency=_cycles(parameters, "stack synchronisation latency"),
        load_ports=_port_sets(parameters, "load ports", ports),
        store_address_ports=_port_sets(parameters, "store address ports", ports),
        store_data_ports=_port_sets(parameters, "store data ports", ports),
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


def _port_groups(parameters: Parameters, key: str, ports: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Groups of the core's ports."""
    return tuple(_named(group, parameters, key, ports) for group in _list(parameters.extra.get(key), parameters, key))


def _port_sets(parameters: Parameters, key: str, ports: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """Groups of the core's ports in any order."""
    return tuple(frozenset(group) for group in _port_groups(parameters, key, ports))


def _ports(parameters: Parameters, key: str, ports: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the core's ports."""
    return _named(parameters.extra.get(key), parameters, key, ports)


def _named(names: object, parameters: Parameters, key: str, ports: tuple[str, ...]) -> tuple[str, ...]:
    """The ports of these names, which the core has to have."""
    named = tuple(str(name) for name in _list(names, parameters, key))
    if not set(named) <= set(ports):
        what = f"figure {key!r} names ports that the core lacks: {', '.join(sorted(set(named) - set(ports)))}"
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return named


def _list(value: object, parameters: Parameters, key: str) -> list[object]:
    if not isinstance(value, list):
        what = f"figure {key!r} " + ("is missing" if value is None else f"is {value!r}, no list")
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return value


def _cycles(parameters: Parameters, key: str) -> int:
    """A latency, in whole cycles."""
    if key not in parameters.extra:
        raise InstructionTableError(f"figure {key!r} is missing", where=parameters.name, todo=_TODO)
    return round(parse_quantity(parameters.extra[key], "cycles", where=f"{parameters.name}: {key}"))


def _figure(parameters: Parameters, key: str) -> int:
    value = parameters.extra.get(key)
    if type(value) is not int:
        what = f"figure {key!r} " + ("is missing" if value is None else f"is {value!r}, no whole number")
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return value
