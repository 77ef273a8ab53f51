# SPDX-License-Identifier: GPL-2.0
"""The tables of doc/overhead.md, from results/: run it to renew the ones by the others."""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measuring import FEWEST, median_bounds

RESULTS: Final = Path(__file__).resolve().parent / "results"
PAGE: Final = Path(__file__).resolve().parents[2] / "doc" / "overhead.md"
BEGIN: Final = "<!-- from bench/results: make bench-table -->\n"
END: Final = "<!-- end -->\n"

# What is promised of memtoll as it is by default, in percent added: (line, at most).
DEFAULT: Final = "memtoll"
DEFAULT_PROMISES: Final = (("fault storm", 15.0), ("redis-server", 3.0), ("Python, JSON", 3.0), ("mariadbd", 3.0))

# What is promised: (traced by, at most so many times, what, less the bare run).
PROMISES: Final = (
    ("malloc and free", "memtoll, no limit, no stacks", "empty probes, entry and return", 1.25),
    ("malloc and free", "memtoll, no limit, no stacks", "bcc memleak", 0.1),
)


def processor(machine: dict[str, Any]) -> str:
    """Its name without what all of them have in it."""
    return " ".join(re.sub(r"\((R|TM)\)|\bProcessor\b|\bCPU\b|@.*", " ", machine["cpu"]).split())


def results_file(machine: dict[str, Any]) -> Path:
    """Of each kind of processor the last results are kept: what a probe costs differs most by that."""
    return RESULTS / f"{re.sub('[^a-z0-9]+', '-', processor(machine).lower())}.json"


def all_results() -> list[dict[str, Any]]:
    """The newest first."""
    files = sorted(RESULTS.glob("*.json"))
    return sorted(
        (json.loads(file.read_text()) for file in files), key=lambda results: str(results["date"]), reverse=True
    )


def duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def by_round(contender: dict[str, Any], what: str) -> dict[int, float]:
    return dict(zip(contender["rounds"], contender[what]))


def ratios(contender: dict[str, Any], bare: dict[str, Any], what: str) -> list[float]:
    """Of runs of the same round."""
    mine, its = by_round(contender, what), by_round(bare, what)
    return [mine[number] / its[number] for number in mine if number in its]


def spread(values: list[float]) -> str:
    if not values:
        return ""
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def added(line: dict[str, Any], name: str) -> dict[int, float]:
    """CPU time that a contender adds to the bare run of the same round, by round; none where it did not run."""
    runs = {contender["name"]: contender for contender in line["contenders"]}
    if name not in runs or "bare" not in runs:
        return {}
    mine, bare = by_round(runs[name], "cpu_ns"), by_round(runs["bare"], "cpu_ns")
    return {number: mine[number] - bare[number] for number in mine if number in bare}


def median_and_spread(values: list[float]) -> tuple[str, str]:
    """The median; its 95 % interval, or the least and the greatest where there are too few for one."""
    low, high = median_bounds(values)
    of = f"{len(values)} pairs" if len(values) >= FEWEST else f"least and greatest of {len(values)} rounds"
    return f"{statistics.median(values):.2f}", f"{low:.2f} to {high:.2f}; {of}"


def percent_added(line: dict[str, Any], what: str) -> str:
    """Median of what memtoll's default adds to bare runs beside it, with its 95 % interval."""
    runs = {contender["name"]: contender for contender in line["contenders"]}
    pairs = [100 * (ratio - 1) for ratio in ratios(runs[DEFAULT], runs["bare"], what)]
    low, high = median_bounds(pairs)
    return f"{statistics.median(pairs):.1f} % ({low:.1f} to {high:.1f})"


def line_of(results: dict[str, Any], name: str) -> dict[str, Any]:
    """One without contenders where it was not measured."""
    return next((line for line in results["lines"] if line["name"] == name), {"contenders": []})


def default_kept(results: dict[str, Any], name: str) -> str:
    """What memtoll's default adds to a line; empty where that was not measured."""
    line = line_of(results, name)
    runs = {contender["name"]: contender for contender in line["contenders"]}
    if DEFAULT not in runs or "bare" not in runs:
        return ""
    cpu, wall = percent_added(line, "cpu_ns"), percent_added(line, "wall_ns")
    return f"{cpu} of CPU time, {wall} elapsed; {len(runs[DEFAULT]['rounds'])} pairs"


