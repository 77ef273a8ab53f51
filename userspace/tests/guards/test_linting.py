# SPDX-License-Identifier: GPL-2.0
"""make lint: what is found fails, what cannot be asked is undecided, and no script is left out."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NoReturn

import pytest

import linting
from linting import Check, Undecided, carried_out, scripts, write


def test_what_is_found_is_told() -> None:
    result = carried_out(Check("a", lambda: ["sh", "-c", "echo file.c:7: a slip; exit 1"]))
    assert (result.found, result.undecided) == ("file.c:7: a slip\n", "")
    assert carried_out(Check("silent", lambda: ["false"])).found
    assert not carried_out(Check("good", lambda: ["echo", "file.c: all well"])).found


def test_a_tool_that_is_not_to_be_had_leaves_it_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(_packages: object) -> NoReturn:
        raise RuntimeError("pip: status 1\nno route to host")

    monkeypatch.setattr(linting, "python_with", no_network)
    result = carried_out(Check("ruff", lambda: linting.ruff("check")))
    assert not result.found and "no route to host" in result.undecided
    monkeypatch.setattr(linting, "CLANG", 1)
    with pytest.raises(Undecided):
        linting.tool("clang-format")


def test_results_are_what_the_sum_reads(tmp_path: Path) -> None:
    def undecided() -> NoReturn:
        raise Undecided("no tool")

    checks = Check("good", lambda: ["true"]), Check("bad", lambda: ["false"]), Check("none", undecided)
    write(tmp_path / "lint.xml", [carried_out(check) for check in checks])
    good, bad, none = ElementTree.parse(tmp_path / "lint.xml").getroot().iter("testcase")
    assert not list(good)
    assert bad.find("failure") is not None
    skipped = none.find("skipped")
    assert skipped is not None and skipped.get("message") == "undecided: no tool"


def test_scripts_without_a_suffix_are_seen() -> None:
    shell = set(scripts(linting.SHELL))
    assert {".ci/deps", ".ci/run", "userspace/tests/noisy", "userspace/tests/kernels/init"} <= shell
    assert "userspace/tests/run" not in shell
    assert "userspace/tests/run" in scripts("python3", "")
