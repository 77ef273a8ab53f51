# SPDX-License-Identifier: GPL-2.0
"""A file for speedscope (speedscope.app): flame graphs of the time and of the bytes of each toll.

The first profile has all tolls, below a frame for each. speedscope reads such files without an upload.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..visible import visible
from .about import About
from .samples import Place, Sample, samples
from .webtext import shown, write_json

if TYPE_CHECKING:
    from ..recording import Recording

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
# What is measured, and what speedscope calls its unit.
MEASURES: Final = (("time", "time_ns", "nanoseconds"), ("bytes", "bytes", "bytes"))
ALL: Final = "all tolls"


@dataclass
class Builder:
    """Frames, every one once."""

    frames: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def frame(self, name: str, file: str = "", line: int = 0) -> int:
        key = (name, file, line)
        if key not in self.numbers:
            self.numbers[key] = len(self.frames)
            self.frames.append({"name": name} | ({"file": file} if file else {}) | ({"line": line} if line else {}))
        return self.numbers[key]

    def stack(self, places: Iterable[Place]) -> list[int]:
        """Root first, which is how speedscope has them."""
        lines = [(place, line) for place in places for line in place.lines]
        return [self.frame(shown(place, line), visible(line[1]), line[2]) for place, line in reversed(lines)]


def profile(name: str, unit: str, stacks: list[list[int]], weights: list[int]) -> dict[str, Any]:
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights),
        "samples": stacks,
        "weights": weights,
    }


def file_of(rec: Recording, about: About, owner: str, toll: str | None) -> dict[str, Any]:
    """The file's object: of one toll or of all (None)."""
    builder = Builder()
    found: list[Sample] = list(samples(rec, owner, toll))
    stacks = [builder.stack(each.stack) for each in found]
    profiles = []
    for name in [ALL, *(toll for toll in rec.toll.index)] if toll is None else [toll]:
        for label, measure, unit in MEASURES:
            if name == ALL and label != "time":  # bytes of tolls are not of one kind
                continue
            of = [at for at, each in enumerate(found) if name in (ALL, each.toll) and getattr(each, measure)]
            above = [[builder.frame(found[at].toll)] if name == ALL else [] for at in of]
            if of or toll is not None:
                lines = [root + stacks[at] for root, at in zip(above, of)]
                weights = [int(getattr(found[at], measure)) for at in of]
                profiles.append(profile(f"{name}, {label}", unit, lines, weights))
    if not profiles:
        profiles.append(profile(f"{ALL}, time", "nanoseconds", [], []))
    said = f"{about.recording}: {about.verdict}" + (f" !!! {about.note}" if about.note else "")
    return {
        "$schema": SCHEMA,
        "name": visible(said),
        "exporter": f"memtoll@{about.memtoll}",
        "activeProfileIndex": 0,
        "shared": {"frames": builder.frames},
        "profiles": profiles,
    }


def write(rec: Recording, about: About, path: Path, owner: str, toll: str | None) -> None:
    write_json(file_of(rec, about, owner, toll), path)
