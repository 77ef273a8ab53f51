# SPDX-License-Identifier: GPL-2.0
"""Completion knows every option. bash's is asked; zsh and fish are by `make test-packages`."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from described import commands, options
from harness import tool

pytestmark = pytest.mark.xdist_group("build")

EXAMPLES = Path(__file__).parents[3] / "analysis/memtoll/examples"


def complete(installed: Path, *words: str, cwd: Path | None = None) -> set[str]:
    """What bash would offer for the last of the words, which it has cut at "=" as readline does."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _memtoll; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        [tool("bash"), "-c", script, "bash", installed / "share/bash-completion/completions/memtoll", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0 and done.stderr == "", done
    return set(done.stdout.split("\n")) - {""}


@pytest.mark.slow
def test_commands(installed: Path) -> None:
    assert complete(installed, "memtoll", "") == {*commands(), "--help", "--version"}
    assert complete(installed, "memtoll", "rec") == {"record"}


@pytest.mark.parametrize("command", commands())
def test_every_option(command: str, installed: Path) -> None:
    known = {name for option in options(command) for name in (option.short, option.long) if name}
    offered = complete(installed, "memtoll", command, "-")
    assert {name.rstrip("=") for name in offered} == known
    asks = {option.long for option in options(command) if option.value and option.value[0] != "["}
    assert {name.rstrip("=") for name in offered if name.endswith("=")} == asks


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["record", "--probes", "fau"], {"faults"}),
        (["record", "--probes", "=", "fau"], {"faults"}),
        (["record", "--probes", "alloc,fau"], {"alloc,faults"}),
        (["record", "-d", "10s", "--sl"], {"--slice="}),
        (["record", "--slice", "=", "1s", "--sa"], {"--sample="}),
        (["report", "--folded", "=", "zero.k"], {"zero.kernel"}),
        (["report", "--format", "=", "mark"], {"markdown"}),
        (["report", "--baseline", "=", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["report", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["explain", "calloc-re"], {"calloc-reuse-memset"}),
        (["explain", "first-touch", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["demo", ""], {"zeroing", "swap", "healthy"}),
        (["symbolize", "--debug", str(EXAMPLES)[:-1]], {str(EXAMPLES)}),
        (["stat", "--", "memtoll-no-such-pro"], set()),
        (["stat", "--", "true", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["stat", "true", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["stat", "--json", "=", f"{EXAMPLES}/s"], {f"{EXAMPLES}/swap.memtoll"}),
        (["nonsense", "-"], set()),
    ],
    ids=lambda value: " ".join(value)[-30:] if isinstance(value, list) else "",
)
def test_values(words: list[str], offered: set[str], installed: Path) -> None:
    assert complete(installed, "memtoll", *words) == offered


def test_processes(installed: Path) -> None:
    assert "1" in complete(installed, "memtoll", "record", "-p", "1")
    assert "1,1" in complete(installed, "memtoll", "record", "-p", "1,1")


def test_names_of_processes_are_no_commands(installed: Path, tmp_path: Path) -> None:
    """Whoever starts a process names it; whoever completes may be root."""
    names = f"mtc{os.getpid()}", "$(>mtodd)`>mt`"
    script = 'printf %s "$1" >/proc/$$/comm && echo && read -r end'
    with ExitStack() as running:
        for name in names:
            words = [tool("sh"), "-c", script, "sh", name]
            process = running.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            assert process.stdout and process.stdout.readline() == b"\n"
        offered = complete(installed, "memtoll", "watch", "-n", "", cwd=tmp_path)
    assert names[0] in offered and names[1] not in offered
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", commands())
def test_zsh_and_fish_name_every_option(command: str, installed: Path) -> None:
    zsh = (installed / "share/zsh/site-functions/_memtoll").read_text()
    zsh = zsh.partition(f"\n\t{command})\n")[2].partition("\n\t\t;;")[0]
    fish = (installed / "share/fish/vendor_completions.d/memtoll.fish").read_text()
    fish_lines = [line for line in fish.splitlines() if f"__fish_seen_subcommand_from {command}'" in line]
    for option in options(command):
        assert re.search(rf"{option.long}(=-?)?[}}\[]", zsh), option
        assert not option.short or re.search(rf"{{{option.short}\+?,", zsh), option
        (line,) = [line for line in fish_lines if f" -l {option.long[2:]} " in line]
        assert not option.short or f" -s {option.short[1:]} " in line
