# SPDX-License-Identifier: GPL-2.0
"""Free memory in pieces of the size of a huge page.

A machine that has been up for a day has its free memory in small pieces, between pages of the page cache. The kernel
then gives a program small pages where it asks for huge ones, and a test of huge pages would judge the machine.
"""

from __future__ import annotations

from pathlib import Path

from harness import MIB, PAGE

HUGE_ORDER = 9
ENOUGH = 512 * MIB
"""Far more than what a test takes: programs beside it take some in the meantime."""

BUDDIES = Path("/proc/buddyinfo")
COMPACT = Path("/proc/sys/vm/compact_memory")
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
JOINED = Path("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed")


def free_in_huge_pieces(text: str) -> int:
    """Bytes free in blocks of 2 MiB and more. A zone has one line, a count for each order: proc(5)."""
    total = 0
    for line in text.splitlines():
        _, _, zone = line.partition("zone")
        name, *counts = zone.split()
        if name != "DMA":
            total += sum(int(count) * PAGE << order for order, count in enumerate(counts) if order >= HUGE_ORDER)
    return total


def joined_bytes() -> int:
    """What khugepaged has made huge pages of, of all programs since the machine began. It clears what a program has not
    touched by then: memory that no fault brings, nor is any counted for it.
    """
    return int(JOINED.read_text()) * (PAGE << HUGE_ORDER) if JOINED.exists() else 0


def make_huge_pieces() -> None:
    """Have the kernel move pages together, and where the page cache fills the memory give up what of it is clean."""
    for control in (COMPACT, DROP_CACHES, COMPACT):
        if free_in_huge_pieces(BUDDIES.read_text()) >= ENOUGH:
            return
        control.write_text("1")
