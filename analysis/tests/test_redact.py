# SPDX-License-Identifier: GPL-2.0
"""Redaction: whatever text a recording can hold has a pseudonym, or is one of those that tell nothing."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import memtoll
from memtoll.export import export
from memtoll.page import page
from memtoll.schema import schema

from package import RECORDINGS, Cli

# Texts of memtoll's own, or of the allocator's and the kernel's: a new column is in here, or redact.sql hides it.
TELLS_NOTHING = {
    "meta": {"key"},
    "process": {"role"},
    "container": {"runtime"},
    "allocator": {"kind", "version", "functions", "refused", "linkage"},
    "allocator_probe": {"symbol", "call", "instruction", "refusal"},
    "past_cache": {"call"},
    "stack": {"how", "stopped"},
    "frame": {"function", "kind"},
    "call": {"call"},
    "latency": {"call"},
    "outlier": {"call"},
    "block": {"call"},
    "fault": {"class", "allocated_call", "area", "in_call"},
    "fault_run": {"class", "allocated_call", "area"},
    "access": {"call", "area"},
    "map_call": {"call", "in_call"},
    "threshold": {"name", "how", "call"},
    "giveback": {"how", "gave_call", "got_call", "class"},
    "sample": {"place", "in_call", "allocated_call", "area"},
    "swap": {"what"},
    "reclaim_site": {"what"},
    "file": {"kind"},
    "file_read": {"call"},
    "reuse": {"subject"},
    "reuse_distance": {"subject"},
    "page_fill": {"cause"},
    "page_drop": {"what", "how"},
    "advised": {"advice", "class"},
    "handler": {"request"},
    "own_cache": {"program", "setting"},
    "hit": {"probe"},
    "watch": {"call"},
    "watch_passed": {"call"},
    "watch_event": {"call", "event"},
    "thinned": {"what"},
    "hit_gap": {"hit"},
    "sampled": {"call"},
    "hold_part": {"part"},
    # hint: a name in the program, as functions are, which keep theirs.
    "hold_pin": {"at", "call", "hint"},
    "price": {"probe"},
    "calibration": {"name"},
    "system_counter": {"name"},
    "memory_cgroup_counter": {"name"},
    "swap_device": {"kind"},
    "loss": {"name"},
    "loss_kind": {"name", "meaning", "remedy"},
    "not_captured": {"toll", "reason"},
}
ADDRESSES = {"stack_frame": "address", "fault_run": "address", "longest_wait": "address"}
ADDRESS = 0x7F12_3456_7000
SECRETS = ("/srv/secret/bin/secretd", "secret", "/srv/secret/libc.so.6", "secret --key=/secret")


def filled(path: Path, secret: str) -> None:
    """A row in each table, with the secret in every text that is not one of ours."""
    with closing(sqlite3.connect(path)) as database:
        for table in schema().tables:
            if table.rows:
                continue
            database.execute(table.sql)
            types = {row[1]: row[2] for row in database.execute(f"PRAGMA table_info({table.name})")}
            values = []
            for column, kind in types.items():
                if ADDRESSES.get(table.name) == column:
                    values.append(ADDRESS)
                elif kind != "TEXT":
                    values.append(1)
                else:
                    values.append("x" if column in TELLS_NOTHING.get(table.name, ()) else secret)
            database.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(values))})", values)
        database.execute("UPDATE frame SET kind = 'jit', function = 'LazyCompile:*run /srv/secret/x.js:12'")
        database.execute(f"PRAGMA application_id = {0x6D746F6C}")
        database.execute("PRAGMA user_version = 1")
        database.commit()


@pytest.mark.parametrize("secret", SECRETS)
def test_every_text_has_a_pseudonym(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "secret.memtoll"
    filled(path, secret)
    with memtoll.open(path, redact=True) as rec:
        for table in schema().tables:
            rows = rec.views.rows(f"SELECT * FROM main.{table.name}")
            assert rows or table.rows, table.name
            told = [value for row in rows for value in row if "secret" in str(value) or value == ADDRESS]
            assert table.rows or not told, (table.name, told)


KNOWN = {
    ("module", "/srv/secret/lib/libc.so.6"): "libc.so",
    ("module", "/srv/secret/bin/python3.11"): "python3",
    ("module", "/srv/secret/libjemalloc-secret.so.2"): "libjemalloc.so",
    ("file", "/usr/include/c++/12/bits/stl_vector.h"): "file-1.h",
    ("file", "/srv/secret/lib/python3.11/json/decoder.py"): "file-1.py",
    ("file", "<frozen secret>"): "file-1",
    ("module", "/srv/secret/libsecret.so"): None,
    ("file", "/srv/lib/python3/dist-packages/secret/x.py"): None,
}


def test_libraries_are_still_known(tmp_path: Path) -> None:
    """Which frames are the language's own decides what a sentence names."""
    path = tmp_path / "a.memtoll"
    shutil.copy(RECORDINGS / "format-1.memtoll", path)
    with closing(sqlite3.connect(path)) as database:
        for number, (what, name) in enumerate(KNOWN, 100_000):
            row = {"module": "", "file": ""} | {what: name}
            database.execute(
                "INSERT INTO frame VALUES (?, 'f', ?, ?, 3, 'native', 'c0ffee', 16)",
                (number, row["module"], row["file"]),
            )
        database.commit()
    said = {}
    for redact in (False, True):
        with memtoll.open(path, redact=redact) as rec:
            rec.views.make("library_frame")
            said[redact] = rec.views.rows("SELECT frame_id, libc FROM library_frame ORDER BY frame_id")
            frames = dict(rec.views.rows("SELECT frame_id, module || file FROM main.frame"))
    assert said[True] == said[False]
    of = {frame for frame, _ in said[True]}
    for number, ((_, name), kept) in enumerate(KNOWN.items(), 100_000):
        assert (number in of) == (kept is not None), name
        assert "secret" not in frames[number]
        if kept:
            assert kept.split("-")[0] in frames[number], frames[number]


