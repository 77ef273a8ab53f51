# SPDX-License-Identifier: GPL-2.0
"""What the probes took, by the tracer's own CPU samples, against the program's clock without and with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import environment, record, workload
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]

PAIRS = 1_000_003
MAPS = 300_007
# Maps and unmaps at each round, from Python: CPython's own dozen of frames is what a stack is.
MAPPING = """
import json, mmap, resource
def once():
    mmap.mmap(-1, {bytes}).close()
for _ in range({rounds}):
    once()
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps(dict(cpu_ns=round(1e9 * (used.ru_utime + used.ru_stime)))))
"""


def bare(command: list[str | Path]) -> int:
    """CPU time of the program, in ns, by its own clock."""
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    return int(json.loads(run.stdout.splitlines()[-1])["cpu_ns"])


@pytest.mark.parametrize("work", [10, 1000])
def test_probes_part_by_samples(tmp_path: Path, work: int) -> None:
    """A pair with next to nothing beside it, and one with a microsecond of arithmetic."""
    command: list[str | Path] = [workload("pairs"), "--pairs", str(PAIRS), "--work", str(work)]

    runs = 0

    def once() -> Mapping[str, float]:
        nonlocal runs
        runs += 1
        # Before and after: the clock of a shared processor runs now faster, now slower.
        before = bare(command)
        recording = record(tmp_path / f"{runs}.memtoll", command=command)
        after = bare(command)
        own = (before + after) / 2
        (witness,) = (line for line in recording.witness if "pairs" in line)
        assert recording.report["calls"]["malloc"] >= PAIRS
        truth = 1 - own / witness["cpu_ns"]
        unsure = abs(after - before) / 2 / witness["cpu_ns"]
        places = dict(recording.query("SELECT place, SUM(samples) FROM sample GROUP BY place"))
        probed = places["probe"] / sum(places.values())
        # What is left is the program's own time, and in the right toll.
        overhead = recording.report["overhead"]
        if work == 10:
            assert overhead["source"] == "samples"
        told = overhead["estimated_pct"] / 100
        figures = {
            "in probes, allowed": (probed - truth) / (0.08 + unsure),
            "told, allowed": (told - truth) / (overhead["error_pct"] / 100 + 0.03 + unsure),
        }
        if work == 1000:
            assert recording.dominant == "compute"
            figures["own time, bare"] = recording.report["target"]["observed_s"] * 1e9 / own
        print(f"truth {truth:.3f}, in probes {probed:.3f}, told {told:.3f}, bare {own / 1e6:.0f} ms")
        return figures

    bounds = {"in probes, allowed": Bound(-1, 1), "told, allowed": Bound(-1, 1)}
    settle(once, bounds | ({"own time, bare": Bound(0.65, 1.35)} if work == 1000 else {}), 90)


@pytest.mark.parametrize("size", [8 << 10, 256 << 10], ids=["some passed over", "each looked at"])
def test_mapping_calls_cost_what_is_told(tmp_path: Path, size: int) -> None:
    """Nothing else is traced, and the program does nothing else: what the account leaves out is what is missing."""
    command: list[str | Path] = ["/usr/bin/python3", "-c", MAPPING.format(bytes=size, rounds=MAPS)]

    runs = 0

    def once() -> Mapping[str, float]:
        nonlocal runs
        runs += 1
        before = bare(command)
        recording = record(tmp_path / f"{runs}.memtoll", "--probes=mappings", command=command, exact=False)
        after = bare(command)
        (witness,) = recording.witness
        assert recording.report["toll"]["map"]["count"] >= 2 * MAPS
        truth = 1 - (before + after) / 2 / witness["cpu_ns"]
        unsure = abs(after - before) / 2 / witness["cpu_ns"]
        overhead = recording.report["overhead"]
        told, error = overhead["estimated_pct"] / 100, overhead["error_pct"] / 100
        print(f"truth {truth:.3f}, told {told:.3f} +- {error:.3f}, bare {before / 1e6:.0f} and {after / 1e6:.0f} ms")
        return {"told, allowed": (told - truth) / (error + 0.03 + unsure)}

    settle(once, {"told, allowed": Bound(-1, 1)}, 90)
