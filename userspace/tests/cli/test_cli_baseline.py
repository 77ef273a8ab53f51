# SPDX-License-Identifier: GPL-2.0
"""memtoll report --baseline: what does more memory work than before, in each format; names are data in all of them."""

from __future__ import annotations

import html
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

import environments
import facts
from facts import INSIDE, KIB, MALLOC_NS, MIB, MS, US, Facts
from harness import MEMTOLL, assert_refused, finish, memtoll, spawn

FORMATS: Final = ("text", "markdown", "junit", "github", "gitlab")
CLEARED: Final = 1009
MADE: Final[dict[tuple[int, int, tuple[str, ...]], bytes]] = {}
# What each format, or a forge that shows it, would obey.
NAMES: Final = (
    "plain",
    "a|b\\|c",
    "`` tick ` \\` ``` fence",
    "</failure>]]><script>alert(1)</script>&amp;",
    "![x](http://e.x/y) [l](http://e.x) www.e.x @octocat #12 http://e.x/z",
    "%0A::error::forged, title=x:: %25",
    "line\nbreak\r\n::error file=a::forged",
    "\x1b[31mred\x07 \u202eturned \u2028 \ufffe\uffff",
    '"quoted" \'single\' <b>& {"json": 1}',
    "$\\frac{1}{2}$ *bold* _it_ ~~gone~~ <!-- -->",
)


def cleared(path: Path, times: int, size: int = MIB, names: tuple[str, ...] = ("parse_row",)) -> Path:
    """A whole run whose callocs clear so many blocks, each site some more than the one before."""
    if (times, size, names) in MADE:
        path.write_bytes(MADE[times, size, names])
        return path
    made = Facts(path)
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    for at, name in enumerate(names):
        calls = times * (at + 1)
        site = made.stack(("calloc", "", 0), (name, f"/src/{name.encode()[:60].decode('utf-8', 'ignore')}.c", 7 + at))
        net = calls * 50 * US
        made.call(
            "calloc", site, calls, bytes=calls * size, cleared_calls=calls, cleared_bytes=calls * size,
            cpu_ns=round(net + calls * (INSIDE + MALLOC_NS)), cleared_cpu_ns=round(net + calls * (INSIDE + MALLOC_NS)),
        )  # fmt: skip
    made.cpu(900 * MS)
    made.meta(end_reason="target exited", probes="alloc,faults,mappings,samples,reads")
    facts.finished(made, "./rows")
    made.database.close()
    MADE[times, size, names] = path.read_bytes()
    return path


@pytest.fixture(name="twice")
def fixture_twice(tmp_path: Path) -> tuple[Path, Path]:
    return cleared(tmp_path / "before.memtoll", CLEARED), cleared(tmp_path / "after.memtoll", 2 * CLEARED)


@pytest.fixture(name="hostile")
def fixture_hostile(tmp_path: Path) -> tuple[Path, Path]:
    return (
        cleared(tmp_path / "hostile-before.memtoll", CLEARED, names=NAMES),
        cleared(tmp_path / "hostile-after.memtoll", 3 * CLEARED, names=NAMES),
    )


def shown(sides: tuple[Path, Path], kind: str) -> str:
    done = memtoll("report", "--baseline", *sides, "--format", kind)
    assert (done.status, done.stderr) == (0, ""), done
    return done.stdout


def visible(text: str) -> str:
    """As a terminal's reader sees it: what steers is '?'."""
    steering = "\u2028\u2029\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return "".join("?" if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in steering else c for c in text)


@pytest.mark.slow
def test_twice_as_many_clearings(twice: tuple[Path, Path]) -> None:
    said = shown(twice, "text")
    text = " ".join(said.split())
    assert "memtoll: 1 place does more memory work" in text
    assert "calloc clears more memory: parse_row, by calloc" in text
    assert "1,009 MiB (1,009 times) -> 1.97 GiB (2,018 times)" in text.replace("1009 MiB", "1,009 MiB")
    assert "at /src/parse_row.c:7" in text
    assert "calloc is called 2 times as often here, for blocks of much the same size." in text
    record = f"memtoll record --force --overhead-limit none -o {twice[1]} -- ./rows"
    assert f"again: {record} then: memtoll report --baseline {twice[0]} {twice[1]}" in text
    assert "estimates (~)" not in text
    assert memtoll("report", "--baseline", *twice).stdout == said


