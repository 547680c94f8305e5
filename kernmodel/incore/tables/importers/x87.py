"""x87 rows: µops and ports of LLVM's scheduling models, latencies and dividers of InstLatx64, transfers as `movsd`'s.

uops.info's packs at hand hold no x87. What neither LLVM nor a reading knows has no row: most functions (fyl2x …) and
what LLVM gives its default of a hundred cycles. Nor has fbstp, which LLVM takes for a plain store. Forms that pop the
stack do what those that do not pop do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product

from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import FrontEnd, InstructionData, PortUse
from kernmodel.incore.tables.importers.avx512 import whole_cycles
from kernmodel.incore.tables.importers.facts import facts
from kernmodel.incore.tables.importers.instlatx64 import EASY, Reading
from kernmodel.incore.tables.importers.llvm import Cost, Model, instruction_costs, port_groups
from kernmodel.value_types import dataclass

ComputePorts = Callable[[Cost], tuple[PortUse, ...]]
"""The ports of what a form computes, without loads and stores, by LLVM's cost of it."""

_FILE = "x87.yml"
_TOP = "st0"
_UNKNOWN_LATENCY = 100
"""LLVM's latency of what nobody measured."""
_EXCHANGE = "fxch st,st"
"""Done at rename; LLVM's models have the microcode of another core for it."""
_STATUS = "fnstsw r16"
"""Its last µop merges the status word into ax, in a cycle: so uops.info measures of sldt, str and 16-bit moves."""
_DIVIDES = re.compile(r"fi?(?:divr?p?|sqrt)\b")
_MEMORY = re.compile(r"\bm\d+$")
_INTEGER = re.compile(r"fi(add|subr?|mul|divr?) m\d+")
_KEEPS_TOP = re.compile(r"fi?comp?|fldcw|fnst[cs]w")
"""Forms with memory that neither write st0 nor store it."""
_TWIN = re.compile(r"^fi?(add|subr?|mul|divr?)p? .*")
_ZEN = re.compile(r"Zn\d?FPU?(\d)")
_LLVM_DIVIDER = re.compile(r"[A-Z]+FPDivider")
_COMPUTING = frozenset("0156B")
"""Ports of Intel's cores; the others load and store."""
_TOLERANCE = 1.15
_QUARTERS = 4
_LOAD, _STORE = "movsd xmm,m64", "movsd m64,xmm"


@dataclass(frozen=True, slots=True)
class X87Model:
    """What the x87 rows of a core are made of.

    Attributes:
        cpu: LLVM's `-mcpu`; words: what its model is called in sources.
        ports: the ports of what a form computes.
        divider: the pipeline that divisions and square roots occupy.
        measured_on: the CPU of the readings.
        issue_width: of the core.
        moves: the pipelines of moves between registers, where LLVM has none and experiments on the core tell them and
            what loads and stores of 80 bits take, of which LLVM has the figures of 64 bits.
    """

    cpu: str
    words: str
    ports: ComputePorts
    divider: str
    measured_on: str
    issue_width: int
    moves: tuple[str, ...] = ()

    @property
    def tags(self) -> dict[str, str]:
        """Sources by their tags in tables."""
        return _sources(self.words, self.measured_on)


@cache
def _sources(model: str, cpu: str) -> dict[str, str]:
    return {tag: text.format(model=model, cpu=cpu) for tag, text in facts(_FILE, "sources").items()}


@cache
def x87_forms() -> tuple[str, ...]:
    """Keys of the forms that rows are looked for."""
    return tuple(form for pattern in facts(_FILE, "forms") for form in _expanded(pattern))


def _expanded(pattern: str) -> Iterator[str]:
    """The texts of a pattern such as "f{add,sub}{,p} st"."""
    texts = [part.split(",") if number % 2 else [part] for number, part in enumerate(re.split("[{}]", pattern))]
    return map("".join, product(*texts))


