"""What samples say: recorded ones of a busy two-core guest, and laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.measure.samples import (
    REPEATED,
    Brackets,
    Figure,
    Sample,
    agreed,
    brackets_of,
    counts,
    is_repeated,
    judge,
    repeated,
)

# which, ticks, clock before and after, issue before and after, loads before and after, switches: `add rax,rbx` unrolled
# on a core whose sibling is busy now and then (9600 additions in the chain, 1200 passes); loads were added
RECORDED = [
    Sample(0, 35410, (8352, 8350), (1192, 1190), (1600, 1604), 0),
    Sample(0, 35398, (8350, 8352), (1190, 1194), (1600, 1604), 0),
    Sample(0, 35402, (8350, 8350), (1188, 1192), (1600, 1604), 0),
    Sample(0, 35416, (8354, 8352), (1200, 1190), (1600, 1604), 0),
    Sample(0, 35400, (8350, 8350), (1190, 1190), (1600, 1604), 0),
    Sample(0, 35404, (8350, 8354), (1192, 1192), (1600, 1604), 0),
    Sample(0, 35396, (8350, 8350), (1194, 1190), (1600, 1604), 0),
    Sample(0, 35408, (8352, 8352), (1190, 1190), (1600, 1604), 0),
    Sample(0, 41866, (8352, 8354), (1932, 2044), (1600, 1604), 0),
    Sample(0, 38120, (8350, 8352), (1192, 2010), (1600, 1604), 0),
    Sample(0, 91022, (8350, 8352), (1192, 1190), (1600, 1604), 1),
    Sample(0, 35404, (8350, 8514), (1192, 1192), (1600, 1604), 0),
]
BRACKETS = Brackets(9600, 1190 / 8350, 1600 / 8350)


def test_a_sample_counts_where_clock_issue_and_switches_are_as_alone() -> None:
    assert [counts(sample, BRACKETS) for sample in RECORDED] == [True] * 8 + [False] * 4


def test_a_neighbour_that_only_loads_shows_in_the_loads() -> None:
    good = RECORDED[0]
    for loads in ((1600, 3100), (2300, 1600)):
        assert not counts(replace(good, loads=loads), BRACKETS)


def test_a_round_is_the_lower_decile_in_cycles() -> None:
    found = judge(RECORDED, BRACKETS)
    assert found is not None
    assert (found.accepted, found.refused) == (8, 4)
    assert abs(found.cycles - 35396 * 9600 / 8350) < 5


def test_a_neighbour_that_mostly_waits_shows_in_the_issue() -> None:
    """Where the loop takes 1.09 times as long on Zen 3, one of two loads and a store takes 1.3 times as long."""
    assert counts(replace(RECORDED[0], issue=(1190, 1220)), BRACKETS)
    assert not counts(replace(RECORDED[0], issue=(1190, 1190 * 1.09)), BRACKETS)


def test_readings_around_a_change_of_the_clock_say_nothing_of_an_undisturbed_core() -> None:
    lucky = [replace(RECORDED[0], clock=(8350, 9800), issue=(900, 900), loads=(1200, 1200))] * 8
    assert brackets_of([*lucky, *RECORDED], 9600, 1200) == brackets_of(RECORDED, 9600, 1200)


def test_too_few_samples_are_no_round() -> None:
    assert judge(RECORDED[1:], BRACKETS) is None
    assert judge(RECORDED, BRACKETS, which=1) is None


def test_the_undisturbed_issue_is_no_single_lucky_reading() -> None:
    lucky = Sample(0, 1, (8350, 8350), (600, 1190), (1600, 1604), 0)
    found = brackets_of([lucky, *RECORDED], 9600, 1200)
    assert found.issue_alone > 1180 / 8350
    assert 1590 / 8350 < found.loads_alone < 1605 / 8350


def test_a_core_that_takes_longer_by_itself_takes_the_same_most_of_the_time() -> None:
    own = [replace(sample, issue=(1300 + n % 3, 1300)) for n, sample in enumerate(RECORDED)]
    assert brackets_of(own, 9600, 1200).issue_alone == pytest.approx(1300 / 8352, rel=0.001)
    mostly_waiting = [replace(sample, issue=(1300 + 20 * n, 1310 + 20 * n)) for n, sample in enumerate(RECORDED)]
    found = brackets_of(mostly_waiting, 9600, 1200)
    assert not any(counts(sample, found) for sample in mostly_waiting)


def test_nothing_counts_on_a_core_that_is_never_undisturbed() -> None:
    """Zen 3 beside a sibling that is awake takes 1.58 cycles and more for a pass with one taken branch."""
    disturbed = [replace(sample, issue=(1650, 1650)) for sample in RECORDED]
    found = brackets_of(disturbed, 9600, 1200)
    assert not any(counts(sample, found) for sample in disturbed)


def agreed_of(values: Sequence[float], accepted: int) -> Figure:
    """Of one case."""
    return agreed([(value,) for value in values], lambda ends: ends[0], accepted, 0)


def test_a_difference_is_that_of_undisturbed_times() -> None:
    """In the second round the shorter call was disturbed: its own difference, 100, is no time that the code takes."""
    rounds = [(200.0, 400.0), (300.0, 400.0), (201.0, 401.0)]
    assert agreed(rounds, lambda ends: ends[1] - ends[0], 24, 0) == Figure(200.0, 199.0, 200.0, 24, 0, True)
    assert not agreed(rounds[:2], lambda ends: ends[1] - ends[0], 16, 0).confirmed


def test_two_rounds_confirm_one_another_or_nothing_is_judged() -> None:
    assert agreed_of([1.30, 1.01, 1.00], 24) == Figure(1.00, 1.00, 1.01, 24, 0, True)
    assert not agreed_of([1.00, 1.10], 16).confirmed
    assert not agreed_of([1.00], 8).confirmed
    # two that agree do not count beside a lower one: what disturbs only raises
    assert not agreed_of([1.40, 1.41, 1.00], 24).confirmed


@given(st.lists(st.floats(0.1, 1e6), min_size=2, max_size=8))
def test_a_confirmed_figure_lies_within_its_interval_and_is_one_of_the_rounds(values: list[float]) -> None:
    figure = agreed_of(values, 8 * len(values))
    assert figure.value in values
    assert figure.low <= figure.value <= figure.high
    if figure.confirmed:
        assert figure.spread_percent < 13


@given(st.floats(0.1, 1e3), st.floats(1.0, 1.02), st.floats(0.1, 100))
def test_rates_of_a_time_turn_its_interval_round(value: float, wider: float, numerator: float) -> None:
    rate = Figure(value, value, value * wider, 8, 0, True).inverse(numerator)
    assert rate.low <= rate.value * (1 + 1e-12) and rate.value <= rate.high * (1 + 1e-12)
    assert abs(rate.value * value - numerator) <= 1e-9 * numerator


def made(value: float, *, confirmed: bool = True) -> Figure:
    return Figure(value, value, value, 10, 0, confirmed)


def test_of_several_trials_the_lowest_counts_that_another_comes_near() -> None:
    """A neighbour slows two trials; a lucky one that no other comes near does not count either."""
    figures = [made(7.0), made(5.1), made(9.0), made(5.0), made(4.0)]
    found = repeated(figures)
    assert (found.value, found.low, found.high, found.accepted) == (5.0, 4.0, 9.0, 50)
    assert is_repeated(figures)
    assert not is_repeated([made(5.0), made(5.3)])
    assert not is_repeated([made(5.0), made(5.0, confirmed=False)])
    assert is_repeated([made(5.0, confirmed=False), made(5.0, confirmed=False)])
    assert repeated([made(5.0), made(5.3)]).value == 5.0


def test_of_what_is_shared_the_median_counts() -> None:
    """What neighbours draw from a shared cache is there when a program runs, too."""
    figures = [made(7.0), made(5.1), made(9.0), made(5.0), made(4.0)]
    found = repeated(figures, shared=True)
    assert (found.value, found.low, found.high, found.confirmed) == (5.1, 4.0, 9.0, True)
    assert repeated([made(4.0), made(5.0)], shared=True).value == 4.5
    assert repeated([made(4.0), made(5.0), made(99.0, confirmed=False)], shared=True).value == 4.5
    assert not repeated([made(4.0, confirmed=False)], shared=True).confirmed


def test_what_no_trial_confirms_stays_so() -> None:
    assert not repeated([made(4.0, confirmed=False), made(4.2, confirmed=False)]).confirmed
    # one that is confirmed counts before lower ones that are not
    assert repeated([made(4.0, confirmed=False), made(5.0)]).value == 5.0
    assert not repeated([made(0.0, confirmed=False)]).confirmed
    # a single confirmed one was within 1 % of itself, and 39 % off in the next probe
    assert repeated([made(4.0, confirmed=False), made(5.0)]).low <= 4.0
    assert repeated([made(5.0), made(7.0, confirmed=False)]).high == 7.0


def test_trials_that_agree_confirm_one_another() -> None:
    """Each alone had rounds that disagree; a neighbour that raised both as much, tens of seconds apart, is unlikely."""
    figures = [made(value, confirmed=False) for value in (4.0, 5.0, 5.05, 6.0)]
    assert (repeated(figures).value, repeated(figures).confirmed) == (5.0, True)
    figures = [made(value, confirmed=False) for value in (4.0, 5.0, 5.2, 6.0)]
    assert not repeated(figures).confirmed
    assert repeated(figures, shared=True).confirmed  # shares of a cache differ from time to time
    # what two trials tell together is not told once
    assert is_repeated(figures, shared=True) and not is_repeated(figures)
    assert not repeated([made(0.0, confirmed=False), made(0.0, confirmed=False)]).confirmed


def test_of_rounds_that_others_disturb_all_the_time_the_middle_half_is_told() -> None:
    rounds = [(value,) for value in (5.0, 5.6, 6.0, 6.2, 9.0)]
    told = agreed(rounds, lambda ends: ends[0], 40, 0, REPEATED, 0.5)
    assert (told.value, told.confirmed) == (6.0, True)
    assert told.low <= told.value <= told.high
    assert not agreed(rounds, lambda ends: ends[0], 40, 0, REPEATED, 0.05).confirmed
    assert not agreed(rounds[:3], lambda ends: ends[0], 24, 0, REPEATED, 0.5).confirmed
    assert agreed([(5.0,), (5.2,), *rounds], lambda ends: ends[0], 56, 0, REPEATED, 0.5).value == 5.0


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6), st.permutations(range(6)))
def test_repeated_figures_do_not_depend_on_their_order(values: list[float], order: list[int]) -> None:
    figures = [made(value) for value in values]
    mixed = [figures[at] for at in order if at < len(figures)]
    assert repeated(mixed) == repeated(figures)
    assert min(values) <= repeated(figures).value <= max(values)
