"""The names of the standard headers that kernels use; the headers themselves are never read."""

from __future__ import annotations

STANDARD_TYPEDEFS = {
    "size_t": "unsigned long",
    "ssize_t": "long",
    "ptrdiff_t": "long",
    "intptr_t": "long",
    "uintptr_t": "unsigned long",
    "int8_t": "signed char",
    "int16_t": "short",
    "int32_t": "int",
    "int64_t": "long",
    "uint8_t": "unsigned char",
    "uint16_t": "unsigned short",
    "uint32_t": "unsigned int",
    "uint64_t": "unsigned long",
    "bool": "_Bool",
}
"""Types of the standard headers, which the parser does not read, as they are on LP64."""

# fmt: off
MATH_FUNCTIONS = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "lgamma", "log",
    "log10", "log1p", "log2", "nearbyint", "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh",
    "tgamma", "trunc",
})
# fmt: on
"""The functions of <math.h> that kernels may call, by their double-precision name."""
