"""Which level serves which reference of a simulated nest: the rows add up to the paths."""

from __future__ import annotations

import pytest

from kernmodel.machine.load import load_machine
from kernmodel.source.load import parse_kernel
from kernmodel.traffic.simulation.simulate import simulate

COPY = "double a[N], b[N];\nfor (int i = 0; i < N; ++i) b[i] = a[i];\n"
SPREAD = "double a[N], b[N], c[M];\nfor (int i = 0; i < N; ++i) { b[i] = a[i]; c[2 * i] = a[i]; }\n"
UPDATE = "double a[N];\nfor (int i = 0; i < N; ++i) a[i] = 2.0 * a[i];\n"


@pytest.mark.parametrize(
    ("text", "streamed"),
    [(COPY, {"b[i]": 1.0}), (SPREAD, {"b[i]": 0.5, "c[2*i]": 1.0}), (UPDATE, {"a[i]": 8.0})],
    ids=["whole lines", "two streams", "lines that go out element by element"],
)
def test_streamed_rows_are_the_lines_that_memory_takes(text: str, streamed: dict[str, float]) -> None:
    """Every store reaches memory by itself; the rows once had eight lines for one that was written."""
    sizes = {"N": 400000, "M": 800000}
    nest = parse_kernel(text, "kernel.c", sizes)
    traffic = simulate(nest, load_machine("clx"), sizes, stores="nt")
    rows = {row.access: row.served_by["Mem"] for row in traffic.accesses if row.kind == "write"}
    assert rows == pytest.approx(streamed, rel=0.01)
    assert sum(rows.values()) == pytest.approx(traffic.paths[-1].stores, rel=0.01)
