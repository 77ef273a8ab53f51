# SPDX-License-Identifier: GPL-2.0
"""Datasets: what gets in, once and whole, and what comes out."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.dataset
import pyarrow.parquet as parquet
import pytest
from fleet_maker import adds, dies, read_once, recording, summaries, varied

import memtoll
from memtoll.fleet import BadQuestion, Dataset, NoOrigin, NotADataset, add, dataset, schema, store, summary
from memtoll.fleet.store import Store
from memtoll.frames import TOLLS

from package import Cli

BUILDS = ("4f1e09aa", "a72c55bb")
PATIENCE = 240
"""Seconds: on a machine that others use, too, a process of its own may take long to start."""

# What writers of their own import is imported once, before they are forked off: all that takes three seconds each
# time. Arrow (pandas imports it where it is there) has not worked in that process. No test here reads in processes that
# the package itself starts, which would be forked from the same one.
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["fleet_maker"])


@pytest.fixture(autouse=True)
def _read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests add the same few recordings; what they come to depends on their bytes alone."""
    monkeypatch.setattr(memtoll.fleet, "_summary", read_once)


def some(directory: Path, count: int = 5) -> list[Path]:
    """Recordings of several hosts, days and builds."""
    directory.mkdir(exist_ok=True)
    return [
        recording(
            directory / f"{number}.memtoll",
            host=f"web{number % 3}",
            day=number % 2,
            number=number,
            build=BUILDS[number % 2],
        )
        for number in range(count)
    ]


