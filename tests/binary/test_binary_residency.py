"""The address trace of a function, held to what its counted blocks access and to the arrays of the source."""

import os
import sys
from dataclasses import replace

import pytest

from kernmodel import limits
from kernmodel.binary.address_trace import residency
from kernmodel.binary.counting import count_occurrences
from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command
from kernmodel.cachesim.model import CacheSpec, Hierarchy
from kernmodel.errors import InputError, MeasurementError, ToolError

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="addresses are traced on Linux on x86-64"
)
CACHES = Hierarchy((CacheSpec("L1", 64, 8, load_from="L2", store_to="L2"), CacheSpec("L2", 1024, 8)))
TINY = Hierarchy((CacheSpec("L1", 2, 2, load_from="L2", store_to="L2"), CacheSpec("L2", 1024, 8)))


@pytest.mark.thorough
@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-no-pie", "-fno-pie"), ("-O3", "-march=x86-64-v3")])
@pytest.mark.parametrize("name", ["gemm", "choose"])
def test_accesses_are_those_of_the_counted_blocks(build, flags, name):
    program = build("flow.c", *flags)
    command = Command((str(program), "20"), seconds=20)
    function, counted = count_occurrences(find_function(program, name), command)
    traced = residency(function, command, CACHES)
    expected = sum(
        counted.blocks[block.address] * (operand.memory.read + operand.memory.written)
        for block in function.blocks
        for item in block.instructions
        for operand in item.operands
        if operand.memory is not None and operand.memory.size_bytes
    )
    assert traced.accesses == expected
    assert traced.calls == counted.calls
    assert traced.complete
    assert traced.misses_per_access == 0.0


def test_the_footprint_is_that_of_the_arrays(build):
    program = build("flow.c", "-O2")
    traced = residency(find_function(program, "gemm"), Command((str(program), "24"), seconds=20), CACHES)
    assert 3 * 24 * 24 * 8 <= traced.footprint_bytes <= 3 * (24 * 24 * 8 + 64)
    assert set(traced.counters.levels) == {"L1", "L2"}
    assert traced.misses_per_line == 0.0


def test_a_cache_that_is_too_small_misses(build):
    program = build("flow.c", "-O2")
    traced = residency(find_function(program, "gemm"), Command((str(program), "24"), seconds=20), TINY)
    assert 0.15 < traced.misses_per_access < 1
    assert not traced.is_resident
    assert traced.counters.levels["L2"].loads >= traced.misses
    assert traced.misses_per_line > 1


def test_a_long_trace_is_cut_off_and_said_to_be(build, monkeypatch):
    program = build("flow.c", "-O0")
    monkeypatch.setattr("kernmodel.binary.address_trace.TRACED_ACCESSES", limits.Limit("accesses", 1000))
    monkeypatch.setattr("kernmodel.binary.recording._PIECE", 512)
    traced = residency(find_function(program, "gemm"), Command((str(program), "24"), seconds=20), CACHES)
    assert not traced.complete
    assert traced.accesses > 1000
    first = traced.counters.levels["L1"]
    assert first.loads + first.stores >= traced.accesses
    assert traced.misses > 0  # the caches were cold
    assert "trace-cut-off" in [note.code for note in traced.notes]


def test_small_buffers_lose_nothing(build, monkeypatch):
    program = build("flow.c", "-O0")
    command = Command((str(program), "12"), seconds=20)
    whole = residency(find_function(program, "gemm"), command, CACHES)
    monkeypatch.setattr("kernmodel.binary.recording._PIECE", 512)
    pieces = residency(find_function(program, "gemm"), command, CACHES)
    assert (pieces.accesses, pieces.calls, pieces.counters) == (whole.accesses, whole.calls, whole.counters)


def test_what_is_not_traced_says_so(build):
    program = build("unruly.c", "-O1", "-pthread")
    function = find_function(program, "work")
    with pytest.raises(MeasurementError, match="threads or processes"):
        residency(function, Command((str(program), "t")), CACHES)
    with pytest.raises(InputError, match="ended with status 3"):
        residency(function, Command((str(program), "e")), CACHES)
    with pytest.raises(InputError, match="interpret never ran"):
        residency(find_function(program, "interpret"), Command((str(program),)), CACHES)


def test_code_of_another_processor_is_said_to_be_that_and_not_started(build):
    program = build("flow.c", "-O2")
    foreign = replace(find_function(program, "gemm"), isa="aarch64")
    with pytest.raises(ToolError, match="holds aarch64 code, which this host"):
        residency(foreign, Command((str(program), "24")), CACHES)
