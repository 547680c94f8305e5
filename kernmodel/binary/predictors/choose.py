"""Predictors by the names that users give them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from kernmodel.binary.predictors.own import OWN, OWN_ECM, OwnPredictor
from kernmodel.binary.predictors.protocol import Predictor
from kernmodel.errors import UsageError

NAMES = (OWN, OWN_ECM, "llvm-mca", "osaca", "uica")


def names_of(text: str) -> tuple[str, ...]:
    """The names in a list separated by commas, each once.

    Raises:
        UsageError: one is neither the name of a predictor nor that of a CSV file.
    """
    given = [name.strip() for name in text.split(",")]
    for name in given:
        if name not in NAMES and not name.endswith(".csv"):
            near = get_close_matches(name, NAMES, 1)
            todo = (
                f"did you mean {near[0]}?" if near else f"choose of {', '.join(NAMES)}, or a file of predictions (.csv)"
            )
            raise UsageError(f"there is no predictor {name!r}", where="--predictors", todo=todo)
    return tuple(dict.fromkeys(given))


def predictor_named(name: str, microarchitecture: str, isa: str, jobs: int | None = None) -> Predictor:
    """A predictor for one core.

    Raises:
        ToolError: it is not installed; InputError: a file of predictions that cannot be read.
    """
    if name == OWN:
        return OwnPredictor(microarchitecture)
    if name == "llvm-mca":
        from kernmodel.binary.predictors.llvm_mca import LlvmMca

        return LlvmMca(microarchitecture, isa, jobs)
    if name == "osaca":
        from kernmodel.binary.predictors.osaca import Osaca

        return Osaca(microarchitecture, isa, jobs)
    if name == "uica":
        from kernmodel.binary.predictors.uica import Uica

        return Uica(microarchitecture, jobs)
    from kernmodel.binary.predictors.table import PredictionTable

    return PredictionTable(name)


def lifted_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of predictors other than this house's own."""
    return tuple(name for name in names if name not in (OWN, OWN_ECM))
