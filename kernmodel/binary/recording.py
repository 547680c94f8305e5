"""A running program whose function is replaced by a copy that records its accesses, and it may be its path.

A full buffer of records stops the program until it is emptied. Whoever asks for no further buffer ends the
program.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

from kernmodel.binary.counting import bend, counted_blocks, ended, load_shift, rounded
from kernmodel.binary.program import Function
from kernmodel.binary.runs import Command
from kernmodel.binary.tracing import NotTracedError, TracedProgram, free_stretch
from kernmodel.errors import InputError, MeasurementError
from kernmodel.isa import isa_of
from kernmodel.isa.counting import TracedCopy

_PAGE = 4096
_RECORD = 16
_PIECE = 1 << 16
"""Records that the buffer takes."""
_MOST_CODE = 160
"""Bytes of the copy for a byte of the function, at most: two records for an instruction of two bytes."""


class Recording:
    """A program that was started under trace, with the copy in place.

    Args:
        words: descriptor of the memory that it shares with this process.
        path: record the blocks that it comes through, too.

    Raises:
        NotTracedError: there is no room for the copy, or none is made of such code.
    """

    def __init__(
        self, program: TracedProgram, function: Function, command: Command, words: int, *, path: bool = False
    ) -> None:
        self._program, self._function, self._command, self._words = program, function, command, words
        shift = load_shift(program, function)
        size = sum(len(block.code) for block in function.blocks)
        room = rounded(_MOST_CODE * size + 128 * len(function.blocks) + _PAGE)
        buffer = rounded(_RECORD * _PIECE)
        # behind the pointer's page and the buffer one page stays free: writing there stops the program
        place = free_stretch(program.mappings(), function.entry + shift, room + 2 * _PAGE + buffer)
        if place is None:
            raise NotTracedError("there is no room near the function for its copy")
        pointer, self._first, self._end = place + room, place + room + _PAGE, place + room + _PAGE + buffer
        isa = isa_of(function.isa)
        made = isa.traced_copy(counted_blocks(function), function.entry, place, pointer, shift=shift, path=path)
        if made is None or len(made.code) > room:
            raise NotTracedError(f"the addresses are not traced of {function.isa} code")
        self.copy: TracedCopy = made
        os.ftruncate(words, _PAGE + buffer)
        os.pwrite(words, self._first.to_bytes(8, "little"), 0)
        mapped = program.map_memory(place, room, executable=True)
        if not mapped or not program.map_memory(pointer, _PAGE + buffer, words):
            raise NotTracedError("the program has no memory for the copy", todo="see ulimit -v")
        program.close_descriptor(words)
        program.write(place, made.code)
        self._traps = bend(program, function, made.entry, made.arrivals, shift)

    def buffers(self) -> Iterator[bytes]:
        """Let the program run to its end; records as they come, 16 bytes each.

        Raises:
            MeasurementError: it has several threads or processes; InputError: it fails.
        """
        program = self._program
        while True:
            stop = program.run()
            if stop.kind == "trap" and stop.value in self._traps:
                program.go_on_at(stop.process, self._traps[stop.value])
            elif stop.kind == "signal" and stop.value == signal.SIGSEGV and self._is_full(stop.process):
                yield self._records(self._end)
                registers = program.registers(stop.process)
                registers.rcx = self._first
                program.set_registers(stop.process, registers)
                program.pass_on(stop.process, 0)
            elif stop.kind in ("clone", "fork"):
                what = f"the addresses are not traced of {self._function.name} in programs with threads or processes"
                raise MeasurementError(what, where=self._function.file, todo="let it use one thread")
            elif stop.kind in ("exited", "killed"):
                self._refuse_failure(ended(program, self._command, stop, "its addresses are traced"))
                yield self._records(int.from_bytes(os.pread(self._words, 8, 0), "little"))
                return

    def _refuse_failure(self, status: int) -> None:
        if status:
            how = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
            raise InputError(f"{how} when its addresses are traced", where=self._command.words[0])

    def _is_full(self, process: int) -> bool:
        return bool(self._program.registers(process).rcx == self._end)

    def _records(self, end: int) -> bytes:
        """The records up to an address."""
        return os.pread(self._words, end - self._first, _PAGE)
