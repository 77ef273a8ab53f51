# SPDX-License-Identifier: GPL-2.0
"""What is installed, into a directory of the tests' own."""

from __future__ import annotations

from pathlib import Path

import pytest

from described import make

PREFIX = Path("opt/tools")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix in it."""
    root = tmp_path_factory.mktemp("installed")
    make("install-built", f"DESTDIR={root}", f"PREFIX=/{PREFIX}")
    assert [path.name for path in root.iterdir()] == [PREFIX.parts[0]]
    return root / PREFIX
