# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll dataset: recordings of many hosts as one dataset, and questions to it."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from . import Command, natural, terminal

if TYPE_CHECKING:
    import pandas as pd

# Fewer are read before other processes have started.
WORTH_PROCESSES = 16
TOP = 20
LAST_DAY = "9999-12-31"


def _words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ValueError(text)
    return words


def _day(text: str) -> str:
    return datetime.date.fromisoformat(text).isoformat()


def _directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the dataset")


def _which(parser: argparse.ArgumentParser) -> None:
    """What all questions have."""
    parser.add_argument("--host", action="append", metavar="HOST", help="only of this host (may be repeated)")
    parser.add_argument("--from", dest="first", type=_day, metavar="DAY", help="from this day on, 2026-11-21, UTC")
    parser.add_argument("--to", dest="last", type=_day, metavar="DAY", help="until this day")
    parser.add_argument("--engine", choices=("pandas", "dask"), help="otherwise by the size of the dataset")
    parser.add_argument("-j", "--json", action="store_true", help="print one JSON array of rows")


def arguments(parser: argparse.ArgumentParser) -> None:
    below = parser.add_subparsers(title="actions", metavar="ACTION", required=True, parser_class=type(parser))

    adding = below.add_parser("add", help="add recordings; those that are there are left as they are")
    _directory(adding)
    adding.add_argument("files", metavar="FILE", nargs="+", help="a recording, or a directory with recordings")
    adding.add_argument("--host", metavar="HOST", help="instead of what the recordings say")
    adding.add_argument("--service", metavar="NAME", help="instead of the systemd unit or program name")
    adding.add_argument("--incomplete", action="store_true", help="also recordings that were not finished")
    adding.set_defaults(action=_add)

    top = below.add_parser("top", help="who pays most for a toll")
    _directory(top)
    top.add_argument("-t", "--toll", metavar="TOLL", help="a toll or a family; needed unless --by has toll or family")
    top.add_argument(
        "--by", type=_words, metavar="COLUMN,..", default=["service", "build"], help="(default: service,build)"
    )
    top.add_argument("--measure", choices=("time_s", "bytes", "share"), default="time_s", help="(default: time_s)")
    top.add_argument("-n", type=natural, metavar="N", default=TOP, help=f"groups to print; 0: all (default: {TOP})")
    _which(top)
    top.set_defaults(action=_top)

    trend = below.add_parser("trend", help="a toll per day")
    _directory(trend)
    trend.add_argument("-t", "--toll", metavar="TOLL", required=True, help="a toll or a family")
    trend.add_argument("--by", type=_words, metavar="COLUMN,..", default=[], help="also by these columns")
    _which(trend)
    trend.set_defaults(action=_trend)

    compare = below.add_parser("diff", aliases=["compare"], help="the tolls of two builds")
    _directory(compare)
    compare.add_argument("build_a", metavar="BUILD_A", help="a build id, or the beginning of one")
    compare.add_argument("build_b", metavar="BUILD_B")
    compare.add_argument("--service", metavar="NAME", help="only of this service")
    _which(compare)
    compare.set_defaults(action=_compare)

    info = below.add_parser("info", help="what is in it")
    _directory(info)
    info.add_argument("-j", "--json", action="store_true", help="print one JSON object")
    info.set_defaults(action=_info)
    for each in (adding, top, trend, compare, info):
        each.set_defaults(usage_error=each.error)


def _add(arguments: argparse.Namespace) -> int:
    from ..fleet import add, recordings_in

    files = recordings_in(arguments.files)
    many = len(files) >= WORTH_PROCESSES
    added = add(
        arguments.directory,
        files,
        incomplete=arguments.incomplete,
        host=arguments.host,
        service=arguments.service,
        processes=len(os.sched_getaffinity(0)) if many else 1,
        progress=terminal(),
    )
    failed = [each.failed for each in added if each.failed]
    for message in failed:
        print(f"memtoll: {' '.join(message.split())}", file=sys.stderr)
    new = sum(each.new for each in added)
    there = len(added) - new - len(failed)
    print(f"{new} added, {there} there already" + (f", {len(failed)} failed" if failed else ""))
    return 1 if failed or not added else 0


