"""Where the default takes layer conditions, where it simulates, and what it says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.studies.predict.request import KernelRequest, TrafficAnswer
from kernmodel.studies.predict.traffic import predict_traffic_sweep
from kernmodel.traffic.comparison.agreement import differs

STENCIL = """#define N 1000
#define M 40
double a[M][N], b[M][N];
for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i)
  b[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i];
"""
NINE_ROWS = (
    """double a[9][4096], b[4096];
for (int i = 0; i < 4096; ++i) b[i] = """
    + " + ".join(f"a[{k}][i]" for k in range(9))
    + ";\n"
)
NARROW = STENCIL.replace("1000", "12").replace("M 40", "M 200")
STREAMS = "#define N 2048\ndouble a[N], b[N];\nfor (int i = 0; i < N; ++i) a[i] = b[i];\n"
IN_PLACE = "double a[40][40];\nfor (int j = 0; j < 40; ++j) for (int i = 0; i < 40; ++i) a[j][i] += a[i][j];\n"
MEMBERS = "double p[4096][12]; double s;\nfor (int i = 0; i < 4096; ++i) s += p[i][4] + p[i][8] + p[i][11];\n"


def predict_traffic(kernel: KernelRequest) -> TrafficAnswer:
    return next(predict_traffic_sweep(kernel, (kernel.sizes,)))


def answers(folder: Path, text: str, machine: str = "clx", **sizes: int) -> tuple[TrafficAnswer, TrafficAnswer]:
    """By default, and simulated."""
    path = folder / "k.c"
    path.write_text(text)
    default, simulated = (
        predict_traffic(KernelRequest(str(path), machine, sizes, cache=cache)) for cache in ("auto", "sim")
    )
    return default, simulated


@pytest.mark.thorough
@pytest.mark.parametrize("machine", ["clx", "hsw", "zen2"])
@pytest.mark.parametrize(("text", "sizes", "cause"), [
    (STENCIL, {"N": 5000}, None),
    (STENCIL, {"N": 1100}, None),
    (STENCIL, {"N": 1045}, "threshold"),
    (STREAMS, {"N": 2080}, "threshold"),
    (STREAMS, {"N": 1900}, None),
    (NINE_ROWS, {}, "few-sets"),
    (NARROW, {}, "short-rows"),
    (IN_PLACE, {}, "index-patterns"),
])  # fmt: skip
def test_the_default_agrees_with_the_simulation(
    tmp_path: Path, machine: str, text: str, sizes: dict[str, int], cause: str | None
) -> None:
    default, simulated = answers(tmp_path, text, machine, **sizes)
    assert not differs(default.traffic, simulated.traffic)
    if default.symbolic is None:
        assert default.traffic.method == "layer conditions"
        assert default.differences == ()
    else:
        assert {each.reason_code for each in default.differences} == {cause}
        note = next(note for note in default.notes if note.code == cause)
        assert note.kind == "assumption"
        assert default.traffic.conditions == default.symbolic.conditions
    if cause is None:
        assert default.symbolic is None


def test_few_planes_are_named_where_windows_cannot_see_their_ends(tmp_path: Path) -> None:
    """28 planes of 32 are updated, of a nest too large for whole sweeps: 2.19 lines from memory where 2 are counted."""
    near = [f"{sign}{steps}" for steps in (1, 2) for sign in "+-"]
    rows = " + ".join([f"a[k{n}][j][i] + a[k][j{n}][i] + a[k][j][i{n}]" for n in near])
    (tmp_path / "k.c").write_text(
        "double a[32][256][256], b[32][256][256];\n"
        "for (int k = 2; k < 30; ++k) for (int j = 2; j < 254; ++j) for (int i = 2; i < 254; ++i)\n"
        f"  b[k][j][i] = {rows};\n"
    )
    answer = predict_traffic(KernelRequest(str(tmp_path / "k.c"), "clx", {}))
    assert answer.traffic.method == "layer conditions"
    (note,) = [note for note in answer.notes if note.code == "short-rows"]
    assert "lines at the ends of rows and planes can add 1" in note.text


def test_a_sparse_walk_leaves_some_sets_emptier_than_others(tmp_path: Path) -> None:
    """646 elements 152 bytes apart need 1.26 times L1; sets that have fewer of them keep theirs: 0.70 lines, not 1."""
    text = "double px[646][19]; double s;\nfor (int i = 0; i < 646; ++i) s += px[i][11];\n"
    default, simulated = answers(tmp_path, text)
    assert not differs(default.traffic, simulated.traffic)
    assert {note.code for note in default.notes} >= {"threshold"}


@pytest.mark.parametrize(("machine", "stores"), [("tx2", 2.0), ("zen2", 2.0), ("hsw", 1.0)])
def test_modified_lines_of_few_sets_may_leave_twice_to_a_victim_cache(
    tmp_path: Path, machine: str, stores: float
) -> None:
    """Along planes of 128 KiB all lines fall into one set of L1 and of L2, which lose them long before their reuse."""
    text = (
        "double a[32][64][256], b[32][64][256];\n"
        "for (int i = 0; i < 64; ++i) for (int j = 0; j < 64; ++j) for (int k = 0; k < 32; ++k)\n"
        "  b[k][j][i] += 2.0 * a[k][j][i];\n"
    )
    default, simulated = answers(tmp_path, text, machine)
    assert not differs(default.traffic, simulated.traffic)
    assert default.traffic.path("L2L3").stores == pytest.approx(stores, rel=0.01)
    noted = [note for note in default.notes if note.code == "few-sets"]
    assert bool(noted) == (stores > 1)


def test_structures_across_lines_are_looked_at(tmp_path: Path) -> None:
    default, simulated = answers(tmp_path, MEMBERS)
    assert not differs(default.traffic, simulated.traffic)


def test_a_sweep_does_not_jump_where_the_method_changes(tmp_path: Path) -> None:
    """Where one point is simulated and its neighbour is not, both methods say the same of either."""
    path = tmp_path / "k.c"
    path.write_text(STENCIL)
    points = [{"N": n} for n in range(960, 1200, 20)]
    found = {
        cache: list(predict_traffic_sweep(KernelRequest(str(path), "clx", {}, cache=cache), points))
        for cache in ("auto", "sim")
    }
    for default, simulated in zip(*found.values(), strict=True):
        assert not differs(default.traffic, simulated.traffic)


def test_halves_of_blocks_are_both_in_the_caches_before_counting(tmp_path: Path) -> None:
    """Blocks of two lines, whose halves one reference each walks through: what the caches hold before the place where
    lines are counted has both, so that all four modified lines leave L3 per unit of work."""
    text = """double re[4800000], im[4800000], wr[8], wi[8];
