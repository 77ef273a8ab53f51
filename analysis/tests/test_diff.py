# SPDX-License-Identifier: GPL-2.0
"""Comparisons: known truths, honest bounds, and what is refused."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import memtoll
from memtoll.comparison import Comparison, Side, _t95

import facts
from busy import busy_recording
from package import Cli

MADE: dict[tuple[int, float, int], bytes] = {}


def made(tmp_path: Path, name: str, seed: int, speed: float = 1.0, slices: int = 23) -> Path:
    """The same figures are the same file, and made once."""
    path = tmp_path / f"{name}.memtoll"
    if (seed, speed, slices) not in MADE:
        busy_recording(path, seed, slices, speed)
        MADE[seed, speed, slices] = path.read_bytes()
    path.write_bytes(MADE[seed, speed, slices])
    return path


@pytest.mark.slow
def test_rates_are_those_of_the_tolls(tmp_path: Path) -> None:
    before, after = made(tmp_path, "before", 1), made(tmp_path, "after", 2, 3.0)
    both = memtoll.diff(before, after)
    assert both.per == "second"
    for side, column in ((before, "before"), (after, "after")):
        with memtoll.open(side) as rec:
            captured = rec.toll[rec.toll["not_captured"].isna()]
            for toll in captured.index:
                expected = captured.loc[toll, "time_s"] / rec.duration_s
                assert both.toll.loc[toll, column] == pytest.approx(expected, rel=1e-6, abs=1e-9), toll
            count = both.table("toll", "count")
            assert count.loc["alloc", column] == pytest.approx(rec.toll.loc["alloc", "count"] / rec.duration_s)
            sites = rec.sites.groupby("toll", observed=True)["time_s"].sum() / rec.duration_s
            ours = both.sites.groupby("toll")[column].sum()
            for toll in sites.index:
                assert ours[toll] == pytest.approx(sites[toll], rel=1e-6, abs=1e-9), toll
            classes = rec.classes["time_s"] / rec.duration_s
            for name in classes.index:
                assert both.classes.xs(name, level="class")[column].iloc[0] == pytest.approx(classes[name], rel=1e-6)
            total = captured["time_s"].sum() / rec.duration_s
            assert both.total.loc["observed", column] == pytest.approx(total, rel=1e-6)
    assert (both.toll["difference"] == both.toll["after"] - both.toll["before"]).all()
    assert both.toll.loc["map", "ratio"] == both.toll.loc["map", "after"] / both.toll.loc["map", "before"]
    assert "lost" in repr(both.toll)


@pytest.mark.slow
def test_per_unit_of_work(tmp_path: Path) -> None:
    before, after = made(tmp_path, "before", 1), made(tmp_path, "after", 1, slices=46)
    per_work = memtoll.diff(before, after, work_before=1000, work_after=500)
    per_second = memtoll.diff(before, after)
    assert per_work.per == "unit of work"
    seconds = [side.duration_s for side in (per_work.before, per_work.after)]
    assert np.allclose(per_work.toll["before"], per_second.toll["before"] * seconds[0] / 1000)
    assert np.allclose(per_work.toll["after"], per_second.toll["after"] * seconds[1] / 500)


@pytest.mark.slow
def test_sees_a_change_and_none_where_there_is_none(tmp_path: Path) -> None:
    before, same, more = (made(tmp_path, n, s, f) for n, s, f in (("b", 1, 1.0), ("s", 2, 1.0), ("m", 3, 2.0)))
    alike = memtoll.diff(before, same).toll
    assert not alike["changed"].fillna(False).loc[["zero.kernel", "swap.in", "cow", "alloc"]].any()
    assert (alike["low"] <= 0).all()
    changed = memtoll.diff(before, more).toll.loc["zero.kernel"]
    assert changed["changed"]
    assert changed["low"] > 0
    assert 1.5 < changed["ratio"] < 2.7
    itself = memtoll.diff(before, before).toll.dropna(subset=["difference"])
    assert (itself["difference"] == 0).all()
    assert not itself["changed"].any()


def side(rng: np.random.Generator, mean: float, slices: int, classes: int) -> Side:
    """Counts of some classes, each so many a second, over blocks of different lengths."""
    seconds = rng.uniform(0.5, 1.5, slices)
    counts = rng.poisson(mean * seconds * rng.gamma(20, 1 / 20, (classes, slices)))
    number, block = (each.ravel() for each in np.indices(counts.shape))
    blocks = pd.DataFrame({"class": number, "toll": "alloc", "block": block + 1, "count": counts.ravel()})
    return Side("", "", float(seconds.sum()), 1.0, None, {}, True, seconds, {"class": blocks[blocks["count"] > 0]})


@pytest.mark.slow
@pytest.mark.parametrize("slices", [3, 12, 30])
@pytest.mark.parametrize("rate", [2.0, 400.0])
def test_bounds_hold_the_truth_19_times_in_20(slices: int, rate: float) -> None:
    rng = np.random.default_rng(slices)
    rounds, classes = 10, 10
    held = 0
    for _ in range(rounds):
        both = Comparison(side(rng, rate, slices, classes), side(rng, 1.5 * rate, slices, classes))
        table = both.table("class", "count")
        # What counted nothing on either side is known to be 0, which is not the truth.
        held += int(((table["low"] <= 0.5 * rate) & (0.5 * rate <= table["high"])).sum())
    # Binomial: 100 rounds of 0.95 give 88 to 100 in 99.7 %; ratios of few blocks come a little short.
    assert 86 <= held <= 99, held


def test_students_t() -> None:
    """Against the quantiles of numpy's own random numbers."""
    rng = np.random.default_rng(1)
    for df in (1, 3, 7, 11, 17, 25, 45, 100, 1000):
        drawn = np.abs(rng.standard_t(df, 1_000_000))
        assert float(_t95(float(df))) == pytest.approx(float(np.quantile(drawn, 0.95)), rel=0.012), df
    assert float(_t95(math.inf)) == pytest.approx(1.96, abs=1e-3)


