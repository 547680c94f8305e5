"""Parameters with some figures changed, by way of a parameter file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from kernmodel.incore.model import Parameters
from kernmodel.incore.tables.parameters import parameter_text, read_parameters

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def with_figures(parameters: Parameters, figures: Mapping[str, object], **keys: object) -> Parameters:
    """The parameters with these figures (None: without it) and other keys of the file.

    Raises:
        InstructionTableError: such a file is refused.
    """
    content = yaml.load(parameter_text(parameters, parameters.name, "X.txt", parameters.ports), Loader=_Loader) | keys
    for key, value in figures.items():
        content["figures"].pop(key, None)
        if value is not None:
            content["figures"][key] = {"value": value, "source": "a test"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.yml"
        path.write_text(yaml.dump(content, Dumper=_Dumper, allow_unicode=True), encoding="utf-8")
        return replace(read_parameters(path), table=parameters.table, aliases=parameters.aliases)
