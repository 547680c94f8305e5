"""For every kernel × machine × level the loop is found and its iterations per pass are right.

A representative part, with gcc; benchmarks/loop_finding.py runs all of it with gcc and clang (docs/loop-finding.md).
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from kernmodel.resources import carried_files

ROOT = Path(__file__).parents[2]


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("loop_finding", ROOT / "benchmarks" / "loop_finding.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["loop_finding"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("machine", "levels"), [("snb", ("-O3",)), ("clx", ("-O1", "-O2", "-O3")), ("zen2", ("-O3",))])
def test_every_kernel_is_found_at_every_level(machine: str, levels: tuple[str, ...]) -> None:
    """Below -O3, where little is vectorised, one machine's code is as another's."""
    names = [file.stem for file in carried_files("kernels", ".c")]
    results = list(benchmark().outcomes(names, [machine], levels, ["gcc"]))
    assert len(results) == len(levels) * len(names)
    unfound = {(r.kernel, r.level): r.evidence for r in results if r.verdict not in ("checked", "bytes")}
    assert not unfound, unfound
    verdicts = Counter(result.verdict for result in results)
    # iterations that differ from row to row have no passes to compare with
    uncounted = ("trmv", "stencil-blocked", "matmul-blocked")
    assert verdicts["checked"] >= len(levels) * (len(names) - len(uncounted))
    assert all(r.iterations == 1 for r in results if r.level == "-O1")
    vectorised = {r.kernel for r in results if r.level == "-O3" and (r.iterations or 0) > 1}
    assert {"stencil", "triad", "daxpy", "3d-7pt", "himeno"} <= vectorised


def test_the_check_of_the_benchmark_refuses_a_wrong_number() -> None:
    module = benchmark()
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on this system")
    (result,) = module.outcomes(["triad"], ["clx"], ["-O1"], ["gcc"])
    assert result.verdict == "checked"
    source = module.source_of("triad")
    compiler = module.find_compiler(module.load_machine("clx").compilers, "gcc")
    listing = module.compiled(source, compiler, ("-O1",))
    longer = replace(source, told=replace(source.told, trip_count=source.told.trip_count + 9))
    assert module.outcome(longer, listing, "clx", "gcc", "-O1").verdict == "WRONG"
