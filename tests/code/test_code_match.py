"""Matching loops to the source: what gcc and clang make of small kernels, and every way a choice can fail."""

from __future__ import annotations

import shutil
from functools import cache

import pytest

import kernmodel as km
from kernmodel.code.balance import ExpectedWork, WholeLoops
from kernmodel.code.compile import FoundCompiler, start_compile
from kernmodel.code.describe import floating_work
from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.match import Choice, Expectation, ExpectedIndirect, OuterLoop, choose_fit, choose_loop
from kernmodel.code.model import ExpectedAccess
from kernmodel.code.select import select_without_source
from kernmodel.code.strides import analyse
from kernmodel.errors import AmbiguousLoopError, AssemblyError, UsageError
from kernmodel.isa.model import Listing


def read(array: str, stride: int, element: int = 8, **others: int) -> ExpectedAccess:
    return ExpectedAccess(array, element, stride, False, others=tuple(others.items()))


def write(array: str, stride: int, element: int = 8, **others: int) -> ExpectedAccess:
    return ExpectedAccess(array, element, stride, True, others=tuple(others.items()))


def whole(variable: str, length: int) -> tuple[WholeLoops, ...]:
    """An innermost loop that a step of the one around it may execute entirely."""
    return (WholeLoops((variable,), tuple((number,) for number in range(length))),)


@cache
def compiled(source: str, flags: str, compiler: str = "gcc", family: str | None = None) -> Listing:
    """`family` other than the compiler's own leaves out what kernmodel adds to the flags of that family."""
    command = shutil.which(compiler) or shutil.which(f"{compiler}-19")
    if command is None:
        pytest.skip(f"no {compiler} on this system")
    found = FoundCompiler(family or compiler, command, ())
    made = start_compile(source, name="k.c", compiler=found, flags=tuple(flags.split()), defines={}).finish()
    return read_listing(made.text, "k.s")


TRIAD = (
    "void k(double*restrict a,double*restrict b,double*restrict c,double s){for(int i=0;i<5000;++i)a[i]=b[i]+s*c[i];}"
)
TRIAD_ACCESSES = (read("b", 8), read("c", 8), write("a", 8))


def fits_of(listing: Listing, told: Expectation) -> Choice:
    return choose_fit(analyse(listing, control_flow(listing)), told)


@pytest.mark.parametrize(
    ("flags", "compiler", "iterations"),
    [
        ("-O0", "gcc", 1),
        ("-O1", "gcc", 1),
        ("-O3 -march=sandybridge", "gcc", 4),
        ("-O3 -march=skylake-avx512 -mprefer-vector-width=512", "gcc", 8),
        ("-O3 -march=haswell -funroll-loops", "gcc", None),
        ("-O0", "clang", 1),
        ("-O3 -march=haswell", "clang", 32),
    ],
)
def test_triad_is_found_and_accounts_for_all_its_iterations(flags: str, compiler: str, iterations: int | None) -> None:
    listing = compiled(TRIAD, flags, compiler)
    found = choose_loop(listing, Expectation(TRIAD_ACCESSES, trip_count=5000))
    assert found.iterations_per_pass is not None
    if iterations is not None:
        assert found.iterations_per_pass == iterations
    main = fits_of(listing, Expectation(TRIAD_ACCESSES)).main
    assert main.strides.passes is not None
    assert 0 <= 5000 - main.strides.passes * found.iterations_per_pass < 2 * found.iterations_per_pass
    assert found.role == "main"
    assert found.instructions[-1].branch in ("conditional", "jump")
    assert f"{int(found.iterations_per_pass) * 8} B stored" in found.evidence


def test_a_loop_around_that_the_function_does_not_have_is_noted() -> None:
    inner = """.L3:
    vmovsd (%rsi,%rax,8), %xmm1
    vfmadd132sd (%rdx,%rax,8), %xmm0, %xmm1
    vmovsd %xmm1, (%rdi,%rax,8)
    incq %rax
    cmpq %rax, %rcx
    jne .L3
"""
    again = (OuterLoop("k", (read("b", 0), read("c", 0), write("a", 0))),)
    told = Expectation(TRIAD_ACCESSES, outer=again, function="f", trip_count=5000)
    for text, noted in (
        (f"f:\n{inner}    ret\n", True),
        (f"f:\n.L2:\n    xorl %eax, %eax\n{inner}    decl %r8d\n    jne .L2\n    ret\n", False),
        (f"f:\n{inner}", False),  # a part of a function does not tell what is around it
        (f"{inner}    ret\n", False),
    ):
        found = choose_loop(read_listing(text, "k.s", syntax="att"), told)
        assert any(note.code == "loops-removed" for note in found.notes) == noted