def x87_rows(
    base: Mapping[str, InstructionData], readings: Mapping[str, Reading], model: X87Model
) -> tuple[InstructionData, ...]:
    """The rows of all x87 forms that something is known of.

    Args:
        base: rows by form, for the plain loads and stores; without these there is none.
        readings: of InstLatx64, by form.
        model: of the core.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    if _LOAD not in base or _STORE not in base:
        return ()
    costs = instruction_costs(model.cpu, x87_forms())
    left_out = () if model.moves else facts(_FILE, "extended")
    known = {form: cost for form, cost in costs.items() if cost.latency < _UNKNOWN_LATENCY and form not in left_out}
    same: Mapping[str, str] = facts(_FILE, "same")
    known |= {form: known[other] for form, other in same.items() if form not in known and other in known}
    inputs = _Inputs(base, readings, model, known)
    return tuple(row for form in x87_forms() if (row := _row(form, inputs)) is not None)


@dataclass(frozen=True, slots=True)
class _Inputs:
    base: Mapping[str, InstructionData]
    readings: Mapping[str, Reading]
    model: X87Model
    costs: Mapping[str, Cost]


def _row(form: str, inputs: _Inputs) -> InstructionData | None:
    """The row of a form, None if too little is known of it."""
    reading = inputs.readings.get(_register_form(form))
    if form == _EXCHANGE:
        return _exchange(inputs.model, reading) if reading else None
    if form in facts(_FILE, "functions"):
        return _function(form, inputs)
    cost = inputs.costs.get(form)
    compute = inputs.model.ports(cost) if cost is not None else ()
    if inputs.model.moves and form in facts(_FILE, "moves"):
        compute = (PortUse(inputs.model.moves, 1.0),)
    row = None
    if cost is not None and (compute or cost.loads or cost.stores or _is_portless(cost)):
        row = _as_modelled(form, cost, compute, inputs)
        if form == _STATUS:
            return replace(row, latencies={("0", "0"): 1.0}, source=inputs.model.tags["xs"])
        if _DIVIDES.match(form):
            return _dividing(row, cost, reading, inputs)
        row = _as_measured(row, reading, inputs.model) if reading and not _MEMORY.search(form) else row
    return _idle(form, reading, inputs.model) if row is None and reading and form in facts(_FILE, "idle") else row


def _is_portless(cost: Cost) -> bool:
    """Whether LLVM's model counts µops of microcode but says no ports of theirs."""
    return not cost.usage and cost.uops > 1


def _function(form: str, inputs: _Inputs) -> InstructionData | None:
    """A function by its readings: of 0, and `full` of the operand that takes longest."""
    easy, usual = inputs.readings.get(form + EASY), inputs.readings.get(form)
    if easy is None or usual is None:
        return None
    few, full = (_timed(form, reading, inputs.model.tags["xf"]) for reading in (easy, usual))
    return replace(few, full=full)


def _timed(form: str, reading: Reading, source: str) -> InstructionData:
    """A row of which nothing but times is known."""
    latency = whole_cycles(reading.latency or 0.0)
    throughput = round((reading.throughput or 0.0) * _QUARTERS) / _QUARTERS
    return InstructionData(form, (), {}, latency, 1, throughput or None, "no", False, None, None, source)


def _idle(form: str, reading: Reading, model: X87Model) -> InstructionData:
    """A row of what gives no result, where the model's ports contradict its reading or are unknown."""
    return replace(_timed(form, reading, model.tags["xi"]), throughput=_beyond(1 / model.issue_width, reading))


def _register_form(form: str) -> str:
    """The form between registers that computes the same ("fiadd m16" and "faddp st,st": "fadd st,st")."""
    return _TWIN.sub(r"f\1 st,st", form).replace("divr", "div").replace("subr", "sub").replace("fsub ", "fadd ")


def _exchange(model: X87Model, reading: Reading) -> InstructionData:
    """`fxch`, which waits for nothing: each register gets what the other one has."""
    crossed = {("0", "0"): 0.0, ("1", "1"): 0.0}
    throughput = _beyond(1 / model.issue_width, reading)
    return InstructionData(_EXCHANGE, (), crossed, 0.0, 1, throughput, "no", False, None, None, model.tags["xx"])


def _as_modelled(form: str, cost: Cost, compute: tuple[PortUse, ...], inputs: _Inputs) -> InstructionData:
    """The row by LLVM's model, with the latency between registers measured where it is; memory as `movsd`'s."""
    inner, measured = _latency(form, inputs)
    portless = _is_portless(cost)
    row = InstructionData(
        form=form,
        ports=compute,
        latencies={},
        default_latency=inner,
        uops=cost.uops - cost.loads - cost.stores if portless else round(sum(use.cycles for use in compute)),
        throughput=None,
        breaks_dependency="no",
        eliminated=False,
        front_end=FrontEnd(cost.uops, 1, cost.uops - 1, True, 0, ()) if portless else None,
        indexed=None,
        source=inputs.model.tags["xm"] if portless else inputs.model.tags["xr"] if measured else inputs.model.tags["x"],
    )
    if cost.loads:
        return _loading(row, cost, inputs)
    return _storing(row, cost, inputs) if cost.stores else row


def _latency(form: str, inputs: _Inputs) -> tuple[float, bool]:
    """Cycles from register to register, and whether they are measured; 0 of a load or store that computes nothing."""
    register = _register_form(form)
    reading, cost = inputs.readings.get(register), inputs.costs.get(register)
    if reading is not None and reading.latency is not None:
        return whole_cycles(reading.latency), True
    return (0.0 if cost is None or _MEMORY.search(register) else float(cost.latency)), False


