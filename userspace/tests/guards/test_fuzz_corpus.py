# SPDX-License-Identifier: GPL-2.0
"""What was found once, or is odd on purpose, is read by whom it is for: userspace/tests/fuzz/corpus."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import MEMTOLL, TESTS

CORPUS = sorted((TESTS / "fuzz" / "corpus").iterdir())


@pytest.mark.parametrize("folder", CORPUS, ids=lambda folder: folder.name)
def test_corpus(folder: Path) -> None:
    """Natively, as `make check` builds them; make fuzz tries them, changed, with sanitizers."""
    inputs = sorted(folder.iterdir())
    assert inputs
    for path in inputs:
        done = subprocess.run(
            [MEMTOLL.parent / "fuzz" / f"fuzz_{folder.name}", "--input", path],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, (path, done)