@pytest.mark.parametrize(("lines", "noted"), [((7, 8), False), ((8, 9), True), (None, False)])
def test_a_loop_that_comes_from_other_lines_of_the_source_is_told(lines: tuple[int, int] | None, noted: bool) -> None:
    """The rest of an unrolled loop becomes straight code, and moves as the unrolled loop does."""
    text = "f:\n.L3:\n vmovsd (%rsi,%rax,8), %xmm1\n vfmadd132sd (%rdx,%rax,8), %xmm0, %xmm1\n"
    text += " vmovsd %xmm1, (%rdi,%rax,8)\n incq %rax\n cmpq %rax, %rcx\n jne .L3\n ret\n"
    told = Expectation(TRIAD_ACCESSES, function="f", lines=lines, source_lines=dict.fromkeys(range(3, 9), 7))
    found = choose_loop(read_listing(text, "k.s", syntax="att"), told)
    assert any(note.code == "loop-from-elsewhere" for note in found.notes) == noted


@pytest.mark.parametrize(("trip_count", "noted"), [(5000, True), (8, False), (None, False)])
def test_a_loop_of_few_of_the_steps_is_told_to_be_that_of_the_rest(trip_count: int | None, noted: bool) -> None:
    text = "f:\n xorl %eax, %eax\n.L3:\n vmovsd (%rsi,%rax,8), %xmm1\n vfmadd132sd (%rdx,%rax,8), %xmm0, %xmm1\n"
    text += " vmovsd %xmm1, (%rdi,%rax,8)\n incq %rax\n cmpq $7, %rax\n jne .L3\n ret\n"
    found = choose_loop(read_listing(text, "k.s", syntax="att"), Expectation(TRIAD_ACCESSES, trip_count=trip_count))
    assert any(note.code == "few-steps" for note in found.notes) == noted


def test_the_loop_of_a_function_that_is_called_is_found_where_the_caller_has_none() -> None:
    source = TRIAD.replace("void k", "static __attribute__((noinline)) void g")
    source += "void k(double*a,double*b,double*c){for(int t=0;t<9;++t)g(a,b,c,2);}void z(double*a){a[0]=1;}"
    again = (OuterLoop("t", (read("b", 0), read("c", 0), write("a", 0))),)
    for flags in ("-O1", "-O3"):
        found = choose_loop(compiled(source, flags), Expectation(TRIAD_ACCESSES, outer=again, function="k"))
        codes = {note.code for note in found.notes}
        assert "called-function" in codes and "loops-removed" not in codes
    with pytest.raises(AssemblyError, match="no loop"):
        choose_loop(compiled(source, "-O1"), Expectation(TRIAD_ACCESSES, function="z"))


def test_vector_loop_is_preferred_to_the_fallback_for_overlapping_arrays() -> None:
    listing = compiled(TRIAD.replace("restrict", ""), "-O3 -march=haswell")
    found = choose_loop(listing, Expectation(TRIAD_ACCESSES, trip_count=5000))
    assert found.iterations_per_pass == 4
    assert len(fits_of(listing, Expectation(TRIAD_ACCESSES)).fits) == 2


def test_single_precision_integers_and_mixed_types() -> None:
    mixed = "void k(double*restrict a,float*restrict b,int*restrict c){for(int i=0;i<4096;++i)a[i]=b[i]*c[i];}"
    found = choose_loop(
        compiled(mixed, "-O3 -march=haswell"),
        Expectation((read("b", 4, 4), read("c", 4, 4), write("a", 8)), trip_count=4096),
    )
    assert found.iterations_per_pass == 8


def test_downward_and_strided_loops() -> None:
    down = "void k(double*restrict a,double*restrict b){for(int i=4999;i>=0;--i)a[i]=3*b[i];}"
    by_two = "void k(double*restrict a,double*restrict b){for(int i=0;i<5000;i+=2)a[i]=3*b[i];}"
    found = choose_loop(compiled(down, "-O3 -march=haswell"), Expectation((read("b", -8), write("a", -8))))
    assert found.iterations_per_pass == 4
    found = choose_loop(compiled(by_two, "-O3 -march=haswell"), Expectation((read("b", 16), write("a", 16))))
    assert found.iterations_per_pass == 4


