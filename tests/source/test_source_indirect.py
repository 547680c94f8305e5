"""Indices that are read from index arrays: what is read, what is refused, and that each offset is the one of the C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.formulas.formula import as_formula, size
from kernmodel.source.emit.compilable import compilable_source
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import Access, IndirectIndex, LoopNest
from kernmodel.source.nest.sizes import iterations_per_sweep, sizes_of
from kernmodel.source.nest.strides import access_strides, jumping_accesses, updates_per_iteration
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest

PARAMETERS = (
    "int n, int m, double x[restrict n], const double *restrict y, int idx[restrict n], int col[restrict n][m], "
    "long *flat, double a[restrict n][m], float *f, int (*rows)[4], double s"
)


def body(statements: str) -> LoopNest:
    return parse_kernel(f"void kernel({PARAMETERS})\n{{\n{statements}\n}}\n", "x.c")


def inner(statement: str) -> LoopNest:
    return body(f"for (int i = 0; i < n; ++i) {{ {statement} }}")


def nested(statement: str) -> LoopNest:
    return body(f"for (int j = 0; j < n; ++j) for (int i = 0; i < m; ++i) {{ {statement} }}")


def table(nest: LoopNest) -> list[tuple[str, str, str]]:
    return [(access.kind, access.text, str(access.offset)) for access in nest.accesses]


# What is read


def test_gather_reads_the_index_before_the_element() -> None:
    nest = inner("x[i] = y[idx[i]];")
    assert table(nest) == [("read", "idx[i]", "i"), ("read", "y[idx[i]]", "idx[i]"), ("write", "x[i]", "i")]
    gathered = nest.accesses[1]
    assert gathered.indirect == (IndirectIndex("idx[i]", "idx", nest.inner.symbol, "idx[i]"),)
    assert gathered.indirect[0].name in gathered.offset.free_symbols
    assert gathered.coefficients == (0,)
    assert not nest.accesses[0].indirect and not nest.accesses[2].indirect
    assert set(nest.symbols) == {"n"}


@pytest.mark.parametrize(
    ("statement", "offset", "positions"),
    [
        ("y[idx[i]]", "v", {"v": "i"}),
        ("y[idx[i] + 3]", "v + 3", {"v": "i"}),
        ("y[2 * idx[i]]", "2*v", {"v": "i"}),
        ("y[n - 1 - idx[i]]", "n - 1 - v", {"v": "i"}),
        ("y[idx[i] + i]", "v + i", {"v": "i"}),
        ("y[idx[2 * i + 1]]", "v", {"v": "2*i + 1"}),
        ("y[(size_t)idx[i]]", "v", {"v": "i"}),
        ("y[*(idx + i)]", "v", {"v": "i"}),
        ("*(y + idx[i])", "v", {"v": "i"}),
        ("y[idx[i] << 2]", "4*v", {"v": "i"}),
        ("y[col[j][i]]", "v", {"v": "j*m + i"}),
        ("y[flat[j * m + i]]", "v", {"v": "j*m + i"}),
        ("y[rows[i][3]]", "v", {"v": "4*i + 3"}),
        ("a[idx[j]][i]", "v*m + i", {"v": "j"}),
        ("a[j][idx[i]]", "j*m + v", {"v": "i"}),
        ("a[idx[i]][idx[j]]", "v*m + w", {"v": "i", "w": "j"}),
        ("y[idx[j] * m + i]", "v*m + i", {"v": "j"}),
        ("y[idx[i] - idx[i]]", "0", {}),
    ],
)
def test_offsets_hold_the_values_as_symbols(statement: str, offset: str, positions: dict[str, str]) -> None:
    nest = nested(f"s += {statement};")
    access = next(item for item in nest.accesses if item.array in "ya")
    names = {loop.variable: loop.symbol for loop in nest.loops} | {name: size(name) for name in "nm"}
    by_position = {entry.position: entry.symbol for entry in access.indirect}
    values = {name: by_position[as_formula(eval(text, dict(names)))] for name, text in positions.items()}
    assert len(access.indirect) == len(positions)
    assert access.offset == eval(offset, names | values)
    assert {entry.array for entry in access.indirect} <= {item.array for item in nest.reads()}


def test_store_through_an_index_is_a_read_and_a_write() -> None:
    assert table(inner("x[idx[i]] += y[i];")) == [
        ("read", "idx[i]", "i"),
        ("read", "y[i]", "i"),
        ("read", "x[idx[i]]", "idx[i]"),
        ("write", "x[idx[i]]", "idx[i]"),
    ]


def test_index_through_a_scalar_is_read_where_the_scalar_is_set() -> None:
    assert table(inner("int c = idx[i]; x[c] = y[c + 1];")) == [
        ("read", "idx[i]", "i"),
        ("read", "y[c+1]", "idx[i] + 1"),
        ("write", "x[c]", "idx[i]"),
    ]
    assert table(inner("int c; c = 2 * idx[i] + 1; x[c] = s;"))[-1] == ("write", "x[c]", "2*idx[i] + 1")


def test_index_that_an_outer_loop_sets() -> None:
    nest = body("for (int j=0;j<n;++j) { const int row = idx[j]; for (int i=0;i<m;++i) x[i] += a[row][i]; }")
    assert [(access.text, access.depth) for access in nest.accesses][:2] == [("idx[j]", 1), ("a[row][i]", 2)]
    sizes = {"n": 50, "m": 40}
    assert [stride for _, stride in access_strides(nest, sizes)] == [8, 8, 8]
    assert [access.text for access in jumping_accesses(nest, 0)] == ["a[row][i]"]


def test_equal_elements_have_one_symbol_however_they_are_written() -> None:
    nest = nested("x[col[j][i]] = y[col[j][0 + i]] + y[*(*(col + j) + i)];")
    placed = [access for access in nest.accesses if access.indirect]
    assert {access.indirect[0].name for access in placed} == {"col[j][i]"}
    assert [(access.text, access.count) for access in nest.accesses if access.array == "y"] == [("y[col[j][0+i]]", 2)]


def test_integer_arithmetic_of_indices_is_not_counted() -> None:
    assert inner("x[i] = s * y[2 * idx[i] + 1];").operations.flops_per_iteration == 1


# What follows from it


def test_strides_leave_out_what_jumps() -> None:
    nest = inner("x[idx[i]] = y[i] + y[idx[0] + i];")
    assert [(access.text, stride) for access, stride in access_strides(nest, {"n": 10})] == [
        ("idx[i]", 4),
        ("y[i]", 8),
        ("idx[0]", 0),
        ("y[idx[0]+i]", 8),
    ]
    assert [access.text for access in jumping_accesses(nest)] == ["x[idx[i]]"]


def test_reductions_and_updates() -> None:
    assert inner("x[idx[i]] += s;").operations.reductions == ()
    assert updates_per_iteration(inner("x[idx[i]] += s;")) == 1
    stays = nested("x[idx[j]] += a[j][i];")
    assert stays.operations.reductions == ("x",) and updates_per_iteration(stays) is None


def test_element_that_jumps_cannot_stay_in_a_register() -> None:
    assert not inner("x[idx[i]] = s;").notes
    notes = nested("x[idx[j]] += a[j][i];").notes
    assert {note.text.split()[0] for note in notes if note.code == "inner-invariant"} == {"idx", "x"}


def test_written_index_array_is_doubtful() -> None:
    (note,) = inner("idx[i] = idx[i] + 1; x[idx[i]] = s;").notes
    assert (note.code, note.kind) == ("index-array-written", "warning")
    assert not inner("idx[i] = idx[i] + 1; x[i] = s;").notes


def test_unknown_part_of_an_index_is_not_checked_and_the_rest_is() -> None:
    assert sizes_of(nested("a[idx[j]][i] = s;"), {"n": 9, "m": 9}) == {"n": 9, "m": 9}
    with pytest.raises(SourceError, match=r"a\[idx\[j\]\]\[i\+1\] is out of bounds: index 2"):
        sizes_of(nested("a[idx[j]][i + 1] = s;"), {"n": 9, "m": 9})
    with pytest.raises(SourceError, match=r"idx\[i\+1\] is out of bounds"):
        sizes_of(inner("x[idx[i + 1]] = s;"), {"n": 9})


def test_extent_that_only_an_index_array_knows_is_not_made_up() -> None:
    nest = body("for (int j=0;j<n;++j) for (int i=0;i<m;++i) { flat[j*m+i] = 1; flat[idx[j]*m+i] = 2; }")
    assert nest.arrays["flat"].shape == ()
    rows = inner("rows[idx[i]][0] = 1;")  # a size, which is asked for
    assert rows.arrays["rows"].shape[0].free_symbols == {"rows_extent"} <= set(rows.symbols)


def test_layer_conditions_refuse_and_say_what_to_do() -> None:
    with pytest.raises(UnsupportedKernelError) as caught:
        symbolic_nest(inner("x[i] = y[idx[i]];"))
    text = str(caught.value)
    assert text.startswith("x.c:3:38: y[idx[i]] is indirect; layer conditions do not cover it")
    assert text.endswith("simulate: --cache sim --indirect idx=uniform")


@pytest.mark.parametrize("statement", ["y[i] = x[idx[flat[i]]];", "const int c = flat[i]; y[i] = x[idx[c]];"])
def test_an_element_of_an_index_array_is_the_index_of_another(statement: str) -> None:
    nest = inner(statement.replace("y[i]", "f[i]"))
    assert [str(one.offset) for one in nest.accesses] == ["i", "flat[i]", "idx[flat[i]]", "i"]
    (entry,) = nest.accesses[2].indirect
    assert (entry.array, entry.through, entry.position) == ("idx", "flat[i]", nest.inner.symbol)
    assert nest.index_arrays == ("flat", "idx")


# What is refused

UNSUPPORTED = {
    "x[idx[idx[i] + 1]] = s;": ("3:33", "computed from what is found through an index array; an element of"),
    "int c = idx[2 * idx[i]]; x[c] = s;": ("3:39", "found through an index array"),
    "x[i * idx[i]] = s;": ("3:31", "is not affine"),
    "x[idx[i] * idx[i]] = s;": ("3:31", "is not affine"),
    "x[idx[i] / 2] = s;": ("3:33", "of what is read from memory"),
    "x[idx[i] % 4] = s;": ("3:33", "of what is read from memory"),
    "x[idx[i * i]] = s;": ("3:33", "index idx[i*i] is not affine"),
    "x[(int)f[i]] = s;": ("3:38", "f[i], which is read from memory but is no element of an integer array"),
    "x[nothing[i]] = s;": ("3:33", "array nothing is not declared"),
}


@pytest.mark.parametrize("statement", UNSUPPORTED)
def test_indices_that_are_refused(statement: str) -> None:
    place, message = UNSUPPORTED[statement]
    with pytest.raises(SourceError) as caught:
        inner(statement)
    assert str(caught.value).startswith(f"x.c:{place}: ") and message in str(caught.value)
    assert caught.value.todo


def test_index_that_is_read_before_the_nest() -> None:
    """Its value is a size that happens to stand in an array."""
    nest = body("const int c = idx[0]; for (int i = 0; i < n; ++i) x[c + i] = s;")
    assert {"idx_0", "n"} <= set(nest.symbols) and str(nest.accesses[0].offset) == "i + idx_0"
    assert not nest.accesses[0].indirect


# Text for the compiler


def test_bare_nest_declares_its_index_array(tmp_path: Path) -> None:
    text = "double x[M], y[N]; int idx[N];\nfor (int i = 0; i < N; ++i)\n    x[idx[i]] = y[i];\n"
    generated = compilable_source(parse_kernel(text, "bare.c"))
    assert "int idx[restrict N]" in generated
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source = tmp_path / "generated.c"
    source.write_text(generated)
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-DN=9", "-DM=9", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_carried_kernels_with_indices() -> None:
    expected = {
        "gather": ("x", "idx"),
        "scatter": ("y", "idx"),
        "histogram": ("count", "key"),
        "spmv-ell": ("x", "col"),
    }
    for name, (array, index) in expected.items():
        nest = load_kernel(name)
        jumping = {access.array: access.indirect[0].array for access in jumping_accesses(nest)}
        assert jumping == {array: index}
        assert all(nest.arrays[access.array].shape for access in nest.accesses)
    assert iterations_per_sweep(load_kernel("spmv-ell"), {"N": 10, "K": 7}) == 70


# The law: at numbers, offsets are where the C goes


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """An index over i, j, n and elements of idx and col, as C and as Python."""
    terms = [str(draw(st.integers(-5, 40)))]
    choices = ["i", "j", "n", "idx[i]", "idx[j]", "idx[i + 2*j]", "col[j][i]", "col[i][1]", "flat[j*n + i]"]
    for atom in draw(st.lists(st.sampled_from(choices), max_size=3)):
        terms.append(f"{draw(st.sampled_from([1, -1, 2, 3]))}*{atom}")
    return " + ".join(terms)


def value_of(access: Access, point: dict[str, int], arrays: dict[str, list[int]]) -> int:
    numbers = dict(point)
    for entry in access.indirect:
        numbers[entry.name] = arrays[entry.array][int(entry.position.value(point))]
    return int(access.offset.value(numbers))


@given(expressions(), st.booleans(), st.randoms(use_true_random=False))
def test_offset_is_where_the_c_goes(index: str, through: bool, random: Random) -> None:
    n = 6
    setting, used = (f"int c = {index};", "c") if through else ("", index)
    declared = "double *z, int idx[restrict 100], int col[restrict 100][n], int *flat, int n"
    loops = "for (int j = 0; j < n; ++j) for (int i = 0; i < n; ++i)"
    nest = parse_kernel(f"void f({declared}) {{ {loops} {{ {setting} z[{used}] = 1; }} }}", "x.c")
    arrays = {name: [random.randrange(50) for _ in range(100)] for name in ("idx", "col", "flat")}
    as_python = re.sub(r"col\[(\w)\]\[(\w)\]", r"col[\1*n + \2]", index)
    (written,) = nest.writes()
    for j, i in [(0, 0), (1, 0), (2, 5), (5, 3)]:
        point = {"i": i, "j": j, "n": n}
        assert value_of(written, point, arrays) == eval(as_python, {**arrays, **point})


ROWS = (
    "double *row = x + idx[j] * m; for (int i = 0; i < m; ++i) f[i] += row[i];",
    "int here = idx[j]; double *row; row = &x[here * m]; for (int i = 0; i < m; ++i) f[i] += row[i];",
    "double *row = &x[m * idx[j]]; for (int i = 0; i < m; ++i) f[i] += *(row + i);",
)


@pytest.mark.parametrize("statement", ROWS)
def test_rows_that_an_index_array_chooses(statement: str) -> None:
    found = body(f"for (int j = 0; j < n; ++j) {{ {statement} }}")
    plain = nested("f[i] += x[idx[j] * m + i];")
    offsets = {(item.array, item.kind, str(item.offset)) for item in found.accesses}
    assert offsets == {(item.array, item.kind, str(item.offset)) for item in plain.accesses}
    assert [item.depth for item in found.accesses if item.array == "idx"] == [1]


def test_rows_of_an_array_that_an_index_array_chooses() -> None:
    found = body("for (int j = 0; j < n; ++j) { double *row = a[idx[j]]; for (int i = 0; i < m; ++i) f[i] += row[i]; }")
    plain = nested("f[i] += a[idx[j]][i];")
    assert {(item.array, str(item.offset)) for item in found.accesses} == {
        (item.array, str(item.offset)) for item in plain.accesses
    }
