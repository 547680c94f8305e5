"""The text of a kernel, from wherever it is given: a file, a carried kernel, or the text itself; C++ as C."""

from __future__ import annotations

from kernmodel.errors import Location
from kernmodel.source.text import (
    function_bodies,
    has_cxx,
    is_cxx,
    kernel_path,
    other_language,
    read_source,
    with_prototypes,
    without_comments,
)
from kernmodel.user_files import GivenText


def find_source(name_or_path: str) -> tuple[str, str]:
    """Text and name of a kernel: of a file or a carried one, or the text that is given in its place.

    Raises:
        InputError: as `kernel_path`; SourceError: as `read_source`.
    """
    if isinstance(name_or_path, GivenText):
        return _c_text(name_or_path.text, name_or_path), name_or_path
    path = kernel_path(name_or_path)
    return _c_text(read_source(path), str(path)), str(path)


def _c_text(text: str, file: str) -> str:
    """A C++ text as C, where any of its functions with loops is C; as it stands where none is. A C text with the types
    of parameters in their parentheses."""
    if not is_cxx(text, file):
        return with_prototypes(text)
    from kernmodel.source.cxx import c_of_cxx

    made = c_of_cxx(text, file)
    if function_bodies(without_comments(made, directives=False)) or made.refused:
        return made
    if not has_cxx(text):
        raise other_language("C++", Location(file))
    return text
