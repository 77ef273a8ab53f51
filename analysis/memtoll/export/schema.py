# SPDX-License-Identifier: GPL-2.0
"""Schemas of exported tables, all made of the one list in memtoll.frames."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from ..extras import need
from ..frames import UTC, Column, Frame
from .about import About

# dtype of pandas -> types of JSON Schema, of CSVW, of Arrow.
JSON_TYPES: Final = {
    "int64": ("integer",),
    "int32": ("integer",),
    "uint64": ("integer",),
    "Int64": ("integer", "null"),
    "float64": ("number", "null"),
    "bool": ("boolean",),
    "boolean": ("boolean", "null"),
    "string": ("string", "null"),
    "category": ("string", "null"),
    UTC: ("string", "null"),
}
CSV_TYPES: Final = {
    "int64": "long",
    "int32": "int",
    "uint64": "unsignedLong",
    "Int64": "long",
    "float64": "double",
    "bool": "boolean",
    "boolean": "boolean",
    "string": "string",
    "category": "string",
    UTC: "dateTimeStamp",
}
ARROW_TYPES: Final = {
    "int64": "int64",
    "int32": "int32",
    "uint64": "uint64",
    "Int64": "int64",
    "float64": "float64",
    "bool": "bool_",
    "boolean": "bool_",
    "string": "string",
}
HEAD: Final = "recording"


def column_schema(column: Column) -> dict[str, Any]:
    """A column as JSON Schema has it."""
    types = list(JSON_TYPES[column.dtype])
    schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types, "description": column.meaning}
    if column.dtype == UTC:
        schema["format"] = "date-time"
    if column.unit:
        schema["x-unit"] = column.unit
    return schema


def frame_schema(frame: Frame) -> dict[str, Any]:
    """A row of a frame as JSON Schema has it: every column is there, and no other."""
    return {
        "type": "object",
        "description": frame.meaning,
        "properties": {
            "frame": {"const": frame.name},
            **{column.name: column_schema(column) for column in frame.columns},
        },
        "required": ["frame", *(column.name for column in frame.columns)],
        "additionalProperties": False,
    }


def ndjson_schema(frames: Sequence[Frame]) -> dict[str, Any]:
    """JSON Schema of a line of NDJSON: the first is the recording itself, each other one a row."""
    head = {
        "type": "object",
        "description": "First line: the recording, with its losses.",
        "properties": {
            "frame": {"const": HEAD},
            "losses": {
                "type": "object",
                "description": "what was lost: count of events, share 0..1 of its kind",
                "additionalProperties": {"type": "object", "required": ["count", "share", "of"]},
            },
            "complete": {"type": "boolean", "description": "false: the recording was not finished"},
        },
        "required": ["frame", *About.__dataclass_fields__],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a line of memtoll's NDJSON",
        "oneOf": [head, *(frame_schema(frame) for frame in frames)],
    }


def csv_metadata(tables: Sequence[tuple[Frame, str]], about: About | None) -> dict[str, Any]:
    """Metadata of CSV files as the W3C's "CSV on the Web" has it; (frame, file name) of each."""

    def table(frame: Frame, name: str) -> dict[str, Any]:
        return {
            "url": name,
            "dc:description": frame.meaning,
            "tableSchema": {
                "columns": [
                    {
                        "name": column.name,
                        "titles": column.name,
                        "datatype": CSV_TYPES[column.dtype],
                        "null": "",
                        "dc:description": column.meaning,
                        **({"schema:unitText": column.unit} if column.unit else {}),
                    }
                    for column in frame.columns
                ]
            },
        }

    whole: dict[str, Any] = {"@context": "http://www.w3.org/ns/csvw"}
    if about is not None:
        whole["notes"] = [about.as_dict()]
    made = [table(frame, name) for frame, name in tables]
    return whole | (made[0] if len(made) == 1 else {"tables": made})


def arrow_schema(frame: Frame, about: About | None) -> Any:
    """Schema of a frame for Parquet: units and meanings of columns, the recording as JSON."""
    arrow = need("arrow", "pyarrow")
    fields = []
    for column in frame.columns:
        if column.dtype == "category":
            kind = arrow.dictionary(arrow.int32(), arrow.string())
        elif column.dtype == UTC:
            kind = arrow.timestamp("ns", tz="UTC")
        else:
            kind = getattr(arrow, ARROW_TYPES[column.dtype])()
        nullable = "null" in JSON_TYPES[column.dtype]
        metadata = {"unit": column.unit, "meaning": column.meaning}
        fields.append(arrow.field(column.name, kind, nullable=nullable, metadata=metadata))
    metadata = {"memtoll.frame": frame.name, "memtoll.meaning": frame.meaning}
    if about is not None:
        metadata["memtoll.recording"] = json.dumps(about.as_dict())
    return arrow.schema(fields, metadata=metadata)
