# SPDX-License-Identifier: GPL-2.0
"""The messages of pprof's profile format, for the protobuf library.

No package of pip ships them compiled, and a compiler would be one more thing to need: the library
makes classes of a description, too. Field numbers and types are those of the format's definition
(profile.proto of pprof); texts are indices into string_table, of which the first one is "".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from ..extras import need

PACKAGE: Final = "perftools.profiles"

# message -> field -> (number, type); "repeated" before a type, or the name of a message.
MESSAGES: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "Profile": {
        "sample_type": (1, "repeated ValueType"),
        "sample": (2, "repeated Sample"),
        "mapping": (3, "repeated Mapping"),
        "location": (4, "repeated Location"),
        "function": (5, "repeated Function"),
        "string_table": (6, "repeated string"),
        "time_nanos": (9, "int64"),
        "duration_nanos": (10, "int64"),
        "comment": (13, "repeated int64"),
        "default_sample_type": (14, "int64"),
    },
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Sample": {
        "location_id": (1, "repeated uint64"),
        "value": (2, "repeated int64"),
        "label": (3, "repeated Label"),
    },
    "Label": {"key": (1, "int64"), "str": (2, "int64"), "num": (3, "int64"), "num_unit": (4, "int64")},
    "Mapping": {
        "id": (1, "uint64"),
        "memory_start": (2, "uint64"),
        "memory_limit": (3, "uint64"),
        "file_offset": (4, "uint64"),
        "filename": (5, "int64"),
        "build_id": (6, "int64"),
        "has_functions": (7, "bool"),
        "has_filenames": (8, "bool"),
        "has_line_numbers": (9, "bool"),
        "has_inline_frames": (10, "bool"),
    },
    "Location": {
        "id": (1, "uint64"),
        "mapping_id": (2, "uint64"),
        "address": (3, "uint64"),
        "line": (4, "repeated Line"),
    },
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64")},
    "Function": {
        "id": (1, "uint64"),
        "name": (2, "int64"),
        "system_name": (3, "int64"),
        "filename": (4, "int64"),
    },
}


@lru_cache(maxsize=1)
def profile_class() -> Any:
    """The class of message Profile. MissingExtra: no protobuf library."""
    descriptor_pb2 = need("pprof", "google.protobuf.descriptor_pb2")
    descriptor_pool = need("pprof", "google.protobuf.descriptor_pool")
    message_factory = need("pprof", "google.protobuf.message_factory")
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="memtoll/profile.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, text) in fields.items():
            *repeated, kind = text.split()
            label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            if kind in MESSAGES:
                added.type = field_type.TYPE_MESSAGE
                added.type_name = f".{PACKAGE}.{kind}"
            else:
                added.type = getattr(field_type, f"TYPE_{kind.upper()}")
    # A pool of its own: a program that has the real definition loaded is not disturbed.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Profile"))
