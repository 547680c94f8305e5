"""Layer conditions beside Kerncraft's (0.8.18): misses and modified evictions per level agree, or it is known why not.

Its matvec_trans reads b[i] and updates c[i], which the outer loop does not move. Kerncraft takes them for new in each
row; here they are reused where a row of each of the three arrays fits (24 N bytes), and c then stays until the end.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernmodel.machine.kerncraft import read_kerncraft
from kernmodel.machine.load import load_path
from kernmodel.source.load import parse_kernel
from kernmodel.traffic.conditions.layer_conditions import layer_conditions

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
CUBE = "[restrict M][N][N]"
KERNELS = {
    "add": """void f(double a[restrict N], double b[restrict N], double c[restrict N]) {
        for (int i = 0; i < N; ++i) a[i] = b[i] + c[i]; }""",
    "vector_sum": "double f(double a[restrict N]) { double s = 0; for (int i = 0; i < N; ++i) s += a[i]; return s; }",
    "matvec_trans": """void f(double a[restrict M][N], double b[restrict N], double c[restrict N]) {
        for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) c[i] += a[j][i] * b[i]; }""",
    "3d-7pt": f"""void f(double a{CUBE}, double b{CUBE}, double s) {{
        for (int k = 1; k < M - 1; ++k) for (int j = 1; j < N - 1; ++j) for (int i = 1; i < N - 1; ++i)
            b[k][j][i] = (a[k][j][i-1] + a[k][j][i+1] + a[k][j-1][i] + a[k][j+1][i] + a[k-1][j][i] + a[k+1][j][i]) * s;
        }}""",
    "uxx-stencil": f"""void f(double u{CUBE}, double d{CUBE}, double x{CUBE}, double y{CUBE}, double z{CUBE}) {{
        for (int k = 2; k < M - 2; ++k) for (int j = 2; j < N - 2; ++j) for (int i = 2; i < N - 2; ++i)
            u[k][j][i] = u[k][j][i] + 1 / (d[k][j][i] + d[k][j-1][i] + d[k-1][j][i] + d[k-1][j-1][i])
                * (x[k][j][i] - x[k][j][i-1] + x[k][j][i+1] - x[k][j][i-2]
                 + y[k][j+1][i] - y[k][j-1][i] + y[k][j+1][i] - y[k][j-2][i]
                 + z[k][j][i] - z[k-1][j][i] + z[k+1][j][i] - z[k-2][j][i]); }}""",
}


def results() -> list[dict]:
    file = DATA / "kerncraft/dev.json"
    if not file.is_file():
        return []
    return [r for r in json.loads(file.read_text())["results"] if r["predictor"] == "LC"]


@pytest.mark.thorough
def test_against_kerncraft(tmp_path: Path) -> None:
    if not results():
        pytest.skip("Kerncraft's results (../shared/data/kerncraft) are absent")
    machines = {}
    for name in {result["machine_file"] for result in results()}:
        file = tmp_path / name
        file.write_text(read_kerncraft(DATA / "machines-kerncraft" / name).text)
        machines[name] = load_path(file)
    different = []
    for result in results():
        machine, sizes = machines[result["machine_file"]], result["defines"]
        traffic = layer_conditions(parse_kernel(KERNELS[result["kernel"]], "t.c", sizes), machine, sizes)
        misses = [path.loads for path in traffic.paths]
        if machine.levels[-1].filled_by == "victims" and machine.levels[-1].loads_pass_by:
            misses[-2] += misses[-1]
        found = (misses, [path.stores for path in traffic.paths])
        expected = (result["misses"][:3], result["evicts"][:3])
        if result["kernel"] == "matvec_trans":
            rows_fit = [24 * sizes["N"] <= level.size_bytes for level in machine.levels]
            expected = (
                [min(theirs, 1) if fits else theirs for fits, theirs in zip(rows_fit, expected[0], strict=True)],
                [0 if fits else theirs for fits, theirs in zip(rows_fit, expected[1], strict=True)],
            )
        if found != expected:
            different.append((result["kernel"], result["machine"], sizes, found, expected))
    assert not different
