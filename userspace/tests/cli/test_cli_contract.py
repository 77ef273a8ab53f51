# SPDX-License-Identifier: GPL-2.0
"""The checker of the JSON contract itself: it takes what is right and refuses each thing wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from shape import MEMORY, TOLLS, check_report, toll_shape

ADVICE = {"code": "c", "title": "t", "text": "t", "evidence": "e", "gain": 0.5, "bound": 0.1, "cost": "c", "try": None}
FRAME = {"function": "f", "module": "/bin/a", "file": "/src/a.c", "line": 3, "kind": "native"}


def valid() -> dict[str, Any]:
    toll: dict[str, Any] = {name: dict.fromkeys(toll_shape(name), 0) for name in TOLLS}
    toll["zero.libc"] |= {"time_s": 0.9, "share": 0.9, "count": 10, "bytes": 1000, "pages": 0}
    toll["compute"] |= {"time_s": 0.1, "share": 0.1}
    for name in ("zero.app", "copy.app"):
        toll[name]["bytes_estimated"] = True
    toll["file.read"] = dict.fromkeys(toll["file.read"])  # not captured
    site = {"toll": "zero.libc", "time_s": 0.9, "share": 0.9, "bytes": 1000, "count": 10, "call": "calloc", "area": ""}
    row = {"call": "calloc", "calls": 11, "bytes": 1100, "freed": 11, "live_bytes": 0, "allocated_at": [FRAME]} | {
        "estimated": False,
        "calls_error": 0,
        "bytes_error": 0,
        "at_least": False,
    }
    return {
        "format": 1,
        "complete": True,
        "tool_version": "0.1.0",
        "target": {
            "pids": [1],
            "command": "a",
            "host": "vm",
            "started": "2026-11-26T18:00:00Z",
            "exit_status": None,
            "container": None,
            "duration_s": 1.1,
            "observed_s": 1.0,
        },
        "verdict": {
            "dominant": "zeroing",
            "share": 0.9,
            "low": 0.88,
            "high": 0.92,
            "sentence": "It clears.",
            "advice": [dict(ADVICE)],
        },
        "toll": toll,
        "zeroing": {"bytes_kernel": 0, "bytes_libc": 1000, "bytes_app": 0, "bytes_twice": 0, "bytes_never_used": 0},
        "sites": [site | {"allocated_at": [FRAME], "touched_at": []}],
        "allocations": [row],
        "memory": {name: None for name in MEMORY}
        | {"came_back_bytes": 0, "swap_in_pages": dict.fromkeys(("cache", "device", "zram", "zswap", "zero"), 0)},
        "page_cache": {
            "filled_pages": 5,
            "again_pages": 3,
            "vain_pages": 2,
            "thrash": False,
            "partial": False,
            "path": "",
            "pattern": None,
            "returns": None,
            "code": False,
            "working_bytes": 0,
            "fits_bytes": None,
            "limit_bytes": None,
            "refaults": None,
        },
        "dropped": [],
        "handlers": None,
        "access": [],
        "giveback": [],
        "allocators": [],
        "files": [],
        "miss_ratio_curve": {"files": [], "swap": []},
        "own_cache": [],
        "latency": {},
        "outliers": [],
        "stacks": {"whole_share": 0.9, "stopped": {"rule": 0.1}},
        "hold": None,
        "sampled": [],
        "thresholds": [],
        "calls": {"calloc": 11, "free": 11},
        "past_cache": {},
        "processes": [],
        "containers": [],
        "notes": ["n"],
        "not_captured": {"file.read": "not yet"},
        "checks": {"minor_faults": {"ours": 99, "kernel": 100, "difference": -1, "ok": True}},
        "losses": {"ring_full": 0},
        "overhead": {
            "limit_pct": None,
            "estimated_pct": 1.5,
            "error_pct": 0.2,
            "source": "prices",
            "hits": 22,
            "held_s": None,
            "ns_per_hit": {"calloc": 510.5},
            "ns_per_hit_error": {"calloc": 10.5},
            "duty_cycle": {"calloc": 1.0},
        },
    }


def test_takes_what_is_right() -> None:
    check_report(valid())


WRONG: dict[str, Callable[[dict[str, Any]], Any]] = {
    "lacks a member": lambda r: r.pop("losses"),
    "has one more": lambda r: r.update(extra=1),
    "lacks a toll": lambda r: r["toll"].pop("swap.in"),
    "toll lacks a figure": lambda r: r["toll"]["map"].pop("bytes"),
    "no number": lambda r: r["toll"]["map"].update(time_s="0"),
    "no integer": lambda r: r["toll"]["map"].update(count=1.5),
    "truth is no number": lambda r: r["toll"]["map"].update(count=True),
    "negative": lambda r: r["losses"].update(ring_full=-1),
    "no such family": lambda r: r["verdict"].update(dominant="clearing"),
    "no such toll": lambda r: r["sites"][0].update(toll="zero"),
    "no such frame": lambda r: r["sites"][0]["allocated_at"].append({**FRAME, "kind": "rust"}),
    "other format": lambda r: r.update(format=2),
    "share outside its bar": lambda r: r["verdict"].update(high=0.89),
    "share is not the family's": lambda r: r["verdict"].update(share=0.5, low=0.4),
    "none, although one dominates": lambda r: r["verdict"].update(dominant="none"),
    "dominates below a third": lambda r: (
        r["verdict"].update(share=0.2, low=0.1, high=0.3),
        r["toll"]["zero.libc"].update(share=0.2),
    ),
    "shares beyond one": lambda r: r["toll"]["compute"].update(share=0.5),
    "more time than there was": lambda r: r["toll"]["compute"].update(time_s=0.5),
    "two truths on bytes": lambda r: r["zeroing"].update(bytes_libc=999),
    "twice what was never cleared": lambda r: r["zeroing"].update(bytes_twice=1),
    "freed what was not made": lambda r: r["allocations"][0].update(freed=12),
    "sites beyond the total": lambda r: r["calls"].update(calloc=10),
    "difference is none": lambda r: r["checks"]["minor_faults"].update(difference=1),
    "many faults unseen, and not said": lambda r: r["checks"]["minor_faults"].update(
        ours=0, kernel=4_000_037, difference=-4_000_037, ok=False
    ),
    "many faults too many, and not said": lambda r: r["checks"]["minor_faults"].update(
        ours=4_000_037, kernel=0, difference=4_000_037, ok=False
    ),
    "memory denied, although a check fails": lambda r: (
        r["checks"]["minor_faults"].update(ours=90, difference=-10, ok=False),
        r["verdict"].update(sentence="Computing takes all: memory is not what it waits for."),
    ),
    "null without a reason": lambda r: r["not_captured"].clear(),
    "a reason without null": lambda r: r["not_captured"].update(map="x"),
    "no sentence": lambda r: r["verdict"].update(sentence=" "),
    "advice below its bound": lambda r: r["verdict"]["advice"][0].update(gain=0.1),
    "advice without evidence": lambda r: r["verdict"]["advice"][0].update(evidence=""),
}


@pytest.mark.parametrize("what", WRONG)
def test_refuses_what_is_wrong(what: str) -> None:
    report = copy.deepcopy(valid())
    WRONG[what](report)
    with pytest.raises(AssertionError):
        check_report(report)
