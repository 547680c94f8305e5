"""Help, completion, laziness and the answers of all commands."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from types import SimpleNamespace

import click
import pytest

import kernmodel
from kernmodel.cli.main import COMMANDS, commands
from kernmodel.errors import Note
from kernmodel.machine.load import find_machine
from kernmodel.measure.probe import Probe
from kernmodel.resources import carried_files

HEAVY = ("sympy", "pycparser", "pcpp", "rich", "yaml", "iced_x86", "numpy", "pint")
NOT_BY_DEFAULT = {
    *("sympy", "mpmath", "numpy", "pint", "matplotlib", "rich", "elftools", "capstone", "distributed"),
    *("asyncio", "email", "hashlib", "importlib.metadata", "importlib.resources", "json", "logging", "statistics"),
    *("kernmodel.plot", "kernmodel.report.html", "kernmodel.report.json", "kernmodel.measure", "kernmodel.evaluate"),
}
"""Libraries and parts that a plain answer in text has no use for, each of which takes a share of its start."""
needs_compiler = pytest.mark.needs("gcc|clang")
TRIAD = """\
# LLVM-MCA-BEGIN
.L3:
        vmovupd (%rsi,%rax), %ymm0
        vfmadd231pd (%rdx,%rax), %ymm2, %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rcx, %rax
        jne     .L3
# LLVM-MCA-END
"""


def command_paths(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found = [path]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found += command_paths(command, (*path, name)) if isinstance(command, click.Group) else [(*path, name)]
    return found


@pytest.fixture
def triad(tmp_path):
    path = tmp_path / "triad.s"
    path.write_text(TRIAD)
    return path


@pytest.mark.parametrize("path", command_paths(commands), ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_that_ends_in_an_example(run, path, option):
    outcome = run(*path, option)
    assert (outcome.status, outcome.err) == (0, "")
    text, _, options = outcome.out.partition("\nOptions:")
    assert options
    assert text.strip().splitlines()[-1].strip().startswith(("kernmodel", "gcc", "eval"))


def test_table_of_commands_is_true():
    """The table in main.py names each command's module and says what the command says of itself."""
    context = click.Context(commands)
    for name, (where, about) in COMMANDS.items():
        command = commands.get_command(context, name)
        assert command is not None, where
        assert command.name == name
        assert about.endswith(".")


def test_version(run):
    assert run("--version").out == f"kernmodel, version {kernmodel.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["machine"]])
def test_without_a_command_the_help_is_shown(run, arguments):
    outcome = run(*arguments)
    assert outcome.status == 2
    assert "Commands:" in outcome.err


def loaded_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_no_stage():
    loaded = loaded_after("from kernmodel.cli.main import main; main(['--help'])")
    assert not loaded.intersection(HEAVY)
    packages = {name.split(".")[1] for name in loaded if name.startswith("kernmodel.")}
    assert packages <= {"cli", "errors", "limits", "patterns", "units", "value_types"}


def test_incore_loads_no_sympy(triad):
    loaded = loaded_after(f"from kernmodel.cli.main import main; main(['incore', '--uarch', 'SKL', {str(triad)!r}])")
    assert "kernmodel.incore.answer.analyse" in loaded
    assert not loaded.intersection({*NOT_BY_DEFAULT, "pycparser", "pcpp", "fractions"})


@needs_compiler
@pytest.mark.parametrize("command", ["ecm", "traffic", "roofline"])
def test_predictions_of_carried_kernels_load_no_sympy(command):
    loaded = loaded_after(f"from kernmodel.cli.main import main; main([{command!r}, '-m', 'clx', 'stencil'])")
    assert "kernmodel.traffic.conditions.layer_conditions" in loaded
    assert not loaded.intersection(NOT_BY_DEFAULT)


