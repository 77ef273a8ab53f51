# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll diff BEFORE AFTER: what a change did, and how sure that is."""

from __future__ import annotations

import argparse
import json
import sys

from . import Command, natural, positive, terminal

SITES = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", metavar="BEFORE", help="recording before the change")
    parser.add_argument("after", metavar="AFTER", help="recording after it")
    parser.add_argument(
        "--work",
        nargs=2,
        type=positive,
        metavar=("N", "M"),
        help="units of work done in each (requests, rounds): figures are then per unit, not per second",
    )
    parser.add_argument("-j", "--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "-s", "--sites", type=natural, metavar="N", help=f"print N sites; 0: all (text: {SITES}, JSON: all)"
    )
    parser.add_argument("--force", action="store_true", help="also recordings that do not measure the same")


def run(arguments: argparse.Namespace) -> int:
    from ..comparison import diff
    from ..text import comparison

    before, after = arguments.work or (None, None)
    both = diff(
        arguments.before,
        arguments.after,
        work_before=before,
        work_after=after,
        force=arguments.force,
        progress=terminal(),
    )
    if arguments.json:
        whole = both.as_json(arguments.sites or None)
        print(json.dumps(whole, allow_nan=False, separators=(",", ":")))
    else:
        sites = SITES if arguments.sites is None else arguments.sites
        sys.stdout.write(comparison(both, sites or None))
    return 0


COMMAND = Command(
    name="diff",
    aliases=("compare",),
    help="two recordings side by side: what a change did",
    description=(
        "Compare two recordings by toll, class of fault and site, with 95 % bounds from their slices.\n"
        "A job of fixed size needs --work: its duration changes, not its rates.\n\n"
        "  python3 -m memtoll diff before.memtoll after.memtoll --work 3001 3001"
    ),
    arguments=arguments,
    run=run,
)
