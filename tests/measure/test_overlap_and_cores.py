"""What mixed streams say of compositions, logs of several cores of their rate, and sizes of what a core can use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.measure.composition import (
    compositions,
    error_of,
    inner_bytes,
    judged_compositions,
    path_times,
    predicted,
)
from kernmodel.measure.model import BandwidthPoint, Beside, CoresPoint, MixedStreams
from kernmodel.measure.samples import Figure
from kernmodel.measure.several_cores import core_counts, rate_of, saturates, windows
from kernmodel.measure.shared_cache import usable_bytes

LEVELS = ("L1", "L2", "L3", "Mem")
NUMBER = len(list(compositions(LEVELS)))
# cycles per line of a load stream, and of mixed ones, on a guest with two cores of Milan (load of 9 beside)
PLAIN = dict(zip(LEVELS, (0.997, 2.004, 2.561, 9.836), strict=True))
MEASURED = (
    ("L2", "L1", 1, 2.376), ("L2", "L1", 4, 5.170), ("L3", "L1", 1, 2.836), ("L3", "L1", 4, 5.367),
    ("L3", "L2", 1, 4.535), ("L3", "L2", 4, 11.103), ("Mem", "L1", 1, 9.898), ("Mem", "L1", 4, 12.526),
    ("Mem", "L2", 1, 10.428),
    ("Mem", "L2", 4, 14.277), ("Mem", "L3", 1, 10.682), ("Mem", "L3", 4, 18.948),
)  # fmt: skip


def figure(value: float, confirmed: bool = True) -> Figure:
    return Figure(value, value, value * 1.01, 40, 60, confirmed)


def beside(outer: str, inner: str, count: int, cycles: float = 1.0, core: float = 0.0) -> Beside:
    return Beside(f"{count} of {inner}", outer, inner, count, core, figure(cycles))


@given(
    st.lists(st.floats(0.5, 20), min_size=4, max_size=4).map(sorted),
    st.integers(0, NUMBER - 1),
    st.lists(st.tuples(st.sampled_from(LEVELS[1:]), st.sampled_from(LEVELS[:1]), st.integers(1, 4)), min_size=1),
)
def test_a_composition_explains_what_it_made(
    cycles: list[float], which: int, asked: list[tuple[str, str, int]]
) -> None:
    composition = list(compositions(LEVELS))[which]
    plain = dict(zip(LEVELS, cycles, strict=True))
    per_line = path_times(composition, plain)
    for level in LEVELS[1:]:
        # plain streams are reproduced where a level takes longer than those inside
        assert predicted(composition, plain, per_line, beside(level, "", 0)) == pytest.approx(plain[level])
    made = [beside(*one, predicted(composition, plain, per_line, beside(*one))) for one in asked]
    assert error_of(composition, plain, made) == pytest.approx(0, abs=1e-9)


def test_compositions_differ_on_what_was_measured() -> None:
    errors = {str(one): error_of(one, PLAIN, [beside(*row) for row in MEASURED]) for one in compositions(LEVELS)}
    assert len(errors) == NUMBER
    overlapping = "max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)"
    # by hand: five lines from L2 of 2.004 each beside one from L3, 10.02 for 11.10
    alone = error_of(next(compositions(LEVELS)), PLAIN, [beside("L3", "L2", 4, 11.103)])
    assert alone == pytest.approx(1 - 10.02 / 11.103)
    assert errors[overlapping] < errors["max(T_OL, T_nOL) + T_L1L2 + T_L2L3 + T_L3Mem"]


def test_compositions_are_told_apart_by_the_same_streams_of_the_same_trials() -> None:
    """What slows all of a trial makes no difference between them; where streams say now this, now that, it is open."""
    asked = list(compositions(LEVELS))
    rows = [("L2", "L1", 4), ("L3", "L1", 4), ("L3", "L2", 1), ("L3", "L2", 4), ("Mem", "L2", 4), ("Mem", "L3", 4)]

    def trial(slower: float, *of: int) -> MixedStreams:
        plain = {level: slower * cycles for level, cycles in PLAIN.items()}
        made = [
            beside(*row, predicted(asked[which], plain, path_times(asked[which], plain), beside(*row)))
            for row, which in zip(rows, of, strict=True)
        ]
        return MixedStreams(plain, tuple(made))

    one, other = 0, 2
    clear = judged_compositions([trial(factor, *[one] * 6) for factor in (1.0, 1.3)], asked[0]).judged
    assert (clear[0].expression, clear[0].error) == (str(asked[one]), pytest.approx(0, abs=1e-9))
    assert next(found for found in clear if found.expression == str(asked[other])).told_apart
    mixed = judged_compositions([trial(1.0, one, other, one, other, one, other)], asked[0]).judged
    assert not next(found for found in mixed if found.expression == str(asked[one])).told_apart
    assert not next(found for found in mixed if found.expression == str(asked[other])).told_apart


def test_few_mixed_streams_tell_no_composition() -> None:
    few = MixedStreams(PLAIN, (beside("L2", "L1", 1), beside("L3", "L2", 1)))
    for trials in ([], [few], [MixedStreams({"L1": 1.0}, ())]):
        assert [note.code for note in judged_compositions(trials, next(compositions(LEVELS))).notes] == [
            "composition-unknown"
        ]


@given(st.integers(64, 1 << 30))
def test_a_buffer_beside_a_stream_leaves_room_for_it(size: int) -> None:
    assert size / 4 < inner_bytes(size) <= size / 2


def test_arithmetic_beside_a_stream_is_the_longer_or_both() -> None:
    (
        overlapping,
        *_,
    ) = compositions(LEVELS)
    serial = list(compositions(LEVELS))[2]
    one = beside("L2", "", 0, core=5.0)
    assert predicted(overlapping, PLAIN, path_times(overlapping, PLAIN), one) == 5.0
    assert predicted(serial, PLAIN, path_times(serial, PLAIN), one) == pytest.approx(5.0 + 2.004 - 0.997)


def points(cycles: Sequence[float], unsure: Sequence[int] = ()) -> list[BandwidthPoint]:
    return [
        BandwidthPoint("load", "L3", 32, (number + 1) << 22, figure(value, number not in unsure), figure(1.0))
        for number, value in enumerate(cycles)
    ]


def test_usable_is_what_stays_on_the_plateau() -> None:
    """2.61 × 1.15 = 3.00 lies at 0.79 between 8 and 12 MiB."""
    cycles = (2.61, 2.695, 3.081, 4.281, 5.920, 8.328)
    assert usable_bytes(points(cycles)) == pytest.approx(11.17 * 2**20, rel=1e-3)
    assert usable_bytes(points((2.6, 2.7, 2.8))) == 12 << 20
    assert usable_bytes(points(cycles, unsure=(4,))) == usable_bytes(points(cycles))
    assert usable_bytes(points(cycles, unsure=(4, 5))) == usable_bytes(points(cycles))  # it ends before them
    assert usable_bytes(points(cycles, unsure=(0,))) is None
    assert usable_bytes(points((2.6, 2.7, 2.8), unsure=(2,))) is None
    assert usable_bytes([]) is None


def test_windows_are_those_in_which_all_cores_run() -> None:
    first = [(0, 10, 0), (10, 20, 0), (20, 30, 1), (30, 40, 0)]
    second = [(5, 25, 0), (32, 40, 0)]
    # a switch on the first, a pause of the second
    assert list(windows([first, second], 100)) == [
        (5, pytest.approx(15)), (10, pytest.approx(15)), (8, pytest.approx(22.5)),
    ]  # fmt: skip


@given(st.integers(1, 4), st.integers(1, 1000), st.integers(60, 120))
def test_cores_that_never_rest_draw_the_sum(cores: int, ticks: int, calls: int) -> None:
    logs = [[(n * ticks + core, (n + 1) * ticks + core, 0) for n in range(calls)] for core in range(cores)]
    found = rate_of("Mem", "load", logs, 64, 1e9)
    assert found.bytes_per_second == pytest.approx(cores * 64e9 / ticks)
    assert found.confirmed


def test_few_windows_or_halves_that_differ_tell_nothing() -> None:
    assert not rate_of("Mem", "load", [[(0, 10, 0)]], 64, 1e9).confirmed
    assert not rate_of("Mem", "load", [[(n, n + 1, 1) for n in range(100)]], 64, 1e9).confirmed
    slower = [(n * 10, n * 10 + (5 if n < 50 else 9), 0) for n in range(100)]
    assert not rate_of("Mem", "load", [slower], 64, 1e9).confirmed


def test_saturation_is_told_by_the_last_doubling_of_at_least_four_cores() -> None:
    def rates(*values: float) -> list[CoresPoint]:
        return [CoresPoint("Mem", "load", 2 << n, rate, rate, rate, 90, True) for n, rate in enumerate(values)]

    assert saturates(rates(30.0), 20.0) is None
    assert saturates(rates(38.0, 40.0), 20.0)
    assert saturates(rates(38.0, 70.0), 20.0) is False
    assert core_counts(6) == (2, 4, 6)
