# SPDX-License-Identifier: GPL-2.0
"""memtoll gate: what it refuses, and how it judges recordings. No root, no tracer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import tomllib

from facts import MIB, US, Facts, finished
from harness import Result, assert_refused, memtoll

COMMAND = ("--", "true")


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text("alloc.calls = 1000\n")
    return path


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ("nothing to judge", "COMMAND")),
        (("--",), ("nothing to judge",)),
        (COMMAND, ("no bounds", "--budget", "--baseline")),
        (("a.memtoll",), ("no bounds",)),
        (("a.memtoll", *COMMAND), ("a.memtoll", "not both")),
        (("--init", "--baseline", "a.memtoll", *COMMAND), ("--init",)),
        (("--init", "--time", *COMMAND), ("--init", "time")),
        (("--init", "--json", *COMMAND), ("--init", "--json")),
        (("--baseline", "a.memtoll", "--against", "x", *COMMAND), ("--against", "--baseline")),
        (("--against", "it's", *COMMAND), ("--against", "it's")),
        (("--against", "x", "--against", "y", *COMMAND), ("--against",)),
        (("--budget", "x", "--budget", "y", *COMMAND), ("--budget", "one budget")),
        (("--against", "x", "a.memtoll"), ("--against", "of runs")),
        (("--runs", "3", "a.memtoll"), ("--runs", "of runs")),
        (("--time", "a.memtoll"), ("--time", "of runs")),
        (("-o", "x", "a.memtoll"), ("-o", "of runs")),
        (("--runs", "0", *COMMAND), ("--runs '0'", "1 to 1000")),
        (("--runs", "many", *COMMAND), ("--runs 'many'",)),
        (("-o", "", *COMMAND), ("-o ''",)),
    ],
)
def test_usage(words: tuple[str, ...], names: tuple[str, ...], tmp_path: Path) -> None:
    assert_refused(memtoll("gate", *words, cwd=tmp_path), 2, *names)


@pytest.mark.parametrize(
    ("text", "options", "names"),
    [
        ('alloc.calls = "baseline"', (), (":1: alloc.calls", "--baseline", "--against")),
        ('\nalloc.time = "1 s"', (), (":2: alloc.time", "--time")),
        ('alloc.time = "1.1 x baseline"', ("--time",), ("alloc.time", "--against")),
        ('alloc.time = "1.1 x baseline"', ("--time", "--baseline", "a.memtoll"), ("alloc.time", "--against")),
        ('alloc.time = "1 s"', ("--time", "--runs", "2"), ("--runs 3",)),
        ("alloc.calls = 1", ("--time",), ("--time", "no bound")),
    ],
)
def test_bounds_that_need_more(text: str, options: tuple[str, ...], names: tuple[str, ...], budget: Path) -> None:
    """Said before anything is run or read."""
    budget.write_text(text)
    assert_refused(memtoll("gate", "--budget", budget, *options, *COMMAND), 2, *names)


def test_tolls_and_families_are_those_of_the_views(budget: Path) -> None:
    """The table in bounds.c: a time can be bounded of each, and what has one cannot be unknown."""
    kinds = Facts().rows("SELECT toll, family FROM toll_kind")
    names = {row["toll"] for row in kinds} | {f"family.{row['family']}" for row in kinds}
    assert len(names) > 20
    for name in names:
        budget.write_text(f'{name}.time = "1 s"\n')
        assert_refused(memtoll("gate", "--budget", budget, *COMMAND), 2, name, "use --time")


@pytest.mark.parametrize("text", ["alloc.calls = ", "alloc.weight = 1", "[[alloc]]\ncalls = 1", "", "x = 2020-01-01"])
def test_a_budget_that_is_none(text: str, budget: Path) -> None:
    budget.write_text(text)
    assert_refused(memtoll("gate", "--budget", budget, *COMMAND), 1, budget)


def test_a_budget_that_cannot_be_read(tmp_path: Path) -> None:
    assert_refused(memtoll("gate", "--budget", tmp_path / "none.toml", *COMMAND), 1, "none.toml")
    assert_refused(memtoll("gate", "--budget", tmp_path, *COMMAND), 1, tmp_path)
    (tmp_path / "large.toml").write_text("#" * (MIB + 1))
    assert_refused(memtoll("gate", "--budget", tmp_path / "large.toml", *COMMAND), 1, "large.toml", "1 MiB")
    assert_refused(memtoll("gate", "--budget", "/dev/zero", *COMMAND), 1, "/dev/zero", "1 MiB")


def test_a_budget_without_a_bottom(budget: Path) -> None:
    """Tables in tables without end are a line that says so, and no end of the stack."""
    for text in ("a." * 400_000 + "a = 1", "[" + "a." * 400_000 + "a]", "a = " + "[" * 400_000):
        budget.write_text("\n" + text)
        assert_refused(memtoll("gate", "--budget", budget, *COMMAND), 1, f"{budget}:2")


def test_recordings_are_not_replaced(tmp_path: Path, budget: Path) -> None:
    (tmp_path / "a-now-2.memtoll").touch()
    result = memtoll("gate", "--budget", budget, "-o", tmp_path / "a", *COMMAND)
    assert_refused(result, 1, tmp_path / "a-now-2.memtoll", "--force")


# Judged from recordings.

PARSE, LOAD = ("parse_line", "/src/parse.c", 12), ("load", "/src/load.c", 30)
MAIN = ("main", "/src/main.c", 7)


def recording(
    path: Path, parse: int = 100, load: int = 50, cleared: int = 0, faults: int = 40, line: int = 12
) -> Facts:
    """Calls of malloc by two functions, clears of 1 KiB by calloc, and faults of one page."""
    made = Facts(path)
    made.prices()
    made.slice()
    made.process()
    made.allocator()
    parse_stack = made.stack(("malloc", "", 0), (*PARSE[:2], line), MAIN)
    load_stack = made.stack(("malloc", "", 0), LOAD, MAIN)
    clear = made.stack(("calloc", "", 0), ("table", "/src/table.c", 5), MAIN)
    made.call("malloc", parse_stack, parse, bytes=100 * parse)
    made.call("malloc", load_stack, load, bytes=10_000 * load)
    if cleared:
        made.call("calloc", clear, cleared, bytes=1024 * cleared, cleared_calls=cleared, cleared_bytes=1024 * cleared)
    made.fault("zero", faults, US, touched_stack=made.stack(("fill", "/src/fill.c", 3), MAIN))
    return finished(made, "./program")


def save(path: Path, **figures: int) -> Path:
    recording(path, **figures).database.close()
    return path


def gate(*words: str | Path, status: int) -> dict[str, Any]:
    result = memtoll("gate", "--json", *words)
    assert result.status == status, result
    found = json.loads(result.stdout)
    assert found["format"] == 1
    assert found["result"] == {0: "within", 4: "unsure", 5: "over"}[status]
    return dict(found)


def bound(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (row for row in found["bounds"] if row["bound"] == name)
    return dict(one)


# 100 + 50 + 2 calls, 10,000 + 500,000 + 2,048 bytes. A site: by a function anywhere in the stack, a file by its whole
# path or its end, a module.
WITHIN: Final = (
    ("alloc.calls = 152", 152),
    ("alloc.bytes = 512048", 512_048),
    ("zero.kernel.bytes = 163840", 163_840),
    ("cow.count = 0", 0),
    ("family.allocator.calls = 152", 152),
    ("site.parse_line.alloc.calls = 100", 100),
    ('site."/src/load.c".alloc.bytes = 500000', 500_000),
    ("site.nobody.alloc.calls = 0", 0),
    ('site."Parse_*".alloc.calls = 0', 0),
)
OVER: Final = (
    ("alloc.calls = 151", 152),
    ("alloc.count = 151", 152),
    ('alloc.bytes = "500 KiB"', 512_048),
    ("faults.count = 39", 40),
    ("family.zeroing.count = 41", 42),
    ("zero.libc.calls = 1", 2),
    ('site."parse_*".alloc.calls = 99', 100),
    ("site.main.alloc.calls = 151", 152),
    ('site."load.c".alloc.bytes = 499999', 500_000),
    ('site."program".alloc.calls = 151', 152),
    ('site."/srv/*".faults.count = 39', 40),
)


@pytest.mark.parametrize(("bounds", "over"), [(WITHIN, False), (OVER, True)], ids=["within", "over"])
def test_absolute_bounds(bounds: tuple[tuple[str, int], ...], over: bool, tmp_path: Path, budget: Path) -> None:
    budget.write_text("\n".join(text for text, _value in bounds))
    found = gate("--budget", budget, save(tmp_path / "a.memtoll", cleared=2), status=5 if over else 0)
    assert len(found["bounds"]) == len(bounds)
    for row in found["bounds"]:
        text, value = bounds[row["line"] - 1]
        assert row["result"] == ("over" if over else "within"), text
        assert (row["now"], row["before"]) == (value, None), text


def test_output_names_bound_value_site_and_line(tmp_path: Path, budget: Path) -> None:
    budget.write_text('\nalloc.calls = "baseline"\nalloc.bytes = "2 x baseline"\n')
    old, new = save(tmp_path / "old.memtoll"), save(tmp_path / "new.memtoll", parse=130, line=14)
    result = memtoll("gate", "--budget", budget, "--baseline", old, new)
    assert result.status == 5 and result.stderr == ""
    text = " ".join(result.stdout.split())
    assert "OVER BUDGET: 1 of 2 bounds" in text
    assert f"alloc.calls <= baseline ({budget}:2): 150; now 180, before 150" in text
    assert "malloc at parse.c:14 (parse_line), called by main.c:7 (main): 130, before 100" in text
    assert "/src/parse.c:14" in text
    assert "load.c" not in text, "it did not grow"
    assert "alloc.bytes 996 KiB 498 KiB 501 KiB within" in text


def test_the_usual_bounds(tmp_path: Path) -> None:
    """Without a file: what differs from run to run has room, and no more."""
    old = save(tmp_path / "old.memtoll", parse=10_000, cleared=100)
    same = gate("--baseline", old, save(tmp_path / "same.memtoll", parse=10_060, cleared=104, faults=100), status=0)
    assert {row["bound"] for row in same["bounds"]} >= {
        "zero.libc.calls",
        "alloc.bytes",
        "zero.kernel.bytes",
        "map.calls",
    }
    found = gate("--baseline", old, save(tmp_path / "new.memtoll", parse=10_120, cleared=105), status=5)
    over = [row["bound"] for row in found["bounds"] if row["result"] == "over"]
    assert over == ["zero.libc.calls", "alloc.calls"]
    (site,) = bound(found, "zero.libc.calls")["sites"]
    assert (site["function"], site["file"], site["line"]) == ("table", "/src/table.c", 5)
    assert (site["before"], site["now"], site["call"]) == (100, 105, "calloc")
    assert bound(found, "alloc.calls")["sites"][0]["function"] == "parse_line"


@pytest.mark.slow
def test_several_recordings_are_runs(tmp_path: Path, budget: Path) -> None:
    """The most of the old ones, the least of the new ones."""
    budget.write_text('alloc.calls = "baseline"')
    low, high = save(tmp_path / "low.memtoll", parse=100), save(tmp_path / "high.memtoll", parse=110)
    both = ("--baseline", low, "--baseline", high)
    assert gate("--budget", budget, *both, high, status=0)["runs"] == 1
    gate("--budget", budget, "--baseline", low, high, status=5)
    found = gate("--budget", budget, "--baseline", low, high, low, status=0)
    assert (found["bounds"][0]["low"], found["bounds"][0]["high"]) == (150, 160)


@pytest.mark.slow
def test_losses(tmp_path: Path, budget: Path) -> None:
    """Over is over, whatever was lost; within is only what would be with it."""
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.row("loss", slice=1, name="calls_full", count=3)
    made.save()
    made.database.close()
    for most, status in ((153, 0), (152, 4), (150, 4), (149, 5)):
        budget.write_text(f"alloc.calls = {most}\nfaults.count = 40")
        found = gate("--budget", budget, path, status=status)
        assert bound(found, "alloc.calls")["reason"] == ("calls_full 3" if status == 4 else None)
        assert bound(found, "faults.count")["result"] == "within", "another matter"
    # How many bytes they had is not known.
    budget.write_text('alloc.bytes = "1 GiB"')
    gate("--budget", budget, path, status=4)


def test_a_baseline_that_nobody_knows(tmp_path: Path, budget: Path) -> None:
    """Less than that is not within."""
    budget.write_text('alloc.calls = "baseline"\ncow.count = "baseline"\n')
    old = tmp_path / "old.memtoll"
    made = recording(old)
    made.row("watch", slice=1, call="malloc", windows=1, watched_ns=1000, watched_cpu_ns=1000)
    made.save()
    made.database.close()
    calls, cow = gate("--budget", budget, "--baseline", old, save(tmp_path / "a.memtoll", parse=1), status=4)["bounds"]
    assert (calls["result"], calls["reason"]) == ("unsure", "allocator calls were watched in windows only")
    assert cow["result"] == "within"


def test_an_interrupted_command_is_not_within(tmp_path: Path, budget: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.meta(end_reason="signal", exit_status="143", target_words="./program")
    made.save()
    made.database.close()
    found = gate("--budget", budget, path, status=4)
    assert bound(found, "alloc.calls")["reason"] == "the command was interrupted"


def test_code_whose_stacks_were_lost(tmp_path: Path, budget: Path) -> None:
    """That matters to who asks for a place."""
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.row("loss", slice=1, name="stacks_full", count=3)
    made.save()
    made.database.close()
    budget.write_text('alloc.calls = 150\nsite."parse_*".alloc.calls = 200\n')
    found = gate("--budget", budget, path, status=4)
    assert bound(found, "alloc.calls")["result"] == "within"
    assert bound(found, 'site."parse_*".alloc.calls')["reason"] == "stacks_full 3"


def test_what_was_not_traced(tmp_path: Path, budget: Path) -> None:
    """Of a bound that somebody wrote: an error. Of the usual ones: said."""
    old = save(tmp_path / "old.memtoll")
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.row("not_captured", toll="map", reason="mapping calls were not traced")
    made.save()
    made.database.close()
    budget.write_text("map.calls = 100")
    assert_refused(memtoll("gate", "--budget", budget, path), 1, "map.calls", "were not traced")
    assert bound(gate("--baseline", old, path, status=0), "map.calls")["result"] == "not captured"
    assert bound(gate("--baseline", path, old, status=0), "map.calls")["result"] == "not captured"


def test_names_are_data(tmp_path: Path, budget: Path) -> None:
    """Those of a recording steer no terminal, and break no JSON."""
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.database.execute("UPDATE frame SET function = 'bad' || CHAR(27, 10, 34) || '[31m' WHERE function = 'load'")
    made.save()
    made.database.close()
    budget.write_text("alloc.bytes = 0")
    result = memtoll("gate", "--budget", budget, path)
    assert result.status == 5 and "\x1b" not in result.stdout and "bad??" in result.stdout
    made = recording(tmp_path / "b.memtoll")
    made.row("not_captured", toll="map", reason="bad\x1b[31m")
    made.save()
    made.database.close()
    result = memtoll("gate", "--baseline", tmp_path / "b.memtoll", tmp_path / "b.memtoll")
    assert result.status == 0 and "\x1b" not in result.stdout and "not captured: bad?" in result.stdout
    assert gate("--budget", budget, path, status=5)["bounds"][0]["sites"][0]["function"] == 'bad\x1b\n"[31m'


def test_the_budget_of_the_directory(tmp_path: Path) -> None:
    path = save(tmp_path / "a.memtoll")
    (tmp_path / "memtoll.toml").write_text("alloc.calls = 1\n")
    result = memtoll("gate", path, cwd=tmp_path)
    assert result.status == 5 and "memtoll.toml:1" in result.stdout


def init(*words: str | Path) -> tuple[Result, dict[str, Any]]:
    result = memtoll("gate", "--init", *words)
    assert (result.status, result.stderr) == (0, "")
    return result, tomllib.loads(result.stdout)


@pytest.mark.slow
def test_init(tmp_path: Path) -> None:
    """Bounds by what was seen: the same in all runs, varying, decided by the kernel."""
    runs = [save(tmp_path / f"{n}.memtoll", cleared=9, parse=1000 + 30 * n, faults=50) for n in range(3)]
    result, bounds = init(*runs)
    assert bounds["zero"]["libc"] == {"calls": 9, "bytes": 9 * 1024 + 1024}
    # 1059 to 1119 calls: once more as much as they varied
    assert bounds["alloc"]["calls"] == 1119 + 60
    assert bounds["zero"]["kernel"]["count"] == 50 + 16
    assert bounds["map"]["calls"] == 16
    assert re.search(r"alloc.calls = 1179\t# varies by itself: 1,059 to 1,119 in 3 runs", result.stdout)
    assert "file" not in bounds or "fault" not in bounds["file"], "the page cache decides"
    for path in runs:
        (tmp_path / "b.toml").write_text(result.stdout)
        gate("--budget", tmp_path / "b.toml", path, status=0)


def test_init_of_one_run_has_room(tmp_path: Path) -> None:
    result, bounds = init(save(tmp_path / "a.memtoll", cleared=9))
    assert bounds["zero"]["libc"]["calls"] == 9 + 4
    assert "how it varies is not known" in result.stdout


def test_init_bounds_nothing_that_is_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    made = recording(path)
    made.row("loss", slice=1, name="calls_full", count=3)
    made.row("not_captured", toll="map", reason="mapping calls were not traced")
    made.save()
    made.database.close()
    result, bounds = init(path)
    assert "alloc" not in bounds and "map" not in bounds and "kernel" in bounds["zero"]
    assert "# alloc.calls: no bound: calls_full 3" in result.stdout
    assert "# map.calls: no bound: mapping calls were not traced" in result.stdout


def test_init_replaces_nothing_unasked(tmp_path: Path, budget: Path) -> None:
    path, before = save(tmp_path / "a.memtoll"), budget.read_text()
    assert_refused(memtoll("gate", "--init", "--budget", budget, path), 1, budget, "--force")
    assert budget.read_text() == before
    result = memtoll("gate", "--init", "--force", "--budget", budget, path)
    assert (result.status, result.stdout) == (0, "")
    gate("--budget", budget, path, status=0)


def test_a_file_that_is_no_recording(budget: Path) -> None:
    assert_refused(memtoll("gate", "--budget", budget, budget), 1, budget)
    assert_refused(memtoll("gate", "--baseline", budget, budget), 1, budget)


def test_help() -> None:
    result = memtoll("gate", "--help")
    assert (result.status, result.stderr) == (0, "")
    for word in ("--budget", "--baseline", "--against", "--init", "--time", "5 over the budget"):
        assert word in result.stdout