DOT = "double k(double*restrict a,double*restrict b){double s=0;for(int i=0;i<5000;++i)s+=a[i]*b[i];return s;}"


def test_reduction_is_measured_by_its_loads_and_its_work() -> None:
    accesses = (read("a", 8), read("b", 8))
    found = choose_loop(
        compiled(DOT, "-Ofast -march=haswell"), Expectation(accesses, work=ExpectedWork({"add": 1, "mul": 1}))
    )
    assert found.iterations_per_pass == 4
    assert "64 B loaded per pass and 4 mul operations" in found.evidence


PI = "double k(void){double s=0;for(int i=0;i<4096;++i){double x=(i+0.5)/4096;s+=4/(1+x*x);}return s;}"


def test_kernel_without_arrays_is_measured_by_its_work_or_its_passes() -> None:
    listing = compiled(PI, "-Ofast -march=haswell")
    by_work = choose_loop(listing, Expectation((), work=ExpectedWork({"div": 1, "mul": 2, "add": 3})))
    by_passes = choose_loop(listing, Expectation((), trip_count=4096))
    assert by_work.iterations_per_pass == by_passes.iterations_per_pass == 8


TRANSPOSED = (
    "void k(double a[restrict 999][1000],double*restrict x,double*restrict y)"
    "{for(int j=0;j<1000;++j)for(int i=0;i<999;++i)y[j]+=a[i][j]*x[i];}"
)


def test_outer_loop_in_vector_lanes_counts_all_lanes() -> None:
    accesses = (read("a", 8000, j=8), read("x", 8, j=0), read("y", 0, j=8), write("y", 0, j=8))
    found = choose_loop(compiled(TRANSPOSED, "-O3 -march=haswell"), Expectation(accesses, trip_count=999))
    assert (found.iterations_per_pass, found.along, found.copies) == (4, "j", 4)
    assert [note.code for note in found.notes] == ["outer-loop-unrolled"]


MATMUL = (
    "void k(double a[restrict 500][500],double b[restrict 500][500],double c[restrict 500][500])"
    "{for(int i=0;i<500;++i)for(int j=0;j<500;++j)for(int k=0;k<500;++k)c[i][j]+=a[i][k]*b[k][j];}"
)


def test_exchanged_loops_are_found_by_the_strides_of_the_other_loop() -> None:
    inner = (read("a", 8), read("b", 4000), read("c", 0), write("c", 0))
    over_j = OuterLoop("j", (read("a", 0), read("b", 8), read("c", 8), write("c", 8)))
    listing = compiled(MATMUL, "-Ofast -march=haswell -fno-loop-unroll-and-jam")
    found = choose_loop(
        listing, Expectation(inner, outer=(over_j,), work=ExpectedWork({"add": 1, "mul": 1}), trip_count=500)
    )
    assert found.iterations_per_pass == 4
    assert [note.code for note in found.notes] == ["loops-exchanged"]
    assert "step of j" in found.evidence


ROWS = (
    "void k(double (*restrict a)[4],double*restrict b)"
    "{for(int j=0;j<5000;++j){double s=0;for(int i=0;i<4;++i)s+=a[j][i];b[j]=s;}}"
)


@pytest.mark.parametrize("flags", ["-O1", "-O3 -march=haswell", "-Ofast -march=haswell"])
def test_inner_loop_that_is_unrolled_entirely(flags: str) -> None:
    over_j = OuterLoop("j", (read("a", 32, i=8), write("b", 8)), whole=whole("i", 4))
    work = ExpectedWork({"add": 1})
    found = choose_loop(
        compiled(ROWS, flags),
        Expectation((read("a", 8, j=32),), outer=(over_j,), work=work, variable="i", trip_count=4),
    )
    assert found.iterations_per_pass == (4 if flags == "-O1" else 16)
    assert [note.code for note in found.notes] == ["inner-loop-unrolled"]


UNROLLED_AND_REST = """
k:
    vmovupd (%rdi), %ymm0
    xorl %eax, %eax
.L6:
    vbroadcastsd (%rsi,%rax,8), %ymm1
    vbroadcastsd 8(%rsi,%rax,8), %ymm2
    vfmadd231pd (%rdx), %ymm1, %ymm0
    vfmadd231pd 32(%rdx), %ymm2, %ymm0
    vmovupd %ymm0, (%rdi)
    addq $64, %rdx
    addq $2, %rax
    cmpq $8, %rax
    jne .L6
    vmovsd (%rsi,%rax,8), %xmm1
    xorl %eax, %eax
.L3:
    vmovsd (%rdx,%rax,8), %xmm0
    vfmadd213sd (%rdi,%rax,8), %xmm1, %xmm0
    vmovsd %xmm0, (%rdi,%rax,8)
    addq $1, %rax
    cmpq $4, %rax
    jne .L3
    ret
"""


