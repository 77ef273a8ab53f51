# SPDX-License-Identifier: GPL-2.0
"""The unit tests that have bounds for processor time, with these bounds."""

from __future__ import annotations

import os
import subprocess

import pytest

from harness import MEMTOLL

pytestmark = pytest.mark.measure


@pytest.mark.parametrize("name", ["demangle", "symbolize", "unwind_cache", "unwind_hostile", "unwind_table"])
def test_times(name: str) -> None:
    program = MEMTOLL.parent / "tests" / f"test_{name}"
    assert program.exists(), f"{program} is not built: make tests-build"
    done = subprocess.run(
        [program], env=os.environ | {"MEMTOLL_MEASURE": "1"}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
