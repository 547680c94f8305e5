"""C++ files: functions that are C after their template arguments are put in, and refusals that name what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

import kernmodel as km
from kernmodel.errors import SourceError
from kernmodel.source.cxx import c_of_cxx
from kernmodel.source.load import find_nests, load_kernel, parse_kernel
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
    assert modelled == ["norm", "scale", "step", "clear"]
    reasons = {name: str(one.nest) for name, one in found.items() if name not in modelled}
    assert "a template without arguments in this file" in reasons.pop("open_ended")
    assert "a loop over a range" in reasons.pop("total")
    assert "C++ that is no C (streams (cout)) in a loop nest" in reasons.pop("tell")
    assert not reasons


def test_lines_stay_those_of_the_file(file: str) -> None:
    assert c_of_cxx(SOURCE).count("\n") == SOURCE.count("\n")
    lines = SOURCE.splitlines()
    for name in ("norm", "scale", "step"):
        line = load_kernel(file, function=name).inner.location.line
        assert line is not None and "for (" in lines[line - 1]
    with pytest.raises(SourceError, match=r"solver.cpp:35: total is no C .*a loop over a range"):
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
        (
            "void f(Grid<double> &a) { for (int i = 0; i < 9; ++i) a(i) = 0; }",
            "f is no C .* a class of templates .Grid.",
        ),
        ("void f(std::vector<double> &a) { for (auto &x : a) x = 0; }", "f is no C .* a loop over a range"),
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


def test_long_comments_in_a_class_are_passed_over_quickly(tmp_path: Path) -> None:
    comment = f"/* {'what it stands for, ' * 150}*/"
    members = f"{comment}\ndouble *u; {comment} double {comment} &at(int i) {{ return u[i]; }}"
    (tmp_path / "line.hpp").write_text(f"class Line {{ public: {members} }};")
    (tmp_path / "k.cpp").write_text(
        '#include "line.hpp"\nvoid f(Line &line, int n) { for (int i = 0; i < n; i++) line.at(i) = 1.0; }\n'
    )
    nest = load_kernel(str(tmp_path / "k.cpp"), function="f")
    assert set(nest.arrays) == {"line->u"}


CLASSES = """#pragma once
class Mesh { public: double &x(int i) { return m_x[i]; } double *m_x; };
class Grid { public: double &x(int i) { return m_x[2 * i]; } double *m_x; };
class Part { public: Grid *m_grid; double &first(int i) { return m_first[i]; } double *m_first; };
class Odd { public: double &first(int i); double *m_first; };
class Bare { public: double &first(int i); };
typedef Grid Coarse;
"""


@pytest.mark.parametrize(
    ("function", "stride"),
    [
        ("void f(Mesh &a, int n) { for (int i = 0; i < n; ++i) a.x(i) = 1.0; }", 1),
        ("void f(const Grid *const a, Mesh &b, int n) { for (int i = 0; i < n; ++i) a->x(i) = 1.0; }", 2),
        ("void f(Coarse &a, int n) { for (int i = 0; i < n; ++i) a.x(i) = 1.0; }", 2),
        ("void Part::f(int n) { for (int i = 0; i < n; ++i) m_grid->x(i) = 1.0; }", 2),
        ("void f(Part &a, int n) { for (int i = 0; i < n; ++i) a.first(i) = 1.0; }", 1),
        ("void f(Odd &a, int n) { for (int i = 0; i < n; ++i) a.first(i) = 1.0; }", None),
        ("void f(Bare *a, int n) { for (int i = 0; i < n; ++i) a->first(i) = 1.0; }", None),
    ],
)
def test_member_functions_are_those_of_the_declared_class(function: str, stride: int | None, tmp_path: Path) -> None:
    (tmp_path / "classes.hpp").write_text(CLASSES)
    (tmp_path / "k.cpp").write_text(f'#include "classes.hpp"\n{function}\n')
    (found,) = find_nests(str(tmp_path / "k.cpp"))
    if stride is None:
        assert "an address that is computed" in str(found.nest)
    else:
        assert isinstance(found.nest, LoopNest)
        assert [access.coefficients for access in found.nest.accesses] == [(stride,)]


MESH_HEADER = """#pragma once
#include <vector>
using Real = double;
using Index = std::int64_t;
class Base { protected: Index m_n; };
class Mesh : public Base {
public:
    explicit Mesh(int n) : m_n(n) { m_x.resize(n); }
    Real &x(Index i) { return m_x[i]; }
    Real& f(Index i, int d) { return m_f[3 * i + d]; }
    Index *corners(Index i) { return &m_corners[Index(4) * i]; }
    Index count() const { return m_count; }
    bool empty() { return m_x.empty(); }
    void step(Real dt);
#if USE_MPI
    Request m_open[26];
#endif
private:
    std::vector<Real> m_x, m_y;  // nodes
    Real *m_f;
    Index m_count;
    std::vector<Index> m_corners;
    static const int dims = 3;
};
enum Kind : int {
    Open,  // the first one
    Closed
};
#define STEP_BODY \\
    m_x[i] += dt * \\
        m_y[i];