def opened_by(*arguments: str) -> list[str]:
    """The files that a command opens, without those that Python reads to import modules."""
    code = (
        "import sys; opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
        f"from kernmodel.cli.main import main; main({list(arguments)!r}); print(*opened, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [name for name in done.stderr.splitlines() if not name.endswith((".py", ".pyc", ".so"))]


@pytest.mark.parametrize(
    "words",
    [("incore", "-m", "clx"), ("incore", "--uarch", "skl"), pytest.param(("ecm", "-m", "clx"), marks=needs_compiler)],
)
def test_descriptions_of_the_hardware_are_read_once(words, triad):
    given = "stencil" if words[0] == "ecm" else str(triad)
    read = [name for name in opened_by(*words, given) if name.endswith((".yml", ".yaml"))]
    assert len(read) == len(set(read)) == (2 if "--uarch" in words else 3)


def test_json_does_not_load_rich():
    assert "rich" not in loaded_after("from kernmodel.cli.main import main; main(['machine', 'list', '--json'])")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell):
    outcome = run("completion", shell)
    assert outcome.status == 0
    assert "_KERNMODEL_COMPLETE" in outcome.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kernmodel ma", {"machine"}),
        ("kernmodel machine ", {"list", "probe", "show", "check", "import"}),
        ("kernmodel ecm -m cl", {"clx"}),
        ("kernmodel traffic -m clx sten", {"stencil", "stencil-blocked"}),
        ("kernmodel traffic --cache ", {"auto", "lc", "sim", "both"}),
        ("kernmodel ecm --cache ", {"auto", "lc", "sim"}),
        ("kernmodel ecm --stores e", {"evading"}),
        ("kernmodel traffic --policy f", {"fifo"}),
        ("kernmodel machine show skx-", {"skx-6140"}),
        ("kernmodel ecm --unit cy", {"cy/CL", "cy/It"}),
        ("kernmodel ecm --unit flop", {"FLOP/s"}),
        ("kernmodel incore --uarch zen", {"ZEN", "ZEN2", "ZEN3", "ZEN4"}),
        ("kernmodel incore --ports e", {"even"}),
        ("kernmodel completion z", {"zsh"}),
        ("kernmodel ecm matmul -D ", {"N=", "M=", "K="}),
        ("kernmodel ecm -m clx stencil.c -D M", {"M="}),
        ("kernmodel roofline -m clx stencil triad -D ", {"M=", "N="}),
        ("kernmodel traffic stencil --function ", {"stencil"}),
        ("kernmodel ecm -m clx -D ", set()),
        ("kernmodel ecm no-such-kernel.c -D ", set()),
    ],
)
def test_completion(run_apart, words, expected):
    position = str(len(words.split()) - (0 if words.endswith(" ") else 1))
    done = run_apart(_KERNMODEL_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=position)
    plain = {line.partition(",")[2] for line in done.stdout.splitlines() if line.startswith("plain,")}
    assert plain == expected


def test_completion_of_options(run_apart):
    done = run_apart(_KERNMODEL_COMPLETE="bash_complete", COMP_WORDS="kernmodel ecm --sa", COMP_CWORD="2")
    assert "plain,--safety" in done.stdout.splitlines()


def test_completion_offers_files_too(run_apart):
    done = run_apart(_KERNMODEL_COMPLETE="bash_complete", COMP_WORDS="kernmodel ecm -m ", COMP_CWORD="3")
    assert done.stdout.splitlines()[0] == "file,"


def test_completion_names_the_files_of_the_user_beside_the_carried_ones(run_apart, tmp_path):
    (tmp_path / "steady.c").touch()
    (tmp_path / "steps.txt").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "k.c").touch()
    found_for = {"ste": ["steady.c", "stencil", "stencil-blocked"], "mine/": ["mine/k.c"], "nowhere/k": []}
    for word, expected in found_for.items():
        words = f"kernmodel ecm -m clx {word}"
        done = run_apart(_KERNMODEL_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="4")
        found = [line.partition(",")[2] for line in done.stdout.splitlines() if line.startswith("plain,")]
        assert sorted(found) == expected


def test_machine_list_names_all(run):
    outcome = run("machine", "list")
    names = {line.split()[0] for line in outcome.out.splitlines()[2:]}
    assert names == {file.stem for file in carried_files("machine-files", ".yml")}


@pytest.mark.parametrize("arguments", [["machine", "list"], ["machine", "show", "clx"], ["kernel", "list"]])
def test_lists_in_json(run, arguments):
    outcome = run(*arguments, "--json")
    document = json.loads(outcome.out)
    assert document["schema"].startswith("kernmodel.")
    assert document["version"] == kernmodel.__version__


def test_machine_show_gives_figures_and_sources(run):
    outcome = run("machine", "show", "clx.yml")
    assert outcome.status == 0
    for part in ("2.5 GHz", "Transfer paths", "Sources", "caches.L3"):
        assert part in outcome.out


