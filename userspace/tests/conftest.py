# SPDX-License-Identifier: GPL-2.0
"""Fixtures. Tests marked root trace real processes; without root they fail, they are not skipped (suite.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness

pytest_plugins = ["suite"]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What measures the machine does so with prices of its own moment, not of an earlier run."""
    if item.get_closest_marker("measure"):
        os.environ["MEMTOLL_PRICES"] = ""


@pytest.fixture(autouse=True)
def _binary() -> None:
    if not os.access(harness.MEMTOLL, os.X_OK):
        pytest.fail(f"{harness.MEMTOLL} is not built: run make", pytrace=False)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a recording may go; does not exist yet."""
    return tmp_path / "a.memtoll"


@pytest.fixture(scope="session")
def mmap_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without any allocator."""
    path = tmp_path_factory.mktemp("freestanding") / "mmap_only"
    flags = "-std=gnu11 -O1 -g -fno-omit-frame-pointer -ffreestanding -fno-stack-protector -fno-pie -no-pie"
    subprocess.run(
        [
            "gcc",
            *flags.split(),
            "-nostdlib",
            "-static",
            "-o",
            str(path),
            str(harness.SOURCES / "freestanding/mmap_only.c"),
        ],
        check=True,
        timeout=60,
    )
    return path


@pytest.fixture
def public_dir() -> Iterator[Path]:
    """A directory every user can enter, and run what is there with its privileges; pytest's own are for one user."""
    unfit = os.ST_NOSUID | os.ST_NOEXEC
    places = (tempfile.gettempdir(), "/var/tmp")
    place = next((place for place in places if not os.statvfs(place).f_flag & unfit), None)
    path = Path(tempfile.mkdtemp(prefix="memtoll-test-", dir=place))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
