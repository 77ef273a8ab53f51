# SPDX-License-Identifier: GPL-2.0
"""What a dataset keeps of a recording: its rows of each table, and its identity."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ..errors import Error
from ..export.about import main_program, number
from ..export.values import plain
from .schema import TABLES

if TYPE_CHECKING:
    from ..recording import Recording

# What makes a recording this one and no other, and does not change while it is written.
IDENTITY: Final = (
    "host",
    "machine",
    "kernel",
    "tool_version",
    "command_line",
    "target_command",
    "start_ns",
    "start_realtime_ns",
)
UNIT: Final = re.compile(r"\.(service|scope|slice)$")
CONTAINER: Final = re.compile(r"^(?:[a-z-]+-)?([0-9a-f]{12})[0-9a-f]{52}$")
# A directory's name has at most 255 bytes.
HOST_BYTES: Final = 200


class NoOrigin(Error):
    """The recording does not say where or when it was made; the message says what to give."""


@dataclass(frozen=True)
class Summary:
    """A recording's rows: id, host, day (UTC, "2026-11-21"), and columns of values of each table."""

    recording: str
    host: str
    day: str
    source: str
    tables: dict[str, dict[str, list[Any]]]


def identity(meta: dict[str, str], processes: list[int]) -> str:
    """The id of a recording: 32 hexadecimal digits; copies and rewritten files have the same."""
    known = [[key, meta.get(key, "")] for key in IDENTITY] + [["pids", sorted(processes)]]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def service_of(cgroup: str, executable: str) -> str:
    """What a program goes by in a fleet: its systemd unit or container, else its file name."""
    for part in reversed(PurePosixPath(cgroup).parts):
        if UNIT.search(part) and not part.endswith(".slice") and not part.startswith(("session-", "user@")):
            container = CONTAINER.match(part.rsplit(".", 1)[0])
            return container[1] if container else part
        container = CONTAINER.match(part)
        if container:
            return container[1]
    return PurePosixPath(executable).name


def _cgroup(rec: Recording, pid: int) -> str:
    """Memory cgroup of a process; '' unknown."""
    if pid not in rec.processes.index:
        return ""
    cgroup = rec.processes.loc[pid, "memory_cgroup"]
    return cgroup if isinstance(cgroup, str) else ""


def _columns(table: pd.DataFrame, renamed: dict[str, str] | None = None) -> dict[str, list[Any]]:
    """Columns as lists, None where a value is missing."""
    return {(renamed or {}).get(str(name), str(name)): plain(table[name]) for name in table.columns}


def _toll(rec: Recording, observed_s: float, lossy: int) -> dict[str, list[Any]]:
    columns = _columns(rec.toll.reset_index())
    seen: set[str] = set()
    captured = [reason is None for reason in columns["not_captured"]]
    first = []
    for family, there in zip(columns["family"], captured):
        first.append(there and family not in seen)
        if there:
            seen.add(family)
    for prefix, marks in (("", captured), ("family_", first)):
        columns[f"{prefix}observed_s"] = [observed_s if mark else 0.0 for mark in marks]
        columns[f"{prefix}recordings"] = [int(mark) for mark in marks]
        columns[f"{prefix}lossy"] = [lossy if mark else 0 for mark in marks]
    return columns


def _sites(rec: Recording) -> dict[str, list[Any]]:
    columns = _columns(rec.sites)
    families = {str(toll): str(family) for toll, family in rec.toll["family"].items()}
    columns["family"] = [families[toll] for toll in columns["toll"]]
    for name in ("allocated_place", "touched_place", "call"):
        columns[name] = [value or "" for value in columns[name]]
    return columns


def _meta(rec: Recording, lossy: int) -> dict[str, list[Any]]:
    meta, verdict = rec.meta, rec.verdict
    row = {
        "machine": meta.get("machine", ""),
        "command": str(rec.target["command"] or ""),
        "source": rec.path.name,
        "format": rec.format,
        "tool_version": meta.get("tool_version", ""),
        "complete": rec.complete,
        "start_realtime_ns": number(meta.get("start_realtime_ns")),
        "duration_s": rec.duration_s,
        "observed_s": rec.observed_s,
        "processes": len(rec.processes),
        "dominant": verdict.dominant,
        "dominant_share": float(verdict["share"]),
        "sentence": verdict.sentence,
        "advice": ",".join(advice["code"] for advice in verdict.advice),
        "overhead_pct": rec.overhead.attrs["estimated_pct"],
        "lossy": lossy,
    }
    return {name: [value] for name, value in row.items()}


def summarize(rec: Recording, *, host: str | None = None, service: str | None = None) -> Summary:
    """The rows of an open recording.

    host, service: instead of what the recording says. NoOrigin: it has no host or no start.
    """
    meta = rec.meta
    where = host or meta.get("host", "")
    start_ns = number(meta.get("start_realtime_ns"))
    if not where:
        raise NoOrigin(f"{rec.path} does not say on which host it was made; give it (host=, --host)")
    if len(os.fsencode(where)) > HOST_BYTES or "\0" in where:
        raise NoOrigin(f"{rec.path}: its host's name is none; give another one (host=, --host)")
    if start_ns <= 0:
        raise NoOrigin(f"{rec.path} does not say when it was made: it cannot be put under a day")
    pid, executable, build = main_program(rec)
    losses = rec.losses.reset_index()
    lossy = int(losses["exceeds"].any())
    keys = {
        "recording": identity(meta | {"host": where}, [int(pid) for pid in rec.processes.index]),
        "service": service or service_of(_cgroup(rec, pid), executable),
        "executable": executable,
        "build": build,
        "kernel": meta.get("kernel", ""),
    }
    tables = {
        "meta": _meta(rec, lossy),
        "toll": _toll(rec, rec.observed_s, lossy),
        "sites": _sites(rec),
        "classes": _columns(rec.classes.reset_index()),
        "losses": _columns(losses[losses["count"] > 0].astype({"exceeds": int})),
        "checks": _columns(rec.checks.reset_index().astype({"ok": int}), {"kernel": "kernel_count"}),
    }
    for name, columns in tables.items():
        rows = len(next(iter(columns.values()), []))
        columns.update({key: [value] * rows for key, value in keys.items()})
        tables[name] = {column.name: columns[column.name] for column in TABLES[name]}
    day = datetime.datetime.fromtimestamp(start_ns // 1_000_000_000, datetime.UTC).date().isoformat()
    return Summary(keys["recording"], where, day, str(rec.path), tables)
