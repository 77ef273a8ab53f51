# SPDX-License-Identifier: GPL-2.0
"""Who raises glibc's thresholds, and who does not; and whether what is advised suffices from a program's start.

Witnesses: the headers of the chunks, as the program reads them before it frees; which size gets a mapping at its end
(mallinfo2(3), by bisection); how often its break fell. The rule is glibc's (__libc_free(), malloc/malloc.c).
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from harness import (
    MIB,
    Program,
    Recording,
    environment,
    finish,
    load,
    memtoll,
    record,
    record_several,
    site_line,
    start_record,
    wait_attached,
    wait_more_slices,
    wait_slices,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

DEFAULT: Final = 131072
LARGEST: Final = 32 * MIB  # DEFAULT_MMAP_THRESHOLD_MAX; the flags in the chunk's size count, so that one is too large
ASK_MOST: Final = 64 * MIB  # up to there the workload looks
PLACES: Final = {"one": "drop_one", "two": "drop_two", "nothing": "drop_by_realloc"}

# Where no advice is judged: the probes of faults are dear to load.
NO_FAULTS: Final = ("--probes", "alloc,mappings")

PAIRS: Final = [f"both:{number * 300_007}:{number * 300_007 + 100_003}" for number in (1, 2, 3, 5, 7, 11, 13)]

RUNS: Final[dict[str, list[str]]] = {
    "two places": ["one:200003", "two:3000017", "one:5000011", "two:4000037", "two:7000003"],
    "two threads": ["thread:one:200003", "thread:two:3000017", "thread:one:5000011", "two:7000003"],
    "at once": PAIRS,
    "realloc": ["grown:300007:5000011", "grown:9000011:6000011", "nothing:7000003"],
    "copied": ["copied:3000017:4000037"],
    "copied, freed": ["copied:3000017:4000037", "drop"],
    "aligned": ["aligned:65536:1000003", "aligned:1048576:2000003"],
    "largest": ["one:33554400", "two:33550000", "one:33554400", "one:40000003"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, dict[str, dict[str, Any]]]:
    path = tmp_path_factory.mktemp("raises") / "out.memtoll"
    return record_several(path, {name: ["raises", *steps, "ask"] for name, steps in RUNS.items()}, *NO_FAULTS)


def raised(recording: Recording, pid: int, name: str = "mmap_threshold") -> list[tuple[int, int, str, str, int]]:
    """Each change by a free: value, time, call, and the program's function that called it, with the line."""
    rows = recording.query(
        "SELECT t.low_bytes, t.high_bytes, t.time_ns, t.call, f.function, f.line FROM threshold t"
        " JOIN stack_frame s USING (stack_id) JOIN frame f USING (frame_id)"
        f" WHERE t.how = 'freed' AND t.pid = {pid} AND t.name = '{name}'"
        f" AND f.function IN {tuple(PLACES.values())} ORDER BY t.time_ns, t.rowid"
    )
    count = f"SELECT COUNT(*) FROM threshold WHERE how = 'freed' AND pid = {pid} AND name = '{name}'"
    assert recording.query(count) == [(len(rows),)], "each has one place"
    assert all(low == high for low, high, *_ in rows)
    return [(low, time_ns, call, function, line) for low, _, time_ns, call, function, line in rows]


def by_the_rule(freed: list[tuple[str, int, bool]]) -> list[tuple[int, str, str, int]]:
    """What the program's frees change: value, call, function, line."""
    threshold, changes = DEFAULT, []
    for place, chunk, own in freed:
        if own and threshold < chunk < LARGEST:
            threshold = chunk
            call = "realloc" if place == "nothing" else "free"
            changes.append((chunk, call, PLACES[place], site_line("raises.c", place)))
    return changes


