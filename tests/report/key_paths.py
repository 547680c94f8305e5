"""Which keys a JSON document has, for tests that hold it to its schema."""

from __future__ import annotations

from collections.abc import Collection

NAMED = {"sizes", "defaults", "sources", "served"}
"""Objects whose keys are names of the user's or of the machine's, in every document."""


def key_paths(value: object, named: Collection[str] = NAMED, path: str = "") -> set[str]:
    """All paths of keys in a document; elements of lists as `[]`, keys of the objects in `named` as `*`."""
    if isinstance(value, dict):
        names = path.rpartition(".")[2] in named
        pairs = [(f"{path}.{'*' if names else key}", item) for key, item in value.items()]
        return set().union(*({here} | key_paths(item, named, here) for here, item in pairs))
    if isinstance(value, list):
        return set().union(*(key_paths(item, named, f"{path}[]") for item in value))
    return set()


def last_keys(paths: Collection[str]) -> set[str]:
    """The keys at the ends of paths, without those that are names."""
    return {path.rpartition(".")[2].replace("[]", "") for path in paths} - {"*"}
