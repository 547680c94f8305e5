"""The stages from a point to its answer, each done once for what it truly depends on.

`Stages` remembers within one process: machines by file and changes, nests by kernel and what decides the source,
prepared traffic by nest, compiled loops by code, in-core analyses by loop and core, traffic by sizes and by what of the
machine it depends on (caches, not clock or bandwidths). Memories are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeVar

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import KernmodelError, Note
from kernmodel.incore.dependences.line_splits import AT_LINES, Places, costs_of_lines
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.machine.cores import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.calls import call_work, with_call_notes
from kernmodel.studies.predict.compiled import (
    CompiledListing,
    chosen_compiler,
    find_kernel_loop,
    read_compiled,
    read_given,
    refuse_description,
    refuse_misplaced,
    start_early,
    start_late,
)
from kernmodel.studies.predict.division import division_notes, scale_divided, spread_of
from kernmodel.studies.predict.machine_check import core_parameters, left_out_notes, with_core_figures
from kernmodel.studies.predict.memo import Memo
from kernmodel.studies.predict.nests import read_nest, sizes_at
from kernmodel.studies.predict.order import jam_of, order_notes
from kernmodel.studies.predict.request import Blocks, Change, CodeOrigin, CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.traffic import TrafficMethod, is_simulated, traffic_key, traffic_method
from kernmodel.traffic.model import SYMBOLIC
from kernmodel.uncertainty import Interval, union
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.code.compile import Compilation, FoundCompiler
    from kernmodel.incore.answer.outside import OutsideCycles
    from kernmodel.incore.engine.analyser import Analyser
    from kernmodel.incore.model import InCore, Parameters
    from kernmodel.machine.changes.figures import MachineFigures
    from kernmodel.machine.model import Machine
    from kernmodel.models.calls import CallWork
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.models.outside import OutsideWork
    from kernmodel.models.streams import Streams
    from kernmodel.source.model import LoopNest
    from kernmodel.source.nest.jammed import Jam
    from kernmodel.studies.predict.arrays import ArrayPlaces
    from kernmodel.studies.predict.placement import Placement
    from kernmodel.studies.predict.row_starts import Origin
    from kernmodel.studies.predict.together import Together
    from kernmodel.traffic.model import Traffic
    from kernmodel.traffic.options import StoreMode

_Found = TypeVar("_Found", "Traffic", "Traffic | None")
_LARGE, _FEW, _SOME, _MANY = 4, 64, 256, 1024
"""How much is remembered: what is large, values that take long to make or much memory, those that points have by where
their rows begin in cache lines, and small ones."""


@dataclass(frozen=True, slots=True)
class Code:
    """The loop that executes a kernel.

    Attributes:
        key: what it depends on; loops with the same key are the same.
    """

    key: Hashable
    loop: AssemblyLoop
    origin: CodeOrigin


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the arrays of a loop lie, and where they are the least and the most in its way; no `ends` if all are alike.
    `places` is None where it makes no difference to the core, or is left out; `by_size` says that rows begin where they
    do at the sizes of the point, not at those that the code was compiled with."""

    places: ArrayPlaces | None
    ends: tuple[Places, ...] = ()
    by_size: bool = False

    @property
    def taken(self) -> Places | None:
        """Where the prediction takes them to lie."""
        return self.places.taken if self.places else None


@dataclass(frozen=True, slots=True)
class _Case:
    """A point with what holds for it: `key` is what its traffic depends on besides machine, cores and stores, `sizes`
    are checked, `shown` those for reports, `at` is the point that its code was compiled for. Of a part that has the
    traffic of the nest but for its ends, `whole` is the case of that."""

    point: Point
    at: Point
    key: Hashable
    sizes: Mapping[str, int]
    shown: Mapping[str, int]
    method: TrafficMethod
    whole: _Case | None = None


