# SPDX-License-Identifier: GPL-2.0
"""What every exported file says of the recording it was made from, losses above all."""

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

    start_realtime_ns: nanoseconds since 1970, 0 unknown; losses: {name: {"count", "share" 0..1 or
    None, "of"}}, those that happened; note: the same as one line, '' where there is nothing to say.
    """

    recording: str
    memtoll: str
    format: int
    complete: bool
    command: str
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


def about(rec: Recording) -> About:
    """The facts of an open recording."""
    toll = rec.toll
    reasons = toll["not_captured"].dropna()
    return About(
        recording=rec.path.name,
        memtoll=__version__,
        format=rec.format,
        complete=rec.complete,
        command=str(rec.target["command"] or ""),
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
