"""Draw the pictures of the documentation: python docs/make_pictures.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

import kernmodel as km
from kernmodel.models.chart import ModelName
from kernmodel.plot.compare import compare_figure
from kernmodel.plot.ecm import ecm_figure
from kernmodel.plot.roofline import carm_figure, roofline_figure
from kernmodel.plot.scaling import scaling_figure
from kernmodel.plot.style import write
from kernmodel.plot.sweep import sweep_figure
from kernmodel.plot.tornado import tornado_figure
from kernmodel.studies.compare import compare
from kernmodel.studies.predict.ecm import predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.predict.roofline import ChartRequest, chart_kernels, read_kernel
from kernmodel.studies.scaling import scaling
from kernmodel.studies.sweep.study import SweepStudy, Varied, sweep_grid
from kernmodel.studies.sweep.values import parse_values
from kernmodel.studies.what_if.sensitivity import sensitivity

PICTURES = Path(__file__).parent / "pictures"
COLOURS = {"T_nOL": "#0072b2", "T_L1L2": "#56b4e9", "T_L2L3": "#e69f00", "T_L3Mem": "#d55e00"}
"""Of the palette of Okabe and Ito, which colour-blind people can tell apart."""


def ecm_over_sizes(kernel: str, machine: str, sizes: str) -> None:
    """The contributions to T_ECM as stacked areas over N = M."""
    points = [{"N": n, "M": n} for n in parse_values(sizes, "N")]
    answers = list(predict_ecm_sweep(KernelRequest(kernel, machine, points[0]), CodeRequest(), points))
    numbers = [answer.sizes["N"] for answer in answers]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    times = [answer.prediction.times for answer in answers]
    axes.stackplot(
        numbers, *([t[name] for t in times] for name in COLOURS), labels=list(COLOURS), colors=list(COLOURS.values())
    )
    axes.step(numbers, [t["T_OL"] for t in times], "k--", where="mid", label="T_OL (overlaps)")
    axes.set(
        xscale="log", xlabel="N = M (elements)", ylabel="cycles per cache line of work", xlim=(numbers[0], numbers[-1])
    )
    axes.set_title(f"{kernel} on {answers[0].machine.title}", fontsize="medium")
    axes.legend(loc="upper left", fontsize="small", frameon=False, reverse=True)
    figure.savefig(PICTURES / f"ecm-{kernel.removesuffix('.c')}-{machine}.svg", metadata={"Date": None})
    plt.close(figure)


def roofline_of(name: str, machine: str, kernels: tuple[str, ...], model: ModelName, sizes: dict[str, int]) -> None:
    """Kernels on one chart."""
    requests = [KernelRequest(kernel, machine, sizes) for kernel in kernels]
    answer = chart_kernels(ChartRequest(machine, (model,)), requests, CodeRequest(), (sizes,))
    write(roofline_figure(answer), PICTURES / f"{name}.svg")


def arranged_of(name: str, kernels: Sequence[str], options: km.ChartOptions, **asked: Any) -> None:
    """Kernels set beside one another on Cascade Lake."""
    km.roofline_chart(kernels, "clx", chart=options, **asked).plot(PICTURES / f"{name}.svg")


def carm_of(kernel: str, machine: str) -> None:
    """The application-driven chart beside the cache-aware one."""
    answer = read_kernel(ChartRequest(machine), KernelRequest(kernel, machine, {}), CodeRequest())
    write(carm_figure(answer), PICTURES / f"carm-{kernel}-{machine}.svg")


def ecm_of(name: str, kernel: str, machine: str, sizes: str, cores: tuple[int, ...]) -> None:
    """What `kernmodel ecm --plot` draws."""
    points = [{"N": n} for n in parse_values(sizes, "N")]
    answers = list(predict_ecm_sweep(KernelRequest(kernel, machine, points[0]), CodeRequest(), points, cores))
    write(ecm_figure(answers, "cy/CL"), PICTURES / f"{name}.svg")


def scaling_of(kernel: str, machine: str, sizes: dict[str, int]) -> None:
    """What `kernmodel scaling --plot` draws."""
    answer = scaling(KernelRequest(kernel, machine, sizes), CodeRequest(), ())
    write(scaling_figure([answer], None), PICTURES / f"scaling-{kernel}-{machine}.svg")


def compare_of(kernel: str, machines: tuple[str, ...]) -> None:
    """What `kernmodel compare --plot` draws."""
    answer = compare([KernelRequest(kernel, machines[0], {})], machines, CodeRequest())
    write(compare_figure(answer, None), PICTURES / f"compare-{kernel}.svg")


def sweep_of(name: str, kernel: str, unit: str, varied: Varied) -> None:
    """What `kernmodel sweep --plot` draws."""
    base = Point(KernelRequest(kernel, varied.machines[0], {}), CodeRequest())
    study = SweepStudy.of(sweep_grid(base, varied))
    rows = [row for row, _ in study.rows()]
    titles = [machine.title for machine in study.machines]
    write(sweep_figure(study.grid, rows, unit, titles), PICTURES / f"{name}.svg")


def tornado_of(kernel: str, machine: str) -> None:
    """What `kernmodel what-if --sensitivity --plot` draws."""
    answer = sensitivity(KernelRequest(kernel, machine, {}), CodeRequest())
    write(tornado_figure(answer), PICTURES / f"what-if-{kernel}-{machine}.svg")


if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "kernmodel"  # the same picture gives the same file
    mpl.rcParams["svg.fonttype"] = "none"
    PICTURES.mkdir(exist_ok=True)
    ecm_over_sizes("stencil.c", "clx", "20-20000:240log")
    roofline_of("roofline-stencil-skx-6140", "skx-6140", ("stencil",), "hierarchical", {})
    roofline_of("roofline-kernels-clx", "clx", ("stencil", "triad", "3d-7pt", "dot", "pi"), "carm", {"N": 400})
    arranged_of("roofline-versions-clx", ["matmul.c", "matmul-blocked.c"], km.ChartOptions(versions=True))
    by_time = km.ChartOptions(by_time=True, calls={"stencil": 20, "triad": 2_000_000})
    arranged_of("roofline-shares-clx", ["stencil.c", "triad.c", "3d-7pt.c"], by_time, model="carm", N=400)
    arranged_of("roofline-models-clx", ["triad.c"], km.ChartOptions(axes="same"), model="all")
    carm_of("iso3dfd", "skx-6140")
    ecm_of("ecm-bars-stencil-clx", "stencil", "clx", "100-10000:20log", ())
    ecm_of("ecm-cores-stencil-clx", "stencil", "clx", "5000", tuple(range(1, 21)))
    scaling_of("stencil", "clx", {})
    scaling_of("stencil", "hsw", {"M": 1000, "N": 120_000})
    compare_of("stencil", ("snb", "hsw", "clx", "zen2"))
    tornado_of("stencil", "clx")
    over_n = {"N": parse_values("100-100000:60log", "N")}
    sweep_of("sweep-stencil-clx", "stencil", "cy/CL", Varied(("clx",), sizes=over_n))
    sweep_of("sweep-stencil-machines", "stencil", "LUP/s", Varied(("snb", "clx", "zen2"), sizes=over_n))
