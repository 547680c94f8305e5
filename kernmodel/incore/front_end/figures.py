"""The front end of a core, from the figures of its parameter file."""

from __future__ import annotations

from kernmodel.incore.front_end.model import FrontEndParameters, OpCacheParameters
from kernmodel.incore.tables.figures import OpCacheFigures, Parameters, UopCacheFigures


def front_end_parameters(parameters: Parameters) -> FrontEndParameters | None:
    """The front end of a core of the kind `intel-uop-cache`, None for others."""
    figures = parameters.front_end
    if not isinstance(figures, UopCacheFigures):
        return None
    return FrontEndParameters(
        issue_width=parameters.issue_width,
        predecode_width=figures.predecode_width,
        predecode_bytes=figures.predecode_bytes,
        prefix_cycles=figures.prefix_cycles,
        decoders=figures.decoders,
        complex_uops=figures.complex_uops,
        decoded_uops=figures.decoded_uops,
        fusible_last=figures.fusible_last,
        pop_rsp_complex=figures.pop_rsp_complex,
        pop_rsp_ends_group=figures.pop_rsp_ends_group,
        fusion_line_bytes=figures.fusion_line_bytes,
        dsb_width=figures.dsb_width,
        dsb_bytes=figures.dsb_bytes,
        dsb_line_bytes=figures.dsb_bytes * (2 if figures.dsb_both_halves else 1),
        jcc_bytes=figures.jcc_bytes if figures.jcc_erratum else None,
        idq_uops=figures.idq_entries,
        lsd=figures.lsd,
        lsd_copies=figures.lsd_copies,
    )


def op_cache_parameters(parameters: Parameters) -> OpCacheParameters | None:
    """The front end of a core of the kind `zen-op-cache`, None for others."""
    figures = parameters.front_end
    if not isinstance(figures, OpCacheFigures):
        return None
    return OpCacheParameters(
        issue_width=parameters.issue_width,
        issue_instructions=figures.issue_instructions,
        fetch_bytes=figures.fetch_bytes,
        decoders=figures.decoders,
        op_cache_entries=figures.entries,
        op_cache_width=figures.width,
        op_cache_of_macro_ops=figures.of_macro_ops,
    )
