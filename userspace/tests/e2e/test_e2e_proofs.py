# SPDX-License-Identifier: GPL-2.0
"""Each finding with a trial saves what it claims: proved by counts, of memtoll compare and of the kernel.

A program is traced, and the finding's `Try:` is done word for word. Of what the toll consists of, at least half of
what is claimed must be gone, by the counts that compare has of traced runs, and by those that the kernel has of runs
that nobody traces (or the program: mallinfo2, pagemap). test_measure_proofs.py has the times.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from test_e2e_compare import Compared, compare
from test_e2e_storms import PURGES, SHAPES

from facts import Facts
from harness import MIB, Recording, environment, load, record, workload

pytestmark = pytest.mark.root

TUNABLES = "GLIBC_TUNABLES"


@dataclass(frozen=True)
class Proof:
    code: str
    words: tuple[str | int, ...]  # workload, shape, rounds, and the rest
    setting: str = ""  # what is advised, where that is certain; those of test_e2e_storms.py have theirs there
    env: dict[str, str] = field(default_factory=dict)
    counts: str = "faults"  # of the witness: what the finding says is too many

    @property
    def command(self) -> list[str | Path]:
        name, *rest = self.words
        return [workload(str(name)), *map(str, rest)]

    @property
    def with_env(self) -> list[str | Path]:
        return [*(["env", *(f"{name}={value}" for name, value in self.env.items())] if self.env else []), *self.command]


def glibc(**values: int) -> str:
    return f"{TUNABLES}=" + ":".join(f"glibc.malloc.{name}={value}" for name, value in values.items())


# As many rounds as it takes for what is saved to be well above the half.
PROOFS = {
    "heap of a trimmed top": Proof("trim-storm", ("storms", "blocks", 61, 64, 100_003)),
    "heap, both needed": Proof("trim-storm", ("storms", "blocks", 61, 64, 200_003)),
    "growth with blocks beside": Proof("trim-storm", ("kept", "grow", 3, 16_411, 9_000_011),
                                       glibc(mmap_threshold=32 * MIB, trim_threshold=64 * MIB)),
    "a thread's heap, trimmed": Proof("trim-storm", ("kept", "blocks", 13, 7_000_003, 7_000_003, "thread"),
                                      glibc(mmap_threshold=32 * MIB, trim_threshold=64 * MIB),
                                      {TUNABLES: "glibc.malloc.mmap_threshold=33554432"}),
    "a thread's second heap": Proof("heap-storm", ("kept", "edge", 61, 62 * MIB, 3_000_017),
                                    glibc(mmap_threshold=32 * MIB, top_pad=64 * MIB)),
    "blocks above 32 MiB": Proof("map-storm", ("storms", "blocks", 17, 1, 33 * MIB + 1)),
    "several at once": Proof("map-storm", ("storms", "blocks", 3, 3, 34 * MIB + 1),
                             glibc(mmap_threshold=64 * MIB, trim_threshold=256 * MIB)),
    "blocks above 32 MiB, in a thread": Proof("map-storm", ("kept", "blocks", 5, 41 * MIB, 41 * MIB, "thread"),
                                              glibc(mmap_threshold=64 * MIB, trim_threshold=128 * MIB,
                                                    top_pad=64 * MIB)),
    "blocks that no arena can hold": Proof("map-storm", ("kept", "blocks", 3, 101 * MIB, 101 * MIB, "thread"),
                                           glibc(arena_max=1, mmap_threshold=128 * MIB, trim_threshold=256 * MIB)),
    "pinned low by a tunable": Proof("map-storm", ("storms", "blocks", 31, 1, 3 * MIB),
                                     glibc(mmap_threshold=4 * MIB, trim_threshold=8 * MIB),
                                     {TUNABLES: "glibc.malloc.mmap_threshold=131072"}),
    "blocks that are not used": Proof("map-storm", ("kept", "blocks", 5003, 33 * MIB, 1),
                                      glibc(mmap_threshold=64 * MIB, trim_threshold=128 * MIB), counts="mapped"),
    "such blocks in a thread": Proof("map-storm", ("kept", "blocks", 5003, 101 * MIB, 1, "thread"),
                                     glibc(arena_max=1, mmap_threshold=128 * MIB, trim_threshold=256 * MIB),
                                     counts="mapped"),
    "blocks of many sizes": Proof("first-touch", ("kept", "varied", 3, 33 * MIB),
                                  glibc(mmap_threshold=128 * MIB, trim_threshold=128 * MIB)),
    "jemalloc, a setting": Proof("purge-storm", ("storms", "blocks", 41, 1, 4 * MIB), env=
                                 {"LD_PRELOAD": "libjemalloc.so.2", "MALLOC_CONF": "narenas:1,dirty_decay_ms:0"}),
    "jemalloc, large blocks": Proof("purge-storm", ("storms", "blocks", 41, 1, 8 * MIB), env=
                                    {"LD_PRELOAD": "libjemalloc.so.2"}),
    "tcmalloc, a setting": Proof("allocator-storm", ("storms", "blocks", 17, 1, 4 * MIB),
                                 "TCMALLOC_AGGRESSIVE_DECOMMIT=0",
                                 {"LD_PRELOAD": "libtcmalloc_minimal.so.4", "TCMALLOC_AGGRESSIVE_DECOMMIT": "1"}),
    "huge pages used sparsely": Proof("huge-sparse", ("kept", "sparse", 1, 150_000_007, 1_273_831),
                                      glibc(hugetlb=0),
                                      {TUNABLES: "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=3"}, "resident"),
    "a heap given back once, to calloc": Proof("calloc-double-clear", ("kept", "cleared", 2, 100_003, 503),
                                               glibc(trim_threshold=128 * MIB)),
    # How many stacks are there at a time is the scheduler's, and so what is advised.
    "locked stacks of threads": Proof("populated", ("kept", "threads", 5, 7)),
    "more of them than 128 MiB": Proof("populated", ("kept", "threads", 5, 19)),
}  # fmt: skip

# Of those test_e2e_storms.py shows as much, by its names of the shapes: with what is advised the faults of one round
# are left, of all of them.
STORMS = {
    "heap of a trimmed top": "trim",
    "heap, both needed": "pair",
    "blocks above 32 MiB": "map",
    "jemalloc, a setting": "decay-0",
    "jemalloc, large blocks": "large",
}

# Proved by counts of another kind, elsewhere.
ELSEWHERE = {
    "calloc-reuse-memset": "test_e2e_compare.py: the bytes that calloc clears",
    "consolidation": "test_e2e_latency.py: the stall, by compare as well; it saves no time, and claims none",
}

# Findings without a trial, and for how many rounds remedies.c does what each is about: some 50 ms of processor time.
# Whether the program saves what is claimed where it heeds them test_measure_remedies.py has.
REMEDIES = {
    "own-storm": 61,
    "stack-storm": 101,
    "let-go": 101,
    "file-fault": 101,
    "shared-map": 31,
    "cow": 7,
    "never-used": 10_007,
    "map-churn": 61,
    "memset-app": 307,
    "app-double-clear": 3,
    "calloc-memset": 20_011,
    "zeros-read": 407,
    "small-steps": 3,
    "alloc-cpu": 7,
}
# Proved by counts and bytes against the kernel's: memory that would be enough, and what waits asleep.
COUNTED = {
    "swap-in": "test_e2e_swap.py",
    "swap-woken": "test_e2e_swap.py",
    "reclaim-stall": "test_e2e_swap.py",
    "given-out": "test_e2e_swap.py",
    "file-thrash": "test_e2e_page_cache.py",
    "read-around": "test_e2e_page_cache.py",
    "read-ahead-off": "test_e2e_page_cache.py",
    "file-reread": "test_e2e_reads.py",
    "file-read": "test_e2e_reads.py",
    "userfault": "test_e2e_handled.py",
    "arena-lock": "test_e2e_latency.py",
    "pretouched": "test_e2e_java.py",
}


def alone(proof: Proof, env: dict[str, str]) -> int:
    """The witness of a run that nobody traces."""
    done = subprocess.run(
        [str(word) for word in proof.command],
        env=environment(proof.env | env), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return int(json.loads(done.stdout.splitlines()[-1])[proof.counts])


def merged(before: str, value: str) -> str:
    """As compare does it, for lists of both kinds."""
    sign = "," if "," in before or (":" in before and "=" not in before) else ":"
    assign = ":" if sign == "," else "="
    names = {one.split(assign)[0] for one in value.split(sign)}
    return sign.join([*(one for one in before.split(sign) if one.split(assign)[0] not in names), value])


def options_of(advice: dict[str, Any]) -> list[str]:
    words = shlex.split(advice["try"])
    assert words[:2] == ["memtoll", "compare"]
    return words[2 : words.index("--")]


def settings(advice: dict[str, Any], proof: Proof) -> dict[str, str]:
    options = options_of(advice)
    found: dict[str, str] = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        assert option == "--set"
        name, text = value.split("=", 1)
        before = proof.env.get(name) if name in (TUNABLES, "MALLOC_CONF") else None
        found[name] = merged(before, text) if before else text
    assert found
    return found


def claimed(recording: Recording, proof: Proof, advice: dict[str, Any]) -> float:
    """Which part of what is counted the gain is of: of the toll's time that is made of it."""
    return min(1.0, float(advice["gain"]) / float(recording.report["toll"][TOLLS.get(proof.counts, FAULTS)]["share"]))


