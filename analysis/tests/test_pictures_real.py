# SPDX-License-Identifier: GPL-2.0
"""Casebook 4 and 1 for real: the picture and the page must tell what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_page import Reader, check_safe
from test_pictures import crossings, lines_of, titles

import memtoll
from memtoll import pictures
from memtoll.page import page

from browser import DESKTOP, browser
from harness import MIB, record, site_line, workload
from swapping import in_cgroup, memory_with_swap

pytestmark = pytest.mark.root

CHUNK = 8 * MIB // 4096


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """80 MiB and a swap file."""
    with memory_with_swap("file") as cgroup:
        yield cgroup


def passes_over(rec: memtoll.Recording, chunks: int, tolls: list[str]) -> list[int]:
    """How often the picture's lines go through heights within each chunk."""
    runs = rec.faults[(rec.faults["call"] == "malloc") & (rec.faults["area"] == "")]
    runs = runs if len(runs) else rec.faults[rec.faults["call"] == "malloc"]
    lines = lines_of(pictures.address_map(rec, allocated_stack=int(runs["allocated_stack"].iloc[0]), tolls=tolls))
    top = float(lines[:, 3].max())
    return [crossings(lines, top * (chunk + 0.5) / chunks) for chunk in range(chunks)]


def words_of(figure: object) -> str:
    return " ".join(" ".join(titles(figure)).split())  # type: ignore[arg-type]


@pytest.mark.machine
def test_cyclic_sweep_at_a_glance(tmp_path: Path, small_memory: Path) -> None:
    """B: four diagonals, the last three of swap-ins; the page names the line, the limit and the remedy."""
    path = tmp_path / "b.memtoll"
    made = record(path, command=in_cgroup(small_memory, workload("pagez"), "20", "4"))
    assert made.witness[-1]["passes"] == 4
    with memtoll.open(path) as rec:
        back = passes_over(rec, 20, ["swap.in"])
        # Which pages of a chunk are still there when its turn comes may differ by a few.
        assert np.median(back) == 3 and np.mean(np.array(back) == 3) >= 0.7, back
        assert np.median(passes_over(rec, 20, ["zero.kernel"])) == 1
        said = words_of(pictures.address_map(rec))
        assert "160 MiB gone over in order, again and again, with room for 80.0 MiB" in said
        made_of_it = page(rec)
    reader = Reader(made_of_it)
    check_safe(reader)
    text = reader.text
    for part in (
        "Swap traffic takes",
        f"pagez.c:{site_line('pagez.c', 'malloc')} (make_chunk)",
        f"pagez.c:{site_line('pagez.c', 'change')} (change_pages)",
        "cyclic sweep",
        "80.0 MiB",
        "swap-in",
        "would be enough",
    ):
        assert part in text, part
    (tmp_path / "b.html").write_text(made_of_it)
    with browser() as tab:
        tab.screen(*DESKTOP)
        tab.open(tmp_path / "b.html")
        sites = tab.run("Array.from(document.querySelectorAll('.site summary'), site => site.innerText)")
        # Where reclaim takes longer than swap-ins it comes first: it belongs to no block.
        first = next(site for site in sites[:2] if "reclaim" not in site)
        assert "swap.in" in first and "make_chunk" in first and "change_pages" in first
        assert tab.complaints() == [] and tab.overflow() == []


@pytest.mark.machine
def test_one_pass_is_one_diagonal(tmp_path: Path, small_memory: Path) -> None:
    """A: every page once; hardly any comes back."""
    path = tmp_path / "a.memtoll"
    record(path, command=in_cgroup(small_memory, workload("pagez"), "80", "1"))
    with memtoll.open(path) as rec:
        assert set(passes_over(rec, 80, ["zero.kernel"])) == {1}
        said = words_of(pictures.address_map(rec))
        assert "640 MiB gone over once, in order" in said
        assert "one-pass sweep" in Reader(page(rec)).text


def test_reused_calloc(tmp_path: Path) -> None:
    """Casebook 1, the loop behind casebook 3: the page names the call, the bytes and the remedy."""
    path = tmp_path / "one.memtoll"
    record(path, command=[workload("calloc_loop"), str(10 * MIB), "307"])
    with memtoll.open(path) as rec:
        reader = Reader(page(rec))
        assert "zero.libc" in words_of(pictures.flame(rec, "zero.libc")) + reader.text
        place = str(rec.sites.iloc[0]["allocated_place"])
        assert place in words_of(pictures.flame(rec)) and place in words_of(pictures.sizes(rec))
    assert "libc's calloc clears 2.99 GiB" in reader.text or "libc's calloc clears 2.98 GiB" in reader.text
    assert "calloc-reuse-memset" in reader.text and "mmap_threshold" in reader.text
