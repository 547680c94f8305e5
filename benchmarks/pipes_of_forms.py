"""Which pipes execute vector instructions on this host, told by what others beside them take, and what the model says.

    python benchmarks/pipes_of_forms.py PATTERN [--core NAME] [--seconds S] [--all]

Of each form of the core's table that the regular expression is found in, four instances that wait for nothing are timed
in a loop, alone and each with two operations of 256 bits behind it that two pipes of a Zen execute: vaddpd (FP2, FP3),
vmulpd (FP0, FP1), vpshufb (FP1, FP2) and vpmulld (FP0, FP1 on Zen 4; FP0, FP3 on Zen 3), whose registers the instances
do not name. Printed are
the cycles of an instance here and by the model where they are more than 7 % apart, or of all forms (`--all`). So an
instance that takes 0.50 cycles alone and 1.50 beside vmulpd and vpmulld, 1.00 beside the others, is executed by FP0 and
FP1. Instructions without VEX take twice as long beside these as alone on Zen 4, whatever executes them: leave them out.
"""

from __future__ import annotations

import argparse
import re
import time

from vector_places import compare

from kernmodel.errors import KernmodelError
from kernmodel.incore.core import Core, Settings
from kernmodel.measure.host import Harness
from kernmodel.measure.instructions import parallel_instances

_BESIDE = {"": "", "A": "vaddpd", "M": "vmulpd", "H": "vpshufb", "W": "vpmulld"}
_INSTANCES, _APART = 4, 0.07


def times(harness: Harness, instances: list[str], beside: str, core: Core) -> tuple[float, float]:
    """Cycles of an instance here and by the model."""
    others = [f"{beside} ymm{number}, ymm28, ymm29" for number in (30, 31)] if beside else []
    lines = [line for instance in instances for line in (instance, *others)]
    measured, predicted = compare(harness, lines, core)
    return measured / len(instances), predicted / len(instances)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", type=re.compile)
    parser.add_argument("--core", default="ZEN4")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--all", action="store_true", help="print forms about which both agree, too")
    options = parser.parse_args()
    core = Core.open(options.core, Settings())
    forms = [form for form in core.table.forms() if options.pattern.search(form)]
    asked, agree, until = 0, 0, time.monotonic() + options.seconds
    with Harness() as harness:
        for form in forms:
            if time.monotonic() > until:
                break
            try:
                instances = parallel_instances(form)[:_INSTANCES]
                found = {name: times(harness, instances, own, core) for name, own in _BESIDE.items()}
            except KernmodelError:
                continue
            if not all(measured > 0 for measured, _ in found.values()):
                continue  # a fault's handler, or a clock that changed
            asked += 1
            apart = any(abs(predicted / measured - 1) > _APART for measured, predicted in found.values())
            agree += not apart
            if apart or options.all:
                shown = "  ".join(f"{name} {own:.2f} {other:.2f}".strip() for name, (own, other) in found.items())
                print(f"{form:36} {shown}", flush=True)
    print(f"{agree} of {asked} forms agree; {len(forms) - asked} could not be measured so, or not in time")


if __name__ == "__main__":
    main()
