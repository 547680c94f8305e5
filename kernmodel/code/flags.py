"""Whether compilers take the flags that a machine file gives them: an empty file is compiled with each."""

from __future__ import annotations

import re
import subprocess
from difflib import get_close_matches

from kernmodel.code.compile import CompilerChoice, find_compiler
from kernmodel.errors import ToolError
from kernmodel.isa import DEFAULT
from kernmodel.isa.assembler import english
from kernmodel.value_types import NamedTuple

_QUOTED = r"[‘'`\"]([^’'\"]+)[’'\"]"
_BAD_VALUE = re.compile(rf"error: (?:bad value|unknown target CPU|unsupported argument) {_QUOTED}")
_UNKNOWN = re.compile(rf"error: (?:unrecognized|unknown|unsupported).*?{_QUOTED}")
_VALID = re.compile(r"note: valid (?:arguments to .*? switch|target CPU values) are: ([^;\n]*)")
_MEANT = re.compile(rf"did you mean {_QUOTED}")
_SECONDS = 30


class Refusal(NamedTuple):
    """A flag that a compiler refuses: what it says, with the flag, and what to do."""

    what: str
    todo: str


def refused_flags(choice: CompilerChoice, isa_name: str = DEFAULT) -> tuple[Refusal, ...] | None:
    """The flags that a compiler refuses, each tried by itself where all together fail; None if it is not installed."""
    try:
        compiler = find_compiler((choice,), isa_name=isa_name)
    except ToolError:
        return None
    command = compiler.command
    if _messages(command, compiler.flags) is None:
        return ()
    found = []
    for flag in choice.flags:
        messages = _messages(command, (flag,))
        if messages is not None:
            found.append(_refusal(command, flag, messages))
    return tuple(found) or (_refusal(command, " ".join(choice.flags), _messages(command, choice.flags) or ""),)


def _messages(command: str, flags: tuple[str, ...]) -> str | None:
    """What the compiler says of an empty file, None if it compiles it."""
    arguments = [command, *flags, "-S", "-o", "-", "-x", "c", "-"]
    try:
        done = subprocess.run(
            arguments,
            check=False,
            input="",
            capture_output=True,
            text=True,
            errors="replace",
            env=english(),
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"error: {error}"
    return done.stderr if done.returncode else None


def _refusal(command: str, flag: str, messages: str) -> Refusal:
    bad, unknown = _BAD_VALUE.search(messages), _UNKNOWN.search(messages)
    if bad is None and unknown is None:
        first = next((line for line in messages.splitlines() if "error:" in line), "it fails")
        return Refusal(f"{command} refuses {flag}: {first.partition('error: ')[2] or first}", "change it")
    value = flag.partition("=")[2]
    valid = _VALID.search(messages)
    known = re.split(r"[,\s]+", valid[1].strip()) if valid else []
    near = get_close_matches(value, known, n=1, cutoff=0.0) if value else []
    meant = _MEANT.search(messages)
    if near:
        nearest = flag.replace(value, near[0])
    else:
        nearest = meant[1] if meant else ""
    todo = f"the nearest that it takes is {nearest}" if nearest else "leave it out, or name another compiler"
    return Refusal(f"{command} refuses {flag}", todo)
