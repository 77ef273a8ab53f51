#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""package.py bytes|values: recordings that are damaged or made up, read by all of the Python package.

Each is read, or refused by one of memtoll's own errors with one line; anything else ends the run. `bytes` damages the
file, `values` puts what no recording has into its tables. Where MEMTOLL_SAN names memtoll built with sanitizers, that
reports every seventh of them, too. The command line is that of driver.c.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent.parent / "analysis"), str(TESTS)]

import facts  # noqa: E402
import memtoll  # noqa: E402
from memtoll import pictures  # noqa: E402
from memtoll.page import page  # noqa: E402

VALUES: Final = (
    None, "", "text", "\x1b[31m\u202e\n", "9" * 400, "-1", "0x7f", b"\xff\xfe\x00", b"", 0, 1, -1, 2**31, 2**63 - 1,
    -(2**63), 10**18, 0.5, -0.0, 1e308, -1e308, float("inf"), float("-inf"), "\ud800".encode("utf-8", "surrogatepass"),
)  # fmt: skip
DRAWN: Final = tuple(
    getattr(pictures, name) for name in ("address_map", "timeline", "sizes", "fault_latency", "malloc_latency", "flame")
)
# Bytes that are no text, under a text's type.
NO_TEXT: Final = "CAST(x'fffe80c0' AS TEXT)"


def scenario(rng: random.Random, path: Path) -> None:
    facts.SCENARIOS[rng.choice(sorted(facts.SCENARIOS))](path).database.close()


def damage(rng: random.Random, path: Path) -> None:
    """Bytes of the file, most of them in headers of pages and in the schema."""
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 17, 101))):
        start = rng.choice((0, 0, 4096 * rng.randrange(len(data) // 4096)))
        data[min(len(data) - 1, start + rng.randrange(rng.choice((100, 4096))))] = rng.choice(
            (0, 1, 0x7F, 0xFF, rng.randrange(256))
        )
    if rng.random() < 0.1:
        del data[rng.randrange(len(data)) :]
    path.write_bytes(data)


def make_up(rng: random.Random, path: Path) -> None:
    """Values of any type in some columns, of some rows or all, and rows more than once."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN")
        tables = [
            name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        for _ in range(rng.choice((1, 1, 2, 7, 31))):
            table = rng.choice(tables)
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            rows = database.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0]
            try:
                if not rows or rng.random() < 0.2:
                    marks = ", ".join("?" * len(columns))
                    values = [rng.choice((*VALUES, 1, 42, "malloc", "zero")) for _ in columns]
                    database.execute(f'INSERT INTO "{table}" VALUES ({marks})', values)
                    continue
                column, whole = rng.choice(columns), rng.random() < 0.5
                where = (
                    ""
                    if whole
                    else f' WHERE "{column}" = (SELECT "{column}" FROM "{table}" LIMIT 1 OFFSET {rng.randrange(rows)})'
                )
                if rng.random() < 0.1:
                    database.execute(f'UPDATE "{table}" SET "{column}" = {NO_TEXT}{where}')
                else:
                    database.execute(f'UPDATE "{table}" SET "{column}" = ?{where}', [rng.choice(VALUES)])
            except sqlite3.IntegrityError:
                pass  # what the schema does not take
        database.execute("COMMIT")


def everything(path: Path, thoroughly: bool) -> None:
    """All that the package makes of a recording."""
    with memtoll.open(path, incomplete=True) as rec:
        parts: list[Callable[[], Any]] = [
            lambda: rec.report, lambda: rec.verdict, lambda: str(rec), lambda: rec.notes, lambda: rec.meta,
            lambda: rec.zeroing, lambda: rec.memory, rec._repr_html_, lambda: memtoll.compare(rec, rec),
            *((lambda name=name: repr(getattr(rec, name))) for name in memtoll.recording.NAMES),
        ]  # fmt: skip
        if thoroughly:
            beside = Path(tempfile.gettempdir()) / f"memtoll-fuzz-{os.getpid()}"
            parts += [
                lambda: page(rec),
                *((lambda draw=draw: draw(rec)) for draw in DRAWN),
                lambda: rec.export(beside, "ndjson", force=True),
                *(
                    (lambda name=name: rec.export(beside, name, force=True))
                    for name in ("folded", "speedscope", "firefox")
                ),
            ]
        for part in parts:
            try:
                part()
            except memtoll.Error as error:
                judge(error)
        if thoroughly:
            beside.unlink(missing_ok=True)


def report(path: Path) -> None:
    """What `memtoll report` makes of it: a report or one line."""
    memtoll_san = os.environ.get("MEMTOLL_SAN")
    for words in ([], ["--json"]) if memtoll_san else ():
        done = subprocess.run([str(memtoll_san), "report", path, *words], capture_output=True, timeout=60, check=False)
        lines = done.stderr.splitlines()
        if (
            done.returncode not in (0, 1)
            or len(lines) != done.returncode
            or any(not line.startswith(b"memtoll: ") for line in lines)
        ):
            raise AssertionError(f"memtoll report: status {done.returncode}, {done.stderr.decode(errors='replace')}")


def judge(error: BaseException) -> None:
    if not isinstance(error, memtoll.Error | OSError):
        raise error
    if len(str(error).splitlines()) != 1:
        raise AssertionError(f"more than a line: {error}") from error


def tries(kind: str, seed: int, first: int, count: int, seconds: float, keep: Path) -> int:
    change = {"bytes": damage, "values": make_up}[kind]
    until = time.monotonic() + seconds if seconds else float("inf")
    number, refused = first, 0
    with tempfile.TemporaryDirectory(prefix="memtoll-fuzz-") as directory:
        path = Path(directory) / "input.memtoll"
        while number < first + count and time.monotonic() < until:
            rng = random.Random(f"{seed} {number}")
            path.unlink(missing_ok=True)
            scenario(rng, path)
            change(rng, path)
            try:
                everything(path, number % 31 == 0)
                if number % 7 == 0:
                    report(path)
            except (memtoll.Error, OSError) as error:
                refused += 1
                judge(error)
            except BaseException as error:
                kept = keep / f"package-{kind}-{seed}-{number}"
                if not isinstance(error, KeyboardInterrupt):
                    keep.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(path.read_bytes())
                    again = f"{sys.argv[0]} {kind} --input {kept}"
                    print(
                        f"package {kind}: {type(error).__name__} (--seed {seed}); kept; again: {again}", file=sys.stderr
                    )
                raise
            number += 1
    print(f"package {kind}: {number - first} tries, {refused} refused, nothing found (--seed {seed})")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("bytes", "values"))
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)), help="(default: random)")
    parser.add_argument("--first", type=int, default=0, help="number of the first try")
    parser.add_argument("--tries", type=int, default=sys.maxsize)
    parser.add_argument("--seconds", type=float, default=0, help="0: until all tries are made")
    parser.add_argument("--keep", type=Path, default=Path(), help="directory for an input that failed")
    parser.add_argument("--input", type=Path, help="try a file as it is, one that was kept")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.input:
        try:
            everything(arguments.input, True)
        except (memtoll.Error, OSError) as error:
            judge(error)
        report(arguments.input)
        return 0
    return tries(arguments.kind, arguments.seed, arguments.first, arguments.tries, arguments.seconds, arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