class Stages:
    """Evaluates points one after the other, with a memory of everything that several points share."""

    def __init__(self) -> None:
        self._figures: Memo[MachineFigures] = Memo(_FEW)
        self._machines: Memo[Machine] = Memo(_FEW)
        self._cores: Memo[tuple[Parameters, InstructionTable]] = Memo(_FEW)
        self._compilers: Memo[tuple[FoundCompiler, tuple[str, ...]]] = Memo(_FEW)
        self._nests: Memo[LoopNest] = Memo(_FEW)
        self._methods: Memo[TrafficMethod] = Memo(_FEW)
        self._sizes: Memo[tuple[dict[str, int], dict[str, int]]] = Memo(_MANY)
        self._traffics: Memo[Traffic] = Memo(_MANY)
        self._symbolic: Memo[Traffic | None] = Memo(_MANY)
        self._clear: Memo[bool] = Memo(_MANY)
        self._codes: Memo[Code] = Memo(_FEW)
        self._listings: Memo[CompiledListing] = Memo(_LARGE)
        self._origins: Memo[tuple[Origin, ...]] = Memo(_FEW)
        self._layouts: Memo[_Layout] = Memo(_SOME)
        self._incores: Memo[InCore] = Memo(_SOME)
        self._analysers: Memo[Analyser] = Memo(_LARGE)
        self._arounds: Memo[OutsideCycles] = Memo(_FEW)
        self._outsides: Memo[tuple[OutsideWork, tuple[Note, ...]]] = Memo(_SOME)
        self._streams: Memo[Streams] = Memo(_FEW)
        self._placements: Memo[Placement] = Memo(_SOME)
        self._parts: Memo[tuple[TrafficMethod, tuple[Note, ...]]] = Memo(_SOME)
        self._divisions: Memo[tuple[Note, ...]] = Memo(_FEW)
        self._helds: Memo[float] = Memo(_SOME)
        self._onces: Memo[Note] = Memo(_FEW)
        self._started: dict[Hashable, Compilation] = {}
        self._among: dict[Hashable, tuple[Together, int] | None] = {}

    def answer(
        self,
        point: Point,
        scaling_cores: Sequence[int] = (),
        *,
        at: Point | None = None,
        code: Code | None = None,
        bounded: bool = True,
    ) -> EcmAnswer:
        """The ECM prediction of one point, equal to `predict.predict_ecm` with the same request.

        Args:
            scaling_cores: core counts over which the answer is scaled.
            at: a point with the sizes and block sizes to read and compile the kernel with, for points that share their
                code; None: those of the point itself.
            code: the code of `at` where it is known already.
            bounded: whether to find between which values T_ECM lies over all places that arrays and code may have.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        place = at or point
        machine = self._checked_machine(point, scaling_cores)

        def meanwhile() -> None:
            # simulations wait for the code, which tells what its accesses are
            if not is_simulated(point.kernel):
                case = self._case(point, place, machine)
                case.method.symbolic(case.sizes, point.kernel.cores, case.method.stores())

        try:
            code = code or self.code(place, machine, meanwhile)
        except KernmodelError:
            # what is wrong with the point itself comes first, whether the code was tried before or not
            self._first_traffic(point, place, machine)
            raise
        return self._answer(self._case(point, place, machine), code, scaling_cores, shared=at, bounded=bounded)

    def conditions(self, point: Point) -> Traffic | None:
        """The traffic of a point by layer conditions, whatever speaks against them; None where they do not apply.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        part, code, stores = self._asked(point)
        cores = point.kernel.cores
        return self._in_code_order(part, _jam(part, code.loop), lambda one: self._by_conditions(one, stores, cores))

    def settled_traffic(self, point: Point, *, simulated: bool) -> Traffic | None:
        """The same where no simulation has a part in it (`TrafficMethod.is_undoubted`), or one agrees with it; else
        None.

        Args:
            simulated: whether a simulation is asked.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        part, code, stores = self._asked(point)
        cores, lanes = point.kernel.cores, lanes_of(code.loop, part.method.nest)

        def settled(case: _Case) -> Traffic | None:
            known = self._unsimulated(case, stores, cores, lanes)
            if known is not None or not simulated:
                return known
            found = self._placed_traffic(case, stores, cores, lanes)
            agrees = found.method == SYMBOLIC and not any(any(path.intervals.values()) for path in found.paths)
            return found if agrees else None

        return self._in_code_order(part, _jam(part, code.loop), settled)

    def _asked(self, point: Point) -> tuple[_Case, Code, StoreMode]:
        """The case of one core's part, and the code and stores of a point."""
        machine, cores = self._checked_machine(point, ()), point.kernel.cores
        case, code = self._case(point, point, machine), self.code(point, machine)
        stores, _ = _stores_of(code.loop, case.method)
        return self._of_core(case, stores, cores, point.kernel.parts or cores)[0], code, stores

    def check(self, point: Point, scaling_cores: Sequence[int] = (), *, at: Point | None = None) -> None:
        """Raise what is wrong with a point apart from its code.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        machine = self._checked_machine(point, scaling_cores)
        self._first_traffic(point, at or point, machine)

    def _checked_machine(self, point: Point, scaling_cores: Sequence[int]) -> Machine:
        machine = self.check_cores(point, scaling_cores)
        self._core(machine)
        return machine

    def check_cores(self, point: Point, scaling_cores: Sequence[int]) -> Machine:
        """The machine of a point, which has so many cores.

        Raises:
            UsageError: it has not; KernmodelError: there is no such machine.
        """
        machine = self.machine(point.kernel.machine, point.changes)
        for cores in scaling_cores:
            check_cores(machine, cores)
        return machine

    def prepare(self, point: Point, at: Point) -> Code:
        """Everything of a point that its sizes do not decide, to learn of errors that hold for many; its code.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        machine = self.machine(point.kernel.machine, point.changes)
        self._core(machine)
        code = self.code(at, machine)
        self._method(point.kernel, at.kernel, point.blocks, machine)
        self._incore(code, machine, point.code)
        return code

    def machine(self, name: str, changes: tuple[Change, ...] = ()) -> Machine:
        """The machine of this name or path, with the changes applied.

        Raises:
            MachineError: the file is missing or malformed; UsageError: a change that cannot be made.
        """
        return self._machines.get((name, changes), lambda: self._with_core_figures(self._changed(name, changes)))

    def _with_core_figures(self, machine: Machine) -> Machine:
        try:
            return machine if machine.levels[0].kept else with_core_figures(machine, self._core(machine)[0])
        except KernmodelError:  # which is told where the core is asked for
            return machine

    def _changed(self, name: str, changes: tuple[Change, ...]) -> Machine:
        if not changes:
            return load_machine(name)
        from kernmodel.machine.changes.figures import MachineFigures

        figures = self._figures.get(name, lambda: MachineFigures.open(name))
        return figures.machine((change.path, change.value) for change in changes)

    def streams(self, name: str) -> Streams:
        """What the streams of one core in the file of this machine imply, before any change of its figures.

        Raises:
            MachineError: the file is missing or malformed.
        """
        from kernmodel.models.streams import streams_of

        def find() -> Streams:
            machine = self.machine(name)
            return streams_of(machine, self._core(machine)[0].misses)

        return self._streams.get(name, find)

    def nest(self, kernel: KernelRequest, blocks: Blocks = ()) -> LoopNest:
        """The nest that is asked for, read with the sizes of the request, and blocked.

        Raises:
            KernmodelError: it cannot be read, or not be blocked so.
        """
        return self._nests.get(nest_key(kernel, blocks), lambda: self._read(kernel, blocks))

    def know(self, kernel: KernelRequest, nest: LoopNest, among: tuple[Together, int] | None = None) -> None:
        """Take a nest that has been read with others of its file for the one that is asked for so.

        Args:
            among: the nests that are executed with it, and its number among them.
        """
        self._nests.get(nest_key(kernel), lambda: nest)
        self._among[nest_key(kernel)] = among

    def _read(self, kernel: KernelRequest, blocks: Blocks) -> LoopNest:
        if not blocks:
            return read_nest(kernel)
        from kernmodel.source.nest.tiling import tile

        return tile(self.nest(kernel), dict(blocks))

    def start(self, stack: ExitStack, at: Point) -> None:
        """Start the compiler for the code of this point ahead, where the text can be compiled as it stands; `stack`
        stops it.

        Raises:
            KernmodelError: the machine, the kernel or the compiler is missing.
        """
        machine = self.machine(at.kernel.machine, at.changes)
        pending = _start(stack, at, machine)
        if pending is not None:
            self._started[self._code_key(at, machine)] = pending

    def code(self, at: Point, machine: Machine, meanwhile: Callable[[], None] = lambda: None) -> Code:
        """The loop of the kernel at these sizes and block sizes.

        Args:
            machine: for its compilers.
            meanwhile: called while the compiler runs, if it does; errors about its input are left to be found again.

        Raises:
            KernmodelError: the compiler is missing or fails, or the loop is not found in what it made; or arrays cannot
                begin where they are said to.
        """
        refuse_description(at.kernel, at.code)
        key = self._code_key(at, machine)
        found = self._codes.get(key, lambda: self._compile(key, at, machine, meanwhile))
        # here, since not every question goes on to ask where arrays lie, and points with other places share the code
        refuse_misplaced(at.code.data_align, dict(at.code.array_offsets), self.nest(at.kernel, at.blocks))
        return found

    def _code_key(self, at: Point, machine: Machine) -> Hashable:
        """What the loop depends on; machines with the same compiler and flags share it."""
        code, nest = at.code, nest_key(at.kernel, at.blocks)
        if code.asm is not None:
            return nest, code.by_hand, code.asm
        asked = machine.compilers, code.compiler, code.flags
        compiler, flags = self._compilers.get(asked, lambda: chosen_compiler(machine, code))
        return nest, code.by_hand, compiler.command, flags

    def _compile(self, key: Hashable, at: Point, machine: Machine, meanwhile: Callable[[], None]) -> Code:
        shared = self._listing_key(at, machine)
        with ExitStack() as stack:
            pending = self._started.pop(key, None)
            if pending is None and shared not in self._listings:
                pending = _start(stack, at, machine)
            nest = self.nest(at.kernel, at.blocks)
            if pending is None and at.code.asm is None and shared not in self._listings:
                pending = start_late(stack, self._written(at), at.code, machine, at.kernel)
            with suppress(KernmodelError):
                meanwhile()
            sizes, _ = self.sizes(at, at)

            def read() -> CompiledListing:
                if pending is None:
                    return read_given(at.code, machine.isa)
                return read_compiled(pending.finish(), nest.file, machine.isa)

            compiled = self._listings.get(shared, read)
            return Code(key, find_kernel_loop(nest, sizes, at.code, compiled), compiled.origin)

    def _listing_key(self, at: Point, machine: Machine) -> Hashable:
        """What the decoded code depends on: the nests of one function, which is compiled as a whole, share it."""
        kernel = at.kernel
        if kernel.function is not None and not at.blocks:
            kernel = replace(kernel, nest=None if kernel.nest is None else 1)
        return self._code_key(replace(at, kernel=kernel), machine)

    def _written(self, at: Point) -> LoopNest:
        """The nest as its text is compiled: a blocked one is written out and read again."""
        kernel, nest = at.kernel, self.nest(at.kernel)
        if not at.blocks:
            return nest
        from kernmodel.source.emit.blocked_text import tiled_source
        from kernmodel.source.load import parse_kernel

        text = tiled_source(nest, dict(at.blocks))
        return parse_kernel(
            text, nest.file, kernel.defines, nest=kernel.nest, function=kernel.function, include=kernel.include
        )

    def sizes(self, point: Point, at: Point) -> tuple[dict[str, int], dict[str, int]]:
        """The checked sizes of a point whose nest is read with the sizes of `at`, and those for reports.

        Raises:
            SourceError: the nest cannot have them.
        """
        given, key = point.kernel.sizes, nest_key(at.kernel, point.blocks)
        return self._sizes.get((key, tuple(given.items())), lambda: sizes_at(self.nest(at.kernel, point.blocks), given))

    def _method(self, kernel: KernelRequest, at: KernelRequest, blocks: Blocks, machine: Machine) -> TrafficMethod:
        nest, key = self.nest(at, blocks), (nest_key(at, blocks), *method_key(kernel))
        method = self._methods.get(key, lambda: traffic_method(nest, machine, kernel))
        return replace(method, machine=machine, request=kernel, among=self._among.get(nest_key(at, blocks)))

    def _case(self, point: Point, at: Point, machine: Machine) -> _Case:
        kernel = point.kernel
        sizes, shown = self.sizes(point, at)
        method = self._method(kernel, at.kernel, point.blocks, machine)
        key = (nest_key(at.kernel, point.blocks), *method_key(kernel), kernel.safety, tuple(sizes.items()))
        return _Case(point, at, key, sizes, shown, method)

    def _of_core(self, case: _Case, stores: StoreMode, cores: int, parts: int) -> tuple[_Case, tuple[Note, ...]]:
        """The case of one of `parts` cores, of which so many are active in a ccNUMA domain, whose traffic is that of
        its part, and what is to be said of that. Textbooks know no parts."""
        point, method = case.point, case.method
        if parts == 1 or point.code.classic:
            return case, ()
        key = (case.key, parts, spread_of(method.nest, point.kernel.spread))

        def divided() -> tuple[TrafficMethod, tuple[Note, ...]]:
            given = replace(method, unblocked=self.nest(case.at.kernel))
            return given.of_core(case.sizes, cores, parts, stores, dict(point.blocks))

        found, notes = self._parts.get((key, traffic_key(method.machine), stores, cores), divided)
        if found.nest is method.nest and found.part is None:
            return case, notes
        part = found.part and replace(found.part, machine=method.machine, request=point.kernel)
        found = replace(found, machine=method.machine, request=point.kernel, part=part)
        return replace(case, key=key, method=found, whole=case if part else None), notes

    def _first_traffic(self, point: Point, at: Point, machine: Machine) -> None:
        case, cores = self._case(point, at, machine), point.kernel.cores
        stores = case.method.stores()
        self._traffic(self._of_core(case, stores, cores, point.kernel.parts or cores)[0], stores, cores)

    def _traffic(self, case: _Case, stores: StoreMode, cores: int) -> Traffic:
        method = case.method
        key = (case.key, traffic_key(method.machine), stores, cores)
        return self._traffics.get(key, lambda: method.traffic(case.sizes, cores, stores))

    def _vector_traffic(self, case: _Case, stores: StoreMode, cores: int, lanes: int) -> Traffic:
        """The traffic where simulated caches are asked for the elements of so many iterations at once."""
        method = case.method
        if lanes == 1:
            return self._traffic(case, stores, cores)
        key = ("lanes", lanes, case.key, traffic_key(method.machine), stores, cores)
        return self._traffics.get(key, lambda: method.traffic(case.sizes, cores, stores, lanes))

    def _placed_traffic(self, case: _Case, stores: StoreMode, cores: int, lanes: int) -> Traffic:
        """The traffic of caches that lose their lines little by little (`TrafficMethod.placed`)."""
        known = self._unsimulated(case, stores, cores, lanes)
        if known is not None:
            return known
        if case.whole is not None:
            whole = self._placed_traffic(case.whole, stores, cores, lanes)
            return self._with_ends(case, whole, stores, cores, lanes)
        method, found = case.method, self._vector_traffic(case, stores, cores, lanes)
        key = ("placed", lanes, case.key, case.point.kernel.pages, traffic_key(method.machine), stores, cores)
        return self._traffics.get(key, lambda: method.placed(found, case.sizes, cores, stores, lanes))

    def _unsimulated(self, case: _Case, stores: StoreMode, cores: int, lanes: int) -> Traffic | None:
        """The same where no simulation has a part in it (`TrafficMethod.is_undoubted`)."""
        known = self._by_conditions(case, stores, cores)
        whole = case.whole or case
        method, sizes = whole.method, whole.sizes
        inside = known if whole is case else self._by_conditions(whole, stores, cores)
        if inside is None:
            return None
        key = (whole.key, case.point.kernel.pages, traffic_key(method.machine), stores, cores)
        return known if self._clear.get(key, lambda: method.is_undoubted(inside, sizes, cores, stores, lanes)) else None

    def _by_conditions(self, case: _Case, stores: StoreMode, cores: int) -> Traffic | None:
        """The same by layer conditions, whatever speaks against them (`TrafficMethod.by_conditions`)."""
        if case.whole is not None:
            inside = self._by_conditions(case.whole, stores, cores)
            return inside and self._with_ends(case, inside, stores, cores)
        method = case.method
        key = (case.key, case.point.kernel.pages, traffic_key(method.machine), stores, cores)
        return self._symbolic.get(key, lambda: method.by_conditions(case.sizes, cores, stores))

    def _with_ends(self, case: _Case, whole: Traffic, stores: StoreMode, cores: int, lanes: int = 0) -> Traffic:
        """The traffic of a nest with what lies at the ends of its parts; `lanes` are 0 where nothing is simulated."""
        method = case.method
        key = ("ends", lanes, case.key, case.point.kernel.pages, traffic_key(method.machine), stores, cores)
        return self._traffics.get(key, lambda: method.with_ends(whole, case.sizes))

    def _moved(self, case: _Case, loop: AssemblyLoop, stores: StoreMode, cores: int) -> Traffic:
        """The traffic in the order in which the compiled loop executes the nest; the textbook model takes the
        source's."""
        if case.point.code.classic:
            return self._traffic(case, stores, cores)
        lanes, jam = lanes_of(loop, case.method.nest), _jam(case, loop)
        found = self._in_code_order(case, jam, lambda one: self._placed_traffic(one, stores, cores, lanes))
        return replace(found, notes=(*found.notes, *order_notes(loop, jam)))

    def _in_code_order(self, case: _Case, jam: Jam | None, find: Callable[[_Case], _Found]) -> _Found:
        """What is found of the nest as the compiled loop executes it, for iterations of the source; `jam` as `_jam`
        finds it."""
        from kernmodel.traffic.jammed import per_source_iteration

        whole, method = case.whole or case, case.method
        ordered = None if jam is None else whole.method.jammed(jam)
        if jam is None or ordered is None:
            return find(case)
        found = find(replace(whole, key=(whole.key, jam), method=ordered))
        if found is None:
            return found
        return method.with_ends(per_source_iteration(found, method.nest, case.sizes, jam), case.sizes)

    def _core(self, machine: Machine) -> tuple[Parameters, InstructionTable]:
        def read() -> tuple[Parameters, InstructionTable]:
            parameters = core_parameters(machine)
            return parameters, InstructionTable.open(parameters)

        return self._cores.get(_core_key(machine), read)

    def _analyser(self, machine: Machine) -> Analyser:
        """What remembers what the core of a machine makes of instructions."""
        from kernmodel.incore.engine.analyser import Analyser
        from kernmodel.incore.engine.modelled_core import modelled_core

        parameters, _ = self._core(machine)
        return self._analysers.get(_core_key(machine), lambda: Analyser(modelled_core(parameters)).keep())

    def _layout(self, case: _Case, code: Code) -> _Layout:
        """Where the arrays lie, at the sizes of the point, whatever sizes the code was compiled with.

        Points whose rows begin alike in cache lines share it, and the analyses of the core with it.
        """
        machine, request = case.method.machine, case.point.code
        parameters, _ = self._core(machine)
        if request.port_model == "even" or not (request.given_places or costs_of_lines(parameters)):
            return _Layout(None)
        if request.classic and not request.given_places:
            return _Layout(None)
        asked = parameters.name, request.port_model, request.align, request.data_align, request.array_offsets
        # cores and their parts make no difference
        key = code.key, case.key, machine.line_bytes, asked
        return self._layouts.get(key, lambda: self._layout_of_rows(case, code, asked))

    def _layout_of_rows(self, case: _Case, code: Code, asked: Hashable) -> _Layout:
        """The layout where that makes a difference, which points share whose rows begin alike in cache lines."""
        from kernmodel.studies.predict.arrays import array_places
        from kernmodel.studies.predict.page_places import page_starts
        from kernmodel.studies.predict.row_starts import at_sizes

        machine, request = case.method.machine, case.point.code
        parameters, _ = self._core(machine)
        offsets, nest, line = dict(request.array_offsets), case.method.nest, machine.line_bytes
        matched = self._matched(case, code)
        loop = replace(code.loop, streams=at_sizes(code.loop, matched, nest, case.sizes)) if matched else code.loop
        in_page = page_starts(loop, nest, case.sizes) if parameters.loads.aliased_stores and not offsets else {}
        key = code.key, line, asked, tuple(in_page.items()), _within_lines(loop, line)

        def find() -> _Layout:
            places = array_places(loop, nest, line, request.data_align, offsets, in_page=in_page)
            return _Layout(places, self._ends(code, machine, request, places), bool(matched))

        return self._layouts.get(key, find)

    def _matched(self, case: _Case, code: Code) -> tuple[Origin, ...]:
        """Which reference of the source each access of the code is, at the sizes that it was compiled with."""
        from kernmodel.studies.predict.row_starts import origins

        at = case.at

        def find() -> tuple[Origin, ...]:
            return origins(code.loop, self.nest(at.kernel, at.blocks), self.sizes(at, at)[0])

        return self._origins.get((code.key, nest_key(at.kernel, at.blocks)), find)

    def _ends(self, code: Code, machine: Machine, request: CodeRequest, places: ArrayPlaces) -> tuple[Places, ...]:
        """Where the arrays are the least and the most in the way; empty if all are alike."""
        from kernmodel.incore.core import Core, Settings, predictions_placed

        parameters, table = self._core(machine)
        settings = Settings(notion="loop", port_model=request.port_model, offset=request.align)
        core = Core.of(parameters, settings, table).remembering(self._analyser(machine))
        cycles = predictions_placed(code.loop, core, settings, places.others)
        found = sorted((one, number) for number, one in enumerate(cycles))
        if not found or found[0][0] == found[-1][0]:
            return ()
        return places.others[found[0][1]], places.others[found[-1][1]]

    def _incore(
        self,
        code: Code,
        machine: Machine,
        request: CodeRequest,
        places: Places | None = None,
        address: int | None = None,
    ) -> InCore:
        """The analysis with the arrays in these places, and with the code at an address modulo 64 (None: its own)."""
        from kernmodel.incore.answer.analyse import analyse
        from kernmodel.incore.core import Settings, offset_of
        from kernmodel.incore.engine.modelled_core import modelled_core

        parameters, table = self._core(machine)
        place, within = AT_LINES if places is None else places, request.classic and places is None
        offset = offset_of(code.loop, Settings(offset=request.align)) if address is None else address
        key = (code.key, parameters.name, request.port_model, within, offset, _key(place))

        def analysed() -> InCore:
            # textbooks know no loads across lines
            core = replace(modelled_core(parameters), splits={}) if within else self._analyser(machine)
            model = request.port_model
            return analyse(code.loop, parameters, table, port_model=model, offset=offset, places=place, model=core)

        return self._incores.get(key, analysed)

    def _held(self, case: _Case, code: Code, incore: InCore, traffic: Traffic, places: Places | None) -> float:
        """Cycles by which a pass takes longer since lines that the first cache writes back take the load pipes, where
        its own loads leave them no room there."""
        from kernmodel.incore.core import Core, Settings, predictions_placed
        from kernmodel.incore.engine.ports import group_bound

        machine, request = case.method.machine, case.point.code
        parameters, table = self._core(machine)
        pipeline = self._analyser(machine).core.pipeline
        share = (incore.iterations_per_pass or 1.0) / traffic.iterations_per_unit
        written = traffic.path(machine.paths[0].name).stores * share
        lines = pipeline.memory.lines if pipeline else None
        if request.port_model == "even" or not written or pipeline is None or lines is None or not lines.evictions:
            return 0.0
        pipes = tuple(sorted(pipeline.memory.load_ports[0]))
        busy = group_bound([use for row in incore.uses for use in row], pipes)
        if busy + written * lines.evictions / len(pipes) <= incore.prediction:
            return 0.0
        place = (places or AT_LINES)._replace(written_back=written)

        def find() -> float:
            settings = Settings(notion=incore.notion, port_model=request.port_model, offset=incore.offset)
            core = Core.of(parameters, settings, table).remembering(self._analyser(machine))
            return max(0.0, next(predictions_placed(code.loop, core, settings, [place])) - incore.prediction)

        return self._helds.get((code.key, parameters.name, incore.offset, _key(place), incore.prediction), find)

    def _placement(self, code: Code, machine: Machine, request: CodeRequest, places: Places | None) -> Placement:
        """What the address of the loop is worth, with its arrays in these places."""
        from kernmodel.incore.core import Core, Settings
        from kernmodel.studies.predict.placement import placement

        incore, place = self._incore(code, machine, request, places), places or AT_LINES
        settings = Settings(notion=incore.notion, port_model=request.port_model, offset=request.align, places=place)
        parameters, table = self._core(machine)

        def find() -> Placement:
            core = Core.of(parameters, settings, table).remembering(self._analyser(machine))
            return placement(code.loop, core, settings, incore.prediction)

        return self._placements.get((code.key, parameters.name, request.port_model, request.align, _key(place)), find)

    def _elsewhere(
        self, case: _Case, code: Code, layout: _Layout, predicted: Callable[[Places | None, int | None], EcmPrediction]
    ) -> Interval | None:
        """Between which values T_ECM lies over all places that arrays and code may have; None where that makes no
        difference.

        Args:
            predicted: with the arrays in these places, and with the code at an address modulo 64 (None: its own).
        """
        from kernmodel.models.ecm import interval_of
        from kernmodel.studies.predict.placement import CAUSE

        machine, request, taken = case.method.machine, case.point.code, layout.taken
        found = []
        if layout.places:
            moved = [predicted(place, None) for place in (taken, *layout.ends)]
            found.append(interval_of(moved, "addresses of the arrays", layout.places.assumed))
        for place in () if request.classic else (taken, *layout.ends):  # textbooks know no addresses of code
            placed = self._placement(code, machine, request, place)
            if placed.interval:
                moved = [predicted(place, address) for address in placed.ends]
                found.append(interval_of(moved, CAUSE, placed.interval.assumed))
        return union((*found, predicted(taken, None).cycles_interval))

    def _placed_notes(
        self, case: _Case, code: Code, layout: _Layout, predicted: Callable[[Places | None, int | None], EcmPrediction]
    ) -> tuple[Note, ...]:
        """What the address of the code is worth; textbooks know none."""
        from kernmodel.studies.predict.placement import placement_notes

        machine, request, taken = case.method.machine, case.point.code, layout.taken
        if request.classic:
            return ()
        placed = self._placement(code, machine, request, taken)
        return placement_notes(placed, code.loop.file, lambda address: predicted(taken, address).cycles)

    def _outside(
        self, case: _Case, code: Code, incore: InCore, traffic: Traffic
    ) -> tuple[OutsideWork, tuple[Note, ...]]:
        """What is executed outside the innermost loop at the sizes of a point, and what is not known of it."""
        from kernmodel.incore.answer.outside import outside_cycles
        from kernmodel.studies.predict.arrays import places_around
        from kernmodel.studies.predict.outside import outside_notes, outside_work

        method, request = case.method, case.point.code
        parameters, table = self._core(method.machine)
        asked = method.machine.line_bytes, request.data_align, request.array_offsets
        key = (code.key, parameters.name, request.port_model, asked)
        analyser = self._analyser(method.machine)

        def cycles() -> OutsideCycles:
            line, align, offsets = asked
            places = places_around(code.loop, method.nest, line, align, dict(offsets))
            return outside_cycles(code.loop, incore, parameters, table, analyser, places)

        around = self._arounds.get(key, cycles)
        unit, again = traffic.iterations_per_unit, request.called_again

        def find() -> tuple[OutsideWork, tuple[Note, ...]]:
            work = outside_work(method.nest, case.sizes, code.loop, incore, around, unit, again=again)
            return work, outside_notes(work, code.loop, around, parameters)

        return self._outsides.get((key, case.key, unit, incore.prediction, incore.iterations_per_pass, again), find)

    def _beside(
        self, case: _Case, code: Code, incore: InCore, traffic: Traffic
    ) -> tuple[OutsideWork | None, CallWork | None, tuple[Note, ...]]:
        """What is executed outside the innermost loop, the functions that it calls, and what is not known of the
        former, which the textbook model leaves out."""
        outside, unsure = (None, ()) if case.point.code.classic else self._outside(case, code, incore, traffic)
        passes = traffic.iterations_per_unit / (code.loop.iterations_per_pass or 1.0)
        parameters, _ = self._core(case.method.machine)
        return outside, call_work(code.loop, outside, passes, parameters, case.point.code.call_cycles), unsure

    def _answer(
        self, case: _Case, code: Code, scaling_cores: Sequence[int], *, shared: Point | None, bounded: bool
    ) -> EcmAnswer:
        from kernmodel.models.bandwidths import few_cores_notes
        from kernmodel.models.domain_memory import elsewhere_notes
        from kernmodel.models.ecm import predict
        from kernmodel.models.pages import in_pages
        from kernmodel.source.nest.sizes import declared_bytes
        from kernmodel.studies.predict.arrays import aliasing_notes
        from kernmodel.traffic.jammed import runs_of

        method, cores, loop = case.method, case.point.kernel.cores, code.loop
        machine = method.machine
        layout = self._layout(case, code)
        incore, *moved = (self._incore(code, machine, case.point.code, one) for one in (layout.taken, *layout.ends))
        paged, page_notes = in_pages(machine, case.point.kernel.pages)
        stores, told = _stores_of(loop, method)
        predictions: dict[Hashable, EcmPrediction] = {}
        classic, parts = case.point.code.classic, case.point.kernel.parts or cores
        on_parts: dict[Note, None] = {}
        runs = None if classic else runs_of(method.nest, case.sizes, machine, _jam(case, loop))
        streams = None if classic else self.streams(case.point.kernel.machine)

        @cache
        def moved_at(active: int, parts: int) -> Traffic:
            part, ends = self._of_core(case, stores, active, parts)
            on_parts.update(dict.fromkeys(ends))
            return self._moved(part, loop, stores, active)

        def predicted(
            active: int, parts: int, place: Places | None = layout.taken, address: int | None = None
        ) -> EcmPrediction:
            made = self._incore(code, machine, case.point.code, place, address)
            key = active, parts, place and _key(place), made.offset
            if key not in predictions:
                known = moved_at(active, parts)
                outside, calls, _ = self._beside(case, code, made, traffic)
                held = 0.0 if classic else self._held(case, code, made, known, place)
                predictions[key] = predict(
                    known, made, paged, outside=outside, runs=runs, streams=streams, calls=calls, held=held
                )
            return predictions[key]

        traffic = moved_at(cores, parts)
        here = partial(predicted, cores, parts)
        prediction = predicted(cores, parts)
        if bounded:
            prediction = replace(prediction, cycles_interval=self._elsewhere(case, code, layout, here))
        _, calls, unsure = self._beside(case, code, incore, traffic)
        memory = prediction.transfers[-1]
        drawn = memory.bandwidth if memory.bytes else None
        notes = (
            *self._sharing_notes(case, shared, layout),
            *told,
            *method.nest.notes,
            *traffic.notes,
            *with_call_notes(loop.notes, calls, case.point.code.call_cycles),
            *incore.notes,
            *unsure,
            *prediction.notes,
            *page_notes,
            *few_cores_notes(machine, drawn, max((cores, *scaling_cores))),
            *elsewhere_notes(machine, declared_bytes(method.nest, case.sizes)),
            *left_out_notes(machine, incore),
            *aliasing_notes(layout.places, incore, moved, loop.file),
            *self._placed_notes(case, code, layout, here),
        )
        scaled, divided = self._scaled(case, predicted, scaling_cores)
        return EcmAnswer(
            nest=method.nest,
            machine=machine,
            sizes=case.shown,
            traffic=traffic,
            origin=code.origin,
            loop=loop,
            parameters=self._core(machine)[0],
            incore=incore,
            prediction=prediction,
            scaling=scaled,
            runs=runs,
            notes=tuple(dict.fromkeys((*notes, *on_parts, *divided))),
        )

    def _scaled(
        self, case: _Case, predict_at: Callable[[int, int], EcmPrediction], scaling_cores: Sequence[int]
    ) -> tuple[tuple[ScalingPoint, ...], tuple[Note, ...]]:
        """The performance on each of these numbers of cores, and how a loop that a pragma divides is spread over them.

        The textbook model knows no chunks: there the cores always have equally much to do.
        """
        kernel, nest, machine = case.point.kernel, case.method.nest, case.method.machine
        spread = replace(kernel.spread, schedule="dynamic") if case.point.code.classic else kernel.spread
        found = [scale_divided(predict_at, count, machine, spread, nest, case.sizes) for count in scaling_cores]
        if kernel.cores == 1 and all(count == 1 for count in scaling_cores):
            return tuple(one.point for one in found), ()
        made = [one.division for one in found]
        key = nest_key(case.at.kernel, case.point.blocks), spread, not made or (tuple(case.sizes.items()), *made)
        notes = self._divisions.get(key, lambda: division_notes(nest, spread, made))
        return tuple(one.point for one in found), notes

    def _sharing_notes(self, case: _Case, shared: Point | None, layout: _Layout) -> tuple[Note, ...]:
        """That points share the code of `shared`; a listing of the user's needs no such note."""
        if shared is None or case.point.code.asm is not None:
            return ()
        return (self._compiled_once(shared, by_size=layout.by_size),)

    def _compiled_once(self, shared: Point, *, by_size: bool) -> Note:
        """The note that points share the code of this one."""
        from kernmodel.source.emit.whole_function import compiler_defines
        from kernmodel.source.nest.sizes import deciding_names

        def find() -> Note:
            nest, shown = self.nest(shared.kernel), self.sizes(shared, shared)[1]
            deciding = deciding_names(nest, shared.kernel.sizes)
            constants = [name for name in compiler_defines(nest.text, shown) if name not in deciding]
            return compiled_once(shown, deciding, constants, shared.blocks, by_size=by_size)

        return self._onces.get((nest_key(shared.kernel, shared.blocks), by_size), find)


