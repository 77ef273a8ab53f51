# SPDX-License-Identifier: GPL-2.0
"""python3 -m memtoll push FILE --endpoint URL: a recording's profiles to OpenTelemetry."""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import unquote

from ..frames import TOLLS
from . import Command, file_argument, positive, redact_argument, terminal

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"


def header(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError("a header is NAME=VALUE")
    return name.strip(), value.strip()


def arguments(parser: argparse.ArgumentParser) -> None:
    file_argument(parser)
    parser.add_argument(
        "-e", "--endpoint", metavar="URL", required=True, help="the server, http://HOST:4318, or the whole address"
    )
    parser.add_argument(
        "--header",
        action="append",
        type=header,
        default=[],
        metavar="NAME=VALUE",
        help=f"one more header (may be repeated); what others must not see comes in {HEADERS}=NAME=VALUE,...",
    )
    parser.add_argument("--toll", choices=TOLLS, metavar="TOLL", help="only this toll")
    parser.add_argument("--owner", choices=("allocated", "touched"), help="where samples are put")
    parser.add_argument("--timeout", type=positive, default=10.0, metavar="S", help="of each try (default: 10)")
    parser.add_argument(
        "--patience", type=positive, default=60.0, metavar="S", help="of all tries together (default: 60)"
    )
    parser.add_argument("--compression", choices=("gzip", "none"), default="gzip", help="of what is sent: gzip or none")
    parser.add_argument("--again", action="store_true", help="send also what was sent there before")
    redact_argument(parser)
    parser.set_defaults(usage_error=parser.error)


def _headers(arguments: argparse.Namespace) -> dict[str, str]:
    """Those of the environment, as OpenTelemetry's programs take them, and those of the command line over them.

    However a name is written: headers do not tell apart what is large and small.
    """
    found: dict[str, tuple[str, str]] = {}
    for each in filter(None, (part.strip() for part in os.environ.get(HEADERS, "").split(","))):
        name, equals, value = each.partition("=")
        if not equals:
            arguments.usage_error(f"{HEADERS} is no list of NAME=VALUE")
        name = unquote(name.strip())
        found[name.lower()] = (name, unquote(value.strip()))
    found |= {name.lower(): (name, value) for name, value in arguments.header}
    return dict(found.values())


def run(arguments: argparse.Namespace) -> int:
    from ..push import BadEndpoint, push
    from ..recording import open as open_recording

    def said(text: str) -> None:
        print(f"memtoll: {text}", file=sys.stderr)

    try:
        with open_recording(arguments.file, progress=terminal(), redact=arguments.redact) as rec:
            pushed = push(
                rec,
                arguments.endpoint,
                headers=_headers(arguments),
                toll=arguments.toll,
                owner=arguments.owner,
                timeout_s=arguments.timeout,
                patience_s=arguments.patience,
                compress=arguments.compression == "gzip",
                again=arguments.again,
                said=said,
            )
    except BadEndpoint as error:
        arguments.usage_error(str(error))
    if pushed.warning:
        said(f"{pushed.url}: {pushed.warning}")
    times = f"; no answer came to {pushed.unanswered} before: it may be there as often" if pushed.unanswered else ""
    said(f"pushed to {pushed.url}: {pushed.profiles} profiles, {pushed.bytes:,} bytes{times}")
    return 0


COMMAND = Command(
    name="push",
    help="a recording's profiles to an OTLP/HTTP endpoint of OpenTelemetry",
    description=(
        "Send a recording's profiles, as export writes them with --format otlp, to an endpoint.\n\n"
        "  python3 -m memtoll push server.memtoll --endpoint http://localhost:4318\n"
        "  python3 -m memtoll push server.memtoll -e https://otlp.example/v1development/profiles --redact\n\n"
        "What names a server only gets the path of the protocol. An endpoint that is not reached, disconnects\n"
        "without an answer, or asks for it (429, 502, 503, 504), is tried again until --patience is over, and\n"
        "stderr says so. Where no answer comes in --timeout, and where the same was sent there before, nothing\n"
        "is sent without --again: for 30 days that is kept in ~/.local/state/memtoll/pushed."
    ),
    arguments=arguments,
    run=run,
)
