"""Wall time and memory of whole commands, beside the peers where a virtual environment with them is given.

    python benchmarks/cold_start.py [--runs 7] [--peers VENV] [--kerncraft-sources DIR]

VENV holds `kerncraft osaca "pycparser<3"`; DIR is Kerncraft's unpacked source distribution (`pip download --no-deps
--no-binary kerncraft kerncraft`), which has the kernel and machine file its wheel lacks. The peers run on the same
machine in the same call, so the ratios hold where absolute times do not. Prints the minimum and median wall time and
the peak memory, the CPU time of `ecm` and `incore` over that of `import sympy`, what a value type costs, and wall and
CPU time of the peers' first and later runs over those of the command that answers the same.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernmodel import value_types as value_types_of

TRIAD_30_LINES = """
.L3:
{body}
    addq $256, %rax
    cmpq %rdx, %rax
    jne .L3
"""


HEX = "4801d84801c3ffc975f7"
SIMULATED = "kernmodel traffic --cache sim stencil, N=20000"


@dataclasses.dataclass(frozen=True)
class Result:
    label: str
    seconds: tuple[float, ...]
    megabytes: float

    @property
    def best(self) -> float:
        return min(self.seconds)

    def row(self) -> str:
        return f"{self.label:48} {self.best:8.3f} {statistics.median(self.seconds):8.3f} {self.megabytes:8.0f}"


def run_once(command: list[str], cwd: Path) -> tuple[float, float]:
    """Wall seconds and peak resident megabytes of the process and its children."""
    code = "import resource,subprocess,sys;r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,"
    code += "stderr=subprocess.PIPE);sys.stderr.buffer.write(r.stderr[-2000:]) if r.returncode else None;"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss);sys.exit(r.returncode)"
    start = time.perf_counter()
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - start
    memory = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=cwd, capture_output=True, text=True, check=False
    )
    if memory.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{memory.stderr}")
    return seconds, int(memory.stdout.split()[-1]) / 1024


def measure(label: str, command: list[str], cwd: Path, runs: int) -> Result:
    samples = [run_once(command, cwd) for _ in range(runs)]
    return Result(label, tuple(s for s, _ in samples), max(m for _, m in samples))


def listing() -> str:
    body = []
    for k in range(0, 256, 32):
        body += [
            f"    vmovupd {k}(%rsi,%rax), %ymm0",
            f"    vfmadd213pd {k}(%rdi,%rax), %ymm1, %ymm0",
            f"    vmovupd %ymm0, {k}(%rcx,%rax)",
        ]
    return TRIAD_30_LINES.format(body="\n".join(body))


def peer_commands(venv: Path, sources: Path | None, work: Path) -> list[tuple[str, list[str]]]:
    commands = [("osaca --arch CSX (same 30 lines)", [str(venv / "bin/osaca"), "--arch", "CSX", "triad30.s"])]
    if sources:
        shutil.copy(sources / "examples/kernels/2d-5pt.c", work)
        shutil.copy(sources / "examples/machine-files/SkylakeSP_Gold-6148.yml", work)
        base = [
            str(venv / "bin/kerncraft"),
            "-m",
            "SkylakeSP_Gold-6148.yml",
            "2d-5pt.c",
            "-D",
            "N",
            "5000",
            "-D",
            "M",
            "5000",
        ]
        commands.append(("kerncraft -p ECM 2d-5pt", [*base, "-p", "ECM", "-C", "gcc", "--pointer-increment", "32"]))
        large = ["20000" if word == "5000" else word for word in base]
        commands.append(("kerncraft -P SIM 2d-5pt, N=20000", [*large, "-p", "ECMData", "-P", "SIM"]))
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--peers", type=Path, help="virtual environment with kerncraft and osaca")
    parser.add_argument("--kerncraft-sources", type=Path, help="unpacked source distribution of kerncraft")
    options = parser.parse_args()
    kernmodel = shutil.which("kernmodel") or str(Path(sys.executable).parent / "kernmodel")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "triad30.s").write_text(listing())
        (work / "trace.txt").write_text("".join(f"L {8 * k} 8\n" for k in range(64)))
        cube = [part for name in "NML" for part in ("-D", f"{name}=1000")]
        os.environ["HOME"] = folder  # the peers write caches there: their first run is a first run
        commands = [
            ("kernmodel --help", [kernmodel, "--help"]),
            ("kernmodel machine list", [kernmodel, "machine", "list"]),
            ("kernmodel incore -m clx (30 lines)", [kernmodel, "incore", "-m", "clx", "triad30.s"]),
            ("kernmodel incore --uarch skl --hex", [kernmodel, "incore", "--uarch", "skl", "--hex", HEX]),
            ("kernmodel traffic -m clx stencil.c", [kernmodel, "traffic", "-m", "clx", "stencil.c"]),
            ("kernmodel ecm -m clx stencil.c", [kernmodel, "ecm", "-m", "clx", "stencil.c"]),
            ("kernmodel ecm -m skx stencil.c", [kernmodel, "ecm", "-m", "skx", "stencil.c"]),
            (SIMULATED, [kernmodel, "traffic", "-m", "clx", "stencil.c", "-D", "N=20000", "--cache", "sim"]),
            (
                "kernmodel traffic --cache sim long-range, 1000³",
                [kernmodel, "traffic", "-m", "clx", "long-range.c", *cube, "--cache", "sim"],
            ),
            ("kernmodel simulate (64 accesses)", [kernmodel, "simulate", "-m", "clx", "trace.txt"]),
        ]
        print(f"{'command':48} {'min s':>8} {'median':>8} {'peak MB':>8}")
        results = {}
        for label, command in commands:
            results[label] = measure(label, command, work, options.runs)
            print(results[label].row(), flush=True)
        beside_sympy(commands, work, options.runs)
        value_types()
        if options.peers:
            compare(options, work, results, dict(commands))


def beside_sympy(commands: list[tuple[str, list[str]]], work: Path, runs: int) -> None:
    """CPU time of commands, with all that they start, over that of `import sympy`, run in turn."""
    library = [sys.executable, "-c", "import sympy"]
    for label, command in commands:
        if label.split()[1] in {"ecm", "incore"}:
            pairs = [(cpu_seconds(command, work), cpu_seconds(library, work)) for _ in range(runs)]
            ratios = sorted(own / other for own, other in pairs)
            spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
            print(f"{label:48} {statistics.median(ratios):.2f} × import sympy (CPU time; {spread})", flush=True)


def cpu_seconds(command: list[str], cwd: Path) -> float:
    """User and system time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def value_types(count: int = 200) -> None:
    """What a frozen class with slots and five fields costs to make, by this package and by the library."""
    for where, decorator in (
        ("kernmodel.value_types", value_types_of.dataclass),
        ("dataclasses", dataclasses.dataclass),
    ):
        body = {"__annotations__": dict.fromkeys(("first", "second", "third", "fourth", "fifth"), "int")}
        classes = [type("Value", (), {**body, "__doc__": "A value.", "__module__": __name__}) for _ in range(count)]
        start = time.process_time()
        for one in classes:
            decorator(frozen=True, slots=True)(one)
        print(f"a value type by {where}: {(time.process_time() - start) / count * 1e3:.2f} ms")


