"""Files of studies: they go on where they were cut off, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import InputError
from kernmodel.resources import carried_folder
from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep import checkpoint as journal_module
from kernmodel.studies.sweep.checkpoint import Checkpoint, study_identity
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.traffic.options import Distribution, SimulationOptions

STUDY = "0123456789abcdef"
ROWS = [{"point": k, "N": 100 * k, "T_ECM": k / 3, "error": None if k % 2 else "zu klein: ½"} for k in range(6)]
GRID = Grid(Point(KernelRequest("stencil", "clx", {}), CodeRequest()), (Axis("size", "N", (100, 200)),))


def write(path: Path, rows=ROWS, study: str = STUDY) -> bytes:
    with Checkpoint.open(path, study) as journal:
        for row in rows[journal.done :]:
            journal.add(row)
    return path.read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return write(tmp_path_factory.mktemp("whole") / "rows.jsonl")


def test_lines_are_json_with_study_and_point(whole) -> None:
    rows = [json.loads(line) for line in whole.decode().splitlines()]
    assert rows == [{"study": STUDY, **row} for row in ROWS]


@given(st.data())
def test_cut_off_anywhere_and_gone_on_is_the_same_file(whole, tmp_path_factory, data) -> None:
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path_factory.mktemp("cut") / "rows.jsonl"
    path.write_bytes(whole[:cut])
    with Checkpoint.open(path, STUDY) as journal:
        assert journal.done == whole[:cut].count(b"\n")
        assert list(journal.rows()) == ROWS[: journal.done]
    assert write(path) == whole


def test_each_row_is_written_at_once(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    with Checkpoint.open(path, STUDY) as journal:
        for count, row in enumerate(ROWS, 1):
            journal.add(row)
            assert path.read_bytes().count(b"\n") == count == journal.done
        assert list(journal.rows()) == []


def test_columns_give_the_order_and_missing_values(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    with Checkpoint.open(path, STUDY, ["point", "error", "N", "T"]) as journal:
        journal.add({"N": 5, "more": 1, "T": math.inf})
    expected = f'{{"study": "{STUDY}", "point": 0, "error": null, "N": 5, "T": null, "more": 1}}\n'
    assert path.read_text() == expected


def test_rows_come_in_order(tmp_path) -> None:
    with Checkpoint.open(tmp_path / "rows.jsonl", STUDY) as journal, pytest.raises(ValueError, match="point 3 comes"):
        journal.add(ROWS[3])


def test_another_study(tmp_path) -> None:
    before = write(tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match=r"holds another study.*give another file"):
        Checkpoint.open(tmp_path / "rows.jsonl", "f" * 16)
    assert (tmp_path / "rows.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"void f(void) {}\n", b"no newline", b"\x00\x01\xff\xfe" * 10, b"[1, 2]\n", b'{"N": 1}\n', b"\n"],
)
def test_files_that_are_no_journal_are_left_alone(tmp_path, content) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no file of a sweep"):
        Checkpoint.open(path, STUDY)
    assert path.read_bytes() == content


def test_a_file_with_a_point_taken_out(tmp_path, whole) -> None:
    path = tmp_path / "rows.jsonl"
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(InputError, match="lacks points before point 3"):
        Checkpoint.open(path, STUDY)


def test_directories_and_missing_folders(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot go on with this file: Is a directory"):
        Checkpoint.open(tmp_path, STUDY)
    with pytest.raises(InputError, match="No such file"):
        Checkpoint.open(tmp_path / "none" / "rows.jsonl", STUDY)


def test_devices() -> None:
    with pytest.raises(InputError, match="is no regular file"):
        Checkpoint.open(Path("/dev/null"), STUDY)


def test_pipes(tmp_path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match="pipe: is no regular file"):
        Checkpoint.open(path, STUDY)


def test_two_writers(tmp_path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "rows.jsonl"
    with Checkpoint.open(path, STUDY), pytest.raises(InputError, match="another process writes this file"):
        Checkpoint.open(path, STUDY)
    Checkpoint.open(path, STUDY).__exit__(None, None, None)


# --- what identifies a study


def test_identity_is_stable_and_short() -> None:
    found = study_identity(GRID)
    assert found == study_identity(GRID)
    assert len(found) == 16
    assert int(found, 16) >= 0


def test_identity_is_of_texts_not_paths(tmp_path) -> None:
    copy = tmp_path / "other.c"
    copy.write_bytes((carried_folder("kernels") / "stencil.c").read_bytes())
    same = replace(GRID, base=replace(GRID.base, kernel=replace(GRID.base.kernel, kernel=str(copy))))
    assert study_identity(same) == study_identity(GRID)
    copy.write_text(copy.read_text() + "\n")
    assert study_identity(same) != study_identity(GRID)


def test_identity_does_not_depend_on_the_order_of_sizes() -> None:
    def with_sizes(sizes):
        return replace(GRID, base=replace(GRID.base, kernel=replace(GRID.base.kernel, sizes=sizes)))

    assert study_identity(with_sizes({"M": 1, "N": 2})) == study_identity(with_sizes({"N": 2, "M": 1}))


def changed(**kernel) -> Grid:
    return replace(GRID, base=replace(GRID.base, kernel=replace(GRID.base.kernel, **kernel)))


DIFFERENT = [
    changed(machine="snb"),
    changed(safety=0.5),
    changed(sizes={"M": 5}),
    changed(simulation=SimulationOptions(indirect={"idx": Distribution("uniform", "uniform")})),
    changed(simulation=SimulationOptions()),
    replace(GRID, base=replace(GRID.base, code=CodeRequest(flags=("-O1",)))),
    replace(GRID, base=replace(GRID.base, changes=(Change("clock", "x2"),))),
    replace(GRID, base=replace(GRID.base, blocks=(("i", 8),))),
    replace(GRID, axes=(Axis("size", "N", (100, 300)),)),
    replace(GRID, axes=(Axis("size", "N", (200, 100)),)),
    replace(GRID, axes=(Axis("size", "M", (100, 200)),)),
    replace(GRID, axes=(*GRID.axes, Axis("flags", "", (None, ("-O1",))))),
    replace(GRID, axes=(*GRID.axes, Axis("machine", "", ("clx", "snb")))),
]


def test_identity_tells_studies_apart() -> None:
    identities = [study_identity(grid) for grid in (GRID, *DIFFERENT)]
    assert len(set(identities)) == len(identities)


def test_identity_holds_the_version(monkeypatch) -> None:
    before = study_identity(GRID)
    monkeypatch.setattr(journal_module, "__version__", "99")
    assert study_identity(GRID) != before


def test_assembly_counts_by_its_text(tmp_path) -> None:
    asm = tmp_path / "k.s"
    asm.write_text("nop\n")
    grid = replace(GRID, base=replace(GRID.base, code=CodeRequest(asm=str(asm))))
    before = study_identity(grid)
    asm.write_text("ret\n")
    assert study_identity(grid) != before
    with pytest.raises(InputError, match="No such file"):
        study_identity(replace(GRID, base=replace(GRID.base, code=CodeRequest(asm=str(tmp_path / "none.s")))))
    with pytest.raises(InputError, match="standard input"):
        study_identity(replace(GRID, base=replace(GRID.base, code=CodeRequest(asm="-"))))