def _key(places: Places) -> tuple[object, ...]:
    """A key that is equal for equal places of arrays."""
    return places.base, tuple(places.starts.items()), tuple(places.in_page.items()), places.written_back


def _within_lines(loop: AssemblyLoop, line: int) -> tuple[object, ...]:
    """Where the accesses of a loop begin in cache lines, row by row; from as many rows on as there are bytes in a line
    their number makes no difference."""
    return tuple(
        stream.start
        and (
            stream.start.base,
            stream.start.offset % line,
            *((step % line, passes and min(passes, line)) for step, passes in stream.start.rows),
        )
        for stream in loop.streams
    )


def _start(stack: ExitStack, at: Point, machine: Machine) -> Compilation | None:
    """Start the compiler before the source is analysed, where its text can be compiled as it stands."""
    return None if at.blocks else start_early(stack, at.kernel, at.code, machine)


def compiled_once(
    shown: Mapping[str, int],
    deciding: Sequence[str],
    constants: Sequence[str],
    blocks: Blocks = (),
    *,
    by_size: bool = False,
) -> Note:
    """The note that points share code compiled with these sizes; `deciding` are those that they all have, `constants`
    those that the code has in it (macros), `by_size` says that rows begin where they do at the sizes of each point."""
    values = [f"{name}={value}" for name, value in shown.items()]
    values += [f"blocks of {value} in {name}" for name, value in blocks]
    same = ", ".join(f"{name}={shown[name]}" for name in deciding)
    points = f"all points with {same}" if same else "all points"
    what = "its code, with rows that begin in cache lines as theirs do" if by_size else "its in-core time"
    shared = f"{points} share {what}, and the code around its loop"
    text = f"the kernel was compiled once, with {', '.join(values)}; {shared}"
    if constants:
        text += f"; of other values of {', '.join(constants)}, constants of the code, a compiler may make other code"
    return Note("compiled-once", text, "assumption")


