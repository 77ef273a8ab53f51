# SPDX-License-Identifier: GPL-2.0
"""Every command of the README does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness import MEMTOLL, ROOT, Program, tool, workload
from swapping import in_cgroup, make_cgroup

README = (ROOT / "README.md").read_text()


def commands() -> list[str]:
    """The indented lines that begin with one of our tools; what they print is indented too, but not such."""
    lines = re.findall(r"^    ((?:memtoll|sqlite3|make) .*)$", README, re.M)
    return [line.split("#")[0].strip() for line in lines]


def test_there_are_commands() -> None:
    assert len(commands()) >= 11
    assert sum(line.startswith("make ") for line in commands()) == 2


@pytest.mark.root
def test_commands(tmp_path: Path) -> None:
    """In the README's order: report reads what record wrote. 1234 and server are a process in a cgroup of ours."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "memtoll").symlink_to(MEMTOLL)
    server = tmp_path / "server"
    shutil.copy(workload("calloc_loop"), server)
    (tmp_path / "program").write_text(f"#!/bin/sh\nexec {shlex.quote(str(workload('cpu_loop')))} 101\n")
    (tmp_path / "program").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    with ExitStack() as stack:
        cgroup = make_cgroup(stack)
        for line in commands():
            if line.startswith("make "):
                continue  # the tests are run by one; the other has a test of its own
            words = shlex.split(line)
            words[2:2] = ["--runs", "1"] if words[1] == "compare" else []
            with ExitStack() as running:
                if {"1234", "server", "/sys/fs/cgroup/service"} & set(words):
                    command = in_cgroup(cgroup, server, "1048576", "0", "--seconds", "600", "--rest", "5000")
                    names = {"1234": str(running.enter_context(Program(*command)).pid)}
                    names |= {"2s": "1s", "10s": "1s", "/sys/fs/cgroup/service": str(cgroup)}
                    words = [names.get(word, word) for word in words]
                done = subprocess.run(
                    words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
                )
            assert done.returncode == 0, (line, done)
            assert words[1] == "record" or done.stdout, line


@pytest.mark.root
def test_demo() -> None:
    """make demo ends in a verdict, and the README shows that verdict's words."""
    done = subprocess.run(
        [tool("make"), "-C", ROOT, f"O={MEMTOLL.parent}", "demo"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done
    for words in (
        "Zeroing takes",
        "ADVICE calloc-reuse-memset",
        "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072",
        "CHECKS",
    ):
        assert words in done.stdout
        assert words in README


def test_files_named_exist() -> None:
    """A path that the README names is there."""
    for path in re.findall(r"`((?:bpf|userspace|vmlinux)/[^`]*|\.ci/[^`]*)`", README):
        assert (ROOT / path.split()[0]).exists(), path
    for name in re.findall(r"`(\w+\.(?:c|sql))`", README):
        assert list((ROOT / "userspace").glob(f"*/{name}")), name
