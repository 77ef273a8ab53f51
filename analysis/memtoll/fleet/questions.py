# SPDX-License-Identifier: GPL-2.0
"""A dataset to ask: with pandas where it is small, with Dask where it is not, by the same functions.

A question first sums rows by some columns, and that part alone is done by the engine: filter,
group, sum exist in both under the same names, and what comes out is small. All else is done on
that. Dask uses the cluster that the caller is connected to (distributed.Client), or its threads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final

import pandas as pd

from ..extras import need
from . import reading
from .compare import compare_builds
from .schema import PARTITION, TABLES
from .store import File, Store
from .vocabulary import MEASURES, SITE_COLUMNS, BadQuestion, tolls_of

ENGINES: Final = ("pandas", "dask")
# Rows of a table from which on Dask is used: 5 million of tolls are 1 GB in pandas.
LARGE_ROWS: Final = 5_000_000
# Rows and files of one of Dask's partitions.
PARTITION_ROWS: Final = 500_000
PARTITION_FILES: Final = 64

# What top says of each group.
FIGURES: Final = ("time_s", "bytes", "count", "observed_s", "share", "hosts", "hosts_seen", "recordings", "lossy")


class Dataset:
    """An open dataset; made by memtoll.fleet.dataset.

    top, trend and compare answer questions; frame gives a table for questions of one's own; add
    brings recordings. What others add meanwhile is seen by the next call.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        engine: str | None = None,
        temporary: TemporaryDirectory[str] | None = None,
    ) -> None:
        if engine is not None and engine not in ENGINES:
            raise BadQuestion(f"there is no engine {engine!r}; there are {', '.join(ENGINES)}")
        self.path: Final = Path(path)
        self.engine = engine
        self.store = Store(self.path)
        self._temporary = temporary

    def close(self) -> None:
        """Take away a dataset that was made for a list of recordings only."""
        if self._temporary:
            self._temporary.cleanup()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        info = self.info()
        return (
            f"<memtoll.Dataset {str(self.path)!r}: {info['recordings']:,} recordings of {info['hosts']:,} hosts,"
            f" {info['first_day'] or 'no day'} to {info['last_day'] or 'no day'}>"
        )

    def info(self) -> dict[str, Any]:
        """recordings, hosts, days, first_day, last_day, and rows and files of each table."""
        commits = self.store.refresh()
        days = sorted({file.day for file in commits.files})
        return {
            "recordings": len(commits.recordings),
            "hosts": len({file.host for file in commits.files}),
            "days": len(days),
            "first_day": days[0] if days else None,
            "last_day": days[-1] if days else None,
            "rows": {table: sum(file.rows for file in commits.files if file.table == table) for table in TABLES},
            "files": {table: sum(file.table == table for file in commits.files) for table in TABLES},
        }

    # ---- tables

    def _files(self, table: str, hosts: Iterable[str] | None, days: tuple[str, str] | None) -> list[File]:
        if table not in TABLES:
            raise BadQuestion(f"there is no table {table!r}; there are {', '.join(TABLES)}")
        wanted = None if hosts is None else set(hosts)
        first, last = days or ("", "9999-12-31")
        return [
            file
            for file in self.store.refresh().files
            if file.table == table and (wanted is None or file.host in wanted) and first <= file.day <= last
        ]

    def engine_for(self, table: str) -> str:
        """Which engine a question to a table is answered by, unless one is named."""
        if self.engine:
            return self.engine
        rows = sum(file.rows for file in self._files(table, None, None))
        return "dask" if rows >= LARGE_ROWS else "pandas"

    def frame(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        hosts: Iterable[str] | None = None,
        days: tuple[str, str] | None = None,
        engine: str | None = None,
    ) -> Any:
        """A table as a pandas.DataFrame or, of engine "dask", as a dask.dataframe.DataFrame.

        columns: names of memtoll.fleet.schema.TABLES[table], "host" and "day"; None: all.
        hosts: only these; days: only from the first to the last one, "2026-11-21", UTC.
        BadQuestion, MissingExtra, NewerFormat; DamagedRecording: a file cannot be read.
        """
        files = self._files(table, hosts, days)
        known = [column.name for column in TABLES[table]] + list(PARTITION)
        names = list(columns) if columns is not None else known
        if missing := [name for name in names if name not in known]:
            raise BadQuestion(f"table {table} has no column {missing[0]!r}; it has {', '.join(known)}")
        chosen = engine or self.engine_for(table)
        if chosen == "pandas":
            return reading.read_files(self.path, table, files, names)
        if chosen != "dask":
            raise BadQuestion(f"there is no engine {chosen!r}; there are {', '.join(ENGINES)}")
        dask = need("dask", "dask.dataframe")
        groups = _partitions(files)
        empty = reading.read_files(self.path, table, [], names)
        if not groups:
            return dask.from_pandas(empty, npartitions=1)
        # The tasks carry names of files, not rows: workers read what they work on.
        return dask.from_map(
            reading.Reader(str(self.path.absolute()), table, tuple(names)), groups, meta=empty, enforce_metadata=False
        )

    def _sums(
        self,
        table: str,
        tolls: Sequence[str] | None,
        keys: Sequence[str],
        sums: Sequence[str],
        where: dict[str, Sequence[str]] | None = None,
        **which: Any,
    ) -> pd.DataFrame:
        """Sums of columns by keys, as a small pandas.DataFrame."""
        filters = dict(where or {}) | ({"toll": tolls} if tolls is not None else {})
        columns = list(dict.fromkeys([*keys, *filters, *sums]))
        frame = self.frame(table, columns, **which)
        for name, values in filters.items():
            frame = frame[frame[name].isin(list(values))]
        groups = frame.groupby(list(keys), dropna=False)[list(sums)]
        # Dask: parts are summed where they were read, and those sums by one; no rows move.
        summed = groups.sum(split_out=1).compute() if hasattr(frame, "compute") else groups.sum()
        return _plain(pd.DataFrame(summed).reset_index())

    # ---- questions

    def top(
        self,
        what: str | None = None,
        by: Sequence[str] | str = ("service", "build"),
        measure: str = "time_s",
        n: int | None = 20,
        *,
        hosts: Iterable[str] | None = None,
        days: tuple[str, str] | None = None,
        engine: str | None = None,
    ) -> pd.DataFrame:
        """Who pays most for a toll: the n groups with the largest measure (None: all groups).

        what: a toll or a family ("zeroing"); None: all, where by has "toll" or "family".
        by: columns of table toll, "host" and "day" included; with call, allocated_place,
        touched_place, allocated_at or touched_at of table sites.
        measure: "time_s", "bytes" or "share", the part of the observed time of the group.

        Columns: those of by; time_s; bytes; count; observed_s (of all recordings of the group that
        could see the toll); share 0..1; hosts (on which it took time); hosts_seen (with such
        recordings); recordings; lossy (recordings whose losses exceeded the limit). Largest first.
        BadQuestion and the errors of frame.
        """
        keys = [by] if isinstance(by, str) else list(dict.fromkeys(by))
        if measure not in MEASURES:
            raise BadQuestion(f"there is no measure {measure!r}; there are {', '.join(MEASURES)}")
        which = {"hosts": None if hosts is None else list(hosts), "days": days, "engine": engine}
        made = self._paid(what, keys, which)
        made["share"] = (made["time_s"] / made["observed_s"]).where(made["observed_s"] > 0, 0.0)
        made = made.sort_values([measure, *keys], ascending=[False, *(True for _ in keys)], kind="stable")
        made = made[[*keys, *FIGURES]].reset_index(drop=True)
        return made if n is None else made.head(n)

    def _paid(self, what: str | None, keys: list[str], which: dict[str, Any]) -> pd.DataFrame:
        """What top says, of all groups."""
        tolls, prefix = tolls_of(what, keys)
        site_keys = [key for key in keys if key in SITE_COLUMNS]
        plain = [key for key in keys if key not in SITE_COLUMNS]
        seen = [f"{prefix}{name}" for name in ("observed_s", "recordings", "lossy")]
        paid = ["time_s", "bytes", "count"]
        with_host = list(dict.fromkeys([*plain, "host"]))
        whole = self._sums("toll", tolls, with_host, [*paid, *seen], **which)
        whole = whole[whole[seen[1]] > 0]
        grouped = plain or ["host"]
        denominators = whole.assign(hosts_seen=1, hosts=(whole["time_s"] > 0).astype("int64"))
        if not plain:
            denominators = denominators.assign(host="")
        denominators = denominators.groupby(grouped, dropna=False, as_index=False)[
            [*paid, *seen, "hosts", "hosts_seen"]
        ].sum()
        denominators = denominators.rename(columns=dict(zip(seen, ("observed_s", "recordings", "lossy"))))
        if not site_keys:
            return denominators
        sites = self._sums("sites", tolls, list(dict.fromkeys([*keys, "host"])), paid, **which)
        sites = sites.assign(hosts=(sites["time_s"] > 0).astype("int64"))
        sites = sites.groupby(keys, dropna=False, as_index=False)[[*paid, "hosts"]].sum()
        if not plain:
            sites = sites.assign(host="")
        return sites.merge(denominators.drop(columns=[*paid, "hosts"]), on=grouped, how="left")

    def trend(
        self,
        what: str,
        by: Sequence[str] | str = (),
        *,
        hosts: Iterable[str] | None = None,
        days: tuple[str, str] | None = None,
        engine: str | None = None,
    ) -> pd.DataFrame:
        """A toll or family per day (UTC): the columns of top, day first, in the order of the days."""
        keys = ["day", *([by] if isinstance(by, str) else by)]
        made = self.top(what, keys, n=None, hosts=hosts, days=days, engine=engine)
        return made.sort_values(list(dict.fromkeys(keys)), kind="stable").reset_index(drop=True)

    def diff(
        self,
        build_a: str,
        build_b: str,
        *,
        service: str | None = None,
        hosts: Iterable[str] | None = None,
        days: tuple[str, str] | None = None,
        engine: str | None = None,
    ) -> pd.DataFrame:
        """Tolls of two builds, each a build id or the beginning of one.

        One row a toll, index toll: share_a, share_b (0..1 of the observed time of all recordings of
        the build), difference b - a with low and high, ratio b / a with ratio_low and ratio_high,
        bytes_per_s_a and _b (bytes per observed second), hosts_a and _b, recordings_a and _b,
        lossy_a and _b. low and high bound 95 % of 2,000 resamplings of hosts (memtoll.fleet.compare);
        missing where a build ran on fewer than two hosts. BadQuestion and the errors of frame.
        """
        which = {"hosts": None if hosts is None else list(hosts), "days": days, "engine": engine}
        where: dict[str, Sequence[str]] = {} if service is None else {"service": [service]}
        builds = [self._build(build, where, which) for build in (build_a, build_b)]
        if builds[0] == builds[1]:
            raise BadQuestion(f"{build_a} and {build_b} are the same build, {builds[0]}")
        keys = ["build", "host", "toll"]
        sums = ["time_s", "bytes", "observed_s", "recordings", "lossy"]
        rows = self._sums("toll", None, keys, sums, where | {"build": builds}, **which)
        return compare_builds(rows, builds[0], builds[1])

    compare = diff
    """Of before."""

    def _build(self, start: str, where: dict[str, Sequence[str]], which: dict[str, Any]) -> str:
        """The build id that begins so."""
        known = self._sums("meta", None, ["build"], ["observed_s"], where, **which)["build"].tolist()
        found = [build for build in known if build == start] or [build for build in known if build.startswith(start)]
        if not start or not found:
            raise BadQuestion(f"no recording here is of build {start!r}")
        if len(found) > 1:
            raise BadQuestion(
                f"{len(found)} builds begin with {start!r}: {', '.join(sorted(found)[:5])}; give more of it"
            )
        return str(found[0])


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """The same dtypes whichever engine summed: int64, float64, and texts as pandas has them by itself."""
    columns = {}
    for name, column in table.items():
        if pd.api.types.is_integer_dtype(column.dtype):
            columns[name] = column.astype("int64")
        elif pd.api.types.is_float_dtype(column.dtype):
            columns[name] = column.astype("float64")
        else:
            columns[name] = pd.Series([None if pd.isna(value) else value for value in column], index=table.index)
    return pd.DataFrame(columns, index=table.index)


def _partitions(files: list[File]) -> list[tuple[tuple[str, str, str], ...]]:
    """Files in groups of a size that a worker takes at once: (path, host, day) of each."""
    workers = max(os.cpu_count() or 1, 2)
    rows = min(PARTITION_ROWS, max(sum(file.rows for file in files) // (2 * workers), 1))
    groups: list[list[File]] = []
    room = 0
    for file in files:
        if not groups or room < file.rows or len(groups[-1]) >= PARTITION_FILES:
            groups.append([])
            room = rows
        groups[-1].append(file)
        room -= file.rows
    return [tuple((file.path, file.host, file.day) for file in group) for group in groups]
