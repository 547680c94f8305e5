"""What a branch predictor that remembers histories foresees of the branches of a run.

The predictor is a TAGE (A. Seznec, P. Michaud: A case for (partially) tagged geometric history length branch
predictors, JILP 8, 2006; AMD has one since Zen 2: D. Suggs, M. Subramony, D. Bouvier: The AMD "Zen 2" processor, IEEE
Micro 40(2), 2020): for each branch a counter, and for the branch with the last L branches before it, of several L up to
its reach, another one. The longest history that was met before foresees, unless it is new and new ones were wrong of
late. How large its tables are is not published for any core: here they forget nothing.

Four things were measured on a Zen 3 (`benchmarks/branch_patterns.py`) and are so here: jumps, and branches that were
never taken, are no part of the history; branches that are not taken this time are; a pattern that repeats is known when
it comes for the second time, so that a surprise is kept with histories of all lengths; and random branches are wrong as
often as their rarer way is taken, no more.
"""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 3
"""Of a counter from −4 to 3, as the paper has them: from 0 on, taken."""
_LEAST = -4
_BASE_MOST, _BASE_LEAST = 1, -2
_TRUST_MOST = 15
_SHORTEST = 5
"""Branches of the shortest history at least; each longer one is twice as long."""


class HistoryPredictor:
    """A predictor of conditional branches.

    Args:
        reach: branches that its longest history holds.
        branches: how many there are; each is named by a number below that.
    """

    def __init__(self, reach: int, branches: int) -> None:
        self._bits = 1 + branches.bit_length()
        lengths = [reach]
        while lengths[-1] >= 2 * _SHORTEST:
            lengths.append(lengths[-1] // 2)
        self._masks = [(1 << length * self._bits) - 1 for length in lengths]
        self._whole = self._masks[0]
        self._tables: list[dict[tuple[int, int], int]] = [{} for _ in lengths]
        self._base = [0] * branches
        self._met = [False] * branches
        self._history = 0
        self._trust = 0

    def surprised(self, branch: int, taken: bool) -> bool:
        """Whether it is wrong about a branch, which it learns."""
        keys = [(branch, self._history & mask) for mask in self._masks]
        known = [number for number, key in enumerate(keys) if key in self._tables[number]]
        foreseen = self._foreseen(branch, keys, known, taken)
        self._learn(branch, keys, known, taken)
        if foreseen != taken:
            for number in range(known[0] if known else len(keys)):
                self._tables[number][keys[number]] = 0 if taken else -1
        self._met[branch] |= taken
        if self._met[branch]:
            self._history = (self._history << self._bits | 2 * branch + 2 + taken) & self._whole
        return foreseen != taken

    def _foreseen(self, branch: int, keys: Sequence[tuple[int, int]], known: Sequence[int], taken: bool) -> bool:
        """What it says; whether new entries are to be trusted is learnt where they and the next ones differ."""
        if not known:
            return self._base[branch] >= 0
        counter = self._tables[known[0]][keys[known[0]]]
        if counter not in (0, -1):
            return counter >= 0
        other = self._tables[known[1]][keys[known[1]]] if len(known) > 1 else self._base[branch]
        chosen = (counter if self._trust >= 0 else other) >= 0
        if (counter >= 0) != (other >= 0):
            right = (counter >= 0) == taken
            self._trust = min(_TRUST_MOST, self._trust + 1) if right else max(-_TRUST_MOST, self._trust - 1)
        return chosen

    def _learn(self, branch: int, keys: Sequence[tuple[int, int]], known: Sequence[int], taken: bool) -> None:
        if known:
            table, key = self._tables[known[0]], keys[known[0]]
            table[key] = min(_MOST, table[key] + 1) if taken else max(_LEAST, table[key] - 1)
        if not known or len(known) == 1:
            at = self._base[branch]
            self._base[branch] = min(_BASE_MOST, at + 1) if taken else max(_BASE_LEAST, at - 1)
