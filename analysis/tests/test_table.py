# SPDX-License-Identifier: GPL-2.0
"""Losses ride along with the frames."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import memtoll

LINE = "lost: 69 ring_fault ("


@pytest.mark.slow
def test_tables_show_losses(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        for name in memtoll.recording.NAMES:
            table = getattr(rec, name)
            assert LINE in repr(table), name
            assert "7 runs_unstored" in repr(table)
            assert LINE in (table._repr_html_() or "")
            assert table.attrs["losses"]["ring_fault"]["count"] == 69
        share = rec.losses.loc["ring_fault", "share"]
        assert f"({100 * share:.1f} % of events)" in rec.toll.note
        assert LINE in str(rec)


def test_not_shown_without_losses(heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        assert rec.toll.attrs["losses"] == {}
        assert rec.toll.note == ""
        assert "lost" not in repr(rec.toll)
        assert "lost" not in str(rec)


@pytest.mark.parametrize(
    "part",
    [
        lambda t: t.head(3),
        lambda t: t[t["share"] > 0],
        lambda t: t[["toll", "time_s"]],
        lambda t: t.loc[1:2],
        lambda t: t.iloc[::2],
        lambda t: t.sort_values("bytes"),
        lambda t: t.query("count > 0"),
        lambda t: t.copy(),
        lambda t: t.assign(more=1),
        lambda t: t.reset_index(),
        lambda t: t.rename(columns={"bytes": "b"}),
        lambda t: pickle.loads(pickle.dumps(t)),
    ],
)
def test_parts_of_tables_show_losses(busy: Path, part: Callable[[memtoll.Table], pd.DataFrame]) -> None:
    with memtoll.open(busy) as rec:
        table = part(rec.sites)
        assert isinstance(table, memtoll.Table)
        assert LINE in repr(table)


def test_attrs_are_not_shared(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        rec.toll.attrs["losses"].clear()
        assert LINE in repr(rec.sites)


def test_html_is_escaped() -> None:
    table = memtoll.Table({"a": [1]})
    table.attrs["losses"] = {"<b>": {"count": 1, "share": None, "of": None}}
    assert "<b>" not in (table._repr_html_() or "")
    assert "&lt;b&gt;" in (table._repr_html_() or "")
