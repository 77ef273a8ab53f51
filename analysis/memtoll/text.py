# SPDX-License-Identifier: GPL-2.0
"""A recording as text of at most 80 columns, as `memtoll report` prints it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from .table import note

if TYPE_CHECKING:
    from .comparison import Comparison
    from .recording import Recording

WIDTH: Final = 80
NAME_COLUMNS: Final = 38  # of view stack_shown
ESTIMATED: Final = ("zero.app", "copy.app")  # bytes by their time


def format_time(value_s: float) -> str:
    """Seconds with three digits and a unit: '83.0 us'."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value_s >= size:
            return f"{_digits(value_s / size)} {unit}"
    return f"{_digits(value_s * 1e9) if value_s > 0 else 0} ns"


def format_bytes(value: float) -> str:
    """Bytes with three digits in binary units: '10.0 MiB'."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= size:
            return f"{_digits(value / size)} {unit}"
    return f"{value:.0f} B"


def format_share(value: float) -> str:
    """A share 0..1 in per cent: '12.3 %'."""
    return f"{100 * value:.1f} %"


def _digits(value: float) -> str:
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"


def printable(text: str) -> str:
    """Names come from traced programs: nothing in them may steer the terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


def cut(text: str, columns: int) -> str:
    """At most so many characters, the end cut off and marked."""
    return text if len(text) <= columns else text[: columns - 3] + "..."


