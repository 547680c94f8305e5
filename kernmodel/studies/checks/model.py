"""What a file of checks asserts, and what came of it. Light: the stages are not loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import Location
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import CodeRequest, KernelRequest
    from kernmodel.uncertainty import Interval

Comparison = Literal["<=", "<", ">=", ">"]
Fact = Literal["vectorised", "not vectorised", "no unknown instructions", "no warnings"]
FACTS: tuple[Fact, ...] = ("vectorised", "not vectorised", "no unknown instructions", "no warnings")
Outcome = Literal["holds", "open", "fails"]
"""What becomes of an assertion; "open": the number has an interval, and it holds in a part of it only."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit for a figure of the prediction.

    Attributes:
        figure: its name ("ecm", "ecm.L2", "T_OL", "traffic.L1L2", "saturation").
        limit: in `unit`, which is one of `units.TIME_UNITS` for times, "B/It", "B/CL", "cores" or "" else.
    """

    figure: str
    comparison: Comparison
    limit: float
    unit: str


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion: `text` as written, its place, and what it means."""

    text: str
    where: Location
    meaning: Bound | Fact


@dataclass(frozen=True, slots=True)
class Check:
    """One prediction, and what is asserted of it. `where` is its place in the file."""

    name: str
    kernel: KernelRequest
    code: CodeRequest
    assertions: tuple[Assertion, ...]
    where: Location


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an assertion.

    Attributes:
        value: the figure in the unit of the bound, None for facts; interval: where it is not known exactly.
        found: what was found, in a few words.
    """

    assertion: Assertion
    outcome: Outcome
    found: str
    value: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of a check.

    Attributes:
        verdicts: of its assertions, in order; empty where there is no prediction.
        error: why there is no prediction, None if there is one.
        figures: cycles per unit of work by name ("ecm.L2", "T_OL"), bytes per unit of work ("traffic.L1L2").
        inputs: what the prediction was made of, by name ("kernel", "machine", "compiler", "code", "kernmodel"), as
            texts that are equal where nothing changed.
        place: file and line of the loop, None where there is no prediction.
    """

    check: Check
    verdicts: tuple[Verdict, ...]
    error: str | None
    figures: Mapping[str, float]
    inputs: Mapping[str, str]
    place: Location | None

    @property
    def outcome(self) -> Outcome:
        """The worst of the assertions'; "fails" without a prediction."""
        outcomes = {verdict.outcome for verdict in self.verdicts}
        if self.error is not None or "fails" in outcomes:
            return "fails"
        return "open" if "open" in outcomes else "holds"


@dataclass(frozen=True, slots=True)
class Changed:
    """A figure of a check that an earlier run found otherwise.

    Attributes:
        before, after: in the unit of `CheckResult.figures`; None where one of the runs has no such figure.
        inputs: names of the inputs that are others than then.
    """

    check: str
    figure: str
    before: float | None
    after: float | None
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChecksAnswer:
    """The answer of `kernmodel check`.

    Attributes:
        file: of the checks; against: of the earlier run, None without.
        changes: from the earlier run to this one.
    """

    file: str
    results: tuple[CheckResult, ...]
    against: str | None = None
    changes: tuple[Changed, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether no assertion fails."""
        return all(result.outcome != "fails" for result in self.results)