def test_of_an_unrolled_inner_loop_and_a_loop_for_the_rest_the_one_that_executes_most_is_taken() -> None:
    """Of nine steps of k, the loop over k executes eight, and the loop over i, which fits further in, the last."""
    inner = (read("a", 0, k=8), read("b", 8, k=32), read("c", 8, k=0), write("c", 8, k=0))
    over_k = OuterLoop(
        "k", (read("a", 8, i=0), read("b", 32, i=8), read("c", 0, i=8), write("c", 0, i=8)), whole=whole("i", 4)
    )
    work = ExpectedWork({"add": 1, "mul": 1})
    told = Expectation(inner, outer=(over_k,), work=work, variable="i", trip_count=4)
    found = choose_loop(read_listing(UNROLLED_AND_REST, "k.s"), told)
    assert (found.label, found.iterations_per_pass, found.variable) == (".L6", 8, "k")
    fewer = UNROLLED_AND_REST.replace("cmpq $8", "cmpq $2")
    assert choose_loop(read_listing(fewer, "k.s"), told).label == ".L3"


def test_collapsed_loops_are_said_to_be_so() -> None:
    source = (
        "void k(double (*restrict a)[4],double (*restrict b)[4])"
        "{for(int j=0;j<5000;++j)for(int i=0;i<4;++i)b[j][i]=2*a[j][i];}"
    )
    found = choose_loop(
        compiled(source, "-O3 -march=haswell"), Expectation((read("a", 8), write("b", 8)), trip_count=4)
    )
    assert [note.code for note in found.notes] == ["loops-collapsed"]
    assert found.iterations_per_pass == 4


def test_initialising_loops_of_the_same_stride_are_not_mistaken() -> None:
    source = (
        "void k(double*restrict a,double*restrict b,double*restrict c){for(int i=0;i<5000;++i)b[i]=i;"
        "for(int i=0;i<5000;++i)c[i]=1.5;for(int i=0;i<5000;++i)a[i]=b[i]+3*c[i];}"
    )
    for flags in ("-O1", "-O3 -march=haswell"):
        listing = compiled(source, flags)
        found = choose_loop(listing, Expectation(TRIAD_ACCESSES, trip_count=5000))
        assert sum(1 for s in found.streams if s.reference.read and s.stride_bytes) == 2


def test_runtime_row_length_leaves_strides_symbolic_and_is_said() -> None:
    source = (
        "void k(int n,int m,double (*restrict a)[n],double (*restrict b)[n])"
        "{for(int i=0;i<n;++i)for(int j=0;j<m;++j)b[j][i]=a[j][i]*2;}"
    )
    found = choose_loop(compiled(source, "-O1"), Expectation((read("a", 8000), write("b", 8000))))
    assert found.iterations_per_pass == 1
    assert [note.code for note in found.notes] == ["unknown-stride"]


def test_body_with_branches_is_said_to_count_all_blocks() -> None:
    source = "void k(double*restrict a,double*restrict b){for(int i=0;i<5000;++i)b[i]=a[i]>0.5?1/a[i]:b[i]+1;}"
    found = choose_loop(compiled(source, "-O1"), Expectation((read("a", 8), read("b", 8), write("b", 8))))
    assert found.iterations_per_pass == 1
    assert "conditional-blocks" in [note.code for note in found.notes]


def test_only_the_named_function_is_searched() -> None:
    other = TRIAD.replace("void k", "void other").replace("b[i]+s", "b[i]-s")
    listing = compiled(f"{TRIAD}\n{other}", "-O1")
    with pytest.raises(AmbiguousLoopError):
        choose_loop(listing, Expectation(TRIAD_ACCESSES))
    found = choose_loop(listing, Expectation(TRIAD_ACCESSES, function="other"))
    assert any("sub" in i.mnemonic for i in found.instructions)