for (int k = 0; k < 4800000; k += 16) for (int j = 0; j < 8; j++) {
  double tr = wr[j] * re[k+j+8] - wi[j] * im[k+j+8];
  double ti = wr[j] * im[k+j+8] + wi[j] * re[k+j+8];
  re[k+j+8] = re[k+j] - tr;  im[k+j+8] = im[k+j] - ti;
  re[k+j] += tr;  im[k+j] += ti;
}
"""
    (tmp_path / "k.c").write_text(text)
    answer = predict_traffic(KernelRequest(str(tmp_path / "k.c"), "zen3", {}))
    assert all(note.code != "not-settled" for note in answer.notes)
    memory = answer.traffic.paths[-1]
    assert (memory.loads, memory.stores) == pytest.approx((4, 4), rel=0.05)


def test_a_simulation_that_has_not_settled_does_not_overrule(tmp_path: Path) -> None:
    """Of the columns of a square of 288 MB some sets of L3 are still empty after a short history, so that 0.10 modified
    lines leave it for 0.25 that enter; in a longer simulation they are 0.25, as layer conditions have it."""
    (tmp_path / "k.c").write_text(
        "double a[6000][6000];\nfor (int i = 0; i < 6000; ++i) for (int j = i + 1; j < 6000; ++j)\n"
        "  { double t = a[i][j]; a[i][j] = a[j][i]; a[j][i] = t; }\n"
    )
    answer = predict_traffic(KernelRequest(str(tmp_path / "k.c"), "clx", {}))
    assert answer.traffic.method == "layer conditions"
    assert answer.traffic.path("L3Mem").stores == pytest.approx(0.25, rel=0.01)
    (note,) = [note for note in answer.notes if note.code == "not-settled"]
    assert "layer conditions stand" in note.text and "L3Mem" in note.text


@pytest.mark.parametrize(("places", "rows", "pitch", "method", "lines"), [
    ("24 * i, 24 * i + 1", 1, 72000, "layer conditions", 1),
    ("24 * i + 7, 24 * i + 8", 1, 72000, "layer conditions", 2),
    ("-24 * i + 71979, -24 * i + 71980, -24 * i + 71996", 1, 72000, "layer conditions", 2),
    ("24 * i + 1, 24 * i + 25", 1, 72100, "layer conditions", 1),
    ("24 * i, 24 * i + 7", 24, 72004, "simulation", 1.5),
])  # fmt: skip
def test_places_in_long_strides_share_lines(
    tmp_path: Path, places: str, rows: int, pitch: int, method: str, lines: float
) -> None:
    """Lines per iteration: places within a line are one; rows may begin in the middle of a line."""
    text = " + ".join(f"a[j][{place}]" for place in places.split(", "))
    (tmp_path / "k.c").write_text(
        f"double a[{rows}][{pitch}], s; for (int j = 0; j < {rows}; ++j) for (int i = 0; i < 2999; ++i) s += {text};\n"
    )
    traffic = predict_traffic(KernelRequest(str(tmp_path / "k.c"), "spr", {})).traffic
    assert traffic.method == method
    assert traffic.paths[0].loads / traffic.iterations_per_unit == pytest.approx(lines, rel=0.01)


@pytest.mark.parametrize("text", [
    "double a[2000][2000], d[2000]; for (int i = 0; i < 1999; ++i) d[i] = a[i][i] + a[i][i+1];",
    "double a[999][1024], d[999]; for (int i = 9; i < 990; ++i) d[i] = a[i][i-8] + a[i][i] + a[i][i+8];",
    "double a[200][100], b[100][100]; for (int i = 0; i < 100; ++i) for (int j = 0; j < 100; ++j) b[i][j] = a[i+j][j];",
    "double a[100][300], d[100]; "
    "for (int j = 1; j < 9; ++j) for (int i = 8; i < 95; ++i) d[i] += a[i][i+j] + a[i-1][i+j-1] + a[i-8][i];",
    "double a[30][2032]; for (int t = 1; t < 30; ++t) for (int i = t + 1; i < 2000 + t; ++i) "
    "a[t][i-t+1] = a[t-1][i-t] + a[t-1][i-t+1] + a[t-1][i-t+2];",
])  # fmt: skip
@pytest.mark.parametrize("machine", ["snb", "spr"])
def test_loops_that_move_several_dimensions(tmp_path: Path, text: str, machine: str) -> None:
    """A step along a diagonal is a step in both dimensions: a[i][i+1] is not a[i][i] an iteration later."""
    default, simulated = answers(tmp_path, text + "\n", machine)
    assert not differs(default.traffic, simulated.traffic)


def test_what_is_doubted_is_said_where_layer_conditions_are_taken_at_their_word(tmp_path: Path) -> None:
    path = tmp_path / "k.c"
    path.write_text(STENCIL.replace("M 40", "M 400"))
    found = {n: predict_traffic(KernelRequest(str(path), "clx", {"N": n}, cache="lc")) for n in (1045, 5000)}
    noted = {n: [note for note in answer.notes if "may not hold" in note.text] for n, answer in found.items()}
    assert [note.code for note in noted[1045]] == ["threshold"] and not noted[5000]
