"""Settings of the property tests: no deadline, since machines are noisy, and in CI the same examples in every run."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("kernmodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("kernmodel")
