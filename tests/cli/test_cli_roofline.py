"""`kernmodel roofline`, `kernmodel carm`, and `--plot` of `kernmodel ecm`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

needs_compiler = pytest.mark.needs("as", "gcc|clang")

COPY = """\
void copy(double *restrict a, const double *restrict b, int N) {
    for (int i = 0; i < N; ++i) a[i] = b[i];
}
"""
TRIAD = """\
f:
.L3:
        vmovupd (%rsi,%rax), %ymm0
        vfmadd231pd (%rdx,%rax), %ymm2, %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        jne     .L3
        ret
"""
MIX = """\
load_store_ratio: 14
memory:
  - {size: 8, share: 0.4}
  - {size: 64, share: 0.6}
fp:
  - {operation: add, precision: sp, width: avx512, share: 0.87}
  - {operation: fma, precision: sp, width: avx512, share: 0.13}
"""


@needs_compiler
def test_text_says_what_limits_and_which_bytes(run):
    outcome = run("roofline", "-m", "skx-6140", "stencil.c")
    assert (outcome.status, outcome.err) == (0, "")
    assert "at most 6.902 GFLOP/s, by the roof of Mem" in outcome.out
    assert "bytes between levels, write-allocates and evicted lines counted" in outcome.out
    assert "an FMA counts 2" in outcome.out
    assert "18 cores" in outcome.out  # of the ccNUMA domain, by default


@needs_compiler
@pytest.mark.parametrize("model", ["orm", "hierarchical", "carm", "irm", "adcarm"])
def test_every_model_has_its_bytes_and_its_points(document, model):
    found = document("roofline", "-m", "clx", "3d-7pt", "--model", model, "--cores", "10")
    (chart,) = found["kernels"][0]["charts"]
    assert chart["model"] == model
    assert ("core-side" in chart["bytes_meant"]) == ("carm" in model)
    assert len(chart["points"]) == {"orm": 1, "carm": 1, "adcarm": 1}.get(model, 4)


@needs_compiler
def test_the_point_is_the_prediction_on_these_cores(document):
    ecm = document("ecm", "-m", "clx", "stencil.c", "--cores", "20")
    found = document("roofline", "-m", "clx", "stencil.c", "--cores", "20")
    predicted = found["kernels"][0]["predicted"]
    assert predicted["flop_per_second"] == pytest.approx(ecm["scaling"][0]["in_units"]["FLOP/s"])
    assert "Memory bandwidth of each ccNUMA domain" in predicted["reason"]


@needs_compiler
def test_sizes_that_a_kernel_lacks_are_left_out_for_it(document):
    found = document("roofline", "-m", "clx", "stencil.c", "triad.c", "-D", "M=100", "-D", "N=3000")
    assert [one["kernel"]["sizes"] for one in found["kernels"]] == [{"M": 100, "N": 3000}, {"N": 3000}]


@needs_compiler
def test_a_size_of_no_kernel_is_refused(run):
    outcome = run("roofline", "-m", "clx", "stencil.c", "triad.c", "-D", "Q=3")
    assert outcome.status == 1
    assert "has no macro or parameter Q" in outcome.err


@needs_compiler
def test_points_of_one_kernel_are_told_apart(document):
    found = document("roofline", "-m", "clx", "triad", "-D", "N=1000,1000000")
    assert [one["name"] for one in found["kernels"]] == ["triad N=1000", "triad N=1000000"]


@needs_compiler
def test_without_floating_point_the_chart_bounds_bandwidth(run, document, tmp_path):
    file = tmp_path / "copy.c"
    file.write_text(COPY)
    outcome = run("roofline", "-m", "clx", file, "-D", "N=10000000", "--plot", "-")
    assert "It/s, by the roof of Mem" in outcome.out
    assert "bandwidth only" in outcome.out
    assert "AI = 0" in outcome.out
    chart = document("roofline", "-m", "clx", file, "-D", "N=10000000")["kernels"][0]["charts"][0]
    assert chart["bound"] == 0
    assert chart["iterations_per_second"] > 0


@needs_compiler
def test_without_memory_access_the_intensity_is_infinite(run, document):
    outcome = run("roofline", "-m", "clx", "pi", "--model", "carm", "--plot", "-")
    assert "∞" in outcome.out
    assert "moves no data" in outcome.out
    assert document("roofline", "-m", "clx", "pi", "--model", "carm")["kernels"][0]["charts"][0]["points"][0][
        "intensity"
    ] is None  # fmt: skip


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `carm` prints does not need the best block size: that is tested where candidates are ranked."""
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.FIRST", 1)
    monkeypatch.setattr("kernmodel.studies.blocking.candidates.MOST", 1)


