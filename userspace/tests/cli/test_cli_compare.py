# SPDX-License-Identifier: GPL-2.0
"""memtoll compare: what it refuses. No root, no tracer."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import assert_refused, memtoll

CHANGE = ("--set", "FOO=1")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--", "true"), ("no change to try", "--set", "--preload")),
        (CHANGE, ("no command",)),
        ((*CHANGE, "--"), ("no command",)),
        (("--set", "FOO", "--", "true"), ("'FOO' is not VAR=VALUE",)),
        (("--set", "=1", "--", "true"), ("'=1' is not",)),
        (("--set", "1A=1", "--", "true"), ("'1A=1' is not",)),
        (("--set", "A B=1", "--", "true"), ("'A B=1' is not",)),
        (("--set",), ("--set",)),
        (("--preload", "libnothing.so.9", "--", "true"), ("libnothing.so.9", "no such library")),
        (("--preload", "/nowhere/lib.so", "--", "true"), ("/nowhere/lib.so", "no such library")),
        (("--preload", "/etc/passwd", "--", "true"), ("/etc/passwd", "not a shared library")),
        ((*CHANGE, "--runs", "0", "--", "true"), ("--runs '0'", "1 to 1000")),
        ((*CHANGE, "--runs", "-1", "--", "true"), ("--runs '-1'",)),
        ((*CHANGE, "--runs", "many", "--", "true"), ("--runs 'many'",)),
        ((*CHANGE, "-o", "", "--", "true"), ("-o ''",)),
        ((*CHANGE, "-d", "soon", "--", "true"), ("-d 'soon'",)),
        ((*CHANGE, "-p", "1", "--", "true"), ("-p",)),
    ],
)
def test_usage(words: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert_refused(memtoll("compare", *words), 2, *names)


def test_recordings_are_not_replaced(tmp_path: Path) -> None:
    """Before anything is run, whichever it is that exists."""
    (tmp_path / "a-with-2.memtoll").touch()
    result = memtoll("compare", *CHANGE, "-o", tmp_path / "a", "--", "true")
    assert_refused(result, 1, tmp_path / "a-with-2.memtoll", "--force")


def test_help() -> None:
    result = memtoll("compare", "--help")
    assert (result.status, result.stderr) == (0, "")
    for word in ("--set", "--preload", "--runs", "--probes", "--min-size", "Exit status"):
        assert word in result.stdout
