"""A kernel compiled in several ways."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from kernmodel.errors import KernmodelError, Note, UsageError
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest
from kernmodel.studies.what_if.runs import Runs, runtime_ratio
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class CodeVariant:
    """The kernel compiled in one way: what was asked for, the answer (None where it failed, with the error), and the
    runtime ratio to the first variant that has one, with the interval in which that lies where it is not known."""

    label: str
    code: CodeRequest
    answer: EcmAnswer | None
    ratio: float | None
    error: str | None
    ratio_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """The answer of `what-if --flags … --compiler …` on a machine with these changes: the machine's own code first."""

    variants: tuple[CodeVariant, ...]
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]


def compare_code(
    kernel: KernelRequest, codes: Sequence[CodeRequest], cores: int = 1, changes: Sequence[Change] = ()
) -> CodeAnswer:
    """The kernel compiled in several ways, the first one being what the others compare to.

    A way that fails (no such compiler, a flag that it refuses) fails alone; the ratios are then to the first that does
    not.

    Args:
        changes: of the machine on which all run.

    Raises:
        KernmodelError: any stage's error about its input, if all ways fail.
    """
    runs = Runs(kernel, codes[0], cores)
    tried: list[EcmAnswer | KernmodelError] = []
    for code in codes:
        try:
            tried.append(runs.answer(tuple(changes), code))
        except UsageError:
            raise
        except KernmodelError as error:
            tried.append(error)
    answers = [one for one in tried if isinstance(one, EcmAnswer)]
    if not answers and isinstance(tried[0], KernmodelError):
        raise tried[0]
    notes = tuple(
        dict.fromkeys((*_untargeted(codes, answers[0]), *(note for answer in answers for note in answer.notes)))
    )
    if not isinstance(tried[0], EcmAnswer):
        text = f"{_label(codes[0], None)} fails, so the ratios are to the first code that does not"
        notes = (Note("first-code-fails", text), *notes)
    variants = tuple(
        _variant(code, one, answers[0])
        if isinstance(one, EcmAnswer)
        else CodeVariant(_label(code, None), code, None, None, str(one))
        for code, one in zip(codes, tried, strict=True)
    )
    return CodeAnswer(variants, tuple(changes), notes)


def _variant(code: CodeRequest, answer: EcmAnswer, first: EcmAnswer) -> CodeVariant:
    ratio = runtime_ratio(first, answer)
    return CodeVariant(_label(code, answer), code, answer, ratio.value, None, ratio.interval())


_TARGET = ("-march", "-mcpu", "-x", "--target")


def _untargeted(codes: Iterable[CodeRequest], answer: EcmAnswer) -> Iterator[Note]:
    """Flags that replace the machine's and leave out the core to compile for."""
    own = [flag for compiler in answer.machine.compilers for flag in compiler.flags if flag.startswith(_TARGET)]
    for code in codes:
        if own and code.flags is not None and not any(flag.startswith(_TARGET) for flag in code.flags):
            text = f"{shlex.join(code.flags)!r} replaces the machine's flags and names no target such as {own[0]}"
            yield Note("no-target", text, "assumption")


def _label(code: CodeRequest, answer: EcmAnswer | None) -> str:
    """Compiler and flags as they were run; as they were asked for where nothing ran."""
    if answer is not None and answer.origin.compiler is not None:
        return shlex.join((answer.origin.compiler, *answer.origin.flags))
    compiler = code.compiler or "the machine's compiler"
    return f"{compiler} {shlex.join(code.flags) if code.flags is not None else 'with the flags of the machine'}"