FAULTS = "zero.kernel"
TOLLS = {"mapped": "map"}


def saved(before: float, after: float) -> float:
    assert before > 0
    return (before - after) / before


def saved_of_tolls(found: Compared, proof: Proof) -> list[float]:
    """By each count that compare has of it: of a mapping call the calls, of faults also what they clear."""
    toll = found.toll(TOLLS.get(proof.counts, FAULTS))
    counts = {"mapped": ["count"], "resident": ["bytes"]}.get(proof.counts, ["count", "bytes"])
    return [saved(toll[f"{count}_before"], toll[f"{count}_after"]) for count in counts]


def tried(proof: Proof, place: Path) -> tuple[Recording, Compared]:
    """What a report says to try, done word for word; mostly the report is that of the run without the setting."""
    if proof.setting:
        found = compare("--set", proof.setting, "-o", place / "r", command=proof.with_env, runs=1)
        recording = load(place / "r-without-1.memtoll", found.result)
        assert recording.complete
        words = ["memtoll", "compare", "--set", proof.setting, "--", *map(str, proof.with_env)]
    else:
        recording = record(place / "r.memtoll", command=proof.command, env=proof.env)
    (trial,) = (shlex.split(one["try"]) for one in recording.report["verdict"]["advice"] if one["try"])
    if proof.setting:
        assert trial == words, "word for word"
    else:
        # Allocator calls are not what is counted here: without their probes it is quicker.
        at = trial.index("--")
        found = compare(*trial[2:at], "--probes=faults,mappings", command=list(trial[at + 1 :]), runs=1)
    return recording, found


