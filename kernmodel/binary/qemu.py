"""Counting by a plugin of qemu's user mode: for code of another processor than this host's.

The plugin (native/qemu_counts.c) is compiled when it is needed. qemu translates code in stretches that are executed as
a whole; it counts these and what followed what, of which blocks and edges are made here. So blocks that only indirect
jumps show are found in the same run.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from kernmodel.binary.blocks import cut_block
from kernmodel.binary.loop_nest import natural_loops
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.predictors.tools import said
from kernmodel.binary.program import BasicBlock, Function
from kernmodel.binary.runs import Command, Told, plain_run
from kernmodel.errors import InputError, ToolError
from kernmodel.isa import isa_of
from kernmodel.limits import COMPILER_SECONDS
from kernmodel.processes import scratch_folder
from kernmodel.value_types import dataclass

_PLUGIN = Path(__file__).parent / "native" / "qemu_counts.c"
_COMPILERS = ("cc", "gcc", "clang")
_PACKAGE = "install qemu-user (Debian, Ubuntu), or count on such a host; binary blocks needs neither"
_NO_PLUGINS = "install the qemu-user of Debian or Ubuntu, which has plugins, or build qemu with --enable-plugins"


@dataclass(frozen=True, slots=True)
class Emulator:
    """qemu's user mode for one instruction set, with what runs before the program on its command line."""

    words: tuple[str, ...]

    def command(self, command: Command, *options: str) -> Command:
        """The program as the emulator runs it."""
        return replace(command, words=(*self.words, *options, *command.words))


def emulator_for(isa_name: str) -> Emulator:
    """The emulator of an instruction set.

    Raises:
        ToolError: it is not installed, or knows no plugins; the message names the package.
    """
    isa = isa_of(isa_name)
    name = f"qemu-{isa.hosts[0]}" if isa.hosts else ""
    found = next((path for one in (name, f"{name}-static") if (path := shutil.which(one))), None)
    if found is None:
        what = f"counting {isa_name} code here takes {name or 'an emulator'}, which is not installed"
        raise ToolError(what, todo=_PACKAGE)
    _, listed, _ = said((found, "-h"), b"", COMPILER_SECONDS.default)
    if b"-plugin" not in listed:
        raise ToolError("knows no option -plugin", where=found, todo=_NO_PLUGINS)
    root = Path("/usr") / isa.cross_prefix.rstrip("-")
    foreign = platform.machine().lower() not in isa.hosts
    libraries = ("-L", str(root)) if foreign and root.is_dir() else ()
    return Emulator((found, *libraries, "-cpu", isa.emulated_cpu))


def qemu_run(function: Function, command: Command, told: Told = lambda what: None) -> tuple[Function, Occurrences]:
    """Run the program once under qemu and count; the function with the blocks that only running it showed.

    Raises:
        ToolError: no qemu with plugins, or no compiler for the plugin.
        InputError: the program takes too long, or runs the function in several threads or processes, or in a library.
    """
    emulator = emulator_for(function.isa)
    with scratch_folder() as folder:
        out = folder / "counts"
        arguments = (f"{_compiled(folder)},out={out}", *_place(function))
        began = time.monotonic()
        ran = plain_run(emulator.command(command, "-plugin", ",".join(arguments)), told)
        seconds = time.monotonic() - began
        if not out.exists():
            last = ran.said.splitlines()[-1:] or [f"exit status {ran.exit_status}"]
            raise ToolError(f"counted nothing: {last[0]}", where=emulator.words[0], todo="see that it runs the program")
        executed = _read(out)
        several = executed.threads or out.with_name("counts.process").exists()
    if several:
        what = f"{function.name} runs in several threads or processes, which are not counted under qemu"
        raise InputError(what, where=command.words[0], todo="let it use one (OMP_NUM_THREADS=1)")
    function = _with_leaders(function, executed)
    return function, _occurrences(function, executed, ran.exit_status, seconds)


