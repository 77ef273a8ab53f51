# SPDX-License-Identifier: GPL-2.0
"""Fixtures. Tests marked root trace real processes; without root they fail, they are not skipped (suite.py)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import facts
from busy import busy_recording
from package import Cli
from prepared import Prepared

pytest_plugins = ["suite"]


@pytest.fixture(scope="session", params=sorted(facts.SCENARIOS))
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every recording of facts.py by turns."""
    path = tmp_path_factory.mktemp("facts") / f"{request.param}.memtoll"
    facts.SCENARIOS[request.param](path).database.close()
    return path


@pytest.fixture(scope="session")
def heap_blocks_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Casebook 1, 10 MiB; for those who change nothing."""
    path = tmp_path_factory.mktemp("once") / "heap-blocks.memtoll"
    facts.heap_blocks(path).database.close()
    return path


@pytest.fixture
def heap_blocks(tmp_path: Path, heap_blocks_once: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(heap_blocks_once, tmp_path))


@pytest.fixture(scope="session")
def _busy_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("busy") / "busy.memtoll"
    busy_recording(path)
    return path


@pytest.fixture
def busy(tmp_path: Path, _busy_once: Path) -> Path:
    """Many slices, processes and kinds of facts, with losses; see busy.py."""
    return Path(shutil.copy(_busy_once, tmp_path))


@pytest.fixture(scope="session")
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    made = Prepared(tmp_path_factory.mktemp("cli"))
    yield made
    made.close()


@pytest.fixture
def cli(tmp_path: Path, _prepared: Prepared) -> Cli:
    """python3 -m memtoll, as its user runs it."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return _prepared.run(list(map(str, words)), tmp_path)

    return run