def test_machine_check_ok(run):
    outcome = run("machine", "check", "clx", "skx")
    assert outcome.status == 0
    assert [line.rpartition(": ")[2] for line in outcome.out.splitlines()] == ["ok", "ok"]


def test_all_carried_machines_pass(run):
    assert run("machine", "check", "--carried").status == 0


def test_machine_check_lists_every_problem(run, tmp_path):
    text = next(file for file in carried_files("machine-files", ".yml") if file.stem == "clx").read_text()
    broken = tmp_path / "broken.yml"
    broken.write_text(
        text.replace("clock: 2.5 GHz", "clock: 2.5 bananas").replace("microarchitecture: CLX", "colour: red")
    )
    outcome = run("machine", "check", broken, "skx")
    assert outcome.status == 1
    assert "bananas" in outcome.out
    assert "colour" in outcome.out
    assert outcome.out.splitlines()[-1].endswith("skx.yml: ok")
    document = json.loads(run("machine", "check", "--json", broken).out)
    assert len(document["files"][0]["problems"]) >= 2


def test_kernel_list_says_what_each_computes(run):
    outcome = run("kernel", "list")
    rows = outcome.out.splitlines()[2:]
    assert {row.split()[0] for row in rows} == {file.stem for file in carried_files("kernels", ".c")}
    assert all(len(row.split()) > 2 for row in rows), "every kernel opens with a comment that says what it computes"


def test_kernel_show(run):
    outcome = run("kernel", "show", "stencil")
    assert outcome.status == 0
    for part in ("Loops, outermost first", "Array references", "Source", "#define N"):
        assert part in outcome.out
    assert json.loads(run("kernel", "show", "stencil.c", "--json").out)["schema"] == "kernmodel.kernel/1"


def test_instructions_show_a_form_and_a_mnemonic(run):
    outcome = run("instructions", "show", "vaddpd ymm, ymm, m256", "--uarch", "SKL")
    assert outcome.status == 0
    assert "vaddpd ymm,ymm,m256 on SKL" in outcome.out
    document = json.loads(run("instructions", "show", "vaddpd", "--uarch", "skl", "--json").out)
    assert {"vaddpd ymm,ymm,ymm", "vaddpd xmm,xmm,m128"} <= {row["form"] for row in document["instructions"]}


def test_instructions_list(run):
    forms = run("instructions", "list", "vaddp", "-m", "hsw").out.splitlines()
    assert forms
    assert all(form.startswith("vaddp") for form in forms)
    document = json.loads(run("instructions", "list", "vaddp", "--uarch", "HSW", "--json").out)
    assert document["forms"] == forms


def test_instructions_show_names_near_forms(run):
    outcome = run("instructions", "show", "vaddpd ymm,ymm", "--uarch", "SKL")
    assert outcome.status == 1
    assert "'vaddpd ymm,ymm,ymm'" in outcome.err


def test_instructions_import_refuses_what_is_no_data(run, tmp_path):
    source = tmp_path / "x.jsonl.gz"
    source.write_bytes(gzip.compress(b"not json\n"))
    outcome = run("instructions", "import", source, "--uarch", "SKL")
    assert outcome.status == 1
    assert outcome.err.startswith("kernmodel: error: ")


def test_incore_of_a_marked_loop(run, triad):
    outcome = run("incore", "-m", "clx", triad)
    assert (outcome.status, outcome.err) == (0, "")
    for part in (
        "vfmadd231pd (%rdx,%rax), %ymm2, %ymm0",
        "TP, throughput bound",
        "LCD",
        "CP, critical path",
        "per pass",
    ):
        assert part in outcome.out


def test_incore_by_microarchitecture_in_json(run, triad):
    document = json.loads(run("incore", "--uarch", "SKL", "--ports", "even", "--json", triad).out)
    assert document["schema"] == "kernmodel.incore/1"
    assert document["machine"] is None
    assert document["incore"]["port_model"] == "even"
    assert document["incore"]["prediction"] >= document["incore"]["throughput"]


