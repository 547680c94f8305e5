"""Functions and files with several loop nests: each nest as if it were asked for alone, and their sum."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import KernmodelError
from kernmodel.report.text.nests import bytes_of, seconds_of

needs_compiler = pytest.mark.needs("gcc|clang")
SOLVER = """
#define N 300
double a[N][N], b[N][N], r[N];
void sweep(void)
{
    for (int j = 1; j < N - 1; ++j)
        for (int i = 1; i < N - 1; ++i)
            b[j][i] = 0.25 * (a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i]);
    for (int j = 1; j < N - 1; ++j)
        for (int i = 1; i < N - 1; ++i)
            a[j][i] = b[j][i];
}
void norms(void)
{
    for (int j = 0; j < N; ++j) {
        double sum = 0.0;
        for (int i = 0; i < N; ++i)
            sum += a[j][i] * a[j][i];
        r[j] = sum;
    }
    for (int j = 0; j < N; ++j)
        r[j] = a[j * j][0];
}
"""


@pytest.fixture
def solver(tmp_path: Path) -> Path:
    path = tmp_path / "solver.c"
    path.write_text(SOLVER)
    return path


@needs_compiler
def test_every_nest_is_predicted_as_if_it_were_asked_for_alone(solver: Path) -> None:
    found = tuple(iter(km.ecm_nests(solver, "clx", N=200)))
    assert [(one.found.function, one.found.number) for one in found] == [
        *(("sweep", 1), ("sweep", 2)),
        *(("norms", 1), ("norms", 2)),
    ]
    # the last one is refused: its index is not affine
    assert isinstance(found[-1].answer, KernmodelError) and "affine" in str(found[-1].answer)
    for one in found[:2]:
        alone = km.ecm(km.Nest(solver, one.found.number, one.found.function), "clx", N=200).answer
        assert not isinstance(one.answer, KernmodelError)
        assert one.answer.prediction == alone.prediction
        assert one.answer.loop.label == alone.loop.label
    # 198 x 198 points, four FLOP each
    first = found[0].answer
    assert not isinstance(first, KernmodelError)
    assert found[0].iterations == 198**2 and first.prediction.work.flops_per_iteration == 4


@needs_compiler
def test_a_function_takes_the_sum_of_its_nests(solver: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ecm", "-m", "clx", str(solver), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "kernmodel.ecm-nests/1"
    seconds = [one["seconds"] for one in document["nests"]]
    sums = {one["function"]: one for one in document["functions"]}
    assert sums["sweep"]["seconds"] == pytest.approx(seconds[0] + seconds[1])
    assert (sums["norms"]["nests"], sums["norms"]["modelled"], sums["norms"]["seconds"]) == (2, 1, seconds[2])
    assert main(["ecm", "-m", "clx", str(solver), "--function", "sweep"]) == 0
    text = capsys.readouterr().out
    assert "sum of 2" in text and "norms" not in text


def test_traffic_of_nests_adds_up(solver: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nests = tuple(iter(km.traffic_nests(solver, "clx", cache="sim", N=1500)))
    copy = nests[1]
    assert not isinstance(copy.answer, KernmodelError)
    # of 1498 x 1498 points, one array is read, one written with its write-allocate: 24 B a point between L1 and L2
    moved = bytes_of(copy, 0)
    assert moved == pytest.approx(24 * 1498**2, rel=0.02)
    assert main(["traffic", "-m", "clx", str(solver), "--cache", "sim", "-D", "N=1500"]) == 0
    assert "sum of 1 of 2" in capsys.readouterr().out


def test_a_file_of_which_nothing_is_modelled_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.c"
    path.write_text("double a[9999]; void f(int n){ for(int i=0;i<n;++i) a[i*i]=0; for(int i=0;i<n;++i) a[i*i]=1; }")
    assert main(["traffic", "-m", "clx", str(path), "-D", "n=9"]) == 1
    assert main(["ecm", "-m", "clx", str(path), "-D", "n=9"]) == 1


def test_seconds_are_those_of_one_execution(solver: Path) -> None:
    pytest.importorskip("sympy")
    found = next(iter(km.ecm_nests(km.Nest(solver, function="sweep"), "clx"))) if shutil.which("gcc") else None
    if found is None:
        pytest.skip("no C compiler is installed")
    assert not isinstance(found.answer, KernmodelError)
    prediction = found.answer.prediction
    per_iteration = prediction.cycles / prediction.work.iterations_per_unit
    assert seconds_of(found) == pytest.approx(per_iteration * 298**2 / prediction.work.clock_hz)


CALLS = """#include <math.h>
#define N 2000
void f(double *restrict a, const double *restrict b)
{
    for (int i = 0; i < N; ++i) a[i] = exp(b[i]) * 2.0;
    for (int i = 0; i < N; ++i) a[i] += b[i];
}
"""


@needs_compiler
def test_times_without_those_of_calls_are_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "calls.c").write_text(CALLS)
    answers = km.ecm_nests(tmp_path / "calls.c", "clx")
    assert [one["calls_left_out"] for one in answers.json()["nests"]] == [True, False]
    assert str(answers).count(", calls left out") == 1


@needs_compiler
def test_a_chart_has_a_point_for_each_nest(solver: Path) -> None:
    answer = km.roofline_chart(solver, "clx").answer
    names = [one.subject.name for one in answer.kernels]
    assert names == ["sweep nest 1", "sweep nest 2", "norms nest 1"]
    assert any("norms nest 2 is left out of the chart" in note.text for note in answer.notes)


@needs_compiler
def test_the_time_of_functions_that_are_called_is_missing_and_said_to_be(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(
        "#include <math.h>\n#define N 1000\nvoid f(double *restrict a, const double *restrict b)\n{\n"
        "    for (int i = 0; i < N; ++i)\n        a[i] = tgamma(b[i]);\n"
        "    for (int i = 0; i < N; ++i)\n        a[i] += b[i];\n}\n"
    )
    first, second = tuple(iter(km.ecm_nests(file, "zen3")))
    assert not isinstance(first.answer, KernmodelError) and not isinstance(second.answer, KernmodelError)
    assert first.answer.prediction.unknown == ("T_call",) and first.answer.prediction.is_least("L1")
    assert not second.answer.prediction.is_lower_bound
    text = str(km.ecm_nests(file, "zen3"))
    sums = [line for line in text.splitlines() if "sum of 2" in line]
    assert sums and "≥" in sums[0]


@needs_compiler
def test_sizes_that_only_some_nests_have_are_given_for_all(tmp_path: Path) -> None:
    path = tmp_path / "tasks.c"
    path.write_text(
        "typedef struct { double *a, *b; int n; } task;\n"
        "void *run(void *p) { task *t = p; for (int i = 0; i < t->n; ++i) t->b[i] = 2 * t->a[i]; return 0; }\n"
        "void add(int m, double *x, double *y) { for (int i = 0; i < m; ++i) y[i] += x[i];"
        " for (int i = 0; i < m; ++i) x[i] += 1; }\n"
    )
    found = tuple(iter(km.ecm_nests(path, "clx", t_n=200, m=300)))
    assert not [one.answer for one in found if isinstance(one.answer, KernmodelError)]
    assert "not counted" not in " ".join(note.text for one in found for note in one.notes)
    charted = km.roofline_chart(str(path), machine="clx", model="hierarchical", t_n=200, m=300)
    assert "left out" not in charted.text() and "add nest 2" in charted.text()
    with pytest.raises(KernmodelError, match="no macro or parameter other"):
        tuple(iter(km.ecm_nests(path, "clx", t_n=200, m=300, other=1)))


def test_nests_of_one_function_are_not_divided():
    """What one finds of the others is known of whole nests alone, which a note says."""
    text = """void f(double *restrict a, double *restrict b) {
        for (int i = 0; i < N; ++i) a[i] = 1.0;
        for (int i = 0; i < N; ++i) b[i] = a[i]; }"""
    for one in km.traffic_nests(text, "bdw", cache="lc", cores=2, N=100_000):
        assert [note.code for note in one.notes if note.code in ("whole-data", "divided-loop")] == ["whole-data"]
