"""The engine gives at every point what the point gives alone, wherever it works, and does each distinct thing once."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.errors import InputError, KernmodelError, MachineError, SourceError, ToolError, UsageError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import StoreBehaviour
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.source.nest.tiling import tile
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.memo import Memo
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.sweep import dispatch as flow
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.executors import local_processes
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.simulate import simulate

pytestmark = pytest.mark.needs("gcc")

STRIDED = """\
#define N 4000000
#define S 1
double a[N], b[N];
for (int i = 0; i < N; i += S) a[i] = 2.0 * b[i];
"""
ASSEMBLY = """\
.L3:
    vmovupd (%rsi,%rax), %ymm0
    vmovupd %ymm0, (%rdi,%rax)
    addq $32, %rax
    cmpq %rdx, %rax
    jne .L3
"""
FIXED = """\
double a[1000], b[1000];
for (int i = 0; i < N; ++i) a[i] = b[i];
"""


def grid(*axes: Axis, kernel: str = "stencil", machine: str = "clx", sizes=None, **code) -> Grid:
    request = KernelRequest(kernel, machine, sizes or {})
    return Grid(Point(request, CodeRequest(**{"compiler": "gcc", **code})), axes)


def sizes(*values: int, name: str = "N") -> Axis:
    return Axis("size", name, values)


def numbers(point: Point, answer: EcmAnswer) -> tuple[object, ...]:
    """What does not say how often the compiler ran."""
    notes = tuple(note for note in answer.notes if note.code != "compiled-once")
    return answer.traffic, answer.prediction, answer.sizes, answer.scaling, notes


def bare(point: Point, answer: EcmAnswer) -> float:
    return answer.prediction.cycles


def compiled_at(point: Point, answer: EcmAnswer) -> str:
    return next((note.text for note in answer.notes if note.code == "compiled-once"), "")


def broken(point: Point, answer: EcmAnswer) -> float:
    raise ZeroDivisionError


@pytest.fixture
def counting(tmp_path: Path):
    """A compiler that counts how often it is run."""
    log = tmp_path / "runs"
    wrapper = tmp_path / "gcc"
    wrapper.write_text(f'#!/bin/sh\necho run >> "{log}"\nexec "{shutil.which("gcc")}" "$@"\n')
    wrapper.chmod(0o755)

    def runs() -> int:
        return len(log.read_text().splitlines()) if log.exists() else 0

    return str(wrapper), runs


@pytest.fixture(scope="module")
def workers():
    with local_processes(2) as executor:
        yield executor


# --- equal to single predictions


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["stencil", "matmul", "schoenauer"])
def test_as_single_predictions(kernel) -> None:
    own = sizes_of(load_kernel(kernel, {}), {})
    own = {name: min(value, 400) for name, value in own.items()} if kernel == "matmul" else own
    along = [Axis("size", name, (value // 2, value)) for name, value in list(own.items())[:1]]
    study = grid(
        Axis("machine", "", ("clx", "snb", "zen2")), *along, Axis("cores", "", (1, 4)), kernel=kernel, sizes=own
    )
    # one compilation is at the largest sizes, so that sizes in the code do not differ
    for outcome in evaluate(study, numbers, scaling_cores=(1, 3)):
        point = outcome.point
        at = replace(point, kernel=replace(point.kernel, sizes={along[0].name: along[0].values[1]}))
        assert outcome.view == numbers(point, Stages().answer(point, (1, 3), at=at))
        alone = predict_ecm(point.kernel, point.code, (1, 3))
        assert outcome.view[0] == alone.traffic
        assert outcome.view[1].transfers == alone.prediction.transfers
        assert outcome.view[1].cycles == pytest.approx(alone.prediction.cycles, rel=0.02)


def test_one_point_is_the_single_prediction() -> None:
    study = grid(sizes(3000))
    (outcome,) = evaluate(study, lambda _, answer: answer)
    alone = predict_ecm(study.point(0).kernel, study.point(0).code)
    assert outcome.view == alone


@pytest.mark.thorough
def test_stages_answer_as_predict_ecm_does() -> None:
    stages = Stages()
    for machine in ("clx", "snb"):
        for request in (KernelRequest("stencil", machine, {"N": n}, cores=c) for n in (500, 4000) for c in (1, 2)):
            code = CodeRequest(compiler="gcc")
            assert stages.answer(Point(request, code), (1, 2)) == predict_ecm(request, code, (1, 2))


CHANGES = ["L2.size=x2", "clock=3GHz", "memory.bandwidth=x0.5", "L2L3.width=x2", "core.overlapping_ports=[0, 1, 5]"]
points_of = st.builds(
    lambda kernel, machine, n, cores, changes, stores: Point(
        KernelRequest(kernel, machine, {"N": n}, cores=cores, stores=stores),
        CodeRequest(compiler="gcc", flags=("-O2",)),
        tuple(Change(*change.split("=")) for change in changes),
    ),
    st.sampled_from(["stencil", "copy"]),
    st.sampled_from(["clx", "zen2"]),
    st.sampled_from([2, 900, 40_000]),
    st.sampled_from([1, 3]),
    st.lists(st.sampled_from(CHANGES), max_size=2, unique=True),
    st.sampled_from([None, "regular", "nt"]),
)


def outcome_of(stages: Stages, point: Point) -> EcmAnswer | str:
    try:
        return stages.answer(point)
    except KernmodelError as error:
        return str(error)


@pytest.mark.thorough
@settings(max_examples=10)
@given(st.lists(points_of, min_size=2, max_size=6))
def test_what_is_remembered_changes_no_answer(points) -> None:
    stages = Stages()
    assert [outcome_of(stages, point) for point in points] == [outcome_of(Stages(), point) for point in points]


def test_changed_machines_give_what_they_must() -> None:
    axes = Axis("change", "L2.size", ("512KiB", "x1")), Axis("change", "memory.bandwidth", ("x1", "x2"))
    found = list(evaluate(grid(*axes, sizes={"N": 20_000}, classic=True), lambda _, answer: answer))
    answers = [outcome.view for outcome in found]
    between = [answer.prediction.transfers[1].cycles for answer in answers]
    # 32 N bytes are more than 512 KiB and less than 1 MiB
    assert between[0] == between[1] > between[2] == between[3] == 8
    assert answers[0].prediction.memory_cycles == pytest.approx(2 * answers[1].prediction.memory_cycles)
    assert answers[0].traffic is answers[1].traffic
    assert answers[0].incore is answers[3].incore
    assert [a.machine.level("L2").size_bytes for a in answers] == [2**19, 2**19, 2**20, 2**20]


def test_blocked_nests_share_their_code(counting, workers) -> None:
    compiler, runs = counting
    study = grid(Axis("block", "i", (64, 512, 128)), compiler=compiler, sizes={"N": 6000})
    study = replace(study, base=replace(study.base, kernel=replace(study.base.kernel, cache="lc", pages="huge")))
    found = list(evaluate(study, lambda _, answer: answer))
    assert runs() == 1
    assert "blocks of 512 in i; all points share" in compiled_at(found[0].point, found[0].view)
    for outcome, width in zip(found, (64, 512, 128), strict=True):
        nest = tile(load_kernel("stencil", {"N": 6000}), {"i": width})
        expected = layer_conditions(nest, load_machine("clx"), {"N": 6000, "M": 5000})
        assert outcome.view.traffic.paths == expected.paths
    assert [(o.view, o.error) for o in evaluate(study, numbers, executor=workers)] == [
        (numbers(o.point, o.view), None) for o in found
    ]


def test_assembly_is_not_compiled(tmp_path, workers) -> None:
    listing = tmp_path / "copy.s"
    listing.write_text(ASSEMBLY)
    study = grid(sizes(100, 10_000), kernel="copy", compiler=None, asm=str(listing))
    here = list(evaluate(study, numbers))
    assert list(evaluate(study, numbers, executor=workers)) == here
    assert [o.view[1] for o in here] == [predict_ecm(o.point.kernel, o.point.code).prediction for o in here]


# --- wherever it works


def mixed() -> Grid:
    """Points that fail (N=2), several codes and machines, codes in many chunks and codes in one."""
    flags = Axis("flags", "", (("-O1",), ("-O2",), ("-O3", "-march=bogus")))
    return grid(sizes(*range(100, 130), 2), flags, Axis("machine", "", ("clx", "zen2")))


def test_processes_give_the_same(workers) -> None:
    study = mixed()
    here, there = list(evaluate(study, numbers)), list(evaluate(study, numbers, executor=workers))
    assert there == here
    assert [outcome.index for outcome in here] == list(range(len(study)))
    assert sum(outcome.error is None for outcome in here) == 30 * 2 * 2


@pytest.mark.thorough
@pytest.mark.parametrize("start", [1, 57, 185, 186, 1000])
def test_from_anywhere(workers, start) -> None:
    study = mixed()
    whole = list(evaluate(study, bare))
    assert list(evaluate(study, bare, start=start)) == whole[start:]
    assert list(evaluate(study, bare, start=start, executor=workers)) == whole[start:]


def test_any_executor_will_do() -> None:
    study = grid(sizes(*range(100, 112)))
    with ThreadPoolExecutor(2) as threads:
        assert list(evaluate(study, bare, executor=threads)) == list(evaluate(study, bare))


@pytest.mark.thorough
def test_workers_in_another_folder_find_the_files(tmp_path, monkeypatch) -> None:
    (tmp_path / "strided.c").write_text(STRIDED)
    monkeypatch.chdir(tmp_path)
    study = grid(sizes(1000, 2000), kernel="strided.c")
    expected = list(evaluate(study, bare))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with ThreadPoolExecutor(1) as threads:
        outcomes = evaluate(study, bare, executor=threads)
        monkeypatch.chdir(elsewhere)
        assert list(outcomes) == expected


def test_outcomes_come_as_they_are_ready(workers, monkeypatch) -> None:
    """A grid that nobody could wait for gives its first outcomes, and stops when asked to."""
    monkeypatch.setattr(flow, "_SECONDS", 0.02)  # workers finish the chunks that they have
    study = grid(sizes(*range(1000, 11_000), name="M"), sizes(*range(100, 1100)))
    outcomes = evaluate(study, bare, executor=workers)
    assert [next(outcomes).index for _ in range(50)] == list(range(50))
    outcomes.close()


@pytest.mark.thorough
def test_few_chunks_are_under_way(monkeypatch) -> None:
    class Lazy(ThreadPoolExecutor):
        submitted = 0
        workers = 2

        def submit(self, *args):
            Lazy.submitted += 1
            return super().submit(*args)

    monkeypatch.setattr(flow, "_SECONDS", 0.0)
    study = grid(sizes(*range(100, 300)))
    with Lazy(2) as executor:
        for outcome in evaluate(study, bare, executor=executor):
            # chunks of one or two points
            assert Lazy.submitted <= outcome.index + 1 + 4 * 2


# --- each distinct thing once


def test_many_sizes_compile_once(counting) -> None:
    compiler, runs = counting
    notes = [o.view for o in evaluate(grid(sizes(*range(100, 112)), compiler=compiler), compiled_at)]
    assert runs() == 1
    shared = "all points share its code, with rows that begin in cache lines as theirs do, and the code around its loop"
    other = "of other values of M, N, constants of the code, a compiler may make other code"
    assert set(notes) == {f"the kernel was compiled once, with M=5000, N=111; {shared}; {other}"}


def test_sizes_that_are_parameters_are_no_constants_of_the_code(tmp_path) -> None:
    file = tmp_path / "scaled.c"
    file.write_text("void scale(double *a, int n) { for (int i = 0; i < n; ++i) a[i] = 2.0 * a[i]; }\n")
    notes = [o.view for o in evaluate(grid(sizes(1000, 2000, name="n"), kernel=str(file)), compiled_at)]
    assert len(set(notes)) == 1
    assert notes[0].endswith("and the code around its loop")


def test_changed_flags_of_a_machine(counting, workers) -> None:
    compiler, runs = counting
    axes = sizes(1000, 2000), Axis("change", "gcc", ("-O1", "-O3")), Axis("change", "clock", ("x1", "x2"))
    study = grid(*axes, compiler=compiler)
    found = list(evaluate(study, lambda _, answer: answer))
    assert runs() == 2
    assert [o.view.origin.flags for o in found] == [("-O1",), ("-O1",), ("-O3",), ("-O3",)] * 2
    parallel = list(evaluate(study, numbers, executor=workers))
    assert [o.view for o in parallel] == [numbers(o.point, o.view) for o in found]
    assert runs() == 4


@pytest.mark.parametrize("flags_first", [True, False])
def test_three_flags_compile_three_times(counting, workers, flags_first) -> None:
    compiler, runs = counting
    axes = Axis("flags", "", (("-O1",), ("-O2",), ("-O3",))), sizes(*range(100, 110))
    study = grid(*(axes if flags_first else axes[::-1]), compiler=compiler)
    assert all(o.error is None for o in evaluate(study, bare, executor=workers))
    assert runs() == 3
    list(evaluate(study, bare))
    assert runs() == 6


def test_machines_with_the_same_flags_share_code(counting, workers) -> None:
    compiler, runs = counting
    machines = Axis("machine", "", ("clx", "snb", "zen2"))
    study = grid(sizes(1000, 2000), machines, compiler=compiler, flags=("-O2",))
    list(evaluate(study, bare, executor=workers))
    assert runs() == 1


def test_each_step_is_compiled_once(counting, tmp_path) -> None:
    compiler, runs = counting
    file = tmp_path / "strided.c"
    file.write_text(STRIDED)
    study = grid(sizes(1_000_000, 2_000_000), sizes(1, 2, 4, name="S"), kernel=str(file), compiler=compiler)
    found = list(evaluate(study, numbers))
    assert runs() == 3
    assert [o.view[2]["S"] for o in found] == [1, 2, 4] * 2
    assert [o.view[0].iterations_per_unit for o in found] == [8, 4, 2] * 2


def test_an_error_is_found_once(counting, workers) -> None:
    compiler, runs = counting
    study = grid(Axis("flags", "", (("-O1",), ("-march=bogus",))), sizes(*range(100, 120)), compiler=compiler)
    found = list(evaluate(study, bare))
    assert [o.error is None for o in found] == [True] * 20 + [False] * 20
    assert "bad value" in (found[-1].error or "")
    assert runs() == 2


def test_traffic_asks_a_machine_for_nothing_else() -> None:
    """Stages share traffic between machines that are the same in these; a figure more would have to be in their key."""
    asked = set()

    class Asked:
        def __init__(self, machine):
            self._machine = machine

        def __getattr__(self, name):
            asked.add(name)
            return getattr(self._machine, name)

    nest = load_kernel("stencil", {})
    plain = [load_machine(name) for name in ("clx", "snb", "zen2")]
    evading = replace(plain[0], stores=StoreBehaviour(evasion="near-saturation", evades_from_cores=2))
    for machine in (*plain, evading):
        for stores in ("regular", "nt", "evading"):
            layer_conditions(nest, Asked(machine), {"N": 5000, "M": 500}, cores=2, stores=stores)
        simulate(nest, Asked(machine), {"N": 500, "M": 50}, options=SimulationOptions())
    known = {"name", "file", "line_bytes", "topology", "levels", "paths", "stores"}
    assert asked <= known | {"residence_levels", "beyond"}  # which follow from the levels


def test_memories_are_bounded_and_remember_errors() -> None:
    memory: Memo[int] = Memo(2)
    made = []

    def make(number: int) -> int:
        made.append(number)
        if number < 0:
            raise InputError("is negative")
        return number

    for number in (1, 2, 1, 3, 1, 2):
        assert memory.get(number, lambda n=number: make(n)) == number
    assert made == [1, 2, 3, 2]
    for _ in range(2):
        with pytest.raises(InputError, match="is negative"):
            memory.get(-1, lambda: make(-1))
    assert made == [1, 2, 3, 2, -1]


# --- errors


def test_what_is_wrong_for_one_point_is_its_outcome() -> None:
    found = list(evaluate(grid(sizes(2, 1000)), bare))
    assert found[0].view is None
    assert "executes no iteration" in (found[0].error or "")
    assert found[1].error is None


def test_largest_sizes_that_cannot_be(tmp_path) -> None:
    file = tmp_path / "fixed.c"
    file.write_text(FIXED)
    found = list(evaluate(grid(sizes(100, 2000, 900), kernel=str(file)), numbers))
    assert [o.error is None for o in found] == [True, False, True]
    assert "out of bounds" in (found[1].error or "")


ALIKE = [
    (grid(sizes(5), machine="clz"), MachineError, "no such machine file"),
    (grid(Axis("machine", "", ("clx", "clz"))), MachineError, "no such machine file"),
    (grid(sizes(5), kernel="no-such"), InputError, "no such kernel"),
    (grid(sizes(5, 6), compiler="no-such-compiler"), ToolError, "was not found"),
    (grid(sizes(5, 6), flags=("-march=bogus",)), ToolError, "bad value"),
    (grid(sizes(5, 6, name="Q")), SourceError, "no macro or parameter Q"),
    (grid(Axis("change", "L9.size", ("x2", "x4"))), UsageError, "L9.size"),
    (grid(Axis("change", "L2.size", ("2GHz", "3GHz"))), UsageError, "has no unit of data"),
    (grid(Axis("block", "q", (8, 16))), UsageError, "q"),
]


@pytest.mark.parametrize(("study", "kind", "text"), ALIKE)
def test_what_is_wrong_for_all_points_is_raised_at_once(study, kind, text) -> None:
    with pytest.raises(kind, match=text):
        evaluate(study, bare)


def test_c_that_cannot_be_read(tmp_path) -> None:
    file = tmp_path / "bad.c"
    file.write_text("for (int i = 0; i < ; ++i) a[i] = 0;\n")
    with pytest.raises(SourceError):
        evaluate(grid(sizes(5, 6), kernel=str(file)), bare)


def test_changes_that_only_hold_together() -> None:
    """The second contradicts the file without the first."""
    together = (Change("topology.cores_per_socket", "40"), Change("L3.shared_by", "40"))
    study = grid(Axis("cores", "", (1, 2)))
    found = list(evaluate(replace(study, base=replace(study.base, changes=together)), bare))
    assert [outcome.error for outcome in found] == [None, None]


def test_a_change_that_one_point_cannot_have() -> None:
    found = list(evaluate(grid(Axis("change", "L2.size", ("2GHz", "2MiB"))), bare))
    assert "has no unit of data" in (found[0].error or "")
    assert found[1].error is None


def test_core_counts_that_the_machine_lacks() -> None:
    with pytest.raises(UsageError, match="41 cores, but clx has 40"):
        evaluate(grid(sizes(1000)), bare, scaling_cores=(41,))
    found = list(evaluate(grid(Axis("cores", "", (1, 41))), bare))
    assert "41 cores, but clx has 40" in (found[1].error or "")


def test_bugs_are_not_outcomes(workers) -> None:
    for executor in (None, workers):
        with pytest.raises(ZeroDivisionError):
            list(evaluate(grid(sizes(1000, 1001)), broken, executor=executor))


@pytest.mark.thorough
def test_no_points() -> None:
    assert list(evaluate(grid(sizes(5)), bare, start=1)) == []
