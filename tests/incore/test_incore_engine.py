"""The engine for whole blocks against its yardstick in Python: the same µops, the same predictions, bit by bit."""

from __future__ import annotations

from array import array
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parameter_files import with_figures
from simulations import predictor

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.answer.batch import BlockQuery, answer_all
from kernmodel.incore.answer.components import bounds_of, row_of
from kernmodel.incore.answer.predictor import Prediction, Predictor
from kernmodel.incore.core import Core, Settings
from kernmodel.incore.engine import analyser as analysers
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.compiled import CompiledEngine, library
from kernmodel.incore.engine.interface import Look, Program
from kernmodel.incore.engine.layout import Wait, header
from kernmodel.incore.engine.twin import PythonEngine
from kernmodel.incore.tables.parameters import UARCH_PATH, load_parameters, parameter_text
from kernmodel.incore.tables.table import DATA

pytestmark = pytest.mark.skipif(library() is None, reason="the engine was not built")

CORES = ("SNB", "IVB", "HSW", "SKL", "ICL", "RWC", "ZEN2", "ZEN3", "ZEN4")
"""With one of each kind of front end, and one whose adders feed adders sooner than others."""
INSTRUCTIONS = (
    "4801d8",  # add rax,rbx
    "4c01d3",  # add rbx,r10
    "488b03",  # mov rax,[rbx]
    "488b4c0b08",  # mov rcx,[rbx+rcx+8]
    "488903",  # mov [rbx],rax
    "48894424f8",  # mov [rsp-8],rax
    "488b4424f8",  # mov rax,[rsp-8]
    "8b4424fc",  # mov eax,[rsp-4]: half of what was stored
    "4889c3",  # mov rbx,rax: eliminated
    "31c0",  # xor eax,eax: a zero idiom
    "50",  # push rax
    "5b",  # pop rbx
    "4883c408",  # add rsp,8: brings the stack engine up to date
    "6681c13412",  # add cx,0x1234: a length-changing prefix
    "88e0",  # mov al,ah
    "00c4",  # add ah,al
    "c5fb58c1",  # vaddsd xmm0,xmm0,xmm1
    "c5f458c2",  # vaddps ymm0,ymm1,ymm2
    "c5fc100400",  # vmovups ymm0,[rax+rax]
    "c5fc110400",  # vmovups [rax+rax],ymm0
    "f20f5ec1",  # divsd xmm0,xmm1
    "48f7f3",  # div rbx
    "f00fc103",  # lock xadd [rbx],eax
    "0f94c0",  # sete al
    "480f44c3",  # cmove rax,rbx
    "488d440d00",  # lea rax,[rbp+rcx]
    "488b0510000000",  # mov rax,[rip+16]
    "48b88877665544332211",  # mov rax, an immediate of 8 bytes
    "0fa2",  # cpuid: microcode
    "48ffc8",  # dec rax
    "39d8",  # cmp eax,ebx
    "c3",
    "90",
)
ENDINGS = ("", "757f", "7f7f", "eb7f", "ffc9757f", "39d87c7f", "49ffcf757f")
"""Jumps out of the block, so that it is one."""

BLOCKS = st.tuples(st.lists(st.sampled_from(INSTRUCTIONS[:-2]), min_size=1, max_size=14), st.sampled_from(ENDINGS)).map(
    lambda parts: bytes.fromhex("".join(parts[0]) + parts[1])
)
HOW = st.tuples(
    st.sampled_from(CORES), st.sampled_from(("loop", "unrolled")), st.sampled_from((0, 13, 16, 31, 32, 37, 63))
)

_OPENED: dict[tuple[str, str, bool], Predictor] = {}


def predicted(code: bytes, core: str, notion: str, offset: int, memory: str, *, engine: bool) -> Prediction | None:
    """The prediction by the engine or in Python."""
    key = (core, memory, engine)
    if key not in _OPENED:
        chosen = Settings(memory=memory)  # type: ignore[arg-type]
        _OPENED[key] = predictor(core, chosen, "compiled" if engine else "python")
    return _OPENED[key].predict(code, notion, offset)  # type: ignore[arg-type]


