"""How long in-core analyses take in one process: decode the bytes of a 20-instruction loop, look up, analyse.

    python benchmarks/incore_throughput.py                  # 1,000 analyses on each of several cores; limit 2 s each
    python benchmarks/incore_throughput.py --profile SKL    # where the time goes

Every analysis starts from the bytes; tables and parameters are opened once per core, as a program would. Exit status 1
if a core takes longer than the limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from io import BytesIO

from elftools.elf.elffile import ELFFile

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.assembler import assemble
from kernmodel.isa.x86.listing import target

CORES = ("SNB", "HSW", "SKL", "CLX", "ZEN", "ZEN2", "ZEN3")
ANALYSES = 1000
LIMIT_SECONDS = 2.0
LOOPS = 8

BODY = """
1:  vmovupd {a}(%rsi,%rax), %ymm0
    vmovupd {b}(%rdx,%rax), %ymm1
    vaddpd -8(%rsi,%rax), %ymm0, %ymm2
    vaddpd 8(%rsi,%rax), %ymm1, %ymm3
    vmulpd %ymm2, %ymm15, %ymm4
    vmulpd %ymm3, %ymm14, %ymm5
    vaddpd %ymm4, %ymm5, %ymm6
    vsubpd %ymm6, %ymm0, %ymm7
    vmulsd %xmm7, %xmm8, %xmm9
    vaddsd %xmm9, %xmm10, %xmm10
    vmovupd %ymm6, {c}(%rdi,%rax)
    vmovupd %ymm7, {a}(%r8,%rax)
    movq (%r9,%rcx,8), %r10
    leaq 16(%r10,%r11), %r12
    imulq %r12, %r13
    xorl %ebx, %ebx
    movl %r13d, -8(%rsp)
    addq $32, %rax
    cmpq %r14, %rax
    jne 1b
"""


def loops() -> list[bytes]:
    """The code of several loops of 20 instructions that differ in their displacements."""
    codes = []
    for number in range(LOOPS):
        text = BODY.format(a=8 * number, b=16 * number + 8, c=24 * number)
        elf = ELFFile(BytesIO(assemble(text, target("att"), file="body.s")))
        codes.append(elf.get_section_by_name(".text").data())
    return codes


def run(code: bytes, analyser: Analyser, table: InstructionTable) -> float:
    """One analysis from the bytes; the prediction in cycles per pass."""
    listing = decode_bytes(code)
    loop = AssemblyLoop(listing.instructions, listing.isa, "binary", "", "", None, (), "", "marked", ())
    return analyse(loop, analyser.core.parameters, table, model=analyser).prediction


def measure(core: str, codes: list[bytes]) -> float:
    """Seconds for `ANALYSES` analyses on a core."""
    parameters = load_parameters(core)
    table, analyser = InstructionTable.open(parameters), Analyser(modelled_core(parameters)).keep()
    start = time.perf_counter()
    for number in range(ANALYSES):
        run(codes[number % len(codes)], analyser, table)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", metavar="CORE", help="profile the analyses on one core")
    options = parser.parse_args()
    codes = loops()
    if options.profile:
        import cProfile
        import pstats

        profile = cProfile.Profile()
        profile.runcall(measure, options.profile, codes)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return 0
    print(f"{ANALYSES} analyses of loops of 20 instructions from bytes; limit {LIMIT_SECONDS:g} s")
    slow = 0
    for core in CORES:
        seconds = measure(core, codes)
        slow += seconds > LIMIT_SECONDS
        print(f"{core:5} {seconds:6.3f} s  {1000 * seconds / ANALYSES:6.3f} ms each")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
