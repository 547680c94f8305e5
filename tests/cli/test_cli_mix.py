"""`kernmodel mix`: of a kernel, of a listing, of a file; with the source beside the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "code" / "data"
needs_assembler = pytest.mark.needs("as")
needs_compiler = pytest.mark.needs("gcc|clang")
pytestmark = needs_assembler

TRIAD = """\
        .globl triad
triad:
.L3:
        vmovupd (%rsi,%rax), %ymm0
        vfmadd231pd (%rdx,%rax), %ymm2, %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rcx, %rax
        jne     .L3
        ret
"""
SPILLING = """\
stencil:
        movq    $-800, %rax
.L3:
        vmovupd (%rsi,%rax), %ymm0
        vmovapd 32(%rsp), %ymm3
        vmulpd  .LC0(%rip), %ymm0, %ymm0
        vmulpd  %ymm3, %ymm0, %ymm0
        vmovapd %ymm3, 64(%rsp)
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        jne     .L3
        ret
        .section .rodata
.LC0:   .zero 32
"""
TWO_LOOPS = """\
f:
.L1:
        vmulsd (%rsi,%rax), %xmm1, %xmm0
        vmovsd %xmm0, (%rdi,%rax)
        addq    $8, %rax
        jne     .L1
.L2:
        vaddpd (%rsi,%rax), %zmm1, %zmm0
        addq    $64, %rax
        jne     .L2
        ret
