# SPDX-License-Identifier: GPL-2.0
"""Text of others in formats that need an extra: as their own readers read it, it is data, and hidden if asked."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from extra_pprof import pprof
from google.protobuf.message import Message
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from processor import ask

import memtoll
from memtoll import frames
from memtoll.export import export
from memtoll.export.profile_proto import profile_class
from memtoll.visible import visible

from hostile import FORMULA, NAMES, SCRIPT, hostile, stored
from package import RECORDINGS

# What a terminal, or an editor, obeys; line breaks and tabs are the reader's own.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names that try everything."""
    made = tmp_path_factory.mktemp("hostile") / "hostile.memtoll"
    hostile(made)
    return made


def texts(message: Message) -> list[str]:
    """Every text of a message; bytes as the text that they are."""
    found: list[str] = []
    for field, value in message.ListFields():
        for each in (
            value if isinstance(value, (list, tuple)) or hasattr(value, "append") or hasattr(value, "add") else [value]
        ):
            if isinstance(each, Message):
                found += texts(each)
            elif isinstance(each, str):
                found.append(each)
            elif isinstance(each, bytes) and field.name == "str":
                found.append(each.decode())
    return found


def read_pprof(file: Path) -> list[str]:
    return list(profile_class().FromString(gzip.decompress(file.read_bytes())).string_table)


def read_perfetto(file: Path) -> list[str]:
    return texts(Trace.FromString(file.read_bytes()))


def read_otlp(file: Path) -> list[str]:
    return texts(ProfilesData.FromString(file.read_bytes()))


READERS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "pprof": ("x.pb.gz", read_pprof),
    "perfetto": ("x.pftrace", read_perfetto),
    "otlp": ("x.otlp", read_otlp),
}


@pytest.mark.parametrize("name", READERS)
def test_names_are_whole_and_steer_nothing(path: Path, tmp_path: Path, name: str) -> None:
    file, read = READERS[name]
    with memtoll.open(path) as rec:
        options = {} if name == "perfetto" else {"owner": "touched"}
        export(rec, tmp_path / file, **options)
    found = read(tmp_path / file)
    assert all(text.isprintable() for text in found)
    joined = "\n".join(found)
    # Stacks have ':' for the ';' that joins their functions.
    for text in (SCRIPT, FORMULA, *map(stored, NAMES)):
        assert visible(text) in joined or visible(text).replace(";", ":") in joined, text


def test_pprof_prints_them(path: Path, tmp_path: Path) -> None:
    with memtoll.open(path) as rec:
        export(rec, tmp_path / "x.pb.gz")
        export(rec, tmp_path / "touched.pb.gz", owner="touched")
    for file, words in (("x", "-top"), ("x", "-raw"), ("x", "-traces"), ("touched", "-top"), ("touched", "-comments")):
        printed = pprof(tmp_path / f"{file}.pb.gz", words)
        assert not OBEYED.search(printed), words
        assert len(printed) > 300
    assert SCRIPT in pprof(tmp_path / "x.pb.gz", "-raw")


def test_perfetto_answers_with_them(path: Path, tmp_path: Path) -> None:
    with memtoll.open(path) as rec:
        export(rec, tmp_path / "x.pftrace")
        runs = len(rec.faults)
    stats, slices, processes, values = ask(
        tmp_path / "x.pftrace",
        [
            "SELECT name, value FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')",
            "SELECT COUNT(*) AS n FROM slice",
            "SELECT name FROM process WHERE pid = 42",
            "SELECT DISTINCT string_value AS text FROM args WHERE string_value IS NOT NULL",
        ],
        tmp_path,
    )
    assert stats == []
    assert slices == [{"n": runs + 1}]
    assert processes == [{"name": SCRIPT[:15]}]
    said = [row["text"] for row in values]
    assert not any(OBEYED.search(text) for text in said)
    assert any(SCRIPT.replace(";", ":") in text for text in said)