def wrap(prefix: str, indent: int, text: str) -> str:
    """Words in lines of 80 columns, the first after prefix, the others after so many spaces."""
    return textwrap.fill(
        printable(text),
        WIDTH,
        initial_indent=prefix,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def head_lines(rec: Recording) -> list[str]:
    """What was traced and for how long; whether all of it is there."""
    target = rec.target
    processes = len(target["pids"])
    lines = [
        f"memtoll: {cut(printable(str(target['command'])), WIDTH - 9)}",
        wrap(
            " " * 9,
            9,
            f"{processes} process{'' if processes == 1 else 'es'}, recorded for {format_time(target['duration_s'])};"
            f" observed {format_time(target['observed_s'])} (on the CPU or asleep in a fault).",
        ),
    ]
    if not rec.complete:
        lines.append("!!! INCOMPLETE: the recording was not finished.")
    return lines


def verdict_lines(rec: Recording, advice: bool) -> list[str]:
    """The sentence and, where asked for, every advice with its evidence."""
    lines = ["", "VERDICT", wrap("  ", 2, rec.verdict.sentence)]
    for each in rec.verdict.advice:
        if not advice:
            continue
        lines += ["", f"ADVICE {printable(each['code'])}", wrap("  ", 2, each["text"])]
        lines.append(wrap("  Evidence: ", 2, each["evidence"]))
        if each.get("gain"):
            saves = f"at most {100 * each['gain']:.0f} % of the observed time (not advised below"
            lines.append(wrap("  Saves: ", 2, f"{saves} {100 * each['bound']:.0f} %)"))
        for label, key in (("If wrong", "cost"), ("Try", "try")):
            if each.get(key):
                lines.append(wrap(f"  {label}: ", 2, each[key]))
    return lines


def toll_lines(rec: Recording) -> list[str]:
    """The toll table."""
    lines = ["", f"{'TOLL':<12}{'time':>11}{'share':>9}{'between':>16}{'count':>15}{'bytes':>12}"]
    for toll, row in zip(rec.toll.index, _rows(rec.toll)):
        if not pd.isna(row["not_captured"]):
            lines.append(wrap(f"{toll:<12}   not captured: ", 15, row["not_captured"]))
            continue
        between = f"{100 * row['share_low']:.1f}-{100 * row['share_high']:.1f} %"
        line = f"{toll:<12}{format_time(row['time_s']):>11}{format_share(row['share']):>9}{between:>16}"
        if toll != "compute":  # it has samples only
            amount = ("~" if toll in ESTIMATED and row["bytes"] else "") + format_bytes(row["bytes"])
            line += f"{row['count']:>15,}{amount:>12}"
        lines.append(line)
    return lines


def site_lines(rec: Recording, sites: int | None) -> list[str]:
    """The most expensive sites with their stacks; None: all of them. What looks alike is one row."""
    rec.views.make("site_page")
    table = rec.query("SELECT *, time_ns / 1e9 AS time_s FROM temp.site_page ORDER BY rank")
    lines = ["", f"SITES ({len(table)} in all)"] if len(table) else []
    for row in _rows(table if sites is None else table.head(sites)):
        toll, call = row["toll"], printable(row["call"])
        count = "" if row["at_least"] else f"{row['count']:,}"
        line = f"{format_share(row['share']):>8} {format_time(row['time_s']):>10}  {toll:<12}{call:<16}{count:>12}"
        if row["at_least"]:
            line += f" at least {format_bytes(row['bytes'])}"
        elif toll == "compute" or toll in ESTIMATED:
            line += " sample" if row["count"] == 1 else " samples"
            line += f"  ~{format_bytes(row['bytes'])}" if toll in ESTIMATED else ""
        else:
            line += f" x  {format_bytes(row['bytes'])}"
        lines.append(line)
        if row["area"]:
            lines.append(f"  {'in':<14}{printable(row['area'])}")
        label = "called at" if toll == "map" else "freed at" if call == "free" else "allocated at"
        lines += _stack_lines(rec, label, row["allocated_stack"])
        lines += _stack_lines(rec, "sampled at" if toll == "compute" else "touched at", row["touched_stack"])
    return lines


def _stack_lines(rec: Recording, label: str, stack_id: int) -> list[str]:
    if not stack_id:
        return []
    rows = rec.views.rows(
        "SELECT name, place, (SELECT COUNT(*) FROM stack_frame f WHERE f.stack_id = s.stack_id)"
        " FROM stack_shown s WHERE stack_id = ? ORDER BY depth",
        stack_id,
    )
    lines = []
    for number, (name, place, _) in enumerate(rows):
        lines.append(f"  {'' if number else label:<14}{printable(name):<{NAME_COLUMNS}}  {printable(place)}")
    if rows and rows[0][2] > len(rows):
        lines.append(f"{'':16}({rows[0][2] - len(rows)} more)")
    return lines


def zeroing_lines(rec: Recording) -> list[str]:
    """The zeroing ledger."""
    labels = {
        "bytes_kernel": ("cleared by the kernel", ""),
        "bytes_libc": ("cleared by libc's calloc", ""),
        "bytes_app": ("cleared by other code", "estimated" if rec.zeroing["bytes_app"] else ""),
        "bytes_twice": ("cleared twice", "by the kernel, then by a memset"),
        "bytes_never_used": ("never used", "in freed blocks with own mappings"),
    }
    kernel = rec.toll.loc["zero.kernel"]
    if kernel["time_s"] > 0:
        suffix = f"clearing is {format_time(kernel['clear_s'])} of {format_time(kernel['time_s'])}"
        labels["bytes_kernel"] = (labels["bytes_kernel"][0], suffix)
    lines = ["", "ZEROING"]
    for name, (label, suffix) in labels.items():
        value = rec.zeroing[name]
        amount = "not captured" if value is None else format_bytes(value)
        lines.append(f"  {label:<24}{amount:>12}  {suffix}".rstrip())
    return lines


def swap_lines(rec: Recording) -> list[str]:
    """Limits, what came back from swap, and how it was gone over; nothing where nothing was swapped."""
    memory = rec.memory
    out = rec.toll["count"].get("swap.out")
    if not memory or not (memory["came_back_bytes"] or (not pd.isna(out) and out)):
        return []
    asleep = rec.query("SELECT blocked_ns FROM temp.swap_source")["blocked_ns"].iloc[0]
    path = cut(printable(memory["limit_path"] or ""), 36)
    suffix = f"different pages; asleep for them {format_time((asleep or 0) / 1e9)}"
    rows = [("memory that may be used", "limit_bytes", path or "of the machine")] if memory["limit_bytes"] else []
    rows += [
        ("resident at most", "rss_peak_bytes", ""),
        ("swapped at most", "swap_peak_bytes", ""),
        ("came back", "came_back_bytes", suffix),
    ]
    if memory["fits_bytes"] is not None:
        rows.append(("would be enough", "fits_bytes", "estimated"))
    lines = ["", "SWAP"]
    for label, name, said in rows:
        amount = "unknown" if memory[name] is None else format_bytes(memory[name])
        lines.append(f"  {label:<24}{amount:>12}  {said}".rstrip())
    return lines + _access_lines(rec)


def _access_lines(rec: Recording) -> list[str]:
    table = rec.access_patterns
    worth = (100 * table["in_pages"] > table["in_pages"].sum()) | table["pattern"].astype("string").str.startswith(
        "one"
    )
    table = table[worth].head(8)
    lines = [f"  {'':<30}{'touched':>11}{'came back':>11}{'times':>8}  gone over"] if len(table) else []
    for row in _rows(table):
        place = "" if pd.isna(row["allocated_place"]) else f" at {row['allocated_place']}"
        where = row["call"] + place if row["call"] else f"{row['area']} {row['area_name']}".rstrip()
        first, back = format_bytes(4096 * row["first_pages"]), format_bytes(4096 * row["in_pages"])
        lines.append(f"  {cut(printable(where), 30):<30}{first:>11}{back:>11}{row['returns']:>8.1f}  {row['pattern']}")
    return lines


def process_lines(rec: Recording) -> list[str]:
    """The ten busiest processes, where there are several."""
    if len(rec.processes) < 2:
        return []
    table = rec.processes.sort_values("observed_s", ascending=False, kind="stable")
    tolls = rec.process_tolls.groupby("pid")["time_s"].max()
    lines = ["", f"{'PROCESS':<9}{'name':<17}{'observed':>12}  {'largest toll':<12}{'':>12}  end"]
    for pid, row in zip(table.index[:10], _rows(table.head(10))):
        toll = "" if pd.isna(row["largest_toll"]) else row["largest_toll"]
        time = format_time(float(tolls.get(pid, 0.0))) if toll else ""
        comm = cut(printable("" if pd.isna(row["comm"]) else row["comm"]), 16)
        lines.append(f"{pid:<9}{comm:<17}{format_time(row['observed_s']):>12}  {toll:<12}{time:>12}  {ended(row)}")
    if len(table) > 10:
        lines.append(f"         and {len(table) - 10} more")
    return lines


def ended(row: dict[str, Any]) -> str:
    """How a process ended, from its row of rec.processes."""
    if pd.isna(row["end_ns"]):
        return "goes on"
    code = 0 if pd.isna(row["exit_code"]) else int(row["exit_code"])
    return f"signal {code & 0x7F}" if code & 0x7F else f"exit {code >> 8 & 0xFF}"


def trust_lines(rec: Recording) -> list[str]:
    """Checks, notes, overhead and losses: how far the figures may be trusted."""
    lines = ["", "CHECKS"]
    for name, row in zip(rec.checks.index, _rows(rec.checks)):
        verdict = "ok" if row["ok"] else "DIFFER"
        lines.append(
            f"  {name.replace('_', ' '):<19} ours {row['ours']:>13,}  the kernel's {row['kernel']:>13,}  {verdict}"
        )
    if rec.notes:
        lines += ["", "NOTES", *(wrap("  - ", 4, text) for text in rec.notes)]
    lines += stack_lines(rec)
    attrs = rec.overhead.attrs
    limit = "no limit" if attrs["limit_pct"] is None else f"limit {attrs['limit_pct']:g} %"
    why = attrs.get("why")
    limit += f", {why}" if why else ""
    error = ""
    if "error_pct" in attrs:
        source = "CPU samples" if attrs["source"] == "samples" else "calibrated prices"
        error = f" (+- {attrs['error_pct']:.1f}, by {source})"
    text = (
        f"{attrs['estimated_pct']:.1f} % of the target's time{error}, "
        f"{attrs['hits']:,} probe hits ({limit}); it is taken"
    )
    lines += ["", wrap("Overhead: ", 10, f"{text} out of the figures above.{untold_prices(rec)}{held(rec)}")]
    return lines + loss_lines(rec)


def untold_prices(rec: Recording) -> str:
    """Probes whose price is no more than its error, with the most that their hits took."""
    table = rec.overhead
    untold = table[(table["hits"] > 0) & (table["error_s"] > 0) & (table["error_s"] >= table["time_s"])]
    return "".join(
        f" The price of a hit of {printable(str(probe))} does not differ measurably from zero here: {row['hits']:,} "
        f"hits took at most {format_time(row['time_s'] + row['error_s'])}."
        for probe, row in zip(untold.index, _rows(untold))
    )


def held(rec: Recording) -> str:
    """What following a command takes beside the probes: its processes stand still, and use no CPU time."""
    held_s = rec.overhead.attrs["held_s"]
    if held_s is None:
        return ""
    return (
        f" At their starts and ends the command's processes were held for at least {format_time(held_s)} in all, "
        "which is in no figure."
    )


def stack_lines(rec: Recording) -> list[str]:
    """How much of the sites' time has whole stacks; recordings before that was kept do not say."""
    quality = rec.report.get("stacks")
    if not quality or not (quality["whole_share"] or quality["stopped"]):
        return []
    stopped: dict[str, float] = quality["stopped"]
    ended = sorted(stopped.items(), key=lambda item: -item[1])
    named = ", ".join(f"{printable(name)} {100 * share:.1f} %" for name, share in ended if share >= 0.001)
    text = f"{format_share(quality['whole_share'])} of the sites' time has whole stacks"
    return ["", wrap("Stacks: ", 10, f"{text}{'; what ended the others: ' if named else ''}{named}.")]


def loss_lines(rec: Recording) -> list[str]:
    """What was lost, the largest share first: within the limit in one paragraph, beyond it a line each."""
    lost = rec.losses[rec.losses["count"] > 0].sort_values("share", ascending=False, kind="stable")
    # What ended stacks is said where their quality is.
    names = lost.index.astype(str)
    lost = lost[~names.str.startswith("unwind_") | (names == "unwind_full")]
    lines, small = [], []
    for name, row in zip(lost.index, _rows(lost)):
        part = "" if math.isnan(row["share"]) else f"{100 * row['share']:.2f} % of its kind:"
        if row["exceeds"]:
            part = f"{row['count']:,}{', ' if part else ''}{part} {row['meaning']} ({row['remedy']})"
            lines.append(wrap(f"!!! {printable(name)}: ", 4, part))
        else:
            small.append(f"{printable(name)} {row['count']:,} ({part}{' ' if part else ''}{row['meaning']})")
    return ["", wrap("Lost, within the limit: ", 10, f"{', '.join(small)}."), *lines] if small else lines


def report(rec: Recording, sites: int | None = 10) -> str:
    """Everything `memtoll report` prints, with so many sites; None: all."""
    parts = [
        head_lines(rec),
        verdict_lines(rec, advice=True),
        toll_lines(rec),
        site_lines(rec, sites),
        zeroing_lines(rec),
        swap_lines(rec),
        process_lines(rec),
        trust_lines(rec),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def summary(rec: Recording) -> str:
    """The verdict, the codes of its advice, the toll table and the losses: what print(rec) shows."""
    codes = ", ".join(each["code"] for each in rec.verdict.advice)
    lines = [*head_lines(rec), *verdict_lines(rec, advice=False), wrap("  Advice: ", 2, codes), *toll_lines(rec)]
    said = note(rec.toll.attrs)
    return "\n".join([*lines, *([f"!!! {said}"] if said else [])])


def comparison(both: Comparison, sites: int | None = 10) -> str:
    """Two recordings side by side: tolls, and the sites that differ most; None: all sites."""
    lines = []
    for when, side in (("before", both.before), ("after", both.after)):
        work = "" if side.work is None else f", {side.work:,g} units of work"
        lines.append(wrap(f"{when + ':':<9}", 9, f"{side.command} ({format_time(side.duration_s)}{work}; {side.path})"))
    lines += [wrap("!!! ", 4, caveat) for caveat in both.caveats]
    unit = "s" if both.per == "second" else "unit"
    lines += ["", f"Time per {both.per}, and the 95 % bounds of the difference; * where they leave 0 out."]
    lines += ["", f"{'TOLL':<12}{'before/' + unit:>13}{'after/' + unit:>13}{'difference':>13}{'between':>27}"]
    for toll, row in zip(both.toll.index, _rows(both.toll)):
        lines.append(f"{toll:<12}{_difference(row)}")
    for row in _rows(both.total):
        lines.append(f"{'all':<12}{_difference(row)}")
    table = both.sites if sites is None else both.sites.head(sites)
    lines += ["", f"SITES by difference ({len(both.sites)} in all)"]
    for (toll, call, allocated_at, touched_at), row in zip(table.index, _rows(table)):
        lines += [f"{toll:<12}{_difference(row)}"]
        for label, chain in ((call, allocated_at), ("touched", touched_at)):
            if chain:
                lines.append(wrap(f"  {label:<14}", 16, printable(" < ".join(reversed(chain.split(";")[-4:])))))
    said = note(both.toll.attrs)
    return "\n".join([*lines, *([wrap("!!! ", 4, said)] if said else [])]) + "\n"


def _difference(row: dict[str, Any]) -> str:
    if math.isnan(row["difference"]):
        return f"{'not captured by both':>39}"
    between = "" if math.isnan(row["low"]) else f"{_signed(row['low'])} to {_signed(row['high'])}"
    star = " *" if row["changed"] is True else ""
    before, after = format_time(row["before"]), format_time(row["after"])
    return f"{before:>13}{after:>13}{_signed(row['difference']):>13}{between:>27}{star}"


def _signed(value_s: float) -> str:
    return ("-" if value_s < 0 else "+" if value_s > 0 else "") + format_time(abs(value_s))


def _rows(table: pd.DataFrame) -> Iterable[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_dict("records")
    return rows
