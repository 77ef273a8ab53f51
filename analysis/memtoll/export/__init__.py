# SPDX-License-Identifier: GPL-2.0
"""Recordings in other tools' formats.

    memtoll.export.export(rec, "server.pb.gz")                    # go tool pprof
    memtoll.export.export(rec, "zero.folded", toll="zero.kernel")  # flame graph programs
    memtoll.export.export(rec, "server.pftrace")                  # ui.perfetto.dev
    memtoll.export.export(rec, "server.otlp")                     # a message of OpenTelemetry's profiles
    memtoll.export.export(rec, "server.speedscope.json")          # speedscope
    memtoll.export.export(rec, "server.firefox.json")             # profiler.firefox.com
    memtoll.export.export(rec, "faults.parquet", frames=["faults"])
    memtoll.export.export(rec, "server.ndjson")                   # all frames, one line a row
    memtoll.export.export(rec, "tables", format="csv")            # all frames, a directory of files

What was lost, and whether the recording is complete, goes into every file: comments of a profile,
arguments of the trace's first slice, attributes of OpenTelemetry's profiles, the name of speedscope's file, the
Firefox profiler's panel of information, metadata of Parquet, first line of NDJSON, CSV's metadata file, a comment line
of folded stacks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .. import frames as frame_list
from ..errors import Error
from ..opening import Progress, understanding
from . import firefox, folded, otlp, perfetto, pprof, speedscope, tables
from .about import About, about
from .samples import OWNERS
from .schema import arrow_schema, csv_metadata, ndjson_schema
from .writing import STDOUT, Exists, new_directory, new_file, new_output, permissions

if TYPE_CHECKING:
    from ..recording import Recording

__all__ = ["FORMATS", "BadExport", "Exists", "Format", "export", "format_of", "schema"]


class BadExport(Error):
    """What was asked for does not go together; the message says what does."""


@dataclass(frozen=True)
class Format:
    """A format: the suffixes that mean it, what it is, which options it takes.

    options: of toll, owner, frames.
    """

    name: str
    suffixes: tuple[str, ...]
    meaning: str
    options: tuple[str, ...]


FORMATS: Final = {
    each.name: each
    for each in (
        Format("pprof", (".pb.gz", ".pprof"), "a profile for go tool pprof", ("toll", "owner")),
        Format("folded", (".folded",), "folded stacks in microseconds, for flame graph programs", ("toll",)),
        Format(
            "otlp",
            (".otlp",),
            f"a message of OpenTelemetry's profiles signal, in development, as of {otlp.PROTO}",
            ("toll", "owner"),
        ),
        Format("speedscope", (".speedscope.json",), "flame graphs for speedscope", ("toll", "owner")),
        Format("firefox", (".firefox.json",), "a profile for profiler.firefox.com", ("toll", "owner")),
        Format("perfetto", (".pftrace", ".perfetto-trace"), "a trace for ui.perfetto.dev", ()),
        Format("parquet", (".parquet",), "one frame; several: a directory of files", ("frames",)),
        Format("csv", (".csv",), "one frame; several: a directory of files", ("frames",)),
        Format("ndjson", (".ndjson", ".jsonl"), "frames as lines of JSON", ("frames",)),
    )
}
# By which a directory of ours is known.
CSV_METADATA: Final = "csv-metadata.json"


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that a file name means. BadExport: none."""
    name = os.fspath(path)
    for each in FORMATS.values():
        if name.endswith(each.suffixes):
            return each.name
    known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
    raise BadExport(f"{name}: no format goes by that name ({known}); say which (format=, --format)")


def _frames(names: Sequence[str] | None) -> list[frame_list.Frame]:
    for name in names or ():
        if name not in frame_list.BY_NAME:
            raise BadExport(f"there is no frame {name!r}; there are {', '.join(frame_list.BY_NAME)}")
    return [frame_list.BY_NAME[name] for name in dict.fromkeys(names or frame_list.BY_NAME)]


def schema(format: str, frames: Sequence[str] | None = None) -> Any:
    """The schema of a table format, as an object that can be printed as JSON.

    ndjson: JSON Schema of a line; csv: metadata of "CSV on the Web"; parquet: the Arrow schema as
    text (extra "arrow"). BadExport: another format.
    """
    chosen = _frames(frames)
    if format == "ndjson":
        return ndjson_schema(chosen)
    if format == "csv":
        return csv_metadata([(frame, f"{frame.name}.csv") for frame in chosen], None)
    if format == "parquet":
        return {frame.name: str(arrow_schema(frame, None)).split("\n") for frame in chosen}
    raise BadExport(f"format {format} has no schema to print; ndjson, csv and parquet have")


