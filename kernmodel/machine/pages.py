"""Sizes of pages in which data may lie."""

from __future__ import annotations

from typing import Literal

Pages = Literal["huge", "4k"]
"""Pages of data in memory: of 2 MiB and more, or of 4 KiB."""
