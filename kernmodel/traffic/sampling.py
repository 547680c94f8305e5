"""How much of a nest is simulated: whole sweeps where they are short, else windows at places spread over the nest.

The method and its limits: docs/traffic-simulation.md.
"""

from __future__ import annotations

from dataclasses import replace

from kernmodel.cachesim.engine import Simulator, compiled_available
from kernmodel.cachesim.model import Hierarchy
from kernmodel.traffic.model import Sampling
from kernmodel.traffic.places import Sample, Windows
from kernmodel.traffic.rates import Rates, in_balance, rates_of, spread, weighted_sum
from kernmodel.traffic.steady import TOLERANCE, Effort
from kernmodel.traffic.walk import Work, run_to_end

COMPILED = Effort(sweep=2e7, window=1.5e7, block=3e5, warm_up=3e7, measured=8e7, total=4e8)
PYTHON = Effort(sweep=4e5, window=4e5, block=2e4, warm_up=6e5, measured=4e5, total=2e6)
"""What a second or two allow with either engine; see benchmarks/symbolic_vs_simulated.py for the compiled one."""

CHECKING = Effort(
    sweep=3e6,
    window=5e6,
    block=6e4,
    warm_up=6e6,
    measured=5e6,
    total=2e7,
    places=1,
    reach=(1.25, 2.5),
    trusting=True,
)
"""What a check of layer conditions may cost with the compiled engine: a few tenths of a second."""

_SWEEPS = 6
"""Most whole sweeps that are simulated until two count the same."""

_FILLING = 1.5
"""Half of a sweep over less than so many times what all caches hold leaves them far from full."""

_WHOLE, _MUCH_DATA = 5.0, 4.0
"""Sweeps over at most so many times what all caches hold are simulated whole if they cost so many times more."""


def effort(share: float = 1.0) -> Effort:
    """What may be spent with the engine that is there; while counting, a share of it."""
    whole = COMPILED if compiled_available() else PYTHON
    return replace(whole, measured=share * whole.measured, total=share * whole.total)


def checking() -> Effort:
    """What a check of layer conditions may cost with the engine that is there."""
    return CHECKING if compiled_available() else effort()


def sample(work: Work, hierarchy: Hierarchy, spend: Effort, *, exact: bool = False) -> Sample:
    """Simulate a nest in its steady state: as if it had been repeated for ever.

    Args:
        work: the nest.
        hierarchy: the caches.
        spend: how many touches may be spent.
        exact: simulate whole sweeps whatever they cost.
    """
    windows = Windows(work, hierarchy, spend)
    if exact or (spend.sweep and (_is_short(work, hierarchy, spend) or work.touches(-1) <= windows.expected())):
        return _whole_sweeps(work, hierarchy, spend)
    return windows.sample()


def _is_short(work: Work, hierarchy: Hierarchy, spend: Effort) -> bool:
    """Whether sweeps are simulated whole: always if they cost little, else where caches keep much between them."""
    cached = sum(spec.size_bytes for spec in hierarchy.levels)
    limit = spend.sweep if work.nest.touched_bytes > _MUCH_DATA * cached else _WHOLE * spend.sweep
    return work.touches(-1) <= limit


def _whole_sweeps(work: Work, hierarchy: Hierarchy, spend: Effort) -> Sample:
    """Sweeps until two count the same; of long ones half a sweep to warm up, if that leaves the caches in balance."""
    simulator = Simulator(hierarchy)
    half, trusting = None, spend.trusting and all(spec.policy == "LRU" for spec in hierarchy.levels)
    cached = sum(spec.size_bytes for spec in hierarchy.levels)
    if work.touches(-1) > spend.sweep and not (trusting and work.nest.touched_bytes < _FILLING * cached):
        half = run_to_end(work, simulator, 0.5)
    last: Rates | None = None
    difference, number, done = 1.0, 0, False
    while not done:
        simulator.reset_counters()
        simulator.run(work.program)
        rates = rates_of(simulator.counters())
        number += 1
        if last is not None:
            difference = 0.0 if trusting and in_balance(rates, hierarchy) else spread(last, rates)
        elif half and in_balance(rates, hierarchy):
            difference = 0.0
        enough = half is not None or number > (1 if trusting else 2)
        done = number >= _SWEEPS or (difference <= TOLERANCE and enough)
        last = rates
    before = (half or 0) + (number - 1) * work.iterations
    sampling = Sampling(
        warm_up=before,
        measured=work.iterations,
        whole_sweep=True,
        windows=1,
        settled=difference <= TOLERANCE,
        spread=difference,
        tolerance=TOLERANCE,
        reason=_sweeps_reason(work, number, half, difference, trusting=trusting),
    )
    return Sample(weighted_sum([(1 / work.iterations, rates)]), sampling)


def _sweeps_reason(work: Work, number: int, half: int | None, difference: float, *, trusting: bool) -> str:
    sweeps = f"{number} whole sweep{'s' if number > 1 else ''}, boundaries included,"
    after = f" after {half / work.iterations:.0%} of one to warm up" if half else ""
    if difference > TOLERANCE:
        return f"{sweeps} were simulated{after}: the last two still differ by {difference:.1%}"
    if number == 1:
        return f"{sweeps} was simulated{after}: as many lines leave the caches as enter"
    if trusting:
        return f"{sweeps} were simulated{after}: as many lines leave the caches as enter in the last"
    return f"{sweeps} were simulated{after}: the last two count the same"
