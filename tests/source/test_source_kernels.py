"""The carried kernels: what is read, computed and counted, and that they compile as they stand."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from kernmodel.formulas.formula import ZERO
from kernmodel.resources import carried_files
from kernmodel.source.emit.compilable import compilable_source
from kernmodel.source.emit.whole_function import quick_compilable
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of, trip_counts
from kernmodel.source.nest.strides import access_strides, updates_per_iteration

# name: (loads, stores, operations, iterations per sweep, updates, reductions); loads and stores are distinct references
# of the innermost body. Counted by hand from the formulas in the kernels' headers.
EXPECTED = {
    "2d-5pt": (4, 1, {"add": 3, "mul": 1}, 4998**2, 1, ()),
    "3d-27pt": (27, 1, {"add": 26, "mul": 4}, 398**3, 1, ()),
    "3d-7pt": (7, 1, {"add": 6, "mul": 2}, 398**3, 1, ()),
    "add": (2, 1, {"add": 1}, 20_000_000, 1, ()),
    "copy": (1, 1, {}, 20_000_000, 1, ()),
    "daxpy": (2, 1, {"add": 1, "mul": 1}, 20_000_000, 1, ()),
    "dot": (2, 0, {"add": 1, "mul": 1}, 20_000_000, None, ("sum",)),
    "gather": (2, 1, {}, 20_000_000, 1, ()),
    "himeno": (31, 1, {"add": 21, "mul": 13}, 254**3, 1, ("gosa",)),
    "histogram": (2, 1, {}, 20_000_000, 1, ()),
    "iso3dfd": (27, 1, {"add": 26, "mul": 7}, 392**3, 1, ()),
    "kahan-dot": (2, 0, {"add": 4, "mul": 1}, 20_000_000, None, ("c", "sum")),
    "long-range": (27, 1, {"add": 26, "mul": 7}, 392**3, 1, ()),
    "matmul": (3, 1, {"add": 1, "mul": 1}, 2000**3, 1, ()),
    "matmul-blocked": (3, 1, {"add": 1, "mul": 1}, 2000**3, 1, ()),
    "matvec": (2, 0, {"add": 1, "mul": 1}, 5000**2, None, ("sum",)),
    "matvec-transposed": (3, 1, {"add": 1, "mul": 1}, 5000**2, 1, ()),
    "pi": (0, 0, {"add": 3, "mul": 2, "div": 1}, 10**9, None, ("sum",)),
    "scale": (1, 1, {"mul": 1}, 20_000_000, 1, ()),
    "scatter": (2, 1, {}, 20_000_000, 1, ()),
    "schoenauer": (3, 1, {"add": 1, "mul": 1}, 20_000_000, 1, ()),
    "spmv-ell": (3, 0, {"add": 1, "mul": 1}, 32_000_000, None, ("sum",)),
    "stencil": (4, 1, {"add": 3, "mul": 1}, 4998**2, 1, ()),
    "stencil-blocked": (4, 1, {"add": 3, "mul": 1}, 4998**2, 1, ()),
    "sum": (1, 0, {"add": 1}, 20_000_000, None, ("s",)),
    "triad": (2, 1, {"add": 1, "mul": 1}, 20_000_000, 1, ()),
    "trmv": (2, 0, {"add": 1, "mul": 1}, 5000 * 5001 // 2, None, ("sum",)),
    "update": (1, 1, {"mul": 1}, 20_000_000, 1, ()),
    "uxx": (17, 1, {"add": 15, "mul": 8, "div": 1}, 396**3, 1, ()),
}
FLOAT = {"himeno", "iso3dfd"}


def test_every_carried_kernel_is_checked_here() -> None:
    assert {path.stem for path in carried_files("kernels", ".c")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_kernel_is_read_as_its_header_says(name: str) -> None:
    loads, stores, operations, iterations, updates, reductions = EXPECTED[name]
    nest = load_kernel(name)
    sizes = sizes_of(nest, {})
    inner = Counter(access.kind for access in nest.accesses if access.depth == len(nest.loops))
    assert (inner["read"], inner["write"]) == (loads, stores)
    assert {flop.operation: flop.count for flop in nest.operations.flops} == operations
    assert {flop.element.name for flop in nest.operations.flops} <= {"float" if name in FLOAT else "double"}
    assert iterations_per_sweep(nest, sizes) == iterations
    assert updates_per_iteration(nest) == updates
    assert nest.operations.reductions == reductions


@pytest.mark.parametrize("name", EXPECTED)
def test_arrays_have_the_shape_of_the_grid(name: str) -> None:
    nest = load_kernel(name)
    for access in nest.accesses:
        shape = nest.arrays[access.array].shape
        assert len(access.index) == max(1, len(shape))


def test_stencil_in_detail() -> None:
    nest = load_kernel("stencil")
    n, m = nest.symbols["N"], nest.symbols["M"]
    j, i = (loop.symbol for loop in nest.loops)
    assert nest.arrays["a"].shape == (m, n)
    offsets = [access.offset for access in nest.accesses]
    centre = j * n + i
    assert [offset - centre for offset in offsets] == [-1, 1, -n, n, 0]
    assert [access.text for access in nest.accesses][:3] == ["a[j][i-1]", "a[j][i+1]", "a[j-1][i]"]
    assert nest.accesses[0].coefficients == (n, 1)
    assert [(loop.start, loop.stop, loop.step) for loop in nest.loops] == [(1, m - 1, 1), (1, n - 1, 1)]
    assert nest.defaults == {"M": 5000, "N": 5000}
    assert (nest.name, nest.function) == ("stencil", "stencil")
    assert [bytes_ for _, bytes_ in access_strides(nest, sizes_of(nest, {}))] == [8] * 5
    assert [bytes_ for _, bytes_ in access_strides(nest, sizes_of(nest, {}), 0)] == [40_000] * 5
    assert trip_counts(nest, sizes_of(nest, {})) == (4998.0, 4998.0)


def test_flat_iso3dfd_has_the_offsets_of_its_star() -> None:
    nest = load_kernel("iso3dfd")
    n, m = nest.symbols["N"], nest.symbols["M"]
    centre = next(access.offset for access in nest.writes())
    distances = {a.offset - centre for a in nest.accesses if a.array == "prev"}
    star = {sign * r * stride for r in range(1, 5) for stride in (1, n, n * m) for sign in (1, -1)}
    assert distances == star | {ZERO}
    assert len(nest.arrays["prev"].shape) == 3
    assert nest.arrays["prev"].shape[1:] == (m, n)


def test_matvec_stores_its_sum_between_the_loops() -> None:
    nest = load_kernel("matvec")
    store = nest.writes()[0]
    assert (store.array, store.depth, store.coefficients) == ("y", 1, (1, 0))


def test_defines_win_over_defaults_and_stay_symbols() -> None:
    nest = load_kernel("stencil.c", {"N": "4000"})
    assert nest.defaults["N"] == 4000
    assert nest.arrays["a"].shape[1] == nest.symbols["N"]
    assert sizes_of(nest, {"M": 300}) == {"M": 300, "N": 4000}


@pytest.mark.parametrize("name", EXPECTED)
def test_quick_text_is_the_text_of_the_analysis(name: str) -> None:
    assert quick_compilable(name, ["N"]) == compilable_source(load_kernel(name, {"N": 100}), {"N": 100})


@pytest.mark.parametrize("compiler", ["gcc", "clang", "clang-19"])
def test_kernels_compile_without_warnings(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    files = [str(path) for path in carried_files("kernels", ".c")]
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-fsyntax-only", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_is_read_again_is_what_the_files_say_now(tmp_path: Path) -> None:
    """Kernels are remembered, but not those with headers, which may change."""
    file, header = tmp_path / "k.c", tmp_path / "step.h"
    file.write_text('#include "step.h"\nvoid f(int n, double *a) { for (int i = 0; i < n; i += STEP) a[i] = 0; }\n')
    for step in (1, 2):
        header.write_text(f"#define STEP {step}\n")
        assert load_kernel(str(file)).inner.step == step
    assert load_kernel("stencil") is load_kernel("stencil")
    assert load_kernel("stencil", {"N": 7}).defaults["N"] == 7
    assert load_kernel("stencil").defaults["N"] == 5000
