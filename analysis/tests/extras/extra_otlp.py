# SPDX-License-Identifier: GPL-2.0
"""OpenTelemetry's profiles, as the project's own generated classes read them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

import memtoll
from memtoll.export import export, otlp

from facts import Facts, S

TABLES = ("mapping", "location", "function", "link", "attribute", "stack")


def read(path: Path) -> Any:
    """The message, with what the format asks of its dictionary."""
    message = ProfilesData.FromString(path.read_bytes())
    checked(message.dictionary)
    return message


def checked(dictionary: Any) -> None:
    assert dictionary.string_table[0] == ""
    assert len(set(dictionary.string_table)) == len(dictionary.string_table)
    for name in TABLES:
        table = getattr(dictionary, f"{name}_table")
        rows = [row.SerializeToString(deterministic=True) for row in table]
        assert len(set(rows)) == len(rows), name
        # The zero value comes first.
        assert name == "link" or rows[0] == b"", name
    assert [(link.trace_id, link.span_id) for link in dictionary.link_table] == [(bytes(16), bytes(8))]
    for row in dictionary.location_table:
        mapping = dictionary.mapping_table[row.mapping_index]
        assert not row.mapping_index or mapping.memory_start <= row.address < mapping.memory_limit
        assert all(line.function_index < len(dictionary.function_table) for line in row.lines)
    for row in dictionary.stack_table:
        assert all(0 < index < len(dictionary.location_table) for index in row.location_indices)


def value_of(message: Any) -> Any:
    kind = message.WhichOneof("value")
    return getattr(message, kind) if kind else None


def attributes(dictionary: Any, indices: Any) -> dict[str, Any]:
    rows = [dictionary.attribute_table[index] for index in indices]
    found = {dictionary.string_table[row.key_strindex]: value_of(row.value) for row in rows}
    assert len(found) == len(rows)
    return found


def profiles(message: Any) -> dict[str, Any]:
    """By what is measured."""
    (of,) = message.resource_profiles
    (scope,) = of.scope_profiles
    assert scope.scope.name == "memtoll"
    strings = message.dictionary.string_table
    found = {strings[profile.sample_type.type_strindex]: profile for profile in scope.profiles}
    units = {name: strings[profile.sample_type.unit_strindex] for name, profile in found.items()}
    assert units == {"time": "ns", "bytes": "By", "count": "{event}"}
    ids = [bytes(profile.profile_id) for profile in scope.profiles]
    assert len(set(ids)) == 3 and all(len(each) == 16 and any(each) for each in ids)
    return found


def functions(dictionary: Any, stack: int) -> tuple[str, ...]:
    """Names of a stack, leaf first."""
    places = [dictionary.location_table[index] for index in dictionary.stack_table[stack].location_indices]
    lines = [dictionary.function_table[line.function_index] for place in places for line in place.lines]
    return tuple(dictionary.string_table[each.name_strindex] for each in lines)


def sums(message: Any, name: str) -> Counter[tuple[str, str, str]]:
    """By toll, family and call."""
    found: Counter[tuple[str, str, str]] = Counter()
    identities = set()
    for sample in profiles(message)[name].samples:
        said = attributes(message.dictionary, sample.attribute_indices)
        (value,) = sample.values
        assert value > 0 and not sample.timestamps_unix_nano and sample.stack_index > 0
        identities.add((sample.stack_index, tuple(sorted(said.items()))))
        found[said["memtoll.toll"], said["memtoll.family"], said.get("memtoll.call", "")] += value
    # One sample for each identity.
    assert len(identities) == len(profiles(message)[name].samples)
    return found


def expected(rec: memtoll.Recording, column: str) -> Counter[tuple[str, str, str]]:
    families = rec.toll["family"].to_dict()
    found: Counter[tuple[str, str, str]] = Counter()
    for site in rec.sites.to_dict("records"):
        value = round(site["time_s"] * 1e9) if column == "time_s" else site[column]
        if value:
            found[site["toll"], families[site["toll"]], site["call"]] += value
    return found


def test_every_site_is_a_sample(scenario: Path, tmp_path: Path) -> None:
    with memtoll.open(scenario) as rec:
        export(rec, tmp_path / "x.otlp")
        message = read(tmp_path / "x.otlp")
        for name, column in (("time", "time_s"), ("bytes", "bytes"), ("count", "count")):
            assert sums(message, name) == expected(rec, column)
        for profile in profiles(message).values():
            assert profile.duration_nano == round(rec.duration_s * 1e9)
            said = attributes(message.dictionary, profile.attribute_indices)
            assert said["memtoll.verdict"] == rec.verdict.sentence
            missing = rec.toll.index[rec.toll["not_captured"].notna()]
            assert {name for name in said if ".not_captured." in name} == {
                f"memtoll.not_captured.{toll}" for toll in missing
            }


def test_stacks_owners_and_the_process(heap_blocks: Path, tmp_path: Path) -> None:
    """The calloc of casebook 1: leaf first, with its line."""
    found = {}
    with memtoll.open(heap_blocks) as rec:
        for owner in ("allocated", "touched"):
            export(rec, tmp_path / f"{owner}.otlp", toll="zero.kernel", owner=owner)
            found[owner] = read(tmp_path / f"{owner}.otlp")
        export(rec, tmp_path / "libc.otlp", toll="zero.libc")
        libc = read(tmp_path / "libc.otlp")
        assert sum(sums(libc, "bytes").values()) == int(rec.toll.loc["zero.libc", "bytes"])
        resource = {each.key: value_of(each.value) for each in libc.resource_profiles[0].resource.attributes}
        assert resource["process.command_line"] == rec.target["command"]
        assert resource["process.pid"] == rec.processes.index[0]
    for owner, message in found.items():
        names = {name for stack in range(len(message.dictionary.stack_table)) for name in
                 functions(message.dictionary, stack)}  # fmt: skip
        assert ("__memset_avx2_unaligned" in names) == (owner == "touched")
    (sample,) = profiles(libc)["bytes"].samples
    assert functions(libc.dictionary, sample.stack_index)[:2] == ("calloc", "round_once")
    strings = libc.dictionary.string_table
    lines = {
        (strings[of.name_strindex], strings[of.filename_strindex], line.line)
        for place in libc.dictionary.location_table
        for line in place.lines
        for of in [libc.dictionary.function_table[line.function_index]]
    }
    assert ("round_once", "/src/calloc_loop.c", 42) in lines


def test_losses_are_exported(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        export(rec, tmp_path / "x.otlp")
        message = read(tmp_path / "x.otlp")
        assert sums(message, "count") == expected(rec, "count")
    for profile in profiles(message).values():
        said = attributes(message.dictionary, profile.attribute_indices)
        assert said["memtoll.lost.ring_fault"] == 69
        assert "69 ring_fault" in said["memtoll.note"]
        assert said["memtoll.complete"] is True


def test_export_is_reproducible(busy: Path, tmp_path: Path) -> None:
    """And of another toll it is another message, with other ids."""
    for name, toll in (("one", None), ("two", None), ("three", "map")):
        with memtoll.open(busy) as rec:
            export(rec, tmp_path / f"{name}.otlp", toll=toll)
    one, two, three = ((tmp_path / f"{name}.otlp").read_bytes() for name in ("one", "two", "three"))
    assert one == two != three
    ids = [{bytes(each.profile_id) for each in profiles(read(tmp_path / f"{name}.otlp")).values()} for name in
           ("one", "three")]  # fmt: skip
    assert not ids[0] & ids[1]


def test_inlined_functions_and_build_ids(tmp_path: Path) -> None:
    made = Facts(tmp_path / "inlined.memtoll")
    made.prices()
    made.slice()
    made.process(executable="/srv/program")
    stack = made.stack(("malloc", "", 0), ("inner", "/src/a.c", 11), ("outer", "/src/a.c", 23), ("", "", 0))
    made.call("malloc", stack, 1009, bytes=1009 * 4096, cpu_ns=10 * S // 100)
    made.cpu(S)
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    made.database.execute("UPDATE frame SET build_id = '4f1e09aa33bb' WHERE module = '/srv/program'")
    made.database.execute("UPDATE stack_frame SET inlined = 1, address = 4711 WHERE depth = 1")
    made.database.execute("UPDATE frame SET module_offset = 4711 WHERE file = '/src/a.c'")
    made.database.commit()
    made.database.close()
    with memtoll.open(tmp_path / "inlined.memtoll") as rec:
        export(rec, tmp_path / "x.otlp", toll="alloc")
    dictionary = read(tmp_path / "x.otlp").dictionary
    (place,) = [row for row in dictionary.location_table if len(row.lines) == 2]
    assert [line.line for line in place.lines] == [11, 23]
    # The program's mapping is the first one.
    assert place.mapping_index == 1
    mapping = dictionary.mapping_table[1]
    assert dictionary.string_table[mapping.filename_strindex] == "/srv/program"
    assert attributes(dictionary, mapping.attribute_indices) == {otlp.BUILD_ID: "4f1e09aa33bb"}
    assert place.address - mapping.memory_start == 4711
    # One without a name keeps its address.
    assert any(not row.lines and row.mapping_index for row in dictionary.location_table)


def test_names_that_are_written_the_same_are_the_same(tmp_path: Path) -> None:
    """What is not printable is escaped, and line breaks are spaces: entries, and samples, are there once."""
    made = Facts(tmp_path / "names.memtoll")
    made.prices()
    made.slice()
    made.process()
    for name, calls in (("a\x1bb", 1009), ("a\\x1bb", 11), ("a\nb", 29), ("a b", 47)):
        stack = made.stack((name, "/src/a.c", 11), module="")
        made.call("malloc", stack, calls, bytes=calls * 4096, cpu_ns=calls * 1000)
    made.cpu(S)
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    made.database.close()
    with memtoll.open(tmp_path / "names.memtoll") as rec:
        export(rec, tmp_path / "x.otlp", toll="alloc")
        message = read(tmp_path / "x.otlp")
        assert sums(message, "count") == Counter(
            {key: value for key, value in expected(rec, "count").items() if key[0] == "alloc"}
        )
    found = {
        functions(message.dictionary, sample.stack_index)[-1]: sample.values[0]
        for sample in profiles(message)["count"].samples
    }
    assert found == {"a\\x1bb": 1009 + 11, "a b": 29 + 47}


def test_a_recording_with_nothing_in_it(tmp_path: Path) -> None:
    made = Facts(tmp_path / "empty.memtoll")
    made.prices()
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    with memtoll.open(tmp_path / "empty.memtoll") as rec:
        export(rec, tmp_path / "empty.otlp")
    assert [len(each.samples) for each in profiles(read(tmp_path / "empty.otlp")).values()] == [0, 0, 0]


def test_a_file_is_what_a_request_is(heap_blocks: Path, tmp_path: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        export(rec, tmp_path / "x.otlp")
    content = (tmp_path / "x.otlp").read_bytes()
    assert ExportProfilesServiceRequest.FromString(content).SerializeToString(deterministic=True) == content
    assert ProfilesData.FromString(content).SerializeToString(deterministic=True) == content


def test_without_the_extra(heap_blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = "opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2"
    monkeypatch.setitem(sys.modules, service, None)
    with (
        memtoll.open(heap_blocks) as rec,
        pytest.raises(memtoll.MissingExtra, match=re.escape("pip install 'memtoll[otlp]'")),
    ):
        export(rec, tmp_path / "x.otlp")
    assert list(tmp_path.glob("*x.otlp*")) == []


def test_another_version_is_refused(heap_blocks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which would be read as something else: the numbers of fields are all that a message has of them."""
    monkeypatch.setattr(otlp, "SAMPLE_FIELDS", otlp.SAMPLE_FIELDS | {"values": 2})
    with memtoll.open(heap_blocks) as rec, pytest.raises(memtoll.MissingExtra, match=re.escape(otlp.PROTO)):
        export(rec, tmp_path / "x.otlp")
    assert list(tmp_path.glob("*x.otlp*")) == []
