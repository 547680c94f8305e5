"""C++ files: functions that are C after their template arguments are put in, and refusals that name what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.errors import SourceError
from kernmodel.source.cxx import c_of_cxx
from kernmodel.source.load import find_nests, load_kernel
from kernmodel.source.model import LoopNest

HEADER = """#pragma once
#include <vector>
namespace grid {
struct Field { int n; double *u; double *v; };  // plain data
class Domain { public: std::vector<double> x; double &at(int i) { return x[i]; } };
constexpr int WIDTH = 4;
}
"""
SOURCE = """#include <cmath>
#include <iostream>
#include "grid.hpp"
using namespace grid;
using std::cout;

namespace solver {

/* sums: a reference for the result */
static void norm(const double *x, int n, double &sum)
{
    sum = 0.0;
    for (int i = 0; i < n; ++i)
        sum += std::sqrt(x[i]) * static_cast<double>(n);
}

template <typename T, int STEP>
inline void scale(T *a, const T *b, T s, std::size_t n)
{
    for (std::size_t i = 0; i < n; i += STEP)
        a[i] = s * b[i];
}
template void scale<float, 2>(float *, const float *, float, std::size_t);

template <typename T>
void open_ended(T *a, int n) { for (int i = 0; i < n; ++i) a[i] = 0; }

void step(Field &f)
{
    for (int j = 0; j < f.n; ++j)
        for (int i = 0; i < WIDTH; ++i)
            f.u[j * WIDTH + i] = f.v[j * WIDTH + i];
}

double total(const std::vector<double> &v)
{
    double s = 0;
    for (double x : v) s += x;
    return s;
}

void Domain::clear() { for (int i = 0; i < 9; ++i) at(i) = 0; }
void tell(int n) { for (int i = 0; i < n; ++i) cout << "{ i" << i; }
int twice(int x) { return 2 * x; }
double twice(double x) { return 2 * x; }
}  // namespace solver
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "grid.hpp").write_text(HEADER)
    (tmp_path / "solver.cpp").write_text(SOURCE)
    return str(tmp_path / "solver.cpp")


def test_every_function_is_read_or_refused_by_name(file: str) -> None:
    found = {one.function: one for one in find_nests(file)}
    modelled = [name for name, one in found.items() if not isinstance(one.nest, SourceError)]
    assert modelled == ["norm", "scale", "step"]
    reasons = {name: str(one.nest) for name, one in found.items() if name not in modelled}
    assert "a template without arguments in this file" in reasons.pop("open_ended")
    assert "std::vector" in reasons.pop("total") and "names in Domain (::)" in reasons.pop("clear")
    assert "streams (cout)" in reasons.pop("tell") and "several functions with one name" in reasons.pop("twice")
    assert not reasons


def test_lines_stay_those_of_the_file(file: str) -> None:
    assert c_of_cxx(SOURCE).count("\n") == SOURCE.count("\n")
    lines = SOURCE.splitlines()
    for name in ("norm", "scale", "step"):
        line = load_kernel(file, function=name).inner.location.line
        assert line is not None and "for (" in lines[line - 1]
    with pytest.raises(SourceError, match=r"solver.cpp:35: total is no C .*std::vector"):
        load_kernel(file, function="total")


def test_references_templates_and_casts_become_c(file: str) -> None:
    norm, scale, step = (load_kernel(file, function=name) for name in ("norm", "scale", "step"))
    assert norm.operations.reductions == ("sum",) and norm.operations.flops_per_iteration == 3
    assert scale.inner.step == 2 and {array.element.name for array in scale.arrays.values()} == {"float"}
    assert set(step.arrays) == {"f->u", "f->v"} and [loop.variable for loop in step.loops] == ["j", "i"]


def test_a_cxx_file_is_compiled_and_predicted(file: str) -> None:
    answer = km.ecm(km.Nest(Path(file), function="scale"), "clx", n=100_000).answer
    assert answer.nest.function == "scale" and answer.loop.instructions
    assert answer.traffic.flops_per_iteration == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#include <vector>\nstd::vector<double> a;\n", "is C\\+\\+"),
        ("void f(std::vector<double> &a) { for (auto &x : a) x = 0; }", "f is no C .* std::vector"),
        ("template <class T> void f(T *a, int n) { for (int i = 0; i < n; ++i) a[i] = 0; }", "without arguments"),
    ],
)
def test_text_that_is_no_c_at_all(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(text)
    with pytest.raises(SourceError, match=message):
        load_kernel(str(tmp_path / "a.cpp"))


def test_what_is_no_c_costs_its_own_function_alone(tmp_path: Path) -> None:
    (tmp_path / "grid.h").write_text("class Grid { public: double& at(int i); };\ntypedef int64_t Index_t;\n")
    (tmp_path / "k.cpp").write_text(
        """#include "grid.h"
    #include "not/there.h"
    void members(Grid& g, int n) { for (Index_t i = 0; i < n; ++i) g.at(i) = double(i); }
    void shifted(double *x, int n) { for (Index_t i = 0; i < n; ++i) x[i] = double(n) * 0.5; }
    void strange(double *x, int n) { for (int i = 0; i < n; ++i) x[i] = int{i}; }
    """
    )
    found = {one.function: one.nest for one in find_nests(str(tmp_path / "k.cpp"))}
    assert isinstance(found["shifted"], LoopNest) and found["shifted"].operations.conversions == 1
    assert "an address that is computed" in str(found["members"])
    assert "k.cpp:5:73: syntax error" in str(found["strange"])
    assert load_kernel(str(tmp_path / "k.cpp"), line=4) == found["shifted"]


def test_many_directives_before_a_declaration_are_passed_over_quickly(tmp_path: Path) -> None:
    macros = "".join(f"#define LONG_NAME_OF_A_MACRO_{number} {number}\n" for number in range(1500))
    loop = "void f(double *a, int n) { for (int i = 0; i < n; i++) a[i] = 1.0; }\n"
    (tmp_path / "k.cpp").write_text(f"{macros}int one;\n{loop}")
    (found,) = find_nests(str(tmp_path / "k.cpp"))
    assert isinstance(found.nest, LoopNest)
