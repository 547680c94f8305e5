"""The front end of a core, by its kind."""

from __future__ import annotations

from kernmodel.incore.tables.core_parameters import FrontEndParameters, OpCacheParameters, Parameters


def front_end_parameters(parameters: Parameters) -> FrontEndParameters | None:
    """The front end of a core of the kind `intel-uop-cache`, None for others."""
    return parameters.front_end if isinstance(parameters.front_end, FrontEndParameters) else None


def op_cache_parameters(parameters: Parameters) -> OpCacheParameters | None:
    """The front end of a core of the kind `zen-op-cache`, None for others."""
    return parameters.front_end if isinstance(parameters.front_end, OpCacheParameters) else None
