"""Kernels described in YAML: the nest of the C that says the same, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import InputError
from kernmodel.source.load import load_kernel

CARRIED = Path(__file__).parents[2] / "kernels" / "stencil-described.yml"
DESCRIBED = """arrays:
  a: {type: double, dimension: [M, N]}
  b: {type: float, dimension: [M, N]}
  s: {type: double, dimension: null}
loops:
  - {index: j, start: 1, stop: M-1}
  - {index: i, start: 1, stop: N-1, step: 2}
data sources:
  a: [[j, i-1], [j-1, i], [j, i-1]]
  s: [null]
data destinations:
  b: [[j, 2*i-i]]
flops: {"+": 2, "*": 1, fma: 1}
constants: {M: 300, N: 400}
"""
SAME = """float b[M][N]; double a[M][N];
for (int j = 1; j < M - 1; ++j)
  for (int i = 1; i < N - 1; i += 2)
    b[j][i] = a[j][i-1] + a[j-1][i] + a[j][i-1];
"""


@pytest.fixture
def described(tmp_path):
    def write(text: str = DESCRIBED) -> Path:
        path = tmp_path / "described.yml"
        path.write_text(text)
        return path

    return write


def test_a_description_gives_the_nest_of_the_same_c(described, tmp_path):
    (tmp_path / "same.c").write_text("#define M 300\n#define N 400\n" + SAME)
    nest, same = load_kernel(str(described())), load_kernel(str(tmp_path / "same.c"))
    assert [(one.variable, one.start, one.stop, one.step) for one in nest.loops] == [
        (one.variable, one.start, one.stop, one.step) for one in same.loops
    ]
    assert {(one.array, one.kind, one.offset, one.coefficients, one.count) for one in nest.accesses} == {
        (one.array, one.kind, one.offset, one.coefficients, one.count) for one in same.accesses
    }
    assert {name: (one.element, one.shape) for name, one in nest.arrays.items()} == {
        name: (one.element, one.shape) for name, one in same.arrays.items()
    }
    assert (nest.symbols, dict(nest.defaults)) == (same.symbols, {"M": 300, "N": 400})
    assert nest.operations.flops_per_iteration == 5


def test_traffic_and_with_its_assembly_ecm_are_those_of_the_c_source(tmp_path):
    ours = km.data_traffic("stencil-described.yml", "clx", N=4000).answer.traffic
    theirs = km.data_traffic("stencil.c", "clx", N=4000).answer.traffic
    assert (ours.paths, ours.transitions, ours.flops_per_iteration) == (
        theirs.paths,
        theirs.transitions,
        theirs.flops_per_iteration,
    )
    loop = tmp_path / "triad.s"
    loop.write_text(
        ".L1:\nvmovupd (%rsi,%rax), %ymm0\nvfmadd213pd (%rdx,%rax), %ymm1, %ymm0\nvmovupd %ymm0, (%rdi,%rax)\n"
        "add $32, %rax\ncmp %rcx, %rax\njne .L1\n"
    )
    kernel = tmp_path / "triad.yml"
    kernel.write_text(
        "arrays:\n" + "".join(f"  {name}: {{type: double, dimension: N}}\n" for name in "abc") + "loops:\n"
        "  - {index: i, start: 0, stop: N}\ndata sources: {b: [i], c: [i]}\n"
        "data destinations: {a: [i]}\nflops: {fma: 1}\n"
    )
    source = "double a[N], b[N], c[N], s;\nfor (int i = 0; i < N; ++i) a[i] = b[i] * s + c[i];\n"
    by_asm = km.CodeOptions(asm=loop)
    described, written = (km.ecm(one, "clx", code=by_asm, N=10**7).answer.prediction for one in (kernel, source))
    assert described.times == written.times


def test_without_code_the_bound_is_the_point_and_ecm_is_refused(capsys):
    chart = km.roofline_chart(CARRIED, "clx", N=4000).answer
    (point, *_), bound = chart.kernels[0].rooflines[0].points, chart.kernels[0].rooflines[0].bound
    assert (point.predicted, point.flop_per_second) == (False, bound)
    assert [note.code for note in chart.notes].count("no-code") == 1
    assert main(["roofline", "-m", "clx", "--description", str(CARRIED), "--model", "all"]) == 0
    assert "adCARM" not in capsys.readouterr().out
    assert main(["ecm", "-m", "clx", "--description", str(CARRIED)]) == 1
    assert "its in-core part is not known; give --asm FILE, or ask `traffic --cycles`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["traffic", "stencil.c", "--description", str(CARRIED), "-m", "clx"], 2, "stands beside KERNEL"),
        (["traffic", "--description", "stencil.c", "-m", "clx"], 2, "is no description; give a .yml file"),
        (
            ["traffic", "--description", "nosuch.yml", "-m", "clx"],
            1,
            "nosuch.yml: no such kernel description; give a path, or one of the carried ones",
        ),
        (["traffic", "-m", "clx"], 2, "Missing argument 'KERNEL'"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments, status, said, capsys):
    assert main(arguments) == status
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("data sources:", "data source:", 9, "data source: is not known; did you mean 'data sources'?"),
        ("stop: M-1", "stopp: M-1", 6, "loops[1].stopp: is not known; did you mean 'stop'?"),
        ("start: 1, stop: M-1", "start: 1", 6, "loops[1]: has no 'stop'"),
        ("[j-1, i]", "[j-1]", 9, "has 1 indices, but a has 2 dimensions"),
        ("[j-1, i]", "[j-1, i*j]", 9, "is not affine in the loop variables"),
        ("[j-1, i]", "[j-1, f(i)]", 9, "'f(i)' is no index expression"),
        ("[j-1, i]", "[j-1, i/2]", 9, "'i/2' is no index expression"),
        ("  b: [[j", "  c: [[j", 12, "is no array of `arrays`; use one of a, b"),
        ("type: float", "type: real", 3, "'real' is no arithmetic type of C"),
        ("step: 2", "step: 0", 7, "is 0; write by how much the variable advances"),
        ('"*": 1', '"x": 1', 13, "x is no operation; use one of +, -, *, /"),
        ("[M, N]", "[M, i]", 2, "i holds the loop variable i; write an extent in sizes"),
        ("start: 1, stop: M-1", "start: i, stop: M-1", 6, "i holds the loop variable i; write a bound in sizes"),
        ("index: i", "index: j", 7, "j is the variable of a loop further out; give each loop its own"),
        ("[j-1, i]", f"[{'+'.join(['j'] * 60)}, i]", 9, "has more than 100 characters"),
        ("{M: 300", "{M: many", 14, "'many' is no whole number"),
        ("arrays:", "arrays: [", None, "is not valid YAML"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_key(described, old, new, line, said):
    path = described(DESCRIBED.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        load_kernel(str(path))
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{path}:" + (f"{line}: " if line else ""))


def test_an_index_outside_of_its_array_names_its_line(described):
    path = described(DESCRIBED.replace("[j-1, i]", "[j-2, i]"))
    with pytest.raises(InputError, match=r"described\.yml:9: a\[j-2\]\[i\] is out of bounds"):
        km.data_traffic(path, "clx")