COPY_THEN_UPDATE = (
    "void k(double*restrict a,double*restrict b){for(int i=0;i<5000;++i)a[i]=b[i];for(int i=0;i<5000;++i)a[i]+=3*b[i];}"
)
BOTH_COMPILERS = pytest.mark.parametrize("compiler", ["gcc", "clang"])
LEVELS = pytest.mark.parametrize("flags", ["-O1", "-O3 -march=haswell", "-Ofast -march=haswell"])


@BOTH_COMPILERS
@LEVELS
def test_loops_of_two_nests_are_told_apart_by_whether_they_compute(compiler: str, flags: str) -> None:
    listing = compiled(COPY_THEN_UPDATE, flags, compiler)
    copy = choose_loop(listing, Expectation((read("b", 8), write("a", 8)), work=ExpectedWork({}), trip_count=5000))
    update = choose_loop(
        listing,
        Expectation(
            (read("a", 8), read("b", 8), write("a", 8)), work=ExpectedWork({"add": 1, "mul": 1}), trip_count=5000
        ),
    )
    assert not floating_work(copy.instructions)
    assert floating_work(update.instructions)["mul"] == update.iterations_per_pass
    assert not copy.notes + update.notes


@BOTH_COMPILERS
@LEVELS
def test_loops_of_two_nests_are_told_apart_by_how_much_they_compute(compiler: str, flags: str) -> None:
    source = COPY_THEN_UPDATE.replace("a[i]=b[i]", "a[i]=b[i]*2.5").replace("a[i]+=3*b[i]", "a[i]=(a[i]+b[i])*b[i]")
    listing = compiled(source, flags, compiler)
    scale = choose_loop(
        listing, Expectation((read("b", 8), write("a", 8)), work=ExpectedWork({"mul": 1}), trip_count=5000)
    )
    other = choose_loop(
        listing,
        Expectation(
            (read("a", 8), read("b", 8), write("a", 8)), work=ExpectedWork({"add": 1, "mul": 1}), trip_count=5000
        ),
    )
    assert not floating_work(scale.instructions)["add"]
    assert floating_work(other.instructions)["add"] == other.iterations_per_pass


def test_loops_of_two_nests_are_told_apart_by_their_accesses() -> None:
    source = (
        "void k(long*restrict a,long*restrict b){for(int i=0;i<5000;++i)a[i]=b[i];for(int i=0;i<5000;++i)a[i]^=b[i];}"
    )
    listing = compiled(source, "-O1 -fno-tree-loop-distribute-patterns")
    copy = choose_loop(listing, Expectation((read("b", 8), write("a", 8)), work=ExpectedWork({}), trip_count=5000))
    xor = choose_loop(
        listing, Expectation((read("a", 8), read("b", 8), write("a", 8)), work=ExpectedWork({}), trip_count=5000)
    )
    assert "xor" not in {i.mnemonic for i in copy.instructions}
    assert "xor" in {i.mnemonic for i in xor.instructions}
    assert not copy.notes + xor.notes


def test_the_only_loop_that_moves_the_bytes_is_taken_with_a_warning_if_it_does_not_compute() -> None:
    hoisted = "void k(double*restrict a,double x,double y){for(int i=0;i<5000;++i)a[i]=x*y;}"
    found = choose_loop(
        compiled(hoisted, "-O2"), Expectation((write("a", 8),), work=ExpectedWork({"mul": 1}), trip_count=5000)
    )
    assert [(note.code, note.kind) for note in found.notes] == [("work-differs", "warning")]


def test_work_of_the_x87_unit_is_work() -> None:
    source = "void k(long double*restrict a,long double*restrict b){for(int i=0;i<5000;++i)a[i]=3*b[i];}"
    found = choose_loop(
        compiled(source, "-O2"), Expectation((read("b", 16, 16), write("a", 16, 16)), work=ExpectedWork({"mul": 1}))
    )
    assert "work-differs" not in [note.code for note in found.notes]


def test_identical_copies_are_taken_once_with_a_note() -> None:
    listing = compiled(f"{TRIAD}\n{TRIAD.replace('void k', 'void other')}", "-O1")
    assert [note.code for note in choose_loop(listing, Expectation(TRIAD_ACCESSES)).notes] == ["loop-copies"]


def test_ambiguous_loops_are_listed_with_what_distinguishes_them() -> None:
    listing = compiled(f"{TRIAD}\n{TRIAD.replace('void k', 'void other').replace('b[i]+', 'b[i]/')}", "-O1")
    with pytest.raises(AmbiguousLoopError) as caught:
        choose_loop(listing, Expectation(TRIAD_ACCESSES))
    first, second = caught.value.candidates
    assert "--loop 1: loop 1 (.L2, lines " in first
    assert "1 div" in second
    assert "5000 passes" in second
    assert "choose with --loop N" in str(caught.value)
    assert choose_loop(listing, Expectation(TRIAD_ACCESSES), loop=2).role == "chosen"