def test_parquet_has_them_as_they_are(path: Path, tmp_path: Path) -> None:
    """A table is for programs: every value, to the last character."""
    with memtoll.open(path) as rec:
        for frame in ("stack_frames", "processes", "faults", "sites"):
            export(rec, tmp_path / f"{frame}.parquet", frames=[frame])
            table = parquet.read_table(tmp_path / f"{frame}.parquet")
            expected = getattr(rec, frame)
            if frames.BY_NAME[frame].index:
                expected = expected.reset_index()
            for column in frames.BY_NAME[frame].columns:
                if column.dtype in ("string", "category"):
                    got = table[column.name].to_pylist()
                    wanted = [value if isinstance(value, str) else None for value in expected[column.name]]
                    assert got == wanted, (frame, column.name)
        functions = set(parquet.read_table(tmp_path / "stack_frames.parquet")["function"].to_pylist())
    assert set(map(stored, NAMES)) <= functions
    about = parquet.read_schema(tmp_path / "sites.parquet").metadata[b"memtoll.recording"]
    assert not OBEYED.search(about.decode())


# ---- redacted

SECRET = re.compile(rb"calloc_loop|demo|x86_64-linux-gnu|--touch|format-1|10485760 1009")


def redacted(tmp_path: Path, name: str, redact: bool) -> tuple[bytes, bytes]:
    """What is written, and what its texts are."""
    with memtoll.open(RECORDINGS / "format-1.memtoll", redact=redact) as rec:
        if name == "parquet":
            export(rec, tmp_path / f"tables{redact}", "parquet", force=True)
            files = sorted((tmp_path / f"tables{redact}").iterdir())
            assert len(files) == len(frames.FRAMES)
            rows = [str(parquet.read_table(file).to_pylist()) for file in files]
            metadata = [str(parquet.read_schema(file).metadata) for file in files]
            return b"", "\n".join(rows + metadata).encode("utf-8", "surrogateescape")
        file, read = READERS[name]
        export(rec, tmp_path / f"{redact}{file}", force=True)
    content = (tmp_path / f"{redact}{file}").read_bytes()
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return plain, "\n".join(read(tmp_path / f"{redact}{file}")).encode()


@pytest.mark.parametrize("name", [*READERS, "parquet"])
def test_what_is_hidden(tmp_path: Path, name: str) -> None:
    """The same recording tells it without: the test would see it."""
    for redact in (False, True):
        content, said = redacted(tmp_path, name, redact)
        assert bool(SECRET.search(said)) is not redact, name
        assert not redact or not SECRET.search(content)
        assert len(said) > 500
        assert not redact or b"file-" in said or b"program-" in said


@pytest.mark.parametrize("name", ["pprof", "otlp"])
def test_figures_stay(tmp_path: Path, name: str) -> None:
    sums = []
    for redact in (False, True):
        with memtoll.open(RECORDINGS / "format-1.memtoll", redact=redact) as rec:
            file = tmp_path / f"{redact}{READERS[name][0]}"
            export(rec, file)
        if name == "pprof":
            profile = profile_class().FromString(gzip.decompress(file.read_bytes()))
            sums.append([sum(sample.value[at] for sample in profile.sample) for at in range(3)])
        else:
            (of,) = ProfilesData.FromString(file.read_bytes()).resource_profiles
            profiles = of.scope_profiles[0].profiles
            sums.append([sum(sample.values[0] for sample in profile.samples) for profile in profiles])
    assert sums[0] == sums[1] and all(sums[0])
    # And build ids, by which a file is known, are hidden, too.
    with memtoll.open(RECORDINGS / "format-1.memtoll") as rec:
        builds = {row for (row,) in rec.views.rows("SELECT DISTINCT build_id FROM main.frame WHERE build_id <> ''")}
    content, _ = redacted(tmp_path, name, True)
    assert builds and not any(build.encode() in content for build in builds)
