# SPDX-License-Identifier: GPL-2.0
"""memtoll compare: advice put to the test. Gains and losses have the right sign, no difference is none."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from harness import (
    MIB,
    PAGE,
    ROOT,
    Result,
    assert_refused,
    integrity,
    load,
    memtoll,
    memtoll_before_terminal,
    workload,
)

pytestmark = pytest.mark.root

PINNED = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072"
BLOCK = 10 * MIB
CALLS = 101
QUICKLY = "--probes=mappings"  # where what is counted does not matter
USED_CALLS = 31
# For counts, which need fewer.
FEW_CALLS = 61
FEW_USED_CALLS = 11


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
    runs: int = 2,
    status: int = 0,
    env: Mapping[str, str] | None = None,
) -> Compared:
    options = ["--json", "--runs", str(runs), "--overhead-limit", "none"]
    result = memtoll("compare", *options, *words, "--", *command, env=env)
    assert result.status == status, result
    return Compared(json.loads(result.stdout), result)


def loop(calls: int = CALLS, *more: str) -> list[str | Path]:
    return [workload("calloc_loop"), str(BLOCK), str(calls), *more]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compared, Path]:
    """The trial that the report of a run without the change advises, word for word, with its recordings kept."""
    prefix = tmp_path_factory.mktemp("compare") / "kept"
    found = compare("--set", PINNED, "-o", prefix, command=loop(FEW_CALLS))
    recording = load(Path(f"{prefix}-without-1.memtoll"), found.result)
    assert recording.complete and integrity(recording.path) == "ok"
    (advice,) = (a for a in recording.report["verdict"]["advice"] if a["code"] == "calloc-reuse-memset")
    assert shlex.split(advice["try"]) == ["memtoll", "compare", "--set", PINNED, "--", *map(str, loop(FEW_CALLS))]
    return found, prefix


# Casebook 1: the same setting, a gain where nothing is used and a loss where all of it is.


def test_advice_is_proved_where_blocks_are_not_used(untouched: tuple[Compared, Path]) -> None:
    found, _ = untouched
    # Clearing 60 blocks of 10 MiB is many times what else the run does: whether that is proved is the machine's
    # affair, the sign is not.
    assert found.whole["total"]["difference"] < 0, found.whole
    assert found.observed in ("less", "none"), found.whole
    libc, kernel = found.toll("zero.libc"), found.toll("zero.kernel")
    assert (libc["count_before"], libc["count_after"]) == (FEW_CALLS - 1, 0)
    assert libc["bytes_before"] == pytest.approx((FEW_CALLS - 2) * BLOCK, rel=0.01)
    assert kernel["count_after"] < kernel["count_before"] / 2
    # Runs that are not traced, by the kernel's counts: the block is resident once, or never. The kernel counts in what
    # a process had before exec, some 2 MiB of a copy of memtoll, which is more than the program has without the block.
    assert -BLOCK - MIB // 4 <= found.plain("most resident")["difference"] <= -BLOCK + 5 * MIB // 2
    assert found.plain("minor faults")["difference"] < -(BLOCK // PAGE) * 0.8
    words = {"less": "saves", "none": "No difference"}[found.observed]
    assert words in found.whole["conclusion"]["sentence"]
    assert found.result.stderr == ""


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compared, Path]:
    """The same setting where every page of every block is used; one pair, its recordings kept."""
    place = tmp_path_factory.mktemp("compare") / "loss"
    return compare("--set", PINNED, "-o", place, command=loop(FEW_USED_CALLS, "--touch"), runs=1), place


def test_same_setting_is_a_loss_where_blocks_are_used(loss: tuple[Compared, Path]) -> None:
    found, _ = loss
    kernel = found.toll("zero.kernel")
    # Every page of every block but the first two, which are fresh on both sides: a mapping, and the heap that grows.
    more = (FEW_USED_CALLS - 2) * BLOCK // PAGE
    assert kernel["count_after"] - kernel["count_before"] == pytest.approx(more, rel=0.1)
    assert found.plain("minor faults")["difference"] == pytest.approx(more, rel=0.1)


def test_a_change_that_does_nothing_changes_no_count(tmp_path: Path) -> None:
    """And no file stays where its recordings were kept meanwhile. A terminal is told which run goes on."""
    words = ("-j", "--runs", "1", "--overhead-limit", "none", "--set", "FOO=1", "--", *loop(FEW_CALLS))
    said, printed = memtoll_before_terminal("compare", *words, env={"TMPDIR": str(tmp_path)})
    found = Compared(json.loads(printed), Result(0, printed, ""))
    lines = said.split("\r\x1b[K")
    assert lines[:2] == ["", "memtoll: compare: run 1 of 6"] and lines[-1] == "", said
    assert [re.sub(r"\d+ s", "N s", line) for line in lines[2:-1]] == [
        f"memtoll: compare: run {number} of 6, N s left" for number in range(2, 7)
    ]
    libc = found.toll("zero.libc")
    assert libc["count_before"] == libc["count_after"] == FEW_CALLS - 1
    assert abs(found.plain("minor faults")["difference"]) < 64
    assert not list(tmp_path.iterdir())


# Casebook 7. What a remedy does to the time is for test_measure_verdicts.py; here it is what it does to the faults.


@dataclass(frozen=True)
class Remedy:
    shape: str
    rounds: int
    count: int
    size: int
    tunables: str
    helps: bool

    def try_it(self, runs: int, *more: str) -> Compared:
        command: list[str | Path] = [workload("storms"), self.shape, *map(str, (self.rounds, self.count, self.size))]
        return compare("--set", f"GLIBC_TUNABLES=glibc.malloc.{self.tunables}", *more, command=command, runs=runs)


REMEDIES = {
    "trim ping-pong": Remedy("blocks", 41, 64, 100_000, "trim_threshold=67108864", True),
    "33 MiB, one setting": Remedy("blocks", 7, 1, 33 * MIB, "mmap_threshold=35651584", False),
    "33 MiB, both": Remedy(
        "blocks", 17, 1, 33 * MIB, "mmap_threshold=35651584:glibc.malloc.trim_threshold=71303168", True
    ),
    "calloc after a trim": Remedy("calloc", 41, 64, 120_000, "trim_threshold=67108864", True),
}


# That the others help, and so does the one for jemalloc, test_e2e_storms.py shows by the same counts.
def test_half_a_remedy_changes_nothing() -> None:
    """Alone it does not help: the heap is trimmed at each free."""
    remedy = replace(REMEDIES["33 MiB, one setting"], rounds=5)
    found = remedy.try_it(1, "--probes=faults,mappings")
    faults, kernel = found.plain("minor faults"), found.toll("zero.kernel")
    pages = remedy.rounds * remedy.count * remedy.size // PAGE
    assert faults["before"] == pytest.approx(pages, rel=0.1)
    assert faults["after"] == pytest.approx(pages, rel=0.1)
    assert kernel["count_after"] == pytest.approx(kernel["count_before"], rel=0.1)


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


def test_one_pair_agrees_with_the_package(loss: tuple[Compared, Path]) -> None:
    found, prefix = loss
    theirs = of_package(Path(f"{prefix}-without-1.memtoll"), Path(f"{prefix}-with-1.memtoll"))
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
    pairs = [of_package(Path(f"{prefix}-without-{n}.memtoll"), Path(f"{prefix}-with-{n}.memtoll")) for n in (1, 2)]
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
        workload("calloc_loop"), str(40 * MIB), "3",
    )  # fmt: skip
    assert result.status == 0, result
    for word in ("CONCLUSION", f"LD_PRELOAD={library}", "TOLL a run", "zero.kernel", "NOT TRACED", "most resident"):
        assert word in " ".join(result.stdout.split()).replace("LD_PRELOAD= ", "LD_PRELOAD="), result.stdout
    for line in result.stdout.splitlines():
        # A path is not cut, wherever the tree lies: it stands alone, or behind its label.
        assert len(line) <= 80 or " " not in line.strip().removeprefix("change: "), line
    with_it = memtoll("report", tmp_path / "p-with-1.memtoll", "--json")
    assert json.loads(with_it.stdout)["zeroing"]["bytes_twice"] == pytest.approx(3 * 40 * MIB, rel=0.01)


def test_a_time_ends_each_run() -> None:
    found = compare("--set", PINNED, "-d", "200ms", command=loop(10**9), runs=1)
    assert found.whole["per"] == "second"
    # It may come late, not early; without it the command would go on for as long as a workload lives.
    assert 0.2 <= found.plain("wall time")["before"] < 60
    libc = found.toll("zero.libc")
    assert libc["count_after"] == 0 < libc["count_before"]


def test_failures_are_named(tmp_path: Path) -> None:
    words = ("--set", "FAIL=3", "--runs", "1", "-o", tmp_path / "f", "--")
    assert_refused(memtoll("compare", *words, "sh", "-c", "exit 7"), 1, "'sh' failed without the change", "status 7")
    assert_refused(
        memtoll("compare", *words, "sh", "-c", "exit ${FAIL:-0}"), 1, "'sh' failed with the change", "status 3"
    )
    assert_refused(memtoll("compare", *words, "sh", "-c", "kill -9 $$"), 1, "ended by signal 9 without")
    assert_refused(memtoll("compare", *words, tmp_path / "none"), 1, "cannot run", tmp_path / "none")
    assert not list(tmp_path.iterdir()), "recordings of a comparison that was none"


def test_settings_that_are_there_stay_and_env_takes_none_back(tmp_path: Path) -> None:
    """From the caller's environment, and from `env` in the command; both sides say what reached the program."""
    seen = tmp_path / "seen"
    script = f'echo "$GLIBC_TUNABLES $MALLOC_CONF" >> {shlex.quote(str(seen))}'
    env = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=3", "MALLOC_CONF": "narenas:1,dirty_decay_ms:0"}
    result = memtoll(
        "compare", "--runs", "1", QUICKLY, "--set", "GLIBC_TUNABLES=glibc.malloc.mxfast=0", "--set",
        "MALLOC_CONF=dirty_decay_ms:-1", "--",
        "env", "GLIBC_TUNABLES=glibc.malloc.mxfast=64:glibc.malloc.tcache_count=5", "sh", "-c", script,
        env=env,
    )  # fmt: skip
    assert (result.status, result.stderr) == (0, "")
    as_it_was = "glibc.malloc.mxfast=64:glibc.malloc.tcache_count=5 narenas:1,dirty_decay_ms:0"
    changed = "glibc.malloc.tcache_count=5:glibc.malloc.mxfast=0 narenas:1,dirty_decay_ms:-1"
    # One run to warm up, one plain and one traced, of each side.
    assert sorted(seen.read_text().splitlines()) == sorted(3 * [as_it_was] + 3 * [changed])
    seen.unlink()
    result = memtoll(
        "compare", "--runs", "1", QUICKLY, "--set", "GLIBC_TUNABLES=glibc.malloc.mxfast=0", "--",
        "sh", "-c", script,
        env=env,
    )  # fmt: skip
    assert result.status == 0
    assert seen.read_text().count("glibc.malloc.arena_max=3:glibc.malloc.mxfast=0 narenas") == 3


def test_settings_without_effect_are_reported() -> None:
    """A tunable that no glibc knows, and a variable that the command sets itself."""
    words = ("--set", "GLIBC_TUNABLES=glibc.malloc.mmap_treshold=1", "--set", "FOO=1")
    result = memtoll("compare", *words, "--runs", "1", QUICKLY, "--", "sh", "-c", "FOO=2 true")
    assert result.status == 0
    assert "glibc.malloc.mmap_treshold" in result.stderr and "ignored" in result.stderr
    assert "sets the variable itself" in result.stderr and "FOO=2 true" in result.stderr
