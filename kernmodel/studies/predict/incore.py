"""The in-core analysis of code in every form that a user may give, on one core or many, at one alignment or all."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import AssemblyError, InstructionTableError, KernmodelError, Note, UsageError
from kernmodel.incore.answer.components import row_of
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings, analyse_block, predictions_at
from kernmodel.incore.model import InCore
from kernmodel.incore.tables.core_parameters import Parameters
from kernmodel.incore.tables.parameters import canonical, known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import base_of
from kernmodel.isa import DEFAULT, at_vectors, isa_of, split_rows, split_vectors, with_rows
from kernmodel.studies.predict.placement import array_notes, placement
from kernmodel.studies.predict.request import CodeOrigin, CodeRequest, InCoreAnswer, KernelRequest, Loop, Point
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.dependences.graph import Graph
    from kernmodel.isa.model import Listing
    from kernmodel.machine.model import Machine

ALL = "all"


@dataclass(frozen=True, slots=True)
class Target:
    """What the code runs on: the core of a machine, or a microarchitecture; whether it is named, so that
    code that it does not execute is an error; its parameters where they were read."""

    microarchitecture: str
    machine: Machine | None = None
    any_code: bool = True
    parameters: Parameters | None = field(default=None, compare=False)

    def core(self, settings: Settings) -> Core:
        """The core for blocks that are analysed by these settings.

        Raises:
            InstructionTableError: it is not known, or a file of it is malformed.
        """
        return Core.of(self.parameters or load_parameters(self.microarchitecture), settings)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for one loop on one core, or the reason why there is none.

    Attributes:
        microarchitecture: name of the core.
        loop: the code.
        answer: None where `error` says why.
    """

    microarchitecture: str
    loop: AssemblyLoop
    answer: InCoreAnswer | None
    error: str | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        """Those of the answer."""
        return self.answer.notes if self.answer is not None else ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """Offsets of the first instruction (modulo 64) at which the block takes the same time.

    Attributes:
        cycles: the prediction per pass.
        offsets: ascending.
        answer: the analysis at the first of them.
    """

    cycles: float
    offsets: tuple[int, ...]
    answer: InCore = field(compare=False)


def machine_target(name: str) -> Target:
    """The core of a machine, by its file or carried name.

    Raises:
        MachineError: no such machine, or a malformed file.
    """
    from kernmodel.machine.load import load_machine

    machine = load_machine(name)
    return Target(machine.core.microarchitecture, machine)


def named_targets(names: str) -> tuple[Target, ...]:
    """The cores that a list of names separated by commas means, each once; "all" is every known one. Of several, those
    whose table a file of rows is for take it.

    Raises:
        InstructionTableError: a name is not known, or rows cannot be read.
        UsageError: no name, or rows that are for none of several cores.
    """
    given = [name.strip() for name in names.split(",")]
    if not all(given):
        raise UsageError(
            f"a name is missing in {names!r}",
            where="--uarch",
            todo="write --uarch SKL, or --uarch all",
        )
    bare, rows = zip(*(_without_rows(name) for name in given), strict=True)
    every = any(split_vectors(name)[0].lower() == ALL for name in bare)
    wanted = list(_every_core(split_vectors(bare[0])[1])) if every else given
    if len(wanted) > 1 and len(set(rows)) == 1 and rows[0] is not None:
        wanted = _with_their_rows(wanted if every else bare, rows[0])
    read = ((name, load_parameters(name)) for name in wanted)
    found = {canonical(name, parameters): parameters for name, parameters in read}
    return tuple(Target(name, any_code=not every, parameters=parameters) for name, parameters in found.items())


def _without_rows(name: str) -> tuple[str, str | None]:
    """The name of a core without a file of rows, and that file."""
    plain, bits = split_vectors(name)
    core, rows = split_rows(plain)
    return core if bits is None else at_vectors(core, bits), rows


def _with_their_rows(names: Sequence[str], rows: str) -> list[str]:
    """The names, with the file of rows behind those whose table it is for."""
    table = base_of(Path(rows))
    found = [with_rows(name, rows) if load_parameters(name).table == table else name for name in names]
    if found == list(names):
        what = f"holds rows for {table}, which is the table of none of these cores" if table else "is no file of rows"
        raise UsageError(f"{rows} {what}", where="--instructions", todo="name the core whose rows they are")
    return found


def _every_core(bits: int | None) -> Iterator[str]:
    """The known cores; those that have several lengths of vectors with the one that is asked for, else with each of
    them and with none, for code that does not depend on it."""
    for name in known_microarchitectures():
        lengths = load_parameters(name).vector_bits
        several = len(lengths) > 1
        if bits is None or not lengths:
            yield name
            yield from (at_vectors(name, int(length)) for length in lengths if several)
        elif str(bits) in lengths:
            yield at_vectors(name, bits) if several else name


