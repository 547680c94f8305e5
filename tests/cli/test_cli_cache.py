"""The two ways to the traffic on the command line: --cache, --stores, --cores and the options of the simulation."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from kernmodel.cli.types import BYTES
from kernmodel.errors import UsageError

STENCIL = ("traffic", "-m", "clx", "stencil", "-D", "N=1000", "-D", "M=400")
GATHER = ("traffic", "-m", "clx", "gather", "-D", "N=20000", "-D", "M=30000")
needs_compiler = pytest.mark.needs("gcc|clang")


def assert_refused(outcome, status: int, *parts: str) -> None:
    assert (outcome.status, outcome.out) == (status, ""), outcome
    assert outcome.err.startswith("kernmodel: error: ")
    assert outcome.err.count("\n") == 1, "one line"
    for part in parts:
        assert part in outcome.err


def document(run, *arguments: str):
    outcome = run(*arguments, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


def modules_after(*arguments: str) -> set[str]:
    code = f"from kernmodel.cli.main import main; main({list(arguments)!r}); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("command", ["traffic", "ecm"])
def test_layer_conditions_load_no_simulator(command):
    loaded = modules_after(command, "-m", "clx", "stencil")
    assert "kernmodel.traffic.conditions.layer_conditions" in loaded
    assert not loaded & {"kernmodel.cachesim.engine", "kernmodel.traffic.simulation.simulate", "numpy", "numba"}


def test_layer_conditions_by_default(run):
    outcome = run(*STENCIL)
    assert "layer conditions (they apply to every reference)" in outcome.out
    assert "Layer conditions (bytes needed" in outcome.out


def test_simulated(run):
    outcome = run(*STENCIL, "--cache", "sim")
    assert (outcome.status, outcome.err) == (0, "")
    for part in ("method        simulation", "Requests per cache", "dirty victims", "settled", "Traffic per reference"):
        assert part in outcome.out
    assert "Layer conditions" not in outcome.out


def test_an_indirect_kernel_is_simulated_and_says_why(run):
    outcome = run(*GATHER, "--indirect", "idx=uniform")
    assert (outcome.status, outcome.err) == (0, "")
    assert "the traffic was simulated, because options of the simulation were given" in outcome.out
    assert "x[idx[i]]" in outcome.out


def test_an_indirect_kernel_without_a_distribution_says_what_to_do(run):
    assert_refused(run(*GATHER), 1, "--indirect idx=uniform|banded:K|FILE")


def test_layer_conditions_do_not_apply_to_indirect_kernels(run):
    assert_refused(run(*GATHER, "--cache", "lc"), 1, "gather.c:")


def test_several_index_patterns_are_simulated(run, tmp_path):
    path = tmp_path / "k.c"
    body = "for (int j = 0; j < 300; ++j) for (int i = 0; i < 300; ++i) b[j][i] = a[j][i] + a[i][j];"
    path.write_text(f"double a[300][300], b[300][300];\n{body}\n")
    outcome = run("traffic", "-m", "clx", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "layer conditions do not hold for L2L3: array a is indexed in 2 ways" in " ".join(outcome.out.split())
    assert "warning" not in outcome.out


def test_both_side_by_side(run):
    outcome = run(*STENCIL, "--cache", "both")
    assert (outcome.status, outcome.err) == (0, "")
    for part in ("Layer conditions and simulation", "Layer conditions (bytes", "Requests per cache"):
        assert part in outcome.out
    answer = document(run, *STENCIL, "--cache", "both")
    assert (answer["traffic"]["method"], answer["symbolic"]["method"]) == ("simulation", "layer conditions")
    for one, other in zip(answer["symbolic"]["paths"], answer["traffic"]["paths"], strict=True):
        assert one["loads"] == pytest.approx(other["loads"], rel=0.05, abs=0.05)


def test_both_where_nothing_moves(run):
    """Once a table of headings alone."""
    outcome = run("traffic", "-m", "clx", "copy", "-D", "N=1000", "--cache", "both")
    assert "  agree: no lines move beyond L1\n" in outcome.out
    assert "difference  reason" not in outcome.out


def test_json_of_a_simulation(run):
    answer = document(run, *STENCIL, "--cache", "sim")
    first = answer["traffic"]["levels"][0]
    assert first["loads"] == first["load_hits"] + first["load_misses"]
    assert answer["traffic"]["sampling"]["measured"] > 0
    assert answer["symbolic"] is None


@needs_compiler
def test_ecm_of_simulated_traffic(run):
    answer = document(run, "ecm", "-m", "clx", "matvec-transposed.c", "--cache", "sim", "-D", "N=4000", "-D", "M=300")
    assert answer["traffic"]["method"] == "simulation"
    plain = document(run, "ecm", "-m", "clx", "matvec-transposed.c", "-D", "N=4000", "-D", "M=300")
    assert answer["prediction"]["cycles"] == pytest.approx(plain["prediction"]["cycles"], rel=0.1)


@needs_compiler
def test_ecm_over_sizes_and_cores_of_simulated_traffic(run):
    outcome = run("ecm", "-m", "clx", "copy", "--cache", "sim", "-D", "N=100000,200000", "--cores", "1,2")
    assert (outcome.status, outcome.err) == (0, "")
    assert len([line for line in outcome.out.splitlines() if "cy/CL" in line]) == 1 + 1 + 2 * 2


def test_random_replacement_depends_on_its_seed_only(run):
    arguments = ("traffic", "-m", "clx", "matvec", "-D", "N=4100", "-D", "M=50", "--policy", "random")
    one, same, other = (document(run, *arguments, "--seed", seed)["traffic"] for seed in ("1", "1", "2"))
    assert one == same
    assert one["levels"] != other["levels"]


def test_conflicts_show_with_alias_and_go_with_a_pad(run):
    arguments = ("traffic", "-m", "clx", "schoenauer", "--cache", "sim")
    served = [
        document(run, *arguments, "-D", "N=100000", *layout)["traffic"]["levels"][0]["load_misses"]
        for layout in ((), ("--alias",), ("--alias", "--pad", "64 B"))
    ]
    assert served[0] <= served[1]
    assert served[0] == pytest.approx(served[2], rel=0.05)


def test_a_core_range_gives_a_table(run):
    outcome = run("traffic", "-m", "clx", "copy", "--stores", "regular", "--cores", "1-4", "-D", "N=400000,500000")
    rows = [line.split() for line in outcome.out.splitlines() if line.split()[:1] in (["400000"], ["500000"])]
    assert [(row[0], row[1]) for row in rows] == [(n, c) for n in ("400000", "500000") for c in "1234"]
    points = document(run, "traffic", "-m", "clx", "copy", "--cores", "1,3")["points"]
    assert [point["traffic"]["cores"] for point in points] == [1, 3]


@pytest.mark.parametrize("cache", ["lc", "sim"])
def test_streaming_stores_load_nothing(run, cache):
    arguments = ("traffic", "-m", "clx", "copy", "-D", "N=4000000", "--cache", cache)
    loads = {
        stores: document(run, *arguments, "--stores", stores)["traffic"]["paths"][-1]["loads"]
        for stores in ("regular", "nt", "evading")
    }
    assert loads == pytest.approx({"regular": 2, "nt": 1, "evading": 1}, rel=0.02)


@pytest.mark.parametrize("cache", ["lc", "sim"])
def test_evasion_that_finds_nothing_to_evade_says_so(run, tmp_path, cache):
    (tmp_path / "strided.c").write_text("double a[N], c[M];\nfor (int i = 0; i < N; ++i) c[2*i] = a[i];\n")
    sizes = ("-D", "N=4000000", "-D", "M=8000000", "--cache", cache, "--stores", "evading")
    outcome = run("traffic", "-m", "clx", tmp_path / "strided.c", *sizes)
    assert "no write-allocate is evaded" in outcome.out
    whole = run("traffic", "-m", "clx", "copy", *sizes[:2], *sizes[4:])
    assert "no write-allocate is evaded" not in whole.out


@pytest.mark.parametrize("cache", ["lc", "sim", "both"])
@pytest.mark.parametrize("points", ["N=1000,4000000", "N=4000000,1000"])
def test_a_table_in_which_only_some_points_evade(run, cache, points):
    """Data that fit a cache have nothing to evade; the table once broke off in the second row."""
    outcome = run("traffic", "-m", "clx", "copy", "-D", points, "--stores", "evading", "--cache", cache)
    assert (outcome.status, outcome.err) == (0, "")
    lines = [re.split(r"\s{2,}", line.strip()) for line in outcome.out.splitlines()]
    header = next(cells for cells in lines if cells[0] == "N")
    evaded = {cells[0]: cells[header.index("evaded")] for cells in lines if cells[0] in ("1000", "4000000")}
    assert evaded == {"1000": "-", "4000000": "100%"}


def test_a_simulated_table_over_sizes_shows_hits(run):
    outcome = run("traffic", "-m", "clx", "copy", "--cache", "sim", "-D", "N=2000,100000", "--unit", "B/It")
    rows = [line for line in outcome.out.splitlines() if "hits" in line]
    assert len(rows) == 2
    assert rows[0].split()[1:3] == ["0.00", "0.00"], "all of it fits L1"


def test_a_compared_table_over_sizes(run):
    outcome = run("traffic", "-m", "clx", "copy", "--cache", "both", "-D", "N=2000,3000000")
    assert "L3Mem in lc CL" in outcome.out
    assert "L3Mem in sim CL" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--cache", "exact"), ("'--cache'", "'sim'")),
        (("--policy", "clock"), ("'--policy'", "'fifo'")),
        (("--layout", "stack"), ("'--layout'", "'packed'")),
        (("--stores", "none"), ("'--stores'", "'evading'")),
        (("--pad", "-64"), ("--pad", "'-64'", "64 B")),
        (("--pad", "64 GHz"), ("--pad", "no unit of data")),
        (("--pad", "half"), ("--pad", "'half'")),
        (("--pad", "0.5"), ("--pad", "whole number")),
        (("--pad", "1e30"), ("--pad",)),
        (("--seed", "-1"), ("'--seed'",)),
        (("--cache", "lc", "--policy", "fifo"), ("--policy", "leave it out, or ask for --cache sim")),
        (("--cache", "lc", "--pad", "0"), ("--pad", "option of the simulation")),
        (("--cache", "lc", "--seed", "0"), ("--seed", "option of the simulation")),
        (("--cache", "lc", "--alias"), ("--alias",)),
        (("--cache", "lc", "--exact"), ("--exact",)),
        (("--cache", "lc", "--indirect", "idx=uniform"), ("--indirect",)),
        (("--alias", "--layout", "packed"), ("--alias", "--layout packed")),
        (("--indirect", "idx"), ("--indirect",)),
        (("--indirect", "idx=sometimes.txt"), ("sometimes.txt",)),
        (("--indirect", "idx=banded:x"), ("--indirect",)),
        (("--indirect", "idx=uniform"), ("--indirect", "idx", "stencil")),
        (("--cores", "41"), ("--cores", "41 cores, but clx has 40")),
        (("--cores", "3-2"), ("--cores", "empty")),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("command", ["traffic", "ecm"])
def test_options_that_cannot_be(run, command, arguments, parts):
    outcome = run(command, "-m", "clx", "stencil", *arguments)
    assert outcome.status in (1, 2)
    assert_refused(outcome, outcome.status, *parts)


def test_a_seed_is_a_whole_number(run):
    assert_refused(run("traffic", "-m", "clx", "copy", "--seed", "x"), 2, "'--seed': 'x' is not a whole number")


def test_ecm_takes_one_way_at_a_time(run):
    assert_refused(run("ecm", "-m", "clx", "stencil", "--cache", "both"), 2, "'both'")


@pytest.mark.parametrize(("text", "number"), [("64", 64), ("64 B", 64), ("4 KiB", 4096), ("1kB", 1000), ("0", 0)])
def test_bytes(text: str, number: int):
    assert BYTES.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["", "B", "1.5 B", "64 cy", "nan", "inf", "1 EiB"])
def test_no_bytes(text: str):
    with pytest.raises(UsageError, match="--pad"):
        BYTES.convert(text, None, None)


@pytest.mark.parametrize("cache", ["lc", "sim"])
def test_streaming_stores_where_the_machine_has_none(run, tmp_path, cache):
    from kernmodel.resources import carried_folder

    text = (carried_folder("machine-files") / "clx.yml").read_text(encoding="utf-8")
    machine = tmp_path / "plain.yml"
    machine.write_text(text.replace("streaming: true", "streaming: false"))
    outcome = run("traffic", "-m", machine, "copy", "--cache", cache, "--stores", "nt")
    assert_refused(outcome, 2, "--stores", "has no streaming")
