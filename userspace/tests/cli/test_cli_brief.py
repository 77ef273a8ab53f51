# SPDX-License-Identifier: GPL-2.0
"""memtoll report --brief N: the diagnosis in N tokens at most, in a stated order, the same each time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

import facts
from harness import assert_refused, memtoll

LEAST: Final = 320
# As userspace/doc/report.md states it.
ORDER: Final = (
    "verdict", "sentence", "site1", "site2", "site3", "advice1", "try1", "saves1", "confidence", "lost", "not_seen",
    "why1", "price1", "advice2", "try2", "saves2", "code_without_names",
)  # fmt: skip


@pytest.fixture(name="path", params=["heap-blocks", "touched-churn", "mapped-blocks"])
def fixture_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = tmp_path / "a.memtoll"
    facts.SCENARIOS[request.param](made).database.close()
    return made


def brief(path: Path, tokens: int) -> str:
    done = memtoll("report", "--brief", str(tokens), path)
    assert (done.status, done.stderr) == (0, ""), done
    return done.stdout


def lines(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines())


def test_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    found = lines(brief(path, 100_000))
    assert found["verdict"].startswith("zeroing 99.1 % (98.9-100.0) of 0.253 s observed")
    cleared = f"{2999 * 10 * facts.MIB:,} bytes"
    assert found["site1"].endswith(f"zero.libc calloc {cleared} at calloc_loop.c:42 (round_once)")
    assert found["advice1"].startswith("calloc-reuse-memset: ")
    assert found["try1"].startswith("memtoll compare --set GLIBC_TUNABLES=") and " -- " in found["try1"]
    assert found["confidence"].startswith("counts agree with the kernel's; overhead ")
    assert "left_out" not in found


def test_what_is_known_to_be_more_is_no_exact_figure(tmp_path: Path) -> None:
    """An allocator of its own, whose clearing is not known: only what faults have proved."""
    path = tmp_path / "a.memtoll"
    facts.naive_calloc(path).database.close()
    found = lines(brief(path, 100_000))
    sites = [found[key] for key in ("site1", "site2", "site3") if " zero.libc " in found.get(key, "")]
    assert sites and all(f" at least {11 * 100 * facts.MIB:,} bytes " in site for site in sites), found


@pytest.mark.slow
def test_never_longer_and_left_out_from_the_end(path: Path) -> None:
    """A token is a byte at least, and one is left for a mark at the beginning; what is left out is named, all of it."""
    whole = brief(path, 100_000)
    keys = [line.split(":")[0] for line in whole.splitlines()]
    assert keys == [key for key in ORDER if key in keys]
    before, texts = 0, {}
    for tokens in (LEAST, 500, len(whole), len(whole) + 1):
        text = texts[tokens] = brief(path, tokens)
        assert text.isascii() and len(text) <= tokens - 1, tokens
        assert len(text) >= before
        before = len(text) if "left_out" not in text else 0
        found = lines(text)
        left = found.pop("left_out", "").split()
        assert [*found, *left] == keys
        assert whole.startswith("".join(f"{key}: {value}\n" for key, value in found.items()))
        assert "verdict" in found
        assert bool(left) == (tokens <= len(whole))
    assert brief(path, 500) == texts[500]


def test_what_is_not_there_is_in_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM meta WHERE key = 'complete'")
        database.execute("INSERT INTO loss (slice, name, count) VALUES (1, 'calls_full', 3001)")
        database.execute(
            "INSERT INTO not_captured (toll, reason) VALUES ('cow', 'it was \u0438\u043d\u0430\u0447\u0435')"
        )
    found = lines(brief(path, 100_000))
    assert found["verdict"].endswith("; INCOMPLETE; LOSSES over 1 %")
    assert found["lost"].startswith("calls_full 3,001 (over 1 %)")
    assert "cow (it was \\u0438\\u043d\\u0430\\u0447\\u0435)" in found["not_seen"]
    assert lines(brief(path, LEAST))["verdict"] == found["verdict"]


def test_names_are_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.memtoll"
    facts.heap_blocks(path).database.close()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE frame SET function = 'a' || char(10) || 'verdict: fine' || char(27) || char(8238)")
    text = brief(path, 100_000)
    assert "a?verdict: fine??" in text
    assert [line for line in text.splitlines() if line.startswith("verdict: ")] == text.splitlines()[:1]


@pytest.mark.parametrize("tokens", ["0", "319", "-1", "many", "", "99999999999999999999"])
def test_usage(tmp_path: Path, tokens: str) -> None:
    assert_refused(memtoll("report", "--brief", tokens, tmp_path / "a.memtoll"), 2, "--brief", "320")
    for other in (["--json"], ["--full"], ["--folded", "cow"]):
        done = memtoll("report", "--brief", "1000", *other, tmp_path / "a.memtoll")
        assert (done.status, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done