def _compiled(folder: Path) -> Path:
    """The plugin as this host's compiler makes it.

    Raises:
        ToolError: there is no compiler, or it fails.
    """
    compiler = next((path for name in _COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        raise ToolError("counting under qemu compiles a plugin, and no C compiler is here", todo="install gcc")
    target = folder / "counts.so"
    words = (compiler, "-O2", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", str(_PLUGIN), "-o", str(target))
    status, _, complaint = said(words, b"", COMPILER_SECONDS.default)
    if status:
        raise ToolError(f"does not compile the plugin of qemu: {complaint}", where=compiler, todo="install gcc")
    return target


def _place(function: Function) -> tuple[str, ...]:
    """Where the function is in its file, for the plugin."""
    from elftools.elf.elffile import ELFFile

    with Path(function.file).open("rb") as stream:
        file = ELFFile(stream)
        code = [one["p_vaddr"] for one in file.iter_segments() if one["p_type"] == "PT_LOAD" and one["p_flags"] & 1]
    first, end = min(one.first for one in function.ranges), max(one.end for one in function.ranges)
    fixed = int(not function.position_independent)
    return f"first={first:#x}", f"end={end:#x}", f"code={min(code, default=0):#x}", f"fixed={fixed}"


@dataclass(frozen=True, slots=True)
class _Executed:
    """What the plugin says, by addresses of the file.

    Attributes:
        stretches: first and last instruction of what was executed as a whole, with how often.
        edges: last instruction of one and first of the next, with how often.
        threads: whether several ran.
    """

    stretches: Mapping[tuple[int, int], int] = field(default_factory=dict)
    edges: Mapping[tuple[int, int], int] = field(default_factory=dict)
    threads: bool = False


def _read(out: Path) -> _Executed:
    found: dict[str, dict[tuple[int, int], int]] = {"block": {}, "edge": {}}
    threads = False
    for line in out.read_text().splitlines():
        kind, *numbers = line.split()
        if kind == "threads":
            threads = True
        else:
            first, second, count = numbers
            found[kind][int(first, 16), int(second, 16)] = int(count)
    return _Executed(found["block"], found["edge"], threads)


def _with_leaders(function: Function, executed: _Executed) -> Function:
    """The function with a block wherever another instruction than the one before led to; what indirect jumps led to are
    their successors."""
    ends = {block.instructions[-1].address for block in function.blocks}
    arrived = {second for first, second in executed.edges if first in ends}
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        places = {item.address for item in block.instructions[1:]} & arrived
        for place in sorted(places):
            first, block = cut_block(block, place)  # noqa: PLW2901
            blocks.append(first)
        blocks.append(block)
    known = {block.address for block in blocks}
    blocks = [
        replace(one, successors=tuple(sorted({*one.successors, *_led_to(one, executed, known)})))
        if one.ending == "indirect"
        else one
        for one in blocks
    ]
    if blocks == list(function.blocks):
        return function
    loops = natural_loops({one.address: one.successors for one in blocks}, function.entry)
    return replace(function, blocks=tuple(blocks), loops=loops)


def _led_to(block: BasicBlock, executed: _Executed, known: set[int]) -> set[int]:
    last = block.instructions[-1].address
    return {second for first, second in executed.edges if first == last and second in known}


def _occurrences(function: Function, executed: _Executed, status: int, seconds: float) -> Occurrences:
    blocks = dict.fromkeys((block.address for block in function.blocks), 0)
    for (first, last), count in executed.stretches.items():
        for address in blocks:
            if first <= address <= last:
                blocks[address] += count
    edges: dict[tuple[int, int], int] = {}
    for block in function.blocks:
        last, several = block.instructions[-1].address, len(block.successors) > 1 or block.ending == "branches"
        for one in block.successors:
            edges[block.address, one] = executed.edges.get((last, one), 0) if several else blocks[block.address]
    inner = sum(count for (_, target), count in edges.items() if target == function.entry)
    return Occurrences(blocks, edges, blocks[function.entry] - inner, "qemu", 1, seconds, status)
