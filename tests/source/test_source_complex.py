"""Complex numbers: pairs of floating-point numbers, with the operations that they are made of."""

from __future__ import annotations

import pytest

from kernmodel.errors import SourceError
from kernmodel.source.load import parse_kernel

HEADER = "#include <complex.h>\n"
GIVEN = "int n, double complex a[n], double complex b[n], double complex c, double x[n], float _Complex f[n]"


def flops(statement: str) -> dict[str, int]:
    """By operation how often one stands in an iteration, each of real numbers."""
    nest = parse_kernel(f"{HEADER}void k({GIVEN}) {{ for (int i = 0; i < n; ++i) {statement}; }}", "k.c", {})
    assert all("_Complex" not in one.element.name for one in nest.operations.flops)
    found: dict[str, int] = {}
    for one in nest.operations.flops:
        found[one.operation] = found.get(one.operation, 0) + one.count
    return found


@pytest.mark.parametrize(
    ("statement", "counted"),
    [
        ("b[i] = a[i]", {}),
        ("b[i] = a[i] + b[i]", {"add": 2}),
        ("b[i] = x[i] - a[i]", {"add": 1}),
        ("b[i] = c * a[i]", {"mul": 4, "add": 2}),
        ("b[i] = x[i] * a[i]", {"mul": 2}),
        ("b[i] = c * a[i] + b[i]", {"mul": 4, "add": 4}),
        ("b[i] = a[i] / c", {"mul": 6, "add": 3, "div": 2}),
        ("b[i] = a[i] / x[i]", {"div": 2}),
        ("b[i] += a[i] * f[i]", {"mul": 4, "add": 4}),
        ("b[i] = I * a[i]", {"mul": 4, "add": 2}),
        ("x[i] = creal(a[i]) * cimag(a[i])", {"mul": 1}),
        ("b[i] = conj(a[i]) * a[i]", {"mul": 4, "add": 2}),
        ("x[i] = a[i] == b[i] ? 1.0 : 2.0", {"compare": 2}),
    ],
)
def test_operations_are_those_of_the_parts(statement: str, counted: dict[str, int]) -> None:
    assert flops(statement) == counted


def test_elements_are_pairs() -> None:
    text = f"{HEADER}void k({GIVEN}) {{ for (int i = 0; i < n; ++i) f[i] = x[i] * a[i]; }}"
    nest = parse_kernel(text, "k.c", {})
    sizes = {name: nest.arrays[name].element.size_bytes for name in ("a", "f", "x")}
    assert sizes == {"a": 16, "f": 8, "x": 8}


def test_what_is_wider_and_what_is_complex_is_told_apart() -> None:
    """float _Complex is as long as double, and their product a double _Complex."""
    text = f"{HEADER}void k({GIVEN}) {{ for (int i = 0; i < n; ++i) b[i] = f[i] * x[i]; }}"
    (product,) = parse_kernel(text, "k.c", {}).operations.flops
    assert (product.operation, product.count, product.element.name) == ("mul", 2, "double")


def test_without_its_header_complex_is_no_type() -> None:
    with pytest.raises(SourceError, match=r"complex is a macro of <complex.h>; include it, or write _Complex"):
        parse_kernel("void k(int n, double complex a[n]) { for (int i = 0; i < n; ++i) a[i] = 0; }", "k.c", {})


def test_sizes_may_be_called_as_the_imaginary_unit_is() -> None:
    nest = parse_kernel("void k(int I, double a[I]) { for (int i = 0; i < I; ++i) a[i] = 0; }", "k.c", {"I": 10})
    assert nest.symbols


@pytest.mark.parametrize(("statement", "products"), [("b[i] += c * a[i] * f[i]", 2), ("b[i] = x[i] * a[i] + c", 0)])
def test_products_of_two_complex_numbers_are_counted(statement: str, products: int) -> None:
    nest = parse_kernel(f"{HEADER}void k({GIVEN}) {{ for (int i = 0; i < n; ++i) {statement}; }}", "k.c", {})
    assert nest.operations.complex_products == products
