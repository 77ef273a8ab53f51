# SPDX-License-Identifier: GPL-2.0
"""The tests of extras (extras/extra_*.py), in an environment that has them.

Distributions have no such pandas, pyarrow, Dask and Perfetto together: pip makes a virtual
environment beside what is built, once for each set of requirements. Where that cannot be had this
fails: what is not tested is not said to work.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import harness
from package import ANALYSIS

EXTRAS = ("arrow", "dask", "pprof", "perfetto")
TESTS = ANALYSIS / "tests" / "extras"
INSTALL_SECONDS, TEST_SECONDS = 900, 900
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def requirements() -> list[str]:
    """What the extras and their tests need."""
    project = tomllib.loads((ANALYSIS / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    lines = (TESTS / "requirements.txt").read_text().splitlines()
    return wanted + [line for line in lines if line and not line.startswith("#")]


def run(words: list[str | Path], seconds: int, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=seconds,
        env=env,
        cwd=ANALYSIS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture
def python(_time_limit: None) -> Path:
    """The environment's Python; made when there is none with these requirements."""
    signal.alarm(0)  # the limit of a single test is for what runs inside
    wanted = requirements()
    name = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:16]
    place = harness.MEMTOLL.parent / "environments"
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        place = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "memtoll-tests"
    place.mkdir(parents=True, exist_ok=True)
    environment = place / name
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (environment / "complete").exists():
            shutil.rmtree(environment, ignore_errors=True)
            run([PYTHON, "-m", "venv", environment], INSTALL_SECONDS)
            run([environment / "bin" / "pip", "install", "-q", *wanted], INSTALL_SECONDS)
            (environment / "complete").touch()
    return environment / "bin" / "python"


@pytest.mark.slow
def test_extras(python: Path) -> None:
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "MEMTOLL": str(harness.MEMTOLL), "LC_ALL": "C.UTF-8"}
    env.pop("PYTHONPATH", None)
    options = ["-q", "-c", "pyproject.toml", "--rootdir", ".", "-o", "python_files=extra_*.py"]
    jobs = ["-n", str(os.cpu_count()), "--dist", "loadfile"]
    out = run([python, "-m", "pytest", *options, *jobs, TESTS], TEST_SECONDS, env)
    passed = re.search(r"^(\d+) passed.* in ", out, re.MULTILINE)
    assert passed, out
    assert not re.search(r"\d+ (skipped|xfailed|deselected)", out), out
    # One of each file at least: nothing was overlooked.
    files = sorted(TESTS.glob("extra_*.py"))
    collected = run([python, "-m", "pytest", *options, "--collect-only", TESTS], TEST_SECONDS, env)
    for file in files:
        assert f"extras/{file.name}::" in collected, collected
    print(out)
