"""Kernels set beside one another on charts: versions, shares of time, limits of axes."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.source.nest.sizes import iterations_per_sweep

KERNELS = ["stencil.c", "triad.c"]


def charts(**options):
    return km.roofline_chart(KERNELS, "clx", N=4000, chart=km.ChartOptions(**options))


def test_a_step_tells_what_the_performance_becomes(tmp_path):
    result = charts(versions=True)
    before, after = (one.subject for one in result.answer.kernels)
    (step,) = result.answer.arrangement.steps
    assert (step.before, step.after) == ("stencil", "triad")
    assert step.flop_rate == pytest.approx(after.case.performance / before.case.performance)
    assert step.iteration_rate == pytest.approx(after.iterations_per_second / before.iterations_per_second)
    said = f"{step.flop_rate:.3g}"
    assert "Versions (later over earlier)" in result.text()
    assert f"stencil to triad: 0.1 to 0.08333 FLOP/B at L1, {said} times the performance" in result.drawing()
    axes = result.plot(tmp_path / "chart.svg").axes[0]
    assert sum(text.get_gid() == "step" for text in axes.texts) == 1
    assert f"{said}×" in {text.get_text() for text in axes.texts}
    assert result.json()["arrangement"]["steps"][0]["flop_rate"] == step.flop_rate


def test_shares_of_time_are_of_iterations_over_their_rate(tmp_path):
    counts = {"triad": 1000}
    result = charts(by_time=True, calls=["triad=1000"])
    seconds = {
        one.subject.name: counts.get(one.subject.name, 1)
        * iterations_per_sweep(one.subject.nest, one.subject.sizes)
        / one.subject.iterations_per_second
        for one in result.answer.kernels
    }
    assert result.answer.times == pytest.approx({name: t / sum(seconds.values()) for name, t in seconds.items()})
    larger = max(result.answer.times, key=result.answer.times.__getitem__)
    axes = result.plot(tmp_path / "chart.svg").axes[0]
    sizes = {line.get_label(): line.get_markersize() for line in axes.lines if line.get_label() in seconds}
    assert max(sizes, key=sizes.__getitem__) == larger
    assert len({line.get_color() for line in axes.lines if line.get_label() in seconds}) == 2
    assert "shares of time: triad 1000 times, each other nest executed once" in result.text()


@pytest.mark.thorough
def test_charts_side_by_side_have_the_axes_that_are_asked_for(tmp_path):
    def limits(**options):
        result = km.roofline_chart("triad.c", "clx", model="all", N=4000, chart=km.ChartOptions(**options))
        figure = result.plot(tmp_path / "chart.svg")
        return [(one.get_xlim(), one.get_ylim()) for one in figure.axes if one.get_xscale() == "log"], result

    own, _ = limits()
    assert len(set(own)) > 1
    same, _ = limits(axes="same")
    assert len(set(same)) == 1
    assert same[0][0][0] == pytest.approx(min(x[0] for x, _ in own))
    given, result = limits(axes="0.01-100, 1-4000")
    assert set(given) == {((0.01, 100), (1, 4000))}
    assert not [note for note in result.notes if note.code == "outside-axes"]
    _, narrow = limits(axes="1e-3-1e-2,1-4000")
    assert [note.text for note in narrow.notes if note.code == "outside-axes"] == ["the axes leave out points of triad"]


def test_roofs_are_named_on_their_lines_in_characters():
    lines = km.roofline_chart("triad.c", "clx", N=20_000_000).drawing(width=90).split("bytes:")[0].splitlines()
    at_mem = next(line for line in lines if "Mem 55.12 GB/s" in line)
    assert at_mem.index("Mem") > 8
    ends = [line for line in lines if line.endswith(("GFLOP/s", "more"))]
    assert ends[0].endswith(" DP AVX-512 FMA 800 GFLOP/s")
    assert any("in-core throughput 133.3 GFLOP/s" in line for line in ends)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by_time": True, "calls": ["tria=3"]}, "there is no kernel 'tria' on the chart; did you mean 'triad'"),
        ({"by_time": True, "calls": ["triad=-1"]}, "triad=-1 is no count of a kernel; write --calls stencil=100"),
        ({"by_time": True, "calls": {"stencil": 0, "triad": 0}}, "no kernel takes any time"),
        ({"calls": ["triad=3"]}, "give it with --by-time"),
        ({"axes": "wide"}, "'wide' gives no limits; write same, or FLOP/B and GFLOP/s"),
        ({"axes": "1-1,1-2"}, "gives no limits"),
    ],
)
def test_what_does_not_fit_is_refused(options, said):
    with pytest.raises(km.KernmodelError, match=said.replace("(", r"\(")):
        charts(**options)


def test_one_kernel_has_no_versions_and_code_alone_no_time():
    with pytest.raises(km.InputError, match="triad is the only version"):
        km.roofline_chart("triad.c", "clx", chart=km.ChartOptions(versions=True))
    with pytest.raises(km.InputError, match=r"there is no chart of nosuch\.c: nosuch\.c: no such kernel"):
        km.roofline_chart(["triad.c", "nosuch.c", "dot.c"], "clx", chart=km.ChartOptions(versions=True))
    loop = ".L1:\nvaddpd (%rax), %ymm0, %ymm0\nadd $32, %rax\ncmp %rax, %rbx\njne .L1\n"
    with pytest.raises(km.InputError, match="it has no source"):
        km.roofline_chart(loop, "clx", model="carm", chart=km.ChartOptions(by_time=True))