def files_in(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


# ---- what gets in


def test_figures_are_the_recordings(tmp_path: Path) -> None:
    paths = some(tmp_path / "in", 3)
    with dataset(tmp_path / "ds", add=paths) as ds:
        toll, sites, meta = ds.frame("toll"), ds.frame("sites"), ds.frame("meta")
        losses, checks = ds.frame("losses"), ds.frame("checks")
    assert len(meta) == len(paths) and len(losses) == 0
    for path in paths:
        with memtoll.open(path) as rec:
            made = summary.summarize(rec)
            own = toll[toll["recording"] == made.recording].set_index("toll")
            for name in ("time_s", "share", "count", "bytes", "pages", "clear_s"):
                for each in rec.toll.index:
                    got, meant = own.loc[each, name], rec.toll.loc[each, name]
                    assert pd.isna(got) if pd.isna(meant) else got == meant, (each, name)
            mine = sites[sites["recording"] == made.recording]
            assert mine["time_s"].tolist() == rec.sites["time_s"].tolist()
            assert mine["allocated_place"].tolist() == rec.sites["allocated_place"].fillna("").tolist()
            row = meta[meta["recording"] == made.recording].iloc[0]
            assert (row["host"], row["build"], row["service"]) == (
                rec.meta["host"],
                made.tables["meta"]["build"][0],
                "calloc_loop",
            )
            assert row["sentence"] == rec.verdict.sentence
            assert row["observed_s"] == rec.observed_s
            assert (checks["recording"] == made.recording).sum() == len(rec.checks)


def test_adding_twice(tmp_path: Path) -> None:
    paths = some(tmp_path / "in")
    first = add(tmp_path / "ds", paths)
    assert [(each.new, each.failed) for each in first] == [(True, None)] * len(paths)
    before = files_in(tmp_path / "ds")
    # The same, a copy, a file that was rewritten, and all that in one go with itself.
    copy = tmp_path / "copy.memtoll"
    copy.write_bytes(paths[0].read_bytes())
    subprocess.run(["sqlite3", str(copy), "VACUUM"], check=True)
    again = add(tmp_path / "ds", [*paths, copy, *paths])
    assert not any(each.new or each.failed for each in again)
    assert files_in(tmp_path / "ds") == before
    assert Dataset(tmp_path / "ds").info()["recordings"] == len(paths)
    both = add(tmp_path / "other", [paths[0], copy])
    assert [each.new for each in both] == [True, False]


def test_one_addition_makes_one_file_of_a_host_and_day(tmp_path: Path) -> None:
    add(tmp_path / "ds", some(tmp_path / "in", 7))
    places = [file for file in files_in(tmp_path / "ds") if file.startswith("toll/")]
    assert len(places) == 6
    assert {re.sub(r"/[0-9a-f]{32}\.parquet$", "", place) for place in places} == {
        f"toll/host=web{host}/day=2026-11-{18 + day}" for host in range(3) for day in range(2)
    }


def test_other_programs_read_the_directories(tmp_path: Path) -> None:
    add(tmp_path / "ds", some(tmp_path / "in"))
    table = pyarrow.dataset.dataset(tmp_path / "ds" / "toll", partitioning="hive").to_table()
    assert table.num_rows == 5 * len(TOLLS)
    assert set(table.column("host").to_pylist()) == {"web0", "web1", "web2"}


def test_names_of_hosts_are_no_paths(tmp_path: Path) -> None:
    host = "../../a b=c/%2e.ö"
    path = recording(tmp_path / "x.memtoll", host=host)
    ds = dataset(tmp_path / "ds", add=path)
    assert ds.top("zeroing", "host")["host"].tolist() == [host]
    assert not (tmp_path / "a b=c").exists()
    hive = pyarrow.dataset.dataset(tmp_path / "ds" / "toll", partitioning="hive").to_table()
    assert set(hive.column("host").to_pylist()) == {host}
    endless = recording(tmp_path / "y.memtoll", host="x" * 300)
    assert "--host" in str(add(tmp_path / "ds", endless)[0].failed)


def test_bad_files_keep_no_others_out(tmp_path: Path) -> None:
    (good,) = some(tmp_path / "in", 1)
    text = tmp_path / "text.memtoll"
    text.write_text("no recording")
    result = add(tmp_path / "ds", [text, good, tmp_path / "gone.memtoll"])
    assert [each.path for each in result if each.new] == [good]
    assert {each.path for each in result if each.failed} == {text, tmp_path / "gone.memtoll"}
    assert Dataset(tmp_path / "ds").info()["recordings"] == 1
    with pytest.raises(memtoll.Error, match=re.escape("text.memtoll")):
        dataset([good, text])


def test_origin_is_needed(tmp_path: Path, heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        with pytest.raises(NoOrigin, match="--host"):
            summary.summarize(rec)
        with pytest.raises(NoOrigin, match="when"):
            summary.summarize(rec, host="web1")
    assert add(tmp_path / "ds", recording(tmp_path / "x.memtoll"), host="db7", service="mine")[0].new
    assert Dataset(tmp_path / "ds").top("zeroing", ["host", "service"])[["host", "service"]].values.tolist() == [
        ["db7", "mine"]
    ]


@pytest.mark.parametrize(
    ("cgroup", "service"),
    [
        ("", "calloc_loop"),
        ("/", "calloc_loop"),
        ("/system.slice/api.service", "api.service"),
        ("/system.slice/api.service/worker", "api.service"),
        ("/user.slice/user-1000.slice/session-3.scope", "calloc_loop"),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/tool.service", "tool.service"),
        ("/docker/" + "0123456789ab" + "c" * 52, "0123456789ab"),
        ("/system.slice/docker-" + "0123456789ab" + "c" * 52 + ".scope", "0123456789ab"),
    ],
)
def test_service(tmp_path: Path, cgroup: str, service: str) -> None:
    assert summary.service_of(cgroup, "/srv/calloc_loop") == service
    with memtoll.open(recording(tmp_path / "x.memtoll", cgroup=cgroup)) as rec:
        assert summary.summarize(rec).tables["meta"]["service"] == [service]


def test_losses_are_exported(tmp_path: Path) -> None:
    paths = [
        recording(tmp_path / "lossy.memtoll", number=1, losses=1_000_003),
        recording(tmp_path / "little.memtoll", number=2, losses=1),
        recording(tmp_path / "whole.memtoll", number=3),
    ]
    ds = dataset(paths)
    top = ds.top("zeroing")
    assert (top["recordings"].tolist(), top["lossy"].tolist()) == ([3], [1])
    losses = ds.frame("losses").sort_values("count")
    assert losses["name"].tolist() == ["ring_faults"] * 2
    assert losses["count"].tolist() == [1, 1_000_003]
    assert losses["exceeds"].tolist() == [0, 1]


def test_a_list_makes_a_dataset_for_the_time_being(tmp_path: Path) -> None:
    paths = some(tmp_path / "in")
    with dataset(tmp_path / "in") as ds:
        directory = ds.path
        assert ds.info()["recordings"] == len(paths)
        assert directory.exists()
        assert "5 recordings of 3 hosts" in repr(ds)
    assert not directory.exists()
    kept = dataset(paths, into=tmp_path / "kept")
    kept.close()
    assert Dataset(tmp_path / "kept").info()["recordings"] == len(paths)


def test_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "letter").write_text("dear")
    for wrong in (tmp_path / "letters", tmp_path / "nowhere"):
        with pytest.raises((NotADataset, memtoll.Error)):
            dataset(wrong)
    with pytest.raises(NotADataset):
        add(tmp_path / "letters", some(tmp_path / "in", 1))
    assert files_in(tmp_path / "letters") == {"letter"}


# ---- several writers, and dead ones


def test_writers_at_once(tmp_path: Path) -> None:
    """Three bring the same recordings in different orders: each of them gets in once."""
    paths = [str(path) for path in some(tmp_path / "in", 4)]
    ready, results = FORKED.Barrier(3), FORKED.Queue()
    orders = [paths, paths[::-1], paths[::2] + paths[1::2]]
    writers = [FORKED.Process(target=adds, args=(str(tmp_path / "ds"), order, ready, results)) for order in orders]
    for writer in writers:
        writer.start()
    answers = [results.get(timeout=PATIENCE) for _ in writers]
    for writer in writers:
        writer.join(PATIENCE)
        assert writer.exitcode == 0
    assert sum(sum(answer) for answer in answers) == len(paths)
    ds = Dataset(tmp_path / "ds")
    assert ds.info()["recordings"] == len(paths)
    assert ds.frame("meta")["recording"].is_unique
    assert len(ds.frame("toll")) == len(TOLLS) * len(paths)
    assert not list((tmp_path / "ds" / "_memtoll" / "pending").iterdir())
    assert not list((tmp_path / "ds").rglob("*.part"))


def test_writer_that_waited_adds_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a writer's look and its lock another one adds a part of the same."""
    (base, *_) = summaries()
    made = [varied(base, host=f"h{n}", day=0, number=n, build="b", factor=1) for n in range(4)]
    slow, quick = Store(tmp_path / "ds", create=True), Store(tmp_path / "ds")
    write = Store._write_files
    raced: list[bool] = []

    def write_files(self: Store, *arguments: Any) -> Any:
        if self is slow and not raced:
            raced.extend(quick.add(made[1:3]))
        return write(self, *arguments)

    monkeypatch.setattr(Store, "_write_files", write_files)
    assert slow.add(made) == [True, False, False, True]
    assert raced == [True, True]
    ds = Dataset(tmp_path / "ds")
    assert sorted(ds.frame("meta")["recording"]) == sorted(each.recording for each in made)
    assert not list((tmp_path / "ds").rglob("*.part"))


@pytest.mark.parametrize("stage", ["written", "renamed", "committed"])
def test_a_killed_writer_does_no_harm(tmp_path: Path, stage: str) -> None:
    first, second, third = some(tmp_path / "in", 3)
    directory = tmp_path / "ds"
    add(directory, first)
    whole = files_in(directory)
    writer = FORKED.Process(target=dies, args=(stage, directory, second))
    writer.start()
    writer.join(PATIENCE)
    assert writer.exitcode == -signal.SIGKILL
    assert files_in(directory) != whole, "it had not begun"
    there = stage == "committed"
    assert Dataset(directory).info()["recordings"] == 1 + there
    assert len(Dataset(directory).frame("toll")) == len(TOLLS) * (1 + there)
    assert add(directory, third)[0].new
    assert not list(directory.rglob("*.part"))
    assert not list((directory / "_memtoll" / "pending").iterdir())
    left = {file for file in files_in(directory) if file.endswith(".parquet")}
    known = {file.path for file in Store(directory).refresh().files}
    assert left == known
    assert add(directory, second)[0].new is not there
    assert Dataset(directory).info()["recordings"] == 3


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = some(tmp_path / "in", 2)
    add(tmp_path / "ds", first)
    before = files_in(tmp_path / "ds")

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            add(tmp_path / "ds", second)
    assert files_in(tmp_path / "ds") == before
    assert add(tmp_path / "ds", second)[0].new


def test_a_journal_deletes_nothing_else(tmp_path: Path) -> None:
    (first,) = some(tmp_path / "in", 1)
    Store(tmp_path / "ds", create=True)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    pending = tmp_path / "ds" / "_memtoll" / "pending" / f"{'0' * 32}.json"
    pending.write_text(f"{victim}\n../victim\n_memtoll/dataset.json\n")
    add(tmp_path / "ds", first)
    assert victim.read_text() == "mine"
    assert not pending.exists()
    assert Dataset(tmp_path / "ds").info()["recordings"] == 1


# ---- versions


def test_version_is_in_every_file(tmp_path: Path) -> None:
    add(tmp_path / "ds", some(tmp_path / "in", 2))
    files = list((tmp_path / "ds").rglob("*.parquet"))
    assert len(files) >= 5
    for file in files:
        made = parquet.read_schema(file)
        assert made.metadata[b"memtoll.dataset_version"] == b"1"
        table = file.relative_to(tmp_path / "ds").parts[0]
        assert made.metadata[b"memtoll.table"].decode() == table
        for column in schema.TABLES[table]:
            assert made.field(column.name).metadata[b"unit"].decode() == column.unit


def test_newer_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = some(tmp_path / "in", 2)
    add(tmp_path / "old", first)
    with monkeypatch.context() as newer:
        for module in (schema, store):
            newer.setattr(module, "VERSION", 2)
        add(tmp_path / "new", first)
        add(tmp_path / "old", second)
    with pytest.raises(memtoll.NewerFormat, match="upgrade"):
        Dataset(tmp_path / "new")
    with pytest.raises(memtoll.NewerFormat, match="upgrade"):
        Dataset(tmp_path / "old").info()
    with pytest.raises(memtoll.NewerFormat):
        add(tmp_path / "new", second)


def test_older_ones_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of version 2 is null where a file is of version 1, with either engine."""
    first, second = some(tmp_path / "in", 2)
    add(tmp_path / "ds", first)
    with monkeypatch.context() as newer:
        for module in (schema, store):
            newer.setattr(module, "VERSION", 2)
        more = schema.Column("sleep_s", "float64", "s", "asleep", since=2)
        newer.setitem(schema.TABLES, "toll", (*schema.TABLES["toll"], more))
        with memtoll.open(second) as rec:
            newer.setattr(
                summary, "TABLES", {**schema.TABLES, "toll": tuple(c for c in schema.TABLES["toll"] if c.since == 1)}
            )
            made = summary.summarize(rec)
        tolls = len(made.tables["toll"]["toll"])
        made.tables["toll"]["sleep_s"] = [0.5] * tolls
        assert Store(tmp_path / "ds").add([made]) == [True]
        for engine in ("pandas", "dask"):
            frame = Dataset(tmp_path / "ds").frame("toll", ["recording", "sleep_s"], engine=engine)
            frame = frame.compute() if hasattr(frame, "compute") else frame
            assert frame["sleep_s"].isna().sum() == tolls
            assert frame["sleep_s"].sum() == 0.5 * tolls
            assert set(frame[frame["sleep_s"].notna()]["recording"]) == {made.recording}
        assert Dataset(tmp_path / "ds").top("zeroing", "host")["recordings"].sum() == 2


def test_damage_is_said(tmp_path: Path) -> None:
    add(tmp_path / "ds", some(tmp_path / "in", 2))
    file, other, *_ = sorted((tmp_path / "ds" / "toll").rglob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(memtoll.DamagedRecording, match=file.name):
        Dataset(tmp_path / "ds").top("zeroing")
    file.unlink()
    with pytest.raises(memtoll.DamagedRecording, match="gone"):
        Dataset(tmp_path / "ds").top("zeroing")
    parquet.write_table(pyarrow.table({"time_s": [1.0]}), file)
    with pytest.raises(memtoll.DamagedRecording, match="schema version"):
        Dataset(tmp_path / "ds").top("zeroing")
    (commit,) = (tmp_path / "ds" / "_memtoll" / "commits").iterdir()
    text = commit.read_text()
    for wrong in (text[:-9], text.replace(str(other.relative_to(tmp_path / "ds")), "../../etc/passwd"), "[]"):
        commit.write_text(wrong)
        with pytest.raises(memtoll.DamagedRecording):
            Dataset(tmp_path / "ds").info()


# ---- what comes out


def test_compare(tmp_path: Path) -> None:
    """The new build zeroes three times as long on each of 11 hosts; everything else is as it was."""
    base = next(each for each in summaries() if each.tables["meta"]["service"] == ["calloc_loop"])
    made = []
    for host in range(11):
        for day, build in enumerate(("aaaa11", "aaaa22")):
            one = varied(base, host=f"h{host}", day=day, number=host, build=build, factor=1 + host % 3)
            toll = one.tables["toll"]
            if day:
                toll["time_s"] = [
                    time * 3 if name == "zero.kernel" else time for name, time in zip(toll["toll"], toll["time_s"])
                ]
            made.append(dataclasses.replace(one, recording=f"{host:016x}{day:016x}"))
    assert all(Store(tmp_path / "ds", create=True).add(made))
    ds = Dataset(tmp_path / "ds")
    table = ds.diff("aaaa11", "aaaa2")
    row = table.loc["zero.kernel"]
    assert row["ratio"] == pytest.approx(3, rel=1e-9)
    assert row["difference"] == pytest.approx(2 * row["share_a"], rel=1e-9)
    assert row["low"] <= row["difference"] <= row["high"]
    assert row["low"] > 0
    assert (row["hosts_a"], row["hosts_b"], row["recordings_b"]) == (11, 11, 11)
    assert table.loc["zero.libc", "difference"] == pytest.approx(0, abs=1e-12)
    with pytest.raises(BadQuestion, match="2 builds begin"):
        ds.diff("aaaa", "aaaa22")
    with pytest.raises(BadQuestion, match="no recording"):
        ds.diff("aaaa11", "bbbb")
    with pytest.raises(BadQuestion, match="same"):
        ds.diff("aaaa11", "aaaa11")
    alone = ds.diff("aaaa11", "aaaa22", hosts=["h3"])
    assert alone.loc["zero.kernel", "ratio"] == pytest.approx(3)
    assert alone["low"].isna().all()


def test_tolls_that_were_not_captured_are_no_zeros(tmp_path: Path) -> None:
    """Of two recordings one could not see calloc: its time is not in the denominator."""
    base = next(each for each in summaries() if each.tables["meta"]["service"] == ["calloc_loop"])
    seen = varied(base, host="a", day=0, number=1, build="b", factor=1)
    blind = varied(base, host="b", day=0, number=2, build="b", factor=1)
    toll = blind.tables["toll"]
    at = toll["toll"].index("zero.libc")
    for column, value in (
        ("time_s", None), ("count", None), ("bytes", None), ("observed_s", 0.0), ("recordings", 0),
        ("not_captured", "no probe"),
    ):  # fmt: skip
        toll[column] = [value if index == at else old for index, old in enumerate(toll[column])]
    Store(tmp_path / "ds", create=True).add([seen, blind])
    (row,) = Dataset(tmp_path / "ds").top("zero.libc", "build").to_dict("records")
    assert (row["recordings"], row["hosts_seen"], row["hosts"]) == (1, 1, 1)
    assert row["observed_s"] == base.tables["meta"]["observed_s"][0]
    (family,) = Dataset(tmp_path / "ds").top("zeroing", "build").to_dict("records")
    assert family["recordings"] == 2
    assert family["observed_s"] == 2 * base.tables["meta"]["observed_s"][0]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"what": "nothing"}, "zeroing"),
        ({"what": None}, "group by"),
        ({"what": "swap", "by": "nothing"}, "service"),
        ({"what": "swap", "measure": "nothing"}, "share"),
        ({"what": "swap", "engine": "spark"}, "dask"),
    ],
)
def test_invalid_questions(tmp_path: Path, question: dict[str, Any], says: str) -> None:
    ds = dataset(tmp_path / "ds", add=some(tmp_path / "in", 1))
    with pytest.raises(BadQuestion, match=says):
        ds.top(**question)


@pytest.mark.parametrize("engine", ["pandas", "dask"])
def test_an_empty_dataset_answers(tmp_path: Path, engine: str) -> None:
    Store(tmp_path / "ds", create=True)
    ds = Dataset(tmp_path / "ds", engine=engine)
    assert len(ds.top("zeroing")) == 0
    assert len(ds.trend("zeroing", ["service"])) == 0
    assert ds.info()["first_day"] is None


def test_additions_by_others_are_seen(tmp_path: Path) -> None:
    first, second = some(tmp_path / "in", 2)
    ds = dataset(tmp_path / "ds", add=first)
    assert ds.top("zeroing")["recordings"].sum() == 1
    add(tmp_path / "ds", second)
    assert ds.top("zeroing")["recordings"].sum() == 2


def test_missing_extras_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = some(tmp_path / "in", 1)
    ds = dataset(tmp_path / "ds", add=path)
    for module, extra, engine in (("dask.dataframe", "dask", "dask"), ("pyarrow.parquet", "arrow", "pandas")):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(memtoll.MissingExtra, match=re.escape(f"pip install 'memtoll[{extra}]'")):
                ds.top("zeroing", engine=engine)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(memtoll.MissingExtra):
        add(tmp_path / "new", path)
    assert not (tmp_path / "new").exists()


# ---- command line


def test_command_line(cli: Cli, tmp_path: Path) -> None:
    some(tmp_path / "in", 17)
    done = cli("dataset", "add", tmp_path / "ds", tmp_path / "in")
    assert (done.returncode, done.stdout, done.stderr) == (0, "17 added, 0 there already\n", "")
    # So few are not worth processes of their own.
    known = sorted((tmp_path / "in").iterdir())[:2]
    done = cli("dataset", "add", tmp_path / "ds", *known, tmp_path / "gone.memtoll")
    assert (done.returncode, done.stdout) == (1, "0 added, 2 there already, 1 failed\n")
    assert re.fullmatch(r"memtoll: .*gone\.memtoll: No such file or directory\n", done.stderr)

    top = cli("dataset", "top", tmp_path / "ds", "--toll", "zeroing", "--by", "service,build")
    assert top.returncode == 0, top.stderr
    head, *rows = [line.split() for line in top.stdout.splitlines()]
    assert head[:2] == ["service", "build"] and "hosts" in head
    assert {row[1] for row in rows} == set(BUILDS)
    as_json = json.loads(cli("dataset", "top", tmp_path / "ds", "-t", "zeroing", "--json").stdout)
    meant = Dataset(tmp_path / "ds").top("zeroing").to_dict("records")
    assert as_json == meant
    trend = json.loads(cli("dataset", "trend", tmp_path / "ds", "-t", "zeroing", "--json").stdout)
    assert [row["day"] for row in trend] == ["2026-11-18", "2026-11-19"]
    assert cli("dataset", "diff", tmp_path / "ds", *BUILDS).stdout.startswith("toll ")
    assert json.loads(cli("dataset", "info", tmp_path / "ds", "-j").stdout)["recordings"] == 17


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["top"],
        ["top", "DIR"],
        ["top", "DIR", "-t", "nothing"],
        ["top", "DIR", "-t", "swap", "--from", "yesterday"],
        ["diff", "DIR", "x", "y"],
    ],
)
def test_usage(cli: Cli, tmp_path: Path, words: list[str]) -> None:
    Store(tmp_path / "ds", create=True)
    done = cli("dataset", *[str(tmp_path / "ds") if word == "DIR" else word for word in words])
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("memtoll: dataset: ") and done.stderr.count("\n") == 1
