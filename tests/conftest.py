"""Settings of property tests: no deadline, since machines are noisy; in CI the same examples each time, and fewer.

`pytest.mark.needs` names the tools without which a test is skipped: `needs("as", "gcc|clang")`, an assembler and one
of two compilers.

A shell starts what runs in its background with SIGINT ignored, which commands under test would inherit.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal

import pytest
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))
settings.register_profile("kernmodel", deadline=None, derandomize=IN_CI, max_examples=60 if IN_CI else 100)
settings.register_profile("everyday", settings.get_profile("kernmodel"), max_examples=25)
settings.load_profile("kernmodel")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Continuous integration takes fewer examples of a law every day than where thorough tests run, too."""
    if IN_CI and config.option.markexpr == "not thorough":
        settings.load_profile("everyday")


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what thousands of tests and the modules under test consist of."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a tool which is not installed."""
    for tools in (tools for mark in item.iter_markers("needs") for tools in mark.args):
        if not any(map(shutil.which, tools.split("|"))):
            pytest.skip(f"{tools.replace('|', ' or ')} is not installed")
