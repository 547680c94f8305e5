"""What holds a loop back inside the core, in words: a sentence for each kind of reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kernmodel.incore.model import Reason, Why
from kernmodel.words import count, first_names

_NAMED = 4
"""Instructions or ports that a sentence spells out."""
_SOURCES = {"LSD": "loop buffer", "DSB": "µop cache", "decoders": "decoders", "ideal": "idealised front end"}
_STALLS = {
    "front end": "the front end hands it no µops",
    "scheduler": "the scheduler is full of µops that wait",
    "reorder buffer": "the reorder buffer is full of µops that have not retired",
    "registers": "all vector registers are taken by instructions that have not retired",
}
_EARLY_ENDS = {
    "loads apart": "at a load that is one too many for the cycle",
    "groups apart": "at an instruction whose µops go together",
    "operations apart": "at an operation that finds none of its ALUs free in the cycle",
}
_BUFFERS = {
    "schedulers": "the schedulers{of} are full of operations that wait",
    "load scheduler": "the scheduler of loads is full of loads that wait",
    "store scheduler": "the scheduler of stores is full of stores that wait",
    "reorder buffer": "the reorder buffer is full of operations that have not retired",
    "vector registers": "all vector registers are taken by instructions that have not retired",
}
_RULES = {
    "loads at dispatch": "dispatch takes only so many loads a cycle, which {of} exceed",
    "stores apart": "two stores enter the cache in one cycle only if they go to one line, which {of} do not",
    "address generators": "vector loads start on some address generators only, which other accesses take, too ({of})",
    "generators in turn": "{of} take address generators in their order, whatever waits there",
    "long loads": "one in several of {of} takes its pipe longer, wherever it lies",
    "banks": "three loads of a cycle may not read one bank of the cache ({of})",
    "one result": "a pipe gives one result a cycle, for which results of other latencies wait ({of})",
    "cycles as a whole": "dispatch waits until all operations of a cycle find room in their schedulers",
    "behind late results": "faster operations wait for a port's late results, and nothing starts there then ({of})",
    "two a cycle": "dispatch takes two operations a cycle of those that few ports execute ({of})",
    "constants": "only so many immediates and displacements are delivered and dispatched in a cycle",
    "whole instructions": "all slots of an instruction are dispatched in one cycle",
    "results between registers": "{of} give their results over paths of other ports",
    "fused pairs": "the instruction that is fused with {of} can go to fewer ports than by itself",
    "lines in the queue": "dispatch waits for lines of code that the queue has no room for",
    "scaled index": "{of} take longer for their scaled index",
    "false dependency": "{of} wait for the register that they overwrite",
    "blocked loads": "{of} need bytes that an earlier store did not write, and wait until it is done",
    "aliased stores": "loads wait for stores whose addresses agree with theirs in the last 12 bits ({of})",
    "unlaminated": "loads and stores with an index are issued as several µops, few of which go into a group ({of})",
    "adders": "what needs results of additions waits longer for them than other additions do ({of})",
    "domains": "vectors take a while from units for floating-point numbers to units for integers and back ({of})",
    "stack engine": "the stack engine inserts µops, since rsp is read behind pushes or pops",
    "closed port": "vector µops lose a port beside 512-bit registers ({of})",
}
_SEEN = 0.005
"""Cycles from which on two decimals show them."""


def reason_text(reason: Reason | None) -> str:
    """The clause, without a full stop; empty for no reason."""
    return "" if reason is None else SENTENCES[reason.why](reason)


def _fetch(reason: Reason) -> str:
    code = f"{count(reason.figures['instructions'], 'instruction')} in {reason.figures['bytes']} bytes"
    return f"fetching {code} takes {_cycles(reason)} per pass"


def _predecode(reason: Reason) -> str:
    code = f"{count(reason.figures['instructions'], 'instruction')} in {reason.figures['bytes']} bytes"
    prefixed = reason.figures["prefixed"]
    slow = f", {prefixed} with a length-changing prefix" if prefixed else ""
    return f"the predecoder takes {_cycles(reason)} per pass for {code}{slow}"


def _decode(reason: Reason) -> str:
    units, slow = count(reason.figures["units"], "instruction"), reason.figures["complex"]
    first = f", {slow} of which need the complex one" if slow else ""
    return f"the decoders take {_cycles(reason)} per pass for {units} or fused pairs{first}"


def _decode_erratum(reason: Reason) -> str:
    branches = reason.figures["branches"]
    keep = "keeps" if branches == 1 else "keep"
    return (
        f"decoding takes {_cycles(reason)} per pass, with what the µop cache delivers: "
        f"{count(branches, 'branch', 'branches')} of the JCC erratum {keep} code out of it"
    )


def _issue(reason: Reason) -> str:
    figures, synchronisations = reason.figures, reason.figures["synchronisations"]
    engine = f" and {synchronisations} of the stack engine" if synchronisations else ""
    return (
        f"the renamer issues {figures['uops']} µops{engine}, {figures['width']} a cycle, in {_cycles(reason)} per pass"
    )


def _ports(reason: Reason) -> str:
    ports = f"{'ports' if len(reason.names) > 1 else 'port'} {_listed(reason.names)}"
    busy = f"{'are' if len(reason.names) > 1 else 'is'} busy {_cycles(reason)} per pass"
    return f"{ports} {busy} with {_listed(_counted(reason.users))}"


def _dependency(reason: Reason) -> str:
    links = zip(reason.users[:_NAMED], reason.names, strict=False)
    steps = " → ".join(f"{mnemonic} ({carrier})" for mnemonic, carrier in links)
    more = f" → … ({len(reason.users) - _NAMED} more)" if len(reason.users) > _NAMED else ""
    passes = reason.figures["passes"]
    span = "from pass to pass" if passes == 1 else f"over {passes} passes"
    return f"the dependency chain {span} takes {_cycles(reason)} per pass: {steps}{more}"


def _beyond(reason: Reason) -> str:
    largest = reason.figures["largest"]
    return f"{_cycles(reason)} per pass in the simulated pipeline, {largest:.2f} cycles by the largest bound"


def _stalls(reason: Reason) -> str:
    share = 100 * reason.figures["share"]
    if end := _EARLY_ENDS.get(reason.names[0]):
        return f"{_beyond(reason)}: {share:.0f} % of the renamer's cycles end early {end}"
    return (
        f"{_beyond(reason)}: the renamer stands still in {share:.0f} % of the cycles while {_STALLS[reason.names[0]]}"
    )


def _full_buffer(reason: Reason) -> str:
    buffer, *ports = reason.names
    of = f" of {_listed(ports)}" if ports else ""
    return f"{_BUFFERS[buffer].format(of=of)} ({reason.figures['entries']} entries)"


def _across(reason: Reason) -> str:
    block, part = reason.figures["block"], reason.figures["part"]
    blocks = f", or as stores of {block} bytes their blocks" if block else ""
    what = f"multiples of {part} bytes" if part else "lines of the cache"
    return f"{_listed(_counted(reason.users))} cross {what}{blocks}"


def _rule(reason: Reason) -> str:
    return _RULES[reason.names[0]].format(of=_listed(_counted(reason.users)))


def _renamed(reason: Reason) -> str:
    cells = _listed(reason.names)
    if reason.cycles >= _SEEN:
        return f"memory renaming shortens the reload of {cells}; kept in a register it saves {_cycles(reason)} per pass"
    return f"memory renaming makes the reload of {cells} free: nothing to gain by keeping it in a register"


def _cycles(reason: Reason) -> str:
    return f"{reason.cycles:.2f} cycles"


def _counted(names: Sequence[str]) -> Sequence[str]:
    """Each name once, with how often it is there, the most frequent first."""
    return [f"{n}× {name}" if n > 1 else name for name, n in Counter(names).most_common()]


def _listed(names: Sequence[str]) -> str:
    """The first of the names, and how many there are besides; one more is named as well."""
    shown = len(names) if len(names) <= _NAMED + 1 else _NAMED
    return first_names(names, shown)


SENTENCES: Mapping[Why, Callable[[Reason], str]] = {
    Why.FETCH: _fetch,
    Why.PREDECODE: _predecode,
    Why.DECODE: _decode,
    Why.DECODE_ERRATUM: _decode_erratum,
    Why.UOP_CACHE: lambda r: f"the µop cache takes {_cycles(r)} per pass to deliver {r.figures['entries']} µops",
    Why.OP_CACHE: lambda r: (
        f"the op cache takes {_cycles(r)} per pass to deliver {count(r.figures['entries'], 'entry', 'entries')}"
    ),
    Why.CODE_LINES: lambda r: (
        f"the loop's {r.figures['bytes']} bytes lie in {count(r.figures['lines'], 'line')} of code, "
        f"of which the op cache delivers one a cycle: {_cycles(r)} per pass"
    ),
    Why.CONSTANTS: lambda r: (
        f"the op cache takes {_cycles(r)} per pass to deliver {count(r.figures['entries'], 'entry', 'entries')} "
        f"with {count(r.figures['constants'], 'displacement or immediate', 'displacements and immediates')}"
    ),
    Why.LOOP_BUFFER: lambda r: (
        f"the loop buffer takes {_cycles(r)} per pass to replay {r.figures['uops']} µops, "
        f"{count(r.figures['passes'], 'pass', 'passes')} a round"
    ),
    Why.ISSUE: _issue,
    Why.ISSUE_GROUPS: lambda r: f"{_issue(r)}, as some go together or end a round of the loop buffer",
    Why.ISSUE_INSTRUCTIONS: lambda r: f"{_issue(r)}, as it takes {r.figures['instructions']} instructions a cycle",
    Why.ISSUE_CONSTANTS: lambda r: (
        f"{_issue(r)}, as they have {r.figures['constants']} displacements and immediates, of which it takes "
        f"{r.figures['most']} a cycle"
    ),
    Why.PORTS: _ports,
    Why.ONE_AT_A_TIME: lambda r: (
        f"{_listed(r.users)}: measured reciprocal throughput, one after the other, takes {_cycles(r)} per pass"
    ),
    Why.NO_PORT: lambda _: "no instruction needs an execution port",
    Why.DEPENDENCY: _dependency,
    Why.NO_DEPENDENCY: lambda _: "no instruction waits for an earlier pass",
    Why.BINDING_PORTS: lambda r: f"ports {', '.join(r.names)}" if r.names else "no port is busy",
    Why.CHAIN: lambda r: (
        f"{r.figures['instructions']} instructions wait for each other"
        if r.figures["instructions"]
        else "no chain between passes"
    ),
    Why.PIPELINE: lambda r: f"the simulated pipeline takes {_cycles(r)} per pass: no more than its parts",
    Why.PORT_CHOICE: lambda r: f"{_beyond(r)}: µops wait for ports that the renamer gave them",
    Why.STALLS: _stalls,
    Why.FULL_BUFFER: _full_buffer,
    Why.ACROSS_LINES: _across,
    Why.GIVEN_PORTS: lambda _: "µops wait for ports that they were given before they were ready",
    Why.SINGLE_RULE: _rule,
    Why.THIRD_VECTORS: lambda r: (
        f"{_listed(_counted(r.users))} get the third vector that they read over the path of stored vectors, which wait"
    ),
    Why.EXTRA_SLOTS: lambda r: f"{_listed(_counted(r.users))} take a slot more at dispatch than others",
    Why.RELOADS: lambda r: f"loads of {_listed(r.names)} wait up to {_cycles(r)} for what was stored there",
    Why.MEMORY_RENAMING: _renamed,
    Why.IDLE: lambda r: f"idle: µops come from the {_SOURCES[r.names[0]]}",
    Why.IDLE_ERRATUM: lambda _: "idle: branches of the JCC erratum keep some of the code out of it",
}
"""By kind of reason its sentence."""
