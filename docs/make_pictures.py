"""Draw the pictures of the documentation: python docs/make_pictures.py (needs matplotlib: pip install '.[docs]')."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from kernmodel.studies.predict import predict_ecm_sweep
from kernmodel.studies.ranges import parse_values
from kernmodel.studies.request import CodeRequest, KernelRequest

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


if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "kernmodel"  # the same picture gives the same file
    mpl.rcParams["svg.fonttype"] = "none"
    PICTURES.mkdir(exist_ok=True)
    ecm_over_sizes("stencil.c", "clx", "20-20000:240log")
