# SPDX-License-Identifier: GPL-2.0
"""What a Model Context Protocol server of recordings offers (commands/mcp.py): plain functions, texts, no protocol.

Recordings come from anybody, and who asks may have been talked into anything by what it read: files are looked for in
one directory alone, all that is read is bounded as with memtoll.open, texts of recordings are shown with nothing
in them that is not visible, and nothing is written, unless recording is allowed, and then there.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import stat
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from .brief import LEAST, ascii_text, brief
from .comparison import diff
from .errors import Error
from .opening import understanding
from .recording import Recording
from .recording import open as open_recording
from .schema import schema
from .text import comparison, format_bytes, format_share, format_time, printable, wrap

LISTED: Final = 100
LOOKED_AT: Final = 100_000
FRAMES: Final = 40
SITES: Final = 5
TOKENS: Final = 1000
TOKENS_MOST: Final = 20_000
RECORD_S: Final = 60.0
# To load, attach and to write the end.
TRACER_S: Final = 60.0


class Refused(Error):
    """It is not allowed here."""


class Room:
    """The directory whose recordings may be read; tools are its methods, and return what is shown."""

    def __init__(self, directory: str | os.PathLike[str], tracer: str | None = None) -> None:
        """tracer: the memtoll that records; None: nothing is recorded."""
        self.directory: Final = Path(directory).resolve(strict=True)
        self.tracer = tracer
        if not self.directory.is_dir():
            raise NotADirectoryError(20, "Not a directory", str(directory))

    def find(self, name: str) -> Path:
        """The file of this name in the directory, or below. Refused: it is elsewhere, itself or by a link."""
        asked = self.directory / name
        try:
            found = asked.resolve(strict=True)
        except ValueError as error:  # a byte 0, half a surrogate pair
            raise Refused(f"{ascii_text(name)} is no name of a file") from error
        except OSError as error:
            # Whether something is there outside is nobody's business.
            if not Path(os.path.normpath(asked)).is_relative_to(self.directory):
                raise Refused(self._outside(name)) from error
            raise Error(f"{ascii_text(name)}: {error.strerror}") from error
        except RuntimeError as error:  # of Python before 3.13: links in a circle
            raise Error(f"{ascii_text(name)}: too many links") from error
        if not found.is_relative_to(self.directory):
            raise Refused(self._outside(name))
        if not stat.S_ISREG(found.stat().st_mode):
            raise Error(f"{ascii_text(name)} is no regular file, not a recording")
        return found

    def _outside(self, name: str) -> str:
        return f"{ascii_text(name)} is not in the directory of this server; links that lead out of it are not followed"

    def _open(self, name: str) -> Recording:
        return open_recording(self.find(name))

    # ---- tools

    def recordings(self) -> str:
        """The recordings that can be opened, the newest first: names, sizes, when they were last written."""
        found: list[tuple[float, int, str]] = []
        seen = 0
        for folder, _, names in os.walk(self.directory):
            seen += len(names) + 1
            for path in (Path(folder, name) for name in names if name.endswith(".memtoll")):
                try:
                    status = path.lstat()
                except OSError:
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime, status.st_size, str(path.relative_to(self.directory))))
            if seen > LOOKED_AT:
                break
        if not found:
            return "no *.memtoll is in the directory\n"
        found.sort(key=lambda each: (-each[0], each[2]))
        lines = [f"{_date(written)} {format_bytes(size)} {ascii_text(name)}" for written, size, name in found[:LISTED]]
        if len(found) > LISTED:
            lines.append(f"and {len(found) - LISTED} older ones")
        if seen > LOOKED_AT:
            lines.append(f"the directory has more than {LOOKED_AT} files: not all were looked at")
        return "\n".join(lines) + "\n"

    def open_recording(self, recording: str) -> str:
        """What was recorded: command, processes, when and for how long, by which memtoll; whether it is whole."""
        with self._open(recording) as rec:
            target = rec.target
            whole = "whole" if rec.complete else "INCOMPLETE: its tracer did not finish it"
            lines = [
                f"command: {ascii_text(str(target['command']))}",
                f"processes: {len(target['pids'])}",
                f"started: {target['started'] or 'not known'}",
                f"duration: {format_time(rec.duration_s)}",
                f"observed: {format_time(rec.observed_s)}",
                f"exit_status: {'none' if target['exit_status'] is None else target['exit_status']}",
                f"container: {ascii_text(str(target['container'] or 'none'))}",
                f"kernel: {ascii_text(rec.meta.get('kernel', 'not known'))}",
                f"tool_version: {ascii_text(rec.meta.get('tool_version', 'not known'))}",
                f"state: {whole}",
                f"sites: {len(rec.sites)}",
            ]
            lost = rec.losses[rec.losses["count"] > 0]["count"]
            lines += [f"lost: {count} {ascii_text(str(name))}" for name, count in lost.items()]
            lines += [f"note: {ascii_text(each)}" for each in rec.notes]
            return "\n".join(lines) + "\n"

    def verdict(self, recording: str, tokens: int = TOKENS) -> str:
        """The diagnosis in so many tokens at most: verdict, three sites, advice and the command that tries it,
        confidence, losses, what was not seen. What has no room is named in left_out."""
        if not LEAST <= tokens <= TOKENS_MOST:
            raise Error(f"tokens is a number from {LEAST} to {TOKENS_MOST}")
        with self._open(recording) as rec:
            return brief(rec, tokens)

    def site_stacks(self, recording: str, rank: int = 1) -> str:
        """A site's figures and whole stacks, by its rank (1: the most expensive): where memory was allocated, which
        code touched it; leaf first, with source lines."""
        with self._open(recording) as rec:
            if rank not in rec.sites.index:
                raise Error(f"there is no site {rank}: they are 1 to {len(rec.sites)}")
            row = rec.sites.loc[rank]
            share = format_share(row["share"])
            lines = [
                f"site {rank} of {len(rec.sites)}: {row['toll']} {row['call']}".rstrip(),
                f"time: {format_time(row['time_s'])}, {share} of the observed time",
                f"count: {row['count']}",
                f"bytes: {'at least ' if row['bytes_at_least'] else ''}{row['bytes']}",
            ]
            if str(row["area"]):
                lines.append(f"in: {row['area']}")
            for what in ("allocated", "touched"):
                frames = rec.stack(int(row[f"{what}_stack"]))
                lines += [f"{what}_at:"] if frames else []
                lines += [f"  {each.function or '?'} {each.place or ''}".rstrip() for each in frames[:FRAMES]]
                lines += [f"  and {len(frames) - FRAMES} more"] if len(frames) > FRAMES else []
            return "\n".join(map(ascii_text, lines)) + "\n"

    def compare(self, before: str, after: str, work_before: float = 0, work_after: float = 0) -> str:
        """Two recordings side by side, with the bounds of each difference, and the sites that differ most. work_before
        and work_after: units of work done in each (requests, rounds): figures are then per unit, not per second."""
        works = (work_before, work_after)
        if any(not math.isfinite(work) or work < 0 for work in works) or (works[0] > 0) != (works[1] > 0):
            raise Error("work is a number above 0 for both recordings, or for neither")
        with self._open(before) as first, self._open(after) as second:
            both = diff(first, second, work_before=works[0] or None, work_after=works[1] or None)
            return "\n".join(map(ascii_text, comparison(both, SITES).splitlines())) + "\n"

    def explain(self, code: str = "", recording: str = "") -> str:
        """A piece of advice in full, by its code; without one all codes. With a recording: whether that gets it."""
        if not code:
            return "".join(f"{one}: {title}\n" for one, title, _, _ in _advice())
        rows = {row[0]: row for row in _advice()}
        if code not in rows:
            raise Error(f"there is no advice {ascii_text(code)}; without a code all are listed")
        _, title, explained, cost = rows[code]
        lines = [f"{code}: {title}", ""]
        if recording:
            lines += [self._given(code, recording), ""]
        for paragraph in explained.split("\n\n"):
            lines += [wrap("", 0, " ".join(paragraph.split())), ""]
        lines.append(wrap("If it is wrong: ", 2, " ".join(cost.split())))
        return "\n".join(lines) + "\n"

    def _given(self, code: str, recording: str) -> str:
        with self._open(recording) as rec:
            rec.views.make("advice_state")
            rows = rec.views.rows("SELECT given, gain FROM temp.advice_state WHERE code = ?", code)
            with understanding(rec.path):
                if not rows or not rows[0][0]:
                    return "Not given there."
                return f"Given there: it can save at most {format_share(float(rows[0][1]))} of the observed time."

    def record(self, pid: int, seconds: float, name: str) -> str:
        """Record a running process for so many seconds (60 at most) into a new file NAME.memtoll of the directory, and
        say its verdict. It slows the process by up to 5 %, and needs the privileges of memtoll record."""
        if self.tracer is None:
            raise Refused("recording is not allowed: the server was started without --allow-record")
        if pid <= 0:
            raise Error("pid is the number of a process")
        if not (math.isfinite(seconds) and 0.1 <= seconds <= RECORD_S):
            raise Error(f"seconds is a number from 0.1 to {RECORD_S:g}")
        if not name or len(name) > 64 or not all(c.isascii() and (c.isalnum() or c in "-_") for c in name):
            raise Error("name is one of letters, digits, '-' and '_', 64 at most, without the ending")
        out = self.directory / f"{name}.memtoll"
        words = [self.tracer, "record", "-p", str(pid), "-d", f"{seconds * 1000:.0f}ms", "-o", str(out)]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                timeout=seconds + TRACER_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Error(f"memtoll record did not end in {seconds + TRACER_S:g} s and was killed") from error
        if done.returncode not in (0, 4):
            said = printable(" ".join(done.stderr.decode("utf-8", "replace").split()))
            raise Error(f"memtoll record: status {done.returncode}: {ascii_text(said)}")
        return f"recording: {out.name}\n{self.verdict(out.name)}"


def _date(seconds: float) -> str:
    """Any that a file can have been given."""
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return "no date"


def tracer() -> str:
    """The binary that records: of MEMTOLL, or found by PATH. Error: there is none."""
    found = os.environ.get("MEMTOLL") or shutil.which("memtoll")
    if not found:
        raise Error(
            "--allow-record needs the program memtoll, which is not found (PATH, or MEMTOLL in the environment)"
        )
    return found


def _advice() -> list[tuple[str, str, str, str]]:
    """Code, title, long form and price of all advice, in its order: of this package, not of a recording."""
    (table,) = (each for each in schema().tables if each.name == "advice")
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(table.sql)
        marks = ", ".join("?" * len(table.columns))
        database.executemany(f"INSERT INTO advice VALUES ({marks})", table.rows)
        return list(database.execute("SELECT code, title, explain, cost FROM advice ORDER BY position"))
