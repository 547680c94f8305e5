"""Charts of ECM predictions of which only some call functions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.models.calls import CalledFunction, CallWork
from kernmodel.report.html.ecm import over_sizes_chart, times_chart
from kernmodel.studies.predict.request import EcmAnswer


@pytest.mark.parametrize("first", [True, False])
def test_functions_that_one_of_several_predictions_calls_are_shown(ecm_answer: EcmAnswer, first: bool) -> None:
    """A compiler may call memset at one size and not at another."""
    calling = replace(ecm_answer.prediction, calls=CallWork((CalledFunction("memset", 0.5, 0, 40.0, 40.0, 40.0),)))
    other = replace(ecm_answer, prediction=calling, sizes={name: 2 * size for name, size in ecm_answer.sizes.items()})
    answers = (other, ecm_answer) if first else (ecm_answer, other)
    lines = {one.name: [y for _, y in one.points] for one in over_sizes_chart(answers, next(iter(other.sizes))).series}
    assert sorted(lines["T_call"]) == [0.0, 20.0]
    bars = [bar for frame in times_chart(answers).frames for bar in frame]
    assert sum("T_call" in segment.tip for bar in bars for segment in bar.segments) == 1