inline float root(float v) { return sqrtf(v); }
inline double root(double v) { return sqrt(v); }
"""
MESH = """#include <iostream>
#include <algorithm>
#include "mesh.hpp"
#include "of/no/such/header.hpp"
namespace whole { double sqrt(double n) { return n > 1 ? sqrt(n / 2) : n; } }
namespace meshes {
struct Best { meshes::Real value; Index at; };
static inline void grow(Mesh &mesh, Index i, Real &by) { by = 2 * mesh.x(i); mesh.x(i) += by; }
static double area(double a, double b) { return a * b; }
static double area(const double *a) { double s = 0; for (int i = 0; i < 4; ++i) s += area(a[i], 2.0); return s; }
void force(Mesh &mesh, Real dt, Kind kind)
{
    std::cout << "start" << std::endl;
    Index n = mesh.count();
    auto tell = [=](int i) { std::cout << i; };
    if (dt > 0) std::cerr << "on"; else dt = std::abs(dt);
    for (Index i = 0; i < n; ++i)
        mesh.f(i, 1) = std::max(mesh.x(i), Real( 0.5)) * root(dt);
    for (Index i = 0; i < n; ++i) tell(i);
    for (Index i = 0; i < n; ++i) { Real by; grow(mesh, i, by); }
}
void gather(Mesh &mesh, Real *out, Index n)
{
    for (Index k = 0; k < n; ++k) {
        const Index *corner = mesh.corners(k);
        out[k] = mesh.x(corner[0]) + mesh.x(corner[1]);
    }
}
void Mesh::step(Real dt)
{
    switch (dt > 0) {
    case 1: {
        start();
        for (int rep = 0; rep < 5; ++rep)
            for (Index i = 0; i < this->m_n; ++i) { STEP_BODY; }
        Best best; best.value = meshes::root(dt);
        break;
    }
    default: { std::clog << "nothing"; std::terminate(); }
    }
}
}
"""
PLAIN = """
void force_1(double *f, double *x, double r, long n)
{ for (long i = 0; i < n; ++i) f[3 * i + 1] = (x[i] < 0.5 ? 0.5 : x[i]) * sqrt(r); }
void force_3(double *x, long n) { for (long i = 0; i < n; ++i) x[i] += 2 * x[i]; }
void gather_1(double *x, long *c, double *out, long n)
{ for (long k = 0; k < n; ++k) out[k] = x[c[4 * k]] + x[c[4 * k + 1]]; }
void step_1(double *x, double *y, double dt, long n)
{ for (int rep = 0; rep < 5; ++rep) for (long i = 0; i < n; ++i) x[i] += dt * y[i]; }
"""


@pytest.fixture
def mesh(tmp_path: Path) -> str:
    (tmp_path / "mesh.hpp").write_text(MESH_HEADER)
    (tmp_path / "mesh.cpp").write_text(MESH)
    return str(tmp_path / "mesh.cpp")


def test_members_and_their_functions_are_those_of_structures(mesh: str) -> None:
    plain = {name: parse_kernel(PLAIN, "p.c", function=name) for name in ("force_1", "force_3", "gather_1", "step_1")}
    for name, expected in plain.items():
        function, _, number = name.partition("_")
        nest = load_kernel(mesh, function=function, nest=int(number) if function != "step" else 1)
        assert nest.operations.flops_per_iteration == expected.operations.flops_per_iteration, name
        assert len(nest.loops) == len(expected.loops), name
        assert [(one.kind, one.coefficients, one.offset) for one in nest.accesses] == [
            (one.kind, one.coefficients, one.offset) for one in expected.accesses
        ] or function == "gather", name
        assert nest.operations.reductions == expected.operations.reductions, name


@pytest.mark.parametrize("cache", ["lc", "sim"])
def test_members_move_the_lines_of_arrays(cache: Literal["lc", "sim"], mesh: str, tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(PLAIN)
    for number, plain in ((1, "force_1"), (3, "force_3")):
        nests = km.Nest(Path(mesh), function="force", nest=number), km.Nest(tmp_path / "p.c", function=plain)
        found, expected = (
            km.data_traffic(one, "clx", cache=cache, sizes={"n": 40_000}).answer.traffic for one in nests
        )
        lines, wanted = ([(path.loads, path.stores) for path in one.paths] for one in (found, expected))
        assert lines == wanted and found.flops_per_iteration == expected.flops_per_iteration


def test_statements_that_are_no_c_cost_their_own_nest_alone(mesh: str) -> None:
    found = find_nests(mesh, function="force")
    assert [isinstance(one.nest, LoopNest) for one in found] == [True, False, True]
    assert str(found[1].nest).endswith(
        "mesh.cpp:19:35: C++ that is no C (a lambda) in a loop nest is not supported; "
        "write what it does into the loop as C, or take it out"
    )
    lines = MESH.splitlines()
    assert all("for (" in lines[(one.location.line or 0) - 1] for one in found)


def test_overloads_with_other_numbers_of_parameters_are_functions_of_their_own(mesh: str) -> None:
    (found,) = find_nests(mesh, function="area")
    assert isinstance(found.nest, LoopNest) and found.nest.operations.flops_per_iteration == 2


def test_members_are_compiled_and_predicted(mesh: str) -> None:
    answer = km.ecm(km.Nest(Path(mesh), function="step"), "clx", m_n=100_000).answer
    assert answer.loop.instructions and answer.traffic.flops_per_iteration == 2


def test_what_is_assumed_of_a_function_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("""#include <iostream>
namespace own { inline double sqrt(double x) { return std::sqrt(x); } }
inline float twice(float x) { return 2 * x; }
inline double twice(double x) { return 2 * x; }
void f(int n, double *a) { std::cout << n; for (int i = 0; i < n; ++i) a[i] = twice(a[i]) + own::sqrt(a[i]); }
void g(int n, double *a) { for (int i = 0; i < n; ++i) a[i] = 1; }
""")
    told = [
        {note.code: note.text for note in load_kernel(str(tmp_path / "a.cpp"), function=name).notes} for name in "fg"
    ]
    assert told[0]["cxx-passed-over"].startswith("a statement is passed over, being no C (std::cout)")
    assert told[0]["cxx-function"].startswith("twice: of 2 functions") and not any("cxx" in code for code in told[1])


def test_templates_over_classes_are_refused_by_the_type_within(tmp_path: Path) -> None:
    (tmp_path / "v.hpp").write_text("""template <typename V> void other(V &x) { }
template <typename V> void scale(typename V::Scalar s, V &x) {
    for (int i = 0; i < x.n; ++i) x.a[i] *= s; }
template void scale<Vector<double> >(double, Vector<double> &);
""")

    for read in (load_kernel, find_nests):
        with pytest.raises(SourceError, match=r"scale is no C .* a type within its template argument \(V::Scalar\)"):
            read(str(tmp_path / "v.hpp"), function="scale")