def test_programs_nobody_looked_at_are_still_known(tmp_path: Path) -> None:
    """Of a storm: their allocator calls are estimated, which is told by what their rows do not have."""
    path = tmp_path / "a.memtoll"
    shutil.copy(RECORDINGS / "format-1.memtoll", path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "INSERT INTO process (pid, comm, command, executable, start_ns, role)"
            " VALUES (7, 'secret', '', '', 1, 'child')"
        )
        database.execute("INSERT INTO loss (slice, name, count) VALUES (1, 'programs_passed', 1)")
        names = [row[1] for row in database.execute("PRAGMA table_info(process_slice)")]
        rest = ", ".join("7" if name == "pid" else name for name in names)
        database.execute(f"INSERT INTO process_slice SELECT {rest} FROM process_slice LIMIT 1")
        database.commit()
    for redact in (False, True):
        with memtoll.open(path, redact=redact) as rec:
            rec.views.make("program_unseen")
            assert [pid for (pid,) in rec.views.rows("SELECT pid FROM program_unseen")] == [7]


@pytest.fixture(scope="module")
def hidden() -> set[bytes]:
    """What the kept recording's program, its files and its host are called."""
    return {b"calloc_loop", b"demo", b"x86_64-linux-gnu", b"--touch", b"format-1", b"10485760 1009"}


@pytest.mark.slow
def test_page_and_exports(tmp_path: Path, hidden: set[bytes]) -> None:
    with memtoll.open(RECORDINGS / "format-1.memtoll", redact=True) as rec:
        made = {"html": page(rec).encode()}
        for name in ("folded",):
            out = tmp_path / f"out.{name}"
            export(rec, out, name, toll="zero.libc" if name == "folded" else None)
            content = out.read_bytes()
            made[name] = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        for name in ("csv", "ndjson"):
            out = tmp_path / name
            export(rec, out, name)
            files = [out] if out.is_file() else sorted(out.rglob("*"))
            made[name] = b"".join(each.read_bytes() for each in files if each.is_file())
        with memtoll.open(RECORDINGS / "format-1.memtoll") as plain:
            addresses = {int(each) for (each,) in plain.views.rows("SELECT DISTINCT address FROM main.stack_frame")}
    for name, content in made.items():
        assert len(content) > 60, name
        assert not {word for word in hidden if word in content}, name
        assert not {each for each in addresses if str(each).encode() in content or f"{each:x}".encode() in content}
        assert b"file-" in content or name == "folded", name


def test_commands(cli: Cli, tmp_path: Path, hidden: set[bytes]) -> None:
    kept = RECORDINGS / "format-1.memtoll"
    result = cli("export", "--redact", str(kept), "-o", "-", "-f", "ndjson", "--frame", "processes")
    assert result.returncode == 0, result.stderr
    assert "program-1 ..." in result.stdout
    assert not [word for word in hidden if word.decode() in result.stdout]
    result = cli("html", "--redact", str(kept), str(kept), "-o", str(tmp_path / "x.html"))
    assert result.returncode == 1
    assert "--redact is of one recording" in result.stderr
