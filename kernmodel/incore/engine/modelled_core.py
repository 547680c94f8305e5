"""What lowering and engine ask of a core, made once of the figures of its parameter file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.data_flow import data_flow_figures
from kernmodel.incore.dependences.graph import GraphFigures, graph_figures
from kernmodel.incore.dependences.line_splits import Lines
from kernmodel.incore.engine.layout import (
    GROUPS,
    KINDS,
    PORTS,
    SCHEDULERS,
    Core,
    Figures,
    Times,
    port_mask,
)
from kernmodel.incore.engine.model import (
    ANY_NUMBER,
    LIMITS,
    Delivery,
    Forwards,
    Interleaving,
    MemoryPipes,
    PipelineCore,
    PortSchedulers,
    Switches,
)
from kernmodel.incore.tables.core_parameters import (
    DELIVERED,
    PORT_CHOICES,
    ForwardingParameters,
    FrontEndParameters,
    InterleavingParameters,
    LineParameters,
    OpCacheParameters,
    Parameters,
    PipelineParameters,
    WindowParameters,
    ZenPipelineParameters,
    execution_ports,
    front_end_parameters,
    op_cache_parameters,
)
from kernmodel.value_types import NamedTuple, dataclass

_AMPLE = 2048
"""Entries of an idealised buffer, and an idealised retire width: more than any block of a period fills."""


@dataclass(frozen=True, slots=True)
class ModelledCore:
    """What the analysis of blocks depends on beside the instruction table.

    Attributes:
        parameters: of the core.
        front, pipeline: its front end and pipeline; None where the parameters have no figures of them.
        graph: of its dependencies.
        switches: what is idealised, and the memory policy.
        closed: the port that 512-bit registers close, None if they close none.
        fusing: mnemonics that fuse with jumps on cores whose tables list no pairs.
        splits: cycles of loads across cache lines by their bytes, where they take longer than others.
        op_cache: the front end of a Zen core, None for others.
    """

    parameters: Parameters
    front: FrontEndParameters | None
    pipeline: PipelineCore | None
    graph: GraphFigures
    switches: Switches
    closed: str | None
    fusing: frozenset[str]
    splits: Mapping[int, float]
    op_cache: OpCacheParameters | None

    @property
    def units(self) -> FrontEndParameters | OpCacheParameters | None:
        """The front end, of whichever kind."""
        return self.front or self.op_cache


def modelled_core(
    parameters: Parameters, memory: MemoryPolicy = "moving", switches: Switches | None = None
) -> ModelledCore:
    """The model of a core.

    Args:
        parameters: of the core.
        memory: which stores and loads meet. With "different", uiCA's policy, every store can be forwarded, as there.
        switches: mechanisms to idealise; none by default. Its memory policy is that of the pipeline.

    Raises:
        InstructionTableError: a figure is missing or malformed.
    """
    front = front_end_parameters(parameters)
    return ModelledCore(
        parameters=parameters,
        front=front,
        pipeline=pipeline_core(parameters, front)
        if front
        else zen_pipeline(parameters) or windowed_pipeline(parameters),
        graph=graph_figures(parameters, memory),
        switches=switches or Switches(memory=memory, blocked_loads=memory != "different"),
        closed=parameters.closed_by_widest,
        fusing=frozenset(parameters.fused_with_jumps),
        splits=parameters.loads.splits if memory == "moving" else {},
        op_cache=op_cache_parameters(parameters),
    )


def without_issue_limit(core: ModelledCore) -> ModelledCore:
    """The core with a renamer as wide as its buffers allow."""
    pipeline = core.pipeline
    if pipeline is None:
        return core
    schedulers = [size for size in (pipeline.scheduler, pipeline.load_scheduler, pipeline.store_scheduler) if size]
    schedulers += [size for _, size in pipeline.by_port.schedulers] if pipeline.by_port else []
    width = min(pipeline.delivery.idq, *schedulers, pipeline.reorder_buffer) // 2
    return replace(core, pipeline=replace(pipeline, issue_width=width, retire_width=max(width, pipeline.retire_width)))


class AmpleBuffer(NamedTuple):
    """A pipeline one of whose buffers never fills up.

    Attributes:
        name: of the buffer; entries: that it has; ports: that it belongs to, none where it serves all.
        pipeline: with more entries.
    """

    name: Literal["schedulers", "load scheduler", "store scheduler", "reorder buffer", "vector registers"]
    entries: int
    ports: tuple[str, ...]
    pipeline: PipelineCore


def with_ample_buffers(pipeline: PipelineCore) -> Iterator[AmpleBuffer]:
    """The pipeline with each of its buffers idealised; schedulers that belong to ports together, apart those behind a
    queue."""
    yield AmpleBuffer("reorder buffer", pipeline.reorder_buffer, (), replace(pipeline, reorder_buffer=_AMPLE))
    by_port = pipeline.by_port
    if by_port is None:
        yield AmpleBuffer("schedulers", pipeline.scheduler, (), replace(pipeline, scheduler=_AMPLE))
        if own := pipeline.load_scheduler:
            yield AmpleBuffer("load scheduler", own, (), replace(pipeline, load_scheduler=_AMPLE))
        if own := pipeline.store_scheduler:
            yield AmpleBuffer("store scheduler", own, (), replace(pipeline, store_scheduler=_AMPLE))
        return
    queued = frozenset(by_port.queued)
    for behind in (True, False):
        chosen = [
            (ports, entries) for ports, entries in by_port.schedulers if bool(queued.intersection(ports)) == behind
        ]
        if not chosen:
            continue
        rooms = [(ports, _AMPLE if (ports, entries) in chosen else entries) for ports, entries in by_port.schedulers]
        queue = _AMPLE if behind else by_port.queue_entries
        ample = replace(pipeline, by_port=replace(by_port, schedulers=tuple(rooms), queue_entries=queue))
        entries = sum(entries for _, entries in chosen) + (by_port.queue_entries if behind else 0)
        yield AmpleBuffer(
            "schedulers", entries, tuple(p for p in pipeline.ports if any(p in ports for ports, _ in chosen)), ample
        )
    if by_port.vector_registers:
        ample = replace(pipeline, by_port=replace(by_port, vector_registers=0))
        yield AmpleBuffer("vector registers", by_port.vector_registers, (), ample)


def figures_of(core: ModelledCore) -> Figures:
    """What joining and bounding blocks asks of the core."""
    front, pipeline, zen, switches = core.front, core.pipeline, core.op_cache, core.switches
    common = Figures(
        kind=KINDS.index("uop cache" if front else "op cache" if zen else "none"),
        fetches=switches.front_end,
        issue_width=core.parameters.issue_width,
        facile_stack=core.graph.memory == "stack",
        forward_as_load=core.graph.shortest is not None,
        adders=core.graph.adders is not None,
    )
    if zen is not None:
        return common._replace(
            decoders=zen.decoders,
            fetch_bytes=zen.fetch_bytes or 0,
            op_cache_entries=zen.op_cache_entries,
            op_cache_width=zen.op_cache_width or 0,
            issue_instructions=zen.issue_instructions or 0,
            whole_instructions=zen.whole_instructions,
            code_line_bytes=zen.code_line_bytes or 0,
            simulated=pipeline is not None,
            forward_latency=pipeline.memory.forward_latency if pipeline else 0,
        )
    if front is None or pipeline is None:
        return common
    return common._replace(
        simulated=1,
        decoders=front.decoders,
        fusible_last=front.fusible_last,
        fusion_line_bytes=front.fusion_line_bytes,
        branch_ends_group=1,
        predecode_width=front.predecode_width,
        predecode_bytes=front.predecode_bytes,
        prefix_cycles=front.prefix_cycles,
        dsb_width=front.dsb_width,
        dsb_bytes=front.dsb_bytes,
        dsb_line_bytes=front.dsb_line_bytes,
        dsb_ends=pipeline.delivery.dsb_ends,
        jcc_bytes=front.jcc_bytes or 0,
        idq_uops=front.idq_uops,
        lsd=front.lsd,
        partial_erratum=switches.partial_erratum,
        group_boundary=switches.group_boundary,
        synchronises=switches.synchronisation,
        synchronise_ports=port_mask(pipeline.synchronise_ports, pipeline.ports),
        synchronise_latency=pipeline.synchronise_latency,
        pointer_saving=pipeline.memory.pointer_saving if switches.pointer_chasing else 0,
        blocked_loads=switches.blocked_loads,
        blocked_load=pipeline.memory.blocked_load,
        store_address=switches.store_address,
        forward_latency=pipeline.memory.forward_latency,
        forward_address=pipeline.memory.forward_address,
        dsb_line_microops=pipeline.delivery.dsb_line_uops,
        dsb_block_lines=pipeline.delivery.dsb_block_lines,
    )


def times_of(core: ModelledCore) -> Times:
    """The same for times."""
    graph, adders = core.graph, core.graph.adders
    return Times(
        synchronise=graph.synchronise,
        forward=graph.forward,
        shortest=graph.shortest or 0.0,
        pointer_saving=graph.flows.pointer_saving,
        to_others=(adders and adders.to_others) or 0.0,
        several_chains=(adders and adders.several_chains) or 0.0,
        free_chains=float(adders.free_chains) if adders else 0.0,
        beside_wide=(adders and adders.beside_wide) or 0.0,
        between_domains=graph.between_domains,
    )


def simulated_core(pipeline: PipelineCore, switches: Switches) -> Core:
    """The numbers of a pipeline; those of the block are 0."""
    groups = [port_mask(group, pipeline.ports) for group in pipeline.alternating[:GROUPS]]
    ample = not switches.buffers
    same = _same(pipeline.delivery, Core) | _same(pipeline, Core)
    own = {
        "issue_ports": int(switches.issue_ports and pipeline.gives_ports),
        "alternating": _padded(groups),
        "port_choice": PORT_CHOICES.index(pipeline.port_choice),
        "retire_width": pipeline.retire_width if switches.retirement else _AMPLE,
        "scheduler": _AMPLE if ample else pipeline.scheduler,
        "load_scheduler": 0 if ample else pipeline.load_scheduler,
        "store_scheduler": 0 if ample else pipeline.store_scheduler,
        "reorder_buffer": _AMPLE if ample else pipeline.reorder_buffer,
        "bank_bytes": pipeline.memory.bank_bytes if switches.data_paths else 0,
        "constants_delivered": _padded(pipeline.delivery.constants, DELIVERED),
        "long_delivered": _padded(pipeline.delivery.long_constants, DELIVERED),
        "lines_in_turn": int(pipeline.memory.lines is not None and pipeline.memory.lines.in_turn),
        **_schedulers(pipeline, ample),
    }
    limits = LIMITS.by_port if pipeline.by_port and pipeline.gives_ports else LIMITS
    return Core(**{**same, **own, **limits._asdict()})


def _schedulers(pipeline: PipelineCore, ample: bool) -> dict[str, Any]:
    """Those that belong to ports; the last one is of ports that are in none, and has room for all."""
    by_port = pipeline.by_port
    if by_port is None:
        return {"by_port": 0}
    starts, groups = pipeline.memory.load_starts, len(pipeline.memory.load_ports)
    own = {port: number for number, (ports, _) in enumerate(by_port.schedulers) for port in ports}
    of_ports = [own.get(port, SCHEDULERS - 1) for port in pipeline.ports]
    rooms = [_AMPLE] * SCHEDULERS
    if not ample:
        rooms[: len(by_port.schedulers)] = [entries for _, entries in by_port.schedulers]
    return {
        "by_port": 1,
        **_interleaving(by_port.interleaving, pipeline.ports),
        "together": port_mask(by_port.together, pipeline.ports),
        "beside": 1 + by_port.together.index(by_port.beside) if by_port.beside else 0,
        "narrow": sum(1 << by_port.together.index(port) for port in by_port.narrow),
        "operations_together": int(by_port.operations_together),
        "seen_after": by_port.seen_after,
        "load_ports": _padded([port_mask(group, pipeline.ports) for group in starts or pipeline.memory.load_ports]),
        "addressing": port_mask(frozenset().union(*starts), pipeline.ports),
        "most_loads": _padded([*by_port.most_loads, *[0] * (groups - len(by_port.most_loads)), by_port.most_accesses]),
        "queued": port_mask(by_port.queued, pipeline.ports),
        "queue_entries": _AMPLE if ample else by_port.queue_entries,
        "vector_registers": 0 if ample else by_port.vector_registers,
        "register_release": by_port.register_release,
        "rooms": tuple(rooms),
        "scheduler_of": tuple(of_ports + [SCHEDULERS - 1] * (PORTS - len(of_ports))),
        "borrowed": _borrowed(by_port, pipeline.ports),
        "one_store": port_mask((by_port.one_store,) if by_port.one_store else (), pipeline.ports),
        "loaded_third": int(by_port.loaded_third_waits),
        "straight_stores": int(by_port.straight_stores),
        "straight_cycles": by_port.straight_cycles,
        "one_result": port_mask(by_port.one_result, pipeline.ports),
        "result_waits": port_mask((by_port.result_port,) if by_port.result_port else (), pipeline.ports),
        "result_passes": by_port.result_passes,
        "accesses_together": int(by_port.accesses_together),
        "loads_in_a_row": by_port.loads_in_a_row if by_port.accesses_together and by_port.most_loads else 0,
    }


def _interleaving(own: Interleaving | None, ports: Sequence[str]) -> dict[str, Any]:
    """What tells the schedulers of alike ports."""
    if own is None:
        return {}
    places = {port: 1 + place for place, port in enumerate(port for pair in own.pairs for port in pair)}
    numbers = {field.name: getattr(own, field.name) for field in fields(own) if field.name != "pairs"}
    return {"interleaved": tuple(places.get(port, 0) for port in ports) + (0,) * (PORTS - len(ports)), **numbers}


def _sides(figures: InterleavingParameters) -> Interleaving | None:
    """The same as numbers with names; None where nothing is interleaved."""
    if not figures.pairs:
        return None
    return Interleaving(figures.pairs, *figures.gaps, *figures.fills, *figures.delays)


def _borrowed(by_port: PortSchedulers, ports: Sequence[str]) -> tuple[int, ...]:
    """By port, 1 more than the number of the one whose path brings a third vector, 0 for none."""
    lent = {pair[0]: pair[1] for pair in by_port.third_paths}
    return tuple([1 + ports.index(lent[port]) if port in lent else 0 for port in ports] + [0] * (PORTS - len(ports)))


def _padded(numbers: Sequence[int], size: int = GROUPS) -> tuple[int, ...]:
    """One for each group of ports that the engine knows, or for each of so many."""
    return (*numbers[:size], *[0] * (size - len(numbers)))


def _lines(figures: LineParameters, *, halved: bool) -> Lines | None:
    """What accesses take longer by where they lie; None where nothing of it is known."""
    if not figures.line_bytes:
        return None
    return Lines(
        figures.line_bytes,
        figures.store_block_bytes,
        whole_lines=figures.whole_lines,
        whole_across=figures.whole_across,
        half_across=figures.half_across,
        half_lines=figures.half_lines,
        halves_together=figures.halves_together,
        in_turn=figures.in_turn or halved,
        evictions=figures.evictions,
        halved=halved,
    )


def _forwards(figures: ForwardingParameters, usual: float) -> Forwards:
    """Cycles of store forwarding by the kind of access, `usual` where nothing else is known."""

    def cycles(figure: float | None) -> int:
        return round(usual if figure is None else figure)

    return Forwards(
        general=cycles(figures.general),
        vector=cycles(None),
        to_vector=cycles(figures.to_vector),
        to_general=cycles(figures.to_general),
        partial=cycles(figures.partial),
        partial_vector=cycles(figures.partial_vector or figures.partial),
        renamed=None if figures.renamed_load is None else round(figures.renamed_load),
        renamed_bytes=figures.renamed_bytes,
    )


def zen_pipeline(parameters: Parameters) -> PipelineCore | None:
    """The pipeline of a core whose schedulers belong to ports; None where nothing is known of it."""
    figures, front = parameters.pipeline, op_cache_parameters(parameters)
    if front is None or not isinstance(figures, ZenPipelineParameters):
        return None
    entries = figures.scheduler_entries
    memory = MemoryPipes(
        load_latency=round(parameters.load_latency),
        forward_latency=round(parameters.store_forward_latency),
        load_ports=_sets(figures.memory.load_ports),
        store_data_ports=_sets(figures.memory.store_ports),
        address_ports=_sets(figures.memory.address_ports),
        value_ports=_sets(figures.memory.value_ports),
        passed_bytes=figures.memory.passed_bytes,
        load_starts=_sets(figures.memory.load_starts),
        lines=_lines(figures.lines, halved=parameters.loads.double_pumped),
        forwards=_forwards(figures.forwarding, parameters.store_forward_latency),
    )
    schedulers = PortSchedulers(
        schedulers=tuple(zip(figures.schedulers, entries, strict=True)),
        given=bool(figures.together),
        interleaving=_sides(figures.interleaving),
        together=figures.together,
        beside=figures.beside,
        narrow=figures.narrow,
        operations_together=figures.operations_together,
        seen_after=figures.seen_after,
        queued=figures.queued,
        queue_entries=figures.queue_entries,
        vector_registers=figures.vector_registers,
        register_release=figures.register_release,
        two_registers_bytes=parameters.loads.halved_bytes,  # registers are as wide as what moves at once
        third_paths=figures.paths.third_paths,
        one_store=figures.paths.one_store,
        loaded_third_waits=figures.paths.loaded_third_waits,
        straight_stores=figures.paths.straight_stores,
        straight_cycles=figures.paths.straight_cycles,
        one_result=figures.one_result,
        result_port=figures.result_port,
        result_passes=figures.result_passes,
        most_loads=figures.memory.most_loads,
        most_accesses=figures.memory.most_accesses,
        accesses_together=figures.memory.accesses_together,
        loads_in_a_row=figures.memory.loads_in_a_row,
    )
    return PipelineCore(
        ports=execution_ports(parameters.ports),
        issue_width=parameters.issue_width,
        retire_width=figures.retire_width,
        reorder_buffer=figures.reorder_buffer,
        scheduler=sum(entries),
        dispatch_delay=1,
        delivery=Delivery(
            idq=figures.queue or _AMPLE,
            decoders=front.decoders,
            queued_lines=figures.queue_lines or 0,
            constants=front.constants,
            long_constants=front.long_constants,
            constants_dispatched=front.constants_dispatched or 0,
        ),
        memory=memory,
        by_port=schedulers,
        extra_slots=front.extra_slots,
        whole_instructions=front.whole_instructions,
        fused_ports=figures.fused_ports,
        result_paths=figures.paths.result_paths,
        flows=data_flow_figures(parameters),
    )


def windowed_pipeline(parameters: Parameters) -> PipelineCore | None:
    """The pipeline of a core of which the reorder buffer is known, and maybe schedulers; None for others."""
    figures, front = parameters.pipeline, op_cache_parameters(parameters)
    if front is None or not isinstance(figures, WindowParameters):
        return None
    accesses, entries = _sets(figures.access_ports), figures.scheduler_entries
    own, forward = tuple(zip(figures.schedulers, entries, strict=True)), round(parameters.store_forward_latency)
    return PipelineCore(
        ports=execution_ports(parameters.ports),
        issue_width=parameters.issue_width,
        retire_width=figures.retire_width or _AMPLE,
        reorder_buffer=figures.reorder_buffer,
        scheduler=sum(entries) or _AMPLE,
        dispatch_delay=1,
        delivery=Delivery(idq=_AMPLE, decoders=front.decoders),
        memory=MemoryPipes(
            load_latency=round(parameters.load_latency),
            forward_latency=forward,
            load_ports=accesses,
            store_address_ports=accesses,
            store_data_ports=_sets(figures.store_data_ports),
            forwards=Forwards(
                **dict.fromkeys(("general", "vector", "to_vector", "to_general", "partial", "partial_vector"), forward),
                renamed=None,
                renamed_bytes=1,
            ),
        ),
        by_port=PortSchedulers(schedulers=own, queued=(), queue_entries=0),
        flows=data_flow_figures(parameters),
    )


def pipeline_core(parameters: Parameters, front: FrontEndParameters) -> PipelineCore | None:
    """The pipeline of a core with this front end; None where nothing is known of it."""
    figures, loads = parameters.pipeline, parameters.loads
    if not isinstance(figures, PipelineParameters):
        return None
    pointer = parameters.load_latency - (loads.pointer_latency or 0.0)
    delivery = Delivery(
        **_same(figures.delivery, Delivery),
        **_same(front, Delivery),
        idq=front.idq_uops,
        dsb_ends=front.dsb_width > parameters.issue_width,
    )
    memory = MemoryPipes(
        load_latency=round(parameters.load_latency),
        forward_latency=round(parameters.load_latency),
        load_ports=_sets(figures.memory.load_ports),
        store_data_ports=_sets(figures.memory.store_data_ports),
        store_address_ports=_sets(figures.memory.store_address_ports),
        forward_address=figures.memory.forward_address,
        forward_by_table=parameters.store_forward_latency == 0,
        blocked_load=figures.memory.blocked_load,
        pointer_saving=round(pointer) if loads.pointer_chasing else 0,
        pointer_reach=loads.pointer_reach,
        halved_bytes=loads.halved_bytes,
        bank_bytes=loads.bank_bytes,
        placed=bool(loads.bank_bytes or loads.paired_stores),
    )
    same = _same(figures, PipelineCore)
    same |= {"delivery": delivery, "memory": memory}
    same["unlaminated_slots"] = figures.unlaminated_slots or ANY_NUMBER
    same["unlaminated_first"] = figures.unlaminated_first or ANY_NUMBER
    return PipelineCore(
        **same,
        ports=execution_ports(parameters.ports),
        issue_width=parameters.issue_width,
        synchronise_latency=round(parameters.registers.synchronisation or 0.0),
        flows=data_flow_figures(parameters),
    )


def _same(given: Any, wanted: Any) -> dict[str, Any]:
    """By name, the values that what is made takes as they are given."""
    names = wanted._fields if hasattr(wanted, "_fields") else wanted.__slots__
    return {name: getattr(given, name) for name in names if hasattr(given, name)}


def _sets(groups: tuple[tuple[str, ...], ...]) -> tuple[frozenset[str], ...]:
    """Groups of ports in any order."""
    return tuple(map(frozenset, groups))