"""


@pytest.fixture
def file(tmp_path):
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def document(run):
    def read(*arguments: object) -> dict:
        outcome = run("mix", *arguments, "--json")
        assert (outcome.status, outcome.err) == (0, "")
        return json.loads(outcome.out)

    return read


def comparisons(document: dict) -> dict[str, tuple[float, float, str]]:
    (part,) = document["parts"]
    return {row["what"]: (row["source"], row["code"], row["reason"]) for row in part["source_beside_code"]}


def test_a_listing(run, file):
    outcome = run("mix", file("triad.s", TRIAD))
    assert (outcome.status, outcome.err) == (0, "")
    assert "load 32 B vector" in outcome.out
    assert "FMA DP, 4 lanes" in outcome.out
    assert "2 (loads are 66.7 %)" in outcome.out
    assert "per pass of the loop" in outcome.out
    assert "0.08333 FLOP/B of load and store instructions" in outcome.out


def test_json_of_a_listing(document, file):
    found = document(file("triad.s", TRIAD), "-m", "clx")
    assert found["schema"] == "kernmodel.mix/1"
    assert found["machine"]["name"] == "clx"
    assert set(found) == {"schema", "version", "name", "machine", "mix", "parts", "notes"}
    mix = found["mix"]
    sums = ("loads", "stores", "load_share", "load_store_ratio", "bytes", "flops", "intensity", "other")
    assert set(mix) == {"source", "per", "shares_only", "served", *sums, "memory", "fp"}
    assert (mix["loads"], mix["stores"], mix["bytes"], mix["flops"], mix["other"]) == (2, 1, 96, 8, 3)
    assert mix["memory"][0] == {
        "size_bytes": 32,
        "kind": "vector",
        "store": False,
        "streaming": False,
        "masked": False,
        "instructions": 2,
    }
    assert mix["fp"] == [
        {"operation": "fma", "precision": "DP", "lanes": 4, "masked": False, "flops": 8, "instructions": 1}
    ]
    (part,) = found["parts"]
    assert set(part) == {"kernel", "code", "weight", "mix", "source_beside_code"}
    assert part["kernel"] is None
    assert part["mix"] == mix


def test_an_object_file_gives_the_same_as_its_listing(document, file, tmp_path):
    listing = file("triad.s", TRIAD)
    subprocess.run(["as", "-o", tmp_path / "triad.o", listing], check=True)
    assert document(tmp_path / "triad.o")["mix"]["memory"] == document(listing)["mix"]["memory"]


def test_loops_weigh_in_by_their_passes(document, file):
    listing = file("two.s", TWO_LOOPS)
    one, two = (document(listing, "--loop", number)["mix"] for number in (1, 2))
    both = document(listing, "--weigh", "1=300", "--weigh", "2=100")
    assert [part["weight"] for part in both["parts"]] == [300, 100]
    for name in ("loads", "stores", "bytes", "flops", "other"):
        assert both["mix"][name] == pytest.approx((3 * one[name] + two[name]) / 4), name


def test_the_table_of_loops_that_weigh_in(run, file):
    outcome = run("mix", file("two.s", TWO_LOOPS), "--weigh", "1=3", "--weigh", "2=1")
    assert "Loops that weigh in" in outcome.out
    assert "main" not in outcome.out


def test_verbose_shows_the_loop(run, file):
    assert "vfmadd231pd (%rdx,%rax), %ymm2, %ymm0" in run("mix", file("triad.s", TRIAD), "-v").out


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("incq (%rsi)", "no floating-point operation: the intensity is 0 FLOP/B"),
        ("vaddpd %ymm0, %ymm1, %ymm2", "no memory access: there is no intensity"),
        ("rep movsq", "how often it repeats is not known"),
    ],
)
def test_what_a_mix_lacks_is_said(run, file, body, sentence):
    outcome = run("mix", file("a.s", f"{body}\n"))
    assert outcome.status == 0
    assert sentence in outcome.out


def test_strict_refuses_what_is_not_known(run, file):
    outcome = run("mix", "--strict", file("a.s", "rep movsq\n"))
    assert outcome.status == 1
    assert "a.s:1: movsq: how often it repeats" in outcome.err


def test_a_listing_loads_neither_sympy_nor_yaml_of_machines(tmp_path):
    (tmp_path / "triad.s").write_text(TRIAD)
    statement = f"from kernmodel.cli.main import main; main(['mix', {str(tmp_path / 'triad.s')!r}])"
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "kernmodel.code.mix" in loaded
    assert not loaded.intersection({"sympy", "pycparser", "numpy", "pint", "yaml", "rich"})


def test_a_kernel_with_its_assembly(document, file):
    found = document("triad", "-m", "clx", "--asm", file("triad.s", TRIAD))
    assert found["mix"]["per"] == "source iteration"
    assert (found["mix"]["bytes"], found["mix"]["flops"]) == (24, 2)
    rows = comparisons(found)
    assert rows["bytes loaded"] == (16, 16, "")
    assert rows["FLOP"] == (2, 2, "")
    assert rows["additions"] == (1, 1, "1 by FMA instructions")


def test_reasons_why_the_code_moves_other_bytes(document, file):
    kernel = file(
        "scale.c", "#define N 100\ndouble a[N], b[N], s;\nfor (int i = 0; i < N; ++i) a[i] = b[i] * 2. * s;\n"
    )
    rows = comparisons(document(kernel, "-m", "clx", "--asm", file("s.s", SPILLING)))
    assert rows["bytes loaded"] == (8, 24, "8 B from the stack; 8 B from constants")
    assert rows["bytes stored"] == (8, 16, "8 B to the stack")


def test_elements_that_references_share_are_loaded_once(document, file):
    text = "#define N 100\ndouble a[N], b[N];\nfor (int i = 1; i < N - 1; ++i) a[i] = b[i-1] + b[i+1];\n"
    listing = """
f:
.L3:
        vaddsd  8(%rsi,%rax), %xmm0, %xmm1
        vmovsd  %xmm1, (%rdi,%rax)
        addq    $8, %rax
        cmpq    %rcx, %rax
        jne     .L3
        ret
"""
    rows = comparisons(document(file("a.c", text), "-m", "clx", "--asm", file("a.s", listing)))
    assert rows["bytes loaded"] == (16, 8, "elements that several references or iterations share are loaded once")


def test_a_pass_of_several_iterations_of_an_outer_loop(document, file):
    text = "#define N 100\ndouble y[N], a[2][N], x[2];\n"
    text += "for (int j = 0; j < 2; ++j)\n for (int i = 0; i < N; ++i) y[i] += a[j][i] * x[j];\n"
    listing = """
