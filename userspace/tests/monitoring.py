# SPDX-License-Identifier: GPL-2.0
"""Prometheus and its promtool: this machine's, or Debian's, fetched and not installed, as that would start a server."""

from __future__ import annotations

import fcntl
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from harness import ROOT, tool
from kernels import CACHE, Apt, Unavailable

MONITORING = ROOT / "packaging" / "monitoring"
SUITE = "bookworm"


def fetch(folder: Path) -> None:
    """Its programs, once: others wait meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "promtool").exists():
            return
        Apt(SUITE)("apt-get", "-qq", "download", "prometheus", cwd=Path(scratch))
        (package,) = Path(scratch).glob("*.deb")
        subprocess.run([tool("dpkg-deb"), "-x", package, scratch], timeout=300, check=True)
        for name in ("prometheus", "promtool"):
            (Path(scratch) / "usr/bin" / name).replace(folder / name)


@cache
def why_not(folder: Path) -> str:
    """Tried once: where there is no network that takes its time. Empty: it is there."""
    try:
        fetch(folder)
    except Unavailable as error:
        return str(error)
    return ""


def program(name: str) -> str:
    """Where 'prometheus' or 'promtool' is. Skips the test where it is neither here nor to be had."""
    if found := shutil.which(name):
        return found
    folder = CACHE / "prometheus"
    if why := why_not(folder):
        pytest.skip(f"no Prometheus: {why}")
    return str(folder / name)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
