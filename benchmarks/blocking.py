"""What `kernmodel blocking` emits against everything else that it tried, by `ecm --cache sim` of the sources.

For each kernel, size and machine: the source that is emitted, those of the other candidates, and those of the
candidates with --safety 0.5, each compiled and simulated as any source is. The law: the emitted one is at most 2 %
slower than the fastest.

    python benchmarks/blocking.py [--few] [CASE …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from kernmodel.source.emit.blocked_text import tiled_source
from kernmodel.studies.blocking.answer import BlockingAnswer
from kernmodel.studies.blocking.study import blocking
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, KernelRequest

LAW = 1.02
GCC = CodeRequest(compiler="gcc")
TRANSPOSITION = """\
void transpose(double a[restrict N][N], double b[restrict N][N])
{
    for (int j = 0; j < N; ++j)
        for (int i = 0; i < N; ++i)
            a[j][i] = b[i][j];
}
"""
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "stencil": ("stencil", {"N": 20000, "M": 2000}),
    "stencil-wide": ("stencil", {"N": 400000, "M": 200}),
    "3d-7pt": ("3d-7pt", {"N": 800, "M": 400, "L": 400}),
    "3d-7pt-512": ("3d-7pt", {"N": 512, "M": 512, "L": 200}),
    "matmul": ("matmul", {"N": 1400, "M": 1400, "K": 1400}),
    "matmul-2048": ("matmul", {"N": 2048, "M": 2048, "K": 2048}),
    "matvec-transposed": ("matvec-transposed", {"N": 300000, "M": 200}),
    "transposition": ("", {"N": 4000}),
    "transposition-4096": ("", {"N": 4096}),
}
FEW = ("stencil", "3d-7pt", "matmul")


def measure(case: str, machine: str, folder: Path) -> tuple[bool, str]:
    """Whether the law holds, and a row that says how well."""
    name, sizes = CASES[case]
    path = folder / "transpose.c"
    path.write_text(TRANSPOSITION)
    begin = time.process_time()
    answers = [
        blocking(KernelRequest(name or str(path), machine, sizes, safety=s, cache="lc"), GCC) for s in (1.0, 0.5)
    ]
    seconds = (time.process_time() - begin) / 2
    ours: dict[str, int] = dict(answers[0].candidates[0].blocks) if answers[0].candidates else {}
    tried = [ours, *(dict(one.blocks) for answer in answers for one in answer.candidates), {}]
    found: dict[tuple[tuple[str, int], ...], float] = {}
    for blocks in tried:
        if tuple(blocks.items()) not in found:
            found[tuple(blocks.items())] = _cycles(answers[0], blocks, machine, sizes, folder)
    best = min(found, key=lambda blocks: found[blocks])
    mine = found[tuple(ours.items())]
    holds = mine <= LAW * found[best]
    said = answers[0].candidates[0].prediction.cycles if ours else answers[0].before.prediction.cycles
    row = (
        f"{case:20} {machine:5} {'ok' if holds else 'SLOWER':6} emitted {mine:7.2f} cy/CL (said {said:.2f}) {ours}; "
        f"best of {len(found)} {found[best]:.2f} {dict(best)}; plain {found[()]:.2f}; {seconds:.1f} s of CPU"
    )
    return holds, row


def _cycles(answer: BlockingAnswer, blocks: dict[str, int], machine: str, sizes: dict[str, int], folder: Path) -> float:
    """T_ECM of the source with these blocks, simulated."""
    path = folder / "blocked.c"
    path.write_text(tiled_source(answer.before.nest, blocks))
    return predict_ecm(KernelRequest(str(path), machine, sizes, cache="sim"), GCC).prediction.cycles


def main() -> int:
    """Print a row for each case; the exit status is 1 where the law is broken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--few", action="store_true", help="three cases")
    parser.add_argument("--machines", default="clx,zen2")
    given = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in given.cases or (FEW if given.few else CASES):
            for machine in given.machines.split(","):
                holds, row = measure(case, machine, Path(folder))
                print(row, flush=True)
                broken += not holds
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
