# SPDX-License-Identifier: GPL-2.0
"""The sections of a page as HTML: everything but the sites, which its script shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from ..pictures.findings import access_rows, memory_rows
from ..pictures.theme import toll_colour
from ..schema import toll_words
from ..text import cut, ended, format_bytes, format_share, format_time
from .drawing import Drawing
from .elements import ROWS, Cell, chip, count, facts, part, section, size, table, time, word
from .verdict import between, wrong_checks
from .words import shown

if TYPE_CHECKING:
    from ..recording import Recording

PAGE_BYTES: Final = 4096
# Tolls and access patterns are shown from that part of the whole on; less is 0.0 %.
LEAST: Final = 0.0005

PATTERNS: Final = {
    "fits": "stays in memory: nothing, or next to nothing, came back from swap",
    "one-pass sweep": "gone over once, in order: more than can be kept, but hardly any of it came back",
    "one pass": "gone over once, in no order: more than can be kept, but hardly any of it came back",
    "cyclic sweep": "gone over in order more than once: each pass pushes out what the next one needs first",
    "random": "came back in no order",
    "back once": "had been pushed out, and came back once; nothing went out for it",
}

SWAP_SOURCES: Final = {
    "device": "read from a device",
    "cache": "found in the swap cache",
    "zram": "from zram",
    "zswap": "from zswap",
    "zero": "all zeros, stored nowhere",
}

WORDY: Final = " (on the CPU or asleep in a fault)"


def head(rec: Recording) -> str:
    target = rec.target
    processes = len(rec.processes)
    start = rec.meta.get("start_realtime_ns", "")
    when = ""
    if start.isdigit():
        when = datetime.fromtimestamp(int(start) / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [
        f"{processes} process{'' if processes == 1 else 'es'}",
        f"recorded for {format_time(rec.duration_s)}",
        f"observed {format_time(rec.observed_s)}{WORDY}",
        f"on {rec.meta['host']}" if rec.meta.get("host") else "",
        when,
    ]
    said = shown(", ".join(part for part in parts if part))
    said = said.replace(WORDY, f'<span class="wordy">{WORDY}</span>')
    command = str(target["command"] or ", ".join(f"pid {pid}" for pid in target["pids"]))
    return f'<header><p class="brand">memtoll</p><h1><bdi>{shown(command)}</bdi></h1><p>{said}</p></header>'


def warnings(rec: Recording) -> str:
    """What must be known before anything is believed."""
    said = []
    if not rec.complete:
        said.append("This recording is incomplete: its tracer had not finished it, or was killed.")
    lost = rec.losses[rec.losses["count"] > 0]
    over = lost[lost["exceeds"]]
    if len(over):
        said.append(
            f"Losses beyond the limit of 1 %: {', '.join(over.index)}. What they hit may cost more than is shown."
        )
    wrong = wrong_checks(rec)
    if wrong:
        said.append(f"Our counts differ from the kernel's: {', '.join(wrong)}.")
    return "".join(f'<p class="warning" role="note">{shown(text)} <a href="#trust">Details</a></p>' for text in said)


HEADS: Final = (
    "toll",
    "share",
    "between (95 %)",
    "time",
    "of it asleep",
    "of it clearing",
    "count",
    "bytes",
    "pages",
    "read again",
)
NONE: Final = Cell("-", -1, kind="number")


def tolls(rec: Recording) -> str:
    """The toll table; tolls that took next to no time, or were not captured, folded away."""
    captured = rec.toll["not_captured"].isna()
    taken = captured & (rec.toll["share"] >= LEAST)
    caption = "Shares are of the observed time; the thin line on each bar is where the true share lies, 95 %."
    parts = [_toll_table("toll-table", caption, rec.toll[taken])] if taken.any() else []
    if not taken.all():
        nothing = ", ".join(str(toll) for toll in rec.toll.index[captured & ~taken])
        missing = ", ".join(str(toll) for toll in rec.toll.index[~captured])
        said = [f"Less than {100 * LEAST:g} %: {nothing}"] if nothing else []
        said += [f"Not captured: {missing}"] if missing else []
        body = _toll_table("toll-rest", "What took next to no time, or was not captured.", rec.toll[~taken])
        parts.append(f"<details><summary>{shown('. '.join(said))}</summary>{body}</details>")
    return section("tolls", "Tolls", *parts)


def _toll_table(name: str, caption: str, frame: pd.DataFrame) -> str:
    rows = [_toll_row(str(toll), row) for toll, row in frame.iterrows()]
    used = [at for at in range(len(HEADS)) if at < 4 or any(row[at].text not in ("-", "") for row in rows)]
    return table(name, caption, [HEADS[at] for at in used], [[row[at] for at in used] for row in rows])


def _toll_row(toll: str, row: pd.Series) -> list[Cell]:
    meaning = toll_words()[toll].meaning if toll in toll_words() else ""
    name = Cell(toll, toll, html=f"{chip(toll)}<small>{shown(meaning)}</small>")
    if not pd.isna(row["not_captured"]):
        reason = f"<em>not captured: {shown(row['not_captured'])}</em>"
        return [name, Cell("", -1, html=reason, kind="reason"), *[NONE] * (len(HEADS) - 2)]
    low, high = (100 * float(row[f"share_{side}"]) for side in ("low", "high"))
    bar = (
        f'<span class="bar" style="--low:{low:.3f}%;--high:{high:.3f}%;--part:{100 * row["share"]:.3f}%;'
        f'--colour:{toll_colour(toll)}" aria-hidden="true"></span>'
    )
    samples = toll == "compute"
    return [
        name,
        Cell("", float(row["share"]), html=f"{bar}<b>{format_share(row['share'])}</b>", kind="share"),
        Cell(between(row), float(row["share_high"]), kind="number"),
        time(row["time_s"]),
        time(row["blocked_s"]),
        time(row["clear_s"]) if toll == "zero.kernel" else NONE,
        NONE if samples else count(row["count"]),
        NONE if samples else size(row["bytes"]),
        NONE if samples else count(row["pages"]),
        NONE if pd.isna(row["reread_factor"]) else Cell(f"{row['reread_factor']:.1f}", -1, kind="number"),
    ]


def figure(name: str, drawing: Drawing | None) -> str:
    if drawing is None:
        return ""
    return (
        f'<figure id="{name}">{_caption(drawing.finding, drawing.what)}'
        f'<div class="wide">{drawing.wide}</div><div class="narrow">{drawing.narrow}</div></figure>'
    )


def _caption(finding: str, what: str) -> str:
    return (
        f"<figcaption><strong><bdi>{shown(cut(finding, 240))}</bdi></strong>"
        f"<span><bdi>{shown(cut(what, 320))}</bdi></span></figcaption>"
    )


def chart(name: str, finding: str, what: str, drawing: Drawing) -> str:
    """A picture that the script draws, with figures where the pointer is, and zoom; as it stands without a script."""
    buttons = "".join(
        f'<button type="button" data-zoom="{zoom}" aria-label="{label}" title="{label}">{sign}</button>'
        for zoom, label, sign in (
            ("in", "Zoom in", "+"),
            ("out", "Zoom out", "\N{MINUS SIGN}"),
            ("all", "Show all", "All"),
        )
    )
    return (
        f'<figure id="picture-{name}" class="charted">{_caption(finding, what)}'
        f'<div class="chart" id="chart-{name}" hidden><div class="chart-tools">{buttons}'
        '<span class="chart-help">Drag over a part to zoom in; + - 0 and the arrow keys do so, too.</span></div>'
        f'<div class="chart-ground"><canvas tabindex="0" role="img" aria-label="{shown(cut(finding, 240))}"></canvas>'
        '<div class="chart-tip" hidden></div></div>'
        '<ul class="legend"></ul><p class="chart-status" role="status"></p></div>'
        f'<noscript><div class="wide">{drawing.wide}</div><div class="narrow">{drawing.narrow}</div></noscript>'
        "</figure>"
    )


def pictures(name: str, title: str, figures: Sequence[str]) -> str:
    return section(name, title, *figures)


def memory(rec: Recording) -> str:
    """Memory against what may be used, and how each allocation was gone over."""
    rows = memory_rows(rec)
    if not rows:
        return ""
    row = rows[0]
    known: list[tuple[str, str, str]] = []

    def add(name: str, key: str, remark: str = "") -> None:
        value = row.get(key)
        if value is not None and not pd.isna(value):
            known.append((name, format_bytes(float(value)), remark))

    add("memory that may be used", "limit_bytes", str(row.get("limit_path") or "all of the machine"))
    add("swap that may be used", "swap_limit_bytes")
    add("resident at most", "rss_peak_bytes")
    add("swapped at most", "swap_peak_bytes")
    add("touched for the first time", "first_touched_bytes")
    source = _row(rec, "swap_source")
    if row.get("came_back_bytes"):
        add(
            "came back from swap",
            "came_back_bytes",
            f"different pages; asleep for them {format_time(float(source.get('blocked_ns') or 0) / 1e9)}",
        )
        add("would be enough", "fits_bytes", "estimated: with that limit the swap-ins would stop")
        for key, name in SWAP_SOURCES.items():
            if source.get(f"{key}_pages"):
                known.append((name, f"{int(source[f'{key}_pages']):,} pages", "faults"))
        if source.get("readahead_pages"):
            known.append(("read ahead, not used", f"{int(source['readahead_pages']):,} pages", ""))
    for each in _rows(rec, "SELECT path, kind, size_bytes FROM main.swap_device"):
        known.append((f"swap {each['kind']}", format_bytes(float(each["size_bytes"])), str(each["path"])))
    return section("memory", "Memory and how it is gone over", facts(known), _access(rec))


def _access(rec: Recording) -> str:
    rows = [row for row in access_rows(rec) if row["first_pages"] + row["in_pages"] > 0]
    every = sum(row["first_pages"] + row["in_pages"] for row in rows)
    small = [row for row in rows if row["first_pages"] + row["in_pages"] < LEAST * every]
    places = rec.stacks["allocated_place"]
    cells = []
    for row in rows:
        if row["first_pages"] + row["in_pages"] < LEAST * every:
            continue
        place = places.get(row["allocated_stack"])
        name = str(row["call"]) or f"{row['area']} {row['area_name']}".strip()
        if row["call"] and place is not None and not pd.isna(place):
            name += f" at {place}"
        pattern, returns = str(row["pattern"]), float(row["returns"])
        cells.append(
            [
                word(name, "name"),
                Cell(pattern, pattern, html=f"{shown(pattern)}<small>{shown(PATTERNS.get(pattern, ''))}</small>"),
                size(row["first_pages"] * PAGE_BYTES),
                size(row["in_pages"] * PAGE_BYTES),
                Cell(f"{returns:.1f}", returns, kind="number"),
                count(row["max_returns"]),
                part(row["in_sequential_pages"], row["in_pages"]),
                count(row["untracked_pages"]),
            ]
        )
    if not cells:
        return ""
    caption = "Access patterns, by allocation or kind of memory."
    if small:
        pages = sum(row["first_pages"] + row["in_pages"] for row in small)
        caption += f" {len(small)} more, of {int(pages):,} pages together, are left out."
    heads = ["memory", "gone over", "first touched", "came back", "times each", "at most", "in order", "not followed"]
    return table("access-table", caption, heads, cells)


def _row(rec: Recording, view: str) -> dict[str, Any]:
    rows = _rows(rec, f"SELECT * FROM temp.{view}")
    return rows[0] if rows else {}


def _rows(rec: Recording, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rec.query(sql).to_dict("records")
    return rows


def zeroing(rec: Recording) -> str:
    kernel = rec.toll.loc["zero.kernel"]
    if not any(rec.zeroing.values()):
        return ""
    names = {
        "bytes_kernel": ("cleared by the kernel", ""),
        "bytes_libc": ("cleared by libc's calloc", ""),
        "bytes_app": ("cleared by other code", "estimated" if rec.zeroing["bytes_app"] else ""),
        "bytes_twice": ("cleared twice", "by the kernel, then by a memset"),
        "bytes_never_used": ("never used", "in freed blocks with mappings of their own"),
    }
    if kernel["time_s"] > 0 and not pd.isna(kernel["clear_s"]):
        names["bytes_kernel"] = (
            "cleared by the kernel",
            f"clearing proper is {format_time(kernel['clear_s'])} of {format_time(kernel['time_s'])}",
        )
    rows = []
    for key, (name, remark) in names.items():
        value = rec.zeroing[key]
        if value != 0:
            rows.append((name, "not captured" if value is None else format_bytes(value), remark))
    nothing = ", ".join(name for key, (name, _) in names.items() if rec.zeroing[key] == 0)
    rest = f'<p class="confidence">Nothing {shown(nothing)}.</p>' if nothing else ""
    return section("zeroing", "Zeroing ledger", facts(rows), rest)


def allocations(rec: Recording) -> str:
    frame = rec.allocations
    rows = [
        [
            word(row["call"], "name"),
            word(row["allocated_place"], "name"),
            count(row["calls"]),
            size(row["bytes"]),
            size(row["bytes"] / row["calls"] if row["calls"] else None),
            count(row["mmapped_calls"]),
            count(row["freed"]),
            size(row["live_bytes"], "unknown"),
            size(row["never_used_bytes"]),
        ]
        for row in frame.head(ROWS + 1).to_dict("records")
    ]
    if not rows:
        return ""
    heads = [
        "function",
        "called at",
        "calls",
        "bytes",
        "bytes a call",
        "own mapping",
        "freed",
        "live at the end",
        "never used",
    ]
    more = f" Most bytes first; {len(frame):,} in all." if len(frame) > ROWS else ""
    body = table("allocation-table", f"Calls of the allocator by function and call site.{more}", heads, rows[:ROWS])
    return section(
        "allocations",
        "Allocations",
        f"<details><summary>{len(frame):,} call sites of the allocator</summary>{body}</details>",
    )


def processes(rec: Recording) -> str:
    if len(rec.processes) < 1:
        return ""
    frame = rec.processes.sort_values("observed_s", ascending=False, kind="stable")
    rows = [
        [
            Cell(str(pid), int(pid), kind="number"),
            word(row["comm"], "name"),
            time(row["observed_s"]),
            time(row["cpu_s"]),
            time(row["blocked_s"]),
            word(row["largest_toll"]),
            count(row["minor_faults"]),
            count(row["major_faults"]),
            Cell(ended(row), ended(row)),
            word(row["command"], "name"),
        ]
        for pid, row in zip(frame.head(ROWS).index, frame.head(ROWS).to_dict("records"))
    ]
    heads = [
        "pid",
        "name",
        "observed",
        "on the CPU",
        "asleep",
        "largest toll",
        "minor faults",
        "major faults",
        "end",
        "command",
    ]
    more = f" The {ROWS} busiest of {len(frame):,}." if len(frame) > ROWS else ""
    return section(
        "processes", "Processes", table("process-table", f"Faults are the kernel's own counts.{more}", heads, rows)
    )


def trust(rec: Recording) -> str:
    """Checks, losses, overhead and notes: how far the figures may be trusted."""
    checks = [
        [
            word(str(name).replace("_", " ")),
            count(row["ours"]),
            count(row["kernel"]),
            Cell(f"{int(row['difference']):+,}", int(row["difference"]), kind="number"),
            Cell("ok" if row["ok"] else "differ", int(row["ok"]), kind="" if row["ok"] else "bad"),
        ]
        for name, row in rec.checks.iterrows()
    ]
    lost = rec.losses[rec.losses["count"] > 0].sort_values("share", ascending=False, kind="stable")
    losses = [
        [
            word(name, "name"),
            count(row["count"]),
            Cell("-", -1, kind="number")
            if math.isnan(row["share"])
            else Cell(f"{100 * row['share']:.2f} % of {row['measure']}s", float(row["share"]), kind="number"),
            word(row["meaning"]),
            word(row["remedy"]),
        ]
        for name, row in lost.iterrows()
    ]
    attrs = rec.overhead.attrs
    limit = "no limit" if attrs["limit_pct"] is None else f"limit {attrs['limit_pct']:g} %"
    probes = [
        [
            word(name, "name"),
            count(row["hits"]),
            Cell(
                "-" if pd.isna(row["ns_per_hit"]) else f"{row['ns_per_hit']:.0f} ns",
                0 if pd.isna(row["ns_per_hit"]) else float(row["ns_per_hit"]),
                kind="number",
            ),
            time(row["time_s"]),
        ]
        for name, row in rec.overhead[rec.overhead["hits"] > 0].iterrows()
    ]
    notes = "".join(f"<li><bdi>{shown(text)}</bdi></li>" for text in rec.notes)
    prices = table("probe-table", "What the probes cost.", ["probe", "hits", "price of a hit", "in all"], probes)
    return section(
        "trust",
        "How far this can be trusted",
        table(
            "check-table",
            "Our counts against the kernel's own.",
            ["check", "ours", "the kernel's", "difference", ""],
            checks,
            False,
        ),
        table("loss-table", "What was lost.", ["loss", "count", "part", "meaning", "what to do"], losses)
        if losses
        else f"<p>Nothing was lost: all {len(rec.losses)} counters of losses are 0.</p>",
        f"<h3>Notes</h3><ul>{notes}</ul>" if notes else "",
        f"<h3>Overhead</h3><p>{attrs['estimated_pct']:.1f} % of the target's time, {attrs['hits']:,} probe hits"
        f" ({shown(limit)}); it is taken out of the figures above.</p>",
        f"<details><summary>By probe</summary>{prices}</details>" if probes else "",
    )


def about(rec: Recording) -> str:
    rows = "".join(
        f"<div><dt>{shown(key)}</dt><dd><bdi>{shown(value)}</bdi></dd></div>" for key, value in rec.meta.items()
    )
    return section(
        "about",
        "About the recording",
        f'<details><summary>{shown(rec.path.name)}</summary><dl class="facts meta">{rows}</dl></details>',
    )


SECTIONS: Final[tuple[Callable[[Recording], str], ...]] = (zeroing, memory, allocations, processes, trust, about)
