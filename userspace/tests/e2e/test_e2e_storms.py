# SPDX-License-Identifier: GPL-2.0
"""Memory given back to the kernel and got again at once: who, how much, and the setting that stops it.

The workload's own getrusage(2) is the witness. What is advised is proved by memtoll compare, which counts faults with
a tracer and without: with the setting they are gone. Where two are advised together either alone changes nothing.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_e2e_compare import Compared, compare

from harness import (
    MIB,
    PAGE,
    Recording,
    environment,
    integrity,
    load,
    memtoll,
    own_frame,
    record,
    site_line,
    workload,
)

pytestmark = pytest.mark.root

OF_START = 512  # faults of a program's start


@dataclass(frozen=True)
class Shape:
    what: str
    rounds: int
    sizes: tuple[int, int]
    how: str  # the memory goes
    each: int  # pages of a round that come again
    setting: dict[str, int]  # that stops it

    @property
    def command(self) -> list[str | Path]:
        return [workload("storms"), self.what, *map(str, (self.rounds, *self.sizes))]


SHAPES = {
    "trim": Shape("blocks", 23, (64, 100000), "brk", 1530, {"trim_threshold": 16 * MIB}),
    "map": Shape("blocks", 11, (1, 33 * MIB), "munmap", 33 * MIB // PAGE,
                 {"mmap_threshold": 64 * MIB, "trim_threshold": 128 * MIB}),
    "calloc": Shape("calloc", 23, (40, 120000), "brk", 648, {"trim_threshold": 16 * MIB}),
    # Of so many rounds that the first two are no tenth.
    "pair": Shape("blocks", 29, (64, 200000), "brk", 0, {"mmap_threshold": 32 * MIB, "trim_threshold": 32 * MIB}),
}  # fmt: skip


class Storm(NamedTuple):
    name: str
    shape: Shape
    found: Compared
    recording: Recording  # of the run without the setting
    witness: dict[str, Any]  # of a run that nobody traces


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


def tunables(values: dict[str, int]) -> dict[str, str]:
    return {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}={value}" for name, value in values.items())}


def trial_of(setting: str, command: list[str | Path], place: Path) -> tuple[Compared, Recording]:
    """The run without the setting is the one whose report has the finding: what it says to try is what was done."""
    found = compare("--set", setting, "-o", place / "r", command=command, runs=1)
    recording = load(place / "r-without-1.memtoll", found.result)
    assert recording.complete and integrity(recording.path) == "ok"
    (trial,) = (advice["try"] for advice in recording.report["verdict"]["advice"] if advice["try"])
    assert shlex.split(trial) == ["memtoll", "compare", "--set", setting, "--", *map(str, command)], "word for word"
    return found, recording


@pytest.fixture(scope="module", params=SHAPES)
def storm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Storm:
    name = str(request.param)
    shape = SHAPES[name]
    (setting,) = (f"{variable}={value}" for variable, value in tunables(shape.setting).items())
    found, recording = trial_of(setting, shape.command, tmp_path_factory.mktemp("storms"))
    return Storm(name, shape, found, recording, plain(shape.command, {}))


def test_pages_faulted_again(storm: Storm) -> None:
    """All faults of the rounds but those that bring a page in for the first time."""
    shape, (count, size) = storm.shape, storm.shape.sizes
    rows = storm.recording.report["giveback"]
    again = sum(row["again_bytes"] for row in rows) // PAGE
    faults = storm.witness["faults"]
    if shape.each:
        expected = (shape.rounds - 1) * shape.each * PAGE
        assert sum(row["again_bytes"] for row in rows if row["how"] == shape.how) == expected
    # Not again: the first round's. Where the threshold moves then, the second round's, too, in the heap.
    assert faults - again == pytest.approx(faults / shape.rounds * (2 if storm.name == "pair" else 1), rel=0.08)
    top = rows[0]
    assert (top["how"], top["gave_call"], top["allocator"]) == (shape.how, "free", "glibc")
    assert top["got_call"] == ("calloc" if storm.name == "calloc" else "malloc")
    assert top["largest_bytes"] <= count * size + 2 * MIB
    assert top["gave_bytes"] >= top["again_bytes"] > 0
    if storm.name == "calloc":
        assert 0.9 * top["again_bytes"] <= top["twice_bytes"] <= top["again_bytes"]
    else:
        assert top["twice_bytes"] == 0


def test_calls_that_give_back(storm: Storm) -> None:
    """As often as the workload saw its break fall, or unmapped a block; by so much."""
    rows = [row for row in storm.recording.report["giveback"] if row["gave_call"] == "free"]
    falls = sum(row["calls"] for row in rows if row["how"] == "brk")
    assert falls == storm.witness["falls"]
    if storm.name == "map":
        assert sum(row["calls"] for row in rows if row["how"] == "munmap") == storm.shape.rounds
    else:
        counted = storm.recording.query("SELECT SUM(bytes) FROM map_call WHERE call = 'brk' AND in_call = 'free'")
        assert counted == [(storm.witness["fallen_bytes"],)]


def test_both_ends_are_named(storm: Storm) -> None:
    top = storm.recording.report["giveback"][0]
    for end, marker in (("gave_at", "free"), ("got_at", "calloc" if storm.name == "calloc" else "malloc")):
        frame = own_frame(top[end])
        assert frame
        assert (Path(frame["file"]).name, frame["line"]) == ("storms.c", site_line("storms.c", marker))


def test_advice(storm: Storm) -> None:
    shape, recording = storm.name, storm.recording
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


def test_advice_stops_the_storm(storm: Storm) -> None:
    """The faults of one round are left. Of a pair, either alone does nothing."""
    values = settings(next(iter(advised(storm.recording).values())))
    assert values == {f"glibc.malloc.{name}": str(value) for name, value in storm.shape.setting.items()}
    # calloc clears all of the blocks that are kept, where it left the fresh ones alone: twice the pages, once.
    assert_stopped(storm.found, (2.2 if storm.name == "calloc" else 1.25) / storm.shape.rounds)
    before = storm.found.plain("minor faults")["before"]
    for name, value in storm.shape.setting.items():
        if len(values) > 1:
            alone = plain(storm.shape.command, tunables({name: value}))["faults"]
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
    assert recording.witness[-1]["faults"] >= 17 * pages
    for advice in recording.report["verdict"]["advice"]:
        assert advice["try"] is None and "GLIBC" not in advice["text"], advice
    assert ("MADV_FREE" in advised(recording)["own-storm"]["text"]) == (shape == "advise")


JEMALLOC = "libjemalloc.so.2"


# name -> size of a block, the setting it runs with, the one that stops the storm
PURGES = {
    "decay-0": (4 * MIB, "dirty_decay_ms:0", "dirty_decay_ms:10000"),
    "large": (8 * MIB, "", "dirty_decay_ms:-1"),
}


@pytest.mark.parametrize(("size", "conf", "remedy"), PURGES.values(), ids=PURGES)
def test_jemalloc(tmp_path: Path, size: int, conf: str, remedy: str) -> None:
    """Purged at each free, by a setting or because the block is large."""
    rounds, pages = 17, size // PAGE
    env = [f"LD_PRELOAD={JEMALLOC}", *([f"MALLOC_CONF={conf}"] if conf else [])]
    words: list[str | Path] = ["env", *env, workload("storms"), "blocks", str(rounds), "1", str(size)]
    found, recording = trial_of(f"MALLOC_CONF={remedy}", words, tmp_path)
    top = recording.report["giveback"][0]
    assert (top["how"], top["gave_call"], top["got_call"], top["allocator"]) == (
        "dontneed",
        "free",
        "malloc",
        "jemalloc",
    )
    assert top["again_bytes"] == pytest.approx((rounds - 1) * pages * PAGE, rel=0.02)
    assert_the_only_trial(recording, "purge-storm")
    assert f"MALLOC_CONF={remedy}" in advised(recording)["purge-storm"]["text"]
    assert_stopped(found, 1.2 / rounds)


def test_text(storm: Storm) -> None:
    text = memtoll("report", "--full", storm.recording.path).stdout
    assert "GIVEN BACK" in text
    assert re.search(rf"{storm.shape.how} +free at storms\.c:{site_line('storms.c', 'free')} ", text), text
    assert max(map(len, text.splitlines())) <= 80 or "memtoll compare" in text
