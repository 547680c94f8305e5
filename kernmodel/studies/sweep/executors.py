"""Where points are evaluated: local processes, or an existing Dask cluster through `concurrent.futures`."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, TypeVar

from kernmodel import __version__, limits
from kernmodel.errors import InputError, ToolError, UsageError
from kernmodel.limits import process_count

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar("Result")

_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss)://)?(?:\[[0-9a-fA-F:]+\]|[\w.-]+):([0-9]{1,5})")
_GRACE_SECONDS, _SHORT_GRACE_SECONDS = 1.0, 0.4
"""How long workers are given to end by themselves, at the end and after an error or interrupt. Not none: the executor
would not forgive the loss of a worker before it has dropped what was cancelled."""


@contextmanager
def local_processes(jobs: int | None = None, points: int | None = None) -> Iterator[Executor | None]:
    """Processes of this machine; None for one job, which needs no other process.

    Workers ignore the interrupt of the keyboard (the parent stops them) and end when their parent is gone.

    Args:
        jobs: number of processes; None: the processors that this process may use. Never more than there are points,
            nor than the limit for each processor.
        points: that are to be evaluated; None: many.

    Raises:
        UsageError: less than one job; ToolError: a worker was killed.
    """
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} processes", where="--jobs", todo="give 1 or more")
    count = process_count(jobs, points)
    if count == 1:
        yield None
        return
    executor = _Processes(count)
    grace = _GRACE_SECONDS
    try:
        executor.start()
        yield executor
    except BrokenProcessPool as error:
        todo = "see whether memory is short; give fewer --jobs"
        raise ToolError("a worker process was killed from outside", where="--jobs", todo=todo) from error
    except BaseException:
        grace = _SHORT_GRACE_SECONDS
        raise
    finally:
        processes = executor.processes
        executor.shutdown(wait=False, cancel_futures=True)
        _end(processes, grace)


class _Processes(ProcessPoolExecutor):
    """Processes that are there when it was started; `workers` is their number."""

    def __init__(self, count: int) -> None:
        # copying this process is fastest, and safe where no other thread may hold a lock
        can_fork = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
        method = "fork" if can_fork and threading.active_count() == 1 else "spawn"
        if method == "fork":
            # what the parent has imported, the workers need not
            _import_stages()
        context = multiprocessing.get_context(method)
        super().__init__(count, mp_context=context, initializer=_begin_worker, initargs=(limits.are_lifted(),))
        self.workers = count

    def start(self) -> None:
        """Fork now, while the caller has no threads yet (a progress bar has one)."""
        with _interrupts_held():
            for _ in range(self.workers):
                self.submit(_import_stages)

    @property
    def processes(self) -> list[BaseProcess]:
        """The processes that were started."""
        return list((self._processes or {}).values())


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let interrupts of the keyboard wait: a process that was just begun would end in a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _import_stages() -> None:
    """Import what every point needs, so that the first is no slower than the others."""
    import kernmodel.code.compile
    import kernmodel.incore.answer.analyse
    import kernmodel.models.ecm
    import kernmodel.source.emit.compilable
    import kernmodel.source.load
    import kernmodel.studies.predict.expectation
    import kernmodel.studies.sweep.dispatch
    import kernmodel.traffic.conditions.layer_conditions  # noqa: F401


def _begin_worker(unlimited: bool) -> None:
    """Leave the keyboard's interrupt to the parent, whose group of processes this one leaves, and end with it."""
    if unlimited:
        limits.lift()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    wait([parent.sentinel])
    if hasattr(os, "killpg"):
        # with the compiler that may run
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _end(workers: list[BaseProcess], grace: float) -> None:
    """Give idle workers time to end, and stop the others: nobody waits for what they do."""
    last = time.monotonic() + grace
    for worker in workers:
        worker.join(max(0.0, last - time.monotonic()))
    alive = [worker for worker in workers if worker.is_alive()]
    for worker in alive:
        try:
            os.killpg(worker.pid or 0, signal.SIGKILL)  # with the compilers that they run
        except (AttributeError, OSError):
            worker.kill()
    for worker in alive:
        worker.join()


