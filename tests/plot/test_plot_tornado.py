"""The tornado by structure: which bar stands where."""

from __future__ import annotations

import dataclasses

import pytest

from kernmodel.plot import style
from kernmodel.plot.caption import metadata_texts
from kernmodel.plot.tornado import MOST_BARS, tornado_figure, tornado_text
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.what_if.sensitivity import sensitivity

pytestmark = pytest.mark.needs("as", "gcc|clang")


@pytest.fixture(scope="module")
def answer():
    return sensitivity(KernelRequest("stencil", "clx", {}), CodeRequest(classic=True))


def bars(axes) -> dict[str, list[tuple[float, float]]]:
    """Both ends of each bar by the label of its series."""
    return {
        series.get_label(): [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in series]
        for series in axes.containers
    }


def test_bars_go_from_the_runtime_as_it_is_to_each_ratio(answer) -> None:
    drawn = bars(tornado_figure(answer).axes[0])
    expected = {
        "half the figure": [one.less for one in answer.figures],
        "twice the figure": [one.more for one in answer.figures],
        "10 % less": [one.below for one in answer.figures],
        "10 % more": [one.above for one in answer.figures],
    }
    assert set(drawn) == set(expected)
    for label, ratios in expected.items():
        ends = [end for start, end in drawn[label] if start == 1]
        assert ends == pytest.approx([ratio for ratio in ratios if ratio is not None])


def test_the_greatest_effect_is_on_top(answer) -> None:
    axes = tornado_figure(answer).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [one.figure.short for one in answer.figures]
    bottom, top = axes.get_ylim()
    assert bottom > top
    texts = [text.get_text() for text in axes.texts]
    assert {"value", "elasticity", "2.5 GHz", "-0.66"} <= set(texts)


def test_nothing_matters(answer) -> None:
    still = dataclasses.replace(answer, figures=())
    (text,) = tornado_figure(still).axes[0].texts
    assert text.get_text() == "no figure of the machine changes the runtime"
    assert "nothing to draw" in tornado_text(still)


def test_a_figure_of_which_all_ratios_are_unknown(answer) -> None:
    unknown = dataclasses.replace(answer.figures[0], less=float("inf"), below=None, above=None, more=None)
    axes = tornado_figure(dataclasses.replace(answer, figures=(unknown,))).axes[0]
    assert not axes.patches


def test_no_more_bars_than_fit(answer) -> None:
    many = dataclasses.replace(answer, figures=answer.figures * 10)
    assert len(tornado_figure(many).axes[0].get_yticks()) == MOST_BARS
    assert tornado_text(many).count("clock") < 10


def test_titles_name_several_cores(answer) -> None:
    (point,) = answer.before.scaling
    before = dataclasses.replace(answer.before, scaling=(dataclasses.replace(point, cores=4),))
    several = dataclasses.replace(answer, before=before)
    title, _ = metadata_texts(tornado_figure(several))
    assert title.startswith("sensitivity of stencil on ") and title.endswith(", 4 cores")
    assert tornado_text(several).startswith("stencil on clx, 4 cores: runtime ×")


def test_bars_of_the_terminal(answer) -> None:
    text = tornado_text(answer, 90)
    line = next(line for line in text.splitlines() if line.startswith("clock"))
    dark, light = line.partition("│")[::2]
    assert ("█" in dark, "░" in light, line.split()[-1]) == (True, True, "-0.66")
    assert tornado_text(answer, 80, ascii_only=True).isascii()
    assert max(map(len, tornado_text(answer, 80).splitlines())) <= 80


def test_the_same_picture_gives_the_same_file(answer, tmp_path) -> None:
    for name in ("a.svg", "b.svg"):
        style.write(tornado_figure(answer), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