def test_the_reason_is_the_size_of_the_blocks(tmp_path: Path) -> None:
    sides = cleared(tmp_path / "a.memtoll", CLEARED, 512 * KIB), cleared(tmp_path / "b.memtoll", CLEARED, 1536 * KIB)
    assert "called as often here, for blocks 3 times as large" in " ".join(shown(sides, "text").split())


@pytest.mark.slow
def test_lines_may_move_and_less_is_nothing(twice: tuple[Path, Path]) -> None:
    with closing(sqlite3.connect(twice[1])) as database, database:
        database.execute("UPDATE frame SET line = line + 100 WHERE line > 0")
    text = shown(twice, "text")
    assert "parse_row.c:107" in text and "1 place does" in text
    assert "no place does more memory work" in shown((twice[1], twice[0]), "text")


def test_what_is_new_was_not_there_before(tmp_path: Path) -> None:
    before = cleared(tmp_path / "before.memtoll", CLEARED, names=("old",))
    after = cleared(tmp_path / "after.memtoll", CLEARED, names=("old", "fresh"))
    text = " ".join(shown((before, after), "text").split())
    assert "fresh, by calloc none -> 1.97 GiB (2,018 times)" in text
    assert "This call of calloc is new." in text and "old.c" not in text


@pytest.mark.slow
def test_the_dearest_is_first_and_a_screen_is_enough(tmp_path: Path) -> None:
    """And the name of the dearest, which is long, is cut, but not for programs."""
    names = (*(f"site_{number:02}" for number in range(22)), "std::vector<" * 397)
    before = cleared(tmp_path / "before.memtoll", 11, names=names)
    after = cleared(tmp_path / "after.memtoll", 33, names=names)
    for kind in ("text", "markdown"):
        out = shown((before, after), kind)
        assert [int(name) for name in re.findall(r"site_(\d\d), by", out)] == list(range(21, 12, -1)), kind
        assert 9 <= out.count("std::") <= 20 and out.index("std::") < out.index("site_") and "..." in out, kind
        assert "and 13 more" in out
        assert kind == "text" or len(out.splitlines()) < 45
    found = shown((before, after), "gitlab")
    assert len(json.loads(found)) == 23 and found.count("std::") >= 397


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("DELETE FROM meta WHERE key = 'complete'", "not finished"),
        ("UPDATE meta SET value = 'faults' WHERE key = 'probes'", "--probes"),
        ("INSERT OR REPLACE INTO meta VALUES ('min_size_bytes', '7')", "--min-size"),
        ("INSERT INTO not_captured (toll, reason) VALUES ('cow', 'x')", "cow"),
    ],
)
def test_what_does_not_measure_the_same_is_refused(twice: tuple[Path, Path], statement: str, named: str) -> None:
    change(twice[1], statement)
    assert_refused(memtoll("report", "--baseline", *twice, "--format", "markdown"), 1, twice[1], named)


