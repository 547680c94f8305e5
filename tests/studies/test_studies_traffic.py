"""Which way the traffic is found, and what is said about it. The simulation itself is replaced by a stand-in."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernmodel.errors import UnsupportedKernelError, UsageError
from kernmodel.source.load import load_kernel
from kernmodel.studies.predict.ecm import predict_ecm, predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, TrafficAnswer
from kernmodel.studies.predict.traffic import predict_traffic_sweep
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.options import Distribution, SimulationOptions

COPY = "#define N 10000000\ndouble a[N], b[N];\nfor (int i = 0; i < N; ++i) a[i] = b[i];\n"
TRANSPOSE = """\
#define N 1000
double a[N][N], b[N][N];
for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[j][i] + a[i][j];
"""
GATHER = "#define N 1000\ndouble y[N], x[N]; int p[N];\nfor (int i = 0; i < N; ++i) y[i] = x[p[i]];\n"
COPY_LOOP = """\
.L3:
        vmovupd (%rsi,%rax), %ymm0
        {store} %ymm0, (%rdi,%rax)
        addq $32, %rax
        cmpq %rdx, %rax
        jne .L3
"""


@pytest.fixture
def request_of(tmp_path: Path):
    def request(text: str, **options) -> KernelRequest:
        path = tmp_path / "k.c"
        path.write_text(text)
        return KernelRequest(str(path), "clx", {}, **options)

    return request


@pytest.fixture
def simulated(monkeypatch, tmp_path) -> list[dict]:
    """Replace the simulation by layer conditions of a copy, and record what it was asked for."""
    plain = tmp_path / "plain.c"
    plain.write_text(COPY)
    calls: list[dict] = []

    def stand_in(nest, machine, sizes, *, cores=1, stores="regular", options=None):
        calls.append({"cores": cores, "stores": stores, "options": options, "sizes": dict(sizes)})
        traffic = layer_conditions(load_kernel(str(plain), {}), machine, {"N": 10**7}, cores=cores)
        return dataclasses.replace(traffic, method="simulation", conditions=(), stores=stores, sizes=dict(sizes))

    monkeypatch.setattr("kernmodel.traffic.simulation.simulate.simulate", stand_in)
    return calls


def predict_traffic(kernel: KernelRequest) -> TrafficAnswer:
    return next(predict_traffic_sweep(kernel, (kernel.sizes,)))


def why(answer) -> str:
    return next((note.text for note in answer.notes if note.code == "simulated"), "")


def test_auto_takes_layer_conditions_where_they_apply(request_of, simulated):
    answer = predict_traffic(request_of(COPY))
    assert (answer.traffic.method, simulated, why(answer)) == ("layer conditions", [], "")


def test_auto_simulates_where_layer_conditions_leave_out_reuse(request_of):
    """Rows find what columns have brought, and the other way round: layer conditions know only of either."""
    text = "#define N 100\ndouble a[N][N];\n"
    text += "for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) a[j][i] = a[j][i] + a[i][j];\n"
    answer = predict_traffic(request_of(text))
    assert answer.traffic.method == "simulation"
    note = next(note for note in answer.notes if note.code == "index-patterns")
    assert ("array a is indexed in 2 ways" in note.text, note.kind) == (True, "assumption")
    assert answer.symbolic == predict_traffic(request_of(text, cache="lc")).traffic
    assert {each.reason_code for each in answer.differences} == {"index-patterns"}


def test_auto_keeps_layer_conditions_that_a_simulation_confirms(request_of):
    """The two index patterns of a small array: all of it stays in L2, and L1 sees rows and columns apart."""
    text = "#define N 20\ndouble a[N][N], b[N][N];\n"
    text += "for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) b[j][i] = a[j][i] + a[i][j];\n"
    answer = predict_traffic(request_of(text))
    assert (answer.traffic.method, answer.symbolic, answer.differences) == ("layer conditions", None, ())
    assert "several-index-patterns" not in {note.code for note in answer.notes}


def test_a_safety_factor_is_taken_at_its_word(request_of):
    answer = predict_traffic(request_of(TRANSPOSE, safety=0.5))
    assert answer.traffic.method == "layer conditions"
    assert "several-index-patterns" in {note.code for note in answer.notes}


def test_auto_simulates_what_is_not_affine(request_of, simulated):
    answer = predict_traffic(request_of(GATHER))
    assert answer.traffic.method == "simulation"
    assert "layer conditions do not apply: " in why(answer)
    with pytest.raises(UnsupportedKernelError):
        predict_traffic(request_of(GATHER, cache="lc"))


def test_auto_simulates_where_an_option_of_the_simulation_is_given(request_of, simulated):
    answer = predict_traffic(request_of(COPY, simulation=SimulationOptions(policy="FIFO")))
    assert why(answer).endswith("options of the simulation were given")
    assert simulated[0]["options"].policy == "FIFO"


def test_sim_simulates_without_giving_reasons(request_of, simulated):
    answer = predict_traffic(request_of(COPY, cache="sim"))
    assert (answer.traffic.method, why(answer)) == ("simulation", "")
    assert simulated[0]["options"] == SimulationOptions()


def test_a_safety_factor_is_not_for_the_simulation(request_of, simulated):
    answer = predict_traffic(request_of(COPY, cache="sim", safety=0.5))
    assert "safety-unused" in {note.code for note in answer.notes}


def test_both_gives_both(request_of):
    answer = predict_traffic(request_of(COPY, cache="both"))
    assert (answer.symbolic.method, answer.traffic.method) == ("layer conditions", "simulation")
    assert answer.symbolic == predict_traffic(request_of(COPY, cache="lc")).traffic
    assert {note.code for note in answer.symbolic.notes} <= {note.code for note in answer.notes}


def test_both_without_layer_conditions_says_so(request_of, simulated):
    uniform = {"p": Distribution("uniform", "uniform")}
    answer = predict_traffic(request_of(GATHER, cache="both", simulation=SimulationOptions(indirect=uniform)))
    assert (answer.symbolic, answer.differences) == (None, ())
    assert "no-layer-conditions" in {note.code for note in answer.notes}


def test_every_core_count_at_every_point(request_of):
    points = [{"N": 1000}, {"N": 2000}]
    answers = list(predict_traffic_sweep(request_of(COPY), points, (1, 4)))
    assert [(a.sizes["N"], a.traffic.cores) for a in answers] == [(1000, 1), (1000, 4), (2000, 1), (2000, 4)]


def test_cores_beyond_the_machine_are_refused_before_anything_is_found(request_of, simulated):
    with pytest.raises(UsageError, match="41 cores, but clx has 40"):
        next(predict_traffic_sweep(request_of(COPY, cache="sim"), [{}], (1, 41)))
    assert simulated == []


@pytest.fixture
def code_of(tmp_path: Path):
    def code(store: str) -> CodeRequest:
        path = tmp_path / "k.s"
        path.write_text(COPY_LOOP.format(store=store))
        return CodeRequest(asm=str(path))

    return code


@pytest.mark.parametrize(("store", "given", "stores"), [
    ("vmovupd", None, "regular"),
    ("vmovntpd", None, "nt"),
    ("vmovntpd", "regular", "regular"),
    ("vmovupd", "nt", "nt"),
])  # fmt: skip
def test_ecm_takes_the_stores_of_the_code_unless_told(request_of, code_of, store, given, stores):
    answer = predict_ecm(request_of(COPY, stores=given), code_of(store))
    assert answer.traffic.stores == stores
    assert ("streaming-loop" in {note.code for note in answer.notes}) == (store == "vmovntpd" and given is None)
    assert answer.traffic.path("L3Mem").loads == (1 if stores == "nt" else 2)


def test_streaming_stores_hold_at_every_point(request_of, code_of):
    points = [{"N": 10**7}, {"N": 2 * 10**7}]
    answers = list(predict_ecm_sweep(request_of(COPY), code_of("vmovntpd"), points, (1, 10)))
    assert [answer.traffic.stores for answer in answers] == ["nt", "nt"]
    assert [answer.traffic.path("L3Mem").loads for answer in answers] == [1, 1]


def test_every_core_count_is_simulated_once(request_of, code_of, simulated):
    answer = predict_ecm(request_of(COPY, cache="sim"), code_of("vmovupd"), (1, 2, 4, 12))
    assert [point.cores for point in answer.scaling] == [1, 2, 4, 12]
    # 12 cores fill one domain of 10 and leave 2 in the next, of which a twelfth of the data nearly fits into half an L3
    assert sorted(call["cores"] for call in simulated) == [1, 2, 2, 4, 10]
