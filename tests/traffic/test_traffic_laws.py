"""Laws of traffic: larger caches never move more, and past the last condition the size no longer matters."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from traffic_reference import stencils, toy_machine

from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import Traffic

KERNELS = ("stencil", "2d-5pt", "3d-7pt", "3d-27pt", "long-range", "uxx", "himeno", "matvec", "matmul", "triad")
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def misses(traffic: Traffic) -> list[float]:
    return [path.loads for path in traffic.paths]


@pytest.mark.thorough
@SLOW
@given(stencils(), st.floats(512, 1e6), st.floats(1, 10))
def test_a_larger_cache_never_moves_more(case: tuple[str, dict[str, int], float], size: float, factor: float) -> None:
    text, sizes, _ = case
    nest = parse_kernel(text, "stencil.c", sizes)
    small, large = (layer_conditions(nest, toy_machine(s), sizes).paths[0] for s in (size, size * factor))
    assert large.loads <= small.loads
    assert large.stores <= small.stores


@pytest.mark.thorough
@SLOW
@given(st.sampled_from(KERNELS), st.integers(20, 2000), st.floats(0.1, 1), st.integers(1, 8))
def test_more_safety_and_more_cores_never_move_less(kernel: str, size: int, safety: float, cores: int) -> None:
    nest, machine = load_kernel(kernel), load_machine("snb")
    sizes = dict.fromkeys(nest.symbols, size)
    plain = layer_conditions(nest, machine, sizes)
    careful = layer_conditions(nest, machine, sizes, safety=safety, cores=cores)
    assert all(c >= p - 1e-12 for c, p in zip(misses(careful), misses(plain), strict=True))


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k not in ("matvec", "matmul")])
@pytest.mark.parametrize("machine", ["snb", "clx"])
def test_past_the_last_condition_the_size_does_not_matter(kernel: str, machine: str) -> None:
    nest = load_kernel(kernel)
    answers = [
        layer_conditions(nest, load_machine(machine), dict.fromkeys(nest.symbols, 50_000_000 * factor))
        for factor in (1, 2, 3)
    ]
    paths = [[(p.loads, p.stores, p.clean_victims) for p in answer.paths] for answer in answers]
    assert paths[0] == paths[1] == paths[2]


@pytest.mark.thorough
@SLOW
@given(st.sampled_from(KERNELS), st.integers(20, 3000))
def test_formulas_give_the_numbers(kernel: str, size: int) -> None:
    nest = load_kernel(kernel)
    sizes = dict.fromkeys(nest.symbols, size)
    traffic = layer_conditions(nest, load_machine("clx"), sizes)
    for path in traffic.paths:
        for value, formula in (
            (path.loads, path.loads_formula),
            (path.stores, path.stores_formula),
            (path.clean_victims, path.clean_victims_formula),
        ):
            assert float(formula.value(sizes)) == pytest.approx(value, abs=1e-12)
    for condition in traffic.conditions:
        assert float(condition.required_bytes.value(sizes)) == condition.required
        assert all(reuse.lines_saved > 0 for reuse in condition.reuses)
