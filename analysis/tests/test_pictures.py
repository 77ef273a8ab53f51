# SPDX-License-Identifier: GPL-2.0
"""Pictures: what is drawn is what the frames say, in both themes, whatever the recording has."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import memtoll
from memtoll import pictures
from memtoll.pictures import flames, theme
from memtoll.pictures.sizes import site_costs

from crowd import crowd
from facts import FAULT_NS, MS, SCENARIOS, Facts, S, finished
from hostile import hostile

PAGE = 4096
OF_RECORDINGS: tuple[Callable[..., Figure], ...] = (
    pictures.address_map,
    pictures.fault_latency,
    pictures.flame,
    pictures.malloc_latency,
    pictures.sizes,
    pictures.timeline,
)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2: 1 to 21."""
    dark, light = sorted((theme.luminance(one), theme.luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_colours_stand_out(name: str) -> None:
    colours = theme.THEMES[name]
    for ground in (colours.ground, colours.band):
        assert contrast(colours.ink, ground) >= 7
        assert contrast(colours.faint, ground) >= 4.5
        for mark in theme.TOLL_COLOURS.values():
            # On the band, too: within the rounding of what WCAG asks for.
            assert contrast(mark, ground) >= (3.0 if ground == colours.ground else 2.7), (mark, ground)
    for mark in theme.TOLL_COLOURS.values():
        assert contrast(theme.ink_on(mark), mark) >= 4.5


def titles(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts] + [axes.get_title(loc="left") for axes in figure.axes]


@pytest.mark.slow
def test_every_picture_of_every_scenario(scenario: Path) -> None:
    """In both themes by turns: each picture of three scenarios in each."""
    first = sorted(SCENARIOS).index(scenario.stem)
    with memtoll.open(scenario) as rec:
        for number, draw in enumerate(OF_RECORDINGS, first):
            figure = draw(rec, theme=("light", "dark")[number % 2])
            figure.canvas.draw()
            (axes,) = figure.axes
            if axes.axison:
                assert any(unit in axes.get_xlabel() for unit in ("(s)", "(bytes)")), draw
                assert any(text.strip() for text in titles(figure)), draw
            else:
                assert [text.get_text() for text in axes.texts], f"{draw}: empty, without a reason"


@pytest.mark.slow
@pytest.mark.parametrize("size", [(9.0, 4.6), (3.7, 4.4)])
def test_words_stay_inside(busy: Path, size: tuple[float, float]) -> None:
    """No title, legend or label is cut off at the edge; and no figure is left to pyplot."""
    before = plt.get_fignums()
    with memtoll.open(busy) as rec:
        for draw in OF_RECORDINGS:
            figure = draw(rec, size=size)
            figure.canvas.draw()
            box = figure.get_tightbbox(figure.canvas.get_renderer())
            assert box.x0 >= -0.02 and box.y0 >= -0.02, (draw, box)
            assert box.x1 <= size[0] + 0.02 and box.y1 <= size[1] + 0.02, (draw, box)
    assert plt.get_fignums() == before


@pytest.mark.slow
def test_notebooks_show_them(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        figure = pictures.timeline(rec)
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


@pytest.mark.slow
def test_axes_of_the_caller(busy: Path) -> None:
    figure = Figure(figsize=(8, 6))
    own = figure.subplots(2, 3)
    with memtoll.open(busy) as rec:
        for axes, draw in zip(own.flat, OF_RECORDINGS, strict=True):
            assert draw(rec, ax=axes) is figure
            assert axes.get_title(loc="left")
    assert len(figure.axes) == len(OF_RECORDINGS)


def test_unknown_theme(busy: Path) -> None:
    with memtoll.open(busy) as rec, pytest.raises(memtoll.Error, match="light and dark"):
        pictures.timeline(rec, theme="pink")


# ---- timeline


def test_timeline_areas_are_the_tolls(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        axes = pictures.timeline(rec).axes[0]
        areas = {}
        for patch in axes.patches:
            assert isinstance(patch, StepPatch)
            values, edges, baseline = patch.get_data()
            areas[patch.get_label().split()[0]] = float(((values - baseline) * np.diff(edges)).sum())
        spent = rec.timeline.astype({"toll": str}).groupby("toll")["time_s"].sum()
        assert len(areas) >= 3
        for toll, area in areas.items():
            if toll != "others":
                assert area == pytest.approx(spent[toll], rel=1e-6), toll
        assert sum(areas.values()) == pytest.approx(spent.sum(), rel=2e-3)


@pytest.mark.slow
def test_timeline_of_many_slices(tmp_path: Path) -> None:
    """Hours of slices of 10 s: means over neighbours."""
    path = tmp_path / "long.memtoll"
    facts = Facts(path)
    facts.prices()
    facts.process()
    number = 2_003
    facts.database.executemany(
        "INSERT INTO slice (slice, start_ns, end_ns) VALUES (?, ?, ?)",
        ((at, 1000 * S + at * 10 * S, 1010 * S + at * 10 * S) for at in range(number)),
    )
    facts.database.executemany(
        "INSERT INTO process_slice (slice, pid, cpu_ns, minor_faults, major_faults) VALUES (?, 42, ?, 0, 0)",
        ((at, (1 + at % 7) * S) for at in range(number)),
    )
    finished(facts, "./long").database.close()
    with memtoll.open(path) as rec:
        _ = rec.timeline
        figure = pictures.timeline(rec)
        figure.canvas.draw()
        values, edges, baseline = figure.axes[0].patches[0].get_data()
        assert len(values) <= 600
        assert float(((values - baseline) * np.diff(edges)).sum()) == pytest.approx(rec.observed_s, rel=1e-6)


# ---- address map


def sweeps(path: Path, passes: int = 4, pages: int = 8192, far: int = 1 << 30) -> None:
    """Two blocks a terabyte apart, gone over from the lower one's start to the upper one's end, passes times."""
    facts = Facts(path)
    facts.prices()
    facts.slice(1, float(passes))
    facts.process(comm="sweeper")
    site = facts.stack(("malloc", "", 0), ("make", "/src/sweep.c", 7), ("main", "/src/sweep.c", 20))
    code = facts.stack(("sweep", "/src/sweep.c", 13), ("main", "/src/sweep.c", 21))
    for number in range(passes):
        kind = "zero" if number == 0 else "swap_minor"
        facts.fault(
            kind, 2 * pages, FAULT_NS, allocated_stack=site, allocated_call="malloc", touched_stack=code
        ) if number < 2 else None
        for block in range(2):
            for part in range(16):
                start = 1000 * S + number * S + (block * 16 + part) * S // 32
                facts.row(
                    "fault_run", slice=1, pid=42, tid=42, **{"class": kind},
                    address=(0x100000 + block * far + part * pages // 16) * PAGE, pages=pages // 16, faults=pages // 16,
                    first_ns=start, last_ns=start + S // 32 - 1000, allocated_stack=site, allocated_call="malloc",
                    touched_stack=code, area="anon",
                )  # fmt: skip
    facts.access("malloc", site, 2 * pages, (passes - 1) * 2 * pages)
    facts.memory_cgroup(pages * PAGE)
    facts.cpu(S * passes, minor=2 * pages * passes)
    finished(facts, "./sweeper").database.close()


def lines_of(figure: Figure) -> np.ndarray[Any, Any]:
    """Drawn runs: begin, low, end, high."""
    rows = []
    for collection in figure.axes[0].collections:
        if isinstance(collection, LineCollection):
            for path in collection.get_paths():
                points = path.vertices[~np.isnan(path.vertices[:, 0])]
                rows.append(points.reshape(-1, 4))
    return np.concatenate(rows)


def crossings(lines: np.ndarray[Any, Any], height: float) -> int:
    """How often the program goes over one height: lines through it, near ones in time counted once."""
    through = np.sort(lines[(lines[:, 1] <= height) & (lines[:, 3] > height)][:, 0])
    return int(1 + (np.diff(through) > 0.1).sum()) if len(through) else 0


@pytest.mark.slow
def test_map_leaves_out_the_hole_and_keeps_the_diagonals(tmp_path: Path) -> None:
    path = tmp_path / "sweeps.memtoll"
    sweeps(path, passes=4, pages=8192)
    with memtoll.open(path) as rec:
        figure = pictures.address_map(rec)
        lines = lines_of(figure)
        assert len(lines) == 4 * 32
        low, high = figure.axes[0].get_ylim()
        assert high - low < 1.2 * 2 * 8192, "the hole of a terabyte is drawn"
        # Within a block: as high as it has pages, upwards, one after the other.
        for begin, bottom, end, top in lines:
            assert top - bottom == pytest.approx(512) and end > begin
        for height in (300.0, 8000.0, 2 * 8192 - 300.0):
            assert crossings(lines, height) == 4
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert labels == ["swap.in  192 MiB", "zero.kernel  64.0 MiB"]
        said = " ".join(titles(figure))
        assert "again and again" in said and "3.0 times" in said and "64.0 MiB" in said
        inside = [text.get_text() for text in figure.axes[0].texts]
        assert "32 MiB may stay in memory" not in inside, "the bar belongs to one stretch that is larger"
        assert sum("32.0 MiB: malloc at sweep.c:7 (make)" in text for text in inside) == 2


def test_map_of_one_allocation_and_of_tolls(tmp_path: Path) -> None:
    path = tmp_path / "sweeps.memtoll"
    sweeps(path)
    with memtoll.open(path) as rec:
        site = int(rec.faults["allocated_stack"].iloc[0])
        assert len(lines_of(pictures.address_map(rec, allocated_stack=site))) == 4 * 32
        assert len(lines_of(pictures.address_map(rec, tolls=["zero.kernel"]))) == 32
        assert not pictures.address_map(rec, pid=4711).axes[0].axison
        assert not pictures.address_map(rec, allocated_stack=4711).axes[0].axison


def test_map_of_one_stretch_has_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "sweeps.memtoll"
    sweeps(path, far=8192)
    with memtoll.open(path) as rec:
        figure = pictures.address_map(rec)
        (bar,) = (line for line in figure.axes[0].lines if len(set(line.get_xdata())) == 1)
        assert np.ptp(bar.get_ydata()) == pytest.approx(8192)  # pages: the limit of 32 MiB, to scale
        assert "32 MiB may stay in memory" in [text.get_text() for text in figure.axes[0].texts]


def test_map_of_reused_addresses_says_so(tmp_path: Path) -> None:
    path = tmp_path / "again.memtoll"
    facts = Facts(path)
    facts.prices()
    facts.slice(1, 5.0)
    facts.process()
    for number in range(5):
        facts.row(
            "fault_run", slice=1, pid=42, tid=42, **{"class": "zero"}, address=1 << 30, pages=2560, faults=2560,
            first_ns=1000 * S + number * S, last_ns=1000 * S + number * S + 9 * MS, allocated_stack=0, touched_stack=0,
        )  # fmt: skip
    facts.cpu(S)
    finished(facts, "./again").database.close()
    with memtoll.open(path) as rec:
        said = " ".join(titles(pictures.address_map(rec))).replace("\n", " ")
        assert "The same 10.0 MiB" in said and "5.0 times" in said and "50.0 MiB in all" in said


@pytest.mark.slow
def test_map_of_very_many_runs(tmp_path: Path) -> None:
    """150,000 runs are fewer lines, and no spot that has runs stays empty."""
    path = tmp_path / "crowd.memtoll"
    crowd(path, sites=11, runs=150_000)
    with memtoll.open(path) as rec:
        runs = rec.faults
        _ = rec.verdict
        figure = pictures.address_map(rec)
        figure.canvas.draw()
        lines = lines_of(figure)
        assert 50_000 < len(lines) < len(runs)
        first = (runs["address"].to_numpy() // PAGE).astype(float)
        drawn, _, _ = np.histogram2d(lines[:, 0], lines[:, 1], bins=(200, 150), range=((0, 7), (0, np.ptp(first) + 3)))
        wanted, _, _ = np.histogram2d(
            runs["start_s"], first - first.min(), bins=(200, 150), range=((0, 7), (0, np.ptp(first) + 3))
        )
        # The grid of the thinning has other edges: a cell or its neighbour.
        near = np.pad(drawn, 1)
        around = sum(near[x : x + 200, y : y + 150] for x in range(3) for y in range(3))
        assert (around[wanted > 0] > 0).all()
        assert (drawn > 0).sum() > 0.97 * (wanted > 0).sum()


# ---- flame graph


@pytest.mark.parametrize("owner", flames.OWNERS)
def test_flame_widths_are_times(busy: Path, owner: str) -> None:
    with memtoll.open(busy) as rec:
        tolls = [str(toll) for toll in rec.toll.index if toll != "compute"]
        root = flames.tree(rec.sites, tolls, owner)
        sites = rec.sites[rec.sites["toll"] != "compute"]
        assert root.time_s == pytest.approx(sites["time_s"].sum())
        waiting = [root]
        while waiting:
            cell = waiting.pop()
            if cell.below:
                assert cell.time_s == pytest.approx(sum(each.time_s for each in cell.below.values()))
                waiting += cell.below.values()
            else:
                assert cell.name.lstrip("\0") in tolls
        figure = pictures.flame(rec, owner=owner)
        figure.canvas.draw()
        boxes = [
            path.get_extents()
            for collection in figure.axes[0].collections
            if isinstance(collection, PatchCollection)
            for path in collection.get_paths()
        ]
        assert max(box.width for box in boxes) == pytest.approx(root.time_s)


def test_flame_of_one_toll(heap_blocks: Path) -> None:
    with memtoll.open(heap_blocks) as rec:
        figure = pictures.flame(rec, "zero.libc")
        figure.canvas.draw()
        texts = [text.get_text() for text in figure.axes[0].texts]
        assert texts and {"calloc", "round_once", "main", "zero.libc", "all"} <= set(texts)
        assert "calloc_loop.c:42 (round_once)" in " ".join(titles(figure)).replace("\n", " ")
        with pytest.raises(memtoll.Error, match="no toll"):
            pictures.flame(rec, "zero.moon")
        with pytest.raises(memtoll.Error, match="no owner"):
            pictures.flame(rec, owner="freed_at")


# ---- latency, sizes, before and after


def test_latency_counts_every_fault_and_call(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        for draw, total in (
            (pictures.fault_latency, rec.classes["count"].sum()),
            (pictures.malloc_latency, rec.allocations["calls"].sum()),
        ):
            steps = [patch for patch in draw(rec).axes[0].patches if not patch.get_fill()]
            assert sum(float(np.sum(patch.get_data()[0])) for patch in steps) == total


def test_latency_of_single_calls(tmp_path: Path) -> None:
    """Where the kernel counted calls by their length, those are what is drawn, each of them."""
    path = tmp_path / "single.memtoll"
    made = SCENARIOS["heap-blocks"](path)
    for low, high, calls in ((0, 32, 999_983), (8_192, 10_240, 97), (2**34, None, 1)):
        made.row("latency", pid=42, call="malloc", stack_id=5, low_ns=low, high_ns=high, calls=calls)
    made.save()
    made.database.close()
    with memtoll.open(path) as rec:
        figure = pictures.malloc_latency(rec)
        (steps,) = (patch for patch in figure.axes[0].patches if not patch.get_fill())
        counts, edges, _ = steps.get_data()
        assert sorted(count for count in counts if count) == [1, 97, 999_983]
        assert edges[-1] >= 2**34 / 1e9
        assert rec.latency["count"].sum() == 999_983 + 97 + 1
        assert rec.latency["high_ns"].isna().sum() == 1


def test_latency_takes_the_probe_out(heap_blocks: Path) -> None:
    """2,999 memsets of 83 us each and a few calls without: 82.9 us and some ns a call on average."""
    with memtoll.open(heap_blocks) as rec:
        figure = pictures.malloc_latency(rec)
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        spent = float(rec.sites[rec.sites["call"] == "calloc"]["time_s"].sum())
        (label,) = (text for text in labels if text.startswith("calloc"))
        assert label.startswith("calloc: 3,001, ") and label.endswith(" us each")
        assert float(label.split()[2]) == pytest.approx(spent / 3001 * 1e6, rel=0.03)


def test_costs_of_sites_are_the_sites(busy: Path) -> None:
    with memtoll.open(busy) as rec:
        made = rec.sites[rec.sites["call"].isin(["malloc", "calloc"]) & (rec.sites["allocated_stack"] != 0)]
        costs = site_costs(rec)
        assert costs["time_s"].sum() == pytest.approx(made["time_s"].sum())
        assert len(costs) == len(made.groupby(["call", "allocated_stack"], observed=True))
        points = pictures.sizes(rec).axes[0].collections[0].get_offsets()
        assert len(points) == int((costs["time_s"] >= 1e-6).sum())


@pytest.mark.slow
def test_before_and_after(tmp_path: Path) -> None:
    for name in ("heap-blocks", "mapped-blocks"):
        SCENARIOS[name](tmp_path / f"{name}.memtoll").database.close()
    comparison = memtoll.diff(
        tmp_path / "heap-blocks.memtoll", tmp_path / "mapped-blocks.memtoll", work_before=3001, work_after=3001
    )
    for size in ((9.0, 4.6), (3.7, 4.4)):
        figure = pictures.before_after(comparison, size=size)
        figure.canvas.draw()
        axes = figure.axes[0]
        names = [tick.get_text() for tick in axes.get_yticklabels()]
        assert "zero.libc" in names and "map" in names
        widths = sorted(patch.get_width() for patch in axes.patches)
        table = pd.DataFrame(comparison.toll).loc[names, ["before", "after"]]
        assert widths == pytest.approx(sorted(table.to_numpy().ravel()))
        assert "zero.libc takes" in " ".join(titles(figure)).replace("\n", " ")
        assert "less" in " ".join(titles(figure))


# ---- names


@pytest.mark.slow
def test_hostile_names_are_words(tmp_path: Path) -> None:
    path = tmp_path / "hostile.memtoll"
    hostile(path)
    with memtoll.open(path) as rec, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        for draw in OF_RECORDINGS:
            figure = draw(rec)
            figure.canvas.draw()
            for text in (*figure.texts, *figure.axes[0].texts):
                assert text.get_text().replace("\n", "").isprintable()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("draw", [each for each in OF_RECORDINGS if each not in (pictures.address_map, pictures.sizes)])
@pytest.mark.slow
def test_values_that_no_tracer_writes_are_damage(draw: Callable[..., Figure], tmp_path: Path) -> None:
    """What pandas and matplotlib say of them, in words of their own, is said as what it is: the recording's fault."""
    path = tmp_path / "endless.memtoll"
    SCENARIOS["heap-blocks"](path).database.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE fault SET timed_faults = faults, timed_cpu_ns = 9e999")
        database.execute("UPDATE process_slice SET cpu_ns = 9e999")
        database.execute("UPDATE call SET cpu_ns = 9e999")
    with memtoll.open(path, incomplete=True) as rec, pytest.raises(memtoll.DamagedRecording, match=r"^[^\n]*$"):
        draw(rec)
