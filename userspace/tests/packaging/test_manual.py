# SPDX-License-Identifier: GPL-2.0
"""The manual pages say what the program says of itself. What mandoc makes of them: `make test-packages`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from described import Option, commands, options
from harness import ROOT, memtoll

pytestmark = pytest.mark.xdist_group("build")

SECTIONS = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "OVERHEAD",
    "ENVIRONMENT",
    "FILES",
    "EXIT STATUS",
    "EXAMPLES",
    "SEE ALSO",
]


def page(installed: Path, name: str) -> str:
    return (installed / "share/man/man8" / f"{name}.8").read_text()


def section(text: str, name: str) -> str:
    return text.partition(f"\n.Sh {name}\n")[2].partition("\n.Sh ")[0]


def plain(text: str) -> str:
    return " ".join(text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").split())


def described(text: str) -> set[Option]:
    """The items of the lists of OPTIONS."""
    found = set()
    for item in re.findall(r"^\.It (.*)\n((?:[^.].*\n?)*)", section(text, "OPTIONS"), re.M):
        words = plain(item[0]).replace(" Ns Op = Ns Ar ", "[=").replace(" Ns = Ns Ar ", "=")
        names = re.fullmatch(r"(?:Fl (\w) , )?Fl (--?[\w-]+)(?:=(\S+)|\[=(\S+))?", words)
        assert names, item
        short, long, value, optional = names.groups()
        help_text = re.sub(r"\.$", "", plain(item[1]))
        found.add(
            Option(f"-{short}" if short else "", f"-{long}", f"[{optional}]" if optional else value or "", help_text)
        )
    return found


@pytest.mark.parametrize("command", commands())
def test_options_are_those_of_the_help(command: str, installed: Path) -> None:
    known = options(command)
    assert known and all(option.text for option in known)
    assert described(page(installed, f"memtoll-{command}")) == set(known)


@pytest.mark.parametrize("command", commands())
def test_sections(command: str, installed: Path) -> None:
    text = page(installed, f"memtoll-{command}")
    assert re.findall(r"^\.Sh (.*)$", text, re.M) == SECTIONS
    for name in SECTIONS:
        assert section(text, name).strip(), name


@pytest.mark.root
def test_privileges_are_those_of_the_doctor(installed: Path) -> None:
    """Each with its reason, the first of those that belong together."""
    items = re.findall(r"^\.It Dv (CAP_\w+).*\n[^.]", section(page(installed, "memtoll"), "PRIVILEGES"), re.M)
    told = json.loads(memtoll("doctor", "--json").stdout)["capabilities"]
    assert [name.lower() for name in items] == [each["name"] for each in told]


def test_the_first_page_names_all(installed: Path) -> None:
    text = page(installed, "memtoll")
    for name in (name for name in SECTIONS if name != "OPTIONS"):
        assert section(text, name).strip(), name
    for part in ("DESCRIPTION", "SEE ALSO"):
        assert set(commands()) == set(re.findall(r"Xr memtoll-(\w+) 8", section(text, part)))


@pytest.mark.parametrize("command", commands())
def test_what_is_used_exists(command: str, installed: Path) -> None:
    """In synopsis and examples: options of the command, and commands that there are."""
    text = page(installed, f"memtoll-{command}")
    known = {option.long for option in options(command)}
    for name in re.findall(r"Fl -([\w-]+)", plain(section(text, "SYNOPSIS"))):
        assert not name.strip("-") or f"-{name}" in known or f"--{name}" in known, name
    examples = plain(section(text, "EXAMPLES").replace("\n", " ; "))
    assert f"memtoll {command}" in examples
    for called, words in re.findall(r"memtoll (\w+)([^;|>]*)", examples):
        assert called in commands()
        for name in re.findall(r" (--[\w-]+)", words.partition(" -- ")[0]):
            assert name in {option.long for option in options(called)}, name


def test_each_variable_is_named(installed: Path) -> None:
    text = page(installed, "memtoll")
    read = {
        name
        for path in (ROOT / "userspace").glob("*/*.c")
        for name in re.findall(r'getenv\("(\w+)"\)', path.read_text())
    }
    assert "MEMTOLL_PRICES" in read
    assert read <= set(re.findall(r"\b[A-Z][A-Z_]+\b", section(text, "ENVIRONMENT")))