def test_incore_reads_standard_input(tmp_path):
    code = "import sys; from kernmodel.cli.main import main; sys.exit(main(['incore', '--uarch', 'SKL', '-']))"
    done = subprocess.run([sys.executable, "-c", code], input=TRIAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "vfmadd231pd" in done.stdout


def test_incore_verbose_shows_chains_and_sources(run, triad):
    outcome = run("incore", "-m", "clx", "-v", triad)
    assert "Longest loop-carried dependency" in outcome.out
    assert "Sources of the instruction data" in outcome.out


def test_traffic_as_formulas_and_numbers(run):
    outcome = run("traffic", "-m", "skx", "stencil", "-D", "N=4000")
    assert outcome.status == 0
    for part in ("Layer conditions", "N", "Transition points", "Traffic per path", "Arithmetic intensity", "L3Mem"):
        assert part in outcome.out


def test_traffic_over_sizes(run):
    outcome = run("traffic", "-m", "clx", "stencil", "-D", "N=100-100000:5log", "--unit", "b/it")
    assert outcome.status == 0
    assert "L3Mem in B/It" in outcome.out
    document = json.loads(run("traffic", "-m", "clx", "stencil", "-D", "N=100,200", "--json").out)
    assert document["schema"] == "kernmodel.traffic-sweep/1"
    assert [point["kernel"]["sizes"]["N"] for point in document["points"]] == [100, 200]


@pytest.mark.thorough
@needs_compiler
def test_the_first_line_of_the_readme(run_apart, tmp_path):
    done = run_apart("ecm", "--machine", "clx.yml", "stencil.c")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("T_ECM = ", "‖", "⌉", "simple rule", "recursive latency-aware rule", "Layer conditions", "bottleneck"):
        assert part in done.stdout
    assert list(tmp_path.iterdir()) == []


@needs_compiler
def test_ecm_with_scaling_in_json(run):
    outcome = run(
        "ecm", "-m", "clx", "stencil.c", "-D", "N=4000", "-D", "M=4000", "--cores", "1-20", "--json", "--unit", "lup/S"
    )
    document = json.loads(outcome.out)
    assert document["kernel"]["sizes"] == {"M": 4000, "N": 4000}
    assert document["headline"]["unit"] == "LUP/s"
    assert [point["cores"] for point in document["scaling"]] == list(range(1, 21))


@needs_compiler
def test_ecm_verbose(run):
    outcome = run("ecm", "-m", "clx", "stencil", "-v")
    assert outcome.status == 0
    for part in (
        "Traffic per path",
        "Traffic per reference",
        "Port pressure",
        "Assembly loop",
        "evidence",
        "Sources of",
    ):
        assert part in outcome.out


@needs_compiler
def test_ecm_over_sizes(run):
    outcome = run("ecm", "-m", "clx", "stencil", "-D", "N=100-10000:4log", "-D", "M=1000")
    table = outcome.out[outcome.out.index("T_nOL  ") :]
    assert table.count("cy/CL\n") == 0
    assert sum(line.split()[:1] == ["1000"] or "1000 " in line for line in table.splitlines()) >= 4
    document = json.loads(run("ecm", "-m", "clx", "stencil", "-D", "N=100,200", "--json").out)
    assert [point["kernel"]["sizes"]["N"] for point in document["points"]] == [100, 200]


@needs_compiler
def test_ecm_over_sizes_and_cores(run):
    outcome = run("ecm", "-m", "clx", "stencil", "-D", "N=1000,2000", "--cores", "1,2", "--unit", "FLOP/s")
    assert outcome.status == 0
    assert "saturated" in outcome.out
    assert len([line for line in outcome.out.splitlines() if line.split()[-1:] in (["yes"], ["no"])]) == 4


def test_notes_of_a_probe_name_the_first_of_many_figures(run, monkeypatch, tmp_path):
    """On a busy host a hundred were named, over a screen; the comments of the file have them all."""
    figures = [f"L1 load{number} (1 of 2)" for number in range(20)]
    notes = (
        Note("not-confirmed", f"figures that are not judged, since it is busy: {', '.join(figures)}"),
        Note("saturation-unknown", "where it saturates is not known: 2 cores are too few"),
    )
    text = find_machine("clx").read_text()
    answer = SimpleNamespace(answer=Probe(text, notes))
    monkeypatch.setattr("kernmodel.api.measuring.probe_machine", lambda **_: answer)
    outcome = run("machine", "probe", "-o", tmp_path / "mine.yml")
    first, second, *_ = outcome.err.splitlines()
    assert first.endswith("L1 load7 (1 of 2) and 12 more, which the file names")
    assert "busy: L1 load0 (1 of 2)," in first
    assert second.endswith("2 cores are too few")
