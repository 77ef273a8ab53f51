# SPDX-License-Identifier: GPL-2.0
"""The virtual environment of the extras' tests, beside what is built; as a command: makes it.

Distributions have no such pandas, pyarrow, Dask and Perfetto together: pip makes one for each set of
requirements, once. make tests-build asks for it, so that no test waits for a download.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ANALYSIS = Path(__file__).resolve().parent.parent
MEMTOLL = Path(os.environ.get("MEMTOLL", ANALYSIS.parent / ".output" / "memtoll")).absolute()
TESTS = ANALYSIS / "tests" / "extras"
EXTRAS = ("arrow", "dask", "pprof", "perfetto")
SECONDS = 900
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def requirements() -> list[str]:
    """What the extras and their tests need."""
    project = tomllib.loads((ANALYSIS / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    lines = (TESTS / "requirements.txt").read_text().splitlines()
    return wanted + [line for line in lines if line and not line.startswith("#")]


def run(words: list[str | Path]) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}")


def python() -> Path:
    """The environment's Python; made when there is none with these requirements."""
    wanted = requirements()
    name = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:16]
    place = MEMTOLL.parent / "environments"
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "memtoll-tests"
    place.mkdir(parents=True, exist_ok=True)
    environment = place / name
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (environment / "complete").exists():
            shutil.rmtree(environment, ignore_errors=True)
            run([PYTHON, "-m", "venv", environment])
            run([environment / "bin" / "pip", "install", "-q", *wanted])
            (environment / "complete").touch()
    return environment / "bin" / "python"


if __name__ == "__main__":
    try:
        python()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"the environment of the extras' tests cannot be made: {error}")
