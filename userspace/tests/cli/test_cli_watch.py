# SPDX-License-Identifier: GPL-2.0
"""memtoll watch: what is asked wrongly is refused in one line. And the files that are installed beside it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from harness import MEMTOLL, ROOT, assert_refused, environment, memtoll, tool
from shape import TOLLS

PACKAGING = ROOT / "packaging"
METRIC = re.compile(r"memtoll_[a-z_]+")


def refused(*args: str, tmp_path: Path, names: tuple[str, ...]) -> None:
    assert_refused(memtoll("watch", *args, cwd=tmp_path), 2, *names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([], ("-n",)),
        (["-n", "server"], ("-o DIR",)),
        (["-n", ""], ("-n",)),
        (["-n", "server", "-n", "server"], ("server", "twice")),
        (["server"], ("'server'",)),
        (["--rotate", "1s"], ("--rotate", "1s")),
        (["--rotate", "x"], ("--rotate", "x")),
        (["--keep", "1M"], ("--keep", "16M")),
        (["-I", "500ms"], ("-I", "500ms")),
        (["-n", "a", "-o", "b", "-I", "10s", "--rotate", "5s"], ("-I", "--rotate")),
        (["--places", "1001"], ("--places", "1000")),
        (["--listen", "0.0.0.0:9712"], ("--listen", "0.0.0.0:9712", "unix:")),
        (["--listen", "unix:relative"], ("unix:relative",)),
        (["--when", "swap.share > "], ("--when", "a number")),
        (["--when", "disk.share > 1"], ("disk.share",)),
        (["--when", "swap.share > 0.3 for ever"], ("'ever'",)),
        (["--detail-limit", "x"], ("--detail-limit", "x")),
        (["--detail-for", "0s"], ("--detail-for",)),
        (["--rotat"], ("--rotate",)),
    ],
)
def test_refused(args: list[str], names: tuple[str, ...], tmp_path: Path) -> None:
    refused(*args, tmp_path=tmp_path, names=names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("-n a\n# b\n--rotate x\n", ("{}:3: ", "--rotate 'x'")),
        ("-n 'a\n", ("{}:1: ", "quotation mark")),
        ("--config other\n-n a\n", ("{}:1: ", "--config other")),
        ("-I 10m --rotate 5m\n-n a\n", ("{}: ", "-I is longer")),
        ("\0", ("{}: ", "no file of options")),
        (None, ("{}: ", "No such file")),
    ],
)
def test_file_of_options_is_refused(text: str | None, names: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "options"
    if text is not None:
        path.write_text(text)
    result = memtoll("watch", "--config", path, "-o", tmp_path / "kept")
    assert_refused(result, 2, *(name.format(path) for name in names))
    assert not (tmp_path / "kept").exists()


def test_what_is_wrong_is_a_warning_of_the_journal(tmp_path: Path) -> None:
    """Where stderr is what JOURNAL_STREAM names (systemd.exec(5)); elsewhere lines have no number."""
    log = tmp_path / "log"
    for inode, begins in ((0, "<4>memtoll: "), (1, "memtoll: ")):
        with log.open("w") as stderr:
            status = log.stat()
            stream = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino + inode}"}
            words: list[str | Path] = [MEMTOLL, "watch", "--config", tmp_path / "none", "-o", tmp_path / "kept"]
            done = subprocess.run(words, stderr=stderr, env=environment(stream), timeout=60, check=False)
        assert done.returncode == 2
        (line,) = log.read_text().splitlines()
        assert line.startswith(f"{begins}{tmp_path}/none: ")


def test_more_targets_than_it_follows(tmp_path: Path) -> None:
    refused(*(word for i in range(33) for word in ("-n", f"name{i}")), tmp_path=tmp_path, names=("name32", "32"))


def told() -> set[str]:
    """The metrics of the page, which the end-to-end test compares with what is told."""
    text = (ROOT / "userspace" / "doc" / "watch.md").read_text()
    return set(METRIC.findall(text))


def test_dashboard_and_alerts_use_what_is_told() -> None:
    dashboard = json.loads((PACKAGING / "monitoring" / "memtoll-dashboard.json").read_text())
    asked = {
        name for panel in dashboard["panels"] for target in panel["targets"] for name in METRIC.findall(target["expr"])
    }
    assert len(asked) > 10
    alerts = (PACKAGING / "monitoring" / "memtoll-alerts.yml").read_text()
    asked |= set(METRIC.findall(alerts))
    assert asked <= told()
    tolls = set(re.findall(r"[a-z]+\\\\\.[a-z]+", alerts)) | set(
        re.findall(r"[a-z]+\[\.\][a-z]+", json.dumps(dashboard))
    )
    assert tolls, "some"
    assert {re.sub(r"\\\\\.|\[\.\]", ".", toll) for toll in tolls} <= set(TOLLS)


def test_unit_names_options_that_are_there() -> None:
    unit = (PACKAGING / "systemd" / "memtoll-watch.service").read_text()
    command = re.search(r"^ExecStart=\S+ watch (.*)$", unit, re.M)
    assert command
    printed = memtoll("watch", "--help").stdout
    for option in re.findall(r"--?[a-z-]+", command[1]):
        assert option in printed, option
    wanted = "CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH"
    for line in re.findall(r"^(?:AmbientCapabilities|CapabilityBoundingSet)=(.*)$", unit, re.M):
        assert set(wanted.split()) <= set(line.split())


def test_unit_is_hardened(tmp_path: Path) -> None:
    """By systemd's own measure: 0 is closed, 10 is open."""
    text = (PACKAGING / "systemd" / "memtoll-watch.service").read_text()
    unit = tmp_path / "memtoll-watch.service"
    unit.write_text(re.sub(r"@[A-Z]+@", "/usr/bin", text))
    words = [tool("systemd-analyze"), "security", "--offline=true", "--no-pager", "--threshold=30", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    assert re.search(r"Overall exposure level for memtoll-watch\.service: [0-2]\.\d", done.stdout), done.stdout[-300:]
