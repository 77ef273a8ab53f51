# SPDX-License-Identifier: GPL-2.0
"""What the probes took, by the tracer's own CPU samples, against the program's clock without and with them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import environment, record, workload

pytestmark = [pytest.mark.root, pytest.mark.measure]

PAIRS = 1_000_003


@pytest.mark.parametrize("work", [10, 1000])
def test_probes_part_by_samples(tmp_path: Path, work: int) -> None:
    """A pair with next to nothing beside it, and one with a microsecond of arithmetic."""
    command: list[str | Path] = [workload("pairs"), "--pairs", str(PAIRS), "--work", str(work)]

    def bare() -> int:
        run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
        return int(json.loads(run.stdout.splitlines()[-1])["cpu_ns"])

    # Before and after: the clock of a shared processor runs now faster, now slower.
    before = bare()
    recording = record(tmp_path / "r", command=command)
    after = bare()
    own = (before + after) / 2
    (witness,) = (line for line in recording.witness if "pairs" in line)
    assert recording.report["calls"]["malloc"] >= PAIRS
    truth = 1 - own / witness["cpu_ns"]
    unsure = abs(after - before) / 2 / witness["cpu_ns"]
    places = dict(recording.query("SELECT place, SUM(samples) FROM sample GROUP BY place"))
    probed = places["probe"] / sum(places.values())
    assert probed == pytest.approx(truth, abs=0.08 + unsure), places
    # What is left is the program's own time, and in the right toll.
    overhead = recording.report["overhead"]
    if work == 10:
        assert overhead["source"] == "samples"
    assert abs(overhead["estimated_pct"] / 100 - truth) <= overhead["error_pct"] / 100 + 0.03 + unsure
    if work == 1000:
        assert recording.dominant == "compute"
        assert recording.report["target"]["observed_s"] == pytest.approx(own / 1e9, rel=0.35)
