"""Settings of property tests: no deadline, since machines are noisy; in CI the same examples each time, and fewer."""

from __future__ import annotations

import os

from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))
settings.register_profile("kernmodel", deadline=None, derandomize=IN_CI, max_examples=60 if IN_CI else 100)
settings.load_profile("kernmodel")
