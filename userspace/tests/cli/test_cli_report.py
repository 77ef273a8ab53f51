# SPDX-License-Identifier: GPL-2.0
"""Files that are no recordings, or old ones, given to report. No root needed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import facts
from harness import MEMTOLL, MIB, NOBODY, ROOT, assert_refused, environment, memtoll, memtoll_on_terminal, tool
from shape import TOLLS, interval_schema, report_schema

APPLICATION_ID = 0x6D746F6C


EACH: tuple[tuple[str, ...], ...] = ((), ("--json",), ("--folded", "zero.libc"))


def refuse(path: Path | str, outputs: tuple[tuple[str, ...], ...] = EACH[1:2]) -> None:
    """Before it is known what is to be made of it: of which all are tried where it costs nothing."""
    for options in outputs:
        assert_refused(memtoll("report", path, *options), 1, path)


def test_missing(tmp_path: Path) -> None:
    path = tmp_path / "missing.memtoll"
    refuse(path, EACH)
    assert not path.exists(), "report created the file it was to read"


def test_directory(tmp_path: Path) -> None:
    refuse(tmp_path, EACH)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"a text, no recording\n" * 500, b"\x7fELF" + bytes(8192), b"SQLite format 3\0", bytes(65536)],
    ids=["empty", "newline", "text", "elf", "magic-only", "zeros"],
)
def test_foreign(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.memtoll"
    path.write_bytes(content)
    refuse(path)
    assert path.read_bytes() == content


def database(path: Path, application_id: int, version: int, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {application_id}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_unknown_toll_names_all_there_are(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = facts.naive_calloc(path)
    tolls = [toll for (toll,) in made.database.execute("SELECT toll FROM toll_kind ORDER BY position")]
    made.database.close()
    assert sorted(tolls) == sorted(TOLLS)
    assert_refused(memtoll("report", path, "--folded", "bogus"), 2, "bogus", ", ".join(tolls))


@pytest.mark.parametrize(
    ("env", "colored"),
    [({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False)],
)
def test_colors_on_a_terminal(tmp_path: Path, env: dict[str, str], colored: bool) -> None:
    path = tmp_path / "a.memtoll"
    facts.naive_calloc(path).database.close()
    shown = memtoll_on_terminal("report", path, env=env)
    assert ("\x1b[" in shown) == colored
    # The bar has the colour of the largest toll of its family, as on the page: zero.libc's #e8590c.
    assert ("\x1b[38;5;166m##" in shown) == colored


@pytest.mark.parametrize(
    ("name", "command", "schema"),
    [("report", ("report", "--schema"), report_schema()), ("interval", ("stat", "--schema"), interval_schema())],
    ids=["report", "interval"],
)
def test_schema(name: str, command: tuple[str, ...], schema: dict[str, Any]) -> None:
    """It is what the tests hold every report to, and a JSON Schema that others can hold them to."""
    golden = ROOT / "userspace" / "report" / f"{name}.schema.json"
    wanted = json.dumps(schema, indent=1) + "\n"
    if os.environ.get("MEMTOLL_ACCEPT"):
        golden.write_text(wanted)
    assert golden.read_text() == wanted, "MEMTOLL_ACCEPT=1 python3 -m pytest cli/test_cli_report.py -k schema"
    assert memtoll(*command).stdout == wanted
    Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_the_shell_reads_what_the_report_says(tmp_path: Path) -> None:
    """All views, and those of this memtoll: the file's views of these names are not asked."""
    path = tmp_path / "a.memtoll"
    made = facts.naive_calloc(path)
    made.database.execute("DROP VIEW verdict")
    made.database.execute("CREATE VIEW verdict AS SELECT 'All is well.' AS sentence")
    made.save()
    views = [name for name, _, _ in facts.views_of_recording()]
    asked = ["SELECT sentence FROM verdict", "SELECT text FROM finding ORDER BY position"]
    asked += [f"SELECT '{name}', COUNT(*) FROM {name}" for name in views]
    shell = [tool("sqlite3"), "-json", "-cmd", f'.read "|{MEMTOLL} report --views"', str(path)]
    done = subprocess.run([*shell, ";".join(asked)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (verdict,), advice, *counts = json.loads("[" + done.stdout.rstrip().replace("]\n[", "],[") + "]")
    report = json.loads(memtoll("report", "--json", path).stdout)
    assert verdict["sentence"] == report["verdict"]["sentence"]
    assert [row["text"] for row in advice] == [each["text"] for each in report["verdict"]["advice"]]
    assert len(counts) == len(views)


@pytest.mark.parametrize("name", facts.SCENARIOS)
def test_reports_are_as_the_schema_says(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.SCENARIOS[name](path).database.close()
    report = json.loads(memtoll("report", "--json", path).stdout)
    Draft202012Validator(report_schema()).validate(report)
    report["verdict"]["share"] = "much"
    with pytest.raises(ValidationError, match="much"):
        Draft202012Validator(report_schema()).validate(report)


def test_report_reads_standard_input(tmp_path: Path) -> None:
    """The same report, of a pipe and of a file; nothing is left of the copy."""
    path, copies = tmp_path / "a.memtoll", tmp_path / "copies"
    facts.naive_calloc(path).database.close()
    copies.mkdir()
    recording = path.read_bytes()

    def of_pipe(content: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [MEMTOLL, "report", "--json", "-"],
            input=content,
            env=environment({"TMPDIR": str(copies)}),
            capture_output=True,
            timeout=60,
            check=False,
        )

    result = of_pipe(recording)
    assert result.stdout.decode() == memtoll("report", "--json", path).stdout and result.stderr == b""
    for content, why in [(b"", "empty"), (b"x" * 4099, "no SQLite database"), (recording[:-4096], "truncated")]:
        result = of_pipe(content)
        said = result.stderr.decode()
        assert (result.returncode, result.stdout, said.count("\n")) == (1, b"", 1), result
        assert said.startswith("memtoll: standard input is ") and why in said
    assert list(copies.iterdir()) == []


def test_report_takes_the_newest(tmp_path: Path) -> None:
    for name in ("b.memtoll", "a.memtoll"):
        facts.naive_calloc(tmp_path / name).database.close()
    os.utime(tmp_path / "a.memtoll", (7, 7))
    (tmp_path / "link.memtoll").symlink_to("/nonexistent")
    (tmp_path / "dir.memtoll").mkdir()
    result = memtoll("report", cwd=tmp_path)
    assert result.stdout == memtoll("report", "b.memtoll", cwd=tmp_path).stdout
    assert (result.status, result.stderr) == (0, "memtoll: report: b.memtoll, the newest here\n")


@pytest.mark.slow
def test_a_pager_shows_what_is_long(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.naive_calloc(path).database.close()
    plain = {"NO_COLOR": "1", "MEMTOLL_PAGER": "sed s/^/paged:/"}
    full = memtoll_on_terminal("report", "--full", path, env=plain).splitlines()
    assert len(full) > 24 and all(line.startswith("paged:") for line in full)
    assert "paged:" not in memtoll_on_terminal("report", path, env=plain), "one screen"
    assert "paged:" not in memtoll("report", "--full", path, env=plain).stdout, "no terminal"
    assert "VERDICT" in memtoll_on_terminal("report", "--full", path, env={"NO_COLOR": "1", "MEMTOLL_PAGER": ""})


@pytest.mark.parametrize("sudo", [False, True], ids=["", "sudo"])
def test_a_pager_has_no_rights_of_root(tmp_path: Path, sudo: bool) -> None:
    """It can be told to run a program: that is the user behind sudo, or else root without capabilities."""
    path = tmp_path / "a.memtoll"
    facts.naive_calloc(path).database.close()
    env = {"NO_COLOR": "1", "MEMTOLL_PAGER": "id -u; id -G; grep CapEff /proc/self/status; cat > /dev/null"}
    if sudo:
        env |= {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    user, groups, capabilities = memtoll_on_terminal("report", "--full", path, env=env).splitlines()
    assert int(capabilities.split()[1], 16) == 0
    assert int(user) == (NOBODY if sudo and os.geteuid() == 0 else os.geteuid())
    assert groups == str(NOBODY) or not (sudo and os.geteuid() == 0)
    assert memtoll_on_terminal("demo", "--full", "healthy", env=env).splitlines()[1:] == [user, groups, capabilities]


def test_other_database(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    database(path, 0x12345678, 1)
    refuse(path)


def test_database_of_nobody(tmp_path: Path) -> None:
    path = tmp_path / "plain.db"
    database(path, 0, 0)
    refuse(path)


def test_claimed_recording_without_tables(tmp_path: Path) -> None:
    path = tmp_path / "hollow.memtoll"
    database(path, APPLICATION_ID, 1)
    refuse(path)


@pytest.mark.parametrize("version", [-1, 0, 2, 2**31 - 1])
def test_unknown_format(tmp_path: Path, version: int) -> None:
    path = tmp_path / "later.memtoll"
    database(path, APPLICATION_ID, version)
    refuse(path)


def test_hostile_schema(tmp_path: Path) -> None:
    """A view of the reader's own name that never ends must not be run: no table of a recording is there."""
    path = tmp_path / "hostile.memtoll"
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS json FROM n"
    database(path, APPLICATION_ID, 1, f"CREATE VIEW report_json AS {endless}", f"CREATE VIEW verdict AS {endless}")
    refuse(path, EACH)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "closed.memtoll"
    path.write_bytes(b"x")
    path.chmod(0)
    refuse(path)


def test_not_a_regular_file(tmp_path: Path) -> None:
    """A pipe nobody writes to must not hang the reader."""
    path = tmp_path / "pipe.memtoll"
    os.mkfifo(path)
    refuse(path)


def test_recording_of_an_earlier_version() -> None:
    """Tables that came later are empty: what they would say is left out, and nothing else."""
    path = ROOT / "analysis" / "tests" / "recordings" / "format-1.memtoll"
    text = memtoll("report", "--full", path)
    assert text.status == 0, text
    assert text.stderr == ""
    assert "VERDICT" in text.stdout
    assert "Overhead: " in text.stdout
    assert memtoll("report", "--json", path).status == 0


FORGED = (
    "SELECT 'swap' AS dominant, 1.0 AS share, 1.0 AS low, 1.0 AS high, 'All is well.' AS sentence, 1 AS position,"
    " 'All is well.' AS text, 'all-well' AS code, '{\"forged\": 1}' AS json, 'main;well' AS stack, 1 AS weight,"
    " 'zero.libc' AS toll, 1 AS time_ns, 0 AS exceeds, 1 AS rank, 1 AS stack_id, 0 AS depth, 'well' AS name"
)


def forged(path: Path) -> None:
    """What a file says by its views and its advice, and does by its triggers, is somebody's word."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TRIGGER t BEFORE DELETE ON stack_frame BEGIN DELETE FROM call; END")
        connection.execute("UPDATE advice SET condition = '1', gain = '1', title = 'All is well.', evidence = 'none'")
        connection.execute("UPDATE advice_text SET condition = '1', text = 'All is well.'")
        connection.execute("UPDATE fault_class SET toll = 'swap.in'")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = 'CREATE VIEW ' || name || ' AS ' || ? WHERE type = 'view'", [FORGED]
        )
        assert connection.execute("SELECT changes()").fetchone()[0] > 50


def everything_said(path: Path) -> dict[str, str]:
    commands = {
        "short": ("report", path, "--sites", "0"),
        "text": ("report", "--full", path, "--sites", "0"),
        "json": ("report", path, "--json"),
        "folded": ("report", path, "--folded", "zero.libc"),
        "explain": ("explain", "calloc-reuse-memset", path),
    }
    said = {name: memtoll(*words) for name, words in commands.items()}
    assert all(result.status == 0 and not result.stderr for result in said.values()), said
    return {name: result.stdout for name, result in said.items()}


@pytest.fixture(scope="module")
def of_heap_blocks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """What is said of it; and where it was, to be made again there: its name is in what is said."""
    path = tmp_path_factory.mktemp("said") / "a.memtoll"
    facts.heap_blocks(path).database.close()
    said = everything_said(path)
    path.unlink()
    return path, said


@pytest.mark.slow
def test_a_file_does_not_state_its_own_verdict(of_heap_blocks: tuple[Path, dict[str, str]]) -> None:
    path, said = of_heap_blocks
    facts.heap_blocks(path).database.close()
    assert "calloc-reuse-memset" in said["json"]
    forged(path)
    assert everything_said(path) == said
    # Nor does anything: naming the frames again leaves the 3001 calls.
    assert memtoll("symbolize", path).status == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT SUM(calls) FROM call WHERE call = 'calloc'").fetchone() == (3001,)
    path.unlink()


@pytest.mark.slow
def test_views_are_not_needed(of_heap_blocks: tuple[Path, dict[str, str]]) -> None:
    """They are for the SQLite shell: a recording is its tables."""
    path, said = of_heap_blocks
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'view'").fetchall():
            connection.execute(f"DROP VIEW {name}")
        connection.execute("DROP TABLE advice")
        connection.execute("DROP TABLE advice_text")
    assert everything_said(path) == said
    path.unlink()


@pytest.mark.parametrize(
    "change",
    [
        "type = 'view', rootpage = 0, sql = 'CREATE VIEW call AS SELECT * FROM block'",
        "sql = 'CREATE VIEW call AS SELECT * FROM block'",
        "rootpage = 0, sql = 'CREATE VIRTUAL TABLE call USING dbstat'",
        "sql = 'CREATE VIRTUAL TABLE call USING rtree_i32(call, a, b)'",
        "sql = replace(sql, 'failed ', 'succeeded ')",
        "name = 'calls', tbl_name = 'calls', sql = replace(sql, 'TABLE call', 'TABLE calls')",
    ],
    ids=["a view", "a view called a table", "a virtual table", "a virtual table with a page", "a column", "a name"],
)
def test_tables_are_read_as_tables(tmp_path: Path, change: str) -> None:
    """Not what a view or a virtual table makes up, and none may be missing."""
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"UPDATE sqlite_master SET {change} WHERE name = 'call' AND type = 'table'")
    refuse(path)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE x (a INT, b INT NOT NULL AS (a + 1))",),
        ("DROP VIEW toll", "CREATE TABLE toll (toll, time_ns)"),
    ],
    ids=["a computed column", "a table called as a view"],
)
def test_foreign_schemas_are_refused(tmp_path: Path, statements: tuple[str, ...]) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    refuse(path)


LONG = MIB // 4


def test_long_names(tmp_path: Path) -> None:
    """Work is in proportion to them: else these would take hours."""
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE frame SET module = '{'b' * LONG}{'a' * LONG}', file = module, line = 1")
    assert memtoll("report", "--json", path).status == 0


def test_containers_without_a_line_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    row = "INSERT INTO process (pid, comm, command, executable, start_ns, role, container) VALUES (?,'','','',1,'',?)"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executemany("INSERT INTO container (id, title) VALUES (?, ?)", [(i, f"c{i}") for i in range(11)])
        connection.executemany(row, [(90000 + i, i) for i in range(11)])
    text = memtoll("report", "--full", path).stdout
    assert text.count("In container c") == 8 and "In 3 more containers." in text
