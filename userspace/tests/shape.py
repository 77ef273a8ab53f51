# SPDX-License-Identifier: GPL-2.0
"""The shape of `memtoll report --json`, format 1, and the laws every such object obeys.

A shape is one of: a type (exactly it; float takes any number), a list with one shape (a list of
such), a dict (exactly these keys), Map (any keys, one shape), OneOf (one of these strings) or
Null (a shape, or null).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

FAMILIES: dict[str, tuple[str, ...]] = {
    "zeroing": ("zero.kernel", "zero.libc", "zero.app"),
    "swap": ("swap.in", "swap.out", "reclaim"),
    "cow": ("cow",),
    "file": ("file.fault", "file.read"),
    "userfault": ("fault.user",),
    "other": ("fault.other",),
    "allocator": ("alloc",),
    "mapping": ("map",),
    "compute": ("copy.app", "compute"),
}
TOLLS: tuple[str, ...] = tuple(toll for family in FAMILIES.values() for toll in family)
CALLS: tuple[str, ...] = (
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
)

# Shares are printed rounded, and a family adds up to three of them.
ROUNDING = 0.01


@dataclass(frozen=True)
class Map:
    shape: Any


@dataclass(frozen=True)
class OneOf:
    values: tuple[str, ...]


@dataclass(frozen=True)
class Null:
    shape: Any


@dataclass(frozen=True)
class Signed:
    """An integer that may be negative."""


FRAME = {
    "function": str,
    "module": str,
    "file": str,
    "line": int,
    "kind": OneOf(("native", "python", "ruby", "php", "javascript", "java", "kernel", "jit")),
}

FIGURES: dict[str, Any] = {
    "time_s": Null(float),
    "blocked_s": Null(float),
    "share": Null(float),
    "low": Null(float),
    "high": Null(float),
    "count": Null(int),
    "bytes": Null(int),
    "pages": Null(int),
}


def toll_shape(toll: str) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if toll == "zero.kernel":
        extra = {"clear_s": Null(float)}
    elif toll == "file.read":
        extra = {"reread_factor": Null(float)}
    elif toll in ("zero.app", "copy.app"):
        extra = {"bytes_estimated": bool, "bytes_low": Null(int), "bytes_high": Null(int)}
    return FIGURES | extra


CHECK = {"ours": int, "kernel": int, "difference": Signed(), "ok": bool}

PROCESS = {
    "pid": int,
    "comm": str,
    "command": str,
    "exit_code": Null(int),
    "container": Null(str),  # its title
    "pid_inside": Null(int),  # the process's number there; null: the same, or in none
    "observed_s": float,
    "toll_s": Map(Null(float)),
}

CONTAINER = {
    "id": str,
    "title": str,
    "runtime": Null(OneOf(("docker", "containerd", "cri-o", "podman"))),
    "name": Null(str),
    "image": Null(str),
    "pod": Null(str),
    "namespace": Null(str),
    "pod_uid": Null(str),
    "processes": int,
}

MEMORY = {
    "limit_bytes": Null(int),
    "limit_path": Null(str),
    "cgroup_version": Null(int),
    "swap_limit_bytes": Null(int),
    "rss_peak_bytes": Null(int),
    "swap_peak_bytes": Null(int),
    "came_back_bytes": int,
    "fits_bytes": Null(int),
    "swap_in_pages": {"cache": int, "device": int, "zram": int, "zswap": int, "zero": int},
    "readahead_pages": Null(int),
}

ACCESS = {
    "call": str,
    "area": str,
    "area_name": str,
    "pattern": OneOf(("fits", "one-pass sweep", "one pass", "cyclic sweep", "random", "back once")),
    "first_pages": int,
    "swap_in_pages": int,
    "distinct_pages": int,
    "returns": float,
    "max_returns": int,
    "sequential_pages": int,
    "untracked_pages": int,
    "allocated_at": [FRAME],
}

# gain: the share of the observed time it can save at most, more than bound; try: a command line, or null.
ADVICE = {
    "code": str,
    "title": str,
    "text": str,
    "evidence": str,
    "gain": float,
    "bound": float,
    "cost": str,
    "try": Null(str),
}

THRESHOLD = {
    "pid": int,
    "name": OneOf(("mmap_threshold", "trim_threshold", "top_pad")),
    "low_bytes": int,
    "high_bytes": Null(int),
    "how": OneOf(("default", "tunable", "inherited", "freed", "mapped", "grew", "trimmed", "read")),
    "changes": int,
    "changed_s": Null(float),
    "before_bytes": Null(int),
    "call": OneOf(("", *CALLS)),
    "changed_at": [FRAME],
}

GIVEBACK = {
    "pid": int,
    "how": OneOf(("munmap", "brk", "dontneed", "free", "fixed", "heap", "stack", "stack_unmapped")),
    "gave_call": OneOf(("", *CALLS)),
    "got_call": OneOf(("", *CALLS, "mmap")),
    "allocator": OneOf(("", "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc", "go", "unknown")),
    "calls": int,
    "gave_bytes": int,
    "again_bytes": int,
    "twice_bytes": int,
    "again_faults": int,
    "largest_bytes": int,
    "span_bytes": int,
    "gave_bytes_per_s": float,
    "again_bytes_per_s": float,
    "again_s": float,
    "gave_s": float,
    "gave_at": [FRAME],
    "got_at": [FRAME],
}

PROBE = {
    "symbol": str,
    "call": OneOf(CALLS),
    "offset": Null(int),
    "instruction": str,
    "timed": bool,
    "refusal": str,
}

ALLOCATOR = {
    "pid": int,
    "kind": OneOf(("glibc", "musl", "jemalloc", "tcmalloc", "mimalloc", "go", "unknown")),
    "version": str,
    "module": str,
    "linkage": OneOf(("dynamic", "static", "embedded", "preloaded")),
    "calls": Null(int),
    "tunables": str,
    "tolls": Map(float),
    "coverage": str,
    "complete": bool,
    "probes": [PROBE],
    "clearing": {
        "rule": OneOf(("chunk header", "observation", "none")),
        "cleared_by": OneOf(("memset", "kernel", "both", "some", "unknown")),
        "calls": int,
        "bytes": int,
        "samples": int,
        "memset_samples": int,
        "agrees": Null(bool),
        "evidence": str,
    },
}

POINT = {"cache_bytes": int, "miss_ratio": float}

FILE = {
    "path": str,
    "device": int,
    "inode": int,
    "kind": OneOf(("file", "block device")),
    "file_bytes": Null(int),
    "count": int,
    "bytes": int,
    "time_s": float,
    "blocked_s": float,
    "direct_bytes": int,
    "cached_bytes": int,
    "filled_bytes": int,
    "reread_factor": Null(float),
    "reread_low": Null(float),
    "reread_high": Null(float),
    "different_bytes": Null(int),
    "miss_ratio_curve": [POINT],
}

LATENCY = {
    "calls": int,
    "p50_ns": float,
    "p90_ns": float,
    "p99_ns": float,
    "p999_ns": float,
    "max_ns": int,
    "resolution_ns": float,
    "wall_s": float,
    "own_s": float,
    "fault_s": float,
    "map_s": float,
    "lock_s": float,
    "off_s": float,
    "faults": int,
    "lock_waits": int,
}

CAUSES = (
    "swap",
    "first touch",
    "other faults",
    "mapping calls",
    "lock",
    "preempted",
    "asleep",
    "clearing",
    "copying",
    "consolidation",
    "allocator",
)

OUTLIER = {
    "call": OneOf(CALLS),
    "cause": OneOf(CAUSES),
    "inferred": bool,
    "pid": int,
    "tid": int,
    "start_ns": int,
    "size_bytes": int,
    "wall_ns": int,
    "cpu_ns": int,
    "median_ns": int,
    "frees": int,
    "cleared_bytes": int,
    "samples": int,
    "lock_waits": int,
    "voluntary": int,
    "involuntary": int,
    "faults": {"zero": int, "swap": int, "other": int},
    "map_calls": {"mmap": int, "munmap": int, "mremap": int, "brk": int, "madvise": int},
    "parts_ns": {
        part: float for part in ("swap", "first touch", "other faults", "mapping calls", "lock", "off", "cpu")
    },
    "allocated_at": [FRAME],
}

REPORT: dict[str, Any] = {
    "format": int,
    "complete": bool,
    "target": {
        "pids": [int],
        "command": str,
        "host": Null(str),
        "started": Null(str),  # UTC, ISO 8601
        "exit_status": Null(int),  # of a command that memtoll started, as a shell has it
        "container": Null(str),  # that the processes are in; of several how many there are
        "duration_s": float,
        "observed_s": float,
    },
    "tool_version": Null(str),  # of the memtoll that recorded
    "verdict": {
        "dominant": OneOf((*FAMILIES, "none")),
        "share": float,
        "low": float,
        "high": float,
        "sentence": str,
        "advice": [ADVICE],
    },
    "toll": {toll: toll_shape(toll) for toll in TOLLS},
    "zeroing": {
        "bytes_kernel": Null(int),
        "bytes_libc": Null(int),
        "bytes_app": Null(int),
        "bytes_twice": int,
        "bytes_never_used": int,
    },
    "sites": [
        {
            "toll": OneOf(TOLLS),
            "time_s": float,
            "share": float,
            "bytes": int,
            "count": int,
            "call": str,
            "area": str,
            "allocated_at": [FRAME],
            "touched_at": [FRAME],
        }
    ],
    "allocations": [
        {
            "call": OneOf((*CALLS, "mmap")),
            "calls": int,
            "bytes": int,
            "freed": Null(int),
            "live_bytes": Null(int),
            # calls and bytes are estimates, with these 95 % bounds; else 0
            "estimated": bool,
            "calls_error": int,
            "bytes_error": int,
            "at_least": bool,
            "allocated_at": [FRAME],
        }
    ],
    # Looks at who holds the memory (record --hold): resident bytes at the first and at the last; null: there were none.
    "hold": Null(
        {
            "looks": int,
            "seen": int,
            "seconds": float,
            "complete": bool,
            "parts": Map({"first": int, "last": int}),
            "grows": bool,
            "grown_bytes": Signed(),
            "bytes_per_s": float,
            # Whose followed blocks grew most; null: none has a fifth of it.
            "site": Null(
                {"call": OneOf(CALLS), "place": str, "made": int, "freed": int, "bytes": int, "in_part": bool}
            ),
            # What malloc_trim(0) would give back, and what of that would be faulted in again; null: not known.
            "trim": Null(
                {"bytes": int, "seconds": float, "used_part": float, "refaults_per_s": float, "in_part": bool}
            ),
            # Free memory that live blocks keep: on their pages, or below the end of a heap. call: null where
            # nobody saw them made; size: null where they have several.
            "pinned": [
                {
                    "at": OneOf(("page", "end")),
                    "bytes": int,
                    "call": Null(OneOf(CALLS)),
                    "place": Null(str),
                    "blocks": int,
                    "size": Null(int),
                    "hint": Null(str),
                }
            ],
        }
    ),
    # --sample: estimates with 95 % bounds, of blocks below --min-size
    "sampled": [
        {
            "call": OneOf(CALLS),
            "chosen": int,
            "bytes": int,
            "bytes_error": int,
            "live_bytes": Null(int),
            "live_bytes_error": Null(int),
            "allocated_at": [FRAME],
        }
    ],
    # Members beyond the contract's own: memory used against what may be used, how each allocation
    # was gone over, totals by function, processes, remarks, and what this run could not see (its
    # figures are null above).
    "memory": MEMORY,
    # pages of files that came into the page cache: again after use, or before it (read ahead in vain)
    "page_cache": {
        "filled_pages": int,
        "again_pages": int,
        "vain_pages": int,
        "thrash": bool,
        "partial": bool,
        "path": str,
        "pattern": Null(OneOf(("cyclic sweep", "random", "one-pass sweep", "one pass"))),
        "returns": Null(float),
        "code": bool,
        # null where partial
        "working_bytes": Null(int),
        "fits_bytes": Null(int),
        "limit_bytes": Null(int),
        "refaults": Null(int),
    },
    # who threw out pages of its files, and its memory to swap
    "dropped": [
        {
            "what": OneOf(("file", "swap")),
            "how": OneOf(("self", "other", "kswapd", "madvise", "fadvise", "asked", "cut")),
            "pid": int,
            "comm": str,
            "memory_cgroup": str,
            "pages": int,
        }
    ],
    # who answers faults that wait for a userfaultfd's handler; null: nobody was seen to
    "handlers": Null(
        {
            "waits": int,
            "wait_s": float,
            "p50_ns": float,
            "p99_ns": float,
            "longest_ns": int,
            "longest_place": Null(str),
            "threads": [
                {
                    "pid": int,
                    "tid": int,
                    "comm": str,
                    "process": str,
                    "request": str,
                    "place": Null(str),
                    "waits": int,
                    "wait_s": float,
                }
            ],
        }
    ),
    "access": [ACCESS],
    # Memory given back to the kernel, and got again, by who gave it.
    "giveback": [GIVEBACK],
    # glibc's thresholds at the end, and what last moved them.
    "thresholds": [THRESHOLD],
    # Files that were read, the one that took most time first.
    "files": [FILE],
    # How long single calls of each function took; the longest of those that took far longer than the rest.
    "latency": Map(LATENCY),
    "outliers": [OUTLIER],
    # Share of the reads seen that a cache would miss; of the swap-ins, share that more memory would save.
    "miss_ratio_curve": {"files": [POINT], "swap": [{"more_bytes": int, "saved": float}]},
    "own_cache": [{"pid": int, "program": str, "setting": str, "bytes": Null(int), "source": str}],
    # How much of the sites' time has whole stacks, and what ended the others.
    "stacks": {"whole_share": float, "stopped": Map(float)},
    "calls": Map(int),
    "past_cache": Map(int),
    # Which allocator each process has, how much of it is seen, who clears what its calloc returns.
    "allocators": [ALLOCATOR],
    "processes": [PROCESS],
    "containers": [CONTAINER],
    "notes": [str],
    "not_captured": Map(str),
    "checks": Map(CHECK),
    "losses": Map(int),
    "overhead": {
        "limit_pct": Null(float),
        "estimated_pct": float,
        "error_pct": float,
        "source": str,
        "hits": int,
        # how long at least processes of a command were held; null of what was not started by memtoll
        "held_s": Null(float),
        "ns_per_hit": Map(float),
        "ns_per_hit_error": Map(float),
        # of the recording's time, how much each function was watched
        "duty_cycle": Map(float),
    },
}


def json_schema(shape: Any) -> dict[str, Any]:
    """A shape as JSON Schema. Objects may have more members than it says: fields are only ever added."""
    if isinstance(shape, Null):
        return {"anyOf": [json_schema(shape.shape), {"type": "null"}]}
    if isinstance(shape, OneOf):
        return {"enum": list(shape.values)}
    if isinstance(shape, Map):
        return {"type": "object", "additionalProperties": json_schema(shape.shape)}
    if isinstance(shape, dict):
        members = {key: json_schema(member) for key, member in shape.items()}
        return {"type": "object", "required": list(shape), "properties": members}
    if isinstance(shape, list):
        return {"type": "array", "items": json_schema(shape[0])}
    if isinstance(shape, Signed):
        return {"type": "integer"}
    if shape in (float, int):
        return {"type": "number" if shape is float else "integer", "minimum": 0}
    return {"type": {str: "string", bool: "boolean"}[shape]}


def report_schema() -> dict[str, Any]:
    """What userspace/report/report.schema.json must be."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "memtoll report --json, format 1"}
    return head | json_schema(REPORT)