@pytest.mark.parametrize("name", [name for name in PROOFS if name not in STORMS])
def test_trial_saves_half_of_what_is_claimed_at_least(tmp_path: Path, name: str) -> None:
    proof = PROOFS[name]
    recording, found = tried(proof, tmp_path)
    findings = {advice["code"]: advice for advice in recording.report["verdict"]["advice"]}
    assert proof.code in findings, findings
    trials = [advice for advice in findings.values() if advice["try"]]
    assert [advice["code"] for advice in trials] == [proof.code], "one trial, and no other that says something else"
    # The storm that growth makes says of its time that it is in both.
    gains = [advice["gain"] for code, advice in findings.items() if code != "small-steps"]
    assert sum(gains) < 1.02, "no time is promised twice"
    claim = claimed(recording, proof, trials[0])
    assert claim > (0.1 if proof.counts == "mapped" else 0.5), "it applies to what the workload does"
    for part in saved_of_tolls(found, proof):
        assert part >= 0.5 * claim, (part, claim, found.whole)
    if proof.counts == "faults":
        plain = found.plain("minor faults")
        assert saved(plain["before"], plain["after"]) >= 0.5 * claim, (plain, claim)
    else:
        env = settings(trials[0], proof)
        before, after = alone(proof, {}), alone(proof, env)
        assert saved(before, after) >= 0.5 * claim, (before, after, claim, env)


def test_every_trial_is_proved() -> None:
    made = Facts()
    codes = {str(row["code"]) for row in made.rows("SELECT DISTINCT code FROM advice_text WHERE try <> ''")}
    assert PROOFS.keys() >= STORMS.keys()
    assert {*SHAPES, *PURGES} >= set(STORMS.values())
    assert codes == {proof.code for proof in PROOFS.values()} | ELSEWHERE.keys()


def test_every_saving_is_proved() -> None:
    rows = Facts().rows("SELECT code FROM advice WHERE code NOT IN (SELECT code FROM advice_text WHERE try <> '')")
    assert {str(row["code"]) for row in rows} == REMEDIES.keys() | COUNTED.keys()


