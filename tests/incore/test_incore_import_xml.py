"""Import of uops.info's XML: the rows that the packs give, a stream of flat memory, and what a wrong file is told."""

import gzip
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.importers.build import import_uops, write_core
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.intel import refined_rows
from kernmodel.incore.tables.importers.uops import read_records
from kernmodel.incore.tables.importers.uopsxml import read_xml
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

SHARED = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")

_COUNTS = {
    "uops": "uops",
    "retire_slots": "uops_retire_slots",
    "uops_mite": "uops_MITE",
    "uops_ms": "uops_MS",
    "complex_decoder": "complex_decoder",
    "n_available_simple_decoders": "available_simple_decoders",
}
_LATENCIES = ("cycles", "cycles_addr", "cycles_addr_index", "cycles_mem", "cycles_same_reg")


def attributes(pairs: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{name}={quoteattr(str(value))}" for name, value in pairs)


def ports_text(ports: dict[str, int]) -> str:
    return "+".join(f"{count}*{group if group.startswith('FP') else 'p' + group}" for group, count in ports.items())


def measured(fields: dict[str, Any], suffix: str = "") -> Iterator[tuple[str, Any]]:
    for field, name in _COUNTS.items():
        if field in fields:
            yield name + suffix, int(fields[field])
    if fields.get("div_cycles"):
        yield "div_cycles" + suffix, fields["div_cycles"]
    if fields.get("tp") is not None:
        yield "TP_unrolled" + suffix, fields["tp"]
    if "ports" in fields and (suffix or fields["ports"]):
        yield "ports" + suffix, ports_text(fields["ports"])
    if fields.get("macro_fusible_with"):
        yield "macro_fusible", ";".join(fields["macro_fusible_with"])


def instruction_text(record: dict[str, Any], core: str) -> str:
    """A record of a pack as an element of the XML."""
    numbers: dict[str, int] = {}
    operands = []
    for number, operand in enumerate(record["operands"], 1):
        numbers.setdefault(operand["name"], number)
        access = {"r": int(operand["read"]), "w": int(operand["write"])}
        base = {"base": operand["mem_base"]} if operand["mem_base"] else {}
        pairs = {"idx": number, "name": operand["name"], "type": operand["type"], **access, **base}
        operands.append(f"<operand {attributes(pairs.items())}>reg</operand>")
    values = [*measured(record), *(pair for name, v in record["variants"].items() for pair in measured(v, "_" + name))]
    latencies = [
        "<latency "
        + attributes(
            [
                ("start_op", numbers[pair["start_op"]]),
                ("target_op", numbers[pair["target_op"]]),
                *((key, pair[key]) for key in _LATENCIES if pair[key] is not None),
            ]
        )
        + "/>"
        for pair in record["latencies"]
    ]
    head = attributes([("iform", record["iform"]), ("string", record["string"]), ("locked", int(record["locked"]))])
    return (
        f'<instruction asm="X" {head}>{"".join(operands)}'
        '<architecture name="OTHER"><IACA version="3.0"/></architecture>'
        f'<architecture name="{core}"><measurement {attributes(values)}>{"".join(latencies)}</measurement>'
        "</architecture></instruction>\n"
    )


def written(path: Path, elements: Iterable[str]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.write('<root date="2026-01-01"><extension name="BASE">\n')
        file.writelines(elements)
        file.write("</extension></root>\n")
    return path


MASKED = """<instruction asm="VADDPD" iform="VADDPD_ZMM" string="VADDPD (ZMM, K, ZMM, M64_1to8)" zeroing="1">
<operand idx="1" name="REG0" type="reg" w="1"/><operand idx="2" name="REG1" type="reg" r="1"/>
<operand idx="3" name="REG2" type="reg" r="1"/><operand idx="4" name="MEM0" type="mem" r="1"/>
<architecture name="ADL-P"><measurement uops="2" uops_retire_slots="1" ports="1*p05+1*p23" ports_indexed="1*p05+1*p23"
 uops_indexed="2" uops_retire_slots_indexed="2"><latency start_op="3" target_op="1" cycles="4"/>
<latency start_op="2" target_op="1" cycles="5" cycles_is_upper_bound="1"/></measurement></architecture></instruction>
"""
LOCKED = """<instruction iform="ADD_LOCK" string="ADD_LOCK (M64, R64)" locked="1">
<operand idx="1" name="MEM0" type="mem" r="1" w="1"/><operand idx="2" name="REG0" type="reg" r="1"/>
<architecture name="ADL-P"><measurement uops="8" uops_retire_slots="8" uops_MITE="4" uops_MS="4"
 TP_loop="18.0" TP_unrolled="17.5" ports="5*p0156+1*p49+1*p78"/></architecture></instruction>
"""


def test_a_masked_broadcast_and_a_locked_form(tmp_path: Path) -> None:
    path = written(tmp_path / "x.xml", [MASKED, LOCKED])
    text, report = import_uops(path, "adl-p")
    (tmp_path / "X.txt").write_text(text, encoding="utf-8")
    table = InstructionTable(tmp_path / "X.txt", load_parameters("SKL"))
    assert report.records == 2
    row = table.row("vaddpd zmm{kz},zmm,m64b")
    assert row is not None
    assert PortUse(("0", "5"), 1) in row.ports
    assert PortUse(("2D", "3D"), 1) in row.ports
    assert row.latencies.get(("1", "0"), row.default_latency) == 4
    assert row.latencies.get(("k", "0"), row.default_latency) == 5
    assert row.indexed is not None
    assert row.indexed.front_end is not None
    assert row.indexed.front_end.retire_slots == 2
    locked = table.row("lock add m64,r64")
    assert locked is not None
    assert locked.throughput == 17.5


@pytest.mark.parametrize(
    ("string", "form"),
    [
        ("VADDPD (ZMM, K, ZMM, ZMM)", "vaddpd zmm{k},zmm,zmm"),
        ("VADDPD_Z (ZMM, K, ZMM, ZMM)", "vaddpd zmm{kz},zmm,zmm"),
        ("VPCMPEQB (K, K, ZMM, ZMM)", "vpcmpeqb k{k},zmm,zmm"),
        ("KADDB (K, K, K)", "kaddb k,k,k"),
        ("VPMOVM2B (ZMM, K)", "vpmovm2b zmm,k"),
        ("VPSCATTERDD (VSIB_ZMM, K, ZMM)", "vpscatterdd vsib_zmm{k},zmm"),
    ],
)
def test_forms_of_avx512_strings(string: str, form: str) -> None:
    name = form_name(string)
    assert name is not None
    assert name.form == form


@pytest.mark.thorough
@needs_data
@pytest.mark.parametrize("core", ["SNB", "MTL-P"])
def test_the_xml_gives_the_rows_that_the_pack_gives(tmp_path: Path, core: str) -> None:
    pack = SHARED / "uops" / f"{core}.jsonl.gz"
    with gzip.open(pack, "rt") as file:
        path = written(tmp_path / "x.xml", (instruction_text(json.loads(line), core) for line in file))
    parameters = load_parameters({"MTL-P": "RWC"}.get(core, core))
    rows, report = refined_rows(read_xml(path, core.lower()), parameters)
    expected, counts = refined_rows(read_records(pack), parameters)
    assert report == counts
    assert rows == expected


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = written(tmp_path / f"{count}.xml", (LOCKED for _ in range(count)))
        tracemalloc.start()
        assert sum(1 for _ in read_xml(path, "ADL-P")) == count
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(4000) < 2 * peak(400)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "is no XML"),
        ("<root><instruction></root>", "is no XML"),
        ("<root/>", "holds no measurements of SKL"),
        (f"<root>{LOCKED}</root>", "it has ADL-P"),
        (
            f"<root>{LOCKED.replace('8.0', 'fast').replace('17.5', 'fast')}</root>".replace("ADL-P", "SKL"),
            "measurements",
        ),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.xml"
    path.write_text(text)
    with pytest.raises(InstructionTableError) as error:
        import_uops(path, "SKL")
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_missing_files_and_amd_cores(tmp_path: Path) -> None:
    with pytest.raises(InstructionTableError, match=r"none\.xml"):
        import_uops(tmp_path / "none.xml", "SKL")
    with pytest.raises(InstructionTableError, match="not imported from XML"):
        import_uops(written(tmp_path / "x.xml", [LOCKED]), "ZEN4")


def test_an_imported_core_can_be_used_by_path(tmp_path: Path) -> None:
    path = written(tmp_path / "x.xml", [MASKED, LOCKED])
    with pytest.raises(InstructionTableError, match="--like"):
        write_core(path, "ADL-P", tmp_path / "cores")
    lines = write_core(path, "ADL-P", tmp_path / "cores", like="ICL")
    assert "2 rows cover 100.0%" in lines[0]
    parameters = load_parameters(str(tmp_path / "cores" / "ADL-P.yml"))
    assert parameters.sources["issue width"].startswith("taken over from ICL: ")
    assert InstructionTable.open(parameters).row("lock add m64,r64") is not None
    (tmp_path / "cores" / "ADL-P.yml").write_text("kept")
    write_core(path, "ADL-P", tmp_path / "cores", like="ICL")
    assert (tmp_path / "cores" / "ADL-P.yml").read_text() == "kept"
