# SPDX-License-Identifier: GPL-2.0
"""What tracing costs: memtoll, empty probes and what else is installed, against the bare program, interleaved.

Each round starts the program anew and hands it from contender to contender, in an order drawn for the round (the
same each time that the benchmark runs); a ratio is of two runs of the same round. Whose difference is small runs more
often, each time between two bare runs, against whose mean it counts. Nothing is attached but to that one process, and
to the children that do its work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import tools
from lines import AGAIN, LINES, Cost, Line, Target, price
from table import machine_facts, results_file, write_page

import measuring
from harness import MEMTOLL, SOURCES, Program, end, spawn, tool, wait_attached, workload

FIGURES: Final = "figures"
AFTERWARDS: Final = "bare, afterwards"
# The budget is looked at several times a second: it has settled by then.
WARM_SECONDS: Final = 1.5
QUICK: Final = (tools.BARE, tools.FULL, tools.FLOOR)
LIBRARIES: Final = 200
FRAMES: Final = 20
# Operations of processes that nobody watches, and what `price` calls them.
OTHERS: Final = {
    "a page's first touch": "fault",
    "mmap and munmap": "map",
    "an empty system call": "call",
    "a byte to another process and back": "switch",
    "a process made and ended": "fork",
}
BUSY_MS: Final = 60_000  # longer than they take
OTHER_FRAMES: Final = 6  # malloc, pairs, main, two of libc's start, _start


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", cpuinfo, re.M)
    memory = re.search(r"^MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cpus": os.cpu_count(),
        "virtual": " hypervisor " in cpuinfo,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "memory_bytes": int(memory[1]) * 1024 if memory else None,
    }


class Measured:
    """One line's costs, by contender and round."""

    def __init__(self, line: Line, contenders: list[str]) -> None:
        self.line = line
        self.contenders = contenders
        self.costs: dict[str, dict[int, Cost]] = {name: {} for name in (*contenders, AFTERWARDS)}
        self.failed: dict[str, str] = {}
        self.said: dict[str, list[float]] = {}

    def one(self, contender: str, target: Target, scratch: Path, seconds: float, warm: float) -> Cost | None:
        try:
            with tools.attached(contender, target.pid, scratch, self.said, target.workers):
                return self.warm(target, seconds, warm)
        except (tools.CannotAttach, AssertionError) as error:
            self.failed[contender] = str(error)[-300:]
            say(f"{self.line.name}: {contender}: {error}")
            return None

    @staticmethod
    def warm(target: Target, seconds: float, warm: float) -> Cost:
        target.work(warm)
        return target.work(seconds)

    def keep(self, contender: str, number: int, cost: Cost | None) -> None:
        if cost:
            self.costs[contender][number] = cost

    def round(self, number: int, rounds: int, more: int, scratch: Path, seconds: float, warm: float) -> None:
        """All contenders, and so many times more those whose difference is small."""
        order = random.Random(number).sample(self.contenders, len(self.contenders))
        with self.line.start([], scratch) as target:
            target.work(warm)
            for contender in order:
                if contender not in tools.STARTERS:
                    self.keep(contender, number, self.one(contender, target, scratch, seconds, warm))
            self.costs[AFTERWARDS][number] = target.work(seconds)
            self.between_bare(range(rounds + number, rounds * (more + 1), rounds), target, scratch, seconds, warm)
        for contender in order:
            if contender in tools.STARTERS:
                self.started_by(contender, number, scratch, seconds, warm)

    def between_bare(self, numbers: range, target: Target, scratch: Path, seconds: float, warm: float) -> None:
        if not self.line.again or not numbers:
            return
        turns = [partial(self.one, contender, target, scratch, seconds, warm) for contender in self.line.again]
        made = measuring.between(lambda: self.warm(target, seconds, warm), turns, Cost.mean)
        for number, (bare, given) in zip(numbers, made):
            self.costs[tools.BARE][number] = bare
            for contender, cost in zip(self.line.again, given):
                self.keep(contender, number, cost)

    def started_by(self, contender: str, number: int, scratch: Path, seconds: float, warm: float) -> None:
        try:
            with self.line.start(tools.prefix(contender, scratch), scratch) as target:
                self.keep(contender, number, self.one(contender, target, scratch, seconds, warm))
        except AssertionError as error:
            self.failed[contender] = str(error)[-300:]

    def result(self, rounds: int) -> dict[str, Any]:
        return {
            "name": self.line.name,
            "unit": self.line.unit,
            "rounds": rounds,
            "failed": self.failed,
            "contenders": [
                {
                    "name": name,
                    "rounds": sorted(costs),
                    "cpu_ns": [costs[number].cpu_ns for number in sorted(costs)],
                    "wall_ns": [costs[number].wall_ns for number in sorted(costs)],
                    # What memtoll itself has said of its overhead, in percent.
                    **({"said_pct": self.said[name]} if name in self.said else {}),
                }
                for name, costs in self.costs.items()
                if costs
            ],
        }


