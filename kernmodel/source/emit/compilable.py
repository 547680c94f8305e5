"""C text for the compiler: a whole function as it stands, a bare loop nest wrapped into one.

A bare nest becomes `void name(arrays, scalars)`: arrays are `restrict` parameters, scalars that the nest only reads are
parameters, and scalars that it writes are passed by address and stored at the end, so that no compiler drops the work.
Sizes stay macros, so that -D reaches them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy

from kernmodel.source.cxx import needed_declarations, with_headers
from kernmodel.source.emit.whole_function import (
    compilable_function,
    compiler_defines,
    has_static_variables,
    missing_headers,
)
from kernmodel.source.load import Defines
from kernmodel.source.model import LoopNest
from kernmodel.source.parse.preprocess import preprocess
from kernmodel.source.parse.syntax import (
    Node,
    Program,
    c_ast,
    c_generator,
    parse_program,
    statements,
    walk,
    written_names,
)


def compilable_source(nest: LoopNest, defines: Defines | None = None, include: Sequence[str] = ()) -> str:
    """A C translation unit with the kernel, to be compiled with `compiler_defines(nest.text, defines)` as -D flags.

    Args:
        nest: the kernel, as `load_kernel` gave it.
        defines: the macros it was read with; include: the folders of its headers.
    """
    given = dict(defines or {})
    if nest.function is not None:
        text = nest.text
        if hasattr(text, "refused"):
            text = needed_declarations(with_headers(text, nest.file, include), nest.function)
        elif has_static_variables(text, nest.file, include):
            text = with_headers(text, nest.file, include)
        return compilable_function(text, nest.file, compiler_defines(text, given), nest.function)
    program = parse_program(nest.text, nest.file, given, include)
    return _wrapped(nest, program)


def defines_beside(nest: LoopNest, defines: Defines, include: Sequence[str] = ()) -> dict[str, str | int]:
    """The macros that a compiler has to be given besides these, because it passes over their definitions where the
    file or a header defines them only if one of these is not defined."""
    if nest.function is None or not defines:
        return {}
    preprocessed = preprocess(nest.text, nest.file, defines, include)
    return dict(preprocessed.values) if preprocessed.hidden else {}


def function_name(nest: LoopNest) -> str:
    """The name of the compiled function."""
    return nest.function or "kernel_" + re.sub(r"\W", "_", nest.name)


def _wrapped(nest: LoopNest, program: Program) -> str:
    body = tuple(statements(program.functions[0].body))
    loop = next(
        node
        for node in body
        if any(isinstance(n, c_ast.For) and program.location(n) == nest.loops[0].location for n in walk(node))
    )
    before = body[: body.index(loop)]
    roles = _roles(before, loop)
    lines = [_size_default(name, value) for name, value in program.preprocessed.values.items()]
    lines.append(missing_headers(nest.text))
    lines.append(f"void {function_name(nest)}({', '.join(roles.parameters) or 'void'})\n{{\n")
    lines += [f"    {text};\n" for text in roles.locals]
    lines += [_statement(node, program) for node in before if isinstance(node, c_ast.Assignment)]
    lines.append(_statement(loop, program))
    lines += [f"    *{name}_result = {name};\n" for name in roles.results]
    return "".join([*lines, "}\n"])


def _size_default(name: str, value: int) -> str:
    return f"#ifndef {name}\n#define {name} {value}\n#endif\n"


class _Roles:
    """How the variables of a bare nest enter the function: texts of parameters and of locals, names of results."""

    def __init__(self) -> None:
        self.parameters: list[str] = []
        self.locals: list[str] = []
        self.results: list[str] = []


def _roles(before: tuple[Node, ...], loop: Node) -> _Roles:
    written = {name for name, _ in written_names(loop)}
    counters = {name for node in walk(loop) if isinstance(node, c_ast.For) for name, _ in written_names(node.init)}
    printer = c_generator.CGenerator()
    roles = _Roles()
    for declaration in _declarations(before):
        name = declaration.name
        if isinstance(declaration.type, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            roles.parameters.append(printer.visit(_restricted(declaration)))
        elif name in counters or (name not in written and declaration.init is not None):
            roles.locals.append(printer.visit(declaration))
        elif name in written:
            kind = " ".join(declaration.type.type.names)
            start = printer.visit(declaration.init) if declaration.init is not None else f"*{name}_result"
            roles.parameters.append(f"{kind} *restrict {name}_result")
            roles.locals.append(f"{kind} {name} = {start}")
            roles.results.append(name)
        else:
            roles.parameters.append(printer.visit(declaration))
    return roles


def _declarations(before: tuple[Node, ...]) -> Iterator[Node]:
    for node in before:
        if isinstance(node, c_ast.DeclList):
            yield from node.decls
        elif isinstance(node, c_ast.Decl) and node.name:
            yield node


def _restricted(declaration: Node) -> Node:
    """The declaration of an array as a `restrict` parameter without initialiser and storage class."""
    parameter = deepcopy(declaration)
    parameter.init, parameter.storage = None, []
    outer = parameter.type
    if isinstance(outer, c_ast.ArrayDecl):
        outer.dim_quals = ["restrict"]
    elif "restrict" not in (outer.quals or ()):
        outer.quals = [*(outer.quals or ()), "restrict"]
    return parameter


def _statement(node: Node, program: Program) -> str:
    """The text of a statement after `#line`, so that the compiler's messages point into the user's file."""
    location = program.location(node)
    printed = c_generator.CGenerator().visit(node)
    ending = "" if isinstance(node, (c_ast.For, c_ast.Compound)) else ";"
    quoted = location.file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {location.line} "{quoted}"\n{printed}{ending}\n'
