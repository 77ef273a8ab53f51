# SPDX-License-Identifier: GPL-2.0
"""The virtual environment of the extras' tests; as a command: makes it.

Distributions have no such pandas, pyarrow, Dask and Perfetto together: pip makes one for each set of
requirements, once. make tests-build asks for it, so that no test waits for a download.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from environments import python_with
from package import ANALYSIS

TESTS = ANALYSIS / "tests" / "extras"
EXTRAS = ("arrow", "dask", "pprof", "perfetto", "otlp", "pytest", "mcp")


def requirements() -> list[str]:
    """What the extras and their tests need."""
    project = tomllib.loads((ANALYSIS / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    lines = (TESTS / "requirements.txt").read_text().splitlines()
    return wanted + [line for line in lines if line and not line.startswith("#")]


def python() -> Path:
    wanted = requirements()
    return python_with(wanted)


if __name__ == "__main__":
    try:
        python()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        sys.exit(f"the environment of the extras' tests cannot be made: {error}")
