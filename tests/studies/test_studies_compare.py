"""The same kernels on several machines: equal to the single predictions, and what fails on one machine fails alone."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from kernmodel.errors import InputError, MachineError, ToolError
from kernmodel.machine.load import find_machine
from kernmodel.studies import compare as compared
from kernmodel.studies.compare import compare
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.scaling import scaling

pytestmark = pytest.mark.needs("as", "gcc|clang")


def requests(*kernels: str, **sizes: int) -> list[KernelRequest]:
    return [KernelRequest(kernel, "snb", sizes) for kernel in kernels]


@pytest.fixture
def without_compiler(tmp_path):
    """A machine file whose compiler is not installed."""
    file = tmp_path / "bare.yml"
    file.write_text(find_machine("clx").read_text().replace("gcc:", "no-such-compiler:").replace("clang:", "nor-this:"))
    return str(file)


def test_each_machine_is_predicted_as_ecm_does():
    machines = ("hsw", "clx", "zen2")
    answer = compare(requests("stencil"), machines, CodeRequest())
    assert [result.machine for result in answer.results] == list(machines)
    for result in answer.results:
        topology = result.answer.machine.topology
        cores = (topology.cores_per_numa_domain, topology.cores)
        expected = predict_ecm(KernelRequest("stencil", result.machine, {}), CodeRequest(), cores)
        assert result.answer.prediction == expected.prediction
        assert result.answer.origin.flags == expected.origin.flags
        assert (result.domain, result.whole) == expected.scaling
        assert result.saturation == expected.prediction.saturation_recursive
        assert result.error is None


def test_ratios_are_of_times_and_not_of_cycles():
    results = compare(requests("stencil"), ("snb", "zen2"), CodeRequest()).results
    times = [r.answer.prediction.cycles / r.answer.machine.clock_hz for r in results]
    assert results[0].ratio == results[0].ratio_domain == 1.0
    assert results[1].ratio == pytest.approx(times[1] / times[0])
    domains = [r.domain.cycles / r.answer.machine.clock_hz for r in results]
    assert results[1].ratio_domain == pytest.approx(domains[1] / domains[0])


def test_what_limits_is_told_with_numbers():
    code = CodeRequest(classic=True)
    stencil, pi = (compare(requests(kernel), ("clx",), code).results[0] for kernel in ("stencil", "pi"))
    assert (stencil.limit_core, stencil.limit_domain) == ("T_nOL + transfers", "memory bandwidth")
    assert "5 of its 10 cores use all of its memory bandwidth (54.8 GB/s), which allows 2.284 GLUP/s" in stencil.because
    assert (pi.limit_core, pi.limit_domain) == ("T_OL", "T_OL of one core")
    assert "nothing moves over the memory path" in pi.because


def test_a_domain_whose_streams_draw_less_than_those_of_fewer_cores_says_so():
    result = compare(requests("stencil"), ("zen2",), CodeRequest()).results[0]
    assert result.domain.utilization < 0.95
    assert "(34.6 GB/s); all 8 draw 94.2% of it, which allows 1.36 GLUP/s" in result.because


def test_cores_of_which_all_are_needed_do_not_use_all_and_draw_less(monkeypatch):
    def saturated_by_all(*given, **more):
        return replace(scaling(*given, **more), saturation_recursive=8)

    monkeypatch.setattr(compared, "scaling", saturated_by_all)
    because = compare(requests("stencil"), ("zen2",), CodeRequest()).results[0].because
    assert "A full domain: its 8 cores draw 94.2% of its memory bandwidth (34.6 GB/s), which allows" in because


def test_a_domain_that_is_slower_than_fewer_cores_says_why():
    result = compare(requests("stencil", N=120_000, M=1000), ("hsw",), CodeRequest()).results[0]
    assert result.because.endswith("L3: 2.5 MiB a core; reuse over j (3.662 MiB) no longer fits.")


def test_what_fails_on_one_machine_fails_alone(without_compiler):
    results = compare(requests("copy"), (without_compiler, "clx", "snb"), CodeRequest()).results
    assert [result.error is None for result in results] == [False, True, True]
    assert "compiler" in results[0].error
    assert (results[0].ratio, results[1].ratio) == (None, 1.0)


def test_what_fails_on_all_machines_is_raised(without_compiler):
    with pytest.raises(ToolError, match="compiler"):
        compare(requests("copy"), (without_compiler,), CodeRequest())


def test_an_unknown_machine_or_kernel_is_raised_at_once():
    with pytest.raises(MachineError, match="no such machine file"):
        compare(requests("copy"), ("clx", "clxx"), CodeRequest())
    with pytest.raises(InputError, match="no such kernel"):
        compare(requests("copy", "no-such-kernel"), ("clx",), CodeRequest())


def test_a_machine_that_is_asked_for_twice_is_shown_once():
    answer = compare(requests("copy"), ("clx", "snb", "clx.yml", str(find_machine("clx"))), CodeRequest())
    assert [result.machine for result in answer.results] == ["clx", "snb"]
    twice = [note.text for note in answer.notes if note.code == "machine-twice"]
    assert twice[0] == "clx.yml was asked for more than once and is shown once"
    assert len(twice) == 2


@pytest.mark.thorough
def test_all_machines_and_several_kernels_in_other_processes():
    kernels = requests("copy", "stencil")
    with ProcessPoolExecutor(1) as executor:
        apart = compare(kernels, ("snb", "zen2"), CodeRequest(), executor=executor)
    here = compare(kernels, ("snb", "zen2"), CodeRequest())
    assert [(r.kernel, r.machine, r.domain, r.because, r.ratio) for r in apart.results] == [
        (r.kernel, r.machine, r.domain, r.because, r.ratio) for r in here.results
    ]
    assert [r.answer.prediction for r in apart.results] == [r.answer.prediction for r in here.results]
    assert apart.notes == here.notes
    assert [r.ratio for r in here.results][::2] == [1.0, 1.0]


@pytest.mark.thorough
def test_all_stands_for_the_carried_machines():
    answer = compare(requests("copy"), ("all", "clx"), CodeRequest())
    assert len({result.machine for result in answer.results}) == len(answer.results) >= 9
    assert all(result.error is None for result in answer.results)


def test_a_note_of_some_machines_says_of_which():
    notes = compare(requests("copy"), ("snb", "clx"), CodeRequest()).notes
    texts = {note.code: note.text for note in notes}
    assert texts["victim-cache"].startswith("clx: L3 is a victim cache")
    assert texts["lru"].startswith("caches are taken")