# A line of `memtoll stat -I TIME --json`.
INTERVAL: dict[str, Any] = {
    "format": int,
    "interval": int,
    # UTC
    "start": str,
    "end": str,
    # since the start of the first
    "start_s": float,
    "end_s": float,
    "observed_s": float,
    "overhead_pct": float,
    # null where it was not captured
    "toll": {toll: {"time_s": Null(float), "share": Null(float), "count": Null(int)} for toll in TOLLS},
    # what was lost, by name
    "losses": Map(int),
    "losses_exceed": bool,
}


def interval_schema() -> dict[str, Any]:
    """What userspace/report/interval.schema.json must be."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "memtoll stat -I --json, format 1"}
    return head | json_schema(INTERVAL)


def check_shape(value: Any, shape: Any, path: str = "report") -> None:
    """Raise AssertionError that names the first member that is not as the shape says."""
    if isinstance(shape, Null):
        if value is not None:
            check_shape(value, shape.shape, path)
    elif isinstance(shape, OneOf):
        assert value in shape.values, f"{path}: {value!r} is none of {shape.values}"
    elif isinstance(shape, Map):
        assert isinstance(value, dict), f"{path}: {value!r} is no object"
        for key, member in value.items():
            check_shape(member, shape.shape, f"{path}.{key}")
    elif isinstance(shape, dict):
        assert isinstance(value, dict), f"{path}: {value!r} is no object"
        assert not shape.keys() - value.keys(), f"{path}: lacks {sorted(shape.keys() - value.keys())}"
        assert not value.keys() - shape.keys(), f"{path}: has also {sorted(value.keys() - shape.keys())}"
        for key, member in shape.items():
            check_shape(value[key], member, f"{path}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{path}: {value!r} is no array"
        for index, member in enumerate(value):
            check_shape(member, shape[0], f"{path}[{index}]")
    elif isinstance(shape, Signed):
        assert isinstance(value, int) and not isinstance(value, bool), f"{path}: {value!r} is no integer"
    elif shape is float:
        assert isinstance(value, (int, float)) and not isinstance(value, bool), f"{path}: {value!r} is no number"
        assert value >= 0, f"{path}: {value!r} is negative"
    elif shape is int:
        assert isinstance(value, int) and not isinstance(value, bool), f"{path}: {value!r} is no integer"
        assert value >= 0, f"{path}: {value!r} is negative"
    else:
        assert isinstance(value, shape), f"{path}: {value!r} is no {shape.__name__}"


def family_shares(report: dict[str, Any]) -> dict[str, float]:
    toll = report["toll"]
    shares = {name: sum(toll[member]["share"] or 0.0 for member in tolls) for name, tolls in FAMILIES.items()}
    # Without any swap reclaim is of pages of files, and of their family where that is known, or these come again.
    known = "swap.out" not in report["not_captured"] or report["page_cache"]["again_pages"] >= 256
    if not known or toll["swap.out"]["count"]:
        return shares
    reclaim = toll["reclaim"]["share"] or 0.0
    of_files = shares | {"swap": shares["swap"] - reclaim, "file": shares["file"] + reclaim}
    # Pages that were still in the swap cache are faults of swap.in, without any swap; the report does not say which.
    dominant, share = report["verdict"]["dominant"], report["verdict"]["share"]
    if toll["swap.in"]["count"] and (dominant == "none" or abs(share - of_files[dominant]) > ROUNDING):
        return shares
    return of_files


# The least that a fault takes, and a fault that waits, in seconds: a bound that depends on no machine.
LEAST_FAULT = 0.25e-6
LEAST_MAJOR_FAULT = 2e-6


def check_doubts(report: dict[str, Any]) -> None:
    """No verdict is silent where our counts and the kernel's differ by what may be a tenth of the time."""
    sentence, observed = report["verdict"]["sentence"], report["target"]["observed_s"]
    swaps = any(report["toll"][toll]["count"] for toll in ("swap.in", "swap.out"))
    # The machine's swap counts have what others do in them.
    failed = {
        name: check
        for name, check in report["checks"].items()
        if not check["ok"] and (swaps or not name.startswith("swapped_"))
    }
    assert not (failed and "not what it waits for" in sentence), (failed, sentence)
    for name, each in (("minor_faults", LEAST_FAULT), ("major_faults", LEAST_MAJOR_FAULT)):
        difference = failed.get(name, {"difference": 0})["difference"]
        could = abs(difference) * each
        if could <= 0.1 * observed:
            continue
        # What system calls fault in unseen is told by CPU samples, and in the toll then.
        told = name == "minor_faults" and (report["toll"]["zero.kernel"]["time_s"] or 0.0) >= could
        said = sentence.startswith("Not all was seen" if difference < 0 else "Not all is certain")
        assert said or (told and difference < 0), (failed, sentence)


