"""What holds a kernel back, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.models.calls import CALLS
from kernmodel.models.outside import NEGLIGIBLE, OUTSIDE
from kernmodel.report.text.reasons import reason_text

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, OlBoundBy
    from kernmodel.models.transfers import TransferTime
    from kernmodel.studies.compare import MachineResult
    from kernmodel.studies.predict.roofline import Subject

_IN_WORDS: Mapping[OlBoundBy, str] = {
    "ports": "execution ports",
    "dependency": "a loop-carried dependency",
    "front end": "the front end",
    "scheduling": "the scheduling of µops",
}


def bottleneck_text(prediction: EcmPrediction) -> str:
    """What holds the kernel back on the cores of the prediction, as far as the times are known."""
    if not prediction.unknown:
        return _of_known(prediction)
    verb = "is" if len(prediction.unknown) == 1 else "are"
    return f"Not known, since {', '.join(prediction.unknown)} {verb} not. Of the rest: {_of_known(prediction)}"


def _of_known(prediction: EcmPrediction) -> str:
    binding, transfers, t_ecm = prediction.binding, prediction.transfers, prediction.cycles
    if not binding:
        return "Nothing takes time: the loop body has no known instruction and moves no data."
    times, outside = _times(prediction), prediction.outside
    overlap = outside.overlap_cycles if outside else 0.0
    largest = max(binding, key=lambda name: times[name])
    share = 100 * times[largest] / t_ecm
    if largest == OUTSIDE:
        return f"Short inner loops: what is executed outside their body takes {share:.0f} % of the {t_ecm:.1f} cy/CL."
    if largest == CALLS:
        beside = _hidden(transfers, "them")
        return f"Functions that the loop calls take {share:.0f} % of the {t_ecm:.1f} cy/CL; {beside}."
    if largest == "T_OL":
        what = _IN_WORDS[prediction.ol_bound_by]
        rows = "; chains of several rows overlap" if overlap >= NEGLIGIBLE else ""
        return f"In-core execution: {what} ({reason_text(prediction.core_reason)}{rows}); {_hidden(transfers, 'it')}."
    if largest == "T_nOL":
        beside = _beside_loads(binding, transfers, t_ecm)
        return f"Loads into registers (T_nOL) take {share:.0f} % of the {t_ecm:.1f} cy/CL{beside}."
    slowest = next((transfer for transfer in transfers if transfer.name == largest), None)
    if slowest is not None and slowest.penalty_cycles > slowest.bandwidth_cycles:
        return f"Latency: {largest} takes {share:.0f} % of the {t_ecm:.1f} cy/CL, most of it beyond the bandwidth."
    if largest == transfers[-1].name:
        mix = transfers[-1].bandwidth
        rate = f" at {mix.bytes_per_second / 1e9:.1f} GB/s" if mix else ""
        return f"Memory bandwidth: {largest} takes {share:.0f} % of the {t_ecm:.1f} cy/CL{rate}."
    return f"Cache bandwidth: {largest} takes {share:.0f} % of the {t_ecm:.1f} cy/CL."


def _times(prediction: EcmPrediction) -> dict[str, float]:
    """The times of a prediction, T_OL without what counts less in it."""
    times, outside = prediction.times, prediction.outside
    times["T_OL"] = max(0.0, times["T_OL"] - (outside.less_cycles if outside else 0.0))
    if outside and outside.straight_cycles:
        times["T_nOL"] = min(times["T_nOL"], times["T_OL"])
    return times


def limit_short(prediction: EcmPrediction) -> str:
    """The time that holds the kernel back most, with its share of T_ECM, in a few words for a table."""
    if not prediction.binding or not prediction.cycles:
        return "nothing"
    times = _times(prediction)
    largest = max(prediction.binding, key=lambda name: times[name])
    share = f"{times[largest] / prediction.cycles:.0%}"
    if largest == "T_OL":
        return f"T_OL {share}: {_IN_WORDS[prediction.ol_bound_by]}"
    return f"{largest} {share}"


def _beside_loads(binding: tuple[str, ...], transfers: tuple[TransferTime, ...], t_ecm: float) -> str:
    """What the transfers take, where loads into registers take most."""
    added = [transfer for transfer in transfers if transfer.name in binding]
    if added:
        shares = (f"{t.name} {100 * t.cycles / t_ecm:.0f} %" for t in sorted(added, key=lambda t: -t.cycles))
        return f", more than any transfer ({', '.join(shares)})"
    return f"; {_hidden(transfers, 'them')}"


def _hidden(transfers: tuple[TransferTime, ...], pronoun: str) -> str:
    """What becomes of the transfers where something in the core, which the pronoun stands for, takes longest."""
    if not all(transfer.known for transfer in transfers):
        return "what the transfers take is not known"
    moving = any(transfer.cycles for transfer in transfers)
    return f"data transfers hide behind {pronoun}" if moving else "no data come from beyond the first cache"


def because_text(result: MachineResult) -> str:
    """What holds one core and a full domain back; empty without an answer."""
    return "" if result.answer is None else f"{bottleneck_text(result.answer.prediction)} {result.because}"


def limit_text(subject: Subject) -> str:
    """What limits the prediction of a kernel on a chart, on all cores of it; empty without one."""
    answer = subject.predicted
    if answer is None:
        return ""
    point, prediction = answer.scaling[0], answer.prediction
    if point.cores == 1 or not point.saturated:
        return bottleneck_text(prediction)
    found, domain = prediction.saturation_recursive, answer.machine.topology.cores_per_numa_domain
    at = f": {found} of {min(point.cores, domain)} cores saturate it" if found is not None else ""
    return f"Memory bandwidth of {'each' if point.domains > 1 else 'the'} ccNUMA domain{at}."
