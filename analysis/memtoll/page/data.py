# SPDX-License-Identifier: GPL-2.0
"""The sites of a recording as compact JSON: columns, and all stacks as one tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ..opening import Progress
from ..pictures.theme import toll_colour
from ..text import cut
from ..visible import visible
from .words import LETTERS

if TYPE_CHECKING:
    from ..recording import Recording

SITES: Final = 100_000
# Calls in the tree of stacks. With all sites: a page of 30 MB, which opens in seconds.
NODES: Final = 1_000_000


@dataclass
class Tree:
    """Stacks, root first, each call one node below its caller; node 0 is the root of all."""

    parent: list[int] = field(default_factory=lambda: [0])
    frame: list[int] = field(default_factory=lambda: [-1])
    known: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, frames: list[int]) -> int:
        """The node of a stack's leaf; frames from the root on."""
        node = 0
        for each in frames:
            key = (node, each)
            below = self.known.get(key)
            if below is None:
                below = self.known[key] = len(self.parent)
                self.parent.append(node)
                self.frame.append(each)
            node = below
        return node


@dataclass
class Texts:
    """Texts by number."""

    texts: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, value: object) -> int:
        text = "" if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)) else str(value)
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = len(self.texts)
            self.texts.append(cut(visible(text[: LETTERS + 1]), LETTERS))
        return number


def site_data(rec: Recording, limit: int = SITES, progress: Progress | None = None) -> dict[str, Any]:
    """What the page's script shows: sites most expensive first, at most limit, frames, tree, texts.

    time in ns, share in parts per million. left: sites that are not in it, with their time.
    """
    texts, tree = Texts(), Tree()
    sites = rec.sites
    taken = pd.DataFrame(sites.head(limit))
    stacks, frames = _stacks(rec, taken, texts)
    tolls = [str(toll) for toll in rec.toll.index]
    number = {toll: at for at, toll in enumerate(tolls)}
    areas = _areas(rec)
    places = _places(rec)
    columns: dict[str, list[int]] = {
        name: [] for name in ("toll", "call", "time", "share", "bytes", "count", "least", "a", "t", "ap", "tp", "area")
    }
    rows = taken.reset_index().to_dict("list")
    done = 0
    for at in range(len(taken)):
        if len(tree.parent) > NODES:
            break
        if progress and at % 4096 == 0:
            progress("writing sites", at, len(taken))
        columns["toll"].append(number[rows["toll"][at]])
        columns["call"].append(texts.of(rows["call"][at]))
        columns["time"].append(round(rows["time_s"][at] * 1e9))
        columns["share"].append(round(rows["share"][at] * 1e6))
        columns["bytes"].append(int(rows["bytes"][at]))
        columns["count"].append(int(rows["count"][at]))
        columns["least"].append(int(bool(rows["bytes_at_least"][at])))
        for key, stack, place in zip("at", ("allocated_stack", "touched_stack"), places[rows["rank"][at]], strict=True):
            columns[key].append(tree.add(stacks.get(rows[stack][at], [])))
            columns[f"{key}p"].append(texts.of(place))
        columns["area"].append(texts.of(areas.get(rows["rank"][at], "")))
        done = at + 1
    if progress:
        progress("writing sites", len(taken), len(taken))
    left = sites.iloc[done:]
    return {
        "tolls": tolls,
        "colours": [toll_colour(toll) for toll in tolls],
        "observed": round(rec.observed_s * 1e9),
        "sites": columns,
        "left": {"sites": len(left), "time": round(float(left["time_s"].sum()) * 1e9)},
        "parent": tree.parent,
        "frame": tree.frame,
        "frames": frames,
        "texts": texts.texts,
    }


def _stacks(rec: Recording, sites: pd.DataFrame, texts: Texts) -> tuple[dict[int, list[int]], dict[str, list[int]]]:
    """Frames by stack, root first, and what each frame is."""
    wanted = set(sites["allocated_stack"]) | set(sites["touched_stack"])
    lines = rec.stack_frames
    libraries = _libraries(rec)
    if len(wanted) < len(rec.stacks):
        lines = lines[lines["stack_id"].isin(wanted)]
    names = ("function", "module", "place", "kind", "file")
    frames: dict[str, list[int]] = {name: [] for name in ("function", "module", "place", "kind", "own")}
    known: dict[tuple[object, ...], int] = {}
    stacks: dict[int, list[int]] = {}
    columns = [lines[name].astype(object).tolist() for name in names]
    for stack, *frame in zip(lines["stack_id"].tolist(), *columns):
        key = tuple(frame)
        number = known.get(key)
        if number is None:
            number = known[key] = len(known)
            said = dict(zip(names, frame, strict=True))
            for name in ("function", "module", "place", "kind"):
                frames[name].append(texts.of(said[name]))
            unnamed = not said["function"] and not said["module"]
            library = (said["function"], said["module"], said["file"]) in libraries
            frames["own"].append(int(not library and not unnamed and said["kind"] != "kernel"))
        stacks.setdefault(stack, []).append(number)
    for each in stacks.values():
        each.reverse()
    return stacks, frames


def _libraries(rec: Recording) -> set[tuple[object, object, object]]:
    """Function, module and file of the frames that a sentence passes over: libraries, allocators, interpreters."""
    rec.views.make("library_frame")
    return set(
        rec.views.rows(
            "SELECT f.function, f.module, f.file FROM frame f JOIN library_frame l ON l.frame_id = f.frame_id"
        )
    )


def _places(rec: Recording) -> dict[int, tuple[str, str]]:
    """Where the report in text says that each site is: allocated, touched."""
    rec.views.make("site_place_short")
    return {
        rank: (allocated, touched)
        for rank, allocated, touched in rec.views.rows("SELECT rank, allocated, touched FROM temp.site_place_short")
    }


def _areas(rec: Recording) -> dict[int, str]:
    """Kind of memory, and the file, of sites outside of allocations."""
    rec.views.make("sites")
    return {rank: area for rank, area in rec.query("SELECT rank, area FROM temp.sites WHERE area <> ''").to_numpy()}
