# SPDX-License-Identifier: GPL-2.0
""".ci/deps: what it asks for where things are missing. Nothing is installed: apt-get is a stand-in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness import ROOT, tool

DEPS = ROOT / ".ci" / "deps"


def deps(*args: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = dict(os.environ) if path is None else {"PATH": str(path)}
    return subprocess.run([str(DEPS), *args], env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def poor(tmp_path: Path) -> Path:
    """A PATH with next to nothing in it."""
    for name in ("sh", "id", "grep", "env", "make", "gcc", "pkg-config"):
        (tmp_path / name).symlink_to(tool(name))
    return tmp_path


def test_silent_where_nothing_is_missing() -> None:
    done = deps("test")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_unknown_distribution(poor: Path) -> None:
    done = deps(path=poor)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    names = done.stderr.split()
    assert "clang" in names
    assert "make" not in names, "make is there"


def test_asks_apt_only_for_what_is_missing(poor: Path) -> None:
    if "debian" not in Path("/etc/os-release").read_text().lower():
        pytest.skip("the stand-in plays Debian's apt")
    log = poor / "log"
    for name in ("apt-get", "sudo"):
        (poor / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{log}\n')
        (poor / name).chmod(0o755)
    (poor / "apt-cache").write_text("#!/bin/sh\necho '  Candidate: 1.0'\n")
    (poor / "apt-cache").chmod(0o755)
    done = deps(path=poor)
    lines = log.read_text().splitlines()
    assert len(lines) == 1, "no update is needed where all packages are known"
    assert " install " in lines[0]
    assert "--no-install-recommends" in lines[0]
    words = lines[0].split()
    assert "clang" in words
    assert not {"make", "gcc", "pkg-config", "libelf-dev"} & set(words)
    # The stand-in installs nothing, and that does not go unnoticed.
    assert done.returncode == 1
    assert "clang" in done.stderr.splitlines()[-1]


def test_usage() -> None:
    assert deps("nonsense").returncode == 2
