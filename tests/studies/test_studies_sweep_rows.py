"""Rows of a sweep against the answers of the single commands."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import KernmodelError, Note
from kernmodel.machine.load import load_machine
from kernmodel.report.json.ecm import ecm_body
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.grid import Axis, Outcome
from kernmodel.studies.sweep.rows import (
    ALL_CORES,
    CORE,
    answer_row,
    columns_of,
    complete,
    coordinate_name,
    from_level,
    row_of,
    study_columns,
    warnings_of,
)
from kernmodel.studies.sweep.study import SweepStudy, Varied, sweep_grid

BASE = Point(KernelRequest("stencil.c", "clx", {}), CodeRequest())


def rows_of(varied: Varied, base: Point = BASE) -> list[dict]:
    return [dict(row) for row, _ in SweepStudy.of(sweep_grid(base, varied)).rows(say=bottleneck_text)]


@pytest.fixture(scope="module")
def answer():
    return predict_ecm(replace(BASE.kernel, sizes={"N": 3000}), BASE.code)


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [{"N": 100}, {"N": 3000}, {"M": 700, "N": 90000}])
@pytest.mark.parametrize("machine", ["clx", "zen2"])
def test_a_row_has_the_numbers_of_the_single_command(machine, sizes):
    (row,) = rows_of(Varied((machine,), sizes={name: (value,) for name, value in sizes.items()}))
    body = ecm_body(predict_ecm(KernelRequest("stencil.c", machine, sizes), CodeRequest()), "cy/CL")
    prediction = body["prediction"]
    assert row["T_OL_cy_per_CL"] == prediction["t_ol"]
    assert row["T_nOL_cy_per_CL"] == prediction["t_nol"]
    for transfer in prediction["transfers"]:
        assert row[f"{transfer['name']}_cy_per_CL"] == transfer["cycles"]
    for level in prediction["levels"]:
        assert row[from_level(level["level"])] == level["cycles"]
    assert {unit: row[name] for unit, name in CORE.items()} == prediction["levels"][-1]["in_units"]
    assert row["binding"] == " + ".join(prediction["binding"])
    for name in ("bottleneck", "saturation_simple", "saturation_recursive", "ol_bound_by"):
        assert row[name] == prediction[name]
    for path in body["traffic"]["paths"]:
        per_line = 64 / body["traffic"]["iterations_per_unit"]
        assert row[f"{path['path']}_in_B_per_It"] == path["loads"] * per_line
        assert row[f"{path['path']}_out_B_per_It"] == (path["stores"] + path["clean_victims"]) * per_line


@pytest.mark.thorough
def test_performance_of_all_cores_is_that_of_ecm_cores():
    """Also above one ccNUMA domain, and on a machine that lacks some of the core counts."""
    rows = rows_of(Varied(("clx", "snb"), cores=(1, 4, 12, 16, 17), sizes={"N": (20000,)}))
    assert [row["error"] is None for row in rows] == [True] * 9 + [False]
    for row in rows[:9]:
        kernel = replace(BASE.kernel, machine=row["machine"], sizes={"N": 20000})
        single = predict_ecm(kernel, BASE.code, (row["cores"],))
        scaled = ecm_body(single, "cy/CL")["scaling"][0]
        assert {unit: row[name] for unit, name in ALL_CORES.items()} == scaled["in_units"]
        assert row["utilization"] == scaled["utilization"]
        assert row["saturated"] == ("yes" if scaled["saturated"] else "no")
        assert row["domains"] == scaled["domains"]


def test_performance_of_all_cores_is_that_of_the_busiest_where_a_loop_is_divided(tmp_path):
    """Five rows on four cores: one core has two of them."""
    (tmp_path / "rows.c").write_text(
        "double a[7][2000], b[7][2000];\n#pragma omp parallel for\n"
        "for (int j = 1; j < 6; ++j) for (int i = 1; i < 1999; ++i) b[j][i] = a[j][i-1] + a[j][i+1];\n"
    )
    kernel = KernelRequest(str(tmp_path / "rows.c"), "clx", {})
    (point,) = predict_ecm(kernel, CodeRequest(), (4,)).scaling
    (row,) = rows_of(Varied(("clx",), cores=(4,)), Point(kernel, CodeRequest()))
    (alone,) = rows_of(Varied(("clx",)), Point(kernel, CodeRequest()))
    rate = float(row["all_cores_It_per_s"])
    assert rate == pytest.approx(float(alone["core_It_per_s"]) * 5 / 2)
    assert rate == pytest.approx(point.units_per_cycle * row["iterations_per_CL"] * load_machine("clx").clock_hz)


def test_columns_are_known_before_there_is_an_answer(answer):
    axes = (Axis("size", "N", (1, 2)),)
    record = answer_row(BASE, answer)
    columns = study_columns(axes, [load_machine("clx")])
    assert columns == columns_of(axes, record)
    assert [column.name for column in columns] == ["point", "N", *record, "error"]
    types = {"float": float, "int": int, "str": str}
    for column in columns:
        value = record.get(column.name)
        assert value is None or type(value) is types[column.type], column


def test_columns_of_two_hierarchies_are_those_of_both():
    clx = load_machine("clx")
    flat = replace(clx, paths=(replace(clx.paths[0], name="L1Mem", outer="Mem"),), levels=clx.levels[:1])
    names = [column.name for column in study_columns((), [clx, flat])]
    assert len(names) == len(set(names))
    assert names.index("T_L3Mem_cy_per_CL") < names.index("T_L1Mem_cy_per_CL") < names.index("T_ECM_cy_per_CL")


def test_headings_differ():
    headings = [column.heading for column in study_columns((), [load_machine("clx")])]
    assert len(headings) == len(set(headings))
    assert "T_L3Mem cy/CL" in headings
    assert "all cores FLOP/s" in headings


def test_a_unit_without_meaning_is_none():
    row = rows_of(Varied(("clx",)), replace(BASE, kernel=replace(BASE.kernel, kernel="dot.c")))[0]
    assert row["core_LUP_per_s"] is None
    assert row["core_It_per_s"] > 0


def test_a_refused_point_has_a_row_with_its_error():
    rows = rows_of(Varied(("clx",), sizes={"N": (2, 1000)}))
    assert rows[0]["T_ECM_cy_per_CL"] is None
    assert "executes no iteration" in rows[0]["error"]
    assert rows[1]["error"] is None
    assert list(rows[0]) == list(rows[1])


def test_reuse_says_while_which_sizes_it_holds():
    row = rows_of(Varied(("clx",), sizes={"N": (3000,)}))[0]
    assert (row["reuse_in_L1"], row["reuse_in_L1_while"]) == ("i", None)
    assert (row["reuse_in_L2"], row["reuse_in_L2_while"]) == ("j", "N ≤ 32768")


def test_warnings_come_back_from_a_row(answer):
    notes = (Note("a", "one: thing"), Note("b", "assumed", "assumption"), Note("c", "two"))
    row = answer_row(BASE, replace(answer, notes=notes))
    assert warnings_of(row) == (("a", "one: thing"), ("c", "two"))
    assert warnings_of(answer_row(BASE, replace(answer, notes=()))) == ()


@pytest.mark.parametrize(
    ("axis", "name"),
    [
        (Axis("size", "N", (1,)), "N"),
        (Axis("size", "cores", (1,)), "size_cores"),
        (Axis("size", "point", (1,)), "size_point"),
        (Axis("block", "i", (1,)), "block_i"),
        (Axis("cores", "", (1,)), "cores"),
        (Axis("change", "L2.size", ("x2",)), "L2.size"),
    ],
)
def test_coordinates_never_hide_another_column(axis, name):
    assert coordinate_name(axis) == name


@given(st.integers(0, 10**9), st.tuples(st.integers(), st.sampled_from([None, ("-O2", "-g x")])))
def test_a_row_begins_with_number_and_coordinates(index, coordinates):
    axes = (Axis("size", "N", (1,)), Axis("flags", "", ((),)))
    row = row_of(axes, coordinates, Outcome(index, BASE, {"T_ECM_cy_per_CL": 1.0}))
    assert list(row) == ["point", "N", "flags", "T_ECM_cy_per_CL", "error"]
    assert row["point"] == index
    assert row["flags"] == (None if coordinates[1] is None else "-O2 '-g x'")
    columns = columns_of(axes, {"T_ECM_cy_per_CL": None, "T_OL_cy_per_CL": None})
    assert complete(columns, row)["T_OL_cy_per_CL"] is None


def test_no_number_is_infinite(answer):
    idle = replace(answer.prediction, t_ol=0.0, t_nol=0.0, transfers=(), levels=(("L1", 0.0),))
    with pytest.raises((IndexError, KernmodelError)):
        _ = idle.memory_cycles
    times = tuple(replace(one, cycles=0.0, penalty_cycles=0.0) for one in answer.prediction.transfers)
    row = answer_row(BASE, replace(answer, prediction=replace(idle, transfers=times)))
    assert row["core_It_per_s"] is None
    assert all(not isinstance(value, float) or math.isfinite(value) for value in row.values())


def test_a_cache_that_holds_no_reuse_is_empty_as_in_a_table_of_ecm() -> None:
    """Of layer conditions that all fail, the row once gave the share of hits of one core's accesses instead."""
    kernel = KernelRequest("daxpy", "hsw", {"N": 100_000})
    answer = predict_ecm(kernel, CodeRequest())
    record = answer_row(Point(kernel, CodeRequest()), answer)
    assert [record[f"reuse_in_{level}"] for level in ("L1", "L2", "L3")] == [None, None, "sweep"]
