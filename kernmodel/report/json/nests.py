"""`kernmodel.ecm-nests/1` and `kernmodel.traffic-nests/1`: all nests of a function or file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kernmodel.errors import KernmodelError
from kernmodel.report.json import document as doc
from kernmodel.report.json.ecm import ecm_body
from kernmodel.report.json.traffic import traffic_body
from kernmodel.report.text.nests import APART, bytes_of, seconds_of
from kernmodel.studies.predict.whole import sums_by_function

if TYPE_CHECKING:
    from kernmodel.report.json.document import Json
    from kernmodel.studies.predict.request import EcmAnswer, TrafficAnswer
    from kernmodel.studies.predict.whole import NestAnswer


def ecm_nests_document(nests: Sequence[NestAnswer[EcmAnswer]], unit: str) -> Json:
    """The nests with their answers, and the seconds of one execution of all nests of each function."""

    def body(answer: EcmAnswer) -> Json:
        from kernmodel.units import meaningful_units

        known = unit in meaningful_units(answer.prediction.work)
        return ecm_body(answer, unit if known else "cy/CL")

    functions = _functions(nests, {"seconds": sums_by_function(nests, seconds_of)})
    listed = [_nest(one, body, seconds=seconds_of(one), calls_left_out=_lacks(one)) for one in nests]
    return doc.document("kernmodel.ecm-nests/1", nests=listed, functions=functions, notes=[APART])


def _lacks(one: NestAnswer[EcmAnswer]) -> bool | None:
    return None if isinstance(one.answer, KernmodelError) else one.answer.prediction.lacks_calls


def traffic_nests_document(nests: Sequence[NestAnswer[TrafficAnswer]]) -> Json:
    """The nests with their answers, and the bytes that one execution of all nests of each function moves by path."""
    first = next(one.answer for one in nests if not isinstance(one.answer, KernmodelError))
    paths = [path.path for path in first.traffic.paths]
    sums = {name: sums_by_function(nests, partial(bytes_of, path=number)) for number, name in enumerate(paths)}
    listed = []
    for one in nests:
        moved = {name: bytes_of(one, number) for number, name in enumerate(paths)}
        listed.append(_nest(one, traffic_body, bytes=moved))
    return doc.document("kernmodel.traffic-nests/1", nests=listed, functions=_functions(nests, sums), notes=[APART])


def _nest(one: NestAnswer[Any], body: Callable[[Any], Json], **amounts: object) -> Json:
    failed = isinstance(one.answer, KernmodelError)
    return doc.record(
        doc.pick(one.found, "function", "number", "location"),
        variables=list(one.found.variables),
        iterations=one.iterations,
        **amounts,
        answer=None if failed else body(one.answer),
        reason=str(one.answer) if failed else None,
    )


def _functions(nests: Sequence[NestAnswer[Any]], sums: dict[str, dict[str, float]]) -> list[Json]:
    names = dict.fromkeys(one.found.function for one in nests)
    own = {name: [one for one in nests if one.found.function == name] for name in names}
    return [
        doc.record(
            function=name,
            nests=len(own[name]),
            modelled=sum(not isinstance(one.answer, KernmodelError) for one in own[name]),
            **{what: found.get(name) for what, found in sums.items()},
        )
        for name in names
    ]
