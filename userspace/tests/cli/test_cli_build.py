# SPDX-License-Identifier: GPL-2.0
"""The build: what depends on what, what it prints."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from described import OUT, make
from harness import ROOT

# With the other tests that call make: not two at once.
pytestmark = pytest.mark.xdist_group("build")


def sources(pattern: str) -> list[Path]:
    """Of bpf/ and userspace/, without the tests."""
    paths = (path for folder in ("bpf", "userspace") for path in (ROOT / folder).glob(f"*/{pattern}"))
    return sorted(path.relative_to(ROOT) for path in paths if path.parent.name != "tests")


HEADERS = sources("*.h")


def users() -> list[tuple[Path, Path]]:
    """Headers, and the sources that name them themselves."""
    headers = {str(Path(*header.parts[1:])): header for header in HEADERS}
    named = re.compile(r'^#include "(?:bpf/)?([^"]+)"', re.M)
    return [
        (headers[name], source)
        for source in sources("*.c")
        for name in named.findall((ROOT / source).read_text())
        if name in headers
    ]


def known_rules() -> dict[str, set[str]]:
    """What make itself takes each target to depend on: its database, of which only one run is needed."""
    printed = make("-n", "-p", f"{OUT}/memtoll")
    rules = re.findall(r"^([^\s#=:]+):(?!=) *([^|\n]*)", printed, re.M)
    known: dict[str, set[str]] = defaultdict(set)
    for target, prerequisites in rules:
        known[target] |= set(prerequisites.split())
    return known


@pytest.mark.slow
def test_touching_a_header_rebuilds_its_users() -> None:
    make(f"{OUT}/memtoll")
    rules = known_rules()
    named = users()
    assert len(named) > len(HEADERS)
    for header, source in named:
        assert str(header) in rules[f"{OUT}/{source.with_suffix('.o')}"], f"{source} is not rebuilt for {header}"


@pytest.mark.slow
def test_nothing_to_do() -> None:
    make(f"{OUT}/memtoll")
    again = make("V=1", f"{OUT}/memtoll")
    assert " -c " not in again
    assert "gen skeleton" not in again


@pytest.mark.slow
def test_a_commit_rebuilds_one_object() -> None:
    """A unit test stands for all that link the library. With -n, make takes it that the version has changed."""
    targets = [f"{OUT}/memtoll", f"{OUT}/tests/test_options"]
    make(*targets)
    planned = make("-n", "V=1", *targets)
    assert set(re.findall(r" -o (\S+)", planned)) == {f"{OUT}/version.o", f"{OUT}/memtoll"}


def test_verbose_shows_commands(tmp_path: Path) -> None:
    assert "-Werror" not in make(f"O={tmp_path}/short", f"{tmp_path}/short/version.o")
    assert "-Werror" in make("V=1", f"O={tmp_path}/long", f"{tmp_path}/long/version.o")


def test_help_names_the_targets() -> None:
    text = make("help")
    for word in ("demo", "test", "check", "install", "clean", "V=1", "SAN=1", "PREFIX"):
        assert word in text