@pytest.mark.parametrize(
    "words",
    [
        ["--format", "markdown"], ["--baseline", "a", "--format", "nonsense"],
        ["--baseline", "a", "--json", "--format", "text"],
        ["--baseline", "a", "--full"], ["--baseline", "a", "--brief", "1000"], ["--baseline", "a", "--redact"],
        ["--baseline", "a", "--folded", "cow"],
    ],
)  # fmt: skip
def test_usage(twice: tuple[Path, Path], words: list[str]) -> None:
    done = memtoll("report", *words, twice[0])
    assert (done.status, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done


def test_missing_files_are_named(twice: tuple[Path, Path], tmp_path: Path) -> None:
    missing = tmp_path / "missing.memtoll"
    assert_refused(memtoll("report", "--baseline", missing, twice[1]), 1, missing)
    assert_refused(memtoll("report", "--baseline", twice[0], missing), 1, missing)


@pytest.mark.slow
def test_losses_are_said_and_are_the_status(twice: tuple[Path, Path]) -> None:
    """Also where no place does more work, of which each format then has nothing."""
    change(twice[1], f"INSERT INTO loss (slice, name, count) VALUES (1, 'calls_full', {CLEARED})")
    for kind in FORMATS:
        done = memtoll("report", "--baseline", twice[1], twice[1], "--format", kind)
        assert done.status == 4 and "parse_row" not in done.stdout, done
        if kind == "gitlab":  # which has findings only
            assert json.loads(done.stdout) == []
        else:
            assert "losses of" in " ".join(done.stdout.split()) and "calls_full" in done.stdout.replace("\\", ""), kind


def test_other_work_is_said(twice: tuple[Path, Path]) -> None:
    change(twice[1], "DELETE FROM meta WHERE key = 'end_reason'")
    change(twice[1], "UPDATE meta SET value = 'other' WHERE key = 'target_command'")
    text = " ".join(shown(twice, "text").split())
    assert "figures are per second" in text and "1009 times a second" not in text and " a second (" in text
    assert "different commands: ./rows and other" in text


def test_a_run_that_failed_and_what_was_lost_are_said(twice: tuple[Path, Path]) -> None:
    """And what records it again measures the same."""
    change(twice[0], "INSERT INTO meta VALUES ('exit_status', '0')")
    change(twice[1], "INSERT INTO meta VALUES ('exit_status', '139')")
    change(twice[1], "INSERT INTO loss (slice, name, count) VALUES (1, 'calls_full', 3)")
    for path in twice:
        change(path, "INSERT OR REPLACE INTO meta VALUES ('min_size_bytes', '4096')")
        change(path, "UPDATE meta SET value = 'alloc,faults' WHERE key = 'probes'")
    text = " ".join(shown(twice, "text").split())
    assert "the commands ended with status 0 and 139: one may have done less" in text
    assert "lost up to 1 % of some kinds: calls_full 3" in text
    assert "again: memtoll record --force --probes alloc,faults --overhead-limit none --min-size 4096 -o" in text


@pytest.mark.slow
def test_a_pipe_is_one_side_and_nothing_to_record_again(twice: tuple[Path, Path]) -> None:
    for before, after, piped in ((twice[0], "-", twice[1]), ("-", twice[1], twice[0])):
        with piped.open("rb") as recording:
            done = finish(spawn([MEMTOLL, "report", "--baseline", before, after], stdin=recording))
        assert done.status == 0 and "1,009 times) -> " in " ".join(done.stdout.split()), done
        assert "again: " not in done.stdout
    assert_refused(memtoll("report", "--baseline", "-", "-"), 2, "--baseline")


@pytest.mark.slow
def test_numbers_below_nothing_are_no_crash(twice: tuple[Path, Path], tmp_path: Path) -> None:
    """As a damaged file may have them: it is refused, or they are shown. Each before and after."""
    sides = [twice[0]]
    for value in ("9e999", "-9e999", "-9000000000000000000"):
        sides.append(cleared(tmp_path / f"{value}.memtoll", CLEARED))
        change(sides[-1], f"UPDATE call SET cpu_ns = {value}, bytes = {value}, cleared_bytes = {value}")
        change(sides[-1], f"INSERT OR REPLACE INTO swap VALUES (1, 42, 'reclaim_memcg', 1, {value}, {value}, 0)")
    for before, after in zip(sides, (*sides[1:], sides[0])):
        assert memtoll("report", "--baseline", before, after).status in (0, 1)


# What the page cache has, and what is on swap, is not the program's: by three standard deviations. What it copies is.
CHANCES: Final = (
    ("file_minor", 1, 2, False),
    ("file_minor", 20, 40, False),
    ("file_minor", 20, 60, True),
    ("swap_major", 1, 4, False),
    ("swap_major", 10, 50, True),
    ("cow", 1, 2, True),
)


def faulting(path: Path, side: int) -> Path:
    """A whole run with so many faults at each place, of a millisecond each."""
    made = Facts(path)
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    for at, (kind, *times, _more) in enumerate(CHANCES):
        place = made.stack((f"read_row_{at}", "/src/rows.c", 7 + at), ("main", "/src/rows.c", 60))
        made.fault(kind, times[side], MS, area="file", area_name=f"/srv/{at}", touched_stack=place)
    made.cpu(900 * MS)
    made.meta(end_reason="target exited", probes="alloc,faults,mappings,samples,reads")
    facts.finished(made, "./rows")
    made.database.close()
    return path


def test_what_memory_decides_is_judged_beyond_chance(tmp_path: Path) -> None:
    done = memtoll("report", "--baseline", faulting(tmp_path / "a", 0), faulting(tmp_path / "b", 1))
    assert done.status == 0, done
    more = {at for at in range(len(CHANCES)) if f"read_row_{at}" in done.stdout}
    assert more == {at for at, chance in enumerate(CHANCES) if chance[3]}, done.stdout


@pytest.mark.slow
def test_estimates_are_judged_beyond_their_bounds(tmp_path: Path) -> None:
    """Half of the time calloc was watched; what that leaves open is in view duty_cycle."""
    before = cleared(tmp_path / "before.memtoll", CLEARED)
    change(before, "INSERT INTO watch VALUES (1, 'calloc', 1, 500000000, 450000000)")
    with closing(sqlite3.connect(before)) as database:
        (error,) = database.execute("SELECT error FROM duty_cycle WHERE call = 'calloc'").fetchone()
    assert error > 0
    for factor, more in ((1.1 * (1 + error), False), (3.2 * (1 + error), True)):
        after = cleared(tmp_path / f"{more}.memtoll", round(2 * factor * CLEARED))
        text = " ".join(shown((before, after), "text").split())
        assert ("calloc clears more memory" in text) == more, (error, text)
        assert f"{before}: estimates (~), as not all was watched: alloc, zero.libc" in text.replace("! ", "")
        assert bool(re.search(r"~\d[\d.]* [GM]iB \(~[\d,]+ times\) ->", text)) == more, text


# ---- formats, read by others


def test_junit_is_xml(hostile: tuple[Path, Path]) -> None:
    root = ElementTree.fromstring(shown(hostile, "junit"))
    cases = root.findall("testsuite/testcase")
    failures = [case for case in cases if case.find("failure") is not None]
    assert len(failures) == len(NAMES) and len(cases) == len(NAMES) + 1
    for element in (root, root.find("testsuite")):
        assert element is not None
        assert (element.get("tests"), element.get("failures")) == (str(len(cases)), str(len(failures)))
    texts = "\n".join(str(case.findtext("failure")) for case in failures)
    for name in NAMES:
        assert visible(name).replace("\ufffe\uffff", "??????") in texts, name
    assert {case.get("line") for case in failures} == {str(7 + at) for at in range(len(NAMES))}
    assert len({case.get("name") for case in cases}) == len(cases)


COMMAND: Final = re.compile(r"::(\w+) ([^:]*)::([^\r\n]*)")
UNESCAPED: Final = {"%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}


def unescaped(text: str) -> str:
    return re.sub("%25|%0D|%0A|%3A|%2C", lambda found: UNESCAPED[found[0]], text)


def test_github_takes_one_command_a_line(hostile: tuple[Path, Path]) -> None:
    """As the runner reads them: the properties end at the first "::", each at a comma."""
    kinds = []
    messages = []
    for line in shown(hostile, "github").splitlines():
        found = COMMAND.fullmatch(line)
        assert found, line
        kinds.append(found[1])
        properties = dict(part.split("=", 1) for part in found[2].split(","))
        messages.append(unescaped(found[3]))
        if found[1] == "warning":
            assert set(properties) == {"file", "line", "title"}
            assert unescaped(properties["file"]).startswith("/src/") and int(properties["line"]) >= 7
    assert kinds == ["warning"] * len(NAMES) + ["notice"]
    for name in NAMES:
        assert any(visible(name) in message for message in messages), name


@pytest.mark.slow
def test_gitlab_is_a_code_quality_report(hostile: tuple[Path, Path]) -> None:
    found = json.loads(shown(hostile, "gitlab"))
    assert len(found) == len(NAMES)
    for each in found:
        assert set(each) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert each["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert each["location"]["lines"]["begin"] >= 7 and each["location"]["path"]
    assert len({each["fingerprint"] for each in found}) == len(found)
    # They are the same findings when lines and figures move.
    change(hostile[1], "UPDATE frame SET line = line + 1 WHERE line > 0")
    change(hostile[1], "UPDATE call SET cleared_bytes = cleared_bytes * 2")
    moved = json.loads(shown(hostile, "gitlab"))
    assert {each["fingerprint"] for each in moved} == {each["fingerprint"] for each in found}
    assert {each["location"]["lines"]["begin"] for each in moved} == {8 + at for at in range(len(NAMES))}


@pytest.mark.slow
def test_json_has_numbers(hostile: tuple[Path, Path]) -> None:
    """The witness is what the recordings were made of; names are those that were, with what steers as '?'."""
    done = memtoll("report", "--baseline", *hostile, "--json")
    assert (done.status, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert set(found) == {"format", "title", "summary", "checked", "findings", "notes", "reproduce"}
    assert (found["format"], found["checked"], found["notes"]) == (1, 2 * len(NAMES), [])
    assert found["reproduce"][1] == f"memtoll report --baseline {hostile[0]} {hostile[1]}"
    for at, each in enumerate(reversed(found["findings"])):
        assert each["number_before"] == (at + 1) * CLEARED * MIB and each["number_after"] == 3 * each["number_before"]
        assert (each["unit"], each["accuracy"], each["failed"], each["line"]) == ("bytes", "exact", False, 7 + at)
        assert visible(NAMES[at]) in each["site"] and each["key"] and each["file"].startswith("/src/")
        assert "GiB (" in each["after"] and each["title"] == "calloc clears more memory" and each["reason"]
    assert len(found["findings"]) == len(NAMES)
    assert json.loads(memtoll("report", "--baseline", hostile[0], hostile[0], "--json").stdout)["findings"] == []


RENDER: Final = """
import sys
from markdown_it import MarkdownIt
made = MarkdownIt("gfm-like", {"html": True, "linkify": True})
sys.stdout.write(made.render(sys.stdin.read()))
"""


def rendered(markdown: str) -> str:
    """As GitHub makes HTML of it, before its own filter: nothing is to be left for that."""
    python = environments.python_with(["markdown-it-py[linkify]"])
    done = subprocess.run(
        [python, "-c", RENDER], input=markdown, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_markdown_shows_names_and_obeys_none(hostile: tuple[Path, Path]) -> None:
    with closing(sqlite3.connect(hostile[1])) as database, database:
        database.execute("UPDATE meta SET value = ? WHERE key = 'target_command'", (" ".join(NAMES),))
    page = rendered(shown(hostile, "markdown"))
    tags = set(re.findall(r"<(/?\w+)", page))
    assert tags <= {
        f"{end}{tag}" for end in ("", "/")
        for tag in ("h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "ol", "ul", "li", "pre", "em")
    } - {"em", "/em"}, tags  # fmt: skip
    rows = re.findall(r"<tr>\n(.*?)</tr>", page, re.S)
    assert len(rows) == 1 + min(10, len(NAMES)) and all(len(re.findall("<t[hd]", row)) == 5 for row in rows)
    codes = [html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", page, re.S)]
    for name in NAMES:
        # Blanks at the ends of a line of code are not shown, runs of them are.
        assert any(visible(name) in code for code in codes), name
    # Sentences stand outside of code, where forges look for references in the rendered text.
    prose = html.unescape(re.sub(r"<code[^>]*>.*?</code>", "", page, flags=re.S))
    assert "different commands" in prose and not re.search(r"[@#]\w|//|www\.", prose), prose
    assert all(visible(name) in re.sub("<!-- -->", "", prose) for name in NAMES if "<!" not in name)


@pytest.mark.slow
def test_paths_are_those_of_the_checkout(tmp_path: Path) -> None:
    names = ("in", "beside", "above")
    sides = cleared(tmp_path / "a.memtoll", CLEARED, names=names), cleared(tmp_path / "b.memtoll", 3019, names=names)
    for path in sides:
        change(path, "UPDATE frame SET file = '/srcs/beside.c' WHERE function = 'beside'")
        change(path, "UPDATE frame SET file = '/above.c' WHERE function = 'above'")

    def paths(**env: str) -> set[str]:
        done = memtoll("report", "--baseline", *sides, "--format", "gitlab", env=env)
        return {each["location"]["path"] for each in json.loads(done.stdout)}

    whole = {"/src/in.c", "/srcs/beside.c", "/above.c"}
    assert paths(GITHUB_WORKSPACE="/") == whole
    assert paths(GITHUB_WORKSPACE="/src") == paths(CI_PROJECT_DIR="/src/") == {"in.c"} | whole - {"/src/in.c"}


@pytest.mark.slow
def test_a_full_disk_is_an_error(twice: tuple[Path, Path]) -> None:
    for words in ([], ["--json"]):  # all formats end in the same place
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [MEMTOLL, "report", "--baseline", *twice, *words],
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
            )  # fmt: skip
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done