@contextmanager
def dask_cluster(address: str, timeout: float = 10.0) -> Iterator[Executor]:
    """The executor of an existing Dask cluster ("tcp://host:8786"). Workers need kernmodel, the kernels and machine
    files under the same paths, and the compiler.

    Raises:
        UsageError: the address cannot be read.
        InputError: no scheduler answers in time, it has no workers, or they lack this version of kernmodel.
        ToolError: the library `distributed` is not installed (the extra `kernmodel[dask]`); the cluster was lost.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[1]) < 2**16:
        todo = "give tcp://HOST:PORT, as the scheduler prints it when it starts"
        raise UsageError(f"{address!r} is no address of a Dask scheduler", where="--scheduler", todo=todo)
    try:
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError
    except ImportError as error:
        todo = 'install it: pip install "kernmodel[dask]"'
        raise ToolError("the library distributed is not installed", where="--scheduler", todo=todo) from error
    with _quiet("distributed", "tornado"), _connected(address, timeout) as client:
        executor = _Cluster(client)
        try:
            yield executor
        except (KilledWorker, CommClosedError, CancelledError) as error:
            todo = "see the logs of its workers; a study with --resume goes on where it was"
            raise ToolError(f"the Dask cluster was lost ({type(error).__name__})", where=address, todo=todo) from error
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _connected(address: str, timeout: float) -> Iterator[Client]:
    from distributed import Client

    try:
        # asked first by a bare connection: a client that finds no scheduler is hard to be rid of
        with ThreadPoolExecutor(1) as thread:
            kind = thread.submit(lambda: asyncio.run(_kind_of(address, timeout))).result()
    except Exception as error:
        # besides OSError and TimeoutError, whatever comes of reading a foreign protocol
        todo = "see whether it runs (dask scheduler) and can be reached from here"
        raise InputError(f"no Dask scheduler answers within {timeout:g} s", where=address, todo=todo) from error
    if kind != "Scheduler":
        todo = "give the address of its scheduler"
        raise InputError(f"is not a Dask scheduler but a {kind}", where=address, todo=todo)
    with Client(address, timeout=timeout, set_as_default=False) as client:  # type: ignore[no-untyped-call]
        _check_workers(client, address, timeout)
        yield client


async def _kind_of(address: str, timeout: float) -> str:
    """What answers at an address: "Scheduler", "Worker", …"""
    from distributed.core import rpc
    from distributed.security import Security

    arguments = Security().get_connection_args("client")  # type: ignore[no-untyped-call]
    async with asyncio.timeout(timeout), rpc(address, timeout=timeout, connection_args=arguments) as server:  # type: ignore[no-untyped-call]
        identity = await server.identity()
    return str(identity["type"])


def _check_workers(client: Client, address: str, timeout: float) -> None:
    """Refuse a cluster that cannot do the work."""
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        todo = f"start some: dask worker {address}"
        raise InputError("the Dask scheduler has no workers", where=address, todo=todo) from error
    todo = f'install it where they run: pip install "kernmodel=={__version__}"'
    try:
        versions = set(client.run(kernmodel_version).values())
    except Exception as error:
        # whatever the workers raise when they look for the module
        raise InputError(f"the Dask workers cannot import kernmodel ({error})", where=address, todo=todo) from error
    if versions != {__version__}:
        listed = ", ".join(sorted(versions))
        raise InputError(f"Dask workers have kernmodel {listed}, not {__version__}", where=address, todo=todo)


def kernmodel_version() -> str:
    """The version of kernmodel in the process that this is called in."""
    return __version__


class _Cluster(Executor):
    """A Dask cluster as executor."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._executor = client.get_executor(pure=False)  # type: ignore[no-untyped-call]

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        future: Future[Result] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait)


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Take the handlers off these loggers and all below them: the library writes on the terminal by itself."""
    below = tuple(f"{name}." for name in names)
    known = [*names, *(name for name in logging.root.manager.loggerDict if name.startswith(below))]
    loggers = [logging.getLogger(name) for name in known]
    kept = [(logger, logger.handlers) for logger in loggers]
    for logger in loggers:
        logger.handlers = [logging.NullHandler()]
    try:
        yield
    finally:
        for logger, handlers in kept:
            logger.handlers = handlers
