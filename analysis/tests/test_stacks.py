# SPDX-License-Identifier: GPL-2.0
"""Stacks as lists and as text."""

from __future__ import annotations

from pathlib import Path

import pytest

import memtoll

import facts
import harness


def test_lists_and_text(heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        site = rec.sites.loc[1]
        stack = rec.stack(site["allocated_stack"])
        assert [frame.function for frame in stack] == ["calloc", "round_once", "main"]
        assert site["allocated_at"] == "main;round_once;calloc"
        assert stack[1] == memtoll.Frame(
            "round_once", "/srv/program", "/src/calloc_loop.c", 42, "native", "calloc_loop.c:42",
            "calloc_loop.c:42 (round_once)",
        )  # fmt: skip
        assert site["allocated_place"] == "calloc_loop.c:42 (round_once)"
        assert site["allocated_place"] in rec.verdict.sentence
        assert str(stack[1]) == "round_once  calloc_loop.c:42"
        assert rec.stacks.loc[site["allocated_stack"], "text"] == site["allocated_at"]
        lines = rec.stack_frames[rec.stack_frames["stack_id"] == site["allocated_stack"]]
        assert list(lines["function"]) == [frame.function for frame in stack]


def test_unknown_stack(heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        assert rec.stack(0) == []
        with pytest.raises(KeyError):
            rec.stack(12345)


def test_text_is_that_of_folded(busy: Path) -> None:
    """As `memtoll report --folded` writes them: a ';' in a name becomes ':', no name '?'."""
    with memtoll.open(busy) as rec:
        sites = rec.sites[rec.sites["toll"] == "zero.kernel"]
        texts = {
            row["allocated_at"] if row["allocated_stack"] else row["touched_at"] for row in sites.to_dict("records")
        }
        result = harness.memtoll("report", busy, "--folded", "zero.kernel")
        folded = {line.rpartition(" ")[0] for line in result.stdout.splitlines()}
        assert folded
        assert folded <= texts
        assert "main;parse:all;malloc" in set(rec.stacks["text"])
        assert "sweep;?" in set(rec.stacks["text"])


def test_places_are_those_of_the_verdict(scenario: Path) -> None:
    with memtoll.open(scenario) as rec:
        rec.verdict  # noqa: B018 - makes view top_site
        top = rec.views.rows("SELECT toll, allocated_place, touched_place FROM temp.top_site")
        first = rec.sites.groupby("toll", observed=True).head(1).set_index("toll")
        assert top
        for toll, *places in top:
            for name, place in zip(("allocated_place", "touched_place"), places, strict=True):
                ours = first.loc[toll, name]
                assert (ours if isinstance(ours, str) else None) == place, (toll, name)


def test_stack_without_frames(tmp_path: Path) -> None:
    path = tmp_path / "bare.memtoll"
    made = facts.heap_blocks(path)
    made.row("stack", stack_id=77, pid=42, how="fp", complete=0)
    made.save()
    with memtoll.open(path) as rec:
        assert rec.stack(77) == []
        assert bool(rec.stacks.loc[77].isna()["text"])
