# SPDX-License-Identifier: GPL-2.0
"""
How much of the BPF stack a program takes, with all functions that it calls.

The verifier allows 512 bytes to a whole way through them, each function's part rounded up to 32
(kernel/bpf/verifier.c, check_max_stack_depth()). A newer one may give a program a stack of its own
(6.13), so that what this kernel loads, 6.1 may refuse.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from typing import Final

from harness import MEMTOLL

MOST: Final = 512
OBJECT: Final = MEMTOLL.parent / "bpf" / "memtoll.linked.o"

# Loaded only where the kernel has session links: 6.13, in which such programs have their own stack.
OWN_STACK: Final = {"alloc_session"}

# Functions of the kernel, which have its stack.
KERNEL: Final = {"bpf_rdonly_cast"}


class Ways:
    """Frames and calls of the functions of an object, from its disassembly with relocations."""

    def __init__(self, listing: str) -> None:
        self.frames: dict[str, int] = defaultdict(int)
        self.calls: dict[str, set[str]] = defaultdict(set)
        self.places: dict[int, str] = {}  # those that relocations name by their offset in .text
        section = function = previous = ""
        called: list[tuple[str, int]] = []
        for line in listing.splitlines():
            if match := re.match(r"Disassembly of section (\S+):", line):
                section = match[1]
            elif match := re.match(r"([0-9a-f]+) <(.+)>:", line):
                if not match[2].startswith("LBB"):
                    function = match[2]
                    self.frames[function] += 0
                    if section == ".text":
                        self.places[int(match[1], 16)] = function
            elif match := re.search(r"R_BPF_64_(?:32|64)\s+(\S+)$", line):
                if match[1] == ".text":
                    if target := re.search(r"call (-?\w+)", previous):
                        called.append((function, (int(target[1], 0) + 1) * 8))
                    elif target := re.search(r"r\d+ = (\w+) ll", previous):  # a callback
                        called.append((function, int(target[1], 0)))
                elif "call" in previous and match[1] not in KERNEL:
                    self.calls[function].add(match[1])
            elif match := re.search(r"r10 - (\w+)", line):
                self.frames[function] = max(self.frames[function], int(match[1], 0))
            elif (match := re.search(r"(r\d+) \+= -(\w+)", line)) and previous.endswith(f"{match[1]} = r10"):
                self.frames[function] = max(self.frames[function], int(match[2], 0))
            previous = line.rstrip()
        for caller, offset in called:
            if offset in self.places:
                self.calls[caller].add(self.places[offset])

    def deepest(self, function: str) -> tuple[int, list[str]]:
        """Bytes of the way that takes most, and its functions."""
        below: tuple[int, list[str]] = max((self.deepest(callee) for callee in self.calls[function]), default=(0, []))
        frame = max(32, -(-self.frames[function] // 32) * 32)
        return frame + below[0], [f"{function} {frame}", *below[1]]


def ways() -> Ways:
    return Ways(subprocess.run(["llvm-objdump", "-d", "-r", OBJECT], check=True, capture_output=True, text=True).stdout)


def test_the_stack_of_a_whole_way_is_within_what_is_allowed() -> None:
    found = ways()
    deepest = {name: found.deepest(name) for name in found.frames}
    assert not {name: way for name, way in deepest.items() if way[0] > MOST and name not in OWN_STACK}


def test_calls_and_callbacks_are_found() -> None:
    """Known ones: or the other test would hold whatever the object is."""
    found = ways()
    assert "stack_of_registers" in found.calls["cpu_sample"]
    assert "walk_on" in found.calls["stack_walk"], "given to bpf_loop()"
    assert found.frames["fault_begin"] > 0