@pytest.mark.parametrize("core", ["ZEN3", "ZEN4"])
def test_paths_of_operands_and_results_are_alike(core: str) -> None:
    """Fused additions, a blend, a store, moves and conversions between the register files, dec and jne."""
    own = ("c4e2f1a9c2", "c4e275b80400", "c4e3754bc230", "c5fc1103", "c5f97ec0", "c5f96ec8", "c5fb2cd1", "4801d8")
    for first in range(0, len(own), 2):
        code = bytes.fromhex("".join((*own[first:], *own[:first])) + "ffc9757f")
        by_engine = predicted(code, core, "loop", 0, "moving", engine=True)
        assert by_engine is not None
        assert by_engine == predicted(code, core, "loop", 0, "moving", engine=False)


@pytest.mark.parametrize(
    "code",
    [
        "c5fd100406c4e2f5a80407c5fd1104074883c0204839c175e7",  # a stream of two loads, an FMA and a store
        # two of them, another FMA behind the second; one of a chain, a move to a general-purpose register
        "c5fd100406c4e2f5a80407c5fd110407c5fd10540620c4e2f5a8540720c4e2f5a8d3c5fd115407204883c0404839c175cf",
        "c5fd1007c4e2f5a8c2c5fd1106c5fd105f20c4e2f5b8e3c5fd116620c5f97ec0ffc975dc",
    ],
)
@pytest.mark.parametrize("core", ["ZEN3", "ZEN4"])
def test_stores_of_what_waits_for_loads_are_alike(core: str, code: str) -> None:
    own = bytes.fromhex(code)
    by_engine = predicted(own, core, "loop", 0, "moving", engine=True)
    assert by_engine is not None
    assert by_engine == predicted(own, core, "loop", 0, "moving", engine=False)


_OPERATIONS = (
    *("4d8d442408", "4d69d4f1000000", "c443fbf0ec05", "4d0f45cc", "410f94c1"),  # lea, imul, rorx, cmovne, sete of r12
    *(
        "4c330e",
        "488b3e",
        "4c896640",
        "480fa4d803",
        "4d89f7",
        "480fb116",
        "a4",
    ),  # xor with a load to mov, cmpxchg, movsb
)


@pytest.mark.parametrize("core", ["ZEN3", "ZEN4"])
@pytest.mark.parametrize("seed", range(6))
def test_operations_of_a_cycle_are_assigned_alike(core: str, seed: int) -> None:
    """Of any ALU and of few, with accesses, and of more µops than a cycle takes."""
    body = Random(seed).choices(_OPERATIONS, k=3 + 2 * seed)
    code = bytes.fromhex("".join(body) + ("48ffca757f" if seed % 2 else "49ffc04939d0757f"))
    by_engine = predicted(code, core, "loop", 0, "moving", engine=True)
    assert by_engine is not None
    assert by_engine == predicted(code, core, "loop", 0, "moving", engine=False)


@pytest.mark.parametrize("offset", [24, 31, 38, 52, 57])
def test_lines_of_code_wait_alike_for_room_in_the_queue(offset: int) -> None:
    """Twelve moves, dec and jne in two lines of code, or six of them and additions of one chain."""
    for body in ("4d89c8" * 12, "4d89c84c01c9" * 6):
        code = bytes.fromhex(body + "48ffcf75d7")
        by_engine, by_python = both(code, "ZEN3", "loop", offset)
        assert by_engine == by_python


@pytest.mark.parametrize("core", ["ZEN3", "ZEN4"])
def test_orders_of_loads_are_alike(core: str) -> None:
    """Three loads of vectors, one of them across lines, and one to four general-purpose ones, dec and jne."""
    vectors, general = "c4c17c1001c4c17c104928c4c17c105140", ("8b0c24", "8b542404", "8b5c2408", "8b74240c")
    for count in range(len(general)):
        code = bytes.fromhex(vectors * 2 + "".join(general[: count + 1]) + "ffc9757f")
        by_engine = predicted(code, core, "loop", 0, "moving", engine=True)
        assert by_engine is not None
        assert by_engine == predicted(code, core, "loop", 0, "moving", engine=False)


@pytest.mark.thorough
@settings(max_examples=70, deadline=None)
@given(BLOCKS, HOW, st.sampled_from(("moving", "different", "stack")))
def test_engine_and_python_predict_alike(code: bytes, how: tuple[str, str, int], memory: str) -> None:
    """All of it, with components and the reason."""
    by_engine = predicted(code, *how, memory, engine=True)
    assert by_engine is not None
    assert by_engine == predicted(code, *how, memory, engine=False)


