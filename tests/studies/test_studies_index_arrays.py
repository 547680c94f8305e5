"""`--indirect`: distributions of index arrays, and files of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernmodel as km
from kernmodel.errors import InputError, UsageError
from kernmodel.machine.load import load_machine
from kernmodel.source.load import parse_kernel
from kernmodel.studies.predict.index_arrays import parse_indirect
from kernmodel.studies.predict.request import TrafficAnswer
from kernmodel.traffic.options import Distribution, SimulationOptions
from kernmodel.traffic.simulation.simulate import simulate


def test_distributions_by_name_of_the_array() -> None:
    assert parse_indirect(()) == {}
    assert parse_indirect(["idx=uniform", " col = banded:64 ", "idx=banded:0"]) == {
        "idx": Distribution("banded", "banded:0", width=0),
        "col": Distribution("banded", "banded:64", width=64),
    }
    assert parse_indirect(["a=uniform:500", "b=banded:3:70"]) == {
        "a": Distribution("uniform", "uniform:500", extent=500),
        "b": Distribution("banded", "banded:3:70", width=3, extent=70),
    }


def test_pointers_that_do_not_say_how_many_elements_they_have() -> None:
    gather = """void f(int n, double *restrict y, const double *x, const int *idx) {
        for (int i = 0; i < n; ++i) y[i] = x[idx[i]]; }"""
    lines = []
    for elements in (100, 10_000_000):
        options = km.CacheOptions(indirect={"idx": f"uniform:{elements}"})
        traffic = km.data_traffic(gather, "clx", cache=options, n=200_000).answer.traffic
        lines.append(traffic.paths[0].loads / traffic.iterations_per_unit)
    # of y and idx 3/16 of a line; of x nothing, or a line of its own
    assert lines == pytest.approx([3 / 16, 1 + 3 / 16], rel=0.02)
    with pytest.raises(InputError, match=r"as in idx=uniform:5000"):
        km.data_traffic(gather, "clx", cache=km.CacheOptions(indirect={"idx": "uniform"}), n=1000)


def test_an_index_array_within_an_index_array_is_the_two_put_together() -> None:
    """x[p[q[i]]] touches what x[c[i]] touches with c[i] = p[q[i]], and reads q and the entries of p besides."""
    p, q = [17 * k * k % 800 for k in range(500)], [13 * k % 500 for k in range(4096)]
    text = """void f(int n, double *restrict y, const double *restrict x, const int *p, const int *q, const int *c) {
        for (int i = 0; i < n; ++i) y[i] = x[%s]; }"""

    def served(index: str, **arrays: list[int]) -> dict[str, dict[str, float]]:
        stated = {name: Distribution("table", name, values=tuple(values)) for name, values in arrays.items()}
        nest, options = parse_kernel(text % index, "x.c"), SimulationOptions(indirect=stated)
        # all of it fits into L2, so that what else is read does not matter there
        traffic = simulate(nest, load_machine("clx"), {"n": 4096}, options=options)
        return {one.access: dict(one.served_by) for one in traffic.accesses}

    two, one = served("p[q[i]]", p=p, q=q), served("c[i]", c=[p[k] for k in q])
    for there, here in {"x[p[q[i]]]": "x[c[i]]", "q[i]": "c[i]"}.items():
        assert two[there]["L2"] == pytest.approx(one[here]["L2"], rel=0.1)
        assert two[there]["Mem"] == one[here]["Mem"] == 0


def test_nests_of_a_file_take_their_own_of_the_index_arrays_that_are_stated() -> None:
    text = """void f(int n, double *restrict y, const double *restrict x, const int *idx) {
        for (int i = 0; i < n; ++i) y[i] = x[idx[i]]; }
    void g(int n, double *y) { for (int i = 0; i < n; ++i) y[i] = 0.0; }"""
    options = km.CacheOptions(indirect={"idx": "uniform:100"})
    found = [one.answer for one in km.traffic_nests(text, "clx", cache=options, n=1000)]
    assert [one.nest.function for one in found if isinstance(one, TrafficAnswer)] == ["f", "g"]


def test_structures_that_index_arrays_choose_from_have_a_size() -> None:
    text = """struct kind { double mass, charge; };
    void f(int n, double *x, const struct kind *of, const int *is) {
        for (int i = 0; i < n; ++i) x[i] *= of[is[i]].mass; }"""
    nest = parse_kernel(text, "x.c")
    assert set(nest.symbols) == {"n", "of_extent"} and str(nest.arrays["of"].shape[0]) == "of_extent"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform", "'uniform' is not NAME=DISTRIBUTION; write NAME=uniform"),
        ("idx=", "'idx=' is not NAME=DISTRIBUTION"),
        ("=uniform", "is not NAME=DISTRIBUTION"),
        ("3x=uniform", "is not NAME=DISTRIBUTION"),
        ("idx=unifrom", "'unifrom' is neither uniform nor banded:WIDTH nor a file; did you mean idx=uniform?"),
        ("idx=band:4", "did you mean idx=banded:WIDTH?"),
        ("idx=nothing-like-it.txt", "nor a file; write NAME=uniform"),
        ("idx=banded", "'banded' has no width that is a whole number from 0 on; say how far"),
        ("idx=banded:", "has no width"),
        ("idx=banded:wide", "has no width"),
        ("idx=banded:-4", "has no width"),
        ("idx=banded:" + "9" * 30, "has no width"),
        ("idx=uniform:0", "'uniform:0' has no number of elements; say how many elements"),
        ("idx=banded:4:many", "has no number of elements"),
    ],
)
def test_what_is_no_distribution(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_indirect([text])
    assert str(caught.value).startswith("--indirect: ") and message in str(caught.value)


@pytest.mark.parametrize("text", ["3\n1\n4\n", "3 1\t4", "\n 3\r\n1\r\n\r\n4"])
def test_file_of_numbers(text: str, tmp_path: Path) -> None:
    file = tmp_path / "idx=1.txt"
    file.write_bytes(text.encode())
    assert parse_indirect([f"idx={file}"])["idx"] == Distribution("table", str(file), values=(3, 1, 4))


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_numbers_read_back(tmp_path_factory: pytest.TempPathFactory, values: list[int]) -> None:
    file = tmp_path_factory.mktemp("table") / "values"
    file.write_text("\n".join(map(str, values)))
    assert parse_indirect([f"x={file}"])["x"].values == tuple(values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "values: holds no values; give at least one"),
        (b" \n", "holds no values"),
        (b"\x7fELF\0\1", "values: is a binary file"),
        (b"1\n2\n-3\n", "values:3: '-3' is no index; indices are whole numbers"),
        (b"1 2.5", "values:1: '2.5' is no index"),
        (b"0x10", "'0x10' is no index"),
        (b"1\n99999999999999999999", "values:2: '99999999999999999999' is no index"),
        (b"\xff\xfe", "is no index"),
        (b"\x93NUMPY\1\0", "cannot be read as an .npy file"),
    ],
)
def test_files_without_indices(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        parse_indirect([f"idx={file}"])
    assert message in str(caught.value)


def test_directory_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a directory"):
        parse_indirect([f"idx={tmp_path}"])


def test_numpy_arrays(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    for name, array in {
        "good": numpy.array([[3, 1], [4, 1]], dtype=numpy.uint8),
        "real": numpy.array([1.0]),
        "negative": numpy.array([5, -1]),
        "empty": numpy.array([], dtype=int),
        "objects": numpy.array([{}], dtype=object),
    }.items():
        numpy.save(tmp_path / f"{name}.npy", array)
    assert parse_indirect([f"a={tmp_path / 'good.npy'}"])["a"].values == (3, 1, 4, 1)
    for name, message in {
        "real": "float64 values, no integers",
        "negative": "'-1' is no index",
        "empty": "holds no values",
        "objects": "cannot be read as an .npy file",
    }.items():
        with pytest.raises(InputError, match=message):
            parse_indirect([f"a={tmp_path / f'{name}.npy'}"])