def times_kept(results: dict[str, Any], name: str, mine: str, other: str) -> str:
    """How many times as much as another one contender adds to a line; empty where not both were measured."""
    line = line_of(results, name)
    ours, its = added(line, mine), added(line, other)
    # Of the same round, as all ratios: a machine's speed changes from one to the next.
    times = [ours[number] / its[number] for number in ours if its.get(number, 0) > 0]
    if not times:
        return ""
    median, within = median_and_spread(times)
    return f"{median} ({within}): {' to '.join(duration(statistics.median(one.values())) for one in (ours, its))}"


def promises(machines: list[dict[str, Any]]) -> list[str]:
    """A table of what is promised and what was measured: a column for each machine."""
    rows = [
        (f"{name}: {DEFAULT} adds at most {most:.0f} %", [default_kept(results, name) for results in machines])
        for name, most in DEFAULT_PROMISES
    ] + [
        (
            f"{name}: {mine}, less bare, at most {most} times {other}, less bare",
            [times_kept(results, name, mine, other) for results in machines],
        )
        for name, mine, other, most in PROMISES
    ]
    heads = [f"{processor(results['machine'])}, {results['date']}" for results in machines]
    return [
        f"| promised | {' | '.join(heads)} |",
        f"|{'---|' * (len(heads) + 1)}",
        *(f"| {promise} | {' | '.join(cells)} |" for promise, cells in rows if any(cells)),
    ]


def rounds(results: dict[str, Any]) -> str:
    """Lines that were renewed may have had more of them than the others."""
    counts = [line["rounds"] for line in results["lines"]] + [len(figure["runs"]) for figure in results["figures"]]
    number = " to ".join(str(count) for count in sorted({min(counts), max(counts)}))
    return f"{number} interleaved round{'s' if max(counts) > 1 else ''}"


def machine_facts(machine: dict[str, Any]) -> str:
    """As far as they matter: of two machines with the same, one's results stand for the other's."""
    memory = (machine["memory_bytes"] or 0) / (1 << 30)
    return (
        f"{machine['cpus']} x {machine['cpu']}{' (virtual)' if machine['virtual'] else ''}, {memory:.0f} GiB, Linux "
        f"{machine['kernel'].split('-')[0]}, {machine['libc']}"
    )


def table(results: dict[str, Any]) -> str:
    text = [
        f"{rounds(results)} of version {results['version'].split('+')[0]} on {results['date']}: "
        f"{machine_facts(results['machine'])}; load {results['load'][0]} to {results['load'][1]}. "
        "Ratios are medians over the rounds, with the least and the greatest in brackets; CPU time is the traced "
        "program's.",
        "",
        "| work | traced by | CPU time | CPU, times bare | elapsed, times bare |",
        "|---|---|---|---|---|",
    ]
    for line in results["lines"]:
        bare = next(contender for contender in line["contenders"] if contender["name"] == "bare")
        for contender in line["contenders"]:
            first = contender is line["contenders"][0]
            cells = [f"{line['name']}, per {line['unit']}" if first else "", contender["name"]]
            cells.append(duration(statistics.median(contender["cpu_ns"])))
            cells += [spread(ratios(contender, bare, what)) for what in ("cpu_ns", "wall_ns")]
            text.append(f"| {' | '.join(cells)} |")
        text += [f"|  | {name} | did not run | | |" for name in line["failed"]]
    text.append("")
    for figure in results["figures"]:
        if figure["unit"] == "times":
            text.append(f"* {figure['name']}: {spread(figure['runs'])} times")
            continue
        runs = [run * (1e9 if figure["unit"] == "s" else 1) for run in figure["runs"]]
        text.append(
            f"* {figure['name']}: {duration(statistics.median(runs))} ({duration(min(runs))} to {duration(max(runs))})"
        )
    if results["not_installed"]:
        text.append(f"* not installed: {', '.join(results['not_installed'])}")
    return "\n".join(text) + "\n"


def page_with(machines: list[dict[str, Any]]) -> str:
    """The newest results in full, what is promised beside it for all."""
    text = PAGE.read_text()
    head, rest = text.split(BEGIN, 1)
    _, tail = rest.split(END, 1)
    kept = "\n".join(promises(machines))
    said = "Medians of pairs of runs, with their 95 % intervals in brackets."
    return f"{head}{BEGIN}{table(machines[0])}\n{said}\n\n{kept}\n{END}{tail}"


def write_page() -> None:
    PAGE.write_text(page_with(all_results()))


if __name__ == "__main__":
    write_page()
