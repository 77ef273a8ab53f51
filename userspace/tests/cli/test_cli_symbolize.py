# SPDX-License-Identifier: GPL-2.0
"""Naming a recording's frames again, by addr2line's word. No root needed."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from facts import Facts
from harness import assert_refused, memtoll, tool

SOURCE: Final = """
#include <stdlib.h>
volatile int sink;
static inline __attribute__((always_inline)) int deepest(int x)
{
	sink = x;
	return sink * 3;
}
static inline __attribute__((always_inline)) int middle(int x)
{
	return deepest(x) + deepest(x + 1);
}
static __attribute__((noinline)) int hidden(int x)
{
	int y = middle(x);

	sink = rand();
	return y + sink;
}
int main(int argc, char **argv)
{
	(void)argv;
	return hidden(argc) + 1;
}
"""

Named = tuple[str, str, int]


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


class Built:
    """A program with its names, the same stripped, and its debug file."""

    def __init__(self, directory: Path) -> None:
        source = directory / "program.c"
        source.write_text(SOURCE)
        self.whole = directory / "whole"
        self.stripped = directory / "program"
        self.debug = directory / "program.debug"
        run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", source, "-o", self.whole)
        run(tool("objcopy"), "--only-keep-debug", self.whole, self.debug)
        run(tool("strip"), "-o", self.stripped, self.whole)
        notes = run(tool("readelf"), "-n", self.whole)
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)  # type: ignore[union-attr]
        text = re.search(r"^([0-9a-f]+) ([0-9a-f]+) t hidden$", run(tool("nm"), "-S", self.whole), re.M)
        assert text
        self.start, self.size = (int(number, 16) for number in text.groups())

    def names(self, address: int) -> list[Named]:
        """Innermost first, as addr2line has them."""
        lines = run(tool("addr2line"), "-e", self.whole, "-f", "-i", f"{address:#x}").splitlines()
        places = [line.split(" (discriminator")[0].rsplit(":", 1) for line in lines[1::2]]
        return [
            (function, file, int(line) if line.isdigit() else 0)
            for function, (file, line) in zip(lines[::2], places, strict=True)
        ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("built"))


def recording(path: Path, built: Built, addresses: list[int], complete: bool = True) -> None:
    """A stack for each address: at the leaf it is exact, in the next frame a return address."""
    facts = Facts(path)
    facts.row(
        "frame",
        frame_id=1,
        function="fill",
        module="",
        file="app.py",
        line=7,
        kind="python",
        build_id="",
        module_offset=0,
    )
    for number, address in enumerate(addresses):
        frame = 100 + number
        facts.row(
            "frame",
            frame_id=frame,
            function="",
            module="/gone/program",
            file="",
            line=0,
            kind="native",
            build_id=built.build_id,
            module_offset=address,
        )
        facts.row("stack", stack_id=number, pid=1, how="cfi", complete=1)
        for depth, frame_id in enumerate((frame, 1, frame)):
            facts.row(
                "stack_frame", stack_id=number, depth=depth, address=0x1000 + address, frame_id=frame_id, inlined=0
            )
    if complete:
        facts.row("meta", key="complete", value="1")
    facts.database.commit()
    facts.database.close()


def frames(path: Path, stack: int) -> list[tuple[int, str, str, int, int]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(
            "SELECT s.depth, f.function, f.file, f.line, s.inlined FROM stack_frame s JOIN frame f USING (frame_id)"
            " WHERE s.stack_id = ? ORDER BY s.depth",
            (stack,),
        ).fetchall()


def expected(built: Built, address: int) -> list[tuple[int, str, str, int, int]]:
    rows: list[tuple[str, str, int, int]] = []
    for index, named in enumerate((built.names(address), [("fill", "app.py", 7)], built.names(address - 1))):
        rows += [(*name, int(index != 1 and place + 1 < len(named))) for place, name in enumerate(named)]
    return [(depth, *row) for depth, row in enumerate(rows)]


def layout(kind: str, built: Built, directory: Path) -> Path:
    """A directory of each kind that people keep debug files in."""
    target = {
        "build-id": directory / ".build-id" / built.build_id[:2] / f"{built.build_id[2:]}.debug",
        "root": directory / "gone" / "program.debug",
        "plain": directory / "program.debug",
        "whole": directory / "program",
    }[kind]
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(built.whole if kind == "whole" else built.debug, target)
    return directory


@pytest.mark.parametrize("kind", ["build-id", "root", "plain", "whole"])
@pytest.mark.slow
def test_names_and_lines_come_later(tmp_path: Path, built: Built, kind: str) -> None:
    path = tmp_path / "r.memtoll"
    addresses = list(range(built.start + 1, built.start + built.size, 3))
    recording(path, built, addresses)
    before = memtoll("symbolize", path)
    assert (before.status, before.stdout.split()[:4]) == (0, ["0", "of", "1", "modules"])
    assert frames(path, 0)[0][1:4] == ("", "", 0)
    directory = layout(kind, built, tmp_path / "debug")
    result = memtoll("symbolize", path, "--debug", tmp_path, "--debug", directory)
    assert result.status == 0, result
    count = len(addresses)
    assert result.stdout == f"1 of 1 modules found; of {count} addresses {count} have a function, {count} a line\n"
    found = [frames(path, number) for number in range(count)]
    assert found == [expected(built, address) for address in addresses]
    assert any("deepest" in row[1] for stack in found for row in stack), "nothing inlined was met"
    # A second time nothing changes, and no frame is left over.
    assert memtoll("symbolize", path, "-d", directory).stdout == result.stdout
    assert [frames(path, number) for number in range(count)] == found
    with closing(sqlite3.connect(path)) as database:
        assert database.execute(
            "SELECT COUNT(*) FROM frame WHERE frame_id NOT IN (SELECT frame_id FROM stack_frame)"
        ).fetchone() == (0,)


def test_lines_are_not_lost_to_a_stripped_file(tmp_path: Path, built: Built) -> None:
    path = tmp_path / "r.memtoll"
    recording(path, built, [built.start + 4])
    assert memtoll("symbolize", path, "--debug", layout("plain", built, tmp_path / "debug")).status == 0
    named = frames(path, 0)
    poor = tmp_path / "poor"
    poor.mkdir()
    shutil.copy(built.stripped, poor / "program")
    assert memtoll("symbolize", path, "--debug", poor).status == 0
    assert frames(path, 0) == named


def test_another_build_is_not_taken(tmp_path: Path, built: Built) -> None:
    path = tmp_path / "r.memtoll"
    recording(path, built, [built.start + 4])
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "other.c").write_text(SOURCE.replace("* 3", "* 5"))
    run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", tmp_path / "other.c", "-o", other / "program")
    result = memtoll("symbolize", path, "--debug", other)
    assert (result.status, result.stdout.split()[0]) == (0, "0")
    assert frames(path, 0)[0][1:4] == ("", "", 0)


def test_refused(tmp_path: Path, built: Built) -> None:
    path = tmp_path / "r.memtoll"
    recording(path, built, [built.start], complete=False)
    content = path.read_bytes()
    assert_refused(memtoll("symbolize", path), 1, path)
    assert path.read_bytes() == content
    assert_refused(memtoll("symbolize", tmp_path / "missing"), 1, tmp_path / "missing")
    assert_refused(memtoll("symbolize", path, "--debug", tmp_path / "nowhere"), 2, "--debug", tmp_path / "nowhere")
    assert_refused(memtoll("symbolize"), 2, "symbolize")
    assert_refused(memtoll("symbolize", path, path), 2, path)
    assert_refused(memtoll("symbolize", "--colour", path), 2, "--colour")


def test_locked(tmp_path: Path, built: Built) -> None:
    """Somebody else is writing: as it was, and said so."""
    path = tmp_path / "r.memtoll"
    recording(path, built, [built.start])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        assert_refused(memtoll("symbolize", path), 1, path)
    assert frames(path, 0)[0][1:4] == ("", "", 0)


@pytest.mark.parametrize(
    "planted",
    [
        "CREATE INDEX i ON stack_frame (hex(zeroblob(depth + 1000000)))",
        "CREATE INDEX i ON frame (line) WHERE hex(zeroblob(1000000)) > ''",
        "ALTER TABLE frame ADD COLUMN more TEXT DEFAULT (hex(zeroblob(1000000)))",
        "ALTER TABLE frame ADD COLUMN more TEXT AS (hex(zeroblob(1000000)))",
    ],
    ids=["an index of an expression", "a partial index", "a default", "a computed column"],
)
def test_what_is_written_runs_no_sql_of_the_file(tmp_path: Path, built: Built, planted: str) -> None:
    path = tmp_path / "r.memtoll"
    recording(path, built, [built.start])
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        if "DEFAULT (" in planted:  # of an empty table only
            database.execute("CREATE TEMP TABLE kept AS SELECT * FROM frame")
            database.execute("DELETE FROM frame")
            database.execute(planted)
            database.execute("INSERT INTO frame SELECT *, '' FROM kept")
        else:
            database.execute(planted)
    content = path.read_bytes()
    assert_refused(memtoll("symbolize", path, "--debug", built.whole.parent), 1, path)
    assert path.read_bytes() == content


def test_a_planted_journal_is_not_played_back(tmp_path: Path, built: Built) -> None:
    """Hot, of no pages; the file that it calls its super-journal would be deleted (file format, 3.)."""
    path, victim = tmp_path / "r.memtoll", tmp_path / "victim"
    recording(path, built, [built.start])
    victim.write_text("of somebody else\n")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    header = magic + struct.pack(">5I", 0, 1, path.stat().st_size // 4096, 512, 4096)
    record = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    journal = Path(f"{path}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + record)
    content = path.read_bytes()
    result = memtoll("symbolize", path)
    assert result.status == 1 and str(journal) in result.stderr, result
    assert victim.exists() and journal.exists() and path.read_bytes() == content
    # What SQLite itself does with such a file.
    with closing(sqlite3.connect(path)) as database:
        database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    assert not victim.exists(), "the journal was not hot: the test tests nothing"