def _loading(row: InstructionData, cost: Cost, inputs: _Inputs) -> InstructionData:
    """The row with a load; a conversion before the operation takes what LLVM's model has beyond a load and it."""
    plain, moves = inputs.base[_LOAD], row.form in ("fld m32", "fld m64")
    floating = _INTEGER.sub(r"f\1 m32", row.form)
    load = inputs.costs["fadd m64"].latency - inputs.costs["fadd st,st"].latency
    beyond = cost.latency - (inputs.costs[floating].latency if floating != row.form else load)
    converting = max(beyond, 0.0) if _INTEGER.fullmatch(row.form) or row.form.startswith(("fild", "fbld")) else 0.0
    data = row.default_latency + converting
    pairs = {("A0", _TOP): plain.latencies["A1", "0"] + data}
    if converting and row.default_latency:
        pairs["M0", _TOP] = data
    loading = replace(
        row,
        ports=plain.ports if moves else row.ports + plain.ports,
        latencies={} if _KEEPS_TOP.match(row.form) else pairs,
        default_latency=row.default_latency or data,
        uops=plain.uops if moves else row.uops + plain.uops,
        front_end=plain.front_end if moves else row.front_end,
    )
    return replace(loading, indexed=_indexed(loading, plain)) if moves else loading


def _storing(row: InstructionData, cost: Cost, inputs: _Inputs) -> InstructionData:
    """The row with a store; a conversion before it takes what LLVM's model has beyond a plain store."""
    plain, store = inputs.base[_STORE], inputs.costs["fst m64"]
    converting = max(cost.latency - store.latency, 0.0) if row.ports else 0.0
    kept = plain.latencies.get(("1", "M0"), plain.default_latency)
    storing = replace(
        row,
        ports=row.ports + plain.ports,
        default_latency=0.0 if _KEEPS_TOP.match(row.form) else kept + converting,
        uops=row.uops + plain.uops,
        front_end=None if row.ports else plain.front_end,
    )
    return replace(storing, indexed=_indexed(storing, plain))


def _indexed(row: InstructionData, plain: InstructionData) -> InstructionData | None:
    """The row with an indexed address, where that of the plain move differs."""
    if plain.indexed is None:
        return None
    own = row.ports[: len(row.ports) - len(plain.ports)]
    front = plain.indexed.front_end if row.front_end else None
    return replace(row, form=row.form + " [indexed]", ports=own + plain.indexed.ports, front_end=front)


def _dividing(row: InstructionData, cost: Cost, reading: Reading | None, inputs: _Inputs) -> InstructionData | None:
    """The row with the divider occupied for its measured throughput: for easy operands, `full` for the others.

    Without readings it is occupied for as long as LLVM's model says, which knows it of some forms only.
    """
    model = inputs.model
    easy = inputs.readings.get(_register_form(row.form) + EASY)
    if reading is None or easy is None:
        busy = sum(cycles for resource, cycles in cost.usage.items() if _LLVM_DIVIDER.fullmatch(resource))
        return replace(row, ports=(*row.ports, PortUse((model.divider,), busy))) if busy else None
    full = _occupying(row, reading, reading, model)
    few = _occupying(row, easy, reading, model)
    return few if few == full else replace(few, full=full)


def _occupying(row: InstructionData, reading: Reading, usual: Reading, model: X87Model) -> InstructionData:
    """The row with these figures of the divider; its own latencies are those of the usual operands."""
    busy = round((reading.throughput or 0.0) * _QUARTERS) / _QUARTERS
    less = whole_cycles(usual.latency or 0.0) - whole_cycles(reading.latency or 0.0)
    return replace(
        row,
        ports=(*(use for use in row.ports if use.ports != (model.divider,)), PortUse((model.divider,), busy)),
        default_latency=row.default_latency - less,
        latencies={pair: cycles - less for pair, cycles in row.latencies.items()},
        source=model.tags["xr"],
    )


def _as_measured(row: InstructionData, reading: Reading, model: X87Model) -> InstructionData | None:
    """The row with the measured throughput where its ports do not tell it; None if they are slower than that."""
    told = max(optimal_bound(row.ports)[0], row.uops / model.issue_width)
    if reading.throughput is not None and told > _TOLERANCE * reading.throughput:
        return None
    return replace(row, throughput=_beyond(told, reading), source=model.tags["xr"])


def _beyond(told: float, reading: Reading) -> float | None:
    """The measured throughput in quarters of a cycle if it is longer than what ports and issue tell."""
    measured = reading.throughput or 0.0
    return round(measured * _QUARTERS) / _QUARTERS if measured > _TOLERANCE * told else None


def intel_ports(model: Model, cost: Cost) -> tuple[PortUse, ...]:
    """The ports of an Intel core that compute."""
    return port_groups({port: cycles for port, cycles in model.ports(cost) if port in _COMPUTING})


def zen_ports(cost: Cost) -> tuple[PortUse, ...]:
    """The vector pipelines of a Zen core, each µop on one of them (LLVM books some µops on several)."""
    found = ((_ZEN.fullmatch(resource), cycles) for resource, cycles in cost.usage.items())
    usage = {f"FP{match[1]}": cycles for match, cycles in found if match is not None}
    if sum(usage.values()) > cost.uops:
        return (PortUse(tuple(sorted(usage)), float(cost.uops)),)
    return port_groups(usage)
