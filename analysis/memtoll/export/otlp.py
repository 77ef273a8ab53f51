# SPDX-License-Identifier: GPL-2.0
"""Profiles of OpenTelemetry: sites as samples, one profile each of time, bytes and count.

The signal is in development: package opentelemetry.proto.profiles.v1development, as of release 1.10.0 of
opentelemetry-proto (1.11.0 has the same messages), which the extra's opentelemetry-proto brings compiled. A file is a
message ProfilesData; what is pushed, an ExportProfilesServiceRequest, has the same bytes.

Attributes of a sample: memtoll.toll, memtoll.family, memtoll.call. Of a profile: what was lost, the verdict. Of the
resource: the process and the host, by the names of the semantic conventions. Addresses are as in pprof's profile.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import MissingExtra
from ..extras import need
from ..visible import visible
from .about import About, main_program
from .samples import MODULE_BITS, PAGE, UNKNOWN, Place, Sample, samples

if TYPE_CHECKING:
    from ..recording import Recording

PROTO: Final = "1.10.0"
SAMPLE_TYPES: Final = (("time", "ns", "time_ns"), ("bytes", "By", "bytes"), ("count", "{event}", "count"))
BUILD_ID: Final = "process.executable.build_id.gnu"
ID_BYTES: Final = 16
SAMPLE_FIELDS: Final = {
    "stack_index": 1,
    "attribute_indices": 2,
    "link_index": 3,
    "values": 4,
    "timestamps_unix_nano": 5,
}

Attribute = str | int | float | bool


@dataclass
class Dictionary:
    """The tables that all profiles of a message share: every entry once, the first one the zero value.

    Once as it is written: names that differ in what is not printable may be the same there.
    """

    made: Any
    strings: dict[str, int] = field(default_factory=dict)
    attributes: dict[tuple[str, Attribute], int] = field(default_factory=dict)
    functions: dict[tuple[int, int], int] = field(default_factory=dict)
    mappings: dict[tuple[str, str], int] = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)
    locations: dict[tuple[int, int, tuple[tuple[int, int], ...]], int] = field(default_factory=dict)
    known: dict[tuple[Place, ...], int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.text("")
        for table in ("mapping", "location", "function", "attribute", "stack"):
            getattr(self.made, f"{table}_table").add()
        # All zero, but of full length, as the format advises.
        self.made.link_table.add(trace_id=bytes(16), span_id=bytes(8))

    def text(self, text: str) -> int:
        # Who shows them may print them as they are.
        text = visible(text)
        number = self.strings.setdefault(text, len(self.strings))
        if number == len(self.made.string_table):
            self.made.string_table.append(text)
        return number

    def attribute(self, name: str, value: Attribute) -> int:
        key = (name, visible(value) if isinstance(value, str) else value)
        if key not in self.attributes:
            self.attributes[key] = len(self.made.attribute_table)
            set_value(self.made.attribute_table.add(key_strindex=self.text(name)).value, value)
        return self.attributes[key]

    def function(self, name: str, file: str) -> int:
        key = (self.text(name), self.text(file))
        if key not in self.functions:
            self.functions[key] = len(self.made.function_table)
            self.made.function_table.add(name_strindex=key[0], filename_strindex=key[1])
        return self.functions[key]

    def mapping(self, module: str, build_id: str, offset: int) -> int:
        key = (module, build_id)
        if key not in self.mappings:
            number = self.mappings[key] = len(self.made.mapping_table)
            made = self.made.mapping_table.add(memory_start=number << MODULE_BITS, filename_strindex=self.text(module))
            if build_id:
                made.attribute_indices.append(self.attribute(BUILD_ID, build_id))
        number = self.mappings[key]
        made = self.made.mapping_table[number]
        made.memory_limit = max(made.memory_limit, made.memory_start + (offset // PAGE + 1) * PAGE)
        return number

    def location(self, place: Place) -> int:
        if place not in self.places:
            offset = place.offset & (1 << MODULE_BITS) - 1
            number = self.mapping(place.module, place.build_id, offset) if place.module else 0
            address = self.made.mapping_table[number].memory_start + offset if number else 0
            lines = tuple(
                (self.function(name or UNKNOWN, file), line)
                for name, file, line in place.lines
                if name or not place.module
            )
            key = (number, address, lines)
            if key not in self.locations:
                self.locations[key] = len(self.made.location_table)
                location = self.made.location_table.add(mapping_index=number, address=address)
                for function, line in lines:
                    location.lines.add(function_index=function, line=line)
            self.places[place] = self.locations[key]
        return self.places[place]

    def stack(self, places: tuple[Place, ...]) -> int:
        if places not in self.known:
            where = tuple(self.location(place) for place in places)
            if where not in self.stacks:
                self.stacks[where] = len(self.made.stack_table)
                self.made.stack_table.add(location_indices=where)
            self.known[places] = self.stacks[where]
        return self.known[places]

    def identity(self, sample: Sample) -> tuple[int, tuple[int, ...]]:
        """Of a sample: its stack and its attributes."""
        said = (("toll", sample.toll), ("family", sample.family), ("call", sample.call))
        attributes = tuple(self.attribute(f"memtoll.{name}", text) for name, text in said if text)
        return self.stack(sample.stack), attributes


def set_value(message: Any, value: Attribute) -> None:
    """Give an AnyValue its value."""
    if isinstance(value, bool):
        message.bool_value = value
    elif isinstance(value, int):
        message.int_value = value
    elif isinstance(value, float):
        message.double_value = value
    else:
        message.string_value = visible(value)


def messages() -> Any:
    """The generated module of the signal's service. MissingExtra: there is none, or it is of another version.

    While the signal is in development its messages change: numbers of fields changed last with 1.10.0.
    """
    service = need("otlp", "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
    profiles = need("otlp", "opentelemetry.proto.profiles.v1development.profiles_pb2")
    found = {each.name: each.number for each in profiles.Sample.DESCRIPTOR.fields}
    if found != SAMPLE_FIELDS:
        raise MissingExtra(
            f"the profiles of the opentelemetry-proto that is installed are not those of {PROTO}: "
            "pip install 'memtoll[otlp]'"
        )
    return service


def _resource(rec: Recording, about: About) -> dict[str, Attribute]:
    pid, _, _ = main_program(rec)
    found: dict[str, Attribute] = {
        "host.name": about.host,
        "os.type": "linux",
        "os.version": about.kernel,
        "process.pid": pid,
        "process.command_line": about.command,
        "process.executable.path": about.executable,
        "process.executable.name": about.executable.rpartition("/")[2],
        BUILD_ID: about.build_id,
    }
    return {name: value for name, value in found.items() if value}


def _facts(about: About) -> dict[str, Attribute]:
    """What a reader of the figures must know, as attributes of each profile."""
    facts: dict[str, Attribute] = {
        "memtoll.recording": about.recording,
        "memtoll.complete": about.complete,
        "memtoll.observed_s": about.observed_s,
        "memtoll.verdict": about.verdict,
    }
    if about.note:
        facts["memtoll.note"] = about.note
    facts |= {f"memtoll.lost.{name}": int(loss["count"]) for name, loss in about.losses.items()}
    facts |= {f"memtoll.not_captured.{toll}": reason for toll, reason in about.not_captured.items()}
    return facts


def _sums(dictionary: Dictionary, found: list[Sample], measure: str) -> dict[tuple[int, tuple[int, ...]], int]:
    """By identity, the sum of the values of all samples that have it, where they are not 0."""
    sums: dict[tuple[int, tuple[int, ...]], int] = {}
    for each in found:
        value = int(getattr(each, measure))
        if value:
            key = dictionary.identity(each)
            sums[key] = sums.get(key, 0) + value
    return sums


def request(rec: Recording, about: About, owner: str, toll: str | None) -> Any:
    """The message ExportProfilesServiceRequest of a recording, of one toll or of all (None).

    MissingExtra: no package opentelemetry-proto. The same recording gives the same message, and the same ids.
    """
    made = messages().ExportProfilesServiceRequest()
    dictionary = Dictionary(made.dictionary)
    of = made.resource_profiles.add()
    for name, value in _resource(rec, about).items():
        set_value(of.resource.attributes.add(key=name).value, value)
    scope = of.scope_profiles.add()
    scope.scope.name, scope.scope.version = "memtoll", about.memtoll
    if about.executable:
        # The first mapping is taken for the program itself.
        dictionary.mapping(about.executable, about.build_id, 0)
    facts = [dictionary.attribute(name, value) for name, value in _facts(about).items()]
    found = list(samples(rec, owner, toll))
    for kind, unit, measure in SAMPLE_TYPES:
        profile = scope.profiles.add(
            time_unix_nano=about.start_realtime_ns, duration_nano=round(about.duration_s * 1e9)
        )
        profile.sample_type.type_strindex = dictionary.text(kind)
        profile.sample_type.unit_strindex = dictionary.text(unit)
        profile.attribute_indices.extend(facts)
        for (stack, attributes), value in _sums(dictionary, found, measure).items():
            profile.samples.add(stack_index=stack, attribute_indices=attributes, values=[value])
    # By which a receiver that gets one twice may know it.
    whole = hashlib.sha256(made.SerializeToString(deterministic=True))
    for profile in scope.profiles:
        one = whole.copy()
        one.update(profile.sample_type.type_strindex.to_bytes(4, "big"))
        profile.profile_id = one.digest()[:ID_BYTES]
    return made


def data(rec: Recording, about: About, owner: str, toll: str | None) -> bytes:
    """The message of a recording as it is written and sent."""
    return bytes(request(rec, about, owner, toll).SerializeToString(deterministic=True))


def write(rec: Recording, about: About, path: Path, owner: str, toll: str | None) -> None:
    """Write it; the same recording gives the same bytes."""
    path.write_bytes(data(rec, about, owner, toll))
