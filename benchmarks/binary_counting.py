"""What counting blocks costs: counted runs over plain runs, the smallest of three each, as rows of a table.

python benchmarks/binary_counting.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from kernmodel.binary.counting import counted_run
from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command, plain_run

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#define L 1024
double a[L], b[L], c[L];
int x[L];
__attribute__((noinline)) void triad(long reps)
{
    for (long r = 0; r < reps; r++) {
        for (int i = 0; i < L; i++) a[i] = b[i] + 3.0 * c[i];
        __asm__ volatile("" ::: "memory");
    }
}
__attribute__((noinline)) double dot(long reps)
{
    double s = 0;
    for (long r = 0; r < reps; r++)
        for (int i = 0; i < L; i++) s += b[i] * c[i];
    return s;
}
__attribute__((noinline)) long branches(long reps)
{
    long s = 0;
    for (long r = 0; r < reps; r++)
        for (int i = 0; i < L; i++) {
            if (x[i] > 500) s += x[i];
            else if (x[i] & 1) s ^= i;
            else s -= 3;
        }
    return s;
}
__attribute__((noinline)) long collatz(long n)
{
    long most = 0;
    for (long i = 1; i < n; i++) {
        long k = i, length = 0;
        while (k != 1) k = k & 1 ? 3 * k + 1 : k / 2, length++;
        if (length > most) most = length;
    }
    return most;
}
__attribute__((noinline)) long tiny(long n) { return n * 3 + 1; }
int main(int count, char **arguments)
{
    long n = atol(arguments[2]), sum = 0;
    for (int i = 0; i < L; i++) b[i] = i, c[i] = 1. / (i + 1), x[i] = i * 7919 % 1000;
    switch (arguments[1][0]) {
    case 't': if (arguments[1][1] == 'r') triad(n); else for (long i = 0; i < n; i++) sum += tiny(i); break;
    case 'd': sum = (long)dot(n); break;
    case 'b': sum = branches(n); break;
    case 'c': sum = collatz(n); break;
    }
    printf("%ld\n", sum);
    return 0;
}
"""
TIMES = {"triad": 3_000_000, "dot": 700_000, "branches": 500_000, "collatz": 2_000_000, "tiny": 300_000_000}
FLAGS = (("-O2",), ("-O3", "-march=native"))


def factor(program: Path, function: str) -> float:
    """The counted time over the plain one."""
    command = Command((str(program), function, str(TIMES[function])))
    plain = min(plain_run(command).seconds for _ in range(3))
    found = find_function(program, function)
    return min(counted_run(found, command).seconds for _ in range(3)) / plain


with tempfile.TemporaryDirectory() as folder:
    programs = []
    for number, flags in enumerate(FLAGS):
        programs.append(Path(folder) / f"program{number}")
        subprocess.run(["gcc", *flags, "-x", "c", "-o", str(programs[-1]), "-"], input=SOURCE, text=True, check=True)
    for name in TIMES:
        print(f"| {name} | " + " | ".join(f"{factor(program, name):.2f}" for program in programs) + " |")
