"""Hierarchy files, traces, sequences and cases files: what they mean, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kernmodel.cachesim import trace_file
from kernmodel.cachesim.cases import check_cases, find_case, is_cases_file, read_cases, simulate_case
from kernmodel.cachesim.hierarchy_file import read_hierarchy
from kernmodel.cachesim.model import MEMORY, CacheSpec, Hierarchy, Program
from kernmodel.cachesim.programs import Walk
from kernmodel.cachesim.run import Given, TraceOptions, by_level, simulate_trace
from kernmodel.cachesim.sequences import KINDS, AccessSequence, read_sequence
from kernmodel.cachesim.trace_file import Trace, parse_trace, read_trace
from kernmodel.errors import InputError
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import parse_entry

SHARED = Path(__file__).resolve().parents[2] / "../shared/data/cachesim/cases.json"


@pytest.fixture
def hierarchy_of(tmp_path):
    def read(text: str) -> Hierarchy:
        path = tmp_path / "h.yml"
        path.write_text(text)
        return read_hierarchy(path)

    return read


@pytest.fixture
def cases_of(tmp_path):
    def read(text: str):
        path = tmp_path / "cases.yml"
        path.write_text(text)
        return read_cases(path)

    return read


def test_sizes_and_links_follow_from_what_is_given(hierarchy_of):
    found = hierarchy_of(
        "L1: {size: 32 KiB, ways: 8}\nL2: {size: 1 MiB, ways: 16, victims_to: L3}\nL3: {sets: 5, ways: 11}"
    )
    assert found == Hierarchy(
        (
            CacheSpec("L1", 64, 8, load_from="L2", store_to="L2"),
            CacheSpec("L2", 1024, 16, load_from=MEMORY, store_to="L3", victim_level="L3"),
            CacheSpec("L3", 5, 11),
        )
    )


def test_every_key(hierarchy_of):
    found = hierarchy_of(
        """
        title: made up
        seed: 7
        combining_buffers: 4
        line: 128 B
        caches:
          A: {sets: 3, ways: 2, replacement: fifo, write_back: false, write_allocate: false, load_from: B,
              store_to: memory, line_size: 32, sub_blocks: 4, hashed: true, hashed_lines: 64, source: a book}
          B: {sets: 4, ways: 1, policy: PLRU, inclusive: true, victim_level: null, clean_victims: false}
        """
    )
    assert found == Hierarchy(
        (
            CacheSpec("A", 3, 2, 32, "FIFO", False, False, "B", MEMORY, sub_blocks=4, hashed=True, hashed_lines=64),
            CacheSpec("B", 4, 1, 128, "PLRU", clean_victims=False, inclusive=True),
        ),
        seed=7,
        combining_buffers=4,
    )


@pytest.mark.parametrize(
    "text",
    [
        "levels: [{name: L1, sets: 4, ways: 2}]",
        '{"levels": [{"name": "L1", "sets": 4, "ways": 2, "load_from": "MEM", "store_to": null}]}',
        "caches: {L1: {size: 512, ways: 2}}",
        "L1: {size: 0.5 KiB, sets: 4, ways: 2, cl_size: 64}",
        "L1: {size: 512 B, sets: 4}",
        "cache_line: 64 B\nL1: {sets: 0x4, associativity: 2}",
    ],
)
def test_spellings_of_one_hierarchy(hierarchy_of, text):
    assert hierarchy_of(text) == Hierarchy((CacheSpec("L1", 4, 2),))


BAD_HIERARCHIES = {
    "zero sets": ("L1: {sets: 0, ways: 1}", "h.yml:1: L1.sets: 0 is smaller than 1"),
    "zero ways": ("\nL1: {sets: 1, ways: 0}", "h.yml:2: L1.ways: 0 is smaller than 1"),
    "negative": ("L1: {sets: -4, ways: 1}", "L1.sets: -4 is smaller"),
    "huge": ("L1: {sets: 99999999999999999999, ways: 1}", "L1.sets: 99999999999999999999 is too large"),
    "no number": ("L1: {sets: many, ways: 1}", "'many' is no whole number"),
    "a fraction": ("L1: {sets: 4.5, ways: 1}", "'4.5' is no whole number"),
    "ways beyond the lines": ("L1: {size: 512 B, ways: 16}", "L1: has 16 ways, but only 8 lines"),
    "size that is no number of lines": ("L1: {size: 100 B, ways: 1}", "does not divide into lines of 64 B"),
    "size that is no number of sets": ("L1: {size: 1 KiB, ways: 3}", "does not divide into sets of 3 lines"),
    "size that contradicts": ("L1: {size: 1 KiB, ways: 4, sets: 3}", "is 1024 B, but 3 sets × 4 ways × 64 B are 768 B"),
    "size without a unit of data": ("L1: {size: 32 GHz, ways: 8}", "'32 GHz' has no unit of data"),
    "size of no bytes": ("L1: {size: 0 KiB, ways: 8}", "'0 KiB' is no whole number of bytes"),
    "size alone": ("L1: {size: 1 KiB}", "neither ways nor sets"),
    "no sets": ("L1: {ways: 8}", "L1: has no sets"),
    "no geometry": ("L1: {}", "L1: has no sets and ways"),
    "line of no bytes": ("L1: {sets: 4, ways: 2, line: 0 B}", "L1.line"),
    "unknown policy": ("L1: {sets: 4, ways: 2, policy: LFU}", "the policy 'LFU' is unknown; use one of LRU, FIFO"),
    "unknown key of a level": ("L1: {sets: 4, way: 2}", "L1.way: is an unknown key; did you mean 'ways'?"),
    "unknown key of the file": ("seeds: 4\nL1: {sets: 4, ways: 2}", "seeds: is an unknown key; did you mean 'seed'?"),
    "one value twice": ("L1: {sets: 4, ways: 2, line: 64, cl_size: 64}", "L1.cl_size: says the same as L1.line"),
    "one key twice": ("L1: {sets: 4, sets: 4, ways: 2}", "L1.sets: is given twice"),
    "one level twice": (
        "levels: [{name: A, sets: 1, ways: 1}, {name: A, sets: 1, ways: 1}]",
        "second level called 'A'",
    ),
    "level without a name": ("levels: [{sets: 1, ways: 1}]", "levels[1]: has no name"),
    "level called as memory": ("Mem: {sets: 1, ways: 1}", "Mem: is the name of memory"),
    "no flag": ("L1: {sets: 4, ways: 2, write_back: maybe}", "'maybe' is neither true nor false"),
    "link to nowhere": ("L1: {sets: 4, ways: 2, load_from: L9}\nL2: {sets: 4, ways: 2}", "no level 'L9'; did you mean"),
    "victim level that is absent": (
        "L1: {sets: 4, ways: 2, victim_level: V}",
        "L1.victim_level: there is no level 'V'",
    ),
    "victim level above": (
        "L1: {sets: 4, ways: 2}\nL2: {sets: 4, ways: 2, victim_level: L1}",
        "h.yml:2: L2.victim_level: 'L1' is not further out than L2; name one of MEM",
    ),
    "link to itself": ("L1: {sets: 4, ways: 2, load_from: L1}", "'L1' is not further out than L1"),
    "sub-blocks that do not divide": ("L1: {sets: 4, ways: 2, sub_blocks: 3}", "do not divide into 3 sub-blocks"),
    "levels in two places": ("levels: []\nL1: {sets: 4, ways: 2}", "stands beside the level 'L1'"),
    "no levels": ("seed: 3", "has no levels"),
    "an empty list of levels": ("levels: []", "holds no level"),
    "a list": ("- 1", "is no mapping"),
    "a word": ("cache", "is no mapping"),
    "levels that are a word": ("levels: none at all", "levels: is no mapping"),
    "a level that is a word": ("levels: [L1]", "levels[1]: is no mapping"),
    "no YAML": ("L1: {sets: 4\nL2: 3", "h.yml:2:"),
    "only comments": ("# nothing\n", "holds only comments"),
    "empty": (" \n", "is empty"),
    "a machine file": ("title: x\ntopology: {}\n", "is a machine file, not a hierarchy; write --machine"),
    "nested too deeply": ("[" * 20000, "h.yml"),
}


@pytest.mark.parametrize(("text", "part"), BAD_HIERARCHIES.values(), ids=BAD_HIERARCHIES)
def test_hierarchies_that_cannot_be(hierarchy_of, text, part):
    with pytest.raises(InputError) as raised:
        hierarchy_of(text)
    message = str(raised.value)
    assert part in message
    assert "h.yml" in message
    assert "\n" not in message


@pytest.mark.parametrize(("content", "part"), [(b"\x7fELF\x00\x01", "binary"), (b"\xff\xfe\xfa", "UTF-8")])
def test_files_that_are_no_text(tmp_path, content, part):
    path = tmp_path / "h.yml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=part):
        read_hierarchy(path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_hierarchy(tmp_path / "absent.yml")
    with pytest.raises(InputError, match="is a directory"):
        read_hierarchy(tmp_path)
    with pytest.raises(InputError, match="no name of a file"):
        read_hierarchy(Path("a\0b"))


WORDS = st.sampled_from(
    ["L1", "L2", "levels", "name", "sets", "ways", "size", "load_from", "victim_level", "id", "sequence", "kind", "lcg",
     "streams", "n", "loads", "phases", "repeat", "MEM", "-1", "0", "4", "1 KiB", "true", "null", "", "*a", "&a x", "é"]
)  # fmt: skip
VALUES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=12
)


@given(VALUES)
def test_no_hierarchy_or_case_ends_in_anything_but_an_input_error(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("fuzz") / "f.json"
    path.write_text(json.dumps(value))
    for read in (read_hierarchy, read_cases):
        try:
            read(path)
        except InputError as error:
            assert "f.json" in str(error)


@given(st.binary(max_size=200))
@example(b"\x00")
@example(b"- - - -")
@example(b"%TAG ! x\n--- 1\n--- 2")
def test_no_bytes_end_in_anything_but_an_input_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "f"
    path.write_bytes(data)
    for read in (read_hierarchy, read_cases, lambda path: list(read_trace(str(path)))):
        try:
            read(path)
        except InputError as error:
            assert str(path) in str(error)


def accesses(trace: Trace) -> list[tuple[int, int, int]]:
    return list(zip(trace.kinds, trace.addresses, trace.sizes, strict=True))


def test_a_trace(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b"# header\r\nL 0x10 8\r\n\r\n  s 64\t4 # a store\nN 0018446744073709551552 64")
    found = [access for trace in read_trace(str(path)) for access in accesses(trace)]
    assert found == [(0, 16, 8), (1, 64, 4), (2, 2**64 - 64, 64)]


def test_a_trace_of_many_blocks_keeps_its_order_and_its_line_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_file, "_BLOCK", 64)
    lines = [f"{'LSN'[number % 3]} {number * 7} {number % 9 + 1}" for number in range(500)]
    path = tmp_path / "t"
    path.write_text("\n".join(lines))
    found = [access for trace in read_trace(str(path)) for access in accesses(trace)]
    assert found == [(number % 3, number * 7, number % 9 + 1) for number in range(500)]
    path.write_text("\n".join([*lines, "L 0"]))
    with pytest.raises(InputError, match="t:501: 'L 0' is no access"):
        list(read_trace(str(path)))


BAD_LINES = {
    "a word": ("hello", "'hello' is no access; write a kind"),
    "no size": ("L 16", "'L 16' is no access"),
    "too much": ("L 16 8 8", "'L 16 8 8' is no access"),
    "an unknown kind": ("X 16 8", "'X' is no kind of access; write L, S or N"),
    "no address": ("L here 8", "'here' is no address"),
    "hex without 0x": ("L 1f40 8", "'1f40' is no address"),
    "binary": ("L 0b11 8", "'0b11' is no address"),
    "underscores": ("L 1_000 8", "'1_000' is no address"),
    "a sign": ("L +16 8", "'+16' is no address"),
    "a negative address": ("L -16 8", "the address '-16' is negative"),
    "size 0": ("L 16 0", "an access of '0' bytes"),
    "a negative size": ("L 16 -8", "the size '-8' is negative"),
    "a huge size": ("L 16 99999999999", "an access of '99999999999' bytes"),
    "an address of 65 bits": ("L 18446744073709551616 1", "leaves the 64 bits of an address"),
    "an end of 65 bits": ("S 0xffffffffffffffff 2", "the access of 2 bytes at '0xffffffffffffffff' leaves the 64 bits"),
    "an address of a hundred digits": (f"L {'9' * 100} 1", "leaves 64 bits"),
    "an address of ten thousand digits": (f"L {'9' * 10000} 1", "leaves 64 bits"),
    "binary junk": ("L 1 \0 2", "is not text but a binary file"),
    "not UTF-8": ("L \udcff 2", "is no address"),
}


@pytest.mark.parametrize(("line", "part"), BAD_LINES.values(), ids=BAD_LINES)
def test_lines_that_are_no_access(tmp_path, line, part):
    path = tmp_path / "trace.txt"
    path.write_bytes(f"L 0 8\n# comment\n\n{line}\nS 8 8\n".encode(errors="surrogateescape"))
    with pytest.raises(InputError) as raised:
        list(read_trace(str(path)))
    assert str(raised.value).startswith(f"{path}:4: ")
    assert part in str(raised.value)
    assert len(str(raised.value)) < len(str(path)) + 200


@pytest.mark.parametrize("content", ["", "\n\n", "# only comments\n"])
def test_a_trace_without_accesses(tmp_path, content):
    path = tmp_path / "trace.txt"
    path.write_text(content)
    with pytest.raises(InputError, match="holds no access"):
        list(read_trace(str(path)))


def test_traces_that_are_no_files(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_trace(str(tmp_path / "absent")))
    with pytest.raises(InputError, match="is a directory"):
        list(read_trace(str(tmp_path)))


def test_a_file_without_line_breaks_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "long"
    path.write_bytes(b"7" * (1 << 23))
    with pytest.raises(InputError, match=r"long:1: .* is no access"):
        list(read_trace(str(path)))


def test_odd_lines_have_a_smaller_address_space(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text("L 0 8\nL 0x4000000000000000 8\n")
    odd = Given(Hierarchy((CacheSpec("L1", 4, 2, line_bytes=48),)), "odd")
    with pytest.raises(InputError, match=r"trace.txt:2: .* leaves the 62 bits"):
        simulate_trace(odd, str(path), TraceOptions())
    simulate_trace(Given(Hierarchy((CacheSpec("L1", 4, 2),)), "even"), str(path), TraceOptions())


NUMBER_TEXTS = st.integers(-1, 2**65).flatmap(lambda n: st.sampled_from([str(n), hex(n), f"0{n}", f"{n:_}", f"+{n}"]))
LINES = st.tuples(
    st.sampled_from(["L", "S", "N", "l", "X", ""]),
    NUMBER_TEXTS,
    st.sampled_from(["8", "64", "1", "0", "-8", "0x8", "1_0", "-0", ""]),
    st.sampled_from(["", " ", "# c", " 1", "\r"]),
).map(lambda parts: " ".join(parts[:3]) + parts[3])
GOOD_LINES = st.tuples(st.sampled_from("LSN"), st.integers(0, 2**64 - 8), st.integers(1, 8))


@given(st.lists(GOOD_LINES), st.booleans())
def test_well_formed_traces_are_read_as_they_are(rows, hexadecimal):
    text = "".join(f"{kind} {hex(address) if hexadecimal else address} {size}\n" for kind, address, size in rows)
    expected = [("LSN".index(kind), address, size) for kind, address, size in rows]
    assert accesses(parse_trace(text.encode(), "t", 1)) == expected


@given(st.lists(LINES, max_size=3))
@example(["L 8 8", "S 16", "8 L 8"])
def test_the_quick_way_reads_what_the_slow_way_reads(lines):
    """What one refuses, the other leaves alone."""
    text = "\n".join(lines).encode()
    text = trace_file._COMMENT.sub(b"", text)
    quick = trace_file._quickly(text, 2**64)
    try:
        slow = trace_file._line_by_line(text, "t", 1, 2**64)
    except InputError:
        assert quick is None
    else:
        assert quick in (None, slow)


def executed(sequence: AccessSequence) -> list[tuple[str, int, int]]:
    """All accesses of a sequence: kind, address, size."""
    found: list[tuple[str, int, int]] = []
    for part in sequence.parts():
        if isinstance(part, Program):
            touched: list[tuple[int, int]] = []
            for _ in Walk(part, None, lambda *access, to=touched: to.append(access), 2**64).iterations():
                pass
            found += [(part.references[n].kind, address, part.references[n].size_bytes) for n, address in touched]
        else:
            found += [(("load", "store")[kind], address, size) for kind, address, size in accesses(part)]
    return found


def sequence_of(**parameters: object) -> AccessSequence:
    return read_sequence(parse_entry(json.dumps(parameters), "s.json", FileKind("sequence", "")))


SMALL = st.integers(1, 9)


@given(SMALL, SMALL, st.sampled_from([4, 8]), st.integers(0, 100))
def test_stencil(rows, columns, element, offset):
    sequence = sequence_of(kind="stencil2d5", M=rows, N=columns, element=element, offset=offset)
    a = lambda j, i: ("load", offset + (j * columns + i) * element, element)  # noqa: E731
    b = lambda j, i: ("store", offset + (rows * columns + j * columns + i) * element, element)  # noqa: E731
    expected = [
        access
        for j in range(1, rows - 1)
        for i in range(1, columns - 1)
        for access in (a(j, i - 1), a(j, i + 1), a(j - 1, i), a(j + 1, i), b(j, i))
    ]
    assert executed(sequence) == expected
    assert sequence.accesses == len(expected)


@given(st.integers(1, 40), st.integers(0, 3), st.sampled_from([1, 4, 8, 12]), SMALL, st.integers(0, 100))
def test_streams(n, loads, element, step, pad):
    sequence = sequence_of(kind="streams", n=n, loads=loads, element=element, step=step, pad=pad)
    expected = [
        ("load" if stream < loads else "store", stream * (n * element + pad) + i * element, element)
        for i in range(0, n, step)
        for stream in range(loads + 1)
    ]
    assert executed(sequence) == expected
    assert sequence.accesses == len(expected)


@given(SMALL, SMALL)
def test_columns(rows, columns):
    sequence = sequence_of(kind="columns", M=rows, N=columns)
    assert executed(sequence) == [("load", (j * columns + i) * 8, 8) for i in range(columns) for j in range(rows)]
    assert sequence.accesses == rows * columns


@given(st.integers(1, 300), st.integers(1, 1000), st.integers(0, 2**31), st.integers(0, 5), SMALL, st.integers(0, 99))
def test_lcg(count, extent, seed, store_every, size, offset):
    parameters = {"range": extent, "seed": seed, "store_every": store_every, "size": size, "offset": offset}
    x, expected = seed, []
    for t in range(count):
        x = (1103515245 * x + 12345) % 2**31
        kind = "store" if store_every and t % store_every == 0 else "load"
        expected.append((kind, (x >> 3) % extent * size + offset, size))
    assert executed(sequence_of(kind="lcg", count=count, **parameters)) == expected


def test_lcg_stores_at_the_same_places_whatever_the_blocks(monkeypatch):
    sequence = sequence_of(kind="lcg", count=1000, range=99, seed=1, store_every=7)
    whole = executed(sequence)
    monkeypatch.setattr("kernmodel.cachesim.sequences._BLOCK", 64)
    assert executed(sequence) == whole


def test_every_kind_has_a_test():
    assert set(KINDS) == {"stencil2d5", "streams", "columns", "lcg"}


LCG = {"kind": "lcg", "count": 9, "range": 9, "seed": 1}
BAD_SEQUENCES = {
    "no kind": ({"n": 3}, "has no kind; use one of stencil2d5"),
    "unknown kind": ({"kind": "stream", "n": 3}, "'stream' is unknown; did you mean 'streams'?"),
    "missing parameter": ({"kind": "streams", "loads": 1}, "has no n; give n"),
    "unknown parameter": (
        {"kind": "streams", "n": 3, "loads": 1, "steps": 2},
        "is no parameter of streams; did you mean",
    ),
    "zero": (LCG | {"count": 0}, "count: 0 is smaller than 1"),
    "step 0": ({"kind": "streams", "n": 3, "loads": 1, "step": 0}, "step: 0 is smaller"),
    "size 0": (LCG | {"size": 0}, "size: 0 is smaller"),
    "negative": (LCG | {"offset": -8}, "offset: -8 is smaller than 0"),
    "absurd count": (LCG | {"count": 10**15}, "has 1,000,000,000,000,000 accesses; take smaller parameters, or lift"),
    "absurd size": ({"kind": "columns", "M": 10**9, "N": 10**9}, "accesses; take smaller"),
    "more digits than a number has": (LCG | {"count": 10**40}, "is no whole number"),
    "too large": (LCG | {"offset": 2**63}, "is too large"),
    "overflow": ({"kind": "streams", "n": 2**61, "step": 2**60, "loads": 9}, "addresses that leave 62 bits"),
    "a list": ({"kind": ["lcg"]}, "kind: is a list"),
}


@pytest.mark.parametrize(("parameters", "part"), BAD_SEQUENCES.values(), ids=BAD_SEQUENCES)
def test_sequences_that_cannot_be(parameters, part):
    with pytest.raises(InputError) as raised:
        sequence_of(**parameters)
    assert part in str(raised.value)
    assert str(raised.value).startswith("s.json:1: ")


def shared_cases() -> list[str]:
    return [case["id"] for case in json.loads(SHARED.read_text())["cases"]] if SHARED.exists() else ["(absent)"]


@pytest.mark.parametrize("name", shared_cases())
def test_every_counter_of_every_case(name):
    if not SHARED.exists():
        pytest.skip("the shared cases are not there")
    case = find_case(read_cases(SHARED), name, "cases.json")
    found = simulate_case(case, "cases.json", TraceOptions())
    assert found.differences == ()
    assert len(found.phases) == case.repeat == len(case.phases) == 2


TINY = "levels: [{name: L1, sets: 1, ways: 1}]"
COPY = "sequence: {kind: streams, n: 16, loads: 1}"


def test_what_differs_is_named_by_phase_level_and_counter(cases_of):
    cases = cases_of(
        f"cases:\n- id: a\n  {TINY}\n  {COPY}\n"
        "  phases: [{L1: {loads: 16, stores: 15}}, {MEM: {memory_loads: 1}}]\n"
        f"- id: b\n  {TINY}\n  {COPY}\n  phases: [{{L1: {{load_hits: 0}}}}]"
    )
    found = dict(check_cases(cases, "cases.yml", TraceOptions()))
    assert [str(difference) for difference in found["a"]] == [
        "phase 1: L1 stores: 15 expected, 16 counted",
        "phase 2: MEM memory_loads: 1 expected, 32 counted",
    ]
    assert found["b"] == ()


def test_sequences_follow_one_another(cases_of):
    one, both = cases_of(
        f"cases:\n- {{id: one, {TINY}, sequence: {{kind: columns, M: 4, N: 16}}}}\n"
        f"- {{id: both, {TINY}, sequence: [{{kind: columns, M: 4, N: 16}}, {{kind: columns, M: 2, N: 8}}]}}"
    )
    assert sum(sequence.accesses for sequence in one.sequences) == 64
    assert simulate_case(both, "", TraceOptions()).phases[0].accesses == 80


def test_a_sequence_without_accesses_counts_nothing(cases_of):
    (case,) = cases_of(f"{TINY}\nsequence: {{kind: stencil2d5, M: 2, N: 9}}\nrepeat: 2")
    found = simulate_case(case, "", TraceOptions())
    assert [phase.accesses for phase in found.phases] == [0, 0]


def test_a_single_case_a_list_and_a_file_with_cases_are_read(cases_of):
    text = f"{{{TINY}, {COPY}, id: x, seed: 3, line: 32, note: for people}}"
    (single,) = cases_of(text)
    assert single.hierarchy == Hierarchy((CacheSpec("L1", 1, 1, 32),), seed=3)
    for form in (f"[{text}]", f"semantics: [a, b]\ncases: [{text}]"):
        (other,) = cases_of(form)
        assert (other.id, other.hierarchy, other.sequences) == ("x", single.hierarchy, single.sequences)


def test_what_stands_beside_the_cases_is_for_all_that_do_not_say(cases_of):
    cases = cases_of(
        f"{{line_size: 32, seed: 5, sequences: ignored, cases: [{{id: a, {TINY}, {COPY}}}, "
        f"{{id: b, {TINY}, {COPY}, line: 128, seed: 6}}]}}"
    )
    assert [case.hierarchy for case in cases] == [
        Hierarchy((CacheSpec("L1", 1, 1, 32),), seed=5),
        Hierarchy((CacheSpec("L1", 1, 1, 128),), seed=6),
    ]


def test_other_caches_are_not_compared_with_what_is_stated_for_its_own(cases_of):
    (case,) = cases_of(f"{{{TINY}, {COPY}, id: x, phases: [{{L1: {{loads: 3}}}}]}}")
    other = Given(Hierarchy((CacheSpec("L1", 8, 4),)), "other")
    assert simulate_case(case, "", TraceOptions()).differences
    assert simulate_case(case, "", TraceOptions(), other).differences is None
    assert simulate_case(case, "", TraceOptions(policy="FIFO")).differences is None
    (case,) = cases_of(f"{{{COPY}, id: x, phases: [{{L1: {{loads: 3}}}}]}}")
    assert simulate_case(case, "", TraceOptions(), other).differences


def test_phases_count_anew_and_keep_the_lines(cases_of):
    (case,) = cases_of(f"{{levels: [{{name: L1, sets: 8, ways: 4}}], {COPY}, repeat: 3}}")
    found = simulate_case(case, "", TraceOptions())
    assert [by_level(phase)["MEM"]["memory_loads"] for phase in found.phases] == [4, 0, 0]
    assert [phase.accesses for phase in found.phases] == [32, 32, 32]
    assert len(simulate_case(case, "", TraceOptions(repeat=5)).phases) == 5


BAD_CASES = {
    "no sequence": (f"[{{id: x, {TINY}}}]", "x: has no sequence"),
    "no case at all": (TINY, "holds no case"),
    "unknown key": (f"{{id: x, {TINY}, {COPY}, repet: 2}}", "x.repet: is an unknown key; did you mean 'repeat'?"),
    "bad level": (f"{{id: x, levels: [{{name: L1, sets: 0, ways: 1}}], {COPY}}}", "x.L1.sets: 0 is smaller"),
    "unknown level": (
        f"{{id: x, {TINY}, {COPY}, phases: [{{L2: {{}}}}]}}",
        "no level 'L2'; did you mean 'L1'?",
    ),
    "unknown counter": (f"{{id: x, {TINY}, {COPY}, phases: [{{L1: {{hits: 3}}}}]}}", "is no counter"),
    "counter of another": (
        f"{{id: x, {TINY}, {COPY}, phases: [{{MEM: {{loads: 3}}}}]}}",
        "mean 'memory_loads'?",
    ),
    "counter of no number": (f"{{id: x, {TINY}, {COPY}, phases: [{{L1: {{loads: a}}}}]}}", "'a' is no whole number"),
    "phases that contradict": (f"{{id: x, {TINY}, {COPY}, repeat: 2, phases: [{{}}]}}", "1 phases, but repeat is 2"),
    "absurd repeat": (f"{{id: x, {TINY}, {COPY}, repeat: 99999999}}", "99999999 is too large"),
    "twice": (f"[{{id: x, {TINY}, {COPY}}}, {{id: x, {TINY}, {COPY}}}]", "is the second case called 'x'"),
    "no case": ("cases: []", "holds no case"),
    "cases of a word": ("cases: none", "cases: is no list"),
    "a number": ("3", "is no list"),
}


@pytest.mark.parametrize(("text", "part"), BAD_CASES.values(), ids=BAD_CASES)
def test_cases_that_cannot_be(cases_of, text, part):
    with pytest.raises(InputError) as raised:
        cases_of(text)
    assert part in str(raised.value)
    assert "cases.yml:1" in str(raised.value)


def test_a_check_needs_levels_and_counters(cases_of):
    for text, missing in ((f"{{{COPY}, phases: [{{}}]}}", "levels"), (f"{{{COPY}, {TINY}}}", "phases")):
        with pytest.raises(InputError, match=f"case 1: has no {missing}"):
            list(check_cases(cases_of(text), "cases.yml", TraceOptions()))


def test_a_case_without_levels_needs_caches(cases_of):
    with pytest.raises(InputError, match="has no levels; give HIERARCHY"):
        simulate_case(cases_of(f"{{{COPY}}}")[0], "cases.yml", TraceOptions())


def test_counters_of_a_level_that_the_given_caches_do_not_have(cases_of):
    (case,) = cases_of(f"{{{COPY}, phases: [{{L9: {{loads: 1}}}}]}}")
    with pytest.raises(InputError, match="the level 'L9', which the hierarchy does not have"):
        simulate_case(case, "cases.yml", TraceOptions(), Given(Hierarchy((CacheSpec("L1", 1, 1),)), "h.yml"))


def test_a_case_is_found_by_its_id(cases_of):
    cases = cases_of(f"[{{id: one, {COPY}}}, {{id: two, {COPY}}}]")
    assert find_case(cases, "two", "f") == cases[1]
    assert find_case(cases[:1], None, "f") == cases[0]
    with pytest.raises(InputError, match="f: there is no case 'tow'; did you mean 'two'"):
        find_case(cases, "tow", "f")
    with pytest.raises(InputError, match="f: holds 2 cases; choose one with --case"):
        find_case(cases, None, "f")


def test_cases_files_are_told_from_traces(tmp_path):
    for name, content, expected in (
        ("a.json", "L 0 8", True),
        ("a.txt", ' \n {"cases": []}', True),
        ("a.txt", "# trace\nL 0 8", False),
        ("a", "", False),
    ):
        (tmp_path / name).write_text(content)
        assert is_cases_file(tmp_path / name) is expected
    assert not is_cases_file(tmp_path)
    assert not is_cases_file(Path("a\0b"))