def compare(
    options: argparse.Namespace, work: Path, results: dict[str, Result], commands: dict[str, list[str]]
) -> None:
    ours = {
        "osaca --arch": "kernmodel incore -m clx (30 lines)",
        "kerncraft -p": "kernmodel ecm -m skx stencil.c",
        "kerncraft -P": SIMULATED,
    }
    for label, command in peer_commands(options.peers, options.kerncraft_sources, work):
        mine = ours[" ".join(label.split()[:2])]
        start = time.perf_counter()
        first_cpu = cpu_seconds(command, work)
        first = time.perf_counter() - start
        runs = max(2, options.runs // 3)
        result = measure(label, command, work, runs)
        print(result.row(), flush=True)
        own, warm = results[mine].best, result.best
        print(f"    first run {first:.2f} s = {first / own:.1f}× kernmodel; warm {warm:.2f} s = {warm / own:.1f}×")
        pairs = [(cpu_seconds(command, work), cpu_seconds(commands[mine], work)) for _ in range(runs)]
        own = statistics.median(cpu for _, cpu in pairs)
        warm_ratio = statistics.median(cpu / other for cpu, other in pairs)
        print(f"    CPU time: first run {first_cpu:.2f} s = {first_cpu / own:.1f}× kernmodel; warm {warm_ratio:.1f}×")


if __name__ == "__main__":
    main()
    print(f"peak memory of this script: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
