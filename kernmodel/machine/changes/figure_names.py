"""From what a user calls a figure to its place: full paths, shorter ones where they are unambiguous, nearest names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernmodel.errors import UsageError
from kernmodel.machine.changes.figure_paths import FigurePath
from kernmodel.words import first_names

_OPTIONAL_SECTIONS = ("memory", "stores", "peaks")
_MEANT = {"frequency": "clock", "frequency_ghz": "clock", "ghz": "clock", "cores": "topology.cores_per_socket"}
"""FigureNames that no spelling leads to."""
_MOST_NAMED = 4


class FigureNames:
    """All names of the figures of one file."""

    def __init__(self, places: Iterable[FigurePath], left_out: Iterable[str], file: str) -> None:
        """Every end of a path is a name (`L2.size` of `caches.L2.size`), and so are the further names of a place.

        Args:
            left_out: paths that the file might give and does not.
        """
        self._file = Path(file).name
        self._left_out = frozenset(left_out)
        self._by_path: dict[str, FigurePath] = {}
        self._by_end: dict[str, list[FigurePath]] = {}
        for place in places:
            self._by_path[place.path] = place
            for name in (*_ends(place), *place.names):
                self._by_end.setdefault(name, []).append(place)

    def place(self, name: str, where: str) -> FigurePath:
        """The place that is meant.

        Raises:
            UsageError: none or several.
        """
        found = self._by_path.get(name)
        if found is not None:
            return found
        several = self._by_end.get(name, [])
        if len(several) == 1:
            return several[0]
        if several:
            paths = first_names([self.short(place) for place in several], _MOST_NAMED)
            raise UsageError(f"{name!r} may be one of several figures", where=where, todo=f"say which: {paths}")
        raise self._unknown(name, where)

    def short(self, place: FigurePath) -> str:
        """The shortest name that means the place alone."""
        for name in (*place.names[::-1], *reversed(_ends(place))):
            if len(self._by_end[name]) == 1 and name not in self._by_path:
                return name
        return place.path

    def _unknown(self, name: str, where: str) -> UsageError:
        section, _, key = name.partition(".")
        absent = section in _OPTIONAL_SECTIONS and not any(path.startswith(f"{section}.") for path in self._by_path)
        near = self.nearest(name, cutoff=0.8 if absent else 0.6)
        if key and absent and not near:
            what = f"{self._file} has no section {section!r}"
            return UsageError(what, where=where, todo="add it to a copy of the machine file")
        if any(path == name or path.endswith(f".{name}") for path in self._left_out):
            what = f"{self._file} does not give {name!r}"
            return UsageError(what, where=where, todo="add it to a copy of the machine file")
        inside = [self.short(place) for path, place in self._by_path.items() if f".{name}." in f".{path}"]
        if inside:
            todo = f"name one, such as {', '.join(inside[:_MOST_NAMED])}"
            return UsageError(f"{name!r} is no figure but a section of {self._file}", where=where, todo=todo)
        todo = f"did you mean {', '.join(near)}?" if near else "`what-if -m MACHINE --list` names all figures"
        return UsageError(f"{self._file} has no figure {name!r}", where=where, todo=todo)

    def nearest(self, name: str, cutoff: float = 0.6) -> tuple[str, ...]:
        """The names that this one is most like."""
        from difflib import get_close_matches

        meant = _MEANT.get(name.lower())
        known = {known.lower(): known for known in (*self._by_path, *self._by_end) if "." in known or known == "clock"}
        near = [known[match] for match in get_close_matches(name.lower(), list(known), n=9, cutoff=cutoff)]
        places = dict.fromkeys(self.short(self._place(one)) for one in ([meant] if meant else []) + near)
        return tuple(places)[:3]

    def _place(self, name: str) -> FigurePath:
        return self._by_path.get(name) or self._by_end[name][0]


def _ends(place: FigurePath) -> tuple[str, ...]:
    """The ends of a path that may name it, longest first; of a whole level, only `bandwidth`."""
    parts = place.path.split(".")
    return ("bandwidth",) if place.names else tuple(".".join(parts[start:]) for start in range(1, len(parts)))