def _has_a_needless_length(parameters: Parameters, loops: Container[str]) -> bool:
    """Whether the length of vectors was chosen for a core that could be asked without, since the code has none."""
    bare = isa_of(parameters.isa).with_vectors(0) if parameters.widest_isa else None
    return bare is not None and bare[0] in loops


def analyse_one(source: Loop, target: Target, settings: Settings) -> InCoreAnswer:
    """The analysis of one block on one core.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    core = target.core(settings)
    return _answer(read_loops(source, core.parameters.isa)[0], source, target, core, settings)


def analyse_kernel(kernel: KernelRequest, code: CodeRequest, settings: Settings) -> InCoreAnswer:
    """The analysis of the compiled loop of a C kernel on the core of its machine.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    from kernmodel.studies.predict.stages import Stages

    stages, point = Stages(), Point(kernel, code)
    machine = stages.machine(kernel.machine)
    found = stages.code(point, machine)
    target = Target(machine.core.microarchitecture, machine)
    core = target.core(settings)
    answer = _answer(found.loop, Loop(found.loop.label), target, core, settings)
    return replace(answer, origin=found.origin, notes=(*stages.nest(kernel).notes, *answer.notes))


def analyse_many(source: Loop, targets: Sequence[Target], settings: Settings) -> Iterator[Outcome]:
    """The analysis of every loop that the source means on each of several cores, as they come.

    What is wrong with a loop on one core (an extension that it lacks) stands in the outcome.

    Raises:
        KernmodelError: the code cannot be read, or a core is not known.
    """
    cores = [target.core(settings) for target in targets]
    loops = _loops_for(source, tuple(dict.fromkeys(core.parameters.isa for core in cores)))
    for target, core in zip(targets, cores, strict=True):
        own = loops.get(core.parameters.isa)
        if not target.any_code and (own is None or _has_a_needless_length(core.parameters, loops)):
            continue
        for loop in own or next(iter(loops.values())):
            yield _outcome(loop, source, target, core, settings)


def _loops_for(source: Loop, names: tuple[str, ...]) -> dict[str, tuple[AssemblyLoop, ...]]:
    """The loops by each of these instruction sets that can read the code; where none can, by the one that it is of.

    Raises:
        KernmodelError: the code cannot be read.
    """
    if len(names) == 1:
        return {names[0]: tuple(read_loops(source, names[0]))}
    told: KernmodelError | None = None
    try:
        plain = tuple(read_loops(source, None))
        family = isa_of(plain[0].isa).family
        found = {plain[0].isa: plain}
    except AssemblyError as error:  # it may need the length of a core's vectors
        family, found, told = "", {}, error
    for name in names:
        if name in found or (family and isa_of(name).family != family):
            continue
        with suppress(AssemblyError):
            found[name] = tuple(read_loops(source, name))
    if told is not None and not found:
        raise told
    return found


def _outcome(loop: AssemblyLoop, source: Loop, target: Target, core: Core, settings: Settings) -> Outcome:
    name = target.microarchitecture if target.machine is None else core.parameters.name
    try:
        return Outcome(name, loop, _answer(loop, source, target, core, settings))
    except InstructionTableError as error:
        return Outcome(name, loop, None, error.what)


def _answer(loop: AssemblyLoop, source: Loop, target: Target, core: Core, settings: Settings) -> InCoreAnswer:
    if target.machine is not None:
        from kernmodel.studies.predict.machine_check import check_core

        check_core(target.machine, core.parameters)
    core = core.remembering()
    incore = analyse_block(loop, core, settings)
    origin = CodeOrigin(source.file or source.title, None, None, (), ())
    notes = (*loop.notes, *incore.notes, *array_notes(loop, core, settings, incore.prediction))
    placed = placement(loop, core, settings, incore.prediction)
    return InCoreAnswer(target.machine, core.parameters, loop, incore, origin, notes, placed)


def alignments(answer: InCoreAnswer, settings: Settings) -> tuple[Alignment, ...]:
    """The offsets 0 to 63 of the first instruction, grouped by the prediction, the fastest first."""
    core = Core.of(answer.parameters, settings)
    groups: dict[float, list[int]] = {}
    for offset, cycles in enumerate(predictions_at(answer.loop, core, settings, range(CODE_ALIGNMENT))):
        groups.setdefault(round(cycles, 4), []).append(offset)
    return tuple(
        Alignment(cycles, tuple(offsets), analyse_block(answer.loop, core, replace(settings, offset=offsets[0])))
        for cycles, offsets in sorted(groups.items())
    )


def explanation(answer: InCoreAnswer, settings: Settings) -> Explanation:
    """Why the block takes as long as it does, and what would help."""
    from kernmodel.incore.answer.explain import explain

    return explain(answer.incore, Core.of(answer.parameters, settings), settings.places)


