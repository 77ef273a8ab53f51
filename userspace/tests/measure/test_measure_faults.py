# SPDX-License-Identifier: GPL-2.0
"""What a fault is said to take, against the clock of a loop that does nothing but fault."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness import MIB, PAGE, record, workload
from measuring import Bound, settle
from profiler import profiled

pytestmark = [pytest.mark.root, pytest.mark.measure]

CALLS = 151


def test_time_is_the_whole_fault(tmp_path: Path) -> None:
    """The loop's time is the faults' and their probes', within what the recording says of its own error and 5 %."""
    runs = 0

    def once() -> Mapping[str, float]:
        nonlocal runs
        runs += 1
        recording = record(
            tmp_path / f"{runs}.memtoll", command=[workload("storms"), "advise", str(CALLS), "1", str(16 * MIB)]
        )
        ((faults, timed, mean, error),) = recording.query(
            "SELECT faults, timed_faults, mean_ns, error_ns FROM fault_price WHERE class = 'zero'"
        )
        prices = {
            probe: (hit, unsure)
            for probe, hit, unsure in recording.query("SELECT probe, hit_ns, error_ns FROM probe_price")
        }
        pages = CALLS * 16 * MIB // PAGE
        assert pages <= faults <= 1.01 * pages
        (begin, begin_unsure), (end, end_unsure) = prices["fault"], prices["fault_end"]
        took = recording.witness[-1]["use_cpu_ns"] / pages
        ends = timed / faults
        told = mean + begin + ends * end
        unsure = error + begin_unsure + ends * end_unsure
        print(f"told {told:.0f} +- {unsure:.0f} ns, took {took:.0f}")
        return {"off, allowed": (told - took) / (0.05 * took + unsure), "unsure, took": unsure / took}

    settle(once, {"off, allowed": Bound(-1, 1), "unsure, took": Bound(most=0.5)}, 60)


CLEAR_PAGE = ("clear_page_erms", "clear_page_rep", "clear_page_orig", "clear_page")


def test_clearing_proper_is_that_of_the_code_that_clears(tmp_path: Path) -> None:
    """Of pages of 4 KiB, whether they come from some cache or not: by a profiler forty times as fine."""
    runs = 0

    def once() -> Mapping[str, float]:
        nonlocal runs
        runs += 1
        with profiled() as profile:
            recording = record(
                tmp_path / f"{runs}.memtoll",
                "--overhead-limit",
                "none",
                command=[workload("storms"), "advise", "701", "1", str(16 * MIB)],
            )
        ((pid,),) = recording.query("SELECT pid FROM process WHERE role = 'target'")
        said, took = recording.toll("zero.kernel", "clear_s"), profile.kernel_ns(pid, *CLEAR_PAGE) / 1e9
        print(f"said {said:.3f} s, took {took:.3f}")
        assert took > 0
        return {"said, took": said / took}

    settle(once, {"said, took": Bound(0.7, 1.4)}, 90)
