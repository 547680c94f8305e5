"""A core and a front end of which tests of the simulated pipeline start."""

from __future__ import annotations

from kernmodel.incore.engine.model import Delivery, Fetch, MemoryPipes, PipelineCore

CORE = PipelineCore(
    ports=("0", "1", "2", "3", "4", "5", "6", "7"),
    issue_width=4,
    retire_width=4,
    reorder_buffer=224,
    scheduler=97,
    dispatch_delay=5,
    delivery=Delivery(
        idq=64,
        dsb_width=6,
        dsb_lines=2,
        dsb_ends=True,
        decoders=4,
        iq=25,
        predecode_width=5,
        fusible_last=True,
        microcode_switch=2,
        microcode_exit=1,
        microcode_width=4,
        predecode_delay=3,
        dsb_line_uops=6,
        dsb_block_lines=3,
    ),
    memory=MemoryPipes(
        load_latency=5,
        forward_latency=5,
        forward_address=4,
        blocked_load=13,
        pointer_saving=1,
        pointer_reach=2048,
        halved_bytes=None,
        load_ports=(frozenset("23"),),
        store_address_ports=(frozenset("237"),),
        store_data_ports=(frozenset("4"),),
    ),
    counter_gap=3,
    alternating=(("2", "3"),),
    synchronise_ports=("0", "1", "5", "6"),
    synchronise_latency=1,
)
IDEAL = Fetch("ideal", (), 1, 0, True, ())
