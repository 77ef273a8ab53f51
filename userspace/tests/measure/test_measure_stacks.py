# SPDX-License-Identifier: GPL-2.0
"""What stacks cost."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from test_e2e_stacks_programs import FRAMES, OTHER_FRAMES, built

from harness import record

pytestmark = [pytest.mark.root, pytest.mark.measure]

# 3.4 us on the machine this was written on; half as much again for a neighbour.
STACK_NS: Final = 6000


def test_price_of_a_stack(tmp_path: Path) -> None:
    """malloc and free of a followed block walk a stack each; of blocks that are not followed none is walked."""
    command: list[str | Path] = [built(tmp_path, "deep"), str(FRAMES - OTHER_FRAMES), "199"]
    walked = record(tmp_path / "walked.memtoll", command=command)
    unwalked = record(tmp_path / "unwalked.memtoll", "--min-size", "1M", command=command)
    price_ns = (walked.witness[-1]["pair_ns"] - unwalked.witness[-1]["pair_ns"]) / 2
    assert 0 < price_ns < STACK_NS


def test_prices_of_a_page_more_and_of_a_sample(tmp_path: Path) -> None:
    # Faults by the hundred, as one in 64 is timed.
    work = "sum(i * i for i in range(3000017))"
    recording = record(tmp_path / "a.memtoll", command=["/usr/bin/python3", "-c", work])
    price = dict(recording.query("SELECT probe, hit_ns FROM price"))
    assert price["fault_more"] > 0 and price["sample"] >= 500
