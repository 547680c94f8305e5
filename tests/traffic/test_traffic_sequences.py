"""Nests one after the other: layer conditions between nests against a simulation of all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kernmodel.machine.load import load_machine
from kernmodel.source.load import find_nests
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sequence import Body, NestSequence, sequence_of
from kernmodel.studies.predict.request import KernelRequest
from kernmodel.studies.predict.together import Together, _is_near
from kernmodel.studies.predict.traffic import traffic_method
from kernmodel.studies.predict.whole import traffic_of_each
from kernmodel.traffic.conditions.cache_sets import rooms
from kernmodel.traffic.model import Traffic

FUNCTIONS = {
    "chain": """
        void f(double *restrict a, double *restrict b, double *restrict c) {
            for (int i = 0; i < N; ++i) b[i] = a[i] * 2.0;
            for (int i = 0; i < N; ++i) c[i] = b[i] + a[i];
        }""",
    "apart": """
        void f(double *restrict a, double *restrict b, double *restrict c, double *restrict d, double *restrict e) {
            for (int i = 0; i < N; ++i) b[i] = a[i] * 2.0;
            for (int i = 0; i < N; ++i) d[i] = c[i] + 1.0;
            for (int i = 0; i < N; ++i) e[i] = b[i] + d[i];
        }""",
    "steps": """
        void f(double *restrict p, double *restrict q, double *restrict r, double *restrict x) {
            for (int t = 0; t < 50; ++t) {
                for (int i = 0; i < N; ++i) q[i] = 2.0 * p[i];
                for (int i = 0; i < N; ++i) x[i] += 0.3 * p[i];
                for (int i = 0; i < N; ++i) r[i] -= 0.3 * q[i];
                for (int i = 0; i < N; ++i) p[i] = r[i] + 0.5 * p[i];
            }
        }""",
}


def _sequence(folder: Path, text: str, size: int) -> NestSequence:
    file = folder / "f.c"
    file.write_text(f"#define N {size}\n{text}\n")
    found = find_nests(str(file))
    nests = [one.nest for one in found if isinstance(one.nest, LoopNest)]
    assert len(nests) == len(found)
    return sequence_of(nests, [str(one.number) for one in found], [one.shared_loops for one in found])


def _lines(found: list[Traffic], path: int) -> tuple[float, float]:
    """Lines toward the core and away from it, of one execution of all nests."""
    weights = [(one.iterations_per_sweep or 0) / one.iterations_per_unit for one in found]
    moved = [one.paths[path] for one in found]
    return (
        sum(weight * one.loads for weight, one in zip(weights, moved, strict=True)),
        sum(weight * one.evictions for weight, one in zip(weights, moved, strict=True)),
    )


def _both(sequence: NestSequence, machine: str, size: int) -> tuple[list[Traffic], list[Traffic], bool]:
    """Layer conditions, simulation, and whether the former are near a threshold."""
    core, together = load_machine(machine), Together(sequence, {"N": size})
    given_rooms = rooms(core, 1, 1.0)
    symbolic, simulated, near = [], [], False
    for number, nest in enumerate(sequence.nests):
        for kind, answers in (("lc", symbolic), ("sim", simulated)):
            request = KernelRequest("f.c", machine, {"N": size}, cache=kind)
            method = traffic_method(nest, core, request)
            object.__setattr__(method, "among", (together, number))
            answers.append(method.found(together.sizes()[number], 1, "regular"))
        near |= any(_is_near(one, given_rooms) for one in together.sized(number, 64).neighbours)
    return symbolic, simulated, near


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(sorted(FUNCTIONS)), size=st.integers(500, 60_000), machine=st.sampled_from(["clx", "snb"]))
def test_layer_conditions_between_nests_agree_with_the_simulation_of_all(
    tmp_path_factory: pytest.TempPathFactory, name: str, size: int, machine: str
) -> None:
    sequence = _sequence(tmp_path_factory.mktemp("nests"), FUNCTIONS[name], size)
    symbolic, simulated, near = _both(sequence, machine, size)
    assume(not near)
    busiest = max(value for path in range(len(symbolic[0].paths)) for value in _lines(simulated, path))
    for path in range(len(symbolic[0].paths)):
        for expected, counted in zip(_lines(symbolic, path), _lines(simulated, path), strict=True):
            assert abs(expected - counted) <= max(0.03 * max(expected, counted), 0.02 * busiest + 8)


def _bytes_over(file: Path, machine: str, path: str, **chosen: str) -> list[float]:
    answers = traffic_of_each(KernelRequest(str(file), machine, {}, **chosen))
    return [one.answer.traffic.path(path).lines for one in answers]  # type: ignore[union-attr]


def test_nests_of_a_time_loop_do_not_find_what_the_others_have_displaced(tmp_path: Path) -> None:
    # two arrays of 800 KB each fit the L2 of 1 MiB by themselves, but not one after the other
    file = tmp_path / "f.c"
    file.write_text(
        "#define N 100000\nvoid f(double *restrict a, double *restrict b) {\n for (int t = 0; t < 50; ++t) {\n"
        "  for (int i = 0; i < N; ++i) a[i] = 2.0 * a[i];\n  for (int i = 0; i < N; ++i) b[i] = 2.0 * b[i];\n }\n}\n"
    )
    one, other = _bytes_over(file, "clx", "L2L3")
    assert one == pytest.approx(2, abs=0.1)
    assert other == pytest.approx(2, abs=0.1)


def test_a_row_that_the_nest_before_has_loaded_is_found_in_the_first_cache(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(
        "#define N 600\nvoid f(double a[N][N], double *restrict x, double *restrict y, double *restrict s) {\n"
        " for (int i = 0; i < N; ++i) {\n  for (int j = 0; j < N; ++j) s[i] += a[i][j] * x[j];\n"
        "  for (int j = 0; j < N; ++j) y[j] += a[i][j] * s[i];\n }\n}\n"
    )
    for kind in ("lc", "sim"):
        first, second = _bytes_over(file, "clx", "L1L2", cache=kind)
        assert first == pytest.approx(1, abs=0.02)
        assert second == pytest.approx(0, abs=0.02)


def test_loops_that_nests_share_make_a_tree(tmp_path: Path) -> None:
    text = """void f(double *a, double *b) {
        for (int i = 0; i < N; ++i) a[i] = 0;
        for (int t = 0; t < 9; ++t) {
            for (int i = 0; i < N; ++i) b[i] = a[i];
            for (int i = 0; i < N; ++i) a[i] = b[i];
        }
    }"""
    sequence = _sequence(tmp_path, text, 100)
    assert sequence.root == Body(0, (0, Body(1, (1, 2))))
    assert [body.depth for body in sequence.bodies(2)] == [0, 1]


def test_what_is_not_counted_between_nests_is_told(tmp_path: Path) -> None:
    file = tmp_path / "f.c"
    file.write_text(
        "#define N 1000\nvoid f(double *restrict a, double *restrict b) {\n"
        " for (int i = 0; i < N; ++i) a[i] = b[i];\n for (int i = 0; i < N; ++i) a[i * i] = b[i];\n}\n"
    )
    first, second = traffic_of_each(KernelRequest(str(file), "clx", {}))
    assert [note.code for note in first.notes if note.code == "reuse-between-nests"]
    assert not second.notes
