"""Settings of property tests: no deadline, since machines are noisy; in CI the same examples each time, and fewer.

A shell starts what runs in its background with SIGINT ignored, which commands under test would inherit.
"""

from __future__ import annotations

import os
import signal

from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))
settings.register_profile("kernmodel", deadline=None, derandomize=IN_CI, max_examples=60 if IN_CI else 100)
settings.load_profile("kernmodel")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
