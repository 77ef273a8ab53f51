# SPDX-License-Identifier: GPL-2.0
"""A recording as DataFrames. All figures come from the SQL views over it (schema.py)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Any, Final, cast

import numpy as np
import pandas as pd

from . import bulk, frames, stacks
from .errors import DamagedRecording, Error
from .opening import Opened, Progress, open_file, reading, understanding
from .table import Table
from .verdict import Verdict, verdict
from .views import Views

# Names of the frames, each a property of Recording.
NAMES: Final = tuple(frame.name for frame in frames.FRAMES)


def open(  # the package's own open, as tarfile and gzip have theirs
    path: str | os.PathLike[str],
    *,
    incomplete: bool = True,
    progress: Progress | None = None,
    redact: bool = False,
) -> Recording:
    """Open a recording for reading. No root is needed and the file is never changed.

    One that its tracer has not finished, or never will, is read up to its last slice, as `memtoll
    report` does: complete is False then, and all that is shown says so. It is copied within one read
    transaction first, so everything read from it is of one moment; open it again for more.
    incomplete: False refuses such a one.
    progress: called as progress(what, done, all) while something takes long.
    redact: pseudonyms instead of arguments, names of files, programs, containers and the host, and
    of addresses, in all that is read of it; functions keep their names, figures are the same.

    OSError: the file cannot be opened. NotARecording, NewerFormat, IncompleteRecording,
    DamagedRecording: what their names say. Error: locked by another program for 5 s.
    """
    return Recording(open_file(path, incomplete=incomplete, progress=progress, redact=redact), progress)


# What comes with the package, and with the binary (`memtoll demo NAME`).
EXAMPLES: Final = ("zeroing", "swap", "healthy")


def example(name: str) -> Recording:
    """A recording that comes with the package: 'zeroing' (blocks of 10 MiB from calloc, again and again), 'swap' (four
    passes over 160 MiB, of which 80 may stay), 'healthy' (a program that computes). Error: there is no such one."""
    if name not in EXAMPLES:
        raise Error(f"no example {name!r}: there are {', '.join(EXAMPLES)}")
    return open(Path(str(resources.files(__package__).joinpath("examples", f"{name}.memtoll"))))


class Recording:
    """An open recording; made by memtoll.open. Close it, or use it in a with statement.

    The frames are properties, read when they are first used and kept: toll, families, sites,
    classes, faults, allocations, sampled, duty_cycle, timeline, processes, process_tolls, process_timeline,
    access, access_patterns, giveback, thresholds, files, miss_ratio, latency, latencies, outliers, losses,
    checks, overhead, stacks, stack_frames, system. Their columns: memtoll.frames.FRAMES,
    `python3 -m memtoll frames`. Do not change them in place; take a copy.
    """

    def __init__(self, opened: Opened, progress: Progress | None = None) -> None:
        self.path: Final = opened.path
        self.format: Final = opened.format
        self.complete: Final = opened.complete
        self._opened = opened
        self._progress = progress
        self.views = Views(opened, progress)
        self._closed = False

    # ---- life

    def close(self) -> None:
        """Let go of the file. Frames that were read stay usable."""
        self._closed = True
        self._opened.connection.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        return f"<memtoll.Recording {str(self.path)!r}, format {self.format}{state}>"

    def __str__(self) -> str:
        from .text import summary

        with understanding(self.path):
            return summary(self)

    def _repr_html_(self) -> str:
        from html import escape

        with understanding(self.path):
            return f"<h4>{escape(str(self.path))}</h4>{self.verdict._repr_html_()}{self.toll._repr_html_() or ''}"

    # ---- the whole

    @cached_property
    def meta(self) -> dict[str, str]:
        """Table meta: tool_version, command_line, kernel, machine, host, min_size_bytes ... as texts."""
        return {str(key): str(value) for key, value in self._rows("SELECT key, value FROM main.meta ORDER BY key")}

    @cached_property
    def origin_ns(self) -> int:
        """CLOCK_MONOTONIC at the recording's start: the zero of all start_s and end_s."""
        ((first,),) = self._rows("SELECT MIN(start_ns) FROM main.slice")
        with understanding(self.path):
            return int(first if first is not None else self.meta.get("start_ns") or 0)

    @cached_property
    def realtime_ns(self) -> int | None:
        """What makes nanoseconds of CLOCK_MONOTONIC those since 1970, as of the start; None: not recorded."""
        with understanding(self.path):
            since_1970, start = self.meta.get("start_realtime_ns"), self.meta.get("start_ns")
            return int(since_1970) - int(start) if since_1970 and start else None

    def wall_clock(self, ns: pd.Series) -> pd.Series:
        """Nanoseconds of CLOCK_MONOTONIC, a column *_ns, as wall-clock time (UTC); NaT where it is not known."""
        missing = ns.isna() | (self.realtime_ns is None)
        since_1970 = ns.fillna(0).astype("int64") + (self.realtime_ns or 0)
        return pd.Series(_utc(since_1970.to_numpy(), missing.to_numpy()), index=ns.index)

    @cached_property
    def duration_s(self) -> float:
        """Seconds from the first slice's start to the last one's end."""
        with understanding(self.path):
            return float(self.target["duration_s"])

    @cached_property
    def observed_s(self) -> float:
        """Seconds on the CPU, less the probes' own, and asleep in faults, of all processes."""
        with understanding(self.path):
            return float(self.target["observed_s"])

    @cached_property
    def target(self) -> dict[str, Any]:
        """What was traced, as in the report's JSON: pids, command, host, started (UTC), exit_status, and how long."""
        self.views.make("target")
        ((text,),) = self._rows(
            "SELECT json_object('pids', json((SELECT json_group_array(pid) FROM"
            " (SELECT pid FROM main.process ORDER BY pid))), 'command', command,"
            " 'host', (SELECT value FROM meta WHERE key = 'host'),"
            " 'started', (SELECT strftime('%Y-%m-%dT%H:%M:%SZ', value / 1000000000, 'unixepoch')"
            " FROM meta WHERE key = 'start_realtime_ns'),"
            " 'exit_status', (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'exit_status'),"
            " 'container', container,"
            " 'duration_s', ROUND(duration_ns / 1e9, 9), 'observed_s', ROUND(observed_ns / 1e9, 9)) FROM temp.target"
        )
        with understanding(self.path):
            return cast(dict[str, Any], json.loads(text))

    @cached_property
    def verdict(self) -> Verdict:
        """The object "verdict" of the report's JSON, advice included; a dict that prints as text."""
        return verdict(self.views)

    @cached_property
    def report_text(self) -> str:
        """The text of `memtoll report --json`, all sites."""
        self.views.make("report_json")
        ((text,),) = self._rows("SELECT json FROM temp.report_json")
        if text is None:
            raise DamagedRecording(f"{self.path}: the report is empty")
        return str(text)

    @cached_property
    def report(self) -> dict[str, Any]:
        """The object `memtoll report --json` prints, all sites."""
        with understanding(self.path):
            return cast(dict[str, Any], json.loads(self.report_text))

    @cached_property
    def zeroing(self) -> dict[str, int | None]:
        """The zeroing ledger: bytes_kernel, _libc, _app, _twice, _never_used; None: not captured."""
        self.views.make("zeroing")
        names = ("bytes_kernel", "bytes_libc", "bytes_app", "bytes_twice", "bytes_never_used")
        (row,) = self._rows(f"SELECT {', '.join(names)} FROM temp.zeroing")
        return dict(zip(names, row, strict=True))

    @cached_property
    def memory(self) -> dict[str, Any]:
        """Limits, peaks and swap-ins as the report's JSON has them; {} in recordings without."""
        return dict(self.report.get("memory") or {})

    @cached_property
    def notes(self) -> list[str]:
        """What a reader must know before trusting the figures."""
        self.views.make("note")
        return [text for (text,) in self._rows("SELECT text FROM temp.note ORDER BY position, text")]

    # ---- stacks

    def stack(self, stack_id: int) -> list[stacks.Frame]:
        """Frames of a stack by its id, leaf first; none for 0, an unknown one. KeyError: no such stack."""
        self._check_open()
        return stacks.stack(self.views, stack_id)

    # ---- frames

    @cached_property
    def toll(self) -> Table:
        """The toll table, 12 rows, index toll."""
        return self._frame("toll")

    @cached_property
    def families(self) -> Table:
        """Tolls by family, largest first, index family."""
        return self._frame("families")

    @cached_property
    def sites(self) -> Table:
        """Tolls by both owners, most expensive first, index rank."""
        return self._frame("sites")

    @cached_property
    def classes(self) -> Table:
        """Faults by class with the price of one, index class."""
        return self._frame("classes")

    @cached_property
    def faults(self) -> Table:
        """Runs of faults, address by time; may have many millions of rows."""
        return self._read_faults()

    @cached_property
    def allocations(self) -> Table:
        """Allocator calls by function and call site, most bytes first."""
        return self._frame("allocations")

    @cached_property
    def timeline(self) -> Table:
        """Each captured toll in each slice; sums over the slices are those of toll."""
        self.views.make("sites")
        here = resources.files("memtoll")
        names = ("timeline_reads.sql", "timeline.sql")
        self.views.run("memtoll_timeline", "".join(here.joinpath(name).read_text(encoding="utf-8") for name in names))
        return self._frame("timeline")

    @cached_property
    def processes(self) -> Table:
        """The traced processes, index pid."""
        return self._frame("processes")

    @cached_property
    def process_tolls(self) -> Table:
        """Tolls of each process."""
        return self._frame("process_tolls")

    @cached_property
    def process_timeline(self) -> Table:
        """Processor time, faults and memory of each process in each slice."""
        return self._frame("process_timeline")

    @cached_property
    def access(self) -> Table:
        """How pages were used by allocation site or area; empty where it was not recorded."""
        return self._frame("access")

    @cached_property
    def access_patterns(self) -> Table:
        """The same over all processes with a word for the pattern, index rank; empty where not recorded."""
        return self._frame("access_patterns")

    @cached_property
    def sampled(self) -> Table:
        """Small blocks as --sample estimates them; empty where none were sampled."""
        return self._frame("sampled")

    @cached_property
    def duty_cycle(self) -> Table:
        """How much of the time each allocator function was watched, index call; empty: always."""
        return self._frame("duty_cycle")

    @cached_property
    def giveback(self) -> Table:
        """Memory given back to the kernel and got again, most expensive first; empty where not recorded."""
        return self._frame("giveback")

    @cached_property
    def files(self) -> Table:
        """Files that were read, the one that took most time first; empty where reads were not recorded."""
        return self._frame("files")

    @cached_property
    def miss_ratio(self) -> Table:
        """Points of the miss-ratio curves of files and of swap-ins; empty where not recorded."""
        return self._frame("miss_ratio")

    @cached_property
    def latency(self) -> Table:
        """Calls of the allocator by how long they took and where they were made; empty where not recorded."""
        return self._frame("latency")

    @cached_property
    def latencies(self) -> Table:
        """Quantiles by function, index call; empty where not recorded."""
        return self._frame("latencies")

    @cached_property
    def outliers(self) -> Table:
        """Single calls that took far longer than the rest, with their cause, index rank; empty where not recorded."""
        return self._frame("outliers")

    @cached_property
    def thresholds(self) -> Table:
        """glibc's thresholds as they changed; empty where not recorded."""
        return self._frame("thresholds")

    @cached_property
    def losses(self) -> Table:
        """Every loss by name, index name; those with count 0 too."""
        return self._frame("losses")

    @cached_property
    def checks(self) -> Table:
        """Our counts against the kernel's, index name."""
        return self._frame("checks")

    @cached_property
    def overhead(self) -> Table:
        """What the probes cost, index probe; attrs: limit_pct, estimated_pct, error_pct, source, hits, held_s, why."""
        table = self._frame("overhead")
        (row,) = self._rows(
            "SELECT limit_pct, ROUND(estimated_pct, 4), hits, ROUND(held_ns / 1e9, 6) FROM temp.overhead"
        )
        with understanding(self.path):
            table.attrs.update(limit_pct=row[0], estimated_pct=_printed(row[1]), hits=row[2], held_s=row[3])
        self.views.make("overhead_error")
        (row,) = self._rows("SELECT ROUND(error_pct, 4), source FROM temp.overhead_error")
        with understanding(self.path):
            table.attrs.update(error_pct=_printed(row[0]), source=row[1])
        self.views.make("overhead_why")
        ((why,),) = self._rows("SELECT text FROM temp.overhead_why")
        table.attrs.update(why=why)
        return table

    @cached_property
    def stacks(self) -> Table:
        """Every stack as text, index stack_id."""
        return self._frame("stacks")

    @cached_property
    def stack_frames(self) -> Table:
        """Every line of every stack."""
        return self._frame("stack_frames")

    @cached_property
    def system(self) -> Table:
        """Counters of the whole machine, index name."""
        return self._frame("system")

    def query(self, sql: str, *values: Any) -> Table:
        """Rows of a query of your own, with the recording's tables and this package's views, as a Table.

        The views that the file has are for other programs, and are not asked: main.NAME is a table of it.
        """
        self._check_open()
        self.views.put_all(sql)
        cursor = self.views.execute(sql, *values)
        names = [column[0] for column in cursor.description or ()]
        with reading(self.path):
            return self._told(Table(cursor.fetchall(), columns=names))

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        toll: str | None = None,
        owner: str | None = None,
        frames: Sequence[str] | None = None,
        force: bool = False,
    ) -> None:
        """Write it in another tool's format: memtoll.export.export, which describes them and the errors."""
        from .export import export

        export(self, path, format, toll=toll, owner=owner, frames=frames, force=force, progress=self._progress)

    # ---- how they are made

    def _check_open(self) -> None:
        if self._closed:
            raise Error(f"{self.path} was closed; open it again, or read its frames before")

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        self._check_open()
        return self.views.rows(sql, *values)

    @cached_property
    def _lost(self) -> dict[str, dict[str, Any]]:
        """What Table.attrs holds of the losses."""
        self.views.make("losses")
        rows = self._rows(
            "SELECT name, count, CASE WHEN measure IS NOT NULL THEN share END, measure FROM temp.losses"
            " WHERE count > 0 ORDER BY measure IS NULL, share DESC, name"
        )
        return {name: {"count": count, "share": part, "of": of} for name, count, part, of in rows}

    @cached_property
    def _about(self) -> dict[str, Any]:
        """What Table.attrs holds of where and when it was recorded, and by which memtoll."""
        with understanding(self.path):
            since_1970, status = self.meta.get("start_realtime_ns"), self.meta.get("exit_status")
            return {
                "host": self.meta.get("host"),
                "started": _utc(np.array([int(since_1970)]), np.array([False]))[0] if since_1970 else None,
                "tool_version": self.meta.get("tool_version"),
                "exit_status": None if status is None else int(status),
            }

    def _told(self, table: Table) -> Table:
        table.attrs["recording"] = str(self.path)
        table.attrs["complete"] = self.complete
        table.attrs.update(self._about)
        table.attrs["losses"] = {name: dict(loss) for name, loss in self._lost.items()}
        return table

    @cached_property
    def _categories(self) -> dict[str, list[str]]:
        """Categories in an order that means something, by column name."""
        self.views.make("toll_kind")
        kinds = self._rows("SELECT toll, family FROM temp.toll_kind ORDER BY position")
        tolls = [toll for toll, _ in kinds]
        families = list(dict.fromkeys(family for _, family in kinds))
        classes = [name for (name,) in self._rows("SELECT class FROM fault_class ORDER BY toll, class")]
        return {
            "toll": tolls,
            "main_toll": tolls,
            "largest_toll": tolls,
            "family": families,
            "class": classes,
            "call": list(frames.CALLS),
            "area": list(frames.AREAS),
        }

    def _sql(self, column: frames.Column) -> str:
        realtime = "NULL" if self.realtime_ns is None else str(self.realtime_ns)
        return column.sql.replace(":origin", str(self.origin_ns)).replace(":realtime", realtime)

    def _frame(self, name: str) -> Table:
        """A frame as frames.FRAMES describes it."""
        self._check_open()
        spec = frames.BY_NAME[name]
        if spec.view:
            self.views.make(spec.view)
        if "memtoll_stack" in spec.source:
            stacks.make_texts(self.views)
        select = ", ".join(f'{self._sql(column)} AS "{column.name}"' for column in spec.columns)
        rows = self._rows(f"SELECT {select} FROM {spec.source}")
        values = zip(*rows, strict=True) if rows else ((),) * len(spec.columns)
        with understanding(self.path):
            data = {
                column.name: self._series(column, list(each)) for column, each in zip(spec.columns, values, strict=True)
            }
            table = Table(data)
            if spec.index:
                table = cast(Table, table.set_index(spec.index))
        return self._told(table)

    def _series(self, column: frames.Column, values: list[Any]) -> Any:
        if column.dtype == "category":
            return self._categorical(column.name, values)
        if column.dtype == frames.UTC:
            missing = np.array([value is None for value in values], dtype=bool)
            return pd.Series(_utc(np.array([value or 0 for value in values], dtype="int64"), missing))
        if column.printed:
            values = [None if value is None else _printed(value) for value in values]
        make = pd.array if column.dtype in ("Int64", "string") else pd.Series
        return make(values, dtype=column.dtype)

    def _categorical(self, name: str, values: list[Any]) -> Any:
        known = self._categories.get(name, [])
        more = sorted({value for value in values if value is not None} - set(known))
        return pd.Categorical(values, categories=[*known, *more])

    def _read_faults(self) -> Table:
        """Runs by way of arrays: a run has 120 bytes here, and there may be many."""
        self._check_open()
        with understanding(self.path):
            return self._joined_faults()

    def _joined_faults(self) -> Table:
        spec = frames.BY_NAME["faults"]
        made = ("toll", "allocated_at", "touched_at", "start_s", "end_s")
        there = self.views.columns("fault_run")
        sources = [
            bulk.Source(
                column.name,
                column.sql if column.sql in there else "''",
                "text" if column.dtype == "category" else column.dtype,
                column.sql if column.sql in there else None,
            )
            for column in spec.columns
            if column.name not in made
        ]
        arrays = bulk.load(self.views, "fault_run", sources, in_place=not self._opened.copied, progress=self._progress)
        stacks.make_texts(self.views)
        tolls: dict[str, str] = {kind: toll for kind, toll in self._rows("SELECT class, toll FROM fault_class")}
        data: dict[str, Any] = {}
        for source, array in arrays.columns():
            if source.dtype == "text":
                data[source.name] = self._coded(source.name, array, arrays.codes[source.name].texts)
            else:
                data[source.name] = array
            if source.name == "class":
                texts = arrays.codes["class"].texts
                data["toll"] = self._coded("toll", array, [tolls.get(text) for text in texts])
            elif source.name in ("start_ns", "end_ns"):
                data[f"{source.name[:-3]}_s"] = (array - self.origin_ns) / 1e9
            elif source.name in ("allocated_stack", "touched_stack"):
                data[f"{source.name[:-6]}_at"] = self._stack_texts(array)
        ordered = {column.name: data.pop(column.name) for column in spec.columns}
        return self._told(Table(ordered, copy=False))

    def _coded(self, name: str, array: bulk.Array, texts: Sequence[str | None]) -> Any:
        """A Categorical of codes into texts, which may repeat."""
        known = list(self._categories.get(name, []))
        known += sorted({text for text in texts if text is not None} - set(known))
        number = {text: code for code, text in enumerate(known)}
        dtype = np.int8 if len(known) < 127 else np.int32
        codes = np.array([-1 if text is None else number[text] for text in texts], dtype=dtype)
        return pd.Categorical.from_codes(codes[array] if len(codes) else array.astype(dtype), categories=known)

    def _stack_texts(self, ids: bulk.Array) -> Any:
        codes, unique = pd.factorize(ids)
        wanted = {int(stack_id) for stack_id in unique}
        texts = {
            stack_id: text
            for stack_id, text in self._rows("SELECT stack_id, text FROM temp.memtoll_stack")
            if stack_id in wanted
        }
        return self._coded("", codes, [texts.get(int(stack_id)) for stack_id in unique])


def _utc(since_1970: Any, missing: Any) -> Any:
    """Nanoseconds since 1970 as moments of UTC."""
    moments = since_1970.astype("datetime64[ns]")
    moments[missing] = np.datetime64("NaT")
    return pd.DatetimeIndex(moments, tz="UTC")


def _printed(value: Any) -> float:
    """A rounded figure as a reader of the JSON gets it: SQLite prints 15 digits."""
    return float(f"{value:.15g}")
