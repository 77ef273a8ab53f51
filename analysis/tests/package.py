# SPDX-License-Identifier: GPL-2.0
"""The package under test: where it is, and how its commands are run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

ANALYSIS = Path(__file__).resolve().parent.parent
RECORDINGS = Path(__file__).resolve().parent / "recordings"

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ANALYSIS), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
