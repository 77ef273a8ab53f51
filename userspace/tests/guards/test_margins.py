# SPDX-License-Identifier: GPL-2.0
"""What margins.py says of bounds that are near, of runs whose numbers are known."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import margins
from margins import margin

TESTS = Path(margins.__file__).parent
ASSERTING = """
import os
import pytest

@pytest.mark.parametrize("name", ["one", "other"])
def test_it(name):
    varies = float(os.environ["VARIES"])
    assert 10 < varies < 1000
    assert 100 == pytest.approx(99, abs=4)
    assert varies == pytest.approx(20, abs=9)
    assert len(name) < 7 and not varies < 0
"""


def test_of_each_kind() -> None:
    assert margin("<", 1, 2) == margin(">=", 2, 1) == pytest.approx(0.693, abs=0.001)
    assert margin("==", 101, pytest.approx(100, abs=4)) == margin("==", pytest.approx(100, abs=4), 101) == 0.75
    assert margin("<=", 3, 3) == 0
    for operator, left, right in (("<", 0, 5), ("<", 5, 3), ("<", "a", "b"), ("==", 3, 3), ("in", 1, [1])):
        assert margin(operator, left, right) is None


def test_near_ones_are_named(tmp_path: Path) -> None:
    """A conftest as ours, so that what collects is what is tried; each side of a chain is a comparison of its own."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["suite"]\n')
    (tmp_path / "test_asserting.py").write_text(ASSERTING)
    runs = [tmp_path / name for name in ("first", "second", "third")]
    for run, varies in zip(runs, ("11.5", "12", "14")):
        env = {**os.environ, margins.MARGINS: str(run), "VARIES": varies, "PYTHONPATH": str(TESTS)}
        env["MEMTOLL"] = str(tmp_path / "memtoll")  # beside which what is compiled is kept
        words = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *margins.ADDOPTS.split()]
        done = subprocess.run([*words, tmp_path], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
    near = margins.judged(runs)
    assert [(one.place[0].rpartition("::")[2], one.place[1].partition(":")[2]) for one in near] == [
        ("test_it[one]", "10"),
        ("test_it[other]", "10"),
        ("test_it[one]", "8"),
        ("test_it[other]", "8"),
    ]
    assert near[0].nearest.startswith("11.5 == 20") and near[2].nearest == "10 < 11.5"