def _question(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "hosts": arguments.host,
        "days": (arguments.first or "", arguments.last or LAST_DAY),
        "engine": arguments.engine,
    }


def _show(table: pd.DataFrame, as_json: bool) -> int:
    from ..text import format_bytes, format_share, format_time, printable

    if as_json:
        rows = [
            {name: None if value != value else value for name, value in row.items()} for row in table.to_dict("records")
        ]
        print(json.dumps(rows))
        return 0
    if not len(table):
        print("nothing", file=sys.stderr)
        return 0
    shown = {}
    for name, column in table.items():
        title = str(name)
        if title.startswith(("time_s", "observed_s")):
            texts = [format_time(value) for value in column]
            title = title.replace("_s", "")
        elif title.startswith("bytes"):
            texts = [_known(value, format_bytes) for value in column]
        elif title.startswith("share") or title in ("difference", "low", "high"):
            texts = [_known(value, format_share) for value in column]
        elif title.startswith("ratio"):
            texts = [_known(value, "{:.3g}".format) for value in column]
        elif column.dtype.kind in "iu":
            texts = [f"{value:,}" for value in column]
        else:
            texts = [printable(str(value or "(unknown)")) for value in column]
        left = column.dtype.kind not in "iuf"
        width = max(len(title), *(len(text) for text in texts))
        shown[name] = [f"{text:<{width}}" if left else f"{text:>{width}}" for text in [title, *texts]]
    for line in zip(*shown.values()):
        print("  ".join(line).rstrip())
    return 0


def _known(value: float, form: Any) -> str:
    return "?" if value != value else str(form(value))


def _top(arguments: argparse.Namespace) -> int:
    from ..fleet import dataset

    with dataset(arguments.directory) as ds:
        table = ds.top(arguments.toll, arguments.by, arguments.measure, arguments.n or None, **_question(arguments))
    return _show(table, arguments.json)


def _trend(arguments: argparse.Namespace) -> int:
    from ..fleet import dataset

    with dataset(arguments.directory) as ds:
        table = ds.trend(arguments.toll, arguments.by, **_question(arguments))
    return _show(table, arguments.json)


def _compare(arguments: argparse.Namespace) -> int:
    from ..fleet import dataset

    with dataset(arguments.directory) as ds:
        table = ds.diff(arguments.build_a, arguments.build_b, service=arguments.service, **_question(arguments))
    return _show(table.reset_index(), arguments.json)


def _info(arguments: argparse.Namespace) -> int:
    from ..fleet import dataset

    with dataset(arguments.directory) as ds:
        info = ds.info()
    if arguments.json:
        print(json.dumps(info))
        return 0
    print(f"{info['recordings']:,} recordings of {info['hosts']:,} hosts on {info['days']:,} days")
    if info["days"]:
        print(f"{info['first_day']} to {info['last_day']} (UTC)")
    for table, rows in info["rows"].items():
        print(f"  {table:<8} {rows:>12,} rows in {info['files'][table]:,} files")
    return 0


def run(arguments: argparse.Namespace) -> int:
    from ..fleet import BadQuestion

    try:
        return int(arguments.action(arguments))
    except BadQuestion as error:
        arguments.usage_error(str(error))
        return 2


COMMAND = Command(
    name="dataset",
    help="recordings of many hosts as one Parquet dataset, and questions to it",
    description=(
        "Make one dataset of the recordings of many hosts, and ask it.\n\n"
        "  python3 -m memtoll dataset add fleet *.memtoll\n"
        "  python3 -m memtoll dataset top fleet --toll zeroing --by service,build\n"
        "  python3 -m memtoll dataset trend fleet --toll swap.in --by service\n"
        "  python3 -m memtoll dataset diff fleet 4f1e09 a72c55 --service api.service"
    ),
    arguments=arguments,
    run=run,
)