# Where a trial would do harm, there is none.


def test_used_blocks_of_calloc_are_not_pinned(out: Path) -> None:
    """Casebook 1 with all of it used: mapping each block costs faults for all its pages."""
    recording = record(out, command=[workload("calloc_loop"), str(10 * MIB), "61", "--touch"])
    advice = {advice["code"]: advice for advice in recording.report["verdict"]["advice"]}
    assert "calloc-reuse-memset" not in advice
    assert not any(one["try"] for one in advice.values())
    assert recording.toll("zero.libc", "bytes") > 50 * 10 * MIB
    if "calloc-memset" in advice:  # where clearing is above its bound
        assert "would not help" in advice["calloc-memset"]["text"]


def test_unused_blocks_of_calloc_are_not_kept(out: Path) -> None:
    """From the heap each would be memset whole; that calloc asks for them only stacks tell here."""
    command: list[str | Path] = [workload("calloc_loop"), str(40 * MIB), "2003"]
    recording = record(out, "--probes=faults,mappings", command=command)
    assert recording.witness[-1]["minflt"] >= 2003, "a page of each is used, and its mapping goes"
    rows = recording.query("SELECT DISTINCT got_call FROM giveback WHERE again_bytes > 0 AND how = 'munmap'")
    assert rows == [("",)]
    advice = {one["code"]: one for one in recording.report["verdict"]["advice"]}
    assert "map-storm" not in advice and not any(one["try"] for one in advice.values()), advice
    assert {"map-churn", "first-touch"} & advice.keys(), "to keep the buffer in the program is right"
    assert not any("HUGEPAGE" in one["text"] for one in advice.values()), "most of each would be cleared for nothing"


ONE_UNUSED = """\
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
reserve = libc.malloc(ctypes.c_size_t(6 << 30))
for _ in range(997):
    block = libc.malloc(ctypes.c_size_t(40 << 20))
    ctypes.memset(block, 1, 60001)
    libc.free(block)
libc.free(reserve)
"""


def test_one_unused_block_is_not_promised_the_calls_of_others(out: Path) -> None:
    """By bytes it is most of what was mapped; by calls two of two thousand."""
    recording = record(out, command=["/usr/bin/python3", "-S", "-E", "-c", ONE_UNUSED])
    ((unused,),) = recording.query("SELECT MAX(never_used_bytes) FROM block WHERE freed = 1")
    assert unused >= 6 << 30
    assert recording.report["calls"]["malloc"] >= 997
    codes = {one["code"] for one in recording.report["verdict"]["advice"]}
    assert "never-used" not in codes, codes


def test_blocks_that_grow_by_mremap_are_not_kept(out: Path) -> None:
    """A top that is kept would serve them, and copy at each step: the settings make more faults."""
    proof = Proof("trim-storm", ("kept", "grow", 3, 16_411, 9_000_011), env={"KEPT_TRIM": "131072"})
    recording = record(out, command=proof.command, env=proof.env)
    advice = {one["code"]: one for one in recording.report["verdict"]["advice"]}
    assert not {"trim-storm", "map-storm"} & advice.keys(), advice
    assert not any("M_TRIM_THRESHOLD" in one["text"] or one["try"] for one in advice.values()), advice
    assert alone(proof, {"KEPT_TRIM": str(64 * MIB)}) > alone(proof, {})


def test_thresholds_that_the_program_sets_itself(out: Path) -> None:
    """mallopt overrides the environment: no trial, but the value to give it there."""
    proof = Proof("trim-storm", ("kept", "many", 17, 100_003, 64), env={"KEPT_TRIM": "131072"})
    recording = record(out, command=proof.command, env=proof.env)
    assert recording.query("SELECT dynamic FROM allocator WHERE kind = 'glibc'") == [(0,)]
    advice = {one["code"]: one for one in recording.report["verdict"]["advice"]}["trim-storm"]
    assert advice["try"] is None and "GLIBC_TUNABLES" not in advice["text"]
    value = re.search(r"M_TRIM_THRESHOLD to (\d+)", advice["text"])
    assert value and "mallopt" in advice["text"], advice["text"]
    # The tunable does nothing, the call does all.
    before = alone(proof, {})
    assert alone(proof, {TUNABLES: f"glibc.malloc.trim_threshold={value[1]}"}) > 0.9 * before
    assert alone(proof, {"KEPT_TRIM": value[1]}) < 0.5 * before
