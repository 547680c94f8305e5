"""The public face: every function in any order, sources in every form, results in every form, errors as exceptions."""

from __future__ import annotations

import ast
import inspect
import pickle
import pkgutil
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import kernmodel
import kernmodel as km
from kernmodel.cli.main import commands, main
from kernmodel.user_files import GivenText

TRIAD = """
#define N 100000
double a[N], b[N], c[N];
for (int i = 0; i < N; ++i)
    a[i] = b[i] + 3.0 * c[i];
"""
TWO_NESTS = """#define N 1000
double a[N], b[N];
for (int i = 0; i < N; ++i) a[i] = b[i];
for (int i = 0; i < N; ++i) b[i] = 0;
"""
LOOP = """.L3:
\tvmovupd (%rsi,%rax), %ymm0
\tvfmadd231pd (%rdx,%rax), %ymm1, %ymm0
\tvmovupd %ymm0, (%rdi,%rax)
\taddq $32, %rax
\tcmpq %rcx, %rax
\tjne .L3
"""
MEASUREMENTS = """<root date="2026-01-01"><extension name="BASE">
<instruction asm="ADD" iform="ADD" string="ADD (R64, R64)">
<operand idx="1" name="REG0" type="reg" r="1" w="1"/><operand idx="2" name="REG1" type="reg" r="1"/>
<architecture name="ADL-P"><measurement uops="1" uops_retire_slots="1" ports="1*p0156B"/></architecture></instruction>
</extension></root>
"""
KERNCRAFT = """model name: Somebody's
model type: Intel
clock: 2.0 GHz
sockets: 1
cores per socket: 4
memory hierarchy:
- level: L1
  cache per group: {sets: 64, ways: 8, cl_size: 64 B, replacement_policy: LRU, write_allocate: true, write_back: true}
  size per group: 32 kB
  cores per group: 1.0
- level: MEM
  cores per group: 4
  upstream throughput: [full socket memory bandwidth, half-duplex]
"""
BINARY = sys.executable
BLOCK = bytes.fromhex("4801d84801c3ffc975f7")
SIZES: dict[str, Any] = {"N": 100_000}

QUESTIONS: dict[str, Callable[[Path], km.Result[Any]]] = {
    "ecm": lambda _: km.ecm("triad.c", machine="clx", **SIZES),
    "data_traffic": lambda _: km.data_traffic("triad.c", machine="clx", **SIZES),
    "ecm_nests": lambda _: km.ecm_nests(TWO_NESTS, machine="clx"),
    "traffic_nests": lambda _: km.traffic_nests(TWO_NESTS, machine="clx"),
    "scale": lambda _: km.scale("triad.c", machine="clx", cores="1-3", **SIZES),
    "block": lambda _: km.block("matvec-transposed.c", machine="clx", loops="i"),
    "compare": lambda _: km.compare("triad.c", ["clx", "snb"], **SIZES),
    "roofline_chart": lambda _: km.roofline_chart("triad.c", machine="clx", **SIZES),
    "carm_chart": lambda _: km.carm_chart("triad.c", machine="clx", **SIZES),
    "what_if": lambda _: km.what_if("triad.c", "clx", {"L2.size": "x2"}, **SIZES),
    "compare_code": lambda _: km.compare_code("triad.c", "clx", [km.CodeOptions(flags="-O1")], **SIZES),
    "kernel_report": lambda _: km.kernel_report(
        "triad.c", "clx", without=("sizes", "rooflines", "carm", "blocking", "sensitivity"), **SIZES
    ),
    "comparison_report": lambda _: km.comparison_report(["triad.c", "copy.c"], ["clx"], **SIZES),
    "sensitivity": lambda _: km.sensitivity("triad.c", "clx", **SIZES),
    "machine_figures": lambda _: km.machine_figures("clx"),
    "sweep_sizes": lambda _: km.sweep_sizes("triad.c", "clx", N=[1000, 100_000]),
    "analyse_loop": lambda _: km.analyse_loop(BLOCK, uarch="SKL"),
    "analyse_kernel": lambda _: km.analyse_kernel("triad.c", machine="clx", **SIZES),
    "analyse_loops": lambda _: km.analyse_loops(LOOP, uarch="SKL,ZEN4"),
    "analyse_blocks": lambda folder: km.analyse_blocks(_blocks(folder), uarch="SKL", jobs=1),
    "mix": lambda _: km.mix(LOOP),
    "instructions": lambda _: km.instructions("vaddpd ymm,ymm,m256", uarch="SKL"),
    "list_instructions": lambda _: km.list_instructions("vaddpd", uarch="SKL"),
    "instruction_coverage": lambda _: km.instruction_coverage(LOOP, uarch="SKL"),
    "check_instructions": lambda folder: km.check_instructions(_readings(folder), uarch="CLX"),
    "import_instructions": lambda folder: km.import_instructions(_measurements(folder), "ADL-P"),
    "evaluate_blocks": lambda folder: km.evaluate_blocks(_measured(folder), jobs=1),
    "evaluate_kernels": lambda folder: km.evaluate_kernels(_measured_kernels(folder), cache="lc", jobs=1),
    "check": lambda folder: km.check(_checks(folder)),
    "list_machines": lambda _: km.list_machines(),
    "check_machines": lambda _: km.check_machines(["clx"]),
    "import_machine": lambda folder: km.import_machine(_kerncraft(folder)),
    "list_kernels": lambda _: km.list_kernels(),
    "find_nests": lambda _: km.find_nests("stencil.c"),
    "load_machine": lambda _: km.load_machine("clx"),
    "load_kernel": lambda _: km.load_kernel("triad.c"),
    "simulate": lambda folder: km.simulate(_trace(folder), machine="clx"),
    "simulate_cases": lambda folder: km.simulate_cases(_stated_cases(folder)),
    "import_core": lambda folder: km.import_core(_measurements(folder), "ADL-P", folder / "cores", like="GLC"),
    "binary_blocks": lambda _: km.binary_blocks(BINARY, addresses=_code_of_binary()),
}
"""Every function of the public face that answers by itself."""

