"""Pages in a real browser. The pages are those of commands; what they say is tested with the reports."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

import kernmodel as km

HOSTILE = """/* </script><script>alert(1)</script> <!-- &amp; */
#define N 4000
double a[N][N], b[N][N]; // "</style>' <img src=x onerror=alert(2)>
for (int j = 1; j < N - 1; ++j)
    for (int i = 1; i < N - 1; ++i)
        b[j][i] = 0.25 * (a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]);
"""
LEFT_OUT = ("carm", "blocking", "sensitivity")
MOST_BYTES = 1_500_000
CORNERS = """() => [...document.querySelectorAll('figure.chart svg text')].map((one) => {
  const box = one.getBBox(), place = one.getScreenCTM();
  const at = (x, y) => { const p = new DOMPoint(x, y).matrixTransform(place); return [p.x, p.y]; };
  const chart = [...document.querySelectorAll('figure.chart')].indexOf(one.closest('figure'));
  const [low, high] = [box.y + 0.2 * box.height, box.y + 0.8 * box.height];
  return { text: one.textContent, chart,
    corners: [at(box.x, low), at(box.x + box.width, low), at(box.x + box.width, high), at(box.x, high)] };
})"""


def overlap(one: list[list[float]], other: list[list[float]]) -> bool:
    """Whether two turned rectangles share a place: no side of either parts them."""
    for box in (one, other):
        for (a, b), (c, d) in ((box[0], box[1]), (box[1], box[2])):
            ends = []
            for corners in (one, other):
                along = [x * (c - a) + y * (d - b) for x, y in corners]
                ends.append((min(along), max(along)))
            if ends[0][1] <= ends[1][0] or ends[1][1] <= ends[0][0]:
                return False
    return True


class Pages(dict[str, str]):
    """Each page is made when a test first asks for it: most tests are skipped where there is no browser."""

    def __missing__(self, name: str) -> str:
        self[name] = PAGES[name]().html()
        return self[name]


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


PAGES = {
    "ecm": lambda: km.ecm(HOSTILE, machine="clx"),
    "report": lambda: km.kernel_report(HOSTILE, "clx", over={"N": "100,1000,40000"}, without=LEFT_OUT),
    "sizes": lambda: km.ecm("stencil.c", machine="clx", N="100,1000,10000,100000"),
    "rooflines": lambda: km.roofline_chart("stencil.c", machine="clx", model="all", N=4000),
    "versions": lambda: km.roofline_chart(["stencil.c", "triad.c"], "clx", chart=BESIDE, N=4000),
    "scaling": lambda: km.scale("triad.c", machine="zen2", cores="1-8"),
    "traffic": lambda: km.data_traffic("stencil.c", machine="clx"),
    "comparison": lambda: km.comparison_report([PHASES, "triad.c"], ["clx", "zen2"], N=2000),
    "machines": lambda: km.compare("triad.c", ["clx", "zen2", "graviton2"], N=10_000_000),
}
PHASES = """double a[2000][2000], b[2000][2000];
void app(int N) {
  for (int j = 1; j < 1999; ++j) for (int i = 1; i < 1999; ++i) b[j][i] = a[j-1][i] + a[j+1][i];
  for (int i = 0; i < N; ++i) a[0][i] = 2.0 * b[0][i];
}
"""
BESIDE = km.ChartOptions(versions=True, by_time=True, calls={"triad": 500})
UNNAMED = (
    "[...document.querySelectorAll('button, input')].filter((one) => !one.labels?.length && !one.ariaLabel).length"
)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_faults_and_nothing_overlaps(pages, opened, name, width):
    found = opened(pages[name], width, color_scheme="dark" if width == 390 else "light")
    page = found.page
    assert found.faults == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in found.requests)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    texts = page.evaluate(CORNERS)
    assert len(texts) > 10
    pairs = [
        (one["text"], other["text"])
        for one, other in combinations(texts, 2)
        if one["chart"] == other["chart"] and overlap(one["corners"], other["corners"])
    ]
    assert pairs == []
    assert page.evaluate(UNNAMED) == 0
    charts = page.locator("figure.chart").all()
    assert charts
    for chart in charts:
        assert chart.locator("details td").count() > 0
        sheet = chart.locator("svg[role=img]")
        assert sheet.get_attribute("tabindex") == "0"
        assert len(sheet.get_attribute("aria-label")) > 40


@pytest.mark.thorough
def test_all_pages_are_small(pages):
    assert all(len(pages[name].encode()) <= MOST_BYTES for name in PAGES)


def test_a_page_is_small_and_the_same_each_time(pages):
    assert km.ecm(HOSTILE, machine="clx").html() == pages["ecm"]
    assert len(pages["ecm"].encode()) <= MOST_BYTES


@pytest.mark.parametrize("name", ["ecm", "report"])
def test_text_of_the_user_is_text(pages, opened, name):
    found = opened(pages[name])
    assert found.faults == []
    assert found.page.locator("img").count() == 0
    assert found.page.locator("script:not([type])").count() == 1


def test_the_source_stands_in_the_page_as_it_was_given(pages, opened):
    lines = opened(pages["report"]).page.locator("[aria-label=Source] td:nth-child(2)").all_text_contents()
    assert "\n".join(lines) == HOSTILE.rstrip("\n")


def test_lines_of_source_and_assembly_are_linked(pages, opened):
    page = opened(pages["report"]).page
    source = page.locator("[aria-label=Source] tr.main", has_text="0.25")
    source.hover()
    marked = page.locator("[aria-label=Assembly] tr.linked").all_text_contents()
    assert any("vaddpd" in text for text in marked)
    assert any("vmulpd" in text for text in marked)
    page.mouse.move(0, 0)
    assert page.locator("tr.linked").count() == 0
    page.locator("[aria-label=Assembly] tr", has_text="vmulpd").focus()
    assert "linked" in source.get_attribute("class")


def test_references_are_marked_by_their_kind(pages, opened):
    page = opened(pages["report"]).page
    listing = page.locator("[aria-label=Source]")
    assert listing.locator("mark.write").all_text_contents() == ["b[j][i]"]
    assert listing.locator("mark.flop").all_text_contents() == ["*", "+", "+", "+"]
    assert listing.locator("mark:not([class])").all_text_contents() == [
        "a[j][i-1]",
        "a[j][i+1]",
        "a[j-1][i]",
        "a[j+1][i]",
    ]


def test_the_slider_moves_conditions_bars_and_lines(pages, opened):
    page = opened(pages["report"]).page
    slider = page.get_by_role("slider")
    said = page.locator(".slider output")
    assert said.text_content().startswith("N = 4000:")
    bars = page.locator("#sizes figure.chart[data-kind=bars]").first
    place = page.locator("#sizes figure.chart .place").first
    before = bars.evaluate(BARS), place.get_attribute("x1"), page.locator("[data-frame]:visible").text_content()
    slider.focus()
    page.keyboard.press("Home")
    assert said.text_content().startswith("N = 100:")
    after = bars.evaluate(BARS), place.get_attribute("x1"), page.locator("[data-frame]:visible").text_content()
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert page.locator("[data-frame]:visible").count() == 1


BARS = "(figure) => [...figure.querySelectorAll('svg[role=img] > rect')].map((one) => one.getAttribute('width')).join()"


def test_hovering_over_a_roof_says_what_it_is(pages, opened):
    page = opened(pages["rooflines"]).page
    chart = page.locator("figure.chart").first
    assert chart.locator(".tip").text_content() == ""
    x, y = point_of(chart, "stencil")
    page.mouse.move(x, y)
    said = chart.locator(".tip").text_content()
    assert "FLOP/B" in said
    assert "predicted" in said
    assert "of the bound" in said
    page.mouse.move(0, 0)
    assert chart.locator(".tip").text_content() == ""


def point_of(chart: Any, name: str) -> tuple[float, float]:
    """Where the mark of a kernel is on the screen."""
    mark = chart.locator("svg[role=img] g path[transform]").first
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_measurement_stands_beside_the_prediction_with_its_share(opened, tmp_path):
    file = tmp_path / "measured.csv"
    file.write_text("kernel,GFLOP/s\ntriad,1.5\n")
    beside = km.ChartOptions(measured=file)
    text = km.roofline_chart("triad.c", "clx", model="orm", chart=beside, N=10_000_000, cores=1).html()
    chart = opened(text).page.locator("figure.chart").first
    assert chart.get_by_label("measured", exact=True).count() == 1
    labels = [label for label in chart.locator("text.label").all_text_contents() if "% of" in label]
    assert len(labels) == 1


def test_versions_are_joined_and_marks_are_as_large_as_their_share_of_the_time(pages, opened):
    chart = opened(pages["versions"]).page.locator("figure.chart").first
    assert chart.locator("path.arrow").count() == chart.locator("path.arrowhead").count() == 1
    widths = chart.evaluate(WIDTHS)
    shares = km.roofline_chart(["stencil.c", "triad.c"], "clx", chart=BESIDE, N=4000).answer.times
    assert widths[0] > widths[1] > 0
    assert shares["stencil"] > shares["triad"]
    chart.get_by_label("versions", exact=True).uncheck()
    assert chart.locator("path.arrow").count() == 0


WIDTHS = """(figure) => ['stencil', 'triad'].map((name) => {
  const key = [...figure.querySelectorAll('.legend label')].find((one) => one.textContent === name);
  const hue = key.querySelector('path').getAttribute('fill');
  const marks = [...figure.querySelectorAll('g[clip-path] > path[transform]')];
  return marks.find((one) => one.getAttribute('fill') === hue).getBoundingClientRect().width;
})"""


def test_a_time_that_is_not_known_is_named(pages, opened):
    found = opened(pages["machines"]).page.locator("figure.chart svg text").all_text_contents()
    assert "T_L3Mem (not known)" in found


def test_a_roof_is_switched_off_and_on(pages, opened):
    page = opened(pages["rooflines"]).page
    chart = page.locator("figure.chart").nth(1)
    drawn = chart.locator("svg[role=img] g[clip-path] > path")
    before = drawn.count()
    chart.get_by_label("L3", exact=True).uncheck()
    assert drawn.count() == before - 1
    assert "L3" not in [text.split()[0] for text in chart.locator("text.label").all_text_contents() if "B/s" in text]
    chart.get_by_label("L3", exact=True).check()
    assert drawn.count() == before


def test_labels_of_slanted_roofs_follow_zoom_and_size(pages, opened):
    page = opened(pages["rooflines"]).page
    chart = page.locator("figure.chart").first
    angles = []
    for act in (lambda: None, lambda: chart.get_by_role("button", name="Zoom in").click(), lambda: narrow(page)):
        act()
        label = chart.locator("text.label", has_text="Mem").first
        turned = float(re.search(r"rotate\((-?[\d.]+)\)", label.get_attribute("transform"))[1])
        angles.append(turned)
        assert abs(turned - slope_of(chart)) < 0.5
    assert len({round(angle, 1) for angle in angles}) > 1


def narrow(page: Any) -> None:
    page.set_viewport_size({"width": 500, "height": 800})
    page.wait_for_timeout(100)


def slope_of(chart: Any) -> float:
    """The angle at which the roof of memory is drawn."""
    return chart.evaluate("""(figure) => {
      const path = figure.querySelector('svg[role=img] g[clip-path] > path');
      const [[a, b], [c, d]] = path.getAttribute('d').slice(1).split('L').map((pair) => pair.split(',').map(Number));
      return Math.atan2(d - b, c - a) * 180 / Math.PI;
    }""")


def test_a_chart_is_read_and_zoomed_by_keys(pages, opened):
    page = opened(pages["sizes"]).page
    chart = page.locator("figure.chart").first
    chart.locator("svg[role=img]").focus()
    page.keyboard.press("ArrowRight")
    first = chart.locator(".tip").text_content()
    page.keyboard.press("ArrowRight")
    second = chart.locator(".tip").text_content()
    assert "N = " in first
    assert first != second
    page.keyboard.press("Escape")
    assert chart.locator(".tip").text_content() == ""
    ticks = chart.locator(".tick").all_text_contents()
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert chart.locator(".tick").all_text_contents() != ticks
    page.keyboard.press("0")
    assert chart.locator(".tick").all_text_contents() == ticks


def test_a_stretch_drawn_with_the_mouse_is_zoomed_to(pages, opened):
    page = opened(pages["sizes"]).page
    chart = page.locator("figure.chart svg[role=img]").first
    ticks = page.locator("figure.chart").first.locator(".tick").all_text_contents()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"], steps=4)
    page.mouse.up()
    assert page.locator("figure.chart").first.locator(".tick").all_text_contents() != ticks


def test_without_its_script_a_page_shows_its_tables(pages, opened):
    page = opened(pages["sizes"], java_script_enabled=False).page
    page.locator("figure.chart summary").first.click()
    assert page.locator("figure.chart table").first.is_visible()


def test_a_printed_page_has_several_sheets(pages, opened):
    page = opened(pages["ecm"], color_scheme="dark").page
    sheets = page.pdf(format="A4").count(b"/Type /Page\n")
    assert 2 <= sheets <= 12
    page.emulate_media(media="print")
    assert page.locator(".controls").count() == 0 or not page.locator(".controls").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
