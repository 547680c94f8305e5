"""Find the loop of every carried kernel in what gcc and clang make of it, and check the iterations per pass.

    python benchmarks/loop_finding.py                       # all kernels, machines, levels and compilers
    python benchmarks/loop_finding.py -k stencil -O -O3     # a part of them; -v shows the evidence

The check is independent of how the loop was found: where the closing comparison is against constants, the number of
passes is known, and passes × iterations per pass has to be the source's trip count, up to what is left for peeled and
remainder loops. Where it is not known, the bytes stored (or loaded) and the floating-point operations have to agree.
Everything that is not found, or found with a note, is listed with its reason. Exit status 1 if a check fails.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernmodel.code.compile import FoundCompiler, find_compiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.match import Expectation, Fit, choose_fit, choose_loop
from kernmodel.code.model import AssemblyLoop
from kernmodel.code.strides import analyse
from kernmodel.errors import AmbiguousLoopError, KernmodelError
from kernmodel.isa.model import Listing
from kernmodel.machine.load import load_machine
from kernmodel.resources import carried_files
from kernmodel.source.emit.compilable import compilable_source
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.studies.predict.expectation import expectation, reassociates

LEVELS = ("-O1", "-O2", "-O3", "-Ofast")


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel to compile, and what the loop finder is told of it."""

    name: str
    text: str
    defines: dict[str, int]
    told: Expectation

    def compiled_with(self, flags: tuple[str, ...]) -> Source:
        """With what is told of code that was compiled with these flags."""
        work = replace(self.told.work, reassociated=reassociates(flags))
        return replace(self, told=replace(self.told, work=work))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One compilation; `verdict`: "checked", "bytes" (passes unknown), "library", "ambiguous", "missing" or "WRONG"."""

    kernel: str
    machines: str
    compiler: str
    level: str
    verdict: str
    iterations: float | None
    evidence: str
    notes: tuple[str, ...]


def source_of(name: str) -> Source:
    """The kernel `name` with its default sizes."""
    nest = load_kernel(name)
    sizes = sizes_of(nest, {})
    defines = {symbol: sizes[symbol] for symbol in nest.symbols if symbol in nest.defaults}
    return Source(name, compilable_source(nest), defines, expectation(nest, sizes))


def outcome(source: Source, listing: Listing, machines: str, compiler: str, level: str) -> Outcome:
    """Find the loop and check it."""
    told = source.told
    try:
        found = choose_loop(listing, told)
        fit = choose_fit(analyse(listing, control_flow(listing)), replace(told, function=None)).main
    except KernmodelError as error:
        ambiguous = isinstance(error, AmbiguousLoopError)
        verdict = "ambiguous" if ambiguous else "library" if "replaced the loop" in error.what else "missing"
        return Outcome(source.name, machines, compiler, level, verdict, None, str(error), ())
    notes = tuple(f"{note.code}: {note.text}" for note in found.notes)
    verdict = verdict_of(found, fit, told.trip_count)
    return Outcome(source.name, machines, compiler, level, verdict, found.iterations_per_pass, found.evidence, notes)


def verdict_of(found: AssemblyLoop, fit: Fit, trip_count: int | None) -> str:
    """Whether the passes that the closing comparison gives account for the source's iterations."""
    if found.iterations_per_pass != fit.iterations:
        return "WRONG"
    passes = fit.strides.passes
    if passes is None or trip_count is None or fit.variable is not None or passes * fit.steps > trip_count:
        return "bytes" if fit.exact else "WRONG"
    # a peeled pass and a remainder of less than one pass may be left
    return "checked" if trip_count - passes * fit.steps < 2 * fit.steps else "WRONG"


def outcomes(names: list[str], machines: list[str], levels: list[str], compilers: list[str]) -> Iterator[Outcome]:
    """All combinations; machines with the same flags are one."""
    sources = [source_of(name) for name in names]
    for family in compilers:
        by_flags: dict[tuple[str, ...], list[str]] = {}
        for machine in machines:
            compiler = find_compiler(load_machine(machine).compilers, family)
            flags = tuple(flag for flag in compiler.flags if not re.match("-O|-mtune", flag))
            by_flags.setdefault(flags, []).append(machine)
        for flags, same in by_flags.items():
            for level in levels:
                for source in sources:
                    listing = compiled(source, compiler, (level, *flags))
                    yield outcome(source.compiled_with((level,)), listing, ",".join(same), family, level)


def compiled(source: Source, compiler: FoundCompiler, flags: tuple[str, ...]) -> Listing:
    """What the compiler makes of a kernel."""
    run = start_compile(source.text, name=f"{source.name}.c", compiler=compiler, flags=flags, defines=source.defines)
    return read_listing(run.finish().text, f"{source.name}.s")


def print_table(results: list[Outcome]) -> None:
    """Iterations per pass by kernel, compiler and level: one number for all machines, or those that occur."""
    table: dict[tuple[str, str], dict[str, list[str]]] = {}
    for result in results:
        text = result.verdict if result.iterations is None else f"{result.iterations:g}"
        table.setdefault((result.kernel, result.compiler), {}).setdefault(result.level, []).append(text)
    levels = list(dict.fromkeys(result.level for result in results))
    print("| kernel | compiler | " + " | ".join(levels) + " |")
    print("|---" * (len(levels) + 2) + "|")
    for (kernel, compiler), cells in table.items():
        print(f"| {kernel} | {compiler} | " + " | ".join("/".join(dict.fromkeys(cells[v])) for v in levels) + " |")


def print_doubts(results: list[Outcome]) -> None:
    """What was not found or carries a note, by reason."""
    reasons: dict[str, list[Outcome]] = {}
    for result in results:
        for note in result.notes:
            reasons.setdefault(note, []).append(result)
        if result.verdict not in ("checked", "bytes"):
            reason = result.evidence.splitlines()[0].split("; ")[0].split(": ", 1)[-1]
            reasons.setdefault(f"{result.verdict}: {reason}", []).append(result)
    for reason, cases in sorted(reasons.items()):
        print(f"\n{reason}  ({len(cases)} cases)")
        where: dict[tuple[str, str], dict[str, None]] = {}
        for case in cases:
            where.setdefault((case.kernel, case.compiler), {})[case.level] = None
        for (kernel, compiler), levels in where.items():
            print(f"  {kernel}, {compiler} {' '.join(levels)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", "--kernel", action="append")
    parser.add_argument("-m", "--machine", action="append")
    parser.add_argument("-O", "--level", action="append")
    parser.add_argument("-c", "--compiler", action="append")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    kernels = options.kernel or [file.stem for file in carried_files("kernels", ".c")]
    machines = options.machine or [file.stem for file in carried_files("machine-files", ".yml")]
    levels = ["-O" + level.removeprefix("-O") for level in options.level or LEVELS]
    results = []
    for result in outcomes(kernels, machines, levels, options.compiler or ["gcc", "clang"]):
        results.append(result)
        if options.verbose:
            print(f"{result.kernel} {result.compiler} {result.level} {result.machines}: {result.verdict}")
            print("  " + "\n  ".join((result.evidence, *result.notes)))
    print_table(results)
    print_doubts(results)
    count = Counter(result.verdict for result in results)
    print("\n" + ", ".join(f"{number} {verdict}" for verdict, number in count.most_common()))
    return 1 if count["WRONG"] + count["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
