# SPDX-License-Identifier: GPL-2.0
"""What tests change on the machine, noted before: a run that is killed leaves the note, the next run obeys it.

A note is a file in NOTES that names its owner (a process, by number and start) and what undoes the change. Processes
carry their owner's name in the environment, and so do their children. Whoever's owner is still there is let alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

NOTES: Final = Path("/run/memtoll-tests")
OWNER: Final = "MEMTOLL_TEST_OWNER"
ZRAM: Final = Path("/sys/class/zram-control/hot_remove")
SWAPS: Final = Path("/proc/swaps")
SECONDS: Final = 60  # to get rid of one thing; a hang guard


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
    return pid.isdigit() and start_of(int(pid)) == start


@contextmanager
def locked(name: str) -> Iterator[None]:
    """No other process is in here; the kernel lets the lock go with its holder, whatever ends that."""
    NOTES.mkdir(mode=0o700, exist_ok=True)
    with (NOTES / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone() -> Iterator[None]:
    """The machine's swap, huge pages and counters are this test's: no other run's changes them, and none is left."""
    with locked("machine.lock"):
        take_down()
        yield


@contextmanager
def noted(kind: str, what: str | Path, value: str = "") -> Iterator[None]:
    """Around a change of the machine, which is undone in the end: what undo() knows, and how.

    The note goes when that has succeeded. It is there for when nobody is left to do it.
    """
    NOTES.mkdir(mode=0o700, exist_ok=True)
    note = NOTES / f"{time.monotonic_ns():020}.{os.getpid()}.json"
    written = note.with_suffix(".new")
    written.write_text(json.dumps({"owner": owner(), "kind": kind, "what": str(what), "value": value}))
    written.rename(note)
    try:
        yield
    finally:
        undo(kind, str(what), value)
        note.unlink(missing_ok=True)


def cgroup_off(cgroup: Path) -> None:
    """The cgroup is a test's own, and so is whoever is in it, or in one below."""
    end = time.monotonic() + SECONDS
    while cgroup.is_dir():
        # Who is frozen does not end.
        for switch, thawed in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
            with suppress(OSError):
                (cgroup / switch).open("r+").write(thawed)
        for below in sorted(cgroup.rglob("cgroup.procs"), key=lambda path: -len(path.parts)):
            # Between the list and the deed they come and go.
            with suppress(OSError):
                for pid in below.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
                below.parent.rmdir()
        if cgroup.is_dir() and time.monotonic() > end:
            raise OSError(f"{cgroup} does not go")
        time.sleep(0.01)


def swap_off(area: str) -> None:
    if area in [line.split()[0] for line in SWAPS.read_text().splitlines()]:
        subprocess.run(["/usr/sbin/swapoff", area], capture_output=True, timeout=SECONDS, check=True)


def directory_off(path: Path) -> None:
    if f"{path}/" in SWAPS.read_text():
        raise OSError(f"{path} holds swap that is on")
    if path.is_dir():
        shutil.rmtree(path)


def mount_off(path: str) -> None:
    if os.path.ismount(path):
        subprocess.run(["/usr/bin/umount", path], capture_output=True, timeout=SECONDS, check=True)


def undo(kind: str, what: str, value: str) -> None:
    """Undo a change that was made, or was about to be; what is undone already stays as it is. Raises if it cannot."""
    path = Path(what)
    if kind == "swap":  # an area: a file or a device
        swap_off(what)
    elif kind == "zram":  # a device, by its number
        if Path(f"/sys/block/zram{what}").exists():
            ZRAM.write_text(what)
    elif kind == "cgroup":
        cgroup_off(path)
    elif kind == "directory":
        directory_off(path)
    elif kind == "file":
        path.unlink(missing_ok=True)
    elif kind == "mount":
        mount_off(what)
    elif kind == "setting":  # a control, with the value that it had
        if path.exists():
            path.write_text(value)
    else:
        raise ValueError(f"nobody knows how to undo a {kind}")


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


def end_orphans() -> list[str]:
    """Until there are none: one that is ended may have been the owner of others."""
    done: dict[int, str] = {}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = dict(orphans())
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        done |= found
        time.sleep(0.01)
    return [f"process {name} ({pid})" for pid, name in done.items()]


def taking_down() -> AbstractContextManager[None]:
    """One run at a time does."""
    return locked("take-down.lock")


def take_down() -> list[str]:
    """Undo what runs left that were killed, the last change first; what it was, and what could not be undone."""
    with taking_down():
        return take_down_here()


def take_down_here() -> list[str]:
    """The same, within taking_down()."""
    done = end_orphans()
    for note in sorted(NOTES.glob("*.json"), reverse=True):
        try:
            row = json.loads(note.read_text())
        except FileNotFoundError:  # between the list and the look its owner undid the change
            continue
        if lives(row["owner"]):
            continue
        what = f"{row['kind']} {row['what']}"
        try:
            undo(row["kind"], row["what"], row["value"])
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            done.append(f"{what}: NOT taken down: {error}")
            continue
        note.unlink(missing_ok=True)
        done.append(what)
    for written in NOTES.glob("*.new"):  # half a note: its change was not begun
        if start_of(int(written.name.split(".")[1])) is None:
            written.unlink(missing_ok=True)
    return done
