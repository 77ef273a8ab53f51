# SPDX-License-Identifier: GPL-2.0
"""Pictures of a recording or a comparison, each a function that draws one with its finding as the title.

    memtoll.pictures.address_map(rec).savefig("sweeps.png")

All take ax=AXES to draw into a figure of yours, or size=(inches, inches) of a new one, and
theme='light' or 'dark', and return the Figure. Nothing here uses pyplot: no window, no global state.
"""

from __future__ import annotations

from .addresses import address_map
from .difference import before_after
from .flames import flame
from .latency import fault_latency, malloc_latency
from .overtime import timeline
from .sizes import sizes

__all__ = ["address_map", "before_after", "fault_latency", "flame", "malloc_latency", "sizes", "timeline"]
