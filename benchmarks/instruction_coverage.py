"""Whether every instruction that the compilers emit for the carried kernels has a row in the instruction table of its
core.

    python benchmarks/instruction_coverage.py [KERNEL.c …] [--uarch SKL …] [--approximate]

Compiles each kernel with each compiler and each optimisation level for each core, looks every instruction up, and
prints the forms without a row (and, with --approximate, those that only a relative stands for). Exit status 1 if any is
missing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.tables.coverage import coverage
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction

TARGETS = {
    "SNB": "sandybridge",
    "IVB": "ivybridge",
    "HSW": "haswell",
    "BDW": "broadwell",
    "SKL": "skylake",
    "KBL": "skylake",
    "CFL": "skylake",
    "SKX": "skylake-avx512",
    "CLX": "cascadelake",
    "ICL": "icelake-client",
    "ICX": "icelake-server",
    "TGL": "tigerlake",
    "RKL": "rocketlake",
    "GLC": "sapphirerapids",
    "RWC": "sapphirerapids",
    "ZEN": "znver1",
    "ZEN2": "znver2",
    "ZEN3": "znver3",
    "ZEN4": "znver4",
}
COMPILERS = ("gcc", "clang-19")
LEVELS = ("-O1", "-O2", "-O3", "-Ofast")
WIDE = ("-mprefer-vector-width=512",)
AVX512 = ("SKX", "CLX", "ICL", "ICX", "TGL", "RKL", "GLC", "RWC", "ZEN4")
KERNELS = Path(__file__).parents[1] / "kernels"


def compiled(kernel: Path, compiler: str, flags: tuple[str, ...], folder: Path) -> tuple[Instruction, ...]:
    """All instructions of the kernel's object code; none, with a line on stderr, if the compiler refuses it."""
    target = folder / "kernel.o"
    command = [compiler, "-std=gnu11", "-w", *flags, "-c", str(kernel), "-o", str(target)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.stderr.write(f"{' '.join(command)}: {result.stderr.strip().splitlines()[:1]}\n")
        return ()
    elf = ELFFile(BytesIO(target.read_bytes()))
    sections = (section for section in elf.iter_sections() if section.name.startswith(".text"))
    return tuple(item for section in sections for item in decode_bytes(section.data()).instructions)


def flag_sets(uarch: str) -> Iterator[tuple[str, ...]]:
    """Flags that the kernels are compiled with for a core."""
    for level in LEVELS:
        yield (level, f"-march={TARGETS[uarch]}")
    if uarch in AVX512:
        yield from ((level, f"-march={TARGETS[uarch]}", *WIDE) for level in LEVELS[2:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", type=Path)
    parser.add_argument("--uarch", nargs="*", default=list(TARGETS))
    parser.add_argument("--approximate", action="store_true")
    options = parser.parse_args()
    kernels = options.kernels or sorted(KERNELS.glob("*.c"))
    missing_any = False
    with tempfile.TemporaryDirectory() as folder:
        for uarch in options.uarch:
            table = InstructionTable.open(load_parameters(uarch))
            forms = coverage(
                (
                    instruction
                    for kernel in kernels
                    for compiler in COMPILERS
                    for flags in flag_sets(uarch)
                    for instruction in compiled(kernel, compiler, flags, Path(folder))
                ),
                table,
            )
            missing = [form for form in forms if form.row == "none"]
            relatives = [form for form in forms if form.row == "approximated"]
            missing_any |= bool(missing)
            count = sum(form.count for form in forms)
            found = f"{len(missing)} missing, {len(relatives)} approximated"
            print(f"{uarch}: {count} instructions, {len(forms)} forms, {found}")
            for form in missing:
                print(f"  missing {form.form} ({form.count}×)")
            if options.approximate:
                for form in relatives:
                    print(f"  {form.form}: {form.rule}")
    return 1 if missing_any else 0


if __name__ == "__main__":
    sys.exit(main())
