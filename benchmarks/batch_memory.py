"""How much memory a batch of many blocks takes: no more after 100,000 of them than after 10,000.

    python benchmarks/batch_memory.py --data DIR [--uarch NAME ...] [--blocks N ...] [--jobs N]

The blocks are those of oracle/ and bhive/ in the development data, over and over; each begins with two instructions of
its own, with a constant and a displacement that no other block has, so that nothing of it was there before but its
registers. `kernmodel incore --batch` runs once for each number of blocks; printed are its time and the largest
resident sets of the process and of the largest of its workers.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

_POLLED_SECONDS = 0.05


def bodies(data: Path) -> list[str]:
    """The blocks of the development data without a branch at their end."""
    with gzip.open(data / "oracle" / "dev.csv.gz", "rt", encoding="utf-8") as file:
        found = [row["hex_unrolled"] for row in csv.DictReader(file)]
    with (data / "bhive" / "dev.csv").open(encoding="utf-8") as file:
        found += [row["hex"] for row in csv.DictReader(file)]
    return list(dict.fromkeys(filter(None, found)))


def blocks(data: Path, count: int) -> Iterator[str]:
    """So many different blocks: mov eax, constant; lea rax, [rcx + displacement]; a block of the data."""
    for number, body in enumerate(islice(cycle(bodies(data)), count)):
        constant = number.to_bytes(4, "little").hex()
        yield f"b8{constant}488d81{constant}{body}"


def children(process: int) -> Sequence[int]:
    """The processes that a process has started and that are still there."""
    try:
        return [int(own) for own in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]
    except OSError:
        return ()


def largest_megabytes(process: int) -> float:
    """The largest resident set of a process so far, 0 where it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text("ascii", errors="replace")
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM 0")
    return int(line.split()[1]) / 1024


def run(file: Path, core: str, jobs: int) -> tuple[float, float, float]:
    """Seconds, and megabytes of the process and of the largest worker."""
    command = [sys.executable, "-m", "kernmodel", "incore", "--uarch", core, "--batch", str(file), "--json"]
    start = time.perf_counter()
    own = workers = 0.0
    with subprocess.Popen([*command, "--jobs", str(jobs)], stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            own = max(own, largest_megabytes(process.pid))
            workers = max([workers, *map(largest_megabytes, children(process.pid))])
            time.sleep(_POLLED_SECONDS)
    if process.returncode:
        raise SystemExit(f"the batch ended with {process.returncode}")
    return time.perf_counter() - start, own, workers


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the development data")
    parser.add_argument("--uarch", nargs="+", default=["SKL", "ZEN4"], help="cores")
    parser.add_argument("--blocks", nargs="+", type=int, default=[10_000, 50_000, 100_000], help="numbers of blocks")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    print("core     blocks  seconds  process MB  worker MB")
    for core in options.uarch:
        for count in options.blocks:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "blocks.txt"
                file.write_text("".join(f"{block}\n" for block in blocks(options.data, count)), encoding="ascii")
                seconds, own, workers = run(file, core, options.jobs)
            print(f"{core:6} {count:8}  {seconds:7.1f}  {own:10.0f}  {workers:9.0f}", flush=True)


if __name__ == "__main__":
    main()
