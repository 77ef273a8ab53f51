# SPDX-License-Identifier: GPL-2.0
"""Runtimes and libraries of releases that this distribution does not have: of make test-releases, not of make test.

They come from Python's packages and from the distribution's other releases, and each shows once more what the
distribution's own shows in make test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def others(releases: Iterable[Any]) -> list[Any]:
    """Parameters of a test, or tuples of them, as those of such a release."""
    return [
        pytest.param(*(release if isinstance(release, tuple) else (release,)), marks=pytest.mark.releases)
        for release in releases
    ]
