# SPDX-License-Identifier: GPL-2.0
"""The command line: what is asked wrongly is refused in one line, with status 2. No root needed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness import MEMTOLL, assert_refused, finish, memtoll, spawn, tool

COMMAND = ["--", "true"]


@pytest.mark.parametrize(
    "time", ["0", "0s", "-1", "-1s", "", "x", "10x", "1e9999", "nan", "inf", "5 s", "99999999999999999999"]
)
@pytest.mark.parametrize("command", ["record", "stat"])
def test_bad_duration(command: str, time: str, tmp_path: Path) -> None:
    assert_refused(memtoll(command, "-d", time, *COMMAND, cwd=tmp_path), 2, time)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["-1", "", "x", "12Q", "1.5.2K", "99999999999999999999", "64 KiB!"])
def test_bad_size(size: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", "--min-size", size, *COMMAND, cwd=tmp_path), 2, size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["-1", "", "x", "12Q", "1023K", "0", "99999999999999999999"])
@pytest.mark.parametrize("command", ["record", "stat"])
def test_bad_max_size(command: str, size: str, tmp_path: Path) -> None:
    assert_refused(memtoll(command, "--max-size", size, *COMMAND, cwd=tmp_path), 2, "--max-size", size)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("time", ["0", "", "x", "99ms", "61s", "2m", "nan"])
def test_bad_slice(time: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", "--slice", time, *COMMAND, cwd=tmp_path), 2, "--slice", "100ms")


@pytest.mark.parametrize("time", ["0", "", "x", "999ms", "-1s", "nan"])
@pytest.mark.parametrize("command", ["record", "stat"])
def test_bad_hold(command: str, time: str, tmp_path: Path) -> None:
    assert_refused(memtoll(command, "--hold", time, *COMMAND, cwd=tmp_path), 2, "--hold", "1s or more")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", ["-1", "", "x", "5%%", "101", "nan"])
def test_bad_overhead_limit(limit: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", "--overhead-limit", limit, *COMMAND, cwd=tmp_path), 2, limit)


@pytest.mark.parametrize("pid", ["0", "-5", "", "x", "1x", "1,,2", ",1", "1,", "99999999999999999999", "1 2"])
def test_bad_pid(pid: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", "-p", pid, cwd=tmp_path), 2, pid)
    assert list(tmp_path.iterdir()) == []


def test_all_probes_is_the_default(tmp_path: Path) -> None:
    """As the help calls it; with a word that is none it is refused for that one."""
    result = memtoll("record", "--probes", "all", "-o", tmp_path, *COMMAND, cwd=tmp_path)
    assert "--probes" not in result.stderr
    assert_refused(memtoll("record", "--probes", "all,nonsense", *COMMAND, cwd=tmp_path), 2, "nonsense")


def test_bad_probes(tmp_path: Path) -> None:
    assert_refused(memtoll("record", "--probes", "malloc,nonsense", *COMMAND, cwd=tmp_path), 2, "nonsense")


@pytest.mark.parametrize("args", [[], ["-d", "1s"], ["--"], ["-n", ""]], ids=str)
@pytest.mark.parametrize("command", ["record", "stat"])
def test_no_target(command: str, args: list[str], tmp_path: Path) -> None:
    assert_refused(memtoll(command, *args, cwd=tmp_path), 2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "args", [["-p", "1", "-n", "init"], ["-p", "1", "--", "true"], ["-n", "init", "--", "true"]], ids=str
)
def test_two_kinds_of_target(args: list[str], tmp_path: Path) -> None:
    assert_refused(memtoll("record", *args, cwd=tmp_path), 2)


@pytest.mark.parametrize(
    "args",
    [
        ["record", "--nonsense", *COMMAND],
        ["stat", "--nonsense", *COMMAND],
        ["report", "--nonsense", "a.memtoll"],
        ["doctor", "--nonsense"],
        ["--nonsense"],
    ],
    ids=lambda args: args[0],
)
def test_unknown_option(args: list[str], tmp_path: Path) -> None:
    assert_refused(memtoll(*args, cwd=tmp_path), 2, "--nonsense")


def test_unknown_command() -> None:
    assert_refused(memtoll("nonsense"), 2, "nonsense")


@pytest.mark.parametrize("option", ["-d", "-p", "-n", "-o", "--min-size", "--max-size", "--overhead-limit"])
def test_option_without_its_value(option: str, tmp_path: Path) -> None:
    assert_refused(memtoll("record", option, cwd=tmp_path), 2, option.lstrip("-"))


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["recrod"], "'record'"),
        (["verison"], "--help"),
        (["report", "--jsn", "a.memtoll"], "--json"),
        (["record", "--pid"], "value is missing"),
        (["stat", "-d"], "value is missing"),
        (["report", "--full=yes"], "takes no value"),
    ],
    ids=" ".join,
)
def test_what_was_meant(words: list[str], meant: str) -> None:
    assert_refused(memtoll(*words), 2, words[-1].split("=")[0] if words[-1] != "a.memtoll" else words[1], meant)


def test_no_command() -> None:
    result = memtoll()
    assert result.status == 2
    assert result.stdout == ""
    assert "memtoll" in result.stderr


@pytest.mark.parametrize("args", [["report"], ["report", "a.memtoll", "b.memtoll"]], ids=len)
def test_report_wants_one_file(args: list[str], tmp_path: Path) -> None:
    assert_refused(memtoll(*args, cwd=tmp_path), 2)


@pytest.mark.parametrize("time", ["0", "999ms", "x", ""])
def test_bad_interval(time: str) -> None:
    assert_refused(memtoll("stat", "-I", time, *COMMAND), 2, "-I", time)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["-a", "-p", "1"], ["-a"]),
        (["-p", "1", "-n", "x"], ["more than one target"]),
        (["-o", "a.memtoll"], ["-o", "--json"]),
        (["--force", "-p", "1"], ["--force", "-o FILE"]),
        (["--count", "0"], ["--count", "0"]),
        (["-I", "499ms"], ["-I", "499ms"]),
    ],
    ids=str,
)
def test_top_refuses(words: list[str], names: list[str]) -> None:
    assert_refused(memtoll("top", *words), 2, *names)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["no target", "-p PID"]),
        (["-p", "1", "-n", "x"], ["more than one target"]),
        (["-p", "x"], ["-p", "x"]),
        (["-n", ""], ["-n"]),
        (["--", "true"], ["true", "-p PID"]),
        (["--nonsense"], ["--nonsense"]),
    ],
    ids=str,
)
def test_hold_refuses(words: list[str], names: list[str]) -> None:
    assert_refused(memtoll("hold", *words), 2, *names)


def test_force_wants_a_file() -> None:
    """It would promise to replace what is not written."""
    assert_refused(memtoll("stat", "--json", "--force", *COMMAND), 2, "--force", "-o FILE")


@pytest.mark.parametrize("sites", ["-1", "x", ""])
def test_bad_number_of_sites(sites: str) -> None:
    assert_refused(memtoll("report", "a.memtoll", "--sites", sites), 2, sites)
    assert_refused(memtoll("stat", "--sites", sites, "--", "true"), 2, sites)


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["-h"],
        *([command, "--help"] for command in ("record", "top", "hold", "report", "symbolize", "doctor", "demo")),
    ],
    ids=" ".join,
)
def test_help(args: list[str]) -> None:
    result = memtoll(*args)
    assert result.status == 0, result
    assert result.stderr == ""
    assert "memtoll" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_help_names_every_command() -> None:
    text = memtoll("--help").stdout
    for command in ("record", "stat", "top", "hold", "report", "symbolize", "doctor", "demo"):
        assert command in text


def test_version() -> None:
    assert memtoll("version").stdout == memtoll("-V").stdout
    result = memtoll("--version")
    assert result.status == 0, result
    assert re.fullmatch(
        r"memtoll (\d+\.\d+\.\d+\S*|unknown)\n"
        r"libbpf v\d+\.\d+\S*, elfutils \d\S*, SQLite \d\S*, GLib \d\S*; built by (gcc|clang) \d.*\n",
        result.stdout,
    ), result


@pytest.mark.skipif(os.geteuid() == 0, reason="root has the privileges; test_e2e_targets.py takes them away")
def test_privileges_are_named(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    assert_refused(memtoll("record", "-o", tmp_path / "a.memtoll", "--", "touch", marker), 3, "root")
    assert not marker.exists()
    assert list(tmp_path.iterdir()) == []


def test_an_old_kernel_is_named(tmp_path: Path) -> None:
    """As the kernel itself says it is: under the personality for programs of old. Real ones: test_e2e_kernels.py."""
    old: list[str | Path] = [tool("setarch"), "--uname-2.6", MEMTOLL]
    marker = tmp_path / "ran"
    assert_refused(finish(spawn([*old, "stat", "--", "touch", marker])), 3, "Linux 2.6.", "5.15")
    assert not marker.exists()


def test_a_closed_reader_is_no_crash() -> None:
    """memtoll --help | head -1: ended by the closed pipe or not at all, never by a fault."""
    script = '"$1" --help | head -n 1'
    done = subprocess.run(
        ["sh", "-c", script, "sh", str(MEMTOLL)], capture_output=True, text=True, timeout=20, check=False
    )
    assert done.returncode == 0
    assert "memtoll" in done.stdout
