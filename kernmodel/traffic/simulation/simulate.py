"""Data traffic by simulating a machine's caches, driven by the loop nest itself, in the steady state.

The method and its assumptions: docs/traffic-simulation.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Note, UnsupportedKernelError
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.strides import updates_per_iteration
from kernmodel.traffic.conditions.paths import UnitOfWork, fastest_line, held_notes
from kernmodel.traffic.model import AccessTraffic, Evasion, PathTraffic, Traffic, arithmetic_intensity
from kernmodel.traffic.options import SimulationOptions, StoreMode
from kernmodel.traffic.part_ends import with_ends
from kernmodel.traffic.simulation.access_table import access_rows, with_evasion
from kernmodel.traffic.simulation.array_layout import layout_note, place_arrays
from kernmodel.traffic.simulation.hierarchy import hierarchy_notes, hierarchy_of
from kernmodel.traffic.simulation.index_arrays import indirect_notes, indirect_values
from kernmodel.traffic.simulation.layout_intervals import with_layouts
from kernmodel.traffic.simulation.layout_risks import judge_layouts
from kernmodel.traffic.simulation.paths import evadable, simulated_levels, simulated_paths, stored
from kernmodel.traffic.simulation.program import NumericNest, numeric_nest, program_of
from kernmodel.traffic.simulation.rates import rates_of
from kernmodel.traffic.simulation.sampling import Sample, effort
from kernmodel.traffic.simulation.steady_state import Effort
from kernmodel.traffic.simulation.vectors import in_vectors, sample_vectors
from kernmodel.traffic.simulation.work import Work
from kernmodel.traffic.simulation.working_set import working_set_of_program
from kernmodel.traffic.stores import apply_evasion, check_stores, evasion_notes, evasion_of, limited_evasion

REGULAR = SimulationOptions()


def simulate(
    nest: LoopNest,
    machine: Machine,
    sizes: Mapping[str, int],
    *,
    cores: int = 1,
    stores: StoreMode = "regular",
    options: SimulationOptions = REGULAR,
    spend: Effort | None = None,
) -> Traffic:
    """Data traffic of a nest on a machine, by simulation of its caches, with intervals where the layout decides.

    Args:
        nest: the loop nest; indices from index arrays need a distribution in `options.indirect`.
        machine: the machine.
        sizes: a value for every size symbol of the nest.
        cores: cores that run the nest and share the shared caches.
        stores: "regular", "nt" streaming stores past the caches, "evading" write-allocates as the machine can.
        options: replacement, layout of the arrays, index arrays.
        spend: how many touches may be simulated; None: about a second.

    Raises:
        InputError: a size or the values of an index array are missing, addresses that leave 63 bits.
        UnsupportedKernelError: an index or bound that is not affine in the loop variables.
        UsageError: a core count without a meaning, streaming stores where the machine has none, a distribution for an
            array that is no index array.
    """
    check_stores(machine, stores)
    hierarchy = hierarchy_of(machine, cores, options)
    work = placed_work(nest, machine, sizes, hierarchy, stores, options)
    traffic = simulate_placed(work, hierarchy, machine, cores=cores, stores=stores, options=options, spend=spend)
    if not work.program.references:
        return traffic
    judged = judge_layouts(working_set_of_program(work), hierarchy, options)
    return with_layouts(traffic, work, judged, machine, hierarchy, spend or effort())


def simulate_placed(
    work: Work,
    hierarchy: Hierarchy,
    machine: Machine,
    *,
    cores: int,
    stores: StoreMode,
    options: SimulationOptions = REGULAR,
    spend: Effort | None = None,
    symbolic: Traffic | None = None,
) -> Traffic:
    """The same for a nest whose arrays are placed, for this layout alone, in any caches with the names and links of the
    machine's; `symbolic` is its traffic by layer conditions, if that is known."""
    # a nest that touches no array counts nothing
    found = None
    if work.program.references:
        found = sample_vectors(work, hierarchy, spend or effort(), options.lanes, exact=options.exact)
    return counted_traffic(
        work, hierarchy, machine, found, cores=cores, stores=stores, options=options, symbolic=symbolic
    )


