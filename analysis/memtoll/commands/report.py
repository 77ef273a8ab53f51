# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll report FILE: what `memtoll report` prints, where there is no memtoll."""

from __future__ import annotations

import argparse
import json
import sys

from . import Command, file_argument, natural, redact_argument, terminal

SITES = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    file_argument(parser)
    redact_argument(parser)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("-j", "--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "-s",
        "--sites",
        type=natural,
        metavar="N",
        help=f"print the N most expensive sites; 0: all (text: {SITES}, JSON: all)",
    )
    kind.add_argument(
        "--brief",
        type=tokens,
        metavar="N",
        help="for a script or a language model: the diagnosis in N tokens at most, lines KEY: TEXT",
    )


def tokens(text: str) -> int:
    """An argument that is a number of tokens with room for a brief."""
    from ..brief import LEAST

    number = int(text)
    if number < LEAST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of tokens from {LEAST} on")
    return number


def run(arguments: argparse.Namespace) -> int:
    from ..brief import brief
    from ..recording import open as open_recording
    from ..text import report

    with open_recording(arguments.file, progress=terminal(), redact=arguments.redact) as rec:
        if arguments.brief:
            sys.stdout.write(brief(rec, arguments.brief))
        elif not arguments.json:
            sites = SITES if arguments.sites is None else arguments.sites
            sys.stdout.write(report(rec, sites or None))
        elif not arguments.sites:
            print(rec.report_text)
        else:
            whole = rec.report | {"sites": rec.report["sites"][: arguments.sites]}
            print(json.dumps(whole, separators=(",", ":")))
    return 0


COMMAND = Command(
    name="report",
    help="the verdict, tolls and sites of a recording, as text or JSON",
    description=(
        "Print what a recording says: verdict, advice, tolls, sites, checks.\n\n"
        "  python3 -m memtoll report server.memtoll\n"
        "  python3 -m memtoll report server.memtoll --json | jq .verdict\n"
        "  python3 -m memtoll report server.memtoll --brief 1000"
    ),
    arguments=arguments,
    run=run,
)
