"""Floating-point adders whose result is there sooner for an adder than for other units, where a core has such.

The table gives the shortest latency of an addition: from adder to adder, in one chain. A parameter file may say that
others wait longer: any other unit, adders that serve several chains, adders in a block with 512-bit registers.
"""

from __future__ import annotations

from kernmodel.incore.tables.core_parameters import AdderParameters, Parameters


def adder_figures(parameters: Parameters) -> AdderParameters | None:
    """The figures of a core, None if it has none of them."""
    return None if parameters.adders == AdderParameters() else parameters.adders
