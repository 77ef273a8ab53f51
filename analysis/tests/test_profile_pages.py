# SPDX-License-Identifier: GPL-2.0
"""Files for speedscope and the Firefox profiler: of the formats that they publish, and with every site's figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import memtoll
from memtoll.export import export, firefox
from memtoll.export.samples import Place

from facts import MS, Facts
from hostile import FORMULA, SCRIPT, hostile
from package import RECORDINGS, Cli

# What speedscope's file-format-spec.ts says of a file with sampled profiles, and that there is nothing else.
NAMED: dict[str, Any] = {"type": "string", "minLength": 1}
INDEX: dict[str, Any] = {"type": "integer", "minimum": 0}
SPEEDSCOPE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": NAMED,
        "exporter": {"pattern": "^memtoll@"},
        "activeProfileIndex": {"const": 0},
        "shared": {
            "type": "object",
            "additionalProperties": False,
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "uniqueItems": True,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["name"],
                        "properties": {"name": NAMED, "file": NAMED, "line": {"type": "integer", "minimum": 1}},
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                "properties": {
                    "type": {"const": "sampled"},
                    "name": NAMED,
                    "unit": {"enum": ["nanoseconds", "bytes"]},
                    "startValue": {"const": 0},
                    "endValue": INDEX,
                    "samples": {"type": "array", "items": {"type": "array", "minItems": 1, "items": INDEX}},
                    "weights": {"type": "array", "items": INDEX},
                },
            },
        },
    },
}
# What the profiler's types (profile.ts, version 61) ask of tables: column -> the table that it points into, or how the
# values are. "?" after it: or null.
COLUMNS = {
    "stackTable": {"frame": "frameTable", "prefix": "stackTable?"},
    "frameTable": {
        "address": "address", "inlineDepth": "number", "category": "number", "subcategory": "number",
        "func": "funcTable", "nativeSymbol": "nativeSymbols?", "innerWindowID": "number", "line": "number?",
        "column": "number?",
    },
    "funcTable": {
        "name": "stringArray", "isJS": "bool", "relevantForJS": "bool", "resource": "resource", "source": "sources?",
        "lineNumber": "number?", "columnNumber": "number?",
    },
    "resourceTable": {"lib": "libs", "name": "stringArray", "host": "stringArray?", "type": "number"},
    "nativeSymbols": {"libIndex": "libs", "address": "address", "name": "stringArray", "functionSize": "number?"},
    "sources": {
        "id": "string?", "filename": "stringArray", "startLine": "number", "startColumn": "number",
        "sourceMapURL": "stringArray?",
    },
}  # fmt: skip
NUMBERS = {"number": 0, "address": -1, "resource": -1}


def loaded(rec: memtoll.Recording, path: Path, **options: Any) -> Any:
    """What a page's reader of JSON reads: no NaN, and ASCII."""
    export(rec, path, **options)
    content = path.read_bytes()
    assert content.isascii()

    def refuse(text: str) -> None:
        raise AssertionError(text)

    return json.loads(content, parse_constant=refuse)


def sums(rec: memtoll.Recording, column: str) -> dict[str, int]:
    """Of each toll's sites; time in nanoseconds, as exports round it."""
    found: dict[str, int] = {}
    for site in rec.sites.to_dict("records"):
        value = round(site["time_s"] * 1e9) if column == "time_s" else site[column]
        found[site["toll"]] = found.get(site["toll"], 0) + value
    return {toll: value for toll, value in found.items() if value}


# ---- speedscope