COPY = "void k(double*restrict a,double*restrict b){for(int i=0;i<5000;++i)a[i]=b[i];}"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_loop_replaced_by_a_library_call_is_said_to_be_and_how_to_avoid_it(compiler: str) -> None:
    accesses = (read("b", 8), write("a", 8))
    with pytest.raises(AssemblyError, match=r"k\.s:\d+: the loop is a call of memcpy") as caught:
        choose_loop(compiled(COPY, "-O3", compiler, family="plain"), Expectation(accesses))
    option = "-fno-tree-loop-distribute-patterns" if compiler == "gcc" else "-fno-builtin-memcpy"
    assert option in str(caught.value)
    assert choose_loop(compiled(COPY, "-O3", compiler), Expectation(accesses)).iterations_per_pass is not None


GATHER = "void k(double*restrict a,double*restrict x,int*restrict p){for(int i=0;i<5000;++i)a[i]=x[p[i]];}"
SCATTER = "void k(double*restrict x,double*restrict b,int*restrict p){for(int i=0;i<5000;++i)x[p[i]]=b[i];}"
COUNT = "void k(int*restrict x,int*restrict p){for(int i=0;i<5000;++i)x[p[i]]+=1;}"
FROM_X, TO_X = ExpectedIndirect("x", 8, False), ExpectedIndirect("x", 8, True)
COUNTED = (ExpectedIndirect("x", 4, False), ExpectedIndirect("x", 4, True))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("source", "accesses", "indirect"),
    [
        (GATHER, (read("p", 4, 4), write("a", 8)), (FROM_X,)),
        (SCATTER, (read("p", 4, 4), read("b", 8)), (TO_X,)),
        (COUNT, (read("p", 4, 4),), COUNTED),
    ],
)
@pytest.mark.parametrize("flags", ["-O1", "-O3", "-O3 -march=haswell", "-O3 -march=skylake-avx512"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_streams_that_an_index_array_places_are_accounted_for(
    source: str,
    accesses: tuple[ExpectedAccess, ...],
    indirect: tuple[ExpectedIndirect, ...],
    flags: str,
    compiler: str,
) -> None:
    listing = compiled(source, flags, compiler)
    found = choose_loop(listing, Expectation(accesses, indirect=indirect, work=ExpectedWork({}), trip_count=5000))
    assert not found.notes
    main = fits_of(listing, Expectation(accesses, indirect=indirect)).main
    assert main.exact and main.strides.passes is not None
    assert 0 <= 5000 - main.strides.passes * main.iterations < 2 * main.iterations


def test_streams_without_a_stride_must_be_those_of_the_source() -> None:
    listing, accesses = compiled(GATHER, "-O1"), (read("p", 4, 4), write("a", 8))
    for indirect in ((), (FROM_X, FROM_X)):
        found = choose_loop(listing, Expectation(accesses, indirect=indirect, trip_count=5000))
        assert [note.code for note in found.notes] == ["unknown-stride"]
    with pytest.raises(AssemblyError, match=r"load p \+4 B, store a \+8 B, store x through an index"):
        choose_loop(listing, Expectation(accesses, indirect=(TO_X,), trip_count=5000))


def test_loop_without_the_store_through_an_index_is_another_one() -> None:
    copy = compiled(COPY, "-O1")
    with pytest.raises(AssemblyError, match="no loop of the code fits"):
        choose_loop(copy, Expectation((read("b", 8),), indirect=(TO_X,)))


def test_short_inner_loop_that_fills_a_vector_is_not_taken_for_half_as_many_iterations_of_a_loop_further_out() -> None:
    """Rows of 48 bytes, of which a vector of four is computed: two iterations of k would fill half of it."""
    source = (
        "void k(float(*restrict b)[12][12],float(*restrict a)[12][12]){"
        "for(int k=0;k<99;++k)for(int j=0;j<12;++j)for(int i=0;i<4;++i)b[k][j][i]=a[k][j][i]+a[k][j][i+1];}"
    )
    outer = (
        OuterLoop("k", (read("a", 576, 4, j=48, i=4), read("a", 576, 4, j=48, i=4), write("b", 576, 4, j=48, i=4))),
        OuterLoop(
            "j",
            (read("a", 48, 4, k=576, i=4), read("a", 48, 4, k=576, i=4), write("b", 48, 4, k=576, i=4)),
            whole=whole("i", 4),
        ),
    )
    inner = (read("a", 4, 4, k=576, j=48), read("a", 4, 4, k=576, j=48), write("b", 4, 4, k=576, j=48))
    listing = compiled(source, "-O3 -march=haswell")
    told = Expectation(inner, outer=outer, work=ExpectedWork({"add": 1}), variable="i", trip_count=4)
    found = choose_loop(listing, told)
    assert found.iterations_per_pass == 48  # gcc unrolls the rows, too
    assert [note.code for note in found.notes] == ["inner-loop-unrolled"]


def test_inner_loop_with_a_gather_that_is_unrolled_entirely() -> None:
    source = (
        "void k(double*restrict y,double(*restrict v)[8],int(*restrict p)[8],double*restrict x){"
        "for(int j=0;j<999;++j){double s=0;for(int i=0;i<8;++i)s+=v[j][i]*x[p[j][i]];y[j]=s;}}"
    )
    outer = OuterLoop("j", (read("v", 64, i=8), read("p", 32, 4, i=4), write("y", 8)), (FROM_X,), whole("i", 8))
    inner = (read("v", 8), read("p", 4, 4))
    found = choose_loop(
        compiled(source, "-O3 -march=haswell"),
        Expectation(
            inner,
            indirect=(FROM_X,),
            outer=(outer,),
            work=ExpectedWork({"add": 1, "mul": 1}),
            variable="i",
            trip_count=8,
        ),
    )
    assert found.iterations_per_pass is not None and found.iterations_per_pass % 8 == 0
    assert [note.code for note in found.notes] == ["inner-loop-unrolled"]


def test_no_fitting_loop_says_what_was_found_and_what_was_expected() -> None:
    with pytest.raises(AssemblyError) as caught:
        choose_loop(compiled(TRIAD, "-O1"), Expectation((read("b", 8), write("a", 16))))
    assert "store a +16 B" in str(caught.value)
    assert "2 loads +8 B, 1 store +8 B" in str(caught.value)


def test_code_without_a_loop() -> None:
    with pytest.raises(AssemblyError, match="has no loop"):
        choose_loop(read_listing("f:\nmovsd (%rdi),%xmm0\nret\n", "x.s"), Expectation(TRIAD_ACCESSES))


def test_indirect_stores_do_not_pass_for_a_kernel_that_stores_nothing() -> None:
    source = "void k(double*restrict a,int*restrict b){for(int i=0;i<5000;++i)a[b[i]]+=1;}"
    with pytest.raises(AssemblyError, match="unknown stride"):
        choose_loop(compiled(source, "-O1"), Expectation((read("b", 4, 4),)))


def test_choice_by_hand_is_never_refused_but_says_what_does_not_fit() -> None:
    found = choose_loop(compiled(TRIAD, "-O1"), Expectation((read("b", 8), write("a", 16))), loop=1)
    assert (found.role, found.iterations_per_pass) == ("chosen", None)
    assert [note.code for note in found.notes] == ["unmatched-loop"]


def test_marked_region_and_lines_give_the_same_loop_as_the_search() -> None:
    listing = compiled(TRIAD, "-O3 -march=haswell")
    found = choose_loop(listing, Expectation(TRIAD_ACCESSES))
    first = listing.instructions.index(found.instructions[0])
    end = first + len(found.instructions)
    marked = choose_loop(listing, Expectation(TRIAD_ACCESSES), region=(first, end))
    lines = choose_loop(
        listing, Expectation(TRIAD_ACCESSES), lines=(found.instructions[0].line, found.instructions[-1].line)
    )
    assert (marked.role, lines.role) == ("marked", "chosen")
    assert marked.instructions == lines.instructions == found.instructions
    assert marked.iterations_per_pass == lines.iterations_per_pass == found.iterations_per_pass
    cut = choose_loop(listing, Expectation(TRIAD_ACCESSES), region=(first, end - 1))
    assert cut.instructions == found.instructions[:-1]
    assert cut.iterations_per_pass == found.iterations_per_pass


def test_wrong_choices_by_hand() -> None:
    listing = compiled(TRIAD, "-O1")
    with pytest.raises(UsageError, match="no loop 7; choose 1 to 1"):
        choose_loop(listing, Expectation(TRIAD_ACCESSES), loop=7)
    with pytest.raises(UsageError, match="give one of them"):
        choose_loop(listing, Expectation(TRIAD_ACCESSES), loop=1, lines=(1, 2))
    with pytest.raises(AssemblyError, match="no instruction on lines 900 to 901"):
        choose_loop(listing, Expectation(TRIAD_ACCESSES), lines=(900, 901))
    with pytest.raises(AssemblyError, match="the marked region is empty"):
        choose_loop(listing, Expectation(TRIAD_ACCESSES), region=(3, 3))


class TestWithoutSource:
    def test_the_only_loop(self) -> None:
        found = select_without_source(compiled(TRIAD, "-O3 -march=haswell"))
        assert (found.role, found.iterations_per_pass, found.label) == ("main", None, ".L2")
        assert "only innermost loop" in found.evidence

    def test_remainders_are_recognised(self) -> None:
        source = TRIAD.replace("double s)", "double s,int n)").replace("5000", "n")
        listing = compiled(source, "-O3 -march=haswell -fno-tree-slp-vectorize", "clang")
        found = select_without_source(listing)
        assert max(s.stride_bytes or 0 for s in found.streams) == 128
        assert "smaller steps" in found.evidence

    def test_several_loops_are_listed(self) -> None:
        other = DOT.replace("double k", "double other")
        with pytest.raises(AmbiguousLoopError) as caught:
            select_without_source(compiled(f"{TRIAD}\n{other}", "-O1"))
        assert len(caught.value.candidates) == 2
        assert select_without_source(compiled(f"{TRIAD}\n{other}", "-O1"), loop=2).role == "chosen"

    def test_code_without_a_loop_is_taken_whole_with_a_note(self) -> None:
        found = select_without_source(read_listing("vaddpd %ymm0,%ymm1,%ymm2\nvmulpd %ymm2,%ymm2,%ymm3\n", "x.s"))
        assert len(found.instructions) == 2
        assert [note.code for note in found.notes] == ["no-loop"]

    def test_a_marked_stretch_of_straight_code_repeats(self) -> None:
        listing = read_listing("movsd (%rdi),%xmm0\naddq $8,%rdi\nret\n", "x.s")
        found = select_without_source(listing, region=(0, 2))
        assert found.role == "marked"
        assert [stream.stride_bytes for stream in found.streams] == [8]


JAMMED = (
    "void k(double*restrict y,double (*restrict a)[4000],double*restrict x){for(int j=0;j<4000;++j)"
    "for(int i=0;i<4000;++i)y[i]+=a[j][i]*x[j];}"
)


def test_an_outer_loop_jammed_into_the_pass_counts_every_body() -> None:
    """Two outer iterations update y[i] in a register: stored once, while work and loads of a are twice as many."""
    accesses = (read("y", 8, j=0), read("a", 8, j=32000), read("x", 0, j=8), write("y", 8, j=0))
    work = ExpectedWork({"add": 1, "mul": 1})
    jammed = compiled(JAMMED, "-O3 -march=haswell")
    apart = compiled(JAMMED, "-O3 -march=haswell -fno-loop-unroll-and-jam")
    per_pass = [
        choose_loop(listing, Expectation(accesses, work=work, trip_count=4000)).iterations_per_pass
        for listing in (jammed, apart)
    ]
    assert per_pass[0] is not None
    assert per_pass[1] is not None
    for listing, iterations in zip((jammed, apart), per_pass, strict=True):
        loop = choose_loop(listing, Expectation(accesses, work=work, trip_count=4000))
        assert floating_work(loop.instructions)["mul"] == iterations


@pytest.mark.needs("gcc")
def test_work_that_every_number_of_iterations_has_too_little_of_takes_no_jam() -> None:
    """A compiler that computes `p[i-1]*a+b` once for both statements does less than any block of iterations must: the
    block that may do most, 16 iterations of the other loop, was taken, and the chain of 32 cycles counted as 3."""
    source = (
        "void f(int T, int N, double a, double b, double *restrict u, double *restrict p, double *restrict q) {"
        " for (int t = 0; t < T; t++) for (int i = 1; i < N - 1; i++) {"
        " p[i] = p[i-1]*a + b; q[i] = q[i] + (p[i-1]*a + b)*u[i]; } }"
    )
    answer = km.ecm(source, machine="zen3", T=100, N=1000).answer
    assert answer.prediction.t_ol >= 32  # cycles of a line of eight iterations, four each
