"""The in-core analysis of a loop body: port pressure, loop-carried dependency, critical path, and one headline number.

All data are in the first-level cache, the front end never starves, and branches are predicted (assumptions 1, 3 and 4
of Laukemann et al., PMBS 2018, section I-A). docs/incore.md gives the formulas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, Protocol

from kernmodel.assembly.model import AssemblyLoop, Instruction
from kernmodel.errors import Location, Note
from kernmodel.incore.cycles import Edge, longest_path, maximum_cycle_ratio
from kernmodel.incore.graph import Graph, dependency_graph, is_eliminated_move, is_idiom
from kernmodel.incore.model import Chain, InCore, InstructionData, InstructionReport, Parameters, PortUse
from kernmodel.incore.ports import Pressure, even_pressure, optimal_bound, optimal_pressure

PortModel = Literal["optimal", "even"]

CLOSED_BY_ZMM = "zmm closes vector port"
"""Key of `Parameters.extra`: the port whose vector units a loop with 512-bit registers loses to its neighbour."""

FUSED_WITH_JUMPS = "fused with conditional jumps"
"""Key of `Parameters.extra`: mnemonics that macro-fuse with any conditional jump, on cores whose table lists no pairs
(not those that compare memory with an immediate)."""

_ZMM_BYTES = 64
_TINY = 1e-9
_NAMED = 4  # instructions or ports that the reason spells out


class Table(Protocol):
    """What the analysis asks of an instruction table."""

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row for the instruction, None if there is none."""


Rows = Sequence[InstructionData | None]
Uses = tuple[tuple[PortUse, ...], ...]


def analyse(loop: AssemblyLoop, parameters: Parameters, table: Table, *, port_model: PortModel = "optimal") -> InCore:
    """Analyse a loop body (or a marked region, taken as a loop body).

    Args:
        loop: the body.
        parameters: of the microarchitecture.
        table: its instruction table.
        port_model: "optimal" for the exact bound of an ideal scheduler; "even" for the model of the OSACA papers: equal
            shares on all admissible ports, no macro-fusion, branches without port.

    Raises:
        InstructionTableError: a row of the table is malformed.
    """
    instructions = loop.instructions
    rows = tuple(_row_of(instruction, table) for instruction in instructions)
    fused = _fused(instructions, rows, parameters) if port_model == "optimal" else frozenset()
    uses = _port_uses(instructions, rows, parameters, port_model, fused)
    graph = dependency_graph(instructions, rows, parameters, "att" if loop.syntax == "att" else "intel")
    lcd, lcd_shares = _loop_carried(graph)
    path, path_shares = _critical_path(graph)
    pressure = (optimal_pressure if port_model == "optimal" else even_pressure)(uses, parameters.ports)
    port_sums = tuple(sum(column) for column in zip(*pressure, strict=True)) or (0.0,) * len(parameters.ports)
    throughput, binding = _throughput(uses, port_sums, parameters.ports, port_model)
    slow_forms, slow = _one_at_a_time(rows)
    if slow > throughput + _TINY:
        throughput, binding = slow, ()
    dependency = lcd is not None and lcd.cycles > throughput + _TINY
    chain = lcd if dependency else None
    return InCore(
        microarchitecture=parameters.name,
        ports=parameters.ports,
        port_model=port_model,
        rows=_reports(instructions, rows, pressure, uses, graph, (path_shares, lcd_shares), fused),
        uses=uses,
        port_sums=port_sums,
        throughput=throughput,
        binding_ports=binding,
        lcd=lcd,
        critical_path=path,
        prediction=chain.cycles if chain else throughput,
        bound_by="dependency" if chain else "throughput",
        reason=_dependency_reason(chain, instructions)
        if chain
        else _throughput_reason(throughput, binding, slow_forms, uses, instructions, port_model),
        iterations_per_pass=loop.iterations_per_pass,
        uncertain=tuple(i.form for i, row in zip(instructions, rows, strict=True) if row is None),
        notes=_notes(loop, rows, graph, parameters),
    )


def _row_of(instruction: Instruction, table: Table) -> InstructionData | None:
    """The row for the instruction, in its indexed variant where that applies."""
    row = table.lookup(instruction)
    if row is None or row.indexed is None:
        return row
    indexed = any(reference.index is not None for reference in instruction.memory)
    return row.indexed if indexed else row


def _fused(instructions: Sequence[Instruction], rows: Rows, parameters: Parameters) -> frozenset[int]:
    """The instructions that macro-fuse with the conditional branch right behind them."""
    always = str(parameters.extra.get(FUSED_WITH_JUMPS, "")).split()
    fused = set()
    for number, branch in enumerate(instructions[1:]):
        row, first = rows[number], instructions[number]
        if branch.branch != "conditional" or row is None:
            continue
        pairs = row.front_end.fusible_with if row.front_end else ()
        if branch.mnemonic in pairs or (row.front_end is None and _fuses(first, branch, always)):
            fused.add(number)
    return frozenset(fused)


