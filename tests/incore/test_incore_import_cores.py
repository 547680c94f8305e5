"""Cores that are put together: ports by scheme, neighbours, readings, models, and rows that readings contradict."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.avx512 import whole_cycles
from kernmodel.incore.tables.importers.contradictions import MENDED, Reference, contradictions, mended, throughput_of
from kernmodel.incore.tables.importers.instlatx64 import Reading
from kernmodel.incore.tables.importers.recipes import differences, recipes, reference_of, with_readings
from kernmodel.incore.tables.importers.schemes import scheme_ports, scheme_records, scheme_string
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable, parse_ports

SHARED = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")


def row(form: str, ports: str, **more: Any) -> InstructionData:
    uses = parse_ports(ports)
    count = round(sum(use.cycles for use in uses if not use.ports[0].endswith("D")))
    values = {"uops": count, "source": "LLVM's model", "latencies": {}, "default_latency": 4.0, **more}
    base = InstructionData(form, uses, {}, 4.0, count, None, "no", False, None, None, "")
    return replace(base, **values)


def mend(rows: list[InstructionData], **readings: float) -> dict[str, InstructionData]:
    """The rows mended by throughputs by mnemonic, by form."""
    measured = {item.form: Reading(None, readings[item.form.split()[0]]) for item in rows}
    return {item.form: item for item in mended(rows, Reference(measured, 4))}


@pytest.mark.parametrize(
    ("name", "string"),
    [
        ("ADC_R16_I8", "ADC (R16, I8)"),
        ("ADC_11_R16_R16", "ADC_11 (R16, R16)"),
        ("LEA_B_I_D8_R64", "LEA_B_I_D8 (R64)"),
        ("VGATHERDPD_YMM_VSIB_XMM_YMM", "VGATHERDPD (YMM, VSIB_XMM, YMM)"),
        ("MUL_M8", "MUL (M8)"),
        ("LODSQ", "LODSQ"),
        ("ROL_R32_CL", "ROL (R32, CL)"),
    ],
)
def test_strings_of_scheme_names(name: str, string: str) -> None:
    assert scheme_string(name) == string


def pack(path: Path, arch: str, *entries: tuple[str, dict[str, int], dict[str, Any]]) -> Path:
    common = {"retire_slots": 1, "uops_mite": 1, "uops_ms": 0, "operands": [], "latencies": [], "variants": {}}
    with gzip.open(path, "wt") as file:
        for string, ports, more in entries:
            values = {**common, "arch": arch, "string": string, "ports": ports, "uops": sum(ports.values()), **more}
            file.write(json.dumps(values) + "\n")
    return path


def test_the_nearest_core_is_the_one_with_the_same_ports(tmp_path: Path) -> None:
    old = pack(
        tmp_path / "a.jsonl.gz",
        "OLD",
        ("ADD (R64, R64)", {"0156": 1}, {}),
        ("LEA_B_I (R64)", {"1": 1}, {}),
        ("MOV (M64, R64)", {"237": 1, "4": 1}, {"variants": {"indexed": {"uops": 2, "retire_slots": 1, "ports": {}}}}),
        ("PADDB (MM, M64)", {"05": 1, "23": 1}, {}),
    )
    new = pack(
        tmp_path / "b.jsonl.gz",
        "NEW",
        ("ADD (R64, R64)", {"0156B": 1}, {}),
        ("LEA_B_I (R64)", {"0156B": 1}, {}),
        ("TDPBF16PS (TMM, TMM, TMM)", {"5": 1}, {}),
    )
    ports = {"add r64,r64": {"0156": 1.0}, "lea r64,m [b+i]": {"0156": 1.0}, "mov m64,r64": {"49": 1.0, "78": 1.0}}
    found = {record["string"]: record for record in scheme_records((old, new), ports, "MID")}
    assert found["ADD (R64, R64)"]["nearest"] == "OLD"
    assert found["LEA_B_I (R64)"]["nearest"] == "NEW"
    assert found["MOV (M64, R64)"]["variants"]["indexed"]["ports"] == {"49": 1.0, "78": 1.0}
    assert not found["PADDB (MM, M64)"]["own_ports"]
    assert found["PADDB (MM, M64)"]["ports"] == {"05": 1, "23": 1}
    assert "TDPBF16PS (TMM, TMM, TMM)" not in found


def test_a_move_that_the_core_does_not_eliminate_executes(tmp_path: Path) -> None:
    pair = {"start_op": "REG1", "target_op": "REG0", "cycles": 0, "cycles_same_reg": 1}
    more = {"uops": 0, "latencies": [pair], "variants": {"same_reg": {"uops": 1, "ports": {"0156": 1}}}}
    path = pack(tmp_path / "a.jsonl.gz", "OLD", ("MOV_89 (R64, R64)", {}, more))
    (executes,) = scheme_records((path,), {"mov r64,r64": {"0156": 1.0}}, "MID")
    assert (executes["uops"], executes["latencies"][0]["cycles"], executes["variants"]) == (1, 1, {})
    (eliminated,) = scheme_records((path,), {}, "MID")
    assert (eliminated["uops"], eliminated["ports"]) == (0, {})


def test_a_file_that_is_no_scheme_is_named(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.json.gz", "wt") as file:
        file.write("[1]")
    with pytest.raises(InstructionTableError, match=r"x\.json\.gz: cannot be read as ports by scheme"):
        scheme_ports(tmp_path / "x.json.gz", "ICL")


@pytest.mark.parametrize(("reading", "cycles"), [(3.98, 4.0), (3.38, 3.4), (21.91, 22.0), (4.05, 4.0), (0.99, 1.0)])
def test_readings_are_whole_cycles_within_the_error_of_the_clock(reading: float, cycles: float) -> None:
    assert whole_cycles(reading) == cycles


def test_a_reading_corrects_a_neighbour_and_its_memory_form() -> None:
    plain = row("vmulpd xmm,xmm,xmm", "1*p01", default_latency=3.0, source="a neighbour")
    loaded = replace(plain, form="vmulpd xmm,xmm,m128", latencies={("A2", "0"): 10.0})
    mixed = row("cmpxchg r64,r64", "1*p01", default_latency=1.0)
    rows = with_readings(
        (plain, loaded, mixed), {plain.form: Reading(3.98, None), mixed.form: Reading(5.0, None)}, "a CPU"
    )
    assert [item.default_latency for item in rows] == [4.0, 4.0, 1.0]
    assert rows[1].latencies == {("A2", "0"): 11.0}
    assert rows[0].source == "a neighbour; latency measured by InstLatx64 on a CPU"
    assert rows[2] == mixed


def test_a_reading_that_is_a_whole_cycle_from_a_long_latency_contradicts_it() -> None:
    plain = row("pclmulqdq xmm,xmm,i8", "1*p5", default_latency=7.0)
    (other,) = with_readings((plain,), {plain.form: Reading(6.05, None)}, "a CPU")
    assert other.default_latency == 6.0
    assert with_readings((plain,), {plain.form: Reading(7.15, None)}, "a CPU") == (plain,)


def test_carry_less_multiplication_of_sunny_cove_takes_six_cycles() -> None:
    for name in ("ICL", "ICX", "TGL", "RKL"):
        found = InstructionTable.open(load_parameters(name)).row("vpclmulqdq xmm,xmm,xmm,i8")
        assert found is not None
        assert found.default_latency == 6


def test_a_table_of_differences_holds_facts_that_differ() -> None:
    same, other = row("a r64", "1*p0"), row("b r64", "1*p0")
    renamed = replace(same, source="elsewhere")
    changed = replace(other, uops=3)
    assert list(differences((renamed, changed), (same, other))) == [changed]


@pytest.mark.parametrize(
    ("ports", "form", "cycles", "expected"),
    [
        ("2*p01", "vgetexppd xmm,xmm", 0.5, "1*p01"),
        ("1*p5", "vexpand xmm,xmm,xmm", 2.0, "2*p5"),
        ("1*p0", "vfoo zmm,zmm,zmm", 0.5, "1*p05"),
        ("1*p05", "vfoo zmm,zmm,zmm", 1.0, "1*p0"),
        ("1*p15", "vfoo ymm,ymm,ymm", 1.0, "1*p5"),
        ("2*p0+1*p05", "vdivpd zmm,zmm,zmm", 16.0, "2*p0+1*p05+16*p0DV"),
        ("1*FP01", "vblend xmm,xmm,xmm", 0.25, "1*FP0123"),
    ],
)
def test_a_model_is_mended_by_rule(ports: str, form: str, cycles: float, expected: str) -> None:
    found = mend([row(form, ports)], **{form.split()[0]: cycles})[form]
    assert found.ports == parse_ports(expected)
    assert found.source.endswith(MENDED)
    assert found.throughput is None


def test_memory_and_masked_forms_follow_their_register_form() -> None:
    plain = row("vfoo zmm,zmm,zmm", "2*p05")
    rows = [plain, row("vfoo zmm,zmm,m512", "2*p05+1*p23+1*p23D"), row("vfoo zmm{k},zmm,zmm", "2*p05")]
    readings = {plain.form: Reading(None, 0.5)}
    found = mended(rows, Reference(readings, 4))
    assert [item.ports for item in found] == [parse_ports(p) for p in ("1*p05", "1*p05+1*p23+1*p23D", "1*p05")]
    assert [item.uops for item in found] == [1, 2, 1]


def test_what_no_rule_explains_keeps_its_measured_throughput() -> None:
    found = mend([row("vfoo xmm,xmm,xmm", "1*p1")], vfoo=7.0)["vfoo xmm,xmm,xmm"]
    assert (found.ports, found.throughput) == (parse_ports("1*p1"), 7.0)


@pytest.mark.parametrize(
    ("item", "reading", "said"),
    [
        (row("vfoo xmm,xmm", "1*p0", source="uops.info"), Reading(None, 0.5), "uops.info"),
        (row("adc r64,r64", "1*p06", default_latency=1.0, latencies={("F", "0"): 1.0}), Reading(1.0, 1.0), "chain"),
        (row("vmovups m256,ymm", "1*p49+1*p78"), Reading(None, 1.0), "one cache line"),
        (row("vpxor xmm,xmm,xmm", "1*p015", breaks_dependency="zero"), Reading(0.2, 0.2), "rename"),
        (row("add r16,i16", "1*p0156"), Reading(None, 3.0), "prefix"),
        (row("vfoo zmm,zmm,zmm", "1*p05"), Reading(None, 1.0), "second 512-bit unit"),
        (row("vfoo ymm,ymm,ymm", "1*p015"), Reading(None, 0.6), "whole number of ports"),
        (row("vmovntps m256,ymm", "1*p49+1*p78"), Reading(None, 5.0), "memory"),
    ],
)
def test_differences_that_are_none_are_explained(item: InstructionData, reading: Reading, said: str) -> None:
    (found,) = contradictions([item], Reference({item.form: reading}, 6, client=True))
    assert said in found.explanation
    assert mended([item], Reference({item.form: reading}, 6, client=True)) == (item,)


def test_siblings_may_confirm_a_row() -> None:
    item = row("vfoo xmm,xmm,xmm", "1*p01")
    readings = {item.form: Reading(None, 1.0)}
    (alone,) = contradictions([item], Reference(readings, 4))
    (confirmed,) = contradictions([item], Reference(readings, 4, ({item.form: Reading(None, 0.5)},)))
    assert (alone.explanation, bool(confirmed.explanation)) == ("", True)


GROUPS = st.sampled_from(["0", "1", "5", "01", "05", "15", "015"])


@given(
    st.dictionaries(GROUPS, st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from(["xmm", "zmm"]),
    st.sampled_from([0.33, 0.5, 1.0, 2.0, 3.0, 6.0, 16.0]),
)
def test_mending_never_leaves_a_row_further_away(counts: dict[str, int], kind: str, cycles: float) -> None:
    item = row(f"vfoo {kind},{kind},{kind}", "+".join(f"{count}*p{group}" for group, count in counts.items()))
    (after,) = mended([item], Reference({item.form: Reading(None, cycles)}, 4))
    assert abs(throughput_of(after, 4) - cycles) <= abs(throughput_of(item, 4) - cycles) + 0.125
    assert after == item or after.source.endswith(MENDED)


@pytest.mark.thorough
@needs_data
@pytest.mark.parametrize(
    ("name", "file"), [("CLX", "clx"), ("ICX", "icx"), ("RKL", "rkl"), ("RWC", "adl-p"), ("ZEN4", "zen4")]
)
def test_nothing_unexplained_contradicts_the_carried_tables(name: str, file: str) -> None:
    parameters = load_parameters(name)
    table = InstructionTable.open(parameters)
    reference = reference_of(SHARED / "latency-throughput" / f"{file}.csv", name)
    rows = [found for form in table.forms() if " [" not in form and (found := table.row(form))]
    differing = list(contradictions(rows, reference))
    assert differing
    assert not [item for item in differing if not item.explanation]


def port_cells(name: str, *forms: str) -> list[tuple[PortUse, ...]]:
    table = InstructionTable.open(load_parameters(name))
    return [found.ports for form in forms if (found := table.row(form))]


def test_512_bit_operations_of_servers_and_clients() -> None:
    forms = ("vfmadd231pd zmm,zmm,zmm", "vaddpd zmm,zmm,zmm")
    assert port_cells("ICX", *forms) == [parse_ports("1*p05")] * 2
    assert port_cells("RWC", *forms) == [parse_ports("1*p05")] * 2
    assert port_cells("ICL", *forms) == [parse_ports("1*p0")] * 2
    assert port_cells("ZEN4", *forms) == [parse_ports("2*FP01"), parse_ports("2*FP23")]


def test_512_bit_loads_and_stores_of_redwood_cove() -> None:
    load, store, narrow = port_cells("RWC", "vmovupd zmm,m512", "vmovupd m512,zmm", "vmovupd ymm,m256")
    assert load == parse_ports("1*p23+1*p23D")
    assert store == parse_ports("1*p78+2*p49")
    assert narrow == parse_ports("1*p23A+1*p23AD")


def test_multiplication_became_faster_between_golden_and_redwood_cove() -> None:
    rows = [InstructionTable.open(load_parameters(name)).row("vmulpd ymm,ymm,ymm") for name in ("GLC", "RWC")]
    assert [found.default_latency for found in rows if found] == [4, 3]


def test_moves_between_general_registers() -> None:
    rows = {name: InstructionTable.open(load_parameters(name)).row("mov r64,r64") for name in ("ICL", "RKL", "RWC")}
    assert {name: found.eliminated for name, found in rows.items() if found} == {"ICL": False, "RKL": True, "RWC": True}


def test_tables_of_differences_name_where_other_rows_come_from() -> None:
    table = InstructionTable.open(load_parameters("GLC"))
    for form, words in (
        ("add r64,r64", "as its successor Redwood Cove; uops.info"),
        ("vmulpd ymm,ymm,ymm", "uops.info"),
    ):
        found = table.row(form)
        assert found is not None
        assert found.source.startswith(words)
    assert recipes()["GLC"].base == "RWC"


def test_random_numbers_take_what_was_read() -> None:
    """Regression: by their µops they took 19 cycles on Ice Lake."""
    for name, cycles in (("ICX", 70), ("GLC", 970.75)):
        found = InstructionTable.open(load_parameters(name)).row("rdrand r32")
        assert found is not None
        assert found.throughput == cycles
