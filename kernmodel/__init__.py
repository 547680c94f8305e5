"""kernmodel: how fast a loop kernel can be on a machine, and what holds it back, before anything is run.

`import kernmodel as km` gives the questions of the command line as functions (docs/api.md):

>>> print(km.ecm("stencil.c", machine="clx", N=4000, M=4000))

The way through the package follows the data: `source` (C code), `code` (compiled code) and `machine` (hardware) feed
`traffic` and `incore`, which feed `models`; `studies` asks questions over many predictions, `report` shows them, `api`
is the public face and `cli` the command line. See docs/architecture.md.
"""

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "api.kernels": ("ecm", "ecm_nests", "data_traffic", "traffic_nests", "scale", "block", "compare"),
    "api.charts": ("roofline_chart", "carm_chart", "ChartOptions"),
    "api.changes": ("what_if", "compare_code", "sensitivity", "machine_figures"),
    "api.sweeps": ("sweep_sizes", "Vary", "SweepRun"),
    "api.code": ("analyse_loop", "analyse_kernel", "analyse_loops", "analyse_blocks", "mix", "CoreOptions"),
    "api.inputs": (
        *("list_machines", "check_machines", "import_machine", "load_machine"),
        *("find_nests", "list_kernels", "load_kernel"),
    ),
    "api.checks": ("check",),
    "api.reports": ("kernel_report", "comparison_report"),
    "api.caches": ("simulate", "simulate_cases"),
    "cachesim.run": ("TraceOptions",),
    "api.tables": (
        *("list_instructions", "instructions", "instruction_coverage"),
        *("check_instructions", "import_instructions", "import_core"),
    ),
    "api.evaluation": ("evaluate_blocks", "evaluate_kernels", "BlockChoice"),
    "api.measuring": (
        "measure_block",
        "measure_peaks",
        "measure_instruction",
        "measure_instructions",
        "measure_bandwidth",
        "measure_kernel",
        "validate",
        "probe_machine",
    ),
    "api.binaries": ("binary_blocks", "binary_residency"),
    "api.binary_runs": ("binary_run", "binary_suite", "CodePlace", "RunOptions"),
    "studies.predict.request": ("Loop",),
    "api.options": ("Nest", "CacheOptions", "CodeOptions"),
    "api.result": ("Result",),
    "limits": ("no_limits",),
    "errors": (
        "KernmodelError",
        "InputError",
        "SourceError",
        "SeveralNestsError",
        "UnsupportedKernelError",
        "MachineError",
        "AssemblyError",
        "AmbiguousLoopError",
        "InstructionTableError",
        "StrictError",
        "UsageError",
        "ToolError",
        "MeasurementError",
        "Note",
    ),
}
"""Public names by module; docs/reference.md lists them, too. They are imported when they are first used;
type checkers read `__init__.pyi`."""

_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = ["__version__"]
__all__ += list(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'kernmodel' has no attribute {name!r}")
    value: object = getattr(import_module(f"kernmodel.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
