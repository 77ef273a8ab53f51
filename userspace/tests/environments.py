# SPDX-License-Identifier: GPL-2.0
"""Where what tests fetch is kept, beside what is built; and virtual environments of Python there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness import MEMTOLL

PYTHON: Final = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
SECONDS: Final = 900


def place() -> Path:
    """A cache of the user's where nothing may be written beside what is built."""
    environments = MEMTOLL.parent / "environments"
    if not os.access(environments if environments.exists() else environments.parent, os.W_OK):
        environments = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "memtoll-tests"
    environments.mkdir(parents=True, exist_ok=True)
    return environments


def python_with(packages: Sequence[str]) -> Path:
    """Python of an environment with these packages; made when there is none. What pip says is in the error."""
    name = hashlib.sha256("\n".join([sys.version, *packages]).encode()).hexdigest()[:16]
    made = place() / name
    with (place() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "complete").exists():
            shutil.rmtree(made, ignore_errors=True)
            pip = str(made / "bin" / "pip")
            for words in (
                [PYTHON, "-m", "venv", str(made)],
                [pip, "install", "-q", "--disable-pip-version-check", *packages],
            ):
                done = subprocess.run(
                    words, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=SECONDS, check=False
                )
                if done.returncode:
                    raise RuntimeError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
            (made / "complete").touch()
    return made / "bin" / "python"
