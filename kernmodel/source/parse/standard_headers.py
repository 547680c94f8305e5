"""The names of the standard headers that kernels use; the headers themselves are never read."""

from __future__ import annotations

_EXACT = {8: "char", 16: "short", 32: "int", 64: "long"}

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
    **{f"int_least{bits}_t": kind for bits, kind in _EXACT.items()},
    **{f"uint_least{bits}_t": f"unsigned {kind}" for bits, kind in _EXACT.items()},
    "int_fast8_t": "signed char",
    "uint_fast8_t": "unsigned char",
    **{f"int_fast{bits}_t": "long" for bits in (16, 32, 64)},
    **{f"uint_fast{bits}_t": "unsigned long" for bits in (16, 32, 64)},
    **{f"__int{bits}_t": kind for bits, kind in _EXACT.items()},
    **{f"__uint{bits}_t": f"unsigned {kind}" for bits, kind in _EXACT.items()},
    **{f"u_int{bits}_t": f"unsigned {kind}" for bits, kind in _EXACT.items()},
    "intmax_t": "long",
    "uintmax_t": "unsigned long",
    "char16_t": "unsigned short",
    "char32_t": "unsigned int",
    "wint_t": "unsigned int",
    "float_t": "float",
    "double_t": "double",
    "u_char": "unsigned char",
    "u_short": "unsigned short",
    "u_long": "unsigned long",
    "wchar_t": "int",
    "time_t": "long",
    "clock_t": "long",
    "off_t": "long",
    "pid_t": "int",
    "u_int": "unsigned int",
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "ushort": "unsigned short",
    "FILE": "struct _FILE",
    "va_list": "char *",
    "jmp_buf": "long",
    "div_t": "struct _div",
    "pthread_t": "unsigned long",
    "__builtin_va_list": "char *",
    "_Float128": "long double",
    "__float128": "long double",
    "_Float64": "double",
    "_Float32": "float",
    "_Float64x": "long double",
    "_Float32x": "double",
}
"""Types of the standard headers, which the parser does not read, as they are on LP64."""

# fmt: off
_HEADERS = (
    "aio", "alloca", "arm_neon", "arm_sve", "assert", "complex", "cpuid", "ctype", "dirent", "dlfcn", "emmintrin",
    "endian", "errno", "fcntl", "features", "fenv", "float", "getopt", "immintrin", "inttypes", "iso646", "libgen",
    "limits", "locale", "malloc", "math", "memory", "mm_malloc", "nmmintrin", "omp", "pmmintrin", "poll", "pthread",
    "sched", "semaphore", "setjmp", "signal", "smmintrin", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef",
    "stdint", "stdio", "stdlib", "stdnoreturn", "string", "strings", "sys/mman", "sys/param", "sys/resource",
    "sys/stat", "sys/time", "sys/times", "sys/types", "sys/wait", "syscall", "termios", "tgmath", "threads", "time",
    "tmmintrin", "uchar", "unistd", "wchar", "wctype", "x86intrin", "xmmintrin",
)
# fmt: on

STANDARD_HEADERS = frozenset(f"{name}.h" for name in _HEADERS)
"""Headers of C, POSIX and compilers, which are not read."""

# fmt: off
MATH_FUNCTIONS = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "hypot", "lgamma", "log",
    "log10", "log1p", "log2", "nearbyint", "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh",
    "tgamma", "trunc",
})
# fmt: on
"""The functions of <math.h> that kernels may call, by their double-precision name."""

MINIMA = frozenset({"min", "MIN", "Min", "imin", "fmin", "fminf"})
MAXIMA = frozenset({"max", "MAX", "Max", "imax", "fmax", "fmaxf"})
"""Names by which functions and macros that give the least and the greatest of values go."""

# fmt: off
INTEGER_FUNCTIONS = frozenset({
    "abs", "labs", "llabs", "lround", "lroundf", "llround", "llroundf", "lrint", "lrintf", "isnan", "isinf", "isfinite",
    "signbit",
})
# fmt: on
"""Functions and macros of <stdlib.h> and <math.h> that give integers."""

_CONSTANTS = {
    "double": "M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 M_E M_LN2 M_LN10 M_LOG2E M_LOG10E "
    "HUGE_VAL DBL_MAX DBL_MIN DBL_EPSILON DBL_TRUE_MIN",
    "float": "INFINITY NAN HUGE_VALF FLT_MAX FLT_MIN FLT_EPSILON FLT_TRUE_MIN",
    "float _Complex": "_Complex_I",
    "long double": "HUGE_VALL LDBL_MAX LDBL_MIN LDBL_EPSILON LDBL_TRUE_MIN",
}
FLOATING_CONSTANTS = {name: kind for kind, names in _CONSTANTS.items() for name in names.split()}
"""Constants of <math.h> and <float.h> that are no integers, by name with their types (C17 7.12, 5.2.4.2.2; POSIX)."""

COMPLEX_PARTS = {f"{name}{suffix}": name == "conj" for name in ("creal", "cimag", "conj") for suffix in ("", "f", "l")}
"""Functions of <complex.h> that take no arithmetic, and whether they give a complex number."""

HEADER_MACROS = {
    "stdbool.h": ("true 1", "false 0"),
    "complex.h": ("complex _Complex", "I _Complex_I"),
    "stdalign.h": ("alignas _Alignas", "alignof _Alignof"),
}
"""Macros of headers that are not read, which stand for what the parser knows."""

PRINTING_FUNCTIONS = frozenset({"printf", "fprintf", "puts", "fputs", "putchar", "putc", "fputc", "perror", "fflush"})
"""Functions that print: of the arrays of a kernel they read at most text."""

FLOATING_FUNCTIONS = frozenset({"drand48", "erand48", "atof", "strtod", "difftime", "omp_get_wtime", "MPI_Wtime"})
"""Functions of headers that are not read, and that are not of <math.h>, which give a double."""

MOST_STRAIGHT_BYTES = 128
"""Bytes up to which `memcpy` and its like of a constant size are taken as code without a loop."""

ASSEMBLY = "asm"
"""The function that inline assembly stands for (source.text); what it does is not known."""

FOREIGN = "__cxx"
"""The function that a statement of C++ stands for that is no C (source.cxx_statements); it is given what that uses."""

STREAMS = frozenset({"stdin", "stdout", "stderr", "NULL"})
"""Names of standard headers that stand for pointers to what is no data of a kernel."""

ASSERTION = "__assert_fail"
"""What an assertion that does not hold calls."""

ENDING_FUNCTIONS = frozenset(
    {"exit", "abort", "_exit", "_Exit", "quick_exit", "MPI_Abort", "__builtin_unreachable", "__builtin_trap", ASSERTION}
)
"""Functions that end the program."""


_KNOWN_FUNCTIONS = ENDING_FUNCTIONS | {"assert"} | MATH_FUNCTIONS | MINIMA | MAXIMA | INTEGER_FUNCTIONS


def is_known_function(name: str) -> bool:
    """Whether a call of this function has no other effect than its value, which is known what it is."""
    name = name.removeprefix("__builtin_")
    return name in _KNOWN_FUNCTIONS or (name[-1:] in ("f", "l") and name[:-1] in MATH_FUNCTIONS)