def counted_traffic(
    work: Work,
    hierarchy: Hierarchy,
    machine: Machine,
    found: Sample | None,
    *,
    cores: int,
    stores: StoreMode,
    options: SimulationOptions = REGULAR,
    symbolic: Traffic | None = None,
) -> Traffic:
    """The traffic that `found` has counted of a nest whose arrays are placed."""
    nest, depth = work.nest.nest, len(work.nest.loops)
    notes = (
        *hierarchy_notes(machine, cores, hierarchy),
        layout_note(work.nest, hierarchy, options),
        *indirect_notes(nest, options.indirect),
        *held_notes(
            each.access for each in work.nest.references if each.access.depth == depth and each.held_from < depth
        ),
        *_streamed_note(work.nest),
        *_vector_notes(work, options.lanes),
        *_sampling_notes(found, hierarchy),
    )
    if symbolic is None or symbolic.stores == "evading":
        # the reasons of the rows are compared before any write-allocate is taken off
        regular: StoreMode = "regular" if stores == "evading" else stores
        symbolic = _symbolic(nest, machine, work.nest.sizes, cores, regular)
    traffic = _traffic(work, machine, found, cores, stores, notes, symbolic)
    outermost = {loop.variable for loop in nest.loops[:1]}
    if symbolic and nest.divided & outermost and found and not found.sampling.whole_sweep:
        return with_ends(traffic, symbolic, _inside(nest, outermost, machine, symbolic), machine)
    return traffic


def placed_work(
    nest: LoopNest,
    machine: Machine,
    sizes: Mapping[str, int],
    hierarchy: Hierarchy,
    stores: StoreMode,
    options: SimulationOptions,
) -> Work:
    """The nest as a program, its arrays placed in memory."""
    values = indirect_values(nest, options.indirect, options.seed)
    numeric = numeric_nest(nest, sizes, machine.line_bytes, stores, values)
    return Work(numeric, program_of(numeric, place_arrays(numeric, hierarchy, options)))


def _traffic(
    work: Work,
    machine: Machine,
    found: Sample | None,
    cores: int,
    stores: StoreMode,
    notes: tuple[Note, ...],
    symbolic: Traffic | None,
) -> Traffic:
    """Counts as a `Traffic`."""
    numeric, nest = work.nest, work.nest.nest
    whole = unit_of_program(work)
    unit = whole.iterations
    executions = [work.bodies[each.depth] / work.iterations for each in work.program.references]
    rates = found.rates if found else rates_of(Simulator(hierarchy_of(machine)).counters())
    paths = simulated_paths(machine, numeric, rates, unit)
    rows = access_rows(numeric, rates, executions, unit, machine.residence_levels, symbolic)
    paths, rows, evasion = _evaded(numeric, machine, paths, rows, cores, stores)
    loads, saved = (_register_bytes(numeric, executions, kind) * float(unit) for kind in ("read", "write"))
    flops = nest.operations.flops_per_iteration
    return Traffic(
        method="simulation",
        iterations_per_unit=float(unit),
        unit_stream=whole.reference,
        iterations_per_sweep=work.iterations,
        updates_per_iteration=updates_per_iteration(nest),
        flops_per_iteration=flops,
        register_loads_bytes=loads,
        register_stores_bytes=saved,
        paths=paths,
        accesses=rows,
        conditions=(),
        arithmetic_intensity=arithmetic_intensity(flops * float(unit), loads + saved, paths, machine),
        cores=cores,
        safety=1.0,
        sizes=numeric.sizes,
        notes=(*notes, *whole.notes, *evasion_notes(machine, evasion)),
        levels=simulated_levels(machine, numeric, rates, executions, unit),
        stores=stores,
        evasion=evasion,
        sampling=found.sampling if found else None,
    )


def unit_of_program(work: Work) -> UnitOfWork:
    """The unit of work of a program; see `conditions.paths`."""
    runs = work.bodies[-1] > work.bodies[-2]  # a loop of one iteration moves nothing
    moving = [
        (abs(each.reference.address.coefficients[-1] * work.nest.loops[-1].step), each.access)
        for each in work.nest.references
        if runs and each.reference.depth == len(work.nest.loops) and each.reference.address.coefficients[-1]
    ]
    return fastest_line(moving, work.nest.line_bytes)