f:
.L3:
        vmovupd (%rdx,%rax), %ymm1
        vfmadd213pd (%rdi,%rax), %ymm3, %ymm1
        vfmadd231pd (%rsi,%rax), %ymm2, %ymm1
        vmovupd %ymm1, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rcx, %rax
        jne     .L3
        ret
"""
    found = document(file("a.c", text), "-m", "clx", "--asm", file("a.s", listing))
    assert found["parts"][0]["code"]["loop"]["iterations_per_pass"] == 8
    assert comparisons(found)["FLOP"][:2] == (2, 2)


@needs_compiler
def test_a_compiled_kernel(run):
    outcome = run("mix", "-m", "clx", "stencil", "-D", "N=1000")
    assert outcome.status == 0
    assert "The source beside the code" in outcome.out
    assert "main loop" in outcome.out
    assert "998 iterations at a time" in outcome.out


@needs_compiler
def test_nests_weigh_in_by_their_iterations(document, file):
    text = """
#define N 1000
double a[N], b[N], c[N];
void f(void) {
    for (int i = 0; i < N; ++i) a[i] = b[i] * 2.;
    for (int i = 0; i < 500; ++i) c[i] = c[i] + a[i] + b[i];
}
"""
    found = document(file("two.c", text), "-m", "clx", "--nests", "1,2")
    assert [part["weight"] for part in found["parts"]] == [1000, 500]
    assert found["mix"]["flops"] == pytest.approx((1000 * 1 + 500 * 2) / 1500)
    assert found["mix"]["bytes"] == pytest.approx((1000 * 16 + 500 * 32) / 1500)


def test_a_mix_file(run):
    outcome = run("mix", "--mix", DATA / "iso3dfd-avx512.yml")
    assert outcome.status == 0
    assert "14 (loads are 93.3 %)" in outcome.out
    assert "not known: the file gives shares" in outcome.out
    assert "FMA SP, 16 lanes" in outcome.out


def test_a_mix_of_sde(document):
    assert document("--mix", DATA / "sde-mix.txt")["mix"]["loads"] == 2100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to count"),
        (("triad.c",), "a C kernel needs a machine"),
        (("--mix", "m.yml", "a.s"), "a FILE: does not fit"),
        (("--mix", "m.yml", "--loop", "1"), "--loop: does not fit"),
        (("a.s", "-D", "N=3"), "-D: does not fit"),
        (("a.s", "--flags", "-O1"), "--flags: does not fit"),
        (("triad.c", "-m", "clx", "--weigh", "1=3"), "--weigh: does not fit"),
        (("triad.c", "-m", "clx", "--nests", "1,2", "--nest", "1"), "--nests: does not fit"),
        (("triad.c", "-m", "clx", "--nests", "x"), "--nests"),
        (("triad.c", "-m", "clx", "-D", "N=1,2"), "one value for each size"),
        (("a.s", "--weigh", "1"), "'1' is no loop with its passes"),
        (("a.s", "--weigh", "1=0"), "'1=0' is no loop with its passes"),
        (("a.s", "--weigh", "1=1", "--weigh", "1=2"), "loop 1 is given twice"),
        (("a.s", "--weigh", "1=1", "--loop", "1"), "--weigh: does not fit"),
        (("a.s", "-m", "clx", "--uarch", "SKL"), "not both"),
    ],
)
def test_options_that_do_not_fit(run, arguments, message):
    outcome = run("mix", *arguments)
    assert outcome.status == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.s",), "missing.s"),
        (("no-such-kernel", "-m", "clx"), "no-such-kernel"),
        (("--mix", "missing.yml"), "missing.yml: cannot be read"),
        (("a.s", "--uarch", "nothing"), "nothing"),
    ],
)
def test_files_and_names_that_are_not_there(run, arguments, message):
    outcome = run("mix", *arguments)
    assert outcome.status == 1
    assert message in outcome.err
