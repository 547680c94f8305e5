"""What a picture is of, above it and in the metadata of its file: kernels, sizes, code, machine, version.

A picture is passed on without the command that made it, so it says all that the command line said.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel import __version__
from kernmodel.plot.placement import text_width
from kernmodel.value_types import dataclass
from kernmodel.words import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import CodeOrigin, EcmAnswer

TITLE, DETAILS = "caption-title", "caption-details"
"""By these ids `style.write` finds the texts again, for the metadata."""
_TITLE_SIZE, _DETAILS_SIZE = 10.5, 7.0
_LINE = 1.25 / 72
"""Height in inches of a line of text over its size in points."""
_GAP = 0.14
_BOLD = 1.15
"""By how much bold text is wider."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A title in one line, and the details that tell this picture from others."""

    title: str
    details: tuple[str, ...]


def caption_of(
    title: str,
    kernels: Iterable[tuple[str, Sequence[Mapping[str, int]]]],
    origins: Iterable[CodeOrigin | None],
    machines: Iterable[Machine],
) -> Caption:
    """The caption of a picture of kernels (names, each with its points of sizes) on machines, with their code."""
    sizes = [f"{name}: {spans(points)}" if points and points[0] else name for name, points in kernels]
    code = [code_of(origin) for origin in origins if origin is not None]
    details = (*sizes, *dict.fromkeys(code), machine_names(machine.name for machine in machines), version())
    return Caption(title, tuple(detail for detail in details if detail))


def answers_caption(title: str, answers: Sequence[EcmAnswer]) -> Caption:
    """The caption of a picture of one kernel or several at points of sizes."""
    sizes: dict[str, list[Mapping[str, int]]] = {}
    for answer in answers:
        sizes.setdefault(answer.nest.name, []).append(answer.sizes)
    origins, machines = [answer.origin for answer in answers], [answer.machine for answer in answers]
    return caption_of(title, sizes.items(), origins, machines)


def on_machine(name: str, machine: Machine, cores: int = 1) -> str:
    """ "stencil on Intel Xeon …, 10 cores": the title of most pictures."""
    return f"{name} on {machine.title}" + (f", {cores} cores" if cores > 1 else "")


def machine_names(names: Iterable[str]) -> str:
    """ "machine clx", "machines clx, hsw"."""
    found = list(dict.fromkeys(names))
    return f"{plural(len(found), 'machine')} {', '.join(found)}"


def version() -> str:
    """The tool that drew it."""
    return f"kernmodel {__version__}"


def code_of(origin: CodeOrigin) -> str:
    """Compiler, version and flags, or the listing."""
    if origin.compiler is None:
        return f"code {origin.file}"
    return f"{origin.compiler} {origin.version or ''} {shlex.join(origin.flags)}".replace("  ", " ").strip()


def spans(points: Sequence[Mapping[str, int]]) -> str:
    """ "M = 5000, N = 100 … 10000": every size, from its least to its greatest value."""
    found = []
    for name in points[0]:
        values = sorted({point[name] for point in points if name in point})
        found.append(f"{name} = {values[0]}" + (f" … {values[-1]}" if len(values) > 1 else ""))
    return ", ".join(found)


def draw_caption(figure: Figure, caption: Caption, *, left: float = 0.3, above: float = _GAP) -> None:
    """Write a caption above the axes of a figure, which grows by it where it has no room for it when it is written.

    Args:
        left: inches from the left end of the figure; above: from the top of the highest axes.
    """
    width, height = figure.get_size_inches()
    room = width - left - 0.1
    details = "\n".join(_wrapped("  ·  ".join(caption.details), room, _DETAILS_SIZE))
    title = "\n".join(_wrapped(caption.title, room, _BOLD * _TITLE_SIZE))
    low = max(axes.get_position().y1 for axes in figure.axes) + above / height
    high = low + (_LINE * _DETAILS_SIZE * (details.count("\n") + 1) + 0.05) / height
    figure.text(left / width, low, details, fontsize=_DETAILS_SIZE, color="#555555", va="bottom", gid=DETAILS)
    figure.text(left / width, high, title, fontsize=_TITLE_SIZE, fontweight="bold", va="bottom", gid=TITLE)


def _wrapped(text: str, room: float, size: float) -> list[str]:
    most = max(20, int(room / text_width("x", size)))
    return textwrap.wrap(text, most, break_long_words=False, break_on_hyphens=False) or [""]


def metadata_texts(figure: Figure) -> tuple[str, str]:
    """Title and details of a figure's caption on one line each; empty without one."""
    found = {text.get_gid(): " ".join(text.get_text().split()) for text in figure.texts}
    return found.get(TITLE, ""), found.get(DETAILS, "")
