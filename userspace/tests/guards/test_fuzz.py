# SPDX-License-Identifier: GPL-2.0
"""The fuzzers of `make fuzz` work: each makes a few tries; a fault that was planted is found, kept and found again."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import facts
from harness import MEMTOLL, PATIENCE, ROOT, TESTS, WORKLOADS

# Built with sanitizers, which make check does not do.
pytestmark = pytest.mark.slow

BUILT = MEMTOLL.parent / "san" / "fuzz"
SEED = ["--seed", "7919"]


def fuzz(name: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [BUILT / name, *words], capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT
    )
    assert done.returncode in (0, 1), done
    return done


def test_a_planted_fault_is_found_and_found_again(tmp_path: Path) -> None:
    # Of 128 bytes each is met often, and what is tried is the same on every machine.
    begin = tmp_path / "begin"
    begin.write_bytes(bytes(128))
    keep = tmp_path / "kept"
    keep.mkdir()
    done = fuzz("fuzz_planted", *SEED, "--tries", "100003", "--keep", keep, begin)
    assert done.returncode == 1, done
    assert "heap-buffer-overflow" in done.stderr
    (kept,) = keep.iterdir()
    assert kept.read_bytes()[16] == 0x7F
    assert str(kept) in done.stderr
    (again,) = re.findall(r"again: (.*)", done.stderr)
    repeated = subprocess.run(
        shlex.split(again), capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT
    )
    assert repeated.returncode != 0 and "heap-buffer-overflow" in repeated.stderr
    # And by the seed and the number, which are in its name.
    first = kept.read_bytes()
    kept.unlink()
    number = kept.name.rpartition("-")[2]
    fuzz("fuzz_planted", *SEED, "--first", number, "--tries", "1", "--keep", keep, begin)
    assert kept.read_bytes() == first


@pytest.mark.parametrize(("name", "tries"), [("fuzz_unwind", 1009), ("fuzz_elf", 503), ("fuzz_recording", 13)])
def test_a_few_tries(tmp_path: Path, name: str, tries: int) -> None:
    begin = WORKLOADS / "calloc_loop"
    if name == "fuzz_recording":
        begin = tmp_path / "a.memtoll"
        facts.heap_blocks(begin).database.close()
    done = fuzz(name, *SEED, "--tries", str(tries), "--keep", tmp_path, begin)
    assert (done.returncode, done.stdout) == (0, f"{name}: {tries} tries, nothing found (--seed 7919)\n"), done


@pytest.mark.parametrize("name", ["options", "perf_map", "cgroup", "maps", "python", "interpreters", "heap"])
def test_a_few_tries_of_what_is_named(tmp_path: Path, name: str) -> None:
    begin = sorted((TESTS / "fuzz" / "corpus" / name).iterdir())
    done = fuzz(f"fuzz_{name}", *SEED, "--tries", "31", "--keep", tmp_path, *begin)
    assert (done.returncode, done.stdout) == (0, f"fuzz_{name}: 31 tries, nothing found (--seed 7919)\n"), done


@pytest.mark.parametrize(("kind", "first"), [("bytes", 5), ("values", 0)])
def test_a_few_tries_of_the_package(tmp_path: Path, kind: str, first: int) -> None:
    """Each with one that memtoll reports, too; the pictures, which are the number 0's, of one kind."""
    package = str(TESTS / "fuzz" / "package.py")
    words = [sys.executable, "-B", package, kind, *SEED, "--first", str(first), "--tries", "3", "--keep", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"package {kind}: 3 tries, "), done
