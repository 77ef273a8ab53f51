# SPDX-License-Identifier: GPL-2.0
"""The brief of a recording: what `memtoll report --brief` prints, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import memtoll
from memtoll.brief import LEAST, ascii_text, brief

import harness
from hostile import hostile
from package import Cli


@pytest.mark.slow
def test_it_is_that_of_the_loader(cli: Cli, scenario: Path) -> None:
    for tokens in (LEAST, 700, 5000):
        done = cli("report", scenario, "--brief", str(tokens))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == harness.memtoll("report", "--brief", str(tokens), scenario).stdout
        assert len(done.stdout.encode()) < tokens


@pytest.mark.slow
def test_names_are_data(tmp_path: Path) -> None:
    path = tmp_path / "hostile.memtoll"
    hostile(path)
    with memtoll.open(path) as rec:
        for tokens in (LEAST, 2000, 30_000):
            text = brief(rec, tokens)
            assert text.isascii() and len(text) < tokens
            assert all(line.isprintable() and ": " in line for line in text.splitlines())
        assert text == harness.memtoll("report", "--brief", "30000", path).stdout


def test_least(cli: Cli, heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec, pytest.raises(ValueError, match=str(LEAST)):
        brief(rec, LEAST - 1)
    done = cli("report", heap_blocks, "--brief", str(LEAST - 1))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert str(LEAST) in done.stderr
    done = cli("report", heap_blocks, "--json", "--brief", "1000")
    assert (done.returncode, done.stdout) == (2, "") and "--json" in done.stderr


def test_ascii() -> None:
    assert ascii_text("a\n\x1b\u202e\u05e9\u00e9\U0001f600~") == "a???\\u05e9\\xe9\\U0001f600~"
