# SPDX-License-Identifier: GPL-2.0
"""What tests of containers share: a root with a program and its libraries, and memtoll that sees what runtimes keep."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from harness import MEMTOLL, Program, tool, wait_until


def put_program(program: Path, root: Path) -> None:
    """At its top, with a libc of its own."""
    listed = subprocess.run([tool("ldd"), str(program)], capture_output=True, text=True, timeout=20, check=True)
    for library in re.findall(r"(/\S+) \(0x", listed.stdout):
        copy = root / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    shutil.copy(program, root / program.name)


def seeing(directory: Path, there: str, *words: str | Path) -> list[str | Path]:
    """memtoll with that directory in the place of another."""
    mounted: list[str | Path] = ["sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', directory, there, MEMTOLL]
    return [tool("unshare"), "--mount", *mounted, *words]


def make_calls(program: Program, more: int) -> None:
    """It makes so many from now on."""
    # The next line may have been written before, and be read late; the one after it was not.
    program.beats()
    program.beats()
    wanted = program.calls() + more
    wait_until(lambda: program.calls() >= wanted, f"{more} calls")
