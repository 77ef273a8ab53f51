# SPDX-License-Identifier: GPL-2.0
"""What tests change on the machine, noted before: a run that is killed leaves the note, the next run obeys it.

A note is a file in NOTES that names its owner (a process, by number and start) and what undoes the change. Processes
carry their owner's name in the environment, and so do their children. Whoever's owner is still there is let alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

NOTES: Final = Path("/run/memtoll-tests")
OWNER: Final = "MEMTOLL_TEST_OWNER"
ZRAM: Final = Path("/sys/class/zram-control/hot_remove")


def start_of(pid: int) -> str | None:
    """When a process began, in clock ticks since the boot: with its number, a name that is never used again."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def owner() -> str:
    return f"{os.getpid()}.{start_of(os.getpid())}"


def lives(name: str) -> bool:
    pid, _, start = name.partition(".")
    return start_of(int(pid)) == start


@contextmanager
def noted(kind: str, what: str | Path, value: str = "") -> Iterator[None]:
    """Around a change of the machine: 'swap' area, 'zram' number, 'cgroup', 'directory', or 'setting' with its value.

    The body undoes the change itself; the note is there for when it cannot.
    """
    NOTES.mkdir(mode=0o700, exist_ok=True)
    note = NOTES / f"{time.time_ns()}.{os.getpid()}.json"
    written = note.with_suffix(".new")
    written.write_text(json.dumps({"owner": owner(), "kind": kind, "what": str(what), "value": value}))
    written.rename(note)
    yield
    note.unlink()


def end_processes_of(cgroup: Path) -> None:
    """The cgroup is a test's own, and so is whoever is in it."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        pids = (cgroup / "cgroup.procs").read_text().split()
        if not pids:
            break
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.02)


def undo(kind: str, what: str, value: str) -> None:
    path = Path(what)
    if kind == "swap":
        subprocess.run(["/usr/sbin/swapoff", what], stderr=subprocess.DEVNULL, timeout=60, check=False)
    elif kind == "zram" and Path(f"/sys/block/zram{what}").exists():
        ZRAM.write_text(what)
    elif kind == "cgroup" and path.is_dir():
        end_processes_of(path)
        path.rmdir()
    elif kind == "directory":
        shutil.rmtree(path, ignore_errors=True)
    elif kind == "setting" and path.exists():
        path.write_text(value)


def orphans() -> Iterator[tuple[int, str]]:
    """Processes whose owner is gone, and their names."""
    mark = f"{OWNER}=".encode()
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        with suppress(OSError):
            words = (directory / "environ").read_bytes().split(b"\0")
            owners = [word[len(mark) :].decode() for word in words if word.startswith(mark)]
            if owners and not lives(owners[0]):
                yield int(directory.name), (directory / "comm").read_text().strip()


def take_down() -> list[str]:
    """Undo what runs left that were killed, the last change first; what it was."""
    done = []
    for pid, name in list(orphans()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            done.append(f"process {name} ({pid})")
    for note in sorted(NOTES.glob("*.json"), reverse=True):
        row = json.loads(note.read_text())
        if lives(row["owner"]):
            continue
        undo(row["kind"], row["what"], row["value"])
        note.unlink()
        done.append(f"{row['kind']} {row['what']}")
    return done
