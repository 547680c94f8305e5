"""Where points are evaluated: processes that never outlive their parent, runs that go on, and Dask clusters."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kernmodel.errors import InputError, ToolError, UsageError
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.sweep import executors
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.executors import dask_cluster, local_processes
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.studies.sweep.rows import answer_row

ASSEMBLY = """\
.L3:
    vmovupd (%rsi,%rax), %ymm0
    vmovupd %ymm0, (%rdi,%rax)
    addq $32, %rax
    cmpq %rdx, %rax
    jne .L3
"""
SCRIPT = """\
import multiprocessing, sys, time
from pathlib import Path
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.executors import local_processes
from kernmodel.studies.sweep.checkpoint import Checkpoint, study_identity
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.studies.predict.request import Point
from kernmodel.studies.predict.request import CodeRequest, KernelRequest

def view(point, answer):
    time.sleep(float(sys.argv[3]))
    return {"N": point.kernel.sizes["N"], "T_ECM": answer.prediction.cycles, "what": answer.prediction.binding}

if __name__ == "__main__":
    base = Point(KernelRequest("copy", "clx", {}), CodeRequest(asm=sys.argv[2]))
    grid = Grid(base, (Axis("size", "N", (1, 0, *range(100, 160))),))
    path, study = Path(sys.argv[1]), study_identity(grid)
    with local_processes(int(sys.argv[4])) as executor, Checkpoint.open(path, study) as rows:
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        for outcome in evaluate(grid, view, executor=executor, start=rows.done):
            rows.add({**(outcome.view or {}), "error": outcome.error})
"""


def cycles(point: Point, answer: EcmAnswer) -> tuple[float, str]:
    return answer.prediction.cycles, answer.prediction.binding


@pytest.fixture
def study(tmp_path: Path) -> Grid:
    listing = tmp_path / "copy.s"
    listing.write_text(ASSEMBLY)
    base = Point(KernelRequest("copy", "clx", {}), CodeRequest(asm=str(listing)))
    return Grid(base, (Axis("size", "N", (0, *range(100, 140))),))


# --- local processes


def running(process: int) -> bool:
    """Whether a process is there and no mere entry in the table of processes."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()


def wait_until(holds, seconds: float = 20.0) -> bool:
    last = time.monotonic() + seconds
    while not holds() and time.monotonic() < last:
        time.sleep(0.02)
    return bool(holds())


