# SPDX-License-Identifier: GPL-2.0
"""The alert rules, by Prometheus's own promtool: it takes them, and they fire at what they are for and not below."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from monitoring import MONITORING, program

ALERTS: Final = MONITORING / "memtoll-alerts.yml"
OF: Final = 'instance="db:9712",job="memtoll",target="mariadbd"'


def promtool(*words: str | Path) -> None:
    done = subprocess.run([program("promtool"), *words], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", ALERTS)
    assert {case[0] for case in CASES} == set(re.findall(r"alert: (\w+)", ALERTS.read_text()))


def series(name: str, each_minute: float, labels: str = OF) -> dict[str, str]:
    """A counter that grows by so much each minute, for two hours."""
    return {"series": f"{name}{{{labels}}}", "values": f"0+{each_minute:g}x120"}


def toll(name: str, share: float) -> dict[str, str]:
    return series("memtoll_toll_seconds_total", 60 * share, f'{OF},toll="{name}"')


def fires(path: Path, alert: str, at_minute: int, wanted: bool, *given: dict[str, str]) -> None:
    """Labels and texts are the alert's own business: that it fires, once, or not is what is asked."""
    count: dict[str, Any] = {"labels": "{}", "value": 1}
    case = {
        "interval": "1m",
        "input_series": list(given),
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": f"{at_minute}m",
                "exp_samples": [count] if wanted else [],
            }
        ],
    }
    # JSON is YAML.
    path.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [case]}))
    promtool("test", "rules", path)


OBSERVED: Final = series("memtoll_observed_seconds_total", 60)
SILENT: Final = {"series": f"memtoll_last_interval_timestamp_seconds{{{OF}}}", "values": "60x120"}


CASES: Final = [
    ("MemtollThrashing", 20, [toll("swap.in", 0.2), toll("reclaim", 0.15)], [toll("swap.in", 0.2)]),
    ("MemtollZeroing", 60, [toll("zero.libc", 0.2), toll("zero.kernel", 0.15)], [toll("zero.libc", 0.2)]),
    (
        "MemtollOverhead",
        60,
        [series("memtoll_overhead_seconds_total", 60 * 0.15)],
        [series("memtoll_overhead_seconds_total", 60 * 0.05)],
    ),
    (
        "MemtollLosses",
        60,
        [series("memtoll_losses_total", 60 * 11, f'{OF},loss="ring_run"')],
        [series("memtoll_losses_total", 60 * 9, f'{OF},loss="ring_run"')],
    ),
    ("MemtollSilent", 20, [SILENT], [{**SILENT, "values": "0+60x120"}]),
    (
        "MemtollRecordingsFail",
        60,
        [series("memtoll_recording_failures_total", 0.2)],
        [series("memtoll_recording_failures_total", 0.05)],
    ),
    (
        "MemtollGaps",
        120,
        [series("memtoll_unwatched_seconds_total", 1.5)],
        [series("memtoll_unwatched_seconds_total", 0.5)],
    ),
]


@pytest.mark.parametrize(("alert", "minute", "much", "little"), CASES)
def test_fires(
    tmp_path: Path, alert: str, minute: int, much: list[dict[str, str]], little: list[dict[str, str]]
) -> None:
    fires(tmp_path / "much.json", alert, minute, True, OBSERVED, *much)
    fires(tmp_path / "little.json", alert, minute, False, OBSERVED, *little)


def test_thrashing_is_told_after_a_while(tmp_path: Path) -> None:
    """Not in the first minutes: 'for' is five, and a rate needs two samples."""
    fires(tmp_path / "early.json", "MemtollThrashing", 4, False, OBSERVED, toll("swap.in", 0.5))
