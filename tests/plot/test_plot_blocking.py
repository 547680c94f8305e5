"""Pictures of times over block sizes, by structure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernmodel.formulas.formula import size
from kernmodel.plot.blocking import blocking_figure, blocking_text, cache_limits, candidate_points, swept, times
from kernmodel.plot.caption import metadata_texts
from kernmodel.plot.style import write
from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit
from kernmodel.studies.predict.request import CodeOrigin

B_I, B_J, N = map(size, ("B_i", "B_j", "N"))


@dataclass(frozen=True)
class Prediction:
    """As much of a prediction as a picture needs."""

    cycles: float
    t_ol: float = 8.0
    t_out: float = 0.0
    t_call: float = 0.0
    overlap_cycles: float = 0.0

    @property
    def core_cycles(self) -> float:
        return self.t_ol + self.t_call - self.overlap_cycles + self.t_out

    @property
    def times(self) -> dict[str, float]:
        return {"T_OL": self.t_ol, "T_nOL": 4.0, "T_L1L2": 5.0, "T_L2Mem": self.cycles - 9.0}


class Overlapping(Prediction):
    """Times that overlap in part."""

    @property
    def times(self) -> dict[str, float]:
        return {**super().times, "T_L1L2": 10.0}


def limit(cache: str, capacity: float, loops: tuple[str, ...], largest: dict[str, int | None]) -> BlockLimit:
    solved = dict.fromkeys(loops, "")
    return BlockLimit(cache, capacity, "k", ("a[k][j][i]",), loops, 32 * B_I * B_J + 16 * N, solved, largest, 2.0)


def candidate(blocks: dict[str, int], cycles: float, own: BlockLimit) -> Any:
    return SimpleNamespace(blocks=blocks, prediction=Prediction(cycles), limit=own)


@pytest.fixture
def answer() -> BlockingAnswer:
    levels = tuple(SimpleNamespace(name=name) for name in ("L1", "L2"))
    machine = SimpleNamespace(name="toy", title="Toy [processor]", levels=levels)
    before: Any = SimpleNamespace(
        nest=SimpleNamespace(name="stencil", loops=tuple(SimpleNamespace(variable=one) for one in "kji")),
        machine=machine,
        prediction=Prediction(30.0),
        sizes={"N": 100},
        origin=CodeOrigin(None, "gcc", "12.2.0", ("-O3",), ()),
    )
    own = limit("L2", 262144.0, ("j", "i"), {"j": 50, "i": 81})
    candidates = (
        candidate({"j": 50, "i": 80}, 20.0, own),
        candidate({"i": 40}, 25.0, limit("L2", 262144.0, ("i",), {"i": 40})),
        candidate({"j": 9}, 26.0, limit("L2", 262144.0, ("j",), {"j": 9})),
    )
    sweep: Any = tuple((size, Prediction(cycles)) for size, cycles in ((8, 40.0), (64, 22.0), (128, 30.0), (512, 30.0)))
    square = limit("L2", 262144.0, ("j", "i"), {"j": 90, "i": 90})
    inner = limit("L1", 32768.0, ("j", "i"), {"j": 31, "i": 31})
    return BlockingAnswer(before, (square, inner), candidates, (6.0, 5.0), (), {}, sweep, ())


def drawn(answer: BlockingAnswer) -> tuple[Any, dict[str, Any]]:
    axes = blocking_figure(answer).axes[0]
    return axes, {str(line.get_label()).partition(" (")[0]: line for line in axes.lines}


def test_the_innermost_blocked_loop_is_varied(answer):
    assert swept(answer) == ("i", "j in blocks of 50")
    assert [size for size, _ in times(answer)] == [8, 64, 80, 128, 512]
    alone = replace(answer, candidates=answer.candidates[1:])
    assert swept(alone) == ("i", "")
    assert [size for size, _ in times(alone)] == [8, 40, 64, 128, 512]


def test_limits_are_those_beside_the_other_blocks(answer):
    # 32·50·B + 1600 ≤ 32768 for B ≤ 19; in L2 the candidate knows it better than the formula
    assert cache_limits(answer) == {"L2": (("k", 81),), "L1": (("k", 19),)}
    assert cache_limits(replace(answer, candidates=answer.candidates[2:])) == {}
    small = replace(answer, limits=(limit("L1", 1000.0, ("j", "i"), {"j": 1, "i": 1}),))
    assert cache_limits(small) == {}


def test_lines_and_points(answer):
    axes, lines = drawn(answer)
    assert list(lines["T_ECM, blocked"].get_xdata()) == [8, 64, 80, 128, 512]
    assert list(lines["T_ECM, blocked"].get_ydata()) == [40.0, 22.0, 20.0, 30.0, 30.0]
    assert set(lines["T_ECM, not blocked"].get_ydata()) == {30.0}
    assert list(lines["best: i = 80"].get_xdata()) == [80]
    assert list(lines["other candidates"].get_xdata()) == [40] and candidate_points(answer) == ((80, 20.0), (40, 25.0))
    assert list(lines["L1 holds reuse along k: ≤ 19"].get_xdata()) == [19, 19]
    assert list(lines["L2 holds reuse along k: ≤ 81"].get_xdata()) == [81, 81]
    assert (
        lines["L1 holds reuse along k: ≤ 19"].get_linestyle() != lines["L2 holds reuse along k: ≤ 81"].get_linestyle()
    )
    assert axes.get_xscale() == "log" and axes.get_xlim() == (8, 512) and axes.get_ylim()[1] > 40
    title, details = metadata_texts(axes.get_figure())
    assert title == "blocking of stencil on Toy [processor]; j in blocks of 50"
    assert details.startswith("stencil: N = 100 · gcc 12.2.0 -O3 · machine toy · kernmodel ")


def test_contributions_are_stacked_up_to_the_time(answer):
    axes, _ = drawn(answer)
    areas = [area for area in axes.collections if area.get_label().startswith("T_")]
    assert [area.get_label() for area in areas] == ["T_nOL", "T_L1L2", "T_L2Mem"]
    tops = [area.get_paths()[0].get_extents().y1 for area in areas]
    assert tops == [4.0, 9.0, 40.0]
    assert all(low < high for low, high in pairwise(tops))
    assert len({area.get_hatch() for area in areas}) == 3


def test_times_that_overlap_are_not_stacked(answer):
    """T_ECM of 30 cy is neither T_OL nor the sum of 4, 5 and 40 cy."""
    overlapping: Any = tuple((size, Overlapping(30.0)) for size in (8, 64, 128))
    axes, lines = drawn(replace(answer, sweep=overlapping))
    assert not [area for area in axes.collections if area.get_label().startswith("T_")]
    assert max(lines["T_L2Mem"].get_ydata()) == 21.0


def test_chains_of_several_rows_take_less_in_the_core(answer):
    """As in the other pictures, T_OL is drawn without what they overlap."""
    sweep: Any = tuple((size, replace(found, overlap_cycles=3.0)) for size, found in answer.sweep)
    given = replace(answer, sweep=sweep)
    _, lines = drawn(given)
    expected = [8.0 - found.overlap_cycles for _, found in times(given)]
    assert list(lines["T_OL + T_out"].get_ydata()) == expected and expected.count(5.0) >= len(sweep)


def test_a_picture_repeats(answer, tmp_path: Path):
    for name in ("a.svg", "b.svg"):
        write(blocking_figure(answer), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_drawing_in_characters(answer):
    text = blocking_text(answer, 70, ascii_only=True)
    assert text.isascii()
    assert text.splitlines()[0] == "stencil on toy: cy/CL over block sizes, j in blocks of 50"
    assert "* T_ECM, blocked   o T_ECM, not blocked   + T_OL" in text
    assert "block size of i (iterations)" in text
    assert text.endswith("  L2 holds the reuse along k up to i = 81\n  L1 holds the reuse along k up to i = 19\n")
    assert max(map(len, text.splitlines())) <= 70


def test_one_block_size_is_a_picture(answer):
    one = replace(answer, sweep=answer.sweep[:1], candidates=answer.candidates[:1])
    axes = blocking_figure(replace(one, candidates=(candidate({"i": 8}, 40.0, answer.limits[0]),))).axes[0]
    assert axes.get_xlim()[0] < axes.get_xlim()[1]
