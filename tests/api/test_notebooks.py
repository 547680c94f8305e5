"""What notebooks show, and frames of pandas."""

from __future__ import annotations

import ast
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import kernmodel as km

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.py"))
TRIAD = "double a[N], b[N], c[N];\nfor (int i = 0; i < N; ++i)\n    a[i] = b[i] + 3.0 * c[i];\n"


class Cells(HTMLParser):
    """The texts of the cells of a page, and the elements that are open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "dd"):
            self.cells.append(data.strip())


def shown(result: km.Result) -> Cells:
    found = Cells(result._repr_html_())
    assert not found.open
    return found


def test_a_result_shows_its_report_as_tables() -> None:
    result = km.ecm(TRIAD, "clx", N=10_000_000)
    cells = shown(result).cells
    assert result.answer.prediction.shorthand() in cells
    assert "N = 10000000" in cells


def test_several_answers_show_as_one_table() -> None:
    result = km.data_traffic(TRIAD, "clx", N=[1000, 2000])
    cells = shown(result).cells
    assert {"1000", "2000"} <= set(cells)


def test_text_of_users_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a<script>b.c"
    path.write_text("#define N 1000\n" + TRIAD)
    page = km.data_traffic(path, "clx")._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("result", [km.list_machines, km.list_kernels, lambda: km.load_kernel("stencil")])
def test_lists_and_kernels_show_themselves(result) -> None:
    assert len(shown(result()).cells) > 5


def test_a_sweep_is_a_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    sweep = km.sweep_sizes(TRIAD, "clx", N=[1000, 2000], run=km.SweepRun(jobs=1))
    frame = sweep.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["N"]) == [1000, 2000]
    assert list(frame["T_ECM_cy_per_CL"]) == [row["T_ECM_cy_per_CL"] for row in sweep]


def test_without_pandas_a_frame_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    sweep = km.sweep_sizes(TRIAD, "clx", N=1000, run=km.SweepRun(jobs=1))
    with pytest.raises(km.ToolError, match="pandas is not installed"):
        sweep.frame()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_python_with_cells(notebook: Path) -> None:
    """They are executed by docs/run_notebooks.py; here, that every cell is Python and calls what is there."""
    text = notebook.read_text()
    assert len(re.findall(r"^# %%", text, re.MULTILINE)) > 8
    called = {
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "km"
    }
    assert called <= set(km.__all__)