class Run:
    """The script in a process of its own, writing its rows into `file`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "study.py").write_text(SCRIPT)
        (folder / "copy.s").write_text(ASSEMBLY)

    @contextmanager
    def start(self, file: str, pause: float = 0.0, jobs: int = 2) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
        command = [sys.executable, "study.py", file, "copy.s", str(pause), str(jobs)]
        with subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                yield process, [int(word) for word in process.stdout.readline().split()]
            finally:
                process.kill()

    def whole(self, file: str, jobs: int = 2) -> bytes:
        with self.start(file, jobs=jobs) as (process, _):
            assert process.wait(60) == 0, process.stderr and process.stderr.read()
        return (self.folder / file).read_bytes()

    def lines(self, file: str) -> int:
        path = self.folder / file
        return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_cut_off_goes_on(tmp_path, how) -> None:
    run = Run(tmp_path)
    expected = run.whole("whole.jsonl", jobs=1)
    with run.start("cut.jsonl", pause=0.03) as (process, workers):
        assert len(workers) == 2
        assert wait_until(lambda: run.lines("cut.jsonl") >= 5)
        process.send_signal(how)
        begin = time.monotonic()
        process.wait(20)
        assert time.monotonic() - begin < 10
        assert process.stderr is not None
        told = process.stderr.read()
        assert told.count("Traceback") == told.count("KeyboardInterrupt") == (how == signal.SIGINT)
        assert wait_until(lambda: not any(map(running, workers)))
    kept = (tmp_path / "cut.jsonl").read_bytes()
    assert 5 <= kept.count(b"\n") < expected.count(b"\n")
    assert expected.startswith(kept[: kept.rfind(b"\n") + 1])
    assert run.whole("cut.jsonl") == expected


@pytest.mark.thorough
@pytest.mark.skipif(os.name != "posix", reason="groups of processes are of POSIX")
def test_the_keyboard_reaches_the_parent_alone(tmp_path) -> None:
    run = Run(tmp_path)
    with run.start("rows.jsonl", pause=0.03) as (process, workers):
        assert wait_until(lambda: run.lines("rows.jsonl") >= 1)
        groups = {os.getpgid(worker) for worker in workers}
        assert os.getpgid(process.pid) not in groups
        for worker in workers:
            os.kill(worker, signal.SIGINT)
        assert process.wait(60) == 0
    assert run.lines("rows.jsonl") == 62


def test_stopping_early_does_not_wait(study) -> None:
    begin = time.monotonic()
    with local_processes(2) as executor:
        assert next(iter(evaluate(study, cycles, executor=executor))).index == 0
        assert executor is not None
        executor.submit(time.sleep, 60)
        executor.submit(time.sleep, 60)
    assert time.monotonic() - begin < 30


def test_an_error_in_the_body_stops_the_workers() -> None:
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), local_processes(2) as executor:
        assert executor is not None
        executor.submit(time.sleep, 60)
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 30


def test_a_worker_that_is_killed_from_outside(study) -> None:
    with pytest.raises(ToolError, match="a worker process was killed from outside"), local_processes(2) as executor:
        assert executor is not None
        executor.submit(os._exit, 9)
        list(evaluate(study, cycles, executor=executor))


@pytest.mark.thorough
def test_beside_threads_nothing_is_forked(study) -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    try:
        with local_processes(2) as executor:
            found = [outcome.view for outcome in evaluate(study, answer_row, executor=executor)]
    finally:
        go_on.set()
        thread.join()
    assert found == [outcome.view for outcome in evaluate(study, answer_row)]


def test_one_job_needs_no_process() -> None:
    with local_processes(1) as executor:
        assert executor is None


@pytest.mark.parametrize("jobs", [0, -1])
def test_too_few_jobs(jobs) -> None:
    with pytest.raises(UsageError, match="give 1 or more"), local_processes(jobs):
        pass


# --- Dask


@contextmanager
def scheduler(workers: int) -> Iterator[str]:
    """The address of a cluster in threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=2,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same(study, capfd) -> None:
    logger = logging.getLogger("distributed")
    with scheduler(1) as address:
        before = list(logger.handlers)
        capfd.readouterr()
        with dask_cluster(address) as executor:
            logging.getLogger("distributed.client").critical("a message of the library")
            assert list(evaluate(study, cycles, executor=executor)) == list(evaluate(study, cycles))
            assert list(evaluate(study, cycles, executor=executor, start=30)) == list(evaluate(study, cycles, start=30))
        assert capfd.readouterr() == ("", "")
        assert logger.handlers == before


def slow(point: Point, answer: EcmAnswer) -> float:
    time.sleep(0.05)
    return answer.prediction.cycles


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_is_lost(study) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **options) as cluster,
        pytest.raises(ToolError, match="the Dask cluster was lost"),
        dask_cluster(cluster.scheduler_address) as executor,
    ):
        for _ in evaluate(study, slow, executor=executor):
            cluster.close()


@pytest.mark.filterwarnings("default")
def test_a_cluster_without_workers() -> None:
    with (
        scheduler(0) as address,
        pytest.raises(InputError, match="has no workers; start some: dask worker tcp://"),
        dask_cluster(address, timeout=0.5),
    ):
        pass


@pytest.mark.filterwarnings("default")
def test_workers_with_another_version(monkeypatch) -> None:
    monkeypatch.setattr(executors, "__version__", "99")
    monkeypatch.setattr(executors, "kernmodel_version", lambda: "98")
    with (
        scheduler(1) as address,
        pytest.raises(InputError, match="Dask workers have kernmodel 98, not 99"),
        dask_cluster(address),
    ):
        pass


ADDRESSES = ["nonsense", "", "tcp://host", "http://host:1", "tcp://host:0", "tcp://host:65536", "tcp://:8786", "a:1:2"]


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses_that_cannot_be_read(address) -> None:
    what = "is no address of a Dask scheduler; give tcp://HOST:PORT"
    with pytest.raises(UsageError, match=what), dask_cluster(address):
        pass


def greet(server: socket.socket, greeting: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(greeting)
        connection.recv(1)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("greeting", [None, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9])
def test_schedulers_that_do_not_answer(greeting) -> None:
    """Nobody listens, nobody says a word, or something else does."""
    pytest.importorskip("distributed")
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        if greeting is not None:
            server.listen()
        if greeting:
            threading.Thread(target=greet, args=(server, greeting), daemon=True).start()
        begin = time.monotonic()
        with (
            pytest.raises(InputError, match=r"127.0.0.1:\d+: no Dask scheduler answers within 0.5 s"),
            dask_cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}", timeout=0.5),
        ):
            pass
        assert time.monotonic() - begin < 10


def test_without_the_library(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ToolError, match=r'distributed is not installed; install it: pip install "kernmodel\[dask\]"'),
        dask_cluster("tcp://127.0.0.1:8786"),
    ):
        pass
