# SPDX-License-Identifier: GPL-2.0
"""Texts that are kept: a report as it is today, to be looked at where it changes."""

from __future__ import annotations

import difflib
import os

from harness import TESTS

GOLDEN = TESTS / "views" / "golden"


def is_golden(name: str, text: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("MEMTOLL_ACCEPT"):
        golden.write_text(text)
    wanted = golden.read_text()
    change = "".join(difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), golden.name, "now"))
    assert not change, f"{change}\nif this is wanted: MEMTOLL_ACCEPT=1 python3 -m pytest views -k 'golden or screen'"
    for line in text.splitlines():  # a setting is not cut, and a command can be pasted
        assert len(line) <= 80 or " " not in line.strip() or "memtoll " in line, line
