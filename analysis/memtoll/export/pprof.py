# SPDX-License-Identifier: GPL-2.0
"""A profile for pprof: sites as samples of time, bytes and count, tolls as tags.

    go tool pprof -top -sample_index=bytes -tagfocus=toll=zero.kernel server.pb.gz
    go tool pprof -http=localhost:8080 -tagroot=family,toll server.pb.gz

Labels of a sample: toll, family, call. Addresses are offsets in the module (what addr2line takes)
in a range made for each module, for the processes of a recording have it in different places.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..visible import visible
from .about import About
from .profile_proto import profile_class
from .samples import MODULE_BITS, PAGE, UNKNOWN, Place, samples

if TYPE_CHECKING:
    from ..recording import Recording

SAMPLE_TYPES: Final = (("time", "nanoseconds"), ("bytes", "bytes"), ("count", "count"))


@dataclass
class Builder:
    """A profile under construction: every text, function, location and mapping once."""

    profile: Any
    strings: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    locations: dict[Place, int] = field(default_factory=dict)
    mappings: dict[tuple[str, str], Any] = field(default_factory=dict)

    def text(self, text: str) -> int:
        # go tool pprof prints names on the terminal as they are.
        text = visible(text)
        number = self.strings.setdefault(text, len(self.strings))
        if number == len(self.profile.string_table):
            self.profile.string_table.append(text)
        return number

    def function(self, name: str, file: str) -> int:
        key = (name, file)
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            self.profile.function.add(
                id=self.functions[key], name=self.text(name), system_name=self.text(name), filename=self.text(file)
            )
        return self.functions[key]

    def mapping(self, module: str, build_id: str, offset: int) -> Any:
        key = (module, build_id)
        if key not in self.mappings:
            number = len(self.mappings) + 1
            start = number << MODULE_BITS
            self.mappings[key] = self.profile.mapping.add(
                id=number,
                memory_start=start,
                memory_limit=start + PAGE,
                filename=self.text(module),
                build_id=self.text(build_id),
                has_functions=True,
                has_filenames=True,
                has_line_numbers=True,
                has_inline_frames=True,
            )
        mapping = self.mappings[key]
        limit = mapping.memory_start + (offset // PAGE + 1) * PAGE
        mapping.memory_limit = max(mapping.memory_limit, limit)
        return mapping

    def location(self, place: Place) -> int:
        if place not in self.locations:
            self.locations[place] = len(self.locations) + 1
            location = self.profile.location.add(id=self.locations[place])
            if place.module:
                offset = place.offset & (1 << MODULE_BITS) - 1
                mapping = self.mapping(place.module, place.build_id, offset)
                location.mapping_id = mapping.id
                location.address = mapping.memory_start + offset
                mapping.has_functions &= all(name for name, _, _ in place.lines)
                mapping.has_filenames &= all(file for _, file, _ in place.lines)
                mapping.has_line_numbers &= all(line for _, _, line in place.lines)
            for name, file, line in place.lines:
                if name or not place.module:
                    location.line.add(function_id=self.function(name or UNKNOWN, file), line=line)
        return self.locations[place]


def profile(rec: Recording, about: About, owner: str, toll: str | None) -> Any:
    """The message Profile of a recording, of one toll or of all (None).

    owner: "allocated" puts a sample where the memory was allocated and, where that is not known,
    where it was touched; "touched" the other way round.
    """
    builder = Builder(profile_class()())
    made = builder.profile
    builder.text("")
    for kind, unit in SAMPLE_TYPES:
        made.sample_type.add(type=builder.text(kind), unit=builder.text(unit))
    made.default_sample_type = builder.text(SAMPLE_TYPES[0][0])
    made.time_nanos = about.start_realtime_ns
    made.duration_nanos = round(about.duration_s * 1e9)
    made.comment.extend(builder.text(line) for line in about.lines())

    if about.executable:
        # The first mapping is taken for the program itself.
        builder.mapping(about.executable, about.build_id, 0)
    for each in samples(rec, owner, toll):
        where = [builder.location(place) for place in each.stack]
        sample = made.sample.add(location_id=where, value=[each.time_ns, each.bytes, each.count])
        for key, text in (("toll", each.toll), ("family", each.family), ("call", each.call)):
            if text:
                sample.label.add(key=builder.text(key), str=builder.text(text))
    return made


def write(rec: Recording, about: About, path: Path, owner: str, toll: str | None) -> None:
    """Write it, compressed as pprof expects it; the same recording gives the same bytes."""
    data = profile(rec, about, owner, toll).SerializeToString(deterministic=True)
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(data)