ON_THIS_HOST = {
    f"measure_{what}" for what in ("bandwidth", "block", "instruction", "instructions", "kernel", "peaks")
} | {
    "binary_run",
    "binary_suite",
    "probe_machine",
    "validate",
    "binary_residency",
}
"""Functions that measure or run programs (tests/measure, tests/binary)."""

WITHOUT_DOCUMENT = {
    "instruction_coverage",
    "check_instructions",
    "import_instructions",
    "import_core",
    "import_machine",
}
COMMANDS = {
    "ecm": "ecm -m clx triad.c -D N=100000",
    "data_traffic": "traffic -m clx triad.c -D N=100000",
    "scale": "scaling -m clx triad.c --cores 1-3 -D N=100000",
    "block": "blocking -m clx matvec-transposed.c --loops i",
    "compare": "compare -m clx -m snb triad.c -D N=100000",
    "roofline_chart": "roofline -m clx triad.c -D N=100000",
    "carm_chart": "carm -m clx triad.c -D N=100000",
    "what_if": "what-if -m clx triad.c --set L2.size=x2 -D N=100000",
    "compare_code": "what-if -m clx triad.c --flags -O1 -D N=100000",
    "machine_figures": "what-if -m clx --list",
    "analyse_kernel": "incore -m clx triad.c -D N=100000",
    "analyse_loop": "incore --uarch SKL --hex 4801d84801c3ffc975f7",
    "list_instructions": "instructions list vaddpd --uarch SKL",
    "list_machines": "machine list",
    "check_machines": "machine check clx",
    "list_kernels": "kernel list",
    "find_nests": "kernel loops stencil.c",
    "instructions": "instructions show vaddpd_ymm,ymm,m256 --uarch SKL",
    "load_machine": "machine show clx",
    "load_kernel": "kernel show triad.c",
}


