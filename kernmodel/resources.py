"""The machine files and kernels that the package carries, and how a name given by the user becomes a file."""

from __future__ import annotations

from pathlib import Path

from kernmodel.errors import InputError


def carried_folder(folder: str) -> Path:
    """The folder of carried files ("machine-files", "kernels"): in an installed package, beside it in a checkout."""
    package = Path(__file__).parent
    inside = package / folder
    return inside if inside.is_dir() else package.parent / folder


def carried_files(folder: str, ending: str) -> tuple[Path, ...]:
    """All carried files of `folder` with this ending (".yml", ".c"), sorted by name."""
    return tuple(sorted(carried_folder(folder).glob(f"*{ending}")))


def resolve(name: str, folder: str, ending: str, what: str) -> Path:
    """The file meant by `name`: a path first, else a carried file with or without its ending.

    Raises:
        InputError: no such file; names the nearest carried ones. Also if `name` is a directory.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        return path
    stem = path.name.removesuffix(ending)
    if path.name == name:
        carried = carried_folder(folder) / f"{stem}{ending}"
        if carried.is_file():
            return carried
    if path.is_dir():
        raise InputError(f"is a directory, not a {what}", where=name, todo=f"give a {ending} file")
    names = [file.stem for file in carried_files(folder, ending)]
    from difflib import get_close_matches

    near = get_close_matches(stem, names, n=3, cutoff=0.4)
    listed = f" (nearest: {', '.join(near)})" if near else f": {', '.join(names)}"
    raise InputError(f"no such {what}", where=name, todo=f"give a path, or one of the carried ones{listed}")
