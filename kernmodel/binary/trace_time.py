"""How long a core takes for blocks that run one after the other, over and over: the pipeline simulation of a trace.

A trace is looked at as the body of one long loop. So chains that start anew, chains that overlap with other work, and
stores that feed loads of another block are what the simulation of `kernmodel.incore` makes of them. Two things are put
into its input that code without jumps does not have:

- *Lines of code.* Where the core is known to deliver one aligned line of code a cycle, each run of instructions that
  follow one another in one line takes a cycle of delivery; behind a taken branch another run begins.
- *Mispredicted branches.* What follows such a branch is fetched once the branch was executed and the misprediction
  penalty has passed. What is older than the branch goes on meanwhile, so that a chain that is behind hides the
  penalty (S. Eyerman, J. E. Smith, L. Eeckhout: Characterizing the branch misprediction penalty, ISPASS 2006).

Loads that need more than a store wrote wait until it is in the cache, where it comes when all that is older is
complete: so they wait one after the other, whatever needs their values (`benchmarks/store_forwarding.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise

from kernmodel.binary.recorded_data import BlockedLoad, TraceData
from kernmodel.incore.answer.components import row_of
from kernmodel.incore.core import Core
from kernmodel.incore.dependences.line_splits import Lines, halves
from kernmodel.incore.engine.analyser import Analyser, LoweredBlock
from kernmodel.incore.engine.compiled import simulate
from kernmodel.incore.engine.interface import Program
from kernmodel.incore.engine.layout import LINES, ON, PASSES, PHASES, SIMULATION, SOURCES, Access, Wait, port_mask
from kernmodel.incore.engine.simulation import run
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

_PIPELINE = 2
"""Cycles from the fetch of a µop to its first chance to run in the simulation, which are part of the penalty."""
_AMPLE = 1 << 11
"""Entries of the queue of µops where it is to hold up nothing."""
_DEFAULT_WINDOW = 512
"""µops of the reorder buffer of a core for which it is not known: more than any that is."""


class _Unit(NamedTuple):
    """What the front end takes as one: numbers of its first and its last instruction in the trace."""

    first: int
    last: int


class TraceTimer:
    """Times traces on one core; instructions that were met are known from then on."""

    __slots__ = ("_analyser", "_core")

    def __init__(self, core: Core, analyser: Analyser | None = None) -> None:
        """For a core; an analyser of it may be given that keeps what it meets."""
        self._core = core
        self._analyser = analyser or Analyser(core.model).keep()

    @property
    def possible(self) -> bool:
        """Whether the core has a pipeline to simulate."""
        return self._core.model.pipeline is not None

    @property
    def window(self) -> int:
        """µops that the core has in flight."""
        pipeline = self._core.model.pipeline
        return pipeline.reorder_buffer if pipeline is not None else _DEFAULT_WINDOW

    @property
    def penalty(self) -> float | None:
        """Cycles that a mispredicted branch costs where nothing hides it, None where that is not known."""
        return self._core.parameters.misprediction

    @property
    def lines(self) -> Lines | None:
        """What accesses of the core take longer to cross, None where nothing of that is known."""
        pipeline = self._core.model.pipeline
        return pipeline.memory.lines if pipeline is not None else None

    def cycles(
        self,
        trace: Sequence[Instruction],
        *mispredicted: Collection[int],
        data: TraceData | None = None,
    ) -> tuple[float, ...] | None:
        """Cycles for one execution of a trace that is executed over and over.

        Args:
            trace: instructions in the order in which they are executed, each at its own address.
            mispredicted: numbers of the branches in it that the predictor is wrong about; for each of several such
                choices there is an answer, without any choice one for a predictor that is always right.
            data: what its accesses meet; None: as the registers that they are addressed by say, and arrays are taken to
                begin at lines.

        Returns:
            None where the core has no pipeline to simulate, or the trace is beyond the engine.
        """
        if not self.possible or not trace:
            return None
        named = isa_of(trace[0].isa).with_named_registers(trace)
        rows = [row_of(instruction, self._core.table) for instruction in named]
        block = self._analyser.lower(named, rows, "loop", links=None if data is None else data.links)
        if data is not None and self.lines is not None:
            block = block._replace(look=block.look._replace(accesses=self._accesses(data)))
        answer = self._analyser.bound(block, 0, scope=SIMULATION)
        if answer is None:
            return None
        program = self._analyser.engine.program()
        fused = self._analyser.engine.graph(answer.totals).fused
        units = _units(block, fused)
        if len(units) != len(program.units):
            return None
        program = self._placed(program, trace, units)
        turns = () if data is None else data.blocked_in_turn(self.window)
        program, least = self._in_turn(program, trace, units, turns)
        times = []
        for wrong in mispredicted or ((),):
            redirected = _redirected(program, units, frozenset(wrong), round(self.penalty or 0))
            found = simulate(redirected) or run(redirected)
            times.append(max(found[1] / max(found[2], 1), least))
        return tuple(times)

    def _in_turn(
        self, program: Program, trace: Sequence[Instruction], units: Sequence[_Unit], turns: Sequence[BlockedLoad]
    ) -> tuple[Program, float]:
        """The program in which loads that no store can feed wait for each other and for the stores in between, and
        the cycles that they take at least."""
        pipeline = self._core.model.pipeline
        if not turns or pipeline is None or pipeline.memory.forwards is None:
            return program, 0.0
        forwards = pipeline.memory.forwards
        started = pipeline.memory.load_starts or pipeline.memory.load_ports
        loads = _piped(program, trace, units, _mask(started, pipeline.ports))
        stores = _piped(program, trace, units, _mask(pipeline.memory.store_data_ports, pipeline.ports))
        waits = [list(program.waits[m.first_wait : n.first_wait]) for m, n in pairwise(program.microops)]
        known = [turn for turn in turns if turn.load in loads]
        cycles = 0
        for before, turn in zip(known[-1:] + known[:-1], known, strict=True):
            wrapped = int(before.load >= turn.load)
            own = forwards.partial_vector if trace[turn.load].vector_bytes else forwards.partial
            cycles += own
            waits[loads[turn.load]].append(Wait(loads[before.load], wrapped, own))
            for store in turn.stores:
                if store in stores:
                    waits[loads[turn.load]].append(Wait(stores[store], 0, own - pipeline.memory.load_latency))
        firsts = _firsts([len(one) for one in waits])
        microops = tuple(m._replace(first_wait=first) for m, first in zip(program.microops, firsts, strict=True))
        core = program.core._replace(waits=firsts[-1], longest=max(program.core.longest, forwards.partial_vector))
        found = program._replace(core=core, microops=microops, waits=tuple(w for one in waits for w in one))
        return found, float(cycles)

    def _accesses(self, data: TraceData) -> list[Access]:
        """What becomes of the accesses of a trace of which is known which ones cross lines: these do in every pass."""
        return [
            Access(
                number,
                *_always(number in data.loads_across),
                *_always(number in data.stores_across),
                single=int(number in data.alone),
            )
            for number in sorted({*data.loads_across, *data.stores_across, *data.alone})
        ]

    def _placed(self, program: Program, trace: Sequence[Instruction], units: Sequence[_Unit]) -> Program:
        """The program with its units in the lines of code that they stand in."""
        zen = self._core.model.op_cache
        if zen is None:  # which lines the µop cache holds of code with jumps is not modelled
            core = program.core._replace(
                source=SOURCES.index("DSB"), line_fetch=ON, dsb_width=2 * program.core.issue_width, idq=_AMPLE
            )
            return program._replace(core=core)
        if zen.code_line_bytes is None or zen.op_cache_width is None:
            return program
        placed = tuple(
            unit._replace(block=first, line=last)
            for unit, (first, last) in zip(program.units, _lines(trace, units, zen.code_line_bytes), strict=True)
        )
        core = program.core._replace(line_fetch=program.core.line_fetch | PASSES | LINES, dsb_width=zen.op_cache_width)
        return program._replace(units=placed, core=core)


def _always(across: bool) -> tuple[int, int]:
    """All passes as bits, or none."""
    return halves((1 << PHASES) - 1 if across else 0)


def _units(block: LoweredBlock, fused: Collection[int]) -> list[_Unit]:
    """The units of a trace: macro-fused pairs, and other instructions that the front end takes."""
    return [
        _Unit(number, number + 1 if number in fused else number)
        for number, template in enumerate(block.templates)
        if template.traits.unit and number - 1 not in fused
    ]


def _lines(trace: Sequence[Instruction], units: Sequence[_Unit], line: int) -> list[tuple[int, int]]:
    """The runs of code in which each unit begins and ends, numbered in the order of delivery."""
    found: list[tuple[int, int]] = []
    run_number, at, expected = -1, -1, -1
    for unit in units:
        start = trace[unit.first].address
        end = trace[unit.last].address + trace[unit.last].length
        if start != expected or start // line != at:
            run_number += 1
        first = run_number
        at, expected = (end - 1) // line, end
        run_number += at - start // line
        found.append((first, run_number))
    return found


def _redirected(program: Program, units: Sequence[_Unit], mispredicted: frozenset[int], penalty: int) -> Program:
    """The program in which what follows a mispredicted branch is fetched once the branch was executed."""
    first = _first_microops(program)
    microops, placed = list(program.microops), list(program.units)
    for number, unit in enumerate(units if penalty and mispredicted else ()):
        last = first[number + 1] - 1  # of a fused pair, the one that both share
        if last >= first[number] and not mispredicted.isdisjoint(unit):
            microops[last] = microops[last]._replace(redirects=1)
            placed[number] = placed[number]._replace(redirects=1)
    redirect = max(1, penalty - _PIPELINE)
    core = program.core._replace(redirect=redirect, longest=max(program.core.longest, redirect))
    return program._replace(core=core, units=tuple(placed), microops=tuple(microops))


def _mask(groups: Sequence[Collection[str]], known: tuple[str, ...]) -> int:
    """The ports of all groups as bits."""
    return port_mask(tuple({port for group in groups for port in group}), known)


def _piped(program: Program, trace: Sequence[Instruction], units: Sequence[_Unit], pipes: int) -> dict[int, int]:
    """The first µop in these pipes of each instruction that accesses memory, by its number in the trace."""
    found: dict[int, int] = {}
    for unit, (first, end) in zip(units, pairwise(_first_microops(program)), strict=True):
        ports = [microop.ports for microop in program.microops[first:end]]
        piped = [first + k for k, own in enumerate(ports) if own and not own & ~pipes]
        accessing = [number for number in dict.fromkeys(unit) if trace[number].memory]
        if piped and accessing:
            found[accessing[0]] = piped[0]
    return found


def _first_microops(program: Program) -> list[int]:
    """The first µop of each unit, and behind them how many there are."""
    slots = _firsts([entry.slots for entry in program.entries])
    entries = _firsts([unit.entries for unit in program.units])
    return [program.first_microop[slots[entry]] for entry in entries]


def _firsts(sizes: Sequence[int]) -> list[int]:
    """Where each of several parts that stand one behind the other begins, and where the last one ends."""
    return [0, *accumulate(sizes)]
