# SPDX-License-Identifier: GPL-2.0
"""How near the account of system calls that nobody looks at comes to their number, by a few windows a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from test_e2e_quiet import ask, finished, traced

from harness import query
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]


def test_other_calls_are_counted_in_windows(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(65536))
    made: list[float] = []

    def once() -> Mapping[str, float]:
        out = tmp_path / f"{len(made)}.memtoll"
        with traced(out, file, "--overhead-limit", "none", rest_ms=0) as (program, tracer):
            ask(program, "map", 1)
            begun = program.lines[-1]["idle_calls"]
            ask(program, "map", 1, 1_500_000)
            made.append(program.lines[-1]["idle_calls"] - begun)
            finished(out, program, tracer)
        ((counted,),) = query(out, "SELECT SUM(hits) FROM hit WHERE probe = 'syscall'")
        return {"counted, times made": counted / made[-1]}

    settle(once, {"counted, times made": Bound(0.75, 1.25)}, 45)