def check_choice(toll: str | None, owner: str | None) -> None:
    """BadExport: there is no such toll, or owner."""
    if toll is not None and toll not in frame_list.TOLLS:
        raise BadExport(f"there is no toll {toll!r}; there are {', '.join(frame_list.TOLLS)}")
    if owner is not None and owner not in OWNERS:
        raise BadExport(f"there is no owner {owner!r}; there are {', '.join(OWNERS)}")


def export(
    rec: Recording,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    toll: str | None = None,
    owner: str | None = None,
    frames: Sequence[str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write a recording in another tool's format.

    path: the file or, for several frames as csv or parquet, the directory to make; "-" standard
    output (one file only). It is there whole or not at all, and replaced only with force. Who may not read
    the recording may not read it.
    format: a name of FORMATS; None: by the suffix of path.
    toll: pprof, otlp, speedscope, firefox, folded: only this one (folded: then exactly `memtoll report --folded`).
    owner: the same but folded: "allocated" (default) or "touched", where samples are put.
    frames: csv, ndjson, parquet: names of memtoll.frames.FRAMES; None: all.
    progress: as for memtoll.open.

    Exists, BadExport, MissingExtra: what their names say. OSError: as from open().
    """
    destination = Path(path)
    name = format or format_of(destination)
    if name not in FORMATS:
        raise BadExport(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    given = {"toll": toll, "owner": owner, "frames": frames}
    for option, value in given.items():
        if value is not None and option not in FORMATS[name].options:
            having = ", ".join(each.name for each in FORMATS.values() if option in each.options)
            raise BadExport(f"format {name} knows no {option}; these do: {having}")
    check_choice(toll, owner)
    chosen = _frames(frames)
    if name in ("csv", "parquet") and len(chosen) > 1:
        if str(destination) == STDOUT:
            raise BadExport(f"standard output takes one frame as {name}; say which (frames=, --frame)")
        if destination.name.endswith(FORMATS[name].suffixes):
            raise BadExport(
                f"{destination} is the name of one file, and there are {len(chosen)} frames: say which "
                f"(frames=, --frame), or name a directory (format={name!r}, --format {name})"
            )
        _export_directory(rec, name, chosen, destination, force, progress)
        return
    write: dict[str, Callable[[About, Path], None]] = {
        "pprof": lambda facts, file: pprof.write(rec, facts, file, owner or OWNERS[0], toll),
        "folded": lambda facts, file: folded.write(rec, facts, file, toll),
        "otlp": lambda facts, file: otlp.write(rec, facts, file, owner or OWNERS[0], toll),
        "speedscope": lambda facts, file: speedscope.write(rec, facts, file, owner or OWNERS[0], toll),
        "firefox": lambda facts, file: firefox.write(rec, facts, file, owner or OWNERS[0], toll, progress),
        "perfetto": lambda facts, file: perfetto.write(rec, facts, file, progress),
        "parquet": lambda facts, file: tables.write_parquet(rec, facts, chosen[0], file, progress),
        "csv": lambda facts, file: tables.write_csv(rec, chosen[0], file, progress),
        "ndjson": lambda facts, file: tables.write_ndjson(rec, facts, chosen, file, progress),
    }
    with new_output(destination, force, permissions(rec.path)) as file:
        with understanding(rec.path):
            facts = about(rec)
            write[name](facts, file)
        if name == "csv" and str(destination) != STDOUT:
            # First what explains the table, then the table.
            beside = destination.with_name(f"{destination.name}-metadata.json")
            with new_file(beside, force, permissions(rec.path)) as metadata:
                tables.write_csv_metadata([(chosen[0], destination.name)], facts, metadata)


def _export_directory(
    rec: Recording,
    name: str,
    chosen: Sequence[frame_list.Frame],
    destination: Path,
    force: bool,
    progress: Progress | None,
) -> None:
    mark = CSV_METADATA if name == "csv" else f"{chosen[0].name}.parquet"
    with new_directory(destination, force, permissions(rec.path), mark) as directory, understanding(rec.path):
        facts = about(rec)
        for frame in chosen:
            file = directory / f"{frame.name}.{name}"
            if name == "csv":
                tables.write_csv(rec, frame, file, progress)
            else:
                tables.write_parquet(rec, facts, frame, file, progress)
        if name == "csv":
            listed = [(frame, f"{frame.name}.csv") for frame in chosen]
            tables.write_csv_metadata(listed, facts, directory / CSV_METADATA)
