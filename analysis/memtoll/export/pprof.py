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

from .about import About
from .profile_proto import profile_class

if TYPE_CHECKING:
    from ..recording import Recording

OWNERS: Final = ("allocated", "touched")
SAMPLE_TYPES: Final = (("time", "nanoseconds"), ("bytes", "bytes"), ("count", "count"))
# Room for each module's addresses; the first range begins above 0, which stands for none.
MODULE_BITS: Final = 40
PAGE: Final = 4096
UNKNOWN: Final = "[unknown]"

Line = tuple[str, str, int]


@dataclass
class Builder:
    """A profile under construction: every text, function, location and mapping once."""

    profile: Any
    strings: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    locations: dict[tuple[str, int, tuple[Line, ...]], int] = field(default_factory=dict)
    mappings: dict[tuple[str, str], Any] = field(default_factory=dict)

    def text(self, text: str) -> int:
        number = self.strings.setdefault(text, len(self.strings))
        if number == len(self.profile.string_table):
            # Paths and names of traced programs may be no UTF-8, which the format asks for.
            self.profile.string_table.append(text.encode("utf-8", "replace").decode("utf-8"))
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

    def location(self, module: str, build_id: str, offset: int, lines: tuple[Line, ...]) -> int:
        """A place in the code with its functions, innermost first."""
        key = (f"{module}\0{build_id}", offset, lines)
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            location = self.profile.location.add(id=self.locations[key])
            if module:
                offset &= (1 << MODULE_BITS) - 1
                mapping = self.mapping(module, build_id, offset)
                location.mapping_id = mapping.id
                location.address = mapping.memory_start + offset
                mapping.has_functions &= all(name for name, _, _ in lines)
                mapping.has_filenames &= all(file for _, file, _ in lines)
                mapping.has_line_numbers &= all(line for _, _, line in lines)
            for name, file, line in lines:
                if name or not module:
                    location.line.add(function_id=self.function(name or UNKNOWN, file), line=line)
        return self.locations[key]


def _stacks(rec: Recording, builder: Builder) -> dict[int, list[int]]:
    """Locations of every stack by its id, leaf first."""
    table = rec.query(
        "SELECT s.stack_id, s.inlined, f.function, f.module, f.file, f.line, f.build_id, f.module_offset"
        " FROM main.stack_frame s JOIN main.frame f ON f.frame_id = s.frame_id ORDER BY s.stack_id, s.depth"
    )
    stacks: dict[int, list[int]] = {}
    lines: list[Line] = []
    rows = list(zip(*(table[name].tolist() for name in table.columns)))
    for row, after in zip(rows, [*rows[1:], None]):
        stack_id, inlined, function, module, file, line, build_id, offset = row
        lines.append((str(function), str(file), int(line)))
        # Inlined functions come before the one they are in, which has the address.
        if inlined and after is not None and after[0] == stack_id:
            continue
        place = builder.location(str(module), str(build_id), int(offset), tuple(lines))
        stacks.setdefault(int(stack_id), []).append(place)
        lines = []
    return stacks


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
    families = {str(name): str(family) for name, family in rec.toll["family"].items()}
    first, second = ("allocated_stack", "touched_stack")[:: 1 if owner == OWNERS[0] else -1]
    stacks = _stacks(rec, builder)
    unknown = builder.location("", "", 0, ((UNKNOWN, "", 0),))
    names = ["toll", "call", "time_s", "bytes", "count", first, second]
    for site_toll, call, time_s, size, count, one, other in zip(*(rec.sites[name].tolist() for name in names)):
        if toll is not None and site_toll != toll:
            continue
        where = stacks.get(one if one else other) or [unknown]
        sample = made.sample.add(location_id=where, value=[round(time_s * 1e9), size, count])
        for key, text in (("toll", site_toll), ("family", families[site_toll]), ("call", call)):
            if text:
                sample.label.add(key=builder.text(key), str=builder.text(text))
    return made


def write(rec: Recording, about: About, path: Path, owner: str, toll: str | None) -> None:
    """Write it, compressed as pprof expects it; the same recording gives the same bytes."""
    data = profile(rec, about, owner, toll).SerializeToString(deterministic=True)
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(data)
