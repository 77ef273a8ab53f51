# SPDX-License-Identifier: GPL-2.0
"""memtoll compare: advice put to the test. Gains and losses have the right sign, no difference is none."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import MIB, PAGE, ROOT, Result, assert_refused, memtoll, record, workload

pytestmark = pytest.mark.root

PINNED = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072"
BLOCK = 10 * MIB
CALLS = 211


@dataclass
class Compared:
    """What --json printed, by name."""

    whole: dict[str, Any]
    result: Result

    @property
    def observed(self) -> str:
        return str(self.whole["conclusion"]["observed"])

    def toll(self, name: str) -> dict[str, Any]:
        (row,) = (row for row in self.whole["toll"] if row["toll"] == name)
        return dict(row)

    def plain(self, name: str) -> dict[str, Any]:
        return dict(self.whole["plain"][name])


def compare(
    *words: str | Path,
    command: list[str | Path],
    runs: int = 3,
    status: int = 0,
    env: Mapping[str, str] | None = None,
) -> Compared:
    options = ["--json", "--runs", str(runs), "--overhead-limit", "none"]
    result = memtoll("compare", *options, *words, "--", *command, seconds=150, env=env)
    assert result.status == status, result
    return Compared(json.loads(result.stdout), result)


def loop(calls: int = CALLS, *more: str) -> list[str | Path]:
    return [workload("calloc_loop"), str(BLOCK), str(calls), *more]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compared, Path]:
    """The trial that a report advises, word for word, with its recordings kept."""
    place = tmp_path_factory.mktemp("compare")
    recording = record(place / "before.memtoll", command=loop())
    (advice,) = (a for a in recording.report["verdict"]["advice"] if a["code"] == "calloc-reuse-memset")
    words = shlex.split(advice["try"])
    assert words[:2] == ["memtoll", "compare"]
    at = words.index("--")
    assert words[at + 1 :] == [str(word) for word in loop()]
    return compare(*words[2:at], "-o", place / "kept", command=list(words[at + 1 :])), place / "kept"


# Casebook 1: the same setting, a gain where nothing is used and a loss where all of it is.


def test_advice_is_proved_where_blocks_are_not_used(untouched: tuple[Compared, Path]) -> None:
    found, _ = untouched
    assert found.observed == "less", found.whole
    libc, kernel = found.toll("zero.libc"), found.toll("zero.kernel")
    assert (libc["count_before"], libc["count_after"]) == (CALLS - 1, 0)
    assert libc["bytes_before"] == pytest.approx((CALLS - 1) * BLOCK, rel=0.01)
    assert kernel["count_after"] < kernel["count_before"] / 2
    # Runs that are not traced, told by the kernel: the block is resident once, or never.
    assert found.plain("most resident")["difference"] == pytest.approx(-BLOCK, rel=0.1)
    assert found.plain("minor faults")["difference"] < -(BLOCK // PAGE) * 0.8
    assert found.plain("CPU time")["ratio"] < 0.5
    assert "saves" in found.whole["conclusion"]["sentence"]
    assert found.result.stderr == ""


def test_same_setting_is_a_loss_where_blocks_are_used() -> None:
    calls = 31
    found = compare("--set", PINNED, command=loop(calls, "--touch"))
    assert found.observed == "more", found.whole
    kernel = found.toll("zero.kernel")
    assert kernel["ratio"] > 2
    # Every page of every block but the first, which is fresh on both sides.
    more = (calls - 1) * BLOCK // PAGE
    assert kernel["count_after"] - kernel["count_before"] == pytest.approx(more, rel=0.1)
    assert found.plain("minor faults")["difference"] == pytest.approx(more, rel=0.1)
    assert "times as much" in found.whole["conclusion"]["sentence"]


def test_a_change_that_does_nothing_is_no_difference() -> None:
    found = compare("--set", "FOO=1", command=loop())
    assert found.observed == "none", found.whole
    assert found.whole["conclusion"]["sentence"].startswith("No difference")
    libc = found.toll("zero.libc")
    assert libc["count_before"] == libc["count_after"] == CALLS - 1
    assert abs(found.plain("minor faults")["difference"]) < 64


# Casebook 7.


@pytest.mark.parametrize(
    ("shape", "count", "size", "tunables", "verdict"),
    [
        ("blocks", 64, 100_000, "trim_threshold=67108864", "less"),
        ("blocks", 1, 33 * MIB, "mmap_threshold=35651584", "none"),
        ("blocks", 1, 33 * MIB, "mmap_threshold=35651584:glibc.malloc.trim_threshold=71303168", "less"),
        ("calloc", 64, 120_000, "trim_threshold=67108864", "less"),
    ],
    ids=["trim ping-pong", "33 MiB, one setting", "33 MiB, both", "calloc after a trim"],
)
def test_remedies_of_churn(shape: str, count: int, size: int, tunables: str, verdict: str) -> None:
    rounds = 17 if count == 1 else 41
    found = compare(
        "--set",
        f"GLIBC_TUNABLES=glibc.malloc.{tunables}",
        command=[workload("storms"), shape, str(rounds), str(count), str(size)],
        # One run of three that the machine held up would leave nothing proved.
        runs=1 if verdict == "none" else 5,
    )
    faults = found.plain("minor faults")
    pages = rounds * count * size // PAGE
    kernel = found.toll("zero.kernel")
    if verdict == "none":
        # Alone it changes nothing: the heap is trimmed at each free.
        assert faults["before"] == pytest.approx(pages, rel=0.1)
        assert faults["after"] == pytest.approx(pages, rel=0.1)
        assert kernel["count_after"] == pytest.approx(kernel["count_before"], rel=0.1)
        return
    assert found.observed == verdict, found.whole
    # After a trim the first blocks of a calloc round still lie in what was kept.
    assert faults["before"] > pages * (0.4 if shape == "calloc" else 0.8) and faults["after"] < 0.1 * faults["before"]
    assert kernel["count_after"] < 0.1 * kernel["count_before"]
    assert kernel["ratio"] < 0.5
    # The kernel's count of runs without a tracer is memtoll's of those with one.
    assert kernel["count_before"] == pytest.approx(faults["before"], rel=0.1)


def test_remedy_of_purging() -> None:
    """jemalloc told to give memory back at once: each round gets its 4 MiB from the kernel anew."""
    rounds, size = 41, 4 * MIB
    found = compare(
        "--set",
        "MALLOC_CONF=dirty_decay_ms:10000",
        command=["env", "LD_PRELOAD=libjemalloc.so.2", workload("storms"), "blocks", str(rounds), "1", str(size)],
        env={"MALLOC_CONF": "dirty_decay_ms:0"},
    )
    faults, kernel = found.plain("minor faults"), found.toll("zero.kernel")
    assert found.observed == "less", found.whole
    assert faults["before"] > 0.9 * rounds * size // PAGE and faults["after"] < 0.15 * faults["before"]
    assert kernel["count_before"] == pytest.approx(faults["before"], rel=0.15)
    assert kernel["count_after"] < 0.1 * kernel["count_before"]


# The same figures as the Python package has of the same recordings.


def of_package(before: Path, after: Path) -> Any:
    sys.path.insert(0, str(ROOT / "analysis"))
    try:
        import memtoll as package
    finally:
        sys.path.remove(str(ROOT / "analysis"))
    return package.compare(before, after, work_before=1, work_after=1)


def same(ours: float | None, theirs: float) -> bool:
    return math.isnan(theirs) if ours is None else ours == pytest.approx(theirs, rel=1e-6, abs=1e-12)


def test_one_pair_agrees_with_the_package(tmp_path: Path) -> None:
    found = compare("--set", PINNED, "-o", tmp_path / "one", command=loop(), runs=1)
    theirs = of_package(tmp_path / "one-without-1.memtoll", tmp_path / "one-with-1.memtoll")
    rows = {str(name): row for name, row in theirs.toll.iterrows()}
    captured = {row["toll"]: row for row in found.whole["toll"]}
    assert captured.keys() == {name for name, row in rows.items() if not math.isnan(row["before"])}
    for name, ours in captured.items():
        for key in ("before", "after", "difference", "low", "high"):
            assert same(ours[key], rows[name][key]), (name, key, ours, dict(rows[name]))
    (total,) = (row for _, row in theirs.total.iterrows())
    for key in ("before", "after", "difference", "low", "high"):
        assert same(found.whole["total"][key], total[key]), (key, found.whole["total"], dict(total))


def test_several_pairs_are_the_package_s_on_average(untouched: tuple[Compared, Path]) -> None:
    found, prefix = untouched
    pairs = [of_package(Path(f"{prefix}-without-{n}.memtoll"), Path(f"{prefix}-with-{n}.memtoll")) for n in (1, 2, 3)]
    for ours in found.whole["toll"]:
        for key in ("before", "after", "difference"):
            mean = sum(float(pair.toll.loc[ours["toll"], key]) for pair in pairs) / len(pairs)
            assert same(ours[key], mean), (ours, key, mean)
    assert found.whole["total"]["before"] == pytest.approx(
        sum(float(pair.total["before"].iloc[0]) for pair in pairs) / len(pairs), rel=1e-6
    )


# Text, time limits, preloading and failures.


def test_text_and_preload(tmp_path: Path) -> None:
    library = workload("libnaivecalloc.so")
    result = memtoll(
        "compare", "--runs", "1", "-o", tmp_path / "p", "--preload", library, "--",
        workload("calloc_loop"), str(100 * MIB), "7", seconds=60,
    )  # fmt: skip
    assert result.status == 0, result
    for word in ("CONCLUSION", f"LD_PRELOAD={library}", "TOLL a run", "zero.kernel", "NOT TRACED", "most resident"):
        assert word in " ".join(result.stdout.split()).replace("LD_PRELOAD= ", "LD_PRELOAD="), result.stdout
    for line in result.stdout.splitlines():
        assert len(line) <= 80 or " " not in line.strip(), line
    with_it = memtoll("report", tmp_path / "p-with-1.memtoll", "--json")
    assert json.loads(with_it.stdout)["zeroing"]["bytes_twice"] == pytest.approx(7 * 100 * MIB, rel=0.01)


def test_a_time_ends_each_run() -> None:
    found = compare("--set", PINNED, "-d", "300ms", command=loop(10**9), runs=1)
    assert found.whole["per"] == "second"
    assert found.plain("wall time")["before"] == pytest.approx(0.3, abs=0.25)
    libc = found.toll("zero.libc")
    assert libc["after"] == 0 and libc["before"] > 0.1  # seconds of clearing in a second


def test_failures_are_named(tmp_path: Path) -> None:
    words = ("--set", "FAIL=3", "--runs", "1", "-o", tmp_path / "f", "--")
    assert_refused(memtoll("compare", *words, "sh", "-c", "exit 7"), 1, "'sh' failed without the change", "status 7")
    assert_refused(
        memtoll("compare", *words, "sh", "-c", "exit ${FAIL:-0}"), 1, "'sh' failed with the change", "status 3"
    )
    assert_refused(memtoll("compare", *words, "sh", "-c", "kill -9 $$"), 1, "ended by signal 9 without")
    assert_refused(memtoll("compare", *words, tmp_path / "none"), 1, "cannot run", tmp_path / "none")
    assert not list(tmp_path.iterdir()), "recordings of a comparison that was none"


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    result = memtoll(
        "compare", "--set", "FOO=1", "--runs", "1", "--", "true", env={"TMPDIR": str(tmp_path)}, seconds=60
    )
    assert result.status == 0, result
    assert not list(tmp_path.iterdir())


def test_unknown_tunable_is_told() -> None:
    result = memtoll("compare", "--set", "GLIBC_TUNABLES=glibc.malloc.mmap_treshold=1", "--runs", "1", "--", "true")
    assert result.status == 0
    assert "glibc.malloc.mmap_treshold" in result.stderr and "ignored" in result.stderr
