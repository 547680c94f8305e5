"""A sweep gives at every point what the point gives alone, also where a size decides what the source says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.errors import SourceError, UsageError
from kernmodel.studies.predict.ecm import predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.predict.traffic import predict_traffic_sweep

STRIDED = """\
#define N 4000000
#define S 1
double a[N], b[N];
for (int i = 0; i < N; i += S) a[i] = 2.0 * b[i];
"""
TILED = """\
#define N 2000
#define T 100
#define MIN(x, y) ((x) < (y) ? (x) : (y))
double a[N][N], b[N][N];
for (int jj = 0; jj < N; jj += T)
    for (int i = 0; i < N; ++i)
        for (int j = jj; j < MIN(jj + T, N); ++j)
            a[i][j] = b[j][i];
"""
CONDITIONAL = """\
#define N 4000000
double a[N], b[N];
#if MODE == 1  /* N */
for (int i = 0; i < N; ++i) a[i] = b[i];
#else
for (int i = 0; i < N; ++i) a[i] = 2.0 * a[i] * b[i] + 1.0;
#endif
"""
SWEEPS = [
    (STRIDED, [{"S": 1}, {"S": 4}, {"S": 2}], "S"),
    (TILED, [{"T": t, "N": n} for n in (1000, 2000) for t in (40, 10)], "T"),
    (CONDITIONAL, [{"MODE": 1}, {"MODE": 2}], "MODE"),
    (STRIDED, [{"N": 10_000}, {"N": 1000}], "N"),
]
needs_compiler = pytest.mark.needs("gcc|clang")


@pytest.fixture
def request_of(tmp_path: Path):
    def request(text: str) -> KernelRequest:
        path = tmp_path / "k.c"
        path.write_text(text)
        return KernelRequest(str(path), "clx", {})

    return request


@pytest.mark.parametrize(("text", "points", "name"), SWEEPS)
def test_traffic(request_of, text, points, name) -> None:
    request = request_of(text)
    answers = list(predict_traffic_sweep(request, points))
    alone = [next(predict_traffic_sweep(request, [point])) for point in points]
    assert [answer.traffic for answer in answers] == [answer.traffic for answer in alone]
    assert [answer.sizes[name] for answer in answers] == [point[name] for point in points]


@needs_compiler
def test_ecm_compiles_anew_for_every_step(request_of) -> None:
    request, code = request_of(STRIDED), CodeRequest()
    points = [{"S": s, "N": n} for n in (1_000_000, 4_000_000) for s in (1, 4)]
    answers = list(predict_ecm_sweep(request, code, points, (1, 2)))
    alone = [next(predict_ecm_sweep(request, code, [{**point, "N": 4_000_000}])) for point in points]
    assert [answer.loop.instructions for answer in answers] == [answer.loop.instructions for answer in alone]
    assert [(answer.sizes["S"], answer.sizes["N"]) for answer in answers] == [(p["S"], p["N"]) for p in points]
    assert [answer.prediction.work.iterations_per_unit for answer in answers] == [8, 2, 8, 2]
    assert "all points with S=4 share its code, with rows" in answers[1].notes[0].text


@needs_compiler
def test_ecm_compiles_once_for_sizes(request_of) -> None:
    answers = list(predict_ecm_sweep(request_of(STRIDED), CodeRequest(), [{"N": 10_000}, {"N": 20_000}]))
    assert answers[0].loop is answers[1].loop
    assert "compiled once, with S=1, N=20000; all points share" in answers[0].notes[0].text


def test_an_unknown_name_is_refused_before_anything_is_predicted(request_of) -> None:
    with pytest.raises(SourceError, match="no macro or parameter Q"):
        next(predict_traffic_sweep(request_of(STRIDED), [{"Q": 1}, {"Q": 2}]))


def test_cores_that_the_machine_does_not_have(request_of) -> None:
    with pytest.raises(UsageError, match="41 cores, but clx has 40"):
        next(predict_ecm_sweep(request_of(STRIDED), CodeRequest(), [{}], (1, 41)))