def both(code: bytes, name: str, notion: str, offset: int, memory: str = "moving") -> list[tuple[object, ...]]:
    """What each engine says of a block on its own: the answer, the graph and the input of the simulation."""
    core = Core.open(name, Settings(memory=memory))  # type: ignore[arg-type]
    instructions = decode_bytes(code).instructions
    rows = tuple(row_of(instruction, core.table) for instruction in instructions)
    found: list[tuple[object, ...]] = []
    for engine in (CompiledEngine(core.model), PythonEngine(core.model)):
        own = Analyser(core.model, engine=engine)
        bounds = bounds_of(instructions, rows, own, notion, offset)  # type: ignore[arg-type]
        program = engine.program() if core.model.pipeline else None
        answer = bounds.answer
        exact = (answer.totals, answer.stalls, answer.components, answer.ports_alone, answer.slow)
        found.append((*exact, bounds.graph, bounds.cycle, dict(bounds.fused), program))
    return found


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(BLOCKS, HOW, st.sampled_from(("moving", "different", "stack")))
@example(bytes.fromhex("48894424f850"), ("ZEN2", "loop", 0), "moving")  # push: no stack engine is known of Zen
def test_engine_and_python_say_the_same_of_everything(code: bytes, how: tuple[str, str, int], memory: str) -> None:
    """Also of branches inside of a block, 512-bit registers and parts that the block does not meet."""
    by_engine, by_python = both(code + bytes.fromhex("39d87402"), *how, memory)
    assert by_engine == by_python


def test_the_header_is_that_of_the_layout() -> None:
    text = (Path(analysers.__file__).parent / "native" / "layout.h").read_text(encoding="utf-8")
    assert text == header(), "python -m kernmodel.incore.engine.layout writes it"


@pytest.mark.parametrize(
    "code", ["c5fd10440608c5f9104c06184883c0204839d072ed", "c5fd11440608c5fd114406304883c0204839d072eb"]
)
def test_accesses_of_zen_across_32_bytes_are_alike(code: str) -> None:
    by_engine, by_python = both(bytes.fromhex(code), "ZEN", "loop", 0)
    assert by_engine == by_python