def _fuses(first: Instruction, branch: Instruction, mnemonics: Sequence[str]) -> bool:
    """Whether an instruction fuses with a branch by the parameters: only if the branch reads what it writes."""
    compares_immediate = first.memory and any(operand.immediate is not None for operand in first.operands)
    feeds = not set(branch.flags_read).isdisjoint(first.flags_written)
    return first.mnemonic in mnemonics and feeds and not compares_immediate


def _port_uses(
    instructions: Sequence[Instruction],
    rows: Rows,
    parameters: Parameters,
    port_model: PortModel,
    fused: frozenset[int],
) -> Uses:
    """Per instruction, the ports that its µops need after elimination and fusion."""
    wide = any(instruction.vector_bytes == _ZMM_BYTES for instruction in instructions)
    closed = parameters.extra.get(CLOSED_BY_ZMM) if wide else None
    uses: list[tuple[PortUse, ...]] = []
    for number, (instruction, row) in enumerate(zip(instructions, rows, strict=True)):
        if row is None or _at_rename(instruction, row) or (instruction.branch and port_model == "even"):
            uses.append(())
        elif number in fused:
            following = rows[number + 1]
            uses.append(_without_compare(row.ports, following.ports if following else ()))
        elif closed is not None and instruction.vector_bytes:
            uses.append(_without_port(row.ports, str(closed)))
        else:
            uses.append(row.ports)
    return tuple(uses)


def _at_rename(instruction: Instruction, row: InstructionData) -> bool:
    """Whether the instruction is done at rename and needs no port."""
    zero = row.breaks_dependency == "zero" and is_idiom(instruction, row)
    return zero or is_eliminated_move(instruction, row)


def _without_compare(ports: tuple[PortUse, ...], branch: tuple[PortUse, ...]) -> tuple[PortUse, ...]:
    """The port usage without the µop that merges into the branch: the one that shares ports with it."""
    branch_ports = {port for use in branch for port in use.ports}
    rest = list(ports)
    merged = next((number for number, use in enumerate(rest) if branch_ports.intersection(use.ports)), None)
    if merged is not None:
        use = rest.pop(merged)
        if use.cycles > 1:
            rest.insert(merged, PortUse(use.ports, use.cycles - 1))
    return tuple(rest)


def _without_port(ports: tuple[PortUse, ...], closed: str) -> tuple[PortUse, ...]:
    """The port usage with the closed port taken from the choices, where there are others."""
    return tuple(
        PortUse(tuple(port for port in use.ports if port != closed), use.cycles) if set(use.ports) - {closed} else use
        for use in ports
    )


def _throughput(
    uses: Uses, port_sums: Sequence[float], ports: tuple[str, ...], port_model: PortModel
) -> tuple[float, tuple[str, ...]]:
    """TP by ports, and the ports that bind it, in the order of display."""
    if port_model == "optimal":
        bound, names = optimal_bound(use for row in uses for use in row)
        return bound, tuple(port for port in ports if port in names)
    bound = max(port_sums, default=0.0)
    return bound, tuple(p for p, total in zip(ports, port_sums, strict=True) if bound and total > bound - _TINY)


def _one_at_a_time(rows: Rows) -> tuple[tuple[str, ...], float]:
    """The forms whose measured reciprocal throughput ports do not tell, and the cycles of all of them together.

    These are locked and microcoded instructions: one waits for the other, whatever their forms.
    """
    slow = [(row.form, row.throughput) for row in rows if row is not None and row.throughput is not None]
    return tuple(dict.fromkeys(form for form, _ in slow)), sum(cycles for _, cycles in slow)


def _loop_carried(graph: Graph) -> tuple[Chain | None, dict[int, float]]:
    """The longest loop-carried dependency, and the cycles per pass that each instruction contributes to it."""
    cycle = maximum_cycle_ratio(len(graph.owners), graph.edges)
    if cycle is None:
        return None, {}
    chain = _chain(graph, cycle.edges[-1:] + cycle.edges[:-1], cycle.ratio, cycle.passes)
    shares: dict[int, float] = {}
    for edge in cycle.edges:
        owner = graph.owners[edge.target]
        shares[owner] = shares.get(owner, 0.0) + edge.latency / cycle.passes
    return chain, shares


def _critical_path(graph: Graph) -> tuple[Chain, dict[int, float]]:
    """The longest path through one pass, and the cycles that each instruction contributes to it."""
    length, first, edges = longest_path(graph.entry, graph.edges)
    if first is None:
        return Chain(0.0, (), (), 1), {}
    shares = {graph.owners[first]: graph.entry[first]}
    for edge in edges:
        owner = graph.owners[edge.target]
        shares[owner] = shares.get(owner, 0.0) + edge.latency
    return _chain(graph, (Edge(first, first, 0.0, 0), *edges), length, 1), shares


