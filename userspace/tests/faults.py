# SPDX-License-Identifier: GPL-2.0
"""Table fault of a recording, by the marked lines of the workloads: exact, where shares are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness import PAGE, Recording, site_line


@dataclass(frozen=True)
class Row:
    """Faults of one class, owner and place."""

    pid: int
    kind: str
    area: str
    area_name: str
    allocated_stack: int
    allocated_call: str
    touched_stack: int
    faults: int
    pages: int


def stacks(recording: Recording, source: str, *markers: str) -> set[int]:
    """Stacks that go through a marked line of a workload."""
    lines = {site_line(source, marker) for marker in markers}
    rows = recording.query(
        "SELECT s.stack_id, f.file, f.line FROM stack_frame s JOIN frame f USING (frame_id) WHERE f.line > 0"
    )
    return {stack for stack, file, line in rows if line in lines and Path(file).name == source}


class Faults:
    """Rows of table fault, narrowed step by step."""

    def __init__(self, recording: Recording, rows: Iterable[Row] | None = None) -> None:
        self.recording = recording
        if rows is None:
            rows = (
                Row(*row)
                for row in recording.query(
                    "SELECT pid, class, area, area_name, allocated_stack, allocated_call, touched_stack,"
                    " SUM(faults), SUM(pages) FROM fault GROUP BY 1, 2, 3, 4, 5, 6, 7"
                )
            )
        self.rows = list(rows)

    def touched(self, source: str, *markers: str) -> Faults:
        """Those by code at, or called from, a marked line."""
        wanted = stacks(self.recording, source, *markers)
        return Faults(self.recording, (row for row in self.rows if row.touched_stack in wanted))

    def allocated(self, source: str, *markers: str) -> Faults:
        """Those in blocks made at a marked line."""
        wanted = stacks(self.recording, source, *markers)
        return Faults(self.recording, (row for row in self.rows if row.allocated_stack in wanted))

    def of(self, *kinds: str) -> Faults:
        return Faults(self.recording, (row for row in self.rows if row.kind in kinds))

    def by(self, *pids: int) -> Faults:
        return Faults(self.recording, (row for row in self.rows if row.pid in pids))

    @property
    def faults(self) -> int:
        return sum(row.faults for row in self.rows)

    @property
    def pages(self) -> int:
        return sum(row.pages for row in self.rows)

    @property
    def bytes(self) -> int:
        return self.pages * PAGE

    @property
    def kinds(self) -> set[str]:
        return {row.kind for row in self.rows}

    @property
    def areas(self) -> set[str]:
        return {row.area for row in self.rows}

    @property
    def names(self) -> set[str]:
        return {row.area_name for row in self.rows}

    def __repr__(self) -> str:
        return "\n".join(["", *map(repr, self.rows)])
