"""Non-temporal stores in what compilers make of intrinsics and builtins, and in listings by hand."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.code.listing import read_file, read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.code.select import select_without_source
from kernmodel.code.streaming import streaming_stores
from kernmodel.isa import isa_of

KERNELS = """
#include <immintrin.h>
void scaled(double *restrict a, const double *restrict b, __m256d s, long n)
{ for (long i = 0; i < n; i += 4) _mm256_stream_pd(a + i, _mm256_mul_pd(s, _mm256_loadu_pd(b + i))); }
void both(double *restrict a, double *restrict c, const double *restrict b, __m256d s, long n)
{
    for (long i = 0; i < n; i += 4) {
        __m256d x = _mm256_mul_pd(s, _mm256_loadu_pd(b + i));
        _mm256_stream_pd(a + i, x);
        _mm256_storeu_pd(c + i, _mm256_add_pd(x, s));
    }
}
void plain(double *restrict a, const double *restrict b, __m256d s, long n)
{ for (long i = 0; i < n; i += 4) _mm256_storeu_pd(a + i, _mm256_mul_pd(s, _mm256_loadu_pd(b + i))); }
void loads(long long *restrict a, __m256i *restrict b, long n)
{
    for (long i = 0; i < n; ++i)
        _mm256_storeu_si256((__m256i *)a + i, _mm256_abs_epi8(_mm256_stream_load_si256(b + i)));
}
void integers(long long *restrict a, const long long *restrict b, long n)
{ for (long i = 0; i < n; ++i) _mm_stream_si64(a + i, b[i] ^ 1); }
"""
BUILTIN = """
typedef double vector __attribute__((vector_size(16)));
void triad(vector *restrict a, const vector *restrict b, const vector *restrict c, vector s, long n)
{ for (long i = 0; i < n; ++i) __builtin_nontemporal_store(b[i] + s * c[i], a + i); }
"""


def compiled(folder: Path, text: str, function: str, *command: str) -> AssemblyLoop:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this system")
    source, made = folder / "kernel.c", folder / "kernel.o"
    source.write_text(text)
    subprocess.run([*command, "-c", str(source), "-o", str(made)], check=True)
    return select_without_source(read_file(made, function=function)[0])


@pytest.mark.thorough
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize(
    ("function", "streaming", "regular"),
    [("scaled", 1, 0), ("both", 1, 1), ("plain", 0, 1), ("loads", 0, 1), ("integers", 1, 0)],
)
def test_intrinsics(function: str, streaming: int, regular: int, compiler: str, tmp_path: Path) -> None:
    """The kinds of stores in the loop; an unrolled loop has each of them as often as it is unrolled."""
    loop = compiled(tmp_path, KERNELS, function, compiler, "-O2", "-mavx2")
    found = streaming_stores(loop)
    copies = found.streaming + found.regular
    assert copies
    assert copies % (streaming + regular) == 0
    assert found.streaming * (streaming + regular) == streaming * copies
    assert all("movnt" in loop.instructions[index].mnemonic for index in found.instructions)


@pytest.mark.parametrize("flags", [("-O1",), ("-O3", "-march=haswell"), ("-O3", "-march=skylake-avx512")])
def test_builtin_of_clang(flags: tuple[str, ...], tmp_path: Path) -> None:
    found = streaming_stores(compiled(tmp_path, BUILTIN, "triad", "clang-19", *flags))
    assert found.streaming >= 1
    assert found.regular == 0


def by_hand(body: str) -> AssemblyLoop:
    return select_without_source(read_listing(body, "test.s", syntax="att"))


def test_stores_to_fixed_addresses_do_not_count() -> None:
    """A spilled register or a sum in memory is written again and again in one place."""
    loop = by_hand(
        ".L1:\n vmovupd (%rsi,%rax,8), %ymm0\n vmovntpd %ymm0, (%rdi,%rax,8)\n vmovupd %ymm0, -32(%rsp)\n"
        " addq $4, %rax\n cmpq %rax, %rdx\n jne .L1\n"
    )
    assert (streaming_stores(loop).streaming, streaming_stores(loop).regular) == (1, 0)


@pytest.mark.parametrize("store", ["movntq %mm0", "movntsd %xmm0", "vmovntdq %ymm0", "vmovntps %zmm0", "movnti %ecx"])
def test_other_instructions_that_stream(store: str) -> None:
    loop = by_hand(f".L1:\n {store}, (%rdi,%rax)\n addq $8, %rax\n cmpq %rax, %rdx\n jne .L1\n")
    assert (streaming_stores(loop).streaming, streaming_stores(loop).regular) == (1, 0)


def test_masked_moves_stream() -> None:
    masked = replace(by_hand(" movntq %mm0, (%rdi)\n ret\n").instructions[0], mnemonic="vmaskmovdqu")
    assert isa_of("x86-64").is_streaming(masked)
    assert not isa_of("x86-64").is_streaming(replace(masked, mnemonic="vmaskmovpd"))


def test_code_without_stores() -> None:
    loop = by_hand(".L1:\n vaddpd (%rsi,%rax,8), %ymm0, %ymm0\n addq $4, %rax\n cmpq %rax, %rdx\n jne .L1\n")
    assert streaming_stores(loop).instructions == ()
    assert streaming_stores(loop).regular == 0