def checked_speedscope(whole: Any) -> Any:
    jsonschema.validate(whole, SPEEDSCOPE)
    frames = len(whole["shared"]["frames"])
    for profile in whole["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(frame < frames for stack in profile["samples"] for frame in stack)
    return whole


def test_speedscope_has_every_site(scenario: Path, tmp_path: Path) -> None:
    with memtoll.open(scenario) as rec:
        whole = checked_speedscope(loaded(rec, tmp_path / "x.speedscope.json"))
        by_name = {profile["name"]: profile for profile in whole["profiles"]}
        assert len(by_name) == len(whole["profiles"])
        for column, label in (("time_s", "time"), ("bytes", "bytes")):
            expected = {f"{toll}, {label}": value for toll, value in sums(rec, column).items()}
            found = {name: each["endValue"] for name, each in by_name.items() if name.endswith(f", {label}")}
            if label == "time":
                assert found.pop("all tolls, time") == sum(expected.values())
            assert found == expected
        assert whole["profiles"][0]["name"] == "all tolls, time"
        assert rec.verdict.sentence in whole["name"]


def test_speedscope_stacks(heap_blocks: Path, tmp_path: Path) -> None:
    """The calloc of casebook 1: root first, the toll above it in the first profile."""
    with memtoll.open(heap_blocks) as rec:
        whole = checked_speedscope(loaded(rec, tmp_path / "x.speedscope.json"))
        one = checked_speedscope(loaded(rec, tmp_path / "one.speedscope.json", toll="zero.libc"))
        cleared = int(rec.toll.loc["zero.libc", "bytes"])
        for owner in ("allocated", "touched"):
            found = loaded(rec, tmp_path / f"{owner}.speedscope.json", toll="zero.kernel", owner=owner)
            named = any("memset" in frame["name"] for frame in found["shared"]["frames"])
            assert named == (owner == "touched")
    frames = whole["shared"]["frames"]
    stack = [frames[number]["name"] for number in whole["profiles"][0]["samples"][0]]
    assert stack[0] == "zero.libc"
    assert stack[-2:] == ["round_once", "calloc"]
    assert {"name": "round_once", "file": "/src/calloc_loop.c", "line": 42} in frames
    assert [profile["name"] for profile in one["profiles"]] == ["zero.libc, time", "zero.libc, bytes"]
    assert one["profiles"][1]["endValue"] == cleared
    assert one["profiles"][1]["unit"] == "bytes"


def test_speedscope_says_what_was_lost(busy: Path, tmp_path: Path) -> None:
    with memtoll.open(busy) as rec:
        assert "69 ring_fault" in checked_speedscope(loaded(rec, tmp_path / "x.speedscope.json"))["name"]


# ---- Firefox


def checked_firefox(whole: Any) -> Any:
    shared = whole["shared"]
    lengths = {name: shared[name]["length"] for name in COLUMNS}
    lengths |= {"stringArray": len(shared["stringArray"]), "libs": len(whole["libs"])}
    for name, columns in COLUMNS.items():
        table = shared[name]
        assert set(table) == {*columns, "length"}, name
        for column, kind in columns.items():
            assert len(table[column]) == table["length"], (name, column)
            for value in table[column]:
                check_value(value, kind, lengths, len(shared["resourceTable"]["lib"]))
    # A stack's parent comes before it.
    assert all(prefix is None or prefix < at for at, prefix in enumerate(shared["stackTable"]["prefix"]))
    assert len(set(shared["stringArray"])) == len(shared["stringArray"])
    for lib in whole["libs"]:
        assert set(lib) == {"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"}
    for thread in whole["threads"]:
        rows = thread["samples"]
        assert set(rows) == {"stack", "time", "weight", "weightType", "length"}
        assert len(rows["stack"]) == len(rows["time"]) == len(rows["weight"]) == rows["length"]
        assert rows["time"] == sorted(rows["time"])
        assert all(0 <= stack < lengths["stackTable"] for stack in rows["stack"])
        assert rows["weightType"] in ("tracing-ms", "bytes", "samples")
        assert isinstance(thread["pid"], str) and isinstance(thread["name"], str)
        assert all(not column for name, column in thread["markers"].items() if name != "length")
        # What is after the profile's end the profiler leaves out, without a word.
        for at, weight in zip(rows["time"], rows["weight"]):
            assert at + (weight if rows["weightType"] == "tracing-ms" else 0) <= whole["meta"]["profilingEndTime"]
            assert at < whole["meta"]["profilingEndTime"]
    assert whole["threads"]
    meta = whole["meta"]
    assert (meta["preprocessedProfileVersion"], meta["markerSchema"]) == (61, [])
    assert [category["color"] for category in meta["categories"]] == ["grey"]
    return whole


def check_value(value: Any, kind: str, lengths: dict[str, int], resources: int) -> None:
    if value is None:
        assert kind.endswith("?"), kind
        return
    kind = kind.rstrip("?")
    if kind == "bool":
        assert isinstance(value, bool)
    elif kind == "string":
        assert isinstance(value, str)
    else:
        assert isinstance(value, int) and not isinstance(value, bool)
        least = NUMBERS.get(kind, 0)
        most = resources if kind == "resource" else lengths.get(kind, 1 << 53)
        assert least <= value < most, (kind, value)


def functions(whole: Any, stack: int) -> list[str]:
    """Names of a stack, root first."""
    shared, names = whole["shared"], []
    at: int | None = stack
    while at is not None:
        func = shared["frameTable"]["func"][shared["stackTable"]["frame"][at]]
        names.append(shared["stringArray"][shared["funcTable"]["name"][func]])
        at = shared["stackTable"]["prefix"][at]
    return names[::-1]


def test_firefox_has_every_site_and_every_run(scenario: Path, tmp_path: Path) -> None:
    with memtoll.open(scenario) as rec:
        whole = checked_firefox(loaded(rec, tmp_path / "x.firefox.json"))
        tolls = {thread["name"]: thread for thread in whole["threads"] if thread["pid"].startswith("toll ")}
        runs = [thread for thread in whole["threads"] if not thread["pid"].startswith("toll ")]
        assert {name: round(sum(each["samples"]["weight"]) * 1e6) for name, each in tolls.items()} == sums(
            rec, "time_s"
        )
        assert all(each["samples"]["weightType"] == "tracing-ms" for each in tolls.values())
        found = sorted(
            (int(each["pid"]), each["tid"], round(at * 1e6), weight)
            for each in runs
            for at, weight in zip(each["samples"]["time"], each["samples"]["weight"])
        )
        assert found == sorted(
            (run["pid"], run["tid"], run["start_ns"] - rec.origin_ns, run["pages"] * 4096)
            for run in rec.faults.to_dict("records")
        )
        assert rec.verdict.sentence in whole["meta"]["extra"][0]["label"]


def test_firefox_runs(busy: Path, tmp_path: Path) -> None:
    """Runs of several processes, with their stacks, and what was lost."""
    with memtoll.open(busy) as rec:
        whole = checked_firefox(loaded(rec, tmp_path / "x.firefox.json"))
        runs = [thread for thread in whole["threads"] if not thread["pid"].startswith("toll ")]
        assert {thread["processName"] for thread in runs} == {"worker42", "worker43", "worker47"}
        assert sum(thread["samples"]["length"] for thread in runs) == len(rec.faults) > 200
        assert functions(whole, runs[0]["samples"]["stack"][0]) == ["main", "load", "calloc"]
        touched = loaded(rec, tmp_path / "t.firefox.json", owner="touched", toll="swap.in")
        last = touched["threads"][-1]
        assert functions(touched, last["samples"]["stack"][0]) == ["main", "load", "fill"]
        counts = rec.faults["toll"].value_counts()
        rows = [thread["samples"]["length"] for thread in touched["threads"] if thread["pid"].isdigit()]
        assert sum(rows) == counts["swap.in"]
    entries = {entry["label"]: entry["value"] for entry in whole["meta"]["extra"][0]["entries"]}
    assert entries["lost ring_fault"] == "69"
    assert "69 ring_fault" in whole["meta"]["extra"][0]["label"]


def test_firefox_shows_tracks_to_their_end(tmp_path: Path) -> None:
    """Of four threads that took three seconds together in one."""
    made = Facts(tmp_path / "x.memtoll")
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    for line in (11, 29):
        made.call("malloc", made.stack(("malloc", "", 0), ("load", "/src/a.c", line)), 1009, cpu_ns=1500 * MS)
    made.cpu(4000 * MS)
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    with memtoll.open(tmp_path / "x.memtoll") as rec:
        whole = checked_firefox(loaded(rec, tmp_path / "x.firefox.json"))
        took_ms, duration_ms = float(rec.toll.loc["alloc", "time_s"]) * 1e3, rec.duration_s * 1e3
    assert took_ms > 2 * duration_ms
    assert whole["meta"]["profilingEndTime"] == pytest.approx(took_ms, rel=1e-6)


def test_firefox_without_anything(tmp_path: Path) -> None:
    made = Facts(tmp_path / "empty.memtoll")
    made.prices()
    made.meta(format="1", target_command="x", complete="1")
    made.save()
    with memtoll.open(tmp_path / "empty.memtoll") as rec:
        whole = checked_firefox(loaded(rec, tmp_path / "x.firefox.json"))
        flames = checked_speedscope(loaded(rec, tmp_path / "x.speedscope.json"))
    assert [thread["name"] for thread in whole["threads"]] == ["nothing"]
    assert [profile["endValue"] for profile in flames["profiles"]] == [0]


def test_inlined_functions(tmp_path: Path) -> None:
    """A place is one address; what is inlined there comes after what it is in."""
    builder = firefox.Builder()
    place = Place("/srv/program", "c0ffee", 4711, (("inner", "/src/a.c", 11), ("outer", "/src/a.c", 23)))
    node = builder.stack((place, Place("", "", 0, (("main", "", 0),))))
    shared = builder.shared()
    assert functions({"shared": shared}, node) == ["main", "outer", "inner"]
    assert shared["frameTable"]["address"] == [-1, 4711, 4711]
    assert shared["frameTable"]["inlineDepth"] == [0, 0, 1]
    assert shared["frameTable"]["line"] == [None, 23, 11]
    assert builder.libs[0]["codeId"] == "c0ffee"
    assert builder.stack((place, Place("", "", 0, (("main", "", 0),)))) == node


# ---- text of others


def texts(value: Any) -> list[str]:
    """Every text of an object, keys too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for each in value.values() for text in texts(each))]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else []


@pytest.mark.parametrize(("name", "check"), [("speedscope", checked_speedscope), ("firefox", checked_firefox)])
def test_text_of_others_is_data(tmp_path: Path, name: str, check: Any) -> None:
    hostile(tmp_path / "hostile.memtoll")
    with memtoll.open(tmp_path / "hostile.memtoll") as rec:
        whole = check(loaded(rec, tmp_path / f"x.{name}.json", owner="touched"))
    found = texts(whole)
    # Whole, and shown as it is: no control or direction characters for whoever shows it, or prints the file.
    assert {SCRIPT, FORMULA} <= set(found)
    assert all(text.isprintable() for text in found)
    assert any("\\u202e" in text for text in found) and any("\\x1b" in text for text in found)


@pytest.mark.parametrize("name", ["speedscope", "firefox"])
def test_redacted(cli: Cli, tmp_path: Path, name: str) -> None:
    kept = RECORDINGS / "format-1.memtoll"
    out = {}
    for words in ([], ["--redact"]):
        path = tmp_path / f"{len(words)}.{name}.json"
        done = cli("export", *words, kept, "-o", path)
        assert done.returncode == 0, done.stderr
        out[bool(words)] = path.read_text()
    secret = re.compile("calloc_loop|demo|x86_64-linux-gnu|--touch|format-1|10485760 1009")
    assert secret.search(out[False])
    assert not secret.search(out[True])
    assert "file-" in out[True]
