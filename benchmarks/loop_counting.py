"""Count how often the loop that was found executes, and compare it with the source's iterations.

    python benchmarks/loop_counting.py                            # the nests below, gcc and clang, the flags below
    python benchmarks/loop_counting.py -k jam -f="-O3 -march=haswell" -c gcc -v
    python benchmarks/loop_counting.py my.c other.c               # nests of one's own, with the sizes in the file

The check is independent of how the loop was found: the assembly gets a counter at the loop's head and is run. The
source's iterations divided by the count are the iterations per pass, up to what peeled and remainder loops do. The
nests are those in which iterations per pass are hard to see: loops jammed into one another with streams that they
share, exchanged loops, elements carried in registers, strided and transposed walks, structures, masks, conversions,
reductions, small inner loops. Exit status 1 if a number is wrong or carries a warning that doubts it. A machine without
AVX-512 needs other flags: -f.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernmodel.code.compile import FoundCompiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.code.match import choose_loop
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import KernmodelError
from kernmodel.source.emit.compilable import compilable_source, function_name
from kernmodel.source.load import load_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of
from kernmodel.studies.predict.expectation import expectation

FLAGS = (
    "-O1",
    "-O2 -march=haswell",
    "-O3 -march=haswell",
    "-O3 -march=cascadelake",
    "-Ofast -march=cascadelake -mprefer-vector-width=512",
)
ARRAYS = (
    "double a[M][N], d[M][N], t[N][M], b[N], c[N], e[N], s[16*N], x[M], y[M], w[32], z[N][3], v[N][4];\n"
    "double p[P][P][N], q[P][P][N], m[M][M], n[M][M], o[M][M], r, u;\n"
    "float f[N], g[N], h[M][N]; int k[N];\n"
)
JI = "for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) "
INNER = "for (int j = 1; j < M - 1; ++j) for (int i = 1; i < N - 1; ++i) "
I = "for (int i = 0; i < N; ++i) "  # noqa: E741
FILTER = (
    "for (int j = 3; j < M - 3; ++j) for (int i = 3; i < N - 3; ++i) { double g0 = 0; "
    "for (int l = 0; l < F; ++l) for (int k = 0; k < F; ++k) g0 += a[j + l - 3][i + k - 3] * w[l]; d[j][i] = g0; }"
)
NESTS = {
    "jam": JI + "c[i] += a[j][i] * b[i];",
    "jam-float": JI + "f[i] += h[j][i] * g[i];",
    "jam-two": JI + "c[i] = c[i] + a[j][i] * b[i] + d[j][i];",
    "jam-sum": JI + "c[i] += a[j][i];",
    "jam-square": JI + "c[i] += a[j][i] * a[j][i] * b[i];",
    "jam-shared": JI + "c[i] += x[j] * b[i];",
    "jam-product": JI + "c[i] += a[j][i] * b[i] * e[i];",
    "jam-scaled": JI + "c[i] += a[j][i] * b[i] * x[j];",
    "jam-pair": JI + "{ c[i] += a[j][i] * d[j][i]; e[i] += a[j][i] - d[j][i]; }",
    "jam-bodies": JI + "c[i] += x[j] * b[i] - y[j] * e[i];",
    "jam-transposed": JI + "c[i] += t[i][j] * b[i];",
    "no-jam": JI + "d[j][i] = a[j][i] * b[i];",
    "rank-1": JI + "a[j][i] += x[j] * b[i];",
    "rank-2": JI + "a[j][i] += x[j] * b[i] + y[j] * c[i];",
    "jam-3": "for (int l = 0; l < P; ++l) for (int j = 0; j < P; ++j) " + I + "c[i] += p[l][j][i] * a[l][i];",
    "jam-rows": "for (int l = 0; l < P; ++l) for (int j = 0; j < P; ++j) " + I + "d[l][i] += a[j][i] * h[l][i];",
    "taps-outside": "for (int l = 0; l < 16; ++l) " + I + "c[i] += w[l] * s[i + l];",
    "taps-inside": I + "for (int l = 0; l < 16; ++l) c[i] += w[l] * s[i + l];",
    "matvec": JI + "y[j] += a[j][i] * b[i];",
    "matvec-sum": "for (int j = 0; j < M; ++j) { r = 0; " + I + "r += a[j][i] * b[i]; y[j] = r; }",
    "matvec-two": JI + "{ y[j] += a[j][i] * b[i]; x[j] += a[j][i]; }",
    "column-sums": JI + "y[j] += t[i][j];",
    **{
        f"matmul-{order}": "".join(f"for (int {i} = 0; {i} < M; ++{i}) " for i in order)
        + "m[i][j] += n[i][k] * o[k][j];"
        for order in ("ijk", "ikj", "kij", "jki")
    },
    "rank-k": "".join(f"for (int {i} = 0; {i} < M; ++{i}) " for i in "ijk") + "m[i][j] += n[i][k] * n[j][k];",
    "transpose": JI + "t[i][j] = a[j][i];",
    "transpose-add": JI + "t[i][j] += 2.0 * a[j][i];",
    "stencil-3": "for (int i = 1; i < N - 1; ++i) b[i] = 0.3 * (c[i-1] + c[i] + c[i+1]);",
    "stencil-5": "for (int i = 2; i < N - 2; ++i) b[i] = r * c[i] + u * (c[i-1] + c[i+1]) + 0.1 * (c[i-2] + c[i+2]);",
    "stencil-2d": INNER + "d[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i] - 4.0 * a[j][i];",
    "stencil-rows": "for (int j = 1; j < M - 1; ++j) " + I + "d[j][i] = a[j-1][i] + a[j][i] + a[j+1][i];",
    "gauss-seidel": INNER + "a[j][i] = 0.25 * (a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]);",
    "stencil-3d": (
        "for (int l = 1; l < P - 1; ++l) for (int j = 1; j < P - 1; ++j) for (int i = 1; i < N - 1; ++i) "
        "q[l][j][i] = r * (p[l][j][i-1] + p[l][j][i+1] + p[l][j-1][i] + p[l][j+1][i] + p[l-1][j][i] + p[l+1][j][i]);"
    ),
    "recurrence": "for (int i = 1; i < N; ++i) b[i] = b[i-1] * 0.5 + b[i];",
    "downward": "for (int i = N - 1; i >= 0; --i) b[i] = 3 * c[i] + b[i];",
    "stride-2": "for (int i = 0; i < N / 2; ++i) b[2*i] = c[2*i] * 3.0;",
    "stride-2-pair": "for (int i = 0; i < N / 2; ++i) { b[2*i] = c[i] * 3.0; b[2*i+1] = c[i] * 2.0; }",
    "complex": (
        "for (int i = 0; i < N / 2; ++i) { e[2*i] = b[2*i] * c[2*i] - b[2*i+1] * c[2*i+1]; "
        "e[2*i+1] = b[2*i] * c[2*i+1] + b[2*i+1] * c[2*i]; }"
    ),
    "stride-3": "for (int i = 0; i < N / 3; ++i) b[i] = c[3*i] + c[3*i+1] + c[3*i+2];",
    "stride-16": I + "s[16*i] += b[i];",
    "structure-3": I + "{ z[i][0] += r * v[i][0]; z[i][1] += r * v[i][1]; z[i][2] += r * v[i][2]; }",
    "structure-4": I + "b[i] = sqrt(v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2]);",
    "inner-3": I + "for (int l = 0; l < 3; ++l) z[i][l] = z[i][l] * 2.0;",
    "inner-4": I + "for (int l = 0; l < 4; ++l) c[i] += v[i][l] * v[i][l];",
    "filter-5x5": FILTER.replace("F", "5"),
    "filter-7x7": FILTER.replace("F", "7"),
    "filter-columns": "for (int j = 2; j < M - 2; ++j) "
    + I
    + "for (int l = -2; l <= 2; ++l) h[j][i] += h[j + l][i] * w[l + 2];",
    "matrix-times-vectors": I + "for (int l = 0; l < 3; ++l) for (int j = 0; j < 3; ++j) d[l][i] += x[j] * a[j][i];",
    "triangle-times-vectors": I + "for (int l = 0; l < 4; ++l) for (int j = 0; j <= l; ++j) d[l][i] += x[j] * a[j][i];",
    "products-4x4": (
        "for (int n = 0; n < N; ++n) for (int l = 0; l < 4; ++l) for (int j = 0; j < 4; ++j) "
        "for (int i = 0; i < 4; ++i) s[16*n + 4*l + j] += v[n][i] * w[4*i + j];"
    ),
    "widened": I + "c[i] = f[i] * b[i] + c[i];",
    "narrowed": I + "f[i] = b[i] + c[i];",
    "constant-widened": I + "f[i] = g[i] * 3.1;",
    "integers": I + "b[i] += k[i] * 2.5;",
    "float-quotient": I + "f[i] = f[i] / g[i];",
    "float-root": I + "f[i] = 1.0f / sqrtf(g[i]);",
    "quotient": I + "b[i] = c[i] / r;",
    "quotient-literal": I + "b[i] = c[i] / 4.0 + c[i] / 3.0;",
    "mask": I + "c[i] = b[i] > 0.5 ? b[i] * e[i] : c[i];",
    "mask-sides": I + "c[i] = b[i] > 0.5 ? b[i] * e[i] + 1.0 : b[i] - e[i];",
    "maximum": I + "c[i] = b[i] > e[i] ? b[i] : e[i];",
    "dot": I + "r += b[i] * c[i];",
    "two-sums": I + "{ r += b[i]; u += b[i] * c[i]; }",
    "dot-mixed": I + "r += f[i] * g[i];",
    "norm": JI + "r += a[j][i] * a[j][i];",
    "hoisted": I + "b[i] = c[i] * (r * r + u);",
    "repeated": I + "e[i] = (b[i] + c[i]) * (b[i] + c[i]) + (b[i] + c[i]);",
    "polynomial": I + "b[i] = r + u * c[i] + r * c[i] * c[i] + u * c[i] * c[i] * c[i];",
    "power": I + "b[i] = c[i] * c[i] * c[i] * c[i] * c[i] * c[i] * c[i] * c[i];",
    "registers": (
        I + "{ double l = b[i] * c[i] + e[i] * s[i]; double g0 = s[i+1] * s[i+2] + s[i+3] * s[i+4]; "
        "b[i] = l * g0; c[i] = l - g0; e[i] = l + g0 + s[i]; }"
    ),
}
SAID = {"outer-loop-unrolled", "loops-exchanged", "conditional-blocks", "unknown-stride"}
"""Warnings that say what the compiler did, not that a count is in doubt."""

COUNTER = """
\tmovq %rax, counted_rax(%rip)
\tmovq counted_passes(%rip), %rax
\tleaq 1(%rax), %rax
\tmovq %rax, counted_passes(%rip)
\tmovq counted_rax(%rip), %rax"""
"""Counts without a change of flags or registers."""


def sources(folder: Path, names: list[str]) -> Iterator[Path]:
    """Files of the nests whose names contain one of `names`."""
    for name, nest in NESTS.items():
        if not names or any(part in name for part in names):
            file = folder / f"{name}.c"
            used = "\n".join(line for line in used_arrays(nest))
            file.write_text(f"#define N 1000\n#define M 200\n#define P 24\n{used}\n{nest}\n")
            yield file


def used_arrays(nest: str) -> Iterator[str]:
    """The declarations that a nest needs, one a line; its counters are declared by its loops."""
    counters = set(re.findall(r"for \(int (\w+)", nest)) | set(re.findall(r"double (\w+) =", nest))
    for declaration in re.findall(r"(double|float|int) ([^;]*);", ARRAYS):
        for item in declaration[1].split(", "):
            name = item.partition("[")[0]
            if name not in counters and re.search(rf"\b{name}\b", nest):
                yield f"{declaration[0]} {item};"


def passes_of(nest: LoopNest, source: str, assembly: str, loop: AssemblyLoop, folder: Path) -> int:
    """How often the head of the loop executes when the kernel is called once, with all arrays zero.

    Raises:
        CalledProcessError: the code cannot be linked or crashes.
    """
    lines = assembly.splitlines()
    lines.insert(loop.instructions[0].line - 1, COUNTER)
    counters = "\t.comm counted_rax,8,8\n\t.comm counted_passes,8,8\n"
    (folder / "kernel.s").write_text("\n".join(lines) + f"\n{counters}")
    name = function_name(nest)
    prototype = re.search(rf"\bvoid {name}\((.*)\)\n\{{", source)
    parameters = re.split(r", (?![^\[]*\])", prototype[1]) if prototype and prototype[1] != "void" else []
    types = ["void *" if re.search(r"[\[*]", p) else p.split()[0] for p in parameters]
    arguments = [f"buffer[{k}]" if kind == "void *" else "1" for k, kind in enumerate(types)]
    (folder / "main.c").write_text(
        "#include <stdio.h>\nextern long counted_passes;\n"
        f"static char buffer[{len(types) + 1}][1 << 24] __attribute__((aligned(64)));\n"
        f"void {name}({', '.join(types) or 'void'});\n"
        f'int main(void) {{ {name}({", ".join(arguments)}); printf("%ld\\n", counted_passes); return 0; }}\n'
    )
    command = ["gcc", "-no-pie", "main.c", "kernel.s", "-lm", "-o", "counted"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return int(subprocess.run(["./counted"], cwd=folder, check=True, capture_output=True, text=True).stdout)


def check(file: Path, compiler: FoundCompiler, flags: str, folder: Path, *, verbose: bool) -> str:
    """One kernel: "right", "refused", "WRONG" or "DOUBTED" (a warning that it should not have)."""
    nest = load_kernel(str(file))
    sizes, source = sizes_of(nest, {}), compilable_source(nest)
    made = start_compile(source, name="k.c", compiler=compiler, flags=tuple(flags.split()), defines={}).finish()
    try:
        loop = choose_loop(read_listing(made.text, "k.s"), expectation(nest, sizes, flags.split()))
        passes = passes_of(nest, source, made.text, loop, folder)
    except KernmodelError as error:
        print(f"{file.stem}, {compiler.name} {flags}: refused: {str(error).splitlines()[0]}")
        return "refused"
    counted = float(iterations_per_sweep(nest, sizes)) / max(1, passes)
    copies = "loop-copies" in {note.code for note in loop.notes}
    # peeled and remainder loops do the rest; of identical copies of the loop only the first one is counted
    right = loop.iterations_per_pass and 0.97 <= counted / loop.iterations_per_pass <= (99 if copies else 1.35)
    doubts = [note.text for note in loop.notes if note.kind == "warning" and note.code not in SAID]
    if verbose or not right or doubts:
        found = f"found {loop.iterations_per_pass:g}, counted {counted:.2f}"
        print(f"{file.stem}, {compiler.name} {flags}: {found}; {'; '.join((loop.evidence, *doubts))}")
    return "WRONG" if not right else "DOUBTED" if doubts else "right"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("-k", "--kernel", action="append", default=[])
    parser.add_argument("-f", "--flags", action="append")
    parser.add_argument("-c", "--compiler", action="append")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    results: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = options.files or list(sources(folder, options.kernel))
        for family in options.compiler or ["gcc", "clang"]:
            command = shutil.which(family) or shutil.which(f"{family}-19") or family
            compiler = FoundCompiler(family, command, ())
            for flags in options.flags or FLAGS:
                results += [check(file, compiler, flags, folder, verbose=options.verbose) for file in files]
    print(", ".join(f"{results.count(kind)} {kind}" for kind in ("right", "refused", "WRONG", "DOUBTED")))
    return 1 if {"WRONG", "DOUBTED"} & set(results) else 0


if __name__ == "__main__":
    sys.exit(main())