@pytest.mark.thorough
@needs_compiler
@pytest.mark.usefixtures("few_simulations")
def test_carm_tells_the_whole_story(run):
    outcome = run("carm", "-m", "skx-6140", "3d-7pt.c", "-D", "N=400", "-D", "M=400")
    assert (outcome.status, outcome.err) == (0, "")
    for part in ("Instruction mix", "beside the scaled roofs", "memory share", "Reading", "What changes would do"):
        assert part in outcome.out
    assert "Mem deserves the work" in outcome.out


@needs_compiler
def test_a_mix_file_scales_the_roofs(document, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "kernmodel.studies.predict.roofline._blockings", lambda *_: ([], ())
    )  # seconds, for what is not looked at
    file = tmp_path / "mix.yml"
    file.write_text(MIX)
    found = document("carm", "-m", "skx-6140", "iso3dfd.c", "--mix", file)
    scaled = {roof["level"]: roof["bytes_per_second"] for roof in found["adcarm"]["memory_roofs"]}
    before = {roof["level"]: roof["bytes_per_second"] for roof in found["carm"]["memory_roofs"]}
    assert scaled["L1"] < before["L1"]
    assert scaled["Mem"] <= before["Mem"]
    assert {roof["name"] for roof in found["adcarm"]["compute_roofs"]} >= {"SP AVX-512 ADD", "SP AVX-512 FMA"}


def test_assembly_alone_has_the_cache_aware_charts(run, tmp_path):
    file = tmp_path / "triad.s"
    file.write_text(TRIAD)
    outcome = run("roofline", "-m", "clx", file, "--model", "all")
    assert (outcome.status, outcome.err) == (0, "")
    assert "Cache-aware roofline (CARM)" in outcome.out
    assert "Original roofline" not in outcome.out
    refused = run("roofline", "-m", "clx", file, "--model", "orm")
    assert refused.status == 1
    assert "carm or adcarm" in refused.err


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<?xml"), ("a.pdf", b"%PDF"), ("a.PNG", b"\x89PNG")])
def test_pictures_by_the_ending_of_the_file_and_twice_the_same(run, tmp_path, name, start):
    files = [tmp_path / f"{number}{name}" for number in range(2)]
    for file in files:
        assert run("carm", "-m", "clx", "triad", "--plot", file).status == 0
    assert files[0].read_bytes().startswith(start)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("command", ["roofline", "carm", "ecm"])
@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("a.gif", "the format '.gif' is not known"),
        ("a", "without an ending"),
        ("nowhere/a.svg", "there is no directory"),
        (".", "is a directory"),
    ],
)
def test_a_picture_that_cannot_be_is_refused_before_the_work(run, tmp_path, monkeypatch, command, file, said):
    monkeypatch.chdir(tmp_path)
    outcome = run(command, "-m", "no-such-machine", "no-such-kernel.c", "--plot", file)
    assert outcome.status == 2
    assert said in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_the_work(run):
    place = Path("/proc/kernmodel.svg")
    if not place.parent.is_dir():
        pytest.skip("no /proc")
    outcome = run("roofline", "-m", "no-such-machine", "no-such-kernel.c", "--plot", place)
    assert outcome.status == 2
    assert "nothing may be written in /proc" in outcome.err


def test_a_checked_file_keeps_its_content_where_the_work_fails(run, tmp_path):
    file = tmp_path / "old.svg"
    file.write_text("old")
    assert run("roofline", "-m", "no-such-machine", "stencil.c", "--plot", file).status == 1
    assert file.read_text() == "old"


@needs_compiler
def test_ecm_draws_sizes_and_cores(run, tmp_path):
    sizes, cores = tmp_path / "sizes.svg", tmp_path / "cores.svg"
    outcome = run("ecm", "-m", "clx", "stencil.c", "-D", "N=100-10000:5log", "--plot", sizes)
    assert (outcome.status, outcome.err) == (0, "")
    assert "T_L3Mem" in sizes.read_text()
    assert run("ecm", "-m", "clx", "stencil.c", "--cores", "1-20", "--plot", cores).status == 0
    assert "saturation, 9 cores" in cores.read_text()


@needs_compiler
def test_plot_without_a_file_draws_on_the_terminal_as_a_dash_does(run):
    for arguments in (("ecm", "-m", "clx", "triad"), ("roofline", "-m", "clx", "triad")):
        bare, dash = run(*arguments, "--plot"), run(*arguments, "--plot", "-")
        assert (bare.status, bare.out) == (0, dash.out)
        assert "│" in bare.out or "|" in bare.out