# Figures that are not a ratio to a bare run.


def stack_ns(scratch: Path, batches: int) -> float:
    """What walking a whole stack of FRAMES frames costs: pairs whose blocks are followed, less pairs whose are not."""
    deep = scratch / "deep"
    flags = "-std=gnu11 -O2 -fomit-frame-pointer -fno-builtin".split()
    if not deep.exists():
        tools.run([tool("gcc"), *flags, SOURCES / "chains" / "deep.c", "-o", deep])
    pair_ns = []
    followed_or_not: tuple[list[str], ...] = ([], ["--min-size", "1M"])
    for options in followed_or_not:
        out = tools.recording(scratch)
        command: list[str | Path] = [MEMTOLL, "record", "-o", out, "--overhead-limit", "none", *options, "--"]
        said = tools.run([*command, deep, str(FRAMES - OTHER_FRAMES), str(batches)])
        pair_ns.append(json.loads(next(row for row in said.splitlines() if row.startswith("{")))["pair_ns"])
        out.unlink()
    return float(pair_ns[0] - pair_ns[1]) / 2


def libraries(count: int) -> list[str]:
    """Shared libraries of this system, each file once."""
    listed = re.findall(r"=> (/\S+)$", tools.run([tool("ldconfig"), "-p"]), re.M)
    files = sorted({str(Path(path).resolve()) for path in listed if "x86-64" in path or "/x86_64-" in path})
    return files[:count]


def attach_s(scratch: Path, cache: Path, paths: list[str]) -> float:
    """From the start of memtoll until probes stand in a process that maps so many libraries."""
    with Program(workload("map_libraries"), *paths) as program:
        out = tools.recording(scratch)
        begun = time.monotonic()
        tracer = spawn([MEMTOLL, "record", "-p", str(program.pid), "-o", out], {"MEMTOLL_CACHE": str(cache)})
        try:
            wait_attached(tracer, program.pid)
            return time.monotonic() - begun
        finally:
            tools.stop(tracer)
            end(tracer)
            out.unlink(missing_ok=True)


def figures(scratch: Path, rounds: int, quick: bool) -> list[dict[str, Any]]:
    say("a whole stack")
    walks = [stack_ns(scratch, 19 if quick else 199) for _ in range(rounds)]
    strangers = others(scratch, rounds, 0.1 if quick else 1.0)
    paths = libraries(20 if quick else LIBRARIES)
    say(f"attaching to {len(paths)} libraries")
    first, second = [], []
    for number in range(rounds):
        cache = scratch / f"cache{number}"
        first.append(attach_s(scratch, cache, paths))
        second.append(attach_s(scratch, cache, paths))
    return [
        {"name": f"a stack of {FRAMES} frames, walked", "unit": "ns", "runs": walks},
        {"name": f"attaching to {len(paths)} libraries, first time", "unit": "s", "runs": first},
        {"name": f"attaching to {len(paths)} libraries, again", "unit": "s", "runs": second},
        *strangers,
    ]


