"""What all pictures share: colours and markers that survive print and colour blindness, and files that repeat.

The colours are those of Okabe and Ito; whatever a colour tells, a marker, a line style or a hatch tells too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernmodel.output_files import write_file
from kernmodel.plot.caption import metadata_texts, version

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d00")
MARKERS = "osD^vP*XphdH<>8"
"""Of the kernels: the marker changes with the colour, and goes on where the colours repeat."""
LEVELS = ("#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#cc79a7")
"""Of the levels of the hierarchy, innermost first."""
HATCHES = ("", "///", "++", "\\\\\\", "xx")
PATTERNS: tuple[Any, ...] = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
"""Of lines, for what colours tell."""
SMALL, TINY = 8.0, 7.0
"""Sizes of text in points."""
GREY = "#555555"

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "kernmodel",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "hatch.linewidth": 0.6,
}
_REPEATABLE: dict[str, dict[str, str | None]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None, "Producer": None},
    ".png": {},
}
"""What would make two files of one picture differ, left out."""
_CAPTION_KEYS = {
    ".svg": ("Title", "Description", "Creator"),
    ".pdf": ("Title", "Subject", "Creator"),
    ".png": ("Title", "Description", "Software"),
}
"""Under which names a format keeps a title, a description, and what made the file."""
_PAD = 0.1
"""Inches around all that is drawn."""


def core_label(*, called: bool) -> str:
    """The name of the time that the core needs beside data transfers; `called`: a loop calls functions."""
    return "T_OL + T_call + T_out" if called else "T_OL + T_out"


def settings() -> AbstractContextManager[None]:
    """The settings in which a picture is drawn and written."""
    from matplotlib import rc_context

    return rc_context(_SETTINGS)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, without a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def write(figure: Figure, path: Path) -> None:
    """Write a picture in the format of the file's ending, with its caption as metadata; the same picture gives the same
    file. The file is as large as what is drawn: nothing is cut off at the edges of the figure.

    Raises:
        InputError: the file cannot be written.
    """
    ending = path.suffix.lower()
    title, details = metadata_texts(figure)
    told = dict(zip(_CAPTION_KEYS[ending], (title, details, version()), strict=True))
    metadata = {**_REPEATABLE[ending], **{key: text for key, text in told.items() if text}}
    drawn = BytesIO()
    with settings():
        figure.savefig(drawn, format=ending[1:], dpi=150, metadata=metadata, bbox_inches="tight", pad_inches=_PAD)
    write_file(path, drawn.getvalue())


def colour(number: int) -> str:
    """Of the n-th kernel."""
    return COLOURS[number % len(COLOURS)]


def heat(share: float) -> str:
    """A colour for 0 to 1, darker the more it is: also without its hue."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["viridis_r"](0.15 + 0.85 * share))


def marker(number: int) -> str:
    """Of the n-th kernel: no two of the first 120 share colour and marker."""
    return MARKERS[(number % len(COLOURS) + number // len(COLOURS)) % len(MARKERS)]


def title(axes: Axes, text: str) -> None:
    """The title above the left end of the axes."""
    axes.set_title(text, loc="left", fontsize=9.5)


def part(number: int) -> dict[str, Any]:
    """Looks of the n-th part of a stack: colour and hatch together."""
    kind = number % len(LEVELS)
    return {"color": LEVELS[kind], "hatch": HATCHES[kind], "edgecolor": "white"}


def legend_beside(axes: Axes, *, reverse: bool = False) -> None:
    """The legend right of the axes; in reverse where it names a stack from the top."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=SMALL, frameon=False, reverse=reverse)
