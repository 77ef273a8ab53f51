# SPDX-License-Identifier: GPL-2.0
"""Metadata that every exported file has of its recording, losses above all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..table import note
from ..version import __version__

if TYPE_CHECKING:
    from ..recording import Recording


@dataclass(frozen=True)
class About:
    """Facts about a recording.

    executable, build_id: of the first process that the user named, '' unknown;
    start_realtime_ns: nanoseconds since 1970, 0 unknown; losses: {name: {"count", "share" 0..1 or
    None, "of"}}, those that happened; note: the same as one line, '' where there is nothing to say.
    """

    recording: str
    memtoll: str
    format: int
    complete: bool
    command: str
    executable: str
    build_id: str
    host: str
    kernel: str
    start_realtime_ns: int
    duration_s: float
    observed_s: float
    verdict: str
    losses: dict[str, dict[str, Any]]
    not_captured: dict[str, str]
    note: str

    def as_dict(self) -> dict[str, Any]:
        """Members by name, for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The same as short lines of text."""
        lines = [
            f"recorded by memtoll: {self.command}",
            f"observed {self.observed_s:.9g} s in {self.duration_s:.9g} s on {self.host or 'an unknown host'}",
            self.verdict,
        ]
        if self.note:
            lines.append(f"!!! {self.note}")
        lines += [f"not captured: {toll}: {reason}" for toll, reason in self.not_captured.items()]
        return lines


def number(text: str | None) -> int:
    """A whole number out of table meta; 0 where it is not there or is none."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def main_program(rec: Recording) -> tuple[int, str, str]:
    """Of the first process that the user named: pid (0: there is none), executable, build id ('' unknown)."""
    rows = rec.query(
        "SELECT p.pid AS pid, p.executable AS executable FROM main.process p"
        " ORDER BY p.role <> 'target', p.start_ns, p.pid LIMIT 1"
    )
    if not len(rows):
        return 0, "", ""
    executable = str(rows["executable"].iloc[0] or "")
    builds = rec.query(
        "SELECT build_id FROM main.frame WHERE module = ? AND build_id <> '' ORDER BY frame_id LIMIT 1", executable
    )
    return int(rows["pid"].iloc[0]), executable, str(builds["build_id"].iloc[0]) if len(builds) else ""


def about(rec: Recording) -> About:
    """The facts of an open recording."""
    _, executable, build_id = main_program(rec)
    toll = rec.toll
    reasons = toll["not_captured"].dropna()
    return About(
        recording=rec.path.name,
        memtoll=__version__,
        format=rec.format,
        complete=rec.complete,
        command=str(rec.target["command"] or ""),
        executable=executable,
        build_id=build_id,
        host=rec.meta.get("host", ""),
        kernel=rec.meta.get("kernel", ""),
        start_realtime_ns=number(rec.meta.get("start_realtime_ns")),
        duration_s=rec.duration_s,
        observed_s=rec.observed_s,
        verdict=rec.verdict.sentence,
        losses=toll.attrs["losses"],
        not_captured={str(name): str(reason) for name, reason in reasons.items()},
        note=note(toll.attrs),
    )
