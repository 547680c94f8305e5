"""The source of a kernel beside the assembly of its loop: each line linked to the lines of the other that it belongs
to, accesses marked, every instruction with its ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.report.html.elements import Html, element, html
from kernmodel.report.number_text import decimal
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.incore.model import InstructionReport
    from kernmodel.source.model import Access, LoopNest
    from kernmodel.studies.predict.request import EcmAnswer

_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:\s*(?:->|\.)\s*\w+)*")


def listings(answer: EcmAnswer) -> Html:
    """Both listings, and what their marks mean."""
    lines = answer.loop.source_lines
    linked = "Point at a line, or move to it with Tab, to see what belongs to it." if lines else _UNLINKED
    legend = element(
        "p",
        _operations(answer.nest),
        " ",
        element("mark", "read"),
        ", ",
        element("mark", "written", class_="write"),
        " references are underlined, ",
        element("mark", "operations", class_="flop"),
        " in floating point have a background. ",
        linked,
        class_="marks",
    )
    source = element("div", element("h3", f"Source: {answer.nest.file}"), _source(answer))
    return html(legend, element("div", source, assembly(answer), class_="pair wide"))


_UNLINKED = "Which line an instruction comes from is not known: the assembly was given, or its compiler does not say."


def _operations(nest: LoopNest) -> str:
    """What an iteration computes and touches."""
    flops = nest.operations.flops
    kinds = ", ".join(f"{one.count} {one.name or one.operation} ({one.element.name})" for one in flops) or "no FLOP"
    reads, writes = len(nest.reads()), len(nest.writes())
    return (
        f"An iteration of the inner loop computes {kinds}: {nest.operations.flops_per_iteration} FLOP; "
        f"{count(reads, 'reference')} read, {writes} written."
    )


def _source(answer: EcmAnswer) -> Html:
    nest, used = answer.nest, set(answer.loop.source_lines)
    marks = _marks(nest)
    rows = []
    for number, line in enumerate(nest.text.splitlines(), 1):
        belongs = number in used
        rows.append(
            element(
                "tr",
                element("td", number, class_="number"),
                element("td", _marked(line, marks.get(number, []))),
                data_links=f"s{number}" if belongs else None,
                tabindex=0 if belongs else None,
                class_="main" if belongs else None,
            )
        )
    return element(
        "div",
        element("table", element("tbody", rows)),
        class_="listing",
        tabindex=0,
        role="region",
        aria_label="Source",
    )


_Mark = tuple[int, int, str, str]
"""First column of a reference, the one behind it, its kind, and what is said of it."""


def _marks(nest: LoopNest) -> dict[int, list[_Mark]]:
    """By line the references in it."""
    lines = nest.text.splitlines()
    found: dict[int, dict[int, _Mark]] = {}
    for sign, place in nest.operations.places:
        if place.line is not None and place.column is not None and place.line <= len(lines):
            start = _operator(lines[place.line - 1], place.column - 1, sign)
            if start is not None:
                about = f"{sign}: a floating-point operation"
                found.setdefault(place.line, {})[start] = (start, start + len(sign), "flop", about)
    for access in nest.accesses:
        place = access.location
        if place.line is None or place.column is None or place.line > len(lines):
            continue
        start = place.column - 1
        end = _end_of_reference(lines[place.line - 1], start)
        if end is not None and lines[place.line - 1].startswith(access.array.split(".")[0].split("->")[0], start):
            found.setdefault(place.line, {})[start] = (start, end, access.kind, _about(access))
    return {line: [marks[start] for start in sorted(marks)] for line, marks in found.items()}


def _operator(line: str, column: int, sign: str) -> int | None:
    """Where an operator stands whose right operand begins at `column`, or a call that does; None where the line is not
    as it was read (a macro)."""
    if sign.isidentifier():
        return column if line.startswith(sign, column) else None
    before = line[:column].rstrip(" \t(")
    while before and not before.endswith((sign, f"{sign}=")) and before[-1] in "+-":
        before = before[:-1].rstrip(" \t(")  # a sign of the operand itself
    before = before.removesuffix("=")
    return len(before) - len(sign) if before.endswith(sign) else None


def _about(access: Access) -> str:
    times = f", {access.count} times" if access.count > 1 else ""
    return f"{access.text}: {access.kind}{times}"


def _end_of_reference(line: str, start: int) -> int | None:
    """The column behind `name[…][…]` that begins at `start`; None where there is no such thing."""
    match = _REFERENCE.match(line, start)
    if match is None:
        return None
    end, depth = match.end(), 0
    for at in range(match.end(), len(line)):
        character = line[at]
        depth += (character == "[") - (character == "]")
        if character == "]" and depth == 0:
            end = at + 1
        elif depth == 0 and not character.isspace():
            break
    return end


def _marked(line: str, marks: list[_Mark]) -> Iterator[object]:
    """The line with its references in elements of their own."""
    done = 0
    for start, end, kind, about in marks:
        if start >= done:
            yield line[done:start]
            yield element("mark", line[start:end], class_=None if kind == "read" else kind, title=about)
            done = end
    yield line[done:]


def assembly(answer: EcmAnswer) -> Html:
    """The instructions of the loop with the cycles that they keep each port busy."""
    incore, loop = answer.incore, answer.loop
    shown = [number for number, cycles in enumerate(incore.port_sums) if cycles]
    binding = set(incore.binding_ports)
    heads = [
        element("th", incore.ports[at], scope="col", class_="binds" if incore.ports[at] in binding else None)
        for at in shown
    ]
    head = element(
        "tr",
        element("th", "line", scope="col"),
        element("th", "instruction", scope="col", class_="left"),
        heads,
        element("th", "LCD", scope="col"),
    )
    most = max(incore.port_sums, default=0.0) or 1.0
    rows = [_instruction(answer, number, row, shown, most) for number, row in enumerate(incore.rows)]
    sums = [element("td", decimal(incore.port_sums[at]), class_="port") for at in shown]
    lcd = decimal(incore.lcd.cycles, 1) if incore.lcd else ""
    foot = element("tr", element("td", ""), element("td", "cycles per pass"), sums, element("td", lcd, class_="port"))
    body = element("table", element("thead", head), element("tbody", rows), element("tfoot", foot))
    made_by = "the assembly" if answer.origin.compiler is None else f"the code of {answer.origin.compiler}"
    title = f"Loop {loop.label} in {made_by}, with its ports".replace("  ", " ")
    return element(
        "div",
        element("h3", title),
        element("div", body, class_="listing", tabindex=0, role="region", aria_label="Assembly"),
        element("p", loop.evidence),
    )


def _instruction(answer: EcmAnswer, number: int, row: InstructionReport, shown: list[int], most: float) -> Html:
    lines = answer.loop.source_lines
    line = lines[number] if lines else 0
    cells = [_port(row.pressure[at], most) for at in shown]
    on_lcd = "" if row.on_lcd is None else decimal(row.on_lcd, 1)
    return element(
        "tr",
        element("td", row.instruction.line or "", class_="number"),
        element("td", row.instruction.text.strip(), class_=None if row.known else "warning"),
        cells,
        element("td", on_lcd, class_="port"),
        data_links=f"s{line}" if line else None,
        tabindex=0 if line else None,
        title=f"source line {line}" if line else None,
    )


def _port(cycles: float, most: float) -> Html:
    """The cycles on a port, darker the more they are."""
    share = round(100 * min(1.0, cycles / most))
    return element(
        "td", decimal(cycles) if cycles else "", class_="port", style=f"--share:{share}%" if cycles else None
    )
