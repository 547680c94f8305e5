"""Compilers: which one is taken, what it is asked, and what is said when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.code.compile import FoundCompiler, find_compiler, start_compile
from kernmodel.errors import ToolError
from kernmodel.machine.model import Compiler

GCC = Compiler("gcc", ("-O3", "-march=haswell"))
CLANG = Compiler("clang", ("-O3", "-mtune=haswell"))
ICC = Compiler("icc", ("-O3", "-xHOST"))

needs_gcc = pytest.mark.needs("gcc")
KERNEL = "void scale(double *a, double s)\n{\n    for (int i = 0; i < N; ++i)\n        a[i] *= s;\n}\n"


def install(folder: Path, *names: str, script: str = "exit 0") -> None:
    """Put commands of these names into a folder."""
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which commands are found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def compile_text(source: str, compiler: FoundCompiler, *flags: str, name: str = "kernel.c", **defines: int) -> str:
    with start_compile(source, name=name, compiler=compiler, flags=flags, defines=defines) as pending:
        return pending.finish().text


def test_the_machines_first_installed_compiler_is_taken(commands: Path) -> None:
    install(commands, "gcc", "clang")
    assert find_compiler((ICC, CLANG, GCC)) == FoundCompiler("clang", str(commands / "clang"), CLANG.flags)


def test_the_newest_version_stands_in_for_a_missing_plain_command(commands: Path) -> None:
    install(commands, "gcc-9", "gcc-12", "gcc-ar-13", "clang-19")
    assert find_compiler((ICC, GCC, CLANG)).command == str(commands / "gcc-12")


@pytest.mark.parametrize(
    ("requested", "family", "flags"),
    [
        ("clang", "clang", CLANG.flags),
        ("gcc-9", "gcc", GCC.flags),
        ("x86_64-linux-gnu-gcc-9", "gcc", GCC.flags),
        ("icx", "icx", GCC.flags),  # not named by the machine: it spells its flags as gcc does
    ],
)
def test_a_compiler_can_be_requested(commands: Path, requested: str, family: str, flags: tuple[str, ...]) -> None:
    install(commands, "clang", "gcc-9", "x86_64-linux-gnu-gcc-9", "icx")
    found = find_compiler((GCC, CLANG), requested)
    assert (found.name, found.command, found.flags) == (family, str(commands / requested), flags)


def test_a_path_can_be_requested(commands: Path, tmp_path: Path) -> None:
    install(tmp_path, "gcc-13")
    assert find_compiler((CLANG, GCC), str(tmp_path / "gcc-13")).flags == GCC.flags


@pytest.mark.parametrize(
    ("requested", "message"),
    [(None, "no C compiler was found .*gcc, clang"), ("tcc", "the compiler 'tcc' was not found")],
)
def test_no_compiler(commands: Path, requested: str | None, message: str) -> None:
    with pytest.raises(ToolError, match=message) as raised:
        find_compiler((GCC, CLANG), requested)
    assert raised.value.exit_status == 3
    assert "--asm" in str(raised.value)


@needs_gcc
def test_compiling_gives_the_assembly_and_how_it_came_about() -> None:
    gcc = find_compiler((Compiler("gcc", ()),))
    with start_compile(KERNEL, name="scale.c", compiler=gcc, flags=("-O2",), defines={"N": 1000}) as pending:
        result = pending.finish()
    assert "mulpd" in result.text or "mulsd" in result.text
    assert ".cfi_" not in result.text
    assert (result.name, result.compiler, result.flags) == ("scale.c", "gcc", ("-O2",))
    assert result.version.split(".")[0].isdigit()
    assert {"-O2", "-DN=1000"} < set(result.command)


@needs_gcc
@pytest.mark.parametrize(
    ("source", "flags", "message"),
    [
        ("int f(void)\n{\n    return x;\n}\n", (), r"^dir/kernel.c:3:12: gcc: .x. undeclared"),
        ('#include "missing.h"\n', (), r"^dir/kernel.c:1:10: gcc: missing.h: No such file"),
        ("int f;", ("-march=vax",), r"gcc failed: bad value .vax. for .-march=. switch; give other --flags"),
        ("int f;", ("--no-such-flag",), r"gcc failed: unrecognized command-line option"),
        ("int a(void) { return b; }\nint c(void) { return d; }", (), r"\(and 1 more\)"),
    ],
)
def test_a_compiler_that_fails(source: str, flags: tuple[str, ...], message: str) -> None:
    with pytest.raises(ToolError, match=message) as raised:
        compile_text(source, find_compiler((Compiler("gcc", ()),)), *flags, name="dir/kernel.c")
    assert raised.value.exit_status == 3


def test_a_compiler_that_fails_without_a_message(commands: Path) -> None:
    install(commands, "gcc", script="exit 7")
    with pytest.raises(ToolError, match="gcc failed: ended with status 7"):
        compile_text(KERNEL, find_compiler((GCC,)))


def test_a_compiler_that_succeeds_without_making_assembly(commands: Path) -> None:
    install(commands, "gcc")
    with pytest.raises(ToolError, match="gcc made no assembly") as raised:
        compile_text(KERNEL, find_compiler((GCC,)))
    assert raised.value.exit_status == 3


@needs_gcc
def test_flags_that_only_check_the_source_make_no_assembly() -> None:
    with pytest.raises(ToolError, match="-fsyntax-only"):
        compile_text(KERNEL, find_compiler((GCC,)), "-fsyntax-only", N=1000)


def test_a_compiler_that_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "gcc").write_text("no program")
    with pytest.raises(ToolError, match="gcc could not be run"):
        compile_text(KERNEL, FoundCompiler("gcc", str(tmp_path / "gcc"), ()))


@needs_gcc
def test_files_beside_the_source_can_be_included(tmp_path: Path) -> None:
    (tmp_path / "size.h").write_text("#define N 1000\n")
    gcc = find_compiler((Compiler("gcc", ()),))
    assert "8000" in compile_text(f'#include "size.h"\n{KERNEL}', gcc, "-O1", name=str(tmp_path / "scale.c"))


def test_the_compiler_runs_beside_the_caller(commands: Path, tmp_path: Path) -> None:
    # this compiler ends only after the caller has gone on; a long source would fill a pipe
    script = f"while ! [ -e {tmp_path}/go ]; do :; done; while read -r line; do echo $line; done"
    install(commands, "gcc", script=script)
    source = "int x;\n" * 20_000
    with start_compile(source, name="a.c", compiler=find_compiler((GCC,)), flags=(), defines={}) as pending:
        (tmp_path / "go").touch()
        assert pending.finish().text.count("int x;") == 20_000


def test_the_version_is_what_the_compiler_signs(commands: Path) -> None:
    for ident, version in (
        ("GCC: (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ("Debian clang version 19.1.7 (3~deb12u1)", "19.1.7"),
        ("Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0 (2024.0.0.20231017)", "2024.0.0"),
    ):
        install(commands, "gcc", script=f"""echo '.ident "{ident}"'""")
        with start_compile("", name="a.c", compiler=find_compiler((GCC,)), flags=(), defines={}) as pending:
            assert pending.finish().version == version


def test_leaving_stops_the_compiler_and_leaves_no_file(
    commands: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(commands, "gcc", script="while :; do :; done")
    for folder in ("here", "tmp"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    with (
        pytest.raises(KeyboardInterrupt),
        start_compile(KERNEL, name="a.c", compiler=find_compiler((GCC,)), flags=(), defines={}) as pending,
    ):
        process = pending._process
        raise KeyboardInterrupt
    assert process.returncode is not None
    assert [*(tmp_path / "here").iterdir(), *(tmp_path / "tmp").iterdir()] == []
