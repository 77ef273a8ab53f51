# SPDX-License-Identifier: GPL-2.0
"""Verdicts that depend on what the machine is good at: what a remedy saves, whether a mapping is dearer than a page.

The counts behind each of them are in the test_e2e_ file of the same workload.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_e2e_compare import CALLS, PINNED, REMEDIES, USED_CALLS, Compared, Remedy, compare, loop
from test_e2e_tls import CLEARS, NEWEST, client, identity, port
from test_e2e_zeroing import CACHED_CALLS, HUNDRED, MAPPED, calloc_loop, preload

from environments import python_with
from harness import MIB, Recording, record, workload
from measuring import OTHERS, Bound, Others, settle
from shape import family_shares
from suite import undecided

pytestmark = [pytest.mark.root, pytest.mark.measure]

__all__ = ["identity", "port"]  # fixtures


# One run of three that the machine held up would leave nothing proved.
RUNS = 5
# Bounds of 99 % fail once in a hundred comparisons, and more often where others' work comes in bursts: a conclusion is
# wrong where it comes again each time.
TRIES = 3


def concluded(observed: str, try_it: Callable[[], Compared]) -> Compared:
    others = Others()
    for _ in range(TRIES):
        found = try_it()
        if found.observed == observed:
            return found
    said = f"{found.observed}, and not {observed}, {TRIES} times: {found.whole}"
    busy = others.processors()
    assert busy > OTHERS, said
    undecided(f"others kept {busy:.2f} processors busy; {said}")


def test_not_clearing_is_a_gain() -> None:
    found = concluded("less", lambda: compare("--set", PINNED, command=loop(CALLS), runs=RUNS))
    assert found.plain("CPU time")["ratio"] < 0.5
    assert "saves" in found.whole["conclusion"]["sentence"]


def test_same_setting_is_a_loss_where_blocks_are_used() -> None:
    found = concluded("more", lambda: compare("--set", PINNED, command=loop(USED_CALLS, "--touch"), runs=RUNS))
    assert found.toll("zero.kernel")["ratio"] > 2
    assert "times as much" in found.whole["conclusion"]["sentence"]


def test_a_change_that_does_nothing_is_no_difference() -> None:
    found = concluded("none", lambda: compare("--set", "FOO=1", command=loop(), runs=RUNS))
    assert found.whole["conclusion"]["sentence"].startswith("No difference")


@pytest.mark.parametrize(
    "remedy",
    [remedy for remedy in REMEDIES.values() if remedy.helps],
    ids=[name for name, remedy in REMEDIES.items() if remedy.helps],
)
def test_remedies_of_churn(remedy: Remedy) -> None:
    found = concluded("less", lambda: remedy.try_it(RUNS))
    assert found.toll("zero.kernel")["ratio"] < 0.5


def test_remedy_of_purging() -> None:
    """jemalloc set to release memory at once: each round gets its 4 MiB from the kernel anew."""
    concluded(
        "less",
        lambda: compare(
            "--set",
            "MALLOC_CONF=dirty_decay_ms:10000",
            command=["env", "LD_PRELOAD=libjemalloc.so.2", workload("storms"), "blocks", "41", "1", str(4 * MIB)],
            env={"MALLOC_CONF": "dirty_decay_ms:0"},
            runs=RUNS,
        ),
    )


def mapping_is_more_than_zeroing(recording: Recording) -> bool:
    shares = family_shares(recording.report)
    return shares["mapping"] > shares["zeroing"]


@pytest.mark.parametrize(("size", "env"), MAPPED.values(), ids=MAPPED)
def test_mapped_blocks_are_not_zeroing(out: Path, size: int, env: dict[str, str]) -> None:
    """So many that a sample or two of the loader's code, 10 ms each, say little beside them."""
    recording = record(out, command=calloc_loop(size, 20011), env=env)
    assert recording.dominant not in ("zeroing", "swap")
    assert mapping_is_more_than_zeroing(recording), recording.report["toll"]


def test_mapped_blocks_largest_is_mapping(out: Path) -> None:
    recording = record(out, command=calloc_loop(HUNDRED, 20011), exact=False)
    shares = family_shares(recording.report)
    assert max(shares, key=lambda name: shares[name]) == "mapping", shares


def test_cached_calloc_is_dearer_than_the_first_touch(out: Path, tmp_path: Path) -> None:
    env = preload("libcachedcalloc.so", tmp_path / "witness.json")
    recording = record(out, command=calloc_loop(HUNDRED, CACHED_CALLS), env=env)
    memset = recording.toll("zero.app", "time_s") + recording.toll("zero.libc", "time_s")
    assert memset > recording.toll("zero.kernel", "time_s")


def test_clearing_is_nearly_all(tmp_path: Path) -> None:
    runs = 0

    def once() -> dict[str, float]:
        nonlocal runs
        runs += 1
        recording = record(tmp_path / f"{runs}.memtoll", command=calloc_loop(10 * MIB, 5003))
        return {"share of zeroing": family_shares(recording.report)["zeroing"]}

    settle(once, {"share of zeroing": Bound(least=0.85)}, 45)


def test_small_blocks_are_neither(out: Path) -> None:
    recording = record(out, command=[workload("churn"), "1000003", "--family"])
    assert recording.dominant not in ("zeroing", "swap")


@pytest.mark.parametrize(
    ("packages", "size"),
    [(CLEARS, 100 * MIB), (NEWEST, 10 * MIB)],
    ids=["100 MiB", "newest"],
)
def test_buffers_that_are_not_cleared(tmp_path: Path, port: int, packages: tuple[str, ...], size: int) -> None:
    done = client(tmp_path / "a.memtoll", port, python_with(packages), size, 401)
    assert done.recording.dominant != "zeroing", done.recording.report["verdict"]
