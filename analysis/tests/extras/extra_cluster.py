# SPDX-License-Identifier: GPL-2.0
"""A fleet asked with pandas and on a cluster of processes: of 71 recordings, in make test-measure of 10,000."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from fleet_maker import fleet, summaries

from memtoll.fleet import Dataset
from memtoll.fleet.store import Store
from memtoll.fleet.summary import Summary
from memtoll.frames import TOLLS

RECORDINGS, DAYS = int(os.environ.get("MEMTOLL_FLEET_RECORDINGS", "71")), 5
# A file for each table, host and day: they are what takes long.
HOSTS = 7 if RECORDINGS < 1000 else 31
BATCH = 47 if RECORDINGS < 1000 else 301
WORKERS = 2

Fleet = tuple[Path, list[Summary], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """The dataset, the recordings it is made of, and what each was made with."""
    directory = tmp_path_factory.mktemp("fleet")
    bases = summaries()
    store = Store(directory / "dataset", create=True)
    known, batch = [], []
    for summary, facts in fleet(bases, RECORDINGS, HOSTS, DAYS):
        known.append(facts)
        batch.append(summary)
        if len(batch) == BATCH:
            assert all(store.add(batch))
            batch = []
    assert all(store.add(batch))
    return directory / "dataset", bases, known


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        # What each would import takes most of their time: one does, and they are forked from it.
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=WORKERS, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as processes,
        Client(processes) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


def toll_of(base: Summary, toll: str, column: str) -> Any:
    rows = base.tables["toll"]
    return rows[column][rows["toll"].index(toll)]


ZEROING = ("zero.kernel", "zero.libc", "zero.app")


def zeroing(bases: list[Summary], known: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What is zeroed by keys, added up one recording after the other."""
    sums: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(
        lambda: {"bytes": 0, "time": Fraction(), "observed": Fraction(), "hosts": set(), "recordings": 0}
    )
    for each in known:
        base = bases[each["base"]]
        values = each | {"service": base.tables["meta"]["service"][0]}
        one = sums[tuple(values[key] for key in keys)]
        one["bytes"] += each["factor"] * sum(toll_of(base, toll, "bytes") for toll in ZEROING)
        one["time"] += each["factor"] * sum(Fraction(toll_of(base, toll, "time_s")) for toll in ZEROING)
        one["observed"] += each["factor"] * Fraction(base.tables["meta"]["observed_s"][0])
        one["hosts"].add(each["host"])
        one["recordings"] += 1
    return sums


def check(table: pd.DataFrame, sums: dict[tuple[Any, ...], dict[str, Any]], keys: list[str]) -> None:
    assert len(table) == len(sums)
    for row in table.to_dict("records"):
        one = sums[tuple(row[key] for key in keys)]
        assert row["bytes"] == one["bytes"]
        assert row["recordings"] == one["recordings"]
        assert row["hosts_seen"] == len(one["hosts"])
        assert row["hosts"] == len(one["hosts"])
        assert row["time_s"] == pytest.approx(float(one["time"]), rel=1e-9)
        assert row["observed_s"] == pytest.approx(float(one["observed"]), rel=1e-9)
        assert row["share"] == pytest.approx(float(one["time"] / one["observed"]), rel=1e-9)


def test_every_recording_counts_once(made: Fleet, cluster: Client) -> None:
    path, bases, known = made
    ds = Dataset(path)
    info = ds.info()
    assert (info["recordings"], info["hosts"], info["days"]) == (RECORDINGS, HOSTS, DAYS)
    assert info["rows"]["toll"] == len(TOLLS) * RECORDINGS

    # Which build of which service zeroes most, on how many hosts: one call, either engine.
    keys = ["service", "build"]
    small = ds.top("zeroing", by=keys, n=None, engine="pandas")
    large = ds.top("zeroing", by=keys, n=None, engine="dask")
    check(small, zeroing(bases, known, *keys), keys)
    check(large, zeroing(bases, known, *keys), keys)
    assert small["time_s"].is_monotonic_decreasing
    pd.testing.assert_frame_equal(small, large, rtol=1e-12)

    # It was the cluster's processes that read the files, and not this one.
    frame = ds.frame("toll", ["host"], engine="dask")
    pids = set(frame.map_partitions(lambda part: pd.Series([os.getpid()]), meta=(None, "int64")).compute())
    assert pids == {worker["pid"] for worker in cluster.run(lambda: {"pid": os.getpid()}).values()}
    assert len(pids) == WORKERS and os.getpid() not in pids

    days = zeroing(bases, known, "day")
    trend = {engine: ds.trend("zeroing", engine=engine) for engine in ("pandas", "dask")}
    pd.testing.assert_frame_equal(trend["pandas"], trend["dask"], rtol=1e-12)
    assert trend["pandas"]["bytes"].tolist() == [days[(day,)]["bytes"] for day in range(DAYS)]
    assert trend["pandas"]["day"].is_monotonic_increasing

    compared = {engine: ds.diff("old1", "new1", engine=engine) for engine in ("pandas", "dask")}
    pd.testing.assert_frame_equal(compared["pandas"], compared["dask"], rtol=1e-9)
    of_old = [each for each in known if each["build"] == "old1"]
    assert compared["pandas"].loc["zero.libc", "recordings_a"] == len(of_old)

    places = {engine: ds.top("zeroing", ["allocated_place"], "bytes", engine=engine) for engine in ("pandas", "dask")}
    pd.testing.assert_frame_equal(places["pandas"], places["dask"], rtol=1e-12)


def test_engine_is_chosen_by_size(made: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = made
    assert Dataset(path).engine_for("toll") == "pandas"
    monkeypatch.setattr("memtoll.fleet.questions.LARGE_ROWS", len(TOLLS) * RECORDINGS)
    assert Dataset(path).engine_for("toll") == "dask"
    assert Dataset(path, engine="pandas").engine_for("toll") == "pandas"
    assert hasattr(Dataset(path).frame("toll", ["toll"]), "compute")
    assert isinstance(Dataset(path, engine="pandas").frame("toll", ["toll"]), pd.DataFrame)


def test_hosts_and_days_are_chosen_by_path(made: Fleet) -> None:
    path, bases, known = made
    ds = Dataset(path)
    chosen = [each for each in known if each["host"] in (3, 5) and each["day"] in (1, 2)]
    days = ds.trend("zeroing")["day"].tolist()
    table = ds.top("zeroing", "host", hosts=["host3", "host5"], days=(days[1], days[2]))
    sums = {(f"host{host}",): one for (host,), one in zeroing(bases, chosen, "host").items()}
    check(table, sums, ["host"])