def _chain(graph: Graph, edges: Sequence[Edge], cycles: float, passes: int) -> Chain:
    """The instructions and carriers at the targets of the edges; a load and its result are one member."""
    members: list[int] = []
    carriers: list[str] = []
    for edge in edges:
        owner = graph.owners[edge.target]
        if members and members[-1] == owner and not edge.passes:
            carriers[-1] = graph.carriers[edge.target]
        else:
            members.append(owner)
            carriers.append(graph.carriers[edge.target])
    return Chain(cycles, tuple(members), tuple(carriers), passes)


def _reports(
    instructions: Sequence[Instruction],
    rows: Rows,
    pressure: Pressure,
    uses: Uses,
    graph: Graph,
    shares: tuple[dict[int, float], dict[int, float]],
    fused: frozenset[int],
) -> tuple[InstructionReport, ...]:
    """The rows of the answer; `shares` are those of the critical path and of the LCD."""
    on_path, on_lcd = shares
    return tuple(
        InstructionReport(
            instruction=instruction,
            pressure=pressure[number],
            latency=graph.latencies[number],
            on_critical_path=on_path.get(number),
            on_lcd=on_lcd.get(number),
            known=row is not None,
            eliminated=row is not None and not uses[number] and (number in fused or _at_rename(instruction, row)),
            source=row.source if row is not None else "",
        )
        for number, (instruction, row) in enumerate(zip(instructions, rows, strict=True))
    )


def _dependency_reason(chain: Chain, instructions: Sequence[Instruction]) -> str:
    steps = " → ".join(
        f"{instructions[member].mnemonic} ({carrier})"
        for member, carrier in zip(chain.members[:_NAMED], chain.carriers, strict=False)
    )
    more = f" → … ({len(chain.members) - _NAMED} more)" if len(chain.members) > _NAMED else ""
    span = "from pass to pass" if chain.passes == 1 else f"over {chain.passes} passes"
    return f"the dependency chain {span} takes {chain.cycles:.2f} cycles per pass: {steps}{more}"


def _throughput_reason(
    throughput: float,
    binding: tuple[str, ...],
    slow_forms: tuple[str, ...],
    uses: Uses,
    instructions: Sequence[Instruction],
    port_model: PortModel,
) -> str:
    if not throughput:
        return "no instruction needs an execution port"
    if not binding:
        return (
            f"{_listed(slow_forms)}: measured reciprocal throughput, one after the other, takes "
            f"{throughput:.2f} cycles per pass"
        )
    inside = frozenset(binding)
    meets = inside.issuperset if port_model == "optimal" else inside.intersection
    users = Counter(
        instruction.mnemonic
        for instruction, row in zip(instructions, uses, strict=True)
        if any(use.ports and meets(use.ports) for use in row)
    )
    named = _listed([f"{n}× {name}" if n > 1 else name for name, n in users.most_common()])
    many = len(binding) > 1
    return (
        f"{'ports' if many else 'port'} {_listed(binding)} {'are' if many else 'is'} busy "
        f"{throughput:.2f} cycles per pass with {named}"
    )


def _listed(names: Sequence[str]) -> str:
    """The first of the names, and how many there are besides; one more is named as well."""
    shown = len(names) if len(names) <= _NAMED + 1 else _NAMED
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def _notes(loop: AssemblyLoop, rows: Rows, graph: Graph, parameters: Parameters) -> tuple[Note, ...]:
    notes = [
        Note(
            "unknown-instruction",
            f"{instruction.form} has no row in the instruction table of {parameters.name}: it counts nothing",
            where=_place(loop, instruction),
        )
        for instruction, row in zip(loop.instructions, rows, strict=True)
        if row is None
    ]
    for instruction in loop.instructions:
        if instruction.form.startswith(("rep ", "repne ")):
            text = f"{instruction.form} takes as long as its count says; its row holds for a few repetitions"
            notes.append(Note("repeat-count", text, where=_place(loop, instruction)))
    for link in graph.blocked:
        load = loop.instructions[link.load[0]]
        text = "the load needs bytes from more than the store before it: the core cannot forward them, it takes longer"
        notes.append(Note("store-forward-blocked", text, where=_place(loop, load)))
    if graph.incomparable:
        text = "addresses of loads and stores that cannot be compared are taken to differ"
        notes.append(Note("addresses-differ", text, kind="assumption"))
    if loop.instructions and loop.instructions[-1].branch is None:
        text = "the region ends in no branch; it is analysed as the body of a loop"
        notes.append(Note("no-branch", text, kind="assumption"))
    return tuple(notes)


def _place(loop: AssemblyLoop, instruction: Instruction) -> Location:
    return Location(loop.file, instruction.line or None)
