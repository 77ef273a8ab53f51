# SPDX-License-Identifier: GPL-2.0
"""The tables of a fleet's dataset: columns, types, units, and since which version of the schema.

A dataset has the version of the newest file in it. A reader of version N reads all before it: a
column that came later is null in older files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..errors import DamagedRecording, NewerFormat
from ..extras import need

# Raise it when a column is added or changes its meaning; never take a column away.
VERSION: Final = 1
VERSION_KEY: Final = b"memtoll.dataset_version"
TABLE_KEY: Final = b"memtoll.table"
# Columns that are in the path of a file, not in it.
PARTITION: Final = ("host", "day")


@dataclass(frozen=True)
class Column:
    """type: string, int64, float64 or bool of Arrow; since: the version that brought it."""

    name: str
    type: str
    unit: str
    meaning: str
    since: int = 1


def _text(name: str, meaning: str) -> Column:
    return Column(name, "string", "", meaning)


def _number(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "int64", unit, meaning)


def _real(name: str, unit: str, meaning: str) -> Column:
    return Column(name, "float64", unit, meaning)


# In every table, so that questions need no joins: Parquet stores repeated texts once.
KEYS: Final = (
    _text("recording", "id: the same for all copies of a recording"),
    _text("service", "systemd unit or container of the main program, or its name"),
    _text("executable", "path of the main program"),
    _text("build", "build id of the main program; '' unknown"),
    _text("kernel", "release of the kernel"),
)

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "meta": (
        *KEYS,
        _text("machine", "architecture"),
        _text("command", "command line that was traced"),
        _text("source", "file name of the recording"),
        _number("format", "1", "format of the recording"),
        _text("tool_version", "memtoll that made it"),
        Column("complete", "bool", "", "it was finished"),
        _number("start_realtime_ns", "ns", "start, since 1970"),
        _real("duration_s", "s", "from start to end"),
        _real("observed_s", "s", "on the CPU or asleep in a fault"),
        _number("processes", "processes", "traced"),
        _text("dominant", "family, or 'none'"),
        _real("dominant_share", "0..1", "its part of the observed time"),
        _text("sentence", "the verdict"),
        _text("advice", "codes, joined by commas"),
        _real("overhead_pct", "%", "estimated cost of the probes"),
        _number("lossy", "0, 1", "1: a loss exceeded the limit"),
    ),
    "toll": (
        *KEYS,
        _text("toll", "what is paid for"),
        _text("family", "its family"),
        _real("time_s", "s", "time it took; null: not captured"),
        _real("share", "0..1", "part of the observed time of the recording"),
        _real("share_low", "0..1", "lower 95 % bound"),
        _real("share_high", "0..1", "upper 95 % bound"),
        _number("count", "events", "faults, calls or CPU samples"),
        _number("bytes", "bytes", "cleared, copied, brought in, asked for"),
        _number("pages", "pages", "the same in pages, where it is of pages"),
        _real("clear_s", "s", "of time_s: the clearing proper"),
        _real("blocked_s", "s", "of time_s: asleep"),
        _text("not_captured", "why the run could not see it; null where it did"),
        # Sums over rows must be sums over recordings, of a toll and of a family of several tolls.
        _real("observed_s", "s", "observed time of the recording; 0: toll not captured"),
        _number("recordings", "0, 1", "1: captured"),
        _number("lossy", "0, 1", "1: captured, and a loss exceeded the limit"),
        _real("family_observed_s", "s", "observed_s on the first captured toll of a family, else 0"),
        _number("family_recordings", "0, 1", "recordings on that toll, else 0"),
        _number("family_lossy", "0, 1", "lossy on that toll, else 0"),
    ),
    "sites": (
        *KEYS,
        _text("toll", "what is paid for"),
        _text("family", "its family"),
        _text("call", "the function that made the block; '' unknown"),
        _real("time_s", "s", "time it took"),
        _real("share", "0..1", "part of the observed time of the recording"),
        _number("count", "events", "faults, calls or CPU samples"),
        _number("bytes", "bytes", "cleared, copied, brought in, asked for"),
        _text("allocated_place", "the allocation's caller as the verdict names it; '' unknown"),
        _text("touched_place", "the touching code as the verdict names it; '' unknown"),
        _text("allocated_at", "functions from the root to the allocation call"),
        _text("touched_at", "functions from the root to the code that touched"),
    ),
    "classes": (
        *KEYS,
        _text("class", "class of fault"),
        _text("toll", "the toll it belongs to"),
        _real("time_s", "s", "time of the faults"),
        _real("blocked_s", "s", "of it: asleep"),
        _number("count", "faults", "faults of the class"),
        _number("pages", "pages", "pages they mapped"),
        _number("bytes", "bytes", "the same in bytes"),
        _real("mean_ns", "ns", "processor time of one"),
        _real("mean_error_ns", "ns", "95 % bound of the mean"),
    ),
    "losses": (
        *KEYS,
        _text("name", "what was lost"),
        _number("count", "events", "how many; only losses that happened have a row"),
        _real("share", "0..1", "part of its kind; null: it has none"),
        _text("measure", "its kind"),
        _number("exceeds", "0, 1", "1: beyond the limit"),
    ),
    "checks": (
        *KEYS,
        _text("name", "what was counted twice"),
        _number("ours", "events", "counted by the probes"),
        _number("kernel_count", "events", "counted by the kernel"),
        _number("difference", "events", "ours - kernel_count"),
        _number("ok", "0, 1", "1: they agree"),
    ),
}


def arrow_schema(table: str) -> Any:
    """Schema of a table's files, version included."""
    arrow = need("arrow", "pyarrow")
    types = {
        "string": arrow.string(),
        "int64": arrow.int64(),
        "float64": arrow.float64(),
        "bool": arrow.bool_(),
    }
    fields = [
        arrow.field(column.name, types[column.type], metadata={"unit": column.unit, "meaning": column.meaning})
        for column in TABLES[table]
    ]
    return arrow.schema(fields, metadata={VERSION_KEY: str(VERSION).encode(), TABLE_KEY: table.encode()})


def check_version(version: int, what: str) -> None:
    """NewerFormat where a newer memtoll made it."""
    if version > VERSION:
        raise NewerFormat(
            f"{what} has version {version} of the dataset's schema; this memtoll reads up to {VERSION}: upgrade it"
        )


def version_of(schema: Any, what: str) -> int:
    """The version in a file's metadata. DamagedRecording: it has none; NewerFormat."""
    text = (schema.metadata or {}).get(VERSION_KEY, b"")
    if not text.isdigit():
        raise DamagedRecording(f"{what} is no file of a memtoll dataset: it has no schema version")
    check_version(int(text), what)
    return int(text)


def conform(table: Any, name: str, version: int, what: str, columns: list[str]) -> dict[str, Any]:
    """Columns of a table that may be of an older version; those it cannot know are null."""
    arrow = need("arrow", "pyarrow")
    schema = arrow_schema(name)
    since = {column.name: column.since for column in TABLES[name]}
    arrays: dict[str, Any] = {}
    for column in columns:
        kind = schema.field(column).type
        if column in table.column_names:
            arrays[column] = table.column(column).cast(kind)
        elif since[column] > version:
            arrays[column] = arrow.nulls(table.num_rows, kind)
        else:
            raise DamagedRecording(f"{what} lacks column {column}")
    return arrays
