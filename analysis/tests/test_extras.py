# SPDX-License-Identifier: GPL-2.0
"""The tests of extras (extras/extra_*.py), in an environment that has them (extras_environment.py).

Where that cannot be had this fails: what is not tested is not said to work.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import extras_environment
import harness
from extras_environment import TESTS
from package import ANALYSIS

TEST_SECONDS = 900


def run(words: list[str | Path], env: dict[str, str]) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=TEST_SECONDS,
        env=env,
        cwd=ANALYSIS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}"
    return done.stdout


@pytest.fixture
def python(_time_limit: None) -> Path:
    signal.alarm(0)  # the limit of a single test is for what runs inside
    return extras_environment.python()


def environment(**extra: str) -> dict[str, str]:
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "MEMTOLL": str(harness.MEMTOLL), "LC_ALL": "C.UTF-8"} | extra
    env.pop("PYTHONPATH", None)
    return env


OPTIONS = ["-q", "-c", "pyproject.toml", "--rootdir", ".", "-o", "python_files=extra_*.py"]


@pytest.mark.measure
def test_ten_thousand_recordings(python: Path) -> None:
    """The number that is promised; test_extras shows the same of fewer."""
    env = environment(MEMTOLL_FLEET_RECORDINGS="10000")
    out = run([python, "-m", "pytest", *OPTIONS, TESTS / "extra_cluster.py"], env)
    assert re.search(r"^3 passed in ", out, re.MULTILINE), out


@pytest.mark.extras
def test_extras(python: Path) -> None:
    """By one process: others run beside it, and each more would import pandas, Arrow, Dask and the like again."""
    out = run([python, "-m", "pytest", *OPTIONS, "-rp", TESTS], environment())
    passed = re.search(r"^(\d+) passed.* in ", out, re.MULTILINE)
    assert passed, out
    assert not re.search(r"\d+ (skipped|xfailed|deselected)", out), out
    # One of each file at least: nothing was overlooked.
    for file in sorted(TESTS.glob("extra_*.py")):
        assert f"extras/{file.name}::" in out, out
    print(out)
