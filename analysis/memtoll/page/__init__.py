# SPDX-License-Identifier: GPL-2.0
"""A recording as one self-contained HTML file: python3 -m memtoll html FILE.

Nothing in it comes from the network, and its own Content-Security-Policy forbids it to. The sites
and their stacks are JSON inside, shown by the script as they are asked for; all the rest is there
without a script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from matplotlib.figure import Figure

from .. import pictures
from ..opening import Progress, understanding
from ..pictures import overtime
from ..version import __version__
from . import change, charts, data, markup, verdict
from .drawing import Drawing, draw
from .words import embedded, shown

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..recording import Recording

# Tolls of faults, which the address map shows.
FAULT_TOLLS: Final = ("zero.kernel", "swap.in", "reclaim", "cow", "file.fault", "fault.user", "fault.other")
# Parts of the page that have a link at its top.
LINKS: Final = {
    "verdict": "Verdict",
    "advice": "What else",
    "when": "When and where",
    "tolls": "Tolls",
    "sites": "Sites",
    "flame": "Flame graph",
    "memory": "Memory",
    "costs": "Sizes and latency",
    "processes": "Processes",
    "trust": "Trust",
}


def page(
    rec: Recording,
    *,
    sites: int = data.SITES,
    progress: Progress | None = None,
    changed: Comparison | None = None,
) -> str:
    """The page of a recording: text of an HTML file, UTF-8.

    sites: the most expensive ones to keep, at most; what is left out is said on the page. progress: as
    for memtoll.open. changed: a memtoll.Comparison with this recording as the later one; the page can then be
    switched to what changed. Errors: those of the recording's frames.
    """
    with understanding(rec.path):
        return _page(rec, sites, progress, changed)


def _page(rec: Recording, sites: int, progress: Progress | None, changed: Comparison | None) -> str:
    shown_by_script = data.site_data(rec, sites, progress)
    script = _file("charts.js") + _file("page.js")
    when = _charts(rec, shown_by_script, progress)
    made = _drawings(
        rec,
        {"sizes": pictures.sizes, "faults": pictures.fault_latency, "mallocs": pictures.malloc_latency},
        progress,
    )
    costs = [markup.figure(f"picture-{name}", drawing) for name, drawing in made.items()]
    blob = embedded(shown_by_script)
    body = [
        change.change(changed) if changed else "",
        verdict.verdict(rec),
        verdict.advice(rec),
        markup.pictures("when", "When and where", when),
        markup.tolls(rec),
        _file("sites.html"),
        *(make(rec) for make in markup.SECTIONS[:2]),
        markup.pictures("costs", "Sizes and latency", costs),
        *(make(rec) for make in markup.SECTIONS[2:]),
    ]
    text = "\n".join(part for part in body if part)
    links = "".join(
        f'<a href="#{name}">{label}</a>' for name, label in LINKS.items() if f'<section id="{name}"' in text
    )
    policy = f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'unsafe-inline'; img-src data:"
    title = str(rec.target["command"] or rec.path.name)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{shown(title[:80])} - memtoll</title>\n"
        f"<style>\n{_file('page.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#verdict">To the verdict</a>\n{markup.head(rec)}\n'
        f'<nav aria-label="Parts of this page">{links}</nav>\n'
        f"<main>\n{change.switch() if changed else ''}{markup.warnings(rec)}\n{text}\n</main>\n"
        f"<footer><p>Made by memtoll {shown(__version__)} of {shown(rec.path.name)}.</p></footer>\n"
        f'<script type="application/json" id="data">{blob}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _drawings(
    rec: Recording, makers: dict[str, Callable[..., Figure]], progress: Progress | None
) -> dict[str, Drawing]:
    """Pictures that have something to show."""
    made = {}
    for done, (name, maker) in enumerate(makers.items()):
        if progress:
            progress("drawing", done, len(makers))
        drawing = draw(name, lambda size, maker=maker: maker(rec, theme="page", size=size))  # type: ignore[misc]
        if drawing.finding:
            made[name] = drawing
    if progress:
        progress("drawing", len(makers), len(makers))
    return made


def _charts(rec: Recording, shown_by_script: dict[str, Any], progress: Progress | None) -> list[str]:
    """The map and the timeline, what explains most first: figures for the script, and pictures for those without."""
    made = {}
    if (stacked := charts.timeline_data(rec)) is not None:
        shown_by_script["timeline"] = stacked
        made["timeline"] = (pictures.timeline, overtime.said(rec))
    if (lines := charts.map_data(rec)) is not None:
        shown_by_script["map"], said = lines
        made["map"] = (pictures.address_map, said)
    faults = float(rec.toll.loc[rec.toll.index.isin(FAULT_TOLLS), "share"].sum())
    if faults > 1 / 3:
        made = dict(reversed(made.items()))
    drawings = _drawings(rec, {name: maker for name, (maker, _) in made.items()}, progress)
    return [markup.chart(name, *made[name][1], drawing) for name, drawing in drawings.items()]


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
