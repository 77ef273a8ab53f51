# SPDX-License-Identifier: GPL-2.0
"""Memory given back to the kernel and got again at once: who, how much, and the setting that stops it.

The workload's own getrusage(2) is the witness. What is advised is proved by memtoll compare, which counts faults with
a tracer and without: with the setting they are gone. Where two are advised together either alone changes nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_e2e_compare import Compared, tried

from harness import MIB, PAGE, Recording, environment, memtoll, own_frame, record, site_line, workload

pytestmark = pytest.mark.root

ROUNDS = 101
OF_START = 512  # faults of a program's start

# name -> arguments of the workload after the rounds, how the memory goes, pages of a round that come again
SHAPES: dict[str, tuple[str, tuple[int, ...], str, int]] = {
    "trim": ("blocks", (64, 100000), "brk", 1530),
    "map": ("blocks", (1, 33 * MIB), "munmap", 33 * MIB // PAGE),
    "calloc": ("calloc", (40, 120000), "brk", 648),
    "pair": ("blocks", (64, 200000), "brk", 0),
}


def command(shape: str, rounds: int = ROUNDS) -> list[str | Path]:
    what, sizes, _, _ = SHAPES[shape]
    return [workload("storms"), what, str(rounds), *map(str, sizes)]


def plain(words: list[str | Path], env: dict[str, str]) -> dict[str, Any]:
    """The program alone, nobody tracing it."""
    done = subprocess.run(
        [str(word) for word in words], env=environment(env), capture_output=True, text=True, timeout=60, check=True
    )
    witness = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(witness, dict)
    return witness


def advised(recording: Recording) -> dict[str, dict[str, Any]]:
    return {advice["code"]: advice for advice in recording.report["verdict"]["advice"]}


def assert_the_only_trial(recording: Recording, code: str) -> None:
    """No other finding says something else, and it claims most of what the faults cost (test_e2e_proofs.py).

    No more than those, the calls that give back, and what calloc clears a second time.
    """
    trials = {advice["code"]: advice["gain"] for advice in recording.report["verdict"]["advice"] if advice["try"]}
    assert trials.keys() == {code}
    shares = [recording.toll(toll, "share") for toll in ("zero.kernel", "map", "zero.libc")]
    assert 0.5 * shares[0] < trials[code] <= 1.05 * sum(shares)


def settings(advice: dict[str, Any]) -> dict[str, str]:
    """The environment that the advice says to set, from its text, not from its trial."""
    tunables = re.search(r"GLIBC_TUNABLES=(glibc\.malloc\.\w+=\d+(?::glibc\.malloc\.\w+=\d+)*)", advice["text"])
    assert tunables, advice["text"]
    assert f"GLIBC_TUNABLES={tunables[1]}" in advice["try"]
    return dict(part.rsplit("=", 1) for part in tunables[1].split(":"))


def tunables(values: dict[str, str]) -> dict[str, str]:
    return {"GLIBC_TUNABLES": ":".join(f"{name}={value}" for name, value in values.items())}


@pytest.fixture(scope="module", params=SHAPES)
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Recording]:
    shape = str(request.param)
    path = tmp_path_factory.mktemp("storms") / f"{shape}.memtoll"
    return shape, record(path, command=command(shape))


def test_pages_faulted_again(storm: tuple[str, Recording]) -> None:
    """All faults of the rounds but those that bring a page in for the first time."""
    shape, recording = storm
    _, (count, size), how, each = SHAPES[shape]
    rows = recording.report["giveback"]
    again = sum(row["again_bytes"] for row in rows) // PAGE
    faults = recording.witness[-1]["faults"]
    if each:
        assert sum(row["again_bytes"] for row in rows if row["how"] == how) == (ROUNDS - 1) * each * PAGE
    # Not again: the first round's. Where the threshold moves then, the second round's, too, in the heap.
    assert faults - again == pytest.approx(faults / ROUNDS * (2 if shape == "pair" else 1), rel=0.08)
    top = rows[0]
    assert (top["how"], top["gave_call"], top["allocator"]) == (how, "free", "glibc")
    assert top["got_call"] == ("calloc" if shape == "calloc" else "malloc")
    assert top["largest_bytes"] <= count * size + 2 * MIB
    assert top["gave_bytes"] >= top["again_bytes"] > 0
    if shape == "calloc":
        assert 0.9 * top["again_bytes"] <= top["twice_bytes"] <= top["again_bytes"]
    else:
        assert top["twice_bytes"] == 0


def test_calls_that_give_back(storm: tuple[str, Recording]) -> None:
    """As often as the workload saw its break fall, or unmapped a block; by so much."""
    shape, recording = storm
    witness = recording.witness[-1]
    rows = [row for row in recording.report["giveback"] if row["gave_call"] == "free"]
    falls = sum(row["calls"] for row in rows if row["how"] == "brk")
    assert falls == witness["falls"]
    if shape == "map":
        assert sum(row["calls"] for row in rows if row["how"] == "munmap") == ROUNDS
    else:
        counted = recording.query("SELECT SUM(bytes) FROM map_call WHERE call = 'brk' AND in_call = 'free'")
        assert counted == [(witness["fallen_bytes"],)]


def test_both_ends_are_named(storm: tuple[str, Recording]) -> None:
    shape, recording = storm
    top = recording.report["giveback"][0]
    for end, marker in (("gave_at", "free"), ("got_at", "calloc" if shape == "calloc" else "malloc")):
        frame = own_frame(top[end])
        assert frame
        assert (Path(frame["file"]).name, frame["line"]) == ("storms.c", site_line("storms.c", marker))


def test_advice(storm: tuple[str, Recording]) -> None:
    shape, recording = storm
    assert recording.dominant == "zeroing"
    codes = list(advised(recording))
    assert codes[0] == ("map-storm" if shape == "map" else "trim-storm")
    assert_the_only_trial(recording, codes[0])
    # The same thing is not advised twice, and nothing that turns it the other way.
    assert not {"first-touch", "calloc-double-clear", "calloc-reuse-memset", "map-churn"} & set(codes)
    advice = advised(recording)[codes[0]]
    names = set(settings(advice))
    assert ("glibc.malloc.mmap_threshold" in names) == (shape in ("map", "pair"))
    assert "glibc.malloc.trim_threshold" in names
    assert ("cleared twice" in advice["text"]) == (shape == "calloc")


def assert_stopped(found: Compared, left: float) -> None:
    """By what compare counts, and by what the kernel does of runs without a tracer: that part of the faults is left.

    The kernel counts some before the program is there: its image, and what its parent had.
    """
    kernel, faults = found.toll("zero.kernel"), found.plain("minor faults")
    assert 0 < kernel["count_after"] <= left * kernel["count_before"], found.whole
    assert 0 < kernel["bytes_after"] <= left * kernel["bytes_before"], found.whole
    for when in ("before", "after"):
        assert 0 <= faults[when] - kernel[f"count_{when}"] < OF_START, found.whole


def test_advice_stops_the_storm(storm: tuple[str, Recording]) -> None:
    """The faults of one round are left. Of a pair, either alone does nothing."""
    shape, recording = storm
    advice = next(iter(advised(recording).values()))
    values = settings(advice)
    rounds = 11
    found = tried(advice, "--probes=faults,mappings", command=command(shape, rounds))
    # calloc clears all of the blocks that are kept, where it left the fresh ones alone: twice the pages, once.
    assert_stopped(found, (2.2 if shape == "calloc" else 1.25) / rounds)
    before = found.plain("minor faults")["before"]
    for name, value in values.items():
        if len(values) > 1:
            alone = plain(command(shape, rounds), tunables({name: value}))["faults"]
            assert alone == pytest.approx(before, rel=0.02, abs=OF_START), name


def test_single_release_is_no_storm(out: Path) -> None:
    """The look-alike: as much is given back, once, and not used again."""
    recording = record(out, command=[workload("storms"), "once", "11"])
    rows = recording.report["giveback"]
    gave = sum(row["gave_bytes"] for row in rows if row["gave_call"] == "free")
    assert gave >= 1500 * PAGE
    assert sum(row["again_bytes"] for row in rows) == 0
    assert not [code for code in advised(recording) if "storm" in code]
    text = memtoll("report", "--full", recording.path).stdout
    assert "GIVEN BACK" not in text


def test_first_touches_are_no_storm(out: Path) -> None:
    """Blocks that stay: as many faults, and nothing was given back."""
    recording = record(out, command=[workload("storms"), "fresh", "13"])
    assert recording.witness[-1]["faults"] >= 13 * 1500
    assert sum(row["gave_bytes"] for row in recording.report["giveback"]) < 64 * PAGE
    assert not [code for code in advised(recording) if "storm" in code]


@pytest.mark.parametrize(
    ("shape", "how", "marker"), [("advise", "dontneed", "madvise"), ("mapping", "munmap", "munmap")]
)
def test_own_calls(out: Path, shape: str, how: str, marker: str) -> None:
    """The program's own madvise and munmap: no setting helps, and none is advised."""
    recording = record(out, command=[workload("storms"), shape, "17"])
    pages = -(-64 * 100000 // PAGE)
    top = recording.report["giveback"][0]
    assert (top["how"], top["gave_call"], top["allocator"], top["calls"]) == (how, "", "", 17)
    assert top["gave_bytes"] == 17 * pages * PAGE
    assert top["again_bytes"] == 16 * pages * PAGE
    frame = own_frame(top["gave_at"])
    assert frame
    assert frame["line"] == site_line("storms.c", marker)
    advice = advised(recording)["own-storm"]
    assert "GLIBC_TUNABLES" not in advice["text"]
    assert advice["try"] is None
    assert ("MADV_FREE" in advice["text"]) == (shape == "advise")


JEMALLOC = "libjemalloc.so.2"


# name -> size of a block, the setting it runs with, the one that stops the storm
PURGES = {
    "decay-0": (4 * MIB, "dirty_decay_ms:0", "dirty_decay_ms:10000"),
    "large": (8 * MIB, "", "dirty_decay_ms:-1"),
}


@pytest.mark.parametrize(("size", "conf", "remedy"), PURGES.values(), ids=PURGES)
def test_jemalloc(out: Path, size: int, conf: str, remedy: str) -> None:
    """Purged at each free, by a setting or because the block is large."""
    rounds, pages = 17, size // PAGE
    words: list[str | Path] = [workload("storms"), "blocks", str(rounds), "1", str(size)]
    env = {"LD_PRELOAD": JEMALLOC} | ({"MALLOC_CONF": conf} if conf else {})
    recording = record(out, command=words, env=env)
    top = recording.report["giveback"][0]
    assert (top["how"], top["gave_call"], top["got_call"], top["allocator"]) == (
        "dontneed",
        "free",
        "malloc",
        "jemalloc",
    )
    assert top["again_bytes"] == pytest.approx((rounds - 1) * pages * PAGE, rel=0.02)
    assert_the_only_trial(recording, "purge-storm")
    advice = advised(recording)["purge-storm"]
    assert f"MALLOC_CONF={remedy}" in advice["text"]
    assert f"MALLOC_CONF={remedy}" in advice["try"]
    assert_stopped(tried(advice, "--probes=faults,mappings"), 1.2 / rounds)


def test_text(storm: tuple[str, Recording]) -> None:
    shape, recording = storm
    text = memtoll("report", "--full", recording.path).stdout
    assert "GIVEN BACK" in text
    assert re.search(rf"{SHAPES[shape][2]} +free at storms\.c:{site_line('storms.c', 'free')} ", text), text
    assert max(map(len, text.splitlines())) <= 80 or "memtoll compare" in text