def dependencies(answer: InCoreAnswer, settings: Settings) -> Graph:
    """The dependency graph behind an answer."""
    from kernmodel.incore.answer.components import dependency_graph

    table = Core.of(answer.parameters, settings).table
    instructions = answer.loop.instructions
    rows = [row_of(instruction, table) for instruction in instructions]
    syntax: Literal["att", "intel"] = "att" if answer.loop.syntax == "att" else "intel"
    return dependency_graph(instructions, rows, answer.parameters, syntax, memory=settings.memory)


def read_loops(source: Loop, isa_name: str | None = None) -> tuple[AssemblyLoop, ...]:
    """The loops that a source means: one, or with `all_loops` every innermost one.

    All is to be of instruction set `isa_name`; where that is None, files say of which they are, and bytes are taken to
    be of the default one.

    Raises:
        AssemblyError: the code cannot be read, or the loop not be found.
        UsageError: choices that do not fit together.
    """
    source.check()
    _check_choices(source)
    from kernmodel.code.select import select_without_source, with_iterations

    if source.hex_digits is not None or source.raw or source.addresses is not None:
        return (with_iterations(_block(source, isa_name or DEFAULT), source.iterations_per_pass),)
    from kernmodel.code.blocks import innermost_loops, privilege_notes
    from kernmodel.code.markers import marked_region

    listing, text = _listing(source, isa_name)
    if source.all_loops:
        return innermost_loops(listing)
    by_hand = source.loop is not None or source.lines is not None
    region = None if by_hand else marked_region(listing, text, source.region)
    loop = select_without_source(listing, loop=source.loop, lines=source.lines, region=region)
    loop = with_iterations(loop, source.iterations_per_pass)
    privileged = privilege_notes(loop.instructions, loop.file)
    return (replace(loop, notes=(*loop.notes, *privileged)) if privileged else loop,)


def _check_choices(source: Loop) -> None:
    """Refuse choices of which one would be passed over.

    Raises:
        UsageError: names two of them.
    """
    bytes_only = {"--hex": source.hex_digits is not None, "--raw": source.raw}
    places = {
        "--function": source.function,
        "--range": source.addresses,
        "--loop": source.loop,
        "--lines": source.lines,
        "--region": source.region,
        "--all-loops": source.all_loops or None,
        "--syntax": source.syntax,
    }
    chosen = [name for name, value in places.items() if value is not None]
    for name in (name for name, given in bytes_only.items() if given):
        if chosen:
            what = "takes all bytes as one block"
            raise UsageError(what, where=name, todo=f"leave out {chosen[0]}")
    fitting = ({"--function", "--all-loops"}, {"--function", "--loop"}, {"--function", "--region"})
    if source.all_loops and source.iterations_per_pass is not None:
        raise UsageError("is said of one loop", where="--iterations-per-pass", todo="leave out --all-loops")
    apart = [name for name in chosen if name != "--syntax"]
    if len(apart) > 1 and set(apart) not in fitting:
        raise UsageError("both choose the code", where=f"{apart[0]} and {apart[1]}", todo="give one of them")


def _block(source: Loop, isa_name: str) -> AssemblyLoop:
    """The block of hex digits, of raw bytes, or at given addresses."""
    from kernmodel.code.blocks import block_in_range, block_of_bytes, parse_hex, read_bytes, refuse_archive

    if source.hex_digits is not None:
        return block_of_bytes(parse_hex(source.hex_digits, "--hex"), file="--hex", isa_name=isa_name)
    path = source.file or "-"
    if source.addresses is not None:
        refuse_archive(path)
        return block_in_range(path, *source.addresses, isa_name)
    code, file = read_bytes(path)
    return block_of_bytes(code, file=file, isa_name=isa_name)


def _listing(source: Loop, isa_name: str | None) -> tuple[Listing, str]:
    """The decoded code of the file, and its text ("" for an ELF file)."""
    from kernmodel.code.blocks import refuse_archive
    from kernmodel.code.listing import read_file

    path = source.file or "-"
    refuse_archive(path)
    try:
        listing, text = read_file(path, syntax=source.syntax, function=source.function, isa_name=isa_name)
    except AssemblyError as error:
        raise (_stripped(path, error) if source.function is not None else error) from error
    if text and source.function is not None:
        todo = "use --lines, --loop or markers to choose code in a listing"
        raise UsageError("chooses a function of an object or executable", where="--function", todo=todo)
    return listing, text


def _stripped(path: str, error: AssemblyError) -> AssemblyError:
    """The error for a function that a file does not have: a file without any function's name is told apart."""
    from kernmodel.code.blocks import read_bytes
    from kernmodel.isa.elf import SYMBOL_FUNCTION, is_elf, read_elf

    data, file = (b"", path) if path == "-" else read_bytes(path)
    if not is_elf(data):
        return error
    symbols = read_elf(data, file).symbols
    if any(symbol.kind == SYMBOL_FUNCTION and symbol.section is not None for symbol in symbols):
        return error
    todo = "give the addresses of the loop with --range, or the file before it was stripped"
    return AssemblyError("is stripped: it names no function", where=file, todo=todo)
