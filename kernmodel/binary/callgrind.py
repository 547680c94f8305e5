"""Counting by valgrind's callgrind: slower, without AVX-512, but without ptrace and through exceptions.

Its dump has a line for each instruction that was executed (`--dump-instr=yes`) and each jump (`--collect-jumps=yes`);
the format is described in valgrind's manual, "Callgrind Format Specification".
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.program import BasicBlock, Function
from kernmodel.binary.runs import Command, Told, said_of, too_long
from kernmodel.errors import InputError, ToolError
from kernmodel.processes import scratch_folder
from kernmodel.value_types import dataclass

_SLOWDOWN = {0: 21.0, 16: 39.0, 32: 450.0}
"""How many times a plain run takes, by bytes of the widest vectors of the function: valgrind 3.19 on Zen 3, 2026."""
_WIDEST = 32
_STEP = 0.5
_COST = re.compile(r"(0x[0-9a-f]+)(?: [+-]?\d+)? (\d+)")
_JUMP = re.compile(r"(?:jump|jcnd)=(\d+)(?:/\d+)? (0x[0-9a-f]+)")


def callgrind_run(
    function: Function, command: Command, plain_seconds: float, limit: float | None, told: Told = lambda what: None
) -> Occurrences:
    """Run the program once under callgrind and count.

    Args:
        plain_seconds: of a plain run; limit: of the estimate, in seconds; None: the limit of a run.

    Raises:
        ToolError: no valgrind, or it does not know an instruction; InputError: it would take or takes too long.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        todo = "install valgrind (package valgrind); binary blocks needs neither"
        raise ToolError("the function cannot be counted by ptrace here, and valgrind is not installed", todo=todo)
    widest = max((item.vector_bytes for block in function.blocks for item in block.instructions), default=0)
    if widest > _WIDEST:
        todo = "compile without AVX-512, or allow ptrace"
        raise ToolError("valgrind knows no AVX-512, which the function uses", where=function.file, todo=todo)
    estimate = plain_seconds * _SLOWDOWN[min((one for one in _SLOWDOWN if one >= widest), default=_WIDEST)]
    most = command.limit if limit is None else limit
    told(f"counting with callgrind: about {estimate:.0f} s")
    if estimate > most:
        todo = f"give the program less to do, or allow it with --count-limit {estimate + 1:.0f}"
        what = f"counting with callgrind would take about {estimate:.0f} s, more than {most:.0f} s"
        raise InputError(what, where=command.words[0], todo=todo)
    with scratch_folder() as folder:
        dump = folder / "dump"
        begun = time.monotonic()
        status, said = _run(_command(valgrind, dump, command), command, max(most, command.limit), told)
        seconds = time.monotonic() - begun
        if not dump.exists():
            last = said.splitlines()[-1] if said else f"status {status}"
            raise ToolError(f"valgrind failed: {last}", where="valgrind", todo="see whether it runs this program")
        executed = _read(dump, function)
    return _occurrences(function, executed, status, seconds)


def _command(valgrind: str, dump: Path, command: Command) -> tuple[str, ...]:
    options = ("--tool=callgrind", "-q", "--dump-instr=yes", "--collect-jumps=yes", "--compress-pos=no")
    return (valgrind, *options, "--compress-strings=no", f"--callgrind-out-file={dump}", *command.words)


def _run(words: tuple[str, ...], command: Command, seconds: float, told: Told) -> tuple[int, str]:
    with command.files() as (given, said):
        begun = time.monotonic()
        child = subprocess.Popen(
            words,
            stdin=given if given is not None else subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=dict(command.environment) if command.environment is not None else None,
            start_new_session=True,
        )
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return child.wait(_STEP), said_of(said)
                passed = time.monotonic() - begun
                told(f"counting with callgrind: {passed:.0f} s")
                if passed > seconds:
                    raise too_long(command, "callgrind counted")
        finally:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


@dataclass
class _Executed:
    """What the dump says: executions by address of the instruction, and jumps taken."""

    times: dict[int, int] = field(default_factory=dict)
    jumps: dict[tuple[int, int], int] = field(default_factory=dict)


def _read(dump: Path, function: Function) -> _Executed:
    """The lines of the dump that are about the function; addresses are those of the file."""
    found = _Executed()
    wanted = {item.address for block in function.blocks for item in block.instructions}
    name = Path(function.file).resolve()
    inside = False
    skip = False
    with dump.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if line.startswith("ob="):
                inside = Path(line[3:].strip()).resolve() == name
            elif line.startswith("calls="):
                skip = True
            elif skip:
                skip = False  # the inclusive cost of a call
            elif inside and line.startswith(("jump=", "jcnd=")):
                _take_jump(line, next(lines, ""), found)
            elif inside and line.startswith("0x"):
                match = _COST.match(line)
                address = int(match[1], 16) if match else -1
                if match and address in wanted:
                    found.times[address] = found.times.get(address, 0) + int(match[2])
    return found


def _take_jump(line: str, source: str, found: _Executed) -> None:
    """A line with a jump's count and target; the place that it leaves stands on the next one."""
    match, place = _JUMP.match(line), source.split(maxsplit=1)[:1]
    if match and place and place[0].startswith("0x"):
        key = (int(place[0], 16), int(match[2], 16))
        found.jumps[key] = found.jumps.get(key, 0) + int(match[1])


def _occurrences(function: Function, executed: _Executed, status: int, seconds: float) -> Occurrences:
    blocks = {block.address: executed.times.get(block.address, 0) for block in function.blocks}
    edges: dict[tuple[int, int], int] = {}
    for block in function.blocks:
        edges |= _edges(block, blocks, executed.jumps)
    inner = sum(count for (_, target), count in edges.items() if target == function.entry)
    calls = blocks[function.entry] - inner
    return Occurrences(blocks, edges, calls, "callgrind", 1, seconds, status)


def _edges(
    block: BasicBlock, blocks: Mapping[int, int], jumps: Mapping[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """How often each successor followed a block."""
    last = block.instructions[-1].address
    found = {}
    for one in block.successors:
        if len(block.successors) == 1 and block.ending != "branches":
            found[block.address, one] = blocks[block.address]
        elif one != block.end or block.ending == "indirect":
            found[block.address, one] = jumps.get((last, one), 0)
    for one in block.successors:
        if (block.address, one) not in found:
            taken = sum(count for (source, _), count in jumps.items() if source == last)
            found[block.address, one] = blocks[block.address] - taken
    return found