@needs_compiler
def test_a_kernel_that_fails_does_not_end_a_chart_of_several(run, tmp_path):
    bad, picture = tmp_path / "bad.c", tmp_path / "chart.svg"
    bad.write_text("void f(int n, double *a, int *b) { for (int i = 0; i < n; i++) a[b[b[i]]] = 1.0; }\n")
    outcome = run("roofline", "-m", "clx", "triad", bad, "stencil", "--plot", picture)
    assert outcome.status == 0
    assert "bad.c is left out of the chart: " in " ".join(outcome.out.split())
    assert "triad, stencil on Intel Xeon Gold 6248" in picture.read_text()
    assert run("roofline", "-m", "clx", bad, bad).status == 1
    assert run("roofline", "-m", "clx", "triad", bad, "--strict").status == 1


@needs_compiler
def test_a_roof_of_divisions_sets_no_region(run):
    """pi divides once in four operations: its code outruns the roof of divisions alone, 6.25 GFLOP/s."""
    document = json.loads(run("roofline", "-m", "clx", "pi", "--model", "adcarm", "--json").out)
    (chart,) = document["kernels"][0]["charts"]
    roofs = {roof["operation"]: roof["flop_per_second"] for roof in chart["compute_roofs"] if roof["operation"]}
    first = chart["memory_roofs"][0]["bytes_per_second"]
    assert roofs["div"] < chart["bound"]
    assert chart["memory_until"] * first > roofs["div"]


@needs_compiler
def test_points_say_whether_they_are_predicted_and_above_their_roof(run, tmp_path):
    listing = tmp_path / "loop.s"
    listing.write_text(".L1:\nvaddpd (%rax), %ymm0, %ymm0\nadd $32, %rax\ncmp %rax, %rcx\njne .L1\n")
    alone = json.loads(run("roofline", "-m", "clx", listing, "--model", "carm", "--json").out)
    point = alone["kernels"][0]["charts"][0]["points"][0]
    assert (point["predicted"], point["above_roof"]) == (False, None)
    kernels = json.loads(run("roofline", "-m", "clx", "stencil", "--model", "hierarchical", "--json").out)["kernels"]
    (chart,) = kernels[0]["charts"]
    heights = {roof["level"]: roof["bytes_per_second"] for roof in chart["memory_roofs"]}
    for point in chart["points"]:
        own = point["intensity"] * heights[point["level"]]
        assert point["predicted"]
        assert point["above_roof"] == (point["level"] if point["flop_per_second"] > 1.001 * own else None)


@needs_compiler
def test_text_does_not_load_matplotlib(run_apart):
    outcome = run_apart("roofline", "-m", "clx", "triad", PYTHONPROFILEIMPORTTIME="1")
    assert outcome.returncode == 0
    assert not re.search(r"\|\s+matplotlib", outcome.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no kernel"),
        (("triad", "--plot", "-", "--json"), "would mix a drawing into the JSON document"),
        (("triad", "--mask-utilization", "0"), "is no share"),
        (("triad", "--mask-utilization", "x"), "is no share"),
        (("triad", "--cores", "99"), "clx has 40"),
        (("triad", "stencil", "--asm", "x.s"), "several kernels"),
        (("triad", "x.s"), "is no C source"),
        (("x.s", "-D", "N=1"), "there is no C source"),
    ],
)
def test_options_that_do_not_fit(run, arguments, said):
    outcome = run("roofline", "-m", "clx", *arguments)
    assert outcome.status == 2
    assert said in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory: [{size: 8, share: 0.5}, {size: 64, share: 0.3}]\nload_store_ratio: 2\n", "sum to 0.8"),
        ("fp: [{operation: frobnicate, precision: dp, lanes: 1, share: 1}]\n", "frobnicate"),
    ],
)
def test_a_wrong_mix_file(run, tmp_path, text, said):
    file = tmp_path / "mix.yml"
    file.write_text(text)
    outcome = run("carm", "-m", "clx", "--mix", file)
    assert outcome.status == 1
    assert said in outcome.err
    assert "mix.yml" in outcome.err


def test_a_machine_without_measurements_of_a_ratio_derives_its_roofs(document, tmp_path):
    """Only memory was measured, only loads: all other roofs follow from ports and widths, and say so."""
    import yaml

    from kernmodel.machine.load import load_machine

    figures = yaml.safe_load(Path(load_machine("skx-6140").file).read_text())
    bandwidths = figures["bandwidths"]
    bandwidths["measured"] = [series for series in bandwidths["measured"] if series["level"] == "Mem"]
    machine, code = tmp_path / "bare.yml", tmp_path / "triad.s"
    machine.write_text(yaml.safe_dump(figures, sort_keys=False))
    code.write_text(TRIAD)
    found = document("roofline", "-m", machine, code, "--model", "adcarm")
    origins = {roof["level"]: roof["origin"] for roof in found["kernels"][0]["charts"][0]["memory_roofs"]}
    assert set(origins) == {"L1", "L2", "L3", "Mem"}
    assert all(origin.startswith("derived: ") for origin in origins.values())
