# SPDX-License-Identifier: GPL-2.0
"""What `--help` says of each command: what manual pages and completion are held against."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness import MEMTOLL, ROOT, memtoll, tool

# As it was given to make, or the names in its dependency files would be others.
OUT = MEMTOLL.parent.relative_to(ROOT) if MEMTOLL.is_relative_to(ROOT) else MEMTOLL.parent


@dataclass(frozen=True)
class Option:
    short: str  # "-d" or ""
    long: str  # "--duration"
    value: str  # "TIME", "[FILE]" where it may be left out, ""
    text: str


@cache
def commands() -> tuple[str, ...]:
    listed = memtoll("--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0]
    return tuple(line.split()[0] for line in listed.splitlines())


@cache
def options(command: str) -> tuple[Option, ...]:
    """As argp prints them: names to the left, the text from column 29 on, on several lines."""
    found: list[Option] = []
    for line in memtoll(command, "--help").stdout.splitlines():
        begins = re.match(r" {2}(?:(-\w), | {4})(--[\w-]+)(?:=(\S+)|\[=(\S+)\])?(?:$| +(\S.*))", line)
        if begins:
            short, long, value, optional, text = begins.groups()
            found.append(Option(short or "", long, f"[{optional}]" if optional else value or "", text or ""))
        elif found and re.match(r" {29}\S", line):
            last = found.pop()
            found.append(Option(last.short, last.long, last.value, f"{last.text} {line.strip()}".strip()))
    return tuple(found)


def make(*words: str | Path, seconds: float = 60) -> str:
    """With what is built already."""
    done = subprocess.run(
        [tool("make"), "-C", ROOT, f"O={OUT}", *words],
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout
