# SPDX-License-Identifier: GPL-2.0
"""The service under a systemd that is process 1: this machine's own, in Debian's kernel under emulation.

The guest's files are those of this machine's packages. It starts the unit as it is installed, with all its hardening.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import pytest

import kernels
from harness import MEMTOLL, ROOT, integrity, query, tool, workload
from suite import undecided

pytestmark = pytest.mark.guest

SUITE: Final = "trixie"
PACKAGES: Final = ("base-files", "coreutils", "dash", "findutils", "grep", "libc-bin", "procps", "systemd", "tar")
MEMORY_MIB: Final = 1024
SECONDS: Final = 600
# Capabilities of the unit, by their numbers (capability.h).
CAPABILITIES: Final = {"PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40, "SYS_PTRACE": 19, "DAC_READ_SEARCH": 2}
CAPABILITIES_BESIDE: Final = {"SYSLOG": 34, "SYS_NICE": 23}
WARNING, NOTICE, INFO = 4, 5, 6


def lines(*words: str) -> list[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def needed(packages: tuple[str, ...]) -> set[str]:
    """With all that they depend on, of what is installed."""
    known: set[str] = set()
    wanted = list(packages)
    installed = set(lines("dpkg-query", "-W", "-f", "${Package}\n"))
    while wanted:
        name = wanted.pop()
        if name in known or name not in installed:
            continue
        known.add(name)
        (text,) = lines("dpkg-query", "-W", "-f", "${Pre-Depends}, ${Depends}\n", name)[:1]
        wanted += re.findall(r"(?:^|[,|]\s*)([a-z0-9][a-z0-9.+-]*)", text)
    return known


def copy_packages(folder: Path) -> None:
    for name in ("bin", "lib", "lib64", "sbin"):
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    paths = {path for name in needed(PACKAGES) for path in lines("dpkg-query", "-L", name)}
    for path in map(Path, sorted(paths)):
        place = folder / str(path).lstrip("/")
        left = path.is_dir() or not path.exists() or path.is_relative_to("/usr/share")
        if left or os.path.lexists(place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place, follow_symlinks=False)


def copy_programs(folder: Path, programs: dict[str, Path]) -> None:
    for name, program in programs.items():
        shutil.copy(program, folder / "usr/bin" / name)
        for path in kernels.libraries(program):
            place = folder / str(path).lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(place):
                shutil.copy(path, place)


def configure(folder: Path, modules: tuple[Path, ...]) -> None:
    etc, units = folder / "etc", folder / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    etc.joinpath("machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    etc.joinpath("passwd").write_text("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    etc.joinpath("group").write_text("root:x:0:\nnogroup:x:65534:\nsystemd-journal:x:101:\n")
    etc.joinpath("default").mkdir(exist_ok=True)
    etc.joinpath("default/memtoll-watch").write_text('MEMTOLL_WATCH="--config /etc/memtoll-watch.conf"\n')
    unit = (ROOT / "packaging/systemd/memtoll-watch.service").read_text()
    units.joinpath("memtoll-watch.service").write_text(unit.replace("@BINDIR@", "/usr/bin"))
    check = "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/check\n"
    units.joinpath("check.service").write_text(check)
    units.joinpath("multi-user.target.wants").mkdir(exist_ok=True)
    units.joinpath("multi-user.target.wants/check.service").symlink_to("../check.service")
    units.joinpath("default.target").symlink_to("/lib/systemd/system/multi-user.target")
    for name in ("getty.target", "systemd-firstboot.service", "systemd-hwdb-update.service", "ldconfig.service"):
        if not os.path.lexists(units / name):
            (units / name).symlink_to("/dev/null")
    (folder / "lib/modules").mkdir(parents=True, exist_ok=True)
    for module in modules:
        shutil.copy(module, folder / "lib/modules")
    (folder / "modules").write_text("".join(f"/lib/modules/{module.name}\n" for module in modules))
    for script, place in (("systemd_init", "init"), ("systemd_check", "check")):
        shutil.copy(kernels.GUEST / script, folder / place)
        (folder / place).chmod(0o755)


@pytest.fixture(scope="module")
def out() -> Path:
    """What the guest has left."""
    try:
        guest = kernels.kernel(SUITE)
        place = kernels.CACHE / SUITE / "systemd"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        with tempfile.TemporaryDirectory(dir=kernels.CACHE) as scratch:
            folder, image, disk = (Path(scratch) / name for name in ("root", "initramfs", "disk"))
            copy_packages(folder)
            programs = {"memtoll": MEMTOLL, "mtunit": workload("calloc_loop"), "busybox": Path(tool("busybox"))}
            copy_programs(folder, programs)
            (folder / "dev").mkdir(exist_ok=True)
            configure(folder, guest.modules)
            kernels.initramfs(folder, image)
            kernels.run_to_its_end(guest, image, disk, time.monotonic() + SECONDS, place, MEMORY_MIB)
    except kernels.Unavailable as error:
        undecided(f"{SUITE}: {error}")
    missing = place / "missing"
    assert not missing.exists(), missing.read_text()
    return place


def properties(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)


def test_starts(out: Path) -> None:
    """As a user that is nobody in particular, with the capabilities of the unit and none besides."""
    started = properties(out / "started")
    assert (started["ActiveState"], started["SubState"], started["Result"]) == ("active", "running", "success")
    assert re.fullmatch(r"watch-\S+\.memtoll", started["StatusText"])
    status = dict(line.split(":", 1) for line in (out / "status").read_text().splitlines())
    assert int(status["Uid"].split()[0]) >= 61184, "a dynamic user"
    assert status["NoNewPrivs"].strip() == "1"
    expected = sum(1 << number for number in {**CAPABILITIES, **CAPABILITIES_BESIDE}.values())
    for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        assert int(status[name], 16) & ~expected == 0
    needed = sum(1 << number for number in CAPABILITIES.values())
    assert int(status["CapEff"], 16) & needed == needed
    assert (out / "failed").read_text() == ""


def recordings(out: Path) -> list[Path]:
    return sorted((out / "kept").glob("watch-*.memtoll"))


def test_reloads_without_a_gap(out: Path) -> None:
    """Twice, by a file of options that is good and by one that is not: the process is the same, and each recording
    begins before the one before it ends.
    """
    reloaded = properties(out / "reloaded")
    assert (reloaded["ActiveState"], reloaded["SubState"]) == ("active", "running")
    assert reloaded["MainPID"] == properties(out / "started")["MainPID"]
    assert "\nmemtoll_unwatched_seconds_total 0\n" in (out / "memtoll.prom").read_text()
    spans = [query(path, "SELECT MIN(start_ns), MAX(end_ns) FROM slice")[0] for path in recordings(out)]
    assert len(spans) == 3
    assert all(next_start <= end for (_, end), (next_start, _) in zip(spans, spans[1:])), spans


def test_stops(out: Path) -> None:
    """All recordings are whole, that of the end as well, and have seen what is watched."""
    stopped = properties(out / "stopped")
    assert (stopped["ActiveState"], stopped["Result"], stopped["ExecMainStatus"]) == ("inactive", "success", "0")
    assert not list((out / "kept").glob(".*.part*"))
    for path in recordings(out):
        assert integrity(path) == "ok"
        assert query(path, "SELECT value FROM meta WHERE key = 'complete'") == [("1",)]
        assert query(path, "SELECT SUM(calls) > 0 FROM call WHERE call = 'calloc'") == [(1,)]


def test_journal(out: Path) -> None:
    """What it says is there with its priorities, and without their numbers in the text."""
    told = [json.loads(line) for line in (out / "journal").read_text().splitlines()]
    own = [(int(line["PRIORITY"]), line["MESSAGE"]) for line in told if line.get("SYSLOG_IDENTIFIER") == "memtoll"]
    by_priority = {
        priority: "\n".join(text for level, text in own if level == priority) for priority in {p for p, _ in own}
    }
    assert "watching, first into watch-" in by_priority[INFO]
    assert "ending: asked to" in by_priority[INFO]
    assert "options: --rotate changed" in by_priority[NOTICE]
    assert "no-such-option" in by_priority[WARNING]
    assert not [text for _, text in own if text.startswith("<")]
