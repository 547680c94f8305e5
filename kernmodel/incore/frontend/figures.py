"""The front-end parameters of a core, from the figures of its parameter file."""

from __future__ import annotations

from typing import Any, TypeVar

from kernmodel.errors import InstructionTableError
from kernmodel.incore.frontend.model import FrontEndParameters, OpCacheParameters
from kernmodel.incore.model import Parameters

_Figure = TypeVar("_Figure", int, bool)
_MARK = "decoders"
_OP_CACHE_MARK = "decoded instructions per cycle"
_TODO = "add the figure with its source; docs/front-end.md explains the keys"


def front_end_parameters(parameters: Parameters) -> FrontEndParameters | None:
    """The front end that the parameter file describes; None if it describes none (no figure `decoders`).

    Raises:
        InstructionTableError: a figure is missing or of the wrong kind; names the key.
    """
    if _MARK not in parameters.extra:
        return None
    return FrontEndParameters(
        issue_width=parameters.issue_width,
        predecode_width=_figure(parameters, "predecode width", int),
        predecode_bytes=_figure(parameters, "predecode block bytes", int),
        prefix_cycles=_figure(parameters, "length-changing prefix cycles", int),
        decoders=_figure(parameters, _MARK, int),
        complex_uops=_figure(parameters, "complex decoder µops", int),
        decoded_uops=_figure(parameters, "decoded µops per cycle", int),
        fusible_last=_figure(parameters, "macro-fusible may be decoded last", bool),
        pop_rsp_complex=_figure(parameters, "pop rsp needs complex decoder", bool),
        pop_rsp_ends_group=_figure(parameters, "pop rsp ends decode group", bool),
        fusion_line_bytes=_figure(parameters, "macro-fusion line bytes", int),
        dsb_width=_figure(parameters, "DSB width", int),
        dsb_bytes=_figure(parameters, "DSB block bytes", int),
        dsb_line_bytes=_figure(parameters, "DSB block bytes", int)
        * (2 if _figure(parameters, "DSB block needs both halves", bool) else 1),
        jcc_bytes=_figure(parameters, "JCC erratum block bytes", int)
        if _figure(parameters, "JCC erratum", bool)
        else None,
        idq_uops=_figure(parameters, "IDQ entries", int),
        lsd=_figure(parameters, "LSD", bool),
        lsd_copies=_copies(parameters, "LSD unroll"),
    )


def op_cache_parameters(parameters: Parameters) -> OpCacheParameters | None:
    """The front end of a Zen core that the parameter file describes.

    None if it describes none (no figure `decoded instructions per cycle`), or one of the other kind.

    Raises:
        InstructionTableError: a figure is missing or of the wrong kind; names the key.
    """
    if _OP_CACHE_MARK not in parameters.extra or _MARK in parameters.extra:
        return None
    return OpCacheParameters(
        issue_width=parameters.issue_width,
        issue_instructions=_if_known(parameters, "issued instructions per cycle"),
        fetch_bytes=_if_known(parameters, "fetched bytes per cycle"),
        decoders=_figure(parameters, _OP_CACHE_MARK, int),
        op_cache_entries=_figure(parameters, "op cache entries", int),
        op_cache_width=_if_known(parameters, "op cache width"),
        op_cache_of_macro_ops=_figure(parameters, "op cache holds macro-ops", bool),
    )


def _if_known(parameters: Parameters, key: str) -> int | None:
    return _figure(parameters, key, int) if key in parameters.extra else None


def _figure(parameters: Parameters, key: str, kind: type[_Figure]) -> _Figure:
    value = parameters.extra.get(key)
    if type(value) is not kind or (kind is int and value <= 0):
        what = f"figure {key!r} " + ("is missing" if value is None else f"is {value!r}")
        raise InstructionTableError(what, where=parameters.name, todo=_TODO)
    return value


def _copies(parameters: Parameters, key: str) -> dict[int, int]:
    value: Any = parameters.extra.get(key)
    if not isinstance(value, dict) or not all(type(n) is int and n > 0 for pair in value.items() for n in pair):
        raise InstructionTableError(f"figure {key!r} maps no µops to copies", where=parameters.name, todo=_TODO)
    return dict(value)
