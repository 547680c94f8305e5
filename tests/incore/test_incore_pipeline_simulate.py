"""The pipeline simulation on blocks made by hand, and laws over random ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_cores import CORE, IDEAL
from simulations import Engine, MicroOp, PipelineInput, program_of, simulate

from kernmodel.incore.dependences.cycles import Edge, maximum_cycle_ratio
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.layout import TICKS, Entry, FetchUnit, Wait
from kernmodel.incore.engine.model import Fetch, Limits, PipelineCore, Source, Switches
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.engine.simulation import Pipeline
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.core_parameters import PORT_CHOICES

ENGINES: tuple[Engine, ...] = ("python", "compiled")


def microop(*ports: str, waits: tuple[Wait, ...] = (), latency: int = 1, divider: int = 0, alone: int = 0) -> MicroOp:
    return MicroOp("compute", ports, latency, divider, 0, alone, waits)


def block(*microops: MicroOp, core: PipelineCore = CORE, fetch: Fetch = IDEAL) -> PipelineInput:
    """A block with one µop per slot and one slot per queue entry."""
    entries = (Entry(1, False),) * len(microops)
    return PipelineInput(core, microops, (1,) * len(microops), entries, fetch, Switches())


def cycles(found: PipelineInput) -> Fraction:
    return simulate(found, engine="python").cycles_per_pass


def unit(entries: int = 1, line: int = 0, ends_group: bool = False, decoded: int | None = None) -> FetchUnit:
    own = entries if decoded is None else decoded
    return FetchUnit(entries, own, own > 1, 3 if own == 1 else 1, False, ends_group, line, line, False)


def test_an_empty_block_takes_no_time() -> None:
    assert cycles(block()) == 0


def test_a_chain_takes_its_latency() -> None:
    found = simulate(block(microop("0", waits=(Wait(0, 1, 4),)), microop("1")), engine="python")
    assert found.cycles_per_pass == 4
    assert found.settled


def test_a_chain_over_two_passes_takes_half() -> None:
    assert cycles(block(microop("0", waits=(Wait(0, 2, 5),)))) == Fraction(5, 2)


def test_one_port_serves_one_microop_per_cycle() -> None:
    found = simulate(block(*[microop("5")] * 3), engine="python")
    assert found.cycles_per_pass == 3
    assert found.port_cycles["5"] == 3


def test_issue_binds_as_a_fraction() -> None:
    assert cycles(block(*[microop()] * 5)) == Fraction(5, 4)


def test_retirement_binds() -> None:
    assert cycles(block(*[microop()] * 6, core=replace(CORE, retire_width=2))) == 3


def test_a_divider_stays_busy() -> None:
    assert cycles(block(microop("0", divider=8), microop("0"))) == 8


def test_microops_that_exclude_each_other() -> None:
    assert cycles(block(microop("0", alone=7 * TICKS), microop("1", alone=7 * TICKS))) == 14


@pytest.mark.parametrize("engine", ENGINES)
def test_what_keeps_each_other_waiting_takes_parts_of_cycles_and_starts_in_order(engine: Engine) -> None:
    """7.5 cycles each: an older one waited for all younger ones of other ports, until the reorder buffer was full."""
    several = block(*[microop("0", "1", "5", alone=15 * TICKS // 2)] * 27)
    assert float(simulate(several, engine=engine).cycles_per_pass) == pytest.approx(27 * 7.5, rel=0.005)


def test_so_many_passes_retire_that_there_is_a_time() -> None:
    """None had when 1,200 cycles were over, and the pipeline took no time."""
    slow = simulate(block(*[microop("0", alone=500 * TICKS)] * 4), engine="compiled")
    assert float(slow.cycles_per_pass) == pytest.approx(2000, rel=0.01)


def test_the_renamer_assigns_worse_than_the_best() -> None:
    """Slots 0 and 2 take the least used port, 1 and 3 the second: a chain meets older µops on its port now and then."""
    any_port = ("0", "1", "5", "6")
    chain = MicroOp("compute", any_port, 1, 0, 0, 0, (Wait(0, 1, 1),))
    jump = MicroOp("compute", ("6",), 1, 0, 0, 0, (Wait(2, 1, 1),))
    greedy = block(chain, microop(*any_port, waits=(Wait(0, 0, 1),)), jump)
    best = replace(greedy, switches=Switches(issue_ports=False))
    assert cycles(best) == 1
    assert cycles(greedy) > Fraction(5, 4)


def test_the_slot_tells_which_other_port_is_taken() -> None:
    """Three µops a cycle for three ports: each gets one of its own, so that a chain in the first slot never waits."""
    chain = microop("0", "1", "5", waits=(Wait(0, 1, 1),))
    others = [microop("0", "1", "5", waits=(Wait(0, 0, 1),)), microop("0", "1", "5", waits=(Wait(0, 0, 1),))]
    wide = replace(CORE, issue_width=3, retire_width=3, port_choice="by slot")
    found = simulate(block(chain, *others, core=wide), engine="python")
    assert found.cycles_per_pass == 1
    assert found.dispatched["0"] == found.dispatched["1"] == found.dispatched["5"] == found.period


@pytest.mark.parametrize(
    ("sets", "given"),
    [
        (["0156"] * 5, ["6", "5", "1", "0", "6"]),
        (["06", "06", "06", "0156", "0156"], ["6", "0", "6", "5", "6"]),
        (["0156", "06", "0156", "06", "06"], ["6", "6", "5", "0", "6"]),
    ],
)
def test_the_number_of_equal_microops_in_a_cycle_tells_the_rank_of_the_port(sets: list[str], given: list[str]) -> None:
    """As uiCA's program gives them on cores with ten ports. The counts are those of the cycle before: in the second one
    still none."""
    wide = replace(CORE, issue_width=5, retire_width=5, counter_gap=5, port_choice="by rank")
    pipeline = Pipeline(program_of(block(*[microop(*own, waits=(Wait(0, 1, 9),)) for own in sets], core=wide)))
    while pipeline.microops_issued < 15:
        pipeline.cycle()
    ports = [wide.ports[pipeline.flight[number].port] for number in range(15)]
    assert ports[:5] == given
    assert ports[5:10] == given
    assert ports[10:] != given


def test_a_port_far_behind_is_left_out_of_the_ranks() -> None:
    """Ten µops that only port 6 has wait there; the other three ports take turns."""
    sets = ["6"] * 10 + ["0156"] * 5
    wide = replace(CORE, issue_width=5, retire_width=5, counter_gap=5, port_choice="by rank")
    pipeline = Pipeline(program_of(block(*[microop(*own, waits=(Wait(0, 1, 9),)) for own in sets], core=wide)))
    while pipeline.microops_issued < 15:
        pipeline.cycle()
    ports = [wide.ports[pipeline.flight[number].port] for number in range(10, 15)]
    assert ports == ["5", "1", "0", "5", "5"]


def test_the_scheduler_limits_how_far_ahead_a_load_runs() -> None:
    """A chain of 48 cycles in every pass: a small scheduler cannot hold enough passes to overlap them."""
    links = [microop("0", "1", "5", "6", waits=(Wait(k - 1, 0, 4),) if k else ()) for k in range(12)]
    ample = replace(CORE, scheduler=400, reorder_buffer=600)
    assert cycles(block(*links, core=ample)) < Fraction(16, 5)
    small = replace(CORE, scheduler=16)
    assert cycles(block(*links, core=small)) > 9


def test_the_loop_buffer_does_not_cross_its_end() -> None:
    fetch = Fetch("LSD", (unit(),) * 5, 1, 5, False, ())
    assert cycles(block(*[microop()] * 5, fetch=fetch)) == 2
    assert cycles(block(*[microop()] * 5, fetch=replace(fetch, copies=6))) == Fraction(8, 6)


def test_the_microop_cache_stops_behind_a_branch_into_the_same_block() -> None:
    units = (*[unit()] * 6, unit(line=1)._replace(block=0))
    fetch = Fetch("DSB", units, 1, 7, False, ())
    assert cycles(block(*[microop()] * 7, fetch=fetch)) == 2
    apart = replace(fetch, units=(*units[:6], units[6]._replace(block=1)))
    assert cycles(block(*[microop()] * 7, fetch=apart)) == Fraction(7, 4)


def test_decoders_take_one_complex_unit_per_cycle() -> None:
    units = (unit(entries=2), unit(entries=2))
    fetch = Fetch("decoders", units, 1, 0, True, (2,))
    assert cycles(block(*[microop()] * 4, fetch=fetch)) == 2


def test_the_predecoder_limits_unrolled_code() -> None:
    fetch = Fetch("decoders", (unit(),), 1, 0, True, (0, 1, 0))
    assert cycles(block(microop(), fetch=fetch)) == 3


def test_microcode_costs_its_switches() -> None:
    """Eight µops of the sequencer: two cycles, two more into it and back."""
    fetch = Fetch("DSB", (unit(entries=9, decoded=1), unit(line=1)), 1, 2, False, ())
    assert cycles(block(*[microop()] * 10, fetch=fetch)) >= 6


def test_a_fusible_end_of_a_decoded_stretch_waits_for_nothing() -> None:
    """Nothing follows it in the pass, so an instruction queue that only has this one may be left empty."""
    fusible = unit()._replace(fusible=True)
    fetch = Fetch("DSB", (unit(), fusible), 1, 1, False, (1,))
    old = replace(CORE, delivery=replace(CORE.delivery, fusible_last=False))
    assert cycles(block(microop(), microop(), core=old, fetch=fetch)) > 1


def test_stalls_are_named() -> None:
    found = simulate(block(microop("0", waits=(Wait(0, 1, 10),))), engine="python")
    assert found.stalls["scheduler"] > 0.8
    starved = simulate(block(microop(), fetch=Fetch("decoders", (unit(),), 1, 0, True, (0, 1))), engine="python")
    assert starved.stalls["front end"] == pytest.approx(0.5)


PORT_SETS = st.sampled_from([("0",), ("5",), ("0", "1"), ("0", "1", "5"), ("0", "1", "5", "6"), ("2", "3"), ()])


@st.composite
def blocks(draw: st.DrawFn) -> PipelineInput:
    """Blocks of up to eight µops with dependencies in the pass and over passes, from all sources."""
    count = draw(st.integers(1, 8))
    microops = []
    for number in range(count):
        waits = []
        for _ in range(draw(st.integers(0, 2))):
            source = draw(st.integers(0, count - 1))
            passes = draw(st.integers(0 if source < number else 1, 2))
            waits.append(Wait(source, passes, draw(st.integers(1, 6))))
        ports = draw(PORT_SETS)
        latency, divider = draw(st.integers(1, 5)), draw(st.sampled_from([0, 0, 0, 4])) if ports == ("0",) else 0
        microops.append(MicroOp("compute", ports, latency, divider, 0, 0, tuple(waits)))
    fetched: Source = draw(st.sampled_from(["ideal", "LSD", "DSB", "decoders"]))
    units = tuple(unit(line=k // 3, ends_group=k == count - 1) for k in range(count))
    schedule = (*draw(st.lists(st.integers(0, 3), min_size=1, max_size=4)), 1)
    barred = 0 if fetched == "decoders" else count
    fetch = Fetch(fetched, units, draw(st.integers(1, 3)), barred, barred == 0, schedule)
    core = replace(CORE, scheduler=draw(st.sampled_from([12, 97])), reorder_buffer=draw(st.sampled_from([16, 224])))
    return block(*microops, core=core, fetch=fetch)


def bounds(found: PipelineInput) -> float:
    """The largest of the bounds by issue, ports, divider and dependencies."""
    uses = [PortUse(m.ports, 1.0) for m in found.microops if m.ports]
    divider = float(sum(m.divider for m in found.microops))
    edges = [Edge(w.microop, n, float(w.cycles), w.passes) for n, m in enumerate(found.microops) for w in m.waits]
    cycle = maximum_cycle_ratio(len(found.microops), edges)
    issue = len(found.slots) / found.core.issue_width
    return max(issue, optimal_bound(uses)[0], divider, cycle.ratio if cycle else 0.0)


@given(blocks(), st.booleans())
def test_no_bound_is_undercut(found: PipelineInput, issue_ports: bool) -> None:
    found = replace(found, switches=Switches(issue_ports=issue_ports))
    answer = simulate(found, engine="python", limits=Limits(most_cycles=300))
    slack = 1e-9 if answer.settled else 0.06 * bounds(found) + 8 / answer.period
    assert float(answer.cycles_per_pass) >= bounds(found) - slack


@given(blocks(), st.booleans(), st.booleans(), st.sampled_from(PORT_CHOICES))
def test_both_engines_agree(found: PipelineInput, issue_ports: bool, boundary: bool, choice: str) -> None:
    if library() is None:
        pytest.skip("the compiled engine was not built")
    wide = {"issue_width": 5, "counter_gap": 5} if choice == "by rank" else {}
    found = replace(found, core=replace(found.core, port_choice=choice, **wide))
    found = replace(found, switches=Switches(issue_ports=issue_ports, group_boundary=boundary))
    short = Limits(most_cycles=200, steady_cycles=60, floor_cycles=30)
    for floor in (0.0, bounds(found)):
        answers = [simulate(found, engine=engine, limits=short, floor=floor) for engine in ENGINES]
        assert answers[0] == answers[1]


@settings(max_examples=40)
@given(blocks())
def test_one_port_each_and_no_limits_meet_the_bounds(found: PipelineInput) -> None:
    """Without a choice of ports, with ample buffers and an ideal fetch, what remains is the largest bound.

    Dispatching the oldest first may still delay a chain that shares its port, so the bound may be missed, by no more
    than one cycle per µop of the chain.
    """
    single = tuple(m._replace(ports=m.ports[:1]) for m in found.microops)
    ideal = replace(found, microops=single, fetch=IDEAL, core=CORE)
    answer = simulate(ideal, engine="python", limits=Limits(most_cycles=300))
    assert float(answer.cycles_per_pass) <= bounds(ideal) + len(single) + 8 / max(answer.period, 1)


@settings(max_examples=30)
@given(blocks(), st.integers(1, 5))
def test_repeating_the_block_changes_nothing_fundamental(found: PipelineInput, extra: int) -> None:
    """A settled answer is exact: simulating longer gives the same."""
    answer = simulate(found, engine="python", limits=Limits(most_cycles=400))
    longer = simulate(found, engine="python", limits=Limits(most_cycles=400 + 100 * extra))
    if answer.settled:
        assert longer == answer


@settings(max_examples=30)
@given(blocks())
def test_a_repetition_is_found_soon_after_it_is_there(found: PipelineInput) -> None:
    """A state is kept at the latest a quarter of the passes so far and four behind the first one that returns, and
    is recognised one period later."""
    limits = Limits(most_cycles=300, steady_cycles=300)
    pipeline = Pipeline(program_of(found, limits))
    states: list[object] = []
    first = None
    while first is None and (pipeline.now < limits.most_cycles or pipeline.passes < limits.least_passes):
        pipeline.cycle()
        if pipeline.slots_issued // pipeline.core.slots != pipeline.passes:
            pipeline.passes = pipeline.slots_issued // pipeline.core.slots
            state = pipeline.state()
            first = states.index(state) if state in states else None
            states.append(state)
    answer = simulate(found, engine="python", limits=limits)
    assert not (answer.settled and first is None)
    if answer.settled and first is not None:
        passes = pipeline.passes * 5 / 4 + 4 + answer.period  # checks may skip passes: several can issue in a cycle
        slower = max(
            pipeline.now / max(pipeline.passes, 1), float(answer.cycles_per_pass)
        )  # full buffers let fewer through
        assert answer.simulated <= slower * passes + 50


def test_equally_fast_passes_end_the_simulation() -> None:
    """A chain of 5 cycles beside µops of any port, whose counters take long to meet again: passes are alike before."""
    chain = microop("0", waits=(Wait(0, 1, 5),))
    found = block(chain, *[microop("0", "1", "5", "6", waits=(Wait(0, 1, 1),))] * 4)
    longer = simulate(found, engine="python", limits=Limits(steady_cycles=1500))
    assert longer.settled
    assert longer.simulated > 600
    steady = simulate(found, engine="python")
    assert not steady.settled
    assert steady.simulated < 500
    assert float(steady.cycles_per_pass) == pytest.approx(float(longer.cycles_per_pass), rel=0.01)
    assert steady.cycles_above(5.0) == 5.0  # a mean of 5.00 is that of the chain, whatever its last digits
    assert longer.cycles_above(5.02) == 5.0  # the time of a state that returns is exact


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_whether_passes_are_equally_fast_may_be_asked_again(engine: Engine) -> None:
    chain = microop("0", waits=(Wait(0, 1, 5),))
    found = block(chain, *[microop("0", "1", "5", "6", waits=(Wait(0, 1, 1),))] * 4)
    again = simulate(found, engine=engine, limits=Limits(steady_cycles=1500, again_cycles=450))
    assert not again.settled
    assert 450 <= again.simulated < 550


def test_passes_as_slow_as_the_slowest_part_end_the_simulation_sooner() -> None:
    chain = microop("0", waits=(Wait(0, 1, 5),))
    found = block(
        chain, *[microop("0", "1", "5", "6", waits=(Wait(0, 1, 1),))] * 4, core=replace(CORE, reorder_buffer=64)
    )
    plain = simulate(found, engine="python")
    known = simulate(found, engine="python", floor=5.0)
    other = simulate(found, engine="python", floor=4.5)
    assert known.simulated < 200 < plain.simulated == other.simulated
    assert known.cycles_above(5.0) == 5.0
