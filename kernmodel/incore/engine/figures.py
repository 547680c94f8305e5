"""What a core's pipeline can do, from the figures of its parameter file."""

from __future__ import annotations

from kernmodel.incore.dependences.data_flow import data_flow_figures
from kernmodel.incore.engine.model import ANY_NUMBER, PipelineCore
from kernmodel.incore.tables.core_parameters import FrontEndParameters, Parameters, execution_ports


def pipeline_core(parameters: Parameters, front: FrontEndParameters) -> PipelineCore | None:
    """The pipeline of a core with this front end; None where nothing is known of it."""
    figures, loads = parameters.pipeline, parameters.loads
    if figures is None:
        return None
    pointer = parameters.load_latency - (loads.pointer_latency or 0.0)
    return PipelineCore(
        ports=execution_ports(parameters.ports),
        issue_width=parameters.issue_width,
        retire_width=figures.retire_width,
        reorder_buffer=figures.reorder_buffer,
        scheduler=figures.scheduler,
        idq=front.idq_uops,
        dsb_width=front.dsb_width,
        dsb_lines=figures.dsb_lines,
        dsb_ends=front.dsb_width > parameters.issue_width,
        decoders=front.decoders,
        iq=figures.iq,
        predecode_width=front.predecode_width,
        fusible_last=front.fusible_last,
        microcode_switch=figures.microcode_switch,
        microcode_exit=figures.microcode_exit,
        microcode_width=figures.microcode_width,
        predecode_delay=figures.predecode_delay,
        dispatch_delay=figures.dispatch_delay,
        counter_gap=figures.counter_gap,
        alternating=figures.alternating,
        load_latency=round(parameters.load_latency),
        forward_latency=round(parameters.load_latency),
        forward_address=figures.forward_address,
        forward_by_table=parameters.store_forward_latency == 0,
        blocked_load=figures.blocked_load,
        pointer_saving=round(pointer) if loads.pointer_chasing else 0,
        pointer_reach=loads.pointer_reach,
        halved_bytes=loads.halved_bytes,
        unlaminated_slots=figures.unlaminated_slots or ANY_NUMBER,
        unlaminated_first=figures.unlaminated_first or ANY_NUMBER,
        taken_branches=figures.taken_branches or 1,
        load_scheduler=figures.load_scheduler or 0,
        store_scheduler=figures.store_scheduler or 0,
        dsb_line_uops=figures.dsb_line_uops,
        dsb_block_lines=figures.dsb_block_lines,
        synchronise_ports=figures.synchronise_ports,
        synchronise_latency=round(parameters.registers.synchronisation or 0.0),
        load_ports=_sets(figures.load_ports),
        store_address_ports=_sets(figures.store_address_ports),
        store_data_ports=_sets(figures.store_data_ports),
        flows=data_flow_figures(parameters),
    )


def _sets(groups: tuple[tuple[str, ...], ...]) -> tuple[frozenset[str], ...]:
    """Groups of ports in any order."""
    return tuple(map(frozenset, groups))