@pytest.mark.slow
def test_one_slice_has_no_bounds(tmp_path: Path) -> None:
    paths = [tmp_path / "a.memtoll", tmp_path / "b.memtoll"]
    facts.heap_blocks(paths[0]).database.close()
    facts.mapped_blocks(paths[1]).database.close()
    both = memtoll.diff(*paths)
    assert both.toll["low"].isna().all()
    assert both.toll["changed"].isna().all()
    assert both.toll.loc["zero.libc", "ratio"] == 0
    gone = both.sites.xs("zero.libc", level="toll")
    assert gone["after"].iloc[0] == 0
    assert gone.reset_index()["allocated_at"].iloc[0] == "main;round_once;calloc"


@pytest.mark.slow
def test_sites_are_joined_by_functions(tmp_path: Path) -> None:
    """Ids of stacks differ between runs, chains of functions do not."""
    paths = [tmp_path / "a.memtoll", tmp_path / "b.memtoll"]
    for number, path in enumerate(paths):
        made = facts.Facts(":memory:")
        made.database.close()
        made = facts.heap_blocks(path)
        with made.database:
            for table, column in (
                ("stack", "stack_id"), ("stack_frame", "stack_id"), ("call", "stack_id"), ("block", "stack_id"),
                ("fault", "allocated_stack"), ("fault", "touched_stack"), ("map_call", "stack_id"),
                ("sample", "stack_id"),
            ):  # fmt: skip
                made.database.execute(f"UPDATE {table} SET {column} = {column} + {number * 17} WHERE {column} <> 0")
        made.database.close()
    with memtoll.open(paths[0]) as first, memtoll.open(paths[1]) as second:
        assert set(first.stacks.index).isdisjoint(second.stacks.index)
        both = memtoll.diff(first, second)
    assert len(both.sites) == 6
    assert (both.sites["difference"].abs() < 1e-12).all()


def change(path: Path, sql: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql)
        database.commit()
    return path


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("UPDATE meta SET value = '4096' WHERE key = 'min_size_bytes'", "--min-size (65536 and 4096)"),
        ("UPDATE meta SET value = 'faults' WHERE key = 'probes'", "different probes"),
        ("UPDATE meta SET value = 'there' WHERE key = 'host'", "different machines (here and there)"),
        ("UPDATE meta SET value = 'aarch64' WHERE key = 'machine'", "different architectures"),
        ("DELETE FROM meta WHERE key = 'complete'", "incomplete"),
        ("INSERT INTO not_captured VALUES ('zero.app', 'because')", "captured by one of them only: zero.app"),
    ],
)
@pytest.mark.slow
def test_refused(tmp_path: Path, sql: str, reason: str) -> None:
    before, after = made(tmp_path, "before", 1), change(made(tmp_path, "after", 1), sql)
    with pytest.raises(memtoll.NotComparable) as raised:
        memtoll.diff(before, after)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    both = memtoll.diff(before, after, force=True)
    assert [caveat for caveat in both.caveats if reason in caveat]
    assert reason in str(both)
    if "zero.app" in reason:
        assert math.isnan(both.toll.loc["zero.app", "difference"])
        assert both.toll["changed"].isna().loc["zero.app"]


def test_nothing_recorded(tmp_path: Path) -> None:
    empty = facts.Facts(tmp_path / "empty.memtoll")
    empty.meta(format="1", complete="1")
    empty.save()
    with pytest.raises(memtoll.NotComparable, match="no time"):
        memtoll.diff(made(tmp_path, "a", 1), tmp_path / "empty.memtoll", force=True)


@pytest.mark.parametrize("work", [(1, None), (None, 1), (0, 1), (1, -1), (math.nan, 1), (math.inf, 1)])
def test_work_must_make_sense(busy: Path, work: tuple[float | None, float | None]) -> None:
    with pytest.raises(ValueError, match="work"):
        memtoll.diff(busy, busy, work_before=work[0], work_after=work[1])


@pytest.mark.slow
def test_command_line(tmp_path: Path, cli: Cli) -> None:
    before, after = made(tmp_path, "before", 1), made(tmp_path, "after", 3, 2.0)
    text = cli("diff", before, after)
    assert text.returncode == 0
    assert text.stderr == ""
    assert "zero.kernel" in text.stdout
    assert cli("compare", before, after).stdout == text.stdout and memtoll.compare is memtoll.diff
    done = cli("diff", before, after, "--work", "10", "20", "--json", "--sites", "2")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    both = memtoll.diff(before, after, work_before=10, work_after=20)
    assert data["per"] == "unit of work"
    assert len(data["sites"]) == 2
    for row in data["toll"]:
        for name in ("before", "after", "difference", "low", "high", "ratio"):
            expected = both.toll.loc[row["toll"], name]
            assert row[name] == (None if pd.isna(expected) or math.isinf(expected) else expected)
    refused = cli("diff", before, change(after, "UPDATE meta SET value = 'x' WHERE key = 'host'"))
    assert (refused.returncode, refused.stdout, len(refused.stderr.splitlines())) == (1, "", 1)
    assert cli("diff", before, after, "--force").returncode == 0
    assert cli("diff", before, after, "--work", "0", "1").returncode == 2
