# SPDX-License-Identifier: GPL-2.0
"""The fleet: recordings of many hosts as one Parquet dataset, and questions to it.

    ds = memtoll.fleet.dataset("fleet", add=["web1.memtoll", "web2.memtoll"])
    ds.top("zeroing", by=["service", "build"])        # which build of which service zeroes most,
                                                      # on how many hosts
    ds.trend("swap.in", by=["service"])               # per day
    ds.diff("4f1e09", "a72c55", service="api.service")

The directories are those of Hive (toll/host=web1/day=2026-11-21/*.parquet), which DuckDB, Spark and
Polars read too. Adding a recording twice does nothing, and several writers may add at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..errors import Error
from ..extras import need
from ..opening import Progress
from ..recording import open as open_recording
from .questions import Dataset
from .schema import TABLES, VERSION
from .store import NotADataset, Store, is_dataset
from .summary import NoOrigin, Summary, summarize
from .vocabulary import BadQuestion

__all__ = [
    "TABLES",
    "VERSION",
    "Added",
    "BadQuestion",
    "Dataset",
    "NoOrigin",
    "NotADataset",
    "add",
    "dataset",
    "recordings_in",
]

SUFFIX: Final = ".memtoll"
# Recordings of one addition: what is in memory at once.
BATCH: Final = 512

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass(frozen=True)
class Added:
    """What became of one recording: new, or there already, or (failed) why it could not be read."""

    path: Path
    new: bool
    failed: str | None = None


def recordings_in(paths: Paths) -> list[Path]:
    """Files as they are, of directories all NAME.memtoll in and below them, in order."""
    found: list[Path] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        if Path(path).is_dir():
            found += sorted(file for file in Path(path).rglob(f"*{SUFFIX}") if file.is_file())
        else:
            found.append(Path(path))
    return list(dict.fromkeys(found))


def _summary(path: Path, *, incomplete: bool, host: str | None, service: str | None) -> Summary | str:
    """The rows of a recording, or why there are none."""
    try:
        with open_recording(path, incomplete=incomplete) as rec:
            return summarize(rec, host=host, service=service)
    except Error as error:
        return str(error)
    except OSError as error:
        return f"{path}: {error.strerror or error}"


def _summaries(paths: Sequence[Path], work: Callable[[Path], Summary | str], processes: int) -> Iterator[Summary | str]:
    if processes < 2:
        yield from map(work, paths)
        return
    # Not by fork: Arrow has threads, of which a child would have none.
    with ProcessPoolExecutor(processes, get_context("forkserver")) as pool:
        yield from pool.map(work, paths, chunksize=4)


def add(
    directory: str | os.PathLike[str],
    paths: Paths,
    *,
    incomplete: bool = False,
    host: str | None = None,
    service: str | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[Added]:
    """Add recordings to a dataset, which is made where there is none; for each what became of it.

    A recording that cannot be read is said to be so in the result and does not keep others out.
    incomplete: also those that were not finished; host, service: instead of what they say.
    processes: how many read at once; with more than one, the calling script needs the usual
    `if __name__ == "__main__":`, for the others import it.
    NotADataset, NewerFormat, MissingExtra; OSError: what was added until then stays.
    """
    need("arrow", "pyarrow.parquet")  # before anything is made
    store = Store(Path(directory), create=True)
    files = recordings_in(paths)
    work = partial(_summary, incomplete=incomplete, host=host, service=service)
    result: list[Added] = []
    batch: list[tuple[Path, Summary]] = []

    def commit() -> None:
        new = store.add([summary for _, summary in batch])
        result.extend(Added(path, there) for (path, _), there in zip(batch, new))
        batch.clear()

    for number, (path, summary) in enumerate(zip(files, _summaries(files, work, processes)), 1):
        if isinstance(summary, str):
            result.append(Added(path, False, summary))
        else:
            batch.append((path, summary))
        if len(batch) >= BATCH:
            commit()
        if progress:
            progress("reading recordings", number, len(files))
    commit()
    return result


def dataset(
    paths_or_dir: Paths,
    *,
    add: Paths | None = None,
    into: str | os.PathLike[str] | None = None,
    engine: str | None = None,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Dataset:
    """Open a dataset, or make one of recordings.

    paths_or_dir: the directory of a dataset; add: recordings to add to it first. Or recordings (a
    file, files, a directory with such): they go into the dataset `into` or, where none is named,
    into a temporary one that is gone when it is closed.
    engine: "pandas" or "dask" for all questions; None: by the size of the table.
    Unlike memtoll.fleet.add this raises Error for the first recording that cannot be read.
    NotADataset, NewerFormat, MissingExtra (extra "arrow").
    """
    temporary = None
    single = Path(paths_or_dir) if isinstance(paths_or_dir, (str, os.PathLike)) else None
    if into is None and single is not None and (is_dataset(single) or add is not None):
        directory, files = single, recordings_in(add or ())
    else:
        files = recordings_in(paths_or_dir) + recordings_in(add or ())
        if not files:
            raise NotADataset(f"{single or 'the list'} has neither a dataset of memtoll nor recordings")
        if into is None:
            temporary = TemporaryDirectory(prefix="memtoll-dataset-")
            directory = Path(temporary.name)
        else:
            directory = Path(into)
    if files:
        for each in _add(directory, files, incomplete=incomplete, progress=progress):
            if each.failed:
                raise Error(each.failed)
    return Dataset(directory, engine=engine, temporary=temporary)


_add = add