def others(scratch: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """What processes that are not watched pay for it that another one is, which faults and maps all the time."""
    runs: dict[str, list[float]] = {name: [] for name in OTHERS}
    with ExitStack() as stack:
        started = {name: stack.enter_context(price(kind)([], scratch)) for name, kind in OTHERS.items()}

        def all_of_them() -> dict[str, float]:
            return {name: target.work(seconds).cpu_ns for name, target in started.items()}

        def watched() -> dict[str, float]:
            with Program(workload("price"), "storm", "1") as busy:
                assert busy.process.stdin
                busy.process.stdin.write(f"{BUSY_MS}\n")
                busy.process.stdin.flush()
                with tools.attached(tools.DEFAULT, busy.pid, scratch):
                    return all_of_them()

        for number in range(rounds):
            say(f"others, round {number + 1} of {rounds}")
            before, during, after = all_of_them(), watched(), all_of_them()
            for name, ratios in runs.items():
                ratios.append(during[name] / measuring.middle(before[name], after[name]))
    return [
        {"name": f"others, while one is watched: {name}", "unit": "times", "runs": ratios}
        for name, ratios in runs.items()
    ]


def save(results: dict[str, Any], arguments: argparse.Namespace) -> None:
    (arguments.out or results_file(results["machine"])).write_text(json.dumps(results, indent=1) + "\n")


def measure(arguments: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All of it; saved after each line."""
    rounds = 1 if arguments.quick else arguments.rounds
    seconds, warm = (0.1, 0.1) if arguments.quick else (1.0, WARM_SECONDS)
    before = round(os.getloadavg()[0], 1)
    results: dict[str, Any] = {
        "format": 1,
        "version": tools.run([MEMTOLL, "--version"]).split()[1],
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "load": [before, before],
        "not_installed": [name for name, path in tools.programs().items() if path is None],
        "lines": [],
        "figures": [],
    }
    order = [line.name for line in LINES]
    if arguments.renew:
        known = results_file(results["machine"])
        kept = json.loads(known.read_text()) if known.exists() else None
        if not kept or machine_facts(kept["machine"]) != machine_facts(results["machine"]):
            raise SystemExit("bench: --renew: this machine has no results yet; measure all lines")
        results |= {name: kept[name] for name in ("lines", "figures", "load")}
    if re.search(arguments.lines, FIGURES):
        results["figures"] = figures(scratch, rounds, arguments.quick)
    for line in LINES:
        if not re.search(arguments.lines, line.name):
            continue
        quick = QUICK if tools.FULL in line.contenders else (tools.BARE, tools.DEFAULT)
        here = [name for name in line.contenders if tools.installed(name) and (not arguments.quick or name in quick)]
        one = Measured(line, here)
        for number in range(rounds):
            say(f"{line.name}, round {number + 1} of {rounds}: {', '.join(here)}")
            one.round(number, rounds, 0 if arguments.quick else AGAIN, scratch, seconds * line.seconds, warm)
        results["lines"] = [other for other in results["lines"] if other["name"] != line.name]
        results["lines"].append(one.result(rounds))
        results["lines"].sort(key=lambda row: order.index(row["name"]))
        results["load"][1] = round(os.getloadavg()[0], 1)
        save(results, arguments)
    return results


def leave(number: int, _frame: object) -> None:
    """As an exception: what was started is ended on its way out."""
    sys.exit(128 + number)


def end_children() -> None:
    """Those that nobody knows of: a signal that comes inside spawn() leaves a process without its owner."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    for pid in map(int, children.read_text().split() if children.exists() else []):
        with suppress(ProcessLookupError, ChildProcessError):
            # Each leads a group of its own, but in the moment before it begins one.
            (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def main() -> int:
    # A shell that starts it in the background has SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="every line once and short: does it run?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", default="", help="only lines that this regular expression finds, or figures")
    parser.add_argument("--renew", action="store_true", help="the other lines' results stay, if this machine's")
    parser.add_argument("--out", type=Path, default=None, help="results go there, and doc/overhead.md is left alone")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="memtoll-bench-"))
    scratch.chmod(0o755)
    try:
        with tools.tracefs():
            results = measure(arguments, scratch)
    finally:
        end_children()
        with suppress(OSError):
            shutil.rmtree(scratch)
    save(results, arguments)
    if not arguments.out:
        write_page()
    return 0


if __name__ == "__main__":
    sys.exit(main())
