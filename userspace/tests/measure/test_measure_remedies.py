# SPDX-License-Identifier: GPL-2.0
"""What heeding the advice saves, where no setting does it but the program: at least half of what is claimed.

The workload has both ways; the program's own CPU time is the witness, of runs side by side that nobody traces. What
settings save is in test_measure_proofs.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from test_e2e_proofs import REMEDIES

from harness import environment, record, workload
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]


def alone(shape: str, *heeded: str) -> int:
    command = [str(workload("remedies")), shape, str(REMEDIES[shape]), *heeded]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    return int(json.loads(done.stdout.splitlines()[-1])["cpu_ns"])


@pytest.mark.parametrize("code", REMEDIES)
def test_heeded_it_saves_half_of_the_time_claimed(tmp_path: Path, code: str) -> None:
    recording = record(tmp_path / "r", command=[workload("remedies"), code, str(REMEDIES[code])])
    given = {one["code"]: one for one in recording.report["verdict"]["advice"]}
    assert code in given, given
    gain = float(given[code]["gain"])
    if code != "small-steps":  # the storm that growth makes says of its time that it is in both
        assert sum(one["gain"] for one in given.values()) < 1.02, "no time is promised twice"

    def once() -> dict[str, float]:
        return {"saved of what is claimed": (1 - alone(code, "heeded") / alone(code)) / gain}

    settle(once, {"saved of what is claimed": Bound(least=0.5)}, 45)
