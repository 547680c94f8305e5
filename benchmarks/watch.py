"""How long after a save `--watch` answers: wall time until the new answer is out, and processor time of the process and
its compiler (for busy hosts), for several saves of a kernel.

    python benchmarks/watch.py [--saves 9]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernmodel.resources import carried_folder

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Of a process and its children that ended (proc(5): utime, stime, cutime, cstime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def next_answer(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == "}\n":
            return
    raise SystemExit(f"the command ended with {process.wait()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--saves", type=int, default=9)
    saves = parser.parse_args().saves
    text = (carried_folder("kernels") / "stencil.c").read_text()
    with tempfile.TemporaryDirectory() as folder:
        kernel = Path(folder) / "stencil.c"
        kernel.write_text(text)
        command = [sys.executable, "-m", "kernmodel", "ecm", "-m", "clx", str(kernel), "--watch", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            next_answer(process)
            walls, processors = [], []
            for number in range(saves):
                before, start = processor_seconds(process.pid), time.perf_counter()
                kernel.write_text(f"{text}/* {number} */\n")
                next_answer(process)
                walls.append(time.perf_counter() - start)
                processors.append(processor_seconds(process.pid) - before)
            process.terminate()
    for name, seconds in (("wall", walls), ("processor", processors)):
        median = statistics.median(seconds)
        print(f"{name:9}  least {min(seconds):.3f} s  median {median:.3f} s  most {max(seconds):.3f} s")


if __name__ == "__main__":
    main()