@pytest.mark.parametrize("name", [name for name in RUNS if name != "at once"])
def test_each_change_names_its_call(runs: tuple[Recording, dict[str, dict[str, Any]]], name: str) -> None:
    recording, said = runs
    witness = said[name]
    expected = by_the_rule(witness["freed"])
    # The rule as the program itself sees it, at its end.
    assert witness["mmap_threshold"] == (expected[-1][0] if expected else DEFAULT)
    found = raised(recording, witness["pid"])
    assert [(value, *place) for value, _, *place in found] == expected
    double = [(2 * value, *rest) for value, *rest in found]
    assert raised(recording, witness["pid"], "trim_threshold") == double
    state = {row["name"]: row for row in recording.report["thresholds"] if row["pid"] == witness["pid"]}
    for threshold in ("mmap_threshold", "trim_threshold"):
        assert state[threshold]["changes"] == len(expected), state[threshold]
    last = [DEFAULT, *(value for value, *_ in expected)][-2:]
    assert state["mmap_threshold"]["low_bytes"] == state["mmap_threshold"]["high_bytes"] == last[-1]
    assert state["mmap_threshold"]["before_bytes"] == (last[0] if expected else None)


def test_what_these_runs_are_about(runs: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    _, said = runs
    changes = {name: [value for value, *_ in by_the_rule(said[name]["freed"])] for name in RUNS}
    assert {name: len(values) for name, values in changes.items() if name != "at once"} == {
        "two places": 4, "two threads": 4, "realloc": 3, "copied": 0, "copied, freed": 1, "aligned": 2, "largest": 1,
    }  # fmt: skip
    # What alignment has left before the chunk does not count: no whole pages, and less than the mapping has.
    assert all(value % 4096 for value in changes["aligned"])
    assert said["largest"]["freed"][0][1] == LARGEST


def test_frees_of_two_threads_at_once(runs: tuple[Recording, dict[str, dict[str, Any]]]) -> None:
    """The larger one of each pair raises it for certain; the smaller one, if it came first."""
    recording, said = runs
    witness = said["at once"]
    found = raised(recording, witness["pid"])
    assert len(witness["freed"]) == 2 * len(PAIRS) and all(own for _, _, own in witness["freed"])
    places = {chunk: (PLACES[place], site_line("raises.c", place)) for place, chunk, _ in witness["freed"]}
    for value, _, call, *place in found:
        assert (call, *place) == ("free", *places[value])
    values = [value for value, *_ in found]
    larger = {chunk for place, chunk, _ in witness["freed"] if place == "two"}
    assert len(set(values)) == len(values) and set(values) >= larger, (values, larger)
    # Of pairs the order is that of the program.
    assert [value for value in values if value in larger] == sorted(larger)
    assert raised(recording, witness["pid"], "trim_threshold") == [(2 * value, *rest) for value, *rest in found]


# A program that is there already.


def late(out: Path, *steps: str, options: tuple[str, ...] = NO_FAULTS) -> tuple[Recording, dict[str, Any]]:
    """What it does up to its first wait is done when memtoll comes; at each wait after that a slice is complete."""
    with Program(workload("raises"), *steps, "ask") as program:
        tracer = start_record(out, *options, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        for number in range(2, steps.count("wait") + 1):
            wait_until(functools.partial(waits, program, number), "the program's next wait")
            wait_slices(out, 1)
            # One may have been under way.
            wait_more_slices(out, 2)
            program.go()
        result = finish(tracer)
        assert result.status == 0, result
        return load(out, result), program.last()


def waits(program: Program, number: int) -> bool:
    return sum("ready" in line for line in program.lines) >= number


def state(recording: Recording) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in recording.report["thresholds"]}


def found_so(recording: Recording, name: str) -> int:
    """Its value, which nobody is said to have changed."""
    row = state(recording)[name]
    assert (row["how"], row["changes"], row["changed_s"], row["before_bytes"]) == ("read", 0, None, None), row
    assert row["call"] == "" and row["changed_at"] == [] and row["low_bytes"] == row["high_bytes"], row
    return int(row["low_bytes"])


def test_raised_before(out: Path) -> None:
    """The free that is seen is of a block with a mapping of its own, and of the very size."""
    recording, witness = late(out, "kept:20000003", "one:20000003", "wait", "drop", "one:1000003")
    (_, first, own), (_, second, mapped), _ = witness["freed"]
    assert own and mapped and second == first == witness["mmap_threshold"]
    assert raised(recording, witness["pid"]) == []
    assert found_so(recording, "mmap_threshold") == first
    assert found_so(recording, "trim_threshold") == 2 * first
    text = " ".join(memtoll("report", "--full", recording.path).stdout.split())
    assert f"mmap_threshold {first:,} bytes, from before the recording" in text
    assert "top_pad" not in text


def test_raised_before_and_after(out: Path) -> None:
    recording, witness = late(out, "one:300007", "wait", "thread:two:3000017", "two:1000003", "one:5000011")
    expected = by_the_rule(witness["freed"])
    assert len(expected) == 3 and witness["mmap_threshold"] == expected[-1][0]
    assert [(value, *place) for value, _, *place in raised(recording, witness["pid"])] == expected[1:]
    rows = recording.query("SELECT low_bytes, how FROM threshold WHERE name = 'mmap_threshold' ORDER BY time_ns, rowid")
    assert rows == [(expected[0][0], "read"), (expected[1][0], "freed"), (expected[2][0], "freed")]
    row = state(recording)["mmap_threshold"]
    assert (row["how"], row["changes"], row["before_bytes"]) == ("freed", 2, expected[1][0]), row


def test_set_before(out: Path) -> None:
    """By mallopt: no free moves them, though larger blocks with mappings of their own are freed."""
    recording, witness = late(out, "map:1000003", "trim:700001", "wait", "one:3000017", "two:4000037")
    assert [own for _, _, own in witness["freed"]] == [True, True]
    assert raised(recording, witness["pid"]) == []
    assert found_so(recording, "mmap_threshold") == 1_000_003
    assert found_so(recording, "trim_threshold") == 700_001
    assert 0 <= witness["mmap_threshold"] - 1_000_003 < 16


def test_set_between(out: Path) -> None:
    """A free, then mallopt, then frees that change nothing any more: which is known when the values are read."""
    recording, witness = late(out, "wait", "one:300007", "map:1000003", "one:3000017", "two:4000037", "wait")
    assert [own for _, _, own in witness["freed"]] == [True, True, True]
    (found,) = raised(recording, witness["pid"])
    (expected,) = by_the_rule(witness["freed"][:1])
    assert (found[0], *found[2:]) == expected
    row = state(recording)["mmap_threshold"]
    assert (row["low_bytes"], row["high_bytes"], row["how"], row["call"]) == (1_000_003, 1_000_003, "read", ""), row
    assert (row["changes"], row["before_bytes"]) == (2, expected[0]), row
    # That one mallopt has left alone.
    row = state(recording)["trim_threshold"]
    assert (row["low_bytes"], row["how"], row["changes"]) == (2 * expected[0], "freed", 1), row
    assert 0 <= witness["mmap_threshold"] - 1_000_003 < 16


# What is advised.


def alone(steps: list[str], env: dict[str, str]) -> dict[str, Any]:
    """A run that nobody traces, from its start."""
    done = subprocess.run(
        [str(workload("raises")), *steps],
        env=environment(env), input="\n", capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    witness = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(witness, dict)
    return witness


def trial(recording: Recording, code: str) -> dict[str, str]:
    """What the only trial sets, which is of this finding."""
    trials = {one["code"]: one["try"] for one in recording.report["verdict"]["advice"] if one["try"]}
    assert trials.keys() == {code}
    words = shlex.split(trials[code])
    words = words[2 : words.index("--")]
    assert set(words[::2]) == {"--set"}
    return dict(word.split("=", 1) for word in words[1::2])


# Before memtoll comes, after that, the finding, and how often the witness counts without what is advised.
LATE: Final = {
    "large blocks, then small ones": (
        ["one:157000003", "two:104857613"], "rounds:23:100003:61", "trim-storm", ("falls", 23),
    ),
    "raised, then smaller ones": (
        ["one:20000003", "two:157000003"], "rounds:11:1000003:61", "trim-storm", ("falls", 11),
    ),
    "raised to the most, then larger ones": (["one:33550000"], "rounds:7:33554433:1", "map-storm", ("mapped", 7)),
    "large blocks, then smaller ones above the most": (
        ["one:157000003", "two:104857613"], "rounds:7:40000003:1", "map-storm", ("mapped", 7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_advice_on_what_was_seen_late_suffices_from_the_start(out: Path, name: str) -> None:
    before, rounds, code, (counts, least) = LATE[name]
    recording, witness = late(out, *before, "wait", rounds, options=())
    assert witness[counts] >= least, witness
    assert raised(recording, witness["pid"]) == []
    env = trial(recording, code)
    assert env.keys() == {"GLIBC_TUNABLES"}
    kept = alone([*before, rounds, "ask"], env)
    assert (kept["mapped"], kept["falls"]) == (0, 0), (env, kept)
    value = re.search(r"mmap_threshold=(\d+)", env["GLIBC_TUNABLES"])
    # A tunable may be above what glibc would raise it to by itself.
    assert kept["mmap_threshold"] == min(int(value[1]) if value else DEFAULT, ASK_MOST)
    assert not value or int(value[1]) >= LARGEST
    if not value:
        assert "GLIBC'S THRESHOLDS" not in memtoll("report", "--full", recording.path).stdout, "as glibc begins"


ROUNDS: Final = "rounds:23:100003:61"
VARIABLE: Final = {"MALLOC_TRIM_THRESHOLD_": "500009"}


def test_trim_threshold_of_the_environment(out: Path) -> None:
    """It stops the others from moving, and the tunable that is advised goes before it."""
    recording = record(out, command=[workload("raises"), "one:300007", ROUNDS, "ask"], env=VARIABLE)
    witness = recording.witness[-1]
    assert witness["freed"][0][2] and witness["mmap_threshold"] == DEFAULT and witness["falls"] >= 23
    now = state(recording)
    assert (now["trim_threshold"]["low_bytes"], now["trim_threshold"]["how"]) == (500_009, "tunable")
    assert (now["mmap_threshold"]["low_bytes"], now["mmap_threshold"]["changes"]) == (DEFAULT, 0)
    kept = alone(["one:300007", ROUNDS], VARIABLE | trial(recording, "trim-storm"))
    assert (kept["mapped"], kept["falls"]) == (0, 0), kept


def test_mallopt_goes_before_the_environment(out: Path) -> None:
    """No setting of the environment is advised, but the value to give to mallopt."""
    steps = ["trim:131072", ROUNDS]
    recording = record(out, command=[workload("raises"), *steps], env=VARIABLE)
    falls = recording.witness[-1]["falls"]
    (advice,) = (one for one in recording.report["verdict"]["advice"] if one["code"] == "trim-storm")
    value = re.search(r"M_TRIM_THRESHOLD to (\d+)", advice["text"])
    assert value and advice["try"] is None and "GLIBC_TUNABLES" not in advice["text"], advice
    assert alone(steps, VARIABLE | {"GLIBC_TUNABLES": f"glibc.malloc.trim_threshold={value[1]}"})["falls"] == falls
    assert alone([f"trim:{value[1]}", ROUNDS], VARIABLE)["falls"] == 0


def test_a_tunable_that_is_there_twice(out: Path) -> None:
    """The second counts; and it may be above what glibc raises it to by itself."""
    env = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=200000:glibc.malloc.mmap_threshold=40000000"}
    recording = record(out, *NO_FAULTS, command=[workload("raises"), "one:39000017", "two:41000021", "ask"], env=env)
    witness = recording.witness[-1]
    assert witness["mmap_threshold"] == 40_000_000
    assert [own for _, _, own in witness["freed"]] == [False, True]
    row = state(recording)["mmap_threshold"]
    assert (row["low_bytes"], row["high_bytes"], row["how"], row["changes"]) == (40_000_000, 40_000_000, "tunable", 0)
