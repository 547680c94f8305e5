"""`kernmodel what-if` through the command line: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from kernmodel.cli.what_if import Setting, what_if
from kernmodel.machine.changes.figures import MachineFigures
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest
from kernmodel.studies.what_if.machine import what_if as study

needs_compiler = pytest.mark.needs("as", "gcc")
ISSUE = ("--set", "L2.size=2MiB", "--set", "memory.bandwidth=200GB/s", "--set", "clock=3GHz")


def document(outcome) -> dict[str, object]:
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


@needs_compiler
def test_changes_of_the_machine(run) -> None:
    outcome = run("what-if", "-m", "clx", "stencil.c", *ISSUE)
    assert outcome.status == 0
    assert "Most valuable: memory.bandwidth=200GB/s: the runtime falls by 23.8 %" in outcome.out
    effects = outcome.out.partition("Effects")[2]
    places = [effects.index(name) for name in ("memory.bandwidth=", "clock=", "L2.size=", "all together")]
    assert places == sorted(places)
    assert "caches.L2.sets follows: 2048" in outcome.out


@needs_compiler
def test_the_document_has_the_numbers_of_the_study(run) -> None:
    made = document(run("what-if", "-m", "clx", "stencil.c", *ISSUE, "--cores", 4, "--unit", "It/s", "--json"))
    changes = tuple(Change(*text.split("=")) for text in ISSUE[1::2])
    answer = study(KernelRequest("stencil.c", "clx", {}), CodeRequest(), changes, 4)
    assert made["schema"] == "kernmodel.what-if/1"
    assert [effect["ratio"] for effect in made["effects"]] == [effect.ratio for effect in answer.effects]
    assert made["together"]["ratio"] == answer.together.ratio
    assert made["before"]["headline"]["unit"] == "It/s"
    assert made["machine"]["sha256"] == load_machine("clx").sha256
    assert made["cores"] == 4


@needs_compiler
def test_sizes_and_verbose(run) -> None:
    arguments = ("stencil.c", "-D", "N=1000", "-D", "M=1000", "--set", "L1.size=x8", "--safety", "0.5", "-v")
    outcome = run("what-if", "-m", "clx", *arguments)
    assert "M = 1000, N = 1000" in outcome.out
    assert "Times of the model" in outcome.out
    assert "L1 then holds the reuse along j" in outcome.out


@needs_compiler
def test_ways_to_compile(run) -> None:
    flags = ("--flags", "-O1", "--flags", "-O3 -march=cascadelake -mprefer-vector-width=512", "--flags", "-frubbish")
    made = document(run("what-if", "-m", "clx", "stencil.c", *flags, "--compiler", "gcc", "--json", "--classic"))
    own, scalar, wide, wrong = made["variants"]
    assert own["asked"] == {"compiler": None, "flags": None}
    assert (own["ratio"], own["loop"]["widest_lanes"]) == (1, 4)
    assert scalar["ratio"] > 1 > wide["ratio"]
    assert (scalar["loop"]["widest_lanes"], wide["loop"]["widest_lanes"]) == (1, 8)
    assert "-frubbish" in wrong["error"]


@needs_compiler
def test_ways_to_compile_on_a_changed_machine(run) -> None:
    outcome = run("what-if", "-m", "clx", "stencil.c", "--flags", "-O1", "--set", "clock=3GHz")
    assert outcome.status == 0
    assert "changed       clock=3GHz" in outcome.out
    assert "26.20 cy/CL" in outcome.out


@needs_compiler
def test_a_compiler_that_is_missing_fails_alone(run) -> None:
    outcome = run("what-if", "-m", "clx", "stencil.c", "--compiler", "no-such-compiler")
    assert outcome.status == 0
    assert "2  fails: the compiler 'no-such-compiler' was not found" in outcome.out


@needs_compiler
def test_sensitivity_as_text_and_picture(run, tmp_path) -> None:
    target = tmp_path / "tornado.svg"
    outcome = run("what-if", "-m", "clx", "stencil.c", "--sensitivity", "--step", "5 %", "--plot", target)
    assert outcome.status == 0
    assert "clock (2.5 GHz) matters most" in outcome.out
    assert "− 5 %" in outcome.out
    assert "5 % more" in target.read_text(encoding="utf-8")


@needs_compiler
def test_sensitivity_on_the_terminal(run) -> None:
    outcome = run("what-if", "-m", "clx", "copy.c", "--sensitivity", "--plot")
    assert outcome.status == 0
    assert "copy on clx: runtime × with half (light), twice (dark) the figure" in outcome.out


@needs_compiler
def test_sensitivity_as_a_document(run) -> None:
    made = document(run("what-if", "-m", "zen2", "copy.c", "--sensitivity", "--step", "0.05", "--json"))
    assert (made["schema"], made["step"]) == ("kernmodel.sensitivity/1", 0.05)
    assert made["figures"]


def test_all_figures_are_listed(run) -> None:
    outcome = run("what-if", "-m", "clx", "--list")
    assert outcome.status == 0
    for figure in MachineFigures.open("clx").figures():
        assert f"\n{figure.path} " in outcome.out
    made = document(run("what-if", "-m", "clx", "--list", "--json"))
    assert made["figures"][1] == {
        "path": "clock", "short": "clock", "text": "2.5 GHz", "value": 2.5e9, "dimension": "frequency",
        "source": load_machine("clx").sources["machine"],
    }  # fmt: skip


def test_figures_complete_in_the_shell() -> None:
    context = click.Context(what_if)
    context.params["machine"] = "clx"
    found = [item.value for item in Setting().shell_complete(context, what_if.params[0], "L2.s")]
    assert found == ["L2.size=", "L2.sets=", "L2.shared_by="]
    context.params["machine"] = "nothing-like-it"
    assert Setting().shell_complete(context, what_if.params[0], "L2.s") == []


REFUSED = {
    "nothing asked": ((), "there is nothing to change", "--set PATH=VALUE"),
    "unknown figure": (("--set", "L2.sise=1MiB"), "--set L2.sise=1MiB: clx.yml has no figure", "did you mean L2.size"),
    "unknown name": (("--set", "frequency=1GHz"), "no figure 'frequency'", "clock"),
    "several figures": (("--set", "size=1MiB"), "may be one of several", "L1.size, L2.size, L3.size"),
    "not in the file": (("--set", "memory.channels=8"), "has no section 'memory'", "add it"),
    "no value": (("--set", "L2.size"), "'L2.size' is no PATH=VALUE", "write --set L2.size=2MiB"),
    "empty value": (("--set", "L2.size="), "is no PATH=VALUE", "write"),
    "wrong unit": (
        ("--set", "L2.size=2GHz"),
        "--set L2.size=2GHz: caches.L2.size: '2GHz' has no unit of data",
        "use one of B",
    ),
    "no unit": (("--set", "clock=3"), "is not a frequency with a unit", "GHz"),
    "half a core": (("--set", "cores_per_socket=x1.03"), "is not a whole number", "give the value"),
    "contradiction": (("--set", "cores_per_socket=4"), "contradicts the rest of clx.yml", "L3.shared_by"),
    "a word": (("--set", "L3Mem.width=x2"), "is measured", "memory.bandwidth"),
    "too many cores": (("--set", "clock=3GHz", "--cores", "100"), "100 cores, but clx has 40", "1 to 40"),
    "several sizes": (("--set", "clock=3GHz", "-D", "N=1,2"), "one value for each size", "-D N=4000"),
    "two questions": (("--set", "clock=3GHz", "--sensitivity"), "--sensitivity: does not go with --set", "ask one"),
    "three": (("--flags", "-O1", "--sensitivity"), "does not go with --flags or --compiler", "ask one"),
    "no step": (("--sensitivity", "--step", "0"), "'0' is no step", "10%"),
    "too great a step": (("--sensitivity", "--step", "100%"), "'100%' is no step", "10%"),
    "step is a word": (("--sensitivity", "--step", "much"), "'much' is no step", "10%"),
    "plot of nothing": (("--set", "clock=3GHz", "--plot", "a.svg"), "draws a sensitivity only", "--sensitivity"),
    "format": (("--sensitivity", "--plot", "a.bmp"), "the format '.bmp' is not known", ".svg"),
    "drawing in json": (("--sensitivity", "--json", "--plot", "-"), "would mix a drawing", "leave out"),
    "asm": (("--flags", "-O1", "--asm", "a.s"), "--asm: does not go with --flags", "leave it out"),
    "quotes": (("--flags", "-O1 'x"), "cannot be split", "quotes"),
    "listed kernel": (("--list",), "--list: takes no kernel", "leave out stencil.c"),
}


@pytest.mark.parametrize(("arguments", "what", "todo"), REFUSED.values(), ids=REFUSED)
def test_usage(run, arguments, what, todo) -> None:
    outcome = run("what-if", "-m", "clx", "stencil.c", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("kernmodel: error: ")
    assert what in outcome.err
    assert todo in outcome.err
    assert "Traceback" not in outcome.err


def test_no_kernel(run) -> None:
    outcome = run("what-if", "-m", "clx", "--sensitivity")
    assert outcome.status == 2
    assert "there is no kernel; give a C kernel, or --list" in outcome.err


@pytest.mark.parametrize(
    ("machine", "kernel", "change", "what"),
    [
        ("nope", "stencil.c", "clock=3GHz", "no such machine file"),
        ("clx", "nope.c", "clock=3GHz", "no such kernel"),
        ("clx", "stencil.c", "microarchitecture=XYZ", "unknown microarchitecture"),
    ],
)
def test_input(run, machine, kernel, change, what) -> None:
    outcome = run("what-if", "-m", machine, kernel, "--set", change)
    assert (outcome.status, outcome.out) == (1, "")
    assert what in outcome.err


@needs_compiler
def test_a_unit_without_a_meaning(run) -> None:
    outcome = run("what-if", "-m", "clx", "copy.c", "--set", "clock=3GHz", "--unit", "FLOP/s")
    assert outcome.status == 2
    assert "no floating-point operations" in outcome.err


@needs_compiler
def test_strict_refuses_warnings(run, tmp_path) -> None:
    assert run("what-if", "-m", "clx", "stencil.c", "--set", "clock=3GHz", "--strict").status == 0
    arguments = ("--compiler", "gcc", "--flags", "-O1")
    text = "compilers:\n  gcc: -frubbish\n"
    machine = tmp_path / "m.yml"
    own = Path(load_machine("clx").file).read_text(encoding="utf-8")
    machine.write_text(own.partition("compilers:")[0] + text)
    assert run("what-if", "-m", machine, "stencil.c", *arguments).status == 0
    outcome = run("what-if", "-m", machine, "stencil.c", *arguments, "--strict")
    assert outcome.status == 1
    assert "fails, so the ratios are to the first code that does not" in outcome.err