def lanes_of(loop: AssemblyLoop, nest: LoopNest) -> int:
    """Iterations of the innermost loop of the source whose elements the widest moving access of the code covers."""
    if loop.variable is not None or loop.along is not None or loop.iterations_per_pass is None:
        return 1
    inner = [access for access in nest.accesses if access.depth == len(nest.loops)]
    element = max(map(nest.bytes_of, inner), default=0)
    widest = max((stream.reference.size_bytes for stream in loop.streams if stream.stride_bytes), default=0)
    return max(1, min(widest // element, int(loop.iterations_per_pass))) if element else 1


def _jam(case: _Case, loop: AssemblyLoop) -> Jam | None:
    """How many iterations of an outer loop the code executes at once, where the traffic is that of this order;
    textbooks know none."""
    jam = None if case.point.code.classic else jam_of(loop, case.method.nest, case.sizes)
    return jam if jam and (case.whole or case).method.jammed(jam) else None


def _stores_of(loop: AssemblyLoop, method: TrafficMethod) -> tuple[StoreMode, tuple[Note, ...]]:
    """The stores that the user named, else those in the code, else those of the machine."""
    from kernmodel.traffic.stores import stores_of

    if method.request.stores is not None:
        return method.request.stores, ()
    found, note = stores_of(loop, method.machine)
    return found or method.stores(), (note,) if note else ()


def nest_key(kernel: KernelRequest, blocks: Blocks = ()) -> Hashable:
    """What decides how a kernel is read and blocked."""
    chosen = kernel.nest, kernel.function, kernel.line, kernel.include, kernel.macros, kernel.taken, kernel.trip_counts
    return kernel.kernel, chosen, tuple(kernel.sizes.items()), blocks


def _core_key(machine: Machine) -> Hashable:
    core = machine.core
    return core.microarchitecture, core.overlapping_ports, core.non_overlapping_ports


def method_key(kernel: KernelRequest) -> tuple[Hashable, ...]:
    """What of a request decides how its traffic is found."""
    if kernel.simulation is None:
        return kernel.cache, None
    values = {field.name: getattr(kernel.simulation, field.name) for field in fields(kernel.simulation)}
    return kernel.cache, tuple({**values, "indirect": tuple(sorted(kernel.simulation.indirect.items()))}.values())
