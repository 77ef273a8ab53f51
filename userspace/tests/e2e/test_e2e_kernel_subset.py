# SPDX-License-Identifier: GPL-2.0
"""Of the kernel's types a start looks through those alone that its programs name, once they are known."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from harness import memtoll, tool
from relocations import Relocations, assert_subset

pytestmark = pytest.mark.root
# Type information without a type: a header (include/uapi/linux/btf.h), and one string, which is empty.
EMPTY = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, 0, 0, 1) + b"\0"


def swap_is_on() -> bool:
    return len(Path("/proc/swaps").read_text().splitlines()) > 1


def two_starts(tmp_path: Path) -> list[Relocations]:
    """The second of them with what the first one has kept."""
    env = {"MEMTOLL_PRICES": str(tmp_path / "kept"), "MEMTOLL_DEBUG": "1"}
    starts = []
    for name in ("whole", "subset"):
        done = memtoll("record", "-o", str(tmp_path / name), "--", tool("true"), env=env)
        assert done.status == 0, done
        starts.append(Relocations(done.stderr))
    return starts


def test_the_same_instructions(tmp_path: Path) -> None:
    """Those of swap are loaded where there is any: others are, where another test turns some on or off meanwhile."""
    for turn in range(10):
        (tmp_path / str(turn)).mkdir()
        swap = swap_is_on()
        starts = two_starts(tmp_path / str(turn))
        loaded = [start.programs for start in starts]
        if swap == swap_is_on() and loaded[0] == loaded[1]:
            break
    assert_subset(*starts)


def test_one_that_is_no_good_is_done_without(tmp_path: Path) -> None:
    """It has no type, in a file that is whole and ours."""
    kept = tmp_path / "kept"
    env = {"MEMTOLL_PRICES": str(kept)}
    assert memtoll("record", "-o", str(tmp_path / "first"), "--", tool("true"), env=env).status == 0
    (file,) = kept.glob("*.btf-*")
    magic = file.read_bytes()[:8]
    file.write_bytes(magic + struct.pack("<II", len(EMPTY), zlib.crc32(EMPTY)) + EMPTY)
    env["MEMTOLL_DEBUG"] = "1"
    done = memtoll("record", "-o", str(tmp_path / "second"), "--", tool("true"), env=env)
    assert done.status == 0, done
    assert "failed to load BPF skeleton" in done.stderr