def check_computing(report: dict[str, Any], shares: dict[str, float]) -> None:
    """A program that computes most is told which part of memory is the largest, and how much all of it takes."""
    sentence = report["verdict"]["sentence"]
    if "Computing takes" not in sentence and "the largest, compute, takes" not in sentence:
        return
    memory = {family: share for family, share in shares.items() if family != "compute"}
    if sum(memory.values()) >= 0.1 + len(TOLLS) * ROUNDING:
        assert "not what it waits for" not in sentence and "in all, most in" in sentence, (sentence, shares)
    named = re.search(r" in all, most in ([a-z]+): ", sentence)
    assert not named or memory[named[1]] >= max(memory.values()) - 2 * ROUNDING, (sentence, shares)


def check_laws(report: dict[str, Any]) -> None:
    """What holds for every recording, whatever the program did."""
    toll, verdict, zeroing = report["toll"], report["verdict"], report["zeroing"]
    shares = family_shares(report)

    assert report["format"] == 1
    assert sum(shares.values()) <= 1 + len(TOLLS) * ROUNDING, f"shares exceed the observed time: {shares}"
    assert 0 <= verdict["low"] <= verdict["share"] <= verdict["high"] <= 1, verdict
    assert verdict["sentence"].strip()
    check_doubts(report)
    check_computing(report, shares)
    for name, check in report["checks"].items():
        assert check["difference"] == check["ours"] - check["kernel"], (name, check)
    for name in TOLLS:
        missing = [figure for figure in FIGURES if toll[name][figure] is None]
        assert bool(missing) == (name in report["not_captured"]), f"{name}: no {missing}, and no reason why"
    if verdict["dominant"] == "none":
        doubted = verdict["sentence"].startswith(("Not all", "Whether this is zeroing is doubtful"))
        assert doubted or max(shares.values()) < 1 / 3 + ROUNDING, f"'none', although {shares}"
    else:
        assert verdict["share"] >= 1 / 3 - ROUNDING, verdict
        assert abs(verdict["share"] - shares[verdict["dominant"]]) <= ROUNDING, (verdict, shares)
        assert max(shares.values()) <= verdict["share"] + ROUNDING, (verdict, shares)
    for advice in verdict["advice"]:
        assert advice["code"] and advice["title"] and advice["text"] and advice["evidence"], advice
        assert advice["code"] == "none" or (advice["gain"] > advice["bound"] and advice["cost"]), advice
    assert zeroing["bytes_kernel"] == toll["zero.kernel"]["bytes"]
    assert zeroing["bytes_libc"] == toll["zero.libc"]["bytes"]
    assert zeroing["bytes_twice"] <= (zeroing["bytes_kernel"] or 0)
    seconds = sum(entry["time_s"] or 0.0 for entry in toll.values())
    assert seconds <= report["target"]["observed_s"] * 1.02 + 1e-3, "tolls exceed the observed time"
    for row in report["allocations"]:
        assert row["calls"] > 0, row
        if row["freed"] is not None:
            assert row["freed"] <= row["calls"], row
        if row["live_bytes"] is not None:
            assert row["live_bytes"] <= row["bytes"], row
    for row in report["giveback"]:
        # A page may be back that was given before the recording began; never twice.
        assert row["twice_bytes"] <= row["again_bytes"] <= row["gave_bytes"], row
    for call in CALLS:
        rows = sum(row["calls"] for row in report["allocations"] if row["call"] == call)
        assert rows <= report["calls"].get(call, 0), f"{call}: sites make {rows} calls, the total is less"


def check_report(report: Any) -> None:
    check_shape(report, REPORT)
    check_laws(report)