def _symbolic(
    nest: LoopNest, machine: Machine, sizes: Mapping[str, int], cores: int, stores: StoreMode
) -> Traffic | None:
    """Layer conditions, whose reasons explain what is counted; None where they do not apply."""
    from kernmodel.traffic.conditions.layer_conditions import layer_conditions

    try:
        return layer_conditions(nest, machine, sizes, cores=cores, stores=stores)
    except UnsupportedKernelError:
        return None


def _inside(nest: LoopNest, outermost: Set[str], machine: Machine, part: Traffic) -> Traffic:
    """The traffic of a part by layer conditions but for the rows beyond its ends in the outermost loop; those in others
    windows pass time and again."""
    from kernmodel.traffic.conditions.halos import counts_beyond
    from kernmodel.traffic.conditions.layer_conditions import layer_conditions
    from kernmodel.traffic.conditions.streams import at_sizes
    from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest

    inner = replace(nest, divided=nest.divided - outermost)
    sized = at_sizes(symbolic_nest(inner), part.sizes, machine.line_bytes)
    if not counts_beyond(sized, outermost):
        return part
    return layer_conditions(sized, machine, part.sizes, cores=part.cores, stores=part.stores)


def _evaded(
    nest: NumericNest,
    machine: Machine,
    paths: tuple[PathTraffic, ...],
    rows: tuple[AccessTraffic, ...],
    cores: int,
    stores: StoreMode,
) -> tuple[tuple[PathTraffic, ...], tuple[AccessTraffic, ...], Evasion | None]:
    """The traffic without the write-allocates that are evaded, and which share that is of all."""
    evasion, whole = evasion_of(machine, cores, stores), evadable(nest)
    memory = machine.residence_levels[-1]
    allocated = sum(rows[number].served_by[memory] for number in stored(nest))
    saved = sum(rows[number].served_by[memory] for number in whole)
    if evasion is None or not saved:
        return paths, rows, None
    limited = limited_evasion(evasion, saved / allocated)
    return apply_evasion(paths, limited), with_evasion(rows, whole, evasion), limited


def _register_bytes(nest: NumericNest, executions: Sequence[float], kind: str) -> float:
    """Bytes per inner iteration of load or store instructions, by the source's references."""
    return sum(
        nest.nest.bytes_of(each.access) * each.access.executed * executed
        for each, executed in zip(nest.references, executions, strict=True)
        if each.access.kind == kind
    )


def _streamed_note(nest: NumericNest) -> tuple[Note, ...]:
    """Streaming stores to arrays that are read too: scalar code, which nobody would stream from."""
    read = {each.access.array for each in nest.references if each.reference.kind == "load"}
    mixed = [
        each.access.text for each in nest.references if each.reference.kind == "stream" and each.access.array in read
    ]
    if not mixed:
        return ()
    names = ", ".join(dict.fromkeys(mixed))
    text = (
        f"{names}: read too, and element by element: each streaming store takes the line out of the caches before its "
        "next element is read, unlike in vectorised code, which reads whole lines first"
    )
    return (Note("streamed-and-read", text),)


def _vector_notes(work: Work, lanes: int) -> tuple[Note, ...]:
    """That accesses are those of vector code."""
    if in_vectors(work, lanes) is work:
        return ()
    text = f"caches are simulated as vector code asks them: an access touches the elements of {lanes} iterations"
    return (Note("vector-accesses", text, "assumption"),)


def _sampling_notes(found: Sample | None, hierarchy: Hierarchy) -> tuple[Note, ...]:
    """What the length of the simulation leaves uncertain."""
    if found is None:
        return ()
    notes = []
    if not found.sampling.settled:
        notes.append(Note("not-settled", f"the counts have not settled: {found.sampling.reason}"))
    others = dict.fromkeys(spec.policy for spec in hierarchy.levels if spec.policy in ("FIFO", "MRU"))
    if found.from_history and others:
        text = f"under {' and '.join(others)} replacement, caches also hold what was not touched last"
        notes.append(Note("history", f"{text}; how much of it is not known"))
    return tuple(notes)
