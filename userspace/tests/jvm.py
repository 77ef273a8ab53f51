# SPDX-License-Identifier: GPL-2.0
"""Java programs, compiled where they are tested, and Java virtual machines that run them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import libraries
from harness import Program, finish, spawn, tool

OLDEST = 17  # whose HotSpot writes a perf map when it is asked
# Of one that is not about them: its second compiler and the threads of its collector take longer than its program.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


def version() -> int:
    said = subprocess.run([tool("java"), "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    found = re.search(r'version "(\d+)', said)
    assert found, said
    return int(found[1])


def build(source: Path, directory: Path) -> Path:
    """The directory, with its classes: by the compiler's module, which a runtime without javac(1) has, too."""
    assert version() >= OLDEST
    compiler = ("-m", "jdk.compiler/com.sun.tools.javac.Main")
    command: list[str | Path] = [tool("java"), *QUICK, *compiler, "-d", directory, source]
    with libraries.patience():
        built = finish(spawn(command), 240)
    assert built.status == 0, built
    return directory


def started(classes: Path, *words: str, options: tuple[str, ...] = QUICK, within: tuple[str, ...] = ()) -> Program:
    """within: a command that runs it."""
    return Program(*within, tool("java"), *options, "-cp", classes, *words)