@pytest.mark.thorough
@pytest.mark.parametrize("length", [300, 3000])
def test_long_blocks_are_no_different(length: int) -> None:
    code = (bytes.fromhex("".join(INSTRUCTIONS[:27])) * (length // 80))[:length]
    while predicted(code, "SKL", "unrolled", 0, "moving", engine=True) is None:
        code = code[:-1]  # until it ends with an instruction
    for notion in ("loop", "unrolled"):
        one, other = (predicted(code, "SKL", notion, 5, "moving", engine=engine) for engine in (True, False))
        assert one == other


@pytest.mark.parametrize("instructions", [[], [0], [-1]])
def test_unknown_instructions_are_refused(instructions: list[int]) -> None:
    engine, look = CompiledEngine(Core.open("SKL", Settings()).model), Look(instructions, (), (), ())
    with pytest.raises(ValueError, match="hold together"):
        engine.block(look, look.request(False, 0))


def test_cut_off_numbers_are_refused() -> None:
    """A template and µops of every length but the right one."""
    core = Core.open("SKL", Settings())
    own = CompiledEngine(core.model)
    engine = own._library
    (instruction,) = decode_bytes(bytes.fromhex("48014b08")).instructions
    taken: list[tuple[str, array[int], array[float]]] = []

    class Listening:
        def __getattr__(self, name: str) -> object:
            def call(handle: int, *sized: Any) -> int:
                if len(sized) == 4:
                    taken.append((name, array("i", sized[0]), array("d", sized[2])))
                result: int = getattr(engine, name)(handle, *sized)
                return result

            return call

    own._library = Listening()  # type: ignore[assignment]
    Analyser(core.model, engine=own).lower((instruction,), (core.table.lookup(instruction),))
    assert {name for name, _, _ in taken} == {"km_add_template", "km_add_uops"}
    for name, numbers, times in taken:
        function = getattr(engine, name)
        for count in range(len(numbers)):
            assert function(own._handle, numbers.buffer_info()[0], count, *times.buffer_info()) == -2
        more = array("d", [*times, 0.0])
        assert function(own._handle, *numbers.buffer_info(), *more.buffer_info()) == -2


def test_a_block_beyond_the_engine_is_bounded_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core.open("SKL", Settings())
    code = "4801d8488b034889430875f0"
    (expected,) = answer_all([BlockQuery(1, code, "SKL")], Settings(), 1)
    monkeypatch.setattr(CompiledEngine, "block", lambda *given: None)
    assert Predictor(core, Settings()).predict(bytes.fromhex(code)) is None
    assert list(answer_all([BlockQuery(1, code, "SKL")], Settings(), 1)) == [expected]


@pytest.mark.parametrize(("code", "name"), [("d221dd62de", "HSW"), ("f00fc103", "SKL"), ("4889dff00fc10f", "SKL")])
def test_a_microop_may_wait_for_one_that_issues_later(code: str, name: str) -> None:
    """The simulation in Python crashed; the one in C took the time of a µop of long before."""
    by_engine, by_python = both(bytes.fromhex(code), name, "unrolled", 0)
    assert by_engine == by_python
    program = by_python[-1]
    assert isinstance(program, Program)
    numbered = [(n, w) for n in range(program.core.microops) for w in _waits(program, n)]
    assert any(wait.microop > number and not wait.passes for number, wait in numbered)


def _waits(program: Program, number: int) -> tuple[Wait, ...]:
    return program.waits[program.microops[number].first_wait : program.microops[number + 1].first_wait]


def _write_own_core(folder: Path, base: str, own: dict[str, object]) -> None:
    """Parameters and table of a core OWN that differs from a carried one by these figures."""
    figures = load_parameters(base)
    text = parameter_text(with_figures(figures, own), "OWN", "OWN.txt", figures.ports)
    (folder / "OWN.yml").write_text(text, encoding="utf-8")
    (folder / "OWN.txt").write_bytes((DATA / figures.table).read_bytes())


@pytest.mark.parametrize(
    "body",
    [
        "c4c11159d6c4c179fec7",  # vmulpd, and a chain of vpaddd
        "c4c21140dec4c291a8eec4c179fec7c4c171fecf",  # vpmulld, vfmadd213pd, and two chains of vpaddd
        "62d2154840de62d17d48fec7",  # the first, of 512 bits
        "c4c1115ed6c4c179fec7",  # vdivpd
    ],
)
@pytest.mark.parametrize("name", ["ZEN3", "ZEN4"])
def test_engine_and_python_let_a_pipe_give_one_result_a_cycle(body: str, name: str) -> None:
    if name == "ZEN3" and body.startswith("62"):
        return
    code = bytes.fromhex(body * 4 + "48ffc875" + f"{251 - 2 * len(body):02x}")
    by_engine, by_python = both(code, name, "loop", 0)
    assert by_engine == by_python


def test_two_ports_may_share_a_path_of_third_vectors_on_which_nothing_else_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six chains of a vfmadd213sd each, of which two start in a cycle where each port has a path of its own."""
    _write_own_core(tmp_path, "ZEN4", {"paths of third vectors": [["FP0", "FP5"], ["FP1", "FP5"]]})
    monkeypatch.setenv(UARCH_PATH, str(tmp_path))
    code = bytes.fromhex("".join(f"c4e2f1a9{0xC2 + 8 * target:02x}" for target in (0, 3, 4, 5, 6, 7)) + "48ffc875dd")
    by_engine, by_python = both(code, "OWN", "loop", 0)
    assert by_engine == by_python
    assert by_engine != both(code, "ZEN4", "loop", 0)[0]


def test_engine_and_python_read_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"DSB line µops": 2, "DSB lines per block": 1, "stack synchronisation latency": "3 cy"}
    _write_own_core(tmp_path, "SKL", own)
    monkeypatch.setenv(UARCH_PATH, str(tmp_path))
    for code in ("4801d8 4801d8 4801d8 48ffc8 75f2", "50 4883c408 48ffc8 75f6"):  # beyond a line; push, add rsp
        by_engine, by_python = both(bytes.fromhex(code), "OWN", "loop", 0)
        assert by_engine == by_python
        assert by_python != both(bytes.fromhex(code), "SKL", "loop", 0)[1]