@pytest.fixture(autouse=True)
def few_block_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block sizes besides the candidates are only drawn."""
    monkeypatch.setattr("kernmodel.studies.blocking.study.POINTS", 5)


def _code_of_binary() -> tuple[int, int]:
    """The first bytes of the code that the loader calls."""
    from kernmodel.binary.image import read_binary

    first = next(one for one in read_binary(BINARY).code.sections if one.name == ".init")
    return first.address, first.address + len(first.data)


def _blocks(folder: Path) -> Path:
    (folder / "blocks.txt").write_text(f"{BLOCK.hex()}\n4801d8\n")
    return folder / "blocks.txt"


def _checks(folder: Path) -> Path:
    (folder / "checks.yml").write_text(
        "checks: [{kernel: triad.c, machine: clx, sizes: {N: 100000}, assert: ecm > 1}]\n"
    )
    return folder / "checks.yml"


def _readings(folder: Path) -> Path:
    row = 'AVX512F,"VADDPD zmm, zmm, zmm",4.0,2.00'
    (folder / "readings.csv").write_text(f"isa,form,latency_cycles,reciprocal_throughput_cycles\n{row}\n")
    return folder / "readings.csv"


def _measured(folder: Path) -> Path:
    (folder / "measured.csv").write_text("arch,hex,measured,uica,facile,sane\nSKL,4801d8,1.0,1.0,1.0,1\n")
    return folder / "measured.csv"


def _measured_kernels(folder: Path) -> Path:
    (folder / "copy.s").write_text(LOOP)
    (folder / "copy.c").write_text(TRIAD)
    row = "triad,copy.c,copy.s,clx,N=100000,1,5.0"
    (folder / "kernels.csv").write_text(f"kernel,source,listing,machine,sizes,cores,measured\n{row}\n")
    return folder / "kernels.csv"


def _measurements(folder: Path) -> Path:
    (folder / "measured.xml").write_text(MEASUREMENTS)
    return folder / "measured.xml"


def _kerncraft(folder: Path) -> Path:
    (folder / "small.yml").write_text(KERNCRAFT)
    return folder / "small.yml"


def _stated_cases(folder: Path) -> Path:
    caches, accesses = "levels: [{name: L1, sets: 1, ways: 1}]", "sequence: {kind: streams, n: 16, loads: 1}"
    (folder / "cases.yml").write_text(f"cases:\n- id: a\n  {caches}\n  {accesses}\n  phases: [{{L1: {{loads: 16}}}}]\n")
    return folder / "cases.yml"


def _trace(folder: Path) -> Path:
    (folder / "trace.txt").write_text("L 0 8\nS 64 8\n")
    return folder / "trace.txt"


def test_public_names_are_no_modules_and_types_know_them() -> None:
    modules = {module.name for module in pkgutil.iter_modules(kernmodel.__path__)}
    assert not modules & set(kernmodel.__all__)
    stub = ast.parse(Path(kernmodel.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    typed = {alias.asname: node.module for node in imports for alias in node.names}
    assert typed == {name: f"kernmodel.{module}" for name, module in kernmodel._MODULES.items()}  # type: ignore[attr-defined]
    assert set(dir(km)) >= set(kernmodel.__all__)
    with pytest.raises(AttributeError, match="nosuch"):
        getattr(km, "nosuch")  # noqa: B009 (types would refuse it)


def test_every_function_is_asked() -> None:
    functions = {name for name in kernmodel.__all__ if inspect.isfunction(getattr(km, name))}
    assert functions == set(QUESTIONS) | ON_THIS_HOST | {"no_limits"}
    for name in functions:
        parameters = inspect.signature(getattr(km, name)).parameters.values()
        assert sum(one.kind is not one.VAR_KEYWORD for one in parameters) <= 9, name  # beside the sizes
        assert ">>> " in (getattr(km, name).__doc__ or "") or name == "machine_figures"


def _as_on_the_page(name: str) -> str:
    parameters = list(inspect.signature(getattr(km, name)).parameters.values())
    first = next((at for at, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY), None)
    words = [f"**{one.name}" if one.kind is one.VAR_KEYWORD else one.name for one in parameters]
    return f"{name}({', '.join(words if first is None else [*words[:first], '*', *words[first:]])})"


def test_the_page_lists_every_function_as_it_is_and_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    listed = {re.sub(r"=[^,)]*", "", one) for one in re.findall(r"^\| `(\w+\([^`]*\))` \|", page, re.MULTILINE)}
    assert listed == {_as_on_the_page(name) for name in set(QUESTIONS) | ON_THIS_HOST}
    for options in (km.CacheOptions, km.CodeOptions, km.CoreOptions):
        told = re.split(rf"\bkm\.{options.__name__}\(", page, maxsplit=1)[1].split(";")[0]
        assert not [field.name for field in fields(options) if f"{field.name}`" not in told], options


def _words_of_python() -> set[str]:
    """The names of all arguments, fields of options, and what results do."""
    public = [getattr(km, name) for name in kernmodel.__all__]
    results = [getattr(km.Result, name) for name in ("text", "html", "json")]
    arguments = {
        word for one in [*public, *results] if inspect.isfunction(one) for word in inspect.signature(one).parameters
    }
    return (
        arguments | {field.name for one in public if is_dataclass(one) for field in fields(one)} | set(dir(km.Result))
    )


def _options(command: click.Command) -> set[str]:
    if isinstance(command, click.Group):
        inner = [
            command.get_command(click.Context(command), name) for name in command.list_commands(click.Context(command))
        ]
        return {option for one in inner if one is not None for option in _options(one)}
    return {max(one.opts, key=len) for one in command.params if isinstance(one, click.Option)}


def test_every_option_has_its_place_in_python() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    told = page.split("## Where the options of the command line are")[1].split("\n## ")[0]
    words = _words_of_python()
    missing = {one for one in _options(commands) if one.lstrip("-").replace("-", "_") not in words}
    assert not {one for one in missing - {"--help"} if f"`{one}`" not in told}, "write it into docs/api.md"


@pytest.mark.thorough
def test_all_functions_in_any_order(tmp_path: Path) -> None:
    names = sorted(QUESTIONS)
    random.Random(13).shuffle(names)
    for number, name in enumerate(names):
        if number == len(names) // 2:  # a package that was imported does not hide a function
            for package in pkgutil.iter_modules(kernmodel.__path__):
                if package.ispkg:
                    __import__(f"kernmodel.{package.name}")
        assert not isinstance(getattr(km, name), ModuleType)
        result = QUESTIONS[name](tmp_path)
        assert isinstance(result, km.Result)
        text = result.text()
        assert text.endswith("\n")
        assert str(result) == text
        if name in WITHOUT_DOCUMENT:
            with pytest.raises(km.UsageError, match="has no document"):
                result.json()
        else:
            assert isinstance(result.json(), dict)
        assert len(result) == len(list(result)) >= 1
        assert all(isinstance(note, km.Note) for note in result.notes)
        if len(result) == 1:
            assert result.answer is result[0]
        assert "result" in repr(result)


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_functions_say_what_commands_print(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = [word.replace("_", " ") for word in COMMANDS[name].split()]
    assert main(command) == 0
    assert capsys.readouterr().out == QUESTIONS[name](tmp_path).text()


@pytest.mark.parametrize("name", ["analyse_loop", "load_machine"])
def test_what_has_no_picture_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(km.UsageError, match="has no picture"):
        QUESTIONS[name](tmp_path).plot()
    with pytest.raises(km.UsageError, match="has no picture"):
        QUESTIONS[name](tmp_path).drawing()


def test_pictures(tmp_path: Path) -> None:
    result = km.ecm("triad.c", machine="clx", cores="1-3", **SIZES)
    figure = result.plot(tmp_path / "ecm.svg")
    assert (tmp_path / "ecm.svg").read_text().startswith("<?xml")
    assert figure.axes
    assert "cores" in result.drawing(width=60, ascii_only=True)
    with pytest.raises(km.UsageError, match=r"the format '\.gif' is not known"):
        result.plot(tmp_path / "ecm.gif")


def test_importing_is_light() -> None:
    code = "import sys, kernmodel; print(*sorted(m for m in sys.modules if m.startswith('kernmodel')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["kernmodel"]


def test_source_is_a_path_a_name_or_text(tmp_path: Path) -> None:
    (tmp_path / "k{1}.c").write_text(TRIAD)
    of_text = km.ecm(TRIAD, machine="clx").answer
    of_file = km.ecm(tmp_path / "k{1}.c", machine="clx").answer
    assert of_text.prediction == of_file.prediction
    assert re.fullmatch(r"<text-[0-9a-f]{8}>", of_text.nest.file)
    with pytest.raises(km.InputError, match="no such kernel"):
        km.ecm("nosuch.c", machine="clx")


def test_errors_of_text_name_the_place() -> None:
    with pytest.raises(km.SourceError, match=r"<text-\w+>:3:\d+: "):
        km.ecm("double a[100];\n\nfor (int i = 0; i < 10; ++i) { a[i*i] = 0.0; }\n", machine="clx")


def test_text_goes_to_other_processes() -> None:
    given = GivenText(TRIAD)
    copied = pickle.loads(pickle.dumps(given))
    assert (copied, copied.text) == (given, TRIAD)
    assert given != GivenText(TRIAD + " ")
    rows = list(km.sweep_sizes(TRIAD, "clx", N=[1000, 2000, 3000], run=km.SweepRun(jobs=2)))
    assert [row["N"] for row in rows] == [1000, 2000, 3000]
    assert [row["T_ECM_cy_per_CL"] for row in rows] == [
        one.prediction.cycles for one in km.ecm(TRIAD, "clx", N="1000-3000:3")
    ]


def test_assembly_is_a_file_or_text(tmp_path: Path) -> None:
    (tmp_path / "loop.s").write_text(LOOP)
    analysed = km.analyse_loop(LOOP, "clx").answer.incore
    assert analysed == km.analyse_loop(tmp_path / "loop.s", "clx").answer.incore
    answers = [km.ecm("triad.c", "clx", code=km.CodeOptions(asm=asm)).answer for asm in (LOOP, tmp_path / "loop.s")]
    assert answers[0].prediction == answers[1].prediction
    assert km.roofline_chart(LOOP, "clx", model="carm").answer.kernels[0].subject.loop is not None


def test_one_nest_of_several() -> None:
    two = TRIAD + "for (int i = 0; i < N; ++i) b[i] = 0.0;\n"
    with pytest.raises(km.SourceError):
        km.load_kernel(two)
    assert len(km.load_kernel(km.Nest(two, nest=2)).answer.accesses) == 1


def test_sizes_in_every_form() -> None:
    expected = [one.sizes for one in km.data_traffic("triad.c", "clx", N="1000,2000")]
    for given in ([1000, 2000], range(1000, 2001, 1000), "1000-2000:2"):
        assert [one.sizes for one in km.data_traffic("triad.c", "clx", N=given)] == expected
    assert [one.sizes for one in km.data_traffic("triad.c", "clx", sizes={"N": [1000, 2000]})] == expected
    with pytest.raises(km.UsageError, match="-D N: '0': 0 is not positive"):
        km.ecm("triad.c", "clx", N=0)
    with pytest.raises(km.UsageError, match="is not a positive integer"):
        km.ecm("triad.c", "clx", N=1.5)  # type: ignore[arg-type]


def test_answers_come_when_they_are_asked_for() -> None:
    result = km.ecm("triad.c", "clx", N="1000-4000:4")
    assert len(result._known) == 1
    first = next(iter(result))
    assert result[0] is first
    assert [answer.sizes["N"] for answer in result[1:]] == [2000, 3000, 4000]
    with pytest.raises(km.UsageError, match="there are 4 answers"):
        _ = result.answer
    assert result.json()["schema"] == "kernmodel.ecm-sweep/1"


def test_units_and_details() -> None:
    result = km.ecm("triad.c", "clx", **SIZES)
    assert "LUP/s" in result.text(unit="lup/S")
    assert len(result.text(verbose=True)) > len(result.text())
    assert result.json(unit="cy/It")["headline"]["unit"] == "cy/It"
    with pytest.raises(km.UsageError, match="unknown unit 'mph'"):
        result.text(unit="mph")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: km.CacheOptions(mode="all"), "--cache: 'all' is not known; use one of auto, lc, sim, both"),  # type: ignore[arg-type]
        (lambda: km.CacheOptions(layout="round"), "--layout: 'round' is not known"),  # type: ignore[arg-type]
        (lambda: km.CacheOptions(safety=0.0), "--safety: 0.0 is not between 0.01 and 100"),
        (lambda: km.CodeOptions(ports="odd"), "--ports: 'odd' is not known"),  # type: ignore[arg-type]
        (
            lambda: km.ecm("triad.c", "clx", cache=km.CacheOptions("lc", seed=3)),
            "--seed: is an option of the simulation",
        ),
        (lambda: km.ecm("triad.c", "clx", cache=km.CacheOptions(policy="best")), "--policy: 'BEST' is not known"),
        (lambda: km.roofline_chart("triad.c", "clx", model="best"), "--model: 'best' is not known"),  # type: ignore[arg-type]
        (lambda: km.analyse_loop(BLOCK), "give either a machine or a microarchitecture"),
        (lambda: km.analyse_loop(BLOCK, uarch="SKL,CLX"), "names several cores"),
        (lambda: km.analyse_loop(km.Loop(), uarch="SKL"), "one of source and hex_digits is the code"),
        (lambda: km.what_if("triad.c", "clx", ["L2.size"]), "'L2.size' is no PATH=VALUE"),
        (lambda: km.compare_code("triad.c", "clx", []), "there is nothing to change"),
        (lambda: km.mix("triad.c"), "a C kernel needs a machine"),
        (lambda: km.block("triad.c", "clx", N=[10, 20]), "takes one value for each size"),
        (lambda: km.compare(["triad.c", km.Nest("copy.c", 1)], ["clx"]), "--nest: does not fit: several kernels"),
    ],
)
def test_choices_that_do_not_fit(make: Callable[[], object], message: str) -> None:
    with pytest.raises(km.UsageError, match=re.escape(message)):
        make()


def test_strict_raises_the_first_warning() -> None:
    called = km.Nest(
        "double g(double); void f(int n, double *restrict a, double *restrict b) "
        "{ for (int i = 0; i < n; ++i) b[i] = g(a[i]); }"
    )
    assert any(note.kind == "warning" for note in km.ecm(called, "clx", n=2000).notes)
    with pytest.raises(km.StrictError):
        km.ecm(called, "clx", n=2000, strict=True)


def test_simulation_by_words() -> None:
    cache = km.CacheOptions("sim", policy="fifo", layout="packed", pad="1 KiB", seed=1)
    assert km.data_traffic("triad.c", "clx", cache=cache, N=5000).answer.traffic.method != "layer conditions"


def test_blocked_source() -> None:
    source = km.block("matvec-transposed.c", machine="clx", loops="i").source()
    assert "for (" in source
    assert km.load_kernel(source).answer.loops


def test_a_sweep_writes_and_resumes(tmp_path: Path) -> None:
    run = km.SweepRun(resume=tmp_path / "run.jsonl", output=tmp_path / "rows.csv")
    vary = km.Vary(changes={"L2.size": ["x1", "x2"]})
    first = km.sweep_sizes("triad.c", "clx", N="1000,2000", vary=vary, run=run)
    assert len(first) == 4 == len((tmp_path / "rows.csv").read_text().splitlines()) - 1
    again = km.sweep_sizes("triad.c", "clx", N="1000,2000", vary=vary, run=km.SweepRun(resume=tmp_path / "run.jsonl"))
    assert [row["T_ECM_cy_per_CL"] for row in again] == [row["T_ECM_cy_per_CL"] for row in first]


def test_why_and_graphs(tmp_path: Path) -> None:
    result = km.analyse_loop(LOOP, uarch="SKL", core=km.CoreOptions(align="all"), explain=True)
    assert result.explanation is not None
    assert result.alignments
    assert result.graph(tmp_path / "loop.dot") == (tmp_path / "loop.dot").read_text()


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"flags": "-O2"}, "code=km.CodeOptions(flags='-O2')"),
        ({"mode": "sim"}, "cache=km.CacheOptions(mode='sim')"),
        ({"function": "f"}, "km.Nest(…, function='f')"),
    ],
)
def test_an_option_that_is_given_as_a_size_is_told_its_place(given: dict[str, str], place: str) -> None:
    with pytest.raises(km.UsageError, match=re.escape(place)):
        km.ecm("stencil", "clx", **given)
